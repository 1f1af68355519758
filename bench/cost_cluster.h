/* bench/cost_cluster.h - clusters that differ in everything that a bill depends on: which pools there
 * are and what they allow, how large pods are and in what proportion, and what ties them down. All
 * pods wait, there are no nodes yet, and every pod can be placed. */
#pragma once

#include "bench/cluster_objects.h"

/* Adds pools, daemons and `pod_count` pods. Equal seeds give equal clusters. */
void cost_cluster_fill(struct cluster *c, const struct instance_types *types, uint32_t pod_count,
                       uint64_t seed);

/* bench/pods.h - pods as an API server prints them, made from a seed.
 *
 * A cluster of Deployments, StatefulSets and Jobs. Pods of one workload share what such pods share
 * (template, labels, owner) and differ where they do: names, uids, nodes, addresses, times, container
 * ids, and the random name of the token volume. managedFields are there, as on every real pod.
 */
#pragma once

#include "base/rng.h"
#include "base/str.h"

struct pod_maker {
    struct rng rng;
    uint64_t seed;
    uint32_t workload_count;
    uint64_t made;
};

void pod_maker_init(struct pod_maker *m, uint64_t seed, uint32_t workload_count);
void pod_maker_next(struct pod_maker *m, struct buf *out); /* appends one pod */

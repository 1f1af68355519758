/* bench/cluster_outage.h - a cluster after an outage: it runs, and nearly as many pods again wait.
 *
 * Twelve pools over the built-in catalogue (tainted ones, one for GPUs, spot and on-demand, both
 * architectures), nodes of ten of them, and workloads with all that decides where a pod may be: spread
 * over zones and hosts, affinity in a zone, anti-affinity on hosts, taints, GPUs, volumes that are in a
 * zone already and volumes that wait for one, and preferences. Workloads have both running and waiting
 * pods. Every waiting pod can be placed.
 */
#pragma once

#include "bench/cluster_objects.h"

struct outage_size {
    uint32_t workloads, pending;
    uint32_t running, nodes; /* running pods include two daemons on each node */
};

/* Equal sizes and seeds give equal clusters. */
void outage_fill(struct cluster *c, struct outage_size size, uint64_t seed);

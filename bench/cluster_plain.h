/* bench/cluster_plain.h - a baseline for the solver: one pod after the other, the way that node
 * autoscalers do it today.
 *
 * The largest pods first. A pod is tried on every planned node, those with the fewest pods first: labels,
 * then topology, then the node's list of instance types is filtered by requirements, room and offerings.
 * Where none takes it, a node is planned with the whole list. It knows what the pods of
 * bench/cluster_fake.h ask for: requests and one required topology term each.
 */
#pragma once

#include "bench/cluster_objects.h"

struct plain_result {
    uint32_t nodes, placed;
};

struct plain_result plain_schedule(const struct cluster *c, const struct instance_type_draft *types,
                                   uint32_t type_count);

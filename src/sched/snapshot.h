/* sched/snapshot.h - all that a plan depends on: the cluster as it is, and what can be launched.
 *
 * A snapshot borrows everything. Objects are in any order and each is there once; nothing in a plan
 * depends on their order. All of it stays as it is while a plan is made of it and read.
 */
#pragma once

#include "api/node.h"
#include "api/nodeclaim.h"
#include "api/nodepool.h"
#include "api/policy.h"
#include "api/storage.h"
#include "api/workloads.h"
#include "cloud/instance_types.h"

struct sched_pool {
    const struct nodepool *pool;
    const struct instance_types *types; /* overlays applied; NULL: see `not_ready` */
    /* Label keys that the pool may leave undefined (sorted): those of its cloud and of its types. */
    struct str_list well_known;
    /* "": nodes may be launched. Otherwise why not, in words: its node class is not ready, ... Such a
     * pool still owns the nodes that carry its label. */
    struct str not_ready;
};

struct snapshot {
    const struct pod *const *pods; /* all of them: pending, running, finished, not for us */
    uint32_t pod_count;
    /* Per pod: it has to leave the node that it is on, and is planned for as if it were pending. NULL:
     * none has. */
    const bool *maybe_displaced;
    const struct node *const *nodes;
    uint32_t node_count;
    const struct nodeclaim *const *claims; /* one that has a Node counts as that Node */
    uint32_t claim_count;
    const struct sched_pool *pools; /* in any order */
    uint32_t pool_count;
    const struct daemon_set *const *daemon_sets;
    uint32_t daemon_set_count;

    const struct pvc *const *pvcs;
    uint32_t pvc_count;
    const struct pv *const *pvs;
    uint32_t pv_count;
    const struct storage_class *const *storage_classes;
    uint32_t storage_class_count;
    const struct csi_node *const *csi_nodes;
    uint32_t csi_node_count;

    const struct namespace_object *const *namespaces; /* their labels, for namespace selectors */
    uint32_t namespace_count;
    const struct priority_class *const *priority_classes;
    uint32_t priority_class_count;
};

static inline bool snapshot_pod_displaced(const struct snapshot *snap, uint32_t pod)
{
    return snap->maybe_displaced && snap->maybe_displaced[pod];
}

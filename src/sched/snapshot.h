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

/* --- images --- */

/* Whether a machine, node or claim can run a pod's images. */
enum fit {
    FIT_NO,
    FIT_UNKNOWN, /* taken only if nothing that surely fits is to be had, if at all: `fit_unknown` */
    FIT_YES,
};

/* What some pods ask of a node because of their images. Equal demands are one fit. A list that is NULL
 * says yes to everything. */
struct sched_fit {
    struct str images;              /* for messages: "registry.example/app:1, nginx:1.27" */
    const uint8_t *const *machines; /* [pool of the snapshot][row of its types]: enum fit */
    const uint8_t *nodes;           /* per node: enum fit */
    const uint8_t *claims;          /* per claim, as far as it is known what will come of it */
};

enum fit_unknown { FIT_UNKNOWN_LAST, FIT_UNKNOWN_AS_YES, FIT_UNKNOWN_AS_NO };

struct snapshot_fits {
    const struct sched_fit *items; /* none: images are not looked at */
    uint32_t count;
    const uint32_t *pods; /* per pod: into `items`; UINT32_MAX: nothing is asked */
    enum fit_unknown unknown;
    /* Why a machine (`row` of the types of pool `ix`), or with `row` UINT32_MAX the node `ix`, does not
     * fit or is not known to: a few words, the arena's. NULL: nothing is said. */
    struct str (*why)(void *ctx, struct arena *arena, uint32_t fit, uint32_t ix, uint32_t row);
    void *ctx;
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

    struct snapshot_fits fits;
};

/* What the pod's images ask for, into `fits.items`; UINT32_MAX: nothing. */
static inline uint32_t snapshot_pod_fit(const struct snapshot *snap, uint32_t pod)
{
    return snap->fits.count ? snap->fits.pods[pod] : UINT32_MAX;
}
static inline enum fit sched_fit_of(const uint8_t *maybe_list, uint32_t ix)
{
    return maybe_list ? (enum fit)maybe_list[ix] : FIT_YES;
}
/* Per row of the pool's types; NULL: all of them fit. */
static inline const uint8_t *sched_fit_rows(const struct sched_fit *fit, uint32_t pool)
{
    return fit->machines ? fit->machines[pool] : NULL;
}

static inline bool snapshot_pod_displaced(const struct snapshot *snap, uint32_t pod)
{
    return snap->maybe_displaced && snap->maybe_displaced[pod];
}

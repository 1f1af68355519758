/* node/container_gc.h - which dead containers and sandboxes may go. Pure: the caller removes them.
 *
 * Of each container name of a living pod the newest dead instance stays: it carries the restart count,
 * the exit code and the start of the back-off. Of a pod that is over everything that is dead goes.
 */
#pragma once

#include "node/pod_cache.h"

#define CONTAINER_GC_PERIOD_NS ((int64_t)60 * 1000000000)

/* Is the pod over, so that nothing of it need be kept? (Until the workers know all pods: no.) */
typedef bool gc_may_remove_fn(void *ctx, struct str uid);

struct container_gc_plan {
    struct str_list containers; /* to be removed first */
    struct str_list sandboxes;  /* then these: nothing that stays is in them */
};

/* What may go of all pods. Ids point into the statuses. */
struct container_gc_plan container_gc_plan(struct arena *arena, const struct pod_cache_all *all,
                                           gc_may_remove_fn *may_remove, void *ctx);

/* tests/kube/bindings.h - are pods where they may be? What kube-scheduler did, judged by our own rules. */
#pragma once

#include "base/arena.h"
#include "store/store.h"

struct bindings {
    uint32_t pods, nodes;     /* that were looked at: pods of DaemonSets are not */
    const char *const *wrong; /* one line each, in the arena */
    uint32_t wrong_count;
};

/* Every pod that is bound, on its node: resources, taints, selectors, affinity, spread, ports, as
 * sched/check.h judges a plan that had put it there. The nodes are those of the kwok provider. */
void bindings_check(const struct store *store, struct arena *arena, struct bindings *out);

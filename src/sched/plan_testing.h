/* sched/plan_testing.h - what the tests of plans have in common: pieces of YAML, and questions about a
 * plan. */
#pragma once

#include "sched/world_testing.h"

#define NO_POOL_RULES "[]"
#define ON_DEMAND "[{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]"
#define HOST "kubernetes.io/hostname"
#define ZONE "topology.kubernetes.io/zone"

static inline const char *home(struct world *w, const struct plan *plan, const char *pod)
{
    return world_home(w, plan, pod);
}

/* The zone that a placed pod ends up in. */
static inline struct str zone_of(const struct world *w, const struct plan *plan, uint32_t pod)
{
    for (uint32_t i = 0; i < plan->launch_count; i++) {
        const struct plan_launch *l = &plan->launches[i];
        const struct instance_types *types = w->snap.pools[l->pool].types;
        for (uint32_t k = 0; k < l->pods.count; k++)
            if (l->pods.items[k] == pod)
                return types->shapes[types->offering_shape[l->offering]].zone;
    }
    for (uint32_t i = 0; i < plan->existing_count; i++)
        for (uint32_t k = 0; k < plan->existing[i].pods.count; k++)
            if (plan->existing[i].pods.items[k] == pod)
                return str_map_get(&w->snap.nodes[plan->existing[i].node]->object.meta.labels,
                                   STR(ZONE));
    return STR("nowhere");
}

/* "2 1 1": how many of PREFIX-0.. are in zone-a, zone-b, zone-c. */
static inline const char *zones(struct world *w, const struct plan *plan, const char *prefix)
{
    static char text[32];
    int counts[3] = { 0 };
    for (uint32_t i = 0; i < w->snap.pod_count; i++) {
        if (!str_starts(w->snap.pods[i]->object.meta.name, str_of(prefix)))
            continue;
        struct str zone = zone_of(w, plan, i);
        if (str_starts(zone, STR("zone-")))
            counts[zone.p[5] - 'a']++;
    }
    snprintf(text, sizeof text, "%d %d %d", counts[0], counts[1], counts[2]);
    return text;
}

static inline struct str type_of(const struct world *w, const struct plan *plan, uint32_t launch)
{
    const struct plan_launch *l = &plan->launches[launch];
    return w->snap.pools[l->pool].types->names[l->type];
}

#define SELF_TERM(key) "[{topologyKey: " key ", labelSelector: {matchLabels: {app: a}}}]"
#define LABELLED "metadata: {labels: {app: a}}\n"
#define SMALL_CONTAINER "containers: [{name: c, image: i, resources: {requests: {cpu: 100m}}}]"

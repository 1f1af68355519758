/* sched/explain_testing.h - a world that questions are asked of, for tests of explanations.
 *
 *     ASKED a;
 *     asked_load(&a, ANY_POOL POD("{cpu: 96}", ""), WORLD_TYPES_SMALL);
 *     EXPECT_STR(miss_of(&a, "p"), "web resources: needs 96 cpu; ...");
 */
#pragma once

#include "sched/explain.h"

#include "sched/domains.h"
#include "sched/world_testing.h"

/* A world, and the state before anything was placed. */
struct asked {
    struct world w;
    struct model m;
    struct state s;
    struct arena arena;
    bool compiled;
};

static inline void asked_done(struct asked *a)
{
    if (a->compiled) {
        state_done(&a->s);
        model_done(&a->m);
    }
    arena_done(&a->arena);
    world_done(&a->w);
}
#define ASKED __attribute__((cleanup(asked_done))) struct asked

static inline void asked_compile(struct asked *a)
{
    model_compile(&a->m, &a->arena, &a->w.snap, a->w.options);
    state_init(&a->s, &a->m, &a->arena);
    a->compiled = true;
}

static inline void asked_load(struct asked *a, const char *yaml, const char *types)
{
    *a = (struct asked){ 0 };
    world_load(&a->w, yaml, types);
    asked_compile(a);
}

static inline uint32_t class_of(const struct asked *a, const char *name)
{
    uint32_t pod = world_pod_ix(&a->w, name);
    for (uint32_t i = 0; i < a->m.class_count; i++) {
        for (uint32_t k = 0; k < a->m.classes[i].count; k++) {
            if (a->m.classes[i].pods[k] == pod)
                return i;
        }
    }
    fail_msg("pod %s has no class", name);
    return NONE;
}

static inline uint32_t domain_of(const struct asked *a, uint32_t key, const char *value)
{
    uint32_t d = 0;
    while (d < a->m.keys[key].domain_count && !str_eqz(a->m.keys[key].domains[d], value))
        d++;
    EXPECT_TRUE(d < a->m.keys[key].domain_count);
    return d;
}

/* "web resources: needs 96 cpu; ..." a line for each reason of a miss. */
static inline struct str miss_of(struct asked *a, const char *name)
{
    AUTO_BUF out = { 0 };
    const struct plan_blame *reasons;
    uint32_t count;
    explain_miss(&a->s, class_of(a, name), &a->arena, &reasons, &count);
    for (uint32_t i = 0; i < count; i++) {
        buf_addz(&out, i ? "\n" : "");
        if (reasons[i].pool != PLAN_NONE)
            buf_addf(&out, "%.*s ",
                     STR_ARG(a->w.snap.pools[reasons[i].pool].pool->object.meta.name));
        buf_addf(&out, "%s: %.*s", plan_reason_names[reasons[i].reason],
                 STR_ARG(reasons[i].detail));
    }
    return arena_str(&a->arena, buf_str(&out));
}

static inline const struct explain_pool *explained(struct asked *a, const char *name, uint32_t pool)
{
    struct explanation *e = arena_new(&a->arena, struct explanation);
    *e = explain_class(&a->s, class_of(a, name), &a->arena);
    EXPECT_TRUE(pool < e->pool_count);
    return &e->pools[pool];
}

static inline struct str edit_of(struct asked *a, const char *name)
{
    return explained(a, name, 0)->edit;
}

static inline struct str nearest_of(struct asked *a, const char *name)
{
    return explained(a, name, 0)->nearest;
}

/* "taints 6>6, requirements 6>2: what" one line a step. */
static inline struct str steps_of(struct asked *a, const char *name)
{
    const struct explain_pool *pool = explained(a, name, 0);
    AUTO_BUF out = { 0 };
    for (uint32_t i = 0; i < pool->step_count; i++)
        buf_addf(&out, "%s%s %u>%u %.*s", i ? "\n" : "", plan_reason_names[pool->steps[i].reason],
                 pool->steps[i].before, pool->steps[i].after, STR_ARG(pool->steps[i].what));
    return arena_str(&a->arena, buf_str(&out));
}

#define POD(requests, more) WORLD_POD("p", "{app: p}", requests, more)
#define ANY_POOL WORLD_POOL("web", "[]", "")
#define POOL_OF(requirements) WORLD_POOL("web", "[" requirements "]", "")
#define IN(key, values) "{key: " key ", operator: In, values: [" values "]}"
#define TYPE_KEY "node.kubernetes.io/instance-type"
#define ZONE_KEY "topology.kubernetes.io/zone"
#define CAPACITY_KEY "karpenter.sh/capacity-type"
#define BOUND(name, app, node, more)                                                               \
    WORLD_POD(name, "{app: " app "}", "{cpu: 1}", "  nodeName: " node "\n" more)
#define THREE_FULL_NODES                                                                           \
    WORLD_NODE("na", "zone-a", "", "cpu: 1, memory: 4Gi")                                          \
    WORLD_NODE("nb", "zone-b", "", "cpu: 1, memory: 4Gi")                                          \
    WORLD_NODE("nc", "zone-c", "", "cpu: 1, memory: 4Gi")

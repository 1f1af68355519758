/* sched/model_testing.h - a world and the model compiled from it, for tests.
 *
 *     MODELLED t = { 0 };
 *     modelled_load(&t, WORLD_POOL("web", "[]", "") WORLD_NODE("a", "zone-a", "", "cpu: 4"), NULL);
 *     EXPECT_EQ(amount(&t, modelled_home(&t, "a")->free, "cpu"), 4000);
 */
#pragma once

#include "sched/model_inner.h"
#include "sched/world_testing.h"

struct modelled {
    struct world w;
    struct arena arena;
    struct model m;
};

static inline void modelled_done(struct modelled *t)
{
    model_done(&t->m);
    arena_done(&t->arena);
    world_done(&t->w);
}
#define MODELLED __attribute__((cleanup(modelled_done))) struct modelled

/* Again, after the world has changed. */
static inline void modelled_compile(struct modelled *t)
{
    model_done(&t->m);
    model_compile(&t->m, &t->arena, &t->w.snap, t->w.options);
}

/* Types are WORLD_TYPES_SMALL unless others are given. */
static inline void modelled_load(struct modelled *t, const char *yaml, const char *maybe_types)
{
    world_load(&t->w, yaml, maybe_types ? maybe_types : WORLD_TYPES_SMALL);
    modelled_compile(t);
}

/* NULL: it is no home. */
static inline const struct home *modelled_home(const struct modelled *t, const char *name)
{
    for (uint32_t i = 0; i < t->m.home_count; i++) {
        if (str_eqz(t->m.homes[i].name, name))
            return &t->m.homes[i];
    }
    return NULL;
}

static inline const struct pool *modelled_pool(const struct modelled *t, const char *name)
{
    for (uint32_t i = 0; i < t->m.pool_count; i++) {
        if (str_eqz(t->w.snap.pools[t->m.pools[i].source].pool->object.meta.name, name))
            return &t->m.pools[i];
    }
    fail_msg("there is no pool %s", name);
    return NULL;
}

static inline uint32_t modelled_machine(const struct pool *pool, const char *type)
{
    uint32_t found = instance_types_find(pool->types, str_of(type));
    EXPECT_TRUE(found != INSTANCE_TYPE_NONE);
    return found;
}

/* Of a vector over the model's resources. */
static inline int64_t amount(const struct modelled *t, const int64_t *vector, const char *name)
{
    for (uint32_t i = 0; i < t->m.resource_count; i++) {
        if (str_eqz(t->m.resources[i], name))
            return vector[i];
    }
    fail_msg("%s is not a resource of the model", name);
    return 0;
}

/* What is left for pods on a machine of the pool. */
static inline int64_t room_of(const struct modelled *t, const char *pool, const char *type,
                              const char *resource)
{
    const struct pool *p = modelled_pool(t, pool);
    size_t row = modelled_machine(p, type);
    return amount(t, p->room + row * t->m.resource_count, resource);
}

/* Does a pod that asks for these labels (as draft_labels reads them: "a=b c=!") suit the home? */
static inline bool admits(struct modelled *t, const char *home, const struct requirements *set)
{
    const struct home *h = modelled_home(t, home);
    EXPECT_TRUE(h);
    return home_admits(&t->m, h, wants_intern(&t->m, set));
}

/* "key:value:effect" of the home's taints, in their order. */
static inline const char *taints_of(struct modelled *t, uint32_t taints)
{
    static const char *const effects[] = { "", "NoSchedule", "PreferNoSchedule", "NoExecute" };
    AUTO_BUF out = { 0 };
    for (uint32_t i = 0; i < t->m.taints[taints].count; i++) {
        const struct taint *taint = &t->m.taints[taints].items[i];
        buf_addf(&out, "%s%.*s:%.*s:%s", i ? " " : "", STR_ARG(taint->key), (int)taint->value.len,
                 taint->value.p ? taint->value.p : "", effects[taint->effect]);
    }
    return arena_str(&t->arena, buf_str(&out)).p;
}

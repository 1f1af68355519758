/* cloud/instance_cache_testing.h - for the tests of the cache: a provider in virtual time, made of the
 * same pieces as a real one (counters, marks, reservations, refreshed sources), whose every fetch
 * can be watched, failed or held up.
 *
 * An answer tells how old it is and whose: the price of "t0" in zone a is USD_HOUR_ONE times the sum
 * of all counters and of the edits of classes at the moment of the fetch, plus one for on-demand; its
 * cpus are those of its node class, fake_cpus.
 */
#pragma once

#include "cloud/instance_cache.h"
#include "cloud/instance_types_inner.h"
#include "cloud/overlay_testing.h"
#include "cloud/refresh.h"
#include "cloud/reservations.h"
#include "cloud/unavailable.h"

#include <sched.h>

#define FAKE_SOURCES 4 /* types, zones, on_demand, spot: in the order of the members */

struct fake {
    struct virtual_clock *time;
    const struct clock *clock;
    struct generation_counters counters;
    struct unavailable *marks;
    struct reservations *reservations;
    struct refresh *refresh;
    struct fake_source {
        _Atomic uint64_t data;
    } sources[FAKE_SOURCES];
    _Atomic uint64_t class_version; /* an edit of the node classes */
    uint32_t type_count;
    struct cloud_provider port;

    _Atomic int fetches, running;
    _Atomic bool held;      /* fetches wait until it is false */
    struct str held_class;  /* only those of this class, if it is set */
    _Atomic bool failing;   /* fetches fail */
    _Atomic bool forgetful; /* get_generation fails */
    /* Called inside a fetch, before the data is read. */
    void (*during)(struct fake *f);
};

static inline uint64_t fake_age(const struct fake *f)
{
    struct generation g;
    uint64_t sum = atomic_load(&f->class_version);
    generation_read(&f->counters, &g);
    for (int i = 0; i < GENERATION_MEMBERS; i++)
        sum += g.member[i];
    return sum;
}

/* How old an answer is: fake_age when it was made. */
static inline uint64_t age_of(const struct instance_types *types)
{
    return (uint64_t)(types->prices[0][0] / USD_HOUR_ONE);
}

/* We are the last to know of it: no pool, stripe or source has a reference. */
static inline bool is_ours_alone(const struct instance_types *types)
{
    return atomic_load(&types->rc.n) == 1 && atomic_load(&types->memory->rc.n) == 1;
}

static inline struct offering_draft fake_offering(struct fake *f, struct arena *arena,
                                                  struct str type, const char *zone,
                                                  const char *capacity_type, usd_hour price)
{
    struct str zone_str = str_of(zone), ct = str_of(capacity_type);
    struct requirement where[] = {
        requirement_in(arena, STR(LABEL_CAPACITY_TYPE), (struct str_list){ &ct, 1 }),
        requirement_in(arena, STR(LABEL_ZONE), (struct str_list){ &zone_str, 1 }),
    };
    struct offering_draft draft = { .price = price };
    for (size_t i = 0; i < KV_COUNT_OF(where); i++)
        draft.requirements = requirements_add(arena, &draft.requirements, &where[i]);
    draft.available = !unavailable_has(f->marks, type, zone_str, ct, STR(""));
    return draft;
}

static inline int64_t fake_cpus(struct str class_name)
{
    return 4 + (int64_t)(kv_hash(class_name.p, class_name.len) % 1000);
}

static inline int fake_build(struct fake *f, struct str class_name,
                             const struct instance_types **out, struct err *err)
{
    AUTO_ARENA arena = { 0 };
    struct instance_type_draft *drafts =
        arena_array(&arena, struct instance_type_draft, f->type_count);
    usd_hour age = (usd_hour)fake_age(f) * USD_HOUR_ONE;
    for (uint32_t i = 0; i < f->type_count; i++) {
        struct instance_type_draft *d = &drafts[i];
        struct offering_draft *offerings = arena_array(&arena, struct offering_draft, 2);
        struct resource *cpu = arena_new(&arena, struct resource);
        d->name = arena_strf(&arena, "t%u", i);
        offerings[0] = fake_offering(f, &arena, d->name, "a", "spot", age);
        offerings[1] = fake_offering(f, &arena, d->name, "b", "on-demand", age + 1);
        *cpu = (struct resource){ STR("cpu"), quantity_of(fake_cpus(class_name)) };
        d->capacity = (struct resources){ cpu, 1 };
        d->offerings = offerings;
        d->offering_count = 2;
    }
    return instance_types_build(drafts, f->type_count, (struct instance_types_options){ 0 }, out,
                                err);
}

static inline int fake_types(void *ctx, const struct nodepool *pool,
                             const struct instance_types **out, struct err *err)
{
    struct fake *f = ctx;
    struct str class_name = pool->spec.template.spec.node_class_ref.name;
    atomic_fetch_add(&f->fetches, 1);
    atomic_fetch_add(&f->running, 1);
    while (atomic_load(&f->held) && (!f->held_class.p || str_eq(f->held_class, class_name)))
        sched_yield();
    if (f->during)
        f->during(f);
    int rc = atomic_load(&f->failing) ? err_set(err, ERR_THROTTLED, "slow down, %s", f->port.name)
                                      : fake_build(f, class_name, out, err);
    atomic_fetch_sub(&f->running, 1);
    return rc;
}

static inline int fake_generation(void *ctx, const struct nodepool *pool, struct generation *out,
                                  struct err *err)
{
    struct fake *f = ctx;
    if (atomic_load(&f->forgetful))
        return err_set(err, ERR_NOT_FOUND, "no such node class");
    unavailable_settle(f->marks);
    reservations_settle(f->reservations);
    generation_read(&f->counters, out);
    uint64_t version = atomic_load(&f->class_version);
    out->member[GENERATION_INPUTS] = kv_hash_salted(
        &version, sizeof version, node_class_ref_hash(&pool->spec.template.spec.node_class_ref));
    return 0;
}

static inline int fake_source_fetch(void *ctx, uint64_t *digest, struct err *err KV_UNUSED)
{
    *digest = atomic_load(&((struct fake_source *)ctx)->data);
    return 0;
}

static inline void fake_init(struct fake *f)
{
    *f = (struct fake){ .time = virtual_clock_new(0), .type_count = 3 };
    f->clock = virtual_clock_port(f->time);
    f->marks = unavailable_new(f->clock, &f->counters, UNAVAILABLE_TTL_NS);
    f->reservations = reservations_new(f->clock, &f->counters);
    struct refresh_source sources[FAKE_SOURCES];
    for (int i = 0; i < FAKE_SOURCES; i++)
        sources[i] =
            (struct refresh_source){ (enum generation_member)i, fake_source_fetch, &f->sources[i] };
    f->refresh = refresh_new((struct refresh_options){ .clock = f->clock,
                                                       .counters = &f->counters,
                                                       .sources = sources,
                                                       .source_count = FAKE_SOURCES,
                                                       .maybe_unavailable = f->marks,
                                                       .maybe_reservations = f->reservations });
    refresh_step(f->refresh);
    f->port = (struct cloud_provider){ .get_instance_types = fake_types,
                                       .get_generation = fake_generation,
                                       .name = "fake",
                                       .ctx = f };
}

static inline void fake_done(struct fake *f)
{
    refresh_free(f->refresh);
    unavailable_free(f->marks);
    reservations_free(f->reservations);
    virtual_clock_free(f->time);
}

/* --- a cache over it, pools, and questions --- */

struct world {
    struct fake fake;
    struct instance_cache *cache;
    struct lab lab; /* for overlays */
};

static inline void world_init(struct world *w, struct instance_cache_options options)
{
    fake_init(&w->fake);
    lab_init(&w->lab);
    options.provider = &w->fake.port;
    options.clock = w->fake.clock;
    w->cache = instance_cache_new(options);
}

static inline void world_done(struct world *w)
{
    instance_cache_free(w->cache);
    lab_done(&w->lab);
    fake_done(&w->fake);
}
#define WORLD(name, ...)                                                                           \
    __attribute__((cleanup(world_done))) struct world name;                                        \
    world_init(&name, (struct instance_cache_options){ __VA_ARGS__ })

/* Names are literals or live as long. */
static inline struct nodepool pool_of(const char *name, const char *class_name)
{
    struct nodepool pool = { 0 };
    pool.object.meta.name = str_of(name);
    pool.spec.template.spec.node_class_ref =
        (struct node_class_ref){ STR(AWS_GROUP), STR("EC2NodeClass"), str_of(class_name) };
    return pool;
}

/* A reference for the caller. */
static inline const struct instance_types *get(struct world *w, const struct nodepool *pool)
{
    const struct instance_types *types = NULL;
    struct err err = { 0 };
    EXPECT_OK(instance_cache_get(w->cache, pool, &types, &err), err);
    return types;
}

/* Ask and look at the answer's age. */
static inline uint64_t ask(struct world *w, const struct nodepool *pool)
{
    AUTO_INSTANCE_TYPES types = get(w, pool);
    EXPECT_TRUE(instance_types_verify(types));
    return age_of(types);
}

/* The overlays said so far, as a set of that generation. */
static inline void set_overlays(struct world *w, uint64_t generation)
{
    AUTO_OVERLAY_SET set =
        overlay_set_new(w->lab.overlays.items, (uint32_t)w->lab.overlays.count, generation);
    instance_cache_set_overlays(w->cache, set);
}

static inline void wait_until(const _Atomic int *number, int want)
{
    while (atomic_load(number) < want)
        sched_yield();
}

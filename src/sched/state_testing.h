/* sched/state_testing.h - a world, its model and a plan in the making, for tests.
 *
 *     STATED t = { 0 };
 *     stated_load(&t, WORLD_POOL("p", "[]", "") WORLD_POD("a", "{}", "{cpu: 1}", ""), NULL);
 *     uint32_t bin = opened(&t, "p", "small");
 *     EXPECT_EQ(room_at(&t, bin, "a", 9), 2);
 *     placed(&t, bin, "a", 1);
 *
 * Pods are named for their class, and are read as they stand (the first variant).
 */
#pragma once

#include "sched/model_testing.h"
#include "sched/state.h"

struct stated {
    struct modelled modelled;
    struct state s;
};

static inline void stated_done(struct stated *t)
{
    if (t->s.model)
        state_done(&t->s);
    modelled_done(&t->modelled);
}
#define STATED __attribute__((cleanup(stated_done))) struct stated

/* From the start, after the world or the options have changed. */
static inline void stated_again(struct stated *t)
{
    if (t->s.model)
        state_done(&t->s);
    modelled_compile(&t->modelled);
    state_init(&t->s, &t->modelled.m, &t->modelled.arena);
}

/* Types are WORLD_TYPES_SMALL unless others are given. */
static inline void stated_load(struct stated *t, const char *yaml, const char *maybe_types)
{
    world_load(&t->modelled.w, yaml, maybe_types ? maybe_types : WORLD_TYPES_SMALL);
    stated_again(t);
}

/* `count` pods PREFIX-0, PREFIX-1, ...; `body` as world_add_pods takes it. */
static inline void stated_add(struct stated *t, uint32_t count, const char *prefix,
                              const char *body)
{
    world_add_pods(&t->modelled.w, count, prefix, body);
    stated_again(t);
}

static inline uint32_t class_named(const struct stated *t, const char *pod)
{
    uint32_t ix = world_pod_ix(&t->modelled.w, pod);
    for (uint32_t c = 0; c < t->modelled.m.class_count; c++)
        for (uint32_t i = 0; i < t->modelled.m.classes[c].count; i++)
            if (t->modelled.m.classes[c].pods[i] == ix)
                return c;
    fail_msg("%s is in no class", pod);
    return NONE;
}

static inline const struct variant *variant_named(const struct stated *t, const char *pod)
{
    return &t->modelled.m.classes[class_named(t, pod)].variants[0];
}

static inline uint32_t home_named(const struct stated *t, const char *name)
{
    const struct home *home = modelled_home(&t->modelled, name);
    EXPECT_TRUE(home);
    return (uint32_t)(home - t->modelled.m.homes);
}

static inline uint32_t pool_named(const struct stated *t, const char *name)
{
    return (uint32_t)(modelled_pool(&t->modelled, name) - t->modelled.m.pools);
}

static inline uint32_t machine_named(const struct stated *t, const char *pool, const char *type)
{
    return modelled_machine(modelled_pool(&t->modelled, pool), type);
}

/* The name of the machine that a launch is meant to be. */
static inline struct str type_at(const struct stated *t, uint32_t bin)
{
    const struct bin *b = &t->s.bins.items[bin];
    return t->modelled.m.pools[b->pool].types->names[b->machine];
}

/* A new launch on the pool's own terms. */
static inline uint32_t opened(struct stated *t, const char *pool, const char *type)
{
    uint32_t p = pool_named(t, pool);
    return state_open(&t->s, p, machine_named(t, pool, type), t->modelled.m.pools[p].terms);
}

static inline uint32_t room_at(struct stated *t, uint32_t bin, const char *pod, uint32_t want)
{
    const struct variant *v = variant_named(t, pod);
    return state_room(&t->s, bin, class_named(t, pod), v, v->wants, want);
}

static inline void placed(struct stated *t, uint32_t bin, const char *pod, uint32_t count)
{
    EXPECT_EQ(room_at(t, bin, pod, count), count);
    state_place(&t->s, bin, class_named(t, pod), 0, variant_named(t, pod)->wants, count);
}

/* A domain of a key of the model, such as topology.kubernetes.io/zone. */
static inline uint32_t key_named(const struct stated *t, const char *key)
{
    for (uint32_t k = 0; k < t->modelled.m.key_count; k++)
        if (str_eqz(t->modelled.m.keys[k].name, key))
            return k;
    fail_msg("%s is no topology key", key);
    return NONE;
}

static inline uint32_t domain_named(const struct stated *t, const char *key, const char *domain)
{
    uint32_t k = key_named(t, key);
    uint32_t found = domain_find(&t->modelled.m.keys[k], str_of(domain));
    EXPECT_TRUE(found != NONE);
    return found;
}

static inline usd_hour milli_usd(int64_t n)
{
    return USD_HOUR_ONE * n / 1000;
}

static inline int64_t free_cpu(const struct stated *t, uint32_t bin)
{
    return t->s.bins.items[bin].free[RESOURCE_CPU];
}

/* --- what pods say of others, whose label `app` is that --- */

#define HOST "kubernetes.io/hostname"
#define ZONE "topology.kubernetes.io/zone"
#define SPREAD_AND(key, skew, app, more)                                                           \
    "{maxSkew: " skew ", topologyKey: " key ", whenUnsatisfiable: DoNotSchedule, " more            \
    "labelSelector: {matchLabels: {app: " app "}}}"
#define SPREAD(key, skew, app) SPREAD_AND(key, skew, app, "")
#define SPREADS(items) "  topologySpreadConstraints: [" items "]\n"
#define POD_AFFINITY(kind, key, app)                                                               \
    "  affinity: {" kind ": {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: " key  \
    ", labelSelector: {matchLabels: {app: " app "}}}]}}\n"
#define NEAR(key, app) POD_AFFINITY("podAffinity", key, app)
#define AWAY(key, app) POD_AFFINITY("podAntiAffinity", key, app)

/* --- everything that a plan in the making counts, as text --- */

static inline void text_of_numbers(struct buf *out, const char *what, const int64_t *items,
                                   uint32_t count)
{
    buf_addf(out, " %s", what);
    for (uint32_t i = 0; i < count; i++)
        buf_addf(out, " %lld", (long long)items[i]);
}

static inline void text_of_bin(const struct state *s, uint32_t ix, struct buf *out)
{
    const struct model *m = s->model;
    const struct bin *bin = &s->bins.items[ix];
    buf_addf(out, "bin %u: pool %u machine %u price %lld reserved %u", ix, bin->pool, bin->machine,
             (long long)bin->price, bin->reserved);
    text_of_numbers(out, "free", bin->free, m->resource_count);
    vec_each(&bin->tallies, struct bin_tally, t)
        for (int rank = 0; rank < RANK_COUNT; rank++)
            if (t->matched[rank] || t->owners[rank]) /* what counts nothing need not be there */
                buf_addf(out, " group %u rank %d: %u %u", t->group, rank, t->matched[rank],
                         t->owners[rank]);
    for (uint32_t p = 0; p < m->port_count; p++) {
        uint32_t holders = 0;
        vec_each(&bin->ports, uint32_t, port)
            holders += *port == p;
        if (holders)
            buf_addf(out, " port %u: %u", p, holders);
    }
    vec_each(&bin->rooms, struct volume_room, room)
        buf_addf(out, " driver %u: %lld", room->driver, (long long)room->left);
    vec_each(&bin->claims, uint32_t, claim)
        buf_addf(out, " claim %u", *claim);
    vec_each(&bin->placements, struct placement, p)
        buf_addf(out, " class %u variant %u wants %u: %u", p->class_, p->variant, p->wants,
                 p->count);
    buf_addc(out, '\n');
}

static inline void text_of_state(const struct state *s, struct buf *out)
{
    const struct model *m = s->model;
    buf_addf(out, "price %lld\n", (long long)s->price);
    for (uint32_t g = 0; g < m->group_count; g++) {
        uint32_t domains = m->keys[m->groups[g].key].domain_count;
        buf_addf(out, "group %u: total %lld", g, (long long)s->groups[g].total);
        text_of_numbers(out, "matched", s->groups[g].matched, domains);
        text_of_numbers(out, "owners", s->groups[g].owners, domains);
        buf_addc(out, '\n');
    }
    for (uint32_t p = 0; p < m->pool_count; p++) {
        const struct instance_types *types = m->pools[p].types;
        buf_addf(out, "pool %u: nodes %lld", p, (long long)s->pools[p].nodes);
        text_of_numbers(out, "limits", s->pools[p].limits, m->pools[p].limit_count);
        buf_addz(out, " reserved");
        for (uint32_t i = 0; i < types->offering_count; i++)
            buf_addf(out, " %lld", (long long)reservation_left(m, p, i));
        buf_addc(out, '\n');
    }
    for (uint32_t ix = 0; ix < s->bins.count; ix++)
        if (bin_is_live(s, ix))
            text_of_bin(s, ix, out);
}

/* Nothing has changed since text_of_state. */
static inline void expect_state(const struct stated *t, const struct buf *want)
{
    AUTO_BUF got = { 0 };
    text_of_state(&t->s, &got);
    EXPECT_STR(buf_str(&got), want->p);
}

/* sched/check_testing.h - plans written by hand, for the tests of the checker.
 *
 *     DRAFT d;
 *     draft_begin(&d, &w);
 *     draft_launch(&d, "web", "small medium", "topology.kubernetes.io/zone=zone-a", "a b");
 *     draft_existing(&d, "node-1", "c");
 *     expect_right(&d);
 *     d.existing.items[0].pods.count = 0;
 *     expect_wrong(&d, "node-1 gets no pods");
 *
 * A launch gets what follows from its types and requirements: the pool's own requirements, the capacity
 * types that are left, the cheapest offering, requests. Pods are placed in the order in which they
 * are written. Everything may be changed before it is checked.
 */
#pragma once

#include "api/requests.h"
#include "api/resources.h"
#include "cloud/instance_types_testing.h"
#include "sched/world_testing.h"

struct draft {
    struct world *w;
    VEC(struct plan_launch) launches;
    VEC(struct plan_existing) existing;
    VEC(struct plan_miss) misses;
    VEC(struct plan_skip) skips;
    VEC(uint32_t) order;
    struct plan plan;
};

static inline void draft_done(struct draft *d)
{
    vec_done(&d->launches);
    vec_done(&d->existing);
    vec_done(&d->misses);
    vec_done(&d->skips);
    vec_done(&d->order);
}
#define DRAFT __attribute__((cleanup(draft_done))) struct draft

static inline void draft_begin(struct draft *d, struct world *w)
{
    *d = (struct draft){ .w = w };
}

static inline struct plan_pods draft_pods(struct draft *d, const char *names, bool placed)
{
    uint32_t *items = arena_array(&d->w->arena, uint32_t, strlen(names) + 1), count = 0;
    struct str rest = str_of(names), word;
    while (draft_word(&rest, ' ', &word)) {
        items[count] = world_pod_ix(d->w, arena_str(&d->w->arena, word).p);
        if (placed)
            vec_push(&d->order, items[count]);
        count++;
    }
    return (struct plan_pods){ items, count };
}

/* --- launches --- */

static inline uint32_t draft_pool(const struct draft *d, const char *name)
{
    EXPECT_TRUE(d->w->snap.pools != NULL);
    for (uint32_t i = 0; i < d->w->snap.pool_count; i++) {
        if (str_eqz(d->w->snap.pools[i].pool->object.meta.name, name))
            return i;
    }
    fail_msg("there is no pool %s", name);
    return 0;
}

/* With the daemons of the world: all of them, on every node. */
static inline struct resources draft_requests(struct draft *d, struct plan_pods pods)
{
    struct arena *arena = &d->w->arena;
    struct resources sum = { 0 }, one;
    struct err err = { 0 };
    for (uint32_t i = 0; i < pods.count; i++) {
        EXPECT_OK(pod_requests_on_node(d->w->snap.pods[pods.items[i]], arena, &one, &err), err);
        EXPECT_OK(resources_merge(arena, &sum, &one, &sum, &err), err);
    }
    struct resource slot = { .name = STR("pods"), .amount = quantity_of(1) };
    struct resources another = { &slot, 1 };
    vec_each(&d->w->daemon_sets, const struct daemon_set *, set) {
        const struct pod_spec *spec = &(*set)->spec.maybe_template->spec;
        EXPECT_OK(pod_spec_requests(spec, arena, &one, &err), err);
        EXPECT_OK(resources_merge(arena, &sum, &one, &sum, &err), err);
        EXPECT_OK(resources_merge(arena, &sum, &another, &sum, &err), err);
    }
    return sum;
}

/* The available offerings that the requirements allow decide on capacity types and the price. */
static inline void draft_offerings(struct draft *d, struct plan_launch *l)
{
    struct arena *arena = &d->w->arena;
    const struct instance_types *s = d->w->snap.pools[l->pool].types;
    struct str *capacity_types = arena_array(arena, struct str, s->offering_count);
    uint32_t capacity_type_count = 0;
    l->price = USD_HOUR_MAX;
    for (uint32_t i = 0; i < l->type_count; i++) {
        uint32_t t = l->types[i];
        for (uint32_t o = s->offering_start[t]; o < s->offering_start[t + 1]; o++) {
            const struct offering_shape *shape = &s->shapes[s->offering_shape[o]];
            if (!bitset_test(&s->available, o) ||
                !requirements_intersects(&l->requirements, &shape->requirements, NULL))
                continue;
            capacity_types[capacity_type_count++] = shape->capacity_type;
            if (instance_types_price(s, o) >= l->price)
                continue;
            l->price = instance_types_price(s, o);
            l->type = t;
            l->offering = o;
            l->row = s->offering_row[o];
        }
    }
    struct requirement kind = requirement_in(
        arena, STR(LABEL_CAPACITY_TYPE), (struct str_list){ capacity_types, capacity_type_count });
    l->requirements = requirements_add(arena, &l->requirements, &kind);
}

static inline struct plan_launch *draft_launch(struct draft *d, const char *pool, const char *types,
                                               const char *requirements, const char *pods)
{
    struct arena *arena = &d->w->arena;
    struct plan_launch l = { .pool = draft_pool(d, pool) };
    EXPECT_TRUE(d->w->snap.pools != NULL);
    const struct sched_pool *from = &d->w->snap.pools[l.pool];
    const struct claim_node_spec *spec = &from->pool->spec.template.spec;
    uint32_t *list = arena_array(arena, uint32_t, strlen(types) + 1);
    struct str *names = arena_array(arena, struct str, strlen(types) + 1);
    struct str rest = str_of(types), word;
    struct err err = { 0 };
    while (draft_word(&rest, ' ', &word)) {
        names[l.type_count] = word;
        list[l.type_count] = instance_types_find(from->types, word);
        EXPECT_TRUE(list[l.type_count] != INSTANCE_TYPE_NONE);
        l.type_count++;
    }
    l.types = list;
    struct requirements own = draft_labels(arena, requirements, ' ');
    struct requirement of_type =
        requirement_in(arena, STR(LABEL_INSTANCE_TYPE), (struct str_list){ names, l.type_count });
    EXPECT_OK(requirements_from_expressions(arena, spec->requirements.items,
                                            spec->requirements.count, &l.requirements, &err),
              err);
    l.requirements = requirements_merge(arena, &l.requirements, &own);
    l.requirements = requirements_add(arena, &l.requirements, &of_type);
    l.labels = from->pool->spec.template.meta.labels;
    draft_offerings(d, &l);
    l.pods = draft_pods(d, pods, true);
    l.requests = draft_requests(d, l.pods);
    vec_push(&d->launches, l);
    return &vec_last(&d->launches);
}

/* --- the rest --- */

/* A node, or a claim. */
static inline struct plan_existing *draft_existing(struct draft *d, const char *name,
                                                   const char *pods)
{
    struct plan_existing e = { .node = PLAN_NONE, .claim = PLAN_NONE };
    for (uint32_t i = 0; i < d->w->snap.node_count; i++) {
        if (str_eqz(d->w->snap.nodes[i]->object.meta.name, name))
            e.node = i;
    }
    for (uint32_t i = 0; i < d->w->snap.claim_count && e.node == PLAN_NONE; i++) {
        if (str_eqz(d->w->snap.claims[i]->object.meta.name, name))
            e.claim = i;
    }
    EXPECT_TRUE(e.node != PLAN_NONE || e.claim != PLAN_NONE);
    e.pods = draft_pods(d, pods, true);
    vec_push(&d->existing, e);
    return &vec_last(&d->existing);
}

static inline struct plan_miss *draft_miss(struct draft *d, const char *pod)
{
    struct plan_blame *blame = arena_new(&d->w->arena, struct plan_blame);
    *blame = (struct plan_blame){ .pool = PLAN_NONE, .detail = STR("it is too large") };
    vec_push(&d->misses, (struct plan_miss){
                             .pod = world_pod_ix(d->w, pod), .reasons = blame, .reason_count = 1 });
    return &vec_last(&d->misses);
}

static inline void draft_skip(struct draft *d, const char *pod, const char *reason)
{
    vec_push(&d->skips, (struct plan_skip){ world_pod_ix(d->w, pod), str_of(reason) });
}

static inline struct plan *draft_end(struct draft *d)
{
    d->plan = (struct plan){
        .launches = d->launches.items,
        .launch_count = (uint32_t)d->launches.count,
        .existing = d->existing.items,
        .existing_count = (uint32_t)d->existing.count,
        .misses = d->misses.items,
        .miss_count = (uint32_t)d->misses.count,
        .skips = d->skips.items,
        .skip_count = (uint32_t)d->skips.count,
        .order = { d->order.items, (uint32_t)d->order.count },
    };
    vec_each(&d->launches, struct plan_launch, l)
        d->plan.price = usd_hour_sum(d->plan.price, l->price);
    return &d->plan;
}

static inline void expect_right(struct draft *d)
{
    EXPECT_EQ(world_findings(d->w, draft_end(d)), 0);
}

/* One finding has the words. */
static inline void expect_plan_wrong(struct draft *d, const struct plan *plan, const char *words)
{
    struct check_result result = plan_check(&d->w->arena, &d->w->snap, d->w->options, plan);
    AUTO_BUF all = { 0 };
    for (uint32_t i = 0; i < result.count; i++) {
        buf_add(&all, result.findings[i].what);
        buf_addc(&all, '\n');
    }
    EXPECT_HAS(buf_str(&all), words);
}

static inline void expect_wrong(struct draft *d, const char *words)
{
    expect_plan_wrong(d, draft_end(d), words);
}

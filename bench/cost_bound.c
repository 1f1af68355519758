/* The linear relaxation (sched/bound.h) with a column for every offering that a pool allows. Two things
 * make it sharper, both true of any legal plan:
 *
 * - A workload that spreads over z zones with skew s has at least (n - (z - 1) * s) / z of its n
 *   pods, rounded up, in each of them. Those become classes of that zone, the rest may be anywhere.
 * - Pods that keep apart from their kin on hosts are a resource: a node has one of it, or as many as
 *   the skew of a spread over hosts.
 */
#include "bench/cost_bound.h"

#include "base/vec.h"
#include "sched/bound.h"

#include <string.h>

struct slot { /* a hostname group whose pods count themselves */
    uint32_t group;
    int64_t room;
};

struct column {
    uint32_t pool, offering;
};

struct demand { /* pods that may be in the same places */
    const struct pod_class *class_;
    uint32_t wants;
    uint64_t count;
};

struct relaxation {
    struct model *m;
    struct arena *arena;
    VEC(struct slot) slots;
    VEC(struct column) columns;
    VEC(struct demand) demands;
};

static bool finds(const struct pod_class *c, uint32_t group)
{
    for (uint32_t i = 0; i < c->matched_count; i++)
        if (c->matched[i] == group)
            return true;
    return false;
}

static void find_slots(struct relaxation *x)
{
    for (uint32_t g = 0; g < x->m->group_count; g++) {
        const struct group *group = &x->m->groups[g];
        if (group->key == KEY_HOSTNAME && group->kind != GROUP_AFFINITY)
            vec_push(&x->slots,
                     (struct slot){ g, group->kind == GROUP_ANTI ? 1 : group->max_skew });
    }
}

static bool owns(const struct pod_class *c, uint32_t group)
{
    const struct variant *v = &c->variants[0];
    for (uint32_t i = 0; i < v->owned_count; i++)
        if (v->owned[i] == group)
            return finds(c, group);
    return false;
}

static void find_columns(struct relaxation *x)
{
    for (uint32_t p = 0; p < x->m->pool_count; p++) {
        const struct instance_types *types = x->m->pools[p].types;
        const struct terms *terms = terms_at(x->m, x->m->pools[p].terms);
        bitset_each(&types->available, o)
            if (bitset_test(&terms->shapes, types->offering_shape[o]) &&
                bitset_test(&terms->machines, types->offering_row[o]))
                vec_push(&x->columns, (struct column){ p, o });
    }
}

/* --- classes --- */

/* The spread over zones that the class has to itself, or NULL. */
static const struct group *own_spread(const struct model *m, const struct pod_class *c)
{
    const struct variant *v = &c->variants[0];
    for (uint32_t i = 0; i < v->owned_count; i++) {
        const struct group *g = &m->groups[v->owned[i]];
        uint32_t found = 0;
        for (uint32_t other = 0; other < m->class_count; other++)
            found += finds(&m->classes[other], v->owned[i]);
        if (g->kind == GROUP_SPREAD && g->key != KEY_HOSTNAME && found == 1 &&
            finds(c, v->owned[i]))
            return g;
    }
    return NULL;
}

static void add_demands(struct relaxation *x, const struct pod_class *c)
{
    const struct group *g = own_spread(x->m, c);
    uint64_t left = c->count;
    if (g) {
        int64_t zones = bitset_popcount(&g->eligible);
        int64_t sure = c->count - (zones - 1) * g->max_skew;
        uint64_t each = sure > 0 ? (uint64_t)((sure + zones - 1) / zones) : 0;
        bitset_each(&g->eligible, d) {
            uint32_t wants = wants_pin(x->m, c->variants[0].wants, g->key, d);
            if (wants == NONE || !each)
                continue;
            vec_push(&x->demands, (struct demand){ c, wants, each });
            left -= each;
        }
    }
    vec_push(&x->demands, (struct demand){ c, c->variants[0].wants, left });
}

static struct bitset allowed_columns(struct relaxation *x, const struct demand *demand)
{
    struct model *m = x->m;
    uint32_t tolerance = demand->class_->variants[0].tolerance;
    struct bitset allowed = bitset_new(x->arena, (uint32_t)x->columns.count);
    for (uint32_t p = 0, i = 0; p < m->pool_count; p++) {
        uint32_t joined = taints_tolerated(m, tolerance, m->pools[p].taints)
                              ? terms_join(m, m->pools[p].terms, demand->wants)
                              : NONE;
        const struct terms *terms = joined != NONE ? terms_at(m, joined) : NULL;
        const struct instance_types *types = m->pools[p].types;
        for (; i < x->columns.count && x->columns.items[i].pool == p; i++) {
            uint32_t o = x->columns.items[i].offering;
            if (terms && bitset_test(&terms->shapes, types->offering_shape[o]) &&
                bitset_test(&terms->machines, types->offering_row[o]))
                bitset_set(&allowed, i);
        }
    }
    return allowed;
}

/* --- the bound's own form --- */

usd_hour cost_bound(struct model *m, uint32_t rounds)
{
    AUTO_ARENA arena = { 0 };
    struct relaxation x = { .m = m, .arena = &arena };
    find_slots(&x);
    find_columns(&x);
    for (uint32_t c = 0; c < m->class_count; c++)
        add_demands(&x, &m->classes[c]);

    size_t width = m->resource_count + x.slots.count;
    int64_t *request = arena_array(&arena, int64_t, x.demands.count * width);
    uint64_t *count = arena_array(&arena, uint64_t, x.demands.count);
    struct bitset *allowed = arena_array(&arena, struct bitset, x.demands.count);
    for (size_t i = 0; i < x.demands.count; i++) {
        const struct demand *demand = &x.demands.items[i];
        memcpy(request + i * width, demand->class_->request, m->resource_count * sizeof *request);
        for (size_t s = 0; s < x.slots.count; s++)
            request[i * width + m->resource_count + s] =
                owns(demand->class_, x.slots.items[s].group);
        count[i] = demand->count;
        allowed[i] = allowed_columns(&x, demand);
    }
    int64_t *room = arena_array(&arena, int64_t, x.columns.count * width);
    usd_hour *price = arena_array(&arena, usd_hour, x.columns.count);
    for (size_t i = 0; i < x.columns.count; i++) {
        const struct pool *pool = &m->pools[x.columns.items[i].pool];
        uint32_t o = x.columns.items[i].offering;
        memcpy(room + i * width,
               pool->room + (size_t)pool->types->offering_row[o] * m->resource_count,
               m->resource_count * sizeof *room);
        for (size_t s = 0; s < x.slots.count; s++)
            room[i * width + m->resource_count + s] = x.slots.items[s].room;
        price[i] = instance_types_price(pool->types, o);
    }
    struct bound bound =
        bound_compute(&arena, &(struct bound_input){ .class_count = (uint32_t)x.demands.count,
                                                     .machine_count = (uint32_t)x.columns.count,
                                                     .resource_count = (uint32_t)width,
                                                     .request = request,
                                                     .count = count,
                                                     .allowed = allowed,
                                                     .room = room,
                                                     .price = price,
                                                     .rounds = rounds });
    vec_done(&x.slots);
    vec_done(&x.columns);
    vec_done(&x.demands);
    return bound.total;
}

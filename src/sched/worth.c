/* Items that the bound cannot tell apart (same request, wants, tolerance and exclusive groups) are one
 * class of it. Domains that were chosen do not count: another choice might have cost less. A column is a machine of a pool at one price: terms decide which offerings, and so
 * which price, a pod can have. A hostname group that its own pods are counted in is a resource too: a
 * node has max_skew of it, so pods that must be on nodes of their own pay for those nodes.
 */
#include "sched/worth.h"

#include "sched/bound.h"

#include <stdlib.h>
#include <string.h>

#define EXCLUSIVE_MAX 4 /* groups that count as resources, the largest */

struct exclusive {
    uint32_t group;
    uint64_t pods;
};

struct column {
    uint32_t pool, machine;
    usd_hour price;
    uint32_t next; /* of the same pool and machine, or NONE */
};

struct bidder {    /* a class of the bound */
    uint32_t item; /* the first of them */
    uint32_t mask; /* exclusive groups */
    uint64_t count;
    struct bitset allowed;
};

struct market {
    struct state *s;
    const struct items *items;
    struct arena *arena;
    struct exclusive exclusive[EXCLUSIVE_MAX];
    uint32_t exclusive_count;
    VEC(struct column) columns;
    uint32_t *first_column; /* per pool and machine */
    uint32_t *pool_start;
    VEC(struct bidder) bidders;
    uint32_t *bidder_of; /* per item */
};

/* --- exclusive groups --- */

static bool counts_itself(const struct model *m, const struct item *item, uint32_t group)
{
    const struct pod_class *c = &m->classes[item->class_];
    const struct group *g = &m->groups[group];
    return g->key == KEY_HOSTNAME && g->kind != GROUP_AFFINITY && class_matched(c, group) &&
           variant_owns(&c->variants[item->variant], group);
}

static int by_pods(const void *a, const void *b)
{
    const struct exclusive *x = a, *y = b;
    if (x->pods != y->pods)
        return x->pods > y->pods ? -1 : 1;
    return x->group < y->group ? -1 : 1;
}

static void find_exclusive(struct market *k)
{
    const struct model *m = k->s->model;
    struct exclusive *all = arena_array(k->arena, struct exclusive, m->group_count);
    for (uint32_t g = 0; g < m->group_count; g++)
        all[g].group = g;
    vec_each(&k->items->list, struct item, item) {
        const struct variant *v = &m->classes[item->class_].variants[item->variant];
        for (uint32_t i = 0; i < v->owned_count; i++)
            if (counts_itself(m, item, v->owned[i]))
                all[v->owned[i]].pods += item->count;
    }
    if (m->group_count)
        qsort(all, m->group_count, sizeof *all, by_pods);
    while (k->exclusive_count < EXCLUSIVE_MAX && k->exclusive_count < m->group_count &&
           all[k->exclusive_count].pods > 1) {
        k->exclusive[k->exclusive_count] = all[k->exclusive_count];
        k->exclusive_count++;
    }
}

static uint32_t exclusive_mask(const struct market *k, const struct item *item)
{
    uint32_t mask = 0;
    for (uint32_t i = 0; i < k->exclusive_count; i++)
        if (counts_itself(k->s->model, item, k->exclusive[i].group))
            mask |= 1u << i;
    return mask;
}

/* --- bidders --- */

static uint32_t wants_of(const struct model *m, const struct item *item)
{
    return m->classes[item->class_].variants[item->variant].wants;
}

static uint32_t tolerance_of(const struct model *m, const struct item *item)
{
    return m->classes[item->class_].variants[item->variant].tolerance;
}

static bool same_bidder(const struct market *k, const struct bidder *b, const struct item *item,
                        uint32_t mask)
{
    const struct model *m = k->s->model;
    const struct item *first = &k->items->list.items[b->item];
    return b->mask == mask && wants_of(m, first) == wants_of(m, item) &&
           tolerance_of(m, first) == tolerance_of(m, item) &&
           k->s->sizes[first->class_] == k->s->sizes[item->class_];
}

static uint64_t bidder_hash(const struct market *k, const struct item *item, uint32_t mask)
{
    const struct model *m = k->s->model;
    uint64_t h = kv_mix64((uint64_t)k->s->sizes[item->class_] << 32 | wants_of(m, item));
    return kv_mix64(h ^ ((uint64_t)tolerance_of(m, item) << 32 | mask));
}

static void find_bidders(struct market *k)
{
    struct map seen = { 0 };
    k->bidder_of = arena_array(k->arena, uint32_t, k->items->list.count);
    for (uint32_t i = 0; i < k->items->list.count; i++) {
        const struct item *item = &k->items->list.items[i];
        uint32_t mask = exclusive_mask(k, item);
        uint64_t hash = bidder_hash(k, item, mask);
        uintptr_t at;
        while (map_get(&seen, hash, &at) && !same_bidder(k, &k->bidders.items[at], item, mask))
            hash++;
        if (!map_get(&seen, hash, &at)) {
            at = k->bidders.count;
            map_put(&seen, hash, at);
            vec_push(&k->bidders, (struct bidder){ .item = i, .mask = mask });
        }
        k->bidders.items[at].count += item->count;
        k->bidder_of[i] = (uint32_t)at;
    }
    map_done(&seen);
}

/* --- columns --- */

static uint32_t column_of(struct market *k, uint32_t pool, uint32_t machine, usd_hour price)
{
    uint32_t *first = &k->first_column[k->pool_start[pool] + machine];
    for (uint32_t i = *first; i != NONE; i = k->columns.items[i].next)
        if (k->columns.items[i].price == price)
            return i;
    vec_push(&k->columns, (struct column){ pool, machine, price, *first });
    *first = (uint32_t)k->columns.count - 1;
    return *first;
}

static uint32_t pool_terms(const struct market *k, const struct item *item, uint32_t pool)
{
    struct model *m = k->s->model;
    const struct variant *v = &m->classes[item->class_].variants[item->variant];
    if (!taints_tolerated(m, v->tolerance, m->pools[pool].taints))
        return NONE;
    return terms_join(m, m->pools[pool].terms, v->wants);
}

static bool is_limited(const struct pool *pool)
{
    return pool->limit_count || pool->nodes_left != INT64_MAX;
}

/* Twice over the same ground: first to know the columns, then to mark them. Pools of less weight are
 * out of the question once one without limits can take the pod. */
static void mark_columns(struct market *k, struct bidder *b, bool marking)
{
    struct model *m = k->s->model;
    const struct item *item = &k->items->list.items[b->item];
    uint32_t last_tier = NONE;
    for (uint32_t p = 0; p < m->pool_count && m->pools[p].tier <= last_tier; p++) {
        uint32_t terms = pool_terms(k, item, p);
        if (terms == NONE || !launch_possible_on(k->s, item->class_, terms))
            continue;
        if (!is_limited(&m->pools[p]))
            last_tier = m->pools[p].tier;
        const struct terms *t = terms_at(m, terms);
        bitset_each(&t->machines, i) {
            column_of(k, p, i, t->price[i]);
            /* Beside pods that make the machine dearer it may be too. */
            uint32_t at = k->first_column[k->pool_start[p] + i];
            for (; marking && at != NONE; at = k->columns.items[at].next)
                if (k->columns.items[at].price >= t->price[i])
                    bitset_set(&b->allowed, at);
        }
    }
}

static void find_columns(struct market *k)
{
    const struct model *m = k->s->model;
    k->pool_start = arena_array(k->arena, uint32_t, m->pool_count + 1);
    for (uint32_t p = 0; p < m->pool_count; p++)
        k->pool_start[p + 1] = k->pool_start[p] + m->pools[p].machine_count;
    k->first_column = arena_array(k->arena, uint32_t, k->pool_start[m->pool_count]);
    memset(k->first_column, 0xff, k->pool_start[m->pool_count] * sizeof *k->first_column);
    for (int marking = 0; marking < 2; marking++) {
        /* Bidders with the same wants and tolerance share their columns. */
        struct map seen = { 0 };
        vec_each(&k->bidders, struct bidder, b) {
            const struct item *item = &k->items->list.items[b->item];
            uint64_t key = (uint64_t)wants_of(m, item) << 32 | tolerance_of(m, item);
            uintptr_t at;
            if (map_get(&seen, key, &at)) {
                b->allowed = k->bidders.items[at].allowed;
                continue;
            }
            map_put(&seen, key, (uintptr_t)(b - k->bidders.items));
            if (marking)
                b->allowed = bitset_new(k->arena, (uint32_t)k->columns.count);
            mark_columns(k, b, marking);
        }
        map_done(&seen);
    }
}

/* --- the bound's own form --- */

static struct bound_input input_of(struct market *k, uint32_t rounds)
{
    const struct model *m = k->s->model;
    uint32_t width = m->resource_count + k->exclusive_count;
    uint32_t classes = (uint32_t)k->bidders.count, machines = (uint32_t)k->columns.count;
    int64_t *request = arena_array(k->arena, int64_t, (size_t)classes * width);
    uint64_t *count = arena_array(k->arena, uint64_t, classes);
    struct bitset *allowed = arena_array(k->arena, struct bitset, classes);
    int64_t *room = arena_array(k->arena, int64_t, (size_t)machines * width);
    usd_hour *price = arena_array(k->arena, usd_hour, machines);
    for (uint32_t i = 0; i < classes; i++) {
        const struct bidder *b = &k->bidders.items[i];
        const struct pod_class *c = &m->classes[k->items->list.items[b->item].class_];
        memcpy(request + (size_t)i * width, c->request, m->resource_count * sizeof *request);
        for (uint32_t e = 0; e < k->exclusive_count; e++)
            request[(size_t)i * width + m->resource_count + e] = b->mask >> e & 1;
        count[i] = b->count;
        allowed[i] = b->allowed;
    }
    for (uint32_t i = 0; i < machines; i++) {
        const struct column *col = &k->columns.items[i];
        const struct pool *pool = &m->pools[col->pool];
        memcpy(room + (size_t)i * width, pool->room + (size_t)col->machine * m->resource_count,
               m->resource_count * sizeof *room);
        for (uint32_t e = 0; e < k->exclusive_count; e++) {
            const struct group *g = &m->groups[k->exclusive[e].group];
            room[(size_t)i * width + m->resource_count + e] =
                g->kind == GROUP_ANTI ? 1 : g->max_skew;
        }
        price[i] = col->price;
    }
    return (struct bound_input){ .class_count = classes,
                                 .machine_count = machines,
                                 .resource_count = width,
                                 .request = request,
                                 .count = count,
                                 .allowed = allowed,
                                 .room = room,
                                 .price = price,
                                 .rounds = rounds };
}

/* --- the result --- */

const double *worth_rate(const struct worth *w, uint32_t pool, uint32_t machine, usd_hour price,
                         double *scale)
{
    uint32_t first = w->first_rate[w->pool_start[pool] + machine], at = first;
    while (at != NONE && w->rates[at].price != price)
        at = w->rates[at].next;
    *scale = 1;
    if (at == NONE && first != NONE) { /* of a domain that was chosen, at a price of its own */
        at = first;
        if (w->rates[first].price > 0)
            *scale = (double)price / (double)w->rates[first].price;
    }
    return at == NONE ? NULL : w->rates[at].unit;
}

static void keep_rates(const struct market *k, const struct bound *bound, struct arena *arena,
                       struct worth *out)
{
    const struct model *m = k->s->model;
    uint32_t width = m->resource_count, count = (uint32_t)k->columns.count;
    uint32_t machines = k->pool_start[m->pool_count];
    struct rate *rates = arena_array(arena, struct rate, count);
    double *units = arena_array(arena, double, (size_t)count *width);
    uint32_t *first = arena_array(arena, uint32_t, machines);
    uint32_t *start = arena_array(arena, uint32_t, m->pool_count + 1);
    for (uint32_t i = 0; i < count; i++) {
        memcpy(units + (size_t)i * width, bound->cost + (size_t)i * (width + k->exclusive_count),
               width * sizeof *units);
        rates[i] = (struct rate){ k->columns.items[i].price, units + (size_t)i * width,
                                  k->columns.items[i].next };
    }
    memcpy(first, k->first_column, machines * sizeof *first);
    memcpy(start, k->pool_start, (m->pool_count + 1) * sizeof *start);
    out->rates = rates;
    out->first_rate = first;
    out->pool_start = start;
}

struct worth worth_of(struct state *s, const struct items *items, uint32_t rounds,
                      struct arena *arena)
{
    AUTO_ARENA scratch = { 0 };
    struct market k = { .s = s, .items = items, .arena = &scratch };
    double *value = arena_array(arena, double, items->list.count);
    find_exclusive(&k);
    find_bidders(&k);
    find_columns(&k);
    struct bound_input in = input_of(&k, rounds);
    struct bound bound = bound_compute(&scratch, &in);
    for (uint32_t i = 0; i < items->list.count; i++)
        value[i] = bound.value[k.bidder_of[i]];
    struct worth worth = { .value = value, .bound = bound.total };
    keep_rates(&k, &bound, arena, &worth);
    s->steps += bound.steps;
    vec_done(&k.columns);
    vec_done(&k.bidders);
    return worth;
}

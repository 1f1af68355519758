/* Which launch next? The first item in the order leads: it must go somewhere. A few machines are
 * likely to be good (candidates.c); they are really filled, each is shrunk to the cheapest machine that
 * holds the filling, and the one with the most worth per dollar wins. The same filling is then
 * repeated as often as there are pods for it.
 *
 * Items that need many nodes (at most so many of their pods may share a host) lead first: the room
 * beside their pods is there for the others, and not the other way round.
 */
#include "sched/pack.h"

#include <stdlib.h>
#include <string.h>

/* --- setting up --- */

/* How many pods of the item may share a host. */
static uint32_t host_share(const struct model *m, const struct item *item)
{
    const struct pod_class *c = &m->classes[item->class_];
    const struct variant *v = &c->variants[item->variant];
    uint32_t share = c->port_count ? 1 : UINT32_MAX;
    for (uint32_t i = 0; i < v->owned_count; i++) {
        const struct group *g = &m->groups[v->owned[i]];
        if (g->key != KEY_HOSTNAME || g->kind == GROUP_AFFINITY || !class_matched(c, v->owned[i]))
            continue;
        int64_t most = g->kind == GROUP_ANTI ? 1 : g->max_skew;
        if (most < share)
            share = (uint32_t)most;
    }
    return share;
}

struct lead { /* what the order of items is by */
    uint32_t item;
    uint8_t pull; /* 2: pods that want each other's host; 1: pods whose host others want */
    uint32_t nodes;
    double size;
};

static int by_lead(const void *a, const void *b)
{
    const struct lead *x = a, *y = b;
    if (x->pull != y->pull)
        return x->pull > y->pull ? -1 : 1;
    if (x->nodes != y->nodes)
        return x->nodes > y->nodes ? -1 : 1;
    if (x->size != y->size)
        return x->size > y->size ? -1 : 1;
    return x->item < y->item ? -1 : x->item > y->item;
}

static uint8_t pull_of(const struct model *m, const struct item *item)
{
    const struct pod_class *c = &m->classes[item->class_];
    uint8_t pull = 0;
    for (uint32_t i = 0; i < c->matched_count && pull < 2; i++) {
        const struct group *g = &m->groups[c->matched[i]];
        if (g->key == KEY_HOSTNAME && g->kind == GROUP_AFFINITY)
            pull = variant_owns(&c->variants[item->variant], c->matched[i]) ? 2 : 1;
    }
    return pull;
}

static void find_order(struct packer *k)
{
    const struct model *m = k->s->model;
    struct lead *leads = arena_array(k->arena, struct lead, k->item_count);
    for (uint32_t i = 0; i < k->item_count; i++) {
        uint32_t share = host_share(m, &k->items[i]);
        leads[i] = (struct lead){
            .item = i,
            .pull = pull_of(m, &k->items[i]),
            .nodes = share == UINT32_MAX ? 0 : (k->items[i].count + share - 1) / share,
            .size = k->value[i],
        };
    }
    if (k->item_count)
        qsort(leads, k->item_count, sizeof *leads, by_lead);
    k->order = arena_array(k->arena, uint32_t, k->item_count);
    for (uint32_t i = 0; i < k->item_count; i++)
        k->order[i] = leads[i].item;
}

struct sized {
    const int64_t *request;
    double value;
    uint32_t item, width;
};

static int by_size(const void *a, const void *b)
{
    const struct sized *x = a, *y = b;
    for (uint32_t r = 0; r < x->width; r++)
        if (x->request[r] != y->request[r])
            return x->request[r] > y->request[r] ? -1 : 1;
    if (x->value != y->value)
        return x->value > y->value ? -1 : 1;
    return x->item < y->item ? -1 : x->item > y->item;
}

static void find_sizes(struct packer *k)
{
    const struct model *m = k->s->model;
    uint32_t width = m->resource_count, n = k->item_count;
    struct sized *all = arena_array(k->arena, struct sized, n);
    uint32_t *items = arena_array(k->arena, uint32_t, n);
    uint32_t *start = arena_array(k->arena, uint32_t, n + 1);
    uint32_t *size_of = arena_array(k->arena, uint32_t, n);
    double *request = arena_array(k->arena, double, (size_t)n *width);
    for (uint32_t i = 0; i < n; i++)
        all[i] = (struct sized){ m->classes[k->items[i].class_].request, k->value[i], i, width };
    if (n)
        qsort(all, n, sizeof *all, by_size);
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++) {
        bool fresh = i == 0 || memcmp(all[i].request, all[i - 1].request,
                                      width * sizeof *all[i].request) != 0;
        if (fresh) {
            for (uint32_t r = 0; r < width; r++)
                request[(size_t)count * width + r] = (double)all[i].request[r];
            start[count++] = i;
        }
        items[i] = all[i].item;
        size_of[all[i].item] = count - 1;
    }
    start[count] = n;
    k->size_count = count;
    k->size_items = items;
    k->size_start = start;
    k->size_of = size_of;
    k->request = request;
    k->cursor = arena_array(k->arena, uint32_t, count);
}

static bool tier_possible(struct state *s, const struct item *item, uint32_t tier)
{
    struct model *m = s->model;
    const struct pod_class *c = &m->classes[item->class_];
    const struct variant *v = &c->variants[item->variant];
    for (uint32_t p = 0; p < m->pool_count; p++) {
        if (m->pools[p].tier != tier || !taints_tolerated(m, v->tolerance, m->pools[p].taints))
            continue;
        uint32_t terms = terms_join(m, m->pools[p].terms, item->wants);
        if (terms != NONE && launch_possible_on(s, item->class_, terms))
            return true;
    }
    return false;
}

static uint32_t next_tier(struct state *s, const struct item *item, uint32_t from)
{
    const struct model *m = s->model;
    uint32_t tiers = m->pool_count ? m->pools[m->pool_count - 1].tier + 1 : 0;
    for (uint32_t tier = from; tier < tiers; tier++)
        if (tier_possible(s, item, tier))
            return tier;
    return NONE;
}

/* Items that are alike in what it depends on have one answer. */
static void find_tiers(struct packer *k)
{
    struct map known = { 0 };
    for (uint32_t i = 0; i < k->item_count; i++) {
        const struct item *item = &k->items[i];
        const struct variant *v = &k->s->model->classes[item->class_].variants[item->variant];
        uint64_t key;
        bool plain = outlook_key(k->s, item->class_, v, item->wants, &key);
        uintptr_t tier;
        if (!plain || !map_get(&known, key, &tier)) {
            tier = next_tier(k->s, item, 0);
            if (plain)
                map_put(&known, key, tier);
        }
        k->tier[i] = (uint32_t)tier;
    }
    map_done(&known);
}

void packer_init(struct packer *k, struct state *s, const struct items *items,
                 const struct worth *worth, const double *value, struct arena *arena)
{
    *k = (struct packer){ .s = s,
                          .arena = arena,
                          .worth = worth,
                          .items = items->list.items,
                          .item_count = (uint32_t)items->list.count };
    k->left = arena_array(arena, uint32_t, k->item_count);
    k->tier = arena_array(arena, uint32_t, k->item_count);
    k->value = arena_array(arena, double, k->item_count);
    for (uint32_t i = 0; i < k->item_count; i++) {
        k->left[i] = k->items[i].count;
        k->has_sticky |= item_is_sticky(s->model, &k->items[i]);
        k->value[i] = value[i];
    }
    find_tiers(k);
    find_order(k);
    find_sizes(k);
}

void packer_done(struct packer *k)
{
    vec_done(&k->opened);
    vec_done(&k->puts);
}

/* --- one launch --- */

struct filling {
    uint32_t pool, machine, terms;
    double worth, price;
    uint32_t sticky;
    VEC(struct put) puts;
};

static void give_back(struct packer *k)
{
    vec_each(&k->puts, struct put, put)
        k->left[put->item] += put->count;
}

/* The launch on the cheapest machine that holds what is in it so far. */
static uint32_t shrink(struct packer *k, uint32_t ix)
{
    struct state *s = k->s;
    uint32_t machine = launch_right_size(s, ix), pool = s->bins.items[ix].pool;
    if (machine == s->bins.items[ix].machine)
        return ix;
    uint32_t terms = s->bins.items[ix].terms;
    launch_dissolve(s, ix);
    ix = state_open(s, pool, machine, terms);
    vec_each(&k->puts, struct put, put) {
        const struct item *item = &k->items[put->item];
        state_place(s, ix, item->class_, item->variant, item->wants, put->count);
    }
    return ix;
}

/* In dollars, or in what it takes of limits where these are what is scarce. */
static double price_of(const struct state *s, uint32_t ix, uint32_t machine)
{
    const struct bin *bin = &s->bins.items[ix];
    const struct pool *pool = &s->model->pools[bin->pool];
    double part = s->dense && pool->nodes_left != INT64_MAX ? 1 / (double)pool->nodes_left : 0;
    for (uint32_t i = 0; s->dense && i < pool->limit_count; i++) {
        double of_limit = (double)pool->limits[i].capacity[machine] / (double)pool->limits[i].left;
        part = of_limit > part ? of_limit : part;
    }
    if (part > 0)
        return part;
    /* Nothing is for nothing: a price may be zero. */
    return (double)terms_at(s->model, bin->terms)->price[machine] + 1;
}

static void try_candidate(struct packer *k, uint32_t leader, const struct candidate *c,
                          struct filling *f)
{
    struct state *s = k->s;
    uint32_t ix = state_open(s, c->pool, c->machine, c->terms);
    vec_clear(&k->puts);
    vec_clear(&f->puts);
    f->sticky = 0;
    if (packer_put(k, ix, leader, 1)) {
        f->worth = k->value[leader] + packer_fill(k, ix, true, &f->sticky);
        ix = shrink(k, ix);
        f->worth += packer_fill(k, ix, false, &f->sticky);
        f->pool = c->pool;
        f->terms =
            s->bins.items[ix].terms; /* with all that joined: its offering is the one taken */
        f->machine = launch_right_size(s, ix);
        f->price = price_of(s, ix, f->machine);
        vec_each(&k->puts, struct put, put)
            vec_push(&f->puts, *put);
        give_back(k);
    }
    launch_dissolve(s, ix);
}

static bool better(const struct filling *a, const struct filling *b)
{
    if (!a->puts.count || !b->puts.count)
        return a->puts.count > 0;
    if (a->sticky != b->sticky)
        return a->sticky > b->sticky;
    double x = a->worth * b->price, y = b->worth * a->price;
    return x != y ? x > y : a->price < b->price;
}

static void swap_fillings(struct filling *a, struct filling *b)
{
    struct filling was = *a;
    *a = *b;
    *b = was;
}

/* How often the filling can be launched: while there are pods for it, limits and reservations. */
static uint32_t repeats(const struct packer *k, const struct filling *f)
{
    const struct state *s = k->s;
    uint32_t times = UINT32_MAX;
    struct map sums = { 0 }; /* an item may have been put in twice */
    vec_each(&f->puts, struct put, put) {
        uintptr_t sum = 0;
        map_get(&sums, put->item, &sum);
        map_put(&sums, put->item, sum + put->count);
    }
    map_each(&sums, slot) {
        uint32_t most = k->left[slot->key] / (uint32_t)slot->value;
        if (most < times)
            times = most;
    }
    map_done(&sums);
    if (f->sticky)
        times = 1;
    times = state_allowed(s, f->pool, f->machine, times);
    uint32_t offering = terms_at(s->model, f->terms)->offering[f->machine];
    int64_t reserved = reservation_left(s->model, f->pool, offering);
    if (reserved >= 0 && reserved < times)
        times = (uint32_t)reserved;
    return times;
}

static void launch(struct packer *k, const struct filling *f)
{
    struct state *s = k->s;
    uint32_t times = repeats(k, f);
    KV_ASSERT(times > 0);
    for (uint32_t n = 0; n < times; n++) {
        uint32_t ix = state_open(s, f->pool, f->machine, f->terms);
        vec_each(&f->puts, struct put, put) {
            const struct item *item = &k->items[put->item];
            state_place(s, ix, item->class_, item->variant, item->wants, put->count);
            k->left[put->item] -= put->count;
        }
        launch_settle(s, ix);
        vec_push(&k->opened, ix);
    }
}

/* With strict minValues and limits it may be any machine that the list is long enough for. */
static void try_all(struct packer *k, uint32_t leader, struct filling *best, struct filling *next)
{
    struct model *m = k->s->model;
    const struct item *item = &k->items[leader];
    const struct variant *v = &m->classes[item->class_].variants[item->variant];
    for (uint32_t p = 0; p < m->pool_count; p++) {
        if (m->pools[p].tier != k->tier[leader] ||
            !taints_tolerated(m, v->tolerance, m->pools[p].taints))
            continue;
        uint32_t terms = terms_join(m, m->pools[p].terms, item->wants);
        if (terms == NONE || !terms_at(m, terms)->has_min_values)
            continue;
        const struct terms *t = terms_at(m, terms);
        bitset_each(&t->machines, i) {
            if (!machine_possible(k->s, item->class_, p, i))
                continue;
            try_candidate(k, leader, &(struct candidate){ p, i, terms }, next);
            if (better(next, best))
                swap_fillings(best, next);
        }
    }
}

/* False: the tier has nothing for the leader any more. */
static bool open_for(struct packer *k, uint32_t leader)
{
    struct candidate candidates[CANDIDATES_MAX];
    struct filling best = { 0 }, next = { 0 };
    uint32_t count = packer_candidates(k, leader, candidates);
    for (uint32_t i = 0; i < count; i++) {
        try_candidate(k, leader, &candidates[i], &next);
        if (better(&next, &best))
            swap_fillings(&best, &next);
    }
    if (!best.puts.count)
        try_all(k, leader, &best, &next);
    bool found = best.puts.count > 0;
    if (found)
        launch(k, &best);
    vec_done(&best.puts);
    vec_done(&next.puts);
    return found;
}

/* Pods that must be on the host of others, and for which nothing new can be opened: into launches that
 * take them, on a larger machine if need be. */
static void join_others(struct packer *k, uint32_t leader)
{
    struct state *s = k->s;
    const struct item *item = &k->items[leader];
    const struct variant *v = &s->model->classes[item->class_].variants[item->variant];
    for (uint32_t ix = s->model->home_count; ix < s->bins.count && k->left[leader]; ix++) {
        if (!bin_is_live(s, ix))
            continue;
        while (k->left[leader] && packer_put(k, ix, leader, k->left[leader]))
            ;
        while (k->left[leader] && launch_grow(s, ix, item->class_, v, item->wants) &&
               packer_put(k, ix, leader, 1))
            ;
    }
}

void packer_run(struct packer *k)
{
    for (uint32_t i = 0; i < k->item_count; i++) {
        uint32_t leader = k->order[i];
        while (k->left[leader] && k->tier[leader] != NONE)
            if (!open_for(k, leader))
                k->tier[leader] = next_tier(k->s, &k->items[leader], k->tier[leader] + 1);
        if (k->left[leader] && k->may_join && item_is_sticky(k->s->model, &k->items[leader]))
            join_others(k, leader);
    }
}

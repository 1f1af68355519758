/* For each pod: which domains does each of its keys allow now? Is there a bin in such a domain with
 * room? If not, which domain shall it be launched in: the emptiest for a spread, else the cheapest.
 * Then the counts change, and the next pod sees them.
 *
 * Pods without such terms are all alike and go in bulk.
 */
#include "sched/domains.h"

#include <string.h>

struct about_key { /* a wider key that the class is concerned with */
    uint32_t key;
    struct bitset allowed; /* domains, now */
    struct bitset open;    /* domains that a new node for a pod of the class could be in */
    bool needs_label;      /* a bin without the label will not do */
    uint32_t chosen;       /* domain, or NONE for a node without the label */
};

struct search {
    struct state *s;
    struct arena arena;
    uint32_t class_, variant;
    const struct pod_class *c;
    const struct variant *v;
    struct about_key *keys;
    uint32_t key_count;
    VEC(uint32_t) bins; /* that had room when last asked */
    size_t first_item;  /* of those that come of this search */
};

/* --- launching at all --- */

static bool fits(const struct model *m, const int64_t *request, const int64_t *room)
{
    for (uint32_t r = 0; r < m->resource_count; r++)
        if (room[r] < 0 || request[r] > room[r])
            return false;
    return true;
}

bool daemons_hold_port(const struct model *m, const struct pool *pool, uint32_t machine,
                       const struct pod_class *c)
{
    if (!pool->daemon_ports || !c->port_count)
        return false;
    for (const uint32_t *port = pool->daemon_ports[machine]; *port != NONE; port++)
        for (uint32_t i = 0; i < c->port_count; i++)
            if (bitset_test(&m->ports[c->ports[i]].conflicts, *port))
                return true;
    return false;
}

bool machine_possible(const struct state *s, uint32_t class_, uint32_t pool, uint32_t machine)
{
    const struct model *m = s->model;
    const struct pod_class *c = &m->classes[class_];
    const struct pool *p = &m->pools[pool];
    return fits(m, c->request, p->room + (size_t)machine * m->resource_count) &&
           state_allowed(s, pool, machine, 1) && !daemons_hold_port(m, p, machine, c);
}

static bool possible_in(struct state *s, uint32_t class_, uint32_t terms, usd_hour *cheapest)
{
    struct model *m = s->model;
    const struct terms *t = terms_at(m, terms);
    uint32_t pool_ix = t->pool;
    const struct pool *pool = &m->pools[pool_ix];
    bool strict = t->has_min_values && m->options.min_values == MIN_VALUES_STRICT;
    AUTO_ARENA scratch = { 0 };
    struct bitset left = { 0 };
    bool found = false;
    if (strict)
        left = bitset_new(&scratch, pool->machine_count);
    bitset_each(&t->machines, i) {
        s->steps++;
        if (!machine_possible(s, class_, pool_ix, i))
            continue;
        found = true;
        if (strict)
            bitset_set(&left, i);
        else if (!cheapest)
            return true;
        if (cheapest && t->price[i] < *cheapest)
            *cheapest = t->price[i];
    }
    return found && (!strict || terms_min_values(m, terms, &left, &scratch, NULL));
}

bool launch_possible_on(struct state *s, uint32_t class_, uint32_t terms)
{
    return possible_in(s, class_, terms, NULL);
}

static struct outlook look_out(struct state *s, uint32_t class_, const struct variant *v,
                               uint32_t wants)
{
    struct model *m = s->model;
    struct outlook out = { NONE, USD_HOUR_MAX };
    for (uint32_t p = 0; p < m->pool_count; p++) {
        const struct pool *pool = &m->pools[p];
        if (out.tier != NONE && pool->tier > out.tier)
            break;
        if (!taints_tolerated(m, v->tolerance, pool->taints))
            continue;
        uint32_t terms = terms_join(m, pool->terms, wants);
        if (terms != NONE && possible_in(s, class_, terms, &out.cheapest))
            out.tier = pool->tier;
    }
    return out;
}

bool outlook_key(const struct state *s, uint32_t class_, const struct variant *v, uint32_t wants,
                 uint64_t *key)
{
    *key = (uint64_t)wants << 40 | (uint64_t)s->sizes[class_] << 20 | v->tolerance;
    return !s->model->classes[class_].port_count && !(wants >> 24) && !(s->sizes[class_] >> 20) &&
           !(v->tolerance >> 20);
}

struct outlook launch_outlook(struct state *s, uint32_t class_, const struct variant *v,
                              uint32_t wants)
{
    uint64_t key;
    uintptr_t at;
    if (!outlook_key(s, class_, v, wants, &key))
        return look_out(s, class_, v, wants);
    if (s->possible_stale) {
        map_clear(&s->possible);
        vec_clear(&s->outlooks);
        s->possible_stale = false;
    }
    if (!map_get(&s->possible, key, &at)) {
        struct outlook out = look_out(s, class_, v, wants);
        at = s->outlooks.count;
        vec_push(&s->outlooks, out);
        map_put(&s->possible, key, at);
    }
    return s->outlooks.items[at];
}

/* --- which domains are allowed --- */

static uint32_t key_slot(struct search *q, uint32_t key)
{
    for (uint32_t i = 0; i < q->key_count; i++)
        if (q->keys[i].key == key)
            return i;
    uint32_t domains = q->s->model->keys[key].domain_count;
    q->keys[q->key_count] = (struct about_key){ .key = key,
                                                .allowed = bitset_new(&q->arena, domains),
                                                .open = bitset_new(&q->arena, domains) };
    return q->key_count++;
}

/* The keys whose domain must be known before the pod can be placed. */
static void find_keys(struct search *q)
{
    const struct model *m = q->s->model;
    q->keys = arena_array(&q->arena, struct about_key, m->key_count);
    for (uint32_t i = 0; i < q->v->owned_count; i++) {
        const struct group *g = &m->groups[q->v->owned[i]];
        if (g->key == KEY_HOSTNAME)
            continue;
        uint32_t slot = key_slot(q, g->key);
        q->keys[slot].needs_label |= g->kind != GROUP_ANTI;
    }
    bool first = q->s->ranks[q->class_] == RANK_HOST;
    for (uint32_t i = 0; i < q->c->matched_count; i++) {
        const struct group *g = &m->groups[q->c->matched[i]];
        if (g->key == KEY_HOSTNAME)
            continue;
        /* What comes before the pods of a spread is counted by it, so it must be known where. */
        if (g->kind != GROUP_SPREAD || first)
            key_slot(q, g->key);
    }
}

static bool domain_allowed(const struct search *q, const struct group *g, uint32_t group,
                           int64_t minimum, uint32_t d)
{
    const struct group_count *live = &q->s->groups[group];
    bool self = class_matched(q->c, group);
    switch (g->kind) {
    case GROUP_SPREAD:
        return live->matched[d] + self - minimum <= g->max_skew;
    case GROUP_AFFINITY:
        return live->matched[d] > 0 || (live->total == 0 && self);
    case GROUP_ANTI:
        return live->matched[d] == 0;
    }
    KV_UNREACHABLE();
}

static void find_allowed(struct search *q)
{
    const struct model *m = q->s->model;
    for (uint32_t i = 0; i < q->key_count; i++)
        bitset_fill(&q->keys[i].allowed);
    for (uint32_t i = 0; i < q->v->owned_count; i++) {
        uint32_t group = q->v->owned[i];
        const struct group *g = &m->groups[group];
        if (g->key == KEY_HOSTNAME)
            continue;
        uint32_t slot = key_slot(q, g->key);
        struct bitset *allowed = &q->keys[slot].allowed;
        int64_t minimum = 0;
        if (g->kind == GROUP_SPREAD)
            minimum = state_spread_minimum(g, &q->s->groups[group], &q->keys[slot].open);
        bitset_each(allowed, d)
            if (!domain_allowed(q, g, group, minimum, d))
                bitset_clear(allowed, d);
    }
    for (uint32_t i = 0; i < q->c->matched_count; i++) {
        const struct group *g = &m->groups[q->c->matched[i]];
        if (g->key == KEY_HOSTNAME || g->kind != GROUP_ANTI)
            continue;
        struct bitset *allowed = &q->keys[key_slot(q, g->key)].allowed;
        bitset_each(allowed, d)
            if (q->s->groups[q->c->matched[i]].owners[d] > 0)
                bitset_clear(allowed, d);
    }
}

/* --- bins that are there --- */

static bool bin_in_allowed(const struct search *q, uint32_t ix)
{
    const struct bin *bin = &q->s->bins.items[ix];
    for (uint32_t i = 0; i < q->key_count; i++) {
        uint32_t domain = bin->domains[q->keys[i].key];
        if (domain == NONE ? q->keys[i].needs_label || !bin_is_home(q->s, ix)
                           : !bitset_test(&q->keys[i].allowed, domain))
            return false;
    }
    return true;
}

/* The variant's wants with the domains of that launch; homes are what they are. */
static uint32_t wants_at_bin(const struct search *q, uint32_t ix)
{
    uint32_t wants = q->v->wants;
    for (uint32_t i = 0; i < q->key_count && wants != NONE && !bin_is_home(q->s, ix); i++)
        wants = wants_pin(q->s->model, wants, q->keys[i].key,
                          q->s->bins.items[ix].domains[q->keys[i].key]);
    return wants;
}

/* `at_once` bounds how many go before the counts are looked at again. */
static uint32_t place_on_bin(struct search *q, uint32_t ix, uint32_t at_once)
{
    uint32_t wants = wants_at_bin(q, ix);
    uint32_t room = wants == NONE ? 0 : state_room(q->s, ix, q->class_, q->v, wants, at_once);
    if (!room)
        return 0;
    state_place(q->s, ix, q->class_, q->variant, wants, room);
    if (!q->key_count)
        return room;
    if (!bin_is_home(q->s, ix)) {
        for (uint32_t i = 0; i < q->key_count; i++)
            state_count(q->s, q->class_, q->variant, q->keys[i].key,
                        q->s->bins.items[ix].domains[q->keys[i].key], room);
    }
    for (uint32_t i = 0; i < room; i++)
        vec_push(&q->s->choices, (struct choice){ q->class_, wants, ix });
    return room;
}

/* Bins in their order; by a whim from another one on, or none of them. */
static uint32_t nth_bin(const struct search *q, uint32_t n)
{
    uint64_t whim = state_whim(q->s, q->class_, NONE);
    if (whim % 4 == 1)
        return NONE;
    return (uint32_t)((n + whim) % q->s->bins.count);
}

static uint32_t place_on_bins(struct search *q, uint32_t count)
{
    uint32_t placed = 0;
    for (uint32_t n = 0; n < q->s->bins.count && placed < count; n++) {
        uint32_t ix = nth_bin(q, n);
        if (ix != NONE && bin_is_live(q->s, ix))
            placed += place_on_bin(q, ix, count - placed);
    }
    return placed;
}

/* Bins that would take a pod if their domains were allowed. */
static void find_bins(struct search *q)
{
    for (uint32_t n = 0; n < q->s->bins.count; n++) {
        uint32_t ix = nth_bin(q, n);
        if (ix != NONE && bin_is_live(q->s, ix) &&
            state_room(q->s, ix, q->class_, q->v, q->v->wants, 1))
            vec_push(&q->bins, ix);
    }
}

static bool place_one_on_bins(struct search *q)
{
    size_t kept = 0;
    bool placed = false;
    for (size_t i = 0; i < q->bins.count; i++) {
        uint32_t ix = q->bins.items[i];
        if (placed || !bin_in_allowed(q, ix)) {
            q->bins.items[kept++] = ix;
        } else if (place_on_bin(q, ix, 1)) {
            placed = true;
            q->bins.items[kept++] = ix;
        } /* else it is full: forget it */
        if (placed && kept == i + 1)
            return true; /* nothing to move */
    }
    q->bins.count = kept;
    return placed;
}

/* --- launches --- */

static int64_t spread_sum(const struct search *q, const uint32_t *groups, uint32_t count,
                          uint32_t key, uint32_t domain)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct group *g = &q->s->model->groups[groups[i]];
        if (g->key == key && g->kind == GROUP_SPREAD)
            sum += q->s->groups[groups[i]].matched[domain];
    }
    return sum;
}

/* How full a domain is: for the pod's own spreads, or else for those that count it. */
static int64_t domain_crowd(const struct search *q, uint32_t slot, uint32_t domain)
{
    int64_t own = spread_sum(q, q->v->owned, q->v->owned_count, q->keys[slot].key, domain);
    return own ? own : spread_sum(q, q->c->matched, q->c->matched_count, q->keys[slot].key, domain);
}

struct prospect {   /* what a choice of domains comes to; less is better, member by member */
    uint32_t wants; /* pinned; NONE: it cannot be had */
    uint32_t tier;
    int64_t crowd;
    usd_hour price;
};

static bool prospect_better(const struct prospect *a, const struct prospect *b)
{
    if (a->wants == NONE || b->wants == NONE)
        return a->wants != NONE;
    if (a->tier != b->tier)
        return a->tier < b->tier;
    return a->crowd != b->crowd ? a->crowd < b->crowd : a->price < b->price;
}

/* The best domain for this key, and for the ones after it. */
static struct prospect choose(struct search *q, uint32_t slot, uint32_t wants)
{
    struct prospect best = { .wants = NONE };
    if (slot == q->key_count) {
        struct outlook out = launch_outlook(q->s, q->class_, q->v, wants);
        if (out.tier != NONE)
            best = (struct prospect){ wants, out.tier, 0, out.cheapest };
        return best;
    }
    bitset_each(&q->keys[slot].allowed, d) {
        uint32_t pinned = wants_pin(q->s->model, wants, q->keys[slot].key, d);
        if (pinned == NONE)
            continue;
        struct prospect p = choose(q, slot + 1, pinned);
        p.crowd += domain_crowd(q, slot, d);
        if (q->s->whim)
            p.price = (usd_hour)(state_whim(q->s, q->class_, d) >> 1);
        if (prospect_better(&p, &best))
            best = p;
    }
    /* A node without the label is in nobody's way. */
    if (best.wants == NONE && !q->keys[slot].needs_label) {
        uint32_t without = wants_without(q->s->model, wants, q->keys[slot].key);
        if (without != NONE)
            best = choose(q, slot + 1, without);
    }
    return best;
}

/* Items of this search are the last of the list. */
static void add_item(const struct search *q, struct items *out, uint32_t wants, uint32_t count)
{
    for (size_t i = q->first_item; i < out->list.count; i++) {
        if (out->list.items[i].wants == wants) {
            out->list.items[i].count += count;
            return;
        }
    }
    vec_push(&out->list, (struct item){ q->class_, q->variant, wants, count });
}

/* The domains that wants are pinned to. */
static void find_chosen(struct search *q, uint32_t wants)
{
    const struct model *m = q->s->model;
    const struct requirements *set = &wants_at(m, wants)->set;
    for (uint32_t i = 0; i < q->key_count; i++) {
        const struct topology_key *key = &m->keys[q->keys[i].key];
        const struct requirement *r = requirements_find(set, label_normalise(key->name));
        q->keys[i].chosen = NONE;
        for (uint32_t d = 0; r->values.count && d < key->domain_count; d++)
            if (str_eq(key->domains[d], r->values.items[0]))
                q->keys[i].chosen = d;
    }
}

static bool launch_one(struct search *q, struct items *out)
{
    struct prospect p = choose(q, 0, q->v->wants);
    if (p.wants == NONE)
        return false;
    find_chosen(q, p.wants);
    for (uint32_t i = 0; i < q->key_count; i++)
        if (q->keys[i].chosen != NONE)
            state_count(q->s, q->class_, q->variant, q->keys[i].key, q->keys[i].chosen, 1);
    vec_push(&q->s->choices, (struct choice){ q->class_, p.wants, NONE });
    add_item(q, out, p.wants, 1);
    return true;
}

/* --- all of it --- */

/* Domains that count for spreads although nothing is there yet. What others were launched into
 * counts too, whether or not this class could be. */
static void find_open(struct search *q)
{
    for (uint32_t i = 0; i < q->key_count; i++) {
        uint32_t key = q->keys[i].key;
        bitset_copy(&q->keys[i].open, &q->s->launched[key]);
        for (uint32_t d = 0; d < q->keys[i].open.bit_count; d++) {
            uint32_t wants = wants_pin(q->s->model, q->v->wants, key, d);
            if (wants != NONE && launch_outlook(q->s, q->class_, q->v, wants).tier != NONE)
                bitset_set(&q->keys[i].open, d);
        }
    }
}

static uint32_t place_by_domain(struct search *q, uint32_t count, struct items *out)
{
    find_bins(q);
    find_open(q);
    uint32_t left = count;
    while (left) {
        find_allowed(q);
        if (!place_one_on_bins(q) && !launch_one(q, out))
            break;
        left--;
    }
    return left;
}

/* The variant's wants, less the domains that are better left alone. */
static uint32_t considerate_wants(struct search *q)
{
    struct state *s = q->s;
    uint32_t wants = q->v->wants;
    for (uint32_t k = KEY_HOSTNAME + 1; s->maybe_avoid && k < s->model->key_count; k++) {
        uint32_t less = wants_avoid(s->model, wants, k, &s->maybe_avoid[k]);
        if (less != NONE && launch_outlook(s, q->class_, q->v, less).tier != NONE)
            wants = less;
    }
    return wants;
}

uint32_t domains_place(struct state *s, uint32_t class_, uint32_t variant, uint32_t count,
                       struct items *out)
{
    const struct pod_class *c = &s->model->classes[class_];
    struct search q = { .s = s,
                        .class_ = class_,
                        .variant = variant,
                        .c = c,
                        .v = &c->variants[variant],
                        .first_item = out->list.count };
    uint32_t left;
    find_keys(&q);
    if (q.key_count) {
        left = place_by_domain(&q, count, out);
    } else {
        left = count - place_on_bins(&q, count);
        if (left && launch_outlook(s, class_, q.v, q.v->wants).tier != NONE) {
            add_item(&q, out, considerate_wants(&q), left);
            left = 0;
        }
    }
    vec_done(&q.bins);
    arena_done(&q.arena);
    return left;
}

void domains_undo(struct state *s, const struct item *item, uint32_t count)
{
    const struct pod_class *c = &s->model->classes[item->class_];
    struct search q = { .s = s,
                        .class_ = item->class_,
                        .variant = item->variant,
                        .c = c,
                        .v = &c->variants[item->variant] };
    find_keys(&q);
    if (!q.key_count) {
        arena_done(&q.arena);
        return;
    }
    find_chosen(&q, item->wants);
    for (uint32_t i = 0; i < q.key_count; i++)
        if (q.keys[i].chosen != NONE)
            state_count(s, item->class_, item->variant, q.keys[i].key, q.keys[i].chosen,
                        -(int64_t)count);
    /* The last choices of the kind are the ones that did not come true. */
    for (size_t i = s->choices.count; i-- > 0 && count;) {
        struct choice *choice = &s->choices.items[i];
        if (choice->class_ == item->class_ && choice->wants == item->wants && choice->bin == NONE) {
            choice->class_ = NONE;
            count--;
        }
    }
    arena_done(&q.arena);
}

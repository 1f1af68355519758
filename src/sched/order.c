/* An order in which every placement is legal at its turn.
 *
 * The ranks of state.h give the frame, and the order in which domains were chosen fills the middle.
 * The pods are then let in one after the other against counts of their own; a pod whose turn comes
 * too early (the pods it wants to be near are not there yet, another zone has to fill up first) waits
 * and is asked again. What is never let in could not be placed after all: a pod elsewhere, which its
 * domain's balance rested on, did not find a node.
 */
#include "sched/finish.h"

#include <string.h>

struct replay {
    struct state *s;
    struct seating *seating;
    struct group_count *groups;   /* wider domains, and totals */
    struct bitset *launched;      /* per spread over wider domains: those of launches that count */
    VEC(struct bin_tally) *hosts; /* per bin; ranks are not told apart: matched[0] */
};

/* --- the proposed order --- */

static uint64_t kind_key(uint32_t class_, uint32_t other)
{
    return (uint64_t)class_ << 32 | other;
}

/* Choices name a class with wants (for a launch) or with a home; seats of that kind come one by
 * one. */
struct kinds {
    struct map heads; /* key to 1 + the first seat */
    uint32_t *next;   /* per seat: 1 + the next, or 0 */
};

static uint64_t seat_kind(const struct state *s, const struct seat *seat)
{
    return bin_is_home(s, seat->bin) ? kind_key(seat->class_, seat->bin | 1u << 31)
                                     : kind_key(seat->class_, seat->wants);
}

/* The first of such pods needs nobody else, as long as it is the first. */
static bool wants_itself(const struct model *m, const struct seat *seat)
{
    const struct pod_class *c = &m->classes[seat->class_];
    const struct variant *v = &c->variants[seat->variant];
    for (uint32_t i = 0; i < v->owned_count; i++)
        if (m->groups[v->owned[i]].kind == GROUP_AFFINITY && class_matched(c, v->owned[i]))
            return true;
    return false;
}

static void propose(struct state *s, struct seating *g, struct arena *arena, uint32_t *out)
{
    struct kinds kind = { .next = arena_array(arena, uint32_t, g->count) };
    uint32_t count = 0;
    for (int want = 1; want >= 0; want--)
        for (uint32_t i = 0; i < g->count; i++)
            if (s->ranks[g->seats[i].class_] == RANK_HOST &&
                wants_itself(s->model, &g->seats[i]) == want)
                out[count++] = i;
    for (uint32_t i = g->count; i-- > 0;) { /* backwards: the first seat ends up at the head */
        if (s->ranks[g->seats[i].class_] != RANK_DOMAIN)
            continue;
        uint64_t key = seat_kind(s, &g->seats[i]);
        uintptr_t head = 0;
        map_get(&kind.heads, key, &head);
        kind.next[i] = (uint32_t)head;
        map_put(&kind.heads, key, i + 1);
    }
    vec_each(&s->choices, struct choice, choice) {
        if (choice->class_ == NONE)
            continue;
        bool home = choice->bin != NONE && bin_is_home(s, choice->bin);
        uint64_t key = kind_key(choice->class_, home ? choice->bin | 1u << 31 : choice->wants);
        uintptr_t head = 0;
        if (!map_get(&kind.heads, key, &head) || !head)
            continue;
        out[count++] = (uint32_t)head - 1;
        map_put(&kind.heads, key, kind.next[head - 1]);
    }
    /* Pods whose terms were given up on the way have no choice on record. */
    map_each(&kind.heads, slot)
        for (uintptr_t at = slot->value; at; at = kind.next[at - 1])
            out[count++] = (uint32_t)at - 1;
    for (uint32_t i = 0; i < g->count; i++)
        if (s->ranks[g->seats[i].class_] == RANK_FREE)
            out[count++] = i;
    KV_ASSERT(count == g->count);
    map_done(&kind.heads);
}

/* --- letting in --- */

static uint32_t host_count(const struct replay *r, uint32_t bin, uint32_t group)
{
    for (size_t i = 0; i < r->hosts[bin].count; i++)
        if (r->hosts[bin].items[i].group == group)
            return r->hosts[bin].items[i].matched[0];
    return 0;
}

static bool let_in(const struct replay *r, const struct seat *seat)
{
    const struct model *m = r->s->model;
    const struct pod_class *c = &m->classes[seat->class_];
    const struct variant *v = &c->variants[seat->variant];
    for (uint32_t i = 0; i < v->owned_count; i++) {
        uint32_t ix = v->owned[i];
        const struct group *g = &m->groups[ix];
        if (!class_requires(c, ix))
            continue; /* only we hold to it */
        bool self = class_matched(c, ix);
        bool host = g->key == KEY_HOSTNAME;
        uint32_t domain = r->s->bins.items[seat->bin].domains[g->key];
        int64_t here = host             ? (int64_t)host_count(r, seat->bin, ix)
                       : domain == NONE ? 0
                                        : r->groups[ix].matched[domain];
        if (g->kind == GROUP_SPREAD &&
            here + self - (host ? 0 : state_spread_minimum(g, &r->groups[ix], &r->launched[ix])) >
                g->max_skew)
            return false;
        if (g->kind == GROUP_AFFINITY && !here && (r->groups[ix].total || !self))
            return false;
    }
    return true; /* anti-affinity does not depend on the order, nor do images */
}

static bool bin_counts(struct state *s, const struct group *g, uint32_t ix)
{
    if (g->kind != GROUP_SPREAD)
        return true;
    if (bin_is_home(s, ix))
        return bitset_test(&g->homes, ix);
    return launch_passes(s, g, ix) == PASSES_ALWAYS;
}

static void count_in(struct replay *r, const struct seat *seat)
{
    const struct model *m = r->s->model;
    const struct pod_class *c = &m->classes[seat->class_];
    for (uint32_t i = 0; i < c->matched_count; i++) {
        uint32_t ix = c->matched[i];
        const struct group *g = &m->groups[ix];
        if (g->kind == GROUP_ANTI)
            continue;
        r->groups[ix].total++;
        if (g->key != KEY_HOSTNAME) {
            uint32_t domain = r->s->bins.items[seat->bin].domains[g->key];
            if (domain != NONE && bin_counts(r->s, g, seat->bin))
                r->groups[ix].matched[domain]++;
            continue;
        }
        size_t at = 0;
        while (at < r->hosts[seat->bin].count && r->hosts[seat->bin].items[at].group != ix)
            at++;
        if (at == r->hosts[seat->bin].count)
            vec_push(&r->hosts[seat->bin], (struct bin_tally){ .group = ix });
        r->hosts[seat->bin].items[at].matched[0]++;
    }
}

static void replay_init(struct replay *r, struct state *s, struct seating *seating,
                        struct arena *arena)
{
    const struct model *m = s->model;
    *r = (struct replay){ .s = s, .seating = seating };
    r->groups = arena_array(arena, struct group_count, m->group_count);
    for (uint32_t i = 0; i < m->group_count; i++) {
        uint32_t domains = m->keys[m->groups[i].key].domain_count;
        r->groups[i].total = m->groups[i].total;
        r->groups[i].present = s->groups[i].present;
        r->groups[i].matched = arena_array(arena, int64_t, domains);
        if (domains && m->groups[i].matched)
            memcpy(r->groups[i].matched, m->groups[i].matched, domains * sizeof(int64_t));
    }
    r->launched = arena_array(arena, struct bitset, m->group_count);
    for (uint32_t i = 0; i < m->group_count; i++) {
        const struct group *g = &m->groups[i];
        r->launched[i] = bitset_new(arena, m->keys[g->key].domain_count);
        for (uint32_t ix = m->home_count; ix < s->bins.count; ix++) {
            if (g->kind != GROUP_SPREAD || g->key == KEY_HOSTNAME || !bin_is_live(s, ix))
                continue;
            uint32_t domain = s->bins.items[ix].domains[g->key];
            if (domain != NONE && !bitset_test(&r->launched[i], domain) &&
                launch_passes(s, g, ix) == PASSES_ALWAYS)
                bitset_set(&r->launched[i], domain);
        }
    }
    r->hosts = arena_alloc_array(arena, s->bins.count, sizeof *r->hosts);
    for (uint32_t h = 0; h < m->home_count; h++)
        for (uint32_t i = 0; i < m->homes[h].tally_count; i++) {
            const struct tally *t = &m->homes[h].tallies[i];
            struct bin_tally tally = { .group = t->group };
            tally.matched[0] = t->matched;
            vec_push(&r->hosts[h], tally);
        }
}

void seating_order(struct state *s, struct seating *g, struct arena *arena)
{
    AUTO_ARENA scratch = { 0 };
    uint32_t *waiting = arena_array(&scratch, uint32_t, g->count);
    uint32_t waiting_count = g->count;
    struct replay r;
    g->order = arena_array(arena, uint32_t, g->count);
    g->order_count = 0;
    propose(s, g, &scratch, waiting);
    replay_init(&r, s, g, &scratch);
    for (bool progress = true; progress && waiting_count;) {
        uint32_t kept = 0;
        progress = false;
        for (uint32_t i = 0; i < waiting_count; i++) {
            const struct seat *seat = &g->seats[waiting[i]];
            if (!let_in(&r, seat)) {
                waiting[kept++] = waiting[i];
                continue;
            }
            count_in(&r, seat);
            g->order[g->order_count++] = waiting[i];
            progress = true;
        }
        waiting_count = kept;
    }
    for (uint32_t i = 0; i < waiting_count; i++)
        g->seats[waiting[i]].dropped = true;
    for (uint32_t b = 0; b < s->bins.count; b++)
        vec_done(&r.hosts[b]);
}

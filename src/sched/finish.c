/* Names for the pods. Pods of a class are alike, so which of them goes where is ours to say: in the
 * order of their names, homes first, then launches in the order of the plan.
 */
#include "sched/finish.h"

#include "sched/domains.h"
#include "sched/explain.h"

#include <stdlib.h>
#include <string.h>

/* --- launches in their order --- */

struct ranked {
    uint32_t bin;
    const struct bin *it;
};

static int placements_order(const struct bin *a, const struct bin *b)
{
    size_t shorter =
        a->placements.count < b->placements.count ? a->placements.count : b->placements.count;
    for (size_t i = 0; i < shorter; i++) {
        const struct placement *x = &a->placements.items[i], *y = &b->placements.items[i];
        if (x->class_ != y->class_)
            return x->class_ < y->class_ ? -1 : 1;
        if (x->wants != y->wants)
            return x->wants < y->wants ? -1 : 1;
        if (x->variant != y->variant)
            return x->variant < y->variant ? -1 : 1;
        if (x->count != y->count)
            return x->count > y->count ? -1 : 1;
    }
    return a->placements.count < b->placements.count ? -1
                                                     : a->placements.count > b->placements.count;
}

static int launch_order(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->it->pool != y->it->pool)
        return x->it->pool < y->it->pool ? -1 : 1;
    if (x->it->price != y->it->price)
        return x->it->price > y->it->price ? -1 : 1;
    if (x->it->machine != y->it->machine)
        return x->it->machine < y->it->machine ? -1 : 1;
    if (x->it->terms != y->it->terms)
        return x->it->terms < y->it->terms ? -1 : 1;
    int order = placements_order(x->it, y->it);
    return order ? order : x->bin < y->bin ? -1 : x->bin > y->bin;
}

static uint32_t bins_in_order(const struct state *s, struct arena *arena, const uint32_t **out)
{
    uint32_t *bins = arena_array(arena, uint32_t, s->bins.count);
    uint32_t homes = 0, launches = 0;
    for (uint32_t ix = 0; ix < s->model->home_count; ix++)
        if (s->bins.items[ix].placements.count)
            bins[homes++] = ix;
    struct ranked *ranked = arena_array(arena, struct ranked, s->bins.count);
    for (uint32_t ix = s->model->home_count; ix < s->bins.count; ix++)
        if (bin_is_live(s, ix))
            ranked[launches++] = (struct ranked){ ix, &s->bins.items[ix] };
    if (launches)
        qsort(ranked, launches, sizeof *ranked, launch_order);
    for (uint32_t i = 0; i < launches; i++)
        bins[homes + i] = ranked[i].bin;
    *out = bins;
    return homes + launches;
}

/* --- seats --- */

static void seat_all(struct state *s, struct arena *arena, uint32_t *next, struct seating *g)
{
    *g = (struct seating){ 0 };
    g->bin_count = bins_in_order(s, arena, &g->bins);
    uint32_t *start = arena_array(arena, uint32_t, g->bin_count + 1);
    for (uint32_t i = 0; i < g->bin_count; i++) {
        start[i + 1] = start[i];
        vec_each(&s->bins.items[g->bins[i]].placements, struct placement, p)
            start[i + 1] += p->count;
    }
    g->start = start;
    g->count = start[g->bin_count];
    g->seats = arena_array(arena, struct seat, g->count);
    uint32_t at = 0;
    for (uint32_t i = 0; i < g->bin_count; i++)
        vec_each(&s->bins.items[g->bins[i]].placements, struct placement, p)
            for (uint32_t n = 0; n < p->count; n++)
                g->seats[at++] = (struct seat){
                    .pod = s->model->classes[p->class_].pods[next[p->class_]++],
                    .bin = g->bins[i],
                    .class_ = p->class_,
                    .variant = p->variant,
                    .wants = p->wants,
                };
}

static void drop_from_bins(struct state *s, const struct seating *g)
{
    for (uint32_t i = 0; i < g->count; i++) {
        const struct seat *seat = &g->seats[i];
        if (!seat->dropped || bin_is_home(s, seat->bin))
            continue;
        struct bin *bin = &s->bins.items[seat->bin];
        for (uint32_t k = 0; k < bin->placements.count; k++) {
            const struct placement *p = &bin->placements.items[k];
            if (p->class_ == seat->class_ && p->variant == seat->variant &&
                p->wants == seat->wants) {
                state_take(s, seat->bin, k, 1);
                launch_rejoin(s, seat->bin);
                break;
            }
        }
    }
}

void drop_unordered(struct state *s)
{
    AUTO_ARENA scratch = { 0 };
    uint32_t *next = arena_array(&scratch, uint32_t, s->model->class_count);
    struct seating g;
    seat_all(s, &scratch, next, &g);
    seating_order(s, &g, &scratch);
    drop_from_bins(s, &g);
}

bool find_intruded(struct state *s, struct bitset *avoid)
{
    struct model *m = s->model;
    AUTO_ARENA scratch = { 0 };
    uint32_t *next = arena_array(&scratch, uint32_t, m->class_count);
    struct seating g;
    bool found = false;
    seat_all(s, &scratch, next, &g);
    seating_order(s, &g, &scratch);
    for (uint32_t i = 0; i < g.count; i++) {
        const struct seat *seat = &g.seats[i];
        const struct pod_class *c = &m->classes[seat->class_];
        const struct variant *v = &c->variants[seat->variant];
        for (uint32_t n = 0; seat->dropped && n < v->owned_count; n++) {
            const struct group *group = &m->groups[v->owned[n]];
            if (group->kind != GROUP_SPREAD || group->key == KEY_HOSTNAME)
                continue;
            bitset_each(&s->launched[group->key], d) {
                uint32_t wants = wants_pin(m, v->wants, group->key, d);
                if (bitset_test(&avoid[group->key], d) ||
                    bitset_test(&s->groups[v->owned[n]].present, d) ||
                    (wants != NONE && launch_outlook(s, seat->class_, v, wants).tier != NONE))
                    continue;
                bitset_set(&avoid[group->key], d);
                found = true;
            }
        }
    }
    return found;
}

void count_unplaced(struct state *s, uint32_t *unplaced)
{
    const struct model *m = s->model;
    AUTO_ARENA scratch = { 0 };
    uint32_t *next = arena_array(&scratch, uint32_t, m->class_count);
    struct seating g;
    launches_pin(s);
    seat_all(s, &scratch, next, &g);
    if (m->group_count)
        seating_order(s, &g, &scratch);
    for (uint32_t c = 0; c < m->class_count; c++)
        unplaced[c] = m->classes[c].count - next[c];
    for (uint32_t i = 0; i < g.count; i++)
        unplaced[g.seats[i].class_] += g.seats[i].dropped;
}

/* --- lists of pods --- */

struct named_pod {
    const struct pod *pod;
    uint32_t ix;
    const void *what;
};

static int by_name(const void *a, const void *b)
{
    const struct named_pod *x = a, *y = b;
    int order = str_cmp(x->pod->object.meta.namespace_, y->pod->object.meta.namespace_);
    if (!order)
        order = str_cmp(x->pod->object.meta.name, y->pod->object.meta.name);
    return order ? order : str_cmp(x->pod->object.meta.uid, y->pod->object.meta.uid);
}

static struct named_pod name_of(const struct snapshot *snap, uint32_t pod, const void *what)
{
    return (struct named_pod){ snap->pods[pod], pod, what };
}

static struct plan_pods pods_of(const struct state *s, const struct seating *g, uint32_t bin,
                                struct arena *arena)
{
    AUTO_ARENA scratch = { 0 };
    uint32_t room = g->start[bin + 1] - g->start[bin], count = 0;
    struct named_pod *names = arena_array(&scratch, struct named_pod, room);
    for (uint32_t i = g->start[bin]; i < g->start[bin + 1]; i++)
        if (!g->seats[i].dropped)
            names[count++] = name_of(s->model->snap, g->seats[i].pod, NULL);
    if (count)
        qsort(names, count, sizeof *names, by_name);
    uint32_t *items = arena_array(arena, uint32_t, count);
    for (uint32_t i = 0; i < count; i++)
        items[i] = names[i].ix;
    return (struct plan_pods){ items, count };
}

/* --- the parts of a plan --- */

static struct str existing_name(const struct snapshot *snap, const struct plan_existing *e)
{
    return e->node != PLAN_NONE ? snap->nodes[e->node]->object.meta.name
                                : snap->claims[e->claim]->object.meta.name;
}

struct placed_at {
    struct plan_existing existing;
    struct str name;
};

static int by_existing(const void *a, const void *b)
{
    const struct placed_at *x = a, *y = b;
    bool node_x = x->existing.node != PLAN_NONE, node_y = y->existing.node != PLAN_NONE;
    return node_x != node_y ? (node_x ? -1 : 1) : str_cmp(x->name, y->name);
}

static void add_existing(struct state *s, const struct seating *g, struct plan *plan,
                         struct arena *arena)
{
    AUTO_ARENA scratch = { 0 };
    struct placed_at *all = arena_array(&scratch, struct placed_at, g->bin_count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < g->bin_count && bin_is_home(s, g->bins[i]); i++) {
        const struct home *home = &s->model->homes[g->bins[i]];
        struct plan_existing e = { home->node, home->claim, pods_of(s, g, i, arena) };
        if (e.pods.count)
            all[count++] = (struct placed_at){ e, existing_name(s->model->snap, &e) };
    }
    if (count)
        qsort(all, count, sizeof *all, by_existing);
    struct plan_existing *items = arena_array(arena, struct plan_existing, count);
    for (uint32_t i = 0; i < count; i++)
        items[i] = all[i].existing;
    plan->existing = items;
    plan->existing_count = count;
}

static bool same_form(const struct state *s, uint32_t a, uint32_t b)
{
    const struct bin *x = &s->bins.items[a], *y = &s->bins.items[b];
    return x->pool == y->pool && x->machine == y->machine && x->terms == y->terms &&
           x->reserved == y->reserved && placements_order(x, y) == 0;
}

/* A launch may cost less than it was planned for, now that its list is whole: the dearest of a pool
 * first, then by the names of the pods. */
struct listed {
    struct plan_launch launch;
    uint32_t pool_rank;
    struct named_pod first; /* no other launch has it */
};

static int by_listed(const void *a, const void *b)
{
    const struct listed *x = a, *y = b;
    if (x->pool_rank != y->pool_rank)
        return x->pool_rank < y->pool_rank ? -1 : 1;
    if (x->launch.price != y->launch.price)
        return x->launch.price > y->launch.price ? -1 : 1;
    return by_name(&x->first, &y->first);
}

static void sort_launches(const struct snapshot *snap, struct plan_launch *items, uint32_t count,
                          struct arena *scratch)
{
    struct listed *all = arena_array(scratch, struct listed, count);
    for (uint32_t i = 0, rank = 0; i < count; i++) {
        rank += i && items[i].pool != items[i - 1].pool;
        all[i] = (struct listed){ items[i], rank, name_of(snap, items[i].pods.items[0], NULL) };
    }
    if (count)
        qsort(all, count, sizeof *all, by_listed);
    for (uint32_t i = 0; i < count; i++)
        items[i] = all[i].launch;
}

/* Equal launches share all but their pods: there may be thousands. */
static void add_launches(struct state *s, const struct seating *g, struct plan *plan,
                         struct arena *arena)
{
    AUTO_ARENA scratch = { 0 };
    const bool *any_size = limits_hold_at_largest(s, &scratch);
    struct plan_launch *items = arena_array(arena, struct plan_launch, g->bin_count);
    uint32_t count = 0, before = NONE;
    for (uint32_t i = 0; i < g->bin_count; i++) {
        uint32_t ix = g->bins[i];
        if (bin_is_home(s, ix))
            continue;
        struct plan_pods pods = pods_of(s, g, i, arena);
        if (!pods.count)
            continue;
        if (before != NONE && same_form(s, before, ix))
            items[count] = items[count - 1];
        else
            launch_describe(s, ix, any_size[s->bins.items[ix].pool], arena, &items[count]);
        items[count].pods = pods;
        plan->price = usd_hour_sum(plan->price, items[count].price);
        before = ix;
        count++;
    }
    sort_launches(s->model->snap, items, count, &scratch);
    plan->launches = items;
    plan->launch_count = count;
}

static void add_misses(struct state *s, const struct seating *g, const uint32_t *next,
                       struct plan *plan, struct arena *arena)
{
    const struct model *m = s->model;
    AUTO_ARENA scratch = { 0 };
    uint32_t room = 0, count = 0;
    for (uint32_t c = 0; c < m->class_count; c++)
        room += m->classes[c].count;
    struct named_pod *names = arena_array(&scratch, struct named_pod, room);
    struct plan_miss *of_class = arena_array(&scratch, struct plan_miss, m->class_count);
    for (uint32_t i = 0; i < g->count; i++)
        if (g->seats[i].dropped)
            names[count++] = name_of(m->snap, g->seats[i].pod, &of_class[g->seats[i].class_]);
    for (uint32_t c = 0; c < m->class_count; c++)
        for (uint32_t i = next[c]; i < m->classes[c].count; i++)
            names[count++] = name_of(m->snap, m->classes[c].pods[i], &of_class[c]);
    if (count)
        qsort(names, count, sizeof *names, by_name);
    struct plan_miss *items = arena_array(arena, struct plan_miss, count);
    for (uint32_t i = 0; i < count; i++) {
        struct plan_miss *why = (struct plan_miss *)names[i].what;
        if (!why->reason_count)
            explain_miss(s, (uint32_t)(why - of_class), arena, &why->reasons, &why->reason_count);
        items[i] = (struct plan_miss){ names[i].ix, why->reasons, why->reason_count };
    }
    plan->misses = items;
    plan->miss_count = count;
}

static void add_order(const struct seating *g, struct plan *plan, struct arena *arena)
{
    uint32_t *items = arena_array(arena, uint32_t, g->order_count);
    for (uint32_t i = 0; i < g->order_count; i++)
        items[i] = g->seats[g->order[i]].pod;
    plan->order = (struct plan_pods){ items, g->order_count };
}

const struct plan *plan_finish(struct state *s, usd_hour bound, struct arena *arena)
{
    const struct model *m = s->model;
    AUTO_ARENA scratch = { 0 };
    struct plan *plan = arena_new(arena, struct plan);
    uint32_t *next = arena_array(&scratch, uint32_t, m->class_count);
    struct seating g;
    launches_pin(s);
    seat_all(s, &scratch, next, &g);
    seating_order(s, &g, &scratch);
    drop_from_bins(s, &g);
    launches_pin(s);
    add_existing(s, &g, plan, arena);
    add_launches(s, &g, plan, arena);
    add_misses(s, &g, next, plan, arena);
    add_order(&g, plan, arena);
    plan->skips = m->skips;
    plan->skip_count = m->skip_count;
    plan->class_count = m->class_count;
    plan->lower_bound = bound < plan->price ? bound : plan->price;
    plan->steps = s->steps;
    return plan;
}

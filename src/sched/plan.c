/* The whole of it: compile, place, pack, improve, finish.
 *
 * Pods that find no place as one variant of what they ask for are tried as the next. Pods for which
 * a launch did not work out after all (limits were reached, mostly) are tried once more as they are,
 * now that the state says so, and then as the next variant. When everything has been tried and
 * something was placed meanwhile, those left over get another chance: the pods they want to be near
 * may be there now.
 *
 * If pods are left over that could have had a place, it is done again: with other pods kept out of
 * domains that a spread would then have to use, with the more important pods first, with those left
 * over first, by what is limited instead of what it costs, and for small problems in other orders. The
 * best attempt counts.
 */
#include "sched/plan.h"

#include "base/rng.h"
#include "sched/finish.h"
#include "sched/improve.h"
#include "sched/worth.h"

#include <stdlib.h>

const char *const plan_reason_names[PLAN_REASON_COUNT] = {
    [REASON_RESOURCES] = "resources",
    [REASON_REQUIREMENTS] = "requirements",
    [REASON_TAINTS] = "taints",
    [REASON_TOPOLOGY_SPREAD] = "topologySpread",
    [REASON_POD_AFFINITY] = "podAffinity",
    [REASON_POD_ANTI_AFFINITY] = "podAntiAffinity",
    [REASON_VOLUME] = "volume",
    [REASON_HOST_PORT] = "hostPort",
    [REASON_LIMITS] = "limits",
    [REASON_MIN_VALUES] = "minValues",
    [REASON_OFFERING] = "offering",
    [REASON_NODEPOOL_NOT_READY] = "nodePoolNotReady",
    [REASON_IMAGE] = "image",
    [REASON_UNSUPPORTED] = "unsupported",
};

#define BOUND_ROUNDS 60
#define SECOND_CHANCES 4
#define ATTEMPTS 4
#define ORDERS 24 /* by chance, if there are at most so many classes */
#define ORDERS_CLASSES 40
#define LEVELS_MAX 8 /* of pods that want to be near pods that want to be near pods ... */

struct batch { /* pods of a class, and how they are read */
    uint32_t class_, variant, count;
};

struct solver {
    struct state *s;
    struct arena *arena;
    const uint8_t *maybe_boost; /* per class: more comes first */
    uint32_t *order;            /* classes */
    VEC(struct batch) jobs, failed, lost;
    struct items items;
    struct worth worth; /* of `items`, the last time they were packed */
    uint32_t packings;  /* how often pods had to be launched for */
};

/* --- the order of classes --- */

/* Pods come after those they want to be near; but pods that would do for themselves come first, for
 * then they need nobody. */
static uint32_t *levels_of(const struct model *m, struct arena *arena)
{
    uint32_t *level = arena_array(arena, uint32_t, m->class_count);
    uint32_t *of_group = arena_array(arena, uint32_t, m->group_count);
    for (uint32_t round = 0; round < LEVELS_MAX; round++) {
        bool changed = false;
        for (uint32_t g = 0; g < m->group_count; g++)
            of_group[g] = 0;
        for (uint32_t c = 0; c < m->class_count; c++)
            for (uint32_t i = 0; i < m->classes[c].matched_count; i++) {
                uint32_t g = m->classes[c].matched[i];
                bool own =
                    m->classes[c].variant_count && variant_owns(&m->classes[c].variants[0], g);
                if (m->groups[g].kind == GROUP_AFFINITY && !own && level[c] + 1 > of_group[g])
                    of_group[g] = level[c] + 1;
            }
        for (uint32_t c = 0; c < m->class_count; c++) {
            if (!m->classes[c].variant_count)
                continue;
            const struct variant *v = &m->classes[c].variants[0];
            for (uint32_t i = 0; i < v->owned_count; i++)
                if (m->groups[v->owned[i]].kind == GROUP_AFFINITY &&
                    !class_matched(&m->classes[c], v->owned[i]) &&
                    of_group[v->owned[i]] > level[c]) {
                    level[c] = of_group[v->owned[i]];
                    changed = true;
                }
        }
        if (!changed)
            break;
    }
    return level;
}

struct turn {
    uint32_t class_, level;
    uint8_t boost, rank;
    bool spreads; /* over wider domains: it counts those that came before */
};

static bool spreads(const struct model *m, const struct pod_class *c)
{
    const struct variant *v = c->variant_count ? &c->variants[0] : NULL;
    for (uint32_t i = 0; v && i < v->owned_count; i++) {
        const struct group *g = &m->groups[v->owned[i]];
        if (g->kind == GROUP_SPREAD && g->key != KEY_HOSTNAME)
            return true;
    }
    return false;
}

static int by_turn(const void *a, const void *b)
{
    const struct turn *x = a, *y = b;
    if (x->boost != y->boost)
        return x->boost > y->boost ? -1 : 1;
    if (x->level != y->level)
        return x->level < y->level ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->spreads != y->spreads)
        return x->spreads ? -1 : 1;
    return x->class_ < y->class_ ? -1 : 1;
}

static void find_order(struct solver *v)
{
    const struct model *m = v->s->model;
    AUTO_ARENA scratch = { 0 };
    const uint32_t *level = levels_of(m, &scratch);
    struct turn *turns = arena_array(&scratch, struct turn, m->class_count);
    for (uint32_t c = 0; c < m->class_count; c++)
        turns[c] = (struct turn){ .class_ = c,
                                  .level = level[c],
                                  .boost = v->maybe_boost ? v->maybe_boost[c] : 0,
                                  .rank = v->s->ranks[c],
                                  .spreads = spreads(m, &m->classes[c]) };
    if (m->class_count)
        qsort(turns, m->class_count, sizeof *turns, by_turn);
    v->order = arena_array(v->arena, uint32_t, m->class_count);
    for (uint32_t i = 0; i < m->class_count; i++)
        v->order[i] = turns[i].class_;
}

/* --- rounds --- */

static void place_job(struct solver *v, struct batch job)
{
    const struct pod_class *c = &v->s->model->classes[job.class_];
    for (; job.count && job.variant < c->variant_count; job.variant++)
        job.count = domains_place(v->s, job.class_, job.variant, job.count, &v->items);
    if (job.count)
        vec_push(&v->lost, (struct batch){ .class_ = job.class_, .count = job.count });
}

static uint32_t pack_items(struct solver *v)
{
    AUTO_ARENA scratch = { 0 };
    struct packer k;
    uint32_t packed = 0;
    if (!v->items.list.count)
        return 0;
    v->packings++;
    v->worth = worth_of(v->s, &v->items, BOUND_ROUNDS, v->arena);
    packer_init(&k, v->s, &v->items, &v->worth, v->worth.value, &scratch);
    k.may_join = true;
    packer_run(&k);
    for (uint32_t i = 0; i < k.item_count; i++) {
        const struct item *item = &v->items.list.items[i];
        packed += item->count - k.left[i];
        if (!k.left[i])
            continue;
        domains_undo(v->s, item, k.left[i]);
        vec_push(&v->failed, (struct batch){ item->class_, item->variant, k.left[i] });
    }
    packer_done(&k);
    return packed;
}

/* Everything in `jobs`, until each pod is placed or lost. Returns how many were launched for. */
static uint32_t run_jobs(struct solver *v)
{
    uint32_t packed = 0;
    while (v->jobs.count) {
        vec_clear(&v->failed);
        vec_clear(&v->items.list);
        vec_each(&v->jobs, struct batch, job)
            place_job(v, *job);
        uint32_t now = pack_items(v);
        packed += now;
        vec_clear(&v->jobs);
        vec_each(&v->failed, struct batch, job) {
            struct batch next = *job;
            next.variant += now == 0; /* as it is only while things move */
            vec_push(&v->jobs, next);
        }
    }
    return packed;
}

static bool in_band(const struct model *m, uint32_t class_, const int64_t *maybe_priority)
{
    return !m->classes[class_].maybe_refused &&
           (!maybe_priority || m->classes[class_].priority == *maybe_priority);
}

static void solve_band(struct solver *v, const int64_t *maybe_priority)
{
    const struct model *m = v->s->model;
    vec_clear(&v->lost);
    for (uint32_t i = 0; i < m->class_count; i++)
        if (in_band(m, v->order[i], maybe_priority))
            vec_push(&v->jobs, (struct batch){ .class_ = v->order[i],
                                               .count = m->classes[v->order[i]].count });
    run_jobs(v);
    for (uint32_t chance = 0; chance < SECOND_CHANCES && v->lost.count; chance++) {
        uint64_t before = 0, after = 0;
        vec_each(&v->lost, struct batch, job) {
            before += job->count;
            vec_push(&v->jobs, *job);
        }
        vec_clear(&v->lost);
        run_jobs(v);
        vec_each(&v->lost, struct batch, job)
            after += job->count;
        if (after == before)
            break;
    }
}

/* Priorities come in descending order, as classes are. */
static void solve(struct solver *v, bool by_priority)
{
    const struct model *m = v->s->model;
    find_order(v);
    if (!by_priority)
        solve_band(v, NULL);
    for (uint32_t c = 0; by_priority && c < m->class_count; c++)
        if (c == 0 || m->classes[c].priority != m->classes[c - 1].priority)
            solve_band(v, &m->classes[c].priority);
}

/* --- attempts --- */

struct efforts {
    uint64_t care, anew; /* steps for packing with care, and for packing anew */
};

static struct efforts efforts_of(const struct model *m)
{
    uint64_t effort = m->options.effort;
    if (effort != PLAN_EFFORT_AUTO)
        return (struct efforts){ effort, effort };
    if (m->class_count <= PLAN_EFFORT_CLASSES)
        return (struct efforts){ PLAN_EFFORT_MOST, PLAN_EFFORT_MOST };
    return (struct efforts){ 0, (uint64_t)PLAN_EFFORT_MOST / 8 * PLAN_EFFORT_CLASSES /
                                    m->class_count };
}

struct manner {       /* of an attempt */
    bool by_priority; /* the more important pods first, whatever it costs */
    bool dense;       /* see struct state, as for the next */
    uint64_t whim;
    const uint8_t *maybe_boost; /* see struct solver */
    const struct bitset *maybe_avoid;
};

struct attempt {
    struct state s;
    struct solver v;
    struct manner manner;
    uint32_t *lost; /* per class: pods without a place */
    uint64_t lost_count;
};

static void attempt_run(struct attempt *a, struct model *m, struct manner manner,
                        struct arena *arena)
{
    *a = (struct attempt){ .manner = manner };
    state_init(&a->s, m, arena);
    a->s.dense = manner.dense;
    a->s.whim = manner.whim;
    a->s.maybe_avoid = manner.maybe_avoid;
    a->s.careful = efforts_of(m).care;
    a->v = (struct solver){ .s = &a->s, .arena = arena, .maybe_boost = manner.maybe_boost };
    solve(&a->v, manner.by_priority);
    a->lost = arena_array(arena, uint32_t, m->class_count);
    count_unplaced(&a->s, a->lost);
    for (uint32_t c = 0; c < m->class_count; c++)
        a->lost_count += a->lost[c];
}

static void attempt_done(struct attempt *a)
{
    vec_done(&a->v.jobs);
    vec_done(&a->v.failed);
    vec_done(&a->v.lost);
    vec_done(&a->v.items.list);
    state_done(&a->s);
}

/* Fewer pods left over, the important ones first; then cheaper. */
static bool attempt_better(const struct attempt *a, const struct attempt *b)
{
    const struct model *m = a->s.model;
    for (uint32_t c = 0; c < m->class_count;) {
        int64_t priority = m->classes[c].priority;
        uint64_t x = 0, y = 0;
        for (; c < m->class_count && m->classes[c].priority == priority; c++) {
            x += a->lost[c];
            y += b->lost[c];
        }
        if (x != y)
            return x < y;
    }
    return a->s.price < b->s.price;
}

/* Could a pod of the class have had a place if it had come first? */
static bool had_a_chance(struct state *fresh, uint32_t class_)
{
    const struct pod_class *c = &fresh->model->classes[class_];
    for (uint32_t i = 0; i < c->variant_count; i++) {
        const struct variant *v = &c->variants[i];
        for (uint32_t k = 0; k < v->owned_count; k++)
            if (fresh->model->groups[v->owned[k]].kind == GROUP_AFFINITY)
                return true; /* in other company, perhaps */
        if (launch_outlook(fresh, class_, v, v->wants).tier != NONE)
            return true;
        for (uint32_t ix = 0; ix < fresh->model->home_count; ix++)
            if (state_room(fresh, ix, class_, v, v->wants, 1))
                return true;
    }
    return false;
}

/* Classes with pods left over that could have had a place. */
static uint32_t find_unlucky(struct model *m, const struct attempt *a, uint8_t boost,
                             uint8_t *boosts, struct arena *arena)
{
    struct state fresh;
    uint32_t count = 0;
    state_init(&fresh, m, arena);
    for (uint32_t c = 0; c < m->class_count; c++) {
        if (!a->lost[c] || m->classes[c].maybe_refused || !had_a_chance(&fresh, c))
            continue;
        boosts[c] = boost;
        count++;
    }
    state_done(&fresh);
    return count;
}

/* One more, which takes the place of the best if it is better. */
static bool attempt_again(struct attempt *best, struct model *m, struct manner manner,
                          struct arena *arena)
{
    struct attempt next, *other = &next;
    attempt_run(&next, m, manner, arena);
    uint64_t steps = best->s.steps + next.s.steps;
    bool better = attempt_better(other, best);
    if (better) {
        struct attempt was = *best;
        *best = *other;
        *other = was;
        best->v.s = &best->s;
        other->v.s = &other->s;
    }
    best->s.steps = steps;
    attempt_done(other);
    return better;
}

/* Classes in other orders, by chance: worth it where there are few of them and little to lose. */
static void attempt_orders(struct attempt *best, struct model *m, uint8_t *boosts,
                           struct arena *arena)
{
    struct rng rng;
    rng_init(&rng, m->options.seed);
    for (uint32_t i = 0; i < ORDERS && best->lost_count && m->class_count <= ORDERS_CLASSES; i++) {
        for (uint32_t c = 0; c < m->class_count; c++)
            boosts[c] = (uint8_t)rng_below(&rng, 4);
        struct manner manner = best->manner;
        manner.dense = i % 2;
        manner.whim = rng_next(&rng) | 1;
        manner.maybe_boost = boosts;
        attempt_again(best, m, manner, arena);
    }
}

/* Launches may have brought domains into being that others must spread over and cannot be in: again,
 * and out of those. */
static void attempt_apart(struct attempt *best, struct model *m, struct arena *arena)
{
    struct bitset *avoid = arena_array(arena, struct bitset, m->key_count);
    for (uint32_t k = 0; k < m->key_count; k++)
        avoid[k] = bitset_new(arena, m->keys[k].domain_count);
    for (uint32_t i = 0; i < ATTEMPTS && best->lost_count && find_intruded(&best->s, avoid); i++)
        attempt_again(best, m, (struct manner){ .maybe_avoid = avoid }, arena);
}

static void attempt_best(struct attempt *best, struct model *m, struct arena *arena)
{
    uint8_t *boosts = arena_array(arena, uint8_t, m->class_count);
    attempt_run(best, m, (struct manner){ 0 }, arena);
    attempt_apart(best, m, arena);
    for (uint8_t i = 1; i <= ATTEMPTS && best->lost_count; i++) {
        if (!find_unlucky(m, best, i, boosts, arena))
            return;
        /* The first time priorities alone may do; in the end limits may be what is scarce. */
        struct manner manner = best->manner;
        bool differ = m->classes[0].priority != m->classes[m->class_count - 1].priority;
        bool alone = differ && i == 1;
        manner.by_priority = differ;
        manner.dense = i == ATTEMPTS;
        manner.maybe_boost = alone ? NULL : boosts;
        if (!attempt_again(best, m, manner, arena) && !alone && i < ATTEMPTS)
            i = ATTEMPTS - 1;
    }
    attempt_orders(best, m, boosts, arena);
}

/* All that is launched for, and what it is worth. That is known already if it was packed in one go and
 * no reservation was used; else it is of a world in which none has been used yet. */
static struct worth worth_of_launched(struct attempt *a, struct arena *arena, struct items *out)
{
    struct state *s = &a->s;
    bool reserved = false;
    vec_each(&s->bins, struct bin, bin)
        reserved |= bin->reserved != NONE;
    if (a->v.packings == 1 && !a->lost_count && !reserved) {
        vec_each(&a->v.items.list, struct item, item)
            vec_push(&out->list, *item);
        return a->v.worth;
    }
    launched_items(s, out);
    if (!out->list.count)
        return (struct worth){ 0 };
    reservations_reset(s->model);
    struct worth worth = worth_of(s, out, BOUND_ROUNDS, arena);
    vec_each(&s->bins, struct bin, bin)
        if (bin->reserved != NONE)
            reservation_take(s->model, bin->pool, bin->reserved);
    return worth;
}

const struct plan *plan_build(struct arena *arena, const struct snapshot *snap,
                              struct plan_options options)
{
    AUTO_ARENA scratch = { 0 };
    struct model model;
    struct attempt a;
    struct items launched = { 0 };
    model_compile(&model, arena, snap, options);
    attempt_best(&a, &model, &scratch);
    if (a.lost_count)
        drop_unordered(&a.s); /* what it costs is to be of what is really placed */
    struct worth worth = worth_of_launched(&a, &scratch, &launched);
    a.s.whim = 0;
    uint64_t effort = efforts_of(&model).anew;
    if (effort && launched.list.count)
        improve(&a.s, &launched, &worth, effort, options.seed);
    const struct plan *plan = plan_finish(&a.s, worth.bound, arena);
    vec_done(&launched.list);
    attempt_done(&a);
    model_done(&model);
    return plan;
}

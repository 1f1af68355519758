/* sched/reference_testing.h - a slow, obvious solver for tiny worlds, to compare the real one with.
 *
 * Nodes to launch are concrete from the start: one option for each available offering of each type
 * of each pool (and each value of a label that the pool leaves open), with the very labels that the
 * node would have. Whether a pod suits a node is then asked as kube-scheduler asks it, of labels and
 * not of requirement sets. Every way to put pods on nodes that are there or into groups of pods that
 * get a new node is tried, every choice of options for the groups, and for each of these whether
 * there is an order of placing the pods in which each step is legal. Branches that cannot be better
 * than the best so far are cut, and pods that are alike are not told apart.
 *
 * Best is: the fewest pods of the highest priority without a place, then of the next, and so on;
 * then the lowest price of all new nodes. What it assumes:
 *
 *   - Preferences do not count (PREFERENCES_IGNORE), and neither do minValues.
 *   - Pools by weight (`by_weight`): a pod goes to a new node of a pool only if no heavier pool has
 *     an option that would take the pod alone. A heavier pool with limits may be full: it forbids
 *     nothing. Without `by_weight` every pool is as good as any.
 *   - A topology spread counts the domains of nodes that pass its node filter, those that are there
 *     and those that are to be launched, and further the domains in which the pod itself could get a
 *     new node if it were alone. That of host names has a minimum of 0.
 *   - Of volumes only their places count, and each pod has its own.
 */
#pragma once

#include "sched/reference_pods_testing.h"

/* --- is there a legal order? --- */

static inline bool ref_is_home(const struct reference *ref, int where)
{
    return where >= 0 && (uint32_t)where < ref->home_count;
}

static inline const struct ref_place *ref_place_of(const struct reference *ref, int where)
{
    return ref_is_home(ref, where) ? &ref->homes[where]
                                   : &ref->options[ref->chosen[(uint32_t)where - ref->home_count]];
}

static inline struct str ref_domain(const struct reference *ref, const struct ref_term *t,
                                    int where)
{
    return str_map_get(&ref_place_of(ref, where)->labels, t->key);
}

/* Does the node count for the spread? */
static inline bool ref_counts(const struct reference *ref, const struct ref_term *t, int where)
{
    return ref_is_home(ref, where)
               ? t->counts_home >> where & 1
               : ref_has(&t->counts_option, ref->chosen[(uint32_t)where - ref->home_count]);
}

static inline bool ref_together(const struct reference *ref, const struct ref_term *t, int a, int b)
{
    if (t->hostname)
        return a == b;
    struct str x = ref_domain(ref, t, a), y = ref_domain(ref, t, b);
    return x.p && y.p && str_eq(x, y);
}

static inline int64_t ref_spread_count(const struct reference *ref, const struct ref_term *t,
                                       uint32_t placed, struct str domain)
{
    int64_t count = 0;
    for (uint32_t i = 0; i < ref->pod_count; i++) {
        if ((placed & t->matches) >> i & 1) {
            struct str at = ref_domain(ref, t, ref->where[i]);
            count += ref_counts(ref, t, ref->where[i]) && at.p && str_eq(at, domain);
        }
    }
    return count;
}

static inline bool ref_spread_allows(const struct reference *ref, const struct ref_term *t,
                                     uint32_t pod, uint32_t placed)
{
    int64_t self = t->matches >> pod & 1, least = INT64_MAX;
    if (t->hostname) {
        int64_t count = 0;
        for (uint32_t i = 0; i < ref->pod_count; i++)
            count += ((placed & t->matches) >> i & 1) && ref->where[i] == ref->where[pod] &&
                     ref_counts(ref, t, ref->where[i]);
        return count + self <= t->max_skew;
    }
    struct str domain = ref_domain(ref, t, ref->where[pod]);
    if (!domain.p)
        return false;
    struct ref_term with = *t; /* and the domains of what is to be launched */
    for (uint32_t g = 0; g < ref->group_count; g++) {
        if (ref_has(&t->counts_option, ref->chosen[g]))
            ref_domain_add(&with, &ref->options[ref->chosen[g]]);
    }
    for (uint32_t i = 0; i < with.domain_count; i++) {
        int64_t count = ref_spread_count(ref, t, placed, with.domains[i]);
        least = count < least ? count : least;
    }
    if (with.domain_count < with.min_domains || with.domain_count == 0)
        least = 0;
    return ref_spread_count(ref, t, placed, domain) + self - least <= t->max_skew;
}

static inline bool ref_affinity_allows(const struct reference *ref, const struct ref_term *t,
                                       uint32_t pod, uint32_t placed)
{
    bool somewhere = false;
    if (!t->hostname && !ref_domain(ref, t, ref->where[pod]).p)
        return false;
    for (uint32_t i = 0; i < ref->pod_count; i++) {
        if (!((placed & t->matches) >> i & 1))
            continue;
        if (ref_together(ref, t, ref->where[i], ref->where[pod]))
            return true;
        somewhere |= t->hostname || ref_domain(ref, t, ref->where[i]).p;
    }
    return !somewhere && (t->matches >> pod & 1);
}

static inline bool ref_anti_allows(const struct reference *ref, const struct ref_term *t,
                                   uint32_t pod, uint32_t others)
{
    for (uint32_t i = 0; i < ref->pod_count; i++) {
        if (((others & t->matches) >> i & 1) &&
            ref_together(ref, t, ref->where[i], ref->where[pod]))
            return false;
    }
    return true;
}

/* May the pod go where it is to go, the others in `placed` being where they are? */
static inline bool ref_step_is_legal(const struct reference *ref, uint32_t pod, uint32_t placed)
{
    KV_ASSERT(pod < REF_PODS_MAX);
    for (uint32_t i = 0; i < ref->pods[pod].term_count; i++) {
        const struct ref_term *t = &ref->pods[pod].terms[i];
        if ((t->kind == REF_SPREAD && !ref_spread_allows(ref, t, pod, placed)) ||
            (t->kind == REF_AFFINITY && !ref_affinity_allows(ref, t, pod, placed)) ||
            (t->kind == REF_ANTI && !ref_anti_allows(ref, t, pod, placed)))
            return false;
    }
    for (uint32_t q = 0; q < ref->pod_count; q++) {
        for (uint32_t i = 0; (placed >> q & 1) && i < ref->pods[q].term_count; i++) {
            const struct ref_term *t = &ref->pods[q].terms[i];
            if (t->kind == REF_ANTI && (t->matches >> pod & 1) &&
                ref_together(ref, t, ref->where[q], ref->where[pod]))
                return false;
        }
    }
    return true;
}

/* Whether the rest can follow depends on who is placed and not on the order in which they were, so
 * no set is looked at twice. */
static inline bool ref_order_from(const struct reference *ref, uint32_t placed, uint32_t wanted,
                                  uint8_t *seen, uint32_t *order, uint32_t depth)
{
    uint32_t pending = (1u << ref->pending_count) - 1;
    if (placed == wanted)
        return true;
    if (seen[placed & pending]++)
        return false;
    for (uint32_t i = 0; i < ref->pending_count; i++) {
        if (!((wanted & ~placed) >> i & 1) || !ref_step_is_legal(ref, i, placed))
            continue;
        order[depth] = i;
        if (ref_order_from(ref, placed | 1u << i, wanted, seen, order, depth + 1))
            return true;
    }
    return false;
}

/* --- the search --- */

/* Is what has been decided so far, at this price, already no better than the best? */
static inline bool ref_is_hopeless(const struct reference *ref, usd_hour price)
{
    if (!ref->has_best)
        return false;
    for (uint32_t i = 0; i < ref->level_count; i++) {
        if (ref->unplaced[i] != ref->best.unplaced[i])
            return ref->unplaced[i] > ref->best.unplaced[i];
    }
    return price >= ref->best.price;
}

static inline void ref_keep_if_legal(struct reference *ref, usd_hour price)
{
    uint32_t wanted = 0, placed = 0, order[REF_PODS_MAX];
    AUTO_ARENA scratch = { 0 };
    for (uint32_t i = 0; i < ref->pod_count; i++) {
        if (ref->where[i] != REF_UNPLACED)
            wanted |= 1u << i;
        if (i >= ref->pending_count)
            placed |= wanted & 1u << i;
    }
    uint8_t *seen = arena_array(&scratch, uint8_t, (size_t)1 << ref->pending_count);
    if (!ref_order_from(ref, placed, wanted, seen, order, 0))
        return;
    ref->has_best = true;
    ref->best.price = price;
    ref->best.group_count = ref->group_count;
    ref->best.order_count = (uint32_t)__builtin_popcount(wanted & ~placed);
    memcpy(ref->best.unplaced, ref->unplaced, sizeof ref->best.unplaced);
    memcpy(ref->best.where, ref->where, sizeof ref->best.where);
    memcpy(ref->best.option, ref->chosen, sizeof ref->best.option);
    memcpy(ref->best.order, order, sizeof ref->best.order);
}

/* Two options for a group that nothing but the price tells apart, for the pods of this world. The
 * first is as cheap. */
static inline bool ref_options_alike(const struct reference *ref, uint32_t a, uint32_t b)
{
    const struct ref_place *x = &ref->options[a], *y = &ref->options[b];
    if (x->limited || y->limited ||
        ref->snap->pools[x->pool].types->reservation_capacity[x->offering] ||
        ref->snap->pools[y->pool].types->reservation_capacity[y->offering])
        return false;
    for (uint32_t p = 0; p < ref->pod_count; p++) {
        for (uint32_t i = 0; i < ref->pods[p].term_count; i++) {
            const struct ref_term *t = &ref->pods[p].terms[i];
            struct str u = str_map_get(&x->labels, t->key), v = str_map_get(&y->labels, t->key);
            if (!str_eq(u, v) || !u.p != !v.p ||
                ref_has(&t->counts_option, a) != ref_has(&t->counts_option, b))
                return false;
        }
    }
    return true;
}

static inline void ref_choose_options(struct reference *ref, uint32_t group, usd_hour price,
                                      usd_hour rest)
{
    if (group == ref->group_count) {
        ref_keep_if_legal(ref, price);
        return;
    }
    uint32_t tried[REF_OPTIONS_MAX], tried_count = 0;
    rest -= ref->groups[group].price;
    for (uint32_t o = 0; o < ref->option_count; o++) {
        if (!ref_has(&ref->groups[group].options, o))
            continue;
        if (ref->steps++ > REF_STEPS_MAX ||
            ref_is_hopeless(ref, price + ref->options[o].price + rest))
            return;
        bool known = false;
        for (uint32_t i = 0; i < tried_count && !known; i++)
            known = ref_options_alike(ref, tried[i], o);
        if (known)
            continue;
        tried[tried_count++] = o;
        ref->chosen[group] = o;
        if (ref_options_go_together(ref, group + 1))
            ref_choose_options(ref, group + 1, price + ref->options[o].price, rest);
    }
}

/* Narrow the group's options to those that hold it; false: there is none. */
static inline bool ref_group_settle(const struct reference *ref, struct ref_group *g)
{
    bool any = false;
    for (uint32_t o = 0; o < ref->option_count; o++) {
        if (!ref_has(&g->options, o))
            continue;
        if (!ref_fits(ref, g->used, ref->options[o].room)) {
            ref_drop(&g->options, o);
        } else if (!any) {
            any = true;
            g->price = ref->options[o].price;
        }
    }
    return any;
}

static inline void ref_place_pods(struct reference *ref, uint32_t pod, usd_hour price);

static inline void ref_try_group(struct reference *ref, uint32_t pod, uint32_t group,
                                 usd_hour price)
{
    const struct ref_pod *p = &ref->pods[pod];
    struct ref_group before = ref->groups[group], *g = &ref->groups[group];
    if (g->pods & p->conflicts)
        return;
    g->pods |= 1u << pod;
    ref_take(ref, g->used, p->request, -1);
    for (uint32_t i = 0; i < KV_COUNT_OF(g->options.words); i++)
        g->options.words[i] &= p->options.words[i];
    if (ref_group_settle(ref, g)) {
        ref->where[pod] = (int)(ref->home_count + group);
        ref_place_pods(ref, pod + 1, price - before.price + g->price);
    }
    ref->groups[group] = before;
}

static inline void ref_try_home(struct reference *ref, uint32_t pod, uint32_t home, usd_hour price)
{
    const struct ref_pod *p = &ref->pods[pod];
    if (!(p->homes >> home & 1) || !ref_fits(ref, p->request, ref->free[home]))
        return;
    for (uint32_t i = 0; i < pod; i++) {
        if ((p->conflicts >> i & 1) && ref->where[i] == (int)home)
            return;
    }
    ref_take(ref, ref->free[home], p->request, 1);
    ref->where[pod] = (int)home;
    ref_place_pods(ref, pod + 1, price);
    ref_take(ref, ref->free[home], p->request, -1);
}

/* Pods that are alike go to places in ascending order, the unplaced ones last. */
static inline void ref_place_pods(struct reference *ref, uint32_t pod, usd_hour price)
{
    if (ref->steps++ > REF_STEPS_MAX || ref_is_hopeless(ref, price))
        return;
    if (pod == ref->pending_count) {
        ref_choose_options(ref, 0, 0, price);
        return;
    }
    const struct ref_pod *p = &ref->pods[pod];
    int from = p->alike == pod ? 0 : ref->where[p->alike];
    for (int i = from; i >= 0 && i < (int)ref->home_count; i++)
        ref_try_home(ref, pod, (uint32_t)i, price);
    for (int i = (int)ref->home_count; i < (int)(ref->home_count + ref->group_count); i++) {
        if (from >= 0 && i >= from)
            ref_try_group(ref, pod, (uint32_t)i - ref->home_count, price);
    }
    if (from >= 0) {
        ref->groups[ref->group_count] = (struct ref_group){ 0 };
        memset(&ref->groups[ref->group_count].options, 0xff, sizeof(struct ref_set));
        ref->group_count++;
        ref_try_group(ref, pod, ref->group_count - 1, price);
        ref->group_count--;
    }
    ref->where[pod] = REF_UNPLACED;
    ref->unplaced[p->level]++;
    ref_place_pods(ref, pod + 1, price);
    ref->unplaced[p->level]--;
}

static inline struct ref_result reference_solve(struct reference *ref)
{
    ref_place_pods(ref, 0, 0);
    ref->best.found = ref->has_best && ref->steps <= REF_STEPS_MAX;
    return ref->best;
}

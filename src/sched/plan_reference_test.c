/* The solver against a slow and obvious one (reference_testing.h), on thousands of tiny worlds: it
 * places what can be placed, and what it launches costs at most so much more than the best there
 * is. Both figures are measured; a change that makes them worse fails here.
 */
#include "sched/property_testing.h"
#include "sched/reference_plan_testing.h"

/* Worlds, of the 1500, in which the plan leaves out what the reference can place. The solver does not
 * try every order: what it misses are pods that find room only if a pod that could go anywhere goes
 * somewhere else first (to be near it, to make way for it), and packings that only a limit asks
 * for. Measured: 8. */
#define PLACES_LESS_MAX 10
/* Where not all pods can be placed, the plans place as many as the reference, nearly. */
#define PLACED_PERMILLE 985

static void load(struct world *w, const struct random_world *r)
{
    random_world_load(w, r, 1, "");
    w->options.preferences = PREFERENCES_IGNORE;
    w->options.effort = 1000000;
}

/* The pods that the plan does not place, per level of priority as the reference has them. */
static void count_misses(const struct reference *ref, const struct plan *plan,
                         uint32_t unplaced[REF_LEVELS_MAX])
{
    memset(unplaced, 0, REF_LEVELS_MAX * sizeof *unplaced);
    for (uint32_t i = 0; i < plan->miss_count; i++) {
        for (uint32_t p = 0; p < ref->pending_count; p++) {
            if (ref->pods[p].ix == plan->misses[i].pod)
                unplaced[ref->pods[p].level]++;
        }
    }
}

static int levels_cmp(const uint32_t *a, const uint32_t *b)
{
    for (uint32_t i = 0; i < REF_LEVELS_MAX; i++) {
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    }
    return 0;
}

static void tell(struct world *w, const struct reference *ref, const struct ref_result *best,
                 const struct plan *plan, struct buf *why)
{
    char price[USD_HOUR_TEXT_MAX];
    usd_hour_format(best->price, price);
    buf_addf(why, "the reference pays %s, in this order:\n", price);
    for (uint32_t i = 0; i < best->order_count; i++) {
        const struct ref_pod *p = &ref->pods[best->order[i]];
        int where = best->where[best->order[i]];
        buf_addf(why, "  %.*s: ", STR_ARG(p->pod->object.meta.name));
        if ((uint32_t)where < ref->home_count) {
            buf_addf(why, "node %.*s\n", STR_ARG(w->snap.nodes[where]->object.meta.name));
            continue;
        }
        uint32_t group = (uint32_t)where - ref->home_count;
        const struct ref_place *o = &ref->options[best->option[group]];
        const struct sched_pool *pool = &w->snap.pools[o->pool];
        const struct offering_shape *shape =
            &pool->types->shapes[pool->types->offering_shape[o->offering]];
        buf_addf(why, "new %u: %.*s %.*s %.*s %.*s\n", group, STR_ARG(pool->pool->object.meta.name),
                 STR_ARG(pool->types->names[o->type]), STR_ARG(shape->zone),
                 STR_ARG(shape->capacity_type));
    }
    usd_hour_format(plan->price, price);
    buf_addf(why, "the plan pays %s:\n", price);
    for (uint32_t i = 0; i < w->snap.pod_count; i++) {
        if (w->snap.pods[i]->node_name.len)
            continue;
        buf_addf(why, "  %.*s: %s\n", STR_ARG(w->snap.pods[i]->object.meta.name),
                 world_home_of(w, plan, i));
    }
    for (uint32_t i = 0; i < plan->launch_count; i++)
        buf_addf(why, "  launch %u: %s\n", i, world_launch(w, plan, i));
}

/* --- the checker agrees with the reference --- */

static bool checker_agrees(const struct random_world *r, struct buf *why)
{
    WORLD w;
    load(&w, r);
    struct reference *ref = arena_new(&w.arena, struct reference);
    reference_init(ref, &w.arena, &w.snap, false);
    struct ref_result best = reference_solve(ref);
    if (!best.found)
        return true;
    const struct plan *plan = reference_plan(ref, &best);
    struct check_result result = plan_check(&w.arena, &w.snap, w.options, plan);
    for (uint32_t i = 0; i < result.count; i++)
        buf_addf(why, "%.*s\n", STR_ARG(result.findings[i].what));
    if (result.count)
        tell(&w, ref, &best, plan, why);
    return result.count == 0;
}

TEST(the_checker_agrees_with_the_reference)
{
    property_check("checker_agrees", true, 800, checker_agrees);
}

/* --- nothing is called unschedulable that can be placed --- */

static struct {
    uint64_t worlds, gave_up, best, plan; /* pods placed, by the reference and by the plan */
} placed;

static uint32_t sum(const uint32_t levels[REF_LEVELS_MAX])
{
    uint32_t total = 0;
    for (uint32_t i = 0; i < REF_LEVELS_MAX; i++)
        total += levels[i];
    return total;
}

/* Down to the first priority of which the reference must leave some out, the plan leaves out none.
 * Which of equally important pods are left out is free. */
static bool places_what_can_be_placed(const struct random_world *r, struct buf *why)
{
    WORLD w;
    uint32_t unplaced[REF_LEVELS_MAX];
    load(&w, r);
    const struct plan *plan = plan_build(&w.arena, &w.snap, w.options);
    struct reference *ref = arena_new(&w.arena, struct reference);
    reference_init(ref, &w.arena, &w.snap, false);
    struct ref_result best = reference_solve(ref);
    count_misses(ref, plan, unplaced);
    placed.worlds++;
    placed.gave_up += !best.found;
    if (!best.found)
        return true;
    placed.best += ref->pending_count - sum(best.unplaced);
    placed.plan += ref->pending_count - sum(unplaced);
    for (uint32_t i = 0; i < REF_LEVELS_MAX && !best.unplaced[i]; i++) {
        if (!unplaced[i])
            continue;
        tell(&w, ref, &best, plan, why);
        buf_addz(why, "the plan places less\n");
        return false;
    }
    return true;
}

TEST(nearly_whatever_can_be_placed_is_placed)
{
    memset(&placed, 0, sizeof placed);
    uint64_t less = property_check_but("places_what_can_be_placed", true, 1500,
                                       places_what_can_be_placed, PLACES_LESS_MAX);
    printf("# %" PRIu64 " worlds, %" PRIu64 " too large for the reference: it places %" PRIu64
           " pods, the plans %" PRIu64 ", less in %" PRIu64 " worlds\n",
           placed.worlds, placed.gave_up, placed.best, placed.plan, less);
    EXPECT_TRUE(placed.gave_up * 100 <= placed.worlds);
    EXPECT_TRUE(placed.plan * 1000 >= placed.best * PLACED_PERMILLE);
}

/* --- and it costs little more than it must --- */

/* Of what is launched, over the best for the same pods: on each of the sampled worlds, and on
 * average. Of so few pods a node too many is a large part. Measured: 2.56 and 0.011. */
#define EXCESS_MAX 2.6
#define EXCESS_MEAN_MAX 0.015

static struct {
    uint64_t worlds, optimal, max_seed;
    double sum, max;
} excess;

/* Which worlds have a best price that karve means to reach? Not where
 *
 *   - a pool that may be full is heavier than another: which pods must go to which then depends on
 *     the order in which they come,
 *   - there is a choice of terms in a required node affinity: the first that works is taken,
 *   - a spread leaves a choice of domains: the emptiest is taken.
 *
 * The reference leaves these open. */
static bool price_is_comparable(const struct world *w)
{
    bool limited = false, differ = false;
    vec_each(&w->pools, struct sched_pool, p) {
        limited |= p->pool->spec.limits.count > 0;
        differ |= p->pool->spec.weight.value != w->pools.items[0].pool->spec.weight.value;
    }
    vec_each(&w->pods, const struct pod *, it) {
        const struct affinity *a = (*it)->maybe_affinity;
        if (a && a->node.maybe_required && a->node.maybe_required->terms.count > 1)
            return false;
        for (uint32_t i = 0; i < (*it)->spec->spread.count; i++) {
            const struct spread_constraint *c = &(*it)->spec->spread.items[i];
            if (c->when_unsatisfiable == UNSATISFIABLE_DO_NOT_SCHEDULE && c->max_skew > 1 &&
                !str_eqz(c->topology_key, LABEL_HOSTNAME))
                return false;
        }
    }
    return !limited || !differ;
}

static bool is_launched(const struct plan *plan, uint32_t pod)
{
    for (uint32_t i = 0; i < plan->launch_count; i++) {
        if (world_has(&plan->launches[i].pods, pod))
            return true;
    }
    return false;
}

/* The best way to launch for the pods that the plan launches for. The others stay where the plan
 * has them. */
static struct ref_result best_launches(struct reference *ref, struct world *w,
                                       const struct plan *plan)
{
    reference_init(ref, &w->arena, &w->snap, true);
    for (uint32_t p = 0; p < ref->pending_count; p++) {
        struct ref_pod *pod = &ref->pods[p];
        uint32_t homes = 0;
        for (uint32_t i = 0; i < plan->existing_count; i++) {
            if (world_has(&plan->existing[i].pods, pod->ix))
                homes |= 1u << plan->existing[i].node;
        }
        pod->homes &= homes;
        pod->alike = p;
        if (!is_launched(plan, pod->ix))
            pod->options = (struct ref_set){ 0 };
        for (uint32_t q = 0; q < p && is_launched(plan, pod->ix); q++) {
            if (ref_alike(pod, &ref->pods[q]) && is_launched(plan, ref->pods[q].ix))
                pod->alike = q;
        }
    }
    return reference_solve(ref);
}

static bool costs_little_more(const struct random_world *r, struct buf *why)
{
    WORLD w;
    uint32_t unplaced[REF_LEVELS_MAX];
    load(&w, r);
    if (!price_is_comparable(&w))
        return true;
    const struct plan *plan = plan_build(&w.arena, &w.snap, w.options);
    struct reference *ref = arena_new(&w.arena, struct reference);
    struct ref_result best = best_launches(ref, &w, plan);
    /* Topology may leave only a lighter pool to some pod; and a domain that is full does not count
     * for a spread any more, which the reference does not know. */
    count_misses(ref, plan, unplaced);
    if (!best.found || levels_cmp(unplaced, best.unplaced) != 0 || plan->price < best.price)
        return true;

    double over = plan->price == best.price
                      ? 0
                      : usd_hour_double(plan->price) / usd_hour_double(best.price + 1) - 1;
    excess.worlds++;
    excess.optimal += plan->price == best.price;
    excess.sum += over;
    if (over > excess.max) {
        excess.max = over;
        excess.max_seed = r->seed;
    }
    bool holds = over <= EXCESS_MAX && plan->lower_bound <= best.price;
    if (!holds) {
        tell(&w, ref, &best, plan, why);
        char bound[USD_HOUR_TEXT_MAX];
        usd_hour_format(plan->lower_bound, bound);
        buf_addf(why, "and says that nothing costs less than %s\n", bound);
    }
    return holds;
}

TEST(launches_cost_little_more_than_the_best_and_no_less_than_the_bound)
{
    memset(&excess, 0, sizeof excess);
    property_check("costs_little_more", true, 1500, costs_little_more);
    double worlds = excess.worlds ? (double)excess.worlds : 1;
    printf("# %" PRIu64 " worlds: %.1f %% of plans are the best there is; on average they cost "
           "%.2f %% more, at most %.1f %% (seed %" PRIu64 ")\n",
           excess.worlds, 100 * (double)excess.optimal / worlds, 100 * excess.sum / worlds,
           100 * excess.max, excess.max_seed);
    EXPECT_TRUE(excess.sum <= EXCESS_MEAN_MAX * worlds);
}

/* --- the reference itself, on worlds that can be solved in the head --- */

static struct ref_result solve(struct world *w)
{
    struct reference *ref = arena_new(&w->arena, struct reference);
    reference_init(ref, &w->arena, &w->snap, true);
    struct ref_result best = reference_solve(ref);
    EXPECT_TRUE(best.found);
    return best;
}

#define PODS(labels, requests, more)                                                               \
    "metadata: {labels: " labels "}\nspec:\n  containers: [{name: c, image: i, resources: "        \
    "{requests: " requests "}}]\n" more
#define SPREAD(key)                                                                                \
    "  topologySpreadConstraints: [{maxSkew: 1, topologyKey: " key                                 \
    ", whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: a}}}]\n"
#define ANTI(key)                                                                                  \
    "  affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "              \
    "[{labelSelector: {matchLabels: {app: a}}, topologyKey: " key "}]}}\n"

TEST(reference_packs_pods_onto_the_cheapest_nodes)
{
    WORLD w;
    world_load(&w, WORLD_POOL("p", "[]", ""), WORLD_TYPES_SMALL);
    world_add_pods(&w, 5, "a", PODS("{app: a}", "{cpu: 1, memory: 1Gi}", ""));
    /* A medium for 0.08 (or an arm for 0.064) holds four, a small for 0.04 two. */
    EXPECT_EQ(solve(&w).price, USD_HOUR_ONE * 104 / 1000);
}

TEST(reference_uses_nodes_that_are_there)
{
    WORLD w;
    world_load(&w, WORLD_POOL("p", "[]", "") WORLD_NODE("one", "zone-a", "", "cpu: 2, memory: 4Gi"),
               WORLD_TYPES_SMALL);
    world_add_pods(&w, 3, "a", PODS("{app: a}", "{cpu: 1, memory: 1Gi}", ""));
    EXPECT_EQ(solve(&w).price, USD_HOUR_ONE * 40 / 1000);
}

TEST(reference_spreads_over_zones_and_hosts)
{
    WORLD w;
    world_load(&w, WORLD_POOL("p", "[]", ""), WORLD_TYPES_SMALL);
    world_add_pods(&w, 4, "a", PODS("{app: a}", "{cpu: 1}", SPREAD("topology.kubernetes.io/zone")));
    EXPECT_EQ(solve(&w).price, USD_HOUR_ONE * (40 + 41 + 42) / 1000);
    world_add_pods(&w, 2, "b", PODS("{app: a}", "{cpu: 1}", ANTI("kubernetes.io/hostname")));
    EXPECT_EQ(solve(&w).price, USD_HOUR_ONE * (40 + 41 + 42 + 40) / 1000);
}

TEST(reference_leaves_out_what_cannot_be_placed_by_priority)
{
    WORLD w;
    world_load(&w, WORLD_POOL("p", "[]", "  limits: {nodes: 1}\n"), WORLD_TYPES_SMALL);
    world_add_pods(&w, 2, "low", PODS("{app: a}", "{cpu: 1}", ANTI("kubernetes.io/hostname")));
    world_add_pods(&w, 1, "high",
                   PODS("{app: a}", "{cpu: 7}", ANTI("kubernetes.io/hostname") "  priority: 9\n"));
    struct ref_result best = solve(&w);
    EXPECT_EQ(best.unplaced[0], 0);
    EXPECT_EQ(best.unplaced[1], 2);
    EXPECT_EQ(best.price, USD_HOUR_ONE * 160 / 1000);
}

TEST(reference_takes_the_heavier_pool)
{
    WORLD w;
    world_load(&w,
               WORLD_POOL("cheap", "[]", "") WORLD_POOL(
                   "dear", "[{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]",
                   "  weight: 5\n"),
               WORLD_TYPES_SMALL);
    world_add_pods(&w, 1, "a", PODS("{app: a}", "{cpu: 1}", ""));
    EXPECT_EQ(solve(&w).price, USD_HOUR_ONE * 100 / 1000);
}

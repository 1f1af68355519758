/* What must hold of the plan for any world. Worlds are random (world_random_testing.h); one that
 * breaks a property is shrunk and printed with its seed.
 */
#include "sched/fits_testing.h"
#include "sched/property_testing.h"

/* Enough for every improvement of worlds as small as these. */
#define EFFORT 200000

static struct plan_options random_options(const struct random_world *r)
{
    struct plan_options options = PLAN_OPTIONS_DEFAULT;
    options.effort = r->seed % 5 == 0 ? 0 : EFFORT;
    options.preferences = r->seed % 3 == 0 ? PREFERENCES_IGNORE : PREFERENCES_RESPECT;
    options.min_values = r->seed % 4 == 0 ? MIN_VALUES_BEST_EFFORT : MIN_VALUES_STRICT;
    options.types_max = r->seed % 7 == 0 ? 3 : 0;
    return options;
}

/* A random world, loaded; in some of them a pool is not ready. */
static void load(struct world *w, const struct random_world *r, uint32_t scale, const char *more)
{
    random_world_load(w, r, scale, more);
    w->options = random_options(r);
    vec_each(&w->pools, struct sched_pool, p) {
        if (r->seed % 11 == 0 && str_eqz(p->pool->object.meta.name, "pool-1"))
            p->not_ready = STR("its node class is not ready");
    }
}

/* --- a plan as text, by names --- */

static void add_pod(const struct world *w, uint32_t pod, struct buf *out)
{
    const struct meta *meta = &w->snap.pods[pod]->object.meta;
    buf_addf(out, " %.*s/%.*s", STR_ARG(meta->namespace_), STR_ARG(meta->name));
}

static void add_pods(const struct world *w, const struct plan_pods *pods, struct buf *out)
{
    for (uint32_t i = 0; i < pods->count; i++)
        add_pod(w, pods->items[i], out);
    buf_addc(out, '\n');
}

static struct str pool_name(const struct world *w, uint32_t pool)
{
    return pool == PLAN_NONE ? STR("any pool") : w->snap.pools[pool].pool->object.meta.name;
}

static void add_launch(struct world *w, const struct plan *plan, uint32_t i, bool amounts,
                       struct buf *out)
{
    const struct plan_launch *l = &plan->launches[i];
    buf_addf(out, "launch %s%s\n  types", world_launch(w, plan, i),
             l->min_values_relaxed ? " relaxed" : "");
    for (uint32_t t = 0; t < l->type_count; t++)
        buf_addf(out, " %.*s", STR_ARG(w->snap.pools[l->pool].types->names[l->types[t]]));
    buf_addz(out, "\n  requirements ");
    requirements_format(&l->requirements, out);
    buf_addz(out, "\n  labels");
    for (uint32_t k = 0; k < l->labels.count; k++)
        buf_addf(out, " %.*s=%.*s", STR_ARG(l->labels.items[k].key),
                 STR_ARG(l->labels.items[k].value));
    buf_addz(out, "\n  requests");
    for (uint32_t k = 0; amounts && k < l->requests.count; k++) {
        char text[QUANTITY_TEXT_MAX];
        quantity_format(l->requests.items[k].amount, text);
        buf_addf(out, " %.*s=%s", STR_ARG(l->requests.items[k].name), text);
    }
    buf_addz(out, "\n  pods");
    add_pods(w, &l->pods, out);
}

static void add_miss(const struct world *w, const struct plan_miss *miss, bool amounts,
                     struct buf *out)
{
    buf_addz(out, "miss");
    add_pod(w, miss->pod, out);
    for (uint32_t i = 0; i < miss->reason_count; i++) {
        const struct plan_blame *blame = &miss->reasons[i];
        struct str pool = pool_name(w, blame->pool);
        buf_addf(out, "\n  %.*s %s", STR_ARG(pool), plan_reason_names[blame->reason]);
        if (amounts)
            buf_addf(out, " %.*s", STR_ARG(blame->detail));
    }
    buf_addc(out, '\n');
}

/* All that a plan says; without amounts, what should stay when all amounts are doubled. */
static void plan_text(struct world *w, const struct plan *plan, bool amounts, struct buf *out)
{
    char price[USD_HOUR_TEXT_MAX], bound[USD_HOUR_TEXT_MAX];
    for (uint32_t i = 0; i < plan->launch_count; i++)
        add_launch(w, plan, i, amounts, out);
    for (uint32_t i = 0; i < plan->existing_count; i++) {
        const struct plan_existing *e = &plan->existing[i];
        buf_addf(out, "%s %.*s:", e->node == PLAN_NONE ? "claim" : "node",
                 STR_ARG(e->node == PLAN_NONE ? w->snap.claims[e->claim]->object.meta.name
                                              : w->snap.nodes[e->node]->object.meta.name));
        add_pods(w, &e->pods, out);
    }
    for (uint32_t i = 0; i < plan->miss_count; i++)
        add_miss(w, &plan->misses[i], amounts, out);
    for (uint32_t i = 0; i < plan->skip_count; i++) {
        buf_addz(out, "skip");
        add_pod(w, plan->skips[i].pod, out);
        buf_addf(out, " %.*s\n", STR_ARG(plan->skips[i].reason));
    }
    buf_addz(out, "order");
    add_pods(w, &plan->order, out);
    usd_hour_format(plan->price, price);
    usd_hour_format(plan->lower_bound, bound);
    buf_addf(out, "price %s bound %s classes %u steps %" PRIu64 "\n", price, bound,
             plan->class_count, plan->steps);
}

static const struct plan *build(struct world *w)
{
    return plan_build(&w->arena, &w->snap, w->options);
}

/* --- 1. a plan passes the checker --- */

static bool passes_checker(struct world *w, struct buf *why)
{
    const struct plan *plan = build(w);
    struct check_result result = plan_check(&w->arena, &w->snap, w->options, plan);
    for (uint32_t i = 0; i < result.count; i++)
        buf_addf(why, "%.*s\n", STR_ARG(result.findings[i].what));
    if (result.count)
        plan_text(w, plan, true, why);
    return result.count == 0;
}

static bool checker_agrees(const struct random_world *r, struct buf *why)
{
    WORLD w;
    load(&w, r, 1, "");
    return passes_checker(&w, why);
}

TEST(plans_pass_the_checker)
{
    property_check("checker_agrees", false, 2000, checker_agrees);
}

static bool checker_agrees_on_images(const struct random_world *r, struct buf *why)
{
    WORLD w;
    load(&w, r, 1, "");
    world_fits_random(&w, r->seed);
    return passes_checker(&w, why);
}

TEST(plans_for_pods_whose_images_do_not_run_everywhere_pass_the_checker)
{
    property_check("checker_agrees_on_images", false, 1000, checker_agrees_on_images);
}

/* --- 2. order does not show --- */

static void shuffle_bytes(struct rng *rng, void *items, size_t count, size_t size)
{
    char *bytes = items, tmp[sizeof(struct sched_pool)];
    KV_ASSERT(size <= sizeof tmp);
    for (size_t i = count; i > 1; i--) {
        size_t j = rng_below(rng, i);
        memcpy(tmp, bytes + j * size, size);
        memmove(bytes + j * size, bytes + (i - 1) * size, size);
        memcpy(bytes + (i - 1) * size, tmp, size);
    }
}
#define SHUFFLE(rng, vec) shuffle_bytes((rng), (vec).items, (vec).count, sizeof *(vec).items)

static void shuffle(struct world *w, uint64_t seed)
{
    struct rng rng;
    rng_init(&rng, seed);
    SHUFFLE(&rng, w->pods);
    SHUFFLE(&rng, w->nodes);
    SHUFFLE(&rng, w->claims);
    SHUFFLE(&rng, w->pools);
    SHUFFLE(&rng, w->daemon_sets);
    SHUFFLE(&rng, w->pvcs);
    SHUFFLE(&rng, w->pvs);
    SHUFFLE(&rng, w->storage_classes);
    SHUFFLE(&rng, w->csi_nodes);
    SHUFFLE(&rng, w->namespaces);
    SHUFFLE(&rng, w->priority_classes);
    world_refresh(w);
}

static bool texts_equal(const struct buf *a, const struct buf *b, struct buf *why)
{
    if (str_eq(buf_str(a), buf_str(b)))
        return true;
    buf_addf(why, "%s--- and then ---\n%s", buf_str(a).p, buf_str(b).p);
    return false;
}

static bool order_does_not_show(const struct random_world *r, struct buf *why)
{
    WORLD w;
    AUTO_BUF before = { 0 }, after = { 0 };
    load(&w, r, 1, "");
    plan_text(&w, build(&w), true, &before);
    shuffle(&w, r->seed);
    plan_text(&w, build(&w), true, &after);
    return texts_equal(&before, &after, why);
}

static bool order_does_not_show_with_images(const struct random_world *r, struct buf *why)
{
    WORLD w;
    AUTO_BUF before = { 0 }, after = { 0 };
    load(&w, r, 1, "");
    world_fits_random(&w, r->seed);
    plan_text(&w, build(&w), true, &before);
    shuffle(&w, r->seed);
    world_fits_random(&w, r->seed);
    plan_text(&w, build(&w), true, &after);
    return texts_equal(&before, &after, why);
}

TEST(plans_do_not_depend_on_the_order_of_objects)
{
    property_check("order_does_not_show", false, 1000, order_does_not_show);
    property_check("order_does_not_show_with_images", false, 400, order_does_not_show_with_images);
}

/* --- 3. another pool harms nobody --- */

static bool is_missed(const struct plan *plan, uint32_t pod)
{
    for (uint32_t i = 0; i < plan->miss_count; i++) {
        if (plan->misses[i].pod == pod)
            return true;
    }
    return false;
}

/* Pods are loaded in the same order both times, so indices mean the same. */
static bool no_new_misses(const struct random_world *r, const char *pool, struct buf *why)
{
    WORLD before, after;
    load(&before, r, 1, "");
    load(&after, r, 1, pool);
    const struct plan *a = build(&before), *b = build(&after);
    bool holds = true;
    for (uint32_t i = 0; i < b->miss_count; i++) {
        if (is_missed(a, b->misses[i].pod))
            continue;
        buf_addz(why, "no longer placed:");
        add_pod(&after, b->misses[i].pod, why);
        buf_addc(why, '\n');
        holds = false;
    }
    /* Those that have a place now may be in the way of others, but not of more than they are. */
    holds |= b->miss_count < a->miss_count;
    if (!holds) {
        plan_text(&before, a, true, why);
        buf_addz(why, "--- and then ---\n");
        plan_text(&after, b, true, why);
    }
    return holds;
}

/* A pool that is no other than one that is there, but of no weight and without limits. */
static bool lighter_pool_harms_nobody(const struct random_world *r, struct buf *why)
{
    AUTO_BUF pool = { 0 };
    vec_each(&r->things, struct thing, t) {
        if (t->kind != THING_POOL || t->off || pool.len)
            continue;
        struct str rest = t->head, line;
        while (rest.len) {
            str_cut(rest, '\n', &line, &rest);
            buf_add(&pool, str_starts(line, STR("metadata: ")) ? STR("metadata: {name: unrelated}")
                                                               : line);
            buf_addc(&pool, '\n');
        }
        for (uint32_t i = 0; i < t->part_count; i++) {
            if (!t->parts[i].off && !str_starts(t->parts[i].text, STR("  weight")) &&
                !str_starts(t->parts[i].text, STR("  limits")))
                buf_add(&pool, t->parts[i].text);
        }
    }
    return no_new_misses(r, buf_str(&pool).p, why);
}

static bool tainted_pool_harms_nobody(const struct random_world *r, struct buf *why)
{
    return no_new_misses(
        r,
        WORLD_POOL("unrelated", "[]",
                   "      taints: [{key: nobody, value: tolerates, effect: NoSchedule}]\n"
                   "  weight: 100\n"),
        why);
}

TEST(another_pool_of_less_weight_makes_no_pod_unschedulable)
{
    property_check("lighter_pool_harms_nobody", false, 1000, lighter_pool_harms_nobody);
}

TEST(another_pool_with_a_taint_makes_no_pod_unschedulable)
{
    property_check("tainted_pool_harms_nobody", false, 600, tainted_pool_harms_nobody);
}

/* --- 4. amounts have no unit --- */

static bool doubling_changes_nothing(const struct random_world *r, struct buf *why)
{
    WORLD once, twice;
    AUTO_BUF before = { 0 }, after = { 0 };
    load(&once, r, 1, "");
    load(&twice, r, 2, "");
    plan_text(&once, build(&once), false, &before);
    plan_text(&twice, build(&twice), false, &after);
    return texts_equal(&before, &after, why);
}

TEST(doubling_every_amount_changes_nothing)
{
    property_check("doubling_changes_nothing", false, 1000, doubling_changes_nothing);
}

/* --- 6. and 7. --- */

static bool same_again(const struct random_world *r, struct buf *why)
{
    WORLD w;
    AUTO_BUF before = { 0 }, after = { 0 };
    load(&w, r, 1, "");
    plan_text(&w, build(&w), true, &before);
    plan_text(&w, build(&w), true, &after); /* in memory that is laid out otherwise */
    return texts_equal(&before, &after, why);
}

TEST(equal_snapshots_have_equal_plans)
{
    property_check("same_again", false, 1000, same_again);
}

static bool every_pod_once(const struct random_world *r, struct buf *why)
{
    WORLD w;
    load(&w, r, 1, "");
    const struct plan *plan = build(&w);
    uint32_t *seen = arena_array(&w.arena, uint32_t, w.snap.pod_count);
    for (uint32_t i = 0; i < plan->launch_count; i++) {
        for (uint32_t k = 0; k < plan->launches[i].pods.count; k++)
            seen[plan->launches[i].pods.items[k]]++;
    }
    for (uint32_t i = 0; i < plan->existing_count; i++) {
        for (uint32_t k = 0; k < plan->existing[i].pods.count; k++)
            seen[plan->existing[i].pods.items[k]]++;
    }
    for (uint32_t i = 0; i < plan->miss_count; i++)
        seen[plan->misses[i].pod]++;
    for (uint32_t i = 0; i < plan->skip_count; i++)
        seen[plan->skips[i].pod]++;
    bool holds = true;
    for (uint32_t i = 0; i < w.snap.pod_count; i++) {
        if (seen[i] == (w.snap.pods[i]->node_name.len ? 0 : 1))
            continue;
        add_pod(&w, i, why);
        buf_addf(why, " is in the plan %u times\n", seen[i]);
        holds = false;
    }
    return holds;
}

TEST(every_pod_that_waits_is_in_the_plan_once)
{
    property_check("every_pod_once", false, 500, every_pod_once);
}

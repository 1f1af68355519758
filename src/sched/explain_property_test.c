/* What must hold of explanations in any world (world_random_testing.h): they agree with the solver,
 * and with themselves.
 */
#include "sched/domains.h"
#include "sched/explain.h"
#include "sched/fits_testing.h"
#include "sched/property_testing.h"

#define SEEDS 1000

#define FAIL(why, ...) (buf_addf((why), __VA_ARGS__), false)

static bool steps_hold(const struct snapshot *snap, const struct explain_pool *pool,
                       struct buf *why)
{
    const struct instance_types *types = snap->pools[pool->pool].types;
    uint32_t left = types ? types->type_count : 0;
    if (pool->reason == REASON_NODEPOOL_NOT_READY && !pool->possible)
        return pool->step_count == 0 || FAIL(why, "steps of a pool that is not ready");
    for (uint32_t i = 0; i < pool->step_count; i++) {
        const struct explain_step *step = &pool->steps[i];
        if (step->before != left)
            return FAIL(why, "step %u starts with %u types, %u were left", i, step->before, left);
        if (step->after > step->before)
            return FAIL(why, "step %u adds types", i);
        if (!step->what.len)
            return FAIL(why, "step %u says nothing", i);
        left = step->after;
    }
    if (pool->possible != (left > 0))
        return FAIL(why, "%u types are left of a pool that is %spossible", left,
                    pool->possible ? "" : "not ");
    if (pool->possible)
        return (!pool->detail.len && !pool->edit.len) || FAIL(why, "a reason for nothing");
    if (pool->steps[pool->step_count - 1].reason != pool->reason)
        return FAIL(why, "the reason is not that of the last step");
    return pool->detail.len > 0 || FAIL(why, "no sentence");
}

/* A term over a label that new nodes may lack: kube-scheduler lets a pod that does not need the
 * label go there, the solver launches only where the domain is known. */
static bool label_may_lack(const struct model *m, const struct pod_class *c)
{
    const struct variant *v = &c->variants[0];
    for (uint32_t i = 0; i < c->matched_count + v->owned_count; i++) {
        uint32_t group = i < c->matched_count ? c->matched[i] : v->owned[i - c->matched_count];
        uint32_t key = m->groups[group].key;
        for (uint32_t p = 0; p < m->pool_count && key != KEY_HOSTNAME; p++) {
            struct str_list known = m->pools[p].well_known;
            if (!str_sorted_has(known.items, known.count, m->keys[key].name))
                return true;
        }
    }
    return false;
}

/* Whether a new host can do is found out when it is filled, not when it is asked for. */
static bool wants_a_host(const struct model *m, const struct pod_class *c)
{
    const struct variant *v = &c->variants[c->variant_count - 1];
    for (uint32_t i = 0; i < v->owned_count; i++) {
        const struct group *g = &m->groups[v->owned[i]];
        if (g->kind == GROUP_AFFINITY && g->key == KEY_HOSTNAME)
            return true;
    }
    return false;
}

/* The first pod of the class, with nothing else placed: does the solver find it a new node exactly
 * if some pool is said to be possible? */
static bool agrees(struct model *m, uint32_t class_, struct arena *arena, struct buf *why)
{
    const struct pod_class *c = &m->classes[class_];
    struct state s;
    bool launched = false, placed = false, possible = false, held = true;
    state_init(&s, m, arena);
    struct explanation e = explain_class(&s, class_, arena);
    for (uint32_t i = 0; i < e.pool_count && held; i++) {
        possible |= e.pools[i].possible;
        held = steps_hold(m->snap, &e.pools[i], why);
    }
    struct items items = { 0 };
    for (uint32_t v = 0; v < c->variant_count && !placed; v++)
        placed = domains_place(&s, class_, v, 1, &items) == 0;
    launched = items.list.count > 0;
    vec_done(&items.list);
    state_done(&s);
    if (held && !placed && possible)
        held = FAIL(why, "class %u: possible, but not placed", class_);
    if (held && launched && !possible && !wants_a_host(m, c))
        held = FAIL(why, "class %u: launched, but not possible", class_);
    if (held && placed && !launched && e.homes_full == e.homes_considered)
        held = FAIL(why, "class %u: on a node, but none takes it", class_);
    return held;
}

static bool solver_agrees(const struct random_world *r, struct buf *why)
{
    WORLD w;
    AUTO_ARENA arena = { 0 };
    struct model m;
    bool held = true;
    random_world_load(&w, r, 1, "");
    if (r->seed % 2 == 0)
        world_fits_random(&w, r->seed);
    if (r->seed % 4 == 0)
        w.options.min_values = MIN_VALUES_BEST_EFFORT;
    model_compile(&m, &arena, &w.snap, w.options);
    for (uint32_t i = 0; i < m.class_count && held; i++) {
        if (!m.classes[i].maybe_refused && !label_may_lack(&m, &m.classes[i]))
            held = agrees(&m, i, &arena, why);
    }
    model_done(&m);
    return held;
}

TEST(a_pool_is_possible_exactly_if_the_solver_would_launch_from_it)
{
    property_check("a pool is possible exactly if the solver would launch from it", false, SEEDS,
                   solver_agrees);
}

static bool is_missed(const struct plan *plan, uint32_t pod)
{
    for (uint32_t i = 0; i < plan->miss_count; i++) {
        if (plan->misses[i].pod == pod)
            return true;
    }
    return false;
}

static bool plan_is_told(const struct random_world *r, struct buf *why)
{
    WORLD w;
    random_world_load(&w, r, 1, "");
    if (r->seed % 2 == 0)
        world_fits_random(&w, r->seed);
    w.options.effort = 20000;
    const struct plan *plan = plan_build(&w.arena, &w.snap, w.options);
    uint32_t count = plan->order.count + plan->miss_count;
    uint32_t *pods = arena_array(&w.arena, uint32_t, count);
    struct explanation *told = arena_array(&w.arena, struct explanation, count);
    for (uint32_t i = 0; i < plan->order.count; i++)
        pods[i] = plan->order.items[i];
    for (uint32_t i = 0; i < plan->miss_count; i++)
        pods[plan->order.count + i] = plan->misses[i].pod;
    plan_explain(&w.arena, &w.snap, w.options, plan, pods, count, told);

    /* Per class: pods that the plan has placed and missed are those that are told of. */
    for (uint32_t i = 0; i < count; i++) {
        uint32_t placed = 0, missed = 0;
        for (uint32_t k = 0; k < count; k++) {
            if (told[k].class_ != told[i].class_)
                continue;
            missed += is_missed(plan, pods[k]);
            placed += !is_missed(plan, pods[k]);
        }
        if (told[i].on_homes + told[i].on_launches != placed || told[i].missed != missed)
            return FAIL(why, "class %u: %u placed and %u missed, told of %u + %u and %u",
                        told[i].class_, placed, missed, told[i].on_homes, told[i].on_launches,
                        told[i].missed);
    }
    for (uint32_t i = 0; i < plan->miss_count; i++) {
        for (uint32_t k = 0; k < plan->misses[i].reason_count; k++) {
            const struct plan_blame *blame = &plan->misses[i].reasons[k];
            if (!blame->detail.len)
                return FAIL(why, "a reason without a sentence");
        }
        if (!plan->misses[i].reason_count)
            return FAIL(why, "a miss without a reason");
    }
    return true;
}

TEST(every_pod_of_a_plan_is_told_of_where_the_plan_has_it)
{
    property_check("every pod of a plan is told of where the plan has it", false, SEEDS,
                   plan_is_told);
}

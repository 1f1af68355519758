/* Book-keeping: every pod that waits for a node is in the plan exactly once and no other is, lists
 * are in their order, sums add up, and what is said of pods that are left out is true.
 */
#include "sched/check_inner.h"

#include <inttypes.h>

/* --- indices --- */

static bool pods_there(struct checker *c, struct plan_pods pods, const char *where)
{
    for (uint32_t i = 0; i < pods.count; i++) {
        if (pods.items[i] >= c->snap->pod_count) {
            finding(c, PLAN_NONE, PLAN_NONE, "%s: pod %" PRIu32 " is not in the snapshot", where,
                    pods.items[i]);
            return false;
        }
    }
    return true;
}

static bool launch_there(struct checker *c, uint32_t i)
{
    const struct plan_launch *l = &c->plan->launches[i];
    if (l->pool >= c->snap->pool_count) {
        finding(c, PLAN_NONE, i, "launch %" PRIu32 ": its pool is not in the snapshot", i);
        return false;
    }
    const struct sched_pool *pool = &c->snap->pools[l->pool];
    const struct instance_types *types = pool->types;
    if (!types) {
        finding(c, PLAN_NONE, i, "launch %" PRIu32 ": pool %.*s has no instance types", i,
                STR_ARG(pool->pool->object.meta.name));
        return false;
    }
    bool there = l->type < types->type_count && l->offering < types->offering_count &&
                 l->row < types->row_count && l->type_count > 0;
    for (uint32_t t = 0; t < l->type_count; t++)
        there = there && l->types[t] < types->type_count;
    if (!there) {
        finding(c, PLAN_NONE, i, "launch %" PRIu32 ": pool %.*s does not have its type or offering",
                i, STR_ARG(pool->pool->object.meta.name));
        return false;
    }
    return pods_there(c, l->pods, "a launch");
}

static bool existing_there(struct checker *c, const struct plan_existing *e)
{
    bool node = e->node != PLAN_NONE, claim = e->claim != PLAN_NONE;
    if (node == claim || (node && e->node >= c->snap->node_count) ||
        (claim && e->claim >= c->snap->claim_count)) {
        finding(c, PLAN_NONE, PLAN_NONE,
                "existing: expected one node or one claim of the snapshot");
        return false;
    }
    return pods_there(c, e->pods, "existing");
}

bool check_indices(struct checker *c)
{
    const struct plan *plan = c->plan;
    bool there = pods_there(c, plan->order, "order");
    for (uint32_t i = 0; i < plan->launch_count; i++)
        there = launch_there(c, i) && there;
    for (uint32_t i = 0; i < plan->existing_count; i++)
        there = existing_there(c, &plan->existing[i]) && there;
    for (uint32_t i = 0; i < plan->miss_count; i++)
        there = pods_there(c, (struct plan_pods){ &plan->misses[i].pod, 1 }, "misses") && there;
    for (uint32_t i = 0; i < plan->skip_count; i++)
        there = pods_there(c, (struct plan_pods){ &plan->skips[i].pod, 1 }, "skips") && there;
    return there;
}

/* --- who is for us --- */

bool pod_is_owned_by(const struct pod *pod, const char *kind)
{
    for (uint32_t i = 0; i < pod->object.meta.owners.count; i++) {
        if (str_eqz(pod->object.meta.owners.items[i].kind, kind))
            return true;
    }
    return false;
}

static bool of_daemon_set(const struct pod *pod)
{
    return pod_is_owned_by(pod, "DaemonSet");
}

static bool of_node(const struct pod *pod)
{
    return pod_is_mirror(pod) || pod_is_owned_by(pod, "Node");
}

static bool nominated(const struct pod *pod)
{
    return pod->status->nominated_node.len > 0;
}

static bool term_opts_out(const struct node_selector_term *term)
{
    for (uint32_t i = 0; i < term->expressions.count; i++) {
        const struct expression *e = &term->expressions.items[i];
        if (e->op == OP_DOES_NOT_EXIST && str_eqz(e->key, LABEL_NODEPOOL))
            return true;
    }
    return false;
}

/* Each term of the required affinity wants a node that no pool has launched. */
static bool opted_out(const struct pod *pod)
{
    const struct node_selector *required =
        pod->maybe_affinity ? pod->maybe_affinity->node.maybe_required : NULL;
    for (uint32_t i = 0; required && i < required->terms.count; i++) {
        if (!term_opts_out(&required->terms.items[i]))
            return false;
    }
    return required && required->terms.count;
}

/* kube-scheduler has not said that it finds no node. */
static bool not_called_unschedulable(const struct pod *pod)
{
    const struct pod_condition *scheduled = pod_condition(pod, STR("PodScheduled"));
    return !scheduled || !str_eqz(scheduled->reason, "Unschedulable");
}

static const struct skip_rule {
    const char *word; /* a reason has it if it is about this */
    bool (*holds)(const struct pod *pod);
    bool live_only; /* only if plan_options.only_unschedulable */
} skip_rules[] = {
    { "gate", pod_is_gated },        { "nominated", nominated },
    { "DaemonSet", of_daemon_set },  { "mirror", of_node },
    { "finished", pod_is_terminal }, { "deleted", pod_is_terminating },
    { "opted out", opted_out },      { "scheduler", not_called_unschedulable, .live_only = true },
};

static bool skip_rule_holds(const struct checker *c, const struct skip_rule *rule,
                            const struct pod *pod)
{
    return (!rule->live_only || c->options.only_unschedulable) && rule->holds(pod);
}

static bool is_for_us(const struct checker *c, const struct pod *pod)
{
    for (size_t i = 0; i < KV_COUNT_OF(skip_rules); i++) {
        if (skip_rule_holds(c, &skip_rules[i], pod))
            return false;
    }
    return true;
}

static bool text_has(struct str text, const char *word)
{
    return memmem(text.p, text.len, word, strlen(word)) != NULL;
}

static void check_skip(struct checker *c, const struct plan_skip *skip)
{
    const struct pod *pod = c->snap->pods[skip->pod];
    for (size_t i = 0; i < KV_COUNT_OF(skip_rules); i++) {
        if (!text_has(skip->reason, skip_rules[i].word))
            continue;
        if (!skip_rule_holds(c, &skip_rules[i], pod))
            finding(c, skip->pod, PLAN_NONE, "%s is skipped (%.*s), and that is not so",
                    pod_shown(c, skip->pod), STR_ARG(skip->reason));
        return;
    }
    finding(c, skip->pod, PLAN_NONE, "%s is skipped for a reason that is not known: %s",
            pod_shown(c, skip->pod), STR_SHOWN(skip->reason));
}

/* --- each once --- */

enum seat { SEAT_NONE, SEAT_LAUNCH, SEAT_EXISTING, SEAT_MISS, SEAT_SKIP };
static const char *const seat_names[] = { "nowhere", "launches", "existing", "misses", "skips" };

static void seat_take(struct checker *c, uint8_t *seats, uint32_t pod, enum seat seat)
{
    if (seats[pod] != SEAT_NONE)
        finding(c, pod, PLAN_NONE, "%s is in the plan twice: in %s and in %s", pod_shown(c, pod),
                seat_names[seats[pod]], seat_names[seat]);
    seats[pod] = (uint8_t)seat;
}

static void seat_take_all(struct checker *c, uint8_t *seats, struct plan_pods pods, enum seat seat)
{
    for (uint32_t i = 0; i < pods.count; i++)
        seat_take(c, seats, pods.items[i], seat);
}

static void check_seat(struct checker *c, uint32_t i, enum seat seat)
{
    const struct pod *pod = c->snap->pods[i];
    bool displaced = snapshot_pod_displaced(c->snap, i);
    bool for_us = displaced || is_for_us(c, pod);
    if (pod_is_scheduled(pod) && !displaced) {
        bool told = seat == SEAT_SKIP && pod_is_terminal(pod);
        if (seat != SEAT_NONE && !told)
            finding(c, i, PLAN_NONE, "%s is on node %.*s already, and is in %s too",
                    pod_shown(c, i), STR_ARG(pod->node_name), seat_names[seat]);
    } else if (seat == SEAT_NONE) {
        finding(c, i, PLAN_NONE, "%s waits for a node and is nowhere in the plan", pod_shown(c, i));
    } else if (!for_us && seat != SEAT_SKIP) {
        finding(c, i, PLAN_NONE, "%s is not for us and is in %s", pod_shown(c, i),
                seat_names[seat]);
    } else if (for_us && seat == SEAT_SKIP) {
        finding(c, i, PLAN_NONE, "%s is skipped, and nothing says that it should be",
                pod_shown(c, i));
    }
}

/* --- order --- */

static int pod_order(const struct checker *c, uint32_t a, uint32_t b)
{
    const struct meta *x = &c->snap->pods[a]->object.meta, *y = &c->snap->pods[b]->object.meta;
    int order = str_cmp(x->namespace_, y->namespace_);
    return order ? order : str_cmp(x->name, y->name);
}

static void check_sorted(struct checker *c, uint32_t before, uint32_t after, const char *where)
{
    if (pod_order(c, before, after) >= 0)
        finding(c, after, PLAN_NONE, "%s: %s stands after %s", where, pod_shown(c, after),
                pod_shown(c, before));
}

static void check_pods_sorted(struct checker *c, struct plan_pods pods, const char *where)
{
    for (uint32_t i = 1; i < pods.count; i++)
        check_sorted(c, pods.items[i - 1], pods.items[i], where);
}

static int launch_order(const struct checker *c, const struct plan_launch *a,
                        const struct plan_launch *b)
{
    if (a->pool != b->pool)
        return nodepool_order(c->snap->pools[a->pool].pool, c->snap->pools[b->pool].pool);
    if (a->price != b->price)
        return a->price > b->price ? -1 : 1;
    return a->pods.count && b->pods.count ? pod_order(c, a->pods.items[0], b->pods.items[0]) : -1;
}

static struct str existing_name(const struct checker *c, const struct plan_existing *e)
{
    return e->node != PLAN_NONE ? c->snap->nodes[e->node]->object.meta.name
                                : c->snap->claims[e->claim]->object.meta.name;
}

static void check_lists_sorted(struct checker *c)
{
    const struct plan *plan = c->plan;
    for (uint32_t i = 0; i < plan->launch_count; i++) {
        check_pods_sorted(c, plan->launches[i].pods, "pods of a launch");
        if (i && launch_order(c, &plan->launches[i - 1], &plan->launches[i]) >= 0)
            finding(c, PLAN_NONE, i,
                    "launch %" PRIu32 " stands after launch %" PRIu32
                    ": expected by pool, then the dearest first, then by pods",
                    i, i - 1);
    }
    for (uint32_t i = 0; i < plan->existing_count; i++) {
        const struct plan_existing *e = &plan->existing[i], *before = e - 1;
        check_pods_sorted(c, e->pods, "pods of a node");
        if (!e->pods.count)
            finding(c, PLAN_NONE, PLAN_NONE, "existing: %.*s gets no pods",
                    STR_ARG(existing_name(c, e)));
        if (!i)
            continue;
        bool was_claim = before->node == PLAN_NONE, is_claim = e->node == PLAN_NONE;
        if (was_claim != is_claim ? was_claim
                                  : str_cmp(existing_name(c, before), existing_name(c, e)) >= 0)
            finding(c, PLAN_NONE, PLAN_NONE, "existing: %.*s stands after %.*s",
                    STR_ARG(existing_name(c, e)), STR_ARG(existing_name(c, before)));
    }
    for (uint32_t i = 1; i < plan->miss_count; i++)
        check_sorted(c, plan->misses[i - 1].pod, plan->misses[i].pod, "misses");
    for (uint32_t i = 1; i < plan->skip_count; i++)
        check_sorted(c, plan->skips[i - 1].pod, plan->skips[i].pod, "skips");
}

/* --- the rest --- */

static void check_miss(struct checker *c, const struct plan_miss *miss)
{
    if (!miss->reason_count)
        finding(c, miss->pod, PLAN_NONE, "%s is not placed, and no reason is given",
                pod_shown(c, miss->pod));
    for (uint32_t i = 0; i < miss->reason_count; i++) {
        const struct plan_blame *blame = &miss->reasons[i];
        if (blame->pool != PLAN_NONE && blame->pool >= c->snap->pool_count)
            finding(c, miss->pod, PLAN_NONE, "%s: a reason names a pool that is not there",
                    pod_shown(c, miss->pod));
        if ((unsigned)blame->reason >= PLAN_REASON_COUNT)
            finding(c, miss->pod, PLAN_NONE, "%s: a reason is not one that is known",
                    pod_shown(c, miss->pod));
        if (!blame->detail.len)
            finding(c, miss->pod, PLAN_NONE, "%s: a reason has no words", pod_shown(c, miss->pod));
    }
}

static void check_order(struct checker *c, const uint8_t *seats)
{
    uint8_t *turns = arena_array(&c->scratch, uint8_t, c->snap->pod_count);
    for (uint32_t i = 0; i < c->plan->order.count; i++) {
        uint32_t pod = c->plan->order.items[i];
        if (seats[pod] != SEAT_LAUNCH && seats[pod] != SEAT_EXISTING)
            finding(c, pod, PLAN_NONE, "order: %s is not placed", pod_shown(c, pod));
        if (turns[pod]++)
            finding(c, pod, PLAN_NONE, "order: %s comes twice", pod_shown(c, pod));
    }
    for (uint32_t i = 0; i < c->snap->pod_count; i++) {
        if ((seats[i] == SEAT_LAUNCH || seats[i] == SEAT_EXISTING) && !turns[i])
            finding(c, i, PLAN_NONE, "order: %s is placed and has no turn", pod_shown(c, i));
    }
}

static void check_totals(struct checker *c)
{
    usd_hour sum = 0;
    for (uint32_t i = 0; i < c->plan->launch_count; i++)
        sum = usd_hour_sum(sum, c->plan->launches[i].price);
    if (sum != c->plan->price)
        finding(c, PLAN_NONE, PLAN_NONE, "the launches cost %s an hour, and the plan says %s",
                price_shown(c, sum), price_shown(c, c->plan->price));
    if (c->plan->lower_bound < 0 || c->plan->lower_bound > c->plan->price)
        finding(c, PLAN_NONE, PLAN_NONE, "the lower bound %s is not between 0 and the price %s",
                price_shown(c, c->plan->lower_bound), price_shown(c, c->plan->price));
}

void check_book(struct checker *c)
{
    const struct plan *plan = c->plan;
    uint8_t *seats = arena_array(&c->scratch, uint8_t, c->snap->pod_count);
    for (uint32_t i = 0; i < plan->launch_count; i++)
        seat_take_all(c, seats, plan->launches[i].pods, SEAT_LAUNCH);
    for (uint32_t i = 0; i < plan->existing_count; i++)
        seat_take_all(c, seats, plan->existing[i].pods, SEAT_EXISTING);
    for (uint32_t i = 0; i < plan->miss_count; i++) {
        seat_take(c, seats, plan->misses[i].pod, SEAT_MISS);
        check_miss(c, &plan->misses[i]);
    }
    for (uint32_t i = 0; i < plan->skip_count; i++) {
        seat_take(c, seats, plan->skips[i].pod, SEAT_SKIP);
        check_skip(c, &plan->skips[i]);
    }
    for (uint32_t i = 0; i < c->snap->pod_count; i++)
        check_seat(c, i, (enum seat)seats[i]);
    check_lists_sorted(c);
    check_order(c, seats);
    check_totals(c);
}

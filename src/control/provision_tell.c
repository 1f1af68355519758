/* What a pass decided, told to those it concerns.
 *
 * A pod that has a place gets an event that names it; so many pods may come at once that the recorder
 * rations these. A pod that has none gets an event and a condition, which stay as long as it is so, with
 * the reasons in words. The condition is taken back when the pod has a place, or has found one without
 * us.
 */
#include "control/provisioner.h"

#include "codec/duration.h"
#include "control/health.h"
#include "control/pod_latency.h"

#define CONDITIONS_MAX 200 /* written by one pass; the others in the next */
#define FAILED_QUIET_NS ((int64_t)5 * 60 * 1000000000)
#define MISS_WORDS_MAX 1024

/* A pass that tells. */
struct telling {
    struct control *c;
    const struct provision *p;
    uint32_t conditions_left; /* that it may still write */
    bool all_told;            /* none is left for the next pass */
};

static const struct pod *pod_at(const struct provision *p, uint32_t pod)
{
    return p->snap.pods[pod];
}

/* --- conditions --- */

static json_mut *condition_json(const struct control *c, struct json_build *b, bool planned,
                                struct str reason, struct str message)
{
    json_mut *o = json_new_object(b);
    char now[TIME_TEXT_MAX];
    time_format(control_now_us(c), now);
    json_set_str(b, o, "type", CONDITION_POD_PLANNED);
    json_set_str(b, o, "status", planned ? STR("True") : STR("False"));
    json_set_str(b, o, "reason", reason);
    json_set_str(b, o, "message", message);
    json_set_str(b, o, "lastTransitionTime", str_of(now));
    return o;
}

/* Trouble that another try may get over. A pod that is gone need not be told. */
static bool is_passing(enum err_kind kind)
{
    return kind != ERR_NOT_FOUND && kind != ERR_INVALID && kind != ERR_DENIED;
}

/* Conditions of pods merge by type, so others' are left alone. */
static void tell_condition(struct telling *t, const struct pod *pod, bool planned,
                           struct str reason, struct str message)
{
    struct control *c = t->c;
    if (!t->conditions_left) {
        t->all_told = false;
        return;
    }
    t->conditions_left--;
    AUTO_JSON_BUILD b;
    AUTO_BUF text = { 0 };
    AUTO_OBJECT written = NULL;
    struct err err = { 0 };
    json_build_init(&b);
    json_mut *root = json_new_object(&b), *list = json_new_array(&b);
    json_push(&b, list, condition_json(c, &b, planned, reason, message));
    json_set(&b, json_mut_object(&b, root, STR("status")), STR("conditions"), list);
    json_write_mut(root, &text);
    struct object_ref ref = { &pod_kind, pod->object.meta.namespace_, pod->object.meta.name };
    if (store_patch(c->options.store, ref,
                    (struct patch_options){ .type = PATCH_STRATEGIC, .status = true },
                    buf_str(&text), &written, &err) < 0) {
        if (err.kind != ERR_NOT_FOUND)
            log_debug(c->log, "a pod was not told", LOG_STR("pod", pod->object.meta.name),
                      LOG_ERR(&err));
        t->all_told &= !is_passing(err.kind);
        return;
    }
    cluster_assume(c->cluster, written);
}

/* --- pods without a place --- */

static bool was_told(const struct pod *pod)
{
    const struct pod_condition *told = pod_condition(pod, CONDITION_POD_PLANNED);
    return told && told->status == CONDITION_FALSE;
}

/* What a pool that may be tried says of itself has changed if it is being tried now. */
static struct str blame_words(const struct provision *p, const struct plan_blame *blame)
{
    bool tried = blame->pool != PLAN_NONE && blame->reason == REASON_NODEPOOL_NOT_READY &&
                 bitset_test(&p->probes, blame->pool);
    return tried ? p->pools[blame->pool].not_ready : blame->detail;
}

static void miss_words(const struct provision *p, const struct plan_miss *miss, struct buf *out)
{
    for (uint32_t i = 0; i < miss->reason_count && out->len < MISS_WORDS_MAX; i++) {
        const struct plan_blame *blame = &miss->reasons[i];
        if (i)
            buf_addz(out, "; ");
        if (blame->pool != PLAN_NONE)
            buf_addf(out, "NodePool %.*s: ", STR_ARG(p->pools[blame->pool].pool->object.meta.name));
        buf_add(out, blame_words(p, blame));
    }
}

/* Reasons as conditions have them: "TopologySpread". */
static struct str reason_word(struct arena *arena, enum plan_reason reason)
{
    struct str name = str_of(plan_reason_names[reason]);
    char *word = arena_alloc(arena, name.len);
    memcpy(word, name.p, name.len);
    word[0] = (char)(word[0] & ~0x20);
    return (struct str){ word, name.len };
}

static void tell_miss(struct telling *t, const struct plan_miss *miss)
{
    const struct pod *pod = pod_at(t->p, miss->pod);
    AUTO_BUF words = { 0 };
    AUTO_ARENA arena = { 0 };
    pod_latency_undecided(t->c, pod);
    miss_words(t->p, miss, &words);
    recorder_publish(t->c->recorder, &(struct notice){ .about = &pod->object,
                                                       .warning = true,
                                                       .reason = "FailedScheduling",
                                                       .message = buf_str(&words),
                                                       .key = STR("FailedScheduling"),
                                                       .quiet_ns = FAILED_QUIET_NS });
    struct str reason = reason_word(&arena, miss->reasons[0].reason);
    bool told = was_told(pod) && str_eq(pod_condition(pod, CONDITION_POD_PLANNED)->reason, reason);
    if (!told && !pod_is_scheduled(pod))
        tell_condition(t, pod, false, reason, buf_str(&words));
}

/* --- pods with one --- */

static void tell_place(struct telling *t, struct plan_pods pods, const char *what, struct str name,
                       bool healthy)
{
    AUTO_ARENA arena = { 0 };
    struct str words = arena_strf(&arena, "Pod should schedule on: %s/%.*s", what, STR_ARG(name));
    for (uint32_t i = 0; i < pods.count; i++) {
        const struct pod *pod = pod_at(t->p, pods.items[i]);
        pod_latency_planned(t->c, pod, healthy);
        recorder_publish(
            t->c->recorder,
            &(struct notice){ .about = &pod->object, .reason = "Nominated", .message = words });
        if (was_told(pod))
            tell_condition(t, pod, true, STR("Planned"), words);
    }
    if (pods.count)
        nominate(t->c, name);
}

/* Room that came free elsewhere took them. */
static void tell_bound(struct telling *t)
{
    for (uint32_t i = 0; i < t->p->snap.pod_count; i++) {
        const struct pod *pod = pod_at(t->p, i);
        if (!pod_is_scheduled(pod) || t->p->displaced[i] || pod_is_terminal(pod) || !was_told(pod))
            continue;
        AUTO_ARENA arena = { 0 };
        tell_condition(t, pod, true, STR("Scheduled"),
                       arena_strf(&arena, "Pod is on: node/%.*s", STR_ARG(pod->node_name)));
    }
}

/* --- numbers --- */

#define ZONE_FLEXIBLE STR("flexible") /* more than one will do */
#define ZONE_NONE STR("none")

/* The zone that a launch is held to. */
static struct str launch_zone(const struct plan_launch *launch)
{
    const struct requirement *zone = requirements_find(&launch->requirements, STR(LABEL_ZONE));
    return zone && !zone->complement && zone->values.count == 1 ? zone->values.items[0]
                                                                : ZONE_FLEXIBLE;
}

/* A claim learns its zone from its instance; until then it says what it asks for. */
static struct str claim_zone(const struct nodeclaim *claim)
{
    struct str zone = str_map_get(&claim->object.meta.labels, STR(LABEL_ZONE));
    for (uint32_t i = 0; !zone.len && i < claim->spec.node.requirements.count; i++) {
        const struct expression *e = &claim->spec.node.requirements.items[i];
        if (str_eqz(e->key, LABEL_ZONE) && e->op == OP_IN && e->values.count == 1)
            zone = e->values.items[0];
    }
    return zone.len ? zone : ZONE_FLEXIBLE;
}

static struct str existing_zone(const struct provision *p, const struct plan_existing *e)
{
    if (e->node == PLAN_NONE)
        return claim_zone(p->snap.claims[e->claim]);
    struct str zone = str_map_get(&p->snap.nodes[e->node]->object.meta.labels, STR(LABEL_ZONE));
    return zone.len ? zone : ZONE_FLEXIBLE;
}

static void add_to_zone(struct str_table *zones, struct str zone, uint32_t pods)
{
    uintptr_t before = (uintptr_t)str_table_get(zones, zone);
    if (pods)
        str_table_put(zones, zone, (void *)(before + pods));
}

static void tell_zones(struct control *c, const struct provision *p, const struct plan *plan)
{
    struct str_table zones = { 0 };
    for (uint32_t i = 0; i < plan->existing_count; i++)
        add_to_zone(&zones, existing_zone(p, &plan->existing[i]), plan->existing[i].pods.count);
    for (uint32_t i = 0; i < plan->launch_count; i++)
        add_to_zone(&zones, launch_zone(&plan->launches[i]), plan->launches[i].pods.count);
    add_to_zone(&zones, ZONE_NONE, plan->miss_count);
    metric_family_remove(c->metrics.pending_by_zone, NULL, STR(""));
    str_table_each(&zones, it) {
        const struct str labels[] = { STR("provisioner"), it->key };
        gauge_set(c->metrics.pending_by_zone, (double)(uintptr_t)it->value, labels);
    }
    str_table_done(&zones);
}

static void tell_metrics(struct control *c, const struct provision *p, const struct plan *plan)
{
    const struct str provisioner[] = { STR("provisioner") };
    const struct str queue[] = { STR("provisioner"), STR("") };
    gauge_set(c->metrics.unschedulable_pods, plan->miss_count, provisioner);
    gauge_set(c->metrics.scheduler_queue_depth, p->pending_count, queue);
    gauge_set(c->metrics.ignored_pods, plan->skip_count, NULL);
    tell_zones(c, p, plan);
}

/* A claim on its way joins as well or as badly as others of its pool. */
static bool claim_is_healthy(const struct provision *p, const struct nodeclaim *claim)
{
    for (uint32_t i = 0; i < p->snap.pool_count; i++) {
        if (str_eq(p->pools[i].pool->object.meta.name, claim_pool_name(claim)))
            return health_is_true(p->pools[i].pool);
    }
    return false;
}

static void tell_existing(struct telling *t, const struct plan_existing *e)
{
    const struct snapshot *snap = &t->p->snap;
    if (e->node != PLAN_NONE)
        tell_place(t, e->pods, "node", snap->nodes[e->node]->object.meta.name, true);
    else
        tell_place(t, e->pods, "nodeclaim", snap->claims[e->claim]->object.meta.name,
                   claim_is_healthy(t->p, snap->claims[e->claim]));
}

bool provision_tell(struct control *c, const struct provision *p,
                    const struct provision_result *result)
{
    const struct plan *plan = result->plan;
    struct telling t = { c, p, CONDITIONS_MAX, true };
    for (uint32_t i = 0; i < plan->existing_count; i++)
        tell_existing(&t, &plan->existing[i]);
    for (uint32_t i = 0; i < plan->launch_count; i++) {
        const struct plan_launch *launch = &plan->launches[i];
        if (result->claims[i])
            tell_place(&t, launch->pods, "nodeclaim", result->claims[i]->meta.name,
                       health_is_true(p->pools[launch->pool].pool));
    }
    for (uint32_t i = 0; i < plan->miss_count; i++)
        tell_miss(&t, &plan->misses[i]);
    tell_bound(&t);
    tell_metrics(c, p, plan);
    return t.all_told;
}

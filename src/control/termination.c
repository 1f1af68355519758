/* The end of a Node that is being deleted and has our finalizer:
 *
 *     claim deleted too --> tainted --> drained --> volumes detached --> instance gone --> let go
 *          |                              (at least 5 s)
 *          +-- not ready, and the cloud knows no such instance: let go at once
 *
 * Every pass goes through the stages from the start and stops at the first that is not over; how far it
 * has come is in the store and the cloud alone, so any pass may be the last of a process, and the first
 * of another. What a stage waits for wakes it (pods, attachments, the claim); time and the cloud do
 * not, so it also comes back when the next moment that matters is there, and at least every ten seconds.
 *
 * The claim and its Node end each other: deleting either deletes both, the claim's own end
 * (nodeclaim.lifecycle) waits for the Node to be gone, and the Node waits for nobody. A Node whose
 * claim is missing ends in the same way, only that nothing is written down.
 */
#include "control/termination.h"

#include "api/json_parts.h"
#include "api/storage.h"
#include "codec/duration.h"
#include "control/controllers.h"
#include "control/do_not_disrupt.h"
#include "control/drain.h"
#include "control/eviction.h"
#include "control/volumes.h"

#define LOOK_AGAIN_NS (10 * DURATION_SECOND)
#define CLAIM_SEEN_NS DURATION_SECOND /* the event that it is going, or gone, comes sooner */
#define INSTANCE_AGAIN_NS (5 * DURATION_SECOND)
#define DRAIN_MIN_US ((int64_t)5 * 1000000)
#define VOLUMES_NAMED_MAX 5

struct ending {
    struct control *c;
    struct str key;
    struct arena arena;
    const struct object *node; /* references */
    const struct object *maybe_claim;
    struct object_list pods;
    int64_t now_us, deadline_us;
};

/* --- what the rest is decided by --- */

const struct object *termination_claim(struct control *c, const struct node *node)
{
    const struct object *by_id = node_claim(c, node);
    if (by_id)
        return by_id;
    const struct meta *meta = &node->object.meta;
    for (uint32_t i = 0; i < meta->owners.count; i++) {
        const struct owner_ref *owner = &meta->owners.items[i];
        if (!str_eqz(owner->kind, "NodeClaim"))
            continue;
        AUTO_OBJECT claim = cluster_get(c->cluster, &nodeclaim_kind, STR(""), owner->name);
        if (claim && str_eq(claim->meta.uid, owner->uid))
            return take(&claim);
    }
    return NULL;
}

int64_t termination_deadline_us(const struct nodeclaim *maybe_claim)
{
    if (!maybe_claim)
        return DRAIN_NO_DEADLINE;
    const struct meta *meta = &maybe_claim->object.meta;
    const struct duration *grace = &maybe_claim->spec.node.termination_grace_period;
    struct str text = str_map_get(&meta->annotations, STR(ANNOTATION_TERMINATION_TIMESTAMP));
    int64_t at_us;

    if (text.len && time_parse(text, &at_us, NULL) == 0)
        return at_us;
    /* Not written down yet, or not to be understood: the same rule that it is written by. */
    return grace->set && meta->deleted_us ? meta->deleted_us + grace->ns / 1000 : DRAIN_NO_DEADLINE;
}

/* --- small steps that stages share --- */

static const struct node *node_in(const struct ending *e)
{
    return node_of(e->node);
}

static const struct nodeclaim *claim_in(const struct ending *e)
{
    return e->maybe_claim ? nodeclaim_of(e->maybe_claim) : NULL;
}

/* A claim that is gone does not end its Node's end either: the next pass goes on without it. */
static struct outcome failed(const struct ending *e, const struct err *err)
{
    return control_failed(e->c, &node_termination, e->key, err);
}

static struct outcome look_again(const struct ending *e, int64_t next_us)
{
    if (next_us - e->now_us >= LOOK_AGAIN_NS / 1000)
        return outcome_requeue(LOOK_AGAIN_NS);
    return outcome_requeue(next_us > e->now_us ? (next_us - e->now_us) * 1000 : 0);
}

/* Of the claim; without one there is nothing to set. `changed`: it was something else before. */
static int set_condition(struct ending *e, struct str type, enum condition_status status,
                         struct str reason, bool *maybe_changed, struct err *err)
{
    const struct object *written = NULL;

    if (!e->maybe_claim)
        return 0;
    struct condition_set *set = claim_conditions(e->c, claim_in(e), &e->arena);
    bool changed = status == CONDITION_TRUE ? conditions_set_true(set, type)
                                            : conditions_set(set, type, status, reason, reason);
    if (maybe_changed)
        *maybe_changed = changed;
    if (!changed)
        return 0;
    if (control_patch_conditions(e->c, e->maybe_claim, set, &written, err) < 0)
        return -1;
    object_unref(e->maybe_claim);
    e->maybe_claim = written;
    return 0;
}

static struct str node_label(const struct ending *e, struct str key)
{
    struct str value = str_map_get(&e->node->meta.labels, key);
    return value.len ? value : STR("");
}

/* --- before the stages --- */

static bool is_gone_from_cloud(struct ending *e)
{
    struct instance instance;
    struct err err = { 0 };

    if (node_is_ready(node_in(e)))
        return false;
    /* If the cloud cannot tell, pods are moved away as from any other node. */
    return e->c->provider->get(e->c->provider->ctx, node_in(e)->spec.provider_id, &e->arena,
                               &instance, &err) < 0 &&
           err.kind == ERR_NOT_FOUND;
}

static bool is_marked(const struct node *node)
{
    const struct str_map *labels = &node->object.meta.labels;
    uint32_t disrupted = 0;
    for (uint32_t i = 0; i < node->spec.taints.count; i++)
        disrupted += str_eqz(node->spec.taints.items[i].key, TAINT_DISRUPTED);
    return disrupted == 1 && node_taint(node, STR(TAINT_DISRUPTED), EFFECT_NO_SCHEDULE) &&
           str_eqz(str_map_get(labels, STR(LABEL_EXCLUDE_BALANCERS)), "karpenter");
}

/* No new pods, no new connections. A taint of that key with another effect is replaced. */
static int mark(struct ending *e, struct err *err)
{
    const struct node *node = node_in(e);
    struct taint *taints = arena_array(&e->arena, struct taint, node->spec.taints.count + 1);
    const struct object *written = NULL;
    uint32_t count = 0;

    if (is_marked(node))
        return 0;
    for (uint32_t i = 0; i < node->spec.taints.count; i++) {
        if (!str_eqz(node->spec.taints.items[i].key, TAINT_DISRUPTED))
            taints[count++] = node->spec.taints.items[i];
    }
    taints[count++] = (struct taint){ .key = STR(TAINT_DISRUPTED), .effect = EFFECT_NO_SCHEDULE };

    AUTO_JSON_BUILD b;
    json_build_init(&b);
    json_mut *root = json_new_object(&b);
    json_mut *meta = json_mut_object(&b, root, STR("metadata"));
    json_set_str(&b, json_mut_object(&b, meta, STR("labels")), LABEL_EXCLUDE_BALANCERS,
                 STR("karpenter"));
    json_set(&b, json_mut_object(&b, root, STR("spec")), STR("taints"),
             json_taints(&b, taints, count));
    if (control_patch(e->c, e->node, false, true, root, &written, err) < 0)
        return -1;
    object_unref(e->node);
    e->node = written;
    return 0;
}

static void tell_deadline(const struct ending *e)
{
    char deadline[TIME_TEXT_MAX];

    if (e->deadline_us == DRAIN_NO_DEADLINE)
        return;
    time_format(e->deadline_us, deadline);
    const struct object *about[] = { e->node, e->maybe_claim };
    for (size_t i = 0; i < KV_COUNT_OF(about); i++)
        recorder_say(e->c->recorder, about[i], true, "TerminationGracePeriodExpiring",
                     "All pods will be deleted by %s", deadline);
}

/* --- the stages: true if it is over, else when to come again --- */

static void tell_waiting(const struct ending *e, const struct drain *drain)
{
    for (size_t i = 0; i < e->pods.count; i++) {
        const struct pod *pod = pod_of(e->pods.items[i]);
        enum drain_action action = drain_judge(pod, e->now_us, e->deadline_us).action;
        if (action == DRAIN_PROTECTED || action == DRAIN_EVICT)
            do_not_disrupt_tell(e->c, pod, do_not_disrupt_of(pod, e->now_us));
    }
    if (!drain->maybe_protected)
        return;
    const struct meta *first = &drain->maybe_protected->object.meta;
    AUTO_BUF text = { 0 };
    buf_addf(&text, "%u of the %u pods left must not be disrupted (%s), such as %.*s/%.*s",
             drain->protected_count, drain->waiting_count, ANNOTATION_DO_NOT_DISRUPT,
             STR_ARG(first->namespace_), STR_ARG(first->name));
    recorder_publish(e->c->recorder, &(struct notice){ .about = e->node,
                                                       .warning = true,
                                                       .reason = "FailedDraining",
                                                       .message = buf_str(&text),
                                                       .key = STR("do-not-disrupt") });
}

/* For how many microseconds more an empty node is kept: pods that were bound to it before it was
 * tainted may only now be heard of. */
static int64_t drain_hold_us(const struct ending *e)
{
    const struct condition *draining =
        e->maybe_claim ? claim_condition(claim_in(e), CONDITION_DRAINED) : NULL;
    int64_t since_us = draining ? draining->transition_us : e->node->meta.deleted_us;
    int64_t held_us = e->now_us - since_us;
    /* A start in the future is a clock that was set back: no reason to wait for it. */
    return held_us >= 0 && held_us < DRAIN_MIN_US ? DRAIN_MIN_US - held_us : 0;
}

/* From the store itself: once, before the machine goes, it matters what is true and not what has been
 * heard of. The scheduler may have bound a pod here while it had not heard of the taint. */
static int list_pods_afresh(struct ending *e, struct err *err)
{
    struct str selector = arena_strf(&e->arena, "spec.nodeName=%.*s", STR_ARG(e->key));
    object_list_done(&e->pods);
    e->pods = (struct object_list){ 0 };
    return store_list(e->c->options.store, &pod_kind,
                      &(struct list_options){ .field_selector = selector }, &e->pods, err);
}

static bool is_drained(struct ending *e, struct outcome *out)
{
    struct drain drain;
    struct err err = { 0 };
    bool changed = false;

    drain_plan(&e->arena, e->pods.items, e->pods.count, e->now_us, e->deadline_us, &drain);
    bool before = e->maybe_claim && claim_condition_true(claim_in(e), CONDITION_DRAINED);
    if (!drain.waiting_count && before)
        return true;
    if (set_condition(e, CONDITION_DRAINED, CONDITION_UNKNOWN, REASON_DRAINING, NULL, &err) < 0) {
        *out = failed(e, &err);
        return false;
    }
    int64_t hold_us = drain.waiting_count ? 0 : drain_hold_us(e);
    if (!drain.waiting_count && hold_us == 0) {
        if (list_pods_afresh(e, &err) < 0) {
            *out = failed(e, &err);
            return false;
        }
        drain_plan(&e->arena, e->pods.items, e->pods.count, e->now_us, e->deadline_us, &drain);
    }
    if (drain.waiting_count) {
        for (uint32_t i = 0; i < drain.force_count; i++)
            eviction_ask(e->c, drain.force[i], true);
        for (uint32_t i = 0; i < drain.evict_count; i++)
            eviction_ask(e->c, drain.evict[i], false);
        tell_waiting(e, &drain);
        *out = look_again(e, drain.next_us);
        return false;
    }
    if (hold_us > 0) {
        *out = outcome_requeue(hold_us * 1000);
        return false;
    }
    if (set_condition(e, CONDITION_DRAINED, CONDITION_TRUE, STR(""), &changed, &err) < 0) {
        *out = failed(e, &err);
        return false;
    }
    if (changed)
        metric_count(e->c->metrics.nodes_drained, node_label(e, STR(LABEL_NODEPOOL)));
    return true;
}

static void tell_volumes(const struct ending *e, struct str_list names)
{
    AUTO_BUF text = { 0 };

    buf_addz(&text, "Waiting for volume attachments to go: ");
    for (uint32_t i = 0; i < names.count && i < VOLUMES_NAMED_MAX; i++)
        buf_addf(&text, "%s%.*s", i ? ", " : "", STR_ARG(names.items[i]));
    if (names.count > VOLUMES_NAMED_MAX)
        buf_addf(&text, " and %u more", names.count - VOLUMES_NAMED_MAX);
    recorder_publish(e->c->recorder, &(struct notice){ .about = e->node,
                                                       .reason = "AwaitingVolumeDetachment",
                                                       .message = buf_str(&text),
                                                       .key = STR("volumes") });
}

static bool are_volumes_detached(struct ending *e, struct outcome *out)
{
    struct str_list names = volumes_blocking(e->c, &e->arena, node_in(e), &e->pods, e->now_us);
    bool late = names.count && e->now_us >= e->deadline_us;
    struct err err = { 0 };
    int rc;

    if (!names.count)
        rc = set_condition(e, CONDITION_VOLUMES_DETACHED, CONDITION_TRUE, STR(""), NULL, &err);
    else if (late)
        rc = set_condition(e, CONDITION_VOLUMES_DETACHED, CONDITION_FALSE,
                           REASON_TERMINATION_GRACE_PERIOD_ELAPSED, NULL, &err);
    else
        rc = set_condition(e, CONDITION_VOLUMES_DETACHED, CONDITION_UNKNOWN,
                           REASON_AWAITING_VOLUME_DETACHMENT, NULL, &err);
    if (rc < 0) {
        *out = failed(e, &err);
        return false;
    }
    if (!names.count || late)
        return true;
    tell_volumes(e, names);
    *out = look_again(e, e->deadline_us);
    return false;
}

/* Nobody claims the instance any more, and the cloud is asked in terms of claims: here is one that
 * says as much as is needed, and is no other's. */
static int delete_unclaimed(struct ending *e, struct err *err)
{
    const struct cloud_provider *provider = e->c->provider;
    struct instance instance;

    if (provider->get(provider->ctx, node_in(e)->spec.provider_id, &e->arena, &instance, err) < 0)
        return -1;
    struct nodeclaim claim = {
        .object = { .kind = &nodeclaim_kind,
                    .meta = { .name = instance.claim_name.len ? instance.claim_name
                                                              : e->node->meta.name,
                              .namespace_ = STR(""),
                              .uid = e->node->meta.uid } },
        .status = { .node_name = e->node->meta.name, .provider_id = instance.provider_id }
    };
    return provider->delete_(provider->ctx, &claim, err);
}

static bool is_instance_gone(struct ending *e, struct outcome *out)
{
    const struct cloud_provider *provider = e->c->provider;
    struct err err = { 0 };

    int rc = e->maybe_claim ? provider->delete_(provider->ctx, claim_in(e), &err)
                            : delete_unclaimed(e, &err);
    if (rc < 0 && err.kind == ERR_NOT_FOUND)
        return true;
    if (rc < 0) {
        err_wrap(&err, "instance %s", STR_SHOWN(node_in(e)->spec.provider_id));
        *out = failed(e, &err);
    } else if (set_condition(e, CONDITION_INSTANCE_TERMINATING, CONDITION_TRUE, STR(""), NULL,
                             &err) < 0) {
        *out = failed(e, &err);
    } else {
        *out = outcome_requeue(INSTANCE_AGAIN_NS);
    }
    return false;
}

/* --- the whole --- */

static double seconds_since(const struct ending *e, int64_t since_us)
{
    return e->now_us > since_us ? (double)(e->now_us - since_us) / 1e6 : 0;
}

static struct outcome let_go(struct ending *e)
{
    struct control_metrics *m = &e->c->metrics;
    const struct meta *meta = &e->node->meta;
    struct str pool = node_label(e, STR(LABEL_NODEPOOL));
    struct err err = { 0 };

    if (control_set_finalizer(e->c, e->node, STR(FINALIZER_TERMINATION), false, NULL, &err) < 0)
        return failed(e, &err);
    metric_count(m->nodes_terminated, pool, node_label(e, STR(LABEL_ZONE)));
    metric_observe_in(m->node_termination_duration, seconds_since(e, meta->deleted_us), pool);
    metric_observe_in(m->node_lifetime_duration, seconds_since(e, meta->created_us), pool);
    log_info(e->c->log, "node ended", LOG_STR("node", meta->name), LOG_STR("nodepool", pool));
    return outcome_done();
}

static struct outcome end_node(struct ending *e)
{
    struct outcome out = outcome_done();
    struct err err = { 0 };

    bool claim_stays = e->maybe_claim && !e->maybe_claim->meta.deleted_us;
    if (claim_stays && control_remove(e->c, e->maybe_claim, &err) < 0)
        return failed(e, &err);
    if (is_gone_from_cloud(e))
        return let_go(e);
    if (mark(e, &err) < 0)
        return failed(e, &err);
    /* Its deletion gives the deadline, and conditions are written to what it is then. */
    if (claim_stays)
        return outcome_requeue(CLAIM_SEEN_NS);
    tell_deadline(e);
    /* Listed after the taint is written: what the binder did before it, the hold below waits for. */
    cluster_list_by(e->c->cluster, PODS_BY_NODE, e->key, &e->pods);
    if (!is_drained(e, &out) || !are_volumes_detached(e, &out) || !is_instance_gone(e, &out))
        return out;
    return let_go(e);
}

static bool is_ours_to_end(const struct object *maybe_node)
{
    return maybe_node && maybe_node->meta.deleted_us &&
           object_has_finalizer(maybe_node, STR(FINALIZER_TERMINATION));
}

static struct outcome reconcile(struct control *c, struct str key)
{
    struct ending e = { .c = c,
                        .key = key,
                        .node = cluster_get(c->cluster, &node_kind, STR(""), key),
                        .now_us = control_now_us(c) };
    struct outcome out = outcome_done();

    if (is_ours_to_end(e.node)) {
        e.maybe_claim = termination_claim(c, node_in(&e));
        e.deadline_us = termination_deadline_us(claim_in(&e));
        if (!e.maybe_claim || control_manages(c, &claim_in(&e)->spec.node.node_class_ref))
            out = end_node(&e);
    }
    object_list_done(&e.pods);
    object_unref(e.maybe_claim);
    object_unref(e.node);
    arena_done(&e.arena);
    return out;
}

/* --- who wakes it --- */

static void wake(struct control *c, struct queue *q, struct str node_name)
{
    AUTO_OBJECT node = cluster_get(c->cluster, &node_kind, STR(""), node_name);
    if (is_ours_to_end(node))
        queue_add(q, node_name);
}

static void on_node(struct control *c KV_UNUSED, struct queue *q,
                    const struct object *maybe_old KV_UNUSED, const struct object *maybe_new)
{
    if (is_ours_to_end(maybe_new))
        queue_add(q, maybe_new->meta.name);
}

/* A pod that comes, ends, goes or is marked otherwise; not one whose kubelet reports once more. */
static void on_pod(struct control *c, struct queue *q, const struct object *maybe_old,
                   const struct object *maybe_new)
{
    const struct pod *pod = pod_of(maybe_new ? maybe_new : maybe_old);
    struct str mark_key = STR(ANNOTATION_DO_NOT_DISRUPT);

    if (!pod->node_name.len)
        return;
    if (maybe_old && maybe_new) {
        const struct pod *old = pod_of(maybe_old);
        if (pod_is_scheduled(old) && pod_is_terminal(old) == pod_is_terminal(pod) &&
            maybe_old->meta.deleted_us == maybe_new->meta.deleted_us &&
            old->start_us == pod->start_us &&
            str_eq(str_map_get(&maybe_old->meta.annotations, mark_key),
                   str_map_get(&maybe_new->meta.annotations, mark_key)))
            return;
    }
    wake(c, q, pod->node_name);
}

static void on_attachment(struct control *c, struct queue *q, const struct object *maybe_old,
                          const struct object *maybe_new)
{
    if (maybe_old && maybe_new)
        return; /* only whether it is there matters */
    KV_ASSERT(maybe_old || maybe_new);
    wake(c, q, volume_attachment_of(maybe_new ? maybe_new : maybe_old)->spec.node_name);
}

/* One that begins to go, is gone, or gets another deadline. What we write into its conditions is no
 * news. */
static void on_claim(struct control *c, struct queue *q, const struct object *maybe_old,
                     const struct object *maybe_new)
{
    const struct nodeclaim *claim = nodeclaim_of(maybe_new ? maybe_new : maybe_old);
    uint32_t count;

    if (maybe_old && maybe_new && maybe_old->meta.deleted_us == maybe_new->meta.deleted_us &&
        termination_deadline_us(nodeclaim_of(maybe_old)) == termination_deadline_us(claim))
        return;
    AUTO_OBJECT node = claim_node(c, claim, &count);
    if (is_ours_to_end(node))
        queue_add(q, node->meta.name);
}

const struct controller node_termination = {
    .name = "node.termination",
    .reconcile = reconcile,
    .triggers = { { &node_kind, on_node },
                  { &pod_kind, on_pod },
                  { &volume_attachment_kind, on_attachment },
                  { &nodeclaim_kind, on_claim } },
    .threads = 16,
    .backoff_min_ns = DURATION_SECOND / 10,
    .backoff_max_ns = 10 * DURATION_SECOND,
};

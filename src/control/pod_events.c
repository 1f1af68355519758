/* Pod events: when did a pod last come to a claim's node, or go? status.lastPodEventTime says it,
 * and consolidateAfter counts from there.
 *
 * A pod's binding, end and deletion count; those of DaemonSets do not, which are on every node.
 * The time is in the key ("node/second"), so a pass needs to know nothing but the claim, and a
 * claim is written at most once in ten seconds. What happened while nobody watched is told by the
 * pods themselves: when they were bound, and since when they have been on their way out.
 */
#include "codec/duration.h"
#include "control/controllers.h"

#define QUIET_US ((int64_t)10 * 1000000)
#define WAIT_NS (5 * DURATION_SECOND)
#define WAIT_MAX_US ((int64_t)60 * 1000000)

static bool is_of_daemon(const struct pod *pod)
{
    const struct owner_ref *owner = meta_controller(&pod->object.meta);
    return owner && str_eqz(owner->kind, "DaemonSet");
}

/* Of a pod that is seen for the first time. */
static int64_t past_event_us(const struct pod *pod)
{
    const struct pod_condition *scheduled = pod_condition(pod, STR("PodScheduled"));
    int64_t at = 0;
    if (scheduled && scheduled->status == CONDITION_TRUE)
        at = pod_condition_us(pod, scheduled);
    const struct meta *meta = &pod->object.meta;
    if (meta->deleted_us) { /* which is when its grace ends */
        int64_t since = meta->deleted_us - meta->deletion_grace_s.value * 1000000;
        at = since > at ? since : at;
    }
    return at;
}

/* 0: nothing that counts has happened. */
static int64_t event_us(const struct control *c, const struct pod *maybe_old,
                        const struct pod *maybe_new)
{
    int64_t now = control_now_us(c);
    KV_ASSERT(maybe_old || maybe_new);
    if (!maybe_old)
        return past_event_us(maybe_new);
    if (!maybe_new) /* at once, without having been seen to end */
        return pod_is_terminating(maybe_old) || pod_is_terminal(maybe_old) ? 0 : now;
    if (!pod_is_scheduled(maybe_old) ||
        (!pod_is_terminal(maybe_old) && pod_is_terminal(maybe_new)) ||
        (!pod_is_terminating(maybe_old) && pod_is_terminating(maybe_new)))
        return now;
    return 0;
}

static void on_pod(struct control *c, struct queue *q, const struct object *maybe_old,
                   const struct object *maybe_new)
{
    const struct pod *old = maybe_old ? pod_of(maybe_old) : NULL;
    const struct pod *new_ = maybe_new ? pod_of(maybe_new) : NULL;
    const struct pod *pod = new_ ? new_ : old;
    AUTO_BUF key = { 0 };

    if (!pod_is_scheduled(pod) || is_of_daemon(pod))
        return;
    int64_t at = event_us(c, old, new_);
    if (!at)
        return;
    buf_addf(&key, "%.*s/%lld", STR_ARG(pod->node_name), (long long)(at / 1000000));
    queue_add(q, buf_str(&key));
}

/* Kinds are watched apart, and a pod can be seen on a node that is not seen yet. */
static bool is_expected(const struct control *c, const struct object *maybe_node, int64_t at)
{
    return control_now_us(c) - at * 1000000 < WAIT_MAX_US &&
           (!maybe_node || str_map_get(&maybe_node->meta.labels, STR(LABEL_NODEPOOL)).len > 0);
}

static struct outcome reconcile(struct control *c, struct str key)
{
    struct str node_name, second;
    int64_t at;
    struct err err = { 0 };
    char text[TIME_TEXT_MAX];

    if (!str_cut(key, '/', &node_name, &second) || !str_to_i64(second, &at))
        return outcome_done();
    AUTO_OBJECT node = cluster_get(c->cluster, &node_kind, STR(""), node_name);
    AUTO_OBJECT claim = node ? node_claim(c, node_of(node)) : NULL;
    if (!claim && is_expected(c, node, at))
        return outcome_requeue(WAIT_NS);
    if (!claim || claim->meta.deleted_us ||
        !control_manages(c, &nodeclaim_of(claim)->spec.node.node_class_ref) ||
        at * 1000000 - nodeclaim_of(claim)->status.last_pod_event_us < QUIET_US)
        return outcome_done();
    AUTO_JSON_BUILD b;
    json_build_init(&b);
    json_mut *root = json_new_object(&b);
    time_format(at * 1000000, text);
    json_set_str(&b, json_mut_object(&b, root, STR("status")), "lastPodEventTime", str_of(text));
    if (control_patch(c, claim, true, false, root, NULL, &err) < 0)
        return control_failed(c, &nodeclaim_pod_events, key, &err);
    return outcome_done();
}

const struct controller nodeclaim_pod_events = {
    .name = "nodeclaim.podevents",
    .reconcile = reconcile,
    .triggers = { { &pod_kind, on_pod } },
};

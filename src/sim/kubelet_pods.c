/* One pod: what would happen to it next, and when. Everything is found from the pod, its Node and
 * three moments that neither of them says; whoever changes one of them has the pod looked at again.
 *
 *     on a Node that is Ready and whose instance runs   on one that is not      Node is gone
 *     pending     starts                                -                       collected
 *     running     finishes, if it is a job's            Ready turns False       collected
 *     terminating ends                                  stays                   collected
 *     any         evicted, if a NoExecute taint says so, which only begins its termination
 */
#include "sim/kubelet_impl.h"

#include "codec/duration.h"

#include <stdio.h>

/* A pod of a node that is gone is collected when that has been so for a while: the node may have been
 * made just before, and not be known yet. */
#define ORPHAN_NS (40 * DURATION_SECOND)
#define ANNOTATION_DURATION "karve.io/sim-duration"
#define REASON_NODE_GONE "NodeNotReady" /* why a running pod is not ready */

enum act { ACT_NONE, ACT_COLLECT, ACT_END, ACT_EVICT, ACT_START, ACT_FINISH, ACT_HIDE, ACT_SHOW };

struct wish {
    enum act act;
    int64_t due_ns;
};

static struct wish sooner(struct wish a, struct wish b)
{
    return b.act != ACT_NONE && (a.act == ACT_NONE || b.due_ns < a.due_ns) ? b : a;
}

/* --- which pods are kept --- */

static struct kept_pod *keep(struct kubelet *k, const struct object *pod)
{
    AUTO_BUF key = { 0 };
    buf_addf(&key, "%.*s/%.*s", STR_ARG(pod->meta.namespace_), STR_ARG(pod->meta.name));
    struct kept_pod *p = str_table_get(&k->kept, buf_str(&key));
    if (p || !pod_is_scheduled(pod_of(pod)))
        return p;
    p = kv_calloc(1, sizeof *p);
    str_table_put(&k->kept, buf_str(&key), p);
    p->key = str_table_slot(&k->kept, buf_str(&key))->key;
    p->namespace_ = str_sub(p->key, 0, pod->meta.namespace_.len);
    p->name = str_sub(p->key, pod->meta.namespace_.len + 1, p->key.len);
    p->startable_ns = p->orphaned_ns = p->tainted_ns = -1;
    return p;
}

void kubelet_look_soon(struct kubelet *k, const struct object *pod)
{
    struct kept_pod *p = keep(k, pod);
    if (p)
        timers_set(&k->timers, &p->timer, kubelet_now_ns(k));
}

static void drop(struct kubelet *k, struct kept_pod *p)
{
    timers_clear(&k->timers, &p->timer);
    str_table_remove(&k->volume_waiters, p->key);
    str_table_remove(&k->kept, p->key);
    free(p);
}

static bool brings_template(const struct pod *pod)
{
    for (uint32_t i = 0; i < pod->volumes.count; i++)
        if (pod->volumes.items[i].ephemeral.maybe_template)
            return true;
    return false;
}

static bool holds_volumes(const struct object *maybe_pod)
{
    return maybe_pod && pod_is_scheduled(pod_of(maybe_pod)) &&
           !pod_is_terminal(pod_of(maybe_pod)) && pod_of(maybe_pod)->volumes.count > 0;
}

void kubelet_on_pod(void *ctx, const struct object *maybe_old, const struct object *maybe_new)
{
    struct kubelet *k = ctx;

    if (holds_volumes(maybe_old) && !holds_volumes(maybe_new))
        vec_push(&k->ended_pods, object_ref(maybe_old));
    if (!maybe_old && brings_template(pod_of(maybe_new)))
        vec_push(&k->template_pods, object_ref(maybe_new));
    if (maybe_new)
        kubelet_look_soon(k, maybe_new);
    else if (pod_is_scheduled(pod_of(maybe_old)))
        drop(k, keep(k, maybe_old));
}

/* --- when --- */

/* It has ended, and only finalizers keep the object. */
static bool is_over(const struct pod *pod)
{
    const struct meta *meta = &pod->object.meta;
    return pod_is_terminating(pod) && meta->deletion_grace_s.set &&
           meta->deletion_grace_s.value == 0 && meta->finalizers.count > 0;
}

/* Deletion says when the grace is over; the kubelet takes as long as it takes within that. */
static struct wish when_ends(const struct kubelet *k, const struct pod *pod)
{
    const struct meta *meta = &pod->object.meta;
    int64_t grace_us = meta->deletion_grace_s.set ? meta->deletion_grace_s.value * 1000000 : 0;
    int64_t stop_us =
        span_pick(k->options.pod_stop, fate_of(k->options.seed, meta->uid, "stop")) / 1000;
    int64_t took_us = stop_us < grace_us ? stop_us : grace_us;
    return (struct wish){ ACT_END, kubelet_mono_of(k, meta->deleted_us - grace_us + took_us) };
}

static bool is_of_job(const struct pod *pod)
{
    const struct owner_ref *owner = meta_controller(&pod->object.meta);
    return owner && str_eqz(owner->kind, "Job");
}

static struct wish when_finishes(const struct kubelet *k, const struct pod *pod)
{
    const struct meta *meta = &pod->object.meta;
    struct str said = str_map_get(&meta->annotations, STR(ANNOTATION_DURATION));
    int64_t run_ns;
    struct err err;

    if (pod->spec->restart_policy == RESTART_ALWAYS || pod->spec->restart_policy == RESTART_UNSET)
        return (struct wish){ 0 };
    if (!said.p || duration_parse(said, &run_ns, &err) < 0) {
        if (!is_of_job(pod))
            return (struct wish){ 0 };
        run_ns = span_pick(k->options.job_run, fate_of(k->options.seed, meta->uid, "run"));
    }
    return (struct wish){ ACT_FINISH, kubelet_later(kubelet_mono_of(k, pod->start_us), run_ns) };
}

static struct wish when_starts(struct kubelet *k, struct kept_pod *p, const struct pod *pod,
                               const struct node *node)
{
    if (!kubelet_volumes_ready(k, pod, node)) {
        str_table_put(&k->volume_waiters, p->key, p);
        p->startable_ns = -1;
        return (struct wish){ 0 };
    }
    str_table_remove(&k->volume_waiters, p->key);
    if (p->startable_ns < 0)
        p->startable_ns = kubelet_now_ns(k);
    uint64_t fate = fate_of(k->options.seed, pod->object.meta.uid, "start");
    return (struct wish){ ACT_START, p->startable_ns + span_pick(k->options.pod_start, fate) };
}

static bool is_hidden(const struct pod *pod)
{
    const struct pod_condition *ready = pod_condition(pod, STR("Ready"));
    return ready && ready->status == CONDITION_FALSE && str_eqz(ready->reason, REASON_NODE_GONE);
}

/* What the kubelet does with a pod that is to run. */
static struct wish when_runs(struct kubelet *k, struct kept_pod *p, const struct pod *pod,
                             const struct node *node, bool alive)
{
    bool running = pod->status->phase == PHASE_RUNNING;

    if (!running && !alive)
        p->startable_ns = -1;
    if (!running)
        return alive ? when_starts(k, p, pod, node) : (struct wish){ 0 };
    if (!alive)
        return (struct wish){ 0 };
    return is_hidden(pod) ? (struct wish){ ACT_SHOW, kubelet_now_ns(k) } : when_finishes(k, pod);
}

static struct wish when_evicted(const struct kubelet *k, struct kept_pod *p, const struct pod *pod,
                                const struct node *node)
{
    int64_t due_ns = kubelet_eviction_ns(k, node, pod, &p->tainted_ns);
    return due_ns == INT64_MAX ? (struct wish){ 0 } : (struct wish){ ACT_EVICT, due_ns };
}

static struct wish pod_wish(struct kubelet *k, struct kept_pod *p, const struct pod *pod,
                            const struct node *maybe_node)
{
    if (is_over(pod))
        return (struct wish){ 0 };
    if (!maybe_node) {
        if (p->orphaned_ns < 0)
            p->orphaned_ns = kubelet_now_ns(k);
        return (struct wish){ ACT_COLLECT, p->orphaned_ns + ORPHAN_NS };
    }
    p->orphaned_ns = -1;
    bool alive =
        node_is_ready(maybe_node) && sim_cloud_runs(k->options.cloud, maybe_node->spec.provider_id);
    if (!node_is_ready(maybe_node) && pod_is_ready(pod))
        return (struct wish){ ACT_HIDE, kubelet_now_ns(k) };
    if (pod_is_terminating(pod))
        return alive ? when_ends(k, pod) : (struct wish){ 0 };
    if (pod_is_terminal(pod))
        return (struct wish){ 0 };
    return sooner(when_runs(k, p, pod, maybe_node, alive), when_evicted(k, p, pod, maybe_node));
}

/* --- what --- */

struct says { /* a condition */
    const char *type;
    bool holds;
    const char *maybe_reason;
};

/* `head` is what else the status says, with a comma behind it. */
static void report(struct kubelet *k, const struct pod *pod, const char *head,
                   const struct says *conditions, size_t count)
{
    AUTO_BUF patch = { 0 };
    char now[TIME_TEXT_MAX];

    time_format(kubelet_now_us(k), now);
    buf_addf(&patch, "{\"status\":{%s\"conditions\":[", head);
    for (size_t i = 0; i < count; i++) {
        const struct says *c = &conditions[i];
        buf_addf(&patch, "%s{\"type\":\"%s\",\"status\":\"%s\",\"lastTransitionTime\":\"%s\"",
                 i ? "," : "", c->type, c->holds ? "True" : "False", now);
        if (c->maybe_reason)
            buf_addf(&patch, ",\"reason\":\"%s\"}", c->maybe_reason);
        else
            buf_addz(&patch, ",\"reason\":null}");
    }
    buf_addz(&patch, "]}}");
    kubelet_patch_status(k, object_ref_of(&pod->object), buf_str(&patch));
}

static void start(struct kubelet *k, const struct pod *pod)
{
    static const struct says conditions[] = { { "Initialized", true, NULL },
                                              { "ContainersReady", true, NULL },
                                              { "Ready", true, NULL } };
    char head[64 + TIME_TEXT_MAX], now[TIME_TEXT_MAX];

    time_format(kubelet_now_us(k), now);
    snprintf(head, sizeof head, "\"phase\":\"Running\",\"startTime\":\"%s\",", now);
    report(k, pod, head, conditions, KV_COUNT_OF(conditions));
}

static void finish(struct kubelet *k, const struct pod *pod)
{
    static const struct says conditions[] = { { "ContainersReady", false, "PodCompleted" },
                                              { "Ready", false, "PodCompleted" } };
    report(k, pod, "\"phase\":\"Succeeded\",", conditions, KV_COUNT_OF(conditions));
}

static void show(struct kubelet *k, const struct pod *pod, bool ready)
{
    struct says condition = { "Ready", ready, ready ? NULL : REASON_NODE_GONE };
    report(k, pod, "", &condition, 1);
}

static void remove_pod(struct kubelet *k, const struct pod *pod, struct maybe_int grace_s)
{
    struct err err;
    store_remove(k->options.store, object_ref_of(&pod->object),
                 &(struct delete_options){ .uid = pod->object.meta.uid, .grace_s = grace_s }, &err);
}

static void act(struct kubelet *k, const struct pod *pod, enum act what)
{
    switch (what) {
    case ACT_NONE:
        break;
    case ACT_COLLECT:
    case ACT_END:
        remove_pod(k, pod, (struct maybe_int){ .set = true, .value = 0 });
        break;
    case ACT_EVICT:
        remove_pod(k, pod, (struct maybe_int){ 0 });
        break;
    case ACT_START:
        start(k, pod);
        break;
    case ACT_FINISH:
        finish(k, pod);
        break;
    case ACT_HIDE:
        show(k, pod, false);
        break;
    case ACT_SHOW:
        show(k, pod, true);
        break;
    }
}

void kubelet_look_at_pod(struct kubelet *k, struct kept_pod *p)
{
    AUTO_OBJECT object = informer_get(k->pods, p->namespace_, p->name);
    if (!object) /* its removal is on the way */
        return;
    const struct pod *pod = pod_of(object);
    AUTO_OBJECT node = informer_get(k->nodes, STR(""), pod->node_name);
    struct wish wish = pod_wish(k, p, pod, node ? node_of(node) : NULL);
    if (wish.act == ACT_NONE)
        return;
    if (wish.due_ns > kubelet_now_ns(k))
        timers_set(&k->timers, &p->timer, wish.due_ns);
    else
        act(k, pod, wish.act);
}

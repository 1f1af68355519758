/* A key is tried until its pod is seen to go:
 *
 *     asked --> evicted, or deleted with the grace that is left --> seen terminating: forgotten
 *       ^  refused by a budget, or trouble |            |
 *       +------- back-off, 100ms to 10s ---+            +-- not seen yet: looked at once more
 *
 * What is done to the pod follows from the cluster as it is at each attempt, not from what was asked:
 * the deadline may have come meanwhile, the pod may be gone, its name may be another pod's.
 *
 * A delayed key that is added to a queue is brought forward, and termination asks at every pass. So
 * who is being tried is remembered here, and adding is left to the first who asks. A key that was not
 * heard of for a minute has been lost (the queue was full) and may be asked for again.
 */
#include "control/eviction.h"

#include "base/map.h"
#include "codec/duration.h"
#include "control/controllers.h"
#include "control/drain.h"
#include "control/termination.h"

#include <pthread.h>

#define BACKOFF_MIN_NS (DURATION_SECOND / 10)
#define BACKOFF_MAX_NS (10 * DURATION_SECOND)
#define SEEN_WITHIN_NS (10 * DURATION_SECOND) /* of our deletion, normally: by its event */
#define LOST_AFTER_NS DURATION_MINUTE

/* --- who is being tried --- */

struct asked {
    int64_t heard_ns; /* of the last attempt, or of the asking */
    bool forced;
};

struct terminations {
    pthread_mutex_t lock;   /* guards the table; nothing is taken inside */
    struct str_table asked; /* struct asked *, by key */
};

struct terminations *terminations_new(void)
{
    struct terminations *t = kv_calloc(1, sizeof *t);
    pthread_mutex_init(&t->lock, NULL);
    return t;
}

void terminations_free(struct terminations *t)
{
    if (!t)
        return;
    str_table_each(&t->asked, it)
        free(it->value);
    str_table_done(&t->asked);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

/* True: the caller adds the key to the queue. */
static bool ask(struct terminations *t, struct str key, bool force, int64_t now_ns)
{
    pthread_mutex_lock(&t->lock);
    struct asked *asked = str_table_get(&t->asked, key);
    bool add = !asked || (force && !asked->forced) || now_ns - asked->heard_ns > LOST_AFTER_NS;
    if (!asked) {
        asked = kv_calloc(1, sizeof *asked);
        str_table_put(&t->asked, key, asked);
    }
    if (add)
        *asked = (struct asked){ now_ns, asked->forced || force };
    pthread_mutex_unlock(&t->lock);
    return add;
}

static void attempted(struct terminations *t, struct str key, bool done, int64_t now_ns)
{
    pthread_mutex_lock(&t->lock);
    struct asked *asked = str_table_get(&t->asked, key);
    if (asked && done)
        free(str_table_remove(&t->asked, key));
    else if (asked)
        asked->heard_ns = now_ns;
    pthread_mutex_unlock(&t->lock);
}

void eviction_ask(struct control *c, const struct pod *pod, bool force)
{
    const struct meta *meta = &pod->object.meta;
    AUTO_BUF key = { 0 };
    buf_addf(&key, "%.*s/%.*s/%.*s", STR_ARG(meta->namespace_), STR_ARG(meta->name),
             STR_ARG(meta->uid));
    if (ask(c->terminations, buf_str(&key), force, control_now_ns(c)))
        control_enqueue(c, &eviction_queue, buf_str(&key));
}

/* --- one attempt --- */

struct attempt {
    struct control *c;
    struct str key;
    const struct pod *pod;
    const struct node *node;
    const struct nodeclaim *maybe_claim;
    int64_t now_us, deadline_us;
};

static struct str http_code(const struct err *err)
{
    switch (err->kind) {
    case ERR_NONE:
        return STR("200");
    case ERR_NOT_FOUND:
        return STR("404");
    case ERR_CONFLICT:
    case ERR_EXISTS:
        return STR("409");
    case ERR_GONE:
        return STR("410");
    case ERR_THROTTLED:
        return STR("429");
    case ERR_INVALID:
        return STR("422");
    case ERR_DENIED:
        return STR("403");
    case ERR_UNAVAILABLE:
        return STR("503");
    case ERR_CAPACITY:
    case ERR_CANCELLED:
    case ERR_INTERNAL:
        return STR("500");
    }
    KV_UNREACHABLE();
}

/* Why the node goes, as far as its claim says. */
static struct str drain_reason(const struct attempt *a)
{
    const struct condition *why =
        a->maybe_claim ? claim_condition(a->maybe_claim, CONDITION_DISRUPTION_REASON) : NULL;
    return why && why->status == CONDITION_TRUE ? why->reason : STR("Forceful Termination");
}

static struct outcome failed(const struct attempt *a, const struct err *err)
{
    /* That pod is gone, or its name is another's: either way it has left the node. */
    if (err->kind == ERR_NOT_FOUND || err->kind == ERR_CONFLICT)
        return outcome_done();
    return control_failed(a->c, &eviction_queue, a->key, err);
}

static struct outcome delete_now(const struct attempt *a)
{
    struct control *c = a->c;
    const struct meta *meta = &a->pod->object.meta;
    int64_t grace_s = drain_forced_grace_s(a->now_us, a->deadline_us);
    struct delete_options options = { .uid = meta->uid, .grace_s = { grace_s, true } };
    struct object_ref ref = { &pod_kind, meta->namespace_, meta->name };
    struct err err = { 0 };

    if (store_remove(c->options.store, ref, &options, &err) < 0)
        return failed(a, &err);
    char deadline[TIME_TEXT_MAX];
    time_format(a->deadline_us, deadline);
    metric_count(c->metrics.pods_drained, drain_reason(a));
    recorder_say(c->recorder, &a->pod->object, false, "Disrupted",
                 "Deleted because its node ends at %s, with %lld seconds of grace instead of %lld; "
                 "neither a disruption budget nor " ANNOTATION_DO_NOT_DISRUPT " prevents this",
                 deadline, (long long)grace_s, (long long)a->pod->spec->termination_grace_s.value);
    return outcome_requeue(SEEN_WITHIN_NS);
}

/* By a budget, or by two: the API serves pods that have at most one. */
static bool is_refusal(const struct err *err)
{
    return err->kind == ERR_THROTTLED ||
           (err->kind == ERR_INTERNAL && strstr(err->text, "more than one PodDisruptionBudget"));
}

static struct outcome refused(const struct attempt *a, const struct err *err)
{
    const struct meta *meta = &a->pod->object.meta;
    AUTO_BUF text = { 0 };
    buf_addf(&text, "Pod %.*s/%.*s cannot be evicted yet: %s", STR_ARG(meta->namespace_),
             STR_ARG(meta->name), err->text);
    recorder_publish(a->c->recorder, &(struct notice){ .about = &a->node->object,
                                                       .warning = true,
                                                       .reason = "FailedDraining",
                                                       .message = buf_str(&text),
                                                       .key = STR("budget") });
    return outcome_retry();
}

static struct outcome evict(const struct attempt *a)
{
    struct control *c = a->c;
    const struct meta *meta = &a->pod->object.meta;
    struct delete_options options = { .uid = meta->uid };
    struct err err = { 0 };

    int rc = store_evict(c->options.store, meta->namespace_, meta->name, &options, &err);
    metric_count(c->metrics.pods_evictions, http_code(&err));
    if (rc < 0)
        return is_refusal(&err) ? refused(a, &err) : failed(a, &err);
    metric_count(c->metrics.pods_drained, drain_reason(a));
    recorder_say(c->recorder, &a->pod->object, false, "Evicted",
                 "Evicted because node %.*s is being removed (%.*s)",
                 STR_ARG(a->node->object.meta.name), STR_ARG(drain_reason(a)));
    return outcome_requeue(SEEN_WITHIN_NS);
}

static struct outcome attempt_once(struct control *c, struct str key)
{
    struct str namespace_, name, uid, rest;
    if (!str_cut(key, '/', &namespace_, &rest) || !str_cut(rest, '/', &name, &uid))
        return outcome_done();
    AUTO_OBJECT pod = cluster_get(c->cluster, &pod_kind, namespace_, name);
    if (!pod || !str_eq(pod->meta.uid, uid))
        return outcome_done();
    AUTO_OBJECT node = cluster_get(c->cluster, &node_kind, STR(""), pod_of(pod)->node_name);
    if (!node || !node->meta.deleted_us)
        return outcome_done();
    AUTO_OBJECT claim = termination_claim(c, node_of(node));

    struct attempt a = { .c = c,
                         .key = key,
                         .pod = pod_of(pod),
                         .node = node_of(node),
                         .maybe_claim = claim ? nodeclaim_of(claim) : NULL,
                         .now_us = control_now_us(c) };
    a.deadline_us = termination_deadline_us(a.maybe_claim);
    switch (drain_judge(a.pod, a.now_us, a.deadline_us).action) {
    case DRAIN_FORCE:
        return delete_now(&a);
    case DRAIN_EVICT:
        return evict(&a);
    case DRAIN_PROTECTED: /* since it was asked for: termination asks again when that is over */
    case DRAIN_WAIT:
    case DRAIN_IGNORE:
        return outcome_done();
    }
    KV_UNREACHABLE();
}

static struct outcome reconcile(struct control *c, struct str key)
{
    struct outcome outcome = attempt_once(c, key);
    attempted(c->terminations, key, outcome.kind == OUTCOME_DONE, control_now_ns(c));
    return outcome;
}

const struct controller eviction_queue = {
    .name = "eviction-queue",
    .reconcile = reconcile,
    .threads = 16,
    .backoff_min_ns = BACKOFF_MIN_NS,
    .backoff_max_ns = BACKOFF_MAX_NS,
};

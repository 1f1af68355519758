/* A pod that waits has an entry, by its uid, in the order in which they were first seen. Bound and
 * running are read off the pod's conditions, so that the time which counts is the one that the API
 * server has; a decision is our own, and its time is ours.
 *
 * The gauges are of pods that wait now. They are computed when somebody asks, of the pods that have
 * waited longest.
 */
#include "control/pod_latency.h"

#include "base/map.h"
#include "control/provisioner.h"

#define PREFIX "karpenter_pods_"

enum { BOUND, PROVISIONING_BOUND, PROVISIONING_STARTUP, DECISION, STARTUP, DURATIONS };
enum {
    UNBOUND,
    UNSTARTED,
    PROVISIONING_UNBOUND,
    PROVISIONING_UNSTARTED,
    UNDECIDED,
    GAUGES,
};

struct wait {
    struct str name, namespace_; /* owned, one block */
    int64_t created_us;
    int64_t seen_us;    /* it is for us to plan, since; 0: it is not */
    int64_t planned_us; /* it has a place in a healthy pool, since; 0: it has none */
    bool decided, bound;
};

struct pod_latency {
    const struct clock *clock;
    struct metrics *registry;
    struct metric *durations[DURATIONS];
    struct metric_family *gauges[GAUGES];
    pthread_mutex_t lock;   /* of `waits` */
    struct str_table waits; /* struct wait *, by the pod's uid */
};

static const struct {
    const char *name, *help;
} duration_rows[DURATIONS] = {
    [BOUND] = { PREFIX "bound_duration_seconds", "From a pod's creation until it is bound." },
    [PROVISIONING_BOUND] = { PREFIX "provisioning_bound_duration_seconds",
                             "From when a pod first had a planned place until it is bound." },
    [PROVISIONING_STARTUP] = { PREFIX "provisioning_startup_duration_seconds",
                               "From when a pod first had a planned place until it is running." },
    [DECISION] = { PREFIX "scheduling_decision_duration_seconds",
                   "From when a pod was first seen until it was first planned for." },
    [STARTUP] = { PREFIX "startup_duration_seconds",
                  "From a pod's creation until it is running." },
}, gauge_rows[GAUGES] = {
    [UNBOUND] = { PREFIX "unbound_time_seconds",
                  "Since the creation of a pod that is not bound." },
    [UNSTARTED] = { PREFIX "unstarted_time_seconds",
                    "Since the creation of a pod that is not running." },
    [PROVISIONING_UNBOUND] = { PREFIX "provisioning_unbound_time_seconds",
                               "Since a pod that is not bound first had a planned place." },
    [PROVISIONING_UNSTARTED] = { PREFIX "provisioning_unstarted_time_seconds",
                                 "Since a pod that is not running first had a planned place." },
    [UNDECIDED] = { PREFIX "provisioning_scheduling_undecided_time_seconds",
                    "Since a pod that was never planned for was first seen." },
};

/* --- gauges --- */

static void set_wait(struct pod_latency *p, int gauge, const struct wait *w, int64_t us)
{
    const struct str values[] = { w->name, w->namespace_ };
    gauge_set(p->gauges[gauge], us > 0 ? (double)us / 1e6 : 0, values);
}

static void collect_one(struct pod_latency *p, const struct wait *w, int64_t now_us)
{
    set_wait(p, UNSTARTED, w, now_us - w->created_us);
    if (w->planned_us)
        set_wait(p, PROVISIONING_UNSTARTED, w, now_us - w->planned_us);
    if (w->bound)
        return;
    set_wait(p, UNBOUND, w, now_us - w->created_us);
    if (w->planned_us)
        set_wait(p, PROVISIONING_UNBOUND, w, now_us - w->planned_us);
    if (w->seen_us && !w->decided)
        set_wait(p, UNDECIDED, w, now_us - w->seen_us);
}

static void collect(void *ctx)
{
    struct pod_latency *p = ctx;
    int64_t now_us = clock_wall_us(p->clock);
    uint32_t left = METRIC_SERIES_MAX;

    for (int i = 0; i < GAUGES; i++)
        metric_family_remove(p->gauges[i], NULL, STR(""));
    pthread_mutex_lock(&p->lock);
    str_table_each(&p->waits, it) {
        if (left-- == 0)
            break;
        collect_one(p, it->value, now_us);
    }
    pthread_mutex_unlock(&p->lock);
}

/* --- life --- */

static struct metric *duration_new(struct metrics *registry, int which)
{
    struct metric_desc desc = { .name = duration_rows[which].name,
                                .help = duration_rows[which].help,
                                .type = which == STARTUP ? METRIC_SUMMARY : METRIC_HISTOGRAM };
    if (desc.type == METRIC_HISTOGRAM) {
        desc.buckets = metric_duration_buckets;
        desc.bucket_count = metric_duration_bucket_count;
    }
    return metric_get(metrics_family(registry, &desc), NULL);
}

struct pod_latency *pod_latency_new(struct metrics *registry, const struct clock *clock)
{
    static const char *const labels[] = { "name", "namespace", NULL };
    struct pod_latency *p = kv_calloc(1, sizeof *p);
    p->clock = clock;
    p->registry = registry;
    pthread_mutex_init(&p->lock, NULL);
    for (int i = 0; i < DURATIONS; i++)
        p->durations[i] = duration_new(registry, i);
    for (int i = 0; i < GAUGES; i++)
        p->gauges[i] = metrics_family(registry, &(struct metric_desc){ .name = gauge_rows[i].name,
                                                                       .help = gauge_rows[i].help,
                                                                       .type = METRIC_GAUGE,
                                                                       .labels = labels });
    metrics_on_collect(registry, collect, p);
    return p;
}

void pod_latency_free(struct pod_latency *p)
{
    if (!p)
        return;
    metrics_on_collect_remove(p->registry, collect, p);
    for (int i = 0; i < DURATIONS; i++)
        metric_unref(p->durations[i]);
    for (int i = 0; i < GAUGES; i++)
        metric_family_remove(p->gauges[i], NULL, STR(""));
    str_table_each(&p->waits, it)
        free(it->value);
    str_table_done(&p->waits);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

/* --- what happens to pods --- */

static void observe(struct pod_latency *p, int which, int64_t us)
{
    /* What the API server says is in whole seconds, and may seem to be before its cause. */
    metric_observe(p->durations[which], us > 0 ? (double)us / 1e6 : 0);
}

/* When the condition became true; 0: it is not. */
static int64_t true_since_us(const struct pod *pod, struct str type)
{
    const struct pod_condition *condition = pod_condition(pod, type);
    return condition && condition->status == CONDITION_TRUE ? pod_condition_us(pod, condition) : 0;
}

static struct wait *wait_new(const struct pod *pod)
{
    const struct meta *meta = &pod->object.meta;
    struct wait *w = kv_calloc(1, sizeof *w + meta->name.len + meta->namespace_.len);
    char *text = (char *)(w + 1);
    memcpy(text, meta->name.p, meta->name.len);
    memcpy(text + meta->name.len, meta->namespace_.p, meta->namespace_.len);
    w->name = (struct str){ text, meta->name.len };
    w->namespace_ = (struct str){ text + meta->name.len, meta->namespace_.len };
    w->created_us = meta->created_us;
    w->bound = pod_is_scheduled(pod); /* if so, before we saw it */
    return w;
}

static void forget(struct pod_latency *p, struct str uid)
{
    free(str_table_remove(&p->waits, uid));
}

static void see_bound(struct pod_latency *p, struct wait *w, const struct pod *pod)
{
    int64_t at_us = true_since_us(pod, STR("PodScheduled"));
    if (!at_us)
        at_us = clock_wall_us(p->clock);
    w->bound = true;
    observe(p, BOUND, at_us - w->created_us);
    if (w->planned_us)
        observe(p, PROVISIONING_BOUND, at_us - w->planned_us);
}

static void see_pod(struct pod_latency *p, const struct pod *pod)
{
    struct str uid = pod->object.meta.uid;
    struct wait *w = str_table_get(&p->waits, uid);
    bool ready = pod_is_ready(pod);

    if (!w && !ready) {
        w = wait_new(pod);
        str_table_put(&p->waits, uid, w);
    }
    if (!w)
        return;
    if (!w->seen_us && pod_is_provisionable(pod))
        w->seen_us = clock_wall_us(p->clock);
    if (!w->bound && pod_is_scheduled(pod))
        see_bound(p, w, pod);
    if (ready) {
        int64_t at_us = true_since_us(pod, STR("Ready"));
        observe(p, STARTUP, at_us - w->created_us);
        if (w->planned_us)
            observe(p, PROVISIONING_STARTUP, at_us - w->planned_us);
        forget(p, uid);
    }
}

void pod_latency_see(void *ctx, const struct object *maybe_old, const struct object *maybe_new)
{
    struct pod_latency *p = ctx;
    bool over =
        !maybe_new || pod_is_terminal(pod_of(maybe_new)) || pod_is_terminating(pod_of(maybe_new));

    pthread_mutex_lock(&p->lock);
    if (over)
        forget(p, (maybe_new ? maybe_new : maybe_old)->meta.uid);
    else
        see_pod(p, pod_of(maybe_new));
    pthread_mutex_unlock(&p->lock);
}

/* --- what is decided about them --- */

static void decide(struct pod_latency *p, const struct pod *pod, bool measured)
{
    int64_t now_us = clock_wall_us(p->clock);

    pthread_mutex_lock(&p->lock);
    struct wait *w = str_table_get(&p->waits, pod->object.meta.uid);
    if (w && !w->bound) {
        if (!w->decided && w->seen_us)
            observe(p, DECISION, now_us - w->seen_us);
        w->decided = true;
        if (!measured)
            w->planned_us = 0;
        else if (!w->planned_us)
            w->planned_us = now_us;
    }
    pthread_mutex_unlock(&p->lock);
}

void pod_latency_planned(struct control *c, const struct pod *pod, bool healthy)
{
    decide(c->pod_latency, pod, healthy);
}

void pod_latency_undecided(struct control *c, const struct pod *pod)
{
    decide(c->pod_latency, pod, false);
}

/* node/pleg_metrics.c - what dashboards see of the PLEG.
 *
 * The kubelet_ names are those that operators have alerts on already. A relist that hangs shows in
 * none of them until it ends, which is why its age while it runs is told as well.
 */
#include "node/pleg_inner.h"

/* Half a millisecond to 10 s: a relist without changes takes about the first. */
static const double seconds[] = { .0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10 };
static const char *const result_label[] = { "result", NULL };

static struct metric *plain(struct metrics *m, enum metric_type type, const char *name,
                            const char *help)
{
    bool histogram = type == METRIC_HISTOGRAM;
    struct metric_desc desc = { .name = name,
                                .help = help,
                                .type = type,
                                .buckets = histogram ? seconds : NULL,
                                .bucket_count = histogram ? KV_COUNT_OF(seconds) : 0 };
    return metric_get(metrics_family(m, &desc), NULL);
}

static struct metric *with_result(struct metrics *m, const char *name, const char *help,
                                  const char *result)
{
    struct metric_desc desc = {
        .name = name, .help = help, .type = METRIC_COUNTER, .labels = result_label
    };
    struct str value = str_of(result);
    return metric_get(metrics_family(m, &desc), &value);
}

/* What is kept elsewhere. */
static void collect(void *ctx)
{
    struct pleg *pleg = ctx;
    struct pleg_metrics *metrics = &pleg->metrics;
    metric_set(metrics->running, (double)pleg_stats(pleg).relist_running_ns / 1e9);
    pthread_mutex_lock(&pleg->lock);
    uint32_t late_count = pleg->late_count;
    pthread_mutex_unlock(&pleg->lock);
    metric_set(metrics->late, late_count);
    uint64_t discarded = event_hub_dropped(pleg->opts.events);
    metric_add(metrics->discarded, (double)(discarded - metrics->discarded_count));
    metrics->discarded_count = discarded;
}

void pleg_metrics_init(struct pleg *pleg)
{
    struct metrics *m = pleg->opts.metrics;
    if (!m)
        return;
    static const char inspections[] = "karve_pleg_inspections_total";
    static const char inspections_help[] =
        "Inspections of a pod; outdated: the pod had changed again when the answer came.";
    static const char hints[] = "karve_pleg_hints_total";
    static const char hints_help[] =
        "Events of the runtime; asked: a relist of the pod was asked for.";
    pleg->metrics = (struct pleg_metrics){
        .relist_duration = plain(m, METRIC_HISTOGRAM, "kubelet_pleg_relist_duration_seconds",
                                 "How long relists of all pods took."),
        .relist_interval = plain(m, METRIC_HISTOGRAM, "kubelet_pleg_relist_interval_seconds",
                                 "Time from one relist of all pods to the next."),
        .pod_relist_duration =
            plain(m, METRIC_HISTOGRAM, "kubelet_pleg_pod_relist_duration_seconds",
                  "How long relists of single pods took, without inspecting them."),
        .last_seen = plain(m, METRIC_GAUGE, "kubelet_pleg_last_seen_seconds",
                           "When all pods were last listed, in seconds since 1970."),
        .discarded = plain(m, METRIC_COUNTER, "kubelet_pleg_discard_events",
                           "Events that a subscriber was too slow for."),
        .running = plain(m, METRIC_GAUGE, "karve_pleg_relist_running_seconds",
                         "For how long the running relist has been at it; 0: none runs."),
        .late = plain(m, METRIC_GAUGE, "karve_pleg_late_inspections",
                      "Inspections that nobody waits for any more and that may still answer."),
        .inspections_ok = with_result(m, inspections, inspections_help, "ok"),
        .inspections_failed = with_result(m, inspections, inspections_help, "failed"),
        .inspections_outdated = with_result(m, inspections, inspections_help, "outdated"),
        .hints_asked = with_result(m, hints, hints_help, "asked"),
        .hints_ignored = with_result(m, hints, hints_help, "ignored"),
        .hints_dropped = with_result(m, hints, hints_help, "dropped"),
        .discarded_count = event_hub_dropped(pleg->opts.events),
    };
    metrics_on_collect(m, collect, pleg);
}

void pleg_metrics_done(struct pleg *pleg)
{
    struct pleg_metrics *p = &pleg->metrics;
    if (!pleg->opts.metrics)
        return;
    metrics_on_collect_remove(pleg->opts.metrics, collect, pleg);
    struct metric *const all[] = {
        p->relist_duration,
        p->relist_interval,
        p->pod_relist_duration,
        p->last_seen,
        p->discarded,
        p->running,
        p->late,
        p->inspections_ok,
        p->inspections_failed,
        p->inspections_outdated,
        p->hints_asked,
        p->hints_ignored,
        p->hints_dropped,
    };
    for (size_t i = 0; i < KV_COUNT_OF(all); i++)
        metric_unref(all[i]);
}

/* One row per family: where its pointer is kept, its name, its labels. Durations without a row of
 * their own in `buckets` below use the bounds that upstream uses for all.
 */
#include "control/control_metrics.h"

#include "control/control_impl.h"
#include "control/metrics_collect.h"
#include "control/pod_latency.h"

#define LABELS(...) ((const char *const[]){ __VA_ARGS__, NULL })

#define MINUTE_S 60.0
#define HOUR_S 3600.0
#define DAY_S (24 * HOUR_S)

/* 1, 2, 4, ... seconds: 11 and 12 of them. */
static const double doubling_buckets[] = { 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048 };

static const double lifetime_buckets[] = {
    15 * MINUTE_S, 30 * MINUTE_S, 45 * MINUTE_S, 1 * HOUR_S,  2 * HOUR_S,  4 * HOUR_S, 6 * HOUR_S,
    8 * HOUR_S,    10 * HOUR_S,   12 * HOUR_S,   16 * HOUR_S, 20 * HOUR_S, 1 * DAY_S,  2 * DAY_S,
    3 * DAY_S,     5 * DAY_S,     10 * DAY_S,    15 * DAY_S,  20 * DAY_S,  25 * DAY_S, 30 * DAY_S,
};

/* From a simulated node's zero seconds to beyond the usual deadline of 15 minutes. */
static const double registration_buckets[] = { 1,  2,  5,   10,  15,  20,  30,  40,  50,  60,
                                               75, 90, 120, 180, 240, 300, 450, 600, 900, 1800 };

#define DISRUPTED_LABELS                                                                           \
    LABELS("reason", "nodepool", "capacity_type", "consolidation_policy", "termination_mode")

struct row {
    size_t offset; /* in struct control_metrics */
    struct metric_desc desc;
};
#define ROW(member, ...)                                                                           \
    {                                                                                              \
        offsetof(struct control_metrics, member),                                                  \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define COUNTER(member, name_, help_, labels_)                                                     \
    ROW(member, .type = METRIC_COUNTER, .name = name_, .help = help_, .labels = labels_)
#define GAUGE(member, name_, help_, labels_)                                                       \
    ROW(member, .type = METRIC_GAUGE, .name = name_, .help = help_, .labels = labels_)
#define HISTOGRAM(member, name_, help_, labels_, ...)                                              \
    ROW(member, .type = METRIC_HISTOGRAM, .name = name_, .help = help_, .labels = labels_,         \
        ##__VA_ARGS__)
#define BUCKETS(array, n) .buckets = (array), .bucket_count = (n)

static const struct row rows[] = {
    COUNTER(nodeclaims_created, "karpenter_nodeclaims_created_total", "NodeClaims created.",
            LABELS("reason", "nodepool", "min_values_relaxed")),
    COUNTER(nodeclaims_terminated, "karpenter_nodeclaims_terminated_total",
            "NodeClaims that have ended.", LABELS("nodepool", "capacity_type", "zone")),
    COUNTER(nodeclaims_disrupted, "karpenter_nodeclaims_disrupted_total",
            "NodeClaims deleted by the control plane, by reason.", DISRUPTED_LABELS),
    COUNTER(nodeclaims_unhealthy_disrupted, "karpenter_nodeclaims_unhealthy_disrupted_total",
            "NodeClaims replaced because of a condition of their node.",
            LABELS("condition", "nodepool", "capacity_type", "image_id")),
    HISTOGRAM(instance_termination_duration,
              "karpenter_nodeclaims_instance_termination_duration_seconds",
              "From the first request to terminate an instance until it is gone.",
              LABELS("nodepool"), BUCKETS(doubling_buckets, 11)),
    HISTOGRAM(nodeclaim_termination_duration, "karpenter_nodeclaims_termination_duration_seconds",
              "From a NodeClaim's deletion until it is gone.", LABELS("nodepool"),
              BUCKETS(doubling_buckets, 12)),
    COUNTER(nodes_created, "karpenter_nodes_created_total", "Nodes that have registered.",
            LABELS("nodepool", "zone")),
    COUNTER(nodes_terminated, "karpenter_nodes_terminated_total", "Nodes that have ended.",
            LABELS("nodepool", "zone")),
    COUNTER(nodes_drained, "karpenter_nodes_drained_total", "Nodes that were drained.",
            LABELS("nodepool")),
    ROW(node_termination_duration, .type = METRIC_SUMMARY,
        .name = "karpenter_nodes_termination_duration_seconds",
        .help = "From a node's deletion until its finalizer is removed.",
        .labels = LABELS("nodepool")),
    HISTOGRAM(node_lifetime_duration, "karpenter_nodes_lifetime_duration_seconds",
              "From a node's creation until its end.", LABELS("nodepool"),
              BUCKETS(lifetime_buckets, KV_COUNT_OF(lifetime_buckets))),
    COUNTER(pods_drained, "karpenter_pods_drained_total", "Pods that were drained from nodes.",
            LABELS("reason")),
    COUNTER(pods_evictions, "karpenter_pods_eviction_requests_total",
            "Requests to evict a pod, by the answer's code.", LABELS("code")),
    COUNTER(pods_disruption_initiated, "karpenter_pods_disruption_initiated_total",
            "Pods on nodes that the control plane began to take down.", DISRUPTED_LABELS),
    HISTOGRAM(scheduling_duration, "karpenter_scheduler_scheduling_duration_seconds",
              "How long planning took.", LABELS("controller")),
    GAUGE(scheduler_queue_depth, "karpenter_scheduler_queue_depth",
          "Pods that wait to be planned for.", LABELS("controller", "scheduling_id")),
    GAUGE(unschedulable_pods, "karpenter_scheduler_unschedulable_pods_count",
          "Pods that fit nowhere.", LABELS("controller")),
    GAUGE(ignored_pods, "karpenter_scheduler_ignored_pods_count",
          "Pending pods that are not planned for.", NULL),
    GAUGE(pending_by_zone, "karpenter_scheduler_pending_pods_by_effective_zone_count",
          "Pending pods by the zone that they need.", LABELS("controller", "zone")),
    HISTOGRAM(cloud_duration, "karpenter_cloudprovider_duration_seconds",
              "How long calls to the cloud took.", LABELS("controller", "method", "provider")),
    COUNTER(cloud_errors, "karpenter_cloudprovider_errors_total", "Calls to the cloud that failed.",
            LABELS("controller", "method", "provider", "error")),
    GAUGE(registration_healthy, "karve_nodepools_registration_healthy",
          "NodeRegistrationHealthy of a NodePool: 1 for its status.", LABELS("nodepool", "status")),
    COUNTER(registrations, "karve_nodepools_registrations_total",
            "Nodes of a NodePool that have registered.", LABELS("nodepool")),
    COUNTER(registration_failures, "karve_nodepools_registration_failures_total",
            "NodeClaims that were not launched or did not register in time.",
            LABELS("nodepool", "reason")),
    HISTOGRAM(registration_duration, "karve_nodepools_registration_duration_seconds",
              "From a NodeClaim's creation until its node has registered.", LABELS("nodepool"),
              BUCKETS(registration_buckets, KV_COUNT_OF(registration_buckets))),
    COUNTER(reconciles, "karve_reconciles_total", "Reconciled keys, by how it ended.",
            LABELS("controller", "result")),
};

void control_metrics_init(struct control_metrics *m, struct metrics *registry)
{
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        struct metric_desc desc = rows[i].desc;
        if (desc.type == METRIC_HISTOGRAM && !desc.buckets) {
            desc.buckets = metric_duration_buckets;
            desc.bucket_count = metric_duration_bucket_count;
        }
        struct metric_family *family = metrics_family(registry, &desc);
        memcpy((char *)m + rows[i].offset, &family, sizeof(struct metric_family *));
    }
}

void metric_count_values(struct metric_family *family, const struct str *values)
{
    AUTO(metric) series = metric_get(family, values);
    metric_inc(series);
}

void metric_observe_values(struct metric_family *family, double v, const struct str *values)
{
    AUTO(metric) series = metric_get(family, values);
    metric_observe(series, v);
}

void gauge_set(struct metric_family *family, double v, const struct str *values)
{
    AUTO(metric) series = metric_get(family, values);
    metric_set(series, v);
}

void control_metrics_start(struct control *c)
{
    cluster_on_change(c->cluster, &pod_kind, pod_latency_see, c->pod_latency);
    c->condition_metrics = condition_metrics_new(c);
    c->object_gauges = object_gauges_new(c);
}

void control_metrics_stop(struct control *c)
{
    object_gauges_free(c->object_gauges);
    condition_metrics_free(c->condition_metrics);
    c->object_gauges = NULL;
    c->condition_metrics = NULL;
}

void control_metrics_build_info(struct metrics *registry, struct str version, struct str commit)
{
    static const char *const labels[] = { "version", "goversion", "goarch", "commit", NULL };
    struct metric_family *family = metrics_family(
        registry, &(struct metric_desc){ .name = "karpenter_build_info",
                                         .help = "1, with what this program was built from.",
                                         .type = METRIC_GAUGE,
                                         .labels = labels });
#if defined(__aarch64__)
    struct str arch = STR("arm64");
#else
    struct str arch = STR("amd64");
#endif
    /* Names that dashboards ask for; there is no Go in it, so what compiled it stands there. */
    gauge_set(family, 1, (const struct str[]){ version, STR("C " __VERSION__), arch, commit });
}

/* --- disruptions --- */

static struct str text_or_empty(struct str s)
{
    return s.p ? s : STR("");
}

static struct str termination_mode(const struct nodeclaim *claim)
{
    struct duration grace = claim->spec.node.termination_grace_period;
    if (!grace.set)
        return STR("graceful");
    return grace.ns > 0 ? STR("eventual") : STR("forceful");
}

/* Pods that will have to run somewhere else: not those that belong to the node, nor ended ones. */
static uint32_t count_moving_pods(struct control *c, struct str node_name)
{
    struct object_list pods = { 0 };
    uint32_t count = 0;

    if (node_name.len == 0)
        return 0;
    cluster_list_by(c->cluster, PODS_BY_NODE, node_name, &pods);
    for (size_t i = 0; i < pods.count; i++) {
        const struct owner_ref *owner = meta_controller(&pods.items[i]->meta);
        bool stays = owner && (str_eqz(owner->kind, "DaemonSet") || str_eqz(owner->kind, "Node"));
        count += !stays && !pod_is_terminal(pod_of(pods.items[i]));
    }
    object_list_done(&pods);
    return count;
}

void claim_count_disrupted(struct control *c, const struct nodeclaim *claim, const char *reason)
{
    const struct str values[] = {
        str_of(reason),
        claim_pool_name(claim),
        text_or_empty(str_map_get(&claim->object.meta.labels, STR(LABEL_CAPACITY_TYPE))),
        STR(""), /* the policy only of what consolidation decides */
        termination_mode(claim),
    };
    metric_count_values(c->metrics.nodeclaims_disrupted, values);

    AUTO(metric) pods = metric_get(c->metrics.pods_disruption_initiated, values);
    metric_add(pods, count_moving_pods(c, claim->status.node_name));
}

/* How many pods, containers and workers there are, counted when somebody asks. Names as kubelets have
 * them, where they mean the same. */
#include "node/agent_inner.h"

static const char *const state_labels[] = { "container_state", NULL };
static const char *const worker_labels[] = { "state", NULL };

static void set_series(struct metric_family *family, const char *label, double value)
{
    struct str text = str_of(label);
    AUTO(metric) series = metric_get(family, &text);
    metric_set(series, value);
}

static void collect_cache(struct agent *agent)
{
    uint32_t pods = 0, states[RUNTIME_UNKNOWN + 1] = { 0 };
    struct pod_cache_all all = pod_cache_all(agent->cache);
    for (uint32_t i = 0; i < all.count; i++) {
        const struct runtime_status *status = all.items[i];
        pods += runtime_ready_sandbox(status) != NULL;
        for (uint32_t j = 0; j < status->containers.count; j++)
            states[status->containers.items[j].state]++;
    }
    pod_cache_all_done(&all);
    metric_set(agent->running_pods, pods);
    for (uint32_t i = 0; i <= RUNTIME_UNKNOWN; i++)
        set_series(agent->containers, runtime_state_name((enum runtime_state)i), states[i]);
}

static void collect_workers(struct agent *agent)
{
    static const char *const names[] = { "Waiting", "Syncing", "Terminating", "Terminated",
                                         "Finished" };
    AUTO_ARENA arena = { 0 };
    struct worker_views views;
    pod_workers_view(agent->workers, &arena, &views);
    for (size_t i = 0; i < KV_COUNT_OF(names); i++) {
        uint32_t count = 0;
        for (uint32_t j = 0; j < views.count; j++)
            count += strcmp(views.items[j].state, names[i]) == 0;
        set_series(agent->worker_states, names[i], count);
    }
}

static void collect(void *ctx)
{
    struct agent *agent = ctx;
    collect_cache(agent);
    if (agent->workers)
        collect_workers(agent);
}

void agent_metrics_start(struct agent *agent)
{
    struct metrics *m = agent->opts.metrics;
    if (!m)
        return;
    agent->running_pods = metric_get(
        metrics_family(m, &(struct metric_desc){ .name = "kubelet_running_pods",
                                                 .help = "Pods with a sandbox that is ready.",
                                                 .type = METRIC_GAUGE }),
        NULL);
    agent->containers = metrics_family(
        m, &(struct metric_desc){ .name = "kubelet_running_containers",
                                  .help = "Containers that the runtime has, by state.",
                                  .type = METRIC_GAUGE,
                                  .labels = state_labels });
    agent->worker_states =
        metrics_family(m, &(struct metric_desc){ .name = "karve_pod_workers",
                                                 .help = "Pod workers, by state.",
                                                 .type = METRIC_GAUGE,
                                                 .labels = worker_labels });
    metrics_on_collect(m, collect, agent);
}

void agent_metrics_stop(struct agent *agent)
{
    if (!agent->running_pods)
        return;
    metrics_on_collect_remove(agent->opts.metrics, collect, agent);
    metric_unref(agent->running_pods);
    agent->running_pods = NULL;
}

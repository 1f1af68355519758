/* What the agent does now and then: ask the runtime how it is, and remove what is left of ended
 * containers. Each has a thread of its own, because either may wait for a runtime that hangs.
 */
#include "node/agent_inner.h"

#include "base/thread.h"
#include "node/container_gc.h"

#include <inttypes.h>

#define STATUS_POLL_NS ((int64_t)5 * 1000000000)
#define RUNTIME_DOWN_NS ((int64_t)30 * 1000000000)
#define GC_CALL_NS ((int64_t)30 * 1000000000) /* a hung shim holds up no more than this */

/* --- something that is done every period, and when asked for --- */

static void *ticker_main(void *arg)
{
    struct ticker *ticker = arg;
    const struct clock *clock = ticker->agent->opts.clock;
    for (;;) {
        ticker->run(ticker->agent);
        int64_t until = clock_mono_ns(clock) + ticker->period_ns;
        pthread_mutex_lock(&ticker->lock);
        while (!ticker->stopping && !ticker->woken && clock_mono_ns(clock) < until)
            clock_wait(clock, &ticker->changed, &ticker->lock, until);
        bool stopping = ticker->stopping;
        ticker->woken = false;
        pthread_mutex_unlock(&ticker->lock);
        if (stopping)
            return NULL;
    }
}

static int ticker_start(struct ticker *ticker, struct agent *agent, const char *name,
                        void (*run)(struct agent *agent), int64_t period_ns, struct err *err)
{
    *ticker = (struct ticker){ .agent = agent, .run = run, .period_ns = period_ns };
    pthread_mutex_init(&ticker->lock, NULL);
    clock_cond_init(&ticker->changed);
    if (thread_start(&ticker->thread, name, ticker_main, ticker, err) < 0)
        return -1;
    ticker->running = true;
    return 0;
}

static void ticker_tell(struct ticker *ticker, bool stop)
{
    pthread_mutex_lock(&ticker->lock);
    ticker->stopping |= stop;
    ticker->woken = true;
    pthread_cond_signal(&ticker->changed);
    pthread_mutex_unlock(&ticker->lock);
}

static void ticker_stop(struct ticker *ticker)
{
    if (!ticker->running)
        return;
    ticker_tell(ticker, true);
    pthread_join(ticker->thread, NULL);
    pthread_mutex_destroy(&ticker->lock);
    pthread_cond_destroy(&ticker->changed);
    ticker->running = false;
}

/* --- how the runtime is --- */

/* Before any pod is run. Runtimes that do not tell get the driver that they have unless configured
 * otherwise. False: there was no answer; ask again. */
static bool learn_cgroup_driver(struct agent *agent)
{
    bool systemd = agent->opts.cgroup_driver == CGROUP_SYSTEMD;
    if (agent->opts.cgroup_driver == CGROUP_ASK) {
        AUTO_ARENA arena = { 0 };
        struct err err;
        Cri__RuntimeConfigResponse *reply;
        if (cri_call_within(agent->cri, CRI_RUNTIME_CONFIG, NULL, STATUS_POLL_NS, agent->care_calls,
                            &arena, &reply, &err) == 0)
            systemd = reply->linux_ && reply->linux_->cgroup_driver == CRI__CGROUP_DRIVER__SYSTEMD;
        else if (err.kind == ERR_UNAVAILABLE || err.kind == ERR_CANCELLED)
            return false;
    }
    pod_workers_set_cgroups(agent->workers, systemd);
    return true;
}

/* Asked with each status: a runtime is upgraded under a running agent. */
static void learn_version(struct agent *agent)
{
    AUTO_ARENA arena = { 0 };
    AUTO_BUF text = { 0 };
    struct err err;
    Cri__VersionRequest request = CRI__VERSION_REQUEST__INIT;
    Cri__VersionResponse *reply;
    if (cri_call_within(agent->cri, CRI_VERSION, &request, STATUS_POLL_NS, agent->care_calls,
                        &arena, &reply, &err) < 0)
        return;
    buf_add_utf8(&text, str_of(reply->runtime_name));
    buf_addz(&text, "://");
    buf_add_utf8(&text, str_of(reply->runtime_version));
    pthread_mutex_lock(&agent->lock);
    free(agent->runtime_version);
    agent->runtime_version = buf_take(&text);
    pthread_mutex_unlock(&agent->lock);
}

static void poll_status(struct agent *agent)
{
    AUTO_ARENA arena = { 0 };
    struct err err;
    Cri__StatusRequest request = CRI__STATUS_REQUEST__INIT;
    Cri__StatusResponse *reply;
    if (cri_call_within(agent->cri, CRI_STATUS, &request, STATUS_POLL_NS, agent->care_calls, &arena,
                        &reply, &err) < 0) {
        if (cri_cancelled(agent->care_calls))
            return;
        log_warn(agent->opts.log, "the runtime does not tell its status", LOG_ERR(&err));
        return;
    }
    learn_version(agent);
    bool runtime = false, network = false;
    for (size_t i = 0; reply->status && i < reply->status->n_conditions; i++) {
        const Cri__RuntimeCondition *condition = reply->status->conditions[i];
        if (strcmp(condition->type, "RuntimeReady") == 0)
            runtime = condition->status;
        else if (strcmp(condition->type, "NetworkReady") == 0)
            network = condition->status;
    }
    bool was = atomic_exchange(&agent->network_ready, network);
    atomic_store(&agent->runtime_ready, runtime);
    atomic_store(&agent->status_ns, clock_mono_ns(agent->opts.clock));
    if (was != network)
        log_info(agent->opts.log, "the pod network has changed", LOG_BOOL("ready", network));
    if (!was && network)
        pod_workers_sync_all(agent->workers);
    if (!atomic_load(&agent->runtime_known) && learn_cgroup_driver(agent))
        atomic_store(&agent->runtime_known, true);
}

bool agent_network_ready(void *ctx)
{
    struct agent *agent = ctx;
    return atomic_load(&agent->network_ready);
}

bool agent_healthy(struct agent *agent, struct err *why)
{
    if (!pleg_healthy(agent->pleg, why))
        return false;
    if (!agent->opts.run_pods)
        return true;
    int64_t age = clock_mono_ns(agent->opts.clock) - atomic_load(&agent->status_ns);
    if (age > RUNTIME_DOWN_NS) {
        err_set(why, ERR_UNAVAILABLE, "the runtime has not told its status for %" PRId64 " s",
                age / 1000000000);
        return false;
    }
    if (!atomic_load(&agent->runtime_ready)) {
        err_set(why, ERR_UNAVAILABLE, "the runtime says that it is not ready");
        return false;
    }
    return true;
}

bool agent_ready(struct agent *agent, struct err *why)
{
    if (!agent_healthy(agent, why))
        return false;
    if (!agent_network_ready(agent)) {
        err_set(why, ERR_UNAVAILABLE, "container runtime network not ready");
        return false;
    }
    return true;
}

/* --- removing what is left --- */

static bool may_remove(void *ctx, struct str uid)
{
    struct agent *agent = ctx;
    return pod_workers_may_remove_content(agent->workers, uid);
}

static void remove_one(struct agent *agent, enum cri_method method, const void *request,
                       struct str id)
{
    AUTO_ARENA arena = { 0 };
    struct err err;
    if (cri_call_within(agent->cri, method, request, GC_CALL_NS, agent->care_calls, &arena, NULL,
                        &err) < 0)
        log_warn(agent->opts.log, "not removed", LOG_STR("id", id), LOG_ERR(&err));
}

/* Of pods that nobody runs and the runtime does not show. What could not be inspected may run: it stays. */
static void remove_folders(struct agent *agent)
{
    AUTO_ARENA arena = { 0 };
    struct str_list uids;
    struct err err;
    if (volumes_list(&agent->facts, &arena, &uids, &err) < 0)
        return;
    for (uint32_t i = 0; i < uids.count; i++) {
        AUTO_STATUS status = pod_cache_get(agent->cache, uids.items[i]);
        bool seen =
            status->sandboxes.count || status->containers.count || status->error_kind != ERR_NONE;
        if (!seen && !pod_workers_knows(agent->workers, uids.items[i]) &&
            volumes_remove(uids.items[i], &agent->facts, &err) < 0)
            log_warn(agent->opts.log, "pod folder not removed", LOG_STR("uid", uids.items[i]),
                     LOG_ERR(&err));
    }
}

static void collect_container(struct agent *agent, const struct pod_cache_all *all, struct str id)
{
    AUTO_ARENA arena = { 0 };
    for (uint32_t i = 0; i < all->count; i++) {
        const struct runtime_container *c = runtime_container_by_id(all->items[i], id);
        if (c)
            container_log_remove(all->items[i], c, &agent->facts);
    }
    Cri__RemoveContainerRequest request = CRI__REMOVE_CONTAINER_REQUEST__INIT;
    request.container_id = (char *)arena_str(&arena, id).p;
    remove_one(agent, CRI_REMOVE_CONTAINER, &request, id);
}

/* With the last sandbox of a pod that is over its logs go: by now all its containers have. */
static void collect_sandbox(struct agent *agent, const struct pod_cache_all *all, struct str id)
{
    AUTO_ARENA arena = { 0 };
    struct err err;
    for (uint32_t i = 0; i < all->count; i++) {
        const struct runtime_status *status = all->items[i];
        if (status->sandboxes.count && str_eq(status->sandboxes.items[0].id, id) &&
            may_remove(agent, status->uid) && pod_log_remove(status, &agent->facts, &err) < 0)
            log_warn(agent->opts.log, "logs not removed", LOG_STR("pod", status->name),
                     LOG_ERR(&err));
    }
    Cri__RemovePodSandboxRequest request = CRI__REMOVE_POD_SANDBOX_REQUEST__INIT;
    request.pod_sandbox_id = (char *)arena_str(&arena, id).p;
    remove_one(agent, CRI_REMOVE_POD_SANDBOX, &request, id);
}

/* Pods of other agents are not ours to clear up. */
static void keep_ours(struct pod_cache_all *all)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < all->count; i++) {
        if (runtime_status_ours(all->items[i]))
            all->items[kept++] = all->items[i];
        else
            runtime_status_unref(all->items[i]);
    }
    all->count = kept;
}

static void collect_garbage(struct agent *agent)
{
    AUTO_ARENA arena = { 0 };
    if (!atomic_load(&agent->may_collect))
        return; /* nobody knows yet what is wanted */
    struct pod_cache_all all = pod_cache_all(agent->cache);
    keep_ours(&all);
    struct container_gc_plan plan = container_gc_plan(&arena, &all, may_remove, agent);
    for (uint32_t i = 0; i < plan.containers.count && !cri_cancelled(agent->care_calls); i++)
        collect_container(agent, &all, plan.containers.items[i]);
    for (uint32_t i = 0; i < plan.sandboxes.count && !cri_cancelled(agent->care_calls); i++)
        collect_sandbox(agent, &all, plan.sandboxes.items[i]);
    pod_cache_all_done(&all);
    remove_folders(agent);
}

void agent_collect_soon(struct agent *agent)
{
    ticker_tell(&agent->gc, false);
}

int agent_care_start(struct agent *agent, struct err *err)
{
    atomic_store(&agent->status_ns, clock_mono_ns(agent->opts.clock));
    agent->care_calls = cri_cancel_new();
    if (ticker_start(&agent->poll, agent, "agent-status", poll_status, STATUS_POLL_NS, err) < 0)
        return -1;
    return ticker_start(&agent->gc, agent, "agent-gc", collect_garbage, CONTAINER_GC_PERIOD_NS,
                        err);
}

void agent_care_stop(struct agent *agent)
{
    if (agent->care_calls)
        cri_cancel(agent->care_calls);
    ticker_stop(&agent->poll);
    ticker_stop(&agent->gc);
    cri_cancel_free(agent->care_calls);
    agent->care_calls = NULL;
}

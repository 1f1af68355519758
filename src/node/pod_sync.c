/* Carrying out what pod_actions decided: kill, sandbox, init containers, containers.
 *
 * Order: kill (all, or those listed), make the sandbox, then start. A plain init container that
 * does not start ends the rest; any other failure is the container's own. Failures are remembered
 * by container, because they are what its status says while it waits ("CrashLoopBackOff").
 *
 * Nothing here is undone when it fails half way, and nothing needs to be: the next step sees in the
 * cache what came of it. A container that was created and not started is removed before another of
 * its name is made: a start whose answer was lost could still bring it to life.
 */
#include "node/workers_inner.h"

#include "codec/duration.h"

/* --- failures --- */

void worker_failures_done(struct pod_worker *w)
{
    str_table_each(&w->failures, slot)
        free(slot->value);
    str_table_done(&w->failures);
}

static void forget_failure(struct pod_worker *w, struct str container)
{
    free(str_table_remove(&w->failures, container));
}

/* One block: the struct, then its texts. False: it was known already. Messages name temporary folders and
 * the ids of attempts: another message alone is no news, or every failure would be. */
static bool remember_failure(struct pod_worker *w, struct str container, const char *reason,
                             const char *message)
{
    const struct start_failure *known = str_table_get(&w->failures, container);
    bool news = !known || !str_eqz(known->reason, reason);
    if (!news && str_eqz(known->message, message))
        return false;
    size_t reason_len = strlen(reason), message_len = strlen(message);
    struct start_failure *failure =
        kv_malloc(sizeof *failure + container.len + reason_len + message_len);
    char *text = (char *)(failure + 1);
    memcpy(text, container.p, container.len);
    memcpy(text + container.len, reason, reason_len);
    memcpy(text + container.len + reason_len, message, message_len);
    *failure = (struct start_failure){
        .container = { text, container.len },
        .reason = { text + container.len, reason_len },
        .message = { text + container.len + reason_len, message_len },
    };
    forget_failure(w, container);
    str_table_put(&w->failures, container, failure);
    return news;
}

void worker_forget_failures(struct pod_worker *w, const struct runtime_status *seen)
{
    for (uint32_t i = 0; i < seen->containers.count; i++)
        if (seen->containers.items[i].state == RUNTIME_RUNNING)
            forget_failure(w, seen->containers.items[i].name);
}

/* The step has failed; the soonest retry that anybody asked for counts. */
static void sync_failed(struct pod_sync *sync, const struct err *err, int64_t retry_ns)
{
    struct step_result *result = sync->result;
    if (!sync->failed && sync->err != err)
        *sync->err = *err;
    sync->failed = true;
    result->end = STEP_FAILED;
    if (retry_ns && (!result->retry_ns || retry_ns < result->retry_ns))
        result->retry_ns = retry_ns;
}

/* --- killing and removing --- */

static struct pod_kill kill_of(const struct pod_sync *sync)
{
    return (struct pod_kill){
        .worker = sync->worker, .maybe_pod = sync->pod, .status = sync->status, .calls = sync->calls
    };
}

static int remove_container(struct pod_sync *sync, struct str id, struct err *err)
{
    Cri__RemoveContainerRequest request = CRI__REMOVE_CONTAINER_REQUEST__INIT;
    request.container_id = (char *)arena_str(&sync->arena, id).p;
    return cri_call(sync->worker->owner->opts.cri, CRI_REMOVE_CONTAINER, &request, &sync->arena,
                    NULL, err);
}

static bool is_init(const struct node_pod *pod, struct str name)
{
    for (uint32_t i = 0; i < pod->inits.count; i++)
        if (str_eq(pod->inits.items[i].name, name))
            return true;
    return false;
}

/* Ended instances of init containers but the newest of each name; all of them for a new sandbox. */
static void remove_old_inits(struct pod_sync *sync, bool all)
{
    const struct runtime_status *status = sync->status;
    for (uint32_t i = 0; i < status->containers.count; i++) {
        const struct runtime_container *c = &status->containers.items[i];
        struct err err;
        if (!is_init(sync->pod, c->name) || c->state == RUNTIME_RUNNING)
            continue;
        if (!all && runtime_container_find(status, c->name) == c)
            continue;
        container_log_remove(status, c, &sync->facts); /* first: see pod_logs.c */
        if (remove_container(sync, c->id, &err) < 0)   /* the collector tries again */
            log_warn(sync->worker->owner->opts.log, "init container not removed",
                     LOG_STR("container", c->name), LOG_ERR(&err));
    }
}

static int kill_listed(struct pod_sync *sync, const struct pod_actions *actions, struct err *err)
{
    struct pod_kill kill = kill_of(sync);
    for (uint32_t i = 0; i < actions->kill.count; i++) {
        const struct container_kill *item = &actions->kill.items[i];
        const struct runtime_container *c = runtime_container_by_id(sync->status, item->id);
        struct str why = arena_str(&sync->arena, item->message);
        if (c && pod_kill_container(&kill, c, item->grace_s, why.p, err) < 0)
            return -1;
        sync->result->acted = true;
    }
    return 0;
}

/* --- the sandbox --- */

static void take_addresses(struct pod_sync *sync, const Cri__PodSandboxStatus *status)
{
    const Cri__PodSandboxNetworkStatus *network = status ? status->network : NULL;
    if (!network || !network->ip || !*network->ip)
        return;
    struct str *ips = arena_array(&sync->arena, struct str, 1 + network->n_additional_ips);
    uint32_t count = 0;
    ips[count++] = str_of(network->ip);
    for (size_t i = 0; i < network->n_additional_ips; i++)
        ips[count++] = str_of(network->additional_ips[i]->ip);
    sync->facts.pod_ips = (struct str_list){ ips, count };
}

static int make_sandbox(struct pod_sync *sync, struct err *err)
{
    struct cri *cri = sync->worker->owner->opts.cri;
    Cri__RunPodSandboxRequest request = CRI__RUN_POD_SANDBOX_REQUEST__INIT;
    Cri__RunPodSandboxResponse *made;
    request.config = sync->sandbox;
    if (cri_call(cri, CRI_RUN_POD_SANDBOX, &request, &sync->arena, &made, err) < 0)
        return -1;
    sync->sandbox_id = str_of(made->pod_sandbox_id);
    sync->result->acted = true;

    Cri__PodSandboxStatusRequest ask = CRI__POD_SANDBOX_STATUS_REQUEST__INIT;
    Cri__PodSandboxStatusResponse *reply;
    ask.pod_sandbox_id = made->pod_sandbox_id;
    if (cri_call(cri, CRI_POD_SANDBOX_STATUS, &ask, &sync->arena, &reply, err) < 0)
        return -1;
    take_addresses(sync, reply->status);
    return 0;
}

/* --- one container --- */

static void add_resources(struct buf *key, const struct resources *resources)
{
    for (uint32_t i = 0; i < resources->count; i++) {
        char text[QUANTITY_TEXT_MAX];
        quantity_format(resources->items[i].amount, text);
        buf_addf(key, " %.*s=%s", STR_ARG(resources->items[i].name), text);
    }
}

/* A change of image or resources may be the cure: it starts the back-off anew. */
static struct str backoff_key(struct pod_sync *sync, const struct node_container *container)
{
    AUTO_BUF key = { 0 };
    buf_addf(&key, "%.*s %s", STR_ARG(container->name), container->hash);
    add_resources(&key, &container->resources.limits);
    add_resources(&key, &container->resources.requests);
    return arena_str(&sync->arena, buf_str(&key));
}

/* Not before its back-off is over. */
static int check_restart_backoff(struct pod_sync *sync, const struct node_container *container,
                                 int64_t *retry_ns, struct err *err)
{
    struct pod_worker *w = sync->worker;
    const struct runtime_container *last = runtime_container_find(sync->status, container->name);
    if (!last || last->state != RUNTIME_EXITED)
        return 0;
    struct str key = backoff_key(sync, container);
    int64_t now_ns = clock_wall_us(w->owner->opts.clock) * 1000; /* the runtime's clock */
    int64_t left = backoff_left(&w->restarts, key, last->finished_ns, now_ns);
    if (left == 0) {
        backoff_next(&w->restarts, key, now_ns);
        return 0;
    }
    *retry_ns = left;
    char delay[DURATION_TEXT_MAX];
    duration_format(backoff_delay(&w->restarts, key), delay);
    return err_set(err, ERR_THROTTLED,
                   "back-off %s restarting failed container=%.*s pod=%.*s_%.*s(%.*s)", delay,
                   STR_ARG(container->name), STR_ARG(sync->pod->name),
                   STR_ARG(sync->pod->namespace_), STR_ARG(sync->pod->uid));
}

static int remove_unstarted(struct pod_sync *sync, struct str name, struct err *err)
{
    for (uint32_t i = 0; i < sync->status->containers.count; i++) {
        const struct runtime_container *c = &sync->status->containers.items[i];
        if (c->state == RUNTIME_CREATED && str_eq(c->name, name) &&
            remove_container(sync, c->id, err) < 0)
            return -1;
    }
    return 0;
}

/* Why a container did not start: a waiting reason, and when to try again (0: the default). */
struct start_trouble {
    const char *reason;
    int64_t retry_ns;
};

/* The container whose processes an ephemeral one sees, if it wants any. */
static int find_target(const struct pod_sync *sync, const struct node_container *container,
                       struct str *id, struct err *err)
{
    if (!container->target.len)
        return 0;
    const struct runtime_container *target =
        runtime_container_find(sync->status, container->target);
    if (!target || target->state != RUNTIME_RUNNING)
        return err_set(err, ERR_NOT_FOUND, "target container %s does not run",
                       STR_SHOWN(container->target));
    *id = target->id;
    return 0;
}

static int create_container(struct pod_sync *sync, const struct node_container *container,
                            uint32_t restart_count, struct str *id, struct start_trouble *trouble,
                            struct err *err)
{
    const struct workers_options *opts = &sync->worker->owner->opts;
    struct pod_image image = { 0 };
    if (pod_image_ensure(sync, container, &image, &trouble->reason, &trouble->retry_ns, err) < 0)
        return -1;

    struct container_config_input input = {
        .pod = sync->pod,
        .container = container,
        .facts = &sync->facts,
        .objects = &opts->objects,
        .restart_count = restart_count,
        .image_ref = image.ref,
        .image_uid = image.uid,
        .image_username = image.username,
    };
    Cri__CreateContainerRequest request = CRI__CREATE_CONTAINER_REQUEST__INIT;
    Cri__CreateContainerResponse *reply;
    trouble->reason = "CreateContainerConfigError";
    if (find_target(sync, container, &input.maybe_target_id, err) < 0)
        return -1;
    if (container_config(&sync->arena, &input, &request.config, err) < 0)
        return -1;
    trouble->reason = "CreateContainerError";
    if (remove_unstarted(sync, container->name, err) < 0)
        return -1;
    request.pod_sandbox_id = (char *)arena_str(&sync->arena, sync->sandbox_id).p;
    request.sandbox_config = sync->sandbox;
    if (cri_call(opts->cri, CRI_CREATE_CONTAINER, &request, &sync->arena, &reply, err) < 0)
        return -1;
    *id = str_of(reply->container_id);
    worker_event(sync->worker, sync->pod, false, "Created", "Created container: %.*s",
                 STR_ARG(container->name));
    return 0;
}

static int run_post_start(struct pod_sync *sync, const struct node_container *container,
                          struct str id, struct err *err)
{
    const struct workers_options *opts = &sync->worker->owner->opts;
    struct str ip = hook_address(sync->worker, sync->pod, sync->facts.pod_ips);
    if (container->post_start.kind == HANDLER_NONE ||
        handler_run(opts->cri, opts->clock, &container->post_start, container, id, ip, 0,
                    sync->calls, err) == 0)
        return 0;
    if (cri_cancelled(sync->calls))
        return -1;
    worker_event(sync->worker, sync->pod, true, "FailedPostStartHook", "container %.*s: %s",
                 STR_ARG(container->name), err->text);
    struct pod_kill kill = kill_of(sync);
    struct runtime_container started = {
        .id = id, .name = container->name, .termination_grace_s = -1, .deletion_grace_s = -1
    };
    struct err ignored;
    pod_kill_container(&kill, &started, (struct maybe_int){ 0 }, "its postStart hook failed",
                       &ignored);
    return -1;
}

static int start_steps(struct pod_sync *sync, const struct node_container *container,
                       struct start_trouble *trouble, struct err *err)
{
    const struct workers_options *opts = &sync->worker->owner->opts;
    trouble->reason = "CrashLoopBackOff";
    if (check_restart_backoff(sync, container, &trouble->retry_ns, err) < 0)
        return -1;
    uint32_t restart_count = next_restart_count(sync->pod, container, sync->status, &sync->facts);
    struct str id;
    if (create_container(sync, container, restart_count, &id, trouble, err) < 0)
        return -1;

    trouble->reason = "RunContainerError";
    Cri__StartContainerRequest request = CRI__START_CONTAINER_REQUEST__INIT;
    request.container_id = (char *)id.p;
    if (cri_call(opts->cri, CRI_START_CONTAINER, &request, &sync->arena, NULL, err) < 0)
        return -1;
    sync->result->acted = true;
    container_log_link(sync->pod, container, id, restart_count, &sync->facts);
    worker_event(sync->worker, sync->pod, false, "Started", "Started container %.*s",
                 STR_ARG(container->name));
    trouble->reason = "PostStartHookError";
    return run_post_start(sync, container, id, err);
}

/* False: it did not start. */
static bool start_container(struct pod_sync *sync, const struct node_container *container)
{
    struct pod_worker *w = sync->worker;
    struct start_trouble trouble = { 0 };
    struct err err = { 0 };
    if (start_steps(sync, container, &trouble, &err) == 0) {
        forget_failure(w, container->name);
        return true;
    }
    if (cri_cancelled(sync->calls)) { /* the pod ends: nothing to tell of the container */
        sync_failed(sync, &err, 0);
        return false;
    }
    /* The status tells it at the start of the next step: which is at once, if it is news. */
    if (remember_failure(w, container->name, trouble.reason, err.text))
        trouble.retry_ns = 1;
    bool waits = err.kind == ERR_THROTTLED;
    worker_event(w, sync->pod, true, waits ? "BackOff" : "Failed", "%s: %s", trouble.reason,
                 err.text);
    err_wrap(&err, "container %.*s: %s", STR_ARG(container->name), trouble.reason);
    sync_failed(sync, &err, trouble.retry_ns);
    return false;
}

static void start_all(struct pod_sync *sync, const struct pod_actions *actions)
{
    /* A pod that ends while we are at it starts nothing more. */
    for (uint32_t i = 0; i < actions->start_ephemerals.count && !cri_cancelled(sync->calls); i++)
        start_container(sync, actions->start_ephemerals.items[i]);
    for (uint32_t i = 0; i < actions->start_inits.count && !cri_cancelled(sync->calls); i++) {
        const struct node_container *init = actions->start_inits.items[i];
        if (!start_container(sync, init) && !init->sidecar)
            return;
    }
    for (uint32_t i = 0; i < actions->start_containers.count && !cri_cancelled(sync->calls); i++)
        start_container(sync, actions->start_containers.items[i]);
}

/* --- the whole --- */

static int kill_first(struct pod_sync *sync, const struct pod_actions *actions, struct err *err)
{
    if (!actions->kill_pod)
        return kill_listed(sync, actions, err);
    struct pod_kill kill = kill_of(sync);
    sync->result->acted = true;
    return pod_kill_run(&kill, err);
}

static int have_sandbox(struct pod_sync *sync, const struct pod_actions *actions, struct err *err)
{
    if (sandbox_config(&sync->arena, sync->pod, &sync->facts, actions->attempt, &sync->sandbox,
                       err) < 0)
        return -1;
    sync->sandbox_id = actions->sandbox_id;
    if (!actions->create_sandbox || make_sandbox(sync, err) == 0)
        return 0;
    worker_event(sync->worker, sync->pod, true, "FailedCreatePodSandBox", "%s", err->text);
    return -1;
}

void pod_sync_run(struct pod_sync *sync, const struct pod_actions *actions)
{
    if (pod_actions_none(actions))
        return;
    if (kill_first(sync, actions, sync->err) < 0) {
        sync_failed(sync, sync->err, 0);
        return;
    }
    bool starts = actions->start_inits.count || actions->start_containers.count ||
                  actions->start_ephemerals.count;
    if (!actions->create_sandbox && !starts)
        return;
    remove_old_inits(sync, actions->create_sandbox);
    if (have_sandbox(sync, actions, sync->err) < 0) {
        sync_failed(sync, sync->err, 0);
        return;
    }
    start_all(sync, actions);
}

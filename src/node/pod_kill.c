/* Stopping containers: the preStop hook uses up the grace, the rest goes to the runtime, which sends
 * SIGKILL when it is over.
 *
 * Main containers stop at the same time, each on a thread of its own, since a stop may take its
 * whole grace. Sidecars serve the main ones, so they stop afterwards, in the reverse of the order
 * in which they were started, with what is left of the grace.
 */
#include "node/workers_inner.h"

#include "base/thread.h"

#define GRACE_MAX_S INT32_MAX /* so that sums of nanoseconds do not wrap; 68 years */
#define GRACE_MIN_S 2         /* so that a container sees its SIGTERM */
#define STOP_ANSWER_NS ((int64_t)2 * 60 * 1000000000) /* what the runtime may need on top */
#define PRE_STOP_EXTENSION_S 2                        /* after a hook that used all of it */

/* How long the container may take: an order for the pod, the API's, a probe's own, the spec's; without
 * a spec, what the container's annotations say. */
static int64_t grace_of(const struct pod_kill *kill, const struct runtime_container *container,
                        struct maybe_int own_grace_s)
{
    if (kill->grace_s.set)
        return kill->grace_s.value;
    const struct node_pod *pod = kill->maybe_pod;
    if (pod && pod->deletion_grace_s.set)
        return pod->deletion_grace_s.value;
    if (own_grace_s.set)
        return own_grace_s.value;
    if (pod)
        return pod->termination_grace_s;
    if (container->deletion_grace_s >= 0)
        return container->deletion_grace_s;
    return container->termination_grace_s >= 0 ? container->termination_grace_s : GRACE_MIN_S;
}

struct str hook_address(const struct pod_worker *w, const struct node_pod *pod, struct str_list ips)
{
    const struct str_list *node_ips = &w->owner->opts.facts.node_ips;
    if (pod->host_network)
        return node_ips->count ? node_ips->items[0] : STR("127.0.0.1");
    return ips.count ? ips.items[0] : STR("");
}

/* Runs the hook and takes the time that it took off the grace. A hook that fails is told and forgiven. */
static int run_pre_stop(const struct pod_kill *kill, const struct node_container *spec,
                        const struct runtime_container *container, int64_t *grace_s,
                        struct err *err)
{
    struct pod_worker *w = kill->worker;
    const struct workers_options *opts = &w->owner->opts;
    int64_t begun = clock_mono_ns(opts->clock);
    struct str ip = hook_address(w, kill->maybe_pod, kill->status->ips);
    if (handler_run(opts->cri, opts->clock, &spec->pre_stop, spec, container->id, ip,
                    *grace_s * 1000000000, kill->calls, err) < 0) {
        if (cri_cancelled(kill->calls))
            return -1;
        worker_event(w, kill->maybe_pod, true, "FailedPreStopHook", "container %.*s: %s",
                     STR_ARG(spec->name), err->text);
    }
    *grace_s -= (clock_mono_ns(opts->clock) - begun) / 1000000000;
    if (*grace_s < PRE_STOP_EXTENSION_S)
        *grace_s = PRE_STOP_EXTENSION_S;
    return 0;
}

int pod_kill_container(const struct pod_kill *kill, const struct runtime_container *container,
                       struct maybe_int own_grace_s, const char *why, struct err *err)
{
    struct pod_worker *w = kill->worker;
    const struct node_pod *pod = kill->maybe_pod;
    int64_t grace_s = grace_of(kill, container, own_grace_s);
    if (grace_s > GRACE_MAX_S)
        grace_s = GRACE_MAX_S;
    worker_event(w, pod, false, "Killing", "%s: container %.*s", why, STR_ARG(container->name));

    const struct node_container *spec = pod ? node_pod_container(pod, container->name) : NULL;
    if (spec && spec->pre_stop.kind != HANDLER_NONE && grace_s > 0 &&
        run_pre_stop(kill, spec, container, &grace_s, err) < 0)
        return -1;
    if (grace_s < GRACE_MIN_S)
        grace_s = GRACE_MIN_S;

    AUTO_ARENA arena = { 0 };
    AUTO_FREE char *id = str_dup(container->id);
    Cri__StopContainerRequest request = CRI__STOP_CONTAINER_REQUEST__INIT;
    request.container_id = id;
    request.timeout = grace_s;
    if (cri_call_within(w->owner->opts.cri, CRI_STOP_CONTAINER, &request,
                        grace_s * 1000000000 + STOP_ANSWER_NS, kill->calls, &arena, NULL,
                        err) < 0 &&
        err->kind != ERR_NOT_FOUND)
        return err_wrap(err, "stop container %.*s", STR_ARG(container->name));
    return 0;
}

/* --- several at once --- */

struct kill_job {
    const struct pod_kill *kill;
    const struct runtime_container *container;
    pthread_t thread;
    bool has_thread;
    int status;
    struct err err;
};

static void *kill_job_main(void *arg)
{
    struct kill_job *job = arg;
    job->status = pod_kill_container(job->kill, job->container, (struct maybe_int){ 0 },
                                     "stopping the pod", &job->err);
    return NULL;
}

static const struct node_container *sidecar_of(const struct pod_kill *kill,
                                               const struct runtime_container *container)
{
    const struct node_container *spec =
        kill->maybe_pod ? node_pod_container(kill->maybe_pod, container->name) : NULL;
    return spec && spec->sidecar ? spec : NULL;
}

/* Running, or who knows: an unknown state may hide a process. */
static bool to_be_stopped(const struct runtime_container *container)
{
    return container->state == RUNTIME_RUNNING || container->state == RUNTIME_UNKNOWN;
}

static int kill_main_containers(const struct pod_kill *kill, struct arena *arena, struct err *err)
{
    const struct runtime_status *status = kill->status;
    struct kill_job *jobs = arena_array(arena, struct kill_job, status->containers.count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < status->containers.count; i++) {
        const struct runtime_container *container = &status->containers.items[i];
        if (!to_be_stopped(container) || sidecar_of(kill, container))
            continue;
        jobs[count++] = (struct kill_job){ .kill = kill, .container = container };
    }
    for (uint32_t i = 1; i < count; i++)
        jobs[i].has_thread =
            thread_start(&jobs[i].thread, "pod-kill", kill_job_main, &jobs[i], NULL) == 0;
    for (uint32_t i = 0; i < count; i++) /* the first here, and those that got no thread */
        if (!jobs[i].has_thread)
            kill_job_main(&jobs[i]);

    int result = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (jobs[i].has_thread)
            pthread_join(jobs[i].thread, NULL);
        if (jobs[i].status < 0 && result == 0) {
            *err = jobs[i].err;
            result = -1;
        }
    }
    return result;
}

static int kill_sidecars(const struct pod_kill *kill, int64_t begun_ns, struct err *err)
{
    const struct node_pod *pod = kill->maybe_pod;
    const struct workers_options *opts = &kill->worker->owner->opts;
    for (uint32_t i = pod ? pod->inits.count : 0; i-- > 0;) {
        if (!pod->inits.items[i].sidecar)
            continue;
        for (uint32_t j = 0; j < kill->status->containers.count; j++) {
            const struct runtime_container *container = &kill->status->containers.items[j];
            if (!to_be_stopped(container) || !str_eq(container->name, pod->inits.items[i].name))
                continue;
            int64_t grace_s = grace_of(kill, container, (struct maybe_int){ 0 });
            int64_t used_s = (clock_mono_ns(opts->clock) - begun_ns) / 1000000000;
            struct pod_kill rest = *kill;
            rest.grace_s =
                (struct maybe_int){ .set = true,
                                    .value = used_s + GRACE_MIN_S < grace_s ? grace_s - used_s
                                                                            : GRACE_MIN_S };
            if (pod_kill_container(&rest, container, (struct maybe_int){ 0 }, "stopping the pod",
                                   err) < 0)
                return -1;
        }
    }
    return 0;
}

static int stop_sandboxes(const struct pod_kill *kill, struct arena *arena, struct err *err)
{
    struct pod_worker *w = kill->worker;
    for (uint32_t i = 0; i < kill->status->sandboxes.count; i++) {
        const struct runtime_sandbox *sandbox = &kill->status->sandboxes.items[i];
        Cri__StopPodSandboxRequest request = CRI__STOP_POD_SANDBOX_REQUEST__INIT;
        request.pod_sandbox_id = (char *)arena_str(arena, sandbox->id).p;
        if (cri_call_within(w->owner->opts.cri, CRI_STOP_POD_SANDBOX, &request, STOP_ANSWER_NS,
                            kill->calls, arena, NULL, err) < 0 &&
            err->kind != ERR_NOT_FOUND) {
            if (!cri_cancelled(kill->calls))
                worker_event(w, kill->maybe_pod, true, "FailedKillPod", "%s", err->text);
            return err_wrap(err, "stop sandbox");
        }
    }
    return 0;
}

int pod_kill_run(const struct pod_kill *kill, struct err *err)
{
    AUTO_ARENA arena = { 0 };
    int64_t begun_ns = clock_mono_ns(kill->worker->owner->opts.clock);
    if (kill_main_containers(kill, &arena, err) < 0 || kill_sidecars(kill, begun_ns, err) < 0)
        return -1;
    return stop_sandboxes(kill, &arena, err);
}

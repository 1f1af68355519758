/* One step of a pod's worker, by its state.
 *
 * Every step starts from the cache, with a status newer than the end of the step before: what this
 * worker did is in it. The API status is made first, so that what is half done is never told. A
 * termination ends by asking the runtime itself, once, because "everything has stopped" must not
 * come from a cache.
 */
#include "node/workers_inner.h"

#include "codec/duration.h"
#include "node/pod_cgroup.h"

#include <stdio.h>

#define CGROUP_MOUNT "/sys/fs/cgroup"

void worker_event(struct pod_worker *w, const struct node_pod *maybe_pod, bool warning,
                  const char *reason, const char *fmt, ...)
{
    const struct workers_options *opts = &w->owner->opts;
    if (!maybe_pod || !opts->event)
        return;
    AUTO_BUF message = { 0 };
    va_list args;
    va_start(args, fmt);
    buf_vaddf(&message, fmt, args);
    va_end(args);
    opts->event(opts->ctx, maybe_pod, warning, str_of(reason), buf_str(&message));
}

/* --- statuses --- */

/* Our own last status, parsed again, or what came with the pod. `doc` keeps it. */
static const json_val *previous_status(struct pod_worker *w, const struct node_pod *pod,
                                       struct doc *doc, struct buf *text)
{
    pthread_mutex_lock(&w->owner->lock);
    buf_addz(text, w->status ? w->status : "");
    pthread_mutex_unlock(&w->owner->lock);
    if (text->len && json_read(buf_str(text), doc, NULL) == 0)
        return doc->root;
    return pod->maybe_status;
}

static void keep_status(struct pod_worker *w, const struct buf *text)
{
    pthread_mutex_lock(&w->owner->lock);
    free(w->status);
    w->status = str_dup(buf_str(text));
    pthread_mutex_unlock(&w->owner->lock);
}

void worker_tell_status(struct pod_worker *w, const struct node_pod *pod, json_mut *status,
                        bool finished)
{
    const struct workers_options *opts = &w->owner->opts;
    AUTO_BUF text = { 0 };
    AUTO_BUF before = { 0 };
    struct doc next = { 0 }, last = { 0 };
    struct err err;
    json_write_mut(status, &text);
    const json_val *maybe_previous = previous_status(w, pod, &last, &before);
    if (json_read(buf_str(&text), &next, &err) < 0) {
        log_error(opts->log, "status not readable", LOG_Z("pod", w->full_name), LOG_ERR(&err));
    } else if (!api_status_may_follow(pod, maybe_previous, next.root, &err)) {
        log_error(opts->log, "status not told", LOG_Z("pod", w->full_name), LOG_ERR(&err));
    } else if (finished || !before.len || !api_status_same(maybe_previous, next.root)) {
        keep_status(w, &text);
        if (opts->status)
            opts->status(opts->ctx, pod, next.root, finished);
    }
    doc_done(&next);
    doc_done(&last);
}

struct words_asked {
    struct arena *arena;
    uint32_t containers_in_pod;
};

static struct str last_words(void *ctx, const struct runtime_container *ended)
{
    struct words_asked *asked = ctx;
    return termination_message(asked->arena, ended, asked->containers_in_pod);
}

struct status_wish {
    bool terminal, finished;
};

/* Make the status from what is known and tell it. Its phase is in `phase` (a copy, NUL-terminated). */
static void make_status(struct pod_worker *w, const struct step_input *in,
                        const struct runtime_status *seen, struct status_wish wish, char phase[16],
                        int64_t *start_us)
{
    const struct workers_options *opts = &w->owner->opts;
    const struct node_pod *pod = in->maybe_pod;
    AUTO_JSON_BUILD b = { 0 };
    AUTO_ARENA arena = { 0 };
    AUTO_BUF before = { 0 };
    struct doc last = { 0 };
    json_build_init(&b);

    struct start_failure *failures =
        arena_array(&arena, struct start_failure, w->failures.live_count);
    uint32_t failure_count = 0;
    str_table_each(&w->failures, slot)
        failures[failure_count++] = *(const struct start_failure *)slot->value;

    struct words_asked words = { &arena,
                                 pod->inits.count + pod->containers.count + pod->ephemerals.count };
    struct api_status_input input = {
        .pod = pod,
        .status = seen,
        .maybe_previous = previous_status(w, pod, &last, &before),
        .failures = { failures, failure_count },
        .probes = prober_source(opts->prober),
        .last_words = { last_words, &words },
        .node_ips = opts->facts.node_ips,
        .now_us = clock_wall_us(opts->clock),
        .terminal = wish.terminal,
        .deleting = in->terminating,
        .failed_reason = in->failed_reason,
        .failed_message = in->failed_message,
        .runtime_name = "containerd",
    };
    json_mut *status = api_status_build(&b, &input);
    if (wish.finished) {
        AUTO_BUF text = { 0 };
        struct doc made = { 0 };
        json_write_mut(status, &text);
        if (json_read(buf_str(&text), &made, NULL) == 0)
            status = api_status_terminate(&b, pod, made.root, input.now_us);
        worker_tell_status(w, pod, status, true);
        doc_done(&made);
    } else {
        worker_tell_status(w, pod, status, false);
    }
    snprintf(phase, 16, "%.*s", STR_ARG(json_mut_str(json_mut_get(status, STR("phase")))));
    struct str start = json_mut_str(json_mut_get(status, STR("startTime")));
    *start_us = 0;
    if (start.p)
        (void)time_parse(start, start_us, NULL);
    doc_done(&last);
}

/* --- SYNC --- */

/* The time left of activeDeadlineSeconds; 0: over; INT64_MAX: there is none. */
static int64_t deadline_left_ns(struct pod_worker *w, const struct node_pod *pod, int64_t start_us)
{
    if (!pod->active_deadline_s.set || pod->active_deadline_s.value > INT32_MAX || !start_us)
        return INT64_MAX; /* an API server refuses more than 68 years */
    int64_t over_us = start_us + pod->active_deadline_s.value * 1000000;
    int64_t left_us = over_us - clock_wall_us(w->owner->opts.clock);
    return left_us > 0 ? left_us * 1000 : 0;
}

static struct step_result step_sync(struct pod_worker *w, const struct step_input *in,
                                    const struct runtime_status *seen, struct err *err)
{
    const struct workers_options *opts = &w->owner->opts;
    const struct node_pod *pod = in->maybe_pod;
    struct step_result result = { .end = STEP_AGAIN };
    char phase[16];
    int64_t start_us;

    prober_update(opts->prober, pod, seen);
    worker_forget_failures(w, seen);
    make_status(w, in, seen, (struct status_wish){ 0 }, phase, &start_us);
    if (api_phase_terminal(str_of(phase))) {
        result.end = STEP_NEXT_STATE;
        return result;
    }
    int64_t left_ns = deadline_left_ns(w, pod, start_us);
    if (left_ns == 0) {
        result.deadline = true;
        return result;
    }
    if (!pod->host_network && opts->network_ready && !opts->network_ready(opts->ctx)) {
        worker_event(w, pod, true, "NetworkNotReady", "network is not ready");
        err_set(err, ERR_UNAVAILABLE, "network is not ready");
        return (struct step_result){ .end = STEP_FAILED };
    }
    if (volumes_set_up(pod, &opts->facts, &opts->objects, err) < 0) {
        worker_event(w, pod, true, "FailedMount", "%s", err->text);
        return (struct step_result){ .end = STEP_FAILED };
    }

    struct pod_sync sync = { .worker = w,
                             .pod = pod,
                             .status = seen,
                             .calls = in->calls,
                             .facts = opts->facts,
                             .result = &result,
                             .err = err };
    sync.facts.pod_ips = seen->ips;
    struct pod_actions actions = pod_actions(&sync.arena, pod, seen, prober_source(opts->prober));
    pod_sync_run(&sync, &actions);
    arena_done(&sync.arena);
    /* A failure without a time of its own is retried soon enough. */
    if (result.retry_ns ? left_ns < result.retry_ns
                        : result.end == STEP_AGAIN && left_ns != INT64_MAX)
        result.retry_ns = left_ns;
    return result;
}

/* --- TERMINATING --- */

static const struct runtime_container *still_running(const struct runtime_status *seen)
{
    for (uint32_t i = 0; i < seen->containers.count; i++)
        if (seen->containers.items[i].state == RUNTIME_RUNNING)
            return &seen->containers.items[i];
    return NULL;
}

static struct step_result step_terminating(struct pod_worker *w, const struct step_input *in,
                                           const struct runtime_status *seen, struct err *err)
{
    const struct workers_options *opts = &w->owner->opts;
    const struct step_result failed = { .end = STEP_FAILED };
    char phase[16];
    int64_t start_us;
    if (in->maybe_pod) {
        make_status(w, in, seen, (struct status_wish){ 0 }, phase, &start_us);
        prober_stop_liveness(opts->prober, str_of(w->uid));
    }
    struct pod_kill kill = {
        .worker = w,
        .maybe_pod = in->maybe_pod,
        .status = seen,
        .calls = in->calls,
        .grace_s = { .set = true, .value = in->grace_s },
    };
    if (pod_kill_run(&kill, err) < 0)
        return failed;
    prober_remove(opts->prober, str_of(w->uid));

    AUTO_STATUS truth = NULL;
    if (cri_inspect_now(opts->cri, str_of(w->uid), &truth, err) < 0)
        return failed;
    const struct runtime_container *running = still_running(truth);
    if (running) {
        err_set(err, ERR_UNAVAILABLE, "container %.*s still runs after it was stopped",
                STR_ARG(running->name));
        return failed;
    }
    if (runtime_ready_sandbox(truth)) { /* one whose making had no answer, perhaps */
        err_set(err, ERR_UNAVAILABLE, "a sandbox is still ready after all were stopped");
        return failed;
    }
    if (in->maybe_pod)
        make_status(w, in, truth, (struct status_wish){ .terminal = true }, phase, &start_us);
    return (struct step_result){ .end = STEP_NEXT_STATE, .acted = true };
}

/* --- TERMINATED --- */

/* Without a spec nobody knows the class, so all three are tried. systemd removes an empty slice itself. */
static int remove_cgroup(struct pod_worker *w, struct err *err)
{
    static const char *const parents[] = { "/kubepods", "/kubepods/burstable",
                                           "/kubepods/besteffort" };
    AUTO_ARENA arena = { 0 };
    if (w->owner->opts.facts.systemd_cgroups)
        return 0;
    for (size_t i = 0; i < KV_COUNT_OF(parents); i++) {
        struct str group = arena_strf(&arena, "%s/pod%s", parents[i], w->uid);
        if (pod_cgroup_remove(CGROUP_MOUNT, group, err) < 0)
            return -1;
    }
    return 0;
}

static struct step_result step_terminated(struct pod_worker *w, const struct step_input *in,
                                          const struct runtime_status *seen, struct err *err)
{
    char phase[16];
    int64_t start_us;
    const struct node_facts *facts = &w->owner->opts.facts;
    if (volumes_remove(str_of(w->uid), facts, err) < 0)
        return (struct step_result){ .end = STEP_FAILED };
    if (remove_cgroup(w, err) < 0)
        return (struct step_result){ .end = STEP_FAILED };
    if (in->maybe_pod)
        make_status(w, in, seen, (struct status_wish){ .terminal = true, .finished = true }, phase,
                    &start_us);
    return (struct step_result){ .end = STEP_NEXT_STATE };
}

/* --- the step --- */

/* What the step starts from. */
static int status_for_step(struct pod_worker *w, const struct step_input *in,
                           const struct runtime_status **out, struct err *err)
{
    const struct workers_options *opts = &w->owner->opts;
    if (!in->maybe_pod)
        return cri_inspect_now(opts->cri, str_of(w->uid), out, err);
    if (pod_cache_get_newer_than(opts->cache, str_of(w->uid), w->last_sync_ns, INT64_MAX, w->wait,
                                 out, err) < 0)
        return -1;
    if ((*out)->error_kind == ERR_NONE)
        return 0;
    err_set(err, (*out)->error_kind, "%.*s", STR_ARG((*out)->error));
    worker_event(w, in->maybe_pod, true, "FailedSync", "%s", err->text);
    return -1;
}

struct step_result worker_step(struct pod_worker *w, const struct step_input *in, struct err *err)
{
    const struct workers_options *opts = &w->owner->opts;
    AUTO_STATUS seen = NULL;
    struct step_result result;
    if (status_for_step(w, in, &seen, err) < 0) {
        result = (struct step_result){ .end = STEP_FAILED };
    } else {
        if (in->terminated)
            result = step_terminated(w, in, seen, err);
        else if (in->terminating)
            result = step_terminating(w, in, seen, err);
        else
            result = step_sync(w, in, seen, err);
        w->last_sync_ns = clock_mono_ns(opts->clock);
        /* After the end is written down: an older listing would not wake the next step. A step that failed
         * may have acted as well. */
        if (result.acted || result.end == STEP_FAILED)
            pleg_request(opts->pleg, str_of(w->uid));
    }
    /* A runtime says "cancelled" of its own accord, too: that is a failure like others. */
    if (result.end == STEP_FAILED && cri_cancelled(in->calls))
        result.end = STEP_CANCELLED;
    return result;
}

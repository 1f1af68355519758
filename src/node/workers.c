/* The workers' registry: accepting updates, running one thread per pod, forgetting.
 *
 * A worker's state follows from three flags that only ever rise: terminating, terminated, finished.
 * An update changes the record and wakes the thread; the thread takes what it needs under the lock,
 * steps without it, and puts the outcome back under it. So updates are never queued, a step always
 * sees the newest, and nobody waits for a step but the one who joins the thread.
 *
 * 1. A pod's steps are serialised: they run on its own thread.
 * 2. The grace of a termination only shrinks; when it does, the running step is cancelled, and the
 *    next one stops the containers with the shorter grace.
 * 3. Of the static pods with one full name at most one is started and not finished: an edited
 *    manifest has a new uid, and starts when the old pod is gone.
 */
#include "node/workers_inner.h"

#include "base/thread.h"

#include <stdio.h>

#define WORKER_RESYNC_NS ((int64_t)60 * 1000000000)
#define WORKER_RETRY_NS ((int64_t)10 * 1000000000)
#define WORKER_RETRY_SOON_NS ((int64_t)1000000000)

struct pod_workers *pod_workers_new(struct workers_options options)
{
    struct pod_workers *workers = kv_calloc(1, sizeof *workers);
    workers->opts = options;
    if (workers->opts.resync_ns == 0)
        workers->opts.resync_ns = WORKER_RESYNC_NS;
    if (workers->opts.retry_ns == 0)
        workers->opts.retry_ns = WORKER_RETRY_NS;
    pthread_mutex_init(&workers->lock, NULL);
    return workers;
}

void pod_workers_set_cgroups(struct pod_workers *workers, bool systemd)
{
    KV_ASSERT(workers->workers.live_count == 0);
    workers->opts.facts.systemd_cgroups = systemd;
}

static void worker_free(struct pod_worker *w)
{
    node_pod_unref(w->maybe_pod);
    pod_cache_cancel_free(w->wait);
    pthread_cond_destroy(&w->changed);
    backoff_done(&w->restarts);
    backoff_done(&w->pulls);
    worker_failures_done(w);
    free(w->failed_reason);
    free(w->failed_message);
    free(w->status);
    free(w->last_error);
    free(w->full_name);
    free(w->uid);
    free(w);
}

/* Ends what the running step waits for. With the lock held. */
static void cancel_step(struct pod_worker *w)
{
    pod_cache_cancel(w->wait);
    if (w->maybe_calls)
        cri_cancel(w->maybe_calls);
}

static void wake(struct pod_worker *w)
{
    w->due_now = true;
    pthread_cond_signal(&w->changed);
}

/* --- the thread --- */

/* Rule 3. */
static bool may_start(struct pod_worker *w)
{
    if (w->started || !w->maybe_pod || !node_pod_is_static(w->maybe_pod))
        return true;
    str_table_each(&w->owner->workers, slot) {
        const struct pod_worker *other = slot->value;
        if (other == w || other->finished || strcmp(other->full_name, w->full_name) != 0)
            continue;
        if (other->started || (other->order < w->order && !other->terminating))
            return false;
    }
    return true;
}

static void set_state_time(struct pod_worker *w)
{
    w->since_us = clock_wall_us(w->owner->opts.clock);
}

static int64_t jittered(struct pod_worker *w, int64_t ns)
{
    return ns + (int64_t)(rng_unit(&w->rng) * 0.5 * (double)ns);
}

/* A termination's grace: the smallest that anybody said, else the spec's; at least a second. */
static bool shrink_grace(struct pod_worker *w, struct maybe_int override_s)
{
    int64_t grace = w->grace_s;
    const struct node_pod *pod = w->maybe_pod;
    if (pod && pod->deletion_grace_s.set && (!grace || pod->deletion_grace_s.value < grace))
        grace = pod->deletion_grace_s.value;
    if (override_s.set && (!grace || override_s.value < grace))
        grace = override_s.value;
    if (!grace && pod && !pod->deletion_grace_s.set && !override_s.set)
        grace = pod->termination_grace_s;
    if (grace < 1)
        grace = 1;
    bool shrunk = w->grace_s && grace < w->grace_s;
    w->grace_s = grace;
    return shrunk;
}

/* A runtime that is away comes back without a word to the pods: asking it costs little. */
static int64_t retry_of(const struct pod_worker *w, const struct err *err)
{
    int64_t retry_ns = w->owner->opts.retry_ns;
    return err->kind == ERR_UNAVAILABLE && retry_ns > WORKER_RETRY_SOON_NS ? WORKER_RETRY_SOON_NS
                                                                           : retry_ns;
}

static void set_terminating(struct pod_worker *w)
{
    if (w->terminating)
        return;
    w->terminating = true;
    set_state_time(w);
    shrink_grace(w, (struct maybe_int){ 0 });
}

/* What a step came to: the state's next, and when to step again. With the lock held. */
static void take_result(struct pod_worker *w, const struct step_input *in,
                        const struct step_result *result, const struct err *err)
{
    const struct workers_options *opts = &w->owner->opts;
    int64_t now = clock_mono_ns(opts->clock);
    free(w->last_error);
    w->last_error = result->end == STEP_FAILED ? kv_strdup(err->text) : NULL;

    switch (result->end) {
    case STEP_CANCELLED:
        w->due_now = true; /* whoever cancelled has changed the record */
        return;
    case STEP_FAILED: {
        int64_t retry = result->retry_ns ? result->retry_ns : retry_of(w, err);
        /* One container's long back-off does not keep the rest of the pod from its resync. */
        w->due_ns = now + jittered(w, retry < opts->resync_ns ? retry : opts->resync_ns);
        return;
    }
    case STEP_AGAIN: {
        int64_t resync = jittered(w, opts->resync_ns);
        w->due_ns =
            now + (result->retry_ns && result->retry_ns < resync ? result->retry_ns : resync);
        if (result->deadline && !w->terminating) {
            w->failed_reason = kv_strdup("DeadlineExceeded");
            w->failed_message = kv_strdup("the pod ran longer than its activeDeadlineSeconds");
            set_terminating(w);
            w->due_now = true;
        }
        return;
    }
    case STEP_NEXT_STATE:
        if (in->terminated)
            w->finished = true;
        else if (in->terminating)
            w->terminated = true;
        else
            set_terminating(w);
        set_state_time(w);
        w->due_now = !w->finished;
        return;
    }
}

static void step_locked(struct pod_worker *w)
{
    struct pod_workers *owner = w->owner;
    struct step_input in = {
        .maybe_pod = w->maybe_pod ? node_pod_ref(w->maybe_pod) : NULL,
        .terminating = w->terminating,
        .terminated = w->terminated,
        .grace_s = w->grace_s,
        .failed_reason = str_of(w->failed_reason), /* set once, before a step that reads them */
        .failed_message = str_of(w->failed_message),
        .calls = cri_cancel_new(),
    };
    w->started = true;
    w->due_now = false;
    w->due_ns = INT64_MAX;
    w->maybe_calls = in.calls;
    pod_cache_cancel_reset(w->wait);
    pthread_mutex_unlock(&owner->lock);

    struct err err = { 0 };
    struct step_result result = worker_step(w, &in, &err);
    if (result.end == STEP_FAILED)
        log_warn(owner->opts.log, "pod sync failed", LOG_Z("pod", w->full_name),
                 LOG_Z("uid", w->uid), LOG_ERR(&err));

    pthread_mutex_lock(&owner->lock);
    w->maybe_calls = NULL;
    take_result(w, &in, &result, &err);
    cri_cancel_free(in.calls);
    node_pod_unref(in.maybe_pod);
}

/* Nothing of it was ever started: there is nothing to stop and nothing to clean. */
static bool ends_unstarted(const struct pod_worker *w)
{
    return !w->started && w->terminating && w->maybe_pod;
}

static void *worker_main(void *arg)
{
    struct pod_worker *w = arg;
    struct pod_workers *owner = w->owner;
    pthread_mutex_lock(&owner->lock);
    while (!owner->stopping && !w->finished) {
        int64_t now = clock_mono_ns(owner->opts.clock);
        if (!w->due_now && now < w->due_ns) {
            clock_wait(owner->opts.clock, &w->changed, &owner->lock, w->due_ns);
        } else if (may_start(w)) {
            step_locked(w);
        } else if (ends_unstarted(w)) {
            w->finished = true;
        } else { /* until the other of that name is finished, which wakes everybody */
            w->due_now = false;
            w->due_ns = INT64_MAX;
        }
    }
    str_table_each(&owner->workers, slot) {
        struct pod_worker *other = slot->value;
        if (strcmp(other->full_name, w->full_name) == 0)
            wake(other);
    }
    pthread_mutex_unlock(&owner->lock);
    return NULL;
}

/* --- accepting updates; all with the lock held --- */

static struct pod_worker *worker_new(struct pod_workers *owner, struct str uid,
                                     struct str namespace_, struct str name)
{
    struct pod_worker *w = kv_calloc(1, sizeof *w);
    w->owner = owner;
    w->uid = str_dup(uid);
    AUTO_BUF full_name = { 0 };
    buf_addf(&full_name, "%.*s/%.*s", STR_ARG(namespace_), STR_ARG(name));
    w->full_name = buf_take(&full_name);
    w->order = owner->next_order++;
    clock_cond_init(&w->changed);
    w->due_now = true;
    w->wait = pod_cache_cancel_new(owner->opts.cache);
    w->restarts = (struct backoff){ .initial_ns = owner->opts.backoff_initial_ns,
                                    .max_ns = owner->opts.backoff_max_ns };
    w->pulls = w->restarts;
    rng_init(&w->rng, owner->opts.seed ^ kv_hash(uid.p, uid.len));
    set_state_time(w);
    str_table_put(&owner->workers, uid, w);
    return w;
}

static void start_thread(struct pod_worker *w)
{
    struct err err;
    if (w->has_thread)
        return;
    if (thread_start(&w->thread, "pod-worker", worker_main, w, &err) == 0) {
        w->has_thread = true;
        return;
    }
    /* Tried again by the next pod_workers_wanted. */
    log_error(w->owner->opts.log, "pod worker not started", LOG_Z("pod", w->full_name),
              LOG_ERR(&err));
}

static void terminate(struct pod_worker *w, struct maybe_int grace_s)
{
    bool new = !w->terminating;
    set_terminating(w);
    if (shrink_grace(w, grace_s) || new)
        cancel_step(w);
    wake(w);
}

/* After a restart of the agent: the API says it is over, and nothing of it runs. Only the last step is
 * left to do. */
static bool is_over(struct pod_workers *owner, const struct node_pod *pod)
{
    if (!api_phase_terminal(api_status_phase(pod->maybe_status)))
        return false;
    AUTO_STATUS seen = pod_cache_get(owner->opts.cache, pod->uid);
    return !runtime_status_running(seen);
}

static void take_pod(struct pod_worker *w, const struct node_pod *pod)
{
    node_pod_ref(pod);
    node_pod_unref(w->maybe_pod);
    w->maybe_pod = pod;
}

void pod_workers_update(struct pod_workers *owner, const struct node_pod *pod, bool new)
{
    bool over = is_over(owner, pod);
    bool ends = pod->deleted_us || api_phase_terminal(api_status_phase(pod->maybe_status));
    pthread_mutex_lock(&owner->lock);
    struct pod_worker *w = str_table_get(&owner->workers, pod->uid);
    if (owner->stopping)
        goto out;
    if (!w) {
        w = worker_new(owner, pod->uid, pod->namespace_, pod->name);
        w->terminating = w->terminated = over;
    } else if (new && w->terminating) {
        w->restart_wanted = true; /* when this one is gone, housekeeping starts it anew */
        goto out;
    } else if (w->finished) {
        goto out;
    } else if (w->maybe_pod && node_pod_same(w->maybe_pod, pod) && (!ends || w->terminating)) {
        take_pod(w, pod); /* with the conditions that others have set */
        if (pod->readiness_gates.count)
            wake(w);
        goto out;
    }
    take_pod(w, pod);
    w->deleted |= pod->deleted_us != 0;
    if (ends)
        terminate(w, (struct maybe_int){ 0 });
    wake(w);
    start_thread(w);
out:
    pthread_mutex_unlock(&owner->lock);
}

void pod_workers_sync(struct pod_workers *owner, struct str uid)
{
    pthread_mutex_lock(&owner->lock);
    struct pod_worker *w = str_table_get(&owner->workers, uid);
    if (w && !w->finished)
        wake(w);
    pthread_mutex_unlock(&owner->lock);
}

void pod_workers_sync_all(struct pod_workers *owner)
{
    pthread_mutex_lock(&owner->lock);
    str_table_each(&owner->workers, slot)
        wake(slot->value);
    pthread_mutex_unlock(&owner->lock);
}

void pod_workers_kill(struct pod_workers *owner, struct str uid, struct maybe_int grace_s)
{
    pthread_mutex_lock(&owner->lock);
    struct pod_worker *w = str_table_get(&owner->workers, uid);
    if (w)
        w->deleted = true;
    if (w && !w->finished)
        terminate(w, grace_s);
    pthread_mutex_unlock(&owner->lock);
}

void pod_workers_kill_runtime(struct pod_workers *owner, const struct runtime_status *status)
{
    pthread_mutex_lock(&owner->lock);
    struct pod_worker *w = str_table_get(&owner->workers, status->uid);
    if (!owner->stopping && !w) {
        w = worker_new(owner, status->uid, status->namespace_, status->name);
        w->started = w->deleted = true;
        terminate(w, (struct maybe_int){ .set = true, .value = 1 });
        start_thread(w);
    }
    pthread_mutex_unlock(&owner->lock);
}

/* --- forgetting --- */

/* Takes a finished worker out of the table; its thread is about to end and needs the lock for it. */
static void forget(struct pod_workers *owner, struct pod_worker *w)
{
    str_table_remove(&owner->workers, str_of(w->uid));
    pthread_mutex_unlock(&owner->lock);
    if (w->has_thread)
        pthread_join(w->thread, NULL);
    worker_free(w);
    pthread_mutex_lock(&owner->lock);
}

static struct pod_worker *next_forgettable(struct pod_workers *owner,
                                           const struct str_table *wanted)
{
    str_table_each(&owner->workers, slot) {
        struct pod_worker *w = slot->value;
        if (w->finished && (w->restart_wanted || !str_table_has(wanted, slot->key)))
            return w;
    }
    return NULL;
}

bool pod_workers_wanted(struct pod_workers *owner, const struct str *uids, uint32_t count)
{
    struct str_table wanted = { 0 };
    for (uint32_t i = 0; i < count; i++)
        str_table_put(&wanted, uids[i], NULL);
    pthread_mutex_lock(&owner->lock);
    owner->synced = true;
    bool forgotten = false;
    for (struct pod_worker *w; (w = next_forgettable(owner, &wanted)) != NULL; forgotten = true)
        forget(owner, w);
    str_table_each(&owner->workers, slot) {
        struct pod_worker *w = slot->value;
        start_thread(w); /* should it have failed */
        if (str_table_has(&wanted, slot->key))
            continue;
        w->deleted = true;
        if (!w->terminating)
            terminate(w, (struct maybe_int){ 0 });
    }
    pthread_mutex_unlock(&owner->lock);
    str_table_done(&wanted);
    return forgotten;
}

void pod_workers_stop(struct pod_workers *owner)
{
    pthread_mutex_lock(&owner->lock);
    owner->stopping = true;
    str_table_each(&owner->workers, slot) {
        cancel_step(slot->value);
        wake(slot->value);
    }
    pthread_mutex_unlock(&owner->lock);
    /* Nobody adds or removes workers any more, so the table may be read without the lock. */
    str_table_each(&owner->workers, slot) {
        struct pod_worker *w = slot->value;
        if (w->has_thread)
            pthread_join(w->thread, NULL);
        w->has_thread = false;
    }
}

void pod_workers_free(struct pod_workers *owner)
{
    if (!owner)
        return;
    str_table_each(&owner->workers, slot)
        worker_free(slot->value);
    str_table_done(&owner->workers);
    pthread_mutex_destroy(&owner->lock);
    free(owner);
}

/* --- questions --- */

bool pod_workers_knows(struct pod_workers *owner, struct str uid)
{
    pthread_mutex_lock(&owner->lock);
    bool known = str_table_has(&owner->workers, uid);
    pthread_mutex_unlock(&owner->lock);
    return known;
}

bool pod_workers_may_remove_content(struct pod_workers *owner, struct str uid)
{
    pthread_mutex_lock(&owner->lock);
    const struct pod_worker *w = str_table_get(&owner->workers, uid);
    bool may = w ? w->deleted && w->terminated : owner->synced;
    pthread_mutex_unlock(&owner->lock);
    return may;
}

static const char *state_name(const struct pod_worker *w)
{
    if (w->finished)
        return "Finished";
    if (w->terminated)
        return "Terminated";
    if (w->terminating)
        return "Terminating";
    return w->started ? "Syncing" : "Waiting";
}

void pod_workers_view(struct pod_workers *owner, struct arena *arena, struct worker_views *out)
{
    pthread_mutex_lock(&owner->lock);
    uint32_t count = owner->workers.live_count;
    uint32_t *order = arena_array(arena, uint32_t, count);
    str_table_sorted(&owner->workers, order);
    out->items = arena_array(arena, struct worker_view, count);
    out->uids = arena_array(arena, struct str, count);
    out->count = count;
    for (uint32_t i = 0; i < count; i++) {
        const struct pod_worker *w = owner->workers.slots[order[i]].value;
        struct str namespace_, name;
        str_cut(str_of(w->full_name), '/', &namespace_, &name);
        out->uids[i] = arena_str(arena, str_of(w->uid));
        out->items[i] = (struct worker_view){
            .state = state_name(w),
            .namespace_ = arena_str(arena, namespace_),
            .name = arena_str(arena, name),
            .status = arena_str(arena, str_of(w->status)),
            .last_error = arena_str(arena, str_of(w->last_error)),
            .since_us = w->since_us,
        };
    }
    pthread_mutex_unlock(&owner->lock);
}

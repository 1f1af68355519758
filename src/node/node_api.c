/* The parts of the API half, and their threads.
 *
 * Each has a thread of its own, because each may wait for the server: a heartbeat behind a hundred
 * statuses would come too late, and a status behind an event. A loop sleeps until its step is due or
 * somebody wakes it; what it works on is guarded by a lock of its own that is never held during a
 * call.
 */
#include "node/node_api_inner.h"

#include "base/thread.h"

/* --- loops --- */

static void *loop_main(void *arg)
{
    struct api_loop *loop = arg;
    const struct clock *clock = loop->api->opts.clock;
    for (;;) {
        int64_t until = loop->step(loop->api);
        pthread_mutex_lock(&loop->lock);
        while (!loop->stopping && !loop->woken && clock_mono_ns(clock) < until)
            clock_wait(clock, &loop->changed, &loop->lock, until);
        bool stopping = loop->stopping;
        loop->woken = false;
        pthread_mutex_unlock(&loop->lock);
        if (stopping)
            return NULL;
    }
}

static void loop_init(struct api_loop *loop, struct node_api *api,
                      int64_t (*step)(struct node_api *api))
{
    *loop = (struct api_loop){ .api = api, .step = step };
    pthread_mutex_init(&loop->lock, NULL);
    clock_cond_init(&loop->changed);
}

static int loop_start(struct api_loop *loop, const char *name, struct err *err)
{
    if (thread_start(&loop->thread, name, loop_main, loop, err) < 0)
        return -1;
    loop->running = true;
    return 0;
}

static void loop_tell(struct api_loop *loop, bool stop)
{
    pthread_mutex_lock(&loop->lock);
    loop->stopping |= stop;
    loop->woken = true;
    pthread_cond_signal(&loop->changed);
    pthread_mutex_unlock(&loop->lock);
}

void api_loop_wake(struct api_loop *loop)
{
    loop_tell(loop, false);
}

static void loop_join(struct api_loop *loop)
{
    if (loop->running)
        pthread_join(loop->thread, NULL);
    loop->running = false;
}

static void loop_done(struct api_loop *loop)
{
    pthread_mutex_destroy(&loop->lock);
    pthread_cond_destroy(&loop->changed);
}

int64_t api_backoff_next(struct api_backoff *backoff, int64_t first_ns, int64_t max_ns)
{
    int64_t wait = first_ns;
    for (uint32_t i = 0; i < backoff->failures && wait < max_ns; i++)
        wait *= 2;
    backoff->failures++;
    return wait < max_ns ? wait : max_ns;
}

/* --- what the agent tells --- */

static void on_status(void *ctx, const struct node_pod *pod, const json_val *status, bool finished)
{
    status_writer_told(ctx, pod, status, finished);
}

static void on_event(void *ctx, const struct node_pod *pod, bool warning, struct str reason,
                     struct str message)
{
    event_writer_tell(ctx, pod, warning, reason, message);
}

static void on_static_pods(void *ctx, const struct node_pod *const *pods, uint32_t count)
{
    mirror_pods_set(ctx, pods, count);
}

/* --- life --- */

static const char *text_copy(struct node_api *api, const char *maybe_text)
{
    return maybe_text ? arena_str(&api->arena, str_of(maybe_text)).p : NULL;
}

static void keep_options(struct node_api *api, const struct node_api_options *options)
{
    struct node_api_options *opts = &api->opts;
    *opts = *options;
    opts->labels = text_copy(api, options->labels);
    opts->taints = text_copy(api, options->taints);
    opts->provider_id = text_copy(api, options->provider_id);
    opts->version = text_copy(api, options->version ? options->version : "0.0.0");
    opts->root = text_copy(api, options->root ? options->root : "/var/lib/karve");
    for (size_t i = 0; i < KV_COUNT_OF(opts->reserved); i++)
        opts->reserved[i] = text_copy(api, options->reserved[i]);
    opts->pods_max = options->pods_max ? options->pods_max : NODE_PODS_MAX;
    if (!opts->status_period_ns)
        opts->status_period_ns = 10 * DURATION_SECOND;
    if (!opts->report_period_ns)
        opts->report_period_ns = 5 * DURATION_MINUTE;
    if (!opts->lease_period_ns)
        opts->lease_period_ns = 10 * DURATION_SECOND;
    if (!opts->retry_ns)
        opts->retry_ns = DURATION_SECOND;
    api->heartbeats = options->maybe_heartbeats ? options->maybe_heartbeats : options->store;
}

int node_api_new(struct node_api_options options, struct node_api **out, struct err *err)
{
    struct node_api *api = kv_calloc(1, sizeof *api);
    keep_options(api, &options);
    pthread_mutex_init(&api->mirrors.lock, NULL);
    status_writer_init(&api->statuses);
    api->events = event_writer_new(options.clock);
    api->objects = node_objects_new(options.store, options.clock);
    rng_init(&api->lease.rng, options.seed ^ 1);
    loop_init(&api->keeper_loop, api, node_keeper_step);
    loop_init(&api->lease_loop, api, node_lease_step);
    loop_init(&api->source_loop, api, pod_source_step);
    loop_init(&api->status_loop, api, status_writer_step);
    loop_init(&api->event_loop, api, event_writer_step);
    if (node_keeper_init(api, err) < 0) {
        node_api_free(api);
        return -1;
    }
    *out = api;
    return 0;
}

void node_api_wire(struct node_api *api, struct agent_options *options)
{
    options->api = true;
    options->objects = node_objects_source(api->objects);
    options->status = on_status;
    options->event = on_event;
    options->static_pods = on_static_pods;
    options->ctx = api;
    options->allocatable = api->keeper.machine.allocatable;
}

int node_api_start(struct node_api *api, struct agent *agent, struct err *err)
{
    api->agent = agent;
    api->node_name = agent_facts(agent)->node_name;
    pod_source_open(api);
    if (loop_start(&api->lease_loop, "node-lease", err) < 0 ||
        loop_start(&api->keeper_loop, "node-status", err) < 0 ||
        loop_start(&api->source_loop, "node-pods", err) < 0 ||
        loop_start(&api->status_loop, "pod-statuses", err) < 0 ||
        loop_start(&api->event_loop, "pod-events", err) < 0) {
        node_api_stop(api);
        return -1;
    }
    return 0;
}

void node_api_stop(struct node_api *api)
{
    struct api_loop *loops[] = { &api->keeper_loop, &api->lease_loop, &api->source_loop,
                                 &api->status_loop, &api->event_loop };
    for (size_t i = 0; i < KV_COUNT_OF(loops); i++)
        loop_tell(loops[i], true);
    for (size_t i = 0; i < KV_COUNT_OF(loops); i++)
        loop_join(loops[i]);
    pod_source_close(api);
}

void node_api_free(struct node_api *api)
{
    if (!api)
        return;
    node_api_stop(api);
    mirror_pods_done(&api->mirrors);
    status_writer_done(&api->statuses);
    event_writer_free(api->events);
    node_objects_free(api->objects);
    node_keeper_done(api);
    loop_done(&api->keeper_loop);
    loop_done(&api->lease_loop);
    loop_done(&api->source_loop);
    loop_done(&api->status_loop);
    loop_done(&api->event_loop);
    arena_done(&api->arena);
    free(api);
}

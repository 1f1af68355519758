/* node/pleg_hints.c - the runtime's event stream, which only ever asks for a relist sooner.
 *
 * Runtimes lose events, split them between listeners, and send old ones again; so an event is never
 * believed. Whatever it says, the pod that it is about is listed, and if nothing has changed that
 * was all. Events of every kind are hints: beside a kubelet, or when somebody works on the runtime
 * by hand, creations and starts are news as much as ends are.
 *
 * A thread of its own reads the stream, so that it is always drained: there are runtimes in which a
 * listener that does not read holds up everybody. When the stream ends it is opened again, for
 * ever, after a pause that doubles up to ten seconds and starts small again once a stream has said
 * something or lasted a second (the first headers come with the first event, so a quiet stream
 * shows only by lasting). Each time it is opened a full relist is asked for: what happened in
 * between nobody tells. A runtime without events is left in peace until it has been away, as it
 * then may be another.
 */
#include "node/pleg_inner.h"

#define PAUSE_MIN_NS ((int64_t)100 * 1000000)
#define PAUSE_MAX_NS ((int64_t)10 * 1000000000)
#define LASTED_NS ((int64_t)1000000000)
#define MESSAGE_KEPT_BYTES ((size_t)64 << 10)

static void on_event(struct pleg *pleg, const Cri__ContainerEventResponse *event)
{
    const Cri__PodSandboxStatus *sandbox = event->pod_sandbox_status;
    const char *uid = sandbox && sandbox->metadata ? sandbox->metadata->uid : "";
    if (uid[0]) {
        pleg_hint(pleg, str_of(uid), false);
    } else if (event->container_id[0]) {
        pleg_hint(pleg, str_of(event->container_id), true); /* its sandbox is gone already */
    } else {
        pleg_count(pleg->metrics.hints_ignored);
        pthread_mutex_lock(&pleg->lock);
        pleg->stats.hint_count++;
        pleg->stats.hint_ignored_count++;
        pthread_mutex_unlock(&pleg->lock);
    }
}

/* NULL: we are stopping. The lock is held so that a stop either comes before and is seen, or finds
 * the stream and cancels it. */
static struct cri_pending *stream_open(struct pleg *pleg)
{
    Cri__GetEventsRequest request = CRI__GET_EVENTS_REQUEST__INIT;
    pthread_mutex_lock(&pleg->stream_lock);
    if (!pleg->stream_stopped)
        pleg->maybe_stream =
            cri_start(pleg->opts.cri, CRI_GET_CONTAINER_EVENTS, &request, 0, NULL, NULL);
    struct cri_pending *stream = pleg->maybe_stream;
    pthread_mutex_unlock(&pleg->stream_lock);
    if (!stream)
        return NULL;

    pthread_mutex_lock(&pleg->lock);
    pleg->stats.stream_open_count++;
    pthread_mutex_unlock(&pleg->lock);
    pleg_request_all(pleg);
    return stream;
}

static void stream_close(struct pleg *pleg)
{
    pthread_mutex_lock(&pleg->stream_lock);
    struct cri_pending *stream = take(&pleg->maybe_stream);
    pthread_mutex_unlock(&pleg->stream_lock);
    cri_pending_free(stream);
}

/* Until the stream ends. True: it was a good one. `status` is the gRPC code it ended with. */
static bool listen_to(struct pleg *pleg, struct cri_pending *stream, uint32_t *status)
{
    AUTO_ARENA arena = { 0 };
    int64_t opened_ns = clock_mono_ns(pleg->opts.clock);
    bool spoke = false;
    Cri__ContainerEventResponse *event;
    struct err err = { 0 };
    int rc;
    while ((rc = cri_take_next(stream, &arena, &event, &err)) == 1) {
        spoke = true;
        on_event(pleg, event);
        if (arena.held_bytes > MESSAGE_KEPT_BYTES)
            arena_done(&arena);
        else
            arena_reset(&arena);
    }
    *status = cri_pending_status(stream);
    if (rc < 0 && err.kind != ERR_CANCELLED)
        log_info(pleg->opts.log, "the runtime's event stream ended", LOG_ERR(&err));
    return spoke || clock_mono_ns(pleg->opts.clock) - opened_ns >= LASTED_NS;
}

/* Until that time, or with `for_absence` until the runtime was away after `unreachable_count`. */
static void rest(struct pleg *pleg, int64_t until_ns, bool for_absence, uint64_t unreachable_count)
{
    pthread_mutex_lock(&pleg->lock);
    while (!pleg->stopping && clock_mono_ns(pleg->opts.clock) < until_ns &&
           !(for_absence && pleg->unreachable_count != unreachable_count))
        clock_wait(pleg->opts.clock, &pleg->hints_changed, &pleg->lock, until_ns);
    pthread_mutex_unlock(&pleg->lock);
}

void *pleg_hints_main(void *arg)
{
    struct pleg *pleg = arg;
    int64_t pause_ns = PAUSE_MIN_NS;
    struct cri_pending *stream;
    for (;;) {
        pthread_mutex_lock(&pleg->lock);
        uint64_t unreachable_count = pleg->unreachable_count;
        pthread_mutex_unlock(&pleg->lock);
        if (!(stream = stream_open(pleg)))
            return NULL;
        uint32_t status;
        bool good = listen_to(pleg, stream, &status);
        stream_close(pleg);

        if (status == GRPC_UNIMPLEMENTED) {
            log_info(pleg->opts.log,
                     "the runtime has no event stream: changes are seen by relists");
            rest(pleg, INT64_MAX, true, unreachable_count);
            continue;
        }
        if (good)
            pause_ns = PAUSE_MIN_NS;
        rest(pleg, clock_mono_ns(pleg->opts.clock) + pause_ns, false, 0);
        pause_ns = pause_ns * 2 > PAUSE_MAX_NS ? PAUSE_MAX_NS : pause_ns * 2;
    }
}

void pleg_hints_stop(struct pleg *pleg)
{
    pthread_mutex_lock(&pleg->stream_lock);
    pleg->stream_stopped = true;
    if (pleg->maybe_stream)
        cri_pending_cancel(pleg->maybe_stream);
    pthread_mutex_unlock(&pleg->stream_lock);
}

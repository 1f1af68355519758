/* Two timers with the same loop: do what is due, learn the next moment, wait for it or for a wake.
 * The number of wakes is read before the work and compared before the wait, so one that comes in
 * between is not lost.
 *
 * Whoever reads a provider's generation settles marks too, and often is faster than the timer. What
 * the timer compares is therefore how many marks have ended by anybody's hand since it last looked.
 */
#include "cloud/refresh.h"

#include "base/vec.h"
#include "cloud/reservations.h"
#include "cloud/unavailable.h"

#include <signal.h>

struct source {
    struct refresh_source port;
    bool fetched; /* `digest` is one */
    uint64_t digest;
    int64_t due_ns;
    int64_t retry_ns; /* the next pause after a failure */
};

struct timer {
    struct refresh *refresh;
    int64_t (*step)(struct refresh *r);
    const char *name;
    pthread_t thread;
};

struct refresh {
    struct refresh_options options;
    pthread_mutex_t sources_lock; /* guards sources; held while they fetch */
    VEC(struct source) sources;
    pthread_mutex_t marks_lock; /* guards ended_seen */
    uint64_t ended_seen;

    pthread_mutex_t lock; /* guards the rest; nothing else is taken inside */
    pthread_cond_t woken;
    uint64_t wakes;
    bool stopping;
    struct timer timers[2];
    size_t timer_count; /* that are running */
};

static void wake_cb(void *ctx)
{
    refresh_wake(ctx);
}

struct refresh *refresh_new(struct refresh_options options)
{
    struct refresh *r = kv_calloc(1, sizeof *r);
    if (options.interval_ns == 0)
        options.interval_ns = REFRESH_INTERVAL_NS;
    for (uint32_t i = 0; i < options.source_count; i++)
        vec_push(&r->sources, (struct source){ .port = options.sources[i],
                                               .due_ns = INT64_MIN,
                                               .retry_ns = REFRESH_RETRY_MIN_NS });
    options.sources = NULL; /* borrowed for this call */
    r->options = options;
    pthread_mutex_init(&r->sources_lock, NULL);
    pthread_mutex_init(&r->marks_lock, NULL);
    pthread_mutex_init(&r->lock, NULL);
    clock_cond_init(&r->woken);
    if (options.maybe_unavailable)
        unavailable_on_earlier(options.maybe_unavailable, wake_cb, r);
    if (options.maybe_reservations)
        reservations_on_earlier(options.maybe_reservations, wake_cb, r);
    return r;
}

static void tell_changed(const struct refresh *r)
{
    if (r->options.changed)
        r->options.changed(r->options.changed_ctx);
}

/* --- sources --- */

/* True: its counter has moved. */
static bool source_fetch(struct refresh *r, struct source *s, int *rc, struct err *err)
{
    const struct clock *clock = r->options.clock;
    uint64_t digest = 0;
    *rc = s->port.fetch(s->port.ctx, &digest, err);
    if (*rc < 0) {
        s->due_ns = clock_mono_ns(clock) + s->retry_ns;
        log_warn(r->options.maybe_log, "refresh failed, the old data is kept",
                 LOG_Z("source", generation_member_names[s->port.member]),
                 LOG_DURATION("retryAfter", s->retry_ns), LOG_ERR(err));
        s->retry_ns =
            s->retry_ns > REFRESH_RETRY_MAX_NS / 2 ? REFRESH_RETRY_MAX_NS : s->retry_ns * 2;
        return false;
    }
    s->due_ns = clock_mono_ns(clock) + r->options.interval_ns;
    s->retry_ns = REFRESH_RETRY_MIN_NS;
    if (s->fetched && s->digest == digest)
        return false;
    s->fetched = true;
    s->digest = digest;
    generation_bump(r->options.counters, s->port.member);
    return true;
}

int refresh_all(struct refresh *r, struct err *err)
{
    int result = 0;
    bool changed = false;
    pthread_mutex_lock(&r->sources_lock);
    vec_each(&r->sources, struct source, s) {
        struct err problem = { 0 };
        int rc;
        changed |= source_fetch(r, s, &rc, &problem);
        if (rc < 0 && result == 0) {
            result = err_set(err, problem.kind, "%s", problem.text);
            err_wrap(err, "refresh of %s", generation_member_names[s->port.member]);
        }
    }
    pthread_mutex_unlock(&r->sources_lock);
    if (changed)
        tell_changed(r);
    refresh_wake(r); /* moments have moved */
    return result;
}

static int64_t step_sources(struct refresh *r)
{
    int64_t next_ns = INT64_MAX;
    bool changed = false;
    pthread_mutex_lock(&r->sources_lock);
    vec_each(&r->sources, struct source, s) {
        struct err problem = { 0 };
        int rc;
        if (s->due_ns <= clock_mono_ns(r->options.clock))
            changed |= source_fetch(r, s, &rc, &problem);
        if (s->due_ns < next_ns)
            next_ns = s->due_ns;
    }
    pthread_mutex_unlock(&r->sources_lock);
    if (changed)
        tell_changed(r);
    return next_ns;
}

/* --- marks --- */

static int64_t step_marks(struct refresh *r)
{
    struct unavailable *u = r->options.maybe_unavailable;
    struct reservations *v = r->options.maybe_reservations;
    if (u)
        unavailable_settle(u);
    if (v)
        reservations_settle(v);
    uint64_t ended = (u ? unavailable_ended(u) : 0) + (v ? reservations_ended(v) : 0);
    pthread_mutex_lock(&r->marks_lock);
    bool changed = ended > r->ended_seen;
    if (changed)
        r->ended_seen = ended;
    pthread_mutex_unlock(&r->marks_lock);
    if (changed)
        tell_changed(r);

    int64_t next_u = u ? unavailable_next_ns(u) : INT64_MAX;
    int64_t next_v = v ? reservations_next_ns(v) : INT64_MAX;
    return next_u < next_v ? next_u : next_v;
}

int64_t refresh_step(struct refresh *r)
{
    int64_t sources_ns = step_sources(r), marks_ns = step_marks(r);
    return sources_ns < marks_ns ? sources_ns : marks_ns;
}

/* --- threads --- */

void refresh_wake(struct refresh *r)
{
    pthread_mutex_lock(&r->lock);
    r->wakes++;
    pthread_cond_broadcast(&r->woken);
    pthread_mutex_unlock(&r->lock);
}

static void *timer_run(void *ctx)
{
    struct timer *t = ctx;
    struct refresh *r = t->refresh;
    const struct clock *clock = r->options.clock;
    pthread_mutex_lock(&r->lock);
    while (!r->stopping) {
        uint64_t wakes = r->wakes;
        pthread_mutex_unlock(&r->lock);
        int64_t next_ns = t->step(r);
        pthread_mutex_lock(&r->lock);
        while (!r->stopping && r->wakes == wakes && clock_mono_ns(clock) < next_ns)
            clock_wait(clock, &r->woken, &r->lock, next_ns);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

int refresh_start(struct refresh *r, struct err *err)
{
    KV_ASSERT(r->timer_count == 0);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* inherited: signals are for the main thread */
    r->timers[0] = (struct timer){ .refresh = r, .step = step_sources, .name = "refresh" };
    r->timers[1] = (struct timer){ .refresh = r, .step = step_marks, .name = "refresh-marks" };
    for (; r->timer_count < KV_COUNT_OF(r->timers); r->timer_count++) {
        struct timer *t = &r->timers[r->timer_count];
        if (pthread_create(&t->thread, NULL, timer_run, t) != 0)
            break;
        pthread_setname_np(t->thread, t->name);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (r->timer_count < KV_COUNT_OF(r->timers))
        return err_set(err, ERR_UNAVAILABLE, "refresh: the system gives no more threads");
    return 0;
}

void refresh_free(struct refresh *r)
{
    if (!r)
        return;
    if (r->options.maybe_unavailable)
        unavailable_on_earlier(r->options.maybe_unavailable, NULL, NULL);
    if (r->options.maybe_reservations)
        reservations_on_earlier(r->options.maybe_reservations, NULL, NULL);
    pthread_mutex_lock(&r->lock);
    r->stopping = true;
    pthread_cond_broadcast(&r->woken);
    pthread_mutex_unlock(&r->lock);
    for (size_t i = 0; i < r->timer_count; i++)
        pthread_join(r->timers[i].thread, NULL);
    vec_done(&r->sources);
    pthread_mutex_destroy(&r->sources_lock);
    pthread_mutex_destroy(&r->marks_lock);
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->woken);
    free(r);
}

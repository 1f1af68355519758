/* The virtual clock keeps a list of those who wait for a moment. Whoever advances it wakes the ones
 * whose moment has come; the difficulty is to do so without losing a wake-up.
 *
 * A waiter holds its own mutex, registers under the clock's lock, then gives its mutex up inside
 * pthread_cond_wait. A signal sent between the last two is lost, so the waker must hold the
 * waiter's mutex; but taking it under the clock's lock is the opposite order to the waiter's. The
 * waker therefore only tries: when the mutex is busy it lets go of the clock's lock and comes
 * back. A waiter leaves only after passing the clock's lock, so its condition variable and mutex
 * are alive for as long as it is in the list and that lock is held.
 */
#include "base/clock.h"

#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#define NS_PER_S 1000000000LL
#define US_PER_S 1000000LL

/* --- real --- */

static int64_t real_wall_us(void *ctx KV_UNUSED)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * US_PER_S + ts.tv_nsec / 1000;
}

static int64_t real_mono_ns(void *ctx KV_UNUSED)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

static void real_wait(void *ctx KV_UNUSED, pthread_cond_t *cond, pthread_mutex_t *mutex,
                      int64_t until_ns)
{
    if (until_ns == INT64_MAX) {
        pthread_cond_wait(cond, mutex);
        return;
    }
    if (until_ns < 0)
        until_ns = 0; /* long ago; a timespec must not be negative */
    struct timespec until = { .tv_sec = until_ns / NS_PER_S, .tv_nsec = until_ns % NS_PER_S };
    pthread_cond_timedwait(cond, mutex, &until);
}

const struct clock *clock_real(void)
{
    static const struct clock real = { real_wall_us, real_mono_ns, real_wait, NULL };
    return &real;
}

void clock_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    int rc = pthread_cond_init(cond, &attr);
    KV_ASSERT(rc == 0);
    pthread_condattr_destroy(&attr);
}

/* --- virtual --- */

struct waiter { /* on the stack of the thread that waits */
    struct waiter *next;
    pthread_cond_t *cond;
    pthread_mutex_t *mutex;
    int64_t until_ns;
};

struct virtual_clock {
    struct clock port;
    pthread_mutex_t lock;   /* guards waiters, and mono_ns against advancing twice at once */
    struct waiter *waiters; /* not yet due */
    _Atomic int64_t mono_ns;
    _Atomic int64_t wall_at_zero_us; /* the wall time when mono_ns was 0 */
};

static int64_t virtual_wall_us(void *ctx)
{
    struct virtual_clock *vc = ctx;
    return atomic_load(&vc->wall_at_zero_us) + atomic_load(&vc->mono_ns) / 1000;
}

static int64_t virtual_mono_ns(void *ctx)
{
    struct virtual_clock *vc = ctx;
    return atomic_load(&vc->mono_ns);
}

static void unlink_waiter(struct virtual_clock *vc, const struct waiter *w)
{
    for (struct waiter **at = &vc->waiters; *at; at = &(*at)->next) {
        if (*at == w) {
            *at = w->next;
            return;
        }
    }
}

static void virtual_wait(void *ctx, pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t until_ns)
{
    struct virtual_clock *vc = ctx;
    struct waiter self = { .cond = cond, .mutex = mutex, .until_ns = until_ns };

    pthread_mutex_lock(&vc->lock);
    bool due = until_ns <= vc->mono_ns;
    if (!due) {
        self.next = vc->waiters;
        vc->waiters = &self;
    }
    pthread_mutex_unlock(&vc->lock);
    if (due)
        return;

    pthread_cond_wait(cond, mutex);

    pthread_mutex_lock(&vc->lock);
    unlink_waiter(vc, &self); /* unless the advance that woke us has done it */
    pthread_mutex_unlock(&vc->lock);
}

/* With the lock held. False: somebody due could not be reached yet. */
static bool wake_due(struct virtual_clock *vc)
{
    bool all = true;
    for (struct waiter **at = &vc->waiters; *at;) {
        struct waiter *w = *at;
        if (w->until_ns > vc->mono_ns) {
            at = &w->next;
        } else if (pthread_mutex_trylock(w->mutex) == 0) {
            *at = w->next;
            pthread_cond_broadcast(w->cond);
            pthread_mutex_unlock(w->mutex);
        } else {
            all = false;
            at = &w->next;
        }
    }
    return all;
}

struct virtual_clock *virtual_clock_new(int64_t wall_us)
{
    struct virtual_clock *vc = kv_calloc(1, sizeof *vc);
    vc->port = (struct clock){ virtual_wall_us, virtual_mono_ns, virtual_wait, vc };
    pthread_mutex_init(&vc->lock, NULL);
    atomic_init(&vc->mono_ns, 0);
    atomic_init(&vc->wall_at_zero_us, wall_us);
    return vc;
}

void virtual_clock_free(struct virtual_clock *vc)
{
    if (!vc)
        return;
    KV_ASSERT(!vc->waiters);
    pthread_mutex_destroy(&vc->lock);
    free(vc);
}

const struct clock *virtual_clock_port(struct virtual_clock *vc)
{
    return &vc->port;
}

void virtual_clock_advance(struct virtual_clock *vc, int64_t ns)
{
    KV_ASSERT(ns >= 0);
    pthread_mutex_lock(&vc->lock);
    int64_t now;
    bool overflow = __builtin_add_overflow(atomic_load(&vc->mono_ns), ns, &now);
    KV_ASSERT(!overflow);
    atomic_store(&vc->mono_ns, now);
    while (!wake_due(vc)) {
        pthread_mutex_unlock(&vc->lock);
        sched_yield();
        pthread_mutex_lock(&vc->lock);
    }
    pthread_mutex_unlock(&vc->lock);
}

void virtual_clock_jump(struct virtual_clock *vc, int64_t wall_us)
{
    atomic_store(&vc->wall_at_zero_us, wall_us - atomic_load(&vc->mono_ns) / 1000);
}

int64_t virtual_clock_next(struct virtual_clock *vc)
{
    int64_t next = INT64_MAX;
    pthread_mutex_lock(&vc->lock);
    for (const struct waiter *w = vc->waiters; w; w = w->next) {
        if (w->until_ns < next)
            next = w->until_ns;
    }
    pthread_mutex_unlock(&vc->lock);
    return next;
}

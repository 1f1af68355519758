/* store/informer_set.c - one thread that pumps many informers.
 *
 * A watch that has something wakes its informer: the flag is set first, then the thread is
 * signalled, so a wake between the thread's look at the flags and its sleep is not lost
 * (`signalled` is checked under the lock that the sleep releases). On its own it comes by when an
 * informer is due, to try again after a failure, and not otherwise: a set at rest costs nothing. So its
 * stores must wake for everything that they deliver; an embedded one whose events are late by its own
 * doing (event_delay_ns in store/embedded.h) does not.
 */
#include "store/informer_impl.h"

struct informer_set {
    const struct clock *clock;
    VEC(struct informer *) informers; /* fixed from the start on */
    pthread_t thread;
    bool started;

    pthread_mutex_t lock; /* a leaf; guards: */
    pthread_cond_t signal;
    bool signalled, stopping;
};

struct informer_set *informer_set_new(const struct clock *clock)
{
    struct informer_set *set = kv_calloc(1, sizeof *set);
    set->clock = clock;
    pthread_mutex_init(&set->lock, NULL);
    clock_cond_init(&set->signal);
    return set;
}

void informer_set_add(struct informer_set *set, struct informer *inf)
{
    KV_ASSERT(!set->started);
    KV_ASSERT(!inf->maybe_set);
    inf->maybe_set = set;
    atomic_store(&inf->woken, true);
    vec_push(&set->informers, inf);
}

static void set_signal(struct informer_set *set)
{
    pthread_mutex_lock(&set->lock);
    set->signalled = true;
    pthread_cond_signal(&set->signal);
    pthread_mutex_unlock(&set->lock);
}

void informer_woken(void *ctx)
{
    struct informer *inf = ctx;
    atomic_store(&inf->woken, true);
    set_signal(inf->maybe_set);
}

/* Pump who was woken or is due. Returns when somebody is due next. */
static int64_t pump_round(struct informer_set *set)
{
    int64_t due_ns = INT64_MAX;

    vec_each(&set->informers, struct informer *, it) {
        bool woken = atomic_exchange(&(*it)->woken, false);
        if (woken || informer_due_ns(*it) <= clock_mono_ns(set->clock))
            informer_pump(*it);
        int64_t at_ns = informer_due_ns(*it);
        due_ns = at_ns < due_ns ? at_ns : due_ns;
    }
    return due_ns;
}

static void *set_main(void *arg)
{
    struct informer_set *set = arg;
    bool stopping = false;

    while (!stopping) {
        int64_t due_ns = pump_round(set);
        pthread_mutex_lock(&set->lock);
        if (!set->signalled && !set->stopping)
            clock_wait(set->clock, &set->signal, &set->lock, due_ns);
        set->signalled = false;
        stopping = set->stopping;
        pthread_mutex_unlock(&set->lock);
    }
    return NULL;
}

void informer_set_start(struct informer_set *set)
{
    KV_ASSERT(!set->started);
    int rc = pthread_create(&set->thread, NULL, set_main, set);
    KV_ASSERT(rc == 0);
    set->started = true;
}

void informer_set_free(struct informer_set *set)
{
    if (set->started) {
        pthread_mutex_lock(&set->lock);
        set->stopping = true;
        pthread_cond_signal(&set->signal);
        pthread_mutex_unlock(&set->lock);
        pthread_join(set->thread, NULL);
    }
    vec_each(&set->informers, struct informer *, it)
        informer_stop(*it);
    vec_done(&set->informers);
    pthread_cond_destroy(&set->signal);
    pthread_mutex_destroy(&set->lock);
    free(set);
}

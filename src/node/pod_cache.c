/* node/pod_cache.c - statuses by uid, in shards, and those who wait for them.
 *
 * A waiter is on the stack of its thread, linked to its uid's place in the shard, with a condition
 * variable of its own: whoever ends its wait unlinks it, hands it the status, and wakes that one thread.
 * So the status is the one of that moment, whenever the thread gets to run, and nobody wakes who has
 * nothing to do.
 *
 * Invariants:
 *  1. No wake-up is lost. A waiter looks at its entry, the global time and its cancel, and links
 *     itself, all under the shard's lock; a writer changes the entry under that lock; and who moves the
 *     global time or cancels does that first and then goes through all shards. Either the waiter has
 *     seen the change or the one who made it finds the waiter.
 *  2. The global time is published after what it promises: the single writer has set and deleted all it
 *     had to before. A reader loads it with the shard's lock held and looks at the entry there.
 */
#include "node/pod_cache.h"

#include "base/map.h"
#include "base/vec.h"

#include <stdatomic.h>

#define SHARDS 16 /* more than processors that pod workers keep busy; a power of two */
#define SHARD_ALIGN 64
#define NEVER INT64_MIN /* newer than nothing */

enum wait_state { WAITING, RELEASED, CANCELLED };

struct waiter {
    struct waiter *prev, *next;
    struct pod_cache_cancel *maybe_cancel;
    int64_t min_ns;
    enum wait_state state;
    const struct runtime_status *status; /* RELEASED: a reference for the caller */
    pthread_cond_t wake;
};

/* What is to be known of a uid beyond its status. */
struct place {
    struct waiter *waiters;
    /* When the status was last seen to be still so; NEVER: not after the status itself was made, nor after
     * the global time. */
    int64_t observed_ns;
};

struct shard {
    /* Guards the rest, and its waiters. Only the clock's lock is taken inside. */
    _Alignas(SHARD_ALIGN) pthread_mutex_t lock;
    struct str_table statuses; /* uid to struct runtime_status */
    struct str_table places;   /* uid to struct place, while that says anything */
    uint32_t waiter_count;
    uint64_t bytes;
};

struct pod_cache {
    const struct clock *clock;
    _Atomic int64_t time_ns;
    struct shard shards[SHARDS];
};

struct pod_cache_cancel {
    struct pod_cache *cache;
    atomic_bool cancelled;
};

struct pod_cache *pod_cache_new(const struct clock *clock)
{
    struct pod_cache *cache = aligned_alloc(SHARD_ALIGN, sizeof *cache);
    KV_ASSERT(cache);
    memset(cache, 0, sizeof *cache);
    cache->clock = clock;
    atomic_init(&cache->time_ns, NEVER);
    /* A reader has the lock for some 20 ns: who meets it does better to look again for a moment than to
     * go to sleep at once, which is two system calls and a switch. */
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
    for (uint32_t i = 0; i < SHARDS; i++)
        pthread_mutex_init(&cache->shards[i].lock, &attr);
    pthread_mutexattr_destroy(&attr);
    return cache;
}

void pod_cache_free(struct pod_cache *cache)
{
    if (!cache)
        return;
    for (uint32_t i = 0; i < SHARDS; i++) {
        struct shard *shard = &cache->shards[i];
        KV_ASSERT(shard->waiter_count == 0);
        str_table_each(&shard->statuses, it)
            runtime_status_unref(it->value);
        str_table_each(&shard->places, it)
            free(it->value);
        str_table_done(&shard->statuses);
        str_table_done(&shard->places);
        pthread_mutex_destroy(&shard->lock);
    }
    free(cache);
}

/* --- shards, with their lock held --- */

static struct shard *shard_lock_hashed(struct pod_cache *cache, uint64_t uid_hash)
{
    /* The upper half: the tables themselves go by the lower. */
    struct shard *shard = &cache->shards[(uid_hash >> 32) % SHARDS];
    pthread_mutex_lock(&shard->lock);
    return shard;
}

static struct shard *shard_lock(struct pod_cache *cache, struct str uid)
{
    return shard_lock_hashed(cache, kv_hash(uid.p, uid.len));
}

static const struct runtime_status *shard_ref(struct shard *shard, struct str uid)
{
    const struct runtime_status *status = str_table_get(&shard->statuses, uid);
    return status ? runtime_status_ref(status) : NULL;
}

static uint64_t status_bytes(const struct runtime_status *maybe_status)
{
    uint64_t bytes = 0;
    for (const struct runtime_status *s = maybe_status; s; s = s->maybe_last)
        bytes += sizeof *s + s->arena.held_bytes;
    return bytes;
}

static struct place *place_make(struct shard *shard, struct str uid)
{
    struct place *place = str_table_get(&shard->places, uid);
    if (!place) {
        place = kv_calloc(1, sizeof *place);
        place->observed_ns = NEVER;
        str_table_put(&shard->places, uid, place);
    }
    return place;
}

static void place_drop_if_empty(struct shard *shard, struct str uid, struct place *place)
{
    if (place->waiters || place->observed_ns != NEVER)
        return;
    str_table_remove(&shard->places, uid);
    free(place);
}

/* --- ending waits --- */

static void waiter_link(struct shard *shard, struct place *place, struct waiter *w)
{
    w->next = place->waiters;
    if (w->next)
        w->next->prev = w;
    place->waiters = w;
    shard->waiter_count++;
}

static void waiter_unlink(struct shard *shard, struct place *place, struct waiter *w)
{
    if (w->prev)
        w->prev->next = w->next;
    else
        place->waiters = w->next;
    if (w->next)
        w->next->prev = w->prev;
    shard->waiter_count--;
}

static void waiter_end(struct shard *shard, struct place *place, struct waiter *w,
                       enum wait_state state)
{
    waiter_unlink(shard, place, w);
    w->state = state;
    pthread_cond_signal(&w->wake);
}

/* Hand what is there now to everybody who wants nothing newer than ts_ns. */
static void release(struct shard *shard, struct str uid, int64_t ts_ns)
{
    struct place *place = str_table_get(&shard->places, uid);
    AUTO_STATUS status = NULL;
    for (struct waiter *w = place ? place->waiters : NULL, *next; w; w = next) {
        next = w->next;
        if (w->min_ns > ts_ns)
            continue;
        if (!status)
            status = shard_ref(shard, uid);
        if (!status)
            status = runtime_status_new(uid);
        w->status = runtime_status_ref(status);
        waiter_end(shard, place, w, RELEASED);
    }
    if (place)
        place_drop_if_empty(shard, uid, place);
}

static void cancel_waiters(struct shard *shard, struct str uid, struct place *place,
                           const struct pod_cache_cancel *cancel)
{
    for (struct waiter *w = place->waiters, *next; w; w = next) {
        next = w->next;
        if (w->maybe_cancel == cancel)
            waiter_end(shard, place, w, CANCELLED);
    }
    place_drop_if_empty(shard, uid, place);
}

/* --- readers --- */

const struct runtime_status *pod_cache_get(struct pod_cache *cache, struct str uid)
{
    uint64_t hash = kv_hash(uid.p, uid.len);
    struct shard *shard = shard_lock_hashed(cache, hash);
    const struct runtime_status *status = str_table_get_hashed(&shard->statuses, uid, hash);
    if (status)
        rc_ref(&status->rc);
    pthread_mutex_unlock(&shard->lock);
    return status ? status : runtime_status_new(uid);
}

/* Is what is known of the pod strictly newer? With the shard's lock held. */
static bool newer_than(struct pod_cache *cache, struct shard *shard, struct str uid, int64_t min_ns)
{
    if (atomic_load(&cache->time_ns) > min_ns)
        return true;
    const struct runtime_status *status = str_table_get(&shard->statuses, uid);
    const struct place *place = str_table_get(&shard->places, uid);
    return status && (status->timestamp_ns > min_ns || (place && place->observed_ns > min_ns));
}

/* With the shard's lock held, which is given up while it waits. */
static void wait_for(struct pod_cache *cache, struct shard *shard, struct str uid, struct waiter *w,
                     int64_t until_ns)
{
    struct place *place = place_make(shard, uid);
    clock_cond_init(&w->wake);
    waiter_link(shard, place, w);
    while (w->state == WAITING && clock_mono_ns(cache->clock) < until_ns)
        clock_wait(cache->clock, &w->wake, &shard->lock, until_ns);
    if (w->state == WAITING) {
        waiter_unlink(shard, place, w);
        place_drop_if_empty(shard, uid, place);
    }
    pthread_cond_destroy(&w->wake);
}

static int wait_result(const struct waiter *w, struct str uid, const struct runtime_status **out,
                       struct err *err)
{
    switch (w->state) {
    case RELEASED:
        *out = w->status;
        return 0;
    case CANCELLED:
        return err_set(err, ERR_CANCELLED, "the wait for the status of pod %s was given up",
                       STR_SHOWN(uid));
    case WAITING:
        return err_set(err, ERR_UNAVAILABLE, "no newer status of pod %s in time", STR_SHOWN(uid));
    }
    KV_UNREACHABLE();
}

int pod_cache_get_newer_than(struct pod_cache *cache, struct str uid, int64_t min_ns,
                             int64_t until_ns, struct pod_cache_cancel *maybe_cancel,
                             const struct runtime_status **out, struct err *err)
{
    struct waiter w = { .min_ns = min_ns, .maybe_cancel = maybe_cancel };
    struct shard *shard = shard_lock(cache, uid);
    if (newer_than(cache, shard, uid, min_ns)) {
        w.state = RELEASED;
        w.status = shard_ref(shard, uid);
    } else if (maybe_cancel && atomic_load(&maybe_cancel->cancelled)) {
        w.state = CANCELLED;
    } else {
        wait_for(cache, shard, uid, &w, until_ns);
    }
    pthread_mutex_unlock(&shard->lock);
    if (w.state == RELEASED && !w.status)
        w.status = runtime_status_new(uid);
    return wait_result(&w, uid, out, err);
}

struct pod_cache_cancel *pod_cache_cancel_new(struct pod_cache *cache)
{
    struct pod_cache_cancel *cancel = kv_calloc(1, sizeof *cancel);
    cancel->cache = cache;
    return cancel;
}

void pod_cache_cancel(struct pod_cache_cancel *cancel)
{
    atomic_store(&cancel->cancelled, true);
    for (uint32_t i = 0; i < SHARDS; i++) {
        struct shard *shard = &cancel->cache->shards[i];
        pthread_mutex_lock(&shard->lock);
        str_table_each(&shard->places, it)
            cancel_waiters(shard, it->key, it->value, cancel);
        pthread_mutex_unlock(&shard->lock);
    }
}

void pod_cache_cancel_reset(struct pod_cache_cancel *cancel)
{
    atomic_store(&cancel->cancelled, false);
}

void pod_cache_cancel_free(struct pod_cache_cancel *cancel)
{
    free(cancel);
}

static int by_uid(const void *a, const void *b)
{
    const struct runtime_status *const *x = a, *const *y = b;
    return str_cmp((*x)->uid, (*y)->uid);
}

struct pod_cache_all pod_cache_all(struct pod_cache *cache)
{
    int64_t time_ns = pod_cache_time(cache);
    VEC(const struct runtime_status *) all = { 0 };
    for (uint32_t i = 0; i < SHARDS; i++) {
        struct shard *shard = &cache->shards[i];
        pthread_mutex_lock(&shard->lock);
        vec_reserve(&all, all.count + shard->statuses.live_count);
        str_table_each(&shard->statuses, it)
            vec_push(&all, runtime_status_ref(it->value));
        pthread_mutex_unlock(&shard->lock);
    }
    if (all.count)
        qsort(all.items, all.count, sizeof *all.items, by_uid);
    return (struct pod_cache_all){ all.items, (uint32_t)all.count, time_ns };
}

void pod_cache_all_done(struct pod_cache_all *all)
{
    for (uint32_t i = 0; i < all->count; i++)
        runtime_status_unref(all->items[i]);
    free(all->items);
    *all = (struct pod_cache_all){ 0 };
}

int64_t pod_cache_time(const struct pod_cache *cache)
{
    int64_t time_ns = atomic_load(&cache->time_ns);
    return time_ns == NEVER ? 0 : time_ns;
}

struct pod_cache_stats pod_cache_stats(struct pod_cache *cache)
{
    struct pod_cache_stats stats = { 0 };
    for (uint32_t i = 0; i < SHARDS; i++) {
        struct shard *shard = &cache->shards[i];
        pthread_mutex_lock(&shard->lock);
        stats.entry_count += shard->statuses.live_count;
        stats.waiter_count += shard->waiter_count;
        stats.bytes += shard->bytes;
        pthread_mutex_unlock(&shard->lock);
    }
    return stats;
}

/* --- the writer --- */

bool pod_cache_set(struct pod_cache *cache, const struct runtime_status *status)
{
    struct shard *shard = shard_lock(cache, status->uid);
    const struct runtime_status *old = str_table_get(&shard->statuses, status->uid);
    bool newest = !old || old->timestamp_ns <= status->timestamp_ns;
    if (newest) {
        str_table_put(&shard->statuses, status->uid, (void *)runtime_status_ref(status));
        shard->bytes += status_bytes(status) - status_bytes(old);
        struct place *place = str_table_get(&shard->places, status->uid);
        if (place)
            place->observed_ns = NEVER; /* that was the old one */
        release(shard, status->uid, status->timestamp_ns);
    }
    pthread_mutex_unlock(&shard->lock);
    if (newest)
        runtime_status_unref(old);
    return newest;
}

void pod_cache_set_observed(struct pod_cache *cache, struct str uid, int64_t ts_ns)
{
    struct shard *shard = shard_lock(cache, uid);
    const struct runtime_status *status = str_table_get(&shard->statuses, uid);
    if (status && status->timestamp_ns < ts_ns && atomic_load(&cache->time_ns) < ts_ns) {
        struct place *place = place_make(shard, uid);
        if (place->observed_ns < ts_ns)
            place->observed_ns = ts_ns;
    }
    release(shard, uid, ts_ns);
    pthread_mutex_unlock(&shard->lock);
}

void pod_cache_delete(struct pod_cache *cache, struct str uid)
{
    struct shard *shard = shard_lock(cache, uid);
    const struct runtime_status *old = str_table_remove(&shard->statuses, uid);
    shard->bytes -= status_bytes(old);
    pthread_mutex_unlock(&shard->lock);
    runtime_status_unref(old);
}

void pod_cache_update_time(struct pod_cache *cache, int64_t ts_ns)
{
    if (atomic_load(&cache->time_ns) < ts_ns) /* there is one writer: nobody comes between */
        atomic_store(&cache->time_ns, ts_ns);
    for (uint32_t i = 0; i < SHARDS; i++) {
        struct shard *shard = &cache->shards[i];
        pthread_mutex_lock(&shard->lock);
        str_table_each(&shard->places, it) {
            struct place *place = it->value;
            if (place->observed_ns <= ts_ns)
                place->observed_ns = NEVER;
            release(shard, it->key, ts_ns);
        }
        pthread_mutex_unlock(&shard->lock);
    }
}

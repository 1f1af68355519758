/* The pod cache beside two slower pictures of it: a model of its table of operations, one call at a
 * time, and many threads around a runtime whose truth is known. */
#include "node/pod_cache.h"

#include "base/rng.h"
#include "support/test.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

#define LONG_NS ((int64_t)60 * 1000000000) /* of real time: then the test has failed */

/* --- the model --- */

#define UIDS 3
#define WAITS 12
#define CANCELS 2
#define SEEDS 40
#define STEPS 150

struct wait {
    bool live;
    struct pod_cache *cache;
    uint32_t uid, cancel; /* cancel: CANCELS for none */
    int64_t min_ns, until_ns;
    struct pod_cache_cancel *maybe_cancel;
    pthread_t thread;
    int rc;
    const struct runtime_status *status;
    struct err err;
};

/* What the operations mean, without threads and locks, beside the real thing. */
struct model {
    struct {
        bool present;
        const struct runtime_status *status; /* compared by address, never followed */
        int64_t modified_ns, observed_ns;
    } pods[UIDS];
    bool has_time;
    int64_t time_ns;
    bool cancelled[CANCELS];
    struct wait waits[WAITS];

    struct pod_cache *cache;
    struct pod_cache_cancel *cancels[CANCELS];
    struct virtual_clock *clock;
    struct rng rng;
    int64_t base_ns; /* times are drawn around it */
};

static const struct str uids[UIDS] = { { "a", 1 }, { "b", 1 }, { "c", 1 } };

static void *wait_main(void *arg)
{
    struct wait *w = arg;
    w->rc = pod_cache_get_newer_than(w->cache, uids[w->uid], w->min_ns, w->until_ns,
                                     w->maybe_cancel, &w->status, &w->err);
    return NULL;
}

static int64_t some_time(struct model *m)
{
    m->base_ns += (int64_t)rng_below(&m->rng, 2);
    return m->base_ns + (int64_t)rng_below(&m->rng, 5) - 2;
}

static bool is_newer(const struct model *m, uint32_t uid, int64_t min_ns)
{
    if (m->has_time && m->time_ns > min_ns)
        return true;
    return m->pods[uid].present &&
           (m->pods[uid].modified_ns > min_ns || m->pods[uid].observed_ns > min_ns);
}

static void expect_outcome(const struct model *m, const struct wait *w, enum err_kind want)
{
    if (want != ERR_NONE) {
        EXPECT_ERR(w->rc, w->err, want);
        return;
    }
    EXPECT_EQ(w->rc, 0);
    if (m->pods[w->uid].present)
        EXPECT_TRUE(w->status == m->pods[w->uid].status);
    else
        EXPECT_EQ(w->status->timestamp_ns, 0);
    EXPECT_TRUE(str_eq(w->status->uid, uids[w->uid]));
    runtime_status_unref(w->status);
}

/* The wait has ended by the last call, in this way. */
static void expect_end(struct model *m, struct wait *w, enum err_kind want)
{
    pthread_join(w->thread, NULL);
    expect_outcome(m, w, want);
    w->live = false;
}

static void expect_released(struct model *m, uint32_t uid, int64_t ts_ns)
{
    for (size_t i = 0; i < WAITS; i++) {
        struct wait *w = &m->waits[i];
        if (w->live && w->uid == uid && w->min_ns <= ts_ns)
            expect_end(m, w, ERR_NONE);
    }
}

static void do_set(struct model *m, uint32_t uid)
{
    struct runtime_status *status = runtime_status_new(uids[uid]);
    int64_t ts_ns = status->timestamp_ns = some_time(m);
    bool want = !m->pods[uid].present || m->pods[uid].modified_ns <= ts_ns;
    EXPECT_EQ(pod_cache_set(m->cache, status), want);
    if (want) {
        m->pods[uid].present = true;
        m->pods[uid].status = status;
        m->pods[uid].modified_ns = m->pods[uid].observed_ns = ts_ns;
        expect_released(m, uid, ts_ns);
    }
    runtime_status_unref(status);
}

static void do_set_observed(struct model *m, uint32_t uid)
{
    int64_t ts_ns = some_time(m);
    pod_cache_set_observed(m->cache, uids[uid], ts_ns);
    if (m->pods[uid].present && m->pods[uid].observed_ns < ts_ns)
        m->pods[uid].observed_ns = ts_ns;
    expect_released(m, uid, ts_ns);
}

static void do_delete(struct model *m, uint32_t uid)
{
    pod_cache_delete(m->cache, uids[uid]);
    m->pods[uid].present = false;
}

static void do_update_time(struct model *m, int64_t ts_ns)
{
    pod_cache_update_time(m->cache, ts_ns);
    if (!m->has_time || m->time_ns < ts_ns)
        m->time_ns = ts_ns;
    m->has_time = true;
    for (uint32_t uid = 0; uid < UIDS; uid++)
        expect_released(m, uid, ts_ns);
}

static void do_cancel_or_reset(struct model *m, uint32_t cancel)
{
    m->cancelled[cancel] = !m->cancelled[cancel];
    if (!m->cancelled[cancel]) {
        pod_cache_cancel_reset(m->cancels[cancel]);
        return;
    }
    pod_cache_cancel(m->cancels[cancel]);
    for (size_t i = 0; i < WAITS; i++) {
        if (m->waits[i].live && m->waits[i].cancel == cancel)
            expect_end(m, &m->waits[i], ERR_CANCELLED);
    }
}

static void do_advance(struct model *m)
{
    virtual_clock_advance(m->clock, (int64_t)rng_below(&m->rng, 6));
    int64_t now_ns = clock_mono_ns(virtual_clock_port(m->clock));
    for (size_t i = 0; i < WAITS; i++) {
        if (m->waits[i].live && m->waits[i].until_ns <= now_ns)
            expect_end(m, &m->waits[i], ERR_UNAVAILABLE);
    }
}

static void wait_start(struct wait *w)
{
    uint32_t before = pod_cache_stats(w->cache).waiter_count;
    int64_t limit_ns = clock_mono_ns(clock_real()) + LONG_NS;
    EXPECT_EQ(pthread_create(&w->thread, NULL, wait_main, w), 0);
    while (pod_cache_stats(w->cache).waiter_count == before) {
        EXPECT_TRUE(clock_mono_ns(clock_real()) < limit_ns);
        sched_yield();
    }
    w->live = true;
}

static void do_wait(struct model *m, uint32_t uid)
{
    struct wait *w = m->waits;
    while (w < m->waits + WAITS && w->live)
        w++;
    if (w == m->waits + WAITS)
        return;
    int64_t now_ns = clock_mono_ns(virtual_clock_port(m->clock));
    uint32_t cancel = (uint32_t)rng_below(&m->rng, CANCELS + 1);
    *w = (struct wait){
        .cache = m->cache,
        .uid = uid,
        .cancel = cancel,
        .min_ns = some_time(m),
        .until_ns = rng_below(&m->rng, 2) ? INT64_MAX : now_ns + (int64_t)rng_below(&m->rng, 20),
        .maybe_cancel = cancel < CANCELS ? m->cancels[cancel] : NULL,
    };
    bool newer = is_newer(m, uid, w->min_ns);
    bool cancelled = cancel < CANCELS && m->cancelled[cancel];
    if (newer || cancelled || w->until_ns <= now_ns) {
        wait_main(w);
        expect_outcome(m, w, newer ? ERR_NONE : cancelled ? ERR_CANCELLED : ERR_UNAVAILABLE);
    } else {
        wait_start(w);
    }
}

static void do_something(struct model *m)
{
    uint32_t uid = (uint32_t)rng_below(&m->rng, UIDS);
    switch (rng_below(&m->rng, 12)) {
    case 0:
    case 1:
        do_set(m, uid);
        return;
    case 2:
        do_set_observed(m, uid);
        return;
    case 3:
        do_delete(m, uid);
        return;
    case 4:
        do_update_time(m, some_time(m));
        return;
    case 5:
        do_cancel_or_reset(m, (uint32_t)rng_below(&m->rng, CANCELS));
        return;
    case 6:
        do_advance(m);
        return;
    default:
        do_wait(m, uid);
    }
}

static void expect_equal(struct model *m)
{
    uint32_t entry_count = 0, waiter_count = 0;
    for (uint32_t uid = 0; uid < UIDS; uid++) {
        AUTO_STATUS status = pod_cache_get(m->cache, uids[uid]);
        entry_count += m->pods[uid].present;
        if (m->pods[uid].present)
            EXPECT_TRUE(status == m->pods[uid].status);
        else
            EXPECT_EQ(status->timestamp_ns, 0);
    }
    for (size_t i = 0; i < WAITS; i++)
        waiter_count += m->waits[i].live;
    struct pod_cache_stats stats = pod_cache_stats(m->cache);
    EXPECT_EQ(stats.entry_count, entry_count);
    EXPECT_EQ(stats.waiter_count, waiter_count);
    EXPECT_EQ(pod_cache_time(m->cache), m->has_time ? m->time_ns : 0);
}

TEST(every_sequence_of_calls_does_what_the_table_of_operations_says)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        printf("# seed %llu\n", (unsigned long long)seed);
        struct model m = { .clock = virtual_clock_new(0), .base_ns = 10 };
        rng_init(&m.rng, seed);
        m.cache = pod_cache_new(virtual_clock_port(m.clock));
        for (size_t i = 0; i < CANCELS; i++)
            m.cancels[i] = pod_cache_cancel_new(m.cache);
        for (int step = 0; step < STEPS; step++) {
            do_something(&m);
            expect_equal(&m);
        }
        do_update_time(&m, INT64_MAX);
        expect_equal(&m);
        for (size_t i = 0; i < CANCELS; i++)
            pod_cache_cancel_free(m.cancels[i]);
        pod_cache_free(m.cache);
        virtual_clock_free(m.clock);
    }
}

/* --- many threads --- */

/* A runtime whose pods are numbers: each change is one more, and a multiple of four is no pod at all.
 * Actors change a pod, or one of the second half of them nothing, take the time, and wait for something
 * newer. One relist follows for all: it must release every one, with its change or a later one. Who has
 * changed nothing has only the global time to wait for. */
#define PODS 8
#define ACTORS 12
#define READERS 2
#define ROUNDS 300

struct stress {
    struct clock clock; /* each reading is later than the one before: no two moments are equal */
    _Atomic int64_t tick;
    _Atomic int64_t world[PODS];
    int64_t listed[PODS]; /* the writer's: as of the last relist */
    char uids[PODS][8];
    struct pod_cache *cache;
    struct pod_cache_cancel *cancel;
    atomic_int round, taken_count, done_count;
    atomic_bool over;
    atomic_int wrong_count;
};

struct stress_thread {
    struct stress *s;
    uint32_t number;
    pthread_t thread;
};

static int64_t next_tick(void *ctx)
{
    struct stress *s = ctx;
    return atomic_fetch_add(&s->tick, 1) + 1;
}

static void wait_untimed(void *ctx KV_UNUSED, pthread_cond_t *cond, pthread_mutex_t *mutex,
                         int64_t until_ns)
{
    KV_ASSERT(until_ns == INT64_MAX);
    pthread_cond_wait(cond, mutex);
}

static void expect_right(struct stress *s, bool right)
{
    if (!right)
        atomic_fetch_add(&s->wrong_count, 1);
}

/* 0: no such pod. */
static int64_t number_in(const struct runtime_status *status)
{
    int64_t number = 0;
    str_to_i64(status->name, &number);
    return number;
}

static void relist(struct stress *s)
{
    int64_t ts_ns = next_tick(s);
    for (uint32_t i = 0; i < PODS; i++) {
        int64_t number = atomic_load(&s->world[i]);
        if (number == s->listed[i])
            continue;
        s->listed[i] = number;
        if (number % 4 == 0) {
            pod_cache_delete(s->cache, str_of(s->uids[i]));
            continue;
        }
        struct runtime_status *status = runtime_status_new(str_of(s->uids[i]));
        status->name = arena_strf(&status->arena, "%lld", (long long)number);
        status->timestamp_ns = ts_ns;
        expect_right(s, pod_cache_set(s->cache, status));
        runtime_status_unref(status);
    }
    pod_cache_update_time(s->cache, ts_ns);
}

static void act_and_wait(struct stress *s, uint32_t pod, uint32_t pause)
{
    int64_t change = pod < PODS / 2 ? 1 : 0;
    int64_t acted = atomic_fetch_add(&s->world[pod], change) + change;
    int64_t min_ns = next_tick(s);
    atomic_fetch_add(&s->taken_count,
                     1); /* from now on the relist may come: also before the wait */
    for (volatile uint32_t i = 0; i < pause; i++) {
    }

    AUTO_STATUS status = NULL;
    struct err err;
    if (pod_cache_get_newer_than(s->cache, str_of(s->uids[pod]), min_ns, INT64_MAX, s->cancel,
                                 &status, &err) < 0) {
        expect_right(s, false);
        return;
    }
    int64_t seen = number_in(status);
    if (seen == 0) /* gone: by our own act, or by a later one */
        expect_right(s, acted % 4 == 0 || atomic_load(&s->world[pod]) > acted);
    else
        expect_right(s, seen >= acted);
}

static void *actor_main(void *arg)
{
    struct stress_thread *t = arg;
    for (int round = 1; round <= ROUNDS; round++) {
        while (atomic_load(&t->s->round) < round)
            sched_yield();
        uint32_t mixed = (uint32_t)kv_mix64(t->number * ROUNDS + (uint32_t)round);
        act_and_wait(t->s, mixed % PODS, mixed / PODS % 4096);
        atomic_fetch_add(&t->s->done_count, 1);
    }
    return NULL;
}

static void *reader_main(void *arg)
{
    struct stress_thread *t = arg;
    struct stress *s = t->s;
    int64_t last[PODS] = { 0 }, last_time_ns = 0;
    while (!atomic_load(&s->over)) {
        for (uint32_t i = 0; i < PODS; i++) {
            AUTO_STATUS status = pod_cache_get(s->cache, str_of(s->uids[i]));
            int64_t number = number_in(status);
            expect_right(s, number == 0 || number >= last[i]);
            if (number)
                last[i] = number;
        }
        struct pod_cache_all all = pod_cache_all(s->cache);
        expect_right(s, all.time_ns >= last_time_ns);
        last_time_ns = all.time_ns;
        pod_cache_all_done(&all);
        sched_yield();
    }
    return NULL;
}

static bool await(atomic_int *count, int want)
{
    int64_t limit_ns = clock_mono_ns(clock_real()) + LONG_NS;
    while (atomic_load(count) < want && clock_mono_ns(clock_real()) < limit_ns)
        sched_yield();
    return atomic_load(count) >= want;
}

TEST(one_relist_releases_all_who_acted_before_it_with_what_they_did)
{
    struct stress s = { 0 };
    struct stress_thread threads[ACTORS + READERS];
    s.clock = (struct clock){ .mono_ns = next_tick, .wait = wait_untimed, .ctx = &s };
    s.cache = pod_cache_new(&s.clock);
    s.cancel = pod_cache_cancel_new(s.cache);
    for (uint32_t i = 0; i < PODS; i++)
        snprintf(s.uids[i], sizeof s.uids[i], "uid-%u", i);
    for (uint32_t i = 0; i < ACTORS + READERS; i++) {
        threads[i] = (struct stress_thread){ .s = &s, .number = i };
        EXPECT_EQ(pthread_create(&threads[i].thread, NULL, i < ACTORS ? actor_main : reader_main,
                                 &threads[i]),
                  0);
    }
    bool all_came = true;
    for (int round = 1; round <= ROUNDS && all_came; round++) {
        atomic_store(&s.round, round);
        all_came = await(&s.taken_count, round * ACTORS);
        relist(&s);
        all_came = all_came && await(&s.done_count, round * ACTORS);
    }
    pod_cache_cancel(s.cancel); /* if a wake-up was lost, the rest of the rounds ends at once */
    atomic_store(&s.round, ROUNDS);
    atomic_store(&s.over, true);
    for (uint32_t i = 0; i < ACTORS + READERS; i++)
        pthread_join(threads[i].thread, NULL);
    pod_cache_cancel_free(s.cancel);
    pod_cache_free(s.cache);
    EXPECT_TRUE(all_came);
    EXPECT_EQ(s.wrong_count, 0);
}

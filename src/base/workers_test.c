/* The queue with real threads. What it does with one is in queue_test.c. */
#include "base/workers.h"

#include "base/rng.h"
#include "support/test.h"

#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#define MS_NS ((int64_t)1000000)
#define SECOND_NS (1000 * MS_NS)

struct fixture {
    struct virtual_clock *clock;
    struct queue *q;
};

static void fixture_done(struct fixture *f)
{
    queue_free(f->q);
    virtual_clock_free(f->clock);
}
#define AUTO_FIXTURE __attribute__((cleanup(fixture_done))) struct fixture

static struct fixture fixture_new(void)
{
    struct fixture f = { .clock = virtual_clock_new(0) };
    f.q = queue_new((struct queue_options){ .clock = virtual_clock_port(f.clock) });
    return f;
}

static void nap(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
}

static void wait_until_idle(struct queue *q)
{
    for (;;) {
        struct queue_stats s = queue_stats(q);
        if (s.ready_count == 0 && s.delayed_count == 0 && s.running_count == 0)
            return;
        nap();
    }
}

enum { STRESS_KEYS = 16, STRESS_PRODUCERS = 3, STRESS_ADDS = 4000, STRESS_WORKERS = 4 };

struct stress {
    struct queue *q;
    atomic_int inside[STRESS_KEYS];
    atomic_int wanted[STRESS_KEYS]; /* raised before each add */
    atomic_int seen[STRESS_KEYS];   /* what `wanted` was when a pass started */
    atomic_int overlaps, passes;
};

static struct outcome stress_reconcile(void *ctx, struct str key)
{
    struct stress *s = ctx;
    int ix = key.p[0] - 'a';
    if (atomic_fetch_add(&s->inside[ix], 1) != 0)
        atomic_fetch_add(&s->overlaps, 1);
    int wanted = atomic_load(&s->wanted[ix]);
    int pass = atomic_fetch_add(&s->passes, 1);
    struct outcome outcome = outcome_done();
    if (pass % 7 == 3)
        outcome = outcome_retry(); /* did not get to it */
    else
        atomic_store(&s->seen[ix], wanted);
    if (pass % 11 == 5)
        outcome = outcome_requeue(MS_NS / 10);
    if (pass % 50 == 0)
        nap();
    atomic_fetch_sub(&s->inside[ix], 1);
    return outcome;
}

struct producer {
    struct stress *stress;
    uint64_t seed;
};

static void *produce(void *arg)
{
    struct producer *p = arg;
    struct rng rng;
    rng_init(&rng, p->seed);
    for (int i = 0; i < STRESS_ADDS; i++) {
        int ix = (int)rng_below(&rng, STRESS_KEYS);
        char name[2] = { (char)('a' + ix), '\0' };
        atomic_fetch_add(&p->stress->wanted[ix], 1);
        int64_t delay_ns = i % 3 ? 0 : (int64_t)rng_below(&rng, (uint64_t)MS_NS);
        if (!queue_add_after(p->stress->q, str_of(name), delay_ns))
            abort();
        if (i % 100 == 0)
            nap();
    }
    return NULL;
}

TEST(queue_under_stress_never_runs_a_key_twice_at_once_and_loses_none)
{
    AUTO(queue) q = queue_new((struct queue_options){ .clock = clock_real(),
                                                      .seed = 3,
                                                      .keys_max = STRESS_KEYS,
                                                      .backoff_min_ns = MS_NS / 10,
                                                      .backoff_max_ns = MS_NS });
    struct stress s = { .q = q };
    struct worker_pool *pool = NULL;
    struct err err;
    EXPECT_OK(worker_pool_start((struct worker_pool_options){ .name = "stress",
                                                              .queue = q,
                                                              .thread_count = STRESS_WORKERS,
                                                              .reconcile = stress_reconcile,
                                                              .ctx = &s },
                                &pool, &err),
              err);
    pthread_t threads[STRESS_PRODUCERS];
    struct producer producers[STRESS_PRODUCERS];
    for (uint64_t i = 0; i < STRESS_PRODUCERS; i++) {
        producers[i] = (struct producer){ &s, i };
        pthread_create(&threads[i], NULL, produce, &producers[i]);
    }
    for (int i = 0; i < STRESS_PRODUCERS; i++)
        pthread_join(threads[i], NULL);
    wait_until_idle(q);
    worker_pool_stop(pool, QUEUE_DRAIN);

    EXPECT_EQ(atomic_load(&s.overlaps), 0);
    for (int i = 0; i < STRESS_KEYS; i++)
        EXPECT_EQ(atomic_load(&s.seen[i]), atomic_load(&s.wanted[i]));
    struct queue_stats stats = queue_stats(q);
    EXPECT_EQ(stats.add_count + stats.merge_count, STRESS_PRODUCERS * STRESS_ADDS);
    EXPECT_EQ(stats.take_count, atomic_load(&s.passes));
}

struct counted {
    atomic_int runs;
    atomic_bool hold; /* keep the workers inside */
};

static struct outcome counted_reconcile(void *ctx, struct str key KV_UNUSED)
{
    struct counted *c = ctx;
    atomic_fetch_add(&c->runs, 1);
    while (atomic_load(&c->hold))
        nap();
    return outcome_done();
}

static struct worker_pool *counted_pool(struct queue *q, struct counted *c, uint32_t thread_count)
{
    struct worker_pool *pool = NULL;
    struct err err;
    EXPECT_OK(worker_pool_start((struct worker_pool_options){ .name = "a rather long name",
                                                              .queue = q,
                                                              .thread_count = thread_count,
                                                              .reconcile = counted_reconcile,
                                                              .ctx = c },
                                &pool, &err),
              err);
    return pool;
}

TEST(workers_that_wait_wake_when_virtual_time_reaches_a_delayed_key)
{
    AUTO_FIXTURE f = fixture_new();
    struct counted c = { 0 };
    struct worker_pool *pool = counted_pool(f.q, &c, 3);
    for (int round = 1; round <= 20; round++) {
        queue_add_after(f.q, STR("a"), round * SECOND_NS);
        queue_add_after(f.q, STR("b"), round * (2 * SECOND_NS));
        while (virtual_clock_next(f.clock) == INT64_MAX)
            nap();
        EXPECT_EQ(atomic_load(&c.runs), 2 * (round - 1));
        virtual_clock_advance(f.clock, round * (2 * SECOND_NS));
        wait_until_idle(f.q);
        EXPECT_EQ(atomic_load(&c.runs), 2 * round);
    }
    worker_pool_stop(pool, QUEUE_DRAIN);
}

/* The worker that was going to wait for "later" may be the one that is woken for "now". In real
 * time: the virtual clock wakes everybody whenever it moves. */
TEST(workers_left_waiting_serve_a_delayed_key_while_the_one_that_waited_for_it_is_busy)
{
    AUTO(queue) q = queue_new((struct queue_options){ .clock = clock_real() });
    struct counted c = { 0 };
    struct worker_pool *pool = counted_pool(q, &c, 2);
    for (int round = 1; round <= 10; round++) {
        atomic_store(&c.hold, true);
        queue_add_after(q, STR("later"), 4 * MS_NS);
        nap();
        nap();
        queue_add(q, STR("now"));
        while (atomic_load(&c.runs) < 2 * round)
            nap(); /* for ever, if nobody waits for "later" any more */
        atomic_store(&c.hold, false);
        wait_until_idle(q);
        nap();
    }
    worker_pool_stop(pool, QUEUE_DROP);
}

TEST(workers_drain_what_is_ready_before_they_stop)
{
    AUTO_FIXTURE f = fixture_new();
    struct counted c = { 0 };
    for (int i = 0; i < 500; i++) {
        char key[16];
        snprintf(key, sizeof key, "key-%d", i);
        queue_add(f.q, str_of(key));
    }
    worker_pool_stop(counted_pool(f.q, &c, 4), QUEUE_DRAIN);
    EXPECT_EQ(atomic_load(&c.runs), 500);
}

TEST(workers_that_are_told_to_drop_finish_only_what_they_hold)
{
    AUTO_FIXTURE f = fixture_new();
    struct counted c = { .hold = true };
    struct worker_pool *pool = counted_pool(f.q, &c, 2);
    static const char *const keys[] = { "a", "b", "c", "d" };
    for (size_t i = 0; i < KV_COUNT_OF(keys); i++)
        queue_add(f.q, str_of(keys[i]));
    while (atomic_load(&c.runs) < 2)
        nap();
    queue_shutdown(f.q, QUEUE_DROP);
    atomic_store(&c.hold, false);
    worker_pool_stop(pool, QUEUE_DROP);
    EXPECT_EQ(atomic_load(&c.runs), 2);
}

TEST(workers_that_cannot_all_be_had_are_not_started_at_all)
{
    AUTO_FIXTURE f = fixture_new();
    struct counted c = { 0 };
    struct worker_pool *pool = NULL;
    struct err err;
    pthread_attr_t usual, greedy;
    pthread_getattr_default_np(&usual);
    pthread_attr_init(&greedy);
    pthread_attr_setstacksize(&greedy, (size_t)1 << 46); /* two of these fill the address space */
    pthread_setattr_default_np(&greedy);
    queue_add(f.q, STR("a"));
    EXPECT_ERR(worker_pool_start((struct worker_pool_options){ .name = "greedy",
                                                               .queue = f.q,
                                                               .thread_count = 3,
                                                               .reconcile = counted_reconcile,
                                                               .ctx = &c },
                                 &pool, &err),
               err, ERR_UNAVAILABLE);
    pthread_setattr_default_np(&usual);
    pthread_attr_destroy(&greedy);
    pthread_attr_destroy(&usual);
    EXPECT_HAS(str_of(err.text), "greedy: the system gives ");
    EXPECT_HAS(str_of(err.text), " of 3 threads");
    EXPECT_TRUE(pool == NULL);
    EXPECT_EQ(atomic_load(&c.runs), 0);
}

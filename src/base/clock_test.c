#include "support/test.h"

#include "base/clock.h"

#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#define MS 1000000LL

TEST(real_clock_tells_the_time)
{
    const struct clock *c = clock_real();
    int64_t before = (int64_t)time(NULL);
    int64_t wall_us = clock_wall_us(c);
    int64_t after = (int64_t)time(NULL);
    /* time() may lag the precise clock by a tick. */
    EXPECT_TRUE(wall_us / 1000000 >= before);
    EXPECT_TRUE(wall_us / 1000000 <= after + 1);
    int64_t last = clock_mono_ns(c);
    for (int i = 0; i < 1000; i++) {
        int64_t now = clock_mono_ns(c);
        EXPECT_TRUE(now >= last);
        last = now;
    }
}

TEST(real_clock_wait_returns_when_the_moment_has_come)
{
    const struct clock *c = clock_real();
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t cond;
    clock_cond_init(&cond);
    pthread_mutex_lock(&mutex);

    int64_t until = clock_mono_ns(c) + 5 * MS;
    while (clock_mono_ns(c) < until)
        clock_wait(c, &cond, &mutex, until);
    clock_wait(c, &cond, &mutex, clock_mono_ns(c)); /* already due */
    clock_wait(c, &cond, &mutex, 0);
    clock_wait(c, &cond, &mutex, INT64_MIN);

    pthread_mutex_unlock(&mutex);
    pthread_cond_destroy(&cond);
}

TEST(virtual_clock_moves_only_when_told_to)
{
    AUTO(virtual_clock) vc = virtual_clock_new(1000000);
    const struct clock *c = virtual_clock_port(vc);
    int64_t start = clock_mono_ns(c);
    EXPECT_EQ(clock_wall_us(c), 1000000);
    virtual_clock_advance(vc, 1500);
    EXPECT_EQ(clock_mono_ns(c), start + 1500);
    EXPECT_EQ(clock_wall_us(c), 1000001);
    virtual_clock_advance(vc, 500); /* fractions of a microsecond add up */
    EXPECT_EQ(clock_wall_us(c), 1000002);
    virtual_clock_advance(vc, 0);
    EXPECT_EQ(clock_mono_ns(c), start + 2000);
}

TEST(virtual_clock_jump_moves_the_wall_in_both_directions_and_nothing_else)
{
    AUTO(virtual_clock) vc = virtual_clock_new(5000000);
    const struct clock *c = virtual_clock_port(vc);
    virtual_clock_advance(vc, 7 * MS);
    int64_t mono = clock_mono_ns(c);
    virtual_clock_jump(vc, 42);
    EXPECT_EQ(clock_wall_us(c), 42);
    EXPECT_EQ(clock_mono_ns(c), mono);
    virtual_clock_advance(vc, 1000);
    EXPECT_EQ(clock_wall_us(c), 43);
    virtual_clock_jump(vc, 9000000);
    EXPECT_EQ(clock_wall_us(c), 9000000);
}

struct sleeper {
    const struct clock *clock;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    pthread_t thread;
    int64_t until_ns;
    bool stop;               /* guarded by mutex */
    _Atomic int64_t woke_ns; /* -1 while waiting */
};

static void *sleeper_run(void *arg)
{
    struct sleeper *s = arg;
    pthread_mutex_lock(&s->mutex);
    while (!s->stop && clock_mono_ns(s->clock) < s->until_ns)
        clock_wait(s->clock, &s->cond, &s->mutex, s->until_ns);
    pthread_mutex_unlock(&s->mutex);
    s->woke_ns = clock_mono_ns(s->clock);
    return NULL;
}

TEST(real_clock_wait_without_a_limit_ends_on_a_signal)
{
    struct sleeper s = { .clock = clock_real(), .until_ns = INT64_MAX };
    pthread_mutex_init(&s.mutex, NULL);
    clock_cond_init(&s.cond);
    pthread_create(&s.thread, NULL, sleeper_run, &s);
    sched_yield(); /* whether it waits already or not, it must end */
    pthread_mutex_lock(&s.mutex);
    s.stop = true;
    pthread_cond_signal(&s.cond);
    pthread_mutex_unlock(&s.mutex);
    pthread_join(s.thread, NULL);
    pthread_mutex_destroy(&s.mutex);
    pthread_cond_destroy(&s.cond);
}

/* Returns when it is waiting; its moment is before that of all the others. */
static void sleeper_start(struct sleeper *s, struct virtual_clock *vc, int64_t until_ns)
{
    *s = (struct sleeper){ .clock = virtual_clock_port(vc), .until_ns = until_ns, .woke_ns = -1 };
    pthread_mutex_init(&s->mutex, NULL);
    clock_cond_init(&s->cond);
    pthread_create(&s->thread, NULL, sleeper_run, s);
    while (virtual_clock_next(vc) != until_ns)
        sched_yield();
}

static void sleeper_join(struct sleeper *s)
{
    pthread_join(s->thread, NULL);
    pthread_mutex_destroy(&s->mutex);
    pthread_cond_destroy(&s->cond);
}

TEST(virtual_clock_wakes_each_waiter_when_its_moment_comes_and_knows_the_next_one)
{
    AUTO(virtual_clock) vc = virtual_clock_new(0);
    struct sleeper s[3];
    EXPECT_EQ(virtual_clock_next(vc), INT64_MAX);
    for (int i = 2; i >= 0; i--)
        sleeper_start(&s[i], vc, (i + 1) * (10 * MS));
    virtual_clock_advance(vc, 10 * MS - 1);
    EXPECT_EQ(virtual_clock_next(vc), 10 * MS);
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(s[i].woke_ns, -1);
        virtual_clock_advance(vc, virtual_clock_next(vc) - clock_mono_ns(s[i].clock));
        EXPECT_EQ(virtual_clock_next(vc), i < 2 ? s[i + 1].until_ns : INT64_MAX);
        sleeper_join(&s[i]);
        EXPECT_EQ(s[i].woke_ns, (i + 1) * (10 * MS));
    }
}

TEST(virtual_clock_advancing_far_wakes_everybody_on_the_way)
{
    AUTO(virtual_clock) vc = virtual_clock_new(0);
    struct sleeper s[3];
    for (int i = 2; i >= 0; i--)
        sleeper_start(&s[i], vc, (i + 1) * (10 * MS));
    virtual_clock_advance(vc, 25 * MS);
    EXPECT_EQ(virtual_clock_next(vc), 30 * MS);
    sleeper_join(&s[0]);
    sleeper_join(&s[1]);
    EXPECT_EQ(s[2].woke_ns, -1);
    virtual_clock_advance(vc, 5 * MS);
    sleeper_join(&s[2]);
}

TEST(virtual_clock_wait_ends_on_a_signal_and_is_forgotten)
{
    AUTO(virtual_clock) vc = virtual_clock_new(0);
    struct sleeper s;
    sleeper_start(&s, vc, 10 * MS);
    pthread_mutex_lock(&s.mutex);
    s.stop = true;
    pthread_cond_signal(&s.cond);
    pthread_mutex_unlock(&s.mutex);
    sleeper_join(&s);
    EXPECT_EQ(s.woke_ns, 0);
    EXPECT_EQ(virtual_clock_next(vc), INT64_MAX);
}

struct ticker {
    const struct clock *clock;
    int64_t step_ns;
    int wake_count;
    atomic_int *running;
};

/* Its own mutex and condition variable, gone as soon as it has finished. */
static void *ticker_run(void *arg)
{
    struct ticker *t = arg;
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t cond;
    clock_cond_init(&cond);
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < 500; i++) {
        int64_t until = clock_mono_ns(t->clock) + t->step_ns;
        while (clock_mono_ns(t->clock) < until)
            clock_wait(t->clock, &cond, &mutex, until);
        t->wake_count++;
    }
    pthread_mutex_unlock(&mutex);
    pthread_mutex_destroy(&mutex);
    pthread_cond_destroy(&cond);
    atomic_fetch_sub(t->running, 1);
    return NULL;
}

TEST(virtual_clock_loses_no_wake_up_while_threads_come_and_go)
{
    AUTO(virtual_clock) vc = virtual_clock_new(0);
    atomic_int running = 4;
    struct ticker tickers[4];
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        tickers[i] = (struct ticker){ virtual_clock_port(vc), 1 + i * 3, 0, &running };
        pthread_create(&threads[i], NULL, ticker_run, &tickers[i]);
    }
    while (atomic_load(&running) > 0) {
        int64_t next = virtual_clock_next(vc);
        int64_t now = clock_mono_ns(virtual_clock_port(vc));
        if (next == INT64_MAX)
            sched_yield();
        else
            virtual_clock_advance(vc, next > now ? next - now : 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        EXPECT_EQ(tickers[i].wake_count, 500);
    }
}

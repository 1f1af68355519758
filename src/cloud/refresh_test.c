#include "cloud/refresh.h"

#include "cloud/reservations.h"
#include "cloud/unavailable.h"
#include "support/test.h"

#include <sched.h>

#define SECOND_NS ((int64_t)1000000000)
#define HOUR_NS (3600 * SECOND_NS)

/* A source whose data is a number that the test sets. */
struct fake_source {
    _Atomic uint64_t data;
    _Atomic int fetches;
    _Atomic bool failing;
};

static int fake_fetch(void *ctx, uint64_t *digest, struct err *err)
{
    struct fake_source *s = ctx;
    atomic_fetch_add(&s->fetches, 1);
    if (atomic_load(&s->failing))
        return err_set(err, ERR_UNAVAILABLE, "no answer");
    *digest = atomic_load(&s->data);
    return 0;
}

struct fixture {
    struct virtual_clock *time;
    const struct clock *clock;
    struct generation_counters counters;
    struct unavailable *marks;
    struct reservations *reservations;
    struct fake_source types, spot;
    _Atomic int changes;
    struct refresh *r;
};

static void count_change(void *ctx)
{
    atomic_fetch_add(&((struct fixture *)ctx)->changes, 1);
}

static void fixture_init(struct fixture *f)
{
    *f = (struct fixture){ .time = virtual_clock_new(0) };
    f->clock = virtual_clock_port(f->time);
    f->marks = unavailable_new(f->clock, &f->counters, UNAVAILABLE_TTL_NS);
    f->reservations = reservations_new(f->clock, &f->counters);
    const struct refresh_source sources[] = {
        { GENERATION_TYPES, fake_fetch, &f->types },
        { GENERATION_SPOT, fake_fetch, &f->spot },
    };
    f->r = refresh_new((struct refresh_options){
        .clock = f->clock,
        .counters = &f->counters,
        .sources = sources,
        .source_count = 2,
        .maybe_unavailable = f->marks,
        .maybe_reservations = f->reservations,
        .changed = count_change,
        .changed_ctx = f,
    });
}

static void fixture_done(struct fixture *f)
{
    refresh_free(f->r);
    unavailable_free(f->marks);
    reservations_free(f->reservations);
    virtual_clock_free(f->time);
}
#define FIXTURE(name)                                                                              \
    __attribute__((cleanup(fixture_done))) struct fixture name;                                    \
    fixture_init(&name)

static uint64_t counter(struct fixture *f, enum generation_member m)
{
    struct generation g;
    generation_read(&f->counters, &g);
    return g.member[m];
}

static int64_t now_ns(struct fixture *f)
{
    return clock_mono_ns(f->clock);
}

static void mark(struct fixture *f)
{
    unavailable_mark(f->marks, STR("m5.large"), STR("a"), STR("spot"), STR(""));
}

TEST(refresh_fetches_everything_at_the_start_and_then_every_twelve_hours)
{
    FIXTURE(f);
    struct err err = { 0 };
    EXPECT_OK(refresh_all(f.r, &err), err);
    EXPECT_EQ(counter(&f, GENERATION_TYPES), 1);
    EXPECT_EQ(counter(&f, GENERATION_SPOT), 1);
    EXPECT_EQ(refresh_step(f.r), 12 * HOUR_NS);
    EXPECT_EQ(f.types.fetches, 1);

    virtual_clock_advance(f.time, 12 * HOUR_NS - 1);
    EXPECT_EQ(refresh_step(f.r), 12 * HOUR_NS);
    EXPECT_EQ(f.types.fetches, 1);
    virtual_clock_advance(f.time, 1);
    EXPECT_EQ(refresh_step(f.r), 24 * HOUR_NS);
    EXPECT_EQ(f.types.fetches, 2);
    EXPECT_EQ(f.spot.fetches, 2);
}

TEST(refresh_moves_a_counter_only_when_the_data_is_different)
{
    FIXTURE(f);
    refresh_step(f.r); /* never fetched: due */
    EXPECT_EQ(f.changes, 1);
    virtual_clock_advance(f.time, 12 * HOUR_NS);
    refresh_step(f.r);
    EXPECT_EQ(counter(&f, GENERATION_SPOT), 1);
    EXPECT_EQ(f.changes, 1);
    f.spot.data = 9;
    virtual_clock_advance(f.time, 12 * HOUR_NS);
    refresh_step(f.r);
    EXPECT_EQ(counter(&f, GENERATION_SPOT), 2);
    EXPECT_EQ(counter(&f, GENERATION_TYPES), 1);
    EXPECT_EQ(f.changes, 2);
    f.spot.data = 0; /* as before, and a change all the same */
    virtual_clock_advance(f.time, 12 * HOUR_NS);
    refresh_step(f.r);
    EXPECT_EQ(counter(&f, GENERATION_SPOT), 3);
}

TEST(refresh_tries_a_failing_source_again_with_growing_pauses_and_keeps_the_rest_going)
{
    FIXTURE(f);
    refresh_step(f.r);
    f.types.failing = true;
    f.spot.data = 1;
    virtual_clock_advance(f.time, 12 * HOUR_NS);
    int64_t start_ns = now_ns(&f);
    EXPECT_EQ(refresh_step(f.r), start_ns + REFRESH_RETRY_MIN_NS);
    EXPECT_EQ(counter(&f, GENERATION_TYPES), 1); /* the old data is still the data */
    EXPECT_EQ(counter(&f, GENERATION_SPOT), 2);

    int64_t pause_ns = REFRESH_RETRY_MIN_NS;
    for (int i = 0; i < 12; i++) {
        virtual_clock_advance(f.time, pause_ns);
        pause_ns = pause_ns * 2 > REFRESH_RETRY_MAX_NS ? REFRESH_RETRY_MAX_NS : pause_ns * 2;
        EXPECT_EQ(refresh_step(f.r), now_ns(&f) + pause_ns);
    }
    EXPECT_EQ(pause_ns, REFRESH_RETRY_MAX_NS);
    EXPECT_EQ(f.spot.fetches, 2);

    f.types.failing = false;
    virtual_clock_advance(f.time, pause_ns);
    refresh_step(f.r);
    EXPECT_EQ(counter(&f, GENERATION_TYPES), 1); /* and it is what it was */
    f.types.failing = true;
    virtual_clock_advance(f.time, 12 * HOUR_NS);
    EXPECT_EQ(refresh_step(f.r), now_ns(&f) + REFRESH_RETRY_MIN_NS); /* patience is new again */
}

TEST(refresh_says_which_source_failed_at_the_start_and_still_fetches_the_others)
{
    FIXTURE(f);
    struct err err = { 0 };
    f.types.failing = true;
    EXPECT_ERR(refresh_all(f.r, &err), err, ERR_UNAVAILABLE);
    EXPECT_Z(err.text, "refresh of types: no answer");
    EXPECT_EQ(counter(&f, GENERATION_SPOT), 1);
    EXPECT_EQ(refresh_step(f.r), REFRESH_RETRY_MIN_NS);
}

TEST(refresh_delivers_the_ends_of_marks_at_their_moment)
{
    FIXTURE(f);
    refresh_step(f.r);
    mark(&f);
    EXPECT_EQ(refresh_step(f.r), UNAVAILABLE_TTL_NS);
    EXPECT_EQ(f.changes, 1); /* that it began was no news of the timer's */
    virtual_clock_advance(f.time, UNAVAILABLE_TTL_NS);
    EXPECT_EQ(refresh_step(f.r), 12 * HOUR_NS);
    EXPECT_EQ(counter(&f, GENERATION_UNAVAILABLE), 2);
    EXPECT_EQ(f.changes, 2);

    reservations_sync(f.reservations, STR("cr-1"), 1);
    reservations_expire_at(f.reservations, STR("cr-1"), HOUR_NS);
    EXPECT_EQ(refresh_step(f.r), HOUR_NS);
    virtual_clock_advance(f.time, HOUR_NS - UNAVAILABLE_TTL_NS);
    refresh_step(f.r);
    EXPECT_EQ(counter(&f, GENERATION_RESERVATIONS), 2);
    EXPECT_EQ(f.changes, 3);
}

TEST(refresh_tells_of_an_end_that_a_reader_noticed_first)
{
    FIXTURE(f);
    refresh_step(f.r);
    mark(&f);
    virtual_clock_advance(f.time, UNAVAILABLE_TTL_NS);
    unavailable_settle(f.marks);
    EXPECT_EQ(f.changes, 1);
    refresh_step(f.r);
    EXPECT_EQ(f.changes, 2);
    refresh_step(f.r);
    EXPECT_EQ(f.changes, 2);
}

/* --- on threads, in virtual time --- */

static void wait_until(const _Atomic int *number, int want)
{
    while (atomic_load(number) < want)
        sched_yield();
}

static void wait_for_next(struct fixture *f, int64_t want_ns)
{
    while (virtual_clock_next(f->time) != want_ns)
        sched_yield();
}

TEST(refresh_thread_waits_for_the_next_moment_and_is_woken_by_a_mark)
{
    FIXTURE(f);
    struct err err = { 0 };
    EXPECT_OK(refresh_start(f.r, &err), err);
    wait_until(&f.changes, 1);
    wait_for_next(&f, 12 * HOUR_NS);
    mark(&f); /* ends earlier than anything waited for */
    wait_for_next(&f, UNAVAILABLE_TTL_NS);
    virtual_clock_advance(f.time, UNAVAILABLE_TTL_NS);
    wait_until(&f.changes, 2);
    EXPECT_EQ(counter(&f, GENERATION_UNAVAILABLE), 2);
    wait_for_next(&f, 12 * HOUR_NS);
    f.spot.data = 5;
    virtual_clock_advance(f.time, 12 * HOUR_NS - UNAVAILABLE_TTL_NS);
    wait_until(&f.changes, 3);
    EXPECT_EQ(counter(&f, GENERATION_SPOT), 2);
}

/* A source that hangs until it is told to go on. */
struct gate {
    _Atomic bool open;
    _Atomic int entered;
};

static int gated_fetch(void *ctx, uint64_t *digest, struct err *err KV_UNUSED)
{
    struct gate *g = ctx;
    atomic_fetch_add(&g->entered, 1);
    while (!atomic_load(&g->open))
        sched_yield();
    *digest = 1;
    return 0;
}

TEST(refresh_a_fetch_that_hangs_does_not_keep_marks_from_ending)
{
    struct gate gate = { 0 }; /* outlives the fixture, whose thread looks at it */
    FIXTURE(f);
    struct err err = { 0 };
    const struct refresh_source source = { GENERATION_TYPES, gated_fetch, &gate };
    refresh_free(f.r);
    f.r = refresh_new((struct refresh_options){ .clock = f.clock,
                                                .counters = &f.counters,
                                                .sources = &source,
                                                .source_count = 1,
                                                .maybe_unavailable = f.marks,
                                                .changed = count_change,
                                                .changed_ctx = &f });
    EXPECT_OK(refresh_start(f.r, &err), err);
    wait_until(&gate.entered, 1);
    mark(&f);
    wait_for_next(&f, UNAVAILABLE_TTL_NS);
    virtual_clock_advance(f.time, UNAVAILABLE_TTL_NS);
    wait_until(&f.changes, 1);
    EXPECT_EQ(counter(&f, GENERATION_UNAVAILABLE), 2);
    atomic_store(&gate.open, true);
}

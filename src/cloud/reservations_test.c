#include "cloud/reservations.h"

#include "cloud/settle_testing.h"
#include "support/test.h"

#define MINUTE_NS ((int64_t)60 * 1000000000)
#define ID STR("cr-1")

struct fixture {
    struct virtual_clock *clock;
    struct generation_counters counters;
    struct reservations *r;
    int wakes;
};

static void count_wake(void *ctx)
{
    ((struct fixture *)ctx)->wakes++;
}

static void fixture_init(struct fixture *f)
{
    *f = (struct fixture){ .clock = virtual_clock_new(0) };
    f->r = reservations_new(virtual_clock_port(f->clock), &f->counters);
    reservations_on_earlier(f->r, count_wake, f);
}

static void fixture_done(struct fixture *f)
{
    reservations_free(f->r);
    virtual_clock_free(f->clock);
}
#define FIXTURE(name)                                                                              \
    __attribute__((cleanup(fixture_done))) struct fixture name;                                    \
    fixture_init(&name)

static uint64_t generation(struct fixture *f)
{
    struct generation g;
    reservations_settle(f->r);
    generation_read(&f->counters, &g);
    return g.member[GENERATION_RESERVATIONS];
}

TEST(reservations_count_down_with_launches_and_up_with_terminations)
{
    FIXTURE(f);
    reservations_sync(f.r, ID, 2);
    EXPECT_EQ(generation(&f), 1);
    reservations_launched(f.r, ID);
    reservations_launched(f.r, ID);
    EXPECT_EQ(reservations_available(f.r, ID), 0);
    EXPECT_EQ(generation(&f), 3);
    reservations_launched(f.r, ID); /* never below zero */
    EXPECT_EQ(reservations_available(f.r, ID), 0);
    EXPECT_EQ(generation(&f), 3);
    reservations_terminated(f.r, ID);
    EXPECT_EQ(reservations_available(f.r, ID), 1);
    EXPECT_EQ(generation(&f), 4);
    reservations_exhausted(f.r, ID);
    EXPECT_EQ(reservations_available(f.r, ID), 0);
    EXPECT_EQ(generation(&f), 5);
}

TEST(reservations_confirming_what_is_known_changes_nothing)
{
    FIXTURE(f);
    reservations_sync(f.r, ID, 2);
    reservations_sync(f.r, ID, 2);
    reservations_expire_at(f.r, ID, MINUTE_NS);
    reservations_expire_at(f.r, ID, MINUTE_NS);
    reservations_expire_at(f.r, ID, 2 * MINUTE_NS);
    EXPECT_EQ(generation(&f), 1);
    reservations_exhausted(f.r, ID);
    reservations_exhausted(f.r, ID);
    EXPECT_EQ(generation(&f), 2);
    reservations_sync(f.r, STR("cr-2"), -1); /* nonsense is none, and unknown was none */
    EXPECT_EQ(reservations_available(f.r, STR("cr-2")), 0);
    EXPECT_EQ(generation(&f), 2);
}

TEST(reservations_of_one_that_the_cloud_never_mentioned_nothing_is_known)
{
    FIXTURE(f);
    reservations_launched(f.r, ID);
    reservations_terminated(f.r, ID);
    reservations_exhausted(f.r, ID);
    EXPECT_EQ(reservations_available(f.r, ID), 0);
    EXPECT_FALSE(reservations_expiring(f.r, ID));
    EXPECT_EQ(generation(&f), 0);
    EXPECT_EQ(reservations_next_ns(f.r), INT64_MAX);
}

TEST(reservations_a_count_that_nobody_confirms_for_a_day_is_forgotten)
{
    FIXTURE(f);
    reservations_sync(f.r, ID, 2);
    virtual_clock_advance(f.clock, RESERVATION_TTL_NS - MINUTE_NS);
    reservations_sync(f.r, ID, 2);
    virtual_clock_advance(f.clock, MINUTE_NS); /* a day after the first, but it was confirmed */
    EXPECT_EQ(generation(&f), 1);
    EXPECT_EQ(reservations_available(f.r, ID), 2);
    EXPECT_EQ(reservations_next_ns(f.r), 2 * RESERVATION_TTL_NS - MINUTE_NS);

    virtual_clock_advance(f.clock, RESERVATION_TTL_NS - MINUTE_NS);
    EXPECT_EQ(reservations_available(f.r, ID), 0); /* by the clock, before anybody settles */
    EXPECT_EQ(generation(&f), 2);
    EXPECT_EQ(reservations_ended(f.r), 1);
    EXPECT_EQ(reservations_next_ns(f.r), INT64_MAX);
    reservations_terminated(f.r, ID);
    EXPECT_EQ(reservations_available(f.r, ID), 0);
}

TEST(reservations_a_capacity_block_begins_to_expire_at_its_moment)
{
    FIXTURE(f);
    reservations_sync(f.r, ID, 2);
    reservations_expire_at(f.r, ID, 10 * MINUTE_NS);
    EXPECT_EQ(reservations_next_ns(f.r), 10 * MINUTE_NS);
    virtual_clock_advance(f.clock, 10 * MINUTE_NS - 1);
    EXPECT_FALSE(reservations_expiring(f.r, ID));
    EXPECT_EQ(generation(&f), 1);
    virtual_clock_advance(f.clock, 1);
    EXPECT_TRUE(reservations_expiring(f.r, ID));
    EXPECT_EQ(generation(&f), 2);
    EXPECT_EQ(generation(&f), 2);
    EXPECT_EQ(reservations_ended(f.r), 1);
    EXPECT_EQ(reservations_available(f.r, ID), 2);

    reservations_expire_at(f.r, ID, 60 * MINUTE_NS); /* it was extended */
    EXPECT_FALSE(reservations_expiring(f.r, ID));
    EXPECT_EQ(generation(&f), 3);
    EXPECT_EQ(reservations_next_ns(f.r), 60 * MINUTE_NS);
    reservations_expire_at(f.r, ID, 5 * MINUTE_NS); /* and cut short */
    EXPECT_TRUE(reservations_expiring(f.r, ID));
    EXPECT_EQ(generation(&f), 4);
    virtual_clock_advance(f.clock, 60 * MINUTE_NS);
    EXPECT_EQ(generation(&f), 4);
}

TEST(reservations_a_change_of_what_a_class_selects_is_a_change)
{
    FIXTURE(f);
    reservations_class(f.r, STR("a"), 7);
    reservations_class(f.r, STR("a"), 7);
    EXPECT_EQ(generation(&f), 1);
    reservations_class(f.r, STR("b"), 7);
    reservations_class(f.r, STR("a"), 8);
    EXPECT_EQ(generation(&f), 3);
    reservations_forget_class(f.r, STR("a"));
    reservations_forget_class(f.r, STR("never"));
    EXPECT_EQ(generation(&f), 3);
    reservations_class(f.r, STR("a"), 8);
    EXPECT_EQ(generation(&f), 4);
}

TEST(reservations_wake_the_timer_for_an_earlier_moment_only)
{
    FIXTURE(f);
    reservations_sync(f.r, ID, 1);
    EXPECT_EQ(f.wakes, 1);
    reservations_sync(f.r, ID, 2);
    EXPECT_EQ(f.wakes, 1);
    reservations_expire_at(f.r, ID, MINUTE_NS);
    EXPECT_EQ(f.wakes, 2);
    reservations_expire_at(f.r, STR("cr-2"), 2 * MINUTE_NS);
    EXPECT_EQ(f.wakes, 2);
}

/* --- many readers --- */

static uint64_t arrange_end(void *ctx)
{
    struct fixture *f = ctx;
    reservations_sync(f->r, ID, 1);
    uint64_t known = generation(f);
    virtual_clock_advance(f->clock, RESERVATION_TTL_NS);
    return known + 1;
}

static uint64_t read_settled(void *ctx)
{
    return generation(ctx);
}

TEST(reservations_no_reader_gets_past_an_end_that_another_is_about_to_count)
{
    FIXTURE(f);
    struct settle_race race = { .arrange = arrange_end, .generation = read_settled, .ctx = &f };
    EXPECT_EQ(settle_race_run(&race), 0);
}

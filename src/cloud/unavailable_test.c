#include "cloud/unavailable.h"

#include "base/rng.h"
#include "cloud/settle_testing.h"
#include "support/test.h"

#include <stdio.h>

#define SECOND_NS ((int64_t)1000000000)
#define TTL_NS UNAVAILABLE_TTL_NS

struct fixture {
    struct virtual_clock *clock;
    struct generation_counters counters;
    struct unavailable *u;
    int wakes;
};

static void count_wake(void *ctx)
{
    ((struct fixture *)ctx)->wakes++;
}

static void fixture_init(struct fixture *f)
{
    *f = (struct fixture){ .clock = virtual_clock_new(0) };
    f->u = unavailable_new(virtual_clock_port(f->clock), &f->counters, TTL_NS);
    unavailable_on_earlier(f->u, count_wake, f);
}

static void fixture_done(struct fixture *f)
{
    unavailable_free(f->u);
    virtual_clock_free(f->clock);
}
#define FIXTURE(name)                                                                              \
    __attribute__((cleanup(fixture_done))) struct fixture name;                                    \
    fixture_init(&name)

static void mark(struct fixture *f, const char *type, const char *zone, const char *capacity_type,
                 const char *scope)
{
    unavailable_mark(f->u, str_of(type), str_of(zone), str_of(capacity_type), str_of(scope));
}

static bool has(struct fixture *f, const char *type, const char *zone, const char *capacity_type,
                const char *scope)
{
    return unavailable_has(f->u, str_of(type), str_of(zone), str_of(capacity_type), str_of(scope));
}

/* The counter as a provider reads it: what has ended is settled first. */
static uint64_t generation(struct fixture *f)
{
    struct generation g;
    unavailable_settle(f->u);
    generation_read(&f->counters, &g);
    return g.member[GENERATION_UNAVAILABLE];
}

TEST(unavailable_a_mark_begins_and_ends_as_one_change_each)
{
    FIXTURE(f);
    EXPECT_EQ(generation(&f), 0);
    EXPECT_FALSE(has(&f, "m5.large", "a", "spot", ""));

    mark(&f, "m5.large", "a", "spot", "");
    EXPECT_EQ(generation(&f), 1);
    EXPECT_TRUE(has(&f, "m5.large", "a", "spot", ""));
    EXPECT_EQ(unavailable_next_ns(f.u), TTL_NS);

    virtual_clock_advance(f.clock, TTL_NS - 1);
    EXPECT_EQ(generation(&f), 1);
    EXPECT_TRUE(has(&f, "m5.large", "a", "spot", ""));

    virtual_clock_advance(f.clock, 1); /* to the nanosecond, and nobody settled before */
    EXPECT_FALSE(has(&f, "m5.large", "a", "spot", ""));
    EXPECT_EQ(unavailable_ended(f.u), 0);
    EXPECT_EQ(generation(&f), 2);
    EXPECT_EQ(generation(&f), 2);
    EXPECT_EQ(unavailable_ended(f.u), 1);
    EXPECT_EQ(unavailable_next_ns(f.u), INT64_MAX);
    EXPECT_EQ(unavailable_count(f.u), 0);
}

TEST(unavailable_a_renewed_mark_lives_on_and_changes_nothing)
{
    FIXTURE(f);
    mark(&f, "m5.large", "a", "spot", "");
    virtual_clock_advance(f.clock, TTL_NS - SECOND_NS);
    mark(&f, "m5.large", "a", "spot", "");
    EXPECT_EQ(unavailable_next_ns(f.u), 2 * TTL_NS - SECOND_NS);
    virtual_clock_advance(f.clock, TTL_NS - 1);
    EXPECT_TRUE(has(&f, "m5.large", "a", "spot", ""));
    EXPECT_EQ(generation(&f), 1);
    virtual_clock_advance(f.clock, 1);
    EXPECT_EQ(generation(&f), 2);
}

TEST(unavailable_marking_again_what_has_just_ended_is_a_change)
{
    FIXTURE(f);
    mark(&f, "m5.large", "a", "spot", "");
    virtual_clock_advance(f.clock, TTL_NS); /* a reader may have seen it end; nobody settled */
    mark(&f, "m5.large", "a", "spot", "");
    EXPECT_EQ(generation(&f), 3);
    EXPECT_EQ(unavailable_ended(f.u), 1);
}

TEST(unavailable_marks_end_in_their_own_time_each_a_change)
{
    FIXTURE(f);
    mark(&f, "a", "z", "spot", "");
    virtual_clock_advance(f.clock, SECOND_NS);
    mark(&f, "b", "z", "spot", "");
    virtual_clock_advance(f.clock, SECOND_NS);
    mark(&f, "c", "z", "spot", "");
    mark(&f, "a", "z", "spot", ""); /* now the last */
    EXPECT_EQ(unavailable_next_ns(f.u), TTL_NS + SECOND_NS);
    virtual_clock_advance(f.clock, TTL_NS - SECOND_NS);
    EXPECT_EQ(generation(&f), 4);
    EXPECT_TRUE(has(&f, "a", "z", "spot", ""));
    EXPECT_FALSE(has(&f, "b", "z", "spot", ""));
    EXPECT_EQ(unavailable_count(f.u), 2);
    virtual_clock_advance(f.clock, SECOND_NS);
    EXPECT_EQ(generation(&f), 5); /* two at once are one change */
    EXPECT_EQ(unavailable_ended(f.u), 3);
}

TEST(unavailable_a_mark_for_any_covers_all_of_it)
{
    FIXTURE(f);
    mark(&f, "", "", "spot", ""); /* a capacity type */
    EXPECT_TRUE(has(&f, "m5.large", "a", "spot", ""));
    EXPECT_TRUE(has(&f, "m5.large", "a", "spot", "pg-1/2"));
    EXPECT_FALSE(has(&f, "m5.large", "a", "on-demand", ""));

    mark(&f, "", "b", "", ""); /* a zone */
    EXPECT_TRUE(has(&f, "m5.large", "b", "on-demand", ""));
    EXPECT_TRUE(has(&f, "m5.large", "b", "on-demand", "pg-1/2"));
    EXPECT_FALSE(has(&f, "m5.large", "a", "on-demand", ""));

    mark(&f, "", "", "", "subnet-1");
    EXPECT_TRUE(has(&f, "", "", "", "subnet-1"));
    EXPECT_TRUE(has(&f, "m5.large", "a", "on-demand", "subnet-1"));
    EXPECT_FALSE(has(&f, "", "", "", "subnet-2"));
    EXPECT_FALSE(has(&f, "m5.large", "a", "on-demand", ""));
}

TEST(unavailable_a_scope_is_apart_from_the_others_and_from_none)
{
    FIXTURE(f);
    mark(&f, "m5.large", "a", "spot", "pg-1/2");
    EXPECT_TRUE(has(&f, "m5.large", "a", "spot", "pg-1/2"));
    EXPECT_FALSE(has(&f, "m5.large", "a", "spot", "pg-1/3"));
    EXPECT_FALSE(has(&f, "m5.large", "a", "spot", ""));
    mark(&f, "c5.large", "a", "spot", "");
    EXPECT_FALSE(has(&f, "c5.large", "a", "spot", "pg-1/2"));
}

TEST(unavailable_parts_do_not_run_into_one_another)
{
    FIXTURE(f);
    mark(&f, "ab", "c", "d", "");
    EXPECT_FALSE(has(&f, "a", "bc", "d", ""));
    EXPECT_FALSE(has(&f, "ab", "cd", "", ""));
}

TEST(unavailable_wakes_the_timer_only_when_there_is_something_earlier_to_wait_for)
{
    FIXTURE(f);
    mark(&f, "a", "z", "spot", "");
    EXPECT_EQ(f.wakes, 1);
    mark(&f, "b", "z", "spot", "");
    mark(&f, "b", "z", "spot", "");
    EXPECT_EQ(f.wakes, 1);
    virtual_clock_advance(f.clock, TTL_NS);
    EXPECT_EQ(generation(&f), 3);
    mark(&f, "a", "z", "spot", "");
    EXPECT_EQ(f.wakes, 2);
}

/* --- against a list that is searched from end to end --- */

#define NAMES 3

struct slow_mark {
    const char *parts[4];
    int64_t until_ns;
};

static bool slow_has(const struct slow_mark *marks, int count, const char *const parts[4],
                     int64_t now_ns)
{
    for (int i = 0; i < count; i++) {
        const char *const *m = marks[i].parts;
        bool any = false, match = marks[i].until_ns > now_ns;
        for (int p = 0; p < 3; p++) {
            any |= !m[p][0];
            match &= !m[p][0] || strcmp(m[p], parts[p]) == 0;
        }
        match &= strcmp(m[3], parts[3]) == 0 || (any && !m[3][0]);
        if (match)
            return true;
    }
    return false;
}

TEST(unavailable_agrees_with_a_slow_list_over_random_marks)
{
    static const char *const names[NAMES] = { "", "x", "y" };
    enum { STEPS = 4000 };
    const uint64_t seed = 7;
    printf("# seed %llu\n", (unsigned long long)seed);
    struct rng rng;
    rng_init(&rng, seed);
    FIXTURE(f);
    struct slow_mark *marks = kv_calloc(STEPS, sizeof *marks);
    int count = 0;
    for (int step = 0; step < STEPS; step++) {
        int64_t now_ns = clock_mono_ns(virtual_clock_port(f.clock));
        const char *parts[4];
        for (int p = 0; p < 4; p++)
            parts[p] = names[rng_below(&rng, NAMES)];
        if (rng_below(&rng, 8) == 0) {
            mark(&f, parts[0], parts[1], parts[2], parts[3]);
            marks[count++] =
                (struct slow_mark){ { parts[0], parts[1], parts[2], parts[3] }, now_ns + TTL_NS };
        } else {
            EXPECT_EQ(has(&f, parts[0], parts[1], parts[2], parts[3]),
                      slow_has(marks, count, parts, now_ns));
        }
        if (rng_below(&rng, 16) == 0)
            virtual_clock_advance(f.clock, (int64_t)rng_below(&rng, (uint64_t)TTL_NS));
        if (rng_below(&rng, 16) == 0)
            generation(&f);
    }
    free(marks);
}

/* --- many readers --- */

static uint64_t arrange_end(void *ctx)
{
    struct fixture *f = ctx;
    mark(f, "t", "a", "spot", "");
    uint64_t marked = generation(f);
    virtual_clock_advance(f->clock, TTL_NS);
    return marked + 1;
}

static uint64_t read_settled(void *ctx)
{
    return generation(ctx);
}

TEST(unavailable_no_reader_gets_past_an_end_that_another_is_about_to_count)
{
    FIXTURE(f);
    struct settle_race race = { .arrange = arrange_end, .generation = read_settled, .ctx = &f };
    EXPECT_EQ(settle_race_run(&race), 0);
}

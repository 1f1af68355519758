#include "node/backoff.h"
#include "support/test.h"

#include <stdio.h>

#define S ((int64_t)1000000000)

static void backoff_cleanup(struct backoff *b)
{
    backoff_done(b);
}
#define AUTO_BACKOFF __attribute__((cleanup(backoff_cleanup))) struct backoff

TEST(the_first_restart_is_immediate_and_the_next_wait_10_20_40_up_to_300_seconds)
{
    static const int64_t want_s[] = { 0, 10, 20, 40, 80, 160, 300, 300, 300 };
    AUTO_BACKOFF b = { 0 };
    int64_t now = 1000 * S;
    for (size_t i = 0; i < KV_COUNT_OF(want_s); i++) {
        now += S; /* it ran for a second and failed */
        EXPECT_EQ(backoff_delay(&b, STR("app")), want_s[i] * S);
        EXPECT_EQ(backoff_left(&b, STR("app"), now, now), want_s[i] * S);
        int64_t finished = now;
        now += want_s[i] * S;
        if (want_s[i])
            EXPECT_EQ(backoff_left(&b, STR("app"), finished, now - 1), 1);
        EXPECT_EQ(backoff_left(&b, STR("app"), finished, now), 0);
        backoff_next(&b, STR("app"), now);
        EXPECT_EQ(backoff_last(&b, STR("app")), now);
    }
}

TEST(the_wait_is_counted_from_the_end_and_not_from_the_start)
{
    AUTO_BACKOFF b = { 0 };
    backoff_next(&b, STR("app"), 100 * S);
    EXPECT_EQ(backoff_left(&b, STR("app"), 400 * S, 400 * S), 10 * S);
    EXPECT_EQ(backoff_left(&b, STR("app"), 400 * S, 403 * S), 7 * S);
}

TEST(a_container_that_ran_longer_than_ten_minutes_starts_over)
{
    AUTO_BACKOFF b = { 0 };
    backoff_next(&b, STR("app"), 100 * S);
    backoff_next(&b, STR("app"), 200 * S);
    EXPECT_EQ(backoff_left(&b, STR("app"), 800 * S, 800 * S), 20 * S); /* ten minutes: not longer */
    EXPECT_EQ(backoff_left(&b, STR("app"), 800 * S + 1, 801 * S), 0);
    EXPECT_EQ(backoff_delay(&b, STR("app")), 0);
    backoff_next(&b, STR("app"), 801 * S);
    EXPECT_EQ(backoff_delay(&b, STR("app")), 10 * S);
}

TEST(a_long_wait_is_not_a_long_run)
{
    AUTO_BACKOFF b = { 0 };
    for (int i = 0; i < 7; i++)
        backoff_next(&b, STR("app"), 0);
    /* It ran 400 s, and then 300 s were waited: 700 s since the last try, and it goes on doubling. */
    EXPECT_EQ(backoff_left(&b, STR("app"), 400 * S, 700 * S), 0);
    EXPECT_EQ(backoff_delay(&b, STR("app")), 300 * S);
}

TEST(keys_do_not_disturb_each_other_and_can_be_reset)
{
    AUTO_BACKOFF b = { 0 };
    backoff_next(&b, STR("app"), 0);
    backoff_next(&b, STR("app"), 0);
    backoff_next(&b, STR("log"), 0);
    EXPECT_EQ(backoff_delay(&b, STR("app")), 20 * S);
    EXPECT_EQ(backoff_delay(&b, STR("log")), 10 * S);
    backoff_reset(&b, STR("app"));
    backoff_reset(&b, STR("never heard of"));
    EXPECT_EQ(backoff_delay(&b, STR("app")), 0);
    EXPECT_EQ(backoff_last(&b, STR("app")), 0);
    EXPECT_EQ(backoff_left(&b, STR("app"), 0, 0), 0);
    EXPECT_EQ(backoff_delay(&b, STR("log")), 10 * S);
}

TEST(delays_can_be_chosen_and_the_first_is_never_above_the_last)
{
    AUTO_BACKOFF fast = { .initial_ns = S, .max_ns = 3 * S };
    AUTO_BACKOFF odd = { .max_ns = 2 * S };
    static const int64_t want_s[] = { 1, 2, 3, 3 };
    for (size_t i = 0; i < KV_COUNT_OF(want_s); i++) {
        backoff_next(&fast, STR("app"), 0);
        backoff_next(&odd, STR("app"), 0);
        EXPECT_EQ(backoff_delay(&fast, STR("app")), want_s[i] * S);
        EXPECT_EQ(backoff_delay(&odd, STR("app")), 2 * S);
    }
}

TEST(a_clock_that_was_set_back_makes_nobody_wait_longer_than_the_delay)
{
    AUTO_BACKOFF b = { 0 };
    backoff_next(&b, STR("app"), 1000 * S);
    EXPECT_EQ(backoff_left(&b, STR("app"), 5000 * S, 990 * S), 10 * S);
    EXPECT_EQ(backoff_left(&b, STR("app"), INT64_MAX, 990 * S), 10 * S);
    EXPECT_EQ(backoff_left(&b, STR("app"), INT64_MIN, 990 * S), 0);
    EXPECT_EQ(backoff_delay(&b, STR("app")), 10 * S);
}

TEST(keys_of_long_ago_are_forgotten_so_the_table_stays_small)
{
    AUTO_BACKOFF b = { 0 };
    for (int i = 0; i < 10000; i++) {
        char key[32];
        size_t len = (size_t)snprintf(key, sizeof key, "image-%d", i);
        backoff_next(&b, (struct str){ key, len }, i * 30 * S);
        EXPECT_TRUE(b.entries.live_count <= 31); /* 900 s of tries, one each 30 s */
        EXPECT_TRUE(b.entries.slot_cap <= 256);
    }
    EXPECT_EQ(backoff_delay(&b, STR("image-0")), 0);
    EXPECT_EQ(backoff_delay(&b, STR("image-9999")), 10 * S);
}

TEST(an_end_before_its_own_start_is_counted_from_the_start)
{
    struct backoff b = { 0 };
    backoff_next(&b, STR("c"), 1000 * S);
    EXPECT_EQ(backoff_left(&b, STR("c"), 5 * S, 1001 * S), 9 * S);
    backoff_done(&b);
}

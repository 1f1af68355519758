#include "net/rate_limit.h"

#include "support/test.h"

#define SECOND ((int64_t)1000000000)

TEST(a_burst_goes_at_once_and_the_rest_at_the_rate)
{
    AUTO(virtual_clock) vc = virtual_clock_new(0);
    AUTO(rate_limit) limit = rate_limit_new(virtual_clock_port(vc), 10, 3);
    for (int i = 0; i < 3; i++)
        EXPECT_EQ(rate_limit_take(limit), 0);
    for (int i = 1; i <= 5; i++)
        EXPECT_EQ(rate_limit_take(limit), i * SECOND / 10);
}

TEST(the_bucket_fills_with_time_and_not_beyond_its_size)
{
    AUTO(virtual_clock) vc = virtual_clock_new(0);
    AUTO(rate_limit) limit = rate_limit_new(virtual_clock_port(vc), 10, 3);
    for (int round = 0; round < 3; round++) {
        virtual_clock_advance(vc, 1000 * SECOND);
        for (int i = 0; i < 3; i++)
            EXPECT_EQ(rate_limit_take(limit), 0);
        EXPECT_EQ(rate_limit_take(limit), SECOND / 10);
    }
    virtual_clock_advance(vc, SECOND / 5); /* one pays the debt, one is there */
    EXPECT_EQ(rate_limit_take(limit), 0);
    EXPECT_EQ(rate_limit_take(limit), SECOND / 10);
}

TEST(no_second_has_more_than_burst_and_rate_together)
{
    AUTO(virtual_clock) vc = virtual_clock_new(0);
    AUTO(rate_limit) limit = rate_limit_new(virtual_clock_port(vc), 200, 300);
    int64_t now_ns = 0, starts[2000];
    for (size_t i = 0; i < KV_COUNT_OF(starts); i++) {
        starts[i] = now_ns + rate_limit_take(limit);
        if (i % 7 == 0) {
            virtual_clock_advance(vc, 3000000);
            now_ns += 3000000;
        }
    }
    for (size_t i = 0; i + 500 < KV_COUNT_OF(starts); i++)
        EXPECT_TRUE(starts[i + 500] - starts[i] >= SECOND);
    for (size_t i = 0; i + 1 < KV_COUNT_OF(starts); i++)
        EXPECT_TRUE(starts[i] <= starts[i + 1]);
}

TEST(what_is_given_back_is_there_for_the_next)
{
    AUTO(virtual_clock) vc = virtual_clock_new(0);
    AUTO(rate_limit) limit = rate_limit_new(virtual_clock_port(vc), 1, 1);
    EXPECT_EQ(rate_limit_take(limit), 0);
    EXPECT_EQ(rate_limit_take(limit), SECOND);
    EXPECT_EQ(rate_limit_take(limit), 2 * SECOND);
    rate_limit_give_back(limit);
    EXPECT_EQ(rate_limit_take(limit), 2 * SECOND);
}

TEST(odd_limits_have_a_meaning)
{
    static const struct {
        double qps;
        uint32_t burst;
        int64_t second_wait_ns;
    } rows[] = {
        { 0, 1, 0 },          { -1, 1, 0 },        { 1e12, 1, 0 },
        { 5, 0, SECOND / 5 }, { 0.0 / 0.0, 1, 0 }, { 1e-300, 1, 3600 * SECOND },
        { 3, UINT32_MAX, 0 },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        AUTO(virtual_clock) vc = virtual_clock_new(0);
        AUTO(rate_limit) limit = rate_limit_new(virtual_clock_port(vc), rows[i].qps, rows[i].burst);
        EXPECT_EQ(rate_limit_take(limit), 0);
        EXPECT_EQ(rate_limit_take(limit), rows[i].second_wait_ns);
        rate_limit_give_back(limit);
    }
}

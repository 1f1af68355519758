#include "sim/timers.h"

#include "base/rng.h"
#include "support/test.h"

struct thing {
    int number;
    struct timer timer;
};

static int take_number(struct timers *t, int64_t now_ns)
{
    struct timer *timer = timers_take(t, now_ns);
    return timer ? TIMER_OWNER(timer, struct thing, timer)->number : -1;
}

TEST(timers_come_by_time_and_equal_ones_in_the_order_they_were_set)
{
    struct timers t = { 0 };
    struct thing a = { .number = 1 }, b = { .number = 2 }, c = { .number = 3 };

    EXPECT_TRUE(timers_next_ns(&t) == INT64_MAX);
    timers_set(&t, &c.timer, 20);
    timers_set(&t, &a.timer, 20);
    timers_set(&t, &b.timer, 10);
    EXPECT_EQ(timers_next_ns(&t), 10);
    EXPECT_EQ(take_number(&t, 9), -1);
    EXPECT_EQ(take_number(&t, 30), 2);
    EXPECT_EQ(take_number(&t, 30), 3);
    EXPECT_EQ(take_number(&t, 30), 1);
    EXPECT_EQ(take_number(&t, 30), -1);
    timers_done(&t);
}

TEST(timers_that_are_moved_and_cleared_at_random_come_as_a_sorted_list_says)
{
    enum { COUNT = 200 };
    static struct thing things[COUNT];
    struct timers t = { 0 };
    struct rng rng;
    rng_init(&rng, 5);

    for (int i = 0; i < COUNT; i++)
        things[i] = (struct thing){ .number = i };
    for (int round = 0; round < 20000; round++) {
        struct thing *thing = &things[rng_below(&rng, COUNT)];
        if (rng_below(&rng, 3) == 0)
            timers_clear(&t, &thing->timer);
        else
            timers_set(&t, &thing->timer, (int64_t)rng_below(&rng, 50));
        const struct thing *first = NULL;
        for (int i = 0; i < COUNT; i++)
            if (timer_is_set(&things[i].timer) &&
                (!first || things[i].timer.due_ns < first->timer.due_ns ||
                 (things[i].timer.due_ns == first->timer.due_ns &&
                  things[i].timer.order < first->timer.order)))
                first = &things[i];
        EXPECT_EQ(timers_next_ns(&t), first ? first->timer.due_ns : INT64_MAX);
        if (rng_below(&rng, 4) == 0)
            EXPECT_EQ(take_number(&t, INT64_MAX), first ? first->number : -1);
    }
    timers_done(&t);
}

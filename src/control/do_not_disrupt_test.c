#include "control/do_not_disrupt.h"

#include "control/drain_testing.h"

#define START_S "2026-01-02T03:00:00Z"

static struct do_not_disrupt mark_of(const char *annotation, bool started, int64_t after_start_us)
{
    AUTO(object_pool) pool = object_pool_new();
    const struct object *pod = read_pod(
        pool, js("{'metadata':{'name':'p','annotations':{%s%s%s}},'spec':{'containers':[]},"
                 "'status':{%s}}",
                 annotation ? "'karpenter.sh/do-not-disrupt':'" : "", annotation ? annotation : "",
                 annotation ? "'" : "", started ? "'startTime':'" START_S "'" : ""));
    struct do_not_disrupt mark = do_not_disrupt_of(pod_of(pod), START_US + after_start_us);
    object_unref(pod);
    return mark;
}

TEST(a_pod_without_the_annotation_may_be_disrupted)
{
    EXPECT_EQ(mark_of(NULL, true, 0).state, DO_NOT_DISRUPT_ABSENT);
    EXPECT_FALSE(do_not_disrupt_is_active(mark_of(NULL, true, 0)));
}

TEST(true_protects_a_pod_for_ever)
{
    struct do_not_disrupt mark = mark_of("true", true, 365 * 86400 * SECOND_US);
    EXPECT_TRUE(do_not_disrupt_is_active(mark));
    EXPECT_EQ(mark.until_us, INT64_MAX);
}

TEST(a_duration_protects_a_pod_from_its_start_until_it_is_over)
{
    EXPECT_TRUE(do_not_disrupt_is_active(mark_of("1h30m", true, 0)));
    EXPECT_TRUE(do_not_disrupt_is_active(mark_of("1h30m", true, 5400 * SECOND_US - 1)));
    EXPECT_FALSE(do_not_disrupt_is_active(mark_of("1h30m", true, 5400 * SECOND_US)));
    EXPECT_EQ(mark_of("1h30m", true, 0).until_us, START_US + 5400 * SECOND_US);
    EXPECT_EQ(mark_of("1h30m", true, 5400 * SECOND_US).state, DO_NOT_DISRUPT_ELAPSED);
    EXPECT_EQ(mark_of("1ns", true, 0).until_us, START_US + 1);
    EXPECT_EQ(mark_of("2562047h", true, 0).state, DO_NOT_DISRUPT_FOR_A_WHILE);
}

TEST(a_duration_has_not_begun_while_the_pod_has_not_started)
{
    struct do_not_disrupt mark = mark_of("1s", false, 86400 * SECOND_US);
    EXPECT_TRUE(do_not_disrupt_is_active(mark));
    EXPECT_EQ(mark.until_us, INT64_MAX);
}

TEST(other_values_are_invalid_and_protect_nothing)
{
    static const char *const values[] = { "",    "false", "True", "yes", "0",   "0s",
                                          "-1h", "1d",    "10",   " 1h", "1h ", "99999999h" };
    for (size_t i = 0; i < KV_COUNT_OF(values); i++) {
        struct do_not_disrupt mark = mark_of(values[i], true, 0);
        EXPECT_EQ(mark.state, DO_NOT_DISRUPT_INVALID);
        EXPECT_FALSE(do_not_disrupt_is_active(mark));
    }
}

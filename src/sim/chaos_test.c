#include "sim/chaos.h"
#include "support/test.h"

static struct scenario *chaos(void)
{
    struct scenario *s = NULL;
    struct err err = { 0 };
    EXPECT_OK(scenario_load("chaos", &s, &err), err);
    return s;
}

/* The same scenario, with what chaos makes as its timeline. */
static struct scenario *written(const struct scenario *s, uint64_t seed)
{
    AUTO_ARENA arena = { 0 };
    AUTO_BUF text = { 0 };
    struct scenario with = *s, *out = NULL;
    struct err err = { 0 };
    with.timeline = chaos_generate(&arena, s, seed, &with.timeline_count);
    with.chaos.steps = 0;
    scenario_write(&with, &text);
    EXPECT_OK(scenario_parse("chaos-written.yaml", buf_str(&text), &out, &err), err);
    return out;
}

TEST(what_chaos_makes_is_a_valid_scenario_file)
{
    AUTO(scenario) s = chaos();
    for (uint64_t seed = 1; seed <= 50; seed++) {
        AUTO(scenario) again = written(s, seed);
        EXPECT_EQ(again->timeline_count, s->chaos.steps);
    }
}

TEST(equal_seeds_make_equal_chaos_and_others_do_not)
{
    AUTO(scenario) s = chaos();
    AUTO_BUF a = { 0 }, b = { 0 }, c = { 0 };
    AUTO(scenario) first = written(s, 7);
    AUTO(scenario) second = written(s, 7);
    AUTO(scenario) other = written(s, 8);
    scenario_write(first, &a);
    scenario_write(second, &b);
    scenario_write(other, &c);
    EXPECT_TRUE(str_eq(buf_str(&a), buf_str(&b)));
    EXPECT_FALSE(str_eq(buf_str(&a), buf_str(&c)));
}

TEST(every_kind_of_action_happens_and_what_ends_has_begun)
{
    AUTO(scenario) s = chaos();
    uint32_t seen[ACTION_KIND_COUNT] = { 0 };
    for (uint64_t seed = 1; seed <= 20; seed++) {
        AUTO_ARENA arena = { 0 };
        uint32_t count, open[ACTION_KIND_COUNT] = { 0 };
        int64_t before = 0;
        const struct action *actions = chaos_generate(&arena, s, seed, &count);
        for (uint32_t i = 0; i < count; i++) {
            const struct action *a = &actions[i];
            EXPECT_TRUE(a->at_ns >= before && a->at_ns <= s->duration_ns);
            before = a->at_ns;
            seen[a->kind]++;
            EXPECT_TRUE(!a->ends || open[a->kind] > 0);
            open[a->kind] += a->ends ? UINT32_MAX : 1;
        }
    }
    for (uint32_t kind = 0; kind < ACTION_KIND_COUNT; kind++)
        EXPECT_EQ(seen[kind] > 0, kind != ACTION_SAY);
}

TEST(only_the_actions_that_the_scenario_allows_happen)
{
    AUTO(scenario) s = chaos();
    AUTO_ARENA arena = { 0 };
    uint32_t count;
    s->chaos.actions = 1u << ACTION_SCALE | 1u << ACTION_CRASH;
    const struct action *actions = chaos_generate(&arena, s, 3, &count);
    EXPECT_EQ(count, s->chaos.steps);
    for (uint32_t i = 0; i < count; i++)
        EXPECT_TRUE(actions[i].kind == ACTION_SCALE || actions[i].kind == ACTION_CRASH);
    s->chaos.actions = 0;
    chaos_generate(&arena, s, 3, &count);
    EXPECT_EQ(count, 0);
}

TEST(chaos_stops_when_the_scenario_is_over)
{
    AUTO(scenario) s = chaos();
    AUTO_ARENA arena = { 0 };
    uint32_t count;
    s->duration_ns = (int64_t)10 * 60 * 1000000000;
    chaos_generate(&arena, s, 3, &count);
    EXPECT_TRUE(count > 2 && count < 60);
}

TEST(a_scenario_without_workloads_pools_and_classes_has_little_chaos_and_no_crash)
{
    AUTO(scenario) s = chaos();
    AUTO_ARENA arena = { 0 };
    uint32_t count;
    s->object_count = 0;
    const struct action *actions = chaos_generate(&arena, s, 5, &count);
    for (uint32_t i = 0; i < count; i++)
        EXPECT_TRUE(actions[i].kind != ACTION_SCALE && actions[i].kind != ACTION_APPLY);
}

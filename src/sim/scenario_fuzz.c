/* Any bytes are a scenario or an error; a scenario that was written reads back and is written the
 * same, and chaos can be made from it. */
#include "sim/chaos.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STEPS_SOME 50

static void expect_same_again(const struct scenario *s)
{
    AUTO_BUF once = { 0 }, twice = { 0 };
    AUTO(scenario) again = NULL;
    struct err err;
    scenario_write(s, &once);
    int rc = scenario_parse("again.yaml", buf_str(&once), &again, &err);
    KV_ASSERT(rc == 0);
    scenario_write(again, &twice);
    KV_ASSERT(str_eq(buf_str(&once), buf_str(&twice)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(scenario) s = NULL;
    AUTO_ARENA arena = { 0 };
    AUTO_BUF words = { 0 };
    struct err err = { 0 };
    /* Nothing beside it: what a file refers to is not there. */
    if (scenario_parse("/nowhere/fuzz.yaml", (struct str){ (const char *)data, size }, &s, &err) <
        0) {
        KV_ASSERT(err.text[0] != '\0');
        return 0;
    }
    expect_same_again(s);
    for (uint32_t i = 0; i < s->timeline_count; i++)
        action_words(&s->timeline[i], &words);
    if (s->chaos.steps > STEPS_SOME)
        s->chaos.steps = STEPS_SOME;
    struct scenario with_chaos = *s;
    with_chaos.timeline = chaos_generate(&arena, s, s->seed, &with_chaos.timeline_count);
    buf_clear(&words);
    scenario_write(&with_chaos, &words);
    return 0;
}

#include "control/health_policy.h"

#include "base/rng.h"
#include "support/test.h"

#include <stdio.h>

static const struct health_settings first = { .policy = HEALTH_FIRST_SUCCESS };
static const struct health_settings ten = { HEALTH_WINDOW, 10, 2 };
static const struct health_settings four = { HEALTH_WINDOW, 4, 2 };

/* A window as the document writes it, with T and F. */
static struct health_window window_of(const char *results)
{
    struct health_window w = { 0 };
    for (; *results; results++)
        health_window_push(&w, HEALTH_WINDOW_MAX, *results == 'T');
    return w;
}

static const char *word(enum condition_status status)
{
    static const char *const words[] = { "unset", "True", "False", "Unknown" };
    return words[status];
}

/* The status after each of the results: "T" for True, "F" for False, "?" for Unknown. */
static const char *statuses(const struct health_settings *s, struct health_state now,
                            const char *results)
{
    static char text[100];
    size_t n = 0;
    for (; *results; results++) {
        health_result(s, &now, *results == 'T');
        text[n++] = "-TF?"[now.status];
    }
    text[n] = '\0';
    return text;
}

static const struct health_state unknown = { .status = CONDITION_UNKNOWN };

static const char *shown(const struct health_window *w)
{
    static char text[HEALTH_WINDOW_MAX + 1];
    for (uint32_t i = 0; i < w->count; i++)
        text[i] = w->results[i] ? 'T' : 'F';
    text[w->count] = '\0';
    return text;
}

/* --- first-success --- */

TEST(first_success_has_these_transitions_and_no_others)
{
    static const struct {
        enum condition_status before;
        bool success;
        const char *after;
    } all[] = {
        { CONDITION_UNKNOWN, true, "True" }, { CONDITION_UNKNOWN, false, "False" },
        { CONDITION_FALSE, true, "True" },   { CONDITION_FALSE, false, "False" },
        { CONDITION_TRUE, true, "True" },    { CONDITION_TRUE, false, "True" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(all); i++) {
        struct health_state now = { .status = all[i].before };
        health_result(&first, &now, all[i].success);
        EXPECT_Z(word(now.status), all[i].after);
        EXPECT_EQ(now.window.count, 0);
    }
}

TEST(a_pool_that_has_registered_a_node_stays_true_whatever_fails_later)
{
    EXPECT_Z(statuses(&first, unknown, "FFTFFFFFFFFF"), "FFTTTTTTTTTT");
}

TEST(first_success_never_ages)
{
    struct health_state now = { .status = CONDITION_FALSE };
    health_age(&first, &now);
    EXPECT_Z(word(now.status), "False");
}

/* --- window --- */

TEST(the_documents_six_example_evaluations)
{
    static const struct {
        const char *window, *status;
    } examples[] = {
        { "", "Unknown" }, { "T", "True" },    { "FT", "True" },
        { "FF", "False" }, { "FTF", "False" }, { "FTTTTTTTTT", "True" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(examples); i++) {
        struct health_window w = window_of(examples[i].window);
        EXPECT_Z(word(health_window_status(&w, 2)), examples[i].status);
    }
}

TEST(the_transition_table_of_a_window_of_four)
{
    static const struct {
        const char *results, *statuses;
    } rows[] = {
        { "T", "T" },         { "F", "?" },     { "FT", "?T" },   { "FF", "?F" },
        { "TFF", "TTF" },     { "FTF", "?TF" }, { "FFT", "?FF" }, { "FFTT", "?FFF" },
        { "FFTTT", "?FFFT" }, /* the first failure has left: T F T T */
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++)
        EXPECT_Z(statuses(&four, unknown, rows[i].results), rows[i].statuses);
}

TEST(a_single_failure_says_nothing_and_two_are_needed_for_false)
{
    EXPECT_Z(statuses(&ten, unknown, "FF"), "?F");
    struct health_state now = { .status = CONDITION_TRUE, .window = window_of("T") };
    EXPECT_Z(statuses(&ten, now, "FF"), "TF");
}

TEST(a_window_that_starts_with_a_success_is_true)
{
    EXPECT_Z(statuses(&ten, unknown, "TF"), "TT");
}

TEST(the_oldest_result_leaves_a_full_window)
{
    struct health_window w = { 0 };
    for (int i = 0; i < 10; i++)
        health_window_push(&w, 10, i != 0);
    EXPECT_Z(shown(&w), "FTTTTTTTTT");
    health_window_push(&w, 10, false);
    EXPECT_Z(shown(&w), "TTTTTTTTTF");
    health_window_push(&w, 3, true); /* a smaller one than it was */
    EXPECT_Z(shown(&w), "TFT");
}

TEST(after_an_external_fix_the_window_turns_true_once_one_failure_has_left)
{
    EXPECT_Z(statuses(&ten, unknown, "FFTTTTTTTTT"), "?FFFFFFFFFT");
}

/* --- age --- */

TEST(only_false_falls_back_by_age)
{
    static const struct {
        enum condition_status before;
        const char *window, *left, *after;
    } rows[] = {
        { CONDITION_FALSE, "FF", "F", "Unknown" }, /* one failure proves nothing */
        { CONDITION_FALSE, "FFF", "FF", "False" }, { CONDITION_FALSE, "FTF", "TF", "True" },
        { CONDITION_FALSE, "TFF", "FF", "False" }, { CONDITION_TRUE, "T", "", "True" },
        { CONDITION_TRUE, "FT", "T", "True" }, /* and one failure more is tolerated again */
        { CONDITION_TRUE, "TF", "F", "True" },     { CONDITION_UNKNOWN, "F", "", "Unknown" },
        { CONDITION_UNKNOWN, "", "", "Unknown" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        struct health_state now = { .status = rows[i].before, .window = window_of(rows[i].window) };
        health_age(&ten, &now);
        EXPECT_Z(shown(&now.window), rows[i].left);
        EXPECT_Z(word(now.status), rows[i].after);
    }
}

TEST(a_true_pool_whose_window_has_aged_away_is_not_made_unknown_by_a_failure)
{
    struct health_state now = { .status = CONDITION_TRUE };
    EXPECT_Z(statuses(&ten, now, "FF"), "TF");
}

/* --- restarts --- */

TEST(a_restart_keeps_the_condition_and_fills_the_window_to_match_it)
{
    static const struct {
        enum condition_status status;
        const char *window;
    } rows[] = { { CONDITION_TRUE, "T" }, { CONDITION_FALSE, "FF" }, { CONDITION_UNKNOWN, "" } };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        struct health_state now = health_rehydrate(&ten, rows[i].status);
        EXPECT_EQ(now.status, rows[i].status);
        EXPECT_Z(shown(&now.window), rows[i].window);
        EXPECT_EQ(health_window_status(&now.window, 2), rows[i].status);
        now = health_rehydrate(&first, rows[i].status);
        EXPECT_EQ(now.status, rows[i].status);
        EXPECT_EQ(now.window.count, 0);
    }
}

TEST(a_restarted_false_has_as_many_failures_as_the_threshold)
{
    struct health_settings five = { HEALTH_WINDOW, 8, 5 };
    struct health_state now = health_rehydrate(&five, CONDITION_FALSE);
    EXPECT_Z(shown(&now.window), "FFFFF");
}

/* --- settings --- */

TEST(settings_are_brought_to_where_they_make_sense)
{
    struct health_settings s =
        health_settings_sane((struct health_settings){ HEALTH_WINDOW, 0, 0 });
    EXPECT_EQ(s.window, 1);
    EXPECT_EQ(s.threshold, 1);
    s = health_settings_sane((struct health_settings){ HEALTH_WINDOW, 1000, 5000 });
    EXPECT_EQ(s.window, HEALTH_WINDOW_MAX);
    EXPECT_EQ(s.threshold, HEALTH_WINDOW_MAX);
    s = health_settings_sane(HEALTH_SETTINGS_DEFAULT);
    EXPECT_EQ(s.policy, HEALTH_FIRST_SUCCESS);
    EXPECT_EQ(s.window, 10);
    EXPECT_EQ(s.threshold, 2);
}

TEST(a_policy_has_one_of_two_names)
{
    enum health_policy policy = HEALTH_FIRST_SUCCESS;
    EXPECT_TRUE(health_policy_parse(STR("window"), &policy));
    EXPECT_EQ(policy, HEALTH_WINDOW);
    EXPECT_FALSE(health_policy_parse(STR("Window"), &policy));
    EXPECT_FALSE(health_policy_parse(STR_NONE, &policy));
    EXPECT_EQ(policy, HEALTH_WINDOW);
    EXPECT_TRUE(health_policy_parse(STR("first-success"), &policy));
    EXPECT_EQ(policy, HEALTH_FIRST_SUCCESS);
}

/* --- against a model: every result ever, and a status by the rules' own words --- */

struct model {
    char all[1000]; /* every result since the start, with those that are forgotten before `from` */
    size_t from, count;
    char status;
};

static size_t model_failures(const struct model *m)
{
    size_t n = 0;
    for (size_t i = m->from; i < m->count; i++)
        n += m->all[i] == 'F';
    return n;
}

static void model_result(struct model *m, const struct health_settings *s, char result)
{
    m->all[m->count++] = result;
    if (m->count - m->from > s->window)
        m->from++;
    bool bad = model_failures(m) >= s->threshold;
    if (result == 'T' && !bad)
        m->status = 'T';
    if (result == 'F' && bad)
        m->status = 'F';
}

static void model_age(struct model *m, const struct health_settings *s)
{
    if (m->from < m->count)
        m->from++;
    if (m->status == 'F' && model_failures(m) < s->threshold)
        m->status = model_failures(m) < m->count - m->from ? 'T' : '?';
}

TEST(windows_agree_with_a_model_that_remembers_everything)
{
    const uint64_t seed = 20260102;
    struct rng rng;
    rng_init(&rng, seed);
    printf("# seed %llu\n", (unsigned long long)seed);
    for (int round = 0; round < 500; round++) {
        struct health_settings s = { .policy = HEALTH_WINDOW };
        s.window = 1 + (uint32_t)rng_below(&rng, 12);
        s.threshold = 1 + (uint32_t)rng_below(&rng, s.window);
        struct health_state now = unknown;
        struct model model = { .status = '?' };
        uint64_t failing = rng_below(&rng, 10);
        for (int step = 0; step < 200; step++) {
            if (rng_below(&rng, 5) == 0) {
                health_age(&s, &now);
                model_age(&model, &s);
            } else {
                bool success = rng_below(&rng, 10) >= failing;
                health_result(&s, &now, success);
                model_result(&model, &s, success ? 'T' : 'F');
            }
            EXPECT_EQ("-TF?"[now.status], model.status);
            EXPECT_EQ(now.window.count, model.count - model.from);
            EXPECT_TRUE(memcmp(shown(&now.window), model.all + model.from, now.window.count) == 0);
        }
    }
}

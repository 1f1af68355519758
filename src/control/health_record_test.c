/* Decisions about one pool, without a store: objects are written down, time is a number. */
#include "control/health_record.h"

#include "api/conditions.h"
#include "api/hash.h"
#include "codec/duration.h"
#include "support/test.h"

#include <stdio.h>

#define MINUTE_US ((int64_t)60 * 1000000)
#define START_US (1767322800 * (int64_t)1000000)

struct scene {
    struct arena arena;
    struct nodepool pool;
    struct condition condition;
    struct object class_;
    struct health_view view;
    struct health_record record;
};

static struct scene *scene_new(enum condition_status status, struct health_settings settings)
{
    struct scene *s = kv_calloc(1, sizeof *s);
    s->condition = (struct condition){ .type = CONDITION_NODE_REGISTRATION_HEALTHY,
                                       .status = (uint8_t)status,
                                       .observed_generation = 1,
                                       .transition_us = START_US };
    s->pool.object.meta.generation = 1;
    s->pool.status.conditions.items = &s->condition;
    s->pool.status.conditions.count = status == CONDITION_UNSET ? 0 : 1;
    s->pool.status.node_class_observed_generation = 3;
    s->class_.meta.generation = 3;
    s->class_.meta.uid = STR("class-1");
    s->view = (struct health_view){ .pool = &s->pool,
                                    .maybe_class = &s->class_,
                                    .settings = settings,
                                    .idle_max_ns = 30 * DURATION_MINUTE,
                                    .now_us = START_US };
    return s;
}

static void scene_free(struct scene *s)
{
    arena_done(&s->arena);
    free(s);
}
KV_AUTO_TYPE(scene, scene_free)

static const struct health_settings first = { HEALTH_FIRST_SUCCESS, 10, 2 };
static const struct health_settings window = { HEALTH_WINDOW, 10, 2 };

static void pass(struct scene *s, int64_t minutes)
{
    s->view.now_us += minutes * MINUTE_US;
    s->view.now_ns += minutes * DURATION_MINUTE;
}

static struct nodeclaim claim_at(int64_t us)
{
    return (struct nodeclaim){ .object.meta = { .name = STR("default-x7k2p"), .created_us = us } };
}

/* As the store would have it after a write. */
static void written(struct scene *s)
{
    s->pool.status.conditions.count = 1;
    if (s->condition.status != s->record.state.status)
        s->condition.transition_us = s->view.now_us;
    s->condition.status = (uint8_t)s->record.state.status;
    s->condition.observed_generation = s->pool.object.meta.generation;
    s->pool.status.node_class_observed_generation = s->class_.meta.generation;
}

static bool catch_up(struct scene *s)
{
    bool anew = health_record_catch_up(&s->record, &s->view);
    written(s);
    return anew;
}

static bool tell(struct scene *s, int64_t created_us, bool success)
{
    struct nodeclaim claim = claim_at(created_us);
    catch_up(s);
    bool counts = health_record_counts(&s->record, &s->view, &claim);
    if (counts)
        health_record_result(&s->record, &s->view, &claim, success);
    written(s);
    return counts;
}

TEST(a_new_pool_starts_as_unknown)
{
    AUTO(scene) s = scene_new(CONDITION_UNSET, first);
    EXPECT_TRUE(catch_up(s));
    EXPECT_EQ(s->record.state.status, CONDITION_UNKNOWN);
    EXPECT_FALSE(catch_up(s));
}

TEST(a_restart_changes_nothing)
{
    static const enum condition_status all[] = { CONDITION_TRUE, CONDITION_FALSE,
                                                 CONDITION_UNKNOWN };
    for (size_t i = 0; i < KV_COUNT_OF(all); i++) {
        AUTO(scene) s = scene_new(all[i], window);
        pass(s, 24 * 60); /* however long nobody was there */
        EXPECT_FALSE(catch_up(s));
        EXPECT_EQ(s->record.state.status, all[i]);
    }
}

TEST(a_change_of_the_pool_or_its_class_starts_anew_also_if_nobody_was_running)
{
    for (int running = 0; running < 2; running++) {
        for (int of_class = 0; of_class < 2; of_class++) {
            AUTO(scene) s = scene_new(CONDITION_TRUE, window);
            if (running)
                catch_up(s);
            s->class_.meta.generation += of_class;
            s->pool.object.meta.generation += !of_class;
            EXPECT_TRUE(catch_up(s));
            EXPECT_EQ(s->record.state.status, CONDITION_UNKNOWN);
            EXPECT_EQ(s->record.state.window.count, 0);
            EXPECT_FALSE(catch_up(s));
        }
    }
}

TEST(a_class_that_is_made_anew_under_its_name_is_a_change)
{
    AUTO(scene) s = scene_new(CONDITION_TRUE, first);
    EXPECT_FALSE(catch_up(s));
    s->view.maybe_class = NULL; /* while it is missing nothing is known */
    EXPECT_FALSE(catch_up(s));
    s->view.maybe_class = &s->class_;
    EXPECT_FALSE(catch_up(s));
    s->class_.meta.uid = STR("class-2");
    EXPECT_TRUE(catch_up(s));
}

TEST(results_of_claims_older_than_the_change_do_not_count)
{
    AUTO(scene) s = scene_new(CONDITION_FALSE, first);
    catch_up(s);
    pass(s, 5);
    s->class_.meta.generation++; /* the broken image is replaced */
    catch_up(s);
    pass(s, 10);
    EXPECT_FALSE(tell(s, START_US, false)); /* launched with the old one, and given up now */
    EXPECT_FALSE(tell(s, START_US, true));
    EXPECT_EQ(s->record.state.status, CONDITION_UNKNOWN);
    EXPECT_TRUE(tell(s, START_US + 5 * MINUTE_US, false));
    EXPECT_EQ(s->record.state.status, CONDITION_FALSE);
}

TEST(after_a_restart_claims_older_than_an_unknown_still_do_not_count)
{
    AUTO(scene) s = scene_new(CONDITION_UNKNOWN, first);
    EXPECT_FALSE(tell(s, START_US - MINUTE_US, false));
    EXPECT_TRUE(tell(s, START_US, false));
}

TEST(a_write_whose_answer_was_lost_is_taken_up_and_the_change_is_not_forgotten)
{
    AUTO(scene) s = scene_new(CONDITION_TRUE, first);
    catch_up(s);
    pass(s, 5);
    s->class_.meta.generation++;
    catch_up(s);
    s->condition.status = CONDITION_FALSE; /* ours, but we were told that it failed */
    EXPECT_FALSE(catch_up(s));
    EXPECT_EQ(s->record.state.status, CONDITION_FALSE);
    EXPECT_FALSE(tell(s, START_US, true));
}

TEST(a_claim_made_from_another_template_does_not_count)
{
    AUTO(scene) s = scene_new(CONDITION_UNKNOWN, first);
    char hash[HASH_TEXT_MAX];
    hash_format(nodepool_hash(&s->pool), hash);
    struct nodeclaim claim = claim_at(START_US);
    struct str_pair notes[] = { { STR(ANNOTATION_NODEPOOL_HASH), str_of(hash) },
                                { STR(ANNOTATION_NODEPOOL_HASH_VERSION),
                                  STR(NODEPOOL_HASH_VERSION) } };
    claim.object.meta.annotations = (struct str_map){ notes, 2 };
    catch_up(s);
    EXPECT_TRUE(health_record_counts(&s->record, &s->view, &claim));
    notes[0].value = STR("12345");
    EXPECT_FALSE(health_record_counts(&s->record, &s->view, &claim));
    notes[1].value = STR("v2"); /* of another version nothing can be said */
    EXPECT_TRUE(health_record_counts(&s->record, &s->view, &claim));
}

TEST(a_policy_that_is_changed_takes_up_the_condition_as_it_is)
{
    AUTO(scene) s = scene_new(CONDITION_UNKNOWN, first);
    tell(s, START_US, false);
    EXPECT_EQ(s->record.state.status, CONDITION_FALSE);
    s->view.settings = window;
    EXPECT_FALSE(catch_up(s));
    EXPECT_EQ(s->record.state.status, CONDITION_FALSE);
    EXPECT_EQ(s->record.state.window.count, 2);
}

TEST(false_is_reconsidered_after_two_registration_timeouts_without_a_result)
{
    AUTO(scene) s = scene_new(CONDITION_UNKNOWN, window);
    tell(s, START_US, false);
    pass(s, 10);
    tell(s, START_US, false);
    EXPECT_EQ(s->record.state.status, CONDITION_FALSE);
    EXPECT_EQ(health_record_age_due_ns(&s->record, &s->view), 30 * DURATION_MINUTE);
    pass(s, 29);
    catch_up(s);
    EXPECT_EQ(s->record.state.status, CONDITION_FALSE);
    EXPECT_EQ(health_record_age_due_ns(&s->record, &s->view), DURATION_MINUTE);
    pass(s, 1);
    catch_up(s);
    EXPECT_EQ(s->record.state.status, CONDITION_UNKNOWN);
    EXPECT_EQ(s->record.state.window.count, 1);
    EXPECT_EQ(health_record_age_due_ns(&s->record, &s->view), INT64_MAX);
}

TEST(a_result_puts_off_the_ageing)
{
    AUTO(scene) s = scene_new(CONDITION_FALSE, window);
    catch_up(s);
    pass(s, 29);
    tell(s, START_US, false);
    pass(s, 29);
    catch_up(s);
    EXPECT_EQ(s->record.state.status, CONDITION_FALSE);
    EXPECT_EQ(s->record.state.window.count, 3);
}

TEST(of_a_long_silence_each_half_hour_counts)
{
    AUTO(scene) s = scene_new(CONDITION_UNKNOWN, window);
    for (int i = 0; i < 4; i++)
        tell(s, START_US, false);
    pass(s, 95);
    catch_up(s);
    EXPECT_EQ(s->record.state.window.count, 1);
    EXPECT_EQ(s->record.state.status, CONDITION_UNKNOWN);
}

/* --- the cooldown --- */

static int64_t retry_minutes(struct scene *s)
{
    return (health_record_retry_us(&s->record, &s->view) - s->view.now_us) / MINUTE_US;
}

TEST(each_round_of_failures_doubles_the_wait_up_to_an_hour)
{
    static const int64_t waits[] = { 5, 10, 20, 40, 60, 60 };
    AUTO(scene) s = scene_new(CONDITION_UNKNOWN, first);
    s->view.cooldown_ns = 5 * DURATION_MINUTE;
    catch_up(s);
    for (size_t i = 0; i < KV_COUNT_OF(waits); i++) {
        int64_t created_us = s->view.now_us;
        pass(s, 15);
        tell(s, created_us, false);
        tell(s, created_us, false); /* launched with it: the same round */
        EXPECT_EQ(retry_minutes(s), waits[i]);
        pass(s, waits[i]);
        EXPECT_EQ(retry_minutes(s), 0);
    }
    tell(s, s->view.now_us, true);
    EXPECT_EQ(s->record.attempts, 0);
}

TEST(after_a_restart_the_wait_goes_on_as_if_each_try_had_been_made)
{
    /* Tries were possible after 5, 15, 35, 75, 135, 195 ... minutes. */
    static const int64_t rows[][2] = { { 0, 5 },
                                       { 4, 1 },
                                       { 5, 10 },
                                       { 14, 1 },
                                       { 20, 15 },
                                       { 74, 1 },
                                       { 80, 55 },
                                       { 134, 1 },
                                       { 135, 60 },
                                       { 135 + 90, 30 },
                                       { 135 + 60 * 24 * 365, 60 } };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        AUTO(scene) s = scene_new(CONDITION_FALSE, first);
        s->view.cooldown_ns = 5 * DURATION_MINUTE;
        pass(s, rows[i][0]);
        catch_up(s);
        EXPECT_EQ(retry_minutes(s), rows[i][1]);
    }
}

TEST(a_wall_clock_that_is_set_back_makes_no_wait_longer)
{
    AUTO(scene) s = scene_new(CONDITION_UNKNOWN, first);
    s->view.cooldown_ns = 5 * DURATION_MINUTE;
    tell(s, START_US, false);
    s->view.now_us -= 24 * 60 * MINUTE_US;
    EXPECT_EQ(retry_minutes(s), 5);
}

/* --- words --- */

TEST(a_failure_is_told_in_the_claims_own_words)
{
    AUTO(scene) s = scene_new(CONDITION_UNKNOWN, first);
    struct condition conditions[] = {
        { .type = CONDITION_LAUNCHED, .status = CONDITION_TRUE, .transition_us = START_US },
        { .type = CONDITION_REGISTERED,
          .status = CONDITION_UNKNOWN,
          .reason = REASON_NODE_NOT_FOUND,
          .message = STR("Node not registered with cluster") },
    };
    struct nodeclaim claim = claim_at(START_US - MINUTE_US);
    struct str reason, message;
    claim.status.provider_id = STR("kwok://node-7");
    claim.status.conditions.items = conditions;
    claim.status.conditions.count = 2;
    int64_t now_us = START_US + 15 * MINUTE_US;

    health_failure_words(&claim, now_us, &s->arena, &reason, &message);
    EXPECT_STR(reason, "RegistrationFailed");
    EXPECT_STR(message, "claim default-x7k2p: NodeNotFound: Node not registered with cluster "
                        "after 15m (instance kwok://node-7)");

    conditions[0] = (struct condition){ .type = CONDITION_LAUNCHED,
                                        .status = CONDITION_UNKNOWN,
                                        .reason = STR("Unauthorized"),
                                        .message = STR("not authorized to run instances") };
    health_failure_words(&claim, now_us, &s->arena, &reason, &message);
    EXPECT_STR(reason, "Unauthorized");
    EXPECT_STR(message, "not authorized to run instances");

    claim.status.conditions.count = 0;
    health_failure_words(&claim, now_us, &s->arena, &reason, &message);
    EXPECT_STR(reason, "LaunchFailed");
    EXPECT_STR(message, "claim default-x7k2p: not launched after 16m");
}

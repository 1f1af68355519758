#include "api/conditions.h"

#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECOND_US ((int64_t)1000000)
#define CREATED_US (1767366245 * SECOND_US) /* 2026-01-02T15:04:05Z */

/* An object whose conditions are changed in rounds, as reconciles would: each round starts from the
 * list that the last one left. */
struct fixture {
    struct arena arena;
    const struct condition_kind *kind;
    struct meta meta;
    int64_t now_us;
    struct condition_set *set;
    struct buf text;
};

static void fixture_done(struct fixture *f)
{
    arena_done(&f->arena);
    buf_done(&f->text);
}
#define AUTO_FIXTURE __attribute__((cleanup(fixture_done))) struct fixture

/* `seconds` later; what was set so far is now what the object has. */
static void next_round(struct fixture *f, int64_t seconds)
{
    const struct condition *items = f->set ? f->set->items : NULL;
    uint32_t count = f->set ? f->set->count : 0;
    f->now_us += seconds * SECOND_US;
    f->set = conditions_new(&f->arena, f->kind, &f->meta, items, count, f->now_us);
}

static struct fixture fixture_new(const struct condition_kind *kind)
{
    return (struct fixture){
        .kind = kind,
        .meta = { .generation = 1, .created_us = CREATED_US },
        .now_us = CREATED_US,
    };
}

/* "Type=Status@seconds" of the list in its order; seconds since creation. */
static struct str listed(struct fixture *f)
{
    static const char *const names[] = { "Unset", "True", "False", "Unknown" };
    buf_clear(&f->text);
    for (uint32_t i = 0; i < f->set->count; i++) {
        const struct condition *c = &f->set->items[i];
        buf_addf(&f->text, "%s%.*s=%s@%lld", i ? " " : "", STR_ARG(c->type), names[c->status],
                 (long long)((c->transition_us - CREATED_US) / SECOND_US));
    }
    return buf_str(&f->text);
}

static int64_t generation_of(struct fixture *f, struct str type)
{
    return conditions_get(f->set, type)->observed_generation;
}

static void expect_root(struct fixture *f, enum condition_status status, const char *reason,
                        const char *message)
{
    const struct condition *root = conditions_root(f->set);
    EXPECT_EQ(root->status, status);
    EXPECT_STR(root->reason, reason);
    EXPECT_STR(root->message, message);
}

/* --- rule 1 --- */

TEST(conditions_that_ready_depends_on_are_made_unknown_as_of_creation)
{
    AUTO_FIXTURE f = fixture_new(&node_claim_conditions);
    next_round(&f, 30);
    EXPECT_STR(listed(&f), "Launched=Unknown@0 Registered=Unknown@0 Initialized=Unknown@0 "
                           "Ready=Unknown@0");
    const struct condition *launched = conditions_get(f.set, CONDITION_LAUNCHED);
    EXPECT_STR(launched->reason, "AwaitingReconciliation");
    EXPECT_STR(launched->message, "object is awaiting reconciliation");
    EXPECT_EQ(launched->observed_generation, 1);
    expect_root(&f, CONDITION_UNKNOWN, "ReconcilingDependents",
                "Launched=Unknown, Registered=Unknown, Initialized=Unknown");
    EXPECT_TRUE(conditions_changed(f.set));
}

TEST(conditions_that_ready_does_not_depend_on_are_made_when_set_as_of_now)
{
    AUTO_FIXTURE f = fixture_new(&node_claim_conditions);
    next_round(&f, 0);
    EXPECT_TRUE(conditions_get(f.set, CONDITION_DRIFTED) == NULL);
    next_round(&f, 7);
    conditions_set(f.set, CONDITION_DRIFTED, CONDITION_TRUE, REASON_NODE_POOL_DRIFTED, STR(""));
    EXPECT_EQ(conditions_get(f.set, CONDITION_DRIFTED)->transition_us, CREATED_US + 7 * SECOND_US);
}

TEST(conditions_of_each_kind_have_their_dependents)
{
    static const struct {
        const struct condition_kind *kind;
        const char *want;
    } cases[] = {
        { &node_pool_conditions, "ValidationSucceeded=Unknown@0 NodeClassReady=Unknown@0 "
                                 "Ready=Unknown@0" },
        { &node_overlay_conditions, "ValidationSucceeded=Unknown@0 Ready=Unknown@0" },
        { &ec2_node_class_conditions,
          "AMIsReady=Unknown@0 SubnetsReady=Unknown@0 SecurityGroupsReady=Unknown@0 "
          "InstanceProfileReady=Unknown@0 PlacementGroupReady=Unknown@0 "
          "ValidationSucceeded=Unknown@0 CapacityReservationsReady=Unknown@0 Ready=Unknown@0" },
        { &ec2_node_class_conditions_unreserved,
          "AMIsReady=Unknown@0 SubnetsReady=Unknown@0 SecurityGroupsReady=Unknown@0 "
          "InstanceProfileReady=Unknown@0 PlacementGroupReady=Unknown@0 "
          "ValidationSucceeded=Unknown@0 Ready=Unknown@0" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO_FIXTURE f = fixture_new(cases[i].kind);
        next_round(&f, 0);
        EXPECT_STR(listed(&f), cases[i].want);
    }
}

TEST(conditions_a_dependent_that_an_upgrade_adds_makes_a_ready_object_wait_for_it)
{
    AUTO_FIXTURE f = fixture_new(&ec2_node_class_conditions_unreserved);
    next_round(&f, 1);
    for (uint32_t i = 0; i < f.kind->dependent_count; i++)
        conditions_set_true(f.set, f.kind->dependents[i]);
    expect_root(&f, CONDITION_TRUE, "Ready", "");
    f.kind = &ec2_node_class_conditions;
    next_round(&f, 9);
    expect_root(&f, CONDITION_UNKNOWN, "ReconcilingDependents",
                "CapacityReservationsReady=Unknown");
    EXPECT_EQ(conditions_root(f.set)->transition_us, CREATED_US + 10 * SECOND_US);
}

TEST(conditions_of_an_object_that_is_not_stored_yet_date_from_now)
{
    AUTO_FIXTURE f = fixture_new(&node_overlay_conditions);
    f.meta.created_us = 0;
    next_round(&f, 3);
    EXPECT_STR(listed(&f), "ValidationSucceeded=Unknown@3 Ready=Unknown@3");
}

/* --- rule 2 --- */

TEST(conditions_transition_time_moves_only_with_the_status)
{
    AUTO_FIXTURE f = fixture_new(&node_pool_conditions);
    next_round(&f, 0);
    next_round(&f, 5);
    EXPECT_TRUE(conditions_set_unknown(f.set, CONDITION_NODE_CLASS_READY,
                                       REASON_NODE_CLASS_READINESS_UNKNOWN, STR("why")));
    EXPECT_EQ(conditions_get(f.set, CONDITION_NODE_CLASS_READY)->transition_us, CREATED_US);
    EXPECT_STR(conditions_get(f.set, CONDITION_NODE_CLASS_READY)->message, "why");
    EXPECT_TRUE(conditions_set_false(f.set, CONDITION_NODE_CLASS_READY, REASON_NODE_CLASS_NOT_FOUND,
                                     STR("gone")));
    EXPECT_EQ(conditions_get(f.set, CONDITION_NODE_CLASS_READY)->transition_us,
              CREATED_US + 5 * SECOND_US);
}

TEST(conditions_setting_what_is_there_already_writes_nothing)
{
    AUTO_FIXTURE f = fixture_new(&node_pool_conditions);
    next_round(&f, 0);
    conditions_set_true(f.set, CONDITION_VALIDATION_SUCCEEDED);
    next_round(&f, 60);
    EXPECT_FALSE(conditions_changed(f.set));
    EXPECT_FALSE(conditions_set_true(f.set, CONDITION_VALIDATION_SUCCEEDED));
    EXPECT_FALSE(conditions_changed(f.set));
    EXPECT_TRUE(conditions_set(f.set, CONDITION_VALIDATION_SUCCEEDED, CONDITION_TRUE,
                               CONDITION_VALIDATION_SUCCEEDED, STR("another message")));
    EXPECT_TRUE(conditions_changed(f.set));
}

TEST(conditions_setting_after_a_spec_change_stamps_the_new_generation)
{
    AUTO_FIXTURE f = fixture_new(&node_pool_conditions);
    next_round(&f, 0);
    conditions_set_true(f.set, CONDITION_VALIDATION_SUCCEEDED);
    f.meta.generation = 2;
    next_round(&f, 60);
    EXPECT_FALSE(conditions_changed(f.set));
    EXPECT_TRUE(conditions_set_true(f.set, CONDITION_VALIDATION_SUCCEEDED));
    EXPECT_EQ(generation_of(&f, CONDITION_VALIDATION_SUCCEEDED), 2);
    EXPECT_EQ(generation_of(&f, CONDITION_READY), 2);
    EXPECT_EQ(generation_of(&f, CONDITION_NODE_CLASS_READY), 1);
    EXPECT_EQ(conditions_get(f.set, CONDITION_VALIDATION_SUCCEEDED)->transition_us, CREATED_US);
}

TEST(conditions_changing_there_and_back_is_a_change_only_if_the_time_moved)
{
    AUTO_FIXTURE f = fixture_new(&node_overlay_conditions);
    next_round(&f, 0);
    conditions_set_false(f.set, CONDITION_VALIDATION_SUCCEEDED, REASON_CONFLICT, STR("x"));
    next_round(&f, 0);
    conditions_set_true(f.set, CONDITION_VALIDATION_SUCCEEDED);
    conditions_set_false(f.set, CONDITION_VALIDATION_SUCCEEDED, REASON_CONFLICT, STR("x"));
    EXPECT_FALSE(conditions_changed(f.set));
    next_round(&f, 1);
    conditions_set_true(f.set, CONDITION_VALIDATION_SUCCEEDED);
    conditions_set_false(f.set, CONDITION_VALIDATION_SUCCEEDED, REASON_CONFLICT, STR("x"));
    EXPECT_TRUE(conditions_changed(f.set));
}

/* --- rule 3 --- */

TEST(conditions_of_an_object_being_deleted_are_all_brought_up_to_date_by_a_set)
{
    AUTO_FIXTURE f = fixture_new(&node_claim_conditions);
    next_round(&f, 0);
    conditions_set_true(f.set, CONDITION_CONSOLIDATABLE);
    f.meta.generation = 2;
    next_round(&f, 1);
    conditions_set_true(f.set, CONDITION_LAUNCHED);
    EXPECT_EQ(generation_of(&f, CONDITION_CONSOLIDATABLE), 1);

    f.meta.deleted_us = f.now_us;
    next_round(&f, 1);
    EXPECT_FALSE(conditions_set_true(f.set, CONDITION_LAUNCHED)); /* nothing differs: no write */
    EXPECT_EQ(generation_of(&f, CONDITION_CONSOLIDATABLE), 1);
    EXPECT_TRUE(conditions_set_unknown(f.set, CONDITION_DRAINED, REASON_DRAINING, STR("")));
    for (uint32_t i = 0; i < f.set->count; i++)
        EXPECT_EQ(f.set->items[i].observed_generation, 2);
}

/* --- rule 4 --- */

TEST(conditions_true_has_its_type_as_the_reason)
{
    AUTO_FIXTURE f = fixture_new(&node_claim_conditions);
    next_round(&f, 0);
    conditions_set_unknown(f.set, CONDITION_LAUNCHED, REASON_LAUNCH_FAILED, STR("no capacity"));
    conditions_set_true(f.set, CONDITION_LAUNCHED);
    EXPECT_STR(conditions_get(f.set, CONDITION_LAUNCHED)->reason, "Launched");
    EXPECT_STR(conditions_get(f.set, CONDITION_LAUNCHED)->message, "");
}

/* --- rule 5 --- */

TEST(conditions_ready_follows_from_every_combination_of_two_dependents)
{
    static const char *const names[] = { "", "True", "False", "Unknown" };
    enum { TYPES = 2, STATES = 6 }; /* three statuses, at this generation or the one before */
    for (int combination = 0; combination < STATES * STATES; combination++) {
        AUTO_FIXTURE f = fixture_new(&node_pool_conditions);
        enum condition_status status[TYPES];
        int64_t generation[TYPES];
        struct condition items[TYPES];
        bool unhealthy = false, failed = false;
        AUTO_BUF message = { 0 };
        for (int t = 0, rest = combination; t < TYPES; t++, rest /= STATES) {
            status[t] = (enum condition_status)(CONDITION_TRUE + rest % 3);
            generation[t] = rest % STATES < 3 ? 2 : 1;
            items[t] = (struct condition){ .type = f.kind->dependents[t],
                                           .status = (uint8_t)status[t],
                                           .reason = STR("R"),
                                           .message = STR(""),
                                           .transition_us = CREATED_US,
                                           .observed_generation = generation[t] };
            failed |= status[t] == CONDITION_FALSE && generation[t] == 2;
            if (status[t] == CONDITION_TRUE && generation[t] == 2)
                continue;
            unhealthy = true;
            buf_addf(&message, "%s%.*s=%s", message.len ? ", " : "", STR_ARG(items[t].type),
                     names[status[t]]);
        }
        f.meta.generation = 2;
        f.set = conditions_new(&f.arena, f.kind, &f.meta, items, TYPES, f.now_us);
        /* Any set of another condition computes the root. */
        conditions_set_true(f.set, CONDITION_NODE_REGISTRATION_HEALTHY);
        if (!unhealthy)
            expect_root(&f, CONDITION_TRUE, "Ready", "");
        else if (failed)
            expect_root(&f, CONDITION_FALSE, "UnhealthyDependents", message.p);
        else
            expect_root(&f, CONDITION_UNKNOWN, "ReconcilingDependents", message.p);
    }
}

TEST(conditions_ready_names_the_latest_trouble_first)
{
    AUTO_FIXTURE f = fixture_new(&node_claim_conditions);
    next_round(&f, 0);
    next_round(&f, 10);
    conditions_set_false(f.set, CONDITION_REGISTERED, REASON_MULTIPLE_NODES_FOUND, STR("2"));
    expect_root(&f, CONDITION_FALSE, "UnhealthyDependents",
                "Registered=False, Launched=Unknown, Initialized=Unknown");
    next_round(&f, 10);
    conditions_set_false(f.set, CONDITION_INITIALIZED, REASON_NODE_NOT_READY, STR(""));
    expect_root(&f, CONDITION_FALSE, "UnhealthyDependents",
                "Initialized=False, Registered=False, Launched=Unknown");
}

TEST(conditions_ready_is_not_computed_from_what_it_does_not_depend_on)
{
    AUTO_FIXTURE f = fixture_new(&node_pool_conditions);
    next_round(&f, 0);
    conditions_set_true(f.set, CONDITION_VALIDATION_SUCCEEDED);
    conditions_set_true(f.set, CONDITION_NODE_CLASS_READY);
    conditions_set_false(f.set, CONDITION_NODE_REGISTRATION_HEALTHY, REASON_REGISTRATION_FAILED,
                         STR("3 of 4"));
    expect_root(&f, CONDITION_TRUE, "Ready", "");
}

TEST(conditions_ready_set_by_hand_stays_until_the_next_set_of_another)
{
    AUTO_FIXTURE f = fixture_new(&node_overlay_conditions);
    next_round(&f, 0);
    conditions_set_false(f.set, CONDITION_READY, REASON_CONFLICT, STR("by hand"));
    expect_root(&f, CONDITION_FALSE, "Conflict", "by hand");
    conditions_set_true(f.set, CONDITION_VALIDATION_SUCCEEDED);
    expect_root(&f, CONDITION_TRUE, "Ready", "");
}

/* --- rule 6 --- */

TEST(conditions_are_stored_by_transition_time_with_ready_last)
{
    AUTO_FIXTURE f = fixture_new(&node_claim_conditions);
    next_round(&f, 0);
    next_round(&f, 10);
    conditions_set_true(f.set, CONDITION_LAUNCHED);
    next_round(&f, 10);
    conditions_set_true(f.set, CONDITION_CONSISTENT_STATE_FOUND);
    conditions_set_true(f.set, CONDITION_REGISTERED); /* in the same second */
    EXPECT_STR(listed(&f), "Initialized=Unknown@0 Launched=True@10 ConsistentStateFound=True@20 "
                           "Registered=True@20 Ready=Unknown@0");
    next_round(&f, 10);
    conditions_set_true(f.set, CONDITION_INITIALIZED);
    EXPECT_STR(listed(&f), "Launched=True@10 ConsistentStateFound=True@20 Registered=True@20 "
                           "Initialized=True@30 Ready=True@30");
    f.now_us -= 25 * SECOND_US; /* a clock that was set back does not upset the order */
    next_round(&f, 0);
    conditions_set_true(f.set, CONDITION_CONSOLIDATABLE);
    EXPECT_STR(listed(&f), "Consolidatable=True@5 Launched=True@10 ConsistentStateFound=True@20 "
                           "Registered=True@20 Initialized=True@30 Ready=True@30");
}

/* --- rule 7 --- */

TEST(conditions_clearing_one_sorts_the_rest_by_type_and_leaves_ready_alone)
{
    AUTO_FIXTURE f = fixture_new(&node_claim_conditions);
    next_round(&f, 0);
    conditions_set_true(f.set, CONDITION_CONSOLIDATABLE);
    conditions_set_true(f.set, CONDITION_INSTANCE_TERMINATING);
    next_round(&f, 1);
    EXPECT_FALSE(conditions_clear(f.set, CONDITION_DRIFTED));
    EXPECT_FALSE(conditions_changed(f.set));
    EXPECT_TRUE(conditions_clear(f.set, CONDITION_CONSOLIDATABLE));
    EXPECT_TRUE(conditions_changed(f.set));
    EXPECT_STR(listed(&f), "Initialized=Unknown@0 InstanceTerminating=True@0 Launched=Unknown@0 "
                           "Ready=Unknown@0 Registered=Unknown@0");
}

TEST(conditions_that_ready_depends_on_cannot_be_cleared)
{
    const struct str types[] = { CONDITION_READY, CONDITION_LAUNCHED };
    for (size_t i = 0; i < KV_COUNT_OF(types); i++) {
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            struct fixture f = fixture_new(&node_claim_conditions);
            close(STDERR_FILENO); /* says why it aborts */
            signal(SIGABRT, SIG_DFL);
            next_round(&f, 0);
            conditions_clear(f.set, types[i]);
            _exit(0);
        }
        int status = 0;
        waitpid(child, &status, 0);
        EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    }
}

/* --- rule 8 --- */

TEST(conditions_that_are_not_there_count_as_unknown)
{
    AUTO_FIXTURE f = fixture_new(&node_claim_conditions);
    next_round(&f, 0);
    EXPECT_EQ(condition_status_of(NULL), CONDITION_UNKNOWN);
    EXPECT_EQ(condition_status_of(&(struct condition){ .status = CONDITION_UNSET }),
              CONDITION_UNKNOWN);
    EXPECT_EQ(condition_status_of(conditions_get(f.set, CONDITION_DRIFTED)), CONDITION_UNKNOWN);
    EXPECT_FALSE(conditions_is_true(f.set, CONDITION_DRIFTED));
    conditions_set_true(f.set, CONDITION_DRIFTED);
    EXPECT_TRUE(conditions_is_true(f.set, CONDITION_DRIFTED));
}

/* --- the patch --- */

TEST(conditions_are_written_in_the_stored_order_for_a_status_patch)
{
    AUTO_FIXTURE f = fixture_new(&node_overlay_conditions);
    f.meta.generation = 3;
    next_round(&f, 0);
    f.now_us += 999999; /* times are whole seconds */
    next_round(&f, 2);
    conditions_set_false(f.set, CONDITION_VALIDATION_SUCCEEDED, REASON_CONFLICT, STR("with \"b\""));
    AUTO_JSON_BUILD b = { 0 };
    AUTO_BUF out = { 0 };
    json_build_init(&b);
    json_write_mut(conditions_json(f.set, &b), &out);
    EXPECT_STR(buf_str(&out),
               "[{\"type\":\"ValidationSucceeded\",\"status\":\"False\",\"observedGeneration\":3,"
               "\"lastTransitionTime\":\"2026-01-02T15:04:07Z\",\"reason\":\"Conflict\","
               "\"message\":\"with \\\"b\\\"\"},"
               "{\"type\":\"Ready\",\"status\":\"False\",\"observedGeneration\":3,"
               "\"lastTransitionTime\":\"2026-01-02T15:04:07Z\","
               "\"reason\":\"UnhealthyDependents\","
               "\"message\":\"ValidationSucceeded=False\"}]");
}

TEST(conditions_messages_longer_than_the_crd_allows_are_cut_between_characters)
{
    AUTO_FIXTURE f = fixture_new(&node_overlay_conditions);
    AUTO_BUF message = { 0 };
    buf_addc(&message, ' ');
    while (message.len <= CONDITION_MESSAGE_BYTES_MAX)
        buf_addz(&message, "\xc3\xa9");
    next_round(&f, 0);
    for (int round = 0; round < 2; round++)
        EXPECT_EQ(conditions_set_false(f.set, CONDITION_VALIDATION_SUCCEEDED,
                                       REASON_RUNTIME_VALIDATION, buf_str(&message)),
                  round == 0);
    struct str kept = conditions_get(f.set, CONDITION_VALIDATION_SUCCEEDED)->message;
    EXPECT_EQ(kept.len, CONDITION_MESSAGE_BYTES_MAX - 1);
    EXPECT_TRUE(str_is_utf8(kept));
}

TEST(conditions_keep_no_pointer_to_what_they_were_set_from)
{
    AUTO_FIXTURE f = fixture_new(&node_overlay_conditions);
    next_round(&f, 0);
    char type[] = "Custom", reason[] = "Why", message[] = "text";
    conditions_set_false(f.set, str_of(type), str_of(reason), str_of(message));
    memset(type, 'x', sizeof type - 1);
    memset(reason, 'x', sizeof reason - 1);
    memset(message, 'x', sizeof message - 1);
    EXPECT_STR(conditions_get(f.set, STR("Custom"))->reason, "Why");
    EXPECT_STR(conditions_get(f.set, STR("Custom"))->message, "text");
}

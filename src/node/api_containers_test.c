#include "node/api_status_testing.h"

/* --- states --- */

TEST(the_state_of_an_instance_becomes_the_apis_row_by_row)
{
    static const struct {
        const char *previous; /* state of the container before */
        struct made now;
        const char *state;
        int64_t restarts;
    } rows[] = {
        { "{}",
          { .container = "app", .state = RUNTIME_RUNNING },
          "{'running':{'startedAt':'2027-01-15T08:00:01Z'}}",
          0 },
        { "{}", { .container = "app", .state = RUNTIME_CREATED }, "{'waiting':{}}", 0 },
        { "{}",
          { .container = "app", .state = RUNTIME_EXITED, .exit_code = 3, .message = "bye" },
          "{'terminated':{'exitCode':3,'reason':'Error','message':'bye',"
          "'startedAt':'2027-01-15T08:00:01Z','finishedAt':'2027-01-15T08:00:05Z',"
          "'containerID':'containerd://app-0'}}",
          0 },
        { "{}",
          { .container = "app", .state = RUNTIME_EXITED, .reason = "" },
          "{'terminated':{'exitCode':0,'reason':'Completed','startedAt':'2027-01-15T08:00:01Z',"
          "'finishedAt':'2027-01-15T08:00:05Z','containerID':'containerd://app-0'}}",
          0 },
        { "{'running':{}}", { .container = "app", .state = RUNTIME_UNKNOWN }, LOST, 5 },
        { "{'waiting':{}}", { .container = "app", .state = RUNTIME_UNKNOWN }, "{'waiting':{}}", 0 },
        { "{}", { .container = "app", .state = RUNTIME_UNKNOWN }, "{'waiting':{}}", 0 },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        AUTO_SCENE s = scene_of(ONE_APP);
        AUTO_BUF before = { 0 };
        buf_addf(&before, "{'containerStatuses':[{'name':'app','state':%s,'restartCount':4}]}",
                 rows[i].previous);
        s.maybe_previous = json_of(&s, before.p);
        const json_val *app = app_of(tell(&s, runtime_make("uid-web", &rows[i].now, 1)));
        EXPECT_JSON(json_get(app, STR("state")), rows[i].state);
        EXPECT_EQ(restarts_of(app), rows[i].restarts);
    }
}

TEST(the_instance_before_gives_the_last_state_and_older_ones_are_ignored)
{
    AUTO_SCENE s = scene_of(ONE_APP);
    const json_val *app = app_of(
        tell(&s, runtime_made("uid-web", a_container("app", RUNTIME_RUNNING, .restarts = 3),
                              a_container("other", RUNTIME_EXITED, .exit_code = 9),
                              a_container("app", RUNTIME_EXITED, .exit_code = 2, .restarts = 2),
                              a_container("app", RUNTIME_EXITED, .exit_code = 1, .restarts = 1),
                              a_sandbox("s1"))));
    EXPECT_JSON(json_get(app, STR("state")), "{'running':{'startedAt':'2027-01-15T08:00:01Z'}}");
    EXPECT_JSON(json_get(app, STR("lastState")),
                "{'terminated':{'exitCode':2,'reason':'Error','startedAt':'2027-01-15T07:59:41Z',"
                "'finishedAt':'2027-01-15T07:59:45Z','containerID':'containerd://app-2'}}");
    EXPECT_EQ(restarts_of(app), 3);

    /* The dead one is tidied away: what it left stays told. */
    app =
        app_of(tell(&s, runtime_made("uid-web", a_container("app", RUNTIME_RUNNING, .restarts = 3),
                                     a_sandbox("s1"))));
    EXPECT_JSON(json_path(app, "lastState.terminated.exitCode"), "2");
    /* But not of another instance. */
    app =
        app_of(tell(&s, runtime_made("uid-web", a_container("app", RUNTIME_RUNNING, .restarts = 4),
                                     a_sandbox("s1"))));
    EXPECT_JSON(json_get(app, STR("lastState")), "{}");
}

TEST(a_created_instance_is_no_last_state)
{
    AUTO_SCENE s = scene_of(ONE_APP);
    const json_val *app =
        app_of(tell(&s, runtime_made("uid-web", a_container("app", RUNTIME_RUNNING, .restarts = 1),
                                     a_container("app", RUNTIME_CREATED), a_sandbox("s1"))));
    EXPECT_JSON(json_get(app, STR("lastState")), "{}");
}

TEST(an_end_that_was_told_stays_when_its_instance_is_gone)
{
    AUTO_SCENE s = scene_of(ONE_APP_NEVER);
    tell(&s, runtime_made("uid-web", a_container("app", RUNTIME_EXITED, .exit_code = 4),
                          a_sandbox("s1")));
    const json_val *status = tell(&s, runtime_empty("uid-web"));
    EXPECT_JSON(json_path(app_of(status), "state.terminated.exitCode"), "4");
    EXPECT_STR(json_str(json_get(app_of(status), STR("containerID"))), "containerd://app-0");
    EXPECT_STR(json_str(json_get(app_of(status), STR("imageID"))),
               "registry.example/app@sha256:0123");
    EXPECT_STR(api_status_phase(status), "Failed");
}

TEST(a_container_that_was_told_to_run_and_is_gone_has_ended_unseen)
{
    for (int deleting = 0; deleting < 2; deleting++) {
        AUTO_SCENE s = scene_of(ONE_APP);
        tell(&s, runtime_made("uid-web", a_container("app", RUNTIME_RUNNING, .restarts = 2),
                              a_sandbox("s1")));
        s.with.deleting = deleting;
        const json_val *status = tell(&s, runtime_empty("uid-web"));
        EXPECT_JSON(json_get(app_of(status), STR("state")),
                    "{'waiting':{'reason':'ContainerCreating'}}");
        EXPECT_JSON(json_get(app_of(status), STR("lastState")), LOST);
        EXPECT_EQ(restarts_of(app_of(status)), deleting ? 2 : 3);
        EXPECT_STR(api_status_phase(status), "Running"); /* not back to Pending */
        /* Said once. */
        status = tell(&s, runtime_empty("uid-web"));
        EXPECT_EQ(restarts_of(app_of(status)), deleting ? 2 : 3);
        EXPECT_JSON(json_get(app_of(status), STR("lastState")), LOST);
    }
}

TEST(a_container_that_could_not_be_started_waits_and_says_why)
{
    static const struct start_failure failures[] = {
        { STR("app"), STR("CrashLoopBackOff"), STR("back-off 10s") },
        { STR("other"), STR("ErrImagePull"), STR("no such image") },
    };
    static const struct {
        const char *yaml;
        struct made now;
        size_t count;
        const char *state;
        bool last_ended;
    } rows[] = {
        { ONE_APP,
          { 0 },
          0,
          "{'waiting':{'reason':'CrashLoopBackOff','message':'back-off 10s'}}",
          false },
        { ONE_APP,
          { .container = "app", .state = RUNTIME_EXITED, .exit_code = 1 },
          1,
          "{'waiting':{'reason':'CrashLoopBackOff','message':'back-off 10s'}}",
          true },
        { ONE_APP,
          { .container = "app", .state = RUNTIME_CREATED },
          1,
          "{'waiting':{'reason':'CrashLoopBackOff','message':'back-off 10s'}}",
          false },
        /* It runs, or shall not run again: the failure is of the past. */
        { ONE_APP,
          { .container = "app", .state = RUNTIME_RUNNING },
          1,
          "{'running':{'startedAt':'2027-01-15T08:00:01Z'}}",
          false },
        { ONE_APP_NEVER,
          { .container = "app", .state = RUNTIME_EXITED, .exit_code = 1 },
          1,
          "{'terminated':{'exitCode':1,'reason':'Error','startedAt':'2027-01-15T08:00:01Z',"
          "'finishedAt':'2027-01-15T08:00:05Z','containerID':'containerd://app-0'}}",
          false },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        AUTO_SCENE s = scene_of(rows[i].yaml);
        s.with.failures.items = failures;
        s.with.failures.count = 2;
        const json_val *app =
            app_of(tell(&s, runtime_make("uid-web", &rows[i].now, rows[i].count)));
        EXPECT_JSON(json_get(app, STR("state")), rows[i].state);
        EXPECT_EQ(json_path(app, "lastState.terminated") != NULL, rows[i].last_ended);
    }
    AUTO_SCENE s = scene_of(ONE_APP); /* nor does a pod that ends wait for a start */
    s.with.failures.items = failures;
    s.with.failures.count = 1;
    s.with.deleting = true;
    EXPECT_TRUE(
        json_path(app_of(tell(&s, runtime_made("uid-web", a_container("app", RUNTIME_EXITED)))),
                  "state.terminated") != NULL);
}

TEST(a_plain_init_container_that_succeeded_does_not_wait_again)
{
    static const struct start_failure failures[] = { { STR("a"), STR("ErrImagePull"), STR("no") },
                                                     { STR("b"), STR("ErrImagePull"), STR("no") } };
    AUTO_SCENE s = scene_of(WITH_INIT);
    s.with.failures.items = failures;
    s.with.failures.count = 2;
    const json_val *status =
        tell(&s, runtime_made("uid-web", a_container("b", RUNTIME_EXITED), a_sandbox("s1")));
    const json_val *b = of_name(status, "initContainerStatuses", "b");
    EXPECT_JSON(json_path(b, "state.terminated.exitCode"), "0");
    EXPECT_TRUE(json_bool(json_get(b, STR("ready"))));
    EXPECT_JSON(json_path(of_name(status, "initContainerStatuses", "a"), "state.waiting.reason"),
                "'ErrImagePull'");
    EXPECT_STR(api_status_phase(status), "Pending");
}

TEST(init_containers_that_are_gone_once_the_pod_is_initialised_have_completed)
{
    AUTO_SCENE s = scene_of(WITH_INIT);
    const json_val *status =
        tell(&s, runtime_made("uid-web", a_container("app", RUNTIME_RUNNING),
                              a_container("z", RUNTIME_RUNNING), a_sandbox("s1")));
    const json_val *a = of_name(status, "initContainerStatuses", "a");
    EXPECT_JSON(json_path(a, "state.terminated.exitCode"), "0");
    EXPECT_JSON(json_path(a, "state.terminated.reason"), "'Completed'");
    EXPECT_TRUE(json_bool(json_get(a, STR("ready"))));
    EXPECT_STR(api_status_phase(status), "Running");
    EXPECT_JSON(json_get(condition(status, "Initialized"), STR("status")), "'True'");
}

struct words_asked {
    int count;
};
static struct str last_words(void *ctx, const struct runtime_container *ended)
{
    struct words_asked *asked = ctx;
    asked->count++;
    return ended->exit_code == 1 ? STR("from the file") : STR("");
}

TEST(last_words_are_read_once_and_the_runtimes_word_counts_without_them)
{
    AUTO_SCENE s = scene_of(ONE_APP);
    struct words_asked asked = { 0 };
    s.with.last_words = (struct last_words_source){ last_words, &asked };
    for (int i = 0; i < 3; i++) {
        const json_val *app =
            app_of(tell(&s, runtime_made("uid-web",
                                         a_container("app", RUNTIME_EXITED, .exit_code = 2,
                                                     .restarts = 1, .message = "from the runtime"),
                                         a_container("app", RUNTIME_EXITED, .exit_code = 1))));
        EXPECT_JSON(json_path(app, "state.terminated.message"), "'from the runtime'");
        EXPECT_JSON(json_path(app, "lastState.terminated.message"), "'from the file'");
        EXPECT_EQ(asked.count, 2);
    }
}

/* --- started and ready --- */

TEST(started_and_ready_follow_the_probes_of_what_runs)
{
    static const struct {
        struct container_probes probes;
        enum runtime_state state;
        bool started, ready;
    } rows[] = {
        { { PROBE_SUCCESS, PROBE_SUCCESS, PROBE_SUCCESS }, RUNTIME_RUNNING, true, true },
        { { PROBE_SUCCESS, PROBE_UNKNOWN, PROBE_SUCCESS }, RUNTIME_RUNNING, true, false },
        { { PROBE_SUCCESS, PROBE_FAILURE, PROBE_SUCCESS }, RUNTIME_RUNNING, true, false },
        { { PROBE_SUCCESS, PROBE_SUCCESS, PROBE_UNKNOWN }, RUNTIME_RUNNING, false, false },
        { { PROBE_SUCCESS, PROBE_SUCCESS, PROBE_FAILURE }, RUNTIME_RUNNING, false, false },
        { { PROBE_FAILURE, PROBE_SUCCESS, PROBE_SUCCESS }, RUNTIME_RUNNING, true, true },
        { { PROBE_SUCCESS, PROBE_SUCCESS, PROBE_SUCCESS }, RUNTIME_EXITED, false, false },
        { { PROBE_SUCCESS, PROBE_SUCCESS, PROBE_SUCCESS }, RUNTIME_CREATED, false, false },
    };
    static const char *const names[] = { "app", "s" }; /* a regular one, a sidecar */
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        AUTO_SCENE s =
            scene_of("metadata: {name: web}\n"
                     "spec: {initContainers: [{name: s, image: s, restartPolicy: Always}],"
                     " containers: [{name: app, image: app}]}\n");
        struct probe_words words = { NULL, rows[i].probes };
        s.maybe_probes = &words;
        const json_val *status = tell(&s, runtime_made("uid-web", a_container("app", rows[i].state),
                                                       a_container("s", rows[i].state)));
        for (size_t j = 0; j < KV_COUNT_OF(names); j++) {
            const json_val *c = j ? of_name(status, "initContainerStatuses", names[j])
                                  : of_name(status, "containerStatuses", names[j]);
            EXPECT_EQ(json_bool(json_get(c, STR("started"))), rows[i].started);
            EXPECT_EQ(json_bool(json_get(c, STR("ready"))), rows[i].ready);
        }
    }
}

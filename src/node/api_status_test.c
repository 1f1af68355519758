#include "node/actions_testing.h"
#include "node/api_status.h"
#include "node/node_pod_testing.h"
#include "node/runtime_testing.h"

/* --- making statuses --- */

#define NOW_S (RUNTIME_MADE_S + 3600) /* 2027-01-15T09:00:00Z */

/* One pod and what is said of it; each status made becomes the previous one of the next. */
struct scene {
    const struct node_pod *pod;
    struct doc docs[8]; /* every status told, and what was given as said before */
    struct buf texts[8];
    size_t count;
    const json_val *maybe_previous;
    struct api_status_input with; /* what differs from the usual */
    struct probe_words *maybe_probes;
};

static void scene_done(struct scene *s)
{
    for (size_t i = 0; i < s->count; i++) {
        doc_done(&s->docs[i]);
        buf_done(&s->texts[i]);
    }
    node_pod_unref(s->pod);
}
#define AUTO_SCENE __attribute__((cleanup(scene_done))) struct scene

/* JSON with single quotes for double ones, kept by the scene. */
static const json_val *keep(struct scene *s, struct buf *text)
{
    struct err err;
    EXPECT_TRUE(s->count < KV_COUNT_OF(s->docs));
    s->texts[s->count] = *text;
    EXPECT_OK(json_read(buf_str(&s->texts[s->count]), &s->docs[s->count], &err), err);
    return s->docs[s->count++].root;
}

static const json_val *json_of(struct scene *s, const char *quoted)
{
    struct buf text = { 0 };
    buf_addz(&text, quoted);
    for (size_t i = 0; i < text.len; i++)
        text.p[i] = text.p[i] == '\'' ? '"' : text.p[i];
    return keep(s, &text);
}

static struct scene scene_of(const char *yaml)
{
    return (struct scene){ .pod = pod_from_yaml(yaml) };
}

/* The status of what the runtime shows; that is released. */
static const json_val *tell(struct scene *s, const struct runtime_status *status)
{
    static const struct str node_ips[] = { STR("192.0.2.10") };
    AUTO_JSON_BUILD b = { 0 };
    struct api_status_input input = s->with;
    struct buf text = { 0 };
    json_build_init(&b);
    input.pod = s->pod;
    input.status = status;
    input.maybe_previous = s->maybe_previous;
    input.probes = probes_say(s->maybe_probes);
    input.runtime_name = "containerd";
    if (!input.now_us)
        input.now_us = NOW_S * 1000000;
    if (!input.node_ips.items)
        input.node_ips = (struct str_list){ node_ips, 1 };
    json_write_mut(api_status_build(&b, &input), &text);
    runtime_status_unref(status);
    s->maybe_previous = keep(s, &text);
    return s->maybe_previous;
}

static void expect_json(const json_val *got, const char *want, const char *file, int line)
{
    AUTO_BUF text = { 0 };
    if (got)
        json_write(got, &text);
    for (size_t i = 0; i < text.len; i++)
        text.p[i] = text.p[i] == '"' ? '\'' : text.p[i];
    test_expect_str(buf_str(&text), str_of(want), "JSON", file, line);
}
#define EXPECT_JSON(got, want) expect_json((got), (want), __FILE__, __LINE__)

static const json_val *of_name(const json_val *status, const char *list, const char *name)
{
    json_each_item(json_get(status, str_of(list)), item) {
        if (str_eqz(json_str(json_get(item, STR("name"))), name))
            return item;
    }
    return NULL;
}
static const json_val *app_of(const json_val *status)
{
    return of_name(status, "containerStatuses", "app");
}
static int64_t restarts_of(const json_val *container)
{
    int64_t count = -1;
    json_i64(json_get(container, STR("restartCount")), &count);
    return count;
}
static const json_val *condition(const json_val *status, const char *type)
{
    json_each_item(json_get(status, STR("conditions")), item) {
        if (str_eqz(json_str(json_get(item, STR("type"))), type))
            return item;
    }
    return NULL;
}

#define ONE_APP "metadata: {name: web}\nspec: {containers: [{name: app, image: app:1}]}\n"
#define ONE_APP_NEVER                                                                              \
    "metadata: {name: web}\n"                                                                      \
    "spec: {restartPolicy: Never, containers: [{name: app, image: app:1}]}\n"
#define WITH_INIT                                                                                  \
    "metadata: {name: web}\n"                                                                      \
    "spec: {initContainers: [{name: b, image: b}, {name: a, image: a}],"                           \
    " containers: [{name: z, image: z}, {name: app, image: app:1}]}\n"

#define LOST                                                                                       \
    "{'terminated':{'exitCode':137,'reason':'ContainerStatusUnknown','message':"                   \
    "'the container ran, and the runtime no longer knows how it ended',"                           \
    "'startedAt':null,'finishedAt':null}}"

/* --- the whole --- */

TEST(a_running_pod_has_the_status_that_an_api_server_would_show)
{
    AUTO_SCENE s = scene_of("metadata: {name: web, generation: 3}\n"
                            "spec: {containers: [{name: app, image: app:1}]}\n");
    const json_val *status =
        tell(&s, runtime_made("uid-web", a_container("app", RUNTIME_RUNNING, .restarts = 2),
                              a_sandbox("s1")));
    EXPECT_JSON(
        status,
        "{'observedGeneration':3,'phase':'Running','conditions':["
        "{'type':'PodReadyToStartContainers','observedGeneration':3,'status':'True',"
        "'lastProbeTime':null,'lastTransitionTime':'2027-01-15T09:00:00Z'},"
        "{'type':'Initialized','observedGeneration':3,'status':'True','lastProbeTime':null,"
        "'lastTransitionTime':'2027-01-15T09:00:00Z'},"
        "{'type':'Ready','observedGeneration':3,'status':'True','lastProbeTime':null,"
        "'lastTransitionTime':'2027-01-15T09:00:00Z'},"
        "{'type':'ContainersReady','observedGeneration':3,'status':'True','lastProbeTime':null,"
        "'lastTransitionTime':'2027-01-15T09:00:00Z'},"
        "{'type':'PodScheduled','observedGeneration':3,'status':'True','lastProbeTime':null,"
        "'lastTransitionTime':'2027-01-15T09:00:00Z'}],"
        "'hostIP':'192.0.2.10','hostIPs':[{'ip':'192.0.2.10'}],"
        "'podIP':'10.88.0.7','podIPs':[{'ip':'10.88.0.7'}],"
        "'startTime':'2027-01-15T09:00:00Z','containerStatuses':["
        "{'name':'app','state':{'running':{'startedAt':'2027-01-15T08:00:01Z'}},'lastState':{},"
        "'ready':true,'restartCount':2,'image':'registry.example/app:1',"
        "'imageID':'registry.example/app@sha256:0123','containerID':'containerd://app-2',"
        "'started':true}],'qosClass':'BestEffort'}");
}

TEST(a_pod_that_nothing_was_done_for_waits_to_be_created)
{
    AUTO_SCENE s = scene_of(ONE_APP);
    const json_val *status = tell(&s, runtime_empty("uid-web"));
    EXPECT_STR(api_status_phase(status), "Pending");
    EXPECT_JSON(app_of(status),
                "{'name':'app','state':{'waiting':{'reason':'ContainerCreating'}},'lastState':{},"
                "'ready':false,'restartCount':0,'image':'app:1','imageID':'','started':false}");
    EXPECT_TRUE(json_get(status, STR("podIP")) == NULL);
}

TEST(init_statuses_keep_the_order_of_the_spec_and_others_are_sorted_by_name)
{
    AUTO_SCENE s =
        scene_of("metadata: {name: web}\n"
                 "spec: {initContainers: [{name: b, image: b}, {name: a, image: a}],"
                 " containers: [{name: z, image: z}, {name: app, image: app:1}],"
                 " ephemeralContainers: [{name: e2, image: e}, {name: e1, image: e}]}\n");
    const json_val *status = tell(&s, runtime_made("uid-web", a_sandbox("s1")));
    static const struct {
        const char *list, *names[2];
    } rows[] = { { "initContainerStatuses", { "b", "a" } },
                 { "containerStatuses", { "app", "z" } },
                 { "ephemeralContainerStatuses", { "e1", "e2" } } };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        const json_val *list = json_get(status, str_of(rows[i].list));
        EXPECT_EQ(json_count(list), 2);
        for (size_t j = 0; j < 2; j++)
            EXPECT_STR(json_str(json_get(json_at(list, j), STR("name"))), rows[i].names[j]);
    }
    EXPECT_JSON(json_get(app_of(status), STR("state")), "{'waiting':{'reason':'PodInitializing'}}");
    EXPECT_TRUE(json_get(of_name(status, "ephemeralContainerStatuses", "e1"), STR("started")) ==
                NULL);
}

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

/* --- phase, reason, message --- */

TEST(a_terminal_phase_never_goes_back_whoever_said_it)
{
    static const char *const phases[] = { "Succeeded", "Failed" };
    for (size_t i = 0; i < KV_COUNT_OF(phases); i++) {
        AUTO_BUF said = { 0 };
        AUTO_BUF yaml = { 0 };
        buf_addf(&said, "{'phase':'%s','reason':'Why','message':'words'}", phases[i]);
        buf_addf(&yaml, "%sstatus: {phase: %s, reason: Why}\n", ONE_APP, phases[i]);
        AUTO_SCENE by_us = scene_of(ONE_APP);
        by_us.maybe_previous = json_of(&by_us, said.p);
        by_us.with.failed_reason = STR("Evicted"); /* too late */
        AUTO_SCENE by_api = scene_of(yaml.p);
        struct scene *both[] = { &by_us, &by_api };
        for (size_t j = 0; j < KV_COUNT_OF(both); j++) {
            const json_val *status =
                tell(both[j],
                     runtime_made("uid-web", a_container("app", RUNTIME_RUNNING), a_sandbox("s1")));
            EXPECT_STR(api_status_phase(status), phases[i]);
            EXPECT_STR(json_str(json_get(status, STR("reason"))), "Why");
            EXPECT_JSON(json_get(condition(status, "Ready"), STR("status")), "'False'");
        }
    }
}

TEST(reason_and_message_stay_with_the_phase)
{
    AUTO_SCENE s = scene_of(ONE_APP);
    s.maybe_previous = json_of(&s, "{'phase':'Running','reason':'Why','message':'words'}");
    const json_val *status = tell(&s, runtime_made("uid-web", a_container("app", RUNTIME_RUNNING)));
    EXPECT_STR(json_str(json_get(status, STR("reason"))), "Why");
    EXPECT_STR(json_str(json_get(status, STR("message"))), "words");
    s.maybe_previous = json_of(&s, "{'phase':'Pending','reason':'Why','message':'words'}");
    status = tell(&s, runtime_made("uid-web", a_container("app", RUNTIME_RUNNING)));
    EXPECT_TRUE(json_get(status, STR("reason")) == NULL);
    EXPECT_TRUE(json_get(status, STR("message")) == NULL);
}

TEST(a_kill_with_a_verdict_fails_the_pod_with_its_reason)
{
    AUTO_SCENE s = scene_of(ONE_APP);
    s.with.failed_reason = STR("DeadlineExceeded");
    s.with.failed_message = STR("it took too long");
    const json_val *status = tell(&s, runtime_made("uid-web", a_container("app", RUNTIME_RUNNING)));
    EXPECT_STR(api_status_phase(status), "Failed");
    EXPECT_STR(json_str(json_get(status, STR("reason"))), "DeadlineExceeded");
    EXPECT_STR(json_str(json_get(status, STR("message"))), "it took too long");
    EXPECT_JSON(json_get(condition(status, "Ready"), STR("reason")), "'PodFailed'");
    s.with.failed_reason = s.with.failed_message = STR_NONE; /* and it stays so */
    status = tell(&s, runtime_made("uid-web", a_container("app", RUNTIME_EXITED)));
    EXPECT_STR(json_str(json_get(status, STR("reason"))), "DeadlineExceeded");
}

TEST(a_termination_that_is_over_decides_the_phase)
{
    AUTO_SCENE s = scene_of(ONE_APP);
    s.with.terminal = true;
    EXPECT_STR(
        api_status_phase(tell(&s, runtime_made("uid-web", a_container("app", RUNTIME_EXITED)))),
        "Succeeded");
}

/* --- conditions --- */

TEST(a_transition_time_moves_only_with_the_status)
{
    AUTO_SCENE s = scene_of(ONE_APP);
    struct probe_words unready = { NULL, { PROBE_SUCCESS, PROBE_FAILURE, PROBE_SUCCESS } };
    tell(&s, runtime_made("uid-web", a_container("app", RUNTIME_RUNNING), a_sandbox("s1")));
    s.with.now_us = (NOW_S + 5) * 1000000 + 999999;
    s.maybe_probes = &unready;
    const json_val *status =
        tell(&s, runtime_made("uid-web", a_container("app", RUNTIME_RUNNING), a_sandbox("s1")));
    EXPECT_JSON(json_get(condition(status, "Ready"), STR("lastTransitionTime")),
                "'2027-01-15T09:00:05Z'");
    EXPECT_JSON(json_get(condition(status, "PodScheduled"), STR("lastTransitionTime")),
                "'2027-01-15T09:00:00Z'");
    EXPECT_JSON(json_get(status, STR("startTime")), "'2027-01-15T09:00:00Z'");
    s.with.now_us = (NOW_S + 60) * 1000000;
    status =
        tell(&s, runtime_made("uid-web", a_container("app", RUNTIME_RUNNING), a_sandbox("s1")));
    EXPECT_JSON(json_get(condition(status, "Ready"), STR("lastTransitionTime")),
                "'2027-01-15T09:00:05Z'");
}

TEST(conditions_and_members_of_others_are_kept)
{
    AUTO_SCENE s = scene_of(
        ONE_APP "status:\n"
                "  conditions:\n"
                "  - {type: lb/up, status: 'True', lastTransitionTime: '2027-01-01T00:00:00Z'}\n"
                "  - {type: Ready, status: 'False', lastTransitionTime: '2027-01-02T00:00:00Z'}\n");
    s.maybe_previous =
        json_of(&s, "{'conditions':[{'type':'lb/up','status':'False'},{'type':'lb/gone',"
                    "'status':'True'},{'type':'DisruptionTarget','status':'True'}],"
                    "'resourceClaimStatuses':[{'name':'gpu'}],'nominatedNodeName':'n'}");
    const json_val *status = tell(&s, runtime_made("uid-web", a_container("app", RUNTIME_RUNNING)));
    /* The API's copy of others' conditions counts, except of the one that is shared. */
    EXPECT_JSON(condition(status, "lb/up"),
                "{'type':'lb/up','status':'True','lastTransitionTime':'2027-01-01T00:00:00Z'}");
    EXPECT_TRUE(condition(status, "lb/gone") == NULL);
    EXPECT_JSON(condition(status, "DisruptionTarget"),
                "{'type':'DisruptionTarget','status':'True'}");
    EXPECT_EQ(json_count(json_get(status, STR("conditions"))), 7);
    EXPECT_JSON(json_get(status, STR("resourceClaimStatuses")), "[{'name':'gpu'}]");
    EXPECT_JSON(json_get(status, STR("nominatedNodeName")), "'n'");
}

/* --- addresses --- */

TEST(pod_addresses_are_one_of_each_family_in_the_nodes_order)
{
    static const struct {
        struct str node[2];
        uint32_t node_count;
        const char *ips, *want;
    } rows[] = {
        { { STR("192.0.2.1") }, 1, "10.0.0.1", "[{'ip':'10.0.0.1'}]" },
        { { STR("192.0.2.1"), STR("2001:db8::1") },
          2,
          "fd00::7 10.0.0.1",
          "[{'ip':'10.0.0.1'},{'ip':'fd00::7'}]" },
        { { STR("2001:db8::1"), STR("192.0.2.1") },
          2,
          "10.0.0.1 fd00::7",
          "[{'ip':'fd00::7'},{'ip':'10.0.0.1'}]" },
        { { STR("192.0.2.1") },
          1,
          "10.0.0.1 10.0.0.2 fd00::7",
          "[{'ip':'10.0.0.1'},{'ip':'fd00::7'}]" },
        { { STR("192.0.2.1") }, 1, "fd00::7", "[{'ip':'fd00::7'}]" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        AUTO_SCENE s = scene_of(ONE_APP);
        s.with.node_ips = (struct str_list){ rows[i].node, rows[i].node_count };
        const json_val *status =
            tell(&s, runtime_made("uid-web", a_sandbox("s1", .ips = rows[i].ips)));
        EXPECT_JSON(json_get(status, STR("podIPs")), rows[i].want);
        EXPECT_TRUE(json_equal(json_get(status, STR("podIP")),
                               json_path(json_at(json_get(status, STR("podIPs")), 0), "ip")));
        EXPECT_EQ(json_count(json_get(status, STR("hostIPs"))), rows[i].node_count);
    }
}

TEST(a_finished_pod_keeps_the_address_that_it_had)
{
    AUTO_SCENE s = scene_of(ONE_APP);
    tell(&s, runtime_made("uid-web", a_container("app", RUNTIME_RUNNING), a_sandbox("s1")));
    const json_val *status =
        tell(&s, runtime_made("uid-web", a_sandbox("s1", .not_ready = true, .ips = "")));
    EXPECT_JSON(json_get(status, STR("podIPs")), "[{'ip':'10.88.0.7'}]");
    /* A sandbox that is up without one has none. */
    status = tell(&s, runtime_made("uid-web", a_sandbox("s2", .ips = "")));
    EXPECT_TRUE(json_get(status, STR("podIP")) == NULL);
}

TEST(a_pod_on_the_hosts_network_takes_the_nodes_address_once)
{
    static const struct str other[] = { STR("198.51.100.1") };
    AUTO_SCENE s = scene_of("metadata: {name: web}\n"
                            "spec: {hostNetwork: true, containers: [{name: app, image: app}]}\n");
    const json_val *status =
        tell(&s, runtime_made("uid-web", a_sandbox("s1", .host_network = true)));
    EXPECT_JSON(json_get(status, STR("podIPs")), "[{'ip':'192.0.2.10'}]");
    s.with.node_ips = (struct str_list){ other, 1 };
    status = tell(&s, runtime_made("uid-web", a_sandbox("s1", .host_network = true)));
    EXPECT_JSON(json_get(status, STR("podIP")), "'192.0.2.10'");
    EXPECT_JSON(json_get(status, STR("hostIP")), "'198.51.100.1'");
}

TEST(the_class_of_service_is_told)
{
    AUTO_SCENE s = scene_of("metadata: {name: web}\nspec: {containers: [{name: app, image: app,"
                            " resources: {limits: {cpu: 1, memory: 1Gi}}}]}\n");
    EXPECT_JSON(json_get(tell(&s, runtime_empty("uid-web")), STR("qosClass")), "'Guaranteed'");
}

/* --- the end --- */

static const json_val *terminate(struct scene *s, const json_val *status)
{
    AUTO_JSON_BUILD b = { 0 };
    struct buf text = { 0 };
    json_build_init(&b);
    json_write_mut(api_status_terminate(&b, s->pod, status, (NOW_S + 7) * 1000000), &text);
    return keep(s, &text);
}

TEST(at_the_end_what_never_told_its_own_has_ended_and_the_pod_has_failed)
{
    AUTO_SCENE s = scene_of("metadata: {name: web}\n"
                            "spec: {containers: [{name: app, image: a}, {name: b, image: b}]}\n");
    const json_val *status =
        terminate(&s, tell(&s, runtime_made("uid-web", a_container("app", RUNTIME_RUNNING),
                                            a_container("b", RUNTIME_EXITED), a_sandbox("s1"))));
    EXPECT_JSON(json_get(app_of(status), STR("state")), LOST);
    EXPECT_FALSE(json_bool(json_get(app_of(status), STR("ready"))));
    EXPECT_JSON(json_path(of_name(status, "containerStatuses", "b"), "state.terminated.exitCode"),
                "0");
    EXPECT_STR(api_status_phase(status), "Failed");
    EXPECT_JSON(condition(status, "Ready"),
                "{'type':'Ready','status':'False','lastProbeTime':null,"
                "'lastTransitionTime':'2027-01-15T09:00:00Z','reason':'PodFailed'}");
}

TEST(at_the_end_a_ready_pod_becomes_unready_now)
{
    AUTO_SCENE s = scene_of(ONE_APP);
    const json_val *status = terminate(
        &s,
        tell(&s, runtime_made("uid-web", a_container("app", RUNTIME_RUNNING), a_sandbox("s1"))));
    EXPECT_JSON(json_get(condition(status, "ContainersReady"), STR("lastTransitionTime")),
                "'2027-01-15T09:00:07Z'");
    EXPECT_JSON(json_get(condition(status, "PodScheduled"), STR("status")), "'True'");
}

TEST(a_phase_that_is_terminal_stays_at_the_end_and_a_static_pod_has_none)
{
    AUTO_SCENE s = scene_of(ONE_APP_NEVER);
    EXPECT_STR(api_status_phase(terminate(
                   &s, tell(&s, runtime_made("uid-web", a_container("app", RUNTIME_EXITED))))),
               "Succeeded");
    AUTO_SCENE fixed = scene_of(ONE_APP);
    ((struct node_pod *)fixed.pod)->source = POD_FROM_FILE;
    const json_val *status = terminate(
        &fixed, tell(&fixed, runtime_made("uid-web", a_container("app", RUNTIME_RUNNING))));
    EXPECT_STR(api_status_phase(status), "Running");
    EXPECT_JSON(json_get(app_of(status), STR("state")), LOST);
}

TEST(containers_that_had_no_turn_are_not_said_to_have_ended)
{
    AUTO_SCENE s = scene_of(WITH_INIT);
    const json_val *status =
        terminate(&s, tell(&s, runtime_made("uid-web", a_container("b", RUNTIME_RUNNING))));
    EXPECT_JSON(json_get(of_name(status, "initContainerStatuses", "b"), STR("state")), LOST);
    EXPECT_TRUE(json_path(of_name(status, "initContainerStatuses", "a"), "state.waiting") != NULL);
    EXPECT_TRUE(json_path(app_of(status), "state.waiting") != NULL);
    EXPECT_STR(api_status_phase(status), "Failed");
}

/* --- what may follow, what is new --- */

TEST(an_ended_container_that_may_not_restart_stays_ended)
{
    static const struct {
        const char *policy;
        int exit_code;
        bool regular, init;
    } rows[] = {
        { "Always", 0, true, true },     { "Always", 1, true, true },
        { "OnFailure", 0, false, true }, /* init containers run again in a new sandbox */
        { "OnFailure", 1, true, true },  { "Never", 0, false, false },
        { "Never", 1, false, false },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        for (int init = 0; init < 2; init++) {
            AUTO_BUF yaml = { 0 };
            AUTO_BUF before = { 0 };
            AUTO_BUF after = { 0 };
            const char *list = init ? "initContainerStatuses" : "containerStatuses";
            buf_addf(&yaml,
                     "metadata: {name: web}\nspec: {restartPolicy: %s,"
                     " initContainers: [{name: i, image: i}], containers: [{name: c, image: c}]}\n",
                     rows[i].policy);
            buf_addf(&before, "{'%s':[{'name':'%s','state':{'terminated':{'exitCode':%d}}}]}", list,
                     init ? "i" : "c", rows[i].exit_code);
            buf_addf(&after, "{'%s':[{'name':'%s','state':{'running':{}}}]}", list,
                     init ? "i" : "c");
            AUTO_SCENE s = scene_of(yaml.p);
            struct err why = { 0 };
            const json_val *old = json_of(&s, before.p), *new = json_of(&s, after.p);
            EXPECT_EQ(api_status_may_follow(s.pod, old, new, &why),
                      init ? rows[i].init : rows[i].regular);
            EXPECT_TRUE(api_status_may_follow(s.pod, old, old, &why));
            EXPECT_TRUE(api_status_may_follow(s.pod, new, old, &why));
            EXPECT_TRUE(api_status_may_follow(s.pod, NULL, new, &why));
        }
    }
}

TEST(a_refusal_names_the_container)
{
    AUTO_SCENE s = scene_of(ONE_APP_NEVER);
    struct err why = { 0 };
    const json_val *old =
        json_of(&s, "{'containerStatuses':[{'name':'app','state':{'terminated':{'exitCode':0}}}]}");
    const json_val *new =
        json_of(&s, "{'containerStatuses':[{'name':'app','state':{'waiting':{}}}]}");
    EXPECT_FALSE(api_status_may_follow(s.pod, old, new, &why));
    EXPECT_HAS(str_of(why.text), "\"app\"");
}

TEST(statuses_are_the_same_but_for_conditions_of_others)
{
    AUTO_SCENE s = scene_of(ONE_APP);
    static const struct {
        const char *a, *b;
        bool same;
    } rows[] = {
        { "{'phase':'Running','conditions':[{'type':'Ready','status':'True'}]}",
          "{'conditions':[{'type':'lb/up','status':'True'},{'status':'True','type':'Ready'}],"
          "'phase':'Running'}",
          true },
        { "{'phase':'Running'}", "{'phase':'Pending'}", false },
        { "{'phase':'Running'}", "{'phase':'Running','podIP':'10.0.0.1'}", false },
        { "{'conditions':[{'type':'Ready','status':'True'}]}",
          "{'conditions':[{'type':'Ready','status':'False'}]}", false },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        const json_val *a = json_of(&s, rows[i].a), *b = json_of(&s, rows[i].b);
        EXPECT_EQ(api_status_same(a, b), rows[i].same);
        EXPECT_EQ(api_status_same(b, a), rows[i].same);
    }
}

TEST(the_same_seen_twice_is_told_the_same)
{
    AUTO_SCENE s = scene_of(WITH_INIT);
    const json_val *first = NULL;
    for (int i = 0; i < 3; i++) {
        s.with.now_us = (NOW_S + i) * 1000000;
        const json_val *status =
            tell(&s, runtime_made("uid-web", a_container("app", RUNTIME_RUNNING, .restarts = 1),
                                  a_container("app", RUNTIME_EXITED, .exit_code = 1),
                                  a_container("z", RUNTIME_UNKNOWN),
                                  a_container("b", RUNTIME_EXITED), a_sandbox("s1")));
        first = first ? first : status;
        EXPECT_TRUE(api_status_same(first, status));
    }
}

TEST(a_previous_status_of_any_shape_does_no_harm)
{
    static const char *const shapes[] = {
        "[]",
        "7",
        "{'phase':5,'conditions':{},'containerStatuses':'x','podIPs':1,'startTime':'no'}",
        "{'conditions':[1,{'type':2},{'type':'Ready','status':'True','lastTransitionTime':'x'}],"
        "'containerStatuses':[3,{'name':'app','restartCount':9223372036854775807,"
        "'state':{'running':{'startedAt':true}},'lastState':[]}]}",
    };
    for (size_t i = 0; i < KV_COUNT_OF(shapes); i++) {
        AUTO_SCENE s = scene_of(ONE_APP);
        const json_val *odd = s.maybe_previous = json_of(&s, shapes[i]);
        const json_val *status = tell(&s, runtime_empty("uid-web"));
        EXPECT_TRUE(json_is_string(json_get(status, STR("startTime"))));
        EXPECT_FALSE(api_status_same(odd, status));
        EXPECT_TRUE(api_status_may_follow(s.pod, odd, status, NULL));
        EXPECT_TRUE(json_is_object(terminate(&s, odd)));
    }
}

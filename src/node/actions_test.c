#include "node/actions_testing.h"
#include "node/node_pod_testing.h"
#include "node/runtime_testing.h"

/* --- asking --- */

struct asking {
    struct arena arena;
    struct probe_words *maybe_probes;
};

static void asking_done(struct asking *a)
{
    arena_done(&a->arena);
}
#define AUTO_ASKING __attribute__((cleanup(asking_done))) struct asking

/* The actions in words; the status is released. */
static struct str ask(struct asking *a, const struct node_pod *pod,
                      const struct runtime_status *status)
{
    struct pod_actions actions = pod_actions(&a->arena, pod, status, probes_say(a->maybe_probes));
    struct str words = actions_words(&a->arena, &actions);
    EXPECT_EQ(pod_actions_none(&actions), str_eqz(words, "nothing"));
    runtime_status_unref(status);
    return words;
}

static const char *const policies[] = { "Always", "OnFailure", "Never" };
enum { ALWAYS, ON_FAILURE, NEVER, POLICY_COUNT };

static const struct node_pod *pod_with(const char *policy, const char *spec)
{
    AUTO_BUF yaml = { 0 };
    buf_addf(&yaml, "metadata: {name: web}\nspec:\n  restartPolicy: %s\n%s", policy, spec);
    return pod_from_yaml(yaml.p);
}

#define ONE_APP "  containers: [{name: app, image: app:1}]\n"
#define TWO_APPS "  containers: [{name: app, image: app:1}, {name: log, image: log:1}]\n"
#define INITS_A_B "  initContainers: [{name: a, image: a:1}, {name: b, image: b:1}]\n" ONE_APP
#define SIDECAR_THEN_B                                                                             \
    "  initContainers: [{name: s, image: s:1, restartPolicy: Always}, {name: b, image: b:1}]\n" ONE_APP
#define A_THEN_SIDECAR                                                                             \
    "  initContainers: [{name: a, image: a:1}, {name: s, image: s:1, restartPolicy: Always}]\n" ONE_APP

/* The states that an instance can be in, and none. */
enum instance { ABSENT, CREATED, RUNNING, EXITED_0, EXITED_1, UNKNOWN, INSTANCE_COUNT };
static const char *const instance_names[] = { "absent",   "created",  "running",
                                              "exited 0", "exited 1", "unknown" };

static size_t add_instance(struct made *items, size_t count, const char *name, enum instance is,
                           const char *hash)
{
    static const enum runtime_state states[] = {
        0, RUNTIME_CREATED, RUNTIME_RUNNING, RUNTIME_EXITED, RUNTIME_EXITED, RUNTIME_UNKNOWN
    };
    if (is == ABSENT)
        return count;
    items[count] = a_container(name, states[is], .hash = hash, .exit_code = is == EXITED_1);
    return count + 1;
}

static void expect_words(struct str got, const char *want, const char *row)
{
    if (!str_eqz(got, want))
        fail_msg("%s: got \"%.*s\", want \"%s\"", row, STR_ARG(got), want);
}

/* --- the sandbox --- */

TEST(a_new_sandbox_is_needed_for_these_reasons_in_this_order)
{
    AUTO_NODE_POD pod = pod_with("Always", ONE_APP);
    AUTO_NODE_POD host = pod_with("Always", "  hostNetwork: true\n" ONE_APP);
    const struct {
        const struct node_pod *pod;
        struct made sandboxes[2];
        size_t count;
        const char *why; /* NULL: it is fine */
        uint32_t attempt;
    } rows[] = {
        { pod, { { 0 } }, 0, "the pod has no sandbox yet", 0 },
        { pod,
          { a_sandbox("s2", .attempt = 1), a_sandbox("s1") },
          2,
          "more than one sandbox is ready",
          2 },
        { pod, { a_sandbox("s1", .not_ready = true) }, 1, "the sandbox is not ready", 1 },
        { pod,
          { a_sandbox("s2", .attempt = 4, .not_ready = true), a_sandbox("s1", .attempt = 3) },
          2,
          "the sandbox is not ready",
          5 },
        { pod,
          { a_sandbox("s1", .attempt = 7, .host_network = true) },
          1,
          "the sandbox is in another network namespace than the pod asks for",
          8 },
        { host,
          { a_sandbox("s1") },
          1,
          "the sandbox is in another network namespace than the pod asks for",
          1 },
        { pod, { a_sandbox("s1", .ips = "") }, 1, "the sandbox has no IP address", 1 },
        { host, { a_sandbox("s1", .host_network = true) }, 1, NULL, 0 },
        { pod, { a_sandbox("s1", .attempt = 3) }, 1, NULL, 3 },
        { pod, { a_sandbox("s2", .attempt = 1), a_sandbox("s1", .not_ready = true) }, 2, NULL, 1 },
        /* The clock was set back between the two: the attempt is still one that is free. */
        { pod,
          { a_sandbox("s1", .attempt = 4, .not_ready = true),
            a_sandbox("s2", .attempt = 5, .not_ready = true) },
          2,
          "the sandbox is not ready",
          6 },
        { pod,
          { a_sandbox("s1", .attempt = UINT32_MAX, .not_ready = true) },
          1,
          "the sandbox is not ready",
          UINT32_MAX },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        AUTO_STATUS status = runtime_make("uid-web", rows[i].sandboxes, rows[i].count);
        struct str why;
        uint32_t attempt;
        EXPECT_EQ(pod_needs_sandbox(rows[i].pod, status, &attempt, &why), rows[i].why != NULL);
        EXPECT_STR(why, rows[i].why);
        EXPECT_EQ(attempt, rows[i].attempt);
    }
}

TEST(a_pod_that_never_ran_gets_a_sandbox_and_its_containers)
{
    AUTO_ASKING a = { 0 };
    for (int p = 0; p < POLICY_COUNT; p++) {
        AUTO_NODE_POD pod = pod_with(policies[p], TWO_APPS);
        EXPECT_STR(ask(&a, pod, runtime_empty("uid-web")),
                   "kill pod, make sandbox 0, start app, start log");
    }
}

TEST(a_new_sandbox_starts_from_the_first_init_container)
{
    AUTO_ASKING a = { 0 };
    AUTO_NODE_POD pod = pod_with("Always", INITS_A_B);
    EXPECT_STR(ask(&a, pod, runtime_empty("uid-web")), "kill pod, make sandbox 0, init a");
    EXPECT_STR(
        ask(&a, pod,
            runtime_made("uid-web", a_sandbox("s1", .not_ready = true),
                         a_container("app", RUNTIME_RUNNING), a_container("b", RUNTIME_EXITED),
                         a_container("a", RUNTIME_EXITED))),
        "kill pod, make sandbox 1, init a");
}

TEST(a_pod_whose_sandbox_died_is_made_anew_as_its_policy_says)
{
    /* app exited 0 or 1 or still shown as running, log exited 1. */
    static const struct {
        enum instance app;
        const char *want[POLICY_COUNT];
    } rows[] = {
        { EXITED_0,
          { "kill pod, make sandbox 1, start app, start log", "kill pod, make sandbox 1, start log",
            "kill pod" } },
        { EXITED_1,
          { "kill pod, make sandbox 1, start app, start log",
            "kill pod, make sandbox 1, start app, start log", "kill pod" } },
        { RUNNING,
          { "kill pod, make sandbox 1, start app, start log",
            "kill pod, make sandbox 1, start app, start log", "kill pod" } },
        { ABSENT,
          { "kill pod, make sandbox 1, start app, start log",
            "kill pod, make sandbox 1, start app, start log", "kill pod" } },
    };
    AUTO_ASKING a = { 0 };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        for (int p = 0; p < POLICY_COUNT; p++) {
            AUTO_NODE_POD pod = pod_with(policies[p], TWO_APPS);
            struct made items[3] = { a_sandbox("s1", .not_ready = true) };
            size_t count = add_instance(items, 1, "log", EXITED_1, NULL);
            count = add_instance(items, count, "app", rows[i].app, NULL);
            expect_words(ask(&a, pod, runtime_make("uid-web", items, count)), rows[i].want[p],
                         policies[p]);
        }
    }
}

TEST(a_sandbox_that_died_before_any_container_is_tried_again_whatever_the_policy)
{
    AUTO_ASKING a = { 0 };
    for (int p = 0; p < POLICY_COUNT; p++) {
        AUTO_NODE_POD pod = pod_with(policies[p], ONE_APP);
        EXPECT_STR(ask(&a, pod, runtime_made("uid-web", a_sandbox("s1", .not_ready = true))),
                   "kill pod, make sandbox 1, start app");
    }
}

TEST(containers_without_any_sandbox_left_are_no_reason_to_leave_out_the_others)
{
    AUTO_ASKING a = { 0 };
    AUTO_NODE_POD pod = pod_with("Never", TWO_APPS);
    EXPECT_STR(ask(&a, pod, runtime_made("uid-web", a_container("log", RUNTIME_EXITED))),
               "kill pod, make sandbox 0, start app");
}

TEST(a_pod_whose_containers_have_all_succeeded_gets_no_new_sandbox)
{
    AUTO_ASKING a = { 0 };
    for (int p = ON_FAILURE; p < POLICY_COUNT; p++) {
        AUTO_NODE_POD pod = pod_with(policies[p], INITS_A_B);
        EXPECT_STR(ask(&a, pod,
                       runtime_made("uid-web", a_sandbox("s1", .not_ready = true),
                                    a_container("app", RUNTIME_EXITED))),
                   "kill pod");
        /* Not even if every trace of the sandbox is gone: it would run a second time. */
        EXPECT_STR(ask(&a, pod, runtime_made("uid-web", a_container("app", RUNTIME_EXITED))),
                   "kill pod");
    }
}

TEST(a_container_with_a_policy_of_its_own_follows_it_into_a_new_sandbox)
{
    AUTO_ASKING a = { 0 };
    AUTO_NODE_POD pod = pod_with("Never", "  containers: [{name: app, image: a:1},"
                                          " {name: log, image: l:1, restartPolicy: Always}]\n");
    EXPECT_STR(ask(&a, pod,
                   runtime_made("uid-web", a_sandbox("s1", .not_ready = true),
                                a_container("app", RUNTIME_EXITED, .exit_code = 1),
                                a_container("log", RUNTIME_EXITED))),
               "kill pod, make sandbox 1, start log");
}

/* --- regular containers --- */

enum hash_is { SAME, FOREIGN, NONE, CHANGED, HASH_COUNT };
enum probe_is { FINE, NOT_YET, LIVENESS_FAILED, STARTUP_FAILED, PROBE_COUNT };

static const char *hash_text(enum hash_is is, const struct node_container *container)
{
    const char *texts[] = { container->hash, "1a2b3c4d", "", "0123456789abcdef" };
    return texts[is];
}

static struct probe_words probe_case(enum probe_is is)
{
    struct probe_words words = { .probes = { PROBE_SUCCESS, PROBE_SUCCESS, PROBE_SUCCESS } };
    if (is == NOT_YET)
        words.probes = (struct container_probes){ PROBE_UNKNOWN, PROBE_UNKNOWN, PROBE_UNKNOWN };
    if (is == LIVENESS_FAILED)
        words.probes.liveness = PROBE_FAILURE;
    if (is == STARTUP_FAILED)
        words.probes.startup = PROBE_FAILURE;
    return words;
}

static const char *want_regular(enum instance is, int policy, enum hash_is hash,
                                enum probe_is probe)
{
    switch (is) {
    case ABSENT:
    case CREATED:
        return "start app";
    case UNKNOWN:
        return "kill app-0 unknown, start app";
    case EXITED_0:
        return policy == ALWAYS ? "start app" : "kill pod";
    case EXITED_1:
        return policy == NEVER ? "kill pod" : "start app";
    case RUNNING:
        if (hash == CHANGED)
            return "kill app-0 changed, start app";
        if (probe == LIVENESS_FAILED)
            return policy == NEVER ? "kill pod, kill app-0 liveness"
                                   : "kill app-0 liveness, start app";
        if (probe == STARTUP_FAILED)
            return policy == NEVER ? "kill pod, kill app-0 startup"
                                   : "kill app-0 startup, start app";
        return "nothing";
    case INSTANCE_COUNT:
        break;
    }
    return NULL;
}

TEST(a_regular_container_is_started_kept_or_killed_by_state_policy_hash_and_probes)
{
    AUTO_ASKING a = { 0 };
    for (int policy = 0; policy < POLICY_COUNT; policy++) {
        AUTO_NODE_POD pod = pod_with(policies[policy], ONE_APP);
        for (int is = 0; is < INSTANCE_COUNT; is++) {
            for (int hash = 0; hash < HASH_COUNT; hash++) {
                for (int probe = 0; probe < PROBE_COUNT; probe++) {
                    struct probe_words words = probe_case((enum probe_is)probe);
                    struct made items[2] = { a_sandbox("s1") };
                    size_t count =
                        add_instance(items, 1, "app", (enum instance)is,
                                     hash_text((enum hash_is)hash, &pod->containers.items[0]));
                    a.maybe_probes = &words;
                    expect_words(ask(&a, pod, runtime_make("uid-web", items, count)),
                                 want_regular((enum instance)is, policy, (enum hash_is)hash,
                                              (enum probe_is)probe),
                                 instance_names[is]);
                }
            }
        }
    }
}

TEST(a_container_that_another_agent_started_is_left_alone)
{
    AUTO_NODE_POD pod = pod_with("Always", ONE_APP);
    AUTO_ASKING a = { 0 };
    static const char *const foreign[] = { "", "8a7b6c5d", "1",
                                           "0123456789abcdef0123456789abcdef" };
    for (size_t i = 0; i < KV_COUNT_OF(foreign); i++)
        EXPECT_STR(ask(&a, pod,
                       runtime_made("uid-web", a_sandbox("s1"),
                                    a_container("app", RUNTIME_RUNNING, .hash = foreign[i]))),
                   "nothing");
}

TEST(one_container_that_is_done_does_not_end_the_others)
{
    AUTO_NODE_POD pod = pod_with("Never", TWO_APPS);
    AUTO_ASKING a = { 0 };
    EXPECT_STR(ask(&a, pod,
                   runtime_made("uid-web", a_sandbox("s1"), a_container("log", RUNTIME_RUNNING),
                                a_container("app", RUNTIME_EXITED, .exit_code = 1))),
               "nothing");
}

TEST(the_newest_instance_of_a_name_decides)
{
    AUTO_NODE_POD pod = pod_with("Always", ONE_APP);
    AUTO_ASKING a = { 0 };
    EXPECT_STR(ask(&a, pod,
                   runtime_made("uid-web", a_sandbox("s1"),
                                a_container("app", RUNTIME_RUNNING, .restarts = 1),
                                a_container("app", RUNTIME_EXITED, .exit_code = 1))),
               "nothing");
    EXPECT_STR(ask(&a, pod,
                   runtime_made("uid-web", a_sandbox("s1"),
                                a_container("app", RUNTIME_UNKNOWN, .restarts = 1),
                                a_container("app", RUNTIME_UNKNOWN))),
               "kill app-1 unknown, start app");
}

TEST(containers_that_the_spec_does_not_name_are_left_alone)
{
    AUTO_NODE_POD pod = pod_with("Always", ONE_APP);
    AUTO_ASKING a = { 0 };
    EXPECT_STR(ask(&a, pod,
                   runtime_made("uid-web", a_sandbox("s1"), a_container("other", RUNTIME_RUNNING),
                                a_container("app", RUNTIME_RUNNING))),
               "nothing");
}

TEST(a_policy_of_the_container_overrides_the_pods)
{
    static const struct {
        const char *pod, *container;
        int exit_code;
        const char *want;
    } rows[] = {
        { "Never", "Always", 0, "start app" },     { "Never", "OnFailure", 1, "start app" },
        { "Never", "OnFailure", 0, "kill pod" },   { "Always", "Never", 1, "kill pod" },
        { "OnFailure", "Always", 0, "start app" }, { "OnFailure", "Never", 1, "kill pod" },
        { "Always", "OnFailure", 0, "kill pod" },
    };
    AUTO_ASKING a = { 0 };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        AUTO_BUF spec = { 0 };
        buf_addf(&spec, "  containers: [{name: app, image: a:1, restartPolicy: %s}]\n",
                 rows[i].container);
        AUTO_NODE_POD pod = pod_with(rows[i].pod, spec.p);
        expect_words(
            ask(&a, pod,
                runtime_made("uid-web", a_sandbox("s1"),
                             a_container("app", RUNTIME_EXITED, .exit_code = rows[i].exit_code))),
            rows[i].want, rows[i].container);
    }
}

TEST(a_kill_tells_why_and_how_long_the_probe_lets_it_take)
{
    AUTO_NODE_POD pod = pod_with("Always", "  containers:\n"
                                           "  - name: app\n"
                                           "    image: app:1\n"
                                           "    livenessProbe: {tcpSocket: {port: 80},"
                                           " terminationGracePeriodSeconds: 7}\n"
                                           "    startupProbe: {tcpSocket: {port: 80}}\n");
    AUTO_ARENA arena = { 0 };
    static const struct {
        enum probe_is probe;
        const char *hash, *message;
        int64_t grace_s; /* 0: none */
    } rows[] = {
        { LIVENESS_FAILED, "", "Container app: its liveness probe failed, it will be restarted",
          7 },
        { STARTUP_FAILED, "", "Container app: its startup probe failed, it will be restarted", 0 },
        { FINE, "0123456789abcdef", "Container app: its definition changed, it will be restarted",
          0 },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        struct probe_words words = probe_case(rows[i].probe);
        AUTO_STATUS status = runtime_made(
            "uid-web", a_sandbox("s1"), a_container("app", RUNTIME_RUNNING, .hash = rows[i].hash));
        struct pod_actions actions = pod_actions(&arena, pod, status, probes_say(&words));
        EXPECT_EQ(actions.kill.count, 1);
        EXPECT_STR(actions.kill.items[0].message, rows[i].message);
        EXPECT_EQ(actions.kill.items[0].grace_s.set, rows[i].grace_s != 0);
        EXPECT_EQ(actions.kill.items[0].grace_s.value, rows[i].grace_s);
    }
}

/* --- init containers --- */

/* The words for what the latest init container with an instance leads to. */
static struct str want_init(struct arena *arena, const char *name, const char *next,
                            enum instance is, int policy)
{
    switch (is) {
    case ABSENT:
    case RUNNING:
        return STR("nothing");
    case EXITED_0:
        return str_of(next);
    case CREATED:
        return arena_strf(arena, "init %s", name);
    case EXITED_1:
        return policy == NEVER ? STR("kill pod") : arena_strf(arena, "init %s", name);
    case UNKNOWN:
        return policy == NEVER ? STR("kill pod")
                               : arena_strf(arena, "kill %s-0 unknown, init %s", name, name);
    case INSTANCE_COUNT:
        break;
    }
    return STR_NONE;
}

TEST(plain_init_containers_run_one_after_another_and_the_latest_instance_decides)
{
    AUTO_ASKING a = { 0 };
    for (int policy = 0; policy < POLICY_COUNT; policy++) {
        AUTO_NODE_POD pod = pod_with(policies[policy], INITS_A_B);
        for (int first = 0; first < INSTANCE_COUNT; first++) {
            for (int second = 0; second < INSTANCE_COUNT; second++) {
                struct made items[3] = { a_sandbox("s1") };
                size_t count = add_instance(items, 1, "b", (enum instance)second, NULL);
                count = add_instance(items, count, "a", (enum instance)first, NULL);
                struct str want;
                if (second != ABSENT)
                    want = want_init(&a.arena, "b", "start app", (enum instance)second, policy);
                else if (first != ABSENT)
                    want = want_init(&a.arena, "a", "init b", (enum instance)first, policy);
                else
                    want = STR("init a");
                expect_words(ask(&a, pod, runtime_make("uid-web", items, count)), want.p,
                             instance_names[second]);
            }
        }
    }
}

TEST(an_init_container_that_was_killed_for_memory_has_failed_even_with_exit_code_0)
{
    AUTO_ASKING a = { 0 };
    for (int p = 0; p < POLICY_COUNT; p++) {
        AUTO_NODE_POD pod = pod_with(policies[p], INITS_A_B);
        EXPECT_STR(ask(&a, pod,
                       runtime_made("uid-web", a_sandbox("s1"),
                                    a_container("a", RUNTIME_EXITED, .reason = "OOMKilled"))),
                   p == NEVER ? "kill pod" : "init a");
    }
}

TEST(once_a_regular_container_exists_in_the_sandbox_plain_init_containers_are_over)
{
    AUTO_ASKING a = { 0 };
    for (int policy = 0; policy < POLICY_COUNT; policy++) {
        AUTO_NODE_POD pod = pod_with(policies[policy], INITS_A_B);
        for (int is = 0; is < INSTANCE_COUNT; is++) {
            struct made items[3] = { a_sandbox("s1"), a_container("app", RUNTIME_RUNNING) };
            size_t count = add_instance(items, 2, "b", (enum instance)is, NULL);
            expect_words(ask(&a, pod, runtime_make("uid-web", items, count)), "nothing",
                         instance_names[is]);
        }
    }
}

TEST(what_ran_in_an_earlier_sandbox_does_not_initialise_this_one)
{
    AUTO_NODE_POD pod = pod_with("Always", INITS_A_B);
    AUTO_ASKING a = { 0 };
    EXPECT_STR(ask(&a, pod,
                   runtime_made("uid-web", a_sandbox("s2", .attempt = 1),
                                a_sandbox("s1", .not_ready = true),
                                a_container("app", RUNTIME_EXITED, .in = "s1"),
                                a_container("b", RUNTIME_EXITED, .in = "s1"),
                                a_container("a", RUNTIME_EXITED, .in = "s1"))),
               "init a");
}

/* --- sidecars --- */

TEST(a_sidecar_that_has_started_lets_the_next_one_begin_and_runs_on)
{
    struct probe_words not_started = { "s-0", { PROBE_SUCCESS, PROBE_SUCCESS, PROBE_UNKNOWN } };
    struct probe_words failed = { "s-0", { PROBE_SUCCESS, PROBE_SUCCESS, PROBE_FAILURE } };
    struct probe_words sick = { "s-0", { PROBE_FAILURE, PROBE_SUCCESS, PROBE_SUCCESS } };
    const struct {
        enum instance s, b;
        struct probe_words *maybe_probes;
        const char *hash, *want;
    } rows[] = {
        { ABSENT, ABSENT, NULL, NULL, "init s" },
        { CREATED, ABSENT, NULL, NULL, "init s" },
        { RUNNING, ABSENT, NULL, NULL, "init b" },
        { RUNNING, ABSENT, &not_started, NULL, "nothing" },
        { RUNNING, ABSENT, &failed, NULL, "kill s-0 startup, init s" },
        { RUNNING, ABSENT, &sick, NULL, "kill s-0 liveness, init s, init b" },
        { RUNNING, ABSENT, NULL, "0123456789abcdef", "kill s-0 changed, init s, init b" },
        { RUNNING, ABSENT, &not_started, "0123456789abcdef", "kill s-0 changed, init s" },
        { EXITED_0, ABSENT, NULL, NULL, "init s" },
        { EXITED_1, ABSENT, NULL, NULL, "init s" },
        { UNKNOWN, ABSENT, NULL, NULL, "kill s-0 unknown, init s" },
        /* While a later init container is under way the sidecar is only kept running. */
        { RUNNING, RUNNING, NULL, NULL, "nothing" },
        { RUNNING, RUNNING, &not_started, NULL, "nothing" },
        { RUNNING, RUNNING, &sick, NULL, "kill s-0 liveness, init s" },
        { EXITED_0, RUNNING, NULL, NULL, "init s" },
        { ABSENT, RUNNING, NULL, NULL, "init s" },
        { RUNNING, EXITED_0, NULL, NULL, "start app" },
        { EXITED_1, EXITED_0, NULL, NULL, "init s, start app" },
    };
    AUTO_ASKING a = { 0 };
    for (int policy = 0; policy < POLICY_COUNT; policy++) { /* a sidecar's own is Always */
        AUTO_NODE_POD pod = pod_with(policies[policy], SIDECAR_THEN_B);
        for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
            struct made items[3] = { a_sandbox("s1") };
            size_t count = add_instance(items, 1, "b", rows[i].b, NULL);
            count = add_instance(items, count, "s", rows[i].s, rows[i].hash);
            a.maybe_probes = rows[i].maybe_probes;
            expect_words(ask(&a, pod, runtime_make("uid-web", items, count)), rows[i].want,
                         instance_names[rows[i].s]);
        }
    }
}

TEST(a_sidecar_at_the_end_initialises_the_pod_once_it_has_started)
{
    struct probe_words not_started = { "s-0", { PROBE_SUCCESS, PROBE_SUCCESS, PROBE_UNKNOWN } };
    const struct {
        enum instance a, s, app;
        struct probe_words *maybe_probes;
        const char *want;
    } rows[] = {
        { EXITED_0, ABSENT, ABSENT, NULL, "init s" },
        { EXITED_0, RUNNING, ABSENT, NULL, "start app" },
        { EXITED_0, RUNNING, ABSENT, &not_started, "nothing" },
        { ABSENT, RUNNING, ABSENT, NULL, "start app" }, /* `a` was tidied away */
        { EXITED_1, RUNNING, ABSENT, NULL, "start app" },
        { EXITED_0, RUNNING, RUNNING, NULL, "nothing" },
        { EXITED_0, RUNNING, RUNNING, &not_started, "nothing" },
        { EXITED_0, EXITED_1, RUNNING, NULL, "init s" },
        { EXITED_0, ABSENT, RUNNING, NULL, "init s" },
        { EXITED_0, UNKNOWN, RUNNING, NULL, "kill s-0 unknown, init s" },
    };
    AUTO_ASKING a = { 0 };
    AUTO_NODE_POD pod = pod_with("OnFailure", A_THEN_SIDECAR);
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        struct made items[4] = { a_sandbox("s1") };
        size_t count = add_instance(items, 1, "app", rows[i].app, NULL);
        count = add_instance(items, count, "s", rows[i].s, NULL);
        count = add_instance(items, count, "a", rows[i].a, NULL);
        a.maybe_probes = rows[i].maybe_probes;
        expect_words(ask(&a, pod, runtime_make("uid-web", items, count)), rows[i].want,
                     instance_names[rows[i].s]);
    }
}

TEST(sidecars_do_not_keep_a_pod_alive_whose_containers_are_done)
{
    AUTO_ASKING a = { 0 };
    AUTO_NODE_POD pod = pod_with("Never", A_THEN_SIDECAR);
    EXPECT_STR(ask(&a, pod,
                   runtime_made("uid-web", a_sandbox("s1"),
                                a_container("app", RUNTIME_EXITED, .exit_code = 3),
                                a_container("s", RUNTIME_RUNNING))),
               "kill pod");
    EXPECT_STR(ask(&a, pod,
                   runtime_made("uid-web", a_sandbox("s1"), a_container("app", RUNTIME_EXITED),
                                a_container("s", RUNTIME_EXITED))),
               "kill pod");
}

/* --- ephemeral containers --- */

TEST(ephemeral_containers_start_once_and_never_again)
{
    AUTO_ASKING a = { 0 };
    AUTO_NODE_POD pod =
        pod_with("Always", INITS_A_B "  ephemeralContainers: [{name: debug, image: d:1}]\n");
    EXPECT_STR(ask(&a, pod, runtime_made("uid-web", a_sandbox("s1"))), "ephemeral debug, init a");
    for (int is = CREATED; is < INSTANCE_COUNT; is++) {
        struct made items[3] = { a_sandbox("s1"), a_container("app", RUNTIME_RUNNING) };
        size_t count = add_instance(items, 2, "debug", (enum instance)is, NULL);
        expect_words(ask(&a, pod, runtime_make("uid-web", items, count)), "nothing",
                     instance_names[is]);
    }
}

TEST(a_pod_that_ends_starts_no_ephemeral_container)
{
    AUTO_ASKING a = { 0 };
    AUTO_NODE_POD pod =
        pod_with("Never", ONE_APP "  ephemeralContainers: [{name: debug, image: d:1}]\n");
    EXPECT_STR(
        ask(&a, pod, runtime_made("uid-web", a_sandbox("s1"), a_container("app", RUNTIME_EXITED))),
        "kill pod");
}

/* --- deletion --- */

TEST(a_pod_that_is_being_deleted_has_nothing_started)
{
    AUTO_ASKING a = { 0 };
    for (int policy = 0; policy < POLICY_COUNT; policy++) {
        AUTO_BUF yaml = { 0 };
        buf_addf(&yaml,
                 "metadata: {name: web, deletionTimestamp: '2027-01-15T08:00:00Z',"
                 " deletionGracePeriodSeconds: 30}\nspec:\n  restartPolicy: %s\n%s",
                 policies[policy], A_THEN_SIDECAR);
        AUTO_NODE_POD pod = pod_from_yaml(yaml.p);
        EXPECT_STR(ask(&a, pod, runtime_empty("uid-web")), "kill pod");
        EXPECT_STR(ask(&a, pod, runtime_made("uid-web", a_sandbox("s1"))), "nothing");
        EXPECT_STR(ask(&a, pod,
                       runtime_made("uid-web", a_sandbox("s1"),
                                    a_container("app", RUNTIME_EXITED, .exit_code = 1),
                                    a_container("s", RUNTIME_EXITED))),
                   "kill pod");
        EXPECT_STR(ask(&a, pod,
                       runtime_made("uid-web", a_sandbox("s1"), a_container("app", RUNTIME_RUNNING),
                                    a_container("s", RUNTIME_EXITED))),
                   "nothing");
    }
}

TEST(whether_a_container_runs_again_follows_from_its_last_end_and_its_policy)
{
    static const bool want[INSTANCE_COUNT][POLICY_COUNT] = {
        [ABSENT] = { true, true, true },     [CREATED] = { true, true, true },
        [RUNNING] = { false, false, false }, [EXITED_0] = { true, false, false },
        [EXITED_1] = { true, true, false },  [UNKNOWN] = { true, true, true },
    };
    for (int policy = 0; policy < POLICY_COUNT; policy++) {
        AUTO_NODE_POD pod = pod_with(policies[policy], ONE_APP);
        for (int is = 0; is < INSTANCE_COUNT; is++) {
            struct made items[1];
            size_t count = add_instance(items, 0, "app", (enum instance)is, NULL);
            AUTO_STATUS status = runtime_make("uid-web", items, count);
            EXPECT_EQ(container_should_restart(pod, &pod->containers.items[0],
                                               runtime_container_find(status, STR("app"))),
                      want[is][policy]);
        }
    }
}

#include "node/api_status_inner.h"
#include "node/node_pod_testing.h"
#include "node/runtime_testing.h"

/* What a container's status says, in the words of the rules. */
enum said {
    NO_STATUS,
    WAITS, /* and never ran */
    WAITS_AFTER_0,
    WAITS_AFTER_1,
    RUNS,
    NOT_STARTED, /* runs, and its startup probe has not succeeded */
    ENDED_0,
    ENDED_1,
};

static struct container_view say(const struct node_container *spec, enum said said)
{
    const struct state_view ended_0 = { .kind = STATE_TERMINATED };
    const struct state_view ended_1 = { .kind = STATE_TERMINATED, .exit_code = 1 };
    const struct state_view waiting = { .kind = STATE_WAITING };
    const struct state_view running = { .kind = STATE_RUNNING };
    bool plain_init = spec->init && !spec->sidecar;
    switch (said) {
    case NO_STATUS:
        return (struct container_view){ .spec = spec };
    case WAITS:
        return (struct container_view){ .spec = spec, .state = waiting };
    case WAITS_AFTER_0:
        return (struct container_view){ .spec = spec, .state = waiting, .last = ended_0 };
    case WAITS_AFTER_1:
        return (struct container_view){ .spec = spec, .state = waiting, .last = ended_1 };
    case RUNS:
        return (struct container_view){
            .spec = spec, .state = running, .started = true, .ready = !plain_init
        };
    case NOT_STARTED:
        return (struct container_view){ .spec = spec, .state = running };
    case ENDED_0:
        return (struct container_view){ .spec = spec, .state = ended_0, .ready = plain_init };
    case ENDED_1:
        return (struct container_view){ .spec = spec, .state = ended_1 };
    }
    return (struct container_view){ 0 };
}

/* A pod of one init container (plain or sidecar, or none) and two regular ones, a and b. */
enum init_kind { NO_INIT, PLAIN, SIDECAR };

static const struct node_pod *pod_with(const char *policy, enum init_kind init)
{
    static const char *const inits[] = {
        "", "  initContainers: [{name: i, image: i}]\n",
        "  initContainers: [{name: i, image: i, restartPolicy: Always}]\n"
    };
    AUTO_BUF yaml = { 0 };
    buf_addf(&yaml,
             "metadata: {name: web}\nspec:\n  restartPolicy: %s\n%s"
             "  containers: [{name: a, image: a}, {name: b, image: b}]\n",
             policy, inits[init]);
    return pod_from_yaml(yaml.p);
}

struct three {
    struct container_view init[1], regular[2];
    struct status_views views;
};

static void say_all(struct three *t, const struct node_pod *pod, enum said init, enum said a,
                    enum said b)
{
    if (pod->inits.count)
        t->init[0] = say(&pod->inits.items[0], init);
    t->regular[0] = say(&pod->containers.items[0], a);
    t->regular[1] = say(&pod->containers.items[1], b);
    t->views = (struct status_views){ .inits = { t->init, pod->inits.count },
                                      .containers = { t->regular, 2 } };
}

static const char *phase_of(const char *policy, enum init_kind kind, enum said init, enum said a,
                            enum said b, bool terminal)
{
    AUTO_NODE_POD pod = pod_with(policy, kind);
    struct three t;
    say_all(&t, pod, init, a, b);
    return api_phase_name(api_phase(pod, &t.views, terminal));
}

TEST(the_phase_follows_from_the_containers_row_by_row)
{
    static const struct {
        const char *policy;
        enum init_kind kind;
        enum said init, a, b;
        const char *want;
    } rows[] = {
        /* A plain init container that failed for good. */
        { "Never", PLAIN, ENDED_1, WAITS, WAITS, "Failed" },
        { "Never", PLAIN, WAITS_AFTER_1, WAITS, WAITS, "Failed" },
        { "Always", PLAIN, ENDED_1, WAITS, WAITS, "Pending" },
        { "OnFailure", PLAIN, WAITS_AFTER_1, WAITS, WAITS, "Pending" },
        /* One that has not ended. */
        { "Never", PLAIN, NO_STATUS, RUNS, RUNS, "Pending" },
        { "Never", PLAIN, RUNS, WAITS, WAITS, "Pending" },
        { "Never", PLAIN, WAITS, WAITS, WAITS, "Pending" },
        { "Never", PLAIN, WAITS, RUNS, RUNS, "Pending" },
        { "Never", PLAIN, ENDED_0, RUNS, RUNS, "Running" },
        { "Never", PLAIN, WAITS_AFTER_0, RUNS, RUNS, "Running" },
        /* Sidecars. */
        { "Always", SIDECAR, NOT_STARTED, WAITS, WAITS, "Pending" },
        { "Always", SIDECAR, NOT_STARTED, RUNS, RUNS, "Running" },
        { "Always", SIDECAR, NOT_STARTED, WAITS_AFTER_1, WAITS_AFTER_1, "Pending" },
        { "Always", SIDECAR, RUNS, RUNS, RUNS, "Running" },
        { "Always", SIDECAR, RUNS, ENDED_0, ENDED_0, "Running" },
        { "Never", SIDECAR, RUNS, ENDED_0, ENDED_0, "Running" },
        { "Never", SIDECAR, ENDED_1, ENDED_0, ENDED_0, "Succeeded" },
        { "Never", SIDECAR, WAITS_AFTER_1, ENDED_0, ENDED_0, "Succeeded" },
        { "Always", SIDECAR, WAITS, RUNS, RUNS, "Pending" },
        { "Always", SIDECAR, NO_STATUS, RUNS, RUNS, "Pending" },
        /* Regular containers. */
        { "Always", NO_INIT, NO_STATUS, WAITS, WAITS, "Pending" },
        { "Always", NO_INIT, NO_STATUS, RUNS, WAITS, "Pending" },
        { "Always", NO_INIT, NO_STATUS, RUNS, RUNS, "Running" },
        { "Always", NO_INIT, NO_STATUS, RUNS, NO_STATUS, "Pending" },
        { "Always", NO_INIT, NO_STATUS, NO_STATUS, NO_STATUS, "Pending" },
        { "Always", NO_INIT, NO_STATUS, RUNS, ENDED_1, "Running" },
        { "Never", NO_INIT, NO_STATUS, RUNS, ENDED_1, "Running" },
        { "Always", NO_INIT, NO_STATUS, RUNS, WAITS_AFTER_1, "Running" },
        { "Always", NO_INIT, NO_STATUS, ENDED_0, NO_STATUS, "Pending" },
        /* All have stopped. */
        { "Always", NO_INIT, NO_STATUS, ENDED_0, ENDED_0, "Running" },
        { "Always", NO_INIT, NO_STATUS, WAITS_AFTER_1, WAITS_AFTER_1, "Running" },
        { "OnFailure", NO_INIT, NO_STATUS, ENDED_0, ENDED_0, "Succeeded" },
        { "OnFailure", NO_INIT, NO_STATUS, ENDED_0, ENDED_1, "Running" },
        { "OnFailure", NO_INIT, NO_STATUS, ENDED_0, WAITS_AFTER_1, "Running" },
        { "Never", NO_INIT, NO_STATUS, ENDED_0, ENDED_0, "Succeeded" },
        { "Never", NO_INIT, NO_STATUS, ENDED_0, ENDED_1, "Failed" },
        { "Never", NO_INIT, NO_STATUS, ENDED_0, WAITS_AFTER_1, "Failed" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        const char *got =
            phase_of(rows[i].policy, rows[i].kind, rows[i].init, rows[i].a, rows[i].b, false);
        if (strcmp(got, rows[i].want) != 0)
            fail_msg("row %zu: got %s, want %s", i, got, rows[i].want);
    }
}

TEST(a_sidecar_that_starts_again_does_not_make_a_crashing_pod_pending)
{
    AUTO_NODE_POD pod = pod_with("Always", SIDECAR);
    struct three t;
    say_all(&t, pod, NOT_STARTED, WAITS_AFTER_1, WAITS_AFTER_1);
    t.views.initialized = true; /* the runtime has a regular container in this sandbox */
    EXPECT_Z(api_phase_name(api_phase(pod, &t.views, false)), "Running");
}

TEST(a_pod_whose_termination_is_over_has_succeeded_or_failed_whatever_its_policy)
{
    static const char *const policies[] = { "Always", "OnFailure", "Never" };
    for (size_t i = 0; i < KV_COUNT_OF(policies); i++) {
        EXPECT_Z(phase_of(policies[i], NO_INIT, NO_STATUS, ENDED_0, ENDED_0, true), "Succeeded");
        EXPECT_Z(phase_of(policies[i], NO_INIT, NO_STATUS, ENDED_0, ENDED_1, true), "Failed");
        EXPECT_Z(phase_of(policies[i], NO_INIT, NO_STATUS, ENDED_0, WAITS_AFTER_1, true), "Failed");
    }
}

TEST(a_static_pod_is_not_made_terminal_by_its_termination)
{
    AUTO_NODE_POD pod = pod_with("Always", NO_INIT);
    struct three t;
    ((struct node_pod *)pod)->source = POD_FROM_FILE;
    say_all(&t, pod, NO_STATUS, ENDED_0, ENDED_1);
    EXPECT_Z(api_phase_name(api_phase(pod, &t.views, true)), "Running");
}

TEST(a_container_that_restarts_by_its_own_policy_keeps_the_pod_running)
{
    AUTO_NODE_POD pod = pod_from_yaml(
        "metadata: {name: web}\nspec:\n  restartPolicy: Never\n"
        "  containers: [{name: a, image: a}, {name: b, image: b, restartPolicy: OnFailure}]\n");
    struct three t;
    say_all(&t, pod, NO_STATUS, ENDED_1, ENDED_1);
    EXPECT_Z(api_phase_name(api_phase(pod, &t.views, false)), "Running");
    say_all(&t, pod, NO_STATUS, ENDED_1, ENDED_0);
    EXPECT_Z(api_phase_name(api_phase(pod, &t.views, false)), "Failed");
}

/* --- conditions --- */

static const int64_t now_us = (RUNTIME_MADE_S + 60) * 1000000; /* 2027-01-15T08:01:00Z */

/* "True", "False ContainersNotReady: containers with unready status: [a]"; transitions apart. */
static struct str condition_words(struct arena *arena, const struct node_pod *pod,
                                  const struct runtime_status *status, const struct three *t,
                                  enum pod_phase phase, const char *type)
{
    AUTO_JSON_BUILD b = { 0 };
    json_build_init(&b);
    const struct conditions_input input = { .pod = pod,
                                            .status = status,
                                            .views = &t->views,
                                            .maybe_previous = pod->maybe_status,
                                            .phase = phase,
                                            .now_us = now_us };
    json_mut *list = api_conditions_json(&b, arena, &input);
    json_each_mut_item(list, item)
    {
        if (!str_eqz(json_mut_str(json_mut_get(item, STR("type"))), type))
            continue;
        struct str reason = json_mut_str(json_mut_get(item, STR("reason")));
        struct str message = json_mut_str(json_mut_get(item, STR("message")));
        return arena_strf(
            arena, "%.*s%s%.*s%s%.*s", STR_ARG(json_mut_str(json_mut_get(item, STR("status")))),
            reason.len ? " " : "", STR_ARG(reason), message.len ? ": " : "", STR_ARG(message));
    }
    return STR_NONE;
}

TEST(conditions_say_what_is_missing_row_by_row)
{
    static const struct {
        enum init_kind kind;
        enum said init, a, b;
        enum pod_phase phase;
        const char *initialized, *containers;
    } rows[] = {
        { NO_INIT, NO_STATUS, RUNS, RUNS, PHASE_RUNNING, "True", "True" },
        { NO_INIT, NO_STATUS, RUNS, NOT_STARTED, PHASE_RUNNING, "True",
          "False ContainersNotReady: containers with unready status: [b]" },
        { NO_INIT, NO_STATUS, WAITS, WAITS, PHASE_PENDING, "True",
          "False ContainersNotReady: containers with unready status: [a b]" },
        { NO_INIT, NO_STATUS, NO_STATUS, WAITS, PHASE_PENDING, "True",
          "False ContainersNotReady: containers with unknown status: [a], "
          "containers with unready status: [b]" },
        { NO_INIT, NO_STATUS, NO_STATUS, NO_STATUS, PHASE_PENDING, "True",
          "False UnknownContainerStatuses: containers with unknown status: [a b]" },
        { PLAIN, RUNS, WAITS, WAITS, PHASE_PENDING,
          "False ContainersNotInitialized: containers with incomplete status: [i]",
          "False ContainersNotReady: containers with unready status: [a b]" },
        { PLAIN, NO_STATUS, WAITS, WAITS, PHASE_PENDING,
          "False UnknownContainerStatuses: containers with unknown status: [i]",
          "False ContainersNotReady: containers with unready status: [a b]" },
        { PLAIN, ENDED_0, WAITS, WAITS, PHASE_PENDING, "True",
          "False ContainersNotReady: containers with unready status: [a b]" },
        { PLAIN, ENDED_1, WAITS, WAITS, PHASE_FAILED,
          "False ContainersNotInitialized: containers with incomplete status: [i]",
          "False PodFailed" },
        { PLAIN, WAITS, RUNS, WAITS, PHASE_PENDING, "True",
          "False ContainersNotReady: containers with unready status: [b]" },
        { PLAIN, ENDED_0, ENDED_0, ENDED_0, PHASE_SUCCEEDED, "True PodCompleted",
          "False PodCompleted" },
        { SIDECAR, NOT_STARTED, WAITS, WAITS, PHASE_PENDING,
          "False ContainersNotInitialized: containers with incomplete status: [i]",
          "False ContainersNotReady: containers with unready status: [i a b]" },
        { SIDECAR, RUNS, RUNS, RUNS, PHASE_RUNNING, "True", "True" },
        { SIDECAR, ENDED_1, RUNS, RUNS, PHASE_RUNNING, "True",
          "False ContainersNotReady: containers with unready status: [i]" },
    };
    AUTO_ARENA arena = { 0 };
    AUTO_STATUS status = runtime_made("uid-web", a_sandbox("s1"));
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        AUTO_NODE_POD pod = pod_with("Always", rows[i].kind);
        struct three t;
        say_all(&t, pod, rows[i].init, rows[i].a, rows[i].b);
        EXPECT_STR(condition_words(&arena, pod, status, &t, rows[i].phase, "Initialized"),
                   rows[i].initialized);
        EXPECT_STR(condition_words(&arena, pod, status, &t, rows[i].phase, "ContainersReady"),
                   rows[i].containers);
        EXPECT_STR(condition_words(&arena, pod, status, &t, rows[i].phase, "Ready"),
                   rows[i].containers);
        EXPECT_STR(condition_words(&arena, pod, status, &t, rows[i].phase, "PodScheduled"), "True");
    }
}

TEST(a_pod_is_ready_to_start_containers_when_its_sandbox_is_good)
{
    AUTO_ARENA arena = { 0 };
    AUTO_NODE_POD pod = pod_with("Always", NO_INIT);
    AUTO_STATUS good = runtime_made("uid-web", a_sandbox("s1"));
    AUTO_STATUS dead = runtime_made("uid-web", a_sandbox("s1", .not_ready = true));
    struct three t;
    say_all(&t, pod, NO_STATUS, RUNS, RUNS);
    EXPECT_STR(condition_words(&arena, pod, good, &t, PHASE_RUNNING, "PodReadyToStartContainers"),
               "True");
    EXPECT_STR(condition_words(&arena, pod, dead, &t, PHASE_RUNNING, "PodReadyToStartContainers"),
               "False PodSandboxNotReady: the sandbox is not ready");
}

TEST(readiness_gates_are_conditions_that_others_set)
{
    static const struct {
        const char *condition, *want;
    } rows[] = {
        { "", "False ReadinessGatesNotReady: readiness gate \"lb/up\" has no condition" },
        { "{type: lb/up, status: 'False'}",
          "False ReadinessGatesNotReady: readiness gate \"lb/up\" is False" },
        { "{type: lb/up, status: 'True'}", "True" },
    };
    AUTO_ARENA arena = { 0 };
    AUTO_STATUS status = runtime_made("uid-web", a_sandbox("s1"));
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        AUTO_BUF yaml = { 0 };
        buf_addf(&yaml,
                 "metadata: {name: web}\nspec:\n  readinessGates: [{conditionType: lb/up}]\n"
                 "  containers: [{name: a, image: a}, {name: b, image: b}]\n"
                 "status: {conditions: [%s]}\n",
                 rows[i].condition);
        AUTO_NODE_POD pod = pod_from_yaml(yaml.p);
        struct three t;
        say_all(&t, pod, NO_STATUS, RUNS, RUNS);
        EXPECT_STR(condition_words(&arena, pod, status, &t, PHASE_RUNNING, "Ready"), rows[i].want);
        EXPECT_STR(condition_words(&arena, pod, status, &t, PHASE_RUNNING, "ContainersReady"),
                   "True");
        /* What is not ready anyway says that first. */
        say_all(&t, pod, NO_STATUS, RUNS, WAITS);
        EXPECT_STR(condition_words(&arena, pod, status, &t, PHASE_PENDING, "Ready"),
                   "False ContainersNotReady: containers with unready status: [b]");
    }
}

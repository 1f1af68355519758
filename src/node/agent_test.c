/* The agent as a whole on a fake runtime: static pods from manifest to end. */
#include "node/agent_testing.h"
#include "node/api_status.h"
#include "node/node_pod_testing.h"

#include <arpa/inet.h>
#include <poll.h>

#define AUTO_RIG __attribute__((cleanup(rig_close))) struct rig

#define POD(metadata, spec)                                                                        \
    "apiVersion: v1\nkind: Pod\nmetadata: {" metadata "}\n"                                        \
    "spec: {hostNetwork: true, " spec "}\n"
#define WEB(spec) POD("name: web, uid: uid-web", spec)
#define MAIN "containers: [{name: main, image: 'web:1'}]"
#define BRIEF_MAIN "terminationGracePeriodSeconds: 2, " MAIN /* its end takes no longer */

static const char web[] = WEB(BRIEF_MAIN);

static uint32_t running(struct rig *rig, const char *uid, const char *name)
{
    return fake_cri_containers(rig->fake, uid, name, RUNTIME_RUNNING);
}

static bool gone(struct rig *rig, const char *uid)
{
    return !fake_cri_find(rig->fake, uid, NULL).exists;
}

static void container_exits(struct rig *rig, const char *name, int code)
{
    fake_cri_exit(rig->fake, fake_cri_find(rig->fake, "uid-web", name).id, code);
}

/* The agent starts, and finds a pod in web.yaml. */
static void start_with(struct rig *rig, const char *pod)
{
    rig_write(rig, "web.yaml", pod);
    rig_agent_start(rig);
}

static void open_and_start_with(struct rig *rig, const char *pod)
{
    rig_open(rig);
    start_with(rig, pod);
}

/* The same, and the pod's container runs. */
static void open_and_run(struct rig *rig, const char *pod)
{
    open_and_start_with(rig, pod);
    WAIT_FOR(rig, running(rig, "uid-web", "main") == 1);
}

/* The manifest of web goes, and its end does not get past a call that hangs. */
static void remove_web_and_hang(struct rig *rig, struct fake_fault fault)
{
    fault.hang = true;
    fake_cri_fault(rig->fake, fault);
    rig_unlink(rig, "web.yaml");
    WAIT_FOR(rig, fake_cri_waiting(rig->fake) > 0);
}

static void no_image_can_be_pulled(struct rig *rig)
{
    fake_cri_fault(rig->fake, (struct fake_fault){ .method = CRI_PULL_IMAGE,
                                                   .status = GRPC_NOT_FOUND,
                                                   .message = "no such image" });
}

static uint64_t changing_calls(struct rig *rig)
{
    static const enum cri_method methods[] = {
        CRI_RUN_POD_SANDBOX, CRI_STOP_POD_SANDBOX, CRI_REMOVE_POD_SANDBOX,   CRI_CREATE_CONTAINER,
        CRI_START_CONTAINER, CRI_STOP_CONTAINER,   CRI_REMOVE_CONTAINER,     CRI_PULL_IMAGE,
        CRI_REMOVE_IMAGE,    CRI_EXEC_SYNC,        CRI_UPDATE_RUNTIME_CONFIG
    };
    uint64_t calls = 0;
    for (size_t i = 0; i < KV_COUNT_OF(methods); i++)
        calls += fake_cri_calls(rig->fake, methods[i]);
    return calls;
}

TEST(a_static_pod_runs_and_its_status_says_so)
{
    AUTO_RIG rig = { 0 };
    open_and_run(&rig, web);
    WAIT_FOR(&rig, rig_says(&rig, "\"phase\":\"Running\""));
    WAIT_FOR(&rig, rig_says(&rig, "\"type\":\"Ready\",\"status\":\"True\""));
    AUTO_BUF metrics = { 0 };
    metrics_write(rig.metrics, &metrics);
    EXPECT_HAS(buf_str(&metrics), "kubelet_running_pods 1\n");
    EXPECT_HAS(buf_str(&metrics), "kubelet_running_containers{container_state=\"running\"} 1\n");
    EXPECT_HAS(buf_str(&metrics), "karve_pod_workers{state=\"Syncing\"} 1\n");
    struct fake_item sandbox = fake_cri_find(rig.fake, "uid-web", NULL);
    EXPECT_Z(sandbox.sandbox_config->metadata->name, "web-node-1");
}

TEST(a_container_that_ends_is_started_again_and_counted)
{
    AUTO_RIG rig = { 0 };
    open_and_start_with(&rig, web);
    for (uint32_t i = 0; i < 3; i++) {
        WAIT_FOR(&rig, running(&rig, "uid-web", "main") == 1 &&
                           fake_cri_find(rig.fake, "uid-web", "main").attempt == i);
        container_exits(&rig, "main", 3);
    }
    WAIT_FOR(&rig, rig_says(&rig, "\"restartCount\":3"));
    WAIT_FOR(&rig, rig_says(&rig, "\"lastState\":{\"terminated\":{\"exitCode\":3"));
    /* Of the instances that ended, the newest alone is kept. */
    WAIT_FOR(&rig, fake_cri_containers(rig.fake, "uid-web", "main", RUNTIME_EXITED) == 1);
}

TEST(a_pod_whose_manifest_is_removed_ends_and_leaves_nothing)
{
    AUTO_RIG rig = { 0 };
    char folder[160];
    open_and_run(&rig, web);
    snprintf(folder, sizeof folder, "%s/logs/default_web-node-1_uid-web", rig.dir);
    EXPECT_EQ(access(folder, F_OK), 0);
    snprintf(folder, sizeof folder, "%s/root/pods/uid-web", rig.dir);
    rig_unlink(&rig, "web.yaml");
    WAIT_FOR(&rig, running(&rig, "uid-web", "main") == 0);
    WAIT_FOR(&rig, gone(&rig, "uid-web"));
    WAIT_FOR(&rig, access(folder, F_OK) < 0);
    snprintf(folder, sizeof folder, "%s/logs/default_web-node-1_uid-web", rig.dir);
    EXPECT_TRUE(access(folder, F_OK) < 0);
    WAIT_FOR(&rig, !rig_says(&rig, "uid-web"));
}

TEST(an_edited_manifest_makes_a_new_pod_after_the_old_one_ended)
{
    static const char first[] = POD("name: web, uid: uid-a", BRIEF_MAIN);
    static const char second[] = POD("name: web, uid: uid-b", BRIEF_MAIN);
    AUTO_RIG rig = { 0 };
    open_and_start_with(&rig, first);
    WAIT_FOR(&rig, running(&rig, "uid-a", "main") == 1);
    /* The old one does not stop for a while: the new one waits. */
    fake_cri_fault(rig.fake, (struct fake_fault){ .method = CRI_STOP_CONTAINER, .hang = true });
    rig_write(&rig, "web.yaml", second);
    WAIT_FOR(&rig, fake_cri_waiting(rig.fake) > 0);
    rig_linger();
    EXPECT_EQ(running(&rig, "uid-b", "main"), 0);
    fake_cri_heal(rig.fake);
    WAIT_FOR(&rig, running(&rig, "uid-b", "main") == 1);
    EXPECT_EQ(running(&rig, "uid-a", "main"), 0);
}

TEST(an_agent_that_comes_back_starts_nothing_twice)
{
    AUTO_RIG rig = { 0 };
    open_and_start_with(&rig, web);
    WAIT_FOR(&rig, rig_says(&rig, "\"phase\":\"Running\""));
    rig_agent_stop(&rig);
    EXPECT_EQ(running(&rig, "uid-web", "main"), 1); /* pods outlive their agent */
    rig_agent_start(&rig);
    WAIT_FOR(&rig, rig_says(&rig, "\"phase\":\"Running\""));
    rig_linger();
    EXPECT_EQ(fake_cri_calls(rig.fake, CRI_START_CONTAINER), 1);
    EXPECT_EQ(fake_cri_calls(rig.fake, CRI_RUN_POD_SANDBOX), 1);
}

TEST(what_was_removed_while_the_agent_was_away_is_ended)
{
    AUTO_RIG rig = { 0 };
    open_and_run(&rig, web);
    rig_agent_stop(&rig);
    rig_unlink(&rig, "web.yaml");
    rig_agent_start(&rig);
    WAIT_FOR(&rig, gone(&rig, "uid-web"));
}

TEST(pods_of_another_agent_are_left_alone)
{
    AUTO_RIG rig = { 0 };
    rig_open(&rig);
    const char *sandbox = fake_cri_sandbox(rig.fake, "uid-other", "other", 0);
    const char *id = fake_cri_container(rig.fake, sandbox, "main", 0);
    fake_cri_start(rig.fake, id);
    const char *dead = fake_cri_container(rig.fake, sandbox, "main", 1);
    fake_cri_start(rig.fake, dead);
    fake_cri_exit(rig.fake, dead, 0);
    start_with(&rig, web);
    WAIT_FOR(&rig, running(&rig, "uid-web", "main") == 1);
    rig_linger();
    EXPECT_EQ(running(&rig, "uid-other", "main"), 1);
    EXPECT_TRUE(fake_cri_get(rig.fake, dead).exists);
    EXPECT_TRUE(rig_says(&rig, "uid-other")); /* and seen */
}

TEST(an_observer_changes_nothing)
{
    AUTO_RIG rig = { .observer = true };
    rig_open(&rig);
    rig_write(&rig, "web.yaml", web);
    const char *sandbox = fake_cri_sandbox(rig.fake, "uid-1", "other", 0);
    const char *id = fake_cri_container(rig.fake, sandbox, "main", 0);
    fake_cri_start(rig.fake, id);
    rig_agent_start(&rig);
    WAIT_FOR(&rig, rig_says(&rig, "\"state\":\"running\""));
    fake_cri_exit(rig.fake, id, 7);
    WAIT_FOR(&rig, rig_says(&rig, "\"exitCode\":7"));
    fake_cri_exit(rig.fake, sandbox, 0);
    rig_linger();
    EXPECT_EQ(changing_calls(&rig), 0);
}

TEST(init_containers_run_in_order_before_the_others)
{
    static const char pod[] = WEB("initContainers: ["
                                  "{name: one, image: 'web:1'}, "
                                  "{name: side, image: 'web:1', restartPolicy: Always}, "
                                  "{name: two, image: 'web:1'}], " MAIN);
    AUTO_RIG rig = { 0 };
    open_and_start_with(&rig, pod);
    WAIT_FOR(&rig, running(&rig, "uid-web", "one") == 1);
    rig_linger();
    EXPECT_FALSE(fake_cri_find(rig.fake, "uid-web", "side").exists);
    container_exits(&rig, "one", 0);
    WAIT_FOR(&rig, running(&rig, "uid-web", "two") == 1);
    EXPECT_EQ(running(&rig, "uid-web", "side"), 1);
    EXPECT_FALSE(fake_cri_find(rig.fake, "uid-web", "main").exists);
    container_exits(&rig, "two", 0);
    WAIT_FOR(&rig, running(&rig, "uid-web", "main") == 1);
    WAIT_FOR(&rig, rig_says(&rig, "\"type\":\"Initialized\",\"status\":\"True\""));
    EXPECT_EQ(running(&rig, "uid-web", "side"), 1);
}

TEST(a_pod_that_completes_stays_completed_also_after_a_restart_of_the_agent)
{
    static const char pod[] = POD("name: job, uid: uid-job", "restartPolicy: Never, " MAIN);
    AUTO_RIG rig = { 0 };
    rig_open(&rig);
    fake_cri_exits_at_once(rig.fake, "main", 0);
    rig_write(&rig, "job.yaml", pod);
    rig_agent_start(&rig);
    WAIT_FOR(&rig, rig_says(&rig, "\"phase\":\"Succeeded\""));
    WAIT_FOR(&rig, rig_says(&rig, "\"state\":\"Finished\""));
    rig_agent_stop(&rig);
    rig_agent_start(&rig);
    WAIT_FOR(&rig, rig_says(&rig, "\"phase\":\"Succeeded\""));
    WAIT_FOR(&rig, rig_says(&rig, "\"state\":\"Finished\""));
    rig_linger();
    EXPECT_EQ(fake_cri_calls(rig.fake, CRI_START_CONTAINER), 1);
}

TEST(an_image_that_cannot_be_pulled_is_told_and_tried_again)
{
    static const char pod[] = WEB("containers: [{name: main, image: 'no:1'}]");
    AUTO_RIG rig = { .backoff_ns = (int64_t)60 * 1000000000 };
    rig_open(&rig);
    no_image_can_be_pulled(&rig);
    start_with(&rig, pod);
    WAIT_FOR(&rig, rig_says(&rig, "\"reason\":\"ImagePullBackOff\""));
    EXPECT_EQ(fake_cri_calls(rig.fake, CRI_PULL_IMAGE), 1);
}

TEST(an_answer_that_is_lost_after_the_start_starts_no_second_container)
{
    AUTO_RIG rig = { 0 };
    rig_open(&rig);
    fake_cri_fault(rig.fake, (struct fake_fault){ .method = CRI_START_CONTAINER,
                                                  .times = 1,
                                                  .status = GRPC_UNAVAILABLE,
                                                  .after = true });
    fake_cri_fault(rig.fake, (struct fake_fault){ .method = CRI_RUN_POD_SANDBOX,
                                                  .times = 1,
                                                  .status = GRPC_UNAVAILABLE,
                                                  .after = true });
    start_with(&rig, web);
    WAIT_FOR(&rig, rig_says(&rig, "\"phase\":\"Running\""));
    rig_linger();
    EXPECT_EQ(running(&rig, "uid-web", "main"), 1);
    EXPECT_EQ(fake_cri_sandboxes(rig.fake, "uid-web", RUNTIME_RUNNING), 1);
    EXPECT_EQ(fake_cri_calls(rig.fake, CRI_START_CONTAINER), 1);
}

TEST(a_container_that_was_created_and_never_started_is_replaced)
{
    AUTO_RIG rig = { 0 };
    rig_open(&rig);
    fake_cri_fault(rig.fake, (struct fake_fault){ .method = CRI_START_CONTAINER,
                                                  .times = 1,
                                                  .status = GRPC_UNKNOWN,
                                                  .message = "the shim did not start" });
    start_with(&rig, web);
    WAIT_FOR(&rig, running(&rig, "uid-web", "main") == 1);
    EXPECT_EQ(fake_cri_containers(rig.fake, "uid-web", "main", RUNTIME_CREATED), 0);
}

TEST(a_stop_that_hangs_holds_up_no_other_pod)
{
    static const char other[] = POD("name: other, uid: uid-other", BRIEF_MAIN);
    AUTO_RIG rig = { 0 };
    open_and_run(&rig, web);
    remove_web_and_hang(
        &rig, (struct fake_fault){ .method = CRI_STOP_CONTAINER,
                                   .maybe_id = fake_cri_find(rig.fake, "uid-web", "main").id });
    rig_write(&rig, "other.yaml", other);
    WAIT_FOR(&rig, running(&rig, "uid-other", "main") == 1);
    rig_unlink(&rig, "other.yaml");
    WAIT_FOR(&rig, gone(&rig, "uid-other"));
    EXPECT_FALSE(gone(&rig, "uid-web"));
    fake_cri_heal(rig.fake);
    WAIT_FOR(&rig, gone(&rig, "uid-web"));
}

TEST(an_agent_stops_although_a_stop_hangs)
{
    AUTO_RIG rig = { 0 };
    open_and_run(&rig, web);
    remove_web_and_hang(&rig, (struct fake_fault){ .method = CRI_STOP_CONTAINER });
    rig_agent_stop(&rig);
}

TEST(a_pod_over_its_deadline_has_failed)
{
    static const char pod[] = WEB("activeDeadlineSeconds: 1, " BRIEF_MAIN);
    AUTO_RIG rig = { 0 };
    open_and_start_with(&rig, pod);
    WAIT_FOR(&rig, rig_says(&rig, "\"reason\":\"DeadlineExceeded\""));
    WAIT_FOR(&rig, rig_says(&rig, "\"state\":\"Finished\""));
    EXPECT_TRUE(rig_says(&rig, "\"phase\":\"Failed\""));
    EXPECT_EQ(running(&rig, "uid-web", "main"), 0);
}

TEST(a_pre_stop_hook_runs_before_the_stop)
{
    static const char pod[] =
        WEB("terminationGracePeriodSeconds: 600, containers: [{name: main, image: 'web:1', "
            "lifecycle: {preStop: {exec: {command: [/bye]}}}}]");
    AUTO_RIG rig = { 0 };
    open_and_run(&rig, pod);
    fake_cri_fault(rig.fake, (struct fake_fault){ .method = CRI_EXEC_SYNC, .hang = true });
    rig_unlink(&rig, "web.yaml");
    WAIT_FOR(&rig, fake_cri_calls(rig.fake, CRI_EXEC_SYNC) == 1);
    EXPECT_EQ(fake_cri_calls(rig.fake, CRI_STOP_CONTAINER), 0);
    fake_cri_heal(rig.fake);
    WAIT_FOR(&rig, gone(&rig, "uid-web"));
    EXPECT_EQ(fake_cri_calls(rig.fake, CRI_EXEC_SYNC), 1);
    EXPECT_EQ(fake_cri_calls(rig.fake, CRI_STOP_CONTAINER), 1);
}

TEST(a_sandbox_killed_from_the_side_is_made_anew_with_its_containers)
{
    AUTO_RIG rig = { 0 };
    open_and_run(&rig, web);
    struct fake_item first = fake_cri_find(rig.fake, "uid-web", NULL);
    fake_cri_exit(rig.fake, first.id, 0);
    WAIT_FOR(&rig, fake_cri_sandboxes(rig.fake, "uid-web", RUNTIME_RUNNING) == 1 &&
                       running(&rig, "uid-web", "main") == 1);
    EXPECT_EQ(fake_cri_find(rig.fake, "uid-web", NULL).attempt, 1);
}

TEST(a_runtime_that_goes_away_and_comes_back_is_taken_up_again)
{
    AUTO_RIG rig = { 0 };
    open_and_run(&rig, web);
    fake_cri_down(rig.fake);
    rig_linger();
    fake_cri_up(rig.fake);
    container_exits(&rig, "main", 1);
    WAIT_FOR(&rig, running(&rig, "uid-web", "main") == 1);
    EXPECT_EQ(fake_cri_sandboxes(rig.fake, "uid-web", RUNTIME_RUNNING), 1);
}

/* The seam to an API server: pods by agent_deliver, statuses by a callback. */
struct told {
    pthread_mutex_t lock;
    char phase[16];
    bool finished;
};

static void note_status(void *ctx, const struct node_pod *pod, const json_val *status,
                        bool finished)
{
    struct told *told = ctx;
    EXPECT_STR(pod->name, "web");
    pthread_mutex_lock(&told->lock);
    snprintf(told->phase, sizeof told->phase, "%.*s", STR_ARG(api_status_phase(status)));
    told->finished = finished;
    pthread_mutex_unlock(&told->lock);
}

static bool was_told(struct told *told, const char *phase, bool finished)
{
    pthread_mutex_lock(&told->lock);
    bool is = strcmp(told->phase, phase) == 0 && told->finished == finished;
    pthread_mutex_unlock(&told->lock);
    return is;
}

#define API_POD POD("name: web, uid: uid-api%s", "terminationGracePeriodSeconds: 1, " MAIN)

static const struct node_pod *api_pod(const char *more)
{
    char text[512];
    snprintf(text, sizeof text, API_POD, more);
    return pod_from_yaml(text);
}

/* The pod runs; a mirror pod that comes with it does not. */
static void open_and_run_from_api(struct rig *rig, struct told *told, const struct node_pod *pod)
{
    AUTO_NODE_POD mirror = pod_from_yaml(POD("name: static-node-1, uid: uid-mirror, annotations: "
                                             "{kubernetes.io/config.mirror: x}",
                                             MAIN));
    rig_open(rig);
    rig_agent_start(rig);
    agent_deliver(rig->agent, POD_FROM_API, (const struct node_pod *[]){ pod, mirror }, 2);
    WAIT_FOR(rig, was_told(told, "Running", false));
    EXPECT_FALSE(fake_cri_find(rig->fake, "uid-mirror", NULL).exists); /* it runs from its file */
}

TEST(pods_of_an_api_server_run_and_nothing_is_ended_before_they_have_come)
{
    struct told told = { .lock = PTHREAD_MUTEX_INITIALIZER };
    AUTO_RIG rig = { .api = true, .status = note_status, .ctx = &told };
    AUTO_NODE_POD pod = api_pod("");
    open_and_run_from_api(&rig, &told, pod);

    /* Away and back: until the API has been heard, the pod is nobody's and goes on. */
    rig_agent_stop(&rig);
    rig_agent_start(&rig);
    rig_linger();
    EXPECT_EQ(running(&rig, "uid-api", "main"), 1);
    agent_deliver(rig.agent, POD_FROM_API, &pod, 1);

    /* Deleted: it ends, and the last status says so. */
    AUTO_NODE_POD deleted =
        api_pod(", deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 1");
    agent_deliver(rig.agent, POD_FROM_API, &deleted, 1);
    WAIT_FOR(&rig, was_told(&told, "Failed", true) || was_told(&told, "Succeeded", true));
    EXPECT_EQ(running(&rig, "uid-api", "main"), 0);
    agent_deliver(rig.agent, POD_FROM_API, NULL, 0);
    WAIT_FOR(&rig, gone(&rig, "uid-api"));
}

TEST(a_pod_that_the_api_says_has_failed_is_ended)
{
    struct told told = { .lock = PTHREAD_MUTEX_INITIALIZER };
    AUTO_RIG rig = { .api = true, .status = note_status, .ctx = &told };
    AUTO_NODE_POD pod = api_pod("");
    open_and_run_from_api(&rig, &told, pod);

    char text[512]; /* the same pod; only its status is another */
    snprintf(text, sizeof text, API_POD "status: {phase: Failed}\n", "");
    AUTO_NODE_POD failed = pod_from_yaml(text);
    agent_deliver(rig.agent, POD_FROM_API, &failed, 1);
    WAIT_FOR(&rig, was_told(&told, "Failed", true));
    EXPECT_EQ(running(&rig, "uid-api", "main"), 0);
}

TEST(an_ephemeral_container_sees_the_processes_of_its_target)
{
    AUTO_RIG rig = { .api = true };
    rig_open(&rig);
    AUTO_NODE_POD pod = api_pod("");
    rig_agent_start(&rig);
    agent_deliver(rig.agent, POD_FROM_API, &pod, 1);
    WAIT_FOR(&rig, running(&rig, "uid-api", "main") == 1);

    AUTO_NODE_POD debugged = pod_from_yaml(
        POD("name: web, uid: uid-api", "ephemeralContainers: [{name: debug, image: 'web:1', "
                                       "targetContainerName: main}], " MAIN));
    agent_deliver(rig.agent, POD_FROM_API, &debugged, 1);
    WAIT_FOR(&rig, running(&rig, "uid-api", "debug") == 1);
    const Cri__ContainerConfig *config = fake_cri_find(rig.fake, "uid-api", "debug").config;
    EXPECT_Z(config->linux_->security_context->namespace_options->target_id,
             fake_cri_find(rig.fake, "uid-api", "main").id);
}

TEST(a_runtime_that_says_cancelled_is_a_failure_like_others)
{
    AUTO_RIG rig = { 0 };
    rig_open(&rig);
    fake_cri_fault(rig.fake, (struct fake_fault){ .method = CRI_RUN_POD_SANDBOX,
                                                  .status = GRPC_CANCELLED,
                                                  .message = "context canceled" });
    start_with(&rig, web);
    WAIT_FOR(&rig, rig_says(&rig, "\"lastError\":\"RunPodSandbox: context canceled\""));
    fake_cri_heal(rig.fake);
    WAIT_FOR(&rig, running(&rig, "uid-web", "main") == 1);
}

TEST(a_failure_whose_words_change_is_not_tried_again_at_once)
{
    enum { FAILURES = 20, RETRY_MS = 50 }; /* of the rig */
    static char words[FAILURES][32];
    AUTO_RIG rig = { 0 };
    rig_open(&rig);
    for (int i = 0; i < FAILURES; i++) {
        snprintf(words[i], sizeof words[i], "tmpmounts/containerd-mount%d", i);
        fake_cri_fault(rig.fake, (struct fake_fault){ .method = CRI_CREATE_CONTAINER,
                                                      .times = 1,
                                                      .status = GRPC_UNKNOWN,
                                                      .message = words[i] });
    }
    rig_write(&rig, "web.yaml", web);
    int64_t begun_ns = clock_mono_ns(clock_real());
    rig_agent_start(&rig);
    WAIT_FOR(&rig, running(&rig, "uid-web", "main") == 1);
    /* The first failure is news, and followed up at once. */
    EXPECT_TRUE(clock_mono_ns(clock_real()) - begun_ns >=
                (int64_t)(FAILURES - 1) * RETRY_MS * 1000000);
}

TEST(a_deadline_comes_also_while_a_container_waits_for_its_image)
{
    static const char pod[] =
        WEB("activeDeadlineSeconds: 1, containers: [{name: main, image: 'no:1'}]");
    AUTO_RIG rig = { .backoff_ns = (int64_t)300 * 1000000000 };
    rig_open(&rig);
    no_image_can_be_pulled(&rig);
    start_with(&rig, pod);
    WAIT_FOR(&rig, rig_says(&rig, "\"reason\":\"DeadlineExceeded\""));
}

TEST(a_hook_finds_a_pod_on_the_host_network_at_the_node)
{
    struct sockaddr_in address = { .sin_family = AF_INET }; /* any, at a port that is free */
    socklen_t len = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(bind(listener, (struct sockaddr *)&address, len), 0);
    EXPECT_EQ(listen(listener, 1), 0);
    EXPECT_EQ(getsockname(listener, (struct sockaddr *)&address, &len), 0);
    char pod[512];
    snprintf(pod, sizeof pod,
             WEB("containers: [{name: main, image: 'web:1', "
                 "lifecycle: {postStart: {httpGet: {path: /, port: %d}}}}]"),
             ntohs(address.sin_port));
    struct rig rig = { 0 };
    open_and_start_with(&rig, pod);
    struct pollfd asked = { .fd = listener, .events = POLLIN };
    WAIT_FOR(&rig, poll(&asked, 1, 0) == 1);
    rig_close(&rig);
    close(listener);
}

static void stop_while_hanging(enum cri_method method)
{
    AUTO_RIG rig = { 0 };
    open_and_run(&rig, web);
    remove_web_and_hang(&rig, (struct fake_fault){ .method = method });
    int64_t begun_ns = clock_mono_ns(clock_real());
    rig_agent_stop(&rig);
    EXPECT_TRUE(clock_mono_ns(clock_real()) - begun_ns < (int64_t)60 * 1000000000);
    rig_agent_start(&rig);
}

TEST(an_agent_stops_although_a_removal_hangs)
{
    stop_while_hanging(CRI_REMOVE_CONTAINER);
}

TEST(an_agent_stops_although_the_stop_of_a_sandbox_hangs)
{
    stop_while_hanging(CRI_STOP_POD_SANDBOX);
}

TEST(a_readiness_gate_that_somebody_sets_makes_the_pod_ready)
{
    static const char gated[] =
        POD("name: web, uid: uid-api", "readinessGates: [{conditionType: lb}], " MAIN);
    static const char ready[] = "\"type\":\"Ready\",\"status\":\"True\"";
    char text[512];
    AUTO_RIG rig = { .api = true };
    rig_open(&rig);
    rig_agent_start(&rig);
    AUTO_NODE_POD before = pod_from_yaml(gated);
    agent_deliver(rig.agent, POD_FROM_API, &before, 1);
    WAIT_FOR(&rig, rig_says(&rig, "ReadinessGatesNotReady"));
    EXPECT_FALSE(rig_says(&rig, ready));
    snprintf(text, sizeof text,
             "%sstatus: {phase: Running, conditions: [{type: lb, status: 'True'}]}\n", gated);
    AUTO_NODE_POD after = pod_from_yaml(text);
    agent_deliver(rig.agent, POD_FROM_API, &after, 1);
    WAIT_FOR(&rig, rig_says(&rig, ready));
}

/* What goes wrong around the agent, on a real containerd: processes killed behind its back, containerd that
 * crashes, a shim that hangs. */
#include "node/agent_pods.h"

#include "base/rng.h"

#include <signal.h>
#include <stdio.h>

#define MAIN "status.containerStatuses[main]."
#define READY "status.conditions[Ready].status"

static bool healthy(struct node_fixture *f)
{
    AUTO_BUF body = { 0 };
    return fixture_agent_get(f, "/healthz", &body) == 200;
}

/* A pod that notes each start of its container in a file of the host. */
static void counting_pod(struct node_fixture *f, const char *name)
{
    static_pod(f, name,
               "volumes: [{name: v, hostPath: {path: %s/starts, type: DirectoryOrCreate}}], "
               "containers: [{name: main, image: 'karve.test/tools:1', "
               "command: [sh, -c, 'echo start >>/v/%s; exec tools polite'], "
               "volumeMounts: [{name: v, mountPath: /v}]}]",
               f->dir, name);
}

static uint32_t starts(struct node_fixture *f, const char *name)
{
    struct str text = file_content(f, arena_strf(&f->arena, "%s/starts/%s", f->dir, name).p);
    uint32_t count = 0;
    for (struct str line; str_cut(text, '\n', &line, &text);)
        count++;
    return count;
}

TEST(a_container_killed_from_outside_is_started_again)
{
    struct node_fixture *f = node_fixture();
    agent_runs_pods(f);
    counting_pod(f, "shot");
    WITHIN_LIMIT(f, pod_says(f, "shot", READY, "True") && starts(f, "shot") == 1);
    struct str sandbox = newest_id(f, "shot", NULL);
    fixture_kill(f, newest_id(f, "shot", "main"), SIGKILL);
    WITHIN_LIMIT(f, container_says(f, "shot", "main", "restartCount", "1") &&
                        pod_says(f, "shot", READY, "True"));
    EXPECT_STR(pod_value(f, "shot", MAIN "lastState.terminated.exitCode"), "137");
    EXPECT_TRUE(str_eq(newest_id(f, "shot", NULL), sandbox)); /* in the same sandbox */
    WITHIN_LIMIT(f, starts(f, "shot") == 2);
}

TEST(a_sandbox_killed_from_outside_is_replaced_with_all_its_containers)
{
    struct node_fixture *f = node_fixture();
    agent_runs_pods(f);
    counting_pod(f, "bare");
    WITHIN_LIMIT(f, pod_says(f, "bare", READY, "True") && starts(f, "bare") == 1);
    struct str old = newest_id(f, "bare", NULL), container = newest_id(f, "bare", "main");
    fixture_kill(f, old, SIGKILL);
    WITHIN_LIMIT(f, count_in(f, "bare", NULL, RUNTIME_RUNNING) == 1 &&
                        !str_eq(newest_id(f, "bare", NULL), old));
    EXPECT_EQ(runtime_pod_of(f, "bare")->sandboxes.items[0].attempt, 1);
    WITHIN_LIMIT(f, container_says(f, "bare", "main", "restartCount", "1") &&
                        pod_says(f, "bare", READY, "True"));
    EXPECT_FALSE(str_eq(newest_id(f, "bare", "main"), container));
    EXPECT_EQ(count_in(f, "bare", "main", RUNTIME_RUNNING), 1);
    WITHIN_LIMIT(f, starts(f, "bare") == 2);
}

TEST(containers_go_on_when_containerd_crashes_and_the_agent_finds_it_again)
{
    struct node_fixture *f = node_fixture();
    agent_runs_pods(f);
    counting_pod(f, "calm");
    WITHIN_LIMIT(f, pod_says(f, "calm", READY, "True") && starts(f, "calm") == 1);
    struct str id = newest_id(f, "calm", "main");
    pid_t pid = fixture_pid(f, id);

    fixture_containerd_kill9(f);
    AUTO_BUF body = { 0 };
    EXPECT_EQ(fixture_agent_get(f, "/pods", &body), 200); /* it says what it last knew */
    EXPECT_HAS(buf_str(&body), "uid-calm");
    counting_pod(f, "late"); /* wanted while there is no runtime */
    linger(500);
    EXPECT_EQ(kill(pid, 0), 0);
    fixture_containerd_restart(f);

    WITHIN_LIMIT(f, pod_says(f, "late", READY, "True"));
    WITHIN_LIMIT(f, healthy(f));
    EXPECT_TRUE(str_eq(newest_id(f, "calm", "main"), id));
    EXPECT_STR(pod_value(f, "calm", MAIN "restartCount"), "0");
    EXPECT_STR(pod_value(f, "calm", READY), "True");
    EXPECT_EQ(starts(f, "calm"), 1);
    WITHIN_LIMIT(f, starts(f, "late") == 1);
    /* And it sees what happens from now on. */
    fixture_kill(f, id, SIGKILL);
    WITHIN_LIMIT(f, container_says(f, "calm", "main", "restartCount", "1"));
}

TEST(containerd_killed_at_random_moments_while_pods_start_leaves_one_of_each)
{
    struct node_fixture *f = node_fixture();
    struct rng rng;
    uint64_t seed = (uint64_t)clock_wall_us(clock_real());
    printf("# seed %llu\n", (unsigned long long)seed);
    rng_init(&rng, seed);
    agent_runs_pods(f);
    char names[6][16];
    for (uint32_t i = 0; i < KV_COUNT_OF(names); i++) {
        snprintf(names[i], sizeof names[i], "storm-%u", i);
        counting_pod(f, names[i]);
        if (i % 2 == 1) { /* starting two pods takes about half a second */
            linger((int)rng_below(&rng, 500));
            fixture_containerd_kill9(f);
            linger((int)rng_below(&rng, 200));
            fixture_containerd_restart(f);
        }
    }
    for (uint32_t i = 0; i < KV_COUNT_OF(names); i++) {
        const char *name = names[i];
        WITHIN_LIMIT(f, pod_says(f, name, READY, "True"));
        EXPECT_EQ(count_in(f, name, "main", RUNTIME_RUNNING), 1);
        WITHIN_LIMIT(f, count_in(f, name, NULL, RUNTIME_RUNNING) == 1);
        /* A start that containerd did not live to see through is counted too, and may have come to nothing. */
        WITHIN_LIMIT(f, starts(f, name) >= 1);
        EXPECT_TRUE(starts(f, name) <= pod_number(f, name, MAIN "restartCount") + 1);
    }
}

/* --- containerd killed while it works on a call --- */

static int64_t metric_of(const struct buf *metrics, const char *name, const char *operation)
{
    char line[128];
    snprintf(line, sizeof line, "\n%s{operation_type=\"%s\"} ", name, operation);
    const char *at = strstr(metrics->p, line);
    return at ? strtoll(at + strlen(line), NULL, 10) : 0;
}

/* Has the agent made such a call and no answer yet? Those that were made are counted at their start, how
 * long they took at their end. */
static bool in_flight(struct node_fixture *f, const char *operation)
{
    AUTO_BUF metrics = { 0 };
    if (fixture_agent_get(f, "/metrics", &metrics) != 200)
        return false;
    return metric_of(&metrics, "kubelet_runtime_operations_total", operation) >
           metric_of(&metrics, "kubelet_runtime_operations_duration_seconds_count", operation);
}

static void kill_containerd_in(struct node_fixture *f, const char *operation)
{
    WITHIN_LIMIT(f, in_flight(f, operation));
    fixture_containerd_kill9(f);
    WITHIN_LIMIT(f, !in_flight(f, operation)); /* it has failed, and another is not there yet */
}

/* One sandbox and one container run, each start is accounted for, and it all goes when it is not wanted. */
static void expect_one_of_each(struct node_fixture *f, const char *name)
{
    WITHIN_LIMIT(f, pod_says(f, name, READY, "True"));
    WITHIN_LIMIT(f, count_in(f, name, NULL, RUNTIME_RUNNING) == 1);
    EXPECT_EQ(count_in(f, name, "main", RUNTIME_RUNNING), 1);
    WITHIN_LIMIT(f, starts(f, name) >= 1);
    EXPECT_TRUE(starts(f, name) <= pod_number(f, name, MAIN "restartCount") + 1);
}

static void expect_nothing_left_of(struct node_fixture *f, const char *name)
{
    WITHIN_LIMIT(f, !runtime_pod_of(f, name));
    WITHIN_LIMIT(f, !pod_is_known(f, name));
    WITHIN_LIMIT(f, fixture_process_count(f) == 1); /* containerd */
}

TEST(containerd_killed_while_it_makes_a_sandbox_leaves_one)
{
    struct node_fixture *f = node_fixture();
    agent_runs_pods(f);
    int lock = fixture_lock_addresses(f);
    counting_pod(f, "unborn");
    kill_containerd_in(f, "run_podsandbox");
    fixture_unlock_addresses(lock);
    fixture_containerd_restart(f);
    expect_one_of_each(f, "unborn");
    static_pod_remove(f, "unborn");
    expect_nothing_left_of(f, "unborn");
}

TEST(containerd_killed_while_it_starts_a_container_leaves_one)
{
    struct node_fixture *f = node_fixture();
    agent_runs_pods(f);
    /* Its image comes when the sandbox is there and its shim answers nothing. */
    static_pod(f, "stuck",
               "volumes: [{name: v, hostPath: {path: %s/starts, type: DirectoryOrCreate}}], "
               "containers: [{name: main, image: '127.0.0.1:9/stuck:1', "
               "command: [sh, -c, 'echo start >>/v/stuck; exec tools polite'], "
               "volumeMounts: [{name: v, mountPath: /v}]}]",
               f->dir);
    WITHIN_LIMIT(f, container_says(f, "stuck", "main", "state.waiting.reason", "ImagePullBackOff"));
    fixture_freeze_shim(f, newest_id(f, "stuck", NULL));
    fixture_tag_image(f, "karve.test/tools:1", "127.0.0.1:9/stuck:1");
    kill_containerd_in(f, "start_container");
    fixture_thaw_shims(f);
    fixture_containerd_restart(f);
    expect_one_of_each(f, "stuck");
    static_pod_remove(f, "stuck");
    expect_nothing_left_of(f, "stuck");
}

TEST(containerd_killed_while_it_stops_a_container_leaves_nothing)
{
    struct node_fixture *f = node_fixture();
    agent_runs_pods(f);
    static_pod(f, "slow",
               "terminationGracePeriodSeconds: 10, containers: [{name: main, "
               "image: 'karve.test/tools:1', command: [tools, stubborn]}]");
    counting_pod(f, "bystander");
    WITHIN_LIMIT(f, pod_says(f, "slow", READY, "True") && pod_says(f, "bystander", READY, "True"));
    pid_t pid = fixture_pid(f, newest_id(f, "slow", "main"));
    static_pod_remove(f, "slow");
    kill_containerd_in(f, "stop_container");
    EXPECT_EQ(kill(pid, 0), 0); /* it had ten seconds */
    fixture_containerd_restart(f);
    WITHIN_LIMIT(f, !runtime_pod_of(f, "slow") && !pod_is_known(f, "slow"));
    expect_one_of_each(f, "bystander");
    EXPECT_EQ(starts(f, "bystander"), 1);
    static_pod_remove(f, "bystander");
    expect_nothing_left_of(f, "bystander");
}

/* --- health --- */

static bool unhealthy_because(struct node_fixture *f, const char *why)
{
    AUTO_BUF body = { 0 };
    return fixture_agent_get(f, "/healthz", &body) == 503 && strstr(body.p, why);
}

TEST(an_agent_without_a_runtime_is_not_healthy_until_there_is_one)
{
    struct node_fixture *f = node_fixture();
    fixture_containerd_kill9(f);
    fixture_agent_start(f, NULL);
    EXPECT_TRUE(unhealthy_because(f, "no listing has worked yet"));
    fixture_containerd_restart(f);
    WITHIN_LIMIT(f, healthy(f));
}

TEST(an_agent_whose_runtime_is_away_for_long_is_not_healthy_until_it_is_back)
{
    struct node_fixture *f = node_fixture();
    agent_runs_pods(f);
    counting_pod(f, "patient");
    WITHIN_LIMIT(f, pod_says(f, "patient", READY, "True") && starts(f, "patient") == 1);
    EXPECT_TRUE(healthy(f));
    fixture_containerd_kill9(f);
    WITHIN_LIMIT(f, unhealthy_because(f, "the runtime has not told its status for"));
    fixture_containerd_restart(f);
    WITHIN_LIMIT(f, healthy(f));
    EXPECT_EQ(starts(f, "patient"), 1);
}

TEST(a_hung_shim_holds_up_its_own_pod_and_nothing_else)
{
    struct node_fixture *f = node_fixture();
    agent_runs_pods(f);
    static_pod(f, "hung", "terminationGracePeriodSeconds: 1, containers: [" POLITE("main") "]");
    counting_pod(f, "other");
    WITHIN_LIMIT(f, pod_says(f, "hung", READY, "True"));
    WITHIN_LIMIT(f, pod_says(f, "other", READY, "True"));

    fixture_freeze_shim(f, newest_id(f, "hung", "main"));
    static_pod_remove(f, "hung");
    WITHIN_LIMIT(f, pod_says(f, "hung", "worker.state", "Terminating"));
    counting_pod(f, "third");
    WITHIN_LIMIT(f, pod_says(f, "third", READY, "True"));
    fixture_kill(f, newest_id(f, "other", "main"), SIGKILL);
    WITHIN_LIMIT(f, container_says(f, "other", "main", "restartCount", "1"));
    static_pod_remove(f, "third");
    WITHIN_LIMIT(f, !runtime_pod_of(f, "third"));
    EXPECT_TRUE(healthy(f));
    EXPECT_STR(pod_value(f, "hung", "worker.state"), "Terminating");

    fixture_thaw_shims(f);
    WITHIN_LIMIT(f, !runtime_pod_of(f, "hung"));
    WITHIN_LIMIT(f, !pod_is_known(f, "hung"));
}

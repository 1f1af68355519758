/* Containers that end, on a real containerd: exit codes, restarts and their back-off, last words, and those
 * that never start. */
#include "node/agent_pods.h"

#define MAIN "status.containerStatuses[main]."

static bool waits_for(struct node_fixture *f, const char *name, const char *reason)
{
    return container_says(f, name, "main", "state.waiting.reason", reason);
}

TEST(a_container_that_ends_well_is_started_again_and_what_came_before_is_told)
{
    struct node_fixture *f = node_fixture();
    agent_runs_pods(f);
    static_pod(f, "again", "containers: [" SHELL("main", "exit 0", "") "]");
    WITHIN_LIMIT(f, pod_number(f, "again", MAIN "restartCount") >= 2);
    WITHIN_LIMIT(f, container_says(f, "again", "main", "lastState.terminated.reason", "Completed"));
    EXPECT_STR(pod_value(f, "again", MAIN "lastState.terminated.exitCode"), "0");
    EXPECT_STR(pod_value(f, "again", "status.phase"), "Running");
    /* The newest of those that ended is kept, for its status; no more. */
    WITHIN_LIMIT(f, count_in(f, "again", "main", RUNTIME_EXITED) <= 1);
    EXPECT_EQ(count_in(f, "again", NULL, RUNTIME_RUNNING), 1);
    EXPECT_TRUE(runtime_pod_of(f, "again")->sandboxes.count == 1);
}

TEST(a_container_that_crashes_waits_longer_each_time_and_says_so)
{
    struct node_fixture *f = node_fixture();
    /* Waits long enough to read all that is told of them. */
    fixture_agent_start(f, (const char *const[]){ "--run-pods", "--node-name", NODE_NAME,
                                                  "--backoff-initial", "5s", "--backoff-max", "10s",
                                                  NULL });
    static_pod(f, "crash",
               "volumes: [{name: v, emptyDir: {}}], containers: [" SHELL(
                   "main", "echo start >>/v/starts; exit 3",
                   "volumeMounts: [{name: v, mountPath: /v}]") "]");
    const char *message = "back-off %ds restarting failed container=main "
                          "pod=crash-n1_default(uid-crash)";

    /* The first restart is at once; the second waits the initial delay, the third twice that. */
    WITHIN_LIMIT(f, waits_for(f, "crash", "CrashLoopBackOff"));
    EXPECT_STR(pod_value(f, "crash", MAIN "restartCount"), "1");
    EXPECT_STR(pod_value(f, "crash", MAIN "state.waiting.message"),
               arena_strf(&f->arena, message, 5).p);
    EXPECT_STR(pod_value(f, "crash", MAIN "lastState.terminated.exitCode"), "3");
    EXPECT_STR(pod_value(f, "crash", MAIN "lastState.terminated.reason"), "Error");
    EXPECT_STR(pod_value(f, "crash", MAIN "ready"), "false");
    EXPECT_STR(pod_value(f, "crash", "status.phase"), "Running");
    EXPECT_STR(pod_value(f, "crash", "status.conditions[Ready].reason"), "ContainersNotReady");
    EXPECT_STR(pod_value(f, "crash", "status.conditions[Ready].message"),
               "containers with unready status: [main]");

    WITHIN_LIMIT(f, pod_number(f, "crash", MAIN "restartCount") == 2);
    WITHIN_LIMIT(f, str_eqz(pod_value(f, "crash", MAIN "state.waiting.message"),
                            arena_strf(&f->arena, message, 10).p));
    WITHIN_LIMIT(f, pod_number(f, "crash", MAIN "restartCount") == 3);
    const char *starts =
        arena_strf(&f->arena, "%s/agent/pods/uid-crash/volumes/kubernetes.io~empty-dir/v/starts",
                   f->dir)
            .p;
    WITHIN_LIMIT(f, str_eqz(file_content(f, starts), "start\nstart\nstart\nstart\n"));
}

TEST(a_crash_of_one_container_leaves_the_others_of_its_pod_alone)
{
    struct node_fixture *f = node_fixture();
    agent_runs_pods(f);
    static_pod(f, "two", "containers: [" POLITE("calm") ", " SHELL("main", "exit 1", "") "]");
    WITHIN_LIMIT(f, pod_number(f, "two", MAIN "restartCount") >= 2);
    EXPECT_STR(pod_value(f, "two", "status.containerStatuses[calm].restartCount"), "0");
    EXPECT_STR(pod_value(f, "two", "status.containerStatuses[calm].ready"), "true");
    EXPECT_EQ(count_in(f, "two", "calm", RUNTIME_RUNNING), 1);
}

/* containerd learns that memory ran out by an event of its own, which may come after the end, or never. */
static bool tells_the_runtimes_reason(struct node_fixture *f, const char *name)
{
    struct str id = pod_value(f, name, MAIN "containerID");
    struct str told = pod_value(f, name, MAIN "state.terminated.reason");
    if (!str_starts(id, STR("containerd://")))
        return false;
    const Cri__ContainerStatus *status =
        fixture_inspect(f, str_sub(id, strlen("containerd://"), id.len));
    return status && str_eqz(told, status->reason);
}

TEST(exit_codes_too_much_memory_and_failed_starts_are_told_apart)
{
    static const struct {
        const char *name, *command, *code, *reason;
    } cases[] = {
        { "one", "[sh, -c, 'exit 1']", "1", "Error" },
        { "most", "[sh, -c, 'exit 255']", "255", "Error" },
        { "child", "[sh, -c, 'tools hog 200; exit $?']", "137", "OOMKilled" },
        { "hog", "[tools, hog, '200']", "137", "OOMKilled" },
        { "missing", "[no-such-program]", "128", "StartError" },
    };
    struct node_fixture *f = node_fixture();
    int oom_killed = 0;
    agent_runs_pods(f);
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++)
        static_pod(f, cases[i].name,
                   "restartPolicy: Never, containers: [{name: main, image: 'karve.test/tools:1', "
                   "resources: {limits: {memory: 24Mi}}, command: %s}]",
                   cases[i].command);
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        const char *name = cases[i].name;
        WITHIN_LIMIT(f, pod_says(f, name, "status.phase", "Failed"));
        EXPECT_STR(pod_value(f, name, MAIN "state.terminated.exitCode"), cases[i].code);
        WITHIN_LIMIT(f, tells_the_runtimes_reason(f, name));
        if (strcmp(cases[i].code, "137") == 0)
            oom_killed += pod_says(f, name, MAIN "state.terminated.reason", "OOMKilled");
        else
            EXPECT_STR(pod_value(f, name, MAIN "state.terminated.reason"), cases[i].reason);
        EXPECT_STR(pod_value(f, name, MAIN "restartCount"), "0");
        EXPECT_STR(pod_value(f, name, "status.conditions[Ready].reason"), "PodFailed");
    }
    /* The runtime hears of it from the kernel on another way, and on a busy machine too late: again, then. */
    for (int i = 0; !oom_killed && i < 10; i++) {
        char name[16];
        snprintf(name, sizeof name, "hog-%d", i);
        static_pod(f, name,
                   "restartPolicy: Never, containers: [{name: main, image: 'karve.test/tools:1', "
                   "resources: {limits: {memory: 24Mi}}, command: [tools, hog, '200']}]");
        WITHIN_LIMIT(f, pod_says(f, name, "status.phase", "Failed"));
        WITHIN_LIMIT(f, tells_the_runtimes_reason(f, name));
        oom_killed += pod_says(f, name, MAIN "state.terminated.reason", "OOMKilled");
    }
    EXPECT_TRUE(oom_killed > 0);
    EXPECT_HAS(pod_value(f, "missing", MAIN "state.terminated.message"), "no-such-program");
}

TEST(last_words_come_from_the_file_or_from_the_log)
{
    static const struct {
        const char *name, *script, *policy, *message;
    } cases[] = {
        { "file", "echo logged; echo written >/dev/termination-log; exit 1", "File", "written\n" },
        { "both", "echo logged; echo written >/dev/termination-log; exit 1",
          "FallbackToLogsOnError", "written\n" },
        { "log", "echo first; echo logged; exit 1", "FallbackToLogsOnError", "first\nlogged\n" },
        { "none", "echo logged; exit 1", "File", "" },
        { "well", "echo logged; exit 0", "FallbackToLogsOnError", "" },
    };
    struct node_fixture *f = node_fixture();
    agent_runs_pods(f);
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++)
        static_pod(f, cases[i].name,
                   "restartPolicy: Never, containers: [" SHELL("main", "%s",
                                                               "terminationMessagePolicy: %s") "]",
                   cases[i].script, cases[i].policy);
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        WITHIN_LIMIT(f, pod_value(f, cases[i].name, MAIN "state.terminated.exitCode").p);
        struct str message = pod_value(f, cases[i].name, MAIN "state.terminated.message");
        EXPECT_STR(message.p ? message : STR(""), cases[i].message);
    }
}

TEST(an_image_that_is_not_there_is_told_by_what_was_tried)
{
    struct node_fixture *f = node_fixture();
    agent_runs_pods(f);
    static_pod(f, "never",
               "containers: [{name: main, image: 'karve.test/none:1', "
               "imagePullPolicy: Never}]");
    /* Nothing listens there, so the pull fails at once. */
    static_pod(f, "pull", "containers: [{name: main, image: '127.0.0.1:9/none:1'}]");

    WITHIN_LIMIT(f, waits_for(f, "never", "ErrImageNeverPull"));
    EXPECT_HAS(pod_value(f, "never", MAIN "state.waiting.message"), "karve.test/none:1");
    EXPECT_STR(pod_value(f, "never", "status.phase"), "Pending");

    /* What failed is told for a moment only, and then along with the wait. */
    WITHIN_LIMIT(f, waits_for(f, "pull", "ImagePullBackOff"));
    struct str start = STR("Back-off pulling image \"127.0.0.1:9/none:1\": ErrImagePull: ");
    struct str message;
    WITHIN_LIMIT(f,
                 str_starts(message = pod_value(f, "pull", MAIN "state.waiting.message"), start));
    EXPECT_HAS(message, "connection refused");
    fixture_tag_image(f, "karve.test/tools:1", "127.0.0.1:9/none:1"); /* it comes after all */
    WITHIN_LIMIT(f, pod_says(f, "pull", "status.phase", "Running"));
    EXPECT_STR(pod_value(f, "pull", MAIN "restartCount"), "0");
}

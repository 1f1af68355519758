/* In which order containers start and end, on a real containerd: init containers, sidecars, restart
 * policies, hooks and grace. */
#include "node/agent_pods.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* A folder on the host in which containers leave notes; all of a test's pods see it as /notes. */
#define NOTES_MOUNT "volumeMounts: [{name: notes, mountPath: /notes}]"

static const char *notes(struct node_fixture *f, const char *name)
{
    return arena_strf(&f->arena, "%s/notes/%s", f->dir, name).p;
}

static const char *notes_volume(struct node_fixture *f)
{
    return arena_strf(
               &f->arena,
               "volumes: [{name: notes, hostPath: {path: %s/notes, type: DirectoryOrCreate}}]",
               f->dir)
        .p;
}

TEST(init_containers_run_one_after_another_and_then_the_others)
{
    struct node_fixture *f = node_fixture();
    agent_runs_pods(f);
    static_pod(
        f, "steps",
        "restartPolicy: Never, %s, initContainers: [" SHELL(
            "a", "sleep 0.3; echo a >>/notes/steps",
            NOTES_MOUNT) ", " SHELL("b", "echo b >>/notes/steps",
                                    NOTES_MOUNT) "], containers: [" SHELL("c",
                                                                          "echo c >>/notes/steps",
                                                                          NOTES_MOUNT) "]",
        notes_volume(f));
    WITHIN_LIMIT(f, pod_says(f, "steps", "status.phase", "Succeeded"));
    EXPECT_STR(file_content(f, notes(f, "steps")), "a\nb\nc\n");
    EXPECT_STR(pod_value(f, "steps", "status.initContainerStatuses[a].state.terminated.reason"),
               "Completed");
    EXPECT_STR(pod_value(f, "steps", "status.initContainerStatuses[b].ready"), "true");
    EXPECT_STR(pod_value(f, "steps", "status.conditions[Initialized].status"), "True");
    EXPECT_STR(pod_value(f, "steps", "status.conditions[Initialized].reason"), "PodCompleted");
}

TEST(an_init_container_that_fails_is_tried_again_or_ends_the_pod)
{
    struct node_fixture *f = node_fixture();
    agent_runs_pods(f);
    static_pod(f, "gives-up",
               "restartPolicy: Never, initContainers: [" SHELL(
                   "a", "exit 1", "") "], "
                                      "containers: [" POLITE("main") "]");
    static_pod(f, "tries",
               "%s, initContainers: [" SHELL("a", "echo try >>/notes/tries; test -f /notes/enough",
                                             NOTES_MOUNT) "], containers: [" POLITE("main") "]",
               notes_volume(f));
    WITHIN_LIMIT(f, pod_says(f, "gives-up", "status.phase", "Failed"));
    EXPECT_EQ(count_in(f, "gives-up", "main", RUNTIME_RUNNING), 0);
    EXPECT_STR(pod_value(f, "gives-up", "status.containerStatuses[main].state.waiting.reason"),
               "PodInitializing");

    WITHIN_LIMIT(f, pod_says(f, "tries", "status.initContainerStatuses[a].state.waiting.reason",
                             "CrashLoopBackOff"));
    EXPECT_STR(pod_value(f, "tries", "status.phase"), "Pending");
    EXPECT_STR(pod_value(f, "tries", "status.conditions[Initialized].status"), "False");
    FILE *enough = fopen(notes(f, "enough"), "we");
    EXPECT_TRUE(enough && fclose(enough) == 0);
    WITHIN_LIMIT(f, pod_says(f, "tries", "status.phase", "Running"));
    int64_t restarts = pod_number(f, "tries", "status.initContainerStatuses[a].restartCount");
    EXPECT_TRUE(restarts >= 2); /* the back-off began with the first */
    EXPECT_EQ(file_content(f, notes(f, "tries")).len, strlen("try\n") * (size_t)(restarts + 1));
}

TEST(a_sidecar_starts_before_the_others_and_ends_after_them)
{
    struct node_fixture *f = node_fixture();
    agent_runs_pods(f);
    /* Each notes its start and, at SIGTERM, its end; the sidecar is slow to be ready. */
    const char *side = "trap 'echo side ends >>/notes/side; exit 0' TERM; echo side >>/notes/side; "
                       "sleep 0.5; touch /tmp/up; while :; do sleep 0.05; done";
    const char *main = "trap 'sleep 0.5; echo main ends >>/notes/side; exit 0' TERM; "
                       "echo main >>/notes/side; while :; do sleep 0.05; done";
    static_pod(
        f, "side",
        "%s, initContainers: [" SHELL(
            "s", "%s",
            "restartPolicy: Always, startupProbe: {periodSeconds: 1, timeoutSeconds: 60, "
            "failureThreshold: 1000, exec: {command: [test, -f, /tmp/up]}}, " NOTES_MOUNT) ", " SHELL("i",
                                                                                                      "echo init >>/notes/side",
                                                                                                      NOTES_MOUNT) "], containers: [" SHELL("m",
                                                                                                                                            "%s",
                                                                                                                                            NOTES_MOUNT) "]",
        notes_volume(f), side, main);
    WITHIN_LIMIT(f, pod_says(f, "side", "status.conditions[Ready].status", "True"));
    WITHIN_LIMIT(f, str_eqz(file_content(f, notes(f, "side")), "side\ninit\nmain\n"));
    EXPECT_STR(pod_value(f, "side", "status.initContainerStatuses[s].started"), "true");

    static_pod_remove(f, "side");
    WITHIN_LIMIT(f, !runtime_pod_of(f, "side"));
    EXPECT_STR(file_content(f, notes(f, "side")), "side\ninit\nmain\nmain ends\nside ends\n");
}

TEST(a_sidecar_does_not_keep_a_pod_alive_whose_work_is_done)
{
    struct node_fixture *f = node_fixture();
    agent_runs_pods(f);
    static_pod(f, "job",
               "restartPolicy: OnFailure, initContainers: [{name: s, image: 'karve.test/tools:1', "
               "restartPolicy: Always}], containers: [" SHELL("main", "sleep 0.2", "") "]");
    WITHIN_LIMIT(f, pod_says(f, "job", "status.phase", "Succeeded"));
    WITHIN_LIMIT(f, count_in(f, "job", "s", RUNTIME_RUNNING) == 0);
    WITHIN_LIMIT(f, count_in(f, "job", NULL, RUNTIME_RUNNING) == 0);
}

TEST(restart_policies_decide_what_becomes_of_a_pod)
{
    struct node_fixture *f = node_fixture();
    agent_runs_pods(f);
    static_pod(f, "never-ok",
               "restartPolicy: Never, containers: [" SHELL("main", "exit 0", "") "]");
    static_pod(f, "never-bad",
               "restartPolicy: Never, containers: [" SHELL("main", "exit 1", "") ", " SHELL(
                   "other", "exit 0", "") "]");
    static_pod(f, "onfail-ok",
               "restartPolicy: OnFailure, containers: [" SHELL("main", "exit 0", "") "]");
    static_pod(
        f, "onfail-bad",
        "restartPolicy: OnFailure, %s, containers: [" SHELL(
            "main", "echo try >>/notes/onfail; [ $(wc -l </notes/onfail) = 2 ]", NOTES_MOUNT) "]",
        notes_volume(f));
    WITHIN_LIMIT(f, pod_says(f, "never-ok", "status.phase", "Succeeded"));
    WITHIN_LIMIT(f, pod_says(f, "never-bad", "status.phase", "Failed"));
    WITHIN_LIMIT(f, pod_says(f, "onfail-ok", "status.phase", "Succeeded"));
    WITHIN_LIMIT(f, pod_says(f, "onfail-bad", "status.phase", "Succeeded"));
    EXPECT_STR(pod_value(f, "never-ok", "status.containerStatuses[main].restartCount"), "0");
    EXPECT_STR(pod_value(f, "onfail-ok", "status.containerStatuses[main].restartCount"), "0");
    EXPECT_STR(pod_value(f, "onfail-bad", "status.containerStatuses[main].restartCount"), "1");
    /* A pod that is over is not started again by an agent that comes back. */
    WITHIN_LIMIT(f, pod_says(f, "never-ok", "worker.state", "Finished"));
    WITHIN_LIMIT(f, pod_says(f, "onfail-bad", "worker.state", "Finished"));
    fixture_agent_stop(f);
    agent_runs_pods(f);
    WITHIN_LIMIT(f, pod_says(f, "never-ok", "status.phase", "Succeeded"));
    WITHIN_LIMIT(f, pod_says(f, "onfail-bad", "worker.state", "Finished"));
    EXPECT_STR(file_content(f, notes(f, "onfail")), "try\ntry\n");
}

TEST(hooks_run_after_the_start_and_before_the_stop)
{
    struct node_fixture *f = node_fixture();
    agent_runs_pods(f);
    static_pod(f, "hooks",
               "%s, containers: [{name: main, image: 'karve.test/tools:1', " NOTES_MOUNT
               ", lifecycle: {postStart: {exec: {command: [sh, -c, 'echo post >>/notes/hooks']}}, "
               "preStop: {exec: {command: [sh, -c, 'sleep 0.3; echo pre >>/notes/hooks']}}}}]",
               notes_volume(f));
    static_pod(f, "bad-hook",
               "containers: [{name: main, image: 'karve.test/tools:1', "
               "lifecycle: {postStart: {exec: {command: [sh, -c, 'exit 9']}}}}]");
    WITHIN_LIMIT(f, pod_says(f, "hooks", "status.phase", "Running"));
    EXPECT_STR(file_content(f, notes(f, "hooks")), "post\n");
    static_pod_remove(f, "hooks");
    WITHIN_LIMIT(f, !runtime_pod_of(f, "hooks"));
    EXPECT_STR(file_content(f, notes(f, "hooks")), "post\npre\n");

    /* A container whose postStart hook fails is killed, and started again. */
    WITHIN_LIMIT(f, pod_number(f, "bad-hook", "status.containerStatuses[main].restartCount") >= 1);
    EXPECT_FALSE(pod_says(f, "bad-hook", "status.conditions[Ready].status", "True"));
}

TEST(a_container_that_ignores_sigterm_is_killed_when_its_grace_is_over)
{
    struct node_fixture *f = node_fixture();
    agent_runs_pods(f);
    /* It notes the signal, and that it is still there after it. */
    static_pod(f, "deaf",
               "%s, terminationGracePeriodSeconds: 5, containers: [" SHELL(
                   "main",
                   "trap 'echo asked >>/notes/deaf; told=yes' TERM; echo here >>/notes/deaf; "
                   "while sleep 0.05; do test -z $told || { echo stayed >>/notes/deaf; told=; }; "
                   "done",
                   NOTES_MOUNT) "]",
               notes_volume(f));
    WITHIN_LIMIT(f, str_eqz(file_content(f, notes(f, "deaf")), "here\n"));
    static_pod_remove(f, "deaf");
    WITHIN_LIMIT(f, !runtime_pod_of(f, "deaf"));
    WITHIN_LIMIT(f, !pod_is_known(f, "deaf"));
    EXPECT_STR(file_content(f, notes(f, "deaf")), "here\nasked\nstayed\n");
}

TEST(a_pod_that_is_over_its_deadline_fails)
{
    struct node_fixture *f = node_fixture();
    agent_runs_pods(f);
    static_pod(f, "late", "activeDeadlineSeconds: 1, containers: [" POLITE("main") "]");
    WITHIN_LIMIT(f, pod_says(f, "late", "status.phase", "Failed"));
    EXPECT_STR(pod_value(f, "late", "status.reason"), "DeadlineExceeded");
    WITHIN_LIMIT(f, count_in(f, "late", "main", RUNTIME_RUNNING) == 0);
}

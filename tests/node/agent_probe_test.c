/* Probes on a real containerd: commands run in containers, requests go over the pod network. */
#include "node/agent_pods.h"

#include <stdio.h>

#define MAIN "status.containerStatuses[main]."
#define READY "status.conditions[Ready].status"
#define QUICK "periodSeconds: 1, timeoutSeconds: 60, failureThreshold: 1"

static void touch(struct node_fixture *f, const char *name, bool there)
{
    const char *path = arena_strf(&f->arena, "%s/flags/%s", f->dir, name).p;
    if (!there) {
        EXPECT_EQ(remove(path), 0);
        return;
    }
    FILE *file = fopen(path, "we");
    EXPECT_TRUE(file && fclose(file) == 0);
}

/* Containers see the folder as /flags: what lies in it decides their probes. */
#define FLAGS "volumeMounts: [{name: flags, mountPath: /flags}]"
static const char *flags_volume(struct node_fixture *f)
{
    return arena_strf(
               &f->arena,
               "volumes: [{name: flags, hostPath: {path: %s/flags, type: DirectoryOrCreate}}]",
               f->dir)
        .p;
}

TEST(readiness_follows_its_probe_and_nothing_is_restarted)
{
    struct node_fixture *f = node_fixture();
    agent_runs_pods(f);
    static_pod(f, "http",
               "%s, containers: [" SERVER("main", "8080",
                                          "readinessProbe: {" QUICK ", httpGet: {port: 8080, "
                                          "path: /file/flags/http}}, " FLAGS) "]",
               flags_volume(f));
    static_pod(f, "exec",
               "%s, containers: [{name: main, image: 'karve.test/tools:1', "
               "readinessProbe: {" QUICK ", exec: {command: [test, -f, /flags/exec]}}, " FLAGS "}]",
               flags_volume(f));
    static const char *const names[] = { "http", "exec" };
    for (size_t i = 0; i < KV_COUNT_OF(names); i++) {
        WITHIN_LIMIT(f, pod_says(f, names[i], "status.phase", "Running"));
        EXPECT_STR(pod_value(f, names[i], MAIN "started"), "true");
        EXPECT_STR(pod_value(f, names[i], READY), "False");
        touch(f, names[i], true);
    }
    for (size_t i = 0; i < KV_COUNT_OF(names); i++) {
        WITHIN_LIMIT(f, pod_says(f, names[i], READY, "True"));
        EXPECT_STR(pod_value(f, names[i], MAIN "ready"), "true");
        touch(f, names[i], false);
    }
    for (size_t i = 0; i < KV_COUNT_OF(names); i++) {
        WITHIN_LIMIT(f, pod_says(f, names[i], READY, "False"));
        EXPECT_STR(pod_value(f, names[i], MAIN "restartCount"), "0");
        EXPECT_EQ(count_in(f, names[i], "main", RUNTIME_RUNNING), 1);
    }
}

TEST(a_container_that_fails_its_liveness_probe_is_killed_and_started_again)
{
    static const struct {
        const char *name, *probe;
    } cases[] = {
        { "live-exec", "exec: {command: [sh, -c, '! test -f /flags/sick']}" },
        { "live-http", "httpGet: {port: 8080, path: /status/500}" },
        { "live-tcp", "tcpSocket: {port: 81}" }, /* nobody listens there */
    };
    struct node_fixture *f = node_fixture();
    agent_runs_pods(f);
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++)
        static_pod(f, cases[i].name,
                   "%s, containers: [" SERVER("main", "8080",
                                              "livenessProbe: {" QUICK ", %s}, " FLAGS) "]",
                   flags_volume(f), cases[i].probe);
    static_pod(f, "well",
               "%s, containers: [" SERVER("main", "8080",
                                          "startupProbe: {periodSeconds: 1, failureThreshold: "
                                          "1000, tcpSocket: {port: 8080}}, "
                                          "livenessProbe: {" QUICK
                                          ", tcpSocket: {port: 8080}}, " FLAGS) "]",
               flags_volume(f));
    WITHIN_LIMIT(f, pod_says(f, "live-exec", READY, "True"));
    WITHIN_LIMIT(f, pod_says(f, "well", READY, "True"));
    touch(f, "sick", true);
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        WITHIN_LIMIT(f, pod_number(f, cases[i].name, MAIN "restartCount") >= 1);
        EXPECT_EQ(count_in(f, cases[i].name, NULL, RUNTIME_RUNNING), 1);
    }
    touch(f, "sick", false);
    EXPECT_HAS(file_content(f, f->agent_log), "its liveness probe failed");
    EXPECT_STR(pod_value(f, "well", MAIN "restartCount"), "0");
    EXPECT_STR(pod_value(f, "well", READY), "True");
}

TEST(a_startup_probe_holds_back_the_others)
{
    struct node_fixture *f = node_fixture();
    agent_runs_pods(f);
    /* Its liveness probe would kill it at once. */
    static_pod(f, "slow",
               "%s, containers: [{name: main, image: 'karve.test/tools:1', "
               "startupProbe: {periodSeconds: 1, failureThreshold: 1000, "
               "exec: {command: [test, -f, /flags/up]}}, "
               "livenessProbe: {" QUICK ", exec: {command: [test, -f, /flags/up]}}, " FLAGS "}]",
               flags_volume(f));
    WITHIN_LIMIT(f, pod_says(f, "slow", "status.phase", "Running"));
    linger(2500);
    EXPECT_STR(pod_value(f, "slow", MAIN "started"), "false");
    EXPECT_STR(pod_value(f, "slow", MAIN "restartCount"), "0");
    EXPECT_STR(pod_value(f, "slow", READY), "False");
    touch(f, "up", true);
    WITHIN_LIMIT(f, pod_says(f, "slow", READY, "True"));
    EXPECT_STR(pod_value(f, "slow", MAIN "started"), "true");
    touch(f, "up", false);
    WITHIN_LIMIT(f, pod_number(f, "slow", MAIN "restartCount") >= 1);
}

TEST(a_startup_probe_that_never_succeeds_kills_its_container)
{
    struct node_fixture *f = node_fixture();
    agent_runs_pods(f);
    static_pod(f, "stuck",
               "containers: [{name: main, image: 'karve.test/tools:1', "
               "startupProbe: {" QUICK ", exec: {command: ['false']}}}]");
    WITHIN_LIMIT(f, pod_number(f, "stuck", MAIN "restartCount") >= 1);
    EXPECT_HAS(file_content(f, f->agent_log), "its startup probe failed");
}

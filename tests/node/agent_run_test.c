/* Static pods on a real containerd: that they run, and what their containers get to see. */
#include "node/agent_pods.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONTAINER "status.containerStatuses[main]."
#define CONDITION(type) "status.conditions[" type "].status"

static bool ready(struct node_fixture *f, const char *name)
{
    return pod_says(f, name, CONDITION("Ready"), "True");
}

static bool ended(struct node_fixture *f, const char *name)
{
    return pod_says(f, name, "status.phase", "Succeeded");
}

/* containerd writes the last of a log when it has told of the end already: both are waited for. */
static bool file_has(struct node_fixture *f, const char *path, const char *words)
{
    struct str text = file_content(f, path);
    return text.p && strstr(text.p, words);
}

/* What a container wrote to its standard output, in the first of its logs, without times and tags. */
static struct str said(struct node_fixture *f, const char *name, const char *container)
{
    struct str text =
        file_content(f, arena_strf(&f->arena, "%s/%s/0.log", log_folder(f, name), container).p);
    AUTO_BUF out = { 0 };
    for (struct str line; str_cut(text, '\n', &line, &text);) {
        struct str word;
        for (int i = 0; i < 3; i++) /* time, stream, tag */
            str_cut(line, ' ', &word, &line);
        buf_addf(&out, "%.*s\n", STR_ARG(line));
    }
    return arena_str(&f->arena, buf_str(&out));
}

TEST(a_static_pod_runs_and_its_status_tells_all_of_it)
{
    struct node_fixture *f = node_fixture();
    agent_runs_pods(f);
    static_pod(f, "web",
               "containers: [" SERVER("main", "8080", "ports: [{containerPort: 8080}]") "]");
    WITHIN_LIMIT(f, ready(f, "web"));

    EXPECT_STR(pod_value(f, "web", "name"), "web-" NODE_NAME);
    EXPECT_STR(pod_value(f, "web", "namespace"), "default");
    EXPECT_STR(pod_value(f, "web", "worker.state"), "Syncing");
    EXPECT_STR(pod_value(f, "web", "status.phase"), "Running");
    EXPECT_STR(pod_value(f, "web", "status.qosClass"), "BestEffort");
    EXPECT_TRUE(pod_value(f, "web", "status.startTime").len > 0);
    EXPECT_TRUE(pod_value(f, "web", "status.hostIP").len > 0);
    static const char *const conditions[] = { CONDITION("PodReadyToStartContainers"),
                                              CONDITION("Initialized"),
                                              CONDITION("ContainersReady"),
                                              CONDITION("PodScheduled") };
    for (size_t i = 0; i < KV_COUNT_OF(conditions); i++)
        EXPECT_STR(pod_value(f, "web", conditions[i]), "True");

    struct str id = newest_id(f, "web", "main");
    EXPECT_TRUE(str_eq(pod_value(f, "web", CONTAINER "containerID"),
                       arena_strf(&f->arena, "containerd://%.*s", STR_ARG(id))));
    EXPECT_STR(pod_value(f, "web", CONTAINER "image"), "karve.test/tools:1");
    EXPECT_HAS(pod_value(f, "web", CONTAINER "imageID"), "sha256:");
    EXPECT_STR(pod_value(f, "web", CONTAINER "restartCount"), "0");
    EXPECT_STR(pod_value(f, "web", CONTAINER "ready"), "true");
    EXPECT_STR(pod_value(f, "web", CONTAINER "started"), "true");
    EXPECT_TRUE(pod_value(f, "web", CONTAINER "state.running.startedAt").len > 0);

    struct str ip = pod_value(f, "web", "status.podIP");
    EXPECT_HAS(ip, "10.211.");
    WITHIN_LIMIT(f, http_code(ip, 8080, "/status/204") == 204);
    EXPECT_EQ(count_in(f, "web", "main", RUNTIME_RUNNING), 1);
    EXPECT_EQ(count_in(f, "web", NULL, RUNTIME_RUNNING), 1);
}

TEST(logs_are_where_and_as_crictl_expects_them)
{
    struct node_fixture *f = node_fixture();
    agent_runs_pods(f);
    static_pod(f, "talk",
               "restartPolicy: Never, containers: [" SHELL(
                   "main", "echo one; echo two >&2; printf three", "") "]");
    WITHIN_LIMIT(f, ended(f, "talk"));

    const char *log = arena_strf(&f->arena, "%s/main/0.log", log_folder(f, "talk")).p;
    WITHIN_LIMIT(f, file_has(f, log, " stdout F one\n"));
    WITHIN_LIMIT(f, file_has(f, log, " stderr F two\n"));
    WITHIN_LIMIT(f, file_has(f, log, " stdout P three\n")); /* no end of line: a part of one */
    struct str text = file_content(f, log);
    int year, month, day, hour, minute;
    double second;
    EXPECT_EQ(sscanf(text.p, "%d-%d-%dT%d:%d:%lf", &year, &month, &day, &hour, &minute, &second),
              6);

    const char *link = arena_strf(&f->arena, "%s/links/talk-" NODE_NAME "_default_main-%.*s.log",
                                  f->dir, STR_ARG(newest_id(f, "talk", "main")))
                           .p;
    char target[512] = "";
    EXPECT_TRUE(readlink(link, target, sizeof target - 1) > 0);
    EXPECT_Z(target, log);
}

TEST(a_pod_on_the_hosts_network_has_the_hosts_addresses)
{
    struct node_fixture *f = node_fixture();
    agent_runs_pods(f);
    static_pod(f, "host", "hostNetwork: true, containers: [" POLITE("main") "]");
    WITHIN_LIMIT(f, ready(f, "host"));

    struct str ip = pod_value(f, "host", "status.podIP");
    EXPECT_TRUE(ip.len > 0 && str_eq(ip, pod_value(f, "host", "status.hostIP")));
    char ours[64] = "", theirs[64] = "";
    EXPECT_TRUE(readlink("/proc/self/ns/net", ours, sizeof ours - 1) > 0);
    pid_t pid = fixture_pid(f, newest_id(f, "host", "main"));
    EXPECT_TRUE(readlink(arena_strf(&f->arena, "/proc/%d/ns/net", (int)pid).p, theirs,
                         sizeof theirs - 1) > 0);
    EXPECT_Z(theirs, ours);
}

TEST(containers_of_a_pod_share_an_empty_dir_and_its_network)
{
    struct node_fixture *f = node_fixture();
    agent_runs_pods(f);
    static_pod(
        f, "pair",
        "restartPolicy: Never, volumes: [{name: v, emptyDir: {}}, "
        "{name: m, emptyDir: {medium: Memory, sizeLimit: 1Mi}}], containers: [" SHELL(
            "writer", "echo hello >/v/note; echo hi >/m/note; nc -l -p 99 >/v/heard",
            "volumeMounts: [{name: v, mountPath: /v}, {name: m, mountPath: /m}]") ", " SHELL("reader",
                                                                                             "until [ -s /v/note ] && [ -s /m/note ]; do sleep 0.05; done; "
                                                                                             "cat /v/note /m/note; stat -f -c %%T /m; "
                                                                                             "until echo word | nc 127.0.0.1 99; do sleep 0.05; done",
                                                                                             "volumeMounts: [{name: v, mountPath: /v}, {name: m, mountPath: /m}]") "]");
    WITHIN_LIMIT(f, ended(f, "pair"));
    WITHIN_LIMIT(f, str_eqz(said(f, "pair", "reader"), "hello\nhi\ntmpfs\n"));
}

TEST(host_path_environment_and_downward_fields_are_seen_inside)
{
    struct node_fixture *f = node_fixture();
    agent_runs_pods(f);
    static_pod(
        f, "sees",
        "restartPolicy: Never, volumes: ["
        "{name: host, hostPath: {path: %s/shared, type: DirectoryOrCreate}}, "
        "{name: down, downwardAPI: {items: [{path: who, fieldRef: {fieldPath: metadata.name}}]}}], "
        "containers: [" SHELL(
            "main",
            "echo $WORD $NAME $IP $CPU; echo $GREETING; cat /down/who; echo; hostname; "
            "grep -c $IP /etc/hosts; echo seen >/host/proof",
            "resources: {limits: {cpu: 250m}}, "
            "env: [{name: WORD, value: tree}, {name: GREETING, value: 'a $(WORD) $$(WORD)'}, "
            "{name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, "
            "{name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}, "
            "{name: CPU, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1m}}}], "
            "volumeMounts: [{name: host, mountPath: /host}, "
            "{name: down, mountPath: /down, readOnly: true}]") "]",
        f->dir);
    WITHIN_LIMIT(f, ended(f, "sees"));
    const char *want = arena_strf(&f->arena,
                                  "tree sees-n1 %.*s 250\n"
                                  "a tree $(WORD)\n"
                                  "sees-n1\n"
                                  "sees-n1\n"
                                  "1\n",
                                  STR_ARG(pod_value(f, "sees", "status.podIP")))
                           .p;
    WITHIN_LIMIT(f, str_eqz(said(f, "sees", "main"), want));
    EXPECT_STR(file_content(f, arena_strf(&f->arena, "%s/shared/proof", f->dir).p), "seen\n");
}

/* The value of a cgroup file of the container's process, under version 1 or 2. */
static struct str cgroup_value(struct node_fixture *f, struct str id, const char *controller,
                               const char *file1, const char *file2)
{
    struct str rest =
        file_content(f, arena_strf(&f->arena, "/proc/%d/cgroup", (int)fixture_pid(f, id)).p);
    struct str unified = STR_NONE;
    for (struct str line; str_cut(rest, '\n', &line, &rest);) {
        struct str number, names, path;
        str_cut(line, ':', &number, &line);
        str_cut(line, ':', &names, &path);
        const char *at =
            arena_strf(&f->arena, "/sys/fs/cgroup/%s%.*s/%s", controller, STR_ARG(path), file1).p;
        AUTO_FREE char *list = str_dup(names);
        if (names.len && strstr(list, controller) && file_exists(at))
            return str_trim(file_content(f, at));
        if (names.len == 0)
            unified = path;
    }
    return str_trim(
        file_content(f, arena_strf(&f->arena, "/sys/fs/cgroup%.*s/%s", STR_ARG(unified), file2).p));
}

TEST(limits_are_in_the_cgroup_and_the_security_context_holds)
{
    struct node_fixture *f = node_fixture();
    agent_runs_pods(f);
    static_pod(f, "bound",
               "containers: [{name: main, image: 'karve.test/tools:1', "
               "resources: {limits: {memory: 48Mi, cpu: 300m}}}]");
    static_pod(
        f, "user",
        "restartPolicy: Never, securityContext: {runAsUser: 1234, runAsGroup: 55, fsGroup: 77}, "
        "volumes: [{name: v, emptyDir: {}}], containers: [" SHELL(
            "main",
            "id -u; id -g; id -G; touch /file 2>/dev/null || echo read-only; "
            "touch /v/file && echo written; stat -c %%g /v",
            "securityContext: {readOnlyRootFilesystem: true}, "
            "volumeMounts: [{name: v, mountPath: /v}]") "]");
    static_pod(f, "root",
               "containers: [{name: main, image: 'karve.test/tools:1', "
               "securityContext: {runAsNonRoot: true}}]");

    WITHIN_LIMIT(f, ready(f, "bound"));
    struct str id = newest_id(f, "bound", "main");
    EXPECT_STR(cgroup_value(f, id, "memory", "memory.limit_in_bytes", "memory.max"), "50331648");
    EXPECT_TRUE(
        str_starts(cgroup_value(f, id, "cpu", "cpu.cfs_quota_us", "cpu.max"), STR("30000")));
    EXPECT_STR(pod_value(f, "bound", "status.qosClass"), "Guaranteed");

    WITHIN_LIMIT(f, ended(f, "user"));
    WITHIN_LIMIT(f, str_eqz(said(f, "user", "main"), "1234\n55\n55 77\nread-only\nwritten\n77\n"));

    WITHIN_LIMIT(
        f, container_says(f, "root", "main", "state.waiting.reason", "CreateContainerConfigError"));
    EXPECT_HAS(pod_value(f, "root", CONTAINER "state.waiting.message"), "root");
}

TEST(a_manifest_with_a_mistake_stops_no_other_pod)
{
    struct node_fixture *f = node_fixture();
    fixture_manifest(f, "broken", "apiVersion: v1\nkind: Pod\nspec: [\n");
    static_pod(f, "refers", "serviceAccountName: x, containers: [" POLITE("main") "]");
    static_pod(f, "good", "containers: [" POLITE("main") "]");
    agent_runs_pods(f);
    WITHIN_LIMIT(f, ready(f, "good"));
    EXPECT_FALSE(pod_is_known(f, "refers"));
    struct str log = file_content(f, f->agent_log);
    EXPECT_HAS(log, "broken.yaml:");
    EXPECT_HAS(log, "refers.yaml:");
}

/* A node of ours in a real cluster: a real scheduler binds pods to it, `karve agent` runs them on a real
 * containerd, and what it tells the API server is looked at as kubectl shows it. */
#include "kube/fixture.h"
#include "node/agent_pods.h"

#include <signal.h>

/* --- the node --- */

struct node {
    struct plane *p;
    struct node_fixture *f;
    const char *kubeconfig; /* of system:node:n1 */
};

static void node_start(struct node *n)
{
    fixture_agent_start(n->f, (const char *const[]){ "--run-pods", "--node-name", NODE_NAME,
                                                     "--kubeconfig", n->kubeconfig, "--node-labels",
                                                     "disk=ssd", "--backoff-initial", "1s",
                                                     "--backoff-max", "2s", NULL });
}

/* What kubectl prints of an object; absent: it printed nothing, or failed. */
static struct str shown(struct node *n, const char *object, const char *jsonpath)
{
    AUTO_BUF said = { 0 };
    if (plane_sh(n->p, &said, "kubectl get %s -o 'jsonpath=%s' --request-timeout=5s 2>/dev/null",
                 object, jsonpath) != 0)
        return STR_NONE;
    struct str text = str_trim(buf_str(&said));
    return text.len > 0 ? arena_str(&n->p->arena, text) : STR_NONE;
}

static bool shows(struct node *n, const char *object, const char *jsonpath, const char *want)
{
    return str_eqz(shown(n, object, jsonpath), want);
}

#define READY "{.status.conditions[?(@.type==\"Ready\")].status}"

static bool is_open(struct node *n) /* ready, and no taint keeps pods away */
{
    return shows(n, "node/" NODE_NAME, READY " {.spec.taints}", "True");
}

/* The runtime first: it is the one that a machine may lack. The agent ends before the cluster's objects go, or it would
 * take that for the end of its pods. */
static struct node node_joins(void)
{
    struct node n = { .f = node_fixture() };
    n.p = plane();
    n.kubeconfig =
        plane_user(n.p, "system:node:" NODE_NAME, (const char *[]){ "system:nodes", NULL });
    node_start(&n);
    WITHIN_LIMIT(n.f, is_open(&n));
    return n;
}

/* --- pods --- */

/* Says what it was given, and then waits. USR1 ends it with code 3, TERM politely, with a note. */
#define TALKER                                                                                     \
    "{name: main, image: 'karve.test/busybox:1', command: [sh, -c, '"                              \
    "echo who=$WHO password=$PASSWORD; cat /etc/conf/greeting; echo; "                             \
    "trap \"exit 3\" USR1; trap \"sleep 1; echo bye >/note/bye; exit 0\" TERM; "                   \
    "while :; do sleep 1 & wait $!; done'], "                                                      \
    "env: [{name: WHO, valueFrom: {configMapKeyRef: {name: talk, key: who}}}, "                    \
    "{name: PASSWORD, valueFrom: {secretKeyRef: {name: talk, key: password}}}], "                  \
    "volumeMounts: [{name: conf, mountPath: /etc/conf}, {name: secret, mountPath: /etc/secret}, "  \
    "{name: note, mountPath: /note}]}"

#define TALKER_FILES                                                                               \
    "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: talk}\n"                               \
    "data: {who: world, greeting: good morning}\n"                                                 \
    "---\napiVersion: v1\nkind: Secret\nmetadata: {name: talk}\n"                                  \
    "stringData: {password: pssst}\n"

#define DEPLOYMENT(name, replicas, spec)                                                           \
    "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: " name "}\n"                     \
    "spec: {replicas: " replicas ", selector: {matchLabels: {app: " name "}}, "                    \
    "template: {metadata: {labels: {app: " name "}}, spec: {" spec "}}}\n"

#define POLITE_DEPLOYMENT(name, replicas)                                                          \
    DEPLOYMENT(name, replicas, "terminationGracePeriodSeconds: 5, containers: [" POLITE("main") "]")

/* Of the deployment `name`: how many pods are ready. */
static bool ready_pods(struct node *n, const char *name, uint32_t want)
{
    AUTO_BUF said = { 0 };
    plane_sh(n->p, &said,
             "kubectl get pod -l app=%s -o 'jsonpath={range .items[*]}{.status.phase}/" READY
             " {end}' | tr ' ' '\\n' | grep -cx Running/True",
             name);
    return str_eq(str_trim(buf_str(&said)), arena_strf(&n->p->arena, "%u", want));
}

static const char *pod_path(struct node *n, const char *name) /* "pod/NAME" of its first pod */
{
    return plane_must(n->p, "kubectl get pod -l app=%s -o name | sort | head -n 1", name).p;
}

static const struct runtime_pod *runtime_pod_by_uid(struct node *n, struct str uid)
{
    const struct runtime_listing *listing = fixture_list(n->f);
    for (uint32_t i = 0; i < listing->pod_count; i++) {
        if (str_eq(listing->pods[i].uid, uid))
            return &listing->pods[i];
    }
    return NULL;
}

/* The newest instance of the container "main", which must be there. */
static const struct listed *runtime_main(struct node *n, struct str uid)
{
    const struct runtime_pod *pod = runtime_pod_by_uid(n, uid);
    EXPECT_TRUE(pod && pod->containers.count > 0);
    EXPECT_STR(pod->containers.items[0].name, "main");
    return &pod->containers.items[0];
}

/* All sandboxes and containers that the runtime has of pods whose names begin so, sorted: what runs, and was ever
 * started and not removed. Pods of others may be there for a while: those of an earlier test, that go. */
static struct str in_runtime(struct node *n, const char *prefix)
{
    AUTO_BUF ids = { 0 };
    const struct runtime_listing *listing = fixture_list(n->f);
    for (uint32_t i = 0; i < listing->pod_count; i++) {
        if (!str_starts(listing->pods[i].name, str_of(prefix)))
            continue;
        for (uint32_t j = 0; j < listing->pods[i].sandboxes.count; j++)
            buf_addf(&ids, "%.*s sandbox %.*s\n", STR_ARG(listing->pods[i].name),
                     STR_ARG(listing->pods[i].sandboxes.items[j].id));
        for (uint32_t j = 0; j < listing->pods[i].containers.count; j++)
            buf_addf(&ids, "%.*s container %.*s\n", STR_ARG(listing->pods[i].name),
                     STR_ARG(listing->pods[i].containers.items[j].id));
    }
    return arena_str(&n->p->arena, buf_str(&ids));
}

/* --- the Node --- */

#define RENEWED "{.spec.renewTime}"

TEST(an_agent_registers_a_node_that_is_ready_and_renews_its_lease)
{
    struct node n = node_joins();
    struct str lease = STR("-n kube-node-lease lease/" NODE_NAME);
    WITHIN_LIMIT(n.f, shown(&n, lease.p, RENEWED).p != NULL);
    struct str renewed = shown(&n, lease.p, RENEWED);

    EXPECT_STR(shown(&n, "node/" NODE_NAME,
                     "{.metadata.labels.disk} {.metadata.labels.kubernetes\\.io/hostname} "
                     "{.metadata.labels.kubernetes\\.io/os}"),
               "ssd " NODE_NAME " linux");
    EXPECT_STR(shown(&n, "node/" NODE_NAME,
                     "{range .status.conditions[*]}{.type}={.status}/{.reason} {end}"),
               "MemoryPressure=False/KubeletHasSufficientMemory "
               "DiskPressure=False/KubeletHasNoDiskPressure "
               "PIDPressure=False/KubeletHasSufficientPID Ready=True/KubeletReady");
    EXPECT_STR(shown(&n, "node/" NODE_NAME, "{.status.capacity.pods}"), "110");
    EXPECT_HAS(shown(&n, "node/" NODE_NAME, "{.status.nodeInfo.containerRuntimeVersion}"),
               "containerd://");
    EXPECT_HAS(shown(&n, "node/" NODE_NAME, "{.status.nodeInfo.kubeletVersion}"), "+karve.");
    EXPECT_STR(shown(&n, lease.p,
                     "{.spec.holderIdentity} {.spec.leaseDurationSeconds} "
                     "{.metadata.ownerReferences[0].kind}"),
               NODE_NAME " 40 Node");

    WITHIN_LIMIT(n.f, !str_eq(shown(&n, lease.p, RENEWED), renewed));
    EXPECT_TRUE(is_open(&n));
}

/* --- a pod's life --- */

static struct str pod_log(struct node *n, struct str pod, struct str uid, int attempt)
{
    return file_content(n->f, arena_strf(&n->p->arena, "%s/logs/default_%.*s_%.*s/main/%d.log",
                                         n->f->dir, STR_ARG(pod), STR_ARG(uid), attempt)
                                  .p);
}

static bool log_has(struct node *n, struct str pod, struct str uid, int attempt, const char *words)
{
    struct str log = pod_log(n, pod, uid, attempt);
    return log.len > 0 && memmem(log.p, log.len, words, strlen(words)) != NULL;
}

/* Of the pod's service account, and bound to the pod: as the API server itself sees it. */
static void expect_good_token(struct node *n, struct str pod, struct str uid)
{
    struct str who = plane_must(
        n->p,
        "token=$(cat %s/agent/pods/%.*s/volumes/kubernetes.io~projected/kube-api-access-*/token) && "
        "printf '{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"TokenReview\","
        "\"spec\":{\"token\":\"%%s\"}}' $token | kubectl create -f - -o "
        "'jsonpath={.status.user.username} {.status.user.extra.authentication\\.kubernetes\\.io/pod-name[0]} "
        "{.status.user.extra.authentication\\.kubernetes\\.io/node-name[0]}'",
        n->f->dir, STR_ARG(uid));
    EXPECT_STR(who,
               arena_strf(&n->p->arena, "system:serviceaccount:default:default %.*s " NODE_NAME,
                          STR_ARG(pod))
                   .p);
}

static void expect_status(struct node *n, const char *pod, int restarts)
{
    struct str ip = shown(n, pod, "{.status.podIP}");
    EXPECT_TRUE(str_starts(ip, STR("10.211.")));
    EXPECT_TRUE(str_eq(shown(n, pod, "{.status.podIPs[*].ip}"), ip));
    EXPECT_TRUE(str_eq(
        shown(n, pod, "{.status.hostIPs[*].ip}"),
        shown(n, "node/" NODE_NAME, "{.status.addresses[?(@.type==\"InternalIP\")].address}")));
    EXPECT_STR(
        shown(n, pod, "{range .status.conditions[*]}{.type}={.status}{\"\\n\"}{end}"),
        "PodReadyToStartContainers=True\nInitialized=True\nReady=True\nContainersReady=True\n"
        "PodScheduled=True");
    EXPECT_STR(shown(n, pod,
                     "{.status.phase} {.status.qosClass} {.status.containerStatuses[*].name} "
                     "{.status.containerStatuses[0].ready} {.status.containerStatuses[0].started} "
                     "{.status.containerStatuses[0].restartCount} "
                     "{.status.containerStatuses[0].image}"),
               arena_strf(&n->p->arena, "Running BestEffort main true true %d karve.test/busybox:1",
                          restarts)
                   .p);
}

TEST(a_pod_that_the_scheduler_binds_runs_is_restarted_and_goes)
{
    struct node n = node_joins();
    plane_apply(
        n.p,
        arena_strf(&n.p->arena,
                   TALKER_FILES DEPLOYMENT(
                       "talk", "1",
                       "terminationGracePeriodSeconds: 20, containers: [" TALKER "], volumes: ["
                       "{name: conf, configMap: {name: talk}}, "
                       "{name: secret, secret: {secretName: talk}}, "
                       "{name: note, hostPath: {path: %s/note, type: DirectoryOrCreate}}]"),
                   n.f->dir)
            .p);
    WITHIN_LIMIT(n.f, ready_pods(&n, "talk", 1));
    const char *pod = pod_path(&n, "talk");
    struct str name = str_sub(str_of(pod), strlen("pod/"), strlen(pod));
    struct str uid = shown(&n, pod, "{.metadata.uid}");
    EXPECT_STR(shown(&n, pod, "{.spec.nodeName}"), NODE_NAME);
    expect_status(&n, pod, 0);

    const struct listed *first = runtime_main(&n, uid);
    EXPECT_STR(shown(&n, pod, "{.status.containerStatuses[0].containerID}"),
               arena_strf(&n.p->arena, "containerd://%.*s", STR_ARG(first->id)).p);
    WITHIN_LIMIT(n.f, log_has(&n, name, uid, 0, " stdout F good morning\n"));
    EXPECT_HAS(pod_log(&n, name, uid, 0), " stdout F who=world password=pssst\n");
    EXPECT_TRUE(file_exists(arena_strf(&n.p->arena, "%s/links/%.*s_default_main-%.*s.log", n.f->dir,
                                       STR_ARG(name), STR_ARG(first->id))
                                .p));
    expect_good_token(&n, name, uid);

    fixture_kill(n.f, first->id, SIGUSR1);
    WITHIN_LIMIT(n.f, shows(&n, pod, "{.status.containerStatuses[0].restartCount}", "1"));
    WITHIN_LIMIT(n.f, ready_pods(&n, "talk", 1));
    expect_status(&n, pod, 1);
    EXPECT_STR(shown(&n, pod,
                     "{.status.containerStatuses[0].lastState.terminated.exitCode} "
                     "{.status.containerStatuses[0].lastState.terminated.reason}"),
               "3 Error");
    WITHIN_LIMIT(n.f, log_has(&n, name, uid, 1, " stdout F who=world password=pssst\n"));

    struct str volumes = arena_strf(&n.p->arena, "%s/agent/pods/%.*s", n.f->dir, STR_ARG(uid));
    EXPECT_TRUE(file_exists(volumes.p));
    plane_must(n.p, "kubectl delete deployment talk --cascade=foreground --wait=false");
    WITHIN_LIMIT(n.f, plane_sh(n.p, NULL, "kubectl get %s 2>&1 | grep -q NotFound", pod) == 0);
    EXPECT_STR(file_content(n.f, arena_strf(&n.p->arena, "%s/note/bye", n.f->dir).p), "bye\n");
    const struct runtime_pod *rest =
        runtime_pod_by_uid(&n, uid); /* nothing that runs; files later */
    for (uint32_t i = 0; rest && i < rest->containers.count; i++)
        EXPECT_EQ(rest->containers.items[i].state, RUNTIME_EXITED);
    WITHIN_LIMIT(n.f, runtime_pod_by_uid(&n, uid) == NULL);
    WITHIN_LIMIT(n.f, !file_exists(volumes.p));
}

/* --- crashes --- */

TEST(an_agent_that_was_killed_starts_nothing_twice)
{
    struct node n = node_joins();
    plane_apply(n.p, POLITE_DEPLOYMENT("web", "3") POLITE_DEPLOYMENT("old", "1"));
    WITHIN_LIMIT(n.f, ready_pods(&n, "web", 3) && ready_pods(&n, "old", 1));
    struct str old = shown(&n, pod_path(&n, "old"), "{.metadata.uid}");
    fixture_agent_kill9(n.f);
    plane_must(n.p, "kubectl delete deployment old"); /* and its pod; nobody is there to end it */
    plane_must(n.p, "kubectl scale deployment web --replicas=4");
    struct str before = in_runtime(&n, "web");

    node_start(&n);
    WITHIN_LIMIT(n.f, runtime_pod_by_uid(&n, old) == NULL);
    WITHIN_LIMIT(n.f, ready_pods(&n, "web", 4) && !ready_pods(&n, "old", 1));
    WITHIN_LIMIT(n.f, fixture_list(n.f)->pod_count == 4);
    uint32_t kept = 0;
    const struct runtime_listing *listing = fixture_list(n.f);
    for (uint32_t i = 0; i < listing->pod_count; i++) {
        EXPECT_EQ(listing->pods[i].sandboxes.count, 1);
        EXPECT_EQ(listing->pods[i].containers.count, 1);
        kept += strstr(before.p, listing->pods[i].containers.items[0].id.p) != NULL;
    }
    EXPECT_EQ(kept, 3);
    EXPECT_STR(plane_must(n.p, "kubectl get pod -l app=web -o "
                               "'jsonpath={.items[*].status.containerStatuses[0].restartCount}'"),
               "0 0 0 0");
}

/* --- static pods --- */

TEST(a_static_pod_has_a_mirror_that_cannot_end_it)
{
    struct node n = node_joins();
    static_pod(n.f, "fixed", "containers: [" POLITE("main") "]");
    const char *mirror = "pod/fixed-" NODE_NAME;
    WITHIN_LIMIT(n.f, shows(&n, mirror, "{.status.phase} " READY, "Running True"));
    struct str uid = shown(&n, mirror, "{.metadata.uid}");
    EXPECT_STR(shown(&n, mirror,
                     "{.spec.nodeName} {.metadata.ownerReferences[0].kind} "
                     "{.metadata.annotations.kubernetes\\.io/config\\.source}"),
               NODE_NAME " Node file");
    EXPECT_TRUE(shown(&n, mirror, "{.metadata.annotations.kubernetes\\.io/config\\.mirror}").p);
    struct str before = in_runtime(&n, "fixed");

    plane_must(n.p, "kubectl delete %s --wait=false", mirror);
    struct str again;
    WITHIN_LIMIT(n.f, (again = shown(&n, mirror, "{.metadata.uid}")).p && !str_eq(again, uid) &&
                          shows(&n, mirror, "{.status.phase} " READY, "Running True"));
    EXPECT_STR(in_runtime(&n, "fixed"), before.p);

    static_pod_remove(n.f, "fixed");
    WITHIN_LIMIT(n.f, plane_sh(n.p, NULL, "kubectl get %s 2>&1 | grep -q NotFound", mirror) == 0);
    WITHIN_LIMIT(n.f, fixture_list(n.f)->pod_count == 0);
}

/* --- drain --- */

/* Does `kubectl drain` give up, and say that it is for a budget? It may have been too slow to be told. */
static bool drain_is_blocked(struct node *n)
{
    AUTO_BUF said = { 0 };
    EXPECT_TRUE(plane_sh(n->p, &said, "kubectl drain " NODE_NAME " --timeout=4s") != 0);
    return said.len > 0 && memmem(said.p, said.len, "violate the pod's disruption budget",
                                  strlen("violate the pod's disruption budget")) != NULL;
}

TEST(a_drained_node_keeps_what_a_budget_protects_and_then_is_empty)
{
    struct node n = node_joins();
    plane_apply(
        n.p,
        POLITE_DEPLOYMENT(
            "web",
            "2") "---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: web}\n"
                 "spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}\n");
    WITHIN_LIMIT(n.f, ready_pods(&n, "web", 2));
    WITHIN_LIMIT(n.f, shows(&n, "pdb/web", "{.status.disruptionsAllowed}", "1"));

    WITHIN_LIMIT(n.f, drain_is_blocked(&n));
    WITHIN_LIMIT(n.f, fixture_list(n.f)->pod_count == 1); /* its successor waits for another node */
    WITHIN_LIMIT(n.f, ready_pods(&n, "web", 1));

    plane_must(n.p, "kubectl delete pdb web && kubectl drain " NODE_NAME " --timeout=60s");
    WITHIN_LIMIT(n.f, fixture_list(n.f)->pod_count == 0);
    EXPECT_STR(plane_must(n.p, "kubectl get pod -o 'jsonpath={.items[*].spec.nodeName}'"), "");
    EXPECT_STR(shown(&n, "node/" NODE_NAME, READY " {.spec.unschedulable}"), "True true");
}

/* --- outages --- */

/* The last one: controllers that lost their server make pods for a while of what is no longer there. */
TEST(pods_run_on_while_the_api_server_is_away)
{
    struct node n = node_joins();
    plane_apply(n.p, POLITE_DEPLOYMENT("web", "2"));
    WITHIN_LIMIT(n.f, ready_pods(&n, "web", 2));
    const char *crashes = pod_path(&n, "web");
    struct str uid = shown(&n, crashes, "{.metadata.uid}");
    struct str id = runtime_main(&n, uid)->id;

    plane_apiserver_kill9(n.p);
    fixture_kill(n.f, id, SIGKILL);
    WITHIN_LIMIT(n.f, runtime_main(&n, uid)->attempt == 1 &&
                          runtime_main(&n, uid)->state == RUNTIME_RUNNING);
    struct str before = in_runtime(&n, "web");
    fixture_agent_kill9(n.f);
    node_start(&n); /* and it cannot know what it is to run */
    linger(2000);
    EXPECT_STR(in_runtime(&n, "web"), before.p);

    plane_apiserver_restart(n.p);
    WITHIN_LIMIT(n.f, shows(&n, crashes, "{.status.containerStatuses[0].restartCount}", "1"));
    WITHIN_LIMIT(n.f, ready_pods(&n, "web", 2));
    EXPECT_STR(shown(&n, crashes, "{.status.containerStatuses[0].lastState.terminated.exitCode}"),
               "137");
    EXPECT_STR(in_runtime(&n, "web"), before.p);
    WITHIN_LIMIT(n.f, is_open(&n)); /* on a slow day it was given up meanwhile */
}

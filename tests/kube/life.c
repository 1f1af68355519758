/* See life.h. One store and one set of kubelets for the program: what tests leave is removed under
 * them, as it may happen to real ones. */
#include "kube/life.h"

#include "api/kinds.h"
#include "api/pod.h"
#include "codec/duration.h"

#include <stdio.h>
#include <stdlib.h>

/* The controller manager would give up nodes whose Leases nobody renews: they live for an hour. Owners
 * that are held up must be allowed to be (OwnerReferencesPermissionEnforcement): some clusters ask. */
static const char *const options[] = {
    "--apiserver=--audit-policy-file=tests/kube/audit-policy.yaml",
    "--apiserver=--audit-log-path=@DIR@/audit.log",
    "--apiserver=--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
    "--controller-manager=--node-monitor-grace-period=1h",
    NULL,
};
#define RENEW_NS (30 * DURATION_MINUTE)

static struct plane_access admin;
static struct kubelets *kubelets;
static struct informer *pods;

static void end(void)
{
    if (admin.kube)
        kube_cancel(admin.kube);
    kubelets_stop(kubelets);
    informer_free(pods);
    plane_close(&admin);
}

/* The service account of the role is not there to be used: its roles are given to our user. */
static void begin(struct plane *p)
{
    struct err err;
    plane_crds(p);
    plane_must(p,
               "$KARVE crds --rbac | kubectl apply -f - && "
               "kubectl apply -f tests/kube/nfd-crds.yaml && " /* NodeFeatures are followed */
               "kubectl create clusterrolebinding e2e --clusterrole=karve --user=" LIFE_USER
               " && kubectl create rolebinding e2e -n kube-system --role=karve --user=" LIFE_USER);
    admin = plane_open(p, plane_path(p, "admin.kubeconfig"), (struct kube_options){ 0 });
    pods = informer_new((struct informer_options){
        .store = admin.store, .kind = &pod_kind, .clock = clock_real() });
    atexit(end); /* before that of the fixture, whose objects it uses */
    EXPECT_OK(kubelets_start((struct kubelets_options){ .store = admin.store,
                                                        .clock = clock_real(),
                                                        .renew_ns = RENEW_NS },
                             &kubelets, &err),
              err);
}

struct plane *life_plane(void)
{
    struct plane *p = plane_with(options);
    if (!kubelets)
        begin(p);
    plane_apply(p, "apiVersion: karpenter.kwok.sh/v1alpha1\n"
                   "kind: KWOKNodeClass\n"
                   "metadata: {name: default}\n"
                   "spec: {}\n");
    return p;
}

const struct store *life_store(void)
{
    return admin.store;
}

struct informer *life_pods(void)
{
    informer_pump(pods);
    return pods;
}

const char *life_audit_log(struct plane *p)
{
    return plane_path(p, "audit.log");
}

static bool log_has(struct plane *p, const char *name, size_t from, const char *words)
{
    struct str log = plane_log(p, name);
    return log.len > from && memmem(log.p + from, log.len - from, words, strlen(words)) != NULL;
}

pid_t life_controller(struct plane *p, const char *const *maybe_flags)
{
    const char *args[48] = { "controller",
                             "--kubeconfig",
                             plane_path(p, "controller.kubeconfig"),
                             "--metrics-port",
                             "0",
                             "--health-probe-port",
                             "0" };
    size_t count = 7, before = plane_log(p, "controller").len;
    for (; maybe_flags && *maybe_flags; maybe_flags++) {
        EXPECT_TRUE(count < KV_COUNT_OF(args) - 1);
        args[count++] = *maybe_flags;
    }
    pid_t pid = plane_karve(p, "controller", args);
    PLANE_WAIT(p, log_has(p, "controller", before, "\"msg\":\"acting\"") || !plane_runs(p, pid));
    EXPECT_TRUE(plane_runs(p, pid));
    return pid;
}

static const char *comma_after(const char *words)
{
    return *words ? "," : "";
}

void life_pool(struct plane *p, const char *metadata, const char *spec, const char *template_spec)
{
    plane_apply(p, arena_strf(&p->arena,
                              "apiVersion: karpenter.sh/v1\n"
                              "kind: NodePool\n"
                              "metadata: {%s}\n"
                              "spec: {%s%s template: {spec: {%s%s requirements: [{key: "
                              "kubernetes.io/os, operator: In, values: [linux]}], nodeClassRef: "
                              "{group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}}}}\n",
                              metadata, spec, comma_after(spec), template_spec,
                              comma_after(template_spec))
                       .p);
}

void life_deployment(struct plane *p, const char *name, int replicas, const char *metadata,
                     const char *spec)
{
    plane_apply(p, arena_strf(&p->arena,
                              "apiVersion: apps/v1\n"
                              "kind: Deployment\n"
                              "metadata: {name: %s}\n"
                              "spec:\n"
                              "  replicas: %d\n"
                              "  selector: {matchLabels: {app: %s}}\n"
                              "  template:\n"
                              "    metadata: {%s%s labels: {app: %s, " KUBELETS_TAKES_ITS_GRACE
                              ": a}}\n"
                              "    spec: {%s%s containers: [{name: main, image: none, resources: "
                              "{requests: {cpu: 500m}}}]}\n",
                              name, replicas, name, metadata, comma_after(metadata), name, spec,
                              comma_after(spec))
                       .p);
}

uint32_t life_running(const char *app)
{
    struct object_list list;
    uint32_t count = 0;
    informer_list(life_pods(), STR(""), &list);
    for (size_t i = 0; i < list.count; i++) {
        const struct pod *pod = pod_of(list.items[i]);
        count += str_eqz(str_map_get(&pod->object.meta.labels, STR("app")), app) &&
                 pod->status->phase == PHASE_RUNNING && !pod_is_terminating(pod);
    }
    object_list_done(&list);
    return count;
}

struct str life_get(struct plane *p, const char *format, ...)
{
    AUTO_BUF command = { 0 };
    va_list args;
    va_start(args, format);
    buf_vaddf(&command, format, args);
    va_end(args);
    return plane_must(p, "kubectl get %s", buf_str(&command).p);
}

int life_count(struct plane *p, const char *format, ...)
{
    AUTO_BUF command = { 0 };
    int64_t count = -1;
    va_list args;
    va_start(args, format);
    buf_vaddf(&command, format, args);
    va_end(args);
    struct str said = plane_must(p, "kubectl get %s -o name | wc -l", buf_str(&command).p);
    EXPECT_TRUE(str_to_i64(said, &count));
    return (int)count;
}

static size_t count_of(const struct kind *kind, struct list_options which)
{
    struct object_list list;
    struct err err;
    EXPECT_OK(store_list(admin.store, kind, &which, &list, &err), err);
    size_t count = list.count;
    object_list_done(&list);
    return count;
}

uint32_t life_objects(const struct kind *kind)
{
    return (uint32_t)count_of(kind, (struct list_options){ 0 });
}

void life_expect_nothing_left(struct plane *p)
{
    const struct list_options leases = { .namespace_ = STR("kube-node-lease") };
    const struct list_options bound = { .field_selector = STR("spec.nodeName!=") };
    PLANE_WAIT_S(p, LIFE_LIMIT_S, life_objects(&nodepool_kind) == 0);
    PLANE_WAIT_S(p, LIFE_LIMIT_S, life_objects(&nodeclaim_kind) == 0);
    PLANE_WAIT(p, life_objects(&node_kind) == 0);
    PLANE_WAIT(p, count_of(&lease_kind, leases) == 0);
    PLANE_WAIT(p, count_of(&pod_kind, bound) == 0);
}

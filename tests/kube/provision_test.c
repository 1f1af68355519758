/* From pending pods to nodes and back, on a real control plane: our controller launches, the real scheduler
 * binds. */
#include "kube/bindings.h"
#include "kube/life.h"

#include "api/kinds.h"
#include "api/pod.h"

#include <stdio.h>

/* --- a thousand pods --- */

/* Of each, in the pod template. Those that are spread ask for all four zones (minDomains): the scheduler
 * knows only zones that have nodes, and the first node is there before the others. */
static const struct workload {
    const char *name;
    int replicas;
    const char *cpu, *memory;
    const char *spec; /* further parts of the pod's spec, flow style, with a comma behind */
} workloads[] = {
    { "api", 150, "500m", "1Gi", "" },
    { "tiny", 200, "50m", "64Mi", "" },
    { "big", 20, "6", "12Gi", "" },
    { "web", 200, "250m", "256Mi",
      "topologySpreadConstraints: [{maxSkew: 1, minDomains: 4, topologyKey: "
      "topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: "
      "{app: web}}}], " },
    { "cache", 40, "1", "4Gi",
      "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: "
      "kubernetes.io/hostname, labelSelector: {matchLabels: {app: cache}}}]}}, " },
    { "together", 40, "250m", "512Mi",
      "affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: "
      "topology.kubernetes.io/zone, labelSelector: {matchLabels: {app: together}}}]}}, " },
    { "arm", 100, "500m", "512Mi", "nodeSelector: {kubernetes.io/arch: arm64}, " },
    { "zonal", 60, "250m", "256Mi", "nodeSelector: {topology.kubernetes.io/zone: test-zone-b}, " },
    { "spot", 30, "500m", "1Gi", "nodeSelector: {karpenter.sh/capacity-type: spot}, " },
    { "batch", 150, "1", "2Gi",
      "nodeSelector: {example.com/pool: batch}, tolerations: [{key: dedicated, value: batch, effect: "
      "NoSchedule}], " },
};
#define DATABASES 10
#define POD_COUNT 1000

static void add_pod_template(struct buf *out, const struct workload *w)
{
    buf_addf(out,
             "  selector: {matchLabels: {app: %s}}\n"
             "  template:\n"
             "    metadata: {labels: {app: %s}}\n"
             "    spec: {%scontainers: [{name: main, image: none, resources: {requests: {cpu: %s, "
             "memory: %s}}}]}\n",
             w->name, w->name, w->spec, w->cpu, w->memory);
}

static const char *thousand_pods(struct plane *p)
{
    AUTO_BUF text = { 0 };
    int total = DATABASES;
    for (size_t i = 0; i < KV_COUNT_OF(workloads); i++) {
        buf_addf(&text,
                 "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: %s}\nspec:\n"
                 "  replicas: %d\n",
                 workloads[i].name, workloads[i].replicas);
        add_pod_template(&text, &workloads[i]);
        total += workloads[i].replicas;
    }
    EXPECT_EQ(total, POD_COUNT);
    buf_addf(&text,
             "---\napiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\nspec:\n"
             "  replicas: %d\n  podManagementPolicy: Parallel\n",
             DATABASES);
    add_pod_template(&text,
                     &(struct workload){ .name = "db", .cpu = "2", .memory = "4Gi", .spec = "" });
    /* They come before the node has registered, and with it other pods; and they go with the drain: what
     * tolerates everything stays, and is collected a minute after the node has gone. */
    buf_addz(&text, "---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: agent}\nspec:\n");
    add_pod_template(&text, &(struct workload){ .name = "agent",
                                                .cpu = "50m",
                                                .memory = "64Mi",
                                                .spec = "priorityClassName: system-node-critical, "
                                                        "tolerations: [{key: dedicated, operator: "
                                                        "Exists}, {key: karpenter.sh/unregistered, "
                                                        "operator: Exists}], " });
    return arena_str(&p->arena, buf_str(&text)).p;
}

static void two_pools(struct plane *p)
{
    life_pool(p, "name: general", "", "");
    plane_apply(p, "apiVersion: karpenter.sh/v1\n"
                   "kind: NodePool\n"
                   "metadata: {name: batch}\n"
                   "spec:\n"
                   "  template:\n"
                   "    metadata: {labels: {example.com/pool: batch}}\n"
                   "    spec:\n"
                   "      taints: [{key: dedicated, value: batch, effect: NoSchedule}]\n"
                   "      requirements: [{key: kubernetes.io/os, operator: In, values: [linux]}]\n"
                   "      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: "
                   "default}\n");
}

/* --- how far they are --- */

struct progress {
    uint32_t total, bound, running; /* of pods that no DaemonSet owns and that stay */
    uint32_t daemons_waiting;
};

static struct progress progress_of_pods(void)
{
    struct progress so_far = { 0 };
    struct object_list list;
    informer_list(life_pods(), STR(""), &list);
    for (size_t i = 0; i < list.count; i++) {
        const struct pod *pod = pod_of(list.items[i]);
        const struct owner_ref *owner = meta_controller(&pod->object.meta);
        if (pod_is_terminating(pod))
            continue;
        if (owner && str_eqz(owner->kind, "DaemonSet")) {
            so_far.daemons_waiting += pod->status->phase == PHASE_PENDING;
            continue;
        }
        so_far.total++;
        so_far.bound += pod_is_scheduled(pod);
        so_far.running += pod->status->phase == PHASE_RUNNING;
    }
    object_list_done(&list);
    return so_far;
}

static bool all_are_bound(void)
{
    struct progress so_far = progress_of_pods();
    return so_far.bound == POD_COUNT && so_far.total == POD_COUNT;
}

static bool all_run(void)
{
    struct progress so_far = progress_of_pods();
    return so_far.running == POD_COUNT && so_far.total == POD_COUNT && so_far.daemons_waiting == 0;
}

static double seconds_since(int64_t start_ns)
{
    return (double)(clock_mono_ns(clock_real()) - start_ns) / 1e9;
}

static void expect_right_bindings(struct plane *p)
{
    struct bindings found;
    bindings_check(life_store(), &p->arena, &found);
    for (uint32_t i = 0; i < found.wrong_count; i++)
        print_error("%s\n", found.wrong[i]);
    EXPECT_EQ(found.wrong_count, 0);
    EXPECT_EQ(found.pods, POD_COUNT);
}

/* Scaling down leaves nodes as they are: nothing consolidates. Then the pools go, and with them the nodes,
 * from under the pods that are left; what replaces those has nowhere to go. */
TEST(a_thousand_pods_are_bound_where_our_rules_allow_and_nothing_is_left_of_deleted_pools)
{
    struct plane *p = life_plane();
    two_pools(p);
    /* No election: on a busy machine the server may be silent for longer than a leader may be. */
    life_controller(p, (const char *[]){ "--leader-elect=false", NULL });

    int64_t start_ns = clock_mono_ns(clock_real());
    plane_apply(p, thousand_pods(p));
    double applied_s = seconds_since(start_ns);
    PLANE_WAIT_S(p, LIFE_LIMIT_S, all_are_bound());
    double bound_s = seconds_since(start_ns);
    PLANE_WAIT_S(p, LIFE_LIMIT_S, all_run());
    uint32_t claims = life_objects(&nodeclaim_kind);
    printf(
        "# %d pods on %u nodes: applied in %.1f s, all bound after %.1f s (%.0f pods/s), all running "
        "after %.1f s\n",
        POD_COUNT, claims, applied_s, bound_s, POD_COUNT / bound_s, seconds_since(start_ns));
    expect_right_bindings(p);
    EXPECT_HAS(plane_must(p, "$KARVE plan --kubeconfig $DIR/admin.kubeconfig"),
               "0 pods on 0 new nodes");

    plane_must(p, "kubectl scale --replicas=10 deployment --all");
    PLANE_WAIT_S(p, LIFE_LIMIT_S,
                 progress_of_pods().total == 10 * KV_COUNT_OF(workloads) + DATABASES);
    EXPECT_EQ(life_objects(&nodeclaim_kind), claims);

    start_ns = clock_mono_ns(clock_real());
    plane_must(p, "kubectl delete nodepool --all --wait=false");
    life_expect_nothing_left(p);
    printf("# %u nodes were drained and gone after %.1f s\n", claims, seconds_since(start_ns));
    /* A StatefulSet replaces a pod when it has gone. */
    PLANE_WAIT(p, progress_of_pods().total == 10 * KV_COUNT_OF(workloads) + DATABASES);
    plane_must(p, "kubectl delete deployments,statefulsets,daemonsets --all");
    PLANE_WAIT(p, informer_count(life_pods()) == 0);
}

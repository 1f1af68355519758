/* The few words that tables say of each kind. */
#include "api/describe.h"

#include "api/kind_test.h"

static void expect_words(const char *text, const char *want)
{
    SAMPLE s;
    AUTO_BUF got = { 0 };
    sample_decode(&s, text);
    object_describe(s.object, &got);
    EXPECT_STR(buf_str(&got), want);
}

#define POD(resources_) "spec: {containers: [{name: a, image: i, resources: " resources_ "}]}"
#define OBJECT(version_, kind_, rest_)                                                             \
    "apiVersion: " version_ "\nkind: " kind_ "\nmetadata: {name: a}\n" rest_ "\n"

TEST(pods_are_described_by_what_they_ask_for_cpu_and_memory_first)
{
    expect_words(OBJECT("v1", "Pod", POD("{requests: {a.b/gpu: 1, cpu: 500m, memory: 1Gi}}")),
                 "500m cpu, 1Gi memory, 1 a.b/gpu");
    expect_words(OBJECT("v1", "Pod", POD("{}")), "no requests");
}

TEST(workloads_are_described_by_how_many_pods_they_want)
{
#define TEMPLATE "template: {" POD("{requests: {cpu: 1}}") "}"
    expect_words(OBJECT("apps/v1", "Deployment", "spec: {replicas: 3, " TEMPLATE "}"),
                 "3 pods of 1 cpu");
    expect_words(OBJECT("apps/v1", "StatefulSet", "spec: {" TEMPLATE "}"), "1 pod of 1 cpu");
    expect_words(OBJECT("apps/v1", "DaemonSet", "spec: {" TEMPLATE "}"), "on every node: 1 cpu");
    expect_words(OBJECT("apps/v1", "ReplicaSet", "spec: {replicas: 2}"), "2 pods");
    expect_words(OBJECT("batch/v1", "Job", "spec: {parallelism: 2, completions: 9, " TEMPLATE "}"),
                 "2 pods of 1 cpu until 9 succeed");
    expect_words(OBJECT("batch/v1", "CronJob",
                        "spec: {schedule: '@daily', jobTemplate: {spec: {" TEMPLATE "}}}"),
                 "at @daily: 1 pod of 1 cpu");
#undef TEMPLATE
}

TEST(node_pools_are_described_by_weight_limits_and_taints)
{
#define POOL(rest_, node_)                                                                         \
    OBJECT("karpenter.sh/v1", "NodePool",                                                          \
           "spec: {" rest_ " template: {spec: {requirements: []," node_                            \
           " nodeClassRef: {group: a, kind: b, name: c}}}}")
    expect_words(POOL("", ""), "");
    expect_words(POOL("weight: 10, limits: {cpu: 1k, memory: 2Ti},",
                      " taints: [{key: k, effect: NoSchedule}],"),
                 "weight 10, up to 1k cpu, 2Ti memory, tainted");
    /* How a pool is switched off. */
    expect_words(POOL("limits: {cpu: 0},", ""), "up to 0 cpu");
#undef POOL
}

TEST(policies_and_storage_are_described)
{
    expect_words(OBJECT("policy/v1", "PodDisruptionBudget", "spec: {minAvailable: 2}"), "keeps 2");
    expect_words(OBJECT("policy/v1", "PodDisruptionBudget", "spec: {maxUnavailable: 25%}"),
                 "may lose 25%");
    expect_words(OBJECT("scheduling.k8s.io/v1", "PriorityClass", "value: 5"), "priority 5");
    expect_words(OBJECT("storage.k8s.io/v1", "StorageClass", "provisioner: ebs.csi.aws.com"),
                 "ebs.csi.aws.com");
    expect_words(OBJECT("v1", "PersistentVolumeClaim",
                        "spec: {storageClassName: gp3, resources: {requests: {storage: 20Gi}}}"),
                 "20Gi storage of gp3");
    expect_words(OBJECT("v1", "Namespace", ""), "");
}

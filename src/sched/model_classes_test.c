/* What is one class and what is not, and in which order they come. */
#include "sched/model_classes_testing.h"

#define POOL WORLD_POOL("web", "[]", "")

TEST(pods_that_nothing_tells_apart_are_one_class_whatever_they_are_called)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  POOL WORLD_POD("b", "{app: web, pod: b}", "{cpu: 1}", "")
                      WORLD_POD("a", "{app: db}", "{cpu: 1000m}", "")
                          WORLD_POD("c", "{}", "{cpu: 1}", "  serviceAccountName: x\n")
                              WORLD_POD("d", "{}", "{cpu: 1, memory: 1Gi}", ""),
                  NULL);
    EXPECT_EQ(t.m.class_count, 2);
    const struct pod_class *k = class_of_pod(&t, "a");
    EXPECT_EQ(k->count, 3);
    static const char *const order[] = { "a", "b", "c" };
    for (uint32_t i = 0; i < 3; i++)
        EXPECT_EQ(k->pods[i], world_pod_ix(&t.w, order[i]));
}

TEST(a_class_is_told_apart_by_each_thing_that_matters)
{
    static const char *const others[] = {
        WORLD_POD("b", "{app: x}", "{cpu: 2}", ""),
        WORLD_POD("b", "{app: x}", "{cpu: 1}", "  priority: 1\n"),
        WORLD_POD("b", "{app: x}", "{cpu: 1}", "  nodeSelector: {kubernetes.io/arch: arm64}\n"),
        WORLD_POD("b", "{app: x}", "{cpu: 1}", "  tolerations: [{operator: Exists}]\n"),
        WORLD_POD("b", "{app: found}", "{cpu: 1}", ""),
        WORLD_POD("b", "{app: x}", "{cpu: 1}",
                  "  topologySpreadConstraints: [{maxSkew: 1, whenUnsatisfiable: DoNotSchedule, "
                  "topologyKey: " ZONE "}]\n"),
        "---\napiVersion: v1\nkind: Pod\nmetadata: {name: b, namespace: default}\nspec: "
        "{containers: [{name: c, image: i, ports: [{containerPort: 1, hostPort: 1}], resources: "
        "{requests: {cpu: 1}}}]}\n",
        WORLD_POD("b", "{app: x}", "{cpu: 1}",
                  "  volumes: [{name: v, awsElasticBlockStore: {volumeID: vol-1}}]\n"),
        WORLD_POD("b", "{app: x}", "{cpu: 1}",
                  "  volumes: [{name: v, persistentVolumeClaim: {claimName: none}}]\n"),
    };
    for (size_t i = 0; i < KV_COUNT_OF(others); i++) {
        MODELLED t = { 0 };
        AUTO_BUF yaml = { 0 };
        buf_addf(&yaml, "%s%s",
                 POOL WORLD_POD("a", "{app: x}", "{cpu: 1}", "")
                     WORLD_POD("finder", "{}", "{cpu: 9}",
                               "  affinity: {podAntiAffinity: "
                               "{requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: "
                               "rack, labelSelector: {matchLabels: {app: found}}}]}}\n"),
                 others[i]);
        modelled_load(&t, yaml.p, NULL);
        EXPECT_EQ(t.m.class_count, 3);
        EXPECT_TRUE(class_of_pod(&t, "a") != class_of_pod(&t, "b"));
    }
}

TEST(important_classes_come_first_then_large_ones_then_by_name)
{
    static const char *const order[] = { "high", "cpu", "memory", "disk", "a", "b" };
    MODELLED t = { 0 };
    modelled_load(&t,
                  POOL WORLD_POD("b", "{}", "{cpu: 1, memory: 1Gi}", "  nodeSelector: {x: z}\n")
                      WORLD_POD("a", "{}", "{cpu: 1, memory: 1Gi}", "  nodeSelector: {x: w}\n")
                          WORLD_POD("disk", "{}", "{cpu: 1, memory: 1Gi, ephemeral-storage: 1Gi}",
                                    "") WORLD_POD("memory", "{}", "{cpu: 1, memory: 2Gi}", "")
                              WORLD_POD("cpu", "{}", "{cpu: 2}", "")
                                  WORLD_POD("high", "{}", "{cpu: 100m}", "  priority: 5\n"),
                  NULL);
    for (int turn = 0; turn < 2; turn++) {
        EXPECT_EQ(t.m.class_count, KV_COUNT_OF(order));
        for (uint32_t i = 0; i < KV_COUNT_OF(order); i++)
            EXPECT_EQ(t.m.classes[i].pods[0], world_pod_ix(&t.w, order[i]));
        for (size_t i = 0; i < t.w.pods.count / 2; i++) { /* and backwards */
            const struct pod *swap = t.w.pods.items[i];
            t.w.pods.items[i] = t.w.pods.items[t.w.pods.count - 1 - i];
            t.w.pods.items[t.w.pods.count - 1 - i] = swap;
        }
        modelled_compile(&t);
    }
}

TEST(pending_and_bound_pods_of_one_workload_are_looked_at_together)
{
    MODELLED t = { 0 };
    modelled_load(&t, POOL WORLD_NODE("here", "zone-a", "", "cpu: 8"), NULL);
    world_add_pods(&t.w, 5, "web",
                   "metadata: {labels: {app: web}}\n"
                   "spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}\n");
    for (uint32_t i = 0; i < 3; i++)
        ((struct pod *)t.w.pods.items[i])->node_name = STR("here");
    modelled_compile(&t);
    EXPECT_EQ(t.m.class_count, 1);
    EXPECT_EQ(t.m.classes[0].count, 2);
    EXPECT_EQ(amount(&t, modelled_home(&t, "here")->free, "cpu"), 5000);
}

TEST(an_empty_snapshot_is_an_empty_model)
{
    AUTO_ARENA arena = { 0 };
    struct model m;
    model_compile(&m, &arena, &(struct snapshot){ 0 }, PLAN_OPTIONS_DEFAULT);
    EXPECT_EQ(m.class_count, 0);
    EXPECT_EQ(m.group_count, 0);
    EXPECT_EQ(m.key_count, 1);
    EXPECT_EQ(m.resource_count, RESOURCE_FIRST_OTHER);
    model_done(&m);
}

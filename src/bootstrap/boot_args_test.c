#include "support/test.h"

#include "bootstrap/boot.h"

#define PAIR(k, v)                                                                                 \
    {                                                                                              \
        { k, sizeof(k) - 1 },                                                                      \
        {                                                                                          \
            v, sizeof(v) - 1                                                                       \
        }                                                                                          \
    }

static const struct str_pair labels[] = {
    PAIR("a.k8s.io/x", "1"),
    PAIR("karpenter.k8s.aws/instance-family", "m5"),
    PAIR("karpenter.sh/capacity-type", "spot"),
    PAIR("karpenter.sh/nodepool", "fruit"),
    PAIR("kubernetes.io/arch", "amd64"),
    PAIR("my-k8s.io/x", "1"),
    PAIR("node-restriction.kubernetes.io/x", "1"),
    PAIR("node.kubernetes.io/instance-type", "m5.large"),
    PAIR("team", "pear"),
};

static void expect_labels(struct str_map map, const char *want)
{
    AUTO_BUF b = { 0 };
    for (uint32_t i = 0; i < map.count; i++)
        buf_addf(&b, "%s%.*s=%.*s", i ? "," : "", STR_ARG(map.items[i].key),
                 STR_ARG(map.items[i].value));
    EXPECT_STR(buf_str(&b), want);
}

TEST(labels_that_a_kubelet_may_not_set_are_left_out_and_the_list_stays_sorted)
{
    AUTO_ARENA arena = { 0 };
    struct boot boot = { .family = AMI_FAMILY_AL2,
                         .labels = { labels, (uint32_t)KV_COUNT_OF(labels) } };
    expect_labels(boot_node_labels(&arena, &boot),
                  "karpenter.k8s.aws/instance-family=m5,karpenter.sh/capacity-type=spot,"
                  "karpenter.sh/do-not-sync-taints=true,karpenter.sh/nodepool=fruit,"
                  "my-k8s.io/x=1,team=pear");
    boot.family = AMI_FAMILY_CUSTOM;
    expect_labels(boot_node_labels(&arena, &boot),
                  "karpenter.k8s.aws/instance-family=m5,karpenter.sh/capacity-type=spot,"
                  "karpenter.sh/nodepool=fruit,my-k8s.io/x=1,team=pear");
    boot = (struct boot){ .family = AMI_FAMILY_AL2023 };
    expect_labels(boot_node_labels(&arena, &boot), "karpenter.sh/do-not-sync-taints=true");
}

TEST(the_unregistered_taint_is_added_once)
{
    AUTO_ARENA arena = { 0 };
    const struct taint own[] = {
        { .key = STR("karpenter.sh/unregistered"), .effect = EFFECT_NO_SCHEDULE },
        { .key = STR("karpenter.sh/unregistered"), .effect = EFFECT_NO_EXECUTE },
    };
    struct boot boot = { .taints = { own, 1 } };
    EXPECT_EQ(boot_node_taints(&arena, &boot).count, 2);
    EXPECT_EQ(boot_node_taints(&arena, &boot).items[1].effect, EFFECT_NO_EXECUTE);
    boot.taints.count = 2;
    EXPECT_EQ(boot_node_taints(&arena, &boot).count, 2);
}

static struct str joined_args(struct arena *arena, const struct boot *boot)
{
    struct boot_text out = { 0 };
    AUTO_BUF text = { 0 };
    boot_add_kubelet_args(arena, boot, &out);
    for (uint32_t i = 0; i < out.pieces.count; i++)
        buf_add(&text, out.pieces.items[i].text);
    return arena_str(arena, buf_str(&text));
}

TEST(arguments_come_in_their_fixed_order)
{
    AUTO_ARENA arena = { 0 };
    struct kubelet_config kubelet;
    struct err err = { 0 };
    EXPECT_OK(kubelet_config_read(
                  &arena,
                  STR("{\"cpuCFSQuota\":false,\"evictionHard\":{\"nodefs.available\":\"10%\","
                      "\"memory.available\":\"5%\"},\"evictionMaxPodGracePeriod\":60,"
                      "\"evictionSoft\":{\"memory.available\":\"1Gi\"},"
                      "\"evictionSoftGracePeriod\":{\"memory.available\":\"90s\"},"
                      "\"imageGCHighThresholdPercent\":85,\"imageGCLowThresholdPercent\":80,"
                      "\"kubeReserved\":{\"memory\":\"1Gi\",\"cpu\":\"100m\"},\"podsPerCore\":3,"
                      "\"systemReserved\":{\"pid\":\"100\"}}"),
                  AMI_FAMILY_AL2, &kubelet, &err),
              err);
    const struct taint taints[] = {
        { .key = STR("zeta"), .value = STR("z"), .effect = EFFECT_NO_SCHEDULE },
        { .key = STR("alpha"), .effect = EFFECT_PREFER_NO_SCHEDULE },
    };
    struct boot boot = {
        .family = AMI_FAMILY_AL2,
        .kubelet = &kubelet,
        .labels = { &labels[8], 1 },
        .taints = { taints, 2 },
        .max_pods = { 29, true },
    };
    EXPECT_STR(joined_args(&arena, &boot),
               "--node-labels=\"karpenter.sh/do-not-sync-taints=true,team=pear\" "
               "--register-with-taints=\"zeta=z:NoSchedule,alpha:PreferNoSchedule,"
               "karpenter.sh/unregistered:NoExecute\" "
               "--max-pods=29 --pods-per-core=3 --system-reserved=\"pid=100\" "
               "--kube-reserved=\"cpu=100m,memory=1Gi\" "
               "--eviction-hard=\"memory.available<5%,nodefs.available<10%\" "
               "--eviction-soft=\"memory.available<1Gi\" "
               "--eviction-soft-grace-period=\"memory.available=1m30s\" "
               "--eviction-max-pod-grace-period=60 --image-gc-high-threshold=85 "
               "--image-gc-low-threshold=80 --cpu-cfs-quota=false");
}

TEST(what_is_not_known_is_left_out)
{
    AUTO_ARENA arena = { 0 };
    struct boot boot = { .family = AMI_FAMILY_CUSTOM };
    EXPECT_STR(joined_args(&arena, &boot),
               "--register-with-taints=\"karpenter.sh/unregistered:NoExecute\"");
    EXPECT_TRUE(boot_cluster_dns(&boot).p == NULL);
}

TEST(the_users_max_pods_and_dns_win)
{
    const struct str dns[] = { STR("10.1.0.10"), STR("10.1.0.11") };
    struct kubelet_config kubelet = { .max_pods = { 5, true }, .cluster_dns = { dns, 2 } };
    struct boot_cluster cluster = { .dns = STR("172.20.0.10") };
    struct boot boot = { .cluster = &cluster, .max_pods = { 29, true } };
    EXPECT_EQ(boot_max_pods(&boot).value, 29);
    EXPECT_STR(boot_cluster_dns(&boot), "172.20.0.10");
    boot.kubelet = &kubelet;
    EXPECT_EQ(boot_max_pods(&boot).value, 5);
    EXPECT_STR(boot_cluster_dns(&boot), "10.1.0.10");
}

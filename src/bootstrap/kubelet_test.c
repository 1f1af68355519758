#include "support/test.h"

#include "bootstrap/kubelet.h"

static struct kubelet_config read_ok(struct arena *arena, enum ami_family family, const char *json)
{
    struct kubelet_config k = { .json = STR("untouched") };
    struct err err = { 0 };
    EXPECT_OK(kubelet_config_read(arena, str_of(json), family, &k, &err), err);
    return k;
}

static void expect_refused(enum ami_family family, const char *json, const char *says)
{
    AUTO_ARENA arena = { 0 };
    struct kubelet_config k = { .json = STR("untouched") };
    struct err err = { 0 };
    EXPECT_ERR(kubelet_config_read(&arena, str_of(json), family, &k, &err), err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), says);
    EXPECT_STR(k.json, "untouched");
}

TEST(absent_gives_an_empty_configuration)
{
    AUTO_ARENA arena = { 0 };
    struct kubelet_config k = read_ok(&arena, AMI_FAMILY_AL2, NULL);
    EXPECT_TRUE(k.json.p == NULL);
    EXPECT_FALSE(k.max_pods.set);
    EXPECT_FALSE(k.has_kube_reserved);
    EXPECT_EQ(k.cpu_cfs_quota, TRI_UNSET);
}

TEST(every_field_that_karve_acts_on_is_read)
{
    AUTO_ARENA arena = { 0 };
    const char *json =
        "{\"clusterDNS\":[\"10.0.0.10\"],\"cpuCFSQuota\":false,"
        "\"evictionHard\":{\"nodefs.available\":\"10%\",\"memory.available\":\"5%\"},"
        "\"evictionMaxPodGracePeriod\":60,"
        "\"evictionSoft\":{\"memory.available\":\"1Gi\"},"
        "\"evictionSoftGracePeriod\":{\"memory.available\":\"90s\"},"
        "\"imageGCHighThresholdPercent\":85,\"imageGCLowThresholdPercent\":80,"
        "\"kubeReserved\":{\"memory\":\"1Gi\",\"cpu\":\"100m\"},\"maxPods\":58,"
        "\"podsPerCore\":0,\"systemReserved\":{}}";
    struct kubelet_config k = read_ok(&arena, AMI_FAMILY_AL2, json);
    EXPECT_EQ(k.cluster_dns.count, 1);
    EXPECT_STR(k.cluster_dns.items[0], "10.0.0.10");
    EXPECT_EQ(k.cpu_cfs_quota, TRI_FALSE);
    EXPECT_STR(k.eviction_hard.items[0].key, "memory.available"); /* sorted */
    EXPECT_STR(str_map_get(&k.eviction_hard, STR("nodefs.available")), "10%");
    EXPECT_EQ(k.eviction_max_pod_grace_s.value, 60);
    EXPECT_STR(str_map_get(&k.eviction_soft, STR("memory.available")), "1Gi");
    EXPECT_STR(str_map_get(&k.eviction_soft_grace, STR("memory.available")), "1m30s");
    EXPECT_EQ(k.image_gc_high.value, 85);
    EXPECT_EQ(k.image_gc_low.value, 80);
    EXPECT_STR(k.kube_reserved.items[0].key, "cpu");
    EXPECT_EQ(k.max_pods.value, 58);
    EXPECT_TRUE(k.pods_per_core.set);
    EXPECT_EQ(k.pods_per_core.value, 0);
    EXPECT_TRUE(k.has_system_reserved);
    EXPECT_EQ(k.system_reserved.count, 0);
    EXPECT_STR(k.json, json);
}

TEST(null_counts_as_absent)
{
    AUTO_ARENA arena = { 0 };
    struct kubelet_config k =
        read_ok(&arena, AMI_FAMILY_AL2, "{\"kubeReserved\":null,\"maxPods\":null}");
    EXPECT_FALSE(k.has_kube_reserved);
    EXPECT_FALSE(k.max_pods.set);
}

TEST(what_a_kubelet_would_refuse_is_refused_with_the_field)
{
    static const struct {
        const char *json, *says;
    } rows[] = {
        { "[]", "spec.kubelet: is of type array, expected an object" },
        { "{\"maxPods\":\"vcpus * 10\"}", "expressions are not enabled" },
        { "{\"maxPods\":-1}", "spec.kubelet.maxPods" },
        { "{\"maxPod\":1}", "maxPods" },
        { "{\"kubeReserved\":{\"memory\":\"max_pods * 11\"}}", "expressions are not enabled" },
        { "{\"kubeReserved\":{\"gpu\":\"1\"}}", "gpu" },
        { "{\"systemReserved\":{\"cpu\":\"-1\"}}", "is negative" },
        { "{\"evictionHard\":{\"memory\":\"5%\"}}", "spec.kubelet.evictionHard" },
        { "{\"evictionHard\":{\"memory.available\":\"105%\"}}", "from 0% to 100%" },
        { "{\"evictionSoft\":{\"memory.available\":\"5%\"}}", "has no counterpart" },
        { "{\"evictionSoftGracePeriod\":{\"memory.available\":\"5\"}}", "duration" },
        { "{\"imageGCHighThresholdPercent\":50,\"imageGCLowThresholdPercent\":50}",
          "expected more than" },
        { "{\"registerWithTaints\":[]}", "expected taints in the NodePool" },
        { "{\"podsPerCore\":\"2\"}", "spec.kubelet.podsPerCore" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++)
        expect_refused(AMI_FAMILY_AL2023, rows[i].json, rows[i].says);
}

TEST(what_a_family_cannot_pass_on_is_refused)
{
    AUTO_ARENA arena = { 0 };
    const char *qps = "{\"registryPullQPS\":50}";
    const char *dns = "{\"clusterDNS\":[\"10.0.0.10\",\"10.0.0.11\"]}";
    expect_refused(AMI_FAMILY_AL2, qps, "cannot be set on nodes of the family AL2");
    expect_refused(AMI_FAMILY_BOTTLEROCKET, qps, "cannot be set on nodes of the family");
    expect_refused(AMI_FAMILY_WINDOWS2019, qps, "cannot be set on nodes of the family");
    expect_refused(AMI_FAMILY_AL2, dns, "take one");
    expect_refused(AMI_FAMILY_BOTTLEROCKET, "{\"podsPerCore\":2}",
                   "spec.kubelet.podsPerCore: cannot be set");
    read_ok(&arena, AMI_FAMILY_AL2023, qps);
    read_ok(&arena, AMI_FAMILY_CUSTOM, qps);
    EXPECT_EQ(read_ok(&arena, AMI_FAMILY_AL2023, dns).cluster_dns.count, 2);
}

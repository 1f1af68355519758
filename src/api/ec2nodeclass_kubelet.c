/* spec.kubelet of an EC2NodeClass, judged as the controller judges it.
 *
 * The API server takes any object there. What a node's kubelet would refuse at boot, when it is too
 * late to tell anybody, is refused here: fields and types of KubeletConfiguration
 * (kubelet.config.k8s.io/v1beta1), eviction signals and thresholds, reservations, and what the
 * image family cannot pass on.
 */
#include "api/ec2nodeclass_spec.h"

#include "codec/duration.h"

/* --- values --- */

static const char *threshold_problem(struct str text)
{
    struct quantity q;
    int64_t percent;
    if (str_ends(text, STR("%"))) {
        bool ok =
            str_to_i64(str_sub(text, 0, text.len - 1), &percent) && percent >= 0 && percent <= 100;
        /* Fractions of a percent are fine too: 7.5%. */
        if (!ok && quantity_parse(str_sub(text, 0, text.len - 1), &q, NULL) == 0)
            ok = quantity_cmp(q, quantity_of(0)) >= 0 && quantity_cmp(q, quantity_of(100)) <= 0;
        return ok ? NULL : "is not a percentage from 0% to 100%";
    }
    if (quantity_parse(text, &q, NULL) < 0 || quantity_cmp(q, quantity_of(0)) < 0)
        return "is neither a percentage nor a quantity of at least 0";
    return NULL;
}

static const char *grace_problem(struct str text)
{
    int64_t ns;
    if (duration_parse(text, &ns, NULL) < 0 || ns < 0)
        return "is not a duration of at least 0, such as 1m30s";
    return NULL;
}

static const char *reserved_problem(struct str text)
{
    struct quantity q;
    if (str_starts(text, STR("-")))
        return "is negative";
    if (quantity_parse(text, &q, NULL) < 0)
        return "is not a quantity (expressions are not enabled)";
    return NULL;
}

static const char *max_pods_problem(struct str text KV_UNUSED)
{
    return "is an expression, and expressions are not enabled; expected an integer";
}

static const struct rule signal_rule = {
    ENUMS("memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available",
          "imagefs.inodesFree", "pid.available"),
};
static const struct rule threshold_rule = { .check = threshold_problem };
static const struct rule thresholds_rule = { .key = &signal_rule, .item = &threshold_rule };
static const struct rule grace_rule = { .check = grace_problem };
static const struct rule graces_rule = { .key = &signal_rule, .item = &grace_rule };
static const struct rule reservable_rule = {
    ENUMS("cpu", "memory", "ephemeral-storage", "pid"),
};
static const struct rule reserved_rule = { .check = reserved_problem };
static const struct rule reservations_rule = { .key = &reservable_rule, .item = &reserved_rule };
static const struct rule count_rule = { .format = "int32", AT_LEAST(0) };
static const struct rule percent_rule = { BETWEEN(0, 100) };
static const struct rule int32_rule = { .format = "int32" };

/* --- KubeletConfiguration --- */

static const struct field kubelet_fields[] = {
    CHECKED(STR, "apiVersion"),
    CHECKED(STR, "kind"),
    CHECKED(BOOL, "enableServer"),
    CHECKED(STR, "staticPodPath"),
    CHECKED(STR, "podLogsDir"),
    CHECKED(DURATION, "syncFrequency"),
    CHECKED(DURATION, "fileCheckFrequency"),
    CHECKED(DURATION, "httpCheckFrequency"),
    CHECKED(STR, "staticPodURL"),
    CHECKED(OPAQUE, "staticPodURLHeader"),
    CHECKED(STR, "address"),
    CHECKED(INT, "port", .rule = &int32_rule),
    CHECKED(INT, "readOnlyPort", .rule = &int32_rule),
    CHECKED(STR, "tlsCertFile"),
    CHECKED(STR, "tlsPrivateKeyFile"),
    CHECKED(STRS, "tlsCipherSuites"),
    CHECKED(STR, "tlsMinVersion"),
    CHECKED(BOOL, "rotateCertificates"),
    CHECKED(BOOL, "serverTLSBootstrap"),
    CHECKED(OPAQUE, "authentication"),
    CHECKED(OPAQUE, "authorization"),
    CHECKED(INT, "registryPullQPS", .rule = &int32_rule),
    CHECKED(INT, "registryBurst", .rule = &int32_rule),
    CHECKED(STR, "imagePullCredentialsVerificationPolicy"),
    CHECKED(STRS, "preloadedImagesVerificationAllowlist"),
    CHECKED(INT, "eventRecordQPS", .rule = &int32_rule),
    CHECKED(INT, "eventBurst", .rule = &int32_rule),
    CHECKED(BOOL, "enableDebuggingHandlers"),
    CHECKED(BOOL, "enableContentionProfiling"),
    CHECKED(INT, "healthzPort", .rule = &int32_rule),
    CHECKED(STR, "healthzBindAddress"),
    CHECKED(INT, "oomScoreAdj", .rule = &int32_rule),
    CHECKED(STR, "clusterDomain"),
    CHECKED(STRS, "clusterDNS"),
    CHECKED(DURATION, "streamingConnectionIdleTimeout"),
    CHECKED(DURATION, "nodeStatusUpdateFrequency"),
    CHECKED(DURATION, "nodeStatusReportFrequency"),
    CHECKED(INT, "nodeLeaseDurationSeconds", .rule = &int32_rule),
    CHECKED(DURATION, "imageMinimumGCAge"),
    CHECKED(DURATION, "imageMaximumGCAge"),
    CHECKED(INT, "imageGCHighThresholdPercent", .rule = &percent_rule),
    CHECKED(INT, "imageGCLowThresholdPercent", .rule = &percent_rule),
    CHECKED(DURATION, "volumeStatsAggPeriod"),
    CHECKED(STR, "kubeletCgroups"),
    CHECKED(STR, "systemCgroups"),
    CHECKED(STR, "cgroupRoot"),
    CHECKED(BOOL, "cgroupsPerQOS"),
    CHECKED(STR, "cgroupDriver"),
    CHECKED(STR, "cpuManagerPolicy"),
    CHECKED(BOOL, "singleProcessOOMKill"),
    CHECKED(STR_MAP, "cpuManagerPolicyOptions"),
    CHECKED(DURATION, "cpuManagerReconcilePeriod"),
    CHECKED(STR, "memoryManagerPolicy"),
    CHECKED(STR, "topologyManagerPolicy"),
    CHECKED(STR, "topologyManagerScope"),
    CHECKED(STR_MAP, "topologyManagerPolicyOptions"),
    CHECKED(STR_MAP, "qosReserved"),
    CHECKED(DURATION, "runtimeRequestTimeout"),
    CHECKED(STR, "hairpinMode"),
    CHECKED(INT_OR_STR, "maxPods", RULE(.format = "int32", AT_LEAST(0), .check = max_pods_problem)),
    CHECKED(STR, "podCIDR"),
    CHECKED(INT, "podPidsLimit"),
    CHECKED(STR, "resolvConf"),
    CHECKED(BOOL, "runOnce"),
    CHECKED(BOOL, "cpuCFSQuota"),
    CHECKED(DURATION, "cpuCFSQuotaPeriod"),
    CHECKED(INT, "nodeStatusMaxImages", .rule = &int32_rule),
    CHECKED(INT, "maxOpenFiles"),
    CHECKED(STR, "contentType"),
    CHECKED(INT, "kubeAPIQPS", .rule = &int32_rule),
    CHECKED(INT, "kubeAPIBurst", .rule = &int32_rule),
    CHECKED(BOOL, "serializeImagePulls"),
    CHECKED(INT, "maxParallelImagePulls", .rule = &int32_rule),
    CHECKED(STR_MAP, "evictionHard", .rule = &thresholds_rule),
    CHECKED(STR_MAP, "evictionSoft", .rule = &thresholds_rule),
    CHECKED(STR_MAP, "evictionSoftGracePeriod", .rule = &graces_rule),
    CHECKED(DURATION, "evictionPressureTransitionPeriod"),
    CHECKED(INT, "evictionMaxPodGracePeriod", .rule = &count_rule),
    CHECKED(STR_MAP, "evictionMinimumReclaim", .rule = &thresholds_rule),
    CHECKED(BOOL, "mergeDefaultEvictionSettings"),
    CHECKED(INT, "podsPerCore", .rule = &count_rule),
    CHECKED(BOOL, "enableControllerAttachDetach"),
    CHECKED(BOOL, "protectKernelDefaults"),
    CHECKED(BOOL, "makeIPTablesUtilChains"),
    CHECKED(INT, "iptablesMasqueradeBit", .rule = &int32_rule),
    CHECKED(INT, "iptablesDropBit", .rule = &int32_rule),
    CHECKED(OPAQUE, "featureGates"),
    CHECKED(BOOL, "failSwapOn"),
    CHECKED(OPAQUE, "memorySwap"),
    CHECKED(STR, "containerLogMaxSize"),
    CHECKED(INT, "containerLogMaxFiles", .rule = &int32_rule),
    CHECKED(INT, "containerLogMaxWorkers", .rule = &int32_rule),
    CHECKED(DURATION, "containerLogMonitorInterval"),
    CHECKED(STR, "configMapAndSecretChangeDetectionStrategy"),
    CHECKED(STR_MAP, "systemReserved", .rule = &reservations_rule),
    CHECKED(STR_MAP, "kubeReserved", .rule = &reservations_rule),
    CHECKED(STR, "reservedSystemCPUs"),
    CHECKED(STR, "showHiddenMetricsForVersion"),
    CHECKED(STR, "systemReservedCgroup"),
    CHECKED(STR, "kubeReservedCgroup"),
    CHECKED(STRS, "enforceNodeAllocatable"),
    CHECKED(STRS, "allowedUnsafeSysctls"),
    CHECKED(STR, "volumePluginDir"),
    CHECKED(STR, "providerID"),
    CHECKED(BOOL, "kernelMemcgNotification"),
    CHECKED(OPAQUE, "logging"),
    CHECKED(BOOL, "enableSystemLogHandler"),
    CHECKED(BOOL, "enableSystemLogQuery"),
    CHECKED(DURATION, "shutdownGracePeriod"),
    CHECKED(DURATION, "shutdownGracePeriodCriticalPods"),
    CHECKED(OPAQUE, "shutdownGracePeriodByPodPriority"),
    CHECKED(OPAQUE, "crashLoopBackOff"),
    CHECKED(OPAQUE, "reservedMemory"),
    CHECKED(BOOL, "enableProfilingHandler"),
    CHECKED(BOOL, "enableDebugFlagsHandler"),
    CHECKED(BOOL, "seccompDefault"),
    CHECKED(OPAQUE, "memoryThrottlingFactor"),
    CHECKED(OPAQUE, "registerWithTaints"),
    CHECKED(BOOL, "registerNode"),
    CHECKED(OPAQUE, "tracing"),
    CHECKED(BOOL, "localStorageCapacityIsolation"),
    CHECKED(STR, "containerRuntimeEndpoint"),
    CHECKED(STR, "imageServiceEndpoint"),
    CHECKED(BOOL, "failCgroupV1"),
    CHECKED(OPAQUE, "userNamespaces"),
};
static const struct schema kubelet_schema = SCHEMA_CHECKED("KubeletConfiguration", kubelet_fields);

/* --- fields against each other --- */

/* Every key of a must be in b. */
static void keys_within(const json_val *a, const char *b_name, const json_val *b,
                        const struct place *place, struct report *report)
{
    struct str_table keys = { 0 };
    json_each_member(b, key, value)
        str_table_put(&keys, json_key(key), (void *)value);
    json_each_member(a, key, value) {
        struct place here = place_key(place, key, value);
        if (!str_table_has(&keys, json_key(key)))
            place_error(report, &here, "has no counterpart in %s, expected the same signals",
                        b_name);
    }
    str_table_done(&keys);
}

static void soft_eviction_check(const struct place *kubelet, struct report *report)
{
    struct place soft = place_member(kubelet, "evictionSoft");
    struct place grace = place_member(kubelet, "evictionSoftGracePeriod");
    const json_val *soft_map = soft.found ? soft.at : NULL;
    const json_val *grace_map = grace.found ? grace.at : NULL;

    keys_within(soft_map, "evictionSoftGracePeriod", grace_map, &soft, report);
    keys_within(grace_map, "evictionSoft", soft_map, &grace, report);
}

static void image_gc_check(const struct place *kubelet, struct report *report)
{
    struct place high = place_member(kubelet, "imageGCHighThresholdPercent");
    struct place low = place_member(kubelet, "imageGCLowThresholdPercent");
    int64_t high_percent, low_percent;

    if (high.found && low.found && json_i64(high.at, &high_percent) &&
        json_i64(low.at, &low_percent) && high_percent <= low_percent)
        place_error(report, &high, "is %lld, expected more than imageGCLowThresholdPercent (%lld)",
                    (long long)high_percent, (long long)low_percent);
}

/* What reaches the node as flags or settings of its own, whatever the family. */
static const char *const settable_everywhere[] = {
    "clusterDNS",
    "maxPods",
    "podsPerCore",
    "systemReserved",
    "kubeReserved",
    "evictionHard",
    "evictionSoft",
    "evictionSoftGracePeriod",
    "evictionMaxPodGracePeriod",
    "imageGCHighThresholdPercent",
    "imageGCLowThresholdPercent",
    "cpuCFSQuota",
};

static bool is_settable_everywhere(struct str name)
{
    for (size_t i = 0; i < KV_COUNT_OF(settable_everywhere); i++) {
        if (str_eqz(name, settable_everywhere[i]))
            return true;
    }
    return false;
}

static bool is_kubelet_field(struct str name)
{
    for (size_t i = 0; i < KV_COUNT_OF(kubelet_fields); i++) {
        if (str_eqz(name, kubelet_fields[i].name))
            return true;
    }
    return false;
}

static bool family_takes_any_field(enum ami_family family)
{
    switch (family) {
    case AMI_FAMILY_AL2023:
    case AMI_FAMILY_CUSTOM: /* its user data is the user's own affair */
        return true;
    case AMI_FAMILY_UNSET:
    case AMI_FAMILY_AL2:
    case AMI_FAMILY_BOTTLEROCKET:
    case AMI_FAMILY_WINDOWS2019:
    case AMI_FAMILY_WINDOWS2022:
    case AMI_FAMILY_WINDOWS2025:
        return false;
    }
    KV_UNREACHABLE();
}

static void family_check(const json_val *kubelet, enum ami_family family, const struct place *place,
                         struct report *report)
{
    struct place dns = place_member(place, "clusterDNS");
    struct place per_core = place_member(place, "podsPerCore");
    if (family_takes_any_field(family))
        return;
    json_each_member(kubelet, key, value) {
        struct str name = json_str(key);
        (void)value;
        if (is_settable_everywhere(name) || !is_kubelet_field(name))
            continue; /* what no kubelet knows was reported already */
        struct place here = { .path = { .up = place_path(place), .name = name }, .at = key };
        place_error(report, &here, "cannot be set on nodes of the family %s",
                    ami_family_name(family));
    }
    if (per_core.found && family == AMI_FAMILY_BOTTLEROCKET)
        place_error(report, &per_core, "cannot be set on nodes of the family %s",
                    ami_family_name(family));
    if (dns.found && json_count(dns.at) > 1)
        place_error(report, &dns, "has %zu addresses, nodes of the family %s take one",
                    json_count(dns.at), ami_family_name(family));
}

void kubelet_check(const json_val *kubelet, enum ami_family family, const struct place *place,
                   struct report *report)
{
    const struct place taints = place_member(place, "registerWithTaints");

    if (!json_is_object(kubelet))
        return; /* the schema says so */
    schema_validate(&kubelet_schema, kubelet, place_path(place), report);
    if (taints.found)
        place_error(report, &taints, "cannot be set here, expected taints in the NodePool");
    soft_eviction_check(place, report);
    image_gc_check(place, report);
    family_check(kubelet, family, place, report);
}

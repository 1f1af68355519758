#include "support/test.h"

#include "bootstrap/allocatable.h"
#include "bootstrap/families.h"

#include <inttypes.h>

#define MIB ((int64_t)1 << 20)
#define GIB ((int64_t)1 << 30)

/* Facts of EC2: vCPUs, MiB, interfaces and addresses of each. */
static const struct machine machines[] = {
    { .name = { "t3.small", 8 }, .vcpus = 2, .memory_mib = 2048, .enis = 3, .ipv4_per_eni = 4 },
    { .name = { "m5.large", 8 }, .vcpus = 2, .memory_mib = 8192, .enis = 3, .ipv4_per_eni = 10 },
    { .name = { "m6g.large", 9 },
      .arch = MACHINE_ARM64,
      .vcpus = 2,
      .memory_mib = 8192,
      .enis = 3,
      .ipv4_per_eni = 10 },
    { .name = { "m5.xlarge", 9 }, .vcpus = 4, .memory_mib = 16384, .enis = 4, .ipv4_per_eni = 15 },
    { .name = { "c5.4xlarge", 10 },
      .vcpus = 16,
      .memory_mib = 32768,
      .enis = 8,
      .ipv4_per_eni = 30 },
    { .name = { "r7g.16xlarge", 12 },
      .arch = MACHINE_ARM64,
      .vcpus = 64,
      .memory_mib = 524288,
      .enis = 15,
      .ipv4_per_eni = 50 },
    { .name = { "m5.24xlarge", 11 },
      .vcpus = 96,
      .memory_mib = 393216,
      .enis = 15,
      .ipv4_per_eni = 50 },
};

static struct machine machine(const char *name)
{
    for (size_t i = 0; i < KV_COUNT_OF(machines); i++) {
        if (str_eqz(machines[i].name, name)) {
            struct machine m = machines[i];
            m.hypervisor = STR("nitro");
            return m;
        }
    }
    fail_msg("no machine %s", name);
    return (struct machine){ 0 };
}

static struct kubelet_config kubelet(struct arena *arena, enum ami_family family, const char *json)
{
    struct kubelet_config k = { 0 };
    struct err err = { 0 };
    EXPECT_OK(kubelet_config_read(arena, str_of(json), family, &k, &err), err);
    return k;
}

static struct node_resources compute(struct arena *arena, struct machine m,
                                     struct allocatable_class class_,
                                     struct allocatable_options options)
{
    struct node_resources r = { 0 };
    struct err err = { 0 };
    EXPECT_OK(allocatable_compute(arena, &m, &class_, &options, &r, &err), err);
    return r;
}

static int64_t units(const struct resources *r, const char *name)
{
    return quantity_units(resources_get(r, str_of(name)));
}

static int64_t milli(const struct resources *r, const char *name)
{
    return quantity_milli(resources_get(r, str_of(name)));
}

/* --- the published table --- */

TEST(allocatable_equals_the_published_table)
{
    static const struct {
        const char *type;
        enum ami_family family;
        const char *kubelet; /* NULL: none */
        int64_t pods, memory_mib, reserved_mib, reserved_milli, cpu_milli, allocatable_mib;
    } rows[] = {
        { "t3.small", AMI_FAMILY_AL2023, NULL, 11, 1894, 376, 70, 1930, 1418 },
        { "m5.large", AMI_FAMILY_AL2023, NULL, 29, 7577, 574, 70, 1930, 6903 },
        { "m6g.large", AMI_FAMILY_AL2023, NULL, 29, 7518, 574, 70, 1930, 6844 },
        { "m5.xlarge", AMI_FAMILY_AL2023, NULL, 58, 15155, 893, 80, 3920, 14162 },
        { "c5.4xlarge", AMI_FAMILY_AL2023, NULL, 234, 30310, 2829, 110, 15890, 27381 },
        { "r7g.16xlarge", AMI_FAMILY_AL2023, NULL, 737, 484907, 8362, 230, 63770, 476445 },
        { "m5.24xlarge", AMI_FAMILY_AL2023, NULL, 737, 363724, 8362, 310, 95690, 355262 },
        { "m5.large", AMI_FAMILY_BOTTLEROCKET, "{\"maxPods\":110}", 110, 7577, 1465, 70, 1930,
          6012 },
        { "m5.large", AMI_FAMILY_AL2023, "{\"maxPods\":110}", 110, 7577, 574, 70, 1930, 6903 },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        AUTO_ARENA arena = { 0 };
        struct kubelet_config k = kubelet(&arena, rows[i].family, rows[i].kubelet);
        struct allocatable_class class_ = { .family = rows[i].family, .maybe_kubelet = &k };
        struct node_resources r =
            compute(&arena, machine(rows[i].type), class_, ALLOCATABLE_DEFAULTS);

        EXPECT_EQ(r.pods, rows[i].pods);
        EXPECT_EQ(units(&r.capacity, "pods"), rows[i].pods);
        EXPECT_EQ(units(&r.allocatable, "pods"), rows[i].pods);
        EXPECT_EQ(units(&r.capacity, "memory"), rows[i].memory_mib * MIB);
        EXPECT_EQ(units(&r.kube_reserved, "memory"), rows[i].reserved_mib * MIB);
        EXPECT_EQ(milli(&r.kube_reserved, "cpu"), rows[i].reserved_milli);
        EXPECT_EQ(milli(&r.allocatable, "cpu"), rows[i].cpu_milli);
        EXPECT_EQ(units(&r.allocatable, "memory"), rows[i].allocatable_mib * MIB);
        EXPECT_EQ(units(&r.allocatable, "ephemeral-storage"), INT64_C(18253611008));
    }
}

TEST(a_class_without_opinions_gives_the_same_for_al2_al2023_and_custom)
{
    static const enum ami_family same[] = { AMI_FAMILY_AL2, AMI_FAMILY_AL2023, AMI_FAMILY_CUSTOM,
                                            AMI_FAMILY_UNSET };
    for (size_t i = 0; i < KV_COUNT_OF(same); i++) {
        AUTO_ARENA arena = { 0 };
        struct allocatable_class class_ = { .family = same[i] };
        struct node_resources r =
            compute(&arena, machine("m5.large"), class_, ALLOCATABLE_DEFAULTS);
        EXPECT_EQ(units(&r.allocatable, "memory"), 6903 * MIB);
        EXPECT_EQ(r.pods, 29);
    }
}

/* --- the identity, over classes and machines --- */

static void expect_identity(const struct node_resources *r)
{
    for (uint32_t i = 0; i < r->capacity.count; i++) {
        struct str name = r->capacity.items[i].name;
        int64_t overhead = 0;
        const struct resources *parts[] = { &r->kube_reserved, &r->system_reserved, &r->eviction };
        for (size_t p = 0; p < KV_COUNT_OF(parts); p++)
            overhead += quantity_milli(resources_get(parts[p], name));
        int64_t left = quantity_milli(r->capacity.items[i].amount) - overhead;
        EXPECT_EQ(quantity_milli(resources_get(&r->overhead, name)), overhead);
        EXPECT_EQ(quantity_milli(resources_get(&r->allocatable, name)), left > 0 ? left : 0);
        if (i)
            EXPECT_TRUE(str_cmp(r->capacity.items[i - 1].name, name) < 0);
    }
    EXPECT_EQ(r->allocatable.count, r->capacity.count);
    EXPECT_TRUE(resources_find(&r->overhead, STR("pid")) == NULL);
}

TEST(allocatable_is_capacity_less_overhead_for_every_family_and_machine)
{
    static const char *const configs[] = {
        NULL,
        "{\"kubeReserved\":{\"cpu\":\"150m\",\"memory\":\"1.5Gi\",\"pid\":\"1000\"}}",
        "{\"systemReserved\":{\"cpu\":\"1\",\"ephemeral-storage\":\"2G\",\"memory\":\"123456789\"}}",
        "{\"evictionHard\":{\"memory.available\":\"7.5%\",\"nodefs.available\":\"1Gi\"}}",
        "{\"kubeReserved\":{\"memory\":\"9E\"},\"maxPods\":0}",
    };
    for (int family = AMI_FAMILY_AL2; family <= AMI_FAMILY_WINDOWS2025; family++) {
        for (size_t c = 0; c < KV_COUNT_OF(configs); c++) {
            for (size_t i = 0; i < KV_COUNT_OF(machines); i++) {
                AUTO_ARENA arena = { 0 };
                enum ami_family id = (enum ami_family)family;
                struct kubelet_config k = kubelet(&arena, id, configs[c]);
                struct allocatable_class class_ = { .family = id, .maybe_kubelet = &k };
                struct node_resources r =
                    compute(&arena, machines[i], class_, ALLOCATABLE_DEFAULTS);
                if (c != 4) /* 9E in milli is beyond int64 */
                    expect_identity(&r);
            }
        }
    }
}

TEST(reservations_beyond_all_bounds_leave_nothing_and_do_not_wrap)
{
    AUTO_ARENA arena = { 0 };
    struct kubelet_config k = kubelet(&arena, AMI_FAMILY_AL2023,
                                      "{\"kubeReserved\":{\"memory\":\"7E\",\"cpu\":\"3\"},"
                                      "\"systemReserved\":{\"memory\":\"7E\"},"
                                      "\"evictionHard\":{\"memory.available\":\"7E\"}}");
    struct allocatable_class class_ = { .family = AMI_FAMILY_AL2023, .maybe_kubelet = &k };
    struct node_resources r = compute(&arena, machine("m5.large"), class_, ALLOCATABLE_DEFAULTS);
    EXPECT_EQ(units(&r.allocatable, "memory"), 0);
    EXPECT_EQ(units(&r.allocatable, "cpu"), 0);
    EXPECT_EQ(units(&r.overhead, "memory"), INT64_MAX);
}

/* --- reservations --- */

TEST(kube_reserved_replaces_the_default_key_by_key)
{
    AUTO_ARENA arena = { 0 };
    struct kubelet_config k =
        kubelet(&arena, AMI_FAMILY_AL2023, "{\"kubeReserved\":{\"cpu\":\"200m\",\"pid\":\"900\"}}");
    struct allocatable_class class_ = { .family = AMI_FAMILY_AL2023, .maybe_kubelet = &k };
    struct node_resources r = compute(&arena, machine("m5.large"), class_, ALLOCATABLE_DEFAULTS);
    EXPECT_EQ(milli(&r.kube_reserved, "cpu"), 200);
    EXPECT_EQ(units(&r.kube_reserved, "memory"), 574 * MIB);
    EXPECT_EQ(units(&r.kube_reserved, "ephemeral-storage"), GIB);
    EXPECT_EQ(units(&r.kube_reserved, "pid"), 900);
}

TEST(cpu_tiers_are_cut_each_for_itself)
{
    static const struct {
        uint32_t vcpus;
        int64_t milli;
    } rows[] = { { 0, 0 },  { 1, 60 }, { 2, 70 }, { 3, 75 },    { 4, 80 },    { 5, 82 },
                 { 6, 85 }, { 7, 87 }, { 8, 90 }, { 192, 550 }, { 448, 1190 } };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        AUTO_ARENA arena = { 0 };
        struct machine m = machine("m5.large");
        m.vcpus = rows[i].vcpus;
        struct allocatable_class class_ = { .family = AMI_FAMILY_AL2023 };
        struct node_resources r = compute(&arena, m, class_, ALLOCATABLE_DEFAULTS);
        EXPECT_EQ(milli(&r.kube_reserved, "cpu"), rows[i].milli);
    }
}

TEST(eviction_thresholds_are_bytes_or_a_share_rounded_up_and_100_percent_is_off)
{
    static const struct {
        const char *memory, *storage;
        int64_t memory_bytes, storage_bytes;
    } rows[] = {
        { "500Mi", "3Gi", 500 * MIB, 3 * GIB },
        { "5%", "15%", (7577 * MIB * 5 + 99) / 100, (20 * GIB * 15 + 99) / 100 },
        { "7.5%", "0.1%", (7577 * MIB * 75 + 999) / 1000, (20 * GIB + 999) / 1000 },
        { "100%", "100%", 0, 0 },
        { "0%", "0", 0, 0 },
        { "99%", "1", (7577 * MIB * 99 + 99) / 100, 1 },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        AUTO_ARENA arena = { 0 };
        struct str json = arena_strf(
            &arena, "{\"evictionHard\":{\"memory.available\":\"%s\",\"nodefs.available\":\"%s\"}}",
            rows[i].memory, rows[i].storage);
        struct kubelet_config k = kubelet(&arena, AMI_FAMILY_AL2023, json.p);
        struct allocatable_class class_ = { .family = AMI_FAMILY_AL2023, .maybe_kubelet = &k };
        struct node_resources r =
            compute(&arena, machine("m5.large"), class_, ALLOCATABLE_DEFAULTS);
        EXPECT_EQ(units(&r.eviction, "memory"), rows[i].memory_bytes);
        EXPECT_EQ(units(&r.eviction, "ephemeral-storage"), rows[i].storage_bytes);
    }
}

TEST(other_signals_and_soft_eviction_change_nothing)
{
    AUTO_ARENA arena = { 0 };
    struct kubelet_config k = kubelet(&arena, AMI_FAMILY_AL2023,
                                      "{\"evictionHard\":{\"pid.available\":\"10%\"},"
                                      "\"evictionSoft\":{\"memory.available\":\"50%\"},"
                                      "\"evictionSoftGracePeriod\":{\"memory.available\":\"1m\"}}");
    struct allocatable_class class_ = { .family = AMI_FAMILY_AL2023, .maybe_kubelet = &k };
    struct node_resources r = compute(&arena, machine("m5.large"), class_, ALLOCATABLE_DEFAULTS);
    EXPECT_EQ(units(&r.eviction, "memory"), 100 * MIB);
    EXPECT_EQ(units(&r.allocatable, "memory"), 6903 * MIB);
}

TEST(reservations_in_toml_count_where_the_kubelet_configuration_is_silent)
{
    AUTO_ARENA arena = { 0 };
    static const struct str_pair cpu[] = { { { "cpu", 3 }, { "300m", 4 } } };
    static const struct str_pair memory[] = { { { "memory.available", 16 }, { "15%", 3 } } };
    struct kubelet_config k = kubelet(&arena, AMI_FAMILY_BOTTLEROCKET, "{\"maxPods\":29}");
    struct allocatable_class class_ = {
        .family = AMI_FAMILY_BOTTLEROCKET,
        .maybe_kubelet = &k,
        .toml_kube_reserved = { cpu, 1 },
        .toml_system_reserved = { cpu, 1 },
        .toml_eviction_hard = { memory, 1 },
    };
    struct node_resources r = compute(&arena, machine("m5.large"), class_, ALLOCATABLE_DEFAULTS);
    EXPECT_EQ(milli(&r.allocatable, "cpu"), 1400);
    EXPECT_EQ(units(&r.eviction, "memory"), (7577 * MIB * 15 + 99) / 100);

    k = kubelet(&arena, AMI_FAMILY_BOTTLEROCKET,
                "{\"kubeReserved\":{},\"systemReserved\":{\"cpu\":\"100m\"},"
                "\"evictionHard\":{\"nodefs.available\":\"5%\"}}");
    r = compute(&arena, machine("m5.large"), class_, ALLOCATABLE_DEFAULTS);
    EXPECT_EQ(milli(&r.kube_reserved, "cpu"), 70);
    EXPECT_EQ(milli(&r.system_reserved, "cpu"), 100);
    EXPECT_EQ(units(&r.eviction, "memory"), 100 * MIB);
}

TEST(a_broken_quantity_is_named)
{
    static const struct {
        struct str_pair pair;
        bool eviction;
        const char *says;
    } rows[] = {
        { { { "cpu", 3 }, { "lots", 4 } }, false, "settings.kubernetes.kube-reserved[\"cpu\"]" },
        { { { "memory", 6 }, { "-1Gi", 4 } }, false, "\"-1Gi\" is negative" },
        { { { "memory.available", 16 }, { "101%", 4 } }, true, "from 0% to 100%" },
        { { { "memory.available", 16 }, { "%", 1 } }, true, "eviction-hard[\"memory.available\"]" },
        { { { "nodefs.available", 16 }, { "", 0 } }, true, "eviction-hard[\"nodefs.available\"]" },
        { { { "nodefs.available", 16 }, { "-5", 2 } }, true, "at least 0" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        struct allocatable_class class_ = { .family = AMI_FAMILY_BOTTLEROCKET };
        struct allocatable_options options = ALLOCATABLE_DEFAULTS;
        struct allocatable_rules rules;
        struct err err = { 0 };
        *(rows[i].eviction ? &class_.toml_eviction_hard : &class_.toml_kube_reserved) =
            (struct str_map){ &rows[i].pair, 1 };
        EXPECT_ERR(allocatable_prepare(&class_, &options, &rules, &err), err, ERR_INVALID);
        EXPECT_HAS(str_of(err.text), rows[i].says);
    }
}

/* --- pods --- */

TEST(pods_are_what_the_interfaces_allow)
{
    struct machine m = machine("m5.large");
    EXPECT_EQ(allocatable_eni_pods(&m, 0, 0), 29);
    EXPECT_EQ(allocatable_eni_pods(&m, 1, 0), 20);
    EXPECT_EQ(allocatable_eni_pods(&m, 1, 1), 11);
    EXPECT_EQ(allocatable_eni_pods(&m, 3, 0), 0);
    EXPECT_EQ(allocatable_eni_pods(&m, 4, 9), 0);
    m.ipv4_per_eni = 0;
    EXPECT_EQ(allocatable_eni_pods(&m, 0, 0), 0);
}

static int64_t pods(const char *type, enum ami_family family, const char *json,
                    struct allocatable_class class_, uint32_t reserved_enis)
{
    AUTO_ARENA arena = { 0 };
    struct kubelet_config k = kubelet(&arena, family, json);
    struct machine m = machine(type);
    struct allocatable_options options = ALLOCATABLE_DEFAULTS;
    options.reserved_enis = reserved_enis;
    class_.family = family;
    class_.maybe_kubelet = &k;
    int64_t count = allocatable_pods(&m, &class_, &options);
    EXPECT_EQ(compute(&arena, m, class_, options).pods, count);
    return count;
}

TEST(max_pods_wins_and_pods_per_core_lowers_it_where_the_family_honours_it)
{
    const struct allocatable_class none = { 0 };
    EXPECT_EQ(pods("m5.large", AMI_FAMILY_AL2023, "{\"maxPods\":110}", none, 0), 110);
    EXPECT_EQ(pods("m5.large", AMI_FAMILY_AL2023, "{\"maxPods\":0}", none, 0), 0);
    EXPECT_EQ(pods("m5.large", AMI_FAMILY_AL2, "{\"podsPerCore\":4}", none, 0), 8);
    EXPECT_EQ(pods("m5.large", AMI_FAMILY_AL2, "{\"podsPerCore\":40}", none, 0), 29);
    EXPECT_EQ(pods("m5.large", AMI_FAMILY_AL2, "{\"podsPerCore\":0}", none, 0), 29);
    EXPECT_EQ(pods("m5.large", AMI_FAMILY_AL2, "{\"podsPerCore\":3,\"maxPods\":5}", none, 0), 5);
    EXPECT_EQ(pods("m5.large", AMI_FAMILY_WINDOWS2022, NULL, none, 0), 110);
    EXPECT_EQ(pods("m5.large", AMI_FAMILY_WINDOWS2022, "{\"podsPerCore\":4}", none, 0), 8);
    EXPECT_EQ(pods("m5.large", AMI_FAMILY_BOTTLEROCKET, NULL, none, 0), 29);
}

TEST(reserved_and_efa_only_interfaces_take_pods_but_not_reserved_memory)
{
    const struct allocatable_class efa = { .efa_only_on_card0 = 1 };
    EXPECT_EQ(pods("m5.large", AMI_FAMILY_AL2023, NULL, efa, 1), 11);

    AUTO_ARENA arena = { 0 };
    struct allocatable_options options = ALLOCATABLE_DEFAULTS;
    options.reserved_enis = 1;
    struct allocatable_class class_ = { .family = AMI_FAMILY_AL2023, .efa_only_on_card0 = 1 };
    struct node_resources r = compute(&arena, machine("m5.large"), class_, options);
    EXPECT_EQ(units(&r.kube_reserved, "memory"), 574 * MIB);
    class_.family = AMI_FAMILY_BOTTLEROCKET;
    r = compute(&arena, machine("m5.large"), class_, options);
    EXPECT_EQ(units(&r.kube_reserved, "memory"), (11 * 11 + 255) * MIB);
}

TEST(prefix_delegation_multiplies_pods_up_to_the_caps)
{
    const struct allocatable_class prefixes = { .prefix_delegation = true };
    EXPECT_EQ(pods("t3.small", AMI_FAMILY_AL2023, NULL, prefixes, 0), 110);
    EXPECT_EQ(pods("t3.small", AMI_FAMILY_AL2023, NULL, prefixes, 2), 50);
    EXPECT_EQ(pods("t3.small", AMI_FAMILY_AL2023, NULL, prefixes, 3), 0);
    EXPECT_EQ(pods("m5.24xlarge", AMI_FAMILY_AL2023, NULL, prefixes, 0), 250);
    EXPECT_EQ(pods("m5.large", AMI_FAMILY_AL2023, "{\"maxPods\":20}", prefixes, 0), 20);
    EXPECT_EQ(pods("m5.large", AMI_FAMILY_WINDOWS2022, NULL, prefixes, 0), 110);

    AUTO_ARENA arena = { 0 };
    struct machine m = machine("t3.small");
    struct allocatable_class class_ = { .family = AMI_FAMILY_AL2023, .prefix_delegation = true };
    m.hypervisor = STR("xen");
    EXPECT_EQ(compute(&arena, m, class_, ALLOCATABLE_DEFAULTS).pods, 11);
    m.hypervisor = STR(""); /* bare metal is nitro hardware */
    struct node_resources r = compute(&arena, m, class_, ALLOCATABLE_DEFAULTS);
    EXPECT_EQ(r.pods, 110);
    EXPECT_EQ(units(&r.kube_reserved, "memory"), 376 * MIB);
}

/* --- memory --- */

TEST(memory_overhead_is_a_share_rounded_up_and_arm64_keeps_64_mib_more)
{
    static const struct {
        enum machine_arch arch;
        uint32_t ppm;
        int64_t mib;
    } rows[] = {
        { MACHINE_AMD64, 0, 8192 },     { MACHINE_ARM64, 0, 8128 },
        { MACHINE_AMD64, 75000, 7577 }, { MACHINE_ARM64, 75000, 7518 },
        { MACHINE_AMD64, 1, 8191 },     { MACHINE_AMD64, 125000, 7168 },
        { MACHINE_AMD64, 1000000, 0 },  { MACHINE_ARM64, 2000000, 0 },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        AUTO_ARENA arena = { 0 };
        struct machine m = machine("m5.large");
        m.arch = rows[i].arch;
        struct allocatable_class class_ = { .family = AMI_FAMILY_AL2023 };
        struct allocatable_options options = { .memory_overhead_ppm = rows[i].ppm };
        struct node_resources r = compute(&arena, m, class_, options);
        EXPECT_EQ(units(&r.capacity, "memory"), rows[i].mib * MIB);
    }
}

/* --- storage --- */

static int64_t storage(enum ami_family family, bool raid0, const struct block_device *devices,
                       uint32_t count)
{
    AUTO_ARENA arena = { 0 };
    struct machine m = machine("m5.large");
    m.local_disk_gb = 75;
    struct allocatable_class class_ = {
        .family = family, .raid0 = raid0, .block_devices = devices, .block_device_count = count
    };
    struct node_resources r = compute(&arena, m, class_, ALLOCATABLE_DEFAULTS);
    return units(&r.capacity, "ephemeral-storage");
}

TEST(ephemeral_storage_is_that_of_the_device_that_holds_it)
{
    static const struct ebs_volume v30 = { .size = { "30Gi", 4 } },
                                   v100g = { .size = { "100G", 4 } },
                                   snapshot = { .snapshot_id = { "snap-1", 6 } };
    const struct block_device xvda = { STR("/dev/xvda"), &v30, false },
                              xvdb = { STR("/dev/xvdb"), &v100g, false },
                              root = { STR("/dev/sdz"), &v100g, true },
                              bare = { STR("/dev/xvda"), &snapshot, false },
                              bare_root = { STR("/dev/xvda"), &snapshot, true },
                              none = { STR("/dev/xvda"), NULL, true };
    const int64_t g100 = INT64_C(100000000000);

    EXPECT_EQ(storage(AMI_FAMILY_AL2023, false, NULL, 0), 20 * GIB);
    EXPECT_EQ(storage(AMI_FAMILY_WINDOWS2019, false, NULL, 0), 50 * GIB);
    EXPECT_EQ(storage(AMI_FAMILY_CUSTOM, false, NULL, 0), 20 * GIB);
    EXPECT_EQ(storage(AMI_FAMILY_AL2023, true, NULL, 0), INT64_C(75000000000));

    const struct block_device both[] = { xvda, xvdb };
    EXPECT_EQ(storage(AMI_FAMILY_AL2023, false, both, 2), 30 * GIB);
    EXPECT_EQ(storage(AMI_FAMILY_BOTTLEROCKET, false, both, 2), g100);
    EXPECT_EQ(storage(AMI_FAMILY_CUSTOM, false, both, 2), g100); /* the last */
    EXPECT_EQ(storage(AMI_FAMILY_WINDOWS2022, false, both, 2), 50 * GIB);
    EXPECT_EQ(storage(AMI_FAMILY_AL2, true, both, 2), INT64_C(75000000000));

    const struct block_device rooted[] = { root, xvda };
    EXPECT_EQ(storage(AMI_FAMILY_AL2023, false, rooted, 2), g100);
    EXPECT_EQ(storage(AMI_FAMILY_CUSTOM, false, rooted, 2), g100);

    EXPECT_EQ(storage(AMI_FAMILY_AL2023, false, &bare, 1), 20 * GIB);
    EXPECT_EQ(storage(AMI_FAMILY_AL2023, false, &bare_root, 1), 20 * GIB);
    EXPECT_EQ(storage(AMI_FAMILY_CUSTOM, false, &bare, 1), 20 * GIB);
    EXPECT_EQ(storage(AMI_FAMILY_AL2023, false, &none, 1), 20 * GIB);
}

TEST(raid0_on_a_machine_without_disks_falls_back_to_the_volume)
{
    AUTO_ARENA arena = { 0 };
    struct allocatable_class class_ = { .family = AMI_FAMILY_AL2023, .raid0 = true };
    struct node_resources r = compute(&arena, machine("m5.large"), class_, ALLOCATABLE_DEFAULTS);
    EXPECT_EQ(units(&r.capacity, "ephemeral-storage"), 20 * GIB);
}

/* --- devices --- */

TEST(devices_are_counted_by_their_makers)
{
    AUTO_ARENA arena = { 0 };
    struct machine m = machine("m5.24xlarge");
    m.gpus[0] = (struct machine_gpu){ .manufacturer = STR("NVIDIA"), .count = 8 };
    m.gpus[1] = (struct machine_gpu){ .manufacturer = STR("AMD"), .count = 2 };
    m.gpu_count = 2;
    m.accelerators[0] = (struct machine_accelerator){ .count = 16, .cores = 2, .neuron = true };
    m.accelerators[1] = (struct machine_accelerator){ .count = 1, .cores = 9, .neuron = false };
    m.accelerator_count = 2;
    m.branch_interfaces = 107;
    m.efa_max = 4;

    struct allocatable_class class_ = { .family = AMI_FAMILY_AL2023 };
    struct node_resources r = compute(&arena, m, class_, ALLOCATABLE_DEFAULTS);
    EXPECT_EQ(units(&r.capacity, "nvidia.com/gpu"), 8);
    EXPECT_EQ(units(&r.capacity, "amd.com/gpu"), 2);
    EXPECT_EQ(units(&r.capacity, "aws.amazon.com/neuron"), 16);
    EXPECT_EQ(units(&r.capacity, "aws.amazon.com/neuroncore"), 32);
    EXPECT_EQ(units(&r.capacity, "vpc.amazonaws.com/pod-eni"), 107);
    EXPECT_EQ(units(&r.capacity, "vpc.amazonaws.com/efa"), 4);
    EXPECT_TRUE(resources_find(&r.capacity, STR("habana.ai/gaudi")) == NULL);
    EXPECT_TRUE(resources_find(&r.capacity, STR("vpc.amazonaws.com/PrivateIPv4Address")) == NULL);

    m.gpus[0].manufacturer = STR("Habana");
    class_.has_network_interfaces = true;
    class_.efa_only_interfaces = 2;
    r = compute(&arena, m, class_, ALLOCATABLE_DEFAULTS);
    EXPECT_EQ(units(&r.capacity, "habana.ai/gaudi"), 8);
    EXPECT_EQ(units(&r.capacity, "vpc.amazonaws.com/efa"), 2);
    expect_identity(&r);
}

TEST(windows_nodes_have_addresses_as_a_resource)
{
    AUTO_ARENA arena = { 0 };
    struct allocatable_class class_ = { .family = AMI_FAMILY_WINDOWS2025 };
    struct node_resources r = compute(&arena, machine("m5.large"), class_, ALLOCATABLE_DEFAULTS);
    EXPECT_EQ(units(&r.allocatable, "vpc.amazonaws.com/PrivateIPv4Address"), 9);
    EXPECT_EQ(units(&r.kube_reserved, "memory"), (11 * 110 + 255) * MIB);
    EXPECT_EQ(units(&r.capacity, "ephemeral-storage"), 50 * GIB);
}

/* --- from a class --- */

static const struct object *decode(struct object_pool *pool, const char *json)
{
    struct doc doc;
    struct err err = { 0 };
    const struct object *object = NULL;
    EXPECT_OK(json_read(str_of(json), &doc, &err), err);
    EXPECT_OK(object_decode(pool, &ec2nodeclass_kind, doc.root, &object, &err), err);
    doc_done(&doc);
    return object;
}

TEST(the_class_gives_all_its_inputs)
{
    AUTO_ARENA arena = { 0 };
    AUTO(object_pool) pool = object_pool_new();
    const struct object *object = decode(
        pool,
        "{\"metadata\":{\"name\":\"a\",\"annotations\":{\"karve.io/prefix-delegation\":\"true\"}},"
        "\"spec\":{\"amiSelectorTerms\":[{\"alias\":\"al2023@latest\"}],"
        "\"instanceStorePolicy\":\"RAID0\",\"kubelet\":{\"maxPods\":58},"
        "\"blockDeviceMappings\":[{\"deviceName\":\"/dev/xvda\",\"ebs\":{\"volumeSize\":\"50Gi\"}}],"
        "\"networkInterfaces\":["
        "{\"networkCardIndex\":0,\"deviceIndex\":0,\"interfaceType\":\"interface\"},"
        "{\"networkCardIndex\":0,\"deviceIndex\":1,\"interfaceType\":\"efa-only\"},"
        "{\"networkCardIndex\":1,\"deviceIndex\":1,\"interfaceType\":\"efa-only\"}]}}");
    struct allocatable_class class_;
    struct err err = { 0 };
    EXPECT_OK(allocatable_class_of(&arena, ec2nodeclass_of(object), &class_, &err), err);
    EXPECT_EQ(class_.family, AMI_FAMILY_AL2023);
    EXPECT_EQ(class_.maybe_kubelet->max_pods.value, 58);
    EXPECT_EQ(class_.block_device_count, 1);
    EXPECT_TRUE(class_.raid0);
    EXPECT_TRUE(class_.prefix_delegation);
    EXPECT_TRUE(class_.has_network_interfaces);
    EXPECT_EQ(class_.efa_only_interfaces, 2);
    EXPECT_EQ(class_.efa_only_on_card0, 1);
    object_unref(object);
}

TEST(a_class_with_a_bad_kubelet_configuration_is_refused_with_the_field)
{
    AUTO_ARENA arena = { 0 };
    AUTO(object_pool) pool = object_pool_new();
    const struct object *object =
        decode(pool, "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"amiFamily\":\"AL2023\","
                     "\"kubelet\":{\"maxPods\":\"vcpus * 10\"}}}");
    struct allocatable_class class_;
    struct err err = { 0 };
    EXPECT_ERR(allocatable_class_of(&arena, ec2nodeclass_of(object), &class_, &err), err,
               ERR_INVALID);
    EXPECT_HAS(str_of(err.text), "spec.kubelet.maxPods");
    object_unref(object);
}

TEST(bottlerocket_user_data_is_read_for_what_it_reserves)
{
    AUTO_ARENA arena = { 0 };
    AUTO(object_pool) pool = object_pool_new();
    const struct object *object =
        decode(pool, "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"amiFamily\":\"Bottlerocket\","
                     "\"kubelet\":{\"systemReserved\":{\"cpu\":\"50m\"}},\"userData\":"
                     "\"settings.kubernetes.kube-reserved.cpu = '300m'\\n"
                     "[settings.kubernetes.system-reserved]\\ncpu = '1'\\n\"}}");
    struct allocatable_class class_;
    struct err err = { 0 };
    EXPECT_OK(allocatable_class_of(&arena, ec2nodeclass_of(object), &class_, &err), err);
    struct node_resources r = compute(&arena, machine("m5.large"), class_, ALLOCATABLE_DEFAULTS);
    EXPECT_EQ(milli(&r.kube_reserved, "cpu"), 300);
    EXPECT_EQ(milli(&r.system_reserved, "cpu"), 50); /* spec.kubelet replaces the table */
    object_unref(object);

    object = decode(pool, "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"amiFamily\":\"Bottlerocket\","
                          "\"userData\":\"not TOML\"}}");
    EXPECT_ERR(allocatable_class_of(&arena, ec2nodeclass_of(object), &class_, &err), err,
               ERR_INVALID);
    EXPECT_HAS(str_of(err.text), "spec.userData: line 1");
    object_unref(object);
}

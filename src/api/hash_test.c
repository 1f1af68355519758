#include "support/test.h"

#include "api/hash.h"
#include "codec/yaml.h"

/* An object from YAML, with its defaults, decoded. */
struct loaded {
    struct object_pool *pool;
    const struct object *object;
};

static struct loaded load(const struct kind *kind, const char *yaml)
{
    struct loaded out = { .pool = object_pool_new() };
    struct docs docs;
    struct doc doc;
    struct err err;
    AUTO_JSON_BUILD b;
    AUTO_BUF text = { 0 };
    json_build_init(&b);
    EXPECT_OK(yaml_read(str_of(yaml), &docs, NULL, &err), err);
    json_mut *root = json_copy(&b, docs.items[0].root);
    schema_default(kind->schema, &b, root);
    json_write_mut(root, &text);
    EXPECT_OK(json_read(buf_str(&text), &doc, &err), err);
    EXPECT_OK(object_decode(out.pool, kind, doc.root, &out.object, &err), err);
    doc_done(&doc);
    docs_done(&docs);
    return out;
}

static void loaded_done(struct loaded *l)
{
    object_unref(l->object);
    object_pool_free(l->pool);
}

static void expect_pool_hash(const char *meta, const char *spec, const char *want)
{
    char got[HASH_TEXT_MAX];
    AUTO_BUF yaml = { 0 };
    buf_addf(&yaml,
             "{metadata: {name: a}, spec: {template: {metadata: {%s}, spec: {requirements: "
             "[], %s}}}}",
             meta, spec);
    struct loaded l = load(&nodepool_kind, buf_str(&yaml).p);
    hash_format(nodepool_hash(nodepool_of(l.object)), got);
    EXPECT_Z(got, want);
    loaded_done(&l);
}

#define EC2_DEFAULT "nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}"

/* Seen on NodePools in public manifests. */
TEST(nodepool_hash_is_the_one_that_karpenter_writes)
{
    expect_pool_hash("",
                     "nodeClassRef: {group: eks.amazonaws.com, kind: NodeClass, name: default}, "
                     "terminationGracePeriod: 24h, expireAfter: 336h",
                     "4012513481623584108");
    expect_pool_hash("", EC2_DEFAULT ", expireAfter: 720h", "6821555240594823858");
}

TEST(nodepool_hash_covers_labels_and_taints)
{
    expect_pool_hash("labels: {team: a}",
                     EC2_DEFAULT ", expireAfter: 720h, "
                                 "taints: [{key: dedicated, value: gpu, effect: NoSchedule}]",
                     "13808355825091930806");
}

TEST(nodepool_hash_of_never_leaves_expiry_out)
{
    expect_pool_hash("", EC2_DEFAULT ", expireAfter: Never", "17369979337536258260");
}

TEST(nodepool_hash_takes_defaults_and_other_spellings_for_the_same)
{
    expect_pool_hash("", EC2_DEFAULT, "6821555240594823858");
    expect_pool_hash("labels: {}", EC2_DEFAULT ", expireAfter: 719h60m, taints: []",
                     "6821555240594823858");
}

static uint64_t pool_hash(const char *patch)
{
    AUTO_BUF yaml = { 0 };
    buf_addf(&yaml, "{metadata: {name: a}, spec: {%s}}", patch);
    struct loaded l = load(&nodepool_kind, buf_str(&yaml).p);
    uint64_t hash = nodepool_hash(nodepool_of(l.object));
    loaded_done(&l);
    return hash;
}

#define POOL(meta, spec)                                                                           \
    "template: {metadata: {" meta "}, spec: {requirements: [], " EC2_DEFAULT ", " spec "}}"

TEST(nodepool_hash_changes_with_all_that_makes_nodes_drift)
{
    const char *pools[] = {
        POOL("", ""),
        POOL("labels: {a: b}", ""),
        POOL("annotations: {a: b}", ""),
        POOL("", "taints: [{key: a, effect: NoSchedule}]"),
        POOL("", "taints: [{key: a, effect: NoExecute}]"),
        POOL("", "startupTaints: [{key: a, effect: NoSchedule}]"),
        POOL("", "terminationGracePeriod: 0s"),
        POOL("", "terminationGracePeriod: 1s"),
        POOL("", "expireAfter: 0s"),
        POOL("", "expireAfter: Never"),
    };
    for (size_t i = 0; i < KV_COUNT_OF(pools); i++) {
        for (size_t j = 0; j < i; j++)
            EXPECT_TRUE(pool_hash(pools[i]) != pool_hash(pools[j]));
    }
}

TEST(nodepool_hash_does_not_change_with_requirements_limits_or_disruption)
{
    EXPECT_TRUE(pool_hash(POOL("", "")) ==
                pool_hash("limits: {cpu: 5}, weight: 3, disruption: {consolidateAfter: Never}, "
                          "template: {spec: {" EC2_DEFAULT
                          ", requirements: [{key: a, operator: Exists}]}}"));
}

TEST(nodepool_hash_takes_taints_and_labels_as_sets)
{
    EXPECT_TRUE(
        pool_hash(POOL("labels: {a: x, b: z}", "taints: [{key: a, effect: NoSchedule}, {key: "
                                               "b, effect: NoExecute}]")) ==
        pool_hash(POOL("labels: {b: z, a: x}", "taints: [{key: b, effect: NoExecute}, {key: "
                                               "a, effect: NoSchedule}]")));
}

/* --- EC2NodeClass --- */

static uint64_t class_hash_with(const char *spec, const char *ca_bundle)
{
    AUTO_BUF yaml = { 0 };
    buf_addf(&yaml, "{metadata: {name: a}, spec: {%s}}", spec);
    struct loaded l = load(&ec2nodeclass_kind, buf_str(&yaml).p);
    uint64_t hash = ec2nodeclass_hash(ec2nodeclass_of(l.object), str_of(ca_bundle));
    loaded_done(&l);
    return hash;
}

static uint64_t class_hash(const char *spec)
{
    return class_hash_with(spec, "");
}

#define CLASS(x) "amiSelectorTerms: [{alias: al2023@latest}], " x

/* The annotation outlives the program: if one of these fails, NODECLASS_HASH_VERSION must
 * change. */
TEST(nodeclass_hash_is_the_same_in_every_release)
{
    char got[HASH_TEXT_MAX];
    hash_format(class_hash(CLASS("role: NodeRole")), got);
    EXPECT_Z(got, "16782476887615241399");
    hash_format(class_hash(CLASS("role: NodeRole, tags: {team: a}, userData: 'echo hello', "
                                 "detailedMonitoring: true, kubelet: {maxPods: 58}, "
                                 "blockDeviceMappings: [{deviceName: /dev/xvda, rootVolume: true, "
                                 "ebs: {volumeSize: 100Gi, volumeType: gp3, iops: 3000}}], "
                                 "networkInterfaces: [{networkCardIndex: 0, deviceIndex: 0, "
                                 "interfaceType: interface}]")),
                got);
    EXPECT_Z(got, "4324167999655057341");
}

TEST(nodeclass_hash_changes_with_what_a_running_instance_cannot)
{
    const char *classes[] = {
        CLASS(""),
        CLASS("role: a"),
        CLASS("instanceProfile: a"),
        CLASS("associatePublicIPAddress: true"),
        CLASS("associatePublicIPAddress: false"),
        CLASS("userData: a"),
        CLASS("tags: {a: b}"),
        CLASS("tags: {b: a}"),
        CLASS("kubelet: {maxPods: 5}"),
        CLASS("kubelet: {maxPods: 6}"),
        CLASS("blockDeviceMappings: [{deviceName: a}]"),
        CLASS("blockDeviceMappings: [{deviceName: a}, {deviceName: a}]"),
        CLASS("blockDeviceMappings: [{deviceName: a, ebs: {volumeSize: 1Gi}}]"),
        CLASS("instanceStorePolicy: RAID0"),
        CLASS("networkInterfaces: [{networkCardIndex: 0, deviceIndex: 0, interfaceType: "
              "interface}]"),
        CLASS("detailedMonitoring: true"),
        CLASS("metadataOptions: {httpTokens: optional}"),
        CLASS("connectionTracking: {udpTimeout: 30}"),
        CLASS("context: a"),
        CLASS("cpuOptions: {nestedVirtualization: enabled}"),
        CLASS("placementGroupSelector: {name: a}"),
        CLASS("amiFamily: Custom"),
        "amiSelectorTerms: [{alias: al2@latest}]",
    };
    for (size_t i = 0; i < KV_COUNT_OF(classes); i++) {
        for (size_t j = 0; j < i; j++)
            EXPECT_TRUE(class_hash(classes[i]) != class_hash(classes[j]));
    }
    EXPECT_TRUE(class_hash_with(CLASS(""), "PEM") != class_hash(CLASS("")));
}

TEST(nodeclass_hash_does_not_change_with_what_terms_resolve_to)
{
    EXPECT_TRUE(class_hash(CLASS("")) ==
                class_hash("amiSelectorTerms: [{id: ami-1}], amiFamily: AL2023, ipPrefixCount: 3, "
                           "subnetSelectorTerms: [{id: subnet-1}], securityGroupSelectorTerms: "
                           "[{id: sg-1}], capacityReservationSelectorTerms: [{id: cr-1}]"));
}

TEST(nodeclass_hash_takes_lists_as_sets_and_zero_as_absent)
{
    EXPECT_TRUE(class_hash(CLASS("blockDeviceMappings: [{deviceName: a}, {deviceName: b}]")) ==
                class_hash(CLASS("blockDeviceMappings: [{deviceName: b}, {deviceName: a}]")));
    EXPECT_TRUE(class_hash(CLASS("")) ==
                class_hash(CLASS("tags: {}, context: '', blockDeviceMappings: []")));
    EXPECT_TRUE(class_hash(CLASS("kubelet: {maxPods: 5, podsPerCore: 2}")) ==
                class_hash(CLASS("kubelet: {podsPerCore: 2, maxPods: 5}")));
    EXPECT_TRUE(class_hash(CLASS("")) ==
                class_hash(CLASS("metadataOptions: {httpTokens: required}")));
}

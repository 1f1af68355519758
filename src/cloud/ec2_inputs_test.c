#include "cloud/ec2_inputs.h"

#include "api/kind_test.h"

/* A class with everything set. Tests exchange one piece of its text for another. */
static const char class_text[] =
    "apiVersion: karpenter.k8s.aws/v1\n"
    "kind: EC2NodeClass\n"
    "metadata: {name: default, uid: u-1, labels: {l: v}}\n"
    "spec:\n"
    "  amiFamily: AL2023\n"
    "  amiSelectorTerms: [{id: ami-1}]\n"
    "  subnetSelectorTerms: [{id: subnet-1}]\n"
    "  securityGroupSelectorTerms: [{id: sg-1}]\n"
    "  capacityReservationSelectorTerms: [{id: cr-1}]\n"
    "  role: node-role\n"
    "  tags: {team: a}\n"
    "  userData: 'echo hello'\n"
    "  detailedMonitoring: true\n"
    "  context: ctx-1\n"
    "  associatePublicIPAddress: true\n"
    "  metadataOptions: {httpTokens: required}\n"
    "  kubelet: {maxPods: 42}\n"
    "  instanceStorePolicy: RAID0\n"
    "  blockDeviceMappings:\n"
    "  - {deviceName: /dev/xvda, ebs: {volumeSize: 100Gi}}\n"
    "  - {deviceName: /dev/xvdb, ebs: {volumeSize: 50Gi}}\n"
    "  networkInterfaces:\n"
    "  - {networkCardIndex: 0, deviceIndex: 0, interfaceType: interface}\n"
    "  cpuOptions: {nestedVirtualization: enabled}\n"
    "  connectionTracking: {udpTimeout: 45}\n"
    "status:\n"
    "  instanceProfile: profile-1\n"
    "  subnets:\n"
    "  - {id: subnet-1, zone: us-east-1a, zoneID: use1-az1}\n"
    "  - {id: subnet-2, zone: us-east-1b, zoneID: use1-az2}\n"
    "  securityGroups: [{id: sg-1, name: nodes}]\n"
    "  amis:\n"
    "  - id: ami-1\n"
    "    name: image\n"
    "    deprecated: false\n"
    "    requirements:\n"
    "    - {key: kubernetes.io/arch, operator: In, values: [amd64]}\n"
    "  capacityReservations:\n"
    "  - id: cr-1\n"
    "    availabilityZone: us-east-1a\n"
    "    endTime: '2030-01-01T00:00:00Z'\n"
    "    instanceMatchCriteria: open\n"
    "    instanceType: m5.large\n"
    "    interruptible: false\n"
    "    ownerID: '012345678901'\n"
    "    reservationType: default\n"
    "    state: active\n";

/* `from`, which must be there, becomes `to`. */
static uint64_t hash_with(const char *from, const char *to)
{
    const char *at = strstr(class_text, from);
    EXPECT_TRUE(at != NULL);
    AUTO_BUF text = { 0 };
    buf_add(&text, (struct str){ class_text, (size_t)(at - class_text) });
    buf_addz(&text, to);
    buf_addz(&text, at + strlen(from));
    SAMPLE s;
    sample_decode(&s, text.p);
    return ec2_inputs_hash(&(struct ec2_inputs){ .class_ = ec2nodeclass_of(s.object) });
}

static uint64_t hash_plain(void)
{
    return hash_with("", "");
}

struct edit {
    const char *from, *to;
};

TEST(ec2_inputs_every_field_that_instance_types_depend_on_changes_the_hash)
{
    static const struct edit edits[] = {
        { "name: default", "name: other" },
        { "uid: u-1", "uid: u-2" },
        { "labels: {l: v}", "annotations: {karve.io/prefix-delegation: 'true'}" },
        { "amiFamily: AL2023", "amiFamily: Bottlerocket" },
        { "kubelet: {maxPods: 42}", "kubelet: {maxPods: 43}" },
        { "kubelet: {maxPods: 42}", "kubelet: {}" },
        { "  kubelet: {maxPods: 42}\n", "" },
        { "  instanceStorePolicy: RAID0\n", "" },
        { "volumeSize: 100Gi", "volumeSize: 101Gi" },
        { "deviceName: /dev/xvda", "deviceName: /dev/xvdc" },
        { "deviceName: /dev/xvda", "rootVolume: true, deviceName: /dev/xvda" },
        { "  - {deviceName: /dev/xvdb, ebs: {volumeSize: 50Gi}}\n", "" },
        { "networkCardIndex: 0", "networkCardIndex: 1" },
        { "deviceIndex: 0", "deviceIndex: 1" },
        { "interfaceType: interface", "interfaceType: efa-only" },
        { "nestedVirtualization: enabled", "nestedVirtualization: disabled" },
        { "  cpuOptions: {nestedVirtualization: enabled}\n", "" },
        { "udpTimeout: 45", "udpTimeout: 46" },
        { "udpTimeout: 45", "udpTimeout: 45, udpStreamTimeout: 90" },
        { "udpTimeout: 45", "udpTimeout: 45, tcpEstablishedTimeout: 90" },
        { "  connectionTracking: {udpTimeout: 45}\n", "" },
        { "{id: subnet-1, zone", "{id: subnet-3, zone" },
        { "zone: us-east-1a", "zone: us-east-1c" },
        { "zoneID: use1-az1", "zoneID: use1-az6" },
        { "  - {id: subnet-2, zone: us-east-1b, zoneID: use1-az2}\n", "" },
        { "- id: ami-1", "- id: ami-2" },
        { "values: [amd64]", "values: [arm64]" },
        { "key: kubernetes.io/arch", "key: kubernetes.io/os" },
        { "- id: cr-1", "- id: cr-2" },
        { "availabilityZone: us-east-1a", "availabilityZone: us-east-1b" },
        { "instanceMatchCriteria: open", "instanceMatchCriteria: targeted" },
        { "instanceType: m5.large", "instanceType: m5.xlarge" },
        { "interruptible: false", "interruptible: true" },
        { "ownerID: '012345678901'", "ownerID: '112345678901'" },
        { "reservationType: default", "reservationType: capacity-block" },
        { "state: active", "state: expiring" },
    };
    uint64_t hashes[KV_COUNT_OF(edits) + 1];
    hashes[0] = hash_plain();
    for (size_t i = 0; i < KV_COUNT_OF(edits); i++) {
        hashes[i + 1] = hash_with(edits[i].from, edits[i].to);
        for (size_t j = 0; j <= i; j++)
            EXPECT_TRUE(hashes[j] != hashes[i + 1]);
    }
}

TEST(ec2_inputs_fields_that_no_instance_type_depends_on_leave_the_hash)
{
    static const struct edit edits[] = {
        { "labels: {l: v}", "labels: {l: w}, generation: 7, resourceVersion: '9'" },
        { "amiSelectorTerms: [{id: ami-1}]", "amiSelectorTerms: [{id: ami-7}]" },
        { "  amiFamily: AL2023\n  amiSelectorTerms: [{id: ami-1}]",
          "  amiSelectorTerms: [{alias: al2023@latest}]" }, /* the same family, said otherwise */
        { "subnetSelectorTerms: [{id: subnet-1}]", "subnetSelectorTerms: [{id: subnet-7}]" },
        { "securityGroupSelectorTerms: [{id: sg-1}]", "securityGroupSelectorTerms: [{id: sg-7}]" },
        { "capacityReservationSelectorTerms: [{id: cr-1}]",
          "capacityReservationSelectorTerms: [{id: cr-7}]" },
        { "role: node-role", "instanceProfile: other" },
        { "tags: {team: a}", "tags: {team: b}" },
        { "echo hello", "echo goodbye" }, /* what it reserves is passed by itself */
        { "detailedMonitoring: true", "detailedMonitoring: false" },
        { "context: ctx-1", "context: ctx-2" },
        { "associatePublicIPAddress: true", "associatePublicIPAddress: false" },
        { "httpTokens: required", "httpTokens: optional" },
        { "instanceProfile: profile-1", "instanceProfile: profile-2" },
        { "securityGroups: [{id: sg-1, name: nodes}]", "securityGroups: [{id: sg-2, name: x}]" },
        { "name: image", "name: renamed" },
        { "deprecated: false", "deprecated: true" },
        { "2030-01-01", "2031-01-01" },
        { "  - {id: subnet-1, zone: us-east-1a, zoneID: use1-az1}\n"
          "  - {id: subnet-2, zone: us-east-1b, zoneID: use1-az2}\n",
          "  - {id: subnet-2, zone: us-east-1b, zoneID: use1-az2}\n"
          "  - {id: subnet-1, zone: us-east-1a, zoneID: use1-az1}\n" },
    };
    uint64_t plain = hash_plain();
    for (size_t i = 0; i < KV_COUNT_OF(edits); i++)
        EXPECT_TRUE(hash_with(edits[i].from, edits[i].to) == plain);
}

TEST(ec2_inputs_reservations_in_user_data_and_the_placement_group_are_inputs)
{
    SAMPLE s;
    sample_decode(&s, class_text);
    static const struct str_pair cpu1 = { { "cpu", 3 }, { "1", 1 } },
                                 cpu2 = { { "cpu", 3 }, { "2", 1 } };
    const struct str_map one = { &cpu1, 1 }, two = { &cpu2, 1 };
    const struct ec2nodeclass *c = ec2nodeclass_of(s.object);
    const struct ec2_inputs all[] = {
        { .class_ = c },
        { .class_ = c, .toml_kube_reserved = one },
        { .class_ = c, .toml_kube_reserved = two },
        { .class_ = c, .toml_system_reserved = one },
        { .class_ = c, .toml_eviction_hard = one },
        { .class_ = c, .placement_group = { .id = STR("pg-1") } },
        { .class_ = c, .placement_group = { .id = STR("pg-2") } },
        { .class_ = c, .placement_group = { .id = STR("pg-1"), .strategy = STR("cluster") } },
        { .class_ = c, .placement_group = { .id = STR("pg-1"), .partition_count = 3 } },
        { .class_ = c, .placement_group = { .id = STR("pg-1"), .partition_count = 7 } },
    };
    for (size_t i = 0; i < KV_COUNT_OF(all); i++)
        for (size_t j = 0; j < KV_COUNT_OF(all); j++)
            EXPECT_EQ(ec2_inputs_hash(&all[i]) == ec2_inputs_hash(&all[j]), i == j);
}

/* Node: what is decoded from what a kubelet writes, and what a write is checked for. */
#include "api/node.h"
#include "api/kind_test.h"

static const char node_text[] =
    "apiVersion: v1\n"
    "kind: Node\n"
    "metadata:\n"
    "  name: ip-10-0-1-7.ec2.internal\n"
    "  labels: {kubernetes.io/hostname: ip-10-0-1-7, topology.kubernetes.io/zone: us-east-1a}\n"
    "spec:\n"
    "  podCIDR: 10.42.0.0/24\n"
    "  podCIDRs: [10.42.0.0/24]\n"
    "  providerID: aws:///us-east-1a/i-0abc\n"
    "  unschedulable: true\n"
    "  taints:\n"
    "  - {key: karpenter.sh/disrupted, effect: NoSchedule}\n"
    "  - {key: dedicated, value: web, effect: NoExecute, timeAdded: '2026-01-02T03:04:05Z'}\n"
    "status:\n"
    "  capacity: {cpu: '4', memory: 16Gi, pods: '58'}\n"
    "  allocatable: {cpu: 3920m, memory: 15Gi, pods: 58}\n"
    "  conditions:\n"
    "  - {type: MemoryPressure, status: 'False', lastHeartbeatTime: '2026-01-02T03:04:05Z'}\n"
    "  - type: Ready\n"
    "    status: 'True'\n"
    "    lastHeartbeatTime: '2026-01-02T03:04:05Z'\n"
    "    lastTransitionTime: '2026-01-02T03:00:00Z'\n"
    "    reason: KubeletReady\n"
    "    message: kubelet is posting ready status\n"
    "  addresses:\n"
    "  - {type: InternalIP, address: 10.0.1.7}\n"
    "  - {type: InternalIP, address: 'fd00::7'}\n"
    "  - {type: Hostname, address: ip-10-0-1-7}\n"
    "  daemonEndpoints: {kubeletEndpoint: {Port: 10250}}\n"
    "  nodeInfo:\n"
    "    machineID: m\n"
    "    systemUUID: u\n"
    "    bootID: b\n"
    "    kernelVersion: 6.1.115\n"
    "    osImage: Amazon Linux 2023\n"
    "    containerRuntimeVersion: containerd://2.0.2\n"
    "    kubeletVersion: v1.33.1\n"
    "    kubeProxyVersion: ''\n"
    "    operatingSystem: linux\n"
    "    architecture: arm64\n"
    "  images: [{names: ['registry.example.com/a:1'], sizeBytes: 12345}]\n"
    "  volumesInUse: [kubernetes.io/csi/ebs.csi.aws.com^vol-1]\n"
    "  volumesAttached: [{name: kubernetes.io/csi/ebs.csi.aws.com^vol-1, devicePath: ''}]\n"
    "  runtimeHandlers: [{name: '', features: {recursiveReadOnlyMounts: true}}]\n"
    "  features: {supplementalGroupsPolicy: true}\n";

TEST(node_decodes_what_the_kubelet_reports)
{
    SAMPLE s;
    sample_decode(&s, node_text);
    const struct node *node = node_of(s.object);

    EXPECT_STR(sample_problems(&s), "");
    EXPECT_STR(node->spec.provider_id, "aws:///us-east-1a/i-0abc");
    EXPECT_TRUE(node->spec.unschedulable);
    EXPECT_EQ(node->spec.taints.count, 2);
    EXPECT_EQ(node->spec.taints.items[1].effect, EFFECT_NO_EXECUTE);
    EXPECT_EQ(node->status.capacity.count, 3);
    EXPECT_STR(node->status.allocatable.items[0].name, "cpu");
    EXPECT_EQ(quantity_milli(node->status.allocatable.items[0].amount), 3920);
    EXPECT_EQ(quantity_units(node->status.allocatable.items[2].amount), 58);
    EXPECT_EQ(node->status.conditions.count, 2);
    EXPECT_STR(node->status.maybe_info->architecture, "arm64");
    EXPECT_STR(node->status.maybe_info->kubelet_version, "v1.33.1");
    EXPECT_EQ(node->status.volumes_in_use.count, 1);
    EXPECT_STR(node->status.volumes_attached.items[0].name,
               "kubernetes.io/csi/ebs.csi.aws.com^vol-1");
}

TEST(node_answers_what_callers_ask)
{
    SAMPLE s;
    sample_decode(&s, node_text);
    const struct node *node = node_of(s.object);

    EXPECT_TRUE(node_is_ready(node));
    EXPECT_STR(node_condition(node, STR("Ready"))->reason, "KubeletReady");
    EXPECT_EQ(node_condition(node, STR("Ready"))->transition_us, 1767322800 * INT64_C(1000000));
    EXPECT_TRUE(node_condition(node, STR("DiskPressure")) == NULL);
    EXPECT_STR(node_hostname(node), "ip-10-0-1-7");
    EXPECT_STR(node_address(node, STR("InternalIP")), "10.0.1.7");
    EXPECT_TRUE(node_address(node, STR("ExternalIP")).p == NULL);
    EXPECT_TRUE(node_taint(node, STR("dedicated"), EFFECT_ANY) != NULL);
    EXPECT_TRUE(node_taint(node, STR("dedicated"), EFFECT_NO_SCHEDULE) == NULL);
}

TEST(node_without_a_report_is_not_ready_and_hostname_is_its_name)
{
    SAMPLE s;
    sample_decode(&s, "{apiVersion: v1, kind: Node, metadata: {name: n1}}");
    const struct node *node = node_of(s.object);

    EXPECT_FALSE(node_is_ready(node));
    EXPECT_STR(node_hostname(node), "n1");
    EXPECT_TRUE(node->status.maybe_info == NULL);
}

TEST(node_fields_select_by_cordon_and_provider_id)
{
    SAMPLE s, bare;
    sample_decode(&s, node_text);
    sample_decode(&bare, "{apiVersion: v1, kind: Node, metadata: {name: n1}}");

    EXPECT_STR(object_field(s.object, STR("spec.unschedulable")), "true");
    EXPECT_STR(object_field(s.object, STR("spec.providerID")), "aws:///us-east-1a/i-0abc");
    EXPECT_STR(object_field(bare.object, STR("spec.unschedulable")), "false");
    EXPECT_TRUE(object_field(bare.object, STR("spec.providerID")).p != NULL);
    EXPECT_TRUE(object_field(s.object, STR("spec.podCIDR")).p == NULL);
}

/* A heartbeat every ten seconds from each of ten thousand nodes must not look like a change. */
TEST(node_heartbeats_are_not_kept)
{
    SAMPLE a, b;
    sample_decode(&a,
                  "{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {conditions: "
                  "[{type: Ready, status: 'True', lastHeartbeatTime: '2026-01-02T03:04:05Z'}]}}");
    sample_decode(&b,
                  "{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {conditions: "
                  "[{type: Ready, status: 'True', lastHeartbeatTime: '2026-01-02T03:04:15Z'}]}}");

    EXPECT_TRUE(schema_equal(node_kind.schema, a.object, b.object));
}

TEST(node_unknown_fields_are_found_with_the_nearest_name)
{
    expect_problem(
        "{apiVersion: v1, kind: Node, metadata: {name: n1}, spec: {unscheduleable: true}}",
        "spec.unscheduleable: unknown field, did you mean \"unschedulable\"?");
    expect_problem(
        "{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {nodeInfo: {arch: x}}}",
        "status.nodeInfo.arch: unknown field");
}

TEST(node_taint_appears_once_per_effect)
{
    expect_problem("{apiVersion: v1, kind: Node, metadata: {name: n1}, spec: {taints: [{key: a, "
                   "effect: NoSchedule}, {key: a, effect: NoExecute}, {key: a, value: x, effect: "
                   "NoSchedule}]}}",
                   "spec.taints[2]: duplicate of taint 0");
    expect_problem("{apiVersion: v1, kind: Node, metadata: {name: n1}, spec: {taints: [{key: a, "
                   "effect: NoRun}]}}",
                   "spec.taints[0].effect: expected one of \"NoSchedule\"");
}

TEST(node_resources_are_not_negative)
{
    expect_problem(
        "{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {capacity: {cpu: -1}}}",
        "status.capacity[\"cpu\"]: is negative");
}

TEST(node_provider_id_and_pod_ranges_are_set_once)
{
    const char *bare = "{apiVersion: v1, kind: Node, metadata: {name: n1}, spec: {}}";
    const char *set =
        "{apiVersion: v1, kind: Node, metadata: {name: n1}, spec: {providerID: 'a:///1', "
        "podCIDRs: [10.0.0.0/24]}}";
    const char *other = "{apiVersion: v1, kind: Node, metadata: {name: n1}, spec: {providerID: "
                        "'a:///2', podCIDRs: [10.0.1.0/24]}}";

    expect_change(bare, set, "");
    expect_change(set, set, "");
    expect_change(set, other, "spec: providerID can not be changed");
    expect_change(set, other, "spec: podCIDR and podCIDRs can not be changed");
    expect_change(set, bare, "spec: providerID can not be changed");
}

TEST(node_with_many_taints_is_checked_in_time)
{
    AUTO_BUF text = { 0 };
    buf_addz(&text, "apiVersion: v1\nkind: Node\nmetadata: {name: node-1}\nspec: {taints: [");
    for (int i = 0; i < 100000; i++)
        buf_addf(&text, "{key: k%d, effect: NoSchedule}, ", i);
    buf_addz(&text, "{key: k7, effect: NoExecute}, {key: k7, effect: NoSchedule}]}\n");
    expect_problem(text.p, "spec.taints[100001]: duplicate of taint 7");
}

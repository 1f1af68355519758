#include "api/labels.h"
#include "api/node.h"
#include "cloud/instance_types_testing.h"
#include "cloud/kwok.h"
#include "compat/predict_testing.h"

TEST(machine_of_a_row_has_the_type_s_labels_and_the_row_s_cpus)
{
    DRAFTS d = { 0 };
    struct instance_type_draft *t = draft_type(&d, "g5.xlarge",
                                               "kubernetes.io/arch=amd64 kubernetes.io/os=linux "
                                               "karpenter.k8s.aws/instance-cpu-manufacturer=amd "
                                               "karpenter.k8s.aws/instance-gpu-name=a10g "
                                               "karpenter.k8s.aws/instance-gpu-manufacturer=nvidia",
                                               "z1/spot=1 z2/spot=1");
    t->capacity = draft_resources(&d.arena, "cpu=4 memory=8Gi");
    draft_offering_at(t, 1)->capacity_override = draft_resources(&d.arena, "cpu=8");
    AUTO_INSTANCE_TYPES types = drafts_build(&d);
    EXPECT_EQ(types->row_count, 2);

    struct machine_kind m, override;
    machine_of_type(types, 0, &m);
    EXPECT_STR(m.instance_type, "g5.xlarge");
    EXPECT_STR(m.architecture, "amd64");
    EXPECT_STR(m.os, "linux");
    EXPECT_STR(m.image, "");
    EXPECT_STR(m.cpu_manufacturer, "amd");
    EXPECT_STR(m.gpu_name, "a10g");
    EXPECT_STR(m.gpu_manufacturer, "nvidia");
    EXPECT_STR(m.accelerator_name, "");
    EXPECT_EQ(m.cpu, 4);
    machine_of_type(types, types->type_count, &override);
    EXPECT_STR(override.instance_type, "g5.xlarge");
    EXPECT_STR(override.gpu_name, "a10g");
    EXPECT_EQ(override.cpu, 8);
}

TEST(label_with_several_values_says_nothing)
{
    DRAFTS d = { 0 };
    draft_type(&d, "a", "kubernetes.io/arch=amd64,arm64", "z1/spot=1");
    AUTO_INSTANCE_TYPES types = drafts_build(&d);
    struct machine_kind m;
    machine_of_type(types, 0, &m);
    EXPECT_STR(m.architecture, "");
    EXPECT_EQ(m.cpu, 0);
}

TEST(types_of_kwok_are_predicted_by_their_architecture_alone)
{
    WORLD w;
    world_init(&w);
    AUTO(predictor) predictor = predictor_new((struct predictor_options){ 0 });
    const struct instance_types *types = kwok_types();
    for (uint32_t t = 0; t < types->type_count; t++) {
        struct machine_kind m;
        machine_of_type(types, t, &m);
        EXPECT_TRUE(m.cpu > 0);
        const struct feature_set *set = world_predict(&w, predictor, &m);
        bool described = str_eqz(m.os, "linux");
        EXPECT_EQ(feature_set_count(set), described ? 1 : 0);
        EXPECT_TRUE(feature_set_others_unknown(set));
        if (!described)
            continue;
        bool arm = str_eqz(m.architecture, "arm64");
        EXPECT_EQ(world_has(&w, set, "cpu.cpuid", "ASIMD"), arm ? 'y' : 'n');
        EXPECT_EQ(world_has(&w, set, "cpu.cpuid", "X86_64_V1"), arm ? 'n' : 'y');
    }
}

TEST(machine_of_a_node_has_its_labels_and_capacity)
{
    SAMPLE s;
    sample_decode(&s, "{apiVersion: v1, kind: Node, metadata: {name: a, labels: {"
                      "node.kubernetes.io/instance-type: trn1.2xlarge, kubernetes.io/arch: amd64, "
                      "kubernetes.io/os: linux, karpenter.k8s.aws/instance-accelerator-name: "
                      "trainium}}, status: {capacity: {cpu: '8'}}}");
    struct machine_kind m;
    machine_of_node(node_of(s.object), &m);
    EXPECT_STR(m.instance_type, "trn1.2xlarge");
    EXPECT_STR(m.architecture, "amd64");
    EXPECT_STR(m.os, "linux");
    EXPECT_STR(m.accelerator_name, "trainium");
    EXPECT_STR(m.gpu_name, "");
    EXPECT_STR(m.image, "");
    EXPECT_EQ(m.cpu, 8);
}

TEST(node_without_labels_has_what_the_kubelet_reports)
{
    SAMPLE s;
    sample_decode(&s, "{apiVersion: v1, kind: Node, metadata: {name: a}, status: {nodeInfo: "
                      "{architecture: arm64, operatingSystem: linux}}}");
    struct machine_kind m;
    machine_of_node(node_of(s.object), &m);
    EXPECT_STR(m.instance_type, "");
    EXPECT_STR(m.architecture, "arm64");
    EXPECT_STR(m.os, "linux");
    EXPECT_EQ(m.cpu, 0);
}

/* Features of nodes, and the groups that rules make of them. */
#include "api/nfd.h"
#include "api/kind_test.h"

static const char feature_text[] =
    "{\"apiVersion\":\"nfd.k8s-sigs.io/v1alpha1\",\"kind\":\"NodeFeature\",\n"
    " \"metadata\":{\"name\":\"n1\",\"namespace\":\"node-feature-discovery\",\n"
    "  \"labels\":{\"nfd.node.kubernetes.io/node-name\":\"n1\"}},\n"
    " \"spec\":{\"labels\":{\"x.example.com/fast\":\"true\"},\"features\":{\n"
    "  \"flags\":{\"kernel.loadedmodule\":{\"elements\":{\"veth\":{}}},\n"
    "    \"cpu.cpuid\":{\"elements\":{\"AVX2\":{},\"AESNI\":{}}}},\n"
    "  \"attributes\":{\"kernel.version\":{\"elements\":{\"full\":\"6.1.115\",\"major\":\"6\"}},\n"
    "    \"kernel.config\":{\"elements\":{\"KVM\":\"m\",\"BPF\":\"y\"}},\n"
    "    \"system.name\":{\"elements\":{\"nodename\":\"n1\"}}},\n"
    "  \"instances\":{\"pci.device\":{\"elements\":[\n"
    "    {\"attributes\":{\"class\":\"0302\",\"vendor\":\"10de\",\"device\":\"27b8\"}},\n"
    "    {\"attributes\":{\"class\":\"0200\",\"vendor\":\"1d0f\"}}]}}}}}";

TEST(features_decode_flags_attributes_and_instances)
{
    SAMPLE s;
    sample_decode(&s, feature_text);
    const struct node_feature *nf = node_feature_of(s.object);
    const struct features *f = &nf->spec.features;

    EXPECT_STR(sample_problems(&s), "");
    EXPECT_STR(node_feature_node(nf), "n1");
    EXPECT_STR(str_map_get(&nf->spec.labels, STR("x.example.com/fast")), "true");
    EXPECT_EQ(features_flags(f, STR("cpu.cpuid"))->elements.count, 2);
    EXPECT_STR(features_flags(f, STR("cpu.cpuid"))->elements.items[0].key, "AESNI");
    EXPECT_STR(str_map_get(features_attributes(f, STR("kernel.version")), STR("major")), "6");
    EXPECT_EQ(features_instances(f, STR("pci.device"))->elements.count, 2);
    EXPECT_STR(str_map_get(&features_instances(f, STR("pci.device"))->elements.items[0].attributes,
                           STR("vendor")),
               "10de");
    EXPECT_TRUE(features_flags(f, STR("cpu.none")) == NULL);
    EXPECT_TRUE(features_attributes(f, STR("cpu.cpuid")) == NULL);
    EXPECT_TRUE(features_instances(f, STR("usb.device")) == NULL);
}

TEST(features_find_the_kernel_configuration_where_they_were_put)
{
    SAMPLE s, bare;
    sample_decode(&s, feature_text);
    sample_decode(&bare,
                  "{apiVersion: nfd.k8s-sigs.io/v1alpha1, kind: NodeFeature, metadata: {name: "
                  "n1, labels: {nfd.node.kubernetes.io/node-name: n1}}, spec: {features: {}}}");
    const struct features *f = &node_feature_of(s.object)->spec.features;

    EXPECT_STR(str_map_get(features_attributes(f, STR("kernel.config")), STR("KVM")), "m");
    EXPECT_EQ(f->attributes.count, 2);
    EXPECT_TRUE(features_attributes(&node_feature_of(bare.object)->spec.features,
                                    STR("kernel.config")) == NULL);
}

/* Thousands of nodes with one kernel: its configuration is kept once. */
TEST(features_of_equal_nodes_are_kept_once)
{
    SAMPLE s;
    AUTO_BUF text = { 0 };
    buf_addz(&text, "{\"apiVersion\":\"nfd.k8s-sigs.io/v1alpha1\",\"kind\":\"NodeFeature\","
                    "\"metadata\":{\"name\":\"n\",\"labels\":{\"nfd.node.kubernetes.io/node-name\":"
                    "\"n\"}},\"spec\":{\"features\":{\"attributes\":{\"system.name\":{\"elements\":"
                    "{\"nodename\":\"n\"}},\"kernel.config\":{\"elements\":{");
    for (int i = 0; i < 5000; i++)
        buf_addf(&text, "%s\"OPTION_%d\":\"y\"", i ? "," : "", i);
    buf_addz(&text, "}}}}}}");
    sample_decode(&s, text.p);

    EXPECT_STR(sample_problems(&s), "");
    EXPECT_TRUE(object_bytes(s.object) < 2048);
    uint64_t shared = object_pool_stats(s.pool).shared_bytes;
    struct err err = { 0 };
    const struct object *second = NULL;
    EXPECT_OK(object_decode(s.pool, s.kind, s.docs.items[0].root, &second, &err), err);
    EXPECT_EQ(object_pool_stats(s.pool).shared_bytes, shared);
    object_unref(second);
}

TEST(features_without_a_node_name_are_of_no_use)
{
    expect_problem(
        "{apiVersion: nfd.k8s-sigs.io/v1alpha1, kind: NodeFeature, metadata: {name: n1}, "
        "spec: {features: {}}}",
        "warning: metadata.labels: nfd.node.kubernetes.io/node-name is missing");
    expect_problem(
        "{apiVersion: nfd.k8s-sigs.io/v1alpha1, kind: NodeFeature, metadata: {name: n1}, "
        "spec: {features: {flag: {}}}}",
        "spec.features.flag: unknown field, did you mean \"flags\"?");
    expect_problem(
        "{apiVersion: nfd.k8s-sigs.io/v1alpha1, kind: NodeFeature, metadata: {name: n1}, "
        "spec: {features: {attributes: {a.b: {elements: {x: 5}}}}}}",
        "spec.features.attributes[\"a.b\"].elements[\"x\"]: expected a string");
}

TEST(group_decodes_rules_and_members)
{
    SAMPLE s;
    sample_decode(&s, "apiVersion: nfd.k8s-sigs.io/v1alpha1\n"
                      "kind: NodeFeatureGroup\n"
                      "metadata: {name: amx, namespace: node-feature-discovery}\n"
                      "spec:\n"
                      "  featureGroupRules:\n"
                      "  - name: amx and a new kernel\n"
                      "    vars: {tier: fast}\n"
                      "    matchFeatures:\n"
                      "    - feature: cpu.cpuid\n"
                      "      matchExpressions: {AMXTILE: {op: Exists}, AMXBF16: {op: Exists}}\n"
                      "    - feature: kernel.version\n"
                      "      matchExpressions: {full: {op: Ge, value: ['5.15'], type: version}}\n"
                      "    - feature: kernel.loadedmodule\n"
                      "      matchName: {op: InRegexp, value: ['^nvidia']}\n"
                      "    matchAny:\n"
                      "    - matchFeatures: [{feature: pci.device}]\n"
                      "status: {nodes: [{name: n1}, {name: n2}]}\n");
    const struct node_feature_group *group = node_feature_group_of(s.object);

    EXPECT_STR(sample_problems(&s), "");
    EXPECT_EQ(group->spec.rules.count, 1);
    const struct feature_rule *rule = &group->spec.rules.items[0];
    EXPECT_STR(rule->name, "amx and a new kernel");
    EXPECT_STR(str_map_get(&rule->vars, STR("tier")), "fast");
    EXPECT_EQ(rule->terms.count, 3);
    EXPECT_STR(rule->terms.items[0].expressions.items[0].key, "AMXBF16");
    EXPECT_EQ(rule->terms.items[0].expressions.items[0].op, FEATURE_EXISTS);
    EXPECT_EQ(rule->terms.items[1].expressions.items[0].op, FEATURE_GE);
    EXPECT_STR(rule->terms.items[1].expressions.items[0].type, "version");
    EXPECT_EQ(rule->terms.items[2].maybe_name->op, FEATURE_IN_REGEXP);
    EXPECT_STR(rule->match_any.items[0].terms.items[0].feature, "pci.device");
    EXPECT_STR(group->status.nodes.items[1].name, "n2");
}

#define GROUP(expression_)                                                                         \
    "{apiVersion: nfd.k8s-sigs.io/v1alpha1, kind: NodeFeatureGroup, metadata: {name: g}, spec: "   \
    "{featureGroupRules: [{name: r, matchFeatures: [{feature: f, matchExpressions: {e: "           \
    "" expression_ "}}]}]}}"

/* Every operator with none, one, two and three operands. */
TEST(group_operators_take_the_operands_that_they_take)
{
    static const struct {
        const char *op;
        bool fine[4];
    } cases[] = {
        { "In", { false, true, true, true } },
        { "NotIn", { false, true, true, true } },
        { "InRegexp", { false, true, true, true } },
        { "Exists", { true, false, false, false } },
        { "DoesNotExist", { true, false, false, false } },
        { "Gt", { false, true, false, false } },
        { "Ge", { false, true, false, false } },
        { "Lt", { false, true, false, false } },
        { "Le", { false, true, false, false } },
        { "GtLt", { false, false, true, false } },
        { "GeLe", { false, false, true, false } },
        { "IsTrue", { true, false, false, false } },
        { "IsFalse", { true, false, false, false } },
    };
    static const char *const operands[] = { "[]", "['1']", "['1', '2']", "['1', '2', '3']" };

    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        for (size_t n = 0; n < 4; n++) {
            AUTO_BUF text = { 0 };
            buf_addf(&text, GROUP("{op: %s, value: %s}"), cases[i].op, operands[n]);
            SAMPLE s;
            sample_read(&s, text.p, NULL);
            EXPECT_EQ(s.report.error_count, cases[i].fine[n] ? 0 : 1);
        }
    }
}

TEST(group_finds_what_the_evaluation_would_trip_over)
{
    expect_problem(
        GROUP("{op: Exist}"),
        "spec.featureGroupRules[0].matchFeatures[0].matchExpressions[\"e\"].op: expected one");
    expect_problem(GROUP("{value: ['1']}"), ".op: required, missing");
    expect_problem(GROUP("{op: In, value: [5]}"), ".value[0]: expected a string");
    expect_problem(GROUP("{op: Gt, value: ['5.1']}"), "comparisons take integers");
    expect_fine(GROUP("{op: Gt, value: ['5.1'], type: version}"));
    expect_fine(GROUP("{op: Gt, value: ['v5.10.3-1-amd64+build.7'], type: version}"));
    expect_problem(GROUP("{op: Gt, value: ['6.1.115-126.197.amzn2023.x86_64'], type: version}"),
                   "comparisons take integers, or versions");
    expect_problem(GROUP("{op: Gt, value: ['1'], type: float}"), "type of a comparison");
    expect_problem(GROUP("{op: GtLt, value: ['5', '5']}"),
                   "the first value of a range must be less");
    expect_problem(GROUP("{op: InRegexp, value: ['a(b']}"), "InRegexp takes RE2");
    expect_problem(GROUP("{op: InRegexp, value: ['(a)\\1']}"), "InRegexp takes RE2");
}

TEST(group_needs_rules_with_names_and_features)
{
    expect_problem(
        "{apiVersion: nfd.k8s-sigs.io/v1alpha1, kind: NodeFeatureGroup, metadata: {name: "
        "g}, spec: {}}",
        "spec.featureGroupRules: required, missing");
    expect_problem(
        "{apiVersion: nfd.k8s-sigs.io/v1alpha1, kind: NodeFeatureGroup, metadata: {name: "
        "g}, spec: {featureGroupRules: [{matchFeatures: [{matchName: {op: Exists}}]}]}}",
        "spec.featureGroupRules[0].name: required, missing");
    expect_problem(
        "{apiVersion: nfd.k8s-sigs.io/v1alpha1, kind: NodeFeatureGroup, metadata: {name: "
        "g}, spec: {featureGroupRules: [{name: r, matchFeatures: [{matchName: {op: "
        "Exists}}]}]}}",
        "spec.featureGroupRules[0].matchFeatures[0].feature: required, missing");
    expect_problem(
        "{apiVersion: nfd.k8s-sigs.io/v1alpha1, kind: NodeFeatureGroup, metadata: {name: "
        "g}, spec: {featureGroupRules: []}, status: {nodes: [{name: a}, {name: a}]}}",
        "status.nodes[1]: duplicate");
}

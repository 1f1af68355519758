/* Decoding of our own kinds, and the small functions beside their tables. */
#include "api/kind_test.h"
#include "support/test.h"

#include "api/ec2nodeclass.h"
#include "api/kwoknodeclass.h"
#include "api/nodeclaim.h"
#include "api/nodeoverlay.h"
#include "api/nodepool.h"
#include "codec/duration.h"
#include "codec/yaml.h"

struct loaded {
    struct object_pool *pool;
    const struct object *object;
};

static struct loaded load(const struct kind *kind, const char *yaml)
{
    struct loaded out = { .pool = object_pool_new() };
    struct docs docs;
    struct err err;
    EXPECT_OK(yaml_read(str_of(yaml), &docs, NULL, &err), err);
    EXPECT_OK(object_decode(out.pool, kind, docs.items[0].root, &out.object, &err), err);
    docs_done(&docs);
    return out;
}

static void loaded_done(struct loaded *l)
{
    object_unref(l->object);
    object_pool_free(l->pool);
}
#define LOADED __attribute__((cleanup(loaded_done))) struct loaded

TEST(durations_or_never_keep_their_text_and_their_meaning)
{
    EXPECT_TRUE(nillable_duration(STR("Never")).never);
    EXPECT_TRUE(nillable_duration(STR_NONE).never);
    EXPECT_EQ(nillable_duration(STR("0s")).ns, 0);
    EXPECT_FALSE(nillable_duration(STR("0s")).never);
    EXPECT_EQ(nillable_duration(STR("24h")).ns, 24 * DURATION_HOUR);
    EXPECT_EQ(nillable_duration(STR("9999999h")).ns, INT64_MAX);
}

TEST(nodepool_decodes)
{
    LOADED l =
        load(&nodepool_kind, "metadata: {name: a}\n"
                             "spec:\n"
                             "  weight: 10\n"
                             "  limits: {cpu: '100', memory: 1Ti}\n"
                             "  disruption:\n"
                             "    consolidateAfter: 24h\n"
                             "    consolidationPolicy: Balanced\n"
                             "    budgets:\n"
                             "    - {nodes: 10%, reasons: [Empty]}\n"
                             "    - {nodes: '0', schedule: '@daily', duration: 8h}\n"
                             "  template:\n"
                             "    metadata: {labels: {team: shop}, annotations: {a: b}}\n"
                             "    spec:\n"
                             "      expireAfter: 24h\n"
                             "      terminationGracePeriod: 1h\n"
                             "      nodeClassRef: {group: g, kind: K, name: m}\n"
                             "      requirements:\n"
                             "      - {key: k, operator: Gte, values: ['4'], minValues: 2}\n"
                             "      taints: [{key: t, effect: NoExecute}]\n"
                             "status: {nodes: 3, conditions: [{type: Ready, status: 'True'}]}\n");
    const struct nodepool *p = nodepool_of(l.object);
    const struct claim_node_spec *node = &p->spec.template.spec;
    EXPECT_EQ(p->spec.weight.value, 10);
    EXPECT_FALSE(p->spec.replicas.set);
    EXPECT_EQ(p->spec.limits.count, 2);
    EXPECT_STR(p->spec.disruption.consolidate_after, "24h");
    EXPECT_EQ(p->spec.disruption.policy, CONSOLIDATE_BALANCED);
    EXPECT_EQ(p->spec.disruption.budgets.count, 2);
    EXPECT_STR(p->spec.disruption.budgets.items[0].reasons.items[0], "Empty");
    EXPECT_EQ(p->spec.disruption.budgets.items[1].duration.ns, 8 * DURATION_HOUR);
    EXPECT_STR(str_map_get(&p->spec.template.meta.labels, STR("team")), "shop");
    EXPECT_STR(node->expire_after, "24h");
    EXPECT_EQ(node->termination_grace_period.ns, DURATION_HOUR);
    EXPECT_STR(node->node_class_ref.kind, "K");
    EXPECT_EQ(node->requirements.items[0].op, OP_GTE);
    EXPECT_EQ(node->requirements.items[0].min_values.value, 2);
    EXPECT_EQ(node->taints.items[0].effect, EFFECT_NO_EXECUTE);
    EXPECT_EQ(p->status.nodes, 3);
    EXPECT_EQ(p->status.conditions.items[0].status, CONDITION_TRUE);
}

TEST(nodepools_are_tried_by_weight_then_by_name_backwards)
{
    LOADED heavy = load(&nodepool_kind, "{metadata: {name: a}, spec: {weight: 5}}");
    LOADED light_b = load(&nodepool_kind, "{metadata: {name: b}, spec: {}}");
    LOADED light_c = load(&nodepool_kind, "{metadata: {name: c}, spec: {}}");
    EXPECT_TRUE(nodepool_order(nodepool_of(heavy.object), nodepool_of(light_c.object)) < 0);
    EXPECT_TRUE(nodepool_order(nodepool_of(light_c.object), nodepool_of(light_b.object)) < 0);
    EXPECT_TRUE(nodepool_order(nodepool_of(light_b.object), nodepool_of(heavy.object)) > 0);
    EXPECT_EQ(nodepool_order(nodepool_of(light_b.object), nodepool_of(light_b.object)), 0);
}

TEST(nodeoverlays_apply_by_weight_then_by_name_backwards)
{
    LOADED heavy = load(&nodeoverlay_kind, "{metadata: {name: a}, spec: {weight: 5}}");
    LOADED light_b = load(&nodeoverlay_kind, "{metadata: {name: b}, spec: {}}");
    LOADED light_c = load(&nodeoverlay_kind, "{metadata: {name: c}, spec: {}}");
    EXPECT_TRUE(nodeoverlay_order(nodeoverlay_of(heavy.object), nodeoverlay_of(light_c.object)) <
                0);
    EXPECT_TRUE(nodeoverlay_order(nodeoverlay_of(light_c.object), nodeoverlay_of(light_b.object)) <
                0);
}

TEST(nodeclaims_are_found_by_class_and_by_provider_id)
{
    LOADED l =
        load(&nodeclaim_kind, "{metadata: {name: a}, spec: {nodeClassRef: {group: g, kind: K, "
                              "name: m}}, status: {providerID: 'kwok://a'}}");
    EXPECT_STR(object_field(l.object, STR("status.providerID")), "kwok://a");
    EXPECT_STR(object_field(l.object, STR("spec.nodeClassRef.group")), "g");
    EXPECT_STR(object_field(l.object, STR("spec.nodeClassRef.kind")), "K");
    EXPECT_STR(object_field(l.object, STR("spec.nodeClassRef.name")), "m");
    EXPECT_STR(object_field(l.object, STR("spec.nodeClassRef.other")), NULL);
    LOADED pool =
        load(&nodepool_kind, "{metadata: {name: a}, spec: {template: {spec: {nodeClassRef: "
                             "{group: g, kind: K, name: m}}}}}");
    EXPECT_STR(object_field(pool.object, STR("spec.template.spec.nodeClassRef.name")), "m");
}

TEST(nodeclaim_decodes)
{
    LOADED l = load(&nodeclaim_kind,
                    "metadata: {name: a}\n"
                    "spec:\n"
                    "  nodeClassRef: {group: g, kind: K, name: m}\n"
                    "  requirements: [{key: k, operator: In, values: [v, w]}]\n"
                    "  resources: {requests: {cpu: 3650m, memory: 11Gi}}\n"
                    "status: {nodeName: b, imageID: ami-1, capacity: {cpu: 4}, lastPodEventTime: "
                    "'2026-01-02T15:04:05Z'}\n");
    const struct nodeclaim *c = nodeclaim_of(l.object);
    EXPECT_EQ(c->spec.node.requirements.items[0].values.count, 2);
    EXPECT_EQ(quantity_milli(c->spec.resources.requests.items[0].amount), 3650);
    EXPECT_STR(c->status.node_name, "b");
    EXPECT_STR(c->status.image_id, "ami-1");
    EXPECT_STR(c->status.provider_id, NULL);
    EXPECT_EQ(c->status.last_pod_event_us, 1767366245000000);
}

TEST(kwoknodeclass_decodes)
{
    LOADED l =
        load(&kwoknodeclass_kind, "{metadata: {name: a}, spec: {nodeRegistrationDelay: 90s}}");
    EXPECT_EQ(kwoknodeclass_of(l.object)->spec.node_registration_delay.ns, 90 * DURATION_SECOND);
}

TEST(ec2nodeclass_decodes)
{
    LOADED l = load(&ec2nodeclass_kind,
                    "metadata: {name: a}\n"
                    "spec:\n"
                    "  role: r\n"
                    "  amiSelectorTerms: [{alias: al2023@v20260714}]\n"
                    "  subnetSelectorTerms: [{tags: {a: b}}, {id: subnet-1}]\n"
                    "  securityGroupSelectorTerms: [{name: s}]\n"
                    "  kubelet: {podsPerCore: 2, maxPods: 58}\n"
                    "  associatePublicIPAddress: false\n"
                    "  blockDeviceMappings:\n"
                    "  - {deviceName: /dev/xvda, rootVolume: true, ebs: {volumeSize: 100Gi, "
                    "volumeType: gp3, encrypted: true}}\n"
                    "  metadataOptions: {httpTokens: optional}\n"
                    "status: {amis: [{id: ami-1, requirements: [{key: k, operator: Exists}]}], "
                    "subnets: [{id: subnet-1, zone: z}]}\n");
    const struct ec2nodeclass *c = ec2nodeclass_of(l.object);
    EXPECT_STR(c->spec.ami_terms.items[0].alias, "al2023@v20260714");
    EXPECT_STR(c->spec.subnet_terms.items[1].id, "subnet-1");
    EXPECT_STR(c->spec.kubelet, "{\"maxPods\":58,\"podsPerCore\":2}");
    EXPECT_EQ(c->spec.associate_public_ip, TRI_FALSE);
    EXPECT_EQ(c->spec.detailed_monitoring, TRI_UNSET);
    EXPECT_TRUE(c->spec.block_devices.items[0].root_volume);
    EXPECT_EQ(c->spec.block_devices.items[0].ebs->type, VOLUME_GP3);
    EXPECT_EQ(c->spec.metadata_options.http_tokens, HTTP_TOKENS_OPTIONAL);
    EXPECT_TRUE(c->spec.connection_tracking == NULL);
    EXPECT_EQ(c->status.amis.items[0].requirements.items[0].op, OP_EXISTS);
    EXPECT_STR(c->status.subnets.items[0].zone, "z");
}

static const char *family_of(const char *spec)
{
    AUTO_BUF yaml = { 0 };
    buf_addf(&yaml, "{metadata: {name: a}, spec: {%s}}", spec);
    LOADED l = load(&ec2nodeclass_kind, buf_str(&yaml).p);
    return ami_family_name(ec2nodeclass_ami_family(&ec2nodeclass_of(l.object)->spec));
}

TEST(ami_family_is_the_one_set_or_that_of_the_alias)
{
    EXPECT_Z(family_of("amiSelectorTerms: [{alias: al2@latest}]"), "AL2");
    EXPECT_Z(family_of("amiSelectorTerms: [{alias: al2023@v1}]"), "AL2023");
    EXPECT_Z(family_of("amiSelectorTerms: [{alias: bottlerocket@v1.46.0}]"), "Bottlerocket");
    EXPECT_Z(family_of("amiSelectorTerms: [{alias: windows2019@latest}]"), "Windows2019");
    EXPECT_Z(family_of("amiSelectorTerms: [{alias: windows2022@latest}]"), "Windows2022");
    EXPECT_Z(family_of("amiSelectorTerms: [{alias: windows2025@latest}]"), "Windows2025");
    EXPECT_Z(family_of("amiFamily: Custom, amiSelectorTerms: [{alias: al2023@v1}]"), "Custom");
    EXPECT_Z(family_of("amiFamily: Bottlerocket, amiSelectorTerms: [{id: ami-1}]"), "Bottlerocket");
    EXPECT_Z(family_of("amiSelectorTerms: [{id: ami-1}]"), "Custom");
}

TEST(volume_sizes_are_told_to_ec2_in_whole_gib_rounded_up)
{
    EXPECT_EQ(ebs_size_gib(STR("100Gi")), 100);
    EXPECT_EQ(ebs_size_gib(STR("100G")), 94); /* 93.13 */
    EXPECT_EQ(ebs_size_gib(STR("1Ti")), 1024);
    EXPECT_EQ(ebs_size_gib(STR("1T")), 932); /* 931.32 */
    EXPECT_EQ(ebs_size_gib(STR("64T")), 59605);
    EXPECT_EQ(ebs_size_gib(STR("100")), 0);
    EXPECT_EQ(ebs_size_gib(STR("Gi")), 0);
    EXPECT_EQ(ebs_size_gib(STR("99999999999999Ti")), 0);
}

/* One pool with fifty budgets that are active for a minute every minute: the worst that a schedule
 * can ask of the check. It must end, and fast enough for a command line. */
TEST(nodepool_check_of_hostile_budgets_ends)
{
    AUTO_BUF yaml = { 0 };
    AUTO_ARENA arena = { 0 };
    AUTO_JSON_BUILD b;
    struct report report = { .arena = &arena };
    struct docs docs;
    struct err err;
    json_build_init(&b);
    buf_addz(&yaml,
             "{metadata: {name: a}, spec: {template: {spec: {requirements: [], nodeClassRef: "
             "{group: g, kind: K, name: m}}}, disruption: {budgets: [");
    for (int i = 0; i < 50; i++)
        buf_addz(&yaml, "{nodes: '1', schedule: '* * * * *', duration: 1m}, ");
    buf_addz(&yaml, "]}}}");
    EXPECT_OK(yaml_read(buf_str(&yaml), &docs, NULL, &err), err);
    object_admit(&nodepool_kind, &b, docs.items[0].root, NULL, &report);
    EXPECT_EQ(report.problems.count, 0);
    report_done(&report);
    docs_done(&docs);
}

#define CLAIM(spec_)                                                                               \
    "apiVersion: karpenter.sh/v1\nkind: NodeClaim\nmetadata: {name: c}\n"                          \
    "spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: d},"                \
    " requirements: []" spec_ "}\n"

TEST(nodeclaim_spec_is_compared_with_its_defaults)
{
    expect_change(CLAIM(""), CLAIM(""), "");
    expect_change(CLAIM(""), CLAIM(", expireAfter: 720h"), "");
    expect_change(CLAIM(", expireAfter: 720h"), CLAIM(""), "");
    expect_change(CLAIM(""), CLAIM(", expireAfter: 24h"), "spec: spec cannot be changed");
}

#define OVERLAY(spec_)                                                                             \
    "apiVersion: karpenter.sh/v1alpha1\nkind: NodeOverlay\nmetadata: {name: o}\n"                  \
    "spec: {" spec_ "}\n"
#define OVERLAY_OF(spec_) OVERLAY("requirements: [], " spec_)

TEST(nodeoverlay_prices_are_at_most_what_is_held)
{
    expect_fine(OVERLAY_OF("price: '922337'"));
    expect_fine(OVERLAY_OF("price: '922337.2036854775807'"));
    expect_fine(OVERLAY_OF("price: '0000000922337.20368547758074'"));
    expect_fine(OVERLAY_OF("price: '0.00000000000000000000000000001'"));
    static const char *const large[] = {
        OVERLAY_OF("price: '922338'"),
        OVERLAY_OF("price: '1000000.0'"),
        OVERLAY_OF("price: '922337.2036854775808'"),
        OVERLAY_OF("price: '922337.20368547758075'"),
        OVERLAY_OF("price: '99999999999999999999999999999999999999999999'"),
    };
    for (size_t i = 0; i < KV_COUNT_OF(large); i++)
        expect_problem(large[i], "is too large, expected at most 922337 dollars an hour");
}

TEST(nodeoverlay_adjustments_add_no_more_than_a_price)
{
    expect_fine(OVERLAY_OF("priceAdjustment: '+922337.2036854775807'"));
    expect_fine(OVERLAY_OF("priceAdjustment: '+.5'"));
    expect_fine(OVERLAY_OF("priceAdjustment: '-99999999999999999999'"));
    expect_fine(OVERLAY_OF("priceAdjustment: '+99999999999999999999%'"));
    expect_problem(OVERLAY_OF("priceAdjustment: '+922337.2036854775808'"),
                   "spec.priceAdjustment: \"+922337.2036854775808\" is more than any price");
}

TEST(nodeoverlay_capacity_is_from_0_to_what_is_held_in_thousandths)
{
    expect_fine(OVERLAY_OF("capacity: {example.com/a: 0, example.com/b: 9223372036854774}"));
    expect_fine(OVERLAY_OF("capacity: {example.com/a: 9223372036854774999m}"));
    expect_problem(OVERLAY_OF("capacity: {example.com/a: 1, example.com/b: 9223372036854775}"),
                   "spec.capacity[\"example.com/b\"]: is too large, expected at most "
                   "9223372036854774\n");
    expect_problem(OVERLAY_OF("capacity: {example.com/a: -1n}"),
                   "spec.capacity[\"example.com/a\"]: is negative, expected 0 or more\n");
    expect_problem(OVERLAY_OF("capacity: {example.com/a/b: 1}"),
                   "spec.capacity[\"example.com/a/b\"]: \"example.com/a/b\"");
}

TEST(nodeoverlay_requirements_that_exclude_each_other_are_told)
{
#define IN(key_, value_) "{key: " key_ ", operator: In, values: [" value_ "]}, "
    expect_fine(OVERLAY("price: '1', requirements: [" IN("k", "a, b") IN("k", "b, c") "]"));
    expect_fine(OVERLAY("price: '1', requirements: [{key: k, operator: NotIn, values: [a]}, "
                        "{key: k, operator: DoesNotExist}]"));
    expect_problem(
        OVERLAY("price: '1', requirements: [" IN("j", "a") IN("k", "a") IN("k", "b") "]"),
        "spec.requirements[2]: contradicts requirements[1]: no value of k is left\n");
    expect_problem(OVERLAY("price: '1', requirements: [{key: k, operator: Exists}, "
                           "{key: k, operator: DoesNotExist}]"),
                   "spec.requirements[1]: contradicts requirements[0]");
    SAMPLE s; /* told once, by the schema */
    sample_read(&s, OVERLAY("price: '1', requirements: [" IN("k", "") "]"), NULL);
    EXPECT_EQ(s.report.problems.count, 1);
#undef IN
}

/* What no CRD can say is left to the status of the overlay. */
TEST(nodeoverlays_that_never_apply_are_still_stored)
{
    static const char *const specs[] = {
        "requirements: [], price: '922338'",
        "requirements: [], priceAdjustment: '+922338'",
        "requirements: [], capacity: {example.com/a: -1, 'not a name': 1}",
        "requirements: [{key: k, operator: In, values: [a]}, {key: k, operator: In, values: [b]}]",
    };
    for (size_t i = 0; i < KV_COUNT_OF(specs); i++) {
        AUTO_BUF yaml = { 0 };
        AUTO_ARENA arena = { 0 };
        AUTO_JSON_BUILD b;
        struct report report = { .arena = &arena, .crd_only = true };
        struct docs docs;
        struct err err;
        json_build_init(&b);
        buf_addf(&yaml, "{metadata: {name: a}, spec: {%s}}", specs[i]);
        EXPECT_OK(yaml_read(buf_str(&yaml), &docs, NULL, &err), err);
        object_admit(&nodeoverlay_kind, &b, docs.items[0].root, NULL, &report);
        EXPECT_EQ(report.problems.count, 0);
        report_done(&report);
        docs_done(&docs);
    }
}

TEST(nodepool_check_of_long_lists_ends)
{
    AUTO_BUF text = { 0 };
    buf_addz(&text, "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: p}\n"
                    "spec: {template: {metadata: {labels: {");
    for (int i = 0; i < 60000; i++)
        buf_addf(&text, "l%d: v, ", i);
    buf_addz(&text, "}}, spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass,"
                    " name: d}, taints: [");
    for (int i = 0; i < 60000; i++)
        buf_addf(&text, "{key: t%d, effect: NoExecute}, ", i);
    buf_addz(&text, "], requirements: [");
    for (int i = 0; i < 60000; i++)
        buf_addf(&text, "{key: k, operator: NotIn, values: [v%d]}, ", i);
    buf_addz(&text, "]}}}\n");
    expect_problem(text.p, "spec.template.spec.requirements: has 60000 items");
}

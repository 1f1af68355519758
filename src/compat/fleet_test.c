/* The fleet: nodes come, go, publish and change; verdicts follow. */
#include "compat/fleet_testing.h"

#define DEFAULTS ((struct fleet_options){ 0 })

static void explained(struct yard *y, const struct demand *demand, const char *node,
                      const char *want)
{
    AUTO_BUF text = { 0 };
    fleet_explain(y->fleet, demand, str_of(node), &text);
    EXPECT_STR(buf_str(&text), want);
}

/* --- nodes --- */

TEST(a_node_that_is_not_known_is_unknown)
{
    YARD y;
    yard_init(&y, DEFAULTS);
    const struct demand *demand = yard_demand(&y, yard_needs(&y, "AVX2", 0), NULL);
    EXPECT_EQ(yard_match(&y, demand, "a"), MATCH_UNKNOWN);
    EXPECT_EQ(yard_verdict(&y, demand, "a").class_ix, UINT32_MAX);
    explained(&y, demand, "a", "the node is not known here");
}

TEST(a_node_is_judged_by_what_it_publishes)
{
    YARD y;
    yard_init(&y, DEFAULTS);
    yard_node(&y, "a", "amd64", "");
    yard_node(&y, "b", "amd64", "");
    yard_flags(&y, "a", "AVX2: {}");
    yard_flags(&y, "b", "SSE42: {}");
    const struct demand *demand = yard_demand(&y, yard_needs(&y, "AVX2", 0), NULL);
    EXPECT_EQ(yard_match(&y, demand, "a"), MATCH_YES);
    EXPECT_EQ(yard_match(&y, demand, "b"), MATCH_NO);
    EXPECT_FALSE(yard_verdict(&y, demand, "b").predicted);
    explained(&y, demand, "a", "");
    explained(&y, demand, "b",
              "a.example/a:1 set \"t\": rule \"r\": cpu.cpuid AVX2: expected to exist, is absent");
}

TEST(features_may_come_before_their_node)
{
    YARD y;
    yard_init(&y, DEFAULTS);
    const struct demand *demand = yard_demand(&y, yard_needs(&y, "AVX2", 0), NULL);
    yard_flags(&y, "a", "AVX2: {}");
    EXPECT_EQ(yard_match(&y, demand, "a"), MATCH_UNKNOWN);
    EXPECT_EQ(fleet_stats(y.fleet).nodes, 0);
    yard_node(&y, "a", "amd64", "");
    EXPECT_EQ(yard_match(&y, demand, "a"), MATCH_YES);
}

TEST(a_node_that_is_deleted_is_unknown_and_comes_back_with_the_features_that_stayed)
{
    YARD y;
    yard_init(&y, DEFAULTS);
    const struct demand *demand = yard_demand(&y, yard_needs(&y, "AVX2", 0), NULL);
    const struct object *node = yard_node(&y, "a", "amd64", "");
    yard_flags(&y, "a", "AVX2: {}");
    fleet_observe_node(y.fleet, node, NULL);
    EXPECT_EQ(yard_match(&y, demand, "a"), MATCH_UNKNOWN);
    fleet_observe_node(y.fleet, node, NULL); /* again */
    yard_node(&y, "b", "amd64", "");         /* takes its place */
    yard_node(&y, "a", "amd64", "");
    EXPECT_EQ(yard_match(&y, demand, "a"), MATCH_YES);
    EXPECT_EQ(yard_match(&y, demand, "b"), MATCH_UNKNOWN);
}

TEST(features_that_move_to_another_node_leave_the_first)
{
    YARD y;
    yard_init(&y, (struct fleet_options){ .unobserved = UNOBSERVED_REJECT });
    const struct demand *demand = yard_demand(&y, yard_needs(&y, "AVX2", 0), NULL);
    const char flags[] = "flags: {cpu.cpuid: {elements: {AVX2: {}}}}";
    yard_node(&y, "a", "amd64", "");
    yard_node(&y, "b", "amd64", "");
    fleet_observe_feature(y.fleet, NULL, yard_feature_object(&y, "nfd", "x", "a", flags));
    EXPECT_EQ(yard_match(&y, demand, "a"), MATCH_YES);
    EXPECT_EQ(yard_match(&y, demand, "b"), MATCH_NO);
    /* The event does not say where it was before. */
    fleet_observe_feature(y.fleet, NULL, yard_feature_object(&y, "nfd", "x", "b", flags));
    EXPECT_EQ(yard_match(&y, demand, "a"), MATCH_NO);
    EXPECT_EQ(yard_match(&y, demand, "b"), MATCH_YES);
}

TEST(several_node_features_of_a_node_are_merged_with_those_of_nfd_first)
{
    YARD y;
    yard_init(&y, DEFAULTS);
    const struct image_facts *facts = yard_facts(
        &y, "",
        "{version: v1alpha1, compatibilities: [{rules: [{name: r, matchFeatures: [{feature: "
        "kernel.version, matchExpressions: {major: {op: In, value: [\"6\"]}}}]}]}]}");
    const struct demand *demand = yard_demand(&y, facts, NULL);
    yard_node(&y, "a", "amd64", "");
    const struct object *vendor = yard_feature_object(
        &y, "gpu", "a", "a", "attributes: {kernel.version: {elements: {major: \"5\"}}}");
    fleet_observe_feature(y.fleet, NULL, vendor);
    yard_publish(&y, "a", "attributes: {kernel.version: {elements: {major: \"6\"}}}");
    EXPECT_EQ(yard_match(&y, demand, "a"), MATCH_NO); /* the vendor's is the last word */
    fleet_set_nfd_namespace(y.fleet, STR("gpu"));
    EXPECT_EQ(yard_match(&y, demand, "a"), MATCH_YES);
    fleet_set_nfd_namespace(y.fleet, STR("nfd"));
    EXPECT_EQ(yard_match(&y, demand, "a"), MATCH_NO);
    fleet_observe_feature(y.fleet, vendor, NULL);
    EXPECT_EQ(yard_match(&y, demand, "a"), MATCH_YES);
}

/* --- platforms --- */

TEST(an_image_for_another_architecture_is_refused_whether_or_not_features_are_known)
{
    YARD y;
    yard_init(&y, DEFAULTS);
    yard_node(&y, "a", "amd64", "");
    yard_node(&y, "b", "arm64", "");
    yard_node(&y, "c", "", "");
    yard_flags(&y, "b", "SVE: {}");
    const struct demand *demand = yard_demand(&y, yard_facts(&y, "arm64", ""), NULL);
    EXPECT_EQ(yard_match(&y, demand, "a"), MATCH_NO);
    EXPECT_EQ(yard_match(&y, demand, "b"), MATCH_YES);
    EXPECT_EQ(yard_match(&y, demand, "c"), MATCH_UNKNOWN);
    AUTO_BUF text = { 0 };
    fleet_explain(y.fleet, demand, STR("a"), &text);
    EXPECT_HAS(buf_str(&text),
               "a.example/a:1 is built for linux/arm64 only, the node is linux/amd64");
}

TEST(a_label_that_arrives_later_changes_the_verdict)
{
    YARD y;
    yard_init(&y, DEFAULTS);
    const struct object *before = yard_node(&y, "a", "", "");
    const struct demand *demand = yard_demand(&y, yard_facts(&y, "arm64", ""), NULL);
    EXPECT_EQ(yard_match(&y, demand, "a"), MATCH_UNKNOWN);
    uint64_t generation = fleet_generation(y.fleet);
    fleet_observe_node(y.fleet, before, yard_node_object(&y, "a", "arm64", ""));
    EXPECT_EQ(yard_match(&y, demand, "a"), MATCH_YES);
    EXPECT_TRUE(fleet_generation(y.fleet) != generation);
}

TEST(a_heartbeat_changes_nothing)
{
    YARD y;
    yard_init(&y, DEFAULTS);
    yard_node(&y, "a", "amd64", "m7i.large");
    const struct object *nf = yard_flags(&y, "a", "AVX2: {}");
    uint64_t generation = fleet_generation(y.fleet);
    yard_node(&y, "a", "amd64", "m7i.large");
    fleet_observe_feature(y.fleet, nf, nf);
    EXPECT_EQ(fleet_generation(y.fleet), generation);
}

/* --- demands --- */

TEST(the_least_of_all_images_decides_and_is_named)
{
    YARD y;
    yard_init(&y, DEFAULTS);
    yard_node(&y, "a", "amd64", "");
    yard_flags(&y, "a", "AVX2: {}");
    const struct demand *demand =
        yard_demand(&y, yard_needs(&y, "AVX2", 0), yard_needs(&y, "AVX512F", 0));
    struct fleet_verdict verdict = yard_verdict(&y, demand, "a");
    EXPECT_EQ(verdict.match, MATCH_NO);
    EXPECT_EQ(verdict.image_ix, 1);
    AUTO_BUF text = { 0 };
    fleet_explain(y.fleet, demand, STR("a"), &text);
    EXPECT_TRUE(str_starts(buf_str(&text), STR("b.example/b:1 set \"t\": ")));
}

TEST(the_weight_is_the_least_of_the_images_that_have_one)
{
    YARD y;
    yard_init(&y, DEFAULTS);
    yard_node(&y, "a", "amd64", "");
    yard_flags(&y, "a", "AVX2: {}, SSE42: {}");
    const struct image_facts *heavy = yard_needs(&y, "AVX2", 80);
    const struct image_facts *light = yard_needs(&y, "SSE42", 30);
    const struct image_facts *none = yard_facts(&y, "amd64", "");
    EXPECT_EQ(yard_verdict(&y, yard_demand(&y, heavy, light), "a").weight, 30);
    EXPECT_EQ(yard_verdict(&y, yard_demand(&y, none, heavy), "a").weight, 80);
    EXPECT_EQ(yard_verdict(&y, yard_demand(&y, none, NULL), "a").weight, 0);
}

TEST(an_image_with_trouble_is_an_error_on_every_node_that_is_not_refused_anyway)
{
    YARD y;
    yard_init(&y, DEFAULTS);
    yard_node(&y, "a", "amd64", "");
    yard_node(&y, "b", "arm64", "");
    const struct fleet_image images[] = {
        { STR("app:1"), NULL, STR("the registry does not answer") },
        { STR("tool:1"), yard_facts(&y, "amd64", ""), STR("") },
    };
    const struct demand *demand = fleet_demand(y.fleet, images, 2);
    EXPECT_EQ(yard_match(&y, demand, "a"), MATCH_ERROR);
    EXPECT_EQ(yard_match(&y, demand, "b"), MATCH_NO);
    explained(&y, demand, "a", "app:1 cannot be judged: the registry does not answer");
    demand_unref(demand);
}

TEST(a_demand_without_any_constraint_is_empty_and_lets_every_node_in)
{
    YARD y;
    yard_init(&y, (struct fleet_options){ .unobserved = UNOBSERVED_REJECT });
    yard_node(&y, "a", "amd64", "");
    const struct fleet_image unknown = { STR("app:1"), NULL, STR("") };
    const struct demand *none = fleet_demand(y.fleet, NULL, 0);
    const struct demand *one = fleet_demand(y.fleet, &unknown, 1);
    EXPECT_TRUE(demand_is_empty(none));
    EXPECT_TRUE(demand_is_empty(one));
    EXPECT_FALSE(demand_is_empty(yard_demand(&y, yard_facts(&y, "amd64", ""), NULL)));
    EXPECT_FALSE(demand_is_empty(yard_demand(&y, yard_needs(&y, "AVX2", 0), NULL)));
    EXPECT_EQ(yard_match(&y, none, "a"), MATCH_YES);
    EXPECT_EQ(yard_match(&y, one, "a"), MATCH_YES);
    demand_unref(none);
    demand_unref(one);
}

TEST(equal_images_are_one_demand_while_somebody_has_it)
{
    YARD y;
    yard_init(&y, DEFAULTS);
    const struct image_facts *facts = yard_needs(&y, "AVX2", 0);
    const struct fleet_image image = { STR("app:1"), facts, STR("") };
    const struct demand *first = fleet_demand(y.fleet, &image, 1);
    const struct demand *second = fleet_demand(y.fleet, &image, 1);
    EXPECT_TRUE(first == second);
    EXPECT_EQ(fleet_stats(y.fleet).demands, 1);
    EXPECT_EQ(demand_image_count(first), 1);
    EXPECT_TRUE(demand_image(first, 0)->maybe_facts == facts);
    demand_unref(first);
    EXPECT_EQ(fleet_stats(y.fleet).demands, 1);
    demand_unref(second);
    EXPECT_EQ(fleet_stats(y.fleet).demands, 0);
}

/* --- classes --- */

TEST(nodes_that_no_rule_can_tell_apart_are_one_class_and_evaluated_once)
{
    YARD y;
    yard_init(&y, DEFAULTS);
    enum { NODES = 20 };
    char names[NODES][8];
    struct str list[NODES];
    struct fleet_verdict verdicts[NODES];
    for (int i = 0; i < NODES; i++) {
        AUTO_BUF features = { 0 };
        snprintf(names[i], sizeof names[i], "n%d", i);
        list[i] = str_of(names[i]);
        buf_addf(&features,
                 "flags: {cpu.cpuid: {elements: {%s: {}}}}, attributes: {system.name: "
                 "{elements: {nodename: %s}}}",
                 i % 2 ? "AVX2" : "SSE42", names[i]);
        yard_node(&y, names[i], "amd64", "");
        yard_publish(&y, names[i], features.p);
    }
    const struct demand *demand = yard_demand(&y, yard_needs(&y, "AVX2", 0), NULL);
    uint64_t before = fleet_stats(y.fleet).evaluated;
    for (int round = 0; round < 3; round++) {
        fleet_judge(y.fleet, demand, list, NODES, verdicts);
        for (int i = 0; i < NODES; i++) {
            EXPECT_EQ(verdicts[i].match, i % 2 ? MATCH_YES : MATCH_NO);
            EXPECT_EQ(verdicts[i].class_ix, verdicts[i % 2].class_ix);
        }
    }
    EXPECT_EQ(fleet_stats(y.fleet).evaluated - before, 2);
    EXPECT_EQ(fleet_stats(y.fleet).classes, 2);
    EXPECT_EQ(fleet_stats(y.fleet).nodes, NODES);
    EXPECT_EQ(fleet_stats(y.fleet).observed, NODES);
    EXPECT_EQ(fleet_stats(y.fleet).judged, 3 * NODES);
}

TEST(a_rule_about_something_new_sorts_the_nodes_anew_and_forgets_no_verdict_of_others)
{
    YARD y;
    yard_init(&y, DEFAULTS);
    yard_node(&y, "a", "amd64", "");
    yard_node(&y, "b", "amd64", "");
    yard_flags(&y, "a", "AVX2: {}, AVX512F: {}");
    yard_flags(&y, "b", "AVX2: {}");
    const struct demand *old = yard_demand(&y, yard_needs(&y, "AVX2", 0), NULL);
    EXPECT_EQ(yard_match(&y, old, "a"), MATCH_YES);
    EXPECT_EQ(fleet_stats(y.fleet).classes, 1);
    uint64_t generation = fleet_generation(y.fleet);
    const struct demand *new = yard_demand(&y, yard_needs(&y, "AVX512F", 0), NULL);
    EXPECT_EQ(fleet_stats(y.fleet).classes, 2);
    EXPECT_EQ(fleet_generation(y.fleet), generation); /* no verdict that was given is another now */
    EXPECT_EQ(yard_match(&y, new, "a"), MATCH_YES);
    EXPECT_EQ(yard_match(&y, new, "b"), MATCH_NO);
    EXPECT_EQ(yard_match(&y, old, "a"), MATCH_YES);
    EXPECT_EQ(yard_match(&y, old, "b"), MATCH_YES);
}

TEST(what_old_demands_mentioned_is_dropped_in_time)
{
    YARD y;
    yard_init(&y, DEFAULTS);
    const struct demand *kept = yard_demand(&y, yard_needs(&y, "F0", 0), NULL);
    AUTO_BUF flags = { 0 };
    for (int i = 0; i < 200; i++)
        buf_addf(&flags, "%sF%d: {}", i ? ", " : "", i);
    yard_node(&y, "a", "amd64", "");
    yard_node(&y, "b", "amd64", "");
    yard_flags(&y, "a", flags.p);
    yard_flags(&y, "b", "F0: {}");
    for (int i = 1; i < 200; i++) {
        char flag[8];
        snprintf(flag, sizeof flag, "F%d", i);
        const struct fleet_image image = { STR("x"), yard_needs(&y, flag, 0), STR("") };
        const struct demand *passing = fleet_demand(y.fleet, &image, 1);
        EXPECT_EQ(yard_match(&y, passing, "a"), MATCH_YES);
        EXPECT_EQ(yard_match(&y, passing, "b"), MATCH_NO);
        demand_unref(passing);
        EXPECT_EQ(yard_match(&y, kept, "a"), MATCH_YES);
        EXPECT_EQ(yard_match(&y, kept, "b"), MATCH_YES);
    }
}

/* --- nodes that have published nothing --- */

TEST(an_unobserved_node_is_judged_by_what_its_type_is_known_for)
{
    YARD y;
    yard_init(&y, DEFAULTS);
    yard_node(&y, "a", "amd64", "m7i.large");
    yard_node(&y, "b", "amd64", "m6a.large");
    yard_node(&y, "c", "amd64", "x99.large");
    const struct demand *demand = yard_demand(&y, yard_needs(&y, "AVX512F", 0), NULL);
    struct fleet_verdict verdict = yard_verdict(&y, demand, "a");
    EXPECT_EQ(verdict.match, MATCH_YES);
    EXPECT_TRUE(verdict.predicted);
    EXPECT_EQ(yard_match(&y, demand, "b"), MATCH_NO);
    EXPECT_EQ(yard_match(&y, demand, "c"), MATCH_UNKNOWN);
    AUTO_BUF text = { 0 };
    fleet_explain(y.fleet, demand, STR("b"), &text);
    EXPECT_TRUE(str_ends(buf_str(&text), STR(" (as predicted)")));
}

TEST(an_unobserved_node_learns_from_a_node_of_its_type)
{
    YARD y;
    yard_init(&y, DEFAULTS);
    yard_node(&y, "seen", "amd64", "x99.large");
    yard_node(&y, "new", "amd64", "x99.large");
    const struct demand *demand = yard_demand(&y, yard_needs(&y, "AVX2", 0), NULL);
    EXPECT_EQ(yard_match(&y, demand, "new"), MATCH_UNKNOWN);
    uint64_t generation = fleet_generation(y.fleet);
    yard_flags(&y, "seen", "AVX2: {}");
    EXPECT_TRUE(fleet_generation(y.fleet) != generation);
    EXPECT_EQ(yard_match(&y, demand, "new"), MATCH_YES);
    EXPECT_TRUE(yard_verdict(&y, demand, "new").predicted);
    EXPECT_FALSE(yard_verdict(&y, demand, "seen").predicted);
    EXPECT_EQ(fleet_stats(y.fleet).observed, 1);
}

TEST(what_a_node_publishes_replaces_what_was_predicted_of_it)
{
    YARD y;
    yard_init(&y, DEFAULTS);
    yard_node(&y, "a", "amd64", "m7i.large");
    const struct demand *demand = yard_demand(&y, yard_needs(&y, "AVX512F", 0), NULL);
    EXPECT_EQ(yard_match(&y, demand, "a"), MATCH_YES);
    const struct object *nf = yard_flags(&y, "a", "AVX2: {}");
    EXPECT_EQ(yard_match(&y, demand, "a"), MATCH_NO);
    EXPECT_FALSE(yard_verdict(&y, demand, "a").predicted);
    fleet_observe_feature(y.fleet, nf, NULL);
    EXPECT_TRUE(yard_verdict(&y, demand, "a").predicted);
}

TEST(with_reject_an_unobserved_node_fits_only_images_that_ask_for_no_features)
{
    YARD y;
    yard_init(&y, (struct fleet_options){ .unobserved = UNOBSERVED_REJECT });
    yard_node(&y, "a", "amd64", "m7i.large");
    const struct demand *asks = yard_demand(&y, yard_needs(&y, "AVX2", 0), NULL);
    const struct demand *asks_not = yard_demand(&y, yard_facts(&y, "amd64", ""), NULL);
    EXPECT_EQ(yard_match(&y, asks, "a"), MATCH_NO);
    EXPECT_EQ(yard_match(&y, asks_not, "a"), MATCH_YES);
    explained(&y, asks, "a",
              "a.example/a:1 asks for features of the node, and no features have been published "
              "for it yet");
    yard_flags(&y, "a", "AVX2: {}");
    EXPECT_EQ(yard_match(&y, asks, "a"), MATCH_YES);
}

/* --- machines --- */

TEST(a_machine_that_is_not_there_yet_is_judged_by_prediction)
{
    YARD y;
    yard_init(&y, (struct fleet_options){ .unobserved = UNOBSERVED_REJECT });
    const struct demand *demand = yard_demand(&y, yard_needs(&y, "AVX512F", 40), NULL);
    struct machine_kind intel = { .instance_type = STR("m7i.large"),
                                  .architecture = STR("amd64"),
                                  .os = STR("linux") };
    struct machine_kind amd = { .instance_type = STR("m6a.large"),
                                .architecture = STR("amd64"),
                                .os = STR("linux") };
    struct fleet_verdict verdict = fleet_judge_machine(y.fleet, demand, &intel);
    EXPECT_EQ(verdict.match, MATCH_YES);
    EXPECT_EQ(verdict.weight, 40);
    EXPECT_TRUE(verdict.predicted);
    EXPECT_EQ(fleet_judge_machine(y.fleet, demand, &amd).match, MATCH_NO);
    AUTO_BUF text = { 0 };
    fleet_explain_machine(y.fleet, demand, &amd, &text);
    EXPECT_HAS(buf_str(&text), "AVX512F");
}

TEST(a_machine_is_predicted_again_when_something_was_learnt_or_is_mentioned_for_the_first_time)
{
    YARD y;
    yard_init(&y, DEFAULTS);
    struct machine_kind machine = { .instance_type = STR("x99.large"),
                                    .architecture = STR("amd64"),
                                    .os = STR("linux") };
    const struct demand *first = yard_demand(&y, yard_needs(&y, "AVX2", 0), NULL);
    EXPECT_EQ(fleet_judge_machine(y.fleet, first, &machine).match, MATCH_UNKNOWN);
    yard_node(&y, "a", "amd64", "x99.large");
    yard_flags(&y, "a", "AVX2: {}, SSE42: {}");
    EXPECT_EQ(fleet_judge_machine(y.fleet, first, &machine).match, MATCH_YES);
    const struct demand *second = yard_demand(&y, yard_needs(&y, "SSE42", 0), NULL);
    EXPECT_EQ(fleet_judge_machine(y.fleet, second, &machine).match, MATCH_YES);
    uint64_t evaluated = fleet_stats(y.fleet).evaluated;
    EXPECT_EQ(fleet_judge_machine(y.fleet, second, &machine).match, MATCH_YES);
    EXPECT_EQ(fleet_stats(y.fleet).evaluated, evaluated);
}

TEST(what_a_user_declares_of_a_machine_tells_it_from_others)
{
    YARD y;
    yard_init(&y, DEFAULTS);
    const struct demand *demand = yard_demand(&y, yard_needs(&y, "AVX2", 0), NULL);
    const struct object *declared =
        yard_feature_object(&y, "nfd", "d", "d", "flags: {cpu.cpuid: {elements: {AVX2: {}}}}");
    struct machine_kind machine = { .instance_type = STR("x99.large"),
                                    .architecture = STR("amd64"),
                                    .os = STR("linux") };
    EXPECT_EQ(fleet_judge_machine(y.fleet, demand, &machine).match, MATCH_UNKNOWN);
    machine.maybe_declared = &node_feature_of(declared)->spec.features;
    EXPECT_EQ(fleet_judge_machine(y.fleet, demand, &machine).match, MATCH_YES);
    machine.maybe_declared = NULL;
    EXPECT_EQ(fleet_judge_machine(y.fleet, demand, &machine).match, MATCH_UNKNOWN);
}

TEST(what_is_learnt_of_a_node_is_of_the_image_that_its_claim_names)
{
    YARD y;
    yard_init(&y, DEFAULTS);
    const struct image_facts *facts = yard_facts(
        &y, "",
        "{version: v1alpha1, compatibilities: [{rules: [{name: r, matchFeatures: [{feature: "
        "kernel.version, matchExpressions: {major: {op: In, value: [\"6\"]}}}]}]}]}");
    const struct demand *demand = yard_demand(&y, facts, NULL);
    const struct object *claim = yard_object(
        &y, &nodeclaim_kind,
        STR("{apiVersion: karpenter.sh/v1, kind: NodeClaim, metadata: {name: c}, spec: "
            "{nodeClassRef: {group: g, kind: k, name: class}, requirements: []}, status: {nodeName: a, "
            "imageID: ami-1}}"));
    fleet_observe_claim(y.fleet, NULL, claim);
    yard_node(&y, "a", "amd64", "x99.large");
    yard_publish(&y, "a",
                 "flags: {cpu.cpuid: {elements: {AVX2: {}}}}, attributes: "
                 "{kernel.version: {elements: {major: \"6\"}}}");
    struct machine_kind machine = { .instance_type = STR("y99.large"),
                                    .architecture = STR("amd64"),
                                    .os = STR("linux"),
                                    .image = STR("ami-1") };
    EXPECT_EQ(fleet_judge_machine(y.fleet, demand, &machine).match, MATCH_YES);
    machine.image = STR("ami-2");
    EXPECT_EQ(fleet_judge_machine(y.fleet, demand, &machine).match, MATCH_UNKNOWN);
    fleet_observe_claim(y.fleet, claim, NULL);
}

TEST(numbers_are_shown_as_metrics)
{
    AUTO(metrics) metrics = metrics_new(clock_real());
    AUTO_BUF text = { 0 };
    {
        YARD y;
        yard_init(&y, (struct fleet_options){ .maybe_metrics = metrics });
        yard_node(&y, "a", "amd64", "");
        const struct demand *demand = yard_demand(&y, yard_needs(&y, "AVX2", 0), NULL);
        yard_match(&y, demand, "a");
        metrics_write(metrics, &text);
        EXPECT_HAS(buf_str(&text), "karve_compat_nodes 1\n");
        EXPECT_HAS(buf_str(&text), "karve_compat_demands 1\n");
        EXPECT_HAS(buf_str(&text), "karve_compat_evaluations_total 1\n");
    }
    metrics_write(metrics, &text);
}

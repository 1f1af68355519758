/* What pods ask for, and what they give up, in which order. */
#include "sched/model_classes_testing.h"

#define POOL WORLD_POOL("web", "[]", "")
#define ARCH "kubernetes.io/arch"
#define EXPR(key, op, values) "{key: " key ", operator: " op ", values: [" values "]}"
#define TERM(expressions) "{matchExpressions: [" expressions "]}"
#define REQUIRED(terms)                                                                            \
    "requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [" terms "]}"
#define PREFERRED(terms) "preferredDuringSchedulingIgnoredDuringExecution: [" terms "]"
#define LIKES(weight, expressions)                                                                 \
    "{weight: " weight ", preference: {matchExpressions: [" expressions "]}}"
#define NEAR(weight, key, app)                                                                     \
    "{weight: " weight ", podAffinityTerm: {topologyKey: " key                                     \
    ", labelSelector: {matchLabels: {app: " app "}}}}"
#define NODE_AFFINITY(words) "  affinity: {nodeAffinity: {" words "}}\n"
#define POD(more) POOL WORLD_POD("p", "{app: web}", "{cpu: 1}", more)

static struct str given_up(const struct modelled *t, uint32_t v)
{
    EXPECT_TRUE(v < class_of_pod(t, "p")->variant_count);
    return class_of_pod(t, "p")->variants[v].given_up;
}

static uint32_t variant_count(const struct modelled *t)
{
    return class_of_pod(t, "p")->variant_count;
}

/* --- required --- */

TEST(a_pod_that_asks_for_nothing_has_one_way)
{
    MODELLED t = { 0 };
    modelled_load(&t, POD(""), NULL);
    EXPECT_EQ(variant_count(&t), 1);
    EXPECT_STR(wants_text(&t, "p", 0), "");
    EXPECT_STR(given_up(&t, 0), "");
}

TEST(node_selector_and_a_term_are_asked_for_together_and_terms_in_turn)
{
    MODELLED t = { 0 };
    modelled_load(
        &t,
        POD("  nodeSelector: {beta.kubernetes.io/arch: arm64}\n" NODE_AFFINITY(REQUIRED(
            TERM(EXPR(ZONE, "In", "zone-b, zone-a")) ", " TERM(EXPR(ZONE, "NotIn", "zone-c"))))),
        NULL);
    EXPECT_EQ(variant_count(&t), 2);
    EXPECT_STR(wants_text(&t, "p", 0), ARCH " In [arm64], " ZONE " In [zone-a zone-b]");
    EXPECT_STR(wants_text(&t, "p", 1), ARCH " In [arm64], " ZONE " NotIn [zone-c]");
    EXPECT_STR(given_up(&t, 1), "");
}

TEST(a_contradiction_is_not_a_label_that_must_be_missing)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  POD("  nodeSelector: {team: shop}\n" NODE_AFFINITY(
                      REQUIRED(TERM(EXPR("team", "In", "bank"))))),
                  NULL);
    EXPECT_STR(refusal(&t, "p"),
               "requirements: team In [shop] and team In [bank] have nothing in common");

    MODELLED other = { 0 };
    modelled_load(&other,
                  POD("  nodeSelector: {team: shop}\n" NODE_AFFINITY(REQUIRED(
                      TERM(EXPR("team", "In", "bank")) ", " TERM(EXPR("team", "Exists", ""))))),
                  NULL);
    EXPECT_EQ(variant_count(&other), 1);
    EXPECT_STR(wants_text(&other, "p", 0), "team In [shop]");
}

TEST(exists_beside_not_in_is_spelt_out)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  WORLD_NODE("node", "zone-a", ", rack: r3", "cpu: 1")
                      WORLD_POOL("more", "[{key: rack, operator: In, values: [r1, r2]}]", "")
                          POD(NODE_AFFINITY(REQUIRED(
                              TERM(EXPR("rack", "Exists", "") ", " EXPR("rack", "NotIn", "r2"))))),
                  NULL);
    EXPECT_STR(wants_text(&t, "p", 0), "rack In [r1 r3]");
}

TEST(not_in_beside_does_not_exist_is_fine)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  POD(NODE_AFFINITY(REQUIRED(
                      TERM(EXPR("rack", "DoesNotExist", "") ", " EXPR("rack", "NotIn", "r2"))))),
                  NULL);
    EXPECT_STR(wants_text(&t, "p", 0), "rack DoesNotExist");
}

TEST(terms_that_cannot_be_used_are_dropped_while_others_are_left)
{
#define FIELDS "{matchFields: [{key: metadata.name, operator: In, values: [node-1]}]}"
#define RESTRICTED TERM(EXPR("karpenter.sh/registered", "In", "'true'"))
#define GOOD TERM(EXPR(ZONE, "In", "zone-a"))
    static const struct {
        const char *pod, *why;
    } cases[] = {
        { POD(NODE_AFFINITY(REQUIRED(FIELDS ", " GOOD ", " RESTRICTED))), "" },
        { POD(NODE_AFFINITY(REQUIRED(FIELDS))),
          "unsupported: node affinity by matchFields is not handled" },
        { POD(NODE_AFFINITY(REQUIRED(RESTRICTED))),
          "requirements: label karpenter.sh/registered is restricted" },
        { POD("  nodeSelector: {karpenter.sh/registered: 'true'}\n"),
          "requirements: label karpenter.sh/registered is restricted" },
        { POD("  nodeSelector: {karpenter.k8s.aws/made-up: 'true'}\n"),
          "requirements: label karpenter.k8s.aws/made-up is restricted" },
        { POD("  nodeSelector: {karpenter.k8s.aws/instance-family: m7i}\n"), "" },
        { POD(NODE_AFFINITY(REQUIRED("{}"))),
          "requirements: its node affinity has no terms that a node could satisfy" },
        { POD("  topologySpreadConstraints: [{maxSkew: 1, whenUnsatisfiable: DoNotSchedule, "
              "topologyKey: " ZONE "}]\n" NODE_AFFINITY(REQUIRED(FIELDS ", " GOOD))),
          "unsupported: node affinity by matchFields is not handled beside topology spread" },
        { POD("  resourceClaims: [{name: gpu, resourceClaimName: g}]\n"),
          "unsupported: resource claims (dynamic resource allocation) are not handled" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        MODELLED t = { 0 };
        modelled_load(&t, cases[i].pod, NULL);
        EXPECT_STR(refusal(&t, "p"), cases[i].why);
        EXPECT_EQ(variant_count(&t), *cases[i].why ? 0 : 1);
    }
#undef GOOD
#undef RESTRICTED
#undef FIELDS
}

TEST(a_host_name_is_asked_of_nodes_that_are_there_and_not_of_launches)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  WORLD_NODE("node-1", "zone-a", "", "cpu: 4")
                      WORLD_NODE("node-2", "zone-a", "", "cpu: 4")
                          POD("  nodeSelector: {" HOST ": node-1}\n"),
                  NULL);
    EXPECT_STR(refusal(&t, "p"), "");
    uint32_t wants = class_of_pod(&t, "p")->variants[0].wants;
    EXPECT_TRUE(home_admits(&t.m, modelled_home(&t, "node-1"), wants));
    EXPECT_FALSE(home_admits(&t.m, modelled_home(&t, "node-2"), wants));
    EXPECT_EQ(terms_join(&t.m, modelled_pool(&t, "web")->terms, wants), NONE);
}

/* --- preferred --- */

TEST(only_the_heaviest_preferred_node_term_is_heeded_until_it_is_given_up)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  POD(NODE_AFFINITY(PREFERRED(LIKES("5", EXPR(ZONE, "In", "zone-a")) ", " LIKES(
                      "9", EXPR(ZONE, "In", "zone-b, zone-c")) ", " LIKES("5", EXPR(ARCH, "NotIn",
                                                                                    "arm64"))))),
                  NULL);
    EXPECT_EQ(variant_count(&t), 4);
    EXPECT_STR(wants_text(&t, "p", 0), ZONE " In [zone-b zone-c]");
    EXPECT_STR(wants_text(&t, "p", 1), ZONE " In [zone-a]");
    EXPECT_STR(wants_text(&t, "p", 2), ARCH " NotIn [arm64]");
    EXPECT_STR(wants_text(&t, "p", 3), "");
    EXPECT_STR(given_up(&t, 1), "preferred zone zone-b or zone-c");
    EXPECT_STR(given_up(&t, 3),
               "preferred zone zone-b or zone-c, preferred zone zone-a, preferred arch NotIn "
               "[arm64]");
}

TEST(every_term_is_tried_before_a_preference_is_given_up)
{
    MODELLED t = { 0 };
    modelled_load(
        &t,
        POD(NODE_AFFINITY(REQUIRED(TERM(EXPR(ZONE, "In", "zone-a")) ", " TERM(
            EXPR(ZONE, "In", "zone-b"))) ", " PREFERRED(LIKES("1", EXPR(ARCH, "In", "arm64"))))),
        NULL);
    EXPECT_EQ(variant_count(&t), 4);
    EXPECT_STR(wants_text(&t, "p", 1), ARCH " In [arm64], " ZONE " In [zone-b]");
    EXPECT_STR(wants_text(&t, "p", 2), ZONE " In [zone-a]");
}

TEST(a_preference_against_what_is_required_is_passed_over)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  POD("  nodeSelector: {topology.kubernetes.io/zone: zone-a}\n" NODE_AFFINITY(
                      PREFERRED(LIKES("1", EXPR(ZONE, "In", "zone-b"))))),
                  NULL);
    EXPECT_EQ(variant_count(&t), 1);
    EXPECT_STR(wants_text(&t, "p", 0), ZONE " In [zone-a]");
    EXPECT_STR(given_up(&t, 0), "preferred zone zone-b");
}

#define EVERYTHING                                                                                                              \
    WORLD_POOL("web", "[]", "      taints: [{key: old, effect: PreferNoSchedule}]\n")                                           \
    WORLD_POD(                                                                                                                  \
        "p", "{app: web}", "{cpu: 1}",                                                                                          \
        "  affinity:\n"                                                                                                         \
        "    podAffinity: {" PREFERRED(NEAR("1", ZONE, "db") ", " NEAR(                                                         \
            "7", ZONE,                                                                                                          \
            "cache")) "}\n"                                                                                                     \
                      "    podAntiAffinity:\n"                                                                                  \
                      "      requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: " HOST                              \
                      ", labelSelector: {matchLabels: {app: web}}}]\n"                                                          \
                      "      " PREFERRED(NEAR(                                                                                  \
                          "3", ZONE,                                                                                            \
                          "web")) "\n"                                                                                          \
                                  "    nodeAffinity: {" PREFERRED(LIKES(                                                        \
                                      "1",                                                                                      \
                                      EXPR(                                                                                     \
                                          ZONE, "In",                                                                           \
                                          "zone-a"))) "}\n"                                                                     \
                                                      "  topologySpreadConstraints:\n"                                          \
                                                      "  - {maxSkew: 1, whenUnsatisfiable: ScheduleAnyway, topologyKey: one}\n" \
                                                      "  - {maxSkew: 1, whenUnsatisfiable: DoNotSchedule, topologyKey: must}\n" \
                                                      "  - {maxSkew: 1, whenUnsatisfiable: ScheduleAnyway, topologyKey: two}\n" \
                                                      "  - {maxSkew: 1, whenUnsatisfiable: ScheduleAnyway, topologyKey: three}\n")

TEST(preferences_are_given_up_in_a_fixed_order)
{
    static const char *const order[] = {
        "preferred affinity to app=cache by zone",
        "preferred affinity to app=db by zone",
        "preferred anti-affinity to app=web by zone",
        "preferred zone zone-a",
        "spread by one", /* then the last takes its place */
        "spread by three",
        "spread by two",
        "keeping off PreferNoSchedule taints",
    };
    MODELLED t = { 0 };
    AUTO_BUF so_far = { 0 };
    modelled_load(&t, EVERYTHING, NULL);
    EXPECT_EQ(variant_count(&t), 1 + KV_COUNT_OF(order));
    for (uint32_t i = 0; i < KV_COUNT_OF(order); i++) {
        buf_addf(&so_far, "%s%s", i ? ", " : "", order[i]);
        EXPECT_STR(given_up(&t, i + 1), so_far.p);
    }
    EXPECT_EQ(class_of_pod(&t, "p")->variants[0].owned_count, 8);
    EXPECT_STR(owned_text(&t, "p", KV_COUNT_OF(order)), "anti " HOST ", spread must");
}

TEST(preferences_can_be_ignored_from_the_start)
{
    MODELLED t = { 0 };
    modelled_load(&t, EVERYTHING, NULL);
    t.w.options.preferences = PREFERENCES_IGNORE;
    modelled_compile(&t);
    EXPECT_EQ(variant_count(&t), 2);
    EXPECT_STR(wants_text(&t, "p", 0), "");
    EXPECT_STR(owned_text(&t, "p", 0), "anti " HOST ", spread must");
    EXPECT_EQ(t.m.group_count, 2);
}

TEST(the_last_way_asks_only_for_what_is_required_however_many_there_are)
{
    MODELLED t = { 0 };
    AUTO_BUF yaml = { 0 };
    buf_addz(&yaml, POOL "---\napiVersion: v1\nkind: Pod\n"
                         "metadata: {name: p, namespace: default}\n"
                         "spec:\n  containers: [{name: c, image: i}]\n"
                         "  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuring"
                         "Execution: {nodeSelectorTerms: [");
    for (int i = 0; i < 100; i++)
        buf_addf(&yaml, "%s{matchExpressions: [{key: a, operator: NotIn, values: [v%d]}]}",
                 i ? ", " : "", i);
    buf_addz(&yaml, "]}, preferredDuringSchedulingIgnoredDuringExecution: [");
    for (int i = 0; i < 50; i++)
        buf_addf(&yaml,
                 "%s{weight: 1, preference: {matchExpressions: [{key: b, operator: NotIn, values: "
                 "[v%d]}]}}",
                 i ? ", " : "", i);
    buf_addz(&yaml, "]}}\n");
    modelled_load(&t, yaml.p, NULL);
    EXPECT_EQ(variant_count(&t), 200);
    EXPECT_STR(wants_text(&t, "p", 0), "a NotIn [v0], b NotIn [v0]");
    EXPECT_STR(wants_text(&t, "p", 100), "a NotIn [v0]");
    EXPECT_STR(wants_text(&t, "p", 199), "a NotIn [v99]");
}

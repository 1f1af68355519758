/* Topology terms: which are one, whom they find, which nodes and domains count. */
#include "sched/model_classes_testing.h"

#define POOL WORLD_POOL("web", "[]", "")
#define SPREAD(words) "  topologySpreadConstraints: [{maxSkew: 1, whenUnsatisfiable: " words "}]\n"
#define BY_ZONE                                                                                    \
    SPREAD("DoNotSchedule, topologyKey: " ZONE ", labelSelector: {matchLabels: {app: web}}")
#define WEB(name, more) WORLD_POD(name, "{app: web}", "{cpu: 1}", more)
#define AFFINITY(kind, terms)                                                                      \
    "  affinity: {" kind ": {requiredDuringSchedulingIgnoredDuringExecution: [" terms "]}}\n"
#define TERM(key, selector) "{topologyKey: " key ", labelSelector: {matchLabels: {" selector "}}}"
#define IN_NAMESPACE(ns, name, labels, more)                                                       \
    "---\napiVersion: v1\nkind: Pod\n"                                                             \
    "metadata: {name: " name ", namespace: " ns ", labels: " labels "}\n"                          \
    "spec:\n  containers: [{name: c, image: i}]\n" more
#define NAMESPACE(name, labels)                                                                    \
    "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: " name ", labels: " labels "}\n"

static bool finds(const struct modelled *t, const struct group *g, const char *pod)
{
    const struct pod_class *k = class_of_pod(t, pod);
    for (uint32_t i = 0; i < k->matched_count; i++) {
        if (&t->m.groups[k->matched[i]] == g)
            return true;
    }
    return false;
}

/* --- identity --- */

TEST(terms_are_one_group_exactly_when_they_say_the_same)
{
    static const struct {
        const char *spread;
        uint32_t groups;
    } cases[] = {
        { BY_ZONE, 1 },
        { SPREAD("ScheduleAnyway, topologyKey: " ZONE ", labelSelector: {matchLabels: {app: web}}"),
          1 },
        { SPREAD("DoNotSchedule, topologyKey: " ZONE
                 ", minDomains: 1, labelSelector: {matchLabels: {app: web}}"),
          1 },
        { SPREAD("DoNotSchedule, topologyKey: " ZONE
                 ", minDomains: 2, labelSelector: {matchLabels: {app: web}}"),
          2 },
        { SPREAD("DoNotSchedule, topologyKey: " HOST ", labelSelector: {matchLabels: {app: web}}"),
          2 },
        { SPREAD("DoNotSchedule, topologyKey: " ZONE ", labelSelector: {matchLabels: {app: db}}"),
          2 },
        { BY_ZONE "  nodeSelector: {kubernetes.io/arch: arm64}\n", 2 },
        { BY_ZONE "  tolerations: [{operator: Exists}]\n", 1 },
        { SPREAD("DoNotSchedule, nodeTaintsPolicy: Honor, topologyKey: " ZONE
                 ", labelSelector: {matchLabels: {app: web}}"),
          2 },
        { SPREAD("DoNotSchedule, nodeAffinityPolicy: Ignore, topologyKey: " ZONE
                 ", labelSelector: {matchLabels: {app: web}}") "  nodeSelector: "
                                                               "{kubernetes.io/arch: arm64}\n",
          1 },
        { "  topologySpreadConstraints: [{maxSkew: 2, whenUnsatisfiable: DoNotSchedule, "
          "topologyKey: " ZONE ", labelSelector: {matchLabels: {app: web}}}]\n",
          2 },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        MODELLED t = { 0 };
        AUTO_BUF yaml = { 0 };
        buf_addf(&yaml, "%s%s", POOL WEB("a", BY_ZONE) WEB("b", ""), cases[i].spread);
        modelled_load(&t, yaml.p, NULL);
        EXPECT_EQ(t.m.group_count, cases[i].groups);
    }
}

TEST(node_selectors_that_differ_in_a_value_have_groups_of_their_own)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  POOL WEB("a", BY_ZONE "  nodeSelector: {kubernetes.io/arch: arm64}\n")
                      WEB("b", BY_ZONE "  nodeSelector: {kubernetes.io/arch: amd64}\n"),
                  NULL);
    EXPECT_EQ(t.m.group_count, 2);
}

/* --- whom they find --- */

TEST(selectors_find_pods_by_their_labels)
{
    static const struct {
        const char *selector;
        bool web, db, bare;
    } cases[] = {
        { ", labelSelector: {matchLabels: {app: web}}", true, false, false },
        { ", labelSelector: {matchLabels: {app: web, tier: x}}", false, false, false },
        { ", labelSelector: {}", true, true, true },
        { "", false, false, false },
        { ", labelSelector: {matchExpressions: [{key: app, operator: In, values: [db, web, db]}]}",
          true, true, false },
        { ", labelSelector: {matchExpressions: [{key: app, operator: NotIn, values: [web]}]}",
          false, true, true },
        { ", labelSelector: {matchExpressions: [{key: app, operator: Exists}]}", true, true,
          false },
        { ", labelSelector: {matchExpressions: [{key: app, operator: DoesNotExist}]}", false, false,
          true },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        MODELLED t = { 0 };
        AUTO_BUF yaml = { 0 };
        buf_addf(&yaml, "%s%s%s}]\n",
                 POOL WEB("web", "") WORLD_POD("db", "{app: db, tier: x}", "{cpu: 2}", "")
                     WORLD_POD("bare", "{}", "{cpu: 3}", "")
                         WORLD_POD("owner", "{owner: 'yes'}", "{cpu: 4}",
                                   "  topologySpreadConstraints: [{maxSkew: 1, whenUnsatisfiable: "
                                   "DoNotSchedule, topologyKey: " ZONE),
                 cases[i].selector, "");
        modelled_load(&t, yaml.p, NULL);
        const struct group *g = the_group(&t, GROUP_SPREAD, ZONE);
        EXPECT_EQ(finds(&t, g, "web"), cases[i].web);
        EXPECT_EQ(finds(&t, g, "db"), cases[i].db);
        EXPECT_EQ(finds(&t, g, "bare"), cases[i].bare);
    }
}

TEST(label_keys_to_match_are_filled_in_from_the_owner)
{
#define KEYED(name, labels, keys)                                                                  \
    WORLD_POD(name, labels, "{cpu: 1}",                                                            \
              AFFINITY("podAntiAffinity",                                                          \
                       "{topologyKey: " ZONE ", labelSelector: {matchLabels: {app: web}}, " keys   \
                       "}"))
    MODELLED t = { 0 };
    modelled_load(&t,
                  POOL KEYED("owner", "{app: web, hash: one}", "matchLabelKeys: [hash, absent]")
                      WORLD_POD("same", "{app: web, hash: one}", "{cpu: 2}", "")
                          WORLD_POD("other", "{app: web, hash: two}", "{cpu: 3}", ""),
                  NULL);
    const struct group *g = the_group(&t, GROUP_ANTI, ZONE);
    EXPECT_TRUE(finds(&t, g, "owner"));
    EXPECT_TRUE(finds(&t, g, "same"));
    EXPECT_FALSE(finds(&t, g, "other"));

    MODELLED mis = { 0 };
    modelled_load(&mis,
                  POOL KEYED("owner", "{app: web, hash: one}", "mismatchLabelKeys: [hash]")
                      WORLD_POD("same", "{app: web, hash: one}", "{cpu: 2}", "")
                          WORLD_POD("other", "{app: web, hash: two}", "{cpu: 3}", ""),
                  NULL);
    g = the_group(&mis, GROUP_ANTI, ZONE);
    EXPECT_FALSE(finds(&mis, g, "owner"));
    EXPECT_FALSE(finds(&mis, g, "same"));
    EXPECT_TRUE(finds(&mis, g, "other"));
#undef KEYED
}

TEST(namespaces_are_the_pods_own_or_listed_or_selected)
{
    static const struct {
        const char *words;
        bool own, two, three;
    } cases[] = {
        { "", true, false, false },
        { ", namespaces: [two]", false, true, false },
        { ", namespaces: [two, default, nowhere]", true, true, false },
        { ", namespaceSelector: {}", true, true, true },
        { ", namespaceSelector: {matchLabels: {team: shop}}", false, true, false },
        { ", namespaces: [default], namespaceSelector: {matchLabels: {team: shop}}", true, true,
          false },
        /* Namespaces are labelled with their names, also those that are not among the manifests. */
        { ", namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: three}}", false, false,
          true },
        { ", namespaceSelector: {matchLabels: {team: nobody}}", false, false, false },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        MODELLED t = { 0 };
        AUTO_BUF yaml = { 0 };
        buf_addf(&yaml, "%s%s}]}}\n",
                 POOL NAMESPACE("two", "{team: shop}") IN_NAMESPACE("two", "p", "{app: web}", "")
                     IN_NAMESPACE("three", "p", "{app: web}", "  priority: 3\n")
                         WORLD_POD("own", "{app: web}", "{cpu: 2}", "") WORLD_POD(
                             "owner", "{}", "{cpu: 1}",
                             "  affinity: {podAffinity: "
                             "{requiredDuringSchedulingIgnoredDuringExecution: "
                             "[{topologyKey: " ZONE ", labelSelector: {matchLabels: {app: web}}"),
                 cases[i].words);
        modelled_load(&t, yaml.p, NULL);
        const struct group *g = the_group(&t, GROUP_AFFINITY, ZONE);
        EXPECT_EQ(finds(&t, g, "own"), cases[i].own);
        EXPECT_EQ(finds(&t, g, "two/p"), cases[i].two);
        EXPECT_EQ(finds(&t, g, "three/p"), cases[i].three);
    }
}

TEST(several_required_affinity_terms_find_only_pods_that_all_of_them_find)
{
    MODELLED t = { 0 };
    modelled_load(
        &t,
        POOL WORLD_POD("owner", "{a: x, b: x}", "{cpu: 1}",
                       AFFINITY("podAffinity", TERM(ZONE, "a: x") ", " TERM(HOST, "b: x")))
            WORLD_POD("one", "{a: x}", "{cpu: 2}", "")
                WORLD_POD("both", "{a: x, b: x}", "{cpu: 3}", ""),
        NULL);
    EXPECT_EQ(t.m.group_count, 2);
    EXPECT_EQ(class_of_pod(&t, "one")->matched_count, 0);
    EXPECT_STR(matched_text(&t, "both"), "affinity " HOST ", affinity " ZONE);
    EXPECT_STR(matched_text(&t, "owner"), "affinity " HOST ", affinity " ZONE);
    EXPECT_STR(owned_text(&t, "owner", 0), "affinity " HOST ", affinity " ZONE);
}

TEST(anti_affinity_terms_stand_each_by_itself_and_without_a_selector_for_nothing)
{
    MODELLED t = { 0 };
    modelled_load(
        &t,
        POOL WORLD_POD("owner", "{a: x}", "{cpu: 1}",
                       AFFINITY("podAntiAffinity",
                                TERM(ZONE, "a: x") ", " TERM(HOST, "b: x") ", {topologyKey: rack}"))
            WORLD_POD("one", "{a: x}", "{cpu: 2}", ""),
        NULL);
    EXPECT_STR(matched_text(&t, "one"), "anti " ZONE);
    EXPECT_STR(owned_text(&t, "owner", 0), "anti " HOST ", anti " ZONE);
}

/* --- bound pods --- */

TEST(anti_affinity_of_bound_pods_is_a_group_only_if_it_finds_a_pending_pod)
{
#define ON_NODE(name, labels, selector)                                                            \
    WORLD_POD(name, labels, "{cpu: 1}",                                                            \
              "  nodeName: here\n" AFFINITY("podAntiAffinity", TERM(ZONE, selector)))
    MODELLED t = { 0 };
    modelled_load(&t,
                  POOL WORLD_NODE("here", "zone-a", "", "cpu: 8") WEB("waits", "")
                      ON_NODE("keeps-off", "{}", "app: web")
                          ON_NODE("minds-others", "{}", "app: db"),
                  NULL);
    EXPECT_EQ(t.m.group_count, 1);
    const struct group *g = the_group(&t, GROUP_ANTI, ZONE);
    EXPECT_TRUE(finds(&t, g, "waits"));
    EXPECT_EQ(g->owners[domain_find(the_key(&t, ZONE), STR("zone-a"))], 1);
    EXPECT_EQ(class_of_pod(&t, "waits")->variants[0].owned_count, 0);
#undef ON_NODE
}

TEST(preferred_anti_affinity_of_bound_pods_keeps_nobody_off)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  POOL WORLD_NODE("here", "zone-a", "", "cpu: 8") WEB("waits", "")
                      WORLD_POD("b", "{}", "{cpu: 1}",
                                "  nodeName: here\n"
                                "  affinity: {podAntiAffinity: "
                                "{preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, "
                                "podAffinityTerm: " TERM(ZONE, "app: web") "}]}}\n"),
                  NULL);
    EXPECT_EQ(t.m.group_count, 0);
}

TEST(bound_pods_count_where_their_node_passes_the_filter)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  POOL WORLD_NODE("big", "zone-a", ", size: big", "cpu: 8")
                      WORLD_NODE("small", "zone-b", ", size: small", "cpu: 8")
                          WEB("b1", "  nodeName: big\n") WEB("s1", "  nodeName: small\n")
                              WEB("s2", "  nodeName: small\n")
                                  WEB("picky", BY_ZONE "  nodeSelector: {size: big}\n"),
                  NULL);
    const struct group *g = the_group(&t, GROUP_SPREAD, ZONE);
    EXPECT_EQ(matched_in(&t, g, "zone-a"), 1);
    EXPECT_EQ(matched_in(&t, g, "zone-b"), 0);
    EXPECT_STR(domains_text(&t, g), "zone-a");
}

/* --- domains --- */

TEST(domains_are_what_nodes_have_and_what_pools_can_launch)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  WORLD_POOL("two", "[{key: " ZONE ", operator: In, values: [zone-b, zone-c]}]", "")
                      WORLD_NODE("old", "zone-x", "", "cpu: 1") WEB("p", BY_ZONE),
                  NULL);
    const struct topology_key *key = the_key(&t, ZONE);
    EXPECT_EQ(key->domain_count, 3);
    EXPECT_STR(domains_text(&t, the_group(&t, GROUP_SPREAD, ZONE)), "zone-b zone-c zone-x");
    EXPECT_STR(t.m.keys[KEY_HOSTNAME].name, HOST);
    EXPECT_EQ(t.m.keys[KEY_HOSTNAME].domain_count, 0);
}

TEST(a_zone_counts_only_if_something_can_be_had_there)
{
    static const char types[] = "instanceTypes:\n" WORLD_TYPE(
        "one", "amd64",
        "cpu: 4, memory: 8Gi, pods: 10") "  offerings:\n"
                                         "  - {zone: zone-a, capacityType: on-demand, price: 1}\n"
                                         "  - {zone: zone-b, capacityType: on-demand, price: 1, available: false}\n"
                                         "  - {zone: zone-c, capacityType: spot, price: 1}\n";
    MODELLED t = { 0 };
    modelled_load(&t,
                  POOL WEB("p", BY_ZONE)
                      WEB("q", BY_ZONE "  nodeSelector: {karpenter.sh/capacity-type: spot}\n"),
                  types);
    const struct pod_class *p = class_of_pod(&t, "p"), *q = class_of_pod(&t, "q");
    EXPECT_STR(domains_text(&t, &t.m.groups[p->variants[0].owned[0]]), "zone-a zone-c");
    EXPECT_STR(domains_text(&t, &t.m.groups[q->variants[0].owned[0]]), "zone-c");
}

TEST(domains_of_a_pools_own_label_are_its_values)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  WORLD_POOL("a", "[{key: rack, operator: In, values: [r1, r2]}]", "")
                      WORLD_POOL("b", "[{key: rack, operator: Exists}]", "")
                          WEB("p", SPREAD("DoNotSchedule, topologyKey: rack, labelSelector: "
                                          "{matchLabels: {app: web}}")),
                  NULL);
    EXPECT_STR(domains_text(&t, the_group(&t, GROUP_SPREAD, "rack")), "r1 r2");
}

TEST(taints_of_pools_count_only_if_the_spread_honors_them)
{
#define TAINTED                                                                                    \
    WORLD_POOL("free", "[{key: " ZONE ", operator: In, values: [zone-a]}]", "")                    \
    WORLD_POOL("gpu", "[{key: " ZONE ", operator: In, values: [zone-b]}]",                         \
               "      taints: [{key: gpu, effect: NoSchedule}]\n")
#define HONOR                                                                                      \
    SPREAD("DoNotSchedule, nodeTaintsPolicy: Honor, topologyKey: " ZONE                            \
           ", labelSelector: {matchLabels: {app: web}}")
    MODELLED t = { 0 };
    modelled_load(&t,
                  TAINTED WEB("ignores", BY_ZONE) WEB("honors", HONOR)
                      WEB("bears", HONOR "  tolerations: [{key: gpu, operator: Exists}]\n"),
                  NULL);
    static const struct {
        const char *pod, *domains;
    } cases[] = { { "ignores", "zone-a zone-b" },
                  { "honors", "zone-a" },
                  { "bears", "zone-a zone-b" } };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        const struct pod_class *k = class_of_pod(&t, cases[i].pod);
        EXPECT_STR(domains_text(&t, &t.m.groups[k->variants[0].owned[0]]), cases[i].domains);
    }
#undef HONOR
#undef TAINTED
}

TEST(a_node_without_the_label_of_another_spread_of_the_pod_does_not_count)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  WORLD_POOL("web", "[{key: rack, operator: In, values: [r1]}]", "")
                      WORLD_NODE("bare", "zone-x", "", "cpu: 1")
                          WORLD_NODE("racked", "zone-y", ", rack: r2", "cpu: 1")
                              WEB("x", "  nodeName: bare\n")
                                  WEB("p", "  topologySpreadConstraints:\n"
                                           "  - {maxSkew: 1, whenUnsatisfiable: DoNotSchedule, "
                                           "topologyKey: " ZONE
                                           ", labelSelector: {matchLabels: {app: web}}}\n"
                                           "  - {maxSkew: 1, whenUnsatisfiable: DoNotSchedule, "
                                           "topologyKey: rack, labelSelector: {matchLabels: {app: "
                                           "web}}}\n"),
                  NULL);
    const struct group *g = the_group(&t, GROUP_SPREAD, ZONE);
    EXPECT_STR(domains_text(&t, g), "zone-a zone-b zone-c zone-y");
    EXPECT_EQ(matched_in(&t, g, "zone-x"), 0);
}

TEST(required_node_affinity_terms_are_a_choice_for_the_filter)
{
    MODELLED t = { 0 };
    modelled_load(
        &t,
        POOL WEB("p", BY_ZONE
                 "  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
                 "{nodeSelectorTerms: [{matchExpressions: [{key: " ZONE
                 ", operator: In, values: [zone-a]}]}, {matchExpressions: [{key: " ZONE
                 ", operator: In, values: [zone-c]}, {key: kubernetes.io/arch, operator: NotIn, "
                 "values: [arm64]}]}]}}}\n"),
        NULL);
    EXPECT_STR(domains_text(&t, the_group(&t, GROUP_SPREAD, ZONE)), "zone-a zone-c");
}

/* --- order --- */

TEST(groups_and_keys_do_not_depend_on_the_order_of_pods)
{
    MODELLED t = { 0 };
    modelled_load(
        &t,
        POOL WEB("a", BY_ZONE) WORLD_POD("b", "{app: db}", "{cpu: 1}",
                                         AFFINITY("podAntiAffinity", TERM("rack", "app: db")))
            WORLD_POD("c", "{app: web}", "{cpu: 1}", AFFINITY("podAffinity", TERM(HOST, "app: db")))
                IN_NAMESPACE("other", "d", "{app: web}", BY_ZONE),
        NULL);
    AUTO_BUF before = { 0 }, after = { 0 };
    for (int turn = 0; turn < 2; turn++) {
        struct buf *out = turn ? &after : &before;
        for (uint32_t i = 0; i < t.m.group_count; i++)
            buf_addf(out, "%d %.*s; ", t.m.groups[i].kind,
                     STR_ARG(t.m.keys[t.m.groups[i].key].name));
        static const char *const pods[] = { "a", "b", "c", "other/d" };
        for (size_t i = 0; i < KV_COUNT_OF(pods); i++) {
            const struct pod_class *k = class_of_pod(&t, pods[i]);
            for (uint32_t g = 0; g < k->matched_count; g++)
                buf_addf(out, "%s in %u; ", pods[i], k->matched[g]);
        }
        for (size_t i = 0; i < t.w.pods.count / 2; i++) {
            const struct pod *swap = t.w.pods.items[i];
            t.w.pods.items[i] = t.w.pods.items[t.w.pods.count - 1 - i];
            t.w.pods.items[t.w.pods.count - 1 - i] = swap;
        }
        modelled_compile(&t);
    }
    EXPECT_EQ(t.m.group_count, 4);
    EXPECT_STR(buf_str(&after), before.p);
}

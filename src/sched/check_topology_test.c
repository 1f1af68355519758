/* Topology terms, judged pod by pod in the order of the plan. */
#include "sched/check_testing.h"

#define ZONE(z) "topology.kubernetes.io/zone=" z
#define POOL WORLD_POOL("web", "[]", "")
#define NODE(name, zone) WORLD_NODE(name, zone, "", "cpu: 40, memory: 80Gi")
#define SELECT(labels) "labelSelector: {matchLabels: {" labels "}}"
#define SPREAD(key, more)                                                                          \
    "  topologySpreadConstraints: [{maxSkew: 1, topologyKey: " key ", whenUnsatisfiable: "         \
    "DoNotSchedule, " more "}]\n"
#define SPREAD_ZONE(more) SPREAD("topology.kubernetes.io/zone", SELECT("app: x") more)
#define AFFINITY(kind, terms)                                                                      \
    "  affinity: {" kind ": {requiredDuringSchedulingIgnoredDuringExecution: [" terms "]}}\n"
#define BY(key, more) "{topologyKey: " key ", " more "}"
#define BY_ZONE(more) BY("topology.kubernetes.io/zone", more)
#define BY_HOST(more) BY("kubernetes.io/hostname", more)
#define X(name, more) WORLD_POD(name, "{app: x}", "{cpu: 1}", more)
#define Z(name, more) WORLD_POD(name, "{app: z}", "{cpu: 1}", more)
#define ON(node) "  nodeName: " node "\n"

/* Pods on nodes: "n1: a b, n2: c". The order of the plan is that of the text. */
static void expect_on_nodes(const char *yaml, const char *where, const char *maybe_words)
{
    WORLD w;
    DRAFT d;
    world_load(&w, yaml, WORLD_TYPES_SMALL);
    draft_begin(&d, &w);
    struct str rest = str_of(where), item, node, pods;
    while (draft_word(&rest, ',', &item)) {
        EXPECT_TRUE(str_cut(str_trim(item), ':', &node, &pods));
        draft_existing(&d, arena_str(&w.arena, node).p, arena_str(&w.arena, str_trim(pods)).p);
    }
    if (maybe_words)
        expect_wrong(&d, maybe_words);
    else
        expect_right(&d);
}

#define THREE NODE("n1", "zone-a") NODE("n2", "zone-b") NODE("n3", "zone-c")

/* --- spread --- */

TEST(spread_keeps_to_its_skew_at_every_turn)
{
    const char *yaml = THREE X("a", SPREAD_ZONE("")) X("b", SPREAD_ZONE("")) X("c", SPREAD_ZONE(""))
        X("d", SPREAD_ZONE(""));
    expect_on_nodes(
        yaml, "n1: a d, n2: b, n3: c",
        "pod default/d on node n1: its topology spread allows a skew of 1 over "
        "topology.kubernetes.io/zone, and zone-a would have 2 pods where another has 0");
    WORLD w;
    DRAFT d;
    world_load(&w, yaml, WORLD_TYPES_SMALL);
    draft_begin(&d, &w);
    draft_existing(&d, "n1", "a d");
    draft_existing(&d, "n2", "b");
    draft_existing(&d, "n3", "c");
    d.order.count = 0;
    draft_pods(&d, "a b c d", true); /* the same places, in an order that is right */
    expect_right(&d);
}

TEST(spread_counts_pods_that_are_there_and_not_those_being_deleted)
{
    const char *there = THREE X("old", ON("n1")) X("a", SPREAD_ZONE(""));
    expect_on_nodes(there, "n2: a", NULL);
    expect_on_nodes(there, "n1: a", "zone-a would have 2 pods where another has 0");
    const char *leaving =
        THREE "---\napiVersion: v1\nkind: Pod\nmetadata: {name: old, namespace: default, labels: "
              "{app: x}, deletionTimestamp: '2026-01-02T03:04:05Z', finalizers: [a/b]}\n"
              "spec: {nodeName: n1, containers: [{name: c, image: i}]}\n" X("a", SPREAD_ZONE(""));
    expect_on_nodes(leaving, "n1: a", NULL);
    const char *other_namespace = THREE
        "---\napiVersion: v1\nkind: Pod\nmetadata: {name: old, namespace: other, labels: "
        "{app: x}}\nspec: {nodeName: n1, containers: [{name: c, image: i}]}\n" X("a",
                                                                                 SPREAD_ZONE(""));
    expect_on_nodes(other_namespace, "n1: a", NULL);
}

TEST(spread_without_itself_counts_the_others_only)
{
    /* `a` is not found by its own selector. */
    const char *yaml = THREE X("old", ON("n1")) Z("a", SPREAD_ZONE(""));
    expect_on_nodes(yaml, "n1: a", NULL);
    const char *two = THREE X("old", ON("n1")) X("old2", ON("n1")) Z("a", SPREAD_ZONE(""));
    expect_on_nodes(two, "n1: a", "zone-a would have 2 pods where another has 0");
}

TEST(spread_with_min_domains_starts_from_nothing_while_there_are_too_few)
{
    const char *enough = NODE("n1", "zone-a") NODE("n2", "zone-b") X("o1", ON("n1"))
        X("o2", ON("n2")) X("a", SPREAD_ZONE(", minDomains: 2"));
    const char *few = NODE("n1", "zone-a") NODE("n2", "zone-b") X("o1", ON("n1")) X("o2", ON("n2"))
        X("a", SPREAD_ZONE(", minDomains: 3"));
    expect_on_nodes(enough, "n1: a", NULL);
    expect_on_nodes(few, "n1: a", "zone-a would have 2 pods where another has 0");
}

TEST(spread_tells_revisions_apart_by_match_label_keys)
{
#define REVISION(name, rev, more) WORLD_POD(name, "{app: x, rev: " rev "}", "{cpu: 1}", more)
    const char *yaml = THREE REVISION("old", "one", ON("n1"))
        REVISION("a", "two", SPREAD_ZONE(", matchLabelKeys: [rev]"));
    const char *same = THREE REVISION("old", "two", ON("n1"))
        REVISION("a", "two", SPREAD_ZONE(", matchLabelKeys: [rev]"));
    expect_on_nodes(yaml, "n1: a", NULL);
    expect_on_nodes(same, "n1: a", "zone-a would have 2 pods where another has 0");
}

TEST(spread_leaves_out_nodes_by_affinity_and_taints)
{
#define NOT_C                                                                                      \
    "  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "                 \
    "{nodeSelectorTerms: [{matchExpressions: [{key: topology.kubernetes.io/zone, operator: "       \
    "NotIn, values: [zone-c]}]}]}}}\n"
#define OLD X("o1", ON("n1")) X("o2", ON("n2"))
    /* zone-c has none, and its nodes do not count. */
    expect_on_nodes(THREE OLD X("a", NOT_C SPREAD_ZONE("")), "n1: a", NULL);
    expect_on_nodes(THREE OLD X("a", NOT_C SPREAD_ZONE(", nodeAffinityPolicy: Ignore")), "n1: a",
                    "zone-a would have 2 pods where another has 0");
    const char *tainted =
        "---\napiVersion: v1\nkind: Node\nmetadata: {name: n3, labels: "
        "{topology.kubernetes.io/zone: zone-c}}\nspec: {taints: [{key: t, effect: NoSchedule}]}\n"
        "status: {allocatable: {cpu: 4, pods: 9}}\n";
    AUTO_BUF yaml = { 0 };
    buf_addf(&yaml, NODE("n1", "zone-a") NODE("n2", "zone-b") "%s" OLD X("a", SPREAD_ZONE("")),
             tainted);
    expect_on_nodes(yaml.p, "n1: a", "zone-a would have 2 pods where another has 0");
    buf_clear(&yaml);
    buf_addf(&yaml,
             NODE("n1", "zone-a")
                 NODE("n2", "zone-b") "%s" OLD X("a", SPREAD_ZONE(", nodeTaintsPolicy: Honor")),
             tainted);
    expect_on_nodes(yaml.p, "n1: a", NULL);
}

TEST(spread_with_an_empty_selector_holds_nobody_back)
{
    /* kube-scheduler counts nothing for it. */
    expect_on_nodes(THREE OLD X("a", SPREAD("topology.kubernetes.io/zone", "labelSelector: {}")),
                    "n1: a", NULL);
}

TEST(spread_needs_its_label_on_the_node)
{
    expect_on_nodes(NODE("n1", "zone-a") X("a", SPREAD("rack", SELECT("app: x"))), "n1: a",
                    "pod default/a: its topology spread is over rack, which node n1 does not have");
    expect_on_nodes(THREE OLD X("a", SPREAD("kubernetes.io/hostname", SELECT("app: x"))), "n3: a",
                    NULL);
    expect_on_nodes(THREE OLD X("a", SPREAD("kubernetes.io/hostname", SELECT("app: x"))), "n2: a",
                    "n2 would have 2 pods where another has 0");
}

TEST(preferences_are_never_findings)
{
    expect_on_nodes(THREE OLD X("a",
                                "  topologySpreadConstraints: [{maxSkew: 1, topologyKey: "
                                "topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway, "
                                "labelSelector: {matchLabels: {app: x}}}]\n"
                                "  affinity: {podAntiAffinity: "
                                "{preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, "
                                "podAffinityTerm: {topologyKey: topology.kubernetes.io/zone, "
                                "labelSelector: {matchLabels: {app: x}}}}]}}\n"),
                    "n1: a", NULL);
}

/* --- affinity --- */

TEST(affinity_wants_a_pod_in_the_domain)
{
    const char *yaml =
        THREE Z("old", ON("n1")) X("a", AFFINITY("podAffinity", BY_ZONE(SELECT("app: z"))));
    expect_on_nodes(yaml, "n1: a", NULL);
    expect_on_nodes(yaml, "n2: a",
                    "pod default/a on node n2: its pod affinity finds no pod in "
                    "topology.kubernetes.io/zone zone-b");
}

TEST(the_first_pod_of_an_affinity_to_itself_may_go_anywhere)
{
#define SELF AFFINITY("podAffinity", BY_ZONE(SELECT("app: x")))
    expect_on_nodes(THREE X("a", SELF) X("b", SELF), "n1: a b", NULL);
    expect_on_nodes(THREE X("a", SELF) X("b", SELF), "n1: a, n2: b",
                    "pod default/b on node n2: its pod affinity finds no pod");
    /* Somebody is there already: the exception is over. */
    expect_on_nodes(THREE X("old", ON("n3")) X("a", SELF), "n1: a",
                    "its pod affinity finds no pod");
    /* Not found by its own terms: no exception. */
    expect_on_nodes(THREE Z("a", SELF), "n1: a", "its pod affinity finds no pod");
}

TEST(all_affinity_terms_look_for_the_same_pod)
{
#define BOTH AFFINITY("podAffinity", BY_ZONE(SELECT("app: x")) ", " BY_HOST(SELECT("tier: t")))
    /* One pod for each term is not enough: kube-scheduler wants one that both find. */
    expect_on_nodes(THREE X("o1", ON("n1")) WORLD_POD("o2", "{tier: t}", "{cpu: 1}", ON("n1"))
                        Z("a", BOTH),
                    "n1: a", "its pod affinity finds no pod");
    expect_on_nodes(THREE WORLD_POD("o1", "{app: x, tier: t}", "{cpu: 1}", ON("n1")) Z("a", BOTH),
                    "n1: a", NULL);
}

/* --- anti-affinity --- */

TEST(anti_affinity_holds_both_ways)
{
#define APART AFFINITY("podAntiAffinity", BY_ZONE(SELECT("app: z")))
    expect_on_nodes(THREE Z("old", ON("n1")) X("a", APART), "n2: a", NULL);
    expect_on_nodes(THREE Z("old", ON("n1")) X("a", APART), "n1: a",
                    "pod default/a on node n1: its pod anti-affinity finds pod default/old in "
                    "topology.kubernetes.io/zone zone-a");
    expect_on_nodes(THREE X("old", ON("n1") APART) Z("a", ""), "n1: a",
                    "pod default/a on node n1: the pod anti-affinity of pod default/old in "
                    "topology.kubernetes.io/zone zone-a finds it");
    expect_on_nodes(THREE X("a", APART) Z("b", ""), "n1: a b",
                    "the pod anti-affinity of pod "
                    "default/a");
}

TEST(anti_affinity_sees_pods_that_are_being_deleted_and_not_those_that_are_done)
{
#define OLD_Z(more)                                                                                \
    "---\napiVersion: v1\nkind: Pod\nmetadata: {name: old, namespace: default, labels: {app: "     \
    "z}" more "}\nspec: {nodeName: n1, containers: [{name: c, image: i}]}\n"
    expect_on_nodes(THREE OLD_Z(", deletionTimestamp: '2026-01-02T03:04:05Z', finalizers: [a/b]")
                        X("a", APART),
                    "n1: a", "its pod anti-affinity finds pod default/old");
    expect_on_nodes(THREE OLD_Z("") "status: {phase: Succeeded}\n" X("a", APART), "n1: a", NULL);
}

TEST(terms_look_into_the_namespaces_they_name)
{
#define ELSEWHERE(name, ns)                                                                        \
    "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " name ", namespace: " ns                    \
    ", labels: {app: z}}\nspec: {nodeName: n1, containers: [{name: c, image: i}]}\n"
#define NAMESPACE(name, labels)                                                                    \
    "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: " name ", labels: {" labels "}}\n"
#define APART_IN(more) AFFINITY("podAntiAffinity", BY_ZONE(SELECT("app: z") more))
    const char *finds = "its pod anti-affinity finds pod shop/old";
    expect_on_nodes(THREE ELSEWHERE("old", "shop") X("a", APART_IN("")), "n1: a", NULL);
    expect_on_nodes(THREE ELSEWHERE("old", "shop") X("a", APART_IN(", namespaces: [shop]")),
                    "n1: a", finds);
    expect_on_nodes(THREE ELSEWHERE("old", "shop") X("a", APART_IN(", namespaceSelector: {}")),
                    "n1: a", finds);
    const char *selector = ", namespaceSelector: {matchLabels: {team: t}}";
    AUTO_BUF yaml = { 0 };
    buf_addf(&yaml,
             THREE NAMESPACE("shop", "team: t") ELSEWHERE("old", "shop") X("a", APART_IN("%s")),
             selector);
    expect_on_nodes(yaml.p, "n1: a", finds);
    buf_clear(&yaml);
    buf_addf(&yaml,
             THREE NAMESPACE("shop", "team: u") ELSEWHERE("old", "shop") X("a", APART_IN("%s")),
             selector);
    expect_on_nodes(yaml.p, "n1: a", NULL);
    expect_on_nodes(THREE ELSEWHERE("old", "shop")
                        X("a", APART_IN(", namespaceSelector: {matchLabels: "
                                        "{kubernetes.io/metadata.name: shop}}")),
                    "n1: a", finds);
}

TEST(match_and_mismatch_label_keys_narrow_a_term)
{
#define TENANT(name, t, more) WORLD_POD(name, "{app: z, tenant: " t "}", "{cpu: 1}", more)
    const char *same = ", matchLabelKeys: [tenant]", *other = ", mismatchLabelKeys: [tenant]";
    static const struct {
        const char *tenant;
        bool mismatch, finds;
    } cases[] = { { "one", false, true },
                  { "two", false, false },
                  { "one", true, false },
                  { "two", true, true } };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO_BUF yaml = { 0 };
        buf_addf(&yaml, THREE TENANT("old", "%s", ON("n1")) TENANT("a", "one", APART_IN("%s")),
                 cases[i].tenant, cases[i].mismatch ? other : same);
        expect_on_nodes(yaml.p, "n1: a", cases[i].finds ? "finds pod default/old" : NULL);
    }
}

/* --- launches --- */

/* Pods on launches: "zone-a: a b, zone-b|zone-c: c", dearest first. */
static void expect_on_launches(const char *yaml, const char *where, const char *maybe_words)
{
    WORLD w;
    DRAFT d;
    AUTO_BUF all = { 0 };
    buf_addf(&all, POOL "%s", yaml);
    world_load(&w, all.p, WORLD_TYPES_SMALL);
    draft_begin(&d, &w);
    struct str rest = str_of(where), item, zones, pods;
    while (draft_word(&rest, ',', &item)) {
        EXPECT_TRUE(str_cut(str_trim(item), ':', &zones, &pods));
        AUTO_BUF requirements = { 0 };
        buf_addz(&requirements, "karpenter.sh/capacity-type=on-demand " ZONE(""));
        buf_add(&requirements, zones);
        for (size_t i = 0; i < requirements.len; i++) {
            if (requirements.p[i] == '|')
                requirements.p[i] = ',';
        }
        draft_launch(&d, "web", "medium", arena_str(&w.arena, buf_str(&requirements)).p,
                     arena_str(&w.arena, str_trim(pods)).p);
    }
    if (maybe_words)
        expect_wrong(&d, maybe_words);
    else
        expect_right(&d);
}

TEST(launches_are_domains_like_nodes)
{
    const char *yaml = X("a", SPREAD_ZONE("")) X("b", SPREAD_ZONE("")) X("c", SPREAD_ZONE(""));
    expect_on_launches(yaml, "zone-a: a, zone-b: b, zone-c: c", NULL);
    expect_on_launches(yaml, "zone-a: a, zone-a: b, zone-b: c",
                       "pod default/b on launch 1 of pool web: its topology spread allows a skew "
                       "of 1");
    const char *hosts = X("a", AFFINITY("podAntiAffinity", BY_HOST(SELECT("app: x"))))
        X("b", AFFINITY("podAntiAffinity", BY_HOST(SELECT("app: x"))));
    expect_on_launches(hosts, "zone-a: a, zone-a: b", NULL);
    expect_on_launches(hosts, "zone-a: a b",
                       "its pod anti-affinity finds pod default/a in "
                       "kubernetes.io/hostname launch 0 of pool web");
}

TEST(a_pod_with_a_term_over_zones_is_not_on_a_launch_that_leaves_the_zone_open)
{
    const char *words = "and launch 0 of pool web may be one of several";
    expect_on_launches(X("a", SPREAD_ZONE("")), "zone-a|zone-b: a", words);
    expect_on_launches(X("a", SELF), "zone-a|zone-b: a", words);
    expect_on_launches(X("a", APART), "zone-a|zone-b: a", words);
    expect_on_launches(X("a", ""), "zone-a|zone-b: a", NULL);
}

TEST(an_open_zone_counts_where_it_hurts)
{
    /* The anti-affinity of `a` in zone-a: `b` must not turn up there. */
    const char *apart = X("a", APART) Z("b", "");
    expect_on_launches(apart, "zone-a: a, zone-b|zone-c: b", NULL);
    expect_on_launches(apart, "zone-a: a, zone-a|zone-b: b",
                       "the pod anti-affinity of pod "
                       "default/a in "
                       "topology.kubernetes.io/zone zone-a");
    /* The spread of `a` and `b` counts `c`, wherever it will be: it has to come last. */
    const char *spread = X("a", SPREAD_ZONE("")) X("b", SPREAD_ZONE("")) X("c", "");
    expect_on_launches(spread, "zone-a: a, zone-b: b, zone-a|zone-b: c", NULL);
    expect_on_launches(spread, "zone-a|zone-b: c, zone-b: b, zone-a: a",
                       "zone-b would have 2 pods where another has 0");
    /* A zone that it may open has no pods yet: then the others have too many. */
    const char *opened =
        X("a", SPREAD_ZONE("")) X("b", SPREAD_ZONE("")) X("c", SPREAD_ZONE("")) Z("d", "");
    expect_on_launches(opened, "zone-a: a c, zone-b: b, zone-b|zone-c: d",
                       "zone-a would have 2 pods");
}

TEST(an_open_zone_does_not_count_for_pods_that_do_not_want_it)
{
    WORLD w;
    DRAFT d;
    world_load(&w,
               POOL X("a", NOT_C SPREAD_ZONE("")) X("b", NOT_C SPREAD_ZONE(""))
                   X("c", NOT_C SPREAD_ZONE("")) Z("d", ""),
               WORLD_TYPES_SMALL);
    draft_begin(&d, &w);
    draft_launch(&d, "web", "medium", ZONE("zone-b"), "b");
    draft_launch(&d, "web", "medium", ZONE("zone-b,zone-c"), "d");
    draft_launch(&d, "web", "medium", ZONE("zone-a"), "a c");
    d.order.count = 0;
    draft_pods(&d, "a b c d", true);
    expect_right(&d);
}

TEST(a_zone_that_one_launch_alone_may_open_has_the_pods_of_that_launch)
{
    /* `c` comes first. Wherever it is, `a` in zone-a is fine: either there is no zone-b, or `c` is
     * in it. */
    WORLD w;
    DRAFT d;
    world_load(&w, POOL X("a", SPREAD_ZONE("")) X("c", ""), WORLD_TYPES_SMALL);
    draft_begin(&d, &w);
    draft_launch(&d, "web", "medium", "karpenter.sh/capacity-type=on-demand " ZONE("zone-a"), "a");
    draft_launch(&d, "web", "medium", "karpenter.sh/capacity-type=on-demand " ZONE("zone-a,zone-b"),
                 "c");
    d.order.count = 0;
    draft_pods(&d, "c a", true);
    expect_right(&d);
}

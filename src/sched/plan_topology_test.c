/* Who may be near whom, in worlds small enough to judge by hand: hosts, affinity, spreading. Every plan
 * here is also judged by the checker (world_plan). */
#include "sched/plan_testing.h"

/* --- hosts --- */

TEST(plan_puts_pods_with_the_same_host_port_on_different_hosts)
{
    WORLD w;
    world_load(&w, WORLD_POOL("p", NO_POOL_RULES, ""), WORLD_TYPES_SMALL);
    world_add_pods(&w, 3, "a",
                   "spec: {containers: [{name: c, image: i, ports: [{hostPort: 80, "
                   "containerPort: 80}], resources: {requests: {cpu: 100m}}}]}\n");
    EXPECT_EQ(world_plan(&w)->launch_count, 3);
}

TEST(plan_keeps_pods_apart_that_do_not_want_each_other)
{
    WORLD w;
    world_load(&w, WORLD_POOL("p", NO_POOL_RULES, ""), WORLD_TYPES_SMALL);
    world_add_pods(&w, 4, "a",
                   LABELLED
                   "spec: {" SMALL_CONTAINER ", affinity: {podAntiAffinity: "
                   "{requiredDuringSchedulingIgnoredDuringExecution: " SELF_TERM(HOST) "}}}\n");
    EXPECT_EQ(world_plan(&w)->launch_count, 4);
}

TEST(plan_fills_the_nodes_of_exclusive_pods_with_others)
{
    WORLD w;
    world_load(&w, WORLD_POOL("p", NO_POOL_RULES, ""), WORLD_TYPES_SMALL);
    world_add_pods(&w, 4, "a",
                   LABELLED
                   "spec: {" SMALL_CONTAINER ", affinity: {podAntiAffinity: "
                   "{requiredDuringSchedulingIgnoredDuringExecution: " SELF_TERM(HOST) "}}}\n");
    world_add_pods(&w, 40, "b", "spec: {" SMALL_CONTAINER "}\n");
    EXPECT_EQ(world_plan(&w)->launch_count, 4);
}

TEST(plan_keeps_away_from_running_pods_that_do_not_want_company)
{
    WORLD w;
    world_load(
        &w,
        WORLD_POOL("p", NO_POOL_RULES, "") WORLD_NODE("n1", "zone-a", "", "cpu: 4, memory: 8Gi")
            WORLD_POD("lone", "{}", "{cpu: 1}",
                      "  nodeName: n1\n  affinity: {podAntiAffinity: "
                      "{requiredDuringSchedulingIgnoredDuringExecution: " SELF_TERM(HOST) "}}\n")
                WORLD_POD("a", "{app: a}", "{cpu: 1}", "")
                    WORLD_POD("b", "{app: b}", "{cpu: 1}", ""),
        WORLD_TYPES_SMALL);
    const struct plan *plan = world_plan(&w);
    EXPECT_Z(home(&w, plan, "a"), "launch 0");
    EXPECT_Z(home(&w, plan, "b"), "node n1");
}

TEST(plan_puts_pods_that_want_each_other_on_one_host_that_is_large_enough)
{
    WORLD w;
    world_load(&w, WORLD_POOL("p", NO_POOL_RULES, ""), WORLD_TYPES_SMALL);
    world_add_pods(&w, 7, "a",
                   LABELLED
                   "spec: {containers: [{name: c, image: i, resources: {requests: "
                   "{cpu: 1}}}], affinity: {podAffinity: "
                   "{requiredDuringSchedulingIgnoredDuringExecution: " SELF_TERM(HOST) "}}}\n");
    const struct plan *plan = world_plan(&w);
    EXPECT_EQ(plan->miss_count, 0);
    EXPECT_EQ(plan->launch_count, 1);
    EXPECT_STR(type_of(&w, plan, 0), "large");
}

TEST(plan_brings_pods_to_the_host_of_the_pod_they_want)
{
    WORLD w;
    world_load(&w, WORLD_POOL("p", NO_POOL_RULES, "") WORLD_POD("db", "{app: a}", "{cpu: 1}", ""),
               WORLD_TYPES_SMALL);
    world_add_pods(&w, 5, "web",
                   "spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}], "
                   "affinity: {podAffinity: "
                   "{requiredDuringSchedulingIgnoredDuringExecution: " SELF_TERM(HOST) "}}}\n");
    const struct plan *plan = world_plan(&w);
    EXPECT_EQ(plan->miss_count, 0);
    EXPECT_EQ(plan->launch_count, 1);
}

TEST(plan_says_when_nobody_is_there_that_a_pod_wants_to_be_near)
{
    WORLD w;
    world_load(&w, WORLD_POOL("p", NO_POOL_RULES, ""), WORLD_TYPES_SMALL);
    world_add_pods(&w, 1, "web",
                   "spec: {" SMALL_CONTAINER ", affinity: {podAffinity: "
                   "{requiredDuringSchedulingIgnoredDuringExecution: " SELF_TERM(ZONE) "}}}\n");
    EXPECT_Z(home(&w, world_plan(&w), "web-0"), "miss podAffinity");
}

TEST(plan_lets_affinity_reach_into_other_namespaces)
{
    WORLD w;
    world_load(
        &w,
        WORLD_POOL("p", NO_POOL_RULES, "") WORLD_NODE(
            "n1", "zone-b", "",
            "cpu: 1, memory: 8Gi") "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: data, labels: {team: db}}\n"
                                   "---\napiVersion: v1\nkind: Pod\nmetadata: {name: db, namespace: data, labels: {app: "
                                   "a}}\nspec: {nodeName: n1, containers: [{name: c, image: i, resources: {requests: "
                                   "{cpu: 900m}}}]}\n",
        WORLD_TYPES_SMALL);
    world_add_pods(&w, 2, "web",
                   "spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}], "
                   "affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
                   "[{topologyKey: " ZONE ", namespaceSelector: {matchLabels: {team: db}}, "
                   "labelSelector: {matchLabels: {app: a}}}]}}}\n");
    world_add_pods(&w, 1, "own",
                   "spec: {" SMALL_CONTAINER ", affinity: {podAffinity: "
                   "{requiredDuringSchedulingIgnoredDuringExecution: " SELF_TERM(ZONE) "}}}\n");
    const struct plan *plan = world_plan(&w);
    EXPECT_Z(zones(&w, plan, "web"), "0 2 0");
    EXPECT_Z(home(&w, plan, "own-0"), "miss podAffinity");
}

/* --- spreading --- */

#define SPREAD(key, skew, more)                                                                    \
    "topologySpreadConstraints: [{topologyKey: " key ", maxSkew: " skew                            \
    ", whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: a}}" more "}]"

TEST(plan_spreads_over_zones_within_the_skew)
{
    WORLD w;
    world_load(&w, WORLD_POOL("p", NO_POOL_RULES, ""), WORLD_TYPES_SMALL);
    world_add_pods(&w, 7, "a", LABELLED "spec: {" SMALL_CONTAINER ", " SPREAD(ZONE, "1", "") "}\n");
    EXPECT_Z(zones(&w, world_plan(&w), "a"), "3 2 2");
}

TEST(plan_spreads_against_what_is_running)
{
    WORLD w;
    world_load(&w,
               WORLD_POOL("p", NO_POOL_RULES, "")
                   WORLD_NODE("n1", "zone-a", "", "cpu: 2, memory: 4Gi")
                       WORLD_POD("r1", "{app: a}", "{cpu: 1}", "  nodeName: n1\n")
                           WORLD_POD("r2", "{app: a}", "{cpu: 900m}", "  nodeName: n1\n"),
               WORLD_TYPES_SMALL);
    world_add_pods(&w, 4, "a", LABELLED "spec: {" SMALL_CONTAINER ", " SPREAD(ZONE, "1", "") "}\n");
    EXPECT_Z(zones(&w, world_plan(&w), "a"), "0 2 2");
}

TEST(plan_spreads_over_hosts)
{
    WORLD w;
    world_load(&w, WORLD_POOL("p", NO_POOL_RULES, ""), WORLD_TYPES_SMALL);
    world_add_pods(&w, 6, "a", LABELLED "spec: {" SMALL_CONTAINER ", " SPREAD(HOST, "2", "") "}\n");
    EXPECT_EQ(world_plan(&w)->launch_count, 3);
}

TEST(plan_stops_spreading_where_a_zone_cannot_keep_up)
{
    WORLD w;
    world_load(&w,
               WORLD_POOL("p", "[{key: " ZONE ", operator: In, values: [zone-a, zone-b]}]", "")
                   WORLD_NODE("full", "zone-c", "", "cpu: 100m, memory: 4Gi"),
               WORLD_TYPES_SMALL);
    world_add_pods(&w, 5, "a",
                   LABELLED "spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "
                            "1}}}], " SPREAD(ZONE, "1", "") "}\n");
    const struct plan *plan = world_plan(&w);
    EXPECT_Z(zones(&w, plan, "a"),
             "1 1 0"); /* zone-c has a node, and none of the pods fits there */
    EXPECT_EQ(plan->misses[0].reasons[0].reason, REASON_TOPOLOGY_SPREAD);
}

TEST(plan_leaves_out_zones_that_the_pods_selector_rules_out_unless_told_to_count_them)
{
    WORLD w;
    world_load(&w, WORLD_POOL("p", NO_POOL_RULES, ""), WORLD_TYPES_SMALL);
    static const char selector[] =
        LABELLED "spec: {" SMALL_CONTAINER
                 ", affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
                 "{nodeSelectorTerms: [{matchExpressions: [{key: " ZONE
                 ", operator: In, values: [zone-a, zone-b]}]}]}}}, " SPREAD(ZONE, "1", "") "}\n";
    world_add_pods(&w, 4, "a", selector);
    EXPECT_Z(zones(&w, world_plan(&w), "a"), "2 2 0");
    world_done(&w);
    world_load(&w,
               WORLD_POOL("p", NO_POOL_RULES, "")
                   WORLD_NODE("full", "zone-b", "", "cpu: 50m, memory: 4Gi"),
               WORLD_TYPES_SMALL);
    world_add_pods(&w, 4, "a",
                   LABELLED "spec: {" SMALL_CONTAINER ", nodeSelector: {" ZONE
                            ": zone-a}, " SPREAD(ZONE, "1", ", nodeAffinityPolicy: Ignore") "}\n");
    EXPECT_Z(zones(&w, world_plan(&w), "a"), "1 0 0");
}

TEST(plan_wants_the_minimum_of_domains)
{
    WORLD w;
    world_load(&w, WORLD_POOL("p", "[{key: " ZONE ", operator: In, values: [zone-a]}]", ""),
               WORLD_TYPES_SMALL);
    world_add_pods(&w, 4, "a",
                   LABELLED "spec: {" SMALL_CONTAINER
                            ", " SPREAD(ZONE, "1", ", minDomains: 2") "}\n");
    EXPECT_Z(zones(&w, world_plan(&w), "a"), "1 0 0");
}

TEST(plan_spreads_revisions_apart_by_match_label_keys)
{
    WORLD w;
    world_load(&w, WORLD_POOL("p", NO_POOL_RULES, ""), WORLD_TYPES_SMALL);
#define REVISION(hash)                                                                             \
    "metadata: {labels: {app: a, rev: " hash "}}\nspec: {" SMALL_CONTAINER                         \
    ", " SPREAD(ZONE, "1", ", matchLabelKeys: [rev]") "}\n"
    world_add_pods(&w, 4, "a-old", REVISION("v1"));
    world_add_pods(&w, 4, "a-new", REVISION("v2"));
    const struct plan *plan = world_plan(&w);
    EXPECT_Z(zones(&w, plan, "a-old"), "2 1 1");
    EXPECT_Z(zones(&w, plan, "a-new"), "2 1 1");
}

TEST(plan_holds_to_soft_spreading_while_it_can)
{
    WORLD w;
    world_load(&w,
               WORLD_POOL("p", "[{key: " ZONE ", operator: In, values: [zone-a, zone-b]}]", "")
                   WORLD_NODE("full", "zone-c", "", "cpu: 100m, memory: 4Gi"),
               WORLD_TYPES_SMALL);
    world_add_pods(&w, 6, "a",
                   LABELLED "spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "
                            "1}}}], topologySpreadConstraints: [{topologyKey: " ZONE
                            ", maxSkew: 1, whenUnsatisfiable: ScheduleAnyway, labelSelector: "
                            "{matchLabels: {app: a}}}]}\n");
    const struct plan *plan = world_plan(&w);
    EXPECT_EQ(plan->miss_count, 0);
}

TEST(plan_keeps_others_out_of_zones_that_a_spread_would_then_have_to_use)
{
    /* A node of pool `wide` in zone-c would be a domain for the spread, whose pods bear no node there:
     * kube-scheduler counts tainted nodes too unless it is told not to. */
    WORLD w;
    world_load(
        &w,
        WORLD_POOL("narrow", "[{key: " ZONE ", operator: In, values: [zone-a, zone-b]}]", "")
            WORLD_POOL("wide", "[{key: " ZONE ", operator: In, values: [zone-b, zone-c]}]",
                       "      taints: [{key: batch, effect: NoSchedule}]\n")
                WORLD_POD("batch", "{}", "{cpu: 1}",
                          "  tolerations: [{key: batch, operator: Exists}]\n"
                          "  nodeSelector: {karpenter.sh/nodepool: wide}\n"),
        "instanceTypes:\n" WORLD_TYPE(
            "one", "amd64",
            "cpu: 4, memory: 8Gi, pods: 40") "  offerings:\n"
                                             "  - {zone: zone-a, capacityType: spot, price: 0.08}\n"
                                             "  - {zone: zone-b, capacityType: spot, price: 0.08}\n"
                                             "  - {zone: zone-c, capacityType: spot, price: 0.02}\n");
    world_add_pods(&w, 6, "a", LABELLED "spec: {" SMALL_CONTAINER ", " SPREAD(ZONE, "1", "") "}\n");
    const struct plan *plan = world_plan(&w);
    EXPECT_EQ(plan->miss_count, 0);
    EXPECT_Z(zones(&w, plan, "a"), "3 3 0");
}

/* Plans written by hand: the right ones pass, and each rule notices a plan that is broken in just that
 * way. */
#include "sched/check_testing.h"

#define ZONE(z) "topology.kubernetes.io/zone=" z
#define AMD "small medium large"

/* Three pods of 1 cpu, one pool. */
#define TRIO                                                                                       \
    WORLD_POOL("web", "[]", "")                                                                    \
    WORLD_POD("a", "{}", "{cpu: 1, memory: 1Gi}", "")                                              \
    WORLD_POD("b", "{}", "{cpu: 1, memory: 1Gi}", "")                                              \
    WORLD_POD("c", "{}", "{cpu: 1, memory: 1Gi}", "")

/* --- book-keeping --- */

TEST(a_plan_that_is_right_has_no_findings)
{
    WORLD w;
    DRAFT d;
    world_load(&w,
               TRIO WORLD_POD("big", "{}", "{cpu: 100}", "")
                   WORLD_POD("gated", "{}", "{cpu: 1}", "  schedulingGates: [{name: wait}]\n")
                       WORLD_NODE("n1", "zone-a", "", "cpu: 4, memory: 8Gi"),
               WORLD_TYPES_SMALL);
    draft_begin(&d, &w);
    draft_launch(&d, "web", AMD, "kubernetes.io/arch=amd64", "a b");
    draft_existing(&d, "n1", "c");
    draft_miss(&d, "big");
    draft_skip(&d, "gated", "scheduling gate");
    expect_right(&d);
}

TEST(every_pending_pod_is_in_the_plan_once)
{
    WORLD w;
    DRAFT d;
    world_load(&w, TRIO, WORLD_TYPES_SMALL);
    draft_begin(&d, &w);
    draft_launch(&d, "web", "medium", "", "a b");
    expect_wrong(&d, "pod default/c waits for a node and is nowhere in the plan");
    draft_miss(&d, "c");
    expect_right(&d);
    draft_launch(&d, "web", "small", "", "c");
    expect_wrong(&d, "pod default/c is in the plan twice: in launches and in misses");
}

TEST(pods_that_are_bound_or_not_for_us_are_not_placed)
{
    WORLD w;
    DRAFT d;
    world_load(&w,
               TRIO WORLD_NODE("n1", "zone-a", "", "cpu: 4, memory: 8Gi")
                   WORLD_POD("bound", "{}", "{cpu: 1}", "  nodeName: n1\n")
                       WORLD_POD("gated", "{}", "{cpu: 1}", "  schedulingGates: [{name: g}]\n"),
               WORLD_TYPES_SMALL);
    draft_begin(&d, &w);
    draft_launch(&d, "web", "large", "", "a b bound c gated");
    expect_wrong(&d, "pod default/bound is on node n1 already, and is in launches too");
    expect_wrong(&d, "pod default/gated is not for us and is in launches");
}

TEST(a_skip_says_what_is_so)
{
    static const char out[] =
        "  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
        "{nodeSelectorTerms: [{matchExpressions: [{key: karpenter.sh/nodepool, "
        "operator: DoesNotExist}]}]}}}\n";
    AUTO_BUF yaml = { 0 };
    buf_addf(&yaml,
             WORLD_POOL("web", "[]", "") WORLD_POD("a", "{}", "{cpu: 1}", "")
                 WORLD_POD("out", "{}", "{cpu: 1}", "%s"),
             out);
    buf_addz(&yaml, "---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: daemon\n  ownerReferences: "
                    "[{apiVersion: apps/v1, kind: DaemonSet, name: d, uid: u}]\n"
                    "spec: {containers: [{name: c, image: i}]}\n"
                    "---\napiVersion: v1\nkind: Pod\nmetadata: {name: done}\n"
                    "spec: {containers: [{name: c, image: i}]}\nstatus: {phase: Succeeded}\n"
                    "---\napiVersion: v1\nkind: Pod\nmetadata: {name: promised}\n"
                    "spec: {containers: [{name: c, image: i}]}\n"
                    "status: {nominatedNodeName: n1}\n");
    WORLD w;
    DRAFT d;
    world_load(&w, yaml.p, WORLD_TYPES_SMALL);
    draft_begin(&d, &w);
    draft_skip(&d, "a", "scheduling gate");
    draft_skip(&d, "daemon", "owned by a DaemonSet");
    draft_skip(&d, "done", "finished");
    draft_skip(&d, "out", "opted out of NodePools");
    draft_skip(&d, "promised", "nominated to a node");
    expect_wrong(&d, "pod default/a is skipped (scheduling gate), and that is not so");
    expect_wrong(&d, "pod default/a is skipped, and nothing says that it should be");
    d.skips.items[0].reason = STR("just because");
    expect_wrong(&d, "skipped for a reason that is not known");
    w.options.only_unschedulable = true;
    d.skips.items[0].reason = STR("not yet seen by the scheduler");
    expect_right(&d);
    d.skips.items[2].reason = STR("being deleted");
    expect_wrong(&d, "pod default/done is skipped (being deleted), and that is not so");
}

TEST(lists_are_in_their_order)
{
    WORLD w;
    world_load(&w,
               TRIO WORLD_POOL("heavy", "[]", "  weight: 9\n")
                   WORLD_NODE("n1", "zone-a", "", "cpu: 4, memory: 8Gi")
                       WORLD_NODE("n2", "zone-a", "", "cpu: 4, memory: 8Gi"),
               WORLD_TYPES_SMALL);
    DRAFT pods, prices, pools, nodes, misses;
    draft_begin(&pods, &w);
    draft_launch(&pods, "web", "medium", "", "b a c");
    expect_wrong(&pods, "pod default/a stands after pod default/b");

    draft_begin(&prices, &w);
    draft_launch(&prices, "web", "small", "", "a");
    draft_launch(&prices, "web", "medium", "", "b c");
    expect_wrong(&prices, "launch 1 stands after launch 0");

    draft_begin(&pools, &w);
    draft_launch(&pools, "web", "medium", "", "a b");
    draft_launch(&pools, "heavy", "small", "", "c");
    expect_wrong(&pools, "launch 1 stands after launch 0");

    draft_begin(&nodes, &w);
    draft_existing(&nodes, "n2", "a b");
    draft_existing(&nodes, "n1", "c");
    expect_wrong(&nodes, "existing: n1 stands after n2");

    draft_begin(&misses, &w);
    draft_miss(&misses, "b");
    draft_miss(&misses, "a");
    draft_miss(&misses, "c");
    expect_wrong(&misses, "misses: pod default/a stands after pod default/b");
}

TEST(sums_and_turns_add_up)
{
    WORLD w;
    DRAFT d;
    world_load(&w, TRIO, WORLD_TYPES_SMALL);
    draft_begin(&d, &w);
    draft_launch(&d, "web", "medium", "", "a b c");
    struct plan *plan = draft_end(&d);
    plan->price += USD_HOUR_ONE;
    expect_plan_wrong(&d, plan, "the launches cost $0.08 an hour, and the plan says $1.08");
    plan = draft_end(&d);
    plan->lower_bound = USD_HOUR_ONE;
    expect_plan_wrong(&d, plan, "the lower bound $1 is not between 0 and the price $0.08");
    d.order.items[2] = d.order.items[0];
    expect_wrong(&d, "order: pod default/a comes twice");
    expect_wrong(&d, "order: pod default/c is placed and has no turn");
}

TEST(what_is_not_in_the_snapshot_is_told_and_not_followed)
{
    WORLD w;
    DRAFT d;
    world_load(&w, TRIO, WORLD_TYPES_SMALL);
    draft_begin(&d, &w);
    struct plan_launch *l = draft_launch(&d, "web", "medium", "", "a b c");
    l->pool = 7;
    expect_wrong(&d, "launch 0: its pool is not in the snapshot");
    l->pool = 0;
    l->type = 1000;
    expect_wrong(&d, "does not have its type or offering");
    l->type = l->types[0];
    d.order.items[0] = 99;
    expect_wrong(&d, "order: pod 99 is not in the snapshot");
    d.order.items[0] = 0;
    vec_push(&d.existing, (struct plan_existing){ .node = PLAN_NONE, .claim = PLAN_NONE });
    expect_wrong(&d, "expected one node or one claim");
}

TEST(a_miss_has_reasons_in_words)
{
    WORLD w;
    DRAFT d;
    world_load(&w, WORLD_POOL("web", "[]", "") WORLD_POD("a", "{}", "{cpu: 1}", ""),
               WORLD_TYPES_SMALL);
    draft_begin(&d, &w);
    struct plan_miss *miss = draft_miss(&d, "a");
    expect_right(&d);
    struct plan_blame blame = { .pool = 3, .detail = STR("") };
    miss->reasons = &blame;
    expect_wrong(&d, "a reason names a pool that is not there");
    expect_wrong(&d, "a reason has no words");
    miss->reason_count = 0;
    expect_wrong(&d, "no reason is given");
}

/* --- a launch as a claim --- */

TEST(a_launch_is_of_a_pool_that_may_launch)
{
    WORLD w;
    DRAFT d;
    world_load(&w, TRIO, WORLD_TYPES_SMALL);
    w.pools.items[0].not_ready = STR("its node class is not ready");
    draft_begin(&d, &w);
    draft_launch(&d, "web", "medium", "", "a b c");
    expect_wrong(&d, "launch 0 of pool web: the pool is not ready: its node class is not ready");
    w.pools.items[0].not_ready = STR("");
    draft_launch(&d, "web", "small", "", "");
    expect_wrong(&d, "launch 1 of pool web is for no pods");
}

TEST(the_price_is_that_of_the_cheapest_offering_allowed)
{
    WORLD w;
    DRAFT d;
    world_load(&w, TRIO, WORLD_TYPES_SMALL);
    draft_begin(&d, &w);
    struct plan_launch *l = draft_launch(&d, "web", "medium large", "", "a b c");
    const struct instance_types *s = w.snap.pools[0].types;
    uint32_t cheapest = l->offering;
    usd_hour price = l->price;
    l->price++;
    expect_wrong(&d, "its offering costs $0.08 an hour, and it says $0.0800000000001");
    for (uint32_t o = s->offering_start[l->type]; o < s->offering_start[l->type + 1]; o++) {
        l->offering = o;
        l->price = instance_types_price(s, o);
        if (l->price > price)
            expect_wrong(&d, "and allows an offering at $0.08");
    }
    l->offering = cheapest;
    l->price = price;
    l->row = 0;
    expect_wrong(&d, "offering, type and row do not belong together");
    l->row = l->type;
    l->type = l->types[1];
    expect_wrong(&d, "offering, type and row do not belong together");
}

TEST(offerings_that_are_not_available_are_not_launched)
{
    WORLD w;
    DRAFT d;
    world_load(
        &w, WORLD_POOL("web", "[]", "") WORLD_POD("a", "{}", "{cpu: 1}", ""),
        "instanceTypes:\n" WORLD_TYPE(
            "one", "amd64",
            "cpu: 2, memory: 4Gi, pods: 9") "  offerings:\n"
                                            "  - {zone: zone-a, capacityType: on-demand, price: 1}\n"
                                            "  - {zone: zone-b, capacityType: on-demand, price: 2, available: false}\n");
    draft_begin(&d, &w);
    struct plan_launch *l = draft_launch(&d, "web", "one", "", "a");
    expect_right(&d);
    l->offering ^= 1;
    l->price = instance_types_price(w.snap.pools[0].types, l->offering);
    expect_wrong(&d, "its offering is not available");
    d.launches.count = 0;
    d.order.count = 0;
    draft_launch(&d, "web", "one", ZONE("zone-b"), "a")->price = 0;
    expect_wrong(&d, "type one has no available offering that the requirements allow");
}

TEST(types_are_sorted_by_price_and_not_too_many)
{
    WORLD w;
    DRAFT d;
    world_load(&w, TRIO, WORLD_TYPES_SMALL);
    draft_begin(&d, &w);
    draft_launch(&d, "web", "large medium", "", "a b c");
    expect_wrong(&d, "type medium at $0.08 stands after one at $0.16");
    d.launches.count = 0;
    d.order.count = 0;
    struct plan_launch *l = draft_launch(&d, "web", "medium large", "", "a b c");
    w.options.types_max = 1;
    expect_wrong(&d, "allows 2 types, and at most 1 are asked for");
    w.options.types_max = 0;
    l->types = (const uint32_t[]){ l->types[0], l->types[0] };
    expect_wrong(&d, "has type medium twice");
    l->type_count = 1;
    l->types++;
    l->type = instance_types_find(w.snap.pools[0].types, STR("large"));
    expect_wrong(&d, "type large is not among those that it allows");
}

TEST(requirements_name_the_types_and_keep_to_the_pool)
{
    WORLD w;
    DRAFT d;
    world_load(&w,
               WORLD_POOL("web",
                          "[{key: topology.kubernetes.io/zone, operator: In, values: [zone-a]}, "
                          "{key: team, operator: Exists}]",
                          "") WORLD_POD("a", "{}", "{cpu: 1}", ""),
               WORLD_TYPES_SMALL);
    draft_begin(&d, &w);
    struct plan_launch *l = draft_launch(&d, "web", "small medium", "team=shop", "a");
    expect_right(&d);
    struct requirements right = l->requirements, only = draft_labels(&w.arena, "team=shop", ' ');
    l->requirements = only;
    expect_wrong(&d, "does not keep to the pool's topology.kubernetes.io/zone In [zone-a]");
    expect_wrong(&d, "the requirement on the instance type is not the list of its types");
    expect_wrong(&d, "does not say which capacity types it allows");
    only = draft_labels(&w.arena, "rack=7", ' ');
    l->requirements = requirements_merge(&w.arena, &right, &only);
    expect_wrong(&d, "requires rack In [7], and its pool does not define that key");
    l->requirements = right;
    struct str_pair labels[] = { { STR("rack"), STR("7") }, { STR("team"), STR("bank") } };
    l->labels = (struct str_map){ labels, 2 };
    expect_wrong(&d, "has a label rack, which its pool does not define");
    expect_wrong(&d, "its label team=bank is not what it requires: team In [shop]");
    only = draft_labels(&w.arena, "kubernetes.io/arch=arm64", ' ');
    l->labels.count = 0;
    l->requirements = requirements_merge(&w.arena, &right, &only);
    expect_wrong(&d, "its requirements do not allow its type small");
}

TEST(a_launch_has_the_labels_of_its_pool)
{
    WORLD w;
    DRAFT d;
    world_load(&w,
               "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: web}\nspec:\n"
               "  template:\n    metadata: {labels: {team: shop}}\n    spec:\n"
               "      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}\n"
               "      requirements: []\n" WORLD_POD("a", "{}", "{cpu: 1}",
                                                    "  nodeSelector: {team: shop}\n"),
               WORLD_TYPES_SMALL);
    draft_begin(&d, &w);
    struct plan_launch *l = draft_launch(&d, "web", "small", "", "a");
    expect_right(&d);
    l->labels.count = 0;
    expect_wrong(&d, "does not have the pool's label team=shop");
}

TEST(min_values_are_met_or_marked_as_relaxed)
{
    WORLD w;
    DRAFT d;
    world_load(&w,
               WORLD_POOL("web",
                          "[{key: node.kubernetes.io/instance-type, operator: Exists, "
                          "minValues: 3}]",
                          "") WORLD_POD("a", "{}", "{cpu: 1}", ""),
               WORLD_TYPES_SMALL);
    draft_begin(&d, &w);
    draft_launch(&d, "web", "small arm medium", "", "a");
    expect_right(&d);
    d.launches.count = 0;
    d.order.count = 0;
    struct plan_launch *l = draft_launch(&d, "web", "small medium", "", "a");
    expect_wrong(&d, "its types have 2 values of node.kubernetes.io/instance-type, and the pool "
                     "wants 3");
    w.options.min_values = MIN_VALUES_BEST_EFFORT;
    expect_wrong(&d, "the pool wants 3 (not marked as relaxed)");
    l->min_values_relaxed = true;
    expect_right(&d);
    w.options.min_values = MIN_VALUES_STRICT;
    expect_wrong(&d, "gives up minValues, which are strict");
}

#define RESERVED                                                                                                        \
    "instanceTypes:\n" WORLD_TYPE(                                                                                      \
        "one", "amd64",                                                                                                 \
        "cpu: 2, memory: 4Gi, pods: 9") "  offerings:\n"                                                                \
                                        "  - {zone: zone-a, capacityType: reserved, price: 0.01, reservationId: cr-1, " \
                                        "reservationCapacity: 1}\n"                                                     \
                                        "  - {zone: zone-a, capacityType: on-demand, price: 1}\n"

TEST(reserved_capacity_is_pinned_and_not_used_twice)
{
    WORLD w;
    DRAFT d;
    world_load(&w,
               WORLD_POOL("web", "[]", "") WORLD_POD("a", "{}", "{cpu: 2}", "")
                   WORLD_POD("b", "{}", "{cpu: 2}", ""),
               RESERVED);
    const struct instance_types *s = w.snap.pools[0].types;
    const char *key = NULL;
    for (uint32_t i = 0; i < s->key_count; i++) {
        if (str_ends(s->labels[i].key, STR("reservation-id")))
            key = arena_str(&w.arena, s->labels[i].key).p;
    }
    for (uint32_t i = 0; i < s->shapes[0].requirements.count && !key; i++) {
        struct str name = s->shapes[1].requirements.items[i].key;
        if (str_ends(name, STR("reservation-id")))
            key = arena_str(&w.arena, name).p;
    }
    EXPECT_TRUE(key != NULL);
    const char *pin = arena_strf(&w.arena, "karpenter.sh/capacity-type=reserved %s=cr-1", key).p;
    draft_begin(&d, &w);
    draft_launch(&d, "web", "one", "karpenter.sh/capacity-type=on-demand", "b");
    draft_launch(&d, "web", "one", pin, "a");
    expect_right(&d);

    d.launches.count = d.order.count = 0;
    draft_launch(&d, "web", "one", pin, "a");
    draft_launch(&d, "web", "one", pin, "b");
    expect_wrong(&d, "reservation cr-1 has 1 left, and launches use more");

    d.launches.count = d.order.count = 0;
    draft_launch(&d, "web", "one", "", "a");
    draft_launch(&d, "web", "one", "karpenter.sh/capacity-type=on-demand", "b");
    expect_wrong(&d, "is reserved capacity and does not pin that");
    expect_wrong(&d, "uses reservation cr-1 and does not pin it");
}

TEST(requests_are_those_of_pods_and_daemons)
{
    WORLD w;
    DRAFT d;
    world_load(&w, TRIO, WORLD_TYPES_SMALL);
    draft_begin(&d, &w);
    struct plan_launch *l = draft_launch(&d, "web", "medium", "", "a b c");
    l->requests = draft_resources(&w.arena, "cpu=2 memory=3Gi pods=3");
    expect_wrong(&d, "says that 2 cpu are requested, and it is 3");
}

/* --- limits --- */

TEST(limits_hold_whichever_type_is_launched)
{
    WORLD w;
    DRAFT d;
    world_load(
        &w,
        WORLD_POOL("web", "[]", "  limits: {cpu: 8}\n") WORLD_POD("a", "{}", "{cpu: 1}", "")
            WORLD_NODE("n1", "zone-a", ", karpenter.sh/nodepool: web", "cpu: 4, memory: 8Gi"),
        WORLD_TYPES_SMALL);
    draft_begin(&d, &w);
    draft_launch(&d, "web", "small medium", "", "a");
    expect_right(&d);
    d.launches.count = d.order.count = 0;
    draft_launch(&d, "web", "small medium large", "", "a");
    expect_wrong(&d, "pool web is limited to 8 cpu: it has 4, and the launches may add 8");
}

TEST(the_limit_of_nodes_counts_nodes_claims_and_launches)
{
    WORLD w;
    DRAFT d;
    world_load(
        &w,
        WORLD_POOL("web", "[]", "  limits: {nodes: 3}\n") WORLD_POD("a", "{}", "{cpu: 2}", "")
            WORLD_POD("b", "{}", "{cpu: 2}", "") WORLD_NODE(
                "n1", "zone-a", ", karpenter.sh/nodepool: web",
                "cpu: 1") "---\n"
                          "apiVersion: karpenter.sh/v1\nkind: NodeClaim\n"
                          "metadata: {name: c1, labels: {karpenter.sh/nodepool: web}}\n"
                          "spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: d}, "
                          "requirements: []}\n",
        WORLD_TYPES_SMALL);
    draft_begin(&d, &w);
    draft_launch(&d, "web", "small", "", "a");
    draft_miss(&d, "b");
    expect_right(&d);
    d.misses.count = 0;
    draft_launch(&d, "web", "small", "", "b");
    expect_wrong(&d, "pool web is limited to 3 nodes: it has 2, and the launches may add 2");
}

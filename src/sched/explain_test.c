/* Every reason, with the very sentence; steps that add up; edits that help. */
#include "sched/explain_testing.h"

/* --- resources --- */

TEST(a_pod_larger_than_any_type_is_told_the_largest_there_is)
{
    ASKED a;
    asked_load(&a, ANY_POOL POD("{cpu: 96}", ""), WORLD_TYPES_SMALL);
    EXPECT_STR(miss_of(&a, "p"), "web resources: needs 96 cpu; the largest type there is has 8");
    EXPECT_STR(nearest_of(&a, "p"), "gpu: 8 of 96 cpu");
    EXPECT_STR(edit_of(&a, "p"), "lower the cpu request to 8");
}

TEST(a_pod_larger_than_what_the_pool_allows_is_told_what_to_allow)
{
    ASKED a;
    asked_load(&a,
               POOL_OF(IN(TYPE_KEY, "small, medium"))
                   POD("{cpu: 6}", "  nodeSelector: {" ZONE_KEY ": zone-a}\n"),
               WORLD_TYPES_SMALL);
    EXPECT_STR(miss_of(&a, "p"), "web resources: needs 6 cpu in zone-a; the largest type that pool "
                                 "`web` allows there has 4");
    EXPECT_STR(nearest_of(&a, "p"), "medium: 4 of 6 cpu");
    EXPECT_STR(edit_of(&a, "p"), "allow " TYPE_KEY " large in NodePool web; or lower the cpu "
                                 "request to 4");
}

TEST(resources_that_no_type_has_together_are_told_together)
{
    ASKED a;
    asked_load(&a, POOL_OF(IN(TYPE_KEY, "large, memory")) POD("{cpu: 8, memory: 32Gi}", ""),
               WORLD_TYPES_SMALL);
    EXPECT_STR(miss_of(&a, "p"),
               "web resources: needs 32Gi memory beside 8 cpu; of the types that pool `web` allows "
               "and that have the rest the largest has 16Gi");
    EXPECT_STR(nearest_of(&a, "p"), "large: 16Gi of 32Gi memory");
    EXPECT_STR(edit_of(&a, "p"),
               "allow " TYPE_KEY " gpu in NodePool web; or lower the cpu request to 4");
}

#define EXTENDED(name, amount, more)                                                               \
    "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " name ", namespace: default}\nspec:\n"      \
    "  containers: [{name: c, image: i, resources: {requests: {" amount "}, limits: {" amount      \
    "}}}]\n" more

TEST(a_resource_that_nothing_has_is_told_so)
{
    ASKED a;
    asked_load(&a,
               ANY_POOL EXTENDED("p", "example.com/fpga: 1", "")
                   EXTENDED("g", "nvidia.com/gpu: 1", "  nodeSelector: {" CAPACITY_KEY ": spot}\n"),
               WORLD_TYPES_SMALL);
    EXPECT_STR(miss_of(&a, "p"),
               "web resources: needs 1 example.com/fpga; no type that pool `web` allows has any");
    EXPECT_STR(miss_of(&a, "g"),
               "web resources: needs 1 nvidia.com/gpu with capacity type spot; no "
               "type that pool `web` allows with that has any");
    EXPECT_STR(edit_of(&a, "g"), "no longer ask for capacity type spot");
}

#define DAEMON(name, requests, more)                                                               \
    "---\n"                                                                                        \
    "apiVersion: apps/v1\n"                                                                        \
    "kind: DaemonSet\n"                                                                            \
    "metadata: {name: " name ", namespace: kube-system}\n"                                         \
    "spec:\n"                                                                                      \
    "  selector: {matchLabels: {ds: " name "}}\n"                                                  \
    "  template:\n"                                                                                \
    "    metadata: {labels: {ds: " name "}}\n"                                                     \
    "    spec:\n"                                                                                  \
    "      containers: [{name: c, image: i, resources: {requests: " requests "}" more "}]\n"

TEST(daemons_are_taken_off_what_a_type_has)
{
    ASKED a;
    asked_load(
        &a, POOL_OF(IN(TYPE_KEY, "small")) DAEMON("agent", "{cpu: 250m}", "") POD("{cpu: 2}", ""),
        WORLD_TYPES_SMALL);
    EXPECT_STR(miss_of(&a, "p"), "web resources: needs 2 cpu; the largest type that pool `web` "
                                 "allows has 1.75 for pods of 2");
    EXPECT_STR(edit_of(&a, "p"),
               "allow " TYPE_KEY " arm in NodePool web; or lower the cpu request to 1750m");
}

/* --- taints and labels --- */

TEST(taints_that_are_not_tolerated_are_all_named)
{
    ASKED a;
    asked_load(
        &a,
        WORLD_POOL("web", "[]",
                   "      taints: [{key: dedicated, value: gpu, effect: NoSchedule}, "
                   "{key: old, effect: NoExecute}]\n") POD("{cpu: 1}", "")
            WORLD_POD("half", "{}", "{cpu: 1}", "  tolerations: [{key: old, operator: Exists}]\n"),
        WORLD_TYPES_SMALL);
    EXPECT_STR(miss_of(&a, "p"),
               "web taints: does not tolerate taints dedicated=gpu:NoSchedule, old:NoExecute");
    EXPECT_STR(edit_of(&a, "p"), "add tolerations dedicated=gpu:NoSchedule, old:NoExecute");
    EXPECT_STR(miss_of(&a, "half"), "web taints: does not tolerate taint dedicated=gpu:NoSchedule");
    EXPECT_STR(edit_of(&a, "half"), "add toleration dedicated=gpu:NoSchedule");
}

TEST(a_value_that_the_pool_rules_out_is_told_with_those_it_allows)
{
    ASKED a;
    asked_load(&a,
               POOL_OF(IN(ZONE_KEY, "zone-a, zone-b"))
                   POD("{cpu: 1}", "  nodeSelector: {" ZONE_KEY ": zone-c}\n"),
               WORLD_TYPES_SMALL);
    EXPECT_STR(miss_of(&a, "p"),
               "web requirements: asks for zone zone-c; pool `web` allows zone-a, zone-b");
    EXPECT_STR(edit_of(&a, "p"),
               "allow " ZONE_KEY " zone-c in NodePool web; or no longer ask for zone zone-c");
}

TEST(a_label_that_the_pool_does_not_define_is_told_with_the_one_that_was_meant)
{
    ASKED a;
    asked_load(&a,
               WORLD_POOL("web", "[" IN("shop.io/team", "red, blue") "]", "")
                   POD("{cpu: 1}", "  nodeSelector: {shop.io/taem: blue}\n")
                       WORLD_POD("q", "{}", "{cpu: 1}", "  nodeSelector: {colour: blue}\n"),
               WORLD_TYPES_SMALL);
    EXPECT_STR(miss_of(&a, "p"),
               "web requirements: asks for shop.io/taem blue; pool `web` does not "
               "define that label; did you mean shop.io/team?");
    EXPECT_STR(miss_of(&a, "q"),
               "web requirements: asks for colour blue; pool `web` does not define "
               "that label");
    EXPECT_STR(edit_of(&a, "q"),
               "add label colour=blue to NodePool web; or no longer ask for colour blue");
}

TEST(a_label_that_no_type_has_is_told_with_those_they_have)
{
    ASKED a;
    asked_load(&a,
               POOL_OF(IN(TYPE_KEY, "arm, small"))
                   POD("{cpu: 1}", "  nodeSelector: {kubernetes.io/arch: riscv}\n") WORLD_POD(
                       "both", "{}", "{cpu: 1}",
                       "  nodeSelector: {kubernetes.io/arch: arm64, " TYPE_KEY ": small}\n"),
               WORLD_TYPES_SMALL);
    EXPECT_STR(miss_of(&a, "p"), "web requirements: asks for kubernetes.io/arch riscv; the types "
                                 "that pool `web` allows have amd64, arm64");
    EXPECT_STR(nearest_of(&a, "p"), "small: kubernetes.io/arch is amd64");
    EXPECT_STR(miss_of(&a, "both"), "web requirements: asks for instance type small; no type that "
                                    "pool `web` allows has that and kubernetes.io/arch arm64");
    EXPECT_STR(edit_of(&a, "both"), "no longer ask for instance type small");
}

TEST(a_pool_that_allows_nothing_is_told_why)
{
    ASKED a;
    asked_load(
        &a, POOL_OF(IN(TYPE_KEY, "arm") ", " IN("kubernetes.io/arch", "amd64")) POD("{cpu: 1}", ""),
        WORLD_TYPES_SMALL);
    EXPECT_STR(miss_of(&a, "p"), "web requirements: pool `web` allows no instance type: nothing is "
                                 "left after " TYPE_KEY " In [arm]");
}

TEST(of_several_alternatives_the_one_that_gets_furthest_is_told)
{
    ASKED a;
    asked_load(&a,
               ANY_POOL POD("{cpu: 9}",
                            "  affinity:\n"
                            "    nodeAffinity:\n"
                            "      requiredDuringSchedulingIgnoredDuringExecution:\n"
                            "        nodeSelectorTerms:\n"
                            "        - matchExpressions: [{key: kubernetes.io/arch, operator: In, "
                            "values: [amd64]}]\n"
                            "        - matchExpressions: [{key: colour, operator: Exists}]\n"),
               WORLD_TYPES_SMALL);
    EXPECT_STR(miss_of(&a, "p"), "web resources: needs 9 cpu with kubernetes.io/arch amd64; the "
                                 "largest type there is has 8");
}

/* --- ports, offerings, limits --- */

#define WITH_PORT                                                                                  \
    "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: default}\nspec:\n"             \
    "  containers: [{name: c, image: i, ports: [{containerPort: 1, hostPort: 8080}]}]\n"
#define DAEMON_PORT ", ports: [{containerPort: 80, hostPort: 8080}]"

TEST(a_host_port_that_a_daemon_takes_is_told_with_the_daemon)
{
    ASKED a;
    asked_load(&a, ANY_POOL DAEMON("proxy", "{cpu: 1m}", DAEMON_PORT) WITH_PORT, WORLD_TYPES_SMALL);
    EXPECT_STR(miss_of(&a, "p"),
               "web hostPort: host port 8080/TCP is taken by DaemonSet kube-system/proxy");
    EXPECT_STR(edit_of(&a, "p"), "take other host ports than 8080/TCP");
}

#define TYPE_WITH(name, offerings)                                                                 \
    WORLD_TYPE(name, "amd64", "cpu: 4, memory: 8Gi, pods: 40") "  offerings: [" offerings "]\n"

TEST(offerings_that_are_not_available_are_named)
{
    ASKED a;
    asked_load(&a, POOL_OF(IN(CAPACITY_KEY, "spot")) POD("{cpu: 1}", ""),
               "instanceTypes:\n" TYPE_WITH(
                   "one", "{zone: zone-a, capacityType: spot, price: 0.1, available: false}, "
                          "{zone: zone-a, capacityType: on-demand, price: 0.2}"));
    EXPECT_STR(miss_of(&a, "p"),
               "web offering: every offering that would do is unavailable: one as "
               "spot in zone-a");
    EXPECT_STR(edit_of(&a, "p"), "allow " CAPACITY_KEY " on-demand in NodePool web");
}

TEST(labels_that_no_offering_has_together_are_told)
{
    ASKED a;
    asked_load(&a,
               ANY_POOL POD("{cpu: 1}",
                            "  nodeSelector: {" CAPACITY_KEY ": spot, " ZONE_KEY ": zone-b}\n"),
               "instanceTypes:\n" TYPE_WITH("one",
                                            "{zone: zone-a, capacityType: spot, price: 0.1}, "
                                            "{zone: zone-b, capacityType: on-demand, price: 0.2}"));
    EXPECT_STR(miss_of(&a, "p"),
               "web offering: no type that would do is offered with capacity type "
               "spot and zone zone-b");
    EXPECT_STR(edit_of(&a, "p"), "no longer ask for capacity type spot");
}

TEST(limits_are_told_with_what_is_left_and_what_is_needed)
{
    ASKED a;
    asked_load(&a,
               WORLD_POOL("web", "[]", "  limits: {cpu: 3, memory: 100Gi}\n") POD("{cpu: 3}", ""),
               WORLD_TYPES_SMALL);
    EXPECT_STR(miss_of(&a, "p"),
               "web limits: limits: 3 cpu left of 3, the smallest type that fits has 4");
    EXPECT_STR(nearest_of(&a, "p"), "arm: 4 cpu, 3 left");
    EXPECT_STR(edit_of(&a, "p"),
               "raise limits.cpu of NodePool web to 4; or lower the cpu request to 2");
}

TEST(limits_that_each_leave_room_for_another_type_are_told_together)
{
    ASKED a;
    asked_load(&a,
               WORLD_POOL("web", "[" IN(TYPE_KEY, "large, memory") "]",
                          "  limits: {cpu: 4, memory: 16Gi}\n") POD("{cpu: 1}", ""),
               WORLD_TYPES_SMALL);
    EXPECT_STR(miss_of(&a, "p"),
               "web limits: limits: 4 cpu left of 4, 16Gi memory left of 16Gi; no "
               "type that fits is within all of them");
    EXPECT_STR(edit_of(&a, "p"), "raise limits.memory of NodePool web to 32Gi; or allow " TYPE_KEY
                                 " small in NodePool web");
}

TEST(a_limit_of_nodes_counts_nodes)
{
    ASKED a;
    asked_load(&a, WORLD_POOL("web", "[]", "  limits: {nodes: 0}\n") POD("{cpu: 1}", ""),
               WORLD_TYPES_SMALL);
    EXPECT_STR(miss_of(&a, "p"), "web limits: limits: no node left of 0");
    EXPECT_STR(edit_of(&a, "p"), "raise limits.nodes of NodePool web to 1");
}

TEST(min_values_are_told_with_how_many_there_are)
{
    const char *yaml = WORLD_POOL("web",
                                  "[{key: " TYPE_KEY ", operator: In, values: [small, medium, "
                                  "large], minValues: 3}]",
                                  "") POD("{cpu: 3}", "");
    ASKED a;
    asked_load(&a, yaml, WORLD_TYPES_SMALL);
    EXPECT_STR(miss_of(&a, "p"), "web minValues: minValues: " TYPE_KEY ": 2 of at least 3");
    EXPECT_STR(edit_of(&a, "p"),
               "allow " TYPE_KEY " arm in NodePool web; or lower minValues of " TYPE_KEY
               " to 2 in NodePool web");
    ASKED b = { 0 };
    world_load(&b.w, yaml, WORLD_TYPES_SMALL);
    b.w.options.min_values = MIN_VALUES_BEST_EFFORT;
    asked_compile(&b);
    EXPECT_TRUE(explained(&b, "p", 0)->possible);
}

/* --- steps --- */

TEST(steps_tell_how_many_types_each_constraint_left)
{
    ASKED a;
    asked_load(&a,
               WORLD_POOL("web", "[{key: " TYPE_KEY ", operator: NotIn, values: [gpu]}]",
                          "      taints: [{key: t, effect: NoSchedule}]\n  limits: {cpu: 6}\n")
                   POD("{cpu: 3, memory: 5Gi}", "  nodeSelector: {kubernetes.io/arch: amd64}\n"
                                                "  tolerations: [{operator: Exists}]\n"),
               WORLD_TYPES_SMALL);
    EXPECT_STR(steps_of(&a, "p"), "taints 6>6 taints t:NoSchedule\n"
                                  "requirements 6>5 what the NodePool allows\n"
                                  "requirements 5>4 kubernetes.io/arch In [amd64]\n"
                                  "resources 4>3 cpu 3\n"
                                  "resources 3>3 memory 5Gi\n"
                                  "offering 3>3 available offerings\n"
                                  "limits 3>2 limits of the NodePool");
    EXPECT_TRUE(explained(&a, "p", 0)->possible);
    EXPECT_STR(explained(&a, "p", 0)->detail, "");
    EXPECT_STR(edit_of(&a, "p"), "");
}

/* --- after a plan --- */

static struct explanation told(struct world *w, const struct plan *plan, const char *name)
{
    struct explanation e;
    uint32_t pod = world_pod_ix(w, name);
    plan_explain(&w->arena, &w->snap, w->options, plan, &pod, 1, &e);
    return e;
}

TEST(a_placed_pod_is_told_what_was_given_up_for_it)
{
    WORLD w;
    world_load(&w,
               ANY_POOL POD("{cpu: 1}",
                            "  affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuring"
                            "Execution: [{weight: 1, preference: {matchExpressions: [" IN(
                                "kubernetes.io/arch", "riscv") "]}}]}}\n"),
               WORLD_TYPES_SMALL);
    const struct plan *plan = plan_build(&w.arena, &w.snap, w.options);
    struct explanation e = told(&w, plan, "p");
    EXPECT_EQ(e.on_launches, 1);
    EXPECT_EQ(e.missed, 0);
    EXPECT_STR(e.given_up, "preferred arch riscv");
    EXPECT_TRUE(e.pools[0].possible);
}

TEST(limits_count_what_the_plan_launches_for_others)
{
    WORLD w;
    world_load(&w, WORLD_POOL("web", "[" IN(TYPE_KEY, "large") "]", "  limits: {cpu: 20}\n"),
               WORLD_TYPES_SMALL);
    world_add_pods(&w, 3, "p",
                   "spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 5}}}]}\n");
    const struct plan *plan = plan_build(&w.arena, &w.snap, w.options);
    EXPECT_EQ(plan->miss_count, 1);
    EXPECT_EQ(plan->misses[0].reasons[0].reason, REASON_LIMITS);
    EXPECT_STR(plan->misses[0].reasons[0].detail,
               "limits: 4 cpu left of 20, the smallest type that fits has 8");
    struct explanation e = told(&w, plan, "p-0");
    EXPECT_EQ(e.on_launches, 2);
    EXPECT_EQ(e.missed, 1);
    EXPECT_STR(e.pools[0].detail, "limits: 4 cpu left of 20, the smallest type that fits has 8");
    EXPECT_STR(e.pools[0].edit, "raise limits.cpu of NodePool web to 24");
}

TEST(nodes_that_are_there_are_counted_by_why_they_refuse)
{
    WORLD w;
    world_load(&w,
               ANY_POOL THREE_FULL_NODES WORLD_NODE("big", "zone-a", "", "cpu: 9, memory: 40Gi")
                   POD("{cpu: 8, memory: 32Gi}", "")
                       WORLD_POD("q", "{}", "{cpu: 1}", "  nodeSelector: {" ZONE_KEY ": zone-b}\n"),
               WORLD_TYPES_SMALL);
    const struct plan *plan = plan_build(&w.arena, &w.snap, w.options);
    struct explanation e = told(&w, plan, "p");
    EXPECT_EQ(e.on_homes, 1);
    EXPECT_EQ(e.homes_considered, 4);
    EXPECT_EQ(e.homes_by_reason[REASON_RESOURCES], 4);
    EXPECT_STR(e.homes, "none of 4 nodes takes it: resources 4");
    EXPECT_STR(told(&w, plan, "q").homes, "none of 4 nodes takes it: resources 1, requirements 3");
}

TEST(a_pod_that_was_not_planned_for_has_no_explanation)
{
    WORLD w;
    world_load(&w, ANY_POOL THREE_FULL_NODES BOUND("b", "x", "na", ""), WORLD_TYPES_SMALL);
    const struct plan *plan = plan_build(&w.arena, &w.snap, w.options);
    struct explanation e = told(&w, plan, "b");
    EXPECT_EQ(e.class_, PLAN_NONE);
    EXPECT_EQ(e.pool_count, 0);
}

/* --- edits help --- */

TEST(an_edit_that_is_offered_lets_the_pod_in)
{
    /* Each pair: a world, and the same with the edit that it is offered. */
    static const struct {
        const char *before, *edit, *after;
    } cases[] = {
        { POOL_OF(IN(TYPE_KEY, "small")) POD("{cpu: 6}", ""),
          "allow " TYPE_KEY " large in NodePool web; or lower the cpu request to 2",
          POOL_OF(IN(TYPE_KEY, "small, large")) POD("{cpu: 6}", "") },
        { POOL_OF(IN(TYPE_KEY, "small")) POD("{cpu: 6}", ""),
          "allow " TYPE_KEY " large in NodePool web; or lower the cpu request to 2",
          POOL_OF(IN(TYPE_KEY, "small")) POD("{cpu: 2}", "") },
        { POOL_OF("{key: " TYPE_KEY ", operator: NotIn, values: [gpu]}")
              POD("{memory: 20Gi, cpu: 5}", ""),
          "allow " TYPE_KEY " gpu in NodePool web; or lower the cpu request to 4",
          ANY_POOL POD("{memory: 20Gi, cpu: 5}", "") },
        { WORLD_POOL("web", "[]", "  limits: {cpu: 1, memory: 1Gi}\n") POD("{cpu: 1}", ""),
          "raise limits.cpu of NodePool web to 2 and limits.memory to 4Gi",
          WORLD_POOL("web", "[]", "  limits: {cpu: 2, memory: 4Gi}\n") POD("{cpu: 1}", "") },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        ASKED before, after;
        asked_load(&before, cases[i].before, WORLD_TYPES_SMALL);
        asked_load(&after, cases[i].after, WORLD_TYPES_SMALL);
        EXPECT_FALSE(explained(&before, "p", 0)->possible);
        EXPECT_STR(edit_of(&before, "p"), cases[i].edit);
        EXPECT_TRUE(explained(&after, "p", 0)->possible);
    }
}

/* --- texts from outside --- */

TEST(names_with_control_characters_are_quoted)
{
    ASKED a;
    asked_load(&a,
               POOL_OF(IN(ZONE_KEY, "zone-a"))
                   POD("{cpu: 1}", "  nodeSelector: {" ZONE_KEY ": zone-c}\n"),
               WORLD_TYPES_SMALL);
    struct nodepool pool = *a.w.snap.pools[0].pool;
    pool.object.meta.name = STR("web\x1b[2J`");
    ((struct sched_pool *)a.w.snap.pools)[0].pool = &pool;
    EXPECT_TRUE(str_find(miss_of(&a, "p"), '\x1b') >= 0); /* the test prints the name as it is */
    EXPECT_STR(explained(&a, "p", 0)->detail,
               "asks for zone zone-c; pool \"web\\u001b[2J`\" allows zone-a");
    EXPECT_STR(edit_of(&a, "p"), "allow " ZONE_KEY " zone-c in NodePool \"web\\u001b[2J`\"; or no "
                                 "longer ask for zone zone-c");
}

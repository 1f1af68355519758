/* What the solver decides, rule by rule, in worlds small enough to judge by hand: machines, pools,
 * preferences, volumes. Every plan here is also judged by the checker (world_plan). Topology has a file of
 * its own. */
#include "sched/plan_testing.h"

/* --- choosing machines --- */

TEST(plan_picks_the_cheapest_machine_that_fits)
{
    WORLD w;
    world_load(&w, WORLD_POOL("p", NO_POOL_RULES, "") WORLD_POD("a", "{}", "{cpu: 3}", ""),
               WORLD_TYPES_SMALL);
    const struct plan *plan = world_plan(&w);
    EXPECT_EQ(plan->launch_count, 1);
    EXPECT_STR(type_of(&w, plan, 0), "arm");
    EXPECT_EQ(plan->price, USD_HOUR_ONE * 64 / 1000);
}

TEST(plan_lists_every_type_that_would_do_cheapest_first)
{
    WORLD w;
    world_load(&w,
               WORLD_POOL("p", ON_DEMAND, "") WORLD_POD(
                   "a", "{}", "{cpu: 3}", "  nodeSelector: {kubernetes.io/arch: amd64}\n"),
               WORLD_TYPES_SMALL);
    const struct plan *plan = world_plan(&w);
    EXPECT_EQ(plan->launch_count, 1);
    EXPECT_EQ(plan->launches[0].type_count, 4);
    static const char *const names[] = { "medium", "memory", "large", "gpu" };
    for (uint32_t i = 0; i < 4; i++)
        EXPECT_STR(w.snap.pools[0].types->names[plan->launches[0].types[i]], names[i]);
}

TEST(plan_cuts_long_lists_of_types_at_the_cheap_end)
{
    WORLD w;
    world_load(&w, WORLD_POOL("p", NO_POOL_RULES, "") WORLD_POD("a", "{}", "{cpu: 1}", ""), NULL);
    const struct plan *plan = world_plan(&w);
    EXPECT_EQ(plan->launches[0].type_count, PLAN_TYPES_MAX);
    w.options.types_max = 7;
    plan = world_plan(&w);
    EXPECT_EQ(plan->launches[0].type_count, 7);
}

TEST(plan_prefers_a_reservation_then_spot_then_on_demand_and_falls_back_at_once)
{
    WORLD w;
    world_load(
        &w, WORLD_POOL("p", NO_POOL_RULES, ""),
        "instanceTypes:\n" WORLD_TYPE(
            "one", "amd64",
            "cpu: 4, memory: 8Gi, pods: 40") "  offerings:\n"
                                             "  - {zone: zone-a, capacityType: on-demand, price: 0.2}\n"
                                             "  - {zone: zone-a, capacityType: spot, price: 0.08}\n"
                                             "  - {zone: zone-a, capacityType: reserved, price: 0.001, reservationId: cr-1, "
                                             "reservationCapacity: 2}\n");
    world_add_pods(&w, 3, "big",
                   "spec: {containers: [{name: c, image: i, resources: "
                   "{requests: {cpu: 3}}}]}\n");
    const struct plan *plan = world_plan(&w);
    EXPECT_EQ(plan->miss_count, 0);
    EXPECT_EQ(plan->launch_count, 3);
    EXPECT_EQ(plan->price, USD_HOUR_ONE * 82 / 1000);
}

TEST(plan_counts_the_places_of_the_reservation_that_all_pods_of_a_launch_leave)
{
    /* The leaders may be in either zone; those that join them are in the one with a single place. */
#define LEAD(name)                                                                                 \
    WORLD_POD(name, "{app: l}", "{cpu: 1}",                                                        \
              "  affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "    \
              "[{topologyKey: " HOST ", labelSelector: {matchLabels: {app: l}}}]}}\n")
#define FILL(name) WORLD_POD(name, "{app: f}", "{cpu: 3}", "  nodeSelector: {" ZONE ": zone-b}\n")
    WORLD w;
    world_load(
        &w,
        WORLD_POOL("p", "[{key: karpenter.sh/capacity-type, operator: In, values: [reserved]}]", "")
            LEAD("lead-a") LEAD("lead-b") LEAD("lead-c") FILL("fill-a") FILL("fill-b"),
        "instanceTypes:\n" WORLD_TYPE(
            "one", "amd64",
            "cpu: 4, memory: 8Gi, pods: 40") "  offerings:\n"
                                             "  - {zone: zone-a, capacityType: reserved, price: 0.001, reservationId: cr-1, "
                                             "reservationCapacity: 5}\n"
                                             "  - {zone: zone-b, capacityType: reserved, price: 0.001, reservationId: cr-2, "
                                             "reservationCapacity: 1}\n");
    const struct plan *plan = world_plan(&w);
    EXPECT_EQ(plan->miss_count, 1);
    EXPECT_EQ(plan->launch_count, 3);
}

TEST(plan_mixes_pods_so_that_cpu_and_memory_are_both_used)
{
    WORLD w;
    world_load(&w, WORLD_POOL("p", ON_DEMAND, ""), WORLD_TYPES_SMALL);
    world_add_pods(&w, 6, "cpu",
                   "spec: {nodeSelector: {kubernetes.io/arch: amd64}, containers: "
                   "[{name: c, image: i, resources: {requests: {cpu: 3, memory: 1Gi}}}]}\n");
    world_add_pods(&w, 6, "mem",
                   "spec: {nodeSelector: {kubernetes.io/arch: amd64}, containers: "
                   "[{name: c, image: i, resources: {requests: {cpu: 1, memory: 7Gi}}}]}\n");
    const struct plan *plan = world_plan(&w);
    /* A pair fills a `medium` to the last byte: 24 cpu and 48Gi in all. */
    EXPECT_EQ(plan->price, USD_HOUR_ONE * 12 / 10);
    EXPECT_TRUE(plan->lower_bound <= plan->price);
    EXPECT_TRUE(plan->lower_bound > plan->price - plan->price / 1000);
}

/* --- what is there comes first --- */

TEST(plan_uses_nodes_that_are_there_before_launching)
{
    WORLD w;
    world_load(&w,
               WORLD_POOL("p", NO_POOL_RULES, "")
                   WORLD_NODE("n1", "zone-a", "", "cpu: 4, memory: 8Gi"),
               WORLD_TYPES_SMALL);
    world_add_pods(&w, 5, "a",
                   "spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}\n");
    const struct plan *plan = world_plan(&w);
    EXPECT_EQ(plan->existing[0].pods.count, 4);
    EXPECT_EQ(plan->launch_count, 1);
    EXPECT_EQ(plan->launches[0].pods.count, 1);
}

TEST(plan_counts_what_bound_pods_and_missing_daemons_take)
{
    WORLD w;
    world_load(
        &w,
        WORLD_NODE("n1", "zone-a", "", "cpu: 4, memory: 8Gi") WORLD_POD("running", "{}", "{cpu: 2}",
                                                                        "  nodeName: n1\n")
            WORLD_POD("fits", "{}", "{cpu: 1}", "") WORLD_POD(
                "not", "{}", "{cpu: 1}",
                "") "---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: d, namespace: kube-system}\n"
                    "spec:\n  selector: {matchLabels: {a: b}}\n  template:\n    metadata: {labels: {a: b}}\n"
                    "    spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}\n",
        WORLD_TYPES_SMALL);
    const struct plan *plan = world_plan(&w);
    EXPECT_EQ(plan->existing_count, 1);
    EXPECT_EQ(plan->existing[0].pods.count, 1);
    EXPECT_EQ(plan->miss_count, 1);
}

TEST(plan_counts_claims_in_flight_as_nodes)
{
    WORLD w;
    world_load(
        &w,
        WORLD_POOL("p", NO_POOL_RULES, "") WORLD_POD(
            "a", "{}", "{cpu: 3}",
            "") "---\napiVersion: karpenter.sh/v1\nkind: NodeClaim\nmetadata: {name: p-x1, labels: "
                "{karpenter.sh/nodepool: p, node.kubernetes.io/instance-type: medium, "
                "topology.kubernetes.io/zone: zone-a}}\n"
                "spec:\n  nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}\n"
                "  requirements: []\n"
                "status: {providerID: 'x:///y', capacity: {cpu: 4, memory: 8Gi, pods: 40}, "
                "allocatable: {cpu: 4, memory: 8Gi, pods: 40}}\n",
        WORLD_TYPES_SMALL);
    const struct plan *plan = world_plan(&w);
    EXPECT_EQ(plan->launch_count, 0);
    EXPECT_Z(home(&w, plan, "a"), "claim p-x1");
}

TEST(plan_launches_room_for_daemons_too)
{
    WORLD w;
    world_load(
        &w,
        WORLD_POOL("p", ON_DEMAND, "") WORLD_POD(
            "a", "{}", "{cpu: 4}",
            "") "---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: d, namespace: kube-system}\n"
                "spec:\n  selector: {matchLabels: {a: b}}\n  template:\n    metadata: {labels: {a: b}}\n"
                "    spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 100m}}}]}\n",
        WORLD_TYPES_SMALL);
    const struct plan *plan = world_plan(&w);
    EXPECT_STR(type_of(&w, plan, 0), "large"); /* 4 cpu are not enough for both */
}

/* --- pools --- */

TEST(plan_takes_the_heavier_pool_even_if_it_is_dearer)
{
    WORLD w;
    world_load(&w,
               WORLD_POOL("cheap", NO_POOL_RULES, "")
                   WORLD_POOL("dear", ON_DEMAND, "  weight: 10\n")
                       WORLD_POD("a", "{}", "{cpu: 1}", ""),
               WORLD_TYPES_SMALL);
    const struct plan *plan = world_plan(&w);
    EXPECT_STR(w.snap.pools[plan->launches[0].pool].pool->object.meta.name, "dear");
}

TEST(plan_takes_the_cheaper_of_pools_of_equal_weight)
{
    WORLD w;
    world_load(&w,
               WORLD_POOL("a-spot", NO_POOL_RULES, "") WORLD_POOL("b-dear", ON_DEMAND, "")
                   WORLD_POD("a", "{}", "{cpu: 1}", ""),
               WORLD_TYPES_SMALL);
    const struct plan *plan = world_plan(&w);
    EXPECT_STR(w.snap.pools[plan->launches[0].pool].pool->object.meta.name, "a-spot");
}

TEST(plan_never_overshoots_limits_and_goes_on_in_the_next_pool)
{
    WORLD w;
    world_load(&w,
               WORLD_POOL("first", ON_DEMAND, "  weight: 10\n  limits: {cpu: 9}\n")
                   WORLD_POOL("second", ON_DEMAND, ""),
               WORLD_TYPES_SMALL);
    world_add_pods(&w, 4, "a",
                   "spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 4}}}]}\n");
    const struct plan *plan = world_plan(&w);
    int64_t in_first = 0;
    for (uint32_t i = 0; i < plan->launch_count; i++)
        if (str_eqz(w.snap.pools[plan->launches[i].pool].pool->object.meta.name, "first"))
            in_first += plan->launches[i].pods.count;
    EXPECT_EQ(plan->miss_count, 0);
    EXPECT_EQ(in_first, 2);
}

TEST(plan_counts_nodes_against_the_limit_on_nodes)
{
    WORLD w;
    world_load(&w,
               WORLD_POOL("p", ON_DEMAND, "  limits: {nodes: 3}\n")
                   WORLD_NODE("n1", "zone-a", ", karpenter.sh/nodepool: p", "cpu: 1, memory: 1Gi"),
               WORLD_TYPES_SMALL);
    world_add_pods(&w, 4, "a",
                   "spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 7}}}]}\n");
    const struct plan *plan = world_plan(&w);
    EXPECT_EQ(plan->launch_count, 2);
    EXPECT_EQ(plan->miss_count, 2);
    EXPECT_EQ(plan->misses[0].reasons[0].reason, REASON_LIMITS);
}

TEST(plan_gives_limited_room_to_the_more_important_pods)
{
    WORLD w;
    world_load(&w, WORLD_POOL("p", ON_DEMAND, "  limits: {cpu: 8}\n"), WORLD_TYPES_SMALL);
    world_add_pods(&w, 2, "low",
                   "spec: {priority: 1, containers: [{name: c, image: i, resources: "
                   "{requests: {cpu: 4}}}]}\n");
    world_add_pods(&w, 2, "high",
                   "spec: {priority: 9, containers: [{name: c, image: i, resources: "
                   "{requests: {cpu: 3}}}]}\n");
    const struct plan *plan = world_plan(&w);
    EXPECT_HAS(str_of(home(&w, plan, "high-0")), "launch");
    EXPECT_HAS(str_of(home(&w, plan, "high-1")), "launch");
}

TEST(plan_keeps_strict_min_values_and_lowers_them_as_best_effort)
{
    WORLD w;
    world_load(&w,
               WORLD_POOL("p",
                          "[{key: node.kubernetes.io/instance-type, operator: In, values: "
                          "[small, medium], minValues: 2}]",
                          "") WORLD_POD("small", "{}", "{cpu: 1}", "")
                   WORLD_POD("large", "{}", "{cpu: 3}", ""),
               WORLD_TYPES_SMALL);
    const struct plan *plan = world_plan(&w);
    EXPECT_EQ(plan->launches[0].type_count, 2);
    EXPECT_EQ(plan->miss_count, 1); /* only one type has 3 cpu */
    EXPECT_EQ(plan->misses[0].reasons[0].reason, REASON_MIN_VALUES);
    w.options.min_values = MIN_VALUES_BEST_EFFORT;
    plan = world_plan(&w);
    EXPECT_EQ(plan->miss_count, 0);
    bool relaxed = false;
    for (uint32_t i = 0; i < plan->launch_count; i++)
        relaxed |= plan->launches[i].min_values_relaxed;
    EXPECT_TRUE(relaxed);
}

TEST(plan_tolerates_startup_taints_but_not_the_others)
{
    WORLD w;
    world_load(
        &w,
        WORLD_POOL("p", NO_POOL_RULES, "      startupTaints: [{key: boot, effect: NoSchedule}]\n")
            WORLD_POD("a", "{}", "{cpu: 1}", ""),
        WORLD_TYPES_SMALL);
    EXPECT_EQ(world_plan(&w)->miss_count, 0);
    world_done(&w);
    world_load(&w,
               WORLD_POOL("p", NO_POOL_RULES, "      taints: [{key: gpu, effect: NoSchedule}]\n")
                   WORLD_POD("a", "{}", "{cpu: 1}", "") WORLD_POD(
                       "b", "{}", "{cpu: 1}", "  tolerations: [{key: gpu, operator: Exists}]\n"),
               WORLD_TYPES_SMALL);
    const struct plan *plan = world_plan(&w);
    EXPECT_Z(home(&w, plan, "a"), "miss taints");
    EXPECT_Z(home(&w, plan, "b"), "launch 0");
}

/* --- preferences --- */

TEST(plan_holds_to_preferences_until_they_cannot_be_had)
{
    WORLD w;
    world_load(&w, WORLD_POOL("p", NO_POOL_RULES, ""), WORLD_TYPES_SMALL);
#define PREFERS_ZONE(zone)                                                                         \
    "affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, "     \
    "preference: {matchExpressions: [{key: " ZONE ", operator: In, values: [" zone "]}]}}]}}"
    world_add_pods(&w, 2, "can", "spec: {" SMALL_CONTAINER ", " PREFERS_ZONE("zone-c") "}\n");
    world_add_pods(&w, 2, "not", "spec: {" SMALL_CONTAINER ", " PREFERS_ZONE("zone-x") "}\n");
    const struct plan *plan = world_plan(&w);
    EXPECT_EQ(plan->miss_count, 0);
    EXPECT_Z(zones(&w, plan, "can"), "0 0 2");
    w.options.preferences = PREFERENCES_IGNORE;
    plan = world_plan(&w);
    EXPECT_Z(zones(&w, plan, "can"), "2 0 0"); /* the cheapest zone */
}

TEST(plan_tries_every_required_term)
{
    WORLD w;
    world_load(&w, WORLD_POOL("p", NO_POOL_RULES, ""), WORLD_TYPES_SMALL);
    world_add_pods(&w, 1, "a",
                   "spec: {" SMALL_CONTAINER
                   ", affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
                   "{nodeSelectorTerms: [{matchExpressions: [{key: " ZONE
                   ", operator: In, values: [zone-x]}]}, {matchExpressions: [{key: " ZONE
                   ", operator: In, values: [zone-b]}]}]}}}}\n");
    EXPECT_Z(zones(&w, world_plan(&w), "a"), "0 1 0");
}

/* --- volumes --- */

#define CLAIM(name, more)                                                                          \
    "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: " name                     \
    ", namespace: default" more
#define VOLUME_POD(name, claim)                                                                    \
    WORLD_POD(name, "{}", "{cpu: 1}",                                                              \
              "  volumes: [{name: v, persistentVolumeClaim: {claimName: " claim "}}]\n")

TEST(plan_follows_volumes_into_their_zone)
{
    WORLD w;
    world_load(
        &w,
        WORLD_POOL("p", NO_POOL_RULES, "") VOLUME_POD("a", "data") CLAIM(
            "data",
            ", annotations: {pv.kubernetes.io/bind-completed: 'yes'}}\n"
            "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, "
            "volumeName: pv-1}\nstatus: {phase: Bound}\n") "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: pv-1}\nspec:\n"
                                                           "  capacity: {storage: 1Gi}\n  accessModes: [ReadWriteOnce]\n"
                                                           "  csi: {driver: ebs.csi.aws.com, volumeHandle: vol-1}\n"
                                                           "  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: " ZONE
                                                           ", operator: In, values: [zone-c]}]}]}}\n",
        WORLD_TYPES_SMALL);
    EXPECT_Z(zones(&w, world_plan(&w), "a"), "0 0 1");
}

TEST(plan_keeps_to_the_topologies_that_a_storage_class_allows)
{
    WORLD w;
    world_load(
        &w,
        WORLD_POOL("p", NO_POOL_RULES, "") VOLUME_POD("a", "new") VOLUME_POD("b", "at-once") CLAIM(
            "new", "}\n"
                   "spec: {accessModes: [ReadWriteOnce], resources: "
                   "{requests: {storage: 1Gi}}, storageClassName: w}\n")
            CLAIM(
                "at-once",
                "}\n"
                "spec: {accessModes: [ReadWriteOnce], resources: {requests: "
                "{storage: 1Gi}}, storageClassName: i}\n") "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: w}\n"
                                                           "provisioner: ebs.csi.aws.com\nvolumeBindingMode: WaitForFirstConsumer\n"
                                                           "allowedTopologies: [{matchLabelExpressions: [{key: " ZONE
                                                           ", values: [zone-b]}]}]\n"
                                                           "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: i}\n"
                                                           "provisioner: ebs.csi.aws.com\nvolumeBindingMode: Immediate\n",
        WORLD_TYPES_SMALL);
    const struct plan *plan = world_plan(&w);
    EXPECT_Z(zones(&w, plan, "a"), "0 1 0");
    EXPECT_Z(home(&w, plan, "b"), "miss volume");
}

TEST(plan_counts_the_volumes_that_a_node_can_attach)
{
    WORLD w;
    world_load(
        &w,
        WORLD_POOL("p", NO_POOL_RULES, "") WORLD_NODE("n1", "zone-a", "", "cpu: 8, memory: 8Gi")
            VOLUME_POD("a", "c1") VOLUME_POD("b", "c2") CLAIM(
                "c1", "}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: "
                      "{storage: 1Gi}}, storageClassName: w}\n")
                CLAIM(
                    "c2",
                    "}\nspec: {accessModes: [ReadWriteOnce], resources: "
                    "{requests: {storage: 1Gi}}, storageClassName: w}\n") "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: w}\n"
                                                                          "provisioner: ebs.csi.aws.com\nvolumeBindingMode: WaitForFirstConsumer\n"
                                                                          "---\napiVersion: storage.k8s.io/v1\nkind: CSINode\nmetadata: {name: n1}\n"
                                                                          "spec: {drivers: [{name: ebs.csi.aws.com, nodeID: n1, topologyKeys: [], allocatable: "
                                                                          "{count: 1}}]}\n",
        WORLD_TYPES_SMALL);
    const struct plan *plan = world_plan(&w);
    EXPECT_EQ(plan->miss_count, 0);
    EXPECT_EQ(plan->existing[0].pods.count, 1);
    EXPECT_EQ(plan->launch_count, 1);
}

/* --- what is not for us, and what we cannot do --- */

TEST(plan_skips_pods_that_are_not_for_it)
{
    WORLD w;
    world_load(&w,
               WORLD_POOL("p", NO_POOL_RULES, "")
                   WORLD_POD("gated", "{}", "{cpu: 1}", "  schedulingGates: [{name: x}]\n")
                       WORLD_POD("done", "{}", "{cpu: 1}", "status: {phase: Succeeded}\n"),
               WORLD_TYPES_SMALL);
    const struct plan *plan = world_plan(&w);
    EXPECT_EQ(plan->launch_count, 0);
    EXPECT_Z(home(&w, plan, "gated"), "skip scheduling gate");
    EXPECT_Z(home(&w, plan, "done"), "skip finished");
}

TEST(plan_says_what_it_cannot_handle)
{
    WORLD w;
    world_load(&w,
               WORLD_POOL("p", NO_POOL_RULES, "")
                   WORLD_POD("dra", "{}", "{cpu: 1}",
                             "  resourceClaims: [{name: gpu, resourceClaimName: g}]\n"),
               WORLD_TYPES_SMALL);
    EXPECT_Z(home(&w, world_plan(&w), "dra"), "miss unsupported");
}

TEST(plan_without_pools_says_so)
{
    WORLD w;
    world_load(&w, WORLD_POD("a", "{}", "{cpu: 1}", ""), WORLD_TYPES_SMALL);
    const struct plan *plan = world_plan(&w);
    EXPECT_EQ(plan->miss_count, 1);
    EXPECT_TRUE(plan->misses[0].reason_count >= 1);
}

TEST(plan_is_complete_for_a_thousand_small_pods_behind_large_ones)
{
    WORLD w;
    world_load(&w, WORLD_POOL("p", NO_POOL_RULES, ""), NULL);
    world_add_pods(&w, 50, "large",
                   "spec: {containers: [{name: c, image: i, resources: {requests: "
                   "{cpu: 40, memory: 100Gi}}}]}\n");
    world_add_pods(&w, 1000, "small", "spec: {" SMALL_CONTAINER "}\n");
    const struct plan *plan = world_plan(&w);
    EXPECT_EQ(plan->miss_count, 0);
}

/* --- pods that have to leave --- */

TEST(plan_finds_another_place_for_pods_that_have_to_leave_their_node)
{
#define LEAVING                                                                                    \
    "---\n"                                                                                        \
    "apiVersion: v1\n"                                                                             \
    "kind: Node\n"                                                                                 \
    "metadata: {name: old, labels: {kubernetes.io/hostname: old}}\n"                               \
    "spec: {taints: [{key: karpenter.sh/disrupted, effect: NoSchedule}]}\n"                        \
    "status: {allocatable: {cpu: 4, memory: 8Gi, pods: 110}}\n"
    WORLD w;
    world_load(&w,
               WORLD_POOL("p", ON_DEMAND, "")
                   WORLD_POD("goes", "{}", "{cpu: 3}", "  nodeName: old\n")
                       WORLD_POD("stays", "{}", "{cpu: 1}", "  nodeName: old\n") LEAVING,
               WORLD_TYPES_SMALL);
    bool displaced[2] = { false, false };
    EXPECT_EQ(w.snap.pod_count, 2);
    EXPECT_EQ(world_plan(&w)->launch_count, 0);
    displaced[world_pod_ix(&w, "goes")] = true;
    w.snap.maybe_displaced = displaced;
    const struct plan *plan = world_plan(&w);
    EXPECT_EQ(plan->launch_count, 1);
    EXPECT_EQ(plan->launches[0].pods.count, 1);
    EXPECT_EQ(plan->launches[0].pods.items[0], world_pod_ix(&w, "goes"));
}

/* Reasons that lie in other pods, in volumes, or in no pool at all, with the very sentence. */
#include "sched/explain_testing.h"

/* --- topology --- */

#define SPREAD(key, skew)                                                                          \
    "  topologySpreadConstraints: [{maxSkew: " skew ", topologyKey: " key                          \
    ", whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: p}}}]\n"
#define TERM(kind, key, app)                                                                       \
    "  affinity: {" kind ": {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: " key  \
    ", labelSelector: {matchLabels: {app: " app "}}}]}}\n"

TEST(a_spread_names_the_domain_that_must_be_filled_first)
{
    ASKED a;
    asked_load(&a,
               POOL_OF(IN(ZONE_KEY, "zone-a, zone-b")) THREE_FULL_NODES BOUND("b1", "p", "na", "")
                   BOUND("b2", "p", "nb", "") BOUND("b3", "x", "nc", "")
                       POD("{cpu: 1}", SPREAD(ZONE_KEY, "1")),
               WORLD_TYPES_SMALL);
    EXPECT_STR(miss_of(&a, "p"), "web topologySpread: spread over " ZONE_KEY
                                 " with max skew 1: zone-c has 0 pods and "
                                 "no type of pool `web` that would do can be launched there");
    EXPECT_STR(edit_of(&a, "p"),
               "allow " ZONE_KEY " zone-c in NodePool web; or make the spread over " ZONE_KEY
               " ScheduleAnyway");
}

/* A pod that no order let in is in no launch, and is still counted where it was meant to be. */
TEST(a_spread_that_rests_on_a_pod_without_a_place_is_not_told_to_plan_again)
{
    ASKED a;
    asked_load(&a,
               POOL_OF(IN(ZONE_KEY, "zone-a")) THREE_FULL_NODES BOUND("b1", "p", "na", "")
                   BOUND("b2", "x", "nb", "") BOUND("b3", "p", "nc", "")
                       POD("{cpu: 1}", SPREAD(ZONE_KEY, "1")),
               WORLD_TYPES_SMALL);
    uint32_t group = a.m.classes[class_of(&a, "p")].variants[0].owned[0];
    uint32_t zone_b = domain_of(&a, a.m.groups[group].key, "zone-b");
    a.s.groups[group].matched[zone_b]++;
    EXPECT_STR(miss_of(&a, "p"), "web topologySpread: spread over " ZONE_KEY
                                 " with max skew 1: zone-b has 0 pods and "
                                 "no type of pool `web` that would do can be launched there");
    EXPECT_EQ(a.s.groups[group].matched[zone_b], 0);
}

TEST(a_spread_over_a_label_that_nodes_will_not_have_is_told_so)
{
    ASKED a;
    asked_load(&a, ANY_POOL POD("{cpu: 1}", SPREAD("shop.io/rack", "1")), WORLD_TYPES_SMALL);
    EXPECT_STR(miss_of(&a, "p"), "web topologySpread: spread over shop.io/rack with max skew 1: "
                                 "nodes of pool `web` do not have that label");
}

TEST(anti_affinity_names_where_the_others_are)
{
    ASKED a;
    asked_load(&a,
               POOL_OF(IN(ZONE_KEY, "zone-a")) THREE_FULL_NODES BOUND("b1", "web", "na", "")
                   BOUND("b2", "web", "nb", "")
                       POD("{cpu: 1}", TERM("podAntiAffinity", ZONE_KEY, "web")),
               WORLD_TYPES_SMALL);
    EXPECT_STR(miss_of(&a, "p"),
               "web podAntiAffinity: anti-affinity on " ZONE_KEY " with app=web: such pods are in "
               "zone-a, zone-b and no type of pool `web` that would do can be launched elsewhere");
    EXPECT_STR(edit_of(&a, "p"), "allow " ZONE_KEY " zone-c in NodePool web; or make the "
                                 "anti-affinity on " ZONE_KEY " preferred");
}

TEST(anti_affinity_of_running_pods_is_told_as_theirs)
{
    ASKED a;
    asked_load(&a,
               POOL_OF(IN(ZONE_KEY, "zone-a"))
                   THREE_FULL_NODES BOUND("b1", "web", "na", TERM("podAntiAffinity", ZONE_KEY, "p"))
                       POD("{cpu: 1}", ""),
               WORLD_TYPES_SMALL);
    EXPECT_STR(miss_of(&a, "p"),
               "web podAntiAffinity: anti-affinity on " ZONE_KEY " with app=p: pods that keep it "
               "away are in zone-a and no type of pool `web` that would do can be launched "
               "elsewhere");
}

TEST(affinity_names_where_the_pods_are_that_it_wants_to_be_near)
{
    ASKED a;
    asked_load(&a,
               POOL_OF(IN(ZONE_KEY, "zone-a")) THREE_FULL_NODES BOUND("b1", "db", "nb", "")
                   POD("{cpu: 1}", TERM("podAffinity", ZONE_KEY, "db"))
                       WORLD_POD("lone", "{}", "{cpu: 1}", TERM("podAffinity", ZONE_KEY, "none"))
                           WORLD_POD("host", "{}", "{cpu: 1}",
                                     TERM("podAffinity", "kubernetes.io/hostname", "db")),
               WORLD_TYPES_SMALL);
    EXPECT_STR(miss_of(&a, "p"), "web podAffinity: affinity on " ZONE_KEY
                                 " with app=db: pods that match are in zone-b "
                                 "and no type of pool `web` that would do can be launched there");
    EXPECT_STR(miss_of(&a, "lone"),
               "web podAffinity: affinity on " ZONE_KEY " with app=none: no pod matches");
    EXPECT_STR(edit_of(&a, "lone"), "make the affinity on " ZONE_KEY " preferred");
    EXPECT_STR(
        miss_of(&a, "host"),
        "web podAffinity: affinity on kubernetes.io/hostname with app=db: pods that match are "
        "on nodes that do not take it, and a new node has none");
}

/* --- volumes, pools that are not there, pods that are not placed --- */

#define CLAIM_IN(key, value)                                                                       \
    "---\napiVersion: v1\nkind: PersistentVolumeClaim\n"                                           \
    "metadata: {name: data, namespace: default, annotations: "                                     \
    "{pv.kubernetes.io/bind-completed: 'yes'}}\n"                                                  \
    "spec: {accessModes: [ReadWriteOnce], volumeName: pv1, storageClassName: '', resources: "      \
    "{requests: {storage: 1Gi}}}\n"                                                                \
    "status: {phase: Bound}\n"                                                                     \
    "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: pv1}\n"                         \
    "spec:\n"                                                                                      \
    "  capacity: {storage: 1Gi}\n  accessModes: [ReadWriteOnce]\n"                                 \
    "  csi: {driver: ebs.csi.aws.com, volumeHandle: v1}\n"                                         \
    "  claimRef: {name: data, namespace: default}\n"                                               \
    "  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [" IN(key,                 \
                                                                              value) "]}]}}\n"

TEST(a_volume_in_another_zone_is_told_with_its_claim)
{
    ASKED a;
    asked_load(
        &a,
        POOL_OF(IN(ZONE_KEY, "zone-a")) CLAIM_IN(ZONE_KEY, "zone-c")
            POD("{cpu: 1}", "  volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]\n"),
        WORLD_TYPES_SMALL);
    EXPECT_STR(miss_of(&a, "p"),
               "web volume: the volume of claim data needs zone zone-c; pool `web` "
               "allows zone-a");
    EXPECT_STR(edit_of(&a, "p"), "allow " ZONE_KEY " zone-c in NodePool web");
}

TEST(a_volume_on_one_node_does_not_go_to_a_new_one)
{
    ASKED a;
    asked_load(
        &a,
        ANY_POOL CLAIM_IN("kubernetes.io/hostname", "n7")
            POD("{cpu: 1}", "  volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]\n"),
        WORLD_TYPES_SMALL);
    EXPECT_STR(miss_of(&a, "p"),
               "web volume: the volume of claim data needs kubernetes.io/hostname "
               "n7; a new node has a name of its own");
    EXPECT_STR(edit_of(&a, "p"), "");
}

TEST(a_claim_that_does_not_exist_is_a_matter_of_no_pool)
{
    ASKED a;
    asked_load(&a,
               ANY_POOL POD("{cpu: 1}",
                            "  volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]\n"),
               WORLD_TYPES_SMALL);
    const struct plan_blame *reasons;
    uint32_t count;
    explain_miss(&a.s, class_of(&a, "p"), &a.arena, &reasons, &count);
    EXPECT_EQ(count, 1);
    EXPECT_EQ(reasons[0].pool, PLAN_NONE);
    EXPECT_EQ(reasons[0].reason, REASON_VOLUME);
    struct explanation e = explain_class(&a.s, class_of(&a, "p"), &a.arena);
    EXPECT_EQ(e.maybe_refused->reason, REASON_VOLUME);
    EXPECT_EQ(e.pool_count, 0);
    EXPECT_EQ(e.missed, 1);
}

TEST(a_construct_that_is_not_handled_is_unsupported)
{
    ASKED a;
    asked_load(&a,
               ANY_POOL POD("{cpu: 1}", "  resourceClaims: [{name: g, resourceClaimName: g}]\n"),
               WORLD_TYPES_SMALL);
    EXPECT_TRUE(str_starts(miss_of(&a, "p"), STR("unsupported: ")));
}

TEST(pools_that_are_not_ready_come_in_their_place_in_the_order)
{
    ASKED a = { 0 };
    world_load(&a.w,
               WORLD_POOL("a", "[]", "  weight: 1\n") WORLD_POOL("b", "[]", "  weight: 5\n")
                   WORLD_POOL("c", "[]", "  weight: 9\n") POD("{cpu: 96}", ""),
               WORLD_TYPES_SMALL);
    vec_each(&a.w.pools, struct sched_pool, p) {
        if (str_eqz(p->pool->object.meta.name, "b"))
            p->not_ready = STR("its node class is not ready");
    }
    asked_compile(&a);
    EXPECT_STR(miss_of(&a, "p"), "c resources: needs 96 cpu; the largest type there is has 8\n"
                                 "b nodePoolNotReady: its node class is not ready\n"
                                 "a resources: needs 96 cpu; the largest type there is has 8");
    EXPECT_EQ(explained(&a, "p", 1)->step_count, 0);
}

TEST(without_any_pool_the_nodes_are_told_of)
{
    ASKED a;
    asked_load(&a, THREE_FULL_NODES POD("{cpu: 2}", ""), WORLD_TYPES_SMALL);
    EXPECT_STR(miss_of(&a, "p"),
               "nodePoolNotReady: there is no NodePool to launch a node from, and "
               "none of 3 nodes takes it: resources 3");
}

/* What may still come onto a bin, rule by rule. */
#include "sched/state_testing.h"

#define POOL WORLD_POOL("p", "[]", "")
#define NODE(name) WORLD_NODE(name, "zone-a", "", "cpu: 4, memory: 8Gi")
#define BOUND(name, labels, node, requests)                                                        \
    WORLD_POD(name, labels, requests, "  nodeName: " node "\n")

/* --- room: what a bin is --- */

TEST(room_is_what_the_scarcest_resource_leaves)
{
    static const struct {
        const char *requests;
        uint32_t room; /* of 2 cpu, 4Gi and 20 pods */
    } cases[] = {
        { "{cpu: 1}", 2 },      { "{cpu: 1500m}", 1 },
        { "{cpu: 2001m}", 0 },  { "{cpu: 500m, memory: 2Gi}", 2 },
        { "{memory: 1Gi}", 4 }, { "{}", 20 },
        { "{cpu: 10m}", 20 },   { "{ephemeral-storage: 1Gi}", 0 },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        STATED t = { 0 };
        AUTO_BUF yaml = { 0 };
        buf_addf(&yaml, POOL WORLD_POD("w", "{}", "%s", ""), cases[i].requests);
        stated_load(&t, yaml.p, NULL);
        uint32_t bin = opened(&t, "p", "small");
        EXPECT_EQ(room_at(&t, bin, "w", 100), cases[i].room);
        EXPECT_EQ(room_at(&t, bin, "w", 1), cases[i].room ? 1 : 0);
        if (!cases[i].room)
            continue;
        placed(&t, bin, "w", cases[i].room);
        EXPECT_EQ(room_at(&t, bin, "w", 1), 0);
    }
}

TEST(a_home_that_is_overfull_has_no_room_even_for_pods_that_ask_for_nothing)
{
    STATED t = { 0 };
    stated_load(&t, NODE("a") BOUND("x", "{}", "a", "{cpu: 5}") WORLD_POD("w", "{}", "{}", ""),
                NULL);
    EXPECT_EQ(room_at(&t, home_named(&t, "a"), "w", 1), 0);
}

TEST(pods_go_only_where_labels_suit_and_taints_are_tolerated)
{
    STATED t = { 0 };
    stated_load(&t,
                POOL WORLD_POOL("tainted", "[]",
                                "      taints: [{key: team, value: x, effect: NoSchedule}]\n")
                    NODE("a") WORLD_POD("w", "{}", "{cpu: 1}", "") WORLD_POD(
                        "bears", "{}", "{cpu: 1}", "  tolerations: [{key: team, value: x}]\n")
                        WORLD_POD("b", "{}", "{cpu: 1}", "  nodeSelector: {" ZONE ": zone-b}\n")
                            WORLD_POD("arm", "{}", "{cpu: 1}",
                                      "  nodeSelector: {kubernetes.io/arch: arm64}\n"),
                NULL);
    uint32_t plain = opened(&t, "p", "small"), tainted = opened(&t, "tainted", "small");
    EXPECT_EQ(room_at(&t, plain, "w", 1), 1);
    EXPECT_EQ(room_at(&t, plain, "bears", 1), 1);
    EXPECT_EQ(room_at(&t, tainted, "w", 1), 0);
    EXPECT_EQ(room_at(&t, tainted, "bears", 1), 1);
    EXPECT_EQ(room_at(&t, home_named(&t, "a"), "w", 1), 1);
    EXPECT_EQ(room_at(&t, home_named(&t, "a"), "b", 1), 0);
    EXPECT_EQ(room_at(&t, plain, "arm", 1), 0); /* its machine is none */
    EXPECT_EQ(room_at(&t, opened(&t, "p", "arm"), "arm", 1), 1);
}

TEST(a_pod_makes_its_launch_dearer_by_the_premium_at_most)
{
    STATED t = { 0 };
    stated_load(&t,
                POOL WORLD_POD("w", "{}", "{cpu: 1}",
                               "  nodeSelector: {karpenter.sh/capacity-type: on-demand}\n"),
                NULL);
    uint32_t bin = opened(&t, "p", "small");
    EXPECT_EQ(room_at(&t, bin, "w", 2), 0);
    t.s.premium = milli_usd(60) - 1;
    EXPECT_EQ(room_at(&t, bin, "w", 2), 0);
    t.s.premium = milli_usd(60);
    placed(&t, bin, "w", 1);
    EXPECT_EQ(t.s.bins.items[bin].price, milli_usd(100));
    EXPECT_EQ(t.s.price, milli_usd(100));
    t.s.premium = 0; /* the first has paid for it */
    placed(&t, bin, "w", 1);
    EXPECT_EQ(t.s.price, milli_usd(100));
}

TEST(strict_min_values_leave_room_on_as_many_machines_as_they_ask_for)
{
    STATED t = { 0 };
    stated_load(&t,
                WORLD_POOL("p",
                           "[{key: node.kubernetes.io/instance-type, operator: In, values: "
                           "[small, medium], minValues: 2}]",
                           "") WORLD_POD("w", "{}", "{cpu: 1}", ""),
                NULL);
    uint32_t bin = opened(&t, "p", "medium");
    EXPECT_EQ(room_at(&t, bin, "w", 2), 2);
    placed(&t, bin, "w", 2);
    EXPECT_EQ(room_at(&t, bin, "w", 1), 0); /* a small is full by now */
    t.modelled.w.options.min_values = MIN_VALUES_BEST_EFFORT;
    stated_again(&t);
    EXPECT_EQ(room_at(&t, opened(&t, "p", "medium"), "w", 9), 4);
}

TEST(under_limits_min_values_count_machines_that_are_no_larger_than_the_planned_one)
{
    STATED t = { 0 };
    stated_load(&t,
                WORLD_POOL("p",
                           "[{key: node.kubernetes.io/instance-type, operator: In, values: "
                           "[small, medium], minValues: 2}]",
                           "  limits: {cpu: 100}\n") WORLD_POD("w", "{}", "{cpu: 1}", ""),
                NULL);
    EXPECT_EQ(room_at(&t, opened(&t, "p", "small"), "w", 1), 0);
    EXPECT_EQ(room_at(&t, opened(&t, "p", "medium"), "w", 1), 1);
}

/* --- room: what is there already --- */

#define PORTS(name, ports)                                                                         \
    "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " name ", namespace: default}\n"             \
    "spec: {containers: [{name: c, image: i, ports: [" ports "]}]}\n"

TEST(a_host_port_is_taken_once_on_a_bin_and_free_again_after)
{
    STATED t = { 0 };
    stated_load(&t,
                POOL PORTS("web", "{containerPort: 1, hostPort: 80}")
                    PORTS("one", "{containerPort: 1, hostPort: 80, hostIP: 10.0.0.1}")
                        PORTS("two", "{containerPort: 1, hostPort: 80, hostIP: 10.0.0.2}")
                            PORTS("other", "{containerPort: 1, hostPort: 81}"),
                NULL);
    uint32_t bin = opened(&t, "p", "small");
    EXPECT_EQ(room_at(&t, bin, "web", 9), 1);
    placed(&t, bin, "one", 1);
    placed(&t, bin, "two", 1); /* another address */
    EXPECT_EQ(room_at(&t, bin, "web", 9), 0);
    EXPECT_EQ(room_at(&t, bin, "one", 9), 0);
    EXPECT_EQ(room_at(&t, bin, "other", 9), 1);
    EXPECT_FALSE(state_host_admits(&t.s, bin, class_named(&t, "web"), variant_named(&t, "web")));
    state_take(&t.s, bin, 0, 1);
    EXPECT_EQ(room_at(&t, bin, "one", 9), 1);
    EXPECT_EQ(room_at(&t, bin, "two", 9), 0);
    EXPECT_EQ(room_at(&t, bin, "web", 9), 0);
    state_take(&t.s, bin, 0, 1);
    EXPECT_EQ(room_at(&t, bin, "web", 9), 1);
}

TEST(ports_of_daemons_are_taken_on_every_launch)
{
    STATED t = { 0 };
    stated_load(
        &t,
        POOL PORTS("web", "{containerPort: 1, hostPort: 80}") PORTS(
            "other",
            "{containerPort: 1, hostPort: 81}") "---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: d, namespace: "
                                                "default}\nspec:\n  selector: {matchLabels: {app: d}}\n  template:\n    metadata: "
                                                "{labels: {app: d}}\n    spec: {containers: [{name: c, image: i, ports: "
                                                "[{containerPort: 1, hostPort: 80}]}]}\n",
        NULL);
    uint32_t bin = opened(&t, "p", "small");
    EXPECT_EQ(room_at(&t, bin, "web", 1), 0);
    placed(&t, bin, "other", 1);
    state_take(&t.s, bin, 0, 1);
    EXPECT_EQ(room_at(&t, bin, "web", 1), 0); /* the daemon stays */
    launch_dissolve(&t.s, bin);
    EXPECT_EQ(room_at(&t, opened(&t, "p", "small"), "other", 1), 1);
}

#define CSI_NODE(name, count)                                                                      \
    "---\napiVersion: storage.k8s.io/v1\nkind: CSINode\nmetadata: {name: " name "}\n"              \
    "spec: {drivers: [{name: ebs.csi.aws.com, nodeID: i, allocatable: {count: " count "}}]}\n"
#define VOLUME(name)                                                                               \
    "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: " name                     \
    ", namespace: default, annotations: {pv.kubernetes.io/bind-completed: 'yes'}}\n"               \
    "spec: {accessModes: [ReadWriteMany], volumeName: pv-" name ", resources: {requests: "         \
    "{storage: 1Gi}}}\n"                                                                           \
    "status: {phase: Bound}\n"                                                                     \
    "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: pv-" name "}\n"                 \
    "spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteMany], csi: {driver: "                \
    "ebs.csi.aws.com, volumeHandle: vol-" name "}, claimRef: {namespace: default, name: " name     \
    "}}\n"
#define USES(...) "  volumes: [" __VA_ARGS__ "]\n"
#define CLAIM(name) "{name: v-" name ", persistentVolumeClaim: {claimName: " name "}}"
#define EPHEMERAL                                                                                  \
    "{name: scratch, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], "      \
    "storageClassName: fast, resources: {requests: {storage: 1Gi}}}}}}"
#define STORAGE_CLASS                                                                              \
    "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: fast}\n"             \
    "provisioner: ebs.csi.aws.com\nvolumeBindingMode: WaitForFirstConsumer\n"

TEST(pods_that_share_a_claim_attach_it_once_and_own_volumes_count_for_each)
{
    STATED t = { 0 };
    stated_load(
        &t,
        POOL NODE("a") CSI_NODE("a", "3") NODE("b") CSI_NODE("b", "1") NODE("c")
            STORAGE_CLASS VOLUME("shared") WORLD_POD("s", "{}", "{cpu: 1m}", USES(CLAIM("shared")))
                WORLD_POD("own", "{}", "{cpu: 1m}", USES(EPHEMERAL))
                    WORLD_POD("both", "{}", "{cpu: 1m}", USES(EPHEMERAL ", " CLAIM("shared"))),
        NULL);
    uint32_t a = home_named(&t, "a"), b = home_named(&t, "b"), c = home_named(&t, "c");
    EXPECT_EQ(room_at(&t, a, "s", 9), 9);
    EXPECT_EQ(room_at(&t, a, "own", 9), 3);
    EXPECT_EQ(room_at(&t, a, "both", 9), 2);
    EXPECT_EQ(room_at(&t, b, "both", 9), 0);
    EXPECT_EQ(room_at(&t, c, "both", 9), 9); /* no limit is known */
    placed(&t, a, "s", 5);
    EXPECT_EQ(room_at(&t, a, "own", 9), 2);
    EXPECT_EQ(room_at(&t, a, "both", 9), 2);
    placed(&t, a, "own", 2);
    EXPECT_EQ(room_at(&t, a, "both", 9), 0);
    EXPECT_EQ(room_at(&t, a, "s", 9), 9); /* attached already */
}

/* --- room: topology within a host --- */

TEST(a_hostname_spread_lets_max_skew_pods_onto_each_bin)
{
    STATED t = { 0 };
    stated_load(&t,
                POOL NODE("a") NODE("b") BOUND("x", "{app: w}", "a", "{}")
                    WORLD_POD("w", "{app: w}", "{cpu: 1m}", SPREADS(SPREAD(HOST, "2", "w"))),
                NULL);
    uint32_t bin = opened(&t, "p", "small");
    EXPECT_EQ(room_at(&t, home_named(&t, "a"), "w", 9), 1);
    EXPECT_EQ(room_at(&t, home_named(&t, "b"), "w", 9), 2);
    EXPECT_EQ(room_at(&t, bin, "w", 9), 2);
    placed(&t, bin, "w", 2);
    EXPECT_EQ(room_at(&t, bin, "w", 9), 0);
    state_take(&t.s, bin, 0, 1);
    EXPECT_EQ(room_at(&t, bin, "w", 9), 1);
}

TEST(a_hostname_spread_counts_pods_of_its_own_rank_and_of_lower_ones)
{
    static const char *const pods[] = { "host", "wide", "free" };
    STATED t = { 0 };
    stated_load(&t,
                POOL WORLD_POD("host", "{app: w}", "{cpu: 1m}", SPREADS(SPREAD(HOST, "1", "w")))
                    WORLD_POD("wide", "{app: w}", "{cpu: 1m}",
                              SPREADS(SPREAD(HOST, "1", "w") ", " SPREAD(ZONE, "1", "w")))
                        WORLD_POD("free", "{app: w}", "{cpu: 1m}", ""),
                NULL);
    for (uint32_t i = 0; i < KV_COUNT_OF(pods); i++) {
        EXPECT_EQ(t.s.ranks[class_named(&t, pods[i])], i);
        uint32_t bin = opened(&t, "p", "small");
        placed(&t, bin, pods[i], 1);
        EXPECT_EQ(room_at(&t, bin, "host", 1), i > RANK_HOST);
        EXPECT_EQ(room_at(&t, bin, "wide", 1), i > RANK_DOMAIN);
        EXPECT_EQ(room_at(&t, bin, "free", 9), 9);
    }
}

TEST(pods_with_wider_terms_keep_to_the_hostname_spreads_of_their_like)
{
    STATED t = { 0 };
    stated_load(&t,
                POOL WORLD_POD("both", "{app: w}", "{cpu: 1m}",
                               SPREADS(SPREAD(HOST, "2", "w") ", " SPREAD(ZONE, "1", "w")))
                    WORLD_POD("zonal", "{app: w}", "{cpu: 1m}", SPREADS(SPREAD(ZONE, "1", "w"))),
                NULL);
    uint32_t bin = opened(&t, "p", "small");
    EXPECT_EQ(room_at(&t, bin, "zonal", 9), 9);
    placed(&t, bin, "both", 1);
    EXPECT_EQ(room_at(&t, bin, "zonal", 9), 1); /* which of them comes first is not known */
    placed(&t, bin, "zonal", 1);
    EXPECT_EQ(room_at(&t, bin, "zonal", 9), 0);
}

TEST(a_spread_over_others_stops_at_max_skew_of_them)
{
    STATED t = { 0 };
    stated_load(&t,
                POOL NODE("a") NODE("b") BOUND("x", "{app: db}", "a", "{}")
                    BOUND("v", "{app: db}", "a", "{}") BOUND("z", "{app: db}", "b", "{}")
                        WORLD_POD("w", "{app: w}", "{cpu: 1m}", SPREADS(SPREAD(HOST, "1", "db"))),
                NULL);
    EXPECT_EQ(room_at(&t, home_named(&t, "a"), "w", 9), 0);
    EXPECT_EQ(room_at(&t, home_named(&t, "b"), "w", 9), 9); /* it does not add to the skew */
    EXPECT_EQ(room_at(&t, opened(&t, "p", "small"), "w", 9), 9);
}

TEST(anti_affinity_keeps_both_sides_apart_whoever_comes_first)
{
    STATED t = { 0 };
    stated_load(&t,
                POOL NODE("a") BOUND("x", "{app: w}", "a", "{}")
                    WORLD_POD("w", "{app: w}", "{cpu: 1m}", "")
                        WORLD_POD("lone", "{app: l}", "{cpu: 1m}", AWAY(HOST, "w"))
                            WORLD_POD("bystander", "{app: b}", "{cpu: 1m}", ""),
                NULL);
    EXPECT_EQ(room_at(&t, home_named(&t, "a"), "lone", 9), 0);
    uint32_t one = opened(&t, "p", "small"), two = opened(&t, "p", "small");
    placed(&t, one, "w", 2);
    placed(&t, two, "lone", 2); /* they do not mind each other */
    EXPECT_EQ(room_at(&t, one, "lone", 9), 0);
    EXPECT_EQ(room_at(&t, two, "w", 9), 0);
    EXPECT_EQ(room_at(&t, one, "w", 9), 9);
    EXPECT_EQ(room_at(&t, two, "lone", 9), 9);
    EXPECT_EQ(room_at(&t, two, "bystander", 9), 9);
    state_take(&t.s, two, 0, 2);
    EXPECT_EQ(room_at(&t, two, "w", 9), 9);
}

TEST(pods_that_avoid_each_other_are_one_to_a_bin)
{
    STATED t = { 0 };
    stated_load(&t, POOL WORLD_POD("w", "{app: w}", "{cpu: 1m}", AWAY(HOST, "w")), NULL);
    uint32_t bin = opened(&t, "p", "small");
    EXPECT_EQ(room_at(&t, bin, "w", 9), 1);
    placed(&t, bin, "w", 1);
    EXPECT_EQ(room_at(&t, bin, "w", 9), 0);
}

TEST(anti_affinity_of_bound_pods_keeps_others_away)
{
    STATED t = { 0 };
    stated_load(&t,
                NODE("a") NODE("b")
                    WORLD_POD("x", "{app: l}", "{}", "  nodeName: a\n" AWAY(HOST, "w"))
                        WORLD_POD("w", "{app: w}", "{cpu: 1m}", ""),
                NULL);
    EXPECT_EQ(room_at(&t, home_named(&t, "a"), "w", 9), 0);
    EXPECT_EQ(room_at(&t, home_named(&t, "b"), "w", 9), 9);
}

TEST(a_preferred_anti_affinity_binds_its_owner_and_nobody_else)
{
    STATED t = { 0 };
    stated_load(
        &t,
        POOL WORLD_POD("w", "{app: w}", "{cpu: 1m}", "") WORLD_POD(
            "shy", "{app: l}", "{cpu: 1m}",
            "  affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: "
            "[{weight: 1, podAffinityTerm: {topologyKey: " HOST
            ", labelSelector: {matchLabels: {app: w}}}}]}}\n"),
        NULL);
    uint32_t one = opened(&t, "p", "small"), two = opened(&t, "p", "small");
    placed(&t, one, "w", 1);
    placed(&t, two, "shy", 1);
    EXPECT_EQ(room_at(&t, one, "shy", 9), 0);
    EXPECT_EQ(room_at(&t, two, "w", 9), 9);
    uint32_t shy = class_named(&t, "shy"); /* and not even it, once that is given up */
    const struct variant *relaxed =
        &t.modelled.m.classes[shy].variants[t.modelled.m.classes[shy].variant_count - 1];
    EXPECT_EQ(state_room(&t.s, one, shy, relaxed, relaxed->wants, 9), 9);
}

TEST(the_first_pod_that_wants_its_like_goes_anywhere_and_the_rest_to_it)
{
    STATED t = { 0 };
    stated_load(&t,
                POOL WORLD_POD("w", "{app: w}", "{cpu: 1m}", NEAR(HOST, "w"))
                    WORLD_POD("fan", "{app: f}", "{cpu: 1m}", NEAR(HOST, "w")),
                NULL);
    uint32_t one = opened(&t, "p", "small"), two = opened(&t, "p", "small");
    EXPECT_EQ(room_at(&t, one, "w", 9), 9);
    EXPECT_EQ(room_at(&t, one, "fan", 9), 0); /* it would not do for itself */
    placed(&t, one, "w", 1);
    EXPECT_EQ(room_at(&t, one, "w", 9), 9);
    EXPECT_EQ(room_at(&t, two, "w", 9), 0);
    EXPECT_EQ(room_at(&t, one, "fan", 9), 9);
    EXPECT_EQ(room_at(&t, two, "fan", 9), 0);
    state_take(&t.s, one, 0, 1);
    EXPECT_EQ(room_at(&t, two, "w", 9), 9); /* nobody is there any more */
}

TEST(pods_that_are_there_are_the_first_of_their_kind)
{
    STATED t = { 0 };
    stated_load(&t,
                POOL NODE("a") NODE("b") BOUND("x", "{app: w}", "b", "{}")
                    WORLD_POD("w", "{app: w}", "{cpu: 1m}", NEAR(HOST, "w")),
                NULL);
    EXPECT_EQ(room_at(&t, home_named(&t, "a"), "w", 9), 0);
    EXPECT_EQ(room_at(&t, home_named(&t, "b"), "w", 9), 9);
    EXPECT_EQ(room_at(&t, opened(&t, "p", "small"), "w", 9), 0);
}

TEST(domains_wider_than_a_host_are_not_a_question_of_room)
{
    STATED t = { 0 };
    stated_load(&t,
                NODE("a") WORLD_NODE("b", "zone-b", "", "cpu: 4, memory: 8Gi")
                    BOUND("x", "{app: w}", "a", "{}")
                        WORLD_POD("w", "{app: w}", "{cpu: 1m}", SPREADS(SPREAD(ZONE, "1", "w")))
                            WORLD_POD("lone", "{app: l}", "{cpu: 1m}", AWAY(ZONE, "w")),
                NULL);
    EXPECT_EQ(room_at(&t, home_named(&t, "a"), "w", 9), 9);
    EXPECT_EQ(room_at(&t, home_named(&t, "a"), "lone", 9), 9);
}

TEST(a_host_may_admit_a_pod_that_it_has_no_room_for)
{
    STATED t = { 0 };
    stated_load(&t, POOL WORLD_POD("w", "{app: w}", "{cpu: 3}", AWAY(HOST, "w")), NULL);
    uint32_t bin = opened(&t, "p", "small"), w = class_named(&t, "w");
    EXPECT_EQ(room_at(&t, bin, "w", 1), 0);
    EXPECT_TRUE(state_host_admits(&t.s, bin, w, variant_named(&t, "w")));
    uint32_t large = opened(&t, "p", "large");
    placed(&t, large, "w", 1);
    EXPECT_FALSE(state_host_admits(&t.s, large, w, variant_named(&t, "w")));
}

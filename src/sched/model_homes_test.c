/* Homes: which nodes and claims are, their labels, taints and room, and what is counted on them. */
#include "sched/model_testing.h"

#include "cloud/instance_types_testing.h"

#define POD WORLD_POD("p", "{}", "{cpu: 1, memory: 1Gi}", "")
#define BOUND(name, labels, node, requests, more)                                                  \
    WORLD_POD(name, labels, requests, "  nodeName: " node "\n" more)
#define NODE(name) WORLD_NODE(name, "zone-a", "", "cpu: 4, memory: 8Gi")

/* A node whose labels, spec and status are written in full. */
#define NODE_RAW(name, labels, spec, status)                                                       \
    "---\n"                                                                                        \
    "apiVersion: v1\n"                                                                             \
    "kind: Node\n"                                                                                 \
    "metadata: {name: " name ", labels: {" labels "}}\n"                                           \
    "spec: {" spec "}\n"                                                                           \
    "status: {" status "}\n"
#define ROOM "allocatable: {cpu: 4, memory: 8Gi, pods: 110}"

#define CLAIM(name, labels, spec, status)                                                          \
    "---\n"                                                                                        \
    "apiVersion: karpenter.sh/v1\n"                                                                \
    "kind: NodeClaim\n"                                                                            \
    "metadata:\n"                                                                                  \
    "  name: " name "\n"                                                                           \
    "  labels: {karpenter.sh/nodepool: web" labels "}\n"                                           \
    "spec:\n"                                                                                      \
    "  nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}\n" spec         \
    "status: {" status "}\n"
#define ANY_TYPE "  requirements: []\n"

#define DAEMON(name, requests, ports, more)                                                        \
    "---\n"                                                                                        \
    "apiVersion: apps/v1\n"                                                                        \
    "kind: DaemonSet\n"                                                                            \
    "metadata: {name: " name ", namespace: default}\n"                                             \
    "spec:\n"                                                                                      \
    "  selector: {matchLabels: {d: " name "}}\n"                                                   \
    "  template:\n"                                                                                \
    "    metadata: {labels: {d: " name "}}\n"                                                      \
    "    spec:\n"                                                                                  \
    "      containers: [{name: c, image: i, resources: {requests: " requests "}" ports "}]\n" more

static bool suits(struct modelled *t, const char *home, const char *asks)
{
    struct requirements set = draft_labels(&t->arena, asks, ' ');
    return admits(t, home, &set);
}

static int64_t free_of(const struct modelled *t, const char *home, const char *resource)
{
    const struct home *h = modelled_home(t, home);
    EXPECT_TRUE(h);
    return amount(t, h->free, resource);
}

static const char *home_names(struct modelled *t)
{
    AUTO_BUF out = { 0 };
    for (uint32_t i = 0; i < t->m.home_count; i++)
        buf_addf(&out, "%s%.*s", i ? " " : "", STR_ARG(t->m.homes[i].name));
    return arena_str(&t->arena, buf_str(&out)).p;
}

/* --- which --- */

TEST(homes_are_initialised_nodes_then_others_then_claims_by_name)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  POD WORLD_POOL("web", "[]", "") CLAIM("b-claim", "", ANY_TYPE, "")
                      CLAIM("a-claim", "", ANY_TYPE, "") NODE("z") NODE("x")
                          NODE_RAW("a", "karpenter.sh/nodepool: web", "providerID: 'i:///1'", ROOM)
                              CLAIM("c-claim", "", ANY_TYPE, "providerID: 'i:///1'"),
                  NULL);
    EXPECT_Z(home_names(&t), "x z a a-claim b-claim");
    const struct home *node = modelled_home(&t, "x"), *claim = modelled_home(&t, "a-claim");
    EXPECT_TRUE(node->node != NONE);
    EXPECT_EQ(node->claim, NONE);
    EXPECT_EQ(claim->node, NONE);
    EXPECT_STR(t.w.snap.claims[claim->claim]->object.meta.name, "a-claim");
    EXPECT_EQ(node->pool, NONE);
    EXPECT_EQ(claim->pool, 0);
    EXPECT_EQ(modelled_home(&t, "a")->pool, 0);
}

TEST(the_order_of_the_input_does_not_show)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  POD NODE("c") NODE("a") NODE("b") CLAIM("k2", "", ANY_TYPE, "")
                      CLAIM("k1", "", ANY_TYPE, "") WORLD_POOL("web", "[]", ""),
                  NULL);
    EXPECT_Z(home_names(&t), "a b c k1 k2");
    const struct node *first = t.w.nodes.items[0];
    t.w.nodes.items[0] = t.w.nodes.items[2];
    t.w.nodes.items[2] = first;
    modelled_compile(&t);
    EXPECT_Z(home_names(&t), "a b c k1 k2");
}

TEST(what_is_going_away_is_no_home)
{
    MODELLED t = { 0 };
    modelled_load(
        &t,
        POD WORLD_POOL("web", "[]", "") NODE("deleted") NODE("stays") NODE_RAW(
            "disrupted", "a: b", "taints: [{key: karpenter.sh/disrupted, effect: NoSchedule}]",
            ROOM) NODE_RAW("claimed", "a: b", "providerID: 'i:///1'", ROOM)
            CLAIM("leaving", "", ANY_TYPE, "providerID: 'i:///1'") CLAIM("lost", "", ANY_TYPE, "")
                CLAIM("ending", "", ANY_TYPE,
                      "conditions: [{type: InstanceTerminating, status: 'True', reason: "
                      "R, message: m, lastTransitionTime: '2026-01-02T03:04:05Z'}]"),
        NULL);
    for (size_t i = 0; i < t.w.nodes.count; i++) {
        struct node *n = (struct node *)t.w.nodes.items[i];
        if (str_eqz(n->object.meta.name, "deleted"))
            n->object.meta.deleted_us = 1;
    }
    for (size_t i = 0; i < t.w.claims.count; i++) {
        struct nodeclaim *c = (struct nodeclaim *)t.w.claims.items[i];
        if (!str_eqz(c->object.meta.name, "ending"))
            c->object.meta.deleted_us = 1;
    }
    modelled_compile(&t);
    EXPECT_Z(home_names(&t), "stays");
}

/* --- taints --- */

TEST(a_cordoned_node_is_a_home_with_a_taint)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  POD NODE_RAW("a", "label: any", "unschedulable: true", ROOM) NODE_RAW(
                      "b", "label: any",
                      "unschedulable: true, taints: [{key: node.kubernetes.io/unschedulable, "
                      "effect: NoSchedule}]",
                      ROOM) NODE("c"),
                  NULL);
    EXPECT_Z(taints_of(&t, modelled_home(&t, "a")->taints),
             "node.kubernetes.io/unschedulable::NoSchedule");
    EXPECT_EQ(modelled_home(&t, "a")->taints, modelled_home(&t, "b")->taints);
    EXPECT_Z(taints_of(&t, modelled_home(&t, "c")->taints), "");
}

#define BOOTING                                                                                    \
    "providerID: 'i:///1', taints: [{key: boot, value: v, effect: NoSchedule}, {key: "             \
    "node.kubernetes.io/not-ready, effect: NoSchedule}, {key: node.kubernetes.io/not-ready, "      \
    "effect: NoExecute}, {key: node.kubernetes.io/unreachable, effect: NoSchedule}, {key: "        \
    "node.cloudprovider.kubernetes.io/uninitialized, value: 'true', effect: NoSchedule}, {key: "   \
    "readiness.k8s.io/x, effect: NoSchedule}, {key: team, value: shop, effect: NoSchedule}]"
#define BOOTING_CLAIM                                                                              \
    CLAIM("k", "",                                                                                 \
          "  requirements: []\n  taints: [{key: team, value: shop, effect: NoSchedule}]\n"         \
          "  startupTaints: [{key: boot, effect: NoSchedule}]\n",                                  \
          "providerID: 'i:///1'")

TEST(taints_that_pass_do_not_count_until_a_node_is_initialised)
{
    static const struct {
        const char *labels, *taints;
    } stages[] = {
        { "label: any", "team:shop:NoSchedule" }, /* the claim speaks */
        { "karpenter.sh/registered: 'true'", "team:shop:NoSchedule" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(stages); i++) {
        MODELLED t = { 0 };
        AUTO_BUF yaml = { 0 };
        buf_addf(&yaml,
                 POD BOOTING_CLAIM NODE_RAW("node", "%s", BOOTING, ROOM)
                     WORLD_POOL("web", "[]", ""),
                 stages[i].labels);
        modelled_load(&t, yaml.p, NULL);
        EXPECT_Z(taints_of(&t, modelled_home(&t, "node")->taints), stages[i].taints);
    }
    MODELLED t = { 0 };
    modelled_load(&t,
                  POD BOOTING_CLAIM NODE_RAW(
                      "node", "karpenter.sh/registered: 'true', karpenter.sh/initialized: 'true'",
                      BOOTING, ROOM) WORLD_POOL("web", "[]", ""),
                  NULL);
    EXPECT_EQ(t.m.taints[modelled_home(&t, "node")->taints].count, 7);
}

TEST(startup_taints_of_a_claim_on_its_way_do_not_count)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  POD WORLD_POOL("web", "[]", "")
                      CLAIM("k", "",
                            "  requirements: []\n"
                            "  taints: [{key: team, value: shop, effect: NoSchedule}]\n"
                            "  startupTaints: [{key: boot, effect: NoSchedule}]\n",
                            ""),
                  NULL);
    EXPECT_Z(taints_of(&t, modelled_home(&t, "k")->taints), "team:shop:NoSchedule");
}

/* --- room --- */

TEST(what_is_free_is_allocatable_less_the_pods_that_are_there)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  POD NODE("a") BOUND("x", "{}", "a", "{cpu: 500m, memory: 1Gi}", "")
                      BOUND("v", "{}", "a", "{cpu: 250m}", "")
                          BOUND("done", "{}", "a", "{cpu: 3}", "status: {phase: Succeeded}\n")
                              BOUND("lost", "{}", "gone", "{cpu: 3}", ""),
                  NULL);
    EXPECT_EQ(free_of(&t, "a", "cpu"), 4000 - 750);
    EXPECT_EQ(free_of(&t, "a", "memory"), INT64_C(7) * 1024 * 1024 * 1024 * 1000);
    EXPECT_EQ(free_of(&t, "a", "pods"), 110000 - 2000);
}

TEST(room_is_kept_for_daemons_that_are_yet_to_come)
{
    MODELLED t = { 0 };
    modelled_load(
        &t,
        POD NODE("empty") NODE("partly") NODE("full") NODE_RAW(
            "tainted", "label: any", "taints: [{key: team, effect: NoSchedule}]", ROOM)
            DAEMON("a", "{cpu: 100m}", ", ports: [{containerPort: 1, hostPort: 90}]", "")
                DAEMON("b", "{cpu: 200m}", "", "      nodeSelector: {kubernetes.io/os: linux}\n")
                    DAEMON("c", "{cpu: 400m}", "", "      nodeSelector: {nowhere: 'true'}\n"),
        NULL);
    EXPECT_EQ(free_of(&t, "empty", "cpu"), 4000 - 300);
    EXPECT_EQ(free_of(&t, "empty", "pods"), 110000 - 2000);
    EXPECT_EQ(modelled_home(&t, "empty")->port_count, 1);
    EXPECT_EQ(free_of(&t, "tainted", "cpu"), 4000);

    static const char *const running[][3] = { { "a-1", "a", "partly" },
                                              { "a-2", "a", "full" },
                                              { "b-2", "b", "full" } };
    for (size_t i = 0; i < KV_COUNT_OF(running); i++) {
        AUTO_BUF body = { 0 };
        buf_addf(&body,
                 "metadata: {ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: %s, "
                 "uid: u, controller: true}]}\n"
                 "spec:\n"
                 "  nodeName: %s\n"
                 "  containers: [{name: c, image: i, resources: {requests: {cpu: %s}}}]\n",
                 running[i][1], running[i][2],
                 i == 0   ? "100m"
                 : i == 1 ? "50m"
                          : "200m");
        world_add_pods(&t.w, 1, running[i][0], body.p);
    }
    modelled_compile(&t);
    /* The newest of a's pods are of one age: the first by name tells what they ask for. */
    EXPECT_EQ(free_of(&t, "partly", "cpu"), 4000 - 300);
    EXPECT_EQ(free_of(&t, "partly", "pods"), 110000 - 2000);
    EXPECT_EQ(modelled_home(&t, "partly")->port_count, 0);
    EXPECT_EQ(free_of(&t, "full", "cpu"), 4000 - 50 - 50 - 200);
}

TEST(a_node_that_reports_no_allocatable_has_its_capacity)
{
    MODELLED t = { 0 };
    modelled_load(
        &t, POD NODE_RAW("a", "label: any", "", "capacity: {cpu: 3, memory: 1Gi, pods: 5}"), NULL);
    EXPECT_EQ(free_of(&t, "a", "cpu"), 3000);
}

TEST(what_a_starting_node_has_not_reported_is_what_its_claim_expects)
{
    MODELLED t = { 0 };
    modelled_load(
        &t,
        WORLD_POD("p", "{}", "{cpu: 1, nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: 1}",
                  "") WORLD_POOL("web", "[]", "")
            NODE_RAW("starting", "karpenter.sh/registered: 'true'", "providerID: 'i:///1'",
                     "allocatable: {cpu: 4, nvidia.com/gpu: 0, pods: 9}")
                NODE_RAW("up", "karpenter.sh/initialized: 'true'", "providerID: 'i:///2'",
                         "allocatable: {cpu: 4, nvidia.com/gpu: 0, pods: 9}")
                    CLAIM(
                        "k1", "", ANY_TYPE,
                        "providerID: 'i:///1', allocatable: {cpu: 7, memory: 2, nvidia.com/gpu: 2}")
                        CLAIM("k2", "", ANY_TYPE,
                              "providerID: 'i:///2', allocatable: {cpu: 7, nvidia.com/gpu: 2}"),
        NULL);
    EXPECT_EQ(free_of(&t, "starting", "cpu"), 4000);
    EXPECT_EQ(free_of(&t, "starting", "memory"), 2000);
    EXPECT_EQ(free_of(&t, "starting", "nvidia.com/gpu"), 2000);
    EXPECT_EQ(free_of(&t, "up", "nvidia.com/gpu"), 0);
}

TEST(a_claim_without_an_estimate_has_the_least_of_what_it_may_become)
{
    MODELLED t = { 0 };
    modelled_load(
        &t,
        POD WORLD_POOL("web", "[]", "") CLAIM("told", ", node.kubernetes.io/instance-type: large",
                                              ANY_TYPE,
                                              "allocatable: {cpu: 1, memory: 1Gi, pods: 3}")
            CLAIM("typed", ", node.kubernetes.io/instance-type: large", ANY_TYPE, "")
                CLAIM("either", "",
                      "  requirements: [{key: node.kubernetes.io/instance-type, operator: In, "
                      "values: [memory, large]}]\n",
                      "") CLAIM("unknown", ", node.kubernetes.io/instance-type: nosuch",
                                "  requirements: []\n  resources: {requests: {cpu: 300m}}\n", ""),
        NULL);
    EXPECT_EQ(free_of(&t, "told", "cpu"), 1000);
    EXPECT_EQ(free_of(&t, "typed", "cpu"), 8000);
    EXPECT_EQ(free_of(&t, "either", "cpu"), 4000);
    EXPECT_EQ(free_of(&t, "either", "memory"), INT64_C(16) * 1024 * 1024 * 1024 * 1000);
    EXPECT_EQ(free_of(&t, "unknown", "cpu"), 300);
}

/* --- labels --- */

TEST(a_node_is_asked_by_its_labels_and_nothing_may_be_missing)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  POD WORLD_NODE("a", "zone-a", ", team: shop", "cpu: 4")
                      WORLD_NODE("b", "zone-b", ", level: '7'", "cpu: 4"),
                  NULL);
    for (int again = 0; again < 2; again++) {
        EXPECT_TRUE(suits(&t, "a", "team=shop"));
        EXPECT_FALSE(suits(&t, "b", "team=shop"));
        EXPECT_FALSE(suits(&t, "b", "team=*"));
        EXPECT_TRUE(suits(&t, "b", "team=-shop"));
        EXPECT_FALSE(suits(&t, "a", "team=-shop"));
        EXPECT_TRUE(suits(&t, "b", "team=!"));
        EXPECT_TRUE(suits(&t, "b", "level=>7"));
        EXPECT_FALSE(suits(&t, "b", "level=>8"));
        EXPECT_FALSE(suits(&t, "a", "level=>7"));
        EXPECT_FALSE(suits(&t, "a", "karpenter.sh/capacity-type=spot")); /* well known or not */
        EXPECT_TRUE(suits(&t, "a", "topology.kubernetes.io/zone=a,zone-a"));
        EXPECT_TRUE(suits(&t, "a", "failure-domain.beta.kubernetes.io/zone=zone-a"));
    }
}

TEST(answers_are_kept_per_shape_of_home)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  WORLD_POD("p", "{}", "{cpu: 1}", "  nodeSelector: {team: shop}\n")
                      WORLD_NODE("a", "zone-a", ", team: shop, serial: '1'", "cpu: 4")
                          WORLD_NODE("b", "zone-b", ", team: shop, serial: '2'", "cpu: 4")
                              WORLD_NODE("c", "zone-b", ", team: bank", "cpu: 4")
                                  WORLD_NODE("d", "zone-b", "", "cpu: 4"),
                  NULL);
    /* Nobody asks for the zone or the serial number. */
    EXPECT_EQ(t.m.shape_count, 3);
    EXPECT_EQ(modelled_home(&t, "a")->shape, modelled_home(&t, "b")->shape);
    EXPECT_TRUE(modelled_home(&t, "c")->shape != modelled_home(&t, "d")->shape);
    EXPECT_TRUE(suits(&t, "a", "team=shop"));
    EXPECT_TRUE(suits(&t, "b", "team=shop"));
    EXPECT_FALSE(suits(&t, "c", "team=shop"));
    EXPECT_FALSE(suits(&t, "d", "team=shop"));
    /* Something new is asked of each. */
    EXPECT_TRUE(suits(&t, "a", "serial=1"));
    EXPECT_FALSE(suits(&t, "b", "serial=1"));
}

TEST(a_host_name_is_asked_of_each_home)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  WORLD_POD("p", "{}", "{cpu: 1}", "  nodeSelector: {kubernetes.io/hostname: a}\n")
                      NODE("a") NODE("b") NODE_RAW("bare", "label: any", "", ROOM)
                          WORLD_POOL("web", "[]", "") CLAIM("k", "", ANY_TYPE, ""),
                  NULL);
    EXPECT_TRUE(suits(&t, "a", "kubernetes.io/hostname=a"));
    EXPECT_FALSE(suits(&t, "b", "kubernetes.io/hostname=a"));
    EXPECT_TRUE(suits(&t, "b", "kubernetes.io/hostname=-a"));
    EXPECT_TRUE(suits(&t, "bare", "kubernetes.io/hostname=bare"));
    EXPECT_FALSE(suits(&t, "k", "kubernetes.io/hostname=k"));
    EXPECT_TRUE(suits(&t, "k", "kubernetes.io/hostname=-a"));
    EXPECT_STR(modelled_home(&t, "bare")->hostname, "bare");
}

TEST(a_claim_on_its_way_suits_if_it_does_whatever_it_becomes)
{
    MODELLED t = { 0 };
    modelled_load(
        &t,
        POD WORLD_POOL("web", "[]", "")
            CLAIM("k", ", team: shop",
                  "  requirements: [{key: topology.kubernetes.io/zone, operator: In, values: "
                  "[zone-a, zone-b]}, {key: karpenter.sh/capacity-type, operator: In, values: "
                  "[spot]}, {key: node.kubernetes.io/instance-type, operator: In, values: [small, "
                  "medium]}]\n",
                  ""),
        NULL);
    EXPECT_TRUE(suits(&t, "k", "team=shop"));
    EXPECT_TRUE(suits(&t, "k", "karpenter.sh/capacity-type=spot"));
    EXPECT_FALSE(suits(&t, "k", "karpenter.sh/capacity-type=on-demand"));
    EXPECT_FALSE(suits(&t, "k", "topology.kubernetes.io/zone=zone-a"));
    EXPECT_TRUE(suits(&t, "k", "topology.kubernetes.io/zone=zone-a,zone-b"));
    EXPECT_FALSE(suits(&t, "k", "topology.kubernetes.io/zone=-zone-a"));
    EXPECT_TRUE(suits(&t, "k", "topology.kubernetes.io/zone=-zone-c"));
    /* Both types are of this architecture. */
    EXPECT_TRUE(suits(&t, "k", "kubernetes.io/arch=amd64"));
    EXPECT_FALSE(suits(&t, "k", "kubernetes.io/arch=-amd64"));
    EXPECT_FALSE(suits(&t, "k", "node.kubernetes.io/instance-type=small"));
    EXPECT_FALSE(suits(&t, "k", "nowhere=*"));
    EXPECT_TRUE(suits(&t, "k", "nowhere=!"));
}

TEST(until_a_node_has_registered_its_claim_speaks_for_its_labels)
{
    MODELLED t = { 0 };
    modelled_load(
        &t,
        POD WORLD_POOL("web", "[]", "") NODE_RAW("fresh", "rack: r1", "providerID: 'i:///1'", ROOM)
            NODE_RAW("joined", "karpenter.sh/registered: 'true'", "providerID: 'i:///2'", ROOM)
                CLAIM("k1", ", team: shop, rack: r2", ANY_TYPE, "providerID: 'i:///1'")
                    CLAIM("k2", ", team: shop", ANY_TYPE, "nodeName: joined"),
        NULL);
    EXPECT_Z(home_names(&t), "fresh joined");
    EXPECT_TRUE(suits(&t, "fresh", "team=shop"));
    EXPECT_TRUE(suits(&t, "fresh", "rack=r1"));
    EXPECT_TRUE(suits(&t, "fresh", "kubernetes.io/hostname=fresh"));
    EXPECT_FALSE(suits(&t, "joined", "team=shop"));
}

/* --- what is counted --- */

#define SPREAD(key)                                                                                \
    "  topologySpreadConstraints: [{maxSkew: 1, topologyKey: " key                                 \
    ", whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: w}}}]\n"
#define AVOIDS(key)                                                                                \
    "  affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "              \
    "[{topologyKey: " key ", labelSelector: {matchLabels: {app: w}}}]}}\n"
#define ZONE "topology.kubernetes.io/zone"
#define HOST "kubernetes.io/hostname"

static const struct group *group_of(const struct modelled *t, enum group_kind kind, const char *key)
{
    for (uint32_t i = 0; i < t->m.group_count; i++) {
        const struct group *g = &t->m.groups[i];
        if (g->kind == kind && str_eqz(t->m.keys[g->key].name, key))
            return g;
    }
    fail_msg("there is no such group on %s", key);
    return NULL;
}

static uint32_t zone_ix(const struct modelled *t, const struct group *g, const char *zone)
{
    const struct topology_key *key = &t->m.keys[g->key];
    for (uint32_t i = 0; i < key->domain_count; i++) {
        if (str_eqz(key->domains[i], zone))
            return i;
    }
    fail_msg("%s is not a domain", zone);
    return NONE;
}

static void end_pod(struct modelled *t, const char *name)
{
    struct pod *pod = (struct pod *)t->w.snap.pods[world_pod_ix(&t->w, name)];
    pod->object.meta.deleted_us = 1;
}

TEST(bound_pods_are_counted_in_the_domains_of_their_nodes)
{
    MODELLED t = { 0 };
    modelled_load(
        &t,
        WORLD_POD("p", "{app: w}", "{cpu: 1}", SPREAD(ZONE)) WORLD_NODE("a", "zone-a", "", "cpu: 4")
            WORLD_NODE("b", "zone-b", "", "cpu: 4") WORLD_NODE("c", "zone-b", "", "cpu: 4")
                NODE_RAW("unzoned", "label: any", "", ROOM) BOUND("a1", "{app: w}", "a", "{}", "")
                    BOUND("b1", "{app: w}", "b", "{}", "") BOUND("c1", "{app: w}", "c", "{}", "")
                        BOUND("c2", "{app: w}", "c", "{}", "")
                            BOUND("c3", "{app: other}", "c", "{}", "")
                                BOUND("u1", "{app: w}", "unzoned", "{}", ""),
        NULL);
    const struct group *g = group_of(&t, GROUP_SPREAD, ZONE);
    EXPECT_EQ(g->matched[zone_ix(&t, g, "zone-a")], 1);
    EXPECT_EQ(g->matched[zone_ix(&t, g, "zone-b")], 3);
    EXPECT_EQ(g->total, 4);
    EXPECT_EQ(modelled_home(&t, "a")->domains[g->key], zone_ix(&t, g, "zone-a"));
    EXPECT_EQ(modelled_home(&t, "unzoned")->domains[g->key], NONE);
    EXPECT_EQ(modelled_home(&t, "a")->tally_count, 0);
    end_pod(&t, "c1"); /* on its way out: kube-scheduler does not spread around it */
    modelled_compile(&t);
    g = group_of(&t, GROUP_SPREAD, ZONE);
    EXPECT_EQ(g->matched[zone_ix(&t, g, "zone-b")], 2);
}

TEST(nodes_that_a_spread_does_not_look_at_do_not_count)
{
    MODELLED t = { 0 };
    modelled_load(
        &t,
        WORLD_POD("p", "{app: w}", "{cpu: 1}", SPREAD(ZONE) "  nodeSelector: {team: shop}\n")
            WORLD_NODE("a", "zone-a", ", team: shop", "cpu: 4")
                WORLD_NODE("b", "zone-b", "", "cpu: 4") BOUND("a1", "{app: w}", "a", "{}", "")
                    BOUND("b1", "{app: w}", "b", "{}", ""),
        NULL);
    const struct group *g = group_of(&t, GROUP_SPREAD, ZONE);
    EXPECT_EQ(g->matched[zone_ix(&t, g, "zone-a")], 1);
    EXPECT_EQ(g->matched[zone_ix(&t, g, "zone-b")], 0);
    EXPECT_EQ(g->total, 1);
    EXPECT_EQ(g->homes.bit_count, 2);
    EXPECT_TRUE(bitset_test(&g->homes, 0));
    EXPECT_FALSE(bitset_test(&g->homes, 1));
}

TEST(pods_are_tallied_per_host_with_those_that_avoid_others)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  WORLD_POD("p", "{app: w}", "{cpu: 1}", AVOIDS(HOST)) NODE("a") NODE("b")
                      BOUND("a1", "{app: w}", "a", "{}", "")
                          BOUND("a2", "{app: w}", "a", "{}", AVOIDS(HOST))
                              BOUND("b1", "{app: x}", "b", "{}", AVOIDS(HOST)),
                  NULL);
    const struct group *g = group_of(&t, GROUP_ANTI, HOST);
    uint32_t number = (uint32_t)(g - t.m.groups);
    for (int ending = 0; ending < 2; ending++) {
        const struct home *a = modelled_home(&t, "a"), *b = modelled_home(&t, "b");
        EXPECT_EQ(a->tally_count, 1);
        EXPECT_EQ(a->tallies[0].group, number);
        EXPECT_EQ(a->tallies[0].matched, 2);
        EXPECT_EQ(a->tallies[0].owners, 1);
        EXPECT_EQ(b->tally_count, 1);
        EXPECT_EQ(b->tallies[0].matched, 0);
        EXPECT_EQ(b->tallies[0].owners, 1);
        EXPECT_EQ(t.m.groups[number].total, 2);
        end_pod(&t, "a1"); /* still there for kube-scheduler */
        end_pod(&t, "b1");
        modelled_compile(&t);
    }
}

TEST(pods_on_a_node_that_goes_away_still_count_for_topology)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  WORLD_POD("p", "{app: w}", "{cpu: 1}", SPREAD(ZONE))
                      WORLD_NODE("a", "zone-a", "", "cpu: 4")
                          BOUND("a1", "{app: w}", "a", "{}", ""),
                  NULL);
    ((struct node *)t.w.nodes.items[0])->object.meta.deleted_us = 1;
    modelled_compile(&t);
    EXPECT_EQ(t.m.home_count, 0);
    EXPECT_EQ(group_of(&t, GROUP_SPREAD, ZONE)->total, 1);
}

TEST(ports_of_pods_on_a_node_are_taken)
{
    MODELLED t = { 0 };
    modelled_load(
        &t,
        POD NODE("a") NODE(
            "b") "---\napiVersion: v1\nkind: Pod\nmetadata: {name: x, namespace: default}\n"
                 "spec: {nodeName: a, containers: [{name: c, image: i, ports: [{containerPort: "
                 "1, hostPort: 81}, {containerPort: 2, hostPort: 80}]}]}\n"
                 "---\napiVersion: v1\nkind: Pod\nmetadata: {name: v, namespace: default}\n"
                 "spec: {nodeName: a, containers: [{name: c, image: i, ports: [{containerPort: "
                 "2, hostPort: 80}]}]}\n",
        NULL);
    const struct home *a = modelled_home(&t, "a");
    EXPECT_EQ(a->port_count, 2);
    EXPECT_TRUE(a->ports[0] < a->ports[1]);
    EXPECT_EQ(modelled_home(&t, "b")->port_count, 0);
}

#define CSI_NODE(name, count)                                                                      \
    "---\n"                                                                                        \
    "apiVersion: storage.k8s.io/v1\n"                                                              \
    "kind: CSINode\n"                                                                              \
    "metadata: {name: " name "}\n"                                                                 \
    "spec: {drivers: [{name: free.csi, nodeID: i}, {name: ebs.csi.aws.com, nodeID: i, "            \
    "allocatable: {count: " count "}}]}\n"
#define PVC(name)                                                                                  \
    "---\n"                                                                                        \
    "apiVersion: v1\n"                                                                             \
    "kind: PersistentVolumeClaim\n"                                                                \
    "metadata: {name: " name ", namespace: default, annotations: "                                 \
    "{pv.kubernetes.io/bind-completed: 'yes'}}\n"                                                  \
    "spec: {accessModes: [ReadWriteOnce], volumeName: pv-" name ", resources: {requests: "         \
    "{storage: 1Gi}}}\n"                                                                           \
    "status: {phase: Bound}\n"                                                                     \
    "---\n"                                                                                        \
    "apiVersion: v1\n"                                                                             \
    "kind: PersistentVolume\n"                                                                     \
    "metadata: {name: pv-" name "}\n"                                                              \
    "spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], csi: {driver: "                \
    "ebs.csi.aws.com, volumeHandle: vol-" name "}, claimRef: {namespace: default, name: " name     \
    "}}\n"
#define USES(claim) "  volumes: [{name: v, persistentVolumeClaim: {claimName: " claim "}}]\n"

TEST(attachments_left_are_the_limit_less_distinct_claims_in_use)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  WORLD_POD("p", "{}", "{cpu: 1}", USES("shared")) NODE("a") NODE("b") NODE("c")
                      CSI_NODE("a", "5") CSI_NODE("b", "3") PVC("shared") PVC("own")
                          BOUND("x", "{}", "a", "{}", USES("shared"))
                              BOUND("v", "{}", "a", "{}", USES("shared"))
                                  BOUND("z", "{}", "a", "{}", USES("own")),
                  NULL);
    const struct home *a = modelled_home(&t, "a"), *b = modelled_home(&t, "b");
    EXPECT_EQ(a->room_count, 1);
    EXPECT_STR(t.m.drivers[a->rooms[0].driver], "ebs.csi.aws.com");
    EXPECT_EQ(a->rooms[0].left, 3);
    EXPECT_EQ(a->claim_count, 1);
    EXPECT_EQ(b->rooms[0].left, 3);
    EXPECT_EQ(b->claim_count, 0);
    EXPECT_EQ(modelled_home(&t, "c")->room_count, 0);
}

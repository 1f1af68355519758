/* Can the pods be where a plan puts them? On nodes, on claims, and on everything that a launch may
 * become. */
#include "sched/check_testing.h"

#define ZONE(z) "topology.kubernetes.io/zone=" z
#define AFFINITY(terms)                                                                            \
    "  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "                 \
    "{nodeSelectorTerms: [" terms "]}}}\n"
#define TERM(key, op, values)                                                                      \
    "{matchExpressions: [{key: " key ", operator: " op ", values: [" values "]}]}"
#define DAEMON(name, more)                                                                         \
    "---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: " name ", namespace: default}\n"  \
    "spec:\n  selector: {matchLabels: {d: " name "}}\n  template:\n"                               \
    "    metadata: {labels: {d: " name "}}\n    spec:\n" more
#define DAEMON_CPU(cpu)                                                                            \
    "      containers: [{name: c, image: i, resources: {requests: {cpu: " cpu "}}}]\n"

/* A world of one pool and pod, and the pod alone on a launch of these types. */
static void expect_launch(const char *pool, const char *pod, const char *types,
                          const char *requirements, const char *maybe_words)
{
    WORLD w;
    DRAFT d;
    AUTO_BUF yaml = { 0 };
    buf_addf(&yaml, "%s%s", pool, pod);
    world_load(&w, yaml.p, WORLD_TYPES_SMALL);
    draft_begin(&d, &w);
    draft_launch(&d, "web", types, requirements, "a");
    if (maybe_words)
        expect_wrong(&d, maybe_words);
    else
        expect_right(&d);
}

#define PLAIN WORLD_POOL("web", "[]", "")

/* --- launches: labels --- */

TEST(every_combination_has_the_labels_that_a_pod_asks_for)
{
    const char *in_a =
        WORLD_POD("a", "{}", "{cpu: 1}", "  nodeSelector: {topology.kubernetes.io/zone: zone-a}\n");
    expect_launch(PLAIN, in_a, "small medium", ZONE("zone-a"), NULL);
    expect_launch(PLAIN, in_a, "small medium", ZONE("zone-b"),
                  "pod default/a: its node selector or affinity does not find launch 0");
    expect_launch(PLAIN, in_a, "small medium", ZONE("zone-a,zone-b"),
                  "does not find all that launch 0 of pool web may become");
    expect_launch(PLAIN, in_a, "small medium", "",
                  "does not find all that launch 0 of pool web may become");
    /* The only offerings of this type are there. */
    expect_launch(PLAIN, in_a, "gpu", "", NULL);

    const char *arm =
        WORLD_POD("a", "{}", "{cpu: 1}", "  nodeSelector: {beta.kubernetes.io/arch: arm64}\n");
    expect_launch(PLAIN, arm, "arm", "", NULL);
    expect_launch(PLAIN, arm, "arm medium", "", "does not find all that launch 0");
}

TEST(operators_of_node_affinity_mean_what_kube_scheduler_makes_of_them)
{
    static const struct {
        const char *term, *words;
    } cases[] = {
        { TERM("kubernetes.io/arch", "In", "amd64, s390x"), NULL },
        { TERM("kubernetes.io/arch", "NotIn", "arm64"), NULL },
        { TERM("kubernetes.io/arch", "NotIn", "amd64"), "does not find launch 0" },
        { TERM("team", "NotIn", "bank"), NULL },
        { TERM("team", "In", "bank"), "does not find launch 0" },
        { TERM("kubernetes.io/hostname", "In", "n1"), "does not find launch 0" },
        { TERM("kubernetes.io/hostname", "NotIn", "n1"), NULL },
        { TERM("karpenter.sh/nodepool", "In", "web"), NULL },
        { TERM("karpenter.k8s.aws/ec2nodeclass", "In", "default"), NULL },
        { TERM("kubernetes.io/os", "Gt", "\"3\""), "does not find launch 0" },
        { "{matchExpressions: [{key: kubernetes.io/arch, operator: Exists}]}", NULL },
        { "{matchExpressions: [{key: kubernetes.io/arch, operator: DoesNotExist}]}",
          "does not find launch 0" },
        { "{matchFields: [{key: metadata.name, operator: In, values: [n1]}]}",
          "does not find launch 0" },
        { "{matchFields: [{key: metadata.name, operator: NotIn, values: [n1]}]}", NULL },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO_BUF pod = { 0 };
        buf_addf(&pod, WORLD_POD("a", "{}", "{cpu: 1}", AFFINITY("%s")), cases[i].term);
        expect_launch(PLAIN, pod.p, "small medium", "", cases[i].words);
    }
}

TEST(terms_may_share_the_combinations_between_them)
{
    const char *either = WORLD_POD("a", "{}", "{cpu: 1}",
                                   AFFINITY(TERM("kubernetes.io/arch", "In", "arm64") ", " TERM(
                                       "node.kubernetes.io/instance-type", "In", "medium")));
    expect_launch(PLAIN, either, "arm medium", "", NULL);
    expect_launch(PLAIN, either, "arm medium large", "", "does not find all that launch 0");
    expect_launch(PLAIN, either, "small", "", "does not find launch 0");
}

TEST(numbers_of_a_pools_own_label_are_compared)
{
    const char *pool = WORLD_POOL("web", "[{key: generation, operator: Gt, values: [\"4\"]}]", "");
    const char *pod = WORLD_POD("a", "{}", "{cpu: 1}", AFFINITY(TERM("generation", "Gt", "\"3\"")));
    const char *high =
        WORLD_POD("a", "{}", "{cpu: 1}", AFFINITY(TERM("generation", "Gt", "\"6\"")));
    expect_launch(pool, pod, "small", "", NULL);
    expect_launch(pool, high, "small", "", "does not find all that launch 0");
    expect_launch(pool, high, "small", "generation=7", NULL);
}

/* --- launches: taints, resources, daemons, ports --- */

TEST(taints_of_the_pool_are_tolerated_and_startup_taints_do_not_matter)
{
    const char *pool = WORLD_POOL("web", "[]",
                                  "      taints: [{key: team, value: shop, effect: NoSchedule}]\n"
                                  "      startupTaints: [{key: wait, effect: NoExecute}]\n");
    expect_launch(pool, WORLD_POD("a", "{}", "{cpu: 1}", ""), "small", "",
                  "pod default/a does not tolerate the taint team of launch 0");
    expect_launch(
        pool, WORLD_POD("a", "{}", "{cpu: 1}", "  tolerations: [{key: team, operator: Exists}]\n"),
        "small", "", NULL);
    expect_launch(WORLD_POOL("web", "[]", "      taints: [{key: t, effect: PreferNoSchedule}]\n"),
                  WORLD_POD("a", "{}", "{cpu: 1}", ""), "small", "", NULL);
}

TEST(every_type_holds_the_pods)
{
    const char *pod = WORLD_POD("a", "{}", "{cpu: 3, memory: 10Gi}", "");
    expect_launch(PLAIN, pod, "memory large", "", NULL);
    expect_launch(PLAIN, pod, "medium large", "",
                  "launch 0 of pool web: medium (zone-a, on-demand) has 8Gi memory, and pods and "
                  "daemons ask for 10Gi");
    expect_launch(PLAIN,
                  WORLD_POD("a", "{}", "{nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: 1}", ""),
                  "large", "",
                  "large (zone-a, on-demand) has 0 nvidia.com/gpu, and pods and daemons ask for 1");
    expect_launch(PLAIN,
                  WORLD_POD("a", "{}", "{nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: 1}", ""),
                  "gpu", "", NULL);
}

TEST(offerings_with_less_of_something_hold_the_pods_too)
{
    WORLD w;
    DRAFT d;
    DRAFTS types = { 0 };
    world_load(&w, PLAIN WORLD_POD("a", "{}", "{cpu: 2}", ""), WORLD_TYPES_SMALL);
    struct instance_type_draft *type = draft_type(&types, "odd", "", "zone-a/spot=1 zone-b/spot=2");
    type->capacity = draft_resources(&types.arena, "cpu=2 memory=4Gi pods=9");
    draft_offering_at(type, 1)->capacity_override = draft_resources(&types.arena, "cpu=1");
    AUTO_INSTANCE_TYPES s = drafts_build(&types);
    const struct instance_types *before = w.pools.items[0].types;
    w.pools.items[0].types = s;
    draft_begin(&d, &w);
    draft_launch(&d, "web", "odd", ZONE("zone-a"), "a");
    expect_right(&d);
    d.launches.count = d.order.count = 0;
    draft_launch(&d, "web", "odd", "", "a");
    expect_wrong(&d, "odd (zone-b, spot) has 1 cpu");
    w.pools.items[0].types = before;
}

TEST(daemons_take_their_room_where_they_would_run)
{
    const char *pod = WORLD_POD("a", "{}", "{cpu: 1500m}", "");
    const char *everywhere = PLAIN DAEMON("log", DAEMON_CPU("600m"));
    const char *elsewhere =
        PLAIN DAEMON("log", DAEMON_CPU("600m") "      nodeSelector: {gpu: 'x'}\n");
    const char *in_b = PLAIN DAEMON(
        "log", DAEMON_CPU("600m") "      nodeSelector: {topology.kubernetes.io/zone: zone-b}\n");
    const char *tainted = WORLD_POOL("web", "[]", "      taints: [{key: t, effect: NoSchedule}]\n")
        DAEMON("log", DAEMON_CPU("600m"));
    const char *tolerant =
        WORLD_POD("a", "{}", "{cpu: 1500m}", "  tolerations: [{operator: Exists}]\n");

    expect_launch(everywhere, pod, "small", "",
                  "small (zone-a, on-demand) has 2 cpu, and pods and "
                  "daemons ask for 2100m");
    expect_launch(everywhere, pod, "medium", "", NULL);
    expect_launch(in_b, pod, "small", "",
                  "small (zone-b, on-demand) has 2 cpu, and pods and daemons "
                  "ask for 2100m");
    for (int i = 0; i < 2; i++) { /* where it would not run it takes nothing */
        WORLD w;
        DRAFT d;
        AUTO_BUF yaml = { 0 };
        buf_addf(&yaml, "%s%s", i ? tainted : elsewhere, i ? tolerant : pod);
        world_load(&w, yaml.p, WORLD_TYPES_SMALL);
        draft_begin(&d, &w);
        draft_launch(&d, "web", "small", "", "a")->requests =
            draft_resources(&w.arena, "cpu=1500m pods=1");
        expect_right(&d);
    }
}

#define PORT_POD(name, ports)                                                                      \
    "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " name ", namespace: default}\n"             \
    "spec: {containers: [{name: c, image: i, ports: [" ports "]}]}\n"

TEST(host_ports_are_taken_once)
{
    static const struct {
        const char *one, *two;
        bool conflict;
    } cases[] = {
        { "{containerPort: 80, hostPort: 80}", "{containerPort: 81, hostPort: 80}", true },
        { "{containerPort: 80, hostPort: 80}", "{containerPort: 80, hostPort: 81}", false },
        { "{containerPort: 80, hostPort: 80}", "{containerPort: 80, hostPort: 80, protocol: UDP}",
          false },
        { "{containerPort: 80, hostPort: 80, hostIP: 10.0.0.1}",
          "{containerPort: 80, hostPort: 80, hostIP: 10.0.0.2}", false },
        { "{containerPort: 80, hostPort: 80, hostIP: 10.0.0.1}",
          "{containerPort: 80, hostPort: 80}", true },
        { "{containerPort: 80}", "{containerPort: 80}", false },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO_BUF yaml = { 0 };
        WORLD w;
        DRAFT d;
        buf_addf(&yaml, PLAIN PORT_POD("a", "%s") PORT_POD("b", "%s"), cases[i].one, cases[i].two);
        world_load(&w, yaml.p, WORLD_TYPES_SMALL);
        draft_begin(&d, &w);
        draft_launch(&d, "web", "small", "", "a b");
        if (cases[i].conflict)
            expect_wrong(&d, "pod default/a and pod default/b both take host port 80");
        else
            expect_right(&d);
    }
    expect_launch(PLAIN DAEMON("log", "      hostNetwork: true\n      containers: [{name: c, "
                                      "image: i, ports: [{containerPort: 80, hostPort: 80}]}]\n"),
                  PORT_POD("a", "{containerPort: 80, hostPort: 80}"), "small", "",
                  "daemon log and pod default/a both take host port 80");
}

TEST(what_is_not_handled_is_not_placed)
{
    expect_launch(PLAIN,
                  WORLD_POD("a", "{}", "{cpu: 1}",
                            "  resourceClaims: [{name: gpu, resourceClaimName: mine}]\n"),
                  "small", "", "pod default/a has resource claims, which are not handled");
}

/* --- nodes --- */

static void expect_node(const char *node, const char *more, const char *pod,
                        const char *maybe_words)
{
    WORLD w;
    DRAFT d;
    AUTO_BUF yaml = { 0 };
    buf_addf(&yaml, "%s%s%s", node, more, pod);
    world_load(&w, yaml.p, WORLD_TYPES_SMALL);
    draft_begin(&d, &w);
    draft_existing(&d, "n1", "a");
    if (maybe_words)
        expect_wrong(&d, maybe_words);
    else
        expect_right(&d);
}

#define NODE WORLD_NODE("n1", "zone-a", "", "cpu: 4, memory: 8Gi")
#define NODE_WITH(spec, meta)                                                                      \
    "---\napiVersion: v1\nkind: Node\nmetadata: {name: n1, labels: {}" meta "}\n"                  \
    "spec: {providerID: 'test:///n1'" spec "}\n"                                                   \
    "status: {capacity: {cpu: 4, pods: 9}, allocatable: {cpu: 4, pods: 9}}\n"

TEST(a_node_takes_what_its_labels_and_taints_allow)
{
    const char *pod = WORLD_POD("a", "{}", "{cpu: 1}", "");
    expect_node(NODE, "", pod, NULL);
    expect_node(
        NODE, "",
        WORLD_POD("a", "{}", "{cpu: 1}", "  nodeSelector: {topology.kubernetes.io/zone: zone-b}\n"),
        "pod default/a: its node selector or affinity does not find node n1");
    expect_node(NODE, "",
                WORLD_POD("a", "{}", "{cpu: 1}",
                          AFFINITY("{matchFields: [{key: metadata.name, operator: In, "
                                   "values: [n1]}]}")),
                NULL);
    expect_node(NODE_WITH(", taints: [{key: t, effect: NoExecute}]", ""), "", pod,
                "pod default/a does not tolerate the taint t of node n1");
    expect_node(NODE_WITH(", unschedulable: true", ""), "", pod,
                "does not tolerate the taint node.kubernetes.io/unschedulable of node n1");
    expect_node(NODE_WITH("", ", deletionTimestamp: '2026-01-02T03:04:05Z', finalizers: [a/b]"), "",
                pod, "node n1 is being deleted, and pods go to it");
}

TEST(a_node_has_room_beside_its_pods_and_daemons)
{
    const char *pod = WORLD_POD("a", "{}", "{cpu: 2}", "");
    const char *bound = WORLD_POD("there", "{}", "{cpu: 2}", "  nodeName: n1\n");
    expect_node(NODE, bound, pod, NULL);
    expect_node(NODE, WORLD_POD("there", "{}", "{cpu: 2100m}", "  nodeName: n1\n"), pod,
                "node n1 has 4 cpu, and 4100m would be asked of it");
    expect_node(NODE, DAEMON("log", DAEMON_CPU("2100m")), pod,
                "node n1 has 4 cpu, and 4100m would be asked of it");
    /* The daemon is there already. */
    expect_node(
        NODE,
        DAEMON(
            "log",
            DAEMON_CPU(
                "2")) "---\napiVersion: v1\nkind: Pod\nmetadata:\n"
                      "  name: log-1\n  namespace: default\n  ownerReferences: [{apiVersion: apps/v1, "
                      "kind: DaemonSet, name: log, uid: u, controller: true}]\n"
                      "spec:\n  nodeName: n1\n  containers: [{name: c, image: i, resources: {requests: "
                      "{cpu: 2}}}]\n",
        pod, NULL);
    /* Finished pods need nothing. */
    expect_node(NODE,
                "---\napiVersion: v1\nkind: Pod\nmetadata: {name: done, namespace: default}\n"
                "spec:\n  nodeName: n1\n  containers: [{name: c, image: i, resources: {requests: "
                "{cpu: 4}}}]\nstatus: {phase: Failed}\n",
                pod, NULL);
    /* A node that is overdrawn takes pods that ask for nothing of it. */
    expect_node(NODE, WORLD_POD("there", "{}", "{cpu: 9}", "  nodeName: n1\n"),
                WORLD_POD("a", "{}", "{memory: 1Gi}", ""), NULL);
}

TEST(room_is_kept_for_a_pod_that_is_nominated)
{
    static const struct {
        const char *status, *maybe_words;
    } cases[] = {
        { "{nominatedNodeName: n1}", "node n1 has 4 cpu, and 4100m would be asked of it" },
        { "{nominatedNodeName: n2}", NULL },
        { "{nominatedNodeName: n1, phase: Failed}", NULL },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        WORLD w;
        DRAFT d;
        AUTO_BUF yaml = { 0 };
        buf_addf(&yaml,
                 "%s" WORLD_POD("a", "{}", "{cpu: 2}", "")
                     WORLD_POD("next", "{}", "{cpu: 2100m}", "") "status: %s\n",
                 NODE, cases[i].status);
        world_load(&w, yaml.p, WORLD_TYPES_SMALL);
        draft_begin(&d, &w);
        draft_existing(&d, "n1", "a");
        draft_skip(&d, "next",
                   strstr(cases[i].status, "Failed") ? "finished" : "nominated to a node");
        if (cases[i].maybe_words)
            expect_wrong(&d, cases[i].maybe_words);
        else
            expect_right(&d);
    }
}

TEST(host_ports_of_bound_pods_are_taken)
{
    expect_node(NODE,
                "---\napiVersion: v1\nkind: Pod\nmetadata: {name: there, namespace: default}\n"
                "spec: {nodeName: n1, containers: [{name: c, image: i, ports: [{containerPort: 80, "
                "hostPort: 80}]}]}\n",
                PORT_POD("a", "{containerPort: 80, hostPort: 80}"),
                "node n1: pod default/there and pod default/a both take host port 80");
}

/* --- claims --- */

#define CLAIM(spec, status)                                                                        \
    "---\napiVersion: karpenter.sh/v1\nkind: NodeClaim\n"                                          \
    "metadata: {name: c1, labels: {karpenter.sh/nodepool: web}}\n"                                 \
    "spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}" spec      \
    "}\nstatus: {" status "}\n"

static void expect_claim(const char *yaml, const char *pod, const char *where,
                         const char *maybe_words)
{
    WORLD w;
    DRAFT d;
    AUTO_BUF all = { 0 };
    buf_addf(&all, PLAIN "%s%s", yaml, pod);
    world_load(&w, all.p, WORLD_TYPES_SMALL);
    draft_begin(&d, &w);
    draft_existing(&d, where, "a");
    if (maybe_words)
        expect_wrong(&d, maybe_words);
    else
        expect_right(&d);
}

TEST(a_claim_on_its_way_is_a_place_to_go)
{
    const char *pod =
        WORLD_POD("a", "{}", "{cpu: 3}", "  nodeSelector: {topology.kubernetes.io/zone: zone-a}\n");
#define IN_ZONE(z, type)                                                                           \
    ", requirements: [{key: topology.kubernetes.io/zone, operator: In, values: [" z "]}, "         \
    "{key: node.kubernetes.io/instance-type, operator: In, values: [" type "]}]"
    const char *known = "allocatable: {cpu: 4, pods: 9}, capacity: {cpu: 4, pods: 9}";
    AUTO_BUF yaml = { 0 };
    buf_addf(&yaml, CLAIM(IN_ZONE("zone-a", "medium"), "%s"), known);
    expect_claim(yaml.p, pod, "c1", NULL);
    buf_clear(&yaml);
    buf_addf(&yaml, CLAIM(IN_ZONE("zone-a, zone-b", "medium"), "%s"), known);
    expect_claim(yaml.p, pod, "c1", "does not find all that claim c1 may become");
    /* Nothing has been reported yet: it is one of the types that it allows. */
    expect_claim(CLAIM(IN_ZONE("zone-a", "medium, large"), ""), pod, "c1", NULL);
    expect_claim(CLAIM(IN_ZONE("zone-a", "small, large"), ""), pod, "c1",
                 "claim c1 has 2 cpu, and 3 would be asked of it");
}

TEST(a_claim_has_the_labels_of_its_type_even_if_that_is_no_longer_on_offer)
{
    WORLD w;
    DRAFT d;
    world_load(
        &w,
        PLAIN CLAIM(IN_ZONE("zone-b", "one") ", taints: []", "allocatable: {cpu: 4, pods: 9}")
            WORLD_POD("a", "{}", "{cpu: 3}", "  nodeSelector: {kubernetes.io/arch: arm64}\n")
                WORLD_POD("b", "{}", "{cpu: 1}",
                          "  nodeSelector: {karpenter.sh/capacity-type: spot}\n"),
        "instanceTypes:\n" WORLD_TYPE(
            "one", "arm64",
            "cpu: 4, memory: 4Gi, pods: 9") "  offerings:\n"
                                            "  - {zone: zone-a, capacityType: spot, price: 1}\n"
                                            "  - {zone: zone-b, capacityType: on-demand, price: 2, available: false}\n");
    draft_begin(&d, &w);
    draft_existing(&d, "c1", "a");
    draft_miss(&d, "b");
    expect_right(&d);
    d.misses.count = d.existing.count = d.order.count = 0;
    draft_existing(&d, "c1", "a b");
    expect_wrong(&d, "pod default/b: its node selector or affinity does not find all that claim c1 "
                     "may become");
}

TEST(a_claim_speaks_for_its_node_until_that_has_registered)
{
    const char *pod = WORLD_POD("a", "{}", "{cpu: 3}", "");
    const char *claim =
        CLAIM(", requirements: [], startupTaints: [{key: wait, effect: NoSchedule}]",
              "nodeName: n1, allocatable: {cpu: 4, pods: 9}");
    const char *starting =
        "---\napiVersion: v1\nkind: Node\nmetadata: {name: n1, labels: {karpenter.sh/registered: "
        "'true'}}\nspec: {taints: [{key: node.kubernetes.io/not-ready, effect: NoSchedule}, {key: "
        "wait, effect: NoSchedule}]}\nstatus: {}\n";
    const char *started =
        "---\napiVersion: v1\nkind: Node\nmetadata: {name: n1, labels: {karpenter.sh/registered: "
        "'true', karpenter.sh/initialized: 'true'}}\nspec: {taints: [{key: "
        "node.kubernetes.io/not-ready, effect: NoSchedule}]}\nstatus: {allocatable: {cpu: 4, "
        "pods: 9}}\n";
    AUTO_BUF yaml = { 0 };
    buf_addf(&yaml, "%s%s", claim, starting);
    expect_claim(yaml.p, pod, "n1", NULL);
    buf_clear(&yaml);
    buf_addf(&yaml, "%s%s", claim, started);
    expect_claim(yaml.p, pod, "n1", "does not tolerate the taint node.kubernetes.io/not-ready");

    WORLD w;
    DRAFT d;
    buf_addz(&yaml, pod);
    world_load(&w, yaml.p, WORLD_TYPES_SMALL);
    draft_begin(&d, &w);
    draft_existing(&d, "n1", "a");
    d.existing.items[0] =
        (struct plan_existing){ .node = PLAN_NONE, .claim = 0, .pods = d.existing.items[0].pods };
    expect_wrong(&d, "claim c1 has a node, and pods go to the claim");
}

/* Who is pending, who counts, who is left alone; what they ask for. */
#include "sched/model_classes_testing.h"

#define META(name, more)                                                                           \
    "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " name ", namespace: default" more "}\n"
#define CONTAINERS "containers: [{name: c, image: i}]"
#define OWNER(api, kind)                                                                           \
    ", ownerReferences: [{apiVersion: " api ", kind: " kind ", name: o, uid: u, controller: true}]"
#define NODE_AFFINITY(terms)                                                                       \
    "  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "                 \
    "{nodeSelectorTerms: [" terms "]}}}\n"
#define NO_POOL "{matchExpressions: [{key: karpenter.sh/nodepool, operator: DoesNotExist}]}"
#define IN_A                                                                                       \
    "{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [zone-a]}]}"
#define UNSCHEDULABLE                                                                              \
    "status: {conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable}]}\n"

#define POOL WORLD_POOL("web", "[]", "")
#define NODE WORLD_NODE("here", "zone-a", "", "cpu: 8, memory: 16Gi")

/* --- states --- */

TEST(pods_that_are_not_for_us_are_skipped_with_the_reason)
{
    static const struct {
        const char *pod, *why;
    } cases[] = {
        { META("p", "") "spec: {schedulingGates: [{name: g}], " CONTAINERS "}\n",
          "scheduling gate" },
        { META("p", "") "spec: {" CONTAINERS "}\nstatus: {nominatedNodeName: here}\n",
          "nominated to a node" },
        { META("p", OWNER("apps/v1", "DaemonSet")) "spec: {" CONTAINERS "}\n",
          "owned by a DaemonSet" },
        { META("p", OWNER("v1", "Node")) "spec: {" CONTAINERS "}\n", "mirror of a static pod" },
        { META("p", ", annotations: {kubernetes.io/config.mirror: x}") "spec: {" CONTAINERS "}\n",
          "mirror of a static pod" },
        { META("p", "") "spec: {" CONTAINERS "}\nstatus: {phase: Succeeded}\n", "finished" },
        { META("p", "") "spec: {nodeName: here, " CONTAINERS "}\nstatus: {phase: Failed}\n",
          "finished" },
        { META("p", ", deletionTimestamp: '2026-01-02T03:04:05Z'") "spec: {" CONTAINERS "}\n",
          "being deleted" },
        { META("p", "") "spec:\n  " CONTAINERS "\n" NODE_AFFINITY(NO_POOL),
          "opted out of NodePools" },
        { META("p", "") "spec:\n  " CONTAINERS "\n" NODE_AFFINITY(NO_POOL ", " NO_POOL),
          "opted out of NodePools" },
        { META("p", "") "spec:\n  " CONTAINERS "\n" NODE_AFFINITY(NO_POOL ", " IN_A), "" },
        { META("p", OWNER("apps/v1", "ReplicaSet")) "spec: {" CONTAINERS "}\n", "" },
        { META("p", "") "spec: {" CONTAINERS "}\nstatus: {phase: Pending}\n", "" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        MODELLED t = { 0 };
        AUTO_BUF yaml = { 0 };
        buf_addf(&yaml, "%s%s", POOL NODE, cases[i].pod);
        modelled_load(&t, yaml.p, NULL);
        EXPECT_STR(skip_of(&t, "p"), cases[i].why);
        EXPECT_EQ(t.m.class_count, *cases[i].why ? 0 : 1);
    }
}

TEST(on_a_live_cluster_only_pods_that_the_scheduler_gave_up_on_are_planned)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  POOL META("seen", "") "spec: {" CONTAINERS
                                        "}\n" UNSCHEDULABLE META("new", "") "spec: {" CONTAINERS
                                                                            "}\n",
                  NULL);
    EXPECT_EQ(t.m.skip_count, 0);
    t.w.options.only_unschedulable = true;
    modelled_compile(&t);
    EXPECT_STR(skip_of(&t, "new"), "not yet seen by the scheduler");
    EXPECT_EQ(class_of_pod(&t, "seen")->count, 1);
}

TEST(skipped_pods_are_told_in_the_order_of_their_names)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  POOL META("b", "") "spec: {schedulingGates: [{name: g}], " CONTAINERS "}\n" META(
                      "a", "") "spec: {schedulingGates: [{name: g}], " CONTAINERS "}\n",
                  NULL);
    EXPECT_EQ(t.m.skip_count, 2);
    EXPECT_EQ(t.m.skips[0].pod, world_pod_ix(&t.w, "a"));
}

TEST(a_bound_pod_counts_on_its_node_even_while_it_ends_and_nowhere_if_the_node_is_gone)
{
    MODELLED t = { 0 };
    modelled_load(
        &t,
        POOL NODE WORLD_POD("stays", "{}", "{cpu: 1}", "  nodeName: here\n") META(
            "ends",
            ", deletionTimestamp: '2026-01-02T03:04:05Z'") "spec: {nodeName: here, "
                                                           "containers: [{name: c, "
                                                           "image: i, resources: "
                                                           "{requests: {cpu: 2}}}]}\n" WORLD_POD(
                                                               "lost", "{}", "{cpu: 4}",
                                                               "  nodeName: elsewhere\n")
                                                               WORLD_POD("waits", "{}", "{cpu: 1}",
                                                                         ""),
        NULL);
    EXPECT_EQ(t.m.skip_count, 0);
    EXPECT_EQ(t.m.class_count, 1);
    EXPECT_EQ(amount(&t, modelled_home(&t, "here")->free, "cpu"), 5000);
}

#define NOMINATED(name, node)                                                                      \
    WORLD_POD(                                                                                     \
        name, "{app: web}", "{cpu: 2}",                                                            \
        "  affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "          \
        "[{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}]}}\n")   \
    "status: {nominatedNodeName: " node "}\n"

TEST(a_nominated_pod_counts_on_its_node_if_that_is_there)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  POOL NODE NOMINATED("comes", "here") NOMINATED("lost", "elsewhere")
                      WORLD_POD("waits", "{app: web}", "{cpu: 1}", ""),
                  NULL);
    EXPECT_STR(skip_of(&t, "comes"), "nominated to a node");
    EXPECT_STR(skip_of(&t, "lost"), "nominated to a node");
    EXPECT_EQ(t.m.class_count, 1);
    const struct home *here = modelled_home(&t, "here");
    EXPECT_EQ(amount(&t, here->free, "cpu"), 6000);
    EXPECT_EQ(here->tally_count, 1);
    EXPECT_EQ(here->tallies[0].owners, 1);
}

TEST(pods_that_will_never_arrive_hold_no_room_by_a_nomination)
{
    static const char *const pods[] = {
        META("p", "") "spec: {schedulingGates: [{name: g}], " CONTAINERS
                      "}\nstatus: {nominatedNodeName: here}\n",
        META(
            "p",
            ", deletionTimestamp: '2026-01-02T03:04:05Z'") "spec: {" CONTAINERS
                                                           "}\nstatus: {nominatedNodeName: here}\n",
        META("p", "") "spec: {" CONTAINERS "}\nstatus: {phase: Failed, nominatedNodeName: here}\n",
    };
    for (size_t i = 0; i < KV_COUNT_OF(pods); i++) {
        MODELLED t = { 0 };
        AUTO_BUF yaml = { 0 };
        buf_addf(&yaml, "%s%s", POOL NODE, pods[i]);
        modelled_load(&t, yaml.p, NULL);
        EXPECT_EQ(amount(&t, modelled_home(&t, "here")->free, "pods"), 110000);
    }
}

/* --- requests --- */

TEST(resources_are_those_that_pending_pods_ask_for)
{
#define LIMITED(name, limits, more)                                                                \
    META(name, "")                                                                                 \
    "spec:\n  containers: [{name: c, image: i, resources: {limits: " limits "}}]\n" more
    MODELLED t = { 0 };
    modelled_load(&t,
                  POOL NODE LIMITED("gpu", "{cpu: 1, example.com/z: 1, example.com/a: 2}", "")
                      LIMITED("none", "{example.com/zero: 0}", "")
                          LIMITED("bound", "{example.com/other: 1}", "  nodeName: here\n"),
                  NULL);
#undef LIMITED
    static const char *const names[] = { "cpu", "memory", "pods", "example.com/a",
                                         "example.com/z" };
    EXPECT_EQ(t.m.resource_count, KV_COUNT_OF(names));
    for (uint32_t i = 0; i < t.m.resource_count; i++)
        EXPECT_STR(t.m.resources[i], names[i]);
    const int64_t *request = class_of_pod(&t, "gpu")->request;
    EXPECT_EQ(amount(&t, request, "cpu"), 1000);
    EXPECT_EQ(amount(&t, request, "example.com/a"), 2000);
    EXPECT_EQ(amount(&t, request, "pods"), 1000);
    EXPECT_EQ(amount(&t, class_of_pod(&t, "none")->request, "memory"), 0);
}

TEST(a_running_pod_counts_with_what_its_containers_were_given)
{
    MODELLED t = { 0 };
    modelled_load(
        &t,
        POOL NODE WORLD_POD(
            "grown", "{}", "{cpu: 1}",
            "  nodeName: here\n") "status: {containerStatuses: [{name: c, image: i, imageID: x, ready: true, "
                                  "restartCount: 0, allocatedResources: {cpu: 3}}]}\n" WORLD_POD(
                                      "waits", "{}", "{cpu: 1}", ""),
        NULL);
    EXPECT_EQ(amount(&t, modelled_home(&t, "here")->free, "cpu"), 5000);
    EXPECT_EQ(amount(&t, class_of_pod(&t, "waits")->request, "cpu"), 1000);
}

TEST(requests_beyond_counting_are_refused)
{
    MODELLED t = { 0 };
    modelled_load(
        &t,
        POOL WORLD_POD("vast", "{}", "{memory: 7Ei}", "")
            META("vaster", "") "spec:\n  containers:\n"
                               "  - {name: a, image: i, resources: {requests: {memory: 7Ei}}}\n"
                               "  - {name: b, image: i, resources: {requests: {memory: 7Ei}}}\n",
        NULL);
    EXPECT_STR(refusal(&t, "vast"), "resources: asks for more memory than can be counted");
    EXPECT_HAS(refusal(&t, "vaster"), "resources: ");
    EXPECT_EQ(class_of_pod(&t, "vast")->variant_count, 0);
}

TEST(resources_beyond_the_most_that_are_handled_are_refused)
{
    MODELLED t = { 0 };
    AUTO_BUF yaml = { 0 };
    buf_addz(&yaml, POOL);
    for (int i = 0; i <= RESOURCES_MAX - RESOURCE_FIRST_OTHER; i++)
        buf_addf(&yaml,
                 META("p%d", "") "spec: {containers: [{name: c, image: i, resources: {limits: "
                                 "{example.com/r%02d: 1}}}]}\n",
                 i, i);
    modelled_load(&t, yaml.p, NULL);
    EXPECT_EQ(t.m.resource_count, RESOURCES_MAX);
    EXPECT_STR(refusal(&t, "p60"), "");
    EXPECT_EQ(amount(&t, class_of_pod(&t, "p60")->request, "example.com/r60"), 1000);
    EXPECT_STR(refusal(&t, "p61"), "unsupported: asks for example.com/r61, and pods ask for more "
                                   "than the 64 resources that are handled");
}

/* --- priority --- */

#define PRIORITY(name, value, more)                                                                \
    "---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: " name           \
    "}\nvalue: " value "\n" more

TEST(priority_is_the_pods_own_or_that_of_its_class_or_the_default)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  POOL PRIORITY("high", "1000", "") PRIORITY("usual", "10", "globalDefault: true\n")
                      WORLD_POD("own", "{}", "{}", "  priority: 7\n  priorityClassName: high\n")
                          WORLD_POD("named", "{}", "{}", "  priorityClassName: high\n")
                              WORLD_POD("plain", "{}", "{}", "")
                                  WORLD_POD("cluster", "{}", "{}",
                                            "  priorityClassName: system-cluster-critical\n")
                                      WORLD_POD("node", "{}", "{}",
                                                "  priorityClassName: system-node-critical\n"),
                  NULL);
    EXPECT_EQ(class_of_pod(&t, "own")->priority, 7);
    EXPECT_EQ(class_of_pod(&t, "named")->priority, 1000);
    EXPECT_EQ(class_of_pod(&t, "plain")->priority, 10);
    EXPECT_EQ(class_of_pod(&t, "cluster")->priority, 2000000000);
    EXPECT_EQ(class_of_pod(&t, "node")->priority, 2000001000);
}

/* --- host ports --- */

TEST(host_ports_are_those_of_containers_and_sidecars)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  POOL META("p", "") "spec:\n"
                                     "  initContainers:\n"
                                     "  - {name: a, image: i, ports: [{containerPort: 1, "
                                     "hostPort: 1}]}\n"
                                     "  - {name: b, image: i, restartPolicy: Always, ports: "
                                     "[{containerPort: 2, hostPort: 2}]}\n"
                                     "  containers:\n"
                                     "  - {name: c, image: i, ports: [{containerPort: 3, "
                                     "hostPort: 3}, {containerPort: 4}]}\n",
                  NULL);
    const struct pod_class *k = class_of_pod(&t, "p");
    EXPECT_EQ(k->port_count, 2);
    int64_t sum = 0;
    for (uint32_t i = 0; i < k->port_count; i++)
        sum += t.m.ports[k->ports[i]].port;
    EXPECT_EQ(sum, 5);
}

TEST(ports_are_in_each_others_way_if_protocol_and_port_and_address_meet)
{
#define PORT(name, words)                                                                          \
    META(name, "")                                                                                 \
    "spec: {containers: [{name: c, image: i, ports: [{containerPort: 80, " words "}]}]}\n"
    MODELLED t = { 0 };
    modelled_load(&t,
                  POOL PORT("any", "hostPort: 80") PORT("zero", "hostPort: 80, hostIP: 0.0.0.0")
                      PORT("one", "hostPort: 80, hostIP: 10.0.0.1")
                          PORT("two", "hostPort: 80, hostIP: 10.0.0.2")
                              PORT("udp", "hostPort: 80, protocol: UDP")
                                  PORT("other", "hostPort: 81"),
                  NULL);
#undef PORT
    static const struct {
        const char *a, *b;
        bool meet;
    } pairs[] = { { "any", "any", true },  { "any", "zero", true },   { "any", "one", true },
                  { "one", "zero", true }, { "one", "two", false },   { "one", "one", true },
                  { "any", "udp", false }, { "any", "other", false }, { "udp", "one", false } };
    for (size_t i = 0; i < KV_COUNT_OF(pairs); i++) {
        uint32_t a = class_of_pod(&t, pairs[i].a)->ports[0];
        uint32_t b = class_of_pod(&t, pairs[i].b)->ports[0];
        EXPECT_EQ(bitset_test(&t.m.ports[a].conflicts, b), pairs[i].meet);
        EXPECT_EQ(bitset_test(&t.m.ports[b].conflicts, a), pairs[i].meet);
    }
}

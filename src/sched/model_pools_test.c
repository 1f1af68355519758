/* Pools: their order, what can be launched from them, daemons and limits. */
#include "sched/model_testing.h"

#define POD_OF_DAEMON(name, set, node, created, requests, more)                                    \
    "---\n"                                                                                        \
    "apiVersion: v1\n"                                                                             \
    "kind: Pod\n"                                                                                  \
    "metadata:\n"                                                                                  \
    "  name: " name "\n"                                                                           \
    "  namespace: default\n"                                                                       \
    "  creationTimestamp: '" created "'\n"                                                         \
    "  ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: " set                        \
    ", uid: u-1, controller: true}]\n"                                                             \
    "spec:\n"                                                                                      \
    "  nodeName: " node "\n"                                                                       \
    "  containers: [{name: c, image: i, resources: {requests: " requests "}}]\n" more

/* `more` are lines of the pod's spec, indented by six. */
#define DAEMON(name, resources, more)                                                              \
    "---\n"                                                                                        \
    "apiVersion: apps/v1\n"                                                                        \
    "kind: DaemonSet\n"                                                                            \
    "metadata: {name: " name ", namespace: default}\n"                                             \
    "spec:\n"                                                                                      \
    "  selector: {matchLabels: {d: " name "}}\n"                                                   \
    "  template:\n"                                                                                \
    "    metadata: {labels: {d: " name "}}\n"                                                      \
    "    spec:\n"                                                                                  \
    "      containers: [{name: c, image: i, resources: " resources "}]\n" more

#define POD WORLD_POD("p", "{}", "{cpu: 1}", "")

static const char *pool_name(const struct modelled *t, uint32_t i)
{
    return t->w.snap.pools[t->m.pools[i].source].pool->object.meta.name.p;
}

static const char *why_out(const struct modelled *t, const char *name)
{
    for (uint32_t i = 0; i < t->m.pools_out_count; i++) {
        const struct pool_out *out = &t->m.pools_out[i];
        if (str_eqz(t->w.snap.pools[out->source].pool->object.meta.name, name))
            return out->why.p;
    }
    return "";
}

/* --- order and use --- */

TEST(pools_are_tried_by_weight_and_then_backwards_by_name)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  POD WORLD_POOL("a", "[]", "") WORLD_POOL("c", "[]", "  weight: 7\n")
                      WORLD_POOL("b", "[]", "  weight: 7\n") WORLD_POOL("d", "[]", ""),
                  NULL);
    static const char *const order[] = { "c", "b", "d", "a" };
    static const uint32_t tiers[] = { 0, 0, 1, 1 };
    EXPECT_EQ(t.m.pool_count, 4);
    for (uint32_t i = 0; i < 4; i++) {
        EXPECT_Z(pool_name(&t, i), order[i]);
        EXPECT_EQ(t.m.pools[i].tier, tiers[i]);
    }
}

TEST(a_pool_that_cannot_launch_is_told_with_its_reason)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  POD WORLD_POOL("good", "[]", "  weight: 1\n")
                      WORLD_POOL("fixed", "[]", "  replicas: 3\n")
                          WORLD_POOL("sick", "[]",
                                     "status:\n"
                                     "  conditions: [{type: Ready, status: 'False', reason: R, "
                                     "message: no class, lastTransitionTime: "
                                     "'2026-01-02T03:04:05Z'}]\n")
                              WORLD_POOL("unknown", "[]",
                                         "status:\n"
                                         "  conditions: [{type: Ready, status: Unknown, reason: R, "
                                         "message: wait, lastTransitionTime: "
                                         "'2026-01-02T03:04:05Z'}]\n") WORLD_POOL("blind", "[]", "")
                                  WORLD_POOL("late", "[]", ""),
                  NULL);
    for (size_t i = 0; i < t.w.pools.count; i++) {
        struct sched_pool *p = &t.w.pools.items[i];
        if (str_eqz(p->pool->object.meta.name, "blind"))
            p->not_ready = STR("node class default is not ready");
        if (str_eqz(p->pool->object.meta.name, "late")) {
            instance_types_unref(p->types);
            p->types = NULL;
        }
    }
    modelled_compile(&t);
    EXPECT_EQ(t.m.pool_count, 2);
    EXPECT_Z(pool_name(&t, 0), "good");
    EXPECT_Z(pool_name(&t, 1), "unknown");
    EXPECT_HAS(str_of(why_out(&t, "fixed")), "fixed number");
    EXPECT_HAS(str_of(why_out(&t, "sick")), "no class");
    EXPECT_Z(why_out(&t, "blind"), "node class default is not ready");
    EXPECT_HAS(str_of(why_out(&t, "late")), "not known");
}

TEST(pods_may_ask_for_what_every_node_of_a_pool_will_have)
{
    MODELLED t = { 0 };
    modelled_load(&t, POD WORLD_POOL("web", "[{key: team, operator: In, values: [shop]}]", ""),
                  NULL);
    const struct pool *pool = modelled_pool(&t, "web");
    static const char *const has[][2] = {
        { LABEL_NODEPOOL, "web" },    { "karpenter.k8s.aws/ec2nodeclass", "default" },
        { LABEL_REGISTERED, "true" }, { LABEL_INITIALIZED, "true" },
        { "team", "shop" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(has); i++) {
        struct str value = str_of(has[i][1]), other = STR("other");
        struct requirement r =
            requirement_in(&t.arena, str_of(has[i][0]), (struct str_list){ &value, 1 });
        struct requirements set = { &r, 1 };
        EXPECT_EQ(terms_join(&t.m, pool->terms, wants_intern(&t.m, &set)), pool->terms);
        r = requirement_in(&t.arena, str_of(has[i][0]), (struct str_list){ &other, 1 });
        EXPECT_EQ(terms_join(&t.m, pool->terms, wants_intern(&t.m, &set)), NONE);
    }
}

TEST(startup_taints_are_no_taints_of_a_pool)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  POD WORLD_POOL("web", "[]",
                                 "      taints: [{key: team, value: shop, effect: NoSchedule}]\n"
                                 "      startupTaints: [{key: boot, effect: NoSchedule}]\n"),
                  NULL);
    EXPECT_Z(taints_of(&t, t.m.pools[0].taints), "team:shop:NoSchedule");
}

/* --- room --- */

TEST(room_is_what_a_type_has_and_nothing_of_what_it_lacks)
{
    MODELLED t = { 0 };
    modelled_load(
        &t,
        WORLD_POD(
            "p", "{}",
            "{cpu: 1, nvidia.com/gpu: 1, rare.io/thing: 1}, limits: {nvidia.com/gpu: 1, rare.io/thing: 1}",
            "") WORLD_POOL("web", "[]", ""),
        NULL);
    EXPECT_EQ(room_of(&t, "web", "small", "cpu"), 2000);
    EXPECT_EQ(room_of(&t, "web", "small", "pods"), 20000);
    EXPECT_EQ(room_of(&t, "web", "small", "nvidia.com/gpu"), 0);
    EXPECT_EQ(room_of(&t, "web", "gpu", "nvidia.com/gpu"), 1000);
    EXPECT_EQ(room_of(&t, "web", "gpu", "rare.io/thing"), 0);
    EXPECT_TRUE(modelled_pool(&t, "web")->daemon_ports == NULL);
}

TEST(daemons_are_taken_off_the_types_that_they_run_on)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  POD WORLD_POOL("web", "[]", "")
                      DAEMON("all", "{requests: {cpu: 100m}}", "") /* everywhere */
                  DAEMON("arms", "{requests: {cpu: 200m}}",
                         "      nodeSelector: {kubernetes.io/arch: arm64}\n")
                      DAEMON("either", "{requests: {cpu: 400m}}",
                             "      affinity: {nodeAffinity: "
                             "{requiredDuringSchedulingIgnoredDuringExecution: "
                             "{nodeSelectorTerms: [{matchExpressions: [{key: "
                             "node.kubernetes.io/instance-type, operator: In, values: "
                             "[small]}]}, {matchExpressions: [{key: "
                             "node.kubernetes.io/instance-type, operator: In, values: "
                             "[large]}]}]}}}\n") DAEMON("elsewhere", "{requests: {cpu: 800m}}",
                                                        "      nodeSelector: {team: bank}\n"),
                  NULL);
    EXPECT_EQ(room_of(&t, "web", "medium", "cpu"), 4000 - 100);
    EXPECT_EQ(room_of(&t, "web", "medium", "pods"), 40000 - 1000);
    EXPECT_EQ(room_of(&t, "web", "arm", "cpu"), 4000 - 300);
    EXPECT_EQ(room_of(&t, "web", "small", "cpu"), 2000 - 500);
    EXPECT_EQ(room_of(&t, "web", "large", "cpu"), 8000 - 500);
    EXPECT_EQ(room_of(&t, "web", "large", "pods"), 80000 - 2000);
    const struct pool *pool = modelled_pool(&t, "web");
    EXPECT_EQ(amount(&t, pool->daemons + modelled_machine(pool, "arm") * t.m.resource_count, "cpu"),
              300);
}

TEST(a_daemon_needs_to_bear_the_taints_of_the_template)
{
    MODELLED t = { 0 };
    modelled_load(
        &t,
        POD WORLD_POOL("plain", "[]", "") WORLD_POOL(
            "hard", "[]", "      taints: [{key: team, value: shop, effect: NoSchedule}]\n")
            WORLD_POOL("soft", "[]",
                       "      taints: [{key: team, value: shop, effect: "
                       "PreferNoSchedule}]\n")
                WORLD_POOL("odd", "[]",
                           "      taints: [{key: node.kubernetes.io/disk-pressure, effect: "
                           "NoSchedule}]\n")
                    WORLD_POOL("net", "[]",
                               "      taints: [{key: node.kubernetes.io/network-unavailable, "
                               "effect: NoSchedule}]\n") DAEMON("d", "{requests: {cpu: 1}}", "")
                        DAEMON("bearing", "{requests: {cpu: 100m}}",
                               "      tolerations: [{key: team, operator: Exists}]\n")
                            DAEMON("host", "{requests: {cpu: 10m}}", "      hostNetwork: true\n"),
        NULL);
    EXPECT_EQ(room_of(&t, "plain", "small", "cpu"), 2000 - 1110);
    EXPECT_EQ(room_of(&t, "hard", "small", "cpu"), 2000 - 100);
    EXPECT_EQ(room_of(&t, "soft", "small", "cpu"), 2000 - 1110);
    EXPECT_EQ(room_of(&t, "odd", "small", "cpu"), 2000 - 1110);
    EXPECT_EQ(room_of(&t, "net", "small", "cpu"), 2000 - 10);
}

TEST(what_daemons_ask_for_is_told_by_the_newest_pod)
{
    static const char node[] = WORLD_NODE("node", "zone-a", "", "cpu: 4, memory: 8Gi");
    MODELLED t = { 0 };
    AUTO_BUF yaml = { 0 };
    buf_addz(&yaml, node);
    buf_addz(&yaml,
             POD WORLD_POOL("web", "[]", "") DAEMON("d", "{requests: {cpu: 100m}}", "")
                 POD_OF_DAEMON("d-1", "d", "node", "2026-01-02T03:04:05Z", "{cpu: 300m}", "")
                     POD_OF_DAEMON("d-2", "d", "node", "2026-01-03T03:04:05Z", "{cpu: 500m}", "")
                         POD_OF_DAEMON("d-3", "d", "node", "2026-01-04T03:04:05Z", "{cpu: 700m}",
                                       "status: {phase: Failed}\n")
                             POD_OF_DAEMON("x-1", "other", "node", "2026-01-05T03:04:05Z",
                                           "{cpu: 900m}", ""));
    modelled_load(&t, yaml.p, NULL);
    EXPECT_EQ(room_of(&t, "web", "small", "cpu"), 2000 - 500);
}

TEST(where_daemons_run_is_told_by_the_template_and_not_by_a_pod_that_is_tied_to_its_node)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  POD WORLD_POOL("web", "[]", "") WORLD_NODE("node", "zone-a", "", "cpu: 4")
                      DAEMON("d", "{requests: {cpu: 100m}}",
                             "      affinity: {nodeAffinity: "
                             "{requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
                             "[{matchExpressions: [{key: kubernetes.io/arch, operator: In, values: "
                             "[amd64]}]}]}}}\n")
                          POD_OF_DAEMON("d-1", "d", "node", "2026-01-02T03:04:05Z", "{cpu: 300m}",
                                        "  affinity: {nodeAffinity: "
                                        "{requiredDuringSchedulingIgnoredDuringExecution: "
                                        "{nodeSelectorTerms: [{matchFields: [{key: metadata.name, "
                                        "operator: In, values: [node]}]}]}}}\n"),
                  NULL);
    EXPECT_EQ(room_of(&t, "web", "small", "cpu"), 2000 - 300);
    EXPECT_EQ(room_of(&t, "web", "arm", "cpu"), 4000);
}

TEST(limits_of_a_daemons_template_stand_for_missing_requests)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  POD WORLD_POOL("web", "[]", "")
                      DAEMON("d", "{limits: {cpu: 300m, memory: 1Gi}, requests: {cpu: 100m}}", ""),
                  NULL);
    EXPECT_EQ(room_of(&t, "web", "small", "cpu"), 1900);
    EXPECT_EQ(room_of(&t, "web", "small", "memory"), INT64_C(3) * 1024 * 1024 * 1024 * 1000);
}

TEST(a_machine_without_room_for_its_daemons_holds_nothing)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  POD WORLD_POOL("web", "[]", "") DAEMON(
                      "d", "{requests: {cpu: 3, rare.io/thing: 1}, limits: {rare.io/thing: 1}}",
                      "      nodeSelector: {node.kubernetes.io/instance-type: small}\n")
                      DAEMON("e", "{limits: {rare.io/thing: 1}}",
                             "      nodeSelector: {node.kubernetes.io/instance-type: arm}\n"),
                  NULL);
    EXPECT_EQ(room_of(&t, "web", "small", "cpu"), -1000);
    EXPECT_EQ(room_of(&t, "web", "arm", "cpu"), 4000);
    EXPECT_TRUE(room_of(&t, "web", "arm", "pods") < 0); /* no pod asks for the thing */
    EXPECT_EQ(room_of(&t, "web", "medium", "pods"), 40000);
}

TEST(host_ports_of_daemons_are_known_per_machine)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  POD WORLD_POOL("web", "[]", "") WORLD_POOL(
                      "quiet", "[{key: kubernetes.io/arch, operator: In, values: [amd64]}]", "")
                      DAEMON("d", "{}, ports: [{containerPort: 80, hostPort: 8080}]",
                             "      nodeSelector: {kubernetes.io/arch: arm64}\n"),
                  NULL);
    const struct pool *pool = modelled_pool(&t, "web");
    EXPECT_TRUE(pool->daemon_ports != NULL);
    const uint32_t *arm = pool->daemon_ports[modelled_machine(pool, "arm")];
    EXPECT_TRUE(arm[0] != NONE);
    EXPECT_EQ(t.m.ports[arm[0]].port, 8080);
    EXPECT_EQ(arm[1], NONE);
    EXPECT_EQ(pool->daemon_ports[modelled_machine(pool, "small")][0], NONE);
    EXPECT_TRUE(modelled_pool(&t, "quiet")->daemon_ports == NULL);
}

/* --- limits --- */

#define LIMITED "  limits: {cpu: 20, memory: 64Gi, nodes: 5, rare.io/thing: 3}\n"

static int64_t left_of(const struct modelled *t, const char *pool, const char *name)
{
    const struct pool *p = modelled_pool(t, pool);
    for (uint32_t i = 0; i < p->limit_count; i++) {
        if (str_eqz(p->limits[i].name, name))
            return p->limits[i].left;
    }
    return -1;
}

TEST(a_limit_is_left_less_what_the_pool_has)
{
    MODELLED t = { 0 };
    modelled_load(
        &t,
        POD WORLD_POOL("web", "[]", LIMITED) WORLD_POOL("free", "[]", "")
            WORLD_NODE("a", "zone-a", ", karpenter.sh/nodepool: web", "cpu: 4, memory: 8Gi")
                WORLD_NODE("b", "zone-a", ", karpenter.sh/nodepool: web", "cpu: 2500m, memory: 8Gi")
                    WORLD_NODE("c", "zone-a", "", "cpu: 4, memory: 8Gi"),
        NULL);
    EXPECT_EQ(left_of(&t, "web", "cpu"), 20000 - 6500);
    EXPECT_EQ(left_of(&t, "web", "rare.io/thing"), 3000);
    EXPECT_EQ(modelled_pool(&t, "web")->limit_count, 3);
    EXPECT_EQ(modelled_pool(&t, "web")->nodes_left, 3);
    EXPECT_EQ(modelled_pool(&t, "free")->nodes_left, INT64_MAX);
    EXPECT_EQ(modelled_pool(&t, "free")->limit_count, 0);
    const struct pool *pool = modelled_pool(&t, "web");
    for (uint32_t i = 0; i < pool->limit_count; i++) {
        bool cpu = str_eqz(pool->limits[i].name, "cpu");
        bool thing = str_eqz(pool->limits[i].name, "rare.io/thing");
        int64_t here = pool->limits[i].capacity[modelled_machine(pool, "large")];
        EXPECT_TRUE(!cpu || here == 8000);
        EXPECT_TRUE(!thing || here == 0);
    }
}

#define CLAIM(name, labels, requirements, status)                                                  \
    "---\n"                                                                                        \
    "apiVersion: karpenter.sh/v1\n"                                                                \
    "kind: NodeClaim\n"                                                                            \
    "metadata:\n"                                                                                  \
    "  name: " name "\n"                                                                           \
    "  labels: {karpenter.sh/nodepool: web" labels "}\n"                                           \
    "spec:\n"                                                                                      \
    "  nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}\n"              \
    "  requirements: " requirements "\n"                                                           \
    "status: " status "\n"

TEST(claims_count_towards_limits_once_and_at_their_largest)
{
    MODELLED t = { 0 };
    modelled_load(
        &t,
        POD WORLD_POOL("web", "[]", LIMITED)
            WORLD_NODE("a", "zone-a", ", karpenter.sh/nodepool: web", "cpu: 4, memory: 8Gi")
                CLAIM("a-claim", "", "[]", "{providerID: 'test:///zone-a/a', capacity: {cpu: 4}}")
                    CLAIM("launched", "", "[]", "{capacity: {cpu: 1500m}}")
                        CLAIM("typed", ", node.kubernetes.io/instance-type: small", "[]", "{}")
                            CLAIM("open", "",
                                  "[{key: node.kubernetes.io/instance-type, operator: In, values: "
                                  "[small, medium, large]}, {key: "
                                  "node.kubernetes.io/instance-type, operator: NotIn, values: "
                                  "[large]}]",
                                  "{}"),
        NULL);
    EXPECT_EQ(left_of(&t, "web", "cpu"), 20000 - 4000 - 1500 - 2000 - 4000);
    EXPECT_EQ(modelled_pool(&t, "web")->nodes_left, 1);
}

TEST(a_node_counts_towards_limits_until_it_is_gone)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  POD WORLD_POOL("web", "[]", LIMITED)
                      WORLD_NODE("a", "zone-a", ", karpenter.sh/nodepool: web", "cpu: 4")
                          CLAIM("going", "", "[]", "{capacity: {cpu: 3}}"),
                  NULL);
    struct node *node = (struct node *)t.w.nodes.items[0];
    struct nodeclaim *claim = (struct nodeclaim *)t.w.claims.items[0];
    node->object.meta.deleted_us = claim->object.meta.deleted_us = 1;
    modelled_compile(&t);
    EXPECT_EQ(left_of(&t, "web", "cpu"), 20000 - 7000);
    EXPECT_EQ(modelled_pool(&t, "web")->nodes_left, 3);
    EXPECT_EQ(t.m.home_count, 0);
}

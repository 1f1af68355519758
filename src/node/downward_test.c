#include "node/volumes_testing.h"

static const char *const POD = "metadata: {name: web, namespace: shop, uid: u-1,\n"
                               "  labels: {app: web, tier: front},\n"
                               "  annotations: {note: \"a \\\"b\\\"\\nc\"}}\n"
                               "spec:\n"
                               "  serviceAccountName: sa\n"
                               "  containers:\n"
                               "  - name: c\n"
                               "    image: i\n"
                               "    resources:\n"
                               "      limits: {cpu: 1500m, memory: 100Mi}\n"
                               "      requests: {cpu: 250m, memory: 64Mi}\n"
                               "  - {name: free, image: i}\n";

static struct str field(struct place *p, const struct node_pod *pod, const char *path)
{
    struct str out;
    return downward_field(pod, &p->facts, str_of(path), &p->arena, &out) ? out : STR("(no field)");
}

static struct str resource(struct place *p, const struct node_pod *pod, const char *container,
                           const char *resource, const char *divisor)
{
    struct str out;
    return downward_resource(node_pod_container(pod, str_of(container)), &p->facts,
                             str_of(resource), str_of(divisor), &p->arena, &out)
               ? out
               : STR("(no resource)");
}

TEST(fields_of_the_pod_are_told)
{
    AUTO(place) p = place_new();
    AUTO_NODE_POD pod = pod_from_yaml(POD);
    p->facts.node_ips = place_strs(p, "10.0.0.1", "fd00::1");
    p->facts.pod_ips = place_strs(p, "10.1.0.7", "fd00::7");

    static const char *const known[][2] = {
        { "metadata.name", "web" },
        { "metadata.namespace", "shop" },
        { "metadata.uid", "u-1" },
        { "metadata.labels['app']", "web" },
        { "metadata.labels['none']", "" },
        { "metadata.labels", "app=\"web\"\ntier=\"front\"" },
        { "metadata.annotations['note']", "a \"b\"\nc" },
        { "metadata.annotations", "note=\"a \\\"b\\\"\\nc\"" },
        { "spec.nodeName", "n1" },
        { "spec.serviceAccountName", "sa" },
        { "status.hostIP", "10.0.0.1" },
        { "status.hostIPs", "10.0.0.1,fd00::1" },
        { "status.podIP", "10.1.0.7" },
        { "status.podIPs", "10.1.0.7,fd00::7" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(known); i++)
        EXPECT_STR(field(p, pod, known[i][0]), known[i][1]);

    static const char *const unknown[] = { "",
                                           "metadata",
                                           "metadata.labels[app]",
                                           "metadata.labels['",
                                           "metadata.labelsx",
                                           "spec.hostname",
                                           "status.phase" };
    for (size_t i = 0; i < KV_COUNT_OF(unknown); i++)
        EXPECT_STR(field(p, pod, unknown[i]), "(no field)");
}

TEST(a_pod_on_the_hosts_network_has_the_hosts_addresses_and_others_none_before_their_sandbox)
{
    AUTO(place) p = place_new();
    p->facts.node_ips = place_strs(p, "10.0.0.1", NULL);
    AUTO_NODE_POD host =
        pod_from_yaml("metadata: {name: h}\n"
                      "spec: {hostNetwork: true, containers: [{name: c, image: i}]}");
    AUTO_NODE_POD pod = pod_from_yaml(POD);
    EXPECT_STR(field(p, host, "status.podIP"), "10.0.0.1");
    EXPECT_STR(field(p, host, "status.podIPs"), "10.0.0.1");
    EXPECT_STR(field(p, pod, "status.podIP"), "");
}

TEST(resources_are_divided_and_rounded_up)
{
    AUTO(place) p = place_new();
    AUTO_NODE_POD pod = pod_from_yaml(POD);
    EXPECT_STR(resource(p, pod, "c", "limits.cpu", NULL), "2");
    EXPECT_STR(resource(p, pod, "c", "limits.cpu", "0"), "2");
    EXPECT_STR(resource(p, pod, "c", "limits.cpu", "1m"), "1500");
    EXPECT_STR(resource(p, pod, "c", "requests.cpu", "100m"), "3");
    EXPECT_STR(resource(p, pod, "c", "limits.memory", "1Mi"), "100");
    EXPECT_STR(resource(p, pod, "c", "limits.memory", "1M"), "105");
    EXPECT_STR(resource(p, pod, "c", "requests.memory", NULL), "67108864");
    EXPECT_STR(resource(p, pod, "c", "requests.ephemeral-storage", NULL), "0");
    EXPECT_STR(resource(p, pod, "c", "limits.hugepages-2Mi", NULL), "0");
    EXPECT_STR(resource(p, pod, "c", "limits.cpu", "-1"), "(no resource)");
    EXPECT_STR(resource(p, pod, "c", "limits.cpu", "abc"), "(no resource)");
    EXPECT_STR(resource(p, pod, "c", "limits.gpus", NULL), "(no resource)");
    EXPECT_STR(resource(p, pod, "c", "cpu", NULL), "(no resource)");
}

TEST(a_container_without_a_limit_sees_the_nodes_allocatable)
{
    AUTO(place) p = place_new();
    AUTO_NODE_POD pod = pod_from_yaml(POD);
    struct resource amounts[] = { { STR("cpu"), quantity_of_milli(3920) },
                                  { STR("memory"), quantity_of(1 << 30) } };
    p->facts.allocatable = (struct resources){ amounts, 2 };
    EXPECT_STR(resource(p, pod, "free", "limits.cpu", NULL), "4");
    EXPECT_STR(resource(p, pod, "free", "limits.memory", "1Mi"), "1024");
    EXPECT_STR(resource(p, pod, "free", "requests.cpu", NULL), "0");
    EXPECT_STR(resource(p, pod, "free", "limits.hugepages-2Mi", NULL), "0");
    EXPECT_STR(resource(p, pod, "c", "limits.cpu", NULL), "2");
}

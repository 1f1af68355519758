#include "node/node_pod.h"

#include "support/test.h"

#define PLAIN                                                                                      \
    "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n"                                           \
    "spec:\n  containers: [{name: app, image: nginx}]\n"

static const struct static_pod_options on_node = { .path = "/m/web.yaml",
                                                   .node_name = { "Node-A", 6 },
                                                   .seen_us = 1767323045000000 };

static const struct node_pod *read_on(const char *text, struct static_pod_options options)
{
    struct err err = { 0 };
    const struct node_pod *pod = NULL;
    EXPECT_OK(node_pod_from_manifest(str_of(text), options, &pod, &err), err);
    return pod;
}

static const struct node_pod *read_manifest(const char *text)
{
    return read_on(text, on_node);
}

static void expect_refused(const char *text, const char *why)
{
    struct err err = { 0 };
    const struct node_pod *pod = NULL;
    EXPECT_ERR(node_pod_from_manifest(str_of(text), on_node, &pod, &err), err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), why);
}

TEST(a_manifest_becomes_a_static_pod_of_this_node)
{
    AUTO_NODE_POD pod = read_manifest(PLAIN);
    const json_val *tolerations = json_path(pod->doc.root, "spec.tolerations");

    EXPECT_TRUE(node_pod_is_static(pod));
    EXPECT_STR(pod->name, "web-node-a");
    EXPECT_STR(pod->namespace_, "default");
    EXPECT_STR(pod->node_name, "Node-A");
    EXPECT_EQ(pod->uid.len, 32);
    EXPECT_TRUE(str_eq(str_map_get(&pod->annotations, STR("kubernetes.io/config.hash")), pod->uid));
    EXPECT_STR(str_map_get(&pod->annotations, STR("kubernetes.io/config.source")), "file");
    EXPECT_STR(str_map_get(&pod->annotations, STR("kubernetes.io/config.seen")),
               "2026-01-02T03:04:05.000000Z");
    EXPECT_EQ(json_count(tolerations), 1);
    EXPECT_STR(json_str(json_get(json_at(tolerations, 0), STR("operator"))), "Exists");
    EXPECT_STR(json_str(json_get(json_at(tolerations, 0), STR("effect"))), "NoExecute");
    EXPECT_STR(json_str(json_get(pod->maybe_status, STR("phase"))), "Pending");
    EXPECT_STR(node_pod_container(pod, STR("app"))->image, "nginx");
}

TEST(a_manifest_may_be_json)
{
    AUTO_NODE_POD pod = read_manifest("{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{"
                                      "\"name\":\"web\",\"namespace\":\"shop\"},\"spec\":{"
                                      "\"containers\":[{\"name\":\"app\",\"image\":\"nginx\"}]}}");
    EXPECT_STR(pod->namespace_, "shop");
}

TEST(the_uid_is_of_content_node_and_file_and_of_nothing_else)
{
    struct static_pod_options elsewhere = on_node, other_file = on_node, later = on_node;
    elsewhere.node_name = STR("node-b");
    other_file.path = "/m/copy.yaml";
    later.seen_us += 5000000;
    AUTO_NODE_POD pod = read_manifest(PLAIN);
    AUTO_NODE_POD again = read_on(PLAIN, later);
    AUTO_NODE_POD layout =
        read_manifest("# the same\nkind: Pod\napiVersion: v1\nmetadata:\n  name: web\n"
                      "spec:\n  containers:\n  - image: nginx\n    name: app\n");
    AUTO_NODE_POD node = read_on(PLAIN, elsewhere);
    AUTO_NODE_POD file = read_on(PLAIN, other_file);
    AUTO_NODE_POD content = read_manifest(PLAIN "  hostNetwork: true\n");

    EXPECT_STR(pod->uid, "d3a7191a638cfa4ad2c25cb0fa71a927"); /* it outlives this program */
    EXPECT_TRUE(str_eq(again->uid, pod->uid));
    EXPECT_TRUE(str_eq(layout->uid, pod->uid));
    EXPECT_FALSE(str_eq(node->uid, pod->uid));
    EXPECT_FALSE(str_eq(file->uid, pod->uid));
    EXPECT_FALSE(str_eq(content->uid, pod->uid));
    /* The moment when it was seen makes no other pod of it. */
    EXPECT_TRUE(node_pod_same(pod, again));
    EXPECT_TRUE(node_pod_same(pod, layout));
    EXPECT_FALSE(node_pod_same(pod, content));
}

TEST(a_uid_that_is_given_is_kept)
{
    AUTO_NODE_POD pod =
        read_manifest("apiVersion: v1\nkind: Pod\nmetadata: {name: web, uid: my-1}\n"
                      "spec: {containers: [{name: app, image: nginx}]}\n");
    EXPECT_STR(pod->uid, "my-1");
    EXPECT_STR(str_map_get(&pod->annotations, STR("kubernetes.io/config.hash")), "my-1");
    expect_refused("apiVersion: v1\nkind: Pod\nmetadata: {name: web, uid: ../../etc}\n"
                   "spec: {containers: [{name: app, image: nginx}]}\n",
                   "metadata.uid: \"../../etc\" is not a uid");
}

TEST(what_a_copy_from_an_api_server_brings_along_is_dropped)
{
    AUTO_NODE_POD pod = read_manifest(
        "apiVersion: v1\nkind: Pod\n"
        "metadata: {name: web, deletionTimestamp: '2026-01-02T03:04:05Z',\n"
        "  deletionGracePeriodSeconds: 5, annotations: {kubernetes.io/config.mirror: x, a: b}}\n"
        "spec: {nodeName: elsewhere, containers: [{name: app, image: nginx}],\n"
        "  tolerations: [{operator: Exists, effect: NoSchedule}]}\n"
        "status: {phase: Failed, reason: Evicted}\n");
    EXPECT_EQ(pod->deleted_us, 0);
    EXPECT_FALSE(pod->deletion_grace_s.set);
    EXPECT_TRUE(str_map_get(&pod->annotations, STR("kubernetes.io/config.mirror")).p == NULL);
    EXPECT_STR(str_map_get(&pod->annotations, STR("a")), "b");
    EXPECT_STR(pod->node_name, "Node-A");
    EXPECT_STR(json_str(json_get(pod->maybe_status, STR("phase"))), "Pending");
    EXPECT_EQ(json_count(pod->maybe_status), 1);
    EXPECT_EQ(json_count(json_path(pod->doc.root, "spec.tolerations")), 2);
}

TEST(a_manifest_holds_exactly_one_pod)
{
    expect_refused("", "/m/web.yaml: is empty");
    expect_refused("# nothing yet\n---\n", "/m/web.yaml: is empty");
    expect_refused(PLAIN "---\n" PLAIN, "/m/web.yaml:7:1: has a second document");
    expect_refused("apiVersion: v1\nkind: PodList\nitems: []\n",
                   "/m/web.yaml:2:7: kind: \"PodList\" is not Pod");
    expect_refused("apiVersion: v1\nkind: List\nitems: []\n", "kind: \"List\" is not Pod");
    expect_refused("apiVersion: apps/v1\nkind: Deployment\n", "kind: \"Deployment\" is not Pod");
    expect_refused("apiVersion: v2\nkind: Pod\n", "/m/web.yaml:1:13: apiVersion: expected v1");
    expect_refused("kind: Pod\n", "apiVersion: expected v1");
    expect_refused("- a\n", "kind: missing");
    expect_refused("apiVersion: v1\nkind: Pod\nmetadata: {generateName: web-}\n"
                   "spec: {containers: [{name: app, image: nginx}]}\n",
                   "metadata.name: missing");
}

TEST(the_message_names_file_line_and_field)
{
    expect_refused("kind: Pod\n  x: [\n", "/m/web.yaml:");
    expect_refused(PLAIN "  restartPolicy: Sometimes\n", "/m/web.yaml:6:18: spec.restartPolicy: ");
    expect_refused(PLAIN "  hostNetwrk: true\n", "did you mean \"hostNetwork\"");
    /* The first in the text speaks, whatever the order of the tables. */
    expect_refused("apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  hostPID: 1\n"
                   "  containers: [{name: app, image: nginx, tty: 1}]\n",
                   "/m/web.yaml:5:12: spec.hostPID: ");
    expect_refused("apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  hostPID: 1\n"
                   "  containers: [{name: app, image: nginx, tty: 1}]\n",
                   " (and 1 more)");
}

TEST(a_name_that_is_too_long_with_the_nodes_is_refused)
{
    AUTO_BUF text = { 0 };
    buf_addz(&text, "apiVersion: v1\nkind: Pod\nmetadata: {name: ");
    for (int i = 0; i < 250; i++)
        buf_addc(&text, 'a');
    buf_addz(&text, "}\nspec: {containers: [{name: app, image: nginx}]}\n");
    expect_refused(text.p, "metadata.name: ");
}

TEST(a_static_pod_refers_to_no_object_of_the_api)
{
    static const struct {
        const char *spec, *field;
    } cases[] = {
        { "  serviceAccountName: a\n", "spec.serviceAccountName" },
        { "  serviceAccount: a\n", "spec.serviceAccount" },
        { "  imagePullSecrets: [{name: a}]\n", "spec.imagePullSecrets" },
        { "  resourceClaims: [{name: a, resourceClaimName: b}]\n", "spec.resourceClaims" },
        { "  volumes: [{name: v}, {name: a, configMap: {name: m}}]\n",
          "spec.volumes[1].configMap" },
        { "  volumes: [{name: a, secret: {secretName: m}}]\n", "spec.volumes[0].secret" },
        { "  volumes: [{name: a, persistentVolumeClaim: {claimName: m}}]\n",
          "spec.volumes[0].persistentVolumeClaim" },
        { "  volumes: [{name: a, csi: {driver: d, nodePublishSecretRef: {name: s}}}]\n",
          "spec.volumes[0].csi.nodePublishSecretRef" },
        { "  volumes: [{name: a, projected: {sources: [{downwardAPI: {}}, {serviceAccountToken: "
          "{path: p}}]}}]\n",
          "spec.volumes[0].projected.sources[1].serviceAccountToken" },
        { "  volumes: [{name: a, projected: {sources: [{configMap: {name: m}}]}}]\n",
          "spec.volumes[0].projected.sources[0].configMap" },
        { "  initContainers: [{name: i, image: i, envFrom: [{secretRef: {name: s}}]}]\n",
          "spec.initContainers[0].envFrom[0].secretRef" },
        { "  initContainers: [{name: i, image: i, env: [{name: A, valueFrom: {configMapKeyRef: "
          "{name: s, key: k}}}]}]\n",
          "spec.initContainers[0].env[0].valueFrom.configMapKeyRef" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO_BUF text = { 0 }, why = { 0 };
        buf_addf(&text, "%s%s", PLAIN, cases[i].spec);
        buf_addf(&why, "%s: refers to an object of the API server", cases[i].field);
        expect_refused(text.p, why.p);
    }
    AUTO_NODE_POD fine =
        read_manifest(PLAIN "  imagePullSecrets: []\n  serviceAccountName: ''\n"
                            "  volumes: [{name: a, projected: {sources: [{downwardAPI: {items: "
                            "[{path: name, fieldRef: {fieldPath: metadata.name}}]}}]}},\n"
                            "    {name: h, hostPath: {path: /}}, {name: e, emptyDir: {}}]\n");
    EXPECT_EQ(fine->volumes.count, 3);
}

TEST(a_text_beyond_the_limit_is_refused)
{
    AUTO_BUF text = { 0 };
    buf_addz(&text, PLAIN "#");
    while (text.len <= NODE_POD_BYTES_MAX)
        buf_addz(&text, "################################################################");
    expect_refused(text.p, "expected at most");
}

TEST(aliases_do_not_multiply_a_text_beyond_the_limit)
{
    AUTO_BUF text = { 0 };
    buf_addz(&text, "apiVersion: v1\nkind: Pod\nx: &a \"");
    for (int i = 0; i < 100000; i++)
        buf_addc(&text, 'x');
    buf_addz(&text, "\"\nmetadata:\n  name: web\n  annotations:\n");
    for (int i = 0; i < 40; i++)
        buf_addf(&text, "    k%d: *a\n", i);
    buf_addz(&text, "spec: {containers: [{name: app, image: nginx}]}\n");
    expect_refused(text.p, "too large");
}

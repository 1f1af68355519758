/* AL2023's archives, read back: the parts, and the NodeConfig as YAML. */
#include "bootstrap/boot_testing.h"
#include "codec/yaml.h"

static const char script[] = "#!/bin/bash\nsysctl -w vm.max_map_count=262144\n";
static const char nodeconfig[] = "apiVersion: node.eks.aws/v1alpha1\n"
                                 "kind: NodeConfig\n"
                                 "spec:\n"
                                 "  kubelet:\n"
                                 "    config:\n"
                                 "      maxPods: 5\n"
                                 "      evictionHard: {memory.available: 3%}\n"
                                 "      shutdownGracePeriod: 30s\n"
                                 "    flags:\n"
                                 "    - --v=4\n";

/* The managed NodeConfig, the last part, as canonical JSON. */
static struct str managed(struct rendering *r)
{
    const struct mime_part *part = &r->mime.parts[r->mime.count - 1];
    struct docs docs;
    struct err err = { 0 };
    AUTO_BUF json = { 0 };
    EXPECT_EQ(part->header_count, 1);
    EXPECT_STR(mime_header(part, "content-type"), "application/node.eks.aws");
    EXPECT_EQ(r->out.parts.items[r->mime.count - 1].owner, OWNER_KARVE);
    EXPECT_OK(yaml_read(part->body, &docs, NULL, &err), err);
    EXPECT_EQ(docs.count, 1);
    json_write_canonical(docs.items[0].root, &json);
    docs_done(&docs);
    return arena_str(&r->arena, buf_str(&json));
}

#define CLUSTER                                                                                    \
    "\"cluster\":{\"apiServerEndpoint\":\"https://A1B2.gr7.eu-west-1.eks.amazonaws.com\","         \
    "\"certificateAuthority\":\"LS0tLS1DQQ==\",\"cidr\":\"172.20.0.0/16\",\"name\":\"orchard\"}"
#define NODECONFIG(spec)                                                                           \
    "{\"apiVersion\":\"node.eks.aws/v1alpha1\",\"kind\":\"NodeConfig\",\"spec\":{" spec "}}"
#define UNREGISTERED "{\"effect\":\"NoExecute\",\"key\":\"karpenter.sh/unregistered\"}"
#define FLAGS                                                                                      \
    "\"flags\":[\"--node-labels=\\\"karpenter.sh/capacity-type=spot,"                              \
    "karpenter.sh/do-not-sync-taints=true,karpenter.sh/nodepool=fruit,team=pear\\\"\"]"

/* --- the managed part --- */

TEST(al2023_without_user_data_gets_one_nodeconfig)
{
    RENDERING(r, AMI_FAMILY_AL2023);
    r.boot.labels = (struct str_map){ rendering_labels, 4 };
    render_ok(&r, NULL);
    EXPECT_EQ(r.mime.count, 1);
    EXPECT_STR(managed(&r),
               NODECONFIG(CLUSTER ",\"kubelet\":{\"config\":{\"clusterDNS\":[\"172.20.0.10\"],"
                                  "\"maxPods\":29,\"registerWithTaints\":[" UNREGISTERED "]}," FLAGS
                                  "}"));
    EXPECT_EQ(r.out.warnings.count, 0);
}

TEST(al2023_is_told_of_every_taint)
{
    static const struct taint taints[] = {
        { .key = STR("b"), .value = STR("v"), .effect = EFFECT_NO_SCHEDULE },
        { .key = STR("a.io/x"), .effect = EFFECT_PREFER_NO_SCHEDULE },
    };
    RENDERING(r, AMI_FAMILY_AL2023);
    r.boot.taints.items = taints;
    r.boot.taints.count = 2;
    render_ok(&r, script);
    EXPECT_HAS(managed(&r),
               "\"registerWithTaints\":["
               "{\"effect\":\"NoSchedule\",\"key\":\"b\",\"value\":\"v\"},"
               "{\"effect\":\"PreferNoSchedule\",\"key\":\"a.io/x\"}," UNREGISTERED "]");
}

TEST(al2023_gets_the_whole_kubelet_configuration)
{
    RENDERING(r, AMI_FAMILY_AL2023);
    r.boot.labels = (struct str_map){ rendering_labels, 4 };
    rendering_kubelet(&r, "{\"clusterDNS\":[\"10.9.0.10\",\"10.9.0.11\"],"
                          "\"evictionHard\":{\"memory.available\":\"5%\"},\"maxPods\":7,"
                          "\"topologyManagerPolicy\":\"best-effort\"}");
    render_ok(&r, script);
    EXPECT_STR(managed(&r),
               NODECONFIG(CLUSTER
                          ",\"kubelet\":{\"config\":{\"clusterDNS\":[\"10.9.0.10\",\"10.9.0.11\"],"
                          "\"evictionHard\":{\"memory.available\":\"5%\"},\"maxPods\":7,"
                          "\"registerWithTaints\":[" UNREGISTERED "],"
                          "\"topologyManagerPolicy\":\"best-effort\"}," FLAGS "}"));
    EXPECT_EQ(piece_with(&r, "maxPods: 7")->owner, OWNER_KUBELET);
    EXPECT_EQ(piece_with(&r, "topologyManagerPolicy")->owner, OWNER_KUBELET);
    EXPECT_EQ(piece_with(&r, "memory.available: 5%")->owner, OWNER_KUBELET);
    EXPECT_EQ(piece_with(&r, "registerWithTaints")->owner, OWNER_KARVE);
    EXPECT_EQ(piece_with(&r, "name: orchard")->owner, OWNER_KARVE);
    EXPECT_EQ(piece_with(&r, "--node-labels")->owner, OWNER_KARVE);
}

TEST(al2023_settings_depend_on_what_is_known)
{
    RENDERING(r, AMI_FAMILY_AL2023);
    r.cluster.ca = STR_NONE;
    r.cluster.dns = STR_NONE;
    r.boot.max_pods.set = false;
    r.boot.raid0 = true;
    r.boot.order = ORDER_USER_MANAGED; /* of no meaning here */
    render_ok(&r, NULL);
    EXPECT_STR(
        managed(&r),
        NODECONFIG("\"cluster\":{\"apiServerEndpoint\":"
                   "\"https://A1B2.gr7.eu-west-1.eks.amazonaws.com\","
                   "\"cidr\":\"172.20.0.0/16\",\"name\":\"orchard\"},"
                   "\"instance\":{\"localStorage\":{\"strategy\":\"RAID0\"}},"
                   "\"kubelet\":{\"config\":{\"registerWithTaints\":[" UNREGISTERED "]},"
                   "\"flags\":[\"--node-labels=\\\"karpenter.sh/do-not-sync-taints=true\\\"\"]"
                   "}"));
    EXPECT_EQ(r.out.warnings.count, 1);
    EXPECT_HAS(r.out.warnings.items[0], "certificate authority is not known");
}

TEST(al2023_quotes_what_yaml_would_misread)
{
    RENDERING(r, AMI_FAMILY_AL2023);
    r.cluster.name = STR("yes: #'\"no");
    r.cluster.endpoint = STR("1e3");
    render_ok(&r, NULL);
    EXPECT_HAS(managed(&r), "\"name\":\"yes: #'\\\"no\"");
    EXPECT_HAS(managed(&r), "\"apiServerEndpoint\":\"1e3\"");
}

/* --- the user's --- */

TEST(al2023_user_parts_come_first)
{
    RENDERING(r, AMI_FAMILY_AL2023);
    render_ok(&r, script);
    EXPECT_EQ(r.mime.count, 2);
    EXPECT_STR(r.mime.parts[0].body, script);
    EXPECT_STR(mime_content_type(&r.arena, &r.mime.parts[0]), "text/x-shellscript");
    EXPECT_EQ(r.out.parts.items[0].owner, OWNER_USER);

    render_ok(&r, nodeconfig);
    EXPECT_EQ(r.mime.count, 2);
    EXPECT_STR(r.mime.parts[0].body, nodeconfig);
    EXPECT_STR(mime_content_type(&r.arena, &r.mime.parts[0]), "application/node.eks.aws");

    AUTO_BUF archive = { 0 };
    buf_addf(&archive,
             "Content-Type: multipart/mixed; boundary=B\n\n"
             "--B\nContent-Type: text/x-shellscript\nX-Kept: yes\n\n%s\n"
             "--B\nContent-Type: application/node.eks.aws\n\n%s\n--B--\n",
             script, nodeconfig);
    render_ok(&r, archive.p);
    EXPECT_EQ(r.mime.count, 3);
    EXPECT_STR(mime_header(&r.mime.parts[0], "x-kept"), "yes");
    EXPECT_STR(r.mime.parts[1].body, nodeconfig);
}

TEST(what_karve_overrides_of_the_users_nodeconfig_is_noted)
{
    RENDERING(r, AMI_FAMILY_AL2023);
    r.boot.user_data_pos = (struct text_pos){ 20, 5 };
    rendering_kubelet(&r, "{\"evictionHard\":{\"memory.available\":\"5%\"}}");
    render_ok(&r, nodeconfig);
    EXPECT_STR(piece_with(&r, "maxPods: 29")->note,
               "overrides 5 of line 25 (line 6 of the user data)");
    EXPECT_STR(piece_with(&r, "memory.available: 5%")->note,
               "overrides \"3%\" of line 26 (line 7 of the user data)");
    EXPECT_HAS(piece_with(&r, "--node-labels")->note, "after those of line 29");
    EXPECT_STR(piece_with(&r, "name: orchard")->note, "");
    EXPECT_EQ(r.out.warnings.count, 0);
}

TEST(the_last_of_several_nodeconfigs_is_what_is_overridden)
{
    RENDERING(r, AMI_FAMILY_AL2023);
    render_ok(&r, "Content-Type: multipart/mixed; boundary=B\n\n"
                  "--B\nContent-Type: application/node.eks.aws\n\n"
                  "{apiVersion: node.eks.aws/v1alpha1, kind: NodeConfig,\n"
                  " spec: {cluster: {name: one}, kubelet: {config: {maxPods: 1}}}}\n"
                  "--B\nContent-Type: application/node.eks.aws\n\n"
                  "{apiVersion: node.eks.aws/v1alpha1, kind: NodeConfig,\n"
                  " spec: {cluster: {name: orchard}, kubelet: {config: {maxPods: 2}}}}\n"
                  "--B--\n");
    EXPECT_STR(piece_with(&r, "maxPods: 29")->note, "overrides 2 of line 12 of the user data");
    EXPECT_STR(piece_with(&r, "name: orchard")->note, ""); /* they agree */
}

TEST(what_karve_cannot_override_is_warned_of)
{
    RENDERING(r, AMI_FAMILY_AL2023);
    render_ok(&r, "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n"
                  "    config:\n      kubeReserved: {cpu: 1}\n"
                  "    flags: [--max-pods=9, '--register-with-taints=a:NoExecute', --v=2]\n");
    EXPECT_EQ(r.out.warnings.count, 3);
    EXPECT_HAS(r.out.warnings.items[0], "line 7, column 13 of the user data: the kubelet's flag "
                                        "--max-pods wins over what karve sets");
    EXPECT_HAS(r.out.warnings.items[1], "--register-with-taints");
    EXPECT_HAS(r.out.warnings.items[2], "kubelet.config.kubeReserved");

    /* The same as spec.kubelet says is fine. */
    rendering_kubelet(&r, "{\"kubeReserved\":{\"cpu\":\"1\"}}");
    render_ok(&r, "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n"
                  "    config:\n      kubeReserved: {cpu: 2}\n");
    EXPECT_EQ(r.out.warnings.count, 0);
}

TEST(a_broken_nodeconfig_is_refused_with_both_lines)
{
    static const struct {
        const char *user_data, *words;
    } cases[] = {
        { "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: [\n",
          "line 14 (line 4, column 1 of the user data): NodeConfig: " },
        { "\napiVersion: v1\nkind: NodeConfig\n",
          "line 12 (line 2, column 13 of the user data): NodeConfig: apiVersion \"v1\", expected "
          "node.eks.aws/v1alpha1" },
        { "apiVersion: node.eks.aws/v1alpha1\nspec: {}\n", "NodeConfig: kind is missing" },
        { "kubelet:\n  config: {}\n", "NodeConfig: apiVersion is missing" },
        { "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet: 3\n",
          "line 14 (line 4, column 12 of the user data): NodeConfig: spec.kubelet is integer, "
          "expected a map" },
        { "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n---\napiVersion: x\n",
          "line 14 (line 4, column 1 of the user data): NodeConfig: a second document" },
        { "Content-Type: multipart/mixed; boundary=B\n\n--B\n"
          "Content-Type: application/node.eks.aws\n\napiVersion: node.eks.aws/v1alpha1\nkind: x\n"
          "--B--\n",
          "line 17 (line 7, column 7 of the user data): NodeConfig: kind \"x\"" },
        { "Content-Type: multipart/mixed; boundary=B\n\n--B\n"
          "Content-Type: application/node.eks.aws\nContent-Transfer-Encoding: base64\n\n"
          "YTogYgo=\n--B--\n",
          "line 17 (line 7 of the user data): NodeConfig: apiVersion is missing" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        RENDERING(r, AMI_FAMILY_AL2023);
        r.boot.user_data_pos = (struct text_pos){ 11, 5 };
        render_refused(&r, cases[i].user_data, cases[i].words);
    }
}

TEST(al2023_keeps_an_encoded_nodeconfig_and_reads_it)
{
    RENDERING(r, AMI_FAMILY_AL2023);
    render_ok(&r, "Content-Type: multipart/mixed; boundary=B\n\n--B\n"
                  "Content-Type: application/node.eks.aws\n"
                  "Content-Transfer-Encoding: quoted-printable\n\n"
                  "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n"
                  "spec: {cluster: {name: =6Fther}}\n--B--\n");
    EXPECT_HAS(r.mime.parts[0].body, "=6Fther");
    EXPECT_STR(piece_with(&r, "name: orchard")->note,
               "overrides \"other\" of line 7 of the user data");
}

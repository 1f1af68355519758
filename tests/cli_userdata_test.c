/* karve userdata, as users and scripts meet it. */
#include "cli_testing.h"

#define CLUSTER                                                                                    \
    " --cluster-name orchard --cluster-endpoint https://A1B2.eks.amazonaws.com"                    \
    " --cluster-ca LS0tLS1DQQ== --cluster-dns 172.20.0.10 --service-cidr 172.20.0.0/16 "

#define NODECLASS(name, alias, rest)                                                               \
    "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: " name "}\nspec:\n"    \
    "  role: NodeRole\n  amiSelectorTerms: [{" alias                                               \
    "}]\n  subnetSelectorTerms: [{id: subnet-1}]\n"                                                \
    "  securityGroupSelectorTerms: [{id: sg-1}]\n" rest
#define NODEPOOL(name, class_, rest)                                                               \
    "---\napiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: " name "}\nspec:\n"        \
    "  template:\n    metadata: {labels: {team: pear}}\n    spec:\n"                               \
    "      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: " class_ "}\n" rest

static struct result userdata(const char *flags, const char *manifest)
{
    AUTO_BUF command = { 0 };
    buf_addf(&command, "karve userdata -f - %s", flags);
    return sh(command.p, str_of(manifest));
}

/* The value of a member of the JSON that was printed. */
static struct str member(const struct result *r, const char *path, struct doc *doc)
{
    struct err err = { 0 };
    EXPECT_OK(json_read(buf_str(&r->out), doc, &err), err);
    return json_str(json_path(doc->root, path));
}

TEST(userdata_prints_the_text_exactly_and_the_same_as_base64_and_json)
{
    const char *class_ =
        NODECLASS("a", "alias: al2023@latest", "  userData: |\n    #!/bin/sh\n    id\n");
    AUTO_RESULT text = userdata(CLUSTER "--max-pods 29", class_);
    AUTO_RESULT base64 = userdata(CLUSTER "--max-pods 29 --base64 | base64 -d", class_);
    AUTO_RESULT json = userdata(CLUSTER "--max-pods 29 -o json", class_);
    struct doc doc;
    EXPECT_EQ(text.code, 0);
    EXPECT_EQ(text.err.len, 0);
    EXPECT_HAS(buf_str(&text.out), "#!/bin/sh\nid\n");
    EXPECT_TRUE(str_eq(buf_str(&text.out), buf_str(&base64.out)));
    EXPECT_TRUE(str_eq(buf_str(&text.out), member(&json, "userData", &doc)));
    EXPECT_STR(json_str(json_get(doc.root, STR("family"))), "AL2023");
    int64_t bytes = 0, max_pods = 0;
    EXPECT_TRUE(json_i64(json_get(doc.root, STR("bytes")), &bytes));
    EXPECT_TRUE(json_i64(json_get(doc.root, STR("maxPods")), &max_pods));
    EXPECT_EQ(bytes, text.out.len);
    EXPECT_EQ(max_pods, 29);
    const json_val *parts = json_get(doc.root, STR("parts"));
    EXPECT_EQ(json_count(parts), 2);
    EXPECT_STR(json_str(json_get(json_at(parts, 0), STR("owner"))), "user");
    EXPECT_STR(json_str(json_get(json_at(parts, 1), STR("owner"))), "karve");
    EXPECT_TRUE(json_get(doc.root, STR("allocatable")) == NULL);
    EXPECT_TRUE(json_is_array(json_get(doc.root, STR("warnings"))));
    doc_done(&doc);
}

TEST(userdata_without_a_flag_that_the_family_needs_is_a_usage_error)
{
    AUTO_RESULT r = userdata("--cluster-name orchard", NODECLASS("a", "alias: al2023@latest", ""));
    EXPECT_EQ(r.code, 2);
    EXPECT_HAS(buf_str(&r.err), "AL2023 need --cluster-endpoint, --service-cidr");
    EXPECT_EQ(r.out.len, 0);
    AUTO_RESULT al2 = userdata("", NODECLASS("a", "alias: al2@latest", ""));
    EXPECT_EQ(al2.code, 2);
    EXPECT_HAS(buf_str(&al2.err), "AL2 need --cluster-name, --cluster-endpoint\n");
}

TEST(userdata_of_a_custom_image_passes_as_it_is_and_needs_no_flags)
{
#define CUSTOM(rest) NODECLASS("a", "id: ami-1", "  amiFamily: Custom\n" rest)
    AUTO_RESULT r = userdata("", CUSTOM("  userData: \"exactly this\\r\\n\"\n"));
    EXPECT_EQ(r.code, 0);
    EXPECT_STR(buf_str(&r.out), "exactly this\r\n");
    EXPECT_EQ(r.err.len, 0);
    AUTO_RESULT empty = userdata("", CUSTOM("  userData: \"\"\n"));
    EXPECT_EQ(empty.code, 0);
    EXPECT_EQ(empty.out.len, 0);
    AUTO_RESULT missing = userdata("", CUSTOM(""));
    EXPECT_EQ(missing.code, 1);
    EXPECT_HAS(buf_str(&missing.err), "stdin: EC2NodeClass/a: spec.userData: is missing");
}

TEST(userdata_names_the_line_of_the_manifest_and_of_the_user_data)
{
    AUTO_RESULT literal = userdata(
        CLUSTER, NODECLASS("a", "alias: windows2022@latest",
                           "  userData: &text |-  # a comment\n    dir\n    </powershell>\n"));
    EXPECT_EQ(literal.code, 1);
    EXPECT_HAS(buf_str(&literal.err), "spec.userData: line 11 (line 2, column 1 of the user data)");
    AUTO_RESULT quoted = userdata(CLUSTER, NODECLASS("a", "alias: windows2022@latest",
                                                     "  userData: \"dir\\n</powershell>\"\n"));
    EXPECT_EQ(quoted.code, 1);
    EXPECT_HAS(buf_str(&quoted.err),
               "stdin:9: EC2NodeClass/a: spec.userData: line 2, column 1 of the user data");
    AUTO_RESULT list =
        userdata(CLUSTER, "kind: List\napiVersion: v1\nitems:\n- apiVersion: karpenter.k8s.aws/v1\n"
                          "  kind: EC2NodeClass\n  metadata: {name: a}\n  spec:\n    role: R\n"
                          "    amiSelectorTerms: [{alias: windows2022@latest}]\n"
                          "    subnetSelectorTerms: [{id: subnet-1}]\n"
                          "    securityGroupSelectorTerms: [{id: sg-1}]\n"
                          "    userData: |\n      </powershell>\n");
    EXPECT_HAS(buf_str(&list.err), "line 13 (line 1, column 1 of the user data)");
}

TEST(userdata_names_no_line_of_user_data_that_is_not_at_fault)
{
    AUTO_RESULT dns = userdata(
        CLUSTER,
        NODECLASS("a", "alias: al2@latest",
                  "  kubelet: {clusterDNS: [\"o'clock\"]}\n  userData: \"#!/bin/sh\\n\"\n"));
    EXPECT_EQ(dns.code, 1);
    EXPECT_HAS(buf_str(&dns.err), "stdin: EC2NodeClass/a: spec.kubelet.clusterDNS[0]: \"o'clock\"");
    AUTO_RESULT archive = userdata(
        CLUSTER, NODECLASS("a", "alias: al2@latest", "  userData: \"MIME-Version: 1.0\\n\\nx\"\n"));
    EXPECT_EQ(archive.code, 1);
    EXPECT_HAS(buf_str(&archive.err), "stdin:9: EC2NodeClass/a: spec.userData: line 1 of the user "
                                      "data: a MIME archive: no Content-Type");
}

TEST(userdata_takes_labels_and_taints_from_the_pool)
{
    AUTO_RESULT r = userdata(
        CLUSTER "--label extra=1 --taint more=x:NoExecute --max-pods 5",
        NODECLASS("a", "alias: al2@latest", "")
            NODEPOOL("fruit", "a",
                     "      requirements: [{key: karpenter.sh/capacity-type, operator: In, values: "
                     "[spot]}, {key: example.com/rack, operator: In, values: [r1]}]\n"
                     "      taints: [{key: dedicated, value: fruit, effect: NoSchedule}]\n"
                     "      startupTaints: [{key: boot, effect: NoExecute}]\n"));
    EXPECT_EQ(r.code, 0);
    EXPECT_HAS(buf_str(&r.out),
               "--node-labels=\"example.com/rack=r1,extra=1,karpenter.k8s.aws/ec2nodeclass=a,"
               "karpenter.sh/capacity-type=spot,karpenter.sh/do-not-sync-taints=true,"
               "karpenter.sh/nodepool=fruit,team=pear\" --register-with-taints=\"dedicated=fruit:"
               "NoSchedule,more=x:NoExecute,boot:NoExecute,karpenter.sh/unregistered:NoExecute\" "
               "--max-pods=5");
}

TEST(userdata_asks_which_of_several_is_meant)
{
#define TWO_CLASSES                                                                                \
    NODECLASS("a", "id: ami-1", "  amiFamily: Custom\n  userData: of a\n")                         \
    "---\n" NODECLASS("b", "id: ami-1", "  amiFamily: Custom\n  userData: of b\n")
#define OPEN "      requirements: []\n"
    AUTO_RESULT which = userdata("", TWO_CLASSES);
    EXPECT_EQ(which.code, 2);
    EXPECT_HAS(buf_str(&which.err), "2 EC2NodeClasses: a, b; say which with --nodeclass");
    AUTO_RESULT b = userdata("--nodeclass b", TWO_CLASSES);
    EXPECT_STR(buf_str(&b.out), "of b");
    AUTO_RESULT by_pool = userdata("", TWO_CLASSES NODEPOOL("p", "b", OPEN));
    EXPECT_STR(buf_str(&by_pool.out), "of b");
    AUTO_RESULT pools = userdata("", TWO_CLASSES NODEPOOL("p", "b", OPEN) NODEPOOL("q", "a", OPEN));
    EXPECT_EQ(pools.code, 2);
    EXPECT_HAS(buf_str(&pools.err), "2 NodePools: p, q; say which with --nodepool");
    AUTO_RESULT q =
        userdata("--nodepool q", TWO_CLASSES NODEPOOL("p", "b", OPEN) NODEPOOL("q", "a", OPEN));
    EXPECT_STR(buf_str(&q.out), "of a");
    AUTO_RESULT lost = userdata("", TWO_CLASSES NODEPOOL("p", "c", OPEN));
    EXPECT_EQ(lost.code, 1);
    EXPECT_HAS(buf_str(&lost.err), "no EC2NodeClass \"c\" in the manifests");
    AUTO_RESULT none = userdata("", "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n");
    EXPECT_EQ(none.code, 1);
    EXPECT_HAS(buf_str(&none.err), "no EC2NodeClass in the manifests");
}

TEST(userdata_max_pods_comes_from_the_kubelet_then_the_flag_then_the_instance_type)
{
    const char *plain = NODECLASS("a", "alias: windows2022@latest", "");
    const char *own = NODECLASS("a", "alias: windows2022@latest", "  kubelet: {maxPods: 58}\n");
    AUTO_RESULT unknown = userdata(CLUSTER, plain);
    EXPECT_EQ(unknown.code, 0);
    EXPECT_FALSE(memmem(unknown.out.p, unknown.out.len, "max-pods", 8));
    EXPECT_HAS(buf_str(&unknown.err), "--instance-type or --max-pods says it");
    AUTO_RESULT json = userdata(CLUSTER "-o json", plain);
    EXPECT_HAS(buf_str(&json.err), "--instance-type or --max-pods says it");
    EXPECT_HAS(buf_str(&json.out), "--instance-type or --max-pods says it");
    AUTO_RESULT computed = userdata(CLUSTER "--instance-type m5.large", plain);
    EXPECT_HAS(buf_str(&computed.out), "--max-pods=110");
    AUTO_RESULT flag = userdata(CLUSTER "--instance-type m5.large --max-pods 7", plain);
    EXPECT_HAS(buf_str(&flag.out), "--max-pods=7");
    AUTO_RESULT user = userdata(CLUSTER "--instance-type m5.large --max-pods 7", own);
    EXPECT_HAS(buf_str(&user.out), "--max-pods=58");
    EXPECT_EQ(user.err.len, 0);
}

TEST(userdata_with_an_instance_type_says_what_the_node_offers)
{
    AUTO_RESULT r = userdata(
        CLUSTER "-o json --instance-type m5.large --kubernetes-version 1.33",
        NODECLASS("a", "alias: al2023@v20260714", "  kubelet: {systemReserved: {cpu: 100m}}\n"));
    struct doc doc;
    EXPECT_EQ(r.code, 0);
    EXPECT_STR(member(&r, "allocatable.cpu", &doc), "1830m");
    EXPECT_STR(json_str(json_path(doc.root, "allocatable.memory")), "6903Mi");
    EXPECT_STR(json_str(json_path(doc.root, "kubeReserved.memory")), "574Mi");
    EXPECT_STR(json_str(json_path(doc.root, "systemReserved.cpu")), "100m");
    EXPECT_STR(json_str(json_at(json_get(doc.root, STR("ssmParameters")), 0)),
               "/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/x86_64/standard/"
               "amazon-eks-node-al2023-x86_64-standard-1.33-v20260714/image_id");
    doc_done(&doc);
    AUTO_RESULT old =
        userdata(CLUSTER "--kubernetes-version 1.33", NODECLASS("a", "alias: al2@latest", ""));
    EXPECT_EQ(old.code, 1);
    EXPECT_HAS(buf_str(&old.err), "there are no AL2 images for Kubernetes 1.33");
}

TEST(userdata_looks_the_instance_type_up_in_a_catalogue_file)
{
#define FROM_FILE "--catalogue examples/catalogue.yaml "
    const char *class_ = NODECLASS("a", "alias: al2@latest", "");
    AUTO_RESULT r = userdata(CLUSTER FROM_FILE "--instance-type compute-8 -o json", class_);
    struct err err = { 0 };
    struct doc doc = { 0 };
    EXPECT_EQ(r.code, 0);
    EXPECT_OK(json_read(buf_str(&r.out), &doc, &err), err);
    EXPECT_STR(json_str(json_path(doc.root, "capacity.cpu")), "8");
    EXPECT_STR(json_str(json_path(doc.root, "overhead.cpu")), "100m");
    EXPECT_STR(json_str(json_path(doc.root, "allocatable.cpu")), "7900m");
    EXPECT_HAS(json_str(json_path(doc.root, "userData")), "--max-pods=110");
    doc_done(&doc);

    AUTO_RESULT near = userdata(CLUSTER FROM_FILE "--instance-type compute-9", class_);
    EXPECT_EQ(near.code, 2);
    EXPECT_HAS(buf_str(&near.err), "did you mean compute-8?");
    AUTO_RESULT alone = userdata(CLUSTER FROM_FILE, class_);
    EXPECT_EQ(alone.code, 2);
    AUTO_RESULT missing = userdata(CLUSTER "--catalogue no/such --instance-type a", class_);
    EXPECT_EQ(missing.code, 3);
}

TEST(userdata_explain_names_the_owner_of_each_line)
{
    AUTO_RESULT r = userdata(CLUSTER "--explain",
                             NODECLASS("a", "alias: windows2022@latest",
                                       "  kubelet: {maxPods: 58}\n  userData: |\n    dir\n"));
    EXPECT_EQ(r.code, 0);
    EXPECT_HAS(buf_str(&r.out), "karve                 | <powershell>\n"
                                "user                  | dir\n"
                                "karve                 | & \"$env:ProgramFiles");
    EXPECT_HAS(buf_str(&r.out), "\nkubelet configuration +  --max-pods=58\n"
                                "karve                 + ' -DNSClusterIP");
}

#define BOTTLEROCKET(rest)                                                                         \
    NODECLASS("a", "alias: bottlerocket@v1.46.0",                                                  \
              "  userData: |\n    [settings.kubernetes]\n    max-pods = 5  # mine\n" rest)

TEST(userdata_explain_says_what_was_overridden)
{
    AUTO_RESULT r = userdata(CLUSTER "--explain --max-pods 29",
                             BOTTLEROCKET("    shiny-new-key = 1\n"
                                          "    [settings.kubernetes.node-labels]\n"
                                          "    'karpenter.sh/capacity-type' = 'free'\n"));
    EXPECT_EQ(r.code, 0);
    EXPECT_HAS(buf_str(&r.out), "\nkarve | max-pods = 29");
    EXPECT_HAS(buf_str(&r.out),
               "\n      ^ overrides max-pods = 5 of line 11 (line 2 of the user data)\n");
    EXPECT_HAS(buf_str(&r.out), "\nuser  | shiny-new-key = 1\n");
    EXPECT_HAS(buf_str(&r.out),
               "\nkarve | 'karpenter.sh/capacity-type' = 'on-demand'\n      ^ overrides ");
}

TEST(userdata_counts_what_bottlerocket_user_data_reserves)
{
    AUTO_RESULT r =
        userdata(CLUSTER "-o json --instance-type m5.large",
                 BOTTLEROCKET("    [settings.kubernetes.kube-reserved]\n    cpu = '150m'\n"));
    struct doc doc;
    EXPECT_EQ(r.code, 0);
    EXPECT_STR(member(&r, "kubeReserved.cpu", &doc), "150m");
    EXPECT_STR(json_str(json_path(doc.root, "allocatable.cpu")), "1850m");
    doc_done(&doc);

    AUTO_RESULT bad =
        userdata(CLUSTER "-o json --instance-type m5.large",
                 BOTTLEROCKET("    [settings.kubernetes.eviction-hard]\n"
                              "    'memory.available' = '5'\n    'nodefs.available' = '5 %'\n"));
    EXPECT_EQ(bad.code, 1);
    EXPECT_HAS(buf_str(&bad.err), "spec.userData: line 14 (line 5, column 22 of the user data): ");
    EXPECT_HAS(buf_str(&bad.err), "\"5 %\" is neither a percentage");

    AUTO_RESULT broken =
        userdata(CLUSTER "--instance-type m5.large", BOTTLEROCKET("    max-pods = 6\n"));
    EXPECT_EQ(broken.code, 1);
    EXPECT_HAS(buf_str(&broken.err), "spec.userData: line 12 (line 3, column 1 of the user data)");
}

TEST(userdata_takes_the_certificate_authority_from_a_pem_file)
{
    AUTO_RESULT r =
        sh("printf -- '-----BEGIN CERTIFICATE-----\\nAA==\\n' > /tmp/karve-ca.$$; "
           "karve userdata -f - --cluster-name a --cluster-endpoint b --max-pods 1 "
           "--cluster-ca @/tmp/karve-ca.$$; code=$?; rm -f /tmp/karve-ca.$$; exit $code",
           STR(NODECLASS("a", "alias: windows2022@latest", "")));
    EXPECT_EQ(r.code, 0);
    EXPECT_HAS(buf_str(&r.out), "-Base64ClusterCA 'LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCkFBPT0K'");
    AUTO_RESULT missing = karve("userdata -f x --cluster-ca @/does/not/exist");
    EXPECT_EQ(missing.code, 3);
    AUTO_RESULT pem = karve("userdata -f x --cluster-ca '-----BEGIN CERTIFICATE-----'");
    EXPECT_EQ(pem.code, 2);
    EXPECT_HAS(buf_str(&pem.err), "@FILE");
}

TEST(userdata_refuses_flags_that_make_no_sense)
{
    static const struct {
        const char *flags, *says;
    } rows[] = {
        { "", "nothing to read" },
        { "-f x --label novalue", "expected key=value" },
        { "-f x --label 'a=b c'", "must be empty or letters" },
        { "-f x --label a=$(printf '%064d' 0)", "must be at most 63 characters" },
        { "-f x --label a=1 --label a=2", "given twice" },
        { "-f x --taint a=b", "expected key=value:Effect" },
        { "-f x --taint a=b:Never", "the effect is one of" },
        { "-f x --taint :NoExecute", "the key is missing" },
        { "-f x --taint a=b/c:NoExecute", "must be empty or letters" },
        { "-f x --cluster-name \"o'clock\"", "is not the name of a cluster" },
        { "-f x --cluster-name -h", "is not the name of a cluster" },
        { "-f x --cluster-endpoint 'https://a b'", "is not a URL" },
        { "-f x --cluster-endpoint 'https://$(id)'", "is not a URL" },
        { "-f x --cluster-dns kube-dns", "is not an IP address" },
        { "-f x --service-cidr 10.0.0.0", "is not a range of addresses" },
        { "-f x --service-cidr 10.0.0.0/33", "is not a range of addresses" },
        { "-f x --max-pods many", "is not a number of pods" },
        { "-f x --max-pods -1", "is not a number of pods" },
        { "-f x --instance-type m5.larg", "did you mean m5.large?" },
        { "-f x --cluster-ca '!'", "is not base64" },
        { "-f x --kubernetes-version v1.33", "is not a version such as 1.33" },
        { "-f x --capacity-type cheap", "is not one of on-demand, spot, reserved" },
        { "--diff x", "--diff takes two files" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        AUTO_BUF command = { 0 };
        buf_addf(&command, "userdata %s", rows[i].flags);
        AUTO_RESULT r = karve(command.p);
        EXPECT_EQ(r.code, 2);
        EXPECT_HAS(buf_str(&r.err), rows[i].says);
        EXPECT_EQ(r.out.len, 0);
    }
}

/* `karve userdata --diff` of two classes, which need no flags for it. */
static struct result userdata_diff(const char *old, const char *new, const char *flags)
{
    AUTO_BUF command = { 0 };
    buf_addf(&command,
             "d=$(mktemp -d); cat > $d/old.yaml <<'OLD'\n%sOLD\ncat > $d/new.yaml <<'NEW'\n%sNEW\n"
             "karve userdata --diff $d/old.yaml $d/new.yaml %s; code=$?; rm -r $d; exit $code",
             old, new, flags);
    return sh(command.p, STR(""));
}

TEST(userdata_diff_says_what_changes_and_whether_nodes_drift)
{
#define WINDOWS(rest) NODECLASS("a", "alias: windows2022@latest", rest)
    AUTO_RESULT same =
        userdata_diff(WINDOWS("  userData: \"dir\\n\"\n"), WINDOWS("  userData: |\n    dir\n"), "");
    EXPECT_EQ(same.code, 0);
    EXPECT_STR(buf_str(&same.out), "nothing changes\n");

    AUTO_RESULT text = userdata_diff(WINDOWS("  userData: |\n    one\n    two\n    three\n"),
                                     WINDOWS("  userData: |\n    one\n    2\n    three\n"), "");
    EXPECT_EQ(text.code, 1);
    EXPECT_HAS(buf_str(&text.out), "@@ -1,6 +1,6 @@\n <powershell>\n one\n-two\n+2\n three\n");
    EXPECT_HAS(buf_str(&text.out), "changed: spec.userData\n");
    EXPECT_HAS(buf_str(&text.out), "drift: yes, nodes of the class are replaced (NodeClassDrift");

    AUTO_RESULT terms = userdata_diff(
        WINDOWS(""), NODECLASS("a", "alias: windows2022@latest", "") "  ipPrefixCount: 1\n", "");
    EXPECT_EQ(terms.code, 1);
    EXPECT_HAS(buf_str(&terms.out), "changed: spec.ipPrefixCount\n");
    EXPECT_HAS(buf_str(&terms.out), "user data: stays the same\ndrift: no, nodes stay\n");

    AUTO_RESULT images = userdata_diff(NODECLASS("a", "alias: al2023@v20260101", ""),
                                       NODECLASS("a", "alias: al2023@v20260714", ""), "");
    EXPECT_EQ(images.code, 1);
    EXPECT_HAS(buf_str(&images.out), "drift: only if the selector terms now select something else");

    AUTO_RESULT family = userdata_diff(NODECLASS("a", "alias: al2@latest", ""),
                                       NODECLASS("a", "alias: al2023@latest", ""), "-o json");
    struct doc doc;
    EXPECT_EQ(family.code, 1);
    EXPECT_HAS(member(&family, "diff", &doc), "+kind: NodeConfig\n");
    EXPECT_TRUE(json_bool(json_get(doc.root, STR("drifts"))));
    doc_done(&doc);
}

TEST(userdata_diff_shows_what_pods_gain_or_lose)
{
    AUTO_RESULT r = userdata_diff(
        NODECLASS("a", "alias: al2023@latest", ""),
        NODECLASS("a", "alias: al2023@latest", "  kubelet: {systemReserved: {memory: 1Gi}}\n"),
        "--instance-type m5.large");
    EXPECT_EQ(r.code, 1);
    EXPECT_HAS(buf_str(&r.out), "allocatable memory: 6903Mi -> 5879Mi\n");
    AUTO_RESULT gone = userdata_diff(
        NODECLASS("a", "alias: al2023@latest", ""),
        NODECLASS("a", "alias: al2023@latest",
                  "  networkInterfaces: [{networkCardIndex: 0, deviceIndex: 0, interfaceType: "
                  "interface}]\n"),
        "--instance-type p4d.24xlarge");
    EXPECT_HAS(buf_str(&gone.out), "allocatable vpc.amazonaws.com/efa: 4 -> 0\n");
}

TEST(an_annotation_that_changes_the_order_changes_nodes_to_come_only)
{
#define ANNOTATED(order)                                                                           \
    "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: a, annotations: {"     \
    "karve.io/userdata-order: " order                                                              \
    "}}\nspec: {role: R, amiSelectorTerms: [{alias: al2@latest}],"                                 \
    " subnetSelectorTerms: [{id: subnet-1}], securityGroupSelectorTerms: [{id: sg-1}],"            \
    " userData: 'id'}\n"
    AUTO_RESULT r = userdata_diff(ANNOTATED("managed-user-managed"), ANNOTATED("user-managed"), "");
    EXPECT_EQ(r.code, 1);
    EXPECT_HAS(buf_str(&r.out), "changed: metadata.annotations[\"karve.io/userdata-order\"]\n");
    EXPECT_HAS(buf_str(&r.out), "drift: no, nodes stay; only new ones get the new user data\n");
}

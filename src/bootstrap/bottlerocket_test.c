#include "bootstrap/boot_testing.h"
#include "bootstrap/families.h"
#include "codec/toml.h"

static const struct str_pair fruit_labels[] = {
    { STR("karpenter.sh/capacity-type"), STR("spot") },
    { STR("karpenter.sh/nodepool"), STR("fruit") },
    { STR("node.kubernetes.io/instance-type"), STR("m5.large") }, /* the kubelet may not set it */
};
static const struct taint dedicated[] = {
    { .key = STR("dedicated"), .value = STR("fruit"), .effect = EFFECT_NO_SCHEDULE },
};

/* Pool `fruit`, spot, 29 pods, one taint: cluster `orchard` of the other families' tests. */
#define FRUIT(name)                                                                                \
    RENDERING(name, AMI_FAMILY_BOTTLEROCKET);                                                      \
    (name).boot.labels = (struct str_map){ fruit_labels, KV_COUNT_OF(fruit_labels) };              \
    (name).boot.taints.items = dedicated;                                                          \
    (name).boot.taints.count = KV_COUNT_OF(dedicated)

static struct toml *read_ok(struct arena *arena, struct str text)
{
    struct toml *root = NULL;
    struct err err = { 0 };
    EXPECT_OK(toml_read(arena, text, &root, &err), err);
    return root;
}

/* Render; what must hold of any result: the pieces are the text, it is TOML, and merging it once
 * more changes nothing. */
static const struct toml *merge_ok(struct rendering *r, const char *maybe_user_data)
{
    struct err err = { 0 };
    struct boot_text again;
    struct buf joined = { 0 };
    r->boot.user_data = maybe_user_data ? str_of(maybe_user_data) : STR_NONE;
    EXPECT_OK(boot_render(&r->arena, &r->boot, &r->out, &err), err);
    for (uint32_t i = 0; i < r->out.pieces.count; i++)
        buf_add(&joined, r->out.pieces.items[i].text);
    EXPECT_TRUE(str_eq(buf_str(&joined), r->out.text));
    buf_done(&joined);
    EXPECT_EQ(r->out.parts.count, 1);
    EXPECT_TRUE(r->out.parts.items != NULL);
    EXPECT_EQ(r->out.parts.items[0].bytes, r->out.text.len);

    struct boot second = r->boot;
    second.user_data = r->out.text;
    EXPECT_OK(boot_render(&r->arena, &second, &again, &err), err);
    EXPECT_TRUE(str_eq(again.text, r->out.text));
    return read_ok(&r->arena, r->out.text);
}

static const struct toml *at(const struct toml *root, const char *path) /* keys between bars */
{
    struct str key, rest = str_of(path);
    for (bool more = true; more;) {
        more = str_cut(rest, '|', &key, &rest);
        root = toml_get(root, key);
    }
    return root;
}

static const char user_example[] = "[settings.kubernetes]\n"
                                   "max-pods = 5\n"
                                   "shiny-new-key = 1\n"
                                   "[settings.kubernetes.eviction-hard]\n"
                                   "\"memory.available\" = \"15%\"\n"
                                   "[settings.kubernetes.node-labels]\n"
                                   "\"karpenter.sh/nodepool\" = \"mine\"\n"
                                   "\"shelf\" = \"top\"\n"
                                   "[settings.kubernetes.node-taints]\n"
                                   "\"mine\" = [\"x:NoSchedule\"]\n"
                                   "[settings.ntp]\n"
                                   "time-servers = [\"169.254.169.123\"]\n";

TEST(the_users_settings_are_merged_with_karves)
{
    FRUIT(r);
    const struct toml *root = merge_ok(&r, user_example);
    struct toml *want =
        read_ok(&r.arena, STR("[settings.kubernetes]\n"
                              "api-server = 'https://A1B2.gr7.eu-west-1.eks.amazonaws.com'\n"
                              "cluster-certificate = 'LS0tLS1DQQ=='\n"
                              "cluster-name = 'orchard'\n"
                              "cluster-dns-ip = '172.20.0.10'\n"
                              "max-pods = 29\n"
                              "shiny-new-key = 1\n"
                              "[settings.kubernetes.node-labels]\n"
                              "'karpenter.sh/capacity-type' = 'spot'\n"
                              "'karpenter.sh/do-not-sync-taints' = 'true'\n"
                              "'karpenter.sh/nodepool' = 'fruit'\n"
                              "shelf = 'top'\n"
                              "[settings.kubernetes.node-taints]\n"
                              "dedicated = ['fruit:NoSchedule']\n"
                              "'karpenter.sh/unregistered' = [':NoExecute']\n"
                              "[settings.kubernetes.eviction-hard]\n"
                              "'memory.available' = '15%'\n"
                              "[settings.ntp]\n"
                              "time-servers = ['169.254.169.123']\n"));
    EXPECT_TRUE(toml_equal(root, want));
    EXPECT_EQ(r.out.warnings.count, 1);
    EXPECT_STR(r.out.warnings.items[0],
               "line 10 of the user data: settings.kubernetes.node-taints.mine is dropped: the "
               "taints of a node are karve's to set");
}

TEST(tables_keys_and_comments_of_the_user_keep_their_order_and_karves_keys_come_sorted)
{
    FRUIT(r);
    merge_ok(&r, "# my nodes\n"
                 "[settings.ntp] # time\n"
                 "time-servers = [ \"169.254.169.123\" ]\n"
                 "\n"
                 "# about pods\n"
                 "[settings.kubernetes]\n"
                 "zebra = 'z'\n"
                 "# not so many\n"
                 "max-pods = 5 # five\n"
                 "ant = 0x10\n"
                 "\n"
                 "[settings.kubernetes.node-labels]\n"
                 "# where it stands\n"
                 "shelf = \"top\"\n"
                 "\n"
                 "[settings.host-containers.admin]\n"
                 "enabled = true");
    EXPECT_STR(r.out.text, "# my nodes\n"
                           "[settings.ntp] # time\n"
                           "time-servers = [ \"169.254.169.123\" ]\n"
                           "\n"
                           "# about pods\n"
                           "[settings.kubernetes]\n"
                           "api-server = 'https://A1B2.gr7.eu-west-1.eks.amazonaws.com'\n"
                           "cluster-certificate = 'LS0tLS1DQQ=='\n"
                           "cluster-dns-ip = '172.20.0.10'\n"
                           "cluster-name = 'orchard'\n"
                           "max-pods = 29 # five\n"
                           "zebra = 'z'\n"
                           "# not so many\n"
                           "ant = 0x10\n"
                           "\n"
                           "[settings.kubernetes.node-labels]\n"
                           "'karpenter.sh/capacity-type' = 'spot'\n"
                           "'karpenter.sh/do-not-sync-taints' = 'true'\n"
                           "'karpenter.sh/nodepool' = 'fruit'\n"
                           "# where it stands\n"
                           "shelf = \"top\"\n"
                           "\n"
                           "[settings.kubernetes.node-taints]\n"
                           "dedicated = ['fruit:NoSchedule']\n"
                           "'karpenter.sh/unregistered' = [':NoExecute']\n"
                           "\n"
                           "[settings.host-containers.admin]\n"
                           "enabled = true");
}

TEST(without_user_data_everything_is_karves)
{
    static const char *const nothing[] = { NULL, "", "\n\n" };
    for (size_t i = 0; i < KV_COUNT_OF(nothing); i++) {
        FRUIT(r);
        const struct toml *root = merge_ok(&r, nothing[i]);
        EXPECT_STR(toml_str(at(root, "settings|kubernetes|cluster-name")), "orchard");
        EXPECT_EQ(toml_count(root), 1);
        EXPECT_EQ(toml_count(at(root, "settings|kubernetes")), 7);
        EXPECT_EQ(piece_with(&r, "cluster-name")->owner, OWNER_KARVE);
        EXPECT_EQ(r.out.warnings.count, 0);
    }
}

/* However the user writes settings.kubernetes: the same settings come out. */
TEST(the_users_way_of_writing_tables_does_not_matter)
{
    static const char *const texts[] = {
        "[settings.kubernetes]\nmax-pods = 5\nx = 1\n[settings.kubernetes.node-labels]\nshelf = 'top'\n",
        "[settings]\nkubernetes.max-pods = 5\nkubernetes.x = 1\nkubernetes.node-labels.shelf = 'top'\n",
        "settings.kubernetes.x = 1\nsettings.kubernetes.node-labels = { shelf = 'top' }\n",
        "settings = { kubernetes = { max-pods = 5, x = 1, node-labels.shelf = 'top' } }",
        "[settings.kubernetes.node-labels]\nshelf = 'top'\n[settings.kubernetes]\nx = 1\n",
        "[settings]\nkubernetes = {x = 1, node-labels = {shelf = 'top'}, node-taints = {a = ['b:c']}}",
        "\xef\xbb\xbf[settings.kubernetes]\r\nx = 1\r\n\r\nnode-labels.shelf = 'top'\r\n",
    };
    for (size_t i = 0; i < KV_COUNT_OF(texts); i++) {
        FRUIT(r);
        const struct toml *root = merge_ok(&r, texts[i]);
        FRUIT(first);
        EXPECT_TRUE(toml_equal(root, merge_ok(&first, texts[0])));
    }
}

TEST(every_line_says_who_set_it_and_what_it_overrides)
{
    FRUIT(r);
    rendering_kubelet(&r, "{\"clusterDNS\":[\"10.0.0.2\"],\"kubeReserved\":{\"cpu\":\"90m\"}}");
    r.boot.user_data_pos = (struct text_pos){ 20, 5 };
    merge_ok(&r, user_example);
    EXPECT_EQ(piece_with(&r, "max-pods = 29")->owner, OWNER_KARVE);
    EXPECT_STR(piece_with(&r, "max-pods = 29")->text, "max-pods = 29\n");
    EXPECT_STR(piece_with(&r, "max-pods = 29")->note,
               "overrides max-pods = 5 of line 21 (line 2 of the user data)");
    EXPECT_STR(piece_with(&r, "nodepool")->note, "overrides 'karpenter.sh/nodepool' = \"mine\" of "
                                                 "line 26 (line 7 of the user data)");
    EXPECT_EQ(piece_with(&r, "cluster-dns-ip")->owner, OWNER_KUBELET);
    EXPECT_EQ(piece_with(&r, "cpu = '90m'")->owner, OWNER_KUBELET);
    EXPECT_EQ(piece_with(&r, "kube-reserved]")->owner, OWNER_KARVE);
    EXPECT_EQ(piece_with(&r, "shiny-new-key")->owner, OWNER_USER);
    EXPECT_EQ(piece_with(&r, "[settings.ntp]")->owner, OWNER_USER);
    EXPECT_EQ(piece_with(&r, "[settings.kubernetes]")->owner, OWNER_USER);
    EXPECT_STR(
        r.out.warnings.items[0],
        "line 29 (line 10 of the user data): settings.kubernetes.node-taints.mine is dropped: "
        "the taints of a node are karve's to set");
}

TEST(a_header_that_karve_had_to_write_is_karves)
{
    FRUIT(r);
    merge_ok(&r, "[settings.kubernetes.node-labels]\nshelf = 'top'\n");
    EXPECT_EQ(piece_with(&r, "[settings.kubernetes]")->owner, OWNER_KARVE);
    EXPECT_EQ(piece_with(&r, "[settings.kubernetes.node-labels]")->owner, OWNER_USER);
}

TEST(labels_of_karpenter_are_never_the_users)
{
    FRUIT(r);
    const struct toml *root = merge_ok(&r, "[settings.kubernetes.node-labels]\n"
                                           "'karpenter.sh/mine' = 'a' # gone\n"
                                           "'karpenter.sh/nodepool' = 'b'\n"
                                           "'karpenter.k8s.aws/x' = 'c'\n"
                                           "'karpenter.sh' = 'd'\n"
                                           "'node.kubernetes.io/instance-type' = 'e'\n");
    const struct toml *labels = at(root, "settings|kubernetes|node-labels");
    EXPECT_STR(toml_str(toml_get(labels, STR("karpenter.sh/nodepool"))), "fruit");
    EXPECT_TRUE(toml_get(labels, STR("karpenter.sh/mine")) == NULL);
    EXPECT_STR(toml_str(toml_get(labels, STR("karpenter.k8s.aws/x"))), "c");
    EXPECT_STR(toml_str(toml_get(labels, STR("karpenter.sh"))), "d");
    EXPECT_STR(toml_str(toml_get(labels, STR("node.kubernetes.io/instance-type"))), "e");
    EXPECT_EQ(toml_count(labels), 6);
    EXPECT_EQ(r.out.warnings.count, 1);
    EXPECT_STR(r.out.warnings.items[0],
               "line 2 of the user data: settings.kubernetes.node-labels.'karpenter.sh/mine' is "
               "dropped: labels of karpenter.sh/ are karve's to set");
}

TEST(taints_of_one_key_share_a_list)
{
    static const struct taint taints[] = {
        { .key = STR("b"), .value = STR("1"), .effect = EFFECT_NO_SCHEDULE },
        { .key = STR("a"), .effect = EFFECT_PREFER_NO_SCHEDULE },
        { .key = STR("b"), .value = STR("2"), .effect = EFFECT_NO_EXECUTE },
    };
    FRUIT(r);
    r.boot.taints.items = taints;
    r.boot.taints.count = KV_COUNT_OF(taints);
    merge_ok(&r, NULL);
    EXPECT_HAS(r.out.text, "[settings.kubernetes.node-taints]\n"
                           "a = [':PreferNoSchedule']\n"
                           "b = ['1:NoSchedule', '2:NoExecute']\n"
                           "'karpenter.sh/unregistered' = [':NoExecute']\n");
}

TEST(spec_kubelet_replaces_tables_as_a_whole_and_leaves_the_rest_to_the_user)
{
    FRUIT(r);
    rendering_kubelet(&r, "{\"maxPods\":20,\"evictionHard\":{\"memory.available\":\"5%\"},"
                          "\"evictionSoft\":{\"nodefs.available\":\"1Gi\"},"
                          "\"evictionSoftGracePeriod\":{\"nodefs.available\":\"90s\"},"
                          "\"evictionMaxPodGracePeriod\":30,\"imageGCHighThresholdPercent\":85,"
                          "\"imageGCLowThresholdPercent\":80,\"cpuCFSQuota\":false,"
                          "\"systemReserved\":{\"memory\":\"1Gi\",\"cpu\":\"100m\"}}");
    const struct toml *root = merge_ok(&r, "[settings.kubernetes]\n"
                                           "image-gc-high-threshold-percent = 90\n"
                                           "[settings.kubernetes.eviction-hard] # mine\n"
                                           "'memory.available' = '1%'\n"
                                           "'pid.available' = '2%'\n"
                                           "[settings.kubernetes.kube-reserved]\n"
                                           "cpu = '70m'\n");
    struct toml *want = read_ok(
        &r.arena,
        STR("max-pods = 20\neviction-hard = {'memory.available' = '5%'}\n"
            "eviction-soft = {'nodefs.available' = '1Gi'}\n"
            "eviction-soft-grace-period = {'nodefs.available' = '1m30s'}\n"
            "eviction-max-pod-grace-period = 30\nimage-gc-high-threshold-percent = '85'\n"
            "image-gc-low-threshold-percent = '80'\ncpu-cfs-quota-enforced = false\n"
            "system-reserved = {cpu = '100m', memory = '1Gi'}\nkube-reserved = {cpu = '70m'}\n"));
    toml_each(want, e)
    {
        const struct toml *got = toml_get(at(root, "settings|kubernetes"), toml_key(e));
        EXPECT_TRUE(got && toml_equal(got, toml_value(e)));
    }
    EXPECT_HAS(r.out.text,
               "[settings.kubernetes.eviction-hard] # mine\n'memory.available' = '5%'\n");
    EXPECT_EQ(r.out.warnings.count, 1);
    EXPECT_HAS(r.out.warnings.items[0], "eviction-hard.'pid.available' is dropped: spec.kubelet");
}

TEST(what_is_not_known_is_left_to_the_user)
{
    FRUIT(r);
    r.cluster.ca = r.cluster.dns = STR("");
    r.boot.max_pods.set = false;
    const struct toml *root = merge_ok(&r, "[settings.kubernetes]\nmax-pods = 5\n"
                                           "cluster-dns-ip = ['10.0.0.2', '10.0.0.3']\n");
    EXPECT_EQ(toml_int(at(root, "settings|kubernetes|max-pods")), 5);
    EXPECT_EQ(toml_count(at(root, "settings|kubernetes|cluster-dns-ip")), 2);
    EXPECT_TRUE(at(root, "settings|kubernetes|cluster-certificate") == NULL);
    EXPECT_EQ(r.out.warnings.count, 1);
    EXPECT_HAS(r.out.warnings.items[0], "certificate authority is not known");
}

TEST(instance_storage_is_mounted_by_a_bootstrap_command)
{
    static const struct {
        const char *version;
        size_t words;
    } cases[] = {
        { NULL, 7 },      { "", 7 },       { "1.45.9", 7 }, { "0.99.0", 7 },  { "1", 7 },
        { "1.x", 7 },     { "banana", 7 }, { "1.46.0", 3 }, { "v1.46.0", 3 }, { "1.46.0-ab12", 3 },
        { "1.100.0", 3 }, { "2.0.0", 3 },  { "latest", 3 },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        FRUIT(r);
        r.boot.raid0 = true;
        r.boot.image_version = cases[i].version ? str_of(cases[i].version) : STR_NONE;
        const struct toml *root =
            merge_ok(&r, "[settings.bootstrap-commands.mine]\nmode = 'once'\n"
                         "[settings.bootstrap-commands.000-mount-instance-storage]\n"
                         "essential = false\nother = 1\n");
        const struct toml *entry =
            at(root, "settings|bootstrap-commands|000-mount-instance-storage");
        EXPECT_EQ(toml_count(entry), 3);
        EXPECT_STR(toml_str(toml_get(entry, STR("mode"))), "always");
        EXPECT_TRUE(toml_bool(toml_get(entry, STR("essential"))));
        const struct toml *commands = toml_get(entry, STR("commands"));
        EXPECT_EQ(toml_count(commands), 2);
        EXPECT_STR(toml_str(toml_item(toml_item(commands, 0), 2)), "init");
        EXPECT_STR(toml_str(toml_item(toml_item(commands, 1), 2)), "bind");
        EXPECT_EQ(toml_count(toml_item(commands, 1)), cases[i].words);
        EXPECT_STR(toml_str(at(root, "settings|bootstrap-commands|mine|mode")), "once");
    }
    FRUIT(r);
    r.boot.raid0 = true;
    merge_ok(&r, NULL);
    EXPECT_HAS(r.out.text,
               "[settings.bootstrap-commands.000-mount-instance-storage]\n"
               "commands = [['apiclient', 'ephemeral-storage', 'init'], ['apiclient', "
               "'ephemeral-storage', 'bind', '--dirs', '/var/lib/containerd', "
               "'/var/lib/kubelet', '/var/log/pods']]\nessential = true\nmode = 'always'\n");
}

TEST(user_data_that_cannot_be_merged_is_refused_with_its_place)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        { "#!/bin/bash\necho hi\n", "line 2, column 6 of the user data: expected '='" },
        { "a = 1\na = 2", "line 2, column 1 of the user data: key \"a\" is already defined" },
        { "settings = 3",
          "line 1, column 12 of the user data: settings is an integer, expected a table" },
        { "[settings]\nkubernetes = 3",
          "line 2, column 14 of the user data: settings.kubernetes is an integer, expected a table" },
        { "[[settings.kubernetes]]", "settings.kubernetes is an array, expected a table" },
        { "[settings.kubernetes]\nmax-pods = 'a'",
          "settings.kubernetes.max-pods is a string, expected an integer" },
        { "[settings.kubernetes]\nnode-labels = []",
          "settings.kubernetes.node-labels is an array, expected a table" },
        { "[settings.kubernetes]\nnode-taints = 1",
          "settings.kubernetes.node-taints is an integer, expected a table" },
        { "[settings.kubernetes.node-labels]\n'a/b' = 1",
          "line 2, column 9 of the user data: settings.kubernetes.node-labels.'a/b' is an integer, "
          "expected a string" },
        { "[settings.kubernetes.kube-reserved]\ncpu = 1.5",
          "settings.kubernetes.kube-reserved.cpu is a float, expected a string" },
        { "[settings]\nbootstrap-commands = 1", "settings.bootstrap-commands is an integer" },
        { "[settings.bootstrap-commands]\n000-mount-instance-storage = 1",
          "settings.bootstrap-commands.000-mount-instance-storage is an integer, expected a table" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        FRUIT(r);
        r.boot.raid0 = true;
        render_refused(&r, cases[i].text, cases[i].words);
        r.boot.user_data_pos = (struct text_pos){ 100, 1 };
        render_refused(&r, cases[i].text, "spec.userData: line 10");
    }
}

TEST(values_are_quoted_so_that_they_mean_themselves)
{
    FRUIT(r);
    r.cluster.name = STR("it's \"x\" \\ \xc3\xa9");
    const struct toml *root = merge_ok(&r, NULL);
    EXPECT_STR(toml_str(at(root, "settings|kubernetes|cluster-name")), "it's \"x\" \\ \xc3\xa9");
}

/* --- reservations --- */

TEST(reservations_are_read_out_of_user_data)
{
    AUTO_ARENA arena = { 0 };
    struct str_map kube, system, eviction;
    struct err err = { 0 };
    EXPECT_OK(bottlerocket_reservations(&arena,
                                        STR("[settings.kubernetes.kube-reserved]\n"
                                            "memory = '1Gi'\ncpu = \"70m\"\n"
                                            "[settings.kubernetes]\n"
                                            "eviction-hard = {'memory.available' = '15%'}\n"),
                                        &kube, &system, &eviction, &err),
              err);
    EXPECT_EQ(kube.count, 2);
    EXPECT_STR(kube.items[0].key, "cpu");
    EXPECT_STR(kube.items[0].value, "70m");
    EXPECT_STR(kube.items[1].value, "1Gi");
    EXPECT_EQ(system.count, 0);
    EXPECT_STR(str_map_get(&eviction, STR("memory.available")), "15%");
}

TEST(user_data_without_reservations_has_none)
{
    static const struct str texts[] = {
        { NULL, 0 }, { "", 0 }, { "a = 1", 5 }, { "[settings]", 10 }
    };
    for (size_t i = 0; i < KV_COUNT_OF(texts); i++) {
        AUTO_ARENA arena = { 0 };
        struct str_map kube = { NULL, 9 }, system = kube, eviction = kube;
        struct err err = { 0 };
        EXPECT_OK(bottlerocket_reservations(&arena, texts[i], &kube, &system, &eviction, &err),
                  err);
        EXPECT_EQ(kube.count + system.count + eviction.count, 0);
    }
}

TEST(reservations_that_are_no_strings_are_refused_with_their_place)
{
    AUTO_ARENA arena = { 0 };
    struct str_map kube, system, eviction;
    struct err err = { 0 };
    EXPECT_ERR(bottlerocket_reservations(&arena,
                                         STR("[settings.kubernetes]\nsystem-reserved.cpu = 1"),
                                         &kube, &system, &eviction, &err),
               err, ERR_INVALID);
    EXPECT_Z(err.text, "line 2, column 23: settings.kubernetes.system-reserved.cpu is an integer, "
                       "expected a string");
    EXPECT_ERR(bottlerocket_reservations(&arena, STR("x"), &kube, &system, &eviction, &err), err,
               ERR_INVALID);
    EXPECT_Z(err.text, "line 1, column 2: expected '=' after the key, found the end of the text");
}

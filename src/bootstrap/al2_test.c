/* AL2's archives, read back: what bootstrap.sh and the kubelet would be told. How they behave when
 * they run is in al2_run_test.c. */
#include "bootstrap/boot_testing.h"

/* The words of the call of bootstrap.sh, as a shell reads them. */
struct words {
    struct str items[40];
    uint32_t count;
};

static struct str call_of(struct str script)
{
    static const char start[] = "\n/etc/eks/bootstrap.sh ";
    const char *call = memmem(script.p, script.len, start, sizeof start - 1);
    if (!call)
        fail_msg("bootstrap.sh is not called");
    size_t at = (size_t)(call - script.p) + sizeof start - 1;
    return str_sub(script, at, script.len);
}

static void read_words(struct arena *arena, struct str script, struct words *out)
{
    struct str text = call_of(script);
    out->count = 0;
    for (size_t i = 0; i < text.len && text.p[i] != '\n';) {
        AUTO_BUF word = { 0 };
        bool quoted = false;
        for (; i < text.len && (quoted || (text.p[i] != ' ' && text.p[i] != '\n')); i++) {
            if (text.p[i] == '\'')
                quoted = !quoted;
            else if (!quoted && text.p[i] == '\\' && text.p[i + 1] == '\n')
                i++;
            else
                buf_addc(&word, text.p[i]);
        }
        if (word.len)
            out->items[out->count++] = arena_str(arena, buf_str(&word));
        while (i < text.len && text.p[i] == ' ')
            i++;
    }
}

static struct str option(const struct words *words, const char *name)
{
    for (uint32_t i = 0; i + 1 < words->count; i++)
        if (str_eqz(words->items[i], name))
            return words->items[i + 1];
    return STR_NONE;
}

static bool has_word(const struct words *words, const char *word)
{
    for (uint32_t i = 0; i < words->count; i++)
        if (str_eqz(words->items[i], word))
            return true;
    return false;
}

/* A flag of --kubelet-extra-args, without its quotes. */
static struct str kubelet_flag(struct arena *arena, const struct words *words, const char *name)
{
    struct str rest = option(words, "--kubelet-extra-args"), flag, key, value;
    while (rest.len) {
        str_cut(rest, ' ', &flag, &rest);
        if (!str_cut(flag, '=', &key, &value) || !str_eqz(key, name))
            continue;
        if (value.len && value.p[0] == '"')
            value = str_sub(value, 1, value.len - 2);
        return arena_str(arena, value);
    }
    return STR_NONE;
}

/* Three user data: none, a script, an archive. The words are those of the managed part. */
static const char script[] = "#!/bin/bash\necho user\n";
static const char archive[] = "MIME-Version: 1.0\n"
                              "Content-Type: multipart/mixed; boundary=B\n\n"
                              "--B\nContent-Type: text/cloud-config\n\na: 1\n"
                              "--B\nContent-Type: text/x-shellscript\n\n#!/bin/bash\ntrue\n"
                              "--B--\n";
static const struct {
    const char *user_data;
    enum userdata_order order;
    uint32_t count, managed; /* parts, and which of them calls bootstrap.sh */
} shapes[] = {
    { NULL, ORDER_MANAGED_USER_MANAGED, 1, 0 },    { NULL, ORDER_USER_MANAGED, 1, 0 },
    { script, ORDER_MANAGED_USER_MANAGED, 3, 0 },  { script, ORDER_USER_MANAGED, 2, 1 },
    { archive, ORDER_MANAGED_USER_MANAGED, 4, 0 }, { archive, ORDER_USER_MANAGED, 3, 2 },
};

static void render_shape(struct rendering *r, size_t shape, struct words *words)
{
    r->boot.order = shapes[shape].order;
    render_ok(r, shapes[shape].user_data);
    EXPECT_EQ(r->mime.count, shapes[shape].count);
    EXPECT_EQ(r->out.warnings.count, 0);
    const struct mime_part *part = &r->mime.parts[shapes[shape].managed];
    EXPECT_STR(mime_header(part, "content-type"), "text/x-shellscript; charset=\"us-ascii\"");
    /* A name, if it must sort around the commands of a cloud-config. */
    bool named = shapes[shape].user_data == archive && shapes[shape].managed == 0;
    EXPECT_EQ(part->header_count, named ? 2 : 1);
    read_words(&r->arena, part->body, words);
}

TEST(without_user_data_the_archive_is_the_known_one)
{
    RENDERING(r, AMI_FAMILY_AL2);
    r.boot.labels = (struct str_map){ rendering_labels, 4 };
    render_ok(&r, NULL);
    EXPECT_STR(r.out.text,
               "MIME-Version: 1.0\n"
               "Content-Type: multipart/mixed; boundary=\"//\"\n"
               "\n"
               "--//\n"
               "Content-Type: text/x-shellscript; charset=\"us-ascii\"\n"
               "\n"
               "#!/bin/bash\n"
               "set -euxo pipefail\n"
               "/etc/eks/bootstrap.sh 'orchard' \\\n"
               "  --apiserver-endpoint 'https://A1B2.gr7.eu-west-1.eks.amazonaws.com' \\\n"
               "  --b64-cluster-ca 'LS0tLS1DQQ==' \\\n"
               "  --dns-cluster-ip '172.20.0.10' \\\n"
               "  --use-max-pods false \\\n"
               "  --kubelet-extra-args '--node-labels=\"karpenter.sh/capacity-type=spot,"
               "karpenter.sh/do-not-sync-taints=true,karpenter.sh/nodepool=fruit,team=pear\" "
               "--register-with-taints=\"karpenter.sh/unregistered:NoExecute\" --max-pods=29'\n"
               "--//--\n");
}

TEST(every_shape_tells_bootstrap_of_the_cluster)
{
    for (size_t i = 0; i < KV_COUNT_OF(shapes); i++) {
        RENDERING(r, AMI_FAMILY_AL2);
        struct words words;
        render_shape(&r, i, &words);
        EXPECT_STR(words.items[0], "orchard");
        EXPECT_STR(option(&words, "--apiserver-endpoint"),
                   "https://A1B2.gr7.eu-west-1.eks.amazonaws.com");
        EXPECT_STR(option(&words, "--b64-cluster-ca"), "LS0tLS1DQQ==");
        EXPECT_STR(option(&words, "--dns-cluster-ip"), "172.20.0.10");
        EXPECT_STR(option(&words, "--use-max-pods"), "false");
        EXPECT_FALSE(has_word(&words, "--ip-family"));
        EXPECT_FALSE(has_word(&words, "--local-disks"));
        bool held = shapes[i].user_data && shapes[i].order == ORDER_MANAGED_USER_MANAGED;
        EXPECT_EQ(has_word(&words, "--kubelet-disabled"), held);
        EXPECT_EQ(str_eqz(words.items[words.count - 1], "--kubelet-disabled"), held);
    }
}

TEST(every_shape_tells_the_kubelet_of_labels_and_taints)
{
    static const struct taint taints[] = {
        { .key = STR("b"), .value = STR("v"), .effect = EFFECT_NO_SCHEDULE },
        { .key = STR("a.io/x"), .effect = EFFECT_PREFER_NO_SCHEDULE },
    };
    for (size_t i = 0; i < KV_COUNT_OF(shapes); i++) {
        RENDERING(r, AMI_FAMILY_AL2);
        struct words words;
        r.boot.labels = (struct str_map){ rendering_labels, 4 };
        r.boot.taints.items = taints;
        r.boot.taints.count = 2;
        render_shape(&r, i, &words);
        EXPECT_STR(kubelet_flag(&r.arena, &words, "--node-labels"),
                   "karpenter.sh/capacity-type=spot,karpenter.sh/do-not-sync-taints=true,"
                   "karpenter.sh/nodepool=fruit,team=pear");
        EXPECT_STR(kubelet_flag(&r.arena, &words, "--register-with-taints"),
                   "b=v:NoSchedule,a.io/x:PreferNoSchedule,karpenter.sh/unregistered:NoExecute");
        EXPECT_STR(kubelet_flag(&r.arena, &words, "--max-pods"), "29");
    }
}

TEST(every_shape_honours_the_kubelet_configuration)
{
    for (size_t i = 0; i < KV_COUNT_OF(shapes); i++) {
        RENDERING(r, AMI_FAMILY_AL2);
        struct words words;
        rendering_kubelet(&r, "{\"clusterDNS\":[\"10.9.0.10\"],\"maxPods\":7,\"podsPerCore\":2,"
                              "\"systemReserved\":{\"memory\":\"1Gi\",\"cpu\":\"100m\"},"
                              "\"evictionHard\":{\"memory.available\":\"5%\"},"
                              "\"cpuCFSQuota\":false}");
        render_shape(&r, i, &words);
        EXPECT_STR(option(&words, "--dns-cluster-ip"), "10.9.0.10");
        EXPECT_STR(kubelet_flag(&r.arena, &words, "--max-pods"), "7");
        EXPECT_STR(kubelet_flag(&r.arena, &words, "--pods-per-core"), "2");
        EXPECT_STR(kubelet_flag(&r.arena, &words, "--system-reserved"), "cpu=100m,memory=1Gi");
        EXPECT_STR(kubelet_flag(&r.arena, &words, "--eviction-hard"), "memory.available<5%");
        EXPECT_STR(kubelet_flag(&r.arena, &words, "--cpu-cfs-quota"), "false");
    }
}

TEST(pieces_of_the_call_have_their_owners)
{
    RENDERING(r, AMI_FAMILY_AL2);
    render_ok(&r, script);
    EXPECT_EQ(piece_with(&r, "--max-pods=29")->owner, OWNER_KARVE);
    EXPECT_EQ(piece_with(&r, "--dns-cluster-ip")->owner, OWNER_KARVE);
    rendering_kubelet(&r, "{\"clusterDNS\":[\"10.9.0.10\"],\"kubeReserved\":{\"cpu\":\"1\"},"
                          "\"maxPods\":7}");
    render_ok(&r, script);
    EXPECT_EQ(piece_with(&r, "--max-pods=7")->owner, OWNER_KUBELET);
    EXPECT_EQ(piece_with(&r, "--dns-cluster-ip '10.9.0.10'")->owner, OWNER_KUBELET);
    EXPECT_EQ(piece_with(&r, "--kube-reserved=\"cpu=1\"")->owner, OWNER_KUBELET);
    EXPECT_EQ(piece_with(&r, "--register-with-taints")->owner, OWNER_KARVE);
    EXPECT_EQ(piece_with(&r, "--kubelet-disabled")->owner, OWNER_KARVE);
}

TEST(options_depend_on_what_is_known)
{
    RENDERING(r, AMI_FAMILY_AL2);
    struct words words;
    r.cluster.ca = STR_NONE;
    r.cluster.dns = STR_NONE;
    r.boot.max_pods.set = false;
    render_shape(&r, 0, &words);
    EXPECT_FALSE(has_word(&words, "--b64-cluster-ca"));
    EXPECT_FALSE(has_word(&words, "--dns-cluster-ip"));
    EXPECT_FALSE(has_word(&words, "--use-max-pods"));
    EXPECT_FALSE(kubelet_flag(&r.arena, &words, "--max-pods").p);

    r.cluster.dns = STR("fd30:1c53:5f8a::a");
    r.boot.raid0 = true;
    render_shape(&r, 2, &words);
    EXPECT_STR(option(&words, "--ip-family"), "ipv6");
    EXPECT_STR(option(&words, "--dns-cluster-ip"), "fd30:1c53:5f8a::a");
    EXPECT_STR(option(&words, "--local-disks"), "raid0");
}

TEST(the_users_parts_stand_between_the_managed_ones_as_they_are)
{
    RENDERING(r, AMI_FAMILY_AL2);
    render_ok(&r, archive);
    EXPECT_EQ(r.mime.count, 4);
    EXPECT_STR(r.mime.parts[1].body, "a: 1");
    EXPECT_STR(mime_content_type(&r.arena, &r.mime.parts[1]), "text/cloud-config");
    EXPECT_STR(r.mime.parts[2].body, "#!/bin/bash\ntrue");
    EXPECT_HAS(r.mime.parts[3].body, "systemctl restart kubelet");
    EXPECT_EQ(r.out.parts.items[0].owner, OWNER_KARVE);
    EXPECT_EQ(r.out.parts.items[1].owner, OWNER_USER);
    EXPECT_EQ(r.out.parts.items[2].owner, OWNER_USER);
    EXPECT_EQ(r.out.parts.items[3].owner, OWNER_KARVE);
}

TEST(the_managed_parts_leave_the_user_half_of_the_room)
{
    RENDERING(r, AMI_FAMILY_AL2);
    AUTO_BUF ca = { 0 };
    while (ca.len < 1500) /* what EKS gives */
        buf_addz(&ca, "LS0t");
    r.cluster.ca = buf_str(&ca);
    struct str_pair labels[20];
    for (size_t i = 0; i < KV_COUNT_OF(labels); i++)
        labels[i] = (struct str_pair){ arena_strf(&r.arena, "team%zu.example.com/cost-centre", i),
                                       STR("orchard-and-garden") };
    r.boot.labels = (struct str_map){ labels, KV_COUNT_OF(labels) };
    rendering_kubelet(&r, "{\"clusterDNS\":[\"10.9.0.10\"],\"maxPods\":7,\"podsPerCore\":2,"
                          "\"systemReserved\":{\"memory\":\"1Gi\",\"cpu\":\"100m\"},"
                          "\"kubeReserved\":{\"memory\":\"1Gi\",\"cpu\":\"100m\"},"
                          "\"evictionHard\":{\"memory.available\":\"5%\"},\"cpuCFSQuota\":false}");
    render_ok(&r, script);
    size_t managed = r.out.parts.items[0].bytes + r.out.parts.items[2].bytes;
    EXPECT_TRUE(managed < 8192);
    printf("# managed parts of AL2: %zu bytes\n", managed);
}

TEST(a_file_name_that_leaves_the_order_is_warned_of)
{
    static const struct {
        const char *name, *words; /* NULL: no warning */
    } cases[] = {
        { "setup.sh", NULL },
        { "00-a.sh", NULL },
        { "0-a.sh", NULL },
        { "zz.sh", NULL },
        { "-a.sh", "runs before the node is bootstrapped" },
        { "(first)", "runs before the node is bootstrapped" },
        { "zzzz", "runs after the kubelet was started" },
        { "z/z-karve-kubelet.sh", NULL },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        RENDERING(r, AMI_FAMILY_AL2);
        AUTO_BUF text = { 0 };
        buf_addf(&text,
                 "Content-Type: multipart/mixed; boundary=B\n\n--B\n"
                 "Content-Type: text/x-shellscript; name=\"%s\"\n\n#!/bin/sh\n--B--\n",
                 cases[i].name);
        render_ok(&r, text.p);
        EXPECT_EQ(r.out.warnings.count, cases[i].words != NULL);
        if (cases[i].words)
            EXPECT_HAS(r.out.warnings.items[0], cases[i].words);
        EXPECT_STR(
            mime_param(&r.arena, mime_header(&r.mime.parts[0], "content-disposition"), "filename"),
            "0-0-karve-bootstrap.sh");
        EXPECT_STR(
            mime_param(&r.arena, mime_header(&r.mime.parts[2], "content-disposition"), "filename"),
            "zzz-karve-kubelet.sh");
    }
}

/* cloud-init writes them as a script of the name runcmd and runs it among the others. */
TEST(commands_of_a_cloud_config_run_between_the_managed_parts)
{
    static const char config[] = "#cloud-config\nruncmd: [id]\n";
    RENDERING(r, AMI_FAMILY_AL2);
    render_ok(&r, config);
    struct str first = mime_header(&r.mime.parts[0], "content-disposition");
    struct str last = mime_header(&r.mime.parts[2], "content-disposition");
    EXPECT_TRUE(str_cmp(mime_param(&r.arena, first, "filename"), STR("runcmd")) < 0);
    EXPECT_TRUE(str_cmp(mime_param(&r.arena, last, "filename"), STR("runcmd")) > 0);

    r.boot.order = ORDER_USER_MANAGED; /* as Karpenter has it */
    render_ok(&r, config);
    EXPECT_FALSE(mime_header(&r.mime.parts[1], "content-disposition").p);
}

TEST(whatever_cloud_init_may_read_as_a_cloud_config_runs_between_the_managed_parts)
{
#define PART(headers, body)                                                                        \
    "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=B\n\n--B\n" headers "\n" body      \
    "\n--B--\n"
    static const struct {
        const char *user_data;
        bool named;
    } cases[] = {
        { PART("Content-Type: text/plain\n", "#cloud-config\nruncmd: [id]"), true },
        { PART("", "#cloud-config\nruncmd: [id]"), true },
        { "## template: jinja\n#cloud-config\nruncmd: [id]\n", true },
        { "#cloud-config-archive\n- {type: text/cloud-config, content: 'runcmd: [id]'}\n", true },
        { "#include\nhttps://example.com/config\n", true },
        { PART("Content-Type: text/x-shellscript\n"
               "Content-Disposition: attachment; filename*=utf-8''a.sh\n",
               "id"),
          true },
        { "#!/bin/sh\nid\n", false },
        { "#cloud-boothook\n#!/bin/sh\nid\n", false },
        { PART("Content-Type: text/x-shellscript\n", "id"), false },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        RENDERING(r, AMI_FAMILY_AL2);
        render_ok(&r, cases[i].user_data);
        EXPECT_EQ(mime_header(&r.mime.parts[0], "content-disposition").p != NULL, cases[i].named);
        EXPECT_EQ(mime_header(&r.mime.parts[2], "content-disposition").p != NULL, cases[i].named);
    }
#undef PART
}

TEST(a_body_with_the_boundary_in_it_gets_another_boundary)
{
    RENDERING(r, AMI_FAMILY_AL2);
    render_ok(&r, "#!/bin/bash\ncat << E\n--//\nnot the end\n--//--\nE\n");
    EXPECT_EQ(r.mime.count, 3);
    EXPECT_STR(r.mime.parts[1].body, "#!/bin/bash\ncat << E\n--//\nnot the end\n--//--\nE\n");
}

/* The table of families, and the two that need little: Windows and Custom. */
#include "support/test.h"

#include "api/kind_test.h"
#include "bootstrap/boot.h"

#define PAIR(k, v)                                                                                 \
    {                                                                                              \
        { k, sizeof(k) - 1 },                                                                      \
        {                                                                                          \
            v, sizeof(v) - 1                                                                       \
        }                                                                                          \
    }

static const struct boot_cluster cluster = {
    .name = { "orchard", 7 },
    .endpoint = { "https://A1B2.gr7.eu-west-1.eks.amazonaws.com", 44 },
    .ca = { "LS0tLS1DQQ==", 12 },
    .dns = { "172.20.0.10", 11 },
};
static const struct str_pair pool_label[] = { PAIR("karpenter.sh/nodepool", "fruit") };

static struct boot boot_of(enum ami_family family, struct str user_data)
{
    return (struct boot){
        .cluster = &cluster,
        .family = family,
        .user_data = user_data,
        .labels = { pool_label, 1 },
        .max_pods = { 110, true },
    };
}

static struct boot_text render(struct arena *arena, struct boot boot)
{
    struct boot_text text = { 0 };
    struct err err = { 0 };
    EXPECT_OK(boot_render(arena, &boot, &text, &err), err);
    return text;
}

static void expect_refused(struct boot boot, const char *says)
{
    AUTO_ARENA arena = { 0 };
    struct boot_text text;
    struct err err = { 0 };
    EXPECT_ERR(boot_render(&arena, &boot, &text, &err), err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), says);
}

/* --- the table --- */

TEST(every_family_is_found_by_its_id_and_by_its_name)
{
    for (int id = AMI_FAMILY_AL2; id <= AMI_FAMILY_WINDOWS2025; id++) {
        const struct family *family = family_of((enum ami_family)id);
        EXPECT_EQ(family->id, id);
        EXPECT_Z(family->name, ami_family_name((enum ami_family)id));
        EXPECT_TRUE(family_by_name(str_of(family->name)) == family);
        EXPECT_TRUE(family->render != NULL);
    }
    EXPECT_Z(family_of(AMI_FAMILY_UNSET)->name, "AL2");
    EXPECT_TRUE(family_by_name(STR("al2")) == NULL);
}

/* --- Windows --- */

#define CALL_START                                                                                 \
    "& \"$env:ProgramFiles\\Amazon\\EKS\\Start-EKSBootstrap.ps1\" -EKSClusterName 'orchard' "      \
    "-APIServerEndpoint 'https://A1B2.gr7.eu-west-1.eks.amazonaws.com' "
#define CALL                                                                                       \
    CALL_START                                                                                     \
    "-Base64ClusterCA 'LS0tLS1DQQ==' -KubeletExtraArgs '"                                          \
    "--node-labels=\"karpenter.sh/do-not-sync-taints=true,karpenter.sh/nodepool=fruit\" "          \
    "--register-with-taints=\"karpenter.sh/unregistered:NoExecute\" --max-pods=110' "              \
    "-DNSClusterIP '172.20.0.10'\n"

TEST(windows_runs_the_users_commands_and_then_the_bootstrap_script)
{
    for (int id = AMI_FAMILY_WINDOWS2019; id <= AMI_FAMILY_WINDOWS2025; id++) {
        AUTO_ARENA arena = { 0 };
        enum ami_family family = (enum ami_family)id;
        EXPECT_STR(render(&arena, boot_of(family, STR_NONE)).text,
                   "<powershell>\n" CALL "</powershell>\n");
        EXPECT_STR(render(&arena, boot_of(family, STR(""))).text,
                   "<powershell>\n" CALL "</powershell>\n");
        EXPECT_STR(render(&arena, boot_of(family, STR("Write-Host \"install agent\""))).text,
                   "<powershell>\nWrite-Host \"install agent\"\n" CALL "</powershell>\n");
        EXPECT_STR(render(&arena, boot_of(family, STR("a\r\nb\n"))).text,
                   "<powershell>\na\r\nb\n" CALL "</powershell>\n");
    }
}

TEST(windows_leaves_out_what_is_not_known)
{
    AUTO_ARENA arena = { 0 };
    struct boot_cluster bare = { .name = cluster.name, .endpoint = cluster.endpoint };
    struct boot boot = boot_of(AMI_FAMILY_WINDOWS2022, STR_NONE);
    boot.cluster = &bare;
    boot.max_pods.set = false;
    EXPECT_STR(render(&arena, boot).text,
               "<powershell>\n" CALL_START
               "-KubeletExtraArgs '--node-labels=\"karpenter.sh/do-not-sync-taints=true,"
               "karpenter.sh/nodepool=fruit\" --register-with-taints=\"karpenter.sh/"
               "unregistered:NoExecute\"'\n</powershell>\n");
    bare.endpoint = STR("");
    expect_refused(boot, "the cluster's endpoint");
}

TEST(windows_quotes_for_powershell)
{
    AUTO_ARENA arena = { 0 };
    struct boot_cluster odd = cluster;
    odd.name = STR("o'rch\xe2\x80\x99"
                   "ard$x`");
    struct boot boot = boot_of(AMI_FAMILY_WINDOWS2022, STR_NONE);
    boot.cluster = &odd;
    EXPECT_HAS(render(&arena, boot).text, "-EKSClusterName 'o''rch\xe2\x80\x99\xe2\x80\x99"
                                          "ard$x`' ");
}

TEST(windows_refuses_tags_with_their_place)
{
    struct boot boot = boot_of(AMI_FAMILY_WINDOWS2022, STR("Write-Host a\n  <PowerShell>\nb"));
    expect_refused(boot, "spec.userData: line 2, column 3 of the user data: <powershell>");
    boot.user_data_pos.line = 12;
    expect_refused(boot, "line 13 (line 2, column 3 of the user data)");
    boot.user_data = STR("x</powershell>");
    expect_refused(boot, "line 12 (line 1, column 2 of the user data): </powershell>");
    boot.user_data = STR("<powershell");
    AUTO_ARENA arena = { 0 };
    render(&arena, boot);
}

TEST(windows_pieces_say_who_set_what)
{
    AUTO_ARENA arena = { 0 };
    const struct str dns = STR("10.0.0.10");
    struct kubelet_config kubelet = { .max_pods = { 20, true }, .cluster_dns = { &dns, 1 } };
    struct boot boot = boot_of(AMI_FAMILY_WINDOWS2025, STR("dir\n"));
    boot.kubelet = &kubelet;
    struct boot_text text = render(&arena, boot);
    AUTO_BUF theirs = { 0 };
    for (uint32_t i = 0; i < text.pieces.count; i++) {
        const struct boot_piece *piece = &text.pieces.items[i];
        if (piece->owner == OWNER_KARVE)
            continue;
        buf_addf(&theirs, "%s:%.*s|", boot_owner_name(piece->owner), STR_ARG(piece->text));
    }
    EXPECT_STR(buf_str(&theirs), "user:dir\n|kubelet configuration: --max-pods=20|"
                                 "kubelet configuration: -DNSClusterIP '10.0.0.10'|");
    EXPECT_EQ(text.parts.count, 1);
    EXPECT_EQ(text.parts.items[0].bytes, text.text.len);
}

/* --- Custom --- */

TEST(custom_user_data_passes_as_it_is_and_needs_no_cluster)
{
    AUTO_ARENA arena = { 0 };
    struct boot boot = { .family = AMI_FAMILY_CUSTOM, .user_data = STR("\x01 any\r\n\nthing") };
    struct boot_text text = render(&arena, boot);
    EXPECT_STR(text.text, "\x01 any\r\n\nthing");
    EXPECT_EQ(text.pieces.count, 1);
    EXPECT_EQ(text.pieces.items[0].owner, OWNER_USER);

    boot.user_data = STR("");
    text = render(&arena, boot);
    EXPECT_EQ(text.text.len, 0);
    EXPECT_EQ(text.parts.count, 1);
}

TEST(custom_without_user_data_is_refused)
{
    expect_refused((struct boot){ .family = AMI_FAMILY_CUSTOM }, "spec.userData: is missing");
}

TEST(the_size_limit_holds_for_every_family_and_warns_before)
{
    static const struct {
        size_t bytes;
        bool fits, warns;
    } rows[] = { { 14745, true, false },
                 { 14746, true, true },
                 { 16384, true, true },
                 { 16385, false, false } };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        AUTO_ARENA arena = { 0 };
        char *p = arena_alloc(&arena, rows[i].bytes);
        memset(p, '#', rows[i].bytes);
        struct boot boot = { .family = AMI_FAMILY_CUSTOM, .user_data = { p, rows[i].bytes } };
        if (rows[i].fits)
            EXPECT_EQ(render(&arena, boot).warnings.count, rows[i].warns);
        else
            expect_refused(boot, "16385 bytes");
    }
}

TEST(too_large_a_document_is_refused_with_what_each_wrote_of_it)
{
    char text[16300];
    memset(text, '#', sizeof text);
    struct boot boot = boot_of(AMI_FAMILY_WINDOWS2022, (struct str){ text, sizeof text });
    expect_refused(boot, ": text/x-powershell (karve) 16");
    expect_refused(boot, ", of that user 16301, karve ");
}

/* --- what the class's condition says --- */

static void expect_class(const char *spec, const char *maybe_reason, const char *words)
{
    AUTO_ARENA arena = { 0 };
    AUTO_BUF text = { 0 };
    struct sample sample = { 0 };
    struct boot_problem why = { 0 };
    buf_addf(&text,
             "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: a}\nspec:\n"
             "  role: r\n  subnetSelectorTerms: [{id: subnet-1}]\n"
             "  securityGroupSelectorTerms: [{id: sg-1}]\n%s",
             spec);
    sample_decode(&sample, text.p);
    bool ok = boot_class_ok(&arena, ec2nodeclass_of(sample.object), NULL, &why);
    EXPECT_EQ(ok, maybe_reason == NULL);
    if (maybe_reason) {
        EXPECT_Z(why.reason, maybe_reason);
        EXPECT_HAS(why.message, words);
    }
    sample_done(&sample);
}

TEST(a_class_whose_nodes_could_not_boot_has_a_reason_for_its_condition)
{
#define CUSTOM "  amiFamily: Custom\n  amiSelectorTerms: [{id: ami-1}]\n"
#define BOTTLEROCKET "  amiSelectorTerms: [{alias: bottlerocket@latest}]\n"
    expect_class(CUSTOM, "UserDataMissing", "spec.userData: is missing");
    expect_class(CUSTOM "  userData: ''\n", NULL, "");
    expect_class("  amiSelectorTerms: [{alias: al2@latest}]\n", NULL, "");
    expect_class("  amiSelectorTerms: [{alias: al2023@latest}]\n", NULL, "");
    expect_class("  amiSelectorTerms: [{alias: windows2022@latest}]\n", NULL, "");
    expect_class(BOTTLEROCKET "  userData: 'a = 1'\n", NULL, "");
    expect_class(BOTTLEROCKET "  userData: \"a = 1\\na = 2\"\n", "UserDataInvalid", "line 2");
    expect_class(BOTTLEROCKET "  kubelet: {podsPerCore: 3}\n", "InvalidKubeletConfiguration",
                 "podsPerCore");

    AUTO_BUF large = { 0 };
    buf_addz(&large, CUSTOM "  userData: ");
    for (int i = 0; i < 16385; i++)
        buf_addc(&large, 'x');
    buf_addc(&large, '\n');
    expect_class(large.p, "UserDataSizeLimitExceeded", "16385 bytes");
}

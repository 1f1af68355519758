#include "bootstrap/boot_testing.h"

/* A comment of that many bytes in a script. */
static const char *script_of(struct arena *arena, size_t bytes)
{
    AUTO_BUF text = { 0 };
    buf_addz(&text, "#!/bin/bash\n#");
    while (text.len + 1 < bytes)
        buf_addc(&text, 'x');
    buf_addc(&text, '\n');
    return arena_str(arena, buf_str(&text)).p;
}

TEST(user_data_may_have_16384_bytes_and_is_warned_of_above_14745)
{
    static const struct {
        enum ami_family family;
        enum userdata_order order;
    } cases[] = {
        { AMI_FAMILY_AL2, ORDER_MANAGED_USER_MANAGED },
        { AMI_FAMILY_AL2, ORDER_USER_MANAGED },
        { AMI_FAMILY_AL2023, ORDER_MANAGED_USER_MANAGED },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        RENDERING(r, cases[i].family);
        r.boot.order = cases[i].order;
        render_ok(&r, script_of(&r.arena, 100));
        size_t rest = r.out.text.len - 100;

        render_ok(&r, script_of(&r.arena, 14745 - rest));
        EXPECT_EQ(r.out.text.len, 14745);
        EXPECT_EQ(r.out.warnings.count, 0);
        render_ok(&r, script_of(&r.arena, 14746 - rest));
        EXPECT_EQ(r.out.warnings.count, 1);
        EXPECT_HAS(r.out.warnings.items[0], "14746 bytes");
        render_ok(&r, script_of(&r.arena, 16384 - rest));
        EXPECT_EQ(r.out.text.len, 16384);
        render_refused(&r, script_of(&r.arena, 16385 - rest),
                       "16385 bytes, EC2 takes at most 16384");
    }
}

TEST(too_large_user_data_is_refused_with_its_parts_largest_first)
{
    RENDERING(r, AMI_FAMILY_AL2);
    render_refused(&r, script_of(&r.arena, 20000),
                   "at most 16384: text/x-shellscript (user) 20000, text/x-shellscript (karve) ");

    AUTO_BUF many = { 0 };
    buf_addz(&many, "Content-Type: multipart/mixed; boundary=B\n\n");
    for (int i = 0; i < 20; i++)
        buf_addf(&many, "--B\nContent-Type: text/cloud-config\n\n%0*d\n", 1000 + i, 0);
    buf_addz(&many, "--B--\n");
    render_refused(&r, many.p, "text/cloud-config (user) 1019, text/cloud-config (user) 1018,");
    render_refused(&r, many.p, ", and 14 smaller parts");
}

TEST(settings_that_are_missing_or_broken_are_refused)
{
    RENDERING(r, AMI_FAMILY_AL2023);
    r.cluster.service_cidr = STR_NONE;
    render_refused(&r, NULL, "the cluster's service CIDR is not known");
    r.boot.family = AMI_FAMILY_AL2;
    render_ok(&r, NULL);
    r.cluster.endpoint = STR("");
    render_refused(&r, NULL, "the cluster's endpoint is not known");
    r.cluster.endpoint = STR("https://x\ny");
    render_refused(&r, NULL, "has a control character");
    r.cluster.endpoint = STR("https://x");
    r.cluster.name = STR("-h");
    render_refused(&r, NULL, "reads as an option");
    r.cluster.name = STR("a</powershell>");
    render_refused(&r, NULL, "the cluster's name \"a</powershell>\" has a tag in it");
    r.cluster.name = STR("a");
    r.cluster.dns = STR("10.0.0.10 --x");
    render_refused(&r, NULL, "the cluster's DNS address \"10.0.0.10 --x\" is not an IP address");
    r.cluster.dns = STR("fd00::a");
    render_ok(&r, NULL);
    const struct str dns[] = { STR("10.0.0.10"), STR("o'clock") };
    struct kubelet_config kubelet = { .cluster_dns = { dns, 2 } };
    r.boot.kubelet = &kubelet;
    render_refused(&r, NULL, "spec.kubelet.clusterDNS[1]: \"o'clock\" is not an IP address");
    r.boot.family = AMI_FAMILY_CUSTOM; /* nothing is made of it */
    r.boot.user_data = STR("");
    struct err err = { 0 };
    EXPECT_OK(boot_render(&r.arena, &r.boot, &r.out, &err), err);
    r.boot.family = AMI_FAMILY_AL2;
    r.boot.cluster = NULL;
    render_refused(&r, NULL, "the cluster's name is not known");
}

TEST(labels_and_taints_that_no_node_can_have_are_refused)
{
    static const struct str_pair labels[] = {
        { STR("team"), STR("o'hara") },
        { STR("te am"), STR("x") },
        { STR("a"), STR("b\nc") },
        { STR("a"), STR("\"b\"") },
        { STR(""), STR("x") },
        { STR("a=b"), STR("c") },
        { STR("a"), STR("0123456789012345678901234567890123456789012345678901234567890123") },
    };
    static const struct taint taints[] = {
        { .key = STR("a"), .value = STR("b c"), .effect = EFFECT_NO_EXECUTE },
        { .key = STR("a'"), .effect = EFFECT_NO_EXECUTE },
        { .key = STR(""), .effect = EFFECT_NO_EXECUTE },
        { .key = STR("a") },
        /* a NodePool may have it, a kubelet would not start with it */
        { .key = STR("a"), .value = STR("b/c"), .effect = EFFECT_NO_EXECUTE },
    };
    for (size_t i = 0; i < KV_COUNT_OF(labels); i++) {
        RENDERING(r, AMI_FAMILY_AL2);
        r.boot.labels = (struct str_map){ &labels[i], 1 };
        render_refused(&r, NULL, "label ");
    }
    for (size_t i = 0; i < KV_COUNT_OF(taints); i++) {
        RENDERING(r, AMI_FAMILY_AL2);
        r.boot.taints.items = &taints[i];
        r.boot.taints.count = 1;
        render_refused(&r, NULL, "taint ");
    }
}

TEST(a_place_in_the_user_data_is_also_one_in_the_manifest)
{
    AUTO_ARENA arena = { 0 };
    struct boot boot = { 0 };
    EXPECT_STR(boot_user_place(&arena, &boot, (struct text_pos){ 3, 5 }),
               "line 3, column 5 of the user data");
    EXPECT_STR(boot_user_place(&arena, &boot, (struct text_pos){ 3, 0 }),
               "line 3 of the user data");
    boot.user_data_pos = (struct text_pos){ 12, 5 };
    EXPECT_STR(boot_user_place(&arena, &boot, (struct text_pos){ 3, 5 }),
               "line 14 (line 3, column 5 of the user data)");
}

TEST(pieces_that_go_on_are_one)
{
    AUTO_ARENA arena = { 0 };
    struct boot_text out = { 0 };
    struct str text = STR("abcdef");
    for (size_t i = 0; i < 4; i++)
        boot_add_piece(&arena, &out, str_sub(text, i, 1), OWNER_KARVE, STR_NONE);
    boot_add_piece(&arena, &out, str_sub(text, 4, 1), OWNER_KARVE, STR("noted"));
    boot_add_piece(&arena, &out, str_sub(text, 5, 1), OWNER_USER, STR_NONE);
    boot_add_piece(&arena, &out, STR("elsewhere"), OWNER_USER, STR_NONE);
    EXPECT_EQ(out.pieces.count, 4);
    EXPECT_STR(out.pieces.items[0].text, "abcd");
    EXPECT_STR(out.pieces.items[1].note, "noted");
    EXPECT_STR(out.pieces.items[2].text, "f");
    EXPECT_STR(out.pieces.items[2].note, "");

    struct boot_text many = { 0 };
    for (size_t i = 0; i < 1000; i++)
        boot_add_piece(&arena, &many, STR("x"), i % 2 ? OWNER_USER : OWNER_KARVE, STR("n"));
    EXPECT_EQ(many.pieces.count, 1000);
    EXPECT_EQ(many.pieces.items[999].owner, OWNER_USER);
}

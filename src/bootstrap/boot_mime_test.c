#include "bootstrap/boot_mime.h"

#include "bootstrap/boot_testing.h"

static struct boot_mime parts_of(struct rendering *r, const char *user_data)
{
    struct boot_mime mime;
    struct err err = { 0 };
    r->out = (struct boot_text){ 0 };
    r->boot.user_data = str_of(user_data);
    EXPECT_OK(boot_user_parts(&r->arena, &r->boot, r->boot.family == AMI_FAMILY_AL2023, &mime,
                              &r->out, &err),
              err);
    return mime;
}

TEST(plain_user_data_is_what_cloud_init_would_take_it_for)
{
    static const struct {
        const char *text, *content_type;
    } cases[] = {
        { "#!/bin/bash\ntrue\n", "text/x-shellscript; charset=\"us-ascii\"" },
        { "#!/usr/bin/python\n", "text/x-shellscript; charset=\"us-ascii\"" },
        { "#cloud-config\na: 1\n", "text/cloud-config" },
        { "#Cloud-Config\n", "text/cloud-config" },
        { "#cloud-config-archive\n", "text/cloud-config-archive" },
        { "#cloud-config-jsonp\n", "text/cloud-config-jsonp" },
        { "#cloud-boothook\n#!/bin/sh\n", "text/cloud-boothook" },
        { "#include\nhttps://x\n", "text/x-include-url" },
        { "#include-once\nhttps://x\n", "text/x-include-once-url" },
        { "#part-handler\n", "text/part-handler" },
        { "## template: jinja\n#cloud-config\n", "text/jinja2" },
    };
    for (int family = 0; family < 2; family++) {
        RENDERING(r, family ? AMI_FAMILY_AL2023 : AMI_FAMILY_AL2);
        for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
            struct boot_mime m = parts_of(&r, cases[i].text);
            EXPECT_EQ(m.count, 1);
            EXPECT_STR(mime_header(&m.parts[0].mime, "content-type"), cases[i].content_type);
            EXPECT_STR(m.parts[0].mime.body, cases[i].text);
            EXPECT_EQ(m.parts[0].owner, OWNER_USER);
            EXPECT_EQ(r.out.warnings.count, 0);
        }
    }
}

TEST(text_that_says_nothing_is_run_by_bash_with_a_warning)
{
    static const char *const texts[] = { "yum install -y htop\n", "# a comment\necho\n",
                                         "[settings.kubernetes]\n", "kind of: a script\n: yes\n" };
    for (size_t i = 0; i < KV_COUNT_OF(texts); i++) {
        RENDERING(r, AMI_FAMILY_AL2);
        r.boot.user_data_pos = (struct text_pos){ 20, 1 };
        struct boot_mime m = parts_of(&r, texts[i]);
        EXPECT_STR(mime_header(&m.parts[0].mime, "content-type"), SHELL_CONTENT_TYPE);
        EXPECT_TRUE(str_starts(m.parts[0].mime.body, STR("#!/bin/bash\n")));
        EXPECT_TRUE(str_ends(m.parts[0].mime.body, str_of(texts[i])));
        EXPECT_EQ(m.parts[0].pieces.items[0].owner, OWNER_KARVE);
        EXPECT_EQ(m.parts[0].pieces.items[1].owner, OWNER_USER);
        EXPECT_TRUE(r.out.warnings.items != NULL);
        EXPECT_EQ(r.out.warnings.count, 1);
        EXPECT_HAS(r.out.warnings.items[0], "line 20 (line 1 of the user data)");
    }
}

TEST(what_stands_before_the_first_word_is_dropped)
{
    RENDERING(r, AMI_FAMILY_AL2);
    struct boot_mime m = parts_of(&r, "\xef\xbb\xbf\r\n \n  #!/bin/bash\ntrue\n");
    EXPECT_STR(m.parts[0].mime.body, "#!/bin/bash\ntrue\n");
    EXPECT_EQ(m.parts[0].mime.line, 3);
    m = parts_of(&r, "\n\n  echo\n  true\n"); /* what is not a comment keeps its shape */
    EXPECT_STR(m.parts[0].mime.body, "#!/bin/bash\n  echo\n  true\n");
}

TEST(blank_user_data_is_none)
{
    RENDERING(r, AMI_FAMILY_AL2023);
    EXPECT_EQ(parts_of(&r, "").count, 0);
    EXPECT_EQ(parts_of(&r, " \n\t\r\n").count, 0);
    r.boot.user_data = STR_NONE;
    render_ok(&r, NULL);
    EXPECT_EQ(r.mime.count, 1);
}

TEST(a_nodeconfig_is_taken_by_al2023_and_refused_by_al2)
{
    static const char *const configs[] = {
        "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n",
        "# mine\n---\nkind: NodeConfig\napiVersion: node.eks.aws/v1alpha1\n",
        "{\"apiVersion\": \"node.eks.aws/v1alpha1\", \"kind\": \"NodeConfig\"}",
        "spec: {}\napiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n",
        "  apiVersion: node.eks.aws/v1alpha1\n  kind: NodeConfig\n",
    };
    for (size_t i = 0; i < KV_COUNT_OF(configs); i++) {
        RENDERING(r, AMI_FAMILY_AL2023);
        struct boot_mime m = parts_of(&r, configs[i]);
        EXPECT_STR(mime_header(&m.parts[0].mime, "content-type"), "application/node.eks.aws");
        EXPECT_STR(m.parts[0].mime.body, configs[i]);
        r.boot.family = AMI_FAMILY_AL2;
        render_refused(&r, configs[i], "line 1 of the user data: a NodeConfig");
    }
    RENDERING(r, AMI_FAMILY_AL2);
    render_refused(&r,
                   "Content-Type: multipart/mixed; boundary=B\n\n--B\n"
                   "Content-Type: Application/Node.EKS.aws\n\nkind: NodeConfig\n--B--\n",
                   "line 6 of the user data: a NodeConfig");
}

TEST(a_broken_archive_is_refused_with_its_place)
{
    RENDERING(r, AMI_FAMILY_AL2);
    r.boot.user_data_pos = (struct text_pos){ 10, 1 };
    render_refused(&r, "\nMIME-Version: 1.0\n\n--B\n",
                   "line 11 (line 2 of the user data): a MIME archive: no Content-Type");
    render_refused(&r, "Content-Type: multipart/mixed; boundary=B\n\nno part\n",
                   "the boundary \"B\" never occurs");
}

TEST(every_part_and_header_of_the_users_archive_is_kept)
{
    static const char archive[] = "Content-Type: multipart/mixed; boundary=\"outer\"\r\n"
                                  "\r\n"
                                  "a preamble\r\n"
                                  "--outer\r\n"
                                  "X-Merge-Type: list(append)\r\n"
                                  "content-type: text/cloud-config\r\n"
                                  "\r\n"
                                  "a: 1\r\n"
                                  "--outer\r\n"
                                  "Content-Type: multipart/mixed; boundary=inner\r\n"
                                  "\r\n"
                                  "--inner\r\n"
                                  "Content-Type: text/cloud-boothook\r\n"
                                  "Content-Transfer-Encoding: base64\r\n"
                                  "\r\n"
                                  "IyEvYmluL3No\r\n"
                                  "--inner--\r\n"
                                  "--outer\r\n"
                                  "Content-Type: text/x-shellscript\r\n"
                                  "Content-Transfer-Encoding: quoted-printable\r\n"
                                  "\r\n"
                                  "#!/bin/sh=0Atrue\r\n"
                                  "--outer--\r\n"
                                  "an epilogue\r\n";
    static const enum ami_family families[] = { AMI_FAMILY_AL2, AMI_FAMILY_AL2023 };
    for (size_t i = 0; i < KV_COUNT_OF(families); i++) {
        RENDERING(r, families[i]);
        render_ok(&r, archive);
        const struct mime_part *user = &r.mime.parts[families[i] == AMI_FAMILY_AL2 ? 1 : 0];
        EXPECT_EQ(r.mime.count, families[i] == AMI_FAMILY_AL2 ? 5 : 4);
        EXPECT_STR(mime_header(&user[0], "x-merge-type"), "list(append)");
        EXPECT_STR(user[0].body, "a: 1");
        EXPECT_STR(mime_header(&user[1], "content-transfer-encoding"), "base64");
        EXPECT_STR(mime_content_type(&r.arena, &user[1]), "text/cloud-boothook");
        EXPECT_STR(user[1].body, "IyEvYmluL3No");
        EXPECT_STR(mime_header(&user[2], "content-transfer-encoding"), "quoted-printable");
        EXPECT_STR(user[2].body, "#!/bin/sh=0Atrue");
        EXPECT_TRUE(str_find(r.out.text, '\r') < 0);
    }
}

TEST(an_archive_without_parts_is_no_user_data)
{
    RENDERING(r, AMI_FAMILY_AL2);
    render_ok(&r, "Content-Type: multipart/mixed; boundary=B\n\n--B--\n");
    EXPECT_EQ(r.mime.count, 1);
    EXPECT_FALSE(memmem(r.out.text.p, r.out.text.len, "hold", 4));
}

TEST(pieces_say_who_wrote_what)
{
    RENDERING(r, AMI_FAMILY_AL2);
    render_ok(&r, "echo of the user\r\ntrue\r\n");
    EXPECT_EQ(piece_with(&r, "echo of the user\ntrue\n")->owner, OWNER_USER);
    EXPECT_EQ(piece_with(&r, "MIME-Version")->owner, OWNER_KARVE);
    EXPECT_EQ(piece_with(&r, "bootstrap.sh")->owner, OWNER_KARVE);
    EXPECT_EQ(r.out.parts.items[1].owner, OWNER_USER);
    EXPECT_EQ(r.out.parts.items[1].bytes, strlen("#!/bin/bash\necho of the user\ntrue\n"));
    EXPECT_EQ(r.out.parts.items[2].owner, OWNER_KARVE);
}

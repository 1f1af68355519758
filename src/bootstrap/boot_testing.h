/* bootstrap/boot_testing.h - a node to render, and its archive read back: for tests of the
 * families. */
#pragma once

#include "bootstrap/boot.h"
#include "codec/mime.h"
#include "support/test.h"

struct rendering {
    struct arena arena;
    struct boot_cluster cluster;
    struct kubelet_config kubelet;
    struct boot boot;
    struct boot_text out;
    struct mime mime; /* of out.text */
};

static const struct str_pair rendering_labels[] = {
    { STR("karpenter.sh/capacity-type"), STR("spot") },
    { STR("karpenter.sh/nodepool"), STR("fruit") },
    { STR("team"), STR("pear") },
    { STR("topology.kubernetes.io/zone"), STR("eu-west-1a") },
};

/* Cluster `orchard`, 29 pods, without labels, taints, kubelet configuration and user data. */
static inline void rendering_init(struct rendering *r, enum ami_family family)
{
    *r = (struct rendering){ 0 };
    r->cluster = (struct boot_cluster){
        .name = STR("orchard"),
        .endpoint = STR("https://A1B2.gr7.eu-west-1.eks.amazonaws.com"),
        .ca = STR("LS0tLS1DQQ=="),
        .service_cidr = STR("172.20.0.0/16"),
        .version = STR("1.33"),
        .dns = STR("172.20.0.10"),
    };
    r->boot.cluster = &r->cluster;
    r->boot.family = family;
    r->boot.max_pods = (struct maybe_int){ 29, true };
}

static inline void rendering_done(struct rendering *r)
{
    arena_done(&r->arena);
}

#define RENDERING(name, family)                                                                    \
    __attribute__((cleanup(rendering_done))) struct rendering name;                                \
    rendering_init(&name, family)

static inline void rendering_kubelet(struct rendering *r, const char *json)
{
    struct err err = { 0 };
    EXPECT_OK(kubelet_config_read(&r->arena, str_of(json), r->boot.family, &r->kubelet, &err), err);
    r->boot.kubelet = &r->kubelet;
}

/* Render, and check what must hold of any result: the pieces are the text, the parts those of the
 * archive, the same input gives the same bytes. */
static inline void render_ok(struct rendering *r, const char *maybe_user_data)
{
    struct err err = { 0 };
    struct boot_text again;
    r->boot.user_data = maybe_user_data ? str_of(maybe_user_data) : STR_NONE;
    EXPECT_OK(boot_render(&r->arena, &r->boot, &r->out, &err), err);
    EXPECT_OK(boot_render(&r->arena, &r->boot, &again, &err), err);
    EXPECT_TRUE(str_eq(r->out.text, again.text));

    size_t at = 0;
    for (uint32_t i = 0; i < r->out.pieces.count; i++) {
        struct str piece = r->out.pieces.items[i].text;
        EXPECT_TRUE(piece.len > 0);
        EXPECT_TRUE(str_eq(str_sub(r->out.text, at, piece.len), piece));
        at += piece.len;
    }
    EXPECT_EQ(at, r->out.text.len);

    EXPECT_OK(mime_read(&r->arena, r->out.text, &r->mime, NULL, &err), err);
    EXPECT_EQ(r->mime.count, r->out.parts.count);
    for (uint32_t i = 0; i < r->mime.count; i++) {
        EXPECT_EQ(r->mime.parts[i].body.len, r->out.parts.items[i].bytes);
        EXPECT_TRUE(str_eq(mime_content_type(&r->arena, &r->mime.parts[i]),
                           r->out.parts.items[i].content_type));
    }
}

static inline void render_refused(struct rendering *r, const char *maybe_user_data,
                                  const char *words)
{
    struct err err = { 0 };
    r->boot.user_data = maybe_user_data ? str_of(maybe_user_data) : STR_NONE;
    EXPECT_ERR(boot_render(&r->arena, &r->boot, &r->out, &err), err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), words);
}

/* The piece that has these words. */
static inline const struct boot_piece *piece_with(const struct rendering *r, const char *words)
{
    for (uint32_t i = 0; i < r->out.pieces.count; i++) {
        struct str text = r->out.pieces.items[i].text;
        if (memmem(text.p, text.len, words, strlen(words)))
            return &r->out.pieces.items[i];
    }
    fail_msg("no piece has %s", words);
    return NULL;
}

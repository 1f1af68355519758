/* Any user data is merged or refused. What is merged is TOML, merging it again changes nothing,
 * karve's settings are in it, and so is all of the user's that karve does not own. */
#include "bootstrap/boot.h"
#include "bootstrap/families.h"
#include "codec/toml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct boot_cluster cluster = {
    .name = STR("orchard"),
    .endpoint = STR("https://api.example"),
    .ca = STR("LS0tLS1DQQ=="),
    .dns = STR("172.20.0.10"),
};
static const struct str_pair labels[] = { { STR("karpenter.sh/nodepool"), STR("fruit") },
                                          { STR("shelf"), STR("top") } };
static const struct str_pair reserved[] = { { STR("cpu"), STR("70m") } };
static const struct kubelet_config kubelet = {
    .has_kube_reserved = true,
    .kube_reserved = { reserved, KV_COUNT_OF(reserved) },
    .image_gc_high = { 85, true },
};

static int merge(struct arena *arena, struct str user_data, struct boot_text *out, struct err *err)
{
    struct boot boot = {
        .cluster = &cluster,
        .family = AMI_FAMILY_BOTTLEROCKET,
        .user_data = user_data,
        .kubelet = &kubelet,
        .labels = { labels, KV_COUNT_OF(labels) },
        .max_pods = { 29, true },
        .raid0 = true,
    };
    *out = (struct boot_text){ 0 };
    return family_bottlerocket.render(arena, &boot, out, err);
}

static struct str joined(struct arena *arena, const struct boot_text *text)
{
    AUTO_BUF all = { 0 };
    for (uint32_t i = 0; i < text->pieces.count; i++)
        buf_add(&all, text->pieces.items[i].text);
    return arena_str(arena, buf_str(&all));
}

/* The keys of `from` but for those in `except` are in `into`, with their values. */
static void check_kept(const struct toml *from, const struct toml *into, const char *const *except)
{
    toml_each(from, e)
    {
        bool owned = false;
        for (const char *const *key = except; *key; key++)
            owned |= str_eqz(toml_key(e), *key);
        const struct toml *kept = toml_get(into, toml_key(e));
        KV_ASSERT(kept != NULL);
        KV_ASSERT(owned || toml_equal(kept, toml_value(e)));
    }
}

static void check_merged(struct arena *arena, struct str user_data, struct str merged)
{
    static const char *const top[] = { "settings", NULL };
    static const char *const settings[] = { "kubernetes", "bootstrap-commands", NULL };
    static const char *const kubernetes[] = {
        "api-server",    "cluster-certificate",
        "cluster-name",  "cluster-dns-ip",
        "max-pods",      "image-gc-high-threshold-percent",
        "kube-reserved", "node-labels",
        "node-taints",   NULL,
    };
    static const char *const path[] = { "settings", "kubernetes", "kube-reserved" };
    struct toml *before, *after;
    struct err err = { 0 };
    KV_ASSERT(toml_read(arena, user_data, &before, &err) == 0);
    KV_ASSERT(toml_read(arena, merged, &after, &err) == 0);
    check_kept(before, after, top);
    check_kept(toml_path(before, path, 1), toml_path(after, path, 1), settings);
    check_kept(toml_path(before, path, 2), toml_path(after, path, 2), kubernetes);
    KV_ASSERT(toml_count(toml_path(after, path, 3)) == 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_ARENA arena = { 0 };
    struct str user_data = { (const char *)data, size };
    struct boot_text first, second;
    struct str_map maps[3];
    struct err err = { 0 };
    if (merge(&arena, user_data, &first, &err) < 0) {
        KV_ASSERT(err.kind == ERR_INVALID);
        KV_ASSERT(str_starts(str_of(err.text), STR("spec.userData: line ")));
        return 0;
    }
    KV_ASSERT(bottlerocket_reservations(&arena, user_data, &maps[0], &maps[1], &maps[2], &err) ==
              0);
    struct str merged = joined(&arena, &first);
    check_merged(&arena, user_data, merged);
    KV_ASSERT(merge(&arena, merged, &second, &err) == 0);
    KV_ASSERT(str_eq(joined(&arena, &second), merged));
    return 0;
}

/* Any text is a manifest, an index, a config, or refused with words; under every Content-Type. What is
 * read is sound: digests are valid, sizes are not negative. An artifact added to an index is found in
 * it, once, after all that was there; adding it again changes nothing. */
#include "codec/json.h"
#include "compat/manifest.h"
#include "net/digest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_descriptor(const struct descriptor *d)
{
    KV_ASSERT(digest_is_valid(d->digest, NULL));
    KV_ASSERT(d->size >= 0);
    KV_ASSERT(d->media_type.len > 0);
    KV_ASSERT(d->created_us >= 0);
}

static void check_manifest(const struct oci_manifest *m)
{
    KV_ASSERT(m->count <= MANIFEST_ENTRIES_MAX);
    for (uint32_t i = 0; i < m->count; i++)
        check_descriptor(&m->items[i]);
    if (m->form == MANIFEST_IMAGE)
        check_descriptor(&m->config);
    if (m->subject.digest.len)
        check_descriptor(&m->subject);
    if (m->count) {
        struct str type = m->items[0].artifact_type;
        const struct descriptor *best = manifest_newest(m->items, m->count, type);
        KV_ASSERT(best != NULL);
        KV_ASSERT(str_eq(best->artifact_type, type));
        KV_ASSERT(best->created_us >= m->items[0].created_us);
    }
}

static const struct descriptor artifact = { .media_type = STR(MEDIA_OCI_MANIFEST),
                                            .digest = STR(EMPTY_DIGEST),
                                            .size = 2,
                                            .artifact_type = STR(COMPAT_ARTIFACT_TYPE),
                                            .created_us = 1000000 };

static void check_referrers(struct arena *arena, struct str text, const struct oci_manifest *maybe)
{
    AUTO_BUF with = { 0 }, again = { 0 };
    struct oci_manifest after;
    struct err err = { 0 };
    if (referrers_index_write("before", text, &artifact, &with, &err) < 0) {
        KV_ASSERT(err.kind == ERR_INVALID);
        KV_ASSERT(with.len == 0);
        return;
    }
    int rc = manifest_read(arena, "after", STR(MEDIA_OCI_INDEX), buf_str(&with), &after, &err);
    KV_ASSERT(rc == 0);
    uint32_t before = maybe ? maybe->count : 0, found = 0;
    for (uint32_t i = 0; i < after.count; i++) {
        found += str_eq(after.items[i].digest, artifact.digest);
        KV_ASSERT(i >= before || str_eq(after.items[i].digest, maybe->items[i].digest));
    }
    KV_ASSERT(found > 0);
    KV_ASSERT(after.count == before || (after.count == before + 1 && found == 1));
    rc = referrers_index_write("after", buf_str(&with), &artifact, &again, &err);
    KV_ASSERT(rc == 0);
    KV_ASSERT(str_eq(buf_str(&with), buf_str(&again)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const types[] = { "", MEDIA_OCI_MANIFEST, MEDIA_DOCKER_LIST,
                                         MEDIA_DOCKER_MANIFEST, MEDIA_OCI_INDEX };
    AUTO_ARENA arena = { 0 };
    struct str text = { (const char *)data, size };
    struct oci_manifest m;
    struct platform platform;
    int rc = -1;
    for (size_t i = 0; i < KV_COUNT_OF(types); i++) {
        struct err err = { 0 };
        rc = manifest_read(&arena, "m", str_of(types[i]), text, &m, &err);
        KV_ASSERT(rc == 0 || (err.kind == ERR_INVALID && err.text[0]));
        if (rc == 0)
            check_manifest(&m);
    }
    check_referrers(&arena, text, rc == 0 ? &m : NULL); /* the last was the OCI index */
    struct err err = { 0 };
    rc = image_config_read(&arena, "c", text, &platform, &err);
    KV_ASSERT(rc == 0 || (err.kind == ERR_INVALID && err.text[0]));
    return 0;
}

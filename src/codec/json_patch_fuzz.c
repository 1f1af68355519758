/* The first byte picks the kind of patch; the rest is two JSON texts, the target and the patch, one
 * after the other with a zero byte between them. A result is within the limits of any document and
 * can be read back. */
#include "codec/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_result(const json_mut *result)
{
    AUTO_BUF text = { 0 };
    struct doc doc;
    struct err err = { 0 };
    json_write_mut(result, &text);
    KV_ASSERT(json_read(buf_str(&text), &doc, &err) == 0);
    AUTO_BUF canonical = { 0 };
    json_write_canonical(doc.root, &canonical);
    doc_done(&doc);
}

/* A merge patch changes nothing the second time. */
static void check_merge(struct json_build *b, const json_val *target, const json_val *patch)
{
    AUTO_BUF once = { 0 }, twice = { 0 };
    struct doc doc;
    struct err err = { 0 };
    json_mut *result = json_merge_patch(b, target, patch);
    check_result(result);
    json_write_mut(result, &once);
    KV_ASSERT(json_read(buf_str(&once), &doc, &err) == 0);
    json_write_mut(json_merge_patch(b, doc.root, patch), &twice);
    KV_ASSERT(str_eq(buf_str(&once), buf_str(&twice)));
    doc_done(&doc);
}

static void apply(bool merge, const json_val *target, const json_val *patch)
{
    AUTO_JSON_BUILD b;
    json_build_init(&b);
    json_mut *result = NULL;
    struct err err = { 0 };
    if (merge)
        check_merge(&b, target, patch);
    else if (json_patch(&b, target, patch, &result, &err) == 0)
        check_result(result);
    else
        KV_ASSERT(err.kind == ERR_INVALID);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    struct str text = { (const char *)data + 1, size - 1 }, target_text, patch_text;
    struct doc target, patch;
    struct err err = { 0 };
    if (!str_cut(text, '\0', &target_text, &patch_text) ||
        json_read(target_text, &target, &err) < 0)
        return 0;
    if (json_read(patch_text, &patch, &err) == 0) {
        apply(data[0] % 2 == 0, target.root, patch.root);
        doc_done(&patch);
    }
    doc_done(&target);
    return 0;
}

/* Two texts, apart by a line of ====. Any text is a NodeConfig or refused. Merging is
 * deterministic, gives canonical JSON, keeps what is there when merged with nothing, and the later
 * one's non-empty fields win. */
#include "bootstrap/nodeconfig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool read_one(struct str text, struct buf *out)
{
    struct docs docs;
    struct text_pos at = { 0, 0 };
    struct err err = { 0 };
    nodeconfig_is(text, true);
    if (nodeconfig_read(text, &docs, &at, &err) < 0) {
        KV_ASSERT(err.kind == ERR_INVALID);
        KV_ASSERT(err.text[0] != 0);
        KV_ASSERT(at.line > 0);
        return false;
    }
    json_write_canonical(docs.items[0].root, out);
    docs_done(&docs);
    return true;
}

static void read_merged(const struct buf *text, struct doc *out)
{
    struct err err = { 0 };
    AUTO_BUF canonical = { 0 };
    int rc = json_read(buf_str(text), out, &err);
    KV_ASSERT(rc == 0);
    json_write_canonical(out->root, &canonical);
    KV_ASSERT(str_eq(buf_str(text), buf_str(&canonical)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = { (const char *)data, size }, first = text, second = STR("");
    const char *apart = size ? memmem(data, size, "====\n", 5) : NULL;
    if (apart) {
        first.len = (size_t)(apart - text.p);
        second = str_sub(text, first.len + 5, text.len);
    }
    AUTO_BUF x = { 0 }, y = { 0 }, merged = { 0 }, same = { 0 };
    if (!read_one(first, &x) || !read_one(second, &y))
        return 0;
    nodeconfig_merge(buf_str(&x), STR("{}"), &same);
    KV_ASSERT(str_eq(buf_str(&same), buf_str(&x)));
    nodeconfig_merge(buf_str(&x), buf_str(&y), &merged);

    struct doc doc, over;
    read_merged(&merged, &doc);
    read_merged(&y, &over);
    const char *const paths[] = { "apiVersion", "kind", "spec.cluster.name" };
    for (size_t i = 0; i < KV_COUNT_OF(paths); i++) {
        const json_val *v = json_path(over.root, paths[i]);
        if (json_str(v).len)
            KV_ASSERT(json_equal(json_path(doc.root, paths[i]), v));
    }
    doc_done(&doc);
    doc_done(&over);
    return 0;
}

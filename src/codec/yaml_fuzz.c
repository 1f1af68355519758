/* Any text is read or refused. What is read has a position for every value, and is written as YAML
 * that reads back equal. */
#include "codec/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_positions(const struct doc *doc)
{
    size_t count = yyjson_doc_get_val_count(doc->yy);
    for (size_t i = 0; i < count && i < 1000; i++)
        KV_ASSERT(doc_position(doc, doc->root + i).line > 0);
}

static void check_round_trip(const json_val *tree)
{
    AUTO_BUF yaml = { 0 };
    struct docs again;
    struct err err = { 0 };
    yaml_write(tree, &yaml);
    KV_ASSERT(yaml_read(buf_str(&yaml), &again, NULL, &err) == 0);
    KV_ASSERT(again.count == 1);
    KV_ASSERT(json_equal(again.items[0].root, tree));
    docs_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct docs docs;
    struct text_pos at = { 0, 0 };
    struct err err = { 0 };
    if (yaml_read((struct str){ (const char *)data, size }, &docs, &at, &err) < 0) {
        KV_ASSERT(err.kind == ERR_INVALID);
        KV_ASSERT(err.text[0] != 0);
        KV_ASSERT(at.line > 0);
        return 0;
    }
    for (size_t i = 0; i < docs.count; i++) {
        check_positions(&docs.items[i]);
        check_round_trip(docs.items[i].root);
    }
    docs_done(&docs);
    return 0;
}

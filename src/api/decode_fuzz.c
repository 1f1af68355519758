/* Fuzz target: whatever the bytes are, reading, checking and decoding them ends without a crash and
 * without a leak. The first byte picks the kind. */
#include "api/object.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct doc doc;
    struct err err;
    if (size < 1 || json_read((struct str){ (const char *)data + 1, size - 1 }, &doc, &err) < 0)
        return 0;
    const struct kind *kind = kinds[data[0] % kind_count];
    struct arena arena = { 0 };
    struct report report = { .arena = &arena };
    struct json_build b;
    struct object_pool *pool = object_pool_new();
    const struct object *object = NULL;

    json_build_init(&b);
    object_admit(kind, &b, doc.root, NULL, &report);
    object_admit(kind, &b, doc.root, doc.root, &report); /* a write that changes nothing */
    if (json_is_object(doc.root) && object_decode(pool, kind, doc.root, &object, &err) == 0)
        KV_ASSERT(schema_equal(kind->schema, object, object));
    object_unref(object);
    object_pool_free(pool);
    json_build_done(&b);
    report_done(&report);
    arena_done(&arena);
    doc_done(&doc);
    return 0;
}

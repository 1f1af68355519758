/* Any text is refused with a place, or gives drafts that a snapshot can be built from. */
#include "cloud/catalogue.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_ARENA arena = { 0 };
    const struct instance_type_draft *drafts;
    uint32_t count;
    struct err err = { 0 };
    struct str text = { (const char *)data, size };

    if (catalogue_file_read(&arena, "f", text, &drafts, &count, &err) < 0) {
        KV_ASSERT(err.kind == ERR_INVALID);
        KV_ASSERT(str_starts(str_of(err.text), STR("f:")));
        return 0;
    }
    KV_ASSERT(count > 0);
    const struct instance_types *types;
    if (instance_types_build(drafts, count, (struct instance_types_options){ 0 }, &types, &err) <
        0) {
        KV_ASSERT(err.kind == ERR_INVALID); /* too large in some way */
        return 0;
    }
    KV_ASSERT(types->type_count == count);
    instance_types_unref(types);
    return 0;
}

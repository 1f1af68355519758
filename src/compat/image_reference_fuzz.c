/* Any text is a reference or refused with words. What is one is in its normal form: written in full it
 * reads back as the same, within its limits, and is under its own name. */
#include "compat/reference.h"

#include "net/digest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_ARENA arena = { 0 };
    AUTO_BUF full = { 0 };
    struct reference ref, same;
    struct err err = { 0 };
    if (reference_parse(&arena, (struct str){ (const char *)data, size }, &ref, &err) < 0) {
        KV_ASSERT(err.kind == ERR_INVALID);
        KV_ASSERT(err.text[0] != 0);
        return 0;
    }
    KV_ASSERT(ref.registry.len + 1 + ref.repository.len <= REFERENCE_NAME_MAX);
    KV_ASSERT(ref.tag.len <= REFERENCE_TAG_MAX);
    KV_ASSERT(ref.tag.len || ref.digest.len);
    KV_ASSERT(ref.digest.len == 0 || digest_is_valid(ref.digest, NULL));

    reference_format(&ref, &full);
    int rc = reference_parse(&arena, buf_str(&full), &same, &err);
    KV_ASSERT(rc == 0);
    KV_ASSERT(str_eq(ref.registry, same.registry));
    KV_ASSERT(str_eq(ref.host, same.host));
    KV_ASSERT(str_eq(ref.repository, same.repository));
    KV_ASSERT(str_eq(reference_which(&ref), reference_which(&same)));

    struct str names[] = { ref.registry, arena_strf(&arena, "%.*s/%.*s", STR_ARG(ref.registry),
                                                    STR_ARG(ref.repository)) };
    KV_ASSERT(reference_is_under(&ref, &(struct str_list){ &names[0], 1 }));
    KV_ASSERT(reference_is_under(&ref, &(struct str_list){ &names[1], 1 }));
    return 0;
}

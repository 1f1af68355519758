/* Calls of the scheduler, as bytes: whatever comes, the answer is JSON. */
#include "codec/json.h"
#include "compat/extender.h"

#include <stdio.h>

static int no_image(void *ctx, const struct reference *ref, const struct keyring *maybe_keys,
                    const struct image_facts *maybe_known, const struct image_facts **out,
                    struct err *err)
{
    (void)ctx, (void)ref, (void)maybe_keys, (void)maybe_known, (void)out;
    return err_set(err, ERR_NOT_FOUND, "none");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct object_pool *pool;
    static struct compat_service *service;
    static struct extender *extender;
    struct err err = { 0 };
    if (!extender) {
        pool = object_pool_new();
        struct compat_service_options options = { .source = { no_image, NULL, NULL },
                                                  .clock = clock_real(),
                                                  .settings = { .cache_entries_max = 64 } };
        KV_ASSERT(compat_service_new(options, &service, &err) == 0);
        extender = extender_new(
            (struct extender_options){ .service = service, .pool = pool, .clock = clock_real() });
    }
    if (size == 0)
        return 0;
    AUTO_BUF out = { 0 };
    struct doc doc;
    struct str body = { (const char *)data + 1, size - 1 };
    int status = extender_answer(extender, (enum extender_verb)(data[0] % 3), body, &out);
    KV_ASSERT(status == 200 || status == 400);
    KV_ASSERT(json_read(buf_str(&out), &doc, &err) == 0);
    doc_done(&doc);
    return 0;
}

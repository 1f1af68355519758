/* Any text: a quantity that parses is within its limits, and its canonical text is read back as the
 * same value. */
#include "codec/quantity.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct quantity reparse(struct quantity q)
{
    char text[QUANTITY_TEXT_MAX];
    size_t len = quantity_format(q, text);
    KV_ASSERT(len < QUANTITY_TEXT_MAX);
    struct quantity again = { 0 };
    struct err err;
    KV_ASSERT(quantity_parse((struct str){ text, len }, &again, &err) == 0);
    return again;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct quantity q, out;
    struct err err = { 0 };
    if (quantity_parse((struct str){ (const char *)data, size }, &q, &err) < 0) {
        KV_ASSERT(err.kind == ERR_INVALID);
        return 0;
    }
    KV_ASSERT(q.nano > -1000000000);
    KV_ASSERT(q.nano < 1000000000);
    KV_ASSERT(q.units != INT64_MIN);
    KV_ASSERT(!(q.units > 0 && q.nano < 0));
    KV_ASSERT(!(q.units < 0 && q.nano > 0));
    KV_ASSERT(quantity_cmp(reparse(q), q) == 0);
    int away = q.units < 0 || q.nano < 0 ? -1 : 1;
    KV_ASSERT(quantity_cmp(quantity_of(quantity_units(q)), q) * away >= 0);
    KV_ASSERT(quantity_sub(q, q, &out, &err) == 0);
    KV_ASSERT(quantity_is_zero(out));
    if (quantity_mul(q, 3, &out, &err) == 0) {
        KV_ASSERT(quantity_sub(out, q, &out, &err) == 0);
        KV_ASSERT(quantity_sub(out, q, &out, &err) == 0);
        KV_ASSERT(quantity_cmp(out, q) == 0);
    }
    return 0;
}

/* Eight bytes of time and a schedule: the next and the previous activation are each other's
 * inverse, and nothing lies between them. */
#include "codec/cron.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t t, next, previous, again;
    struct cron c;
    struct err err = { 0 };
    if (size < sizeof t)
        return 0;
    memcpy(&t, data, sizeof t);
    if (cron_parse((struct str){ (const char *)data + sizeof t, size - sizeof t }, &c, &err) < 0) {
        KV_ASSERT(err.kind == ERR_INVALID);
        return 0;
    }
    if (cron_next(&c, t, &next)) {
        KV_ASSERT(next > t);
        KV_ASSERT(next % 60 == 0);
        KV_ASSERT(cron_previous(&c, next + 1, &again));
        KV_ASSERT(again == next);
        KV_ASSERT(!cron_previous(&c, next, &again) || again <= t);
    }
    if (cron_previous(&c, t, &previous)) {
        KV_ASSERT(previous < t);
        KV_ASSERT(cron_next(&c, previous - 1, &again));
        KV_ASSERT(again == previous);
        KV_ASSERT(!cron_next(&c, previous, &again) || again >= t);
    }
    return 0;
}

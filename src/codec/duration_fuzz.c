/* Any text, read as a duration and as a time, and its first eight bytes as a number of either: what
 * is written is read back as the same. */
#include "codec/duration.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_duration(int64_t ns)
{
    char text[DURATION_TEXT_MAX];
    int64_t again = 0;
    struct err err;
    size_t len = duration_format(ns, text);
    KV_ASSERT(len < DURATION_TEXT_MAX);
    KV_ASSERT(duration_parse((struct str){ text, len }, &again, &err) == 0);
    KV_ASSERT(again == ns);
    KV_ASSERT(duration_format_short(ns, text) < DURATION_TEXT_MAX);
}

static void check_time(int64_t us)
{
    char text[TIME_TEXT_MAX];
    int64_t again = 0;
    struct err err;
    KV_ASSERT(time_format(us, text) == sizeof "2026-01-02T15:04:05Z" - 1);
    size_t len = time_format_micro(us, text);
    KV_ASSERT(time_parse((struct str){ text, len }, &again, &err) == 0);
    bool in_range = us >= TIME_S_MIN * 1000000 && us < (TIME_S_MAX + 1) * 1000000;
    KV_ASSERT(in_range == (again == us));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = { (const char *)data, size };
    int64_t value;
    struct err err = { 0 };
    if (duration_parse(text, &value, &err) == 0)
        check_duration(value);
    else
        KV_ASSERT(err.kind == ERR_INVALID);
    if (time_parse(text, &value, &err) == 0)
        check_time(value);
    else
        KV_ASSERT(err.kind == ERR_INVALID);
    if (size >= sizeof value) {
        memcpy(&value, data, sizeof value);
        check_duration(value);
        check_time(value);
    }
    return 0;
}

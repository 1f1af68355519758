/* Any text, read as a label selector and as a field selector: its canonical text stands for the
 * same selector, and matching never fails. */
#include "codec/selector.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef int parse_fn(struct arena *, struct str, struct selector *, struct err *);

/* Labels made up from the key, so that all operators get something to compare. */
static struct str lookup(const void *ctx, struct str key)
{
    (void)ctx;
    static const char *const values[] = { "", "1", "a", "-9223372036854775808", NULL };
    return str_of(values[key.len % KV_COUNT_OF(values)]);
}

static void check(parse_fn *parse, struct str text)
{
    AUTO_ARENA arena = { 0 };
    AUTO_BUF once = { 0 }, twice = { 0 };
    struct selector sel, again;
    struct err err = { 0 };
    if (parse(&arena, text, &sel, &err) < 0) {
        KV_ASSERT(err.kind == ERR_INVALID);
        return;
    }
    selector_format(&sel, &once);
    if (once.len > SELECTOR_BYTES_MAX) /* escapes and spaces may make it longer than it came */
        return;
    KV_ASSERT(parse(&arena, buf_str(&once), &again, &err) == 0);
    selector_format(&again, &twice);
    KV_ASSERT(str_eq(buf_str(&once), buf_str(&twice)));
    KV_ASSERT(selector_matches(&sel, lookup, NULL) == selector_matches(&again, lookup, NULL));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = { (const char *)data, size };
    check(selector_parse, text);
    check(selector_parse_fields, text);
    label_key_problem(text);
    label_value_problem(text);
    dns1123_label_problem(text);
    dns1123_subdomain_problem(text);
    return 0;
}

/* Any text is read or refused. What is read is written back byte for byte, told without gaps;
 * written from a copy, or after edits, it reads back as the tree that was written. */
#include "codec/toml_testing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_span(void *ctx, const struct toml_span *span)
{
    size_t *told = ctx;
    KV_ASSERT(span->start == *told);
    KV_ASSERT(span->end > span->start);
    *told = span->end;
}

static void check_written(const struct toml *root)
{
    AUTO_ARENA arena = { 0 };
    AUTO_BUF text = { 0 };
    AUTO_BUF again = { 0 };
    struct toml *read;
    struct err err = { 0 };
    size_t told = 0;
    toml_write_spans(root, &text, check_span, &told);
    KV_ASSERT(told == text.len);
    KV_ASSERT(toml_read(&arena, buf_str(&text), &read, &err) == 0);
    KV_ASSERT(toml_equal(read, root));
    toml_write(read, &again);
    KV_ASSERT(str_eq(buf_str(&again), buf_str(&text)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_ARENA arena = { 0 };
    AUTO_BUF same = { 0 };
    struct str text = { (const char *)data, size };
    struct toml *root;
    struct text_pos at = { 0, 0 };
    struct err err = { 0 };
    if (toml_read_at(&arena, text, &root, &at, &err) < 0) {
        KV_ASSERT(err.kind == ERR_INVALID);
        KV_ASSERT(err.text[0] != 0);
        KV_ASSERT(at.line > 0);
        KV_ASSERT(at.col > 0);
        return 0;
    }
    toml_write(root, &same);
    KV_ASSERT(str_eq(buf_str(&same), text));
    check_written(toml_copy(&arena, root));

    struct rng rng;
    rng_init(&rng, kv_hash(data, size));
    for (int i = 0; i < 12; i++) {
        toml_edit_at_random(&arena, &rng, root);
        check_written(root);
    }
    return 0;
}

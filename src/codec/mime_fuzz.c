/* Any text is read or refused. What is read is written as an archive that reads back equal, and
 * writing that again gives the same bytes. */
#include "codec/mime.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Written headers are sorted by name: the first of each name is what counts. */
static void check_equal(const struct mime_part *a, const struct mime_part *b)
{
    KV_ASSERT(a->header_count == b->header_count);
    KV_ASSERT(str_eq(a->body, b->body));
    for (uint32_t i = 0; i < a->header_count; i++) {
        AUTO_BUF name = { 0 };
        buf_add(&name, a->headers[i].name);
        KV_ASSERT(str_eq(mime_header(a, name.p), mime_header(b, name.p)));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_ARENA arena = { 0 };
    struct mime m, again;
    struct text_pos at = { 0, 0 };
    struct err err = { 0 };
    struct str text = { (const char *)data, size };
    mime_is_multipart(text);
    if (mime_read(&arena, text, &m, &at, &err) < 0) {
        KV_ASSERT(err.kind == ERR_INVALID);
        KV_ASSERT(err.text[0] != 0);
        KV_ASSERT(at.line > 0);
        return 0;
    }
    AUTO_BUF once = { 0 }, twice = { 0 };
    mime_write(m.parts, m.count, &once, NULL, NULL);
    if (once.len > MIME_BYTES_MAX)
        return 0;
    KV_ASSERT(mime_read(&arena, buf_str(&once), &again, NULL, &err) == 0);
    KV_ASSERT(again.count == m.count);
    for (uint32_t i = 0; i < m.count; i++) {
        struct str body;
        check_equal(&m.parts[i], &again.parts[i]);
        mime_content_type(&arena, &m.parts[i]);
        mime_param(&arena, mime_header(&m.parts[i], "content-disposition"), "filename");
        mime_body(&arena, &m.parts[i], &body, NULL);
    }
    mime_write(again.parts, again.count, &twice, NULL, NULL);
    KV_ASSERT(str_eq(buf_str(&once), buf_str(&twice)));
    return 0;
}

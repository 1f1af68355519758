/* Any bytes as a reply. The first says how they are cut: fed whole and fed in pieces they mean the
 * same. */
#include "net/unix_http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BODY_MAX 1000

struct outcome {
    int rc; /* -1: refused, 0: more is wanted, 1: whole */
    int status;
    enum err_kind kind;
    struct buf body;
};

static bool keep(void *ctx, int status, struct str piece)
{
    struct outcome *o = ctx;
    KV_ASSERT(status >= 200 && status <= 999);
    KV_ASSERT(piece.len > 0);
    buf_add(&o->body, piece);
    KV_ASSERT(o->body.len <= BODY_MAX);
    return true;
}

static void feed(struct str reply, size_t piece_bytes, struct outcome *out)
{
    struct http_reader reader = { .body_bytes_max = BODY_MAX, .piece = keep, .ctx = out };
    struct err err = { 0 };
    while (out->rc == 0 && reply.len > 0) {
        out->rc = http_reader_feed(&reader, str_sub(reply, 0, piece_bytes), &err);
        reply = str_sub(reply, piece_bytes, reply.len);
    }
    if (out->rc == 0)
        out->rc = http_reader_end(&reader, &err);
    out->status = reader.status;
    out->kind = out->rc < 0 ? err.kind : ERR_NONE;
    KV_ASSERT(out->kind == ERR_NONE || out->kind == ERR_INVALID || out->kind == ERR_UNAVAILABLE);
    http_reader_done(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct str reply = { (const char *)data + 1, size - 1 };
    struct outcome whole = { 0 }, pieces = { 0 };
    feed(reply, reply.len, &whole);
    feed(reply, (size_t)data[0] % 16 + 1, &pieces);
    KV_ASSERT(whole.rc == pieces.rc);
    KV_ASSERT(whole.kind == pieces.kind);
    KV_ASSERT(whole.status == pieces.status);
    /* A body that grows too long is cut where a piece ended. */
    if (whole.kind != ERR_INVALID)
        KV_ASSERT(str_eq(buf_str(&whole.body), buf_str(&pieces.body)));
    buf_done(&whole.body);
    buf_done(&pieces.body);
    return 0;
}

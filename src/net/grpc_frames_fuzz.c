/* A byte that says how the rest is cut, and a body: its messages are the same as if it came whole.
 * The body is also read as a server's message. */
#include "net/grpc_frames.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Takes what is whole; each message goes into `out` with its length in front. */
static int take_messages(struct grpc_frames *frames, struct buf *out, struct err *err)
{
    struct str message;
    int rc;
    while ((rc = grpc_frames_peek(frames, &message, err)) > 0) {
        KV_ASSERT(message.len <= frames->message_bytes_max);
        KV_ASSERT(grpc_frames_behind(frames) < grpc_frames_bytes(frames));
        grpc_frames_write(out, message);
        grpc_frames_drop(frames);
    }
    return rc;
}

static void check_message(struct str value)
{
    AUTO_BUF text = { 0 };
    grpc_message_decode(value, 100, &text);
    KV_ASSERT(text.len <= 100);
    KV_ASSERT(str_is_utf8(buf_str(&text)));
    for (size_t i = 0; i < text.len; i++)
        KV_ASSERT((uint8_t)text.p[i] >= 0x20);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct str body = { (const char *)data + 1, size - 1 };
    struct grpc_frames whole = { .message_bytes_max = 300 }, pieces = whole;
    AUTO_BUF want = { 0 }, got = { 0 };
    struct err want_err = { 0 }, got_err = { 0 };

    grpc_frames_add(&whole, body);
    int want_rc = take_messages(&whole, &want, &want_err);
    int got_rc = 0;
    uint32_t cut = data[0];
    for (size_t at = 0; at < body.len && got_rc == 0;) {
        cut = cut * 1664525 + 1013904223;
        struct str piece = str_sub(body, at, 1 + (cut >> 24) % (1 + data[0]));
        grpc_frames_add(&pieces, piece);
        got_rc = take_messages(&pieces, &got, &got_err);
        at += piece.len;
    }
    KV_ASSERT(got_rc == want_rc);
    KV_ASSERT(got_err.kind == want_err.kind);
    KV_ASSERT(str_eq(buf_str(&want), buf_str(&got)));
    if (want_rc == 0) {
        KV_ASSERT(grpc_frames_bytes(&whole) == grpc_frames_bytes(&pieces));
        KV_ASSERT(want.len + grpc_frames_bytes(&whole) == body.len); /* nothing is lost */
    }
    grpc_frames_done(&whole);
    grpc_frames_done(&pieces);
    check_message(body);
    return 0;
}

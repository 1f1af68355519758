/* net/grpc_frames.h - what gRPC writes into HTTP/2: length-prefixed messages, texts in headers.
 *
 * A message is one byte that says whether it is compressed (we offer nothing, so it is 0), four
 * bytes of length, and its bytes. A body is cut into pieces of any size on its way, so pieces are
 * collected here and messages taken out at the other end.
 */
#pragma once

#include "base/err.h"

#define GRPC_PREFIX_BYTES 5

/* Zero-initialised but for message_bytes_max is empty. */
struct grpc_frames {
    struct buf bytes; /* pieces as they came */
    size_t taken;     /* of them, given out already */
    size_t message_bytes_max;
};

void grpc_frames_add(struct grpc_frames *frames, struct str piece);
/* 1: the first message is whole, it lives until the next call here that is not this one;
 * 0: it is not. ERR_CAPACITY: it is too long, known from its prefix on; ERR_INTERNAL: compressed. */
int grpc_frames_peek(const struct grpc_frames *frames, struct str *message, struct err *err);
void grpc_frames_drop(struct grpc_frames *frames);           /* the message that was peeked at */
size_t grpc_frames_bytes(const struct grpc_frames *frames);  /* not taken; 0: between messages */
size_t grpc_frames_behind(const struct grpc_frames *frames); /* of these, after the first message */
void grpc_frames_done(struct grpc_frames *frames);

void grpc_frames_write(struct buf *out, struct str message); /* with its prefix */

/* "grpc-message" is percent-encoded. The text is decoded for people: UTF-8 whatever came, without
 * control characters, and cut at `bytes_max`. */
void grpc_message_decode(struct str value, size_t bytes_max, struct buf *out);

/* "grpc-timeout": at most eight digits and a unit, never more than `ns`, except that 1n is least. */
#define GRPC_TIMEOUT_TEXT_MAX 10
size_t grpc_timeout_format(int64_t ns, char out[GRPC_TIMEOUT_TEXT_MAX]);

/* net/unix_http.h - GET from a server on this machine, over a unix socket: how a command of ours asks
 * another process of ours.
 *
 * One request per connection, HTTP/1.1. The body is handed over piece by piece as it arrives, so a
 * reply may be a stream without an end.
 */
#pragma once

#include "base/err.h"

#define UNIX_HTTP_HEAD_BYTES_MAX (32 << 10)         /* of a reply; trailers have as much again */
#define UNIX_HTTP_BODY_BYTES_MAX ((size_t)64 << 20) /* of a whole reply; a stream has no limit */

/* Called with each piece of the body; an empty one is silence, see idle_ns. False: that is enough. */
typedef bool unix_http_piece_fn(void *ctx, int status, struct str piece);

struct unix_http_request {
    const char *socket_path;
    const char *target; /* path and query: "/pods?x=1" */
    bool stream;
    int64_t timeout_ns; /* for the whole reply; for the head of a stream. 0: no limit */
    /* Of a stream: when nothing has come for so long, or a signal was handled meanwhile, `piece` is
     * called with nothing. 0: never. */
    int64_t idle_ns;
    unix_http_piece_fn *piece;
    void *ctx;
};

/* Any status is a success: an error is that no whole reply came. ERR_NOT_FOUND: no such socket.
 * ERR_DENIED: not allowed to connect. ERR_UNAVAILABLE: nobody listens, no answer in time, or the server
 * closed too early. ERR_INVALID: what came is no HTTP or has no limits, or the target is no path. */
int unix_http_get(struct unix_http_request request, int *status, struct err *err);

/* The reply's bytes, which come in pieces of any size. Zero-initialised, but for the first three
 * fields. */
struct http_reader {
    size_t body_bytes_max; /* 0: no limit */
    unix_http_piece_fn *piece;
    void *ctx;

    int status; /* 0: not known yet */
    enum {
        HTTP_READER_STATUS_LINE,
        HTTP_READER_HEADERS,
        HTTP_READER_BODY, /* of a known length */
        HTTP_READER_BODY_TO_END /* of the connection */,
        HTTP_READER_CHUNK_SIZE,
        HTTP_READER_CHUNK,
        HTTP_READER_CHUNK_END,
        HTTP_READER_TRAILERS,
        HTTP_READER_WHOLE,
    } state;
    struct buf line; /* that is not complete yet */
    size_t head_bytes;
    uint64_t left_bytes; /* of the body or the chunk */
    uint64_t body_bytes;
    bool chunked, has_length, stopped;
};
/* 1: the reply is whole, or the piece function had enough; 0: more is to come. */
int http_reader_feed(struct http_reader *reader, struct str bytes, struct err *err);
/* The connection has ended. Fine if that is how the body ends, ERR_UNAVAILABLE if it is too early. */
int http_reader_end(struct http_reader *reader, struct err *err);
void http_reader_done(struct http_reader *reader);

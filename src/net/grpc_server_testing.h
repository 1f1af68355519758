/* net/grpc_server_testing.h - a small gRPC server on a unix socket, for tests.
 *
 * One thread reads and writes all connections and calls the handler for each complete request. A
 * handler answers through the reply it gets: at once, or later from any thread, in any order, so
 * slow, reordered and lost answers are all the same few calls. Faults are asked for by name.
 * Whatever stops the server itself from working is a failed KV_ASSERT: it is part of the test.
 */
#pragma once

#include "base/str.h"

struct grpc_server;
struct grpc_reply;

struct grpc_server_options {
    const char *path; /* of the socket; copied; a file that is there is replaced */
    /* `method` is "/package.Service/Method"; both are borrowed for the call. The reply is the
     * handler's until it has called grpc_reply_end, which it does exactly once. */
    void (*handle)(void *ctx, struct str method, struct str request, struct grpc_reply *reply);
    void *ctx;
    bool threaded;        /* each request has a thread of its own: a handler may block. Otherwise it
                           * runs in the server's thread, and what takes time is answered later */
    uint32_t streams_max; /* at once per connection, as told to the client; 0: 100 */
};

struct grpc_server *grpc_server_new(struct grpc_server_options options); /* it listens on return */
/* Stops it. Every reply has been ended, and with `threaded` every handler has returned or does so
 * without help from the caller. NULL is fine. */
void grpc_server_free(struct grpc_server *server);
KV_AUTO_TYPE(grpc_server, grpc_server_free)

/* Close the socket, remove its path, drop the connections: calls of a client are refused until
 * grpc_server_start listens on the same path again. Replies stay valid, and lead nowhere. */
void grpc_server_stop(struct grpc_server *server);
void grpc_server_start(struct grpc_server *server);

/* Answer with one message. Any number of them, then an end. Bytes are copied, never refused. */
void grpc_reply_send(struct grpc_reply *reply, struct str message);
/* The last call: the reply is gone. `status` is a gRPC code, `message` UTF-8 and sent encoded; ""
 * or NULL: none. An error before the first message goes out as "trailers only". */
void grpc_reply_end(struct grpc_reply *reply, uint32_t status, const char *message);
/* The client cancelled it, or its connection is gone: what is sent is dropped. Ending is still due. */
bool grpc_reply_cancelled(struct grpc_reply *reply);
/* Wait until that is so, or the time is over; what grpc_reply_cancelled says then. */
bool grpc_reply_wait_cancelled(struct grpc_reply *reply, int64_t timeout_ns);
size_t grpc_reply_unsent_bytes(struct grpc_reply *reply); /* the client gives no window for them */
const char *grpc_reply_timeout(struct grpc_reply *reply); /* "grpc-timeout" as received; "": none */

/* Faults of the whole server. */
void grpc_server_drop_connections(struct grpc_server *server); /* at once; new ones are welcome */
void grpc_server_goaway(struct grpc_server *server);           /* finish what runs, take no more */
void grpc_server_pause(struct grpc_server *server); /* accept, but read and answer nothing */
void grpc_server_resume(struct grpc_server *server);
uint32_t grpc_server_connections(struct grpc_server *server); /* accepted so far */
uint32_t grpc_server_streams(struct grpc_server *server);     /* open now, on all connections */

/* Faults of one reply, asked for before anything has been sent. */
enum grpc_reply_fault {
    GRPC_FAULT_NONE,
    GRPC_FAULT_NO_STATUS,    /* ends without grpc-status */
    GRPC_FAULT_HTTP_STATUS,  /* ":status" is 503 */
    GRPC_FAULT_CONTENT_TYPE, /* "text/html" */
    GRPC_FAULT_COMPRESSED,   /* messages say that they are compressed */
    GRPC_FAULT_CUT,          /* the last message lacks its last byte */
    GRPC_FAULT_RESET,        /* the end is RST_STREAM instead of trailers */
};
void grpc_reply_fault(struct grpc_reply *reply, enum grpc_reply_fault fault);

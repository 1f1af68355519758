/* net/grpc.h - a gRPC client over HTTP/2 on a unix socket. On libnghttp2.
 *
 * All calls of a client, streams included, share one connection. It is made when a call needs it.
 * While making it fails, calls fail at once with ERR_UNAVAILABLE and the reason; the next attempt
 * waits for a back-off that doubles. A connection counts as made when the server has spoken.
 * When it breaks, its calls fail with ERR_UNAVAILABLE: nobody knows whether the server had acted, so
 * nothing is sent again on its own.
 *
 * Who starts a call also sends it, if the socket takes it, and who waits for its end reads the answers,
 * one caller at a time. A thread of the client's own does both when no caller can, and keeps the
 * deadlines.
 *
 * A stream whose reader is slow fills a window of GRPC_STREAM_WINDOW_BYTES and then stops flowing,
 * alone: the other calls go on.
 *
 * Thread safe. A call belongs to whoever started it; only grpc_cancel may come from elsewhere.
 */
#pragma once

#include "base/err.h"
#include "base/log.h"

#define GRPC_MESSAGE_BYTES_MAX ((size_t)16 << 20) /* either way; a longer one is ERR_CAPACITY */
#define GRPC_CALLS_MAX 1000                       /* started and not freed; else ERR_CAPACITY */
#define GRPC_STREAM_WINDOW_BYTES (1 << 20) /* of a stream, behind the message to be taken next */
#define GRPC_BACKOFF_MIN_NS ((int64_t)100 * 1000000)
#define GRPC_BACKOFF_MAX_NS ((int64_t)3 * 1000000000)

/* Codes that somebody asks for by name. */
enum grpc_status {
    GRPC_OK = 0,
    GRPC_CANCELLED = 1,
    GRPC_UNKNOWN = 2,
    GRPC_DEADLINE_EXCEEDED = 4,
    GRPC_NOT_FOUND = 5,
    GRPC_RESOURCE_EXHAUSTED = 8,
    GRPC_UNIMPLEMENTED = 12,
    GRPC_INTERNAL = 13,
    GRPC_UNAVAILABLE = 14,
};
enum err_kind grpc_status_kind(uint32_t status); /* of 0: ERR_NONE; of unknown ones: ERR_INTERNAL */

struct grpc_options {
    const char *path;                       /* of the socket; copied */
    struct log *log;                        /* borrowed; NULL is silent */
    size_t message_bytes_max;               /* 0: GRPC_MESSAGE_BYTES_MAX, which is also the most */
    int64_t backoff_min_ns, backoff_max_ns; /* 0: as above; max is at least min */
};

struct grpc;
/* ERR_INVALID: the path is too long for a socket, or empty. ERR_UNAVAILABLE: the system gives no
 * thread or descriptor. It does not connect yet. */
int grpc_new(struct grpc_options options, struct grpc **out, struct err *err);
void grpc_free(struct grpc *grpc); /* every call has been freed; NULL is fine */
KV_AUTO_TYPE(grpc, grpc_free)

struct grpc_call_options {
    int64_t timeout_ns; /* 0: none. The server is told, and the client keeps it too */
    bool stream;        /* the server sends any number of messages: grpc_next */
    /* Called when the call has ended, or a stream has a message to take, by the client's thread: it
     * must be quick, and start or free no call. grpc_call_free waits until it has returned, so who
     * frees holds no lock that it takes. May be NULL. */
    void (*wake)(void *ctx);
    void *ctx;
};

struct grpc_call;
/* `method` is "/package.Service/Method" (borrowed: a literal), `request` one encoded message
 * (copied). Never fails: what is wrong is the call's result. */
struct grpc_call *grpc_start(struct grpc *grpc, const char *method, struct str request,
                             struct grpc_call_options options);

/* Calls that are started between these go out together, in one write. Between them nobody waits for an
 * answer: it may not have been asked for yet. */
void grpc_cork(struct grpc *grpc);
void grpc_uncork(struct grpc *grpc);

/* Has a unary call ended, has a stream a message or its end? */
bool grpc_ready(struct grpc_call *call);

/* Wait for the only message of a unary call. `reply` lives as long as the call. A server's error
 * has its kind and its message; ERR_UNAVAILABLE with status GRPC_DEADLINE_EXCEEDED: out of time. */
int grpc_finish(struct grpc_call *call, struct str *reply, struct err *err);

/* grpc_uncork and then grpc_finish, for who does both: not even an answer that is here before the
 * caller gets to wait for it wakes another thread. */
int grpc_uncork_finish(struct grpc_call *call, struct str *reply, struct err *err);

/* Wait for the next message of a stream: 1, and `message` lives until the next grpc_next or
 * grpc_call_free; 0: the server ended it well; -1: it failed. Messages that came before the end are
 * given first, unless it was cancelled. */
int grpc_next(struct grpc_call *call, struct str *message, struct err *err);

/* Once it has ended: the server's code, or ours. GRPC_OK before. */
uint32_t grpc_call_status(struct grpc_call *call);

void grpc_cancel(
    struct grpc_call *call); /* it ends with ERR_CANCELLED, unless it had ended before */
void grpc_call_free(struct grpc_call *call); /* cancels what still runs; NULL is fine */
KV_AUTO_TYPE(grpc_call, grpc_call_free)

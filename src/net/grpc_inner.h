/* net/grpc_inner.h - between the files of net/grpc. Nobody else includes it.
 *
 *     grpc.c          what callers call
 *     grpc_call.c     what an answer means, and how a call ends
 *     grpc_session.c  HTTP/2: nghttp2's callbacks
 *     grpc_io.c       the socket, who reads it, the thread, deadlines and back-off
 *
 * One lock per client guards everything here, nghttp2's sessions included. It is held for memory work
 * and for system calls that do not block; never while `wake` of a call runs.
 */
#pragma once

#include "base/map.h"
#include "net/grpc.h"
#include "net/grpc_frames.h"

#include <nghttp2/nghttp2.h>
#include <pthread.h>
#include <sys/un.h>

#define GRPC_READ_BYTES ((size_t)32 << 10) /* at once */
#define GRPC_NEVER INT64_MAX

struct grpc_conn {
    struct grpc *grpc;
    struct grpc_conn *next;
    int fd;           /* -1: what is sent goes nowhere */
    uint32_t watched; /* what the thread's epoll waits for */
    nghttp2_session *session;
    struct map calls;  /* by stream, until that is closed; 0: its call has ended before it */
    struct buf out;    /* from nghttp2, for the socket */
    size_t out_sent;   /* of it */
    bool settled;      /* the server has sent its settings: it is there, and speaks HTTP/2 */
    bool retired;      /* it takes no new calls, by the server's word */
    bool unheard;      /* it broke by sending: there may be answers to read */
    struct err broken; /* ERR_NONE: it works. Otherwise the thread does away with it */
};

struct grpc_call {
    struct grpc *grpc;
    const char *method;
    struct grpc_call_options options;
    int64_t deadline_ns; /* or GRPC_NEVER */

    /* Waiting in line, then on a stream, then ended. */
    struct grpc_call *previous, *next; /* in line */
    struct grpc_conn *conn;            /* NULL: not on a stream */
    int32_t stream_id;
    struct buf request; /* with its prefix */
    size_t request_sent;

    /* What the server said. */
    uint32_t http_status; /* 0: no headers yet */
    bool content_type_fits, headers_judged, has_status;
    uint32_t server_status;
    struct buf server_message;
    struct grpc_frames frames;
    size_t window_kept; /* bytes of the stream's window that were not given back */

    bool ended;
    uint32_t status;
    struct err *failure;  /* NULL: ended well */
    struct buf message;   /* the last that grpc_next gave out */
    pthread_cond_t moved; /* ended, or a stream has a message */
    bool told;            /* in line for its `wake` */
    struct grpc_call *told_next;
};

struct grpc {
    struct grpc_options options; /* with the defaults filled in; path points into address */
    struct sockaddr_un address;
    pthread_t thread;
    int epoll_fd; /* what the thread waits for: the connections, and wake_fd */
    int wake_fd;

    pthread_mutex_t lock;
    bool asleep; /* the thread waits in epoll: who has work for it writes to wake_fd */
    bool closing;
    int64_t armed_ns;        /* when the thread looks at deadlines next: not after the earliest */
    struct grpc_conn *conns; /* the first may be the one in use; the others are retired or broken */
    struct grpc_call *line_first, *line_last; /* calls without a stream, oldest first */
    uint32_t call_count;                      /* not freed */
    uint32_t cork_count;                      /* > 0: calls stay in line */

    /* A caller that reads the connection of its call instead of the thread; NULL: nobody does. */
    const struct grpc_call *reader;
    struct grpc_conn *reader_conn; /* not freed meanwhile */
    bool reader_asleep;            /* it is in poll: who has news for it writes to reader_fd */
    int reader_fd;

    uint32_t attempts_failed; /* in a row */
    int64_t retry_ns;         /* no attempt before */
    struct err why;           /* of the last that failed */

    struct grpc_call *told_first, *told_last; /* whose `wake` is due */
    const struct grpc_call *waking;           /* whose `wake` runs now */
    pthread_cond_t woken;                     /* it has returned */

    uint8_t input[GRPC_READ_BYTES];
};

/* --- grpc.c --- */

int grpc_init(struct grpc *grpc, struct grpc_options options, struct err *err); /* no thread yet */
void grpc_done(struct grpc *grpc);
static inline int64_t grpc_now_ns(void)
{
    return clock_mono_ns(clock_real());
}

/* --- grpc_call.c; with the lock held --- */

/* Ends it, unless it has ended: GRPC_OK well, otherwise with the kind of `status` and the text. Its
 * stream is reset. Whoever calls flushes the connection, if not in one of its callbacks. */
void grpc_call_end(struct grpc_call *call, uint32_t status, const char *fmt, ...) KV_PRINTF(3, 4);
/* It fails because of what it received; even if the server has ended it well meanwhile. */
void grpc_call_reject(struct grpc_call *call, const struct err *why);
void grpc_call_tell(struct grpc_call *call); /* there is news of it */
/* What nghttp2 received for it. */
void grpc_call_on_header(struct grpc_call *call, struct str name, struct str value);
void grpc_call_on_headers_end(struct grpc_call *call);
void grpc_call_on_data(struct grpc_call *call, struct str piece);
void grpc_call_on_close(struct grpc_call *call, uint32_t http2_error);
/* Bytes in front of the reader need no window to stop them: give back what lies no further behind
 * than the message to be taken next. */
void grpc_call_return_window(struct grpc_call *call);

void grpc_line_append(struct grpc *grpc, struct grpc_call *call);
void grpc_line_remove(struct grpc *grpc, struct grpc_call *call);
void grpc_told_remove(struct grpc *grpc, struct grpc_call *call);

/* --- grpc_session.c; with the lock held --- */

struct grpc_conn *grpc_conn_new(struct grpc *grpc, int fd); /* takes over fd */
void grpc_conn_free(struct grpc_conn *conn);                /* none of its streams has a call */
bool grpc_conn_has_room(const struct grpc_conn *conn);      /* for one more call now */
/* Takes the call out of the line and onto a stream. False: this connection has none left. */
bool grpc_conn_submit(struct grpc_conn *conn, struct grpc_call *call);
bool grpc_conn_receive(struct grpc_conn *conn, struct str bytes); /* false: it broke by that */
bool grpc_conn_over(const struct grpc_conn *conn);                /* broken, or retired and done */

/* --- grpc_io.c; with the lock held, but for the thread's main --- */

/* It works no more: its calls fail with the reason, soon, in the thread. If the server had not spoken
 * yet, the next attempt waits. */
void grpc_conn_break(struct grpc_conn *conn, const char *fmt, ...) KV_PRINTF(2, 3);
/* Send what nghttp2 has to send, as far as the socket takes it. */
void grpc_conn_flush(struct grpc_conn *conn);
/* Put the calls in line onto streams, on a new connection if it takes one; or end them. */
void grpc_admit(struct grpc *grpc);
void grpc_nudge(struct grpc *grpc); /* the thread has something to do */
void grpc_nudge_reader(struct grpc *grpc);
/* Wait until the call has ended, without the lock. The other sends what is in line first. */
void grpc_call_await(struct grpc_call *call);
void grpc_call_send_and_await(struct grpc_call *call);
/* Ends the calls of connections that are over, and frees these. */
bool grpc_reap(struct grpc *grpc);
void *grpc_thread_main(void *grpc);

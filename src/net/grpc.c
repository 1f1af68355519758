/* net/grpc.c - what callers call.
 *
 *     in line --a connection has room--> on a stream --the server's end, or ours--> ended
 *        \------------- no connection, out of time, cancelled ----------------------^
 *
 * Each call has a condition variable of its own, so an answer wakes the one who waits for it; unless
 * that one reads it from the socket itself (grpc_io.c).
 */
#include "net/grpc_inner.h"

#include "base/thread.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- the client --- */

static void close_descriptors(struct grpc *grpc)
{
    const int fds[] = { grpc->epoll_fd, grpc->wake_fd, grpc->reader_fd };
    for (size_t i = 0; i < KV_COUNT_OF(fds); i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

static int open_descriptors(struct grpc *grpc, struct err *err)
{
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = NULL };
    grpc->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    grpc->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    grpc->reader_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (grpc->reader_fd >= 0 &&
        epoll_ctl(grpc->epoll_fd, EPOLL_CTL_ADD, grpc->wake_fd, &event) == 0)
        return 0;
    err_set(err, ERR_UNAVAILABLE, "epoll or eventfd: %s", strerror(errno));
    close_descriptors(grpc);
    return -1;
}

int grpc_init(struct grpc *grpc, struct grpc_options options, struct err *err)
{
    size_t path_len = strlen(options.path);
    *grpc = (struct grpc){ .options = options, .armed_ns = GRPC_NEVER };
    if (path_len == 0 || path_len >= sizeof grpc->address.sun_path)
        return err_set(err, ERR_INVALID, "%s: the path of a socket has 1 to %zu bytes",
                       STR_SHOWN(str_of(options.path)), sizeof grpc->address.sun_path - 1);
    KV_ASSERT(options.message_bytes_max <= GRPC_MESSAGE_BYTES_MAX);
    if (options.message_bytes_max == 0)
        grpc->options.message_bytes_max = GRPC_MESSAGE_BYTES_MAX;
    if (options.backoff_min_ns == 0)
        grpc->options.backoff_min_ns = GRPC_BACKOFF_MIN_NS;
    if (options.backoff_max_ns == 0)
        grpc->options.backoff_max_ns = GRPC_BACKOFF_MAX_NS;
    if (grpc->options.backoff_max_ns < grpc->options.backoff_min_ns)
        grpc->options.backoff_max_ns = grpc->options.backoff_min_ns;

    grpc->address.sun_family = AF_UNIX;
    memcpy(grpc->address.sun_path, options.path, path_len + 1);
    grpc->options.path = grpc->address.sun_path;
    if (open_descriptors(grpc, err) < 0)
        return -1;
    pthread_mutex_init(&grpc->lock, NULL);
    pthread_cond_init(&grpc->woken, NULL);
    return 0;
}

void grpc_done(struct grpc *grpc)
{
    KV_ASSERT(grpc->call_count == 0);
    while (grpc->conns) {
        struct grpc_conn *conn = grpc->conns;
        grpc->conns = conn->next;
        grpc_conn_free(conn);
    }
    close_descriptors(grpc);
    pthread_cond_destroy(&grpc->woken);
    pthread_mutex_destroy(&grpc->lock);
}

int grpc_new(struct grpc_options options, struct grpc **out, struct err *err)
{
    struct grpc *grpc = kv_malloc(sizeof *grpc);
    if (grpc_init(grpc, options, err) < 0) {
        free(grpc);
        return -1;
    }
    if (thread_start(&grpc->thread, "grpc", grpc_thread_main, grpc, err) < 0) {
        grpc_done(grpc);
        free(grpc);
        return -1;
    }
    *out = grpc;
    return 0;
}

void grpc_free(struct grpc *grpc)
{
    if (!grpc)
        return;
    pthread_mutex_lock(&grpc->lock);
    grpc->closing = true;
    grpc_nudge(grpc);
    pthread_mutex_unlock(&grpc->lock);
    pthread_join(grpc->thread, NULL);
    grpc_done(grpc);
    free(grpc);
}

/* --- calls --- */

static int64_t deadline_after(int64_t timeout_ns)
{
    int64_t now_ns = grpc_now_ns();
    if (timeout_ns == 0 || timeout_ns > GRPC_NEVER - now_ns)
        return GRPC_NEVER;
    return now_ns + timeout_ns;
}

static struct grpc_call *call_new(struct grpc *grpc, const char *method, struct str request,
                                  struct grpc_call_options options)
{
    struct grpc_call *call = kv_calloc(1, sizeof *call);
    call->grpc = grpc;
    call->method = method;
    call->options = options;
    call->deadline_ns = deadline_after(options.timeout_ns);
    call->frames.message_bytes_max = grpc->options.message_bytes_max;
    pthread_cond_init(&call->moved, NULL);
    if (request.len <= grpc->options.message_bytes_max)
        grpc_frames_write(&call->request, request);
    return call;
}

struct grpc_call *grpc_start(struct grpc *grpc, const char *method, struct str request,
                             struct grpc_call_options options)
{
    struct grpc_call *call = call_new(grpc, method, request, options);

    pthread_mutex_lock(&grpc->lock);
    grpc_line_append(grpc, call);
    if (++grpc->call_count > GRPC_CALLS_MAX)
        grpc_call_end(call, GRPC_RESOURCE_EXHAUSTED, "%d calls are not finished", GRPC_CALLS_MAX);
    if (request.len > grpc->options.message_bytes_max)
        grpc_call_end(call, GRPC_RESOURCE_EXHAUSTED, "a request of %zu bytes, more than %zu",
                      request.len, grpc->options.message_bytes_max);
    if (options.timeout_ns < 0)
        grpc_call_end(call, GRPC_DEADLINE_EXCEEDED, "out of time before the start");
    if (!call->ended && call->deadline_ns < grpc->armed_ns) {
        grpc->armed_ns = call->deadline_ns;
        grpc_nudge(grpc);
    }
    grpc_admit(grpc);
    pthread_mutex_unlock(&grpc->lock);
    return call;
}

void grpc_cork(struct grpc *grpc)
{
    pthread_mutex_lock(&grpc->lock);
    grpc->cork_count++;
    pthread_mutex_unlock(&grpc->lock);
}

void grpc_uncork(struct grpc *grpc)
{
    pthread_mutex_lock(&grpc->lock);
    KV_ASSERT(grpc->cork_count > 0);
    grpc->cork_count--;
    grpc_admit(grpc);
    pthread_mutex_unlock(&grpc->lock);
}

bool grpc_ready(struct grpc_call *call)
{
    struct str message;
    pthread_mutex_lock(&call->grpc->lock);
    bool ready = call->ended ||
                 (call->options.stream && grpc_frames_peek(&call->frames, &message, NULL) != 0);
    pthread_mutex_unlock(&call->grpc->lock);
    return ready;
}

static int result(const struct grpc_call *call, struct err *err)
{
    if (!call->failure)
        return 0;
    return err_set(err, call->failure->kind, "%s", call->failure->text);
}

/* Of a unary call that has ended: nobody else touches it any more. */
static int reply_of(const struct grpc_call *call, struct str *reply, struct err *err)
{
    if (result(call, err) < 0)
        return -1;
    return grpc_frames_peek(&call->frames, reply, err) > 0 ? 0 : -1;
}

int grpc_finish(struct grpc_call *call, struct str *reply, struct err *err)
{
    KV_ASSERT(!call->options.stream);
    pthread_mutex_lock(&call->grpc->lock);
    grpc_call_await(call);
    pthread_mutex_unlock(&call->grpc->lock);
    return reply_of(call, reply, err);
}

int grpc_uncork_finish(struct grpc_call *call, struct str *reply, struct err *err)
{
    KV_ASSERT(!call->options.stream);
    pthread_mutex_lock(&call->grpc->lock);
    KV_ASSERT(call->grpc->cork_count > 0);
    call->grpc->cork_count--;
    grpc_call_send_and_await(call);
    pthread_mutex_unlock(&call->grpc->lock);
    return reply_of(call, reply, err);
}

/* With the lock held, after something was done to a stream of `maybe_conn`: send what that takes. A
 * stream that is closed by it leaves room for a call in line. */
static void settle(struct grpc *grpc, struct grpc_conn *maybe_conn)
{
    if (maybe_conn)
        grpc_conn_flush(maybe_conn);
    grpc_admit(grpc);
}

/* With the lock held: 1 and a message to take, or 0 and the call has ended. */
static int wait_for_message(struct grpc_call *call, struct str *message)
{
    struct err err = { 0 };
    for (;;) {
        int rc = grpc_frames_peek(&call->frames, message, &err);
        if (rc > 0)
            return rc;
        if (rc == 0 && call->ended && !call->failure && grpc_frames_bytes(&call->frames) > 0)
            rc = err_set(&err, ERR_INTERNAL, "the server's answer ends within a message");
        if (rc < 0) {
            struct grpc_conn *conn = call->conn;
            grpc_call_reject(call, &err);
            settle(call->grpc, conn);
        }
        if (call->ended)
            return 0;
        pthread_cond_wait(&call->moved, &call->grpc->lock);
    }
}

int grpc_next(struct grpc_call *call, struct str *message, struct err *err)
{
    KV_ASSERT(call->options.stream);
    struct str first;
    pthread_mutex_lock(&call->grpc->lock);
    int rc = wait_for_message(call, &first);
    if (rc > 0) {
        buf_clear(&call->message); /* a copy: the thread goes on adding to the frames */
        buf_add(&call->message, first);
        grpc_frames_drop(&call->frames);
        grpc_call_return_window(call);
        settle(call->grpc, call->conn);
        *message = buf_str(&call->message);
    } else {
        rc = result(call, err);
    }
    pthread_mutex_unlock(&call->grpc->lock);
    return rc;
}

uint32_t grpc_call_status(struct grpc_call *call)
{
    pthread_mutex_lock(&call->grpc->lock);
    uint32_t status = call->status;
    pthread_mutex_unlock(&call->grpc->lock);
    return status;
}

/* With the lock held. */
static void cancel(struct grpc_call *call)
{
    if (call->ended)
        return;
    struct grpc_conn *conn = call->conn;
    grpc_call_end(call, GRPC_CANCELLED, "cancelled");
    grpc_frames_done(&call->frames); /* nobody wants the rest */
    settle(call->grpc, conn);
}

void grpc_cancel(struct grpc_call *call)
{
    pthread_mutex_lock(&call->grpc->lock);
    cancel(call);
    pthread_mutex_unlock(&call->grpc->lock);
}

void grpc_call_free(struct grpc_call *call)
{
    if (!call)
        return;
    struct grpc *grpc = call->grpc;
    pthread_mutex_lock(&grpc->lock);
    call->options.wake = NULL;
    grpc_told_remove(grpc, call);
    while (grpc->waking == call)
        pthread_cond_wait(&grpc->woken, &grpc->lock);
    cancel(call);
    grpc->call_count--;
    pthread_mutex_unlock(&grpc->lock);

    pthread_cond_destroy(&call->moved);
    grpc_frames_done(&call->frames);
    buf_done(&call->request);
    buf_done(&call->server_message);
    buf_done(&call->message);
    free(call->failure);
    free(call);
}

/* net/grpc_server_testing.c - nghttp2's server side, in one thread.
 *
 * Sessions belong to the server's thread alone. Handlers leave bytes and ends in their reply, under
 * the lock, and nudge; the thread looks at all open replies after each event and hands on what is
 * new. Simple rather than fast: tests have few streams.
 *
 * A reply has one count for its stream, one for its handler until grpc_reply_end, and one while the
 * handler runs, since the request lives in it.
 */
#include "net/grpc_server_testing.h"

#include "base/clock.h"
#include "base/map.h"
#include "base/thread.h"
#include "base/vec.h"
#include "net/grpc_frames.h"

#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define WINDOW_BYTES (1 << 20)

struct conn {
    struct grpc_server *server;
    struct conn *next;
    int fd;
    nghttp2_session *session;
    struct map replies; /* by stream */
    struct buf out;
    bool broken;
};

struct grpc_server {
    struct grpc_server_options options;
    struct sockaddr_un address;
    int listen_fd, wake_fd;
    pthread_t thread;
    bool running;
    struct conn *conns; /* the thread's */

    pthread_mutex_t lock; /* guards what follows, and the replies */
    pthread_cond_t changed;
    bool stopping, paused, dropping, saying_goodbye;
    uint32_t connection_count, stream_count, reply_count, handler_count;
};

struct grpc_reply {
    struct grpc_server *server;
    struct conn *conn; /* the thread's */
    int32_t stream_id;
    uint32_t refs;
    struct buf method;
    char timeout[16];
    struct grpc_frames request;

    enum grpc_reply_fault fault;
    struct buf out; /* messages with their prefixes */
    size_t out_sent;
    bool started;   /* headers were submitted */
    bool ended;     /* by its handler */
    bool cancelled; /* its stream is gone */
    uint32_t status;
    struct buf message; /* encoded */
};

static void nudge(struct grpc_server *server)
{
    eventfd_write(server->wake_fd, 1);
}

/* --- replies --- */

/* With the lock held. */
static void reply_unref(struct grpc_reply *reply)
{
    if (--reply->refs > 0)
        return;
    buf_done(&reply->method);
    grpc_frames_done(&reply->request);
    buf_done(&reply->out);
    buf_done(&reply->message);
    free(reply);
}

void grpc_reply_fault(struct grpc_reply *reply, enum grpc_reply_fault fault)
{
    pthread_mutex_lock(&reply->server->lock);
    KV_ASSERT(reply->out.len == 0);
    reply->fault = fault;
    pthread_mutex_unlock(&reply->server->lock);
}

void grpc_reply_send(struct grpc_reply *reply, struct str message)
{
    struct grpc_server *server = reply->server;
    pthread_mutex_lock(&server->lock);
    KV_ASSERT(!reply->ended);
    if (!reply->cancelled) {
        if (reply->out_sent == reply->out.len) {
            buf_clear(&reply->out);
            reply->out_sent = 0;
        }
        size_t at = reply->out.len;
        grpc_frames_write(&reply->out, message);
        if (reply->fault == GRPC_FAULT_COMPRESSED)
            reply->out.p[at] = 1;
        if (reply->fault == GRPC_FAULT_CUT)
            buf_cut(&reply->out, reply->out.len - 1);
    }
    pthread_mutex_unlock(&server->lock);
    nudge(server);
}

static void message_encode(struct str text, struct buf *out)
{
    for (size_t i = 0; i < text.len; i++) {
        uint8_t byte = (uint8_t)text.p[i];
        if (byte < 0x20 || byte > 0x7e || byte == '%')
            buf_addf(out, "%%%02X", byte);
        else
            buf_addc(out, text.p[i]);
    }
}

void grpc_reply_end(struct grpc_reply *reply, uint32_t status, const char *message)
{
    struct grpc_server *server = reply->server;
    pthread_mutex_lock(&server->lock);
    KV_ASSERT(!reply->ended);
    reply->ended = true;
    reply->status = status;
    message_encode(str_of(message), &reply->message);
    server->reply_count--;
    reply_unref(reply);
    pthread_mutex_unlock(&server->lock);
    nudge(server);
}

bool grpc_reply_cancelled(struct grpc_reply *reply)
{
    pthread_mutex_lock(&reply->server->lock);
    bool cancelled = reply->cancelled;
    pthread_mutex_unlock(&reply->server->lock);
    return cancelled;
}

bool grpc_reply_wait_cancelled(struct grpc_reply *reply, int64_t timeout_ns)
{
    struct grpc_server *server = reply->server;
    int64_t until_ns = clock_mono_ns(clock_real()) + timeout_ns;
    pthread_mutex_lock(&server->lock);
    while (!reply->cancelled && clock_mono_ns(clock_real()) < until_ns)
        clock_wait(clock_real(), &server->changed, &server->lock, until_ns);
    bool cancelled = reply->cancelled;
    pthread_mutex_unlock(&server->lock);
    return cancelled;
}

size_t grpc_reply_unsent_bytes(struct grpc_reply *reply)
{
    pthread_mutex_lock(&reply->server->lock);
    size_t bytes = reply->out.len - reply->out_sent;
    pthread_mutex_unlock(&reply->server->lock);
    return bytes;
}

const char *grpc_reply_timeout(struct grpc_reply *reply)
{
    return reply->timeout; /* written before the handler was called */
}

/* --- sending replies; in the thread --- */

static nghttp2_nv header(const char *name, const char *value)
{
    return (nghttp2_nv){ (uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value), 0 };
}

static size_t add_trailers(const struct grpc_reply *reply, char number[16], nghttp2_nv *out)
{
    snprintf(number, 16, "%u", reply->status);
    out[0] = header("grpc-status", number);
    if (reply->message.len == 0)
        return 1;
    out[1] = header("grpc-message", reply->message.p);
    return 2;
}

static ssize_t read_reply(nghttp2_session *session, int32_t stream_id, uint8_t *out, size_t out_len,
                          uint32_t *flags, nghttp2_data_source *source, void *ctx KV_UNUSED)
{
    struct grpc_reply *reply = source->ptr;
    pthread_mutex_lock(&reply->server->lock);
    size_t left = reply->out.len - reply->out_sent;
    size_t len = left < out_len ? left : out_len;
    if (len > 0)
        memcpy(out, reply->out.p + reply->out_sent, len);
    reply->out_sent += len;
    ssize_t result = (ssize_t)len;
    if (len == left && reply->ended) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        if (reply->fault == GRPC_FAULT_RESET) {
            *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
            nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream_id,
                                      NGHTTP2_INTERNAL_ERROR);
        } else if (reply->fault != GRPC_FAULT_NO_STATUS) {
            char number[16];
            nghttp2_nv trailers[2];
            *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
            nghttp2_submit_trailer(session, stream_id, trailers,
                                   add_trailers(reply, number, trailers));
        }
    } else if (len == 0) {
        result = NGHTTP2_ERR_DEFERRED;
    }
    pthread_mutex_unlock(&reply->server->lock);
    return result;
}

/* With the lock held: hand on what the handler left. */
static void reply_push(struct grpc_reply *reply)
{
    nghttp2_session *session = reply->conn->session;
    bool due = reply->ended || reply->out.len > reply->out_sent;
    if (!due)
        return;
    if (reply->started) {
        nghttp2_session_resume_data(session, reply->stream_id);
        return;
    }
    reply->started = true;
    bool html = reply->fault == GRPC_FAULT_CONTENT_TYPE;
    char number[16];
    nghttp2_nv headers[4] = {
        header(":status", reply->fault == GRPC_FAULT_HTTP_STATUS ? "503" : "200"),
        header("content-type", html ? "text/html" : "application/grpc"),
    };
    bool trailers_only = reply->ended && reply->status != 0 && reply->out.len == 0 &&
                         reply->fault == GRPC_FAULT_NONE;
    nghttp2_data_provider provider = { .source.ptr = reply, .read_callback = read_reply };
    size_t count = 2 + (trailers_only ? add_trailers(reply, number, headers + 2) : 0);
    nghttp2_submit_response(session, reply->stream_id, headers, count,
                            trailers_only ? NULL : &provider);
}

/* --- receiving requests; in the thread --- */

static struct grpc_reply *reply_of(const struct conn *conn, int32_t stream_id)
{
    uintptr_t value;
    return map_get(&conn->replies, (uint64_t)stream_id, &value) ? (struct grpc_reply *)value : NULL;
}

static int on_begin_headers(nghttp2_session *session KV_UNUSED, const nghttp2_frame *frame,
                            void *ctx)
{
    struct conn *conn = ctx;
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    struct grpc_reply *reply = kv_calloc(1, sizeof *reply);
    reply->server = conn->server;
    reply->conn = conn;
    reply->stream_id = frame->hd.stream_id;
    reply->refs = 1;
    reply->request.message_bytes_max = SIZE_MAX;
    map_put(&conn->replies, (uint64_t)reply->stream_id, (uintptr_t)reply);
    pthread_mutex_lock(&conn->server->lock);
    conn->server->stream_count++;
    pthread_mutex_unlock(&conn->server->lock);
    return 0;
}

static int on_header(nghttp2_session *session KV_UNUSED, const nghttp2_frame *frame,
                     const uint8_t *name_bytes, size_t name_len, const uint8_t *value,
                     size_t value_len, uint8_t flags KV_UNUSED, void *ctx)
{
    struct grpc_reply *reply = reply_of(ctx, frame->hd.stream_id);
    struct str name = { (const char *)name_bytes, name_len };
    if (reply && str_eqz(name, ":path"))
        buf_add(&reply->method, (struct str){ (const char *)value, value_len });
    if (reply && str_eqz(name, "grpc-timeout"))
        snprintf(reply->timeout, sizeof reply->timeout, "%.*s", (int)value_len,
                 (const char *)value);
    return 0;
}

static int on_data(nghttp2_session *session KV_UNUSED, uint8_t flags KV_UNUSED, int32_t stream_id,
                   const uint8_t *bytes, size_t len, void *ctx)
{
    struct grpc_reply *reply = reply_of(ctx, stream_id);
    if (reply)
        grpc_frames_add(&reply->request, (struct str){ (const char *)bytes, len });
    return 0;
}

static void *run_handler(void *arg)
{
    struct grpc_reply *reply = arg;
    struct grpc_server *server = reply->server;
    struct str request = STR("");
    grpc_frames_peek(&reply->request, &request, NULL);
    server->options.handle(server->options.ctx, buf_str(&reply->method), request, reply);
    pthread_mutex_lock(&server->lock);
    reply_unref(reply);
    server->handler_count--;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
    return NULL;
}

static void request_complete(struct grpc_reply *reply)
{
    struct grpc_server *server = reply->server;
    pthread_mutex_lock(&server->lock);
    reply->refs += 2;
    server->reply_count++;
    server->handler_count++;
    pthread_mutex_unlock(&server->lock);
    if (!server->options.threaded) {
        run_handler(reply);
        return;
    }
    pthread_t thread;
    KV_ASSERT(thread_start(&thread, "grpc-handler", run_handler, reply, NULL) == 0);
    pthread_detach(thread);
}

static int on_frame(nghttp2_session *session KV_UNUSED, const nghttp2_frame *frame, void *ctx)
{
    struct grpc_reply *reply = reply_of(ctx, frame->hd.stream_id);
    bool body = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
    if (reply && body && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        request_complete(reply);
    return 0;
}

static void stream_gone(struct grpc_reply *reply)
{
    struct grpc_server *server = reply->server;
    pthread_mutex_lock(&server->lock);
    reply->cancelled = true;
    buf_done(&reply->out);
    reply->out_sent = 0;
    server->stream_count--;
    pthread_cond_broadcast(&server->changed);
    reply_unref(reply);
    pthread_mutex_unlock(&server->lock);
}

static int on_stream_close(nghttp2_session *session KV_UNUSED, int32_t stream_id,
                           uint32_t http2_error KV_UNUSED, void *ctx)
{
    struct conn *conn = ctx;
    struct grpc_reply *reply = reply_of(conn, stream_id);
    map_remove(&conn->replies, (uint64_t)stream_id, NULL);
    if (reply)
        stream_gone(reply);
    return 0;
}

/* --- connections --- */

static void conn_new(struct grpc_server *server, int fd)
{
    struct conn *conn = kv_calloc(1, sizeof *conn);
    conn->server = server;
    conn->fd = fd;
    conn->next = server->conns;
    server->conns = conn;

    nghttp2_session_callbacks *callbacks;
    KV_ASSERT(nghttp2_session_callbacks_new(&callbacks) == 0);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    nghttp2_option *option;
    KV_ASSERT(nghttp2_option_new(&option) == 0);
    nghttp2_option_set_stream_reset_rate_limit(option, UINT64_MAX,
                                               UINT64_MAX); /* tests cancel a lot */
    KV_ASSERT(nghttp2_session_server_new2(&conn->session, callbacks, conn, option) == 0);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);

    uint32_t streams_max = server->options.streams_max ? server->options.streams_max : 100;
    nghttp2_settings_entry settings[] = {
        { NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, streams_max },
        { NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW_BYTES },
    };
    nghttp2_submit_settings(conn->session, NGHTTP2_FLAG_NONE, settings, KV_COUNT_OF(settings));
    nghttp2_session_set_local_window_size(conn->session, NGHTTP2_FLAG_NONE, 0, WINDOW_BYTES);
    pthread_mutex_lock(&server->lock);
    server->connection_count++;
    pthread_mutex_unlock(&server->lock);
}

static void conn_free(struct conn *conn)
{
    nghttp2_session_del(conn->session);
    map_each(&conn->replies, it)
        stream_gone((struct grpc_reply *)it->value);
    map_done(&conn->replies);
    buf_done(&conn->out);
    close(conn->fd);
    free(conn);
}

static void conn_read(struct conn *conn)
{
    uint8_t bytes[16 << 10];
    ssize_t len = recv(conn->fd, bytes, sizeof bytes, 0);
    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    conn->broken = len <= 0 || nghttp2_session_mem_recv(conn->session, bytes, (size_t)len) != len;
}

static void conn_write(struct conn *conn)
{
    for (;;) {
        const uint8_t *bytes;
        ssize_t len = 1;
        while (conn->out.len < (64 << 10) &&
               (len = nghttp2_session_mem_send(conn->session, &bytes)) > 0)
            buf_add(&conn->out, (struct str){ (const char *)bytes, (size_t)len });
        if (len < 0 || (conn->out.len == 0 && !nghttp2_session_want_read(conn->session)))
            conn->broken = true; /* or it has said goodbye, and is done */
        if (conn->broken || conn->out.len == 0)
            return;
        ssize_t sent = send(conn->fd, conn->out.p, conn->out.len, MSG_NOSIGNAL);
        if (sent < 0) {
            conn->broken = errno != EAGAIN && errno != EINTR;
            return;
        }
        memmove(conn->out.p, conn->out.p + sent, conn->out.len - (size_t)sent);
        buf_cut(&conn->out, conn->out.len - (size_t)sent);
    }
}

/* --- the thread --- */

static void conns_write(struct grpc_server *server, bool saying_goodbye)
{
    for (struct conn *conn = server->conns; conn; conn = conn->next) {
        if (saying_goodbye)
            nghttp2_submit_goaway(conn->session, NGHTTP2_FLAG_NONE,
                                  nghttp2_session_get_last_proc_stream_id(conn->session),
                                  NGHTTP2_NO_ERROR, NULL, 0);
        pthread_mutex_lock(&server->lock);
        map_each(&conn->replies, it)
            reply_push((struct grpc_reply *)it->value);
        pthread_mutex_unlock(&server->lock);
        conn_write(conn);
    }
}

static void conns_close(struct grpc_server *server, bool all)
{
    struct conn **at = &server->conns;
    while (*at) {
        struct conn *conn = *at;
        if (!all && !conn->broken) {
            at = &conn->next;
            continue;
        }
        *at = conn->next;
        conn_free(conn);
    }
}

static void poll_once(struct grpc_server *server, bool paused)
{
    VEC(struct pollfd) fds = { 0 };
    VEC(struct conn *) conns = { 0 };
    vec_push(&fds, (struct pollfd){ .fd = server->wake_fd, .events = POLLIN });
    vec_push(&fds, (struct pollfd){ .fd = server->listen_fd, .events = POLLIN });
    for (struct conn *conn = paused ? NULL : server->conns; conn; conn = conn->next) {
        short events = conn->out.len > 0 ? POLLIN | POLLOUT : POLLIN;
        vec_push(&fds, (struct pollfd){ .fd = conn->fd, .events = events });
        vec_push(&conns, conn);
    }
    poll(fds.items, (nfds_t)fds.count, -1);
    eventfd_t count;
    if (fds.items[0].revents)
        eventfd_read(server->wake_fd, &count);
    for (size_t i = 0; i < conns.count; i++)
        if (fds.items[i + 2].revents & ~POLLOUT)
            conn_read(conns.items[i]);
    if (fds.items[1].revents) {
        int fd = accept4(server->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0)
            conn_new(server, fd);
    }
    vec_done(&fds);
    vec_done(&conns);
}

static void *server_main(void *arg)
{
    struct grpc_server *server = arg;
    for (;;) {
        pthread_mutex_lock(&server->lock);
        bool stopping = server->stopping, paused = server->paused;
        bool dropping = server->dropping, saying_goodbye = server->saying_goodbye;
        pthread_mutex_unlock(&server->lock);

        if (!paused)
            conns_write(server, saying_goodbye);
        conns_close(server, dropping || stopping);
        if (dropping || saying_goodbye) {
            pthread_mutex_lock(&server->lock);
            server->dropping &= !dropping;
            server->saying_goodbye &= !saying_goodbye;
            pthread_cond_broadcast(&server->changed);
            pthread_mutex_unlock(&server->lock);
        }
        if (stopping)
            return NULL;
        poll_once(server, paused);
    }
}

/* --- the server --- */

struct grpc_server *grpc_server_new(struct grpc_server_options options)
{
    struct grpc_server *server = kv_calloc(1, sizeof *server);
    server->options = options;
    server->address.sun_family = AF_UNIX;
    KV_ASSERT(strlen(options.path) < sizeof server->address.sun_path);
    memcpy(server->address.sun_path, options.path, strlen(options.path) + 1);
    server->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    KV_ASSERT(server->wake_fd >= 0);
    pthread_mutex_init(&server->lock, NULL);
    clock_cond_init(&server->changed);
    grpc_server_start(server);
    return server;
}

void grpc_server_start(struct grpc_server *server)
{
    KV_ASSERT(!server->running);
    unlink(server->address.sun_path);
    server->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    KV_ASSERT(server->listen_fd >= 0);
    const struct sockaddr *address = (const struct sockaddr *)&server->address;
    KV_ASSERT(bind(server->listen_fd, address, sizeof server->address) == 0);
    KV_ASSERT(listen(server->listen_fd, 128) == 0);
    server->stopping = false;
    KV_ASSERT(thread_start(&server->thread, "grpc-server", server_main, server, NULL) == 0);
    server->running = true;
}

void grpc_server_stop(struct grpc_server *server)
{
    if (!server->running)
        return;
    pthread_mutex_lock(&server->lock);
    server->stopping = true;
    pthread_mutex_unlock(&server->lock);
    nudge(server);
    unlink(server->address.sun_path); /* first: who is dropped finds nothing to come back to */
    pthread_join(server->thread, NULL);
    server->running = false;
    close(server->listen_fd);
}

void grpc_server_free(struct grpc_server *server)
{
    if (!server)
        return;
    grpc_server_stop(server);
    pthread_mutex_lock(&server->lock);
    while (server->handler_count > 0)
        pthread_cond_wait(&server->changed, &server->lock);
    KV_ASSERT(server->reply_count == 0);
    pthread_mutex_unlock(&server->lock);
    close(server->wake_fd);
    pthread_cond_destroy(&server->changed);
    pthread_mutex_destroy(&server->lock);
    free(server);
}

/* Ask the thread for something and wait until it is done, unless a handler asks in that thread. */
static void request_and_wait(struct grpc_server *server, bool *flag)
{
    pthread_mutex_lock(&server->lock);
    if (server->running) {
        *flag = true;
        nudge(server);
        while (*flag && !pthread_equal(pthread_self(), server->thread))
            pthread_cond_wait(&server->changed, &server->lock);
    }
    pthread_mutex_unlock(&server->lock);
}

void grpc_server_drop_connections(struct grpc_server *server)
{
    request_and_wait(server, &server->dropping);
}

void grpc_server_goaway(struct grpc_server *server)
{
    request_and_wait(server, &server->saying_goodbye);
}

static void set_paused(struct grpc_server *server, bool paused)
{
    pthread_mutex_lock(&server->lock);
    server->paused = paused;
    pthread_mutex_unlock(&server->lock);
    nudge(server);
}

void grpc_server_pause(struct grpc_server *server)
{
    set_paused(server, true);
}

void grpc_server_resume(struct grpc_server *server)
{
    set_paused(server, false);
}

uint32_t grpc_server_connections(struct grpc_server *server)
{
    pthread_mutex_lock(&server->lock);
    uint32_t count = server->connection_count;
    pthread_mutex_unlock(&server->lock);
    return count;
}

uint32_t grpc_server_streams(struct grpc_server *server)
{
    pthread_mutex_lock(&server->lock);
    uint32_t count = server->stream_count;
    pthread_mutex_unlock(&server->lock);
    return count;
}

/* net/grpc_io.c - the socket, and who waits for it.
 *
 * Whoever has something to send sends it, under the lock, as far as the socket takes it without
 * blocking. Who waits for the end of a call reads the connection meanwhile, whatever arrives on it and
 * for whomever, unless another caller does so already: a unary call is a write and a read by its
 * caller, and no other thread wakes for it. Otherwise the thread reads. It alone does away with
 * connections, ends calls that are out of time, and calls `wake`. It sleeps in epoll until a socket,
 * armed_ns or wake_fd has something for it; a caller that begins to read tells epoll to leave its socket
 * alone, and to watch it again when it stops, which does not wake the thread.
 *
 * armed_ns is not moved when a call ends, nor when a later deadline comes: nearly all calls end
 * well before theirs, so the thread looks up once per time limit instead of being told of each call.
 *
 * There is no keep-alive: the server is on this machine, and the kernel closes the socket of a
 * process that dies. One that is stopped and goes on later answers on the old connection as well as
 * it would on a new one. Only a connection on which the server has never spoken is given up when a
 * call runs out of time.
 */
#include "net/grpc_inner.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define OUT_BYTES ((size_t)32 << 10) /* taken from nghttp2 before a write */
#define READS_MAX 8                  /* of one connection before the others have their turn */
#define EVENTS_MAX 8                 /* taken from epoll at once; the rest comes next time */

void grpc_nudge(struct grpc *grpc)
{
    if (!grpc->asleep)
        return;
    grpc->asleep = false;
    eventfd_write(grpc->wake_fd, 1);
}

void grpc_nudge_reader(struct grpc *grpc)
{
    if (!grpc->reader_asleep)
        return;
    grpc->reader_asleep = false;
    eventfd_write(grpc->reader_fd, 1);
}

/* --- what the thread waits for --- */

static void watch(struct grpc_conn *conn)
{
    struct grpc *grpc = conn->grpc;
    uint32_t wanted = (grpc->reader_conn == conn ? 0 : EPOLLIN) | (conn->out.len ? EPOLLOUT : 0);
    if (conn->fd < 0 || conn->broken.kind != ERR_NONE || conn->watched == wanted)
        return;
    struct epoll_event event = { .events = wanted, .data.ptr = conn };
    KV_ASSERT(epoll_ctl(grpc->epoll_fd, EPOLL_CTL_MOD, conn->fd, &event) == 0);
    conn->watched = wanted;
}

static void watch_begin(struct grpc_conn *conn)
{
    conn->watched = EPOLLIN;
    struct epoll_event event = { .events = conn->watched, .data.ptr = conn };
    if (epoll_ctl(conn->grpc->epoll_fd, EPOLL_CTL_ADD, conn->fd, &event) < 0)
        grpc_conn_break(conn, "epoll: %s", strerror(errno));
}

/* Closing would not do it while a child process that was just forked has a copy of the socket. */
static void watch_end(struct grpc_conn *conn)
{
    if (conn->fd >= 0)
        epoll_ctl(conn->grpc->epoll_fd, EPOLL_CTL_DEL, conn->fd, NULL);
}

/* --- breaking --- */

static void attempt_failed(struct grpc *grpc, const struct err *why)
{
    int64_t min_ns = grpc->options.backoff_min_ns, max_ns = grpc->options.backoff_max_ns;
    uint32_t doublings = grpc->attempts_failed++;
    bool grown = doublings >= 62 || min_ns > max_ns >> doublings;
    grpc->retry_ns = grpc_now_ns() + (grown ? max_ns : min_ns << doublings);
    grpc->why = *why;
    log_debug(grpc->options.log, "grpc: no connection", LOG_Z("socket", grpc->options.path),
              LOG_INT("attempts", grpc->attempts_failed), LOG_ERR(why));
}

void grpc_conn_break(struct grpc_conn *conn, const char *fmt, ...)
{
    if (conn->broken.kind != ERR_NONE)
        return;
    char text[ERR_TEXT_MAX];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    err_set(&conn->broken, ERR_UNAVAILABLE, "%s: %s", conn->grpc->options.path, text);
    if (!conn->settled)
        attempt_failed(conn->grpc, &conn->broken);
    watch_end(conn);
    if (conn->grpc->reader_conn == conn)
        grpc_nudge_reader(conn->grpc); /* to let go of it */
    grpc_nudge(conn->grpc);            /* to do away with it */
}

/* --- sending --- */

/* False: there is nothing to send. */
static bool fill_out(struct grpc_conn *conn)
{
    while (conn->out.len < OUT_BYTES) {
        const uint8_t *bytes;
        ssize_t len = nghttp2_session_mem_send(conn->session, &bytes);
        if (len < 0)
            grpc_conn_break(conn, "%s", nghttp2_strerror((int)len));
        if (len <= 0)
            break;
        buf_add(&conn->out, (struct str){ (const char *)bytes, (size_t)len });
    }
    if (conn->fd < 0)
        buf_clear(&conn->out);
    return conn->out.len > 0;
}

/* nghttp2 has told the server what is wrong with it, or has been told, and nothing is left. */
static bool session_ended(const struct grpc_conn *conn)
{
    return !nghttp2_session_want_read(conn->session) && !nghttp2_session_want_write(conn->session);
}

void grpc_conn_flush(struct grpc_conn *conn)
{
    while (conn->broken.kind == ERR_NONE && fill_out(conn)) {
        ssize_t sent = send(conn->fd, conn->out.p + conn->out_sent, conn->out.len - conn->out_sent,
                            MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno == EAGAIN)
            break;
        if (sent < 0) {
            conn->unheard = true;
            grpc_conn_break(conn, "the connection broke: %s", strerror(errno));
            return;
        }
        conn->out_sent += (size_t)sent;
        if (conn->out_sent == conn->out.len) {
            conn->out_sent = 0;
            buf_clear(&conn->out);
        }
    }
    watch(conn);
    if (conn->out.len == 0 && session_ended(conn))
        grpc_conn_break(conn, "the server %s",
                        !conn->settled  ? "does not speak HTTP/2"
                        : conn->retired ? "said goodbye"
                                        : "broke the rules of HTTP/2");
}

/* --- connecting --- */

static int connect_socket(struct grpc *grpc, struct err *err)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_set(err, ERR_UNAVAILABLE, "%s: socket: %s", grpc->options.path, strerror(errno));
    if (connect(fd, (const struct sockaddr *)&grpc->address, sizeof grpc->address) == 0)
        return fd;
    int reason = errno;
    close(fd);
    if (reason == EAGAIN) /* a unix socket connects at once or not at all */
        return err_set(err, ERR_UNAVAILABLE, "%s: too many connections wait for the server",
                       grpc->options.path);
    return err_set(err, ERR_UNAVAILABLE, "%s: connect: %s", grpc->options.path, strerror(reason));
}

/* The connection for new calls; NULL: there is none, see `why`. */
static struct grpc_conn *conn_in_use(struct grpc *grpc)
{
    struct grpc_conn *first = grpc->conns;
    if (first && !first->retired && !grpc_conn_over(first))
        return first;
    if (grpc_now_ns() < grpc->retry_ns)
        return NULL;
    struct err err = { 0 };
    int fd = connect_socket(grpc, &err);
    if (fd < 0) {
        attempt_failed(grpc, &err);
        return NULL;
    }
    log_debug(grpc->options.log, "grpc: connected", LOG_Z("socket", grpc->options.path));
    struct grpc_conn *conn = grpc_conn_new(grpc, fd);
    watch_begin(conn);
    return conn;
}

void grpc_admit(struct grpc *grpc)
{
    while (grpc->line_first && !grpc->cork_count) {
        struct grpc_conn *conn = conn_in_use(grpc);
        if (!conn) {
            grpc_call_end(grpc->line_first, GRPC_UNAVAILABLE, "%s", grpc->why.text);
            continue;
        }
        if (!grpc_conn_has_room(conn))
            return;
        while (grpc->line_first && !conn->retired && grpc_conn_has_room(conn))
            conn->retired = !grpc_conn_submit(conn, grpc->line_first);
        grpc_conn_flush(conn); /* all that there was room for, in one write */
    }
}

/* --- receiving --- */

/* False: the socket has no more to read, or is closed. */
static bool read_some(struct grpc_conn *conn)
{
    struct grpc *grpc = conn->grpc;
    ssize_t len = recv(conn->fd, grpc->input, sizeof grpc->input, 0);
    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (len < 0)
        grpc_conn_break(conn, "the connection broke: %s", strerror(errno));
    if (len == 0)
        grpc_conn_break(conn, "the server closed the connection");
    if (len <= 0)
        return false;
    return grpc_conn_receive(conn, (struct str){ (const char *)grpc->input, (size_t)len }) &&
           (size_t)len == sizeof grpc->input;
}

static void conn_read(struct grpc_conn *conn)
{
    int count = 1;
    while (read_some(conn) && count < READS_MAX)
        count++;
}

/* --- a caller that reads --- */

static void reader_begin(struct grpc_call *call, struct grpc_conn *conn)
{
    struct grpc *grpc = conn->grpc;
    grpc->reader = call;
    grpc->reader_conn = conn;
    watch(conn);
}

static void reader_end(struct grpc *grpc)
{
    struct grpc_conn *conn = take(&grpc->reader_conn);
    grpc->reader = NULL;
    watch(conn);
    if (grpc_conn_over(conn))
        grpc_nudge(grpc); /* it could not do away with it before */
}

/* With the lock, which it gives away meanwhile: wait for the socket or a nudge. */
static void reader_wait_and_read(struct grpc *grpc)
{
    struct pollfd fds[] = { { .fd = grpc->reader_conn->fd, .events = POLLIN },
                            { .fd = grpc->reader_fd, .events = POLLIN } };
    grpc->reader_asleep = true;
    pthread_mutex_unlock(&grpc->lock);
    int ready = poll(fds, KV_COUNT_OF(fds), -1);
    pthread_mutex_lock(&grpc->lock);
    grpc->reader_asleep = false;

    if (ready <= 0)
        return;
    if (fds[1].revents) {
        eventfd_t count;
        eventfd_read(grpc->reader_fd, &count);
    }
    if (fds[0].revents) {
        conn_read(grpc->reader_conn);
        grpc_conn_flush(grpc->reader_conn);
        grpc_admit(grpc); /* a stream that was closed leaves room */
    }
}

void grpc_call_await(struct grpc_call *call)
{
    struct grpc *grpc = call->grpc;
    while (!call->ended) {
        if (call->conn && !grpc->reader && !grpc_conn_over(call->conn))
            reader_begin(call, call->conn);
        if (grpc->reader != call) {
            pthread_cond_wait(&call->moved, &grpc->lock);
            continue;
        }
        while (!call->ended && !grpc_conn_over(grpc->reader_conn))
            reader_wait_and_read(grpc);
        reader_end(grpc);
    }
}

void grpc_call_send_and_await(struct grpc_call *call)
{
    struct grpc *grpc = call->grpc;
    struct grpc_conn *conn = call->ended || grpc->reader ? NULL : conn_in_use(grpc);
    if (conn)
        reader_begin(call, conn);
    grpc_admit(grpc);
    if (conn && call->conn != conn) /* it has ended, or is still in line */
        reader_end(grpc);
    grpc_call_await(call);
}

/* --- the thread --- */

static void out_of_time(struct grpc_call *call)
{
    grpc_call_end(call, GRPC_DEADLINE_EXCEEDED, "no answer within %.3g s",
                  (double)call->options.timeout_ns / 1e9);
}

/* End what is out of time, and look again when the next one will be. */
static void expire(struct grpc *grpc)
{
    int64_t now_ns = grpc_now_ns();
    if (now_ns < grpc->armed_ns)
        return;
    int64_t next_ns = GRPC_NEVER;
    for (struct grpc_call *call = grpc->line_first, *next; call; call = next) {
        next = call->next;
        if (call->deadline_ns <= now_ns)
            out_of_time(call);
        else if (call->deadline_ns < next_ns)
            next_ns = call->deadline_ns;
    }
    for (struct grpc_conn *conn = grpc->conns; conn; conn = conn->next) {
        bool expired = false;
        map_each(&conn->calls, it) {
            struct grpc_call *call = (struct grpc_call *)it->value;
            if (!call)
                continue;
            if (call->deadline_ns <= now_ns) {
                out_of_time(call);
                expired = true;
            } else if (call->deadline_ns < next_ns) {
                next_ns = call->deadline_ns;
            }
        }
        if (expired && !conn->settled)
            grpc_conn_break(conn, "the server takes connections and says nothing");
    }
    grpc->armed_ns = next_ns;
}

static void bury(struct grpc *grpc, struct grpc_conn *conn)
{
    while (conn->unheard && read_some(conn))
        continue; /* answers that came before it broke are answers */
    map_each(&conn->calls, it) {
        struct grpc_call *call = (struct grpc_call *)it->value;
        if (!call)
            continue;
        call->conn = NULL;
        grpc_call_end(call, GRPC_UNAVAILABLE, "%s", conn->broken.text);
    }
    log_debug(grpc->options.log, "grpc: disconnected", LOG_Z("socket", grpc->options.path),
              LOG_ERR(&conn->broken));
    watch_end(conn); /* of one that did not break */
    grpc_conn_free(conn);
}

bool grpc_reap(struct grpc *grpc)
{
    bool found = false;
    struct grpc_conn **at = &grpc->conns;
    while (*at) {
        struct grpc_conn *conn = *at;
        if (!grpc_conn_over(conn) || conn == grpc->reader_conn) {
            at = &conn->next;
            continue;
        }
        *at = conn->next;
        bury(grpc, conn);
        found = true;
    }
    return found;
}

/* Everything that can be done without waiting. */
static void catch_up(struct grpc *grpc)
{
    do {
        expire(grpc);
        grpc_admit(grpc);
        for (struct grpc_conn *conn = grpc->conns; conn; conn = conn->next)
            grpc_conn_flush(conn);
    } while (grpc_reap(grpc)); /* a new connection for those in line, perhaps */
}

/* Call the `wake` of those who are due, without the lock. False: nobody was. */
static bool run_wakes(struct grpc *grpc)
{
    bool any = grpc->told_first != NULL;
    while (grpc->told_first) {
        struct grpc_call *call = grpc->told_first;
        grpc_told_remove(grpc, call);
        grpc->waking = call;
        struct grpc_call_options options = call->options;
        pthread_mutex_unlock(&grpc->lock);
        options.wake(options.ctx);
        pthread_mutex_lock(&grpc->lock);
        grpc->waking = NULL;
        pthread_cond_broadcast(&grpc->woken);
    }
    return any;
}

/* In milliseconds, as epoll has it, and not too early. */
static int time_left(int64_t until_ns)
{
    if (until_ns == GRPC_NEVER)
        return -1;
    int64_t left_ns = until_ns - grpc_now_ns();
    int64_t left_ms = left_ns > 0 ? (left_ns - 1) / 1000000 + 1 : 0;
    return left_ms < INT_MAX ? (int)left_ms : INT_MAX;
}

/* With the lock, which it gives away meanwhile: wait for a socket, a nudge or a deadline. */
static void wait_and_read(struct grpc *grpc)
{
    struct epoll_event events[EVENTS_MAX];
    int left_ms = time_left(grpc->armed_ns);
    grpc->asleep = true;
    pthread_mutex_unlock(&grpc->lock);
    int ready = epoll_wait(grpc->epoll_fd, events, EVENTS_MAX, left_ms);
    pthread_mutex_lock(&grpc->lock);
    grpc->asleep = false;

    for (int i = 0; i < ready; i++) {
        struct grpc_conn *conn = events[i].data.ptr; /* only this thread frees them */
        eventfd_t count;
        if (!conn)
            eventfd_read(grpc->wake_fd, &count);
        else if (events[i].events & ~(uint32_t)EPOLLOUT) /* what can be sent is, in any case */
            conn_read(conn);
    }
}

void *grpc_thread_main(void *arg)
{
    struct grpc *grpc = arg;

    pthread_mutex_lock(&grpc->lock);
    while (!grpc->closing) {
        catch_up(grpc);
        if (!run_wakes(grpc)) /* otherwise others had the lock: look again */
            wait_and_read(grpc);
    }
    pthread_mutex_unlock(&grpc->lock);
    return NULL;
}

/* net/http_peer_testing.c - libmicrohttpd with a thread for each connection, so a handler simply waits; and
 * what it has in common with HTTP/2 (http_peer_http2_testing.c). Both answer by the same plan (`plan_of`).
 * What stops a server itself from working is a failed KV_ASSERT. */
#include "net/http_peer_inner_testing.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* --- what is answered --- */

struct plan plan_of(struct str method, struct str target, struct str headers, struct str body)
{
    struct plan plan = { .status = 200 };
    int64_t number = 0;
    if (str_starts(target, STR("/status/"))) {
        str_to_i64(str_sub(target, 8, target.len), &number);
        plan.status = (int)number;
        buf_addf(&plan.body, "status %d", plan.status);
    } else if (str_starts(target, STR("/big/"))) {
        str_to_i64(str_sub(target, 5, target.len), &number);
        buf_reserve(&plan.body, (size_t)number);
        for (int64_t i = 0; i < number; i++)
            buf_addc(&plan.body, (char)('a' + i % 26));
    } else if (str_eqz(target, "/hold")) {
        plan.holds = true;
    } else if (str_eqz(target, "/stream")) {
        plan.streams = true;
    } else {
        buf_addf(&plan.body, "%.*s %.*s\n%.*s\n", STR_ARG(method), STR_ARG(target),
                 STR_ARG(headers));
        buf_add(&plan.body, body);
    }
    return plan;
}

/* --- HTTP/1.1 --- */

struct exchange { /* one request */
    struct http_peer *peer;
    struct buf headers, body;
    size_t place;
    uint32_t finish_count;
    bool counted;
};

static enum MHD_Result add_header(void *ctx, enum MHD_ValueKind kind KV_UNUSED, const char *name,
                                  const char *value)
{
    buf_addf(ctx, "%s: %s\n", name, value ? value : "");
    return MHD_YES;
}

static bool may_wait(struct exchange *x)
{
    return x->finish_count == x->peer->finish_count && !x->peer->stopping;
}

static void count_waiting(struct exchange *x)
{
    x->place = x->peer->pushed.len;
    x->finish_count = x->peer->finish_count;
    x->counted = true;
    x->peer->waiting_count++;
    pthread_cond_broadcast(&x->peer->moved);
}

static ssize_t read_pushed(void *ctx, uint64_t at KV_UNUSED, char *out, size_t max)
{
    struct exchange *x = ctx;
    struct http_peer *peer = x->peer;
    pthread_mutex_lock(&peer->lock);
    while (x->place == peer->pushed.len && may_wait(x))
        pthread_cond_wait(&peer->moved, &peer->lock);
    struct str got = str_sub(buf_str(&peer->pushed), x->place, max);
    if (got.len > 0)
        memcpy(out, got.p, got.len);
    x->place += got.len;
    pthread_mutex_unlock(&peer->lock);
    return got.len > 0 ? (ssize_t)got.len : MHD_CONTENT_READER_END_OF_STREAM;
}

static bool is_known(struct http_peer *peer, struct MHD_Connection *connection)
{
    if (!peer->options.client_ca)
        return true;
    unsigned status = 0;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    return gnutls_certificate_verify_peers2(info->tls_session, &status) == 0 && status == 0;
}

static enum MHD_Result answer(struct MHD_Connection *connection, struct exchange *x,
                              const char *target, const char *method)
{
    struct http_peer *peer = x->peer;
    struct plan plan =
        plan_of(str_of(method), str_of(target), buf_str(&x->headers), buf_str(&x->body));
    struct MHD_Response *response;
    if (!is_known(peer, connection))
        plan.status = 401;

    pthread_mutex_lock(&peer->lock);
    peer->request_count++;
    if (plan.holds || plan.streams)
        count_waiting(x);
    while (plan.holds && may_wait(x))
        pthread_cond_wait(&peer->moved, &peer->lock);
    pthread_mutex_unlock(&peer->lock);
    if (plan.streams)
        response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, read_pushed, x, NULL);
    else
        response = MHD_create_response_from_buffer(plan.body.len, (void *)buf_str(&plan.body).p,
                                                   MHD_RESPMEM_MUST_COPY);
    MHD_add_response_header(response, "Retry-After", "7");
    enum MHD_Result queued = MHD_queue_response(connection, (unsigned)plan.status, response);
    MHD_destroy_response(response);
    buf_done(&plan.body);
    return queued;
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *connection, const char *target,
                                  const char *method, const char *version KV_UNUSED,
                                  const char *piece, size_t *piece_len, void **state)
{
    struct exchange *x = *state;
    if (!x) {
        x = *state = kv_calloc(1, sizeof *x);
        x->peer = ctx;
        MHD_get_connection_values(connection, MHD_HEADER_KIND, add_header, &x->headers);
        return MHD_YES;
    }
    if (*piece_len > 0) {
        buf_add(&x->body, (struct str){ piece, *piece_len });
        *piece_len = 0;
        return MHD_YES;
    }
    return answer(connection, x, target, method);
}

static void on_request_end(void *ctx, struct MHD_Connection *connection KV_UNUSED, void **state,
                           enum MHD_RequestTerminationCode code KV_UNUSED)
{
    struct http_peer *peer = ctx;
    struct exchange *x = *state;
    if (!x)
        return;
    pthread_mutex_lock(&peer->lock);
    peer->waiting_count -= x->counted;
    pthread_mutex_unlock(&peer->lock);
    buf_done(&x->headers);
    buf_done(&x->body);
    free(x);
}

static void on_connection(void *ctx, struct MHD_Connection *connection KV_UNUSED,
                          void **state KV_UNUSED, enum MHD_ConnectionNotificationCode code)
{
    struct http_peer *peer = ctx;
    pthread_mutex_lock(&peer->lock);
    peer->connection_count += code == MHD_CONNECTION_NOTIFY_STARTED;
    pthread_mutex_unlock(&peer->lock);
}

static void start_http1(struct http_peer *peer)
{
    struct sockaddr_in loopback = { .sin_family = AF_INET,
                                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct MHD_OptionItem tls[4] = { { MHD_OPTION_END, 0, NULL } };
    size_t n = 0;
    if (peer->options.cert) {
        tls[n++] = (struct MHD_OptionItem){ MHD_OPTION_HTTPS_MEM_CERT, 0,
                                            (void *)peer->options.cert->cert_pem.p };
        tls[n++] = (struct MHD_OptionItem){ MHD_OPTION_HTTPS_MEM_KEY, 0,
                                            (void *)peer->options.cert->key_pem.p };
    }
    if (peer->options.client_ca)
        tls[n++] = (struct MHD_OptionItem){ MHD_OPTION_HTTPS_MEM_TRUST, 0,
                                            (void *)peer->options.client_ca->cert_pem.p };
    tls[n] = (struct MHD_OptionItem){ MHD_OPTION_END, 0, NULL };
    unsigned flags = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD |
                     (peer->options.cert ? MHD_USE_TLS : 0);
    peer->daemon = MHD_start_daemon(flags, 0, NULL, NULL, on_request, peer, MHD_OPTION_SOCK_ADDR,
                                    &loopback, MHD_OPTION_NOTIFY_CONNECTION, on_connection, peer,
                                    MHD_OPTION_NOTIFY_COMPLETED, on_request_end, peer,
                                    MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
    KV_ASSERT(peer->daemon);
    peer->port = MHD_get_daemon_info(peer->daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
}

/* --- both --- */

struct http_peer *http_peer_new(struct http_peer_options options)
{
    struct http_peer *peer = kv_calloc(1, sizeof *peer);
    peer->options = options;
    peer->listen_fd = peer->wake_fd = -1;
    pthread_mutex_init(&peer->lock, NULL);
    pthread_cond_init(&peer->moved, NULL);
    if (options.http2)
        http_peer_start_http2(peer);
    else
        start_http1(peer);
    return peer;
}

static void nudge_locked(struct http_peer *peer)
{
    pthread_cond_broadcast(&peer->moved);
    if (peer->wake_fd >= 0)
        KV_ASSERT(eventfd_write(peer->wake_fd, 1) == 0);
}

#define WITH_LOCK(peer, statement)                                                                 \
    do {                                                                                           \
        pthread_mutex_lock(&(peer)->lock);                                                         \
        statement;                                                                                 \
        nudge_locked(peer);                                                                        \
        pthread_mutex_unlock(&(peer)->lock);                                                       \
    } while (0)

void http_peer_free(struct http_peer *peer)
{
    if (!peer)
        return;
    WITH_LOCK(peer, peer->stopping = true);
    if (peer->daemon) {
        MHD_stop_daemon(peer->daemon);
    } else {
        pthread_join(peer->thread, NULL);
        gnutls_certificate_free_credentials(peer->credentials);
        close(peer->listen_fd);
        close(peer->wake_fd);
    }
    pthread_mutex_destroy(&peer->lock);
    pthread_cond_destroy(&peer->moved);
    buf_done(&peer->pushed);
    free(peer);
}

void http_peer_push(struct http_peer *peer, struct str piece)
{
    WITH_LOCK(peer, buf_add(&peer->pushed, piece));
}

void http_peer_finish(struct http_peer *peer)
{
    WITH_LOCK(peer, peer->finish_count++);
}

void http_peer_reset(struct http_peer *peer)
{
    WITH_LOCK(peer, peer->resetting = true);
}

void http_peer_goaway(struct http_peer *peer)
{
    WITH_LOCK(peer, peer->saying_goodbye = true);
}

void http_peer_cut(struct http_peer *peer)
{
    WITH_LOCK(peer, peer->cutting = true);
}

uint16_t http_peer_port(struct http_peer *peer)
{
    return peer->port;
}

static uint32_t count_of(struct http_peer *peer, const uint32_t *count)
{
    pthread_mutex_lock(&peer->lock);
    uint32_t n = *count;
    pthread_mutex_unlock(&peer->lock);
    return n;
}

uint32_t http_peer_connections(struct http_peer *peer)
{
    return count_of(peer, &peer->connection_count);
}
uint32_t http_peer_requests(struct http_peer *peer)
{
    return count_of(peer, &peer->request_count);
}
uint32_t http_peer_waiting(struct http_peer *peer)
{
    return count_of(peer, &peer->waiting_count);
}

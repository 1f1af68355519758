/* net/http_peer_http2_testing.c - HTTP/2 by nghttp2 with one thread for all connections, which looks at
 * every stream after each event. */
#include "net/http_peer_inner_testing.h"

#include "base/thread.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

struct stream {
    struct conn *conn;
    struct stream *next;
    int32_t id;
    struct buf method, target, headers, body;
    struct plan plan;
    size_t place;
    uint32_t finish_count;
    bool waits;    /* counted as waiting */
    bool answered; /* it has a head */
};

struct conn {
    struct http_peer *peer;
    struct conn *next;
    int fd;
    gnutls_session_t tls;
    nghttp2_session *session;
    struct stream *streams;
    bool ready, broken; /* past the handshake */
};

static ssize_t on_send(nghttp2_session *session KV_UNUSED, const uint8_t *p, size_t len,
                       int flags KV_UNUSED, void *ctx)
{
    ssize_t n = gnutls_record_send(((struct conn *)ctx)->tls, p, len);
    if (n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED)
        return NGHTTP2_ERR_WOULDBLOCK;
    return n < 0 ? NGHTTP2_ERR_CALLBACK_FAILURE : n;
}

static ssize_t on_read(nghttp2_session *session KV_UNUSED, int32_t id KV_UNUSED, uint8_t *out,
                       size_t max, uint32_t *flags, nghttp2_data_source *source,
                       void *ctx KV_UNUSED)
{
    struct stream *s = source->ptr;
    struct http_peer *peer = s->conn->peer;
    pthread_mutex_lock(&peer->lock);
    bool finished = s->finish_count != peer->finish_count;
    struct str all = s->plan.streams ? buf_str(&peer->pushed) : buf_str(&s->plan.body);
    struct str piece = str_sub(all, s->place, max);
    if (piece.len > 0)
        memcpy(out, piece.p, piece.len);
    s->place += piece.len;
    bool all_sent = s->place == all.len;
    pthread_mutex_unlock(&peer->lock);
    if (all_sent && (finished || !s->plan.streams))
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    else if (piece.len == 0)
        return NGHTTP2_ERR_DEFERRED;
    return (ssize_t)piece.len;
}

static void stream_answer(struct stream *s)
{
    char status[16];
    snprintf(status, sizeof status, "%d", s->plan.status);
    nghttp2_nv head[] = {
        { (uint8_t *)":status", (uint8_t *)status, 7, strlen(status), NGHTTP2_NV_FLAG_NONE },
        { (uint8_t *)"retry-after", (uint8_t *)"7", 11, 1, NGHTTP2_NV_FLAG_NONE },
    };
    nghttp2_data_provider body = { .source.ptr = s, .read_callback = on_read };
    s->answered = true;
    nghttp2_submit_response(s->conn->session, s->id, head, KV_COUNT_OF(head), &body);
}

static void stream_plan(struct stream *s)
{
    struct http_peer *peer = s->conn->peer;
    s->plan =
        plan_of(buf_str(&s->method), buf_str(&s->target), buf_str(&s->headers), buf_str(&s->body));
    s->waits = s->plan.holds || s->plan.streams;
    pthread_mutex_lock(&peer->lock);
    s->finish_count = peer->finish_count;
    s->place = s->plan.streams ? peer->pushed.len : 0;
    peer->request_count++;
    peer->waiting_count += s->waits;
    pthread_mutex_unlock(&peer->lock);
    if (!s->plan.holds)
        stream_answer(s);
}

static struct stream *stream_of(nghttp2_session *session, int32_t id)
{
    return nghttp2_session_get_stream_user_data(session, id);
}

static int on_begin(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
    struct conn *conn = ctx;
    struct stream *s = kv_calloc(1, sizeof *s);
    *s = (struct stream){ .conn = conn, .id = frame->hd.stream_id, .next = conn->streams };
    conn->streams = s;
    nghttp2_session_set_stream_user_data(session, s->id, s);
    return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_len, const uint8_t *value, size_t value_len,
                     uint8_t flags KV_UNUSED, void *ctx KV_UNUSED)
{
    struct stream *s = stream_of(session, frame->hd.stream_id);
    struct str key = { (const char *)name, name_len }, text = { (const char *)value, value_len };
    if (str_eqz(key, ":method"))
        buf_add(&s->method, text);
    else if (str_eqz(key, ":path"))
        buf_add(&s->target, text);
    buf_addf(&s->headers, "%.*s: %.*s\n", STR_ARG(key), STR_ARG(text));
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags KV_UNUSED, int32_t id, const uint8_t *p,
                   size_t len, void *ctx KV_UNUSED)
{
    buf_add(&stream_of(session, id)->body, (struct str){ (const char *)p, len });
    return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *ctx KV_UNUSED)
{
    struct stream *s = stream_of(session, frame->hd.stream_id);
    bool is_request = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
    if (s && is_request && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        stream_plan(s);
    return 0;
}

static void stream_free(struct stream *s)
{
    struct stream **at = &s->conn->streams;
    struct http_peer *peer = s->conn->peer;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    pthread_mutex_lock(&peer->lock);
    peer->waiting_count -= s->waits;
    pthread_mutex_unlock(&peer->lock);
    buf_done(&s->method);
    buf_done(&s->target);
    buf_done(&s->headers);
    buf_done(&s->body);
    buf_done(&s->plan.body);
    free(s);
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t code KV_UNUSED,
                    void *ctx KV_UNUSED)
{
    struct stream *s = stream_of(session, id);
    if (s)
        stream_free(s);
    return 0;
}

static void conn_add(struct http_peer *peer)
{
    struct conn *conn = kv_calloc(1, sizeof *conn);
    nghttp2_session_callbacks *callbacks;
    nghttp2_settings_entry settings[] = { { NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 100 } };
    gnutls_datum_t h2 = { (unsigned char *)"h2", 2 };

    conn->peer = peer;
    conn->fd = accept4(peer->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    KV_ASSERT(conn->fd >= 0);
    setsockopt(conn->fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
    gnutls_init(&conn->tls, GNUTLS_SERVER | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL);
    gnutls_set_default_priority(conn->tls);
    gnutls_credentials_set(conn->tls, GNUTLS_CRD_CERTIFICATE, peer->credentials);
    gnutls_alpn_set_protocols(conn->tls, &h2, 1, GNUTLS_ALPN_MANDATORY);
    if (peer->options.client_ca)
        gnutls_certificate_server_set_request(conn->tls, GNUTLS_CERT_REQUIRE);
    gnutls_transport_set_int(conn->tls, conn->fd);

    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_send_callback(callbacks, on_send);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_session_server_new(&conn->session, callbacks, conn);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(conn->session, NGHTTP2_FLAG_NONE, settings, 1);

    conn->next = peer->conns;
    peer->conns = conn;
    pthread_mutex_lock(&peer->lock);
    peer->connection_count++;
    pthread_mutex_unlock(&peer->lock);
}

static void conn_free(struct conn *conn)
{
    while (conn->streams)
        stream_free(conn->streams);
    nghttp2_session_del(conn->session);
    gnutls_deinit(conn->tls);
    close(conn->fd);
    free(conn);
}

static void conn_read(struct conn *conn)
{
    uint8_t piece[16384];
    ssize_t n;
    if (!conn->ready) {
        int rc = gnutls_handshake(conn->tls);
        conn->ready = rc == 0;
        conn->broken = rc < 0 && gnutls_error_is_fatal(rc);
    }
    while (conn->ready && !conn->broken) {
        n = gnutls_record_recv(conn->tls, piece, sizeof piece);
        if (n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED)
            return;
        conn->broken = n <= 0 || nghttp2_session_mem_recv(conn->session, piece, (size_t)n) < 0;
    }
}

/* What was pushed, finished or asked for as a fault since the last look. */
static void conn_look(struct conn *conn, bool resets, bool goodbye)
{
    struct http_peer *peer = conn->peer;
    pthread_mutex_lock(&peer->lock);
    uint32_t finish_count = peer->finish_count;
    pthread_mutex_unlock(&peer->lock);
    for (struct stream *s = conn->streams; s; s = s->next) {
        if (resets)
            nghttp2_submit_rst_stream(conn->session, NGHTTP2_FLAG_NONE, s->id,
                                      NGHTTP2_INTERNAL_ERROR);
        else if (s->plan.holds && !s->answered && s->finish_count != finish_count)
            stream_answer(s);
        else if (s->plan.streams)
            nghttp2_session_resume_data(conn->session, s->id);
    }
    if (goodbye)
        nghttp2_submit_goaway(conn->session, NGHTTP2_FLAG_NONE,
                              nghttp2_session_get_last_proc_stream_id(conn->session),
                              NGHTTP2_NO_ERROR, NULL, 0);
    if (conn->ready && !conn->broken)
        conn->broken = nghttp2_session_send(conn->session) != 0 ||
                       (!nghttp2_session_want_read(conn->session) &&
                        !nghttp2_session_want_write(conn->session));
}

static void drop_broken(struct http_peer *peer)
{
    struct conn **at = &peer->conns;
    while (*at) {
        struct conn *conn = *at;
        if (!conn->broken) {
            at = &conn->next;
            continue;
        }
        *at = conn->next;
        conn_free(conn);
    }
}

static bool http2_turn(struct http_peer *peer)
{
    pthread_mutex_lock(&peer->lock);
    bool resets = peer->resetting, goodbye = peer->saying_goodbye, cuts = peer->cutting;
    bool stopping = peer->stopping;
    peer->resetting = peer->saying_goodbye = peer->cutting = false;
    pthread_mutex_unlock(&peer->lock);
    for (struct conn *conn = peer->conns; conn; conn = conn->next) {
        conn_read(conn);
        conn->broken |= cuts || stopping;
        if (!conn->broken)
            conn_look(conn, resets, goodbye);
    }
    drop_broken(peer);
    return !stopping;
}

#define CONNS_MAX 256

static void *http2_main(void *arg)
{
    struct http_peer *peer = arg;
    while (http2_turn(peer)) {
        struct pollfd fds[CONNS_MAX + 2] = { { .fd = peer->wake_fd, .events = POLLIN },
                                             { .fd = peer->listen_fd, .events = POLLIN } };
        nfds_t count = 2;
        for (struct conn *conn = peer->conns; conn; conn = conn->next) {
            KV_ASSERT(count < CONNS_MAX);
            bool writes = conn->ready ? nghttp2_session_want_write(conn->session)
                                      : gnutls_record_get_direction(conn->tls);
            fds[count++] = (struct pollfd){ .fd = conn->fd,
                                            .events = (short)(writes ? POLLIN | POLLOUT : POLLIN) };
        }
        poll(fds, count, -1);
        uint64_t nudges;
        if (fds[0].revents)
            KV_ASSERT(read(peer->wake_fd, &nudges, sizeof nudges) == sizeof nudges);
        if (fds[1].revents)
            conn_add(peer);
    }
    return NULL;
}

void http_peer_start_http2(struct http_peer *peer)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof at;
    gnutls_datum_t cert = { (unsigned char *)peer->options.cert->cert_pem.p,
                            (unsigned)peer->options.cert->cert_pem.len };
    gnutls_datum_t key = { (unsigned char *)peer->options.cert->key_pem.p,
                           (unsigned)peer->options.cert->key_pem.len };
    gnutls_certificate_allocate_credentials(&peer->credentials);
    KV_ASSERT(gnutls_certificate_set_x509_key_mem(peer->credentials, &cert, &key,
                                                  GNUTLS_X509_FMT_PEM) == 0);
    if (peer->options.client_ca) {
        gnutls_datum_t ca = { (unsigned char *)peer->options.client_ca->cert_pem.p,
                              (unsigned)peer->options.client_ca->cert_pem.len };
        KV_ASSERT(gnutls_certificate_set_x509_trust_mem(peer->credentials, &ca,
                                                        GNUTLS_X509_FMT_PEM) == 1);
    }
    peer->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    peer->wake_fd = eventfd(0, EFD_CLOEXEC);
    KV_ASSERT(bind(peer->listen_fd, (struct sockaddr *)&at, len) == 0);
    KV_ASSERT(listen(peer->listen_fd, 128) == 0);
    KV_ASSERT(getsockname(peer->listen_fd, (struct sockaddr *)&at, &len) == 0);
    peer->port = ntohs(at.sin_port);
    KV_ASSERT(thread_start(&peer->thread, "http2 peer", http2_main, peer, NULL) == 0);
}

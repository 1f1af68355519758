/* store/kube_server_testing.c - a thread that accepts, and one for each connection. */
#include "store/kube_server_testing.h"

#include "base/thread.h"
#include "base/vec.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#define REQUEST_BYTES_MAX ((size_t)1 << 20)

struct reply {
    struct buf bytes;
    size_t piece_bytes; /* written apart; 0: all at once */
    enum kube_server_then then;
};

struct connection {
    struct kube_server *server;
    pthread_t thread;
    int fd;
};

struct kube_server {
    int fd;
    uint16_t port;
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    VEC(struct reply) script;
    size_t script_ix;
    VEC(struct str) requests; /* owned */
    VEC(struct connection *) connections;
};

/* --- one connection --- */

/* More bytes of the request; false: there are none. */
static bool receive(int fd, struct buf *in)
{
    buf_reserve(in, 4096);
    ssize_t n = recv(fd, in->p + in->len, 4096, 0);
    if (n <= 0)
        return false;
    in->len += (size_t)n;
    in->p[in->len] = '\0';
    return in->len < REQUEST_BYTES_MAX;
}

static size_t body_bytes(const char *head)
{
    const char *at = strcasestr(head, "\r\nContent-Length:");
    return at ? strtoul(at + strlen("\r\nContent-Length:"), NULL, 10) : 0;
}

/* The first record of a client that wants to speak TLS; it comes in one piece. */
static bool is_tls_hello(struct str request)
{
    return request.len > 0 && request.p[0] == 0x16;
}

static bool receive_request(int fd, struct buf *in)
{
    char *end;
    buf_clear(in);
    do {
        if (!receive(fd, in))
            return false;
        if (is_tls_hello(buf_str(in)))
            return true;
    } while (!(end = strstr(in->p, "\r\n\r\n")));
    size_t whole = (size_t)(end - in->p) + 4 + body_bytes(in->p);
    while (in->len < whole) {
        if (!receive(fd, in))
            return false;
    }
    return true;
}

static void send_all(int fd, struct str bytes)
{
    while (bytes.len > 0) {
        ssize_t n = send(fd, bytes.p, bytes.len, MSG_NOSIGNAL);
        if (n <= 0)
            return;
        bytes = str_sub(bytes, (size_t)n, bytes.len);
    }
}

static struct reply next_reply(struct kube_server *s, struct str request)
{
    struct reply none = { .then = KUBE_SERVER_CLOSE };
    pthread_mutex_lock(&s->lock);
    vec_push(&s->requests, (struct str){ str_dup(request), request.len });
    struct reply reply = s->script_ix < s->script.count ? s->script.items[s->script_ix++] : none;
    pthread_mutex_unlock(&s->lock);
    return reply;
}

static bool answer(struct connection *c, struct str request)
{
    struct reply reply = next_reply(c->server, request);
    struct str bytes = buf_str(&reply.bytes);

    if (bytes.len == 0 && reply.then == KUBE_SERVER_CLOSE && !is_tls_hello(request))
        bytes = STR("HTTP/1.1 599 Not In The Script\r\nContent-Length: 0\r\n\r\n");
    size_t piece = reply.piece_bytes ? reply.piece_bytes : bytes.len;
    for (size_t at = 0; at < bytes.len; at += piece)
        send_all(c->fd, str_sub(bytes, at, piece));
    if (reply.then == KUBE_SERVER_HOLD) {
        char ignored;
        while (recv(c->fd, &ignored, 1, 0) > 0)
            continue;
    }
    return reply.then == KUBE_SERVER_NEXT;
}

static void *connection_main(void *arg)
{
    struct connection *c = arg;
    AUTO_BUF request = { 0 };
    int on = 1;

    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    while (receive_request(c->fd, &request) && answer(c, buf_str(&request)))
        continue;
    shutdown(c->fd, SHUT_RDWR); /* closed by who joins us: the number must not be another's yet */
    return NULL;
}

/* --- the server --- */

static void *accept_main(void *arg)
{
    struct kube_server *s = arg;
    int fd;

    while ((fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        struct connection *c = kv_calloc(1, sizeof *c);
        struct err err = { 0 };
        c->server = s;
        c->fd = fd;
        pthread_mutex_lock(&s->lock);
        vec_push(&s->connections, c);
        KV_ASSERT(thread_start(&c->thread, "kube-conn", connection_main, c, &err) == 0);
        pthread_mutex_unlock(&s->lock);
    }
    return NULL;
}

struct kube_server *kube_server_new(void)
{
    struct kube_server *s = kv_calloc(1, sizeof *s);
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof at;
    struct err err = { 0 };

    pthread_mutex_init(&s->lock, NULL);
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    KV_ASSERT(s->fd >= 0);
    KV_ASSERT(bind(s->fd, (struct sockaddr *)&at, sizeof at) == 0);
    KV_ASSERT(listen(s->fd, 64) == 0);
    KV_ASSERT(getsockname(s->fd, (struct sockaddr *)&at, &len) == 0);
    s->port = ntohs(at.sin_port);
    KV_ASSERT(thread_start(&s->thread, "kube-server", accept_main, s, &err) == 0);
    return s;
}

void kube_server_free(struct kube_server *s)
{
    if (!s)
        return;
    shutdown(s->fd, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->fd);
    vec_each(&s->connections, struct connection *, it) {
        shutdown((*it)->fd, SHUT_RDWR);
        pthread_join((*it)->thread, NULL);
        close((*it)->fd);
        free(*it);
    }
    vec_each(&s->script, struct reply, reply)
        buf_done(&reply->bytes);
    vec_each(&s->requests, struct str, request)
        free((char *)request->p);
    vec_done(&s->connections);
    vec_done(&s->script);
    vec_done(&s->requests);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

uint16_t kube_server_port(struct kube_server *s)
{
    return s->port;
}

/* --- the script --- */

static void add_reply(struct kube_server *s, struct reply reply)
{
    pthread_mutex_lock(&s->lock);
    vec_push(&s->script, reply);
    pthread_mutex_unlock(&s->lock);
}

void kube_server_reply(struct kube_server *s, int status, const char *headers, struct str body)
{
    struct reply reply = { .then = KUBE_SERVER_NEXT };
    buf_addf(&reply.bytes, "HTTP/1.1 %d Said\r\n%sContent-Length: %zu\r\n\r\n", status, headers,
             body.len);
    buf_add(&reply.bytes, body);
    add_reply(s, reply);
}

void kube_server_stream(struct kube_server *s, struct str body, size_t piece_bytes,
                        enum kube_server_then then)
{
    struct reply reply = { .piece_bytes = piece_bytes, .then = then };
    buf_addz(&reply.bytes, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                           "Transfer-Encoding: chunked\r\n\r\n");
    for (size_t at = 0; at < body.len; at += piece_bytes) {
        struct str piece = str_sub(body, at, piece_bytes);
        buf_addf(&reply.bytes, "%zx\r\n%.*s\r\n", piece.len, STR_ARG(piece));
    }
    if (then == KUBE_SERVER_NEXT)
        buf_addz(&reply.bytes, "0\r\n\r\n");
    add_reply(s, reply);
}

void kube_server_raw(struct kube_server *s, struct str bytes, enum kube_server_then then)
{
    struct reply reply = { .then = then };
    buf_add(&reply.bytes, bytes);
    add_reply(s, reply);
}

/* --- what was asked --- */

size_t kube_server_requests(struct kube_server *s)
{
    pthread_mutex_lock(&s->lock);
    size_t count = s->requests.count;
    pthread_mutex_unlock(&s->lock);
    return count;
}

struct str kube_server_request(struct kube_server *s, size_t ix)
{
    pthread_mutex_lock(&s->lock);
    struct str request = ix < s->requests.count ? s->requests.items[ix] : STR("");
    pthread_mutex_unlock(&s->lock);
    return request;
}

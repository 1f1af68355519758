/* See http_faults.h. A thread per connection, which takes one request after the other: reads it whole, draws its
 * fate, asks the server, and answers. A watch is passed on as it comes, in chunks, until either side ends it.
 */
#include "kube/http_faults.h"

#include "base/file.h"
#include "base/rng.h"
#include "base/thread.h"
#include "net/http.h"
#include "support/test.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECTIONS_MAX 256 /* further ones are closed at once */
#define HEAD_BYTES_MAX ((size_t)64 << 10)
#define BODY_BYTES_MAX ((size_t)16 << 20)
#define PEM_BYTES_MAX ((size_t)1 << 20)
#define WATCH_BYTES_MAX 4096 /* of a watch that will be cut, before that */
#define NO_FAULT HTTP_FAULTS

const char *const http_fault_names[HTTP_FAULTS] = { "429",      "503",       "503-bare",
                                                    "500",      "504",       "500-done",
                                                    "504-done", "truncated", "silent" };

struct connection {
    struct http_faults *f;
    pthread_t thread;
    int fd;          /* -1: the slot is free */
    bool ended;      /* the thread is to be joined */
    int wake;        /* eventfd: the server's answer has something */
    struct buf read; /* from the client, not yet used */
};

struct http_faults {
    char server[64];
    struct http *http;
    int listener;
    uint16_t port;
    pthread_t thread;

    pthread_mutex_t lock; /* guards the rest */
    bool ending;
    struct rng rng;
    struct http_faults_rules rules;
    struct http_faults_counts counts;
    struct connection connections[CONNECTIONS_MAX];
};

struct request { /* points into the connection's buffer */
    struct str method, target, accept, content_type, user_agent, body;
    bool watch;
    size_t bytes; /* all of it */
};

/* --- the client's side --- */

static bool send_all(int fd, struct str bytes)
{
    while (bytes.len > 0) {
        ssize_t n = send(fd, bytes.p, bytes.len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        bytes = str_sub(bytes, (size_t)n, bytes.len);
    }
    return true;
}

static bool read_more(struct connection *c)
{
    char chunk[16384];
    ssize_t n;
    do
        n = recv(c->fd, chunk, sizeof chunk, 0);
    while (n < 0 && errno == EINTR);
    if (n > 0)
        buf_add(&c->read, (struct str){ chunk, (size_t)n });
    return n > 0;
}

static void take_header(struct request *r, struct str name, struct str value, int64_t *body_bytes)
{
    static const char *const names[] = { "accept", "content-type", "user-agent" };
    struct str *const values[] = { &r->accept, &r->content_type, &r->user_agent };
    for (size_t i = 0; i < KV_COUNT_OF(names); i++)
        if (name.len == strlen(names[i]) && strncasecmp(name.p, names[i], name.len) == 0)
            *values[i] = value;
    if (name.len == 14 && strncasecmp(name.p, "content-length", 14) == 0 &&
        !str_to_i64(value, body_bytes))
        *body_bytes = -1;
}

static void read_lines(struct str head, struct request *out, int64_t *body_bytes)
{
    struct str line, rest = head, name, value;
    str_cut(rest, '\n', &line, &rest);
    str_cut(line, ' ', &out->method, &line);
    str_cut(line, ' ', &out->target, &line);
    while (str_cut(rest, '\n', &line, &rest))
        if (str_cut(line, ':', &name, &value))
            take_header(out, name, str_trim(value), body_bytes);
    out->watch = out->target.len > 0 && memmem(out->target.p, out->target.len, "watch=", 6) != NULL;
}

/* False: the client has gone, or says what we do not know: none of ours does. */
static bool read_request(struct connection *c, struct request *out)
{
    const char *end;
    int64_t body_bytes = 0;
    while (c->read.len == 0 || !(end = memmem(c->read.p, c->read.len, "\r\n\r\n", 4)))
        if (c->read.len > HEAD_BYTES_MAX || !read_more(c))
            return false;
    size_t head_bytes = (size_t)(end - c->read.p) + 4;
    *out = (struct request){ 0 };
    read_lines(str_sub(buf_str(&c->read), 0, head_bytes), out, &body_bytes);
    if (!out->target.len || body_bytes < 0 || (size_t)body_bytes > BODY_BYTES_MAX)
        return false;
    while (c->read.len < head_bytes + (size_t)body_bytes)
        if (!read_more(c))
            return false;
    /* Reading on may have moved the bytes. */
    *out = (struct request){ .bytes = head_bytes + (size_t)body_bytes };
    read_lines(str_sub(buf_str(&c->read), 0, head_bytes), out, &body_bytes);
    if (body_bytes > 0)
        out->body = str_sub(buf_str(&c->read), head_bytes, (size_t)body_bytes);
    return true;
}

static bool answer_fault(struct connection *c, int status, const char *maybe_header)
{
    AUTO_BUF text = { 0 }, body = { 0 };
    buf_addf(&body,
             "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\","
             "\"message\":\"a fault that was put in\",\"code\":%d}",
             status);
    buf_addf(&text,
             "HTTP/1.1 %d Fault\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n%s\r\n",
             status, body.len, maybe_header ? maybe_header : "");
    buf_add(&text, buf_str(&body));
    return send_all(c->fd, buf_str(&text));
}

/* --- the server's side --- */

/* "timeoutSeconds=300" becomes what the rules say. */
static void add_target(struct buf *out, struct str target, uint32_t watch_seconds)
{
    static const char key[] = "timeoutSeconds=";
    const char *at = memmem(target.p, target.len, key, sizeof key - 1);
    if (!at || !watch_seconds) {
        buf_add(out, target);
        return;
    }
    size_t from = (size_t)(at - target.p) + sizeof key - 1, to = from;
    while (to < target.len && char_is_digit(target.p[to]))
        to++;
    buf_add(out, str_sub(target, 0, from));
    buf_addf(out, "%u", watch_seconds);
    buf_add(out, str_sub(target, to, target.len));
}

static void woken(void *ctx)
{
    struct connection *c = ctx;
    (void)!write(c->wake, &(uint64_t){ 1 }, sizeof(uint64_t));
}

static struct http_call *ask(struct connection *c, const struct request *r, uint32_t watch_seconds)
{
    AUTO_BUF url = { 0 };
    AUTO_FREE char *method = str_dup(r->method);
    struct http_header headers[3];
    uint32_t count = 0;
    if (r->accept.len)
        headers[count++] = (struct http_header){ STR("Accept"), r->accept };
    if (r->content_type.len)
        headers[count++] = (struct http_header){ STR("Content-Type"), r->content_type };
    if (r->user_agent.len)
        headers[count++] = (struct http_header){ STR("User-Agent"), r->user_agent };
    buf_addz(&url, c->f->server);
    add_target(&url, r->target, watch_seconds);
    return http_start(c->f->http, &(struct http_request){ .method = method,
                                                          .url = buf_str(&url),
                                                          .headers = headers,
                                                          .header_count = count,
                                                          .body = r->body,
                                                          .stream = r->watch,
                                                          .wake = r->watch ? woken : NULL,
                                                          .ctx = c });
}

static void add_head(struct buf *out, struct http_call *call, int status)
{
    static const char *const kept[] = { "Content-Type", "Retry-After", "Warning" };
    buf_addf(out, "HTTP/1.1 %d Passed\r\n", status);
    for (size_t i = 0; i < KV_COUNT_OF(kept); i++) {
        struct str value = http_reply_header(call, str_of(kept[i]));
        if (value.p)
            buf_addf(out, "%s: %.*s\r\n", kept[i], STR_ARG(value));
    }
}

/* The true answer, or the first half of it. */
static bool answer_whole(struct connection *c, struct http_call *call, bool truncated)
{
    struct http_reply reply;
    struct err err;
    AUTO_BUF text = { 0 };
    if (http_finish(call, &reply, &err) < 0)
        return answer_fault(c, 502, NULL);
    add_head(&text, call, reply.status);
    buf_addf(&text, "Content-Length: %zu\r\n\r\n", reply.body.len);
    buf_add(&text, str_sub(reply.body, 0, truncated ? reply.body.len / 2 : reply.body.len));
    return send_all(c->fd, buf_str(&text)) && !truncated;
}

static bool wait_for_either(struct connection *c)
{
    struct pollfd polls[2] = { { .fd = c->wake, .events = POLLIN },
                               { .fd = c->fd, .events = POLLIN | POLLRDHUP } };
    uint64_t ignored;
    if (poll(polls, 2, -1) < 0)
        return errno == EINTR;
    if (polls[0].revents)
        (void)!read(c->wake, &ignored, sizeof ignored);
    return polls[1].revents == 0; /* nobody asks for more while a watch runs */
}

/* `cut_after` bytes it breaks; 0: never. */
static bool pass_chunks(struct connection *c, struct http_call *call, size_t cut_after)
{
    AUTO_BUF piece = { 0 }, text = { 0 };
    struct err err;
    for (size_t passed = 0;;) {
        buf_clear(&piece);
        buf_clear(&text);
        switch (http_take(call, &piece, &err)) {
        case HTTP_NOTHING:
            if (!wait_for_either(c))
                return false;
            continue;
        case HTTP_BYTES:
            break;
        case HTTP_ENDED:
            pthread_mutex_lock(&c->f->lock);
            c->f->counts.watches_ended++;
            pthread_mutex_unlock(&c->f->lock);
            return send_all(c->fd, STR("0\r\n\r\n"));
        case HTTP_FAILED:
            return false;
        }
        if (cut_after && passed + piece.len >= cut_after)
            buf_cut(&piece, cut_after - passed);
        passed += piece.len;
        if (piece.len > 0) {
            buf_addf(&text, "%zx\r\n", piece.len);
            buf_add(&text, buf_str(&piece));
            buf_addz(&text, "\r\n");
        }
        if (!send_all(c->fd, buf_str(&text)) || passed == cut_after)
            return false;
    }
}

static bool answer_watch(struct connection *c, struct http_call *call, size_t cut_after)
{
    int status = 0;
    struct err err;
    AUTO_BUF text = { 0 };
    if (http_head(call, &status, &err) < 0)
        return answer_fault(c, 502, NULL);
    add_head(&text, call, status);
    buf_addz(&text, "Transfer-Encoding: chunked\r\n\r\n");
    return send_all(c->fd, buf_str(&text)) && pass_chunks(c, call, cut_after);
}

/* --- one request --- */

struct fate {
    uint32_t fault; /* NO_FAULT: none */
    uint32_t watch_seconds;
    size_t cut_after;
};

static struct fate draw(struct http_faults *f, const struct request *r)
{
    struct fate fate = { .fault = NO_FAULT };
    pthread_mutex_lock(&f->lock);
    fate.watch_seconds = f->rules.watch_seconds;
    f->counts.requests++;
    f->counts.watches += r->watch;
    if (f->rules.one_in && rng_below(&f->rng, f->rules.one_in) == 0) {
        fate.fault = (uint32_t)rng_below(&f->rng, HTTP_FAULTS);
        fate.cut_after = 1 + (size_t)rng_below(&f->rng, WATCH_BYTES_MAX);
        f->counts.faults[fate.fault]++;
    }
    pthread_mutex_unlock(&f->lock);
    return fate;
}

/* False: the connection is over. */
static bool serve_done(struct connection *c, const struct request *r, const struct fate *fate)
{
    AUTO(http_call) call = ask(c, r, fate->watch_seconds);
    bool truncated = fate->fault == FAULT_TRUNCATED;
    if (fate->fault == NO_FAULT || truncated)
        return r->watch ? answer_watch(c, call, truncated ? fate->cut_after : 0)
                        : answer_whole(c, call, truncated);
    struct http_reply reply;
    struct err err;
    if (!r->watch)
        http_finish(call, &reply, &err); /* carried out, whatever came of it */
    if (fate->fault == FAULT_SILENT)
        return false;
    return answer_fault(c, fate->fault == FAULT_500_DONE ? 500 : 504, NULL);
}

static bool serve(struct connection *c, const struct request *r)
{
    struct fate fate = draw(c->f, r);
    switch (fate.fault) {
    case FAULT_429:
        return answer_fault(c, 429, "Retry-After: 1\r\n");
    case FAULT_503:
        return answer_fault(c, 503, "Retry-After: 1\r\n");
    case FAULT_503_BARE:
        return answer_fault(c, 503, NULL);
    case FAULT_500:
        return answer_fault(c, 500, NULL);
    case FAULT_504:
        return answer_fault(c, 504, NULL);
    default:
        return serve_done(c, r, &fate);
    }
}

static void *connection_main(void *arg)
{
    struct connection *c = arg;
    struct request request;
    while (read_request(c, &request) && serve(c, &request)) {
        size_t left = c->read.len - request.bytes;
        memmove(c->read.p, c->read.p + request.bytes, left);
        buf_cut(&c->read, left);
    }
    shutdown(c->fd, SHUT_RDWR);
    pthread_mutex_lock(&c->f->lock);
    c->ended = true;
    pthread_mutex_unlock(&c->f->lock);
    return NULL;
}

/* --- connections --- */

static void forget(struct connection *c)
{
    pthread_join(c->thread, NULL);
    close(c->fd);
    close(c->wake);
    buf_done(&c->read);
    c->fd = -1;
}

/* A slot that is free, or gets so; NULL: none. Only the listening thread fills and frees slots. */
static struct connection *free_slot(struct http_faults *f)
{
    struct connection *found = NULL;
    for (uint32_t i = 0; i < CONNECTIONS_MAX; i++) {
        struct connection *c = &f->connections[i];
        pthread_mutex_lock(&f->lock);
        bool over = c->fd >= 0 && c->ended;
        pthread_mutex_unlock(&f->lock);
        if (over)
            forget(c);
        if (c->fd < 0)
            found = c;
    }
    return found;
}

static void take_connection(struct http_faults *f, int fd)
{
    struct connection *c = free_slot(f);
    struct err err;
    int yes = 1;
    if (!c) {
        close(fd);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    *c = (struct connection){ .f = f, .fd = fd, .wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
    if (thread_start(&c->thread, "http-fault", connection_main, c, &err) == 0)
        return;
    close(c->fd);
    close(c->wake);
    c->fd = -1;
}

static void *listener_main(void *arg)
{
    struct http_faults *f = arg;
    for (;;) {
        int fd = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC);
        pthread_mutex_lock(&f->lock);
        bool ending = f->ending;
        pthread_mutex_unlock(&f->lock);
        if (fd >= 0 && !ending)
            take_connection(f, fd);
        else if (fd >= 0)
            close(fd);
        if (ending)
            return NULL;
    }
}

/* --- for the tests --- */

static void read_pem(const char *path, struct buf *out)
{
    struct err err;
    EXPECT_OK(file_read(path, PEM_BYTES_MAX, out, &err), err);
}

static struct http *client(const struct http_faults_options *options)
{
    AUTO_BUF ca = { 0 }, cert = { 0 }, key = { 0 };
    struct http *http = NULL;
    struct err err;
    read_pem(options->ca_path, &ca);
    read_pem(options->cert_path, &cert);
    read_pem(options->key_path, &key);
    EXPECT_OK(http_new((struct http_options){ .proxy = "",
                                              .tls = { .ca_pem = buf_str(&ca),
                                                       .cert_pem = buf_str(&cert),
                                                       .key_pem = buf_str(&key) } },
                       &http, &err),
              err);
    return http;
}

struct http_faults *http_faults_start(struct http_faults_options options)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof address;
    struct err err;
    struct http *http = client(&options);
    struct http_faults *f = kv_calloc(1, sizeof *f);
    f->http = http;
    snprintf(f->server, sizeof f->server, "%s", options.server);
    rng_init(&f->rng, options.seed);
    pthread_mutex_init(&f->lock, NULL);
    for (uint32_t i = 0; i < CONNECTIONS_MAX; i++)
        f->connections[i].fd = -1;
    f->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (f->listener < 0 || bind(f->listener, (struct sockaddr *)&address, len) < 0 ||
        listen(f->listener, 128) < 0 ||
        getsockname(f->listener, (struct sockaddr *)&address, &len) < 0)
        fail_msg("http faults: %s", strerror(errno));
    f->port = ntohs(address.sin_port);
    EXPECT_OK(thread_start(&f->thread, "http-faults", listener_main, f, &err), err);
    return f;
}

void http_faults_free(struct http_faults *f)
{
    if (!f)
        return;
    pthread_mutex_lock(&f->lock);
    f->ending = true;
    pthread_mutex_unlock(&f->lock);
    shutdown(f->listener, SHUT_RDWR);
    pthread_join(f->thread, NULL);
    for (uint32_t i = 0; i < CONNECTIONS_MAX; i++) {
        struct connection *c = &f->connections[i];
        if (c->fd < 0)
            continue;
        shutdown(c->fd, SHUT_RDWR);
        forget(c);
    }
    close(f->listener);
    http_free(f->http);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

uint16_t http_faults_port(const struct http_faults *f)
{
    return f->port;
}

void http_faults_set(struct http_faults *f, struct http_faults_rules rules)
{
    pthread_mutex_lock(&f->lock);
    f->rules = rules;
    pthread_mutex_unlock(&f->lock);
}

struct http_faults_counts http_faults_counts(struct http_faults *f)
{
    pthread_mutex_lock(&f->lock);
    struct http_faults_counts counts = f->counts;
    pthread_mutex_unlock(&f->lock);
    return counts;
}

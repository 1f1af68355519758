/* net/http_server.h - a small HTTP server: probes, metrics, local APIs. On libmicrohttpd.
 *
 * It listens on a port, or on a unix socket that only its own user may open. Each connection has a
 * thread of its own, so a handler may take its time (a scrape of a large cluster) and holds up
 * nobody else; handlers are called from several threads at once. They answer with a whole body or
 * with a stream of pieces, each of which is sent as soon as it is there. A route is for GET and HEAD,
 * and for POST if it says so; any other method is 405, an unknown path 404. Requests have limits in
 * size and time, connections in number. With TLS, who must show a certificate and does not gets no
 * answer but 403.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"

#define SERVED_CONNECTIONS_MAX 64
#define SERVED_HEAD_BYTES_MAX (32 << 10)        /* request line and headers; beyond: 431 or 414 */
#define SERVED_BODY_BYTES_MAX ((size_t)4 << 20) /* beyond: 413 */
#define SERVED_IDLE_SECONDS_MAX 15              /* then a connection that says nothing is closed */
#define SERVED_STREAM_SECONDS_MAX 1             /* so long `next` of a stream may take */

struct served_request {
    struct str method, path, query; /* query: without the question mark, as sent */
    struct str body;
};

/* A body that is made while it is sent. */
struct served_stream {
    /* Adds the next piece, waiting for it no longer than SERVED_STREAM_SECONDS_MAX: in between the
     * server looks whether the client has gone or it is being stopped. 1: go on, perhaps with nothing
     * yet; 0: that was all. NULL: the reply is no stream. */
    int (*next)(void *ctx, struct buf *piece);
    void (*done)(void *ctx); /* once, however it ends; may be NULL */
    void *ctx;
};

struct served_reply {
    int status;               /* 200 unless the handler says otherwise */
    const char *content_type; /* "text/plain; charset=utf-8" unless it says otherwise */
    struct buf body;          /* the server's to free; of a stream the first piece */
    struct served_stream stream;
};

typedef void http_handler_fn(void *ctx, const struct served_request *request,
                             struct served_reply *reply);

struct http_route {
    const char *path; /* "/metrics"; exact, or a prefix that ends in a slash */
    http_handler_fn *handle;
    void *ctx;
    bool post; /* takes POST as well as GET */
};

/* PEM texts; copied. */
struct http_server_tls {
    struct str cert_pem, key_pem; /* empty: no TLS */
    struct str client_ca_pem; /* who connects must show a certificate of its; empty: nobody need */
};

/* Would a server take them? ERR_INVALID says why not. */
int http_server_tls_check(const struct http_server_tls *tls, struct err *err);

struct http_server_options {
    const char *unix_path; /* of a socket, mode 0600; then there is no port. NULL: none. Copied */
    const char *address;   /* "127.0.0.1", "::", "" for all */
    uint16_t port;         /* 0: any; http_server_port tells */
    const struct http_route
        *routes; /* copied, their texts borrowed; of several the longest path wins */
    uint32_t route_count;
    struct http_server_tls tls;
    size_t body_bytes_max; /* 0: SERVED_BODY_BYTES_MAX */
    uint32_t idle_seconds; /* 0: SERVED_IDLE_SECONDS_MAX */
};

struct http_server;
/* ERR_INVALID: no such address, no path for a socket, or no certificate. ERR_DENIED: the folder is not ours to write.
 * ERR_UNAVAILABLE: it is in use, or the system has no more to give. A socket that nobody listens on any
 * more is replaced; of several servers that start at the same moment on it, one may be left without. */
int http_server_start(struct http_server_options options, struct http_server **out,
                      struct err *err);
/* Waits for handlers and `next` of streams, not for clients; the socket's file is removed. NULL is fine. */
void http_server_stop(struct http_server *server);
KV_AUTO_TYPE(http_server, http_server_stop)
uint16_t http_server_port(const struct http_server *server); /* 0: it is a unix socket */

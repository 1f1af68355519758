/* net/http_server.c - libmicrohttpd parses, we find the route and call its handler.
 *
 * The listening socket is made here rather than by the library: its errors are worth telling, and
 * port 0 must be asked for what it became.
 *
 * A request is an object of ours from its first line (first_line, where the query is still as it was
 * sent) to its end (request_ended). In between the library calls `serve` first with the headers,
 * then with each piece of the body, then once more without one. What can be refused by its headers
 * is refused at the first call, before any body is read; the library then closes the connection.
 *
 * A streamed reply is pulled by the library from stream_read, on the connection's own thread, which may
 * therefore block there. The library does not look at the socket meanwhile, so stream_read does; and
 * the time that nothing was there to send must not count as a client's silence.
 */
#include "net/http_server.h"

#include "net/unix_socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define HTTP_STREAM_BLOCK_BYTES (16 << 10) /* sent at once; a piece may be longer */

struct http_server {
    struct MHD_Daemon *daemon;
    struct http_route *routes;
    uint32_t route_count;
    uint16_t port;
    size_t body_bytes_max;
    uint32_t idle_seconds;
    char *maybe_cert, *maybe_key, *maybe_client_ca; /* PEM: the library borrows them */
    struct unix_socket socket;                      /* path NULL: it is a port */
    atomic_bool stopping;                           /* streams end */
};

struct request {
    char *query;
    struct buf body;
    const struct http_route *route; /* NULL: the headers have not been seen */
};

/* --- streams --- */

struct stream {
    const struct http_server *server;
    struct MHD_Connection *connection;
    struct served_stream made_by;
    struct buf piece;
    size_t sent_bytes; /* of the piece */
    bool ended;
};

/* The client has hung up, or closed its half: then there is no telling one from the other. */
static bool client_gone(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct pollfd look = { .fd = info ? info->connect_fd : -1, .events = POLLRDHUP };
    return poll(&look, 1, 0) > 0 && (look.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

/* A new piece. False: there is no more, or nobody for it. */
static bool stream_refill(struct stream *stream)
{
    buf_clear(&stream->piece);
    stream->sent_bytes = 0;
    /* Off and on again makes the library count the client's silence from now. */
    MHD_set_connection_option(stream->connection, MHD_CONNECTION_OPTION_TIMEOUT, 0u);
    while (stream->piece.len == 0 && !stream->ended) {
        if (atomic_load(&stream->server->stopping) || client_gone(stream->connection))
            return false;
        stream->ended = stream->made_by.next(stream->made_by.ctx, &stream->piece) <= 0;
    }
    MHD_set_connection_option(stream->connection, MHD_CONNECTION_OPTION_TIMEOUT,
                              (unsigned int)SERVED_IDLE_SECONDS_MAX);
    return true;
}

static ssize_t stream_read(void *ctx, uint64_t position KV_UNUSED, char *out, size_t out_max)
{
    struct stream *stream = ctx;
    if (stream->sent_bytes == stream->piece.len && !stream_refill(stream))
        return MHD_CONTENT_READER_END_WITH_ERROR;
    size_t len = stream->piece.len - stream->sent_bytes;
    if (len == 0)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (len > out_max)
        len = out_max;
    memcpy(out, stream->piece.p + stream->sent_bytes, len);
    stream->sent_bytes += len;
    return (ssize_t)len;
}

static void stream_free(void *ctx)
{
    struct stream *stream = ctx;
    if (stream->made_by.done)
        stream->made_by.done(stream->made_by.ctx);
    buf_done(&stream->piece);
    free(stream);
}

static struct MHD_Response *stream_response(const struct http_server *server,
                                            struct MHD_Connection *connection,
                                            struct served_reply *reply)
{
    struct stream *stream = kv_calloc(1, sizeof *stream);
    *stream = (struct stream){
        .server = server, .connection = connection, .made_by = reply->stream, .piece = reply->body
    };
    reply->body = (struct buf){ 0 };
    struct MHD_Response *response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, HTTP_STREAM_BLOCK_BYTES, stream_read, stream, stream_free);
    if (!response)
        stream_free(stream);
    return response;
}

/* For HEAD: of a body without a length the library would send the end. */
static void stream_forget(struct served_reply *reply)
{
    if (reply->stream.next && reply->stream.done)
        reply->stream.done(reply->stream.ctx);
    reply->stream = (struct served_stream){ 0 };
}

/* --- answering --- */

static struct MHD_Response *body_response(struct served_reply *reply)
{
    size_t len = reply->body.len;
    char *bytes = buf_take(&reply->body);
    struct MHD_Response *response =
        MHD_create_response_from_buffer(len, bytes, MHD_RESPMEM_MUST_FREE);
    if (!response)
        free(bytes);
    return response;
}

static enum MHD_Result answer(const struct http_server *server, struct MHD_Connection *connection,
                              struct served_reply *reply, const char *maybe_allow)
{
    struct MHD_Response *response =
        reply->stream.next ? stream_response(server, connection, reply) : body_response(reply);
    if (!response)
        return MHD_NO;
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, reply->content_type);
    if (maybe_allow)
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, maybe_allow);
    enum MHD_Result result = MHD_queue_response(connection, (unsigned int)reply->status, response);
    MHD_destroy_response(response);
    return result;
}

static struct served_reply plain_reply(int status)
{
    return (struct served_reply){ .status = status, .content_type = "text/plain; charset=utf-8" };
}

static enum MHD_Result refuse(const struct http_server *server, struct MHD_Connection *connection,
                              int status, const char *words, const char *maybe_allow)
{
    struct served_reply reply = plain_reply(status);
    buf_addf(&reply.body, "%s\n", words);
    return answer(server, connection, &reply, maybe_allow);
}

/* --- routes --- */

static bool route_matches(const struct http_route *route, struct str path)
{
    struct str own = str_of(route->path);
    return str_ends(own, STR("/")) ? str_starts(path, own) : str_eq(path, own);
}

static const struct http_route *route_find(const struct http_server *server, struct str path)
{
    const struct http_route *best = NULL;
    for (uint32_t i = 0; i < server->route_count; i++) {
        const struct http_route *route = &server->routes[i];
        if (route_matches(route, path) && (!best || strlen(route->path) > strlen(best->path)))
            best = route;
    }
    return best;
}

static bool route_takes(const struct http_route *route, struct str method)
{
    return str_eqz(method, "GET") || str_eqz(method, "HEAD") ||
           (route->post && str_eqz(method, "POST"));
}

/* --- requests --- */

static void *first_line(void *ctx KV_UNUSED, const char *uri,
                        struct MHD_Connection *connection KV_UNUSED)
{
    struct request *request = kv_calloc(1, sizeof *request);
    const char *mark = strchr(uri, '?');
    request->query = kv_strdup(mark ? mark + 1 : "");
    return request;
}

static void request_ended(void *ctx KV_UNUSED, struct MHD_Connection *connection KV_UNUSED,
                          void **state, enum MHD_RequestTerminationCode how KV_UNUSED)
{
    struct request *request = *state;
    if (!request)
        return;
    buf_done(&request->body);
    free(request->query);
    free(request);
    *state = NULL;
}

/* The library asks for a certificate and believes whatever it gets. */
static bool client_believed(const struct http_server *server, struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    unsigned int status = UINT32_MAX;
    if (!server->maybe_client_ca)
        return true;
    return info && info->tls_session &&
           gnutls_certificate_verify_peers2(info->tls_session, &status) == GNUTLS_E_SUCCESS &&
           status == 0;
}

static bool body_announced_too_long(const struct http_server *server,
                                    struct MHD_Connection *connection)
{
    const char *text =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
    int64_t length = 0;
    /* A length that is no number the library refuses by itself. */
    return text && str_to_i64(str_of(text), &length) && length > (int64_t)server->body_bytes_max;
}

static enum MHD_Result serve(void *ctx, struct MHD_Connection *connection, const char *url,
                             const char *method, const char *version KV_UNUSED,
                             const char *body_piece, size_t *body_piece_len, void **state)
{
    const struct http_server *server = ctx;
    struct request *request = *state;
    struct str path = str_of(url);

    if (!request->route) {
        const struct http_route *route = route_find(server, path);
        if (!client_believed(server, connection))
            return refuse(server, connection, 403, "a certificate that is believed here is needed",
                          NULL);
        if (!route)
            return refuse(server, connection, 404, "there is nothing here", NULL);
        if (!route_takes(route, str_of(method)))
            return refuse(server, connection, 405, "that method is not for this",
                          route->post ? "GET, HEAD, POST" : "GET, HEAD");
        if (body_announced_too_long(server, connection))
            return refuse(server, connection, 413, "the body is too long", NULL);
        request->route = route;
        return MHD_YES;
    }
    if (*body_piece_len > 0) {
        /* In chunks, so it was not known before: no answer can be given in the middle of a body. */
        if (*body_piece_len > server->body_bytes_max - request->body.len)
            return MHD_NO;
        buf_add(&request->body, (struct str){ body_piece, *body_piece_len });
        *body_piece_len = 0;
        return MHD_YES;
    }
    struct served_reply reply = plain_reply(200);
    struct served_request asked = {
        .method = str_of(method),
        .path = path,
        .query = str_of(request->query),
        .body = buf_str(&request->body),
    };
    request->route->handle(request->route->ctx, &asked, &reply);
    if (str_eqz(asked.method, "HEAD"))
        stream_forget(&reply);
    return answer(server, connection, &reply, NULL);
}

/* --- starting --- */

static int listen_on(const struct addrinfo *where)
{
    int fd = socket(where->ai_family, where->ai_socktype | SOCK_CLOEXEC, where->ai_protocol);
    if (fd < 0)
        return -1;
    int on = 1, off = 0;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (where->ai_family == AF_INET6) /* "::" is for both */
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(fd, where->ai_addr, where->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0)
        return fd;
    int problem = errno;
    close(fd);
    errno = problem;
    return -1;
}

static int open_socket(const char *address, uint16_t port, int *out, struct err *err)
{
    /* "": both families if there are two, so "::" first. */
    const char *const everywhere[] = { "::", "0.0.0.0" };
    const char *const *names = address[0] ? &address : everywhere;
    size_t name_count = address[0] ? 1 : KV_COUNT_OF(everywhere);
    char service[8];
    int problem = 0;

    snprintf(service, sizeof service, "%u", (unsigned)port);
    for (size_t i = 0; i < name_count; i++) {
        const struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
                                        .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV };
        struct addrinfo *found = NULL;
        if (getaddrinfo(names[i], service, &hints, &found) != 0)
            return err_set(err, ERR_INVALID, "%s is not an IP address",
                           STR_SHOWN(str_of(names[i])));
        int fd = listen_on(found);
        problem = errno;
        freeaddrinfo(found);
        if (fd >= 0) {
            *out = fd;
            return 0;
        }
        if (problem == EADDRINUSE)
            break; /* the other family would hide what is wrong */
    }
    return err_set(err, ERR_UNAVAILABLE, "listen on port %s of %s: %s", service,
                   address[0] ? address : "all addresses", strerror(problem));
}

static uint16_t port_of(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } name = { 0 };
    socklen_t len = sizeof name;
    if (getsockname(fd, &name.any, &len) < 0)
        return 0;
    return ntohs(name.any.sa_family == AF_INET6 ? name.v6.sin6_port : name.v4.sin_port);
}

/* The server's threads take no signals: those are for whoever started it. */
static struct MHD_Daemon *start_daemon(struct http_server *server, int fd)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    struct MHD_OptionItem tls[] = {
        { MHD_OPTION_HTTPS_MEM_CERT, 0, server->maybe_cert },
        { MHD_OPTION_HTTPS_MEM_KEY, 0, server->maybe_key },
        { server->maybe_client_ca ? MHD_OPTION_HTTPS_MEM_TRUST : MHD_OPTION_END, 0,
          server->maybe_client_ca },
        { MHD_OPTION_END, 0, NULL },
    };
    const unsigned int flags =
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL;
    struct MHD_Daemon *daemon =
        MHD_start_daemon(flags | (server->maybe_cert ? MHD_USE_TLS : 0), 0, NULL, NULL, serve,
                         server, MHD_OPTION_LISTEN_SOCKET, fd,                              /* */
                         MHD_OPTION_URI_LOG_CALLBACK, first_line, NULL,                     /* */
                         MHD_OPTION_NOTIFY_COMPLETED, request_ended, NULL,                  /* */
                         MHD_OPTION_CONNECTION_LIMIT, (unsigned int)SERVED_CONNECTIONS_MAX, /* */
                         MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)server->idle_seconds, /* */
                         MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)SERVED_HEAD_BYTES_MAX, /* */
                         MHD_OPTION_ARRAY, server->maybe_cert ? tls : &tls[3],              /* */
                         MHD_OPTION_END);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return daemon;
}

/* The library would only say that it did not start. */
int http_server_tls_check(const struct http_server_tls *tls, struct err *err)
{
    gnutls_certificate_credentials_t trial;
    gnutls_datum_t cert = { (unsigned char *)tls->cert_pem.p, (unsigned int)tls->cert_pem.len },
                   key = { (unsigned char *)tls->key_pem.p, (unsigned int)tls->key_pem.len },
                   ca = { (unsigned char *)tls->client_ca_pem.p,
                          (unsigned int)tls->client_ca_pem.len };
    if (!tls->cert_pem.len)
        return tls->key_pem.len || tls->client_ca_pem.len
                   ? err_set(err, ERR_INVALID, "TLS needs a certificate")
                   : 0;
    if (gnutls_certificate_allocate_credentials(&trial) != GNUTLS_E_SUCCESS)
        return err_set(err, ERR_UNAVAILABLE, "TLS cannot be set up");
    int of_pair = gnutls_certificate_set_x509_key_mem(trial, &cert, &key, GNUTLS_X509_FMT_PEM);
    int of_ca = tls->client_ca_pem.len
                    ? gnutls_certificate_set_x509_trust_mem(trial, &ca, GNUTLS_X509_FMT_PEM)
                    : 1;
    gnutls_certificate_free_credentials(trial);
    if (of_pair < 0)
        return err_set(err, ERR_INVALID, "certificate and key: %s", gnutls_strerror(of_pair));
    if (of_ca <= 0)
        return err_set(err, ERR_INVALID, "the clients' authority: %s",
                       of_ca < 0 ? gnutls_strerror(of_ca) : "there is no certificate in it");
    return 0;
}

int http_server_start(struct http_server_options options, struct http_server **out, struct err *err)
{
    int fd = -1;
    if (http_server_tls_check(&options.tls, err) < 0)
        return -1;
    struct unix_socket unix_socket = { 0 };
    int rc = options.unix_path
                 ? unix_listen(options.unix_path, &unix_socket, &fd, err)
                 : open_socket(options.address ? options.address : "", options.port, &fd, err);
    if (rc < 0)
        return -1;
    struct http_server *server = kv_calloc(1, sizeof *server);
    server->socket = unix_socket;
    server->body_bytes_max =
        options.body_bytes_max ? options.body_bytes_max : SERVED_BODY_BYTES_MAX;
    server->idle_seconds = options.idle_seconds ? options.idle_seconds : SERVED_IDLE_SECONDS_MAX;
    if (options.tls.cert_pem.len) {
        server->maybe_cert = str_dup(options.tls.cert_pem);
        server->maybe_key = str_dup(options.tls.key_pem);
    }
    if (options.tls.client_ca_pem.len)
        server->maybe_client_ca = str_dup(options.tls.client_ca_pem);
    server->route_count = options.route_count;
    server->routes =
        kv_calloc(options.route_count ? options.route_count : 1, sizeof *server->routes);
    for (uint32_t i = 0; i < options.route_count; i++) {
        KV_ASSERT(options.routes[i].path[0] == '/');
        server->routes[i] = options.routes[i];
    }
    server->port = options.unix_path ? 0 : port_of(fd);
    server->daemon = start_daemon(server, fd); /* which owns the socket from here on */
    if (!server->daemon) {
        http_server_stop(server);
        return err_set(err, ERR_UNAVAILABLE, "the HTTP server could not start its threads");
    }
    *out = server;
    return 0;
}

void http_server_stop(struct http_server *server)
{
    if (!server)
        return;
    atomic_store(&server->stopping, true);
    unix_socket_remove(&server->socket); /* while nobody else can be listening on it yet */
    if (server->daemon)
        MHD_stop_daemon(server->daemon);
    if (server->maybe_key)
        explicit_bzero(server->maybe_key, strlen(server->maybe_key));
    free(server->maybe_cert);
    free(server->maybe_key);
    free(server->maybe_client_ca);
    free(server->routes);
    free(server);
}

uint16_t http_server_port(const struct http_server *server)
{
    return server->port;
}

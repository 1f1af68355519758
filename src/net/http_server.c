/* net/http_server.c - libmicrohttpd parses, we find the route and call its handler.
 *
 * The listening socket is made here rather than by the library: its errors are worth telling, and
 * port 0 must be asked for what it became.
 *
 * A request is an object of ours from its first line (first_line, where the query is still as it was
 * sent) to its end (request_ended). In between the library calls `serve` first with the headers,
 * then with each piece of the body, then once more without one. What can be refused by its headers
 * is refused at the first call, before any body is read; the library then closes the connection.
 */
#include "net/http_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

struct http_server {
    struct MHD_Daemon *daemon;
    struct http_route *routes;
    uint32_t route_count;
    uint16_t port;
};

struct request {
    char *query;
    struct buf body;
    const struct http_route *route; /* NULL: the headers have not been seen */
};

/* --- answering --- */

static enum MHD_Result answer(struct MHD_Connection *connection, struct http_reply *reply,
                              const char *maybe_allow)
{
    size_t len = reply->body.len;
    char *bytes = buf_take(&reply->body);
    struct MHD_Response *response =
        MHD_create_response_from_buffer(len, bytes, MHD_RESPMEM_MUST_FREE);
    if (!response) {
        free(bytes);
        return MHD_NO;
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, reply->content_type);
    if (maybe_allow)
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, maybe_allow);
    enum MHD_Result result = MHD_queue_response(connection, (unsigned int)reply->status, response);
    MHD_destroy_response(response);
    return result;
}

static struct http_reply plain_reply(int status)
{
    return (struct http_reply){ .status = status, .content_type = "text/plain; charset=utf-8" };
}

static enum MHD_Result refuse(struct MHD_Connection *connection, int status, const char *words,
                              const char *maybe_allow)
{
    struct http_reply reply = plain_reply(status);
    buf_addf(&reply.body, "%s\n", words);
    return answer(connection, &reply, maybe_allow);
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

static bool body_announced_too_long(struct MHD_Connection *connection)
{
    const char *text =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
    int64_t length = 0;
    /* A length that is no number the library refuses by itself. */
    return text && str_to_i64(str_of(text), &length) && length > (int64_t)HTTP_BODY_BYTES_MAX;
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
        if (!route)
            return refuse(connection, 404, "there is nothing here", NULL);
        if (!route_takes(route, str_of(method)))
            return refuse(connection, 405, "that method is not for this",
                          route->post ? "GET, HEAD, POST" : "GET, HEAD");
        if (body_announced_too_long(connection))
            return refuse(connection, 413, "the body is too long", NULL);
        request->route = route;
        return MHD_YES;
    }
    if (*body_piece_len > 0) {
        /* In chunks, so it was not known before: no answer can be given in the middle of a body. */
        if (*body_piece_len > HTTP_BODY_BYTES_MAX - request->body.len)
            return MHD_NO;
        buf_add(&request->body, (struct str){ body_piece, *body_piece_len });
        *body_piece_len = 0;
        return MHD_YES;
    }
    struct http_reply reply = plain_reply(200);
    struct http_request asked = {
        .method = str_of(method),
        .path = path,
        .query = str_of(request->query),
        .body = buf_str(&request->body),
    };
    request->route->handle(request->route->ctx, &asked, &reply);
    return answer(connection, &reply, NULL);
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
    struct MHD_Daemon *daemon = MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL, 0, NULL,
        NULL, serve, server, MHD_OPTION_LISTEN_SOCKET, fd,                  /* */
        MHD_OPTION_URI_LOG_CALLBACK, first_line, NULL,                      /* */
        MHD_OPTION_NOTIFY_COMPLETED, request_ended, NULL,                   /* */
        MHD_OPTION_CONNECTION_LIMIT, (unsigned int)HTTP_CONNECTIONS_MAX,    /* */
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)HTTP_IDLE_SECONDS_MAX, /* */
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_HEAD_BYTES_MAX,    /* */
        MHD_OPTION_END);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return daemon;
}

int http_server_start(struct http_server_options options, struct http_server **out, struct err *err)
{
    int fd = -1;
    if (open_socket(options.address ? options.address : "", options.port, &fd, err) < 0)
        return -1;
    struct http_server *server = kv_calloc(1, sizeof *server);
    server->route_count = options.route_count;
    server->routes =
        kv_calloc(options.route_count ? options.route_count : 1, sizeof *server->routes);
    for (uint32_t i = 0; i < options.route_count; i++) {
        KV_ASSERT(options.routes[i].path[0] == '/');
        server->routes[i] = options.routes[i];
    }
    server->port = port_of(fd);
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
    if (server->daemon)
        MHD_stop_daemon(server->daemon);
    free(server->routes);
    free(server);
}

uint16_t http_server_port(const struct http_server *server)
{
    return server->port;
}

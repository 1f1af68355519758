#include "net/http_server.h"

#include "support/test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

/* --- a plain client --- */

static int dial(uint16_t port)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons(port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct timeval limit = { .tv_sec = 20 }; /* a server that hangs fails the test, not the run */
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    EXPECT_EQ(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static void say(int fd, struct str text)
{
    while (text.len > 0) {
        ssize_t n = send(fd, text.p, text.len, MSG_NOSIGNAL);
        if (n <= 0)
            return; /* the server may hang up on what it does not want to hear */
        text = str_sub(text, (size_t)n, text.len);
    }
}

static void hear(int fd, struct buf *out)
{
    char piece[4096];
    ssize_t n;
    while ((n = recv(fd, piece, sizeof piece, 0)) > 0)
        buf_add(out, (struct str){ piece, (size_t)n });
}

/* The whole answer to one request, after which the server closes. */
static struct str ask(uint16_t port, struct buf *out, const char *fmt, ...)
{
    AUTO_BUF request = { 0 };
    va_list args;
    va_start(args, fmt);
    buf_vaddf(&request, fmt, args);
    va_end(args);
    int fd = dial(port);
    say(fd, buf_str(&request));
    buf_clear(out);
    hear(fd, out);
    close(fd);
    return buf_str(out);
}

static struct str ask_for(uint16_t port, struct buf *out, const char *method, const char *target)
{
    return ask(port, out, "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", method, target);
}

static struct str body_of(struct str answer)
{
    for (size_t i = 0; i + 4 <= answer.len; i++)
        if (memcmp(answer.p + i, "\r\n\r\n", 4) == 0)
            return str_sub(answer, i + 4, answer.len);
    return STR_NONE;
}

/* --- handlers --- */

static void echo(void *ctx, const struct served_request *request, struct served_reply *reply)
{
    buf_addf(&reply->body, "%s|%.*s|%.*s|%.*s|%zu", (const char *)ctx, STR_ARG(request->method),
             STR_ARG(request->path), STR_ARG(request->query), request->body.len);
}

static void not_ready(void *ctx KV_UNUSED, const struct served_request *request KV_UNUSED,
                      struct served_reply *reply)
{
    reply->status = 503;
    reply->content_type = "application/json";
    buf_addz(&reply->body, "{}");
}

static void empty(void *ctx KV_UNUSED, const struct served_request *request KV_UNUSED,
                  struct served_reply *reply KV_UNUSED)
{
}

/* Two calls are inside at once, or the test would never end. */
struct meeting {
    pthread_mutex_t lock;
    pthread_cond_t came;
    int inside;
};

static void meet(void *ctx, const struct served_request *request KV_UNUSED,
                 struct served_reply *reply)
{
    struct meeting *m = ctx;
    pthread_mutex_lock(&m->lock);
    m->inside++;
    pthread_cond_broadcast(&m->came);
    while (m->inside < 2)
        pthread_cond_wait(&m->came, &m->lock);
    pthread_mutex_unlock(&m->lock);
    buf_addz(&reply->body, "met");
}

static struct http_server *start(const struct http_route *routes, uint32_t count)
{
    struct http_server *server = NULL;
    struct err err = { 0 };
    EXPECT_OK(http_server_start((struct http_server_options){ .address = "127.0.0.1",
                                                              .routes = routes,
                                                              .route_count = count },
                                &server, &err),
              err);
    return server;
}

static const struct http_route some_routes[] = {
    { .path = "/echo", .handle = echo, .ctx = (void *)"exact", .post = true },
    { .path = "/api/", .handle = echo, .ctx = (void *)"api" },
    { .path = "/api/deep/", .handle = echo, .ctx = (void *)"deep" },
    { .path = "/readyz", .handle = not_ready },
    { .path = "/empty", .handle = empty },
};

static struct http_server *start_some(void)
{
    return start(some_routes, KV_COUNT_OF(some_routes));
}

/* --- what it does --- */

TEST(a_handler_gets_method_path_and_query_and_its_body_is_the_answer)
{
    AUTO(http_server) server = start_some();
    AUTO_BUF answer = { 0 };
    struct str got = ask_for(http_server_port(server), &answer, "GET", "/echo?a=%20b&c?d");

    EXPECT_TRUE(str_starts(got, STR("HTTP/1.1 200 OK\r\n")));
    EXPECT_HAS(got, "Content-Type: text/plain; charset=utf-8\r\n");
    EXPECT_STR(body_of(got), "exact|GET|/echo|a=%20b&c?d|0");
}

TEST(a_handler_chooses_status_and_content_type)
{
    AUTO(http_server) server = start_some();
    AUTO_BUF answer = { 0 };
    struct str got = ask_for(http_server_port(server), &answer, "GET", "/readyz");

    EXPECT_TRUE(str_starts(got, STR("HTTP/1.1 503 ")));
    EXPECT_HAS(got, "Content-Type: application/json\r\n");
    EXPECT_STR(body_of(got), "{}");
}

TEST(an_answer_may_be_empty)
{
    AUTO(http_server) server = start_some();
    AUTO_BUF answer = { 0 };
    struct str got = ask_for(http_server_port(server), &answer, "GET", "/empty");

    EXPECT_HAS(got, "Content-Length: 0\r\n");
    EXPECT_STR(body_of(got), "");
}

TEST(head_is_get_without_the_body)
{
    AUTO(http_server) server = start_some();
    AUTO_BUF answer = { 0 };
    struct str got = ask_for(http_server_port(server), &answer, "HEAD", "/echo");

    EXPECT_TRUE(str_starts(got, STR("HTTP/1.1 200 OK\r\n")));
    EXPECT_HAS(got, "Content-Length: 19\r\n"); /* exact|HEAD|/echo||0 */
    EXPECT_STR(body_of(got), "");
}

TEST(a_path_is_exact_unless_it_ends_in_a_slash_and_the_longest_wins)
{
    AUTO(http_server) server = start_some();
    AUTO_BUF answer = { 0 };
    uint16_t port = http_server_port(server);

    EXPECT_STR(body_of(ask_for(port, &answer, "GET", "/api/x")), "api|GET|/api/x||0");
    EXPECT_STR(body_of(ask_for(port, &answer, "GET", "/api/deep/x")), "deep|GET|/api/deep/x||0");
    static const char *const unknown[] = { "/", "/echo/", "/echo/x", "/api", "/ech", "/echoes" };
    for (size_t i = 0; i < KV_COUNT_OF(unknown); i++)
        EXPECT_TRUE(str_starts(ask_for(port, &answer, "GET", unknown[i]), STR("HTTP/1.1 404 ")));
}

TEST(other_methods_are_405_and_the_answer_says_which_are_allowed)
{
    AUTO(http_server) server = start_some();
    AUTO_BUF answer = { 0 };
    uint16_t port = http_server_port(server);

    struct str got = ask_for(port, &answer, "DELETE", "/echo");
    EXPECT_TRUE(str_starts(got, STR("HTTP/1.1 405 ")));
    EXPECT_HAS(got, "Allow: GET, HEAD, POST\r\n");
    got = ask(port, &answer, "POST /readyz HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi");
    EXPECT_TRUE(str_starts(got, STR("HTTP/1.1 405 ")));
    EXPECT_HAS(got, "Allow: GET, HEAD\r\n");
}

TEST(a_body_arrives_whole_in_one_piece_or_in_chunks)
{
    AUTO(http_server) server = start_some();
    AUTO_BUF answer = { 0 };
    uint16_t port = http_server_port(server);

    struct str got = ask(port, &answer,
                         "POST /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                         "Content-Length: 5\r\n\r\nhello");
    EXPECT_STR(body_of(got), "exact|POST|/echo||5");
    got = ask(port, &answer,
              "POST /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
              "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n");
    EXPECT_STR(body_of(got), "exact|POST|/echo||7");
}

TEST(a_body_that_says_it_is_too_long_is_refused_unread)
{
    AUTO(http_server) server = start_some();
    AUTO_BUF answer = { 0 };
    struct str got = ask(http_server_port(server), &answer,
                         "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n",
                         SERVED_BODY_BYTES_MAX + 1);
    EXPECT_TRUE(str_starts(got, STR("HTTP/1.1 413 ")));
}

TEST(a_body_that_grows_too_long_is_cut_off)
{
    AUTO(http_server) server = start_some();
    AUTO_BUF answer = { 0 };
    AUTO_BUF chunk = { 0 };
    buf_addf(&chunk, "%x\r\n", 1 << 20);
    for (int i = 0; i < 1 << 20; i++)
        buf_addc(&chunk, 'x');
    buf_addz(&chunk, "\r\n");

    int fd = dial(http_server_port(server));
    say(fd, STR("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"));
    for (size_t sent = 0; sent <= SERVED_BODY_BYTES_MAX; sent += 1 << 20)
        say(fd, buf_str(&chunk));
    say(fd, STR("0\r\n\r\n"));
    hear(fd, &answer);
    close(fd);
    EXPECT_FALSE(str_starts(buf_str(&answer), STR("HTTP/1.1 200 ")));
    /* And the next request is served. */
    ask_for(http_server_port(server), &answer, "GET", "/echo");
    EXPECT_STR(body_of(buf_str(&answer)), "exact|GET|/echo||0");
}

TEST(headers_that_are_too_long_are_refused)
{
    AUTO(http_server) server = start_some();
    AUTO_BUF answer = { 0 };
    AUTO_BUF request = { 0 };
    buf_addz(&request, "GET /echo HTTP/1.1\r\nHost: x\r\nX-Long: ");
    for (int i = 0; i < 2 * SERVED_HEAD_BYTES_MAX; i++)
        buf_addc(&request, 'x');
    buf_addz(&request, "\r\n\r\n");
    int fd = dial(http_server_port(server));
    say(fd, buf_str(&request));
    hear(fd, &answer);
    close(fd);
    EXPECT_FALSE(str_starts(buf_str(&answer), STR("HTTP/1.1 200 ")));
}

TEST(what_is_not_http_is_hung_up_on_and_others_are_served)
{
    static const char *const noise[] = {
        "\r\n\r\n\r\n",
        "GET\r\n\r\n",
        "GET /echo\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01",
        "GET /echo HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        "GET /%00%ff%zz HTTP/1.1\r\nHost: x\r\n",
    };
    AUTO(http_server) server = start_some();
    AUTO_BUF answer = { 0 };
    for (size_t i = 0; i < KV_COUNT_OF(noise); i++) {
        int fd = dial(http_server_port(server));
        say(fd, str_of(noise[i]));
        close(fd);
    }
    ask_for(http_server_port(server), &answer, "GET", "/echo");
    EXPECT_STR(body_of(buf_str(&answer)), "exact|GET|/echo||0");
}

TEST(a_connection_serves_several_requests)
{
    AUTO(http_server) server = start_some();
    AUTO_BUF answer = { 0 };
    ask(http_server_port(server), &answer,
        "GET /echo?1 HTTP/1.1\r\nHost: x\r\n\r\nGET /echo?2 HTTP/1.1\r\nHost: x\r\n"
        "Connection: close\r\n\r\n");
    EXPECT_HAS(buf_str(&answer), "exact|GET|/echo|1|0");
    EXPECT_HAS(buf_str(&answer), "exact|GET|/echo|2|0");
}

static void *ask_meeting(void *ctx)
{
    AUTO_BUF answer = { 0 };
    ask_for(*(uint16_t *)ctx, &answer, "GET", "/meet");
    EXPECT_STR(body_of(buf_str(&answer)), "met");
    return NULL;
}

TEST(a_handler_that_takes_its_time_holds_up_nobody_else)
{
    struct meeting m = { 0 };
    pthread_mutex_init(&m.lock, NULL);
    pthread_cond_init(&m.came, NULL);
    const struct http_route routes[] = { { .path = "/meet", .handle = meet, .ctx = &m } };
    struct http_server *server = start(routes, 1);
    uint16_t port = http_server_port(server);
    pthread_t threads[2];

    for (int i = 0; i < 2; i++)
        EXPECT_EQ(pthread_create(&threads[i], NULL, ask_meeting, &port), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    http_server_stop(server);
    EXPECT_EQ(m.inside, 2);
    pthread_cond_destroy(&m.came);
    pthread_mutex_destroy(&m.lock);
}

TEST(a_port_that_is_taken_is_an_error_that_names_it)
{
    AUTO(http_server) server = start_some();
    struct http_server *second = NULL;
    struct err err = { 0 };
    uint16_t port = http_server_port(server);
    char words[32];

    EXPECT_ERR(
        http_server_start((struct http_server_options){ .address = "127.0.0.1", .port = port },
                          &second, &err),
        err, ERR_UNAVAILABLE);
    snprintf(words, sizeof words, "port %u of 127.0.0.1", (unsigned)port);
    EXPECT_HAS(str_of(err.text), words);
}

TEST(an_address_that_is_none_is_an_error)
{
    struct http_server *server = NULL;
    struct err err = { 0 };
    EXPECT_ERR(http_server_start((struct http_server_options){ .address = "localhost.invalid" },
                                 &server, &err),
               err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), "localhost.invalid");
}

TEST(without_an_address_it_listens_everywhere)
{
    AUTO(http_server) server = NULL;
    struct err err = { 0 };
    AUTO_BUF answer = { 0 };
    EXPECT_OK(
        http_server_start(
            (struct http_server_options){ .address = "", .routes = some_routes, .route_count = 1 },
            &server, &err),
        err);
    ask_for(http_server_port(server), &answer, "GET", "/echo");
    EXPECT_STR(body_of(buf_str(&answer)), "exact|GET|/echo||0");
}

TEST(a_port_can_be_listened_on_again_after_a_stop)
{
    struct http_server *server = start_some();
    AUTO_BUF answer = { 0 };
    struct err err = { 0 };
    uint16_t port = http_server_port(server);
    ask_for(port, &answer, "GET", "/echo");
    http_server_stop(server);
    EXPECT_OK(
        http_server_start((struct http_server_options){ .address = "127.0.0.1", .port = port },
                          &server, &err),
        err);
    EXPECT_EQ(http_server_port(server), port);
    http_server_stop(server);
}

/* --- streams --- */

/* What `next` does, one character a call: a letter is a piece, '-' nothing yet, '+' a long piece, '.'
 * the end; '*' waits for `go_on`, '~' never has anything, '#' always has a long piece. */
struct script {
    const char *calls;
    const char *body;
    atomic_int at, done_count;
    atomic_bool go_on;
};

#define LONG_PIECE_BYTES (300 << 10)

static void add_long_piece(struct buf *piece)
{
    for (int i = 0; i < LONG_PIECE_BYTES; i++)
        buf_addc(piece, (char)('a' + i % 26));
}

static int script_next(void *ctx, struct buf *piece)
{
    struct script *s = ctx;
    char call = s->calls[atomic_load(&s->at)];
    bool stays = call == '~' || call == '#' || (call == '*' && !atomic_load(&s->go_on));
    if (!stays)
        atomic_fetch_add(&s->at, 1);
    if (call == '~' || call == '*')
        usleep(1000);
    else if (call == '+' || call == '#')
        add_long_piece(piece);
    else if (char_is_alpha(call))
        buf_addf(piece, "%c\n", call);
    return call == '.' ? 0 : 1;
}

static void script_done(void *ctx)
{
    struct script *s = ctx;
    atomic_fetch_add(&s->done_count, 1);
}

static void play(void *ctx, const struct served_request *request KV_UNUSED,
                 struct served_reply *reply)
{
    struct script *s = ctx;
    reply->content_type = "application/json";
    buf_addz(&reply->body, s->body ? s->body : "");
    reply->stream = (struct served_stream){ script_next, script_done, s };
}

static struct http_server *start_script(struct script *script)
{
    struct http_route route = { .path = "/stream", .handle = play, .ctx = script };
    return start(&route, 1);
}

static void await_done(struct script *script)
{
    for (int i = 0; i < 30000 && atomic_load(&script->done_count) == 0; i++)
        usleep(1000);
    EXPECT_EQ(atomic_load(&script->done_count), 1);
}

static void begin_stream(int fd)
{
    say(fd, STR("GET /stream HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
}

TEST(a_stream_is_sent_in_chunks_each_as_soon_as_it_is_made)
{
    struct script script = { .calls = "a--b*c." };
    AUTO(http_server) server = start_script(&script);
    AUTO_BUF answer = { 0 };
    int fd = dial(http_server_port(server));
    begin_stream(fd);
    /* The third piece is made only when the second has been seen. */
    for (ssize_t n = 1; n > 0 && !strstr(answer.p ? answer.p : "", "b\n");) {
        char byte;
        n = recv(fd, &byte, 1, 0);
        if (n > 0)
            buf_addc(&answer, byte);
    }
    atomic_store(&script.go_on, true);
    hear(fd, &answer);
    close(fd);
    struct str got = buf_str(&answer);
    EXPECT_HAS(got, "Transfer-Encoding: chunked\r\n");
    EXPECT_HAS(got, "Content-Type: application/json\r\n");
    EXPECT_STR(body_of(got), "2\r\na\n\r\n2\r\nb\n\r\n2\r\nc\n\r\n0\r\n\r\n");
    await_done(&script);
}

TEST(a_stream_may_begin_with_a_body_and_may_be_empty)
{
    struct script begins = { .calls = "a.", .body = "first\n" }, empty_one = { .calls = "." };
    AUTO(http_server) server = start_script(&begins);
    AUTO(http_server) other = start_script(&empty_one);
    AUTO_BUF answer = { 0 };
    EXPECT_STR(body_of(ask_for(http_server_port(server), &answer, "GET", "/stream")),
               "6\r\nfirst\n\r\n2\r\na\n\r\n0\r\n\r\n");
    EXPECT_STR(body_of(ask_for(http_server_port(other), &answer, "GET", "/stream")), "0\r\n\r\n");
    await_done(&begins);
    await_done(&empty_one);
}

TEST(a_piece_may_be_longer_than_what_is_sent_at_once)
{
    struct script script = { .calls = "+a+." };
    AUTO(http_server) server = start_script(&script);
    AUTO_BUF answer = { 0 };
    AUTO_BUF want = { 0 };
    add_long_piece(&want);
    buf_addz(&want, "a\n");
    add_long_piece(&want);
    /* Of HTTP/1.0 there are no chunks: the end of the connection is the end. */
    struct str got = ask(http_server_port(server), &answer, "GET /stream HTTP/1.0\r\n\r\n");
    EXPECT_TRUE(str_eq(body_of(got), buf_str(&want)));
    await_done(&script);
}

TEST(head_of_a_stream_does_not_start_it)
{
    struct script script = { .calls = "~" };
    AUTO(http_server) server = start_script(&script);
    AUTO_BUF answer = { 0 };
    EXPECT_STR(body_of(ask_for(http_server_port(server), &answer, "HEAD", "/stream")), "");
    await_done(&script);
    EXPECT_EQ(script.at, 0);
}

TEST(a_stream_ends_when_its_client_has_gone)
{
    static const char *const calls[] = { "~", "#" }; /* one with nothing to send, one with much */
    for (size_t i = 0; i < KV_COUNT_OF(calls); i++) {
        struct script script = { .calls = calls[i] };
        AUTO(http_server) server = start_script(&script);
        int fd = dial(http_server_port(server));
        begin_stream(fd);
        char piece[64];
        EXPECT_TRUE(recv(fd, piece, sizeof piece, 0) > 0); /* it has begun */
        close(fd);
        await_done(&script);
    }
}

TEST(a_stop_ends_streams_and_does_not_wait_for_clients)
{
    static const char *const calls[] = { "~", "#" };
    for (size_t i = 0; i < KV_COUNT_OF(calls); i++) {
        struct script script = { .calls = calls[i] };
        struct http_server *server = start_script(&script);
        int fd = dial(http_server_port(server));
        begin_stream(fd);
        char piece[64];
        EXPECT_TRUE(recv(fd, piece, sizeof piece, 0) > 0);
        http_server_stop(server); /* while the client neither reads nor closes */
        EXPECT_EQ(script.done_count, 1);
        close(fd);
    }
}

/* --- on a unix socket --- */

struct folder {
    char path[32];
    char socket[64];
};

static struct folder folder_make(void)
{
    struct folder f = { .path = "/tmp/karve-http-XXXXXX" };
    EXPECT_TRUE(mkdtemp(f.path) != NULL);
    snprintf(f.socket, sizeof f.socket, "%s/api.sock", f.path);
    return f;
}

static void folder_remove(struct folder *f)
{
    EXPECT_EQ(rmdir(f->path), 0); /* nothing is left in it */
}

static int start_unix(const char *path, struct http_server **out, struct err *err)
{
    return http_server_start(
        (struct http_server_options){
            .unix_path = path, .routes = some_routes, .route_count = KV_COUNT_OF(some_routes) },
        out, err);
}

/* What curl prints. */
static struct str curl(const char *socket_path, const char *target, struct buf *out)
{
    char command[256];
    snprintf(command, sizeof command, "curl -sS -m 20 --unix-socket %s http://x%s 2>&1",
             socket_path, target);
    FILE *f = popen(command, "r");
    EXPECT_TRUE(f != NULL);
    char piece[256];
    buf_clear(out);
    for (size_t n; (n = fread(piece, 1, sizeof piece, f)) > 0;)
        buf_add(out, (struct str){ piece, n });
    if (WEXITSTATUS(pclose(f)) == 127)
        SKIP("curl is not installed");
    return buf_str(out);
}

TEST(a_unix_socket_is_served_for_its_user_only_and_removed_at_the_stop)
{
    struct folder f = folder_make();
    struct http_server *server = NULL;
    struct err err = { 0 };
    struct stat file;
    AUTO_BUF out = { 0 };
    mode_t before = umask(0); /* which would let everybody in */
    EXPECT_OK(start_unix(f.socket, &server, &err), err);
    umask(before);
    EXPECT_EQ(lstat(f.socket, &file), 0);
    EXPECT_EQ(file.st_mode, S_IFSOCK | 0600);
    EXPECT_EQ(http_server_port(server), 0);
    EXPECT_STR(curl(f.socket, "/echo?a=b", &out), "exact|GET|/echo|a=b|0");
    http_server_stop(server);
    folder_remove(&f);
}

TEST(a_socket_that_is_in_use_is_an_error_and_goes_on_being_served)
{
    struct folder f = folder_make();
    struct http_server *server = NULL, *second = NULL;
    struct err err = { 0 };
    AUTO_BUF out = { 0 };
    EXPECT_OK(start_unix(f.socket, &server, &err), err);
    EXPECT_ERR(start_unix(f.socket, &second, &err), err, ERR_UNAVAILABLE);
    EXPECT_HAS(str_of(err.text), f.socket);
    EXPECT_HAS(str_of(err.text), "in use");
    EXPECT_STR(curl(f.socket, "/echo", &out), "exact|GET|/echo||0");
    http_server_stop(server);
    folder_remove(&f);
}

TEST(a_socket_left_by_a_process_that_died_is_replaced)
{
    struct folder f = folder_make();
    struct http_server *server = NULL;
    struct err err = { 0 };
    AUTO_BUF out = { 0 };
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    memcpy(address.sun_path, f.socket, strlen(f.socket));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    EXPECT_EQ(listen(fd, 1), 0);
    close(fd); /* the file stays, as after a kill */
    EXPECT_OK(start_unix(f.socket, &server, &err), err);
    EXPECT_STR(curl(f.socket, "/echo", &out), "exact|GET|/echo||0");
    http_server_stop(server);
    folder_remove(&f);
}

TEST(a_stop_leaves_alone_what_another_server_has_put_in_its_place)
{
    struct folder f = folder_make();
    struct http_server *old = NULL, *new = NULL;
    struct err err = { 0 };
    AUTO_BUF out = { 0 };
    EXPECT_OK(start_unix(f.socket, &old, &err), err);
    EXPECT_EQ(unlink(f.socket), 0);
    EXPECT_OK(start_unix(f.socket, &new, &err), err);
    http_server_stop(old);
    EXPECT_STR(curl(f.socket, "/echo", &out), "exact|GET|/echo||0");
    http_server_stop(new);
    folder_remove(&f);
}

TEST(a_path_that_cannot_be_a_socket_is_an_error_and_is_left_alone)
{
    struct folder f = folder_make();
    struct http_server *server = NULL;
    struct err err = { 0 };
    char missing[128], long_path[256];
    snprintf(missing, sizeof missing, "%s/no/such/folder.sock", f.path);
    memset(long_path, 'x', sizeof long_path - 1);
    long_path[0] = '/';
    long_path[sizeof long_path - 1] = '\0';

    EXPECT_ERR(start_unix(missing, &server, &err), err, ERR_INVALID);
    EXPECT_ERR(start_unix(long_path, &server, &err), err, ERR_INVALID);
    EXPECT_ERR(start_unix("", &server, &err), err, ERR_INVALID);
    FILE *file = fopen(f.socket, "w");
    EXPECT_TRUE(file != NULL);
    fclose(file);
    EXPECT_ERR(start_unix(f.socket, &server, &err), err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), "no socket");
    EXPECT_EQ(unlink(f.socket), 0);
    folder_remove(&f);
}

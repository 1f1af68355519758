#include "net/unix_http.h"

#include "net/http_server.h"
#include "net/unix_socket.h"
#include "support/test.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define TIMEOUT_NS ((int64_t)30 * 1000000000)

/* --- what arrives --- */

struct heard {
    struct buf body;
    int status, piece_count, pieces_max; /* pieces_max: then it is enough; 0: never */
};

static bool hear(void *ctx, int status, struct str piece)
{
    struct heard *h = ctx;
    EXPECT_TRUE(piece.len > 0);
    buf_add(&h->body, piece);
    h->status = status;
    h->piece_count++;
    return h->piece_count != h->pieces_max;
}

/* --- the reader --- */

/* The reply in pieces of this size, and then the end; -1: an error, 1: it was whole. */
static int feed(struct str reply, size_t size, struct heard *h, struct err *err)
{
    struct http_reader reader = { .body_bytes_max = 100, .piece = hear, .ctx = h };
    int rc = 0;
    while (rc == 0 && reply.len > 0) {
        rc = http_reader_feed(&reader, str_sub(reply, 0, size), err);
        reply = str_sub(reply, size, reply.len);
    }
    if (rc == 0)
        rc = http_reader_end(&reader, err) == 0 ? 1 : -1;
    h->status = reader.status;
    http_reader_done(&reader);
    return rc;
}

TEST(a_reply_reads_the_same_however_it_is_cut)
{
    static const struct {
        const char *reply;
        int status;
        const char *body;
    } cases[] = {
        { "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, "hello" },
        { "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello and more", 200, "hello" },
        { "HTTP/1.1 404\r\nContent-Length: 0\r\n\r\n", 404, "" },
        { "HTTP/1.0 200 OK\nserver: x\n\nuntil the end\n", 200, "until the end\n" },
        { "HTTP/1.1 204 No Content\r\n\r\n", 204, "" },
        { "HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", 304, "" },
        { "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length:2\r\n\r\nok", 200, "ok" },
        { "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok", 200, "ok" },
        { "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n"
          "3\r\nabc\r\nA;name=value\r\n0123456789\r\n00\r\nTrailer: x\r\n\r\n",
          200, "abc0123456789" },
        { "HTTP/1.1 500 Oh\r\nTRANSFER-ENCODING:  chunked \r\n\r\n0\r\n\r\n", 500, "" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        struct str reply = str_of(cases[i].reply);
        for (size_t size = 1; size <= reply.len; size++) {
            struct heard h = { 0 };
            struct err err = { 0 };
            EXPECT_OK(feed(reply, size, &h, &err) == 1 ? 0 : -1, err);
            EXPECT_EQ(h.status, cases[i].status);
            EXPECT_STR(buf_str(&h.body), cases[i].body);
            buf_done(&h.body);
        }
    }
}

TEST(what_is_not_http_is_an_error_that_shows_it)
{
    static const char *const replies[] = {
        "SSH-2.0-x\r\n",
        "HTTP/2 200 OK\r\n",
        "HTTP/1.1 20 OK\r\n",
        "HTTP/1.1 099 OK\r\n",
        "HTTP/1.1 2000 OK\r\n",
        "HTTP/1.1  200 OK\r\n",
        "HTTP/1.1 -20 OK\r\n",
        "\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n",
        "HTTP/1.1 200 OK\r\n: no name\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length : 5\r\n",
        "HTTP/1.1 200 OK\r\nX: y\r\n folded: z\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length:\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1000000000000000\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
        "HTTP/1.1 101 Switching Protocols\r\n\r\n",
    };
    for (size_t i = 0; i < KV_COUNT_OF(replies); i++) {
        struct heard h = { 0 };
        struct err err = { 0 };
        printf("# %zu\n", i);
        EXPECT_ERR(feed(str_of(replies[i]), 7, &h, &err), err, ERR_INVALID);
        EXPECT_HAS(str_of(err.text), "not HTTP");
        buf_done(&h.body);
    }
}

TEST(a_reply_that_ends_too_early_is_an_error)
{
    struct str lengths = STR("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
    struct str chunks =
        STR("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n");
    for (size_t len = 0; len < chunks.len; len++) {
        struct heard h = { 0 };
        struct err err = { 0 };
        EXPECT_ERR(feed(str_sub(chunks, 0, len), 64, &h, &err), err, ERR_UNAVAILABLE);
        if (len < lengths.len)
            EXPECT_ERR(feed(str_sub(lengths, 0, len), 64, &h, &err), err, ERR_UNAVAILABLE);
        buf_done(&h.body);
    }
}

TEST(heads_chunk_lines_and_bodies_have_limits)
{
    static const char *const starts[] = {
        "", "HTTP/1.1 200 OK\r\nX: ", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;x=",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nTrailer: "
    };
    for (size_t i = 0; i < KV_COUNT_OF(starts); i++) {
        AUTO_BUF reply = { 0 };
        struct heard h = { 0 };
        struct err err = { 0 };
        buf_addz(&reply, starts[i]);
        for (int n = 0; n < 2 * UNIX_HTTP_HEAD_BYTES_MAX; n++)
            buf_addc(&reply, 'x');
        EXPECT_ERR(feed(buf_str(&reply), 1000, &h, &err), err, ERR_INVALID);
        EXPECT_HAS(str_of(err.text), "longer");
    }
    AUTO_BUF interim = { 0 };
    struct heard none = { 0 };
    struct err err = { 0 };
    while (interim.len < 2 * UNIX_HTTP_HEAD_BYTES_MAX)
        buf_addz(&interim, "HTTP/1.1 103 Early Hints\r\n\r\n");
    EXPECT_ERR(feed(buf_str(&interim), 1000, &none, &err), err, ERR_INVALID);

    /* The test's reader takes 100 bytes. */
    static const char *const bodies[] = {
        "HTTP/1.1 200 OK\r\nContent-Length: 102\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n66\r\n",
    };
    for (size_t i = 0; i < KV_COUNT_OF(bodies); i++) {
        AUTO_BUF reply = { 0 };
        struct heard h = { 0 };
        buf_addz(&reply, bodies[i]);
        for (int n = 0; n < 102; n++)
            buf_addc(&reply, 'x');
        EXPECT_ERR(feed(buf_str(&reply), 10, &h, &err), err, ERR_INVALID);
        EXPECT_HAS(str_of(err.text), "longer than 100");
        EXPECT_TRUE(h.body.len <= 100);
        buf_done(&h.body);
    }
}

TEST(the_caller_may_have_enough)
{
    struct heard h = { .pieces_max = 2 };
    struct err err = { 0 };
    EXPECT_EQ(feed(STR("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                       "1\r\na\r\n1\r\nb\r\n1\r\nc\r\n"),
                   1000, &h, &err),
              1);
    EXPECT_STR(buf_str(&h.body), "ab");
    buf_done(&h.body);
}

/* --- over a socket --- */

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

static int get(const char *socket_path, const char *target, bool stream, struct heard *h,
               struct err *err)
{
    return unix_http_get((struct unix_http_request){ .socket_path = socket_path,
                                                     .target = target,
                                                     .stream = stream,
                                                     .timeout_ns = TIMEOUT_NS,
                                                     .piece = hear,
                                                     .ctx = h },
                         &h->status, err);
}

static void say_hello(void *ctx KV_UNUSED, const struct served_request *request,
                      struct served_reply *reply)
{
    reply->status = 418;
    buf_addf(&reply->body, "hello %.*s?%.*s", STR_ARG(request->path), STR_ARG(request->query));
}

static int count_up(void *ctx, struct buf *piece)
{
    int *at = ctx;
    buf_addf(piece, "line %d\n", *at);
    return ++*at < 5;
}

static void start_counting(void *ctx, const struct served_request *request KV_UNUSED,
                           struct served_reply *reply)
{
    reply->stream = (struct served_stream){ .next = count_up, .ctx = ctx };
}

/* Longer than the client reads at once, and than the server's socket takes. */
static void say_much(void *ctx KV_UNUSED, const struct served_request *request KV_UNUSED,
                     struct served_reply *reply)
{
    for (int i = 0; i < 1 << 20; i++)
        buf_addc(&reply->body, (char)('a' + i % 26));
}

TEST(our_own_server_answers_with_a_body_or_a_stream)
{
    struct folder f = folder_make();
    int at = 0;
    const struct http_route routes[] = {
        { .path = "/hello", .handle = say_hello },
        { .path = "/much", .handle = say_much },
        { .path = "/count", .handle = start_counting, .ctx = &at }
    };
    struct http_server *server = NULL;
    struct err err = { 0 };
    EXPECT_OK(http_server_start((struct http_server_options){ .unix_path = f.socket,
                                                              .routes = routes,
                                                              .route_count = KV_COUNT_OF(routes) },
                                &server, &err),
              err);
    struct heard hello = { 0 }, much = { 0 }, count = { 0 }, missing = { 0 };
    EXPECT_OK(get(f.socket, "/hello?a=b", false, &hello, &err), err);
    EXPECT_EQ(hello.status, 418);
    EXPECT_STR(buf_str(&hello.body), "hello /hello?a=b");
    EXPECT_OK(get(f.socket, "/much", false, &much, &err), err);
    EXPECT_EQ(much.body.len, 1 << 20);
    EXPECT_OK(get(f.socket, "/count", true, &count, &err), err);
    EXPECT_EQ(count.status, 200);
    EXPECT_STR(buf_str(&count.body), "line 0\nline 1\nline 2\nline 3\nline 4\n");
    EXPECT_OK(get(f.socket, "/nothing", false, &missing, &err), err);
    EXPECT_EQ(missing.status, 404);
    buf_done(&hello.body);
    buf_done(&much.body);
    buf_done(&count.body);
    buf_done(&missing.body);
    http_server_stop(server);
    EXPECT_EQ(rmdir(f.path), 0);
}

static int say_nothing(void *ctx KV_UNUSED, struct buf *piece KV_UNUSED)
{
    nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    return 1;
}

static void start_silence(void *ctx KV_UNUSED, const struct served_request *request KV_UNUSED,
                          struct served_reply *reply)
{
    buf_addz(&reply->body, "first\n");
    reply->stream = (struct served_stream){ .next = say_nothing };
}

/* Two silences are enough, once there was something. */
static bool hear_silence(void *ctx, int status KV_UNUSED, struct str piece)
{
    struct heard *h = ctx;
    buf_add(&h->body, piece);
    h->piece_count += piece.len == 0 && h->body.len > 0;
    return h->piece_count < 2;
}

TEST(a_stream_that_is_silent_tells_so_and_may_be_left)
{
    struct folder f = folder_make();
    const struct http_route routes[] = { { .path = "/silence", .handle = start_silence } };
    struct http_server *server = NULL;
    struct heard h = { 0 };
    struct err err = { 0 };
    struct http_server_options options = { .unix_path = f.socket,
                                           .routes = routes,
                                           .route_count = 1 };
    EXPECT_OK(http_server_start(options, &server, &err), err);
    struct unix_http_request request = { .socket_path = f.socket,
                                         .target = "/silence",
                                         .stream = true,
                                         .timeout_ns = TIMEOUT_NS,
                                         .idle_ns = 50 * 1000000,
                                         .piece = hear_silence,
                                         .ctx = &h };
    EXPECT_OK(unix_http_get(request, &h.status, &err), err);
    EXPECT_EQ(h.status, 200);
    EXPECT_STR(buf_str(&h.body), "first\n");
    EXPECT_EQ(h.piece_count, 2);
    buf_done(&h.body);
    http_server_stop(server);
    EXPECT_EQ(rmdir(f.path), 0);
}

TEST(a_socket_that_is_not_there_or_has_nobody_behind_it_is_an_error_of_its_kind)
{
    struct folder f = folder_make();
    struct heard h = { 0 };
    struct err err = { 0 };
    EXPECT_ERR(get(f.socket, "/", false, &h, &err), err, ERR_NOT_FOUND);
    EXPECT_HAS(str_of(err.text), f.socket);

    struct unix_socket file = { 0 };
    int fd = -1;
    EXPECT_OK(unix_listen(f.socket, &file, &fd, &err), err);
    close(fd); /* the file stays */
    EXPECT_ERR(get(f.socket, "/", false, &h, &err), err, ERR_UNAVAILABLE);
    unix_socket_remove(&file);
    EXPECT_EQ(rmdir(f.path), 0);
}

TEST(a_socket_of_another_user_is_denied)
{
    if (geteuid() != 0)
        SKIP("only root can be somebody else");
    struct folder f = folder_make();
    struct heard h = { 0 };
    struct err err = { 0 };
    struct unix_socket file = { 0 };
    int fd = -1;
    EXPECT_EQ(chmod(f.path, 0755), 0);
    EXPECT_OK(unix_listen(f.socket, &file, &fd, &err), err);
    EXPECT_EQ(seteuid(65534), 0);
    int rc = get(f.socket, "/", false, &h, &err);
    EXPECT_EQ(seteuid(0), 0);
    EXPECT_ERR(rc, err, ERR_DENIED);
    close(fd);
    unix_socket_remove(&file);
    EXPECT_EQ(rmdir(f.path), 0);
}

TEST(what_is_no_path_is_not_asked_for)
{
    static const char *const targets[] = { "", "pods", "/pods x", "/pods\r\nX: y", "/\x7f" };
    for (size_t i = 0; i < KV_COUNT_OF(targets); i++) {
        struct heard h = { 0 };
        struct err err = { 0 };
        EXPECT_ERR(get("/nowhere.sock", targets[i], false, &h, &err), err, ERR_INVALID);
    }
}

/* A server that says what it is told to, to one client, and then hangs up, or stays. */
struct scripted {
    struct folder folder;
    struct unix_socket file;
    int fd;
    const char *reply;
    bool stays;
    pthread_t thread;
};

static void *scripted_main(void *arg)
{
    struct scripted *s = arg;
    int fd = accept(s->fd, NULL, NULL);
    char request[1024];
    KV_ASSERT(recv(fd, request, sizeof request, 0) > 0);
    size_t len = strlen(s->reply);
    KV_ASSERT(send(fd, s->reply, len, MSG_NOSIGNAL) == (ssize_t)len);
    while (s->stays && recv(fd, request, sizeof request, 0) > 0) {
    }
    close(fd);
    return NULL;
}

static void scripted_start(struct scripted *s, const char *reply, bool stays)
{
    struct err err = { 0 };
    *s = (struct scripted){ .folder = folder_make(), .reply = reply, .stays = stays };
    EXPECT_OK(unix_listen(s->folder.socket, &s->file, &s->fd, &err), err);
    EXPECT_EQ(pthread_create(&s->thread, NULL, scripted_main, s), 0);
}

static void scripted_end(struct scripted *s)
{
    pthread_join(s->thread, NULL);
    close(s->fd);
    unix_socket_remove(&s->file);
    EXPECT_EQ(rmdir(s->folder.path), 0);
}

TEST(a_server_that_hangs_up_early_or_talks_nonsense_is_an_error)
{
    static const struct {
        const char *reply;
        enum err_kind kind;
        const char *words;
    } cases[] = {
        { "", ERR_UNAVAILABLE, "without a reply" },
        { "HTTP/1.1 200 OK\r\nContent-Le", ERR_UNAVAILABLE, "in the middle" },
        { "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", ERR_UNAVAILABLE, "in the middle" },
        { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", ERR_UNAVAILABLE,
          "in the middle" },
        { "220 mail.example ESMTP\r\n", ERR_INVALID, "220 mail.example ESMTP" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        struct scripted s;
        struct heard h = { 0 };
        struct err err = { 0 };
        scripted_start(&s, cases[i].reply, false);
        EXPECT_ERR(get(s.folder.socket, "/x", i % 2, &h, &err), err, cases[i].kind);
        EXPECT_HAS(str_of(err.text), cases[i].words);
        EXPECT_HAS(str_of(err.text), "GET /x");
        scripted_end(&s);
        buf_done(&h.body);
    }
}

TEST(a_whole_reply_is_enough_even_if_the_server_does_not_hang_up)
{
    struct scripted s;
    struct heard h = { 0 };
    struct err err = { 0 };
    scripted_start(&s, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", true);
    EXPECT_OK(get(s.folder.socket, "/", false, &h, &err), err);
    EXPECT_STR(buf_str(&h.body), "ok");
    scripted_end(&s);
    buf_done(&h.body);
}

TEST(a_server_that_never_finishes_is_given_up)
{
    static const char *const replies[] = { "", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf" };
    for (size_t i = 0; i < KV_COUNT_OF(replies); i++) {
        struct scripted s;
        struct heard h = { 0 };
        struct err err = { 0 };
        int status = 0;
        scripted_start(&s, replies[i], true);
        struct unix_http_request request = { .socket_path = s.folder.socket,
                                             .target = "/",
                                             .timeout_ns = 20 * 1000000,
                                             .piece = hear,
                                             .ctx = &h };
        EXPECT_ERR(unix_http_get(request, &status, &err), err, ERR_UNAVAILABLE);
        EXPECT_HAS(str_of(err.text), "no answer in time");
        scripted_end(&s);
        buf_done(&h.body);
    }
}

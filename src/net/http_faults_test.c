/* Servers that answer with anything but what they should, as bytes on a socket. */
#include "net/http.h"

#include "base/thread.h"
#include "codec/duration.h"
#include "net/http_testing.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <stdatomic.h>
#include <sys/socket.h>

/* --- names --- */

static pthread_mutex_t dns_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the rest */
static pthread_cond_t dns_moved = PTHREAD_COND_INITIALIZER;
static bool dns_answers;
static uint32_t dns_asked, dns_answered;

static uint32_t dns_count(const uint32_t *counter)
{
    pthread_mutex_lock(&dns_lock);
    uint32_t count = *counter;
    pthread_mutex_unlock(&dns_lock);
    return count;
}

/* In the place of the C library's, for libcurl too: of "slow.test" nothing is heard until the test
 * says so. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **out)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    if (!name || strcmp(name, "slow.test") != 0)
        return real(name, service, hints, out);
    pthread_mutex_lock(&dns_lock);
    dns_asked++;
    while (!dns_answers)
        pthread_cond_wait(&dns_moved, &dns_lock);
    dns_answered++;
    pthread_mutex_unlock(&dns_lock);
    return EAI_NONAME;
}

/* Takes one connection after the other, waits for a request's end, says its piece. */
struct liar {
    int listen_fd;
    uint16_t port;
    pthread_t thread;
    struct str says;
    struct str repeats; /* then this, without end */
    bool resets;        /* closes with a reset */
    atomic_bool stays;  /* does not close until the client does */
    uint32_t answers;   /* how many requests a connection answers; 0: 1 */
    atomic_bool stopping;
    atomic_uint connections;
    atomic_uint requests;
};

static bool say(int fd, struct str text)
{
    while (text.len > 0) {
        ssize_t n = send(fd, text.p, text.len, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        text = str_sub(text, (size_t)n, text.len);
    }
    return true;
}

/* Heads only: the requests of these tests have short bodies or none. */
static bool hear_request(int fd)
{
    AUTO_BUF got = { 0 };
    char piece[4096];
    while (!got.p || !memmem(got.p, got.len, "\r\n\r\n", 4)) {
        ssize_t n = recv(fd, piece, sizeof piece, 0);
        if (n <= 0)
            return false;
        buf_add(&got, (struct str){ piece, (size_t)n });
    }
    return true;
}

static void lie_once(struct liar *liar, int fd)
{
    char rest[256];
    for (uint32_t i = 0; i < (liar->answers ? liar->answers : 1); i++) {
        if (!hear_request(fd))
            return;
        atomic_fetch_add(&liar->requests, 1);
        if (!say(fd, liar->says))
            return;
    }
    while (liar->repeats.len > 0 && say(fd, liar->repeats))
        ;
    while (liar->stays && recv(fd, rest, sizeof rest, 0) > 0)
        ;
    struct linger reset = { .l_onoff = 1, .l_linger = 0 };
    if (liar->resets)
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
}

static void *lie(void *arg)
{
    struct liar *liar = arg;
    for (;;) {
        int fd = accept(liar->listen_fd, NULL, NULL);
        if (fd < 0 || atomic_load(&liar->stopping)) {
            if (fd >= 0)
                close(fd);
            return NULL;
        }
        atomic_fetch_add(&liar->connections, 1);
        lie_once(liar, fd);
        close(fd);
    }
}

static void liar_start(struct liar *liar)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof at;
    struct err err = { 0 };
    liar->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(bind(liar->listen_fd, (struct sockaddr *)&at, len), 0);
    EXPECT_EQ(listen(liar->listen_fd, 16), 0);
    EXPECT_EQ(getsockname(liar->listen_fd, (struct sockaddr *)&at, &len), 0);
    liar->port = ntohs(at.sin_port);
    EXPECT_OK(thread_start(&liar->thread, "liar", lie, liar, &err), err);
}

static void liar_stop(struct liar *liar)
{
    atomic_store(&liar->stopping, true);
    shutdown(liar->listen_fd, SHUT_RDWR);
    pthread_join(liar->thread, NULL);
    close(liar->listen_fd);
}

#define HEAD "HTTP/1.1 200 OK\r\n"

TEST(an_answer_that_is_not_whole_or_not_http_is_an_error_of_its_kind)
{
    static const struct {
        struct str says, repeats;
        bool resets, stays;
        enum err_kind kind; /* ERR_NONE: it is fine after all */
        const char *why;
    } rows[] = {
        /* cut off */
        { STR(""), { 0 }, false, false, ERR_UNAVAILABLE, "no answer from 127.0.0.1" },
        { STR(""), { 0 }, true, false, ERR_UNAVAILABLE, "no answer from 127.0.0.1" },
        { STR("HTTP/1.1 200"), { 0 }, false, false, ERR_UNAVAILABLE, "" },
        { STR(HEAD "Content-Le"), { 0 }, false, false, ERR_UNAVAILABLE, "cut off" },
        { STR(HEAD "Content-Length: 10\r\n\r\nabc"),
          { 0 },
          false,
          false,
          ERR_UNAVAILABLE,
          "cut off after 3 bytes" },
        { STR(HEAD "Content-Length: 10\r\n\r\nabc"),
          { 0 },
          true,
          false,
          ERR_UNAVAILABLE,
          "cut off after 3 bytes: Recv failure: Connection reset by peer" },
        { STR(HEAD "Transfer-Encoding: chunked\r\n\r\n5\r\nabc"),
          { 0 },
          false,
          false,
          ERR_UNAVAILABLE,
          "cut off" },
        { STR(HEAD "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"),
          { 0 },
          false,
          false,
          ERR_UNAVAILABLE,
          "cut off" },
        /* no HTTP */
        { STR("SSH-2.0-OpenSSH_9.2\r\n"), { 0 }, false, false, ERR_INVALID, "no HTTP" },
        { STR("\0\1\2\3\4\5\6\7"), { 0 }, false, false, ERR_INVALID, "no HTTP" },
        { STR("{\"kind\":\"Status\"}"), { 0 }, false, false, ERR_INVALID, "no HTTP" },
        { STR("HTTP/9.9 hello\r\n\r\n"), { 0 }, false, false, ERR_INVALID, "" },
        { STR(HEAD "Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n"),
          { 0 },
          false,
          false,
          ERR_UNAVAILABLE,
          "" },
        { STR(HEAD "Content-Length: minus\r\n\r\nabc"), { 0 }, false, false, ERR_INVALID, "" },
        { STR(HEAD "Content-Encoding: gzip\r\nContent-Length: 9\r\n\r\nnot gzip!"),
          { 0 },
          false,
          false,
          ERR_INVALID,
          "" },
        /* without end */
        { STR("HTTP/1.1 200 OK\r\nX: "), STR("xxxxxxxxxxxxxxxxxxxxxxxx"), false, false,
          ERR_CAPACITY, "" },
        { STR(HEAD), STR("X: xxxxxxxxxxxxxxxxxxxxxxxxxxxxx\r\n"), false, false, ERR_CAPACITY, "" },
        { STR(""), STR("HTTP/1.1 100 Continue\r\n\r\n"), false, false, ERR_CAPACITY, "head" },
        { STR(""), STR("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"), false, false,
          ERR_CAPACITY, "head" },
        { STR(HEAD "\r\n"), STR("yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"), false, false,
          ERR_CAPACITY, "more than 1000000 bytes" },
        { STR(HEAD "Transfer-Encoding: chunked\r\n\r\n"), STR("a\r\n0123456789\r\n"), false, false,
          ERR_CAPACITY, "more than 1000000 bytes" },
        { STR(HEAD "Content-Length: 99999999999\r\n\r\n"), { 0 }, false, true, ERR_CAPACITY, "" },
        /* odd and fine */
        { STR("HTTP/1.1 100 Continue\r\n\r\n" HEAD "Content-Length: 2\r\n\r\nok"),
          { 0 },
          false,
          false,
          ERR_NONE,
          "ok" },
        { STR(HEAD "Content-Length: 2\r\n\r\nok and more than was said"),
          { 0 },
          false,
          false,
          ERR_NONE,
          "ok" },
        { STR(HEAD "\r\nok"), { 0 }, false, false, ERR_NONE, "ok" }, /* until it closes */
        { STR("HTTP/1.0 200 OK\r\n\r\nok"), { 0 }, false, false, ERR_NONE, "ok" },
        { STR(HEAD "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nTrailer: x\r\n\r\n"),
          { 0 },
          false,
          false,
          ERR_NONE,
          "ok" },
    };
    AUTO(http) http = client_new((struct http_options){ 0 });
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        struct liar liar = { .says = rows[i].says,
                             .repeats = rows[i].repeats,
                             .resets = rows[i].resets,
                             .stays = rows[i].stays };
        AUTO_BUF out = { 0 };
        struct err err = { 0 };
        int status = 0;
        liar_start(&liar);
        int rc = http_do(http,
                         &(struct http_request){ .method = "GET",
                                                 .url = URL("http", liar.port, "/"),
                                                 .timeout_ns = WAIT_NS,
                                                 .body_bytes_max = 1000000 },
                         &status, &out, &err);
        liar_stop(&liar);
        print_message("# %zu: %s %s\n", i, rc < 0 ? err_kind_name(err.kind) : "fine", err.text);
        EXPECT_EQ(rc < 0 ? err.kind : ERR_NONE, rows[i].kind);
        if (rc < 0)
            EXPECT_HAS(str_of(err.text), rows[i].why);
        else
            EXPECT_STR(buf_str(&out), rows[i].why);
    }
}

/* False: on a busy machine not even the first bytes came in that time. */
static bool drips(int64_t timeout_ns)
{
    struct liar liar = { .says = STR(HEAD "Content-Length: 100\r\n\r\nslowly"), .stays = true };
    AUTO(http) http = client_new((struct http_options){ 0 });
    AUTO_BUF out = { 0 }, within = { 0 };
    char timeout[DURATION_TEXT_MAX];
    struct err err = { 0 };
    int status = 0;
    liar_start(&liar);
    EXPECT_ERR(http_do(http,
                       &(struct http_request){ .method = "GET",
                                               .url = URL("http", liar.port, "/"),
                                               .timeout_ns = timeout_ns },
                       &status, &out, &err),
               err, ERR_UNAVAILABLE);
    liar_stop(&liar);
    duration_format_short(timeout_ns, timeout);
    buf_addf(&within, "within %s", timeout);
    EXPECT_HAS(str_of(err.text), within.p);
    return strstr(err.text, "did not end within") && strstr(err.text, ": 6 bytes came");
}

TEST(a_reply_that_drips_ends_at_its_time)
{
    int64_t timeout_ns = 200000000;
    while (!drips(timeout_ns) && timeout_ns < WAIT_NS)
        timeout_ns *= 2;
    EXPECT_TRUE(timeout_ns < WAIT_NS);
}

TEST(what_came_of_a_stream_before_it_was_cut_off_is_given_first)
{
    struct liar liar = { .says =
                             STR(HEAD "Transfer-Encoding: chunked\r\n\r\n4\r\none\n\r\n4\r\ntw"),
                         .resets = true };
    AUTO(http) http = client_new((struct http_options){ 0 });
    AUTO_BUF out = { 0 };
    struct err err = { 0 };
    liar_start(&liar);
    AUTO(http_call)
    call =
        http_start(http, &(struct http_request){
                             .method = "GET", .url = URL("http", liar.port, "/"), .stream = true });
    EXPECT_EQ(take_all(call, &out, SIZE_MAX, &err), HTTP_FAILED);
    EXPECT_TRUE(str_starts(STR("one\ntw"), buf_str(&out)));
    EXPECT_EQ(err.kind, ERR_UNAVAILABLE);
    EXPECT_HAS(str_of(err.text), "cut off");
    liar_stop(&liar);
}

/* --- kept connections that the server has closed --- */

TEST(a_change_is_never_sent_twice_on_its_own)
{
    static const struct {
        const char *method;
        bool sent_again; /* reading twice harms nobody */
    } rows[] = { { "GET", true },    { "HEAD", true }, { "POST", false },
                 { "PATCH", false }, { "PUT", false }, { "DELETE", false } };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        /* The first request is answered; the second is read, and the connection closed. */
        struct liar liar = { .says = STR(HEAD "Content-Length: 0\r\n\r\n"), .stays = true };
        AUTO(http) http = client_new((struct http_options){ 0 });
        AUTO_BUF out = { 0 };
        struct err err = { 0 };
        int status = 0;
        liar_start(&liar);
        struct http_request first = { .method = "GET", .url = URL("http", liar.port, "/") };
        struct http_request second = { .method = rows[i].method,
                                       .url = first.url,
                                       .timeout_ns = WAIT_NS };
        EXPECT_OK(http_do(http, &first, &status, &out, &err), err);
        atomic_store(&liar.connections, 0);
        liar.stays = false; /* what it hears now ends the connection: `recv` returned */
        int rc = http_do(http, &second, &status, &out, &err);
        EXPECT_EQ(rc, rows[i].sent_again ? 0 : -1);
        if (rc < 0) {
            EXPECT_EQ(err.kind, ERR_UNAVAILABLE);
            EXPECT_HAS(str_of(err.text), "may have acted");
        }
        liar_stop(&liar);
        EXPECT_EQ(atomic_load(&liar.requests), rows[i].sent_again ? 2 : 1);
    }
}

/* --- compression --- */

/* A gzip of `count` times 258 equal bytes, and one more: a literal, then as many matches of the
 * greatest length at distance one, in codes that deflate fixes: thirteen bits each. */
static void bomb(struct buf *out, size_t count)
{
    uint32_t bits = 0, filled = 0;
    buf_add(out, STR("\x1f\x8b\x08\0\0\0\0\0\0\x03"));
#define PUT(value, n)                                                                              \
    for (uint32_t at_ = 0; at_ < (n); at_++) {                                                     \
        bits |= (((uint32_t)(value) >> at_) & 1) << filled;                                        \
        if (++filled == 8) {                                                                       \
            buf_addc(out, (char)bits);                                                             \
            bits = filled = 0;                                                                     \
        }                                                                                          \
    }
    PUT(1, 1)    /* the last block */
    PUT(1, 2)    /* with fixed codes */
    PUT(0x0c, 8) /* literal 0: code 00110000, its first bit first */
    for (size_t i = 0; i < count; i++) {
        PUT(0xa3, 8) /* length 258: code 11000101 */
        PUT(0, 5)    /* distance 1 */
    }
    PUT(0, 7) /* the end */
    PUT(0, 7) /* to the end of a byte */
#undef PUT
}

static uint32_t crc_of_zeros(size_t count)
{
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < count; i++)
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
    return ~crc;
}

TEST(a_compressed_reply_is_read_and_one_that_swells_is_refused)
{
    for (int too_large = 0; too_large < 2; too_large++) {
        size_t matches = too_large ? 100000 : 1000; /* 25 MB of 160 kB; 258 kB of 2 kB */
        size_t bytes = matches * 258 + 1;
        AUTO_BUF zipped = { 0 };
        AUTO_BUF says = { 0 };
        AUTO_BUF out = { 0 };
        AUTO(http) http = client_new((struct http_options){ 0 });
        struct err err = { 0 };
        int status = 0;
        bomb(&zipped, matches);
        uint32_t trailer[2] = { crc_of_zeros(bytes),
                                (uint32_t)bytes }; /* little endian, as we are */
        buf_add(&zipped, (struct str){ (char *)trailer, sizeof trailer });
        buf_addf(&says, HEAD "Content-Encoding: gzip\r\nContent-Length: %zu\r\n\r\n", zipped.len);
        buf_add(&says, buf_str(&zipped));
        struct liar liar = { .says = buf_str(&says), .stays = true };
        liar_start(&liar);
        int rc = http_do(http,
                         &(struct http_request){ .method = "GET",
                                                 .url = URL("http", liar.port, "/"),
                                                 .timeout_ns = WAIT_NS,
                                                 .body_bytes_max = 1000000 },
                         &status, &out, &err);
        if (too_large) {
            EXPECT_ERR(rc, err, ERR_CAPACITY);
        } else {
            EXPECT_OK(rc, err);
            EXPECT_EQ(out.len, bytes);
        }
        http_free(take(&http));
        liar_stop(&liar);
    }
}

TEST(who_does_not_listen_is_named_with_the_reason)
{
    static const struct {
        const char *url, *why;
    } rows[] = {
        { "http://127.0.0.1:1/x", "connect to 127.0.0.1:1: connection refused" },
        { "https://127.0.0.1:1/x", "connect to 127.0.0.1:1: connection refused" },
        { "http://[::1]:1/x", "connect to [::1]:1: " },
        { "http://no-such-host.invalid/x", "connect to no-such-host.invalid: " },
    };
    AUTO(http) http = client_new((struct http_options){ 0 });
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        AUTO_BUF out = { 0 };
        struct err err = { 0 };
        int status;
        EXPECT_ERR(http_do(http,
                           &(struct http_request){
                               .method = "GET", .url = str_of(rows[i].url), .timeout_ns = WAIT_NS },
                           &status, &out, &err),
                   err, ERR_UNAVAILABLE);
        EXPECT_TRUE(str_starts(str_of(err.text), str_of(rows[i].why)));
    }
}

TEST(many_calls_to_a_server_that_is_not_there_all_fail)
{
    AUTO(http) http = client_new((struct http_options){ 0 });
    struct http_call *calls[50];
    for (size_t i = 0; i < KV_COUNT_OF(calls); i++)
        calls[i] = http_start(
            http, &(struct http_request){ .method = "GET", .url = STR("https://127.0.0.1:1/") });
    for (size_t i = 0; i < KV_COUNT_OF(calls); i++) {
        struct http_reply reply;
        struct err err = { 0 };
        EXPECT_ERR(http_finish(calls[i], &reply, &err), err, ERR_UNAVAILABLE);
        http_call_free(calls[i]);
    }
}

TEST(tls_to_a_server_that_speaks_none_says_so)
{
    struct liar liar = { .says = STR(HEAD "Content-Length: 0\r\n\r\n"), .stays = true };
    AUTO(http) http = client_new((struct http_options){ 0 });
    AUTO_BUF out = { 0 };
    struct err err = { 0 };
    int status;
    liar_start(&liar);
    struct http_request request = { .method = "GET",
                                    .url = URL("https", liar.port, "/"),
                                    .timeout_ns = 100000000 };
    /* The greeting of TLS holds no end of a head: this server waits, and so do we. */
    EXPECT_ERR(http_do(http, &request, &status, &out, &err), err, ERR_UNAVAILABLE);
    EXPECT_HAS(str_of(err.text), "no connection to");
    liar_stop(&liar);
}

TEST(a_name_that_nobody_answers_for_holds_up_neither_its_own_call_nor_others)
{
    struct liar liar = { .says = STR("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") };
    liar_start(&liar);
    AUTO(http) http = client_new((struct http_options){ 0 });
    struct http_request slow = { .method = "GET",
                                 .url = STR("http://slow.test/"),
                                 .timeout_ns = 20 * 1000000 };
    struct http_request quick = { .method = "GET", .url = URL("http", liar.port, "/") };
    struct err err = { 0 };
    AUTO_BUF body = { 0 };
    int status = 0;
    EXPECT_ERR(http_do(http, &slow, &status, &body, &err), err, ERR_UNAVAILABLE);
    slow.timeout_ns = 0;
    AUTO(http_call) call = http_start(http, &slow);
    WAIT_UNTIL(dns_count(&dns_asked) == 2);
    http_cancel(call);
    EXPECT_OK(http_do(http, &quick, &status, &body, &err), err);
    EXPECT_STR(buf_str(&body), "ok");
    EXPECT_EQ(dns_count(&dns_answered), 0);

    pthread_mutex_lock(&dns_lock);
    dns_answers = true;
    pthread_cond_broadcast(&dns_moved);
    pthread_mutex_unlock(&dns_lock);
    WAIT_UNTIL(dns_count(&dns_answered) == 2);
    liar_stop(&liar);
}

#include "node/prober_http.h"
#include "support/test.h"

static struct str request_of(struct arena *arena, const struct handler *handler, const char *host)
{
    struct probe_request request;
    struct err err;
    EXPECT_OK(probe_request_make(arena, handler, &request, &err), err);
    AUTO_BUF out = { 0 };
    struct probe_target to = { .host = str_of(host),
                               .port = 8080,
                               .path = probe_path(arena, handler->path) };
    probe_request_write(&request, &to, &out);
    return arena_str(arena, buf_str(&out));
}

TEST(a_request_has_what_kubelets_send)
{
    AUTO_ARENA arena = { 0 };
    struct handler handler = { .kind = HANDLER_HTTP, .path = STR("/healthz?full=1") };

    EXPECT_STR(request_of(&arena, &handler, "10.1.2.3"), "GET /healthz?full=1 HTTP/1.1\r\n"
                                                         "Host: 10.1.2.3:8080\r\n"
                                                         "Accept: */*\r\n"
                                                         "User-Agent: kube-probe/karve\r\n"
                                                         "Connection: close\r\n\r\n");
    EXPECT_HAS(request_of(&arena, &handler, "fd00::7"), "Host: [fd00::7]:8080\r\n");
}

TEST(headers_of_the_probe_win_and_empty_ones_are_not_sent)
{
    AUTO_ARENA arena = { 0 };
    const struct handler_header headers[] = {
        { STR("host"), STR("shop.example") }, { STR("X-Check"), STR("1") },
        { STR("X-Check"), STR("2") },         { STR("Accept"), STR("") },
        { STR("user-agent"), STR("me") },
    };
    struct handler handler = { .kind = HANDLER_HTTP, .headers = { headers, 5 } };

    EXPECT_STR(request_of(&arena, &handler, "10.1.2.3"), "GET / HTTP/1.1\r\n"
                                                         "host: shop.example\r\n"
                                                         "X-Check: 1\r\n"
                                                         "X-Check: 2\r\n"
                                                         "user-agent: me\r\n"
                                                         "Connection: close\r\n\r\n");
}

TEST(a_header_cannot_smuggle_another_line)
{
    AUTO_ARENA arena = { 0 };
    const struct handler_header bad[] = {
        { STR("X-A"), STR("1\r\nX-B: 2") }, { STR("X A"), STR("1") },  { STR(""), STR("1") },
        { STR("X:A"), STR("1") },           { STR("X\0A"), STR("1") }, { STR("X-A"), STR("\0") },
    };
    for (uint32_t i = 0; i < KV_COUNT_OF(bad); i++) {
        struct handler handler = { .kind = HANDLER_HTTP, .headers = { &bad[i], 1 } };
        struct probe_request request;
        struct err err;
        EXPECT_ERR(probe_request_make(&arena, &handler, &request, &err), err, ERR_INVALID);
    }
}

TEST(a_path_cannot_smuggle_anything_either)
{
    AUTO_ARENA arena = { 0 };
    static const struct {
        struct str path;
        const char *sent;
    } cases[] = {
        { STR(""), "GET / HTTP/1.1\r\n" },
        { STR("ready"), "GET /ready HTTP/1.1\r\n" },
        { STR("/a b\r\nX: 1"), "GET /a%20b%0D%0AX:%201 HTTP/1.1\r\n" },
        { STR("/%41?x=y#part"), "GET /%41?x=y HTTP/1.1\r\n" },
        { STR("/gr\xc3\xbc\xc3\x9f\x00"), "GET /gr%C3%BC%C3%9F%00 HTTP/1.1\r\n" },
    };
    for (uint32_t i = 0; i < KV_COUNT_OF(cases); i++) {
        struct handler handler = { .kind = HANDLER_HTTP, .path = cases[i].path };
        EXPECT_HAS(request_of(&arena, &handler, "h"), cases[i].sent);
    }
}

TEST(a_url_names_host_port_and_path_and_nothing_else)
{
    static const struct {
        const char *host, *path, *url;
    } cases[] = {
        { "10.0.0.1", "/a?b", "https://10.0.0.1:8443/a?b" },
        { "fd00::7", "", "https://[fd00::7]:8443/" },
        { "db.shop", "x y", "https://db.shop:8443/x%20y" },
        { "me@db", "/", NULL },
        { "db/x", "/", NULL },
        { "db#x", "/", NULL },
        { "[::1]", "/", NULL },
    };
    AUTO_ARENA arena = { 0 };
    for (uint32_t i = 0; i < KV_COUNT_OF(cases); i++) {
        struct probe_target to = { .host = str_of(cases[i].host),
                                   .port = 8443,
                                   .path = probe_path(&arena, str_of(cases[i].path)) };
        EXPECT_STR(probe_url(&arena, &to), cases[i].url);
    }
}

TEST(an_answer_is_read_when_its_head_is_whole)
{
    struct str whole = STR("HTTP/1.1 302 Found\r\nServer: x\r\nLOCATION:  /there \r\n\r\nbody");
    struct probe_answer answer;
    size_t head_bytes = whole.len - strlen("body");
    for (size_t len = 0; len < head_bytes; len++)
        EXPECT_FALSE(probe_answer_read(str_sub(whole, 0, len), &answer));
    for (size_t len = head_bytes; len <= whole.len; len++) {
        EXPECT_TRUE(probe_answer_read(str_sub(whole, 0, len), &answer));
        EXPECT_EQ(answer.code, 302);
        EXPECT_STR(answer.location, "/there");
    }
}

TEST(interim_answers_are_skipped)
{
    struct probe_answer answer;
    EXPECT_FALSE(probe_answer_read(STR("HTTP/1.1 100 Continue\r\n\r\n"), &answer));
    EXPECT_TRUE(probe_answer_read(
        STR("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nA: b\r\n\r\nHTTP/1.1 204 x\r\n\r\n"),
        &answer));
    EXPECT_EQ(answer.code, 204);
    EXPECT_TRUE(answer.location.p == NULL);
}

TEST(what_is_not_http_is_told_apart)
{
    static const char *const cases[] = {
        "SSH-2.0-OpenSSH\r\n\r\n",    "\r\n\r\n",
        "HTTP/1.1\r\n\r\n",           "HTTP/1.1 20\r\n\r\n",
        "HTTP/1.1 2000 Many\r\n\r\n", "HTTP/1.1 -12 Less\r\n\r\n",
        "http/1.1 200 ok\r\n\r\n",    " HTTP/1.1 200 OK\r\n\r\n",
    };
    for (uint32_t i = 0; i < KV_COUNT_OF(cases); i++) {
        struct probe_answer answer;
        EXPECT_TRUE(probe_answer_read(str_of(cases[i]), &answer));
        EXPECT_EQ(answer.code, 0);
    }
}

TEST(redirects_are_followed_on_the_same_host_only)
{
    static const struct {
        const char *host, *location;
        const char *path; /* NULL: not followed */
        int port;
        bool https;
    } cases[] = {
        { "10.0.0.1", "/there?x", "/there?x", 8080, false },
        { "10.0.0.1", "http://10.0.0.1/", "/", 80, false },
        { "10.0.0.1", "http://10.0.0.1", "/", 80, false },
        { "10.0.0.1", "http://10.0.0.1?q", "/?q", 80, false },
        { "10.0.0.1", "http://10.0.0.1:9/x", "/x", 9, false },
        { "10.0.0.1", "//10.0.0.1:9/x", "/x", 9, false },
        { "10.0.0.1", "//10.0.0.1/x", "/x", 80, false },
        { "fd00::7", "http://[fd00::7]:81/x", "/x", 81, false },
        { "fd00::7", "http://[fd00::7]/x", "/x", 80, false },
        { "10.0.0.1", "https://10.0.0.1/", "/", 443, true },
        { "10.0.0.1", "https://10.0.0.1:8443/x", "/x", 8443, true },
        { "10.0.0.1", "https://10.0.0.2/", NULL, 8080, false },
        { "10.0.0.1", "http://10.0.0.2/", NULL, 8080, false },
        { "10.0.0.1", "http://me@10.0.0.1/", NULL, 8080, false },
        { "10.0.0.1", "http://10.0.0.1:0/", NULL, 8080, false },
        { "10.0.0.1", "http://10.0.0.1:65536/", NULL, 8080, false },
        { "10.0.0.1", "http://10.0.0.1:x/", NULL, 8080, false },
        { "fd00::7", "http://[fd00::7/x", NULL, 8080, false },
        { "fd00::7", "http://[fd00::7]x/", NULL, 8080, false },
        { "fd00::7", "http://[", NULL, 8080, false },
        { "10.0.0.1", "ftp://10.0.0.1/", NULL, 8080, false },
        { "10.0.0.1", "there", NULL, 8080, false },
        { "10.0.0.1", "", NULL, 8080, false },
    };
    AUTO_ARENA arena = { 0 };
    for (uint32_t i = 0; i < KV_COUNT_OF(cases); i++) {
        struct probe_target to = { .host = str_of(cases[i].host), .port = 8080 };
        EXPECT_EQ(probe_redirect(&arena, str_of(cases[i].location), &to), cases[i].path != NULL);
        EXPECT_EQ(to.port, cases[i].port);
        EXPECT_EQ(to.https, cases[i].https);
        EXPECT_STR(to.path, cases[i].path);
    }
}

TEST(a_redirect_without_a_scheme_stays_with_tls)
{
    AUTO_ARENA arena = { 0 };
    struct probe_target to = { .host = STR("10.0.0.1"), .port = 8443, .https = true };
    EXPECT_TRUE(probe_redirect(&arena, STR("/x"), &to));
    EXPECT_TRUE(to.https && to.port == 8443);
    EXPECT_TRUE(probe_redirect(&arena, STR("//10.0.0.1/x"), &to));
    EXPECT_TRUE(to.https && to.port == 443);
    EXPECT_TRUE(probe_redirect(&arena, STR("http://10.0.0.1/x"), &to));
    EXPECT_TRUE(!to.https && to.port == 80);
}

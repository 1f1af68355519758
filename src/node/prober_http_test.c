#include "node/prober_http.h"
#include "support/test.h"

static struct str request_of(struct arena *arena, const struct handler *handler, const char *host)
{
    struct probe_request request;
    struct err err;
    EXPECT_OK(probe_request_make(arena, handler, &request, &err), err);
    AUTO_BUF out = { 0 };
    probe_request_write(&request, str_of(host), 8080, &out);
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
    const struct http_header headers[] = {
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
    const struct http_header bad[] = {
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
        enum redirect where;
        int port;
        const char *path;
    } cases[] = {
        { "10.0.0.1", "/there?x", REDIRECT_FOLLOW, 8080, "/there?x" },
        { "10.0.0.1", "http://10.0.0.1/", REDIRECT_FOLLOW, 80, "/" },
        { "10.0.0.1", "http://10.0.0.1", REDIRECT_FOLLOW, 80, "/" },
        { "10.0.0.1", "http://10.0.0.1?q", REDIRECT_FOLLOW, 80, "/?q" },
        { "10.0.0.1", "http://10.0.0.1:9/x", REDIRECT_FOLLOW, 9, "/x" },
        { "10.0.0.1", "//10.0.0.1:9/x", REDIRECT_FOLLOW, 9, "/x" },
        { "fd00::7", "http://[fd00::7]:81/x", REDIRECT_FOLLOW, 81, "/x" },
        { "fd00::7", "http://[fd00::7]/x", REDIRECT_FOLLOW, 80, "/x" },
        { "10.0.0.1", "https://10.0.0.1/", REDIRECT_TLS, 8080, NULL },
        { "10.0.0.1", "http://10.0.0.2/", REDIRECT_ELSEWHERE, 8080, NULL },
        { "10.0.0.1", "http://me@10.0.0.1/", REDIRECT_ELSEWHERE, 8080, NULL },
        { "10.0.0.1", "http://10.0.0.1:0/", REDIRECT_ELSEWHERE, 8080, NULL },
        { "10.0.0.1", "http://10.0.0.1:65536/", REDIRECT_ELSEWHERE, 8080, NULL },
        { "10.0.0.1", "http://10.0.0.1:x/", REDIRECT_ELSEWHERE, 8080, NULL },
        { "fd00::7", "http://[fd00::7/x", REDIRECT_ELSEWHERE, 8080, NULL },
        { "fd00::7", "http://[fd00::7]x/", REDIRECT_ELSEWHERE, 8080, NULL },
        { "fd00::7", "http://[", REDIRECT_ELSEWHERE, 8080, NULL },
        { "10.0.0.1", "ftp://10.0.0.1/", REDIRECT_ELSEWHERE, 8080, NULL },
        { "10.0.0.1", "there", REDIRECT_ELSEWHERE, 8080, NULL },
        { "10.0.0.1", "", REDIRECT_ELSEWHERE, 8080, NULL },
    };
    AUTO_ARENA arena = { 0 };
    for (uint32_t i = 0; i < KV_COUNT_OF(cases); i++) {
        uint16_t port = 8080;
        struct str path = STR_NONE;
        EXPECT_EQ(
            probe_redirect(&arena, str_of(cases[i].host), str_of(cases[i].location), &port, &path),
            cases[i].where);
        EXPECT_EQ(port, cases[i].port);
        EXPECT_STR(path, cases[i].path);
    }
}

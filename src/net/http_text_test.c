#include "net/http_inner.h"

#include "support/test.h"

TEST(a_url_has_its_parts)
{
    static const struct {
        const char *url, *authority, *host, *rest;
        uint16_t port;
        bool tls;
    } rows[] = {
        { "http://a", "a", "a", "", 80, false },
        { "https://a/", "a", "a", "/", 443, true },
        { "https://10.0.0.1:6443/api?x=1#y", "10.0.0.1:6443", "10.0.0.1", "/api?x=1#y", 6443,
          true },
        { "https://[::1]/x", "[::1]", "[::1]", "/x", 443, true },
        { "https://[fe80::1%25eth0]:1/x", "[fe80::1%25eth0]:1", "[fe80::1%25eth0]", "/x", 1, true },
        { "http://a.b-c_d:65535?q", "a.b-c_d:65535", "a.b-c_d", "?q", 65535, false },
        { "http://a/http://u@b/", "a", "a", "/http://u@b/", 80, false },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        struct http_url url;
        struct err err = { 0 };
        EXPECT_OK(http_url_parse(str_of(rows[i].url), &url, &err), err);
        EXPECT_STR(url.authority, rows[i].authority);
        EXPECT_STR(url.host, rows[i].host);
        EXPECT_STR(url.rest, rows[i].rest);
        EXPECT_EQ(url.port, rows[i].port);
        EXPECT_EQ(url.tls, rows[i].tls);
    }
}

TEST(what_is_no_url_is_refused)
{
    static const char *const rows[] = {
        "",
        "a",
        "ftp://a",
        "HTTP://a",
        "http:/a",
        "http://",
        "http:///x",
        "http://:80",
        "http://a:",
        "http://a:0",
        "http://a:x",
        "http://a:-1",
        "http://a:+1",
        "http://a:65536",
        "http://a:80:80",
        "http://[::1",
        "http://[]/",
        "http://[::1]x",
        "http://::1/",
        "http://u@a/",
        "http://u:p@a/",
        "http://a\\b/",
        "http://a b/",
        "http://a/\n",
        "http://a/\x7f",
        "http://a%2f/",
        "http://a,b/",
        "http://\"a\"/",
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        struct http_url url;
        struct err err = { 0 };
        EXPECT_ERR(http_url_parse(str_of(rows[i]), &url, &err), err, ERR_INVALID);
        EXPECT_FALSE(strstr(err.text, "u:p")); /* a password is not repeated */
    }
}

TEST(a_header_is_found_whatever_its_case_and_the_first_one_wins)
{
    struct str head = STR("HTTP/1.1 200 OK\r\nA: 1\r\nRetry-After:  7 \r\nretry-after: 8\r\n"
                          " folded: 9\r\nEmpty:\r\nno colon\r\nLast: x");
    EXPECT_STR(http_head_find(head, STR("a")), "1");
    EXPECT_STR(http_head_find(head, STR("RETRY-AFTER")), "7");
    EXPECT_STR(http_head_find(head, STR("Last")), "x");
    EXPECT_TRUE(http_head_find(head, STR("Empty")).p != NULL);
    EXPECT_EQ(http_head_find(head, STR("Empty")).len, 0);
    EXPECT_TRUE(http_head_find(head, STR("folded")).p == NULL);
    EXPECT_TRUE(http_head_find(head, STR("no colon")).p == NULL);
    EXPECT_TRUE(http_head_find(head, STR("Las")).p == NULL);
    EXPECT_TRUE(http_head_find(STR_NONE, STR("a")).p == NULL);
    struct str twice = STR("HTTP/1.1 401 No\r\nA: 1\r\nB: 2\r\na: 3\r\n");
    EXPECT_STR(http_head_find_at(twice, STR("A"), 0), "1");
    EXPECT_STR(http_head_find_at(twice, STR("A"), 1), "3");
    EXPECT_TRUE(http_head_find_at(twice, STR("A"), 2).p == NULL);
}

TEST(retry_after_is_seconds_or_a_date)
{
    static const struct {
        const char *text;
        int64_t seconds; /* -1: it does not say */
    } rows[] = {
        { "0", 0 },
        { "1", 1 },
        { "120", 120 },
        { "99999999999999999999", 365 * 86400 },
        { "Sun, 06 Nov 1994 08:49:37 GMT", 10 },
        { "Sunday, 06-Nov-94 08:49:47 GMT", 20 }, /* as in old times */
        { "Sun Nov  6 08:50:27 1994", 60 },
        { "Sun, 06 Nov 1994 08:49:27 GMT", 0 },
        { "Sat, 05 Nov 1994 08:49:37 GMT", 0 },
        { "Fri, 06 Nov 2093 08:49:37 GMT", 365 * 86400 },
        { "", -1 },
        { "-1", -1 },
        { "+1", -1 },
        { "1.5", -1 },
        { "1994", 1994 },
        { "soon", -1 },
        { "1 minute", -1 },
        { "20260102", 20260102 },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        int64_t now_us = (int64_t)784111767 * 1000000; /* ten seconds before the first date */
        int64_t want = rows[i].seconds < 0 ? -1 : rows[i].seconds * 1000000000;
        EXPECT_EQ(http_retry_after_parse(str_of(rows[i].text), now_us), want);
    }
    EXPECT_EQ(http_retry_after_parse(STR_NONE, 0), -1);
}

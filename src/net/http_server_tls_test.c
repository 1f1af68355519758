/* The server's TLS, asked by our own client. */
#include "net/certs_testing.h"
#include "net/http.h"
#include "net/http_server.h"
#include "support/test.h"

#include <stdio.h>

struct secure {
    struct cert *ca, *server_cert, *client_cert, *stranger;
    struct http_server *server;
};

static void hello(void *ctx, const struct served_request *request, struct served_reply *reply)
{
    (void)ctx;
    buf_addf(&reply->body, "hello %zu", request->body.len);
}

static int secure_start(struct secure *s, bool ask_clients, size_t body_max, struct err *err)
{
    static const struct http_route routes[] = {
        { .path = "/hello", .handle = hello, .post = true }
    };
    s->ca = cert_new((struct cert_options){ .name = "authority", .authority = true });
    s->server_cert =
        cert_new((struct cert_options){ .name = "server", .loopback = true, .issuer = s->ca });
    s->client_cert = cert_new((struct cert_options){ .name = "client", .issuer = s->ca });
    s->stranger = cert_new((struct cert_options){ .name = "stranger" });
    struct http_server_options options = {
        .address = "127.0.0.1",
        .routes = routes,
        .route_count = 1,
        .tls = { .cert_pem = s->server_cert->cert_pem,
                 .key_pem = s->server_cert->key_pem,
                 .client_ca_pem = ask_clients ? s->ca->cert_pem : STR("") },
        .body_bytes_max = body_max,
    };
    return http_server_start(options, &s->server, err);
}

static void secure_done(struct secure *s)
{
    http_server_stop(s->server);
    cert_free(s->ca);
    cert_free(s->server_cert);
    cert_free(s->client_cert);
    cert_free(s->stranger);
}
#define SECURE __attribute__((cleanup(secure_done))) struct secure

/* Its status, or minus the kind of error. */
static int ask(struct secure *s, struct http_tls tls, struct str body, struct buf *out)
{
    struct err err = { 0 };
    AUTO(http) http = NULL;
    AUTO_BUF url = { 0 };
    int status = 0;
    EXPECT_OK(http_new((struct http_options){ .tls = tls, .proxy = "" }, &http, &err), err);
    buf_addf(&url, "https://127.0.0.1:%u/hello", http_server_port(s->server));
    struct http_request request = {
        .method = "POST", .url = buf_str(&url), .body = body, .timeout_ns = (int64_t)30 * 1000000000
    };
    return http_do(http, &request, &status, out, &err) < 0 ? -(int)err.kind : status;
}

TEST(a_server_with_a_certificate_speaks_tls)
{
    SECURE s = { 0 };
    struct err err = { 0 };
    AUTO_BUF out = { 0 };
    EXPECT_OK(secure_start(&s, false, 0, &err), err);
    EXPECT_EQ(ask(&s, (struct http_tls){ .ca_pem = s.ca->cert_pem }, STR("four"), &out), 200);
    EXPECT_STR(buf_str(&out), "hello 4");
    EXPECT_EQ(ask(&s, (struct http_tls){ .ca_pem = s.stranger->cert_pem }, STR(""), &out),
              -ERR_DENIED);
}

TEST(who_has_no_certificate_of_the_authority_gets_nothing)
{
    SECURE s = { 0 };
    struct err err = { 0 };
    AUTO_BUF out = { 0 };
    EXPECT_OK(secure_start(&s, true, 0, &err), err);
    EXPECT_EQ(ask(&s,
                  (struct http_tls){ .ca_pem = s.ca->cert_pem,
                                     .cert_pem = s.client_cert->cert_pem,
                                     .key_pem = s.client_cert->key_pem },
                  STR(""), &out),
              200);
    EXPECT_STR(buf_str(&out), "hello 0");
    buf_clear(&out);
    /* Either the handshake or the answer says so, as the library likes it. */
    int anonymous = ask(&s, (struct http_tls){ .ca_pem = s.ca->cert_pem }, STR(""), &out);
    EXPECT_TRUE(anonymous == 403 || anonymous < 0);
    int stranger = ask(&s,
                       (struct http_tls){ .ca_pem = s.ca->cert_pem,
                                          .cert_pem = s.stranger->cert_pem,
                                          .key_pem = s.stranger->key_pem },
                       STR(""), &out);
    EXPECT_TRUE(stranger == 403 || stranger < 0);
    EXPECT_TRUE(strstr(out.p ? out.p : "", "hello") == NULL);
}

TEST(a_body_may_be_as_long_as_the_server_was_told)
{
    SECURE s = { 0 };
    struct err err = { 0 };
    AUTO_BUF body = { 0 }, out = { 0 };
    EXPECT_OK(secure_start(&s, false, (size_t)6 << 20, &err), err);
    struct http_tls tls = { .ca_pem = s.ca->cert_pem };
    buf_reserve(&body, (size_t)7 << 20);
    memset(body.p, 'x', (size_t)7 << 20);
    EXPECT_EQ(ask(&s, tls, (struct str){ body.p, (size_t)6 << 20 }, &out), 200);
    EXPECT_STR(buf_str(&out), "hello 6291456");
    int longer = ask(&s, tls, (struct str){ body.p, ((size_t)6 << 20) + 1 }, &out);
    EXPECT_TRUE(longer == 413 || longer < 0);
}

TEST(what_is_no_certificate_is_told_before_the_server_starts)
{
    struct err err = { 0 };
    struct http_server *server = NULL;
    AUTO(cert) one = cert_new((struct cert_options){ .name = "one" });
    AUTO(cert) other = cert_new((struct cert_options){ .name = "other" });
    struct http_server_options options = { .address = "127.0.0.1" };
    options.tls = (struct http_server_tls){ .cert_pem = STR("none"), .key_pem = one->key_pem };
    EXPECT_ERR(http_server_start(options, &server, &err), err, ERR_INVALID);
    options.tls = (struct http_server_tls){ .key_pem = one->key_pem };
    EXPECT_ERR(http_server_start(options, &server, &err), err, ERR_INVALID);
    options.tls = (struct http_server_tls){ .cert_pem = one->cert_pem, .key_pem = other->key_pem };
    EXPECT_ERR(http_server_start(options, &server, &err), err, ERR_INVALID);
    options.tls = (struct http_server_tls){ .cert_pem = one->cert_pem,
                                            .key_pem = one->key_pem,
                                            .client_ca_pem = STR("none") };
    EXPECT_ERR(http_server_start(options, &server, &err), err, ERR_INVALID);
}

#include "net/http.h"

#include "net/http_peer_testing.h"
#include "net/http_testing.h"

#include <stdatomic.h>

/* An authority, a server's certificate for 127.0.0.1 and "api.test", and one for a client. */
struct pki {
    struct cert *ca, *server, *client;
};

static void pki_done(struct pki *pki)
{
    cert_free(pki->ca);
    cert_free(pki->server);
    cert_free(pki->client);
}

#define AUTO_PKI __attribute__((cleanup(pki_done))) struct pki

static struct pki pki_new(void)
{
    struct pki pki = { .ca = cert_new((struct cert_options){ .name = "ca", .authority = true }) };
    pki.server = cert_new((struct cert_options){
        .name = "server", .dns = "api.test", .loopback = true, .issuer = pki.ca });
    pki.client = cert_new((struct cert_options){ .name = "client", .issuer = pki.ca });
    return pki;
}

static struct http_tls tls_of(const struct pki *pki)
{
    return (struct http_tls){ .ca_pem = pki->ca->cert_pem,
                              .cert_pem = pki->client->cert_pem,
                              .key_pem = pki->client->key_pem };
}

static int get(struct http *http, struct str url, int *status, struct buf *out, struct err *err)
{
    buf_clear(out);
    return http_do(http,
                   &(struct http_request){ .method = "GET", .url = url, .timeout_ns = WAIT_NS },
                   status, out, err);
}

TEST(a_server_with_a_certificate_of_the_authority_is_believed)
{
    AUTO_PKI pki = pki_new();
    for (int http2 = 0; http2 < 2; http2++) {
        AUTO(http_peer)
        peer = http_peer_new((struct http_peer_options){ .http2 = http2, .cert = pki.server });
        AUTO(http) http = client_new((struct http_options){ .tls.ca_pem = pki.ca->cert_pem });
        AUTO_BUF out = { 0 };
        int status = 0;
        struct err err = { 0 };
        EXPECT_OK(get(http, URL("https", http_peer_port(peer), "/echo"), &status, &out, &err), err);
        EXPECT_EQ(status, 200);
        EXPECT_HAS(buf_str(&out), "GET /echo\n");
    }
}

TEST(a_server_that_is_not_believed_is_denied_with_the_reason)
{
    AUTO_PKI pki = pki_new();
    AUTO_PKI other = pki_new();
    AUTO(cert) stranger = cert_new((struct cert_options){ .name = "stranger", .authority = true });
    AUTO(cert)
    strange =
        cert_new((struct cert_options){ .name = "strange", .loopback = true, .issuer = stranger });
    AUTO(cert) self = cert_new((struct cert_options){ .name = "self", .loopback = true });
    AUTO(cert)
    expired = cert_new((struct cert_options){
        .name = "old", .loopback = true, .issuer = pki.ca, .expired = true });
    AUTO(cert)
    elsewhere =
        cert_new((struct cert_options){ .name = "web", .dns = "web.test", .issuer = pki.ca });
    const struct {
        const struct cert *cert;
        struct str ca_pem;
        const char *why;
    } rows[] = {
        { strange, pki.ca->cert_pem, "unable to get local issuer certificate" },
        { other.server, pki.ca->cert_pem, "certificate signature failure" }, /* of the same name */
        { pki.server, STR_NONE, "unable to get local issuer certificate" },  /* the system's */
        { self, pki.ca->cert_pem, "self-signed certificate" },
        { expired, pki.ca->cert_pem, "certificate has expired" },
        { elsewhere, pki.ca->cert_pem, "'127.0.0.1'" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        AUTO(http_peer) peer = http_peer_new((struct http_peer_options){ .cert = rows[i].cert });
        AUTO(http) http = client_new((struct http_options){ .tls.ca_pem = rows[i].ca_pem });
        AUTO(http) careless = client_new(
            (struct http_options){ .tls = { .ca_pem = rows[i].ca_pem, .insecure = true } });
        AUTO_BUF out = { 0 };
        AUTO_BUF start = { 0 };
        int status = 0;
        struct err err = { 0 };
        struct str url = URL("https", http_peer_port(peer), "/echo");
        EXPECT_ERR(get(http, url, &status, &out, &err), err, ERR_DENIED);
        buf_addf(&start, "certificate of 127.0.0.1:%u: ", http_peer_port(peer));
        EXPECT_TRUE(str_starts(str_of(err.text), buf_str(&start)));
        EXPECT_HAS(str_of(err.text), rows[i].why);
        EXPECT_EQ(http_peer_requests(peer), 0);
        EXPECT_OK(get(careless, url, &status, &out, &err), err);
    }
}

TEST(the_name_to_verify_can_be_another_than_the_one_to_connect_to)
{
    AUTO_PKI pki = pki_new();
    AUTO(cert) named =
        cert_new((struct cert_options){ .name = "x", .dns = "api.test", .issuer = pki.ca });
    for (int http2 = 0; http2 < 2; http2++) {
        AUTO(http_peer)
        peer = http_peer_new((struct http_peer_options){ .http2 = http2, .cert = named });
        struct http_tls tls = { .ca_pem = pki.ca->cert_pem, .server_name = STR("api.test") };
        AUTO(http) right = client_new((struct http_options){ .tls = tls });
        tls.server_name = STR("web.test");
        AUTO(http) wrong = client_new((struct http_options){ .tls = tls });
        AUTO_BUF out = { 0 };
        AUTO_BUF host = { 0 };
        int status = 0;
        struct err err = { 0 };
        struct str url = URL("https", http_peer_port(peer), "/echo?a=b");
        EXPECT_OK(get(right, url, &status, &out, &err), err);
        buf_addf(&host, "%s: 127.0.0.1:%u\n", http2 ? ":authority" : "Host", http_peer_port(peer));
        EXPECT_HAS(buf_str(&out), host.p); /* as in the URL */
        EXPECT_ERR(get(wrong, url, &status, &out, &err), err, ERR_DENIED);
        EXPECT_HAS(str_of(err.text), "web.test");
    }
}

TEST(a_server_that_wants_a_certificate_gets_ours_or_refuses)
{
    AUTO_PKI pki = pki_new();
    AUTO_BUF out = { 0 };
    int status = 0;
    struct err err = { 0 };
    AUTO(http) known = client_new((struct http_options){ .tls = tls_of(&pki) });
    AUTO(http) unnamed = client_new((struct http_options){ .tls.ca_pem = pki.ca->cert_pem });

    AUTO(http_peer)
    asks = http_peer_new((struct http_peer_options){ .cert = pki.server, .client_ca = pki.ca });
    struct str url = URL("https", http_peer_port(asks), "/echo");
    EXPECT_OK(get(known, url, &status, &out, &err), err);
    EXPECT_EQ(status, 200);
    EXPECT_OK(get(unnamed, url, &status, &out, &err), err);
    EXPECT_EQ(status, 401);

    AUTO(http_peer)
    insists = http_peer_new(
        (struct http_peer_options){ .http2 = true, .cert = pki.server, .client_ca = pki.ca });
    url = URL("https", http_peer_port(insists), "/echo");
    EXPECT_OK(get(known, url, &status, &out, &err), err);
    EXPECT_EQ(status, 200);
    EXPECT_EQ(get(unnamed, url, &status, &out, &err), -1);
    /* The alert and the end of the connection race each other. */
    EXPECT_TRUE(err.kind == ERR_DENIED || err.kind == ERR_UNAVAILABLE);
}

TEST(a_new_certificate_is_shown_on_new_connections)
{
    AUTO_PKI pki = pki_new();
    AUTO_PKI other = pki_new();
    AUTO(http_peer)
    peer = http_peer_new((struct http_peer_options){ .cert = pki.server, .client_ca = pki.ca });
    AUTO_BUF out = { 0 };
    int status = 0;
    struct err err = { 0 };
    struct str url = URL("https", http_peer_port(peer), "/echo");
    struct http_tls tls = tls_of(&other);
    tls.ca_pem = pki.ca->cert_pem;
    AUTO(http) http = client_new((struct http_options){ .tls = tls });
    EXPECT_OK(get(http, url, &status, &out, &err), err);
    EXPECT_EQ(status, 401);
    EXPECT_OK(http_set_tls(http, tls_of(&pki), &err), err);
    EXPECT_OK(get(http, url, &status, &out, &err), err);
    EXPECT_EQ(status, 200);
    EXPECT_EQ(http_peer_connections(peer), 2);

    EXPECT_ERR(http_set_tls(http, (struct http_tls){ .ca_pem = STR("nonsense") }, &err), err,
               ERR_INVALID);
    EXPECT_OK(get(http, url, &status, &out, &err), err); /* as before */
    EXPECT_EQ(http_peer_connections(peer), 2);
    EXPECT_OK(http_set_tls(http, (struct http_tls){ 0 }, &err), err); /* the system's */
    EXPECT_ERR(get(http, url, &status, &out, &err), err, ERR_DENIED);
}

TEST(certificates_that_cannot_be_read_are_refused_when_the_client_is_made)
{
    AUTO_PKI pki = pki_new();
    struct str cert = pki.client->cert_pem, key = pki.client->key_pem;
    const struct {
        struct http_tls tls;
        const char *why;
    } rows[] = {
        { { .ca_pem = STR("nonsense") }, "no PEM block of a CERTIFICATE" },
        { { .ca_pem = key }, "no PEM block of a CERTIFICATE" },
        { { .ca_pem = str_sub(cert, 0, cert.len - 20) }, "does not end" },
        { { .ca_pem = STR("-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n") },
          "CERTIFICATE" },
        { { .ca_pem = STR("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n") }, "empty" },
        { { .cert_pem = cert }, "a client certificate without its key" },
        { { .key_pem = key }, "a client key without its certificate" },
        { { .cert_pem = cert, .key_pem = cert }, "no PEM block of a PRIVATE KEY" },
        { { .cert_pem = cert,
            .key_pem = STR("-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n"
                           "-----END ENCRYPTED PRIVATE KEY-----\n") },
          "passphrase" },
        { { .cert_pem = cert,
            .key_pem = STR("-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nAAAA\n"
                           "-----END RSA PRIVATE KEY-----\n") },
          "passphrase" },
        { { .server_name = STR("a b") }, "no server's name" },
        { { .server_name = STR("a/b") }, "no server's name" },
        { { .server_name = STR("a:443") }, "no server's name" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        struct http *http = NULL;
        struct err err = { 0 };
        EXPECT_ERR(http_new((struct http_options){ .tls = rows[i].tls }, &http, &err), err,
                   ERR_INVALID);
        EXPECT_HAS(str_of(err.text), rows[i].why);
    }
}

TEST(a_key_that_is_not_the_certificates_is_an_invalid_call)
{
    AUTO_PKI pki = pki_new();
    AUTO_PKI other = pki_new();
    AUTO(http_peer) peer = http_peer_new((struct http_peer_options){ .cert = pki.server });
    struct http_tls tls = tls_of(&pki);
    tls.key_pem = other.client->key_pem;
    AUTO(http) http = client_new((struct http_options){ .tls = tls });
    AUTO_BUF out = { 0 };
    int status = 0;
    struct err err = { 0 };
    EXPECT_ERR(get(http, URL("https", http_peer_port(peer), "/echo"), &status, &out, &err), err,
               ERR_INVALID);
    EXPECT_HAS(str_of(err.text), "our certificates");
}

/* --- HTTP/2 --- */

TEST(over_http2_requests_and_streams_share_one_connection)
{
    AUTO_PKI pki = pki_new();
    AUTO(http_peer)
    peer = http_peer_new((struct http_peer_options){ .http2 = true, .cert = pki.server });
    AUTO(http) http = client_new((struct http_options){ .tls.ca_pem = pki.ca->cert_pem });
    struct http_call *streams[20], *calls[60];
    AUTO_BUF out = { 0 };
    struct err err = { 0 };
    int status;
    for (size_t i = 0; i < KV_COUNT_OF(streams); i++)
        streams[i] = http_start(
            http, &(struct http_request){ .method = "GET",
                                          .url = URL("https", http_peer_port(peer), "/stream"),
                                          .stream = true });
    for (size_t i = 0; i < KV_COUNT_OF(calls); i++)
        calls[i] = http_start(
            http, &(struct http_request){ .method = "POST",
                                          .url = URL("https", http_peer_port(peer), "/echo"),
                                          .body = STR("body of it") });
    for (size_t i = 0; i < KV_COUNT_OF(calls); i++) {
        struct http_reply reply;
        EXPECT_OK(http_finish(calls[i], &reply, &err), err);
        EXPECT_HAS(reply.body, "POST /echo\n");
        EXPECT_TRUE(str_ends(reply.body, STR("\n\nbody of it")));
        http_call_free(calls[i]);
    }
    WAIT_UNTIL(http_peer_waiting(peer) == KV_COUNT_OF(streams));
    http_peer_push(peer, STR("event\n"));
    http_peer_finish(peer);
    for (size_t i = 0; i < KV_COUNT_OF(streams); i++) {
        buf_clear(&out);
        EXPECT_OK(http_head(streams[i], &status, &err), err);
        EXPECT_EQ(take_all(streams[i], &out, SIZE_MAX, &err), HTTP_ENDED);
        EXPECT_STR(buf_str(&out), "event\n");
        EXPECT_STR(http_reply_header(streams[i], STR("Retry-After")), "7");
        http_call_free(streams[i]);
    }
    EXPECT_EQ(http_peer_connections(peer), 1);
}

TEST(more_calls_than_a_connection_has_streams_use_another_one)
{
    AUTO_PKI pki = pki_new();
    AUTO(http_peer)
    peer = http_peer_new((struct http_peer_options){ .http2 = true, .cert = pki.server });
    AUTO(http) http = client_new((struct http_options){ .tls.ca_pem = pki.ca->cert_pem });
    struct http_call *calls[150]; /* the server takes 100 at once */
    struct err err = { 0 };
    for (size_t i = 0; i < KV_COUNT_OF(calls); i++)
        calls[i] = http_start(
            http, &(struct http_request){ .method = "GET",
                                          .url = URL("https", http_peer_port(peer), "/hold") });
    WAIT_UNTIL(http_peer_waiting(peer) == KV_COUNT_OF(calls));
    http_peer_finish(peer);
    for (size_t i = 0; i < KV_COUNT_OF(calls); i++) {
        struct http_reply reply;
        EXPECT_OK(http_finish(calls[i], &reply, &err), err);
        http_call_free(calls[i]);
    }
    EXPECT_TRUE(http_peer_connections(peer) > 1);
}

TEST(over_http2_a_slow_reader_or_a_cancelled_call_leaves_the_others_alone)
{
    AUTO_PKI pki = pki_new();
    AUTO(http_peer)
    peer = http_peer_new((struct http_peer_options){ .http2 = true, .cert = pki.server });
    AUTO(http) http = client_new((struct http_options){ .tls.ca_pem = pki.ca->cert_pem });
    struct http_request request = { .method = "GET",
                                    .url = URL("https", http_peer_port(peer), "/stream"),
                                    .stream = true };
    AUTO_BUF piece = { 0 };
    AUTO_BUF out = { 0 };
    AUTO_BUF slow_out = { 0 };
    struct err err = { 0 };
    AUTO(http_call) quick = http_start(http, &request);
    AUTO(http_call) cancelled = http_start(http, &request);
    request.stream_bytes_max = 300000;
    AUTO(http_call) slow = http_start(http, &request);
    WAIT_UNTIL(http_peer_waiting(peer) == 3);
    http_cancel(cancelled);
    for (int i = 0; i < 10000; i++)
        buf_addf(&piece, "%06d\n", i);
    for (size_t i = 0; i < 10; i++) {
        http_peer_push(peer, buf_str(&piece));
        EXPECT_EQ(take_all(quick, &out, (i + 1) * piece.len, &err), HTTP_BYTES);
    }
    for (size_t i = 0; i < 10; i++)
        EXPECT_TRUE(str_eq(str_sub(buf_str(&out), i * piece.len, piece.len), buf_str(&piece)));
    EXPECT_EQ(take_all(slow, &slow_out, SIZE_MAX, &err), HTTP_FAILED);
    EXPECT_EQ(err.kind, ERR_CAPACITY);
    WAIT_UNTIL(http_peer_waiting(peer) == 1); /* the server was told that nobody wants the others */
    http_peer_finish(peer);
    EXPECT_EQ(take_all(quick, &out, SIZE_MAX, &err), HTTP_ENDED);
    EXPECT_EQ(http_peer_connections(peer), 1);
}

TEST(over_http2_a_reset_stream_is_cut_off_and_a_cut_connection_is_made_again)
{
    AUTO_PKI pki = pki_new();
    AUTO(http_peer)
    peer = http_peer_new((struct http_peer_options){ .http2 = true, .cert = pki.server });
    AUTO(http) http = client_new((struct http_options){ .tls.ca_pem = pki.ca->cert_pem });
    void (*const faults[])(struct http_peer *) = { http_peer_reset, http_peer_cut };
    for (size_t i = 0; i < KV_COUNT_OF(faults); i++) {
        AUTO_BUF out = { 0 };
        struct err err = { 0 };
        struct http_reply reply;
        int status;
        AUTO(http_call)
        stream = http_start(
            http, &(struct http_request){ .method = "GET",
                                          .url = URL("https", http_peer_port(peer), "/stream"),
                                          .stream = true });
        AUTO(http_call)
        post = http_start(
            http, &(struct http_request){ .method = "POST",
                                          .url = URL("https", http_peer_port(peer), "/hold") });
        EXPECT_OK(http_head(stream, &status, &err), err);
        WAIT_UNTIL(http_peer_waiting(peer) == 2);
        http_peer_push(peer, STR("before"));
        EXPECT_EQ(take_all(stream, &out, 6, &err), HTTP_BYTES);
        faults[i](peer);
        EXPECT_EQ(take_all(stream, &out, SIZE_MAX, &err), HTTP_FAILED);
        EXPECT_EQ(err.kind, ERR_UNAVAILABLE);
        EXPECT_HAS(str_of(err.text), "cut off after 6 bytes");
        EXPECT_ERR(http_finish(post, &reply, &err), err, ERR_UNAVAILABLE);
        EXPECT_OK(get(http, URL("https", http_peer_port(peer), "/echo"), &status, &out, &err), err);
    }
    EXPECT_EQ(http_peer_requests(peer), 6); /* nothing was sent twice */
}

TEST(over_http2_a_server_that_says_goodbye_finishes_what_runs_and_gets_no_more_there)
{
    AUTO_PKI pki = pki_new();
    AUTO(http_peer)
    peer = http_peer_new((struct http_peer_options){ .http2 = true, .cert = pki.server });
    AUTO(http) http = client_new((struct http_options){ .tls.ca_pem = pki.ca->cert_pem });
    AUTO_BUF out = { 0 };
    struct err err = { 0 };
    struct http_reply reply;
    int status;
    AUTO(http_call)
    held = http_start(http,
                      &(struct http_request){ .method = "POST",
                                              .url = URL("https", http_peer_port(peer), "/hold") });
    WAIT_UNTIL(http_peer_waiting(peer) == 1);
    http_peer_goaway(peer);
    usleep(
        50000); /* most likely it is seen before the next request; either way that one is answered */
    EXPECT_OK(get(http, URL("https", http_peer_port(peer), "/echo"), &status, &out, &err), err);
    EXPECT_EQ(http_peer_connections(peer), 2);
    http_peer_finish(peer);
    EXPECT_OK(http_finish(held, &reply, &err), err);
}

TEST(a_large_reply_over_http2_comes_whole)
{
    AUTO_PKI pki = pki_new();
    AUTO(http_peer)
    peer = http_peer_new((struct http_peer_options){ .http2 = true, .cert = pki.server });
    AUTO(http) http = client_new((struct http_options){ .tls.ca_pem = pki.ca->cert_pem });
    AUTO_BUF out = { 0 };
    struct err err = { 0 };
    int status;
    EXPECT_OK(get(http, URL("https", http_peer_port(peer), "/big/5000000"), &status, &out, &err),
              err);
    EXPECT_EQ(out.len, 5000000);
    for (size_t i = 0; i < out.len; i++)
        if (out.p[i] != (char)('a' + i % 26))
            EXPECT_EQ(i, -1);
}

TEST(a_server_without_http2_is_spoken_to_as_well_and_so_is_one_that_could)
{
    AUTO_PKI pki = pki_new();
    AUTO(http_peer) peer = http_peer_new((struct http_peer_options){ .cert = pki.server });
    AUTO(http) http = client_new((struct http_options){ .tls.ca_pem = pki.ca->cert_pem });
    struct http_call *calls[10];
    struct err err = { 0 };
    for (size_t i = 0; i < KV_COUNT_OF(calls); i++)
        calls[i] = http_start(
            http, &(struct http_request){ .method = "GET",
                                          .url = URL("https", http_peer_port(peer), "/hold") });
    WAIT_UNTIL(http_peer_waiting(peer) == KV_COUNT_OF(calls)); /* each on a connection of its own */
    http_peer_finish(peer);
    for (size_t i = 0; i < KV_COUNT_OF(calls); i++) {
        struct http_reply reply;
        EXPECT_OK(http_finish(calls[i], &reply, &err), err);
        http_call_free(calls[i]);
    }
}

/* HTTPS probes, against a server whose certificate nobody vouches for. Time is virtual. */
#include "node/prober.h"

#include "net/http_peer_testing.h"
#include "node/node_pod_testing.h"
#include "node/runtime_testing.h"
#include "support/test.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define S ((int64_t)1000000000)
#define LIMIT_MS 30000

/* --- a server, and a prober with a pod that it is in --- */

struct bench {
    struct virtual_clock *clock;
    struct cert *cert;
    struct http_peer *peer;
    struct metrics *metrics;
    struct prober *prober;
    const struct node_pod *pod;
    const struct runtime_status *status;
};

/* `http` and `more` are YAML, of the handler and of the probe. */
static void bench_probe(struct bench *b, uint16_t port, const char *http, const char *more)
{
    AUTO_BUF yaml = { 0 };
    buf_addf(&yaml,
             "metadata: {name: web}\nspec:\n  containers:\n  - name: app\n    image: x\n"
             "    readinessProbe: {httpGet: {port: %u, %s}, failureThreshold: 1, %s}\n",
             port, http, more);
    b->pod = pod_from_yaml(yaml.p);
    b->status = runtime_made("uid-web", a_sandbox("s1", .ips = "127.0.0.1"),
                             a_container("app", RUNTIME_RUNNING, .id = "one"));
    b->prober = prober_new((struct prober_options){ .clock = virtual_clock_port(b->clock),
                                                    .metrics = b->metrics,
                                                    .host_ip = STR("127.0.0.1") });
    virtual_clock_advance(b->clock, 3600 * S); /* the agent runs for long: no spreading out */
    prober_update(b->prober, b->pod, b->status);
}

static void bench_begin(struct bench *b)
{
    *b = (struct bench){ .clock = virtual_clock_new(RUNTIME_MADE_S * 1000000) };
    b->cert = cert_new((struct cert_options){ .name = "elsewhere", .expired = true });
    b->peer = http_peer_new((struct http_peer_options){ .cert = b->cert });
    b->metrics = metrics_new(virtual_clock_port(b->clock));
}

static void bench_done(struct bench *b)
{
    prober_free(b->prober);
    metrics_free(b->metrics);
    http_peer_free(b->peer);
    cert_free(b->cert);
    node_pod_unref(b->pod);
    runtime_status_unref(b->status);
    virtual_clock_free(b->clock);
}
#define AUTO_BENCH __attribute__((cleanup(bench_done))) struct bench

static double counted(struct bench *b, const char *result)
{
    AUTO_BUF text = { 0 }, line = { 0 };
    metrics_write(b->metrics, &text);
    buf_addf(
        &line,
        "prober_probe_total{probe_type=\"Readiness\",result=\"%s\",container=\"app\",pod=\"web\","
        "namespace=\"default\",pod_uid=\"uid-web\"} ",
        result);
    const char *at = strstr(buf_str(&text).p, line.p);
    return at ? atof(at + line.len) : 0;
}

#define STEP_UNTIL(b, condition)                                                                   \
    for (int ms_ = 0; !(condition); ms_++) {                                                       \
        if (ms_ > LIMIT_MS)                                                                        \
            fail_msg("never came true: %s", #condition);                                           \
        prober_step((b)->prober, 1);                                                               \
    }

static bool is_ready(struct bench *b)
{
    struct probe_source source = prober_source(b->prober);
    return source.get(source.ctx, STR("one"), &b->pod->containers.items[0]).readiness ==
           PROBE_SUCCESS;
}

/* A server of the test's own, without TLS. */
static int listen_plainly(uint16_t *port)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t len = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    EXPECT_EQ(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    EXPECT_EQ(listen(listener, 1), 0);
    EXPECT_EQ(getsockname(listener, (struct sockaddr *)&address, &len), 0);
    *port = ntohs(address.sin_port);
    return listener;
}

/* --- what is judged --- */

TEST(any_certificate_is_believed_and_the_answers_status_judged)
{
    static const struct {
        const char *path, *result;
    } cases[] = {
        { "/echo", "successful" },       { "/status/204", "successful" },
        { "/status/399", "successful" }, { "/status/404", "failed" },
        { "/status/503", "failed" },     { "/stream", "successful" }, /* whose body never ends */
    };
    for (uint32_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO_BENCH b;
        bench_begin(&b);
        char http[64];
        snprintf(http, sizeof http, "scheme: HTTPS, path: %s", cases[i].path);
        bench_probe(&b, http_peer_port(b.peer), http, "timeoutSeconds: 30");
        STEP_UNTIL(&b, counted(&b, cases[i].result) == 1);
        EXPECT_EQ(is_ready(&b), strcmp(cases[i].result, "successful") == 0);
    }
}

TEST(a_server_that_speaks_no_tls_or_is_not_there_fails_the_probe)
{
    uint16_t port;
    int listener = listen_plainly(&port);
    AUTO_BENCH b;
    bench_begin(&b);
    bench_probe(&b, port, "scheme: HTTPS", "periodSeconds: 1, timeoutSeconds: 30");
    int fd = -1;
    STEP_UNTIL(&b, (fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0);
    EXPECT_TRUE(send(fd, "HTTP/1.0 400 Bad\r\n\r\n", 20, MSG_NOSIGNAL) == 20);
    STEP_UNTIL(&b, counted(&b, "failed") == 1);
    close(fd);
    close(listener);
    virtual_clock_advance(b.clock, 1 * S);
    STEP_UNTIL(&b, counted(&b, "failed") == 2);
}

/* --- what is sent --- */

TEST(each_attempt_has_a_connection_of_its_own)
{
    AUTO_BENCH b;
    bench_begin(&b);
    bench_probe(&b, http_peer_port(b.peer), "scheme: HTTPS, path: /echo",
                "periodSeconds: 1, timeoutSeconds: 30");
    for (uint32_t i = 1; i <= 3; i++) {
        STEP_UNTIL(&b, counted(&b, "successful") == i);
        EXPECT_EQ(http_peer_connections(b.peer), i);
        virtual_clock_advance(b.clock, 1 * S);
    }
}

/* --- when it ends --- */

TEST(an_attempt_ends_at_its_timeout_and_with_the_prober)
{
    AUTO_BENCH b;
    bench_begin(&b);
    bench_probe(&b, http_peer_port(b.peer), "scheme: HTTPS, path: /hold",
                "periodSeconds: 5, timeoutSeconds: 2");
    STEP_UNTIL(&b, http_peer_requests(b.peer) == 1);
    EXPECT_TRUE(counted(&b, "failed") == 0);
    virtual_clock_advance(b.clock, 2 * S);
    STEP_UNTIL(&b, counted(&b, "failed") == 1);
    virtual_clock_advance(b.clock, 3 * S);
    STEP_UNTIL(&b, http_peer_requests(b.peer) == 2); /* it is still held when all ends */
    http_peer_finish(b.peer);
}

/* --- redirects --- */

TEST(a_redirect_from_http_to_https_on_the_same_host_is_followed)
{
    static const struct {
        const char *path, *result;
    } cases[] = { { "/status/200", "successful" }, { "/status/500", "failed" } };
    for (uint32_t i = 0; i < KV_COUNT_OF(cases); i++) {
        uint16_t port;
        int listener = listen_plainly(&port);
        AUTO_BENCH b;
        bench_begin(&b);
        bench_probe(&b, port, "path: /", "timeoutSeconds: 30");
        int fd = -1;
        char text[512];
        STEP_UNTIL(&b, (fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0);
        STEP_UNTIL(&b, recv(fd, text, sizeof text, MSG_DONTWAIT) > 0);
        int n = snprintf(text, sizeof text,
                         "HTTP/1.1 302 Found\r\nLocation: https://127.0.0.1:%u%s\r\n\r\n",
                         http_peer_port(b.peer), cases[i].path);
        EXPECT_EQ(send(fd, text, (size_t)n, MSG_NOSIGNAL), n);
        STEP_UNTIL(&b, counted(&b, cases[i].result) == 1);
        close(fd);
        close(listener);
    }
}

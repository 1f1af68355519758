/* Probes against a small server of the test's own and a fake runtime; time is virtual, so that what is
 * due happens when the test says, and never on its own. */
#include "node/prober.h"

#include "node/fake_cri_testing.h"
#include "node/node_pod_testing.h"
#include "node/runtime_testing.h"
#include "support/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define S ((int64_t)1000000000)
#define LIMIT_MS 30000

/* --- a server that answers what it is told to, one connection at a time, from the test's thread --- */

struct server {
    int listener, accepted; /* accepted: kept open while it does not answer */
    int port;
    uint32_t asked;
    char request[2048]; /* the newest */
};

static void server_listen(struct server *s)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t len = sizeof address;
    s->accepted = -1;
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    EXPECT_TRUE(s->listener >= 0);
    EXPECT_EQ(bind(s->listener, (struct sockaddr *)&address, sizeof address), 0);
    EXPECT_EQ(listen(s->listener, 16), 0);
    EXPECT_EQ(getsockname(s->listener, (struct sockaddr *)&address, &len), 0);
    s->port = ntohs(address.sin_port);
}

static void server_close(struct server *s)
{
    if (s->accepted >= 0)
        close(s->accepted);
    if (s->listener >= 0)
        close(s->listener);
    s->accepted = s->listener = -1;
}

/* Takes a request if one has come. */
static bool server_take(struct server *s)
{
    if (s->accepted < 0)
        s->accepted = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);
    if (s->accepted < 0)
        return false;
    ssize_t n = recv(s->accepted, s->request, sizeof s->request - 1, MSG_DONTWAIT);
    if (n <= 0)
        return false;
    s->request[n] = '\0';
    s->asked++;
    return true;
}

static void server_say(struct server *s, const char *text)
{
    EXPECT_EQ(send(s->accepted, text, strlen(text), MSG_NOSIGNAL), strlen(text));
    close(s->accepted);
    s->accepted = -1;
}

/* --- a prober with one pod --- */

struct bench {
    struct virtual_clock *clock;
    struct server server;
    struct fake_cri *fake; /* only where commands run */
    struct cri *cri;
    struct metrics *metrics;
    struct prober *prober;
    const struct node_pod *pod;
    const struct runtime_status *status;
    uint32_t changes; /* how often a sync was asked for */
};

static void note_change(void *ctx, struct str uid)
{
    struct bench *b = ctx;
    EXPECT_STR(uid, "uid-web");
    b->changes++;
}

/* The container runs since now; `probes` is YAML of the container, with PORT in it. */
static void bench_pod(struct bench *b, const char *probes)
{
    AUTO_BUF yaml = { 0 };
    buf_addz(&yaml, "metadata: {name: web}\nspec:\n  containers:\n  - name: app\n    image: x\n"
                    "    ports: [{name: http, containerPort: PORT}]\n");
    buf_addz(&yaml, probes);
    char port[16];
    snprintf(port, sizeof port, "%d", b->server.port);
    AUTO_BUF text = { 0 };
    for (const char *at = yaml.p, *hit; at; at = hit ? hit + 4 : NULL) {
        hit = strstr(at, "PORT");
        buf_add(&text, hit ? (struct str){ at, (size_t)(hit - at) } : str_of(at));
        if (hit)
            buf_addz(&text, port);
    }
    node_pod_unref(b->pod);
    b->pod = pod_from_yaml(text.p);
}

/* One instance of it, of which the runtime says this. */
static void bench_instance(struct bench *b, const char *id, enum runtime_state state)
{
    runtime_status_unref(b->status);
    b->status = runtime_made("uid-web", a_sandbox("s1", .ips = "127.0.0.1"),
                             a_container("app", state, .id = id));
    prober_update(b->prober, b->pod, b->status);
}

static void bench_begin(struct bench *b, const char *probes)
{
    *b = (struct bench){ .clock = virtual_clock_new(RUNTIME_MADE_S * 1000000) };
    server_listen(&b->server);
    bench_pod(b, probes);
    b->metrics = metrics_new(virtual_clock_port(b->clock));
    b->prober = prober_new((struct prober_options){ .cri = b->cri,
                                                    .clock = virtual_clock_port(b->clock),
                                                    .metrics = b->metrics,
                                                    .host_ip = STR("127.0.0.1"),
                                                    .seed = 1,
                                                    .changed = note_change,
                                                    .ctx = b });
    virtual_clock_advance(b->clock, 3600 * S); /* the agent runs for long: no spreading out */
    virtual_clock_jump(b->clock, (RUNTIME_MADE_S - 9) * 1000000); /* "started": now */
    bench_instance(b, "one", RUNTIME_RUNNING);
}

static void bench_done(struct bench *b)
{
    prober_free(b->prober);
    metrics_free(b->metrics);
    cri_free(b->cri);
    fake_cri_free(b->fake);
    node_pod_unref(b->pod);
    runtime_status_unref(b->status);
    server_close(&b->server);
    virtual_clock_free(b->clock);
}
#define AUTO_BENCH __attribute__((cleanup(bench_done))) struct bench

static struct container_probes verdicts_of(struct bench *b, const char *id)
{
    struct probe_source source = prober_source(b->prober);
    return source.get(source.ctx, str_of(id), &b->pod->containers.items[0]);
}

static void advance(struct bench *b, int64_t ns)
{
    virtual_clock_advance(b->clock, ns);
}

/* Let the prober do what it can do now. */
static void settle(struct bench *b)
{
    for (int i = 0; i < 3; i++)
        prober_step(b->prober, 0);
}

static void until_asked(struct bench *b)
{
    for (int ms = 0; !server_take(&b->server); ms++) {
        if (ms > LIMIT_MS)
            fail_msg("nobody asked");
        prober_step(b->prober, 1);
    }
}

static bool asks_now(struct bench *b)
{
    settle(b);
    return server_take(&b->server);
}

static double counted(struct bench *b, const char *kind, const char *result)
{
    AUTO_BUF text = { 0 }, line = { 0 };
    metrics_write(b->metrics, &text);
    buf_addf(&line,
             "prober_probe_total{probe_type=\"%s\",result=\"%s\",container=\"app\",pod=\"web\","
             "namespace=\"default\",pod_uid=\"uid-web\"} ",
             kind, result);
    const char *at = strstr(buf_str(&text).p, line.p);
    return at ? atof(at + line.len) : 0;
}

/* One attempt: it is due, it asks, it hears this. */
static void attempt_hears(struct bench *b, const char *answer)
{
    static const char *const probe_kinds[] = { "Liveness", "Readiness", "Startup" };
    static const char *const results[] = { "successful", "failed", "unknown" };
    double before = 0, now = 0;
    for (int i = 0; i < 9; i++)
        before += counted(b, probe_kinds[i / 3], results[i % 3]);
    until_asked(b);
    server_say(&b->server, answer);
    for (int ms = 0; now <= before; ms++) {
        if (ms > LIMIT_MS)
            fail_msg("the attempt does not end");
        prober_step(b->prober, 1);
        now = 0;
        for (int i = 0; i < 9; i++)
            now += counted(b, probe_kinds[i / 3], results[i % 3]);
    }
}

#define OK_200 "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
#define BAD_500 "HTTP/1.1 500 Broken\r\nContent-Length: 0\r\n\r\n"

/* --- when --- */

TEST(verdicts_start_alive_not_ready_and_not_known_to_be_up)
{
    AUTO_BENCH b;
    bench_begin(&b, "    livenessProbe: {tcpSocket: {port: PORT}}\n"
                    "    readinessProbe: {tcpSocket: {port: PORT}}\n"
                    "    startupProbe: {tcpSocket: {port: PORT}}\n");

    struct container_probes known = verdicts_of(&b, "one"), unknown = verdicts_of(&b, "other");

    EXPECT_EQ(known.liveness, PROBE_SUCCESS);
    EXPECT_EQ(known.readiness, PROBE_FAILURE);
    EXPECT_EQ(known.startup, PROBE_UNKNOWN);
    EXPECT_EQ(memcmp(&known, &unknown, sizeof known), 0);
}

TEST(without_probes_everything_is_well)
{
    AUTO_BENCH b;
    bench_begin(&b, "");
    struct container_probes verdicts = verdicts_of(&b, "one");
    EXPECT_EQ(verdicts.liveness, PROBE_SUCCESS);
    EXPECT_EQ(verdicts.readiness, PROBE_SUCCESS);
    EXPECT_EQ(verdicts.startup, PROBE_SUCCESS);
}

TEST(the_first_attempt_waits_for_the_initial_delay_since_the_start)
{
    AUTO_BENCH b;
    bench_begin(&b, "    readinessProbe: {httpGet: {port: PORT}, initialDelaySeconds: 5}\n");

    EXPECT_FALSE(asks_now(&b));
    advance(&b, 5 * S - 1);
    EXPECT_FALSE(asks_now(&b));
    advance(&b, 1);
    attempt_hears(&b, OK_200);

    EXPECT_EQ(verdicts_of(&b, "one").readiness, PROBE_SUCCESS);
    EXPECT_EQ(b.changes, 1);
}

TEST(an_initial_delay_that_passed_before_the_agent_came_is_not_waited_for)
{
    AUTO_BENCH b;
    bench_begin(&b, "    readinessProbe: {httpGet: {port: PORT}, initialDelaySeconds: 50}\n");
    advance(&b, 49 * S);
    prober_remove(b.prober, STR("uid-web"));
    bench_instance(&b, "one", RUNTIME_RUNNING);

    EXPECT_FALSE(asks_now(&b));
    advance(&b, 1 * S);
    attempt_hears(&b, OK_200);
}

TEST(attempts_begin_a_period_apart)
{
    AUTO_BENCH b;
    bench_begin(&b, "    readinessProbe: {httpGet: {port: PORT}, periodSeconds: 7}\n");
    for (int i = 0; i < 4; i++) {
        attempt_hears(&b, OK_200);
        EXPECT_FALSE(asks_now(&b));
        advance(&b, 7 * S - 1);
        EXPECT_FALSE(asks_now(&b));
        advance(&b, 1);
    }
    EXPECT_EQ(b.changes, 1); /* ready once, and then nothing new */
}

TEST(an_attempt_that_takes_longer_than_the_period_is_not_overtaken)
{
    AUTO_BENCH b;
    bench_begin(
        &b, "    readinessProbe: {httpGet: {port: PORT}, periodSeconds: 2, timeoutSeconds: 9}\n");
    until_asked(&b);
    advance(&b, 6 * S);
    settle(&b);
    server_say(&b.server, OK_200); /* to the first, and only one */
    attempt_hears(&b, OK_200);     /* the next begins at once */
    EXPECT_EQ(b.server.asked, 2);
}

TEST(an_attempt_ends_at_its_timeout_as_a_failure)
{
    AUTO_BENCH b;
    bench_begin(
        &b, "    readinessProbe: {httpGet: {port: PORT}, timeoutSeconds: 3, periodSeconds: 60}\n");
    until_asked(&b);
    advance(&b, 3 * S - 1);
    settle(&b);
    EXPECT_TRUE(counted(&b, "Readiness", "failed") == 0);
    advance(&b, 1);
    settle(&b);
    EXPECT_TRUE(counted(&b, "Readiness", "failed") == 1);
}

TEST(after_a_start_of_the_agent_first_attempts_are_spread_over_the_period)
{
    AUTO_BENCH b;
    bench_begin(&b, "    readinessProbe: {httpGet: {port: PORT}, periodSeconds: 10}\n");
    struct prober *young = prober_new((struct prober_options){
        .clock = virtual_clock_port(b.clock), .seed = 7, .host_ip = STR("127.0.0.1") });
    prober_free(b.prober);
    b.prober = young;
    bench_instance(&b, "one", RUNTIME_RUNNING);

    int waited_ms = 0;
    while (!asks_now(&b) && waited_ms <= 10000) {
        advance(&b, S / 100);
        waited_ms += 10;
    }

    EXPECT_TRUE(waited_ms > 0); /* of this seed */
    EXPECT_TRUE(waited_ms <= 10000);
}

/* --- what follows --- */

TEST(a_verdict_needs_as_many_in_a_row_as_its_threshold)
{
    AUTO_BENCH b;
    bench_begin(&b, "    readinessProbe: {httpGet: {port: PORT}, periodSeconds: 1,"
                    " successThreshold: 2, failureThreshold: 3}\n");
    static const struct {
        const char *answer;
        enum probe_verdict after;
    } story[] = {
        { OK_200, PROBE_FAILURE },  { BAD_500, PROBE_FAILURE }, { OK_200, PROBE_FAILURE },
        { OK_200, PROBE_SUCCESS },  { BAD_500, PROBE_SUCCESS }, { BAD_500, PROBE_SUCCESS },
        { OK_200, PROBE_SUCCESS },  { BAD_500, PROBE_SUCCESS }, { BAD_500, PROBE_SUCCESS },
        { BAD_500, PROBE_FAILURE }, { BAD_500, PROBE_FAILURE }, { OK_200, PROBE_FAILURE },
        { OK_200, PROBE_SUCCESS },
    };
    for (uint32_t i = 0; i < KV_COUNT_OF(story); i++) {
        attempt_hears(&b, story[i].answer);
        EXPECT_EQ(verdicts_of(&b, "one").readiness, story[i].after);
        advance(&b, 1 * S);
    }
    EXPECT_EQ(b.changes, 3);
    EXPECT_TRUE(counted(&b, "Readiness", "successful") == 6);
    EXPECT_TRUE(counted(&b, "Readiness", "failed") == 7);
}

TEST(a_failed_liveness_probe_rests_until_the_next_instance_which_starts_anew)
{
    AUTO_BENCH b;
    bench_begin(
        &b, "    livenessProbe: {httpGet: {port: PORT}, periodSeconds: 1, failureThreshold: 2}\n");
    attempt_hears(&b, BAD_500);
    EXPECT_EQ(verdicts_of(&b, "one").liveness, PROBE_SUCCESS);
    advance(&b, 1 * S);
    attempt_hears(&b, BAD_500);
    EXPECT_EQ(verdicts_of(&b, "one").liveness, PROBE_FAILURE);
    EXPECT_EQ(b.changes, 1);

    advance(&b, 100 * S);
    EXPECT_FALSE(asks_now(&b));

    bench_instance(&b, "one", RUNTIME_EXITED);
    bench_instance(&b, "two", RUNTIME_RUNNING);
    EXPECT_EQ(verdicts_of(&b, "two").liveness, PROBE_SUCCESS);
    attempt_hears(&b, BAD_500);
    EXPECT_EQ(verdicts_of(&b, "two").liveness, PROBE_SUCCESS); /* one, not three in a row */
    EXPECT_EQ(b.changes, 1);
}

TEST(the_others_rest_until_the_startup_probe_succeeds)
{
    AUTO_BENCH b;
    bench_begin(&b,
                "    startupProbe: {httpGet: {port: PORT, path: /up}, periodSeconds: 5}\n"
                "    readinessProbe: {httpGet: {port: PORT, path: /ready}, periodSeconds: 1}\n");
    attempt_hears(&b, BAD_500);
    EXPECT_HAS(str_of(b.server.request), "GET /up ");
    advance(&b, 4 * S);
    EXPECT_FALSE(asks_now(&b));
    advance(&b, 1 * S);
    attempt_hears(&b, OK_200);
    EXPECT_HAS(str_of(b.server.request), "GET /up ");
    EXPECT_EQ(verdicts_of(&b, "one").startup, PROBE_SUCCESS);
    EXPECT_EQ(b.changes, 1);

    attempt_hears(&b, OK_200); /* readiness follows at once, */
    EXPECT_HAS(str_of(b.server.request), "GET /ready ");
    advance(&b, 60 * S);
    attempt_hears(&b, OK_200); /* and startup never asks again */
    EXPECT_HAS(str_of(b.server.request), "GET /ready ");
    EXPECT_FALSE(asks_now(&b));
}

TEST(a_failed_startup_probe_is_a_failure_and_rests)
{
    AUTO_BENCH b;
    bench_begin(
        &b, "    startupProbe: {httpGet: {port: PORT}, periodSeconds: 1, failureThreshold: 1}\n");
    attempt_hears(&b, BAD_500);
    EXPECT_EQ(verdicts_of(&b, "one").startup, PROBE_FAILURE);
    EXPECT_EQ(b.changes, 1);
    advance(&b, 10 * S);
    EXPECT_FALSE(asks_now(&b));
}

TEST(while_a_pod_stops_only_readiness_goes_on)
{
    AUTO_BENCH b;
    bench_begin(&b,
                "    livenessProbe: {httpGet: {port: PORT, path: /live}, periodSeconds: 1}\n"
                "    readinessProbe: {httpGet: {port: PORT, path: /ready}, periodSeconds: 1}\n");
    attempt_hears(&b, OK_200);
    attempt_hears(&b, OK_200);
    prober_stop_liveness(b.prober, STR("uid-web"));
    bench_instance(&b, "one", RUNTIME_RUNNING); /* a sync in between changes nothing */
    for (int i = 0; i < 3; i++) {
        advance(&b, 1 * S);
        attempt_hears(&b, BAD_500);
        EXPECT_HAS(str_of(b.server.request), "GET /ready ");
        EXPECT_FALSE(asks_now(&b));
    }
    EXPECT_EQ(verdicts_of(&b, "one").readiness, PROBE_FAILURE);
}

TEST(what_is_gone_is_not_probed_and_a_late_answer_says_nothing)
{
    AUTO_BENCH b;
    bench_begin(
        &b, "    livenessProbe: {httpGet: {port: PORT}, periodSeconds: 1, failureThreshold: 1}\n");
    until_asked(&b);
    bench_instance(&b, "one", RUNTIME_EXITED);
    server_say(&b.server, BAD_500);
    settle(&b);
    advance(&b, 5 * S);
    EXPECT_FALSE(asks_now(&b));
    EXPECT_EQ(b.changes, 0);

    bench_instance(&b, "two", RUNTIME_RUNNING);
    attempt_hears(&b, OK_200);
    until_asked((advance(&b, 1 * S), &b));
    prober_remove(b.prober, STR("uid-web"));
    server_say(&b.server, BAD_500);
    advance(&b, 5 * S);
    EXPECT_FALSE(asks_now(&b));
    EXPECT_EQ(b.changes, 0);
    AUTO_BUF text = { 0 };
    metrics_write(b.metrics, &text);
    EXPECT_TRUE(strstr(buf_str(&text).p, "uid-web") == NULL);
}

/* --- how --- */

static enum probe_verdict heard(struct bench *b, const char *answer)
{
    attempt_hears(b, answer);
    advance(b, 1 * S);
    return verdicts_of(b, "one").readiness;
}

TEST(answers_from_200_to_399_are_successes)
{
    AUTO_BENCH b;
    bench_begin(
        &b, "    readinessProbe: {httpGet: {port: PORT}, periodSeconds: 1, failureThreshold: 1}\n");
    for (int code = 200; code < 600; code += 33) {
        char answer[64];
        snprintf(answer, sizeof answer, "HTTP/1.1 %d Some\r\n\r\n", code);
        EXPECT_EQ(heard(&b, answer), code < 400 ? PROBE_SUCCESS : PROBE_FAILURE);
    }
    EXPECT_EQ(heard(&b, OK_200), PROBE_SUCCESS);
    EXPECT_EQ(heard(&b, "SSH-2.0-x\r\n\r\n"), PROBE_FAILURE);
    EXPECT_EQ(heard(&b, OK_200), PROBE_SUCCESS);
    EXPECT_EQ(heard(&b, "HTTP/1.1 200 OK\r\n"), PROBE_FAILURE); /* closed in the middle */
    EXPECT_EQ(heard(&b, "HTTP/1.1 302 x\r\nLocation: http://elsewhere.example/\r\n\r\n"),
              PROBE_SUCCESS);
}

TEST(redirects_on_the_same_host_are_followed_ten_times)
{
    AUTO_BENCH b;
    bench_begin(
        &b, "    readinessProbe: {httpGet: {port: PORT}, periodSeconds: 1, failureThreshold: 1}\n");
    char answer[128];
    snprintf(answer, sizeof answer, "HTTP/1.1 302 x\r\nLocation: http://127.0.0.1:%d/next\r\n\r\n",
             b.server.port);
    until_asked(&b);
    server_say(&b.server, answer);
    EXPECT_EQ(heard(&b, OK_200), PROBE_SUCCESS);
    EXPECT_HAS(str_of(b.server.request), "GET /next ");

    for (int hop = 0; hop < 10; hop++) {
        until_asked(&b);
        server_say(&b.server, "HTTP/1.1 301 x\r\nLocation: /again\r\n\r\n");
    }
    EXPECT_EQ(heard(&b, "HTTP/1.1 301 x\r\nLocation: /again\r\n\r\n"), PROBE_FAILURE);
}

TEST(a_head_without_end_is_cut_off_as_a_failure)
{
    AUTO_BENCH b;
    bench_begin(&b, "    readinessProbe: {httpGet: {port: PORT}, periodSeconds: 60}\n");
    until_asked(&b);
    AUTO_BUF endless = { 0 };
    buf_addz(&endless, "HTTP/1.1 200 OK\r\nX: ");
    while (endless.len < 11 << 10)
        buf_addc(&endless, 'x');
    EXPECT_EQ(send(b.server.accepted, endless.p, endless.len, MSG_NOSIGNAL), endless.len);
    for (int ms = 0; counted(&b, "Readiness", "failed") == 0; ms++) {
        EXPECT_TRUE(ms < LIMIT_MS);
        prober_step(b.prober, 1);
    }
}

TEST(a_tcp_probe_succeeds_when_somebody_listens)
{
    AUTO_BENCH b;
    bench_begin(
        &b,
        "    readinessProbe: {tcpSocket: {port: http}, periodSeconds: 1, failureThreshold: 1}\n");
    for (int ms = 0; verdicts_of(&b, "one").readiness != PROBE_SUCCESS; ms++) {
        EXPECT_TRUE(ms < LIMIT_MS);
        prober_step(b.prober, 1);
    }
    server_close(&b.server);
    advance(&b, 1 * S);
    for (int ms = 0; verdicts_of(&b, "one").readiness != PROBE_FAILURE; ms++) {
        EXPECT_TRUE(ms < LIMIT_MS);
        prober_step(b.prober, 1);
    }
}

/* What cannot be tried says nothing about the container: it is not killed, and not ready. */
TEST(probes_that_cannot_be_tried_change_no_verdict)
{
    static const char *const handlers[] = {
        "httpGet: {port: PORT, scheme: HTTPS, host: a@b}",
        "grpc: {port: PORT}",
        "httpGet: {port: nameless}",
        "httpGet: {port: PORT, httpHeaders: [{name: \"a b\", value: c}]}",
    };
    for (uint32_t i = 0; i < KV_COUNT_OF(handlers); i++) {
        AUTO_BENCH b;
        char probes[512];
        snprintf(probes, sizeof probes,
                 "    livenessProbe: {%s, periodSeconds: 1, failureThreshold: 1}\n"
                 "    readinessProbe: {%s, periodSeconds: 1, failureThreshold: 1}\n",
                 handlers[i], handlers[i]);
        bench_begin(&b, probes);
        settle(&b);
        EXPECT_TRUE(counted(&b, "Liveness", "unknown") >= 1);
        EXPECT_TRUE(counted(&b, "Readiness", "unknown") >= 1);
        EXPECT_EQ(verdicts_of(&b, "one").liveness, PROBE_SUCCESS);
        EXPECT_EQ(verdicts_of(&b, "one").readiness, PROBE_FAILURE);
        EXPECT_EQ(b.changes, 0);
        EXPECT_EQ(b.server.asked, 0);
    }
}

TEST(a_host_is_looked_up_by_its_name)
{
    AUTO_BENCH b;
    bench_begin(&b, "    readinessProbe: {httpGet: {port: PORT, host: no-such-host.invalid},"
                    " periodSeconds: 60, failureThreshold: 1}\n");
    for (int ms = 0; counted(&b, "Readiness", "failed") == 0; ms++) {
        EXPECT_TRUE(ms < LIMIT_MS);
        prober_step(b.prober, 1);
    }
}

/* --- commands --- */

struct exec_answer {
    int32_t code;
    uint32_t asked;
    char words[128];
    int64_t timeout_s;
};

static int32_t on_exec(void *ctx, const char *container_id KV_UNUSED,
                       const Cri__ExecSyncRequest *request, struct buf *out)
{
    struct exec_answer *answer = ctx;
    __atomic_add_fetch(&answer->asked, 1, __ATOMIC_RELAXED);
    snprintf(answer->words, sizeof answer->words, "%s %s", request->cmd[0], request->cmd[1]);
    answer->timeout_s = request->timeout;
    buf_addz(out, "said");
    return __atomic_load_n(&answer->code, __ATOMIC_RELAXED);
}

static void bench_runtime(struct bench *b, const char **id)
{
    struct err err;
    b->fake = fake_cri_new((struct fake_cri_options){ 0 });
    EXPECT_OK(cri_new((struct cri_options){ .endpoint = fake_cri_endpoint(b->fake),
                                            .clock = clock_real() },
                      &b->cri, &err),
              err);
    *id = fake_cri_container(b->fake, fake_cri_sandbox(b->fake, "uid-web", "web", 0), "app", 0);
    fake_cri_start(b->fake, *id);
    prober_free(b->prober);
    b->prober = prober_new((struct prober_options){ .cri = b->cri,
                                                    .clock = virtual_clock_port(b->clock),
                                                    .metrics = b->metrics,
                                                    .changed = note_change,
                                                    .ctx = b });
    advance(b, 3600 * S);
}

static void until_counted(struct bench *b, const char *result, double count)
{
    for (int ms = 0; counted(b, "Liveness", result) < count; ms++) {
        if (ms > LIMIT_MS)
            fail_msg("the command is not counted as %s", result);
        prober_step(b->prober, 1);
    }
}

TEST(a_command_succeeds_by_its_exit_code_and_a_broken_runtime_says_nothing)
{
    AUTO_BENCH b;
    const char *id;
    struct exec_answer answer = { 0 };
    bench_begin(&b, "    livenessProbe: {exec: {command: [check, me]}, periodSeconds: 1,"
                    " timeoutSeconds: 4, failureThreshold: 1}\n");
    bench_runtime(&b, &id);
    fake_cri_on_exec(b.fake, on_exec, &answer);
    bench_instance(&b, id, RUNTIME_RUNNING);

    until_counted(&b, "successful", 1);
    EXPECT_Z(answer.words, "check me");
    EXPECT_EQ(answer.timeout_s, 4);

    fake_cri_fault(b.fake, (struct fake_fault){
                               .method = CRI_EXEC_SYNC, .times = 1, .status = GRPC_UNAVAILABLE });
    advance(&b, 1 * S);
    until_counted(&b, "unknown", 1);
    EXPECT_EQ(verdicts_of(&b, id).liveness, PROBE_SUCCESS);

    fake_cri_fault(b.fake, (struct fake_fault){ .method = CRI_EXEC_SYNC,
                                                .times = 1,
                                                .status = GRPC_DEADLINE_EXCEEDED });
    advance(&b, 1 * S);
    until_counted(&b, "failed", 1);
    EXPECT_EQ(verdicts_of(&b, id).liveness, PROBE_FAILURE);
    EXPECT_EQ(b.changes, 1);
}

TEST(hooks_run_to_their_end_and_tell_how_it_was)
{
    AUTO_BENCH b;
    const char *id;
    struct exec_answer answer = { 0 };
    struct err err;
    bench_begin(&b, "    lifecycle:\n"
                    "      postStart: {exec: {command: [warm, up]}}\n"
                    "      preStop: {httpGet: {port: http, path: /bye}}\n");
    bench_runtime(&b, &id);
    fake_cri_on_exec(b.fake, on_exec, &answer);
    const struct node_container *spec = &b.pod->containers.items[0];

    EXPECT_OK(handler_run(b.cri, clock_real(), &spec->post_start, spec, str_of(id),
                          STR("127.0.0.1"), 0, NULL, &err),
              err);
    EXPECT_Z(answer.words, "warm up");
    __atomic_store_n(&answer.code, 3, __ATOMIC_RELAXED);
    EXPECT_ERR(handler_run(b.cri, clock_real(), &spec->post_start, spec, str_of(id),
                           STR("127.0.0.1"), 30 * S, NULL, &err),
               err, ERR_UNAVAILABLE);
    EXPECT_HAS(str_of(err.text), "exit code 3: \"said\"");

    /* Nobody takes the request from the backlog: the hook runs out of time. */
    EXPECT_ERR(handler_run(b.cri, clock_real(), &spec->pre_stop, spec, str_of(id), STR("127.0.0.1"),
                           S / 100, NULL, &err),
               err, ERR_UNAVAILABLE);
    EXPECT_HAS(str_of(err.text), "no answer within");
    server_close(&b.server);
    EXPECT_ERR(handler_run(b.cri, clock_real(), &spec->pre_stop, spec, str_of(id), STR("127.0.0.1"),
                           0, NULL, &err),
               err, ERR_UNAVAILABLE);
    EXPECT_HAS(str_of(err.text), "refused");
}

/* --- the thread --- */

static void count_change(void *ctx, struct str uid KV_UNUSED)
{
    __atomic_add_fetch((uint32_t *)ctx, 1, __ATOMIC_RELAXED);
}

/* Pods come and go while attempts are in flight: for the thread and address sanitizers. */
TEST(the_thread_probes_while_pods_come_and_go)
{
    AUTO_BENCH b;
    struct err err;
    uint32_t changes = 0;
    bench_begin(&b, "    readinessProbe: {tcpSocket: {port: PORT}, periodSeconds: 1}\n"
                    "    livenessProbe: {httpGet: {port: PORT}, periodSeconds: 1}\n");
    prober_free(b.prober);
    b.prober = prober_new(
        (struct prober_options){ .clock = clock_real(), .changed = count_change, .ctx = &changes });
    /* Older than the period, so that the first attempts begin at once: the clock's start is long ago. */
    EXPECT_OK(prober_start(b.prober, &err), err);
    char id[32];
    for (int i = 0; i < 2000; i++) {
        snprintf(id, sizeof id, "instance-%d", i / 10);
        bench_instance(&b, id, RUNTIME_RUNNING);
        (void)verdicts_of(&b, id);
        if (i % 100 == 99)
            prober_remove(b.prober, STR("uid-web"));
    }
    bench_instance(&b, "last", RUNTIME_RUNNING);
    for (int ms = 0; verdicts_of(&b, "last").readiness != PROBE_SUCCESS; ms++) {
        if (ms > LIMIT_MS)
            fail_msg("never ready");
        poll(NULL, 0, 1);
    }
    prober_stop(b.prober);
    EXPECT_TRUE(__atomic_load_n(&changes, __ATOMIC_RELAXED) > 0);
}

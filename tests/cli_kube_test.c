/* karve plan --context and karve controller with API servers that are not what they should be: what the
 * user is told. How each failure is told apart is tested beside net/http and store/kube. */
#include "cli_testing.h"

#include "codec/base64.h"
#include "net/http_peer_testing.h"
#include "store/kube_server_testing.h"

#define ATTEMPTS 4 /* of a read */

struct config {
    char path[40];
};

static struct config config_new(const char *cluster, const char *user)
{
    struct config c = { "/tmp/karve-config-XXXXXX" };
    AUTO_BUF text = { 0 };
    int fd = mkstemp(c.path);
    EXPECT_TRUE(fd >= 0);
    buf_addf(&text,
             "{apiVersion: v1, kind: Config, current-context: staging, "
             "contexts: [{name: staging, context: {cluster: c, user: u}}], "
             "clusters: [{name: c, cluster: {%s}}], users: [{name: u, user: {%s}}]}",
             cluster, user);
    EXPECT_EQ(write(fd, text.p, text.len), text.len);
    close(fd);
    return c;
}

static void config_done(struct config *c)
{
    unlink(c->path);
}
#define AUTO_CONFIG __attribute__((cleanup(config_done))) struct config

static struct result plan(const struct config *c)
{
    AUTO_BUF command = { 0 };
    buf_addf(&command, "plan --kubeconfig %s --context staging", c->path);
    return karve(command.p);
}

/* One that waits for the server to get well is told to end once it has said so. */
static struct result controller(const struct config *c, bool waits)
{
    AUTO_BUF command = { 0 };
    buf_addf(&command,
             "log=$(mktemp); \"$KARVE\" controller --kubeconfig %s --metrics-port 0 "
             "--health-probe-port 0 --log-level warn 2>$log & pid=$!\n"
             "while [ %d = 1 ] && ! [ -s $log ]; do sleep 0.05; done\n"
             "[ %d = 0 ] || kill -TERM $pid; wait $pid; code=$?\n"
             "cat $log >&2; rm $log; exit $code",
             c->path, waits, waits);
    return sh(command.p, STR(""));
}

/* A single line that explains itself, and holds no secret. */
static void expect_told(const struct result *r, int code, const char *words)
{
    struct str said = buf_str(&r->err);
    printf("# %.*s", STR_ARG(said));
    EXPECT_EQ(r->code, code);
    EXPECT_EQ(r->out.len, 0);
    EXPECT_HAS(said, words);
    EXPECT_TRUE(said.len > 0 && memchr(said.p, '\n', said.len) == said.p + said.len - 1);
    EXPECT_TRUE(memmem(said.p, said.len, "secret", 6) == NULL);
}

/* --- answers --- */

struct answer {
    const char *raw;   /* with single quotes for double ones */
    const char *words; /* what the user is told of it */
    bool waits;        /* the controller waits for better times */
};

#define HEAD "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"

static const struct answer answers[] = {
    { "SSH-2.0-OpenSSH_9.2\r\n", "no HTTP", false },
    { HEAD "Content-Length: 20\r\n\r\n<html>log in</html>\n", "not an API server's", true },
    { HEAD "Content-Length: 999\r\n\r\n{\"kind\":\"NamespaceList\"", "cut off", true },
    { HEAD "Content-Length: 12\r\n\r\n{\"kind\":\"NamespaceList\",\"items\":[]}", "ends too early",
      true },
    { HEAD "Content-Length: 2\r\n\r\n[]", "no gitVersion", true },
    { "HTTP/1.1 302 Found\r\nLocation: https://login.example/\r\nContent-Length: 0\r\n\r\n",
      "redirected to \"https://login.example/\"", false },
    { "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n", "the server answered with 401",
      false },
    { "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", "", false },
    { "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n", "500", true },
    { "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 8\r\n\r\nstarting", "starting", true },
    { "HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\nnot found", "", true },
};

TEST(an_answer_that_makes_no_sense_is_told_in_one_line)
{
    for (size_t i = 0; i < KV_COUNT_OF(answers); i++) {
        for (int which = 0; which < 2; which++) {
            AUTO(kube_server) server = kube_server_new();
            AUTO_BUF cluster = { 0 };
            buf_addf(&cluster, "server: 'http://127.0.0.1:%u'", kube_server_port(server));
            AUTO_CONFIG config = config_new(cluster.p, ""); /* over http it is not sent */
            for (int n = 0; n < 2 * ATTEMPTS; n++)
                kube_server_raw(server, str_of(answers[i].raw), KUBE_SERVER_CLOSE);
            AUTO_RESULT r = which ? controller(&config, answers[i].waits) : plan(&config);
            expect_told(&r, which && answers[i].waits ? 0 : 3, answers[i].words);
        }
    }
}

/* --- certificates --- */

TEST(a_server_that_cannot_prove_who_it_is_gets_no_token)
{
    AUTO(cert) ca = cert_new((struct cert_options){ .name = "ca", .authority = true });
    AUTO(cert) stranger = cert_new((struct cert_options){ .name = "stranger", .authority = true });
    AUTO(cert)
    strange =
        cert_new((struct cert_options){ .name = "strange", .loopback = true, .issuer = stranger });
    AUTO(cert) self = cert_new((struct cert_options){ .name = "self", .loopback = true });
    AUTO(cert)
    old = cert_new(
        (struct cert_options){ .name = "old", .loopback = true, .issuer = ca, .expired = true });
    AUTO(cert)
    elsewhere = cert_new((struct cert_options){ .name = "web", .dns = "web.test", .issuer = ca });
    const struct {
        const struct cert *cert;
        const char *words;
    } rows[] = {
        { strange, "unable to get local issuer certificate" },
        { self, "self-signed certificate" },
        { old, "certificate has expired" },
        { elsewhere, "'127.0.0.1'" },
    };
    AUTO_BUF ca_base64 = { 0 };
    base64_encode(ca->cert_pem, &ca_base64);
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        for (int which = 0; which < 2; which++) {
            AUTO(http_peer)
            peer = http_peer_new((struct http_peer_options){ .cert = rows[i].cert });
            AUTO_BUF cluster = { 0 };
            buf_addf(&cluster, "server: 'https://127.0.0.1:%u', certificate-authority-data: %s",
                     http_peer_port(peer), ca_base64.p);
            AUTO_CONFIG config = config_new(cluster.p, "token: secret");
            AUTO_RESULT r = which ? controller(&config, false) : plan(&config);
            expect_told(&r, 3, rows[i].words);
            EXPECT_EQ(http_peer_requests(peer), 0);
        }
    }
}

TEST(a_server_that_speaks_no_tls_is_told)
{
    AUTO(kube_server) server = kube_server_new();
    AUTO_BUF cluster = { 0 };
    buf_addf(&cluster, "server: 'https://127.0.0.1:%u'", kube_server_port(server));
    AUTO_CONFIG config = config_new(cluster.p, "token: secret");
    for (int n = 0; n < 2; n++)
        kube_server_raw(server, STR("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"),
                        KUBE_SERVER_CLOSE);
    AUTO_RESULT plain = plan(&config);
    expect_told(&plain, 3, "does not speak TLS");
    AUTO_RESULT plain_controller = controller(&config, false);
    expect_told(&plain_controller, 3, "does not speak TLS");
    EXPECT_EQ(kube_server_requests(server), 2);

    AUTO_RESULT closed = plan(&config);
    expect_told(&closed, 3, "ended the connection when TLS was to begin");
    AUTO_RESULT closed_controller = controller(&config, true);
    expect_told(&closed_controller, 0, "ended the connection when TLS was to begin");
}

TEST(a_server_that_does_not_listen_is_told)
{
    AUTO_CONFIG nowhere = config_new("server: 'https://127.0.0.1:1'", "token: secret");
    AUTO_RESULT refused = plan(&nowhere);
    expect_told(&refused, 3, "connection refused");
    AUTO_RESULT waits = controller(&nowhere, true);
    expect_told(&waits, 0, "connection refused");
}

/* --- ending --- */

/* Had it waited for the answer, it would have complained that none came. */
TEST(a_controller_that_waits_for_an_answer_ends_when_it_is_told_to)
{
    AUTO(kube_server) server = kube_server_new();
    AUTO_BUF cluster = { 0 }, command = { 0 };
    buf_addf(&cluster, "server: 'http://127.0.0.1:%u'", kube_server_port(server));
    AUTO_CONFIG config = config_new(cluster.p, "");
    kube_server_raw(server, STR(""), KUBE_SERVER_HOLD);
    buf_addf(&command,
             "\"$KARVE\" controller --kubeconfig %s --metrics-port 0 --health-probe-port 0 "
             "--log-level warn & pid=$!\n"
             "until grep -qs connect /proc/$pid/task/*/comm; do sleep 0.05; done\n"
             "sleep 0.2; kill -TERM $pid; wait $pid",
             config.path);
    AUTO_RESULT r = sh(command.p, STR(""));
    EXPECT_EQ(r.code, 0);
    EXPECT_STR(buf_str(&r.err), "");
}

/* `karve extender` as a user runs it, with an API server that has none of the kinds: which is a cluster without
 * nodes, as far as it is concerned. What it answers is tested beside compat/extender, and with a real scheduler
 * in tests/kube. */
#include "cli_testing.h"

#include "net/certs_testing.h"
#include "net/http_server.h"

struct scene {
    char dir[40];
    struct http_server *api; /* 404 for everything */
};

static void put(const struct scene *s, const char *name, struct str text)
{
    AUTO_BUF path = { 0 };
    buf_addf(&path, "%s/%s", s->dir, name);
    FILE *f = fopen(path.p, "w");
    EXPECT_TRUE(f != NULL);
    EXPECT_EQ(fwrite(text.p, 1, text.len, f), text.len);
    fclose(f);
}

static void scene_start(struct scene *s)
{
    AUTO_BUF config = { 0 };
    struct err err = { 0 };
    snprintf(s->dir, sizeof s->dir, "/tmp/karve-extender-XXXXXX");
    EXPECT_TRUE(mkdtemp(s->dir) != NULL);
    EXPECT_OK(
        http_server_start((struct http_server_options){ .address = "127.0.0.1" }, &s->api, &err),
        err);
    buf_addf(&config,
             "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: "
             "{cluster: c}}], clusters: [{name: c, cluster: {server: 'http://127.0.0.1:%u'}}]}",
             http_server_port(s->api));
    put(s, "config", buf_str(&config));
}

static void scene_done(struct scene *s)
{
    AUTO_BUF command = { 0 };
    http_server_stop(s->api);
    buf_addf(&command, "rm -r %s", s->dir);
    EXPECT_EQ(system(command.p), 0);
}
#define SCENE __attribute__((cleanup(scene_done))) struct scene

/* Shell functions, with $d the scene's folder. The address is this shell's own, so that the port is free. */
#define TOOLS                                                                                      \
    "a=127.$(($$ / 65536 % 256)).$(($$ / 256 % 256)).$(($$ % 254 + 1)) port=21443\n"               \
    "run() { \"$KARVE\" extender --kubeconfig $d/config --bind-address $a --port $port "           \
    "--metrics-port 0 --health-probe-port 0 --tls-cert $d/cert --tls-key $d/key \"$@\" "           \
    "2>$d/log & pid=$!; }\n"                                                                       \
    "ask() { curl -s -m 30 -o $d/answer -w '%{http_code}' --cacert $d/$1 "                         \
    "--resolve extender.test:$port:$a -d '{\"Pod\":{\"metadata\":{\"name\":\"p\"},\"spec\":{}},"   \
    "\"NodeNames\":[\"n\"]}' https://extender.test:$port/scheduler/filter; }\n"                    \
    "until_so() { for i in $(seq 1200); do eval \"$1\" && return; sleep 0.1; done; "               \
    "echo \"not in time: $1\"; cat $d/log; }\n"

static struct result in_scene(const struct scene *s, const char *script)
{
    AUTO_BUF command = { 0 };
    buf_addf(&command, "d=%s\n", s->dir);
    buf_addz(&command, TOOLS);
    buf_addz(&command, script);
    return sh(command.p, STR(""));
}

TEST(a_renewed_certificate_is_taken_up_and_half_of_one_is_not)
{
    SCENE s = { 0 };
    AUTO(cert) first = cert_new((struct cert_options){ .name = "first", .authority = true });
    AUTO(cert) second = cert_new((struct cert_options){ .name = "second", .authority = true });
    AUTO(cert)
    before =
        cert_new((struct cert_options){ .name = "a", .dns = "extender.test", .issuer = first });
    AUTO(cert)
    after =
        cert_new((struct cert_options){ .name = "b", .dns = "extender.test", .issuer = second });
    scene_start(&s);
    put(&s, "first", first->cert_pem);
    put(&s, "second", second->cert_pem);
    put(&s, "cert", before->cert_pem);
    put(&s, "key", before->key_pem);
    put(&s, "cert.new", after->cert_pem);
    put(&s, "key.new", after->key_pem);
    AUTO_RESULT r = in_scene(&s, "run\n"
                                 "until_so '[ \"$(ask first)\" = 200 ]'\n"
                                 "cat $d/answer; echo\n"
                                 ": >$d/cert; : >$d/key\n"
                                 "until_so 'grep -q \"cert: .* is empty\" $d/log'\n"
                                 "mv $d/cert.new $d/cert\n"
                                 "head -c 100 $d/key.new >$d/key\n"
                                 "until_so 'grep -q \"certificate and key\" $d/log'\n"
                                 "echo old $(ask first)\n"
                                 "mv $d/key.new $d/key\n"
                                 "until_so '[ \"$(ask second)\" = 200 ]'\n"
                                 "echo old $(ask first)\n"
                                 "kill $pid; wait $pid; echo end $?\n");
    EXPECT_STR(buf_str(&r.out),
               "{\"NodeNames\":[\"n\"],\"FailedNodes\":{},\"FailedAndUnresolvableNodes\":{},"
               "\"Error\":\"\"}\n"
               "old 200\n"
               "old 000\n"
               "end 0\n");
}

TEST(an_empty_certificate_is_not_plain_http)
{
    SCENE s = { 0 };
    scene_start(&s);
    put(&s, "cert", STR(""));
    put(&s, "key", STR(""));
    AUTO_RESULT r = in_scene(&s, "run; wait $pid; echo $?; cat $d/log\n");
    EXPECT_HAS(buf_str(&r.out), "3\n");
    EXPECT_HAS(buf_str(&r.out), "--tls-cert: ");
    EXPECT_HAS(buf_str(&r.out), "is empty");
}

TEST(flags_that_would_do_nothing_are_not_taken)
{
    AUTO_RESULT r = karve("extender --launch-repositories x");
    EXPECT_EQ(r.code, 2);
    EXPECT_HAS(buf_str(&r.err), "--launch-repositories");
}

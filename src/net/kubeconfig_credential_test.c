#include "base/thread.h"
#include "net/kubeconfig_testing.h"

#include <stdatomic.h>

#define CONFIG(user)                                                                               \
    "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"                  \
    "clusters: [{name: k, cluster: {server: 'https://h', certificate-authority: ca.crt}}]\n"       \
    "users:\n- name: u\n  user:\n" user
#define V1 "client.authentication.k8s.io/v1"
#define EXEC                                                                                       \
    CONFIG("    exec:\n      apiVersion: " V1 "\n      command: ./bin/plugin\n      "              \
           "interactiveMode: Never\n      provideClusterInfo: true\n")
/* Counts its runs in a file, then answers: $n is how many there were. */
#define PLUGIN(status)                                                                             \
    "#!/bin/sh\necho run >> $/runs\nn=$(wc -l < $/runs)\n"                                         \
    "printf '%s' '{\"apiVersion\":\"" V1 "\",\"kind\":\"ExecCredential\",\"status\":" status       \
    "}'\n"

/* With the authority that CONFIG names. */
static struct home *cluster_home(void)
{
    AUTO_ARENA arena = { 0 };
    struct home *h = home_new();
    home_write(h, &arena, "ca.crt", "-----BEGIN CA-----\n");
    return h;
}

/* Of a user with the certificate ONE in me.crt and its key in me.key. */
static struct kubeconfig *load_certificate(struct home *h)
{
    AUTO_ARENA arena = { 0 };
    home_write(h, &arena, "me.crt", "-----BEGIN ONE-----\n");
    home_write(h, &arena, "me.key", "-----BEGIN KEY-----\n");
    return home_loaded(h, CONFIG("    client-certificate: me.crt\n    client-key: me.key\n"));
}

static void write_plugin(struct home *h, const char *script)
{
    AUTO_ARENA arena = { 0 };
    home_write_plugin(h, &arena, "bin/plugin", script);
}

/* Of a user whose credentials that plugin gives. */
static struct kubeconfig *load_plugin(struct home *h, const char *script)
{
    write_plugin(h, script);
    return home_loaded(h, EXEC);
}

static size_t run_count(struct home *h)
{
    AUTO_ARENA arena = { 0 };
    return home_read(h, &arena, "runs").len / strlen("run\n");
}

/* --- files --- */

TEST(a_token_file_is_read_again_every_minute)
{
    AUTO(home) h = cluster_home();
    AUTO_ARENA arena = { 0 };
    home_write(h, &arena, "t", "\n one \n");
    AUTO(kubeconfig) k = home_loaded(h, CONFIG("    tokenFile: t\n    token: beside\n"));
    EXPECT_STR(credential_now(k, &arena), "Bearer one");
    home_write(h, &arena, "t", "two");
    virtual_clock_advance(h->time, 59 * NS_PER_S);
    EXPECT_STR(credential_now(k, &arena), "Bearer one");
    virtual_clock_advance(h->time, NS_PER_S);
    EXPECT_STR(credential_now(k, &arena), "Bearer two");
}

TEST(a_token_that_was_refused_is_read_again_at_once)
{
    AUTO(home) h = cluster_home();
    AUTO_ARENA arena = { 0 };
    home_write(h, &arena, "t", "one");
    AUTO(kubeconfig) k = home_loaded(h, CONFIG("    tokenFile: t\n"));
    home_write(h, &arena, "t", "two");
    kubeconfig_refused(k, STR("Bearer zero")); /* long gone */
    EXPECT_STR(credential_now(k, &arena), "Bearer one");
    kubeconfig_refused(k, STR("Bearer one"));
    EXPECT_STR(credential_now(k, &arena), "Bearer two");
}

TEST(a_token_file_that_goes_bad_leaves_the_last_good_token)
{
    static const char *const bad[] = { NULL, "", " \n", "a\nb" };
    AUTO(home) h = cluster_home();
    AUTO_ARENA arena = { 0 };
    const char *path = home_write(h, &arena, "t", "one");
    AUTO(kubeconfig) k = home_loaded(h, CONFIG("    tokenFile: t\n"));
    for (size_t i = 0; i < KV_COUNT_OF(bad); i++) {
        if (bad[i])
            home_write(h, &arena, "t", bad[i]);
        else
            EXPECT_EQ(unlink(path), 0);
        virtual_clock_advance(h->time, 60 * NS_PER_S);
        EXPECT_STR(credential_now(k, &arena), "Bearer one");
    }
    EXPECT_HAS(home_log(h, &arena), "what it was stays in use");
    EXPECT_FALSE(str_has(home_log(h, &arena), "one"));
}

TEST(a_token_beside_its_missing_file_is_used)
{
    AUTO(home) h = cluster_home();
    AUTO_ARENA arena = { 0 };
    AUTO(kubeconfig) k = home_loaded(h, CONFIG("    tokenFile: none\n    token: beside\n"));
    EXPECT_STR(credential_now(k, &arena), "Bearer beside");
}

TEST(a_certificate_waits_for_its_key_to_be_renewed_too)
{
    AUTO(home) h = cluster_home();
    AUTO_ARENA arena = { 0 };
    struct http_tls tls;
    AUTO(kubeconfig) k = load_certificate(h);

    home_write(h, &arena, "me.crt", "-----BEGIN TWO-----\n");
    virtual_clock_advance(h->time, 60 * NS_PER_S);
    credential_now(k, &arena);
    kubeconfig_tls(k, &arena, &tls);
    EXPECT_STR(tls.cert_pem, "-----BEGIN ONE-----\n");
    home_write(h, &arena, "me.key", "-----BEGIN KEY TWO-----\n");
    virtual_clock_advance(h->time, NS_PER_S); /* not another minute */
    credential_now(k, &arena);
    EXPECT_EQ(kubeconfig_tls(k, &arena, &tls), 2);
    EXPECT_STR(tls.cert_pem, "-----BEGIN TWO-----\n");
    EXPECT_STR(tls.key_pem, "-----BEGIN KEY TWO-----\n");

    home_write(h, &arena, "me.crt", "-----BEGIN THREE-----\n"); /* for the same key */
    virtual_clock_advance(h->time, 60 * NS_PER_S);
    credential_now(k, &arena);
    virtual_clock_advance(h->time, NS_PER_S);
    credential_now(k, &arena);
    EXPECT_EQ(kubeconfig_tls(k, &arena, &tls), 3);
    EXPECT_STR(tls.cert_pem, "-----BEGIN THREE-----\n");
    EXPECT_STR(tls.key_pem, "-----BEGIN KEY TWO-----\n");
}

TEST(certificate_files_that_change_make_a_new_generation)
{
    AUTO(home) h = cluster_home();
    AUTO_ARENA arena = { 0 };
    struct http_tls tls;
    AUTO(kubeconfig) k = load_certificate(h);
    EXPECT_EQ(kubeconfig_tls(k, &arena, &tls), 1);
    virtual_clock_advance(h->time, 60 * NS_PER_S);
    struct kube_credential c = credential_full(k, &arena);
    EXPECT_STR(c.authorization, "");
    EXPECT_EQ(c.tls_generation, 1);

    home_write(h, &arena, "me.crt", "-----BEGIN TWO-----\n");
    kubeconfig_refused(k, STR(""));
    EXPECT_EQ(credential_full(k, &arena).tls_generation, 2);
    EXPECT_EQ(kubeconfig_tls(k, &arena, &tls), 2);
    EXPECT_STR(tls.cert_pem, "-----BEGIN TWO-----\n");

    home_write(h, &arena, "me.crt", "half wri");
    home_write(h, &arena, "ca.crt", "-----BEGIN NEW-----\n");
    virtual_clock_advance(h->time, 60 * NS_PER_S);
    credential_now(k, &arena);
    EXPECT_EQ(kubeconfig_tls(k, &arena, &tls), 3);
    EXPECT_STR(tls.cert_pem, "-----BEGIN TWO-----\n");
    EXPECT_STR(tls.ca_pem, "-----BEGIN NEW-----\n");
}

/* --- plugins --- */

TEST(a_plugin_runs_once_and_again_when_its_credential_expires)
{
    AUTO(home) h = cluster_home();
    AUTO_ARENA arena = { 0 };
    AUTO(kubeconfig) k = load_plugin(
        h, PLUGIN("{\"token\":\"t'$n'\",\"expirationTimestamp\":\"2026-01-02T15:05:05Z\"}"));
    EXPECT_EQ(run_count(h), 0);
    EXPECT_STR(credential_now(k, &arena), "Bearer t1");
    virtual_clock_advance(h->time, 60 * NS_PER_S); /* to the very moment */
    EXPECT_STR(credential_now(k, &arena), "Bearer t1");
    write_plugin(h, PLUGIN("{\"token\":\"for-ever'$n'\"}"));
    virtual_clock_advance(h->time, NS_PER_S);
    EXPECT_STR(credential_now(k, &arena), "Bearer for-ever2");
    virtual_clock_advance(h->time, 1000000 * NS_PER_S);
    EXPECT_STR(credential_now(k, &arena), "Bearer for-ever2");
    EXPECT_EQ(run_count(h), 2);
}

TEST(a_plugin_runs_again_after_a_refusal_but_not_for_an_older_credential)
{
    AUTO(home) h = cluster_home();
    AUTO_ARENA arena = { 0 };
    AUTO(kubeconfig) k = load_plugin(h, PLUGIN("{\"token\":\"t'$n'\"}"));
    struct str first = credential_now(k, &arena);
    for (int i = 0; i < 5; i++)
        kubeconfig_refused(k, first);
    EXPECT_STR(credential_now(k, &arena), "Bearer t2");
    kubeconfig_refused(k, first);
    EXPECT_STR(credential_now(k, &arena), "Bearer t2");
    EXPECT_EQ(run_count(h), 2);
}

TEST(a_plugin_that_insists_on_what_was_refused_is_left_alone_for_a_while)
{
    AUTO(home) h = cluster_home();
    AUTO_ARENA arena = { 0 };
    AUTO(kubeconfig) k = load_plugin(h, PLUGIN("{\"token\":\"same\"}"));
    for (int i = 0; i < 10; i++)
        kubeconfig_refused(k, credential_now(k, &arena));
    EXPECT_EQ(run_count(h), 2);
    virtual_clock_advance(h->time, 10 * NS_PER_S);
    kubeconfig_refused(k, credential_now(k, &arena));
    EXPECT_STR(credential_now(k, &arena), "Bearer same");
    EXPECT_EQ(run_count(h), 3);
}

TEST(a_plugin_may_give_certificates_and_knows_the_cluster)
{
    AUTO(home) h = cluster_home();
    AUTO_ARENA arena = { 0 };
    struct http_tls tls;
    AUTO(kubeconfig) k = load_plugin(
        h,
        PLUGIN(
            "{\"clientCertificateData\":\"-----BEGIN C'$n'\","
            "\"clientKeyData\":\"-----BEGIN K\"}") "printf '%s' \"$KUBERNETES_EXEC_INFO\" > $/info\n");
    struct kube_credential c = credential_full(k, &arena);
    EXPECT_STR(c.authorization, "");
    EXPECT_EQ(c.tls_generation, 2);
    kubeconfig_tls(k, &arena, &tls);
    EXPECT_STR(tls.cert_pem, "-----BEGIN C1");
    EXPECT_STR(tls.key_pem, "-----BEGIN K");
    EXPECT_STR(tls.ca_pem, "-----BEGIN CA-----\n");
    EXPECT_HAS(home_read(h, &arena, "info"), "\"server\":\"https://h\"");
    EXPECT_HAS(home_read(h, &arena, "info"), "\"certificate-authority-data\":\"LS0tLS1C");
    kubeconfig_refused(k, STR(""));
    EXPECT_EQ(credential_full(k, &arena).tls_generation, 3);
}

TEST(a_plugin_that_fails_is_tried_again_by_the_next_who_asks)
{
    AUTO(home) h = cluster_home();
    AUTO_ARENA arena = { 0 };
    struct err err = { 0 };
    struct kube_credential c;
    AUTO(kubeconfig) k = load_plugin(h, "#!/bin/sh\necho run >> $/runs\nexit 7\n");
    EXPECT_ERR(kubeconfig_credential(k, &arena, &c, &err), err, ERR_UNAVAILABLE);
    EXPECT_HAS(str_of(err.text), "context c: exec plugin ");
    EXPECT_HAS(str_of(err.text), "exit code 7");
    write_plugin(h, PLUGIN("{\"token\":\"t'$n'\"}"));
    EXPECT_STR(credential_now(k, &arena), "Bearer t2");
    write_plugin(h, PLUGIN("{\"clientCertificateData\":\"x\",\"clientKeyData\":\"y\"}"));
    kubeconfig_refused(k, STR("Bearer t2"));
    EXPECT_ERR(kubeconfig_credential(k, &arena, &c, &err), err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), "clientCertificateData: is not PEM");
}

TEST(a_plugin_is_not_asked_when_there_is_a_token_a_password_or_a_certificate)
{
    static const char *const users[] = {
        "    token: t\n",
        "    tokenFile: t\n",
        "    username: me\n    password: p\n",
        "    client-certificate: ca.crt\n    client-key: ca.crt\n",
    };
    for (size_t i = 0; i < KV_COUNT_OF(users); i++) {
        AUTO(home) h = cluster_home();
        AUTO_ARENA arena = { 0 };
        AUTO_BUF text = { 0 };
        home_write(h, &arena, "t", "t");
        write_plugin(h, PLUGIN("{\"token\":\"x\"}"));
        buf_addf(&text, "%s%s", EXEC, users[i]);
        AUTO(kubeconfig) k = home_loaded(h, text.p);
        EXPECT_FALSE(str_eqz(credential_now(k, &arena), "Bearer x"));
        EXPECT_EQ(run_count(h), 0);
    }
}

/* --- many threads --- */

#define THREADS 16

struct asking {
    struct kubeconfig *k;
    struct err err;
    int rc;
    bool right;
};

static atomic_int arrived;

static void *ask(void *arg)
{
    struct asking *a = arg;
    AUTO_ARENA arena = { 0 };
    struct kube_credential c;
    atomic_fetch_add(&arrived, 1);
    a->rc = kubeconfig_credential(a->k, &arena, &c, &a->err);
    a->right = a->rc == 0 && str_eqz(c.authorization, "Bearer t1");
    return NULL;
}

/* All ask while the first run lasts: it ends when the file "go" is there. */
static void ask_together(struct home *h, struct kubeconfig *k, struct asking *asking)
{
    AUTO_ARENA arena = { 0 };
    pthread_t threads[THREADS];
    atomic_store(&arrived, 0);
    for (int i = 0; i < THREADS; i++) {
        struct err err = { 0 };
        asking[i] = (struct asking){ .k = k };
        EXPECT_OK(thread_start(&threads[i], "ask", ask, &asking[i], &err), err);
    }
    while (atomic_load(&arrived) < THREADS || run_count(h) == 0)
        usleep(1000);
    usleep(100000); /* they have arrived, and now reach the wait */
    home_write(h, &arena, "go", "");
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

#define WAIT "#!/bin/sh\necho run >> $/runs\nwhile ! [ -e $/go ]; do sleep 0.01; done\n"

TEST(threads_that_ask_together_share_one_run)
{
    AUTO(home) h = cluster_home();
    struct asking asking[THREADS];
    AUTO(kubeconfig) k =
        load_plugin(h, WAIT "echo '{\"apiVersion\":\"" V1
                            "\",\"kind\":\"ExecCredential\",\"status\":{\"token\":\"t1\"}}'\n");
    ask_together(h, k, asking);
    for (int i = 0; i < THREADS; i++)
        EXPECT_TRUE(asking[i].right);
    EXPECT_EQ(run_count(h), 1);
}

TEST(threads_that_ask_together_share_one_failure)
{
    AUTO(home) h = cluster_home();
    struct asking asking[THREADS];
    AUTO(kubeconfig) k = load_plugin(h, WAIT "exit 1\n");
    ask_together(h, k, asking);
    for (int i = 0; i < THREADS; i++)
        EXPECT_ERR(asking[i].rc, asking[i].err, ERR_UNAVAILABLE);
    EXPECT_TRUE(run_count(h) < THREADS); /* one, unless a thread slept through it */
}

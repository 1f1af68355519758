#include "net/kubeconfig_testing.h"

#define PEM_BASE64 "LS0tLS1CRUdJTiBYLS0tLS0K" /* "-----BEGIN X-----\n" */
#define PEM "-----BEGIN X-----\n"

/* One context "c" of a cluster and a user whose fields, indented by four, are given. */
#define CONFIG(cluster, user)                                                                      \
    "apiVersion: v1\nkind: Config\ncurrent-context: c\n"                                           \
    "contexts:\n- name: c\n  context: {cluster: k, user: u}\n"                                     \
    "clusters:\n- name: k\n  cluster:\n" cluster "users:\n- name: u\n  user:\n" user
#define SERVER "    server: https://example.com:6443\n"

/* --- what is chosen --- */

TEST(the_current_context_names_cluster_user_and_namespace)
{
    AUTO(home) h = home_new();
    AUTO_ARENA arena = { 0 };
    AUTO(kubeconfig) k =
        home_loaded(h, "current-context: b\n"
                       "contexts:\n"
                       "- name: a\n  context: {cluster: one, user: ann}\n"
                       "- name: b\n  context: {cluster: two, user: bob, namespace: team}\n"
                       "clusters:\n"
                       "- name: one\n  cluster: {server: 'https://one'}\n"
                       "- name: two\n  cluster: {server: 'https://two/', disable-compression: "
                       "true, proxy-url: 'http://proxy:3128'}\n"
                       "users:\n"
                       "- name: ann\n  user: {token: of-ann}\n"
                       "- name: bob\n  user: {token: of-bob}\n");
    EXPECT_Z(kubeconfig_context(k), "b");
    EXPECT_Z(kubeconfig_server(k), "https://two");
    EXPECT_Z(kubeconfig_namespace(k), "team");
    EXPECT_Z(kubeconfig_proxy(k), "http://proxy:3128");
    EXPECT_FALSE(kubeconfig_compression(k));
    EXPECT_FALSE(kubeconfig_in_cluster(k));
    EXPECT_STR(credential_now(k, &arena), "Bearer of-bob");
    AUTO_BUF names = { 0 };
    kubeconfig_contexts(k, &names);
    EXPECT_STR(buf_str(&names), "a, b");
}

TEST(a_context_that_is_asked_for_wins_over_the_current_one)
{
    AUTO(home) h = home_new();
    h->options.context = "a";
    AUTO(kubeconfig) k =
        home_loaded(h, "current-context: b\n"
                       "contexts: [{name: a, context: {cluster: one}}]\n"
                       "clusters: [{name: one, cluster: {server: 'https://one'}}]\n");
    EXPECT_Z(kubeconfig_context(k), "a");
    EXPECT_Z(kubeconfig_namespace(k), "default");
    EXPECT_TRUE(kubeconfig_proxy(k) == NULL);
    EXPECT_TRUE(kubeconfig_compression(k));
}

TEST(json_is_read_as_well_and_unknown_fields_are_ignored)
{
    AUTO(home) h = home_new();
    AUTO(kubeconfig) k =
        home_loaded(h, "{\"kind\":\"Config\",\"preferences\":{\"colors\":true},\"extensions\":[],"
                       "\"current-context\":\"c\",\"users\":null,"
                       "\"contexts\":[{\"name\":\"c\",\"context\":{\"cluster\":\"k\","
                       "\"extensions\":[{\"name\":\"x\",\"extension\":{}}]}}],"
                       "\"clusters\":[{\"name\":\"k\",\"cluster\":{\"server\":\"https://x\","
                       "\"api-version\":\"v1\"}}]}");
    EXPECT_Z(kubeconfig_server(k), "https://x");
}

TEST(a_server_is_a_url_or_a_host_and_port)
{
    static const struct {
        const char *server, *more, *want; /* want NULL: refused */
    } cases[] = {
        { "https://h:6443", "", "https://h:6443" },
        { "HTTPS://h", "", "https://h" },
        { "https://h/k8s/clusters/c-1/", "", "https://h/k8s/clusters/c-1" },
        { "https://h/a?x=1#y", "", "https://h/a" },
        { "https://[::1]:6443", "", "https://[::1]:6443" },
        { "http://h:8080", "", "http://h:8080" },
        { "h:8080", "", "http://h:8080" },
        { "h:6443", "    certificate-authority-data: " PEM_BASE64 "\n", "https://h:6443" },
        { "h:6443/", "    insecure-skip-tls-verify: true\n", "https://h:6443" },
        { "", "", NULL },
        { "h/path", "", NULL },
        { "https://", "", NULL },
        { "https:///path", "", NULL },
        { "ftp://h", "", NULL },
        { "https://h h", "", NULL },
        { "https://me:hunter2@h", "", NULL },
    };
    AUTO(home) h = home_new();
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO(kubeconfig) k = NULL;
        AUTO_BUF text = { 0 };
        struct err err = { 0 };
        buf_addf(&text, CONFIG("    server: \"%s\"\n%s", "    {}\n"), cases[i].server,
                 cases[i].more);
        if (cases[i].want) {
            EXPECT_OK(home_load(h, text.p, &k, &err), err);
            EXPECT_Z(kubeconfig_server(k), cases[i].want);
        } else {
            EXPECT_ERR(home_load(h, text.p, &k, &err), err, ERR_INVALID);
            EXPECT_HAS(str_of(err.text), "config:8: cluster \"k\"");
            EXPECT_HAS(str_of(err.text), "server");
        }
    }
}

TEST(a_server_that_is_given_takes_the_place_of_the_clusters_and_of_its_tls_name)
{
    AUTO(home) h = home_new();
    AUTO_ARENA arena = { 0 };
    const char *text = CONFIG(SERVER "    tls-server-name: inner\n", "    token: t\n");
    for (int given = 0; given < 2; given++) {
        struct http_tls tls;
        h->options.server = given ? "https://other" : NULL;
        AUTO(kubeconfig) k = home_loaded(h, text);
        EXPECT_Z(kubeconfig_server(k), given ? "https://other" : "https://example.com:6443");
        kubeconfig_tls(k, &arena, &tls);
        EXPECT_TRUE(given ? tls.server_name.len == 0 : str_eqz(tls.server_name, "inner"));
    }
}

TEST(certificates_come_from_data_or_from_files_beside_the_kubeconfig)
{
    AUTO(home) h = home_new();
    AUTO_ARENA arena = { 0 };
    struct http_tls tls;
    home_write(h, &arena, "pki/ca.crt", "-----BEGIN CA-----\n");
    home_write(h, &arena, "pki/me.crt", "-----BEGIN ME-----\n");
    home_write(h, &arena, "pki/me.key", "-----BEGIN KEY-----\n");
    AUTO(kubeconfig) files = home_loaded(h, CONFIG(SERVER "    certificate-authority: pki/ca.crt\n",
                                                   "    client-certificate: $/pki/me.crt\n"
                                                   "    client-key: ./pki/me.key\n"));
    kubeconfig_tls(files, &arena, &tls);
    EXPECT_STR(tls.ca_pem, "-----BEGIN CA-----\n");
    EXPECT_STR(tls.cert_pem, "-----BEGIN ME-----\n");
    EXPECT_STR(tls.key_pem, "-----BEGIN KEY-----\n");
    EXPECT_FALSE(tls.insecure);

    /* Data wins over the file, which need not even be there. */
    AUTO(kubeconfig) data =
        home_loaded(h, CONFIG(SERVER "    certificate-authority: none.crt\n"
                                     "    certificate-authority-data: " PEM_BASE64 "\n",
                              "    client-certificate-data: " PEM_BASE64 "\n"
                              "    client-key-data: |\n      LS0tLS1CRUdJ\n      TiBYLS0tLS0K\n"));
    kubeconfig_tls(data, &arena, &tls);
    EXPECT_STR(tls.ca_pem, PEM);
    EXPECT_STR(tls.cert_pem, PEM);
    EXPECT_STR(tls.key_pem, PEM);
    EXPECT_HAS(home_log(h, &arena), "the file is ignored");
}

TEST(a_server_that_is_not_verified_is_warned_about_by_name)
{
    AUTO(home) h = home_new();
    AUTO_ARENA arena = { 0 };
    struct http_tls tls;
    AUTO(kubeconfig) k =
        home_loaded(h, CONFIG(SERVER "    insecure-skip-tls-verify: true\n", "    {}\n"));
    kubeconfig_tls(k, &arena, &tls);
    EXPECT_TRUE(tls.insecure);
    EXPECT_HAS(home_log(h, &arena), "WARN");
    EXPECT_HAS(home_log(h, &arena), "INSECURE");
    EXPECT_HAS(home_log(h, &arena), "cluster=k");
    EXPECT_HAS(home_log(h, &arena), "/config");
}

TEST(a_proxy_is_named_by_its_url)
{
    static const struct {
        const char *url, *want; /* want NULL: refused */
    } cases[] = {
        { "http://proxy:3128", "http://proxy:3128" },
        { "https://me:pw@proxy", "https://me:pw@proxy" },
        { "socks5://proxy:1080", "socks5h://proxy:1080" },
        { "proxy:3128", NULL },
        { "ftp://proxy", NULL },
        { "http://", NULL },
        { "http://a b", NULL },
    };
    AUTO(home) h = home_new();
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO(kubeconfig) k = NULL;
        AUTO_BUF text = { 0 };
        struct err err = { 0 };
        buf_addf(&text, CONFIG(SERVER "    proxy-url: \"%s\"\n", "    {}\n"), cases[i].url);
        if (cases[i].want) {
            EXPECT_OK(home_load(h, text.p, &k, &err), err);
            EXPECT_Z(kubeconfig_proxy(k), cases[i].want);
        } else {
            EXPECT_ERR(home_load(h, text.p, &k, &err), err, ERR_INVALID);
            EXPECT_HAS(str_of(err.text), "cluster \"k\": proxy-url: ");
        }
    }
}

TEST(username_and_password_become_basic_authorization)
{
    AUTO(home) h = home_new();
    AUTO_ARENA arena = { 0 };
    AUTO(kubeconfig) k = home_loaded(h, CONFIG(SERVER, "    username: ann\n    password: 'p:w'\n"));
    EXPECT_STR(credential_now(k, &arena), "Basic YW5uOnA6dw==");
}

TEST(impersonation_becomes_headers_as_many_as_it_takes)
{
    AUTO(home) h = home_new();
    AUTO_ARENA arena = { 0 };
    AUTO_BUF seen = { 0 };
    AUTO(kubeconfig) k =
        home_loaded(h, CONFIG(SERVER, "    token: t\n    as: ann\n    as-uid: '7'\n"
                                      "    as-groups: [g1, g2, g3, g4, g5, g6, g7]\n"
                                      "    as-user-extra:\n      scopes: [view, edit]\n"
                                      "      'example.com/a b%': [x]\n      none: null\n"));
    struct kube_credential c = credential_full(k, &arena);
    for (uint32_t i = 0; i < c.impersonate_count; i++)
        buf_addf(&seen, "%.*s: %.*s\n", STR_ARG(c.impersonate[i].name),
                 STR_ARG(c.impersonate[i].value));
    EXPECT_STR(buf_str(&seen),
               "Impersonate-User: ann\nImpersonate-Uid: 7\n"
               "Impersonate-Group: g1\nImpersonate-Group: g2\nImpersonate-Group: g3\n"
               "Impersonate-Group: g4\nImpersonate-Group: g5\nImpersonate-Group: g6\n"
               "Impersonate-Group: g7\n"
               "Impersonate-Extra-scopes: view\nImpersonate-Extra-scopes: edit\n"
               "Impersonate-Extra-example.com%2Fa%20b%25: x\n");
}

TEST(credentials_are_for_https_alone_unless_told_otherwise)
{
    AUTO(home) h = home_new();
    AUTO_ARENA arena = { 0 };
    const char *text = CONFIG("    server: http://h\n", "    token: t\n    as: ann\n");
    for (int allowed = 0; allowed < 2; allowed++) {
        h->options.credentials_over_http = allowed;
        AUTO(kubeconfig) k = home_loaded(h, text);
        struct kube_credential c = credential_full(k, &arena);
        EXPECT_STR(c.authorization, allowed ? "Bearer t" : "");
        EXPECT_EQ(c.impersonate_count, 1);
    }
    EXPECT_HAS(home_log(h, &arena), "not sent over plain http");
}

/* --- several files --- */

static int load_list(struct home *h, const char *list, struct kubeconfig **out, struct err *err)
{
    AUTO_BUF paths = { 0 };
    for (const char *c = list; *c; c++) {
        if (*c == '$')
            buf_addz(&paths, h->path);
        else
            buf_addc(&paths, *c);
    }
    setenv("KUBECONFIG", paths.p, 1);
    return kubeconfig_load(h->options, out, err);
}

static void write_merge_files(struct home *h, struct arena *arena)
{
    home_write(h, arena, "x/one",
               "contexts:\n- name: shared\n  context: {cluster: k, user: red, namespace: one}\n"
               "users:\n- name: red\n  user: {username: one, password: p}\n");
    home_write(h, arena, "y/two",
               "current-context: shared\n"
               "contexts:\n- name: shared\n  context: {cluster: other, user: blue}\n"
               "clusters:\n- name: k\n  cluster: {server: 'https://two', certificate-authority: "
               "ca.crt}\n"
               "users:\n- name: red\n  user: {token: from-two, as: nobody}\n");
    home_write(h, arena, "y/ca.crt", PEM);
    home_write(h, arena, "z/three",
               "current-context: none\n"
               "clusters:\n- name: k\n  cluster: {server: 'https://three'}\n");
}

TEST(of_several_files_the_first_to_have_an_entry_has_all_of_it)
{
    AUTO(home) h = home_new();
    AUTO(kubeconfig) k = NULL;
    AUTO_ARENA arena = { 0 };
    struct err err = { 0 };
    struct http_tls tls;
    write_merge_files(h, &arena);
    EXPECT_OK(load_list(h, "$/x/one:$/missing::$/y/two:$/x/one:$/z/three", &k, &err), err);
    EXPECT_Z(kubeconfig_context(k), "shared");
    EXPECT_Z(kubeconfig_namespace(k), "one");
    EXPECT_Z(kubeconfig_server(k), "https://two");
    kubeconfig_tls(k, &arena, &tls);
    EXPECT_STR(tls.ca_pem, PEM); /* beside the file that names it */
    struct kube_credential c = credential_full(k, &arena);
    EXPECT_STR(c.authorization, "Basic b25lOnA="); /* no token from the other file */
    EXPECT_EQ(c.impersonate_count, 0);
}

TEST(a_list_of_which_no_file_exists_is_an_error_that_names_them)
{
    AUTO(home) h = home_new();
    AUTO(kubeconfig) k = NULL;
    struct err err = { 0 };
    setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1); /* and no reason to take something else */
    setenv("KUBERNETES_SERVICE_PORT", "443", 1);
    EXPECT_ERR(load_list(h, "$/a:$/b", &k, &err), err, ERR_NOT_FOUND);
    EXPECT_HAS(str_of(err.text), "/a:");
    EXPECT_HAS(str_of(err.text), "/b");
}

TEST(one_bad_file_of_a_list_is_an_error)
{
    AUTO(home) h = home_new();
    AUTO(kubeconfig) k = NULL;
    AUTO_ARENA arena = { 0 };
    struct err err = { 0 };
    write_merge_files(h, &arena);
    home_write(h, &arena, "bad", "clusters: {}\n");
    EXPECT_ERR(load_list(h, "$/y/two:$/bad", &k, &err), err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), "/bad:1: clusters: expected an array, found an object");
}

TEST(without_a_list_the_file_at_home_is_read_and_a_named_one_before_both)
{
    AUTO(home) h = home_new();
    AUTO_ARENA arena = { 0 };
    struct err err = { 0 };
    home_write(h, &arena, ".kube/config", CONFIG("    server: https://home\n", "    {}\n"));
    AUTO(kubeconfig) home = NULL;
    EXPECT_OK(kubeconfig_load(h->options, &home, &err), err);
    EXPECT_Z(kubeconfig_server(home), "https://home");

    home_write(h, &arena, "listed", CONFIG("    server: https://listed\n", "    {}\n"));
    AUTO(kubeconfig) listed = NULL;
    EXPECT_OK(load_list(h, "$/listed", &listed, &err), err);
    EXPECT_Z(kubeconfig_server(listed), "https://listed");

    AUTO(kubeconfig) named = home_loaded(h, CONFIG("    server: https://named\n", "    {}\n"));
    EXPECT_Z(kubeconfig_server(named), "https://named");

    AUTO(kubeconfig) missing = NULL;
    h->options.path = "/nowhere/config";
    EXPECT_ERR(kubeconfig_load(h->options, &missing, &err), err, ERR_NOT_FOUND);
    EXPECT_HAS(str_of(err.text), "/nowhere/config");
}

/* --- in a pod --- */

static void be_a_pod(struct home *h, struct arena *arena, const char *host)
{
    home_write(h, arena, "sa/token", "pod-token\n");
    home_write(h, arena, "sa/ca.crt", PEM);
    home_write(h, arena, "sa/namespace", "karve-system");
    setenv("KUBERNETES_SERVICE_HOST", host, 1);
    setenv("KUBERNETES_SERVICE_PORT", "6443", 1);
    h->options.service_account_dir = arena_strf(arena, "%s/sa", h->path).p;
}

TEST(a_pod_uses_its_service_account)
{
    static const struct {
        const char *host, *server;
    } cases[] = {
        { "10.0.0.1", "https://10.0.0.1:6443" },
        { "fd00::1", "https://[fd00::1]:6443" },
        { "[fd00::1]", "https://[fd00::1]:6443" },
        { "kubernetes.default.svc", "https://kubernetes.default.svc:6443" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO(home) h = home_new();
        AUTO(kubeconfig) k = NULL;
        AUTO_ARENA arena = { 0 };
        struct err err = { 0 };
        struct http_tls tls;
        be_a_pod(h, &arena, cases[i].host);
        EXPECT_OK(kubeconfig_load(h->options, &k, &err), err);
        EXPECT_Z(kubeconfig_server(k), cases[i].server);
        EXPECT_Z(kubeconfig_context(k), "in-cluster");
        EXPECT_Z(kubeconfig_namespace(k), "karve-system");
        EXPECT_TRUE(kubeconfig_in_cluster(k));
        EXPECT_STR(credential_now(k, &arena), "Bearer pod-token");
        kubeconfig_tls(k, &arena, &tls);
        EXPECT_STR(tls.ca_pem, PEM);
    }
}

TEST(a_kubeconfig_wins_over_the_pod_unless_it_names_no_context)
{
    AUTO(home) h = home_new();
    AUTO_ARENA arena = { 0 };
    struct err err = { 0 };
    be_a_pod(h, &arena, "10.0.0.1");
    home_write(h, &arena, ".kube/config", "apiVersion: v1\nkind: Config\n");
    AUTO(kubeconfig) pod = NULL;
    EXPECT_OK(kubeconfig_load(h->options, &pod, &err), err);
    EXPECT_Z(kubeconfig_context(pod), "in-cluster");

    home_write(h, &arena, ".kube/config", CONFIG("    server: https://home\n", "    {}\n"));
    AUTO(kubeconfig) home = NULL;
    EXPECT_OK(kubeconfig_load(h->options, &home, &err), err);
    EXPECT_Z(kubeconfig_context(home), "c");

    AUTO(kubeconfig) asked = NULL; /* a context is never the pod's own */
    EXPECT_EQ(unlink(home_write(h, &arena, ".kube/config", "")), 0);
    h->options.context = "prod";
    EXPECT_ERR(kubeconfig_load(h->options, &asked, &err), err, ERR_NOT_FOUND);
    EXPECT_HAS(str_of(err.text), "\"prod\"");
}

TEST(a_pod_without_a_token_is_an_error_and_without_an_authority_a_warning)
{
    AUTO(home) h = home_new();
    AUTO_ARENA arena = { 0 };
    struct err err = { 0 };
    be_a_pod(h, &arena, "10.0.0.1");
    setenv("POD_NAMESPACE", "told", 1);
    EXPECT_EQ(unlink(arena_strf(&arena, "%s/sa/ca.crt", h->path).p), 0);
    AUTO(kubeconfig) k = NULL;
    EXPECT_OK(kubeconfig_load(h->options, &k, &err), err);
    EXPECT_Z(kubeconfig_namespace(k), "told");
    EXPECT_HAS(home_log(h, &arena), "no certificate authority");

    EXPECT_EQ(unlink(arena_strf(&arena, "%s/sa/token", h->path).p), 0);
    AUTO(kubeconfig) none = NULL;
    EXPECT_ERR(kubeconfig_load(h->options, &none, &err), err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), "/sa/token");
}

TEST(nothing_at_all_is_an_error_that_says_where_it_looked)
{
    AUTO(home) h = home_new();
    AUTO(kubeconfig) k = NULL;
    struct err err = { 0 };
    EXPECT_ERR(kubeconfig_load(h->options, &k, &err), err, ERR_NOT_FOUND);
    EXPECT_HAS(str_of(err.text), "KUBECONFIG is not set");
    EXPECT_HAS(str_of(err.text), "/.kube/config does not exist");
    EXPECT_HAS(str_of(err.text), "no pod");
}

/* --- what is wrong --- */

#define EXEC_V1 "      apiVersion: client.authentication.k8s.io/v1\n"

TEST(a_mistake_is_an_error_that_says_where)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        { "contexts:\n- name: dev\n- name: staging\ncurrent-context: prod\n",
          "context \"prod\" is not in " },
        { "contexts:\n- name: dev\n- name: staging\ncurrent-context: prod\n",
          "/config (has: dev, staging)" },
        { "contexts:\n- name: dev\n", "no context is chosen" },
        { "", "no context is chosen" },
        { "contexts:\n- name: p\n  context: {cluster: x}\ncurrent-context: p\n",
          "/config:2: cluster \"x\" of context \"p\" is not defined" },
        { "contexts:\n- name: p\ncurrent-context: p\n",
          "/config:2: context \"p\": names no cluster" },
        { "contexts:\n- name: p\n  context: {cluster: x, user: z}\ncurrent-context: p\n"
          "clusters: [{name: x}]\n",
          "/config:2: user \"z\" of context \"p\" is not defined" },
        { "contexts:\n- name: p\n  context: {cluster: x, namespace: ../y}\ncurrent-context: p\n"
          "clusters: [{name: x}]\n",
          "context \"p\": namespace: \"../y\" is no name" },
        { CONFIG(SERVER "    certificate-authority: no.crt\n", "    {}\n"),
          "certificate-authority: " },
        { CONFIG(SERVER "    certificate-authority: no.crt\n", "    {}\n"),
          "/no.crt: No such file" },
        { CONFIG(SERVER "    certificate-authority-data: '!'\n", "    {}\n"),
          "/config:11: cluster \"k\": certificate-authority-data: not base64" },
        { CONFIG(SERVER "    certificate-authority-data: aGVsbG8=\n", "    {}\n"),
          "certificate-authority-data: is not PEM" },
        { CONFIG(SERVER "    certificate-authority-data: " PEM_BASE64
                        "\n    insecure-skip-tls-verify: true\n",
                 "    {}\n"),
          "one of them goes" },
        { CONFIG(SERVER "    insecure-skip-tls-verify: 'yes'\n", "    {}\n"),
          "/config:11: cluster \"k\": insecure-skip-tls-verify: expected a boolean, found a "
          "string" },
        { CONFIG(SERVER "    proxy-url: proxy:3128\n", "    {}\n"), "proxy-url: is not http://" },
        { CONFIG(SERVER, "    token: 12345\n"),
          "/config:14: user \"u\": token: expected a string, found an integer: put it in quotes" },
        { CONFIG(SERVER, "    token: \"a\\nb\"\n"), "/config:12: user \"u\": has a line break" },
        { CONFIG(SERVER, "    as: a\n    as-groups: [\"a\\nb\"]\n"), "has a line break" },
        { CONFIG(SERVER, "    token: t\n    username: u\n"), "a token and a password" },
        { CONFIG(SERVER, "    tokenFile: no\n"), "tokenFile: " },
        { CONFIG(SERVER, "    client-certificate-data: " PEM_BASE64 "\n"), "no client-key" },
        { CONFIG(SERVER, "    as-groups: [g]\n"), "nobody to impersonate" },
        { CONFIG(SERVER, "    auth-provider: {name: gcp}\n"), "use an exec plugin" },
        { CONFIG(SERVER, "    exec: {}\n"), "exec: command is missing" },
        { CONFIG(SERVER, "    exec: {command: x}\n"), "exec: apiVersion is missing" },
        { CONFIG(SERVER, "    exec:\n      command: x\n      apiVersion: "
                         "client.authentication.k8s.io/v1alpha1\n"),
          "update the plugin" },
        { CONFIG(SERVER, "    exec:\n      command: x\n" EXEC_V1), "interactiveMode is missing" },
        { CONFIG(SERVER, "    exec:\n      command: x\n      interactiveMode: x\n" EXEC_V1),
          "is not Never, IfAvailable or Always" },
        { CONFIG(SERVER,
                 "    exec:\n      command: x\n      env: [{name: 'A=', value: b}]\n" EXEC_V1),
          "is no name of a variable" },
        { CONFIG(SERVER, "    exec:\n      command: x\n      args: [1]\n" EXEC_V1),
          "args: expected a string" },
        { "users:\n- name: u\n- name: v\n- name: u\n",
          "/config:4: user \"u\": is there twice, first on line 2" },
        { "kind: Pod\n", "/config:1: kind: is not Config" },
        { "apiVersion: v2\n", "/config:1: apiVersion: is not v1" },
        { "[]\n", "expected an object, found an array" },
        { "{}\n---\n{}\n", "has 2 documents" },
        { "users: {\n", "/config:" },
        { "users: []\nusers: []\n", "/config:2: duplicate key \"users\"" },
    };
    AUTO(home) h = home_new();
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO(kubeconfig) k = NULL;
        struct err err = { 0 };
        EXPECT_ERR(home_load(h, cases[i].text, &k, &err), err, ERR_INVALID);
        EXPECT_HAS(str_of(err.text), cases[i].want);
    }
}

TEST(a_broken_entry_that_nobody_chooses_hurts_only_if_it_cannot_be_read)
{
    AUTO(home) h = home_new();
    AUTO(kubeconfig) k = NULL;
    struct err err = { 0 };
    EXPECT_OK(
        home_load(
            h,
            CONFIG(SERVER,
                   "    token: t\n- name: w\n  user: {token: \"a\\nb\", auth-provider: {name: "
                   "x}, tokenFile: /none}\n"),
            &k, &err),
        err);
}

TEST(no_secret_is_part_of_a_message_or_of_the_log)
{
    /* Each mistake is one that a value is at fault for. */
    static const char *const texts[] = {
        CONFIG(SERVER, "    password: *hunter2\n"),
        CONFIG(SERVER, "    password: !hunter2 x\n"),
        CONFIG(SERVER, "    password: !!int hunter2\n"),
        CONFIG(SERVER, "    password: [hunter2]\n"),
        CONFIG(SERVER, "    token: {hunter2: 1}\n"),
        CONFIG(SERVER, "    token: hunter2: x\n"),
        CONFIG(SERVER, "    token: \"hunter2\\n\"\n"),
        CONFIG(SERVER, "    client-key-data: hunter2!\n"),
        CONFIG(SERVER,
               "    client-key-data: aHVudGVyMg==\n    client-certificate-data: aHVudGVyMg==\n"),
        CONFIG(SERVER, "    token: hunter2\n    password: hunter2\n"),
        CONFIG(SERVER "    proxy-url: ftp://me:hunter2@h\n", "    {}\n"),
        "{\"users\": [{\"name\": \"u\", \"user\": {\"password\": 123456789012345678901234567890}}]}",
    };
    AUTO(home) h = home_new();
    AUTO_ARENA arena = { 0 };
    for (size_t i = 0; i < KV_COUNT_OF(texts); i++) {
        AUTO(kubeconfig) k = NULL;
        struct err err = { 0 };
        EXPECT_ERR(home_load(h, texts[i], &k, &err), err, ERR_INVALID);
        EXPECT_FALSE(str_has(str_of(err.text), "hunter2"));
        EXPECT_FALSE(str_has(str_of(err.text), "1234567890"));
    }
    EXPECT_FALSE(str_has(home_log(h, &arena), "hunter2"));
}

TEST(a_file_with_secrets_that_others_may_read_is_warned_about)
{
    static const struct {
        const char *user;
        mode_t mode;
        const char *want; /* NULL: silence */
    } cases[] = {
        { "    token: t\n", 0600, NULL },
        { "    token: t\n", 0640, "its group" },
        { "    token: t\n", 0644, "everybody" },
        { "    client-key-data: " PEM_BASE64 "\n", 0604, "everybody" },
        { "    tokenFile: t\n", 0644, NULL },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO(home) h = home_new();
        AUTO(kubeconfig) k = NULL;
        AUTO_ARENA arena = { 0 };
        AUTO_BUF text = { 0 };
        struct err err = { 0 };
        buf_addf(&text, CONFIG(SERVER, "%s"), cases[i].user);
        home_write(h, &arena, "t", "t");
        h->options.path = home_write(h, &arena, "config", text.p);
        EXPECT_EQ(chmod(h->options.path, cases[i].mode), 0);
        EXPECT_OK(kubeconfig_load(h->options, &k, &err), err);
        EXPECT_EQ(str_has(home_log(h, &arena), "read by others"), cases[i].want != NULL);
        if (cases[i].want)
            EXPECT_HAS(home_log(h, &arena), cases[i].want);
    }
}

TEST(a_file_beyond_the_limit_is_refused)
{
    AUTO(home) h = home_new();
    AUTO(kubeconfig) k = NULL;
    AUTO_ARENA arena = { 0 };
    struct err err = { 0 };
    h->options.path = home_write(h, &arena, "config", "a: b\n");
    EXPECT_EQ(truncate(h->options.path, (17 << 20)), 0);
    EXPECT_ERR(kubeconfig_load(h->options, &k, &err), err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), "limit");
}

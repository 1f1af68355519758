#include "net/exec_credential.h"

#include "base/thread.h"
#include "codec/json.h"
#include "net/kubeconfig_testing.h"

#include <signal.h>

#define V1 "client.authentication.k8s.io/v1"
#define ANSWER(status)                                                                             \
    "{\"apiVersion\":\"" V1 "\",\"kind\":\"ExecCredential\",\"status\":" status "}"

/* --- what a plugin answers --- */

static int decode(const char *text, struct arena *arena, struct exec_credential *out,
                  struct err *err)
{
    return exec_credential_decode(str_of(text), STR(V1), arena, out, err);
}

TEST(an_answer_has_a_token_or_a_certificate_and_perhaps_an_end)
{
    AUTO_ARENA arena = { 0 };
    struct exec_credential c;
    struct err err = { 0 };
    EXPECT_OK(decode(ANSWER("{\"token\":\"t\"}") "\n", &arena, &c, &err), err);
    EXPECT_STR(c.token, "t");
    EXPECT_EQ(c.cert_pem.len, 0);
    EXPECT_EQ(c.expires_us, INT64_MAX);
    EXPECT_OK(decode(ANSWER("{\"token\":null,\"clientCertificateData\":\"c\",\"clientKeyData\":"
                            "\"k\",\"expirationTimestamp\":\"2026-01-02T16:04:05+01:00\"}"),
                     &arena, &c, &err),
              err);
    EXPECT_EQ(c.token.len, 0);
    EXPECT_STR(c.cert_pem, "c");
    EXPECT_STR(c.key_pem, "k");
    EXPECT_EQ(c.expires_us, START_US);
    EXPECT_OK(
        decode("apiVersion: " V1 "\nkind: ExecCredential\nstatus: {token: t}\n", &arena, &c, &err),
        err);
    EXPECT_STR(c.token, "t");
}

TEST(any_other_answer_is_refused_and_not_quoted)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        { "", "printed nothing" },
        { " \n", "printed nothing" },
        { "hunter2: [", "not JSON at line 1" },
        { "hunter2", "did not print an ExecCredential" },
        { "[]", "did not print an ExecCredential" },
        { "{}", "did not print an ExecCredential" },
        { "{\"kind\":\"Secret\"}", "did not print an ExecCredential" },
        { "{\"kind\":\"ExecCredential\",\"apiVersion\":\"x/v9\"}",
          "answered in apiVersion \"x/v9\"" },
        { "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\"}", "without a status" },
        { ANSWER("{}"), "neither a token nor" },
        { ANSWER("{\"token\":\"\"}"), "neither a token nor" },
        { ANSWER("{\"token\":[\"hunter2\"]}"), "status.token is not a string" },
        { ANSWER("{\"token\":\"hunter2\\nX: y\"}"), "characters that no token has" },
        { ANSWER("{\"clientCertificateData\":\"hunter2\"}"), "not both" },
        { ANSWER("{\"token\":\"t\",\"clientKeyData\":\"hunter2\"}"), "not both" },
        { ANSWER("{\"token\":\"hunter2\",\"expirationTimestamp\":\"soon\"}"), "is no time" },
        { ANSWER("{\"token\":\"hunter2\",\"expirationTimestamp\":5}"), "is no time" },
        { ANSWER("{\"token\":\"t\"}") ANSWER("{\"token\":\"t\"}"), "2 documents" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO_ARENA arena = { 0 };
        struct exec_credential c;
        struct err err = { 0 };
        EXPECT_ERR(decode(cases[i].text, &arena, &c, &err), err, ERR_INVALID);
        EXPECT_HAS(str_of(err.text), cases[i].want);
        EXPECT_FALSE(str_has(str_of(err.text), "hunter2"));
    }
}

TEST(a_plugin_is_told_of_the_cluster_if_it_wants_to_know)
{
    const struct exec_cluster cluster = {
        .server = STR("https://h/p"),
        .ca_pem = STR("PEM"),
        .tls_server_name = STR("inner"),
        .proxy = STR("http://p"),
        .compression_off = true,
        .config = STR("{\"audience\":\"x\"}"),
    };
    struct exec_plugin plugin = { .api_version = STR(V1) };
    AUTO_BUF info = { 0 };
    exec_credential_info(&plugin, &cluster, true, &info);
    EXPECT_STR(buf_str(&info), "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1
                               "\",\"spec\":{\"interactive\":true}}");
    buf_clear(&info);
    plugin.provide_cluster_info = true;
    exec_credential_info(&plugin, &cluster, false, &info);
    EXPECT_STR(buf_str(&info),
               "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1
               "\",\"spec\":{\"cluster\":{\"server\":\"https://h/p\",\"tls-server-name\":\"inner\","
               "\"certificate-authority-data\":\"UEVN\",\"proxy-url\":\"http://p\","
               "\"disable-compression\":true,\"config\":{\"audience\":\"x\"}},"
               "\"interactive\":false}}");
    buf_clear(&info);
    exec_credential_info(&plugin, &(struct exec_cluster){ .server = STR("s"), .insecure = true },
                         false, &info);
    EXPECT_STR(buf_str(&info), "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1
                               "\",\"spec\":{\"cluster\":{\"server\":\"s\","
                               "\"insecure-skip-tls-verify\":true,\"config\":null},"
                               "\"interactive\":false}}");
}

/* --- running one --- */

/* The script as the plugin "p" of the folder. */
static int run_script(struct home *h, struct arena *arena, const char *script,
                      struct exec_plugin plugin, struct exec_credential *out, struct err *err)
{
    home_write_plugin(h, arena, "p", script);
    if (plugin.command.len == 0)
        plugin.command = arena_strf(arena, "%s/p", h->path);
    plugin.api_version = STR(V1);
    if (plugin.interactive_mode.len == 0)
        plugin.interactive_mode = STR("Never");
    return exec_credential_get(&plugin, &(struct exec_cluster){ .server = STR("https://s") },
                               virtual_clock_port(h->time), arena, out, err);
}

TEST(a_plugin_gets_its_arguments_and_environment_and_nothing_to_read)
{
    AUTO(home) h = home_new();
    AUTO_ARENA arena = { 0 };
    struct exec_credential c;
    struct err err = { 0 };
    setenv("KARVE_TEST_OURS", "ours", 1);
    setenv("KARVE_TEST_BOTH", "ours", 1);
    const struct str args[] = { STR("get-token"), STR("a b; $HOME"), STR("") };
    const struct exec_env env[] = {
        { STR("KARVE_TEST_BOTH"), STR("first") },
        { STR("KARVE_TEST_BOTH"), STR("plugin's") },
        { STR("KARVE_TEST_NEW"), STR("") },
    };
    EXPECT_OK(
        run_script(h, &arena,
                   "#!/bin/sh\n"
                   "printf '<%s>' \"$#\" \"$@\" \"$KARVE_TEST_OURS\" \"$KARVE_TEST_BOTH\" "
                   "\"${KARVE_TEST_NEW-unset}\" \"$KUBERNETES_EXEC_INFO\" > $/seen\n"
                   "env | grep -c KARVE_TEST_BOTH >> $/seen\n"
                   "cat >> $/seen\n"
                   "echo '" ANSWER("{\"token\":\"t\"}") "'\n",
                   (struct exec_plugin){ .args = args, .arg_count = 3, .env = env, .env_count = 3 },
                   &c, &err),
        err);
    EXPECT_STR(c.token, "t");
    EXPECT_STR(home_read(h, &arena, "seen"), "<3><get-token><a b; $HOME><><ours><plugin's><>"
                                             "<{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1
                                             "\",\"spec\":{\"interactive\":false}}>1\n");
}

TEST(a_plugin_has_the_signals_and_descriptors_of_a_fresh_process)
{
    AUTO(home) h = home_new();
    AUTO_ARENA arena = { 0 };
    struct exec_credential c;
    struct err err = { 0 };
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    struct sigaction ignore = { .sa_handler = SIG_IGN }, old;
    sigaction(SIGUSR1, &ignore, &old);
    int rc = run_script(h, &arena,
                        "#!/bin/sh\n"
                        "grep -E '^Sig(Blk|Ign)' /proc/self/status > $/seen\n"
                        "ls -l /proc/$$/fd | grep -c memfd >> $/seen\n"
                        "echo '" ANSWER("{\"token\":\"t\"}") "'\n",
                        (struct exec_plugin){ 0 }, &c, &err);
    sigaction(SIGUSR1, &old, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    EXPECT_OK(rc, err);
    unsigned long long blocked, ignored;
    int memory_files;
    EXPECT_EQ(sscanf(home_read(h, &arena, "seen").p, "SigBlk: %llx SigIgn: %llx %d", &blocked,
                     &ignored, &memory_files),
              3);
    EXPECT_EQ(blocked, 0);
    EXPECT_EQ(ignored & (1ULL << (SIGUSR1 - 1)), 0);
    EXPECT_EQ(memory_files, 0); /* our log */
}

TEST(a_plugin_without_a_slash_is_looked_for_in_path_but_not_where_we_are)
{
    AUTO(home) h = home_new();
    AUTO_ARENA arena = { 0 };
    struct exec_credential c;
    struct err err = { 0 };
    AUTO_FREE char *path = kv_strdup(getenv("PATH"));
    AUTO_FREE char *here = getcwd(NULL, 0);
    const char *script = "#!/bin/sh\necho '" ANSWER("{\"token\":\"t\"}") "'\n";
    struct exec_plugin plugin = { .command = STR("p"), .install_hint = STR("get it\tfrom x") };

    setenv("PATH", arena_strf(&arena, "/nowhere:%s:%s", h->path, path).p, 1);
    EXPECT_OK(run_script(h, &arena, script, plugin, &c, &err), err);

    setenv("PATH", ".::/nowhere", 1);
    EXPECT_EQ(chdir(h->path), 0);
    int rc = run_script(h, &arena, script, plugin, &c, &err);
    EXPECT_EQ(chdir(here), 0);
    setenv("PATH", path, 1);
    EXPECT_ERR(rc, err, ERR_INVALID);
    EXPECT_Z(err.text, "exec plugin \"p\" not found in PATH. \"get it\\tfrom x\"");
}

TEST(a_plugin_that_cannot_be_run_is_an_error_that_says_why)
{
    static const struct {
        const char *script, *command, *want;
    } cases[] = {
        { "", "/nowhere/p", "exec plugin \"/nowhere/p\" not found" },
        { "#!/nowhere/sh\n", NULL, "not found" },
        { "echo no shebang\n", NULL, "neither a program nor a script" },
        { "", "/etc/passwd", "cannot be run: Permission denied" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO(home) h = home_new();
        AUTO_ARENA arena = { 0 };
        struct exec_credential c;
        struct err err = { 0 };
        EXPECT_ERR(run_script(h, &arena, cases[i].script,
                              (struct exec_plugin){ .command = str_of(cases[i].command) }, &c,
                              &err),
                   err, ERR_INVALID);
        EXPECT_HAS(str_of(err.text), cases[i].want);
    }
}

TEST(a_plugin_that_fails_is_quoted_at_its_end_without_secrets)
{
    static const struct {
        const char *script;
        enum err_kind kind;
        const char *want;
    } cases[] = {
        { "#!/bin/sh\nexit 3\n", ERR_UNAVAILABLE, "failed with exit code 3" },
        { "#!/bin/sh\nkill -9 $$\n", ERR_UNAVAILABLE, "died of signal 9" },
        { "#!/bin/sh\nprintf 'login \\033[1mexpired\\n' >&2\nexit 1\n", ERR_UNAVAILABLE,
          "failed with exit code 1; it said \"login \\u001b[1mexpired\"" },
        { "#!/bin/sh\nfor i in $(seq 3000); do echo line $i >&2; done\nexit 1\n", ERR_UNAVAILABLE,
          "line 2999\\nline 3000\"" },
        { "#!/bin/sh\necho 'no: {\"token\": \"hunter2\"}, password=hunter2' >&2\nexit 1\n",
          ERR_UNAVAILABLE, "[redacted]" },
        { "#!/bin/sh\nprintf 'Bearer hunter2' >&2; head -c 5000 /dev/zero | tr '\\0' h >&2\nexit 1\n",
          ERR_UNAVAILABLE, "exit code 1" },
        { "#!/bin/sh\necho hunter2\n", ERR_INVALID, "did not print an ExecCredential" },
        { "#!/bin/sh\necho hunter2; echo complaint >&2\n", ERR_INVALID,
          "did not print an ExecCredential" },
        { "#!/bin/sh\nexec cat /dev/zero\n", ERR_INVALID, "printed more than 1048576 bytes" },
        { "#!/bin/sh\nhead -c 2000000 /dev/zero\n", ERR_INVALID, "printed more than" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO(home) h = home_new();
        AUTO_ARENA arena = { 0 };
        struct exec_credential c;
        struct err err = { 0 };
        EXPECT_ERR(run_script(h, &arena, cases[i].script, (struct exec_plugin){ 0 }, &c, &err), err,
                   cases[i].kind);
        EXPECT_HAS(str_of(err.text), cases[i].want);
        EXPECT_FALSE(str_has(str_of(err.text), "hunter2"));
    }
}

TEST(a_helper_that_a_plugin_leaves_behind_is_not_waited_for)
{
    AUTO(home) h = home_new();
    AUTO_ARENA arena = { 0 };
    struct exec_credential c;
    struct err err = { 0 };
    EXPECT_OK(run_script(h, &arena,
                         "#!/bin/sh\nsleep 1000 &\necho $! > $/helper\n"
                         "yes >&2 &\necho $! > $/noisy\n"
                         "echo '" ANSWER("{\"token\":\"t\"}") "'\n",
                         (struct exec_plugin){ 0 }, &c, &err),
              err);
    EXPECT_STR(c.token, "t");
    pid_t helper = (pid_t)atoi(home_read(h, &arena, "helper").p);
    EXPECT_EQ(kill(helper, 0), 0);
    kill(helper, SIGKILL);
    kill((pid_t)atoi(home_read(h, &arena, "noisy").p), SIGKILL);
}

struct hanging {
    struct home *home;
    struct arena arena;
    struct err err;
    int rc;
};

static void *run_hanging(void *arg)
{
    struct hanging *h = arg;
    struct exec_credential c;
    h->rc = run_script(h->home, &h->arena,
                       "#!/bin/sh\ntrap '' TERM\nsleep 1000 &\necho $! > $/child.new\n"
                       "mv $/child.new $/child\necho waiting >&2\nwait\n",
                       (struct exec_plugin){ 0 }, &c, &h->err);
    return NULL;
}

static bool is_running(pid_t pid)
{
    AUTO_BUF path = { 0 };
    AUTO_BUF text = { 0 };
    buf_addf(&path, "/proc/%d/stat", (int)pid);
    return file_read(path.p, 1 << 16, &text, NULL) == 0 && !strstr(text.p, ") Z");
}

TEST(a_plugin_that_hangs_is_killed_with_its_children_after_a_minute)
{
    AUTO(home) h = home_new();
    AUTO_ARENA arena = { 0 };
    struct err err = { 0 };
    struct hanging hanging = { .home = h };
    pthread_t thread;
    EXPECT_OK(thread_start(&thread, "hanging", run_hanging, &hanging, &err), err);
    while (home_read(h, &arena, "child").len == 0)
        usleep(1000);
    pid_t child = (pid_t)atoi(home_read(h, &arena, "child").p);
    virtual_clock_advance(h->time, EXEC_TIMEOUT_NS - 1);
    usleep(30000);
    EXPECT_TRUE(is_running(child));
    virtual_clock_advance(h->time, 1);
    pthread_join(thread, NULL);
    arena_done(&hanging.arena);
    EXPECT_ERR(hanging.rc, hanging.err, ERR_UNAVAILABLE);
    EXPECT_HAS(str_of(hanging.err.text), "was killed: not done after 60 seconds; it said");
    for (int i = 0; i < 30000 && is_running(child); i++)
        usleep(1000);
    EXPECT_FALSE(is_running(child));
}

TEST(a_plugin_that_must_ask_a_person_needs_a_terminal)
{
    AUTO(home) h = home_new();
    AUTO_ARENA arena = { 0 };
    struct exec_credential c;
    struct err err = { 0 };
    int saved = dup(STDIN_FILENO), nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    dup2(nothing, STDIN_FILENO);
    const char *script = "#!/bin/sh\necho '" ANSWER("{\"token\":\"t\"}") "'\n";
    int always = run_script(h, &arena, script,
                            (struct exec_plugin){ .interactive_mode = STR("Always") }, &c, &err);
    int maybe =
        run_script(h, &arena, script,
                   (struct exec_plugin){ .interactive_mode = STR("IfAvailable") }, &c, NULL);
    dup2(saved, STDIN_FILENO);
    close(saved);
    close(nothing);
    EXPECT_ERR(always, err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), "not a terminal");
    EXPECT_EQ(maybe, 0);
}

TEST(a_person_at_a_terminal_can_answer_a_plugin)
{
    AUTO(home) h = home_new();
    AUTO_ARENA arena = { 0 };
    struct exec_credential c;
    struct err err = { 0 };
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0)
        SKIP("no pseudo terminals here");
    int terminal = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    int saved = dup(STDIN_FILENO);
    dup2(terminal, STDIN_FILENO);
    EXPECT_EQ(write(master, "secret\n", 7), 7);
    int rc = run_script(h, &arena,
                        "#!/bin/sh\nread answer\n"
                        "echo '" ANSWER("{\"token\":\"'$answer'\"}") "'\n",
                        (struct exec_plugin){ .interactive_mode = STR("IfAvailable") }, &c, &err);
    dup2(saved, STDIN_FILENO);
    close(saved);
    close(terminal);
    close(master);
    EXPECT_OK(rc, err);
    EXPECT_STR(c.token, "secret");
}

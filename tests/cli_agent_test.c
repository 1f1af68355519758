/* karve agent, karve pods and karve events, as users meet them: a real agent process on a container runtime
 * that is in memory. In real time, so these tests take seconds. */
#include "cli_testing.h"

#include "node/fake_cri_testing.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

struct rig {
    char dir[64], socket[96];
    struct fake_cri *fake;
    pid_t agent;
};

/* --- processes --- */

/* `karve ARGUMENTS` in the background. Output goes to files of the folder, or to a terminal. */
static pid_t start(struct rig *rig, const char *arguments, const char *out_name, int terminal)
{
    AUTO_BUF command = { 0 }, out = { 0 }, err = { 0 };
    buf_addf(&command, "exec \"$KARVE\" %s", arguments);
    buf_addf(&out, "%s/%s.out", rig->dir, out_name);
    buf_addf(&err, "%s/%s.err", rig->dir, out_name);
    pid_t child = fork();
    if (child == 0) {
        setenv("KARVE", "build/karve", 0);
        setenv("KARVE_SOCKET", rig->socket, 1);
        setenv("TERM", "xterm", 1);
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* also when a test fails */
        setsid();                         /* a terminal that is opened now is its own */
        int fd = terminal >= 0 ? open(ptsname(terminal), O_RDWR)
                               : open(out.p, O_WRONLY | O_CREAT | O_APPEND, 0600);
        int err_fd = open(err.p, O_WRONLY | O_CREAT | O_APPEND, 0600);
        dup2(fd, 1);
        dup2(err_fd, 2);
        execl("/bin/sh", "sh", "-c", command.p, (char *)NULL);
        _exit(127);
    }
    return child;
}

/* Its exit code; -1: ended by a signal. */
static int end_of(pid_t child)
{
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int end(pid_t child, int number)
{
    EXPECT_EQ(kill(child, number), 0);
    return end_of(child);
}

static void nap(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
}

/* A minute is for a machine under sanitizers and load. */
#define WAIT_FOR(cond)                                                                             \
    do {                                                                                           \
        time_t wait_until_ = time(NULL) + 60;                                                      \
        while (!(cond)) {                                                                          \
            if (time(NULL) > wait_until_)                                                          \
                fail_msg("waited in vain for %s", #cond);                                          \
            nap();                                                                                 \
        }                                                                                          \
    } while (0)

/* How often the words are in a file of the folder. */
static int count_in(struct rig *rig, const char *name, const char *words)
{
    AUTO_BUF path = { 0 }, text = { 0 };
    struct err err;
    int count = 0;
    buf_addf(&path, "%s/%s", rig->dir, name);
    if (file_read(path.p, 1 << 20, &text, &err) < 0 || !text.len)
        return 0;
    for (const char *at = text.p; (at = strstr(at, words)) != NULL; at++)
        count++;
    return count;
}

/* --- the rig --- */

static struct result ask(struct rig *rig, const char *arguments)
{
    setenv("KARVE_SOCKET", rig->socket, 1);
    return karve(arguments);
}

static bool says(struct rig *rig, const char *arguments, const char *words)
{
    AUTO_RESULT r = ask(rig, arguments);
    return r.out.len && strstr(r.out.p, words) != NULL;
}

static void start_agent(struct rig *rig, const char *more)
{
    AUTO_BUF arguments = { 0 };
    buf_addf(&arguments,
             "agent --runtime-endpoint %s --listen %s --node-name node-1 --relist-period 100ms "
             "--root-dir %s/root --pod-logs-dir %s/logs --container-logs-dir %s/links %s",
             fake_cri_endpoint(rig->fake), rig->socket, rig->dir, rig->dir, rig->dir, more);
    rig->agent = start(rig, arguments.p, "agent", -1);
    WAIT_FOR(says(rig, "pods -o json", "\"node\""));
}

static void rig_open(struct rig *rig)
{
    *rig = (struct rig){ .dir = "/tmp/karve-cli-XXXXXX", .agent = -1 };
    EXPECT_TRUE(mkdtemp(rig->dir) != NULL);
    snprintf(rig->socket, sizeof rig->socket, "unix://%s/agent.sock", rig->dir);
    /* Back-off counts from when a container ended. */
    int64_t now_ns = (int64_t)time(NULL) * 1000000000;
    rig->fake = fake_cri_new((struct fake_cri_options){ .start_ns = now_ns });
}

static int remove_one(const char *path, const struct stat *st KV_UNUSED, int flag KV_UNUSED,
                      struct FTW *ftw KV_UNUSED)
{
    return remove(path);
}

static void rig_close(struct rig *rig)
{
    if (rig->agent > 0)
        EXPECT_EQ(end(rig->agent, SIGTERM), 0);
    fake_cri_free(rig->fake);
    nftw(rig->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    unsetenv("KARVE_SOCKET");
}

static void write_manifest(struct rig *rig, const char *name, const char *text)
{
    AUTO_BUF folder = { 0 }, path = { 0 };
    buf_addf(&folder, "%s/manifests", rig->dir);
    mkdir(folder.p, 0755);
    buf_addf(&path, "%s/%s", folder.p, name);
    FILE *file = fopen(path.p, "w");
    EXPECT_TRUE(file != NULL);
    fputs(text, file);
    EXPECT_EQ(fclose(file), 0);
}

/* A pod "web" with a container "main" that runs. Gives the container's id. */
static const char *add_web(struct rig *rig)
{
    const char *sandbox = fake_cri_sandbox(rig->fake, "uid-web", "web", 0);
    const char *id = fake_cri_container(rig->fake, sandbox, "main", 0);
    fake_cri_start(rig->fake, id);
    return id;
}

/* --- usage --- */

TEST(mistakes_on_the_command_line_are_usage_errors)
{
    static const struct {
        const char *arguments, *says;
    } cases[] = {
        { "agent x", "unexpected argument" },
        { "agent --listen tcp://127.0.0.1:80", "expected unix:// and an absolute path" },
        { "agent --listen agent.sock", "expected unix:// and an absolute path" },
        { "agent --runtime-endpoint tcp://127.0.0.1:80", "tcp://127.0.0.1:80" },
        { "agent --relist-period soon", "--relist-period" },
        { "agent --relist-period 0s", "--relist-period" },
        { "agent --backoff-max -1s", "--backoff-max" },
        { "agent --metrics-port 65536", "expected a port, or 0 for none" },
        { "agent --metrics-port http", "--metrics-port" },
        { "agent --manifests /tmp", "--manifests needs --run-pods" },
        { "agent --kubeconfig /tmp/absent", "--kubeconfig needs --run-pods" },
        { "agent --run-pods --context x --max-pods 0", "--max-pods" },
        { "agent --run-pods --context x --node-ip here", "--node-ip" },
        { "agent --run-pods --context x --node-ip 192.0.2.1,192.0.2.2", "one of each family" },
        { "agent --log-level loud", "not one of" },
        { "pods --socket tcp://127.0.0.1:80", "expected unix:// and an absolute path" },
        { "pods --socket ''", "expected unix:// and an absolute path" },
        { "pods -o yaml", "'yaml' is not one of table, wide, json" },
        { "pods --wach", "did you mean --watch?" },
        { "events web", "a pod is named with --for" },
        { "events -o wide", "'wide' is not one of table, json" },
        { "events --socket agent.sock", "expected unix:// and an absolute path" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO_RESULT r = karve(cases[i].arguments);
        printf("# %s\n", cases[i].arguments);
        EXPECT_EQ(r.code, 2);
        EXPECT_HAS(buf_str(&r.err), cases[i].says);
        EXPECT_EQ(r.out.len, 0);
    }
}

TEST(without_an_agent_every_question_says_so_and_exits_3)
{
    static const char *const questions[] = { "pods",   "pods -w",   "pods -o json",  "pods x",
                                             "events", "events -w", "events -o json" };
    for (size_t i = 0; i < KV_COUNT_OF(questions); i++) {
        AUTO_BUF arguments = { 0 };
        buf_addf(&arguments, "%s --socket /nonexistent/agent.sock", questions[i]);
        AUTO_RESULT r = karve(arguments.p);
        EXPECT_EQ(r.code, 3);
        EXPECT_EQ(r.out.len, 0);
        EXPECT_HAS(buf_str(&r.err), "no agent answers at /nonexistent/agent.sock: is `karve agent` "
                                    "running here?");
    }
}

TEST(a_runtime_that_is_not_there_yet_is_waited_for)
{
    struct rig rig;
    rig_open(&rig);
    fake_cri_down(rig.fake);
    start_agent(&rig, "");
    AUTO_RESULT none = ask(&rig, "pods");
    EXPECT_EQ(none.code, 0);
    EXPECT_HAS(buf_str(&none.err), "no pods run here");
    fake_cri_up(rig.fake);
    add_web(&rig);
    WAIT_FOR(says(&rig, "pods", "web"));
    rig_close(&rig);
}

/* --- the socket --- */

TEST(the_socket_is_for_its_user_alone)
{
    struct rig rig;
    struct stat st;
    rig_open(&rig);
    start_agent(&rig, "");
    EXPECT_EQ(stat(rig.socket + strlen("unix://"), &st), 0);
    EXPECT_TRUE(S_ISSOCK(st.st_mode));
    EXPECT_EQ(st.st_mode & 0777, 0600);
    EXPECT_EQ(chmod(rig.dir, 0755), 0);
    AUTO_RESULT able = sh("setpriv --reuid 65534 --clear-groups \"$KARVE\" version", STR(""));
    if (able.code == 0) { /* we are root, and others may run the program */
        AUTO_RESULT r =
            sh("setpriv --reuid 65534 --clear-groups \"$KARVE\" pods; echo $?", STR(""));
        EXPECT_STR(buf_str(&r.out), "3\n");
        EXPECT_HAS(buf_str(&r.err), "only root may read it");
    }
    rig_close(&rig);
}

TEST(one_agent_has_the_socket_and_one_that_was_killed_leaves_it_to_the_next)
{
    struct rig rig;
    rig_open(&rig);
    start_agent(&rig, "");
    AUTO_BUF arguments = { 0 };
    buf_addf(&arguments, "agent --runtime-endpoint %s --listen %s", fake_cri_endpoint(rig.fake),
             rig.socket);
    AUTO_RESULT second = karve(arguments.p);
    EXPECT_EQ(second.code, 3);
    EXPECT_HAS(buf_str(&second.err), "agent.sock");

    EXPECT_EQ(end(rig.agent, SIGKILL), -1);
    EXPECT_EQ(access(rig.socket + strlen("unix://"), F_OK), 0); /* nobody is behind it */
    AUTO_RESULT stale = ask(&rig, "pods");
    EXPECT_EQ(stale.code, 3);
    EXPECT_HAS(buf_str(&stale.err), "no agent answers");
    start_agent(&rig, "");
    EXPECT_EQ(end(rig.agent, SIGTERM), 0);
    EXPECT_TRUE(access(rig.socket + strlen("unix://"), F_OK) < 0); /* an end in good order */
    rig.agent = -1;
    rig_close(&rig);
}

TEST(the_local_api_answers_any_http_client)
{
    if (system("command -v curl >/dev/null") != 0)
        SKIP("curl is not installed");
    struct rig rig;
    rig_open(&rig);
    fake_cri_exit(rig.fake, add_web(&rig), 3);
    start_agent(&rig, "");
    WAIT_FOR(says(&rig, "events", "ContainerDied"));
    AUTO_RESULT r = sh(
        "get() { curl -s -w '%{http_code}\\n' --unix-socket ${KARVE_SOCKET#unix://} http://l$1; }\n"
        "get /healthz\n"
        "get '/events?since=x'; get '/events?follow=no'; get '/events?since=1&follow=false' | tail -1\n"
        "get /pods/uid-none; get '/pods/uid-web?newerThan=x'; get '/pods/uid-web' | grep -c '\"exited\"'\n"
        "get /metrics | grep -c '^kubelet_pleg_relist_duration_seconds_count'; get /nothing | tail -1\n",
        STR(""));
    EXPECT_STR(buf_str(&r.out), "ok\n200\n"
                                "since: expected the `number` of an event, or 0\n400\n"
                                "follow: expected true or false\n400\n200\n"
                                "no pod with uid \"uid-none\"\n404\n"
                                "newerThan: expected a `time` that an earlier answer gave\n400\n1\n"
                                "1\n404\n");
    rig_close(&rig);
}

/* A port that nobody has now, and that the kernel gives to no connection by itself. */
static uint16_t free_port(void)
{
    for (unsigned i = 0; i < 12000; i++) {
        uint16_t port = (uint16_t)(20000 + ((unsigned)getpid() * 7 + i) % 12000);
        struct sockaddr_in address = { .sin_family = AF_INET,
                                       .sin_port = htons(port),
                                       .sin_addr = { htonl(INADDR_LOOPBACK) } };
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int rc = bind(fd, (struct sockaddr *)&address, sizeof address);
        close(fd);
        if (rc == 0)
            return port;
    }
    fail_msg("no port is free");
    return 0;
}

TEST(metrics_and_health_and_nothing_else_are_served_on_a_port_if_asked_for)
{
    if (system("command -v curl >/dev/null") != 0)
        SKIP("curl is not installed");
    struct rig rig;
    rig_open(&rig);
    char flags[64], script[512];
    uint16_t port = free_port();
    snprintf(flags, sizeof flags, "--metrics-port %u", port);
    add_web(&rig);
    start_agent(&rig, flags);
    WAIT_FOR(says(&rig, "pods", "web")); /* a listing has worked: it is healthy */
    snprintf(script, sizeof script,
             "get() { curl -s --noproxy '*' -w '%%{http_code}\\n' http://127.0.0.1:%u$1; }\n"
             "get /healthz\n"
             "get /metrics | grep -c '^kubelet_pleg_relist_duration_seconds_count'\n"
             "get /pods | tail -1; get /events | tail -1\n",
             port);
    AUTO_RESULT r = sh(script, STR(""));
    EXPECT_STR(buf_str(&r.out), "ok\n200\n1\n404\n404\n");

    AUTO_BUF second = { 0 }; /* the port is in use: it says so, and ends */
    buf_addf(&second, "agent --runtime-endpoint %s --listen unix://%s/second.sock %s",
             fake_cri_endpoint(rig.fake), rig.dir, flags);
    AUTO_RESULT refused = karve(second.p);
    EXPECT_EQ(refused.code, 3);
    EXPECT_HAS(buf_str(&refused.err), "in use");
    rig_close(&rig);
}

/* --- pods --- */

TEST(pods_are_shown_as_a_table_wide_and_as_json)
{
    struct rig rig;
    rig_open(&rig);
    const char *id = add_web(&rig);
    fake_cri_sandbox(rig.fake, "uid-b", "empty", 0);
    start_agent(&rig, "");
    WAIT_FOR(says(&rig, "pods", "Running") && says(&rig, "pods", "empty"));
    AUTO_RESULT table = ask(&rig, "pods");
    EXPECT_EQ(table.code, 0);
    EXPECT_STR(buf_str(&table.err), "");
    EXPECT_HAS(buf_str(&table.out), "NAMESPACE  NAME   READY  STATUS             RESTARTS  AGE");
    EXPECT_HAS(buf_str(&table.out), "default    empty  0/0    ContainerCreating  0 ");
    EXPECT_HAS(buf_str(&table.out), "default    web    1/1    Running            0 ");
    EXPECT_TRUE(strchr(table.out.p, '\033') == NULL);

    fake_cri_oom(rig.fake, id);
    WAIT_FOR(says(&rig, "pods", "OOMKilled"));
    AUTO_RESULT wide = ask(&rig, "pods -o wide web");
    EXPECT_HAS(buf_str(&wide.out), "main=exited(137,OOMKilled)  main exited 137 (");
    EXPECT_HAS(buf_str(&wide.out), "node-1");

    AUTO_RESULT json = ask(&rig, "pods -o json default/web");
    struct doc doc;
    struct err err;
    EXPECT_OK(json_read(buf_str(&json.out), &doc, &err), err);
    EXPECT_STR(json_str(json_get(doc.root, STR("node"))), "node-1");
    EXPECT_EQ(json_count(json_get(doc.root, STR("pods"))), 1);
    const json_val *pod = json_at(json_get(doc.root, STR("pods")), 0);
    EXPECT_STR(json_str(json_get(pod, STR("uid"))), "uid-web");
    const json_val *container = json_at(json_get(pod, STR("containers")), 0);
    EXPECT_STR(json_str(json_get(container, STR("reason"))), "OOMKilled");
    doc_done(&doc);
    rig_close(&rig);
}

TEST(a_pod_that_was_named_and_is_not_here_is_the_answer_no)
{
    struct rig rig;
    rig_open(&rig);
    add_web(&rig);
    start_agent(&rig, "");
    WAIT_FOR(says(&rig, "pods", "web"));
    static const char *const found[] = { "pods web", "pods default/web", "pods uid-web" };
    for (size_t i = 0; i < KV_COUNT_OF(found); i++) {
        AUTO_RESULT r = ask(&rig, found[i]);
        EXPECT_EQ(r.code, 0);
        EXPECT_HAS(buf_str(&r.out), "web");
    }
    static const char *const missed[] = { "pods other/web", "pods web nothing", "pods -o json we" };
    for (size_t i = 0; i < KV_COUNT_OF(missed); i++) {
        AUTO_RESULT r = ask(&rig, missed[i]);
        EXPECT_EQ(r.code, 1);
        EXPECT_HAS(buf_str(&r.err), "no pod \"");
    }
    rig_close(&rig);
}

TEST(what_a_terminal_would_obey_is_not_printed)
{
    struct rig rig;
    rig_open(&rig);
    fake_cri_sandbox(rig.fake, "uid-evil", "evil\033[2Jname", 0);
    start_agent(&rig, "");
    WAIT_FOR(says(&rig, "pods", "evil?[2Jname"));
    AUTO_RESULT events = ask(&rig, "events");
    EXPECT_HAS(buf_str(&events.out), "default/evil?[2Jname");
    EXPECT_TRUE(strchr(events.out.p, '\033') == NULL);
    AUTO_RESULT json = ask(&rig, "pods -o json");
    EXPECT_TRUE(strchr(json.out.p, '\033') == NULL);
    rig_close(&rig);
}

TEST(static_pods_are_run_and_their_status_is_the_apis)
{
    struct rig rig;
    rig_open(&rig);
    fake_cri_add_image(rig.fake, "web:1");
    fake_cri_exits_at_once(rig.fake, "bad", 3);
    write_manifest(
        &rig, "web.yaml",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {hostNetwork: true, "
        "terminationGracePeriodSeconds: 1, containers: [{name: main, image: 'web:1'}]}\n");
    write_manifest(&rig, "bad.yaml",
                   "apiVersion: v1\nkind: Pod\nmetadata: {name: bad, namespace: shop}\nspec: "
                   "{hostNetwork: true, containers: [{name: bad, image: 'web:1'}]}\n");
    AUTO_BUF more = { 0 };
    buf_addf(&more, "--run-pods --manifests %s/manifests --backoff-initial 5m", rig.dir);
    start_agent(&rig, more.p);
    WAIT_FOR(says(&rig, "pods", "web-node-1  1/1    Running"));
    WAIT_FOR(says(&rig, "pods", "bad-node-1  0/1    CrashLoopBackOff  1 ("));
    AUTO_RESULT wide = ask(&rig, "pods -o wide shop/bad-node-1");
    EXPECT_HAS(buf_str(&wide.out), "Syncing  bad=waiting(CrashLoopBackOff)  bad exited 3 (");
    EXPECT_HAS(buf_str(&wide.out), "restarting failed container=bad");
    AUTO_RESULT json = ask(&rig, "pods -o json shop/bad-node-1");
    EXPECT_HAS(buf_str(&json.out), "\"restartCount\": 1");
    EXPECT_HAS(buf_str(&json.out), "\"phase\": \"Running\"");

    pid_t watch = start(&rig, "pods -w web-node-1", "watch", -1);
    WAIT_FOR(count_in(&rig, "watch.out", "Running"));
    AUTO_BUF manifest = { 0 };
    buf_addf(&manifest, "%s/manifests/web.yaml", rig.dir);
    EXPECT_EQ(unlink(manifest.p), 0);
    WAIT_FOR(count_in(&rig, "watch.out", "Removed"));
    EXPECT_EQ(end(watch, SIGTERM), 0);
    rig_close(&rig);
}

/* --- pods, watched --- */

TEST(watched_elsewhere_than_on_a_terminal_a_pod_has_a_line_when_it_changes)
{
    struct rig rig;
    rig_open(&rig);
    const char *id = add_web(&rig);
    start_agent(&rig, "");
    WAIT_FOR(says(&rig, "pods", "Running"));
    pid_t table = start(&rig, "pods -w", "table", -1);
    pid_t json = start(&rig, "pods -w -o json", "json", -1);
    WAIT_FOR(count_in(&rig, "table.out", "web"));
    WAIT_FOR(count_in(&rig, "json.out", "\"type\":\"ADDED\""));
    fake_cri_exit(rig.fake, id, 7);
    WAIT_FOR(count_in(&rig, "table.out", "Error"));
    WAIT_FOR(count_in(&rig, "json.out", "\"type\":\"MODIFIED\""));
    fake_cri_sandbox(rig.fake, "uid-b", "other", 0);
    WAIT_FOR(count_in(&rig, "table.out", "other"));
    fake_cri_remove(rig.fake, fake_cri_find(rig.fake, "uid-web", NULL).id);
    WAIT_FOR(count_in(&rig, "table.out", "Removed"));
    WAIT_FOR(count_in(&rig, "json.out", "\"type\":\"DELETED\""));
    EXPECT_EQ(end(table, SIGINT), 0);
    EXPECT_EQ(end(json, SIGINT), 0);
    EXPECT_EQ(count_in(&rig, "table.out", "NAMESPACE"), 1);
    EXPECT_EQ(count_in(&rig, "table.out", "other"), 1);
    EXPECT_EQ(count_in(&rig, "table.out", "web "), 3);
    EXPECT_EQ(count_in(&rig, "table.out", "\033"), 0);
    rig_close(&rig);
}

/* What the terminal has been told so far. */
static bool terminal_has(int terminal, struct buf *seen, const char *words)
{
    char bytes[4096];
    ssize_t n;
    while ((n = read(terminal, bytes, sizeof bytes)) > 0)
        buf_add(seen, (struct str){ bytes, (size_t)n });
    return seen->len && memmem(seen->p, seen->len, words, strlen(words)) != NULL;
}

static int open_terminal(void)
{
    int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
    EXPECT_TRUE(terminal >= 0);
    EXPECT_EQ(grantpt(terminal), 0);
    EXPECT_EQ(unlockpt(terminal), 0);
    return terminal;
}

TEST(on_a_terminal_the_table_is_drawn_over_itself_until_ctrl_c_which_brings_the_cursor_back)
{
    struct rig rig;
    AUTO_BUF seen = { 0 };
    rig_open(&rig);
    const char *id = add_web(&rig);
    start_agent(&rig, "");
    WAIT_FOR(says(&rig, "pods", "Running"));
    int terminal = open_terminal();
    pid_t watch = start(&rig, "pods -w", "watch", terminal);
    WAIT_FOR(terminal_has(terminal, &seen, "Running"));
    EXPECT_TRUE(terminal_has(terminal, &seen, "\033[?25l"));
    fake_cri_exit(rig.fake, id, 1);
    WAIT_FOR(terminal_has(terminal, &seen, "Error"));
    EXPECT_TRUE(terminal_has(terminal, &seen, "\033[4A")); /* over the four lines that it has */
    EXPECT_FALSE(terminal_has(terminal, &seen, "\033[?25h"));

    EXPECT_EQ(end(rig.agent, SIGTERM), 0);
    WAIT_FOR(terminal_has(terminal, &seen, "the agent is gone, waiting for it"));
    start_agent(&rig, "");
    buf_clear(&seen);
    WAIT_FOR(terminal_has(terminal, &seen, "1 on node-1\033[K"));

    EXPECT_EQ(write(terminal, "\003", 1), 1);
    EXPECT_EQ(end_of(watch), 0);
    terminal_has(terminal, &seen, "");
    EXPECT_TRUE(str_ends(buf_str(&seen), STR("\033[?25h\033[0m")));
    EXPECT_EQ(count_in(&rig, "watch.err", "karve"), 0);
    close(terminal);
    rig_close(&rig);
}

/* --- events --- */

TEST(events_that_happened_before_are_shown_and_can_be_of_one_pod)
{
    struct rig rig;
    rig_open(&rig);
    start_agent(&rig, "");
    AUTO_RESULT none = ask(&rig, "events");
    EXPECT_EQ(none.code, 0);
    EXPECT_EQ(none.out.len, 0);
    EXPECT_HAS(buf_str(&none.err), "nothing has happened");

    fake_cri_oom(rig.fake, add_web(&rig));
    fake_cri_sandbox(rig.fake, "uid-b", "other", 0);
    WAIT_FOR(says(&rig, "events", "OOMKilled"));
    WAIT_FOR(says(&rig, "events", "other"));
    AUTO_RESULT table = ask(&rig, "events");
    EXPECT_HAS(buf_str(&table.out), "TIME                      TYPE              POD            "
                                    "CONTAINER  EXIT  REASON\n");
    EXPECT_HAS(buf_str(&table.out), "Z  ContainerStarted  default/web    (sandbox)  -     -\n");
    EXPECT_HAS(buf_str(&table.out),
               "Z  ContainerDied     default/web    main       137   OOMKilled\n");
    static const char *const of_other[] = { "events --for default/other", "events --for uid-b" };
    for (size_t i = 0; i < KV_COUNT_OF(of_other); i++) {
        AUTO_RESULT r = ask(&rig, of_other[i]);
        EXPECT_HAS(buf_str(&r.out), "default/other");
        EXPECT_TRUE(strstr(r.out.p, "web") == NULL);
    }
    AUTO_RESULT json = sh("karve events -o json --for uid-b", STR(""));
    struct doc doc;
    struct err err;
    EXPECT_OK(json_read(str_trim(buf_str(&json.out)), &doc, &err), err); /* one line */
    EXPECT_STR(json_str(json_get(doc.root, STR("type"))), "ContainerStarted");
    doc_done(&doc);
    rig_close(&rig);
}

TEST(watched_events_go_on_when_the_agent_is_restarted_and_none_is_shown_twice)
{
    struct rig rig;
    rig_open(&rig);
    const char *id = add_web(&rig);
    start_agent(&rig, "");
    WAIT_FOR(says(&rig, "events", "main"));
    pid_t watch = start(&rig, "events -w", "watch", -1);
    WAIT_FOR(count_in(&rig, "watch.out", "main") == 1); /* what was before */
    fake_cri_exit(rig.fake, id, 5);
    WAIT_FOR(count_in(&rig, "watch.out", "ContainerDied") == 1);

    EXPECT_EQ(end(rig.agent, SIGTERM), 0);
    WAIT_FOR(count_in(&rig, "watch.err", "the agent is gone; waiting for it") == 1);
    start_agent(&rig, "");
    WAIT_FOR(count_in(&rig, "watch.err", "it is back") == 1);
    /* The new agent tells what it finds, and then what happens. */
    WAIT_FOR(count_in(&rig, "watch.out", "ContainerDied") == 2);
    fake_cri_remove(rig.fake, id);
    WAIT_FOR(count_in(&rig, "watch.out", "ContainerRemoved") == 1);
    EXPECT_EQ(end(watch, SIGINT), 0);
    EXPECT_EQ(count_in(&rig, "watch.out", "TIME"), 1);
    EXPECT_EQ(count_in(&rig, "watch.out", "ContainerDied"), 2);
    EXPECT_EQ(count_in(&rig, "watch.err", "the agent is gone"), 1);
    rig_close(&rig);
}

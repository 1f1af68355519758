/* See fixture.h. The servers belong to kube.sh, which ends them when this program has ended, however
 * it does; our own programs are children that die with it. */
#include "kube/fixture.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define SCRIPT "tests/kube/kube.sh"
#define CANNOT 3 /* its exit status where the programs cannot be had */
#define LOG_BYTES_MAX ((size_t)64 << 20)
#define SHOWN_BYTES 3000 /* of the end of each log */

static struct plane the_plane;
static bool running, has_crds, apiserver_down;
static struct object_pool *pool;
static struct log *quiet_log;
static char frozen[8][32];
static unsigned frozen_count;
static struct {
    pid_t pid; /* 0: free */
    char name[32];
} children[32];

/* --- processes --- */

/* Run it; both outputs are added to `out`. The exit status; -1: it ended otherwise. */
static int run(struct buf *out, const char *const *args)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        fail_msg("pipe: %s", strerror(errno));
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
    pid_t child;
    int failed = posix_spawnp(&child, args[0], &actions, NULL, (char *const *)args, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (failed) {
        close(ends[0]);
        fail_msg("%s: %s (tests run in the root of the source)", args[0], strerror(failed));
    }
    char chunk[4096];
    for (ssize_t n; (n = read(ends[0], chunk, sizeof chunk)) != 0;) {
        if (n > 0)
            buf_add(out, (struct str){ chunk, (size_t)n });
        else if (errno != EINTR)
            break;
    }
    close(ends[0]);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* `maybe_more` ends with NULL. */
static int script(struct buf *out, const char *task, const char *const *maybe_more)
{
    const char *args[32] = { SCRIPT, task, the_plane.dir };
    for (size_t count = 3; maybe_more && *maybe_more; maybe_more++) {
        EXPECT_TRUE(count < KV_COUNT_OF(args) - 1);
        args[count++] = *maybe_more;
    }
    return run(out, args);
}

static void script_must(const char *task, const char *maybe_word)
{
    AUTO_BUF said = { 0 };
    if (script(&said, task, (const char *const[]){ maybe_word, NULL }) != 0)
        fail_msg("%s %s: %.*s", SCRIPT, task, STR_ARG(buf_str(&said)));
}

static void print_comment(struct str text)
{
    for (struct str line, rest = text; rest.len > 0;) {
        if (!str_cut(rest, '\n', &line, &rest)) {
            line = rest;
            rest = STR("");
        }
        printf("# %.*s\n", STR_ARG(line));
    }
}

static const char *karve_path(void)
{
    const char *path = getenv("KARVE");
    return path ? path : "build/karve";
}

/* --- start and end of it all --- */

static void kill_children(struct plane *p)
{
    for (size_t i = 0; i < KV_COUNT_OF(children); i++)
        plane_kill9(p, children[i].pid);
}

static void thaw_all(struct plane *p)
{
    while (frozen_count > 0)
        plane_thaw(p, frozen[frozen_count - 1]);
}

static void plane_end(void)
{
    if (!running)
        return;
    running = false;
    kill_children(&the_plane);
    proxy_free(the_plane.proxy);
    log_free(quiet_log);
    object_pool_free(pool);
    arena_done(&the_plane.arena);
    AUTO_BUF said = { 0 };
    if (script(&said, "stop", NULL) != 0) {
        print_comment(buf_str(&said));
        _exit(1); /* something is left behind: the program fails, whatever its tests said */
    }
}

static void read_environment(struct plane *p)
{
    AUTO_BUF said = { 0 };
    if (script(&said, "env", NULL) != 0)
        fail_msg("%s env: %.*s", SCRIPT, STR_ARG(buf_str(&said)));
    for (struct str line, rest = buf_str(&said); str_cut(rest, '\n', &line, &rest);) {
        struct str key, value;
        int64_t port;
        if (!str_cut(line, '=', &key, &value))
            continue;
        if (str_eqz(key, "SERVER"))
            snprintf(p->server, sizeof p->server, "%.*s", STR_ARG(value));
        if (str_eqz(key, "BIN"))
            snprintf(p->bin, sizeof p->bin, "%.*s", STR_ARG(value));
        if (str_eqz(key, "PORT") && str_to_i64(value, &port))
            p->port = (uint16_t)port;
    }
    EXPECT_TRUE(p->port != 0);
}

/* The script's last line tells why; it outlives this frame, which a skip leaves by a jump. */
static void cannot_start(int status, struct buf *said)
{
    static char why[1024];
    struct str words = str_trim(buf_str(said));
    const char *line = status == CANNOT ? memrchr(words.p, '\n', words.len) : NULL;
    if (line)
        words = str_sub(words, (size_t)(line + 1 - words.p), words.len);
    snprintf(why, sizeof why, "%.*s", STR_ARG(words));
    buf_clear(said);
    script(said, "stop", NULL);
    buf_done(said);
    if (status == CANNOT)
        SKIP(why);
    fail_msg("%s", why);
}

static void plane_begin(struct plane *p, const char *const *options)
{
    snprintf(p->dir, sizeof p->dir, "/tmp/karve-kube-XXXXXX");
    if (!mkdtemp(p->dir))
        fail_msg("%s: %s", p->dir, strerror(errno));
    AUTO_BUF said = { 0 };
    int status = script(&said, "start", options);
    if (status != 0)
        cannot_start(status, &said);
    running = true;
    atexit(plane_end);
    read_environment(p);
    AUTO_BUF path = { 0 };
    const char *old = getenv("PATH");
    buf_addf(&path, "%s:%s", p->bin, old ? old : "/usr/bin:/bin");
    setenv("PATH", buf_str(&path).p, 1);
    setenv("BIN", p->bin, 1);
    setenv("DIR", p->dir, 1);
    setenv("KARVE", karve_path(), 1);
    setenv("KUBECONFIG", plane_path(p, "admin.kubeconfig"), 1);
    p->proxy = proxy_start(p->port, 1);
    pool = object_pool_new();
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    quiet_log = log_new((struct log_options){ .clock = clock_real(), .fd = nowhere });
}

struct plane *plane_with(const char *const *options)
{
    struct plane *p = &the_plane;
    if (!running) {
        plane_begin(p, options);
        return p;
    }
    kill_children(p);
    thaw_all(p);
    proxy_set(p->proxy, (struct proxy_faults){ 0 });
    proxy_cut(p->proxy);
    arena_reset(&p->arena);
    if (apiserver_down) /* a test killed it, and failed */
        plane_apiserver_restart(p);
    plane_empty(p);
    return p;
}

struct plane *plane(void)
{
    return plane_with(NULL);
}

const char *plane_path(struct plane *p, const char *name)
{
    return arena_strf(&p->arena, "%s/%s", p->dir, name).p;
}

static void write_file(const char *path, struct str text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, text.p, text.len) != (ssize_t)text.len || close(fd) < 0)
        fail_msg("%s: %s", path, strerror(errno));
}

const char *plane_proxied(struct plane *p, const char *name)
{
    AUTO_BUF text = { 0 }, changed = { 0 };
    struct err err;
    EXPECT_OK(file_read(plane_path(p, name), LOG_BYTES_MAX, &text, &err), err);
    const char *at = strstr(buf_str(&text).p, p->server);
    EXPECT_TRUE(at != NULL);
    buf_add(&changed, str_sub(buf_str(&text), 0, (size_t)(at - text.p)));
    buf_addf(&changed, "https://127.0.0.1:%u%s", proxy_port(p->proxy), at + strlen(p->server));
    const char *path = arena_strf(&p->arena, "%s/proxied-%s", p->dir, name).p;
    write_file(path, buf_str(&changed));
    return path;
}

const char *plane_user(struct plane *p, const char *user, const char *const *groups)
{
    const char *words[16] = { user };
    for (size_t count = 1; groups && *groups; groups++) {
        EXPECT_TRUE(count < KV_COUNT_OF(words) - 1);
        words[count++] = *groups;
    }
    AUTO_BUF said = { 0 };
    if (script(&said, "user", words) != 0)
        fail_msg("%s user: %.*s", SCRIPT, STR_ARG(buf_str(&said)));
    return arena_str(&p->arena, str_trim(buf_str(&said))).p;
}

/* --- commands --- */

static int shell(struct buf *out, const char *format, va_list args)
{
    AUTO_FREE char *text = NULL;
    if (vasprintf(&text, format, args) < 0)
        fail_msg("a command is too long");
    return run(out, (const char *const[]){ "/bin/sh", "-c", text, NULL });
}

int plane_sh(struct plane *p KV_UNUSED, struct buf *maybe_out, const char *format, ...)
{
    AUTO_BUF ignored = { 0 };
    va_list args;
    va_start(args, format);
    int status = shell(maybe_out ? maybe_out : &ignored, format, args);
    va_end(args);
    return status;
}

struct str plane_must(struct plane *p, const char *format, ...)
{
    AUTO_BUF said = { 0 };
    va_list args;
    va_start(args, format);
    int status = shell(&said, format, args);
    va_end(args);
    if (status != 0) {
        plane_show(p);
        fail_msg("status %d of \"%s\": %.*s", status, format, STR_ARG(buf_str(&said)));
    }
    return arena_str(&p->arena, str_trim(buf_str(&said)));
}

void plane_apply(struct plane *p, const char *text)
{
    write_file(plane_path(p, "apply.yaml"), str_of(text));
    plane_must(p, "kubectl apply -f $DIR/apply.yaml");
}

void plane_crds(struct plane *p)
{
    if (has_crds)
        return;
    plane_must(p, "$KARVE crds >$DIR/crds.yaml && kubectl apply -f $DIR/crds.yaml && "
                  "kubectl wait --for=condition=Established --timeout=60s -f $DIR/crds.yaml");
    /* What is established is listed among what the server has a moment later. */
    PLANE_WAIT(p, plane_sh(p, NULL,
                           "kubectl get nodepools,nodeclaims,nodeoverlays,kwoknodeclasses,"
                           "ec2nodeclasses") == 0);
    has_crds = true;
}

/* --- the servers --- */

void plane_apiserver_kill9(struct plane *p KV_UNUSED)
{
    apiserver_down = true;
    script_must("kill-apiserver", NULL);
}

void plane_apiserver_restart(struct plane *p KV_UNUSED)
{
    script_must("restart-apiserver", NULL);
    apiserver_down = false;
}

void plane_compact(struct plane *p KV_UNUSED)
{
    apiserver_down = true;
    script_must("compact", NULL);
    apiserver_down = false;
}

void plane_freeze(struct plane *p KV_UNUSED, const char *server)
{
    EXPECT_TRUE(frozen_count < KV_COUNT_OF(frozen));
    script_must("freeze", server);
    snprintf(frozen[frozen_count++], sizeof frozen[0], "%s", server);
}

void plane_thaw(struct plane *p KV_UNUSED, const char *server)
{
    for (unsigned i = frozen_count; i-- > 0;)
        if (strcmp(frozen[i], server) == 0 && i != --frozen_count)
            memcpy(frozen[i], frozen[frozen_count], sizeof frozen[i]);
    script_must("thaw", server);
}

void plane_empty(struct plane *p KV_UNUSED)
{
    script_must("empty", NULL);
}

/* --- the store port --- */

struct plane_access plane_open(struct plane *p KV_UNUSED, const char *kubeconfig,
                               struct kube_options base)
{
    struct plane_access access = { 0 };
    struct err err;
    EXPECT_OK(kubeconfig_load((struct kubeconfig_options){ .path = kubeconfig,
                                                           .clock = clock_real(),
                                                           .log = quiet_log },
                              &access.config, &err),
              err);
    base.access = access.config;
    base.pool = pool;
    base.clock = clock_real();
    EXPECT_OK(kube_new(base, &access.kube, &err), err);
    access.store = kube_store(access.kube);
    return access;
}

void plane_close(struct plane_access *access)
{
    kube_free(access->kube);
    kubeconfig_free(access->config);
    *access = (struct plane_access){ 0 };
}

/* --- our programs --- */

static void forget(pid_t pid)
{
    for (size_t i = 0; i < KV_COUNT_OF(children); i++)
        if (children[i].pid == pid)
            children[i].pid = 0;
}

pid_t plane_karve(struct plane *p, const char *name, const char *const *args)
{
    size_t slot = 0;
    while (slot < KV_COUNT_OF(children) && children[slot].pid != 0)
        slot++;
    EXPECT_TRUE(slot < KV_COUNT_OF(children));
    const char *words[64] = { karve_path() };
    for (size_t count = 1; *args; args++) {
        EXPECT_TRUE(count < KV_COUNT_OF(words) - 1);
        words[count++] = *args;
    }
    const char *log = arena_strf(&p->arena, "%s/%s.log", p->dir, name).p;
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* it does not outlive a test that crashed */
        int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
        dup2(fd, 1);
        dup2(fd, 2);
        execv(words[0], (char *const *)words);
        _exit(127);
    }
    if (pid < 0)
        fail_msg("fork: %s", strerror(errno));
    children[slot].pid = pid;
    snprintf(children[slot].name, sizeof children[slot].name, "%s", name);
    return pid;
}

int plane_stop(struct plane *p, pid_t pid)
{
    int status = 0;
    int64_t until = plane_deadline(PLANE_LIMIT_S);
    kill(pid, SIGTERM);
    while (waitpid(pid, &status, WNOHANG) != pid)
        plane_wait(p, until, "the program ends", __FILE__, __LINE__);
    forget(pid);
    return status;
}

void plane_kill9(struct plane *p KV_UNUSED, pid_t pid)
{
    if (pid <= 0)
        return;
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    forget(pid);
}

bool plane_runs(struct plane *p KV_UNUSED, pid_t pid)
{
    siginfo_t info = { 0 };
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
}

struct str plane_log(struct plane *p, const char *name)
{
    AUTO_BUF text = { 0 };
    struct err err;
    const char *path = arena_strf(&p->arena, "%s/%s.log", p->dir, name).p;
    if (file_read(path, LOG_BYTES_MAX, &text, &err) < 0)
        return STR("");
    return arena_str(&p->arena, buf_str(&text));
}

/* --- waiting --- */

int64_t plane_deadline(int seconds)
{
    return clock_mono_ns(clock_real()) + (int64_t)seconds * 1000000000;
}

void plane_wait(struct plane *p, int64_t until_ns, const char *condition, const char *file,
                int line)
{
    if (clock_mono_ns(clock_real()) >= until_ns) {
        plane_show(p);
        print_error("never came true: %s\n", condition);
        _fail(file, line);
    }
    poll(NULL, 0, 50);
}

void plane_show(struct plane *p)
{
    for (size_t i = 0; i < KV_COUNT_OF(children); i++) {
        if (children[i].pid == 0)
            continue;
        struct str log = plane_log(p, children[i].name);
        if (log.len > SHOWN_BYTES)
            log = str_sub(log, log.len - SHOWN_BYTES, SHOWN_BYTES);
        printf("# %s (pid %d%s), its log ends:\n", children[i].name, (int)children[i].pid,
               plane_runs(p, children[i].pid) ? "" : ", ended");
        print_comment(log);
    }
    AUTO_BUF said = { 0 };
    plane_sh(p, &said,
             "kubectl get nodepool,nodeclaim,node --request-timeout=5s 2>&1 | tail -n 20; "
             "kubectl get pod -A --request-timeout=5s 2>&1 | awk '{ print $4 }' | sort | uniq -c");
    print_comment(buf_str(&said));
    fflush(stdout);
}

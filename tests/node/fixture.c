/* See fixture.h. containerd and the agent are child processes; whatever becomes of this program, the
 * next start of containerd.sh sweeps away what it left. */
#include "node/fixture.h"

#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define SCRIPT "tests/node/containerd.sh"
#define CANNOT 77 /* its exit status where the machine lacks something */

static struct node_fixture fixture;
static bool running;
static pid_t frozen[16];
static unsigned frozen_count;

/* --- processes --- */

/* Run the script; its output is appended to `out`. Its exit status. `maybe_more` ends with NULL. */
static int script_with(struct buf *out, const char *task, const char *dir,
                       const char *const *maybe_more)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        fail_msg("pipe: %s", strerror(errno));
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
    const char *args[16] = { SCRIPT, task, dir };
    for (size_t count = 3; maybe_more && *maybe_more; maybe_more++) {
        EXPECT_TRUE(count < KV_COUNT_OF(args) - 1);
        args[count++] = *maybe_more;
    }
    pid_t child;
    int failed = posix_spawn(&child, SCRIPT, &actions, NULL, (char *const *)args, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (failed) {
        close(ends[0]);
        fail_msg("%s: %s (tests run in the root of the source)", SCRIPT, strerror(failed));
    }
    char chunk[1024];
    for (ssize_t n; (n = read(ends[0], chunk, sizeof chunk)) > 0;)
        buf_add(out, (struct str){ chunk, (size_t)n });
    close(ends[0]);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int script(struct buf *out, const char *task, const char *dir)
{
    return script_with(out, task, dir, NULL);
}

static void script_must(const char *task)
{
    AUTO_BUF said = { 0 };
    if (script(&said, task, fixture.dir) != 0)
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

/* --- start and end of it all --- */

static void fixture_end(void)
{
    if (!running)
        return;
    running = false;
    fixture_agent_kill9(&fixture);
    fixture_thaw_shims(&fixture);
    cri_free(fixture.cri);
    arena_done(&fixture.arena);
    AUTO_BUF said = { 0 };
    if (script(&said, "stop", fixture.dir) != 0) {
        print_comment(buf_str(&said));
        _exit(1); /* something is left behind: the program fails, whatever its tests said */
    }
}

static void read_environment(struct node_fixture *f)
{
    AUTO_BUF said = { 0 };
    if (script(&said, "env", f->dir) != 0)
        fail_msg("%s env: %.*s", SCRIPT, STR_ARG(buf_str(&said)));
    for (struct str line, rest = buf_str(&said); str_cut(rest, '\n', &line, &rest);) {
        struct str key, value;
        if (!str_cut(line, '=', &key, &value))
            continue;
        if (str_eqz(key, "SOCKET"))
            snprintf(f->endpoint, sizeof f->endpoint, "unix://%.*s", STR_ARG(value));
        if (str_eqz(key, "CGROUP"))
            snprintf(f->cgroup, sizeof f->cgroup, "%.*s", STR_ARG(value));
    }
    snprintf(f->agent_api, sizeof f->agent_api, "%s/agent.sock", f->dir);
    snprintf(f->agent_log, sizeof f->agent_log, "%s/agent.log", f->dir);
    snprintf(f->manifests, sizeof f->manifests, "%s/manifests", f->dir);
}

static bool cri_answers(struct node_fixture *f)
{
    Cri__VersionRequest request = CRI__VERSION_REQUEST__INIT;
    struct err err;
    return cri_call(f->cri, CRI_VERSION, &request, &f->arena, NULL, &err) == 0;
}

static void fixture_begin(struct node_fixture *f)
{
    snprintf(f->dir, sizeof f->dir, "/tmp/karve-XXXXXX");
    if (!mkdtemp(f->dir))
        fail_msg("%s: %s", f->dir, strerror(errno));
    running = true;
    atexit(fixture_end);
    AUTO_BUF said = { 0 };
    int status = script(&said, "start", f->dir);
    if (status != 0) {
        /* The last line tells why; it outlives this frame, which a skip leaves by a jump. */
        static char why[512];
        struct str words = str_trim(buf_str(&said));
        const char *line = status == CANNOT ? memrchr(words.p, '\n', words.len) : NULL;
        if (line)
            words = str_sub(words, (size_t)(line + 1 - words.p), words.len);
        snprintf(why, sizeof why, "%.*s", STR_ARG(words));
        buf_done(&said);
        running = false;
        AUTO_BUF ignored = { 0 };
        script(&ignored, "stop", f->dir);
        buf_done(&ignored);
        if (status == CANNOT)
            SKIP(why);
        fail_msg("%s", why);
    }
    read_environment(f);
    if (mkdir(f->manifests, 0700) < 0)
        fail_msg("%s: %s", f->manifests, strerror(errno));
    struct err err;
    EXPECT_OK(cri_new((struct cri_options){ .endpoint = f->endpoint, .clock = clock_real() },
                      &f->cri, &err),
              err);
    WITHIN_LIMIT(f, cri_answers(f));
}

static void remove_manifests(struct node_fixture *f)
{
    DIR *folder = opendir(f->manifests);
    if (!folder)
        fail_msg("%s: %s", f->manifests, strerror(errno));
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        unlinkat(dirfd(folder), entry->d_name, 0);
    closedir(folder);
}

struct node_fixture *node_fixture(void)
{
    struct node_fixture *f = &fixture;
    if (!running) {
        fixture_begin(f);
        return f;
    }
    fixture_thaw_shims(f);
    if (f->agent > 0)
        fixture_agent_stop(f);
    remove_manifests(f);
    arena_reset(&f->arena);
    if (!cri_answers(f)) /* a test killed it, and failed */
        fixture_containerd_restart(f);
    fixture_remove_all(f);
    return f;
}

/* --- containerd --- */

void fixture_containerd_kill9(struct node_fixture *f KV_UNUSED)
{
    script_must("kill9");
}

void fixture_containerd_restart(struct node_fixture *f)
{
    script_must("restart");
    WITHIN_LIMIT(f, cri_answers(f));
}

uint32_t fixture_process_count(struct node_fixture *f)
{
    AUTO_BUF said = { 0 };
    if (script(&said, "members", f->dir) != 0)
        fail_msg("%s members: %.*s", SCRIPT, STR_ARG(buf_str(&said)));
    uint32_t count = 0;
    for (struct str line, rest = buf_str(&said); str_cut(rest, '\n', &line, &rest);)
        count++;
    return count;
}

/* The plugin that gives out addresses takes this lock for the time of it. */
int fixture_lock_addresses(struct node_fixture *f)
{
    struct str folder = arena_strf(&f->arena, "%s/cni-ipam", f->dir);
    struct str network = arena_strf(&f->arena, "%s%s", folder.p, f->cgroup); /* are named alike */
    struct str path = arena_strf(&f->arena, "%s/lock", network.p);
    mkdir(folder.p, 0755);
    mkdir(network.p, 0755);
    int lock = open(path.p, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (lock < 0 || flock(lock, LOCK_EX) < 0)
        fail_msg("%s: %s", path.p, strerror(errno));
    return lock;
}

void fixture_unlock_addresses(int lock)
{
    close(lock);
}

void fixture_tag_image(struct node_fixture *f, const char *image, const char *name)
{
    AUTO_BUF said = { 0 };
    if (script_with(&said, "ctr", f->dir,
                    (const char *const[]){ "images", "tag", image, name, NULL }) != 0)
        fail_msg("ctr images tag: %.*s", STR_ARG(buf_str(&said)));
}

/* --- pods --- */

static char *text(struct node_fixture *f, struct str s)
{
    return (char *)(uintptr_t)arena_str(&f->arena, s).p; /* messages are not const; nobody writes */
}

static char *textz(struct node_fixture *f, const char *z)
{
    return text(f, str_of(z));
}

static void must(struct node_fixture *f, enum cri_method method, const void *request, void *out)
{
    struct err err;
    if (cri_call(f->cri, method, request, &f->arena, out, &err) == 0)
        return;
    fixture_show(f);
    fail_msg("%s", err.text);
}

/* Labels and the like, as {key, value, key, value, ..., NULL}. */
static Cri__Entry **entries(struct node_fixture *f, const char *const *pairs, size_t *count)
{
    size_t n = 0;
    while (pairs[2 * n])
        n++;
    Cri__Entry **out = arena_array(&f->arena, Cri__Entry *, n);
    for (size_t i = 0; i < n; i++) {
        out[i] = arena_new(&f->arena, Cri__Entry);
        cri__entry__init(out[i]);
        out[i]->key = textz(f, pairs[2 * i]);
        out[i]->value = textz(f, pairs[2 * i + 1]);
    }
    *count = n;
    return out;
}

#define NEW(f, Type, init)                                                                         \
    ({                                                                                             \
        Type *new_ = arena_new(&(f)->arena, Type);                                                 \
        init(new_);                                                                                \
        new_;                                                                                      \
    })

/* The three parts that both kinds of configuration have. */
static Cri__NamespaceOption *namespaces(struct node_fixture *f, bool host_network)
{
    Cri__NamespaceOption *options = NEW(f, Cri__NamespaceOption, cri__namespace_option__init);
    options->network = host_network ? CRI__NAMESPACE_MODE__NODE : CRI__NAMESPACE_MODE__POD;
    options->pid = CRI__NAMESPACE_MODE__CONTAINER;
    return options;
}

static Cri__SecurityProfile *unconfined(struct node_fixture *f)
{
    Cri__SecurityProfile *profile = NEW(f, Cri__SecurityProfile, cri__security_profile__init);
    profile->profile_type = CRI__SECURITY_PROFILE__PROFILE_TYPE__UNCONFINED;
    return profile;
}

static Cri__PodSandboxConfig *sandbox_of(struct node_fixture *f, struct fixture_pod pod)
{
    Cri__PodSandboxConfig *config = NEW(f, Cri__PodSandboxConfig, cri__pod_sandbox_config__init);
    config->metadata = NEW(f, Cri__PodSandboxMetadata, cri__pod_sandbox_metadata__init);
    const char *name = pod.maybe_name ? pod.maybe_name : pod.uid;
    config->metadata->name = textz(f, name);
    config->metadata->uid = textz(f, pod.uid);
    config->metadata->namespace_ = textz(f, "default");
    config->metadata->attempt = pod.attempt;
    config->log_directory = text(f, arena_strf(&f->arena, "%s/logs/%s", f->dir, pod.uid));
    config->labels =
        entries(f,
                (const char *[]){ "io.kubernetes.pod.name", name, "io.kubernetes.pod.namespace",
                                  "default", "io.kubernetes.pod.uid", pod.uid, NULL },
                &config->n_labels);
    config->linux_ = NEW(f, Cri__LinuxPodSandboxConfig, cri__linux_pod_sandbox_config__init);
    config->linux_->cgroup_parent = text(f, arena_strf(&f->arena, "%s/%s", f->cgroup, pod.uid));
    config->linux_->security_context =
        NEW(f, Cri__LinuxSandboxSecurityContext, cri__linux_sandbox_security_context__init);
    config->linux_->security_context->namespace_options = namespaces(f, pod.host_network);
    config->linux_->security_context->seccomp = unconfined(f);
    return config;
}

struct str fixture_run_sandbox(struct node_fixture *f, struct fixture_pod pod)
{
    Cri__RunPodSandboxRequest request = CRI__RUN_POD_SANDBOX_REQUEST__INIT;
    request.config = sandbox_of(f, pod);
    Cri__RunPodSandboxResponse *reply = NULL;
    must(f, CRI_RUN_POD_SANDBOX, &request, &reply);
    return str_of(reply->pod_sandbox_id);
}

/* CreateContainer wants the sandbox's configuration again; as much of it as the runtime remembers. */
static Cri__PodSandboxConfig *sandbox_again(struct node_fixture *f, struct str sandbox_id)
{
    Cri__PodSandboxStatusRequest request = CRI__POD_SANDBOX_STATUS_REQUEST__INIT;
    request.pod_sandbox_id = text(f, sandbox_id);
    Cri__PodSandboxStatusResponse *reply = NULL;
    must(f, CRI_POD_SANDBOX_STATUS, &request, &reply);
    EXPECT_TRUE(reply->status && reply->status->metadata);
    const Cri__PodSandboxMetadata *metadata = reply->status->metadata;
    bool host = reply->status->linux_ && reply->status->linux_->namespaces &&
                reply->status->linux_->namespaces->options &&
                reply->status->linux_->namespaces->options->network == CRI__NAMESPACE_MODE__NODE;
    return sandbox_of(f, (struct fixture_pod){ .uid = metadata->uid,
                                               .maybe_name = metadata->name,
                                               .attempt = metadata->attempt,
                                               .host_network = host });
}

struct str fixture_create(struct node_fixture *f, struct str sandbox_id,
                          struct fixture_container container)
{
    Cri__PodSandboxConfig *sandbox = sandbox_again(f, sandbox_id);
    Cri__ContainerConfig *config = NEW(f, Cri__ContainerConfig, cri__container_config__init);
    const char *name = container.maybe_name ? container.maybe_name : "main";
    config->metadata = NEW(f, Cri__ContainerMetadata, cri__container_metadata__init);
    config->metadata->name = textz(f, name);
    config->metadata->attempt = container.attempt;
    config->image = NEW(f, Cri__ImageSpec, cri__image_spec__init);
    config->image->image =
        textz(f, container.maybe_image ? container.maybe_image : "karve.test/tools:1");
    for (const char *const *word = container.command; word && *word; word++)
        config->n_command++;
    config->command = arena_array(&f->arena, char *, config->n_command + 1);
    for (size_t i = 0; i < config->n_command; i++)
        config->command[i] = textz(f, container.command[i]);
    config->labels =
        entries(f,
                (const char *[]){ "io.kubernetes.container.name", name, "io.kubernetes.pod.name",
                                  sandbox->metadata->name, "io.kubernetes.pod.namespace", "default",
                                  "io.kubernetes.pod.uid", sandbox->metadata->uid, NULL },
                &config->n_labels);
    config->annotations =
        entries(f,
                (const char *[]){ "io.kubernetes.container.restartCount",
                                  arena_strf(&f->arena, "%" PRIu32, container.attempt).p, NULL },
                &config->n_annotations);
    config->log_path =
        text(f, arena_strf(&f->arena, "%s_%" PRIu32 ".log", name, container.attempt));
    config->linux_ = NEW(f, Cri__LinuxContainerConfig, cri__linux_container_config__init);
    config->linux_->resources =
        NEW(f, Cri__LinuxContainerResources, cri__linux_container_resources__init);
    config->linux_->resources->memory_limit_in_bytes = container.memory_bytes;
    config->linux_->security_context =
        NEW(f, Cri__LinuxContainerSecurityContext, cri__linux_container_security_context__init);
    config->linux_->security_context->namespace_options =
        sandbox->linux_->security_context->namespace_options;
    config->linux_->security_context->seccomp = unconfined(f);

    Cri__CreateContainerRequest request = CRI__CREATE_CONTAINER_REQUEST__INIT;
    request.pod_sandbox_id = text(f, sandbox_id);
    request.config = config;
    request.sandbox_config = sandbox;
    Cri__CreateContainerResponse *reply = NULL;
    must(f, CRI_CREATE_CONTAINER, &request, &reply);
    return str_of(reply->container_id);
}

void fixture_start(struct node_fixture *f, struct str container_id)
{
    Cri__StartContainerRequest request = CRI__START_CONTAINER_REQUEST__INIT;
    request.container_id = text(f, container_id);
    must(f, CRI_START_CONTAINER, &request, NULL);
}

bool fixture_try_start(struct node_fixture *f, struct str container_id)
{
    Cri__StartContainerRequest request = CRI__START_CONTAINER_REQUEST__INIT;
    request.container_id = text(f, container_id);
    struct err err;
    if (cri_call(f->cri, CRI_START_CONTAINER, &request, &f->arena, NULL, &err) == 0)
        return true;
    printf("# %s\n", err.text);
    return false;
}

struct str fixture_run(struct node_fixture *f, struct str sandbox_id,
                       struct fixture_container container)
{
    struct str id = fixture_create(f, sandbox_id, container);
    fixture_start(f, id);
    return id;
}

void fixture_stop(struct node_fixture *f, struct str container_id, int64_t grace_s)
{
    Cri__StopContainerRequest request = CRI__STOP_CONTAINER_REQUEST__INIT;
    request.container_id = text(f, container_id);
    request.timeout = grace_s;
    must(f, CRI_STOP_CONTAINER, &request, NULL);
}

void fixture_remove(struct node_fixture *f, struct str container_id)
{
    Cri__RemoveContainerRequest request = CRI__REMOVE_CONTAINER_REQUEST__INIT;
    request.container_id = text(f, container_id);
    must(f, CRI_REMOVE_CONTAINER, &request, NULL);
}

void fixture_stop_sandbox(struct node_fixture *f, struct str sandbox_id)
{
    Cri__StopPodSandboxRequest request = CRI__STOP_POD_SANDBOX_REQUEST__INIT;
    struct err err = { 0 };
    request.pod_sandbox_id = text(f, sandbox_id);
    /* A shim that ends while its container is being killed: containerd says so, and knows better when it
     * is asked again. */
    for (int i = 0; i < 20; i++) {
        if (cri_call(f->cri, CRI_STOP_POD_SANDBOX, &request, &f->arena, NULL, &err) == 0)
            return;
        if (!strstr(err.text, "ttrpc: closed"))
            break;
        usleep(100 * 1000);
    }
    must(f, CRI_STOP_POD_SANDBOX, &request, NULL);
}

void fixture_remove_sandbox(struct node_fixture *f, struct str sandbox_id)
{
    Cri__RemovePodSandboxRequest request = CRI__REMOVE_POD_SANDBOX_REQUEST__INIT;
    request.pod_sandbox_id = text(f, sandbox_id);
    must(f, CRI_REMOVE_POD_SANDBOX, &request, NULL);
}

/* A call that a killed agent made may still be under way, and then a removal is refused: again. */
static bool all_removed(struct node_fixture *f)
{
    const struct runtime_listing *listing = fixture_list(f);
    for (uint32_t i = 0; i < listing->pod_count; i++) {
        for (uint32_t j = 0; j < listing->pods[i].sandboxes.count; j++) {
            Cri__StopPodSandboxRequest stop = CRI__STOP_POD_SANDBOX_REQUEST__INIT;
            Cri__RemovePodSandboxRequest remove = CRI__REMOVE_POD_SANDBOX_REQUEST__INIT;
            struct err err;
            stop.pod_sandbox_id = text(f, listing->pods[i].sandboxes.items[j].id);
            remove.pod_sandbox_id = stop.pod_sandbox_id;
            cri_call(f->cri, CRI_STOP_POD_SANDBOX, &stop, &f->arena, NULL, &err);
            cri_call(f->cri, CRI_REMOVE_POD_SANDBOX, &remove, &f->arena, NULL, &err);
        }
    }
    return listing->pod_count == 0;
}

void fixture_remove_all(struct node_fixture *f)
{
    WITHIN_LIMIT(f, all_removed(f));
}

const struct runtime_listing *fixture_list(struct node_fixture *f)
{
    struct runtime_listing *listing = arena_new(&f->arena, struct runtime_listing);
    struct err err;
    EXPECT_OK(cri_list(f->cri, STR_NONE, &f->arena, listing, &err), err);
    return listing;
}

const Cri__ContainerStatus *fixture_inspect(struct node_fixture *f, struct str container_id)
{
    Cri__ContainerStatusRequest request = CRI__CONTAINER_STATUS_REQUEST__INIT;
    request.container_id = text(f, container_id);
    Cri__ContainerStatusResponse *reply = NULL;
    struct err err;
    if (cri_call(f->cri, CRI_CONTAINER_STATUS, &request, &f->arena, &reply, &err) == 0)
        return reply->status;
    if (err.kind != ERR_NOT_FOUND)
        fail_msg("%s", err.text);
    return NULL;
}

/* --- behind everybody's back --- */

pid_t fixture_pid(struct node_fixture *f, struct str id)
{
    struct str path =
        arena_strf(&f->arena, "%s/ctd/state/io.containerd.runtime.v2.task/k8s.io/%.*s/init.pid",
                   f->dir, STR_ARG(id));
    AUTO_BUF content = { 0 };
    struct err err;
    EXPECT_OK(file_read(path.p, 64, &content, &err), err);
    int64_t pid = 0;
    EXPECT_TRUE(str_to_i64(str_trim(buf_str(&content)), &pid) && pid > 1);
    return (pid_t)pid;
}

pid_t fixture_shim(struct node_fixture *f, struct str id)
{
    struct str path = arena_strf(&f->arena, "/proc/%d/status", (int)fixture_pid(f, id));
    AUTO_BUF content = { 0 };
    struct err err;
    EXPECT_OK(file_read(path.p, 65536, &content, &err), err);
    const char *line = strstr(content.p, "\nPPid:");
    int parent = 0;
    EXPECT_TRUE(line && sscanf(line, "\nPPid: %d", &parent) == 1);
    EXPECT_TRUE(parent > 1);
    return parent;
}

void fixture_kill(struct node_fixture *f, struct str id, int signal)
{
    if (kill(fixture_pid(f, id), signal) < 0)
        fail_msg("kill: %s", strerror(errno));
}

void fixture_freeze_shim(struct node_fixture *f, struct str id)
{
    pid_t shim = fixture_shim(f, id);
    EXPECT_TRUE(frozen_count < KV_COUNT_OF(frozen));
    if (kill(shim, SIGSTOP) < 0)
        fail_msg("kill: %s", strerror(errno));
    frozen[frozen_count++] = shim;
}

void fixture_thaw_shims(struct node_fixture *f KV_UNUSED)
{
    while (frozen_count > 0)
        kill(frozen[--frozen_count], SIGCONT);
}

/* --- the agent --- */

static bool agent_answers(struct node_fixture *f)
{
    int status;
    if (waitpid(f->agent, &status, WNOHANG) == f->agent) {
        f->agent = 0;
        fixture_show(f);
        fail_msg("the agent ended, with status %d", status);
    }
    AUTO_BUF body = { 0 };
    return fixture_agent_get(f, "/healthz", &body) != 0;
}

void fixture_agent_start(struct node_fixture *f, const char *const *maybe_more)
{
    EXPECT_EQ(f->agent, 0);
    unlink(f->agent_api);
    const char *karve = getenv("KARVE");
    const char *args[64] = { karve ? karve : "build/karve", "agent", "--runtime-endpoint",
                             f->endpoint };
    size_t count = 4;
    const char *const folders[][2] = {
        { "--listen", arena_strf(&f->arena, "unix://%s", f->agent_api).p },
        { "--root-dir", arena_strf(&f->arena, "%s/agent", f->dir).p },
        { "--pod-logs-dir", arena_strf(&f->arena, "%s/logs", f->dir).p },
        { "--container-logs-dir", arena_strf(&f->arena, "%s/links", f->dir).p },
    };
    for (size_t i = 0; i < KV_COUNT_OF(folders); i++) {
        args[count++] = folders[i][0];
        args[count++] = folders[i][1];
    }
    for (; maybe_more && *maybe_more; maybe_more++) {
        EXPECT_TRUE(count < KV_COUNT_OF(args) - 3);
        args[count++] = *maybe_more;
        if (strcmp(*maybe_more, "--run-pods") == 0) { /* an observer has no use for them */
            args[count++] = "--manifests";
            args[count++] = f->manifests;
        }
    }
    f->agent = fork();
    if (f->agent == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* it does not outlive a test that crashed */
        int log = open(f->agent_log, O_WRONLY | O_CREAT | O_APPEND, 0600);
        dup2(log, 1);
        dup2(log, 2);
        execv(args[0], (char *const *)args);
        _exit(127);
    }
    if (f->agent < 0)
        fail_msg("fork: %s", strerror(errno));
    WITHIN_LIMIT(f, agent_answers(f));
}

static int agent_wait(struct node_fixture *f)
{
    int status = 0;
    int64_t until = fixture_deadline();
    while (waitpid(f->agent, &status, WNOHANG) != f->agent) {
        if (clock_mono_ns(clock_real()) >= until)
            kill(f->agent, SIGKILL); /* its status tells */
        poll(NULL, 0, 5);
    }
    f->agent = 0;
    return status;
}

void fixture_agent_stop(struct node_fixture *f)
{
    EXPECT_TRUE(f->agent > 0);
    kill(f->agent, SIGTERM);
    int status = agent_wait(f);
    if (status != 0) {
        fixture_show(f);
        fail_msg("the agent ended with status %d", status);
    }
}

void fixture_agent_kill9(struct node_fixture *f)
{
    if (f->agent <= 0)
        return;
    kill(f->agent, SIGKILL);
    agent_wait(f);
}

/* HTTP/1.0, so that the answer is what comes until the end. */
int fixture_agent_get(struct node_fixture *f, const char *path, struct buf *body)
{
    buf_clear(body);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    snprintf(address.sun_path, sizeof address.sun_path, "%s", f->agent_api);
    AUTO_BUF answer = { 0 };
    buf_addf(&answer, "GET %s HTTP/1.0\r\nHost: agent\r\n\r\n", path);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0 ||
        write(fd, answer.p, answer.len) != (ssize_t)answer.len) {
        if (fd >= 0)
            close(fd);
        return 0;
    }
    buf_clear(&answer);
    char chunk[4096];
    for (ssize_t n; (n = read(fd, chunk, sizeof chunk)) > 0;)
        buf_add(&answer, (struct str){ chunk, (size_t)n });
    close(fd);
    int code = 0;
    const char *end = strstr(buf_str(&answer).p, "\r\n\r\n");
    if (!end || sscanf(answer.p, "HTTP/%*d.%*d %d", &code) != 1)
        return 0;
    buf_addz(body, end + 4);
    return code;
}

void fixture_manifest(struct node_fixture *f, const char *name, const char *maybe_text)
{
    struct str path = arena_strf(&f->arena, "%s/%s.yaml", f->manifests, name);
    if (!maybe_text) {
        if (unlink(path.p) < 0)
            fail_msg("%s: %s", path.p, strerror(errno));
        return;
    }
    struct str draft = arena_strf(&f->arena, "%s/%s.draft", f->dir, name);
    FILE *file = fopen(draft.p, "we");
    if (!file || fputs(maybe_text, file) < 0 || fclose(file) != 0 || rename(draft.p, path.p) < 0)
        fail_msg("%s: %s", path.p, strerror(errno));
}

/* --- waiting --- */

int64_t fixture_deadline(void)
{
    return clock_mono_ns(clock_real()) + (int64_t)FIXTURE_LIMIT_S * 1000000000;
}

void fixture_wait(struct node_fixture *f, int64_t until_ns, const char *condition, const char *file,
                  int line)
{
    if (clock_mono_ns(clock_real()) >= until_ns) {
        fixture_show(f);
        print_error("not true within %d s: %s\n", FIXTURE_LIMIT_S, condition);
        _fail(file, line);
    }
    poll(NULL, 0, 20);
}

void fixture_show(struct node_fixture *f)
{
    struct runtime_listing listing = { 0 };
    struct err err;
    AUTO_ARENA arena = { 0 };
    if (cri_list(f->cri, STR_NONE, &arena, &listing, &err) < 0)
        printf("# the runtime does not answer: %s\n", err.text);
    for (uint32_t i = 0; i < listing.pod_count; i++) {
        const struct runtime_pod *pod = &listing.pods[i];
        printf("# pod %.*s %.*s\n", STR_ARG(pod->uid), STR_ARG(pod->name));
        for (uint32_t j = 0; j < pod->sandboxes.count; j++)
            printf("#   sandbox %.12s attempt %" PRIu32 " %s\n", pod->sandboxes.items[j].id.p,
                   pod->sandboxes.items[j].attempt,
                   runtime_state_name(pod->sandboxes.items[j].state));
        for (uint32_t j = 0; j < pod->containers.count; j++)
            printf("#   container %.12s %.*s attempt %" PRIu32 " %s\n",
                   pod->containers.items[j].id.p, STR_ARG(pod->containers.items[j].name),
                   pod->containers.items[j].attempt,
                   runtime_state_name(pod->containers.items[j].state));
    }
    AUTO_BUF pods = { 0 };
    if (f->agent > 0 && fixture_agent_get(f, "/pods", &pods) == 200) {
        printf("# the agent says:\n");
        print_comment(buf_str(&pods));
    }
    AUTO_BUF log = { 0 };
    if (file_read(f->agent_log, (size_t)16 << 20, &log, &err) == 0 && log.len > 0) {
        struct str tail = buf_str(&log);
        if (tail.len > 4000)
            tail = str_sub(tail, tail.len - 4000, 4000);
        printf("# the agent's log ends:\n");
        print_comment(tail);
    }
    fflush(stdout);
}

/* One child, two pipes, one loop. Each turn waits a moment for output, takes what is there, asks
 * whether the child has ended and whether its time is over. The end of the child ends the loop, not
 * the end of its output: a plugin may leave a helper behind that still holds the pipes.
 *
 * posix_spawn is safe with threads, and every descriptor of ours closes on exec.
 */
#include "net/exec_credential.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#define TURN_MS 10
#define SAID_BYTES_MAX ((size_t)4 << 10)
#define PIPE_BYTES_MAX ((size_t)1 << 20) /* what a pipe may hold: /proc/sys/fs/pipe-max-size */

enum { OUTPUT, SAID, PIPE_COUNT };

struct child {
    pid_t pid;
    int fds[PIPE_COUNT]; /* our ends; -1: ended */
    struct buf *texts[PIPE_COUNT];
    bool grouped; /* leads a process group */
    int status;   /* as waitpid says */
};

/* --- starting --- */

/* Descriptors 0 to 2 get in the way of the child's own if ours are closed. */
static int above_stdio(int fd)
{
    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    int higher = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close(fd);
    return higher;
}

static void close_both(int ends[2])
{
    for (int i = 0; i < 2; i++) {
        if (ends[i] >= 0)
            close(ends[i]);
        ends[i] = -1;
    }
}

static int open_pipe(int ends[2], struct err *err)
{
    if (pipe2(ends, O_CLOEXEC) == 0) {
        ends[0] = above_stdio(ends[0]);
        ends[1] = above_stdio(ends[1]);
        if (ends[0] >= 0 && ends[1] >= 0 && fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0)
            return 0;
        close_both(ends);
    }
    ends[0] = ends[1] = -1;
    return err_set(err, ERR_UNAVAILABLE, "pipe: %s", strerror(errno));
}

static int spawn_failed(int number, struct err *err)
{
    switch (number) {
    case ENOENT:
    case ENOTDIR:
        return err_set(err, ERR_NOT_FOUND, "not found");
    case ENOEXEC:
        return err_set(err, ERR_INVALID, "cannot be run: neither a program nor a script with #!");
    case E2BIG:
        return err_set(err, ERR_INVALID,
                       "its arguments and environment are too large (is the cluster's authority?)");
    case EAGAIN:
    case ENOMEM:
        return err_set(err, ERR_UNAVAILABLE, "cannot be started: %s", strerror(number));
    default:
        return err_set(err, ERR_INVALID, "cannot be run: %s", strerror(number));
    }
}

/* A plugin that talks with a person stays in our group: another one may not read the terminal. Its
 * prompts are on standard error. */
static int spawn(const struct exec_run *run, struct child *child, const int ends[PIPE_COUNT],
                 struct err *err)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attr);

    if (!run->interactive)
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[OUTPUT], STDOUT_FILENO);
    if (!run->interactive || !isatty(STDERR_FILENO))
        posix_spawn_file_actions_adddup2(&actions, ends[SAID], STDERR_FILENO);
    /* Not everybody's descriptors are close-on-exec: libcurl's own are not. */
    posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);

    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all);
    posix_spawnattr_setpgroup(&attr, 0);
    child->grouped = !run->interactive;
    posix_spawnattr_setflags(&attr, (short)(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                            (child->grouped ? POSIX_SPAWN_SETPGROUP : 0)));

    int number = posix_spawn(&child->pid, run->path, &actions, &attr, run->argv, run->envp);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&actions);
    return number == 0 ? 0 : spawn_failed(number, err);
}

static int child_start(const struct exec_run *run, struct child *child, struct err *err)
{
    int output[2] = { -1, -1 }, said[2] = { -1, -1 };
    if (open_pipe(output, err) < 0 || open_pipe(said, err) < 0 ||
        spawn(run, child, (const int[]){ output[1], said[1] }, err) < 0) {
        close_both(output);
        close_both(said);
        return -1;
    }
    close(output[1]);
    close(said[1]);
    child->fds[OUTPUT] = output[0];
    child->fds[SAID] = said[0];
    return 0;
}

/* --- listening --- */

/* Only the end is kept, from the start of a line: half a line could be half a credential, which
 * nobody would recognise as one. */
static void keep_end(struct buf *said)
{
    if (said->len <= SAID_BYTES_MAX)
        return;
    struct str end = str_sub(buf_str(said), said->len - SAID_BYTES_MAX, SAID_BYTES_MAX);
    ptrdiff_t line = str_find(end, '\n');
    end = line < 0 ? STR("") : str_sub(end, (size_t)line + 1, end.len);
    struct buf kept = { 0 };
    buf_add(&kept, end);
    buf_done(said);
    *said = kept;
}

/* Take all that a pipe holds: no more than it can hold, even if somebody keeps writing. */
static void listen_to(struct child *child, int which)
{
    char piece[1 << 14];
    for (size_t taken = 0; taken < PIPE_BYTES_MAX && child->fds[which] >= 0;) {
        ssize_t n = read(child->fds[which], piece, sizeof piece);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            close(child->fds[which]);
            child->fds[which] = -1;
            return;
        }
        taken += (size_t)n;
        buf_add(child->texts[which], (struct str){ piece, (size_t)n });
        if (which == SAID)
            keep_end(child->texts[which]);
    }
}

static void wait_a_turn(const struct child *child)
{
    struct pollfd fds[PIPE_COUNT];
    for (int i = 0; i < PIPE_COUNT; i++)
        fds[i] = (struct pollfd){ .fd = child->fds[i], .events = POLLIN };
    poll(fds, PIPE_COUNT, TURN_MS);
}

static bool child_ended(struct child *child)
{
    pid_t got = waitpid(child->pid, &child->status, WNOHANG);
    if (got < 0 && errno == ECHILD)
        child->status = 0; /* somebody ignores SIGCHLD; its output has to speak for it */
    return got == child->pid || (got < 0 && errno == ECHILD);
}

static void child_kill(struct child *child)
{
    kill(child->grouped ? -child->pid : child->pid, SIGKILL);
    while (waitpid(child->pid, &child->status, 0) < 0 && errno == EINTR)
        ;
}

static int child_result(const struct child *child, struct err *err)
{
    if (WIFSIGNALED(child->status))
        return err_set(err, ERR_UNAVAILABLE, "died of signal %d", WTERMSIG(child->status));
    if (WEXITSTATUS(child->status) != 0)
        return err_set(err, ERR_UNAVAILABLE, "failed with exit code %d",
                       WEXITSTATUS(child->status));
    return 0;
}

static int child_follow(const struct exec_run *run, struct child *child, struct err *err)
{
    int64_t until_ns = clock_mono_ns(run->clock) + run->timeout_ns;
    size_t before = child->texts[OUTPUT]->len;
    bool ended = false, too_much = false, too_late = false;
    while (!ended && !too_much && !too_late) {
        wait_a_turn(child);
        ended = child_ended(child);
        listen_to(child, OUTPUT);
        listen_to(child, SAID);
        too_much = child->texts[OUTPUT]->len - before > run->output_bytes_max;
        too_late = clock_mono_ns(run->clock) >= until_ns;
    }
    if (!ended)
        child_kill(child);
    if (too_much)
        return err_set(err, ERR_INVALID, "printed more than %zu bytes", run->output_bytes_max);
    if (!ended)
        return err_set(err, ERR_UNAVAILABLE, "was killed: not done after %lld seconds",
                       (long long)(run->timeout_ns / 1000000000));
    return child_result(child, err);
}

int exec_run(const struct exec_run *run, struct buf *out, struct buf *said, struct err *err)
{
    struct child child = { .texts = { out, said } };
    if (child_start(run, &child, err) < 0)
        return -1;
    int rc = child_follow(run, &child, err);
    close_both(child.fds);
    return rc;
}

#include "support/program.h"

#include "support/test.h"

#include "base/clock.h"
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STATUS_BYTES_MAX 65536

/* --- what fixtures ask of a test program --- */

static void end(const char *file, int line, const char *what, const char *why)
{
    fprintf(stderr, "%s: %s:%d: %s: %s\n", program_invocation_short_name, file, line, what, why);
    exit(1);
}

void test_expect_eq(int64_t got, int64_t want, const char *what, const char *file, int line)
{
    char why[64];
    snprintf(why, sizeof why, "%lld, not %lld", (long long)got, (long long)want);
    if (got != want)
        end(file, line, what, why);
}

void test_expect_ok(int rc, const struct err *err, const char *what, const char *file, int line)
{
    if (rc < 0)
        end(file, line, what, err->text);
}

void test_skip(const char *reason, const char *file KV_UNUSED, int line KV_UNUSED)
{
    const char *ci = getenv("CI");
    printf("%s skipped: %s\n", program_invocation_short_name, reason);
    exit(ci && strcmp(ci, "true") == 0);
}

/* --- processes --- */

int64_t process_cpu_ns(pid_t pid)
{
    clockid_t clock;
    struct timespec ts;
    EXPECT_EQ(clock_getcpuclockid(pid, &clock), 0);
    EXPECT_EQ(clock_gettime(clock, &ts), 0);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static long number_after(const struct buf *status, const char *name)
{
    const char *at = strstr(status->p, name);
    return at ? strtol(at + strlen(name), NULL, 10) : 0;
}

struct process_memory process_memory(pid_t pid)
{
    AUTO_BUF status = { 0 };
    struct err err;
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    EXPECT_OK(file_read(path, STATUS_BYTES_MAX, &status, &err), err);
    return (struct process_memory){ .rss = number_after(&status, "VmRSS:"),
                                    .anon = number_after(&status, "RssAnon:"),
                                    .file = number_after(&status, "RssFile:"),
                                    .peak = number_after(&status, "VmHWM:") };
}

void process_sleeps(pid_t pid, struct process_sleeps *out)
{
    char path[300];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *threads = opendir(path);
    EXPECT_TRUE(threads != NULL);
    out->count = 0;
    for (struct dirent *thread; (thread = readdir(threads));) {
        AUTO_BUF status = { 0 };
        struct err err;
        snprintf(path, sizeof path, "/proc/%d/task/%s/status", (int)pid, thread->d_name);
        if (thread->d_name[0] == '.' || file_read(path, STATUS_BYTES_MAX, &status, &err) < 0)
            continue;
        EXPECT_TRUE(out->count < PROCESS_THREADS_MAX);
        out->items[out->count].thread = (pid_t)strtol(thread->d_name, NULL, 10);
        out->items[out->count].count =
            (uint64_t)number_after(&status, "\nvoluntary_ctxt_switches:");
        out->count++;
    }
    closedir(threads);
}

static uint64_t sleeps_of(const struct process_sleeps *all, pid_t thread)
{
    for (uint32_t i = 0; i < all->count; i++)
        if (all->items[i].thread == thread)
            return all->items[i].count;
    return 0; /* it is newer */
}

uint64_t process_sleeps_between(const struct process_sleeps *before,
                                const struct process_sleeps *after)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < after->count; i++) {
        uint64_t was = sleeps_of(before, after->items[i].thread);
        uint64_t is = after->items[i].count;
        sum += is >= was ? is - was : is; /* fewer: another thread has got its number */
    }
    return sum;
}

static void read_all(int fd, struct buf *out)
{
    char chunk[4096];
    for (ssize_t n; (n = read(fd, chunk, sizeof chunk)) != 0;) {
        if (n > 0)
            buf_add(out, (struct str){ chunk, (size_t)n });
        else if (errno != EINTR)
            break;
    }
    close(fd);
}

struct process process_start(const char *const *args)
{
    struct process process = { .start_ns = clock_mono_ns(clock_real()) };
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    EXPECT_EQ(posix_spawnp(&process.pid, args[0], &actions, NULL, (char *const *)args, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    process.stdout_fd = ends[0];
    return process;
}

static double seconds(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

void process_finish(struct process *process, struct process_run *out)
{
    struct rusage usage;
    int status = 0;
    *out = (struct process_run){ 0 };
    read_all(process->stdout_fd, &out->said);
    while (wait4(process->pid, &status, 0, &usage) < 0 && errno == EINTR)
        ;
    if (status != 0)
        end(__FILE__, __LINE__, "a program that was run", "it failed");
    out->s = (double)(clock_mono_ns(clock_real()) - process->start_ns) / 1e9;
    out->cpu_s = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    out->peak_kb = usage.ru_maxrss;
}

void process_run(const char *const *args, struct process_run *out)
{
    struct process process = process_start(args);
    process_finish(&process, out);
}

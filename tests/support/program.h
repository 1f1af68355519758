/* tests/support/program.h - for programs that are no tests and use what is made for tests: benchmarks.
 *
 * Linking program.c instead of test_main.c makes a failed expectation the end of the program, and a skip
 * a line of its own.
 */
#pragma once

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* --- what processes cost --- */

int64_t process_cpu_ns(pid_t pid); /* all its threads, since its start */

struct process_memory { /* KiB, of /proc/PID/status */
    long rss, anon, file, peak;
};
struct process_memory process_memory(pid_t pid);

/* How often each of its threads has gone to sleep of its own accord: as often as something woke it. */
#define PROCESS_THREADS_MAX 512 /* more end the program */
struct process_sleeps {
    struct {
        pid_t thread;
        uint64_t count;
    } items[PROCESS_THREADS_MAX];
    uint32_t count;
};
void process_sleeps(pid_t pid, struct process_sleeps *out);
/* Of all threads, between two looks. What a thread did that ended in between nobody knows: it counts as none. */
uint64_t process_sleeps_between(const struct process_sleeps *before,
                                const struct process_sleeps *after);

struct process { /* one that was started */
    pid_t pid;
    int stdout_fd;
    int64_t start_ns;
};
struct process_run { /* and has ended */
    double s, cpu_s;
    long peak_kb;
    struct buf said; /* on stdout; the caller's */
};
/* `args` ends with NULL. */
struct process process_start(const char *const *args);
void process_finish(struct process *process, struct process_run *out); /* it must succeed */
void process_run(const char *const *args, struct process_run *out);    /* both */

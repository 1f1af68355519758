/* sched/property_testing.h - what must hold of any world, tried on many.
 *
 * When a property does not hold, things and parts of the world are left out one after the other as
 * long as it still does not, and what remains is printed: usually a screenful.
 *
 * KARVE_SEED=N runs that world alone, KARVE_SEEDS=N that many; with KARVE_FORK=1 a world that ends the
 * program shrinks too.
 */
#pragma once

#include "sched/world_random_testing.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* True: it holds. Otherwise `why` says what is wrong, in a line or several. */
typedef bool property_fn(const struct random_world *r, struct buf *why);

/* Is there something to launch, as a catalogue must have it? */
static inline bool random_world_is_valid(const struct random_world *r)
{
    uint32_t types = 0;
    vec_each(&r->things, struct thing, t) {
        uint32_t offerings = 0;
        if (t->kind != THING_TYPE || t->off)
            continue;
        for (uint32_t i = 0; i < t->part_count; i++)
            offerings += !t->parts[i].off;
        if (!offerings)
            return false;
        types++;
    }
    return types > 0;
}

#define PROPERTY_ENDED "it ends the program"

/* The property, asked in a process of its own if that is wanted: then it fails if that one ends
 * otherwise than by itself. */
static inline bool property_holds(const struct random_world *r, property_fn *holds, struct buf *why)
{
    static const int ends[] = { SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL };
    int fds[2], status = 0;
    if (!getenv("KARVE_FORK"))
        return holds(r, why);
    EXPECT_EQ(pipe(fds), 0);
    pid_t child = fork();
    EXPECT_TRUE(child >= 0);
    if (child == 0) {
        for (size_t i = 0; i < KV_COUNT_OF(ends); i++)
            signal(ends[i], SIG_DFL);
        bool held = holds(r, why);
        _exit(held || write(fds[1], buf_str(why).p, why->len) < 0 ? 0 : 1);
    }
    close(fds[1]);
    char text[4096];
    for (ssize_t n; (n = read(fds[0], text, sizeof text)) > 0;)
        buf_add(why, (struct str){ text, (size_t)n });
    close(fds[0]);
    EXPECT_EQ(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status))
        buf_addf(why, PROPERTY_ENDED " with signal %d\n", WTERMSIG(status));
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* And in the same way: a wrong plan does not shrink to a crash. */
static inline bool still_fails(const struct random_world *r, property_fn *holds, bool ended)
{
    AUTO_BUF why = { 0 };
    return random_world_is_valid(r) && !property_holds(r, holds, &why) &&
           str_starts(buf_str(&why), STR(PROPERTY_ENDED)) == ended;
}

static inline bool shrink_once(struct random_world *r, property_fn *holds, bool ended)
{
    bool smaller = false;
    for (size_t i = r->things.count; i-- > 0;) {
        struct thing *t = &r->things.items[i];
        if (t->off)
            continue;
        t->off = true;
        if (still_fails(r, holds, ended)) {
            smaller = true;
            continue;
        }
        t->off = false;
        while (t->copies > 1) {
            t->copies--;
            if (!still_fails(r, holds, ended)) {
                t->copies++;
                break;
            }
            smaller = true;
        }
        for (uint32_t p = 0; p < t->part_count; p++) {
            if (t->parts[p].off)
                continue;
            t->parts[p].off = true;
            if (still_fails(r, holds, ended))
                smaller = true;
            else
                t->parts[p].off = false;
        }
    }
    return smaller;
}

static inline void property_tell(struct random_world *r, property_fn *holds, const char *name)
{
    AUTO_BUF first = { 0 }, why = { 0 };
    property_holds(r, holds, &first);
    while (shrink_once(r, holds, str_starts(buf_str(&first), STR(PROPERTY_ENDED))))
        ;
    property_holds(r, holds, &why);
    struct random_text text = random_world_text(r, 1, true, "");
    fprintf(stderr,
            "%s does not hold for seed %" PRIu64 " (KARVE_SEED=%" PRIu64
            "); what is left of its world:\n%s\n%s\n%s\n",
            name, r->seed, r->seed, buf_str(&text.objects).p, text.catalogue.p, buf_str(&why).p);
    random_text_done(&text);
}

/* An assertion of ours ends the program: say which world it was. */
static uint64_t property_seed;

static inline void property_aborted(int signal_number)
{
    char line[128];
    int len =
        snprintf(line, sizeof line,
                 "# seed %" PRIu64 " ends the program: try KARVE_FORK=1 KARVE_SEED=%" PRIu64 "\n",
                 property_seed, property_seed);
    ssize_t n = write(STDERR_FILENO, line, (size_t)len);
    (void)n;
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static inline uint64_t property_env(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    int64_t n;
    return text && str_to_i64(str_of(text), &n) ? (uint64_t)n : otherwise;
}

/* For TEST_ROUNDS(count) worlds, or for those that the environment asks for. Returns how many of
 * them it does not hold for, at most `tolerated`: one more fails the test. */
static inline uint64_t property_check_but(const char *name, bool tiny, uint64_t count,
                                          property_fn *holds, uint64_t tolerated)
{
    uint64_t first = property_env("KARVE_SEED", 1), broken = 0;
    uint64_t seeds = property_env("KARVE_SEEDS", TEST_ROUNDS(count));
    if (getenv("KARVE_SEED")) {
        seeds = 1;
        tolerated = 0;
    }
    signal(SIGABRT, property_aborted);
    for (uint64_t seed = first; seed < first + seeds && broken <= tolerated; seed++) {
        struct random_world r;
        AUTO_BUF why = { 0 };
        property_seed = seed;
        random_world_init(&r, seed, tiny);
        if (!property_holds(&r, holds, &why) && ++broken > tolerated)
            property_tell(&r, holds, name);
        random_world_done(&r);
    }
    signal(SIGABRT, SIG_DFL);
    if (broken > tolerated)
        fail();
    return broken;
}

static inline void property_check(const char *name, bool tiny, uint64_t count, property_fn *holds)
{
    property_check_but(name, tiny, count, holds, 0);
}

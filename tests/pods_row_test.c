/* The word that `karve pods` has for a pod, and the numbers beside it. */
#include "cmd/pods_inner.h"
#include "codec/duration.h"
#include "codec/yaml.h"
#include "support/test.h"

#include <stdio.h>

/* Of flow YAML, which needs fewer quotes than JSON. The row does not point into it. */
static struct pod_row row_of(struct arena *arena, const char *text)
{
    struct docs docs;
    struct text_pos at;
    struct err err;
    struct pod_row row;
    EXPECT_OK(yaml_read(str_of(text), &docs, &at, &err), err);
    pod_row_read(arena, docs.items[0].root, &row);
    docs_done(&docs);
    return row;
}

struct example {
    const char *pod, *status, *ready;
    int restarts;
};

static void expect_rows(const struct example *examples, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        AUTO_ARENA arena = { 0 };
        char ready[32];
        struct pod_row row = row_of(&arena, examples[i].pod);
        printf("# %s\n", examples[i].pod);
        snprintf(ready, sizeof ready, "%u/%u", row.ready_count, row.container_count);
        EXPECT_STR(row.status, examples[i].status);
        EXPECT_Z(ready, examples[i].ready);
        EXPECT_EQ(row.restart_count, examples[i].restarts);
    }
}

#define RUN(status) "{worker: {state: Syncing}, status: {" status "}}"
#define READY "conditions: [{type: Initialized, status: 'True'}, {type: Ready, status: 'True'}]"
#define INITIALIZED "conditions: [{type: Initialized, status: 'True'}]"
#define UP(name) "{name: " name ", ready: true, started: true, state: {running: {}}}"
#define UNREADY(name) "{name: " name ", state: {running: {}}}"
#define OVER(name, end) "{name: " name ", state: {terminated: {" end "}}}"
#define WAITS(name, why) "{name: " name ", state: {waiting: {reason: " why "}}}"

TEST(a_pod_that_we_run_has_the_word_that_kubectl_would_show)
{
    static const struct example examples[] = {
        { "{worker: {state: Waiting}}", "Pending", "0/0", 0 },
        { RUN("phase: Pending, containerStatuses: [" WAITS("a", "ContainerCreating") "]"),
          "ContainerCreating", "0/1", 0 },
        { RUN("phase: Pending, containerStatuses: [" WAITS("a", "ErrImagePull") "]"),
          "ErrImagePull", "0/1", 0 },
        { RUN("phase: Running, " READY ", containerStatuses: [" UP("a") ", " UP("b") "]"),
          "Running", "2/2", 0 },
        { RUN("phase: Running, containerStatuses: [" UP("a") ", " UNREADY("b") "]"), "Running",
          "1/2", 0 },
        { RUN("phase: Running, containerStatuses: [{name: a, restartCount: 4, state: {waiting: "
              "{reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1, finishedAt: "
              "'2026-01-02T15:04:05Z'}}}, " UP("b") "]"),
          "CrashLoopBackOff", "1/2", 4 },
        { RUN("phase: Running, containerStatuses: [" OVER("a",
                                                          "exitCode: 137, reason: OOMKilled") "]"),
          "OOMKilled", "0/1", 0 },
        { RUN("phase: Running, containerStatuses: [" OVER("a", "exitCode: 7") "]"), "ExitCode:7",
          "0/1", 0 },
        { RUN("phase: Running, containerStatuses: [" OVER("a", "exitCode: 137, signal: 9") "]"),
          "Signal:9", "0/1", 0 },
        { RUN("phase: Running, " READY ", containerStatuses: [" OVER(
              "a", "exitCode: 0, reason: Completed") ", " UP("b") "]"),
          "Running", "1/2", 0 },
        { RUN("phase: Running, containerStatuses: [" OVER(
              "a", "exitCode: 0, reason: Completed") ", " UP("b") "]"),
          "NotReady", "1/2", 0 },
        { RUN("phase: Succeeded, containerStatuses: [" OVER("a",
                                                            "exitCode: 0, reason: Completed") "]"),
          "Completed", "0/1", 0 },
        { RUN("phase: Failed, reason: DeadlineExceeded"), "DeadlineExceeded", "0/0", 0 },
    };
    expect_rows(examples, KV_COUNT_OF(examples));
}

TEST(init_containers_are_counted_until_all_are_over_and_sidecars_count_as_regular)
{
#define MAIN_WAITS "containerStatuses: [" WAITS("m", "PodInitializing") "]"
    static const struct example examples[] = {
        { RUN("phase: Pending, initContainerStatuses: [" UNREADY("a") ", " WAITS(
              "b", "PodInitializing") "], " MAIN_WAITS),
          "Init:0/2", "0/1", 0 },
        { RUN("phase: Pending, initContainerStatuses: [" OVER("a", "exitCode: 0") ", " UNREADY(
              "b") "], " MAIN_WAITS),
          "Init:1/2", "0/1", 0 },
        { RUN("phase: Pending, initContainerStatuses: [" OVER(
              "a", "exitCode: 3, reason: Error") "], " MAIN_WAITS),
          "Init:Error", "0/1", 0 },
        { RUN("phase: Pending, initContainerStatuses: [{name: a, restartCount: 2, state: "
              "{waiting: {reason: CrashLoopBackOff}}}], " MAIN_WAITS),
          "Init:CrashLoopBackOff", "0/1", 2 },
        { RUN("phase: Pending, initContainerStatuses: [" UP("side") ", " UNREADY(
              "b") "], " MAIN_WAITS),
          "Init:1/2", "1/2", 0 },
        { RUN("phase: Running, " READY ", initContainerStatuses: [" OVER(
              "a", "exitCode: 0") ", " UP("side") "], containerStatuses: [" UP("m") "]"),
          "Running", "2/2", 0 },
        { RUN("phase: Running, " INITIALIZED ", initContainerStatuses: [" OVER(
              "a", "exitCode: 0") "], containerStatuses: [" UNREADY("m") "]"),
          "Running", "0/1", 0 },
    };
    expect_rows(examples, KV_COUNT_OF(examples));
}

TEST(a_pod_that_ends_before_its_time_is_terminating)
{
#define END(state, phase)                                                                          \
    "{worker: {state: " state "}, status: {phase: " phase                                          \
    ", containerStatuses: [" OVER("a", "exitCode: 0, reason: Completed") "]}}"
    static const struct example examples[] = {
        { END("Terminating", "Running"), "Terminating", "0/1", 0 },
        { END("Terminated", "Running"), "Terminating", "0/1", 0 },
        { END("Terminating", "Succeeded"), "Completed", "0/1", 0 },
        { END("Finished", "Succeeded"), "Completed", "0/1", 0 },
    };
    expect_rows(examples, KV_COUNT_OF(examples));
}

#define SEEN(ready, containers)                                                                    \
    "{sandboxes: [{ready: " ready                                                                  \
    ", createdAt: '2026-01-02T15:04:05Z'}], containers: [" containers "]}"
#define AT(second) "'2026-01-02T15:04:" second "Z'"
#define INSTANCE(name, state, more) "{name: " name ", state: " state more "}"

TEST(of_a_pod_that_somebody_else_runs_the_newest_instances_tell)
{
    static const struct example examples[] = {
        { "{error: no answer}", "Unknown", "0/0", 0 },
        { SEEN("true", ""), "ContainerCreating", "0/0", 0 },
        { SEEN("false", ""), "NotReady", "0/0", 0 },
        { SEEN("true", INSTANCE("a", "created", "")), "ContainerCreating", "0/1", 0 },
        { SEEN("true", INSTANCE("a", "running", "")), "Running", "1/1", 0 },
        { SEEN("true", INSTANCE("a", "unknown", "")), "Unknown", "0/1", 0 },
        { SEEN("true", INSTANCE("a", "exited", ", exitCode: 3")), "Error", "0/1", 0 },
        { SEEN("true", INSTANCE("a", "exited", ", exitCode: 137, reason: OOMKilled")), "OOMKilled",
          "0/1", 0 },
        { SEEN("false", INSTANCE("a", "exited", ", exitCode: 0")), "Completed", "0/1", 0 },
        { SEEN("true", INSTANCE("a", "running", ", restartCount: 2") ", " INSTANCE(
                           "a", "exited", ", exitCode: 1, restartCount: 1")),
          "Running", "1/1", 2 },
        { SEEN("true", INSTANCE("b", "running", "") ", " INSTANCE("a", "exited", ", exitCode: 1")),
          "Error", "1/2", 0 },
    };
    expect_rows(examples, KV_COUNT_OF(examples));
}

TEST(what_succeeded_before_another_was_first_made_is_taken_for_an_init_container)
{
    static const struct example examples[] = {
        { SEEN("true", INSTANCE("main", "running", ", createdAt: " AT("12")) ", " INSTANCE(
                           "init", "exited", ", exitCode: 0, finishedAt: " AT("11"))),
          "Running", "1/1", 0 },
        /* It ended after the other was made: one of two. */
        { SEEN("true", INSTANCE("main", "running", ", createdAt: " AT("10")) ", " INSTANCE(
                           "job", "exited", ", exitCode: 0, finishedAt: " AT("11"))),
          "NotReady", "1/2", 0 },
        /* The other was made anew, which says nothing about when it was made first. */
        { SEEN("true",
               INSTANCE("main", "running", ", restartCount: 1, createdAt: " AT("12")) ", " INSTANCE(
                   "job", "exited", ", exitCode: 0, finishedAt: " AT("11"))),
          "NotReady", "1/2", 1 },
    };
    expect_rows(examples, KV_COUNT_OF(examples));
}

TEST(containers_the_last_change_and_restarts_are_told_with_exit_codes_and_times)
{
    AUTO_ARENA arena = { 0 };
    struct pod_row row = row_of(
        &arena,
        SEEN("true",
             INSTANCE("a", "running", ", restartCount: 1, startedAt: " AT("30")) ", " INSTANCE(
                 "b", "exited",
                 ", exitCode: 137, reason: OOMKilled, finishedAt: " AT(
                     "20")) ", " INSTANCE("a", "exited", ", exitCode: 2, finishedAt: " AT("29"))));
    int64_t born_us;
    EXPECT_EQ(time_parse(STR("2026-01-02T15:04:05Z"), &born_us, NULL), 0);
    EXPECT_STR(row.containers, "b=exited(137,OOMKilled) a=running");
    EXPECT_STR(row.change, "a started");
    EXPECT_EQ(row.born_us, born_us);
    EXPECT_EQ(row.changed_us, born_us + 25 * 1000000);
    EXPECT_EQ(row.restarted_us, born_us + 24 * 1000000);

    struct str cells[POD_COLUMNS_WIDE];
    pod_row_cells(&arena, &row, STR("node-1"), born_us + 85 * 1000000, false, cells);
    EXPECT_STR(cells[4], "1 (1m1s ago)");
    EXPECT_STR(cells[5], "1m25s");
    EXPECT_STR(cells[9], "a started (1m ago)");
    pod_row_cells(&arena, &row, STR("node-1"), 0, false, cells);
    EXPECT_STR(cells[4], "1"); /* nothing that changes by itself */
    EXPECT_STR(cells[5], "-");
}

TEST(a_container_that_waits_for_its_restart_shows_how_it_ended)
{
    AUTO_ARENA arena = { 0 };
    struct pod_row row =
        row_of(&arena, RUN("phase: Running, containerStatuses: [{name: a, restartCount: 1, state: "
                           "{waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: "
                           "{exitCode: 3, finishedAt: '2026-01-02T15:04:05Z'}}}]"));
    EXPECT_STR(row.containers, "a=waiting(CrashLoopBackOff)");
    EXPECT_STR(row.change, "a exited 3");
}

TEST(addresses_are_the_pods_or_say_that_they_are_the_hosts)
{
    AUTO_ARENA arena = { 0 };
    EXPECT_STR(row_of(&arena, "{ips: [10.0.0.1, 'fd00::1']}").ip, "10.0.0.1");
    EXPECT_STR(row_of(&arena, "{ips: [], status: {podIP: 10.0.0.2}}").ip, "10.0.0.2");
    EXPECT_STR(row_of(&arena, "{sandboxes: [{hostNetwork: true}]}").ip, "(host)");
    EXPECT_STR(row_of(&arena, "{}").ip, "-");
}

TEST(nothing_that_a_terminal_obeys_gets_through)
{
    AUTO_ARENA arena = { 0 };
    struct pod_row row =
        row_of(&arena, "{name: \"a\\e[31mb\\x7f\\u009b\", namespace: \"ö\\n\", error: \"x\\ty\", "
                       "containers: [{name: \"c\\e\", state: running}]}");
    EXPECT_STR(row.name, "a?[31mb??");
    EXPECT_STR(row.namespace_, "ö?");
    EXPECT_STR(row.trouble, "x?y");
    EXPECT_STR(row.containers, "c?=running");
}

TEST(any_shape_of_json_gives_a_row)
{
    static const char *const texts[] = {
        "[]",
        "3",
        "{containers: 3}",
        "{containers: [3, {}, []]}",
        "{sandboxes: [3]}",
        "{worker: 3}",
        "{worker: {}, status: [1]}",
        "{worker: {}, status: {conditions: {}}}",
        RUN("containerStatuses: [{state: 3}, 4], initContainerStatuses: [[]]"),
        RUN("containerStatuses: [{restartCount: x, state: {terminated: {finishedAt: never}}}]"),
    };
    for (size_t i = 0; i < KV_COUNT_OF(texts); i++) {
        AUTO_ARENA arena = { 0 };
        EXPECT_TRUE(row_of(&arena, texts[i]).status.len > 0);
    }
}

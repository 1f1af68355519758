#include "node/container_gc.h"
#include "node/runtime_testing.h"
#include "support/test.h"

static bool over(void *ctx, struct str uid)
{
    return ctx && str_eqz(uid, ctx);
}

/* "c: a-0 b-1; s: s1" of one pod; the status is released. */
static struct str plan_words(struct arena *arena, const struct runtime_status *status,
                             const char *over_uid)
{
    const struct runtime_status *items[] = { status };
    struct pod_cache_all all = { .items = items, .count = 1 };
    struct container_gc_plan plan = container_gc_plan(arena, &all, over, (void *)over_uid);
    AUTO_BUF out = { 0 };
    for (uint32_t i = 0; i < plan.containers.count; i++)
        buf_addf(&out, " %.*s", STR_ARG(plan.containers.items[i]));
    buf_addz(&out, " /");
    for (uint32_t i = 0; i < plan.sandboxes.count; i++)
        buf_addf(&out, " %.*s", STR_ARG(plan.sandboxes.items[i]));
    runtime_status_unref(status);
    return arena_str(arena, str_sub(buf_str(&out), 1, out.len));
}

TEST(of_each_name_the_newest_dead_instance_stays)
{
    AUTO_ARENA arena = { 0 };
    EXPECT_STR(plan_words(&arena,
                          runtime_made("uid-1", a_sandbox("s1"),
                                       a_container("a", RUNTIME_RUNNING, .restarts = 3),
                                       a_container("b", RUNTIME_EXITED, .restarts = 2),
                                       a_container("a", RUNTIME_EXITED, .restarts = 2),
                                       a_container("b", RUNTIME_EXITED, .restarts = 1),
                                       a_container("a", RUNTIME_EXITED, .restarts = 1),
                                       a_container("a", RUNTIME_EXITED)),
                          NULL),
               "b-1 a-1 a-0 /");
}

TEST(what_runs_is_never_removed)
{
    AUTO_ARENA arena = { 0 };
    EXPECT_STR(plan_words(&arena,
                          runtime_made("uid-1", a_sandbox("s1"),
                                       a_container("a", RUNTIME_RUNNING, .restarts = 1),
                                       a_container("a", RUNTIME_RUNNING)),
                          "uid-1"),
               "/");
}

TEST(a_created_instance_stays_while_its_worker_may_be_about_to_start_it)
{
    AUTO_ARENA arena = { 0 };
    EXPECT_STR(plan_words(&arena,
                          runtime_made("uid-1", a_sandbox("s1"),
                                       a_container("a", RUNTIME_CREATED, .restarts = 2),
                                       a_container("a", RUNTIME_CREATED, .restarts = 1),
                                       a_container("a", RUNTIME_EXITED)),
                          NULL),
               "a-1 /"); /* and the dead one before it is still the newest dead */
}

TEST(all_that_is_dead_of_a_pod_that_is_over_goes)
{
    AUTO_ARENA arena = { 0 };
    EXPECT_STR(
        plan_words(&arena,
                   runtime_made("uid-1", a_sandbox("s1", .not_ready = true),
                                a_container("a", RUNTIME_EXITED), a_container("b", RUNTIME_CREATED),
                                a_container("c", RUNTIME_UNKNOWN)),
                   "uid-1"),
        "a-0 b-0 c-0 / s1");
    EXPECT_STR(plan_words(&arena,
                          runtime_made("uid-1", a_sandbox("s1", .not_ready = true),
                                       a_container("a", RUNTIME_EXITED)),
                          "uid-2"),
               "/");
}

TEST(a_dead_sandbox_goes_when_nothing_that_stays_is_in_it)
{
    AUTO_ARENA arena = { 0 };
    /* The newest of a living pod stays, an older one goes with the last of its containers. */
    EXPECT_STR(plan_words(&arena, runtime_made("uid-1", a_sandbox("s1", .not_ready = true)), NULL),
               "/");
    EXPECT_STR(plan_words(&arena,
                          runtime_made("uid-1", a_sandbox("s2"), a_sandbox("s1", .not_ready = true),
                                       a_container("a", RUNTIME_RUNNING, .restarts = 1),
                                       a_container("a", RUNTIME_EXITED, .in = "s1")),
                          NULL),
               "/");
    EXPECT_STR(plan_words(&arena,
                          runtime_made("uid-1", a_sandbox("s2"), a_sandbox("s1", .not_ready = true),
                                       a_container("a", RUNTIME_EXITED, .restarts = 1),
                                       a_container("a", RUNTIME_EXITED, .in = "s1")),
                          NULL),
               "a-0 / s1");
    /* A READY one is somebody's to stop first. */
    EXPECT_STR(plan_words(&arena, runtime_made("uid-1", a_sandbox("s1")), "uid-1"), "/");
    EXPECT_STR(plan_words(&arena,
                          runtime_made("uid-1", a_sandbox("s1", .not_ready = true),
                                       a_container("a", RUNTIME_RUNNING)),
                          "uid-1"),
               "/");
}

TEST(a_pod_whose_inspection_failed_is_left_alone)
{
    AUTO_ARENA arena = { 0 };
    AUTO_STATUS good = runtime_made("uid-1", a_sandbox("s1", .not_ready = true),
                                    a_container("a", RUNTIME_EXITED, .restarts = 1),
                                    a_container("a", RUNTIME_EXITED));
    struct runtime_pod listed = { .uid = STR("uid-1"), .name = STR("p"), .namespace_ = STR("d") };
    struct err err;
    err_set(&err, ERR_UNAVAILABLE, "no answer");
    AUTO_STATUS failed = runtime_status_failed(good, &listed, 2, &err);
    EXPECT_STR(plan_words(&arena, runtime_status_ref(failed), "uid-1"), "/");
}

TEST(nothing_is_planned_for_nothing)
{
    AUTO_ARENA arena = { 0 };
    struct pod_cache_all all = { 0 };
    struct container_gc_plan plan = container_gc_plan(&arena, &all, over, NULL);
    EXPECT_EQ(plan.containers.count, 0);
    EXPECT_EQ(plan.sandboxes.count, 0);
}

#include "control/pod_latency.h"

#include "codec/duration.h"
#include "control/testing.h"

static const struct stage_options nothing = { 0 };

static bool has_line(struct stage *s, const char *line)
{
    AUTO_BUF text = { 0 };
    metrics_write(s->metrics, &text);
    return strstr(text.p, line) != NULL;
}
#define EXPECT_LINE(s, line) EXPECT_TRUE(has_line((s), (line "\n")))
#define EXPECT_NO(s, words) EXPECT_FALSE(has_line((s), (words)))

static void plan(struct stage *s, const char *name, bool healthy)
{
    AUTO_OBJECT pod = get(s->w->store, &pod_kind, name);
    pod_latency_planned(s->c, pod_of(pod), healthy);
}

static void wait_s(struct stage *s, int seconds)
{
    virtual_clock_advance(s->w->time, seconds * SECOND_NS);
    settle(s);
}

static void condition_now(struct stage *s, const char *name, const char *phase, const char *type)
{
    char when[TIME_TEXT_MAX];
    time_format(clock_wall_us(virtual_clock_port(s->w->time)), when);
    object_unref(merge_status(s->w->store, &pod_kind, name,
                              js("{'status':{'phase':'%s','conditions':[{'type':'%s',"
                                 "'status':'True','lastTransitionTime':'%s'}]}}",
                                 phase, type, when)));
    settle(s);
}

static void bind_now(struct stage *s, const char *name)
{
    bind_pod(s->w->store, name, "node-1");
    condition_now(s, name, "Pending", "PodScheduled");
}

TEST(a_pod_is_measured_from_its_creation_until_it_is_bound_and_runs)
{
    AUTO(stage) s = stage_new(nothing);
    make_pending(s, "web", "1");
    settle(s);
    wait_s(s, 3);
    EXPECT_LINE(s, "karpenter_pods_unbound_time_seconds{name=\"web\",namespace=\"default\"} 3");
    bind_now(s, "web");
    EXPECT_LINE(s, "karpenter_pods_bound_duration_seconds_sum 3");
    EXPECT_NO(s, "karpenter_pods_unbound_time_seconds{");
    wait_s(s, 4);
    EXPECT_LINE(s, "karpenter_pods_unstarted_time_seconds{name=\"web\",namespace=\"default\"} 7");
    condition_now(s, "web", "Running", "Ready");
    EXPECT_LINE(s, "karpenter_pods_startup_duration_seconds_sum 7");
    EXPECT_LINE(s, "karpenter_pods_startup_duration_seconds_count 1");
    EXPECT_NO(s, "karpenter_pods_unstarted_time_seconds{");
}

TEST(a_pod_planned_on_a_healthy_pool_is_measured_from_its_plan)
{
    AUTO(stage) s = stage_new(nothing);
    make_pending(s, "web", "1");
    settle(s);
    wait_s(s, 2);
    EXPECT_LINE(s, "karpenter_pods_provisioning_scheduling_undecided_time_seconds{"
                   "name=\"web\",namespace=\"default\"} 2");
    plan(s, "web", true);
    EXPECT_LINE(s, "karpenter_pods_scheduling_decision_duration_seconds_sum 2");
    wait_s(s, 5);
    plan(s, "web", true); /* a later pass finds the same: the first counts */
    EXPECT_LINE(s, "karpenter_pods_provisioning_unbound_time_seconds{"
                   "name=\"web\",namespace=\"default\"} 5");
    bind_now(s, "web");
    wait_s(s, 1);
    condition_now(s, "web", "Running", "Ready");
    EXPECT_LINE(s, "karpenter_pods_provisioning_bound_duration_seconds_sum 5");
    EXPECT_LINE(s, "karpenter_pods_provisioning_startup_duration_seconds_sum 6");
    EXPECT_LINE(s, "karpenter_pods_scheduling_decision_duration_seconds_count 1");
}

TEST(a_pod_planned_on_a_pool_whose_nodes_may_not_join_is_not_measured)
{
    AUTO(stage) s = stage_new(nothing);
    make_pending(s, "web", "1");
    settle(s);
    plan(s, "web", true);
    plan(s, "web", false); /* it went to another pool after all */
    wait_s(s, 5);
    EXPECT_NO(s, "karpenter_pods_provisioning_unbound_time_seconds{");
    bind_now(s, "web");
    EXPECT_LINE(s, "karpenter_pods_provisioning_bound_duration_seconds_count 0");
    EXPECT_LINE(s, "karpenter_pods_bound_duration_seconds_count 1");
}

TEST(a_pod_that_fits_nowhere_is_decided_and_has_no_plan)
{
    AUTO(stage) s = stage_new(nothing);
    make_pending(s, "web", "1");
    settle(s);
    AUTO_OBJECT pod = get(s->w->store, &pod_kind, "web");
    plan(s, "web", true);
    pod_latency_undecided(s->c, pod_of(pod));
    wait_s(s, 5);
    EXPECT_NO(s, "karpenter_pods_provisioning_scheduling_undecided_time_seconds{");
    EXPECT_NO(s, "karpenter_pods_provisioning_unbound_time_seconds{");
}

TEST(pods_that_go_are_forgotten)
{
    AUTO(stage) s = stage_new(nothing);
    make_pending(s, "web", "1");
    settle(s);
    EXPECT_TRUE(has_line(s, "karpenter_pods_unbound_time_seconds{"));
    remove_it(s->w->store, &pod_kind, "web");
    settle(s);
    EXPECT_NO(s, "karpenter_pods_unbound_time_seconds{");
}

TEST(what_happened_before_the_start_is_not_measured)
{
    AUTO(stage) s = stage_new(nothing);
    make_pending(s, "bound", "1");
    settle(s);
    bind_now(s, "bound");
    run_pod(s->w->store, "running", "");
    stage_restart(s);
    settle(s);
    wait_s(s, 9);
    condition_now(s, "bound", "Running", "Ready");
    EXPECT_LINE(s, "karpenter_pods_bound_duration_seconds_count 1");
    EXPECT_LINE(s, "karpenter_pods_startup_duration_seconds_count 1");
}

#include "control/drain.h"

#include "base/vec.h"
#include "control/drain_testing.h"

#define T_US (START_US + 600 * SECOND_US) /* the deadline, where there is one */

/* Pods that are made with few words. */
struct sketch {
    const char *meta; /* of metadata, with a comma before */
    const char *spec, *status;
};

#define OWNED_BY(kind)                                                                             \
    ",'ownerReferences':[{'apiVersion':'v1','kind':'" kind "','name':'o','uid':'u'}]"
#define CRITICAL ",'priorityClassName':'system-node-critical'"
#define RUNNING "'phase':'Running'"
#define GOING(at, grace) ",'deletionTimestamp':'" at "','deletionGracePeriodSeconds':" grace

struct yard {
    struct object_pool *pool;
    VEC(const struct object *) pods;
};

static struct yard *yard_new(void)
{
    struct yard *y = kv_calloc(1, sizeof *y);
    y->pool = object_pool_new();
    return y;
}

static void yard_free(struct yard *y)
{
    vec_each(&y->pods, const struct object *, it)
        object_unref(*it);
    vec_done(&y->pods);
    object_pool_free(y->pool);
    free(y);
}
KV_AUTO_TYPE(yard, yard_free)

static const struct pod *add(struct yard *y, const char *name, struct sketch s)
{
    vec_push(
        &y->pods,
        read_pod(y->pool,
                 js("{'metadata':{'name':'%s','namespace':'default'%s},'spec':{'containers':[],"
                    "'nodeName':'n','terminationGracePeriodSeconds':30%s},'status':{%s}}",
                    name, s.meta ? s.meta : "", s.spec ? s.spec : "",
                    s.status ? s.status : RUNNING)));
    return pod_of(vec_last(&y->pods));
}

static enum drain_action action_of(struct sketch s, int64_t now_us, int64_t deadline_us)
{
    AUTO(yard) y = yard_new();
    return drain_judge(add(y, "p", s), now_us, deadline_us).action;
}

/* "evict a b; force c; 3 wait" */
static const char *plan_words(struct yard *y, int64_t now_us, int64_t deadline_us)
{
    static char text[400];
    AUTO_ARENA arena = { 0 };
    AUTO_BUF out = { 0 };
    struct drain drain;

    drain_plan(&arena, y->pods.items, y->pods.count, now_us, deadline_us, &drain);
    buf_addz(&out, "evict");
    for (uint32_t i = 0; i < drain.evict_count; i++)
        buf_addf(&out, " %.*s", STR_ARG(drain.evict[i]->object.meta.name));
    buf_addz(&out, "; force");
    for (uint32_t i = 0; i < drain.force_count; i++)
        buf_addf(&out, " %.*s", STR_ARG(drain.force[i]->object.meta.name));
    buf_addf(&out, "; %u wait", drain.waiting_count);
    snprintf(text, sizeof text, "%s", out.p);
    return text;
}

static const char *plan_now(struct yard *y)
{
    return plan_words(y, START_US, DRAIN_NO_DEADLINE);
}

/* --- classes --- */

TEST(a_running_pod_is_evicted)
{
    EXPECT_EQ(action_of((struct sketch){ 0 }, START_US, DRAIN_NO_DEADLINE), DRAIN_EVICT);
    EXPECT_EQ(
        action_of((struct sketch){ .status = "'phase':'Pending'" }, START_US, DRAIN_NO_DEADLINE),
        DRAIN_EVICT);
}

TEST(a_pod_that_has_ended_is_nobody_to_wait_for)
{
    EXPECT_EQ(action_of((struct sketch){ .status = "'phase':'Succeeded'" }, START_US, T_US),
              DRAIN_IGNORE);
    EXPECT_EQ(action_of((struct sketch){ .status = "'phase':'Failed'" }, START_US, T_US),
              DRAIN_IGNORE);
}

TEST(a_pod_that_tolerates_the_disrupted_taint_stays)
{
    static const char *const tolerations[] = {
        ",'tolerations':[{'operator':'Exists'}]",
        ",'tolerations':[{'key':'karpenter.sh/disrupted','operator':'Exists'}]",
        ",'tolerations':[{'key':'karpenter.sh/disrupted','effect':'NoSchedule'}]",
    };
    for (size_t i = 0; i < KV_COUNT_OF(tolerations); i++)
        EXPECT_EQ(action_of((struct sketch){ .spec = tolerations[i] }, T_US, T_US), DRAIN_IGNORE);
    EXPECT_EQ(action_of((struct sketch){ .spec = ",'tolerations':[{'key':'karpenter.sh/disrupted',"
                                                 "'operator':'Exists','effect':'NoExecute'}]" },
                        START_US, T_US),
              DRAIN_EVICT);
}

TEST(mirror_pods_and_pods_of_the_node_stay)
{
    EXPECT_EQ(action_of((struct sketch){ .meta = OWNED_BY("Node") }, T_US, T_US), DRAIN_IGNORE);
    EXPECT_EQ(action_of((struct sketch){ .meta = ",'annotations':{"
                                                 "'kubernetes.io/config.mirror':'h'}" },
                        T_US, T_US),
              DRAIN_IGNORE);
}

TEST(a_terminating_pod_is_waited_for_until_it_is_stuck_a_minute_after_its_time)
{
    struct sketch going = { .meta = GOING("2026-01-02T03:00:30Z", "30") };
    AUTO(yard) y = yard_new();
    const struct pod *pod = add(y, "p", going);
    int64_t stuck_us = START_US + 90 * SECOND_US;

    EXPECT_EQ(drain_judge(pod, START_US, DRAIN_NO_DEADLINE).action, DRAIN_WAIT);
    EXPECT_EQ(drain_judge(pod, START_US, DRAIN_NO_DEADLINE).next_us, stuck_us);
    EXPECT_EQ(drain_judge(pod, stuck_us - 1, DRAIN_NO_DEADLINE).action, DRAIN_WAIT);
    EXPECT_EQ(drain_judge(pod, stuck_us, DRAIN_NO_DEADLINE).action, DRAIN_IGNORE);
}

TEST(do_not_disrupt_protects_until_it_is_over)
{
    AUTO(yard) y = yard_new();
    const struct pod *pod =
        add(y, "p",
            (struct sketch){ .meta = ",'annotations':{'karpenter.sh/do-not-disrupt':'5m'}",
                             .status = RUNNING ",'startTime':'2026-01-02T03:00:00Z'" });
    int64_t end_us = START_US + 300 * SECOND_US;

    EXPECT_EQ(drain_judge(pod, START_US, DRAIN_NO_DEADLINE).action, DRAIN_PROTECTED);
    EXPECT_EQ(drain_judge(pod, START_US, DRAIN_NO_DEADLINE).next_us, end_us);
    EXPECT_EQ(drain_judge(pod, end_us, DRAIN_NO_DEADLINE).action, DRAIN_EVICT);
}

/* --- tiers --- */

TEST(tiers_go_plain_then_daemons_then_critical_then_critical_daemons)
{
    static const struct sketch tiers[DRAIN_TIER_COUNT] = {
        { 0 },
        { .meta = OWNED_BY("DaemonSet") },
        { .spec = CRITICAL },
        { .meta = OWNED_BY("DaemonSet"), .spec = CRITICAL },
    };
    static const char *const names[] = { "plain", "daemon", "critical", "both" };

    /* Every set of tiers in which a pod waits: the first of them has its turn. */
    for (unsigned set = 1; set < 1U << DRAIN_TIER_COUNT; set++) {
        AUTO(yard) y = yard_new();
        char want[60];
        for (unsigned i = DRAIN_TIER_COUNT; i-- > 0;) { /* the last tier first in the list */
            if (set >> i & 1)
                add(y, names[i], tiers[i]);
        }
        snprintf(want, sizeof want, "evict %s; force; %d wait", names[__builtin_ctz(set)],
                 __builtin_popcount(set));
        EXPECT_Z(plan_now(y), want);
    }
}

TEST(cluster_critical_and_node_critical_are_one_tier)
{
    AUTO(yard) y = yard_new();
    add(y, "a", (struct sketch){ .spec = ",'priorityClassName':'system-cluster-critical'" });
    add(y, "b", (struct sketch){ .spec = CRITICAL });
    EXPECT_Z(plan_now(y), "evict a b; force; 2 wait");
}

TEST(a_tier_has_its_turn_until_its_last_pod_is_gone_and_not_only_terminating)
{
    AUTO(yard) y = yard_new();
    add(y, "going", (struct sketch){ .meta = GOING("2026-01-02T03:00:30Z", "30") });
    add(y, "daemon", (struct sketch){ .meta = OWNED_BY("DaemonSet") });
    EXPECT_Z(plan_now(y), "evict; force; 2 wait");
    EXPECT_Z(plan_words(y, START_US + 90 * SECOND_US, DRAIN_NO_DEADLINE),
             "evict daemon; force; 1 wait");
}

TEST(a_protected_pod_holds_up_the_tiers_after_its_own)
{
    AUTO(yard) y = yard_new();
    AUTO_ARENA arena = { 0 };
    struct drain drain;
    add(y, "kept",
        (struct sketch){ .meta = ",'annotations':{'karpenter.sh/do-not-disrupt':'true'}" });
    add(y, "daemon", (struct sketch){ .meta = OWNED_BY("DaemonSet") });
    add(y, "plain", (struct sketch){ 0 });
    EXPECT_Z(plan_now(y), "evict plain; force; 3 wait");
    drain_plan(&arena, y->pods.items, y->pods.count, START_US, DRAIN_NO_DEADLINE, &drain);
    EXPECT_EQ(drain.protected_count, 1);
    EXPECT_STR(drain.maybe_protected->object.meta.name, "kept");
}

TEST(a_node_with_pods_that_stay_or_have_ended_is_drained)
{
    AUTO(yard) y = yard_new();
    EXPECT_Z(plan_now(y), "evict; force; 0 wait");
    add(y, "static", (struct sketch){ .meta = OWNED_BY("Node") });
    add(y, "job", (struct sketch){ .status = "'phase':'Succeeded'" });
    add(y, "agent", (struct sketch){ .spec = ",'tolerations':[{'operator':'Exists'}]" });
    EXPECT_Z(plan_now(y), "evict; force; 0 wait");
}

/* --- the deadline --- */

TEST(a_pod_is_forced_when_its_grace_would_reach_beyond_the_deadline)
{
    AUTO(yard) y = yard_new();
    const struct pod *pod = add(y, "p", (struct sketch){ 0 });
    int64_t from_us = T_US - 30 * SECOND_US;

    EXPECT_EQ(drain_judge(pod, from_us - 1, T_US).action, DRAIN_EVICT);
    EXPECT_EQ(drain_judge(pod, from_us - 1, T_US).next_us, from_us);
    EXPECT_EQ(drain_judge(pod, from_us, T_US).action, DRAIN_FORCE);
    EXPECT_EQ(drain_judge(pod, T_US + SECOND_US, T_US).action, DRAIN_FORCE);
}

TEST(force_takes_pods_of_every_tier_at_once_and_do_not_disrupt_does_not_help)
{
    AUTO(yard) y = yard_new();
    add(y, "kept",
        (struct sketch){ .meta = ",'annotations':{'karpenter.sh/do-not-disrupt':'true'}" });
    add(y, "critical", (struct sketch){ .spec = CRITICAL });
    add(y, "agent", (struct sketch){ .spec = ",'tolerations':[{'operator':'Exists'}]" });
    EXPECT_Z(plan_words(y, T_US - 31 * SECOND_US, T_US), "evict; force; 2 wait");
    EXPECT_Z(plan_words(y, T_US - 30 * SECOND_US, T_US), "evict; force kept critical; 2 wait");
}

TEST(a_terminating_pod_that_would_outlive_the_deadline_is_made_shorter_once)
{
    /* Its end at T + 10 s; of its grace of 40 s, 30 are left before T. */
    struct sketch late = { .meta = GOING("2026-01-02T03:10:10Z", "40") };
    EXPECT_EQ(action_of(late, T_US - 30 * SECOND_US, T_US), DRAIN_FORCE);
    struct sketch in_time = { .meta = GOING("2026-01-02T03:10:00Z", "40") };
    EXPECT_EQ(action_of(in_time, T_US - 30 * SECOND_US, T_US), DRAIN_WAIT);
    /* As short as it can be made. */
    struct sketch shortened = { .meta = GOING("2026-01-02T03:10:11Z", "1") };
    EXPECT_EQ(action_of(shortened, T_US + 10 * SECOND_US, T_US), DRAIN_WAIT);
}

TEST(a_forced_pod_gets_the_seconds_that_are_left_and_at_least_one)
{
    EXPECT_EQ(drain_forced_grace_s(T_US - 30 * SECOND_US, T_US), 30);
    EXPECT_EQ(drain_forced_grace_s(T_US - 30 * SECOND_US + 1, T_US), 29);
    EXPECT_EQ(drain_forced_grace_s(T_US - SECOND_US / 2, T_US), 1);
    EXPECT_EQ(drain_forced_grace_s(T_US, T_US), 1);
    EXPECT_EQ(drain_forced_grace_s(T_US + 99 * SECOND_US, T_US), 1);
}

TEST(the_next_look_is_at_the_first_moment_that_changes_something)
{
    AUTO(yard) y = yard_new();
    AUTO_ARENA arena = { 0 };
    struct drain drain;

    add(y, "going", (struct sketch){ .meta = GOING("2026-01-02T03:05:00Z", "300") });
    drain_plan(&arena, y->pods.items, y->pods.count, START_US, DRAIN_NO_DEADLINE, &drain);
    EXPECT_EQ(drain.next_us, START_US + 360 * SECOND_US);
    add(y, "plain", (struct sketch){ 0 });
    drain_plan(&arena, y->pods.items, y->pods.count, START_US, START_US + 100 * SECOND_US, &drain);
    EXPECT_EQ(drain.next_us, START_US + 70 * SECOND_US);
}

TEST(a_grace_beyond_all_measure_does_not_overflow)
{
    AUTO(yard) y = yard_new();
    const struct object *pod =
        read_pod(y->pool, js("{'metadata':{'name':'p'},'spec':{'containers':[],"
                             "'terminationGracePeriodSeconds':9223372036854775807}}"));
    EXPECT_EQ(drain_judge(pod_of(pod), START_US, T_US).action, DRAIN_FORCE);
    object_unref(pod);
}

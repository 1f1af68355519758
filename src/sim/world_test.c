/* Worlds that are small enough to say what must come of them. */
#include "api/conditions.h"
#include "api/kinds.h"
#include "api/node.h"
#include "api/nodeclaim.h"
#include "api/nodepool.h"
#include "api/pod.h"
#include "codec/duration.h"
#include "sim/world.h"
#include "support/test.h"

#include <stdio.h>

#define CLUSTER                                                                                    \
    "objects:\n"                                                                                   \
    "- {apiVersion: karpenter.kwok.sh/v1alpha1, kind: KWOKNodeClass, metadata: {name: default}}\n" \
    "- apiVersion: karpenter.sh/v1\n"                                                              \
    "  kind: NodePool\n"                                                                           \
    "  metadata: {name: default}\n"                                                                \
    "  spec:\n"                                                                                    \
    "    template:\n"                                                                              \
    "      spec:\n"                                                                                \
    "        nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}\n"       \
    "        expireAfter: Never\n"                                                                 \
    "        requirements: [{key: kubernetes.io/os, operator: In, values: [linux]}]\n"             \
    "- apiVersion: apps/v1\n"                                                                      \
    "  kind: Deployment\n"                                                                         \
    "  metadata: {name: web}\n"                                                                    \
    "  spec:\n"                                                                                    \
    "    replicas: 4\n"                                                                            \
    "    selector: {matchLabels: {app: web}}\n"                                                    \
    "    template:\n"                                                                              \
    "      metadata: {labels: {app: web}}\n"                                                       \
    "      spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}\n"           \
    "cloud: {types: kwok, boot: 20s, ready: 5s, terminate: 10s}\n"                                 \
    "cluster: {podStart: 2s, podStop: 2s}\n"

static struct scenario *scenario_of(const char *more)
{
    AUTO_BUF text = { 0 };
    struct scenario *s = NULL;
    struct err err = { 0 };
    buf_addf(&text, "%s%s", CLUSTER, more);
    EXPECT_OK(scenario_parse("test.yaml", buf_str(&text), &s, &err), err);
    return s;
}

static struct world *world_of(const struct scenario *s, uint64_t seed)
{
    struct err err = { 0 };
    struct world *w = world_new(
        (struct world_options){ .scenario = s, .seed = seed, .check = true, .doubt = true }, &err);
    if (!w)
        print_error("%s\n", err.text);
    EXPECT_TRUE(w != NULL);
    return w;
}

static void run_to_the_end(struct world *w)
{
    while (world_step(w))
        ;
    const struct finding *wrong = world_broken(w);
    if (wrong)
        print_error("# rule %u, step %u: %.*s\n", wrong->rule, wrong->step, STR_ARG(wrong->what));
    EXPECT_TRUE(wrong == NULL);
}

static uint32_t count_of(struct world *w, const struct kind *kind)
{
    struct object_list list;
    struct err err = { 0 };
    EXPECT_OK(store_list(world_parts(w)->store, kind, NULL, &list, &err), err);
    uint32_t count = (uint32_t)list.count;
    object_list_done(&list);
    return count;
}

static uint32_t running(struct world *w)
{
    struct object_list list;
    struct err err = { 0 };
    uint32_t count = 0;
    EXPECT_OK(store_list(world_parts(w)->store, &pod_kind, NULL, &list, &err), err);
    for (size_t i = 0; i < list.count; i++)
        count += pod_of(list.items[i])->status->phase == PHASE_RUNNING;
    object_list_done(&list);
    return count;
}

/* NodeRegistrationHealthy of the pool. */
static enum condition_status health_of(struct world *w, const char *pool)
{
    AUTO_OBJECT object = NULL;
    struct err err = { 0 };
    struct object_ref ref = { &nodepool_kind, STR(""), str_of(pool) };
    EXPECT_OK(store_get(world_parts(w)->store, ref, &object, &err), err);
    const struct nodepool *p = nodepool_of(object);
    for (uint32_t i = 0; i < p->status.conditions.count; i++) {
        const struct condition *c = &p->status.conditions.items[i];
        if (str_eqz(c->type, "NodeRegistrationHealthy"))
            return c->status;
    }
    return CONDITION_UNSET;
}

TEST(pods_of_a_deployment_get_nodes_and_run)
{
    AUTO(scenario) s = scenario_of("duration: 10m\n");
    AUTO(world) w = world_of(s, 1);
    run_to_the_end(w);
    EXPECT_EQ(running(w), 4);
    EXPECT_TRUE(count_of(w, &node_kind) >= 1);
    EXPECT_EQ(count_of(w, &nodeclaim_kind), count_of(w, &node_kind));
    EXPECT_EQ(health_of(w, "default"), CONDITION_TRUE);
    EXPECT_EQ(clock_mono_ns(world_parts(w)->clock), 10 * DURATION_MINUTE);
}

TEST(the_timeline_happens_in_its_order_and_at_its_time)
{
    AUTO(scenario) s = scenario_of("duration: 30m\n"
                                   "timeline:\n"
                                   "- {at: 10m, scale: {name: web, replicas: 9}}\n"
                                   "- {at: 20m, scale: {name: web, replicas: 2}}\n");
    AUTO(world) w = world_of(s, 1);
    EXPECT_TRUE(world_step(w));
    EXPECT_EQ(world_parts(w)->step, 1);
    EXPECT_EQ(clock_mono_ns(world_parts(w)->clock), 10 * DURATION_MINUTE);
    EXPECT_EQ(running(w), 4);
    EXPECT_TRUE(world_step(w));
    EXPECT_EQ(clock_mono_ns(world_parts(w)->clock), 20 * DURATION_MINUTE);
    EXPECT_EQ(running(w), 9);
    run_to_the_end(w);
    EXPECT_EQ(running(w), 2);
    EXPECT_FALSE(world_step(w));
}

TEST(apply_changes_what_the_text_says_and_takes_away_what_it_no_longer_says)
{
    AUTO(scenario) s = scenario_of(
        "duration: 10m\n"
        "timeline:\n"
        "- {at: 1m, apply: {apiVersion: v1, kind: Namespace, metadata: {name: x, labels: {a: '1', b: '2'}}}}\n"
        "- {at: 2m, apply: {apiVersion: v1, kind: Namespace, metadata: {name: x, labels: {b: '3'}}}}\n");
    AUTO(world) w = world_of(s, 1);
    AUTO_OBJECT object = NULL;
    struct err err = { 0 };
    run_to_the_end(w);
    struct object_ref ref = { &namespace_kind, STR(""), STR("x") };
    EXPECT_OK(store_get(world_parts(w)->store, ref, &object, &err), err);
    EXPECT_TRUE(str_map_get(&object->meta.labels, STR("a")).p == NULL);
    EXPECT_STR(str_map_get(&object->meta.labels, STR("b")), "3");
}

TEST(an_instance_that_dies_is_replaced)
{
    AUTO(scenario) s = scenario_of("duration: 1h\ntimeline:\n- {at: 10m, kill: {count: 100}}\n");
    AUTO(world) w = world_of(s, 1);
    run_to_the_end(w);
    EXPECT_EQ(running(w), 4);
    EXPECT_TRUE(sim_cloud_stats(world_parts(w)->cloud).launches >= 2);
}

TEST(a_drought_sends_pods_elsewhere)
{
    AUTO(scenario) s = scenario_of("duration: 20m\ntimeline:\n"
                                   "- {at: 0s, drought: {zone: test-zone-a}}\n"
                                   "- {at: 0s, drought: {zone: test-zone-b}}\n"
                                   "- {at: 0s, drought: {zone: test-zone-c}}\n");
    AUTO(world) w = world_of(s, 1);
    AUTO_ARENA arena = { 0 };
    uint32_t count;
    run_to_the_end(w);
    EXPECT_EQ(running(w), 4);
    const struct sim_instance *all = sim_cloud_instances(world_parts(w)->cloud, &arena, &count);
    for (uint32_t i = 0; i < count; i++)
        EXPECT_STR(all[i].instance.zone, "test-zone-d");
}

TEST(a_control_plane_that_is_not_up_yet_cannot_be_killed_and_comes_no_later_for_it)
{
    AUTO(scenario) s = scenario_of("duration: 20m\n"
                                   "timeline:\n"
                                   "- {at: 5m, crash: true}\n"
                                   "- {at: 5m, crash: true}\n"
                                   "- {at: 5m, crash: true}\n");
    AUTO(world) w = world_of(s, 1);
    run_to_the_end(w);
    EXPECT_EQ(world_parts(w)->crashes, 1);
}

TEST(a_control_plane_that_is_killed_at_once_or_at_a_call_starts_anew_and_goes_on)
{
    AUTO(scenario) s = scenario_of("duration: 30m\n"
                                   "timeline:\n"
                                   "- {at: 0s, crash: {calls: 5, afterEffect: true}}\n"
                                   "- {at: 10m, crash: true}\n"
                                   "- {at: 11m, scale: {name: web, replicas: 8}}\n");
    AUTO(world) w = world_of(s, 1);
    run_to_the_end(w);
    EXPECT_EQ(world_parts(w)->crashes, 2);
    EXPECT_EQ(running(w), 8);
}

TEST(a_control_plane_that_keeps_dying_does_not_keep_time_from_passing)
{
    AUTO(scenario) s = scenario_of("duration: 2h\nfaults: {crashesPerHour: 1000}\n");
    AUTO(world) w = world_of(s, 1);
    run_to_the_end(w);
    EXPECT_TRUE(world_parts(w)->crashes > 10);
    EXPECT_TRUE(world_settle(w, 20 * DURATION_MINUTE, 6 * DURATION_HOUR));
    EXPECT_EQ(running(w), 4);
}

/* A control plane that lives for twenty seconds at most, then waits ever longer, and from `calls_s` on gets
 * no further than its first call. */
static void add_deaths(struct buf *timeline, int from_s, int calls_s, int to_s)
{
    for (int at_s = from_s; at_s <= to_s; at_s += 20) {
        buf_addf(timeline, "- {at: %ds, crash: true}\n", at_s);
        if (at_s >= calls_s)
            buf_addf(timeline, "- {at: %ds, crash: {calls: 1}}\n", at_s);
    }
}

TEST(a_control_plane_that_keeps_dying_is_back_after_five_minutes_at_most)
{
    AUTO_BUF text = { 0 };
    buf_addz(&text, "duration: 2h\ntimeline:\n");
    add_deaths(&text, 300, 7200, 7200);
    AUTO(scenario) s = scenario_of(text.p);
    AUTO(world) w = world_of(s, 1);
    const struct world_parts *parts = world_parts(w);
    uint32_t crashes = 0;
    int64_t down_ns = 0, longest_ns = 0; /* `down_ns`: at the last death */
    while (world_step(w)) {
        if (parts->down_ns - down_ns > longest_ns)
            longest_ns = parts->down_ns - down_ns;
        if (parts->crashes != crashes) /* with the action that this step begins with */
            down_ns = parts->down_ns;
        crashes = parts->crashes;
    }
    EXPECT_TRUE(world_broken(w) == NULL);
    EXPECT_EQ(longest_ns, 5 * DURATION_MINUTE);
    EXPECT_TRUE(parts->down_ns < clock_mono_ns(parts->clock) - 5 * DURATION_MINUTE);
}

/* The instances die where no control plane gets further than its first call for most of an hour. Their
 * claims are collected when there is somebody to do it, and the rules do not ask for it before. */
TEST(what_nobody_was_there_to_collect_is_nobodys_mistake)
{
    AUTO_BUF text = { 0 };
    buf_addz(&text, "duration: 2h\ntimeline:\n");
    add_deaths(&text, 300, 1800, 1800);
    buf_addz(&text, "- {at: 1800s, kill: {count: 100}}\n");
    add_deaths(&text, 1820, 1800, 4800);
    AUTO(scenario) s = scenario_of(text.p);
    AUTO(world) w = world_of(s, 1);
    const struct world_parts *parts = world_parts(w);
    while (clock_mono_ns(parts->clock) < 1800 * DURATION_SECOND && world_step(w))
        ;
    uint32_t claims = count_of(w, &nodeclaim_kind);
    uint64_t launches = sim_cloud_stats(parts->cloud).launches;
    EXPECT_EQ(running(w), 4);
    while (parts->step < s->timeline_count && world_step(w))
        ;
    EXPECT_TRUE(world_broken(w) == NULL);
    EXPECT_TRUE(parts->down_ns > 50 * DURATION_MINUTE);
    EXPECT_EQ(count_of(w, &nodeclaim_kind), claims); /* those of the dead ones */
    EXPECT_EQ(sim_cloud_stats(parts->cloud).launches, launches);
    run_to_the_end(w);
    EXPECT_EQ(running(w), 4);
}

TEST(a_world_with_every_fault_settles_once_they_are_off)
{
    AUTO(scenario) s = scenario_of(
        "duration: 1h\n"
        "faults: {storeErrors: 0.1, storeLostReplies: 0.1, watchCuts: 0.02, launchErrors: "
        "0.2, launchLostReplies: 0.2, cloudErrors: 0.1, crashesPerHour: 10}\n"
        "timeline:\n"
        "- {at: 5m, scale: {name: web, replicas: 20}}\n"
        "- {at: 30m, scale: {name: web, replicas: 6}}\n");
    s->event_delay_ns = 2 * DURATION_SECOND;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        AUTO(world) w = world_of(s, seed);
        run_to_the_end(w);
        EXPECT_TRUE(world_settle(w, 20 * DURATION_MINUTE, 6 * DURATION_HOUR));
        EXPECT_EQ(running(w), 6);
    }
}

static uint64_t dump_hash(const struct scenario *s, uint64_t seed)
{
    struct err err = { 0 };
    AUTO(world) w = world_new((struct world_options){ .scenario = s, .seed = seed }, &err);
    AUTO_BUF text = { 0 };
    run_to_the_end(w);
    embedded_dump(world_parts(w)->embedded, &text);
    return kv_hash(text.p, text.len);
}

TEST(equal_seeds_give_equal_worlds_and_others_do_not)
{
    AUTO(scenario) s = NULL;
    struct err err = { 0 };
    EXPECT_OK(scenario_load("chaos", &s, &err), err);
    s->chaos.steps = 30;
    s->duration_ns = 20 * DURATION_MINUTE;
    EXPECT_EQ(dump_hash(s, 5), dump_hash(s, 5));
    EXPECT_TRUE(dump_hash(s, 5) != dump_hash(s, 6));
}

TEST(a_correction_from_outside_turns_the_pool_healthy_without_a_restart)
{
    AUTO(scenario) s = NULL;
    struct err err = { 0 };
    EXPECT_OK(scenario_load("security-group", &s, &err), err);
    AUTO(world) w = world_of(s, 1);
    bool was_false = false;
    while (clock_mono_ns(world_parts(w)->clock) < 40 * DURATION_MINUTE)
        EXPECT_TRUE(world_step(w));
    was_false = health_of(w, "default") == CONDITION_FALSE;
    run_to_the_end(w);
    EXPECT_TRUE(was_false);
    EXPECT_EQ(health_of(w, "default"), CONDITION_TRUE);
    EXPECT_EQ(world_parts(w)->crashes, 0);
    EXPECT_EQ(running(w), 10);
}

TEST(a_transient_failure_is_never_told_as_unhealthy)
{
    AUTO(scenario) s = NULL;
    struct err err = { 0 };
    struct record record;
    EXPECT_OK(scenario_load("transient", &s, &err), err);
    record_init(&record);
    AUTO(world) w = world_new(
        (struct world_options){ .scenario = s, .seed = 1, .check = true, .maybe_record = &record },
        &err);
    while (world_step(w))
        EXPECT_TRUE(health_of(w, "default") != CONDITION_FALSE);
    EXPECT_TRUE(world_broken(w) == NULL);
    EXPECT_EQ(health_of(w, "default"), CONDITION_TRUE);
    EXPECT_EQ(running(w), 2);
    EXPECT_EQ(sim_cloud_stats(world_parts(w)->cloud).lost, 1);
    record_close(&record);
    record_done(&record);
}

TEST(with_a_cooldown_another_pool_takes_the_pods_and_the_broken_one_is_found_again)
{
    AUTO(scenario) s = NULL;
    struct err err = { 0 };
    EXPECT_OK(scenario_load("cooldown", &s, &err), err);
    AUTO(world) w = world_of(s, 1);
    run_to_the_end(w);
    EXPECT_EQ(running(w), 64);
    EXPECT_EQ(health_of(w, "preferred"), CONDITION_TRUE);
    EXPECT_EQ(health_of(w, "fallback"), CONDITION_TRUE);
    /* Three hours of a broken image, and few probes. */
    EXPECT_TRUE(sim_cloud_stats(world_parts(w)->cloud).lost <= 12);
}

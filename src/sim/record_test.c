/* The record of a run, watching a real store. */
#include "sim/record_testing.h"

#include "api/kinds.h"
#include "sim/world.h"
#include "support/test.h"

#include <stdio.h>

/* A store, a clock, a cloud that launches nothing; no control plane. */
struct scene {
    struct virtual_clock *time;
    struct object_pool *pool;
    struct world_parts parts;
    struct record record;
};

static struct scene *scene_new(void)
{
    struct scene *s = kv_calloc(1, sizeof *s);
    s->time = virtual_clock_new((int64_t)1800000000 * 1000000);
    s->pool = object_pool_new();
    s->parts.clock = virtual_clock_port(s->time);
    s->parts.time = s->time;
    s->parts.embedded = embedded_new(
        (struct embedded_options){ .clock = s->parts.clock, .pool = s->pool, .seed = 1 });
    s->parts.store = embedded_store(s->parts.embedded);
    s->parts.cloud = sim_cloud_new(
        (struct sim_cloud_options){ .clock = s->parts.clock, .store = s->parts.store });
    record_init(&s->record);
    record_look(&s->record, &s->parts);
    return s;
}

static void scene_free(struct scene *s)
{
    record_done(&s->record);
    sim_cloud_free(s->parts.cloud);
    embedded_free(s->parts.embedded);
    object_pool_free(s->pool);
    virtual_clock_free(s->time);
    free(s);
}
KV_AUTO_TYPE(scene, scene_free)

static void pass(struct scene *s, int64_t seconds)
{
    virtual_clock_advance(s->time, seconds * DURATION_SECOND);
    record_look(&s->record, &s->parts);
}

static const struct record_sample *sampled(struct scene *s)
{
    record_sample(&s->record, &s->parts);
    return record_last(&s->record);
}

/* JSON with single quotes. */
static void make(struct scene *s, const struct kind *kind, const char *text)
{
    AUTO_BUF json = { 0 };
    struct err err = { 0 };
    buf_addz(&json, text);
    for (size_t i = 0; i < json.len; i++)
        json.p[i] = json.p[i] == '\'' ? '"' : json.p[i];
    struct str namespace_ = kind->namespaced ? STR("default") : STR("");
    EXPECT_OK(store_create(s->parts.store, kind, namespace_, buf_str(&json), NULL, &err), err);
}

static void patch(struct scene *s, const struct kind *kind, const char *name, bool status,
                  const char *text)
{
    AUTO_BUF json = { 0 };
    struct err err = { 0 };
    buf_addz(&json, text);
    for (size_t i = 0; i < json.len; i++)
        json.p[i] = json.p[i] == '\'' ? '"' : json.p[i];
    struct object_ref ref = { kind, kind->namespaced ? STR("default") : STR(""), str_of(name) };
    struct patch_options options = { .type = PATCH_MERGE, .status = status };
    EXPECT_OK(store_patch(s->parts.store, ref, options, buf_str(&json), NULL, &err), err);
}

static void make_pod(struct scene *s, const char *name)
{
    char text[300];
    snprintf(text, sizeof text,
             "{'metadata':{'name':'%s'},'spec':{'containers':[{'name':'c','image':'i'}]}}", name);
    make(s, &pod_kind, text);
}

static void bind_pod(struct scene *s, const char *name)
{
    struct err err = { 0 };
    EXPECT_OK(store_bind(s->parts.store, STR("default"), str_of(name), STR("n"), &err), err);
}

static void make_event(struct scene *s, const char *name, const char *type, const char *kind,
                       const char *reason)
{
    char text[400];
    snprintf(text, sizeof text,
             "{'metadata':{'name':'%s'},'type':'%s','reason':'%s','message':'in words',"
             "'involvedObject':{'kind':'%s','name':'%s'},'count':1}",
             name, type, reason, kind, name);
    make(s, &event_kind, text);
}

TEST(a_pod_is_counted_in_the_state_it_is_in)
{
    AUTO(scene) s = scene_new();
    make_pod(s, "a");
    make_pod(s, "b");
    EXPECT_EQ(sampled(s)->pods_pending, 2);
    bind_pod(s, "a");
    EXPECT_EQ(sampled(s)->pods_pending, 1);
    EXPECT_EQ(sampled(s)->pods_starting, 1);
    patch(s, &pod_kind, "a", true, "{'status':{'phase':'Running'}}");
    EXPECT_EQ(sampled(s)->pods_starting, 0);
    EXPECT_EQ(sampled(s)->pods_running, 1);
    patch(s, &pod_kind, "a", true, "{'status':{'phase':'Succeeded'}}");
    EXPECT_EQ(sampled(s)->pods_running, 0);
    EXPECT_EQ(sampled(s)->pods_ended, 1);
}

TEST(a_pods_wait_is_from_when_it_came_to_when_it_was_bound)
{
    AUTO(scene) s = scene_new();
    virtual_clock_advance(s->time, 700 * 1000000); /* creation times have whole seconds */
    record_look(&s->record, &s->parts);
    make_pod(s, "a");
    record_look(&s->record, &s->parts);
    pass(s, 42);
    bind_pod(s, "a");
    record_look(&s->record, &s->parts);
    EXPECT_EQ(s->record.waits_ns.count, 1);
    EXPECT_EQ(s->record.waits_ns.items[0], 42 * DURATION_SECOND);
    pass(s, 10);
    patch(s, &pod_kind, "a", true, "{'status':{'phase':'Running'}}");
    pass(s, 1);
    EXPECT_EQ(s->record.waits_ns.count, 1); /* once */
}

TEST(pods_of_daemon_sets_do_not_count_as_waiting)
{
    AUTO(scene) s = scene_new();
    make(
        s, &pod_kind,
        "{'metadata':{'name':'d','ownerReferences':[{'apiVersion':'apps/v1','kind':'DaemonSet',"
        "'name':'d','uid':'u','controller':true}]},'spec':{'containers':[{'name':'c','image':'i'}]}}");
    pass(s, 5);
    bind_pod(s, "d");
    pass(s, 1);
    EXPECT_EQ(s->record.waits_ns.count, 0);
}

TEST(the_wait_of_a_share_is_what_so_many_pods_stayed_below)
{
    AUTO_RECORD r = { 0 };
    EXPECT_EQ(record_wait_ns(&r, 0.5), 0);
    for (int64_t i = 100; i >= 1; i--)
        vec_push(&r.waits_ns, i);
    EXPECT_EQ(record_wait_ns(&r, 0.5), 50);
    EXPECT_EQ(record_wait_ns(&r, 0.99), 99);
    EXPECT_EQ(record_wait_ns(&r, 1), 100);
    EXPECT_EQ(record_wait_ns(&r, 0), 1);
}

TEST(nodes_are_counted_by_type_and_pool_and_a_sample_keeps_what_was)
{
    AUTO(scene) s = scene_new();
    make(
        s, &node_kind,
        "{'metadata':{'name':'n1','labels':{'node.kubernetes.io/instance-type':'m5.large',"
        "'karpenter.sh/nodepool':'web'}},'status':{'conditions':[{'type':'Ready','status':'True'}]}}");
    make(s, &node_kind,
         "{'metadata':{'name':'n2','labels':{'node.kubernetes.io/instance-type':'m5.large'}}}");
    const struct record_sample *first = sampled(s);
    EXPECT_EQ(first->nodes, 2);
    EXPECT_EQ(first->nodes_ready, 1);
    EXPECT_EQ(first->type_count, 1);
    EXPECT_STR(s->record.types.items[0], "m5.large");
    EXPECT_EQ(first->types[0], 2);
    EXPECT_STR(s->record.pools.items[0], "web");
    EXPECT_EQ(first->pools[0].nodes, 1);
    struct err err;
    struct object_ref ref = { &node_kind, STR(""), STR("n1") };
    EXPECT_OK(store_remove(s->parts.store, ref, NULL, &err), err);
    pass(s, 60);
    EXPECT_EQ(sampled(s)->nodes, 1);
    EXPECT_EQ(s->record.samples.items[0].types[0], 2);
    EXPECT_EQ(s->record.samples.items[1].types[0], 1);
    EXPECT_EQ(record_type_peak(&s->record, 0), 2);
}

TEST(a_moment_has_one_sample)
{
    AUTO(scene) s = scene_new();
    sampled(s);
    sampled(s);
    EXPECT_EQ(s->record.samples.count, 1);
    pass(s, 1);
    sampled(s);
    EXPECT_EQ(s->record.samples.count, 2);
    EXPECT_EQ(s->record.samples.items[1].at_ns, DURATION_SECOND);
}

#define POOL                                                                                       \
    "{'metadata':{'name':'web'},'spec':{'template':{'spec':{'nodeClassRef':{"                      \
    "'group':'karpenter.kwok.sh','kind':'KWOKNodeClass','name':'default'},'requirements':[]}}}}"

TEST(a_change_of_health_is_a_line_with_the_reason)
{
    AUTO(scene) s = scene_new();
    make(s, &nodepool_kind, POOL);
    pass(s, 1);
    EXPECT_EQ(sampled(s)->pools[0].health, CONDITION_UNKNOWN);
    EXPECT_EQ(s->record.events.count, 0); /* that it starts so goes without saying */
    patch(s, &nodepool_kind, "web", true,
          "{'status':{'conditions':[{'type':'NodeRegistrationHealthy','status':'False',"
          "'reason':'RegistrationFailed','message':'x did not register',"
          "'lastTransitionTime':'2027-01-01T00:00:00Z'}]}}");
    pass(s, 1);
    EXPECT_EQ(sampled(s)->pools[0].health, CONDITION_FALSE);
    EXPECT_EQ(s->record.events.count, 1);
    EXPECT_STR(s->record.events.items[0].what,
               "NodePool web: nodes do not join (RegistrationFailed: x did not register)");
    EXPECT_EQ(s->record.events.items[0].at_ns, 2 * DURATION_SECOND);
    struct err err;
    struct object_ref ref = { &nodepool_kind, STR(""), STR("web") };
    EXPECT_OK(store_remove(s->parts.store, ref, NULL, &err), err);
    EXPECT_EQ(sampled(s)->pools[0].health, CONDITION_UNSET);
}

TEST(events_that_differ_only_in_whom_they_are_about_are_one_line)
{
    AUTO(scene) s = scene_new();
    make_event(s, "a", "Warning", "Pod", "FailedScheduling");
    make_event(s, "b", "Warning", "Pod", "FailedScheduling");
    make_event(s, "c", "Warning", "NodeClaim", "FailedScheduling");
    pass(s, 1);
    EXPECT_EQ(s->record.events.count, 2);
    EXPECT_EQ(s->record.events.items[0].count, 2);
    EXPECT_STR(s->record.events.items[0].what, "Pod a: FailedScheduling: in words");
    EXPECT_EQ(s->record.reasons.count, 1);
    EXPECT_EQ(s->record.reasons.items[0].count, 3);
    pass(s, 600); /* long after, it is news again */
    make_event(s, "d", "Warning", "Pod", "FailedScheduling");
    pass(s, 1);
    EXPECT_EQ(s->record.events.count, 3);
}

TEST(an_event_that_is_counted_up_counts_by_how_much)
{
    AUTO(scene) s = scene_new();
    make_event(s, "a", "Warning", "Pod", "FailedScheduling");
    pass(s, 1);
    patch(s, &event_kind, "a", false, "{'count':5}");
    pass(s, 1);
    EXPECT_EQ(s->record.events.count, 1);
    EXPECT_EQ(s->record.events.items[0].count, 5);
    EXPECT_EQ(s->record.reasons.items[0].count, 5);
}

TEST(what_happens_to_pods_as_it_should_is_no_line)
{
    AUTO(scene) s = scene_new();
    make_event(s, "a", "Normal", "Pod", "Nominated");
    make_event(s, "b", "Normal", "NodeClaim", "Launched");
    pass(s, 1);
    EXPECT_EQ(s->record.events.count, 1);
    EXPECT_FALSE(s->record.events.items[0].warning);
    EXPECT_EQ(s->record.reasons.count, 0);
}

TEST(a_line_holds_nothing_that_a_terminal_obeys)
{
    AUTO_RECORD r = { 0 };
    record_action(&r, 0,
                  STR("a\nb\x1b[31m\xc2\x9b"
                      "c\x7f\xff"));
    EXPECT_STR(r.events.items[0].what, "a b [31m  c \xef\xbf\xbd");
}

TEST(with_a_limit_the_newest_are_kept)
{
    AUTO(scene) s = scene_new();
    s->record.limits = (struct record_limits){ .events = 10, .waits = 4 };
    for (int64_t i = 0; i < 1000; i++) {
        char text[32];
        snprintf(text, sizeof text, "action %d", (int)i);
        record_action(&s->record, i, str_of(text));
    }
    EXPECT_TRUE(s->record.events.count >= 10);
    EXPECT_TRUE(s->record.events.count <= 20);
    EXPECT_EQ(s->record.events.count + s->record.events_forgotten, 1000);
    EXPECT_STR(vec_last(&s->record.events).what, "action 999");
    EXPECT_TRUE(s->record.event_arena.held_bytes < 100000);
}

TEST(a_record_that_is_closed_stays_as_it_is)
{
    AUTO(scene) s = scene_new();
    make_pod(s, "a");
    sampled(s);
    record_close(&s->record);
    make_pod(s, "b");
    EXPECT_EQ(record_last(&s->record)->pods_pending, 1);
    record_look(&s->record, &s->parts); /* nothing */
    record_sample(&s->record, &s->parts);
    EXPECT_EQ(s->record.samples.count, 1);
}

#include "control/recorder.h"

#include "api/kinds.h"
#include "api/policy.h"
#include "store/testing.h"

struct scene {
    struct world *w;
    struct recorder *r;
    const struct object *pod, *node;
};

static struct scene *scene_new(void)
{
    struct scene *s = kv_calloc(1, sizeof *s);
    s->w = world_new((struct embedded_options){ .seed = 1 });
    s->r = recorder_new(s->w->store, virtual_clock_port(s->w->time), NULL, 1);
    make_pod(s->w->store, "web", "");
    make_node(s->w->store, "n1");
    s->pod = get(s->w->store, &pod_kind, "web");
    s->node = get(s->w->store, &node_kind, "n1");
    return s;
}

static void scene_free(struct scene *s)
{
    object_unref(s->pod);
    object_unref(s->node);
    recorder_free(s->r);
    world_free(s->w);
    free(s);
}
KV_AUTO_TYPE(scene, scene_free)

static size_t event_count(struct scene *s)
{
    struct object_list list = { 0 };
    struct err err = { 0 };
    EXPECT_OK(store_list(s->w->store, &event_kind, NULL, &list, &err), err);
    size_t count = list.count;
    object_list_done(&list);
    return count;
}

static const struct object *only_event(struct scene *s)
{
    struct object_list list = { 0 };
    struct err err = { 0 };
    EXPECT_OK(store_list(s->w->store, &event_kind, NULL, &list, &err), err);
    EXPECT_EQ(list.count, 1);
    const struct object *event = object_ref(list.items[0]);
    object_list_done(&list);
    return event;
}

TEST(an_event_says_what_happened_to_which_object)
{
    AUTO(scene) s = scene_new();
    recorder_say(s->r, s->pod, true, "FailedScheduling", "fits on none of %d types", 7);
    AUTO_OBJECT object = only_event(s);
    const struct event *event = event_of(object);
    EXPECT_STR(event->reason, "FailedScheduling");
    EXPECT_STR(event->message, "fits on none of 7 types");
    EXPECT_STR(event->type, "Warning");
    EXPECT_STR(event->involved.kind, "Pod");
    EXPECT_STR(event->involved.name, "web");
    EXPECT_STR(event->involved.namespace_, "default");
    EXPECT_TRUE(str_eq(event->involved.uid, s->pod->meta.uid));
    EXPECT_STR(event->source.component, "karpenter");
    EXPECT_EQ(event->count, 1);
    EXPECT_EQ(event->last_us, START_US);
    EXPECT_TRUE(str_starts(object->meta.name, STR("web.")));
}

TEST(events_about_cluster_scoped_objects_live_in_default)
{
    AUTO(scene) s = scene_new();
    recorder_say(s->r, s->node, false, "DisruptionBlocked", "x");
    AUTO_OBJECT object = only_event(s);
    EXPECT_STR(object->meta.namespace_, "default");
    EXPECT_STR(event_of(object)->type, "Normal");
}

TEST(the_same_notice_is_said_once_in_two_minutes)
{
    AUTO(scene) s = scene_new();
    for (int i = 0; i < 3; i++)
        recorder_say(s->r, s->pod, true, "FailedScheduling", "same");
    EXPECT_EQ(event_count(s), 1);
    recorder_say(s->r, s->pod, true, "FailedScheduling", "other");
    recorder_say(s->r, s->pod, true, "Evicted", "same");
    recorder_say(s->r, s->node, true, "FailedScheduling", "same");
    EXPECT_EQ(event_count(s), 4);
    virtual_clock_advance(s->w->time, 120 * SECOND_NS - 1);
    recorder_say(s->r, s->pod, true, "FailedScheduling", "same");
    EXPECT_EQ(event_count(s), 4);
    virtual_clock_advance(s->w->time, 1);
    recorder_say(s->r, s->pod, true, "FailedScheduling", "same");
    EXPECT_EQ(event_count(s), 5);
}

TEST(a_key_and_a_time_of_its_own_say_what_is_the_same_and_for_how_long)
{
    AUTO(scene) s = scene_new();
    struct notice notice = {
        .about = s->pod, .reason = "FailedScheduling", .key = STR("k"), .quiet_ns = 300 * SECOND_NS
    };
    notice.message = STR("3 nodes");
    recorder_publish(s->r, &notice);
    notice.message = STR("4 nodes");
    virtual_clock_advance(s->w->time, 299 * SECOND_NS);
    recorder_publish(s->r, &notice);
    EXPECT_EQ(event_count(s), 1);
    virtual_clock_advance(s->w->time, SECOND_NS);
    recorder_publish(s->r, &notice);
    EXPECT_EQ(event_count(s), 2);
}

TEST(nominations_are_said_ten_at_once_and_then_five_a_second)
{
    AUTO(scene) s = scene_new();
    for (int i = 0; i < 100; i++)
        recorder_say(s->r, s->pod, false, "Nominated", "node %d", i);
    EXPECT_EQ(event_count(s), 10);
    virtual_clock_advance(s->w->time, SECOND_NS);
    for (int i = 100; i < 200; i++)
        recorder_say(s->r, s->pod, false, "Nominated", "node %d", i);
    EXPECT_EQ(event_count(s), 15);
    virtual_clock_advance(s->w->time, 60 * SECOND_NS);
    for (int i = 200; i < 300; i++)
        recorder_say(s->r, s->pod, false, "Nominated", "node %d", i);
    EXPECT_EQ(event_count(s), 25);
}

TEST(a_message_that_is_too_long_is_cut_between_characters)
{
    AUTO(scene) s = scene_new();
    AUTO_BUF text = { 0 };
    for (int i = 0; i < 600; i++)
        buf_addz(&text, "\xc3\xa9"); /* é: 1200 bytes */
    buf_addz(&text, "x");
    recorder_say(s->r, s->pod, false, "Evicted", "x%s", text.p);
    AUTO_OBJECT object = only_event(s);
    EXPECT_EQ(event_of(object)->message.len, 1023);
}

TEST(a_process_that_says_it_again_at_the_same_moment_has_said_it_once)
{
    AUTO(scene) s = scene_new();
    recorder_say(s->r, s->pod, true, "Evicted", "x");
    recorder_free(s->r);
    s->r = recorder_new(s->w->store, virtual_clock_port(s->w->time), NULL, 1);
    recorder_say(s->r, s->pod, true, "Evicted", "x");
    EXPECT_EQ(event_count(s), 1);
}

TEST(what_cannot_be_written_is_forgotten)
{
    AUTO(scene) s = scene_new();
    object_unref(make(s->w->store, &namespace_kind, js("{'metadata':{'name':'gone'}}")));
    object_unref(make(s->w->store, &pod_kind,
                      js("{'metadata':{'name':'p','namespace':'gone'},"
                         "'spec':{'containers':[{'name':'c','image':'i'}]}}")));
    AUTO_OBJECT pod = NULL;
    struct err err = { 0 };
    struct object_ref ref = { &pod_kind, STR("gone"), STR("p") };
    EXPECT_OK(store_get(s->w->store, ref, &pod, &err), err);
    remove_it(s->w->store, &namespace_kind, "gone");
    recorder_say(s->r, pod, true, "Evicted", "x");
    EXPECT_EQ(event_count(s), 0);
}

/* --- in a thread of its own --- */

/* The scene's store, whose creations wait for the gate. */
struct gated {
    const struct store *inner;
    pthread_mutex_t gate;
};

static int gated_create(void *ctx, const struct kind *kind, struct str namespace_, struct str json,
                        const struct object **out, struct err *err)
{
    struct gated *g = ctx;
    pthread_mutex_lock(&g->gate);
    pthread_mutex_unlock(&g->gate);
    return store_create(g->inner, kind, namespace_, json, out, err);
}

TEST(with_a_thread_of_its_own_nobody_waits_for_the_store_and_everything_is_written_by_the_end)
{
    AUTO(scene) s = scene_new();
    struct gated g = { s->w->store, PTHREAD_MUTEX_INITIALIZER };
    const struct store_ops ops = { .create = gated_create };
    const struct store slow = { &ops, &g };
    struct recorder *r = recorder_new(&slow, virtual_clock_port(s->w->time), NULL, 1);
    struct err err = { 0 };
    EXPECT_OK(recorder_start(r, &err), err);

    pthread_mutex_lock(&g.gate);
    for (int i = 0; i < 50; i++)
        recorder_say(r, s->pod, true, "FailedScheduling", "for the reason %d", i);
    EXPECT_EQ(event_count(s), 0);
    pthread_mutex_unlock(&g.gate);
    recorder_stop(r);
    EXPECT_EQ(event_count(s), 50);
    recorder_free(r);
}

TEST(of_a_flood_that_the_store_cannot_take_the_oldest_are_dropped)
{
    AUTO(scene) s = scene_new();
    struct gated g = { s->w->store, PTHREAD_MUTEX_INITIALIZER };
    const struct store_ops ops = { .create = gated_create };
    const struct store slow = { &ops, &g };
    struct recorder *r = recorder_new(&slow, virtual_clock_port(s->w->time), NULL, 1);
    struct err err = { 0 };
    EXPECT_OK(recorder_start(r, &err), err);

    pthread_mutex_lock(&g.gate);
    for (int i = 0; i < 3000; i++)
        recorder_say(r, s->pod, true, "FailedScheduling", "for the reason %d", i);
    pthread_mutex_unlock(&g.gate);
    recorder_free(r);
    size_t written = event_count(s);
    /* One may have been on its way already. */
    EXPECT_TRUE(written == 2000 || written == 2001);
}

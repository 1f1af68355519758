/* Informers on the embedded store: in peace and in trouble. */
#include "store/informer.h"

#include "base/rng.h"
#include "base/vec.h"
#include "store/sorted.h"
#include "store/testing.h"

/* --- a store, an informer of its nodes or pods, and a log of what its handler was told --- */

struct scene {
    struct world *world;
    struct virtual_clock *time;
    struct embedded *e;
    const struct store *store;
    struct informer *inf;
    struct buf told; /* "+a" new, "~a" changed, "-a" gone */
};

static void tell(void *ctx, const struct object *maybe_old, const struct object *maybe_new)
{
    struct scene *w = ctx;
    struct str name = (maybe_new ? maybe_new : maybe_old)->meta.name;
    buf_addf(&w->told, "%s%s%.*s", w->told.len ? " " : "",
             !maybe_old  ? "+"
             : maybe_new ? "~"
                         : "-",
             STR_ARG(name));
}

/* What was told since the last time. */
static const char *told(struct scene *w)
{
    static char text[1024];
    snprintf(text, sizeof text, "%s", buf_str(&w->told).p);
    buf_clear(&w->told);
    return text;
}

static struct scene *scene_new(const struct kind *kind, struct embedded_options opts,
                               struct informer_options how)
{
    struct scene *w = kv_calloc(1, sizeof *w);
    w->world = world_new(opts);
    w->time = w->world->time;
    w->e = w->world->e;
    w->store = w->world->store;
    how.store = w->store;
    how.kind = kind;
    how.clock = virtual_clock_port(w->time);
    w->inf = informer_new(how);
    informer_on_change(w->inf, tell, w);
    return w;
}

static struct scene *nodes_scene(struct embedded_options opts)
{
    return scene_new(&node_kind, opts, (struct informer_options){ 0 });
}

static void scene_free(struct scene *w)
{
    informer_free(w->inf);
    world_free(w->world);
    buf_done(&w->told);
    free(w);
}
KV_AUTO_TYPE(scene, scene_free)

static void touch_node(const struct store *s, const char *name, const char *value)
{
    object_unref(merge(s, &node_kind, name, js("{'metadata':{'labels':{'v':'%s'}}}", value)));
}

/* --- peace --- */

TEST(an_informer_lists_and_then_follows)
{
    AUTO(scene) w = nodes_scene((struct embedded_options){ 0 });
    make_node(w->store, "b");
    make_node(w->store, "a");
    EXPECT_FALSE(informer_synced(w->inf));
    EXPECT_EQ(informer_pump(w->inf), 2);
    EXPECT_TRUE(informer_synced(w->inf));
    EXPECT_Z(told(w), "+a +b");

    make_node(w->store, "c");
    touch_node(w->store, "a", "1");
    remove_it(w->store, &node_kind, "b");
    EXPECT_EQ(informer_pump(w->inf), 3);
    EXPECT_Z(told(w), "+c ~a -b");
    EXPECT_EQ(informer_pump(w->inf), 0);
    EXPECT_EQ(informer_version(w->inf), embedded_version(w->e));

    AUTO_OBJECT a = informer_get(w->inf, STR(""), STR("a"));
    EXPECT_STR(str_map_get(&a->meta.labels, STR("v")), "1");
    EXPECT_TRUE(informer_get(w->inf, STR(""), STR("b")) == NULL);
    EXPECT_EQ(informer_count(w->inf), 2);
}

TEST(a_reader_gets_the_stores_own_object)
{
    AUTO(scene) w = nodes_scene((struct embedded_options){ 0 });
    informer_pump(w->inf);
    AUTO_OBJECT made = make(w->store, &node_kind, js("{'metadata':{'name':'a'}}"));
    informer_pump(w->inf);
    AUTO_OBJECT read = informer_get(w->inf, STR(""), STR("a"));
    EXPECT_TRUE(read == made);
}

TEST(what_a_reader_holds_outlives_the_cache)
{
    AUTO(scene) w = nodes_scene((struct embedded_options){ 0 });
    make_node(w->store, "a");
    informer_pump(w->inf);
    struct object_list before = { 0 };
    informer_list(w->inf, STR(""), &before);
    remove_it(w->store, &node_kind, "a");
    informer_pump(w->inf);
    EXPECT_EQ(informer_count(w->inf), 0);
    EXPECT_EQ(before.count, 1);
    EXPECT_STR(before.items[0]->meta.name, "a");
    object_list_done(&before);
}

static struct str node_of_pod(const struct object *object)
{
    return pod_of(object)->node_name;
}

static const char *on_node(struct scene *w, uint32_t index, const char *node)
{
    static char text[256];
    struct object_list found = { 0 };
    size_t len = 0;
    informer_list_index(w->inf, index, str_of(node), &found);
    text[0] = '\0';
    for (size_t i = 0; i < found.count; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%.*s", i ? " " : "",
                                STR_ARG(found.items[i]->meta.name));
    object_list_done(&found);
    return text;
}

TEST(an_index_follows_its_objects)
{
    AUTO(scene) w =
        scene_new(&pod_kind, (struct embedded_options){ 0 }, (struct informer_options){ 0 });
    uint32_t by_node = informer_add_index(w->inf, node_of_pod);
    make_pod(w->store, "b", "");
    make_pod(w->store, "a", "");
    informer_pump(w->inf);
    EXPECT_Z(on_node(w, by_node, "n"), "");
    bind_pod(w->store, "b", "n");
    bind_pod(w->store, "a", "n");
    informer_pump(w->inf);
    EXPECT_Z(on_node(w, by_node, "n"), "a b");
    set_pod(w->store, "a", "Running", true); /* another object under the same key */
    struct delete_options now = { .grace_s = { 0, true } };
    struct err err = { 0 };
    EXPECT_OK(store_remove(w->store, at(&pod_kind, "b"), &now, &err), err);
    informer_pump(w->inf);
    EXPECT_Z(on_node(w, by_node, "n"), "a");
}

TEST(an_informer_of_a_selection_sees_objects_come_and_go_from_it)
{
    AUTO(scene) w = scene_new(&node_kind, (struct embedded_options){ 0 },
                              (struct informer_options){ .label_selector = STR("v=1") });
    make_node(w->store, "a");
    informer_pump(w->inf);
    touch_node(w->store, "a", "1");
    informer_pump(w->inf);
    touch_node(w->store, "a", "2");
    informer_pump(w->inf);
    EXPECT_Z(told(w), "+a -a");
}

TEST(a_list_in_pages_is_a_list)
{
    AUTO(scene) w = scene_new(&node_kind, (struct embedded_options){ 0 },
                              (struct informer_options){ .page_max = 2 });
    for (int c = 'a'; c <= 'e'; c++)
        make_node(w->store, (char[]){ (char)c, '\0' });
    informer_pump(w->inf);
    EXPECT_Z(told(w), "+a +b +c +d +e");
}

TEST(bookmarks_move_the_version_while_nothing_happens)
{
    AUTO(scene) w = nodes_scene((struct embedded_options){ .bookmark_every = 5 });
    informer_pump(w->inf);
    for (int i = 0; i < 5; i++)
        object_unref(make(w->store, &pod_kind,
                          js("{'metadata':{'name':'p%d'},"
                             "'spec':{'containers':[{'name':'c','image':'i'}]}}",
                             i)));
    EXPECT_EQ(informer_pump(w->inf), 0);
    EXPECT_EQ(informer_version(w->inf), embedded_version(w->e));
}

TEST(a_list_can_be_of_one_namespace)
{
    AUTO(scene) w = scene_new(&pod_kind, (struct embedded_options){ .auto_namespaces = true },
                              (struct informer_options){ 0 });
    struct object_list found = { 0 };
    struct err err = { 0 };
    make_pod(w->store, "here", "");
    EXPECT_OK(store_create(w->store, &pod_kind, STR("other"),
                           js("{'metadata':{'name':'there'},"
                              "'spec':{'containers':[{'name':'c','image':'i'}]}}"),
                           NULL, &err),
              err);
    informer_pump(w->inf);
    EXPECT_EQ(informer_count(w->inf), 2);
    informer_list(w->inf, STR("other"), &found);
    EXPECT_EQ(found.count, 1);
    EXPECT_STR(found.items[0]->meta.name, "there");
    object_list_done(&found);
}

/* --- waiting --- */

TEST(a_caller_waits_until_the_cache_has_its_own_write)
{
    AUTO(scene) w = nodes_scene((struct embedded_options){ 0 });
    struct err err = { 0 };
    AUTO_OBJECT made = make(w->store, &node_kind, js("{'metadata':{'name':'a'}}"));
    EXPECT_OK(informer_wait_version(w->inf, made->meta.resource_version, 0, &err), err);
    AUTO_OBJECT read = informer_get(w->inf, STR(""), STR("a"));
    EXPECT_TRUE(read == made);
    EXPECT_ERR(informer_wait_version(w->inf, made->meta.resource_version + 1, 0, &err), err,
               ERR_UNAVAILABLE);
}

/* --- trouble --- */

struct trouble {
    struct scene *w;
    struct rng rng;
    bool drop_once;
    enum err_kind list_fails;
    int lists, writes_during_list; /* writes made when the second page is asked for */
    unsigned percent;              /* of random failures of any kind */
    int64_t delay_max_ns;
};

static bool unlucky(struct trouble *t)
{
    return t->percent > 0 && rng_below(&t->rng, 100) < t->percent;
}

static enum err_kind trouble_before(void *ctx, const struct embedded_call *call)
{
    struct trouble *t = ctx;
    if (call->verb == EMBEDDED_LIST) {
        if (++t->lists == 2) {
            for (int i = 0; i < t->writes_during_list; i++)
                touch_node(t->w->store, "a", i % 2 ? "x" : "y");
        }
        if (t->list_fails)
            return t->list_fails;
    }
    bool reads = call->verb == EMBEDDED_LIST || call->verb == EMBEDDED_WATCH;
    if (reads && unlucky(t))
        return rng_below(&t->rng, 2) ? ERR_UNAVAILABLE : ERR_GONE;
    return ERR_NONE;
}

static bool trouble_drop(void *ctx, const struct kind *kind KV_UNUSED)
{
    struct trouble *t = ctx;
    bool drop = t->drop_once || unlucky(t);
    t->drop_once = false;
    return drop;
}

static int64_t trouble_delay(void *ctx, const struct kind *kind KV_UNUSED, uint64_t version)
{
    struct trouble *t = ctx;
    return t->delay_max_ns ? (int64_t)(kv_mix64(version) % (uint64_t)t->delay_max_ns) : 0;
}

static void trouble_start(struct trouble *t, struct scene *w)
{
    struct embedded_faults faults = { .before = trouble_before,
                                      .drop_watch = trouble_drop,
                                      .event_delay_ns = trouble_delay,
                                      .ctx = t };
    t->w = w;
    embedded_set_faults(w->e, &faults);
}

TEST(a_broken_watch_goes_on_where_it_was)
{
    AUTO(scene) w = nodes_scene((struct embedded_options){ 0 });
    struct trouble t = { 0 };
    trouble_start(&t, w);
    make_node(w->store, "a");
    informer_pump(w->inf);
    make_node(w->store, "b");
    touch_node(w->store, "a", "1");
    t.drop_once = true;
    informer_pump(w->inf);
    EXPECT_Z(told(w), "+a +b ~a");
    EXPECT_EQ(t.lists, 1); /* no need to list again */
}

TEST(a_watch_that_is_gone_is_replaced_by_a_list_and_a_comparison)
{
    AUTO(scene) w = nodes_scene((struct embedded_options){ .history_max = 4 });
    for (int c = 'a'; c <= 'd'; c++)
        make_node(w->store, (char[]){ (char)c, '\0' });
    informer_pump(w->inf);
    told(w);
    touch_node(w->store, "a", "1");
    remove_it(w->store, &node_kind, "b");
    remove_it(w->store, &node_kind, "c");
    make_node(w->store, "c"); /* another one of that name */
    make_node(w->store, "e");
    make_node(w->store, "f");
    remove_it(w->store, &node_kind, "f"); /* came and went unseen */
    EXPECT_EQ(informer_pump(w->inf), 5);
    EXPECT_Z(told(w), "-b ~a -c +c +e");
    make_node(w->store, "g");
    informer_pump(w->inf);
    EXPECT_Z(told(w), "+g");
}

TEST(a_store_that_went_back_in_time_is_listed_again)
{
    AUTO(world) later = world_new((struct embedded_options){ .seed = 1 });
    AUTO(world) earlier = world_new((struct embedded_options){ .seed = 1 });
    struct store port = *later->store;
    AUTO(informer) inf = informer_new((struct informer_options){
        .store = &port, .kind = &node_kind, .clock = virtual_clock_port(later->time) });
    make_node(later->store, "a");
    make_node(later->store, "b");
    make_node(earlier->store, "a");
    informer_pump(inf);
    EXPECT_EQ(informer_count(inf), 2);

    struct trouble t = { .drop_once = true };
    embedded_set_faults(later->e,
                        &(struct embedded_faults){ .drop_watch = trouble_drop, .ctx = &t });
    make_node(later->store, "c");
    port = *earlier->store; /* what the informer goes on with when its watch breaks */
    informer_pump(inf);
    virtual_clock_advance(later->time, SECOND_NS); /* the second failure in a row: a pause */
    informer_pump(inf);
    EXPECT_EQ(informer_count(inf), 1);
    EXPECT_EQ(informer_version(inf), embedded_version(earlier->e));
}

/* What a handler may do: read, and ask how things are. */
static void handler_reads(void *ctx, const struct object *maybe_old KV_UNUSED,
                          const struct object *maybe_new)
{
    struct scene *w = ctx;
    struct err err = { 0 };
    EXPECT_FALSE(informer_trouble(w->inf, &err));
    AUTO_OBJECT read = informer_get(w->inf, STR(""), maybe_new->meta.name);
    EXPECT_TRUE(read == maybe_new);
}

TEST(a_handler_may_read_the_informer)
{
    AUTO(scene) w = nodes_scene((struct embedded_options){ 0 });
    informer_on_change(w->inf, handler_reads, w);
    make_node(w->store, "a");
    EXPECT_EQ(informer_pump(w->inf), 1);
}

TEST(a_list_that_is_too_slow_for_its_pages_is_made_at_once)
{
    AUTO(scene) w = scene_new(&node_kind, (struct embedded_options){ .history_max = 4 },
                              (struct informer_options){ .page_max = 1 });
    struct trouble t = { .writes_during_list = 10 };
    make_node(w->store, "a");
    make_node(w->store, "b");
    trouble_start(&t, w);
    informer_pump(w->inf);
    EXPECT_Z(told(w), "+a +b");
    EXPECT_EQ(t.lists, 3);
    EXPECT_EQ(informer_version(w->inf), embedded_version(w->e));
}

TEST(a_kind_that_is_not_served_has_no_objects_until_it_is)
{
    AUTO(scene) w = nodes_scene((struct embedded_options){ 0 });
    struct trouble t = { .list_fails = ERR_NOT_FOUND };
    struct err err = { 0 };
    trouble_start(&t, w);
    informer_pump(w->inf);
    EXPECT_TRUE(informer_synced(w->inf));
    EXPECT_TRUE(informer_trouble(w->inf, &err));
    EXPECT_EQ(informer_count(w->inf), 0);

    make_node(w->store, "a");
    t.list_fails = ERR_NONE;
    virtual_clock_advance(w->time, 30 * SECOND_NS);
    informer_pump(w->inf);
    EXPECT_Z(told(w), "+a");
    EXPECT_FALSE(informer_trouble(w->inf, &err));
}

TEST(objects_do_not_vanish_because_a_list_is_not_served)
{
    AUTO(scene) w = nodes_scene((struct embedded_options){ .history_max = 4 });
    make_node(w->store, "a");
    informer_pump(w->inf);
    EXPECT_Z(told(w), "+a");
    struct trouble t = { .list_fails = ERR_NOT_FOUND, .drop_once = true };
    trouble_start(&t, w);
    for (int i = 0; i < 10; i++) { /* more than the history has: it must list again */
        make_node(w->store, "b");
        remove_it(w->store, &node_kind, "b");
    }
    informer_pump(w->inf);
    EXPECT_Z(told(w), "");
    EXPECT_EQ(informer_count(w->inf), 1);
}

TEST(failures_are_repeated_at_growing_distance)
{
    AUTO(scene) w = nodes_scene((struct embedded_options){ 0 });
    struct trouble t = { .list_fails = ERR_UNAVAILABLE };
    struct err err = { 0 };
    trouble_start(&t, w);
    make_node(w->store, "a");
    int64_t last_ns = 0;
    informer_pump(w->inf);
    EXPECT_EQ(t.lists, 2); /* again at once, then a pause */
    for (int i = 0; i < 12; i++) {
        int64_t now_ns = clock_mono_ns(virtual_clock_port(w->time));
        int64_t pause_ns = informer_due_ns(w->inf) - now_ns;
        EXPECT_TRUE(pause_ns >= last_ns / 2);
        EXPECT_TRUE(pause_ns >= SECOND_NS / 10);
        EXPECT_TRUE(pause_ns <= 30 * SECOND_NS);
        last_ns = pause_ns;
        int lists = t.lists;
        virtual_clock_advance(w->time, pause_ns - 1);
        informer_pump(w->inf);
        EXPECT_EQ(t.lists, lists);
        virtual_clock_advance(w->time, 1);
        informer_pump(w->inf);
        EXPECT_EQ(t.lists, lists + 1);
    }
    EXPECT_TRUE(informer_trouble(w->inf, &err));
    EXPECT_EQ(err.kind, ERR_UNAVAILABLE);
    EXPECT_FALSE(informer_synced(w->inf));

    t.list_fails = ERR_NONE;
    virtual_clock_advance(w->time, 30 * SECOND_NS);
    informer_pump(w->inf);
    EXPECT_Z(told(w), "+a");
    EXPECT_FALSE(informer_trouble(w->inf, &err));
    EXPECT_EQ(informer_due_ns(w->inf), INT64_MAX);
}

/* A copy made of nothing but what the handler is told; each call must fit what went before. */
struct mirror {
    struct sorted objects;
};

static void mirror_change(void *ctx, const struct object *maybe_old, const struct object *maybe_new)
{
    struct mirror *m = ctx;
    const struct object *any = maybe_new ? maybe_new : maybe_old;
    EXPECT_TRUE(sorted_get(&m->objects, any->meta.name) == maybe_old);
    if (maybe_old && maybe_new) {
        EXPECT_TRUE(str_eq(maybe_old->meta.uid, maybe_new->meta.uid));
        EXPECT_TRUE(maybe_new->meta.resource_version > maybe_old->meta.resource_version);
    }
    if (maybe_new)
        sorted_put(&m->objects, any->meta.name, (void *)object_ref(maybe_new));
    else
        sorted_remove(&m->objects, any->meta.name);
    object_unref(maybe_old);
}

static void mirror_compare(struct mirror *m, const struct store *s)
{
    struct object_list truth = { 0 };
    struct err err = { 0 };
    size_t ix = 0;
    EXPECT_OK(store_list(s, &node_kind, NULL, &truth, &err), err);
    EXPECT_EQ(m->objects.count, truth.count);
    for (sorted_each(&m->objects, STR(""), it))
        EXPECT_TRUE(it.item->value == truth.items[ix++]);
    object_list_done(&truth);
}

static void mirror_done(struct mirror *m)
{
    for (sorted_each(&m->objects, STR(""), it))
        object_unref(it.item->value);
    sorted_done(&m->objects);
}

TEST(whatever_fails_handlers_end_up_with_the_truth)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        AUTO(scene) w = nodes_scene((struct embedded_options){ .seed = seed, .history_max = 16 });
        struct trouble t = { .percent = 20, .delay_max_ns = 3 * SECOND_NS };
        struct mirror mirror = { 0 };
        struct rng rng;
        rng_init(&rng, seed);
        rng_init(&t.rng, seed + 1000);
        informer_on_change(w->inf, mirror_change, &mirror);
        trouble_start(&t, w);
        for (int i = 0; i < 300; i++) {
            change_some_node(w->store, &rng);
            if (rng_below(&rng, 4) == 0)
                informer_pump(w->inf);
            virtual_clock_advance(w->time, (int64_t)rng_below(&rng, SECOND_NS));
        }
        embedded_set_faults(w->e, NULL);
        virtual_clock_advance(w->time, 60 * SECOND_NS);
        informer_pump(w->inf);
        mirror_compare(&mirror, w->store);
        EXPECT_TRUE(informer_version(w->inf) <= embedded_version(w->e));
        mirror_done(&mirror);
    }
}

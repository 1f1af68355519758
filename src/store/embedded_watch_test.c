/* Watches and pages of the embedded store: history and its end, bookmarks, waking, and random
 * histories against the truth. */
#include "api/policy.h"
#include "base/rng.h"
#include "store/sorted.h"
#include "store/testing.h"

/* --- history --- */

TEST(a_watch_that_fell_behind_is_told_to_list_again)
{
    AUTO(world) w = world_new((struct embedded_options){ .history_max = 8 });
    uint64_t start = embedded_version(w->e);
    struct watch *slow =
        watch(w->store, &node_kind, (struct watch_options){ .resource_version = start });
    for (int i = 0; i < 8; i++)
        make_node(w->store, (const char *[]){ "a", "b", "c", "d", "e", "f", "g", "h" }[i]);
    EXPECT_Z(event_text(slow, NULL), "ADDED a"); /* exactly what is kept */
    make_node(w->store, "i");
    make_node(w->store, "j");
    EXPECT_Z(event_text(slow, NULL), "error gone");
    watch_close(slow);

    struct watch *late = NULL;
    struct err err = { 0 };
    struct watch_options opts = { .resource_version = start };
    EXPECT_ERR(store_watch(w->store, &node_kind, &opts, &late, &err), err, ERR_GONE);
    opts.resource_version = embedded_version(w->e) + 1;
    EXPECT_ERR(store_watch(w->store, &node_kind, &opts, &late, &err), err, ERR_GONE);
    opts.resource_version = embedded_version(w->e) - 8;
    EXPECT_OK(store_watch(w->store, &node_kind, &opts, &late, &err), err);
    watch_close(late);
}

TEST(a_watch_of_a_quiet_kind_outlives_the_history_of_busy_ones)
{
    AUTO(world) w = world_new((struct embedded_options){ .history_max = 4 });
    struct watch *quiet =
        watch(w->store, &priority_class_kind,
              (struct watch_options){ .resource_version = embedded_version(w->e) });
    make_node(w->store, "busy");
    for (int i = 0; i < 20; i++)
        object_unref(
            merge(w->store, &node_kind, "busy", js("{'metadata':{'labels':{'n':'%d'}}}", i)));
    EXPECT_Z(event_text(quiet, NULL), "");
    struct err err = { 0 };
    EXPECT_OK(store_create(w->store, &priority_class_kind, STR(""),
                           js("{'metadata':{'name':'late'},'value':1}"), NULL, &err),
              err);
    EXPECT_Z(event_text(quiet, NULL), "ADDED late");
    watch_close(quiet);
}

TEST(a_page_whose_first_one_is_too_old_is_gone)
{
    AUTO(world) w = world_new((struct embedded_options){ .history_max = 4 });
    struct object_list page = { 0 }, next = { 0 };
    struct err err = { 0 };
    make_node(w->store, "a");
    make_node(w->store, "b");
    EXPECT_OK(store_list(w->store, &node_kind, &(struct list_options){ .limit = 1 }, &page, &err),
              err);
    struct list_options opts = { .limit = 1, .continue_ = str_of(page.continue_) };
    for (int i = 0; i < 4; i++)
        object_unref(merge(w->store, &node_kind, "a", js("{'metadata':{'labels':{'n':'%d'}}}", i)));
    EXPECT_OK(store_list(w->store, &node_kind, &opts, &next, &err), err);
    object_list_done(&next);
    object_unref(merge(w->store, &node_kind, "a", js("{'metadata':{'labels':{'n':'last'}}}")));
    EXPECT_ERR(store_list(w->store, &node_kind, &opts, &next, &err), err, ERR_GONE);
    object_list_done(&page);
}

TEST(a_watch_gets_bookmarks_when_it_asks_and_while_nothing_is_for_it)
{
    AUTO(world) w = world_new((struct embedded_options){ .bookmark_every = 3 });
    struct watch_options opts = { .bookmarks = true, .resource_version = embedded_version(w->e) };
    struct watch *with = watch(w->store, &node_kind, opts);
    opts.bookmarks = false;
    struct watch *without = watch(w->store, &node_kind, opts);
    uint64_t version = 0;

    make_pod(w->store, "a", "");
    make_pod(w->store, "b", "");
    EXPECT_Z(event_text(with, &version), "");
    make_pod(w->store, "c", "");
    EXPECT_Z(event_text(with, &version), "BOOKMARK");
    EXPECT_EQ(version, embedded_version(w->e));
    EXPECT_Z(event_text(with, &version), "");
    make_pod(w->store, "d", "");
    EXPECT_Z(event_text(with, &version), "");
    embedded_bookmark(w->e);
    EXPECT_Z(event_text(with, &version), "BOOKMARK");
    EXPECT_Z(event_text(without, &version), "");
    watch_close(with);
    watch_close(without);

    opts = (struct watch_options){ .bookmarks = true };
    make_node(w->store, "n");
    struct watch *initial = watch(w->store, &node_kind, opts);
    EXPECT_Z(event_text(initial, &version), "ADDED n");
    EXPECT_Z(event_text(initial, &version), "BOOKMARK"); /* that was all there is */
    watch_close(initial);
}

TEST(all_watches_get_the_same_object)
{
    AUTO(world) w = world_new((struct embedded_options){ 0 });
    struct watch *watches[100];
    for (size_t i = 0; i < 100; i++)
        watches[i] = watch(w->store, &node_kind,
                           (struct watch_options){ .resource_version = embedded_version(w->e) });
    AUTO_OBJECT made = make(w->store, &node_kind, js("{'metadata':{'name':'a'}}"));
    for (size_t i = 0; i < 100; i++) {
        struct watch_event event;
        struct err err = { 0 };
        EXPECT_EQ(watch_next(watches[i], &event, &err), 1);
        EXPECT_TRUE(event.object == made);
        object_unref(event.object);
        watch_close(watches[i]);
    }
}

static void count_wake(void *ctx)
{
    ++*(int *)ctx;
}

TEST(a_reader_that_found_nothing_is_woken_once)
{
    AUTO(world) w = world_new((struct embedded_options){ 0 });
    int woken = 0;
    struct watch *nodes = watch(w->store, &node_kind,
                                (struct watch_options){ .resource_version = embedded_version(w->e),
                                                        .wake = count_wake,
                                                        .wake_ctx = &woken });
    make_pod(w->store, "other-kind", "");
    EXPECT_EQ(woken, 0);
    make_node(w->store, "a");
    make_node(w->store, "b");
    EXPECT_EQ(woken, 1);
    EXPECT_Z(event_text(nodes, NULL), "ADDED a");
    make_node(w->store, "c"); /* it is still reading */
    EXPECT_EQ(woken, 1);
    while (event_text(nodes, NULL)[0])
        continue;
    make_node(w->store, "d");
    EXPECT_EQ(woken, 2);
    watch_close(nodes);
    make_node(w->store, "e");
    EXPECT_EQ(woken, 2);
}

/* --- watches and pages against the truth, over random histories --- */

static const char *const selectors[] = { "", "a=1", "a!=1", "b in (0,2)", "!a", "a,b" };

struct replica { /* a watch, and what its events add up to */
    struct watch *watch;
    struct list_options opts;
    struct sorted objects;
};

static void replica_follow(struct replica *r)
{
    struct watch_event event;
    struct err err = { 0 };
    AUTO_BUF key = { 0 };
    int rc;

    while ((rc = watch_next(r->watch, &event, &err)) > 0) {
        SORTED_KEY(&key, event.object->meta.namespace_, event.object->meta.name);
        const struct object *old = sorted_get(&r->objects, buf_str(&key));
        /* The type says what the reader knew before. */
        EXPECT_EQ(event.type == EVENT_ADDED, old == NULL);
        object_unref(old);
        if (event.type == EVENT_DELETED) {
            object_unref(event.object);
            sorted_remove(&r->objects, buf_str(&key));
        } else {
            sorted_put(&r->objects, buf_str(&key), (void *)event.object);
        }
    }
    EXPECT_EQ(rc, 0);
}

static void replica_compare(struct world *w, struct replica *r)
{
    struct object_list truth = { 0 };
    struct err err = { 0 };
    size_t ix = 0;

    EXPECT_OK(store_list(w->store, &node_kind, &r->opts, &truth, &err), err);
    EXPECT_EQ(r->objects.count, truth.count);
    for (sorted_each(&r->objects, STR(""), it))
        EXPECT_TRUE(it.item->value == truth.items[ix++]);
    object_list_done(&truth);
}

static void replica_done(struct replica *r)
{
    for (sorted_each(&r->objects, STR(""), it))
        object_unref(it.item->value);
    sorted_done(&r->objects);
    watch_close(r->watch);
}

static void random_write(struct world *w, struct rng *rng)
{
    char name[16];
    struct err err = { 0 };
    snprintf(name, sizeof name, "n%02u", (unsigned)rng_below(rng, 30));
    unsigned a = (unsigned)rng_below(rng, 3), b = (unsigned)rng_below(rng, 3);

    switch (rng_below(rng, 4)) {
    case 0:
        store_create(w->store, &node_kind, STR(""),
                     js("{'metadata':{'name':'%s','labels':{'a':'%u'}}}", name, a), NULL, &err);
        break;
    case 1:
        store_remove(w->store, at(&node_kind, name), NULL, &err);
        break;
    default:
        store_patch(w->store, at(&node_kind, name), (struct patch_options){ 0 },
                    a == 2 ? js("{'metadata':{'labels':{'a':null,'b':'%u'}}}", b)
                           : js("{'metadata':{'labels':{'a':'%u','b':'%u'}}}", a, b),
                    NULL, &err);
        break;
    }
}

TEST(the_events_of_every_watch_add_up_to_the_list)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        AUTO(world) w = world_new((struct embedded_options){ .seed = seed });
        struct replica replicas[KV_COUNT_OF(selectors)] = { 0 };
        struct rng rng;
        rng_init(&rng, seed);
        for (int i = 0; i < 50; i++)
            random_write(w, &rng);
        for (size_t i = 0; i < KV_COUNT_OF(selectors); i++) {
            replicas[i].opts.label_selector = str_of(selectors[i]);
            replicas[i].watch =
                watch(w->store, &node_kind,
                      (struct watch_options){ .label_selector = str_of(selectors[i]) });
        }
        for (int i = 0; i < 300; i++) {
            random_write(w, &rng);
            struct replica *r = &replicas[rng_below(&rng, KV_COUNT_OF(selectors))];
            replica_follow(r);
            replica_compare(w, r);
        }
        for (size_t i = 0; i < KV_COUNT_OF(selectors); i++)
            replica_done(&replicas[i]);
    }
}

TEST(pages_add_up_to_the_list_of_their_version)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        AUTO(world) w = world_new((struct embedded_options){ .seed = seed });
        struct rng rng;
        rng_init(&rng, seed);
        for (int i = 0; i < 100; i++)
            random_write(w, &rng);
        struct list_options opts = {
            .label_selector = str_of(selectors[rng_below(&rng, KV_COUNT_OF(selectors))]),
        };
        struct object_list whole = { 0 }, page = { 0 };
        struct err err = { 0 };
        AUTO_FREE char *next = NULL;
        size_t ix = 0;
        EXPECT_OK(store_list(w->store, &node_kind, &opts, &whole, &err), err);
        do {
            opts.limit = 1 + (uint32_t)rng_below(&rng, 5);
            opts.continue_ = str_of(next);
            EXPECT_OK(store_list(w->store, &node_kind, &opts, &page, &err), err);
            EXPECT_EQ(page.resource_version, whole.resource_version);
            for (size_t i = 0; i < page.count; i++)
                EXPECT_TRUE(page.items[i] == whole.items[ix++]);
            free(next);
            next = take(&page.continue_);
            object_list_done(&page);
            for (int i = 0; i < 10; i++)
                random_write(w, &rng);
        } while (next);
        EXPECT_EQ(ix, whole.count);
        object_list_done(&whole);
    }
}

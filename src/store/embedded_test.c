/* The embedded store: what every store does (conformance.c), and what only this one promises. */
#include "store/embedded.h"

#include "base/rng.h"
#include "base/vec.h"
#include "store/conformance.c"
#include "store/sorted.h"

#define START_US ((int64_t)1767322800 * 1000000) /* 2026-01-02T03:00:00Z */

struct world {
    struct virtual_clock *time;
    struct object_pool *pool;
    struct embedded *e;
    const struct store *store;
};

static struct world *world_new(struct embedded_options opts)
{
    struct world *w = kv_calloc(1, sizeof *w);
    w->time = virtual_clock_new(START_US);
    w->pool = object_pool_new();
    opts.clock = virtual_clock_port(w->time);
    opts.pool = w->pool;
    w->e = embedded_new(opts);
    w->store = embedded_store(w->e);
    return w;
}

static void world_free(struct world *w)
{
    embedded_free(w->e);
    object_pool_free(w->pool);
    virtual_clock_free(w->time);
    free(w);
}
KV_AUTO_TYPE(world, world_free)

void conformance_open(struct conformance *c)
{
    struct world *w = world_new((struct embedded_options){ .seed = 1 });
    c->store = w->store;
    c->ctx = w;
}

void conformance_close(struct conformance *c)
{
    world_free(c->ctx);
}

bool conformance_wait(struct conformance *c KV_UNUSED)
{
    return false; /* what a call causes is done when it returns */
}

/* --- time, versions, determinism --- */

TEST(timestamps_are_the_clocks)
{
    AUTO(world) w = world_new((struct embedded_options){ 0 });
    virtual_clock_advance(w->time, 90 * (int64_t)1000000000);
    AUTO_OBJECT node = make(w->store, &node_kind, J("{'metadata':{'name':'a'}}"));
    EXPECT_EQ(node->meta.created_us, START_US + 90 * 1000000);

    run_pod(w->store, "p", "");
    remove_it(w->store, &pod_kind, "p");
    AUTO_OBJECT pod = get(w->store, &pod_kind, "p");
    EXPECT_EQ(pod->meta.deleted_us, START_US + (90 + 30) * 1000000);
}

TEST(versions_have_no_gaps_and_are_the_whole_stores)
{
    AUTO(world) w = world_new((struct embedded_options){ 0 });
    uint64_t before = embedded_version(w->e);
    AUTO_OBJECT a = make(w->store, &node_kind, J("{'metadata':{'name':'a'}}"));
    AUTO_OBJECT b = make(w->store, &lease_kind, J("{'metadata':{'name':'a'}}"));
    EXPECT_EQ(a->meta.resource_version, before + 1);
    EXPECT_EQ(b->meta.resource_version, before + 2);
    EXPECT_EQ(embedded_version(w->e), before + 2);
}

static void some_history(struct world *w)
{
    object_unref(make(w->store, &lease_kind, J("{'metadata':{'generateName':'x-'}}")));
    run_pod(w->store, "a", "'app':'web'");
    object_unref(make(w->store, &pdb_kind,
                      J("{'metadata':{'name':'b'},'spec':{'maxUnavailable':1,"
                        "'selector':{'matchLabels':{'app':'web'}}}}")));
    remove_it(w->store, &pod_kind, "a");
}

TEST(equal_seeds_and_calls_give_equal_stores)
{
    AUTO(world) one = world_new((struct embedded_options){ .seed = 5 });
    AUTO(world) two = world_new((struct embedded_options){ .seed = 5 });
    AUTO(world) other = world_new((struct embedded_options){ .seed = 6 });
    AUTO_BUF first = { 0 }, second = { 0 }, third = { 0 };
    some_history(one);
    some_history(two);
    some_history(other);
    embedded_dump(one->e, &first);
    embedded_dump(two->e, &second);
    embedded_dump(other->e, &third);
    EXPECT_TRUE(str_eq(buf_str(&first), buf_str(&second)));
    EXPECT_FALSE(str_eq(buf_str(&first), buf_str(&third)));
}

TEST(a_store_that_was_dumped_loads_as_it_was)
{
    AUTO(world) one = world_new((struct embedded_options){ .seed = 5 });
    AUTO(world) two = world_new((struct embedded_options){ .seed = 9 });
    AUTO_BUF first = { 0 }, second = { 0 };
    struct embedded_loaded loaded;
    struct err err = { 0 };
    some_history(one);
    embedded_dump(one->e, &first);
    EXPECT_OK(embedded_load(two->e, buf_str(&first), &loaded, &err), err);
    EXPECT_EQ(loaded.skipped_count, 0);
    embedded_dump(two->e, &second);
    EXPECT_STR(buf_str(&second), first.p);
}

TEST(loading_takes_lists_skips_foreign_kinds_and_names_the_bad_object)
{
    AUTO(world) w = world_new((struct embedded_options){ .auto_namespaces = true });
    struct embedded_loaded loaded;
    struct err err = { 0 };
    static const char text[] = "apiVersion: v1\n"
                               "kind: List\n"
                               "items:\n"
                               "- apiVersion: v1\n"
                               "  kind: Node\n"
                               "  metadata: {name: node-1, uid: u-1, resourceVersion: '99'}\n"
                               "  status: {capacity: {cpu: 4}}\n"
                               "- apiVersion: example.com/v1\n"
                               "  kind: Foreign\n"
                               "  metadata: {name: f}\n"
                               "---\n"
                               "apiVersion: coordination.k8s.io/v1\n"
                               "kind: Lease\n"
                               "metadata: {name: l, namespace: made-for-it}\n";
    EXPECT_OK(embedded_load(w->e, str_of(text), &loaded, &err), err);
    EXPECT_EQ(loaded.object_count, 2);
    EXPECT_EQ(loaded.skipped_count, 1);
    AUTO_OBJECT node = get(w->store, &node_kind, "node-1");
    EXPECT_STR(node->meta.uid, "u-1");
    EXPECT_TRUE(is_there(w->store, &namespace_kind, "made-for-it"));

    EXPECT_ERR(embedded_load(w->e, str_of(text), &loaded, &err), err, ERR_EXISTS);
    EXPECT_HAS(str_of(err.text), "Node/node-1");
    EXPECT_ERR(embedded_load(w->e, STR("a: [\n"), &loaded, &err), err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), "line 2");
}

/* --- history --- */

TEST(a_watch_that_fell_behind_is_told_to_list_again)
{
    AUTO(world) w = world_new((struct embedded_options){ .history_max = 8 });
    uint64_t start = embedded_version(w->e);
    struct watch *slow = watch(w->store, &node_kind,
                               (struct watch_options){ .resource_version = start });
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
        object_unref(merge(w->store, &node_kind, "a", J("{'metadata':{'labels':{'n':'%d'}}}", i)));
    EXPECT_OK(store_list(w->store, &node_kind, &opts, &next, &err), err);
    object_list_done(&next);
    object_unref(merge(w->store, &node_kind, "a", J("{'metadata':{'labels':{'n':'last'}}}")));
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
    AUTO_OBJECT made = make(w->store, &node_kind, J("{'metadata':{'name':'a'}}"));
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
                     J("{'metadata':{'name':'%s','labels':{'a':'%u'}}}", name, a), NULL, &err);
        break;
    case 1:
        store_remove(w->store, at(&node_kind, name), NULL, &err);
        break;
    default:
        store_patch(w->store, at(&node_kind, name), (struct patch_options){ 0 },
                    a == 2 ? J("{'metadata':{'labels':{'a':null,'b':'%u'}}}", b) :
                             J("{'metadata':{'labels':{'a':'%u','b':'%u'}}}", a, b),
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
            replicas[i].watch = watch(w->store, &node_kind,
                                      (struct watch_options){ .label_selector =
                                                                  str_of(selectors[i]) });
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

/* --- namespaces, garbage --- */

TEST(a_namespace_goes_after_its_contents)
{
    AUTO(world) w = world_new((struct embedded_options){ .auto_namespaces = true });
    struct err err = { 0 };
    EXPECT_OK(store_create(w->store, &pod_kind, STR("team"),
                           J("{'metadata':{'name':'p'},"
                             "'spec':{'nodeName':'n','containers':[{'name':'c','image':'i'}]}}"),
                           NULL, &err),
              err);
    EXPECT_OK(store_create(w->store, &lease_kind, STR("team"), J("{'metadata':{'name':'l'}}"), NULL,
                           &err),
              err);
    remove_it(w->store, &namespace_kind, "team");
    AUTO_OBJECT going = get(w->store, &namespace_kind, "team");
    EXPECT_EQ(namespace_of(going)->status.phase, NAMESPACE_TERMINATING);
    struct object_ref lease = { &lease_kind, STR("team"), STR("l") };
    EXPECT_ERR(store_get(w->store, lease, NULL, &err), err, ERR_NOT_FOUND);
    EXPECT_ERR(store_create(w->store, &lease_kind, STR("team"), J("{'metadata':{'name':'m'}}"), NULL,
                            &err),
               err, ERR_DENIED);

    struct object_ref pod = { &pod_kind, STR("team"), STR("p") };
    struct delete_options now = { .grace_s = { 0, true } };
    EXPECT_OK(store_remove(w->store, pod, &now, &err), err);
    EXPECT_FALSE(is_there(w->store, &namespace_kind, "team"));
    EXPECT_ERR(store_remove(w->store, at(&namespace_kind, "default"), NULL, &err), err, ERR_DENIED);
}

TEST(a_full_collection_finds_what_never_had_its_owner)
{
    AUTO(world) w = world_new((struct embedded_options){ 0 });
    object_unref(make(w->store, &lease_kind,
                      J("{'metadata':{'name':'orphan','ownerReferences':[{'apiVersion':'v1',"
                        "'kind':'Node','name':'gone','uid':'u-1'}]}}")));
    object_unref(make(w->store, &lease_kind,
                      J("{'metadata':{'name':'foreign','ownerReferences':[{'apiVersion':"
                        "'example.com/v1','kind':'Unknown','name':'x','uid':'u-2'}]}}")));
    EXPECT_TRUE(is_there(w->store, &lease_kind, "orphan"));
    embedded_gc(w->e);
    EXPECT_FALSE(is_there(w->store, &lease_kind, "orphan"));
    EXPECT_TRUE(is_there(w->store, &lease_kind, "foreign")); /* who knows */
}

/* --- budgets --- */

struct budget_case {
    const char *spec;
    int pods, ready;
    int64_t replicas; /* of the ReplicaSet; negative: the pods have none */
    int64_t expected, desired, allowed;
};

static void check_budget(const struct budget_case *t)
{
    AUTO(world) w = world_new((struct embedded_options){ 0 });
    char owner[300] = "";
    if (t->replicas >= 0) {
        AUTO_OBJECT rs = make(
            w->store, &replica_set_kind,
            J("{'metadata':{'name':'rs'},'spec':{'replicas':%lld,'selector':{'matchLabels':"
              "{'app':'web'}},'template':{'metadata':{'labels':{'app':'web'}},"
              "'spec':{'containers':[{'name':'c','image':'i'}]}}}}",
              (long long)t->replicas));
        snprintf(owner, sizeof owner,
                 ",'ownerReferences':[{'apiVersion':'apps/v1','kind':'ReplicaSet','name':'rs',"
                 "'uid':'%.*s','controller':true}]",
                 STR_ARG(rs->meta.uid));
    }
    object_unref(make(w->store, &pdb_kind,
                      J("{'metadata':{'name':'b'},'spec':{%s,'selector':{'matchLabels':"
                        "{'app':'web'}}}}",
                        t->spec)));
    for (int i = 0; i < t->pods; i++) {
        char name[16];
        snprintf(name, sizeof name, "p%d", i);
        object_unref(make(w->store, &pod_kind,
                          J("{'metadata':{'name':'%s','labels':{'app':'web'}%s},"
                            "'spec':{'containers':[{'name':'c','image':'i'}]}}",
                            name, owner)));
        bind_pod(w->store, name, "n");
        set_pod(w->store, name, "Running", i < t->ready);
    }
    AUTO_OBJECT object = get(w->store, &pdb_kind, "b");
    const struct pdb_status *status = &pdb_of(object)->status;
    EXPECT_EQ(status->expected_pods, t->expected);
    EXPECT_EQ(status->desired_healthy, t->desired);
    EXPECT_EQ(status->current_healthy, t->ready);
    EXPECT_EQ(status->disruptions_allowed, t->allowed);
    EXPECT_EQ(status->conditions.items[0].status,
              t->allowed > 0 ? CONDITION_TRUE : CONDITION_FALSE);
}

TEST(budgets_count_as_the_disruption_controller_does)
{
    static const struct budget_case cases[] = {
        { "'minAvailable':2", 3, 3, -1, 3, 2, 1 },
        { "'minAvailable':2", 3, 2, -1, 3, 2, 0 },
        { "'minAvailable':0", 2, 2, -1, 2, 0, 2 },
        { "'minAvailable':5", 3, 3, -1, 3, 5, 0 },
        { "'minAvailable':'50%'", 3, 3, 3, 3, 2, 1 }, /* 1.5 is 2 */
        { "'minAvailable':'50%'", 3, 3, 10, 10, 5, 0 }, /* of what is wanted, not of what is there */
        { "'minAvailable':'100%'", 3, 3, 3, 3, 3, 0 },
        { "'maxUnavailable':1", 3, 3, 3, 3, 2, 1 },
        { "'maxUnavailable':1", 3, 2, 3, 3, 2, 0 },
        { "'maxUnavailable':'34%'", 3, 3, 3, 3, 1, 2 }, /* 1.02 is 2 */
        { "'maxUnavailable':9", 3, 3, 3, 3, 0, 3 },
        { "'maxUnavailable':0", 3, 3, 3, 3, 3, 0 },
        { "'maxUnavailable':1", 0, 0, 3, 0, 0, 0 }, /* no pods: nothing to allow */
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++)
        check_budget(&cases[i]);
}

TEST(a_budget_over_pods_without_a_scale_allows_nothing)
{
    AUTO(world) w = world_new((struct embedded_options){ 0 });
    struct err err = { 0 };
    object_unref(make(w->store, &pod_kind,
                      J("{'metadata':{'name':'p','labels':{'app':'web'},'ownerReferences':[{"
                        "'apiVersion':'batch/v1','kind':'Job','name':'j','uid':'u',"
                        "'controller':true}]},'spec':{'containers':[{'name':'c','image':'i'}]}}")));
    bind_pod(w->store, "p", "n");
    set_pod(w->store, "p", "Running", true);
    object_unref(make(w->store, &pdb_kind,
                      J("{'metadata':{'name':'b'},'spec':{'maxUnavailable':1,"
                        "'selector':{'matchLabels':{'app':'web'}}}}")));
    AUTO_OBJECT object = get(w->store, &pdb_kind, "b");
    EXPECT_STR(pdb_of(object)->status.conditions.items[0].reason, "SyncFailed");
    EXPECT_ERR(evict(w->store, "p", &err), err, ERR_THROTTLED);
}

TEST(a_budget_follows_the_scale_of_the_deployment_behind_the_replica_set)
{
    AUTO(world) w = world_new((struct embedded_options){ 0 });
    AUTO_OBJECT web = make(w->store, &deployment_kind, J("%s", deployment_json));
    AUTO_OBJECT rs = make(
        w->store, &replica_set_kind,
        J("{'metadata':{'name':'web-1','ownerReferences':[{'apiVersion':'apps/v1',"
          "'kind':'Deployment','name':'web','uid':'%.*s','controller':true}]},"
          "'spec':{'replicas':1,'selector':{'matchLabels':{'app':'web'}},'template':{'metadata':"
          "{'labels':{'app':'web'}},'spec':{'containers':[{'name':'c','image':'i'}]}}}}",
          STR_ARG(web->meta.uid)));
    object_unref(make(w->store, &pod_kind,
                      J("{'metadata':{'name':'p','labels':{'app':'web'},'ownerReferences':[{"
                        "'apiVersion':'apps/v1','kind':'ReplicaSet','name':'web-1','uid':'%.*s',"
                        "'controller':true}]},'spec':{'containers':[{'name':'c','image':'i'}]}}",
                        STR_ARG(rs->meta.uid))));
    object_unref(make(w->store, &pdb_kind,
                      J("{'metadata':{'name':'b'},'spec':{'maxUnavailable':1,"
                        "'selector':{'matchLabels':{'app':'web'}}}}")));
    AUTO_OBJECT before = get(w->store, &pdb_kind, "b");
    EXPECT_EQ(pdb_of(before)->status.expected_pods, 3);
    object_unref(merge(w->store, &deployment_kind, "web", J("{'spec':{'replicas':8}}")));
    AUTO_OBJECT after = get(w->store, &pdb_kind, "b");
    EXPECT_EQ(pdb_of(after)->status.expected_pods, 8);
}

/* Counts that follow changes are what counting anew gives. */
TEST(budgets_never_drift_from_what_is_there)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        AUTO(world) w = world_new((struct embedded_options){ .seed = seed });
        struct rng rng;
        rng_init(&rng, seed);
        object_unref(make(w->store, &pdb_kind,
                          J("{'metadata':{'name':'b'},'spec':{'minAvailable':1,"
                            "'selector':{'matchLabels':{'app':'web'}}}}")));
        for (int i = 0; i < 200; i++) {
            char name[8];
            struct err err = { 0 };
            snprintf(name, sizeof name, "p%u", (unsigned)rng_below(&rng, 8));
            bool there = is_there(w->store, &pod_kind, name);
            uint64_t what = rng_below(&rng, 5);
            if (!there)
                run_pod(w->store, name, what < 3 ? "'app':'web'" : "");
            else if (what == 0)
                remove_it(w->store, &pod_kind, name);
            else if (what == 1)
                store_remove(w->store, at(&pod_kind, name),
                             &(struct delete_options){ .grace_s = { 0, true } }, &err);
            else if (what == 2)
                object_unref(merge(w->store, &pod_kind, name,
                                   J("{'metadata':{'labels':{'app':%s}}}",
                                     rng_below(&rng, 2) ? "'web'" : "null")));
            else
                set_pod(w->store, name, "Running", what == 3);
        }
        AUTO_OBJECT followed = get(w->store, &pdb_kind, "b");
        object_unref(merge(w->store, &pdb_kind, "b", J("{'spec':{'minAvailable':2}}")));
        AUTO_OBJECT anew = get(w->store, &pdb_kind, "b");
        EXPECT_EQ(pdb_of(followed)->status.expected_pods, pdb_of(anew)->status.expected_pods);
        EXPECT_EQ(pdb_of(followed)->status.current_healthy, pdb_of(anew)->status.current_healthy);
    }
}

/* --- faults --- */

struct trouble {
    enum err_kind before, after;
    bool drop;
    int64_t delay_ns;
    enum embedded_verb verb; /* of the last call */
};

static enum err_kind trouble_before(void *ctx, const struct embedded_call *call)
{
    struct trouble *t = ctx;
    t->verb = call->verb;
    return t->before;
}

static enum err_kind trouble_after(void *ctx, const struct embedded_call *call KV_UNUSED)
{
    return ((struct trouble *)ctx)->after;
}

static bool trouble_drop(void *ctx, const struct kind *kind KV_UNUSED)
{
    return ((struct trouble *)ctx)->drop;
}

static int64_t trouble_delay(void *ctx, const struct kind *kind KV_UNUSED,
                             uint64_t version KV_UNUSED)
{
    return ((struct trouble *)ctx)->delay_ns;
}

static struct embedded_faults faults_of(struct trouble *t)
{
    return (struct embedded_faults){ trouble_before, trouble_after, trouble_drop, trouble_delay, t };
}

TEST(a_call_fails_before_or_after_it_took_effect)
{
    AUTO(world) w = world_new((struct embedded_options){ 0 });
    struct trouble t = { .before = ERR_CONFLICT };
    struct embedded_faults faults = faults_of(&t);
    struct err err = { 0 };
    make_node(w->store, "a");
    embedded_set_faults(w->e, &faults);

    struct str patch_text = J("{'metadata':{'labels':{'x':'1'}}}");
    uint64_t version = embedded_version(w->e);
    EXPECT_ERR(store_patch(w->store, at(&node_kind, "a"), (struct patch_options){ 0 }, patch_text,
                           NULL, &err),
               err, ERR_CONFLICT);
    EXPECT_EQ(t.verb, EMBEDDED_PATCH);
    EXPECT_EQ(embedded_version(w->e), version);

    t = (struct trouble){ .after = ERR_UNAVAILABLE };
    EXPECT_ERR(store_patch(w->store, at(&node_kind, "a"), (struct patch_options){ 0 }, patch_text,
                           NULL, &err),
               err, ERR_UNAVAILABLE);
    EXPECT_EQ(embedded_version(w->e), version + 1);
    EXPECT_ERR(store_remove(w->store, at(&node_kind, "a"), NULL, &err), err, ERR_UNAVAILABLE);
    t = (struct trouble){ 0 };
    EXPECT_FALSE(is_there(w->store, &node_kind, "a"));
    t.before = ERR_UNAVAILABLE;
    embedded_set_faults(w->e, NULL);
    make_node(w->store, "b");
}

TEST(a_dropped_watch_stays_broken_and_another_goes_on_from_the_last_version)
{
    AUTO(world) w = world_new((struct embedded_options){ 0 });
    struct trouble t = { 0 };
    struct embedded_faults faults = faults_of(&t);
    embedded_set_faults(w->e, &faults);
    uint64_t version = embedded_version(w->e);
    struct watch *broken = watch(w->store, &node_kind,
                                 (struct watch_options){ .resource_version = version });
    make_node(w->store, "a");
    make_node(w->store, "b");
    EXPECT_Z(event_text(broken, &version), "ADDED a");
    t.drop = true;
    EXPECT_Z(event_text(broken, NULL), "error unavailable");
    t.drop = false;
    EXPECT_Z(event_text(broken, NULL), "error unavailable");
    watch_close(broken);
    struct watch *next = watch(w->store, &node_kind,
                               (struct watch_options){ .resource_version = version });
    EXPECT_Z(event_text(next, NULL), "ADDED b");
    watch_close(next);
}

TEST(delayed_events_arrive_when_their_time_has_come)
{
    AUTO(world) w = world_new((struct embedded_options){ 0 });
    struct trouble t = { .delay_ns = 5000 };
    struct embedded_faults faults = faults_of(&t);
    embedded_set_faults(w->e, &faults);
    struct watch *late = watch(w->store, &node_kind,
                               (struct watch_options){ .resource_version = embedded_version(w->e) });
    EXPECT_EQ(embedded_event_due_ns(w->e), INT64_MAX);
    make_node(w->store, "a");
    EXPECT_Z(event_text(late, NULL), "");
    int64_t due_ns = embedded_event_due_ns(w->e);
    EXPECT_EQ(due_ns, clock_mono_ns(virtual_clock_port(w->time)) + 5000);
    virtual_clock_advance(w->time, 4999);
    EXPECT_Z(event_text(late, NULL), "");
    virtual_clock_advance(w->time, 1);
    EXPECT_Z(event_text(late, NULL), "ADDED a");
    watch_close(late);
}

/* --- threads --- */

enum { WRITERS = 3, WATCHERS = 3, WRITES = 300 };

struct writer {
    struct world *w;
    unsigned number;
};

/* Writes only its own node and one that all fight for. */
static void *write_much(void *arg)
{
    struct writer *me = arg;
    char own[16];
    struct err err = { 0 };
    snprintf(own, sizeof own, "own-%u", me->number);
    store_create(me->w->store, &node_kind, STR(""), J("{'metadata':{'name':'%s'}}", own), NULL, &err);
    for (int i = 0; i < WRITES; i++) {
        store_patch(me->w->store, at(&node_kind, own), (struct patch_options){ 0 },
                    J("{'metadata':{'labels':{'i':'%d'}}}", i), NULL, &err);
        if (i % 2)
            store_create(me->w->store, &node_kind, STR(""), J("{'metadata':{'name':'all'}}"), NULL,
                         &err);
        else
            store_remove(me->w->store, at(&node_kind, "all"), NULL, &err);
    }
    return NULL;
}

struct reader {
    struct world *w;
    atomic_bool *stop;
    size_t seen;
    bool in_order;
};

static void *read_much(void *arg)
{
    struct reader *me = arg;
    uint64_t last = embedded_version(me->w->e);
    me->in_order = true;
    while (!atomic_load(me->stop)) {
        struct watch *w = watch(me->w->store, &node_kind,
                                (struct watch_options){ .resource_version = last });
        struct watch_event event;
        struct err err = { 0 };
        for (int i = 0; i < 100 && watch_next(w, &event, &err) > 0; i++) {
            me->in_order &= event.resource_version > last;
            last = event.resource_version;
            me->seen++;
            object_unref(event.object);
        }
        watch_close(w);
    }
    return NULL;
}

TEST(writers_and_watchers_on_many_threads_agree)
{
    AUTO(world) w = world_new((struct embedded_options){ .history_max = 1 << 14 });
    pthread_t threads[WRITERS + WATCHERS];
    struct writer writers[WRITERS];
    struct reader readers[WATCHERS];
    atomic_bool stop = false;

    for (unsigned i = 0; i < WATCHERS; i++) {
        readers[i] = (struct reader){ .w = w, .stop = &stop };
        pthread_create(&threads[WRITERS + i], NULL, read_much, &readers[i]);
    }
    for (unsigned i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){ w, i };
        pthread_create(&threads[i], NULL, write_much, &writers[i]);
    }
    for (unsigned i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    atomic_store(&stop, true);
    for (unsigned i = 0; i < WATCHERS; i++) {
        pthread_join(threads[WRITERS + i], NULL);
        EXPECT_TRUE(readers[i].in_order);
    }
    AUTO_OBJECT own = get(w->store, &node_kind, "own-0");
    EXPECT_STR(str_map_get(&own->meta.labels, STR("i")), "299");
}

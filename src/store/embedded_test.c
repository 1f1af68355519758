/* The embedded store: what every store does (conformance_tests.h), and what only this one promises about
 * time, versions, texts, faults and threads. */
#include "store/conformance_tests.h"

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

/* --- where an API server answers 500, to what is nobody's fault but the writer's --- */

TEST(a_strategic_patch_that_cannot_be_understood_is_refused)
{
    static const char *const bad[] = {
        "{'metadata':{'$patch':'explode'}}", "{'metadata':{'$unknown':1}}",
        "{'status':{'conditions':[{'status':'True'}]}}", /* no merge key */
    };
    CONFORMANCE c = opened();
    make_node(c.store, "a");
    for (size_t i = 0; i < KV_COUNT_OF(bad); i++) {
        struct err err = { 0 };
        EXPECT_ERR(patch(&c, &node_kind, "a",
                         (struct patch_options){ .type = PATCH_STRATEGIC, .status = true },
                         js("%s", bad[i]), &err),
                   err, ERR_INVALID);
    }
}

TEST(a_new_object_brings_no_version_and_a_pod_is_bound_to_something)
{
    CONFORMANCE c = opened();
    struct err err = { 0 };
    EXPECT_ERR(store_create(c.store, &node_kind, STR(""),
                            js("{'metadata':{'name':'a','resourceVersion':'7'}}"), NULL, &err),
               err, ERR_INVALID);
    make_pod(c.store, "a", "");
    EXPECT_ERR(store_bind(c.store, STR("default"), STR("a"), STR(""), &err), err, ERR_INVALID);
}

/* --- time, versions, determinism --- */

TEST(timestamps_are_the_clocks)
{
    AUTO(world) w = world_new((struct embedded_options){ 0 });
    virtual_clock_advance(w->time, 90 * SECOND_NS);
    AUTO_OBJECT node = make(w->store, &node_kind, js("{'metadata':{'name':'a'}}"));
    EXPECT_EQ(node->meta.created_us, START_US + 90 * SECOND_US);

    run_pod(w->store, "p", "");
    remove_it(w->store, &pod_kind, "p");
    AUTO_OBJECT pod = get(w->store, &pod_kind, "p");
    EXPECT_EQ(pod->meta.deleted_us, START_US + (90 + 30) * SECOND_US);
}

TEST(versions_have_no_gaps_and_are_the_whole_stores)
{
    AUTO(world) w = world_new((struct embedded_options){ 0 });
    uint64_t before = embedded_version(w->e);
    AUTO_OBJECT a = make(w->store, &node_kind, js("{'metadata':{'name':'a'}}"));
    AUTO_OBJECT b = make(w->store, &lease_kind, js("{'metadata':{'name':'a'}}"));
    EXPECT_EQ(a->meta.resource_version, before + 1);
    EXPECT_EQ(b->meta.resource_version, before + 2);
    EXPECT_EQ(embedded_version(w->e), before + 2);
}

static void some_history(struct world *w)
{
    object_unref(make(w->store, &lease_kind, js("{'metadata':{'generateName':'x-'}}")));
    run_pod(w->store, "a", "'app':'web'");
    object_unref(make(w->store, &pdb_kind,
                      js("{'metadata':{'name':'b'},'spec':{'maxUnavailable':1,"
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

TEST(a_store_with_deletions_under_way_loads_as_it_was)
{
    AUTO(world) one = world_new((struct embedded_options){ .auto_namespaces = true });
    AUTO(world) two = world_new((struct embedded_options){ .seed = 9 });
    AUTO_BUF first = { 0 }, second = { 0 };
    struct err err = { 0 };
    struct delete_options foreground = { .propagation = PROPAGATE_FOREGROUND };
    AUTO_OBJECT web = make(one->store, &deployment_kind, js("%s", deployment_json));
    object_unref(make(one->store, &pod_kind,
                      js("{'metadata':{'name':'p','ownerReferences':[{'apiVersion':'apps/v1',"
                         "'kind':'Deployment','name':'web','uid':'%.*s','blockOwnerDeletion':true"
                         "}]},'spec':{'nodeName':'n','containers':[{'name':'c','image':'i'}]}}",
                         STR_ARG(web->meta.uid))));
    EXPECT_OK(store_create(one->store, &pod_kind, STR("team"),
                           js("{'metadata':{'name':'q'},"
                              "'spec':{'nodeName':'n','containers':[{'name':'c','image':'i'}]}}"),
                           NULL, &err),
              err);
    EXPECT_OK(store_remove(one->store, at(&deployment_kind, "web"), &foreground, &err), err);
    remove_it(one->store, &namespace_kind, "team");
    embedded_dump(one->e, &first);
    EXPECT_HAS(buf_str(&first), "foregroundDeletion");
    EXPECT_HAS(buf_str(&first), "Terminating");

    EXPECT_OK(embedded_load(two->e, buf_str(&first), NULL, &err), err);
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
    EXPECT_ERR(embedded_load(w->e, STR("metadata: {name: a}\n"), &loaded, &err), err, ERR_INVALID);
    EXPECT_ERR(embedded_load(w->e, STR("[1]"), &loaded, &err), err, ERR_INVALID);
    EXPECT_ERR(embedded_load(w->e, STR("a: [\n"), &loaded, &err), err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), "line 2");
}

TEST(a_namespace_that_cannot_be_loaded_leaves_the_one_that_is_there)
{
    AUTO(world) w = world_new((struct embedded_options){ 0 });
    struct err err = { 0 };
    EXPECT_ERR(embedded_load(w->e,
                             STR("{apiVersion: v1, kind: Namespace, metadata: {name: default}, "
                                 "spec: {wrong: 1}}"),
                             NULL, &err),
               err, ERR_INVALID);
    EXPECT_TRUE(is_there(w->store, &namespace_kind, "default"));
}

TEST(a_grace_period_beyond_all_time_is_taken_as_a_very_long_one)
{
    AUTO(world) w = world_new((struct embedded_options){ 0 });
    struct err err = { 0 };
    struct delete_options forever = { .grace_s = { INT64_MAX, true } };
    run_pod(w->store, "p", "");
    EXPECT_OK(store_remove(w->store, at(&pod_kind, "p"), &forever, &err), err);
    AUTO_OBJECT pod = get(w->store, &pod_kind, "p");
    EXPECT_TRUE(pod->meta.deleted_us > START_US);
    struct delete_options shorter = { .grace_s = { 30, true } };
    EXPECT_OK(store_remove(w->store, at(&pod_kind, "p"), &shorter, &err), err);
    AUTO_OBJECT sooner = get(w->store, &pod_kind, "p");
    EXPECT_EQ(sooner->meta.deleted_us, START_US + 30 * SECOND_US);
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
    return (struct embedded_faults){ trouble_before, trouble_after, trouble_drop, trouble_delay,
                                     t };
}

TEST(a_call_fails_before_or_after_it_took_effect)
{
    AUTO(world) w = world_new((struct embedded_options){ 0 });
    struct trouble t = { .before = ERR_CONFLICT };
    struct embedded_faults faults = faults_of(&t);
    struct err err = { 0 };
    make_node(w->store, "a");
    embedded_set_faults(w->e, &faults);

    struct str patch_text = js("{'metadata':{'labels':{'x':'1'}}}");
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
    struct watch *broken =
        watch(w->store, &node_kind, (struct watch_options){ .resource_version = version });
    make_node(w->store, "a");
    make_node(w->store, "b");
    EXPECT_Z(event_text(broken, &version), "ADDED a");
    t.drop = true;
    EXPECT_Z(event_text(broken, NULL), "error unavailable");
    t.drop = false;
    EXPECT_Z(event_text(broken, NULL), "error unavailable");
    watch_close(broken);
    struct watch *next =
        watch(w->store, &node_kind, (struct watch_options){ .resource_version = version });
    EXPECT_Z(event_text(next, NULL), "ADDED b");
    watch_close(next);
}

TEST(delayed_events_arrive_when_their_time_has_come)
{
    AUTO(world) w = world_new((struct embedded_options){ 0 });
    struct trouble t = { .delay_ns = 5000 };
    struct embedded_faults faults = faults_of(&t);
    embedded_set_faults(w->e, &faults);
    struct watch *late = watch(
        w->store, &node_kind, (struct watch_options){ .resource_version = embedded_version(w->e) });
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

TEST(nobody_waits_for_what_an_onlooker_has_not_seen_yet)
{
    AUTO(world) w = world_new((struct embedded_options){ 0 });
    struct trouble t = { .delay_ns = 5000 };
    struct embedded_faults faults = faults_of(&t);
    embedded_set_faults(w->e, &faults);
    struct watch *aside =
        watch(embedded_onlooker(w->e), &node_kind,
              (struct watch_options){ .resource_version = embedded_version(w->e) });
    make_node(w->store, "a");
    EXPECT_EQ(embedded_event_due_ns(w->e), INT64_MAX);
    EXPECT_Z(event_text(aside, NULL), "");
    virtual_clock_advance(w->time, 5000);
    EXPECT_Z(event_text(aside, NULL), "ADDED a");
    watch_close(aside);
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
    store_create(me->w->store, &node_kind, STR(""), js("{'metadata':{'name':'%s'}}", own), NULL,
                 &err);
    for (int i = 0; i < WRITES; i++) {
        store_patch(me->w->store, at(&node_kind, own), (struct patch_options){ 0 },
                    js("{'metadata':{'labels':{'i':'%d'}}}", i), NULL, &err);
        if (i % 2)
            store_create(me->w->store, &node_kind, STR(""), js("{'metadata':{'name':'all'}}"), NULL,
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
        struct watch *w =
            watch(me->w->store, &node_kind, (struct watch_options){ .resource_version = last });
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

TEST(an_object_is_shown_as_text_with_fields_that_are_not_kept)
{
    AUTO(world) w = world_new((struct embedded_options){ 0 });
    AUTO_BUF text = { 0 };
    struct err err = { 0 };
    object_unref(make(w->store, &pod_kind,
                      js("{'metadata':{'name':'p'},'spec':{'containers':[{'name':'c','image':'i',"
                         "'command':['sh']}]}}")));
    EXPECT_OK(store_get_json(w->store, at(&pod_kind, "p"), &text, &err), err);
    EXPECT_HAS(buf_str(&text), "\"command\":[\"sh\"]");
    EXPECT_ERR(store_get_json(w->store, at(&pod_kind, "q"), &text, &err), err, ERR_NOT_FOUND);
}

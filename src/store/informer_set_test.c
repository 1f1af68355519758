/* Informers on threads of their own, with real time: sets, waiting, the end of a set. */
#include "store/informer.h"

#include "base/rng.h"
#include "store/testing.h"

struct real_world {
    struct object_pool *pool;
    struct embedded *e;
    const struct store *store;
};

static struct real_world real_world(void)
{
    struct real_world w = { .pool = object_pool_new() };
    w.e = embedded_new((struct embedded_options){ .clock = clock_real(), .pool = w.pool });
    w.store = embedded_store(w.e);
    return w;
}

static void real_world_done(struct real_world *w)
{
    embedded_free(w->e);
    object_pool_free(w->pool);
}

#define REAL_WORLD __attribute__((cleanup(real_world_done))) struct real_world

static int64_t soon_ns(void)
{
    return clock_mono_ns(clock_real()) + 60 * SECOND_NS;
}

TEST(a_set_keeps_many_informers_current_on_its_thread)
{
    REAL_WORLD w = real_world();
    struct informer_options opts = { .store = w.store, .clock = clock_real(), .kind = &node_kind };
    struct informer *nodes = informer_new(opts);
    opts.kind = &pod_kind;
    struct informer *pods = informer_new(opts);
    struct informer_set *set = informer_set_new(clock_real());
    struct err err = { 0 };
    informer_set_add(set, nodes);
    informer_set_add(set, pods);
    informer_set_start(set);

    for (int i = 0; i < 50; i++) {
        AUTO_OBJECT node = make(w.store, &node_kind, js("{'metadata':{'name':'n%d'}}", i));
        EXPECT_OK(informer_wait_version(nodes, node->meta.resource_version, soon_ns(), &err), err);
        EXPECT_EQ(informer_count(nodes), i + 1);
    }
    make_pod(w.store, "p", "");
    AUTO_OBJECT pod = get(w.store, &pod_kind, "p");
    EXPECT_OK(informer_wait_version(pods, pod->meta.resource_version, soon_ns(), &err), err);
    EXPECT_ERR(informer_wait_version(pods, UINT64_MAX, clock_mono_ns(clock_real()) + 1000, &err),
               err, ERR_UNAVAILABLE);
    informer_set_free(set);
    informer_free(nodes);
    informer_free(pods);
}

struct waiter {
    struct informer *inf;
    enum err_kind kind;
};

static void *wait_for_ever(void *arg)
{
    struct waiter *me = arg;
    struct err err = { 0 };
    informer_wait_version(me->inf, UINT64_MAX, INT64_MAX, &err);
    me->kind = err.kind;
    return NULL;
}

TEST(stopping_a_set_releases_who_waits)
{
    REAL_WORLD w = real_world();
    struct informer *nodes = informer_new(
        (struct informer_options){ .store = w.store, .clock = clock_real(), .kind = &node_kind });
    struct informer_set *set = informer_set_new(clock_real());
    struct waiter waiter = { .inf = nodes };
    pthread_t thread;
    informer_set_add(set, nodes);
    informer_set_start(set);
    pthread_create(&thread, NULL, wait_for_ever, &waiter);
    informer_set_free(set);
    pthread_join(thread, NULL);
    EXPECT_EQ(waiter.kind, ERR_CANCELLED);
    informer_free(nodes);
}

TEST(an_informer_whose_set_is_gone_rests)
{
    REAL_WORLD w = real_world();
    struct informer *nodes = informer_new(
        (struct informer_options){ .store = w.store, .clock = clock_real(), .kind = &node_kind });
    struct informer_set *set = informer_set_new(clock_real());
    struct err err = { 0 };
    make_node(w.store, "a");
    informer_set_add(set, nodes);
    informer_set_start(set);
    EXPECT_OK(informer_wait_version(nodes, embedded_version(w.e), soon_ns(), &err), err);
    informer_set_free(set);

    EXPECT_EQ(informer_pump(nodes), 0);
    EXPECT_EQ(informer_due_ns(nodes), INT64_MAX);
    make_node(w.store, "b"); /* wakes nobody: the set is freed memory */
    EXPECT_EQ(informer_pump(nodes), 0);
    EXPECT_EQ(informer_count(nodes), 1); /* what it had can still be read */
    EXPECT_ERR(informer_wait_version(nodes, embedded_version(w.e), soon_ns(), &err), err,
               ERR_CANCELLED);
    informer_free(nodes);
}

enum { WRITERS = 3, WRITES = 300 };

struct crowd {
    struct real_world w;
    struct informer *nodes;
    atomic_bool stop;
    atomic_uint changes;
};

struct member {
    struct crowd *crowd;
    uint64_t number;
};

static void *crowd_writes(void *arg)
{
    struct member *me = arg;
    struct rng rng;
    rng_init(&rng, me->number);
    for (int i = 0; i < WRITES; i++)
        change_some_node(me->crowd->w.store, &rng);
    return NULL;
}

static void *crowd_reads(void *arg)
{
    struct crowd *crowd = arg;
    while (!atomic_load(&crowd->stop)) {
        struct object_list found = { 0 };
        informer_list(crowd->nodes, STR(""), &found);
        for (size_t i = 1; i < found.count; i++)
            KV_ASSERT(str_cmp(found.items[i - 1]->meta.name, found.items[i]->meta.name) < 0);
        object_list_done(&found);
    }
    return NULL;
}

static void crowd_counts(void *ctx, const struct object *maybe_old KV_UNUSED,
                         const struct object *maybe_new KV_UNUSED)
{
    atomic_fetch_add(&((struct crowd *)ctx)->changes, 1);
}

static atomic_uint drops;

static bool drop_some(void *ctx KV_UNUSED, const struct kind *kind KV_UNUSED)
{
    return atomic_fetch_add(&drops, 1) % 50 == 49;
}

TEST(writers_readers_and_a_set_on_many_threads_agree_in_the_end)
{
    REAL_WORLD w = real_world();
    struct crowd crowd = { .w = w };
    struct embedded_faults faults = { .drop_watch = drop_some };
    struct member members[WRITERS];
    pthread_t threads[WRITERS + 1];
    struct err err = { 0 };

    crowd.nodes = informer_new((struct informer_options){
        .store = crowd.w.store, .clock = clock_real(), .kind = &node_kind });
    informer_on_change(crowd.nodes, crowd_counts, &crowd);
    struct informer_set *set = informer_set_new(clock_real());
    informer_set_add(set, crowd.nodes);
    embedded_set_faults(crowd.w.e, &faults);
    informer_set_start(set);
    for (unsigned i = 0; i < WRITERS; i++) {
        members[i] = (struct member){ &crowd, i + 1 };
        pthread_create(&threads[i], NULL, crowd_writes, &members[i]);
    }
    pthread_create(&threads[WRITERS], NULL, crowd_reads, &crowd);
    for (unsigned i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    embedded_set_faults(crowd.w.e, NULL);
    AUTO_OBJECT last = make(crowd.w.store, &node_kind, js("{'metadata':{'name':'last'}}"));
    EXPECT_OK(informer_wait_version(crowd.nodes, last->meta.resource_version, soon_ns(), &err),
              err);
    atomic_store(&crowd.stop, true);
    pthread_join(threads[WRITERS], NULL);

    struct object_list truth = { 0 }, found = { 0 };
    EXPECT_OK(store_list(crowd.w.store, &node_kind, NULL, &truth, &err), err);
    informer_list(crowd.nodes, STR(""), &found);
    EXPECT_EQ(found.count, truth.count);
    for (size_t i = 0; i < found.count; i++)
        EXPECT_TRUE(found.items[i] == truth.items[i]);
    EXPECT_TRUE(atomic_load(&crowd.changes) > 0);
    object_list_done(&truth);
    object_list_done(&found);
    informer_set_free(set);
    informer_free(crowd.nodes);
}

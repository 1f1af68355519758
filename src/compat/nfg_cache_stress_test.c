/* The NodeFeatureGroup cache used by many threads at once, while somebody deletes groups and nfd-master
 * moves. */
#include "base/thread.h"
#include "compat/nfg_cache_inner.h"
#include "compat/nfg_testing.h"

#define IMAGES 12
#define ROUNDS 300
#define READERS 3
#define PUBLISHERS 2

struct crowd {
    struct bench bench;
    struct image_facts facts[IMAGES];
    char images[IMAGES][16];
    atomic_bool stop;
    atomic_uint done; /* publishers */
    atomic_ullong hits, misses;
};

static void *reader_main(void *arg)
{
    struct crowd *c = arg;
    for (unsigned i = 0; !atomic_load(&c->stop); i++) {
        unsigned ix = i % IMAGES;
        AUTO_ARENA arena = { 0 };
        struct nfg_names names;
        struct str image = str_of(c->images[ix]);
        bool hit = nfg_cache_get_valid(c->bench.cache, image, &arena, &names);
        KV_ASSERT(hit == (names.count > 0));
        KV_ASSERT(names.count + names.missing <= 2);
        for (uint32_t k = 0; k < names.count; k++)
            KV_ASSERT(str_starts(names.items[k], STR(NFG_PREFIX)));
        atomic_fetch_add(hit ? &c->hits : &c->misses, 1);
        nfg_cache_use(c->bench.cache, image);
        nfg_cache_member(c->bench.cache, c->facts[ix].spec.maybe_spec->sets[0].rules_json,
                         STR("n1"));
    }
    return NULL;
}

static void *publisher_main(void *arg)
{
    struct crowd *c = arg;
    for (unsigned i = 0; i < ROUNDS; i++) {
        AUTO_ARENA arena = { 0 };
        struct nfg_names names;
        struct err err = { 0 };
        unsigned ix = i * 7 % IMAGES;
        int rc = nfg_cache_publish(c->bench.cache, str_of(c->images[ix]), &c->facts[ix], &arena,
                                   &names, &err);
        KV_ASSERT(rc == 0);
        if (i % 5 == 0)
            nfg_cache_remove(c->bench.cache, str_of(c->images[(ix + 1) % IMAGES]));
    }
    atomic_fetch_add(&c->done, 1);
    return NULL;
}

static void *tender_main(void *arg)
{
    struct crowd *c = arg;
    while (!atomic_load(&c->stop)) {
        nfg_cache_tend(c->bench.cache);
        virtual_clock_advance(c->bench.world->time, 10 * SECOND_NS);
    }
    return NULL;
}

/* Somebody's kubectl: any group may go at any time. */
static void delete_one(struct crowd *c, unsigned round)
{
    struct object_list list = { 0 };
    struct err err = { 0 };
    const struct store *store = c->bench.world->store;
    EXPECT_OK(store_list(store, &node_feature_group_kind, NULL, &list, &err), err);
    if (list.count) {
        const struct meta *meta = &list.items[round % list.count]->meta;
        store_remove(store, group_at(meta->namespace_, meta->name), NULL, &err);
    }
    object_list_done(&list);
}

static void crowd_init(struct crowd *c)
{
    char sets[600];
    bench_init(&c->bench, (struct nfg_cache_options){ .namespace_ = NFD });
    embedded_set_faults(c->bench.world->e, NULL);
    for (unsigned i = 0; i < IMAGES; i++) { /* neighbours share a set */
        snprintf(c->images[i], sizeof c->images[i], "app:%u", i);
        snprintf(sets, sizeof sets,
                 "{rules: [{name: r, matchFeatures: [{feature: f%u}]}]}, "
                 "{rules: [{name: r, matchFeatures: [{feature: f%u}]}]}",
                 i, i + 1);
        c->facts[i] = facts_of(bench_spec(&c->bench, sets));
    }
}

TEST(readers_publishers_and_a_watch_agree_in_the_end)
{
    static struct crowd c;
    pthread_t threads[READERS + PUBLISHERS + 1];
    size_t count = 0;
    struct err err = { 0 };
    crowd_init(&c);
    for (int i = 0; i < READERS; i++)
        EXPECT_OK(thread_start(&threads[count++], "reader", reader_main, &c, &err), err);
    for (int i = 0; i < PUBLISHERS; i++)
        EXPECT_OK(thread_start(&threads[count++], "publisher", publisher_main, &c, &err), err);
    EXPECT_OK(thread_start(&threads[count++], "tender", tender_main, &c, &err), err);
    for (unsigned round = 0; atomic_load(&c.done) < PUBLISHERS; round++) {
        informer_pump(c.bench.informer);
        if (round % 8 == 0)
            delete_one(&c, round);
        if (round % 64 == 63)
            nfg_cache_set_namespace(c.bench.cache, round & 64 ? NFD : STR("elsewhere"));
    }
    atomic_store(&c.stop, true);
    for (size_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);

    nfg_cache_set_namespace(c.bench.cache, NFD);
    informer_pump(c.bench.informer);
    /* A group of ours that was gone before we noted it: the watch has told that already, so it is asked for. */
    for (int i = 0; i < 2; i++) {
        virtual_clock_advance(c.bench.world->time, NFG_CONFIRM_NS + SECOND_NS);
        nfg_cache_tend(c.bench.cache);
        informer_pump(c.bench.informer);
    }
    for (unsigned i = 0; i < IMAGES; i++) {
        struct nfg_names names;
        EXPECT_OK(nfg_cache_publish(c.bench.cache, str_of(c.images[i]), &c.facts[i], &c.bench.arena,
                                    &names, &err),
                  err);
        EXPECT_EQ(names.count, 2);
        EXPECT_EQ(bench_get(&c.bench, c.images[i]).count, 2);
        for (uint32_t k = 0; k < 2; k++)
            EXPECT_TRUE(bench_there(&c.bench, NFD, names.items[k]));
    }
    printf("# %llu hits, %llu misses\n", (unsigned long long)atomic_load(&c.hits),
           (unsigned long long)atomic_load(&c.misses));
    bench_done(&c.bench);
}

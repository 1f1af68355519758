/* 64 readers while everything moves: generations, marks, node classes, overlays, pools, errors. Each
 * reader checks that its answer is
 *
 *     whole                   the snapshot's checksum
 *     for the class it asked  by the number of cpus, though pools turn to another class and back
 *     no older than its call  prices are the sum of all counters at the fetch
 *     with the right overlays those that were in force at some moment of the call: overlays are
 *                             numbered, and their number is the price in zone b
 *
 * while others scrape the metrics.
 */
#include "cloud/instance_cache_testing.h"

#include "base/rng.h"

#include <pthread.h>

#define READERS 64
#define POOLS 12
#define CLASSES 3
#define READS 400
#define READS_PER_MOVE 40
#define NO_OVERLAYS_EVERY 4 /* every so many numbers there are none */

struct stress {
    struct world w;
    struct metrics *metrics;
    struct nodepool pools[POOLS];
    pthread_barrier_t start;
    pthread_mutex_t overlays_lock; /* one at a time makes new ones; guards the lab */
    const struct nodeoverlay *one_pool;
    _Atomic uint64_t overlays_begun, overlays_set; /* numbers */
    _Atomic uint32_t sloppy;                       /* answers that broke a promise */
};

struct reader {
    struct stress *s;
    pthread_t thread;
    uint64_t seed;
};

static void renew_overlays(struct stress *s)
{
    pthread_mutex_lock(&s->overlays_lock);
    uint64_t number = atomic_fetch_add(&s->overlays_begun, 1) + 1;
    if (number % NO_OVERLAYS_EVERY == 0) {
        instance_cache_set_overlays(s->w.cache, NULL);
    } else {
        struct str spec = arena_strf(&s->w.lab.arena,
                                     "{price: '%llu', requirements: [{key: "
                                     "topology.kubernetes.io/zone, operator: In, values: [b]}]}",
                                     (unsigned long long)number);
        const struct nodeoverlay *all[] = { s->one_pool, lab_overlay(&s->w.lab, "zone-b", spec.p) };
        AUTO_OVERLAY_SET set = overlay_set_new(all, KV_COUNT_OF(all), number);
        instance_cache_set_overlays(s->w.cache, set);
    }
    atomic_store(&s->overlays_set, number);
    pthread_mutex_unlock(&s->overlays_lock);
}

/* Are these the overlays of one of the numbers? */
static bool overlays_are_of(const struct instance_types *types, uint64_t first, uint64_t last)
{
    uint32_t in_zone_b = types->offering_start[0] + 1;
    bool any = types->priced.words && bitset_test(&types->priced, in_zone_b), found = false;
    for (uint64_t n = first; n <= last; n++) {
        if (n % NO_OVERLAYS_EVERY == 0)
            found |= !any;
        else
            found |= any && types->prices[0][1] == (usd_hour)n * USD_HOUR_ONE;
    }
    return found;
}

static void read_once(struct stress *s, const struct nodepool *pool, bool raw)
{
    const struct instance_types *types = NULL;
    struct err err = { 0 };
    uint64_t age = fake_age(&s->w.fake), overlays = atomic_load(&s->overlays_set);
    int rc = raw ? instance_cache_get_raw(s->w.cache, pool, &types, &err)
                 : instance_cache_get(s->w.cache, pool, &types, &err);
    if (rc < 0) {
        atomic_fetch_add(&s->sloppy, err.kind != ERR_THROTTLED);
        return;
    }
    int64_t cpus = fake_cpus(pool->spec.template.spec.node_class_ref.name);
    bool fine =
        instance_types_verify(types) && types->type_count == s->w.fake.type_count &&
        age_of(types) >= age && capacity_in(types, "t0", "cpu") == cpus * 1000 &&
        (raw ? !types->base : overlays_are_of(types, overlays, atomic_load(&s->overlays_begun)));
    atomic_fetch_add(&s->sloppy, !fine);
    instance_types_unref(types);
}

/* Fetches take a while, so that others come and wait. */
static void dawdle(struct fake *f KV_UNUSED)
{
    for (int i = 0; i < 20; i++)
        sched_yield();
}

/* Something happens. */
static void move(struct stress *s, struct rng *rng)
{
    struct world *w = &s->w;
    switch (rng_below(rng, 10)) {
    case 0:
    case 1:
        generation_bump(&w->fake.counters, (enum generation_member)rng_below(rng, FAKE_SOURCES));
        return;
    case 2:
        unavailable_mark(w->fake.marks, STR("t1"), STR("a"), STR("spot"), STR(""));
        return;
    case 3:
        virtual_clock_advance(w->fake.time, UNAVAILABLE_TTL_NS / 3);
        return;
    case 4:
        renew_overlays(s);
        return;
    case 5:
        atomic_fetch_add(&w->fake.class_version, 1);
        return;
    case 6:
    case 7:
        instance_cache_forget(w->cache, s->pools[rng_below(rng, POOLS)].object.meta.name);
        return;
    case 8:
        atomic_store(&w->fake.failing, rng_below(rng, 4) == 0);
        return;
    default: {
        AUTO_BUF out = { 0 };
        metrics_write(s->metrics, &out);
    }
    }
}

static const char *const pool_names[POOLS] = { "p0", "p1", "p2", "p3", "p4",  "p5",
                                               "p6", "p7", "p8", "p9", "p10", "p11" };
static const char *const class_names[CLASSES] = { "c0", "c1", "c2" };

static void *read_many(void *ctx)
{
    struct reader *r = ctx;
    struct rng rng;
    rng_init(&rng, r->seed);
    pthread_barrier_wait(&r->s->start);
    for (int i = 0; i < READS; i++) {
        if (rng_below(&rng, READS_PER_MOVE) == 0)
            move(r->s, &rng);
        struct nodepool pool = r->s->pools[rng_below(&rng, POOLS)];
        if (rng_below(&rng, 20) == 0) /* somebody edited it, and edits it back */
            pool = pool_of(pool.object.meta.name.p, class_names[rng_below(&rng, CLASSES)]);
        read_once(r->s, &pool, rng_below(&rng, 10) == 0);
    }
    return NULL;
}

static void stress_run(uint64_t seed, uint32_t stripes)
{
    struct stress s = { .metrics = metrics_new(clock_real()) };
    struct reader readers[READERS];
    printf("# seed %llu, %u stripes\n", (unsigned long long)seed, stripes);
    world_init(&s.w, (struct instance_cache_options){
                         .node_overlays = true, .stripes = stripes, .maybe_metrics = s.metrics });
    pthread_mutex_init(&s.overlays_lock, NULL);
    pthread_barrier_init(&s.start, NULL, READERS);
    for (int i = 0; i < POOLS; i++)
        s.pools[i] = pool_of(pool_names[i], class_names[i % CLASSES]);
    s.one_pool = lab_overlay(&s.w.lab, "one-pool",
                             "{capacity: {example.com/a: '1'}, requirements: [{key: "
                             "karpenter.sh/nodepool, operator: In, values: [p3]}]}");

    s.w.fake.during = dawdle;
    for (int i = 0; i < READERS; i++) {
        readers[i] = (struct reader){ .s = &s, .seed = seed * READERS + (uint64_t)i };
        EXPECT_EQ(pthread_create(&readers[i].thread, NULL, read_many, &readers[i]), 0);
    }
    for (int i = 0; i < READERS; i++)
        pthread_join(readers[i].thread, NULL);
    EXPECT_EQ(s.sloppy, 0);

    struct instance_cache_stats stats = instance_cache_stats(s.w.cache);
    printf("# hits %llu misses %llu fetches %llu waits %llu layers %llu\n",
           (unsigned long long)stats.hits, (unsigned long long)stats.misses,
           (unsigned long long)stats.fetches, (unsigned long long)stats.waits,
           (unsigned long long)stats.layers_built);
    EXPECT_EQ(stats.waiting, 0);
    EXPECT_TRUE(stats.snapshots <= CLASSES);
    for (int i = 0; i < POOLS; i++) /* what is left is as much as there are pools */
        instance_cache_forget(s.w.cache, s.pools[i].object.meta.name);
    stats = instance_cache_stats(s.w.cache);
    EXPECT_EQ(stats.entries, 0);
    EXPECT_EQ(stats.snapshots, 0);
    EXPECT_EQ(stats.bytes, 0);
    world_done(&s.w);
    metrics_free(s.metrics);
    pthread_mutex_destroy(&s.overlays_lock);
    pthread_barrier_destroy(&s.start);
}

TEST(stress_64_readers_never_see_a_torn_an_old_or_another_answer)
{
    stress_run(1, 0);
}

TEST(stress_64_readers_on_a_single_stripe)
{
    stress_run(2, 1);
}

TEST(stress_64_readers_with_a_stripe_each)
{
    stress_run(3, READERS);
}

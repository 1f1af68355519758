/* Many threads at once, on few names, so that they meet. What each must see whatever the order: facts of a
 * digest that the tag has had, no facts without IMAGE_KNOWN, an error with IMAGE_FAILED; and in the end nothing
 * is lost, which image_cache_free asserts (bytes, digests and hosts come out at none). */
#include "compat/image_cache_testing.h"

#include "base/rng.h"

#include <stdio.h>

enum { IMAGES = 24, VERSIONS = 4, THREADS = 8, STEPS = 4000 };

static const char *image_of(char out[48], uint64_t number)
{
    static const char *const hosts[] = { "a.example", "b.example", "c.example" };
    snprintf(out, 48, "%s/app:%llu", hosts[number % 3], (unsigned long long)number);
    return out;
}

static const char *digest_of(char out[72], uint64_t number, uint64_t version)
{
    char name[16];
    snprintf(name, sizeof name, "%03llu%llu", (unsigned long long)number,
             (unsigned long long)version);
    return rig_digest(name, out);
}

struct actor {
    struct rig *rig;
    pthread_t thread;
    uint64_t seed;
    uint32_t known, wrong;
};

static void check(struct actor *actor, uint64_t number, const struct image_answer *answer)
{
    bool known = answer->state == IMAGE_KNOWN;
    actor->wrong += known != (answer->maybe_facts != NULL);
    actor->wrong += answer->state == IMAGE_FAILED && answer->err.kind == ERR_NONE;
    actor->known += known;
    if (!known)
        return;
    bool found = false;
    for (uint64_t version = 0; version < VERSIONS; version++) {
        char digest[72];
        found = found || str_eqz(answer->maybe_facts->digest, digest_of(digest, number, version));
    }
    actor->wrong += !found;
}

static void move_tag(struct rig *rig, const char *image, uint64_t number, uint64_t version)
{
    char digest[72];
    AUTO_ARENA arena = { 0 };
    struct reference ref;
    struct err err = { 0 };
    int rc = reference_parse(&arena, str_of(image), &ref, &err);
    KV_ASSERT(rc == 0);
    AUTO_FREE char *key = rig_key(&ref, ':', ref.tag);
    pthread_mutex_lock(&rig->lock);
    free(str_table_remove(&rig->digests, str_of(key)));
    str_table_put(&rig->digests, str_of(key), kv_strdup(digest_of(digest, number, version)));
    pthread_mutex_unlock(&rig->lock);
}

static void *actor_main(void *arg)
{
    struct actor *actor = arg;
    struct rig *rig = actor->rig;
    struct rng rng;
    rng_init(&rng, actor->seed);
    for (int step = 0; step < STEPS; step++) {
        char image[48];
        uint64_t number = rng_below(&rng, IMAGES), dice = rng_below(&rng, 1000);
        image_of(image, number);
        ANSWER answer = { 0 };
        if (dice < 900) {
            image_cache_get(rig->cache, str_of(image), NULL, &answer);
            check(actor, number, &answer);
        } else if (dice < 940) {
            int64_t until_ns = clock_mono_ns(virtual_clock_port(rig->clock)) + 50 * SECOND;
            image_cache_wait(rig->cache, str_of(image), NULL, until_ns, &answer);
            check(actor, number, &answer);
        } else if (dice < 950) {
            image_cache_remove(rig->cache, str_of(image));
        } else if (dice < 960) {
            image_cache_refresh(rig->cache, str_of(image));
        } else if (dice < 980) {
            move_tag(rig, image, number, rng_below(&rng, VERSIONS));
        } else {
            static const enum err_kind faults[] = { ERR_NONE,      ERR_NONE,    ERR_NONE,
                                                    ERR_NOT_FOUND, ERR_INVALID, ERR_UNAVAILABLE };
            rig_fail(rig, faults[rng_below(&rng, 6)], faults[rng_below(&rng, 6)]);
        }
    }
    return NULL;
}

struct ticker {
    struct rig *rig;
    pthread_t thread;
    atomic_bool stop;
};

static void *ticker_main(void *arg)
{
    struct ticker *ticker = arg;
    while (!atomic_load(&ticker->stop)) {
        rig_advance(ticker->rig, 7);
        (void)image_cache_stats(ticker->rig->cache);
        rig_pause();
    }
    return NULL;
}

static void run(struct image_cache_options options, uint64_t seed)
{
    printf("# seed %llu\n", (unsigned long long)seed);
    RIG rig = { 0 };
    options.seed = seed;
    rig_init(&rig, options);
    for (uint64_t number = 0; number < IMAGES; number++) {
        for (uint64_t version = 0; version < VERSIONS; version++) {
            char image[48], digest[72];
            image_of(image, number);
            digest_of(digest, number, version);
            rig_put_facts(&rig, image, digest,
                          rig_make_facts(&rig, digest, version % 2 ? "AVX2" : NULL));
            rig_put_tag(&rig, image, digest);
        }
    }
    struct ticker ticker = { .rig = &rig };
    struct actor actors[THREADS] = { 0 };
    EXPECT_EQ(pthread_create(&ticker.thread, NULL, ticker_main, &ticker), 0);
    for (uint64_t i = 0; i < THREADS; i++) {
        actors[i].rig = &rig;
        actors[i].seed = seed * 100 + i;
        EXPECT_EQ(pthread_create(&actors[i].thread, NULL, actor_main, &actors[i]), 0);
    }
    uint32_t known = 0;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(actors[i].thread, NULL);
        EXPECT_EQ(actors[i].wrong, 0);
        known += actors[i].known;
    }
    atomic_store(&ticker.stop, true);
    pthread_join(ticker.thread, NULL);
    EXPECT_TRUE(known > 0);

    rig_fail(&rig, ERR_NONE, ERR_NONE); /* all settles once the faults stop */
    rig_settle(&rig);
    rig_advance(&rig, 3600);
    for (uint64_t number = 0; number < IMAGES; number++) {
        char image[48];
        ANSWER answer = rig_wait(&rig, image_of(image, number));
        EXPECT_EQ(answer.state, IMAGE_KNOWN);
        rig_settle(&rig);
        ANSWER settled = rig_wait(&rig, image);
        struct reference ref = rig_reference(&rig, image);
        AUTO_FREE char *key = rig_key(&ref, ':', ref.tag);
        EXPECT_STR(settled.maybe_facts->digest, str_table_get(&rig.digests, str_of(key)));
    }
    struct image_cache_stats stats = image_cache_stats(rig.cache);
    EXPECT_TRUE(stats.names <= rig.cache->options.entries_max);
    printf("# %llu requests, %llu hits, %llu resolves, %llu asks, %llu evictions\n",
           (unsigned long long)stats.requests, (unsigned long long)stats.hits,
           (unsigned long long)stats.resolves, (unsigned long long)stats.asks,
           (unsigned long long)stats.evictions);
}

TEST(threads_that_meet_see_only_what_was_true)
{
    for (uint64_t seed = 1; seed <= 3; seed++)
        run((struct image_cache_options){ 0 }, seed);
}

TEST(threads_that_meet_in_a_small_cache_see_only_what_was_true)
{
    run((struct image_cache_options){ .entries_max = 6, .threads = 3 }, 11);
    run((struct image_cache_options){ .bytes_max = 8000, .threads = 1 }, 12);
}

TEST(threads_that_meet_without_a_cache_see_only_what_was_true)
{
    run((struct image_cache_options){ .disabled = true }, 21);
}

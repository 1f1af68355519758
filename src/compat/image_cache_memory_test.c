#include "compat/image_cache_testing.h"

#include "base/rng.h"

#include <malloc.h>
#include <math.h>
#include <stdio.h>

static const char *numbered(char out[48], uint32_t number)
{
    snprintf(out, 48, "registry.example/team/app:%06u", number);
    return out;
}
#define APP(number) numbered((char[48]){ 0 }, (number))

static void numbered_image(struct rig *rig, uint32_t number, const char *maybe_flag)
{
    char digest[16];
    snprintf(digest, sizeof digest, "%08x", number);
    rig_image(rig, APP(number), digest, maybe_flag);
}

static bool is_kept(struct rig *rig, const char *image)
{
    uint64_t hash = kv_hash(image, strlen(image));
    pthread_mutex_lock(&rig->cache->lock);
    bool kept = image_cache_find(image_shard_of(rig->cache, hash), str_of(image), hash, 0) != NULL;
    pthread_mutex_unlock(&rig->cache->lock);
    return kept;
}

static void fetch(struct rig *rig, uint32_t number)
{
    ANSWER answer = rig_wait(rig, APP(number));
    EXPECT_EQ(answer.state, IMAGE_KNOWN);
    rig_settle(rig);
}

/* --- by count --- */

TEST(names_that_are_used_stay_and_those_that_are_not_leave)
{
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ .entries_max = 10 });
    for (uint32_t i = 0; i < 1000; i++) {
        numbered_image(&rig, i, NULL);
        fetch(&rig, i);
        for (uint32_t favourite = 0; favourite < 3 && favourite <= i; favourite++)
            EXPECT_Z(rig_state(&rig, APP(favourite)), "known");
        EXPECT_TRUE(image_cache_stats(rig.cache).names <= 10);
        EXPECT_TRUE(image_cache_stats(rig.cache).digests <= 10);
    }
    struct image_cache_stats stats = image_cache_stats(rig.cache);
    EXPECT_EQ(stats.names, 10);
    EXPECT_EQ(stats.evictions, 990);
    EXPECT_EQ(stats.asks, 1000);
    EXPECT_FALSE(is_kept(&rig, APP(900)));
}

TEST(facts_that_somebody_uses_outlive_their_eviction)
{
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ .entries_max = 1 });
    struct image_answer held[20];
    for (uint32_t i = 0; i < 20; i++) {
        numbered_image(&rig, i, "AVX2");
        held[i] = rig_wait(&rig, APP(i));
        rig_settle(&rig);
    }
    EXPECT_EQ(image_cache_stats(rig.cache).names, 1);
    EXPECT_EQ(image_cache_stats(rig.cache).digests, 1);
    for (uint32_t i = 0; i < 20; i++) {
        char digest[16];
        snprintf(digest, sizeof digest, "%08x", i);
        EXPECT_STR(held[i].maybe_facts->digest, DIGEST(digest));
        EXPECT_EQ(held[i].maybe_facts->spec.maybe_spec->set_count, 1);
        image_answer_done(&held[i]);
    }
}

TEST(names_that_are_being_asked_for_stay_and_there_is_no_room_for_more)
{
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ .entries_max = 3 });
    for (uint32_t i = 0; i < 5; i++)
        numbered_image(&rig, i, NULL);
    rig_hold(&rig);
    for (uint32_t i = 0; i < 5; i++)
        EXPECT_Z(rig_state(&rig, APP(i)), "pending");
    struct image_cache_stats stats = image_cache_stats(rig.cache);
    EXPECT_EQ(stats.names, 3);
    EXPECT_EQ(stats.refused, 2);
    rig_release(&rig);
    rig_settle(&rig);
    for (uint32_t i = 0; i < 5; i++)
        fetch(&rig, i); /* those who wait for it get in when the others are done */
    EXPECT_EQ(image_cache_stats(rig.cache).names, 3);
}

TEST(digests_that_no_name_means_any_more_leave_first)
{
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ .entries_max = 3 });
    for (uint32_t i = 0; i < 3; i++) {
        numbered_image(&rig, i, NULL);
        fetch(&rig, i);
    }
    for (uint32_t day = 0; day < 50; day++) { /* a tag that moves every day */
        char digest[16];
        snprintf(digest, sizeof digest, "day%u", day);
        rig_image(&rig, APP(0), digest, NULL);
        rig_advance(&rig, 300);
        EXPECT_Z(rig_renewed(&rig, APP(0)), "known");
        EXPECT_TRUE(image_cache_stats(rig.cache).digests <= 3);
    }
    EXPECT_EQ(image_cache_stats(rig.cache).names, 3);
    EXPECT_EQ(image_cache_stats(rig.cache).evictions, 0);
}

/* --- by bytes --- */

TEST(bytes_stay_below_their_limit)
{
    RIG rig = { 0 };
    size_t limit = 50000;
    rig_init(&rig, (struct image_cache_options){ .bytes_max = limit });
    for (uint32_t i = 0; i < 300; i++) {
        numbered_image(&rig, i, i % 2 ? "AVX2" : NULL);
        fetch(&rig, i);
        EXPECT_TRUE(image_cache_stats(rig.cache).bytes <= limit);
        EXPECT_TRUE(is_kept(&rig, APP(i)));
    }
    EXPECT_TRUE(image_cache_stats(rig.cache).evictions > 0);
    EXPECT_TRUE(image_cache_stats(rig.cache).names > 5);
}

TEST(an_image_larger_than_the_cache_is_still_answered)
{
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ .bytes_max = 1 });
    for (uint32_t i = 0; i < 5; i++) {
        numbered_image(&rig, i, "AVX2");
        fetch(&rig, i);
        EXPECT_Z(rig_state(&rig, APP(i)), "known");
        EXPECT_EQ(image_cache_stats(rig.cache).names, 1);
    }
}

TEST(failures_take_room_as_well)
{
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ .bytes_max = 20000 });
    rig_fail(&rig, ERR_UNAVAILABLE, ERR_NONE);
    for (uint32_t i = 0; i < 200; i++)
        EXPECT_Z(rig_renewed(&rig, APP(i)), "failed");
    EXPECT_TRUE(image_cache_stats(rig.cache).bytes <= 20000 + 1000);
    EXPECT_TRUE(image_cache_stats(rig.cache).names < 100);
}

/* --- how much a thousand images take --- */

static const struct image_facts *facts_of_two_sets(const char *digest)
{
    static const struct platform both[] = { { STR("linux"), STR("amd64"), STR("") },
                                            { STR("linux"), STR("arm64"), STR("v8") } };
    const struct compat_spec *spec = NULL;
    struct err err = { 0 };
    EXPECT_OK(
        compat_spec_read("spec",
                         STR("{version: v1alpha1, compatibilities: [{tag: fast, weight: 80, rules: "
                             "[{name: amx, matchFeatures: [{feature: cpu.cpuid, matchExpressions: "
                             "{AMXTILE: {op: Exists}}}]}]}, {tag: base, rules: [{name: avx2, "
                             "matchFeatures: [{feature: cpu.cpuid, matchExpressions: {AVX2: {op: "
                             "Exists}}}]}]}]}"),
                         (struct compat_spec_options){ 0 }, &spec, &err),
        err);
    const struct image_facts *facts = image_facts_make(str_of(digest), both, 2, spec);
    compat_spec_unref(spec);
    return facts;
}

/* Makes facts for whatever is asked, and keeps none: all memory is the cache's. */
static int make_and_forget(void *ctx KV_UNUSED, const struct reference *ref,
                           const struct keyring *maybe_keys KV_UNUSED,
                           const struct image_facts *maybe_known KV_UNUSED,
                           const struct image_facts **out, struct err *err KV_UNUSED)
{
    char digest[72];
    AUTO_FREE char *tag = str_dup(ref->tag);
    *out = facts_of_two_sets(rig_digest(tag, digest));
    return 0;
}

static size_t allocated(void)
{
    return mallinfo2().uordblks;
}

TEST(a_thousand_images_of_two_sets_take_what_is_counted_and_give_it_back)
{
    struct err err = { 0 };
    struct image_cache *cache = NULL;
    struct image_cache_options options = { .source = { .ask = make_and_forget },
                                           .clock = clock_real(),
                                           .threads = 1 };
    size_t before = allocated();
    EXPECT_OK(image_cache_new(options, &cache, &err), err);
    for (uint32_t i = 0; i < 1000; i++) {
        ANSWER answer;
        image_cache_wait(cache, str_of(APP(i)), NULL, FOREVER, &answer);
        EXPECT_EQ(answer.state, IMAGE_KNOWN);
        EXPECT_EQ(answer.maybe_facts->spec.maybe_spec->set_count, 2);
    }
    size_t bytes = image_cache_stats(cache).bytes, real = allocated() - before;
    printf("# 1000 images of two sets: %zu bytes by our count, %zu of malloc\n", bytes, real);
    if (before > 0) { /* sanitizers do not tell */
        EXPECT_TRUE(bytes > real / 2);
        EXPECT_TRUE(bytes < real * 2);
    }
    for (uint32_t i = 0; i < 1000; i++)
        image_cache_remove(cache, str_of(APP(i)));
    EXPECT_EQ(image_cache_stats(cache).names, 0);
    EXPECT_EQ(image_cache_stats(cache).digests, 1000); /* until somebody needs the room */
    EXPECT_TRUE(image_cache_stats(cache).bytes < bytes);
    image_cache_free(cache);
}

/* --- how often it helps --- */

/* Pods of 500 images, of which a few are asked for most of the time: the nth is chosen with a weight of 1/n.
 * A pod every second, so that entries also grow old on the way. */
TEST(nine_of_ten_lookups_of_a_zipf_stream_are_hits)
{
    enum { IMAGES = 500, PODS = 20000 };
    static double until[IMAGES];
    double sum = 0;
    for (int i = 0; i < IMAGES; i++)
        until[i] = sum += 1.0 / (i + 1);
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ .entries_max = 400 });
    for (uint32_t i = 0; i < IMAGES; i++)
        numbered_image(&rig, i, i % 3 ? NULL : "AVX2");

    struct rng rng;
    rng_init(&rng, 7);
    for (int pod = 0; pod < PODS; pod++) {
        double at = rng_unit(&rng) * sum;
        uint32_t image = 0;
        while (until[image] < at)
            image++;
        ANSWER answer = rig_wait(&rig, APP(image));
        EXPECT_EQ(answer.state, IMAGE_KNOWN);
        rig_advance(&rig, 1);
    }
    rig_settle(&rig);
    struct image_cache_stats stats = image_cache_stats(rig.cache);
    double rate = (double)stats.hits / (double)stats.requests;
    printf("# %llu lookups, %.2f %% hits, %llu resolves, %llu asks, %llu evictions\n",
           (unsigned long long)stats.requests, 100 * rate, (unsigned long long)stats.resolves,
           (unsigned long long)stats.asks, (unsigned long long)stats.evictions);
    EXPECT_EQ(stats.requests, PODS);
    EXPECT_TRUE(rate >= 0.90);
}

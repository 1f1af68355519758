#include "compat/image_cache_testing.h"

#include <stdio.h>

/* --- asking --- */

TEST(an_image_is_pending_until_the_registry_has_answered)
{
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ 0 });
    rig_image(&rig, "app:1", "a", "AVX2");
    rig_hold(&rig);
    EXPECT_Z(rig_state(&rig, "app:1"), "pending");
    rig_inside(&rig, 1);
    EXPECT_Z(rig_state(&rig, "app:1"), "pending");
    EXPECT_EQ(rig_told(&rig, "app:1"), 0);
    rig_release(&rig);

    ANSWER answer = rig_wait(&rig, "app:1");
    EXPECT_EQ(answer.state, IMAGE_KNOWN);
    EXPECT_FALSE(answer.stale);
    EXPECT_EQ(answer.age_ns, 0);
    EXPECT_EQ(answer.err.kind, ERR_NONE);
    EXPECT_STR(answer.maybe_facts->digest, DIGEST("a"));
    EXPECT_EQ(answer.maybe_facts->spec.maybe_spec->set_count, 1);
    rig_settle(&rig);
    EXPECT_EQ(rig_told(&rig, "app:1"), 1);
}

TEST(several_images_are_each_asked_for_once_and_then_answered_from_memory)
{
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ 0 });
    static const char *const images[] = { "app:1", "app:2", "registry.example:5000/team/app:1" };
    static const char *const digests[] = { "a", "b", "c" };
    for (int i = 0; i < 3; i++)
        rig_image(&rig, images[i], digests[i], i ? "AVX2" : NULL);
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < 3; i++) {
            ANSWER answer = rig_wait(&rig, images[i]);
            EXPECT_EQ(answer.state, IMAGE_KNOWN);
            EXPECT_STR(answer.maybe_facts->digest, DIGEST(digests[i]));
        }
    }
    struct image_cache_stats stats = image_cache_stats(rig.cache);
    EXPECT_EQ(stats.requests, 30);
    EXPECT_EQ(stats.hits, 27);
    EXPECT_EQ(stats.asks, 3);
    EXPECT_EQ(stats.resolves, 3);
    EXPECT_EQ(stats.names, 3);
    EXPECT_EQ(stats.digests, 3);
}

struct herd {
    struct rig *rig;
    pthread_t thread;
    uint32_t pending;
};

static void *herd_main(void *arg)
{
    struct herd *herd = arg;
    for (int i = 0; i < 125; i++) {
        ANSWER answer = rig_get(herd->rig, "app:1");
        herd->pending += answer.state == IMAGE_PENDING;
    }
    return NULL;
}

TEST(a_thundering_herd_asks_once)
{
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ 0 });
    rig_image(&rig, "app:1", "a", NULL);
    rig_hold(&rig);
    struct herd herds[8] = { 0 };
    for (int i = 0; i < 8; i++) {
        herds[i].rig = &rig;
        EXPECT_EQ(pthread_create(&herds[i].thread, NULL, herd_main, &herds[i]), 0);
    }
    uint32_t pending = 0;
    for (int i = 0; i < 8; i++) {
        pthread_join(herds[i].thread, NULL);
        pending += herds[i].pending;
    }
    EXPECT_EQ(pending, 1000);
    rig_release(&rig);
    rig_settle(&rig);
    EXPECT_Z(rig_state(&rig, "app:1"), "known");
    EXPECT_EQ(rig_resolves(&rig), 1);
    EXPECT_EQ(rig_asks(&rig), 1);
    EXPECT_EQ(rig_told(&rig, "app:1"), 1);
}

static void *herd_wait_main(void *arg)
{
    struct herd *herd = arg;
    ANSWER answer = rig_wait(herd->rig, "app:1");
    herd->pending += answer.state != IMAGE_KNOWN;
    return NULL;
}

TEST(all_who_wait_get_the_one_answer)
{
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ 0 });
    rig_image(&rig, "app:1", "a", NULL);
    rig_hold(&rig);
    struct herd herds[16] = { 0 };
    for (int i = 0; i < 16; i++) {
        herds[i].rig = &rig;
        EXPECT_EQ(pthread_create(&herds[i].thread, NULL, herd_wait_main, &herds[i]), 0);
    }
    uint32_t waiting;
    RIG_UNTIL((pthread_mutex_lock(&rig.cache->lock), waiting = rig.cache->waiting_count,
               pthread_mutex_unlock(&rig.cache->lock), waiting == 16));
    rig_release(&rig);
    for (int i = 0; i < 16; i++) {
        pthread_join(herds[i].thread, NULL);
        EXPECT_EQ(herds[i].pending, 0);
    }
    EXPECT_EQ(rig_asks(&rig), 1);
}

static void *advance_main(void *arg)
{
    struct rig *rig = arg;
    uint32_t waiting;
    do {
        rig_pause();
        pthread_mutex_lock(&rig->cache->lock);
        waiting = rig->cache->waiting_count;
        pthread_mutex_unlock(&rig->cache->lock);
    } while (waiting == 0);
    rig_advance(rig, 5);
    return NULL;
}

TEST(waiting_ends_with_its_time)
{
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ 0 });
    rig_image(&rig, "app:1", "a", NULL);
    rig_hold(&rig);
    ANSWER answer;
    image_cache_wait(rig.cache, STR("app:1"), NULL, 0, &answer); /* which is now */
    EXPECT_EQ(answer.state, IMAGE_PENDING);
    pthread_t thread;
    EXPECT_EQ(pthread_create(&thread, NULL, advance_main, &rig), 0);
    image_cache_wait(rig.cache, STR("app:1"), NULL, 5 * SECOND, &answer);
    pthread_join(thread, NULL);
    EXPECT_EQ(answer.state, IMAGE_PENDING);
}

TEST(a_name_that_is_no_reference_has_failed_and_is_not_kept)
{
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ 0 });
    static const char *const bad[] = { "", "UPPER", "app:", "app@sha256:12", "a b" };
    for (size_t i = 0; i < KV_COUNT_OF(bad); i++) {
        ANSWER answer = rig_wait(&rig, bad[i]);
        EXPECT_EQ(answer.state, IMAGE_FAILED);
        EXPECT_EQ(answer.err.kind, ERR_INVALID);
        EXPECT_TRUE(answer.err.text[0] != '\0');
    }
    EXPECT_EQ(image_cache_stats(rig.cache).names, 0);
    EXPECT_EQ(image_cache_stats(rig.cache).hits, 0);
}

/* --- two levels --- */

TEST(two_names_of_one_digest_ask_for_its_facts_once)
{
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ 0 });
    AUTO_BUF pinned = { 0 };
    buf_addf(&pinned, "app@%s", DIGEST("a"));
    const char *names[] = { "app:1", "app:1.2", "docker.io/library/app:1", pinned.p };
    rig_image(&rig, "app:1", "a", "AVX2");
    rig_image(&rig, "app:1.2", "a", "AVX2");
    ANSWER first = rig_wait(&rig, names[0]);
    for (size_t i = 1; i < KV_COUNT_OF(names); i++) {
        ANSWER other = rig_wait(&rig, names[i]);
        EXPECT_TRUE(other.maybe_facts == first.maybe_facts);
    }
    EXPECT_EQ(rig_asks(&rig), 1);
    EXPECT_EQ(rig_resolves(&rig), 3);
    EXPECT_EQ(image_cache_stats(rig.cache).digests, 1);
}

/* The first waits in `ask`, the others find the digest and are parked there: with two threads for the
 * registry, the second thread could not serve them all if one of them kept it. */
TEST(names_that_meet_at_a_digest_that_is_being_asked_for_keep_no_thread_busy)
{
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ .threads = 4 });
    AUTO_BUF pinned = { 0 };
    buf_addf(&pinned, "app@%s", DIGEST("a"));
    pthread_mutex_lock(&rig.lock);
    rig.held = rig.held_asks_only = true;
    pthread_mutex_unlock(&rig.lock);
    rig_state(&rig, pinned.p);
    rig_inside(&rig, 1);
    for (int i = 0; i < 20; i++) {
        char name[32];
        snprintf(name, sizeof name, "app:%d", i);
        rig_image(&rig, name, "a", NULL);
        EXPECT_Z(rig_state(&rig, name), "pending");
    }
    RIG_UNTIL(rig_resolves(&rig) == 20);
    rig_release(&rig);
    rig_settle(&rig);
    for (int i = 0; i < 20; i++) {
        char name[32];
        snprintf(name, sizeof name, "app:%d", i);
        EXPECT_Z(rig_state(&rig, name), "known");
        EXPECT_EQ(rig_told(&rig, name), 1);
    }
    EXPECT_EQ(rig_asks(&rig), 1);
}

TEST(the_same_digest_in_another_repository_has_facts_of_its_own)
{
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ 0 });
    rig_image(&rig, "registry.example/victim/app:1", "a", "AVX2");
    rig_image(&rig, "registry.example/copycat/app:1", "a", NULL);
    ANSWER mine = rig_wait(&rig, "registry.example/victim/app:1");
    ANSWER copy = rig_wait(&rig, "registry.example/copycat/app:1");
    EXPECT_TRUE(mine.maybe_facts->spec.maybe_spec != NULL);
    EXPECT_TRUE(copy.maybe_facts->spec.maybe_spec == NULL);
    EXPECT_EQ(rig_asks(&rig), 2);
}

static const struct keyring *keyring_of(const char *auth)
{
    struct err err = { 0 };
    const struct keyring *ring = NULL;
    AUTO_BUF text = { 0 };
    buf_addf(&text, "{\"auths\":{\"registry.example\":{\"auth\":\"%s\"}}}", auth);
    EXPECT_OK(keyring_read("test", buf_str(&text), KEYRING_CONFIG, &ring, NULL, &err), err);
    return ring;
}

TEST(only_who_has_the_same_pull_secrets_shares_an_answer)
{
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ 0 });
    static const struct str image = STR("registry.example/app:1");
    const struct keyring *ann = keyring_of("YW5uOng="), *bob = keyring_of("Ym9iOng=");
    const struct keyring *ann_again = keyring_of("YW5uOng=");
    rig_image(&rig, image.p, "a", "AVX2");
    ANSWER answer;
    image_cache_wait(rig.cache, image, ann, FOREVER, &answer);
    EXPECT_EQ(answer.state, IMAGE_KNOWN);
    EXPECT_EQ(rig.keys_last, keyring_identity(ann));
    image_answer_done(&answer);
    image_cache_get(rig.cache, image, ann_again, &answer);
    EXPECT_EQ(answer.state, IMAGE_KNOWN);
    image_answer_done(&answer);

    rig_fail(&rig, ERR_DENIED, ERR_DENIED);
    image_cache_wait(rig.cache, image, bob, FOREVER, &answer);
    EXPECT_EQ(answer.state, IMAGE_FAILED);
    EXPECT_EQ(rig.keys_last, keyring_identity(bob));
    image_cache_wait(rig.cache, image, NULL, FOREVER, &answer);
    EXPECT_EQ(answer.state, IMAGE_FAILED);
    EXPECT_EQ(rig.keys_last, 0);
    AUTO_BUF pinned = { 0 };
    buf_addf(&pinned, "registry.example/app@%s", DIGEST("a"));
    image_cache_wait(rig.cache, buf_str(&pinned), bob, FOREVER, &answer);
    EXPECT_EQ(answer.state, IMAGE_FAILED);

    image_cache_get(rig.cache, image, ann, &answer);
    EXPECT_EQ(answer.state, IMAGE_KNOWN);
    image_answer_done(&answer);
    EXPECT_EQ(image_cache_stats(rig.cache).names, 4);
    image_cache_remove(rig.cache, image);
    EXPECT_EQ(image_cache_stats(rig.cache).names, 1);
    keyring_unref(ann);
    keyring_unref(ann_again);
    keyring_unref(bob);
}

TEST(a_tag_that_moved_answers_the_old_facts_until_the_new_are_known)
{
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ 0 });
    rig_image(&rig, "app:1", "a", "AVX2");
    ANSWER first = rig_wait(&rig, "app:1");
    rig_image(&rig, "app:1", "b", "AVX512F");
    rig_fail(&rig, ERR_NONE, ERR_UNAVAILABLE);
    rig_advance(&rig, 300);
    EXPECT_Z(rig_renewed(&rig, "app:1"), "stale");
    ANSWER old = rig_get(&rig, "app:1");
    EXPECT_TRUE(old.maybe_facts == first.maybe_facts);
    EXPECT_EQ(rig_told(&rig, "app:1"), 1);

    rig_fail(&rig, ERR_NONE, ERR_NONE);
    rig_advance(&rig, 30);
    EXPECT_Z(rig_renewed(&rig, "app:1"), "known");
    ANSWER moved = rig_get(&rig, "app:1");
    EXPECT_STR(moved.maybe_facts->digest, DIGEST("b"));
    EXPECT_EQ(rig_told(&rig, "app:1"), 2);
    EXPECT_EQ(image_cache_stats(rig.cache).digests, 2); /* it may be moved back */
    rig_put_tag(&rig, "app:1", DIGEST("a"));
    uint32_t asks = rig_asks(&rig);
    rig_advance(&rig, 200);
    image_cache_remove(rig.cache, STR("app:1"));
    ANSWER back = rig_wait(&rig, "app:1");
    EXPECT_TRUE(back.maybe_facts == first.maybe_facts);
    EXPECT_EQ(rig_asks(&rig), asks);
}

TEST(facts_are_replaced_only_by_different_ones)
{
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ 0 });
    rig_image(&rig, "app:1", "a", "AVX2");
    rig_image(&rig, "app:2", "a", "AVX2");
    ANSWER first = rig_wait(&rig, "app:1");
    rig_renewed(&rig, "app:2");
    rig_put_facts(&rig, "app:1", DIGEST("a"), rig_make_facts(&rig, DIGEST("a"), "AVX2"));
    rig_advance(&rig, 600);
    EXPECT_Z(rig_renewed(&rig, "app:1"), "known");
    EXPECT_EQ(rig_asks(&rig), 2);
    ANSWER equal = rig_get(&rig, "app:1");
    EXPECT_TRUE(equal.maybe_facts == first.maybe_facts);
    EXPECT_EQ(rig_told(&rig, "app:1"), 1);

    rig_put_facts(&rig, "app:1", DIGEST("a"), rig_make_facts(&rig, DIGEST("a"), "AVX512F"));
    rig_advance(&rig, 600);
    EXPECT_Z(rig_renewed(&rig, "app:1"), "known");
    ANSWER other = rig_get(&rig, "app:1");
    EXPECT_TRUE(other.maybe_facts != first.maybe_facts);
    EXPECT_EQ(rig_told(&rig, "app:1"), 2);
    EXPECT_EQ(rig_told(&rig, "app:2"), 2); /* its digest's facts have changed as well */
    ANSWER sibling = rig_get(&rig, "app:2");
    EXPECT_TRUE(sibling.maybe_facts == other.maybe_facts);
}

TEST(a_source_that_cannot_resolve_is_asked_by_the_tag)
{
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ 0 });
    rig.cache->options.source.maybe_resolve = NULL; /* no thread has looked at it yet */
    rig_image(&rig, "app:1", "a", "AVX2");
    ANSWER first = rig_wait(&rig, "app:1");
    EXPECT_STR(first.maybe_facts->digest, DIGEST("a"));
    rig_image(&rig, "app:1", "b", "AVX512F");
    rig_advance(&rig, 300);
    EXPECT_Z(rig_renewed(&rig, "app:1"), "known");
    ANSWER moved = rig_get(&rig, "app:1");
    EXPECT_STR(moved.maybe_facts->digest, DIGEST("b"));
    rig_fail(&rig, ERR_NONE, ERR_UNAVAILABLE);
    rig_advance(&rig, 300);
    EXPECT_Z(rig_renewed(&rig, "app:1"), "stale");
    EXPECT_Z(rig_renewed(&rig, "other:1"), "failed");
    EXPECT_EQ(rig_resolves(&rig), 0);
}

/* The answer for the tag serves the name with the digest too, while the question for that still hangs. */
TEST(an_answer_by_tag_may_overtake_the_question_for_its_digest)
{
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ .entries_max = 2 });
    rig.cache->options.source.maybe_resolve = NULL;
    AUTO_BUF pinned = { 0 };
    buf_addf(&pinned, "app@%s", DIGEST("a"));
    rig_image(&rig, "app:1", "a", "AVX2");
    rig_hold(&rig);
    EXPECT_Z(rig_state(&rig, pinned.p), "pending");
    rig_inside(&rig, 1);
    pthread_mutex_lock(&rig.lock);
    rig.held_waits = 1; /* only who waits already */
    pthread_mutex_unlock(&rig.lock);
    ANSWER by_tag = rig_wait(&rig, "app:1");
    ANSWER by_digest = rig_wait(&rig, pinned.p);
    EXPECT_TRUE(by_tag.maybe_facts == by_digest.maybe_facts);
    image_cache_remove(rig.cache, STR("app:1"));
    image_cache_remove(rig.cache, buf_str(&pinned));
    rig_release(&rig);
    rig_settle(&rig);
    EXPECT_EQ(image_cache_stats(rig.cache).digests, 1);
    EXPECT_EQ(rig_asks(&rig), 2);
}

/* --- forgetting, and looking again --- */

TEST(a_name_that_was_removed_is_asked_for_anew_and_its_facts_are_not)
{
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ 0 });
    rig_image(&rig, "app:1", "a", "AVX2");
    rig_renewed(&rig, "app:1");
    image_cache_remove(rig.cache, STR("app:1"));
    image_cache_remove(rig.cache, STR("never:1"));
    EXPECT_EQ(image_cache_stats(rig.cache).names, 0);
    EXPECT_EQ(image_cache_stats(rig.cache).digests, 1);
    EXPECT_Z(rig_state(&rig, "app:1"), "pending");
    rig_settle(&rig);
    EXPECT_Z(rig_state(&rig, "app:1"), "known");
    EXPECT_EQ(rig_resolves(&rig), 2);
    EXPECT_EQ(rig_asks(&rig), 1);
}

TEST(a_name_that_is_removed_while_it_is_asked_for_stays_removed)
{
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ .threads = 2 });
    rig_image(&rig, "app:1", "a", NULL);
    rig_image(&rig, "app:2", "b", NULL);
    rig_hold(&rig);
    rig_state(&rig, "app:1");
    rig_state(&rig, "app:2"); /* stays in the queue: one thread per registry */
    rig_inside(&rig, 1);
    image_cache_remove(rig.cache, STR("app:1"));
    image_cache_remove(rig.cache, STR("app:2"));
    rig_release(&rig);
    struct image_cache_stats stats;
    RIG_UNTIL((stats = image_cache_stats(rig.cache), stats.digests == 1));
    rig_settle(&rig);
    EXPECT_EQ(image_cache_stats(rig.cache).names, 0);
    EXPECT_EQ(rig_told(&rig, "app:1"), 0);
    EXPECT_EQ(rig_resolves(&rig), 1); /* nobody wanted the second any more */
}

TEST(a_refresh_looks_at_both_levels_and_keeps_the_answer_meanwhile)
{
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ 0 });
    rig_image(&rig, "app:1", "a", "AVX2");
    ANSWER first = rig_wait(&rig, "app:1");
    rig_put_facts(&rig, "app:1", DIGEST("a"), rig_make_facts(&rig, DIGEST("a"), "AVX512F"));
    rig_hold(&rig);
    image_cache_refresh(rig.cache, STR("app:1"));
    image_cache_refresh(rig.cache, STR("never:1"));
    rig_inside(&rig, 1);
    EXPECT_Z(rig_state(&rig, "app:1"), "known");
    rig_release(&rig);
    rig_settle(&rig);
    ANSWER now = rig_get(&rig, "app:1");
    EXPECT_TRUE(now.maybe_facts != first.maybe_facts);
    EXPECT_EQ(rig_resolves(&rig), 2);
    EXPECT_EQ(rig_asks(&rig), 2);
    EXPECT_EQ(image_cache_stats(rig.cache).names, 1);
}

TEST(a_refresh_while_it_is_asked_for_asks_once_more)
{
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ 0 });
    rig_image(&rig, "app:1", "a", NULL);
    rig_hold(&rig);
    rig_state(&rig, "app:1");
    rig_inside(&rig, 1);
    for (int i = 0; i < 5; i++)
        image_cache_refresh(rig.cache, STR("app:1"));
    rig_release(&rig);
    rig_settle(&rig);
    EXPECT_EQ(rig_resolves(&rig), 2);
    EXPECT_EQ(rig_asks(&rig), 2);
    EXPECT_Z(rig_state(&rig, "app:1"), "known");
}

TEST(a_refresh_that_fails_leaves_what_is_fresh)
{
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ 0 });
    rig_image(&rig, "app:1", "a", NULL);
    rig_renewed(&rig, "app:1");
    rig_fail(&rig, ERR_UNAVAILABLE, ERR_NONE);
    image_cache_refresh(rig.cache, STR("app:1"));
    rig_settle(&rig);
    ANSWER answer = rig_get(&rig, "app:1");
    EXPECT_EQ(answer.state, IMAGE_KNOWN);
    EXPECT_FALSE(answer.stale);
    EXPECT_EQ(answer.err.kind, ERR_NONE);
}

/* --- one registry and the others --- */

TEST(a_registry_that_hangs_holds_up_nobody_else)
{
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ .threads = 4 });
    pthread_mutex_lock(&rig.lock);
    rig.held = true;
    rig.held_host = STR("dead.example");
    pthread_mutex_unlock(&rig.lock);
    for (int i = 0; i < 50; i++) {
        char name[64];
        snprintf(name, sizeof name, "dead.example/app:%d", i);
        EXPECT_Z(rig_state(&rig, name), "pending");
    }
    rig_inside(&rig, 2); /* half of the threads */
    for (int i = 0; i < 20; i++) {
        char name[64];
        snprintf(name, sizeof name, "good.example/app:%d", i);
        rig_image(&rig, name, "a", NULL);
        ANSWER answer = rig_wait(&rig, name);
        EXPECT_EQ(answer.state, IMAGE_KNOWN);
    }
}

TEST(images_that_nobody_knows_go_before_those_that_are_looked_at_again)
{
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ .threads = 1 });
    rig_image(&rig, "old:1", "a", NULL);
    rig_image(&rig, "new:1", "b", NULL);
    rig_image(&rig, "busy:1", "c", NULL);
    rig_renewed(&rig, "old:1");
    rig_advance(&rig, 300);
    rig_image(&rig, "old:1", "d", NULL);
    rig_hold(&rig);
    rig_state(&rig, "busy:1");
    rig_inside(&rig, 1);
    EXPECT_Z(rig_state(&rig, "old:1"), "stale");
    EXPECT_Z(rig_state(&rig, "new:1"), "pending");
    rig_release(&rig);
    rig_settle(&rig);
    EXPECT_EQ(rig.changes.count, 4);
    EXPECT_Z(rig.changes.items[1], "busy:1");
    EXPECT_Z(rig.changes.items[2], "new:1");
    EXPECT_Z(rig.changes.items[3], "old:1");
}

/* --- life, numbers --- */

static void *free_main(void *cache)
{
    image_cache_free(cache);
    return NULL;
}

TEST(freeing_waits_for_the_question_that_hangs_and_forgets_the_queue)
{
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ .threads = 2 });
    rig_image(&rig, "app:1", "a", NULL);
    rig_hold(&rig);
    rig_state(&rig, "app:1");
    rig_inside(&rig, 1);
    for (int i = 2; i < 10; i++) {
        char name[32];
        snprintf(name, sizeof name, "app:%d", i);
        rig_state(&rig, name);
    }
    image_cache_remove(rig.cache, STR("app:5"));
    pthread_t thread;
    EXPECT_EQ(pthread_create(&thread, NULL, free_main, rig.cache), 0);
    bool stopping = false;
    RIG_UNTIL((pthread_mutex_lock(&rig.cache->lock), stopping = rig.cache->stopping,
               pthread_mutex_unlock(&rig.cache->lock), stopping));
    rig_fail(&rig, ERR_CANCELLED, ERR_CANCELLED); /* as registry_cancel does */
    rig_release(&rig);
    pthread_join(thread, NULL);
    rig.cache = NULL;
    EXPECT_EQ(rig.resolves, 1);
    EXPECT_EQ(rig.changes.count, 0);
}

TEST(the_numbers_have_the_names_of_the_document)
{
    struct metrics *metrics = metrics_new(clock_real());
    {
        RIG rig = { 0 };
        rig_init(&rig, (struct image_cache_options){ .maybe_metrics = metrics });
        rig_image(&rig, "app:1", "a", NULL);
        rig_renewed(&rig, "app:1");
        rig_renewed(&rig, "app:1");
        rig_fail(&rig, ERR_DENIED, ERR_NONE);
        rig_renewed(&rig, "app:2");
        for (int round = 0; round < 2; round++) { /* counted once, however often it is shown */
            AUTO_BUF text = { 0 };
            metrics_write(metrics, &text);
            EXPECT_HAS(buf_str(&text), "\nnf_cache_requests_total 6\n");
            EXPECT_HAS(buf_str(&text), "\nnf_cache_hits_total 4\n");
            EXPECT_HAS(buf_str(&text), "\nnf_cache_size 2\n");
            EXPECT_HAS(buf_str(&text), "\nkarve_image_cache_asks_total{outcome=\"changed\"} 1\n");
            EXPECT_HAS(buf_str(&text), "\nkarve_image_cache_asks_total{outcome=\"denied\"} 1\n");
            EXPECT_HAS(buf_str(&text), "\nkarve_image_cache_ask_duration_seconds_count 2\n");
            EXPECT_HAS(buf_str(&text), "\nkarve_image_cache_digests 1\n");
        }
    }
    metrics_free(metrics);
}

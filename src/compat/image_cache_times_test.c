#include "compat/image_cache_testing.h"

#include <stdio.h>

/* --- times to live --- */

TEST(a_tag_is_resolved_again_after_300_s_and_its_facts_are_not_asked_for)
{
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ 0 });
    rig_image(&rig, "app:1", "a", "AVX2");
    ANSWER first = rig_wait(&rig, "app:1");
    rig_advance(&rig, 269); /* a tenth may be taken off */
    EXPECT_Z(rig_renewed(&rig, "app:1"), "known");
    EXPECT_EQ(rig_resolves(&rig), 1);
    rig_advance(&rig, 31);
    rig_hold(&rig);
    EXPECT_Z(rig_state(&rig, "app:1"), "stale");
    rig_inside(&rig, 1);
    EXPECT_Z(rig_state(&rig, "app:1"), "stale"); /* and nobody waits for it */
    ANSWER old = rig_get(&rig, "app:1");
    EXPECT_EQ(old.age_ns, 300 * SECOND);
    rig_release(&rig);
    rig_settle(&rig);
    ANSWER again = rig_get(&rig, "app:1");
    EXPECT_FALSE(again.stale);
    EXPECT_TRUE(again.maybe_facts == first.maybe_facts);
    EXPECT_EQ(rig_resolves(&rig), 2);
    EXPECT_EQ(rig_asks(&rig), 1);
    EXPECT_EQ(rig_told(&rig, "app:1"), 1);
}

TEST(latest_is_resolved_again_after_60_s)
{
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ 0 });
    static const char *const names[] = { "app", "app:latest" };
    for (int i = 0; i < 2; i++) {
        rig_image(&rig, names[i], "a", NULL);
        rig_renewed(&rig, names[i]);
        rig_advance(&rig, 53);
        EXPECT_Z(rig_state(&rig, names[i]), "known");
        rig_advance(&rig, 7);
        EXPECT_Z(rig_state(&rig, names[i]), "stale");
        rig_settle(&rig);
    }
}

TEST(the_time_of_tags_can_be_set_and_then_holds_for_latest_too)
{
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ .ttl_ns = 100 * SECOND });
    rig_image(&rig, "app:latest", "a", NULL);
    rig_renewed(&rig, "app:latest");
    rig_advance(&rig, 89);
    EXPECT_Z(rig_state(&rig, "app:latest"), "known");
    rig_advance(&rig, 11);
    EXPECT_Z(rig_state(&rig, "app:latest"), "stale");
}

TEST(the_artifacts_of_a_digest_are_looked_at_after_600_s_without_resolving)
{
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ .ttl_ns = 1000000 * SECOND });
    rig_image(&rig, "app:1", "a", "AVX2");
    rig_renewed(&rig, "app:1");
    rig_advance(&rig, 539);
    EXPECT_Z(rig_renewed(&rig, "app:1"), "known");
    EXPECT_EQ(rig_asks(&rig), 1);
    rig_advance(&rig, 61);
    EXPECT_Z(rig_state(&rig, "app:1"), "stale");
    rig_settle(&rig);
    EXPECT_Z(rig_state(&rig, "app:1"), "known");
    EXPECT_EQ(rig_asks(&rig), 2);
    EXPECT_TRUE(rig.known_last);
    EXPECT_EQ(rig_resolves(&rig), 1);
}

TEST(a_name_with_a_digest_is_never_resolved)
{
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ 0 });
    AUTO_BUF name = { 0 };
    buf_addf(&name, "app:1@%s", DIGEST("a"));
    rig_image(&rig, "app:1", "a", "AVX2");
    ANSWER first = rig_wait(&rig, name.p);
    EXPECT_EQ(first.state, IMAGE_KNOWN);
    for (uint32_t round = 1; round <= 3; round++) {
        EXPECT_EQ(rig_asks(&rig), round);
        rig_advance(&rig, 539);
        EXPECT_Z(rig_renewed(&rig, name.p), "known");
        EXPECT_EQ(rig_asks(&rig), round);
        rig_advance(&rig, 61);
        EXPECT_Z(rig_renewed(&rig, name.p), "known");
    }
    EXPECT_EQ(rig_resolves(&rig), 0);
}

TEST(an_image_without_constraint_is_looked_at_after_300_s)
{
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ .ttl_ns = 1000000 * SECOND });
    rig_image(&rig, "app:1", "a", NULL);
    ANSWER first = rig_wait(&rig, "app:1");
    EXPECT_TRUE(first.maybe_facts->spec.maybe_spec == NULL);
    rig_advance(&rig, 269);
    EXPECT_Z(rig_state(&rig, "app:1"), "known");
    rig_advance(&rig, 31);
    rig_put_facts(&rig, "app:1", DIGEST("a"), rig_make_facts(&rig, DIGEST("a"), "AVX2"));
    EXPECT_Z(rig_renewed(&rig, "app:1"), "known");
    ANSWER now = rig_get(&rig, "app:1"); /* somebody attached a spec */
    EXPECT_TRUE(now.maybe_facts->spec.maybe_spec != NULL);
    EXPECT_EQ(rig_told(&rig, "app:1"), 2);
}

TEST(a_spec_that_cannot_be_used_is_looked_at_after_30_s)
{
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ 0 });
    rig_put_tag(&rig, "app:1", DIGEST("a"));
    struct image_facts facts = { .digest = str_of(DIGEST("a")), .spec.trouble = STR("no YAML") };
    rig_put_facts(&rig, "app:1", DIGEST("a"), image_facts_copy(&facts));
    ANSWER first = rig_wait(&rig, "app:1");
    EXPECT_EQ(first.state, IMAGE_KNOWN);
    rig_advance(&rig, 26);
    EXPECT_Z(rig_renewed(&rig, "app:1"), "known");
    EXPECT_EQ(rig_asks(&rig), 1);
    rig_advance(&rig, 4);
    EXPECT_Z(rig_renewed(&rig, "app:1"), "known");
    EXPECT_EQ(rig_asks(&rig), 2);
}

TEST(what_nobody_asks_for_is_not_looked_at_again)
{
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ 0 });
    rig_image(&rig, "app:1", "a", NULL);
    rig_renewed(&rig, "app:1");
    for (int i = 0; i < 100; i++)
        rig_advance(&rig, 600);
    rig_settle(&rig);
    EXPECT_EQ(rig_resolves(&rig), 1);
    EXPECT_EQ(rig_asks(&rig), 1);
}

/* When each of `count` tags is due, in the order of their numbers. */
static void due_times(uint64_t seed, uint32_t count, int64_t *out)
{
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ .seed = seed, .threads = 3 });
    for (uint32_t i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "app:%u", i);
        rig_image(&rig, name, "a", "AVX2");
        rig_renewed(&rig, name);
        uint64_t hash = kv_hash(name, strlen(name));
        const struct image_name *found =
            image_cache_find(image_shard_of(rig.cache, hash), str_of(name), hash, 0);
        out[i] = found->resolved_until_ns;
    }
}

TEST(up_to_a_tenth_is_taken_off_each_time_and_the_seed_says_how_much)
{
    int64_t a[100], b[100], c[100], sum = 0;
    due_times(1, 100, a);
    due_times(1, 100, b);
    due_times(2, 100, c);
    uint32_t differ = 0;
    for (int i = 0; i < 100; i++) {
        EXPECT_EQ(a[i], b[i]);
        EXPECT_TRUE(a[i] > 270 * SECOND - SECOND);
        EXPECT_TRUE(a[i] <= 300 * SECOND);
        differ += a[i] != c[i];
        sum += a[i];
    }
    EXPECT_TRUE(differ > 90);
    EXPECT_TRUE(sum / 100 > 280 * SECOND);
    EXPECT_TRUE(sum / 100 < 290 * SECOND);
}

/* --- failures --- */

TEST(an_image_that_is_not_there_is_unknown_for_30_s_and_no_longer)
{
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ 0 });
    EXPECT_Z(rig_renewed(&rig, "app:1"), "unknown");
    rig_advance(&rig, 26);
    EXPECT_Z(rig_renewed(&rig, "app:1"), "unknown");
    EXPECT_EQ(rig_resolves(&rig), 1);
    rig_image(&rig, "app:1", "a", "AVX2");
    rig_advance(&rig, 4);
    EXPECT_Z(rig_state(&rig, "app:1"), "pending"); /* it may well be there now */
    rig_settle(&rig);
    EXPECT_Z(rig_state(&rig, "app:1"), "known");
    EXPECT_EQ(rig_told(&rig, "app:1"), 2);
}

TEST(an_image_that_was_there_and_is_gone_is_unknown)
{
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ 0 });
    rig_image(&rig, "app:1", "a", "AVX2");
    ANSWER first = rig_wait(&rig, "app:1");
    rig_put_tag(&rig, "app:1", NULL);
    rig_advance(&rig, 300);
    EXPECT_Z(rig_state(&rig, "app:1"), "stale");
    rig_settle(&rig);
    EXPECT_Z(rig_state(&rig, "app:1"), "unknown");
    EXPECT_EQ(rig_told(&rig, "app:1"), 2);
    EXPECT_STR(first.maybe_facts->digest, DIGEST("a")); /* ours for as long as we hold it */
}

TEST(a_failure_says_why_and_is_asked_again_after_30_s)
{
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ 0 });
    rig_image(&rig, "app:1", "a", NULL);
    rig_fail(&rig, ERR_UNAVAILABLE, ERR_NONE);
    ANSWER failed = rig_wait(&rig, "app:1");
    EXPECT_EQ(failed.state, IMAGE_FAILED);
    EXPECT_EQ(failed.err.kind, ERR_UNAVAILABLE);
    EXPECT_Z(failed.err.text, "scripted");
    rig_advance(&rig, 26);
    EXPECT_Z(rig_renewed(&rig, "app:1"), "failed");
    EXPECT_EQ(rig_resolves(&rig), 1);
    rig_advance(&rig, 4);
    EXPECT_Z(rig_renewed(&rig, "app:1"), "failed"); /* also while it is asked again */
    EXPECT_EQ(rig_resolves(&rig), 2);
    EXPECT_EQ(rig_told(&rig, "app:1"), 1);
    rig_fail(&rig, ERR_NONE, ERR_NONE);
    rig_advance(&rig, 30);
    EXPECT_Z(rig_renewed(&rig, "app:1"), "known");
    EXPECT_EQ(rig_told(&rig, "app:1"), 2);
}

TEST(a_failure_of_long_ago_is_no_answer)
{
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ 0 });
    rig_fail(&rig, ERR_UNAVAILABLE, ERR_NONE);
    EXPECT_Z(rig_renewed(&rig, "app:1"), "failed");
    rig_advance(&rig, 3600);
    EXPECT_Z(rig_state(&rig, "app:1"), "pending");
}

TEST(a_refusal_is_kept_for_60_s)
{
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ 0 });
    rig_fail(&rig, ERR_DENIED, ERR_NONE);
    EXPECT_Z(rig_renewed(&rig, "app:1"), "failed");
    rig_advance(&rig, 53);
    EXPECT_Z(rig_renewed(&rig, "app:1"), "failed");
    EXPECT_EQ(rig_resolves(&rig), 1);
    rig_advance(&rig, 7);
    rig_renewed(&rig, "app:1");
    EXPECT_EQ(rig_resolves(&rig), 2);
}

TEST(stale_facts_are_the_answer_while_asking_fails_for_a_day_and_then_it_has_failed)
{
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ 0 });
    rig_image(&rig, "app:1", "a", "AVX2");
    ANSWER first = rig_wait(&rig, "app:1");
    rig_fail(&rig, ERR_UNAVAILABLE, ERR_UNAVAILABLE);
    rig_advance(&rig, 300);
    EXPECT_Z(rig_renewed(&rig, "app:1"), "stale");
    for (int64_t at = 300; at < 24 * 3600; at += 30) {
        ANSWER answer = rig_get(&rig, "app:1");
        EXPECT_TRUE(answer.maybe_facts == first.maybe_facts);
        EXPECT_TRUE(answer.stale);
        EXPECT_EQ(answer.err.kind, ERR_UNAVAILABLE); /* why it is */
        EXPECT_EQ(answer.age_ns, at * SECOND);
        rig_settle(&rig);
        rig_advance(&rig, 30);
    }
    EXPECT_EQ(rig_told(&rig, "app:1"), 1);
    EXPECT_Z(rig_state(&rig, "app:1"), "failed");
    rig_settle(&rig);
    rig_fail(&rig, ERR_NONE, ERR_NONE);
    rig_advance(&rig, 30);
    EXPECT_Z(rig_renewed(&rig, "app:1"), "known");
}

TEST(facts_that_nobody_asked_about_for_a_day_are_pending_rather_than_failed)
{
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ 0 });
    rig_image(&rig, "app:1", "a", "AVX2");
    rig_renewed(&rig, "app:1");
    rig_advance(&rig, 25 * 3600);
    EXPECT_Z(rig_renewed(&rig, "app:1"), "known");
    EXPECT_EQ(rig_told(&rig, "app:1"), 2); /* it was pending, and those who saw that want to know */
}

/* Every kind of failure, for an image of which nothing, "no constraint" or rules are known. */
TEST(a_failure_never_turns_into_no_constraint_unless_the_image_does_not_exist)
{
    static const struct {
        enum err_kind kind;
        const char *of_nothing, *of_plain, *of_rules;
    } rows[] = {
        { ERR_NOT_FOUND, "unknown", "unknown", "unknown" },
        { ERR_INVALID, "failed", "failed", "stale" },
        { ERR_CAPACITY, "failed", "failed", "stale" },
        { ERR_DENIED, "failed", "stale", "stale" },
        { ERR_UNAVAILABLE, "failed", "stale", "stale" },
        { ERR_THROTTLED, "failed", "stale", "stale" },
        { ERR_CANCELLED, "failed", "stale", "stale" },
        { ERR_INTERNAL, "failed", "stale", "stale" },
        { ERR_CONFLICT, "failed", "stale", "stale" },
        { ERR_GONE, "failed", "stale", "stale" },
        { ERR_EXISTS, "failed", "stale", "stale" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        for (int asking = 0; asking < 2; asking++) { /* the digest, or its facts */
            RIG rig = { 0 };
            rig_init(&rig, (struct image_cache_options){ 0 });
            rig_image(&rig, "new:1", "n", NULL);
            rig_image(&rig, "plain:1", "p", NULL);
            rig_image(&rig, "rules:1", "r", "AVX2");
            rig_renewed(&rig, "plain:1");
            rig_renewed(&rig, "rules:1");
            rig_advance(&rig, 600);
            rig_fail(&rig, asking ? ERR_NONE : rows[i].kind, asking ? rows[i].kind : ERR_NONE);
            EXPECT_Z(rig_renewed(&rig, "new:1"), rows[i].of_nothing);
            EXPECT_Z(rig_renewed(&rig, "plain:1"), rows[i].of_plain);
            EXPECT_Z(rig_renewed(&rig, "rules:1"), rows[i].of_rules);
        }
    }
}

TEST(a_digest_found_to_be_damaged_is_no_fresh_answer_for_any_of_its_names)
{
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ 0 });
    rig_image(&rig, "app:1", "a", NULL);
    rig_image(&rig, "app:2", "a", NULL);
    rig_renewed(&rig, "app:1");
    rig_renewed(&rig, "app:2");
    rig_fail(&rig, ERR_NONE, ERR_INVALID);
    image_cache_refresh(rig.cache, STR("app:1"));
    rig_settle(&rig);
    EXPECT_Z(rig_state(&rig, "app:1"), "failed");
    EXPECT_Z(rig_state(&rig, "app:2"), "failed");
    rig_image(&rig, "app:3", "a", NULL);
    EXPECT_Z(rig_renewed(&rig, "app:3"), "failed");
    rig_fail(&rig, ERR_NONE, ERR_NONE);
    rig_advance(&rig, 30);
    EXPECT_Z(rig_renewed(&rig, "app:2"), "known");
}

/* --- disabled --- */

TEST(without_a_cache_an_answer_is_there_to_be_read_and_then_asked_for_anew)
{
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ .disabled = true });
    rig_image(&rig, "app:1", "a", "AVX2");
    for (uint32_t round = 1; round <= 3; round++) {
        EXPECT_Z(rig_state(&rig, "app:1"), "pending");
        rig_settle(&rig);
        EXPECT_EQ(rig_told(&rig, "app:1"), round);
        rig_advance(&rig, 20); /* nobody came to read it yet */
        EXPECT_Z(rig_state(&rig, "app:1"), "known");
        rig_advance(&rig, 4); /* and others who were told may read it, too */
        EXPECT_Z(rig_state(&rig, "app:1"), "known");
        EXPECT_EQ(rig_resolves(&rig), round);
        EXPECT_EQ(rig_asks(&rig), round);
        rig_advance(&rig, 1);
    }
    EXPECT_Z(rig_state(&rig, "app:1"), "pending");
    rig_settle(&rig);
    rig_advance(&rig, 301);
    EXPECT_Z(rig_state(&rig, "app:1"), "pending"); /* nothing old is an answer */
    ANSWER answer = rig_wait(&rig, "app:1");
    EXPECT_EQ(answer.state, IMAGE_KNOWN);
    EXPECT_FALSE(answer.stale);
}

TEST(without_a_cache_failures_are_read_the_same_way)
{
    RIG rig = { 0 };
    rig_init(&rig, (struct image_cache_options){ .disabled = true });
    rig_image(&rig, "app:1", "a", NULL);
    EXPECT_Z(rig_renewed(&rig, "app:1"), "known");
    rig_advance(&rig, 5);
    rig_fail(&rig, ERR_UNAVAILABLE, ERR_NONE);
    EXPECT_Z(rig_state(&rig, "app:1"), "pending");
    rig_settle(&rig);
    EXPECT_Z(rig_state(&rig, "app:1"), "failed");
}

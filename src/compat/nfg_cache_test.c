/* The cache of images and their NodeFeatureGroups: the ten rules of its design, one by one, then who is in a
 * group. */
#include "compat/nfg_testing.h"

static const struct str two_names[] = { { "image-compat-abc123", 19 },
                                        { "image-compat-def456", 19 } };

static void make_named(struct bench *b, struct str name)
{
    bench_foreign(b, name, NEEDS("AVX2"), "");
}

/* --- the ten rules --- */

TEST(rule_01_the_cache_starts_empty_and_maps_an_image_as_written_to_names_in_order)
{
    BENCH b;
    bench_init(&b, (struct nfg_cache_options){ .namespace_ = NFD });
    EXPECT_EQ(bench_get(&b, "nginx:1.21-alpine").count, 0);
    make_named(&b, two_names[0]);
    make_named(&b, two_names[1]);
    struct str backwards[] = { two_names[1], two_names[0] };
    nfg_cache_update(b.cache, STR("nginx:1.21-alpine"), backwards, 2);
    struct nfg_names names = bench_get(&b, "nginx:1.21-alpine");
    EXPECT_EQ(names.count, 2);
    EXPECT_STR(names.items[0], "image-compat-def456");
    EXPECT_STR(names.items[1], "image-compat-abc123");
    EXPECT_EQ(bench_get(&b, "docker.io/library/nginx:1.21-alpine").count, 0);
    EXPECT_EQ(bench_get(&b, "nginx:1.21").count, 0);
}

TEST(rule_02_update_ignores_an_empty_list_and_replaces_with_any_other)
{
    BENCH b;
    bench_init(&b, (struct nfg_cache_options){ .namespace_ = NFD });
    make_named(&b, two_names[0]);
    make_named(&b, two_names[1]);
    nfg_cache_update(b.cache, STR("a"), NULL, 0);
    EXPECT_EQ(bench_get(&b, "a").count, 0);
    nfg_cache_update(b.cache, STR("a"), two_names, 2);
    nfg_cache_update(b.cache, STR("a"), NULL, 0);
    EXPECT_EQ(bench_get(&b, "a").count, 2);
    nfg_cache_update(b.cache, STR("a"), &two_names[1], 1);
    EXPECT_EQ(bench_get(&b, "a").count, 1);
    EXPECT_STR(bench_get(&b, "a").items[0], "image-compat-def456");
}

TEST(rule_03_remove_deletes_the_entry)
{
    BENCH b;
    bench_init(&b, (struct nfg_cache_options){ .namespace_ = NFD });
    make_named(&b, two_names[0]);
    nfg_cache_update(b.cache, STR("a"), two_names, 1);
    nfg_cache_update(b.cache, STR("b"), two_names, 1);
    nfg_cache_remove(b.cache, STR("a"));
    nfg_cache_remove(b.cache, STR("never there"));
    EXPECT_EQ(bench_get(&b, "a").count, 0);
    EXPECT_EQ(bench_get(&b, "b").count, 1);
}

TEST(rule_04_get_valid_checks_every_group_and_asks_nobody)
{
    BENCH b;
    bench_init(&b, (struct nfg_cache_options){ .namespace_ = NFD });
    make_named(&b, two_names[0]);
    make_named(&b, two_names[1]);
    nfg_cache_update(b.cache, STR("a"), two_names, 2);
    memset(b.calls, 0, sizeof b.calls);
    for (int i = 0; i < 1000; i++)
        EXPECT_EQ(bench_get(&b, "a").count, 2);
    for (size_t verb = 0; verb < KV_COUNT_OF(b.calls); verb++)
        EXPECT_EQ(b.calls[verb], 0);
}

TEST(rule_05_all_gone_removes_the_entry_and_is_a_miss)
{
    BENCH b;
    bench_init(&b, (struct nfg_cache_options){ .namespace_ = NFD });
    make_named(&b, two_names[0]);
    make_named(&b, two_names[1]);
    nfg_cache_update(b.cache, STR("a"), two_names, 2);
    bench_delete(&b, two_names[0]);
    bench_delete(&b, two_names[1]);
    EXPECT_EQ(bench_get(&b, "a").count, 0);
    EXPECT_STR(bench_metric(&b, "nf_avg_nfgs_per_image"), "0");
    EXPECT_STR(bench_metric(&b, "nf_cache_partial_invalidations_total"), "0");
    make_named(&b, two_names[0]); /* the entry is gone for good */
    EXPECT_EQ(bench_get(&b, "a").count, 0);
}

TEST(rule_05_some_gone_is_a_hit_with_the_remainder_counted_once)
{
    BENCH b;
    bench_init(&b, (struct nfg_cache_options){ .namespace_ = NFD });
    make_named(&b, two_names[0]);
    make_named(&b, two_names[1]);
    nfg_cache_update(b.cache, STR("a"), two_names, 2);
    bench_delete(&b, two_names[0]);
    for (int i = 0; i < 3; i++) {
        struct nfg_names names = bench_get(&b, "a");
        EXPECT_EQ(names.count, 1);
        EXPECT_EQ(names.missing, 1);
        EXPECT_STR(names.items[0], "image-compat-def456");
    }
    EXPECT_STR(bench_metric(&b, "nf_cache_partial_invalidations_total"), "1");
    make_named(&b, two_names[0]);
    EXPECT_EQ(bench_get(&b, "a").count, 2);
    EXPECT_EQ(bench_get(&b, "a").missing, 0);
    bench_delete(&b, two_names[1]);
    EXPECT_STR(bench_get(&b, "a").items[0], "image-compat-abc123");
    EXPECT_STR(bench_metric(&b, "nf_cache_partial_invalidations_total"), "2");
}

TEST(rule_06_a_miss_makes_one_group_for_each_set_and_the_next_lookup_hits)
{
    BENCH b;
    bench_init(&b, (struct nfg_cache_options){ .namespace_ = NFD });
    EXPECT_EQ(bench_get(&b, "app:1").count, 0);
    struct nfg_names made = bench_publish(&b, "app:1", NEEDS("AVX2") ", " NEEDS("AMXTILE"));
    EXPECT_EQ(made.count, 2);
    EXPECT_EQ(bench_count(&b), 2);
    struct nfg_names names = bench_get(&b, "app:1");
    EXPECT_EQ(names.count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        EXPECT_TRUE(str_eq(names.items[i], made.items[i]));
        EXPECT_TRUE(bench_there(&b, NFD, names.items[i]));
    }
    EXPECT_TRUE(str_eq(names.items[0], bench_name(&b, NEEDS("AVX2"), 12)));
    EXPECT_TRUE(str_eq(names.items[1], bench_name(&b, NEEDS("AMXTILE"), 12)));
    bench_publish(&b, "app:2", NEEDS("AMXTILE"));
    EXPECT_EQ(b.calls[EMBEDDED_CREATE], 2); /* shared, not made again */
}

TEST(rule_07_names_are_deep_copies_and_copies_of_nothing_are_empty_not_null)
{
    BENCH b;
    struct nfg_names names, none;
    struct image_facts nothing = facts_of(NULL);
    bench_init(&b, (struct nfg_cache_options){ .namespace_ = NFD });
    bench_publish(&b, "a", NEEDS("AVX2"));
    EXPECT_TRUE(nfg_cache_get_valid(b.cache, STR("a"), &b.arena, &names));
    struct str before = bench_name(&b, NEEDS("AVX2"), 12);
    nfg_cache_remove(b.cache, STR("a"));
    bench_delete(&b, before);
    bench_restart(&b, (struct nfg_cache_options){ .namespace_ = NFD });
    EXPECT_TRUE(str_eq(names.items[0], before));

    EXPECT_FALSE(nfg_cache_get_valid(b.cache, STR("b"), &b.arena, &none));
    EXPECT_TRUE(none.items != NULL);
    none.items = NULL;
    EXPECT_OK(nfg_cache_publish(b.cache, STR("b"), &nothing, &b.arena, &none, &b.err), b.err);
    EXPECT_TRUE(none.items != NULL);
    EXPECT_EQ(none.count, 0);
}

TEST(rule_08_the_cache_is_rebuilt_after_a_restart_from_the_groups_that_are_there)
{
    BENCH b;
    bench_init(&b, (struct nfg_cache_options){ .namespace_ = NFD });
    bench_publish(&b, "a", NEEDS("AVX2"));
    bench_restart(&b, (struct nfg_cache_options){ .namespace_ = NFD });
    EXPECT_EQ(bench_get(&b, "a").count, 0);
    memset(b.calls, 0, sizeof b.calls);
    EXPECT_EQ(bench_publish(&b, "a", NEEDS("AVX2")).count, 1);
    EXPECT_EQ(b.calls[EMBEDDED_CREATE], 0);
    EXPECT_EQ(bench_get(&b, "a").count, 1);
}

TEST(rule_08_changed_rules_mean_new_groups)
{
    BENCH b;
    bench_init(&b, (struct nfg_cache_options){ .namespace_ = NFD });
    struct str before = bench_publish(&b, "a", NEEDS("AVX2")).items[0];
    struct str after = bench_publish(&b, "a", NEEDS("AVX512F")).items[0];
    EXPECT_FALSE(str_eq(before, after));
    EXPECT_EQ(bench_get(&b, "a").count, 1);
    EXPECT_TRUE(str_eq(bench_get(&b, "a").items[0], after));
    EXPECT_TRUE(bench_there(&b, NFD, before)); /* until it is idle */
}

TEST(rule_08_an_image_that_asks_for_nothing_any_more_has_no_entry)
{
    BENCH b;
    bench_init(&b, (struct nfg_cache_options){ .namespace_ = NFD });
    bench_publish(&b, "a", NEEDS("AVX2"));
    EXPECT_EQ(bench_publish(&b, "a", "").count, 0);
    EXPECT_EQ(bench_get(&b, "a").count, 0);
}

TEST(rule_09_a_group_that_cannot_be_read_is_not_gone)
{
    BENCH b;
    bench_init(&b, (struct nfg_cache_options){ .namespace_ = NFD });
    struct nfg_names names = { 0 };
    EXPECT_OK(bench_try(&b, "a", NEEDS("AVX2"), &names), b.err); /* the watch is silent */
    b.fault = ERR_UNAVAILABLE;
    b.fault_verb = EMBEDDED_GET;
    b.fault_count = -1;
    for (int i = 0; i < 5; i++) {
        virtual_clock_advance(b.world->time, 2 * MINUTE_NS);
        nfg_cache_tend(b.cache);
        EXPECT_EQ(bench_get(&b, "a").count, 1);
    }
    EXPECT_TRUE(b.calls[EMBEDDED_GET] > 0);
    EXPECT_EQ(b.calls[EMBEDDED_REMOVE], 0);
}

TEST(rule_09_a_group_that_the_watch_never_showed_and_is_gone_is_made_again)
{
    BENCH b;
    struct nfg_names names = { 0 };
    bench_init(&b, (struct nfg_cache_options){ .namespace_ = NFD });
    EXPECT_OK(bench_try(&b, "a", NEEDS("AVX2"), &names), b.err);
    EXPECT_OK(store_remove(b.world->store, group_at(NFD, names.items[0]), NULL, &b.err), b.err);
    virtual_clock_advance(b.world->time, 2 * MINUTE_NS);
    int64_t next_ns = nfg_cache_tend(b.cache); /* asks, and knows */
    EXPECT_TRUE(next_ns <= bench_now(&b));
    nfg_cache_tend(b.cache);
    EXPECT_TRUE(bench_there(&b, NFD, names.items[0]));
}

TEST(rule_09_a_damaged_list_deletes_the_entry)
{
    static const struct str damaged[][2] = { { { "image-compat-abc123", 19 }, { "", 0 } },
                                             { { NULL, 0 }, { "image-compat-abc123", 19 } },
                                             { { "../etc", 6 }, { "image-compat-abc123", 19 } } };
    BENCH b;
    bench_init(&b, (struct nfg_cache_options){ .namespace_ = NFD });
    make_named(&b, two_names[0]);
    for (size_t i = 0; i < KV_COUNT_OF(damaged); i++) {
        nfg_cache_update(b.cache, STR("a"), two_names, 1);
        EXPECT_EQ(bench_get(&b, "a").count, 1);
        nfg_cache_update(b.cache, STR("a"), damaged[i], 2);
        EXPECT_EQ(bench_get(&b, "a").count, 0);
    }
}

TEST(rule_09_a_partial_creation_remembers_what_succeeded_and_makes_the_rest_later)
{
    BENCH b;
    struct nfg_names names;
    bench_init(&b, (struct nfg_cache_options){ .namespace_ = NFD });
    b.fault = ERR_UNAVAILABLE;
    b.fault_verb = EMBEDDED_CREATE;
    b.fault_count = 1; /* the first of the two */
    EXPECT_ERR(bench_try(&b, "a", NEEDS("AVX2") ", " NEEDS("AMXTILE"), &names), b.err,
               ERR_UNAVAILABLE);
    names = bench_get(&b, "a");
    EXPECT_EQ(names.count, 1);
    EXPECT_EQ(names.missing, 1);
    EXPECT_TRUE(str_eq(names.items[0], bench_name(&b, NEEDS("AMXTILE"), 12)));
    EXPECT_STR(bench_metric(&b, "nf_cache_partial_invalidations_total"), "0"); /* never was there */

    int64_t next_ns = nfg_cache_tend(b.cache); /* too soon to try again */
    EXPECT_EQ(bench_get(&b, "a").missing, 1);
    bench_advance(&b, next_ns - bench_now(&b));
    nfg_cache_tend(b.cache);
    names = bench_get(&b, "a");
    EXPECT_EQ(names.count, 2);
    EXPECT_TRUE(str_eq(names.items[0], bench_name(&b, NEEDS("AVX2"), 12)));
}

TEST(rule_10_a_node_is_admitted_if_all_groups_of_all_images_have_it)
{
    static const char *const needs[] = { NEEDS("AVX2"), NEEDS("AMXTILE"), NEEDS("AESNI") };
    static const char *const nodes[] = { "n1 n2 n3", "n3 n2", "n4 n2" };
    static const char *const names[] = { "n1", "n2", "n3", "n4", "n5" };
    BENCH b;
    bench_init(&b, (struct nfg_cache_options){ .namespace_ = NFD });
    bench_publish(&b, "init", NEEDS("AVX2") ", " NEEDS("AMXTILE"));
    bench_publish(&b, "main", NEEDS("AESNI"));
    for (size_t i = 0; i < 3; i++)
        bench_status(&b, bench_name(&b, needs[i], 12), nodes[i]);
    for (size_t n = 0; n < KV_COUNT_OF(names); n++) {
        enum match all = MATCH_YES;
        for (size_t i = 0; i < 3; i++) {
            enum match one = bench_member(&b, needs[i], names[n]);
            all = one < all ? one : all;
        }
        EXPECT_EQ(all, strcmp(names[n], "n2") == 0 ? MATCH_YES : MATCH_NO);
    }
}

/* --- who is in a group --- */

TEST(an_empty_status_is_unknown_at_first_and_no_node_later)
{
    BENCH b;
    bench_init(&b, (struct nfg_cache_options){ .namespace_ = NFD });
    EXPECT_EQ(bench_member(&b, NEEDS("AVX2"), "n1"), MATCH_UNKNOWN); /* no group */
    bench_publish(&b, "a", NEEDS("AVX2"));
    EXPECT_EQ(bench_member(&b, NEEDS("AVX2"), "n1"), MATCH_UNKNOWN);
    bench_advance(&b, NFG_EVALUATED_NS - 1);
    EXPECT_EQ(bench_member(&b, NEEDS("AVX2"), "n1"), MATCH_UNKNOWN);
    bench_advance(&b, 1);
    EXPECT_EQ(bench_member(&b, NEEDS("AVX2"), "n1"), MATCH_NO);
}

TEST(a_status_that_became_empty_is_no_node_at_once)
{
    BENCH b;
    bench_init(&b, (struct nfg_cache_options){ .namespace_ = NFD });
    struct str name = bench_publish(&b, "a", NEEDS("AVX2")).items[0];
    bench_status(&b, name, "n1");
    EXPECT_EQ(bench_member(&b, NEEDS("AVX2"), "n1"), MATCH_YES);
    EXPECT_EQ(bench_member(&b, NEEDS("AVX2"), "n2"), MATCH_NO);
    bench_status(&b, name, "");
    EXPECT_EQ(bench_member(&b, NEEDS("AVX2"), "n1"), MATCH_NO);
}

TEST(a_group_that_was_made_again_has_not_been_evaluated)
{
    BENCH b;
    bench_init(&b, (struct nfg_cache_options){ .namespace_ = NFD });
    struct str name = bench_publish(&b, "a", NEEDS("AVX2")).items[0];
    bench_status(&b, name, "n1");
    bench_advance(&b, MINUTE_NS);
    bench_delete(&b, name);
    EXPECT_EQ(bench_member(&b, NEEDS("AVX2"), "n1"), MATCH_UNKNOWN);
    nfg_cache_tend(b.cache);
    informer_pump(b.informer);
    EXPECT_EQ(bench_member(&b, NEEDS("AVX2"), "n1"), MATCH_UNKNOWN);
    EXPECT_EQ(bench_get(&b, "a").count, 1);
}

TEST(membership_follows_the_status_of_ten_thousand_nodes)
{
    BENCH b;
    AUTO_BUF nodes = { 0 };
    char node[32];
    bench_init(&b, (struct nfg_cache_options){ .namespace_ = NFD });
    struct str name = bench_publish(&b, "a", NEEDS("AVX2")).items[0];
    for (unsigned i = 0; i < 10000; i++) /* every other node, in no order */
        buf_addf(&nodes, "%sn%u", i ? " " : "", i * 7919 % 10000 * 2);
    bench_status(&b, name, nodes.p);
    struct str rules = bench_spec(&b, NEEDS("AVX2"))->sets[0].rules_json;
    for (unsigned i = 0; i < 20000; i++) {
        snprintf(node, sizeof node, "n%u", i);
        EXPECT_EQ(nfg_cache_member(b.cache, rules, str_of(node)), i % 2 ? MATCH_NO : MATCH_YES);
    }
}

TEST(rules_that_ask_for_nothing_have_no_group_and_every_node)
{
    BENCH b;
    bench_init(&b, (struct nfg_cache_options){ .namespace_ = NFD });
    EXPECT_EQ(bench_publish(&b, "a", "{rules: []}").count, 0);
    EXPECT_EQ(bench_count(&b), 0);
    EXPECT_EQ(bench_member(&b, "{rules: []}", "n1"), MATCH_YES);
}

/* --- metrics --- */

TEST(metrics_have_the_names_of_the_design)
{
    BENCH b;
    bench_init(&b, (struct nfg_cache_options){ .namespace_ = NFD });
    bench_publish(&b, "a", NEEDS("AVX2") ", " NEEDS("AMXTILE"));
    bench_publish(&b, "b", NEEDS("AVX2"));
    EXPECT_STR(bench_metric(&b, "nf_avg_nfgs_per_image"), "1.5");
    EXPECT_STR(bench_metric(&b, "nf_nfg_creation_duration_seconds_count"), "2");
    bench_get(&b, "a");
    bench_get(&b, "no such");
    EXPECT_STR(bench_metric(&b, "nf_cache_validation_duration_seconds_count"), "2");
    EXPECT_STR(bench_metric(&b, "nf_cache_validation_duration_seconds_bucket{le=\"1e-07\"}"), "2");
    EXPECT_STR(bench_metric(&b, "nf_cache_partial_invalidations_total"), "0");
    bench_delete(&b, bench_name(&b, NEEDS("AMXTILE"), 12));
    bench_get(&b, "a");
    EXPECT_STR(bench_metric(&b, "nf_cache_partial_invalidations_total"), "1");
    nfg_cache_remove(b.cache, STR("a"));
    EXPECT_STR(bench_metric(&b, "nf_avg_nfgs_per_image"), "1");
}

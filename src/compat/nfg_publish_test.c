/* Making NodeFeatureGroups, keeping those that are needed and deleting those that are not. */
#include "compat/nfg_testing.h"

#define OURS                                                                                       \
    ",\"labels\":{\"app.kubernetes.io/managed-by\":\"karve\",\"karve.io/kind\":\"image-compat\"}"
#define LAST_USED(time) ",\"annotations\":{\"karve.io/last-used\":\"" time "\"}"
/* Two sets whose rules have the same first twelve digits of SHA-256, found by search. */
#define TWIN_A                                                                                     \
    "{rules: [{name: r, matchFeatures: [{feature: cpu.cpuid, matchExpressions: {X635da69c3906: {op: Exists}}}]}]}"
#define TWIN_B                                                                                     \
    "{rules: [{name: r, matchFeatures: [{feature: cpu.cpuid, matchExpressions: {X33e9e331d2ed: {op: Exists}}}]}]}"

static const struct nfg_cache_options in_nfd = { .namespace_ = { "nfd", 3 } };

/* Tend as often as it wants to, for so long; the images stay in use if somebody says so. */
static void live(struct bench *b, int64_t ns, const char *maybe_used)
{
    for (int64_t until_ns = bench_now(b) + ns; bench_now(b) < until_ns;) {
        int64_t next_ns = nfg_cache_tend(b->cache);
        if (maybe_used)
            nfg_cache_use(b->cache, str_of(maybe_used));
        next_ns = next_ns < until_ns ? next_ns : until_ns;
        bench_advance(b, next_ns > bench_now(b) ? next_ns - bench_now(b) : SECOND_NS);
    }
}

/* --- names --- */

TEST(a_name_is_the_digest_of_the_rules)
{
    struct err err = { 0 };
    char name[NFG_NAME_MAX];
    EXPECT_OK(nfg_name(STR("[]"), 12, name, &err), err);
    EXPECT_Z(name, "image-compat-4f53cda18c2b");
    EXPECT_OK(nfg_name(STR("[]"), 20, name, &err), err);
    EXPECT_Z(name, "image-compat-4f53cda18c2baa0c0354");
    EXPECT_OK(nfg_name(STR("[]"), 64, name, &err), err);
    EXPECT_Z(name, "image-compat-4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945");
}

TEST(rules_written_in_another_order_have_the_same_name)
{
    BENCH b;
    bench_init(&b, in_nfd);
    struct str a = bench_name(
        &b,
        "{rules: [{name: r, matchFeatures: [{feature: f, matchExpressions: {A: {op: In, value: "
        "[x]}, B: {op: Exists}}}]}]}",
        12);
    struct str same = bench_name(
        &b,
        "{tag: t, rules: [{matchFeatures: [{matchExpressions: {B: {op: Exists}, A: {value: [x]"
        ", op: In}}, feature: f}], name: r}]}",
        12);
    EXPECT_TRUE(str_eq(a, same));
}

/* --- what is written --- */

TEST(a_group_says_whose_it_is_and_what_for)
{
    BENCH b;
    AUTO_OBJECT object = NULL;
    bench_init(&b, in_nfd);
    struct str name = bench_publish(&b, "reg.example/app:1", NEEDS("AVX2")).items[0];
    EXPECT_OK(store_get(b.world->store, group_at(NFD, name), &object, &b.err), b.err);
    const struct node_feature_group *group = node_feature_group_of(object);
    EXPECT_STR(str_map_get(&object->meta.labels, STR("app.kubernetes.io/managed-by")), "karve");
    EXPECT_STR(str_map_get(&object->meta.labels, STR("karve.io/kind")), "image-compat");
    EXPECT_STR(bench_annotation(&b, name, "karve.io/images"), "reg.example/app:1");
    EXPECT_STR(bench_annotation(&b, name, "karve.io/image-digest"), "sha256:1111");
    EXPECT_STR(bench_annotation(&b, name, "karve.io/artifact-digest"), "sha256:2222");
    EXPECT_STR(bench_annotation(&b, name, "karve.io/set-tag"), "AVX2");
    EXPECT_STR(bench_annotation(&b, name, "karve.io/set-weight"), "7");
    EXPECT_STR(bench_annotation(&b, name, "karve.io/last-used"), "2026-01-02T03:00:00Z");
    EXPECT_EQ(object->meta.owners.count, 0);
    EXPECT_EQ(group->spec.rules.count, 1);
    EXPECT_STR(group->spec.rules.items[0].terms.items[0].expressions.items[0].key, "AVX2");
}

TEST(equal_rules_of_several_images_share_a_group_that_names_a_few_of_them)
{
    BENCH b;
    char image[32];
    bench_init(&b, in_nfd);
    for (int i = 0; i < 20; i++) {
        snprintf(image, sizeof image, "app:%d", i);
        bench_publish(&b, image, NEEDS("AVX2"));
    }
    EXPECT_EQ(bench_count(&b), 1);
    nfg_cache_tend(b.cache);
    bench_advance(&b, 6 * MINUTE_NS);
    nfg_cache_use(b.cache, STR("app:3"));
    nfg_cache_tend(b.cache);
    EXPECT_STR(bench_annotation(&b, bench_name(&b, NEEDS("AVX2"), 12), "karve.io/images"),
               "app:0,app:1,app:2,app:3,app:4,app:5,app:6,app:7");
}

TEST(fields_that_a_group_does_not_have_are_left_out_and_empty_expressions_kept)
{
    BENCH b;
    AUTO_BUF json = { 0 };
    bench_init(&b, in_nfd);
    struct str name =
        bench_publish(&b, "a",
                      "{rules: [{name: r, note: hello, matchFeatures: [{feature: f, why: not, "
                      "matchExpressions: {}}], matchAny: [{matchFeatures: [{feature: g, matchName: "
                      "{op: In, value: [x], more: y}}], x: y}]}]}")
            .items[0];
    EXPECT_OK(store_get_json(b.world->store, group_at(NFD, name), &json, &b.err), b.err);
    EXPECT_HAS(buf_str(&json), "\"matchExpressions\":{}");
    EXPECT_HAS(buf_str(&json), "\"matchName\":{\"op\":\"In\",\"value\":[\"x\"]}");
    EXPECT_EQ(bench_get(&b, "a").count, 1);
}

TEST(a_set_that_only_nfd_can_evaluate_has_a_group_too)
{
    BENCH b;
    bench_init(&b, in_nfd);
    EXPECT_EQ(bench_publish(&b, "a",
                            "{rules: [{name: r, varsTemplate: 'x={{ . }}', matchFeatures: "
                            "[{feature: f}]}]}")
                  .count,
              1);
    EXPECT_EQ(bench_count(&b), 1);
}

TEST(sets_of_platforms_have_groups_and_equal_ones_only_one)
{
    BENCH b;
    struct nfg_names names;
    bench_init(&b, in_nfd);
    struct image_platform platforms[2] = {
        { .spec = { bench_spec(&b, NEEDS("SVE")), .artifact = STR("sha256:3333") } },
        { .spec = { bench_spec(&b, NEEDS("AVX2") ", " NEEDS("SVE")) } },
    };
    struct image_facts facts = facts_of(bench_spec(&b, NEEDS("AVX2")));
    facts.platforms = platforms;
    facts.platform_count = 2;
    EXPECT_OK(nfg_cache_publish(b.cache, STR("a"), &facts, &b.arena, &names, &b.err), b.err);
    EXPECT_EQ(names.count, 2);
    EXPECT_STR(bench_annotation(&b, bench_name(&b, NEEDS("SVE"), 12), "karve.io/artifact-digest"),
               "sha256:3333");
}

/* --- others --- */

TEST(a_group_that_somebody_made_first_is_used_as_it_is)
{
    BENCH b;
    bench_init(&b, in_nfd);
    /* Unseen by the watch: creating it is refused, and what is there is read. */
    struct informer *silent = b.informer;
    struct str name = bench_name(&b, NEEDS("AVX2"), 12);
    b.informer = bench_watch(&b, NULL);
    informer_free(silent);
    embedded_set_faults(b.world->e, NULL);
    AUTO_BUF json = { 0 };
    buf_addf(&json, "{\"metadata\":{\"name\":\"%.*s\"},\"spec\":{\"featureGroupRules\":%.*s}}",
             STR_ARG(name), STR_ARG(bench_spec(&b, NEEDS("AVX2"))->sets[0].rules_json));
    EXPECT_OK(
        store_create(b.world->store, &node_feature_group_kind, NFD, buf_str(&json), NULL, &b.err),
        b.err);
    struct nfg_names names;
    EXPECT_OK(bench_try(&b, "a", NEEDS("AVX2"), &names), b.err);
    EXPECT_TRUE(str_eq(names.items[0], name));
    EXPECT_EQ(bench_count(&b), 1);
    EXPECT_STR(bench_metric(&b, "nf_nfg_creation_duration_seconds_count"), "0");
}

TEST(a_name_that_has_other_rules_is_extended_to_20_then_to_64_digits)
{
    static const uint32_t digits[] = { 20, 64 };
    BENCH b;
    struct nfg_names names;
    bench_init(&b, in_nfd);
    bench_foreign(&b, bench_name(&b, NEEDS("AVX2"), 12), NEEDS("AMXTILE"), OURS);
    for (size_t i = 0; i < KV_COUNT_OF(digits); i++) {
        struct str want = bench_name(&b, NEEDS("AVX2"), digits[i]);
        EXPECT_TRUE(str_eq(bench_publish(&b, "a", NEEDS("AVX2")).items[0], want));
        bench_status(&b, want, "n1");
        EXPECT_EQ(bench_member(&b, NEEDS("AVX2"), "n1"), MATCH_YES);
        bench_delete(&b, want);
        bench_foreign(&b, want, NEEDS("AMXTILE"), OURS);
        EXPECT_EQ(bench_member(&b, NEEDS("AVX2"), "n1"), MATCH_UNKNOWN);
    }
    EXPECT_ERR(bench_try(&b, "a", NEEDS("AVX2"), &names), b.err, ERR_CONFLICT);
    EXPECT_EQ(bench_count(&b), 3);
    EXPECT_EQ(bench_get(&b, "a").count, 0);
}

TEST(two_sets_of_ours_whose_digests_begin_alike_have_two_groups)
{
    BENCH b;
    bench_init(&b, in_nfd);
    EXPECT_STR(bench_name(&b, TWIN_A, 12), "image-compat-627465b9a04c");
    EXPECT_STR(bench_name(&b, TWIN_B, 12), "image-compat-627465b9a04c");
    for (int round = 0; round < 2; round++) {
        struct nfg_names names = bench_publish(&b, "a", TWIN_A ", " TWIN_B);
        EXPECT_EQ(names.count, 2);
        EXPECT_TRUE(str_eq(names.items[0], bench_name(&b, TWIN_A, 12)));
        EXPECT_TRUE(str_eq(names.items[1], bench_name(&b, TWIN_B, 20)));
        bench_status(&b, names.items[0], "a");
        bench_status(&b, names.items[1], "b");
        EXPECT_EQ(bench_member(&b, TWIN_A, "a"), MATCH_YES);
        EXPECT_EQ(bench_member(&b, TWIN_A, "b"), MATCH_NO);
        EXPECT_EQ(bench_member(&b, TWIN_B, "b"), MATCH_YES);
        bench_restart(&b, in_nfd);
    }
    EXPECT_EQ(bench_count(&b), 2);
}

TEST(a_set_leaves_the_name_to_the_other_one_that_has_it_even_while_that_group_is_gone)
{
    BENCH b;
    bench_init(&b, in_nfd);
    struct nfg_names names = bench_publish(&b, "a", TWIN_A ", " TWIN_B);
    bench_delete(&b, names.items[0]);
    bench_delete(&b, names.items[1]);
    EXPECT_TRUE(str_eq(bench_publish(&b, "b", TWIN_B).items[0], bench_name(&b, TWIN_B, 20)));
    EXPECT_TRUE(str_eq(bench_publish(&b, "c", TWIN_A).items[0], bench_name(&b, TWIN_A, 12)));
}

TEST(a_group_whose_rules_somebody_edits_is_replaced_by_one_with_a_longer_name)
{
    BENCH b;
    bench_init(&b, in_nfd);
    struct str name = bench_publish(&b, "a", NEEDS("AVX2")).items[0];
    bench_status(&b, name, "n1");
    EXPECT_OK(store_patch(b.world->store, group_at(NFD, name),
                          (struct patch_options){ .type = PATCH_MERGE },
                          js("{'spec':{'featureGroupRules':[]}}"), NULL, &b.err),
              b.err);
    informer_pump(b.informer);
    EXPECT_EQ(bench_member(&b, NEEDS("AVX2"), "n1"), MATCH_UNKNOWN);
    EXPECT_TRUE(nfg_cache_due_ns(b.cache) <= bench_now(&b));
    nfg_cache_tend(b.cache);
    struct nfg_names names = bench_get(&b, "a");
    EXPECT_EQ(names.count, 1);
    EXPECT_TRUE(str_eq(names.items[0], bench_name(&b, NEEDS("AVX2"), 20)));
}

TEST(a_group_that_is_being_deleted_does_not_count_and_is_made_when_it_is_gone)
{
    BENCH b;
    struct nfg_names names;
    bench_init(&b, in_nfd);
    struct str name = bench_name(&b, NEEDS("AVX2"), 12);
    bench_foreign(&b, name, NEEDS("AVX2"), OURS ",\"finalizers\":[\"example.com/wait\"]");
    bench_publish(&b, "a", NEEDS("AVX2") ", " NEEDS("SVE"));
    bench_status(&b, name, "n1");
    bench_delete(&b, name); /* only begins */
    EXPECT_EQ(bench_get(&b, "a").missing, 1);
    EXPECT_EQ(bench_member(&b, NEEDS("AVX2"), "n1"), MATCH_UNKNOWN);
    EXPECT_ERR(bench_try(&b, "a", NEEDS("AVX2"), &names), b.err, ERR_UNAVAILABLE);
    EXPECT_OK(store_patch(b.world->store, group_at(NFD, name),
                          (struct patch_options){ .type = PATCH_MERGE },
                          js("{'metadata':{'finalizers':null}}"), NULL, &b.err),
              b.err);
    bench_advance(&b, MINUTE_NS);
    nfg_cache_tend(b.cache);
    EXPECT_EQ(bench_publish(&b, "a", NEEDS("AVX2")).count, 1);
}

TEST(a_group_that_goes_between_being_met_and_being_read_is_made)
{
    BENCH b;
    bench_init(&b, in_nfd);
    b.fault = ERR_EXISTS;
    b.fault_verb = EMBEDDED_CREATE;
    b.fault_count = 1;
    EXPECT_EQ(bench_publish(&b, "a", NEEDS("AVX2")).count, 1);
    EXPECT_EQ(bench_count(&b), 1);
}

static enum err_kind lose_the_answer(void *ctx, const struct embedded_call *call)
{
    int *left = ctx;
    return call->verb == EMBEDDED_CREATE && (*left)-- > 0 ? ERR_UNAVAILABLE : ERR_NONE;
}

TEST(a_creation_whose_answer_was_lost_is_found_to_have_succeeded)
{
    BENCH b;
    struct nfg_names names;
    int left = 1;
    bench_init(&b, in_nfd);
    embedded_set_faults(b.world->e,
                        &(struct embedded_faults){ .after = lose_the_answer, .ctx = &left });
    EXPECT_ERR(bench_try(&b, "a", NEEDS("AVX2"), &names), b.err, ERR_UNAVAILABLE);
    virtual_clock_advance(b.world->time, MINUTE_NS);
    EXPECT_OK(bench_try(&b, "a", NEEDS("AVX2"), &names), b.err);
    EXPECT_EQ(names.count, 1);
    EXPECT_EQ(bench_count(&b), 1);
}

/* --- what fails --- */

TEST(an_expression_without_op_is_refused_by_its_rule_and_the_other_sets_are_made)
{
    BENCH b;
    struct nfg_names names;
    bench_init(&b, in_nfd);
    EXPECT_ERR(
        bench_try(
            &b, "a",
            "{rules: [{name: fine, matchFeatures: [{feature: f}]}, {name: no operator, "
            "matchAny: [{matchFeatures: [{feature: g, matchExpressions: {E: {}}}]}]}]}, " NEEDS(
                "AVX2"),
            &names),
        b.err, ERR_INVALID);
    EXPECT_HAS(str_of(b.err.text), "no operator");
    EXPECT_HAS(str_of(b.err.text), "set 1");
    EXPECT_EQ(bench_count(&b), 1);
    EXPECT_EQ(bench_get(&b, "a").count, 1);
    EXPECT_ERR(bench_try(&b, "b",
                         "{rules: [{name: of names, matchFeatures: [{feature: f, matchName: "
                         "{value: [x]}}]}]}",
                         &names),
               b.err, ERR_INVALID);
    EXPECT_HAS(str_of(b.err.text), "of names");
    EXPECT_EQ(b.calls[EMBEDDED_CREATE], 1); /* nothing was even tried */
}

TEST(too_many_sets_are_a_lack_of_capacity_and_equal_ones_count_once)
{
    BENCH b;
    struct nfg_names names;
    bench_init(&b, (struct nfg_cache_options){ .namespace_ = NFD, .sets_max = 2 });
    EXPECT_ERR(bench_try(&b, "a", NEEDS("A") ", " NEEDS("B") ", " NEEDS("C"), &names), b.err,
               ERR_CAPACITY);
    EXPECT_EQ(bench_count(&b), 0);
    EXPECT_EQ(bench_publish(&b, "b", NEEDS("A") ", " NEEDS("B") ", " NEEDS("A")).count, 2);
}

TEST(nothing_is_made_when_it_is_off)
{
    BENCH b;
    struct nfg_names names;
    bench_init(&b, in_nfd);
    nfg_cache_free(b.cache);
    b.cache = nfg_cache_new(
        (struct nfg_cache_options){ .clock = virtual_clock_port(b.world->time), .mode = NFG_OFF });
    struct image_facts facts = facts_of(bench_spec(&b, NEEDS("AVX2")));
    EXPECT_OK(nfg_cache_publish(b.cache, STR("a"), &facts, &b.arena, &names, &b.err), b.err);
    EXPECT_EQ(names.count, 0);
    EXPECT_EQ(nfg_cache_tend(b.cache), INT64_MAX);
    EXPECT_EQ(bench_count(&b), 0);
    nfg_cache_free(b.cache);
    informer_free(b.informer);
    b.cache = bench_cache(&b, in_nfd);
    b.informer = bench_watch(&b, b.cache);
}

TEST(failures_are_tried_again_ever_more_rarely)
{
    BENCH b;
    struct nfg_names names;
    bench_init(&b, in_nfd);
    nfg_cache_tend(b.cache);
    b.fault = ERR_THROTTLED;
    b.fault_verb = EMBEDDED_CREATE;
    b.fault_count = -1;
    for (int i = 0; i < 3; i++)
        EXPECT_ERR(bench_try(&b, "a", NEEDS("AVX2"), &names), b.err, ERR_THROTTLED);
    EXPECT_EQ(b.calls[EMBEDDED_CREATE], 1); /* the others were told the same */
    live(&b, 30 * MINUTE_NS, NULL);
    EXPECT_TRUE(b.calls[EMBEDDED_CREATE] > 5);
    EXPECT_TRUE(b.calls[EMBEDDED_CREATE] < 20);
    b.fault_count = 0;
    live(&b, 6 * MINUTE_NS, NULL);
    EXPECT_EQ(bench_count(&b), 1);
}

/* --- namespaces --- */

TEST(without_a_namespace_nothing_can_be_made_until_it_is_known)
{
    BENCH b;
    struct nfg_names names;
    bench_init(&b, (struct nfg_cache_options){ 0 });
    EXPECT_ERR(bench_try(&b, "a", NEEDS("AVX2"), &names), b.err, ERR_UNAVAILABLE);
    nfg_cache_tend(b.cache);
    EXPECT_EQ(bench_count(&b), 0);
    nfg_cache_set_namespace(b.cache, NFD);
    EXPECT_TRUE(nfg_cache_due_ns(b.cache) <= bench_now(&b));
    nfg_cache_tend(b.cache);
    EXPECT_TRUE(bench_there(&b, NFD, bench_name(&b, NEEDS("AVX2"), 12)));
    EXPECT_EQ(bench_publish(&b, "a", NEEDS("AVX2")).count, 1);
}

TEST(groups_are_made_where_nfd_moved_to_and_the_old_ones_go_when_idle)
{
    BENCH b;
    bench_init(&b, in_nfd);
    struct str name = bench_publish(&b, "a", NEEDS("AVX2")).items[0];
    bench_status(&b, name, "n1");
    nfg_cache_set_namespace(b.cache, STR("new"));
    EXPECT_EQ(bench_member(&b, NEEDS("AVX2"), "n1"), MATCH_UNKNOWN);
    EXPECT_EQ(bench_get(&b, "a").count, 0);
    nfg_cache_tend(b.cache);
    EXPECT_TRUE(bench_there(&b, STR("new"), name));
    EXPECT_EQ(bench_publish(&b, "a", NEEDS("AVX2")).count, 1);
    live(&b, 50 * MINUTE_NS, "a");
    EXPECT_TRUE(bench_there(&b, NFD, name));
    live(&b, 20 * MINUTE_NS, "a");
    EXPECT_FALSE(bench_there(&b, NFD, name));
    EXPECT_TRUE(bench_there(&b, STR("new"), name));
}

TEST(groups_seen_before_the_namespace_is_known_count_once_it_is)
{
    BENCH b;
    bench_init(&b, (struct nfg_cache_options){ 0 });
    bench_foreign(&b, bench_name(&b, NEEDS("AVX2"), 12), NEEDS("AVX2"), OURS);
    nfg_cache_set_namespace(b.cache, NFD);
    EXPECT_EQ(bench_publish(&b, "a", NEEDS("AVX2")).count, 1);
    EXPECT_EQ(b.calls[EMBEDDED_CREATE], 1); /* that of the test */
}

/* --- idle or not --- */

TEST(a_group_that_is_deleted_while_needed_is_made_again)
{
    BENCH b;
    bench_init(&b, in_nfd);
    struct str name = bench_publish(&b, "a", NEEDS("AVX2")).items[0];
    nfg_cache_tend(b.cache);
    EXPECT_TRUE(nfg_cache_due_ns(b.cache) > bench_now(&b));
    bench_delete(&b, name);
    EXPECT_TRUE(nfg_cache_due_ns(b.cache) <= bench_now(&b));
    EXPECT_TRUE(nfg_cache_tend(b.cache) > bench_now(&b));
    EXPECT_TRUE(bench_there(&b, NFD, name));
    EXPECT_EQ(bench_get(&b, "a").count, 1);
}

TEST(a_group_in_use_stays_and_says_so_every_few_minutes)
{
    BENCH b;
    bench_init(&b, in_nfd);
    struct str name = bench_publish(&b, "a", NEEDS("AVX2")).items[0];
    live(&b, 300 * MINUTE_NS, "a");
    EXPECT_TRUE(bench_there(&b, NFD, name));
    EXPECT_TRUE(b.calls[EMBEDDED_PATCH] > 20);
    EXPECT_TRUE(b.calls[EMBEDDED_PATCH] <= 60);
    EXPECT_HAS(bench_annotation(&b, name, "karve.io/last-used"), "2026-01-02T07:5");
    EXPECT_EQ(b.calls[EMBEDDED_REMOVE], 0);
}

TEST(a_group_goes_an_hour_after_its_last_use)
{
    BENCH b;
    bench_init(&b, in_nfd);
    struct str name = bench_publish(&b, "a", NEEDS("AVX2")).items[0];
    live(&b, 30 * MINUTE_NS, "a");
    live(&b, 55 * MINUTE_NS, NULL);
    EXPECT_TRUE(bench_there(&b, NFD, name));
    live(&b, 15 * MINUTE_NS, NULL);
    EXPECT_FALSE(bench_there(&b, NFD, name));
    EXPECT_EQ(bench_get(&b, "a").count, 0);
    live(&b, 120 * MINUTE_NS, NULL);
    EXPECT_EQ(bench_count(&b), 0); /* and is not made again */
}

TEST(a_removed_entry_leaves_its_group_for_the_idle_time)
{
    BENCH b;
    bench_init(&b, (struct nfg_cache_options){ .namespace_ = NFD, .idle_ns = 20 * MINUTE_NS });
    struct str name = bench_publish(&b, "a", NEEDS("AVX2")).items[0];
    bench_publish(&b, "b", NEEDS("AVX2"));
    live(&b, 10 * MINUTE_NS, "a");
    nfg_cache_remove(b.cache, STR("a"));
    nfg_cache_remove(b.cache, STR("b"));
    live(&b, 19 * MINUTE_NS, NULL);
    EXPECT_TRUE(bench_there(&b, NFD, name));
    live(&b, 8 * MINUTE_NS, NULL);
    EXPECT_FALSE(bench_there(&b, NFD, name));
}

TEST(a_group_that_another_image_needs_stays)
{
    BENCH b;
    bench_init(&b, in_nfd);
    struct str name = bench_publish(&b, "a", NEEDS("AVX2")).items[0];
    bench_publish(&b, "b", NEEDS("AVX2") ", " NEEDS("SVE"));
    nfg_cache_remove(b.cache, STR("a"));
    live(&b, 180 * MINUTE_NS, "b");
    EXPECT_TRUE(bench_there(&b, NFD, name));
    EXPECT_EQ(bench_count(&b), 2);
}

TEST(a_group_is_not_forgotten_before_the_entries_that_refer_to_it)
{
    BENCH b;
    bench_init(&b, in_nfd);
    bench_advance(&b, 10 * SECOND_NS);
    bench_publish(&b, "a", NEEDS("AVX2"));
    bench_advance(&b, SECOND_NS / 2); /* too little for the group to be marked again */
    bench_publish(&b, "b", NEEDS("AVX2"));
    bench_advance(&b, NFG_IDLE_NS - SECOND_NS / 2);
    nfg_cache_tend(b.cache);
    EXPECT_EQ(bench_get(&b, "a").count, 0);
    EXPECT_EQ(bench_get(&b, "b").count, 1);
}

TEST(groups_of_an_earlier_process_go_an_hour_after_the_last_use_that_they_tell)
{
    BENCH b;
    bench_init(&b, in_nfd); /* it is 03:00 */
    bench_foreign(&b, STR("image-compat-0000"), NEEDS("A"), OURS LAST_USED("2026-01-02T02:30:00Z"));
    bench_foreign(&b, STR("image-compat-1111"), NEEDS("B"), OURS LAST_USED("no time"));
    bench_foreign(&b, STR("image-compat-2222"), NEEDS("C"), OURS LAST_USED("2026-01-02T04:00:00Z"));
    live(&b, 50 * MINUTE_NS, NULL);
    EXPECT_EQ(bench_count(&b), 3); /* each was made at three */
    live(&b, 20 * MINUTE_NS, NULL);
    EXPECT_EQ(bench_count(&b), 1);
    live(&b, 40 * MINUTE_NS, NULL);
    EXPECT_TRUE(bench_there(&b, NFD, STR("image-compat-2222")));
    live(&b, 20 * MINUTE_NS, NULL);
    EXPECT_EQ(bench_count(&b), 0);
}

TEST(an_old_group_is_not_deleted_before_whoever_needs_it_had_time_to_start)
{
    BENCH b;
    bench_init(&b, in_nfd);
    struct str name = bench_publish(&b, "a", NEEDS("AVX2")).items[0];
    bench_advance(&b, 48 * 60 * MINUTE_NS);
    bench_restart(&b, in_nfd);
    nfg_cache_tend(b.cache);
    EXPECT_TRUE(bench_there(&b, NFD, name));
    bench_publish(&b, "a", NEEDS("AVX2")); /* and says so at once */
    EXPECT_STR(bench_annotation(&b, name, "karve.io/last-used"), "2026-01-04T03:00:00Z");
}

TEST(groups_of_others_are_never_deleted)
{
    BENCH b;
    bench_init(&b, in_nfd);
    bench_foreign(&b, STR("image-compat-0000"), NEEDS("A"), "");
    bench_foreign(&b, STR("image-compat-1111"), NEEDS("B"),
                  ",\"labels\":{\"app.kubernetes.io/managed-by\":\"karve\"}");
    bench_foreign(&b, STR("image-compat-2222"), NEEDS("C"),
                  ",\"labels\":{\"karve.io/kind\":\"image-compat\"}");
    live(&b, 600 * MINUTE_NS, NULL);
    EXPECT_EQ(bench_count(&b), 3);
    EXPECT_EQ(b.calls[EMBEDDED_PATCH], 0);
}

TEST(two_processes_do_not_delete_what_the_other_uses)
{
    BENCH b;
    bench_init(&b, in_nfd);
    AUTO(metrics) metrics = metrics_new(virtual_clock_port(b.world->time));
    struct nfg_cache_options options = in_nfd;
    options.maybe_metrics = metrics;
    struct nfg_cache *other = bench_cache(&b, options);
    struct informer *watch = bench_watch(&b, other);
    struct image_facts facts = facts_of(bench_spec(&b, NEEDS("AVX2")));
    struct nfg_names names;
    struct str name = bench_publish(&b, "a", NEEDS("AVX2")).items[0];
    informer_pump(watch);
    EXPECT_OK(nfg_cache_publish(other, STR("a"), &facts, &b.arena, &names, &b.err), b.err);
    for (int i = 0; i < 300; i++) { /* only the other one uses it */
        nfg_cache_tend(b.cache);
        nfg_cache_use(other, STR("a"));
        nfg_cache_tend(other);
        informer_pump(watch);
        bench_advance(&b, MINUTE_NS);
        EXPECT_TRUE(bench_there(&b, NFD, name));
    }
    EXPECT_EQ(b.calls[EMBEDDED_REMOVE], 0);
    nfg_cache_free(other);
    informer_free(watch);
}

TEST(a_use_that_the_watch_has_not_shown_yet_saves_a_group_from_deletion)
{
    BENCH b;
    bench_init(&b, in_nfd);
    bench_foreign(&b, STR("image-compat-0000"), NEEDS("A"), OURS LAST_USED("2026-01-02T02:30:00Z"));
    virtual_clock_advance(b.world->time, 120 * MINUTE_NS);
    EXPECT_OK(store_patch(b.world->store, group_at(NFD, STR("image-compat-0000")),
                          (struct patch_options){ .type = PATCH_MERGE },
                          js("{'metadata':{'annotations':{'karve.io/last-used':"
                             "'2026-01-02T05:00:00Z'}}}"),
                          NULL, &b.err),
              b.err);
    nfg_cache_tend(b.cache);
    EXPECT_EQ(b.calls[EMBEDDED_REMOVE], 1); /* tried, and refused */
    EXPECT_TRUE(bench_there(&b, NFD, STR("image-compat-0000")));
}

TEST(what_the_watch_tells_late_does_not_undo_what_we_wrote)
{
    BENCH b;
    struct nfg_names names;
    bench_init(&b, in_nfd);
    struct str name = bench_publish(&b, "a", NEEDS("AVX2")).items[0];
    AUTO_OBJECT first = NULL;
    EXPECT_OK(store_get(b.world->store, group_at(NFD, name), &first, &b.err), b.err);
    bench_delete(&b, name);
    EXPECT_OK(bench_try(&b, "a", NEEDS("AVX2"), &names), b.err);
    nfg_cache_observe(b.cache, first, NULL); /* the end of the first one, again */
    EXPECT_EQ(bench_get(&b, "a").count, 1);
    EXPECT_EQ(bench_get(&b, "a").missing, 0);
}

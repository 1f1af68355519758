/* Classes of nodes with equal features. */
#include "base/thread.h"
#include "compat/compat_testing.h"

static struct str value_of(const struct feature_set *set, const char *feature, const char *element)
{
    const struct set_feature *f = feature_set_find(set, str_of(feature));
    EXPECT_TRUE(f != NULL);
    return feature_set_value(set, f->attributes, str_of(element));
}

TEST(set_has_what_the_object_says)
{
    WORLD w;
    world_init(&w);
    const struct feature_set *set = world_set(
        &w, "flags: {cpu.cpuid: {elements: {AVX2: {}, AESNI: {}}}}, "
            "attributes: {kernel.version: {elements: {major: '6', full: ''}}, kernel.config: "
            "{elements: {KVM: m}}}, instances: {pci.device: {elements: [{attributes: {vendor: "
            "'10de'}}, {attributes: {}}]}, usb.device: {elements: []}}");
    const struct set_feature *cpu = feature_set_find(set, STR("cpu.cpuid"));
    const struct set_feature *pci = feature_set_find(set, STR("pci.device"));
    const struct set_feature *usb = feature_set_find(set, STR("usb.device"));

    EXPECT_EQ(feature_set_count(set), 5);
    EXPECT_STR(feature_set_str(set, feature_set_at(set, 0)->name), "cpu.cpuid");
    EXPECT_TRUE(feature_set_find(set, STR("cpu")) == NULL);
    EXPECT_EQ(cpu->kinds, FEATURE_HAS_FLAGS);
    EXPECT_TRUE(feature_set_has_flag(set, cpu, STR("AVX2")));
    EXPECT_FALSE(feature_set_has_flag(set, cpu, STR("AVX")));
    EXPECT_STR(value_of(set, "kernel.version", "major"), "6");
    EXPECT_TRUE(value_of(set, "kernel.version", "full").p != NULL);
    EXPECT_TRUE(value_of(set, "kernel.version", "minor").p == NULL);
    EXPECT_STR(value_of(set, "kernel.config", "KVM"), "m");
    EXPECT_EQ(pci->instance_count, 2);
    EXPECT_EQ(usb->kinds, FEATURE_HAS_INSTANCES);
    EXPECT_EQ(usb->instance_count, 0);
    EXPECT_FALSE(feature_set_others_unknown(set));
}

TEST(set_of_a_node_that_says_nothing_is_empty)
{
    WORLD w;
    world_init(&w);
    const struct feature_set *set = world_set(&w, "");

    EXPECT_EQ(feature_set_count(set), 0);
    EXPECT_TRUE(feature_set_find(set, STR("")) == NULL);
}

TEST(equal_features_are_one_set)
{
    WORLD w;
    world_init(&w);
    const char *const one = "flags: {a.b: {elements: {x: {}, z: {}}}}, instances: {pci.device: "
                            "{elements: [{attributes: {v: '1'}}, {attributes: {v: '2'}}]}}";
    const char *const moved = "flags: {a.b: {elements: {z: {}, x: {}}}}, instances: {pci.device: "
                              "{elements: [{attributes: {v: '2'}}, {attributes: {v: '1'}}, "
                              "{attributes: {v: '2'}}]}}";
    const struct feature_set *a = world_set(&w, one), *b = world_set(&w, moved),
                             *c = world_set(&w, "flags: {a.b: {elements: {x: {}}}}");

    EXPECT_TRUE(a == b);
    EXPECT_TRUE(a != c);
    EXPECT_EQ(feature_sets_stats(w.pool).set_count, 2);
    EXPECT_EQ(feature_sets_stats(w.pool).shared_count, 1);
    EXPECT_EQ(feature_sets_stats(w.pool).bytes, feature_set_bytes(a) + feature_set_bytes(c));
}

/* The same texts in other places. */
TEST(sets_that_look_alike_are_told_apart)
{
    static const char *const features[] = {
        "",
        "flags: {a.b: {elements: {x: {}}}}",
        "attributes: {a.b: {elements: {x: ''}}}",
        "instances: {a.b: {elements: [{attributes: {x: ''}}]}}",
        "instances: {a.b: {elements: [{attributes: {}}]}}",
        "instances: {a.b: {elements: []}}",
        "flags: {a.b: {elements: {}}}",
        "attributes: {a.b: {elements: {}}}",
        "attributes: {a.b: {elements: {x: x}}}",
        "flags: {a.bx: {elements: {}}}",
    };
    WORLD w;
    world_init(&w);

    for (size_t i = 0; i < KV_COUNT_OF(features); i++)
        world_set(&w, features[i]);
    FEATURE_DRAFT draft = { .others_unknown = true };
    world_make(&w, &draft);
    feature_draft_unsure(&draft, STR("a.b"), STR("x"));
    world_make(&w, &draft);
    feature_draft_completeness(&draft, STR("a.b"), FEATURE_PARTIAL);
    world_make(&w, &draft);
    EXPECT_EQ(feature_sets_stats(w.pool).set_count, KV_COUNT_OF(features) + 3);
}

/* Ours first, then by name, then by namespace; instances add up. */
TEST(objects_of_one_node_are_merged_in_order)
{
    WORLD w;
    world_init(&w);
    const struct node_feature *objects[] = {
        world_object(&w, "b", "vendor", "attributes: {f: {elements: {v: b, only: b}}}"),
        world_object(&w, "a", "vendor", "attributes: {f: {elements: {v: a}}}"),
        world_object(&w, "a", "zebra", "instances: {f: {elements: [{attributes: {k: z}}]}}"),
        world_object(&w, "nfd", "zzz",
                     "attributes: {f: {elements: {v: own, mine: own}}}, flags: {f: {elements: "
                     "{flag: {}}}}, instances: {f: {elements: [{attributes: {k: own}}]}}"),
    };
    FEATURE_DRAFT draft = { 0 };
    feature_draft_node(&draft, objects, KV_COUNT_OF(objects), STR("nfd"));
    const struct feature_set *set = world_make(&w, &draft);
    const struct set_feature *f = feature_set_find(set, STR("f"));

    EXPECT_STR(value_of(set, "f", "v"), "b");
    EXPECT_STR(value_of(set, "f", "only"), "b");
    EXPECT_STR(value_of(set, "f", "mine"), "own");
    EXPECT_TRUE(feature_set_has_flag(set, f, STR("flag")));
    EXPECT_EQ(f->instance_count, 2);
}

/* Thousands of nodes that differ in what no rule asks for. */
TEST(mask_makes_one_class_of_nodes_that_rules_cannot_tell_apart)
{
    WORLD w;
    world_init(&w);
    const struct rules *rules = world_rules(
        &w, "[{name: r, matchFeatures: [{feature: CPU.cpuid, matchExpressions: {AVX2: {op: "
            "Exists}}}, {feature: pci.device, matchExpressions: {vendor: {op: In, value: "
            "['10de']}}}, {feature: kernel.loadedmodule, matchName: {op: In, value: [kvm]}}]}]");
    FEATURE_MASK mask = { 0 };
    rules_mention(rules, &mask);
    feature_mask_settle(&mask);

    for (int i = 0; i < 50; i++) {
        AUTO_BUF text = { 0 };
        buf_addf(&text,
                 "flags: {cpu.cpuid: {elements: {AVX2: {}, F%d: {}}}, kernel.loadedmodule: "
                 "{elements: {veth: {}}}}, attributes: {system.name: {elements: {nodename: "
                 "host%d}}, kernel.loadedmodule: {elements: {module: 'v%d'}}}, instances: "
                 "{pci.device: {elements: [{attributes: {vendor: '8086', serial: '%d'}}]}}",
                 i, i, i, i);
        const struct node_feature *object = world_object(&w, "nfd", "node1", text.p);
        FEATURE_DRAFT draft = { .maybe_mask = &mask };
        feature_draft_node(&draft, &object, 1, STR("nfd"));
        world_make(&w, &draft);
    }
    EXPECT_EQ(feature_sets_stats(w.pool).set_count, 1);
    const struct feature_set *set = w.sets.items[0];
    EXPECT_EQ(feature_set_count(set), 3);
    EXPECT_STR(value_of(set, "kernel.loadedmodule", "module"), ""); /* its name, not its value */
    EXPECT_TRUE(feature_set_bytes(set) < 400);
}

TEST(unknown_elements_forget_what_was_said_of_them)
{
    WORLD w;
    world_init(&w);
    FEATURE_DRAFT draft = { 0 };
    feature_draft_flag(&draft, STR("f"), STR("a"));
    feature_draft_flag(&draft, STR("f"), STR("b"));
    feature_draft_unsure(&draft, STR("f"), STR("a"));
    const struct feature_set *set = world_make(&w, &draft);
    const struct set_feature *f = feature_set_find(set, STR("f"));

    EXPECT_TRUE(feature_set_is_unsure(set, f, STR("a")));
    EXPECT_FALSE(feature_set_has_flag(set, f, STR("a")));
    EXPECT_TRUE(feature_set_has_flag(set, f, STR("b")));
}

TEST(absent_elements_forget_what_was_said_of_them_but_not_doubts)
{
    WORLD w;
    world_init(&w);
    FEATURE_DRAFT draft = { 0 };
    feature_draft_absent(&draft, STR("f"), STR("a"));
    feature_draft_flag(&draft, STR("f"), STR("a"));
    feature_draft_flag(&draft, STR("f"), STR("b"));
    feature_draft_unsure(&draft, STR("f"), STR("c"));
    feature_draft_absent(&draft, STR("f"), STR("c"));
    feature_draft_completeness(&draft, STR("f"), FEATURE_PARTIAL);
    const struct feature_set *set = world_make(&w, &draft);
    const struct set_feature *f = feature_set_find(set, STR("f"));

    EXPECT_TRUE(feature_set_is_absent(set, f, STR("a")));
    EXPECT_FALSE(feature_set_has_flag(set, f, STR("a")));
    EXPECT_FALSE(feature_set_is_absent(set, f, STR("b")));
    EXPECT_TRUE(feature_set_is_unsure(set, f, STR("c")));
    EXPECT_FALSE(feature_set_is_absent(set, f, STR("c")));
}

TEST(absence_that_makes_no_difference_makes_no_other_set)
{
    WORLD w;
    world_init(&w);
    FEATURE_DRAFT complete = { 0 }, plain = { 0 };
    feature_draft_flag(&complete, STR("f"), STR("b"));
    feature_draft_absent(&complete, STR("f"), STR("a"));
    feature_draft_flag(&plain, STR("f"), STR("b"));
    EXPECT_TRUE(world_make(&w, &complete) == world_make(&w, &plain));

    FEATURE_MASK mask = { 0 };
    feature_mask_add(&mask, (struct feature_mention){ STR("f"), STR_NONE, MENTIONED_NAMES });
    feature_mask_settle(&mask);
    FEATURE_DRAFT named = { .maybe_mask = &mask }, bare = { .maybe_mask = &mask };
    feature_draft_completeness(&named, STR("f"), FEATURE_PARTIAL);
    feature_draft_completeness(&bare, STR("f"), FEATURE_PARTIAL);
    feature_draft_absent(&named, STR("f"), STR("a"));
    EXPECT_TRUE(world_make(&w, &named) == world_make(&w, &bare));
}

/* --- what rules make of predictions --- */

#define EXISTS(element_) "matchExpressions: {" element_ ": {op: Exists}}"
#define GONE(element_) "matchExpressions: {" element_ ": {op: DoesNotExist}}"

TEST(predictions_answer_by_what_is_known)
{
    static const struct {
        enum completeness completeness;
        const char *term;
        enum match want;
    } cases[] = {
        { FEATURE_COMPLETE, EXISTS("there"), MATCH_YES },
        { FEATURE_COMPLETE, EXISTS("other"), MATCH_NO },
        { FEATURE_COMPLETE, EXISTS("maybe"), MATCH_UNKNOWN },
        { FEATURE_COMPLETE, GONE("maybe"), MATCH_UNKNOWN },
        { FEATURE_COMPLETE, "matchName: {op: In, value: [maybe]}", MATCH_UNKNOWN },
        { FEATURE_COMPLETE, "matchName: {op: In, value: [other]}", MATCH_NO },
        { FEATURE_PARTIAL, EXISTS("there"), MATCH_YES },
        { FEATURE_PARTIAL, EXISTS("other"), MATCH_UNKNOWN },
        { FEATURE_PARTIAL, EXISTS("gone"), MATCH_NO },
        { FEATURE_PARTIAL, GONE("gone"), MATCH_YES },
        { FEATURE_PARTIAL, "matchExpressions: {gone: {op: NotIn, value: [a]}}", MATCH_NO },
        { FEATURE_PARTIAL, "matchExpressions: {gone: {op: Gt}}", MATCH_NO },
        { FEATURE_PARTIAL, EXISTS("maybe"), MATCH_UNKNOWN },
        { FEATURE_PARTIAL, GONE("there"), MATCH_NO },
        { FEATURE_PARTIAL, GONE("other"), MATCH_UNKNOWN },
        { FEATURE_PARTIAL, "matchExpressions: {other: {op: NotIn, value: [a]}}", MATCH_UNKNOWN },
        { FEATURE_PARTIAL, "matchExpressions: {other: {op: Gt, value: ['1']}}", MATCH_UNKNOWN },
        { FEATURE_PARTIAL, "matchExpressions: {other: {op: Gt}}", MATCH_ERROR },
        { FEATURE_PARTIAL, "matchExpressions: {other: {}}", MATCH_YES },
        { FEATURE_PARTIAL, "matchName: {op: In, value: [there]}", MATCH_YES },
        { FEATURE_PARTIAL, "matchName: {op: In, value: [other]}", MATCH_UNKNOWN },
        { FEATURE_PARTIAL, "matchName: {op: DoesNotExist}", MATCH_NO },
        { FEATURE_UNKNOWN, EXISTS("there"), MATCH_UNKNOWN },
        { FEATURE_UNKNOWN, "", MATCH_UNKNOWN },
    };
    WORLD w;
    world_init(&w);

    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        FEATURE_DRAFT draft = { 0 };
        feature_draft_flag(&draft, STR("f"), STR("there"));
        feature_draft_unsure(&draft, STR("f"), STR("maybe"));
        feature_draft_absent(&draft, STR("f"), STR("gone"));
        feature_draft_completeness(&draft, STR("f"), cases[i].completeness);
        EXPECT_EQ(world_match(world_term(&w, cases[i].term), world_make(&w, &draft)),
                  cases[i].want);
    }
}

TEST(predicted_devices_may_have_company)
{
    WORLD w;
    world_init(&w);
    struct str_pair vendor = { STR("vendor"), STR("10de") };
    struct str_map gpu = { &vendor, 1 };
    FEATURE_DRAFT draft = { 0 };
    feature_draft_instance(&draft, STR("f"), &gpu);
    feature_draft_completeness(&draft, STR("f"), FEATURE_PARTIAL);
    const struct feature_set *set = world_make(&w, &draft);
    const char *const own = "matchExpressions: {vendor: {op: In, value: ['10de']}}";
    const char *const other = "matchExpressions: {vendor: {op: In, value: ['1d0f']}}";
    const char *const more = "matchExpressions: {vendor: {op: In, value: ['10de']}, class: {op: "
                             "In, value: ['0302']}}";

    EXPECT_EQ(world_match(world_term(&w, own), set), MATCH_YES);
    EXPECT_EQ(world_match(world_term(&w, other), set), MATCH_UNKNOWN);
    EXPECT_EQ(world_match(world_term(&w, more), set), MATCH_UNKNOWN);
    EXPECT_STR(world_why(&w, world_term(&w, other), set),
               "rule \"r\": f: the one instance does not have vendor \"1d0f\", but not all is "
               "known");
}

TEST(features_that_are_not_predicted_are_unknown)
{
    WORLD w;
    world_init(&w);
    FEATURE_DRAFT draft = { .others_unknown = true };
    const struct feature_set *set = world_make(&w, &draft);

    EXPECT_EQ(world_match(world_term(&w, ""), set), MATCH_UNKNOWN);
    EXPECT_STR(world_why(&w, world_term(&w, ""), set),
               "rule \"r\": f: it is not known whether the node has it");
}

/* --- threads --- */

#define CHURNS 2000

/* Make, share and drop the same few sets, so that the last reference and the next look-up meet. */
static void *churn(void *arg)
{
    static const char *const names[] = { "a", "b", "c" };
    struct feature_sets *pool = arg;
    for (int i = 0; i < CHURNS; i++) {
        FEATURE_DRAFT draft = { 0 };
        AUTO_FEATURE_SET first = NULL;
        AUTO_FEATURE_SET second = NULL;
        feature_draft_flag(&draft, STR("f"), str_of(names[i % 3]));
        KV_ASSERT(feature_set_make(pool, &draft, &first, NULL) == 0);
        KV_ASSERT(feature_set_make(pool, &draft, &second, NULL) == 0);
        KV_ASSERT(first == second);
        KV_ASSERT(feature_set_has_flag(first, feature_set_at(first, 0), str_of(names[i % 3])));
    }
    return NULL;
}

TEST(threads_share_a_pool)
{
    AUTO(feature_sets) pool = feature_sets_new();
    pthread_t threads[4];
    struct err err = { 0 };

    for (size_t i = 0; i < KV_COUNT_OF(threads); i++)
        EXPECT_OK(thread_start(&threads[i], "churn", churn, pool, &err), err);
    for (size_t i = 0; i < KV_COUNT_OF(threads); i++)
        pthread_join(threads[i], NULL);
    EXPECT_EQ(feature_sets_stats(pool).set_count, 0);
    EXPECT_EQ(feature_sets_stats(pool).bytes, 0);
}

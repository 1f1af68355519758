#include "compat/predict.h"

#include "compat/predict_testing.h"

#define NODE                                                                                       \
    "flags: {cpu.cpuid: {elements: {AVX2: {}, FOO: {}}}, kernel.loadedmodule: {elements: {ena: "   \
    "{}}}}, "                                                                                      \
    "attributes: {kernel.version: {elements: {full: '6.1', major: '6'}}, "                         \
    "kernel.config: {elements: {BPF: 'y'}}, "                                                      \
    "cpu.model: {elements: {vendor_id: Odd}}, system.osrelease: {elements: {ID: al2023}}, "        \
    "system.name: {elements: {nodename: a}}, local.label: {elements: {x: '1'}}}, "                 \
    "instances: {pci.device: {elements: [{attributes: {vendor: '10de'}}]}}"

struct bench {
    struct world w;
    struct predictor *predictor;
};
static void bench_init(struct bench *b)
{
    world_init(&b->w);
    b->predictor = predictor_new((struct predictor_options){ 0 });
}
static void bench_done(struct bench *b)
{
    predictor_free(b->predictor);
    world_done(&b->w);
}
#define BENCH __attribute__((cleanup(bench_done))) struct bench

TEST(pair_that_was_seen_is_predicted_completely_and_from_nothing_else)
{
    BENCH b;
    bench_init(&b);
    struct machine_kind m = kind_of("m5.large", "amd64", "ami-1");
    world_learn(&b.w, b.predictor, &m, NODE);
    const struct feature_set *set = world_predict(&b.w, b.predictor, &m);

    EXPECT_FALSE(feature_set_others_unknown(set));
    EXPECT_EQ(world_has(&b.w, set, "cpu.cpuid", "FOO"), 'y');
    EXPECT_EQ(world_has(&b.w, set, "cpu.cpuid", "AVX512F"), 'n'); /* whatever the table says */
    EXPECT_EQ(world_equals(&b.w, set, "cpu.model", "vendor_id", "Odd"), MATCH_YES);
    EXPECT_EQ(world_has(&b.w, set, "kernel.loadedmodule", "nvme"), 'n');
    EXPECT_EQ(world_equals(&b.w, set, "kernel.config", "BPF", "y"), MATCH_YES);
    EXPECT_EQ(world_equals(&b.w, set, "local.label", "x", "1"), MATCH_YES);
    EXPECT_EQ(world_equals(&b.w, set, "pci.device", "vendor", "1d0f"), MATCH_NO);
    EXPECT_EQ(world_has(&b.w, set, "usb.device", "vendor"), 'n'); /* nor had it such a feature */
    EXPECT_EQ(world_has(&b.w, set, "system.name", "nodename"), '?');
}

TEST(another_image_of_a_type_has_the_same_hardware)
{
    BENCH b;
    bench_init(&b);
    struct machine_kind m = kind_of("m5.large", "amd64", "ami-1");
    world_learn(&b.w, b.predictor, &m, NODE);
    m.image = STR("ami-2");
    const struct feature_set *set = world_predict(&b.w, b.predictor, &m);

    EXPECT_EQ(world_has(&b.w, set, "cpu.cpuid", "FOO"), 'y');
    EXPECT_EQ(world_has(&b.w, set, "cpu.cpuid", "AVX512F"), 'n');
    EXPECT_EQ(world_equals(&b.w, set, "pci.device", "vendor", "1d0f"), MATCH_NO);
    EXPECT_EQ(world_has(&b.w, set, "kernel.version", "full"), '?');
    EXPECT_EQ(world_has(&b.w, set, "local.label", "x"), '?');
    m.image = STR("");
    EXPECT_TRUE(world_predict(&b.w, b.predictor, &m) == set);
    /* The node had no topology: the table's word is not taken against it. */
    EXPECT_EQ(world_has(&b.w, set, "cpu.topology", "hardware_multithreading"), '?');
}

TEST(another_type_with_an_image_has_the_same_system)
{
    BENCH b;
    bench_init(&b);
    struct machine_kind m = kind_of("m5.large", "amd64", "ami-1");
    world_learn(&b.w, b.predictor, &m, NODE);
    m.instance_type = STR("m7i.large");
    const struct feature_set *set = world_predict(&b.w, b.predictor, &m);

    EXPECT_EQ(world_equals(&b.w, set, "kernel.version", "full", "6.1"), MATCH_YES);
    EXPECT_EQ(world_has(&b.w, set, "kernel.config", "OTHER"), 'n');
    EXPECT_EQ(world_equals(&b.w, set, "system.osrelease", "ID", "al2023"), MATCH_YES);
    EXPECT_EQ(world_has(&b.w, set, "kernel.loadedmodule", "ena"), '?'); /* other hardware */
    EXPECT_EQ(world_has(&b.w, set, "cpu.cpuid", "FOO"), '?');
    EXPECT_EQ(world_has(&b.w, set, "cpu.cpuid", "AMXTILE"), 'y'); /* of the table */
    EXPECT_EQ(world_has(&b.w, set, "local.label", "x"), '?');
}

TEST(several_images_of_a_type_must_agree)
{
    BENCH b;
    bench_init(&b);
    struct machine_kind m = kind_of("m5.large", "amd64", "ami-1");
    world_learn(&b.w, b.predictor, &m, "flags: {cpu.cpuid: {elements: {A: {}, B: {}}}}");
    m.image = STR("ami-2");
    world_learn(&b.w, b.predictor, &m, "flags: {cpu.cpuid: {elements: {A: {}}}}");
    EXPECT_EQ(world_has(&b.w, world_predict(&b.w, b.predictor, &m), "cpu.cpuid", "B"), 'n');
    m.image = STR("ami-3");
    EXPECT_EQ(world_has(&b.w, world_predict(&b.w, b.predictor, &m), "cpu.cpuid", "A"), 'y');
    EXPECT_EQ(world_has(&b.w, world_predict(&b.w, b.predictor, &m), "cpu.cpuid", "B"), '?');
}

/* Of a machine without a type or an image nothing must be taken for another such one. */
TEST(machines_without_names_share_nothing)
{
    BENCH b;
    bench_init(&b);
    struct machine_kind none = kind_of("", "amd64", "");
    world_learn(&b.w, b.predictor, &none, NODE);
    EXPECT_EQ(predictor_generation(b.predictor), 0);
    struct machine_kind typed = kind_of("m5.large", "amd64", "");
    world_learn(&b.w, b.predictor, &typed, NODE);
    EXPECT_EQ(world_has(&b.w, world_predict(&b.w, b.predictor, &typed), "kernel.version", "full"),
              '?');
    struct predictor_stats stats = predictor_stats(b.predictor);
    EXPECT_EQ(stats.pairs, 0);
    EXPECT_EQ(stats.types, 1);
    EXPECT_EQ(stats.images, 0);
}

TEST(declared_features_fill_the_gaps_of_the_tables_only)
{
    BENCH b;
    bench_init(&b);
    struct machine_kind m = kind_of("m5.large", "amd64", "");
    m.maybe_declared =
        &world_object(&b.w, "nfd", "declared",
                      "flags: {cpu.cpuid: {elements: {AVX512VNNI: {}, AMXTILE: {}, MINE: {}}}}, "
                      "attributes: {cpu.model: {elements: {vendor_id: Mine, own: '1'}}, "
                      "kernel.config: {elements: {BPF: 'y'}}, local.x: {elements: {a: b}}}, "
                      "instances: {pci.device: {elements: [{attributes: {vendor: abcd}}]}}")
             ->spec.features;
    const struct feature_set *set = world_predict(&b.w, b.predictor, &m);

    EXPECT_EQ(world_has(&b.w, set, "cpu.cpuid", "AVX512VNNI"), 'y'); /* the table was unsure */
    EXPECT_EQ(world_has(&b.w, set, "cpu.cpuid", "AMXTILE"), 'n');    /* the table knows */
    EXPECT_EQ(world_has(&b.w, set, "cpu.cpuid", "MINE"), 'y');
    EXPECT_EQ(world_equals(&b.w, set, "cpu.model", "vendor_id", "Intel"), MATCH_YES);
    EXPECT_EQ(world_equals(&b.w, set, "cpu.model", "own", "1"), MATCH_YES);
    EXPECT_EQ(world_equals(&b.w, set, "kernel.config", "BPF", "y"), MATCH_YES);
    EXPECT_EQ(world_has(&b.w, set, "kernel.config", "OTHER"), '?');
    EXPECT_EQ(world_equals(&b.w, set, "pci.device", "vendor", "abcd"), MATCH_YES);
    EXPECT_EQ(world_equals(&b.w, set, "pci.device", "vendor", "1d0f"), MATCH_YES);

    world_learn(&b.w, b.predictor, &m, NODE);
    set = world_predict(&b.w, b.predictor, &m);
    EXPECT_EQ(world_has(&b.w, set, "cpu.cpuid", "MINE"), 'n'); /* seen otherwise */
    EXPECT_EQ(world_equals(&b.w, set, "local.x", "a", "b"), MATCH_YES);
}

TEST(predictions_go_through_the_mask)
{
    BENCH b;
    bench_init(&b);
    struct machine_kind m = kind_of("m5.large", "amd64", "ami-1");
    world_learn(&b.w, b.predictor, &m, NODE);
    FEATURE_MASK mask = { 0 };
    feature_mask_add(
        &mask, (struct feature_mention){ STR("kernel.version"), STR("full"), MENTIONED_ELEMENT });
    feature_mask_settle(&mask);
    FEATURE_DRAFT draft = { .maybe_mask = &mask };
    size_t before = b.w.arena.used_bytes;
    predictor_draft(b.predictor, &m, &b.w.arena, &draft);
    EXPECT_TRUE(b.w.arena.used_bytes - before < 200); /* nothing else was copied */
    const struct feature_set *set = world_make(&b.w, &draft);
    EXPECT_EQ(feature_set_count(set), 1);
    EXPECT_EQ(world_equals(&b.w, set, "kernel.version", "full", "6.1"), MATCH_YES);
}

TEST(generation_goes_up_only_when_predictions_may_change)
{
    BENCH b;
    bench_init(&b);
    struct machine_kind m = kind_of("m5.large", "amd64", "ami-1");
    world_learn(&b.w, b.predictor, &m, NODE);
    uint64_t first = predictor_generation(b.predictor);
    EXPECT_TRUE(first > 0);
    world_learn(&b.w, b.predictor, &m, NODE);
    world_predict(&b.w, b.predictor, &m);
    EXPECT_EQ(predictor_generation(b.predictor), first);
    world_learn(&b.w, b.predictor, &m, "flags: {cpu.cpuid: {elements: {AVX2: {}}}}");
    uint64_t second = predictor_generation(b.predictor);
    EXPECT_TRUE(second > first);
    world_learn(&b.w, b.predictor, &m, "flags: {cpu.cpuid: {elements: {AVX2: {}}}}");
    world_learn(&b.w, b.predictor, &m, NODE); /* what varied is known to */
    EXPECT_EQ(predictor_generation(b.predictor), second);
}

/* --- mistakes --- */

static uint32_t series(struct metrics *metrics, const char *text)
{
    AUTO_BUF out = { 0 };
    metrics_write(metrics, &out);
    uint32_t count = 0;
    for (const char *at = out.p; at && (at = strstr(at, text)); at++)
        count++;
    return count;
}

TEST(wrong_predictions_are_counted_once_and_not_repeated)
{
    static const struct clock *clock;
    WORLD w;
    world_init(&w);
    clock = clock_real();
    AUTO(metrics) metrics = metrics_new(clock);
    AUTO(predictor) p = predictor_new((struct predictor_options){ .maybe_metrics = metrics });
    struct machine_kind m = kind_of("m7i.large", "amd64", "");
    const char *const without = "flags: {cpu.cpuid: {elements: {AVX2: {}, SSE: {}}}}";

    world_learn(&w, p, &m, without);
    EXPECT_EQ(series(metrics, "karve_feature_prediction_mismatch_total{instance_type=\"m7i.large\","
                              "feature=\"cpu.cpuid\"} 1\n"),
              1);
    uint64_t mistakes = predictor_stats(p).mismatches;
    EXPECT_EQ(mistakes, 4); /* model, topology and devices were missing, too */
    EXPECT_EQ(world_has(&w, world_predict(&w, p, &m), "cpu.cpuid", "AMXTILE"), 'n');
    for (int i = 0; i < 3; i++)
        world_learn(&w, p, &m, without);
    EXPECT_EQ(predictor_stats(p).mismatches, mistakes);
}

TEST(every_way_to_contradict_a_certain_prediction_counts)
{
    static const struct {
        const char *first, *second;
        uint32_t mistakes;
    } cases[] = {
        { "flags: {cpu.a: {elements: {x: {}}}}", "flags: {cpu.a: {elements: {x: {}}}}", 0 },
        { "flags: {cpu.a: {elements: {x: {}}}}", "flags: {cpu.a: {elements: {}}}", 1 },
        { "flags: {cpu.a: {elements: {}}}", "flags: {cpu.a: {elements: {x: {}}}}", 1 },
        { "attributes: {cpu.a: {elements: {x: '1'}}}", "attributes: {cpu.a: {elements: {x: '2'}}}",
          1 },
        { "attributes: {cpu.a: {elements: {x: '1'}}}", "attributes: {cpu.a: {elements: {y: '1'}}}",
          1 },
        { "flags: {cpu.a: {elements: {x: {}}}}", "flags: {cpu.b: {elements: {x: {}}}}", 2 },
        { "instances: {cpu.a: {elements: [{attributes: {x: '1'}}]}}",
          "instances: {cpu.a: {elements: [{attributes: {x: '1'}}, {attributes: {x: '2'}}]}}", 1 },
        { "instances: {cpu.a: {elements: [{attributes: {x: '1'}}, {attributes: {x: '2'}}]}}",
          "instances: {cpu.a: {elements: [{attributes: {x: '1'}}]}}", 1 },
        { "attributes: {system.name: {elements: {nodename: a}}}",
          "attributes: {system.name: {elements: {nodename: b}}}", 0 },
        { "attributes: {system.dmiid: {elements: {product_serial: a}}}",
          "attributes: {system.dmiid: {elements: {product_serial: b}}}", 0 },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        BENCH b;
        bench_init(&b);
        struct machine_kind m = kind_of("some-type", "", "ami-1");
        world_learn(&b.w, b.predictor, &m, cases[i].first);
        EXPECT_EQ(predictor_stats(b.predictor).mismatches, 0);
        world_learn(&b.w, b.predictor, &m, cases[i].second);
        EXPECT_EQ(predictor_stats(b.predictor).mismatches, cases[i].mistakes);
        world_learn(&b.w, b.predictor, &m, cases[i].first);
        world_learn(&b.w, b.predictor, &m, cases[i].second);
        EXPECT_EQ(predictor_stats(b.predictor).mismatches, cases[i].mistakes);
    }
}

/* --- limits --- */

TEST(least_used_profiles_are_forgotten)
{
    WORLD w;
    world_init(&w);
    AUTO(predictor) p = predictor_new((struct predictor_options){ .profiles_max = 2 });
    struct machine_kind a = kind_of("type-a", "", "ami-1"), b = kind_of("type-b", "", "ami-1"),
                        c = kind_of("type-c", "", "ami-1");
    world_learn(&w, p, &a, "flags: {cpu.a: {elements: {x: {}}}}");
    world_learn(&w, p, &b, "flags: {cpu.a: {elements: {x: {}}}}");
    world_predict(&w, p, &a); /* used */
    uint64_t before = predictor_generation(p);
    world_learn(&w, p, &c, "flags: {cpu.a: {elements: {x: {}}}}");

    EXPECT_TRUE(predictor_generation(p) > before);
    EXPECT_EQ(predictor_stats(p).pairs, 2);
    EXPECT_EQ(predictor_stats(p).types, 2);
    EXPECT_FALSE(feature_set_others_unknown(world_predict(&w, p, &a)));
    EXPECT_TRUE(feature_set_others_unknown(world_predict(&w, p, &b)));
    EXPECT_FALSE(feature_set_others_unknown(world_predict(&w, p, &c)));
}

TEST(what_profiles_have_in_common_is_kept_once)
{
    BENCH b;
    bench_init(&b);
    AUTO_BUF features = { 0 };
    buf_addz(&features, "attributes: {kernel.config: {elements: {");
    for (int i = 0; i < 2000; i++)
        buf_addf(&features, "%sOPTION_%d: 'y'", i ? ", " : "", i);
    buf_addz(&features, "}}}");
    size_t first = 0;
    for (int i = 0; i < 50; i++) {
        struct machine_kind m = kind_of("", "", "ami-1");
        m.instance_type = arena_strf(&b.w.arena, "type-%d", i);
        world_learn(&b.w, b.predictor, &m, features.p);
        first = first ? first : predictor_stats(b.predictor).bytes;
    }
    EXPECT_EQ(predictor_stats(b.predictor).pairs, 50);
    EXPECT_EQ(predictor_stats(b.predictor).bytes, first);
}

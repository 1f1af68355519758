/* What is learned, in whatever order. */
#include "base/rng.h"
#include "base/vec.h"
#include "compat/predict_testing.h"

static const struct machine_kind machine = { .instance_type = { "some-type", 9 },
                                             .image = { "ami-1", 5 } };

static const struct feature_set *learned(struct world *w, struct predictor *p)
{
    return world_predict(w, p, &machine);
}

TEST(flags_that_all_nodes_had_are_known_and_others_unsure)
{
    WORLD w;
    world_init(&w);
    AUTO(predictor) p = predictor_new((struct predictor_options){ 0 });
    world_learn(&w, p, &machine, "flags: {cpu.cpuid: {elements: {A: {}, B: {}}}}");
    world_learn(&w, p, &machine, "flags: {cpu.cpuid: {elements: {A: {}, C: {}}}}");
    const struct feature_set *set = learned(&w, p);
    EXPECT_EQ(world_has(&w, set, "cpu.cpuid", "A"), 'y');
    EXPECT_EQ(world_has(&w, set, "cpu.cpuid", "B"), '?');
    EXPECT_EQ(world_has(&w, set, "cpu.cpuid", "C"), '?');
    EXPECT_EQ(world_has(&w, set, "cpu.cpuid", "D"), 'n');
}

TEST(attributes_whose_values_differ_are_unsure)
{
    WORLD w;
    world_init(&w);
    AUTO(predictor) p = predictor_new((struct predictor_options){ 0 });
    world_learn(&w, p, &machine, "attributes: {kernel.x: {elements: {a: '1', b: '1', c: '1'}}}");
    world_learn(&w, p, &machine, "attributes: {kernel.x: {elements: {a: '1', b: '2'}}}");
    const struct feature_set *set = learned(&w, p);
    EXPECT_EQ(world_equals(&w, set, "kernel.x", "a", "1"), MATCH_YES);
    EXPECT_EQ(world_equals(&w, set, "kernel.x", "b", "1"), MATCH_UNKNOWN);
    EXPECT_EQ(world_equals(&w, set, "kernel.x", "c", "1"), MATCH_UNKNOWN);
    EXPECT_EQ(world_equals(&w, set, "kernel.x", "d", "1"), MATCH_NO);
}

TEST(all_elements_may_vary_and_the_feature_is_there_still)
{
    WORLD w;
    world_init(&w);
    AUTO(predictor) p = predictor_new((struct predictor_options){ 0 });
    world_learn(&w, p, &machine, "flags: {cpu.x: {elements: {A: {}}}}");
    world_learn(&w, p, &machine, "flags: {cpu.x: {elements: {}}}");
    const struct feature_set *set = learned(&w, p);
    EXPECT_EQ(world_ask(&w, set, "cpu.x", "B: {op: DoesNotExist}"), MATCH_YES);
    EXPECT_EQ(world_has(&w, set, "cpu.x", "A"), '?');
}

TEST(instances_that_vary_make_the_feature_partial)
{
    WORLD w;
    world_init(&w);
    AUTO(predictor) p = predictor_new((struct predictor_options){ 0 });
    world_learn(&w, p, &machine,
                "flags: {cpu.a: {elements: {}}}, instances: {pci.device: {elements: [{attributes: "
                "{vendor: a}}, {attributes: {vendor: b}}]}}");
    const struct feature_set *set = learned(&w, p);
    EXPECT_EQ(world_equals(&w, set, "pci.device", "vendor", "c"), MATCH_NO);
    world_learn(&w, p, &machine,
                "flags: {cpu.a: {elements: {}}}, instances: {pci.device: {elements: [{attributes: "
                "{vendor: a}}]}}");
    set = learned(&w, p);
    EXPECT_EQ(world_equals(&w, set, "pci.device", "vendor", "a"), MATCH_YES);
    EXPECT_EQ(world_equals(&w, set, "pci.device", "vendor", "b"), MATCH_UNKNOWN);
    EXPECT_EQ(world_equals(&w, set, "pci.device", "vendor", "c"), MATCH_UNKNOWN);
}

TEST(attributes_of_instances_are_kept_whatever_their_names)
{
    WORLD w;
    world_init(&w);
    AUTO(predictor) p = predictor_new((struct predictor_options){ 0 });
    world_learn(&w, p, &machine,
                "instances: {cpu.x: {elements: [{attributes: {'': empty, a: b}}]}}");
    const struct feature_set *set = learned(&w, p);
    EXPECT_EQ(world_ask(&w, set, "cpu.x", "'': {op: In, value: [empty]}"), MATCH_YES);
}

TEST(features_that_only_some_nodes_have_are_unknown)
{
    WORLD w;
    world_init(&w);
    AUTO(predictor) p = predictor_new((struct predictor_options){ 0 });
    world_learn(
        &w, p, &machine,
        "flags: {cpu.a: {elements: {}}, vendor.x: {elements: {A: {}}}, form: {elements: {A: "
        "{}}}}");
    world_learn(&w, p, &machine,
                "flags: {cpu.a: {elements: {}}}, instances: {form: {elements: []}}");
    const struct feature_set *set = learned(&w, p);
    EXPECT_EQ(world_has(&w, set, "vendor.x", "A"), '?');
    EXPECT_EQ(world_has(&w, set, "form", "A"), '?'); /* it is, but in another form */
}

TEST(what_is_a_node_s_own_is_not_learned_even_from_the_first)
{
    WORLD w;
    world_init(&w);
    AUTO(predictor) p = predictor_new((struct predictor_options){ 0 });
    world_learn(&w, p, &machine,
                "attributes: {system.name: {elements: {nodename: a}}, system.dmiid: {elements: "
                "{product_name: m5.large, product_serial: ec2-1, board_asset_tag: i-1}}}, "
                "instances: {usb.device: {elements: [{attributes: {vendor: '1', serial: '2'}}]}, "
                "network.virtual: {elements: [{attributes: {name: veth1}}]}, "
                "storage.block: {elements: [{attributes: {name: nvme0n1}}]}}");
    const struct feature_set *set = learned(&w, p);
    EXPECT_EQ(world_has(&w, set, "system.name", "nodename"), '?');
    EXPECT_EQ(world_equals(&w, set, "system.dmiid", "product_name", "m5.large"), MATCH_YES);
    EXPECT_EQ(world_has(&w, set, "system.dmiid", "product_serial"), '?');
    EXPECT_EQ(world_has(&w, set, "system.dmiid", "board_asset_tag"), '?');
    EXPECT_EQ(world_equals(&w, set, "usb.device", "vendor", "1"), MATCH_YES);
    EXPECT_EQ(world_equals(&w, set, "usb.device", "serial", "2"), MATCH_UNKNOWN);
    EXPECT_EQ(world_equals(&w, set, "network.virtual", "name", "veth1"), MATCH_UNKNOWN);
    EXPECT_EQ(world_equals(&w, set, "storage.block", "name", "nvme0n1"), MATCH_YES);
    EXPECT_EQ(world_equals(&w, set, "storage.block", "name", "nvme1n1"), MATCH_UNKNOWN);
}

/* Somebody else's object may be there before nfd-worker's. */
TEST(nodes_that_nfd_worker_has_not_described_teach_nothing)
{
    WORLD w;
    world_init(&w);
    AUTO(predictor) p = predictor_new((struct predictor_options){ 0 });
    world_learn(&w, p, &machine, "flags: {vendor.x: {elements: {A: {}}}}");
    world_learn(&w, p, &machine, "");
    EXPECT_EQ(predictor_generation(p), 0);
}

/* Each feature is observed by the hash of what is said of it: what differs in one feature alone must be seen. */
TEST(nodes_that_differ_in_one_place_are_not_taken_for_each_other)
{
    static const char *const places[] = {
        "flags: {cpu.cpuid: {elements: {AVX2: {}, SHA: {}}}}",
        "flags: {cpu.cpuid: {elements: {AVX2: {}, SVE: {}}}}",
        "attributes: {cpu.model: {elements: {id: '1', family: '23'}}}",
        "attributes: {cpu.model: {elements: {id: '12', family: '3'}}}",
        "attributes: {kernel.config: {elements: {A: 'y', B: ''}}}",
        "attributes: {kernel.config: {elements: {A: 'y', B: 'm'}}}",
        "attributes: {kernel.config: {elements: {A: 'y'}}}",
        "attributes: {system.dmiid: {elements: {sys_vendor: a}}}",
        "attributes: {system.dmiid: {elements: {sys_vendor: b}}}",
        "flags: {cpu.x: {elements: {}}}, instances: {pci.device: {elements: [{attributes: {class: "
        "'1', vendor: '2'}}]}}",
        "flags: {cpu.x: {elements: {}}}, instances: {pci.device: {elements: [{attributes: {class: "
        "'1'}}, {attributes: {vendor: '2'}}]}}",
        "flags: {cpu.x: {elements: {}}, pci.device: {elements: {class: {}}}}",
    };
    for (size_t a = 0; a < KV_COUNT_OF(places); a++) {
        for (size_t b = 0; b < KV_COUNT_OF(places); b++) {
            WORLD w;
            world_init(&w);
            AUTO(predictor) both = predictor_new((struct predictor_options){ 0 });
            AUTO(predictor) fresh = predictor_new((struct predictor_options){ 0 });
            struct machine_kind one = kind_of("one", "amd64", "ami-1");
            struct machine_kind two = kind_of("two", "amd64", "ami-2");
            world_learn(&w, both, &one, places[a]);
            world_learn(&w, both, &two, places[b]);
            world_learn(&w, fresh, &two, places[b]);
            EXPECT_TRUE(world_predict(&w, both, &two) == world_predict(&w, fresh, &two));
        }
    }
}

TEST(objects_of_one_node_are_learned_as_one)
{
    WORLD w;
    world_init(&w);
    AUTO(predictor) p = predictor_new((struct predictor_options){ 0 });
    const struct node_feature *objects[] = {
        world_object(&w, "other", "node1-x", "attributes: {kernel.x: {elements: {a: theirs}}}"),
        world_object(&w, "nfd", "node1", "attributes: {kernel.x: {elements: {a: ours, b: ours}}}"),
    };
    predictor_learn_node(p, &machine, objects, 2, STR("nfd"));
    const struct feature_set *set = learned(&w, p);
    EXPECT_EQ(world_equals(&w, set, "kernel.x", "a", "theirs"), MATCH_YES);
    EXPECT_EQ(world_equals(&w, set, "kernel.x", "b", "ours"), MATCH_YES);
}

/* --- at random --- */

enum { NODES = 4, ROUNDS = 300 };

static void random_node(struct rng *rng, struct buf *out)
{
    static const char *const names[] = { "cpu.a", "kernel.b" };
    buf_addz(out, "flags: {system.x: {elements: {}}");
    for (size_t i = 0; i < KV_COUNT_OF(names); i++) {
        if (rng_below(rng, 8) == 0)
            continue;
        buf_addf(out, ", %s: {elements: {ALL: {}", names[i]);
        for (int k = 0; k < 3; k++) {
            if (rng_below(rng, 4))
                buf_addf(out, ", F%d: {}", k);
        }
        buf_addz(out, "}}");
    }
    buf_addz(out, "}, attributes: {cpu.a: {elements: {");
    for (int k = 0; k < 3; k++)
        buf_addf(out, "%sv%d: '%d'", k ? ", " : "", k, (int)rng_below(rng, 4) / 3);
    buf_addz(out, "}}}, instances: {pci.device: {elements: [");
    for (int k = 0; k < 3; k++)
        buf_addf(out, "%s{attributes: {vendor: '%d'}}", k ? ", " : "", (int)rng_below(rng, 4) / 2);
    buf_addz(out, "]}}");
}

TEST(order_and_number_of_nodes_seen_make_no_difference)
{
    struct rng rng;
    rng_init(&rng, 20261116);
    print_message("# seed 20261116\n");
    for (int round = 0; round < ROUNDS; round++) {
        WORLD w;
        world_init(&w);
        AUTO(predictor) forward = predictor_new((struct predictor_options){ 0 });
        AUTO(predictor) backward = predictor_new((struct predictor_options){ 0 });
        const struct features *nodes[NODES];
        for (int i = 0; i < NODES; i++) {
            AUTO_BUF text = { 0 };
            random_node(&rng, &text);
            nodes[i] = &world_object(&w, "nfd", "node1", text.p)->spec.features;
            predictor_learn(forward, &machine, nodes[i]);
        }
        for (int i = NODES; i-- > 0;) {
            predictor_learn(backward, &machine, nodes[i]);
            predictor_learn(backward, &machine, nodes[i]);
        }
        EXPECT_TRUE(learned(&w, forward) == learned(&w, backward));

        /* None of them can be a surprise again. */
        uint64_t mistakes = predictor_stats(forward).mismatches;
        uint64_t generation = predictor_generation(forward);
        for (int i = 0; i < NODES; i++)
            predictor_learn(forward, &machine, nodes[i]);
        EXPECT_EQ(predictor_stats(forward).mismatches, mistakes);
        EXPECT_EQ(predictor_generation(forward), generation);
    }
}

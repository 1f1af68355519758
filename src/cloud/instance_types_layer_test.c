#include "cloud/instance_types_testing.h"

#include "base/rng.h"

#include <stdio.h>

static const struct instance_types_options plain = { 0 };

static const struct instance_types *priced(const struct instance_types *base,
                                           const struct price_edit *edits, uint32_t count)
{
    const struct instance_types *s = instance_types_layer(base, edits, count, NULL, 0, plain);
    EXPECT_TRUE(instance_types_verify(s));
    return s;
}

static const struct instance_types *recapacitied(const struct instance_types *base,
                                                 const struct capacity_edit *edits, uint32_t count)
{
    const struct instance_types *s = instance_types_layer(base, NULL, 0, edits, count, plain);
    EXPECT_TRUE(instance_types_verify(s));
    return s;
}

/* Three types: "a" with offerings 0 and 1, "b" with 2 and 3, "c" with 4. */
static const struct instance_types *three(struct draft_list *d)
{
    static const char *const offerings[] = { "z1/spot=1 z2/spot=2", "z1/spot=3 z2/spot=4!",
                                             "z1/spot=5" };
    static const char *const names[] = { "a", "b", "c" };
    for (int i = 0; i < 3; i++) {
        struct instance_type_draft *t = draft_type(d, names[i], "", offerings[i]);
        t->capacity = draft_resources(&d->arena, "cpu=4 memory=8Gi");
        t->overhead = draft_resources(&d->arena, "cpu=1 memory=1Gi");
    }
    return drafts_build(d);
}

TEST(a_layer_replaces_prices_and_shares_everything_else)
{
    DRAFTS d = { 0 };
    AUTO_INSTANCE_TYPES base = three(&d);
    const struct price_edit edits[] = { { 2, USD_HOUR_ONE / 2 }, { 3, 7 * USD_HOUR_ONE } };
    AUTO_INSTANCE_TYPES s = priced(base, edits, 2);
    EXPECT_TRUE(s != base);
    EXPECT_TRUE(s->base == base);
    EXPECT_EQ(instance_types_price(s, 2), USD_HOUR_ONE / 2);
    EXPECT_EQ(instance_types_price(s, 3), 7 * USD_HOUR_ONE);
    EXPECT_EQ(instance_types_price(base, 2), 3 * USD_HOUR_ONE);
    EXPECT_TRUE(s->prices[0] == base->prices[0]);
    EXPECT_TRUE(s->prices[1] != base->prices[1]);
    EXPECT_TRUE(s->prices[2] == base->prices[2]);
    EXPECT_TRUE(s->names == base->names);
    EXPECT_TRUE(s->labels == base->labels);
    EXPECT_TRUE(s->shapes == base->shapes);
    EXPECT_TRUE(s->resources == base->resources);
    EXPECT_FALSE(bitset_test(&s->priced, 1));
    EXPECT_TRUE(bitset_test(&s->priced, 2));
    EXPECT_TRUE(bitset_test(&s->priced, 3));
    EXPECT_FALSE(bitset_any(&s->recapacitied));
    /* The order follows. */
    EXPECT_EQ(s->price_cheapest[1], USD_HOUR_ONE / 2);
    EXPECT_EQ(s->price_order[0], 1);
    EXPECT_EQ(s->price_order[1], 0);
    EXPECT_EQ(s->price_order[2], 2);
    EXPECT_TRUE(s->checksum != base->checksum);
}

TEST(edits_that_change_nothing_are_left_out)
{
    DRAFTS d = { 0 };
    AUTO_INSTANCE_TYPES base = three(&d);
    const struct capacity_edit same[] = { { 0, STR("cpu"), 4000 }, { 1, STR("gpu"), 0 } };
    AUTO_INSTANCE_TYPES untouched = recapacitied(base, same, 2);
    EXPECT_TRUE(untouched == base);
    AUTO_INSTANCE_TYPES none = priced(base, NULL, 0);
    EXPECT_TRUE(none == base);

    const struct capacity_edit some[] = { { 0, STR("cpu"), 4000 }, { 1, STR("gpu"), 1000 } };
    AUTO_INSTANCE_TYPES s = recapacitied(base, some, 2);
    EXPECT_FALSE(bitset_test(&s->recapacitied, 0));
    EXPECT_TRUE(bitset_test(&s->recapacitied, 1));
    EXPECT_TRUE(s->prices == base->prices);
    EXPECT_TRUE(s->price_order == base->price_order);
}

TEST(a_price_that_an_overlay_left_as_it_was_still_counts_as_priced)
{
    DRAFTS d = { 0 };
    AUTO_INSTANCE_TYPES base = three(&d);
    const struct price_edit same = { 4, 5 * USD_HOUR_ONE };
    AUTO_INSTANCE_TYPES s = priced(base, &same, 1);
    EXPECT_TRUE(s != base);
    EXPECT_TRUE(bitset_test(&s->priced, 4));
    EXPECT_TRUE(s->prices == base->prices);
}

TEST(a_layer_replaces_capacity_and_what_is_left_for_pods_follows)
{
    DRAFTS d = { 0 };
    AUTO_INSTANCE_TYPES base = three(&d);
    const struct capacity_edit edits[] = { { 0, STR("cpu"), 16000 },
                                           { 1, STR("example.com/fpga"), 2000 },
                                           { 2, STR("hugepages-2Mi"), INT64_C(2000) << 30 },
                                           { 2, STR("zzz"), 1 } };
    AUTO_INSTANCE_TYPES s = recapacitied(base, edits, 4);
    EXPECT_EQ(s->resource_count, 5);
    for (uint32_t i = 1; i < s->resource_count; i++)
        EXPECT_TRUE(str_cmp(s->resources[i - 1].name, s->resources[i].name) < 0);
    const struct resource_column *cpu = instance_types_resource(s, STR("cpu"));
    EXPECT_EQ(cpu->capacity[0], 16000);
    EXPECT_EQ(cpu->allocatable[0], 15000);
    EXPECT_EQ(cpu->capacity[1], 4000);
    EXPECT_EQ(instance_types_resource(base, STR("cpu"))->capacity[0], 4000);
    const struct resource_column *fpga = instance_types_resource(s, STR("example.com/fpga"));
    EXPECT_EQ(fpga->allocatable[0], 0);
    EXPECT_EQ(fpga->allocatable[1], 2000);
    EXPECT_TRUE(instance_types_resource(base, STR("example.com/fpga")) == NULL);
    /* Huge pages are taken out of the memory of the type that has them now. */
    const struct resource_column *memory = instance_types_resource(s, STR("memory"));
    EXPECT_EQ(memory->allocatable[1], INT64_C(7000) << 30);
    EXPECT_EQ(memory->allocatable[2], INT64_C(5000) << 30);
    EXPECT_TRUE(memory->capacity == instance_types_resource(base, STR("memory"))->capacity);
    EXPECT_EQ(bitset_popcount(&s->recapacitied), 3);

    struct bitset out = bitset_new(&d.arena, 3), shapes = bitset_new(&d.arena, s->shape_count);
    struct resources request = draft_resources(&d.arena, "example.com/fpga=1");
    bitset_fill(&out);
    bitset_fill(&shapes);
    instance_types_fitting(s, &request, &shapes, &out);
    EXPECT_STR(named_types(&d.arena, s, &out), "b");
}

TEST(less_capacity_than_overhead_overdraws_the_type)
{
    DRAFTS d = { 0 };
    AUTO_INSTANCE_TYPES base = three(&d);
    const struct capacity_edit edit = { 1, STR("cpu"), 500 };
    AUTO_INSTANCE_TYPES s = recapacitied(base, &edit, 1);
    EXPECT_TRUE(bitset_test(&s->overdrawn, 1));
    EXPECT_FALSE(bitset_any(&base->overdrawn));
}

TEST(offerings_keep_the_amounts_that_are_their_own)
{
    DRAFTS d = { 0 };
    struct instance_type_draft *t = draft_type(&d, "a", "", "z1/spot=1 z2/spot=2 z3/spot=3");
    t->capacity = draft_resources(&d.arena, "cpu=4 gpu=1");
    t->overhead = draft_resources(&d.arena, "cpu=1");
    draft_offering_at(t, 1)->capacity_override = draft_resources(&d.arena, "gpu=8");
    draft_offering_at(t, 2)->overhead_override = draft_resources(&d.arena, "cpu=2");
    draft_type(&d, "b", "", "z1/spot=1");
    AUTO_INSTANCE_TYPES base = drafts_build(&d);
    uint32_t own_gpu = base->offering_row[1], own_overhead = base->offering_row[2];

    const struct price_edit edits[] = { { 0, 7 }, { 1, 8 }, { 2, 9 } };
    const struct capacity_edit capacities[] = { { 0, STR("cpu"), 6000 }, { 0, STR("gpu"), 2000 } };
    AUTO_INSTANCE_TYPES s = instance_types_layer(base, edits, 3, capacities, 2, plain);
    EXPECT_TRUE(instance_types_verify(s));
    const struct resource_column *gpu = instance_types_resource(s, STR("gpu"));
    const struct resource_column *cpu = instance_types_resource(s, STR("cpu"));
    for (uint32_t o = 0; o < 3; o++) {
        EXPECT_EQ(instance_types_price(s, o), 7 + o);
        EXPECT_EQ(s->offering_row[o], base->offering_row[o]);
    }
    EXPECT_EQ(gpu->capacity[0], 2000);
    EXPECT_EQ(gpu->capacity[own_gpu], 8000); /* re-priced, and still its own */
    EXPECT_EQ(gpu->capacity[own_overhead], 2000);
    EXPECT_EQ(cpu->capacity[own_gpu], 6000); /* of cpu it had none of its own */
    EXPECT_EQ(cpu->allocatable[own_overhead], 4000);
    EXPECT_EQ(cpu->allocatable[0], 5000);
}

TEST(a_layer_and_its_replicas_outlive_the_handle_of_their_base)
{
    DRAFTS d = { 0 };
    const struct instance_types *base = three(&d);
    const struct price_edit edit = { 0, 1 };
    const struct instance_types *s = priced(base, &edit, 1);
    const struct instance_types *replica = instance_types_replica(s);
    instance_types_unref(base);
    EXPECT_TRUE(instance_types_verify(s));
    instance_types_unref(s);
    EXPECT_TRUE(instance_types_verify(replica));
    EXPECT_EQ(instance_types_price(replica, 0), 1);
    EXPECT_STR(replica->base->names[2], "c");
    instance_types_unref(replica);
}

TEST(a_layer_weighs_what_it_changes)
{
    DRAFTS d = { 0 };
    for (uint32_t i = 0; i < 800; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%03u", i);
        struct instance_type_draft *t = draft_type(
            &d, name, "", "a/spot=1 a/on-demand=2 b/spot=1 b/on-demand=2 c/spot=1 c/on-demand=2");
        t->capacity = draft_resources(&d.arena, "cpu=4 memory=8Gi");
    }
    AUTO_INSTANCE_TYPES base = drafts_build(&d);
    struct price_edit *edits = arena_array(&d.arena, struct price_edit, 1200);
    for (uint32_t i = 0; i < 1200; i++)
        edits[i] = (struct price_edit){ i, USD_HOUR_ONE / 3 };
    AUTO_INSTANCE_TYPES one = priced(base, edits, 1);
    AUTO_INSTANCE_TYPES many = priced(base, edits, 1200);
    /* A pointer, a price and a place per type; what is edited; and up to a block's rounding. */
    size_t per_type = (size_t)800 * 20, rounding = 40 << 10;
    EXPECT_TRUE(one->bytes < per_type + rounding);
    EXPECT_TRUE(many->bytes < per_type + 1200 * sizeof(usd_hour) + rounding);
    EXPECT_TRUE(base->bytes > 4 * one->bytes);
}

TEST(a_layer_is_what_drafts_with_those_prices_would_have_given)
{
    uint64_t seed = 5;
    printf("# seed %llu\n", (unsigned long long)seed);
    struct rng rng;
    rng_init(&rng, seed);
    for (int round = 0; round < 60; round++) {
        DRAFTS d = { 0 };
        uint32_t types = 1 + (uint32_t)rng_below(&rng, 90);
        for (uint32_t i = 0; i < types; i++) {
            AUTO_BUF offerings = { 0 };
            uint64_t count = rng_below(&rng, 4);
            for (uint64_t o = 0; o < count; o++)
                buf_addf(&offerings, "%sz%u/spot=%u%s", o ? " " : "", (unsigned)o,
                         (unsigned)rng_below(&rng, 9), rng_below(&rng, 3) ? "" : "!");
            struct instance_type_draft *t =
                draft_type(&d, arena_strf(&d.arena, "t%03u", i).p, "", buf_str(&offerings).p);
            t->capacity = draft_resources(&d.arena, "cpu=4 memory=8Gi");
            t->overhead = draft_resources(&d.arena, "cpu=1");
        }
        AUTO_INSTANCE_TYPES base = drafts_build(&d);
        struct price_edit *prices = arena_array(&d.arena, struct price_edit, base->offering_count);
        struct capacity_edit *amounts = arena_array(&d.arena, struct capacity_edit, types);
        uint32_t price_count = 0, amount_count = 0;
        for (uint32_t o = 0; o < base->offering_count; o++) {
            if (rng_below(&rng, 3))
                continue;
            uint32_t t = base->offering_type[o];
            usd_hour price = (usd_hour)rng_below(&rng, 9) * USD_HOUR_ONE;
            prices[price_count++] = (struct price_edit){ o, price };
            draft_offering_at(&d.items.items[t], o - base->offering_start[t])->price = price;
        }
        for (uint32_t t = 0; t < types; t++) {
            if (rng_below(&rng, 4))
                continue;
            int64_t milli = (int64_t)rng_below(&rng, 6) * 1000;
            amounts[amount_count++] = (struct capacity_edit){ t, STR("cpu"), milli };
            d.items.items[t].capacity.items = draft_resources(&d.arena, "cpu=0 memory=8Gi").items;
            ((struct resource *)d.items.items[t].capacity.items)[0].amount =
                quantity_of_milli(milli);
        }
        AUTO_INSTANCE_TYPES s =
            instance_types_layer(base, prices, price_count, amounts, amount_count, plain);
        AUTO_INSTANCE_TYPES want = drafts_build(&d);
        EXPECT_TRUE(instance_types_verify(s));
        for (uint32_t t = 0; t < types; t++) {
            EXPECT_EQ(s->price_cheapest[t], want->price_cheapest[t]);
            EXPECT_EQ(s->price_order[t], want->price_order[t]);
        }
        for (uint32_t o = 0; o < s->offering_count; o++)
            EXPECT_EQ(instance_types_price(s, o), instance_types_price(want, o));
        for (uint32_t r = 0; r < s->row_count; r++) {
            EXPECT_EQ(s->resources[0].capacity[r], want->resources[0].capacity[r]);
            EXPECT_EQ(s->resources[0].allocatable[r], want->resources[0].allocatable[r]);
            EXPECT_EQ(bitset_test(&s->overdrawn, r), bitset_test(&want->overdrawn, r));
        }
    }
}

/* What overlays make of a pool's types. */
#include "cloud/overlay_testing.h"

static const struct instance_types_options plain;

#define ZONE_IS(zone) "{key: topology.kubernetes.io/zone, operator: In, values: [" zone "]}"
#define TYPE_IS(type) "{key: node.kubernetes.io/instance-type, operator: In, values: [" type "]}"

/* All overlays of the lab on the pool. */
static const struct instance_types *apply(struct lab *lab, const struct overlay_pool *pool)
{
    AUTO_OVERLAY_SET set = lab_set(lab);
    const struct instance_types *out = overlay_set_apply(set, pool, plain);
    vec_push(&lab->snapshots, out);
    return out;
}

static struct overlay_pool two_types(struct lab *lab)
{
    lab_init(lab);
    lab_type(lab, "big", "", "a/spot=0.2 a/on-demand=0.4 b/spot=0.3!");
    lab_type(lab, "small", "", "a/on-demand=0.1 b/on-demand=0.1");
    return lab_pool(lab, "web", "", lab_snapshot(lab));
}

TEST(where_nothing_matches_the_snapshot_itself_is_the_answer)
{
    LAB lab;
    struct overlay_pool pool = two_types(&lab);
    EXPECT_TRUE(apply(&lab, &pool) == pool.types);
    lab_overlay(&lab, "a", "{price: '1', requirements: [" TYPE_IS("huge") "]}");
    lab_overlay(&lab, "b", "{price: 'wrong', requirements: []}");
    lab_overlay(&lab, "c", "{requirements: []}");
    EXPECT_TRUE(apply(&lab, &pool) == pool.types);
}

TEST(a_price_replaces_that_of_what_it_matches_and_leaves_the_rest)
{
    LAB lab;
    struct overlay_pool pool = two_types(&lab);
    lab_overlay(&lab, "a", "{price: '0.05', requirements: [" ZONE_IS("b") "]}");
    const struct instance_types *s = apply(&lab, &pool);
    EXPECT_Z(price_in(s, "big", "b", "spot"), "0.05"); /* although it is not available now */
    EXPECT_Z(price_in(s, "small", "b", "on-demand"), "0.05");
    EXPECT_Z(price_in(s, "big", "a", "spot"), "0.2");
    EXPECT_Z(price_in(pool.types, "big", "b", "spot"), "0.3");
    EXPECT_FALSE(bitset_test(&s->available, offering_of(s, "big", "b", "spot")));
    EXPECT_TRUE(bitset_test(&s->priced, offering_of(s, "big", "b", "spot")));
    EXPECT_FALSE(bitset_test(&s->priced, offering_of(s, "big", "a", "spot")));
}

TEST(adjustments_are_exact_and_never_below_zero)
{
    static const struct {
        const char *adjustment, *expected;
    } cases[] = {
        { "+0.05", "0.15" },
        { "-0.05", "0.05" },
        { "-0.1", "0" },
        { "-7", "0" },
        { "+10%", "0.11" },
        { "-12.5%", "0.0875" },
        { "-100%", "0" },
        { "+200%", "0.3" },
        { "+33.3333333333333%", "0.1333333333333" },
        { "+0.1", "0.2" },
        { "-99.9%", "0.0001" },
        { "+99999999999999999999%", "922337.2036854775807" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        LAB lab;
        struct overlay_pool pool = two_types(&lab);
        char spec[200];
        snprintf(spec, sizeof spec, "{priceAdjustment: '%s', requirements: [" TYPE_IS("small") "]}",
                 cases[i].adjustment);
        lab_overlay(&lab, "a", spec);
        EXPECT_Z(price_in(apply(&lab, &pool), "small", "a", "on-demand"), cases[i].expected);
    }
}

TEST(the_heaviest_overlay_of_an_offering_prices_it_from_the_providers_price)
{
    LAB lab;
    struct overlay_pool pool = two_types(&lab);
    lab_overlay(&lab, "light", "{weight: 1, priceAdjustment: '+1', requirements: []}");
    lab_overlay(&lab, "heavy",
                "{weight: 2, priceAdjustment: '+2', requirements: [" ZONE_IS("b") "]}");
    const struct instance_types *s = apply(&lab, &pool);
    EXPECT_Z(price_in(s, "small", "b", "on-demand"), "2.1");
    EXPECT_Z(price_in(s, "small", "a", "on-demand"), "1.1");
}

TEST(capacity_is_of_the_whole_type_although_one_offering_matched)
{
    LAB lab;
    struct overlay_pool pool = two_types(&lab);
    lab_overlay(
        &lab, "a",
        "{capacity: {example.com/fpga: 2}, requirements: [" ZONE_IS("b") ", " TYPE_IS("big") "]}");
    const struct instance_types *s = apply(&lab, &pool);
    EXPECT_EQ(capacity_in(s, "big", "example.com/fpga"), 2000);
    EXPECT_EQ(capacity_in(s, "small", "example.com/fpga"), 0);
    EXPECT_EQ(capacity_in(s, "big", "cpu"), 4000);
    uint32_t big = instance_types_find(s, STR("big"));
    EXPECT_EQ(instance_types_resource(s, STR("example.com/fpga"))->allocatable[big], 2000);
    for (uint32_t o = s->offering_start[big]; o < s->offering_start[big + 1]; o++)
        EXPECT_EQ(s->offering_row[o], big);
}

TEST(capacity_is_merged_by_resource_and_the_heaviest_wins_each)
{
    LAB lab;
    struct overlay_pool pool = two_types(&lab);
    lab_overlay(&lab, "light", "{weight: 1, capacity: {x: 1, w: 1500m}, requirements: []}");
    lab_overlay(&lab, "heavy",
                "{weight: 2, capacity: {x: 7, z: 0}, requirements: [" TYPE_IS("big") "]}");
    const struct instance_types *s = apply(&lab, &pool);
    EXPECT_EQ(capacity_in(s, "big", "x"), 7000);
    EXPECT_EQ(capacity_in(s, "big", "w"), 1500);
    EXPECT_EQ(capacity_in(s, "small", "x"), 1000);
    EXPECT_TRUE(s->prices == pool.types->prices); /* nothing was priced */
}

TEST(overlays_that_clash_since_the_evaluation_apply_in_order)
{
    LAB lab;
    struct overlay_pool pool = two_types(&lab);
    lab_overlay(&lab, "a", "{price: '1', capacity: {x: 1}, requirements: []}");
    lab_overlay(&lab, "b", "{price: '2', capacity: {x: 2}, requirements: []}");
    const struct instance_types *s = apply(&lab, &pool);
    EXPECT_Z(price_in(s, "big", "a", "spot"), "2");
    EXPECT_EQ(capacity_in(s, "big", "x"), 2000);
}

/* --- defects of other engines that are not here --- */

TEST(quirk_lost_overrides_a_repriced_offering_keeps_its_own_resources)
{
    LAB lab;
    lab_init(&lab);
    struct offering_draft *offered = lab_type(&lab, "t", "", "a/spot=0.2 b/spot=0.3");
    const struct resource memory[] = { { STR("memory"), quantity_of(6) } };
    const struct resource overhead[] = { { STR("cpu"), quantity_of(1) } };
    offered[1].capacity_override = (struct resources){ memory, 1 };
    offered[1].overhead_override = (struct resources){ overhead, 1 };
    struct overlay_pool pool = lab_pool(&lab, "web", "", lab_snapshot(&lab));
    lab_overlay(&lab, "a", "{price: '1', capacity: {x: 3}, requirements: []}");
    const struct instance_types *s = apply(&lab, &pool);

    uint32_t o = offering_of(s, "t", "b", "spot"), row = s->offering_row[o];
    EXPECT_Z(price_in(s, "t", "b", "spot"), "1");
    EXPECT_TRUE(row != 0);
    EXPECT_EQ(instance_types_resource(s, STR("memory"))->capacity[row], 6000);
    EXPECT_EQ(instance_types_resource(s, STR("cpu"))->overhead[row], 1000);
    EXPECT_EQ(instance_types_resource(s, STR("x"))->capacity[row],
              3000); /* the type's is its too */
    EXPECT_EQ(instance_types_resource(s, STR("memory"))->capacity[0], 8000);
}

TEST(quirk_offerings_that_appear_between_evaluations_are_overlaid_at_once)
{
    LAB lab;
    struct overlay_pool pool = two_types(&lab);
    lab_overlay(&lab, "a", "{price: '1', capacity: {x: 1}, requirements: []}");
    struct overlay_evaluation ev = lab_evaluate(&lab, &pool, 1);

    lab_type(&lab, "big", "", "a/spot=0.2 a/on-demand=0.4 b/spot=0.3 c/reserved=0");
    lab_type(&lab, "newer", "", "c/spot=0.9");
    pool.types = lab_snapshot(&lab);
    AUTO_INSTANCE_TYPES s = overlay_set_apply(ev.accepted, &pool, plain);
    EXPECT_Z(price_in(s, "big", "c", "reserved"), "1");
    EXPECT_Z(price_in(s, "newer", "c", "spot"), "1");
    EXPECT_EQ(capacity_in(s, "newer", "x"), 1000);
    overlay_set_unref(ev.accepted);
}

/* Both offerings print as "partition In [1 2 3 4 5 and 1 others]". */
TEST(quirk_display_string_collisions_offerings_are_told_apart_by_what_they_are)
{
    static const struct str first[] = {
        STR("1"), STR("2"), STR("3"), STR("4"), STR("5"), STR("6")
    };
    static const struct str second[] = {
        STR("1"), STR("2"), STR("3"), STR("4"), STR("5"), STR("7")
    };
    LAB lab;
    lab_init(&lab);
    struct offering_draft *offered = lab_type(&lab, "t", "partition=*", "a/spot=0.2 a/spot=0.2");
    struct requirement six =
        requirement_in(&lab.arena, STR("partition"), (struct str_list){ first, 6 });
    struct requirement seven =
        requirement_in(&lab.arena, STR("partition"), (struct str_list){ second, 6 });
    offered[0].requirements = requirements_add(&lab.arena, &offered[0].requirements, &six);
    offered[1].requirements = requirements_add(&lab.arena, &offered[1].requirements, &seven);
    AUTO_BUF one = { 0 }, other = { 0 };
    requirements_format(&offered[0].requirements, &one);
    requirements_format(&offered[1].requirements, &other);
    EXPECT_STR(buf_str(&one), other.p);

    struct overlay_pool pool = lab_pool(&lab, "web", "", lab_snapshot(&lab));
    lab_overlay(&lab, "six",
                "{price: '6', requirements: [{key: partition, operator: In, values: ['6']}]}");
    lab_overlay(&lab, "seven",
                "{price: '7', requirements: [{key: partition, operator: In, values: ['7']}]}");
    struct overlay_evaluation ev = lab_evaluate(&lab, &pool, 1);
    EXPECT_EQ(overlay_set_count(ev.accepted), 2); /* they do not conflict */
    overlay_set_unref(ev.accepted);
    const struct instance_types *s = apply(&lab, &pool);
    for (uint32_t o = 0; o < 2; o++) {
        const struct offering_shape *shape = &s->shapes[s->offering_shape[o]];
        const struct requirement *r = requirements_find(&shape->requirements, STR("partition"));
        EXPECT_Z(price_text(instance_types_price(s, o)), requirement_has(r, STR("6")) ? "6" : "7");
    }
}

/* What overlays match, and which of them cannot stand beside each other. */
#include "cloud/overlay_testing.h"

#include "base/clock.h"

/* How many types and offerings an overlay with these requirements matches. */
static void expect_match(struct lab *lab, const struct overlay_pool *pool, const char *requirements,
                         uint32_t types, uint32_t offerings)
{
    AUTO_BUF spec = { 0 };
    buf_addf(&spec, "{price: '1', requirements: [%s]}", requirements);
    const struct nodeoverlay *o = lab_overlay(lab, "o", spec.p);
    AUTO_OVERLAY_SET set = overlay_set_new(&o, 1, 1);
    struct overlay_evaluation ev;
    overlay_set_evaluate(set, pool, 1, &lab->arena, &ev);
    overlay_set_unref(ev.accepted);
    EXPECT_STR(ev.verdicts.items[0].message, "");
    if (ev.verdicts.items[0].type_count != types ||
        ev.verdicts.items[0].offering_count != offerings)
        print_message("# %s\n", requirements);
    EXPECT_EQ(ev.verdicts.items[0].type_count, types);
    EXPECT_EQ(ev.verdicts.items[0].offering_count, offerings);
}

static struct overlay_pool two_types(struct lab *lab, const char *labels)
{
    lab_init(lab);
    lab_type(lab, "big", "arch=amd64 cores=8 disk=!", "a/spot=0.2 a/on-demand=0.4 b/spot=0.3!");
    lab_type(lab, "small", "arch=amd64,arm64 cores=2", "a/on-demand=0.1 b/on-demand=0.1");
    return lab_pool(lab, "web", labels, lab_snapshot(lab));
}

TEST(an_overlay_without_requirements_matches_everything)
{
    LAB lab;
    struct overlay_pool pool = two_types(&lab, "");
    expect_match(&lab, &pool, "", 2, 5);
}

TEST(types_are_matched_by_their_requirements)
{
    LAB lab;
    struct overlay_pool pool = two_types(&lab, "");
    expect_match(&lab, &pool, "{key: arch, operator: In, values: [arm64]}", 1, 2);
    expect_match(&lab, &pool, "{key: arch, operator: NotIn, values: [amd64]}", 1, 2);
    expect_match(&lab, &pool, "{key: cores, operator: Gt, values: ['2']}", 1, 3);
    expect_match(&lab, &pool, "{key: cores, operator: Gte, values: ['2']}", 2, 5);
    expect_match(&lab, &pool,
                 "{key: cores, operator: Lt, values: ['3']}, {key: arch, operator: Exists}", 1, 2);
    expect_match(&lab, &pool,
                 "{key: node.kubernetes.io/instance-type, operator: In, values: [big, huge]}", 1,
                 3);
}

TEST(a_key_that_nobody_defines_must_be_allowed_to_be_missing)
{
    LAB lab;
    struct overlay_pool pool = two_types(&lab, "");
    expect_match(&lab, &pool, "{key: gpu, operator: Exists}", 0, 0);
    expect_match(&lab, &pool, "{key: gpu, operator: In, values: [a]}", 0, 0);
    expect_match(&lab, &pool, "{key: gpu, operator: Gt, values: ['0']}", 0, 0);
    expect_match(&lab, &pool, "{key: gpu, operator: DoesNotExist}", 2, 5);
    expect_match(&lab, &pool, "{key: gpu, operator: NotIn, values: [a]}", 2, 5);
    expect_match(&lab, &pool, "{key: disk, operator: DoesNotExist}", 2, 5);
    expect_match(&lab, &pool, "{key: disk, operator: Exists}", 0, 0);
}

TEST(offerings_are_matched_by_zone_and_capacity_type_available_or_not)
{
    LAB lab;
    struct overlay_pool pool = two_types(&lab, "");
    expect_match(&lab, &pool, "{key: topology.kubernetes.io/zone, operator: In, values: [b]}", 2,
                 2);
    expect_match(&lab, &pool, "{key: karpenter.sh/capacity-type, operator: In, values: [spot]}", 1,
                 2);
    expect_match(&lab, &pool,
                 "{key: karpenter.sh/capacity-type, operator: In, values: [spot]}, "
                 "{key: topology.kubernetes.io/zone, operator: NotIn, values: [a]}",
                 1, 1);
    expect_match(&lab, &pool,
                 "{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}, "
                 "{key: topology.kubernetes.io/zone, operator: In, values: [b]}, "
                 "{key: node.kubernetes.io/instance-type, operator: In, values: [big]}",
                 0, 0);
}

TEST(a_pool_is_matched_by_its_name_and_its_template_labels)
{
    LAB lab;
    struct overlay_pool pool = two_types(&lab, "team=shop");
    expect_match(&lab, &pool, "{key: karpenter.sh/nodepool, operator: In, values: [web]}", 2, 5);
    expect_match(&lab, &pool, "{key: karpenter.sh/nodepool, operator: In, values: [batch]}", 0, 0);
    expect_match(&lab, &pool, "{key: karpenter.sh/nodepool, operator: NotIn, values: [web]}", 0, 0);
    expect_match(&lab, &pool, "{key: karpenter.sh/nodepool, operator: NotIn, values: [x]}", 2, 5);
    expect_match(&lab, &pool, "{key: team, operator: In, values: [shop]}", 2, 5);
    expect_match(&lab, &pool, "{key: team, operator: In, values: [bank]}", 0, 0);
    expect_match(&lab, &pool, "{key: team, operator: Exists}", 2, 5);
    expect_match(&lab, &pool, "{key: team, operator: DoesNotExist}", 0, 0);
    expect_match(&lab, &pool,
                 "{key: team, operator: In, values: [shop]}, "
                 "{key: cores, operator: In, values: ['8']}",
                 1, 3);
}

/* Where the template and the type both speak of a key, what they have in common decides. Types that
 * cannot have the template's value are as if they had no label. */
TEST(a_template_label_is_intersected_with_what_types_say)
{
    LAB lab;
    struct overlay_pool pool = two_types(&lab, "arch=arm64 cores=2");
    expect_match(&lab, &pool, "{key: arch, operator: In, values: [arm64]}", 1, 2);
    expect_match(&lab, &pool, "{key: arch, operator: In, values: [amd64]}", 0, 0);
    expect_match(&lab, &pool, "{key: arch, operator: NotIn, values: [amd64]}", 2, 5);
    expect_match(&lab, &pool, "{key: arch, operator: NotIn, values: [arm64]}", 1, 3);
    expect_match(&lab, &pool, "{key: arch, operator: Exists}", 1, 2);
    expect_match(&lab, &pool, "{key: arch, operator: DoesNotExist}", 1, 3);
    expect_match(&lab, &pool, "{key: cores, operator: Gt, values: ['1']}", 1, 2);
    expect_match(&lab, &pool, "{key: cores, operator: Gt, values: ['2']}", 0, 0);
}

TEST(a_template_that_contradicts_itself_is_as_if_the_label_were_missing)
{
    LAB lab;
    struct overlay_pool pool = two_types(&lab, "karpenter.sh/nodepool=other");
    expect_match(&lab, &pool, "{key: karpenter.sh/nodepool, operator: In, values: [web]}", 0, 0);
    expect_match(&lab, &pool, "{key: karpenter.sh/nodepool, operator: In, values: [other]}", 0, 0);
    expect_match(&lab, &pool, "{key: karpenter.sh/nodepool, operator: DoesNotExist}", 2, 5);

    struct overlay_pool twice =
        lab_pool(&lab, "p", "beta.kubernetes.io/os=linux kubernetes.io/os=windows", pool.types);
    expect_match(&lab, &twice, "{key: kubernetes.io/os, operator: Exists}", 0, 0);
}

TEST(old_names_of_labels_count_as_the_current_ones)
{
    LAB lab;
    struct overlay_pool pool = two_types(&lab, "beta.kubernetes.io/os=linux");
    expect_match(&lab, &pool, "{key: kubernetes.io/os, operator: In, values: [linux]}", 2, 5);
    expect_match(&lab, &pool, "{key: beta.kubernetes.io/os, operator: In, values: [linux]}", 2, 5);
    expect_match(&lab, &pool,
                 "{key: failure-domain.beta.kubernetes.io/zone, operator: In, values: [b]}", 2, 2);
}

TEST(an_offerings_own_label_that_is_not_well_known_must_be_spoken_of)
{
    LAB lab;
    lab_init(&lab);
    lab_type(&lab, "t", "rack=7,8", "a/spot=0.1,rack=7 b/spot=0.1");
    struct overlay_pool pool = lab_pool(&lab, "web", "", lab_snapshot(&lab));
    expect_match(&lab, &pool, "", 1, 1);
    expect_match(&lab, &pool, "{key: rack, operator: In, values: ['7']}", 1, 2);
    expect_match(&lab, &pool, "{key: rack, operator: In, values: ['8']}", 1, 1);
    const struct str known[] = { STR(LABEL_CAPACITY_TYPE), STR("rack"), STR(LABEL_ZONE) };
    pool.well_known = (struct str_list){ known, 3 };
    expect_match(&lab, &pool, "", 1, 2);
}

/* --- conflicts --- */

#define ZONE_IS(zone) "{key: topology.kubernetes.io/zone, operator: In, values: [" zone "]}"
#define TYPE_IS(type) "{key: node.kubernetes.io/instance-type, operator: In, values: [" type "]}"
#define POOL_IS(pool) "{key: karpenter.sh/nodepool, operator: In, values: [" pool "]}"

TEST(of_two_that_price_an_offering_with_equal_weight_the_later_in_order_is_rejected)
{
    LAB lab;
    struct overlay_pool pool = two_types(&lab, "");
    lab_overlay(&lab, "alpha", "{weight: 10, price: '1', requirements: [" TYPE_IS("big") "]}");
    lab_overlay(&lab, "beta",
                "{weight: 10, priceAdjustment: '+1%', requirements: [" ZONE_IS("b") "]}");
    struct overlay_evaluation ev = lab_evaluate(&lab, &pool, 1);
    EXPECT_EQ(verdict_of(&ev, "beta")->state, OVERLAY_ACCEPTED);
    EXPECT_EQ(verdict_of(&ev, "alpha")->state, OVERLAY_CONFLICT);
    EXPECT_STR(verdict_of(&ev, "alpha")->message,
               "conflicts with NodeOverlay beta of the same weight 10: both set the price of "
               "instance type big, offering b/spot, in NodePool web");
    EXPECT_EQ(verdict_of(&ev, "alpha")->offering_count, 3);
    EXPECT_EQ(overlay_set_count(ev.accepted), 1);
    EXPECT_EQ(overlay_set_generation(ev.accepted), 1);
    overlay_set_unref(ev.accepted);
}

TEST(different_weights_or_different_offerings_do_not_conflict)
{
    LAB lab;
    struct overlay_pool pool = two_types(&lab, "");
    lab_overlay(&lab, "a", "{weight: 10, price: '1', requirements: []}");
    lab_overlay(&lab, "b", "{weight: 11, price: '1', requirements: []}");
    lab_overlay(&lab, "c", "{price: '1', requirements: [" ZONE_IS("a") "]}");
    lab_overlay(&lab, "d", "{price: '1', requirements: [" ZONE_IS("b") "]}");
    struct overlay_evaluation ev = lab_evaluate(&lab, &pool, 1);
    EXPECT_EQ(overlay_set_count(ev.accepted), 4);
    overlay_set_unref(ev.accepted);
}

TEST(a_price_and_a_capacity_of_the_same_type_do_not_conflict)
{
    LAB lab;
    struct overlay_pool pool = two_types(&lab, "");
    lab_overlay(&lab, "a", "{price: '1', requirements: []}");
    lab_overlay(&lab, "b", "{capacity: {x: 1}, requirements: []}");
    lab_overlay(&lab, "c", "{capacity: {w: 1}, requirements: []}");
    lab_overlay(&lab, "d", "{requirements: []}");
    struct overlay_evaluation ev = lab_evaluate(&lab, &pool, 1);
    EXPECT_EQ(overlay_set_count(ev.accepted), 4);
    overlay_set_unref(ev.accepted);
}

TEST(a_price_that_a_heavier_overlay_hides_still_conflicts)
{
    LAB lab;
    struct overlay_pool pool = two_types(&lab, "");
    lab_overlay(&lab, "heavy", "{weight: 99, price: '1', requirements: []}");
    lab_overlay(&lab, "a", "{weight: 5, price: '2', requirements: []}");
    lab_overlay(&lab, "b", "{weight: 5, price: '3', requirements: []}");
    struct overlay_evaluation ev = lab_evaluate(&lab, &pool, 1);
    EXPECT_EQ(verdict_of(&ev, "b")->state, OVERLAY_ACCEPTED);
    EXPECT_HAS(verdict_of(&ev, "a")->message, "conflicts with NodeOverlay b of the same weight 5");
    overlay_set_unref(ev.accepted);
}

/* Compared with the most recent overlay on the type only, c would pass: b sets something else. */
TEST(quirk_missed_capacity_conflicts_all_earlier_overlays_are_compared)
{
    LAB lab;
    struct overlay_pool pool = two_types(&lab, "");
    lab_overlay(&lab, "c-first", "{capacity: {x: 1}, requirements: []}");
    lab_overlay(&lab, "b-second", "{capacity: {w: 1}, requirements: []}");
    lab_overlay(&lab, "a-third", "{capacity: {x: 2}, requirements: [" TYPE_IS("small") "]}");
    struct overlay_evaluation ev = lab_evaluate(&lab, &pool, 1);
    EXPECT_EQ(verdict_of(&ev, "c-first")->state, OVERLAY_ACCEPTED);
    EXPECT_EQ(verdict_of(&ev, "b-second")->state, OVERLAY_ACCEPTED);
    EXPECT_EQ(verdict_of(&ev, "a-third")->state, OVERLAY_CONFLICT);
    EXPECT_STR(verdict_of(&ev, "a-third")->message,
               "conflicts with NodeOverlay c-first of the same weight 0: both set x of instance "
               "type small, in NodePool web");
    overlay_set_unref(ev.accepted);
}

TEST(a_conflict_in_one_pool_rejects_the_overlay_in_all)
{
    LAB lab;
    struct overlay_pool web = two_types(&lab, "");
    struct overlay_pool pools[] = { web, lab_pool(&lab, "batch", "", web.types) };
    lab_overlay(&lab, "b", "{price: '1', requirements: [" POOL_IS("batch") "]}");
    lab_overlay(&lab, "a", "{price: '2', capacity: {x: 1}, requirements: []}");
    struct overlay_evaluation ev = lab_evaluate(&lab, pools, 2);
    EXPECT_EQ(verdict_of(&ev, "a")->state, OVERLAY_CONFLICT);
    EXPECT_HAS(verdict_of(&ev, "a")->message, "in NodePool batch");
    AUTO_INSTANCE_TYPES out =
        overlay_set_apply(ev.accepted, &web, (struct instance_types_options){ 0 });
    EXPECT_TRUE(out == web.types); /* neither its price nor its capacity is anywhere */
    overlay_set_unref(ev.accepted);
}

TEST(what_is_rejected_conflicts_with_nothing)
{
    LAB lab;
    struct overlay_pool pool = two_types(&lab, "");
    lab_overlay(&lab, "c", "{price: '1', requirements: [" TYPE_IS("big") "]}");
    lab_overlay(&lab, "b", "{price: '2', capacity: {x: 1}, requirements: []}");
    lab_overlay(&lab, "a", "{price: '3', capacity: {x: 1}, requirements: [" TYPE_IS("small") "]}");
    lab_overlay(&lab, "d", "{price: 'x', requirements: []}");
    struct overlay_evaluation ev = lab_evaluate(&lab, &pool, 1);
    EXPECT_EQ(verdict_of(&ev, "d")->state, OVERLAY_INVALID);
    EXPECT_EQ(verdict_of(&ev, "c")->state, OVERLAY_ACCEPTED);
    EXPECT_EQ(verdict_of(&ev, "b")->state, OVERLAY_CONFLICT);
    EXPECT_EQ(verdict_of(&ev, "a")->state, OVERLAY_ACCEPTED);
    overlay_set_unref(ev.accepted);
}

TEST(offerings_of_a_reservation_are_named_by_it)
{
    LAB lab;
    lab_init(&lab);
    lab_type(&lab, "t", "", "a/reserved=0,karpenter.k8s.aws/capacity-reservation-id=cr-1");
    struct overlay_pool pool = lab_pool(&lab, "web", "", lab_snapshot(&lab));
    pool.well_known = label_rules_for(STR(AWS_GROUP))->well_known;
    lab_overlay(&lab, "a", "{price: '1', requirements: []}");
    lab_overlay(&lab, "b", "{price: '1', requirements: []}");
    struct overlay_evaluation ev = lab_evaluate(&lab, &pool, 1);
    EXPECT_HAS(verdict_of(&ev, "a")->message, "offering a/reserved/cr-1,");
    overlay_set_unref(ev.accepted);
}

/* --- pools that get the same answer --- */

TEST(pools_differ_only_in_what_overlays_ask_about)
{
    LAB lab;
    struct overlay_pool web = two_types(&lab, "team=shop");
    struct overlay_pool other = lab_pool(&lab, "batch", "owner=me team=shop", web.types);
    struct overlay_pool bank = lab_pool(&lab, "web", "team=bank", web.types);
    struct overlay_pool none = lab_pool(&lab, "web", "", web.types);
    struct overlay_pool cafe = lab_pool(&lab, "web", "team=cafe", web.types);
    lab_overlay(&lab, "a", "{requirements: [{key: team, operator: In, values: [shop]}]}");
    AUTO_OVERLAY_SET set = lab_set(&lab);
    EXPECT_TRUE(overlay_pools_alike(set, &web, &other));
    EXPECT_EQ(overlay_pool_signature(set, &web), overlay_pool_signature(set, &other));
    EXPECT_FALSE(overlay_pools_alike(set, &web, &bank));
    EXPECT_TRUE(overlay_pool_signature(set, &web) != overlay_pool_signature(set, &bank));
    EXPECT_FALSE(overlay_pools_alike(set, &web, &none));
    EXPECT_FALSE(overlay_pools_alike(set, &bank, &none)); /* Exists would tell them apart */
    /* No overlay lists either, so none tells them apart. */
    EXPECT_TRUE(overlay_pools_alike(set, &bank, &cafe));
    EXPECT_EQ(overlay_pool_signature(set, &bank), overlay_pool_signature(set, &cafe));
}

TEST(pools_differ_in_unlisted_values_where_numbers_are_compared_or_types_have_the_key)
{
    LAB lab;
    struct overlay_pool one = two_types(&lab, "cores=3 level=1");
    struct overlay_pool two = lab_pool(&lab, "web", "cores=3 level=2", one.types);
    struct overlay_pool cores = lab_pool(&lab, "web", "cores=4 level=1", one.types);
    lab_overlay(&lab, "a", "{requirements: [{key: level, operator: Gt, values: ['1']}]}");
    lab_overlay(&lab, "b", "{requirements: [{key: cores, operator: Exists}]}");
    AUTO_OVERLAY_SET set = lab_set(&lab);
    EXPECT_FALSE(overlay_pools_alike(set, &one, &two));
    EXPECT_FALSE(overlay_pools_alike(set, &one, &cores));
}

TEST(five_hundred_pools_with_one_snapshot_count_as_few)
{
    LAB lab;
    struct overlay_pool web = two_types(&lab, "");
    struct overlay_pool pools[500];
    for (int i = 0; i < 500; i++) {
        char name[16];
        snprintf(name, sizeof name, "p%d", i);
        pools[i] = lab_pool(&lab, name, "", web.types);
    }
    lab_overlay(&lab, "all", "{price: '1', requirements: []}");
    lab_overlay(&lab, "one", "{weight: 2, price: '1', requirements: [" POOL_IS("p7") "]}");
    struct overlay_evaluation ev = lab_evaluate(&lab, pools, 500);
    /* Two answers: that of p7 and that of the others. */
    EXPECT_EQ(verdict_of(&ev, "all")->type_count, 2 * 2);
    EXPECT_EQ(verdict_of(&ev, "one")->type_count, 2);
    overlay_set_unref(ev.accepted);
}

TEST(handles_to_the_same_types_count_as_the_same)
{
    LAB lab;
    struct overlay_pool web = two_types(&lab, "");
    AUTO_INSTANCE_TYPES replica = instance_types_replica(web.types);
    struct overlay_pool pools[] = { web, lab_pool(&lab, "other", "", replica) };
    lab_overlay(&lab, "all", "{price: '1', requirements: []}");
    struct overlay_evaluation ev = lab_evaluate(&lab, pools, 2);
    EXPECT_EQ(verdict_of(&ev, "all")->type_count, 2);
    overlay_set_unref(ev.accepted);
}

/* --- many --- */

static struct overlay_pool large_pool(struct lab *lab, uint32_t type_count)
{
    lab_init(lab);
    for (uint32_t i = 0; i < type_count; i++) {
        char name[32], labels[96], offerings[400] = "";
        snprintf(name, sizeof name, "f%u.s%u", i / 10, i % 10);
        snprintf(labels, sizeof labels, "family=f%u size=%u arch=%s", i / 10, i % 10,
                 i % 3 ? "amd64" : "arm64");
        for (int z = 0; z < 6; z++) {
            size_t len = strlen(offerings);
            snprintf(offerings + len, sizeof offerings - len, "%sz%d/spot=0.%u z%d/on-demand=0.%u",
                     z ? " " : "", z, i + 1, z, i + 2);
        }
        lab_type(lab, name, labels, offerings);
    }
    return lab_pool(lab, "web", "team=shop", lab_snapshot(lab));
}

/* A third match one family in one zone, a third set a resource of half of all types, a third price
 * everything; weights are shared by three. */
TEST(ten_thousand_overlays_are_evaluated_in_bounded_time)
{
    LAB lab;
    struct overlay_pool pool = large_pool(&lab, 850);
    for (int i = 0; i < 10000; i++) {
        char name[16], spec[300];
        snprintf(name, sizeof name, "o%d", i);
        if (i % 3 == 0)
            snprintf(spec, sizeof spec,
                     "{weight: %d, price: '0.%d', requirements: [{key: family, operator: In, "
                     "values: [f%d]}, {key: topology.kubernetes.io/zone, operator: In, values: "
                     "[z%d]}]}",
                     i / 3 + 1, i + 1, i % 85, i % 6);
        else if (i % 3 == 1)
            snprintf(spec, sizeof spec,
                     "{weight: %d, capacity: {x%d: %d}, requirements: [{key: size, operator: Gt, "
                     "values: ['4']}, {key: team, operator: In, values: [shop]}]}",
                     i / 3 + 1, i % 50, i);
        else
            snprintf(spec, sizeof spec, "{weight: %d, priceAdjustment: '+%d%%', requirements: []}",
                     i / 3 + 1, i);
        lab_overlay(&lab, name, spec);
    }
    const struct clock *clock = clock_real();
    int64_t start = clock_mono_ns(clock);
    AUTO_OVERLAY_SET set = lab_set(&lab);
    int64_t compiled = clock_mono_ns(clock);
    struct overlay_evaluation ev;
    overlay_set_evaluate(set, &pool, 1, &lab.arena, &ev);
    int64_t evaluated = clock_mono_ns(clock);
    AUTO_INSTANCE_TYPES layer =
        overlay_set_apply(ev.accepted, &pool, (struct instance_types_options){ 0 });
    int64_t applied = clock_mono_ns(clock);
    print_message(
        "# 10000 overlays x 850 types: compile %lld us, evaluate %lld us, apply %lld us\n",
        (long long)(compiled - start) / 1000, (long long)(evaluated - compiled) / 1000,
        (long long)(applied - evaluated) / 1000);
    EXPECT_TRUE(layer != pool.types);
    EXPECT_TRUE(overlay_set_count(ev.accepted) < 10000);
    /* A hundred times what it takes: sanitizers and busy machines are slow, loops that are
     * quadratic are slower. */
    EXPECT_TRUE(applied - start < (int64_t)30 * 1000 * 1000 * 1000);
    overlay_set_unref(ev.accepted);
}

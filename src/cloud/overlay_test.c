/* Compiling overlays, and what a verdict looks like as conditions. */
#include "cloud/overlay_testing.h"

/* The verdict about one overlay, without pools. */
static const struct overlay_verdict *judge(struct lab *lab, const char *spec)
{
    const struct nodeoverlay *o = lab_overlay(lab, "o", spec);
    AUTO_OVERLAY_SET set = overlay_set_new(&o, 1, 1);
    struct overlay_evaluation ev;
    overlay_set_evaluate(set, NULL, 0, &lab->arena, &ev);
    overlay_set_unref(ev.accepted);
    return &ev.verdicts.items[0];
}

static void expect_invalid(const char *spec, const char *message)
{
    LAB lab;
    lab_init(&lab);
    const struct overlay_verdict *v = judge(&lab, spec);
    EXPECT_EQ(v->state, OVERLAY_INVALID);
    EXPECT_HAS(v->message, message);
}

static void expect_valid(const char *spec)
{
    LAB lab;
    lab_init(&lab);
    const struct overlay_verdict *v = judge(&lab, spec);
    EXPECT_STR(v->message, "");
    EXPECT_EQ(v->state, OVERLAY_ACCEPTED);
}

TEST(price_and_adjustment_exclude_each_other)
{
    expect_invalid("{price: '1', priceAdjustment: '+10%', requirements: []}",
                   "spec: price and priceAdjustment exclude each other");
}

TEST(a_price_is_a_decimal_that_can_be_held)
{
    expect_valid("{price: '0', requirements: []}");
    expect_valid("{price: '922337', requirements: []}");
    expect_valid("{price: '0.00000000000000000000000000000000000001', requirements: []}");
    expect_invalid("{price: '', requirements: []}", "spec.price: ");
    expect_invalid("{price: '-1', requirements: []}", "spec.price: ");
    expect_invalid("{price: '1e3', requirements: []}", "spec.price: ");
    expect_invalid("{price: '922338', requirements: []}", "spec.price: ");
    expect_invalid("{price: '99999999999999999999999999999999999999999999', requirements: []}",
                   "spec.price: ");
}

TEST(an_adjustment_is_signed_and_within_what_a_price_can_be)
{
    expect_valid("{priceAdjustment: '+0.5', requirements: []}");
    expect_valid("{priceAdjustment: '-12.5%', requirements: []}");
    expect_valid("{priceAdjustment: '-100%', requirements: []}");
    expect_valid("{priceAdjustment: '+99999999999999999999999999%', requirements: []}");
    expect_valid("{priceAdjustment: '-99999999999999999999999999', requirements: []}");
    expect_invalid("{priceAdjustment: '0.5', requirements: []}", "spec.priceAdjustment: ");
    expect_invalid("{priceAdjustment: '', requirements: []}", "spec.priceAdjustment: ");
    expect_invalid("{priceAdjustment: '-101%', requirements: []}", "spec.priceAdjustment: ");
    expect_invalid("{priceAdjustment: '+99999999999999999999999999', requirements: []}",
                   "is more than any price");
}

TEST(capacity_of_what_the_scheduler_computes_with_is_refused)
{
    static const char *const fixed[] = { "cpu", "memory", "ephemeral-storage", "pods" };
    for (size_t i = 0; i < KV_COUNT_OF(fixed); i++) {
        char spec[100];
        snprintf(spec, sizeof spec, "{capacity: {%s: 1}, requirements: []}", fixed[i]);
        expect_invalid(spec, fixed[i]);
    }
    expect_valid("{capacity: {nvidia.com/gpu: 8, hugepages-2Mi: 4Gi, x: 0}, requirements: []}");
}

TEST(a_capacity_is_neither_negative_nor_too_large_to_count)
{
    expect_invalid("{capacity: {x: -1}, requirements: []}", "\"x\" is negative");
    expect_invalid("{capacity: {x: -1n}, requirements: []}", "\"x\" is negative");
    expect_invalid("{capacity: {x: 9223372036854775807}, requirements: []}", "too large");
    expect_valid("{capacity: {x: 8Pi}, requirements: []}");
    expect_invalid("{capacity: {'-x': 1}, requirements: []}", "spec.capacity: \"-x\"");
}

TEST(requirements_that_make_no_sense_are_named)
{
    expect_invalid("{requirements: [{key: k, operator: Exists}, {key: k, operator: In}]}",
                   "spec.requirements[1]: k: In needs at least one value");
    expect_invalid("{requirements: [{key: k, operator: NotIn, values: []}]}",
                   "NotIn needs at least one value");
    expect_invalid("{requirements: [{key: k, operator: Gt, values: [many]}]}",
                   "k: Gt needs exactly one value, an integer");
    expect_invalid("{requirements: [{key: k, operator: Lte, values: ['1', '2']}]}",
                   "k: Lte needs exactly one value");
    expect_invalid("{requirements: [{key: k, operator: Like, values: [a]}]}", "no operator");
    expect_invalid("{requirements: [{key: '', operator: Exists}]}", "spec.requirements[0]: key");
    expect_invalid("{requirements: [{key: k, operator: In, values: ['a b']}]}", "k: value \"a b\"");
}

TEST(requirements_that_contradict_each_other_do_not_become_label_is_missing)
{
    expect_invalid("{price: '1', requirements: [{key: k, operator: In, values: [a]}, "
                   "{key: k, operator: In, values: [b]}]}",
                   "spec.requirements[1]: k contradicts requirements[0]");
    expect_invalid("{requirements: [{key: k, operator: Gt, values: ['5']}, "
                   "{key: k, operator: Lt, values: ['6']}]}",
                   "contradicts");
    expect_valid("{requirements: [{key: k, operator: NotIn, values: [a]}, "
                 "{key: k, operator: DoesNotExist}]}");
}

TEST(a_hundred_requirements_are_the_limit)
{
    AUTO_BUF spec = { 0 };
    buf_addz(&spec, "{requirements: [");
    for (int i = 0; i < 101; i++)
        buf_addf(&spec, "%s{key: k%d, operator: DoesNotExist}", i ? ", " : "", i);
    buf_addz(&spec, "]}");
    expect_invalid(spec.p, "at most 100");
}

TEST(overlays_together_name_a_bounded_number_of_resources)
{
    LAB lab;
    lab_init(&lab);
    AUTO_BUF spec = { 0 };
    buf_addz(&spec, "{weight: 2, requirements: [], capacity: {");
    for (int i = 0; i < OVERLAY_RESOURCES_MAX; i++)
        buf_addf(&spec, "%sx%d: 1", i ? ", " : "", i);
    buf_addz(&spec, "}}");
    lab_overlay(&lab, "many", spec.p);
    lab_overlay(&lab, "same", "{requirements: [], capacity: {x7: 1}}");
    lab_overlay(&lab, "more", "{requirements: [], capacity: {w: 1}}");
    struct overlay_evaluation ev = lab_evaluate(&lab, NULL, 0);
    EXPECT_EQ(verdict_of(&ev, "many")->state, OVERLAY_ACCEPTED);
    EXPECT_EQ(verdict_of(&ev, "same")->state, OVERLAY_ACCEPTED);
    EXPECT_EQ(verdict_of(&ev, "more")->state, OVERLAY_INVALID);
    EXPECT_HAS(verdict_of(&ev, "more")->message, "more than 1000 different resources");
    overlay_set_unref(ev.accepted);
}

TEST(the_heaviest_is_processed_first_and_of_equal_weight_the_later_name)
{
    LAB lab;
    lab_init(&lab);
    lab_overlay(&lab, "a", "{requirements: []}");
    lab_overlay(&lab, "c", "{weight: 10, requirements: []}");
    lab_overlay(&lab, "b", "{requirements: []}");
    lab_overlay(&lab, "d", "{weight: 9, requirements: []}");
    struct overlay_evaluation ev = lab_evaluate(&lab, NULL, 0);
    static const char *const expected[] = { "c", "d", "b", "a" };
    EXPECT_EQ(ev.verdicts.count, 4);
    for (uint32_t i = 0; i < 4; i++)
        EXPECT_STR(ev.verdicts.items[i].overlay->object.meta.name, expected[i]);
    overlay_set_unref(ev.accepted);
}

TEST(a_set_outlives_the_references_it_was_made_from)
{
    LAB lab;
    lab_init(&lab);
    const struct nodeoverlay *o = lab_overlay(&lab, "a", "{price: '1', requirements: []}");
    const struct overlay_set *set = overlay_set_new(&o, 1, 42);
    overlay_set_ref(set);
    overlay_set_unref(set);
    object_unref(&o->object);
    lab.owned.count = 0;
    EXPECT_EQ(overlay_set_generation(set), 42);
    EXPECT_EQ(overlay_set_count(set), 1);
    overlay_set_unref(set);
    overlay_set_unref(NULL);
}

/* --- conditions --- */

static struct condition_set *conditions_for(struct lab *lab, enum overlay_state state,
                                            const char *message)
{
    struct overlay_verdict v = { .overlay = lab_overlay(lab, "o", "{requirements: []}"),
                                 .state = state,
                                 .message = str_of(message) };
    return overlay_verdict_conditions(&v, &lab->arena, 1800000000000000);
}

TEST(an_accepted_overlay_is_ready)
{
    LAB lab;
    lab_init(&lab);
    struct condition_set *set = conditions_for(&lab, OVERLAY_ACCEPTED, "");
    EXPECT_TRUE(conditions_is_true(set, CONDITION_VALIDATION_SUCCEEDED));
    EXPECT_STR(conditions_get(set, CONDITION_VALIDATION_SUCCEEDED)->reason, "ValidationSucceeded");
    EXPECT_TRUE(conditions_is_true(set, CONDITION_READY));
    EXPECT_EQ(conditions_root(set)->observed_generation, 1);
    EXPECT_TRUE(conditions_changed(set));
}

TEST(a_rejected_overlay_says_why_and_is_not_ready)
{
    static const struct {
        enum overlay_state state;
        const char *reason;
    } cases[] = { { OVERLAY_INVALID, "RuntimeValidation" }, { OVERLAY_CONFLICT, "Conflict" } };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        LAB lab;
        lab_init(&lab);
        struct condition_set *set = conditions_for(&lab, cases[i].state, "because");
        const struct condition *c = conditions_get(set, CONDITION_VALIDATION_SUCCEEDED);
        EXPECT_EQ(c->status, CONDITION_FALSE);
        EXPECT_STR(c->reason, cases[i].reason);
        EXPECT_STR(c->message, "because");
        EXPECT_EQ(conditions_root(set)->status, CONDITION_FALSE);
        EXPECT_STR(conditions_root(set)->reason, "UnhealthyDependents");
    }
}

TEST(a_verdict_that_is_already_in_the_status_changes_nothing)
{
    LAB lab;
    lab_init(&lab);
    struct condition_set *first = conditions_for(&lab, OVERLAY_CONFLICT, "because");
    struct nodeoverlay stored = *lab.overlays.items[0];
    stored.status.conditions.items = first->items;
    stored.status.conditions.count = first->count;
    struct overlay_verdict v = { &stored, OVERLAY_CONFLICT, STR("because"), 0, 0 };
    EXPECT_FALSE(conditions_changed(overlay_verdict_conditions(&v, &lab.arena, 1900000000000000)));
    v.message = STR("because of another");
    EXPECT_TRUE(conditions_changed(overlay_verdict_conditions(&v, &lab.arena, 1900000000000000)));
}

#include "support/test.h"

#include "api/requirements.h"

#include <stdio.h>

/* "key Op v1,v2 minValues" items separated by semicolons: "zone In a,b; cpu Gt 3". A number after a
 * second space is minValues. */
static expression_list expressions(struct arena *arena, const char *text)
{
    struct expression *items = arena_array(arena, struct expression, 20);
    uint32_t count = 0;
    for (struct str rest = str_of(text), item; rest.len;) {
        struct str op, values, min;
        str_cut(rest, ';', &item, &rest);
        struct expression *e = &items[count++];
        str_cut(str_trim(item), ' ', &e->key, &item);
        str_cut(item, ' ', &op, &values);
        str_cut(values, ' ', &values, &min);
        for (uint8_t i = 0; requirement_op_names[i]; i++) {
            if (str_eqz(op, requirement_op_names[i]))
                e->op = (uint8_t)(i + 1);
        }
        EXPECT_TRUE(e->op != OP_UNSET);
        e->min_values.set = str_to_i64(min, &e->min_values.value);
        struct str *list = arena_array(arena, struct str, 20);
        while (values.len && !str_eq(values, STR("-")))
            str_cut(values, ',', &list[e->values.count++], &values);
        e->values.items = list;
    }
    return (expression_list){ items, count };
}

static struct requirements set_of(struct arena *arena, const char *text)
{
    struct err err = { 0 };
    struct requirements set = { 0 };
    expression_list list = expressions(arena, text);
    EXPECT_OK(requirements_from_expressions(arena, list.items, list.count, &set, &err), err);
    return set;
}

static void expect_set(const struct requirements *set, const char *want)
{
    AUTO_BUF b = { 0 };
    requirements_format(set, &b);
    EXPECT_STR(buf_str(&b), want);
}

static const struct str_list none;

TEST(requirements_follow_the_truth_table)
{
    enum { NO, YES, NOT_ASKED };
    const struct {
        const char *a, *b;
        int intersection, compatible, compatible_if_well_known;
    } rows[] = {
        { "", "k In a", NOT_ASKED, NO, YES },
        { "", "k NotIn a", NOT_ASKED, YES, YES },
        { "", "k Exists", NOT_ASKED, NO, YES },
        { "", "k DoesNotExist", NOT_ASKED, YES, YES },
        { "", "k Gt 1", NOT_ASKED, NO, YES },
        { "k In a,b", "k In b,c", YES, YES, YES },
        { "k In a", "k In b", NO, NO, NO },
        { "k In a", "k NotIn a", NO, NO, NO },
        { "k In a", "k NotIn b", YES, YES, YES },
        { "k In a", "k Exists", YES, YES, YES },
        { "k In a", "k DoesNotExist", NO, NO, NO },
        { "k NotIn a", "k NotIn b", YES, YES, YES },
        { "k NotIn a", "k DoesNotExist", NO, YES, YES },
        { "k Exists", "k DoesNotExist", NO, NO, NO },
        { "k DoesNotExist", "k DoesNotExist", NO, YES, YES },
        { "k DoesNotExist", "k NotIn a", NO, YES, YES },
        { "k DoesNotExist", "k In a", NO, NO, NO },
        { "k DoesNotExist", "k Exists", NO, NO, NO },
        { "k Gt 3", "k Lt 5", YES, YES, YES },
        { "k Gt 3", "k Lt 4", NO, NO, NO },
        { "k In 2,9", "k Gte 9", YES, YES, YES },
        { "k In large", "k Gt 1", NO, NO, NO },
    };
    const struct str k = STR("k");
    const struct str_list well_known = { &k, 1 };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        AUTO_ARENA arena = { 0 };
        struct requirements a = set_of(&arena, rows[i].a), b = set_of(&arena, rows[i].b);
        print_message("# %s | %s\n", rows[i].a, rows[i].b);
        EXPECT_EQ(requirements_compatible(&a, &b, none, NULL), rows[i].compatible);
        EXPECT_EQ(requirements_compatible(&a, &b, well_known, NULL),
                  rows[i].compatible_if_well_known);
        if (rows[i].intersection == NOT_ASKED) {
            EXPECT_TRUE(requirements_intersects(&a, &b, NULL));
            continue;
        }
        EXPECT_EQ(requirement_has_intersection(&a.items[0], &b.items[0]), rows[i].intersection);
        struct requirement both = requirement_intersection(&arena, &a.items[0], &b.items[0]);
        EXPECT_EQ(requirement_operator(&both) != OP_DOES_NOT_EXIST, rows[i].intersection);
        EXPECT_EQ(requirements_intersects(&a, &b, NULL), rows[i].compatible);
    }
}

TEST(requirements_on_one_key_are_intersected_and_keys_sorted)
{
    AUTO_ARENA arena = { 0 };
    struct requirements set = set_of(
        &arena, "zone In a,b,c; cpu Gt 3; zone NotIn b; arch Exists; cpu Lt 9; zone In c,b,a");
    expect_set(&set, "arch Exists, cpu Exists >=4 <=8, zone In [a c]");
    set = set_of(&arena, "beta.kubernetes.io/arch In amd64,arm64; kubernetes.io/arch NotIn arm64");
    expect_set(&set, "kubernetes.io/arch In [amd64]");
    set = set_of(&arena, "kubernetes.io/hostname In n1; a Exists");
    expect_set(&set, "a Exists");
    set = set_of(&arena, "");
    expect_set(&set, "");
}

TEST(requirements_with_one_bad_expression_are_refused)
{
    AUTO_ARENA arena = { 0 };
    struct err err = { 0 };
    struct requirements set = { 0 };
    expression_list list = expressions(&arena, "zone In a; cpu Lt few");
    EXPECT_ERR(requirements_from_expressions(&arena, list.items, list.count, &set, &err), err,
               ERR_INVALID);
    EXPECT_EQ(set.count, 0);
}

TEST(requirements_merge_is_adding_one_by_one)
{
    AUTO_ARENA arena = { 0 };
    struct requirements a = set_of(&arena, "b In 1,2; d Exists; e NotIn x"),
                        b = set_of(&arena, "a Exists; b In 2,3; e NotIn y; f In z");
    struct requirements merged = requirements_merge(&arena, &a, &b), added = a;
    expect_set(&merged, "a Exists, b In [2], d Exists, e NotIn [x y], f In [z]");
    for (uint32_t i = 0; i < b.count; i++)
        added = requirements_add(&arena, &added, &b.items[i]);
    EXPECT_EQ(added.count, merged.count);
    for (uint32_t i = 0; i < added.count; i++)
        EXPECT_TRUE(requirement_equal(&added.items[i], &merged.items[i]));
    expect_set(&a, "b In [1 2], d Exists, e NotIn [x]"); /* operands are as they were */
}

TEST(requirements_undefined_key_reads_as_exists)
{
    AUTO_ARENA arena = { 0 };
    struct requirements set = set_of(&arena, "a In x; c In y");
    for (const char *const *key = (const char *const[]){ "", "b", "d", NULL }; *key; key++) {
        struct requirement r = requirements_get(&set, str_of(*key));
        EXPECT_EQ(requirement_operator(&r), OP_EXISTS);
        EXPECT_TRUE(requirements_find(&set, str_of(*key)) == NULL);
    }
    EXPECT_TRUE(requirements_find(&set, STR("c")) == &set.items[1]);
    struct requirement c = requirements_get(&set, STR("c"));
    EXPECT_TRUE(requirement_equal(&c, &set.items[1]));
}

TEST(requirements_come_from_labels_and_from_pods)
{
    AUTO_ARENA arena = { 0 };
    struct err err = { 0 };
    const struct str_pair pairs[] = { { STR("beta.kubernetes.io/os"), STR("linux") },
                                      { STR("team"), STR("") } };
    const struct str_map labels = { pairs, 2 };
    struct requirements set = requirements_from_labels(&arena, &labels);
    expect_set(&set, "kubernetes.io/os In [linux], team In []");

    expression_list one = expressions(&arena, "zone In a,b; cpu Gt 4"),
                    two = expressions(&arena, "zone In b,c");
    struct node_selector_term required = { 0 }, preferred = { 0 };
    required.expressions.items = one.items;
    required.expressions.count = one.count;
    preferred.expressions.items = two.items;
    preferred.expressions.count = two.count;
    EXPECT_OK(requirements_from_pod(&arena, &labels, &required, &preferred, &set, &err), err);
    expect_set(&set, "cpu Exists >=5, kubernetes.io/os In [linux], team In [], zone In [b]");
    EXPECT_OK(requirements_from_pod(&arena, &labels, &required, NULL, &set, &err), err);
    expect_set(&set, "cpu Exists >=5, kubernetes.io/os In [linux], team In [], zone In [a b]");
    EXPECT_OK(requirements_from_pod(&arena, &(struct str_map){ 0 }, NULL, NULL, &set, &err), err);
    EXPECT_EQ(set.count, 0);

    required.fields.items = one.items;
    required.fields.count = 1;
    EXPECT_ERR(requirements_from_pod(&arena, &labels, &required, NULL, &set, &err), err,
               ERR_INVALID);
    EXPECT_HAS(str_of(err.text), "matchFields");
    expression_list bad = expressions(&arena, "cpu Gt many");
    preferred.expressions.items = bad.items;
    preferred.expressions.count = 1;
    EXPECT_ERR(requirements_from_pod(&arena, &labels, &preferred, NULL, &set, &err), err,
               ERR_INVALID);
    EXPECT_Z(err.text, "node affinity: cpu: Gt needs exactly one value, an integer");
}

TEST(requirements_say_which_key_failed_and_why)
{
    AUTO_ARENA arena = { 0 };
    struct requirements node = set_of(&arena, "a In x; b In y; z Exists");
    const struct {
        const char *incoming;
        enum mismatch_why why;
        const char *key;
    } rows[] = {
        { "a In x; b In y; z In q", MISMATCH_NONE, "" },
        { "a In x; b In q", MISMATCH_NO_INTERSECTION, "b" },
        { "a In q; b In q", MISMATCH_NO_INTERSECTION, "a" },
        { "a In q; c In x; d In x", MISMATCH_UNDEFINED, "c" }, /* undefined keys come first */
        { "a In q; c NotIn x", MISMATCH_NO_INTERSECTION, "a" },
        { "z DoesNotExist", MISMATCH_NO_INTERSECTION, "z" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        struct requirements incoming = set_of(&arena, rows[i].incoming);
        struct mismatch why = { 0 };
        bool ok = requirements_compatible(&node, &incoming, none, &why);
        EXPECT_EQ(ok, rows[i].why == MISMATCH_NONE);
        EXPECT_EQ(why.why, rows[i].why);
        if (ok)
            continue;
        EXPECT_STR(why.incoming->key, rows[i].key);
        EXPECT_EQ(why.node != NULL, why.why == MISMATCH_NO_INTERSECTION);
    }
}

static void expect_mismatch(const char *node_text, const char *incoming_text, const char *want)
{
    AUTO_ARENA arena = { 0 };
    AUTO_BUF b = { 0 };
    const struct str_list known = label_rules_for(STR("karpenter.k8s.aws"))->well_known;
    struct requirements node = set_of(&arena, node_text), incoming = set_of(&arena, incoming_text);
    struct mismatch why = { 0 };
    requirements_compatible(&node, &incoming, known, &why);
    requirements_format_mismatch(&why, &node, known, &b);
    EXPECT_STR(buf_str(&b), want);
}

TEST(requirements_explain_a_mismatch_and_suggest_the_key_that_was_meant)
{
    expect_mismatch("", LABEL_ZONE " In a", "");
    expect_mismatch("zone In a", "zone In b", "zone In [a] and zone In [b] have nothing in common");
    expect_mismatch("", "topology.kubernetes.io/zoen In a",
                    "label topology.kubernetes.io/zoen has no known values; did you mean "
                    "topology.kubernetes.io/zone?");
    expect_mismatch("", "karpenter.k8s.aws/instance-gpu-cont In 1",
                    "label karpenter.k8s.aws/instance-gpu-cont has no known values; did you mean "
                    "karpenter.k8s.aws/instance-gpu-count?");
    expect_mismatch("", "failure-domain.kubernetes.io/region In x",
                    "label failure-domain.kubernetes.io/region has no known values; did you mean "
                    "topology.kubernetes.io/region?");
    expect_mismatch("team In a", "teem In a", "label teem has no known values; did you mean team?");
    expect_mismatch("team In a", "colour In red", "label colour has no known values");
}

TEST(requirements_written_as_expressions_read_back_the_same)
{
    const char *texts[] = {
        "a In x,y; b NotIn x; c Exists; d DoesNotExist",
        "cpu Gt 3; cpu Lt 9; cpu NotIn 5,7", /* both bounds and the exclusions survive */
        "cpu Gte 3 2; memory Lte 9",
        "a In x,y 2; b Exists - 3; c NotIn q",
        "cpu Gt 9; cpu Lt 3",
        "",
    };
    for (size_t i = 0; i < KV_COUNT_OF(texts); i++) {
        AUTO_ARENA arena = { 0 };
        struct err err = { 0 };
        struct requirements set = set_of(&arena, texts[i]), again = { 0 };
        expression_list list = requirements_to_expressions(&arena, &set);
        EXPECT_OK(requirements_from_expressions(&arena, list.items, list.count, &again, &err), err);
        EXPECT_EQ(again.count, set.count);
        for (uint32_t k = 0; k < set.count; k++)
            EXPECT_TRUE(requirement_equal(&again.items[k], &set.items[k]));
    }
}

TEST(requirements_with_bounds_become_gte_lte_and_not_in_items)
{
    AUTO_ARENA arena = { 0 };
    struct requirements set = set_of(&arena, "cpu Gt 3 2; cpu Lt 9; cpu NotIn 5");
    expression_list list = requirements_to_expressions(&arena, &set);
    EXPECT_EQ(list.count, 3);
    const enum requirement_op ops[] = { OP_GTE, OP_LTE, OP_NOT_IN };
    const char *const values[] = { "4", "8", "5" };
    for (uint32_t i = 0; i < 3; i++) {
        EXPECT_STR(list.items[i].key, "cpu");
        EXPECT_EQ(list.items[i].op, ops[i]);
        EXPECT_EQ(list.items[i].values.count, 1);
        EXPECT_STR(list.items[i].values.items[0], values[i]);
        EXPECT_TRUE(list.items[i].min_values.set);
        EXPECT_EQ(list.items[i].min_values.value, 2);
    }
    set = set_of(&arena, "cpu Gt -7"); /* the API takes no negative bound, and no label has one */
    list = requirements_to_expressions(&arena, &set);
    EXPECT_STR(list.items[0].values.items[0], "0");
}

TEST(min_values_count_the_leading_types_that_are_needed)
{
    AUTO_ARENA arena = { 0 };
    const struct requirements types[] = {
        set_of(&arena, "family In c; zone In a,b"),
        set_of(&arena, "family In c; zone In b"),
        set_of(&arena, "family In m; zone In a"),
        set_of(&arena, "family In r; zone In c"),
        set_of(&arena, "family Exists"),
        set_of(&arena, "zone NotIn d,e,f"),
    };
    const struct {
        const char *set;
        bool met;
        uint32_t type_count;
    } rows[] = {
        { "zone In a,b", true, 0 }, /* nothing asked */
        { "family Exists - 1", true, 1 }, { "family Exists - 2", true, 3 },
        { "zone Exists - 2", true, 1 },   { "family Exists - 2; zone Exists - 3", true, 4 },
        { "family Exists - 3", true, 4 }, { "family Exists - 4", false, 6 },
        { "zone Exists - 4", false, 6 },  { "other Exists - 1", false, 6 },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        struct requirements set = set_of(&arena, rows[i].set);
        struct min_values_result r =
            requirements_min_values(&arena, &set, types, KV_COUNT_OF(types));
        EXPECT_EQ(r.met, rows[i].met);
        EXPECT_EQ(r.type_count, rows[i].type_count);
    }
}

TEST(min_values_can_be_relaxed_to_what_there_is)
{
    AUTO_ARENA arena = { 0 };
    const struct requirements types[] = { set_of(&arena, "family In c,m; zone In a") };
    struct requirements set =
        set_of(&arena, "family Exists - 5; os Exists; other Exists - 2; zone In a,b 1");
    struct min_values_result r = requirements_min_values(&arena, &set, types, 1);
    EXPECT_FALSE(r.met);
    EXPECT_EQ(r.keys.count, 3);
    EXPECT_STR(r.keys.items[0].key, "family");
    EXPECT_EQ(r.keys.items[0].have, 2);
    EXPECT_EQ(r.keys.items[0].want, 5);
    struct requirements relaxed = requirements_relax(&arena, &set, &r);
    expect_set(&relaxed,
               "family Exists minValues 2, os Exists, other Exists, zone In [a b] minValues 1");
    EXPECT_TRUE(requirements_min_values(&arena, &relaxed, types, 1).met);
    EXPECT_FALSE(requirements_min_values(&arena, &set, types, 0).met);
}

TEST(requirements_that_no_node_can_satisfy_are_found)
{
    const struct {
        const char *text;
        int count;
        enum contradiction_why why;
        uint32_t at, with;
    } rows[] = {
        { "a In x; b In y", 0, 0, 0, 0 },
        { "a In x,y; b Exists; a In y,z; a NotIn z", 0, 0, 0, 0 },
        { "a In x; b Exists; a In y", 1, CONTRADICTION_VALUES, 2, 0 },
        { "a Exists; a DoesNotExist", 1, CONTRADICTION_VALUES, 1, 0 },
        { "a DoesNotExist; a NotIn x", 0, 0, 0, 0 }, /* a node without the label will do */
        { "a DoesNotExist", 0, 0, 0, 0 },
        { "a DoesNotExist; a NotIn x; a Gt 1", 1, CONTRADICTION_VALUES, 2, 0 },
        { "a In -", 1, CONTRADICTION_VALUES, 0, 0 }, /* by itself */
        { "a Gt 9223372036854775807", 1, CONTRADICTION_VALUES, 0, 0 },
        { "a Lt 0", 1, CONTRADICTION_VALUES, 0, 0 },
        { "a Gt 3; a Lt 9", 0, 0, 0, 0 },
        { "a Exists; a Gt 3; a Lt 4", 1, CONTRADICTION_VALUES, 2, 1 },
        { "a In x,y; a NotIn x; a NotIn y", 1, CONTRADICTION_VALUES, 2, 0 }, /* it takes three */
        { "a Gt 3; a Lt 6; a NotIn 4,5", 1, CONTRADICTION_VALUES, 2, 0 },
        { "a In large; a Gt 1", 1, CONTRADICTION_VALUES, 1, 0 },
        { "a In x,y 2", 0, 0, 0, 0 },
        { "a In x,y 2; a NotIn y", 1, CONTRADICTION_MIN_VALUES, 1, 0 },
        { "a In x,y 3", 1, CONTRADICTION_MIN_VALUES, 0, 0 },
        { "a Exists - 3; a Lt 2", 1, CONTRADICTION_MIN_VALUES, 1, 0 },
        { "a Gt many; a In x", 0, 0, 0, 0 }, /* a mistake of another kind */
        { "beta.kubernetes.io/os In linux; kubernetes.io/os In windows", 1, CONTRADICTION_VALUES, 1,
          0 },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        AUTO_ARENA arena = { 0 };
        print_message("# %s\n", rows[i].text);
        expression_list list = expressions(&arena, rows[i].text);
        struct contradictions found = requirements_contradictions(&arena, list.items, list.count);
        EXPECT_EQ(found.count, rows[i].count);
        if (found.count == 0)
            continue;
        EXPECT_EQ(found.items[0].why, rows[i].why);
        EXPECT_EQ(found.items[0].at, rows[i].at);
        EXPECT_EQ(found.items[0].with, rows[i].with);
    }
}

TEST(contradictions_are_reported_once_per_key)
{
    AUTO_ARENA arena = { 0 };
    expression_list list =
        expressions(&arena, "b In x; a In x; a In y; b In y; b In z; c In x,y 2; c In y");
    struct contradictions found = requirements_contradictions(&arena, list.items, list.count);
    EXPECT_EQ(found.count, 3);
    EXPECT_STR(found.items[0].key, "b");
    EXPECT_EQ(found.items[0].at, 3);
    EXPECT_STR(found.items[1].key, "a");
    EXPECT_STR(found.items[2].key, "c");
    EXPECT_EQ(found.items[2].have, 1);
    EXPECT_EQ(found.items[2].want, 2);
}

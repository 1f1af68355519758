#include "support/test.h"

#include "api/labels.h"
#include "api/requirement.h"

#include <inttypes.h>

#define KEY "example.com/size"

/* "In a,b", "NotIn", "Gt 3", "Exists minValues 2" on KEY. */
static struct expression expression(struct arena *arena, const char *text)
{
    struct expression e = { .key = STR(KEY) };
    struct str op, values, rest = str_of(text), count;
    str_cut(rest, ' ', &op, &rest);
    for (uint8_t i = 0; requirement_op_names[i]; i++) {
        if (str_eqz(op, requirement_op_names[i]))
            e.op = (uint8_t)(i + 1);
    }
    EXPECT_TRUE(e.op != OP_UNSET);
    ptrdiff_t at = rest.p ? str_find(rest, 'm') : -1;
    if (at >= 0 && str_cut(str_sub(rest, (size_t)at, rest.len), ' ', &op, &count)) {
        e.min_values.set = str_to_i64(count, &e.min_values.value);
        rest = str_trim(str_sub(rest, 0, (size_t)at));
    }
    struct str *items = arena_array(arena, struct str, 20);
    for (values = rest; values.len;) {
        str_cut(values, ',', &items[e.values.count++], &values);
    }
    e.values.items = items;
    return e;
}

static struct requirement req(struct arena *arena, const char *text)
{
    struct err err = { 0 };
    struct requirement r = { 0 };
    struct expression e = expression(arena, text);
    EXPECT_OK(requirement_from_expression(arena, &e, &r, &err), err);
    return r;
}

static void expect_format(const struct requirement *r, const char *want)
{
    AUTO_BUF b = { 0 };
    requirement_format(r, &b);
    EXPECT_STR(buf_str(&b), want);
}

#define INT64_MAX_TEXT "9223372036854775807"
#define INT64_MIN_TEXT "-9223372036854775808"

TEST(requirement_is_built_from_every_operator)
{
    AUTO_ARENA arena = { 0 };
    const struct {
        const char *text, *shows;
        enum requirement_op op;
        int64_t len;
    } rows[] = {
        { "In b,a,b", KEY " In [a b]", OP_IN, 2 },
        { "In", KEY " DoesNotExist", OP_DOES_NOT_EXIST, 0 },
        { "NotIn a", KEY " NotIn [a]", OP_NOT_IN, INT64_MAX - 1 },
        { "NotIn", KEY " Exists", OP_EXISTS, INT64_MAX },
        { "Exists", KEY " Exists", OP_EXISTS, INT64_MAX },
        { "DoesNotExist", KEY " DoesNotExist", OP_DOES_NOT_EXIST, 0 },
        { "Gt 3", KEY " Exists >=4", OP_EXISTS, INT64_MAX },
        { "Lt 3", KEY " Exists <=2", OP_EXISTS, INT64_MAX },
        { "Gte 3", KEY " Exists >=3", OP_EXISTS, INT64_MAX },
        { "Lte 3", KEY " Exists <=3", OP_EXISTS, INT64_MAX },
        { "Gt " INT64_MAX_TEXT, KEY " DoesNotExist", OP_DOES_NOT_EXIST, 0 },
        { "Gte " INT64_MAX_TEXT, KEY " Exists >=" INT64_MAX_TEXT, OP_EXISTS, INT64_MAX },
        { "Lt " INT64_MIN_TEXT, KEY " DoesNotExist", OP_DOES_NOT_EXIST, 0 },
        { "Lte " INT64_MIN_TEXT, KEY " Exists <=" INT64_MIN_TEXT, OP_EXISTS, INT64_MAX },
        { "In a,b minValues 2", KEY " In [a b] minValues 2", OP_IN, 2 },
        { "Exists minValues 3", KEY " Exists minValues 3", OP_EXISTS, INT64_MAX },
        { "In g,f,e,d,c,b,a", KEY " In [a b c d e and 2 others]", OP_IN, 7 },
        { "In e,d,c,b,a", KEY " In [a b c d e]", OP_IN, 5 },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        struct requirement r = req(&arena, rows[i].text);
        expect_format(&r, rows[i].shows);
        EXPECT_EQ(requirement_operator(&r), rows[i].op);
        EXPECT_EQ(requirement_len(&r), rows[i].len);
    }
}

TEST(requirement_refuses_comparisons_without_one_integer_and_unknown_operators)
{
    AUTO_ARENA arena = { 0 };
    const char *bad[] = { "Gt", "Gt a", "Lt 1,2", "Gte 1.5", "Lte 9223372036854775808", "Gt 0x3" };
    for (size_t i = 0; i < KV_COUNT_OF(bad); i++) {
        struct err err = { 0 };
        struct requirement r;
        struct expression e = expression(&arena, bad[i]);
        EXPECT_ERR(requirement_from_expression(&arena, &e, &r, &err), err, ERR_INVALID);
        EXPECT_HAS(str_of(err.text), KEY);
    }
    struct err err = { 0 };
    struct requirement r;
    struct expression unset = { .key = STR(KEY) };
    EXPECT_ERR(requirement_from_expression(&arena, &unset, &r, &err), err, ERR_INVALID);
}

TEST(requirement_owns_what_it_was_built_from_and_uses_current_names)
{
    AUTO_ARENA arena = { 0 };
    char value[] = "amd64", key[] = "beta.kubernetes.io/arch";
    struct str values[] = { str_of(value) };
    struct requirement r = requirement_in(&arena, str_of(key), (struct str_list){ values, 1 });
    memset(value, '?', sizeof value);
    memset(key, '?', sizeof key);
    values[0] = STR_NONE;
    expect_format(&r, LABEL_ARCH " In [amd64]");
    r = requirement_exists(&arena, STR("beta.kubernetes.io/os"));
    expect_format(&r, LABEL_OS " Exists");
    r = requirement_does_not_exist(&arena, STR("failure-domain.beta.kubernetes.io/zone"));
    expect_format(&r, LABEL_ZONE " DoesNotExist");
}

/* --- every requirement that can be made of these, and what they say of each possible value --- */

static const char *const all[] = {
    "In",
    "In a",
    "In b",
    "In 3",
    "In a,b",
    "In a,3",
    "In 2,3,4",
    "In -1",
    "NotIn",
    "NotIn a",
    "NotIn b",
    "NotIn 3",
    "NotIn a,3",
    "NotIn 2,3",
    "NotIn 2,3,4",
    "Exists",
    "DoesNotExist",
    "Gt 2",
    "Gt 3",
    "Gte 3",
    "Lt 3",
    "Lt 4",
    "Lte 3",
    "Gt -5",
    "Lt 0",
    "Lte 2",
    "Gte 4",
    "Gt 9223372036854775807",
    "In 3 minValues 1",
    "Exists minValues 2",
};
static const char *const universe[] = { "",
                                        "a",
                                        "b",
                                        "c",
                                        "-1",
                                        "0",
                                        "1",
                                        "2",
                                        "3",
                                        "03",
                                        "4",
                                        "5",
                                        INT64_MAX_TEXT,
                                        "99999999999999999999" };

TEST(requirement_intersection_holds_exactly_for_what_both_hold_for)
{
    AUTO_ARENA arena = { 0 };
    for (size_t i = 0; i < KV_COUNT_OF(all); i++) {
        for (size_t j = 0; j < KV_COUNT_OF(all); j++) {
            struct requirement a = req(&arena, all[i]), b = req(&arena, all[j]);
            struct requirement ab = requirement_intersection(&arena, &a, &b);
            struct requirement ba = requirement_intersection(&arena, &b, &a);
            EXPECT_TRUE(requirement_equal(&ab, &ba));
            for (size_t v = 0; v < KV_COUNT_OF(universe); v++) {
                struct str value = str_of(universe[v]);
                bool both = requirement_has(&a, value) && requirement_has(&b, value);
                EXPECT_EQ(requirement_has(&ab, value), both);
            }
            EXPECT_TRUE(ab.complement || (!ab.gte.set && !ab.lte.set));
            EXPECT_EQ(requirement_has_intersection(&a, &b),
                      requirement_operator(&ab) != OP_DOES_NOT_EXIST);
            EXPECT_EQ(requirement_has_intersection(&b, &a), requirement_has_intersection(&a, &b));
        }
    }
}

TEST(requirement_intersection_does_not_depend_on_the_order_of_three)
{
    AUTO_ARENA arena = { 0 };
    struct requirement parsed[KV_COUNT_OF(all)];
    for (size_t i = 0; i < KV_COUNT_OF(all); i++)
        parsed[i] = req(&arena, all[i]);
    for (size_t i = 0; i < KV_COUNT_OF(all); i++) {
        for (size_t j = 0; j < KV_COUNT_OF(all); j++) {
            AUTO_ARENA scratch = { 0 };
            struct requirement ij = requirement_intersection(&scratch, &parsed[i], &parsed[j]);
            for (size_t k = 0; k < KV_COUNT_OF(all); k++) {
                struct requirement jk = requirement_intersection(&scratch, &parsed[j], &parsed[k]);
                struct requirement left = requirement_intersection(&scratch, &ij, &parsed[k]);
                struct requirement right = requirement_intersection(&scratch, &parsed[i], &jk);
                EXPECT_EQ(left.min_values.set, right.min_values.set);
                for (size_t v = 0; v < KV_COUNT_OF(universe); v++)
                    EXPECT_EQ(requirement_has(&left, str_of(universe[v])),
                              requirement_has(&right, str_of(universe[v])));
            }
        }
    }
}

TEST(requirement_intersection_combines_bounds_and_min_values)
{
    AUTO_ARENA arena = { 0 };
    const struct {
        const char *a, *b, *shows;
    } rows[] = {
        { "Gt 1", "Gt 3", KEY " Exists >=4" },
        { "Lt 9", "Lte 5", KEY " Exists <=5" },
        { "Gt 3", "Lt 9", KEY " Exists >=4 <=8" },
        { "Gt 3 minValues 2", "Lt 3", KEY " DoesNotExist minValues 2" },
        { "NotIn a,5,9", "Gt 5", KEY " NotIn [9] >=6" },
        { "In 2,9,large", "Gte 9", KEY " In [9]" },
        { "In a,b", "NotIn a", KEY " In [b]" },
        { "NotIn a", "NotIn b", KEY " NotIn [a b]" },
        { "In a,b minValues 1", "Exists minValues 3", KEY " In [a b] minValues 3" },
        { "In a minValues 2", "In b", KEY " DoesNotExist minValues 2" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        struct requirement a = req(&arena, rows[i].a), b = req(&arena, rows[i].b);
        struct requirement both = requirement_intersection(&arena, &a, &b);
        expect_format(&both, rows[i].shows);
    }
}

TEST(requirement_counts_the_values_that_a_label_could_have)
{
    AUTO_ARENA arena = { 0 };
    const struct {
        const char *a, *b;
        int64_t count;
    } rows[] = {
        { "In a,b", "Exists", 2 },
        { "In a", "In b", 0 },
        { "Exists", "NotIn a", INT64_MAX },
        { "Gt 3", "Lt 9", 5 },
        { "Gt 3", "Lt 4", 0 },
        { "Gte 0", "Lte " INT64_MAX_TEXT, INT64_MAX },
        { "Gte 1", "Lte " INT64_MAX_TEXT, INT64_MAX },
        { "Gte 2", "Lte " INT64_MAX_TEXT, INT64_MAX - 1 },
        { "Gte " INT64_MAX_TEXT, "Exists", 1 },
        { "Lt 3", "Exists", 3 },
        { "Lt 0", "Exists", 0 },
        { "Gt -100", "Lt 2", 2 },
        { "Lt 3", "NotIn 0,1,2", 0 },
        { "Lt 3", "NotIn 0,01,1,a,7", 1 },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        struct requirement a = req(&arena, rows[i].a), b = req(&arena, rows[i].b);
        struct requirement both = requirement_intersection(&arena, &a, &b);
        EXPECT_EQ(requirement_possible_count(&both), rows[i].count);
    }
}

TEST(requirement_any_is_a_value_that_holds_and_always_the_same_one)
{
    AUTO_ARENA arena = { 0 };
    for (size_t i = 0; i < KV_COUNT_OF(all); i++) {
        for (size_t j = 0; j < KV_COUNT_OF(all); j++) {
            struct requirement a = req(&arena, all[i]), b = req(&arena, all[j]);
            struct requirement r = requirement_intersection(&arena, &a, &b);
            for (uint64_t seed = 0; seed < 4; seed++) {
                struct str value = requirement_any(&arena, &r, seed);
                EXPECT_TRUE(str_eq(value, requirement_any(&arena, &r, seed)));
                if (requirement_possible_count(&r) > 0)
                    EXPECT_TRUE(requirement_has(&r, value));
                else
                    EXPECT_STR(value, "");
            }
        }
    }
    struct requirement full = req(&arena, "Lt 3"), holes = req(&arena, "NotIn 0,1,2");
    full = requirement_intersection(&arena, &full, &holes);
    EXPECT_STR(requirement_any(&arena, &full, 1), "");
    struct requirement r = requirement_exists(&arena, STR(KEY));
    EXPECT_FALSE(str_eq(requirement_any(&arena, &r, 1), requirement_any(&arena, &r, 2)));
}

TEST(requirement_equality_is_of_the_whole_record)
{
    AUTO_ARENA arena = { 0 };
    struct requirement parsed[KV_COUNT_OF(all)];
    for (size_t i = 0; i < KV_COUNT_OF(all); i++)
        parsed[i] = req(&arena, all[i]);
    for (size_t i = 0; i < KV_COUNT_OF(all); i++) {
        for (size_t j = 0; j < KV_COUNT_OF(all); j++) {
            AUTO_BUF a = { 0 }, b = { 0 };
            requirement_format(&parsed[i], &a);
            requirement_format(&parsed[j], &b);
            EXPECT_EQ(requirement_equal(&parsed[i], &parsed[j]), str_eq(buf_str(&a), buf_str(&b)));
        }
    }
    /* Where the text leaves something out, equality does not. */
    struct requirement x = req(&arena, "In a,b,c,d,e,f"), y = req(&arena, "In a,b,c,d,e,g");
    EXPECT_FALSE(requirement_equal(&x, &y));
    struct requirement other = x;
    other.key = STR("other");
    EXPECT_FALSE(requirement_equal(&x, &other));
}

/* One operator on one value: texts, regular expressions, integers, versions.
 *
 * A regular expression backtracks. It gets few steps at first, which do for any sensible pattern;
 * one that needs more gets all that a single search may take, and what was spent is counted, so that
 * thousands of names and a pattern that is slow on each of them come to an end.
 */
#include "codec/regex.h"
#include "compat/rule_inner.h"

#define SEARCH_STEPS_PER_BYTE 64
#define SEARCH_STEPS_MAX 2000000 /* of one search: codec/regex.c */

/* --- versions --- */

static bool take_number(struct str *rest, uint64_t *out)
{
    struct str digits = str_take_digits(rest);
    uint64_t n = 0;
    for (size_t i = 0; i < digits.len; i++) {
        if (__builtin_mul_overflow(n, 10u, &n) ||
            __builtin_add_overflow(n, (uint64_t)(digits.p[i] - '0'), &n))
            return false;
    }
    *out = n;
    return digits.len > 0;
}

/* Dot-separated runs of letters, digits and dashes off the front of `rest`. */
static bool take_runs(struct str *rest, bool no_leading_zeros)
{
    for (;;) {
        size_t len = 0;
        bool numeric = true;
        while (len < rest->len && (char_is_alnum(rest->p[len]) || rest->p[len] == '-')) {
            numeric = numeric && char_is_digit(rest->p[len]);
            len++;
        }
        if (len == 0 || (no_leading_zeros && numeric && len > 1 && rest->p[0] == '0'))
            return false;
        *rest = str_sub(*rest, len, rest->len);
        if (!str_starts(*rest, STR(".")))
            return true;
        *rest = str_sub(*rest, 1, rest->len);
    }
}

/* What follows the numbers is a pre-release and a build, or nothing. */
static bool tail_is_strict(struct str rest)
{
    if (str_starts(rest, STR("-"))) {
        rest = str_sub(rest, 1, rest.len);
        if (!take_runs(&rest, true))
            return false;
    }
    if (str_starts(rest, STR("+"))) {
        rest = str_sub(rest, 1, rest.len);
        if (!take_runs(&rest, false))
            return false;
    }
    return rest.len == 0;
}

bool version_parse(struct str text, struct version *out)
{
    struct str rest = text;
    *out = (struct version){ 0 };
    if (str_starts(rest, STR("v")))
        rest = str_sub(rest, 1, rest.len);
    if (!take_number(&rest, &out->number[0]))
        return false;
    for (size_t i = 1; i < 3; i++) {
        if (rest.len < 2 || rest.p[0] != '.' || !char_is_digit(rest.p[1]))
            break;
        rest = str_sub(rest, 1, rest.len);
        if (!take_number(&rest, &out->number[i]))
            return false;
    }
    out->strict = tail_is_strict(rest);
    return true;
}

int version_cmp(const struct version *a, const struct version *b)
{
    for (size_t i = 0; i < 3; i++) {
        if (a->number[i] != b->number[i])
            return a->number[i] < b->number[i] ? -1 : 1;
    }
    return 0;
}

/* --- operands --- */

static bool op_is_range(enum feature_op op)
{
    return op == FEATURE_GT_LT || op == FEATURE_GE_LE;
}

bool op_compares(enum feature_op op)
{
    return op == FEATURE_GT || op == FEATURE_GE || op == FEATURE_LT || op == FEATURE_LE ||
           op_is_range(op);
}

static const char *count_trouble(enum feature_op op, uint32_t count)
{
    switch (op) {
    case FEATURE_OP_UNSET:
    case FEATURE_EXISTS:
    case FEATURE_DOES_NOT_EXIST:
    case FEATURE_IS_TRUE:
    case FEATURE_IS_FALSE:
        return count == 0 ? NULL : "takes no value";
    case FEATURE_IN:
    case FEATURE_NOT_IN:
    case FEATURE_IN_REGEXP:
        return count > 0 ? NULL : "takes at least one value";
    case FEATURE_GT:
    case FEATURE_GE:
    case FEATURE_LT:
    case FEATURE_LE:
        return count == 1 ? NULL : "takes exactly one value";
    case FEATURE_GT_LT:
    case FEATURE_GE_LE:
        return count == 2 ? NULL : "takes exactly two values";
    }
    KV_UNREACHABLE();
}

static struct str op_trouble(struct rules *rules, enum feature_op op, const char *what)
{
    return arena_strf(
        &rules->arena, "%s %s",
        op == FEATURE_OP_UNSET ? "an expression without operator" : feature_op_name(op), what);
}

static void prepare_comparison(struct rules *rules, struct rule_expression *x, struct str type)
{
    const struct rule_wish *wish = x->wish;
    if (type.len > 0 && !wish->versions) {
        x->broken = arena_strf(&rules->arena, "type %s is not known, expected \"version\"",
                               STR_SHOWN(type));
        return;
    }
    for (uint32_t i = 0; i < wish->values.count; i++) {
        struct str text = wish->values.items[i];
        bool fits = wish->versions ? version_parse(text, &x->versions[i])
                                   : str_to_i64(text, &x->integers[i]);
        if (!fits) {
            x->broken = arena_strf(&rules->arena, "%s is not %s", STR_SHOWN(text),
                                   wish->versions ? "a version" : "an integer");
            return;
        }
    }
    if (op_is_range(wish->op) && !wish->versions && x->integers[0] >= x->integers[1])
        x->broken = op_trouble(rules, wish->op, "takes a first value that is less than the second");
}

static void prepare_patterns(struct rules *rules, struct rule_expression *x)
{
    uint32_t count = x->wish->values.count;
    struct err err = { 0 };
    x->patterns = arena_array(&rules->arena, struct regex *, count);
    for (uint32_t i = 0; i < count; i++) {
        struct regex *re = NULL;
        if (regex_compile(x->wish->values.items[i], &re, &err) < 0) {
            x->broken =
                arena_strf(&rules->arena, "%s: %s", STR_SHOWN(x->wish->values.items[i]), err.text);
            return;
        }
        vec_push(&rules->patterns, re);
        x->patterns[x->pattern_count++] = re;
    }
}

static void prepare_texts(struct rules *rules, struct rule_expression *x)
{
    uint32_t count = x->wish->values.count;
    struct str *sorted = arena_array(&rules->arena, struct str, count);
    memcpy(sorted, x->wish->values.items, count * sizeof *sorted);
    x->sorted.count = (uint32_t)str_sort_unique(sorted, count);
    x->sorted.items = sorted;
}

void expression_prepare(struct rules *rules, struct rule_expression *x, bool op_is_known,
                        struct str type)
{
    enum feature_op op = x->wish->op;
    const char *trouble = count_trouble(op, x->wish->values.count);
    if (!op_is_known)
        x->broken = STR("the operator is missing, or not one that is known here");
    else if (trouble)
        x->broken = op_trouble(rules, op, trouble);
    else if (op_compares(op))
        prepare_comparison(rules, x, type);
    else if (op == FEATURE_IN_REGEXP)
        prepare_patterns(rules, x);
    else if (op == FEATURE_IN || op == FEATURE_NOT_IN)
        prepare_texts(rules, x);
}

/* --- values --- */

static enum value_result test_patterns(const struct rule_expression *x, struct str value,
                                       struct value_test *test)
{
    for (uint32_t i = 0; i < x->pattern_count; i++) {
        int64_t steps = SEARCH_STEPS_PER_BYTE * ((int64_t)value.len + 1);
        if (steps < SEARCH_STEPS_MAX) {
            test->work -= steps;
            int found =
                test->work < 0 ? -1 : regex_search_within(x->patterns[i], value, (uint32_t)steps);
            if (found == 1)
                return VALUE_YES;
            if (found == 0)
                continue;
        }
        test->work -= steps < SEARCH_STEPS_MAX ? SEARCH_STEPS_MAX : steps;
        int found = test->work < 0 ? -1 : regex_search(x->patterns[i], value);
        if (found < 0)
            return VALUE_TOO_LONG;
        if (found == 1)
            return VALUE_YES;
    }
    return VALUE_NO;
}

/* The signs of comparing the value with the first operand and the second. */
static bool order_holds(enum feature_op op, int first, int second)
{
    if (op == FEATURE_GT)
        return first > 0;
    if (op == FEATURE_GE)
        return first >= 0;
    if (op == FEATURE_LT)
        return first < 0;
    if (op == FEATURE_LE)
        return first <= 0;
    if (op == FEATURE_GT_LT)
        return first > 0 && second < 0;
    KV_ASSERT(op == FEATURE_GE_LE);
    return first >= 0 && second <= 0;
}

static enum value_result test_versions(const struct rule_expression *x, struct str value,
                                       struct value_test *test)
{
    struct version v;
    if (!version_parse(value, &v))
        return VALUE_NOT_COMPARABLE;
    bool strict = true;
    for (uint32_t i = 0; i < x->wish->values.count; i++)
        strict = strict && x->versions[i].strict;
    if (test->strict_versions && !(strict && v.strict))
        return strict ? VALUE_NOT_COMPARABLE : VALUE_OPERAND_REFUSED;
    test->lenient = test->lenient || !(strict && v.strict);
    return order_holds(x->wish->op, version_cmp(&v, &x->versions[0]),
                       version_cmp(&v, &x->versions[1]))
               ? VALUE_YES
               : VALUE_NO;
}

static enum value_result test_integers(const struct rule_expression *x, struct str value)
{
    int64_t n;
    if (!str_to_i64(value, &n))
        return VALUE_NOT_COMPARABLE;
    int first = (n > x->integers[0]) - (n < x->integers[0]);
    int second = (n > x->integers[1]) - (n < x->integers[1]);
    return order_holds(x->wish->op, first, second) ? VALUE_YES : VALUE_NO;
}

enum value_result expression_test(const struct rule_expression *x, struct str value,
                                  struct value_test *test)
{
    enum feature_op op = x->wish->op;
    if (op_compares(op))
        return x->wish->versions ? test_versions(x, value, test) : test_integers(x, value);
    if (op == FEATURE_IN_REGEXP)
        return test_patterns(x, value, test);
    bool holds;
    if (op == FEATURE_IS_TRUE || op == FEATURE_IS_FALSE)
        holds = str_eqz(value, op == FEATURE_IS_TRUE ? "true" : "false");
    else
        holds = str_sorted_has(x->sorted.items, x->sorted.count, value) == (op == FEATURE_IN);
    return holds ? VALUE_YES : VALUE_NO;
}

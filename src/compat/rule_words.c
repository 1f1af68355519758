/* Why a rule does not match, in words. Texts of rules and nodes come from outside and are quoted. */
#include "compat/rule_inner.h"

#define VALUES_SHOWN_MAX 8
#define WISHES_SHOWN_MAX 8

const char *feature_op_name(enum feature_op op)
{
    static const char *const names[] = {
        [FEATURE_OP_UNSET] = "",      [FEATURE_IN] = "In",
        [FEATURE_NOT_IN] = "NotIn",   [FEATURE_IN_REGEXP] = "InRegexp",
        [FEATURE_EXISTS] = "Exists",  [FEATURE_DOES_NOT_EXIST] = "DoesNotExist",
        [FEATURE_GT] = "Gt",          [FEATURE_GE] = "Ge",
        [FEATURE_LT] = "Lt",          [FEATURE_LE] = "Le",
        [FEATURE_GT_LT] = "GtLt",     [FEATURE_GE_LE] = "GeLe",
        [FEATURE_IS_TRUE] = "IsTrue", [FEATURE_IS_FALSE] = "IsFalse",
    };
    return names[op];
}

static void add_values(const struct str_list *values, struct buf *out)
{
    for (uint32_t i = 0; i < values->count && i < VALUES_SHOWN_MAX; i++)
        buf_addf(out, "%s%s", i ? ", " : "", STR_SHOWN(values->items[i]));
    if (values->count > VALUES_SHOWN_MAX)
        buf_addf(out, " and %u more", values->count - VALUES_SHOWN_MAX);
}

static void add_one_of(const char *one, const char *several, const struct str_list *values,
                       struct buf *out)
{
    buf_addz(out, values->count == 1 ? one : several);
    add_values(values, out);
}

/* "before, the first value", and for ranges "between, the second". */
static void add_bounds(const struct rule_wish *wish, const char *before, const char *between,
                       struct buf *out)
{
    if (wish->versions)
        buf_addz(out, "a version ");
    buf_addz(out, before);
    for (uint32_t i = 0; i < wish->values.count && i < 2; i++) {
        struct str value = wish->values.items[i];
        buf_addz(out, i ? between : "");
        name_format(value, out);
    }
}

/* What the element should be: "to exist", "one of "5", "6"", "at least 5". */
static void add_wish(const struct rule_wish *wish, struct buf *out)
{
    const struct str_list *values = &wish->values;
    switch (wish->op) {
    case FEATURE_OP_UNSET:
        buf_addz(out, "anything");
        return;
    case FEATURE_EXISTS:
        buf_addz(out, "to exist");
        return;
    case FEATURE_DOES_NOT_EXIST:
        buf_addz(out, "not to exist");
        return;
    case FEATURE_IN:
        add_one_of("", "one of ", values, out);
        return;
    case FEATURE_NOT_IN:
        add_one_of("another value than ", "none of ", values, out);
        return;
    case FEATURE_IN_REGEXP:
        add_one_of("a match of ", "a match of one of ", values, out);
        return;
    case FEATURE_GT:
        add_bounds(wish, "above ", "", out);
        return;
    case FEATURE_GE:
        add_bounds(wish, "of at least ", "", out);
        return;
    case FEATURE_LT:
        add_bounds(wish, "below ", "", out);
        return;
    case FEATURE_LE:
        add_bounds(wish, "of at most ", "", out);
        return;
    case FEATURE_GT_LT:
        add_bounds(wish, "above ", " and below ", out);
        return;
    case FEATURE_GE_LE:
        add_bounds(wish, "from ", " to ", out);
        return;
    case FEATURE_IS_TRUE:
        buf_addz(out, "\"true\"");
        return;
    case FEATURE_IS_FALSE:
        buf_addz(out, "\"false\"");
        return;
    }
    KV_UNREACHABLE();
}

static void add_state(const struct rule_reason *r, struct buf *out)
{
    switch (r->state) {
    case ELEMENT_ABSENT:
        buf_addz(out, "is absent");
        return;
    case ELEMENT_FLAG:
        buf_addz(out, "is there, as a flag without a value");
        return;
    case ELEMENT_VALUE:
        buf_addf(out, "found %s", STR_SHOWN(r->found));
        return;
    case ELEMENT_UNKNOWN:
        buf_addz(out, "is not known");
        return;
    }
    KV_UNREACHABLE();
}

static void add_instances(const struct rule_reason *r, struct buf *out)
{
    if (r->instance_count == 0)
        buf_addz(out, "there are no instances");
    else if (r->instance_count == 1)
        buf_addz(out, "the one instance does not have");
    else
        buf_addf(out, "none of %u different instances has", r->instance_count);
    if (r->instance_count == 0)
        buf_addz(out, r->wish_count ? " with" : "");
    for (uint32_t i = 0; i < r->wish_count && i < WISHES_SHOWN_MAX; i++) {
        buf_addz(out, i ? " and " : " ");
        name_format(r->wishes[i].element, out);
        buf_addc(out, ' ');
        add_wish(&r->wishes[i], out);
    }
    if (r->wish_count > WISHES_SHOWN_MAX)
        buf_addf(out, " and %u more", r->wish_count - WISHES_SHOWN_MAX);
    if (r->match == MATCH_UNKNOWN)
        buf_addz(out, ", but not all is known");
}

static void add_place(const struct rule_reason *r, struct buf *out)
{
    buf_addf(out, "rule %s: ", STR_SHOWN(r->rule));
    if (r->alternative_ix != RULE_REASON_MATCH_FEATURES)
        buf_addf(out, "alternative %u: ", r->alternative_ix + 1);
    if (r->kind == REASON_TEMPLATE)
        return;
    name_format(r->feature, out);
    if (r->wish_count == 1 && r->kind != REASON_INSTANCES && r->wishes->element.p) {
        buf_addc(out, ' ');
        name_format(r->wishes->element, out);
    }
    buf_addz(out, ": ");
}

void rule_reason_format(const struct rule_reason *r, struct buf *out)
{
    add_place(r, out);
    switch (r->kind) {
    case REASON_FEATURE:
        buf_addz(out, r->state == ELEMENT_UNKNOWN ? "it is not known whether the node has it"
                                                  : "the node does not have this feature");
        return;
    case REASON_ELEMENT:
        buf_addz(out, "expected ");
        add_wish(r->wishes, out);
        buf_addz(out, ", ");
        add_state(r, out);
        return;
    case REASON_INSTANCES:
        add_instances(r, out);
        return;
    case REASON_NAMES:
        buf_addz(out, "no name is as expected, ");
        add_wish(r->wishes, out);
        if (r->match == MATCH_UNKNOWN)
            buf_addz(out, ", but not all are known");
        return;
    case REASON_OPERANDS:
        buf_addf(out, "the rule is wrong: %.*s", STR_ARG(r->trouble));
        return;
    case REASON_VALUE:
        buf_addf(out, "cannot be compared by %s: %s %.*s", feature_op_name(r->wishes->op),
                 STR_SHOWN(r->found), STR_ARG(r->trouble));
        return;
    case REASON_WORK:
        buf_addz(out, "the rules take too much work");
        return;
    case REASON_TEMPLATE:
        buf_addz(out, "it has a varsTemplate, which only NFD can expand");
        return;
    }
    KV_UNREACHABLE();
}

/* compat/rule_inner.h - compiled rules, for the files that make, match and explain them. */
#pragma once

#include "compat/rule.h"

struct regex;

struct version {
    uint64_t number[3];
    bool strict; /* NFD would take it */
};

struct rule_expression {
    const struct rule_wish *wish;
    /* What is wrong with the operands, or absent. Found when the element has a value, or always if
     * the operator looks at presence alone. */
    struct str broken;
    struct str_list sorted; /* operands of In and NotIn */
    struct regex **patterns;
    uint32_t pattern_count;
    int64_t integers[2];
    struct version versions[2];
};

struct rule_term {
    struct str feature;   /* lower case */
    bool is_vars;         /* rule.matched: also what earlier rules say */
    bool may_err;         /* on some value: then no instance is skipped */
    bool has_expressions; /* perhaps none */
    uint32_t expression_count;
    const struct rule_expression *expressions; /* sorted by element */
    const struct rule_expression *maybe_name;
    const struct rule_wish *wishes; /* of the expressions, in a row */
};

struct rule_terms {
    const struct rule_term *items;
    uint32_t count;
};

struct group_rule {
    struct str name;
    struct rule_terms terms;
    const struct rule_terms *alternatives;
    uint32_t alternative_count;
    struct str_map vars;
    bool templated;
};

struct rules {
    struct rc rc;
    struct arena arena; /* owns everything but the patterns' insides */
    const struct group_rule *items;
    uint32_t count;
    VEC(struct regex *) patterns; /* of all expressions */
    bool require_nfd;
};

/* --- values (rule_value.c) --- */

/* False: not even lenient reading finds a number, or one is beyond 64 bits. */
bool version_parse(struct str text, struct version *out);
int version_cmp(const struct version *a, const struct version *b); /* the numbers alone */

/* Whether the operator looks at presence alone. */
static inline bool op_is_presence(enum feature_op op)
{
    return op == FEATURE_OP_UNSET || op == FEATURE_EXISTS || op == FEATURE_DOES_NOT_EXIST;
}
bool op_compares(enum feature_op op);

/* Fill what the operator needs from the wish; `broken` says what is wrong. The patterns are added to
 * the rules. */
void expression_prepare(struct rules *rules, struct rule_expression *expression, bool op_is_known,
                        struct str type);

/* Matching one value. */
struct value_test {
    bool strict_versions;
    bool lenient; /* out: a version was read that NFD refuses */
    int64_t work; /* left; below 0: too much */
};
enum value_result {
    VALUE_NO,
    VALUE_YES,
    VALUE_NOT_COMPARABLE,
    VALUE_OPERAND_REFUSED, /* of strict versions */
    VALUE_TOO_LONG,
};
/* The expression is not broken and its operator not of presence. */
enum value_result expression_test(const struct rule_expression *expression, struct str value,
                                  struct value_test *test);

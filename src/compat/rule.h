/* compat/rule.h - rules over the features of a node: what an image's compatibility sets and
 * NodeFeatureGroups are made of.
 *
 * The answer is the one that nfd-master would give, with what it leaves to chance settled: elements
 * are looked at in sorted order, and instances all of them. Beyond that
 *  - about a node that is only predicted a rule may answer "unknown", never a wrong yes or no (taking
 *    a value that is not known to be one that the operator can read);
 *  - versions may be read leniently (`6.1.115-126.amzn2023.x86_64` is none to NFD);
 *  - every answer but "yes" can say why.
 *
 * Rules are compiled once and matched many times, by any number of threads. Matching allocates
 * nothing, except inside the regular expressions, and does a bounded amount of work.
 */
#pragma once

#include "base/rc.h"
#include "compat/feature_set.h"

#define RULES_MAX 256            /* in one group */
#define RULES_TERMS_MAX 4096     /* in all rules of a group; so many alternatives, too */
#define RULES_VALUES_MAX 65536   /* elements and operands in all rules of a group */
#define RULES_PATTERNS_MAX 256   /* regular expressions: a small one can take 64 KiB compiled */
#define RULES_WORK_MAX (1 << 28) /* steps of a match, about those of a regular expression */

/* In this order AND is the least of all and OR the greatest. Only MATCH_YES lets a node in;
 * MATCH_ERROR is a "no" whose cause is the rule or the node's value, not their disagreement. */
enum match { MATCH_NO, MATCH_ERROR, MATCH_UNKNOWN, MATCH_YES };

/* --- compiling --- */

/* Immutable and counted. */
struct rules;

struct rules_source {
    const struct feature_rule *items;
    uint32_t count;
    /* An expression without an operator always matches. So it is in an image's rules; in a
     * NodeFeatureGroup it can only be an operator that this program does not know, and is an error. */
    bool op_is_optional;
};

/* Copies what it needs. A rule that nfd-master would trip over (operands that are none, patterns
 * that do not compile) compiles: it is an error when a match gets there. What fails is too much of
 * anything: ERR_INVALID. */
int rules_compile(struct rules_source source, const struct rules **out, struct err *err);
const struct rules *rules_ref(const struct rules *rules);
void rules_unref(const struct rules *rules); /* NULL is fine */

static inline void rules_unref_cleanup(const struct rules **rules)
{
    rules_unref(*rules);
}
#define AUTO_RULES __attribute__((cleanup(rules_unref_cleanup))) const struct rules *

uint32_t rules_count(const struct rules *rules);
struct str rules_name(const struct rules *rules, uint32_t ix);
uint32_t rules_pattern_count(const struct rules *rules);
size_t rules_bytes(const struct rules *rules); /* of memory, about */
/* Some rule has a varsTemplate, which only NFD can expand: such a rule is never more than
 * MATCH_UNKNOWN here. */
bool rules_require_nfd(const struct rules *rules);
/* What a feature set must keep so that these rules see no difference. Borrows from the rules. */
void rules_mention(const struct rules *rules, struct feature_mask *mask);

/* --- matching --- */

enum rule_combine {
    RULES_ANY,
    RULES_ALL
}; /* one rule suffices, as in a NodeFeatureGroup; or all */

struct rules_options {
    enum rule_combine combine;
    bool strict_versions; /* as NFD reads them; else up to the first character that does not fit */
};

struct rules_outcome {
    enum match match;
    uint32_t rule_ix; /* the rule that decided; with RULES_ANY and no match, the nearest to one */
    /* A version that NFD refuses was read leniently: there the rule is an error. */
    bool nfd_differs;
};

/* No rules at all: nothing is asked for, MATCH_YES. The set must keep what the rules mention. */
struct rules_outcome rules_match(const struct rules *rules, const struct feature_set *set,
                                 struct rules_options options);

/* --- explaining --- */

enum rule_reason_kind {
    REASON_FEATURE,   /* the node does not have the feature, or it is unknown whether it has */
    REASON_ELEMENT,   /* an element is not as wanted */
    REASON_INSTANCES, /* no instance has all that is wanted */
    REASON_NAMES,     /* no element has a name as wanted */
    REASON_OPERANDS,  /* the rule itself is wrong */
    REASON_VALUE,     /* the node's value cannot be compared */
    REASON_WORK,      /* matching takes too long */
    REASON_TEMPLATE,  /* only NFD can say */
};

enum element_state { ELEMENT_ABSENT, ELEMENT_FLAG, ELEMENT_VALUE, ELEMENT_UNKNOWN };

struct rule_wish {      /* one expression */
    struct str element; /* absent: of names */
    enum feature_op op;
    bool versions;
    struct str_list values;
};

#define RULE_REASON_MATCH_FEATURES UINT32_MAX

struct rule_reason { /* borrows from the rules and the set */
    uint32_t rule_ix;
    uint32_t alternative_ix; /* in matchAny, or RULE_REASON_MATCH_FEATURES */
    uint32_t term_ix;        /* in its matchFeatures */
    enum match match;        /* never MATCH_YES */
    enum rule_reason_kind kind;
    struct str rule, feature;       /* names */
    const struct rule_wish *wishes; /* the one that failed; of REASON_INSTANCES all */
    uint32_t wish_count;
    enum element_state state;
    struct str found;        /* of ELEMENT_VALUE */
    uint32_t instance_count; /* of REASON_INSTANCES */
    struct str trouble;      /* of REASON_OPERANDS and REASON_VALUE: what is wrong */
};

struct rule_reasons {
    const struct rule_reason *items; /* of each rule that does not match; in order */
    uint32_t count;
};

/* Why the rules do not match: for each that does not, what is missing in matchFeatures, or in every
 * alternative. Empty if all match. The list is the arena's. */
struct rule_reasons rules_explain(struct arena *arena, const struct rules *rules,
                                  const struct feature_set *set, struct rules_options options);

/* `rule "avx2": cpu.cpuid AVX2: expected to exist, is absent`. No newline. */
void rule_reason_format(const struct rule_reason *reason, struct buf *out);

const char *feature_op_name(enum feature_op op); /* "InRegexp"; "" for FEATURE_OP_UNSET */

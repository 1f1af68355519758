/* Matching rules with a feature set.
 *
 * Every part of a rule has a set of outcomes that are possible: no, error, yes. With complete
 * features there is one; a part that depends on something unknown has several. The sets are combined
 * as nfd-master's evaluation would proceed from each of their members:
 *
 *  - terms and expressions one after the other, up to the first that is not a yes;
 *  - alternatives one after the other, up to the first that is not a no;
 *  - flags, attributes, instances and names all of them: an error anywhere is an error, else a yes
 *    anywhere is a yes.
 *
 * What one rule says in `vars` the later ones find in the attribute feature rule.matched. Which
 * rules have matched is kept as bits, and a look-up goes back over them: nothing is copied.
 */
#include "compat/rule_inner.h"

typedef unsigned outcomes; /* the sum of some of these */
enum { CAN_NO = 1, CAN_ERR = 2, CAN_YES = 4 };
#define EITHER (CAN_NO | CAN_YES)

struct evaluation {
    const struct rules *rules;
    const struct feature_set *set;
    struct value_test test;
    /* Of the rules before this one, what each could be. */
    uint8_t earlier[RULES_MAX];
    uint32_t rule_ix;
    outcomes vars; /* does the feature rule.matched exist by now: CAN_NO, CAN_YES or both */
    struct rule_reason why;    /* of the last part that was not a clear yes */
    struct arena *maybe_arena; /* collect the reasons */
    VEC(struct rule_reason) reasons;
};

/* --- combining --- */

/* `next` is looked at only after a yes. */
static outcomes and_then(outcomes sofar, outcomes next)
{
    return sofar & CAN_YES ? (sofar & ~(outcomes)CAN_YES) | next : sofar;
}

/* `next` is looked at only after a no. */
static outcomes or_else(outcomes sofar, outcomes next)
{
    return sofar & CAN_NO ? (sofar & ~(outcomes)CAN_NO) | next : sofar;
}

/* Both are looked at, and an error counts before everything. */
static outcomes either(outcomes a, outcomes b)
{
    outcomes sum = (a | b) & CAN_ERR;
    if ((a & CAN_NO) && (b & CAN_NO))
        sum |= CAN_NO;
    if ((a & CAN_YES && b & EITHER) || (b & CAN_YES && a & EITHER))
        sum |= CAN_YES;
    return sum;
}

static outcomes both(outcomes a, outcomes b)
{
    outcomes sum = (a | b) & CAN_ERR;
    if ((a & CAN_YES) && (b & CAN_YES))
        sum |= CAN_YES;
    if ((a & CAN_NO && b & EITHER) || (b & CAN_NO && a & EITHER))
        sum |= CAN_NO;
    return sum;
}

static enum match match_of(outcomes o)
{
    if (o == CAN_YES)
        return MATCH_YES;
    if (o & CAN_YES)
        return MATCH_UNKNOWN;
    return o & CAN_ERR ? MATCH_ERROR : MATCH_NO;
}

/* --- one expression --- */

static outcomes broken(struct evaluation *e, struct str trouble)
{
    e->why = (struct rule_reason){ .kind = REASON_OPERANDS, .trouble = trouble };
    return CAN_ERR;
}

static outcomes on_value(struct evaluation *e, const struct rule_expression *x, struct str value)
{
    if (x->broken.p)
        return broken(e, x->broken);
    switch (expression_test(x, value, &e->test)) {
    case VALUE_NO:
        return CAN_NO;
    case VALUE_YES:
        return CAN_YES;
    case VALUE_NOT_COMPARABLE:
        e->why = (struct rule_reason){ .kind = REASON_VALUE,
                                       .found = value,
                                       .trouble = x->wish->versions ? STR("is not a version")
                                                                    : STR("is not an integer") };
        return CAN_ERR;
    case VALUE_OPERAND_REFUSED:
        return broken(e, STR("an operand is not a version that NFD can read"));
    case VALUE_TOO_LONG:
        e->why = (struct rule_reason){ .kind = REASON_WORK };
        return CAN_ERR;
    }
    KV_UNREACHABLE();
}

/* A part of the feature has the element or not; a flag has no value. */
static outcomes on_element(struct evaluation *e, const struct rule_expression *x,
                           enum element_state state, struct str value)
{
    enum feature_op op = x->wish->op;
    if (--e->test.work < 0) {
        e->why = (struct rule_reason){ .kind = REASON_WORK };
        return CAN_ERR;
    }
    if (op_is_presence(op)) {
        if (x->broken.p)
            return broken(e, x->broken);
        if (op == FEATURE_OP_UNSET)
            return CAN_YES;
        if (state == ELEMENT_UNKNOWN)
            return EITHER;
        return (state != ELEMENT_ABSENT) == (op == FEATURE_EXISTS) ? CAN_YES : CAN_NO;
    }
    if (state == ELEMENT_VALUE)
        return on_value(e, x, value);
    if (state == ELEMENT_UNKNOWN)
        return x->broken.p ? CAN_NO | CAN_ERR : EITHER;
    return CAN_NO;
}

/* Say what was found, unless it is an error that has said it itself. */
static void explain_element(struct evaluation *e, const struct rule_expression *x, outcomes result,
                            enum element_state state, struct str value)
{
    if (result == CAN_ERR) {
        e->why.wishes = x->wish;
        e->why.wish_count = 1;
    } else if (result != CAN_YES) {
        e->why = (struct rule_reason){
            .kind = REASON_ELEMENT, .wishes = x->wish, .wish_count = 1, .state = state
        };
        if (state == ELEMENT_VALUE)
            e->why.found = value;
    }
}

/* --- flags and attributes --- */

/* What earlier rules say of an element of rule.matched: ELEMENT_ABSENT if they do not say. */
static enum element_state find_var(const struct evaluation *e, struct str name, struct str *value)
{
    for (uint32_t i = e->rule_ix; i-- > 0;) {
        const struct group_rule *rule = &e->rules->items[i];
        outcomes was = e->earlier[i];
        struct str found = str_map_get(&rule->vars, name);
        if (!(was & CAN_YES) || (!found.p && !rule->templated))
            continue;
        /* A template is never expanded, so a rule that has one is never a clear yes. */
        if (was != CAN_YES)
            return ELEMENT_UNKNOWN;
        *value = found;
        return ELEMENT_VALUE;
    }
    return ELEMENT_ABSENT;
}

/* One feature, as a term sees it. */
struct view {
    const struct rule_term *term;
    const struct set_feature *maybe_feature; /* NULL: only earlier rules speak of it */
    bool vars;                               /* earlier rules do */
};

static bool view_has(const struct view *v, uint32_t wanted)
{
    return v->maybe_feature && v->maybe_feature->kinds & wanted;
}

static bool view_is_partial(const struct view *v)
{
    return v->maybe_feature && v->maybe_feature->completeness == FEATURE_PARTIAL;
}

/* An element that is neither a flag nor an attribute that is known. */
static bool may_be_there(const struct evaluation *e, const struct view *v, struct str name)
{
    const struct set_feature *f = v->maybe_feature;
    if (view_is_partial(v))
        return !feature_set_is_absent(e->set, f, name);
    return f && feature_set_is_unsure(e->set, f, name);
}

static enum element_state find_attribute(const struct evaluation *e, const struct view *v,
                                         struct str name, struct str *value)
{
    enum element_state state = v->vars ? find_var(e, name, value) : ELEMENT_ABSENT;
    if (state != ELEMENT_ABSENT || !v->maybe_feature)
        return state;
    *value = feature_set_value(e->set, v->maybe_feature->attributes, name);
    return value->p ? ELEMENT_VALUE : ELEMENT_ABSENT;
}

/* A flag and an attribute may have the same name. It is enough if the expression holds of one of
 * them, but an element that does not exist exists as neither. */
static outcomes plain_expression(struct evaluation *e, const struct view *v,
                                 const struct rule_expression *x)
{
    struct str name = x->wish->element, value = STR_NONE;
    const struct set_feature *f = v->maybe_feature;
    enum element_state flag =
        f && feature_set_has_flag(e->set, f, name) ? ELEMENT_FLAG : ELEMENT_ABSENT;
    enum element_state attribute = find_attribute(e, v, name, &value);
    if (flag == ELEMENT_ABSENT && attribute == ELEMENT_ABSENT && may_be_there(e, v, name))
        attribute = ELEMENT_UNKNOWN;

    outcomes result;
    if (attribute == ELEMENT_ABSENT) /* as a flag, or as an attribute that is not there: the same */
        result = on_element(e, x, flag, STR_NONE);
    else if (flag == ELEMENT_ABSENT)
        result = on_element(e, x, attribute, value);
    else if (x->wish->op == FEATURE_DOES_NOT_EXIST)
        result = both(on_element(e, x, flag, STR_NONE), on_element(e, x, attribute, value));
    else
        result = either(on_element(e, x, flag, STR_NONE), on_element(e, x, attribute, value));
    explain_element(e, x, result, attribute == ELEMENT_ABSENT ? flag : attribute, value);
    return result;
}

/* Keep the reason that decides: the first doubt, or what is no yes in any case. */
static outcomes and_explained(struct evaluation *e, outcomes sofar, outcomes next,
                              const struct rule_reason *before)
{
    if (sofar != CAN_YES && next & CAN_YES)
        e->why = *before;
    return and_then(sofar, next);
}

static outcomes plain_expressions(struct evaluation *e, const struct view *v)
{
    outcomes result = CAN_YES;
    for (uint32_t i = 0; i < v->term->expression_count && result & CAN_YES; i++) {
        struct rule_reason before = e->why;
        outcomes next = plain_expression(e, v, &v->term->expressions[i]);
        result = and_explained(e, result, next, &before);
    }
    return result;
}

/* --- instances --- */

static outcomes one_instance(struct evaluation *e, const struct view *v,
                             struct feature_attribute_range attributes)
{
    outcomes result = CAN_YES;
    for (uint32_t i = 0; i < v->term->expression_count && result & CAN_YES; i++) {
        const struct rule_expression *x = &v->term->expressions[i];
        struct str value = feature_set_value(e->set, attributes, x->wish->element);
        enum element_state state = value.p              ? ELEMENT_VALUE
                                   : view_is_partial(v) ? ELEMENT_UNKNOWN
                                                        : ELEMENT_ABSENT;
        outcomes next = on_element(e, x, state, value);
        if (next == CAN_ERR)
            explain_element(e, x, next, state, value);
        result = and_then(result, next);
    }
    return result;
}

/* What an instance that is not known may be. */
static outcomes more_instances(const struct rule_term *t)
{
    outcomes result = EITHER;
    for (uint32_t i = 0; i < t->expression_count; i++)
        result |= t->expressions[i].broken.p ? CAN_ERR : 0u;
    return result;
}

/* One of them must satisfy all expressions. */
static outcomes instances(struct evaluation *e, const struct view *v)
{
    const struct set_feature *f = v->maybe_feature;
    const struct feature_attribute_range *items = feature_set_instances(e->set, f);
    outcomes result = view_is_partial(v) ? more_instances(v->term) : CAN_NO;
    struct rule_reason trouble = { 0 };
    for (uint32_t i = 0; i < f->instance_count; i++) {
        outcomes next = one_instance(e, v, items[i]);
        if (next & CAN_ERR && !(result & CAN_ERR))
            trouble = e->why;
        result = either(result, next);
        if (result == CAN_YES && !v->term->may_err)
            break;
        if (result == CAN_ERR)
            break;
    }
    if (result == CAN_ERR)
        e->why = trouble;
    else if (result != CAN_YES)
        e->why = (struct rule_reason){ .kind = REASON_INSTANCES,
                                       .wishes = v->term->wishes,
                                       .wish_count = v->term->expression_count,
                                       .instance_count = f->instance_count };
    return result;
}

static outcomes match_expressions(struct evaluation *e, const struct view *v)
{
    const struct set_feature *f = v->maybe_feature;
    bool plain = v->vars || view_has(v, FEATURE_HAS_FLAGS | FEATURE_HAS_ATTRIBUTES) ||
                 (f && f->unsure_count);
    if (!view_has(v, FEATURE_HAS_INSTANCES))
        return plain_expressions(e, v);
    if (!plain)
        return instances(e, v);
    outcomes first = plain_expressions(e, v);
    struct rule_reason why = e->why;
    outcomes second = instances(e, v);
    outcomes result = either(first, second);
    if (result != CAN_ERR || first == CAN_ERR)
        e->why = why;
    return result;
}

/* --- names --- */

/* Add what one more name makes of it; false: the rest cannot change it. */
static bool one_name(struct evaluation *e, const struct rule_expression *x, struct str name,
                     bool sure, outcomes *result)
{
    outcomes next = on_element(e, x, ELEMENT_VALUE, name);
    if (next == CAN_ERR)
        explain_element(e, x, next, ELEMENT_VALUE, name);
    if (!sure)
        next |= CAN_NO;
    *result = either(*result, next);
    return *result != CAN_ERR && (*result != CAN_YES || op_compares(x->wish->op));
}

static bool flag_names(struct evaluation *e, const struct view *v, outcomes *result)
{
    const struct set_feature *f = v->maybe_feature;
    const struct feature_text *flags = feature_set_flags(e->set, f);
    const struct feature_text *unsure = feature_set_unsure(e->set, f);
    for (uint32_t i = 0; i < f->flag_count; i++) {
        if (!one_name(e, v->term->maybe_name, feature_set_str(e->set, flags[i]), true, result))
            return false;
    }
    for (uint32_t i = 0; i < f->unsure_count; i++) {
        if (!one_name(e, v->term->maybe_name, feature_set_str(e->set, unsure[i]), false, result))
            return false;
    }
    return true;
}

static bool attribute_names(struct evaluation *e, const struct view *v,
                            struct feature_attribute_range range, outcomes *result)
{
    const struct feature_value *values = feature_set_values(e->set, range);
    for (uint32_t i = 0; i < range.count; i++) {
        if (!one_name(e, v->term->maybe_name, feature_set_str(e->set, values[i].name), true,
                      result))
            return false;
    }
    return true;
}

static bool instance_names(struct evaluation *e, const struct view *v, outcomes *result)
{
    const struct set_feature *f = v->maybe_feature;
    const struct feature_attribute_range *items = feature_set_instances(e->set, f);
    for (uint32_t i = 0; i < f->instance_count; i++) {
        if (!attribute_names(e, v, items[i], result))
            return false;
    }
    return true;
}

static bool var_names(struct evaluation *e, const struct view *v, outcomes *result)
{
    for (uint32_t i = 0; i < e->rule_ix; i++) {
        const struct group_rule *rule = &e->rules->items[i];
        if (!(e->earlier[i] & CAN_YES))
            continue;
        for (uint32_t k = 0; k < rule->vars.count; k++) {
            if (!one_name(e, v->term->maybe_name, rule->vars.items[k].key, e->earlier[i] == CAN_YES,
                          result))
                return false;
        }
        if (rule->templated)
            *result = either(*result, EITHER);
    }
    return true;
}

/* What a name that is not known may be: hardly ever a number. */
static outcomes more_names(const struct rule_expression *x)
{
    if (x->broken.p)
        return CAN_NO | CAN_ERR;
    if (x->wish->op == FEATURE_DOES_NOT_EXIST)
        return CAN_NO;
    return op_compares(x->wish->op) ? EITHER | CAN_ERR : EITHER;
}

static outcomes match_name(struct evaluation *e, const struct view *v)
{
    const struct rule_expression *x = v->term->maybe_name;
    outcomes result = view_is_partial(v) ? more_names(x) : CAN_NO;
    bool more =
        !v->maybe_feature || (flag_names(e, v, &result) &&
                              attribute_names(e, v, v->maybe_feature->attributes, &result) &&
                              instance_names(e, v, &result));
    if (more && v->vars)
        var_names(e, v, &result);
    if (result != CAN_ERR && result != CAN_YES)
        e->why = (struct rule_reason){ .kind = REASON_NAMES, .wishes = x->wish, .wish_count = 1 };
    return result;
}

/* --- terms, rules --- */

static outcomes no_feature(struct evaluation *e, bool unknown)
{
    e->why = (struct rule_reason){ .kind = REASON_FEATURE,
                                   .state = unknown ? ELEMENT_UNKNOWN : ELEMENT_ABSENT };
    return unknown ? EITHER : CAN_NO;
}

static outcomes match_term(struct evaluation *e, const struct rule_term *t)
{
    const struct set_feature *f = feature_set_find(e->set, t->feature);
    outcomes vars = t->is_vars ? e->vars : CAN_NO;
    struct view view = { t, f, (vars & CAN_YES) != 0 };
    if (f && (f->completeness == FEATURE_UNKNOWN || f->kinds == 0))
        return no_feature(e, true);
    if (!f && vars != CAN_YES)
        return no_feature(e, vars & CAN_YES || feature_set_others_unknown(e->set));

    outcomes result = t->has_expressions ? match_expressions(e, &view) : CAN_YES;
    if (result & CAN_YES && t->maybe_name) {
        struct rule_reason before = e->why;
        outcomes next = match_name(e, &view);
        result = and_explained(e, result, next, &before);
    }
    return result;
}

static outcomes match_terms(struct evaluation *e, const struct rule_terms *terms)
{
    outcomes result = CAN_YES;
    for (uint32_t i = 0; i < terms->count && result & CAN_YES; i++) {
        struct rule_reason before = e->why;
        outcomes next = match_term(e, &terms->items[i]);
        e->why.term_ix = i;
        e->why.feature = terms->items[i].feature;
        result = and_explained(e, result, next, &before);
    }
    return result;
}

static void collect(struct evaluation *e, outcomes result, uint32_t alternative_ix)
{
    if (!e->maybe_arena || result == CAN_YES)
        return;
    e->why.rule_ix = e->rule_ix;
    e->why.rule = e->rules->items[e->rule_ix].name;
    e->why.alternative_ix = alternative_ix;
    e->why.match = match_of(result);
    vec_push(&e->reasons, e->why);
}

/* nfd-master looks at matchAny first. */
static outcomes match_rule(struct evaluation *e, const struct group_rule *rule)
{
    size_t collected = e->reasons.count;
    outcomes result = rule->alternative_count ? CAN_NO : CAN_YES;
    for (uint32_t i = 0; i < rule->alternative_count && result & CAN_NO; i++) {
        outcomes next = match_terms(e, &rule->alternatives[i]);
        collect(e, next, i);
        result = or_else(result, next);
    }
    if (result == CAN_YES) /* the alternatives before the one that matched do not matter */
        e->reasons.count = collected;
    if (result & CAN_YES) {
        outcomes next = match_terms(e, &rule->terms);
        collect(e, next, RULE_REASON_MATCH_FEATURES);
        result = and_then(result, next);
    }
    if (rule->templated && result & CAN_YES) {
        e->why = (struct rule_reason){ .kind = REASON_TEMPLATE };
        result |= CAN_ERR; /* expanding it may fail */
        collect(e, result, RULE_REASON_MATCH_FEATURES);
    }
    return result;
}

/* --- all rules --- */

static struct rules_outcome match_all(struct evaluation *e, enum rule_combine combine)
{
    enum match start = combine == RULES_ALL || e->rules->count == 0 ? MATCH_YES : MATCH_NO;
    struct rules_outcome out = { .match = start };
    e->vars = CAN_NO;
    for (uint32_t i = 0; i < e->rules->count; i++) {
        e->rule_ix = i;
        outcomes result = match_rule(e, &e->rules->items[i]);
        enum match match = match_of(result);
        e->earlier[i] = (uint8_t)result;
        if (!(result & CAN_ERR))
            e->vars = CAN_YES;
        else if (result != CAN_ERR)
            e->vars |= CAN_YES;
        if (combine == RULES_ALL ? match < out.match : match > out.match) {
            out.match = match;
            out.rule_ix = i;
        }
        bool decided = out.match == (combine == RULES_ALL ? MATCH_NO : MATCH_YES);
        if (decided && !e->maybe_arena)
            break;
    }
    out.nfd_differs = e->test.lenient;
    return out;
}

static void evaluation_init(struct evaluation *e, const struct rules *rules,
                            const struct feature_set *set, struct rules_options options)
{
    e->rules = rules;
    e->set = set;
    e->test =
        (struct value_test){ .strict_versions = options.strict_versions, .work = RULES_WORK_MAX };
    e->why = (struct rule_reason){ 0 };
    e->maybe_arena = NULL;
    e->reasons.items = NULL;
    e->reasons.count = e->reasons.cap = 0;
}

struct rules_outcome rules_match(const struct rules *rules, const struct feature_set *set,
                                 struct rules_options options)
{
    struct evaluation e; /* not zeroed: `earlier` is filled as far as it is read */
    evaluation_init(&e, rules, set, options);
    return match_all(&e, options.combine);
}

struct rule_reasons rules_explain(struct arena *arena, const struct rules *rules,
                                  const struct feature_set *set, struct rules_options options)
{
    struct evaluation e;
    evaluation_init(&e, rules, set, options);
    e.maybe_arena = arena;
    match_all(&e, options.combine);
    struct rule_reason *items = arena_array(arena, struct rule_reason, e.reasons.count);
    if (e.reasons.count)
        memcpy(items, e.reasons.items, e.reasons.count * sizeof *items);
    struct rule_reasons out = { items, (uint32_t)e.reasons.count };
    vec_done(&e.reasons);
    return out;
}

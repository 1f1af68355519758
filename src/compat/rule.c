/* Compiling rules: texts copied, names lowered, operands parsed, patterns compiled. */
#include "codec/regex.h"
#include "compat/rule_inner.h"

/* --- limits --- */

struct tally {
    size_t terms, values, patterns;
};

static void tally_expression(struct tally *t, const struct feature_expression *x)
{
    t->values += 1 + (size_t)x->values.count;
    if (x->op == FEATURE_IN_REGEXP)
        t->patterns += x->values.count;
}

static void tally_terms(struct tally *t, const struct feature_term *terms, uint32_t count)
{
    t->terms += count;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < terms[i].expressions.count; k++)
            tally_expression(t, &terms[i].expressions.items[k]);
        if (terms[i].maybe_name)
            tally_expression(t, terms[i].maybe_name);
    }
}

static int check_size(struct rules_source source, struct err *err)
{
    struct tally t = { 0 };
    size_t alternatives = 0;
    if (source.count > RULES_MAX)
        return err_set(err, ERR_INVALID, "there are %u rules, at most %d are possible",
                       source.count, RULES_MAX);
    for (uint32_t i = 0; i < source.count; i++) {
        const struct feature_rule *rule = &source.items[i];
        tally_terms(&t, rule->terms.items, rule->terms.count);
        alternatives += rule->match_any.count;
        for (uint32_t k = 0; k < rule->match_any.count; k++)
            tally_terms(&t, rule->match_any.items[k].terms.items,
                        rule->match_any.items[k].terms.count);
        t.values += rule->vars.count;
    }
    if (t.terms > RULES_TERMS_MAX || alternatives > RULES_TERMS_MAX)
        return err_set(err, ERR_INVALID,
                       "the rules have %zu feature terms in %zu alternatives, at most %d are "
                       "possible",
                       t.terms, alternatives, RULES_TERMS_MAX);
    if (t.values > RULES_VALUES_MAX)
        return err_set(err, ERR_INVALID,
                       "the rules have %zu elements and values, at most %d are "
                       "possible",
                       t.values, RULES_VALUES_MAX);
    if (t.patterns > RULES_PATTERNS_MAX)
        return err_set(err, ERR_INVALID,
                       "the rules have %zu regular expressions, at most %d are possible",
                       t.patterns, RULES_PATTERNS_MAX);
    return 0;
}

/* --- copying --- */

static struct str_list copied_list(struct arena *arena, const struct str_list *list)
{
    struct str *items = arena_array(arena, struct str, list->count);
    for (uint32_t i = 0; i < list->count; i++)
        items[i] = arena_str(arena, list->items[i]);
    return (struct str_list){ items, list->count };
}

static struct str lowered(struct arena *arena, struct str s)
{
    char *p = arena_alloc(arena, s.len + 1);
    for (size_t i = 0; i < s.len; i++)
        p[i] = char_lower(s.p[i]);
    return (struct str){ p, s.len };
}

struct compiler {
    struct rules *rules;
    bool op_is_optional;
};

static void compile_expression(struct compiler *c, const struct feature_expression *source,
                               struct str element, struct rule_wish *wish,
                               struct rule_expression *out)
{
    enum feature_op op = (enum feature_op)source->op;
    *wish = (struct rule_wish){
        .element = arena_str(&c->rules->arena, element),
        .op = op,
        .versions = op_compares(op) && str_eqz(source->type, "version"),
        .values = copied_list(&c->rules->arena, &source->values),
    };
    out->wish = wish;
    expression_prepare(c->rules, out, op != FEATURE_OP_UNSET || c->op_is_optional, source->type);
}

static void compile_term(struct compiler *c, const struct feature_term *source,
                         struct rule_term *out)
{
    struct arena *arena = &c->rules->arena;
    uint32_t count = source->expressions.count;
    struct rule_expression *expressions = arena_array(arena, struct rule_expression, count);
    struct rule_wish *wishes = arena_array(arena, struct rule_wish, count);

    *out = (struct rule_term){ .feature = lowered(arena, source->feature),
                               .has_expressions = source->expressions.items != NULL,
                               .expression_count = count,
                               .expressions = expressions,
                               .wishes = wishes };
    out->is_vars = str_eqz(out->feature, "rule.matched");
    for (uint32_t i = 0; i < count; i++) {
        const struct feature_expression *x = &source->expressions.items[i];
        compile_expression(c, x, x->key, &wishes[i], &expressions[i]);
        out->may_err = out->may_err || expressions[i].broken.p || op_compares(wishes[i].op);
    }
    if (source->maybe_name) {
        struct rule_expression *name = arena_new(arena, struct rule_expression);
        compile_expression(c, source->maybe_name, STR_NONE, arena_new(arena, struct rule_wish),
                           name);
        out->maybe_name = name;
    }
}

static struct rule_terms compile_terms(struct compiler *c, const struct feature_term *source,
                                       uint32_t count)
{
    struct rule_term *terms = arena_array(&c->rules->arena, struct rule_term, count);
    for (uint32_t i = 0; i < count; i++)
        compile_term(c, &source[i], &terms[i]);
    return (struct rule_terms){ terms, count };
}

static void compile_rule(struct compiler *c, const struct feature_rule *source,
                         struct group_rule *out)
{
    struct arena *arena = &c->rules->arena;
    struct rule_terms *alternatives =
        arena_array(arena, struct rule_terms, source->match_any.count);
    for (uint32_t i = 0; i < source->match_any.count; i++) {
        const struct feature_alternative *a = &source->match_any.items[i];
        alternatives[i] = compile_terms(c, a->terms.items, a->terms.count);
    }
    *out = (struct group_rule){ .name = arena_str(arena, source->name),
                                .terms = compile_terms(c, source->terms.items, source->terms.count),
                                .alternatives = alternatives,
                                .alternative_count = source->match_any.count,
                                .vars = str_map_copy(arena, &source->vars),
                                .templated = source->vars_template.len > 0 };
    c->rules->require_nfd = c->rules->require_nfd || out->templated;
}

int rules_compile(struct rules_source source, const struct rules **out, struct err *err)
{
    if (check_size(source, err) < 0)
        return -1;
    struct rules *rules = kv_calloc(1, sizeof *rules);
    struct compiler c = { rules, source.op_is_optional };
    rc_init(&rules->rc);
    rules->arena.first_bytes = 512; /* one rule about one element */
    struct group_rule *items = arena_array(&rules->arena, struct group_rule, source.count);
    for (uint32_t i = 0; i < source.count; i++)
        compile_rule(&c, &source.items[i], &items[i]);
    rules->items = items;
    rules->count = source.count;
    *out = rules;
    return 0;
}

const struct rules *rules_ref(const struct rules *rules)
{
    rc_ref(&rules->rc);
    return rules;
}

void rules_unref(const struct rules *shared)
{
    struct rules *rules = (struct rules *)shared;
    if (!rules || !rc_unref(&rules->rc))
        return;
    vec_each(&rules->patterns, struct regex *, re)
        regex_free(*re);
    vec_done(&rules->patterns);
    arena_done(&rules->arena);
    free(rules);
}

/* --- reading --- */

uint32_t rules_count(const struct rules *rules)
{
    return rules->count;
}

struct str rules_name(const struct rules *rules, uint32_t ix)
{
    KV_ASSERT(ix < rules->count);
    return rules->items[ix].name;
}

uint32_t rules_pattern_count(const struct rules *rules)
{
    return (uint32_t)rules->patterns.count;
}

size_t rules_bytes(const struct rules *rules)
{
    /* What a pattern takes is known to the library alone; most are short. */
    const size_t pattern_bytes = 1024;
    return sizeof *rules + rules->arena.held_bytes + rules->patterns.count * pattern_bytes;
}

bool rules_require_nfd(const struct rules *rules)
{
    return rules->require_nfd;
}

static void mention_terms(const struct rule_terms *terms, struct feature_mask *mask)
{
    for (uint32_t i = 0; i < terms->count; i++) {
        const struct rule_term *t = &terms->items[i];
        feature_mask_add(
            mask, (struct feature_mention){ .feature = t->feature, .kind = MENTIONED_FEATURE });
        if (t->maybe_name)
            feature_mask_add(
                mask, (struct feature_mention){ .feature = t->feature, .kind = MENTIONED_NAMES });
        for (uint32_t k = 0; k < t->expression_count; k++)
            feature_mask_add(mask, (struct feature_mention){ t->feature, t->wishes[k].element,
                                                             MENTIONED_ELEMENT });
    }
}

void rules_mention(const struct rules *rules, struct feature_mask *mask)
{
    for (uint32_t i = 0; i < rules->count; i++) {
        const struct group_rule *rule = &rules->items[i];
        mention_terms(&rule->terms, mask);
        for (uint32_t k = 0; k < rule->alternative_count; k++)
            mention_terms(&rule->alternatives[k], mask);
    }
}

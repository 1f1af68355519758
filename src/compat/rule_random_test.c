/* Random small rules on random small nodes, against an evaluation that is slow and obvious, and
 * predicted nodes against what they could turn out to be. */
#include "base/rng.h"
#include "compat/compat_testing.h"

#include <stdlib.h>

enum { ELEMENTS = 2, INSTANCES_MAX = 2, FEATURES = 2 };

static const char *const feature_names[FEATURES] = { "a.a", "b.b" };
static const char *const element_names[ELEMENTS] = { "1", "x" };
static const char *const values[] = { "1", "2", "3", "true", "x" };

/* --- a node, plainly --- */

struct plain_feature {
    bool has_flags, has_attributes, has_instances;
    bool flag[ELEMENTS];
    const char *attribute[ELEMENTS]; /* NULL: absent */
    const char *instance[INSTANCES_MAX + 1][ELEMENTS];
    uint32_t instance_count;
    bool partial;
    bool unsure[ELEMENTS], absent[ELEMENTS];
};

struct plain_node {
    struct plain_feature features[FEATURES];
};

static bool plain_exists(const struct plain_feature *f)
{
    return f->has_flags || f->has_attributes || f->has_instances;
}

static const char *some_value(struct rng *rng)
{
    return rng_below(rng, 3) ? values[rng_below(rng, KV_COUNT_OF(values))] : NULL;
}

static void random_node(struct rng *rng, struct plain_node *node)
{
    *node = (struct plain_node){ 0 };
    for (int i = 0; i < FEATURES; i++) {
        struct plain_feature *f = &node->features[i];
        f->has_flags = rng_below(rng, 2);
        f->has_attributes = rng_below(rng, 2);
        f->has_instances = rng_below(rng, 2);
        for (int k = 0; k < ELEMENTS; k++) {
            f->flag[k] = f->has_flags && rng_below(rng, 2);
            f->attribute[k] = f->has_attributes ? some_value(rng) : NULL;
        }
        f->instance_count = f->has_instances ? (uint32_t)rng_below(rng, INSTANCES_MAX + 1) : 0;
        for (uint32_t n = 0; n < f->instance_count; n++) {
            for (int k = 0; k < ELEMENTS; k++)
                f->instance[n][k] = some_value(rng);
        }
    }
}

static const struct feature_set *set_of(struct feature_sets *pool, const struct plain_node *node,
                                        const struct feature_mask *maybe_mask)
{
    AUTO_ARENA arena = { 0 };
    FEATURE_DRAFT draft = { .maybe_mask = maybe_mask };
    const struct feature_set *set = NULL;
    struct err err = { 0 };
    struct feature_flags no_flags = { 0 };
    struct feature_attributes no_attributes = { 0 };
    struct feature_instances no_instances = { 0 };
    for (int i = 0; i < FEATURES; i++) {
        const struct plain_feature *f = &node->features[i];
        struct str name = str_of(feature_names[i]);
        no_flags.key = no_attributes.key = no_instances.key = name;
        struct features there = { .flags = { &no_flags, f->has_flags },
                                  .attributes = { &no_attributes, f->has_attributes },
                                  .instances = { &no_instances, f->has_instances } };
        feature_draft_features(&draft, &there);
        for (int k = 0; k < ELEMENTS; k++) {
            struct str element = str_of(element_names[k]);
            if (f->flag[k])
                feature_draft_flag(&draft, name, element);
            if (f->attribute[k])
                feature_draft_attribute(&draft, name, element, str_of(f->attribute[k]));
            if (f->unsure[k])
                feature_draft_unsure(&draft, name, element);
            if (f->absent[k])
                feature_draft_absent(&draft, name, element);
        }
        for (uint32_t n = 0; n < f->instance_count; n++) {
            struct str_pair *pairs = arena_array(&arena, struct str_pair, ELEMENTS);
            struct str_map *map = arena_new(&arena, struct str_map);
            for (int k = 0; k < ELEMENTS; k++) {
                if (f->instance[n][k])
                    pairs[map->count++] =
                        (struct str_pair){ str_of(element_names[k]), str_of(f->instance[n][k]) };
            }
            map->items = pairs;
            feature_draft_instance(&draft, name, map);
        }
        if (f->partial)
            feature_draft_completeness(&draft, name, FEATURE_PARTIAL);
    }
    EXPECT_OK(feature_set_make(pool, &draft, &set, &err), err);
    return set;
}

/* --- the obvious evaluation --- */

enum answer { A_NO, A_ERR, A_YES };

static bool number(const char *text, long *out)
{
    char *end;
    *out = strtol(text, &end, 10);
    return end != text && *end == 0;
}

static enum answer holds(const struct feature_expression *x, bool present, const char *maybe_value)
{
    uint32_t count = x->values.count;
    const struct str *v = x->values.items;
    enum feature_op op = (enum feature_op)x->op;
    if (op == FEATURE_OP_UNSET || op == FEATURE_EXISTS || op == FEATURE_DOES_NOT_EXIST) {
        if (count)
            return A_ERR;
        bool yes = op == FEATURE_OP_UNSET || present == (op == FEATURE_EXISTS);
        return yes ? A_YES : A_NO;
    }
    if (!present || !maybe_value)
        return A_NO;
    bool any = false;
    for (uint32_t i = 0; i < count; i++)
        any = any || (op == FEATURE_IN_REGEXP ? strstr(maybe_value, v[i].p) != NULL
                                              : strcmp(maybe_value, v[i].p) == 0);
    if (op == FEATURE_IN || op == FEATURE_NOT_IN || op == FEATURE_IN_REGEXP) {
        if (count == 0)
            return A_ERR;
        return any != (op == FEATURE_NOT_IN) ? A_YES : A_NO;
    }
    if (op == FEATURE_IS_TRUE || op == FEATURE_IS_FALSE) {
        if (count)
            return A_ERR;
        return strcmp(maybe_value, op == FEATURE_IS_TRUE ? "true" : "false") ? A_NO : A_YES;
    }
    bool range = op == FEATURE_GT_LT || op == FEATURE_GE_LE;
    long n, low, high = 0;
    if (count != (range ? 2 : 1) || !number(maybe_value, &n) || !number(v[0].p, &low))
        return A_ERR;
    if (range && (!number(v[1].p, &high) || low >= high))
        return A_ERR;
    bool yes = op == FEATURE_GT      ? n > low
               : op == FEATURE_GE    ? n >= low
               : op == FEATURE_LT    ? n < low
               : op == FEATURE_LE    ? n <= low
               : op == FEATURE_GT_LT ? n > low && n < high
                                     : n >= low && n <= high;
    return yes ? A_YES : A_NO;
}

static int element_of(struct str name)
{
    return str_eqz(name, element_names[0]) ? 0 : 1;
}

static enum answer instance_holds(const struct feature_term *t, const char *const *attributes)
{
    for (uint32_t i = 0; i < t->expressions.count; i++) {
        const struct feature_expression *x = &t->expressions.items[i];
        const char *value = attributes[element_of(x->key)];
        enum answer a = holds(x, value != NULL, value);
        if (a != A_YES)
            return a;
    }
    return A_YES;
}

static enum answer expressions_hold(const struct feature_term *t, const struct plain_feature *f)
{
    bool yes = f->has_flags || f->has_attributes;
    for (uint32_t i = 0; i < t->expressions.count && yes; i++) {
        const struct feature_expression *x = &t->expressions.items[i];
        int k = element_of(x->key);
        enum answer flag = f->has_flags ? holds(x, f->flag[k], NULL) : A_NO;
        enum answer value =
            f->has_attributes ? holds(x, f->attribute[k] != NULL, f->attribute[k]) : A_NO;
        if (flag == A_ERR || value == A_ERR)
            return A_ERR;
        yes = flag == A_YES || value == A_YES;
        if (x->op == FEATURE_DOES_NOT_EXIST)
            yes = (!f->has_flags || flag == A_YES) && (!f->has_attributes || value == A_YES);
    }
    for (uint32_t n = 0; n < f->instance_count; n++) {
        enum answer a = instance_holds(t, f->instance[n]);
        if (a == A_ERR)
            return A_ERR;
        yes = yes || a == A_YES;
    }
    return yes ? A_YES : A_NO;
}

static enum answer names_hold(const struct feature_expression *x, const struct plain_feature *f)
{
    bool yes = false;
    for (int k = 0; k < ELEMENTS; k++) {
        bool there = f->flag[k] || f->attribute[k];
        for (uint32_t n = 0; n < f->instance_count; n++)
            there = there || f->instance[n][k];
        enum answer a = there ? holds(x, true, element_names[k]) : A_NO;
        if (a == A_ERR)
            return A_ERR;
        yes = yes || a == A_YES;
    }
    return yes ? A_YES : A_NO;
}

static enum answer terms_hold(const struct feature_term *terms, uint32_t count,
                              const struct plain_node *node)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct plain_feature *f =
            &node->features[str_eqz(terms[i].feature, feature_names[0]) ? 0 : 1];
        enum answer a = plain_exists(f) ? A_YES : A_NO;
        if (a == A_YES && terms[i].expressions.items)
            a = expressions_hold(&terms[i], f);
        if (a == A_YES && terms[i].maybe_name)
            a = names_hold(terms[i].maybe_name, f);
        if (a != A_YES)
            return a;
    }
    return A_YES;
}

static enum answer rule_holds(const struct feature_rule *rule, const struct plain_node *node)
{
    enum answer any = rule->match_any.count ? A_NO : A_YES;
    for (uint32_t i = 0; i < rule->match_any.count && any == A_NO; i++)
        any = terms_hold(rule->match_any.items[i].terms.items, rule->match_any.items[i].terms.count,
                         node);
    return any == A_YES ? terms_hold(rule->terms.items, rule->terms.count, node) : any;
}

/* --- random rules --- */

static struct feature_expression random_expression(struct arena *arena, struct rng *rng)
{
    static const uint8_t operand_counts[] = { 0, 1, 1, 1, 0, 0, 1, 1, 1, 1, 2, 2, 0, 0 };
    uint8_t op = (uint8_t)rng_below(rng, FEATURE_IS_FALSE + 1);
    uint32_t count = operand_counts[op];
    if (rng_below(rng, 16) == 0) /* wrong now and then */
        count = (uint32_t)rng_below(rng, 3);
    struct str *operands = arena_array(arena, struct str, count);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t pick = rng_below(rng, 8) ? rng_below(rng, 3) : rng_below(rng, KV_COUNT_OF(values));
        operands[i] = str_of(values[pick]);
    }
    return (struct feature_expression){ .op = op, .values = { operands, count } };
}

static const struct feature_term *random_terms(struct arena *arena, struct rng *rng, uint32_t count)
{
    struct feature_term *terms = arena_array(arena, struct feature_term, count);
    for (uint32_t i = 0; i < count; i++) {
        struct feature_expression *x = arena_array(arena, struct feature_expression, ELEMENTS + 1);
        uint32_t n = 0;
        for (int k = 0; k < ELEMENTS; k++) {
            x[n] = random_expression(arena, rng);
            x[n].key = str_of(element_names[k]);
            n += rng_below(rng, 2) == 0;
        }
        terms[i].feature = str_of(feature_names[rng_below(rng, FEATURES)]);
        if (n || rng_below(rng, 2)) {
            terms[i].expressions.items = x;
            terms[i].expressions.count = n;
        }
        if (rng_below(rng, 3) == 0) {
            x[ELEMENTS] = random_expression(arena, rng);
            terms[i].maybe_name = &x[ELEMENTS];
        }
    }
    return terms;
}

static void random_rule(struct arena *arena, struct rng *rng, struct feature_rule *rule)
{
    uint32_t count = (uint32_t)rng_below(rng, 3), any = (uint32_t)rng_below(rng, 3);
    struct feature_alternative *alternatives = arena_array(arena, struct feature_alternative, any);
    *rule = (struct feature_rule){ .name = STR("r") };
    rule->terms.items = random_terms(arena, rng, count);
    rule->terms.count = count;
    for (uint32_t i = 0; i < any; i++) {
        alternatives[i].terms.count = (uint32_t)rng_below(rng, 3);
        alternatives[i].terms.items = random_terms(arena, rng, alternatives[i].terms.count);
    }
    rule->match_any.items = alternatives;
    rule->match_any.count = any;
}

static const struct rules *compiled(const struct feature_rule *rule)
{
    struct err err = { 0 };
    const struct rules *rules = NULL;
    EXPECT_OK(rules_compile((struct rules_source){ rule, 1, true }, &rules, &err), err);
    return rules;
}

/* --- tests --- */

#define ROUNDS 20000

static void start(struct rng *rng, uint64_t seed)
{
    print_message("# seed %llu\n", (unsigned long long)seed);
    rng_init(rng, seed);
}

TEST(rules_agree_with_the_obvious_evaluation)
{
    static const enum match wanted[] = { MATCH_NO, MATCH_ERROR, MATCH_YES };
    AUTO(feature_sets) pool = feature_sets_new();
    struct rng rng;
    uint32_t seen[3] = { 0 };
    start(&rng, 20261116);

    for (int round = 0; round < ROUNDS; round++) {
        AUTO_ARENA arena = { 0 };
        struct plain_node node;
        struct feature_rule rule;
        random_node(&rng, &node);
        random_rule(&arena, &rng, &rule);
        AUTO_RULES rules = compiled(&rule);
        FEATURE_MASK mask = { 0 };
        rules_mention(rules, &mask);
        feature_mask_settle(&mask);
        AUTO_FEATURE_SET whole = set_of(pool, &node, NULL);
        AUTO_FEATURE_SET masked = set_of(pool, &node, &mask);

        enum answer want = rule_holds(&rule, &node);
        enum match got = world_match(rules, whole);
        if (got != wanted[want])
            print_message("# round %d: %s\n", round, match_word(got));
        EXPECT_EQ(got, wanted[want]);
        EXPECT_EQ(world_match(rules, masked), got); /* what is not mentioned does not matter */
        struct rule_reasons why = rules_explain(&arena, rules, whole, (struct rules_options){ 0 });
        EXPECT_EQ(why.count > 0, got != MATCH_YES);
        AUTO_BUF words = { 0 };
        for (uint32_t i = 0; i < why.count; i++)
            rule_reason_format(&why.items[i], &words);
        seen[want]++;
    }
    for (int i = 0; i < 3; i++) /* the sample is worth something */
        EXPECT_TRUE(seen[i] > ROUNDS / 20);
}

static const char *readable(struct rng *rng)
{
    static const char *const some[] = { NULL, "1", "2", "3" };
    return some[rng_below(rng, KV_COUNT_OF(some))];
}

/* Make some of what is known unknown. */
static void blur(struct rng *rng, struct plain_node *node)
{
    for (int i = 0; i < FEATURES; i++) {
        struct plain_feature *f = &node->features[i];
        f->partial = plain_exists(f) && rng_below(rng, 2);
        for (int k = 0; k < ELEMENTS; k++) {
            f->unsure[k] = (f->has_flags || f->has_attributes) && rng_below(rng, 4) == 0;
            if (f->unsure[k]) {
                f->flag[k] = false;
                f->attribute[k] = NULL;
            }
            f->absent[k] =
                f->partial && !f->unsure[k] && !f->flag[k] && !f->attribute[k] && rng_below(rng, 2);
        }
    }
}

/* One of the nodes that a blurred one may turn out to be. */
static struct plain_node some_completion(struct rng *rng, const struct plain_node *blurred)
{
    struct plain_node node = *blurred;
    for (int i = 0; i < FEATURES; i++) {
        struct plain_feature *f = &node.features[i];
        for (int k = 0; k < ELEMENTS; k++) {
            bool missing = !f->flag[k] && !f->attribute[k];
            bool plain = f->has_flags || f->has_attributes;
            if (missing && plain && !f->absent[k] && (f->partial || f->unsure[k])) {
                f->flag[k] = f->has_flags && rng_below(rng, 2);
                f->attribute[k] = f->flag[k] ? NULL : readable(rng);
                f->has_attributes = f->has_attributes || f->attribute[k];
            }
            f->unsure[k] = false;
            for (uint32_t n = 0; n < f->instance_count && f->partial; n++) {
                if (!f->instance[n][k])
                    f->instance[n][k] = readable(rng);
            }
        }
        if (f->partial && f->has_instances && rng_below(rng, 2)) {
            for (int k = 0; k < ELEMENTS; k++)
                f->instance[f->instance_count][k] = readable(rng);
            f->instance_count++;
        }
        f->partial = false;
    }
    return node;
}

/* "yes" and "no" about a predicted node hold of whatever it turns out to be. */
TEST(rules_never_say_wrongly_yes_or_no_of_a_predicted_node)
{
    AUTO(feature_sets) pool = feature_sets_new();
    struct rng rng;
    uint32_t unknown = 0;
    start(&rng, 9);

    for (int round = 0; round < ROUNDS; round++) {
        AUTO_ARENA arena = { 0 };
        struct plain_node node;
        struct feature_rule rule;
        random_node(&rng, &node);
        random_rule(&arena, &rng, &rule);
        blur(&rng, &node);
        AUTO_RULES rules = compiled(&rule);
        AUTO_FEATURE_SET set = set_of(pool, &node, NULL);
        enum match got = world_match(rules, set);

        unknown += got == MATCH_UNKNOWN;
        for (int i = 0; i < 10; i++) {
            struct plain_node real = some_completion(&rng, &node);
            enum answer truth = rule_holds(&rule, &real);
            bool wrong = got == MATCH_YES ? truth != A_YES : got != MATCH_UNKNOWN && truth == A_YES;
            if (wrong)
                print_message("# round %d: %s, but %d\n", round, match_word(got), (int)truth);
            EXPECT_FALSE(wrong);
        }
    }
    EXPECT_TRUE(unknown > ROUNDS / 20);
    EXPECT_TRUE(unknown < ROUNDS / 2);
}

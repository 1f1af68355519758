/* Names of groups, and the rules of a set as a NodeFeatureGroup has them.
 *
 * A spec is read leniently, a NodeFeatureGroup is not: the API server refuses an expression without an
 * operator and drops (or, asked to be strict, refuses) fields that its schema does not have. So what is
 * written is the set's own JSON with only the fields that a group knows; `matchExpressions: {}` stays, since
 * to NFD it is not the same as none. Two lists of rules are compared decoded, so that neither the order of
 * members nor what a server makes of nothing matters.
 */
#include "compat/nfg_cache_inner.h"

#include "net/digest.h"

#include <stdio.h>

int nfg_name(struct str rules_json, uint32_t hex_digits, char out[NFG_NAME_MAX], struct err *err)
{
    char digest[DIGEST_TEXT_MAX];
    KV_ASSERT(hex_digits <= 64);
    if (digest_text(DIGEST_SHA256, rules_json, digest, err) < 0)
        return err_wrap(err, "name of a NodeFeatureGroup");
    snprintf(out, NFG_NAME_MAX, NFG_PREFIX "%.*s", (int)hex_digits, digest + strlen("sha256:"));
    return 0;
}

/* --- the fields of a group --- */

static const char *const expression_fields[] = { "op", "type", "value", NULL };
static const char *const plain_rule_fields[] = { "name", "vars", "varsTemplate", NULL };

static void copy_fields(struct json_build *b, const json_val *from, json_mut *to,
                        const char *const *fields)
{
    for (; *fields; fields++) {
        const json_val *v = json_get(from, str_of(*fields));
        if (v && !json_is_null(v))
            json_set(b, to, str_of(*fields), json_copy(b, v));
    }
}

static json_mut *copy_expression(struct json_build *b, const json_val *from)
{
    json_mut *to = json_new_object(b);
    copy_fields(b, from, to, expression_fields);
    return to;
}

static json_mut *copy_terms(struct json_build *b, const json_val *from)
{
    static const char *const term_fields[] = { "feature", NULL };
    json_mut *terms = json_new_array(b);
    json_each_item(from, item) {
        json_mut *term = json_new_object(b);
        const json_val *name = json_get(item, STR("matchName"));
        const json_val *expressions = json_get(item, STR("matchExpressions"));
        copy_fields(b, item, term, term_fields);
        if (json_is_object(expressions)) {
            json_mut *to = json_new_object(b);
            json_each_member(expressions, key, value)
                json_add(to, json_new_str(b, json_key(key)), copy_expression(b, value));
            json_set(b, term, STR("matchExpressions"), to);
        }
        if (json_is_object(name))
            json_set(b, term, STR("matchName"), copy_expression(b, name));
        json_push(b, terms, term);
    }
    return terms;
}

static json_mut *copy_rule(struct json_build *b, const json_val *from)
{
    json_mut *rule = json_new_object(b);
    const json_val *terms = json_get(from, STR("matchFeatures"));
    const json_val *any = json_get(from, STR("matchAny"));
    copy_fields(b, from, rule, plain_rule_fields);
    if (json_is_array(terms))
        json_set(b, rule, STR("matchFeatures"), copy_terms(b, terms));
    if (json_is_array(any)) {
        json_mut *alternatives = json_new_array(b);
        json_each_item(any, item) {
            json_mut *alternative = json_new_object(b);
            json_set(b, alternative, STR("matchFeatures"),
                     copy_terms(b, json_get(item, STR("matchFeatures"))));
            json_push(b, alternatives, alternative);
        }
        json_set(b, rule, STR("matchAny"), alternatives);
    }
    return rule;
}

static void write_group(const json_val *rules, struct buf *out)
{
    AUTO_JSON_BUILD b;
    json_build_init(&b);
    json_mut *list = json_new_array(&b);
    json_each_item(rules, item)
        json_push(&b, list, copy_rule(&b, item));
    json_write_mut(list, out);
}

void nfg_rules_write(struct str canonical, struct buf *out)
{
    struct doc doc;
    struct err err = { 0 };
    int rc = json_read(canonical, &doc, &err);
    KV_ASSERT(rc == 0);
    write_group(doc.root, out);
    doc_done(&doc);
}

/* --- can it be a group? --- */

static int refuse_without_op(const struct feature_rule *rule, const struct feature_term *term,
                             struct str element, struct err *err)
{
    return err_set(err, ERR_INVALID,
                   "rule %s: %s %s has no op, so the rules cannot be a NodeFeatureGroup",
                   STR_SHOWN(rule->name), STR_SHOWN(term->feature),
                   element.p ? STR_SHOWN(element) : "matchName");
}

static int check_terms(const struct feature_rule *rule, const struct feature_term *terms,
                       uint32_t count, struct err *err)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct feature_term *term = &terms[i];
        for (uint32_t k = 0; k < term->expressions.count; k++) {
            const struct feature_expression *e = &term->expressions.items[k];
            if (e->op == FEATURE_OP_UNSET)
                return refuse_without_op(rule, term, e->key, err);
        }
        if (term->maybe_name && term->maybe_name->op == FEATURE_OP_UNSET)
            return refuse_without_op(rule, term, STR_NONE, err);
    }
    return 0;
}

static int check_rule(const struct feature_rule *rule, struct err *err)
{
    if (check_terms(rule, rule->terms.items, rule->terms.count, err) < 0)
        return -1;
    for (uint32_t i = 0; i < rule->match_any.count; i++) {
        const struct feature_alternative *a = &rule->match_any.items[i];
        if (check_terms(rule, a->terms.items, a->terms.count, err) < 0)
            return -1;
    }
    return 0;
}

/* --- decoded, for as long as they are looked at --- */

struct rules_view {
    struct arena arena;
    struct buf json; /* what is written, since that is what a server gives back */
    struct doc doc;  /* of it; `items` point into it */
    const struct feature_rule *items;
    uint32_t count;
};

static void view_done(struct rules_view *view)
{
    if (view->doc.yy)
        doc_done(&view->doc);
    buf_done(&view->json);
    arena_done(&view->arena);
}
#define RULES_VIEW __attribute__((cleanup(view_done))) struct rules_view

static int view_read(struct rules_view *view, struct str canonical, struct err *err)
{
    struct doc doc;
    if (json_read(canonical, &doc, err) < 0)
        return -1;
    write_group(doc.root, &view->json);
    doc_done(&doc);
    if (json_read(buf_str(&view->json), &view->doc, err) < 0)
        return -1;
    const json_val *list = view->doc.root;
    struct feature_rule *items = arena_array(&view->arena, struct feature_rule, json_count(list));
    view->items = items;
    json_each_item(list, item) {
        if (schema_decode(&feature_rule_schema, item, &view->arena, &items[view->count++], err) < 0)
            return -1;
    }
    return 0;
}

int nfg_rules_check(struct str canonical, struct err *err)
{
    RULES_VIEW view = { 0 };
    if (view_read(&view, canonical, err) < 0)
        return -1;
    for (uint32_t i = 0; i < view.count; i++) {
        if (check_rule(&view.items[i], err) < 0)
            return -1;
    }
    return 0;
}

bool nfg_rules_equal(struct str canonical, const struct node_feature_group *group)
{
    RULES_VIEW view = { 0 };
    struct err err = { 0 };
    int rc = view_read(&view, canonical, &err);
    KV_ASSERT(rc == 0);
    if (view.count != group->spec.rules.count)
        return false;
    for (uint32_t i = 0; i < view.count; i++) {
        if (!schema_equal(&feature_rule_schema, &view.items[i], &group->spec.rules.items[i]))
            return false;
    }
    return true;
}

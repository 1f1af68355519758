/* Reading compatibility specs.
 *
 * There are two tables. The first is what NFD's decoder takes: what does not fit is an error. The
 * second, the one of NodeFeatureGroups (api/nfd.c), is what makes sense: unknown fields, missing
 * operators, operands that cannot be compared. Limits come between the two, since the second compiles
 * regular expressions.
 *
 * Many images have the same spec, and more have specs with the same rules: of a pool both are there once. The
 * pool does not count as a user. The last one leaves under the pool's lock, so that nobody finds what is about
 * to go.
 */
#include "compat/spec.h"

#include "api/place.h"
#include "base/map.h"
#include "codec/yaml.h"

#include <pthread.h>

/* --- what NFD's decoder takes --- */

static const char *const op_words[] = {
    "In", "NotIn", "InRegexp", "Exists", "DoesNotExist", "Gt",      "Ge",
    "Lt", "Le",    "GtLt",     "GeLe",   "IsTrue",       "IsFalse", NULL,
};

/* An operator that is not known would be an error at every node; better now than then. */
static const struct rule op_rule = { .enums = op_words };

#define T struct feature_expression
static const struct field expression_fields[] = {
    FIELD(ENUM, op, "op", NULL, .rule = &op_rule),
    FIELD(STRS, values, "value", NULL),
    FIELD(STR, type, "type", NULL),
};
#undef T
static const struct schema expression_schema = SCHEMA("MatchExpression", struct feature_expression,
                                                      expression_fields, .preserve_unknown = true);

#define T struct feature_term
static const struct field term_fields[] = {
    FIELD(STR, feature, "feature", NULL, .flags = FIELD_REQUIRED),
    FIELD(MAP, expressions, "matchExpressions", NULL, .sub = &expression_schema),
    FIELD(OPTION, maybe_name, "matchName", NULL, .sub = &expression_schema),
};
#undef T
static const struct schema term_schema =
    SCHEMA("FeatureMatcherTerm", struct feature_term, term_fields, .preserve_unknown = true);

#define T struct feature_alternative
static const struct field alternative_fields[] = {
    FIELD(LIST, terms, "matchFeatures", NULL, .sub = &term_schema),
};
#undef T
static const struct schema alternative_schema = SCHEMA(
    "MatchAnyElem", struct feature_alternative, alternative_fields, .preserve_unknown = true);

#define T struct feature_rule
static const struct field rule_fields[] = {
    FIELD(STR, name, "name", NULL, .flags = FIELD_REQUIRED),
    FIELD(STR_MAP, vars, "vars", NULL),
    FIELD(STR, vars_template, "varsTemplate", NULL),
    FIELD(LIST, terms, "matchFeatures", NULL, .sub = &term_schema),
    FIELD(LIST, match_any, "matchAny", NULL, .sub = &alternative_schema),
};
#undef T
static const struct schema rule_schema =
    SCHEMA("GroupRule", struct feature_rule, rule_fields, .preserve_unknown = true);

struct spec_set {
    struct str tag, description;
    int64_t weight;
    LIST(struct feature_rule) rules;
};

struct spec_root {
    struct str version;
    LIST(struct spec_set) sets;
};

#define T struct spec_set
static const struct field set_fields[] = {
    FIELD(LIST, rules, "rules", NULL, .flags = FIELD_REQUIRED, .sub = &rule_schema,
          RULE(.items_max = RULES_MAX)),
    FIELD(INT, weight, "weight", NULL, RULE(BETWEEN(-COMPAT_WEIGHT_MAX, COMPAT_WEIGHT_MAX))),
    FIELD(STR, tag, "tag", NULL),
    FIELD(STR, description, "description", NULL),
};
/* What makes sense. */
static const struct field sound_set_fields[] = {
    FIELD(LIST, rules, "rules", NULL, .flags = FIELD_REQUIRED, .sub = &feature_rule_schema,
          RULE(.items_min = 1)),
    FIELD(INT, weight, "weight", NULL, RULE(BETWEEN(0, 100))),
    FIELD(STR, tag, "tag", NULL),
    FIELD(STR, description, "description", NULL),
};
#undef T
static const struct schema set_schema =
    SCHEMA("Compatibility", struct spec_set, set_fields, .preserve_unknown = true);
static const struct schema sound_set_schema =
    SCHEMA("Compatibility", struct spec_set, sound_set_fields);

#define T struct spec_root
static const struct field root_fields[] = {
    FIELD(STR, version, "version", NULL, .flags = FIELD_REQUIRED),
    FIELD(LIST, sets, "compatibilities", NULL, .flags = FIELD_REQUIRED, .sub = &set_schema,
          RULE(.items_max = COMPAT_SETS_MAX)),
};
static const struct field sound_root_fields[] = {
    FIELD(STR, version, "version", NULL, .flags = FIELD_REQUIRED),
    FIELD(LIST, sets, "compatibilities", NULL, .flags = FIELD_REQUIRED, .sub = &sound_set_schema),
};
#undef T
static const struct schema root_schema =
    SCHEMA("Spec", struct spec_root, root_fields, .preserve_unknown = true);
static const struct schema sound_root_schema = SCHEMA("Spec", struct spec_root, sound_root_fields);

/* --- pools --- */

struct pooled_rules {
    const struct rules *rules;
    uint32_t users; /* sets */
};

struct compat_specs {
    struct rc rc;
    pthread_mutex_t lock;   /* guards both tables and `users`; a leaf */
    struct str_table specs; /* by identity */
    struct str_table rules; /* by canonical text, struct pooled_rules */
};

struct compat_specs *compat_specs_new(void)
{
    struct compat_specs *pool = kv_calloc(1, sizeof *pool);
    rc_init(&pool->rc);
    pthread_mutex_init(&pool->lock, NULL);
    return pool;
}

void compat_specs_unref(struct compat_specs *pool)
{
    if (!pool || !rc_unref(&pool->rc))
        return;
    KV_ASSERT(pool->specs.live_count == 0);
    KV_ASSERT(pool->rules.live_count == 0);
    str_table_done(&pool->specs);
    str_table_done(&pool->rules);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

struct compat_specs_stats compat_specs_stats(struct compat_specs *pool)
{
    pthread_mutex_lock(&pool->lock);
    struct compat_specs_stats stats = { pool->specs.live_count, pool->rules.live_count };
    pthread_mutex_unlock(&pool->lock);
    return stats;
}

/* One that is in use, or NULL. */
static const struct compat_spec *pool_spec(struct compat_specs *pool, struct str identity)
{
    pthread_mutex_lock(&pool->lock);
    const struct compat_spec *spec = str_table_get(&pool->specs, identity);
    if (spec)
        compat_spec_ref(spec);
    pthread_mutex_unlock(&pool->lock);
    return spec;
}

/* Into the pool, unless another of the identity came first: then that one. Takes the reference. */
static const struct compat_spec *pool_add_spec(struct compat_spec *spec, struct str identity)
{
    struct compat_specs *pool = spec->maybe_pool;
    pthread_mutex_lock(&pool->lock);
    const struct compat_spec *other = str_table_get(&pool->specs, identity);
    if (other) {
        compat_spec_ref(other);
    } else {
        str_table_put(&pool->specs, identity, spec);
        spec->identity = str_table_slot(&pool->specs, identity)->key;
    }
    pthread_mutex_unlock(&pool->lock);
    if (other)
        compat_spec_unref(spec);
    return other ? other : spec;
}

/* False: there are none with that text. The set's text becomes the pool's. */
static bool pool_use_rules(struct compat_specs *pool, struct str canonical, struct compat_set *set)
{
    pthread_mutex_lock(&pool->lock);
    struct pooled_rules *found = str_table_get(&pool->rules, canonical);
    if (found) {
        found->users++;
        set->rules = found->rules;
        set->rules_json = str_table_slot(&pool->rules, canonical)->key;
    }
    pthread_mutex_unlock(&pool->lock);
    return found != NULL;
}

/* Takes the reference. */
static void pool_add_rules(struct compat_specs *pool, struct str canonical,
                           const struct rules *rules, struct compat_set *set)
{
    pthread_mutex_lock(&pool->lock);
    struct pooled_rules *entry = str_table_get(&pool->rules, canonical);
    if (entry) { /* somebody was faster */
        rules_unref(rules);
    } else {
        entry = kv_calloc(1, sizeof *entry);
        entry->rules = rules;
        str_table_put(&pool->rules, canonical, entry);
    }
    entry->users++;
    set->rules = entry->rules;
    set->rules_json = str_table_slot(&pool->rules, canonical)->key;
    pthread_mutex_unlock(&pool->lock);
}

/* With the pool's lock. */
static void pool_drop_rules(struct compat_specs *pool, struct str canonical)
{
    struct pooled_rules *entry = str_table_get(&pool->rules, canonical);
    if (--entry->users > 0)
        return;
    str_table_remove(&pool->rules, canonical);
    rules_unref(entry->rules);
    free(entry);
}

/* --- reading --- */

struct reader {
    const char *name;
    const struct doc *doc;
    struct arena arena; /* of the decoded view and the report's texts */
    struct report report;
    struct compat_spec *spec;
};

static void add_problem(const struct reader *r, const struct problem *p, struct buf *out)
{
    struct text_pos at = doc_position(r->doc, p->at ? p->at : r->doc->root);
    buf_addf(out, "%s:%u:%u: %.*s%s%.*s", r->name, at.line, at.col, STR_ARG(p->path),
             p->path.len ? ": " : "", STR_ARG(p->what));
}

static int refuse(const struct reader *r, struct err *err)
{
    AUTO_BUF text = { 0 };
    add_problem(r, &r->report.problems.items[0], &text);
    if (r->report.error_count > 1)
        buf_addf(&text, " (and %u more)", r->report.error_count - 1);
    return err_set(err, ERR_INVALID, "%s", buf_str(&text).p);
}

static bool is_too_deep(const json_val *v, int left)
{
    if (left == 0)
        return true;
    json_each_item(v, item) {
        if (is_too_deep(item, left - 1))
            return true;
    }
    json_each_member(v, key, value) {
        if (is_too_deep(value, left - 1))
            return true;
    }
    return false;
}

/* Before anything else is judged: a later version may look quite different. */
static int check_version(const struct reader *r, struct err *err)
{
    const json_val *version = json_get(r->doc->root, STR("version"));
    if (!json_is_string(version) || str_eqz(json_str(version), COMPAT_SPEC_VERSION))
        return 0;
    struct text_pos at = doc_position(r->doc, version);
    err_set(err, ERR_INVALID,
            "%s:%u:%u: version: %s is not supported, expected " COMPAT_SPEC_VERSION, r->name,
            at.line, at.col, STR_SHOWN(json_str(version)));
    return COMPAT_SPEC_UNSUPPORTED;
}

/* `matchExpressions: {}` asks for an instance, leaving it out does not: decoding forgets which it
 * was, so the empty list gets an address. */
static const struct feature_expression empty_expressions[1];

static void keep_empty_expressions(const struct feature_term *terms, uint32_t count,
                                   const json_val *list)
{
    uint32_t i = 0;
    json_each_item(list, item) {
        struct feature_term *term = (struct feature_term *)&terms[i++];
        const json_val *expressions = json_get(item, STR("matchExpressions"));
        if (json_is_object(expressions) && json_count(expressions) == 0)
            term->expressions.items = empty_expressions;
    }
    KV_ASSERT(i == count);
}

static void keep_empty_of_rules(const struct spec_set *set, const json_val *list)
{
    uint32_t i = 0;
    json_each_item(list, item) {
        const struct feature_rule *rule = &set->rules.items[i++];
        const json_val *any = json_get(item, STR("matchAny"));
        keep_empty_expressions(rule->terms.items, rule->terms.count,
                               json_get(item, STR("matchFeatures")));
        for (uint32_t k = 0; k < rule->match_any.count; k++) {
            const struct feature_alternative *a = &rule->match_any.items[k];
            keep_empty_expressions(a->terms.items, a->terms.count,
                                   json_get(json_at(any, k), STR("matchFeatures")));
        }
    }
}

static struct str text_of(struct arena *arena, struct str s)
{
    return s.p ? arena_str(arena, s) : STR("");
}

static int make_set(struct reader *r, const struct spec_set *set, const json_val *item,
                    struct compat_set *out, struct err *err)
{
    const json_val *rules = json_get(item, STR("rules"));
    keep_empty_of_rules(set, rules);
    struct rules_source source = { set->rules.items, set->rules.count, .op_is_optional = true };
    struct compat_specs *pool = r->spec->maybe_pool;
    const struct rules *compiled;
    AUTO_BUF json = { 0 };
    json_write_canonical(rules, &json);
    if (!pool || !pool_use_rules(pool, buf_str(&json), out)) {
        if (rules_compile(source, &compiled, err) < 0) {
            struct text_pos at = doc_position(r->doc, rules);
            return err_wrap(err, "%s:%u:%u", r->name, at.line, at.col);
        }
        if (pool) {
            pool_add_rules(pool, buf_str(&json), compiled, out);
        } else {
            out->rules = compiled;
            out->rules_json = arena_str(&r->spec->arena, buf_str(&json));
        }
    }
    out->tag = text_of(&r->spec->arena, set->tag);
    out->description = text_of(&r->spec->arena, set->description);
    out->weight = set->weight;
    return 0;
}

/* Each set bounds its patterns; so does the spec. */
static int check_patterns(const struct reader *r, const struct compat_set *set, uint32_t *count,
                          struct err *err)
{
    *count += rules_pattern_count(set->rules);
    if (*count <= RULES_PATTERNS_MAX)
        return 0;
    return err_set(err, ERR_INVALID, "%s: more than %d regular expressions", r->name,
                   RULES_PATTERNS_MAX);
}

static int make_sets(struct reader *r, const struct spec_root *root, struct err *err)
{
    struct compat_set *sets = arena_array(&r->spec->arena, struct compat_set, root->sets.count);
    uint32_t patterns = 0;
    r->spec->sets = sets;
    json_each_item(json_get(r->doc->root, STR("compatibilities")), item) {
        struct compat_set *set = &sets[r->spec->set_count];
        if (make_set(r, &root->sets.items[r->spec->set_count], item, set, err) < 0)
            return -1;
        r->spec->set_count++;
        if (check_patterns(r, set, &patterns, err) < 0)
            return -1;
    }
    return 0;
}

static void keep_warnings(struct reader *r)
{
    size_t count = r->report.problems.count;
    if (count > COMPAT_WARNINGS_MAX)
        count = COMPAT_WARNINGS_MAX;
    struct str *warnings = arena_array(&r->spec->arena, struct str, count);
    for (size_t i = 0; i < count; i++) {
        AUTO_BUF text = { 0 };
        add_problem(r, &r->report.problems.items[i], &text);
        warnings[i] = arena_str(&r->spec->arena, buf_str(&text));
    }
    r->spec->warnings = warnings;
    r->spec->warning_count = (uint32_t)count;
}

static int read_doc(struct reader *r, struct compat_spec_options options, struct err *err)
{
    const json_val *root = r->doc->root;
    if (is_too_deep(root, COMPAT_SPEC_DEPTH_MAX))
        return err_set(err, ERR_INVALID, "%s: is nested deeper than %d levels", r->name,
                       COMPAT_SPEC_DEPTH_MAX);
    int rc = check_version(r, err);
    if (rc < 0)
        return rc;
    r->report.empty_is_absent = true;
    schema_validate(&root_schema, root, NULL, &r->report);
    if (r->report.error_count)
        return refuse(r, err);

    struct spec_root view = { 0 };
    if (schema_decode(&root_schema, root, &r->arena, &view, err) < 0)
        return err_wrap(err, "%s", r->name);
    if (make_sets(r, &view, err) < 0)
        return -1;
    r->report.empty_is_absent = false;
    schema_validate(&sound_root_schema, root, NULL, &r->report);
    if (options.strict && r->report.error_count)
        return refuse(r, err);
    keep_warnings(r);
    return 0;
}

static int read_docs(struct reader *r, const struct docs *docs, struct compat_spec_options options,
                     struct err *err)
{
    struct text_pos at = docs->first_alias;
    if (at.line)
        return err_set(err, ERR_INVALID, "%s:%u:%u: aliases are not allowed here", r->name, at.line,
                       at.col);
    if (docs->count == 0)
        return err_set(err, ERR_INVALID, "%s:1:1: is empty, expected version and compatibilities",
                       r->name);
    if (docs->count > 1) {
        at = doc_position(&docs->items[1], docs->items[1].root);
        return err_set(err, ERR_INVALID, "%s:%u:%u: a second document, expected one", r->name,
                       at.line, at.col);
    }
    r->doc = &docs->items[0];
    return read_doc(r, options, err);
}

static struct compat_spec *spec_new(struct compat_specs *maybe_pool)
{
    struct compat_spec *spec = kv_calloc(1, sizeof *spec);
    rc_init(&spec->rc);
    spec->arena.first_bytes = 256; /* of an array of sets and their tags */
    spec->identity = STR("");
    spec->maybe_pool = maybe_pool;
    if (maybe_pool)
        rc_ref(&maybe_pool->rc);
    return spec;
}

int compat_spec_read(const char *name, struct str text, struct compat_spec_options options,
                     const struct compat_spec **out, struct err *err)
{
    struct docs docs;
    struct text_pos at = { 1, 1 };
    bool pooled = options.maybe_pool && options.identity.len > 0;
    KV_ASSERT(!pooled || !options.strict);
    if (pooled && (*out = pool_spec(options.maybe_pool, options.identity)))
        return 0;
    if (text.len > COMPAT_SPEC_BYTES_MAX)
        return err_set(err, ERR_INVALID, "%s: has %zu bytes, at most %zu are read", name, text.len,
                       COMPAT_SPEC_BYTES_MAX);
    if (yaml_read(text, &docs, &at, err) < 0)
        return err_wrap(err, "%s:%u:%u", name, at.line, at.col);

    struct reader r = { .name = name, .spec = spec_new(options.maybe_pool) };
    r.report.arena = &r.arena;
    int rc = read_docs(&r, &docs, options, err);
    if (rc == 0)
        *out = pooled ? pool_add_spec(r.spec, options.identity) : r.spec;
    else
        compat_spec_unref(r.spec);
    report_done(&r.report);
    arena_done(&r.arena);
    docs_done(&docs);
    return rc;
}

const struct compat_spec *compat_spec_ref(const struct compat_spec *spec)
{
    rc_ref(&spec->rc);
    return spec;
}

/* True for the last reference: then nobody can find it any more. */
static bool pool_leave(struct compat_specs *pool, const struct compat_spec *spec)
{
    pthread_mutex_lock(&pool->lock);
    bool last = rc_unref(&spec->rc);
    if (last && spec->identity.len > 0)
        str_table_remove(&pool->specs, spec->identity);
    for (uint32_t i = 0; i < spec->set_count && last; i++)
        pool_drop_rules(pool, spec->sets[i].rules_json);
    pthread_mutex_unlock(&pool->lock);
    return last;
}

void compat_spec_unref(const struct compat_spec *shared)
{
    struct compat_spec *spec = (struct compat_spec *)shared;
    struct compat_specs *pool = spec ? spec->maybe_pool : NULL;
    if (!spec || !(pool ? pool_leave(pool, spec) : rc_unref(&spec->rc)))
        return;
    for (uint32_t i = 0; i < spec->set_count && !pool; i++)
        rules_unref(spec->sets[i].rules);
    arena_done(&spec->arena);
    free(spec);
    compat_specs_unref(pool);
}

/* --- matching --- */

bool compat_set_is_asked(const struct compat_set *set, const struct compat_options *options)
{
    if (options->tags.count == 0)
        return true;
    for (uint32_t i = 0; i < options->tags.count; i++) {
        if (str_eq(set->tag, options->tags.items[i]))
            return true;
    }
    return false;
}

struct compat_outcome compat_spec_match(const struct compat_spec *spec,
                                        const struct feature_set *features,
                                        const struct compat_options *options)
{
    struct compat_outcome out = { .match = MATCH_YES, .set_ix = UINT32_MAX };
    for (uint32_t i = 0; i < spec->set_count; i++) {
        const struct compat_set *set = &spec->sets[i];
        if (!compat_set_is_asked(set, options))
            continue;
        struct rules_outcome one = rules_match(set->rules, features, options->rules);
        bool decides = options->sets == SETS_ALL ? one.match < out.match : one.match > out.match;
        if (out.set_ix == UINT32_MAX || decides) {
            out.match = one.match;
            out.set_ix = i;
        }
        if (one.match == MATCH_YES && set->weight > out.weight_best)
            out.weight_best = set->weight;
        out.nfd_differs = out.nfd_differs || one.nfd_differs;
    }
    return out;
}

size_t compat_spec_bytes(const struct compat_spec *spec)
{
    size_t bytes = sizeof *spec + spec->arena.held_bytes;
    for (uint32_t i = 0; i < spec->set_count; i++)
        bytes += rules_bytes(spec->sets[i].rules) +
                 (spec->maybe_pool ? spec->sets[i].rules_json.len : 0);
    return bytes;
}

void compat_spec_mention(const struct compat_spec *spec, struct feature_mask *mask)
{
    for (uint32_t i = 0; i < spec->set_count; i++)
        rules_mention(spec->sets[i].rules, mask);
}

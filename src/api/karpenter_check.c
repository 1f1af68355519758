/* What is wrong with a pool or a claim although its schema holds.
 *
 * Only what the schema does not already report is looked for here, so that a user reads every
 * problem once.
 */
#include "api/karpenter.h"
#include "api/requirement.h"

#include "codec/duration.h"
#include "codec/regex.h"

/* --- places --- */

struct place place_root(const json_val *root)
{
    return (struct place){ .at = root, .root = true, .found = root != NULL };
}

struct place place_member(const struct place *up, const char *name)
{
    const json_val *v = up->found ? json_member(up->at, name) : NULL;
    return (struct place){ .path = { .up = place_path(up), .name = str_of(name) },
                           .at = v ? v : up->at,
                           .found = v != NULL };
}

struct place place_item(const struct place *up, uint32_t ix)
{
    const json_val *v = up->found ? json_at(up->at, ix) : NULL;
    return (struct place){ .path = { .up = place_path(up), .index = ix },
                           .at = v ? v : up->at,
                           .found = v != NULL };
}

struct place place_key(const struct place *up, struct str key)
{
    const json_val *v = up->found ? json_get(up->at, key) : NULL;
    return (struct place){ .path = { .up = place_path(up), .name = key, .quoted = true },
                           .at = v ? v : up->at,
                           .found = v != NULL };
}

/* --- annotations --- */

static const struct annotation_rule *annotation_find(const struct annotation_rule *known,
                                                     uint32_t count, struct str name)
{
    for (uint32_t i = 0; i < count; i++) {
        if (str_eqz(name, known[i].name))
            return &known[i];
    }
    return NULL;
}

static const char *annotation_nearest(const struct annotation_rule *known, uint32_t count,
                                      struct str name)
{
    const char *best = NULL;
    size_t best_distance = 4;
    for (uint32_t i = 0; i < count; i++) {
        size_t distance = str_distance(name, str_of(known[i].name), best_distance - 1);
        if (distance < best_distance) {
            best_distance = distance;
            best = known[i].name;
        }
    }
    return best;
}

static void annotation_check(const struct annotation_rule *rule, struct str value,
                             const struct place *place, struct report *report)
{
    int64_t ns;
    AUTO_BUF words = { 0 };

    if (!rule->words) {
        if (duration_parse(value, &ns, NULL) < 0 || ns <= 0)
            place_error(report, place, "\"%.*s\" is not a duration of more than 0, such as 15m",
                        STR_ARG(value));
        return;
    }
    for (const char *const *word = rule->words; *word; word++) {
        if (str_eqz(value, *word))
            return;
        buf_addf(&words, "%s\"%s\"", words.len ? ", " : "", *word);
    }
    place_error(report, place, "expected one of %s, found \"%.*s\"", buf_str(&words).p,
                STR_ARG(value));
}

void annotations_check(const struct object *object, const json_val *root,
                       const struct annotation_rule *known, uint32_t known_count,
                       struct report *report)
{
    const struct str_map *map = &object->meta.annotations;
    struct place top = place_root(root), meta = place_member(&top, "metadata"),
                 list = place_member(&meta, "annotations");

    for (uint32_t i = 0; i < map->count; i++) {
        struct str name = map->items[i].key;
        struct place here = place_key(&list, name);
        if (!str_starts(name, STR("karve.io/")))
            continue;
        const struct annotation_rule *rule = annotation_find(known, known_count, name);
        const char *near = rule ? NULL : annotation_nearest(known, known_count, name);
        if (rule)
            annotation_check(rule, map->items[i].value, &here, report);
        else if (near)
            place_warning(report, &here, "unknown annotation, did you mean \"%s\"?", near);
        else
            place_warning(report, &here, "unknown annotation, nothing of a %s reads it",
                          object->kind->name);
    }
}

/* --- requirements --- */

static void key_check(struct str key, const struct label_rules *maybe_rules,
                      const struct place *place, struct report *report)
{
    struct str domain, name;
    const char *wrong = label_key_problem(key);

    if (!regex_match_static(PATTERN_LABEL_KEY, key))
        return; /* the schema says so */
    if (wrong)
        place_error(report, place, "\"%.*s\" %s", STR_ARG(key), wrong);
    str_cut(key, '/', &domain, &name);
    if (maybe_rules && label_is_restricted(maybe_rules, label_normalise(key)) &&
        !str_ends(domain, STR("karpenter.sh")) && !str_eqz(key, LABEL_HOSTNAME))
        place_error(report, place, "labels of the domain %.*s are restricted", STR_ARG(domain));
}

static bool is_capacity_type(struct str value)
{
    return str_eqz(value, CAPACITY_ON_DEMAND) || str_eqz(value, CAPACITY_SPOT) ||
           str_eqz(value, CAPACITY_RESERVED);
}

static void capacity_types_check(const struct expression *e, const struct place *values,
                                 struct report *report)
{
    uint32_t known = 0;
    if (!str_eqz(e->key, LABEL_CAPACITY_TYPE) || e->op != OP_IN || e->values.count == 0)
        return;
    for (uint32_t i = 0; i < e->values.count; i++)
        known += is_capacity_type(e->values.items[i]);
    if (known == 0)
        place_error(report, values, "has none of on-demand, spot and reserved");
    else if (e->min_values.set && known < e->min_values.value &&
             e->values.count >= e->min_values.value)
        place_error(report, values,
                    "has %u of on-demand, spot and reserved, minValues asks for %lld", known,
                    (long long)e->min_values.value);
    if (known == 0)
        return;
    for (uint32_t i = 0; i < e->values.count; i++) {
        struct place here = place_item(values, i);
        if (!is_capacity_type(e->values.items[i]))
            place_warning(report, &here,
                          "\"%.*s\" is not a capacity type and is ignored, expected on-demand, "
                          "spot or reserved",
                          STR_ARG(e->values.items[i]));
    }
}

void requirements_check(const struct expression *items, uint32_t count,
                        const struct label_rules *maybe_rules, const struct place *list,
                        struct report *report)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct expression *e = &items[i];
        struct place here = place_item(list, i), key = place_member(&here, "key"),
                     values = place_member(&here, "values");
        key_check(e->key, maybe_rules, &key, report);
        for (uint32_t v = 0; v < e->values.count; v++) {
            struct place value = place_item(&values, v);
            const char *wrong = label_value_problem(e->values.items[v]);
            if (wrong)
                place_error(report, &value, "\"%.*s\" %s", STR_ARG(e->values.items[v]), wrong);
        }
        capacity_types_check(e, &values, report);
    }
}

/* --- requirements that exclude each other --- */

/* One thing that is asked of a key: a requirement, or a label of the template. */
struct demand {
    struct requirement requirement;
    uint32_t expression_ix; /* UINT32_MAX: a label */
};

static bool allows_absence(const struct requirement *r)
{
    enum requirement_op op = requirement_operator(r);
    return op == OP_DOES_NOT_EXIST || (op == OP_NOT_IN && !r->gte.set && !r->lte.set);
}

/* Every instance type says what these are. */
static bool is_on_every_node(struct str key)
{
    static const char *const keys[] = { LABEL_ARCH,          LABEL_OS,
                                        LABEL_ZONE,          LABEL_REGION,
                                        LABEL_INSTANCE_TYPE, LABEL_CAPACITY_TYPE };
    for (size_t i = 0; i < KV_COUNT_OF(keys); i++) {
        if (str_eqz(key, keys[i]))
            return true;
    }
    return false;
}

static void demand_format(const struct demand *d, struct buf *out)
{
    if (d->expression_ix == UINT32_MAX)
        buf_addz(out, "the template's label ");
    requirement_format(&d->requirement, out);
}

/* Is there no node that `met` allows, although `now` or what came before asks for one? */
static void contradiction_check(const struct requirement *met, const struct demand *before,
                                const struct demand *now, bool absence_allowed,
                                const struct place *place, struct report *report)
{
    AUTO_BUF first = { 0 };
    AUTO_BUF second = { 0 };
    int64_t left = requirement_possible_count(met);

    demand_format(now, &second);
    if (left == 0 && absence_allowed && is_on_every_node(met->key)) {
        place_error(report, place, "every node has the label %.*s, so \"%s\" can never be met",
                    STR_ARG(met->key), buf_str(&second).p);
    } else if (left == 0 && !absence_allowed && before) {
        demand_format(before, &first);
        place_error(report, place,
                    "contradicts another requirement: no node can meet both \"%s\" and \"%s\"",
                    buf_str(&first).p, buf_str(&second).p);
    } else if (left == 0 && !absence_allowed) {
        place_error(report, place, "\"%s\" can never be met", buf_str(&second).p);
    } else if (met->min_values.set && left < met->min_values.value && before) {
        place_error(report, place,
                    "leaves %lld values of %.*s together with the other requirements, minValues "
                    "asks for %lld",
                    (long long)left, STR_ARG(met->key), (long long)met->min_values.value);
    }
}

/* Follow one key from `start` on through all that is asked of it, to the first demand that leaves
 * nothing. */
static void demands_check(struct arena *arena, const struct demand *demands, uint32_t count,
                          uint32_t start, const struct place *list, struct report *report)
{
    struct requirement met = demands[start].requirement;
    bool absence_allowed = allows_absence(&met);
    const struct demand *before = NULL;

    for (uint32_t i = start; i < count; i++) {
        const struct demand *now = &demands[i];
        if (!str_eq(now->requirement.key, met.key))
            continue;
        if (i > start) {
            met = requirement_intersection(arena, &met, &now->requirement);
            absence_allowed = absence_allowed && allows_absence(&now->requirement);
        }
        struct place here = place_item(list, now->expression_ix);
        uint32_t errors = report->error_count;
        if (now->expression_ix != UINT32_MAX)
            contradiction_check(&met, before, now, absence_allowed, &here, report);
        if (report->error_count != errors)
            return;
        before = now;
    }
}

static void contradictions_check(const struct node_spec *spec, const struct str_map *maybe_labels,
                                 const struct place *list, struct report *report)
{
    AUTO_ARENA arena = { 0 };
    uint32_t label_count = maybe_labels ? maybe_labels->count : 0, count = 0;
    struct demand *demands =
        arena_array(&arena, struct demand, label_count + spec->requirements.count);

    for (uint32_t i = 0; i < label_count; i++) {
        struct str_list value = { &maybe_labels->items[i].value, 1 };
        demands[count++] =
            (struct demand){ requirement_in(&arena, maybe_labels->items[i].key, value),
                             UINT32_MAX };
    }
    for (uint32_t i = 0; i < spec->requirements.count; i++) {
        const struct expression *e = &spec->requirements.items[i];
        struct requirement r;
        /* What the schema refuses means nothing here. */
        if ((e->op == OP_IN && e->values.count == 0) ||
            requirement_from_expression(&arena, e, &r, NULL) < 0)
            continue;
        demands[count++] = (struct demand){ r, i };
    }
    for (uint32_t i = 0; i < count; i++) {
        bool seen = false;
        for (uint32_t j = 0; j < i && !seen; j++)
            seen = str_eq(demands[j].requirement.key, demands[i].requirement.key);
        if (!seen)
            demands_check(&arena, demands, count, i, list, report);
    }
}

/* --- taints --- */

static void taint_check(const struct taint *taint, const struct place *place, struct report *report)
{
    struct place key = place_member(place, "key"), value = place_member(place, "value");
    const char *key_wrong = label_key_problem(taint->key);
    const char *value_wrong = label_value_problem(taint->value);

    if (key_wrong && regex_match_static(PATTERN_LABEL_KEY, taint->key))
        place_error(report, &key, "\"%.*s\" %s", STR_ARG(taint->key), key_wrong);
    if (value_wrong && regex_match_static(PATTERN_LABEL_KEY, taint->value))
        place_error(report, &value, "\"%.*s\" %s", STR_ARG(taint->value), value_wrong);
}

static bool same_taint(const struct taint *a, const struct taint *b)
{
    return a->effect == b->effect && str_eq(a->key, b->key);
}

/* Taints and startup taints are one list for this: a node cannot have both. */
static void taints_check(const struct node_spec *spec, const struct place *spec_place,
                         struct report *report)
{
    struct place lists[] = { place_member(spec_place, "taints"),
                             place_member(spec_place, "startupTaints") };
    uint32_t kept = spec->taints.count, total = kept + spec->startup_taints.count;

    for (uint32_t i = 0; i < total; i++) {
        const struct taint *taint =
            i < kept ? &spec->taints.items[i] : &spec->startup_taints.items[i - kept];
        struct place here = place_item(&lists[i >= kept], i < kept ? i : i - kept);
        taint_check(taint, &here, report);
        for (uint32_t j = 0; j < i; j++) {
            const struct taint *other =
                j < kept ? &spec->taints.items[j] : &spec->startup_taints.items[j - kept];
            if (!same_taint(taint, other))
                continue;
            place_error(report, &here, "duplicate: %s[%u] has the same key and effect",
                        j < kept ? "taints" : "startupTaints", j < kept ? j : j - kept);
            break;
        }
    }
}

/* --- all of it --- */

void node_spec_check(const struct node_spec *spec, const struct str_map *maybe_labels,
                     const struct place *place, struct report *report)
{
    struct place list = place_member(place, "requirements");
    const struct label_rules *rules = label_rules_for(spec->node_class_ref.group);

    taints_check(spec, place, report);
    requirements_check(spec->requirements.items, spec->requirements.count, rules, &list, report);
    contradictions_check(spec, maybe_labels, &list, report);
}

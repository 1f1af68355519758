/* What is wrong with a pool or a claim although its schema holds.
 *
 * Only what the schema does not already report is looked for here, so that a user reads every
 * problem once.
 */
#include "api/karpenter.h"
#include "api/requirement.h"

#include "codec/duration.h"
#include "codec/regex.h"

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
            place_error(report, place, "%s is not a duration of more than 0, such as 15m",
                        STR_SHOWN(value));
        return;
    }
    for (const char *const *word = rule->words; *word; word++) {
        if (str_eqz(value, *word))
            return;
        buf_addf(&words, "%s\"%s\"", words.len ? ", " : "", *word);
    }
    place_error(report, place, "expected one of %s, found %s", buf_str(&words).p, STR_SHOWN(value));
}

void annotations_check(const struct object *object, const json_val *root,
                       const struct annotation_rule *known, uint32_t known_count,
                       struct report *report)
{
    struct place top = place_root(root), meta = place_member(&top, "metadata"),
                 list = place_member(&meta, "annotations");

    json_each_member(list.found ? list.at : NULL, key, value) {
        struct str name = json_key(key);
        struct place here = place_key(&list, key, value);
        if (!str_starts(name, STR("karve.io/")))
            continue;
        const struct annotation_rule *rule = annotation_find(known, known_count, name);
        const char *near = rule ? NULL : annotation_nearest(known, known_count, name);
        if (rule)
            annotation_check(rule, json_str(value), &here, report);
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
        place_error(report, place, "%s %s", STR_SHOWN(key), wrong);
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
    uint32_t ix = 0;
    json_each_item(values->at, value) {
        struct place here = place_item(values, ix++, value);
        if (!is_capacity_type(json_str(value)))
            place_warning(report, &here,
                          "%s is not a capacity type and is ignored, expected on-demand, "
                          "spot or reserved",
                          STR_SHOWN(json_str(value)));
    }
}

void requirements_check(const struct expression *items, uint32_t count,
                        const struct label_rules *maybe_rules, const struct place *list,
                        struct report *report)
{
    uint32_t ix = 0;
    json_each_item(list->found ? list->at : NULL, item) {
        if (ix == count)
            break;
        const struct expression *e = &items[ix];
        struct place here = place_item(list, ix++, item), key = place_member(&here, "key"),
                     values = place_member(&here, "values");
        key_check(e->key, maybe_rules, &key, report);
        uint32_t value_ix = 0;
        json_each_item(values.found ? values.at : NULL, value) {
            struct place at = place_item(&values, value_ix++, value);
            const char *wrong = label_value_problem(json_str(value));
            if (wrong)
                place_error(report, &at, "%s %s", STR_SHOWN(json_str(value)), wrong);
        }
        capacity_types_check(e, &values, report);
    }
}

/* --- requirements that exclude each other --- */

/* One thing that is asked of a key: a requirement, or a label of the template. */
struct demand {
    struct requirement requirement;
    uint32_t expression_ix; /* UINT32_MAX: a label */
    uint32_t order;         /* labels first, then requirements as written */
};

static int demand_cmp(const void *a, const void *b)
{
    const struct demand *x = a, *y = b;
    int c = str_cmp(x->requirement.key, y->requirement.key);
    return c ? c : (x->order > y->order) - (x->order < y->order);
}

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

/* Follow one key through all that is asked of it, to the first demand that leaves nothing. */
static void demands_check(struct arena *arena, const struct demand *demands, uint32_t count,
                          const struct place *list, struct report *report)
{
    struct requirement met = demands[0].requirement;
    bool absence_allowed = allows_absence(&met);

    for (uint32_t i = 0; i < count; i++) {
        const struct demand *now = &demands[i], *before = i > 0 ? now - 1 : NULL;
        if (before) {
            met = requirement_intersection(arena, &met, &now->requirement);
            absence_allowed = absence_allowed && allows_absence(&now->requirement);
        }
        uint32_t errors = report->error_count;
        if (now->expression_ix == UINT32_MAX)
            continue;
        struct place here =
            place_item(list, now->expression_ix, json_at(list->at, now->expression_ix));
        contradiction_check(&met, before, now, absence_allowed, &here, report);
        if (report->error_count != errors)
            return;
    }
}

static void contradictions_check(const struct claim_node_spec *spec,
                                 const struct str_map *maybe_labels, const struct place *list,
                                 struct report *report)
{
    AUTO_ARENA arena = { 0 };
    uint32_t label_count = maybe_labels ? maybe_labels->count : 0, count = 0;
    struct demand *demands =
        arena_array(&arena, struct demand, label_count + spec->requirements.count);

    if (spec->requirements.count > REQUIREMENTS_MAX)
        return; /* refused, and maybe too many to compare */
    for (uint32_t i = 0; i < label_count; i++) {
        struct str_list value = { &maybe_labels->items[i].value, 1 };
        struct requirement r = requirement_in(&arena, maybe_labels->items[i].key, value);
        demands[count] = (struct demand){ r, UINT32_MAX, count };
        count++;
    }
    for (uint32_t i = 0; i < spec->requirements.count; i++) {
        const struct expression *e = &spec->requirements.items[i];
        struct requirement r;
        /* What the schema refuses means nothing here. */
        if ((e->op == OP_IN && e->values.count == 0) ||
            requirement_from_expression(&arena, e, &r, NULL) < 0)
            continue;
        demands[count] = (struct demand){ r, i, count };
        count++;
    }
    if (count > 0)
        qsort(demands, count, sizeof *demands, demand_cmp);
    for (uint32_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count; end++) {
            if (!str_eq(demands[end].requirement.key, demands[i].requirement.key))
                break;
        }
        demands_check(&arena, demands + i, end - i, list, report);
    }
}

/* --- taints --- */

static void taint_check(const struct taint *taint, const struct place *place, struct report *report)
{
    struct place key = place_member(place, "key"), value = place_member(place, "value");
    const char *key_wrong = label_key_problem(taint->key);
    const char *value_wrong = label_value_problem(taint->value);

    if (key_wrong && regex_match_static(PATTERN_LABEL_KEY, taint->key))
        place_error(report, &key, "%s %s", STR_SHOWN(taint->key), key_wrong);
    if (value_wrong && regex_match_static(PATTERN_LABEL_KEY, taint->value))
        place_error(report, &value, "%s %s", STR_SHOWN(taint->value), value_wrong);
}

/* Taints and startup taints are one list for this: a node cannot have both. */
static void taints_check(const struct claim_node_spec *spec, const struct place *spec_place,
                         struct report *report)
{
    static const char *const names[] = { "taints", "startupTaints" };
    const struct {
        const struct taint *items;
        uint32_t count;
    } lists[] = { { spec->taints.items, spec->taints.count },
                  { spec->startup_taints.items, spec->startup_taints.count } };
    struct taint_set seen = { 0 };

    for (size_t l = 0; l < KV_COUNT_OF(lists); l++) {
        struct place list = place_member(spec_place, names[l]);
        uint32_t ix = 0;
        json_each_item(list.found ? list.at : NULL, item) {
            const struct taint *taint = &lists[l].items[ix];
            const struct taint *other = taint_set_add(&seen, taint);
            struct place here = place_item(&list, ix++, item);
            taint_check(taint, &here, report);
            if (!other)
                continue;
            bool first = other >= lists[0].items && other < lists[0].items + lists[0].count;
            place_error(report, &here, "duplicate: %s[%zu] has the same key and effect",
                        names[first ? 0 : 1], (size_t)(other - lists[first ? 0 : 1].items));
        }
    }
    taint_set_done(&seen);
}

/* --- all of it --- */

void claim_node_spec_check(const struct claim_node_spec *spec, const struct str_map *maybe_labels,
                           const struct place *place, struct report *report)
{
    struct place list = place_member(place, "requirements");
    const struct label_rules *rules = label_rules_for(spec->node_class_ref.group);

    taints_check(spec, place, report);
    requirements_check(spec->requirements.items, spec->requirements.count, rules, &list, report);
    contradictions_check(spec, maybe_labels, &list, report);
}

/* Tables of the small structs, and what they mean. */
#include "api/common.h"

const struct rule label_key_rule = { .check = label_key_problem };
const struct rule label_value_rule = { .check = label_value_problem };

static struct str member(const json_val *object, struct str key)
{
    return json_str(json_get(object, key));
}

/* --- taints and tolerations --- */

static const struct rule effect_rule = { ENUMS("NoSchedule", "PreferNoSchedule", "NoExecute") };

#define T struct taint
static const struct field taint_fields[] = {
    FIELD(STR, key, "key", "The taint's key.", .flags = FIELD_REQUIRED, .rule = &label_key_rule),
    FIELD(STR, value, "value", "The taint's value.", .rule = &label_value_rule),
    FIELD(ENUM, effect, "effect", "What happens to pods that do not tolerate it.",
          .flags = FIELD_REQUIRED, .rule = &effect_rule),
    FIELD(TIME, time_added_us, "timeAdded", "When a NoExecute taint was added."),
};
#undef T
const struct schema taint_schema = SCHEMA("Taint", struct taint, taint_fields);

const struct taint *taint_set_add(struct taint_set *set, const struct taint *taint)
{
    AUTO_BUF key = { 0 };
    buf_addf(&key, "%d %.*s", taint->effect, STR_ARG(taint->key));
    const struct taint *earlier = str_table_get(&set->by_key, buf_str(&key));
    if (!earlier)
        str_table_put(&set->by_key, buf_str(&key), (void *)taint);
    return earlier;
}

void taint_set_done(struct taint_set *set)
{
    str_table_done(&set->by_key);
}

/* An empty string is as good as none: any effect, operator Equal. It stands last, so that the
 * others keep their numbers. */
static const struct rule toleration_effect_rule = { ENUMS("NoSchedule", "PreferNoSchedule",
                                                          "NoExecute", "") };
static const struct rule toleration_op_rule = { ENUMS("Exists", "Equal", "Lt", "Gt", "") };

static const char *toleration_key_problem(struct str key)
{
    return key.len ? label_key_problem(key) : NULL;
}
static const struct rule toleration_key_rule = { .check = toleration_key_problem };

static bool empty_key_exists(const json_val *self, const json_val *old KV_UNUSED)
{
    return member(self, STR("key")).len || str_eq(member(self, STR("operator")), STR("Exists"));
}

static bool exists_has_no_value(const json_val *self, const json_val *old KV_UNUSED)
{
    return !str_eq(member(self, STR("operator")), STR("Exists")) ||
           member(self, STR("value")).len == 0;
}

static bool seconds_need_no_execute(const json_val *self, const json_val *old KV_UNUSED)
{
    const json_val *seconds = json_get(self, STR("tolerationSeconds"));
    return !seconds || json_is_null(seconds) ||
           str_eq(member(self, STR("effect")), STR("NoExecute"));
}

static bool value_fits_operator(const json_val *self, const json_val *old KV_UNUSED)
{
    struct str op = member(self, STR("operator")), value = member(self, STR("value"));
    int64_t n;
    if (str_eq(op, STR("Lt")) || str_eq(op, STR("Gt")))
        return str_to_i64(value, &n);
    return value.len == 0 || !label_value_problem(value);
}

static const struct cel_rule toleration_cel[] = {
    { "has(self.key) || self.operator == 'Exists'",
      "an empty key tolerates every taint, expected operator Exists with it", empty_key_exists },
    { "self.operator != 'Exists' || !has(self.value)",
      "operator Exists takes no value, expected none", exists_has_no_value },
    { "!has(self.tolerationSeconds) || self.effect == 'NoExecute'",
      "tolerationSeconds is only for effect NoExecute", seconds_need_no_execute },
    { "self.operator in ['Lt', 'Gt'] ? self.value.matches('^-?[0-9]+$') : true",
      "value does not fit, expected a label value, or an integer with operator Lt or Gt",
      value_fits_operator },
    { 0 },
};

#define T struct toleration
static const struct field toleration_fields[] = {
    FIELD(STR, key, "key", NULL, .rule = &toleration_key_rule),
    FIELD(ENUM, op, "operator", NULL, .rule = &toleration_op_rule),
    FIELD(STR, value, "value", NULL),
    FIELD(ENUM, effect, "effect", NULL, .rule = &toleration_effect_rule),
    FIELD(MAYBE_INT, seconds, "tolerationSeconds", NULL),
};
#undef T
const struct schema toleration_schema =
    SCHEMA("Toleration", struct toleration, toleration_fields, .cel = toleration_cel);

bool toleration_tolerates(const struct toleration *tol, const struct taint *taint)
{
    int64_t ours, theirs;

    if (tol->effect != EFFECT_ANY && tol->effect != taint->effect)
        return false;
    if (tol->key.len && !str_eq(tol->key, taint->key))
        return false;
    switch ((enum toleration_op)tol->op) {
    case TOLERATION_EXISTS:
        return true;
    case TOLERATION_LT:
    case TOLERATION_GT:
        if (!str_to_i64(tol->value, &ours) || !str_to_i64(taint->value, &theirs))
            return false;
        return tol->op == TOLERATION_LT ? theirs < ours : theirs > ours;
    case TOLERATION_UNSET:
    case TOLERATION_EQUAL:
        return str_eq(tol->value, taint->value);
    }
    KV_UNREACHABLE();
}

/* --- requirements on labels --- */

const char *const requirement_op_names[] = { "In",  "NotIn", "Exists", "DoesNotExist", "Gt", "Lt",
                                             "Gte", "Lte",   NULL };
static const struct rule selector_op_rule = { ENUMS("In", "NotIn", "Exists", "DoesNotExist") };
static const struct rule node_op_rule = { ENUMS("In", "NotIn", "Exists", "DoesNotExist", "Gt",
                                                "Lt") };
static const struct rule values_rule = { .item = &label_value_rule };

static bool values_fit_operator(const json_val *self, const json_val *old KV_UNUSED)
{
    struct str op = member(self, STR("operator"));
    const json_val *values = json_get(self, STR("values"));
    size_t count = json_count(values);
    int64_t n;
    if (str_eq(op, STR("In")) || str_eq(op, STR("NotIn")))
        return count > 0;
    if (str_eq(op, STR("Exists")) || str_eq(op, STR("DoesNotExist")))
        return count == 0;
    if (str_eq(op, STR("Gt")) || str_eq(op, STR("Lt")))
        return count == 1 && str_to_i64(json_str(json_at(values, 0)), &n);
    return true; /* the operator itself is reported */
}

static const struct cel_rule selector_values_cel[] = {
    { "self.operator in ['In', 'NotIn'] ? self.values.size() > 0 : self.values.size() == 0",
      "values do not fit the operator, expected at least one with In and NotIn, none with Exists "
      "and DoesNotExist",
      values_fit_operator },
    { 0 },
};
static const struct cel_rule node_values_cel[] = {
    { "self.operator in ['In', 'NotIn'] ? self.values.size() > 0 : "
      "self.operator in ['Gt', 'Lt'] ? self.values.size() == 1 : self.values.size() == 0",
      "values do not fit the operator, expected at least one with In and NotIn, none with Exists "
      "and DoesNotExist, one integer with Gt and Lt",
      values_fit_operator },
    { 0 },
};

#define T struct expression
static const struct field selector_expression_fields[] = {
    FIELD(STR, key, "key", NULL, .flags = FIELD_REQUIRED, .rule = &label_key_rule),
    FIELD(ENUM, op, "operator", NULL, .flags = FIELD_REQUIRED, .rule = &selector_op_rule),
    FIELD(STRS, values, "values", NULL, .rule = &values_rule),
};
static const struct field node_expression_fields[] = {
    FIELD(STR, key, "key", NULL, .flags = FIELD_REQUIRED, .rule = &label_key_rule),
    FIELD(ENUM, op, "operator", NULL, .flags = FIELD_REQUIRED, .rule = &node_op_rule),
    FIELD(STRS, values, "values", NULL, .rule = &values_rule),
};
static const struct field node_field_fields[] = {
    FIELD(STR, key, "key", NULL, .flags = FIELD_REQUIRED),
    FIELD(ENUM, op, "operator", NULL, .flags = FIELD_REQUIRED, .rule = &node_op_rule),
    FIELD(STRS, values, "values", NULL),
};
#undef T
const struct schema selector_expression_schema =
    SCHEMA("LabelSelectorRequirement", struct expression, selector_expression_fields,
           .cel = selector_values_cel);
const struct schema node_expression_schema = SCHEMA("NodeSelectorRequirement", struct expression,
                                                    node_expression_fields, .cel = node_values_cel);

/* Of a node's fields only the name can be asked for, and only one. */
static bool is_node_name(const json_val *self, const json_val *old KV_UNUSED)
{
    struct str op = member(self, STR("operator"));
    return str_eq(member(self, STR("key")), STR("metadata.name")) &&
           (str_eq(op, STR("In")) || str_eq(op, STR("NotIn"))) &&
           json_count(json_get(self, STR("values"))) == 1;
}
static const struct cel_rule node_field_cel[] = {
    { "self.key == 'metadata.name' && self.operator in ['In', 'NotIn'] && self.values.size() == 1",
      "expected key metadata.name, operator In or NotIn, and one value", is_node_name },
    { 0 },
};
static const struct schema node_field_schema =
    SCHEMA("NodeSelectorRequirement", struct expression, node_field_fields, .cel = node_field_cel);

#define T struct node_selector_term
static const struct field node_selector_term_fields[] = {
    FIELD(LIST, expressions, "matchExpressions", NULL, .sub = &node_expression_schema),
    FIELD(LIST, fields, "matchFields", NULL, .sub = &node_field_schema),
};
#undef T
const struct schema node_selector_term_schema =
    SCHEMA("NodeSelectorTerm", struct node_selector_term, node_selector_term_fields);

static const struct rule match_labels_rule = { .key = &label_key_rule, .item = &label_value_rule };

#define T struct label_selector
static const struct field label_selector_fields[] = {
    FIELD(STR_MAP, match_labels, "matchLabels", NULL, .rule = &match_labels_rule),
    FIELD(LIST, expressions, "matchExpressions", NULL, .sub = &selector_expression_schema),
};
#undef T
const struct schema label_selector_schema =
    SCHEMA("LabelSelector", struct label_selector, label_selector_fields);

static bool list_has(const struct str_list *list, struct str s)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (str_eq(list->items[i], s))
            return true;
    }
    return false;
}

static bool expression_matches(const struct expression *e, const struct str_map *labels)
{
    struct str value = str_map_get(labels, e->key);
    switch ((enum requirement_op)e->op) {
    case OP_IN:
        return value.p && list_has(&e->values, value);
    case OP_NOT_IN:
        return !value.p || !list_has(&e->values, value);
    case OP_EXISTS:
        return value.p != NULL;
    case OP_DOES_NOT_EXIST:
        return value.p == NULL;
    case OP_UNSET: /* an operator that we do not know selects nothing */
    case OP_GT:    /* and label selectors have no numbers */
    case OP_LT:
    case OP_GTE:
    case OP_LTE:
        return false;
    }
    KV_UNREACHABLE();
}

bool label_selector_matches(const struct label_selector *maybe_sel, const struct str_map *labels)
{
    if (!maybe_sel)
        return false;
    for (uint32_t i = 0; i < maybe_sel->match_labels.count; i++) {
        const struct str_pair *want = &maybe_sel->match_labels.items[i];
        struct str value = str_map_get(labels, want->key);
        if (!value.p || !str_eq(value, want->value))
            return false;
    }
    for (uint32_t i = 0; i < maybe_sel->expressions.count; i++) {
        if (!expression_matches(&maybe_sel->expressions.items[i], labels))
            return false;
    }
    return true;
}

/* --- conditions --- */

const struct rule condition_status_rule = { ENUMS("True", "False", "Unknown") };
static const struct rule condition_type_rule = {
    .len_max = 316,
    .pattern = "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
               "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
};
static const struct rule condition_reason_rule = {
    .len_min = 1,
    .len_max = 1024,
    .pattern = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
};
static const struct rule condition_message_rule = { .len_max = 32768 };
static const struct rule condition_generation_rule = { .format = "int64", .min = { 0, true } };
static const struct rule condition_time_rule = { .format = "date-time" };

#define T struct condition
static const struct field condition_fields[] = {
    FIELD(STR, type, "type", "What the condition is about.", .flags = FIELD_REQUIRED,
          .rule = &condition_type_rule),
    FIELD(ENUM, status, "status", "Whether it holds.", .flags = FIELD_REQUIRED,
          .rule = &condition_status_rule),
    FIELD(INT, observed_generation, "observedGeneration",
          "The metadata.generation that the condition was computed from.",
          .rule = &condition_generation_rule),
    FIELD(TIME, transition_us, "lastTransitionTime", "When the status last changed.",
          .flags = FIELD_REQUIRED, .rule = &condition_time_rule),
    FIELD(STR, reason, "reason", "Why it changed, as one word for programs.",
          .flags = FIELD_REQUIRED, .rule = &condition_reason_rule),
    FIELD(STR, message, "message", "Why it changed, for people. May be empty.",
          .flags = FIELD_REQUIRED, .rule = &condition_message_rule),
};
#undef T
const struct schema condition_schema = SCHEMA("Condition", struct condition, condition_fields);

const struct condition *condition_find(const struct condition *items, uint32_t count,
                                       struct str type)
{
    for (uint32_t i = 0; i < count; i++) {
        if (str_eq(items[i].type, type))
            return &items[i];
    }
    return NULL;
}

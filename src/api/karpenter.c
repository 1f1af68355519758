/* The shared tables of karve's own kinds.
 *
 * CEL rules come in pairs: the text that an API server runs, and the same rule as a C function for
 * offline use. A rule stands on the smallest value it speaks of, so that the path of a problem
 * names the requirement at fault and not the whole list. Anything that CEL iterates has a limit
 * on its size, because an API server refuses a CRD whose rules could be expensive.
 */
#include "api/karpenter.h"

#include "codec/duration.h"
#include "codec/regex.h"

/* --- rules of single values --- */

const char *label_key_words(struct str text)
{
    if (text.len == 0 || regex_match_static(PATTERN_LABEL_KEY, text))
        return NULL;
    return "is not a label key, expected a name such as team or example.com/team";
}

const char *label_text_words(struct str text)
{
    if (regex_match_static(PATTERN_LABEL_VALUE, text))
        return NULL;
    return "is not a label value, expected letters, digits and - _ . between them";
}

/* Taint values have the pattern of keys. */
static const char *taint_value_words(struct str text)
{
    if (regex_match_static(PATTERN_LABEL_KEY, text))
        return NULL;
    return "is not a taint value, expected letters, digits and - _ . between them";
}

const struct rule duration_rule = { .pattern = PATTERN_DURATION };

/* A text may fit the pattern and still be longer than an int64 of nanoseconds can count. */
const char *duration_problem(struct str text)
{
    int64_t ns;
    if (str_eqz(text, "Never") || duration_parse(text, &ns, NULL) == 0)
        return NULL;
    return "is not a duration such as 1h30m (at most 292 years), nor Never";
}

static const struct rule quantity_rule = { .pattern = PATTERN_QUANTITY };
const struct rule resources_rule = { .item = &quantity_rule };

struct duration nillable_duration(struct str text)
{
    int64_t ns;
    if (text.p == NULL || str_eqz(text, "Never"))
        return (struct duration){ .set = true, .never = true };
    if (duration_parse(text, &ns, NULL) < 0)
        ns = INT64_MAX;
    return (struct duration){ .set = true, .ns = ns };
}

/* --- nodeClassRef --- */

static bool same_group(const json_val *self, const json_val *old)
{
    return json_equal(json_member(self, "group"), json_member(old, "group"));
}

static bool same_kind(const json_val *self, const json_val *old)
{
    return json_equal(json_member(self, "kind"), json_member(old, "kind"));
}

#define T struct node_class_ref
static const struct field node_class_ref_fields[] = {
    FIELD(STR, group, "group", "API group of the node class, without a version.",
          .flags = FIELD_REQUIRED, RULE(.len_min = 1, .pattern = "^[^/]*$")),
    FIELD(STR, kind, "kind", "Kind of the node class, EC2NodeClass for example.",
          .flags = FIELD_REQUIRED, RULE(.len_min = 1)),
    FIELD(STR, name, "name", "Name of the node class object.", .flags = FIELD_REQUIRED,
          RULE(.len_min = 1)),
};
#undef T
const struct schema node_class_ref_schema =
    SCHEMA("NodeClassReference", struct node_class_ref, node_class_ref_fields,
           .doc = "The node class: what the cloud needs to know to launch a node.",
           CEL_RULES({ "self.group == oldSelf.group", "group cannot be changed", same_group },
                     { "self.kind == oldSelf.kind", "kind cannot be changed", same_kind }));

struct str node_class_ref_field(const struct node_class_ref *ref, struct str prefix,
                                struct str path)
{
    if (!str_starts(path, prefix))
        return STR_NONE;
    struct str name = str_sub(path, prefix.len, path.len);
    if (str_eqz(name, "group"))
        return ref->group;
    if (str_eqz(name, "kind"))
        return ref->kind;
    return str_eqz(name, "name") ? ref->name : STR_NONE;
}

/* --- taints --- */

#define T struct taint
static const struct field node_taint_fields[] = {
    FIELD(ENUM, effect, "effect",
          "What happens to pods that do not tolerate the taint: NoSchedule keeps new ones away, "
          "PreferNoSchedule tries to, NoExecute also evicts those that run.",
          .flags = FIELD_REQUIRED, RULE(ENUMS("NoSchedule", "PreferNoSchedule", "NoExecute"))),
    FIELD(STR, key, "key", "The taint's key, in the form of a label key.", .flags = FIELD_REQUIRED,
          RULE(.len_min = 1, .pattern = PATTERN_LABEL_KEY, .check = label_key_words)),
    FIELD(TIME, time_added_us, "timeAdded",
          "When the taint was put on the node; written for NoExecute taints only.",
          RULE(.format = "date-time")),
    FIELD(STR, value, "value", "The taint's value.",
          RULE(.pattern = PATTERN_LABEL_KEY, .check = taint_value_words)),
};
#undef T
const struct schema node_taint_schema = SCHEMA("Taint", struct taint, node_taint_fields,
                                               .doc = "Keeps pods away that do not tolerate it.");

/* --- requirements --- */

static bool operator_is(const json_val *self, const char *word)
{
    return str_eqz(json_str(json_member(self, "operator")), word);
}

static size_t value_count(const json_val *self)
{
    return json_count(json_member(self, "values"));
}

static bool in_has_values(const json_val *self, const json_val *old KV_UNUSED)
{
    return !operator_is(self, "In") || value_count(self) > 0;
}

static bool in_and_not_in_have_values(const json_val *self, const json_val *old KV_UNUSED)
{
    return !(operator_is(self, "In") || operator_is(self, "NotIn")) || value_count(self) > 0;
}

static bool comparison_has_one_integer(const json_val *self, const json_val *old KV_UNUSED)
{
    int64_t n;
    if (!operator_is(self, "Gt") && !operator_is(self, "Lt") && !operator_is(self, "Gte") &&
        !operator_is(self, "Lte"))
        return true;
    return value_count(self) == 1 &&
           str_to_i64(json_str(json_at(json_member(self, "values"), 0)), &n) && n >= 0;
}

static bool in_has_min_values(const json_val *self, const json_val *old KV_UNUSED)
{
    int64_t min;
    if (!operator_is(self, "In") || !json_i64(json_member(self, "minValues"), &min))
        return true;
    return min < 0 || value_count(self) >= (uint64_t)min;
}

#define RULE_IN                                                                                    \
    {                                                                                              \
        "self.operator != 'In' || (has(self.values) && self.values.size() > 0)",                   \
            "operator In needs at least one value", in_has_values                                  \
    }
#define RULE_IN_NOT_IN                                                                             \
    {                                                                                              \
        "!(self.operator in ['In', 'NotIn']) || (has(self.values) && self.values.size() > 0)",     \
            "operators In and NotIn need at least one value", in_and_not_in_have_values            \
    }
#define RULE_COMPARISON                                                                            \
    {                                                                                              \
        "!(self.operator in ['Gt', 'Lt', 'Gte', 'Lte']) || "                                       \
        "(has(self.values) && self.values.size() == 1 && int(self.values[0]) >= 0)",               \
            "operators Gt, Lt, Gte and Lte need exactly one value, an integer of at least 0",      \
            comparison_has_one_integer                                                             \
    }
#define RULE_MIN_VALUES                                                                            \
    {                                                                                              \
        "self.operator != 'In' || !has(self.minValues) || "                                        \
        "(has(self.values) && self.values.size() >= self.minValues)",                              \
            "operator In with minValues needs at least that many values", in_has_min_values        \
    }

/* The domain of a key is what stands before its slash; a key without one is taken whole. */
static bool domain_is_ours(struct str key)
{
    struct str domain, rest;
    str_cut(key, '/', &domain, &rest);
    return str_ends(domain, STR("karpenter.sh"));
}

static bool pool_key_domain(const json_val *self, const json_val *old KV_UNUSED)
{
    struct str key = json_str(self);
    return str_eqz(key, "karpenter.sh/capacity-type") || str_eqz(key, "karpenter.sh/nodepool") ||
           !domain_is_ours(key);
}

static bool not_nodepool(const json_val *self, const json_val *old KV_UNUSED)
{
    return !str_eqz(json_str(self), "karpenter.sh/nodepool");
}

static bool not_hostname(const json_val *self, const json_val *old KV_UNUSED)
{
    return !str_eqz(json_str(self), "kubernetes.io/hostname");
}

#define RULE_KEY_DOMAIN                                                                            \
    {                                                                                              \
        "self in ['karpenter.sh/capacity-type', 'karpenter.sh/nodepool'] || "                      \
        "!self.split('/')[0].endsWith('karpenter.sh')",                                            \
            "labels of the domain karpenter.sh are restricted, except karpenter.sh/capacity-type", \
            pool_key_domain                                                                        \
    }
#define RULE_KEY_NOT_NODEPOOL                                                                      \
    {                                                                                              \
        "self != 'karpenter.sh/nodepool'",                                                         \
            "label karpenter.sh/nodepool is restricted: nodes get their pool's name anyway",       \
            not_nodepool                                                                           \
    }
#define RULE_KEY_NOT_HOSTNAME                                                                      \
    {                                                                                              \
        "self != 'kubernetes.io/hostname'",                                                        \
            "label kubernetes.io/hostname is restricted: nodes get their names later",             \
            not_hostname                                                                           \
    }

#define KEY_FIELD(...)                                                                             \
    FIELD(STR, key, "key", "The label key that the requirement is about.",                         \
          .flags = FIELD_REQUIRED,                                                                 \
          RULE(.len_max = 316, .pattern = PATTERN_LABEL_KEY, .check = label_key_words,             \
               CEL_RULES(__VA_ARGS__)))
#define MIN_VALUES_FIELD                                                                           \
    FIELD(MAYBE_INT, min_values, "minValues",                                                      \
          "How many different values of the key the instance types that are left must offer. "     \
          "Alpha.",                                                                                \
          RULE(BETWEEN(1, 50)))
#define OPERATOR_FIELD                                                                             \
    FIELD(ENUM, op, "operator",                                                                    \
          "How the label's value relates to the values: In, NotIn, Exists, DoesNotExist, or as "   \
          "an integer Gt, Lt, Gte, Lte.",                                                          \
          .flags = FIELD_REQUIRED,                                                                 \
          RULE(ENUMS("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte")))
#define VALUES_FIELD                                                                               \
    FIELD(STRS, values, "values",                                                                  \
          "At least one for In; exactly one integer for Gt, Lt, Gte and Lte; none for Exists and " \
          "DoesNotExist.",                                                                         \
          RULE(.list_kind = LIST_ATOMIC))

#define T struct expression
static const struct field pool_requirement_fields[] = {
    KEY_FIELD(RULE_KEY_DOMAIN, RULE_KEY_NOT_NODEPOOL, RULE_KEY_NOT_HOSTNAME),
    MIN_VALUES_FIELD,
    OPERATOR_FIELD,
    VALUES_FIELD,
};
static const struct field claim_requirement_fields[] = {
    KEY_FIELD(RULE_KEY_DOMAIN, RULE_KEY_NOT_HOSTNAME),
    MIN_VALUES_FIELD,
    OPERATOR_FIELD,
    VALUES_FIELD,
};
static const struct field overlay_requirement_fields[] = {
    KEY_FIELD(RULE_KEY_DOMAIN, RULE_KEY_NOT_HOSTNAME),
    OPERATOR_FIELD,
    VALUES_FIELD,
};
#undef T

const struct schema pool_requirement_schema =
    SCHEMA("Requirement", struct expression, pool_requirement_fields,
           .doc = "What a label of the node must be.",
           CEL_RULES(RULE_IN, RULE_COMPARISON, RULE_MIN_VALUES));
const struct schema claim_requirement_schema =
    SCHEMA("Requirement", struct expression, claim_requirement_fields,
           .doc = "What a label of the node must be.",
           CEL_RULES(RULE_IN, RULE_COMPARISON, RULE_MIN_VALUES));
const struct schema overlay_requirement_schema =
    SCHEMA("OverlayRequirement", struct expression, overlay_requirement_fields,
           .doc = "What a label of the instance type must be.",
           CEL_RULES(RULE_IN_NOT_IN, RULE_COMPARISON));

/* --- conditions --- */

#define PATTERN_CONDITION_TYPE                                                                     \
    "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"                        \
    "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
#define PATTERN_CONDITION_REASON "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
#define PATTERN_CONDITION_REASON_OR_NONE "^([A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?)?$"

#define CONDITION_FIELDS(...)                                                                      \
    FIELD(TIME, transition_us, "lastTransitionTime", "When the status last changed.",              \
          .flags = FIELD_REQUIRED, RULE(.format = "date-time")),                                   \
        FIELD(STR, message, "message", "What happened, for people. May be empty.",                 \
              .flags = FIELD_REQUIRED, RULE(.len_max = 32768)),                                    \
        FIELD(INT, observed_generation, "observedGeneration",                                      \
              "The metadata.generation that the condition was derived from.",                      \
              RULE(.format = "int64", AT_LEAST(0))),                                               \
        FIELD(STR, reason, "reason", "Why, in one word in CamelCase, for programs.",               \
              .flags = FIELD_REQUIRED, RULE(.len_max = 1024, __VA_ARGS__)),                        \
        FIELD(ENUM, status, "status", "Whether the condition holds: True, False or Unknown.",      \
              .flags = FIELD_REQUIRED, RULE(ENUMS("True", "False", "Unknown"))),                   \
        FIELD(STR, type, "type", "What the condition is about, in CamelCase.",                     \
              .flags = FIELD_REQUIRED, RULE(.len_max = 316, .pattern = PATTERN_CONDITION_TYPE))

#define T struct condition
static const struct field status_condition_fields[] = {
    CONDITION_FIELDS(.len_min = 1, .pattern = PATTERN_CONDITION_REASON),
};
static const struct field claim_condition_fields[] = {
    CONDITION_FIELDS(.pattern = PATTERN_CONDITION_REASON_OR_NONE),
};
#undef T
const struct schema status_condition_schema =
    SCHEMA("Condition", struct condition, status_condition_fields,
           .doc = "One thing that is known about the object's state.");
const struct schema claim_condition_schema =
    SCHEMA("Condition", struct condition, claim_condition_fields,
           .doc = "One thing that is known about the claim's state.");

const struct rule conditions_rule = {
    KEYED_BY("type"),
};

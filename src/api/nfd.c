/* The tables of NodeFeature and NodeFeatureGroup, and the rules that nfd-master only finds when it
 * evaluates: operand counts, numbers that are none, ranges upside down, patterns that do not
 * compile. There such a rule silently drops the node; here it is an error before it is applied. */
#include "api/nfd.h"

#include "api/builtin.h"
#include "codec/regex.h"

/* --- NodeFeature --- */

static const struct schema flag_schema = {
    .name = "Nil",
    .size = sizeof(struct feature_flag),
    .align = _Alignof(struct feature_flag),
    .slot = &(struct schema_plan_slot){ NULL },
};

#define T struct feature_flags
static const struct field flags_fields[] = {
    FIELD(MAP, elements, "elements", NULL, .flags = FIELD_REQUIRED, .sub = &flag_schema),
};
#undef T
static const struct schema flags_schema =
    SCHEMA("FlagFeatureSet", struct feature_flags, flags_fields);

#define T struct feature_attributes
static const struct field attributes_fields[] = {
    FIELD(STR_MAP, elements, "elements", NULL, .flags = FIELD_REQUIRED),
};
#undef T
static const struct schema attributes_schema =
    SCHEMA("AttributeFeatureSet", struct feature_attributes, attributes_fields);

#define T struct feature_instance
static const struct field instance_fields[] = {
    FIELD(STR_MAP, attributes, "attributes", NULL, .flags = FIELD_REQUIRED),
};
#undef T
static const struct schema instance_schema =
    SCHEMA("InstanceFeature", struct feature_instance, instance_fields);

#define T struct feature_instances
static const struct field instances_fields[] = {
    FIELD(LIST, elements, "elements", NULL, .flags = FIELD_REQUIRED, .sub = &instance_schema),
};
#undef T
static const struct schema instances_schema =
    SCHEMA("InstanceFeatureSet", struct feature_instances, instances_fields);

#define T struct features
static const struct field features_fields[] = {
    FIELD(MAP, flags, "flags", NULL, .flags = FIELD_SHARED, .sub = &flags_schema),
    FIELD(MAP, attributes, "attributes", NULL, .sub = &attributes_schema),
    FIELD(MAP, instances, "instances", NULL, .flags = FIELD_SHARED, .sub = &instances_schema),
    FIELD(STR_MAP, kernel_config, "kernelConfig", NULL, .flags = FIELD_SHARED | FIELD_DERIVED),
    FIELD(BOOL, has_kernel_config, "hasKernelConfig", NULL, .flags = FIELD_DERIVED),
};
#undef T
static const struct schema features_schema = SCHEMA("Features", struct features, features_fields);

#define T struct node_feature_spec
static const struct field node_feature_spec_fields[] = {
    FIELD(STRUCT, features, "features", NULL, .sub = &features_schema),
    FIELD(STR_MAP, labels, "labels", NULL),
};
#undef T
static const struct schema node_feature_spec_schema =
    SCHEMA("NodeFeatureSpec", struct node_feature_spec, node_feature_spec_fields);

#define T struct node_feature
static const struct field node_feature_fields[] = {
    OBJECT_FIELDS(struct node_feature),
    FIELD(STRUCT, spec, "spec", NULL, .flags = FIELD_REQUIRED, .sub = &node_feature_spec_schema),
};
#undef T
static const struct schema node_feature_schema =
    SCHEMA("NodeFeature", struct node_feature, node_feature_fields);

/* Takes kernel.config out of the attributes: it is thousands of entries that all nodes with one
 * kernel have in common, among others (host name, serial numbers) that no two nodes share. */
static void node_feature_settle(struct object *view, struct arena *arena)
{
    struct features *f = &((struct node_feature *)view)->spec.features;
    struct feature_attributes *rest =
        arena_array(arena, struct feature_attributes, f->attributes.count);
    uint32_t count = 0;

    for (uint32_t i = 0; i < f->attributes.count; i++) {
        const struct feature_attributes *a = &f->attributes.items[i];

        if (str_eqz(a->key, "kernel.config")) {
            f->kernel_config = a->elements;
            f->has_kernel_config = true;
        } else {
            rest[count++] = *a;
        }
    }
    f->attributes.items = count > 0 ? rest : NULL;
    f->attributes.count = count;
}

static void node_feature_check(const struct object *object, const json_val *root,
                               struct report *report)
{
    if (node_feature_node((const struct node_feature *)object).len == 0)
        warn_at(report, root, "metadata.labels",
                "nfd.node.kubernetes.io/node-name is missing: nobody will read these features");
}

struct str node_feature_node(const struct node_feature *nf)
{
    return str_map_get(&nf->object.meta.labels, STR("nfd.node.kubernetes.io/node-name"));
}

const struct kind node_feature_kind = {
    .group = "nfd.k8s-sigs.io",
    .version = "v1alpha1",
    .name = "NodeFeature",
    .plural = "nodefeatures",
    .singular = "nodefeature",
    .namespaced = true,
    .schema = &node_feature_schema,
    .doc = "What was found out about the hardware and software of a node.",
    .settle = node_feature_settle,
    .check = node_feature_check,
};

/* A node has a few dozen features: a walk is as good as a search. */
#define FEATURE_BY_NAME(list, name_)                                                               \
    do {                                                                                           \
        for (uint32_t i_ = 0; i_ < (list).count; i_++)                                             \
            if (str_eq((list).items[i_].key, (name_)))                                             \
                return &(list).items[i_];                                                          \
        return NULL;                                                                               \
    } while (0)

static const struct feature_attributes *attributes_named(const struct features *f, struct str name)
{
    FEATURE_BY_NAME(f->attributes, name);
}

const struct feature_flags *features_flags(const struct features *f, struct str name)
{
    FEATURE_BY_NAME(f->flags, name);
}

const struct feature_instances *features_instances(const struct features *f, struct str name)
{
    FEATURE_BY_NAME(f->instances, name);
}

const struct str_map *features_attributes(const struct features *f, struct str name)
{
    if (str_eqz(name, "kernel.config"))
        return f->has_kernel_config ? &f->kernel_config : NULL;
    const struct feature_attributes *found = attributes_named(f, name);
    return found ? &found->elements : NULL;
}

/* --- rules of one expression --- */

static const char *const feature_ops[] = {
    "In", "NotIn", "InRegexp", "Exists", "DoesNotExist", "Gt",      "Ge",
    "Lt", "Le",    "GtLt",     "GeLe",   "IsTrue",       "IsFalse", NULL,
};

static bool op_is(const json_val *self, const char *const *ops)
{
    struct str op = json_str(json_get(self, STR("op")));

    for (; *ops; ops++)
        if (str_eqz(op, *ops))
            return true;
    return false;
}

static const char *const ops_none[] = { "Exists", "DoesNotExist", "IsTrue", "IsFalse", NULL };
static const char *const ops_some[] = { "In", "NotIn", "InRegexp", NULL };
static const char *const ops_one[] = { "Gt", "Ge", "Lt", "Le", NULL };
static const char *const ops_two[] = { "GtLt", "GeLe", NULL };
static const char *const ops_regexp[] = { "InRegexp", NULL };

static size_t value_count(const json_val *self)
{
    return json_count(json_get(self, STR("value")));
}

static bool takes_no_value(const json_val *self, const json_val *old KV_UNUSED)
{
    return !op_is(self, ops_none) || value_count(self) == 0;
}

static bool takes_some_values(const json_val *self, const json_val *old KV_UNUSED)
{
    return !op_is(self, ops_some) || value_count(self) > 0;
}

static bool takes_one_value(const json_val *self, const json_val *old KV_UNUSED)
{
    return !op_is(self, ops_one) || value_count(self) == 1;
}

static bool takes_two_values(const json_val *self, const json_val *old KV_UNUSED)
{
    return !op_is(self, ops_two) || value_count(self) == 2;
}

static bool compares(const json_val *self)
{
    return op_is(self, ops_one) || op_is(self, ops_two);
}

static bool type_is_known(const json_val *self, const json_val *old KV_UNUSED)
{
    struct str type = json_str(json_get(self, STR("type")));

    return !compares(self) || type.len == 0 || str_eqz(type, "version");
}

/* Numbers as NFD reads them: a sign, digits, 64 bits. Versions are "v1.2.3-pre+build" with one to
 * three numbers, compared by those alone. */
static bool operands_parse(const json_val *self, const json_val *old KV_UNUSED)
{
    bool version = str_eqz(json_str(json_get(self, STR("type"))), "version");
    int64_t number;

    if (!compares(self))
        return true;
    json_each_item(json_get(self, STR("value")), item) {
        struct str text = json_str(item);
        bool fits = version ? regex_match_static("^v?[0-9]{1,18}(\\.[0-9]{1,18}){0,2}"
                                                 "(-[0-9A-Za-z-]+(\\.[0-9A-Za-z-]+)*)?"
                                                 "(\\+[0-9A-Za-z-]+(\\.[0-9A-Za-z-]+)*)?$",
                                                 text)
                            : str_to_i64(text, &number);
        if (!fits)
            return false;
    }
    return true;
}

static bool range_is_upwards(const json_val *self, const json_val *old KV_UNUSED)
{
    const json_val *values = json_get(self, STR("value"));
    int64_t low, high;

    return !op_is(self, ops_two) || json_count(values) != 2 ||
           !str_to_i64(json_str(json_at(values, 0)), &low) ||
           !str_to_i64(json_str(json_at(values, 1)), &high) || low < high;
}

static bool patterns_compile(const json_val *self, const json_val *old KV_UNUSED)
{
    if (!op_is(self, ops_regexp))
        return true;
    json_each_item(json_get(self, STR("value")), item) {
        struct regex *re = NULL;

        if (json_is_string(item) && regex_compile(json_str(item), &re, NULL) < 0)
            return false;
        regex_free(re);
    }
    return true;
}

static const struct cel_rule expression_cel[] = {
    { "!(self.op in ['Exists', 'DoesNotExist', 'IsTrue', 'IsFalse']) || size(self.value) == 0",
      "Exists, DoesNotExist, IsTrue and IsFalse take no value", takes_no_value },
    { "!(self.op in ['In', 'NotIn', 'InRegexp']) || size(self.value) > 0",
      "In, NotIn and InRegexp take at least one value", takes_some_values },
    { "!(self.op in ['Gt', 'Ge', 'Lt', 'Le']) || size(self.value) == 1",
      "Gt, Ge, Lt and Le take exactly one value", takes_one_value },
    { "!(self.op in ['GtLt', 'GeLe']) || size(self.value) == 2",
      "GtLt and GeLe take exactly two values", takes_two_values },
    { "self.type in ['', 'version']", "type of a comparison is empty or \"version\"",
      type_is_known },
    { "self.value.all(v, v.matches('^[+-]?[0-9]+$'))",
      "comparisons take integers, or versions with \"type: version\"", operands_parse },
    { "int(self.value[0]) < int(self.value[1])",
      "the first value of a range must be less than the second", range_is_upwards },
    { "self.value.all(v, v.isRegexp())", "InRegexp takes RE2 regular expressions",
      patterns_compile },
    { 0 },
};

/* --- tables of the rules --- */

static const struct rule feature_op_rule = { .enums = feature_ops };

#define T struct feature_expression
static const struct field expression_fields[] = {
    FIELD(ENUM, op, "op", NULL, .flags = FIELD_REQUIRED, .rule = &feature_op_rule),
    FIELD(STRS, values, "value", NULL),
    FIELD(STR, type, "type", NULL),
};
#undef T
static const struct schema expression_schema =
    SCHEMA("MatchExpression", struct feature_expression, expression_fields, .cel = expression_cel);

#define T struct feature_term
static const struct field term_fields[] = {
    FIELD(STR, feature, "feature", NULL, .flags = FIELD_REQUIRED, .rule = &required_text_rule),
    FIELD(MAP, expressions, "matchExpressions", NULL, .sub = &expression_schema),
    FIELD(OPTION, maybe_name, "matchName", NULL, .sub = &expression_schema),
};
#undef T
static const struct schema term_schema =
    SCHEMA("FeatureMatcherTerm", struct feature_term, term_fields);

#define T struct feature_alternative
static const struct field alternative_fields[] = {
    FIELD(LIST, terms, "matchFeatures", NULL, .flags = FIELD_REQUIRED, .sub = &term_schema),
};
#undef T
static const struct schema alternative_schema =
    SCHEMA("MatchAnyElem", struct feature_alternative, alternative_fields);

#define T struct feature_rule
static const struct field rule_fields[] = {
    FIELD(STR, name, "name", NULL, .flags = FIELD_REQUIRED),
    FIELD(STR_MAP, vars, "vars", NULL),
    FIELD(STR, vars_template, "varsTemplate", NULL),
    FIELD(LIST, terms, "matchFeatures", NULL, .sub = &term_schema),
    FIELD(LIST, match_any, "matchAny", NULL, .sub = &alternative_schema),
};
#undef T
const struct schema feature_rule_schema = SCHEMA("GroupRule", struct feature_rule, rule_fields);

/* --- NodeFeatureGroup --- */

#define T struct node_feature_group_spec
static const struct field group_spec_fields[] = {
    FIELD(LIST, rules, "featureGroupRules", NULL, .flags = FIELD_REQUIRED,
          .sub = &feature_rule_schema),
};
#undef T
static const struct schema group_spec_schema =
    SCHEMA("NodeFeatureGroupSpec", struct node_feature_group_spec, group_spec_fields);

#define T struct node_feature_group_node
static const struct field group_node_fields[] = {
    FIELD(STR, name, "name", NULL, .flags = FIELD_REQUIRED),
};
#undef T
static const struct schema group_node_schema =
    SCHEMA("FeatureGroupNode", struct node_feature_group_node, group_node_fields);

static const struct rule group_nodes_rule = { KEYED_BY("name") };

#define T struct node_feature_group_status
static const struct field group_status_fields[] = {
    FIELD(LIST, nodes, "nodes", NULL, .sub = &group_node_schema, .rule = &group_nodes_rule),
};
#undef T
static const struct schema group_status_schema =
    SCHEMA("NodeFeatureGroupStatus", struct node_feature_group_status, group_status_fields);

#define T struct node_feature_group
static const struct field group_fields[] = {
    OBJECT_FIELDS(struct node_feature_group),
    FIELD(STRUCT, spec, "spec", NULL, .flags = FIELD_REQUIRED, .sub = &group_spec_schema),
    FIELD(STRUCT, status, "status", NULL, .sub = &group_status_schema),
};
#undef T
static const struct schema group_schema =
    SCHEMA("NodeFeatureGroup", struct node_feature_group, group_fields);

const struct kind node_feature_group_kind = {
    .group = "nfd.k8s-sigs.io",
    .version = "v1alpha1",
    .name = "NodeFeatureGroup",
    .plural = "nodefeaturegroups",
    .singular = "nodefeaturegroup",
    .namespaced = true,
    .has_status = true,
    .schema = &group_schema,
    .doc = "The nodes whose features match one of the rules.",
};

/* api/common.h - the small structs that many kinds have in them. */
#pragma once

#include "api/object.h"
#include "base/map.h"
#include "codec/selector.h"

enum taint_effect { EFFECT_ANY, EFFECT_NO_SCHEDULE, EFFECT_PREFER_NO_SCHEDULE, EFFECT_NO_EXECUTE };

struct taint {
    struct str key, value;
    uint8_t effect; /* enum taint_effect */
    int64_t time_added_us;
};
extern const struct schema taint_schema;

/* A node has each key and effect once. Zero-initialised is empty. */
struct taint_set {
    struct str_table by_key;
};
/* NULL, or the earlier taint with the same key and effect. The set keeps the pointer. */
const struct taint *taint_set_add(struct taint_set *set, const struct taint *taint);
void taint_set_done(struct taint_set *set);

struct toleration {
    struct str key, value;
    uint8_t op;     /* enum toleration_op */
    uint8_t effect; /* EFFECT_ANY tolerates every effect */
    struct maybe_int seconds;
};
enum toleration_op {
    TOLERATION_UNSET, /* as Equal */
    TOLERATION_EXISTS,
    TOLERATION_EQUAL,
    TOLERATION_LT, /* the taint's value is a number below the toleration's */
    TOLERATION_GT,
};
extern const struct schema toleration_schema;
bool toleration_tolerates(const struct toleration *tol, const struct taint *taint);

/* A requirement on labels as it is written: node selector terms, NodePool requirements, overlays,
 * label selectors. */
enum requirement_op {
    OP_UNSET,
    OP_IN,
    OP_NOT_IN,
    OP_EXISTS,
    OP_DOES_NOT_EXIST,
    OP_GT,
    OP_LT,
    OP_GTE,
    OP_LTE,
};
struct expression {
    struct str key;
    uint8_t op; /* enum requirement_op */
    struct str_list values;
    struct maybe_int min_values;
};
/* The JSON words, NULL-terminated, in enum order from OP_IN. */
extern const char *const requirement_op_names[];
/* Label selectors: In, NotIn, Exists, DoesNotExist. */
extern const struct schema selector_expression_schema;
extern const struct schema node_expression_schema; /* node affinity: also Gt, Lt */
/* NodePool, NodeClaim and NodeOverlay have their own tables over struct expression. */

extern const struct rule label_key_rule, label_value_rule;

struct label_selector { /* behind a pointer: NULL selects nothing, an empty one everything */
    struct str_map match_labels;
    LIST(struct expression) expressions;
};
extern const struct schema label_selector_schema;
bool label_selector_matches(const struct label_selector *maybe_sel, const struct str_map *labels);

struct node_selector_term {
    LIST(struct expression) expressions, fields;
};
extern const struct schema node_selector_term_schema;

enum condition_status { CONDITION_UNSET, CONDITION_TRUE, CONDITION_FALSE, CONDITION_UNKNOWN };
struct condition {
    struct str type, reason, message;
    uint8_t status; /* enum condition_status */
    int64_t transition_us;
    int64_t observed_generation;
};
extern const struct schema condition_schema; /* metav1.Condition */
extern const struct rule condition_status_rule;
const struct condition *condition_find(const struct condition *items, uint32_t count,
                                       struct str type);

/* The first fields of every kind's table. */
#define OBJECT_FIELDS(type_)                                                                       \
    FIELD_KNOWN("apiVersion"), FIELD_KNOWN("kind"),                                                \
    {                                                                                              \
        .type = FIELD_STRUCT, .offset = offsetof(type_, object.meta), .name = "metadata",          \
        .name_len = 8, .flags = FIELD_REQUIRED | FIELD_CRD_HIDDEN, .sub = &meta_schema             \
    }

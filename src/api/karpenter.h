/* api/karpenter.h - what karve's own kinds (NodePool, NodeClaim, NodeOverlay and the node classes)
 * have in common: pieces of their tables, the words of the API, and places for problems found
 * beyond the schema.
 */
#pragma once

#include "api/common.h"
#include "api/labels.h"
#include "api/place.h"

#define KARPENTER_GROUP "karpenter.sh"
#define AWS_GROUP "karpenter.k8s.aws"
#define KWOK_GROUP "karpenter.kwok.sh"

/* --- patterns of the API contract --- */

#define PATTERN_DURATION "^([0-9]+(s|m|h))+$"
#define PATTERN_DURATION_OR_NEVER "^(([0-9]+(s|m|h))+|Never)$"
#define PATTERN_QUANTITY                                                                           \
    "^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))"                                                  \
    "(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$"
#define PATTERN_LABEL_KEY                                                                          \
    "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\\/))?"                    \
    "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"
#define PATTERN_LABEL_VALUE "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$"

/* A member that is there: null counts as absent, as it does for an API server. For CEL rules. */
static inline const json_val *json_member(const json_val *self, const char *name)
{
    const json_val *v = json_get(self, str_of(name));
    return json_is_null(v) ? NULL : v;
}

#define REQUIREMENTS_MAX 100 /* of one object */

/* --- tables --- */

struct node_class_ref {
    struct str group, kind, name;
};
extern const struct schema node_class_ref_schema;
/* For field selectors: the value of `path` if it is prefix + group, kind or name. */
struct str node_class_ref_field(const struct node_class_ref *ref, struct str prefix,
                                struct str path);

extern const struct schema node_taint_schema; /* struct taint, with the rules of NodePools */

/* Three tables over struct expression. They differ in which keys they refuse. */
extern const struct schema pool_requirement_schema;
extern const struct schema claim_requirement_schema;
extern const struct schema overlay_requirement_schema; /* no minValues */

/* Two tables over struct condition, with docs; the reason of a claim's may be empty. */
extern const struct schema status_condition_schema, claim_condition_schema;
extern const struct rule conditions_rule; /* a map list keyed by type */

/* Patterns in words: what is wrong with a text that does not match, or NULL. */
const char *label_key_words(struct str text);
const char *label_text_words(struct str text);

extern const struct rule duration_rule;
/* expireAfter and consolidateAfter: PATTERN_DURATION_OR_NEVER in words, and short enough to be
 * counted. */
const char *duration_problem(struct str text);
extern const struct rule resources_rule; /* values are quantities */

#define CONDITIONS_FIELD(schema_)                                                                  \
    FIELD(LIST, conditions, "conditions", "What is known about the object's state, by type.",      \
          .sub = &(schema_), .rule = &conditions_rule)

/* What a NodePool's template and a NodeClaim both say about a node. */
struct claim_node_spec {
    struct str expire_after; /* as written, see nillable_duration; absent is Never */
    struct node_class_ref node_class_ref;
    LIST(struct expression) requirements;
    LIST(struct taint) startup_taints, taints;
    struct duration termination_grace_period; /* unset: drains may take for ever */
};

/* A duration or `Never`. Such fields are kept as the text the user wrote, because copying `24h`
 * from a pool to its claims must not turn it into `24h0m0s`. Absent and `Never` are never; a number
 * of hours beyond int64 nanoseconds is as far away as can be said. */
struct duration nillable_duration(struct str text);

/* --- problems beyond the schema --- */

/* Annotations under karve.io/: what each may say. */
struct annotation_rule {
    const char *name;         /* "karve.io/launch-timeout" */
    const char *const *words; /* NULL: a positive duration */
};

/* Check the karve.io/ annotations of an object against what its kind knows. */
void annotations_check(const struct object *object, const json_val *root,
                       const struct annotation_rule *known, uint32_t known_count,
                       struct report *report);

/* What run-time validation says of requirements, and the schema cannot: label values, names longer
 * than a label may be, capacity types, labels that the provider keeps for itself. */
void requirements_check(const struct expression *items, uint32_t count,
                        const struct label_rules *maybe_rules, const struct place *list,
                        struct report *report);

/* The same for a whole template or claim: also duplicate taints, and requirements (and template
 * labels) that no node can ever meet together. */
void claim_node_spec_check(const struct claim_node_spec *spec, const struct str_map *maybe_labels,
                           const struct place *place, struct report *report);

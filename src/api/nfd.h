/* api/nfd.h - what Node Feature Discovery publishes about a node (NodeFeature), and the groups of
 * nodes that rules over those features select (NodeFeatureGroup).
 *
 * A NodeFeature is about 130 KB of JSON, most of it the kernel's configuration. Flags, instances
 * and that configuration are shared: nodes of one type and image keep them once.
 */
#pragma once

#include "api/common.h"

/* --- NodeFeature --- */

struct feature_flag {
    struct str key; /* "AVX2" */
};

struct feature_flags {
    struct str key; /* "cpu.cpuid" */
    LIST(struct feature_flag) elements;
};

struct feature_attributes {
    struct str key; /* "kernel.version" */
    struct str_map elements;
};

struct feature_instance {
    struct str_map attributes;
};

struct feature_instances {
    struct str key; /* "pci.device" */
    LIST(struct feature_instance) elements;
};

struct features { /* each sorted by the feature's name */
    LIST(struct feature_flags) flags;
    LIST(struct feature_attributes) attributes; /* all but kernel.config: see features_attributes */
    LIST(struct feature_instances) instances;
    struct str_map kernel_config;
    bool has_kernel_config; /* it may be there and be empty */
};

struct node_feature_spec {
    struct features features;
    struct str_map labels; /* that the publisher wants on the Node */
};

struct node_feature {
    struct object object;
    struct node_feature_spec spec;
};

extern const struct kind node_feature_kind;

static inline const struct node_feature *node_feature_of(const struct object *object)
{
    KV_ASSERT(object->kind == &node_feature_kind);
    return (const struct node_feature *)object;
}

/* The Node it is about: a label says so. STR_NONE: it is ignored. */
struct str node_feature_node(const struct node_feature *nf);

/* Each NULL if the node does not have the feature. Names are lower case. */
const struct feature_flags *features_flags(const struct features *f, struct str name);
const struct str_map *features_attributes(const struct features *f, struct str name);
const struct feature_instances *features_instances(const struct features *f, struct str name);

/* --- rules --- */

enum feature_op {
    FEATURE_OP_UNSET, /* always matches; only an image's own rules may leave it out */
    FEATURE_IN,
    FEATURE_NOT_IN,
    FEATURE_IN_REGEXP,
    FEATURE_EXISTS,
    FEATURE_DOES_NOT_EXIST,
    FEATURE_GT,
    FEATURE_GE,
    FEATURE_LT,
    FEATURE_LE,
    FEATURE_GT_LT,
    FEATURE_GE_LE,
    FEATURE_IS_TRUE,
    FEATURE_IS_FALSE,
};

struct feature_expression {
    struct str key; /* the element it is about; absent in matchName */
    uint8_t op;     /* enum feature_op */
    struct str_list values;
    struct str type; /* "" or absent: integers; "version" */
};

struct feature_term {
    struct str feature;
    /* Sorted by key. Leaving it out and `{}` are the same here; to NFD they differ for a feature
     * that has no instances at all. */
    LIST(struct feature_expression) expressions;
    const struct feature_expression *maybe_name;
};

struct feature_alternative {
    LIST(struct feature_term) terms; /* all must hold */
};

struct feature_rule {
    struct str name;
    struct str_map vars;
    struct str vars_template;                   /* Go template: only NFD can evaluate it */
    LIST(struct feature_term) terms;            /* all must hold, */
    LIST(struct feature_alternative) match_any; /* and one of these, if there are any */
};
extern const struct schema feature_rule_schema;

/* --- NodeFeatureGroup --- */

struct node_feature_group_spec {
    LIST(struct feature_rule) rules; /* a node that matches one of them is in the group */
};

struct node_feature_group_node {
    struct str name;
};

struct node_feature_group_status {
    LIST(struct node_feature_group_node) nodes;
};

struct node_feature_group {
    struct object object;
    struct node_feature_group_spec spec;
    struct node_feature_group_status status;
};

extern const struct kind node_feature_group_kind;

static inline const struct node_feature_group *node_feature_group_of(const struct object *object)
{
    KV_ASSERT(object->kind == &node_feature_group_kind);
    return (const struct node_feature_group *)object;
}

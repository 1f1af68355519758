/* api/nodepool.h - NodePool (karpenter.sh/v1): which nodes may be launched, and how they may be
 * disrupted. */
#pragma once

#include "api/karpenter.h"

enum consolidation_policy {
    CONSOLIDATE_UNSET,
    CONSOLIDATE_WHEN_EMPTY,
    CONSOLIDATE_WHEN_EMPTY_OR_UNDERUTILIZED,
    CONSOLIDATE_BALANCED,
};

/* How many nodes may be disrupted at once, always or in the windows of a schedule. The smallest of
 * the budgets that are active counts; with none active nothing limits disruption. */
struct budget {
    struct str nodes;        /* "10%", "5" */
    struct str_list reasons; /* empty: all of them */
    struct str schedule;     /* cron, UTC; absent: always active */
    struct duration duration;
};

struct nodepool_disruption {
    LIST(struct budget) budgets;
    struct str consolidate_after; /* as written, see nillable_duration */
    uint8_t policy;               /* enum consolidation_policy */
};

struct node_template {
    struct template_meta {
        struct str_map annotations, labels;
    } meta;
    struct claim_node_spec spec;
};

struct nodepool_spec {
    struct nodepool_disruption disruption;
    struct resources limits;
    struct maybe_int replicas; /* set: a static pool */
    struct node_template template;
    struct maybe_int weight; /* unset counts as 0 */
};

struct nodepool_status {
    LIST(struct condition) conditions;
    int64_t node_class_observed_generation;
    int64_t nodes;
    struct resources resources;
};

struct nodepool {
    struct object object;
    struct nodepool_spec spec;
    struct nodepool_status status;
};

extern const struct kind nodepool_kind;

#define DISRUPTION_REASON_COUNT 3
extern const char *const disruption_reasons[DISRUPTION_REASON_COUNT];

static inline const struct nodepool *nodepool_of(const struct object *object)
{
    KV_ASSERT(object->kind == &nodepool_kind);
    return (const struct nodepool *)object;
}

/* Pools are tried by weight, the heaviest first; of equal weight the later in the alphabet. <0: a
 * before b. */
int nodepool_order(const struct nodepool *a, const struct nodepool *b);

/* Run-time validation, and what would surprise the pool's owner (nodepool_check.c). */
void nodepool_check(const struct object *object, const json_val *root, struct report *report);

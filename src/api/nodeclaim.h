/* api/nodeclaim.h - NodeClaim (karpenter.sh/v1): one node, from the wish to its end. */
#pragma once

#include "api/karpenter.h"

struct nodeclaim_spec {
    struct claim_node_spec node;
    struct claim_resources {
        struct resources requests; /* what must fit on the node */
    } resources;
};

struct nodeclaim_status {
    struct resources allocatable, capacity; /* the provider's estimate */
    LIST(struct condition) conditions;
    struct str image_id;
    int64_t last_pod_event_us; /* a pod was bound, ended or started to end */
    struct str node_name, provider_id;
};

struct nodeclaim {
    struct object object;
    struct nodeclaim_spec spec; /* never changes */
    struct nodeclaim_status status;
};

extern const struct kind nodeclaim_kind;

static inline const struct nodeclaim *nodeclaim_of(const struct object *object)
{
    KV_ASSERT(object->kind == &nodeclaim_kind);
    return (const struct nodeclaim *)object;
}

/* api/nodeoverlay.h - NodeOverlay (karpenter.sh/v1alpha1): corrections of prices and capacity. */
#pragma once

#include "api/karpenter.h"

/* Prices are held in ten-trillionths of a dollar an hour and capacities in thousandths, both in 64
 * bits. An API server takes an overlay with more, and the overlay is then rejected as a whole. */
#define OVERLAY_PRICE_DECIMALS 13
#define OVERLAY_CAPACITY_MAX (INT64_MAX / 1000 - 1)

struct nodeoverlay_spec {
    struct resources capacity;
    struct str price;            /* "0.25", absolute; absent: not set */
    struct str price_adjustment; /* "-10%", "+0.05"; absent: not set */
    LIST(struct expression) requirements;
    struct maybe_int weight; /* unset counts as 0 */
};

struct nodeoverlay {
    struct object object;
    struct nodeoverlay_spec spec;
    struct nodeoverlay_status {
        LIST(struct condition) conditions;
    } status;
};

extern const struct kind nodeoverlay_kind;

static inline const struct nodeoverlay *nodeoverlay_of(const struct object *object)
{
    KV_ASSERT(object->kind == &nodeoverlay_kind);
    return (const struct nodeoverlay *)object;
}

/* Overlays apply by weight, the heaviest first; of equal weight the later in the alphabet. <0: a
 * before b. */
int nodeoverlay_order(const struct nodeoverlay *a, const struct nodeoverlay *b);

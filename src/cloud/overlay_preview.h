/* cloud/overlay_preview.h - what would change if this overlay were applied.
 *
 * The overlays as they are and the overlays with the candidate are both evaluated and applied, and
 * the two outcomes compared. Pure; everything is in the order of names and lives in the arena (the
 * candidate's and the overlays' own texts are borrowed).
 */
#pragma once

#include "cloud/overlay.h"

struct preview_price {                              /* an offering that would cost something else */
    uint32_t offering;                              /* into the pool's types */
    struct str zone, capacity_type, reservation_id; /* the last is "" if there is none */
    bool available;                                 /* at the moment */
    usd_hour before, after;
    struct str by_before, by_after; /* the overlay that decides; "": the provider's price */
};

struct preview_capacity { /* a resource of which the type would have another amount */
    struct str resource;
    int64_t before, after;          /* thousandths; 0: it has none */
    struct str by_before, by_after; /* the overlay that decides; "": the provider's amount */
};

struct preview_type { /* a type of a pool of which something would change */
    struct str pool, type;
    uint32_t type_ix;                         /* into the pool's types */
    LIST(struct preview_price) prices;        /* by zone, capacity type, reservation */
    LIST(struct preview_capacity) capacities; /* by resource */
};

struct preview_verdict { /* another overlay that would be treated differently */
    struct str name;
    enum overlay_state before, after;
    struct str message; /* why, when it would be rejected; "" when it would be accepted */
};

struct overlay_preview {
    bool replaces;                         /* an overlay of that name is there */
    struct overlay_verdict candidate;      /* would it be accepted, and what would it match */
    LIST(struct preview_verdict) verdicts; /* by name */
    LIST(struct preview_type) types;       /* by pool, then type; nothing else changes */
    uint32_t price_count, capacity_count;  /* over all of `types` */
};

/* `current` may contain the one that the candidate replaces. */
void overlay_preview_make(const struct nodeoverlay *candidate,
                          const struct nodeoverlay *const *current, uint32_t current_count,
                          const struct overlay_pool *pools, uint32_t pool_count,
                          struct arena *arena, struct overlay_preview *out);

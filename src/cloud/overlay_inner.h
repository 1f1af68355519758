/* cloud/overlay_inner.h - what the files of the NodeOverlay engine share. */
#pragma once

#include "cloud/overlay.h"

/* --- compiled overlays (overlay.c) --- */

enum overlay_pricing { PRICING_NONE, PRICING_ABSOLUTE, PRICING_ADJUSTMENT };

struct overlay_capacity {
    uint32_t resource; /* into the set's resources */
    int64_t milli;
};

struct overlay {
    const struct nodeoverlay *object;
    int64_t weight;
    struct str problem; /* "" if it is valid; else nothing below counts */
    struct requirements requirements;
    const uint32_t *keys; /* per requirement: into the set's keys */
    enum overlay_pricing pricing;
    usd_hour price;
    struct price_adjustment adjustment;
    const struct overlay_capacity *capacity; /* by resource */
    uint32_t capacity_count;
};

struct overlay_key { /* that a valid overlay asks about */
    struct str key;
    struct str_list values; /* all that overlays list for it, sorted */
    bool bounded;           /* some overlay compares it with a number */
};

struct overlay_set {
    struct rc rc;
    struct arena arena; /* owns every pointer below */
    uint64_t generation;
    const struct overlay *items; /* in the order of processing */
    uint32_t count;
    const struct overlay_key *keys; /* sorted */
    uint32_t key_count;
    const struct str *resources; /* sorted */
    uint32_t resource_count;
};

static inline bool overlay_is_valid(const struct overlay *o)
{
    return o->problem.len == 0;
}

/* --- matching (overlay_match.c) --- */

struct overlay_answer; /* what a pool and its offerings say about a key that overlays ask about */

struct overlay_view { /* a pool's types, as overlays see them */
    const struct overlay_set *set;
    const struct instance_types *types;
    const struct overlay_answer *answers; /* per key of the set */
    struct bitset bound; /* shapes with keys that overlays must speak of; mostly none */
    struct str_list well_known;
};

/* Lives in the arena; the pool's labels and types must outlive it. */
struct overlay_view overlay_view_make(const struct overlay_set *set,
                                      const struct overlay_pool *pool, struct arena *arena);

struct overlay_match {
    struct bitset types, offerings;
    uint32_t type_count, offering_count;
    struct bitset shapes, suiting; /* on the way: shapes, and offerings of any type, that suit */
};

/* Room for the matches of a view, one at a time. */
struct overlay_match overlay_match_new(const struct overlay_view *view, struct arena *arena);
void overlay_match_find(const struct overlay_view *view, const struct overlay *o,
                        struct overlay_match *out);

/* Puts pools that get the same answer into one class: class_of has one number per pool, classes are
 * numbered from 0 in the order of their first pools. Returns how many there are. */
uint32_t overlay_classes(const struct overlay_set *set, const struct overlay_pool *pools,
                         uint32_t pool_count, uint32_t *class_of);

/* The pools in the order of their names, in the arena. */
const struct overlay_pool *overlay_pools_sorted(const struct overlay_pool *pools, uint32_t count,
                                                struct arena *arena);

/* --- what a set changes of a pool's types (overlay_apply.c) --- */

struct overlay_edits {
    const struct price_edit *prices;
    const uint32_t *price_by; /* per edit: the overlay's place in the set */
    uint32_t price_count;
    const struct capacity_edit *capacities;
    const uint32_t *capacity_by;
    uint32_t capacity_count;
};

/* In the arena. */
struct overlay_edits overlay_set_edits(const struct overlay_set *set,
                                       const struct overlay_pool *pool, struct arena *arena);

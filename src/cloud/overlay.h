/* cloud/overlay.h - the NodeOverlay engine: which prices and capacities operators have corrected.
 *
 * Three steps, each a pure function:
 *
 *   compile   overlays -> an ordered, immutable set; those that make no sense are marked invalid
 *   evaluate  set x pools -> a verdict for each overlay; of two with equal weight that would change
 *             the same thing the later in order is rejected, as a whole
 *   apply     accepted set x pool x snapshot -> a layer over the snapshot
 *
 * Order: the heaviest first, of equal weight the later name first. The first that changes an
 * offering's price or a resource of a type wins. `apply` matches anew against the snapshot it is
 * given, so a type or an offering that appears between two evaluations is overlaid at once.
 *
 * An overlay matches a type of a pool if all of its requirements are compatible with what the
 * pool's name, the labels of its template and the type's requirements say together, and one of the
 * type's offerings suits it. It prices the offerings that suit it, also those that are not
 * available at the moment (they may be a minute later); its capacity is for the whole type.
 */
#pragma once

#include "api/conditions.h"
#include "api/nodeoverlay.h"
#include "cloud/instance_types.h"

enum overlay_state {
    OVERLAY_ACCEPTED,
    OVERLAY_INVALID,  /* condition ValidationSucceeded False, reason RuntimeValidation */
    OVERLAY_CONFLICT, /* ... reason Conflict */
};

struct overlay_verdict {
    const struct nodeoverlay *overlay;
    enum overlay_state state;
    /* For the condition: names the field, or the other overlay, the pool and what clashes. "" if it
     * is accepted. */
    struct str message;
    /* That it matches, over all pools; pools that get the same answer count once. */
    uint32_t type_count, offering_count;
};

/* What an overlay sees of a NodePool. */
struct overlay_pool {
    struct str name;
    struct str_map labels;              /* of its template */
    const struct instance_types *types; /* without layers */
    /* Keys of offerings that an overlay need not speak of to match them (label_rules_for);
     * sorted. */
    struct str_list well_known;
};

/* --- compile --- */

struct overlay_set; /* immutable, counted */

/* Different resources that all overlays of a set may name: each is a column of every layer. An
 * overlay that comes with more is invalid. */
#define OVERLAY_RESOURCES_MAX 1000

/* Every overlay is kept (a reference is taken), the invalid ones too; names are unique.
 * `generation` is the caller's. What is accepted depends on the pools as well, so it is a new
 * one whenever either has changed. */
const struct overlay_set *overlay_set_new(const struct nodeoverlay *const *overlays, uint32_t count,
                                          uint64_t generation);
const struct overlay_set *overlay_set_ref(const struct overlay_set *set);
void overlay_set_unref(const struct overlay_set *set); /* NULL is fine */
static inline void overlay_set_unref_cleanup(const struct overlay_set **set)
{
    overlay_set_unref(*set);
}
#define AUTO_OVERLAY_SET                                                                           \
    __attribute__((cleanup(overlay_set_unref_cleanup))) const struct overlay_set *
uint64_t overlay_set_generation(const struct overlay_set *set);
uint32_t overlay_set_count(const struct overlay_set *set);

/* --- evaluate --- */

struct overlay_evaluation {
    LIST(struct overlay_verdict) verdicts; /* in the order of processing */
    const struct overlay_set *accepted;    /* one reference for the caller; same generation */
};

/* Over all pools at once: any clash in any pool rejects the whole overlay, and what is rejected
 * clashes with nothing. Verdicts live in the arena and point at overlays of `set`. */
void overlay_set_evaluate(const struct overlay_set *set, const struct overlay_pool *pools,
                          uint32_t pool_count, struct arena *arena, struct overlay_evaluation *out);

/* The overlay's conditions as the verdict wants them, in the arena: write them if they changed
 * (conditions_changed, conditions_json). The overlay must outlive the set. */
struct condition_set *overlay_verdict_conditions(const struct overlay_verdict *verdict,
                                                 struct arena *arena, int64_t now_us);

/* --- apply --- */

/* pool->types with the set applied; invalid overlays are passed over. One reference for the caller,
 * of pool->types itself if nothing changes. Should two of equal weight clash (they appeared since
 * the evaluation), the first in order wins. */
const struct instance_types *overlay_set_apply(const struct overlay_set *set,
                                               const struct overlay_pool *pool,
                                               struct instance_types_options options);

/* Pools with equal signatures and equal types get equal layers, which overlay_pools_alike confirms:
 * they have the same values for the keys that overlays ask about, as far as the overlays can tell
 * them apart. A value that no overlay lists, of a key that no type has, is like any other such. */
uint64_t overlay_pool_signature(const struct overlay_set *set, const struct overlay_pool *pool);
bool overlay_pools_alike(const struct overlay_set *set, const struct overlay_pool *a,
                         const struct overlay_pool *b);

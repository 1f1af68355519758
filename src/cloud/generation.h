/* cloud/generation.h - has anything changed that an answer depends on?
 *
 * A generation is a tuple: one member for each source of change, compared member by member. It is
 * never folded into one number: the XOR of counters repeats ((0,0) and (1,1) are both 0), and
 * then a change is served from the cache for ever.
 *
 * A tuple need not be a moment's: while it is read, one member may move and then another. That
 * is safe. A counter only grows, and each is read before the data it stands for is fetched, so
 * whatever moved since then shows as a difference in its own member later.
 */
#pragma once

#include "base/kv.h"

#include <stdatomic.h>
#include <stdbool.h>

enum generation_member {
    GENERATION_TYPES,        /* instance type info */
    GENERATION_ZONES,        /* which type is offered in which zone */
    GENERATION_ON_DEMAND,    /* on-demand prices */
    GENERATION_SPOT,         /* spot prices */
    GENERATION_UNAVAILABLE,  /* offerings marked unavailable, or no longer so */
    GENERATION_RESERVATIONS, /* capacity reservations and what is left of them */
    GENERATION_INPUTS,       /* hash of the node class's identity and of every input from it */
    GENERATION_OVERLAYS,     /* NodeOverlays; filled in by the cache, zero from providers */
    GENERATION_MEMBERS,
};

/* "types", "on_demand", ... */
extern const char *const generation_member_names[GENERATION_MEMBERS];

struct generation {
    uint64_t member[GENERATION_MEMBERS];
};

bool generation_equal(const struct generation *a, const struct generation *b);
/* The first member that differs; GENERATION_MEMBERS if none does. */
enum generation_member generation_difference(const struct generation *a,
                                             const struct generation *b);

/* The counters of one provider. Zero-initialised is ready; thread safe, without locks. A counter is
 * bumped after the new data is visible to whoever fetches. */
struct generation_counters {
    _Atomic uint64_t member[GENERATION_MEMBERS];
};
void generation_bump(struct generation_counters *c, enum generation_member what);
void generation_read(const struct generation_counters *c, struct generation *out);

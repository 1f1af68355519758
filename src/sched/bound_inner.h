/* sched/bound_inner.h - the bound's problem without what cannot matter; for bound*.c only.
 *
 * Classes that ask for the same and may be on the same machines are one. Classes that can be had for
 * nothing are gone, and so are machines that another one replaces at no loss, and resources that
 * nobody asks for.
 */
#pragma once

#include "sched/bound.h"

#define BOUND_NO_CLASS UINT32_MAX
#define BOUND_NO_COLUMN UINT32_MAX
#define BOUND_LANES 4 /* columns are a multiple of this: the last ones may be closed to all */

struct bound_core {
    uint32_t class_count, column_count, resource_count;
    const uint32_t *resources; /* of the input */
    const uint32_t *class_of;  /* per class of the input; BOUND_NO_CLASS: it is worth nothing */
    /* Per machine of the input: itself, or what replaces it. BOUND_NO_COLUMN: no class may be there, or
     * it costs nothing, or it is overdrawn. */
    const uint32_t *column_of;

    const double *request; /* [class][resource] */
    const uint64_t *count; /* per class; saturated */
    /* Per class: [column], 0 where it may be and INFINITY where not; open somewhere. Classes share
     * them. */
    const double *const *closed;

    /* [resource][column]: dollars (in usd_hour) for a unit if that resource alone had to pay for the
     * machine. 0: it has none of it, and there it must have no weight. */
    const double *unit;
    usd_hour price_max; /* of the columns */
    uint64_t steps;
};

/* Everything in the arena. */
void bound_reduce(struct arena *arena, const struct bound_input *in, struct bound_core *out);

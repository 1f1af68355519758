/* cloud/instance_types_drafts.h - the first half of a build: drafts, checked and pooled. */
#pragma once

#include "cloud/instance_types.h"
#include "cloud/instance_types_pool.h"

struct drafts {
    const struct instance_type_draft *items;
    uint32_t count, offering_count;
    uint32_t override_count; /* offerings that override capacity or overhead */
    struct pool pool;
    struct arena scratch; /* requirements that were filled in */
    /* Per draft, in the order given. */
    VEC(uint32_t) names;              /* texts */
    VEC(uint32_t) requirements;       /* of the pool, type after type */
    VEC(uint32_t) requirements_start; /* count + 1 */
    VEC(uint32_t) shapes;             /* per offering, of the pool */
    VEC(uint32_t) offering_start;     /* count + 1 */
    uint32_t *order;                  /* drafts in the order of names */
};

/* On failure there is something to release as well. */
int drafts_read(struct drafts *d, const struct instance_type_draft *items, uint32_t count,
                struct err *err);
void drafts_done(struct drafts *d);

/* sched/worth.h - what the pods to be launched for are worth, and the least they can cost.
 *
 * The dual prices of the linear relaxation (sched/bound.h): a pod is worth its share of the cheapest
 * fractional packing. Packing then looks for launches that carry much worth for their price.
 */
#pragma once

#include "sched/domains.h"

struct rate { /* of a machine at a price: see struct bound's costs */
    usd_hour price;
    const double *unit; /* per resource: dollars an hour */
    uint32_t next;      /* of the same machine at another price, or NONE */
};

struct worth {
    const double *value; /* per item: dollars an hour of one pod of it */
    usd_hour bound;
    const struct rate *rates;
    const uint32_t *first_rate; /* per machine, pool after pool; NONE: nobody wants it */
    const uint32_t *pool_start;
};

/* What a unit of each resource of that machine costs at that price; times `scale`. NULL if nobody
 * wants the machine. */
const double *worth_rate(const struct worth *w, uint32_t pool, uint32_t machine, usd_hour price,
                         double *scale);

struct worth worth_of(struct state *s, const struct items *items, uint32_t rounds,
                      struct arena *arena);

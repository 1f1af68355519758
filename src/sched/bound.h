/* sched/bound.h - what pods must cost at least, and what each is worth.
 *
 * The linear relaxation of packing: machines may be bought in fractions and pods cut to pieces. Any
 * feasible solution of its dual is a valid lower bound, so the ascent can stop at any step. The
 * dual's value of a pod (its share of the bound) also tells a packer what a pod is worth.
 *
 * Plain arrays in, plain arrays out. The order of classes and of machines changes nothing, bit for bit,
 * nor does doubling all requests and rooms of a resource. Classes that are alike cost no more than one.
 */
#pragma once

#include "base/arena.h"
#include "base/bitset.h"
#include "cloud/price.h"

struct bound_input {
    uint32_t class_count, machine_count, resource_count;
    const int64_t *request;       /* [class][resource]; not negative */
    const uint64_t *count;        /* per class: pods of it */
    const struct bitset *allowed; /* per class: machines it may be on, whether it fits or not */
    const int64_t *room;   /* [machine][resource]; a machine with a negative one holds nothing */
    const usd_hour *price; /* per machine; may be 0 */
    /* Of the ascent, at most. Each costs (classes that differ) x (machines that matter). 20 come to
     * within 0.5 % of the optimum, as a rule, 80 to within 0.2 %, and where few machines have what the
     * dearest pods ask for (GPUs) to within 3 % and 1 %. 0: half of it, perhaps. */
    uint32_t rounds;
};

struct bound {
    usd_hour total; /* rounded down; at most USD_HOUR_MAX */
    /* Per class: dollars an hour that one pod of it is worth. 0 if it can be had for nothing, and of a
     * class that fits nowhere, which adds nothing to the total either. */
    const double *value;
    /* [machine][resource]: the dollars an hour of one unit, if the machine's price is split as the best
     * bound splits it. On no machine does a pod cost less than it is worth; where it costs just that,
     * it is well placed. A machine's units come to about its price, or to less if another machine
     * does all that it does for less: its costs are that machine's then. 0 where nothing can be. */
    const double *cost;
    uint64_t steps; /* a class weighed against a machine is one */
};

#define BOUND_ROUNDS_DEFAULT 40

/* Values and costs are in the arena. */
struct bound bound_compute(struct arena *arena, const struct bound_input *in);

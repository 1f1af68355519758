/* sched/finish.h - from a state to a plan: names for the pods, the order in which they may come, and
 * each launch as a NodeClaim will ask for it. */
#pragma once

#include "sched/state.h"

struct seat {     /* a pod in its place */
    uint32_t pod; /* into snapshot.pods */
    uint32_t bin, class_, variant, wants;
    bool dropped; /* no order lets it in: it is unplaced after all */
};

struct seating {
    struct seat *seats; /* bin after bin */
    uint32_t count;
    const uint32_t *bins; /* homes with pods, then launches in the order of the plan */
    uint32_t bin_count;
    const uint32_t *start; /* per entry of `bins`, and one more: its seats */
    uint32_t *order;       /* seats in a legal order, dropped ones left out */
    uint32_t order_count;
};

/* order.c: fills in order, and marks what must be dropped. */
void seating_order(struct state *s, struct seating *seating, struct arena *arena);

/* --- launch_form.c --- */

/* Which pools' limits would hold if every launch became the largest machine that its pods allow. */
const bool *limits_hold_at_largest(struct state *s, struct arena *arena);

/* All but the pods. `any_size`: also machines larger than the launch was planned as. */
void launch_describe(struct state *s, uint32_t bin, bool any_size, struct arena *arena,
                     struct plan_launch *out);

/* Does a node that the launch becomes pass the node filter of the spread? */
enum passes { PASSES_NEVER, PASSES_SOMETIMES, PASSES_ALWAYS };
enum passes launch_passes(struct state *s, const struct group *g, uint32_t bin);

/* Where kube-scheduler will count by domains, a launch must be in one that is known: those which hold
 * pods that a spread counts, or which could open a domain that nobody reckoned with, are pinned to what
 * they were planned as. */
void launches_pin(struct state *s);

/* --- finish.c --- */

/* Adds, per key, domains that only launches of other pods brought into being, and in which pods that no
 * order lets in cannot be. True if there are any that were not in it. */
bool find_intruded(struct state *s, struct bitset *avoid);
/* Takes pods out of launches that no order lets in. */
void drop_unordered(struct state *s);
/* Per class: pods that are in no bin, or that no order lets in. */
void count_unplaced(struct state *s, uint32_t *unplaced);

/* Pods of a class that are in no bin are misses. */
const struct plan *plan_finish(struct state *s, usd_hour bound, struct arena *arena);

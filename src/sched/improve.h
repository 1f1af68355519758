/* sched/improve.h - a cheaper plan, within a budget of work.
 *
 * Again and again a few launches are taken apart, those that cost most for what they carry among
 * them, and their pods are packed anew with slightly different values. What comes out is kept if it
 * is cheaper. Counted in steps and seeded: equal input, equal plan.
 */
#pragma once

#include "sched/pack.h"

/* All items that are in launches now. */
void launched_items(const struct state *s, struct items *out);

/* `worth` is of `items`, all that launched_items gives. Stops when `effort` further steps are done, or
 * when nothing was gained for long. */
void improve(struct state *s, const struct items *items, const struct worth *worth, uint64_t effort,
             uint64_t seed);

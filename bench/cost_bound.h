/* bench/cost_bound.h - what a cluster's pods must cost at least, whoever plans it.
 *
 * The solver's own bound takes the zones that it chose for its pods as given. This one does not: it
 * knows only what the pods ask for. */
#pragma once

#include "sched/model.h"

/* The model is of a snapshot without nodes, and its classes have one variant each. */
usd_hour cost_bound(struct model *m, uint32_t rounds);

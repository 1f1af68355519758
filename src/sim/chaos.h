/* sim/chaos.h - random things that happen to a cluster, from a seed.
 *
 * They are ordinary actions, made up front from what the scenario has: so a run with them can be
 * written as a scenario file, and one that goes wrong is made smaller by leaving actions out.
 */
#pragma once

#include "sim/scenario.h"

/* scenario.chaos.steps actions by time, fewer if its duration is over before. In the arena; a pure
 * function of the scenario and the seed. */
const struct action *chaos_generate(struct arena *arena, const struct scenario *s, uint64_t seed,
                                    uint32_t *count);

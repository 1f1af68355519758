/* sim/campaign.h - one run of a scenario from a seed to its end, judged; and when it goes wrong, the
 * least that is needed to make it go wrong again.
 *
 * A run: everything that happens, then faults off and what is broken mended, then the cluster has to come
 * to rest. Shrinking leaves out actions (halves, quarters, ... single ones), then faults, then objects,
 * as long as the same rule is broken. What is left is a scenario with a timeline and no chaos.
 */
#pragma once

#include "sim/world.h"

struct run_result {
    bool broken;
    struct finding finding; /* text in the arena that was given */
    uint32_t steps, crashes;
    uint64_t calls; /* of the control plane, as faults_calls counts them: how long a run is */
    uint64_t hash;  /* of the store at the end: equal runs have equal ones */
};

struct run_options {
    const struct scenario *scenario;
    uint64_t seed;
    bool doubt;
    bool no_check;               /* of the invariants, and it need not come to rest */
    struct record *maybe_record; /* closed at the end: it outlives the world */
    struct log *maybe_log;
    uint64_t die_at; /* see struct world_options */
    bool die_after_effect;
    /* Called after each step; false ends the run early, as if it were over. May be NULL. */
    bool (*progress)(void *ctx, const struct world_parts *world);
    void *progress_ctx;
};

/* -1: the scenario cannot even start; err says why. */
int scenario_run(struct run_options options, struct arena *arena, struct run_result *out,
                 struct err *err);

struct shrunk {
    struct scenario
        *scenario; /* the smallest that still breaks; in the arena, borrows from the first */
    struct run_result result; /* of it */
    uint32_t tries, actions_before, actions_after, objects_before, objects_after;
    bool smaller; /* something could be left out: actions, objects or faults */
};
/* Of a run that is broken. At most `tries_max` runs. False: it did not break again. */
bool scenario_shrink(const struct scenario *s, uint64_t seed, uint32_t tries_max,
                     struct arena *arena, struct shrunk *out);

/* sched/explain.h - why a pod went where it went, or nowhere: the same record for `plan --explain`,
 * events and logs.
 *
 * Worked out afterwards, from the compiled model and the state that the plan ended in: the solver
 * keeps no diary. Of the ways to read what a pod asks for it is the last that counts, with all
 * preferences given up: that is what finally failed. Whatever comes from manifests is quoted where
 * it is not plain text.
 */
#pragma once

#include "sched/state.h"

/* One thing that a class asks for, and what it left of a pool's instance types. Constraints are
 * applied one after the other until nothing is left: taints, what the pool itself allows, each
 * requirement by key, images, each resource, host ports, offerings, limits, topology, minValues. So
 * `before` is the `after` of the step before it, and that of the first step is all types there
 * are. */
struct explain_step {
    enum plan_reason reason;
    struct str what;        /* "topology.kubernetes.io/zone In [us-east-1a]", "cpu 96" */
    uint32_t before, after; /* instance types left */
};

struct explain_pool {
    uint32_t pool;                    /* into snapshot.pools */
    const struct explain_step *steps; /* none if the pool is not ready */
    uint32_t step_count;
    bool possible;           /* a new node of the pool would take the pod */
    enum plan_reason reason; /* if not: the first that left nothing */
    struct str detail;       /* one plain line: "needs 96 cpu; the largest type has 64" */
    struct str nearest; /* the nearest miss: "m7i.24xlarge: 95.4 of 96 cpu"; "" if there is none */
    struct str edit;    /* what change would make it fit, tried on the model; "" if none is known */
};

struct explanation {
    uint32_t class_;                        /* into model.classes */
    const struct plan_blame *maybe_refused; /* the pod is not placed anywhere, and why */
    const struct explain_pool *pools;       /* in the order in which they are tried */
    uint32_t pool_count;
    /* Pods of the class: on nodes that are there, on launches, and nowhere. */
    uint32_t on_homes, on_launches, missed;
    struct str given_up; /* preferences that were given up for it; "" if none */
    /* Nodes that are there, and those that would not take one more pod: in all, and by the first
     * reason. */
    uint32_t homes_considered, homes_full;
    uint32_t homes_by_reason[PLAN_REASON_COUNT];
    struct str homes; /* "none of 5 nodes takes it: resources 3, taints 2"; "" without nodes */
};

/* Of a class, against the state at the end. In the arena. */
struct explanation explain_class(struct state *s, uint32_t class_, struct arena *arena);

/* The reasons of a miss, in the arena: one per pool, or a single one with PLAN_NONE if it is not a
 * matter of pools. */
void explain_miss(struct state *s, uint32_t class_, struct arena *arena,
                  const struct plan_blame **reasons, uint32_t *count);

/* For commands: the explanations of the classes of these pods, after plan_build made a plan; the
 * model is compiled again and the plan's placements put back into a state. `explanations[i]` is of
 * pods[i]; pods of one class share one. A pod that was not planned for (bound, skipped) has class_
 * PLAN_NONE and nothing else. */
void plan_explain(struct arena *arena, const struct snapshot *snap, struct plan_options options,
                  const struct plan *plan, const uint32_t *pods, uint32_t count,
                  struct explanation *explanations);

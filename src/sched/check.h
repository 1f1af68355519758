/* sched/check.h - is a plan right? Judged from the rules of Kubernetes, not from the solver.
 *
 * This shares nothing with the solver but the snapshot, the plan and the objects' own arithmetic
 * (api/requests.h, api/requirements.h, selectors, tolerations). It is slow and obvious, and it
 * believes nothing: a launch may become any of the instance types and offerings that its claim
 * allows, and each of them must be a home for its pods.
 */
#pragma once

#include "sched/plan.h"

struct check_finding {
    uint32_t pod;    /* into snapshot.pods, or PLAN_NONE */
    uint32_t launch; /* into plan.launches, or PLAN_NONE */
    struct str what; /* one plain line, with names */
};

struct check_result {
    const struct check_finding *findings; /* none: the plan is right */
    uint32_t count;
};

/* Everything in the arena. At most CHECK_FINDINGS_MAX are kept. A plan that names pods, nodes, pools or
 * types which are not there is not looked at any further. */
#define CHECK_FINDINGS_MAX 100
struct check_result plan_check(struct arena *arena, const struct snapshot *snap,
                               struct plan_options options, const struct plan *plan);

/* sched/plan.h - decide where pending pods go and which nodes to launch for them.
 *
 * Pure: equal snapshots and options give equal plans, byte for byte, in whatever order the objects
 * are. No clock, no I/O, no globals. Everything a plan points at lives in the caller's arena or in
 * the snapshot.
 */
#pragma once

#include "sched/snapshot.h"

enum preference_policy { PREFERENCES_RESPECT, PREFERENCES_IGNORE };
enum min_values_policy { MIN_VALUES_STRICT, MIN_VALUES_BEST_EFFORT };

struct plan_options {
    uint64_t seed; /* breaks ties in the search for a cheaper plan */
    /* Work that may be done to make the plan cheaper, in steps (a pod class weighed against a machine
     * is one): for packing with care, and as much again for packing anew. 0: the first plan that is
     * found. */
    uint64_t effort;
    enum preference_policy preferences;
    enum min_values_policy min_values;
    /* Only pods that kube-scheduler has called unschedulable, as on a live cluster. Otherwise every
     * pod that is not bound. */
    bool only_unschedulable;
    uint32_t types_max; /* instance types of one launch; 0: PLAN_TYPES_MAX */
};
#define PLAN_TYPES_MAX 600
/* By the number of classes: PLAN_EFFORT_MOST up to PLAN_EFFORT_CLASSES of them. Beyond, where large
 * numbers even things out, nothing is packed with care, and less is packed anew. */
#define PLAN_EFFORT_AUTO UINT64_MAX
#define PLAN_EFFORT_MOST 40000000
#define PLAN_EFFORT_CLASSES 400
#define PLAN_OPTIONS_DEFAULT ((struct plan_options){ .seed = 1, .effort = PLAN_EFFORT_AUTO })

/* Why a pod cannot go somewhere. Every verdict, event and explanation uses these. */
enum plan_reason {
    REASON_RESOURCES,
    REASON_REQUIREMENTS,
    REASON_TAINTS,
    REASON_TOPOLOGY_SPREAD,
    REASON_POD_AFFINITY,
    REASON_POD_ANTI_AFFINITY,
    REASON_VOLUME,
    REASON_HOST_PORT,
    REASON_LIMITS,
    REASON_MIN_VALUES,
    REASON_OFFERING,
    REASON_NODEPOOL_NOT_READY,
    REASON_IMAGE,
    REASON_UNSUPPORTED,
};
#define PLAN_REASON_COUNT (REASON_UNSUPPORTED + 1)
extern const char *const plan_reason_names[PLAN_REASON_COUNT]; /* "resources", "topologySpread" */

#define PLAN_NONE UINT32_MAX

struct plan_pods { /* into snapshot.pods, by namespace and name */
    const uint32_t *items;
    uint32_t count;
};

struct plan_launch {
    uint32_t pool; /* into snapshot.pools */
    /* The cheapest offering: what the price is of. `row` has its resources. */
    uint32_t type, offering, row;
    usd_hour price;
    const uint32_t *types; /* all that the claim allows, cheapest first */
    uint32_t type_count;
    /* What the NodeClaim asks for, instance types and capacity types included. Every combination
     * they allow is a valid home for the pods. */
    struct requirements requirements;
    struct str_map labels; /* of the claim: the template's, and values chosen for its own keys */
    struct resources requests; /* of pods and daemons */
    struct plan_pods pods;
    bool min_values_relaxed;
};

struct plan_existing { /* pods that go to a node which is there, or to a claim on its way */
    uint32_t node;     /* into snapshot.nodes, or PLAN_NONE */
    uint32_t claim;    /* into snapshot.claims while it has no Node, or PLAN_NONE */
    struct plan_pods pods;
};

struct plan_blame {
    uint32_t pool; /* into snapshot.pools; PLAN_NONE: whatever the pool */
    enum plan_reason reason;
    struct str detail; /* one plain line */
};

struct plan_miss {
    uint32_t pod;
    const struct plan_blame *reasons; /* in the order in which pools are tried; at least one */
    uint32_t reason_count;
};

struct plan_skip {
    uint32_t pod;
    struct str reason; /* "scheduling gate" */
};

struct plan {
    const struct plan_launch *launches; /* by pool as tried, then dearest first, then by pods */
    uint32_t launch_count;
    const struct plan_existing *existing; /* nodes by name, then claims by name; only with pods */
    uint32_t existing_count;
    const struct plan_miss *misses; /* by namespace and name, as are the next */
    uint32_t miss_count;
    const struct plan_skip *skips;
    uint32_t skip_count;
    /* Placed pods in an order in which kube-scheduler agrees with every placement, all nodes being
     * there from the start. */
    struct plan_pods order;
    usd_hour price; /* of all launches */
    /* No set of launches for the pods that are in them costs less, each pod being read as it was: with
     * the same preferences given up and the same one of its required terms. */
    usd_hour lower_bound;
    uint32_t class_count; /* of pods that differ in anything that matters */
    uint64_t steps;       /* of the effort that was used */
};

/* Plan for every pending pod in `snap`. A pod that fits nowhere is a result, not an error. */
const struct plan *plan_build(struct arena *arena, const struct snapshot *snap,
                              struct plan_options options);

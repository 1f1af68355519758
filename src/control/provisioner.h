/* control/provisioner.h - from pending pods to NodeClaims.
 *
 * A pass looks at the whole cluster, plans (sched/plan.h) and creates the claims of the plan. Passes
 * are batched: one starts when no further pod has come for a second, or ten seconds after the first.
 * Claims on their way are capacity like nodes, launched or not, so a pass never waits for one.
 */
#pragma once

#include "control/control_impl.h"

struct provisioner *provisioner_new(void);
void provisioner_free(struct provisioner *p); /* NULL is fine */
void provisioner_stats(struct provisioner *p, struct control_stats *out);

/* --- provision_snapshot.c --- */

/* A pass: the snapshot, and everything that it borrows. */
struct provision {
    struct arena arena;
    struct snapshot snap;
    struct sched_pool *pools; /* snap.pools */
    struct object_list nodes, claims, pods, nodepools, daemon_sets, pvcs, pvs, storage_classes,
        csi_nodes, namespaces, priority_classes, pdbs;
    bool *displaced;
    uint32_t pending_count;    /* pods that kube-scheduler has given up on, and displaced ones */
    struct bitset probes;      /* pools that may try one node: COOLDOWN_PROBE */
    int64_t cooldown_until_ns; /* the next change of that; INT64_MAX: none */
    bool whole;                /* whatever was asked was answered, and whoever was told has heard */
};
void provision_collect(struct control *c, struct provision *p);
void provision_done(struct provision *p);
/* Is it worth a pass: kube-scheduler has called it unschedulable, and it may be for us. */
bool pod_is_provisionable(const struct pod *pod);
/* A node that is going: pods must leave it. */
bool node_is_leaving(struct control *c, const struct node *node);

/* --- provision_claim.c --- */

/* The NodeClaim of a launch, as JSON. */
json_mut *provision_claim_json(const struct provision *p, const struct plan_launch *launch,
                               struct str name, struct json_build *b);

/* --- provision_tell.c --- */

struct provision_result {
    const struct plan *plan;
    const struct object **claims; /* per launch: what was created, or NULL; references */
};
/* Events, conditions, nominations and metrics of a pass. False: some conditions are left for the
 * next, because there are too many or because writing one failed. */
bool provision_tell(struct control *c, const struct provision *p,
                    const struct provision_result *result);
void nominate(struct control *c, struct str name);
#define CONDITION_POD_PLANNED STR("karve.io/NodePlanned")

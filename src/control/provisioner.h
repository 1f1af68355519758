/* control/provisioner.h - from pending pods to NodeClaims.
 *
 * A pass looks at the whole cluster, plans (sched/plan.h) and creates the claims of the plan. Passes
 * are batched: one starts when no further pod has come for a second, or ten seconds after the first.
 * Claims on their way are capacity like nodes, launched or not, so a pass never waits for one.
 */
#pragma once

#include "control/control_impl.h"
#include "control/image_fits.h"

struct provisioner *provisioner_new(void);
void provisioner_free(struct provisioner *p); /* NULL is fine */
/* Something that pods wait for has changed, which no trigger tells: is a pass worth its while? */
bool provisioner_wants_pass(struct control *c);
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
    uint32_t pending_count; /* pods that kube-scheduler has given up on, and displaced ones */
    struct image_fits *maybe_fits; /* of snap.fits */
    struct bitset probes;          /* pools that may try one node: COOLDOWN_PROBE */
    int64_t cooldown_until_ns;     /* the next change of that; INT64_MAX: none */
    bool whole; /* whatever was asked was answered, and whoever was told has heard */
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

/* --- provision_create.c --- */

#define CLAIM_NAME_BYTES 64
struct claim_maker {
    pthread_mutex_t lock; /* while claims are created; a leaf */
    uint64_t name_count;
    struct str_table doubtful; /* names of claims that may have been created: nobody said */
};
void claim_maker_init(struct claim_maker *m);
void claim_maker_done(struct claim_maker *m);
/* Are the doubtful ones there? Planning without knowing would launch for the same pods twice. */
int claims_settle(struct control *c, struct claim_maker *m, struct err *err);
/* As many as can be created are; `claims` as in struct provision_result. The failure of the first that was not
 * is told. */
int claims_create(struct control *c, struct claim_maker *m, struct provision *p,
                  const struct plan *plan, const struct object **claims, struct err *err);

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

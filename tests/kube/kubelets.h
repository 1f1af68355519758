/* tests/kube/kubelets.h - kubelets for nodes that have no machine.
 *
 * Every Node with the label kwok.x-k8s.io/node=fake, as the kwok provider makes them, gets ready and
 * says so; pods that are bound to it run; pods that are deleted end. Nothing else is done: binding is
 * the scheduler's, and taints, budgets and orphans are the controller manager's.
 *
 * Its work is proportional to what changes: nothing happens in a cluster at rest, unless leases are to
 * be renewed.
 */
#pragma once

#include "base/clock.h"
#include "store/store.h"

/* A Node with this label, whatever its value, never gets ready, as if its kubelet did not start. (That a
 * Node does not even come is up to its KWOKNodeClass: nodeRegistrationDelay.) */
#define KUBELETS_NEVER_READY "kubelets.test/never-ready"
/* A Pod with this label takes all of its grace to end. Others end at once. */
#define KUBELETS_TAKES_ITS_GRACE "kubelets.test/takes-its-grace"

struct kubelets_options {
    const struct store *store; /* outlives it, as does the clock */
    const struct clock *clock;
    uint32_t thread_count; /* of writers; 0: KUBELETS_THREADS */
    /* Each node has a Lease, which belongs to it, and is renewed so often. 0: no Leases. The controller
     * manager gives up a node that is silent for longer than --node-monitor-grace-period. */
    int64_t renew_ns;
};
#define KUBELETS_THREADS 8

struct kubelets;
int kubelets_start(struct kubelets_options options, struct kubelets **out, struct err *err);
void kubelets_stop(struct kubelets *k); /* and frees it; NULL is fine */

struct kubelets_counts {
    uint64_t nodes_ready, pods_started, pods_ended, failures; /* writes so far */
};
struct kubelets_counts kubelets_counts(struct kubelets *k);

/* sim/binder.h - plays kube-scheduler: binds pods to nodes by its rules, or says that they are
 * unschedulable.
 *
 * Its filters are those of kube-scheduler (resources, node selectors and affinity, taints, host
 * ports, volumes, topology spread, pod affinity and anti-affinity), its order that of its queue
 * (priority, then age), its choice among nodes the emptiest, so that it does not simply do what a plan
 * had in mind. Pods of one template share what was found out about nodes.
 *
 * Left out: preemption and with it nominated nodes, preferences (preferred affinity, soft spreads) as
 * scores, and resource claims: pods that have some are unschedulable. A claim that waits for its first
 * pod counts as satisfied where its class could provision it: the kubelets do so once it is bound.
 */
#pragma once

#include "base/clock.h"
#include "store/store.h"

struct binder_options {
    const struct clock *clock;
    const struct store *store; /* never faulty */
    uint64_t seed;
    /* Ask sched/check about every binding as well: where invariants are checked. A disagreement is
     * counted, and told by binder_disagreement. */
    bool doubt;
};

struct binder;
struct binder *binder_new(struct binder_options options);
void binder_free(struct binder *b); /* NULL is fine */
KV_AUTO_TYPE(binder, binder_free)

/* Take in what changed and bind what can be bound; the next moment (mono_ns) something is due. */
int64_t binder_step(struct binder *b);

struct binder_stats {
    uint64_t bound, refused; /* refused: verdicts of "unschedulable" */
    uint64_t disagreements;
};
struct binder_stats binder_stats(const struct binder *b);
const char *binder_disagreement(const struct binder *b); /* the first, in words; NULL: none */

/* control/leader.h - who of several replicas acts: leader election by a Lease.
 *
 * The holder renews the Lease every retry period; when it could not for the renew deadline, it has
 * lost. Another takes it once it has seen it unchanged for the lease duration, by its own clock:
 * clocks of different machines are never compared. The Lease's fields mean what they mean to
 * client-go.
 *
 * Losing is for good: the program stops. Between the last renewal and its being stopped nothing may
 * act in the name of a leader, so writes go through a fence (leader_store, leader_provider) that
 * refuses them from the renew deadline on: the lease duration has not passed then, so nobody else
 * acts yet. A call that was sent before is bounded by its own timeout: no longer than lease duration
 * less renew deadline (5 s), and it has ended when another begins.
 */
#pragma once

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "cloud/provider.h"
#include "store/store.h"

#define LEADER_LEASE_NS ((int64_t)15 * 1000000000)
#define LEADER_RENEW_NS ((int64_t)10 * 1000000000)
#define LEADER_RETRY_NS ((int64_t)2 * 1000000000)

struct leader_options {
    /* Not the fenced one; all of these outlive it. A call that takes longer than the renew deadline is
     * a renewal missed: give it a client of its own, with a timeout of half of that and a rate limit
     * that nobody else uses up. */
    const struct store *store;
    const struct clock *clock;
    struct metrics *maybe_metrics;
    struct log *maybe_log;
    const char *namespace_, *name;        /* of the Lease; copied */
    const char *identity;                 /* of this process, unique; copied */
    int64_t lease_ns, renew_ns, retry_ns; /* 0: as above; lease > renew > retry * 1.2 */
    uint64_t seed;                        /* of the jitter */
    /* Called at most once each, by whoever steps: it became the leader; it is none any more. They may
     * be NULL, and neither release nor free it. */
    void (*gained)(void *ctx);
    void (*lost)(void *ctx);
    void *ctx;
};

struct leader;
int leader_new(struct leader_options options, struct leader **out,
               struct err *err);    /* ERR_INVALID: times or names */
void leader_free(struct leader *l); /* stops it; NULL is fine */
KV_AUTO_TYPE(leader, leader_free)

/* Do what is due; when (mono_ns) to call it again. Simulations and tests call it; programs run
 * leader_start. */
int64_t leader_step(struct leader *l);
int leader_start(struct leader *l, struct err *err); /* a thread that does so */
/* Give the Lease up, so that another need not wait for it; nothing else is done afterwards, and `lost`
 * is not called. Call it when everything that acts has stopped. */
void leader_release(struct leader *l);

bool leader_holds(struct leader *l); /* may somebody act in its name, at this moment? */

/* Decorators: reads pass, writes while it does not hold are ERR_CANCELLED. Made by one thread, they live
 * as long as it does. */
const struct store *leader_store(struct leader *l, const struct store *inner);
const struct cloud_provider *leader_provider(struct leader *l, const struct cloud_provider *inner);

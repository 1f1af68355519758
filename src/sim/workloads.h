/* sim/workloads.h - the workload controllers: Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs
 * and CronJobs become pods, and fewer pods when they are scaled down. Status counts are kept.
 *
 * They follow kube-controller-manager: a Deployment makes ReplicaSets NAME-HASH and moves its pods from
 * one to the next within maxSurge and maxUnavailable; a StatefulSet keeps its ordinals and their
 * claims; a DaemonSet has a pod on each node that it selects and tolerates; a Job runs, fails and backs
 * off; a CronJob makes a Job at its minute. Names are deterministic: of the seed and the objects.
 *
 * Left out: proportional scaling in the midst of a roll-out, conditions of Deployments, surging
 * DaemonSets, podFailurePolicy and backoffLimitPerIndex of Jobs. Time zones of CronJobs are read as UTC.
 *
 * The store shows objects as text (store_get_json): pods have all that their template says.
 */
#pragma once

#include "base/clock.h"
#include "store/store.h"

struct workloads;
struct workloads *workloads_new(const struct store *store, const struct clock *clock,
                                uint64_t seed);
void workloads_free(struct workloads *w); /* NULL is fine */
KV_AUTO_TYPE(workloads, workloads_free)

/* Take in what changed, do what is due; the next moment (mono_ns) something is. */
int64_t workloads_step(struct workloads *w);

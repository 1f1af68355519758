/* control/pod_latency.h - how long pods wait: for a decision, a node, and to run.
 *
 * Times are per pod, kept from when it is first seen waiting until it runs or goes. Pods that were
 * planned onto a NodePool whose nodes are not known to join are not measured by the
 * pods_provisioning_* metrics: they would tell of the pool and not of us. What has happened before
 * this process saw it is not measured.
 */
#pragma once

#include "control/control_impl.h"

struct pod_latency *pod_latency_new(struct metrics *registry, const struct clock *clock);
void pod_latency_free(struct pod_latency *p); /* NULL is fine */

/* A change of a pod; an informer_handler_fn whose `ctx` is the struct pod_latency. */
void pod_latency_see(void *ctx, const struct object *maybe_old, const struct object *maybe_new);

/* Told by the provisioner. `healthy`: of the pool it will go to (health_is_true), or of an existing
 * node: true. */
void pod_latency_planned(struct control *c, const struct pod *pod, bool healthy);
/* It was tried, and fits nowhere. */
void pod_latency_undecided(struct control *c, const struct pod *pod);

/* sim/kubelet.h - the kubelets and the small controllers of a cluster, in one.
 *
 * Kubelets: pods that are bound to a Ready node start and run, pods that are deleted end within their
 * grace, jobs' pods finish. Where the instance has died nothing of that happens, whatever the Node still
 * says.
 * Node lifecycle: taints follow from a Node's Ready condition and from cordoning; pods on a node that
 * is not ready are not ready, and NoExecute taints drive pods away, those two by default after five
 * minutes.
 * Startup taints: those that its NodeClaim names are taken from a Node some time after it got ready, as
 * the daemons would that they wait for.
 * Pod garbage collection: pods of a node that has been gone for 40 s are removed.
 * Volumes: claims get volumes (at once, or in the zone of their first pod), volumes are attached
 * while a pod of the node uses them, claims are made from pods' own templates.
 * Events are forgotten an hour after they last happened.
 *
 * What a pod waits for hangs in a heap of timers: a step costs what changed and what is due, not what
 * there is.
 */
#pragma once

#include "sim/cloud.h"

struct kubelet_options {
    const struct clock *clock;
    const struct store *store; /* never faulty */
    struct sim_cloud *cloud;
    uint64_t seed;
    struct span pod_start, pod_stop; /* stop: within the pod's grace */
    /* How long pods of Jobs run, unless they are annotated karve.io/sim-duration, which other pods that
     * are not always restarted may be, too. */
    struct span job_run;
    /* From Ready until the daemon that a startup taint waits for has taken it away. */
    struct span startup_taints;
};

struct kubelet;
struct kubelet *kubelet_new(struct kubelet_options options);
void kubelet_free(struct kubelet *k); /* NULL is fine */
KV_AUTO_TYPE(kubelet, kubelet_free)

/* Take in what changed, do what is due; the next moment (mono_ns) something is. */
int64_t kubelet_step(struct kubelet *k);

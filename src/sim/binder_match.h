/* sim/binder_match.h - does a node suit a pod by its labels, its name and its taints? As kube-scheduler
 * and the DaemonSet controller see it.
 */
#pragma once

#include "api/node.h"
#include "api/pod.h"

/* A node's label by any of its names; its host name if it has no such label. STR_NONE: none. */
struct str node_label(const struct node *node, struct str key);
bool node_matches_terms(const struct node *node, const struct node_selector_term *terms,
                        uint32_t count);
/* The pod's node selector and required node affinity. */
bool node_matches_pod(const struct node *node, const struct pod_spec *spec,
                      const struct affinity *maybe_affinity);
/* The first taint with one of the effects (bit per enum taint_effect) that is not tolerated, or NULL.
 * A cordoned node has the taint that says so, with the effect NoSchedule. */
const struct taint *node_taint_in_the_way(const struct node *node, unsigned effects,
                                          const struct toleration *tolerations, uint32_t count);
#define EFFECTS_THAT_REPEL (1u << EFFECT_NO_SCHEDULE | 1u << EFFECT_NO_EXECUTE)

/* The node that the pod's required affinity names, if it can only be that one: a daemon's pod. */
struct str pod_only_node(const struct affinity *maybe_affinity);

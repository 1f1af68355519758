/* node/pod_sum.h - what the containers of a pod ask for together, without its overhead. */
#pragma once

#include "node/node_pod.h"

/* The main containers and the sidecars at once; before them each init container, with the sidecars
 * that stand before it. One container without a limit, and the pod has none: zero. What the pod
 * asks for as a whole goes first. Beyond what a quantity holds: the largest. */
struct quantity pod_sum(const struct node_pod *pod, struct str resource, bool limits);

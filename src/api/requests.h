/* api/requests.h - what a pod asks of a node, exactly as kube-scheduler computes it.
 *
 * Containers run together, so their requests add up. Init containers run one after another before
 * them, so each counts only if it alone asks for more; sidecars (init containers that restart
 * always) keep running, so they count with everything that starts after them. Requests for the pod
 * as a whole replace what its containers sum up to; overhead comes on top. While a container is
 * being resized in place it counts with the largest of what it asks for, has been given and uses.
 */
#pragma once

#include "api/pod.h"

/* Sorted by name, in `arena`; zero amounts may be among them. ERR_INVALID: beyond 2^63-1. */
int pod_requests(const struct pod *pod, struct arena *arena, struct resources *out,
                 struct err *err);
/* The same for a pod that is yet to be made from a template. */
int pod_spec_requests(const struct pod_spec *spec, struct arena *arena, struct resources *out,
                      struct err *err);
/* And with `pods: 1`, for everything that compares with a node's allocatable. */
int pod_requests_on_node(const struct pod *pod, struct arena *arena, struct resources *out,
                         struct err *err);

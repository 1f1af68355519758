/* control/eviction.h - pods of draining nodes, on their way out one by one.
 *
 * Node termination asks for each pod whose turn it is, at every pass; the pod is then tried until it
 * goes, with a back-off of its own, so a budget that refuses for hours costs an attempt in ten seconds.
 */
#pragma once

#include "api/pod.h"

struct control;

/* Which pods are being tried. A cache: after a restart termination asks again. */
struct terminations;
struct terminations *terminations_new(void);
void terminations_free(struct terminations *t); /* NULL is fine */

/* Have a pod of a node that is being drained leave. Whether it is evicted or deleted is decided when
 * its turn comes (drain_judge); `force` brings that turn forward once. Asking again is free. */
void eviction_ask(struct control *c, const struct pod *pod, bool force);

/* control/metrics_collect.h - numbers about objects: worked out when somebody asks, or when an object
 * changes. For control_metrics_start and _stop; what they say is in docs of the metrics themselves.
 */
#pragma once

#include "control/control_impl.h"

/* --- metrics_collect.c: nodes, pods, pools --- */
struct object_gauges;
struct object_gauges *object_gauges_new(struct control *c);
void object_gauges_free(struct object_gauges *g); /* NULL is fine */

/* --- metrics_conditions.c: operator_* --- */
struct condition_metrics;
/* Before the first pump of the cluster: it listens to changes. */
struct condition_metrics *condition_metrics_new(struct control *c);
void condition_metrics_free(struct condition_metrics *m); /* NULL is fine */

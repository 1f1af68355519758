/* compat/extender.h - kube-scheduler's HTTP extender: which of these nodes can run the pod's images, and which
 * of them it would rather have.
 *
 * Requests and answers are in the scheduler's own JSON (Go field names, any case when read). An answer is made
 * of what is in memory: no call waits for a registry, an API server or anybody else. A pod whose images are not
 * known yet is refused for the moment with an error (it is tried again), or let through, as the policy says.
 *
 *     POST /scheduler/filter      NodeNames that fit; FailedAndUnresolvableNodes, each with why
 *     POST /scheduler/prioritize  0 to 10 by the best weight of the sets that match
 *     POST /scheduler/preempt     the victims' nodes that fit
 */
#pragma once

#include "base/log.h"
#include "base/metrics.h"
#include "compat/service.h"
#include "net/http_server.h"

#define EXTENDER_BODY_BYTES_MAX                                                                    \
    ((size_t)32 << 20) /* 10,000 whole nodes, if nodeCacheCapable is not set */
#define EXTENDER_NODES_MAX 50000
#define EXTENDER_REASON_BYTES_MAX 300

struct extender_options {
    struct compat_service *service; /* outlives it, as does the pool */
    struct object_pool *pool;       /* for pods that nobody has told the service of */
    struct metrics *maybe_metrics;
    struct log *maybe_log;
    const struct clock *clock;
};

struct extender;
struct extender *extender_new(struct extender_options options);
void extender_free(struct extender *extender); /* NULL is fine */
KV_AUTO_TYPE(extender, extender_free)

/* Routes for an HTTP server; their number is EXTENDER_ROUTES. */
enum { EXTENDER_ROUTES = 3 };
void extender_routes(struct extender *extender, struct http_route out[EXTENDER_ROUTES]);

/* What the routes do, for tests and fuzzing: the verb's answer, and its HTTP status. */
enum extender_verb { EXTENDER_FILTER, EXTENDER_PRIORITIZE, EXTENDER_PREEMPT };
int extender_answer(struct extender *extender, enum extender_verb verb, struct str body,
                    struct buf *out);

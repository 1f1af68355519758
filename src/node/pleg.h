/* node/pleg.h - the pod lifecycle event generator: keeps the pod cache true and tells what changed.
 *
 * A relist asks the runtime for all sandboxes and containers, compares with what it knew, inspects
 * only the pods that changed, writes the cache, and only then sends events. It is the single writer
 * of the cache. Relists of one pod, after a worker acted or on a hint of the runtime's event
 * stream, follow the same path. See pleg.c for the rules.
 */
#pragma once

#include "node/cri.h"
#include "node/events.h"
#include "node/pod_cache.h"

#define PLEG_PERIOD_NS ((int64_t)1000000000)
#define PLEG_HEALTHY_NS ((int64_t)3 * 60 * 1000000000) /* without a relist: not healthy */
#define PLEG_REQUESTS_MAX 200                          /* of single pods; more are dropped */
#define PLEG_INSPECTIONS_MAX 16                        /* pods inspected at the same time */
/* So long a relist waits for an inspection; then the pod's entry says so and the rest goes on. */
#define PLEG_PATIENCE_NS ((int64_t)1000000000)

struct pleg_options {
    struct cri *cri; /* these are borrowed */
    struct pod_cache *cache;
    struct event_hub *events;
    const struct clock *clock;
    struct log *log;
    struct metrics *metrics; /* NULL: none */
    int64_t period_ns;       /* 0: PLEG_PERIOD_NS */
    bool no_hints;           /* never listen to the runtime's events */
};

struct pleg;
struct pleg *pleg_new(struct pleg_options options);
void pleg_free(struct pleg *pleg); /* stopped; NULL is fine */
KV_AUTO_TYPE(pleg, pleg_free)

/* A thread that relists every period, and one that listens for hints. Once in its life. */
int pleg_start(struct pleg *pleg, struct err *err);
void pleg_stop(struct pleg *pleg); /* NULL is fine */

/* Without the threads: one full relist, or one of a pod, from list to events. For tests and
 * benches, and never while the threads run. */
int pleg_relist(struct pleg *pleg, struct err *err);
int pleg_relist_pod(struct pleg *pleg, struct str uid, struct err *err);

/* Ask for a relist of one pod soon. Never blocks; called after the end of what should be seen. */
void pleg_request(struct pleg *pleg, struct str uid);
/* Inspect the pod at the next relist even if its listing has not changed. */
void pleg_request_inspection(struct pleg *pleg, struct str uid);
/* A full relist as soon as possible. */
void pleg_request_all(struct pleg *pleg);

/* False: `why` tells, for the node's Ready condition. */
bool pleg_healthy(struct pleg *pleg, struct err *why);

struct pleg_stats {
    uint64_t relist_count, relist_failed_count, pod_relist_count, inspect_count,
        inspect_failed_count;
    uint64_t hint_count, hint_ignored_count, stream_open_count, request_dropped_count;
    int64_t relist_time_ns;    /* of the last full listing that worked; 0: none */
    int64_t relist_running_ns; /* how long the running relist has been at it; 0: none runs */
    uint32_t pods, inspecting; /* now */
};
struct pleg_stats pleg_stats(struct pleg *pleg);

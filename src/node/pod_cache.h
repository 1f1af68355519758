/* node/pod_cache.h - the runtime pod cache: the status of every pod that the runtime knows.
 *
 * The PLEG is its only writer; pod workers and everybody else read, and never ask the runtime. A
 * status is immutable and counted: a reader holds what it read for as long as it likes. A reader
 * may wait for a status newer than a moment: a pod worker that has acted waits for what came of it.
 *
 * Beside each entry's own time there is the global time: the promise that everything here, also that
 * a pod is absent, is at least as new. The writer publishes it after all entries of a full relist, so
 * before the first one nothing is known about a pod without an entry, and who waits for it waits. An
 * entry is deleted only when the runtime no longer shows any sandbox or container of the pod. All
 * times are the clock port's monotonic nanoseconds.
 */
#pragma once

#include "base/clock.h"
#include "node/runtime.h"

struct pod_cache;
struct pod_cache *pod_cache_new(const struct clock *clock);
void pod_cache_free(struct pod_cache *cache); /* nobody waits in it; NULL is fine */
KV_AUTO_TYPE(pod_cache, pod_cache_free)

/* --- readers --- */

/* Never blocks, never NULL: a pod that the runtime does not know has a status with only its uid.
 * The caller unrefs. */
const struct runtime_status *pod_cache_get(struct pod_cache *cache, struct str uid);

/* Ends waits from outside: of a worker whose pod must go, of everybody at shutdown. One may serve many
 * waits. Waits with it end, also when it is reset right after, and later ones end at once until then. */
struct pod_cache_cancel;
struct pod_cache_cancel *pod_cache_cancel_new(struct pod_cache *cache);
void pod_cache_cancel(struct pod_cache_cancel *cancel);
void pod_cache_cancel_reset(struct pod_cache_cancel *cancel);
void pod_cache_cancel_free(
    struct pod_cache_cancel *cancel); /* nobody waits with it; NULL is fine */
KV_AUTO_TYPE(pod_cache_cancel, pod_cache_cancel_free)

/* Wait until the pod's status, or the promise about all, is newer than min_ns; what is newer already is
 * returned at once, cancelled or not. The caller unrefs. ERR_CANCELLED: given up. ERR_UNAVAILABLE: the
 * clock reached until_ns (INT64_MAX: no limit) first. */
int pod_cache_get_newer_than(struct pod_cache *cache, struct str uid, int64_t min_ns,
                             int64_t until_ns, struct pod_cache_cancel *maybe_cancel,
                             const struct runtime_status **out, struct err *err);

/* Every entry, sorted by uid; each with a reference of the caller's. */
struct pod_cache_all {
    const struct runtime_status **items; /* freed by pod_cache_all_done, references and all */
    uint32_t count;
    int64_t time_ns; /* the global time, read first */
};
struct pod_cache_all pod_cache_all(struct pod_cache *cache);
void pod_cache_all_done(struct pod_cache_all *all);

int64_t pod_cache_time(const struct pod_cache *cache); /* 0: no full relist yet */

struct pod_cache_stats {
    uint32_t entry_count, waiter_count;
    uint64_t bytes; /* of the statuses */
};
struct pod_cache_stats pod_cache_stats(struct pod_cache *cache);

/* --- the writer --- */

/* What these release are waits for anything not newer than their time, equal included: nothing that
 * comes later in the same instant would. */

/* Replaces the entry of status->uid; takes its own reference. False: a newer one is there, and nothing
 * is changed. */
bool pod_cache_set(struct pod_cache *cache, const struct runtime_status *status);
/* The pod was listed at ts_ns and nothing had changed, be it here or absent. */
void pod_cache_set_observed(struct pod_cache *cache, struct str uid, int64_t ts_ns);
/* Nobody is released: the update_time that follows does it. */
void pod_cache_delete(struct pod_cache *cache, struct str uid);
/* The promise: every pod has been set or deleted, or was as it is here, at ts_ns. It never goes back. */
void pod_cache_update_time(struct pod_cache *cache, int64_t ts_ns);

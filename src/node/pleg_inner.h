/* node/pleg_inner.h - the PLEG's inside, shared by its files. Others use pleg.h.
 *
 *     pleg.c          the loop, requests, relists; the rules are told there
 *     pleg_inspect.c  inspections under way, and what becomes of their results
 *     pleg_records.c  what was known of each pod, and what a listing changes
 *     pleg_hints.c    the runtime's event stream
 *     pleg_metrics.c  what dashboards see
 */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "node/pleg.h"
#include "node/pleg_records.h"

#include <stdatomic.h>

/* Pods asked for are listed alone while these are few. Listing one pod is two calls of some
 * 70 us each; listing everything takes 0.3 ms with 100 containers and twice that with 200. So from
 * about four pods on, one listing of everything is cheaper than so many single ones. */
#define PLEG_SINGLES_MAX 4
/* A pod is not listed for a hint sooner after it was last listed. Changes come in bunches (a
 * sandbox is created, then started), and the first hint of a bunch is not held up by this. */
#define PLEG_HINT_PAUSE_NS ((int64_t)3 * 1000000)

/* So long after a container was killed its pod is inspected once more: see pleg_inspect.c. */
#define PLEG_SECOND_LOOK_NS ((int64_t)1000000000)

#define PLEG_KEY_MAX 128 /* a longer uid asks for a relist of everything */

struct pleg_request {
    char key[PLEG_KEY_MAX];
    size_t key_len;
    bool by_id;          /* the key is the id of something in the pod, instead of the pod's uid */
    bool hint;           /* nobody waits for it */
    uint64_t made_after; /* so many full relists had begun */
};

struct pleg_metrics {
    struct metric *relist_duration, *relist_interval, *pod_relist_duration, *last_seen;
    struct metric *discarded, *running, *late;
    struct metric *inspections_ok, *inspections_failed, *inspections_outdated;
    struct metric *hints_asked, *hints_ignored, *hints_dropped;
    uint64_t discarded_count; /* as last told */
};

struct pleg {
    struct pleg_options opts;
    struct pleg_metrics metrics; /* all NULL without */

    /* --- of the owner: the PLEG's thread or, without it, the caller of pleg_relist --- */
    struct records records;
    VEC(struct inspection *) inspections; /* oldest first */
    uint32_t slots_taken;
    struct arena listing; /* the newest listing, until the next */
    struct {
        bool on;         /* it has listed, and waits for inspections */
        uint64_t number; /* from 1 */
        int64_t begun_ns;
        int64_t ts_ns; /* of its listing */
    } relist;
    int64_t listed_ns; /* its timestamp; 0: none */
    /* Of the last full listing, if that left nothing to do and nothing has come up since: one that
     * has the same shows nothing new, and is not even looked at. 0: none. */
    uint64_t quiet_digest;
    int64_t relist_due_ns;

    pthread_mutex_t lock;         /* guards all below; nothing of cri.h is called with it held */
    pthread_cond_t changed;       /* for the owner */
    pthread_cond_t hints_changed; /* for who listens to the stream */
    bool stopping, woken, all_wanted;
    struct pleg_request *requests; /* PLEG_REQUESTS_MAX, in the order they came */
    uint32_t request_count;
    struct str_table inspections_wanted; /* uids to inspect at their next listing */
    uint64_t begun_count;                /* full relists */
    int64_t running_since_ns;            /* of the running relist; 0: none */
    struct pleg_stats stats;             /* but for relist_running_ns */
    uint32_t late_count;
    uint64_t unreachable_count; /* listings that the runtime was not there for */

    pthread_t thread, hints_thread;
    struct cri_cancel *stop_listing; /* a stop does not wait for a runtime that does not answer */
    bool started;
    pthread_mutex_t stream_lock; /* guards the stream; taken alone, and held while cancelling it */
    bool stream_stopped;
    struct cri_pending *maybe_stream;
};

/* --- pleg.c --- */

/* For the connection's thread: an inspection has something to do. */
void pleg_wake(struct pleg *pleg);
/* A hint about a pod, by its uid or by the id of something in it. */
void pleg_hint(struct pleg *pleg, struct str key, bool by_id);

/* --- pleg_inspect.c --- */

/* The pod was listed and must be inspected; or it is being inspected and has been listed again, in
 * `relist` (0: of this pod alone). */
void inspection_want(struct pleg *pleg, struct record *record, const struct runtime_pod *listed,
                     int64_t ts_ns, uint64_t relist);
void inspection_cancel(struct pleg *pleg, struct record *record); /* if there is one */
void inspections_done(struct pleg *pleg);                         /* all of them */
/* Start what waits, take in answers, give up waiting for what is late. */
void inspections_advance(struct pleg *pleg);
/* When inspections_advance has something to do though nothing was answered; INT64_MAX: never. */
int64_t inspections_due(const struct pleg *pleg);
/* Has every inspection that this full relist wants been answered, or been given up waiting for? */
bool inspections_settled(const struct pleg *pleg, uint64_t relist);
/* The pod's entry in the cache is as new as its record says: nothing is on its way. */
bool inspection_late(const struct record *record);

/* --- pleg_hints.c --- */

void *pleg_hints_main(void *pleg);
void pleg_hints_stop(struct pleg *pleg); /* its thread ends soon */

/* --- pleg_metrics.c --- */

void pleg_metrics_init(struct pleg *pleg);
void pleg_metrics_done(struct pleg *pleg);
static inline void pleg_observe(struct metric *maybe_metric, int64_t ns)
{
    if (maybe_metric)
        metric_observe(maybe_metric, (double)ns / 1e9);
}
static inline void pleg_count(struct metric *maybe_metric)
{
    if (maybe_metric)
        metric_inc(maybe_metric);
}

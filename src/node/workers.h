/* node/workers.h - pod workers: one thread per pod, which syncs it, ends it, and cleans up after it.
 *
 *              first update
 *                   v
 *          +----- SYNC ------+   again on events, resync, retry
 *          | terminal phase, |
 *          | delete, kill    |
 *          v
 *     TERMINATING -- error --> retry (the grace only shrinks)
 *          v all containers stopped
 *     TERMINATED  -- error --> retry
 *          v volumes gone, final status told
 *     FINISHED    kept until the uid is no longer wanted
 *
 * Updates are not queued: the newest wins. Each step starts from the pod cache, with a status newer than
 * the end of the step before.
 */
#pragma once

#include "node/configs.h"
#include "node/pleg.h"
#include "node/prober.h"

/* Told of each new API status of a pod, from its worker; the status is borrowed. `finished`: the last. */
typedef void status_told_fn(void *ctx, const struct node_pod *pod, const json_val *status,
                            bool finished);
/* An event for people: "Started", "Killing", "BackOff", as kubelets name them. Of one pod several may come
 * at the same moment, from the threads that stop its containers. */
typedef void pod_event_told_fn(void *ctx, const struct node_pod *pod, bool warning,
                               struct str reason, struct str message);

struct workers_options {
    struct cri *cri; /* all of these are borrowed */
    struct pleg *pleg;
    struct pod_cache *cache;
    struct prober *prober;
    const struct clock *clock;
    struct log *log;
    struct metrics *metrics;
    struct node_facts facts;
    struct object_source objects;
    uint64_t seed;
    int64_t backoff_initial_ns, backoff_max_ns; /* of restarts and pulls; 0: 10 s and 300 s */
    int64_t resync_ns, retry_ns;                /* 0: 60 s and 10 s */
    bool (*network_ready)(void *ctx);
    status_told_fn *status;
    pod_event_told_fn *event;
    void *ctx;
};

struct pod_workers;
struct pod_workers *pod_workers_new(struct workers_options options);
void pod_workers_stop(
    struct pod_workers *workers); /* steps end where they safely can; pods go on running */
void pod_workers_free(struct pod_workers *workers);

/* Before the first pod: does the runtime make control groups through systemd? */
void pod_workers_set_cgroups(struct pod_workers *workers, bool systemd);

/* The pod is wanted, or has changed. `new`: its source did not have it before; if a pod of that uid is just
 * ending, it runs again afterwards (pod_workers_wanted forgets it, and the caller sends it anew). */
void pod_workers_update(struct pod_workers *workers, const struct node_pod *pod, bool new);
/* Sync it now: something happened. Unknown uids are ignored. */
void pod_workers_sync(struct pod_workers *workers, struct str uid);
void pod_workers_sync_all(struct pod_workers *workers); /* events were lost */
/* It is not wanted any more (or: kill it now with this grace). */
void pod_workers_kill(struct pod_workers *workers, struct str uid, struct maybe_int grace_s);
/* A pod that only the runtime knows: kill it with a grace of 1 s. */
void pod_workers_kill_runtime(struct pod_workers *workers, const struct runtime_status *status);

/* From housekeeping: these uids are wanted; finished others are forgotten, living others are ended. True: some
 * were forgotten, and what is left of them can be removed. */
bool pod_workers_wanted(struct pod_workers *workers, const struct str *uids, uint32_t count);

bool pod_workers_knows(struct pod_workers *workers, struct str uid);
bool pod_workers_may_remove_content(struct pod_workers *workers,
                                    struct str uid); /* logs, volumes, containers */

struct worker_view {   /* for /pods and metrics */
    const char *state; /* "Waiting", "Syncing", "Terminating", "Terminated", "Finished" */
    struct str name, namespace_;
    struct str status; /* JSON of the API status; empty: none yet */
    struct str last_error;
    int64_t since_us;
};
/* Every worker's, sorted by uid, copied into `arena`. */
struct worker_views {
    struct worker_view *items;
    struct str *uids;
    uint32_t count;
};
void pod_workers_view(struct pod_workers *workers, struct arena *arena, struct worker_views *out);

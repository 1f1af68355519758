/* node/workers_inner.h - what the files of the pod workers share. */
#pragma once

#include "base/rng.h"
#include "node/api_status.h"
#include "node/backoff.h"
#include "node/workers.h"

/* Everything of one pod's worker. The upper part is guarded by the owner's lock; the lower part is
 * the worker thread's alone. */
struct pod_worker {
    struct pod_workers *owner;
    char *uid;       /* the key in owner->workers points here too */
    char *full_name; /* "namespace/name": at most one static pod of a name runs at a time */
    uint64_t order;  /* in which they came */
    pthread_t thread;
    bool has_thread;
    pthread_cond_t changed; /* something to do, or to stop for */

    const struct node_pod *maybe_pod; /* the newest; NULL: only the runtime knows the pod */
    bool due_now;                     /* something happened: step at once */
    int64_t due_ns;                   /* else at this time; INT64_MAX: never */
    bool started, terminating, terminated, finished;
    bool deleted;        /* by the API, or gone from its source: nothing of it needs to be kept */
    bool restart_wanted; /* the same uid came again while this one ends */
    int64_t grace_s;     /* of the termination; 0: not known yet */
    char *failed_reason, *failed_message; /* of a kill with a verdict; NULL: none */
    struct cri_cancel *maybe_calls;       /* of the running step: long calls end */
    struct pod_cache_cancel *wait;        /* likewise its wait for the cache */
    char *status;                         /* JSON, the last told; NULL: none */
    char *last_error;                     /* NULL: the last step went well */
    int64_t since_us;                     /* wall: when the state last changed */

    int64_t last_sync_ns;
    struct backoff restarts, pulls;
    struct str_table failures; /* container name -> struct start_failure, see pod_sync.c */
    struct rng rng;
};

struct pod_workers {
    struct workers_options opts;
    /* Guards the table and the upper part of every worker. Nothing that waits is called with it
     * held. */
    pthread_mutex_t lock;
    struct str_table workers;
    uint64_t next_order;
    bool stopping;
    bool synced; /* pod_workers_wanted has been called: unknown uids are not running */
};

/* --- one step (worker_step.c) --- */

struct step_input {
    const struct node_pod *maybe_pod;
    bool terminating, terminated;
    int64_t grace_s;
    struct str failed_reason, failed_message; /* empty: none */
    struct cri_cancel *calls;
};

enum step_end {
    STEP_AGAIN,      /* well; again when something happens, or at the resync */
    STEP_NEXT_STATE, /* terminal phase, all stopped, or all cleaned up */
    STEP_FAILED,
    STEP_CANCELLED,
};

struct step_result {
    enum step_end end;
    bool acted;       /* called the runtime to change something, and all of it worked */
    int64_t retry_ns; /* of a failure, or an earlier resync: after this; 0: the default */
    bool deadline;    /* the pod's activeDeadlineSeconds are over */
};

struct step_result worker_step(struct pod_worker *w, const struct step_input *in, struct err *err);

/* Tell a new status, if it may follow the last and differs from it. */
void worker_tell_status(struct pod_worker *w, const struct node_pod *pod, json_mut *status,
                        bool finished);
void worker_event(struct pod_worker *w, const struct node_pod *maybe_pod, bool warning,
                  const char *reason, const char *fmt, ...) KV_PRINTF(5, 6);

/* --- making it so (pod_sync.c) --- */

struct pod_sync {
    struct pod_worker *worker;
    const struct node_pod *pod;
    const struct runtime_status *status;
    struct cri_cancel *calls;
    struct arena arena;
    struct node_facts facts; /* with the pod's addresses */
    Cri__PodSandboxConfig *sandbox;
    struct str sandbox_id;
    struct step_result *result;
    struct err *err; /* of the first failure */
    bool failed;
};
void pod_sync_run(struct pod_sync *sync, const struct pod_actions *actions);
void worker_failures_done(struct pod_worker *w);
/* What runs has started, whatever we were told of it. */
void worker_forget_failures(struct pod_worker *w, const struct runtime_status *seen);

/* --- images (pod_images.c) --- */

struct pod_image {
    struct str ref; /* what containers are made from */
    struct maybe_int uid;
    struct str username;
};
/* Have the image of a container, by its pull policy. On failure `reason` is the waiting reason. */
int pod_image_ensure(struct pod_sync *sync, const struct node_container *container,
                     struct pod_image *out, const char **reason, int64_t *retry_ns,
                     struct err *err);

/* --- stopping (pod_kill.c) --- */

struct pod_kill {
    struct pod_worker *worker;
    const struct node_pod *maybe_pod;
    const struct runtime_status *status;
    struct cri_cancel *calls;
    struct maybe_int grace_s; /* in place of all others */
};
/* Where hooks find the pod: one on the host's network, at the node's address. Empty: it has none. */
struct str hook_address(const struct pod_worker *w, const struct node_pod *pod,
                        struct str_list ips);
/* Every running container, main ones first and sidecars in reverse order, then every sandbox. */
int pod_kill_run(const struct pod_kill *kill, struct err *err);
/* One container: its preStop hook, then stop. `own_grace` is a probe's. */
int pod_kill_container(const struct pod_kill *kill, const struct runtime_container *container,
                       struct maybe_int own_grace_s, const char *why, struct err *err);

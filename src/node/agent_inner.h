/* node/agent_inner.h - what the files of the agent share. */
#pragma once

#include "node/agent.h"
#include "node/api_status.h"
#include "node/manifest_source.h"
#include "node/workers.h"

#include <stdatomic.h>

struct agent_pods {
    const struct node_pod **items; /* owned, with a reference each */
    uint32_t count;
};

/* A thread that runs something every period, and at once when told to. */
struct ticker {
    struct agent *agent;
    void (*run)(struct agent *agent);
    int64_t period_ns;
    pthread_t thread;
    pthread_mutex_t lock; /* guards the two below */
    pthread_cond_t changed;
    bool woken, stopping;
    bool running; /* the owner's */
};

struct agent {
    struct agent_options opts;
    struct arena arena; /* owns the texts of `facts` */
    struct node_facts facts;
    struct cri *cri;
    struct pod_cache *cache;
    struct event_hub *hub;
    struct pleg *pleg;
    struct metric *running_pods; /* NULL: nothing is counted */
    struct metric_family *containers, *worker_states;

    /* With run_pods; NULL otherwise. */
    struct prober *prober;
    struct pod_workers *workers;
    struct manifest_source *source;
    struct event_sub *events;
    struct ticker poll, gc;
    struct cri_cancel *care_calls; /* of these two, which end when the agent stops */
    atomic_bool network_ready, runtime_ready, may_collect;
    atomic_bool runtime_known; /* it has told its status and cgroup driver: pods may be run */
    _Atomic int64_t status_ns; /* when the runtime last told its status */

    pthread_t loop;
    bool has_loop;
    pthread_mutex_t lock; /* guards what follows, up to the loop's own */
    pthread_cond_t changed;
    bool woken, stopping;
    char *runtime_version;                    /* NULL: not known yet */
    struct agent_pods next[POD_SOURCE_COUNT]; /* the newest set of each source, not yet taken */
    bool has_next[POD_SOURCE_COUNT];

    struct agent_pods pods[POD_SOURCE_COUNT]; /* the loop's own from here on */
    bool seen[POD_SOURCE_COUNT];              /* also true of a source that there is not */
    bool sources_seen;                        /* all of them: now it is known what is not wanted */
    int64_t housekeeping_ns;
};

/* agent_metrics.c */
void agent_metrics_start(struct agent *agent);
void agent_metrics_stop(struct agent *agent);

/* agent_care.c */
int agent_care_start(struct agent *agent, struct err *err);
void agent_care_stop(struct agent *agent);
void agent_collect_soon(struct agent *agent);
bool agent_network_ready(void *ctx);

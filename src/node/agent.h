/* node/agent.h - the node agent: PLEG, cache, and with run_pods the workers, wired together.
 *
 * An observer by default: it changes nothing and is safe beside a kubelet.
 */
#pragma once

#include "base/log.h"
#include "base/metrics.h"
#include "node/events.h"
#include "node/pod_cache.h"
#include "node/workers.h"

struct agent_options {
    const char *endpoint;                      /* of the runtime */
    const char *manifests;                     /* folder of static pods; NULL: none */
    const char *node_name;                     /* NULL: the host's name, in lower case */
    const char *root;                          /* NULL: /var/lib/karve */
    const char *log_root, *container_log_root; /* NULL: /var/log/pods, /var/log/containers */
    struct str_list
        node_ips; /* one of each family; none: those that the host reaches others from */
    struct str_list dns_servers;  /* of the cluster; none: pods have the host's */
    const char *dns_domain;       /* of the cluster; NULL: none */
    struct resources allocatable; /* what a container without a limit may see as its limit */
    bool run_pods, no_hints;
    enum { CGROUP_ASK, CGROUP_FS, CGROUP_SYSTEMD } cgroup_driver; /* ASK: what the runtime says */
    int64_t relist_period_ns;                                     /* 0: 1 s */
    int64_t backoff_initial_ns, backoff_max_ns; /* of restarts and pulls; 0: 10 s and 300 s */
    int64_t retry_ns;                           /* after a failed sync; 0: 10 s */
    uint64_t seed;
    /* The seam to an API server (node/node_api.h): its pods come by agent_deliver, and nothing is
     * ended before they have come once; statuses and events go to these, and each new set of static
     * pods. All may be left out. */
    bool api;
    struct object_source objects;
    status_told_fn *status;
    pod_event_told_fn *event;
    void (*static_pods)(void *ctx, const struct node_pod *const *pods, uint32_t count);
    void *ctx;
    const struct clock *clock;
    struct log *log;
    struct metrics *metrics;
};

struct agent;
int agent_start(struct agent_options options, struct agent **out, struct err *err);
void agent_stop(struct agent *agent); /* pods go on running; NULL is fine */

/* The whole set of pods of a source, each time that it changes; they are borrowed for the call. */
void agent_deliver(struct agent *agent, enum pod_source source, const struct node_pod *const *pods,
                   uint32_t count);

struct pod_cache *agent_cache(struct agent *agent);
struct event_hub *agent_events(struct agent *agent);
bool agent_healthy(struct agent *agent, struct err *why);
/* The same, and pods get a network: the node may be given pods. */
bool agent_ready(struct agent *agent, struct err *why);
const struct node_facts *agent_facts(const struct agent *agent); /* lives as long as it */
/* "containerd://1.7.24", added to `out`; nothing before the runtime has said so. */
void agent_runtime_version(struct agent *agent, struct buf *out);

/* The local API's answers. */
void agent_pods_json(struct agent *agent, struct buf *out);
/* One pod; with newer_than_ns >= 0 waits (at most until_ns) for a status newer than that moment. False: the
 * runtime and the workers know no such pod. */
bool agent_pod_json(struct agent *agent, struct str uid, int64_t newer_than_ns, int64_t until_ns,
                    struct buf *out, struct err *err);
void pod_event_json(const struct pod_event *event, struct buf *out); /* one line, no newline */

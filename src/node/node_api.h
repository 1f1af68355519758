/* node/node_api.h - the node agent's side of the Kubernetes API: a Node, its Lease, its pods.
 *
 *     pods bound to this node --> agent_deliver --> pod workers
 *     statuses, events        <-- callbacks     <-- pod workers
 *     ConfigMaps, Secrets, tokens --> volumes and variables of pods
 *     mirror pods             <-- static pods
 *     Node status, Lease      <-- how the runtime and this machine are
 *
 * It works on the store port. A server that is away stops nothing: pods go on running, and what
 * could not be said is said when it is back, the newest only.
 *
 * In this order, because the agent calls it and it calls the agent:
 *
 *     node_api_new(options, &api, err);
 *     node_api_wire(api, &agent_options);
 *     agent_start(agent_options, &agent, err);
 *     node_api_start(api, agent, err);
 *     ...
 *     node_api_stop(api);
 *     agent_stop(agent);
 *     node_api_free(api);
 */
#pragma once

#include "node/agent.h"
#include "store/store.h"

#define NODE_PODS_MAX 110

struct node_api_options {
    const struct store *store; /* all of these outlive it; texts are copied */
    /* For the Node and its Lease alone, so that no pod's work holds them up. NULL: `store`. */
    const struct store *maybe_heartbeats;
    const struct clock *clock;
    struct log *log;
    uint64_t seed;

    bool register_node;       /* make the Node if it is not there; else wait for it */
    const char *labels;       /* of a new Node: "zone=a,disk=ssd"; NULL: none beyond the usual */
    const char *taints;       /* of a new Node: "key=value:NoSchedule,key:NoExecute"; NULL: none */
    const char *provider_id;  /* NULL: none */
    const char *version;      /* of karve: "0.1.0" */
    const char *root;         /* whose file system is the ephemeral storage; NULL: /var/lib/karve */
    int64_t pods_max;         /* 0: NODE_PODS_MAX */
    const char *reserved[2];  /* not for pods: "cpu=100m,memory=200Mi"; NULL: nothing */
    int64_t status_period_ns; /* how often the Node's status is made; 0: 10 s */
    int64_t report_period_ns; /* and sent although nothing changed; 0: 5 min */
    int64_t lease_period_ns;  /* 0: 10 s */
    int64_t retry_ns;         /* the first wait after a failed write, which doubles; 0: 1 s */
};

struct node_api;
/* ERR_INVALID: an option; the message says which. */
int node_api_new(struct node_api_options options, struct node_api **out, struct err *err);
/* Sets what the agent needs to know of it: objects, callbacks, allocatable. */
void node_api_wire(struct node_api *api, struct agent_options *options);
/* The agent is started, with those options and run_pods. */
int node_api_start(struct node_api *api, struct agent *agent, struct err *err);
/* Nothing is sent or delivered any more. Calls under way are waited for. */
void node_api_stop(struct node_api *api);
void node_api_free(struct node_api *api); /* the agent is stopped; NULL is fine */
KV_AUTO_TYPE(node_api, node_api_free)

/* cmd/agent_api.h - the agent's API server: its flags, its clients, and node/node_api.h on them. */
#pragma once

#include "cmd/kube_access.h"
#include "node/node_api.h"

/* Beside --kubeconfig and --context. */
#define AGENT_API_FLAGS                                                                            \
    { .name = "register-node",                                                                     \
      .value = "BOOL",                                                                             \
      .help = "make the Node if it is not there; else wait for somebody to make it",               \
      .dflt = "true",                                                                              \
      .choices = agent_api_bools },                                                                \
        { .name = "node-labels",                                                                   \
          .value = "KEY=VALUE,...",                                                                \
          .help = "labels of a new Node, beside those that every Node has" },                      \
        { .name = "register-with-taints",                                                          \
          .value = "KEY=VALUE:EFFECT,...",                                                         \
          .help = "taints of a new Node" },                                                        \
        { .name = "provider-id", .value = "ID", .help = "what the cloud calls this machine" },     \
        { .name = "node-ip",                                                                       \
          .value = "IP[,IP]",                                                                      \
          .help = "the node's addresses, one of each family; else what the host's routes say" },   \
        { .name = "max-pods", .value = "N", .help = "how many pods it takes", .dflt = "110" },     \
        { .name = "system-reserved",                                                               \
          .value = "NAME=QUANTITY,...",                                                            \
          .help = "what pods do not get, because the system needs it: cpu=100m,memory=200Mi" },    \
        { .name = "kube-reserved",                                                                 \
          .value = "NAME=QUANTITY,...",                                                            \
          .help = "likewise, for the runtime and this agent" },                                    \
        { .name = "cluster-dns",                                                                   \
          .value = "IP[,IP]",                                                                      \
          .help = "the cluster's name servers, for pods; else they have the host's" },             \
    {                                                                                              \
        .name = "cluster-domain", .value = "DOMAIN", .help = "of the cluster's services",          \
        .dflt = "cluster.local"                                                                    \
    }
extern const char *const agent_api_bools[];

struct agent_api {
    struct kubeconfig *access;
    struct object_pool *pool;
    struct kube *kube, *heartbeats;
    struct node_api *node;
    struct arena arena; /* of texts in the agent's options */
};

/* By --kubeconfig or --context. */
bool agent_api_wanted(const struct invocation *inv);
/* Before the agent is started: opens the clients and sets its options. An enum exit_code; complaints are
 * printed. */
int agent_api_open(struct agent_api *api, const struct invocation *inv, const struct clock *clock,
                   struct log *log, struct metrics *metrics, struct agent_options *options);
/* Before the agent is stopped, and after. Both accept what was never opened. */
void agent_api_stop(struct agent_api *api);
void agent_api_close(struct agent_api *api);

/* sched/model_nodes.h - nodes, claims and daemons while a model is compiled; for model_*.c only. */
#pragma once

#include "sched/model_inner.h"

/* A DaemonSet, as it will be on new nodes. */
struct daemon {
    const int64_t *request; /* per resource of struct node_side */
    /* Of node labels: any of them, node selector included. None: it runs nowhere. */
    const struct requirements *alternatives;
    uint32_t alternative_count;
    const struct toleration *tolerations; /* those that the controller adds are among them */
    uint32_t toleration_count;
    const uint32_t *ports;
    uint32_t port_count;
};

struct node_side {
    uint32_t *node_claim, *claim_node;   /* into the snapshot; NONE */
    uint32_t *node_pool, *claim_pool;    /* whose label they carry; into the snapshot, or NONE */
    struct str_table node_ids, pool_ids; /* names to 1 + index into the snapshot */
    /* Those of the model, then others that daemons ask for. */
    const struct str *resources;
    uint32_t resource_count;
    const struct daemon *daemons; /* by namespace and name of their sets */
    uint32_t daemon_count;
    const uint32_t *pod_daemon; /* per pod: whose it is, or NONE */
    struct home *homes;         /* the model's */
    const struct requirements *home_labels;
};

static inline int64_t add_saturating(int64_t a, int64_t b)
{
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return b > 0 ? INT64_MAX : INT64_MIN;
    return sum;
}
static inline int64_t subtract_saturating(int64_t a, int64_t b)
{
    int64_t difference;
    if (__builtin_sub_overflow(a, b, &difference))
        return b > 0 ? INT64_MIN : INT64_MAX;
    return difference;
}

/* --- model_nodes.c --- */

void node_side_init(struct compile *c);
void node_side_done(struct compile *c);

/* Has it joined, and has everything on it that it was launched with? Without a claim it has. */
bool node_is_registered(const struct compile *c, uint32_t node);
bool node_is_initialised(const struct compile *c, uint32_t node);

/* Thousandths, one per name. Capacity is for limits: where it is not known, the most that it can be.
 * Allocatable is for pods: the least. */
void node_capacity(struct compile *c, uint32_t node, const struct str *names, uint32_t count,
                   int64_t *out);
void claim_capacity(struct compile *c, uint32_t claim, const struct str *names, uint32_t count,
                    int64_t *out);
void node_allocatable(struct compile *c, uint32_t node, const struct str *names, uint32_t count,
                      int64_t *out);
void claim_allocatable(struct compile *c, uint32_t claim, const struct str *names, uint32_t count,
                       int64_t *out);

/* As requirements: one value each, but for what is not decided of a claim on its way. */
struct requirements node_labels(struct compile *c, uint32_t node);
struct requirements claim_labels(struct compile *c, uint32_t claim);

/* --- model_daemons.c --- */

void daemons_collect(struct compile *c);
/* Would it, or might it, be on a node with these labels and taints? */
bool daemon_runs_on(const struct daemon *d, const struct requirements *labels,
                    const struct taint *taints, uint32_t taint_count);
/* Fills in room, daemons and daemon_ports of a pool whose requirements are known. */
void daemons_of_pool(struct compile *c, struct pool *pool);

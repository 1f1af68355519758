/* control/cluster.h - what this process knows of the cluster: a copy of each kind it reads.
 *
 * An informer per kind, and on top of them this process's own writes that have not come back yet: a
 * reader gets the newer of the two, so a reconciler always sees what it wrote, without sleeping and
 * however late events are. Thread safe.
 */
#pragma once

#include "base/clock.h"
#include "store/informer.h"

struct cluster;

/* Look-ups by something other than the name. */
enum cluster_index {
    PODS_BY_NODE, /* value: name of the Node */
    PODS_UNBOUND, /* value: CLUSTER_UNBOUND; pods without a node that have not ended */
    NODES_BY_PROVIDER_ID,
    NODES_BY_POOL, /* value of the label karpenter.sh/nodepool */
    CLAIMS_BY_PROVIDER_ID,
    CLAIMS_BY_POOL,  /* value of the label karpenter.sh/nodepool; "" never matches */
    CLAIMS_BY_CLASS, /* "group/Kind/name" of the node class: cluster_class_key */
    POOLS_BY_CLASS,
    ATTACHMENTS_BY_NODE,
    CLUSTER_INDEX_COUNT
};
#define CLUSTER_UNBOUND STR("unbound")

struct cluster *cluster_new(const struct store *store, const struct clock *clock, uint64_t seed);
void cluster_free(struct cluster *cluster); /* NULL is fine */
KV_AUTO_TYPE(cluster, cluster_free)

/* Before the first pump. Called after the change can be read here, with no lock held. */
void cluster_on_change(struct cluster *cluster, const struct kind *kind, informer_handler_fn fn,
                       void *ctx);
size_t cluster_pump(struct cluster *cluster); /* simulations; returns how much changed */
int64_t cluster_due_ns(struct cluster *cluster);
void cluster_start(struct cluster *cluster); /* programs: a thread that pumps */
void cluster_stop(struct cluster *cluster);
bool cluster_synced(struct cluster *cluster);

/* One reference for the caller; NULL: there is none. `namespace_` is "" for cluster-scoped kinds. */
const struct object *cluster_get(struct cluster *cluster, const struct kind *kind,
                                 struct str namespace_, struct str name);
/* Sorted by namespace and name; object_list_done when finished with it. */
void cluster_list(struct cluster *cluster, const struct kind *kind, struct object_list *out);
void cluster_list_by(struct cluster *cluster, enum cluster_index index, struct str value,
                     struct object_list *out);
/* A number that changes whenever anything of that kind may have. */
uint64_t cluster_version(struct cluster *cluster, const struct kind *kind);

/* The store's answer to a write of ours. Until the informer has caught up with it, it is the truth. */
void cluster_assume(struct cluster *cluster, const struct object *written);
/* A deletion of ours: the object is gone (it had no finalizers). */
void cluster_assume_gone(struct cluster *cluster, const struct object *object);

struct node_class_ref;
/* "group/Kind/name", in the arena. */
struct str cluster_class_key(struct arena *arena, const struct node_class_ref *ref);
/* The node class a reference means; NULL: there is none, or not of a kind we know. */
const struct object *cluster_get_class(struct cluster *cluster, const struct node_class_ref *ref);

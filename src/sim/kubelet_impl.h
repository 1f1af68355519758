/* sim/kubelet_impl.h - what the files of the kubelets share. For kubelet*.c only.
 *
 * Informers say what changed; handlers only note whom to look at (a pod by setting its timer to now,
 * a node or a claim in a table), and the step then looks. So every write is made outside of the
 * informers, from what is true at that moment, and what it changes comes back as another change.
 */
#pragma once

#include "api/node.h"
#include "api/pod.h"
#include "api/storage.h"
#include "base/map.h"
#include "base/vec.h"
#include "sim/kubelet.h"
#include "sim/timers.h"
#include "store/informer.h"

#define TAINT_NOT_READY "node.kubernetes.io/not-ready"
#define TAINT_UNREACHABLE "node.kubernetes.io/unreachable"
#define TAINT_UNSCHEDULABLE "node.kubernetes.io/unschedulable"

/* A pod that is bound, and what it waits for. */
struct kept_pod {
    struct timer timer; /* when to look at it next */
    struct str key;     /* "namespace/name"; the table's copy */
    struct str namespace_, name;
    int64_t startable_ns; /* since when it could start; -1: it cannot */
    int64_t orphaned_ns;  /* since when its node is gone; -1: it is there */
    int64_t tainted_ns;   /* since when its node has a NoExecute taint; -1: it has none */
};

/* A node whose startup taints are about to go. */
struct starting_node {
    struct timer timer; /* not set: it is time */
    char *name;
};

struct kubelet {
    struct kubelet_options options;
    struct informer *pods, *nodes, *claims, *classes, *attachments, *events;
    struct str_table kept; /* struct kept_pod, by "namespace/name" */
    struct timers timers;
    struct str_table starting; /* struct starting_node, by name */
    struct timers node_timers;

    /* To be looked at. */
    struct str_table dirty_nodes;             /* names */
    VEC(const struct object *) ended_pods;    /* referenced: their volumes may be detached */
    VEC(const struct object *) template_pods; /* referenced: they bring templates of claims */
    VEC(const struct object *) gone_claims;   /* referenced */
    struct str_table dirty_claims;            /* "namespace/name" */
    struct str_table volume_waiters;          /* struct kept_pod, by key */
    bool classes_changed, detached;
    struct str_table attached; /* volume -> name of a node it is attached to, owned */
    int64_t events_due_ns;     /* when the next Event is too old; INT64_MAX: there is none */
};

static inline int64_t kubelet_now_ns(const struct kubelet *k)
{
    return clock_mono_ns(k->options.clock);
}
static inline int64_t kubelet_now_us(const struct kubelet *k)
{
    return clock_wall_us(k->options.clock);
}
/* That moment of the wall clock, on the other one. */
int64_t kubelet_mono_of(const struct kubelet *k, int64_t wall_us);
int64_t kubelet_later(int64_t from_ns, int64_t delay_ns); /* saturating */
void kubelet_pods_of(struct kubelet *k, struct str node, struct object_list *out);
bool kubelet_patch_status(struct kubelet *k, struct object_ref ref, struct str patch);
static inline struct object_ref object_ref_of(const struct object *o)
{
    return (struct object_ref){ o->kind, o->meta.namespace_, o->meta.name };
}

/* --- kubelet_pods.c --- */
void kubelet_on_pod(void *ctx, const struct object *maybe_old, const struct object *maybe_new);
/* Look at the pod in this step, if it is bound. */
void kubelet_look_soon(struct kubelet *k, const struct object *pod);
/* Do what is due for the pod, and set the timer to what is next. */
void kubelet_look_at_pod(struct kubelet *k, struct kept_pod *p);

/* --- kubelet_nodes.c --- */
void kubelet_on_node(void *ctx, const struct object *maybe_old, const struct object *maybe_new);
void kubelet_look_at_node(struct kubelet *k, struct str name);
void kubelet_nodes_due(struct kubelet *k); /* those whose time has come are to be looked at */
void kubelet_nodes_done(struct kubelet *k);
/* When the taints of the node drive the pod away (mono_ns); INT64_MAX: never. `tainted_ns` is since when
 * it has any; kept up to date. */
int64_t kubelet_eviction_ns(const struct kubelet *k, const struct node *node, const struct pod *pod,
                            int64_t *tainted_ns);

/* --- kubelet_volumes.c --- */
void kubelet_on_claim(void *ctx, const struct object *maybe_old, const struct object *maybe_new);
void kubelet_on_attachment(void *ctx, const struct object *maybe_old,
                           const struct object *maybe_new);
void kubelet_on_class(void *ctx, const struct object *maybe_old, const struct object *maybe_new);
/* Claims are bound and volumes attached, as far as they can be. True: all are. */
bool kubelet_volumes_ready(struct kubelet *k, const struct pod *pod, const struct node *node);
/* The volumes, claims and templates that were noted. False: there was nothing to do. */
bool kubelet_look_at_volumes(struct kubelet *k);

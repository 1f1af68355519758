/* store/embedded.h - the cluster's objects in memory, with the API server's semantics.
 *
 * What `karve simulate`, `karve controller --embedded` and every test of a controller run on. All
 * of it is a function of the calls, the clock and the seed: versions, uids, generated names and
 * the order of events are the same in every run.
 *
 * Where no other component runs beside it, the store plays the parts of the control plane that the
 * objects' meaning depends on. They are done when the call that caused them returns:
 *   - garbage collection by owner references: background, foreground and orphan;
 *   - deletion of a Namespace: its contents first;
 *   - the status of PodDisruptionBudgets, which evictions obey.
 * It does not play admission plugins (no tolerations, priorities or service accounts are added),
 * the kubelet (a pod that is bound stays until somebody deletes it with grace 0) or other
 * controllers.
 *
 * As in the API server: the status of a new object is dropped where the kind has a status
 * subresource, except for Nodes, which may bring one, and Pods, Namespaces and volumes, which
 * start in their first phase. Unlike it, every kind has a generation, managedFields are not kept,
 * and unknown fields are refused (as with fieldValidation=Strict), not dropped.
 */
#pragma once

#include "base/clock.h"
#include "store/store.h"

struct embedded;

struct embedded_options {
    const struct clock *clock;
    struct object_pool *pool; /* outlives the store and every object read from it */
    uint64_t seed;            /* of uids and generated names */
    uint32_t history_max;     /* events kept for watchers and pages; 0: EMBEDDED_HISTORY */
    uint32_t bookmark_every;  /* a watch with bookmarks gets one when this many events were not
                                 for it; 0: EMBEDDED_BOOKMARK_EVERY */
    bool auto_namespaces;     /* a namespace comes with its first object: offline manifests */
};

#define EMBEDDED_HISTORY 16384
#define EMBEDDED_BOOKMARK_EVERY 1000

/* Starts with the namespaces that every cluster has: default, kube-node-lease, kube-public and
 * kube-system. */
struct embedded *embedded_new(struct embedded_options opts);
void embedded_free(struct embedded *e); /* no watch is open any more */
KV_AUTO_TYPE(embedded, embedded_free)

const struct store *embedded_store(struct embedded *e);
/* The same store for somebody who only looks on, and cannot write: embedded_event_due_ns does not wait for its
 * watches, so a simulation goes on as if nobody looked. */
const struct store *embedded_onlooker(struct embedded *e);
uint64_t embedded_version(struct embedded *e); /* of the last write */

/* Give every watch that wants bookmarks one at the current version, unless it knows that already. */
void embedded_bookmark(struct embedded *e);

/* Collect what only a full look finds: objects whose owners were gone before they came. (The store
 * itself looks at an object when one of its owners goes.) */
void embedded_gc(struct embedded *e);

/* --- whole stores as text --- */

struct embedded_loaded {
    size_t object_count;
    size_t skipped_count; /* of kinds that karve does not read */
};

/* Take the objects of a YAML or JSON text as they are: with their uid, timestamps, generation and
 * status where they have them. Lists count as their items. A namespace that is there is replaced,
 * any other object that is there is ERR_EXISTS. Stops at the first error, keeping what it took. */
int embedded_load(struct embedded *e, struct str text, struct embedded_loaded *out,
                  struct err *err);

/* Every object as a YAML document that embedded_load takes back: namespaces, then by kind,
 * namespace and name. */
void embedded_dump(struct embedded *e, struct buf *out);

/* --- trouble on purpose --- */

enum embedded_verb {
    EMBEDDED_GET,
    EMBEDDED_LIST,
    EMBEDDED_WATCH,
    EMBEDDED_CREATE,
    EMBEDDED_PATCH,
    EMBEDDED_REMOVE,
    EMBEDDED_EVICT,
    EMBEDDED_BIND,
};

struct embedded_call {
    enum embedded_verb verb;
    const struct kind *kind;
    struct str namespace_, name; /* name is empty for lists, watches and creations */
};

/* Each may be NULL. They are called by whichever thread made the call, with no lock held (they may
 * use the store), except event_delay_ns, which is called under the store's lock. */
struct embedded_faults {
    /* The call fails with this kind and has no effect; ERR_NONE lets it through. */
    enum err_kind (*before)(void *ctx, const struct embedded_call *call);
    /* The call took effect, but its caller is told that it failed. */
    enum err_kind (*after)(void *ctx, const struct embedded_call *call);
    /* Asked for each event that is about to be delivered: true breaks the watch instead. */
    bool (*drop_watch)(void *ctx, const struct kind *kind);
    /* How much later than it happened an event reaches a watch: a pure function, asked again at
     * every look. Events never overtake each other. Nobody is woken when the time has come. */
    int64_t (*event_delay_ns)(void *ctx, const struct kind *kind, uint64_t version);
    void *ctx;
};

/* NULL: none. What `faults` points at is copied. */
void embedded_set_faults(struct embedded *e, const struct embedded_faults *faults);

/* The earliest moment (mono_ns) at which a delayed event becomes visible to a watch that would
 * have it now otherwise; INT64_MAX: none is held back. A simulator steps to it. */
int64_t embedded_event_due_ns(struct embedded *e);

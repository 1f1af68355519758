/* store/embedded_impl.h - what the files of the embedded store share. For embedded*.c only.
 *
 * One lock guards everything. A call takes it, changes entries through the three commits (add,
 * replace, remove), each of which is one version and one event in the log, and gives it back with
 * embedded_unlock, which first lets the garbage collector and the budgets react, then wakes the
 * readers with the lock released.
 */
#pragma once

#include "base/map.h"
#include "base/rng.h"
#include "base/vec.h"
#include "store/embedded.h"
#include "store/sorted.h"
#include "store/strategic.h"

#include <stdatomic.h>

#define AUTO_DOC __attribute__((cleanup(doc_done))) struct doc

struct watcher;

struct kind_state {
    const struct kind *kind;
    struct sorted entries; /* "namespace\0name" -> struct entry */
    VEC(struct watcher *) watchers;
    atomic_uint_fast64_t last; /* version of its newest event; may be read without the lock */
    uint64_t trimmed; /* version of its newest event that is no longer in the log; 0: none */
};

struct entry {
    struct kind_state *ks;
    struct str key;              /* "namespace\0name"; the map's copy */
    struct str namespace_, name; /* the parts of key */
    struct str text;             /* owned: compact JSON without the resourceVersion */
    const struct object *object; /* the same, decoded; carries the version */
};

struct log_event { /* event number v is in slot v % log_cap */
    struct kind_state *ks;
    const struct object *maybe_old; /* NULL: it was added */
    const struct object *object;    /* removed: its last state, at the version of the removal */
    bool removed;
    int64_t at_ns;
};

struct embedded {
    struct store port, onlooker;
    const struct clock *clock;
    struct object_pool *pool;
    uint32_t bookmark_every;
    bool auto_namespaces;

    pthread_mutex_t lock;    /* guards all below; nothing else is locked while it is held, but the
                                object pool */
    pthread_cond_t wake_end; /* a watcher's `waking` went to 0 */

    struct rng rng;
    atomic_uint_fast64_t version; /* of the last event; may be read without the lock */
    VEC(struct kind_state *) kinds;
    struct str_table uids;      /* uid -> struct entry */
    struct sorted pods_by_node; /* "node\0namespace\0name" -> struct entry */
    struct sorted dependents;   /* "owner's uid\0kind\0namespace\0name" -> struct entry */
    struct log_event *log;      /* a ring */
    uint32_t log_cap;

    VEC(struct watcher *) wakes; /* to be called when the lock is released */
    VEC(char *) collect;         /* uids of what the garbage collector is to look at */
    struct sorted budgets;       /* "namespace\0name" -> struct budget_state */
    VEC(struct budget_state *) budgets_stale;
    bool budgets_writing; /* the change of a PodDisruptionBudget is our own */

    struct embedded_faults faults;
};

/* --- embedded.c: the lock, the entries, the commits --- */

void embedded_lock(struct embedded *e);
void embedded_unlock(struct embedded *e);

struct kind_state *kind_state(struct embedded *e, const struct kind *kind);
struct entry *entry_find(struct embedded *e, struct object_ref ref); /* NULL if absent */
struct entry *entry_need(struct embedded *e, struct object_ref ref, struct err *err);
bool kind_is_custom(const struct kind *kind); /* not one that Kubernetes itself brings */

/* Each takes over `text` (from malloc) and the caller's only reference to `object`, which nobody
 * else has seen: the commit writes its version into it. */
struct entry *commit_add(struct embedded *e, struct kind_state *ks, struct str namespace_,
                         struct str name, struct str text, const struct object *object);
void commit_replace(struct embedded *e, struct entry *entry, struct str text,
                    const struct object *object);
void commit_remove(struct embedded *e, struct entry *entry); /* frees the entry */

/* --- embedded_read.c --- */

struct selection { /* which objects a list or a watch is about */
    struct arena arena;
    struct str namespace_; /* "": all */
    struct selector labels, fields;
};
int selection_init(struct selection *sel, struct kind_state *ks, struct str namespace_,
                   struct str label_selector, struct str field_selector, struct err *err);
void selection_done(struct selection *sel);
bool selection_has(const struct selection *sel, const struct object *object);

int embedded_list(struct embedded *e, struct kind_state *ks, const struct list_options *opts,
                  struct object_list *out, struct err *err);
void embedded_select(struct embedded *e, struct kind_state *ks, const struct selection *sel,
                     struct object_list *out);

/* --- embedded_watch.c --- */

int embedded_watch(struct embedded *e, struct kind_state *ks, const struct watch_options *opts,
                   bool onlooker, struct watch **out, struct err *err);
void watchers_notice(struct embedded *e, struct kind_state *ks); /* there is an event for them */
void watchers_wake(struct embedded *e);       /* called with the lock held; releases it meanwhile */
uint64_t log_first(const struct embedded *e); /* the oldest version whose event is kept */

/* --- embedded_write.c: creations and patches --- */

int embedded_create(struct embedded *e, struct kind_state *ks, struct str namespace_,
                    const json_val *root, bool as_is, const struct object **out, struct err *err);
int embedded_patch(struct embedded *e, struct object_ref ref, struct patch_options opts,
                   struct str patch, const struct object **out, struct err *err);

/* --- embedded_edit.c --- */

void json_set_time(struct json_build *b, json_mut *object, const char *key, int64_t us);
struct str buf_take_str(struct buf *b); /* the caller frees its bytes */

/* The store's own changes to an object: begin, change the tree, write (or drop). */
struct edit {
    struct doc doc; /* as it is */
    struct json_build b;
    json_mut *root; /* a copy to change */
    json_mut *meta; /* root.metadata */
};
void edit_begin(struct edit *edit, const struct entry *entry);
void edit_write(struct embedded *e, struct entry *entry, struct edit *edit); /* ends it, too */
/* The same, but an object being deleted goes when this left it without finalizers. */
void edit_write_or_finish(struct embedded *e, struct entry *entry, struct edit *edit);

void edit_set_strs(struct edit *edit, json_mut *object, const char *key, const struct str *items,
                   size_t count); /* an empty list is removed */
/* Set a condition of status.conditions; its transition time only moves when the status does. */
struct condition_change {
    const char *type, *status;
    const char *reason, *message; /* NULL: as they are */
    int64_t observed_generation;  /* 0: the kind's conditions have none */
};
void edit_set_condition(struct edit *edit, struct condition_change change, int64_t now_us);

/* Being deleted, and nothing holds it: it goes with this write. (Never a namespace: its contents
 * hold it, and the garbage collector sees to its end.) */
bool entry_is_finished(const struct entry *entry, const struct object *now);

/* --- embedded_rules.c: what a write may say --- */

/* The text may name another kind than the call does, or none; the name must be one. */
int rule_type(const struct kind *kind, const json_val *root, struct err *err);
int rule_name(const struct kind *kind, struct str name, struct err *err);

/* An update: refuse what contradicts the stored object; then put back, in `new_root` (the tree that
 * `read` was read from), what this update may not change. True: something was put back. */
int rule_update(const struct entry *entry, const json_val *old, const json_val *read,
                struct err *err);
bool rule_restore(const struct kind *kind, bool status, const json_val *old, const json_val *read,
                  struct json_build *b, json_mut *new_root);
bool json_same(const json_val *a, const json_val *b); /* null and absent are the same */
/* While an object is being deleted its finalizers only become fewer. */
int rule_finalizers(const struct object *old, const struct object *now, struct err *err);
/* No labels and an empty map of labels are the same object; the server writes the first. */
bool rule_drop_empty(const json_val *read, json_mut *meta);
/* Something outside metadata and status differs. */
bool rule_spec_changed(const json_val *old, const json_val *read);

/* --- embedded_delete.c --- */

int delete_preconditions(const struct entry *entry, const struct delete_options *opts,
                         struct err *err);
int entry_remove(struct embedded *e, struct entry *entry, const struct delete_options *opts,
                 struct err *err);

/* --- embedded_gc.c --- */

#define FINALIZER_FOREGROUND "foregroundDeletion"
#define FINALIZER_ORPHAN "orphan"

void gc_look_at(struct embedded *e, struct str uid); /* soon: before the lock is released */
void gc_removed(struct embedded *e, const struct entry *entry); /* it is out of all indexes */
void gc_changed(struct embedded *e, const struct object *maybe_old, const struct entry *entry);
bool gc_run(struct embedded *e); /* false: there was nothing to do */

/* --- embedded_pods.c --- */

/* Almost nothing in the spec of a pod changes once it is made. `read` has its defaults. */
int rule_pod_spec(const struct object *object, const json_val *old, const json_val *read,
                  struct err *err);
struct pod_spec;
const char *pod_qos_class(const struct pod_spec *spec);
int embedded_evict(struct embedded *e, struct str namespace_, struct str pod,
                   const struct delete_options *opts, struct err *err);
int embedded_bind(struct embedded *e, struct str namespace_, struct str pod, struct str node,
                  struct err *err);

/* --- embedded_budget.c: playing the disruption controller --- */

struct budget_state {
    struct entry *entry; /* of the PodDisruptionBudget */
    uint32_t pod_count, healthy_count;
    /* Of its pods: "apiVersion\0kind\0name\0uid" -> how many, as a pointer. */
    struct str_table controllers;
    bool stale; /* in budgets_stale */
};
bool budget_has(const struct budget_state *budget, const struct object *pod);
void budget_changed(struct embedded *e, const struct object *maybe_old,
                    const struct object *maybe_new, struct entry *entry);
bool budgets_run(struct embedded *e); /* false: there was nothing to do */
void budget_free(struct budget_state *budget);

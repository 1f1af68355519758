/* store/store.h - the port through which the cluster's objects are read, watched and written.
 *
 * Two implementations: embedded (store/embedded.h, in memory, with the API server's semantics) and
 * kube (a real API server). Both pass the same conformance tests. Reads give typed, counted,
 * immutable objects; writes take JSON texts: whole objects to create, patches afterwards, so
 * that fields which karve does not know survive.
 *
 * Errors: ERR_NOT_FOUND 404, ERR_EXISTS 409 on create, ERR_CONFLICT 409 (stale resourceVersion or
 * a failed precondition), ERR_GONE 410, ERR_INVALID 400/422, ERR_THROTTLED 429 (an eviction that
 * a budget refuses, too), ERR_DENIED 403, ERR_UNAVAILABLE when the server cannot be reached.
 *
 * All calls are thread safe and may block the caller (never with the embedded store).
 */
#pragma once

#include "api/object.h"
#include "codec/selector.h"

struct object_ref { /* which object; namespace_ is "" for cluster-scoped kinds */
    const struct kind *kind;
    struct str namespace_, name;
};

struct list_options {
    struct str namespace_;     /* empty: all */
    struct str label_selector; /* empty: everything */
    struct str field_selector;
    uint32_t limit;       /* 0: all at once */
    struct str continue_; /* from the previous page's result */
    /* An object that is there and cannot be read (of a version of its kind that we do not know, say)
     * is left out and named in `unreadable`. Otherwise the list is ERR_INVALID: who takes what is
     * absent for gone must not be told less than there is. */
    bool skip_unreadable;
};

struct object_name {
    char *namespace_, *name;
};

struct object_list {
    /* Each holds a reference. In the same order every time: by namespace, then name, except that a
     * real server compares "namespace/name", where "a-b/x" comes before "a/x". */
    const struct object **items;
    size_t count;
    uint64_t resource_version; /* watch from here */
    char *continue_;           /* NULL: no more pages */
    struct object_name *unreadable;
    size_t unreadable_count;
};
void object_list_done(struct object_list *list);

enum event_type { EVENT_ADDED, EVENT_MODIFIED, EVENT_DELETED, EVENT_BOOKMARK };

struct watch_event {
    enum event_type type;
    /* One reference for the reader; NULL for a bookmark. Deleted: the last state. */
    const struct object *object;
    uint64_t resource_version;
};

struct watch_options {
    struct str namespace_, label_selector, field_selector;
    uint64_t resource_version; /* events after this; 0: start with everything as ADDED */
    bool bookmarks;
    /* Called when events may be waiting, from any thread, with no lock held that a reader needs:
     * once after the reader found nothing, not for every event. It only tells somebody to read; it
     * must not close the watch. May be NULL: the reader polls. */
    void (*wake)(void *ctx);
    void *wake_ctx;
};

/* A watch is opened after a version that a list, a watch or an object said. One that is older than
 * what the store remembers is ERR_GONE, at the opening or at the first read. So is, in the embedded
 * store, one that is newer than its last write: the store that said it is not this one, and only a
 * list can tell what is true now. (A real server waits for such a version, in silence or until it
 * answers with an error: either is ERR_GONE after a while.)
 *
 * An open watch. Read it once it is open: what is there already wakes nobody. `watch_next` returns 1 with an event, 0 when none is waiting, or negative:
 * ERR_GONE (too old: list again), ERR_UNAVAILABLE (the stream broke: open again from the last
 * version). With a label selector an object that stops matching arrives as DELETED. */
struct watch {
    int (*next)(struct watch *watch, struct watch_event *out, struct err *err);
    /* True: `next` would say that nothing is waiting. Costs less than asking it. May be NULL. */
    bool (*quiet)(struct watch *watch);
    /* Frees it. Waits for a wake call that is under way; none follows. */
    void (*close)(struct watch *watch);
};
int watch_next(struct watch *watch, struct watch_event *out, struct err *err);
bool watch_quiet(struct watch *watch); /* false: perhaps an event is waiting */
void watch_close(struct watch *watch); /* NULL is fine */

enum patch_type { PATCH_MERGE, PATCH_JSON, PATCH_STRATEGIC };

struct patch_options {
    enum patch_type type;
    bool status;               /* the status subresource */
    uint64_t resource_version; /* 0: whatever is there; else ERR_CONFLICT unless it is still this */
};

struct delete_options {
    struct str uid;            /* precondition; empty: none */
    uint64_t resource_version; /* precondition; 0: none */
    struct maybe_int grace_s;  /* pods: unset takes the pod's own */
    enum { PROPAGATE_BACKGROUND, PROPAGATE_ORPHAN, PROPAGATE_FOREGROUND } propagation;
};

struct store_ops {
    int (*get)(void *ctx, struct object_ref ref, const struct object **out, struct err *err);
    int (*list)(void *ctx, const struct kind *kind, const struct list_options *opts,
                struct object_list *out, struct err *err);
    int (*watch)(void *ctx, const struct kind *kind, const struct watch_options *opts,
                 struct watch **out, struct err *err);
    /* Of these two the result may be unwanted: it is not even looked at then. */
    int (*create)(void *ctx, const struct kind *kind, struct str namespace_, struct str json,
                  const struct object **maybe_out, struct err *err);
    int (*patch)(void *ctx, struct object_ref ref, struct patch_options opts, struct str patch,
                 const struct object **maybe_out, struct err *err);
    int (*remove)(void *ctx, struct object_ref ref, const struct delete_options *opts,
                  struct err *err);
    int (*evict)(void *ctx, struct str namespace_, struct str pod,
                 const struct delete_options *opts, struct err *err);
    int (*bind)(void *ctx, struct str namespace_, struct str pod, struct str node, struct err *err);
    /* May be NULL: this store does not show texts. */
    int (*get_json)(void *ctx, struct object_ref ref, struct buf *out, struct err *err);
    /* May be NULL: that cannot be told without asking somebody. */
    uint64_t (*version)(void *ctx);
    /* May be NULL: its objects have no such subresources. */
    int (*post)(void *ctx, struct object_ref ref, const char *subresource, struct str json,
                struct buf *out, struct err *err);
};

struct store {
    const struct store_ops *ops;
    void *ctx;
};

/* Thin calls through the port. `out` may be NULL where the caller does not want the result; else it
 * gets one reference. `opts` may be NULL for the defaults. */
int store_get(const struct store *s, struct object_ref ref, const struct object **out,
              struct err *err);
/* The whole object as JSON, with the fields that karve does not keep (commands, probes): for those
 * who make other objects from its template. Added to `out`. */
int store_get_json(const struct store *s, struct object_ref ref, struct buf *out, struct err *err);
/* Ask a subresource that answers with something other than the object: the "token" of a
 * ServiceAccount, whose answer is a TokenRequest. The answer's JSON is added to `out`. */
int store_post(const struct store *s, struct object_ref ref, const char *subresource,
               struct str json, struct buf *out, struct err *err);
/* Of the last write, whatever its kind; 0: this store cannot tell. While it stays the same nothing has
 * happened that a watch would show. */
uint64_t store_version(const struct store *s);
int store_list(const struct store *s, const struct kind *kind, const struct list_options *opts,
               struct object_list *out, struct err *err);
int store_watch(const struct store *s, const struct kind *kind, const struct watch_options *opts,
                struct watch **out, struct err *err);
int store_create(const struct store *s, const struct kind *kind, struct str namespace_,
                 struct str json, const struct object **out, struct err *err);
int store_patch(const struct store *s, struct object_ref ref, struct patch_options opts,
                struct str patch, const struct object **out, struct err *err);
int store_remove(const struct store *s, struct object_ref ref, const struct delete_options *opts,
                 struct err *err);
int store_evict(const struct store *s, struct str namespace_, struct str pod,
                const struct delete_options *opts, struct err *err);
int store_bind(const struct store *s, struct str namespace_, struct str pod, struct str node,
               struct err *err);

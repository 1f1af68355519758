/* node/pleg_records.h - what the PLEG knew of each pod, and what a new listing changes. Pure.
 *
 * Private to the PLEG. A record keeps the newest listing of its pod whose changes have been told,
 * in one block of memory that is replaced only when something changed: a relist that finds all as
 * it was allocates nothing here.
 */
#pragma once

#include "base/vec.h"
#include "node/events.h"
#include "node/runtime.h"

/* --- what was seen --- */

/* A copy of a listed pod, strings and all, in one block. The caller frees. */
struct runtime_pod *seen_pod_new(const struct runtime_pod *listed);

/* Is every sandbox and container in the same state, and no other there? A container that was
 * created and one whose state the runtime has lost count as the same: neither runs. NULL is a pod
 * that is not there. */
bool seen_same(const struct runtime_pod *maybe_old, const struct runtime_pod *maybe_new);

/* --- what changed --- */

struct change {
    enum pod_event_type type;
    bool sandbox;
    struct str id, name; /* borrowed from the listings */
    int64_t created_ns;
};

/* Ends before starts, so that a restart reads as one; within the ends containers before sandboxes,
 * within the starts sandboxes before containers; then oldest first. */
struct changes {
    struct change *items;
    uint32_t count;
    /* Something is different: more than the items tell when a container was created, or its state
     * lost, of which nobody is told. */
    bool any;
};
struct changes changes_between(struct arena *arena, const struct runtime_pod *maybe_old,
                               const struct runtime_pod *maybe_new);

/* The event for people to read: names of the pod and container, and for an end that the status
 * (NULL: none) knows of, how it ended. */
struct pod_event change_event(const struct runtime_pod *pod, const struct change *change,
                              const struct runtime_status *maybe_status);
struct pod_event sync_event(const struct runtime_pod *pod);

/* --- records --- */

struct inspection;

struct record {
    struct str uid;                          /* owned */
    struct runtime_pod *maybe_seen;          /* owned; NULL: nothing was told of the pod yet */
    const struct runtime_status *maybe_good; /* the last good status; a reference */
    struct inspection *maybe_inspection;     /* the one under way; belongs to pleg_inspect.c */
    int64_t listed_ns;      /* of the newest listing that showed the pod; but see pleg->listed_ns */
    int64_t second_look_ns; /* it is inspected again at a listing from then on; 0: no need */
    bool failed;            /* its cache entry says that it could not be inspected */
    bool inspect_again;     /* at the next listing, even if that shows nothing new */
};

struct records {
    VEC(struct record *) all; /* sorted by uid, as listings are */
};

void records_done(struct records *records);
/* Where the uid is, or (false) where it belongs. */
bool records_find(const struct records *records, struct str uid, size_t *at);
struct record *records_get(const struct records *records, struct str uid); /* or NULL */
struct record *records_insert(struct records *records, size_t at, struct str uid);
void records_remove(struct records *records, size_t at);
/* The pod of a sandbox or container that was seen; NULL: of none. */
struct record *records_by_id(const struct records *records, struct str id);

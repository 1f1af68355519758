/* store/informer.h - a local copy of one kind's objects, kept current by a watch.
 *
 * Works on any store. Lists once, then follows the watch; when the watch breaks it goes on from the
 * last version, when that is no longer kept (ERR_GONE) it lists again and compares, so handlers see
 * each difference once: no change is lost and none is repeated. (Changes that undo each other while
 * the watch was broken are not seen: handlers are told of states, not of history.)
 *
 * Versions are compared within one life of a store. When the store behind it is replaced by an
 * earlier state of itself (an embedded store that was loaded again, a server restored from a
 * backup), an informer whose version is newer than the store's is told ERR_GONE and lists again; one
 * that the new store has overtaken cannot notice, so informers are made anew with their store.
 *
 * Two ways to run it: call informer_pump whenever something may have happened (a simulation, on one
 * thread), or add it to an informer_set, whose one thread pumps many informers as they are woken.
 * Reading is safe from any thread at any time.
 */
#pragma once

#include "base/clock.h"
#include "store/store.h"

struct informer;

struct informer_options {
    const struct store *store; /* outlives the informer, as does the clock */
    const struct kind *kind;
    const struct clock *clock;
    struct str namespace_, label_selector, field_selector; /* copied; empty: everything */
    uint32_t page_max; /* objects per list call; 0: INFORMER_PAGE */
    uint64_t seed;     /* of the jitter in its back-off */
};

#define INFORMER_PAGE 500

struct informer *informer_new(struct informer_options opts);
void informer_free(struct informer *inf); /* its set, if any, is freed first */
KV_AUTO_TYPE(informer, informer_free)

/* --- before the first pump --- */

/* Called after the change is in the cache, on the pumping thread, with no lock that readers need.
 * Old is NULL for an object that is new to the cache, new is NULL for one that left it. An object
 * that was deleted and made again under its name is two calls. A handler must not pump or wait. */
typedef void (*informer_handler_fn)(void *ctx, const struct object *maybe_old,
                                    const struct object *maybe_new);
void informer_on_change(struct informer *inf, informer_handler_fn fn, void *ctx);

/* An index by what `fn` says of an object (a pod's node); empty: the object is not in it. The
 * text may point into the object. Returns the index's number, from 0. */
typedef struct str (*informer_index_fn)(const struct object *object);
uint32_t informer_add_index(struct informer *inf, informer_index_fn fn);

/* --- running --- */

/* Take in what is there, without waiting for more. Returns how many objects changed. */
size_t informer_pump(struct informer *inf);
/* When to pump again although nothing woke us: to try again after a failure. INT64_MAX: never. */
int64_t informer_due_ns(struct informer *inf);
/* The failure that it is recovering from; false: none. */
bool informer_trouble(struct informer *inf, struct err *out);

/* --- reading --- */

bool informer_synced(struct informer *inf); /* it has listed at least once */
uint64_t informer_version(struct informer *inf);
size_t informer_count(struct informer *inf);
/* One reference for the caller; NULL: not there. */
const struct object *informer_get(struct informer *inf, struct str namespace_, struct str name);
/* All of them (of one namespace, unless it is empty), sorted by namespace and name. */
void informer_list(struct informer *inf, struct str namespace_, struct object_list *out);
void informer_list_index(struct informer *inf, uint32_t index, struct str value,
                         struct object_list *out);

/* Wait until the cache has seen `version` (of an object of this kind that the informer selects: a
 * write of the caller's own) or mono_ns reaches `until_ns`: then ERR_UNAVAILABLE. An informer that
 * is in no set is pumped instead, and what it does not have then is ERR_UNAVAILABLE at once. */
int informer_wait_version(struct informer *inf, uint64_t version, int64_t until_ns,
                          struct err *err);

/* --- many on one thread --- */

struct informer_set;
struct informer_set *informer_set_new(const struct clock *clock);
void informer_set_add(struct informer_set *set, struct informer *inf); /* before the start */
void informer_set_start(struct informer_set *set);
/* Ends the thread and closes the watches; waiters get ERR_CANCELLED. Its informers can still be
 * read, and stay as they are: pumping one does nothing. */
void informer_set_free(struct informer_set *set);
KV_AUTO_TYPE(informer_set, informer_set_free)

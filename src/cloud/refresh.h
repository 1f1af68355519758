/* cloud/refresh.h - data that a provider fetches again every twelve hours.
 *
 * Instance type info, zone offerings, on-demand and spot prices. Each source fetches, keeps what it
 * got, and says a digest of it; when the digest differs from the last one, its counter is
 * bumped. A source that fails keeps its old data and is tried again with back-off: 5 s, doubling up
 * to 10 min. The ends of marks (cloud/unavailable.h, cloud/reservations.h) are delivered as well,
 * at their moment and without polling.
 *
 * `refresh_step` does what is due and says when to call again: simulations call it in virtual time.
 * Programs let `refresh_start` do so on two threads, one for the sources and one for the marks, so
 * that a fetch which takes a minute does not keep marks from ending on time.
 */
#pragma once

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "cloud/generation.h"

struct unavailable;
struct reservations;

#define REFRESH_INTERVAL_NS ((int64_t)12 * 3600 * 1000000000)
#define REFRESH_RETRY_MIN_NS ((int64_t)5 * 1000000000)
#define REFRESH_RETRY_MAX_NS ((int64_t)10 * 60 * 1000000000)

struct refresh_source {
    enum generation_member member;
    /* Fetch, make the new data visible, and say its digest. May block. One at a time for all sources. */
    int (*fetch)(void *ctx, uint64_t *digest, struct err *err);
    void *ctx;
};

struct refresh;

struct refresh_options {
    const struct clock *clock;
    struct generation_counters *counters;
    const struct refresh_source *sources; /* copied */
    uint32_t source_count;
    struct unavailable *maybe_unavailable;   /* outlives the refresh, which is its on_earlier */
    struct reservations *maybe_reservations; /* likewise */
    int64_t interval_ns;                     /* 0: REFRESH_INTERVAL_NS */
    struct log *maybe_log;                   /* where a source's failure is told */
    /* After a refresh changed something, or marks have ended; may be NULL. From the two threads,
     * with no lock held. */
    void (*changed)(void *ctx);
    void *changed_ctx;
};

struct refresh *refresh_new(struct refresh_options options);
/* Stops the threads; a fetch that is under way is waited for. NULL is fine. */
void refresh_free(struct refresh *r);
KV_AUTO_TYPE(refresh, refresh_free)

/* Everything once, at the start, before anybody asks: fails at the first source that does. The
 * others are fetched all the same. */
int refresh_all(struct refresh *r, struct err *err);
/* Do what is due now; the next moment (mono_ns) something is, INT64_MAX if never. A source that
 * was never fetched is due. */
int64_t refresh_step(struct refresh *r);
/* Look again now: called by itself when a mark is set that ends earlier than what is waited for. */
void refresh_wake(struct refresh *r);
/* ERR_UNAVAILABLE: the system gives no thread; free the refresh then. */
int refresh_start(struct refresh *r, struct err *err);

/* sim/record.h - what is remembered of a run: samples over time, what happened, and how long pods
 * waited. Reports, tables and JSON are made from it.
 *
 * It has informers of its own on the world's store, and keeps its counts as things change: a sample
 * costs as much as there are instance types and NodePools, not pods.
 */
#pragma once

#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"

struct world_parts;

struct record_pool { /* of a NodePool, at a sample */
    uint32_t nodes, claims;
    uint8_t health; /* enum condition_status of NodeRegistrationHealthy; CONDITION_UNSET: no pool */
};

struct record_sample {
    int64_t at_ns;
    uint32_t pods_pending, pods_starting, pods_running, pods_ended;
    uint32_t nodes, nodes_ready, claims;
    double dollars_hour, dollars;
    uint64_t launches, launch_failures, cache_hits, cache_misses;
    const uint32_t *types; /* nodes per entry of record.types (as many as there were then) */
    uint32_t type_count;
    const struct record_pool *pools; /* per entry of record.pools */
    uint32_t pool_count;
};

enum record_kind {
    RECORD_ACTION, /* of the timeline, or of chaos */
    RECORD_EVENT,  /* an Event object that is worth a line */
    RECORD_CRASH,
    RECORD_HEALTH, /* NodeRegistrationHealthy of a pool changed */
};
#define RECORD_KIND_COUNT 4
extern const char *const record_kind_names[RECORD_KIND_COUNT]; /* "action", "event", ... */

struct record_event {
    int64_t at_ns;
    enum record_kind kind;
    struct str what; /* one line, without control characters */
    uint32_t count;  /* how often within RECORD_FOLD_NS; `what` is the first of them */
    bool warning;
};
/* Events that differ only in whom they are about are one line, for so long. */
#define RECORD_FOLD_NS ((int64_t)5 * 60 * 1000000000)

struct record_reason { /* Warning events by their reason */
    struct str reason;
    uint64_t count;
};

struct record_totals { /* as of the last sample */
    uint64_t launches, launch_failures, refusals, joined, lost, terminated;
    uint64_t reconciles, reconcile_failures, passes, claims_created; /* over all lives of it */
    uint64_t pods_bound;
    uint32_t steps, crashes;
};

struct record_limits { /* of what is kept; 0: everything */
    uint32_t events, waits;
};

struct record {
    struct arena arena, event_arena;
    struct record_limits limits; /* for a program that runs for ever: the newest are kept */
    VEC(struct record_sample) samples;
    VEC(struct record_event) events;
    uint64_t events_forgotten;         /* so many came before the first that is kept */
    VEC(struct record_reason) reasons; /* in the order they were first seen */
    VEC(struct str) types, pools;      /* names, likewise */
    VEC(int64_t) waits_ns; /* per pod that was bound, DaemonSets' apart: from its creation */
    struct record_totals totals;
    struct record_inner *inner; /* NULL: closed, or made by hand */
};

void record_init(struct record *r);
/* Let go of the world: before its store goes. What was recorded stays. */
void record_close(struct record *r);
void record_done(struct record *r);

/* Called by the world. `record_look` at the start and at every step: it sees pods being bound, events,
 * conditions. `record_sample` from time to time, and at the end. */
void record_look(struct record *r, const struct world_parts *world);
void record_sample(struct record *r, const struct world_parts *world);
/* How things are, without keeping it; what it points at lives in the arena. */
struct record_sample record_now(struct record *r, const struct world_parts *world,
                                struct arena *arena);
void record_action(struct record *r, int64_t at_ns, struct str what);
void record_crash(struct record *r, int64_t at_ns, struct str what);
/* For tests and others who know of something: `fold_key` is what makes it the same, "" for nothing. */
void record_add(struct record *r, const struct record_event *event, struct str fold_key);

/* The wait that a share of pods stayed below: record_wait_ns(r, 0.99). 0: no pod was bound. */
int64_t record_wait_ns(const struct record *r, double share);
const struct record_sample *record_last(const struct record *r); /* NULL: there is no sample */
/* Most nodes of that type that a sample has. */
uint32_t record_type_peak(const struct record *r, uint32_t type);

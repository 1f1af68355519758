/* control/health_record.h - what is remembered of one NodePool's registration health, and how that
 * follows from what is read: the decisions of control/health.h, without its locks and writes.
 *
 * A record is plain data. It is a cache: a process that starts takes up the condition as it finds it
 * and builds a record that would give it.
 */
#pragma once

#include "api/nodeclaim.h"
#include "api/nodepool.h"
#include "control/health_policy.h"

struct health_record {
    bool known;                /* false: nothing is; all below is zero */
    enum health_policy policy; /* that `state` was made with */
    struct health_state state;
    int64_t counts_from_us; /* results of older claims are about another spec */
    int64_t idle_since_ns;  /* the last result, or the last time one was forgotten */
    uint64_t class_hash;    /* of the node class's uid: one made anew is another; 0: none seen */
    uint32_t attempts;      /* while False: rounds of failures, for the cooldown */
    int64_t waiting_since_us;
};

struct health_view { /* what a decision is made from */
    const struct nodepool *pool;
    const struct object *maybe_class; /* NULL: there is none */
    struct health_settings settings;  /* sane ones */
    int64_t idle_max_ns;              /* two registration timeouts */
    int64_t cooldown_ns;              /* first wait; 0: none */
    int64_t now_us, now_ns;
};

const struct condition *health_condition(const struct nodepool *pool); /* NULL: not there yet */

/* Take up the condition if it is not what the record says, start anew if the pool or its class has
 * changed, forget what is too old. True: started anew, so the condition has to be Unknown, and of
 * this generation, before anything else is set. */
bool health_record_catch_up(struct health_record *r, const struct health_view *v);
/* After health_record_catch_up: does the claim's result say anything about the pool as it is? */
bool health_record_counts(const struct health_record *r, const struct health_view *v,
                          const struct nodeclaim *claim);
void health_record_result(struct health_record *r, const struct health_view *v,
                          const struct nodeclaim *claim, bool success);
/* After how long the condition may change by age alone; INT64_MAX: never. */
int64_t health_record_age_due_ns(const struct health_record *r, const struct health_view *v);

#define COOLDOWN_MAX_NS ((int64_t)60 * 60 * 1000000000)
/* When (wall clock) a pool that is False may be tried again. */
int64_t health_record_retry_us(const struct health_record *r, const struct health_view *v);

/* Why the claim failed, in its own words: reason and message of the condition. */
void health_failure_words(const struct nodeclaim *claim, int64_t now_us, struct arena *arena,
                          struct str *reason, struct str *message);

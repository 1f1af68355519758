/* base/queue.h - the work queue: keys to reconcile, each once, never twice at the same time.
 *
 * A key is in at most one of four states:
 *
 *     absent --add--> ready --take--> running --finish--> absent, ready or delayed
 *        \--add_after--> delayed --due, or add--> ready
 *
 * Adding a key that is ready changes nothing. Adding one that is delayed keeps the earlier of the
 * two times. Adding one that is running makes it run once more afterwards, however often it is
 * added meanwhile: what the running pass may have missed, the next one sees.
 *
 * A running key ends with an outcome: done forgets its failures; requeue does, and comes back
 * later; retry counts a failure and comes back after min(backoff_max, backoff_min * 2^failures), of
 * which a random share of up to one half is taken off. The share depends on the seed, the key and
 * the number of failures alone: not on which thread failed first.
 *
 * Order: ready keys are handed out first come, first served; delayed keys come due in the order of
 * their times, and of being added where times are equal.
 *
 * Full: with `keys_max` keys inside, a new key is refused, counted in the statistics, and the
 * caller is told; keys inside are never refused, so a retry cannot get lost. A caller that is
 * refused must see to it that the key is added later, for example by listing again.
 *
 * Keys are copied. All calls are thread safe. Time is the clock port's: in virtual time a
 * single-threaded simulator takes keys with queue_try_take and steps to queue_next_due.
 */
#pragma once

#include "base/clock.h"
#include "base/str.h"

#define QUEUE_KEYS_MAX 1000000 /* several times the objects of the largest clusters */
#define QUEUE_BACKOFF_MIN_NS ((int64_t)100 * 1000000)
#define QUEUE_BACKOFF_MAX_NS ((int64_t)60 * 1000000000)

struct queue_options {
    const struct clock *clock; /* borrowed */
    uint64_t seed;             /* of the back-off's randomness */
    uint32_t keys_max;         /* 0: QUEUE_KEYS_MAX */
    int64_t backoff_min_ns;    /* 0: QUEUE_BACKOFF_MIN_NS */
    int64_t backoff_max_ns;    /* 0: QUEUE_BACKOFF_MAX_NS */
};

struct queue;
struct queue *queue_new(struct queue_options opts);
void queue_free(struct queue *q); /* nothing may be running or waiting in it; NULL is fine */
KV_AUTO_TYPE(queue, queue_free)

/* False: the queue is full or shut down, and the key is not in it. */
bool queue_add(struct queue *q, struct str key);
bool queue_add_after(struct queue *q, struct str key, int64_t delay_ns);

/* --- for workers --- */

struct outcome {
    enum { OUTCOME_DONE, OUTCOME_REQUEUE, OUTCOME_RETRY } kind;
    int64_t after_ns; /* of a requeue */
};

static inline struct outcome outcome_done(void)
{
    return (struct outcome){ .kind = OUTCOME_DONE };
}
static inline struct outcome outcome_requeue(int64_t after_ns)
{
    return (struct outcome){ .kind = OUTCOME_REQUEUE, .after_ns = after_ns };
}
static inline struct outcome outcome_retry(void)
{
    return (struct outcome){ .kind = OUTCOME_RETRY };
}

/* The next ready key, which runs from now until queue_finish with the same key; `key` is valid
 * as long. queue_take waits for one; false means shut down, and the worker should return.
 * queue_try_take does not wait; false means nothing is ready. */
bool queue_take(struct queue *q, struct str *key);
bool queue_try_take(struct queue *q, struct str *key);
void queue_finish(struct queue *q, struct str key, struct outcome outcome);

/* Reset the failures of a key whose trouble is known to be over: its next retry starts small. */
void queue_forget(struct queue *q, struct str key);

/* Take a key if one is ready, reconcile it, finish it. False: none is ready. What a simulator
 * calls, and what the workers of base/workers.h do. */
typedef struct outcome reconcile_fn(void *ctx, struct str key);
bool queue_run_one(struct queue *q, reconcile_fn *reconcile, void *ctx);

/* When queue_try_take will have a key: now or earlier, a later time, or INT64_MAX for never. */
int64_t queue_next_due(struct queue *q);

/* From now on nothing can be added, and delayed keys, requeues and retries are dropped. DRAIN still
 * hands out the keys that are ready, and once more those that were added again while running; DROP
 * hands out nothing. Workers that wait return. A second call may turn DRAIN into DROP. */
enum queue_shutdown { QUEUE_DRAIN, QUEUE_DROP };
void queue_shutdown(struct queue *q, enum queue_shutdown how);

struct queue_stats {
    uint64_t add_count;    /* calls that put a key in or brought it forward */
    uint64_t merge_count;  /* calls that found it already there, early enough */
    uint64_t refuse_count; /* calls when full or shut down */
    uint64_t take_count, retry_count;
    uint32_t ready_count, delayed_count, running_count; /* now */
    int64_t oldest_ready_ns;    /* for how long the oldest ready key has waited */
    int64_t longest_running_ns; /* for how long the key taken first has been running */
};
struct queue_stats queue_stats(struct queue *q);

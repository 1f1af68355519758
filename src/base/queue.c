/* One item per key, found through a table; the item is in the list of ready keys, in the heap of
 * delayed ones or in the list of running ones. One mutex guards it all; no call does more under it
 * than move an item between these.
 *
 * Invariants:
 *  1. An item is in exactly one of ready, delayed and running, as its state says.
 *  2. No delayed item is due: every call first moves those that are to the ready list. So the ready
 *     list is sorted by the time since which its items are ready, however rarely anybody looks.
 *  3. If a worker waits while there is something to do or to wait for, one of them has been or will
 *     be woken for it: whoever makes a key ready, or delays one that is now the first, wakes one
 *     worker; and whoever takes a key wakes another when more is left. The last matters because a
 *     worker only waits for the earliest time that it has seen.
 */
#include "base/queue.h"

#include "base/map.h"
#include "base/rng.h"
#include "base/vec.h"

#define NEVER INT64_MAX

struct item {
    enum { ITEM_READY, ITEM_DELAYED, ITEM_RUNNING } state;
    uint32_t failures;
    struct item *prev, *next; /* in ready or running */
    int64_t since_ns;         /* ready or running since */
    int64_t due_ns;           /* delayed until */
    uint64_t sequence;        /* of being delayed: breaks ties of due_ns */
    size_t heap_ix;
    int64_t again_ns; /* running: run once more from then on; NEVER: no */
    struct str key;
    char text[];
};

struct item_list {
    struct item *first, *last;
    uint32_t count;
};

struct queue {
    struct queue_options opts;
    pthread_mutex_t lock; /* guards all below; no other lock is taken inside but the clock's */
    pthread_cond_t wake;
    uint32_t waiting_count;
    enum { QUEUE_OPEN, QUEUE_DRAINING, QUEUE_DROPPING } phase;
    struct str_table items;
    struct item_list ready, running;
    VEC(struct item *) delayed; /* a binary heap: the first due is at 0 */
    uint64_t sequence_next;
    struct queue_stats stats; /* the counters only */
};

/* --- lists and the heap --- */

static void list_append(struct item_list *list, struct item *item)
{
    item->prev = list->last;
    item->next = NULL;
    if (list->last)
        list->last->next = item;
    else
        list->first = item;
    list->last = item;
    list->count++;
}

static void list_remove(struct item_list *list, struct item *item)
{
    if (item->prev)
        item->prev->next = item->next;
    else
        list->first = item->next;
    if (item->next)
        item->next->prev = item->prev;
    else
        list->last = item->prev;
    list->count--;
}

static bool due_before(const struct item *a, const struct item *b)
{
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->sequence < b->sequence;
}

static void heap_put(struct queue *q, size_t ix, struct item *item)
{
    q->delayed.items[ix] = item;
    item->heap_ix = ix;
}

static void heap_up(struct queue *q, size_t ix)
{
    struct item *item = q->delayed.items[ix];
    while (ix > 0 && due_before(item, q->delayed.items[(ix - 1) / 2])) {
        heap_put(q, ix, q->delayed.items[(ix - 1) / 2]);
        ix = (ix - 1) / 2;
    }
    heap_put(q, ix, item);
}

static void heap_down(struct queue *q, size_t ix)
{
    struct item *item = q->delayed.items[ix];
    for (;;) {
        size_t child = 2 * ix + 1;
        if (child + 1 < q->delayed.count &&
            due_before(q->delayed.items[child + 1], q->delayed.items[child]))
            child++;
        if (child >= q->delayed.count || !due_before(q->delayed.items[child], item))
            break;
        heap_put(q, ix, q->delayed.items[child]);
        ix = child;
    }
    heap_put(q, ix, item);
}

static void heap_push(struct queue *q, struct item *item)
{
    vec_push(&q->delayed, item);
    heap_up(q, q->delayed.count - 1);
}

static void heap_remove(struct queue *q, struct item *item)
{
    size_t ix = item->heap_ix;
    struct item *last = vec_pop(&q->delayed);
    if (last == item)
        return;
    heap_put(q, ix, last);
    heap_up(q, ix);
    heap_down(q, last->heap_ix);
}

/* --- items --- */

static struct item *item_new(struct queue *q, struct str key)
{
    struct item *item = kv_calloc(1, sizeof *item + key.len + 1);
    if (key.len)
        memcpy(item->text, key.p, key.len);
    item->key = (struct str){ item->text, key.len };
    item->again_ns = NEVER;
    str_table_put(&q->items, item->key, item);
    return item;
}

/* It is in no list any more. */
static void item_drop(struct queue *q, struct item *item)
{
    str_table_remove(&q->items, item->key);
    free(item);
}

static void make_ready(struct queue *q, struct item *item, int64_t since_ns)
{
    item->state = ITEM_READY;
    item->since_ns = since_ns;
    list_append(&q->ready, item);
    pthread_cond_signal(&q->wake);
}

static void make_due(struct queue *q, struct item *item, int64_t due_ns, int64_t now_ns)
{
    if (due_ns <= now_ns) {
        make_ready(q, item, now_ns);
        return;
    }
    item->state = ITEM_DELAYED;
    item->due_ns = due_ns;
    item->sequence = q->sequence_next++;
    heap_push(q, item);
    if (item->heap_ix == 0)
        pthread_cond_signal(&q->wake);
}

/* Keeps invariant 2; every call starts with it. The time now. */
static int64_t catch_up(struct queue *q)
{
    int64_t now_ns = clock_mono_ns(q->opts.clock);
    while (q->delayed.count && q->delayed.items[0]->due_ns <= now_ns) {
        struct item *item = q->delayed.items[0];
        heap_remove(q, item);
        make_ready(q, item, item->due_ns);
    }
    return now_ns;
}

static int64_t later(int64_t now_ns, int64_t delay_ns)
{
    int64_t due_ns;
    if (delay_ns <= 0)
        return now_ns;
    /* Even the end of time is a time: NEVER is something else. */
    return __builtin_add_overflow(now_ns, delay_ns, &due_ns) || due_ns == NEVER ? NEVER - 1
                                                                                : due_ns;
}

/* --- life --- */

struct queue *queue_new(struct queue_options opts)
{
    struct queue *q = kv_calloc(1, sizeof *q);
    if (opts.keys_max == 0)
        opts.keys_max = QUEUE_KEYS_MAX;
    if (opts.backoff_min_ns == 0)
        opts.backoff_min_ns = QUEUE_BACKOFF_MIN_NS;
    if (opts.backoff_max_ns == 0)
        opts.backoff_max_ns = QUEUE_BACKOFF_MAX_NS;
    KV_ASSERT(opts.backoff_min_ns > 0);
    KV_ASSERT(opts.backoff_min_ns <= opts.backoff_max_ns);
    q->opts = opts;
    pthread_mutex_init(&q->lock, NULL);
    clock_cond_init(&q->wake);
    return q;
}

void queue_free(struct queue *q)
{
    if (!q)
        return;
    KV_ASSERT(q->running.count == 0);
    KV_ASSERT(q->waiting_count == 0);
    queue_shutdown(q, QUEUE_DROP);
    str_table_done(&q->items);
    vec_done(&q->delayed);
    pthread_cond_destroy(&q->wake);
    pthread_mutex_destroy(&q->lock);
    free(q);
}

void queue_shutdown(struct queue *q, enum queue_shutdown how)
{
    pthread_mutex_lock(&q->lock);
    catch_up(q);
    while (q->delayed.count)
        item_drop(q, vec_pop(&q->delayed));
    if (how == QUEUE_DROP) {
        for (struct item *item; (item = q->ready.first);) {
            list_remove(&q->ready, item);
            item_drop(q, item);
        }
        q->phase = QUEUE_DROPPING;
    } else if (q->phase == QUEUE_OPEN) {
        q->phase = QUEUE_DRAINING;
    }
    pthread_cond_broadcast(&q->wake);
    pthread_mutex_unlock(&q->lock);
}

/* --- adding --- */

/* False: the key is there already, and early enough. */
static bool bring_forward(struct queue *q, struct item *item, int64_t due_ns, int64_t now_ns)
{
    switch (item->state) {
    case ITEM_READY:
        return false;
    case ITEM_DELAYED:
        if (due_ns >= item->due_ns)
            return false;
        heap_remove(q, item);
        make_due(q, item, due_ns, now_ns);
        return true;
    case ITEM_RUNNING:
        if (due_ns >= item->again_ns)
            return false;
        item->again_ns = due_ns;
        return true;
    }
    KV_UNREACHABLE();
}

bool queue_add_after(struct queue *q, struct str key, int64_t delay_ns)
{
    pthread_mutex_lock(&q->lock);
    int64_t now_ns = catch_up(q);
    int64_t due_ns = later(now_ns, delay_ns);
    struct item *item = str_table_get(&q->items, key);
    bool full = !item && q->items.live_count >= q->opts.keys_max;
    bool accepted = q->phase == QUEUE_OPEN && !full;

    if (!accepted) {
        q->stats.refuse_count++;
    } else if (!item) {
        make_due(q, item_new(q, key), due_ns, now_ns);
        q->stats.add_count++;
    } else if (bring_forward(q, item, due_ns, now_ns)) {
        q->stats.add_count++;
    } else {
        q->stats.merge_count++;
    }
    pthread_mutex_unlock(&q->lock);
    return accepted;
}

bool queue_add(struct queue *q, struct str key)
{
    return queue_add_after(q, key, 0);
}

/* --- working --- */

/* The first ready key becomes a running one. */
static bool start_first(struct queue *q, struct str *key, int64_t now_ns)
{
    struct item *item = q->ready.first;
    if (!item)
        return false;
    list_remove(&q->ready, item);
    list_append(&q->running, item);
    item->state = ITEM_RUNNING;
    item->since_ns = now_ns;
    q->stats.take_count++;
    if (q->ready.count || q->delayed.count)
        pthread_cond_signal(&q->wake);
    *key = item->key;
    return true;
}

bool queue_try_take(struct queue *q, struct str *key)
{
    pthread_mutex_lock(&q->lock);
    bool taken = start_first(q, key, catch_up(q));
    pthread_mutex_unlock(&q->lock);
    return taken;
}

bool queue_take(struct queue *q, struct str *key)
{
    bool taken;
    pthread_mutex_lock(&q->lock);
    while (!(taken = start_first(q, key, catch_up(q))) && q->phase == QUEUE_OPEN) {
        int64_t until_ns = q->delayed.count ? q->delayed.items[0]->due_ns : NEVER;
        q->waiting_count++;
        clock_wait(q->opts.clock, &q->wake, &q->lock, until_ns);
        q->waiting_count--;
    }
    pthread_mutex_unlock(&q->lock);
    return taken;
}

static int64_t backoff_ns(const struct queue *q, const struct item *item)
{
    int64_t min_ns = q->opts.backoff_min_ns, max_ns = q->opts.backoff_max_ns;
    bool grown = item->failures >= 62 || min_ns > max_ns >> item->failures;
    int64_t delay_ns = grown ? max_ns : min_ns << item->failures;

    struct rng rng;
    rng_init(&rng, q->opts.seed ^ kv_mix64(kv_hash(item->key.p, item->key.len) + item->failures));
    return delay_ns - (int64_t)(rng_unit(&rng) * 0.5 * (double)delay_ns);
}

static int64_t earlier(int64_t a_ns, int64_t b_ns)
{
    return a_ns < b_ns ? a_ns : b_ns;
}

/* When a key that ends with this outcome runs again, of its own wish or another's; or NEVER. */
static int64_t due_after(struct queue *q, struct item *item, struct outcome outcome, int64_t now_ns)
{
    switch (outcome.kind) {
    case OUTCOME_DONE:
        item->failures = 0;
        return item->again_ns;
    case OUTCOME_REQUEUE:
        item->failures = 0;
        return earlier(item->again_ns, later(now_ns, outcome.after_ns));
    case OUTCOME_RETRY: {
        int64_t delay_ns = backoff_ns(q, item);
        item->failures++;
        q->stats.retry_count++;
        return earlier(item->again_ns, later(now_ns, delay_ns));
    }
    }
    KV_UNREACHABLE();
}

void queue_finish(struct queue *q, struct str key, struct outcome outcome)
{
    pthread_mutex_lock(&q->lock);
    int64_t now_ns = catch_up(q);
    struct item *item = str_table_get(&q->items, key);
    KV_ASSERT(item != NULL);
    KV_ASSERT(item->state == ITEM_RUNNING);

    int64_t due_ns = due_after(q, item, outcome, now_ns);
    if (q->phase == QUEUE_DRAINING) /* only what others asked for, and only at once */
        due_ns = item->again_ns <= now_ns ? now_ns : NEVER;
    list_remove(&q->running, item);
    item->again_ns = NEVER;
    if (due_ns == NEVER || q->phase == QUEUE_DROPPING)
        item_drop(q, item);
    else
        make_due(q, item, due_ns, now_ns);
    pthread_mutex_unlock(&q->lock);
}

void queue_forget(struct queue *q, struct str key)
{
    pthread_mutex_lock(&q->lock);
    struct item *item = str_table_get(&q->items, key);
    if (item)
        item->failures = 0;
    pthread_mutex_unlock(&q->lock);
}

bool queue_run_one(struct queue *q, reconcile_fn *reconcile, void *ctx)
{
    struct str key;
    if (!queue_try_take(q, &key))
        return false;
    queue_finish(q, key, reconcile(ctx, key));
    return true;
}

int64_t queue_next_due(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    catch_up(q);
    int64_t due_ns = q->ready.count     ? q->ready.first->since_ns
                     : q->delayed.count ? q->delayed.items[0]->due_ns
                                        : NEVER;
    pthread_mutex_unlock(&q->lock);
    return due_ns;
}

struct queue_stats queue_stats(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    int64_t now_ns = catch_up(q);
    struct queue_stats stats = q->stats;
    stats.ready_count = q->ready.count;
    stats.delayed_count = (uint32_t)q->delayed.count;
    stats.running_count = q->running.count;
    stats.oldest_ready_ns = q->ready.first ? now_ns - q->ready.first->since_ns : 0;
    stats.longest_running_ns = q->running.first ? now_ns - q->running.first->since_ns : 0;
    pthread_mutex_unlock(&q->lock);
    return stats;
}

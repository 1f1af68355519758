/* sim/timers.h - what is due when: a heap of timers that live inside what they are for.
 *
 *     struct vm { struct timer timer; ... };
 *     timers_set(&timers, &vm->timer, due_ns);
 *     while ((timer = timers_take(&timers, now_ns)) != NULL)
 *         step(TIMER_OWNER(timer, struct vm, timer));
 *
 * Timers of one moment come in the order in which they were set. Zero-initialised is empty, and a
 * zero-initialised timer is not set. Whoever frees an owner clears its timer first.
 */
#pragma once

#include "base/kv.h"

#include <stdbool.h>

struct timer {
    int64_t due_ns;
    uint64_t order;
    uint32_t place; /* in the heap, from 1; 0: not set */
};

struct timers {
    struct timer **heap;
    uint32_t count, cap;
    uint64_t orders;
};

#define TIMER_OWNER(timer_, type, member)                                                          \
    ((type *)(void *)((char *)(timer_)-offsetof(type, member)))

void timers_done(struct timers *t);
void timers_set(struct timers *t, struct timer *timer, int64_t due_ns); /* or move */
void timers_clear(struct timers *t, struct timer *timer);
/* The earliest that is due, no longer set; NULL: none is. */
struct timer *timers_take(struct timers *t, int64_t now_ns);

static inline bool timer_is_set(const struct timer *timer)
{
    return timer->place != 0;
}
static inline int64_t timers_next_ns(const struct timers *t) /* INT64_MAX: never */
{
    return t->count ? t->heap[0]->due_ns : INT64_MAX;
}

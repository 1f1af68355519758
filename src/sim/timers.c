#include "sim/timers.h"

static bool is_before(const struct timer *a, const struct timer *b)
{
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->order < b->order;
}

static void put(struct timers *t, uint32_t at, struct timer *timer)
{
    t->heap[at] = timer;
    timer->place = at + 1;
}

static void sift_up(struct timers *t, uint32_t at, struct timer *timer)
{
    while (at > 0 && is_before(timer, t->heap[(at - 1) / 2])) {
        put(t, at, t->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    put(t, at, timer);
}

static void sift_down(struct timers *t, uint32_t at, struct timer *timer)
{
    for (uint32_t child; (child = 2 * at + 1) < t->count; at = child) {
        if (child + 1 < t->count && is_before(t->heap[child + 1], t->heap[child]))
            child++;
        if (!is_before(t->heap[child], timer))
            break;
        put(t, at, t->heap[child]);
    }
    put(t, at, timer);
}

void timers_done(struct timers *t)
{
    free(t->heap);
    *t = (struct timers){ 0 };
}

void timers_clear(struct timers *t, struct timer *timer)
{
    if (!timer->place)
        return;
    uint32_t at = timer->place - 1;
    struct timer *last = t->heap[--t->count];
    timer->place = 0;
    if (last == timer)
        return;
    if (at > 0 && is_before(last, t->heap[(at - 1) / 2]))
        sift_up(t, at, last);
    else
        sift_down(t, at, last);
}

void timers_set(struct timers *t, struct timer *timer, int64_t due_ns)
{
    if (timer->place && timer->due_ns == due_ns)
        return;
    timers_clear(t, timer);
    if (t->count == t->cap) {
        t->cap = t->cap ? 2 * t->cap : 16;
        t->heap = kv_realloc(t->heap, t->cap, sizeof *t->heap);
    }
    timer->due_ns = due_ns;
    timer->order = t->orders++;
    sift_up(t, t->count++, timer);
}

struct timer *timers_take(struct timers *t, int64_t now_ns)
{
    if (t->count == 0 || t->heap[0]->due_ns > now_ns)
        return NULL;
    struct timer *first = t->heap[0];
    timers_clear(t, first);
    return first;
}

/* base/clock.h - the clock port: real time in production, virtual time in simulations and tests.
 *
 * Nothing else in the program asks the system what time it is.
 */
#pragma once

#include "base/kv.h"

#include <pthread.h>
#include <stdbool.h>

struct clock {
    int64_t (*wall_us)(void *ctx); /* since 1970, UTC; may jump */
    int64_t (*mono_ns)(void *ctx); /* from an arbitrary start; never goes back */
    /* Wait on `cond` (with `mutex` held) until it is signalled or mono_ns reaches `until_ns`
     * (INT64_MAX: no limit). May wake early. The condition variable was made by
     * clock_cond_init. */
    void (*wait)(void *ctx, pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t until_ns);
    void *ctx;
};

static inline int64_t clock_wall_us(const struct clock *c)
{
    return c->wall_us(c->ctx);
}
static inline int64_t clock_mono_ns(const struct clock *c)
{
    return c->mono_ns(c->ctx);
}
static inline void clock_wait(const struct clock *c, pthread_cond_t *cond, pthread_mutex_t *mutex,
                              int64_t until_ns)
{
    c->wait(c->ctx, cond, mutex, until_ns);
}

const struct clock *clock_real(void);
void clock_cond_init(pthread_cond_t *cond); /* measures waits by the monotonic clock */

/* Time that moves only when told to. Waiters on other threads are woken when their moment comes;
 * who advances it holds no mutex that somebody waits with. It starts at mono_ns 0. */
struct virtual_clock;
struct virtual_clock *virtual_clock_new(int64_t wall_us);
void virtual_clock_free(struct virtual_clock *vc); /* nobody waits on it; NULL is fine */
KV_AUTO_TYPE(virtual_clock, virtual_clock_free)
const struct clock *virtual_clock_port(struct virtual_clock *vc);
void virtual_clock_advance(struct virtual_clock *vc, int64_t ns);
void virtual_clock_jump(struct virtual_clock *vc, int64_t wall_us); /* the wall only: an NTP step */
/* The earliest moment that a waiter asked for, or INT64_MAX: a simulator steps to it. */
int64_t virtual_clock_next(struct virtual_clock *vc);

/* net/rate_limit.h - so many requests a second, and a burst of them at once.
 *
 * A bucket of `burst` tokens that fills at `qps` a second and starts full. Who takes a token that is
 * not there yet has reserved it, and is told how long to wait before going: the wait itself is the
 * caller's, who knows what else ends it. Those who wait go in the order in which they took.
 *
 * Thread safe.
 */
#pragma once

#include "base/clock.h"

struct rate_limit;
/* `clock` is borrowed. qps of 0 or less: no limit. A burst of 0 is 1. */
struct rate_limit *rate_limit_new(const struct clock *clock, double qps, uint32_t burst);
void rate_limit_free(struct rate_limit *r); /* NULL is fine */
KV_AUTO_TYPE(rate_limit, rate_limit_free)

/* Reserve one: how long to wait for it, in ns. 0: go at once. */
int64_t rate_limit_take(struct rate_limit *r);
/* It was taken and is not used, since the wait was given up: those who take from now on wait less. */
void rate_limit_give_back(struct rate_limit *r);

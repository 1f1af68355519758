/* cloud/unavailable.h - offerings that could not be had a moment ago.
 *
 * A launch that fails for want of capacity marks what it tried, and for three minutes nobody tries
 * it again. A mark that ends is as much a change as one that begins: both bump
 * GENERATION_UNAVAILABLE. Ends are noticed inside the read of the generation itself (the provider
 * calls unavailable_settle first), so a reader never sees a stale number, and `next_ns` tells a
 * timer when to look even if nobody reads. Thread safe.
 */
#pragma once

#include "base/clock.h"
#include "base/str.h"
#include "cloud/generation.h"

#define UNAVAILABLE_TTL_NS ((int64_t)3 * 60 * 1000000000)

struct unavailable;

struct unavailable *unavailable_new(const struct clock *clock, struct generation_counters *counters,
                                    int64_t ttl_ns);
void unavailable_free(struct unavailable *u); /* NULL is fine */
KV_AUTO_TYPE(unavailable, unavailable_free)

/* Mark, or mark again and start the time anew (which changes no answer and bumps nothing).
 *
 * "" stands for any: ("", "", "spot") is a whole capacity type, ("", "zone-a", "") all of a zone.
 * `scope` tells otherwise equal offerings apart (placement group and partition, a subnet id); ""
 * if there is none. A mark with a scope is for that scope only. One without is for offerings
 * without, unless it stands for any of something: then it is for those of every scope. */
void unavailable_mark(struct unavailable *u, struct str type, struct str zone,
                      struct str capacity_type, struct str scope);
/* Is there a mark, for just that or for any of it? */
bool unavailable_has(struct unavailable *u, struct str type, struct str zone,
                     struct str capacity_type, struct str scope);
uint32_t unavailable_count(struct unavailable *u); /* marks that have not ended */

/* Drop what has ended (bumping the counter) before reading counters. Costs one load while nothing
 * is marked, and a look at the clock while nothing has ended. */
void unavailable_settle(struct unavailable *u);
/* When the next mark ends, on the clock's mono_ns; INT64_MAX if there is none. */
int64_t unavailable_next_ns(struct unavailable *u);
/* How many marks have been dropped so far, whoever noticed it. */
uint64_t unavailable_ended(struct unavailable *u);

/* Call `wake` (NULL: nobody) when next_ns has become earlier. It is called with a lock held and must
 * not call back. One at a time: cloud/refresh.h. */
void unavailable_on_earlier(struct unavailable *u, void (*wake)(void *ctx), void *ctx);

/* cloud/reservations.h - how many instances are left in each capacity reservation.
 *
 * Counts come from the cloud now and then, and are kept up to date by what we do in between: a launch
 * takes one, a confirmed termination gives one back, a refusal says there is none. Every change of
 * what a reader sees bumps GENERATION_RESERVATIONS, as does a change of the list of a node class;
 * saying again what is known already bumps nothing. What the cloud has not confirmed for a day is
 * forgotten. Thread safe.
 */
#pragma once

#include "base/clock.h"
#include "base/str.h"
#include "cloud/generation.h"

#define RESERVATION_TTL_NS ((int64_t)24 * 3600 * 1000000000) /* a count nobody confirmed */

struct reservations;

struct reservations *reservations_new(const struct clock *clock,
                                      struct generation_counters *counters);
void reservations_free(struct reservations *r); /* NULL is fine */
KV_AUTO_TYPE(reservations, reservations_free)

/* The cloud says so. A negative number counts as none. */
void reservations_sync(struct reservations *r, struct str id, int64_t available);
/* What we did since. Of a reservation that the cloud has not told us about, nothing is known. */
void reservations_launched(struct reservations *r, struct str id);
void reservations_terminated(struct reservations *r, struct str id);
void reservations_exhausted(struct reservations *r, struct str id);
int64_t reservations_available(struct reservations *r, struct str id); /* 0 if unknown */

/* The reservations that a node class selects, as a digest of their canonical list: bumps if it differs
 * from the last one for this class. A class that is gone: reservations_forget_class. */
void reservations_class(struct reservations *r, struct str class_name, uint64_t digest);
void reservations_forget_class(struct reservations *r, struct str class_name);

/* From this moment (mono_ns) on the reservation counts as expiring: a change like any other.
 * INT64_MAX: never. Said again with each sync, it lives as long as the count. */
void reservations_expire_at(struct reservations *r, struct str id, int64_t mono_ns);
bool reservations_expiring(struct reservations *r, struct str id);

/* Drop what timed out or became due (a capacity block that begins to expire), bumping. Costs one
 * load while there are none, and a look at the clock while nothing is due. */
void reservations_settle(struct reservations *r);
/* The moment to settle next, or a little early; INT64_MAX: none. */
int64_t reservations_next_ns(struct reservations *r);
/* How many have timed out or begun to expire so far, whoever noticed it. */
uint64_t reservations_ended(struct reservations *r);

/* As unavailable_on_earlier. */
void reservations_on_earlier(struct reservations *r, void (*wake)(void *ctx), void *ctx);

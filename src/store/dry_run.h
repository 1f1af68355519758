/* store/dry_run.h - a store that is only looked at: reads pass, writes are told and not done.
 *
 * A write answers as if it had been done: a created object comes back with a name and a UID, a patched
 * one as the patch would have made it, and what the API server would have refused (the object is not
 * there, it is another one, it has changed, it is not valid) is refused. The next read shows that
 * nothing happened, so what decides by the store decides again. The same write is told once: one with
 * the same content for the same object, times apart.
 *
 * A NodeClaim gets a new name whenever one is decided on. Here it keeps the name that it was told with:
 * the same claim, decided on again, is answered with that. So what is said about it repeats, and is
 * told once, too. Equal claims of one decision are told one by one.
 */
#pragma once

#include "base/clock.h"
#include "base/log.h"
#include "store/store.h"

struct dry_run_options {
    const struct store *inner; /* all of these outlive it */
    struct object_pool *pool;
    const struct clock *clock;
    struct log *log; /* "would create", "would patch", ..., "would bind", "event" */
};

struct dry_run;
struct dry_run *dry_run_new(struct dry_run_options options);
void dry_run_free(struct dry_run *d); /* NULL is fine */
KV_AUTO_TYPE(dry_run, dry_run_free)

const struct store *dry_run_store(struct dry_run *d);
uint64_t dry_run_writes(struct dry_run *d); /* how many were not done, repeats included */

/* For others who tell what they do not do (cloud/dry_run_provider.h): counts it as a write, and says
 * whether it is new. `what` is a hash of all that makes it the same. */
bool dry_run_is_new(struct dry_run *d, uint64_t what);

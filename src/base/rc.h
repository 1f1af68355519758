/* base/rc.h - the count of an immutable object that several threads share.
 *
 *     struct snapshot { struct rc rc; ... };
 *
 *     const struct snapshot *snapshot_ref(const struct snapshot *snap)
 *     {
 *         rc_ref(&snap->rc);
 *         return snap;
 *     }
 *     void snapshot_unref(const struct snapshot *snap)
 *     {
 *         if (snap && rc_unref(&snap->rc))
 *             snapshot_free(snap);
 *     }
 *
 * The object is const to everybody but its builder; only the count changes, so these take a
 * pointer to const.
 */
#pragma once

#include "base/kv.h"

#include <stdatomic.h>
#include <stdbool.h>

struct rc {
    atomic_uint n;
};

/* Half the range: threads that race past the check are noticed long before the count wraps. */
#define RC_MAX (1u << 31)

static inline void rc_init(struct rc *rc) /* one reference: the caller's */
{
    atomic_init(&rc->n, 1);
}

/* The caller already has a reference, so it sees the object whole and no ordering is needed. */
static inline void rc_ref(const struct rc *rc)
{
    unsigned before = atomic_fetch_add_explicit(&((struct rc *)rc)->n, 1, memory_order_relaxed);
    KV_ASSERT(before > 0); /* nobody held it: it is being freed */
    KV_ASSERT(before < RC_MAX);
}

/* True for the last one, who frees. Release: our reads of the object come before the count drops.
 * Acquire: whoever frees comes after everybody's reads. */
static inline bool rc_unref(const struct rc *rc)
{
    unsigned before = atomic_fetch_sub_explicit(&((struct rc *)rc)->n, 1, memory_order_acq_rel);
    KV_ASSERT(before > 0);
    return before == 1;
}

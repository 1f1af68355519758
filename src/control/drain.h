/* control/drain.h - which pods of a node that is going must leave first, how, and when to look again.
 *
 * Pure: pods, the time and the node's deadline in, decisions out.
 *
 *     terminal     Succeeded or Failed
 *     stuck        its deletionTimestamp is a minute old: whoever should end it does not
 *     drainable    does not tolerate karpenter.sh/disrupted:NoSchedule, not stuck, not a mirror pod
 *     waiting      drainable and not terminal: the node stays while there is one
 *     evictable    waiting, not terminating, do-not-disrupt not active
 *     forced       waiting, and it would outlive the deadline: deleted whatever protects it
 *
 * Pods leave in tiers. Only the first tier in which a pod waits is evicted; the forced ones go at once,
 * from all tiers.
 */
#pragma once

#include "api/pod.h"

#define DRAIN_NO_DEADLINE INT64_MAX
#define DRAIN_STUCK_US ((int64_t)60 * 1000000)

enum drain_tier { /* in this order */
                  DRAIN_PLAIN,
                  DRAIN_DAEMON,
                  DRAIN_CRITICAL,
                  DRAIN_CRITICAL_DAEMON,
                  DRAIN_TIER_COUNT
};

enum drain_action {
    DRAIN_IGNORE,    /* not drainable, or has ended */
    DRAIN_WAIT,      /* it is on its way out */
    DRAIN_PROTECTED, /* by do-not-disrupt */
    DRAIN_EVICT,
    DRAIN_FORCE,
};

struct drain_verdict {
    enum drain_action action;
    int64_t next_us; /* when time alone may change the verdict; INT64_MAX: never */
};

bool pod_is_drainable(const struct pod *pod, int64_t now_us);
enum drain_tier pod_drain_tier(const struct pod *pod);
struct drain_verdict drain_judge(const struct pod *pod, int64_t now_us, int64_t deadline_us);
/* Seconds that a forced pod gets: what is left, at least one. */
int64_t drain_forced_grace_s(int64_t now_us, int64_t deadline_us);

struct drain {
    const struct pod **evict, **force; /* in the arena; in the order of the list */
    uint32_t evict_count, force_count;
    uint32_t waiting_count;            /* in all tiers; 0: drained */
    uint32_t protected_count;          /* in the tier whose turn it is */
    const struct pod *maybe_protected; /* the first of them */
    int64_t next_us;                   /* of all that wait */
};

/* `pods`: all that are bound to the node. */
void drain_plan(struct arena *arena, const struct object *const *pods, size_t count, int64_t now_us,
                int64_t deadline_us, struct drain *out);

/* control/do_not_disrupt.h - the pod's annotation karpenter.sh/do-not-disrupt: "true", or a positive
 * duration that counts from the pod's start.
 */
#pragma once

#include "api/pod.h"

struct control;

enum do_not_disrupt_state {
    DO_NOT_DISRUPT_ABSENT,
    DO_NOT_DISRUPT_INVALID, /* neither "true" nor a positive duration: ignored */
    DO_NOT_DISRUPT_ELAPSED, /* a duration that is over */
    DO_NOT_DISRUPT_FOR_A_WHILE,
    DO_NOT_DISRUPT_ALWAYS,
};

struct do_not_disrupt {
    enum do_not_disrupt_state state;
    int64_t until_us; /* FOR_A_WHILE, ELAPSED: the end; INT64_MAX: the pod has not even started */
};

/* Pure. */
struct do_not_disrupt do_not_disrupt_of(const struct pod *pod, int64_t now_us);

static inline bool do_not_disrupt_is_active(struct do_not_disrupt mark)
{
    return mark.state >= DO_NOT_DISRUPT_FOR_A_WHILE;
}

/* Tell the pod's owner, by an event, what comes of the annotation: when it ends, that it has ended,
 * or that it makes no sense. */
void do_not_disrupt_tell(struct control *c, const struct pod *pod, struct do_not_disrupt mark);

/* sim/span.h - how long something takes, and whether it happens: decided by who it happens to.
 *
 * What is decided by a hash of the seed and an object's uid does not depend on the order of calls: one
 * retry more, and the same instance fails to boot all the same.
 */
#pragma once

#include "base/str.h"

struct span { /* of a delay: uniform between the two, both included */
    int64_t min_ns, max_ns;
};

uint64_t fate_of(uint64_t seed, struct str who, const char *what); /* what: "boot", "ready" */
int64_t span_pick(struct span span, uint64_t fate);
bool fate_happens(double rate, uint64_t fate); /* rate: from 0 to 1 */

/* sim/invariants.h - what must be true of a cluster at every moment, whatever happens to it.
 *
 *  1. A pod is bound once, and nodes hold no more than they have.
 *  2. An instance has a claim, and a launched claim its instance, but for the time that garbage
 *     collection takes while the control plane is up.
 *  3. One instance per claim, ever.
 *  4. Pools are within their limits.
 *  5. Conditions change only as they may: what was launched, registered or initialized stays so;
 *     NodeRegistrationHealthy by its policy, and of a generation that there was.
 *  6. A claim's finalizer is there before its instance, and as long as that is.
 *  7. At rest: nothing is half done or left over, nothing pending fits anywhere, and neither
 *     reconciling everything again nor a new process writes anything.
 *  8. Pods have left a node before its instance is ended, unless its time is over.
 */
#pragma once

#include "base/arena.h"
#include "base/str.h"

struct world_parts;

struct finding {
    uint32_t rule; /* of the list above */
    uint32_t step;
    int64_t at_ns; /* since the start */
    struct str what;
};

struct invariants;
struct invariants *invariants_new(void);
void invariants_free(struct invariants *inv); /* NULL is fine */
KV_AUTO_TYPE(invariants, invariants_free)

/* After each step. The first thing that is wrong, or NULL; it lives as long as the invariants. */
const struct finding *invariants_check(struct invariants *inv, const struct world_parts *world);
/* Once faults are off and the world has settled. */
const struct finding *invariants_check_rest(struct invariants *inv,
                                            const struct world_parts *world);

#include "sim/span.h"

#include "base/rng.h"

/* Longer ones in tenths of a second: what happens to many then happens at few moments, and a
 * simulation goes from moment to moment. */
#define GRAIN_NS ((int64_t)100000000)

int64_t span_pick(struct span span, uint64_t fate)
{
    struct rng rng;
    int64_t width_ns = span.max_ns - span.min_ns;
    int64_t grain_ns = width_ns < GRAIN_NS ? 1 : GRAIN_NS;
    if (width_ns <= 0)
        return span.min_ns;
    rng_init(&rng, fate);
    return span.min_ns + grain_ns * (int64_t)rng_below(&rng, (uint64_t)(width_ns / grain_ns) + 1);
}

bool fate_happens(double rate, uint64_t fate)
{
    struct rng rng;
    rng_init(&rng, fate);
    return rng_unit(&rng) < rate;
}

uint64_t fate_of(uint64_t seed, struct str who, const char *what)
{
    return kv_hash_salted(who.p, who.len, seed ^ kv_hash(what, strlen(what)));
}

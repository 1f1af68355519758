/* base/rng.h - seeded random numbers (xoshiro256**): same seed, same stream, on every machine. */
#pragma once

#include "base/kv.h"

struct rng {
    uint64_t s[4];
};

void rng_init(struct rng *r, uint64_t seed);
uint64_t rng_next(struct rng *r);
uint64_t rng_below(struct rng *r, uint64_t n); /* uniform in [0, n); n > 0 */
double rng_unit(struct rng *r);                /* uniform in [0, 1) */
/* `len` characters of an alphabet without vowels and 0, 1, 3 (so that no words appear and none is
 * misread), and a NUL. */
void rng_name(struct rng *r, char *out, size_t len);
void rng_uuid(struct rng *r, char out[37]); /* version 4 form */

#include "base/rng.h"

/* splitmix64: spreads a seed, however plain, over the whole state. */
void rng_init(struct rng *r, uint64_t seed)
{
    for (size_t i = 0; i < KV_COUNT_OF(r->s); i++)
        r->s[i] = kv_mix64(seed += 0x9e3779b97f4a7c15ULL);
}

static uint64_t rotate_left(uint64_t x, int bits)
{
    return (x << bits) | (x >> (64 - bits));
}

uint64_t rng_next(struct rng *r)
{
    uint64_t *s = r->s, result = rotate_left(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

/* The high half of a 64 x 64 bit product maps the stream onto [0, n). 2^64 is not a multiple of n,
 * so some results would be one draw in 2^64 / n more likely; drawing again when the low half
 * falls below 2^64 mod n makes them equal. */
uint64_t rng_below(struct rng *r, uint64_t n)
{
    KV_ASSERT(n > 0);
    uint64_t excess = (0 - n) % n;
    for (;;) {
        __extension__ unsigned __int128 product = (unsigned __int128)rng_next(r) * n;
        if ((uint64_t)product >= excess)
            return (uint64_t)(product >> 64);
    }
}

double rng_unit(struct rng *r)
{
    return (double)(rng_next(r) >> 11) * 0x1p-53;
}

void rng_name(struct rng *r, char *out, size_t len)
{
    static const char alphabet[] = "bcdfghjklmnpqrstvwxz2456789";
    for (size_t i = 0; i < len; i++)
        out[i] = alphabet[rng_below(r, sizeof alphabet - 1)];
    out[len] = '\0';
}

void rng_uuid(struct rng *r, char out[37])
{
    static const char form[] = "xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx";
    uint64_t bits = 0;
    for (size_t i = 0, digits = 0; i < sizeof form; i++) {
        if (form[i] != 'x' && form[i] != 'y') {
            out[i] = form[i];
            continue;
        }
        if (digits++ % 16 == 0)
            bits = rng_next(r);
        unsigned nibble = (unsigned)(bits & 15);
        if (form[i] == 'y')
            nibble = (nibble & 3) | 8; /* the variant: 10xx */
        out[i] = "0123456789abcdef"[nibble];
        bits >>= 4;
    }
}

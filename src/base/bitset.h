/* base/bitset.h - sets of small integers as bits, for the loops that the solver lives in.
 *
 * The words belong to the caller (an arena, a column of a snapshot); a `struct bitset` is a view of
 * them. Their number is a multiple of BITSET_LANE, and every bit from bit_count on is zero: each
 * function relies on it and keeps it, so none needs a special case for the last word.
 *
 * Operands of one call have the same bit_count. A destination shares no words with a source
 * (`restrict`); two sources may be the same.
 *
 * The loops in bitset.c are written for the vectorizer. To check, all of them must be reported:
 *
 *     gcc -O3 -std=gnu11 -D_GNU_SOURCE -Isrc -fopt-info-vec -c src/base/bitset.c -o /dev/null
 *
 * bitset_next stops early and is not one of them.
 */
#pragma once

#include "base/arena.h"

struct bitset {
    uint64_t *words;
    uint32_t bit_count;
};

/* 256 bits, the widest vector of common machines; also spares the loops a scalar remainder. */
#define BITSET_LANE ((size_t)4)
#define BITSET_WORDS(bits)                                                                         \
    (((size_t)(bits) + 64 * BITSET_LANE - 1) / (64 * BITSET_LANE) * BITSET_LANE)

/* Empty sets. `words` has room for BITSET_WORDS(bit_count). */
void bitset_init(struct bitset *bs, uint64_t *words, uint32_t bit_count);
struct bitset bitset_new(struct arena *a, uint32_t bit_count);

static inline bool bitset_test(const struct bitset *bs, uint32_t i)
{
    KV_ASSERT(i < bs->bit_count);
    return bs->words[i / 64] >> (i % 64) & 1;
}

static inline void bitset_set(struct bitset *bs, uint32_t i)
{
    KV_ASSERT(i < bs->bit_count);
    bs->words[i / 64] |= UINT64_C(1) << (i % 64);
}

static inline void bitset_clear(struct bitset *bs, uint32_t i)
{
    KV_ASSERT(i < bs->bit_count);
    bs->words[i / 64] &= ~(UINT64_C(1) << (i % 64));
}

void bitset_zero(struct bitset *bs);
void bitset_fill(struct bitset *bs); /* every bit below bit_count */
void bitset_copy(struct bitset *dst, const struct bitset *src);

/* dst = dst op src */
void bitset_and(struct bitset *dst, const struct bitset *src);
void bitset_or(struct bitset *dst, const struct bitset *src);
void bitset_andnot(struct bitset *dst, const struct bitset *src);

/* dst = a op b */
void bitset_and_into(struct bitset *dst, const struct bitset *a, const struct bitset *b);
void bitset_or_into(struct bitset *dst, const struct bitset *a, const struct bitset *b);
void bitset_andnot_into(struct bitset *dst, const struct bitset *a, const struct bitset *b);

bool bitset_any(const struct bitset *bs);
bool bitset_intersects(const struct bitset *a, const struct bitset *b); /* a & b is not empty */
bool bitset_equal(const struct bitset *a, const struct bitset *b);
bool bitset_subset(const struct bitset *a, const struct bitset *b); /* all of a is in b */
uint32_t bitset_popcount(const struct bitset *bs);
uint32_t bitset_and_popcount(const struct bitset *a, const struct bitset *b); /* of a & b */

/* The first member at or after `from`; bit_count if there is none. */
uint32_t bitset_next(const struct bitset *bs, uint32_t from);

static inline uint32_t bitset_first(const struct bitset *bs)
{
    return bitset_next(bs, 0);
}

/* Members in ascending order. Clearing the current one on the way is fine. */
#define bitset_each(bs, i)                                                                         \
    for (uint32_t i = bitset_first(bs); i < (bs)->bit_count; i = bitset_next((bs), i + 1))

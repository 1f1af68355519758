/* Every loop runs over whole lanes of words with no early exit: a filter over 800 types is 16
 * words, which takes less time than a mispredicted branch. */
#include "base/bitset.h"

static size_t word_count(const struct bitset *bs)
{
    return BITSET_WORDS(bs->bit_count);
}

static size_t same_word_count(const struct bitset *a, const struct bitset *b)
{
    KV_ASSERT(a->bit_count == b->bit_count);
    return word_count(a);
}

void bitset_init(struct bitset *bs, uint64_t *words, uint32_t bit_count)
{
    *bs = (struct bitset){ words, bit_count };
    bitset_zero(bs);
}

struct bitset bitset_new(struct arena *a, uint32_t bit_count)
{
    return (struct bitset){ arena_array(a, uint64_t, BITSET_WORDS(bit_count)), bit_count };
}

void bitset_zero(struct bitset *bs)
{
    size_t n = word_count(bs);
    if (n)
        memset(bs->words, 0, n * sizeof *bs->words);
}

void bitset_fill(struct bitset *bs)
{
    bitset_zero(bs);
    size_t whole = bs->bit_count / 64;
    if (whole)
        memset(bs->words, 0xff, whole * sizeof *bs->words);
    if (bs->bit_count % 64)
        bs->words[whole] = (UINT64_C(1) << (bs->bit_count % 64)) - 1;
}

void bitset_copy(struct bitset *dst, const struct bitset *src)
{
    size_t n = same_word_count(dst, src);
    if (n)
        memcpy(dst->words, src->words, n * sizeof *src->words);
}

/* The three operations, in place and into a destination. `restrict` is a promise that gcc believes
 * of parameters only, hence the functions over plain words. */
#define BITSET_OP(name, OP)                                                                        \
    static void name##_words(uint64_t *restrict d, const uint64_t *restrict s, size_t n)           \
    {                                                                                              \
        for (size_t i = 0; i < n; i++)                                                             \
            d[i] = OP(d[i], s[i]);                                                                 \
    }                                                                                              \
    static void name##_into_words(uint64_t *restrict d, const uint64_t *restrict a,                \
                                  const uint64_t *restrict b, size_t n)                            \
    {                                                                                              \
        for (size_t i = 0; i < n; i++)                                                             \
            d[i] = OP(a[i], b[i]);                                                                 \
    }                                                                                              \
    void bitset_##name(struct bitset *dst, const struct bitset *src)                               \
    {                                                                                              \
        name##_words(dst->words, src->words, same_word_count(dst, src));                           \
    }                                                                                              \
    void bitset_##name##_into(struct bitset *dst, const struct bitset *a, const struct bitset *b)  \
    {                                                                                              \
        KV_ASSERT(dst->bit_count == a->bit_count);                                                 \
        name##_into_words(dst->words, a->words, b->words, same_word_count(a, b));                  \
    }

#define AND(x, y) ((x) & (y))
#define OR(x, y) ((x) | (y))
#define ANDNOT(x, y) ((x) & ~(y))
BITSET_OP(and, AND)
BITSET_OP(or, OR)
BITSET_OP(andnot, ANDNOT)

bool bitset_any(const struct bitset *bs)
{
    size_t n = word_count(bs);
    uint64_t seen = 0;
    for (size_t i = 0; i < n; i++)
        seen |= bs->words[i];
    return seen != 0;
}

bool bitset_intersects(const struct bitset *a, const struct bitset *b)
{
    size_t n = same_word_count(a, b);
    uint64_t seen = 0;
    for (size_t i = 0; i < n; i++)
        seen |= a->words[i] & b->words[i];
    return seen != 0;
}

bool bitset_equal(const struct bitset *a, const struct bitset *b)
{
    size_t n = same_word_count(a, b);
    uint64_t seen = 0;
    for (size_t i = 0; i < n; i++)
        seen |= a->words[i] ^ b->words[i];
    return seen == 0;
}

bool bitset_subset(const struct bitset *a, const struct bitset *b)
{
    size_t n = same_word_count(a, b);
    uint64_t seen = 0;
    for (size_t i = 0; i < n; i++)
        seen |= a->words[i] & ~b->words[i];
    return seen == 0;
}

/* Plain x86-64 has no instruction for it, and the compiler's stand-in is a call per word. These
 * sums within a word (pairs, nibbles, bytes, then halves) need only shifts and adds, which every
 * vector unit has. */
static inline uint64_t word_popcount(uint64_t w)
{
#if defined(__POPCNT__) || defined(__aarch64__)
    return (uint64_t)__builtin_popcountll(w);
#else
    w -= w >> 1 & 0x5555555555555555;
    w = (w & 0x3333333333333333) + (w >> 2 & 0x3333333333333333);
    w = (w + (w >> 4)) & 0x0f0f0f0f0f0f0f0f;
    w += w >> 8;
    w += w >> 16;
    w += w >> 32;
    return w & 0x7f;
#endif
}

uint32_t bitset_popcount(const struct bitset *bs)
{
    size_t n = word_count(bs);
    uint64_t total = 0;
    for (size_t i = 0; i < n; i++)
        total += word_popcount(bs->words[i]);
    return (uint32_t)total;
}

uint32_t bitset_and_popcount(const struct bitset *a, const struct bitset *b)
{
    size_t n = same_word_count(a, b);
    uint64_t total = 0;
    for (size_t i = 0; i < n; i++)
        total += word_popcount(a->words[i] & b->words[i]);
    return (uint32_t)total;
}

uint32_t bitset_next(const struct bitset *bs, uint32_t from)
{
    if (from >= bs->bit_count)
        return bs->bit_count;
    size_t i = from / 64, n = word_count(bs);
    uint64_t w = bs->words[i] & (UINT64_MAX << (from % 64));
    while (w == 0) {
        if (++i == n)
            return bs->bit_count;
        w = bs->words[i];
    }
    return (uint32_t)(i * 64) + (uint32_t)__builtin_ctzll(w);
}

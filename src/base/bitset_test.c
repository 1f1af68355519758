#include "support/test.h"

#include "base/bitset.h"
#include "base/rng.h"

#include <stdio.h>

#define WIDTH_MAX 200

struct pattern { /* a set as bits and, beside it, as one bool per bit */
    struct bitset bits;
    bool naive[WIDTH_MAX];
};

static void pattern_random(struct pattern *p, struct arena *a, uint32_t width, struct rng *rng)
{
    *p = (struct pattern){ .bits = bitset_new(a, width) };
    uint64_t density = rng_below(rng, 5); /* 0: empty; 4: full */
    for (uint32_t i = 0; i < width; i++) {
        p->naive[i] = rng_below(rng, 4) < density;
        if (p->naive[i])
            bitset_set(&p->bits, i);
    }
}

/* The same members, and the bits past the end still zero. */
static void expect_bits(const struct bitset *bs, const bool *want)
{
    for (size_t i = 0; i < BITSET_WORDS(bs->bit_count) * 64; i++) {
        bool bit = bs->words[i / 64] >> (i % 64) & 1;
        EXPECT_EQ(bit, i < bs->bit_count && want[i]);
    }
}

static uint32_t naive_count(const bool *set, uint32_t width)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < width; i++)
        n += set[i];
    return n;
}

static void check_pair(struct arena *a, const struct pattern *x, const struct pattern *y)
{
    uint32_t width = x->bits.bit_count;
    bool want_and[WIDTH_MAX] = { 0 }, want_or[WIDTH_MAX] = { 0 }, want_andnot[WIDTH_MAX] = { 0 };
    for (uint32_t i = 0; i < width; i++) {
        want_and[i] = x->naive[i] && y->naive[i];
        want_or[i] = x->naive[i] || y->naive[i];
        want_andnot[i] = x->naive[i] && !y->naive[i];
    }
    struct bitset out = bitset_new(a, width);
    bitset_fill(&out); /* what was there before must not shine through */
    bitset_and_into(&out, &x->bits, &y->bits);
    expect_bits(&out, want_and);
    bitset_or_into(&out, &x->bits, &y->bits);
    expect_bits(&out, want_or);
    bitset_andnot_into(&out, &x->bits, &y->bits);
    expect_bits(&out, want_andnot);

    bitset_copy(&out, &x->bits);
    expect_bits(&out, x->naive);
    bitset_and(&out, &y->bits);
    expect_bits(&out, want_and);
    bitset_copy(&out, &x->bits);
    bitset_or(&out, &y->bits);
    expect_bits(&out, want_or);
    bitset_copy(&out, &x->bits);
    bitset_andnot(&out, &y->bits);
    expect_bits(&out, want_andnot);

    EXPECT_EQ(bitset_and_popcount(&x->bits, &y->bits), naive_count(want_and, width));
    EXPECT_EQ(bitset_intersects(&x->bits, &y->bits), naive_count(want_and, width) > 0);
    EXPECT_EQ(bitset_subset(&x->bits, &y->bits), naive_count(want_andnot, width) == 0);
    EXPECT_EQ(bitset_equal(&x->bits, &y->bits), memcmp(x->naive, y->naive, width) == 0);
}

static void check_one(const struct pattern *x)
{
    uint32_t width = x->bits.bit_count, at = 0, members = 0;
    EXPECT_EQ(bitset_popcount(&x->bits), naive_count(x->naive, width));
    EXPECT_EQ(bitset_any(&x->bits), naive_count(x->naive, width) > 0);
    bitset_each(&x->bits, i) {
        for (; at < i; at++)
            EXPECT_FALSE(x->naive[at]);
        EXPECT_TRUE(x->naive[at++]);
        members++;
    }
    EXPECT_EQ(members, naive_count(x->naive, width));
    for (uint32_t from = 0; from <= width + 1; from++) {
        uint32_t next = from < width ? from : width;
        while (next < width && !x->naive[next])
            next++;
        EXPECT_EQ(bitset_next(&x->bits, from), next);
    }
    for (uint32_t i = 0; i < width; i++)
        EXPECT_EQ(bitset_test(&x->bits, i), x->naive[i]);
}

TEST(bitset_agrees_with_an_array_of_bools_for_every_width)
{
    struct rng rng;
    rng_init(&rng, 2024);
    for (uint32_t width = 0; width <= WIDTH_MAX; width++) {
        AUTO_ARENA arena = { 0 };
        for (int round = 0; round < 12; round++) {
            struct pattern x, y;
            pattern_random(&x, &arena, width, &rng);
            pattern_random(&y, &arena, width, &rng);
            check_one(&x);
            check_pair(&arena, &x, &y);
            check_pair(&arena, &x, &x); /* sources may be one */
        }
    }
}

TEST(bitset_fill_sets_exactly_the_bits_below_the_width)
{
    bool all[WIDTH_MAX];
    memset(all, true, sizeof all);
    for (uint32_t width = 0; width <= WIDTH_MAX; width++) {
        uint64_t words[BITSET_WORDS(WIDTH_MAX)];
        memset(words, 0xa5, sizeof words); /* init does not trust the caller's memory */
        struct bitset bs;
        bitset_init(&bs, words, width);
        EXPECT_FALSE(bitset_any(&bs));
        bitset_fill(&bs);
        expect_bits(&bs, all);
        EXPECT_EQ(bitset_popcount(&bs), width);
        EXPECT_EQ(bitset_first(&bs), 0);
        bitset_zero(&bs);
        EXPECT_EQ(bitset_first(&bs), width);
        for (size_t i = BITSET_WORDS(width); i < KV_COUNT_OF(words); i++)
            EXPECT_EQ(words[i], 0xa5a5a5a5a5a5a5a5ULL);
    }
}

TEST(bitset_members_can_be_cleared_while_iterating)
{
    AUTO_ARENA arena = { 0 };
    struct bitset bs = bitset_new(&arena, 300);
    bitset_fill(&bs);
    uint32_t seen = 0;
    bitset_each(&bs, i) {
        seen++;
        if (i % 2)
            bitset_clear(&bs, i);
    }
    EXPECT_EQ(seen, 300);
    EXPECT_EQ(bitset_popcount(&bs), 150);
    bitset_each(&bs, i)
        EXPECT_EQ(i % 2, 0);
}

TEST(bitset_words_come_in_whole_lanes)
{
    EXPECT_EQ(BITSET_WORDS(0), 0);
    EXPECT_EQ(BITSET_WORDS(1), 4);
    EXPECT_EQ(BITSET_WORDS(256), 4);
    EXPECT_EQ(BITSET_WORDS(257), 8);
    EXPECT_EQ(BITSET_WORDS(UINT32_MAX), 1 << 26);
}

TEST(bitset_without_bits_needs_no_words)
{
    struct bitset none;
    bitset_init(&none, NULL, 0);
    bitset_fill(&none);
    EXPECT_FALSE(bitset_any(&none));
    EXPECT_TRUE(bitset_equal(&none, &none));
    EXPECT_TRUE(bitset_subset(&none, &none));
    EXPECT_EQ(bitset_first(&none), 0);
    bitset_each(&none, i)
        fail_msg("nothing to visit");
}

#include "support/test.h"

#include "base/rng.h"

TEST(rng_is_xoshiro256_starstar)
{
    struct rng r = { { 1, 2, 3, 4 } }; /* the published vector for this state */
    const uint64_t want[] = { 11520,
                              0,
                              1509978240,
                              1215971899390074240,
                              1216172134540287360,
                              607988272756665600,
                              16172922978634559625ULL,
                              8476171486693032832,
                              10595114339597558777ULL,
                              2904607092377533576 };
    for (size_t i = 0; i < KV_COUNT_OF(want); i++)
        EXPECT_EQ(rng_next(&r), want[i]);
}

TEST(rng_state_comes_from_the_seed_by_splitmix64)
{
    struct rng r;
    rng_init(&r, 0);
    EXPECT_EQ(r.s[0], 0xe220a8397b1dcdafULL);
    EXPECT_EQ(r.s[1], 0x6e789e6aa1b965f4ULL);
    EXPECT_EQ(r.s[2], 0x06c45d188009454fULL);
    EXPECT_EQ(r.s[3], 0xf88bb8a8724c81ecULL);
}

TEST(rng_below_is_uniform_and_in_range)
{
    struct rng r;
    rng_init(&r, 42);
    for (uint64_t n = 1; n <= 20; n++) {
        uint32_t hits[20] = { 0 };
        for (int i = 0; i < 20000; i++) {
            uint64_t v = rng_below(&r, n);
            EXPECT_TRUE(v < n);
            hits[v]++;
        }
        /* Six standard deviations of a binomial count are under 6 * sqrt(20000 / n). */
        for (uint64_t v = 0; v < n; v++) {
            int64_t off = (int64_t)hits[v] - (int64_t)(20000 / n);
            EXPECT_TRUE(off * off < 36 * (20000 / (int64_t)n) + 72);
        }
    }
    uint64_t large = (UINT64_C(1) << 63) + 1; /* nearly half of all draws are rejected */
    uint32_t upper = 0;
    for (int i = 0; i < 1000; i++) {
        uint64_t v = rng_below(&r, large);
        EXPECT_TRUE(v < large);
        upper += v > large / 2;
    }
    EXPECT_TRUE(upper > 400);
    EXPECT_TRUE(upper < 600);
}

TEST(rng_unit_is_at_least_zero_and_below_one)
{
    struct rng r;
    rng_init(&r, 7);
    double sum = 0;
    for (int i = 0; i < 100000; i++) {
        double v = rng_unit(&r);
        EXPECT_TRUE(v >= 0);
        EXPECT_TRUE(v < 1);
        sum += v;
    }
    EXPECT_TRUE(sum > 49000);
    EXPECT_TRUE(sum < 51000);
    struct rng highest = { { 0, UINT64_MAX / 5 * 2, 0, 0 } };
    EXPECT_TRUE(rng_unit(&highest) < 1);
}

TEST(rng_names_use_only_the_alphabet_of_generated_names)
{
    struct rng r;
    char name[6];
    bool seen[256] = { false };
    rng_init(&r, 3);
    for (int i = 0; i < 1000; i++) {
        memset(name, '?', sizeof name);
        rng_name(&r, name, 5);
        EXPECT_EQ(strlen(name), 5);
        EXPECT_EQ(strspn(name, "bcdfghjklmnpqrstvwxz2456789"), 5);
        for (size_t c = 0; c < 5; c++)
            seen[(unsigned char)name[c]] = true;
    }
    int used = 0;
    for (int c = 0; c < 256; c++)
        used += seen[c];
    EXPECT_EQ(used, 27);
    rng_name(&r, name, 0);
    EXPECT_Z(name, "");
}

TEST(rng_uuids_have_the_version_4_form_and_differ)
{
    struct rng r;
    char a[37], b[37];
    rng_init(&r, 9);
    for (int i = 0; i < 1000; i++) {
        rng_uuid(&r, a);
        EXPECT_EQ(strlen(a), 36);
        for (size_t c = 0; c < 36; c++) {
            if (c == 8 || c == 13 || c == 18 || c == 23)
                EXPECT_EQ(a[c], '-');
            else
                EXPECT_TRUE(strchr("0123456789abcdef", a[c]) != NULL);
        }
        EXPECT_EQ(a[14], '4');
        EXPECT_TRUE(strchr("89ab", a[19]) != NULL);
        EXPECT_TRUE(i == 0 || strcmp(a, b) != 0);
        memcpy(b, a, sizeof b);
    }
}

TEST(rng_streams_repeat_with_the_seed)
{
    struct rng a, b, c;
    rng_init(&a, 1234);
    rng_init(&b, 1234);
    rng_init(&c, 1235);
    int same_as_c = 0;
    for (int i = 0; i < 100; i++) {
        uint64_t v = rng_next(&a);
        EXPECT_EQ(v, rng_next(&b));
        same_as_c += v == rng_next(&c);
    }
    EXPECT_EQ(same_as_c, 0);
}

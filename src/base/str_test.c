#include "support/test.h"

#include "base/rng.h"

TEST(str_absent_equals_empty_in_content_but_can_be_told_apart)
{
    EXPECT_TRUE(str_eq(STR_NONE, STR("")));
    EXPECT_EQ(str_cmp(STR_NONE, STR("")), 0);
    EXPECT_TRUE(STR_NONE.p == NULL);
    EXPECT_TRUE(str_of(NULL).p == NULL);
    EXPECT_TRUE(STR("").p != NULL);
}

TEST(str_cmp_is_byte_order_with_the_shorter_first)
{
    const char *sorted[] = { "", "A", "B", "a", "a.b", "a/b", "ab", "b", "\xc3\xa9", "\xff" };
    for (size_t i = 0; i < KV_COUNT_OF(sorted); i++) {
        for (size_t j = 0; j < KV_COUNT_OF(sorted); j++) {
            int c = str_cmp(str_of(sorted[i]), str_of(sorted[j]));
            EXPECT_EQ((c > 0) - (c < 0), (i > j) - (i < j));
        }
    }
    EXPECT_TRUE(str_cmp(STR("a\0b"), STR("a\0c")) < 0);
}

TEST(str_lists_are_sorted_without_duplicates_and_searched)
{
    struct str items[] = { STR("b"), STR("a"), STR("b"), STR(""), STR("ab"), STR("a"), STR("b") };
    size_t n = str_sort_unique(items, KV_COUNT_OF(items));
    const char *want[] = { "", "a", "ab", "b" };
    EXPECT_EQ(n, 4);
    for (size_t i = 0; i < n; i++) {
        EXPECT_STR(items[i], want[i]);
        EXPECT_TRUE(str_sorted_has(items, n, str_of(want[i])));
    }
    EXPECT_FALSE(str_sorted_has(items, n, STR("aa")));
    EXPECT_FALSE(str_sorted_has(NULL, 0, STR("")));
    EXPECT_EQ(str_sort_unique(NULL, 0), 0);
}

TEST(str_starts_and_ends)
{
    EXPECT_TRUE(str_starts(STR("karpenter.sh/x"), STR("karpenter.sh/")));
    EXPECT_FALSE(str_starts(STR("kar"), STR("karpenter")));
    EXPECT_TRUE(str_ends(STR("a.karpenter.sh"), STR(".karpenter.sh")));
    EXPECT_FALSE(str_ends(STR("sh"), STR(".sh")));
    EXPECT_TRUE(str_starts(STR_NONE, STR("")));
    EXPECT_TRUE(str_ends(STR("x"), STR_NONE));
}

TEST(str_sub_is_clamped)
{
    EXPECT_STR(str_sub(STR("hello"), 1, 3), "ell");
    EXPECT_STR(str_sub(STR("hello"), 3, SIZE_MAX), "lo");
    EXPECT_STR(str_sub(STR("hello"), 9, 1), "");
    EXPECT_TRUE(str_sub(STR_NONE, 1, 1).p == NULL);
}

TEST(str_trim_takes_ascii_white_space_off_both_ends)
{
    EXPECT_STR(str_trim(STR(" \t\r\n\v\f a b \n")), "a b");
    EXPECT_STR(str_trim(STR("  ")), "");
    EXPECT_STR(str_trim(STR("\xc2\xa0x")), "\xc2\xa0x"); /* no-break space is a character */
}

TEST(str_cut_splits_at_the_first_separator)
{
    struct str head, tail;
    EXPECT_TRUE(str_cut(STR("a=b=c"), '=', &head, &tail));
    EXPECT_STR(head, "a");
    EXPECT_STR(tail, "b=c");
    EXPECT_TRUE(str_cut(STR("a="), '=', &head, &tail));
    EXPECT_STR(tail, "");
    EXPECT_FALSE(str_cut(STR("abc"), '=', &head, &tail));
    EXPECT_STR(head, "abc");
    EXPECT_TRUE(tail.p == NULL);

    struct str rest = STR("x,y,z");
    int n = 0;
    while (rest.p) { /* the tail may be the string itself */
        str_cut(rest, ',', &head, &rest);
        n++;
    }
    EXPECT_EQ(n, 3);
    EXPECT_STR(head, "z");
}

TEST(str_to_i64_reads_the_whole_range_and_nothing_else)
{
    int64_t v = 99;
    const char *good[] = { "0", "-0", "+7", "007", "9223372036854775807", "-9223372036854775808" };
    const int64_t want[] = { 0, 0, 7, 7, INT64_MAX, INT64_MIN };
    for (size_t i = 0; i < KV_COUNT_OF(good); i++) {
        EXPECT_TRUE(str_to_i64(str_of(good[i]), &v));
        EXPECT_EQ(v, want[i]);
    }
    const char *bad[] = { "",
                          "-",
                          "+",
                          "+-1",
                          " 1",
                          "1 ",
                          "1.0",
                          "0x10",
                          "1e3",
                          "a",
                          "\xff",
                          "9223372036854775808",
                          "-9223372036854775809",
                          "99999999999999999999999" };
    v = 99;
    for (size_t i = 0; i < KV_COUNT_OF(bad); i++)
        EXPECT_FALSE(str_to_i64(str_of(bad[i]), &v));
    EXPECT_FALSE(str_to_i64(STR_NONE, &v));
    EXPECT_EQ(v, 99);
}

/* What a decoder that keeps code points would say. */
static bool utf8_by_decoding(const unsigned char *s, size_t len)
{
    for (size_t i = 0; i < len;) {
        size_t n = s[i] < 0x80       ? 1
                   : s[i] >> 5 == 6  ? 2
                   : s[i] >> 4 == 14 ? 3
                   : s[i] >> 3 == 30 ? 4
                                     : 0;
        if (n == 0 || n > len - i)
            return false;
        uint32_t code = n == 1 ? s[i] : s[i] & (0xffu >> (n + 1));
        for (size_t k = 1; k < n; k++) {
            if (s[i + k] >> 6 != 2)
                return false;
            code = code << 6 | (s[i + k] & 0x3f);
        }
        static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
        if (code < least[n] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
            return false;
        i += n;
    }
    return true;
}

TEST(str_is_utf8_agrees_with_decoding)
{
    unsigned char s[4];
    for (uint32_t two = 0; two < 0x10000; two++) { /* every pair, and what may follow it */
        s[0] = (unsigned char)(two >> 8);
        s[1] = (unsigned char)two;
        s[2] = 0x80;
        s[3] = 0xbf;
        for (size_t len = 1; len <= 4; len++)
            EXPECT_EQ(str_is_utf8((struct str){ (char *)s, len }), utf8_by_decoding(s, len));
    }
    struct rng rng;
    rng_init(&rng, 5);
    for (int i = 0; i < 200000; i++) {
        uint64_t bits = rng_next(&rng) | 0x8080808080808080ULL;
        memcpy(s, &bits, 4);
        EXPECT_EQ(str_is_utf8((struct str){ (char *)s, 4 }), utf8_by_decoding(s, 4));
    }
    EXPECT_TRUE(str_is_utf8(STR_NONE));
}

TEST(str_distance_counts_edits_up_to_the_limit)
{
    EXPECT_EQ(str_distance(STR("kitten"), STR("sitting"), 5), 3);
    EXPECT_EQ(str_distance(STR("kitten"), STR("sitting"), 2), 3); /* more than 2 */
    EXPECT_EQ(str_distance(STR("same"), STR("same"), 0), 0);
    EXPECT_EQ(str_distance(STR(""), STR("abc"), 3), 3);
    EXPECT_EQ(str_distance(STR("abc"), STR(""), 3), 3);
    EXPECT_EQ(str_distance(STR("instanceTypes"), STR("instanceType"), 3), 1);
    char long_a[80], long_b[80];
    memset(long_a, 'a', sizeof long_a);
    memset(long_b, 'a', sizeof long_b);
    for (size_t n = 60; n <= 80; n++) { /* symmetric where names are too long to compare, too */
        struct str a = { long_a, n }, b = { long_b, n - 1 };
        EXPECT_EQ(str_distance(a, b, 3), str_distance(b, a, 3));
        EXPECT_EQ(str_distance(a, b, 3), n <= 64 ? 1 : 4);
    }
}

TEST(buf_builds_texts_of_any_length)
{
    AUTO_BUF b = { 0 };
    EXPECT_STR(buf_str(&b), "");
    buf_addz(&b, "a");
    buf_addc(&b, ' ');
    buf_add(&b, STR("b\0c"));
    buf_addf(&b, "%d%s", 42, "!");
    EXPECT_EQ(b.len, 8);
    EXPECT_TRUE(memcmp(b.p, "a b\0c42!", 9) == 0); /* with its NUL */
    for (int i = 0; i < 1000; i++)
        buf_addf(&b, "%04d", i);
    EXPECT_EQ(b.len, 4008);
    EXPECT_EQ(b.p[4008], '\0');
    EXPECT_STR(str_sub(buf_str(&b), 4004, 4), "0999");
    buf_clear(&b);
    EXPECT_Z(b.p, "");
}

TEST(buf_is_terminated_from_the_first_reserve_on)
{
    AUTO_BUF b = { 0 };
    buf_reserve(&b, 10);
    EXPECT_Z(b.p, "");
    buf_addz(&b, "x");
    buf_reserve(&b, 1000);
    EXPECT_Z(b.p, "x");
}

TEST(buf_take_hands_over_the_bytes_and_leaves_it_empty)
{
    AUTO_BUF b = { 0 };
    AUTO_FREE char *none = buf_take(&b);
    EXPECT_Z(none, "");
    buf_addz(&b, "text");
    AUTO_FREE char *text = buf_take(&b);
    EXPECT_Z(text, "text");
    EXPECT_TRUE(b.p == NULL);
    EXPECT_EQ(b.cap, 0);
    AUTO_FREE char *dup = str_dup(STR_NONE);
    EXPECT_Z(dup, "");
}

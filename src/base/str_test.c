#include "support/test.h"

#include "base/rng.h"

#include <stdio.h>

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

TEST(str_utf8_first_measures_the_first_character)
{
    static const struct {
        const char *text;
        size_t bytes;
    } cases[] = {
        { "a", 1 },
        { "ab", 1 },
        { "\x7f", 1 },
        { "\xc3\xa9z", 2 },
        { "\xe2\x82\xac", 3 },
        { "\xf0\x9f\x98\x80\xff", 4 }, /* what follows does not count */
        { "\xc3", 0 },                 /* cut off */
        { "\xe2\x82", 0 },
        { "\xf0\x9f\x98", 0 },
        { "\x80", 0 },             /* nothing before it */
        { "\xc0\xaf", 0 },         /* overlong */
        { "\xed\xa0\x80", 0 },     /* a surrogate */
        { "\xf4\x90\x80\x80", 0 }, /* beyond U+10FFFF */
        { "\xc3(", 0 },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++)
        EXPECT_EQ(str_utf8_first(str_of(cases[i].text)), cases[i].bytes);
    EXPECT_EQ(str_utf8_first(STR("\0a")), 1);
    EXPECT_EQ(str_utf8_first(STR("")), 0);
    EXPECT_EQ(str_utf8_first(STR_NONE), 0);
}

TEST(str_utf8_prefix_ends_where_the_trouble_begins)
{
    EXPECT_EQ(str_utf8_prefix(STR("")), 0);
    EXPECT_EQ(str_utf8_prefix(STR("a\xc3\xa9")), 3);
    EXPECT_EQ(str_utf8_prefix(STR("a\xc3\xa9\xe2\x82")), 3);
    EXPECT_EQ(str_utf8_prefix(STR("\xff")), 0);
}

TEST(str_utf8_cut_leaves_whole_characters)
{
    struct str s = STR("a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z"); /* ends at 1 3 6 10 11 */
    static const size_t want[] = { 0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11 };
    for (size_t len = 0; len < KV_COUNT_OF(want); len++)
        EXPECT_EQ(str_utf8_cut(s, len), want[len]);
    EXPECT_EQ(str_utf8_cut(STR("\x80\x80\x80\x80\x80\x80"), 5), 5); /* no character to save */
    EXPECT_EQ(str_utf8_cut(STR_NONE, 3), 0);
}

TEST(str_take_digits_takes_ascii_digits_off_the_front)
{
    struct str s = STR("0129:a");
    EXPECT_STR(str_take_digits(&s), "0129");
    EXPECT_STR(s, ":a");
    EXPECT_STR(str_take_digits(&s), "");
    EXPECT_STR(s, ":a");
    s = STR("7");
    EXPECT_STR(str_take_digits(&s), "7");
    EXPECT_EQ(s.len, 0);
    EXPECT_STR(str_take_digits(&s), "");
}

TEST(str_shown_is_quoted_escaped_and_cut_for_a_message)
{
    EXPECT_Z(STR_SHOWN(STR("2Gi")), "\"2Gi\"");
    EXPECT_Z(STR_SHOWN(STR_NONE), "\"\"");
    EXPECT_Z(STR_SHOWN(STR("\033[2J\n\"\\\xff\0")), "\"\\u001b[2J\\n\\\"\\\\\xef\xbf\xbd\\u0000\"");
    AUTO_BUF text = { 0 };
    while (text.len < STR_SHOWN_BYTES - 1)
        buf_addc(&text, '\x01'); /* as long as it gets when shown */
    buf_addz(&text, "\xc3\xa9"); /* the limit falls inside it */
    struct str shown = str_of(STR_SHOWN(buf_str(&text)));
    EXPECT_TRUE(str_ends(shown, STR("\\u0001\"...")));
    EXPECT_EQ(shown.len, 6 * (STR_SHOWN_BYTES - 1) + 5);
    EXPECT_TRUE(shown.len < STR_SHOWN_MAX);
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

TEST(buf_cut_drops_the_end_and_stays_terminated)
{
    AUTO_BUF b = { 0 };
    buf_cut(&b, 0);
    buf_addz(&b, "hello");
    buf_cut(&b, 2);
    EXPECT_EQ(b.len, 2);
    EXPECT_Z(b.p, "he");
}

TEST(buf_add_utf8_replaces_each_malformed_byte)
{
    AUTO_BUF b = { 0 };
    buf_add_utf8(&b, STR("a\xff\xc3\xc3\xa9\xe2\x82z"));
    EXPECT_STR(buf_str(&b), "a\xef\xbf\xbd\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd\xef\xbf\xbdz");
    buf_clear(&b);
    buf_add_utf8(&b, STR_NONE);
    EXPECT_STR(buf_str(&b), "");
}

TEST(buf_add_quoted_escapes_all_that_is_no_plain_character)
{
    AUTO_BUF b = { 0 };
    buf_add_quoted(
        &b, STR("a\"\\/\b\f\n\r\t\x1f\x7f\0 \xc3\xa9\xc2\x80\xc2\x9f\xc2\xa0\xf0\x9f\x98\x80\xff"));
    EXPECT_STR(buf_str(&b), "\"a\\\"\\\\/\\b\\f\\n\\r\\t\\u001f\\u007f\\u0000 "
                            "\xc3\xa9\\u0080\\u009f\xc2\xa0\xf0\x9f\x98\x80\xef\xbf\xbd\"");
}

TEST(buf_add_double_writes_numbers_as_prometheus_does)
{
    static const struct {
        double v;
        const char *text;
    } cases[] = {
        { 0, "0" },
        { -0.0, "-0" },
        { 1, "1" },
        { 100, "100" },
        { 12.5, "12.5" },
        { -1.0 / 3, "-0.3333333333333333" },
        { 0.1 + 0.2, "0.30000000000000004" },
        { 0.1, "0.1" },
        { 999999, "999999" },
        { 999999.5, "999999.5" },
        { 1e6, "1e+06" },
        { 1234567, "1.234567e+06" },
        { 123456789.125, "1.23456789125e+08" },
        { 0.0001, "0.0001" },
        { 0.00012, "0.00012" },
        { 1e-5, "1e-05" },
        { 1e100, "1e+100" },
        { 5e-324, "5e-324" },
        { 2.2250738585072014e-308, "2.2250738585072014e-308" },
        { 1.7976931348623157e308, "1.7976931348623157e+308" },
        { __builtin_nan(""), "NaN" },
        { __builtin_inf(), "+Inf" },
        { -__builtin_inf(), "-Inf" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO_BUF b = { 0 };
        buf_add_double(&b, cases[i].v);
        EXPECT_STR(buf_str(&b), cases[i].text);
    }
}

/* From the first to the last that is not zero. */
static size_t digit_count(struct str s)
{
    size_t n = 0, last = 0;
    for (size_t i = 0; i < s.len && s.p[i] != 'e'; i++) {
        n += char_is_digit(s.p[i]) && (n > 0 || s.p[i] != '0');
        if (char_is_digit(s.p[i]) && s.p[i] != '0')
            last = n;
    }
    return last;
}

TEST(buf_add_double_reads_back_as_itself_and_no_shorter_text_does)
{
    const uint64_t seed = 7;
    struct rng rng;
    rng_init(&rng, seed);
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = rng_next(&rng);
        double v, back;
        memcpy(&v, &bits, sizeof v);
        if (i % 2) /* the numbers that people use */
            v = (double)(int64_t)rng_below(&rng, 100000000) / 1000;
        if (v - v != 0)
            continue; /* not finite */
        AUTO_BUF b = { 0 };
        char shorter[40];
        buf_add_double(&b, v);
        back = strtod(b.p, NULL);
        EXPECT_TRUE(back == v);
        EXPECT_EQ(__builtin_signbit(back), __builtin_signbit(v));
        size_t digits = digit_count(buf_str(&b));
        if (digits < 2)
            continue;
        snprintf(shorter, sizeof shorter, "%.*e", (int)digits - 2, v);
        EXPECT_TRUE(strtod(shorter, NULL) != v);
    }
}

/* Eight bytes are looked at at once: one that is not plain must be found wherever it is. */
TEST(quoting_a_byte_does_not_depend_on_its_place)
{
    for (int byte = 0; byte < 256; byte++) {
        AUTO_BUF alone = { 0 };
        char one = (char)byte;
        buf_add_quoted(&alone, (struct str){ &one, 1 });
        struct str inner = str_sub(buf_str(&alone), 1, alone.len - 2);
        for (size_t place = 0; place < 20; place++) {
            char text[20];
            AUTO_BUF got = { 0 }, want = { 0 };
            memset(text, 'a', sizeof text);
            text[place] = one;
            buf_add_quoted(&got, (struct str){ text, sizeof text });
            buf_addf(&want, "\"%.*s%.*s%.*s\"", (int)place, "aaaaaaaaaaaaaaaaaaaa", STR_ARG(inner),
                     (int)(19 - place), "aaaaaaaaaaaaaaaaaaaa");
            EXPECT_STR(buf_str(&got), want.p);
        }
    }
}

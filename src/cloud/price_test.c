#include "support/test.h"

#include "base/rng.h"
#include "cloud/price.h"
#include "codec/regex.h"

#include <math.h>
#include <stdio.h>

static usd_hour price(const char *text)
{
    usd_hour out = -1;
    struct err err = { 0 };
    EXPECT_OK(usd_hour_parse(str_of(text), &out, &err), err);
    return out;
}

static const char *shown(usd_hour p)
{
    static char texts[8][USD_HOUR_TEXT_MAX];
    static unsigned next;
    char *text = texts[next++ % 8];
    size_t len = usd_hour_format(p, text);
    EXPECT_EQ(strlen(text), len);
    return text;
}

static const char *adjusted(const char *text, const char *by)
{
    struct price_adjustment adjustment = { 0 };
    struct err err = { 0 };
    EXPECT_OK(price_adjustment_parse(str_of(by), &adjustment, &err), err);
    return shown(price_adjust(price(text), &adjustment));
}

/* An absurd text: so many nines between prefix and suffix. */
static struct str long_number(struct buf *b, const char *prefix, size_t digits, const char *suffix)
{
    buf_clear(b);
    buf_addz(b, prefix);
    for (size_t i = 0; i < digits; i++)
        buf_addc(b, '9');
    buf_addz(b, suffix);
    return buf_str(b);
}

TEST(a_price_is_read_and_written_without_loss)
{
    static const char *const texts[] = { "0",
                                         "0.25",
                                         "3",
                                         "0.1",
                                         "0.027147483648",
                                         "0.0190032385536",
                                         "10.5",
                                         "922337.2036854775807",
                                         "0.0000000000001" };
    for (size_t i = 0; i < KV_COUNT_OF(texts); i++)
        EXPECT_Z(shown(price(texts[i])), texts[i]);
    EXPECT_Z(shown(price("007.500")), "7.5");
    EXPECT_EQ(price("1"), USD_HOUR_ONE);
    EXPECT_EQ(price("922337.2036854775807"), USD_HOUR_MAX);
}

TEST(digits_beyond_the_thirteenth_are_rounded_half_up)
{
    EXPECT_Z(shown(price("0.00000000000004")), "0");
    EXPECT_Z(shown(price("0.00000000000005")), "0.0000000000001");
    EXPECT_Z(shown(price("0.00000000000014999")), "0.0000000000001");
    EXPECT_Z(shown(price("0.99999999999995")), "1");
    EXPECT_Z(shown(price("0.1234567890123456789012345678901234567890")), "0.1234567890123");
}

TEST(what_is_no_price_is_refused)
{
    static const char *const texts[] = { "",
                                         "-1",
                                         "+1",
                                         ".5",
                                         "5.",
                                         "1e3",
                                         "1,5",
                                         " 1",
                                         "1 ",
                                         "0x1",
                                         "1.2.3",
                                         "nan",
                                         "922337.2036854775808",
                                         "1000000",
                                         "0.1$" };
    for (size_t i = 0; i < KV_COUNT_OF(texts); i++) {
        usd_hour out = -1;
        struct err err = { 0 };
        EXPECT_ERR(usd_hour_parse(str_of(texts[i]), &out, &err), err, ERR_INVALID);
        EXPECT_EQ(out, -1);
    }
    AUTO_BUF b = { 0 };
    usd_hour out;
    struct err err = { 0 };
    EXPECT_ERR(usd_hour_parse(long_number(&b, "1", 400, ""), &out, &err), err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), "too large");
    EXPECT_OK(usd_hour_parse(long_number(&b, "0.", 400, ""), &out, &err), err);
    EXPECT_EQ(out, USD_HOUR_ONE);
}

TEST(a_json_number_becomes_the_nearest_price)
{
    static const char *const texts[] = { "0",       "0.1",    "0.027147483648", "0.0190032385536",
                                         "55.0944", "0.0042", "899.0123456789", "1e-30" };
    for (size_t i = 0; i < KV_COUNT_OF(texts); i++) {
        usd_hour out = -1;
        struct err err = { 0 };
        EXPECT_OK(usd_hour_from_double(strtod(texts[i], NULL), &out, &err), err);
        EXPECT_Z(shown(out), i == KV_COUNT_OF(texts) - 1 ? "0" : texts[i]);
    }
    static const double refused[] = { -0.01,     -1e-300, (double)NAN, (double)INFINITY,
                                      922337.21, 1e300 };
    for (size_t i = 0; i < KV_COUNT_OF(refused); i++) {
        usd_hour out = -1;
        struct err err = { 0 };
        EXPECT_ERR(usd_hour_from_double(refused[i], &out, &err), err, ERR_INVALID);
    }
}

TEST(a_price_written_as_a_double_is_read_back_as_itself)
{
    uint64_t seed = 20;
    printf("# seed %llu\n", (unsigned long long)seed);
    struct rng rng;
    rng_init(&rng, seed);
    for (int i = 0; i < 20000; i++) {
        /* Up to 112 dollars a double is finer than our unit. */
        usd_hour p = (usd_hour)rng_below(&rng, (uint64_t)1 << (1 + rng_below(&rng, 50))), back;
        struct err err = { 0 };
        EXPECT_OK(usd_hour_from_double(usd_hour_double(p), &back, &err), err);
        EXPECT_EQ(back, p);
        EXPECT_EQ(price(shown(p)), p);
    }
}

TEST(sums_stop_at_the_largest_price)
{
    EXPECT_EQ(usd_hour_sum(price("0.1"), price("0.2")), price("0.3"));
    EXPECT_EQ(usd_hour_sum(USD_HOUR_MAX, USD_HOUR_MAX), USD_HOUR_MAX);
    EXPECT_EQ(usd_hour_sum(USD_HOUR_MAX - 1, 1), USD_HOUR_MAX);
}

TEST(an_adjustment_is_exact)
{
    EXPECT_Z(adjusted("0.1", "+10%"), "0.11");
    EXPECT_Z(adjusted("0.027147483648", "-30%"), "0.0190032385536"); /* spot of kwok's c-1x */
    EXPECT_Z(adjusted("0.1", "+0.2"), "0.3");
    EXPECT_Z(adjusted("0.3", "-0.1"), "0.2");
    EXPECT_Z(adjusted("0.3", "-.1"), "0.2");
    EXPECT_Z(adjusted("2", "-12.5%"), "1.75");
    EXPECT_Z(adjusted("2", "+.5%"), "2.01");
    EXPECT_Z(adjusted("1.9", "+0%"), "1.9");
    EXPECT_Z(adjusted("1.9", "-0"), "1.9");
    EXPECT_Z(adjusted("1", "+33.3333333333333%"), "1.3333333333333");
    EXPECT_Z(adjusted("4", "+300%"), "16");
}

TEST(an_adjustment_is_rounded_half_up)
{
    EXPECT_Z(adjusted("0.0000000000001", "-50%"), "0.0000000000001"); /* a half */
    EXPECT_Z(adjusted("0.0000000000003", "-50%"), "0.0000000000002");
    EXPECT_Z(adjusted("0.0000000000001", "-51%"), "0");
    EXPECT_Z(adjusted("0.0000000000001", "+49%"), "0.0000000000001");
    EXPECT_Z(adjusted("0.0000000000001", "+50%"), "0.0000000000002");
    EXPECT_Z(adjusted("1", "+0.00000000000005"), "1.0000000000001");
}

TEST(no_adjustment_leads_below_zero_or_beyond_the_largest_price)
{
    AUTO_BUF b = { 0 };
    EXPECT_Z(adjusted("0.1", "-0.2"), "0");
    EXPECT_Z(adjusted("0.1", "-100%"), "0");
    EXPECT_Z(adjusted("0", "+99999999999999999999%"), "0");
    EXPECT_Z(adjusted("0.1", "+99999999999999999999%"), "922337.2036854775807");
    EXPECT_Z(adjusted("900000", "+900000"), "922337.2036854775807");
    EXPECT_Z(adjusted("922337", "+100%"), "922337.2036854775807");
    EXPECT_Z(adjusted("922337.2036854775807", "-50%"), "461168.6018427387904");
    EXPECT_Z(adjusted("0.0000000000001", long_number(&b, "+", 400, "%").p), "922337.2036854775807");
    EXPECT_Z(adjusted("0", long_number(&b, "+", 400, "").p), "922337.2036854775807");
    EXPECT_Z(adjusted("9", long_number(&b, "-", 400, "").p), "0");
    EXPECT_Z(adjusted("9", long_number(&b, "+0.", 400, "%").p), "9.09");
}

#define SCHEMA_PATTERN                                                                             \
    "^(([+-]{1}(\\d*\\.?\\d+))|(\\+{1}\\d*\\.?\\d+%)|(^(-\\d{1,2}(\\.\\d+)?%)$)|(-100%))$"

static bool is_adjustment(struct str text)
{
    struct price_adjustment by;
    struct err err = { 0 };
    int rc = price_adjustment_parse(text, &by, &err);
    EXPECT_TRUE(rc == 0 || err.kind == ERR_INVALID);
    return rc == 0;
}

TEST(exactly_the_adjustments_that_the_schema_allows_are_read)
{
    static const char *const refused[] = { "",     "5",    "10%",  "+",     "-",       "+.",
                                           "+5.",  "+%",   "+-5",  "-101%", "-100.5%", "-100.0%",
                                           "-.5%", "+5%%", "+1e3", "+5 ",   "- 5" };
    for (size_t i = 0; i < KV_COUNT_OF(refused); i++)
        EXPECT_FALSE(is_adjustment(str_of(refused[i])));

    /* All texts of up to six characters of an alphabet that has everything special. */
    static const char alphabet[] = "+-.%10";
    uint32_t checked = 0;
    for (uint32_t len = 0; len <= 6; len++) {
        uint32_t total = 1;
        for (uint32_t i = 0; i < len; i++)
            total *= 6;
        for (uint32_t n = 0; n < total; n++, checked++) {
            char text[8] = "";
            for (uint32_t i = 0, rest = n; i < len; i++, rest /= 6)
                text[i] = alphabet[rest % 6];
            bool want = regex_match_static(SCHEMA_PATTERN, str_of(text));
            if (is_adjustment(str_of(text)) != want)
                printf("# differs: %s\n", text);
            EXPECT_EQ(is_adjustment(str_of(text)), want);
        }
    }
    printf("# %u texts\n", checked);
}

TEST(percentages_agree_with_long_division)
{
    uint64_t seed = 7;
    printf("# seed %llu\n", (unsigned long long)seed);
    struct rng rng;
    rng_init(&rng, seed);
    for (int i = 0; i < 20000; i++) {
        /* Small enough for plain 64-bit arithmetic in thousandths of a percent. */
        uint64_t p = rng_below(&rng, (uint64_t)1 << 40), milli = rng_below(&rng, 100000);
        bool negative = rng_below(&rng, 2);
        char text[40];
        snprintf(text, sizeof text, "%c%u.%03u%%", negative ? '-' : '+', (unsigned)(milli / 1000),
                 (unsigned)(milli % 1000));
        struct price_adjustment by;
        struct err err = { 0 };
        EXPECT_OK(price_adjustment_parse(str_of(text), &by, &err), err);
        uint64_t share = negative ? 100000 - milli : 100000 + milli;
        EXPECT_EQ(price_adjust((usd_hour)p, &by), (p * share + 50000) / 100000);
    }
}

#include "support/test.h"

#include "base/rng.h"
#include "codec/quantity.h"

#include <inttypes.h>
#include <stdio.h>

static struct quantity q(const char *text)
{
    struct quantity out;
    struct err err;
    EXPECT_OK(quantity_parse(str_of(text), &out, &err), err);
    return out;
}

static struct str text_of(struct quantity quantity, char out[QUANTITY_TEXT_MAX])
{
    size_t len = quantity_format(quantity, out);
    EXPECT_EQ(strlen(out), len);
    EXPECT_TRUE(len < QUANTITY_TEXT_MAX);
    return (struct str){ out, len };
}

enum { D = QUANTITY_DECIMAL, B = QUANTITY_BINARY, E = QUANTITY_EXPONENT };

/* What k8s.io/apimachinery v0.34 makes of these texts. Whole units and milli are rounded away from
 * zero, also where its own Value() slips on negative numbers (it says -101 for -0.1Ki). */
static const struct vector {
    const char *text, *canonical;
    int64_t units, milli;
    unsigned format;
} vectors[] = {
    { "0", "0", 0, 0, D },
    { "-0", "0", 0, 0, D },
    { "+0", "0", 0, 0, D },
    { "0.0", "0", 0, 0, D },
    { "00", "0", 0, 0, D },
    { "0Gi", "0", 0, 0, B },
    { "0e99", "0", 0, 0, E },
    { "0n", "0", 0, 0, D },
    { "1", "1", 1, 1000, D },
    { "+1", "1", 1, 1000, D },
    { "-1", "-1", -1, -1000, D },
    { "007", "7", 7, 7000, D },
    { "100", "100", 100, 100000, D },
    { "1000", "1k", 1000, 1000000, D },
    { "1000000", "1M", 1000000, 1000000000, D },
    { "1.", "1", 1, 1000, D },
    { ".5", "500m", 1, 500, D },
    { "0.5", "500m", 1, 500, D },
    { "-.5", "-500m", -1, -500, D },
    { "1.5", "1500m", 2, 1500, D },
    { "1.500", "1500m", 2, 1500, D },
    { "-1.5", "-1500m", -2, -1500, D },
    { "10.01", "10010m", 11, 10010, D },
    { "1n", "1n", 1, 1, D },
    { "1u", "1u", 1, 1, D },
    { "1m", "1m", 1, 1, D },
    { "1k", "1k", 1000, 1000000, D },
    { "1M", "1M", 1000000, 1000000000, D },
    { "1G", "1G", 1000000000, 1000000000000, D },
    { "1T", "1T", 1000000000000, 1000000000000000, D },
    { "1P", "1P", 1000000000000000, 1000000000000000000, D },
    { "1E", "1E", 1000000000000000000, INT64_MAX, D },
    { "1Ki", "1Ki", 1024, 1024000, B },
    { "1Mi", "1Mi", 1048576, 1048576000, B },
    { "1Gi", "1Gi", 1073741824, 1073741824000, B },
    { "1Ti", "1Ti", 1099511627776, 1099511627776000, B },
    { "1Pi", "1Pi", 1125899906842624, 1125899906842624000, B },
    { "1Ei", "1Ei", 1152921504606846976, INT64_MAX, B },
    { "7Ei", "7Ei", 8070450532247928832, INT64_MAX, B },
    { "-7Ei", "-7Ei", -8070450532247928832, -INT64_MAX, B },
    { "1500m", "1500m", 2, 1500, D },
    { "1000m", "1", 1, 1000, D },
    { "100m", "100m", 1, 100, D },
    { "-100m", "-100m", -1, -100, D },
    { "2500u", "2500u", 1, 3, D },
    { "1000n", "1u", 1, 1, D },
    { "999n", "999n", 1, 1, D },
    { "1500k", "1500k", 1500000, 1500000000, D },
    { "1000k", "1M", 1000000, 1000000000, D },
    { "1001M", "1001M", 1001000000, 1001000000000, D },
    { "1e3", "1e3", 1000, 1000000, E },
    { "1E3", "1e3", 1000, 1000000, E },
    { "1e+3", "1e3", 1000, 1000000, E },
    { "1e03", "1e3", 1000, 1000000, E },
    { "1e0", "1", 1, 1000, E },
    { "1e2", "100", 100, 100000, E },
    { "12e6", "12e6", 12000000, 12000000000, E },
    { "100e1", "1e3", 1000, 1000000, E },
    { "1e-1", "100e-3", 1, 100, E },
    { "1500e-3", "1500e-3", 2, 1500, E },
    { "1e-9", "1e-9", 1, 1, E },
    { "1.5E", "1500P", 1500000000000000000, INT64_MAX, D },
    { "1.5E3", "1500", 1500, 1500000, E },
    { "1E18", "1e18", 1000000000000000000, INT64_MAX, E },
    { "1E-3", "1e-3", 1, 1, E },
    { "3E2", "300", 300, 300000, E },
    { "1023Ki", "1023Ki", 1047552, 1047552000, B },
    { "1024Ki", "1Mi", 1048576, 1048576000, B },
    { "1025Ki", "1025Ki", 1049600, 1049600000, B },
    { "1536Ki", "1536Ki", 1572864, 1572864000, B },
    { "1048576Ki", "1Gi", 1073741824, 1073741824000, B },
    { "1.5Gi", "1536Mi", 1610612736, 1610612736000, B },
    { "1.5Ki", "1536", 1536, 1536000, B },
    { "0.5Ki", "512", 512, 512000, B },
    { "1.1Ki", "1126400m", 1127, 1126400, B },
    { "0.1Ki", "102400m", 103, 102400, B },
    { "-0.1Ki", "-102400m", -103, -102400, B },
    { "0.0001Ki", "102400u", 1, 103, D },
    { "0.0009Ki", "921600u", 1, 922, D },
    { "-0.0005Ki", "-512m", -1, -512, D },
    { "1.Ki", "1Ki", 1024, 1024000, B },
    { ".5Mi", "512Ki", 524288, 524288000, B },
    { "-1Ki", "-1Ki", -1024, -1024000, B },
    { "-1023Ki", "-1023Ki", -1047552, -1047552000, B },
    { "1Ki", "1Ki", 1024, 1024000, B },
    { "1e-10", "1e-9", 1, 1, E },
    { "0.1n", "1n", 1, 1, D },
    { "-0.1n", "-1n", -1, -1, D },
    { "0.0000000001", "1n", 1, 1, D },
    { "1.0000000001", "1000000001n", 2, 1001, D },
    { "1.123456789", "1123456789n", 2, 1124, D },
    { "1.1234567891", "1123456790n", 2, 1124, D },
    { "-1.1234567891", "-1123456790n", -2, -1124, D },
    { "0.000000000000000000000000000000000001", "1n", 1, 1, D },
    { "1.123456789123Ti", "1235253802944628101481n", 1235253802945, 1235253802944629, B },
    { "123456789012.123456789", "123456789012123456789n", 123456789013, 123456789012124, D },
    { "9223372036854775807", "9223372036854775807", 9223372036854775807, INT64_MAX, D },
    { "-9223372036854775807", "-9223372036854775807", -9223372036854775807, -INT64_MAX, D },
    { "9223372036854775806.999999999", "9223372036854775806999999999n", 9223372036854775807,
      INT64_MAX, D },
    { "9223372036854775807n", "9223372036854775807n", 9223372037, 9223372036855, D },
    { "12345678901234567890m", "12345678901234567890m", 12345678901234568, INT64_MAX, D },
    { "7.999999999Ei", "9223372035701854303393153024n", 9223372035701854304, INT64_MAX, B },
    { "100.1Pi", "112702580674946662400m", 112702580674946663, INT64_MAX, B },
    { "3Gi", "3Gi", 3221225472, 3221225472000, B },
    { "64Gi", "64Gi", 68719476736, 68719476736000, B },
    { "16384Mi", "16Gi", 17179869184, 17179869184000, B },
    { "7910096Ki", "7910096Ki", 8099938304, 8099938304000, B },
    { "950m", "950m", 1, 950, D },
    { "3920m", "3920m", 4, 3920, D },
    { "0.25", "250m", 1, 250, D },
    { "2000000000", "2G", 2000000000, 2000000000000, D },
};

TEST(quantity_reads_and_writes_what_kubernetes_does)
{
    for (size_t i = 0; i < KV_COUNT_OF(vectors); i++) {
        const struct vector *v = &vectors[i];
        struct quantity parsed = q(v->text);
        char text[QUANTITY_TEXT_MAX], got[200], want[200];
        text_of(parsed, text);
        snprintf(got, sizeof got, "%s is %s, %" PRId64 ", %" PRId64 "m, format %u", v->text, text,
                 quantity_units(parsed), quantity_milli(parsed), parsed.format);
        snprintf(want, sizeof want, "%s is %s, %" PRId64 ", %" PRId64 "m, format %u", v->text,
                 v->canonical, v->units, v->milli, v->format);
        EXPECT_Z(got, want);
    }
}

static struct err expect_refused(struct str text)
{
    struct quantity out = { 42, 7, QUANTITY_BINARY };
    struct err err = { 0 };
    if (quantity_parse(text, &out, &err) == 0)
        fail_msg("\"%.*s\" was accepted", STR_ARG(text));
    EXPECT_EQ(err.kind, ERR_INVALID);
    EXPECT_EQ(out.units, 42);
    return err;
}

TEST(quantity_refuses_what_kubernetes_refuses)
{
    static const char *const texts[] = {
        "",         " ",
        "1 ",       " 1",
        "x",        "1x",
        "--1",      "+-1",
        "1-",       "1.2.3",
        "1..2",     "0x10",
        "1,5",      "1_000",
        "1e",       "1e+",
        "1ee3",     "1e1.5",
        "1e3Ki",    "1E5E",
        "1K",       "1ki",
        "1mi",      "1KI",
        "1Kii",     "1KiB",
        "1B",       "1g",
        "1mm",      "1i",
        "NaN",      "inf",
        "1\n",      "1e 3",
        "Ki1",      "1Zi",
        "1Y",       "1e9223372036854775808",
        "\xd9\xa1", "1\xc2\xbd",
    };
    for (size_t i = 0; i < KV_COUNT_OF(texts); i++) {
        expect_refused(str_of(texts[i]));
    }
    expect_refused(STR("1\0"));
    expect_refused(STR("1\0i"));
    expect_refused(STR_NONE);
}

/* Where we differ on purpose: Kubernetes takes a text without digits for zero, clamps or keeps what
 * is beyond 2^63-1 and then computes with its low 64 bits, and cuts an exponent to 32 bits. */
TEST(quantity_refuses_what_kubernetes_would_misread)
{
    static const char *const no_digits[] = { "+", "-", ".", "m", "Ki", "-Gi", "e3", ".e3", "+E" };
    static const char *const too_large[] = {
        "9223372036854775808",
        "-9223372036854775808",
        "9223372036854775807.000000001",
        "9223372036854775807.0000000000000000001",
        "10E",
        "-10E",
        "8Ei",
        "-8Ei",
        "7.9999999999999999999Ei",
        "8191.999999999999999999Pi",
        "1e19",
        "1e30",
        "1e4294967297",
        "1e9223372036854775807",
        "100000000000000000000",
    };
    for (size_t i = 0; i < KV_COUNT_OF(no_digits); i++)
        expect_refused(str_of(no_digits[i]));
    for (size_t i = 0; i < KV_COUNT_OF(too_large); i++)
        EXPECT_HAS(str_of(expect_refused(str_of(too_large[i])).text), "out of range");
}

TEST(quantity_of_a_tiny_exponent_is_rounded_up_not_lost)
{
    EXPECT_EQ(quantity_cmp(q("1e-100"), q("1n")), 0);
    EXPECT_EQ(quantity_cmp(q("-1e-9223372036854775808"), q("-1n")), 0);
    EXPECT_TRUE(quantity_is_zero(q("0e9223372036854775807")));
}

TEST(quantity_takes_any_number_of_digits)
{
    AUTO_BUF text = { 0 };
    struct quantity out;
    struct err err;
    for (int i = 0; i < 1000; i++)
        buf_addc(&text, '0');
    buf_addz(&text, "12.");
    for (int i = 0; i < 1000; i++)
        buf_addc(&text, '0');
    EXPECT_OK(quantity_parse(buf_str(&text), &out, &err), err);
    EXPECT_EQ(quantity_cmp(out, quantity_of(12)), 0);
    buf_addz(&text, "1Ki"); /* one more than 12Ki can be told from it only by rounding up */
    EXPECT_OK(quantity_parse(buf_str(&text), &out, &err), err);
    EXPECT_EQ(quantity_cmp(out, q("12288.000000001")), 0);
}

TEST(quantity_errors_say_what_is_wrong)
{
    struct quantity out;
    struct err err;
    quantity_parse(STR("12Q"), &out, &err);
    EXPECT_HAS(str_of(err.text), "unknown suffix \"Q\"");
    quantity_parse(STR("lots"), &out, &err);
    EXPECT_HAS(str_of(err.text), "expected a quantity such as 1500m or 2Gi, found \"lots\"");
    quantity_parse(STR("\033[2J"), &out, &err); /* nothing that a terminal would obey */
    EXPECT_HAS(str_of(err.text), "found \"\\u001b[2J\"");
}

TEST(quantity_results_take_the_format_of_the_first_that_is_not_zero)
{
    static const struct {
        const char *a, *b, *sum, *difference;
    } cases[] = {
        { "1Gi", "1G", "2073741824", "73741824" },
        { "0", "1Gi", "1Gi", "-1Gi" },
        { "0Gi", "1G", "1G", "-1G" },
        { "1G", "1Gi", "2073741824", "-73741824" },
        { "1Gi", "1Gi", "2Gi", "0" },
        { "1Gi", "1", "1073741825", "1073741823" },
        { "1Gi", "500m", "1073741824500m", "1073741823500m" },
        { "900Mi", "124Mi", "1Gi", "776Mi" },
        { "1e3", "1k", "2e3", "0" },
        { "0.0001Ki", "1Ki", "1024102400u", "-1023897600u" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        struct quantity out;
        struct err err;
        char text[QUANTITY_TEXT_MAX];
        EXPECT_OK(quantity_add(q(cases[i].a), q(cases[i].b), &out, &err), err);
        EXPECT_STR(text_of(out, text), cases[i].sum);
        EXPECT_OK(quantity_sub(q(cases[i].a), q(cases[i].b), &out, &err), err);
        EXPECT_STR(text_of(out, text), cases[i].difference);
    }
}

TEST(quantity_arithmetic_refuses_overflow_and_writes_nothing)
{
    struct quantity max = quantity_of(INT64_MAX), min = quantity_of(-INT64_MAX);
    struct quantity out = quantity_of(42);
    struct err err;
    EXPECT_ERR(quantity_add(max, q("1n"), &out, &err), err, ERR_INVALID);
    EXPECT_ERR(quantity_add(max, max, &out, &err), err, ERR_INVALID);
    EXPECT_ERR(quantity_sub(min, q("1n"), &out, &err), err, ERR_INVALID);
    EXPECT_ERR(quantity_sub(min, max, &out, &err), err, ERR_INVALID);
    EXPECT_ERR(quantity_mul(max, 2, &out, &err), err, ERR_INVALID);
    EXPECT_ERR(quantity_mul(max, INT64_MIN, &out, &err), err, ERR_INVALID);
    EXPECT_ERR(quantity_mul(q("1001m"), INT64_MAX, &out, &err), err, ERR_INVALID);
    EXPECT_EQ(out.units, 42);
    EXPECT_OK(quantity_sub(max, max, &out, &err), err);
    EXPECT_TRUE(quantity_is_zero(out));
    EXPECT_OK(quantity_mul(max, -1, &out, &err), err);
    EXPECT_EQ(quantity_cmp(out, min), 0);
    EXPECT_OK(quantity_mul(max, 0, &out, &err), err);
    EXPECT_TRUE(quantity_is_zero(out));
    EXPECT_OK(quantity_mul(q("-1500m"), 3, &out, &err), err);
    EXPECT_EQ(quantity_cmp(out, q("-4.5")), 0);
    EXPECT_OK(quantity_mul(q("1n"), INT64_MIN, &out, &err), err);
    EXPECT_EQ(quantity_cmp(out, q("-9223372036.854775808")), 0);
}

TEST(quantity_of_milli_is_exact)
{
    char text[QUANTITY_TEXT_MAX];
    EXPECT_STR(text_of(quantity_of_milli(1500), text), "1500m");
    EXPECT_STR(text_of(quantity_of_milli(-2000), text), "-2");
    EXPECT_STR(text_of(quantity_of_milli(INT64_MIN), text), "-9223372036854775808m");
    EXPECT_EQ(quantity_milli(quantity_of_milli(INT64_MAX)), INT64_MAX);
}

TEST(quantity_equal_values_are_equal_bytes)
{
    struct quantity a = q("1.5Gi"), b = q("1536Mi");
    EXPECT_EQ(sizeof a, 16);
    EXPECT_EQ(memcmp(&a, &b, sizeof a), 0);
    EXPECT_EQ(quantity_cmp(a, q("1610612736")), 0); /* in another format, equal but not the same */
}

/* --- against a model: decimal digits in an array, and school arithmetic --- */

#define BIG_DIGITS 200

struct big {
    bool negative;
    uint8_t digits[BIG_DIGITS]; /* the lowest first */
};

static int big_cmp_size(const struct big *a, const struct big *b)
{
    for (size_t i = BIG_DIGITS; i-- > 0;) {
        if (a->digits[i] != b->digits[i])
            return a->digits[i] < b->digits[i] ? -1 : 1;
    }
    return 0;
}

static int big_cmp(const struct big *a, const struct big *b)
{
    static const struct big zero;
    bool a_below = a->negative && big_cmp_size(a, &zero) != 0;
    bool b_below = b->negative && big_cmp_size(b, &zero) != 0;
    if (a_below != b_below)
        return a_below ? -1 : 1;
    return a_below ? -big_cmp_size(a, b) : big_cmp_size(a, b);
}

/* n = n * factor + carry */
static void big_mul_small(struct big *n, unsigned factor, unsigned carry)
{
    for (size_t i = 0; i < BIG_DIGITS; i++) {
        carry += n->digits[i] * factor;
        n->digits[i] = (uint8_t)(carry % 10);
        carry /= 10;
    }
    EXPECT_EQ(carry, 0);
}

static void big_tenth_rounded_up(struct big *n, bool *inexact)
{
    *inexact |= n->digits[0] != 0;
    memmove(n->digits, n->digits + 1, BIG_DIGITS - 1);
    n->digits[BIG_DIGITS - 1] = 0;
}

static struct big big_add(const struct big *a, const struct big *b)
{
    struct big sum = *a;
    const struct big *small = b;
    if (a->negative != b->negative && big_cmp_size(a, b) < 0) {
        sum = *b;
        small = a;
    }
    int sign = a->negative == b->negative ? 1 : -1, carry = 0;
    for (size_t i = 0; i < BIG_DIGITS; i++) {
        int d = sum.digits[i] + sign * small->digits[i] + carry;
        carry = d > 9 ? 1 : d < 0 ? -1 : 0;
        sum.digits[i] = (uint8_t)(d - 10 * carry);
    }
    return sum;
}

static struct big big_of(struct quantity quantity)
{
    char text[64];
    struct big n = { .negative = quantity.units < 0 || quantity.nano < 0 };
    snprintf(text, sizeof text, "%" PRId64 "%09d", quantity.units,
             quantity.nano < 0 ? -quantity.nano : quantity.nano);
    for (const char *p = text; *p; p++) {
        if (*p != '-')
            big_mul_small(&n, 10, (unsigned)(*p - '0'));
    }
    return n;
}

static const struct {
    const char *text;
    int exponent, shift;
} suffixes[] = {
    { "", 0, 0 },    { "n", -9, 0 },  { "u", -6, 0 },   { "m", -3, 0 },     { "k", 3, 0 },
    { "M", 6, 0 },   { "G", 9, 0 },   { "T", 12, 0 },   { "P", 15, 0 },     { "E", 18, 0 },
    { "Ki", 0, 10 }, { "Mi", 0, 20 }, { "Gi", 0, 30 },  { "Ti", 0, 40 },    { "Pi", 0, 50 },
    { "Ei", 0, 60 }, { "e3", 3, 0 },  { "E-4", -4, 0 }, { "e-12", -12, 0 }, { "e+1", 1, 0 },
};

/* A random text, and what it stands for in nano. */
static void random_text(struct rng *rng, struct buf *text, struct big *value)
{
    size_t suffix = (size_t)rng_below(rng, KV_COUNT_OF(suffixes));
    size_t whole = (size_t)rng_below(rng, 1 + rng_below(rng, 20));
    size_t fraction = (size_t)rng_below(rng, 1 + rng_below(rng, 20));
    *value = (struct big){ .negative = rng_below(rng, 3) == 0 };
    buf_clear(text);
    buf_addz(text, value->negative ? "-" : "");
    for (size_t i = 0; i < whole + fraction || i == 0; i++) {
        char digit = (char)('0' + (rng_below(rng, 3) ? rng_below(rng, 10) : 0));
        if (i == whole)
            buf_addc(text, '.');
        buf_addc(text, digit);
        big_mul_small(value, 10, (unsigned)(digit - '0'));
    }
    if (whole + fraction == 0)
        fraction = 1; /* the one digit after the point */
    buf_addz(text, suffixes[suffix].text);

    bool inexact = false;
    int tens = 9 + suffixes[suffix].exponent - (int)fraction;
    for (int i = 0; i < suffixes[suffix].shift; i++)
        big_mul_small(value, 2, 0);
    for (int i = 0; i < tens; i++)
        big_mul_small(value, 10, 0);
    for (int i = 0; i > tens; i--)
        big_tenth_rounded_up(value, &inexact);
    if (inexact)
        big_mul_small(value, 1, 1);
}

static void expect_same(const struct big *got, const struct big *want)
{
    EXPECT_EQ(big_cmp(got, want), 0);
}

TEST(quantity_agrees_with_school_arithmetic)
{
    const uint64_t seed = 20260102;
    print_message("# seed %" PRIu64 "\n", seed);
    struct rng rng;
    rng_init(&rng, seed);
    struct big limit = big_of(quantity_of(INT64_MAX));
    struct quantity last = quantity_of(0);
    struct big last_value = { 0 };
    AUTO_BUF text = { 0 };
    int refused = 0;
    for (int i = 0; i < 20000; i++) {
        struct big value;
        struct quantity got, sum;
        struct err err;
        random_text(&rng, &text, &value);
        bool fits = big_cmp_size(&value, &limit) <= 0;
        if (fits != (quantity_parse(buf_str(&text), &got, &err) == 0))
            fail_msg("%s: %s", text.p, fits ? err.text : "should not fit");
        if (!fits) {
            refused++;
            continue;
        }
        struct big got_value = big_of(got);
        expect_same(&got_value, &value);

        int order = quantity_cmp(last, got);
        EXPECT_EQ((order > 0) - (order < 0), big_cmp(&last_value, &value));

        struct big sum_value = big_add(&last_value, &value);
        bool sum_fits = big_cmp_size(&sum_value, &limit) <= 0;
        EXPECT_EQ(quantity_add(last, got, &sum, &err) == 0, sum_fits);
        if (sum_fits) {
            got_value = big_of(sum);
            expect_same(&got_value, &sum_value);
            struct quantity back;
            EXPECT_OK(quantity_sub(sum, got, &back, &err), err);
            EXPECT_EQ(quantity_cmp(back, last), 0);
        }
        last = got;
        last_value = value;
    }
    EXPECT_TRUE(refused > 500);
    EXPECT_TRUE(refused < 10000);
}

TEST(quantity_text_read_back_is_the_same_value)
{
    const uint64_t seed = 20260103;
    print_message("# seed %" PRIu64 "\n", seed);
    struct rng rng;
    rng_init(&rng, seed);
    for (int i = 0; i < 20000; i++) {
        unsigned bits = (unsigned)rng_below(&rng, 63);
        int64_t units = (int64_t)(rng_next(&rng) >> (1 + bits));
        int32_t nano = rng_below(&rng, 2) ? (int32_t)rng_below(&rng, 1000000000) : 0;
        int sign = rng_below(&rng, 2) && units < INT64_MAX ? -1 : 1;
        unsigned zeros = (unsigned)rng_below(&rng, bits + 1);
        struct quantity want = { .units = sign * (units >> zeros << zeros),
                                 .nano = units == INT64_MAX ? 0 : sign * nano,
                                 .format = (enum quantity_format)rng_below(&rng, 3) };
        char text[QUANTITY_TEXT_MAX], again[QUANTITY_TEXT_MAX];
        struct quantity got = q(text_of(want, text).p);
        EXPECT_EQ(quantity_cmp(got, want), 0);
        /* 1025000 in the binary format is read back as decimal, and becomes 1025k. */
        if (want.format != QUANTITY_BINARY)
            EXPECT_STR(text_of(got, again), text);
    }
}

TEST(quantity_longest_text_fits)
{
    char text[QUANTITY_TEXT_MAX];
    struct quantity longest = { -(INT64_MAX - 1), -999999999, QUANTITY_EXPONENT };
    EXPECT_STR(text_of(longest, text), "-9223372036854775806999999999e-9");
}

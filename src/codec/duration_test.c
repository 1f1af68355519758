#include "support/test.h"

#include "base/rng.h"
#include "codec/duration.h"

#include <inttypes.h>
#include <stdio.h>

/* What Go's time.ParseDuration and Duration.String make of these texts. */
static const struct {
    const char *text;
    int64_t ns;
    const char *canonical;
} vectors[] = {
    { "0", 0, "0s" },
    { "-0", 0, "0s" },
    { "+0", 0, "0s" },
    { "0s", 0, "0s" },
    { "5s", 5000000000, "5s" },
    { "30s", 30000000000, "30s" },
    { "1478s", 1478000000000, "24m38s" },
    { "-5s", -5000000000, "-5s" },
    { "+5s", 5000000000, "5s" },
    { "5.0s", 5000000000, "5s" },
    { "5.6s", 5600000000, "5.6s" },
    { "5.s", 5000000000, "5s" },
    { ".5s", 500000000, "500ms" },
    { "-.5s", -500000000, "-500ms" },
    { "1.0s", 1000000000, "1s" },
    { "1.00s", 1000000000, "1s" },
    { "1.004s", 1004000000, "1.004s" },
    { "1.0040s", 1004000000, "1.004s" },
    { "100.00100s", 100001000000, "1m40.001s" },
    { "10ns", 10, "10ns" },
    { "11us", 11000,
      "11\xc2\xb5"
      "s" },
    { "12\xc2\xb5"
      "s",
      12000,
      "12\xc2\xb5"
      "s" },
    { "12\xce\xbc"
      "s",
      12000,
      "12\xc2\xb5"
      "s" },
    { "13ms", 13000000, "13ms" },
    { "14s", 14000000000, "14s" },
    { "15m", 900000000000, "15m0s" },
    { "16h", 57600000000000, "16h0m0s" },
    { "3h30m", 12600000000000, "3h30m0s" },
    { "10.5s4m", 250500000000, "4m10.5s" },
    { "-2m3.4s", -123400000000, "-2m3.4s" },
    { "1h2m3s4ms5us6ns", 3723004005006, "1h2m3.004005006s" },
    { "39h9m14.425s", 140954425000000, "39h9m14.425s" },
    { "52763797000ns", 52763797000, "52.763797s" },
    { "0.3333333333333333333h", 1200000000000, "20m0s" },
    { "9007199254740993ns", 9007199254740993, "2501h59m59.254740993s" },
    { "9223372036854775807ns", 9223372036854775807, "2562047h47m16.854775807s" },
    { "9223372036854775.807us", 9223372036854775807, "2562047h47m16.854775807s" },
    { "9223372036s854ms775us807ns", 9223372036854775807, "2562047h47m16.854775807s" },
    { "-9223372036854775808ns", INT64_MIN, "-2562047h47m16.854775808s" },
    { "-9223372036854775.808us", INT64_MIN, "-2562047h47m16.854775808s" },
    { "-9223372036s854ms775us808ns", INT64_MIN, "-2562047h47m16.854775808s" },
    { "-2562047h47m16.854775808s", INT64_MIN, "-2562047h47m16.854775808s" },
    { "0.100000000000000000000h", 360000000000, "6m0s" },
    { "0.830103483285477580700h", 2988372539827, "49m48.372539827s" },
    { "0.000000000000s", 0, "0s" },
    { "1m1m1m", 180000000000, "3m0s" },
    { "1s1h", 3601000000000, "1h0m1s" },
    { "0.9999999999ns", 0, "0s" },
    { "1.9ns", 1, "1ns" },
    { "00001h", 3600000000000, "1h0m0s" },
    { "0.1ns", 0, "0s" },
    { "1h0.0000000000001h", 3600000000000, "1h0m0s" },
    { "720h", 2592000000000000, "720h0m0s" },
    { "168h", 604800000000000, "168h0m0s" },
    { "24h", 86400000000000, "24h0m0s" },
    { "15m0s", 900000000000, "15m0s" },
    { "1.5h", 5400000000000, "1h30m0s" },
    { "999ns", 999, "999ns" },
    { "1001ns", 1001,
      "1.001\xc2\xb5"
      "s" },
    { "1500us", 1500000, "1.5ms" },
    { "999999ns", 999999,
      "999.999\xc2\xb5"
      "s" },
    { "1000001ns", 1000001, "1.000001ms" },
    { "999999999ns", 999999999, "999.999999ms" },
    { "1000000001ns", 1000000001, "1.000000001s" },
    { "59.999999999s", 59999999999, "59.999999999s" },
    { "2562047h", 9223369200000000000, "2562047h0m0s" },
};

static int64_t parse(const char *text)
{
    int64_t ns = 0;
    struct err err = { 0 };
    if (duration_parse(str_of(text), &ns, &err) < 0)
        fail_msg("\"%s\": %s", text, err.text);
    return ns;
}

static struct err expect_refused(struct str text)
{
    int64_t ns = 42;
    struct err err = { 0 };
    if (duration_parse(text, &ns, &err) == 0)
        fail_msg("\"%.*s\" was accepted", STR_ARG(text));
    EXPECT_EQ(err.kind, ERR_INVALID);
    EXPECT_EQ(ns, 42);
    return err;
}

TEST(duration_reads_and_writes_what_go_does)
{
    for (size_t i = 0; i < KV_COUNT_OF(vectors); i++) {
        char text[DURATION_TEXT_MAX], got[200], want[200];
        int64_t ns = parse(vectors[i].text);
        size_t len = duration_format(ns, text);
        EXPECT_EQ(len, strlen(text));
        snprintf(got, sizeof got, "%s is %" PRId64 ", %s", vectors[i].text, ns, text);
        snprintf(want, sizeof want, "%s is %" PRId64 ", %s", vectors[i].text, vectors[i].ns,
                 vectors[i].canonical);
        EXPECT_Z(got, want);
    }
}

TEST(duration_refuses_what_go_refuses)
{
    static const char *const texts[] = {
        "",
        "3",
        "-",
        "s",
        ".",
        "-.",
        ".s",
        "+.s",
        "1d",
        "1w",
        "1y",
        "1 s",
        " 1s",
        "1s ",
        "1h 2m",
        "1.2.3s",
        "1..2s",
        "--1s",
        "1s-1s",
        "1S",
        "1H",
        "1sec",
        "1e3s",
        "0x1s",
        "1\xc2\xb5",
        "1us1",
        "3000000h",
        "9223372036854775808ns",
        "-9223372036854775809ns",
        "9223372036854775.808us",
        "18446744073709551616ns",
        "2562048h",
        "2562047h47m16.854775808s",
        "1m1",
        "-h",
        "Never",
        "inf",
        "1s\n",
        "1\xb5s",
    };
    for (size_t i = 0; i < KV_COUNT_OF(texts); i++)
        expect_refused(str_of(texts[i]));
    expect_refused(STR("1s\0"));
    expect_refused(STR_NONE);
}

TEST(duration_errors_say_what_is_wrong)
{
    EXPECT_HAS(str_of(expect_refused(STR("90")).text), "needs a unit");
    EXPECT_HAS(str_of(expect_refused(STR("1d")).text), "units are h, m, s, ms, us and ns: \"1d\"");
    EXPECT_HAS(str_of(expect_refused(STR("soon")).text), "such as 1h30m");
    EXPECT_HAS(str_of(expect_refused(STR("9999999h")).text), "at most 292 years");
}

TEST(duration_text_read_back_is_the_same_duration)
{
    const uint64_t seed = 20260102;
    print_message("# seed %" PRIu64 "\n", seed);
    struct rng rng;
    rng_init(&rng, seed);
    for (int i = 0; i < 50000; i++) {
        int64_t want = (int64_t)rng_next(&rng) >> rng_below(&rng, 64);
        char text[DURATION_TEXT_MAX];
        duration_format(want, text);
        EXPECT_EQ(parse(text), want);
    }
}

TEST(duration_for_people_has_two_units_or_one_decimal)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        { "0s", "0s" },
        { "1ns", "1ns" },
        { "999ns", "999ns" },
        { "1us", "1us" },
        { "1.25us", "1.3us" },
        { "999.94us", "999.9us" },
        { "999.95us", "1ms" },
        { "850ms", "850ms" },
        { "12.34ms", "12.3ms" },
        { "1s", "1s" },
        { "1.5s", "1.5s" },
        { "59.94s", "59.9s" },
        { "59.95s", "1m" },
        { "1m", "1m" },
        { "12m30s", "12m30s" },
        { "12m30.4s", "12m30s" },
        { "59m59.4s", "59m59s" },
        { "59m59.5s", "1h" },
        { "1h1m", "1h1m" },
        { "2h0m29s", "2h" },
        { "23h59m29s", "23h59m" },
        { "23h59m30s", "1d" },
        { "24h29m", "1d" },
        { "76h", "3d4h" },
        { "8760h", "365d" },
        { "-90s", "-1m30s" },
        { "-2562047h47m16.854775808s", "-106752d" },
        { "2562047h47m16.854775807s", "106752d" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        char text[DURATION_TEXT_MAX];
        size_t len = duration_format_short(parse(cases[i].text), text);
        EXPECT_EQ(len, strlen(text));
        EXPECT_Z(text, cases[i].want);
    }
}

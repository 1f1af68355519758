#include "support/test.h"

#include "base/rng.h"
#include "codec/duration.h"

#include <inttypes.h>
#include <stdio.h>

/* What Go's time.Parse and Time.Format make of these texts. */
static const struct {
    const char *text;
    int64_t us;
    const char *seconds, *micros;
} vectors[] = {
    { "1970-01-01T00:00:00Z", 0, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000Z" },
    { "2026-01-02T15:04:05Z", 1767366245000000, "2026-01-02T15:04:05Z",
      "2026-01-02T15:04:05.000000Z" },
    { "2026-01-02T15:04:05+02:00", 1767359045000000, "2026-01-02T13:04:05Z",
      "2026-01-02T13:04:05.000000Z" },
    { "2026-01-02T15:04:05-07:30", 1767393245000000, "2026-01-02T22:34:05Z",
      "2026-01-02T22:34:05.000000Z" },
    { "2026-01-02T00:30:00+01:00", 1767310200000000, "2026-01-01T23:30:00Z",
      "2026-01-01T23:30:00.000000Z" },
    { "2026-01-02T15:04:05.1Z", 1767366245100000, "2026-01-02T15:04:05Z",
      "2026-01-02T15:04:05.100000Z" },
    { "2026-01-02T15:04:05.123456Z", 1767366245123456, "2026-01-02T15:04:05Z",
      "2026-01-02T15:04:05.123456Z" },
    { "2026-01-02T15:04:05.123456789Z", 1767366245123456, "2026-01-02T15:04:05Z",
      "2026-01-02T15:04:05.123456Z" },
    { "2026-01-02T15:04:05.999999999999Z", 1767366245999999, "2026-01-02T15:04:05Z",
      "2026-01-02T15:04:05.999999Z" },
    { "1969-12-31T23:59:59Z", -1000000, "1969-12-31T23:59:59Z", "1969-12-31T23:59:59.000000Z" },
    { "1969-12-31T23:59:59.999999Z", -1, "1969-12-31T23:59:59Z", "1969-12-31T23:59:59.999999Z" },
    { "1969-12-31T23:59:58.000001-00:01", 58000001, "1970-01-01T00:00:58Z",
      "1970-01-01T00:00:58.000001Z" },
    { "0001-01-01T00:00:00Z", -62135596800000000, "0001-01-01T00:00:00Z",
      "0001-01-01T00:00:00.000000Z" },
    { "9999-12-31T23:59:59.999999Z", 253402300799999999, "9999-12-31T23:59:59Z",
      "9999-12-31T23:59:59.999999Z" },
    { "2000-02-29T12:00:00Z", 951825600000000, "2000-02-29T12:00:00Z",
      "2000-02-29T12:00:00.000000Z" },
    { "2024-02-29T23:59:59Z", 1709251199000000, "2024-02-29T23:59:59Z",
      "2024-02-29T23:59:59.000000Z" },
    { "1900-03-01T00:00:00Z", -2203891200000000, "1900-03-01T00:00:00Z",
      "1900-03-01T00:00:00.000000Z" },
    { "2100-02-28T23:59:59-00:01", 4107542459000000, "2100-03-01T00:00:59Z",
      "2100-03-01T00:00:59.000000Z" },
    { "2026-06-30T23:59:59+00:00", 1782863999000000, "2026-06-30T23:59:59Z",
      "2026-06-30T23:59:59.000000Z" },
    { "2026-01-02T15:04:05+23:59", 1767279905000000, "2026-01-01T15:05:05Z",
      "2026-01-01T15:05:05.000000Z" },
    { "2026-01-02T15:04:05-23:59", 1767452585000000, "2026-01-03T15:03:05Z",
      "2026-01-03T15:03:05.000000Z" },
    { "2038-01-19T03:14:08Z", 2147483648000000, "2038-01-19T03:14:08Z",
      "2038-01-19T03:14:08.000000Z" },
};

static int64_t parse(const char *text)
{
    int64_t us = 0;
    struct err err = { 0 };
    if (time_parse(str_of(text), &us, &err) < 0)
        fail_msg("\"%s\": %s", text, err.text);
    return us;
}

static struct err expect_refused(struct str text)
{
    int64_t us = 42;
    struct err err = { 0 };
    if (time_parse(text, &us, &err) == 0)
        fail_msg("\"%.*s\" was accepted", STR_ARG(text));
    EXPECT_EQ(err.kind, ERR_INVALID);
    EXPECT_EQ(us, 42);
    return err;
}

TEST(time_reads_and_writes_what_go_does)
{
    for (size_t i = 0; i < KV_COUNT_OF(vectors); i++) {
        char seconds[TIME_TEXT_MAX], micros[TIME_TEXT_MAX], got[200], want[200];
        int64_t us = parse(vectors[i].text);
        size_t seconds_len = time_format(us, seconds), micros_len = time_format_micro(us, micros);
        EXPECT_EQ(seconds_len, strlen(seconds));
        EXPECT_EQ(micros_len, strlen(micros));
        snprintf(got, sizeof got, "%s is %" PRId64 ", %s, %s", vectors[i].text, us, seconds,
                 micros);
        snprintf(want, sizeof want, "%s is %" PRId64 ", %s, %s", vectors[i].text, vectors[i].us,
                 vectors[i].seconds, vectors[i].micros);
        EXPECT_Z(got, want);
    }
}

TEST(time_refuses_what_go_refuses)
{
    static const char *const texts[] = {
        "",
        "2026",
        "2026-01-02",
        "2026-01-02T15:04Z",
        "2026-01-02T15:04:05",
        "2026-01-02t15:04:05Z",
        "2026-01-02T15:04:05z",
        "2026-01-02 15:04:05Z",
        "2026-1-02T15:04:05Z",
        "26-01-02T15:04:05Z",
        "02026-01-02T15:04:05Z",
        "2026-13-02T15:04:05Z",
        "2026-00-02T15:04:05Z",
        "2026-01-00T15:04:05Z",
        "2026-01-32T15:04:05Z",
        "2026-04-31T15:04:05Z",
        "2026-02-29T15:04:05Z",
        "1900-02-29T15:04:05Z",
        "2026-01-02T24:00:00Z",
        "2026-01-02T15:60:05Z",
        "2026-01-02T15:04:60Z",
        "2016-12-31T23:59:60Z",
        "2026-01-02T15:04:05.Z",
        "2026-01-02T15:04:05Z ",
        "2026-01-02T15:04:05ZZ",
        "2026-01-02T15:04:05+0100",
        "2026-01-02T15:04:05+01",
        "2026-01-02T15:04:05+1:00",
        "2026-01-02T15:04:05+25:00",
        "2026-01-02T15:04:05+01:61",
        "2026-01-02T15:04:05 +01:00",
        "2026/01/02T15:04:05Z",
        "2026-01-02T15:04:05.1.2Z",
        "2026-01-02T-5:04:05Z",
        "+026-01-02T15:04:05Z",
        "1767366245",
    };
    for (size_t i = 0; i < KV_COUNT_OF(texts); i++)
        expect_refused(str_of(texts[i]));
    expect_refused(STR("2026-01-02T15:04:05Z\0"));
    expect_refused(STR_NONE);
}

/* Go takes these; RFC 3339 does not, or they are outside years 1 to 9999. */
TEST(time_refuses_what_only_go_takes)
{
    static const char *const texts[] = {
        "2026-01-02T5:04:05Z",       "2026-01-02T15:04:05,5Z", "2026-01-02T15:04:05+24:00",
        "2026-01-02T15:04:05+01:60", "0000-12-31T23:59:59Z",   "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
    };
    for (size_t i = 0; i < KV_COUNT_OF(texts); i++)
        expect_refused(str_of(texts[i]));
}

TEST(time_errors_say_what_is_wrong)
{
    EXPECT_HAS(str_of(expect_refused(STR("yesterday")).text),
               "expected a time such as 2026-01-02T15:04:05Z, found \"yesterday\"");
    EXPECT_HAS(str_of(expect_refused(STR("2026-02-30T00:00:00Z")).text), "no such date");
    EXPECT_HAS(str_of(expect_refused(STR("0001-01-01T00:00:00+01:00")).text), "years 1 to 9999");
}

TEST(time_outside_the_calendar_is_written_as_its_nearest)
{
    char text[TIME_TEXT_MAX];
    time_format_micro(INT64_MIN, text);
    EXPECT_Z(text, "0001-01-01T00:00:00.000000Z");
    time_format_micro(INT64_MAX, text);
    EXPECT_Z(text, "9999-12-31T23:59:59.999999Z");
}

/* Every day there is, counted by hand from the first one, a Monday. */
TEST(civil_dates_follow_one_another_from_year_1_to_9999)
{
    int64_t unix_s = TIME_S_MIN;
    uint8_t weekday = 1;
    for (int32_t year = 1; year <= 9999; year++) {
        for (unsigned month = 1; month <= 12; month++) {
            unsigned count = month == 2                                              ? 28
                             : month == 4 || month == 6 || month == 9 || month == 11 ? 30
                                                                                     : 31;
            if (month == 2 && (year % 400 == 0 || (year % 4 == 0 && year % 100 != 0)))
                count = 29;
            EXPECT_EQ(civil_days_in_month(year, month), count);
            for (unsigned day = 1; day <= count; day++, unix_s += 86400) {
                struct civil c = civil_of(unix_s), last = civil_of(unix_s + 86399);
                if (c.year != year || c.month != month || c.day != day || c.weekday != weekday ||
                    c.hour + c.minute + c.second != 0 || civil_to_unix(&c) != unix_s)
                    fail_msg("%d-%u-%u is taken for %d-%u-%u", year, month, day, c.year, c.month,
                             c.day);
                if (last.day != day || last.hour != 23 || last.minute != 59 || last.second != 59)
                    fail_msg("the last second of %d-%u-%u is wrong", year, month, day);
                weekday = (uint8_t)((weekday + 1) % 7);
            }
        }
    }
    EXPECT_EQ(unix_s, TIME_S_MAX + 1);
}

TEST(time_text_read_back_is_the_same_time)
{
    const uint64_t seed = 20260102;
    print_message("# seed %" PRIu64 "\n", seed);
    struct rng rng;
    rng_init(&rng, seed);
    for (int i = 0; i < 50000; i++) {
        int64_t s = TIME_S_MIN + (int64_t)rng_below(&rng, (uint64_t)(TIME_S_MAX - TIME_S_MIN + 1));
        int64_t want = s * 1000000 + (int64_t)rng_below(&rng, 1000000);
        char text[TIME_TEXT_MAX];
        time_format_micro(want, text);
        EXPECT_EQ(parse(text), want);
        time_format(want, text);
        EXPECT_EQ(parse(text), s * 1000000);
    }
}

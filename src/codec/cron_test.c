#include "support/test.h"

#include "base/rng.h"
#include "codec/cron.h"
#include "codec/duration.h"

#include <inttypes.h>
#include <stdio.h>

static struct cron cron(const char *text)
{
    struct cron c = { 0 };
    struct err err = { 0 };
    if (cron_parse(str_of(text), &c, &err) < 0)
        fail_msg("\"%s\": %s", text, err.text);
    return c;
}

static struct err expect_refused(struct str text)
{
    struct cron c = { .minutes = 42 };
    struct err err = { 0 };
    if (cron_parse(text, &c, &err) == 0)
        fail_msg("\"%.*s\" was accepted", STR_ARG(text));
    EXPECT_EQ(err.kind, ERR_INVALID);
    EXPECT_EQ(c.minutes, 42);
    return err;
}

static int64_t at(const char *text)
{
    int64_t us;
    struct err err;
    EXPECT_OK(time_parse(str_of(text), &us, &err), err);
    return us / 1000000;
}

static const char *text_of(bool found, int64_t unix_s, char out[TIME_TEXT_MAX])
{
    if (!found)
        return "never";
    time_format(unix_s * 1000000, out);
    return out;
}

/* What github.com/robfig/cron v3's standard parser makes of these, in UTC. */
static const struct {
    const char *schedule, *after, *next; /* NULL: none for five years */
} vectors[] = {
    { "* * * * *", "2026-01-02T15:04:05Z", "2026-01-02T15:05:00Z" },
    { "* * * * *", "2026-01-02T15:04:00Z", "2026-01-02T15:05:00Z" },
    { "*/15 * * * *", "2026-01-02T15:04:05Z", "2026-01-02T15:15:00Z" },
    { "5/15 * * * *", "2026-01-02T15:50:00Z", "2026-01-02T16:05:00Z" },
    { "5/15 * * * *", "2026-01-02T15:36:00Z", "2026-01-02T15:50:00Z" },
    { "10-20/3 * * * *", "2026-01-02T15:17:00Z", "2026-01-02T15:19:00Z" },
    { "0 9 * * mon-fri", "2026-01-02T15:04:05Z", "2026-01-05T09:00:00Z" },
    { "0 9 * * MON-Fri", "2026-01-03T00:00:00Z", "2026-01-05T09:00:00Z" },
    { "0 0 1 * *", "2026-01-02T15:04:05Z", "2026-02-01T00:00:00Z" },
    { "0 0 31 * *", "2026-01-31T00:00:00Z", "2026-03-31T00:00:00Z" },
    { "0 0 29 2 *", "2026-01-02T15:04:05Z", "2028-02-29T00:00:00Z" },
    { "0 0 29 2 *", "2096-03-01T00:00:00Z", NULL },
    { "0 0 30 2 *", "2026-01-02T15:04:05Z", NULL },
    { "0 0 31 4,6,9,11 *", "2026-01-02T15:04:05Z", NULL },
    { "0 0 13 * fri", "2026-01-02T15:04:05Z", "2026-01-09T00:00:00Z" },
    { "0 0 13 * fri", "2026-01-10T00:00:00Z", "2026-01-13T00:00:00Z" },
    { "0 0 */2 * fri", "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z" },
    { "0 0 */2 * fri", "2026-01-03T00:00:00Z", "2026-01-05T00:00:00Z" },
    { "0 0 */1 * fri", "2026-01-03T00:00:00Z", "2026-01-09T00:00:00Z" },
    { "0 0 1,* * fri", "2026-01-03T00:00:00Z", "2026-01-09T00:00:00Z" },
    { "0 0 13 * */2", "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z" },
    { "0 0 ? * 1", "2026-01-02T00:00:00Z", "2026-01-05T00:00:00Z" },
    { "0 0 13 * ?", "2026-01-02T00:00:00Z", "2026-01-13T00:00:00Z" },
    { "0 0 1-7 * mon", "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z" },
    { "0 0 * * 0", "2026-01-02T00:00:00Z", "2026-01-04T00:00:00Z" },
    { "0 0 * * mon/2", "2026-01-02T00:00:00Z", "2026-01-05T00:00:00Z" },
    { "59 23 31 12 *", "2026-12-31T23:59:00Z", "2027-12-31T23:59:00Z" },
    { "59 23 31 DEC ?", "2026-12-31T23:58:59Z", "2026-12-31T23:59:00Z" },
    { "0 22 * jan-mar/2 *", "2026-01-31T22:00:00Z", "2026-03-01T22:00:00Z" },
    { "0,30 8-18/5 * * *", "2026-01-02T13:30:00Z", "2026-01-02T18:00:00Z" },
    { "1,,2 * * * *", "2026-01-02T15:04:05Z", "2026-01-02T16:01:00Z" },
    { "+5 * * * *", "2026-01-02T15:04:05Z", "2026-01-02T15:05:00Z" },
    { "*/100 * * * *", "2026-01-02T15:04:05Z", "2026-01-02T16:00:00Z" },
    { "@yearly", "2026-01-02T15:04:05Z", "2027-01-01T00:00:00Z" },
    { "@annually", "2026-01-02T15:04:05Z", "2027-01-01T00:00:00Z" },
    { "@monthly", "2026-01-02T15:04:05Z", "2026-02-01T00:00:00Z" },
    { "@weekly", "2026-01-02T15:04:05Z", "2026-01-04T00:00:00Z" },
    { "@daily", "2026-01-02T15:04:05Z", "2026-01-03T00:00:00Z" },
    { "@midnight", "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z" },
    { "@hourly", "2026-01-02T15:04:05Z", "2026-01-02T16:00:00Z" },
    { "  0\t0   1 1 *  ", "2026-01-02T15:04:05Z", "2027-01-01T00:00:00Z" },
    { " @daily ", "2026-01-02T15:04:05Z", "2026-01-03T00:00:00Z" },
    { "0 0 1 1 *", "1969-12-31T23:59:59Z", "1970-01-01T00:00:00Z" },
};

TEST(cron_fires_when_the_library_that_kubernetes_uses_does)
{
    for (size_t i = 0; i < KV_COUNT_OF(vectors); i++) {
        struct cron c = cron(vectors[i].schedule);
        int64_t next = 0;
        char time[TIME_TEXT_MAX], got[200], want[200];
        bool found = cron_next(&c, at(vectors[i].after), &next);
        snprintf(got, sizeof got, "%s after %s: %s", vectors[i].schedule, vectors[i].after,
                 text_of(found, next, time));
        snprintf(want, sizeof want, "%s after %s: %s", vectors[i].schedule, vectors[i].after,
                 vectors[i].next ? vectors[i].next : "never");
        EXPECT_Z(got, want);
    }
}

TEST(cron_refuses_what_that_library_refuses)
{
    static const char *const texts[] = {
        "",
        "* * * *",
        "* * * * * *",
        "60 * * * *",
        "-1 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * 32 * *",
        "* * * 0 *",
        "* * * 13 *",
        "* * * * 7",
        "* * * * sunday",
        "* * * janu *",
        "* * * mon *",
        "* * * * jan",
        "mon * * * *",
        "5-1 * * * *",
        "* * * * sat-sun",
        "1-2-3 * * * *",
        "*/0 * * * *",
        "*/-1 * * * *",
        "*/ * * * *",
        "*/2/3 * * * *",
        "/2 * * * *",
        "- * * * *",
        "1- * * * *",
        "-5 * * * *",
        "a * * * *",
        "* * L * *",
        "* * 15W * *",
        "* * * * 5#3",
        "1.5 * * * *",
        "@",
        "@Daily",
        "@reboot",
        "@daily x",
        "@ daily",
        "** * * * *",
        "0x5 * * * *",
        "99999999999999999999 * * * *",
    };
    for (size_t i = 0; i < KV_COUNT_OF(texts); i++)
        expect_refused(str_of(texts[i]));
    expect_refused(STR("* * * * *\0"));
    expect_refused(STR_NONE);
}

/* Accepted by that library: they mean nothing, or something that is not in a schedule. */
TEST(cron_refuses_time_zones_and_fields_that_say_nothing)
{
    static const char *const texts[] = {
        "TZ=UTC * * * * *", "CRON_TZ=Europe/Berlin 0 6 * * *",
        "TZ=UTC @daily",    "@every 1h",
        ", * * * *",        "* * * * ,,",
        "*-5 * * * *",      "?-x * * * *",
        "*\xc2\xa0* * * *",
    };
    for (size_t i = 0; i < KV_COUNT_OF(texts); i++)
        expect_refused(str_of(texts[i]));
}

TEST(cron_errors_name_the_field)
{
    EXPECT_HAS(str_of(expect_refused(STR("0 25 * * *")).text), "hour: 25 is not from 0 to 23");
    EXPECT_HAS(str_of(expect_refused(STR("0 0 * foo *")).text),
               "month: \"foo\" is not a number or a name");
    EXPECT_HAS(str_of(expect_refused(STR("0 0 9-3 * *")).text),
               "day of month: \"9-3\" ends before it begins");
    EXPECT_HAS(str_of(expect_refused(STR("0 0 * *")).text), "expected five fields");
    EXPECT_HAS(str_of(expect_refused(STR("@fortnightly")).text), "expected @yearly");
    EXPECT_HAS(str_of(expect_refused(STR("TZ=UTC 0 0 * * *")).text), "no time zone");
}

TEST(cron_looks_back_for_the_previous_activation)
{
    static const struct {
        const char *schedule, *before, *previous;
    } cases[] = {
        { "* * * * *", "2026-01-02T15:04:00Z", "2026-01-02T15:03:00Z" },
        { "* * * * *", "2026-01-02T15:04:01Z", "2026-01-02T15:04:00Z" },
        { "0 9 * * mon-fri", "2026-01-05T09:00:00Z", "2026-01-02T09:00:00Z" },
        { "0 0 29 2 *", "2028-02-29T00:00:00Z", "2024-02-29T00:00:00Z" },
        { "0 0 29 2 *", "2104-02-29T00:00:00Z", "never" },
        { "0 0 30 2 *", "2026-01-02T15:04:05Z", "never" },
        { "0 0 13 * fri", "2026-01-10T00:00:00Z", "2026-01-09T00:00:00Z" },
        { "@yearly", "2026-01-01T00:00:00Z", "2025-01-01T00:00:00Z" },
        { "@monthly", "1970-01-01T00:00:00Z", "1969-12-01T00:00:00Z" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        struct cron c = cron(cases[i].schedule);
        int64_t previous = 0;
        char time[TIME_TEXT_MAX];
        bool found = cron_previous(&c, at(cases[i].before), &previous);
        EXPECT_Z(text_of(found, previous, time), cases[i].previous);
    }
}

TEST(cron_copes_with_the_ends_of_time)
{
    struct cron c = cron("@hourly");
    int64_t t = 42;
    EXPECT_FALSE(cron_next(&c, INT64_MAX, &t));
    EXPECT_FALSE(cron_next(&c, TIME_S_MAX, &t));
    EXPECT_FALSE(cron_next(&c, TIME_S_MAX - 60, &t));
    EXPECT_FALSE(cron_previous(&c, INT64_MIN, &t));
    EXPECT_FALSE(cron_previous(&c, TIME_S_MIN, &t));
    EXPECT_EQ(t, 42);
    EXPECT_TRUE(cron_next(&c, INT64_MIN, &t));
    EXPECT_EQ(t, TIME_S_MIN);
    EXPECT_TRUE(cron_previous(&c, INT64_MAX, &t));
    EXPECT_EQ(t, TIME_S_MAX - 3599);
}

/* --- against a scan, minute by minute --- */

static void random_field(struct rng *rng, struct buf *text, unsigned min, unsigned max)
{
    unsigned from = min + (unsigned)rng_below(rng, max - min + 1);
    unsigned to = from + (unsigned)rng_below(rng, max - from + 1);
    unsigned step = 1 + (unsigned)rng_below(rng, max);
    switch (rng_below(rng, 7)) {
    case 0:
        buf_addf(text, "%u ", from);
        return;
    case 1:
        buf_addf(text, "%u-%u ", from, to);
        return;
    case 2:
        buf_addf(text, "%u-%u/%u ", from, to, step);
        return;
    case 3:
        buf_addf(text, "%u/%u ", from, step);
        return;
    case 4:
        buf_addf(text, "*/%u ", step);
        return;
    case 5:
        buf_addf(text, "%u,%u ", from, to);
        return;
    default:
        buf_addz(text, "* ");
        return;
    }
}

static void random_schedule(struct rng *rng, struct buf *text)
{
    static const struct {
        unsigned min, max;
    } bounds[] = { { 0, 59 }, { 0, 23 }, { 1, 31 }, { 1, 12 }, { 0, 6 } };
    buf_clear(text);
    for (size_t i = 0; i < KV_COUNT_OF(bounds); i++)
        random_field(rng, text, bounds[i].min, bounds[i].max);
}

static bool fires_at(const struct cron *c, int64_t unix_s)
{
    struct civil t = civil_of(unix_s);
    bool day = c->days >> t.day & 1, weekday = c->weekdays >> t.weekday & 1;
    bool any = c->day_any || c->weekday_any;
    return t.second == 0 && c->minutes >> t.minute & 1 && c->hours >> t.hour & 1 &&
           c->months >> t.month & 1 && (any ? day && weekday : day || weekday);
}

TEST(cron_agrees_with_a_scan_of_every_minute)
{
    enum { SCAN_MINUTES = 40000 }; /* four weeks */
    const uint64_t seed = 20260102;
    print_message("# seed %" PRIu64 "\n", seed);
    struct rng rng;
    rng_init(&rng, seed);
    AUTO_BUF text = { 0 };
    int fired = 0;
    for (int i = 0; i < 400; i++) {
        random_schedule(&rng, &text);
        struct cron c = cron(text.p);
        int64_t start = (int64_t)rng_below(&rng, 4000000000), end = start, found = 0;
        end -= end % 60;
        for (int n = 0; n < SCAN_MINUTES && (n == 0 || !fires_at(&c, end)); n++)
            end += 60;
        bool hit = fires_at(&c, end);
        fired += hit;
        bool next = cron_next(&c, start, &found);
        if (hit ? !next || found != end : next && found <= end)
            fail_msg("\"%s\" after %" PRId64 ": found %" PRId64 ", the scan %s %" PRId64, text.p,
                     start, found, hit ? "found" : "saw nothing until", end);
    }
    EXPECT_TRUE(fired > 100);
    EXPECT_TRUE(fired < 400);
}

TEST(cron_next_and_previous_are_each_others_inverse)
{
    const uint64_t seed = 20260103;
    print_message("# seed %" PRIu64 "\n", seed);
    struct rng rng;
    rng_init(&rng, seed);
    AUTO_BUF text = { 0 };
    for (int i = 0; i < 5000; i++) {
        random_schedule(&rng, &text);
        struct cron c = cron(text.p);
        int64_t t = (int64_t)rng_below(&rng, 4000000000), next, previous, back;
        if (!cron_next(&c, t, &next))
            continue;
        EXPECT_TRUE(next > t);
        EXPECT_TRUE(fires_at(&c, next));
        EXPECT_TRUE(cron_previous(&c, next + 1, &back));
        EXPECT_EQ(back, next);
        if (!cron_previous(&c, next, &previous))
            continue;
        EXPECT_TRUE(previous <= t); /* else `next` was not the first */
        EXPECT_TRUE(cron_next(&c, previous, &back));
        EXPECT_EQ(back, next);
    }
}

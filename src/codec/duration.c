/* Durations: the grammar and the text of Go's time.Duration, to the nanosecond.
 *
 * A duration is a sign and one or more numbers, each with a unit: [-+]?([0-9]*(\.[0-9]*)?unit)+,
 * or a bare 0. The magnitude is summed in 64 unsigned bits up to 2^63, which only a negative
 * duration may reach.
 */
#include "codec/duration.h"

#include <inttypes.h>
#include <stdio.h>

#define MAGNITUDE_MAX ((uint64_t)1 << 63)

static bool at_digit(struct str s)
{
    return s.len && char_is_digit(s.p[0]);
}

static void skip(struct str *s, size_t n)
{
    *s = str_sub(*s, n, s->len);
}

static bool take_whole(struct str *s, uint64_t *out)
{
    uint64_t v = 0;
    for (; at_digit(*s); skip(s, 1)) {
        if (v > MAGNITUDE_MAX / 10)
            return false;
        v = v * 10 + (uint64_t)(s->p[0] - '0');
        if (v > MAGNITUDE_MAX)
            return false;
    }
    *out = v;
    return true;
}

/* digits / scale; digits beyond what 63 bits hold are read and ignored. */
struct fraction {
    uint64_t digits;
    double scale;
};

static struct fraction take_fraction(struct str *s)
{
    struct fraction f = { 0, 1 };
    bool full = false;
    for (; at_digit(*s); skip(s, 1)) {
        uint64_t digit = (uint64_t)(s->p[0] - '0');
        full = full || f.digits > (uint64_t)INT64_MAX / 10 || f.digits * 10 + digit > MAGNITUDE_MAX;
        if (full)
            continue;
        f.digits = f.digits * 10 + digit;
        f.scale *= 10;
    }
    return f;
}

/* Everything up to the next digit or point must be a unit. 0: it is not. */
static uint64_t take_unit(struct str *s)
{
    static const struct {
        const char *text;
        uint64_t ns;
    } units[] = {
        { "s", 1000000000 },
        { "m", 60 * (uint64_t)1000000000 },
        { "h", 3600 * (uint64_t)1000000000 },
        { "ms", 1000000 },
        { "us", 1000 },
        { "\xc2\xb5s", 1000 }, /* U+00B5, the micro sign */
        { "\xce\xbcs", 1000 }, /* U+03BC, the Greek letter */
        { "ns", 1 },
    };
    size_t n = 0;
    while (n < s->len && s->p[n] != '.' && !char_is_digit(s->p[n]))
        n++;
    struct str text = str_sub(*s, 0, n);
    for (size_t i = 0; i < KV_COUNT_OF(units); i++) {
        if (str_eqz(text, units[i].text)) {
            skip(s, n);
            return units[i].ns;
        }
    }
    return 0;
}

/* One number and its unit. NULL, or what is wrong. */
static const char *take_part(struct str *s, uint64_t *out)
{
    static const char too_long[] = "a duration is at most 292 years";
    uint64_t v;
    struct fraction f = { 0, 1 };
    struct str start = *s;
    if (!take_whole(s, &v))
        return too_long;
    size_t digit_count = start.len - s->len;
    if (s->len && s->p[0] == '.') {
        skip(s, 1);
        size_t len = s->len;
        f = take_fraction(s);
        digit_count += len - s->len;
    }
    if (digit_count == 0)
        return "expected a duration such as 1h30m or 300ms";
    uint64_t unit = take_unit(s);
    if (unit == 0)
        return s->len && !at_digit(*s) && s->p[0] != '.'
                   ? "a duration's units are h, m, s, ms, us and ns"
                   : "a duration needs a unit (h, m, s, ms, us, ns)";
    if (v > MAGNITUDE_MAX / unit)
        return too_long;
    v *= unit;
    /* In floating point because Go does: its last nanosecond is ours too. The fraction is of one
     * unit, so at most 3.6e12. */
    v += (uint64_t)((double)f.digits * ((double)unit / f.scale));
    if (v > MAGNITUDE_MAX)
        return too_long;
    *out = v;
    return NULL;
}

int duration_parse(struct str s, int64_t *out_ns, struct err *err)
{
    struct str rest = s;
    bool negative = s.len && s.p[0] == '-';
    if (negative || (s.len && s.p[0] == '+'))
        skip(&rest, 1);
    if (str_eqz(rest, "0")) {
        *out_ns = 0;
        return 0;
    }
    uint64_t sum = 0;
    do {
        uint64_t part = 0;
        const char *problem = take_part(&rest, &part);
        if (!problem && part > MAGNITUDE_MAX - sum)
            problem = "a duration is at most 292 years";
        if (problem)
            return err_set(err, ERR_INVALID, "%s: %s", problem, STR_SHOWN(s));
        sum += part;
    } while (rest.len);
    if (sum == MAGNITUDE_MAX && !negative)
        return err_set(err, ERR_INVALID, "a duration is at most 292 years: %s", STR_SHOWN(s));
    *out_ns = (int64_t)(negative ? -sum : sum);
    return 0;
}

static uint64_t magnitude(int64_t ns)
{
    return ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
}

/* "1", "1.5", "0.000000001": n / 10^places without zeros at the end. */
static void put_decimal(char *out, size_t room, uint64_t n, unsigned places)
{
    uint64_t one = 1;
    for (unsigned i = 0; i < places; i++)
        one *= 10;
    uint64_t fraction = n % one;
    for (; places && fraction % 10 == 0; fraction /= 10)
        places--;
    if (places)
        snprintf(out, room, "%" PRIu64 ".%0*" PRIu64, n / one, (int)places, fraction);
    else
        snprintf(out, room, "%" PRIu64, n / one);
}

size_t duration_format(int64_t ns, char out[DURATION_TEXT_MAX])
{
    uint64_t n = magnitude(ns), minutes = n / (uint64_t)DURATION_MINUTE;
    const char *sign = ns < 0 ? "-" : "";
    char number[48];
    if (n == 0)
        return (size_t)snprintf(out, DURATION_TEXT_MAX, "0s");
    if (n < (uint64_t)DURATION_SECOND) {
        unsigned places = n < 1000 ? 0 : n < 1000000 ? 3 : 6;
        const char *unit = places == 0 ? "ns" : places == 3 ? "\xc2\xb5s" : "ms";
        put_decimal(number, sizeof number, n, places);
        return (size_t)snprintf(out, DURATION_TEXT_MAX, "%s%.12s%s", sign, number, unit);
    }
    put_decimal(number, sizeof number, n % (uint64_t)DURATION_MINUTE, 9);
    if (minutes >= 60)
        return (size_t)snprintf(out, DURATION_TEXT_MAX, "%s%" PRIu64 "h%" PRIu64 "m%.12ss", sign,
                                minutes / 60, minutes % 60, number);
    if (minutes > 0)
        return (size_t)snprintf(out, DURATION_TEXT_MAX, "%s%" PRIu64 "m%.12ss", sign, minutes,
                                number);
    return (size_t)snprintf(out, DURATION_TEXT_MAX, "%s%.12ss", sign, number);
}

size_t duration_format_short(int64_t ns, char out[DURATION_TEXT_MAX])
{
    enum { US = 1000, MS = 1000 * US };
    const uint64_t s = (uint64_t)DURATION_SECOND, m = 60 * s, h = 60 * m, d = 24 * h;
    /* Rounded to `step`, a duration below `end` is written in `unit`, and the rest in steps. */
    const struct {
        uint64_t unit, step, end;
        const char *name, *step_name; /* NULL: a decimal instead */
    } scales[] = {
        { 1, 1, US, "ns", NULL },       { US, US / 10, MS, "us", NULL },
        { MS, MS / 10, s, "ms", NULL }, { s, s / 10, m, "s", NULL },
        { m, s, h, "m", "s" },          { h, m, d, "h", "m" },
        { d, h, UINT64_MAX, "d", "h" },
    };
    uint64_t n = magnitude(ns), rounded = 0;
    size_t i = 0;
    for (;; i++) {
        rounded = (n + scales[i].step / 2) / scales[i].step * scales[i].step;
        if (rounded < scales[i].end)
            break;
    }
    const char *sign = ns < 0 ? "-" : "", *name = n ? scales[i].name : "s";
    uint64_t count = rounded / scales[i].unit, rest = rounded % scales[i].unit / scales[i].step;
    if (rest == 0)
        return (size_t)snprintf(out, DURATION_TEXT_MAX, "%s%" PRIu64 "%s", sign, count, name);
    if (!scales[i].step_name)
        return (size_t)snprintf(out, DURATION_TEXT_MAX, "%s%" PRIu64 ".%" PRIu64 "%s", sign, count,
                                rest, name);
    return (size_t)snprintf(out, DURATION_TEXT_MAX, "%s%" PRIu64 "%s%" PRIu64 "%s", sign, count,
                            name, rest, scales[i].step_name);
}

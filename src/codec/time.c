/* Times: RFC 3339 text, and the proleptic Gregorian calendar underneath.
 *
 * Days are counted from 1 March of year 0. With the leap day last in the year, a date is plain
 * arithmetic: y years make 365y + y/4 - y/100 + y/400 days, and the five-month pattern of 31, 30,
 * 31, 30, 31 days that runs from March makes the first m months (153m + 2)/5 days.
 *
 * The text accepted is RFC 3339 proper. Go's parser, which the API server uses, also lets an hour
 * of one digit, a comma before the fraction and an offset of 24:60 pass; we refuse those. Like Go
 * we want T and Z in upper case and know no second 60.
 */
#include "codec/duration.h"

#include <stdio.h>

#define DAY_S 86400
#define MICRO 1000000
#define EPOCH_DAY 719468  /* 1970-01-01 */
#define CYCLE_DAYS 146097 /* in 400 years, after which the calendar repeats */

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static int64_t days_before_year(int64_t year)
{
    return 365 * year + year / 4 - year / 100 + year / 400;
}

struct civil civil_of(int64_t unix_s)
{
    KV_ASSERT(unix_s >= TIME_S_MIN);
    KV_ASSERT(unix_s <= TIME_S_MAX);
    int64_t day = floor_div(unix_s, DAY_S);
    int64_t second = unix_s - day * DAY_S;
    day += EPOCH_DAY;

    /* Near its first and last days a year may be taken for its neighbour. */
    int64_t year = day * 400 / CYCLE_DAYS;
    year -= days_before_year(year) > day;
    year += days_before_year(year + 1) <= day;
    int64_t day_of_year = day - days_before_year(year);
    int64_t month = (5 * day_of_year + 2) / 153; /* from March */
    int64_t day_of_month = day_of_year - (153 * month + 2) / 5;

    return (struct civil){
        .year = (int32_t)(year + (month >= 10)),
        .month = (uint8_t)(month < 10 ? month + 3 : month - 9),
        .day = (uint8_t)(day_of_month + 1),
        .hour = (uint8_t)(second / 3600),
        .minute = (uint8_t)(second / 60 % 60),
        .second = (uint8_t)(second % 60),
        .weekday = (uint8_t)((day + 3) % 7), /* 1 March of year 0 was a Wednesday */
    };
}

int64_t civil_to_unix(const struct civil *c)
{
    int64_t year = c->year - (c->month <= 2);
    int64_t month = c->month <= 2 ? c->month + 9 : c->month - 3;
    int64_t day = days_before_year(year) + (153 * month + 2) / 5 + c->day - 1 - EPOCH_DAY;
    return day * DAY_S + (int64_t)c->hour * 3600 + (int64_t)c->minute * 60 + c->second;
}

unsigned civil_days_in_month(int32_t year, unsigned month)
{
    static const uint8_t days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return days[month - 1] + (unsigned)(month == 2 && leap);
}

static bool has_digit(struct str s, size_t at)
{
    return at < s.len && char_is_digit(s.p[at]);
}

/* True if the text has the shape: '0' in it stands for a digit, the rest for itself. */
static bool has_shape(struct str s, const char *shape)
{
    size_t len = strlen(shape);
    if (s.len < len)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (shape[i] == '0' ? !has_digit(s, i) : s.p[i] != shape[i])
            return false;
    }
    return true;
}

static unsigned digits(struct str s, size_t at, size_t count)
{
    unsigned v = 0;
    for (size_t i = at; i < at + count; i++)
        v = v * 10 + (unsigned)(s.p[i] - '0');
    return v;
}

/* ".123" and more: microseconds; further digits are dropped. */
static int64_t take_micro(struct str *s)
{
    int64_t micro = 0, weight = MICRO / 10;
    if (!has_shape(*s, ".0"))
        return 0;
    size_t i = 1;
    for (; has_digit(*s, i); i++) {
        micro += (s->p[i] - '0') * weight;
        weight /= 10;
    }
    *s = str_sub(*s, i, s->len);
    return micro;
}

/* "Z", "+01:00": seconds east of UTC. False: neither. */
static bool read_offset(struct str s, int64_t *out)
{
    *out = 0;
    if (str_eqz(s, "Z"))
        return true;
    if (s.len != 6 || !(has_shape(s, "+00:00") || has_shape(s, "-00:00")))
        return false;
    unsigned hour = digits(s, 1, 2), minute = digits(s, 4, 2);
    *out = (int64_t)(hour * 3600 + minute * 60) * (s.p[0] == '-' ? -1 : 1);
    return hour < 24 && minute < 60;
}

static bool is_real(const struct civil *c)
{
    return c->year >= 1 && c->month >= 1 && c->month <= 12 && c->day >= 1 &&
           c->day <= civil_days_in_month(c->year, c->month) && c->hour < 24 && c->minute < 60 &&
           c->second < 60;
}

int time_parse(struct str s, int64_t *out_us, struct err *err)
{
    static const char shape[] = "0000-00-00T00:00:00";
    struct str rest = str_sub(s, sizeof shape - 1, s.len);
    int64_t micro = 0, offset = 0;
    bool shaped = has_shape(s, shape);
    if (shaped)
        micro = take_micro(&rest);
    if (!shaped || !read_offset(rest, &offset))
        return err_set(err, ERR_INVALID, "expected a time such as 2026-01-02T15:04:05Z, found %s",
                       STR_SHOWN(s));

    struct civil c = {
        .year = (int32_t)digits(s, 0, 4),
        .month = (uint8_t)digits(s, 5, 2),
        .day = (uint8_t)digits(s, 8, 2),
        .hour = (uint8_t)digits(s, 11, 2),
        .minute = (uint8_t)digits(s, 14, 2),
        .second = (uint8_t)digits(s, 17, 2),
    };
    if (!is_real(&c))
        return err_set(err, ERR_INVALID, "there is no such date or time: %s", STR_SHOWN(s));
    int64_t unix_s = civil_to_unix(&c) - offset;
    if (unix_s < TIME_S_MIN || unix_s > TIME_S_MAX)
        return err_set(err, ERR_INVALID, "outside years 1 to 9999 in UTC: %s", STR_SHOWN(s));
    *out_us = unix_s * MICRO + micro;
    return 0;
}

static int64_t clamp(int64_t v, int64_t min, int64_t max)
{
    return v < min ? min : v > max ? max : v;
}

static size_t format(int64_t us, bool with_micro, char out[TIME_TEXT_MAX])
{
    us = clamp(us, TIME_S_MIN * MICRO, TIME_S_MAX * MICRO + MICRO - 1);
    int64_t unix_s = floor_div(us, MICRO);
    struct civil c = civil_of(unix_s);
    int n = snprintf(out, TIME_TEXT_MAX, "%04d-%02u-%02uT%02u:%02u:%02u", c.year % 10000, c.month,
                     c.day, c.hour, c.minute, c.second);
    if (with_micro)
        n += snprintf(out + n, TIME_TEXT_MAX - (size_t)n, ".%06u", (unsigned)(us - unix_s * MICRO));
    n += snprintf(out + n, TIME_TEXT_MAX - (size_t)n, "Z");
    return (size_t)n;
}

size_t time_format(int64_t us, char out[TIME_TEXT_MAX])
{
    return format(us, false, out);
}

size_t time_format_micro(int64_t us, char out[TIME_TEXT_MAX])
{
    return format(us, true, out);
}

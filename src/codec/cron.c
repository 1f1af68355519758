/* A schedule is five sets, each a bit mask, and so are the days of one month on which it fires:
 * the set of days and the set of weekdays laid over the month, joined by "or" when both are
 * restricted and by "and" when one of them is a star.
 *
 * The next activation is found from the year down: the next month in its set, the next day in that
 * month's mask, the next hour, the next minute; whenever a set has nothing left, the field above it
 * moves on by one and everything below starts over. Each step is a shift and a count of zeros, so
 * five years of nothing cost some sixty masks. The previous activation is the mirror image.
 *
 * The grammar is that of the library that Kubernetes uses, with four oddities of it refused: a
 * field of nothing but commas, a star followed by a range end ("*-5"), white space other than
 * ASCII's, and @every.
 */
#include "codec/cron.h"

#include "codec/duration.h"

#define YEARS_MAX 5

struct field {
    const char *name;
    unsigned min, max;
    const char *words; /* three letters each, standing for min, min + 1, ... */
};

enum { FIELD_MINUTE, FIELD_HOUR, FIELD_DAY, FIELD_MONTH, FIELD_WEEKDAY, FIELD_COUNT };

static const struct field fields[FIELD_COUNT] = {
    [FIELD_MINUTE] = { "minute", 0, 59, "" },
    [FIELD_HOUR] = { "hour", 0, 23, "" },
    [FIELD_DAY] = { "day of month", 1, 31, "" },
    [FIELD_MONTH] = { "month", 1, 12, "janfebmaraprmayjunjulaugsepoctnovdec" },
    [FIELD_WEEKDAY] = { "day of week", 0, 6, "sunmontuewedthufrisat" },
};

static const struct {
    const char *name, *text;
} macros[] = {
    { "@yearly", "0 0 1 1 *" }, { "@annually", "0 0 1 1 *" }, { "@monthly", "0 0 1 * *" },
    { "@weekly", "0 0 * * 0" }, { "@daily", "0 0 * * *" },    { "@midnight", "0 0 * * *" },
    { "@hourly", "0 * * * *" },
};

/* --- parsing --- */

static bool parse_word(const struct field *f, struct str s, unsigned *out)
{
    if (s.len != 3)
        return false;
    char lower[3];
    for (size_t i = 0; i < sizeof lower; i++)
        lower[i] = char_lower(s.p[i]);
    unsigned value = f->min;
    for (const char *word = f->words; *word; word += sizeof lower, value++) {
        if (memcmp(lower, word, sizeof lower) == 0) {
            *out = value;
            return true;
        }
    }
    return false;
}

/* A number or a word within the field's bounds. */
static int parse_value(const struct field *f, struct str s, unsigned *out, struct err *err)
{
    int64_t n;
    if (parse_word(f, s, out))
        return 0;
    if (!str_to_i64(s, &n))
        return err_set(err, ERR_INVALID, "%s: %s is not a number%s", f->name, STR_SHOWN(s),
                       f->words[0] ? " or a name" : "");
    if (n < f->min || n > f->max)
        return err_set(err, ERR_INVALID, "%s: %lld is not from %u to %u", f->name, (long long)n,
                       f->min, f->max);
    *out = (unsigned)n;
    return 0;
}

/* "*", "5", "1-5", "mon-fri" and any of them with "/2": adds the bits to `set`. */
static int parse_item(const struct field *f, struct str item, uint64_t *set, bool *any,
                      struct err *err)
{
    struct str range, step_text, low, high;
    bool has_step = str_cut(item, '/', &range, &step_text);
    bool has_high = str_cut(range, '-', &low, &high);
    bool star = str_eqz(range, "*") || str_eqz(range, "?");
    unsigned from = f->min, to = f->max;
    if (!star && parse_value(f, low, &from, err) < 0)
        return -1;
    if (has_high && parse_value(f, high, &to, err) < 0)
        return -1;
    if (!star && !has_high && !has_step)
        to = from; /* while "5/15" is 5-59/15 */
    if (from > to)
        return err_set(err, ERR_INVALID, "%s: %s ends before it begins", f->name, STR_SHOWN(item));

    int64_t step = 1;
    if (has_step && (!str_to_i64(step_text, &step) || step < 1))
        return err_set(err, ERR_INVALID, "%s: %s is not a step: expected a number from 1 up",
                       f->name, STR_SHOWN(step_text));
    if (step > f->max) /* one activation, however far the next */
        step = f->max + 1;
    for (int64_t i = from; i <= to; i += step)
        *set |= (uint64_t)1 << i;
    *any |= star && step == 1;
    return 0;
}

static int parse_field(const struct field *f, struct str text, uint64_t *set, bool *any,
                       struct err *err)
{
    struct str item, rest = text;
    bool more;
    do {
        more = str_cut(rest, ',', &item, &rest);
        if (item.len && parse_item(f, item, set, any, err) < 0)
            return -1;
    } while (more);
    if (*set == 0)
        return err_set(err, ERR_INVALID, "%s: nothing but commas", f->name);
    return 0;
}

static bool take_word(struct str *rest, struct str *out)
{
    *rest = str_trim(*rest);
    size_t n = 0;
    while (n < rest->len && !char_is_space(rest->p[n]))
        n++;
    *out = str_sub(*rest, 0, n);
    *rest = str_sub(*rest, n, rest->len);
    return n > 0;
}

static int parse_fields(struct str s, struct cron *out, struct err *err)
{
    struct str words[FIELD_COUNT], extra, rest = s;
    size_t count = 0;
    while (count < FIELD_COUNT && take_word(&rest, &words[count]))
        count++;
    if (count < FIELD_COUNT || take_word(&rest, &extra))
        return err_set(err, ERR_INVALID,
                       "expected five fields (minute, hour, day of month, month, day of week) or a "
                       "macro such as @daily, found %s",
                       STR_SHOWN(s));
    uint64_t sets[FIELD_COUNT] = { 0 };
    bool any[FIELD_COUNT] = { false };
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        if (parse_field(&fields[i], words[i], &sets[i], &any[i], err) < 0)
            return -1;
    }
    *out = (struct cron){
        .minutes = sets[FIELD_MINUTE],
        .hours = (uint32_t)sets[FIELD_HOUR],
        .days = (uint32_t)sets[FIELD_DAY],
        .months = (uint32_t)sets[FIELD_MONTH],
        .weekdays = (uint8_t)sets[FIELD_WEEKDAY],
        .day_any = any[FIELD_DAY],
        .weekday_any = any[FIELD_WEEKDAY],
    };
    return 0;
}

int cron_parse(struct str s, struct cron *out, struct err *err)
{
    struct str text = str_trim(s);
    if (str_starts(text, STR("TZ=")) || str_starts(text, STR("CRON_TZ=")))
        return err_set(err, ERR_INVALID, "a schedule is in UTC and takes no time zone");
    if (!str_starts(text, STR("@")))
        return parse_fields(text, out, err);
    for (size_t i = 0; i < KV_COUNT_OF(macros); i++) {
        if (str_eqz(text, macros[i].name))
            return parse_fields(str_of(macros[i].text), out, err);
    }
    return err_set(err, ERR_INVALID,
                   "unknown macro %s: expected @yearly, @annually, "
                   "@monthly, @weekly, @daily, @midnight or @hourly",
                   STR_SHOWN(text));
}

/* --- searching --- */

/* The first bit of the set at `from` or above, or -1. */
static int bit_up(uint64_t set, int from)
{
    uint64_t left = from > 63 ? 0 : set >> from << from;
    return left ? __builtin_ctzll(left) : -1;
}

/* The last bit of the set at `from` or below, or -1. */
static int bit_down(uint64_t set, int from)
{
    uint64_t left = from < 0 ? 0 : set << (63 - from) >> (63 - from);
    return left ? 63 - __builtin_clzll(left) : -1;
}

/* A minute, in fields that may be one step outside their range while the search moves on. */
struct minute {
    int year, month, day, hour, minute;
};

static int64_t minute_to_unix(const struct minute *m)
{
    return civil_to_unix(&(struct civil){
        .year = m->year,
        .month = (uint8_t)m->month,
        .day = (uint8_t)m->day,
        .hour = (uint8_t)m->hour,
        .minute = (uint8_t)m->minute,
    });
}

static struct minute minute_of(int64_t unix_s)
{
    struct civil c = civil_of(unix_s);
    return (struct minute){ c.year, c.month, c.day, c.hour, c.minute };
}

/* The days of that month on which the schedule fires. */
static uint32_t days_of_month(const struct cron *c, int year, int month)
{
    unsigned day_count = civil_days_in_month(year, (unsigned)month);
    unsigned weekday = civil_of(minute_to_unix(&(struct minute){ year, month, 1, 0, 0 })).weekday;
    uint32_t by_weekday = 0;
    for (unsigned day = 1; day <= day_count; day++, weekday = (weekday + 1) % 7)
        by_weekday |= (uint32_t)(c->weekdays >> weekday & 1) << day;
    uint32_t real = (uint32_t)(((uint64_t)2 << day_count) - 2);
    bool both = c->day_any || c->weekday_any;
    return (both ? c->days & by_weekday : c->days | by_weekday) & real;
}

bool cron_next(const struct cron *c, int64_t after_s, int64_t *out_s)
{
    if (after_s >= TIME_S_MAX)
        return false;
    if (after_s < TIME_S_MIN)
        after_s = TIME_S_MIN - 1;
    struct minute m = minute_of(after_s + 1);
    int year_last = m.year + YEARS_MAX < 9999 ? m.year + YEARS_MAX : 9999;
    m.minute += (after_s + 1) % 60 != 0;
    while (m.year <= year_last) {
        int month = bit_up(c->months, m.month);
        if (month < 0) {
            m = (struct minute){ m.year + 1, 1, 1, 0, 0 };
            continue;
        }
        if (month > m.month)
            m = (struct minute){ m.year, month, 1, 0, 0 };
        int day = bit_up(days_of_month(c, m.year, month), m.day);
        if (day < 0) {
            m = (struct minute){ m.year, month + 1, 1, 0, 0 };
            continue;
        }
        if (day > m.day)
            m = (struct minute){ m.year, month, day, 0, 0 };
        int hour = bit_up(c->hours, m.hour);
        if (hour < 0) {
            m = (struct minute){ m.year, month, day + 1, 0, 0 };
            continue;
        }
        if (hour > m.hour)
            m = (struct minute){ m.year, month, day, hour, 0 };
        m.minute = bit_up(c->minutes, m.minute);
        if (m.minute < 0) {
            m = (struct minute){ m.year, month, day, hour + 1, 0 };
            continue;
        }
        *out_s = minute_to_unix(&m);
        return true;
    }
    return false;
}

bool cron_previous(const struct cron *c, int64_t before_s, int64_t *out_s)
{
    if (before_s <= TIME_S_MIN)
        return false;
    if (before_s > TIME_S_MAX)
        before_s = TIME_S_MAX + 1;
    struct minute m = minute_of(before_s - 1);
    int year_first = m.year - YEARS_MAX > 1 ? m.year - YEARS_MAX : 1;
    while (m.year >= year_first) {
        int month = bit_down(c->months, m.month);
        if (month < 0) {
            m = (struct minute){ m.year - 1, 12, 31, 23, 59 };
            continue;
        }
        if (month < m.month)
            m = (struct minute){ m.year, month, 31, 23, 59 };
        int day = bit_down(days_of_month(c, m.year, month), m.day);
        if (day < 0) {
            m = (struct minute){ m.year, month - 1, 31, 23, 59 };
            continue;
        }
        if (day < m.day)
            m = (struct minute){ m.year, month, day, 23, 59 };
        int hour = bit_down(c->hours, m.hour);
        if (hour < 0) {
            m = (struct minute){ m.year, month, day - 1, 23, 59 };
            continue;
        }
        if (hour < m.hour)
            m = (struct minute){ m.year, month, day, hour, 59 };
        m.minute = bit_down(c->minutes, m.minute);
        if (m.minute < 0) {
            m = (struct minute){ m.year, month, day, hour - 1, 59 };
            continue;
        }
        *out_s = minute_to_unix(&m);
        return true;
    }
    return false;
}

/* codec/duration.h - Go-style durations ("1h30m", "300ms", "-1.5h") and RFC 3339 times.
 *
 * Durations are nanoseconds in an int64, as in Go. Times are microseconds since 1970 in UTC, from
 * year 1 to year 9999; leap seconds do not exist.
 */
#pragma once

#include "base/err.h"

#define DURATION_SECOND ((int64_t)1000000000)
#define DURATION_MINUTE (60 * DURATION_SECOND)
#define DURATION_HOUR (60 * DURATION_MINUTE)

int duration_parse(struct str s, int64_t *out_ns, struct err *err);
#define DURATION_TEXT_MAX 32
size_t duration_format(int64_t ns, char out[DURATION_TEXT_MAX]); /* Go's String(): "1h30m0s" */
/* For people, rounded: two units from a minute up, below that one with at most one decimal.
 * "3d4h", "2h", "12m30s", "1.5s", "850ms". */
size_t duration_format_short(int64_t ns, char out[DURATION_TEXT_MAX]);

/* RFC 3339 with any offset and any number of fractional digits (cut to microseconds). */
int time_parse(struct str s, int64_t *out_us, struct err *err);
/* A time before year 1 or after year 9999 is written as the first or last one that is not. */
#define TIME_TEXT_MAX 32
size_t time_format(int64_t us, char out[TIME_TEXT_MAX]); /* "2026-01-02T15:04:05Z" (metav1.Time) */
size_t time_format_micro(int64_t us, char out[TIME_TEXT_MAX]); /* ".000000Z" (metav1.MicroTime) */

/* 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z */
#define TIME_S_MIN ((int64_t)-62135596800)
#define TIME_S_MAX ((int64_t)253402300799)

struct civil {
    int32_t year;                                      /* 1..9999 */
    uint8_t month, day, hour, minute, second, weekday; /* month, day from 1; weekday 0 = Sunday */
};
struct civil civil_of(int64_t unix_s);        /* from TIME_S_MIN to TIME_S_MAX */
int64_t civil_to_unix(const struct civil *c); /* weekday ignored; the rest must be a real date */
unsigned civil_days_in_month(int32_t year, unsigned month);

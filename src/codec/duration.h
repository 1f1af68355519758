/* codec/duration.h - Go-style durations ("1h30m", "300ms", "-1.5h") and RFC 3339 times.
 *
 * Durations are nanoseconds in an int64, as in Go. Times are milliseconds or microseconds since
 * 1970 in UTC; leap seconds do not exist.
 */
#pragma once

#include "base/err.h"

#define DURATION_SECOND ((int64_t)1000000000)
#define DURATION_MINUTE (60 * DURATION_SECOND)
#define DURATION_HOUR (60 * DURATION_MINUTE)

int duration_parse(struct str s, int64_t *out_ns, struct err *err);
#define DURATION_TEXT_MAX 32
size_t duration_format(int64_t ns, char out[DURATION_TEXT_MAX]); /* Go's String(): "1h30m0s" */
/* For people: the two largest units, rounded: "3d4h", "12m30s", "850ms". */
size_t duration_format_short(int64_t ns, char out[DURATION_TEXT_MAX]);

/* RFC 3339 with any offset and up to nine fractional digits (cut to microseconds). */
int time_parse(struct str s, int64_t *out_us, struct err *err);
#define TIME_TEXT_MAX 32
size_t time_format(int64_t us, char out[TIME_TEXT_MAX]);       /* "2026-01-02T15:04:05Z" (metav1.Time) */
size_t time_format_micro(int64_t us, char out[TIME_TEXT_MAX]); /* ".000000Z" (metav1.MicroTime) */

struct civil {
    int32_t year;                                    /* 1..9999 */
    uint8_t month, day, hour, minute, second, weekday; /* month, day from 1; weekday 0 = Sunday */
};
struct civil civil_of(int64_t unix_s);
int64_t civil_to_unix(const struct civil *c); /* weekday ignored */

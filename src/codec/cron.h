/* codec/cron.h - five-field cron schedules and macros, always UTC.
 *
 * Fields: minute, hour, day of month, month, day of week; lists, ranges, steps, names (jan, mon),
 * `?` as `*`, 7 is not a day of week (as in the library that Kubernetes uses). When both day fields
 * are restricted a day matches if either does. Macros: @yearly @annually @monthly @weekly @daily
 * @midnight @hourly. A leading TZ=/CRON_TZ= is refused: budgets are evaluated in UTC only.
 */
#pragma once

#include "base/err.h"

struct cron {
    uint64_t minutes; /* bit n: minute n */
    uint32_t hours, days, months;
    uint8_t weekdays;
    bool day_any, weekday_any; /* the field was `*` or `?` */
};

int cron_parse(struct str s, struct cron *out, struct err *err);

/* First activation strictly after t, or last one strictly before t (seconds since 1970).
 * False: none until the end of the fifth year from there, so the schedule never fires (30 February)
 * or next to never (29 February, around a year 2100 that has none). */
bool cron_next(const struct cron *c, int64_t after_s, int64_t *out_s);
bool cron_previous(const struct cron *c, int64_t before_s, int64_t *out_s);

/* cloud/price.h - dollars per hour, exactly.
 *
 * A price is a whole number of ten-trillionths of a dollar (13 decimals): every published price and
 * the synthetic catalogue's spot prices are held without loss, sums and comparisons are integer
 * ones, and the largest is 922,337 dollars an hour. There is no floating point on the way from
 * the text of a price to the text of another.
 */
#pragma once

#include "base/err.h"

typedef int64_t usd_hour;

#define USD_HOUR_ONE INT64_C(10000000000000)
#define USD_HOUR_MAX INT64_MAX

/* "0.25": digits, and perhaps a point and more digits. Digits beyond the 13th are rounded half up.
 * ERR_INVALID: not such a text, or more than USD_HOUR_MAX. */
int usd_hour_parse(struct str s, usd_hour *out, struct err *err);
/* From a JSON number: the nearest multiple. ERR_INVALID: negative, not finite or too large. */
int usd_hour_from_double(double d, usd_hour *out, struct err *err);

#define USD_HOUR_TEXT_MAX 24
/* The shortest decimal that means it: "0.0190032385536", "3". Returns the length. */
size_t usd_hour_format(usd_hour price, char out[USD_HOUR_TEXT_MAX]);
double usd_hour_double(usd_hour price); /* for JSON numbers and display only */

usd_hour usd_hour_sum(usd_hour a, usd_hour b); /* saturating */

/* "+0.05", "-.1", "+10%", "-12.5%", "-100%": what a NodeOverlay's priceAdjustment says. Exactly the
 * texts that its schema allows are read, however long: digits beyond the 13th decimal are rounded half
 * up, and an amount too large for any price stands for one that is. Else ERR_INVALID. */
struct price_adjustment {
    bool percent;
    bool negative;
    __extension__ unsigned __int128 amount; /* in 10^-13 dollars, or in 10^-13 percent */
};
int price_adjustment_parse(struct str s, struct price_adjustment *out, struct err *err);
/* Rounded half up to the 13th decimal; never below zero, at most USD_HOUR_MAX. */
usd_hour price_adjust(usd_hour price, const struct price_adjustment *by);

/* Decimal text is read digit by digit into a 128-bit number of 10^-13 dollars and stops growing at
 * AMOUNT_MAX, far above what any price can use; so a text of any length is read in one pass and
 * nothing overflows. A percentage of a price is one 128-bit product and one division.
 */
#include "cloud/price.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

__extension__ typedef unsigned __int128 amount;

#define DECIMALS 13

/* Above it a price is USD_HOUR_MAX whatever is added, and of the price of 10^-13 a percentage this
 * large is more than USD_HOUR_MAX: (2^63 + 1) * 100 * USD_HOUR_ONE < 2^114. The headroom to 2^128
 * keeps `* 10 + 9` from overflowing. */
#define AMOUNT_MAX ((amount)1 << 120)

static amount append(amount n, unsigned digit)
{
    n = n * 10 + digit;
    return n < AMOUNT_MAX ? n : AMOUNT_MAX;
}

/* Digits, perhaps a point and digits after it, off the front of `s`; rounded half up to DECIMALS.
 * False if there are no digits, or none after a point; before one there may be none. */
static bool take_decimal(struct str *s, amount *out)
{
    amount n = 0;
    struct str whole = str_take_digits(s), fraction = { "", 0 };
    bool point = s->len && s->p[0] == '.';
    if (point) {
        *s = str_sub(*s, 1, s->len);
        fraction = str_take_digits(s);
    }
    if (point ? !fraction.len : !whole.len)
        return false;
    for (size_t i = 0; i < whole.len; i++)
        n = append(n, (unsigned)(whole.p[i] - '0'));
    for (size_t i = 0; i < DECIMALS; i++)
        n = append(n, i < fraction.len ? (unsigned)(fraction.p[i] - '0') : 0);
    bool up = fraction.len > DECIMALS && fraction.p[DECIMALS] >= '5';
    *out = n + up;
    return true;
}

/* --- prices --- */

int usd_hour_parse(struct str s, usd_hour *out, struct err *err)
{
    struct str rest = s;
    amount n;
    if (!s.len || !char_is_digit(s.p[0]) || !take_decimal(&rest, &n) || rest.len)
        return err_set(err, ERR_INVALID, "%s is not a price, expected a decimal such as 0.25",
                       STR_SHOWN(s));
    if (n > USD_HOUR_MAX)
        return err_set(err, ERR_INVALID, "the price %s is too large, at most %" PRId64 " is held",
                       STR_SHOWN(s), USD_HOUR_MAX / USD_HOUR_ONE);
    *out = (usd_hour)n;
    return 0;
}

int usd_hour_from_double(double d, usd_hour *out, struct err *err)
{
    if (!isfinite(d) || d < 0)
        return err_set(err, ERR_INVALID, "a price is a number from 0 up, not %g", d);
    if (d >= usd_hour_double(USD_HOUR_MAX))
        return err_set(err, ERR_INVALID, "the price %g is too large, at most %" PRId64 " is held",
                       d, USD_HOUR_MAX / USD_HOUR_ONE);
    /* d is mantissa * 2^-shift, exactly, and below 2^20: 53 bits times 44 bits, shifted by at least
     * 33. What is shifted by more than 100 is less than a quarter of our unit. */
    int exponent;
    amount mantissa = (amount)(uint64_t)ldexp(frexp(d, &exponent), 53);
    int shift = 53 - exponent;
    amount half = shift <= 100 ? (amount)1 << (shift - 1) : 0;
    *out = shift <= 100 ? (usd_hour)((mantissa * USD_HOUR_ONE + half) >> shift) : 0;
    return 0;
}

size_t usd_hour_format(usd_hour price, char out[USD_HOUR_TEXT_MAX])
{
    KV_ASSERT(price >= 0);
    int len = snprintf(out, USD_HOUR_TEXT_MAX, "%" PRId64 ".%013" PRId64, price / USD_HOUR_ONE,
                       price % USD_HOUR_ONE);
    while (out[len - 1] == '0')
        len--;
    if (out[len - 1] == '.')
        len--;
    out[len] = '\0';
    return (size_t)len;
}

double usd_hour_double(usd_hour price)
{
    return (double)price / (double)USD_HOUR_ONE;
}

static usd_hour clamped(amount n)
{
    return n < USD_HOUR_MAX ? (usd_hour)n : USD_HOUR_MAX;
}

usd_hour usd_hour_sum(usd_hour a, usd_hour b)
{
    return clamped((amount)a + (amount)b);
}

/* --- adjustments --- */

#define HUNDRED_PERCENT ((amount)100 * USD_HOUR_ONE)

/* A percentage that is taken off has one or two digits before the point, or is 100 to the letter:
 * what the schema of NodeOverlay allows, and so never more than all of the price. */
static bool may_be_taken_off(struct str percent)
{
    struct str rest = percent, whole = str_take_digits(&rest);
    return whole.len == 1 || whole.len == 2 || str_eq(percent, STR("100%"));
}

int price_adjustment_parse(struct str s, struct price_adjustment *out, struct err *err)
{
    struct price_adjustment by = { .negative = s.len && s.p[0] == '-' };
    bool has_sign = by.negative || (s.len && s.p[0] == '+');
    struct str unsigned_ = str_sub(s, has_sign, s.len), rest = unsigned_;
    bool good = has_sign && take_decimal(&rest, &by.amount);
    by.percent = good && str_eq(rest, STR("%"));
    if (!good || (rest.len && !by.percent))
        return err_set(err, ERR_INVALID,
                       "%s is not a change of price, expected a sign and a decimal or a percentage "
                       "such as +0.05 or -10%%",
                       STR_SHOWN(s));
    if (by.percent && by.negative && !may_be_taken_off(unsigned_))
        return err_set(err, ERR_INVALID,
                       "%s is not a reduction, expected -0%% to -99.9%%, or -100%%", STR_SHOWN(s));
    *out = by;
    return 0;
}

/* price * percent / 100, rounded half up; a product that would not fit is more than any price. */
static amount share_of(usd_hour price, amount percent)
{
    amount product;
    if (__builtin_mul_overflow((amount)price, percent, &product))
        return AMOUNT_MAX;
    return product / HUNDRED_PERCENT + (product % HUNDRED_PERCENT >= HUNDRED_PERCENT / 2);
}

usd_hour price_adjust(usd_hour price, const struct price_adjustment *by)
{
    KV_ASSERT(price >= 0);
    if (!by->percent && by->negative)
        return by->amount >= (amount)price ? 0 : price - (usd_hour)by->amount;
    if (!by->percent)
        return clamped((amount)price + by->amount);
    /* One multiplication with 100% +- n%, so that rounding is of the result and half goes up. */
    return clamped(share_of(price, by->negative ? HUNDRED_PERCENT - by->amount
                                                : HUNDRED_PERCENT + by->amount));
}

/* A quantity is a run of decimal digits with a point in it, times a power of ten or of two.
 *
 * A power of ten only moves the point. So parsing comes down to two sums over the digits: those
 * before the (moved) point make the whole part, those after it a fraction, and
 *
 *     nano = (whole + 0.fraction) * 10^9 * 2^shift, rounded away from zero
 *
 * The fraction is folded in from its last digit to its first, dividing by ten at each step and
 * remembering whether anything was ever cut off: exact for any number of digits, in 128 bits.
 *
 * The limit is 2^63-1 units either way, so a value in nano needs 63 + 30 bits.
 */
#include "codec/quantity.h"

#include <inttypes.h>
#include <stdio.h>

__extension__ typedef __int128 i128;
__extension__ typedef unsigned __int128 u128;

#define NANO 1000000000
#define NANO_MAX ((u128)INT64_MAX * NANO)

/* What the text says, before any arithmetic. */
struct number {
    bool negative;
    struct str whole, fraction; /* digits before and after the written point */
    int64_t exponent;           /* times 10^exponent: moves the point */
    unsigned shift;             /* times 2^shift */
    enum quantity_format format;
};

/* Each a thousand times the one before it. */
static const char small_suffixes[] = "num", large_suffixes[] = "kMGTPE",
                  binary_suffixes[] = "KMGTPE";

/* Where c is in the list, from 0, or -1. */
static int place_of(const char *list, char c)
{
    const char *hit = c ? strchr(list, c) : NULL;
    return hit ? (int)(hit - list) : -1;
}

static bool parse_suffix(struct str s, struct number *n)
{
    int place;
    if (s.len == 0)
        return true;
    if (s.len == 1 && (place = place_of(small_suffixes, s.p[0])) >= 0) {
        n->exponent = 3 * place - 9;
        return true;
    }
    if (s.len == 1 && (place = place_of(large_suffixes, s.p[0])) >= 0) {
        n->exponent = 3 * place + 3;
        return true;
    }
    if (s.len == 2 && s.p[1] == 'i' && (place = place_of(binary_suffixes, s.p[0])) >= 0) {
        n->shift = 10 * (unsigned)place + 10;
        n->format = QUANTITY_BINARY;
        return true;
    }
    /* A bare "E" was exa, above; "E3" and "e3" are exponents. */
    n->format = QUANTITY_EXPONENT;
    return (s.p[0] == 'e' || s.p[0] == 'E') && str_to_i64(str_sub(s, 1, s.len), &n->exponent);
}

static int parse_number(struct str s, struct number *n, struct err *err)
{
    struct str rest = s;
    if (rest.len && (rest.p[0] == '-' || rest.p[0] == '+')) {
        n->negative = rest.p[0] == '-';
        rest = str_sub(rest, 1, rest.len);
    }
    n->whole = str_take_digits(&rest);
    if (rest.len && rest.p[0] == '.') {
        rest = str_sub(rest, 1, rest.len);
        n->fraction = str_take_digits(&rest);
    }
    if (n->whole.len + n->fraction.len == 0)
        return err_set(err, ERR_INVALID, "expected a quantity such as 1500m or 2Gi, found %s",
                       STR_SHOWN(s));
    if (!parse_suffix(rest, n))
        return err_set(err, ERR_INVALID,
                       "unknown suffix %s: a quantity ends in one of n u m k M G T P E Ki Mi "
                       "Gi Ti Pi Ei, in an exponent such as e3, or in its last digit",
                       STR_SHOWN(rest));
    return 0;
}

/* Digits are numbered from the first written one; there are zeros on both sides of them. */
static unsigned digit_at(const struct number *n, int64_t ix)
{
    if (ix < 0)
        return 0;
    size_t i = (size_t)ix;
    if (i < n->whole.len)
        return (unsigned)(n->whole.p[i] - '0');
    i -= n->whole.len;
    return i < n->fraction.len ? (unsigned)(n->fraction.p[i] - '0') : 0;
}

/* The number without its sign, in nano. False: beyond the limit. */
static bool magnitude(const struct number *n, u128 *out)
{
    int64_t count = (int64_t)(n->whole.len + n->fraction.len), first = 0;
    while (first < count && digit_at(n, first) == 0)
        first++;
    if (first == count) {
        *out = 0;
        return true;
    }

    /* 2^63-1 has 19 digits. A point far to the left leaves nothing but something to round up, and
     * 64 zeros are far enough: the fraction's scale below has 28 digits. */
    int64_t point;
    if (__builtin_add_overflow((int64_t)n->whole.len, n->exponent, &point))
        return false;
    if (point < -64)
        point = -64;
    if (point - first > 19)
        return false;

    uint64_t whole = 0;
    for (int64_t ix = first; ix < point; ix++)
        whole = whole * 10 + digit_at(n, ix);
    if (whole > (uint64_t)INT64_MAX >> n->shift)
        return false;

    u128 scale = (u128)NANO << n->shift, fraction = 0;
    bool inexact = false;
    for (int64_t ix = count - 1; ix >= point; ix--) {
        u128 x = digit_at(n, ix) * scale + fraction;
        fraction = x / 10;
        inexact |= x != fraction * 10;
    }
    *out = whole * scale + fraction + inexact;
    return *out <= NANO_MAX;
}

static i128 to_nano(struct quantity q)
{
    return (i128)q.units * NANO + q.nano;
}

static struct quantity of_nano(i128 nano, enum quantity_format format)
{
    return (struct quantity){ (int64_t)(nano / NANO), (int32_t)(nano % NANO), format };
}

int quantity_parse(struct str s, struct quantity *out, struct err *err)
{
    struct number n = { 0 };
    if (parse_number(s, &n, err) < 0)
        return -1;
    u128 nano;
    if (!magnitude(&n, &nano))
        return err_set(err, ERR_INVALID, "quantity out of range (2^63-1 at most): %s",
                       STR_SHOWN(s));
    /* A part of a unit is never written in Ki, nor is what is later added to it. */
    if (n.format == QUANTITY_BINARY && nano > 0 && nano < NANO)
        n.format = QUANTITY_DECIMAL;
    *out = of_nano(n.negative ? -(i128)nano : (i128)nano, n.format);
    return 0;
}

struct quantity quantity_of(int64_t units)
{
    KV_ASSERT(units != INT64_MIN);
    return (struct quantity){ units, 0, QUANTITY_DECIMAL };
}

struct quantity quantity_of_milli(int64_t milli)
{
    return of_nano((i128)milli * (NANO / 1000), QUANTITY_DECIMAL);
}

/* The largest power of 1024 that leaves an integer. */
static size_t format_binary(struct quantity q, char out[QUANTITY_TEXT_MAX])
{
    static const char suffix[][3] = { "", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei" };
    unsigned power = 0;
    int64_t n = q.units;
    for (; n % 1024 == 0; n /= 1024)
        power++;
    return (size_t)snprintf(out, QUANTITY_TEXT_MAX, "%" PRId64 "%s", n, suffix[power]);
}

/* The largest power of 1000 that leaves an integer, from 10^-9 up. */
static size_t format_decimal(struct quantity q, char out[QUANTITY_TEXT_MAX])
{
    static const char suffix[][2] = { "n", "u", "m", "", "k", "M", "G", "T", "P", "E" };
    i128 nano = to_nano(q);
    u128 n = nano < 0 ? -(u128)nano : (u128)nano;
    unsigned power = 0;
    for (; n % 1000 == 0; n /= 1000)
        power++;

    const uint64_t half = 1000000000000000000; /* printf knows no 128-bit integers */
    const char *sign = nano < 0 ? "-" : "";
    uint64_t high = (uint64_t)(n / half), low = (uint64_t)(n % half);
    int len = high ? snprintf(out, QUANTITY_TEXT_MAX, "%s%" PRIu64 "%018" PRIu64, sign, high, low)
                   : snprintf(out, QUANTITY_TEXT_MAX, "%s%" PRIu64, sign, low);
    char *end = out + len;
    size_t room = QUANTITY_TEXT_MAX - (size_t)len;
    int exponent = (int)power * 3 - 9;
    if (q.format != QUANTITY_EXPONENT)
        len += snprintf(end, room, "%s", suffix[power]);
    else if (exponent != 0)
        len += snprintf(end, room, "e%d", exponent);
    return (size_t)len;
}

size_t quantity_format(struct quantity q, char out[QUANTITY_TEXT_MAX])
{
    if (quantity_is_zero(q))
        return (size_t)snprintf(out, QUANTITY_TEXT_MAX, "0");
    /* Nothing below 1 Ki, and nothing with a fraction, is written in powers of 1024. */
    bool small = q.units > -1024 && q.units < 1024;
    if (q.format == QUANTITY_BINARY && q.nano == 0 && !small)
        return format_binary(q, out);
    return format_decimal(q, out);
}

int quantity_cmp(struct quantity a, struct quantity b)
{
    if (a.units != b.units)
        return a.units < b.units ? -1 : 1;
    return (a.nano > b.nano) - (a.nano < b.nano);
}

bool quantity_is_zero(struct quantity q)
{
    return q.units == 0 && q.nano == 0;
}

static int set_checked(i128 nano, enum quantity_format format, struct quantity *out,
                       struct err *err)
{
    if (nano > (i128)NANO_MAX || nano < -(i128)NANO_MAX)
        return err_set(err, ERR_INVALID, "sum of quantities out of range (2^63-1 at most)");
    *out = of_nano(nano, format);
    return 0;
}

int quantity_add(struct quantity a, struct quantity b, struct quantity *out, struct err *err)
{
    return set_checked(to_nano(a) + to_nano(b), quantity_is_zero(a) ? b.format : a.format, out,
                       err);
}

int quantity_sub(struct quantity a, struct quantity b, struct quantity *out, struct err *err)
{
    return set_checked(to_nano(a) - to_nano(b), quantity_is_zero(a) ? b.format : a.format, out,
                       err);
}

int quantity_mul(struct quantity a, int64_t times, struct quantity *out, struct err *err)
{
    i128 nano = to_nano(a);
    /* Divides rather than multiplies to see the overflow coming: clang has no checked 128-bit
     * multiplication without its own run-time library. */
    u128 size = nano < 0 ? -(u128)nano : (u128)nano;
    uint64_t factor = times < 0 ? -(uint64_t)times : (uint64_t)times;
    if (factor != 0 && size > NANO_MAX / factor)
        return err_set(err, ERR_INVALID, "product of quantities out of range (2^63-1 at most)");
    *out = of_nano(nano * times, a.format);
    return 0;
}

int64_t quantity_units(struct quantity q)
{
    return q.units + (q.nano > 0) - (q.nano < 0);
}

int64_t quantity_milli(struct quantity q)
{
    const i128 step = NANO / 1000;
    i128 nano = to_nano(q), milli = nano / step;
    milli += (nano % step > 0) - (nano % step < 0);
    if (milli > INT64_MAX)
        return INT64_MAX;
    return milli < -INT64_MAX ? -INT64_MAX : (int64_t)milli;
}

/* codec/quantity.h - Kubernetes quantities ("1500m", "2Gi", "1e3"), exactly.
 *
 * A value is whole units and billionths, so every quantity from 10^-9 to 2^63-1 is held exactly,
 * in 16 bytes; sums and products are made in 128-bit integers and there is no floating point
 * anywhere. A value finer than 10^-9 is rounded away from zero, as the API server does. One beyond
 * 2^63-1 either way is refused, where Kubernetes would clamp it or silently wrap later.
 */
#pragma once

#include "base/err.h"

enum quantity_format {
    QUANTITY_DECIMAL,  /* 12e6 as 12M */
    QUANTITY_BINARY,   /* 12 * 2^20 as 12Mi */
    QUANTITY_EXPONENT, /* 12e6 as 12e6 */
};

/* Zero-initialised is zero. No padding: equal quantities are equal bytes. */
struct quantity {
    int64_t units; /* the value cut towards zero */
    int32_t nano;  /* what was cut off, in 10^-9; never of the other sign than units */
    enum quantity_format format; /* how it is written */
};

int quantity_parse(struct str s, struct quantity *out, struct err *err);
struct quantity quantity_of(int64_t units); /* INT64_MIN is not a quantity */
struct quantity quantity_of_milli(int64_t milli);

#define QUANTITY_TEXT_MAX 40
/* The canonical form that the API server writes; returns the length. */
size_t quantity_format(struct quantity q, char out[QUANTITY_TEXT_MAX]);

int quantity_cmp(struct quantity a, struct quantity b); /* <0, 0, >0; the format does not count */
bool quantity_is_zero(struct quantity q);

/* The result has the format of a (of b if a is zero). Overflow is ERR_INVALID, nothing written. */
int quantity_add(struct quantity a, struct quantity b, struct quantity *out, struct err *err);
int quantity_sub(struct quantity a, struct quantity b, struct quantity *out, struct err *err);
int quantity_mul(struct quantity a, int64_t times, struct quantity *out, struct err *err);

/* Rounded up (away from zero), as Kubernetes' Value() and MilliValue(). Saturating: milli of a very
 * large quantity is INT64_MAX, of a very negative one -INT64_MAX. */
int64_t quantity_units(struct quantity q);
int64_t quantity_milli(struct quantity q);

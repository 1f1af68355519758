/* codec/quantity.h - Kubernetes quantities ("1500m", "2Gi", "1e3"), exactly.
 *
 * The value is digits * 10^-scale_nano..., held as an integer and a decimal scale from 0 to 9
 * places after the point. No floating point anywhere. What Kubernetes would clamp or round
 * (beyond 2^63-1, finer than nano) is refused, with one exception that its users rely on: a
 * fraction finer than nano is rounded up, away from zero, as the API server does.
 */
#pragma once

#include "base/err.h"

enum quantity_format {
    QUANTITY_DECIMAL,  /* 12e6 as 12M */
    QUANTITY_BINARY,   /* 12 * 2^20 as 12Mi */
    QUANTITY_EXPONENT, /* 12e6 as 12e6 */
};

struct quantity {
    int64_t digits; /* value = digits / 10^places */
    uint8_t places; /* 0..9; as small as the value allows */
    uint8_t format; /* enum quantity_format: how it is written */
};

int quantity_parse(struct str s, struct quantity *out, struct err *err);
struct quantity quantity_of(int64_t units);
struct quantity quantity_of_milli(int64_t milli);

#define QUANTITY_TEXT_MAX 32
/* The canonical form that the API server writes; returns the length. */
size_t quantity_format(struct quantity q, char out[QUANTITY_TEXT_MAX]);

int quantity_cmp(struct quantity a, struct quantity b); /* <0, 0, >0; the format does not count */
bool quantity_is_zero(struct quantity q);

/* The result has the format of a (of b if a is zero). Overflow is ERR_INVALID, nothing written. */
int quantity_add(struct quantity a, struct quantity b, struct quantity *out, struct err *err);
int quantity_sub(struct quantity a, struct quantity b, struct quantity *out, struct err *err);
int quantity_mul(struct quantity a, int64_t times, struct quantity *out, struct err *err);

/* Rounded up (away from zero), as Kubernetes' Value() and MilliValue(); saturating at INT64_MAX. */
int64_t quantity_units(struct quantity q);
int64_t quantity_milli(struct quantity q);

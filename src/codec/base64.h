/* codec/base64.h - RFC 4648 base64, standard alphabet. */
#pragma once

#include "base/err.h"

void base64_encode(struct str bytes, struct buf *out);
/* Padding required, no white space, unused bits zero: exactly one text per byte string. */
int base64_decode(struct str text, struct buf *out, struct err *err);

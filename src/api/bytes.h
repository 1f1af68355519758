/* api/bytes.h - comparing and copying short runs of bytes without a call.
 *
 * Names and values of objects are mostly 2 to 40 bytes, and decoding touches every one of them:
 * overlapping loads of a size that fits beat the library's function, and loops whose count the
 * processor cannot guess.
 */
#pragma once

#include "base/kv.h"

#include <stdbool.h>
#include <string.h>

static inline uint64_t bytes_load64(const char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline uint32_t bytes_load32(const char *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline bool bytes_equal(const char *a, const char *b, size_t len)
{
    if (len > 32)
        return memcmp(a, b, len) == 0;
    if (len >= 16)
        return ((bytes_load64(a) ^ bytes_load64(b)) | (bytes_load64(a + 8) ^ bytes_load64(b + 8)) |
                (bytes_load64(a + len - 16) ^ bytes_load64(b + len - 16)) |
                (bytes_load64(a + len - 8) ^ bytes_load64(b + len - 8))) == 0;
    if (len >= 8)
        return ((bytes_load64(a) ^ bytes_load64(b)) |
                (bytes_load64(a + len - 8) ^ bytes_load64(b + len - 8))) == 0;
    if (len >= 4)
        return ((bytes_load32(a) ^ bytes_load32(b)) |
                (bytes_load32(a + len - 4) ^ bytes_load32(b + len - 4))) == 0;
    return len == 0 || (a[0] == b[0] && a[len / 2] == b[len / 2] && a[len - 1] == b[len - 1]);
}

static inline void bytes_copy(char *to, const char *from, size_t len)
{
    if (len > 32) {
        memcpy(to, from, len);
    } else if (len >= 16) {
        memcpy(to, from, 16);
        memcpy(to + len - 16, from + len - 16, 16);
    } else if (len >= 8) {
        memcpy(to, from, 8);
        memcpy(to + len - 8, from + len - 8, 8);
    } else if (len >= 4) {
        memcpy(to, from, 4);
        memcpy(to + len - 4, from + len - 4, 4);
    } else if (len > 0) {
        to[0] = from[0];
        to[len / 2] = from[len / 2];
        to[len - 1] = from[len - 1];
    }
}

/* api/bytes.h - comparing and copying short runs of bytes without a call.
 *
 * Names and values of objects are mostly 2 to 40 bytes, and decoding touches every one of them:
 * two or more overlapping loads beat the library's function.
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
    if (len >= 8) {
        for (size_t i = 0; i + 8 < len; i += 8) {
            if (bytes_load64(a + i) != bytes_load64(b + i))
                return false;
        }
        return bytes_load64(a + len - 8) == bytes_load64(b + len - 8);
    }
    if (len >= 4)
        return bytes_load32(a) == bytes_load32(b) &&
               bytes_load32(a + len - 4) == bytes_load32(b + len - 4);
    for (size_t i = 0; i < len; i++) {
        if (a[i] != b[i])
            return false;
    }
    return true;
}

static inline void bytes_copy(char *to, const char *from, size_t len)
{
    if (len > 64) {
        memcpy(to, from, len);
    } else if (len >= 8) {
        for (size_t i = 0; i + 8 < len; i += 8)
            memcpy(to + i, from + i, 8);
        memcpy(to + len - 8, from + len - 8, 8);
    } else if (len >= 4) {
        memcpy(to, from, 4);
        memcpy(to + len - 4, from + len - 4, 4);
    } else {
        for (size_t i = 0; i < len; i++)
            to[i] = from[i];
    }
}

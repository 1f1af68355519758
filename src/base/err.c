#include "base/err.h"

#include <stdio.h>

int err_set(struct err *err, enum err_kind kind, const char *fmt, ...)
{
    KV_ASSERT(kind != ERR_NONE);
    if (!err)
        return -1;
    va_list args;
    va_start(args, fmt);
    err->kind = kind;
    vsnprintf(err->text, sizeof err->text, fmt, args);
    va_end(args);
    return -1;
}

int err_wrap(struct err *err, const char *fmt, ...)
{
    if (!err)
        return -1;
    char old[ERR_TEXT_MAX];
    memcpy(old, err->text, sizeof old);

    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(err->text, sizeof err->text, fmt, args);
    va_end(args);
    if (n >= 0 && (size_t)n < sizeof err->text)
        snprintf(err->text + n, sizeof err->text - (size_t)n, ": %.*s",
                 (int)(sizeof old - 1), old);
    return -1;
}

const char *err_kind_name(enum err_kind kind)
{
    switch (kind) {
    case ERR_NONE:
        return "none";
    case ERR_NOT_FOUND:
        return "not found";
    case ERR_CONFLICT:
        return "conflict";
    case ERR_GONE:
        return "gone";
    case ERR_EXISTS:
        return "already exists";
    case ERR_UNAVAILABLE:
        return "unavailable";
    case ERR_THROTTLED:
        return "throttled";
    case ERR_CAPACITY:
        return "no capacity";
    case ERR_INVALID:
        return "invalid";
    case ERR_DENIED:
        return "denied";
    case ERR_CANCELLED:
        return "cancelled";
    case ERR_INTERNAL:
        return "internal";
    }
    KV_UNREACHABLE();
}

#include "base/err.h"

#include <stdio.h>

/* A text that did not fit is cut between characters: it may end up in JSON. */
static size_t cut_whole(const char *text, size_t len)
{
    size_t at = len;
    while (at > 0 && len - at < 4 && ((unsigned char)text[at - 1] & 0xc0) == 0x80)
        at--;
    if (at == 0)
        return len;
    return str_is_utf8((struct str){ text + at - 1, len - at + 1 }) ? len : at - 1;
}

/* Appends what fits after the first `len` bytes. */
static size_t append(char text[ERR_TEXT_MAX], size_t len, struct str more)
{
    size_t room = ERR_TEXT_MAX - 1 - len;
    size_t n = more.len < room ? more.len : room;
    memcpy(text + len, more.p, n);
    len += n;
    if (n < more.len)
        len = cut_whole(text, len);
    text[len] = '\0';
    return len;
}

/* The arguments may point into err->text, so the new text is written beside it. */
static size_t format(char text[ERR_TEXT_MAX], const char *fmt, va_list args)
{
    int n = vsnprintf(text, ERR_TEXT_MAX, fmt, args);
    if (n < 0) /* an unconvertible wide character: the format itself says more than nothing */
        return append(text, 0, str_of(fmt));
    if (n < ERR_TEXT_MAX)
        return (size_t)n;
    size_t len = cut_whole(text, ERR_TEXT_MAX - 1);
    text[len] = '\0';
    return len;
}

int(err_set)(struct err *err, enum err_kind kind, const char *fmt, ...)
{
    KV_ASSERT(kind != ERR_NONE);
    if (!err)
        return -1;
    char text[ERR_TEXT_MAX];
    va_list args;
    va_start(args, fmt);
    size_t len = format(text, fmt, args);
    va_end(args);
    err->kind = kind;
    memcpy(err->text, text, len + 1);
    return -1;
}

int(err_wrap)(struct err *err, const char *fmt, ...)
{
    if (!err)
        return -1;
    char text[ERR_TEXT_MAX];
    va_list args;
    va_start(args, fmt);
    size_t len = format(text, fmt, args);
    va_end(args);
    len = append(text, len, STR(": "));
    len = append(text, len, (struct str){ err->text, strnlen(err->text, ERR_TEXT_MAX - 1) });
    memcpy(err->text, text, len + 1);
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

/* base/err.h - how trouble that is expected travels.
 *
 * A function that can fail takes `struct err *` last, returns 0 or negative, and writes its
 * results only on success. Callers branch on the kind; the message is for people and gains context
 * as it rises: "claim web-7: launch in eu-west-1b: no capacity for c7g.large".
 */
#pragma once

#include "base/str.h"

enum err_kind {
    ERR_NONE,
    ERR_NOT_FOUND,   /* the world moved: read again */
    ERR_CONFLICT,    /* likewise */
    ERR_GONE,        /* the version asked for is no longer kept: list again */
    ERR_EXISTS,      /* somebody made it first */
    ERR_UNAVAILABLE, /* try later */
    ERR_THROTTLED,   /* try later, and slower; an eviction refused by a budget is this */
    ERR_CAPACITY,    /* try elsewhere */
    ERR_INVALID,     /* retrying will not help: tell the user */
    ERR_DENIED,      /* likewise */
    ERR_CANCELLED,
    ERR_INTERNAL,
};

#define ERR_TEXT_MAX 480

struct err {
    enum err_kind kind;
    char text[ERR_TEXT_MAX]; /* NUL-terminated; cut at the end when context makes it too long */
};

/* Both return -1, so that `return err_set(...)` reads well. `err` may be NULL. */
int err_set(struct err *err, enum err_kind kind, const char *fmt, ...) KV_PRINTF(3, 4);
int err_wrap(struct err *err, const char *fmt, ...) KV_PRINTF(2, 3); /* "fmt: old text" */

/* The static analyzer sees one file at a time: let it know the -1, or it follows every failure as
 * if it were a success. */
#ifdef __clang_analyzer__
static inline int err_minus_one(void)
{
    return -1;
}
#define err_set(...) (err_set(__VA_ARGS__), err_minus_one())
#define err_wrap(...) (err_wrap(__VA_ARGS__), err_minus_one())
#endif

const char *err_kind_name(enum err_kind kind);

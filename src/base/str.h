/* base/str.h - borrowed strings, and a growable buffer to build them in.
 *
 * A `struct str` never owns its bytes and need not end in NUL. `p == NULL` means "absent", which
 * is not the same as the empty string: decoders use the difference.
 */
#pragma once

#include "base/kv.h"

#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

struct str {
    const char *p;
    size_t len;
};

#define STR(literal) ((struct str){ "" literal, sizeof(literal) - 1 })
#define STR_ARG(s) (int)(s).len, (s).p /* for "%.*s" */
#define STR_NONE ((struct str){ NULL, 0 })

/* `s` as a message quotes it, for "%s": in quotes, escaped as in JSON, cut after STR_SHOWN_BYTES.
 * For texts from outside, which may hold anything a terminal obeys. Lives as long as the block. */
#define STR_SHOWN_BYTES 60
#define STR_SHOWN_MAX (6 * STR_SHOWN_BYTES + 6) /* an escape is six bytes; quotes, dots, NUL */
#define STR_SHOWN(s) str_shown((s), (char[STR_SHOWN_MAX]){ 0 })

static inline struct str str_of(const char *z)
{
    return (struct str){ z, z ? strlen(z) : 0 };
}

static inline bool str_eq(struct str a, struct str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.p, b.p, a.len) == 0);
}

static inline bool str_eqz(struct str a, const char *z)
{
    return str_eq(a, str_of(z));
}

/* ASCII only, whatever the locale. */
static inline bool char_is_digit(char c)
{
    return c >= '0' && c <= '9';
}
static inline bool char_is_alpha(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
static inline bool char_is_alnum(char c)
{
    return char_is_digit(c) || char_is_alpha(c);
}
static inline bool char_is_space(char c) /* also \v and \f */
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}
static inline char char_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Byte order, shorter first on a tie: the order of every sorted list that karve prints. */
int str_cmp(struct str a, struct str b);

/* Sorts in that order and drops duplicates; returns how many are left. */
size_t str_sort_unique(struct str *items, size_t count);
bool str_sorted_has(const struct str *sorted, size_t count, struct str s);

bool str_starts(struct str s, struct str prefix);
bool str_ends(struct str s, struct str suffix);
ptrdiff_t str_find(struct str s, char c);                  /* index of the first c, or -1 */
struct str str_sub(struct str s, size_t from, size_t len); /* clamped to s */
struct str str_trim(struct str s);                         /* ASCII white space off both ends */
struct str str_take_digits(struct str *s);                 /* off its front, perhaps none */

/* Split at the first `sep`: head gets what is before it, tail the rest. False if there is none,
 * and then head is all of s. */
bool str_cut(struct str s, char sep, struct str *head, struct str *tail);

/* Base 10, optional sign, nothing else around it; false on overflow too. */
bool str_to_i64(struct str s, int64_t *out);

char *str_dup(struct str s); /* NUL-terminated copy; the caller frees */
const char *str_shown(struct str s, char out[STR_SHOWN_MAX]); /* see STR_SHOWN; returns `out` */

size_t str_utf8_first(struct str s);  /* bytes of the character that s starts with; 0: malformed */
size_t str_utf8_prefix(struct str s); /* bytes before the first that is malformed; s.len: none is */
bool str_is_utf8(struct str s);
/* Where to cut s so that at most `len` bytes are left and no character is cut through. */
size_t str_utf8_cut(struct str s, size_t len);

/* Number of single-character edits between a and b, at most `limit + 1`. For "did you mean". */
size_t str_distance(struct str a, struct str b, size_t limit);

/* A growable byte buffer. Zero-initialised is empty. The bytes are always NUL-terminated. What is
 * added is not a part of the buffer itself. */
struct buf {
    char *p;
    size_t len, cap;
};

void buf_done(struct buf *b);
void buf_wipe(struct buf *b);            /* done, and nothing of it is left in memory: secrets */
void buf_clear(struct buf *b);           /* keeps the memory */
void buf_cut(struct buf *b, size_t len); /* keeps the first `len` bytes */
void buf_reserve(struct buf *b, size_t more);
void buf_add(struct buf *b, struct str s);
void buf_addz(struct buf *b, const char *z);
void buf_addc(struct buf *b, char c);
void buf_addf(struct buf *b, const char *fmt, ...) KV_PRINTF(2, 3);
void buf_vaddf(struct buf *b, const char *fmt, va_list args) KV_PRINTF(2, 0);
void buf_add_utf8(struct buf *b, struct str s); /* each byte that is malformed becomes U+FFFD */
/* As a JSON string. Control characters are escaped, also DEL and U+0080 to U+009F, which a terminal
 * obeys; a malformed byte becomes U+FFFD. */
void buf_add_quoted(struct buf *b, struct str s);
/* The shortest decimal text that reads back as v, in any locale: "0.25", "1e+06", "NaN", "+Inf".
 * An exponent is written below 1e-4 and from 1e+06 on, where Prometheus clients do it too. */
void buf_add_double(struct buf *b, double v);

static inline struct str buf_str(const struct buf *b)
{
    return (struct str){ b->p ? b->p : "", b->len };
}

char *buf_take(struct buf *b); /* hands the bytes to the caller, who frees; b is empty again */

#define AUTO_BUF __attribute__((cleanup(buf_done))) struct buf
#define AUTO_SECRET_BUF __attribute__((cleanup(buf_wipe))) struct buf

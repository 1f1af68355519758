#include "base/str.h"

#include <stdio.h>

int str_cmp(struct str a, struct str b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int c = n ? memcmp(a.p, b.p, n) : 0;
    if (c != 0)
        return c;
    return (a.len > b.len) - (a.len < b.len);
}

static int compare_items(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

size_t str_sort_unique(struct str *items, size_t count)
{
    if (count > 1)
        qsort(items, count, sizeof *items, compare_items);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || !str_eq(items[kept - 1], items[i]))
            items[kept++] = items[i];
    }
    return kept;
}

bool str_sorted_has(const struct str *sorted, size_t count, struct str s)
{
    return count > 0 && bsearch(&s, sorted, count, sizeof s, compare_items) != NULL;
}

bool str_starts(struct str s, struct str prefix)
{
    return s.len >= prefix.len && str_eq(str_sub(s, 0, prefix.len), prefix);
}

bool str_ends(struct str s, struct str suffix)
{
    return s.len >= suffix.len && str_eq(str_sub(s, s.len - suffix.len, suffix.len), suffix);
}

ptrdiff_t str_find(struct str s, char c)
{
    const char *hit = s.len ? memchr(s.p, c, s.len) : NULL;
    return hit ? hit - s.p : -1;
}

struct str str_sub(struct str s, size_t from, size_t len)
{
    if (from > s.len)
        from = s.len;
    if (len > s.len - from)
        len = s.len - from;
    return (struct str){ s.len ? s.p + from : s.p, len };
}

struct str str_trim(struct str s)
{
    while (s.len && char_is_space(s.p[0])) {
        s.p++;
        s.len--;
    }
    while (s.len && char_is_space(s.p[s.len - 1]))
        s.len--;
    return s;
}

struct str str_take_digits(struct str *s)
{
    size_t n = 0;
    while (n < s->len && char_is_digit(s->p[n]))
        n++;
    struct str digits = str_sub(*s, 0, n);
    *s = str_sub(*s, n, s->len);
    return digits;
}

bool str_cut(struct str s, char sep, struct str *head, struct str *tail)
{
    ptrdiff_t at = str_find(s, sep);
    if (at < 0) {
        *head = s;
        *tail = STR_NONE;
        return false;
    }
    *head = str_sub(s, 0, (size_t)at);
    *tail = str_sub(s, (size_t)at + 1, s.len);
    return true;
}

bool str_to_i64(struct str s, int64_t *out)
{
    size_t i = 0;
    bool negative = false;
    if (s.len && (s.p[0] == '-' || s.p[0] == '+'))
        negative = s.p[i++] == '-';
    if (i == s.len)
        return false;
    int64_t v = 0;
    for (; i < s.len; i++) {
        int64_t digit = s.p[i] - '0';
        if (digit < 0 || digit > 9)
            return false;
        /* Accumulate downwards: INT64_MIN has no positive twin. */
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_sub_overflow(v, digit, &v))
            return false;
    }
    if (!negative && v == INT64_MIN)
        return false;
    *out = negative ? v : -v;
    return true;
}

char *str_dup(struct str s)
{
    char *z = kv_malloc(s.len + 1);
    if (s.len)
        memcpy(z, s.p, s.len);
    z[s.len] = '\0';
    return z;
}

/* Length of the well-formed UTF-8 sequence at s (RFC 3629: no surrogates, no overlong forms,
 * nothing above U+10FFFF), or 0. */
static size_t utf8_sequence(const unsigned char *s, size_t left)
{
    unsigned char c = s[0];
    if (c < 0x80)
        return 1;
    size_t n = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
    if (c < 0xc2 || c > 0xf4 || n > left)
        return 0;
    unsigned char lo = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
    unsigned char hi = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
    if (s[1] < lo || s[1] > hi)
        return 0;
    for (size_t i = 2; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    }
    return n;
}

size_t str_utf8_first(struct str s)
{
    return s.len ? utf8_sequence((const unsigned char *)s.p, s.len) : 0;
}

size_t str_utf8_prefix(struct str s)
{
    const unsigned char *p = (const unsigned char *)s.p;
    size_t i = 0;
    while (i < s.len) {
        size_t n = utf8_sequence(p + i, s.len - i);
        if (n == 0)
            break;
        i += n;
    }
    return i;
}

bool str_is_utf8(struct str s)
{
    return str_utf8_prefix(s) == s.len;
}

size_t str_utf8_cut(struct str s, size_t len)
{
    if (len >= s.len)
        return s.len;
    size_t at = len; /* back to the start of the character that s.p[len] belongs to */
    while (at > 0 && len - at < 3 && ((unsigned char)s.p[at] & 0xc0) == 0x80)
        at--;
    return at + str_utf8_first(str_sub(s, at, s.len)) > len ? at : len;
}

/* One row of the Levenshtein table; names longer than the row are simply "far apart". */
#define DISTANCE_NAME_MAX 64

size_t str_distance(struct str a, struct str b, size_t limit)
{
    size_t row[DISTANCE_NAME_MAX + 1];
    size_t gap = a.len > b.len ? a.len - b.len : b.len - a.len;
    if (a.len > DISTANCE_NAME_MAX || b.len > DISTANCE_NAME_MAX || gap > limit)
        return limit + 1;

    for (size_t j = 0; j <= b.len; j++)
        row[j] = j;
    for (size_t i = 1; i <= a.len; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            size_t above = row[j];
            size_t best = diagonal + (a.p[i - 1] != b.p[j - 1]);
            if (above + 1 < best)
                best = above + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            diagonal = above;
            row[j] = best;
        }
    }
    return row[b.len] <= limit ? row[b.len] : limit + 1;
}

void buf_done(struct buf *b)
{
    free(b->p);
    *b = (struct buf){ 0 };
}

void buf_wipe(struct buf *b)
{
    if (b->p)
        explicit_bzero(b->p, b->cap);
    buf_done(b);
}

void buf_clear(struct buf *b)
{
    buf_cut(b, 0);
}

void buf_cut(struct buf *b, size_t len)
{
    KV_ASSERT(len <= b->len);
    b->len = len;
    if (b->p)
        b->p[len] = '\0';
}

void buf_reserve(struct buf *b, size_t more)
{
    size_t need = b->len + more + 1;
    KV_ASSERT(need > b->len);
    if (need <= b->cap)
        return;
    size_t cap = b->cap ? b->cap * 2 : 64;
    if (cap < need)
        cap = need;
    b->p = kv_realloc(b->p, cap, 1);
    b->p[b->len] = '\0';
    b->cap = cap;
}

void buf_add(struct buf *b, struct str s)
{
    buf_reserve(b, s.len);
    if (s.len)
        memcpy(b->p + b->len, s.p, s.len);
    b->len += s.len;
    b->p[b->len] = '\0';
}

void buf_addz(struct buf *b, const char *z)
{
    buf_add(b, str_of(z));
}

void buf_addc(struct buf *b, char c)
{
    buf_add(b, (struct str){ &c, 1 });
}

void buf_vaddf(struct buf *b, const char *fmt, va_list args)
{
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    KV_ASSERT(n >= 0);
    buf_reserve(b, (size_t)n);
    vsnprintf(b->p + b->len, (size_t)n + 1, fmt, again);
    va_end(again);
    b->len += (size_t)n;
}

void buf_addf(struct buf *b, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    buf_vaddf(b, fmt, args);
    va_end(args);
}

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

void buf_add_utf8(struct buf *b, struct str s)
{
    for (;;) {
        size_t good = str_utf8_prefix(s);
        buf_add(b, str_sub(s, 0, good));
        if (good == s.len)
            return;
        buf_addz(b, REPLACEMENT);
        s = str_sub(s, good + 1, s.len);
    }
}

/* A character that JSON or a terminal would not take for itself. */
static void add_escaped(struct buf *b, unsigned code)
{
    static const char letters[] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'
    };
    if (code == '"' || code == '\\')
        buf_addf(b, "\\%c", (char)code);
    else if (code < sizeof letters && letters[code])
        buf_addf(b, "\\%c", letters[code]);
    else
        buf_addf(b, "\\u%04x", code);
}

/* How many bytes from `i` on are plain for sure, by eights: most texts are plain throughout. A byte that is
 * above, below, or one of the three that are not gives its eight away; borrows can only give away more. */
static size_t plain_run(struct str s, size_t i)
{
    const uint64_t ones = UINT64_MAX / 255, highs = ones * 0x80;
    size_t from = i;
    for (uint64_t w; i + sizeof w <= s.len; i += sizeof w) {
        memcpy(&w, s.p + i, sizeof w);
        uint64_t quote = w ^ ones * '"', slash = w ^ ones * '\\', del = w ^ ones * 0x7f;
        uint64_t odd = w | (w - ones * ' ') | (quote - ones) | (slash - ones) | (del - ones);
        if (odd & highs)
            break;
    }
    return i - from;
}

void buf_add_quoted(struct buf *b, struct str s)
{
    size_t from = 0; /* of what is copied as it is */
    buf_reserve(b, s.len + 2);
    buf_addc(b, '"');
    for (size_t i = plain_run(s, 0); i < s.len;) {
        unsigned char c = (unsigned char)s.p[i];
        size_t n = c < 0x80 ? 1 : str_utf8_first(str_sub(s, i, s.len));
        bool high_control = n == 2 && c == 0xc2 && (unsigned char)s.p[i + 1] < 0xa0;
        if (n > 0 && c >= ' ' && c != '"' && c != '\\' && c != 0x7f && !high_control) {
            i += n;
            continue;
        }
        buf_add(b, str_sub(s, from, i - from));
        if (n == 0)
            buf_addz(b, REPLACEMENT);
        else
            add_escaped(b, high_control ? (unsigned char)s.p[i + 1] : c);
        i += n ? n : 1;
        from = i;
    }
    buf_add(b, str_sub(s, from, s.len));
    buf_addc(b, '"');
}

const char *str_shown(struct str s, char out[STR_SHOWN_MAX])
{
    AUTO_BUF text = { 0 };
    size_t cut = str_utf8_cut(s, STR_SHOWN_BYTES);
    buf_add_quoted(&text, str_sub(s, 0, cut));
    if (cut < s.len)
        buf_addz(&text, "...");
    memcpy(out, text.p, text.len + 1);
    return out;
}

#define DOUBLE_DIGITS_MAX 17  /* enough to tell any two doubles apart */
#define DOUBLE_DIGITS_KEPT 15 /* any decimal of so many digits survives being a normal double */

/* "d.ddde+xx" with the fewest digits that read back as v, but for trailing zeros. The decimal
 * point is whatever the locale says; strtod expects the same one. */
static void double_shortest(double v, char out[40])
{
    bool normal = v == 0 || __builtin_isnormal(v);
    for (int digits = normal ? DOUBLE_DIGITS_KEPT : 1; digits <= DOUBLE_DIGITS_MAX; digits++) {
        snprintf(out, 40, "%.*e", digits - 1, v);
        if (strtod(out, NULL) == v) /* the sign of zero is in the text */
            return;
    }
}

void buf_add_double(struct buf *b, double v)
{
    if (__builtin_isnan(v) || __builtin_isinf(v)) {
        buf_addz(b, __builtin_isnan(v) ? "NaN" : v > 0 ? "+Inf" : "-Inf");
        return;
    }
    char text[40], digits[DOUBLE_DIGITS_MAX + 1] = "0";
    double_shortest(v, text);

    const char *s = text;
    int count = 0;
    if (*s == '-') {
        buf_addc(b, '-');
        s++;
    }
    for (; *s != 'e'; s++) {
        if (*s >= '0' && *s <= '9')
            digits[count++] = *s;
    }
    while (count > 1 && digits[count - 1] == '0')
        count--;
    int exponent = (int)strtol(s + 1, NULL, 10);
    if (exponent < -4 || exponent >= 6) {
        buf_addc(b, digits[0]);
        if (count > 1)
            buf_addf(b, ".%.*s", count - 1, digits + 1);
        buf_addf(b, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
        return;
    }
    if (exponent < 0) {
        buf_addf(b, "0.%.*s%.*s", -exponent - 1, "000", count, digits);
        return;
    }
    for (int i = 0; i < count || i <= exponent; i++) {
        if (i == exponent + 1)
            buf_addc(b, '.');
        buf_addc(b, i < count ? digits[i] : '0');
    }
}

char *buf_take(struct buf *b)
{
    buf_reserve(b, 0);
    char *p = b->p;
    *b = (struct buf){ 0 };
    return p;
}

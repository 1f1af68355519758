/* The first character decides what a scalar can be at all, so almost every string is settled by one
 * look. What is left is compared with the few words, or read as a number: without its underscores,
 * as an integer first, as a float otherwise. */
#include "codec/yaml_scalar.h"

#include <yyjson.h>

static bool is_one_of(struct str s, const char *const *words)
{
    for (; *words; words++) {
        if (str_eqz(s, *words))
            return true;
    }
    return false;
}

static const char *const true_words[] = { "y",    "Y",    "yes", "Yes", "YES", "true",
                                          "True", "TRUE", "on",  "On",  "ON",  NULL };
static const char *const false_words[] = { "n",     "N",     "no",  "No",  "NO",  "false",
                                           "False", "FALSE", "off", "Off", "OFF", NULL };
static const char *const null_words[] = { "", "~", "null", "Null", "NULL", NULL };
static const char *const not_finite_words[] = { ".nan",  ".NaN",  ".NAN",  ".inf",  ".Inf",
                                                ".INF",  "+.inf", "+.Inf", "+.INF", "-.inf",
                                                "-.Inf", "-.INF", NULL };

/* --- integers --- */

enum integer { NO_INTEGER, INTEGER, INTEGER_OVERFLOW };

static int digit_value(char c)
{
    if (char_is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return 16;
}

/* 0x1f, 0o17, 0b101, 017, 15; an optional sign. Only decimal and plain octal forms overflow: the
 * prefixed ones are strings then, as in go-yaml. */
static enum integer parse_integer(struct str s, bool *negative, uint64_t *magnitude)
{
    *negative = s.len && s.p[0] == '-';
    if (s.len && (s.p[0] == '-' || s.p[0] == '+'))
        s = str_sub(s, 1, s.len);
    uint64_t base = 10;
    enum integer overflow = INTEGER_OVERFLOW;
    if (s.len > 2 && s.p[0] == '0' && !char_is_digit(s.p[1])) {
        char prefix = (char)(s.p[1] | 0x20);
        base = prefix == 'x' ? 16 : prefix == 'o' ? 8 : prefix == 'b' ? 2 : 0;
        overflow = NO_INTEGER;
        s = str_sub(s, 2, s.len);
    } else if (s.len > 1 && s.p[0] == '0') {
        base = 8;
    }
    if (s.len == 0 || base == 0)
        return NO_INTEGER;

    uint64_t v = 0;
    bool fits = true;
    for (size_t i = 0; i < s.len; i++) {
        uint64_t digit = (uint64_t)digit_value(s.p[i]);
        if (digit >= base)
            return NO_INTEGER;
        fits =
            fits && !__builtin_mul_overflow(v, base, &v) && !__builtin_add_overflow(v, digit, &v);
    }
    *magnitude = v;
    return fits && !(*negative && v > (uint64_t)1 << 63) ? INTEGER : overflow;
}

/* --- floats --- */

/* [-+]? ( .digits | digits [. digits?] ) [ [eE] [-+]? digits ]: the parts of it. */
struct float_parts {
    struct str whole, fraction, exponent; /* exponent with its e; p == NULL: absent */
    bool negative, point;
};

static bool split_float(struct str s, struct float_parts *out)
{
    *out = (struct float_parts){ 0 };
    if (s.len && (s.p[0] == '-' || s.p[0] == '+')) {
        out->negative = s.p[0] == '-';
        s = str_sub(s, 1, s.len);
    }
    out->whole = str_take_digits(&s);
    if (s.len && s.p[0] == '.') {
        out->point = true;
        s = str_sub(s, 1, s.len);
        out->fraction = str_take_digits(&s);
    }
    if (out->whole.len + out->fraction.len == 0)
        return false;
    if (s.len == 0)
        return true;
    out->exponent = s;
    if (s.p[0] != 'e' && s.p[0] != 'E')
        return false;
    s = str_sub(s, s.len > 1 && (s.p[1] == '-' || s.p[1] == '+') ? 2 : 1, s.len);
    return str_take_digits(&s).len > 0 && s.len == 0;
}

/* The JSON spelling of a float. Digits are kept: yyjson does the rounding. */
static void add_float(const struct float_parts *f, struct buf *out)
{
    struct str whole = f->whole;
    while (whole.len > 1 && whole.p[0] == '0')
        whole = str_sub(whole, 1, whole.len);
    if (f->negative)
        buf_addc(out, '-');
    buf_add(out, whole.len ? whole : STR("0"));
    if (f->point) {
        buf_addc(out, '.');
        buf_add(out, f->fraction.len ? f->fraction : STR("0"));
    }
    buf_add(out, f->exponent);
}

static enum scalar_type resolve_float(struct str s, struct buf *json)
{
    struct float_parts f;
    if (!split_float(s, &f))
        return SCALAR_STRING;
    AUTO_BUF text = { 0 };
    add_float(&f, &text);
    yyjson_val v;
    if (!yyjson_read_number(text.p, &v, 0, NULL, NULL))
        return SCALAR_STRING; /* infinite when read: text to go-yaml, such as the commit 1e4000 */
    if (!f.point && !f.exponent.p && yyjson_is_real(&v))
        return SCALAR_HUGE;
    double d = yyjson_get_num(&v);
    if (d >= -0x1p53 && d <= 0x1p53 && d == (double)(int64_t)d)
        buf_addf(json, "%lld", (long long)d);
    else
        buf_add(json, buf_str(&text));
    return SCALAR_FLOAT;
}

/* --- all of them --- */

/* Where a number starts with its point, an underscore stands between digits. */
static bool point_underscores_ok(struct str s)
{
    for (size_t i = 0; s.p[0] == '.' && i < s.len; i++) {
        if (s.p[i] == '_' &&
            !(char_is_digit(s.p[i - 1]) && i + 1 < s.len && char_is_digit(s.p[i + 1])))
            return false;
    }
    return true;
}

static enum scalar_type resolve_number(struct str s, struct buf *json)
{
    AUTO_BUF plain = { 0 };
    if (str_find(s, '_') >= 0) {
        if (!point_underscores_ok(s))
            return SCALAR_STRING;
        for (size_t i = 0; i < s.len; i++) {
            if (s.p[i] != '_')
                buf_addc(&plain, s.p[i]);
        }
        s = buf_str(&plain);
    }
    bool negative;
    uint64_t magnitude;
    switch (parse_integer(s, &negative, &magnitude)) {
    case INTEGER:
        buf_addf(json, "%s%llu", negative && magnitude ? "-" : "", (unsigned long long)magnitude);
        return SCALAR_INT;
    case INTEGER_OVERFLOW:
        return SCALAR_HUGE;
    case NO_INTEGER:
        break;
    }
    return resolve_float(s, json);
}

enum scalar_type scalar_resolve(struct str text, struct buf *json)
{
    char first = text.len ? text.p[0] : '~';
    if (char_is_digit(first) || first == '+' || first == '-' || first == '.') {
        if (is_one_of(text, not_finite_words))
            return SCALAR_NOT_FINITE;
        return resolve_number(text, json);
    }
    if (text.len > 5 || !strchr("yYnNtTfFoO~", first))
        return SCALAR_STRING;
    bool yes = is_one_of(text, true_words);
    if (yes || is_one_of(text, false_words)) {
        buf_addz(json, yes ? "true" : "false");
        return SCALAR_BOOL;
    }
    if (is_one_of(text, null_words)) {
        buf_addz(json, "null");
        return SCALAR_NULL;
    }
    return SCALAR_STRING;
}

/* --- writing --- */

/* Strings to us, but to some other readers a date (2001-01-02), a number in base 60 (22:22) or one
 * with underscores in odd places (0x_). */
static bool is_value_elsewhere(struct str s)
{
    bool date = s.len > 5 && s.p[4] == '-' && char_is_digit(s.p[5]), separated = false;
    for (size_t i = 0; i < 4 && date; i++)
        date = char_is_digit(s.p[i]);
    if (date)
        return true;
    if (!char_is_digit(s.p[0]) && !strchr("+-.", s.p[0]))
        return false;
    for (size_t i = 1; i < s.len; i++) {
        if (s.p[i] == ':' || s.p[i] == '_')
            separated = true;
        else if (digit_value(s.p[i]) > 15 && !strchr("xo.+-", s.p[i]))
            return false;
    }
    return separated;
}

size_t scalar_special(struct str s, size_t at)
{
    const unsigned char *p = (const unsigned char *)s.p + at;
    size_t left = s.len - at;
    if (p[0] < 0x20 || p[0] == 0x7f)
        return 1;
    if (left >= 2 && p[0] == 0xc2 && p[1] < 0xa0) /* U+0080 to U+009F; U+0085 ends a line */
        return 2;
    if (left >= 3 && p[0] == 0xe2 && p[1] == 0x80 && (p[2] == 0xa8 || p[2] == 0xa9))
        return 3; /* line and paragraph separator */
    if (left >= 3 && p[0] == 0xef &&
        ((p[1] == 0xbb && p[2] == 0xbf) || (p[1] == 0xbf && p[2] >= 0xbe)))
        return 3; /* byte order mark, U+FFFE, U+FFFF */
    return 0;
}

static bool starts_plain(struct str s)
{
    if (strchr(" ,[]{}#&*!|>'\"%@`", s.p[0]))
        return false;
    if (s.p[0] == '-' || s.p[0] == '?' || s.p[0] == ':')
        return s.len > 1 && s.p[1] != ' ' && !str_starts(s, STR("---"));
    return !str_starts(s, STR("...")) && !str_eqz(s, "=") && !str_eqz(s, "<<");
}

bool scalar_is_plain(struct str s)
{
    if (s.len == 0 || !starts_plain(s) || s.p[s.len - 1] == ' ' || s.p[s.len - 1] == ':')
        return false;
    for (size_t i = 0; i < s.len; i++) {
        if (scalar_special(s, i))
            return false;
        if (i > 0 && ((s.p[i] == '#' && s.p[i - 1] == ' ') || (s.p[i] == ' ' && s.p[i - 1] == ':')))
            return false;
    }
    AUTO_BUF unused = { 0 };
    return scalar_resolve(s, &unused) == SCALAR_STRING && !is_value_elsewhere(s);
}

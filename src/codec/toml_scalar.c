/* Values that are one word: true, numbers, dates and times. TOML's grammar of them is strict (no
 * leading zeros, digits around every point and underscore), and says by the first characters
 * which one it is; so each reader may refuse with a message of its own. */
#include "codec/toml_inner.h"
#include "codec/duration.h"

#include <math.h>
#include <yyjson.h>

static struct toml *new_text(struct arena *arena, enum toml_type type, struct str text)
{
    struct toml *v = toml_new(arena, type, ORIGIN_MADE);
    v->str = text;
    return v;
}

/* --- numbers --- */

static int digit_value(char c)
{
    if (char_is_digit(c))
        return c - '0';
    c = char_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16;
}

/* Moves digits from the front of `s` to `plain`, without the underscores between them. False if
 * there are none, or an underscore does not stand between two. */
static bool take_digits(struct str *s, int base, struct buf *plain)
{
    size_t i = 0;
    bool digit = false;
    for (; i < s->len; i++) {
        bool underscore = s->p[i] == '_';
        if (underscore && !digit)
            return false;
        if (!underscore && digit_value(s->p[i]) >= base)
            break;
        if (!underscore)
            buf_addc(plain, s->p[i]);
        digit = !underscore;
    }
    *s = str_sub(*s, i, s->len);
    return digit;
}

static bool take_char(struct str *s, const char *any)
{
    if (!s->len || !s->p[0] || !strchr(any, s->p[0]))
        return false;
    *s = str_sub(*s, 1, s->len);
    return true;
}

static int read_integer(struct arena *arena, struct str word, struct str digits, int base,
                        bool negative, struct toml **out, struct err *err)
{
    uint64_t v = 0, limit = (uint64_t)INT64_MAX + negative;
    for (size_t i = 0; i < digits.len; i++) {
        uint64_t digit = (uint64_t)digit_value(digits.p[i]);
        if (v > (limit - digit) / (uint64_t)base)
            return err_set(err, ERR_INVALID, "%s does not fit in 64 bits", STR_SHOWN(word));
        v = v * (uint64_t)base + digit;
    }
    *out = toml_new_int(arena, negative ? (int64_t)(0 - v) : (int64_t)v);
    return 0;
}

static int read_float(struct arena *arena, struct str word, const struct buf *plain,
                      struct toml **out, struct err *err)
{
    yyjson_val v;
    if (!yyjson_read_number(plain->p, &v, 0, NULL, NULL))
        return err_set(err, ERR_INVALID, "%s is beyond what a float can hold", STR_SHOWN(word));
    *out = toml_new_float(arena, yyjson_get_num(&v));
    return 0;
}

static int no_number(struct str word, struct err *err)
{
    return err_set(err, ERR_INVALID, "%s is no number", STR_SHOWN(word));
}

static int read_decimal(struct arena *arena, struct str word, struct toml **out, struct err *err)
{
    AUTO_BUF plain = { 0 };
    struct str rest = word;
    bool negative = word.p[0] == '-', real = false;
    take_char(&rest, "+-");
    if (negative)
        buf_addc(&plain, '-');
    size_t start = plain.len;
    if (!take_digits(&rest, 10, &plain))
        return no_number(word, err);
    if (plain.len - start > 1 && plain.p[start] == '0')
        return err_set(err, ERR_INVALID, "%s has a leading zero", STR_SHOWN(word));

    if (take_char(&rest, ".")) {
        real = true;
        buf_addc(&plain, '.');
        if (!take_digits(&rest, 10, &plain))
            return no_number(word, err);
    }
    if (take_char(&rest, "eE")) {
        real = true;
        buf_addc(&plain, 'e');
        if (rest.len && rest.p[0] == '-')
            buf_addc(&plain, '-');
        take_char(&rest, "+-");
        if (!take_digits(&rest, 10, &plain))
            return no_number(word, err);
    }
    if (rest.len)
        return no_number(word, err);
    if (real)
        return read_float(arena, word, &plain, out, err);
    return read_integer(arena, word, str_sub(buf_str(&plain), start, plain.len), 10, negative, out,
                        err);
}

static int read_number(struct arena *arena, struct str word, struct toml **out, struct err *err)
{
    if (word.len < 2 || word.p[0] != '0' || !strchr("xob", word.p[1]))
        return read_decimal(arena, word, out, err);
    AUTO_BUF plain = { 0 };
    struct str rest = str_sub(word, 2, word.len);
    int base = word.p[1] == 'x' ? 16 : word.p[1] == 'o' ? 8 : 2;
    if (!take_digits(&rest, base, &plain) || rest.len)
        return no_number(word, err);
    return read_integer(arena, word, buf_str(&plain), base, false, out, err);
}

static bool read_special_float(struct arena *arena, struct str word, struct toml **out)
{
    bool negative = word.p[0] == '-';
    take_char(&word, "+-");
    if (!str_eqz(word, "inf") && !str_eqz(word, "nan"))
        return false;
    double v = word.p[0] == 'i' ? HUGE_VAL : (double)NAN;
    *out = toml_new_float(arena, negative ? -v : v);
    return true;
}

/* --- dates and times --- */

/* True if the text starts with the shape: '0' in it stands for a digit. */
static bool has_shape(struct str s, const char *shape)
{
    size_t len = strlen(shape);
    if (s.len < len)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (shape[i] == '0' ? !char_is_digit(s.p[i]) : s.p[i] != shape[i])
            return false;
    }
    return true;
}

static bool take_shape(struct str *s, const char *shape)
{
    if (!has_shape(*s, shape))
        return false;
    *s = str_sub(*s, strlen(shape), s->len);
    return true;
}

static unsigned number_at(struct str s, size_t at, size_t digits)
{
    unsigned v = 0;
    for (size_t i = at; i < at + digits; i++)
        v = v * 10 + (unsigned)(s.p[i] - '0');
    return v;
}

static bool take_date(struct str *s)
{
    struct str date = *s;
    if (!take_shape(s, "0000-00-00"))
        return false;
    unsigned year = number_at(date, 0, 4), month = number_at(date, 5, 2),
             day = number_at(date, 8, 2);
    return month >= 1 && month <= 12 && day >= 1 &&
           day <= civil_days_in_month((int32_t)year, month);
}

/* Second 60 is RFC 3339's leap second; on which days there is one, no text can know. */
static bool take_time(struct str *s)
{
    struct str time = *s;
    if (!take_shape(s, "00:00:00") || number_at(time, 0, 2) > 23 || number_at(time, 3, 2) > 59 ||
        number_at(time, 6, 2) > 60)
        return false;
    return !take_char(s, ".") || str_take_digits(s).len > 0;
}

static bool take_offset(struct str *s)
{
    struct str offset = *s;
    if (take_char(s, "Zz"))
        return true;
    return (take_shape(s, "+00:00") || take_shape(s, "-00:00")) && number_at(offset, 1, 2) <= 23 &&
           number_at(offset, 4, 2) <= 59;
}

static int bad_date(struct str word, struct err *err)
{
    return err_set(err, ERR_INVALID, "%s is no date or time", STR_SHOWN(word));
}

static int read_date(struct arena *arena, struct str word, struct toml **out, struct err *err)
{
    struct str rest = word;
    if (!take_date(&rest))
        return bad_date(word, err);
    if (!rest.len) {
        *out = new_text(arena, TOML_DATE_LOCAL, word);
        return 0;
    }
    if (!take_char(&rest, "Tt ") || !take_time(&rest))
        return bad_date(word, err);
    enum toml_type type = rest.len ? TOML_DATETIME : TOML_DATETIME_LOCAL;
    if (rest.len && (!take_offset(&rest) || rest.len))
        return bad_date(word, err);
    char *text = arena_alloc(arena, word.len + 1);
    memcpy(text, word.p, word.len);
    text[10] = 'T';
    if (text[word.len - 1] == 'z')
        text[word.len - 1] = 'Z';
    *out = new_text(arena, type, (struct str){ text, word.len });
    return 0;
}

static int read_time(struct arena *arena, struct str word, struct toml **out, struct err *err)
{
    struct str rest = word;
    if (!take_time(&rest) || rest.len)
        return bad_date(word, err);
    *out = new_text(arena, TOML_TIME_LOCAL, word);
    return 0;
}

/* --- all of them --- */

int toml_read_word(struct arena *arena, struct str word, struct toml **out, struct err *err)
{
    if (str_eqz(word, "true") || str_eqz(word, "false")) {
        *out = toml_new_bool(arena, word.len == 4);
        return 0;
    }
    if (!word.len)
        return err_set(err, ERR_INVALID, "a value is missing");
    if (read_special_float(arena, word, out))
        return 0;
    if (has_shape(word, "0000-"))
        return read_date(arena, word, out, err);
    if (has_shape(word, "00:"))
        return read_time(arena, word, out, err);
    if (char_is_digit(word.p[0]) || word.p[0] == '+' || word.p[0] == '-')
        return read_number(arena, word, out, err);
    return err_set(err, ERR_INVALID, "%s is no value; a text stands in quotes", STR_SHOWN(word));
}

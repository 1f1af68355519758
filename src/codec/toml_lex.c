/* The small parts of a text: blanks, line ends, comments, keys and strings.
 *
 * Control characters are forbidden everywhere in TOML, comments included, and a carriage return is
 * only ever part of a line end. So the whole text is checked once at the start, and nothing after
 * that has to think of them: '\r' always is followed by '\n', and NUL can stand for the end. */
#include "codec/toml_inner.h"

#include "codec/json_scan.h"

#include <stdio.h>

/* --- places and messages --- */

struct text_pos toml_here(const struct toml_reader *r)
{
    return (struct text_pos){ r->line, (uint32_t)(r->at - r->line_start) + 1 };
}

int(toml_fail)(struct toml_reader *r, struct text_pos at, const char *fmt, ...)
{
    char text[ERR_TEXT_MAX];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    r->failed = at;
    return err_set(r->err, ERR_INVALID, "%s", text);
}

const char *toml_found(const struct toml_reader *r, char out[TOML_FOUND_MAX])
{
    char c = toml_peek(r);
    struct str rest = str_sub(r->text, r->at, r->text.len);
    if (c == 0)
        return "the end of the text";
    if (c == '\n' || c == '\r')
        return "the end of the line";
    snprintf(out, TOML_FOUND_MAX, "%s", STR_SHOWN(str_sub(rest, 0, str_utf8_first(rest))));
    return out;
}

/* --- the text as a whole --- */

static bool is_forbidden(struct str text, size_t i)
{
    unsigned char c = (unsigned char)text.p[i];
    if (c == '\r')
        return i + 1 == text.len || text.p[i + 1] != '\n';
    return (c < ' ' && c != '\t' && c != '\n') || c == 0x7f;
}

int toml_check_text(struct toml_reader *r)
{
    struct text_pos start = { 1, 1 };
    struct str text = r->text;
    if (text.len > TOML_BYTES_MAX)
        return toml_fail(r, start, "the text is longer than %zu bytes", TOML_BYTES_MAX);
    if (str_starts(text, STR("\xef\xbb\xbf"))) {
        r->at = r->line_start = 3; /* a byte order mark takes no column */
        text = str_sub(text, 3, text.len);
    }
    size_t good = str_utf8_prefix(text);
    for (size_t i = 0; i < good; i++) {
        if (!is_forbidden(text, i))
            continue;
        return toml_fail(r, text_pos_at(text, i, start), "%s is not allowed here",
                         text.p[i] == '\r' ? "a carriage return without a line feed"
                                           : "a control character");
    }
    if (good < text.len)
        return toml_fail(r, text_pos_at(text, good, start), "this is not UTF-8");
    return 0;
}

/* --- blanks, line ends, comments --- */

static void take_line_end(struct toml_reader *r) /* at one */
{
    r->at += r->text.p[r->at] == '\r' ? 2 : 1;
    r->line++;
    r->line_start = r->at;
}

static bool at_line_end(const struct toml_reader *r)
{
    char c = toml_peek(r);
    return c == '\n' || c == '\r';
}

static void skip_comment(struct toml_reader *r)
{
    if (toml_peek(r) != '#')
        return;
    while (r->at < r->text.len && !at_line_end(r))
        r->at++;
}

void toml_skip_blanks(struct toml_reader *r)
{
    while (toml_peek(r) == ' ' || toml_peek(r) == '\t')
        r->at++;
}

void toml_skip_lines(struct toml_reader *r)
{
    for (;;) {
        toml_skip_blanks(r);
        skip_comment(r);
        if (!at_line_end(r))
            return;
        take_line_end(r);
    }
}

int toml_end_line(struct toml_reader *r)
{
    toml_skip_blanks(r);
    skip_comment(r);
    if (r->at == r->text.len)
        return 0;
    if (!at_line_end(r))
        return toml_fail(r, toml_here(r), "expected the end of the line, found %s", TOML_FOUND(r));
    take_line_end(r);
    return 0;
}

/* --- escapes --- */

static int hex_value(char c)
{
    if (char_is_digit(c))
        return c - '0';
    c = char_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static char *put_utf8(char *to, uint32_t c)
{
    if (c < 0x80) {
        *to++ = (char)c;
        return to;
    }
    if (c < 0x800) {
        *to++ = (char)(0xc0 | c >> 6);
    } else {
        if (c < 0x10000) {
            *to++ = (char)(0xe0 | c >> 12);
        } else {
            *to++ = (char)(0xf0 | c >> 18);
            *to++ = (char)(0x80 | (c >> 12 & 0x3f));
        }
        *to++ = (char)(0x80 | (c >> 6 & 0x3f));
    }
    *to++ = (char)(0x80 | (c & 0x3f));
    return to;
}

/* The digits of \u and \U, which the reader is at. */
static int read_code_point(struct toml_reader *r, struct text_pos at, size_t digits, char **to)
{
    uint32_t c = 0;
    for (size_t i = 0; i < digits; i++, r->at++) {
        int digit = hex_value(toml_peek(r));
        if (digit < 0)
            return toml_fail(r, at, "\\%c needs %zu hexadecimal digits", digits == 4 ? 'u' : 'U',
                             digits);
        c = c << 4 | (uint32_t)digit;
    }
    if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return toml_fail(r, at, "U+%04X is no character", c);
    *to = put_utf8(*to, c);
    return 0;
}

/* A backslash at the end of a line takes the line end with it, and all blanks and line ends
 * after. */
static bool skip_joined_lines(struct toml_reader *r)
{
    size_t at = r->at;
    toml_skip_blanks(r);
    if (!at_line_end(r)) {
        r->at = at;
        return false;
    }
    while (at_line_end(r)) {
        take_line_end(r);
        toml_skip_blanks(r);
    }
    return true;
}

static int read_escape(struct toml_reader *r, bool multiline, char **to) /* at the backslash */
{
    static const char names[] = "btnfr\"\\", meant[] = "\b\t\n\f\r\"\\";
    struct text_pos at = toml_here(r);
    r->at++;
    char c = toml_peek(r);
    const char *name = c ? strchr(names, c) : NULL;
    if (name) {
        r->at++;
        *(*to)++ = meant[name - names];
        return 0;
    }
    if (c == 'u' || c == 'U') {
        r->at++;
        return read_code_point(r, at, c == 'u' ? 4 : 8, to);
    }
    if (multiline && skip_joined_lines(r))
        return 0;
    return toml_fail(r, at, "a backslash is followed by one of b t n f r \" \\ u U%s, not by %s",
                     multiline ? " or the end of the line" : "", TOML_FOUND(r));
}

/* --- strings --- */

struct quoted {   /* what stands between the quotes */
    size_t end;   /* behind it */
    size_t close; /* bytes of the closing quotes */
    bool escapes;
};

/* Find the end of the string that the reader is in: up to two quotes more than the three that
 * close it belong to a multi-line string. */
static int find_end(const struct toml_reader *r, char quote, bool multiline, struct quoted *out)
{
    *out = (struct quoted){ .close = multiline ? 3 : 1 };
    for (size_t i = r->at; i < r->text.len; i++) {
        char c = r->text.p[i];
        if (c == '\\' && quote == '"') {
            out->escapes = true;
            i++;
        } else if (c == quote) {
            size_t run = 1;
            while (run < 5 && i + run < r->text.len && r->text.p[i + run] == quote)
                run++;
            if (!multiline || run >= 3) {
                out->end = multiline ? i + run - 3 : i;
                return 0;
            }
            i += run - 1;
        } else if (!multiline && (c == '\n' || c == '\r')) {
            return -1;
        }
    }
    return -1;
}

/* From the reader's place to the end; decoding never makes a text longer. */
static int decode(struct toml_reader *r, bool multiline, const struct quoted *q, struct str *out)
{
    char *text = arena_alloc(r->arena, q->end - r->at + 1), *to = text;
    while (r->at < q->end) {
        if (r->text.p[r->at] == '\\') {
            if (read_escape(r, multiline, &to) < 0)
                return -1;
        } else if (r->text.p[r->at] == '\n') {
            *to++ = '\n';
            take_line_end(r);
        } else {
            *to++ = r->text.p[r->at++];
        }
    }
    *out = (struct str){ text, (size_t)(to - text) };
    return 0;
}

static void skip_to(struct toml_reader *r, size_t end)
{
    while (r->at < end) {
        if (r->text.p[r->at] == '\n')
            take_line_end(r);
        else
            r->at++;
    }
}

/* At the first character behind the opening quotes, which stood at `start`. */
static int read_quoted(struct toml_reader *r, struct text_pos start, char quote, bool multiline,
                       struct str *out)
{
    struct quoted q;
    if (multiline && at_line_end(r))
        take_line_end(r);
    if (find_end(r, quote, multiline, &q) < 0)
        return toml_fail(r, start, "the string has no closing quotes%s",
                         multiline ? "" : " on its line");
    if (q.escapes) {
        if (decode(r, multiline, &q, out) < 0)
            return -1;
    } else {
        *out = str_sub(r->text, r->at, q.end - r->at);
        skip_to(r, q.end);
    }
    r->at += q.close;
    return 0;
}

int toml_read_string(struct toml_reader *r, struct str *out)
{
    struct text_pos start = toml_here(r);
    char quote = toml_peek(r);
    char three[3] = { quote, quote, quote };
    bool multiline =
        str_starts(str_sub(r->text, r->at, r->text.len), (struct str){ three, sizeof three });
    r->at += multiline ? 3 : 1;
    return read_quoted(r, start, quote, multiline, out);
}

/* --- keys and words --- */

static bool is_bare(char c)
{
    return char_is_alnum(c) || c == '_' || c == '-';
}

int toml_read_key(struct toml_reader *r, struct str *out)
{
    struct text_pos start = toml_here(r);
    char c = toml_peek(r);
    if (c == '"' || c == '\'') {
        r->at++;
        return read_quoted(r, start, c, false, out);
    }
    size_t from = r->at;
    while (is_bare(toml_peek(r)))
        r->at++;
    if (r->at == from)
        return toml_fail(r, start, "expected a key, found %s", TOML_FOUND(r));
    *out = str_sub(r->text, from, r->at - from);
    return 0;
}

static bool ends_word(char c)
{
    return c == 0 || strchr(" \t\r\n,]}#", c) != NULL;
}

/* "2026-01-02 15:": the blank in it is part of the word. */
static bool date_goes_on(struct str date, struct str rest)
{
    return date.len == 10 && date.p[4] == '-' && char_is_digit(date.p[0]) && rest.len > 1 &&
           rest.p[0] == ' ' && char_is_digit(rest.p[1]);
}

struct str toml_take_word(struct toml_reader *r)
{
    size_t from = r->at;
    while (!ends_word(toml_peek(r)))
        r->at++;
    if (date_goes_on(str_sub(r->text, from, r->at - from), str_sub(r->text, r->at, r->text.len))) {
        r->at++;
        while (!ends_word(toml_peek(r)))
            r->at++;
    }
    return str_sub(r->text, from, r->at - from);
}

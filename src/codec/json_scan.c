/* A scanner of tokens. In valid JSON every token that is not punctuation starts a value (or a
 * key), in the order in which yyjson stores them: counting tokens finds the place of a value. */
#include "codec/json_scan.h"

struct text_pos text_pos_at(struct str text, size_t offset, struct text_pos start)
{
    struct text_pos pos = start;
    for (size_t i = 0; i < offset && i < text.len; i++) {
        bool crlf = text.p[i] == '\r' && i + 1 < text.len && text.p[i + 1] == '\n';
        if (text.p[i] == '\n' || (text.p[i] == '\r' && !crlf)) {
            pos.line++;
            pos.col = 1;
        } else {
            pos.col++;
        }
    }
    return pos;
}

/* The offset behind the string whose opening quote is at `at`, or the end of the text. */
static size_t string_end(struct str text, size_t at)
{
    for (size_t i = at + 1; i < text.len; i++) {
        if (text.p[i] == '\\')
            i++;
        else if (text.p[i] == '"')
            return i + 1;
    }
    return text.len;
}

static bool ends_word(char c)
{
    return c == ',' || c == ':' || c == '{' || c == '}' || c == '[' || c == ']' || c == '"' ||
           c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The offset behind a number or literal. */
static size_t word_end(struct str text, size_t at)
{
    while (at < text.len && !ends_word(text.p[at]))
        at++;
    return at;
}

/* The offset of the next value at or after `at`, past white space and punctuation. */
static size_t value_start(struct str text, size_t at)
{
    while (at < text.len && ends_word(text.p[at]) && text.p[at] != '"' && text.p[at] != '{' &&
           text.p[at] != '[')
        at++;
    return at;
}

/* Where to look for the value after the one at `at`: of a list or object that is its first. */
static size_t value_skip(struct str text, size_t at)
{
    if (text.p[at] == '"')
        return string_end(text, at);
    if (text.p[at] == '{' || text.p[at] == '[')
        return at + 1;
    return word_end(text, at);
}

void json_scan_positions(struct str text, struct text_pos start, struct text_pos *out, size_t count)
{
    struct text_pos pos = start;
    size_t at = 0;
    for (size_t i = 0; i < count && at < text.len; i++) {
        size_t value = value_start(text, at);
        pos = text_pos_at(str_sub(text, at, text.len), value - at, pos);
        out[i] = pos;
        if (value == text.len)
            return;
        at = value_skip(text, value);
        pos = text_pos_at(str_sub(text, value, text.len), at - value, pos);
    }
}

struct json_extent json_scan_extent(struct str text)
{
    size_t depth = 0, at = 0;
    while (at < text.len) {
        char c = text.p[at];
        if (c == '"') {
            at = string_end(text, at);
        } else if (c == '{' || c == '[') {
            if (++depth > JSON_DEPTH_MAX)
                return (struct json_extent){ .end = text.len, .too_deep = at };
            at++;
            continue;
        } else if (c == '}' || c == ']') {
            at++;
            if (depth > 0)
                depth--;
        } else if (ends_word(c)) {
            at++;
            continue;
        } else {
            at = word_end(text, at);
        }
        if (depth == 0)
            break;
    }
    return (struct json_extent){ .end = at, .too_deep = SIZE_MAX };
}

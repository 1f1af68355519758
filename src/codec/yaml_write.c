/* Block style: a member or item per line, two spaces a level, lists not indented under their key,
 * as kubectl prints it. A string is plain if it reads back as itself, a literal block if it has
 * lines, quoted otherwise.
 *
 * `indent` is the column of the enclosing container's keys or dashes; the caller has written what
 * stands before the value on its line ("key:", "-", nothing at the top). */
#include "codec/json_inner.h"
#include "codec/yaml.h"
#include "codec/yaml_scalar.h"

/* Readers give up on a key's ':' after 1024 characters, unless the key is announced by '?'. */
#define KEY_BYTES_MAX 1000

static void write_value(const json_val *v, size_t indent, const char *gap, struct buf *out);

static void add_indent(size_t indent, struct buf *out)
{
    for (size_t i = 0; i < indent; i++)
        buf_addc(out, ' ');
}

/* --- strings --- */

static void write_escaped(const unsigned char *p, size_t len, struct buf *out)
{
    unsigned code = p[0];
    if (len == 2)
        code = (code & 0x1fu) << 6 | (p[1] & 0x3fu);
    else if (len == 3)
        code = (code & 0x0fu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
    if (code == '\n')
        buf_addz(out, "\\n");
    else if (code == '\t')
        buf_addz(out, "\\t");
    else if (code == '\r')
        buf_addz(out, "\\r");
    else
        buf_addf(out, "\\u%04x", code);
}

static void write_quoted(struct str s, struct buf *out)
{
    buf_addc(out, '"');
    for (size_t i = 0; i < s.len;) {
        size_t special = scalar_special(s, i);
        if (special) {
            write_escaped((const unsigned char *)s.p + i, special, out);
            i += special;
            continue;
        }
        if (s.p[i] == '"' || s.p[i] == '\\')
            buf_addc(out, '\\');
        buf_addc(out, s.p[i++]);
    }
    buf_addc(out, '"');
}

/* Can a block say it? It must have lines, begin somewhere, and hold nothing to escape. */
static bool is_literal_block(struct str s)
{
    if (str_find(s, '\n') < 0)
        return false;
    bool blank = true;
    for (size_t i = 0; i < s.len; i++) {
        if (scalar_special(s, i) && s.p[i] != '\n' && s.p[i] != '\t')
            return false;
        blank = blank && (s.p[i] == '\n' || s.p[i] == ' ' || s.p[i] == '\t');
    }
    return !blank;
}

static void write_literal_block(struct str s, size_t indent, struct buf *out)
{
    size_t start = 0;
    while (s.p[start] == '\n')
        start++;
    buf_addc(out, '|');
    if (s.p[start] == ' ' || s.p[start] == '\t')
        buf_addc(out, '2'); /* the first line is indented itself: say where it begins */
    if (!str_ends(s, STR("\n")))
        buf_addc(out, '-');
    else if (str_ends(s, STR("\n\n")))
        buf_addc(out, '+');
    buf_addc(out, '\n');

    bool more = true;
    while (more && s.len > 0) {
        struct str line;
        more = str_cut(s, '\n', &line, &s);
        if (line.len > 0) {
            add_indent(indent + 2, out);
            buf_add(out, line);
        }
        buf_addc(out, '\n');
    }
}

static void write_string(struct str s, size_t indent, struct buf *out)
{
    if (is_literal_block(s)) {
        write_literal_block(s, indent, out);
        return;
    }
    if (scalar_is_plain(s))
        buf_add(out, s);
    else
        write_quoted(s, out);
    buf_addc(out, '\n');
}

/* Readers of strict YAML 1.1 take 1e30 for a string: to them a float has a point, and its exponent
 * a sign. */
static void write_number(const json_val *v, struct buf *out)
{
    AUTO_BUF text = { 0 };
    struct str digits, exponent;
    json_write(v, &text);
    bool scientific = str_cut(buf_str(&text), 'e', &digits, &exponent);
    buf_add(out, digits);
    if (scientific) {
        buf_addz(out, str_find(digits, '.') < 0 ? ".0e" : "e");
        buf_addz(out, exponent.p[0] == '-' ? "" : "+");
        buf_add(out, exponent);
    }
    buf_addc(out, '\n');
}

/* --- containers --- */

static void write_key(struct str key, size_t indent, struct buf *out)
{
    bool announced = key.len > KEY_BYTES_MAX / 6; /* an escape is six bytes */
    if (announced)
        buf_addz(out, "? ");
    if (scalar_is_plain(key))
        buf_add(out, key);
    else
        write_quoted(key, out);
    if (announced) {
        buf_addc(out, '\n');
        add_indent(indent, out);
    }
    buf_addc(out, ':');
}

/* The first line continues the current one: it is indented already. */
static void write_members(const json_val *object, size_t indent, struct buf *out)
{
    bool first = true;
    json_each_member(object, key, val) {
        if (!first)
            add_indent(indent, out);
        first = false;
        write_key(json_str(key), indent, out);
        if (json_count(val) > 0) {
            size_t inner = json_is_array(val) ? indent : indent + 2;
            buf_addc(out, '\n');
            add_indent(inner, out);
            write_value(val, inner, "", out);
        } else {
            write_value(val, indent, " ", out);
        }
    }
}

static void write_items(const json_val *array, size_t indent, struct buf *out)
{
    bool first = true;
    json_each_item(array, item) {
        if (!first)
            add_indent(indent, out);
        first = false;
        buf_addc(out, '-');
        write_value(item, json_count(item) > 0 ? indent + 2 : indent, " ", out);
    }
}

/* `gap` separates the value from what stands before it on the line. */
static void write_value(const json_val *v, size_t indent, const char *gap, struct buf *out)
{
    buf_addz(out, gap);
    if (json_is_string(v)) {
        write_string(json_str(v), indent, out);
    } else if (json_is_object(v) && json_count(v) > 0) {
        write_members(v, indent, out);
    } else if (json_is_array(v) && json_count(v) > 0) {
        write_items(v, indent, out);
    } else if (json_is_number(v)) {
        write_number(v, out);
    } else {
        json_write(v, out);
        buf_addc(out, '\n');
    }
}

void yaml_write(const json_val *v, struct buf *out)
{
    write_value(v, 0, "", out);
}

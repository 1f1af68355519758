/* An archive is read in one pass over its lines for each level of nesting, and at most
 * MIME_DEPTH_MAX of those: the cost is linear whatever the text is. Carriage returns go first, so
 * that everything after sees what will be written.
 *
 * Where cloud-init (which reads with Python's email package) and RFC 2046 differ, what cloud-init
 * does decides, with one exception: it takes a line in a part's headers that is no header as the
 * body's first, and then runs a script without its first lines. Here that is an error. */
#include "codec/mime.h"

#include "base/vec.h"
#include "codec/base64.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static struct str trim_blanks(struct str s)
{
    while (s.len && is_blank(s.p[0]))
        s = str_sub(s, 1, s.len);
    while (s.len && is_blank(s.p[s.len - 1]))
        s.len--;
    return s;
}

static bool starts_fold(struct str s, const char *lower)
{
    size_t len = strlen(lower);
    for (size_t i = 0; i < len; i++)
        if (i >= s.len || char_lower(s.p[i]) != lower[i])
            return false;
    return true;
}

static int cmp_fold(struct str a, struct str b)
{
    for (size_t i = 0; i < a.len && i < b.len; i++) {
        int diff = (unsigned char)char_lower(a.p[i]) - (unsigned char)char_lower(b.p[i]);
        if (diff)
            return diff;
    }
    return (a.len > b.len) - (a.len < b.len);
}

bool mime_is_multipart(struct str text)
{
    text = str_trim(text);
    return starts_fold(text, "mime-version:") || starts_fold(text, "content-type:");
}

static struct str without_cr(struct arena *arena, struct str text)
{
    if (str_find(text, '\r') < 0)
        return text;
    char *copy = arena_array(arena, char, text.len);
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++)
        if (text.p[i] != '\r')
            copy[len++] = text.p[i];
    return (struct str){ copy, len };
}

/* --- reading --- */

struct section { /* a run of whole lines */
    struct str text;
    uint32_t line; /* of its first */
};

struct reader {
    struct arena *arena;
    VEC(struct mime_part) parts;
    uint32_t at; /* where it failed */
    struct err *err;
};

/* Takes a line off the front; its newline is not in `line`. */
static bool next_line(struct section *s, struct str *line)
{
    if (!s->text.len)
        return false;
    str_cut(s->text, '\n', line, &s->text);
    s->line++;
    return true;
}

static int invalid(struct reader *r, uint32_t line, const char *fmt, ...) KV_PRINTF(3, 4);

static int invalid(struct reader *r, uint32_t line, const char *fmt, ...)
{
    AUTO_BUF text = { 0 };
    va_list args;
    va_start(args, fmt);
    buf_vaddf(&text, fmt, args);
    va_end(args);
    r->at = line;
    return err_set(r->err, ERR_INVALID, "%s", text.p);
}

static bool is_name_char(char c) /* RFC 9110's token: RFC 5322 allows more, nobody uses it */
{
    return char_is_alnum(c) || (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}

static bool split_header(struct str line, struct mime_header *out)
{
    if (!str_cut(line, ':', &out->name, &out->value) || !out->name.len)
        return false;
    for (size_t i = 0; i < out->name.len; i++)
        if (!is_name_char(out->name.p[i]))
            return false;
    out->value = trim_blanks(out->value);
    return true;
}

/* The end of a header that went over several lines. */
static void unfold(struct reader *r, struct mime_header *last, struct buf *folded)
{
    if (folded->len)
        last->value = arena_str(r->arena, trim_blanks(buf_str(folded)));
    buf_clear(folded);
}

/* Headers up to a blank line or the end; what is left of `s` is the body. */
static int read_headers(struct reader *r, struct section *s, struct mime_part *out)
{
    struct mime_header headers[MIME_HEADERS_MAX];
    uint32_t count = 0;
    AUTO_BUF folded = { 0 };
    for (struct str line; next_line(s, &line) && trim_blanks(line).len;) {
        if (is_blank(line.p[0]) && count) {
            if (!folded.len)
                buf_add(&folded, headers[count - 1].value);
            buf_addc(&folded, ' ');
            buf_add(&folded, trim_blanks(line));
            continue;
        }
        if (count)
            unfold(r, &headers[count - 1], &folded);
        if (count == MIME_HEADERS_MAX)
            return invalid(r, s->line - 1, "more than %d headers", MIME_HEADERS_MAX);
        if (!split_header(line, &headers[count++]))
            return invalid(r, s->line - 1,
                           "%s is not a header; a blank line separates headers and body",
                           STR_SHOWN(line));
    }
    struct mime_header *kept = arena_array(r->arena, struct mime_header, count);
    if (count) {
        unfold(r, &headers[count - 1], &folded);
        memcpy(kept, headers, count * sizeof *kept);
    }
    *out = (struct mime_part){ kept, count, s->text.p ? s->text : STR(""), s->line };
    return 0;
}

enum delimiter { DELIMITER_NONE, DELIMITER_PART, DELIMITER_END };

/* "--B" or "--B--", and perhaps blanks behind. */
static enum delimiter delimiter_of(struct str line, struct str boundary)
{
    if (line.len < boundary.len + 2 || line.p[0] != '-' || line.p[1] != '-' ||
        memcmp(line.p + 2, boundary.p, boundary.len) != 0)
        return DELIMITER_NONE;
    struct str rest = trim_blanks(str_sub(line, boundary.len + 2, line.len));
    if (!rest.len)
        return DELIMITER_PART;
    return str_eqz(rest, "--") ? DELIMITER_END : DELIMITER_NONE;
}

static int read_multipart(struct reader *r, const struct mime_part *container, uint32_t line,
                          unsigned depth);

static int read_part(struct reader *r, struct section s, unsigned depth)
{
    struct mime_part part = { 0 };
    uint32_t first = s.line;
    if (read_headers(r, &s, &part) < 0)
        return -1;
    if (starts_fold(mime_header(&part, "content-type"), "multipart/"))
        return read_multipart(r, &part, first, depth + 1);
    if (r->parts.count == MIME_PARTS_MAX)
        return invalid(r, part.line, "more than %d parts", MIME_PARTS_MAX);
    vec_push(&r->parts, part);
    return 0;
}

/* The parts of a container whose headers start at `line`. */
static int read_multipart(struct reader *r, const struct mime_part *container, uint32_t line,
                          unsigned depth)
{
    struct str type = mime_header(container, "content-type");
    struct str boundary = trim_blanks(mime_param(r->arena, type, "boundary"));
    if (depth > MIME_DEPTH_MAX)
        return invalid(r, line, "multiparts nested more than %d deep", MIME_DEPTH_MAX);
    if (!boundary.len)
        return invalid(r, line, "Content-Type %s has no boundary", STR_SHOWN(type));

    struct section body = { container->body, container->line };
    struct section part = { STR_NONE, 0 }; /* absent until the first delimiter */
    for (struct str text; next_line(&body, &text);) {
        enum delimiter found = delimiter_of(text, boundary);
        if (found == DELIMITER_NONE)
            continue;
        if (part.text.p) {
            /* The newline before a delimiter belongs to it. */
            part.text.len = text.p > part.text.p ? (size_t)(text.p - part.text.p) - 1 : 0;
            if (read_part(r, part, depth) < 0)
                return -1;
        }
        if (found == DELIMITER_END)
            return 0;
        part = (struct section){ body.text.p ? body.text : STR(""), body.line };
    }
    if (!part.text.p)
        return invalid(r, line, "the boundary %s never occurs", STR_SHOWN(boundary));
    return str_trim(part.text).len ? read_part(r, part, depth) : 0;
}

static int read_archive(struct reader *r, struct str text)
{
    if (text.len > MIME_BYTES_MAX)
        return invalid(r, 1, "longer than %zu bytes", MIME_BYTES_MAX);
    struct section s = { without_cr(r->arena, text), 1 }, next = s;
    for (struct str line; next_line(&next, &line) && !trim_blanks(line).len;)
        s = next;

    struct mime_part head = { 0 };
    uint32_t first = s.line;
    if (read_headers(r, &s, &head) < 0)
        return -1;
    struct str type = mime_header(&head, "content-type");
    if (!type.p)
        return invalid(r, first, "no Content-Type");
    if (!starts_fold(type, "multipart/"))
        return invalid(r, first, "Content-Type %s, expected multipart/mixed", STR_SHOWN(type));
    return read_multipart(r, &head, first, 1);
}

int mime_read(struct arena *arena, struct str text, struct mime *out, struct text_pos *at,
              struct err *err)
{
    struct reader r = { .arena = arena, .err = err };
    int rc = read_archive(&r, text);
    if (rc == 0) {
        struct mime_part *parts = arena_array(arena, struct mime_part, r.parts.count);
        if (r.parts.count)
            memcpy(parts, r.parts.items, r.parts.count * sizeof *parts);
        *out = (struct mime){ parts, (uint32_t)r.parts.count };
    } else if (at) {
        *at = (struct text_pos){ r.at, 0 };
    } else {
        err_wrap(err, "line %u", r.at);
    }
    vec_done(&r.parts);
    return rc;
}

/* --- what a part says --- */

struct str mime_header(const struct mime_part *part, const char *name)
{
    for (uint32_t i = 0; i < part->header_count; i++)
        if (cmp_fold(part->headers[i].name, str_of(name)) == 0)
            return part->headers[i].value;
    return STR_NONE;
}

/* Takes a parameter's value off the front: a quoted string, or what stands before the next ';'. */
static struct str take_value(struct str *rest, struct buf *unquoted)
{
    struct str value;
    *rest = trim_blanks(*rest);
    if (!rest->len || rest->p[0] != '"') {
        str_cut(*rest, ';', &value, rest);
        return trim_blanks(value);
    }
    size_t i = 1;
    for (; i < rest->len && rest->p[i] != '"'; i++) {
        if (rest->p[i] == '\\' && i + 1 < rest->len)
            i++;
        buf_addc(unquoted, rest->p[i]);
    }
    struct str behind;
    str_cut(str_sub(*rest, i, rest->len), ';', &behind, rest);
    return buf_str(unquoted);
}

struct str mime_param(struct arena *arena, struct str value, const char *name)
{
    struct str type, rest;
    str_cut(value, ';', &type, &rest);
    while (rest.len) {
        AUTO_BUF unquoted = { 0 };
        struct str key = trim_blanks(rest), found = STR_NONE;
        size_t end = 0;
        while (end < key.len && key.p[end] != '=' && key.p[end] != ';')
            end++;
        if (end == key.len)
            return STR_NONE;
        rest = str_sub(key, end + 1, key.len);
        if (key.p[end] == '=')
            found = take_value(&rest, &unquoted);
        key = trim_blanks(str_sub(key, 0, end));
        if (found.p && cmp_fold(key, str_of(name)) == 0)
            return arena_str(arena, found);
    }
    return STR_NONE;
}

struct str mime_content_type(struct arena *arena, const struct mime_part *part)
{
    struct str type, params;
    str_cut(mime_header(part, "content-type"), ';', &type, &params);
    type = trim_blanks(type);
    if (!type.len)
        return STR("text/plain");
    char *lower = arena_array(arena, char, type.len);
    for (size_t i = 0; i < type.len; i++)
        lower[i] = char_lower(type.p[i]);
    return (struct str){ lower, type.len };
}

/* --- transfer encodings --- */

static int decode_base64(struct str body, struct buf *out, struct err *err)
{
    AUTO_BUF letters = { 0 };
    for (size_t i = 0; i < body.len; i++)
        if (!char_is_space(body.p[i]))
            buf_addc(&letters, body.p[i]);
    return base64_decode(buf_str(&letters), out, err);
}

static int hex_digit(char c)
{
    c = char_lower(c);
    return char_is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int decode_quoted_line(struct str line, struct buf *out, struct err *err)
{
    for (size_t i = 0; i < line.len; i++) {
        if (line.p[i] != '=') {
            buf_addc(out, line.p[i]);
            continue;
        }
        int high = i + 1 < line.len ? hex_digit(line.p[i + 1]) : -1;
        int low = i + 2 < line.len ? hex_digit(line.p[i + 2]) : -1;
        if (high < 0 || low < 0)
            return err_set(err, ERR_INVALID, "not quoted-printable: %s",
                           STR_SHOWN(str_sub(line, i, 3)));
        buf_addc(out, (char)(high << 4 | low));
        i += 2;
    }
    return 0;
}

static int decode_quoted_printable(struct str body, struct buf *out, struct err *err)
{
    bool more = true;
    while (more && body.len) {
        struct str line;
        more = str_cut(body, '\n', &line, &body);
        while (line.len && (is_blank(line.p[line.len - 1]) || line.p[line.len - 1] == '\r'))
            line.len--; /* blanks at the end of a line were added on the way */
        bool soft_break = line.len && line.p[line.len - 1] == '=';
        if (decode_quoted_line(str_sub(line, 0, line.len - soft_break), out, err) < 0)
            return -1;
        if (more && !soft_break)
            buf_addc(out, '\n');
    }
    return 0;
}

int mime_body(struct arena *arena, const struct mime_part *part, struct str *out, struct err *err)
{
    struct str encoding = mime_header(part, "content-transfer-encoding");
    AUTO_BUF decoded = { 0 };
    int rc;
    if (cmp_fold(encoding, STR("base64")) == 0) {
        rc = decode_base64(part->body, &decoded, err);
    } else if (cmp_fold(encoding, STR("quoted-printable")) == 0) {
        rc = decode_quoted_printable(part->body, &decoded, err);
    } else if (!encoding.len || cmp_fold(encoding, STR("7bit")) == 0 ||
               cmp_fold(encoding, STR("8bit")) == 0 || cmp_fold(encoding, STR("binary")) == 0) {
        *out = part->body;
        return 0;
    } else {
        return err_set(err, ERR_INVALID, "Content-Transfer-Encoding %s is not known",
                       STR_SHOWN(encoding));
    }
    if (rc == 0)
        *out = arena_str(arena, buf_str(&decoded));
    return rc;
}

/* --- writing --- */

/* How many = follow the "--//" that starts a line, at most; -1: no line starts so. CRs are not
 * there. */
static ptrdiff_t longest_clash(struct str body)
{
    static const char start[] = "--//";
    ptrdiff_t longest = -1;
    size_t matched = 0; /* characters of this line that are as feared */
    bool as_feared = true;
    for (size_t i = 0; i < body.len; i++) {
        char c = body.p[i];
        if (c == '\r')
            continue;
        if (c == '\n') {
            matched = 0;
            as_feared = true;
            continue;
        }
        as_feared = as_feared && c == (matched < 4 ? start[matched] : '=');
        matched += as_feared;
        if (matched >= 4 && (ptrdiff_t)matched - 4 > longest)
            longest = (ptrdiff_t)matched - 4;
    }
    return longest;
}

static void add_boundary(const struct mime_part *parts, uint32_t count, struct buf *out)
{
    ptrdiff_t longest = -1;
    for (uint32_t i = 0; i < count; i++) {
        ptrdiff_t clash = longest_clash(parts[i].body);
        longest = clash > longest ? clash : longest;
    }
    buf_addz(out, "//");
    for (ptrdiff_t i = 0; i <= longest; i++)
        buf_addc(out, '=');
}

static void add_without_cr(struct str s, struct buf *out)
{
    bool more = true;
    while (more) {
        struct str piece;
        more = str_cut(s, '\r', &piece, &s);
        buf_add(out, piece);
    }
}

static void write_headers(const struct mime_part *part, struct buf *out)
{
    const struct mime_header *sorted[MIME_HEADERS_MAX];
    KV_ASSERT(part->header_count <= MIME_HEADERS_MAX);
    for (uint32_t i = 0; i < part->header_count; i++) {
        uint32_t at = i;
        for (; at > 0 && cmp_fold(sorted[at - 1]->name, part->headers[i].name) > 0; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = &part->headers[i];
    }
    for (uint32_t i = 0; i < part->header_count; i++) {
        buf_add(out, sorted[i]->name);
        buf_addz(out, ": ");
        add_without_cr(sorted[i]->value, out);
        buf_addc(out, '\n');
    }
}

void mime_write(const struct mime_part *parts, uint32_t count, struct buf *out, mime_part_fn *part,
                void *ctx)
{
    AUTO_BUF boundary = { 0 };
    add_boundary(parts, count, &boundary);
    buf_addf(out, "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"%s\"\n\n",
             boundary.p);
    for (uint32_t i = 0; i < count; i++) {
        buf_addf(out, "%s--%s\n", i ? "\n" : "", boundary.p);
        size_t headers = out->len;
        write_headers(&parts[i], out);
        buf_addc(out, '\n');
        size_t body = out->len;
        add_without_cr(parts[i].body, out);
        if (part)
            part(ctx, i, headers, body, out->len);
    }
    buf_addf(out, "\n--%s--\n", boundary.p);
}

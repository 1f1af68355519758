/* Where a problem is and what is said about it: paths, reports, and the words for values that do not
 * fit. */
#include "api/place.h"
#include "api/schema_walk.h"

#include <stdio.h>

/* --- paths and reports --- */

/* At most `max` bytes, cut between characters. */
static struct str text_cut(struct str s, size_t max)
{
    if (s.len <= max)
        return s;
    while (max > 0 && ((unsigned char)s.p[max] & 0xc0) == 0x80)
        max--;
    return (struct str){ s.p, max };
}

static bool is_line(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.p[i] < ' ' || text.p[i] == 0x7f)
            return false;
    }
    return true;
}

static bool is_plain(struct str name)
{
    return name.len > 0 && is_line(name) && str_find(name, ' ') < 0;
}

static void name_add(struct str name, bool quoted, struct buf *out)
{
    struct str shown = text_cut(name, NAME_SHOWN_MAX);
    if (quoted)
        json_write_string(shown, out);
    else
        buf_add(out, shown);
    if (shown.len < name.len)
        buf_addz(out, "...");
}

void name_format(struct str name, struct buf *out)
{
    name_add(name, name.len > 0 && !is_plain(name), out);
}

void message_format(struct str message, struct buf *out)
{
    name_add(message, !is_line(message), out);
}

static void path_add(const struct path *path, struct buf *out)
{
    if (path->up)
        path_add(path->up, out);
    if (!path->name.p) {
        buf_addf(out, "[%u]", path->index);
    } else if (path->quoted || !is_plain(path->name)) {
        buf_addc(out, '[');
        name_add(path->name, true, out);
        buf_addc(out, ']');
    } else {
        if (out->len)
            buf_addc(out, '.');
        name_add(path->name, false, out);
    }
}

void path_format(const struct path *path, struct buf *out)
{
    if (path)
        path_add(path, out);
}

void report_done(struct report *r)
{
    vec_done(&r->problems);
    r->error_count = 0;
}

void report_add(struct report *r, enum severity severity, const struct path *path,
                const json_val *at, const char *fmt, ...)
{
    if (severity == PROBLEM_ERROR)
        r->error_count++;
    if (r->problems.count >= REPORT_PROBLEMS_MAX)
        return;
    AUTO_BUF place = { 0 };
    AUTO_BUF what = { 0 };
    va_list args;
    path_format(path, &place);
    va_start(args, fmt);
    buf_vaddf(&what, fmt, args);
    va_end(args);
    struct problem problem = { .severity = severity,
                               .path = arena_str(r->arena, buf_str(&place)),
                               .what = arena_str(r->arena, buf_str(&what)),
                               .at = at };
    vec_push(&r->problems, problem);
}

/* --- places --- */

struct place place_root(const json_val *root)
{
    return (struct place){ .at = root, .root = true, .found = root != NULL };
}

struct place place_member_str(const struct place *up, struct str name)
{
    const json_val *v = up->found ? json_get(up->at, name) : NULL;
    bool found = v && !json_is_null(v);
    return (struct place){ .path = { .up = place_path(up), .name = name },
                           .at = found ? v : up->at,
                           .found = found };
}

struct place place_member(const struct place *up, const char *name)
{
    return place_member_str(up, str_of(name));
}

struct place place_item(const struct place *up, uint32_t ix, const json_val *item)
{
    return (
        struct place){ .path = { .up = place_path(up), .index = ix }, .at = item, .found = true };
}

struct place place_key(const struct place *up, const json_val *key, const json_val *value)
{
    return (struct place){ .path = { .up = place_path(up), .name = json_key(key), .quoted = true },
                           .at = value,
                           .found = true };
}

/* --- words --- */

const char *field_expected(const struct field *f)
{
    switch ((enum field_type)f->type) {
    case FIELD_OPAQUE:
    case FIELD_JSON:
        return "a value";
    case FIELD_BOOL:
    case FIELD_TRI:
        return "true or false";
    case FIELD_INT:
    case FIELD_MAYBE_INT:
        return "an integer";
    case FIELD_STR:
    case FIELD_ENUM:
        return "a string";
    case FIELD_TIME:
        return "a time such as \"2026-01-02T15:04:05Z\"";
    case FIELD_DURATION:
        return "a duration such as \"1h30m\"";
    case FIELD_DURATION_OR_NEVER:
        return "a duration such as \"1h30m\", or \"Never\"";
    case FIELD_INT_OR_STR:
        return "an integer or a string";
    case FIELD_STRUCT:
    case FIELD_OPTION:
        return "an object";
    case FIELD_LIST:
        return "a list of objects";
    case FIELD_STRS:
        return "a list of strings";
    case FIELD_STR_MAP:
        return "an object of strings";
    case FIELD_RESOURCES:
        return "an object of quantities";
    case FIELD_MAP:
        return "an object of objects";
    case FIELD_QUANTITY:
        return "a quantity such as \"1500m\" or \"2Gi\"";
    case FIELD_VERSION:
        return "a number in a string";
    }
    KV_UNREACHABLE();
}

/* Long texts end in dots; the type's name still fits before them. */
static const char *shorten(struct str text, bool is_start, char out[SHOWN_TEXT_MAX])
{
    struct str shown = text_cut(text, SHOWN_TEXT_MAX - 20);
    snprintf(out, SHOWN_TEXT_MAX, "%.*s%s", STR_ARG(shown),
             is_start || shown.len < text.len ? "..." : "");
    return out;
}

const char *value_shown(const json_val *v, char out[SHOWN_TEXT_MAX])
{
    AUTO_BUF text = { 0 };
    struct str s = json_str(v), start = text_cut(s, SHOWN_TEXT_MAX);
    if (json_is_string(v))
        json_write_string(start, &text);
    else if (json_is_object(v) || json_is_array(v))
        buf_addz(&text, json_type_name(v));
    else
        json_write(v, &text);
    return shorten(buf_str(&text), start.len < s.len, out);
}

const char *value_found(const json_val *v, char out[SHOWN_TEXT_MAX])
{
    char shown[SHOWN_TEXT_MAX];
    if (json_is_string(v) || json_is_number(v) || json_is_bool(v))
        snprintf(out, SHOWN_TEXT_MAX, "%s %.*s", json_type_name(v), SHOWN_TEXT_MAX - 12,
                 value_shown(v, shown));
    else
        value_shown(v, out);
    return out;
}

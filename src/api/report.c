/* Where a problem is and what is said about it: paths, reports, and the words for values that do not
 * fit. */
#include "api/schema_walk.h"

#include <stdio.h>

/* --- paths and reports --- */

static void path_add(const struct path *path, struct buf *out)
{
    if (path->up)
        path_add(path->up, out);
    if (!path->name.p) {
        buf_addf(out, "[%u]", path->index);
    } else if (path->quoted) {
        buf_addc(out, '[');
        json_write_string(path->name, out);
        buf_addc(out, ']');
    } else {
        if (out->len)
            buf_addc(out, '.');
        buf_add(out, path->name);
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

const char *value_shown(const json_val *v, char out[FOUND_TEXT_MAX])
{
    AUTO_BUF text = { 0 };
    if (json_is_object(v) || json_is_array(v))
        buf_addz(&text, json_type_name(v));
    else
        json_write(v, &text);
    /* Cut between characters, not inside one; the type's name still fits before it. */
    size_t room = FOUND_TEXT_MAX - 20, cut = text.len;
    if (cut > room) {
        cut = room;
        while (cut > 0 && ((unsigned char)text.p[cut] & 0xc0) == 0x80)
            cut--;
    }
    snprintf(out, FOUND_TEXT_MAX, "%.*s%s", (int)cut, buf_str(&text).p,
             cut < text.len ? "..." : "");
    return out;
}

const char *value_found(const json_val *v, char out[FOUND_TEXT_MAX])
{
    char shown[FOUND_TEXT_MAX];
    if (json_is_string(v) || json_is_number(v))
        snprintf(out, FOUND_TEXT_MAX, "%s %.*s", json_type_name(v), FOUND_TEXT_MAX - 12,
                 value_shown(v, shown));
    else
        value_shown(v, out);
    return out;
}

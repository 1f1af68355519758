/* Building and writing. yyjson refuses to write a string that is not UTF-8 or a number that is not
 * finite; so that writing cannot fail, neither ever gets into a tree. */
#include "codec/json_inner.h"

#include <math.h>

/* --- building --- */

void json_build_init(struct json_build *b)
{
    b->yy = yyjson_mut_doc_new(&json_alloc);
}

void json_build_done(struct json_build *b)
{
    yyjson_mut_doc_free(b->yy);
    b->yy = NULL;
}

json_mut *json_new_object(struct json_build *b)
{
    return yyjson_mut_obj(b->yy);
}

json_mut *json_new_array(struct json_build *b)
{
    return yyjson_mut_arr(b->yy);
}

json_mut *json_new_str(struct json_build *b, struct str s)
{
    if (!s.p)
        s = STR("");
    if (KV_LIKELY(str_is_utf8(s)))
        return yyjson_mut_strncpy(b->yy, s.p, s.len);
    AUTO_BUF repaired = { 0 };
    buf_add_utf8(&repaired, s);
    return yyjson_mut_strncpy(b->yy, repaired.p, repaired.len);
}

json_mut *json_new_i64(struct json_build *b, int64_t v)
{
    return yyjson_mut_sint(b->yy, v);
}

json_mut *json_new_bool(struct json_build *b, bool v)
{
    return yyjson_mut_bool(b->yy, v);
}

json_mut *json_new_null(struct json_build *b)
{
    return yyjson_mut_null(b->yy);
}

json_mut *json_new_double(struct json_build *b, double v)
{
    KV_ASSERT(isfinite(v));
    return yyjson_mut_real(b->yy, v);
}

json_mut *json_copy(struct json_build *b, const json_val *v)
{
    return yyjson_val_mut_copy(b->yy, (json_val *)v);
}

json_mut *json_mut_copy(struct json_build *b, const json_mut *v)
{
    return yyjson_mut_val_mut_copy(b->yy, (json_mut *)v);
}

void json_set(struct json_build *b, json_mut *object, struct str key, json_mut *v)
{
    json_mut *name = json_new_str(b, key);
    if (!yyjson_mut_obj_replace(object, name, v))
        yyjson_mut_obj_add(object, name, v);
}

void json_set_str(struct json_build *b, json_mut *object, const char *key, struct str s)
{
    json_set(b, object, str_of(key), json_new_str(b, s));
}

void json_set_i64(struct json_build *b, json_mut *object, const char *key, int64_t v)
{
    json_set(b, object, str_of(key), json_new_i64(b, v));
}

void json_set_bool(struct json_build *b, json_mut *object, const char *key, bool v)
{
    json_set(b, object, str_of(key), json_new_bool(b, v));
}

void json_push(struct json_build *b KV_UNUSED, json_mut *array, json_mut *v)
{
    yyjson_mut_arr_append(array, v);
}

json_mut *json_mut_get(const json_mut *object, struct str key)
{
    return key.p ? yyjson_mut_obj_getn((json_mut *)object, key.p, key.len) : NULL;
}

json_mut *json_mut_object(struct json_build *b, json_mut *object, struct str key)
{
    json_mut *child = json_mut_get(object, key);
    if (yyjson_mut_is_obj(child))
        return child;
    child = json_new_object(b);
    json_set(b, object, key, child);
    return child;
}

void json_mut_remove(json_mut *object, struct str key)
{
    if (key.p)
        yyjson_mut_obj_remove_keyn(object, key.p, key.len);
}

/* --- writing --- */

static void add_written(char *text, size_t len, const yyjson_write_err *e, struct buf *out)
{
    KV_ASSERT(e->code == YYJSON_WRITE_SUCCESS);
    buf_add(out, (struct str){ text, len });
    free(text);
}

void json_write(const json_val *v, struct buf *out)
{
    size_t len = 0;
    yyjson_write_err e = { 0 };
    char *text = yyjson_val_write_opts(v, 0, &json_alloc, &len, &e);
    add_written(text, len, &e, out);
}

static void write_mut(const json_mut *v, yyjson_write_flag flags, struct buf *out)
{
    size_t len = 0;
    yyjson_write_err e = { 0 };
    char *text = yyjson_mut_val_write_opts(v, flags, &json_alloc, &len, &e);
    add_written(text, len, &e, out);
}

void json_write_mut(const json_mut *v, struct buf *out)
{
    write_mut(v, 0, out);
}

void json_write_pretty(const json_mut *v, struct buf *out)
{
    write_mut(v, YYJSON_WRITE_PRETTY_TWO_SPACES, out);
}

void json_write_string(struct str s, struct buf *out)
{
    buf_add_quoted(out, s);
}

static void write_canonical_object(const json_val *object, struct buf *out)
{
    AUTO_JSON_KEYS keys;
    json_keys_init(&keys, object);
    buf_addc(out, '{');
    for (size_t i = 0; i < keys.count; i++) {
        if (i > 0)
            buf_addc(out, ',');
        json_write_string(json_str(keys.items[i]), out);
        buf_addc(out, ':');
        json_write_canonical(json_value_of(keys.items[i]), out);
    }
    buf_addc(out, '}');
}

static void write_canonical_array(const json_val *array, struct buf *out)
{
    bool first = true;
    buf_addc(out, '[');
    json_each_item(array, item) {
        if (!first)
            buf_addc(out, ',');
        first = false;
        json_write_canonical(item, out);
    }
    buf_addc(out, ']');
}

void json_write_canonical(const json_val *v, struct buf *out)
{
    if (json_is_object(v)) {
        write_canonical_object(v, out);
    } else if (json_is_array(v)) {
        write_canonical_array(v, out);
    } else if (json_is_string(v)) {
        json_write_string(json_str(v), out);
    } else if (json_is_number(v)) {
        struct json_number n = json_number_of(v);
        if (n.is_integer)
            buf_addf(out, "%s%llu", n.negative ? "-" : "", (unsigned long long)n.magnitude);
        else
            json_write(v, out); /* shortest that reads back as the same double */
    } else {
        json_write(v, out);
    }
}

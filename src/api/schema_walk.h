/* api/schema_walk.h - what the files that walk a schema share; for schema_*.c only. */
#pragma once

#include "api/schema.h"

static inline uint64_t bytes_load64(const char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline uint32_t bytes_load32(const char *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* Field names are 2 to 40 bytes: two or more overlapping loads beat a call to memcmp, and this
 * comparison is made for every key of every object. */
static inline bool bytes_equal(const char *a, const char *b, size_t len)
{
    if (len >= 8) {
        for (size_t i = 0; i + 8 < len; i += 8) {
            if (bytes_load64(a + i) != bytes_load64(b + i))
                return false;
        }
        return bytes_load64(a + len - 8) == bytes_load64(b + len - 8);
    }
    if (len >= 4)
        return bytes_load32(a) == bytes_load32(b) &&
               bytes_load32(a + len - 4) == bytes_load32(b + len - 4);
    return len == 0 || memcmp(a, b, len) == 0;
}

/* The field that a JSON key names, or NULL. `next` is where to look first: keys mostly come in
 * the order of the table. */
static inline const struct field *field_find(const struct schema *schema, struct str key,
                                             uint32_t *next)
{
    uint32_t count = schema->field_count;
    uint32_t ix = *next;
    for (uint32_t tried = 0; tried < count; tried++, ix++) {
        if (ix >= count)
            ix = 0;
        const struct field *f = &schema->fields[ix];
        if (f->name_len == key.len && bytes_equal(f->name, key.p, key.len) &&
            !(f->flags & FIELD_DERIVED)) {
            *next = ix + 1;
            return f;
        }
    }
    return NULL;
}

/* True for the types whose JSON is an object with keys that users choose. */
static inline bool field_is_map(const struct field *f)
{
    return f->type == FIELD_STR_MAP || f->type == FIELD_RESOURCES || f->type == FIELD_MAP;
}

/* Whether a value has the JSON type that a field's type asks for. */
static inline bool json_fits(enum field_type type, const json_val *v)
{
    switch (type) {
    case FIELD_OPAQUE:
    case FIELD_JSON:
        return true;
    case FIELD_BOOL:
    case FIELD_TRI:
        return json_is_bool(v);
    case FIELD_INT:
    case FIELD_MAYBE_INT:
        return json_is_int(v);
    case FIELD_STR:
    case FIELD_ENUM:
    case FIELD_TIME:
    case FIELD_DURATION:
    case FIELD_DURATION_OR_NEVER:
    case FIELD_VERSION:
        return json_is_string(v);
    case FIELD_INT_OR_STR:
        return json_is_string(v) || json_is_int(v);
    case FIELD_QUANTITY:
        return json_is_string(v) || json_is_number(v);
    case FIELD_STRUCT:
    case FIELD_OPTION:
    case FIELD_STR_MAP:
    case FIELD_RESOURCES:
    case FIELD_MAP:
        return json_is_object(v);
    case FIELD_LIST:
    case FIELD_STRS:
        return json_is_array(v);
    }
    KV_UNREACHABLE();
}

/* 1 + the index of `s` among the words, or 0. */
uint8_t enum_index(const char *const *enums, struct str s);

/* A JSON string or number as a quantity. */
int quantity_of_json(const json_val *v, struct quantity *out, struct err *err);

/* "a string", "a list of objects": what a field's JSON should be. */
const char *field_expected(const struct field *f);

/* What was found instead, shortened to fit a line: `string "abc"`, `object`; the value alone:
 * `"abc"`. */
#define FOUND_TEXT_MAX 96
const char *value_found(const json_val *v, char out[FOUND_TEXT_MAX]);
const char *value_shown(const json_val *v, char out[FOUND_TEXT_MAX]);

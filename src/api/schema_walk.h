/* api/schema_walk.h - what the files that walk a schema share; for schema_*.c only. */
#pragma once

#include "api/schema_plan.h"

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

/* A quantity from a JSON string or number; v is one of them. */
int quantity_of_json(const json_val *v, struct quantity *out, struct err *err);

/* "a string", "a list of objects": what a field's JSON should be. */
const char *field_expected(const struct field *f);

#define SHOWN_TEXT_MAX 96

/* What was found instead, shortened to fit a line: `string "abc"`, `object`; the value alone:
 * `"abc"`. */
const char *value_found(const json_val *v, char out[SHOWN_TEXT_MAX]);
const char *value_shown(const json_val *v, char out[SHOWN_TEXT_MAX]);

/* codec/json.h - JSON trees, with the place in the source text of every value.
 *
 * yyjson stays behind this header: no other room names it. Reading gives an immutable tree inside a
 * `struct doc`; YAML (codec/yaml.h) gives the same. Building and patching use the mutable tree of a
 * `struct json_build`.
 *
 * Positions: yyjson keeps the values of a document in one array in pre-order (keys count), so a
 * value's index is `v - doc->root`. A YAML document carries the position of each index; a JSON
 * document finds all of them by scanning its text again, once, when the first is asked for. That
 * is not thread safe: a document has one owner.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

#include <yyjson.h>

typedef yyjson_val json_val;
typedef yyjson_mut_val json_mut;

#define JSON_BYTES_MAX ((size_t)64 << 20) /* one document; an API server refuses far less */
#define JSON_DEPTH_MAX 100                /* Kubernetes objects need about 20 */

struct text_pos {
    uint32_t line, col; /* from 1; col counts bytes. 0: unknown */
};

struct doc {
    const json_val *root;
    yyjson_doc *yy;                   /* owns the values */
    struct str text;                  /* the source, borrowed: it must outlive position look-ups */
    struct text_pos start;            /* of text.p[0] in its file */
    const struct text_pos *positions; /* by value index (YAML); NULL: scan `text` (JSON) */
    struct text_pos *scanned;         /* the same of JSON, owned; NULL: not asked for yet */
};

/* Parse one JSON text. Duplicate keys, invalid UTF-8, NUL characters in strings, a byte order
 * mark, numbers that 64 bits or a double cannot hold, too deep or too long a text are errors with
 * line and column. `text` is borrowed. */
int json_read(struct str text, struct doc *out, struct err *err);

/* The same for a part of a file that starts at `start`. On failure the place is in `at`, and not
 * in the message; -1 is "not JSON", JSON_REFUSED "beyond our limits or rules". */
#define JSON_REFUSED (-2)
int json_read_at(struct str text, struct text_pos start, struct doc *out, struct text_pos *at,
                 struct err *err);

/* The same without the costly checks, for bytes from a trusted API server: equal keys are not
 * noticed, an integer beyond 64 bits becomes a double. The strictness of yyjson and the depth
 * limit remain; the caller bounds the length. */
int json_read_trusted(struct str text, struct doc *out, struct err *err);

/* The same for many documents one after another, as a watch brings them: all in the same memory, so
 * each must be done with before the next is read. Zero-initialised is ready. */
struct json_reader {
    void *memory;
    size_t cap;
};
int json_reader_read(struct json_reader *reader, struct str text, struct doc *out, struct err *err);
void json_reader_done(struct json_reader *reader);

void doc_done(struct doc *doc);
void doc_wipe(struct doc *doc); /* before doc_done: the strings of a JSON document are secrets */
struct text_pos doc_position(const struct doc *doc, const json_val *v);

/* --- reading; all accept NULL as "absent" --- */

static inline bool json_is_object(const json_val *v)
{
    return yyjson_is_obj((json_val *)v);
}
static inline bool json_is_array(const json_val *v)
{
    return yyjson_is_arr((json_val *)v);
}
static inline bool json_is_string(const json_val *v)
{
    return yyjson_is_str((json_val *)v);
}
static inline bool json_is_bool(const json_val *v)
{
    return yyjson_is_bool((json_val *)v);
}
static inline bool json_is_null(const json_val *v)
{
    return yyjson_is_null((json_val *)v);
}
static inline bool json_is_int(const json_val *v) /* an integer in either 64-bit range */
{
    return yyjson_is_int((json_val *)v);
}
static inline bool json_is_number(const json_val *v)
{
    return yyjson_is_num((json_val *)v);
}

static inline struct str json_str(const json_val *v) /* STR_NONE unless v is a string */
{
    return json_is_string(v)
               ? (struct str){ yyjson_get_str((json_val *)v), yyjson_get_len((json_val *)v) }
               : STR_NONE;
}
static inline struct str json_key(const json_val *key) /* of a member: always a string */
{
    return (struct str){ unsafe_yyjson_get_str((json_val *)key),
                         unsafe_yyjson_get_len((json_val *)key) };
}
static inline bool json_bool(const json_val *v)
{
    return yyjson_get_bool((json_val *)v);
}
bool json_i64(const json_val *v, int64_t *out); /* false: not an integer, or out of range */
static inline double json_double(const json_val *v)
{
    return yyjson_get_num((json_val *)v);
}
static inline size_t json_count(const json_val *v) /* members or items; 0 for anything else */
{
    return yyjson_is_ctn((json_val *)v) ? yyjson_get_len((json_val *)v) : 0;
}

/* One past v and all inside it: u lies within v if v <= u < json_end(v). */
static inline const json_val *json_end(const json_val *v)
{
    return unsafe_yyjson_get_next((json_val *)v);
}

const json_val *json_get(const json_val *object, struct str key); /* NULL if absent */
const json_val *json_at(const json_val *array, size_t ix);
const json_val *json_path(const json_val *v, const char *dotted); /* "spec.template.spec" */
const char *json_type_name(const json_val *v); /* "object", "array", "string", "integer", ... */

/* The members or items of a container, from begin up to end: values lie in pre-order, so each is
 * followed by json_end of it. Empty for anything else. */
struct json_span {
    const json_val *begin, *end;
};
static inline struct json_span json_members(const json_val *v)
{
    return json_is_object(v) ? (struct json_span){ v + 1, json_end(v) }
                             : (struct json_span){ NULL, NULL };
}
static inline struct json_span json_items(const json_val *v)
{
    return json_is_array(v) ? (struct json_span){ v + 1, json_end(v) }
                            : (struct json_span){ NULL, NULL };
}

/* json_each_member(object, key, value) { ... }; json_each_item(array, item) { ... } */
#define json_each_member(object, key_, val_)                                                       \
    for (struct json_span key_##_in_ = json_members(object), *key_##_once_ = &key_##_in_;          \
         key_##_once_; key_##_once_ = NULL)                                                        \
        for (const json_val *key_ = key_##_in_.begin, *val_;                                       \
             key_ != key_##_in_.end && (val_ = key_ + 1, true); key_ = json_end(val_))
#define json_each_item(array, item_)                                                               \
    for (struct json_span item_##_in_ = json_items(array), *item_##_once_ = &item_##_in_;          \
         item_##_once_; item_##_once_ = NULL)                                                      \
        for (const json_val *item_ = item_##_in_.begin; item_ != item_##_in_.end;                  \
             item_ = json_end(item_))

bool json_equal(const json_val *a, const json_val *b); /* member order does not matter */

/* --- building --- */

struct json_build {
    yyjson_mut_doc *yy;
};

void json_build_init(struct json_build *b);
void json_build_done(struct json_build *b);
#define AUTO_JSON_BUILD __attribute__((cleanup(json_build_done))) struct json_build

json_mut *json_new_object(struct json_build *b);
json_mut *json_new_array(struct json_build *b);
json_mut *json_new_str(struct json_build *b, struct str s); /* copied */
json_mut *json_new_i64(struct json_build *b, int64_t v);
json_mut *json_new_bool(struct json_build *b, bool v);
json_mut *json_new_null(struct json_build *b);
json_mut *json_new_double(struct json_build *b, double v);
json_mut *json_copy(struct json_build *b, const json_val *v); /* deep */

/* Set or add. The key is copied. An existing member of that name is replaced in place; looking for
 * it walks the members. */
void json_set(struct json_build *b, json_mut *object, struct str key, json_mut *v);
/* Add a member that is known not to be there, with a key made by json_mut_copy or json_new_str: no
 * search. */
static inline void json_add(json_mut *object, json_mut *key, json_mut *v)
{
    yyjson_mut_obj_add(object, key, v);
}
void json_set_str(struct json_build *b, json_mut *object, const char *key, struct str s);
void json_set_i64(struct json_build *b, json_mut *object, const char *key, int64_t v);
void json_set_bool(struct json_build *b, json_mut *object, const char *key, bool v);
void json_push(struct json_build *b, json_mut *array, json_mut *v);
json_mut *json_mut_get(const json_mut *object, struct str key);   /* NULL if absent */
json_mut *json_mut_copy(struct json_build *b, const json_mut *v); /* deep */
static inline bool json_mut_is_object(const json_mut *v)
{
    return yyjson_mut_is_obj((json_mut *)v);
}
static inline bool json_mut_is_null(const json_mut *v)
{
    return yyjson_mut_is_null((json_mut *)v);
}
static inline struct str json_mut_str(const json_mut *v) /* STR_NONE unless v is a string */
{
    return yyjson_mut_is_str((json_mut *)v) ? (struct str){ yyjson_mut_get_str((json_mut *)v),
                                                            yyjson_mut_get_len((json_mut *)v) }
                                            : STR_NONE;
}
static inline size_t json_mut_count(const json_mut *v) /* members or items */
{
    return yyjson_mut_is_ctn((json_mut *)v) ? yyjson_mut_get_len((json_mut *)v) : 0;
}
/* The object at object.key, made if absent or not an object. */
json_mut *json_mut_object(struct json_build *b, json_mut *object, struct str key);
void json_mut_remove(json_mut *object, struct str key);

/* Iterate what is being built; nothing may be added or removed meanwhile. */
#define json_each_mut_member(object, key_, val_)                                                   \
    for (yyjson_mut_obj_iter key_##_it_ = yyjson_mut_obj_iter_with((json_mut *)(object)),          \
                             *key_##_once_ = &key_##_it_;                                          \
         key_##_once_; key_##_once_ = NULL)                                                        \
        for (json_mut * key_, *val_; (key_ = yyjson_mut_obj_iter_next(&key_##_it_)) != NULL &&     \
                                     (val_ = yyjson_mut_obj_iter_get_val(key_), 1);)
#define json_each_mut_item(array, item_)                                                           \
    for (yyjson_mut_arr_iter item_##_it_ = yyjson_mut_arr_iter_with((json_mut *)(array)),          \
                             *item_##_once_ = &item_##_it_;                                        \
         item_##_once_; item_##_once_ = NULL)                                                      \
        for (json_mut * item_; (item_ = yyjson_mut_arr_iter_next(&item_##_it_)) != NULL;)

/* --- writing: compact UTF-8, no trailing newline --- */

void json_write(const json_val *v, struct buf *out);
void json_write_mut(const json_mut *v, struct buf *out);
void json_write_pretty(const json_mut *v, struct buf *out); /* two-space indent */
/* Members sorted by key (bytes), one spelling per number: equal trees give equal bytes. */
void json_write_canonical(const json_val *v, struct buf *out);
void json_write_string(struct str s, struct buf *out); /* quoted and escaped */

/* --- patches --- */

/* RFC 7386. `patch` is applied to `target` (NULL: absent); the result lives in b. */
json_mut *json_merge_patch(struct json_build *b, const json_val *target, const json_val *patch);

#define JSON_PATCH_OPERATIONS_MAX 10000      /* as in an API server */
#define JSON_PATCH_BUDGET ((size_t)16 << 20) /* values and string bytes visited or copied */

/* RFC 6902, all operations; the path that fails is named in err. Nothing is half-applied. */
int json_patch(struct json_build *b, const json_val *target, const json_val *patch, json_mut **out,
               struct err *err);

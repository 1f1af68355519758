/* codec/toml.h - TOML 1.0: read, edit and write, keeping what the author wrote.
 *
 * Reading gives a tree with positions, and remembers the text: order, comments and the spelling of
 * values. Writing a tree that was not edited gives the same bytes back; keys that were added or
 * replaced are written in the canonical form, everything around them stays as it was:
 *
 *   - a comment on a line of its own never moves and never goes;
 *   - a comment at the end of a line stays with its key, and goes when that is removed;
 *   - a table is written the way its author began it: under its header, with dotted keys, or
 *     inline.
 *
 * Everything lives in the arena that the text was read into; edits take the same one.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "codec/json.h" /* struct text_pos */

#define TOML_BYTES_MAX ((size_t)8 << 20) /* the tree takes up to 60 times that */
#define TOML_DEPTH_MAX 100               /* tables and arrays in one another */

enum toml_type {
    TOML_STRING,
    TOML_INTEGER,
    TOML_FLOAT,
    TOML_BOOL,
    TOML_DATETIME, /* with an offset */
    TOML_DATETIME_LOCAL,
    TOML_DATE_LOCAL,
    TOML_TIME_LOCAL,
    TOML_ARRAY,
    TOML_TABLE,
};
const char *toml_type_name(enum toml_type type); /* "a string", "an integer", ... */

struct toml; /* a value */

/* Anything that TOML 1.0 forbids, and an integer or float that 64 bits cannot hold, is ERR_INVALID:
 * "line 4, column 1: key a.b is already defined on line 3". */
int toml_read(struct arena *arena, struct str text, struct toml **out, struct err *err);
/* The same; on failure the place is in `at`, and not in the message. */
int toml_read_at(struct arena *arena, struct str text, struct toml **out, struct text_pos *at,
                 struct err *err);
/* One value, as it would stand behind a key. */
int toml_read_value(struct arena *arena, struct str text, struct toml **out, struct err *err);

/* --- looking; NULL is "absent" to all that take a value --- */

enum toml_type toml_type(const struct toml *v);
bool toml_is(const struct toml *v, enum toml_type type); /* false if absent */
/* Of the value, of a table the place that first names it. Line 0: not from a text. */
struct text_pos toml_pos(const struct toml *v);
/* Of a string: decoded. Of a date or time: RFC 3339, with T and Z. STR_NONE of anything else. */
struct str toml_str(const struct toml *v);
int64_t toml_int(const struct toml *v); /* the three: 0 of any other type */
double toml_float(const struct toml *v);
bool toml_bool(const struct toml *v);
struct str toml_spelling(const struct toml *v); /* as the text has it; STR_NONE: nowhere */

uint32_t toml_count(const struct toml *v); /* of a table or array */
const struct toml *toml_item(const struct toml *array, uint32_t ix);
const struct toml *toml_get(const struct toml *table, struct str key);
/* Walk tables by several keys; NULL if one is absent or not in a table. */
const struct toml *toml_path(const struct toml *table, const char *const *keys, uint32_t count);

/* The keys of a table in order; removing the one at hand is fine. */
struct toml_entry;
const struct toml_entry *toml_first(const struct toml *table);
const struct toml_entry *toml_next(const struct toml_entry *entry);
struct str toml_key(const struct toml_entry *entry);
const struct toml *toml_value(const struct toml_entry *entry);
#define toml_each(table, it)                                                                       \
    for (const struct toml_entry *it = toml_first(table), *it##_next_;                             \
         it && (it##_next_ = toml_next(it), true); it = it##_next_)

/* Same types, values and keys; the order of keys does not matter. NaN equals NaN. */
bool toml_equal(const struct toml *a, const struct toml *b);

/* --- making --- */

struct toml *toml_new_table(struct arena *arena);
struct toml *toml_new_array(struct arena *arena);
struct toml *toml_new_str(struct arena *arena, struct str s); /* copied; must be UTF-8 */
struct toml *toml_new_int(struct arena *arena, int64_t i);
struct toml *toml_new_float(struct arena *arena, double d);
struct toml *toml_new_bool(struct arena *arena, bool b);
/* To an array from toml_new_array. An item has one home, and so has the value of a key. */
void toml_push(struct arena *arena, struct toml *array, struct toml *item);

/* --- editing; values come from toml_new_* or toml_read_value --- */

/* Adds as the last key, or replaces and keeps the place. */
void toml_set(struct arena *arena, struct toml *table, struct str key, struct toml *value);
/* Puts it before the table's other keys, wherever it was; `value` is no table. */
void toml_set_first(struct arena *arena, struct toml *table, struct str key, struct toml *value);
bool toml_remove(struct arena *arena, struct toml *table, struct str key); /* false: not there */
/* The table at that key, made if it is absent. NULL if something else is there. */
struct toml *toml_sub(struct arena *arena, struct toml *table, struct str key);

/* A pointer of the caller's that goes with a value, for toml_write_spans. */
void toml_mark(struct toml *v, const void *mark);
const void *toml_marked(const struct toml *v); /* NULL: none */

/* --- writing --- */

void toml_write(const struct toml *root, struct buf *out);
/* As toml_write, telling of every run of bytes, in order and without gaps, what it is. An inline
 * table that was edited is told key by key. */
struct toml_span {
    size_t start, end;              /* in `out` */
    const struct toml *maybe_value; /* a key's line, a table's header; NULL: comments, layout */
    bool made;                      /* an edit put it there; false: the text has it */
};
typedef void toml_span_fn(void *ctx, const struct toml_span *span);
void toml_write_spans(const struct toml *root, struct buf *out, toml_span_fn *span, void *ctx);
/* One value or key in the canonical form. */
void toml_write_value(const struct toml *v, struct buf *out);
void toml_write_key(struct str key, struct buf *out);

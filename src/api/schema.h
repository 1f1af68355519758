/* api/schema.h - one table per kind, from which everything about its fields follows.
 *
 * A `struct schema` describes a C struct and the JSON object it is decoded from: for each field
 * its JSON name, C type and offset, rules, default and meaning. Decoding, hashing, comparing,
 * compacting, offline validation, "did you mean", defaulting, the CRD's OpenAPI schema and the field
 * reference in docs/ all walk that table; nothing about a field is written twice.
 *
 * Fields stand in the order in which the API server prints them, so that problems and generated
 * texts come in the order that readers know. Decoding does not depend on it.
 *
 * A field that karve knows of but does not need (hostAliases, say) is in the table as
 * FIELD_OPAQUE, so that a misspelt field can be told from an unused one.
 */
#pragma once

#include "base/arena.h"
#include "base/vec.h"
#include "codec/json.h"
#include "codec/quantity.h"

#include <stdatomic.h>
#include <stddef.h>

/* --- the C side of a field --- */

struct maybe_int {
    int64_t value;
    bool set;
};

enum tri { TRI_UNSET, TRI_FALSE, TRI_TRUE }; /* an optional boolean, in a uint8_t */

struct int_or_str { /* "25%", 8080 or "http": str.p is NULL when it is a number */
    struct str str;
    int64_t number;
    bool set;
};

struct duration { /* nanoseconds; `never` only for fields that allow the word */
    int64_t ns;
    bool set, never;
};

struct str_pair {
    struct str key, value;
};

struct str_map { /* sorted by key */
    const struct str_pair *items;
    uint32_t count;
};

struct str_list {
    const struct str *items;
    uint32_t count;
};

struct resource {
    struct str name;
    struct quantity amount;
};

struct resources { /* sorted by name */
    const struct resource *items;
    uint32_t count;
};

/* Lists of structs are declared LIST(struct container) containers; */
#define LIST(type)                                                                                 \
    struct {                                                                                       \
        const type *items;                                                                         \
        uint32_t count;                                                                            \
    }

struct any_list { /* the layout of every list and map, for code that follows a table */
    const void *items;
    uint32_t count;
};

struct str str_map_get(const struct str_map *map, struct str key); /* STR_NONE if absent */
struct str_map str_map_copy(struct arena *arena, const struct str_map *map); /* texts and all */
int str_pair_order(const void *a, const void *b);                            /* by key, for qsort */

enum field_type {
    FIELD_OPAQUE,    /* known; any JSON value; not kept */
    FIELD_BOOL,      /* bool; absent is false */
    FIELD_TRI,       /* uint8_t, enum tri */
    FIELD_INT,       /* int64_t; absent is 0 */
    FIELD_MAYBE_INT, /* struct maybe_int */
    FIELD_ENUM,      /* uint8_t: 1 + index in rule->enums; 0: absent, "" or a word we do not know */
    FIELD_TIME,      /* int64_t microseconds since 1970; absent (or null) is 0 */
    FIELD_DURATION,  /* struct duration; JSON string in Go's form */
    FIELD_DURATION_OR_NEVER,
    FIELD_QUANTITY, /* struct quantity; absent is zero */
    FIELD_VERSION,  /* uint64_t from a decimal string (resourceVersion); absent or "" is 0 */

    /* From here on the C value points somewhere: see FIELD_FIRST_POINTING. */
    FIELD_STR,        /* struct str; absent is STR_NONE */
    FIELD_JSON,       /* struct str: the value's canonical JSON text */
    FIELD_INT_OR_STR, /* struct int_or_str */
    FIELD_STRUCT,     /* the struct itself, by value; absent is all zero */
    FIELD_OPTION,     /* const T *; absent is NULL */
    FIELD_LIST,       /* LIST(T) of structs */
    FIELD_STRS,       /* struct str_list */
    FIELD_STR_MAP,    /* struct str_map */
    FIELD_RESOURCES,  /* struct resources: a JSON object of quantities (numbers are accepted too) */
    /* LIST(T), sorted by key, from a JSON object of objects; T starts with `struct str key`. */
    FIELD_MAP,
};
#define FIELD_FIRST_POINTING FIELD_STR

enum field_flags {
    FIELD_REQUIRED = 1 << 0,
    /* The pointed-to value lives in its own counted block and equal ones are one (FIELD_OPTION and
     * lists and maps of all kinds): what a thousand pods of one Deployment have in common is kept
     * once. It counts only on fields reached from the object through FIELD_STRUCTs. */
    FIELD_SHARED = 1 << 1,
    FIELD_PRESERVE_UNKNOWN = 1 << 2, /* an open object: x-kubernetes-preserve-unknown-fields */
    FIELD_DERIVED = 1 << 3,          /* not in JSON: filled by the kind's `settle` */
    FIELD_CRD_HIDDEN = 1 << 4,       /* decoded, but left out of the CRD's schema (metadata) */
};

/* --- the rules of a field; members left zero do not apply --- */

struct cel_rule {
    const char *rule; /* CEL text, printed in the CRD; NULL ends a list */
    const char *message;
    /* The same rule in C, on the value as written: defaults are not in it yet. `old` is NULL on
     * creation; a rule about changes (it mentions oldSelf) is called only with an old value. */
    bool (*holds)(const json_val *self, const json_val *old);
};

enum list_kind { LIST_PLAIN, LIST_ATOMIC, LIST_SET, LIST_MAP };

struct rule {
    const char *pattern;           /* RE2 */
    const char *const *enums;      /* NULL-terminated */
    const char *dflt;              /* JSON text */
    const char *format;            /* "int32", "int64", "date-time" */
    struct maybe_int min, max;     /* of a number */
    uint32_t len_min, len_max;     /* of a string, in characters; 0: no limit */
    uint32_t items_min, items_max; /* of a list or map; 0: no limit */
    enum list_kind list_kind;
    const char *const *map_keys; /* with LIST_MAP */
    bool map_atomic;             /* x-kubernetes-map-type: atomic */
    const struct cel_rule *cel;  /* on this value */
    /* For each string of a FIELD_STRS, each value of a FIELD_STR_MAP or FIELD_RESOURCES. */
    const struct rule *item;
    const struct rule *key; /* for each key of a map; not expressible in OpenAPI: offline only */
    /* A further check of a string (a cron text, a quantity range): NULL or what is wrong. */
    const char *(*check)(struct str value);
};

struct field {
    const char *name; /* JSON name */
    const char *doc;  /* one or two sentences; NULL for built-in kinds' fields */
    uint8_t type;     /* enum field_type */
    uint8_t flags;    /* enum field_flags */
    uint16_t offset;  /* in the C struct */
    uint16_t name_len;
    bool unkept; /* checked as its type says, but not decoded: see CHECKED() */
    /* Of FIELD_STRUCT, OPTION, LIST, MAP; of FIELD_OPAQUE if its inside is checked too. */
    const struct schema *sub;
    const struct rule *rule;
};

struct schema_plan; /* what is computed from a table when it is first used (schema_plan.h) */
struct schema_plan_slot {
    _Atomic(const struct schema_plan *) plan;
};

struct schema {
    const char *name; /* "PodSpec" */
    const char *doc;
    uint32_t size, align; /* of the C struct */
    const struct field *fields;
    uint32_t field_count;
    const struct cel_rule *cel; /* on the object as a whole */
    bool preserve_unknown;
    struct schema_plan_slot *slot;
};

/* Table entries read like declarations:
 *
 *     #define T struct taint
 *     static const struct field taint_fields[] = {
 *         FIELD(STR, key, "key", "The taint key.", .flags = FIELD_REQUIRED, .rule = &label_key_rule),
 *         FIELD_KNOWN("timeAdded"),
 *     };
 *     #undef T
 *     const struct schema taint_schema = SCHEMA("Taint", struct taint, taint_fields);
 */
#define FIELD(type_, member, name_, doc_, ...)                                                     \
    {                                                                                              \
        .type = FIELD_##type_, .offset = offsetof(T, member), .name = name_,                       \
        .name_len = sizeof(name_) - 1, .doc = doc_, __VA_ARGS__                                    \
    }
#define FIELD_KNOWN(name_, ...)                                                                    \
    {                                                                                              \
        .type = FIELD_OPAQUE, .name = name_, .name_len = sizeof(name_) - 1, .unkept = true,        \
        __VA_ARGS__                                                                                \
    }
/* A field whose value is checked but not kept: no C member belongs to it. Its schema, and all below
 * it, need no C struct either and are written SCHEMA_CHECKED. */
#define CHECKED(type_, name_, ...)                                                                 \
    {                                                                                              \
        .type = FIELD_##type_, .name = name_, .name_len = sizeof(name_) - 1, .unkept = true,       \
        __VA_ARGS__                                                                                \
    }
#define SCHEMA_CHECKED(name_, fields_, ...)                                                        \
    {                                                                                              \
        .name = name_, .fields = fields_, .field_count = KV_COUNT_OF(fields_),                     \
        .slot = &(struct schema_plan_slot){ NULL }, __VA_ARGS__                                    \
    }
#define SCHEMA(name_, type_, fields_, ...)                                                         \
    {                                                                                              \
        .name = name_, .size = sizeof(type_), .align = _Alignof(type_), .fields = fields_,         \
        .field_count = KV_COUNT_OF(fields_), .slot = &(struct schema_plan_slot){ NULL },           \
        __VA_ARGS__                                                                                \
    }

/* A table's rule, list of CEL rules or words, written where it is used. */
/* clang-format off */
#define RULE(...) .rule = &(const struct rule){ __VA_ARGS__ }
#define CEL_RULES(...) .cel = (const struct cel_rule[]){ __VA_ARGS__, { 0 } }
#define ENUMS(...) .enums = (const char *const[]){ __VA_ARGS__, NULL }
#define KEYED_BY(...) .list_kind = LIST_MAP, .map_keys = (const char *const[]){ __VA_ARGS__, NULL }
/* clang-format on */
#define BETWEEN(low, high) .min = { low, true }, .max = { high, true }
#define AT_LEAST(low) .min = { low, true }

/* --- places and problems --- */

struct path { /* a stack of names, on the C stack of the walk */
    const struct path *up;
    struct str name; /* p == NULL: an index */
    uint32_t index;
    bool quoted; /* a map key: written ["key"] */
};

#define NAME_SHOWN_MAX 320 /* bytes of a name in a path: a label key fits, a megabyte is cut */

void path_format(const struct path *path, struct buf *out); /* spec.taints[1].key; labels["a/b"] */

/* Names come from outside: in a message one is cut to a length, and quoted if it would break the
 * line. */
void name_format(struct str name, struct buf *out);
/* Likewise for a sentence, a condition's message say, in which blanks are plain. */
void message_format(struct str message, struct buf *out);

enum severity { PROBLEM_ERROR, PROBLEM_WARNING };

struct problem {
    enum severity severity;
    struct str path;    /* "" for the object itself */
    struct str what;    /* "what is wrong, what was expected" */
    const json_val *at; /* the value, or its nearest parent if it is missing; NULL: unknown */
};

struct report {
    struct arena *arena; /* owns the texts */
    VEC(struct problem) problems;
    uint32_t error_count;
    /* Leave out what a CRD cannot say (rules of map keys, `check` functions): an API server takes
     * such an object, and its owner learns later. */
    bool crd_only;
    /* In the kinds that Kubernetes brings, and in metadata, an optional text that is empty counts
     * as absent (`dnsPolicy: ""`), unless its rule has a len_min. object_admit sets it. */
    bool empty_is_absent;
};

#define REPORT_PROBLEMS_MAX 1000 /* kept; further errors are only counted */

void report_done(struct report *r);
void report_add(struct report *r, enum severity severity, const struct path *path,
                const json_val *at, const char *fmt, ...) KV_PRINTF(5, 6);

/* --- what the table does --- */

/* Check `v` against the table: types, required, unknown fields (the nearest known name is
 * suggested), patterns, ranges, enums, list sizes, duplicate keys of list maps, CEL rules. */
void schema_validate(const struct schema *schema, const json_val *v, const struct path *path,
                     struct report *report);

/* Rules about changes (immutability). Both trees have their defaults. */
void schema_validate_update(const struct schema *schema, const json_val *v, const json_val *old,
                            const struct path *path, struct report *report);

/* Add the defaults of missing fields, as the API server does for a CRD: a default inside an object
 * applies when that object is there. An empty word counts as missing: it says so in the kinds that
 * Kubernetes brings, and the others refuse it. */
void schema_default(const struct schema *schema, struct json_build *b, json_mut *v);

/* What one object may take when it is decoded: a few bytes of JSON ("{},") can ask for a struct of
 * hundreds. */
#define SCHEMA_DECODED_BYTES_MAX ((size_t)64 << 20)

/* Decode `v` into the zeroed struct at `out`. Strings and nested values point into v's document
 * and `arena`: a view, to be compacted by api/object.h. Unknown fields are skipped. A value of the
 * wrong type is ERR_INVALID with the path. */
int schema_decode(const struct schema *schema, const json_val *v, struct arena *arena, void *out,
                  struct err *err);

/* Of the contents: what the table says, wherever it lies in memory, FIELD_SHARED values included. The
 * hash is the same in every run. */
uint64_t schema_hash(const struct schema *schema, const void *value);
bool schema_equal(const struct schema *schema, const void *a, const void *b);

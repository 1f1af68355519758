/* codec/selector.h - label and field selectors in their text form ("app=web,tier in (a,b),!x").
 *
 * Parsed once into terms, then matched without allocating. The object form (matchLabels,
 * matchExpressions) is decoded in api/ and builds the same struct.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

enum selector_op {
    SELECTOR_IN,
    SELECTOR_NOT_IN,
    SELECTOR_EXISTS,
    SELECTOR_NOT_EXISTS,
    SELECTOR_GT, /* values[0] and the label are integers; a label that is not never matches */
    SELECTOR_LT,
};

struct selector_term {
    struct str key;
    enum selector_op op;
    const struct str *values; /* sorted */
    uint32_t value_count;
};

struct selector {
    const struct selector_term *terms; /* all must hold; none matches everything */
    uint32_t term_count;
    bool fields; /* of fields, not labels: one that is not set is the empty string */
};

#define SELECTOR_BYTES_MAX 65536

/* Everything lives in `arena`, terms sorted by key. Keys and values are checked as label keys and
 * values. Blank text selects everything. */
int selector_parse(struct arena *arena, struct str text, struct selector *out, struct err *err);

/* Field selectors: only =, ==, != and commas; keys are paths such as spec.nodeName. In a value a
 * backslash stands before each comma, equals sign and backslash. */
int selector_parse_fields(struct arena *arena, struct str text, struct selector *out,
                          struct err *err);

/* Finds the value of a key: STR_NONE (p == NULL) when the object does not have it. */
typedef struct str (*selector_lookup_fn)(const void *ctx, struct str key);
bool selector_matches(const struct selector *sel, selector_lookup_fn lookup, const void *ctx);

void selector_format(const struct selector *sel, struct buf *out); /* canonical text */

/* The syntax rules that labels, taints and names share. Each returns NULL or what is wrong, worded
 * to follow the name of the field: "must be at most 63 characters". */
const char *label_key_problem(struct str key);     /* [prefix/]name */
const char *label_value_problem(struct str value); /* up to 63 characters, may be empty */
const char *dns1123_label_problem(struct str s);
const char *dns1123_subdomain_problem(struct str s);

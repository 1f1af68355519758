/* codec/yaml_scalar.h - what an unquoted YAML scalar means.
 *
 * As go-yaml v2 resolves it, and with it kubectl and all who share its library: the booleans and
 * octals of YAML 1.1, the 0o of YAML 1.2, no base 60, timestamps as they are written.
 */
#pragma once

#include "base/str.h"

enum scalar_type {
    SCALAR_STRING,
    SCALAR_NULL,
    SCALAR_BOOL,
    SCALAR_INT,
    SCALAR_FLOAT,
    SCALAR_NOT_FINITE, /* .inf, .nan: JSON has no such number */
    SCALAR_HUGE,       /* an integer that 64 bits cannot hold */
};

/* Appends the JSON literal of a null, bool, int or float to `json`; nothing for the others. A
 * float without a fraction becomes an integer (1.0 is 1), as in the JSON that kubectl sends. */
enum scalar_type scalar_resolve(struct str text, struct buf *json);

/* May `s` be written without quotes, and be the same string to every YAML reader? */
bool scalar_is_plain(struct str s);

/* The length of the character at s.p[at] if it must be escaped (a control character, a line break
 * of its own kind, a byte order mark), or 0. */
size_t scalar_special(struct str s, size_t at);

/* base/sym.h - interned symbols: equal strings are one small integer.
 *
 * Ids are dense from 1 in the order of interning, so equal inputs give equal ids and an id can
 * index an array; 0 is "none". The bytes stay where they are until `sym_table_done`.
 * Zero-initialised is empty. Not thread safe while interning; look-ups alone are.
 */
#pragma once

#include "base/map.h"

typedef struct {
    uint32_t i;
} sym;

#define SYM_NONE ((sym){ 0 })

struct sym_table {
    struct str_table texts; /* nothing is ever removed: id n is the slot n - 1 */
};

void sym_table_done(struct sym_table *t);

sym sym_intern(struct sym_table *t, struct str s); /* copies the bytes if they are new */
sym sym_find(const struct sym_table *t, struct str s);
struct str sym_str(const struct sym_table *t, sym id); /* NUL-terminated; STR_NONE for SYM_NONE */

static inline uint32_t sym_count(const struct sym_table *t)
{
    return t->texts.slot_count;
}

static inline bool sym_eq(sym a, sym b)
{
    return a.i == b.i;
}

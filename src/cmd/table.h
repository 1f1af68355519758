/* cmd/table.h - columns for people: aligned by display width, plain when not on a terminal. */
#pragma once

#include "base/arena.h"
#include "base/vec.h"
#include "cloud/price.h"

struct table {
    VEC(char *) cells; /* row after row, the heading first */
    size_t columns;
    size_t *widths; /* of what was printed by table_flush; NULL: nothing yet */
};

void table_init(struct table *t, const char *const *headings, size_t columns);
void table_add(struct table *t, struct str cell); /* fills rows from left to right */
void table_addf(struct table *t, const char *fmt, ...) KV_PRINTF(2, 3);
/* Two spaces between columns, no trailing blanks; headings bold when coloured. */
void table_print(const struct table *t, struct buf *out, bool colour);
/* For a table that grows while it is read: prints the rows since the last time, the heading with the
 * first, and forgets them. Columns get wider when they must. */
void table_flush(struct table *t, struct buf *out, bool colour);
void table_done(struct table *t);

/* A text from outside as a cell: "-" if it is empty, and nothing in it that a terminal obeys. */
struct str cell_text(struct arena *arena, struct str text);

/* For cells: four decimals, "0.0416"; more where these say nothing. */
struct str price_text(struct arena *arena, usd_hour price);

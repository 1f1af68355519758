#include "cmd/table.h"

#include <inttypes.h>

void table_init(struct table *t, const char *const *headings, size_t columns)
{
    *t = (struct table){ .columns = columns };
    for (size_t i = 0; i < columns; i++)
        table_add(t, str_of(headings[i]));
}

void table_add(struct table *t, struct str cell)
{
    vec_push(&t->cells, str_dup(cell));
}

void table_addf(struct table *t, const char *fmt, ...)
{
    struct buf cell = { 0 };
    va_list args;
    va_start(args, fmt);
    buf_vaddf(&cell, fmt, args);
    va_end(args);
    vec_push(&t->cells, buf_take(&cell));
}

/* Characters, not bytes: every UTF-8 sequence counts one, and an escape that sets colours none. */
static size_t width_of(const char *cell)
{
    size_t width = 0;
    for (bool escaped = false; *cell; cell++) {
        bool was_escaped = escaped;
        escaped = *cell == '\033' || (escaped && *cell != 'm');
        width += !escaped && !was_escaped && (*cell & 0xc0) != 0x80;
    }
    return width;
}

static void print_row(const struct table *t, size_t first, const size_t *widths, struct buf *out)
{
    size_t pending = 0; /* blanks owed before the next cell that has text */
    for (size_t c = 0; c < t->columns; c++) {
        const char *cell = t->cells.items[first + c];
        size_t width = width_of(cell);
        if (width) {
            buf_addf(out, "%*s%s", (int)pending, "", cell);
            pending = 0;
        }
        pending += widths[c] - width + 2;
    }
}

void table_print(const struct table *t, struct buf *out, bool colour)
{
    size_t rows = t->cells.count / t->columns;
    size_t *widths = kv_calloc(t->columns, sizeof *widths);
    for (size_t i = 0; i < rows * t->columns; i++) {
        size_t width = width_of(t->cells.items[i]);
        if (width > widths[i % t->columns])
            widths[i % t->columns] = width;
    }
    for (size_t r = 0; r < rows; r++) {
        bool heading = r == 0 && colour;
        buf_addz(out, heading ? "\033[1m" : "");
        print_row(t, r * t->columns, widths, out);
        buf_addz(out, heading ? "\033[0m\n" : "\n");
    }
    free(widths);
}

void table_done(struct table *t)
{
    vec_each(&t->cells, char *, cell)
        free(*cell);
    vec_done(&t->cells);
}

struct str price_text(struct arena *arena, usd_hour price)
{
    const usd_hour unit = USD_HOUR_ONE / 10000;
    char text[USD_HOUR_TEXT_MAX];
    if (price > 0 && price < unit / 2) {
        usd_hour_format(price, text);
        return arena_str(arena, str_of(text));
    }
    usd_hour rounded = price / unit + (price % unit >= unit / 2);
    return arena_strf(arena, "%" PRId64 ".%04" PRId64, rounded / 10000, rounded % 10000);
}

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

static void widen(const struct table *t, size_t *widths)
{
    for (size_t i = 0; i < t->cells.count; i++) {
        size_t width = width_of(t->cells.items[i]);
        if (width > widths[i % t->columns])
            widths[i % t->columns] = width;
    }
}

static void print_rows(const struct table *t, const size_t *widths, bool headed, struct buf *out)
{
    for (size_t first = 0; first < t->cells.count; first += t->columns) {
        bool bold = first == 0 && headed;
        buf_addz(out, bold ? "\033[1m" : "");
        print_row(t, first, widths, out);
        buf_addz(out, bold ? "\033[0m\n" : "\n");
    }
}

void table_print(const struct table *t, struct buf *out, bool colour)
{
    AUTO_FREE size_t *widths = kv_calloc(t->columns, sizeof *widths);
    widen(t, widths);
    print_rows(t, widths, colour, out);
}

static void forget_cells(struct table *t)
{
    vec_each(&t->cells, char *, cell)
        free(*cell);
    vec_clear(&t->cells);
}

void table_flush(struct table *t, struct buf *out, bool colour)
{
    bool first = !t->widths;
    if (first && t->cells.count <= t->columns)
        return; /* no row yet */
    if (first)
        t->widths = kv_calloc(t->columns, sizeof *t->widths);
    widen(t, t->widths);
    print_rows(t, t->widths, first && colour, out);
    forget_cells(t);
}

void table_done(struct table *t)
{
    forget_cells(t);
    vec_done(&t->cells);
    free(t->widths);
}

struct str cell_text(struct arena *arena, struct str text)
{
    AUTO_BUF out = { 0 };
    for (struct str rest = text; rest.len;) {
        size_t len = str_utf8_first(rest);
        unsigned char c = (unsigned char)rest.p[0];
        bool control = len == 0 || c < 0x20 || c == 0x7f ||
                       (c == 0xc2 && (unsigned char)rest.p[1] < 0xa0); /* U+0080 to U+009F */
        buf_add(&out, control ? STR("?") : str_sub(rest, 0, len));
        rest = str_sub(rest, len ? len : 1, rest.len);
    }
    return out.len ? arena_str(arena, buf_str(&out)) : STR("-");
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

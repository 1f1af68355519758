/* Writing: what the text has, as it has it; what was made, in one canonical form.
 *
 * A document is written item by item. The tables that were made have no items: they are written
 * from the tree, keys first and tables under headers of their own after them. Strings are literal
 * ('...') unless they hold a quote or a control character. */
#include "codec/toml_inner.h"

#include <math.h>

struct writer {
    struct buf *out;
    size_t start; /* of the document in `out`, behind the byte order mark */
    size_t told;  /* bytes of `out` that `span` knows of */
    toml_span_fn *maybe_span;
    void *ctx;
    struct str line_end;
    bool fresh; /* what was written last is new */
};

/* What all that was written since the last call is. */
static void tell(struct writer *w, const struct toml *maybe_value, bool made)
{
    struct toml_span span = { w->told, w->out->len, maybe_value, made };
    if (w->maybe_span && span.end > span.start)
        w->maybe_span(w->ctx, &span);
    w->told = w->out->len;
}

/* --- keys and strings --- */

static bool is_bare(struct str key)
{
    for (size_t i = 0; i < key.len; i++) {
        if (!char_is_alnum(key.p[i]) && key.p[i] != '_' && key.p[i] != '-')
            return false;
    }
    return key.len > 0;
}

static bool can_be_literal(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if ((unsigned char)s.p[i] < ' ' || s.p[i] == 0x7f || s.p[i] == '\'')
            return false;
    }
    return true;
}

static void add_escaped(struct buf *out, char c)
{
    static const char meant[] = "\b\t\n\f\r\"\\", names[] = "btnfr\"\\";
    const char *name = c ? strchr(meant, c) : NULL;
    if (name)
        buf_addf(out, "\\%c", names[name - meant]);
    else if ((unsigned char)c < ' ' || c == 0x7f)
        buf_addf(out, "\\u%04X", (unsigned)(unsigned char)c);
    else
        buf_addc(out, c);
}

static void add_string(struct buf *out, struct str s)
{
    char quote = can_be_literal(s) ? '\'' : '"';
    buf_addc(out, quote);
    for (size_t i = 0; i < s.len && quote == '"'; i++)
        add_escaped(out, s.p[i]);
    if (quote == '\'')
        buf_add(out, s);
    buf_addc(out, quote);
}

void toml_write_key(struct str key, struct buf *out)
{
    if (is_bare(key))
        buf_add(out, key);
    else
        add_string(out, key);
}

void toml_add_path(struct buf *out, const struct toml *table, struct str key,
                   const struct toml *maybe_top)
{
    if (table != maybe_top && table->table->parent) {
        toml_add_path(out, table->table->parent, table->table->key, maybe_top);
        buf_addc(out, '.');
    }
    toml_write_key(key, out);
}

/* --- values --- */

static void add_float(struct buf *out, double v)
{
    size_t start = out->len;
    if (isnan(v) || isinf(v)) {
        buf_addz(out, isnan(v) ? "nan" : v < 0 ? "-inf" : "inf");
        return;
    }
    buf_add_double(out, v);
    if (!strpbrk(out->p + start, ".e"))
        buf_addz(out, ".0");
}

static void add_array(struct buf *out, const struct toml *v)
{
    buf_addc(out, '[');
    for (uint32_t i = 0; i < v->array.count; i++) {
        if (i)
            buf_addz(out, ", ");
        toml_write_value(v->array.items[i], out);
    }
    buf_addc(out, ']');
}

static void add_table(struct buf *out, const struct toml *v)
{
    buf_addz(out, v->table->count ? "{ " : "{");
    toml_each(v, e)
    {
        if (e != v->table->first)
            buf_addz(out, ", ");
        toml_write_key(e->key, out);
        buf_addz(out, " = ");
        toml_write_value(e->value, out);
    }
    buf_addz(out, v->table->count ? " }" : "}");
}

void toml_write_value(const struct toml *v, struct buf *out)
{
    if (v->text.p && !v->edited) {
        buf_add(out, v->text);
        return;
    }
    switch ((enum toml_type)v->type) {
    case TOML_STRING:
        add_string(out, v->str);
        return;
    case TOML_DATETIME:
    case TOML_DATETIME_LOCAL:
    case TOML_DATE_LOCAL:
    case TOML_TIME_LOCAL:
        buf_add(out, v->str);
        return;
    case TOML_INTEGER:
        buf_addf(out, "%lld", (long long)v->integer);
        return;
    case TOML_FLOAT:
        add_float(out, v->real);
        return;
    case TOML_BOOL:
        buf_addz(out, v->boolean ? "true" : "false");
        return;
    case TOML_ARRAY:
        add_array(out, v);
        return;
    case TOML_TABLE:
        add_table(out, v);
        return;
    }
}

/* --- lines --- */

static bool ends_with(const struct writer *w, const char *z)
{
    return str_ends(str_sub(buf_str(w->out), w->start, w->out->len), str_of(z));
}

static void end_line(struct writer *w)
{
    if (w->out->len > w->start && !ends_with(w, "\n"))
        buf_add(w->out, w->line_end);
}

static void leave_blank_line(struct writer *w)
{
    end_line(w);
    if (w->out->len > w->start && !ends_with(w, "\n\n") && !ends_with(w, "\n\r\n"))
        buf_add(w->out, w->line_end);
    tell(w, NULL, true);
}

/* --- tables that were made --- */

/* Written under a header, or several: not as a value. */
static bool has_header(const struct toml *v)
{
    if (v->type == TOML_TABLE)
        return v->origin == ORIGIN_MADE;
    if (v->type != TOML_ARRAY || v->origin != ORIGIN_MADE || v->array.count == 0)
        return false;
    for (uint32_t i = 0; i < v->array.count; i++) {
        if (v->array.items[i]->type != TOML_TABLE || v->array.items[i]->origin != ORIGIN_MADE)
            return false;
    }
    return true;
}

/* A header that would stand over further headers only is not needed. */
static bool needs_header(const struct toml *table)
{
    toml_each(table, e)
    {
        if (!has_header(e->value))
            return true;
    }
    return table->table->count == 0;
}

static void write_made(struct writer *w, const struct toml *table, struct buf *path);

static void write_with_header(struct writer *w, const struct toml *table, struct buf *path,
                              bool element)
{
    if (element || needs_header(table)) {
        buf_addz(w->out, element ? "[[" : "[");
        buf_add(w->out, buf_str(path));
        buf_addz(w->out, element ? "]]" : "]");
        buf_add(w->out, w->line_end);
        tell(w, table, true);
    }
    write_made(w, table, path);
}

static void write_below(struct writer *w, const struct toml_entry *e, struct buf *path)
{
    size_t len = path->len;
    if (len)
        buf_addc(path, '.');
    toml_write_key(e->key, path);
    uint32_t count = e->value->type == TOML_ARRAY ? e->value->array.count : 1;
    for (uint32_t i = 0; i < count; i++) {
        const struct toml *element = toml_item(e->value, i);
        leave_blank_line(w);
        write_with_header(w, element ? element : e->value, path, element != NULL);
    }
    buf_cut(path, len);
}

/* The keys of a table, then the tables below it. */
static void write_made(struct writer *w, const struct toml *table, struct buf *path)
{
    toml_each(table, e)
    {
        if (has_header(e->value))
            continue;
        toml_write_key(e->key, w->out);
        buf_addz(w->out, " = ");
        toml_write_value(e->value, w->out);
        buf_add(w->out, w->line_end);
        tell(w, e->value, true);
    }
    toml_each(table, e)
    {
        if (has_header(e->value))
            write_below(w, e, path);
    }
}

/* --- items --- */

static void write_key_item(struct writer *w, const struct toml_item *item, struct str trail);

/* An inline table that is no longer as it was. There are no comments between its keys to keep. */
static void write_edited(struct writer *w, const struct toml *table)
{
    const char *before = "{ ";
    for (const struct toml_item *item = table->table->items.first; item; item = item->next) {
        if (item->gone)
            continue;
        buf_addz(w->out, before);
        before = ", ";
        tell(w, NULL, false);
        write_key_item(w, item, STR(""));
    }
    buf_addz(w->out, table->table->count ? " }" : "{}");
}

/* A key and its value, up to the end of the line if `trail` is that. */
static void write_key_item(struct writer *w, const struct toml_item *item, struct str trail)
{
    if (item->head.p) {
        buf_add(w->out, item->head);
    } else {
        const struct toml *top = item->table;
        while (top->origin == ORIGIN_DOTTED)
            top = top->table->parent;
        toml_add_path(w->out, item->table, item->key, top);
        buf_addz(w->out, " = ");
    }
    bool edited = item->value->edited;
    if (edited)
        write_edited(w, item->value);
    else
        toml_write_value(item->value, w->out);
    buf_add(w->out, trail);
    tell(w, edited ? NULL : item->value, !edited && !item->value->pos.line);
}

static void write_header_item(struct writer *w, const struct toml_item *item, struct str trail)
{
    const struct toml_table *t = item->value->table;
    if (item->head.p) {
        buf_add(w->out, item->head);
    } else {
        buf_addc(w->out, '[');
        toml_add_path(w->out, t->parent, t->key, NULL);
        buf_addc(w->out, ']');
    }
    buf_add(w->out, trail);
    tell(w, item->value, !item->head.p);
}

static void write_table_item(struct writer *w, const struct toml_item *item)
{
    AUTO_BUF path = { 0 };
    toml_add_path(&path, item->table, item->key, NULL);
    write_with_header(w, item->value, &path, false);
}

/* Of what stood before an item that is gone, the comments. */
static void write_comments(struct writer *w, struct str lead)
{
    struct str line;
    while (str_cut(lead, '\n', &line, &lead)) { /* what is left then is indentation */
        if (str_trim(line).len == 0)
            continue;
        buf_add(w->out, line);
        buf_addc(w->out, '\n');
        w->fresh = false;
    }
    tell(w, NULL, false);
}

static void write_item(struct writer *w, const struct toml_item *item)
{
    struct str trail = item->trail.p ? item->trail : w->line_end;
    bool made = !item->head.p;
    if (item->kind != ITEM_KEY && item->kind != ITEM_REST && item->lead.len == 0 &&
        (made || w->fresh))
        leave_blank_line(w);
    buf_add(w->out, item->lead);
    tell(w, NULL, false);
    w->fresh = made;
    switch ((enum item_kind)item->kind) {
    case ITEM_KEY:
        write_key_item(w, item, trail);
        return;
    case ITEM_HEADER:
    case ITEM_ELEMENT:
        write_header_item(w, item, trail);
        return;
    case ITEM_TABLE:
        write_table_item(w, item);
        return;
    case ITEM_REST:
        return;
    }
}

static void write_items(struct writer *w, const struct toml_table *root)
{
    buf_add(w->out, root->bom);
    w->start = w->out->len;
    tell(w, NULL, false);
    for (const struct toml_item *item = root->items.first; item; item = item->next) {
        if (item->lead.len || item->kind != ITEM_REST)
            end_line(w); /* of a last line that no longer is the last */
        if (item->gone)
            write_comments(w, item->lead);
        else
            write_item(w, item);
    }
}

void toml_write_spans(const struct toml *root, struct buf *out, toml_span_fn *span, void *ctx)
{
    KV_ASSERT(root->type == TOML_TABLE);
    AUTO_BUF path = { 0 };
    struct writer w = {
        .out = out,
        .start = out->len,
        .told = out->len,
        .maybe_span = span,
        .ctx = ctx,
        .line_end = root->origin == ORIGIN_ROOT ? root->table->line_end : STR("\n"),
    };
    if (root->origin == ORIGIN_ROOT)
        write_items(&w, root->table);
    else
        write_made(&w, root, &path);
}

void toml_write(const struct toml *root, struct buf *out)
{
    toml_write_spans(root, out, NULL, NULL);
}

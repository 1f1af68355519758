/* Statements, headers and what they may do to the tree.
 *
 * The rules of TOML 1.0 for who may add to a table follow from its origin:
 *
 *                       [t] again   [t.x]   t.x = 1   [[t]]
 *     made by [t]         no         yes      no        no
 *     implied by [t.x]    yes        yes      yes       no
 *     by dotted keys      no         yes      yes       no
 *     inline              no         no       no        no
 *     array of tables     no       last one   no        yes
 *     array, scalar       no         no       no        no
 *
 * Dotted keys of another section never meet a table of dotted keys: to get there, the header would
 * have to define one of the tables on the way again. */
#include "codec/toml_inner.h"

static int read_value(struct toml_reader *r, struct toml *maybe_table, struct str key,
                      uint32_t depth, struct toml **out);

static int check_depth(struct toml_reader *r, uint32_t depth)
{
    if (depth <= TOML_DEPTH_MAX)
        return 0;
    return toml_fail(r, toml_here(r), "more than %d tables and arrays in one another",
                     TOML_DEPTH_MAX);
}

/* --- refusing --- */

/* `key` of `table` is there already, as `old`. */
static int taken(struct toml_reader *r, struct text_pos at, const char *what, struct toml *table,
                 struct str key, const struct toml *old)
{
    AUTO_BUF path = { 0 };
    toml_add_path(&path, table, key, NULL);
    return toml_fail(r, at, "%s %s is already defined on line %u", what, STR_SHOWN(buf_str(&path)),
                     old->pos.line);
}

static const char *kind_of(const struct toml *v)
{
    if (v->type == TOML_TABLE)
        return v->origin == ORIGIN_INLINE ? "an inline table" : "a table with a header of its own";
    if (v->type == TOML_ARRAY && v->origin == ORIGIN_HEADER)
        return "an array of tables";
    return toml_type_name(v->type);
}

/* What is there cannot be added to. */
static int closed(struct toml_reader *r, struct text_pos at, struct toml *table, struct str key,
                  const struct toml *old)
{
    AUTO_BUF path = { 0 };
    toml_add_path(&path, table, key, NULL);
    return toml_fail(r, at, "%s is %s since line %u: nothing can be added to it here",
                     STR_SHOWN(buf_str(&path)), kind_of(old), old->pos.line);
}

/* --- steps along a key's path --- */

static struct toml *new_table_in(struct toml_reader *r, enum origin origin, struct text_pos pos,
                                 struct toml *maybe_parent, struct str key, struct toml_item *item)
{
    struct toml *v = toml_new(r->arena, TOML_TABLE, origin);
    v->pos = pos;
    v->table->parent = maybe_parent;
    v->table->key = key;
    v->table->start = item;
    return v;
}

/* From a table into the one at `key`, on the way to what a header names. */
static int step_header(struct toml_reader *r, struct toml **table, struct str key,
                       struct text_pos pos, struct toml_item *item)
{
    struct toml_entry *e = toml_entry_add(r->arena, *table, key);
    if (!e->value)
        e->value = new_table_in(r, ORIGIN_IMPLIED, pos, *table, key, item);
    struct toml *next = e->value;
    if (next->type == TOML_ARRAY && next->origin == ORIGIN_HEADER)
        next = next->array.items[next->array.count - 1];
    if (next->type != TOML_TABLE || next->origin == ORIGIN_INLINE)
        return closed(r, pos, *table, key, next);
    next->table->end_section = item;
    *table = next;
    return 0;
}

/* The same on the way to what a dotted key names. */
static int step_dotted(struct toml_reader *r, struct toml **table, struct str key,
                       struct text_pos pos, struct toml_item *item)
{
    struct toml_entry *e = toml_entry_add(r->arena, *table, key);
    if (!e->value)
        e->value = new_table_in(r, ORIGIN_DOTTED, pos, *table, key, item);
    struct toml *next = e->value;
    bool implied = next->type == TOML_TABLE && next->origin == ORIGIN_IMPLIED;
    if (implied) {
        next->origin = ORIGIN_DOTTED;
        next->table->start = item;
    }
    if (next->type != TOML_TABLE || next->origin != ORIGIN_DOTTED)
        return closed(r, pos, *table, key, next);
    next->table->end_key = item;
    *table = next;
    return 0;
}

static int define_table(struct toml_reader *r, struct toml **table, struct str key,
                        struct text_pos pos, struct toml_item *item)
{
    struct toml_entry *e = toml_entry_add(r->arena, *table, key);
    if (!e->value)
        e->value = new_table_in(r, ORIGIN_IMPLIED, pos, *table, key, item);
    struct toml *v = e->value;
    if (v->type != TOML_TABLE || v->origin != ORIGIN_IMPLIED)
        return taken(r, pos, v->type == TOML_TABLE ? "table" : "key", *table, key, v);
    v->origin = ORIGIN_HEADER;
    v->pos = pos;
    v->table->start = v->table->end_key = v->table->end_section = item;
    *table = v;
    return 0;
}

static int define_element(struct toml_reader *r, struct toml **table, struct str key,
                          struct text_pos pos, struct toml_item *item)
{
    struct toml_entry *e = toml_entry_add(r->arena, *table, key);
    if (!e->value) {
        e->value = toml_new(r->arena, TOML_ARRAY, ORIGIN_HEADER);
        e->value->pos = pos;
    }
    if (e->value->type != TOML_ARRAY)
        return taken(r, pos, e->value->type == TOML_TABLE ? "table" : "key", *table, key, e->value);
    if (e->value->origin != ORIGIN_HEADER)
        return closed(r, pos, *table, key, e->value);
    struct toml *v = new_table_in(r, ORIGIN_HEADER, pos, *table, key, item);
    v->table->element = true;
    v->table->end_key = v->table->end_section = item;
    toml_array_push(r->arena, e->value, v);
    *table = v;
    return 0;
}

/* --- a key with its value --- */

static void list_push(struct item_list *list, struct toml_item *item)
{
    item->prev = list->last;
    *(list->last ? &list->last->next : &list->first) = item;
    list->last = item;
}

/* a.b = value, up to the value's end. `item` has its lead. */
static int read_assignment(struct toml_reader *r, struct toml *table, struct toml_item *item,
                           uint32_t depth)
{
    size_t start = r->at;
    struct text_pos pos;
    struct str key;
    for (;; depth++) {
        pos = toml_here(r);
        if (check_depth(r, depth) < 0 || toml_read_key(r, &key) < 0)
            return -1;
        toml_skip_blanks(r);
        if (toml_peek(r) != '.')
            break;
        r->at++;
        toml_skip_blanks(r);
        if (step_dotted(r, &table, key, pos, item) < 0)
            return -1;
    }
    if (toml_peek(r) != '=')
        return toml_fail(r, toml_here(r), "expected '=' after the key, found %s", TOML_FOUND(r));
    struct toml_entry *e = toml_entry_add(r->arena, table, key);
    if (e->value)
        return taken(r, pos, "key", table, key, e->value);
    r->at++;
    toml_skip_blanks(r);
    item->head = str_sub(r->text, start, r->at - start);
    if (read_value(r, table, key, depth, &e->value) < 0)
        return -1;
    e->item = item;
    item->kind = ITEM_KEY;
    item->table = table;
    item->key = key;
    item->value = e->value;
    return 0;
}

/* --- values --- */

static int read_array(struct toml_reader *r, uint32_t depth, struct toml **out)
{
    struct text_pos start = toml_here(r);
    struct toml *array = toml_new(r->arena, TOML_ARRAY, ORIGIN_INLINE), *item;
    if (check_depth(r, depth) < 0)
        return -1;
    r->at++;
    for (;;) {
        toml_skip_lines(r);
        if (toml_peek(r) == ']')
            break;
        if (r->at == r->text.len)
            return toml_fail(r, start, "the array has no closing bracket");
        if (read_value(r, NULL, STR_NONE, depth, &item) < 0)
            return -1;
        toml_array_push(r->arena, array, item);
        toml_skip_lines(r);
        if (toml_peek(r) == ',')
            r->at++;
        else if (toml_peek(r) != ']')
            return toml_fail(r, toml_here(r), "expected ',' or ']' in the array, found %s",
                             TOML_FOUND(r));
    }
    r->at++;
    *out = array;
    return 0;
}

static int read_inline_table(struct toml_reader *r, struct toml *maybe_table, struct str key,
                             uint32_t depth, struct toml **out)
{
    struct toml *v = new_table_in(r, ORIGIN_INLINE, toml_here(r), maybe_table, key, NULL);
    r->at++;
    toml_skip_blanks(r);
    while (toml_peek(r) != '}') {
        struct toml_item *item = arena_new(r->arena, struct toml_item);
        if (read_assignment(r, v, item, depth + 1) < 0)
            return -1;
        list_push(&v->table->items, item);
        toml_skip_blanks(r);
        if (toml_peek(r) == '}')
            break;
        if (toml_peek(r) != ',')
            return toml_fail(r, toml_here(r), "expected ',' or '}' in the inline table, found %s",
                             TOML_FOUND(r));
        r->at++;
        toml_skip_blanks(r);
        if (toml_peek(r) == '}')
            return toml_fail(r, toml_here(r), "an inline table does not end with a comma");
    }
    r->at++;
    *out = v;
    return 0;
}

static int read_scalar(struct toml_reader *r, struct toml **out)
{
    struct text_pos start = toml_here(r);
    struct str word = toml_take_word(r);
    if (!word.len)
        return toml_fail(r, start, "expected a value, found %s", TOML_FOUND(r));
    if (toml_read_word(r->arena, word, out, r->err) < 0) {
        r->failed = start;
        return -1;
    }
    return 0;
}

static int read_text(struct toml_reader *r, struct toml **out)
{
    *out = toml_new(r->arena, TOML_STRING, ORIGIN_MADE);
    return toml_read_string(r, &(*out)->str);
}

/* A value inside `depth` tables and arrays: of a key of a table, or of an array. */
static int read_value(struct toml_reader *r, struct toml *maybe_table, struct str key,
                      uint32_t depth, struct toml **out)
{
    struct text_pos pos = toml_here(r);
    size_t start = r->at;
    struct toml *v;
    char c = toml_peek(r);
    int rc = c == '['                ? read_array(r, depth + 1, &v)
             : c == '{'              ? read_inline_table(r, maybe_table, key, depth, &v)
             : c == '"' || c == '\'' ? read_text(r, &v)
                                     : read_scalar(r, &v);
    if (rc < 0)
        return -1;
    v->pos = pos;
    v->text = str_sub(r->text, start, r->at - start);
    *out = v;
    return 0;
}

/* --- the document --- */

/* [a.b] or [[a.b]]: `section` becomes the table that it names, `depth` the keys to get there. */
static int read_header(struct toml_reader *r, struct toml *root, struct toml_item *item,
                       struct toml **section, uint32_t *depth)
{
    size_t start = r->at;
    bool element = start + 1 < r->text.len && r->text.p[start + 1] == '[';
    struct str close = element ? STR("]]") : STR("]"), key;
    struct toml *table = root;
    struct text_pos pos;

    root->table->end_section = item;
    r->at += close.len;
    for (*depth = 1;; ++*depth) {
        toml_skip_blanks(r);
        pos = toml_here(r);
        if (check_depth(r, *depth) < 0 || toml_read_key(r, &key) < 0)
            return -1;
        toml_skip_blanks(r);
        if (toml_peek(r) != '.')
            break;
        r->at++;
        if (step_header(r, &table, key, pos, item) < 0)
            return -1;
    }
    if (!str_starts(str_sub(r->text, r->at, r->text.len), close))
        return toml_fail(r, toml_here(r), "expected '.' or '%s' after the key, found %s", close.p,
                         TOML_FOUND(r));
    r->at += close.len;
    if ((element ? define_element : define_table)(r, &table, key, pos, item) < 0)
        return -1;
    item->kind = element ? ITEM_ELEMENT : ITEM_HEADER;
    item->head = str_sub(r->text, start, r->at - start);
    item->value = *section = table;
    return 0;
}

static int read_statement(struct toml_reader *r, struct toml *root, struct toml_item *item,
                          struct toml **section, uint32_t *depth)
{
    if (toml_peek(r) == '[')
        return read_header(r, root, item, section, depth);
    (*section)->table->end_key = item;
    return read_assignment(r, *section, item, *depth + 1);
}

static int read_document(struct toml_reader *r, struct toml *root)
{
    struct toml *section = root;
    uint32_t depth = 0;
    root->table->bom = str_sub(r->text, 0, r->at);
    for (;;) {
        struct toml_item *item = arena_new(r->arena, struct toml_item);
        size_t start = r->at;
        toml_skip_lines(r);
        item->lead = str_sub(r->text, start, r->at - start);
        list_push(&root->table->items, item);
        if (r->at == r->text.len) {
            item->kind = ITEM_REST;
            if (!item->prev)
                root->table->end_key = item; /* what is added comes behind the comments */
            return 0;
        }
        if (read_statement(r, root, item, &section, &depth) < 0)
            return -1;
        start = r->at;
        if (toml_end_line(r) < 0)
            return -1;
        item->trail = str_sub(r->text, start, r->at - start);
    }
}

int toml_read_at(struct arena *arena, struct str text, struct toml **out, struct text_pos *at,
                 struct err *err)
{
    struct err none = { 0 };
    struct toml_reader r = { .arena = arena, .text = text, .line = 1, .err = err ? err : &none };
    struct toml *root = toml_new(arena, TOML_TABLE, ORIGIN_ROOT);
    int rc = toml_check_text(&r);
    if (rc == 0) {
        r.text = arena_str(arena, text.p ? text : STR(""));
        ptrdiff_t line = str_find(r.text, '\n');
        root->table->line_end = line > 0 && r.text.p[line - 1] == '\r' ? STR("\r\n") : STR("\n");
        rc = read_document(&r, root);
    }
    if (rc == 0)
        *out = root;
    else
        *at = r.failed;
    return rc;
}

int toml_read(struct arena *arena, struct str text, struct toml **out, struct err *err)
{
    struct text_pos at;
    if (toml_read_at(arena, text, out, &at, err) < 0)
        return err_wrap(err, "line %u, column %u", at.line, at.col);
    return 0;
}

int toml_read_value(struct arena *arena, struct str text, struct toml **out, struct err *err)
{
    struct err none = { 0 };
    struct toml_reader r = { .arena = arena, .text = text, .line = 1, .err = err ? err : &none };
    struct toml *v;
    if (toml_check_text(&r) == 0) {
        r.text = arena_str(arena, text.p ? text : STR(""));
        if (read_value(&r, NULL, STR_NONE, 0, &v) == 0) {
            if (r.at == r.text.len) {
                v->pos = (struct text_pos){ 0, 0 };
                *out = v;
                return 0;
            }
            toml_fail(&r, toml_here(&r), "expected the end of the value, found %s", TOML_FOUND(&r));
        }
    }
    return err_wrap(err, "line %u, column %u", r.failed.line, r.failed.col);
}

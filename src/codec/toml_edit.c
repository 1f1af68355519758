/* Edits: the tree is changed, and items are put in or struck out so that the text says the same.
 *
 * Where a key is written follows from its table's origin:
 *
 *     root, header    a line of its section; a table under a header of its own, below the others
 *     implied         the same, once it has got a header
 *     dotted          a line with a dotted key next to the table's others
 *     inline          inside the braces
 *     made            nowhere: such a table is written from the tree, wherever it is
 *
 * Items are never taken out of their list, only marked as gone: so the comments before them
 * stay where they are, and every pointer to an item stays good as a place. */
#include "codec/toml_inner.h"

/* --- the list of items --- */

static struct item_list *list_of(struct toml *table)
{
    while (table->origin != ORIGIN_ROOT && table->origin != ORIGIN_INLINE)
        table = table->table->parent;
    return &table->table->items;
}

static void insert_before(struct item_list *list, struct toml_item *item, struct toml_item *next)
{
    item->next = next;
    item->prev = next ? next->prev : list->last;
    *(item->prev ? &item->prev->next : &list->first) = item;
    *(next ? &next->prev : &list->last) = item;
}

/* Before `next`, and also before its comments: those that no blank line parts from it. */
static void insert_above(struct item_list *list, struct toml_item *item, struct toml_item *next)
{
    size_t cut = 0, start = 0;
    struct str lead = next->lead;
    for (size_t i = 0; i < lead.len; i++) {
        if (lead.p[i] != '\n')
            continue;
        if (str_trim(str_sub(lead, start, i - start)).len == 0)
            cut = i + 1;
        start = i + 1;
    }
    item->lead = str_sub(lead, 0, cut);
    next->lead = str_sub(lead, cut, lead.len);
    insert_before(list, item, next);
}

static struct toml_item *new_item(struct arena *arena, enum item_kind kind, struct toml *table,
                                  struct str key, struct toml *value)
{
    struct toml_item *item = arena_new(arena, struct toml_item);
    item->kind = (uint8_t)kind;
    item->table = table;
    item->key = key;
    item->value = value;
    return item;
}

/* --- tables and their items --- */

/* The inline tables around a change are no longer what their text says. */
static void mark_edited(struct toml *table)
{
    for (; table; table = table->table->parent) {
        if (table->origin == ORIGIN_INLINE)
            table->edited = true;
    }
}

/* An implied table gets its header, before the one that implied it. */
static void give_header(struct arena *arena, struct toml *table)
{
    struct toml_table *t = table->table;
    if (table->origin != ORIGIN_IMPLIED)
        return;
    struct toml_item *header = new_item(arena, ITEM_HEADER, NULL, STR_NONE, table);
    insert_above(list_of(table), header, t->start);
    table->origin = ORIGIN_HEADER;
    t->start = t->end_key = header;
}

/* Behind the last section of the table and of all below it. */
static void add_table_item(struct toml *table, struct toml_item *item)
{
    struct item_list *list = list_of(table);
    struct toml_item *end = table->table->end_section, *last = end;
    if (!end || end->kind != ITEM_TABLE)
        last = (end ? end->value : table)->table->end_key;
    insert_before(list, item, last ? last->next : list->first);
    for (struct toml *t = table; t && t->table->end_section == end; t = t->table->parent)
        t->table->end_section = item;
}

/* A key was put in: the table's section, or its dotted keys, may now end with it. */
static void end_with(struct toml *table, struct toml_item *item)
{
    for (bool more = true; more; table = table->table->parent) {
        if (!table->table->end_key || table->table->end_key->next == item)
            table->table->end_key = item;
        more = table->origin == ORIGIN_DOTTED;
    }
}

/* `value`, as one of `table`, is written under a header of its own. */
static bool gets_header(const struct toml *table, const struct toml *value)
{
    return value->type == TOML_TABLE && value->origin == ORIGIN_MADE &&
           (table->origin == ORIGIN_ROOT || table->origin == ORIGIN_HEADER ||
            table->origin == ORIGIN_IMPLIED);
}

/* Write a new key's value behind the others of its table. */
static struct toml_item *add_item(struct arena *arena, struct toml *table, struct str key,
                                  struct toml *value)
{
    if (gets_header(table, value)) {
        struct toml_item *item = new_item(arena, ITEM_TABLE, table, key, value);
        add_table_item(table, item);
        return item;
    }
    struct toml_item *item = new_item(arena, ITEM_KEY, table, key, value);
    give_header(arena, table);
    struct item_list *list = list_of(table);
    struct toml_item *end = table->table->end_key;
    if (table->origin == ORIGIN_INLINE)
        insert_before(list, item, NULL);
    else if (!end)
        insert_above(list, item, list->first);
    else
        insert_before(list, item, end->next);
    end_with(table, item);
    mark_edited(table);
    return item;
}

/* The same before the others. */
static struct toml_item *add_item_first(struct arena *arena, struct toml *table, struct str key,
                                        struct toml *value)
{
    struct toml_item *item = new_item(arena, ITEM_KEY, table, key, value);
    struct toml_table *t = table->table;
    give_header(arena, table);
    struct item_list *list = list_of(table);
    struct toml_item *next = table->origin == ORIGIN_HEADER   ? t->start->next
                             : table->origin == ORIGIN_DOTTED ? t->start
                                                              : list->first;
    /* The comments before the next header are not this section's. */
    if (next && (next->kind == ITEM_KEY || table->origin == ORIGIN_ROOT))
        insert_above(list, item, next);
    else
        insert_before(list, item, next);
    if (table->origin == ORIGIN_DOTTED)
        t->start = item;
    end_with(table, item);
    mark_edited(table);
    return item;
}

/* Strike out all that writes a value. */
static void strike_value(struct toml *value);

static void strike_entry(struct toml_entry *e)
{
    if (e->item)
        e->item->gone = true;
    else
        strike_value(e->value);
}

static void strike_value(struct toml *value)
{
    if (value->type == TOML_ARRAY && value->origin == ORIGIN_HEADER) {
        for (uint32_t i = 0; i < value->array.count; i++)
            strike_value(value->array.items[i]);
    }
    if (value->type != TOML_TABLE || value->origin == ORIGIN_MADE)
        return;
    if (value->origin == ORIGIN_HEADER)
        value->table->start->gone = true;
    for (struct toml_entry *e = value->table->first; e; e = e->next)
        strike_entry(e);
}

/* A table that only its keys made appear has none left: say that it is there. */
static void keep_empty(struct arena *arena, struct toml *table)
{
    struct toml_table *t = table->table;
    if (t->count)
        return;
    give_header(arena, table);
    if (table->origin != ORIGIN_DOTTED)
        return;
    struct toml_entry *e = toml_entry_find(t->parent, t->key);
    struct item_list *list = list_of(table);
    e->item = new_item(arena, ITEM_KEY, t->parent, t->key, table);
    insert_before(list, e->item, t->start);
    table->origin = ORIGIN_INLINE;
    table->edited = true;
    mark_edited(t->parent);
}

/* --- edits --- */

static void adopt(struct toml *table, struct str key, struct toml *value)
{
    KV_ASSERT(table->type == TOML_TABLE);
    KV_ASSERT(value->type != TOML_TABLE ||
              (value->table->parent == NULL && value->origin != ORIGIN_ROOT));
    if (value->type == TOML_TABLE) {
        value->table->parent = table;
        value->table->key = key;
    }
}

/* Where a table, or array of tables, is written first. */
static struct toml_item *first_item(const struct toml *value)
{
    return (value->type == TOML_ARRAY ? value->array.items[0] : value)->table->start;
}

/* The item for `value` in the place of what the entry has. A section that becomes a line has to
 * move, for its place is among sections. */
static struct toml_item *replace_item(struct arena *arena, struct toml *table, struct toml_entry *e,
                                      struct toml *value)
{
    struct toml_item *old = e->item ? e->item : first_item(e->value), *item = old;
    bool section = old->kind != ITEM_KEY;
    if (section && !gets_header(table, value)) {
        strike_entry(e);
        return add_item(arena, table, e->key, value);
    }
    if (!e->item) {
        strike_entry(e);
        item = new_item(arena, section ? ITEM_TABLE : ITEM_KEY, table, e->key, value);
        item->lead = old->lead;
        old->lead = STR("");
        insert_before(list_of(table), item, old);
    }
    item->value = value;
    mark_edited(table);
    return item;
}

void toml_set(struct arena *arena, struct toml *table, struct str key, struct toml *value)
{
    struct toml_entry *e = toml_entry_add(arena, table, arena_str(arena, key));
    adopt(table, e->key, value);
    if (table->origin != ORIGIN_MADE)
        e->item =
            e->value ? replace_item(arena, table, e, value) : add_item(arena, table, e->key, value);
    e->value = value;
}

void toml_set_first(struct arena *arena, struct toml *table, struct str key, struct toml *value)
{
    KV_ASSERT(value->type != TOML_TABLE);
    struct toml_entry *e = toml_entry_add(arena, table, arena_str(arena, key));
    struct toml_item *old = e->item, *item = NULL;
    if (table->origin != ORIGIN_MADE) {
        item = add_item_first(arena, table, e->key, value);
        if (e->value)
            strike_entry(e);
        if (old && old->kind == ITEM_KEY)
            item->trail = old->trail;
    }
    toml_entry_unlink(table, e);
    toml_entry_link_first(table, e);
    e->value = value;
    e->item = item;
}

bool toml_remove(struct arena *arena, struct toml *table, struct str key)
{
    struct toml_entry *e = toml_entry_find(table, key);
    if (!e)
        return false;
    if (table->origin != ORIGIN_MADE)
        strike_entry(e);
    toml_entry_unlink(table, e);
    if (table->origin != ORIGIN_MADE) {
        mark_edited(table);
        keep_empty(arena, table);
    }
    return true;
}

struct toml *toml_sub(struct arena *arena, struct toml *table, struct str key)
{
    struct toml_entry *e = toml_entry_find(table, key);
    if (!e) {
        struct toml *made = toml_new_table(arena);
        toml_set(arena, table, key, made);
        return made;
    }
    return e->value->type == TOML_TABLE ? e->value : NULL;
}

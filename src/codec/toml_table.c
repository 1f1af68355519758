/* Values, and tables: making them, looking into them, comparing them. How entries are found is told
 * at struct toml_entry. */
#include "codec/toml_inner.h"

#include <math.h>

const char *toml_type_name(enum toml_type type)
{
    static const char *const names[] = {
        [TOML_STRING] = "a string",
        [TOML_INTEGER] = "an integer",
        [TOML_FLOAT] = "a float",
        [TOML_BOOL] = "a boolean",
        [TOML_DATETIME] = "a date with time",
        [TOML_DATETIME_LOCAL] = "a local date with time",
        [TOML_DATE_LOCAL] = "a local date",
        [TOML_TIME_LOCAL] = "a local time",
        [TOML_ARRAY] = "an array",
        [TOML_TABLE] = "a table",
    };
    return names[type];
}

/* --- making --- */

struct toml *toml_new(struct arena *arena, enum toml_type type, enum origin origin)
{
    struct toml *v = arena_new(arena, struct toml);
    v->type = (uint8_t)type;
    v->origin = (uint8_t)origin;
    if (type == TOML_TABLE)
        v->table = arena_new(arena, struct toml_table);
    return v;
}

struct toml *toml_new_table(struct arena *arena)
{
    return toml_new(arena, TOML_TABLE, ORIGIN_MADE);
}

struct toml *toml_new_array(struct arena *arena)
{
    return toml_new(arena, TOML_ARRAY, ORIGIN_MADE);
}

struct toml *toml_new_str(struct arena *arena, struct str s)
{
    struct toml *v = toml_new(arena, TOML_STRING, ORIGIN_MADE);
    v->str = s.p ? arena_str(arena, s) : STR("");
    return v;
}

struct toml *toml_new_int(struct arena *arena, int64_t i)
{
    struct toml *v = toml_new(arena, TOML_INTEGER, ORIGIN_MADE);
    v->integer = i;
    return v;
}

struct toml *toml_new_float(struct arena *arena, double d)
{
    struct toml *v = toml_new(arena, TOML_FLOAT, ORIGIN_MADE);
    v->real = d;
    return v;
}

struct toml *toml_new_bool(struct arena *arena, bool b)
{
    struct toml *v = toml_new(arena, TOML_BOOL, ORIGIN_MADE);
    v->boolean = b;
    return v;
}

void toml_array_push(struct arena *arena, struct toml *array, struct toml *item)
{
    if (array->array.count == array->array.cap) {
        uint32_t cap = array->array.cap ? 2 * array->array.cap : 4;
        struct toml **items = arena_array(arena, struct toml *, cap);
        if (array->array.count)
            memcpy(items, array->array.items, array->array.count * sizeof *items);
        array->array.items = items;
        array->array.cap = cap;
    }
    array->array.items[array->array.count++] = item;
}

void toml_push(struct arena *arena, struct toml *array, struct toml *item)
{
    KV_ASSERT(array->type == TOML_ARRAY);
    KV_ASSERT(array->origin == ORIGIN_MADE);
    toml_array_push(arena, array, item);
}

/* --- entries --- */

/* A byte of a key is nine bits: whether it is there at all, then its eight. So a key that
 * another one starts with differs from it, too. */
static unsigned bit_of(struct str key, int32_t bit)
{
    size_t byte = (size_t)bit / 9, sub = (size_t)bit % 9;
    if (byte >= key.len)
        return 0;
    return sub == 0 ? 1U : (unsigned)(unsigned char)key.p[byte] >> (8 - sub) & 1U;
}

static int32_t first_difference(struct str a, struct str b) /* of two that are not equal */
{
    size_t i = 0;
    while (i < a.len && i < b.len && a.p[i] == b.p[i])
        i++;
    int32_t bit = (int32_t)i * 9;
    while (bit_of(a, bit) == bit_of(b, bit))
        bit++;
    return bit;
}

/* The entry that has the key if any has. */
static struct toml_entry *closest(const struct toml_table *t, struct str key)
{
    struct toml_entry *e = t->tree;
    for (int32_t above = -1; e && e->bit > above;) {
        above = e->bit;
        e = e->branch[bit_of(key, e->bit)];
    }
    return e;
}

static void tree_insert(struct toml_table *t, struct toml_entry *e,
                        const struct toml_entry *maybe_close)
{
    e->bit = -1;
    struct toml_entry **link = &t->tree;
    if (maybe_close) {
        e->bit = first_difference(e->key, maybe_close->key);
        for (int32_t above = -1; (*link)->bit > above && (*link)->bit < e->bit;) {
            above = (*link)->bit;
            link = &(*link)->branch[bit_of(e->key, above)];
        }
        unsigned side = bit_of(e->key, e->bit);
        e->branch[side] = e;
        e->branch[!side] = *link;
    }
    *link = e;
}

static void link_last(struct toml_table *t, struct toml_entry *e)
{
    e->prev = t->last;
    e->next = NULL;
    *(t->last ? &t->last->next : &t->first) = e;
    t->last = e;
    t->count++;
}

void toml_entry_link_first(struct toml *table, struct toml_entry *e)
{
    struct toml_table *t = table->table;
    e->prev = NULL;
    e->next = t->first;
    *(t->first ? &t->first->prev : &t->last) = e;
    t->first = e;
    t->count++;
}

void toml_entry_unlink(struct toml *table, struct toml_entry *e)
{
    struct toml_table *t = table->table;
    *(e->prev ? &e->prev->next : &t->first) = e->next;
    *(e->next ? &e->next->prev : &t->last) = e->prev;
    e->value = NULL;
    e->item = NULL;
    t->count--;
}

struct toml_entry *toml_entry_find(const struct toml *table, struct str key)
{
    struct toml_entry *e = closest(table->table, key);
    return e && e->value && str_eq(e->key, key) ? e : NULL;
}

struct toml_entry *toml_entry_add(struct arena *arena, struct toml *table, struct str key)
{
    struct toml_table *t = table->table;
    struct toml_entry *e = closest(t, key);
    if (!e || !str_eq(e->key, key)) {
        struct toml_entry *close = e;
        e = arena_new(arena, struct toml_entry);
        e->key = key;
        tree_insert(t, e, close);
    }
    if (!e->value)
        link_last(t, e);
    return e;
}

/* --- looking --- */

enum toml_type toml_type(const struct toml *v)
{
    return v->type;
}

bool toml_is(const struct toml *v, enum toml_type type)
{
    return v && v->type == type;
}

struct text_pos toml_pos(const struct toml *v)
{
    return v ? v->pos : (struct text_pos){ 0, 0 };
}

struct str toml_str(const struct toml *v)
{
    bool text =
        v && (v->type == TOML_STRING || (v->type >= TOML_DATETIME && v->type <= TOML_TIME_LOCAL));
    return text ? v->str : STR_NONE;
}

int64_t toml_int(const struct toml *v)
{
    return toml_is(v, TOML_INTEGER) ? v->integer : 0;
}

double toml_float(const struct toml *v)
{
    return toml_is(v, TOML_FLOAT) ? v->real : 0;
}

bool toml_bool(const struct toml *v)
{
    return toml_is(v, TOML_BOOL) && v->boolean;
}

struct str toml_spelling(const struct toml *v)
{
    return v && !v->edited ? v->text : STR_NONE;
}

uint32_t toml_count(const struct toml *v)
{
    if (toml_is(v, TOML_ARRAY))
        return v->array.count;
    return toml_is(v, TOML_TABLE) ? v->table->count : 0;
}

const struct toml *toml_item(const struct toml *array, uint32_t ix)
{
    return toml_is(array, TOML_ARRAY) && ix < array->array.count ? array->array.items[ix] : NULL;
}

const struct toml *toml_get(const struct toml *table, struct str key)
{
    const struct toml_entry *e = toml_is(table, TOML_TABLE) ? toml_entry_find(table, key) : NULL;
    return e ? e->value : NULL;
}

const struct toml *toml_path(const struct toml *table, const char *const *keys, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        table = toml_get(table, str_of(keys[i]));
    return table;
}

const struct toml_entry *toml_first(const struct toml *table)
{
    return toml_is(table, TOML_TABLE) ? table->table->first : NULL;
}

const struct toml_entry *toml_next(const struct toml_entry *entry)
{
    return entry->next;
}

struct str toml_key(const struct toml_entry *entry)
{
    return entry->key;
}

const struct toml *toml_value(const struct toml_entry *entry)
{
    return entry->value;
}

void toml_mark(struct toml *v, const void *mark)
{
    v->mark = mark;
}

const void *toml_marked(const struct toml *v)
{
    return v ? v->mark : NULL;
}

/* --- comparing --- */

static bool floats_equal(double a, double b)
{
    return isnan(a) ? isnan(b) : a == b && signbit(a) == signbit(b);
}

static bool arrays_equal(const struct toml *a, const struct toml *b)
{
    if (a->array.count != b->array.count)
        return false;
    for (uint32_t i = 0; i < a->array.count; i++) {
        if (!toml_equal(a->array.items[i], b->array.items[i]))
            return false;
    }
    return true;
}

static bool tables_equal(const struct toml *a, const struct toml *b)
{
    if (a->table->count != b->table->count)
        return false;
    toml_each(a, e)
    {
        const struct toml *other = toml_get(b, e->key);
        if (!other || !toml_equal(e->value, other))
            return false;
    }
    return true;
}

bool toml_equal(const struct toml *a, const struct toml *b)
{
    if (a->type != b->type)
        return false;
    switch ((enum toml_type)a->type) {
    case TOML_STRING:
    case TOML_DATETIME:
    case TOML_DATETIME_LOCAL:
    case TOML_DATE_LOCAL:
    case TOML_TIME_LOCAL:
        return str_eq(a->str, b->str);
    case TOML_INTEGER:
        return a->integer == b->integer;
    case TOML_FLOAT:
        return floats_equal(a->real, b->real);
    case TOML_BOOL:
        return a->boolean == b->boolean;
    case TOML_ARRAY:
        return arrays_equal(a, b);
    case TOML_TABLE:
        return tables_equal(a, b);
    }
    KV_UNREACHABLE();
}

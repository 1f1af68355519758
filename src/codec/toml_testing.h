/* codec/toml_testing.h - for the tests of TOML: copies of trees, and edits at random. */
#pragma once

#include "base/rng.h"
#include "codec/toml.h"

/* The same values, made rather than read. */
static inline struct toml *toml_copy(struct arena *arena, const struct toml *v)
{
    struct toml *copy = NULL;
    struct err err = { 0 };
    switch (toml_type(v)) {
    case TOML_STRING:
        return toml_new_str(arena, toml_str(v));
    case TOML_INTEGER:
        return toml_new_int(arena, toml_int(v));
    case TOML_FLOAT:
        return toml_new_float(arena, toml_float(v));
    case TOML_BOOL:
        return toml_new_bool(arena, toml_bool(v));
    case TOML_DATETIME:
    case TOML_DATETIME_LOCAL:
    case TOML_DATE_LOCAL:
    case TOML_TIME_LOCAL:
        KV_ASSERT(toml_read_value(arena, toml_str(v), &copy, &err) == 0);
        return copy;
    case TOML_ARRAY:
        copy = toml_new_array(arena);
        for (uint32_t i = 0; i < toml_count(v); i++)
            toml_push(arena, copy, toml_copy(arena, toml_item(v, i)));
        return copy;
    case TOML_TABLE:
        copy = toml_new_table(arena);
        toml_each(v, e) toml_set(arena, copy, toml_key(e), toml_copy(arena, toml_value(e)));
        return copy;
    }
    KV_UNREACHABLE();
}

#define EDIT_DEPTH_MAX 20

/* A table of the tree, and the name of one of its keys or of none. */
static inline struct toml *toml_any_table(struct arena *arena, struct rng *rng, struct toml *root,
                                          struct str *key)
{
    static const char *const names[] = { "a", "b", "new", "x y", "", "key'\"\n" };
    struct toml *table = root;
    for (uint32_t depth = 0; depth < EDIT_DEPTH_MAX; depth++) {
        uint64_t pick = rng_below(rng, toml_count(table) + 2);
        *key = str_of(names[rng_below(rng, KV_COUNT_OF(names))]);
        toml_each(table, e)
        {
            if (pick-- == 0)
                *key = toml_key(e);
        }
        if (!toml_is(toml_get(table, *key), TOML_TABLE) || rng_below(rng, 4) == 0)
            break;
        table = toml_sub(arena, table, *key);
    }
    return table;
}

static inline struct toml *toml_any_value(struct arena *arena, struct rng *rng, bool table_too)
{
    struct toml *v;
    switch (rng_below(rng, table_too ? 6 : 4)) {
    case 0:
        return toml_new_int(arena, (int64_t)rng_next(rng));
    case 1:
        return toml_new_str(arena, STR("it's\n\\"));
    case 2:
        return toml_new_float(arena, (double)rng_below(rng, 1000) / 8);
    case 3:
        v = toml_new_array(arena);
        for (uint64_t i = rng_below(rng, 3); i > 0; i--)
            toml_push(arena, v, toml_any_value(arena, rng, table_too));
        return v;
    default:
        v = toml_new_table(arena);
        for (uint64_t i = rng_below(rng, 3); i > 0; i--)
            toml_set(arena, v, i == 1 ? STR("one") : STR("two"),
                     toml_any_value(arena, rng, i == 1));
        return v;
    }
}

static inline void toml_edit_at_random(struct arena *arena, struct rng *rng, struct toml *root)
{
    struct str key;
    struct toml *table = toml_any_table(arena, rng, root, &key);
    switch (rng_below(rng, 4)) {
    case 0:
        toml_set(arena, table, key, toml_any_value(arena, rng, true));
        break;
    case 1:
        toml_set_first(arena, table, key, toml_any_value(arena, rng, false));
        break;
    case 2:
        toml_remove(arena, table, key);
        break;
    default:
        toml_sub(arena, table, key);
        break;
    }
}

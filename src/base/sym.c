#include "base/sym.h"

void sym_table_done(struct sym_table *t)
{
    map_done(&t->by_hash);
    vec_done(&t->entries);
    arena_done(&t->arena);
}

/* `newest` is where the chain of this hash starts: almost always the symbol itself, or 0. */
static sym chain_find(const struct sym_table *t, struct str s, uintptr_t newest)
{
    uint32_t id = (uint32_t)newest;
    while (id && !str_eq(t->entries.items[id - 1].text, s))
        id = t->entries.items[id - 1].next;
    return (sym){ id };
}

sym sym_find(const struct sym_table *t, struct str s)
{
    uintptr_t newest = 0;
    map_get(&t->by_hash, kv_hash(s.p, s.len), &newest);
    return chain_find(t, s, newest);
}

sym sym_intern(struct sym_table *t, struct str s)
{
    uint64_t hash = kv_hash(s.p, s.len);
    uintptr_t newest = 0;
    map_get(&t->by_hash, hash, &newest);
    sym found = chain_find(t, s, newest);
    if (found.i)
        return found;

    KV_ASSERT(t->entries.count < UINT32_MAX);
    struct str text = arena_str(&t->arena, s.p ? s : STR(""));
    vec_push(&t->entries, (struct sym_entry){ .text = text, .next = (uint32_t)newest });
    map_put(&t->by_hash, hash, t->entries.count);
    return (sym){ (uint32_t)t->entries.count };
}

struct str sym_str(const struct sym_table *t, sym id)
{
    KV_ASSERT(id.i <= t->entries.count);
    return id.i ? t->entries.items[id.i - 1].text : STR_NONE;
}

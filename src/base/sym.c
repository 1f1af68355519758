#include "base/sym.h"

void sym_table_done(struct sym_table *t)
{
    str_table_done(&t->texts);
}

sym sym_find(const struct sym_table *t, struct str s)
{
    const struct str_slot *slot = str_table_slot(&t->texts, s);
    return slot ? (sym){ (uint32_t)(slot - t->texts.slots) + 1 } : SYM_NONE;
}

sym sym_intern(struct sym_table *t, struct str s)
{
    sym found = sym_find(t, s);
    if (found.i)
        return found;
    str_table_put(&t->texts, s, NULL);
    return (sym){ t->texts.slot_count };
}

struct str sym_str(const struct sym_table *t, sym id)
{
    KV_ASSERT(id.i <= t->texts.slot_count);
    return id.i ? t->texts.slots[id.i - 1].key : STR_NONE;
}

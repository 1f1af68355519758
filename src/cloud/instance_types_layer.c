/* A layer starts as a copy of its base's handle: every column is shared. Then the columns that an
 * edit touches are replaced. Prices hang on a pointer per type, so that what is copied is what changes;
 * of resources the touched columns are copied whole, which are a few numbers per type.
 */
#include "cloud/instance_types_inner.h"

#include "base/vec.h"

struct layer {
    const struct instance_types *base;
    struct arena *arena;   /* the layer's */
    struct arena *scratch; /* gone when the layer is done */
    struct instance_types s;
};

/* --- prices --- */

/* Edits of one type, from `edits` on. */
static uint32_t edits_of_type(const struct instance_types *s, const struct price_edit *edits,
                              uint32_t count)
{
    uint32_t type = s->offering_type[edits[0].offering], n = 1;
    while (n < count && edits[n].offering < s->offering_start[type + 1])
        n++;
    return n;
}

static bool any_differs(const struct instance_types *s, const struct price_edit *edits,
                        uint32_t count)
{
    bool differs = false;
    for (uint32_t i = 0; i < count; i++)
        differs |= instance_types_price(s, edits[i].offering) != edits[i].price;
    return differs;
}

/* Both kept up from the base's: types whose cheapest price changed are taken out of the order,
 * sorted among themselves and merged back. */
static void reorder(struct layer *l, const uint32_t *moved, uint32_t moved_count)
{
    const struct instance_types *base = l->base;
    uint32_t n = base->type_count;
    usd_hour *cheapest = arena_array(l->arena, usd_hour, n);
    uint32_t *order = arena_array(l->arena, uint32_t, n);
    uint32_t *sorted = arena_array(l->scratch, uint32_t, moved_count);
    struct bitset is_moved = bitset_new(l->scratch, n);
    memcpy(cheapest, base->price_cheapest, n * sizeof *cheapest);
    for (uint32_t i = 0; i < moved_count; i++) {
        sorted[i] = moved[i];
        cheapest[moved[i]] = instance_types_lowest(&l->s, moved[i]);
        bitset_set(&is_moved, moved[i]);
    }
    instance_types_sort_by_price(sorted, moved_count, cheapest);
    for (uint32_t i = 0, m = 0, o = 0; o < n;) {
        while (i < n && bitset_test(&is_moved, base->price_order[i]))
            i++;
        uint32_t kept = i < n ? base->price_order[i] : n;
        bool take_moved =
            kept == n || (m < moved_count && instance_types_cheaper(cheapest, sorted[m], kept));
        order[o++] = take_moved ? sorted[m++] : base->price_order[i++];
    }
    l->s.price_cheapest = cheapest;
    l->s.price_order = order;
}

static void layer_prices(struct layer *l, const struct price_edit *edits, uint32_t count)
{
    const struct instance_types *base = l->base;
    uint32_t n = base->type_count, changed = 0;
    const usd_hour **prices = arena_array(l->arena, const usd_hour *, n);
    uint32_t *moved = arena_array(l->scratch, uint32_t, n);
    memcpy(prices, base->prices, n * sizeof *prices);
    for (uint32_t i = 0, of_type; i < count; i += of_type) {
        of_type = edits_of_type(base, &edits[i], count - i);
        for (uint32_t k = i; k < i + of_type; k++)
            bitset_set(&l->s.priced, edits[k].offering);
        if (!any_differs(base, &edits[i], of_type))
            continue;
        uint32_t type = base->offering_type[edits[i].offering];
        uint32_t start = base->offering_start[type], end = base->offering_start[type + 1];
        usd_hour *own = arena_array(l->arena, usd_hour, end - start);
        memcpy(own, base->prices[type], (end - start) * sizeof *own);
        for (uint32_t k = i; k < i + of_type; k++)
            own[edits[k].offering - start] = edits[k].price;
        prices[type] = own;
        moved[changed++] = type;
    }
    if (!changed)
        return;
    l->s.prices = prices;
    reorder(l, moved, changed);
}

/* --- capacities --- */

static bool changes(const struct instance_types *s, const struct capacity_edit *edit)
{
    const struct resource_column *c = instance_types_resource(s, edit->resource);
    return edit->milli != (c ? c->capacity[edit->type] : 0);
}

/* The base's columns and those of resources that it does not have, in the order of names. */
static struct resource_column *merged_columns(struct layer *l, const struct capacity_edit *edits,
                                              uint32_t count)
{
    const struct instance_types *base = l->base;
    struct str *fresh = arena_array(l->scratch, struct str, count);
    uint32_t fresh_count = 0, from_base = 0, from_fresh = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (changes(base, &edits[i]) && !instance_types_resource(base, edits[i].resource))
            fresh[fresh_count++] = edits[i].resource;
    }
    fresh_count = (uint32_t)str_sort_unique(fresh, fresh_count);
    l->s.resource_count = base->resource_count + fresh_count;
    struct resource_column *columns =
        arena_array(l->arena, struct resource_column, l->s.resource_count);
    for (uint32_t i = 0; i < l->s.resource_count; i++) {
        bool take_fresh = from_base == base->resource_count ||
                          (from_fresh < fresh_count &&
                           str_cmp(fresh[from_fresh], base->resources[from_base].name) < 0);
        if (!take_fresh)
            columns[i] = base->resources[from_base++];
        else
            columns[i] = (struct resource_column){ .name = arena_str(l->arena, fresh[from_fresh++]),
                                                   .capacity = base->zeros,
                                                   .overhead = base->zeros };
    }
    l->s.resources = columns;
    return columns;
}

/* Rows of the type, but for its first: [*first, *end). They follow each other. */
static void override_rows(const struct instance_types *s, uint32_t type, uint32_t *first,
                          uint32_t *end)
{
    uint32_t types = s->type_count, extra = s->row_count - types;
    *first = *end = types + FIRST_NOT(extra, i, s->row_type[types + i] < type);
    while (*end < s->row_count && s->row_type[*end] == type)
        ++*end;
}

static void layer_capacities(struct layer *l, const struct capacity_edit *edits, uint32_t count)
{
    struct instance_types *s = &l->s;
    struct resource_column *columns = merged_columns(l, edits, count);
    int64_t **own = arena_array(l->scratch, int64_t *, s->resource_count);
    bool huge = false;
    for (uint32_t i = 0; i < count; i++) {
        const struct capacity_edit *edit = &edits[i];
        if (!changes(l->base, edit))
            continue;
        ptrdiff_t at = instance_types_resource(s, edit->resource) - columns;
        struct resource_column *c = &columns[at];
        if (!own[at]) {
            own[at] = arena_array(l->arena, int64_t, s->row_count);
            memcpy(own[at], c->capacity, s->row_count * sizeof *own[at]);
            c->capacity = own[at];
            c->allocatable = NULL;
            huge |= str_starts(c->name, STR("hugepages-"));
        }
        uint32_t row, end;
        override_rows(s, edit->type, &row, &end);
        own[at][edit->type] = edit->milli;
        for (; row < end; row++) {
            if (!posting_has(&c->overrides, row))
                own[at][row] = edit->milli;
        }
        bitset_set(&s->recapacitied, edit->type);
    }
    /* Huge pages are taken out of memory. */
    for (uint32_t i = 0; huge && i < s->resource_count; i++) {
        if (str_eq(columns[i].name, STR("memory")))
            columns[i].allocatable = NULL;
    }
    instance_types_subtract(s, l->arena, columns);
}

/* --- both --- */

static void check_edits(const struct instance_types *base, const struct price_edit *prices,
                        uint32_t price_count, const struct capacity_edit *capacities,
                        uint32_t capacity_count)
{
    for (uint32_t i = 0; i < price_count; i++) {
        KV_ASSERT(prices[i].offering < base->offering_count);
        KV_ASSERT(i == 0 || prices[i - 1].offering < prices[i].offering);
        KV_ASSERT(prices[i].price >= 0);
    }
    for (uint32_t i = 0; i < capacity_count; i++) {
        KV_ASSERT(capacities[i].type < base->type_count);
        KV_ASSERT(i == 0 || capacities[i - 1].type < capacities[i].type ||
                  (capacities[i - 1].type == capacities[i].type &&
                   str_cmp(capacities[i - 1].resource, capacities[i].resource) < 0));
        KV_ASSERT(capacities[i].milli >= 0);
    }
}

const struct instance_types *instance_types_layer(const struct instance_types *base,
                                                  const struct price_edit *prices,
                                                  uint32_t price_count,
                                                  const struct capacity_edit *capacities,
                                                  uint32_t capacity_count,
                                                  struct instance_types_options options)
{
    KV_ASSERT(base->base == NULL);
    check_edits(base, prices, price_count, capacities, capacity_count);
    bool recapacity = false;
    for (uint32_t i = 0; i < capacity_count; i++)
        recapacity |= changes(base, &capacities[i]);
    if (!price_count && !recapacity)
        return instance_types_ref(base);

    AUTO_ARENA scratch = { 0 };
    struct instance_types_memory *memory = instance_types_memory_new(base);
    struct layer l = { .base = base, .arena = &memory->arena, .scratch = &scratch };
    instance_types_copy(&l.s, base);
    l.s.memory = memory;
    l.s.priced = bitset_new(l.arena, base->offering_count);
    l.s.recapacitied = bitset_new(l.arena, base->type_count);
    if (price_count)
        layer_prices(&l, prices, price_count);
    if (recapacity)
        layer_capacities(&l, capacities, capacity_count);
    return instance_types_publish(&l.s, options);
}

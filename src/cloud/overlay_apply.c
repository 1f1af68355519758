/* Applying: overlays in order, each taking what it matches and nobody before it took. What results
 * is a list of edits, from which the snapshot makes a layer. An offering is its place in the
 * snapshot and a resource its place in the set; nothing goes by how it is printed.
 */
#include "cloud/overlay_inner.h"

struct pick { /* an amount of a resource of a type */
    int64_t milli;
    uint32_t by; /* 1 + the overlay's place; 0: nobody's */
};

struct picks {
    const struct overlay_set *set;
    const struct instance_types *types;
    struct arena *scratch;
    struct bitset priced; /* offerings */
    usd_hour *prices;     /* per offering; these count where `priced` is set */
    uint32_t *price_by;
    struct pick **amounts; /* per resource, per type; NULL: the resource is nobody's */
    uint32_t price_count, amount_count;
};

static usd_hour price_of(const struct overlay *o, usd_hour before)
{
    return o->pricing == PRICING_ABSOLUTE ? o->price : price_adjust(before, &o->adjustment);
}

/* Leaves in the match what nobody had priced. */
static void pick_prices(struct picks *p, struct overlay_match *m, uint32_t place)
{
    const struct overlay *o = &p->set->items[place];
    if (o->pricing == PRICING_NONE)
        return;
    bitset_andnot(&m->offerings, &p->priced);
    bitset_each(&m->offerings, offering) {
        p->prices[offering] = price_of(o, instance_types_price(p->types, offering));
        p->price_by[offering] = place;
        p->price_count++;
    }
    bitset_or(&p->priced, &m->offerings);
}

static void pick_capacity(struct picks *p, const struct overlay_match *m, uint32_t place)
{
    const struct overlay *o = &p->set->items[place];
    for (uint32_t i = 0; m->type_count && i < o->capacity_count; i++) {
        struct pick **amounts = &p->amounts[o->capacity[i].resource];
        if (!*amounts)
            *amounts = arena_array(p->scratch, struct pick, p->types->type_count);
        bitset_each(&m->types, t) {
            if ((*amounts)[t].by)
                continue;
            (*amounts)[t] = (struct pick){ o->capacity[i].milli, place + 1 };
            p->amount_count++;
        }
    }
}

static void list_prices(const struct picks *p, struct arena *arena, struct overlay_edits *out)
{
    struct price_edit *edits = arena_array(arena, struct price_edit, p->price_count);
    uint32_t *by = arena_array(arena, uint32_t, p->price_count);
    uint32_t count = 0;
    bitset_each(&p->priced, offering) {
        edits[count] = (struct price_edit){ offering, p->prices[offering] };
        by[count++] = p->price_by[offering];
    }
    out->prices = edits;
    out->price_by = by;
    out->price_count = count;
}

static void list_capacities(const struct picks *p, struct arena *arena, struct overlay_edits *out)
{
    struct capacity_edit *edits = arena_array(arena, struct capacity_edit, p->amount_count);
    uint32_t *by = arena_array(arena, uint32_t, p->amount_count);
    uint32_t count = 0;
    for (uint32_t t = 0; p->amount_count && t < p->types->type_count; t++) {
        for (uint32_t r = 0; r < p->set->resource_count; r++) {
            const struct pick *pick = p->amounts[r] ? &p->amounts[r][t] : NULL;
            if (!pick || !pick->by)
                continue;
            edits[count] = (struct capacity_edit){ t, p->set->resources[r], pick->milli };
            by[count++] = pick->by - 1;
        }
    }
    out->capacities = edits;
    out->capacity_by = by;
    out->capacity_count = count;
}

struct overlay_edits overlay_set_edits(const struct overlay_set *set,
                                       const struct overlay_pool *pool, struct arena *arena)
{
    AUTO_ARENA scratch = { 0 };
    struct overlay_edits edits = { 0 };
    struct overlay_view view = overlay_view_make(set, pool, &scratch);
    struct overlay_match match = overlay_match_new(&view, &scratch);
    struct picks picks = {
        .set = set,
        .types = pool->types,
        .scratch = &scratch,
        .priced = bitset_new(&scratch, pool->types->offering_count),
        .prices = arena_array(&scratch, usd_hour, pool->types->offering_count),
        .price_by = arena_array(&scratch, uint32_t, pool->types->offering_count),
        .amounts = arena_array(&scratch, struct pick *, set->resource_count),
    };
    for (uint32_t i = 0; i < set->count; i++) {
        if (!overlay_is_valid(&set->items[i]))
            continue;
        overlay_match_find(&view, &set->items[i], &match);
        pick_prices(&picks, &match, i);
        pick_capacity(&picks, &match, i);
    }
    list_prices(&picks, arena, &edits);
    list_capacities(&picks, arena, &edits);
    return edits;
}

const struct instance_types *overlay_set_apply(const struct overlay_set *set,
                                               const struct overlay_pool *pool,
                                               struct instance_types_options options)
{
    if (set->count == 0)
        return instance_types_ref(pool->types);
    AUTO_ARENA arena = { 0 };
    struct overlay_edits edits = overlay_set_edits(set, pool, &arena);
    if (edits.price_count == 0 && edits.capacity_count == 0)
        return instance_types_ref(pool->types);
    return instance_types_layer(pool->types, edits.prices, edits.price_count, edits.capacities,
                                edits.capacity_count, options);
}

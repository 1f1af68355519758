/* The two worlds, without the candidate and with it, are evaluated to their accepted sets. No
 * layers are built: what a set does to a pool is a sorted list of edits (once for each class of
 * pools), and two such lists over the same types are compared by walking them in step.
 */
#include "cloud/overlay_preview.h"

#include "base/vec.h"
#include "cloud/overlay_inner.h"

struct world {
    const struct overlay_set *set;
    struct overlay_evaluation evaluation;
    const uint32_t *class_of;          /* per pool */
    const struct overlay_edits *edits; /* per class */
};

/* `pools` are sorted. Verdicts live in `arena`, the rest in `scratch`. */
static void world_make(struct world *w, const struct nodeoverlay *const *overlays, uint32_t count,
                       const struct overlay_pool *pools, uint32_t pool_count, struct arena *arena,
                       struct arena *scratch)
{
    uint32_t *class_of = arena_array(scratch, uint32_t, pool_count);
    w->set = overlay_set_new(overlays, count, 0);
    overlay_set_evaluate(w->set, pools, pool_count, arena, &w->evaluation);
    uint32_t class_count = overlay_classes(w->evaluation.accepted, pools, pool_count, class_of);
    struct overlay_edits *edits = arena_array(scratch, struct overlay_edits, class_count);
    for (uint32_t i = 0, next = 0; i < pool_count; i++) {
        if (class_of[i] == next)
            edits[next++] = overlay_set_edits(w->evaluation.accepted, &pools[i], scratch);
    }
    w->class_of = class_of;
    w->edits = edits;
}

static void world_done(struct world *w)
{
    overlay_set_unref(w->evaluation.accepted);
    overlay_set_unref(w->set);
}

/* Sets are gone when the preview is read; the overlays are the caller's. */
static struct str name_in(const struct world *w, uint32_t place)
{
    return w->evaluation.accepted->items[place].object->object.meta.name;
}

/* --- one pool --- */

struct cursor { /* walks the edits of one world */
    const struct world *world;
    const struct overlay_edits *edits;
    uint32_t price, capacity;
};

struct comparison {
    const struct instance_types *types;
    struct arena *arena;
    struct cursor before, after;
    VEC(struct preview_price) prices;        /* of the type at hand */
    VEC(struct preview_capacity) capacities; /* likewise */
};

static usd_hour take_price(struct cursor *c, const struct instance_types *types, uint32_t offering,
                           struct str *by)
{
    *by = STR("");
    if (c->price == c->edits->price_count || c->edits->prices[c->price].offering != offering)
        return instance_types_price(types, offering);
    *by = name_in(c->world, c->edits->price_by[c->price]);
    return c->edits->prices[c->price++].price;
}

static void compare_prices(struct comparison *c, uint32_t type)
{
    const struct instance_types *s = c->types;
    for (uint32_t o = s->offering_start[type]; o < s->offering_start[type + 1]; o++) {
        const struct offering_shape *shape = &s->shapes[s->offering_shape[o]];
        struct preview_price change = { .offering = o, .available = bitset_test(&s->available, o) };
        change.before = take_price(&c->before, s, o, &change.by_before);
        change.after = take_price(&c->after, s, o, &change.by_after);
        if (change.before == change.after)
            continue;
        change.zone = arena_str(c->arena, shape->zone);
        change.capacity_type = arena_str(c->arena, shape->capacity_type);
        change.reservation_id = arena_str(c->arena, shape->reservation_id);
        vec_push(&c->prices, change);
    }
}

static int price_order(const void *a, const void *b)
{
    const struct preview_price *x = a, *y = b;
    int order = str_cmp(x->zone, y->zone);
    order = order ? order : str_cmp(x->capacity_type, y->capacity_type);
    order = order ? order : str_cmp(x->reservation_id, y->reservation_id);
    return order ? order : (x->offering > y->offering) - (x->offering < y->offering);
}

/* The cursor's next edit of the type's capacity; NULL if there is none. */
static const struct capacity_edit *next_capacity(const struct cursor *c, uint32_t type)
{
    const struct overlay_edits *e = c->edits;
    bool more = c->capacity < e->capacity_count && e->capacities[c->capacity].type == type;
    return more ? &e->capacities[c->capacity] : NULL;
}

static int64_t take_capacity(struct cursor *c, const struct capacity_edit *maybe_next,
                             struct str resource, int64_t raw, struct str *by)
{
    *by = STR("");
    if (!maybe_next || !str_eq(maybe_next->resource, resource))
        return raw;
    *by = name_in(c->world, c->edits->capacity_by[c->capacity++]);
    return maybe_next->milli;
}

static void compare_capacities(struct comparison *c, uint32_t type)
{
    const struct capacity_edit *before, *after;
    while ((before = next_capacity(&c->before, type)), (after = next_capacity(&c->after, type)),
           before || after) {
        bool from_before = before && (!after || str_cmp(before->resource, after->resource) <= 0);
        struct str resource = from_before ? before->resource : after->resource;
        const struct resource_column *column = instance_types_resource(c->types, resource);
        int64_t raw = column ? column->capacity[type] : 0;
        struct preview_capacity change = { 0 };
        change.before = take_capacity(&c->before, before, resource, raw, &change.by_before);
        change.after = take_capacity(&c->after, after, resource, raw, &change.by_after);
        if (change.before == change.after)
            continue;
        change.resource = arena_str(c->arena, resource);
        vec_push(&c->capacities, change);
    }
}

/* The items of a vec as a list in the arena. */
#define LIST_OF(arena, type, vec, list)                                                            \
    do {                                                                                           \
        type *list_items_ = arena_array(arena, type, (vec)->count);                                \
        for (size_t list_ix_ = 0; list_ix_ < (vec)->count; list_ix_++)                             \
            list_items_[list_ix_] = (vec)->items[list_ix_];                                        \
        (list)->items = list_items_;                                                               \
        (list)->count = (uint32_t)(vec)->count;                                                    \
    } while (0)

typedef VEC(struct preview_type) type_vec;

static void compare_pool(const struct overlay_pool *pool, struct cursor before, struct cursor after,
                         struct arena *arena, type_vec *out)
{
    struct comparison c = {
        .types = pool->types, .arena = arena, .before = before, .after = after
    };
    struct str pool_name = arena_str(arena, pool->name);
    for (uint32_t t = 0; t < pool->types->type_count; t++) {
        compare_prices(&c, t);
        compare_capacities(&c, t);
        if (c.prices.count == 0 && c.capacities.count == 0)
            continue;
        struct preview_type changed = { .pool = pool_name,
                                        .type = arena_str(arena, pool->types->names[t]),
                                        .type_ix = t };
        if (c.prices.count)
            qsort(c.prices.items, c.prices.count, sizeof *c.prices.items, price_order);
        LIST_OF(arena, struct preview_price, &c.prices, &changed.prices);
        LIST_OF(arena, struct preview_capacity, &c.capacities, &changed.capacities);
        vec_push(out, changed);
        vec_clear(&c.prices);
        vec_clear(&c.capacities);
    }
    vec_done(&c.prices);
    vec_done(&c.capacities);
}

/* --- verdicts --- */

static int verdict_order(const void *a, const void *b)
{
    return str_cmp(((const struct preview_verdict *)a)->name,
                   ((const struct preview_verdict *)b)->name);
}

/* Both worlds have the other overlays in the same order, and the candidate (or the one that it
 * replaces) somewhere in between. */
static void compare_verdicts(const struct world *before, const struct world *after,
                             struct str candidate, struct arena *arena, struct overlay_preview *out)
{
    uint32_t count = 0, k = 0;
    const struct overlay_verdict *old = before->evaluation.verdicts.items;
    struct preview_verdict *changed =
        arena_array(arena, struct preview_verdict, after->evaluation.verdicts.count);
    for (uint32_t i = 0; i < after->evaluation.verdicts.count; i++) {
        const struct overlay_verdict *now = &after->evaluation.verdicts.items[i];
        struct str name = now->overlay->object.meta.name;
        if (str_eq(name, candidate)) {
            out->candidate = *now;
            continue;
        }
        while (!str_eq(old[k].overlay->object.meta.name, name))
            k++;
        if (old[k].state != now->state)
            changed[count++] =
                (struct preview_verdict){ name, old[k].state, now->state, now->message };
    }
    qsort(changed, count, sizeof *changed, verdict_order);
    out->verdicts.items = changed;
    out->verdicts.count = count;
}

void overlay_preview_make(const struct nodeoverlay *candidate,
                          const struct nodeoverlay *const *current, uint32_t current_count,
                          const struct overlay_pool *pools, uint32_t pool_count,
                          struct arena *arena, struct overlay_preview *out)
{
    AUTO_ARENA scratch = { 0 };
    const struct overlay_pool *sorted = overlay_pools_sorted(pools, pool_count, &scratch);
    const struct nodeoverlay **with =
        arena_array(&scratch, const struct nodeoverlay *, current_count + 1);
    struct world before, after;
    type_vec types = { 0 };
    uint32_t count = 0;

    *out = (struct overlay_preview){ 0 };
    for (uint32_t i = 0; i < current_count; i++) {
        if (!str_eq(current[i]->object.meta.name, candidate->object.meta.name))
            with[count++] = current[i];
    }
    out->replaces = count < current_count;
    with[count++] = candidate;

    world_make(&before, current, current_count, sorted, pool_count, arena, &scratch);
    world_make(&after, with, count, sorted, pool_count, arena, &scratch);
    compare_verdicts(&before, &after, candidate->object.meta.name, arena, out);
    for (uint32_t i = 0; i < pool_count; i++) {
        struct cursor a = { .world = &before, .edits = &before.edits[before.class_of[i]] };
        struct cursor b = { .world = &after, .edits = &after.edits[after.class_of[i]] };
        compare_pool(&sorted[i], a, b, arena, &types);
    }
    LIST_OF(arena, struct preview_type, &types, &out->types);
    for (uint32_t i = 0; i < out->types.count; i++) {
        out->price_count += out->types.items[i].prices.count;
        out->capacity_count += out->types.items[i].capacities.count;
    }
    vec_done(&types);
    world_done(&before);
    world_done(&after);
}

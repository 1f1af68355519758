/* Snapshots of types in which single offerings differ: they are taken apart into drafts and built
 * again.
 */
#include "cloud/fake_node.h"

bool fake_offering_is_marked(const struct instance_types *s, uint32_t o, struct unavailable *marks)
{
    const struct offering_shape *shape = &s->shapes[s->offering_shape[o]];
    return unavailable_has(marks, s->names[s->offering_type[o]], shape->zone, shape->capacity_type,
                           shape->reservation_id);
}

enum amount { AMOUNT_CAPACITY, AMOUNT_OVERHEAD };

/* What a row has otherwise than its type. */
static struct resources row_override(const struct instance_types *s, uint32_t type, uint32_t row,
                                     enum amount which, struct arena *arena)
{
    struct resource *items = arena_array(arena, struct resource, s->resource_count);
    uint32_t count = 0;
    for (uint32_t c = 0; c < s->resource_count; c++) {
        const struct resource_column *column = &s->resources[c];
        const int64_t *amounts = which == AMOUNT_CAPACITY ? column->capacity : column->overhead;
        if (amounts[row] != amounts[type])
            items[count++] = (struct resource){ column->name, quantity_of_milli(amounts[row]) };
    }
    return (struct resources){ items, count };
}

static struct offering_draft draft_offering(const struct instance_types *s, uint32_t o,
                                            struct arena *arena)
{
    uint32_t type = s->offering_type[o], row = s->offering_row[o];
    struct offering_draft draft = {
        .requirements = s->shapes[s->offering_shape[o]].requirements,
        .price = instance_types_price(s, o),
        .available = bitset_test(&s->available, o),
        .reservation_capacity = s->reservation_capacity[o],
    };
    if (row != type) {
        draft.capacity_override = row_override(s, type, row, AMOUNT_CAPACITY, arena);
        draft.overhead_override = row_override(s, type, row, AMOUNT_OVERHEAD, arena);
    }
    return draft;
}

/* The drafts that would give `base`, each offering through `edit`. */
int fake_types_edit(const struct instance_types *base, fake_edit_fn *edit, void *ctx,
                    const struct instance_types **out, struct err *err)
{
    AUTO_ARENA arena = { 0 };

    struct instance_type_draft *drafts =
        arena_array(&arena, struct instance_type_draft, base->type_count);
    for (uint32_t t = 0; t < base->type_count; t++) {
        uint32_t start = base->offering_start[t], count = base->offering_start[t + 1] - start;
        struct offering_draft *all = arena_array(&arena, struct offering_draft, count);
        for (uint32_t i = 0; i < count; i++) {
            all[i] = draft_offering(base, start + i, &arena);
            edit(ctx, base, start + i, &all[i]);
        }
        drafts[t] = (struct instance_type_draft){
            .name = base->names[t],
            .requirements = instance_type_requirements(base, t, &arena),
            .capacity = instance_type_capacity(base, t, &arena),
            .overhead = instance_type_overhead(base, t, &arena),
            .offerings = all,
            .offering_count = count,
        };
    }
    return instance_types_build(drafts, base->type_count, (struct instance_types_options){ 0 }, out,
                                err);
}

static bool any_marked(const struct instance_types *s, struct unavailable *marks)
{
    if (unavailable_count(marks) == 0)
        return false;
    bitset_each(&s->available, o) {
        if (fake_offering_is_marked(s, o, marks))
            return true;
    }
    return false;
}

static void close_marked(void *ctx, const struct instance_types *base, uint32_t offering,
                         struct offering_draft *draft)
{
    draft->available = draft->available && !fake_offering_is_marked(base, offering, ctx);
}

int fake_types_marked(const struct instance_types *base, struct unavailable *marks,
                      const struct instance_types **out, struct err *err)
{
    if (!any_marked(base, marks)) {
        *out = instance_types_ref(base);
        return 0;
    }
    return fake_types_edit(base, close_marked, marks, out, err);
}

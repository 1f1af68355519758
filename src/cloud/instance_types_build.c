/* From checked and pooled drafts to columns, laid out in the snapshot's arena in few large pieces:
 * texts, requirements, types, shapes, offerings, rows and their resources, then labels.
 */
#include "cloud/instance_types_build.h"

#include <inttypes.h>

int build_reserve(struct build *b, uint64_t cells, struct err *err)
{
    b->cells += cells;
    if (b->cells > INSTANCE_CELLS_MAX)
        return err_set(err, ERR_INVALID,
                       "instance types with this many labels and resources do not fit (%" PRIu64
                       " cells, at most %u)",
                       b->cells, INSTANCE_CELLS_MAX);
    return 0;
}

static uint32_t rank_of(const struct build *b, uint32_t text)
{
    return b->pool->texts.items[text].rank;
}

static struct str kept_text(const struct build *b, uint32_t text)
{
    return b->texts[rank_of(b, text)];
}

static const struct instance_type_draft *draft_of(const struct build *b, uint32_t type)
{
    return &b->drafts->items[b->drafts->order[type]];
}

/* --- texts, requirements, types --- */

static void build_texts(struct build *b)
{
    const struct pool *p = b->pool;
    size_t bytes = 0;
    for (uint32_t i = 0; i < p->texts.count; i++)
        bytes += p->texts.items[i].text.len + 1;
    char *at = arena_alloc(b->arena, bytes);
    b->texts = arena_array(b->scratch, struct str, p->texts.count);
    for (uint32_t i = 0; i < p->texts.count; i++) {
        struct str text = p->texts.items[p->text_order[i]].text;
        memcpy(at, text.p, text.len);
        b->texts[i] = (struct str){ at, text.len };
        at += text.len + 1;
    }
}

static void build_requirements(struct build *b)
{
    const struct pool *p = b->pool;
    struct requirement *pool = arena_array(b->arena, struct requirement, p->requirements.count);
    struct str *values = arena_array(b->arena, struct str, p->values.count);
    b->value_ranks = arena_array(b->scratch, uint32_t, p->values.count);
    b->values_start = arena_array(b->scratch, uint32_t, p->requirements.count);
    uint32_t at = 0;
    for (uint32_t i = 0; i < p->requirements.count; i++) {
        const struct pool_requirement *from = &p->requirements.items[p->requirement_order[i]];
        pool[i] = *from->source;
        pool[i].key = kept_text(b, from->key);
        pool[i].values.items = &values[at];
        b->values_start[i] = at;
        for (uint32_t v = 0; v < pool[i].values.count; v++, at++) {
            b->value_ranks[at] = rank_of(b, p->values.items[from->values + v]);
            values[at] = b->texts[b->value_ranks[at]];
        }
    }
    b->s.requirement_pool = pool;
    b->s.requirement_count = (uint32_t)p->requirements.count;
}

/* In place; quick when few are out of order. */
static void insertion_sort(uint32_t *items, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        uint32_t item = items[i], at = i;
        for (; at > 0 && items[at - 1] > item; at--)
            items[at] = items[at - 1];
        items[at] = item;
    }
}

/* Requirements are ranked by key, so sorting a type's ids sorts them by key. They are sorted but for
 * those that were filled in, at the end. */
static void build_types(struct build *b)
{
    struct drafts *d = b->drafts;
    uint32_t n = b->s.type_count, at = 0;
    struct str *names = arena_array(b->arena, struct str, n);
    uint32_t *start = arena_array(b->arena, uint32_t, (size_t)n + 1);
    uint32_t *ids = arena_array(b->arena, uint32_t, d->requirements.count);
    for (uint32_t t = 0; t < n; t++) {
        uint32_t draft = d->order[t];
        names[t] = kept_text(b, d->names.items[draft]);
        start[t] = at;
        for (uint32_t i = d->requirements_start.items[draft];
             i < d->requirements_start.items[draft + 1]; i++)
            ids[at++] = b->pool->requirements.items[d->requirements.items[i]].rank;
        insertion_sort(&ids[start[t]], at - start[t]);
    }
    start[n] = at;
    b->s.names = names;
    b->s.type_requirements = ids;
    b->s.type_requirements_start = start;
}

/* --- shapes --- */

static uint8_t capacity_type_ix(struct str text)
{
    static const char *const names[] = { [CAPACITY_TYPE_RESERVED] = CAPACITY_RESERVED,
                                         [CAPACITY_TYPE_SPOT] = CAPACITY_SPOT,
                                         [CAPACITY_TYPE_ON_DEMAND] = CAPACITY_ON_DEMAND };
    uint8_t i = 0;
    while (i < CAPACITY_TYPE_OTHER && !str_eqz(text, names[i]))
        i++;
    return i;
}

static struct requirements shape_requirements(struct build *b, const struct pool_shape *from)
{
    struct requirement *items = arena_array(b->arena, struct requirement, from->count);
    for (uint32_t i = 0; i < from->count; i++) {
        uint32_t id = b->pool->shape_requirements.items[from->start + i];
        items[i] = b->s.requirement_pool[b->pool->requirements.items[id].rank];
    }
    return (struct requirements){ items, from->count };
}

/* Shapes are sorted by zone, so equal zones follow each other. */
static struct offering_shape *build_shapes(struct build *b)
{
    uint32_t n = b->s.shape_count;
    struct offering_shape *shapes = arena_array(b->arena, struct offering_shape, n);
    struct str *zones = arena_array(b->arena, struct str, n);
    for (uint32_t i = 0; i < n; i++) {
        const struct pool_shape *from = &b->pool->shapes.items[b->pool->shape_order[i]];
        struct offering_shape *shape = &shapes[i];
        *shape = (struct offering_shape){ .requirements = shape_requirements(b, from),
                                          .zone = kept_text(b, from->zone),
                                          .capacity_type = kept_text(b, from->capacity_type),
                                          .reservation_id = STR("") };
        if (from->maybe_reservation != POOL_NONE)
            shape->reservation_id = kept_text(b, from->maybe_reservation);
        shape->capacity_type_ix = capacity_type_ix(shape->capacity_type);
        if (!b->s.zone_count || zones[b->s.zone_count - 1].p != shape->zone.p)
            zones[b->s.zone_count++] = shape->zone;
        shape->zone_ix = b->s.zone_count - 1;
    }
    b->s.shapes = shapes;
    b->s.zones = zones;
    return shapes;
}

static int build_shape_postings(struct build *b, struct offering_shape *shapes, struct err *err)
{
    const struct instance_types *s = &b->s;
    for (uint32_t o = 0; o < s->offering_count; o++) {
        struct offering_shape *shape = &shapes[s->offering_shape[o]];
        posting_note(&shape->offerings, o);
        if (bitset_test(&s->available, o))
            posting_note(&shape->types, s->offering_type[o]);
    }
    uint64_t word_count = 0;
    for (uint32_t i = 0; i < s->shape_count; i++)
        word_count += shapes[i].offerings.count + shapes[i].types.count;
    if (build_reserve(b, word_count, err) < 0)
        return -1;
    uint64_t *words = arena_array(b->arena, uint64_t, word_count);
    for (uint32_t i = 0; i < s->shape_count; i++) {
        words = posting_place(&shapes[i].offerings, words);
        words = posting_place(&shapes[i].types, words);
    }
    for (uint32_t o = 0; o < s->offering_count; o++) {
        struct offering_shape *shape = &shapes[s->offering_shape[o]];
        posting_add(&shape->offerings, o);
        if (bitset_test(&s->available, o))
            posting_add(&shape->types, s->offering_type[o]);
    }
    return 0;
}

/* --- offerings --- */

static void build_offerings(struct build *b)
{
    struct drafts *d = b->drafts;
    uint32_t types = b->s.type_count, count = b->s.offering_count, o = 0;
    uint32_t *start = arena_array(b->arena, uint32_t, (size_t)types + 1);
    uint32_t *type = arena_array(b->arena, uint32_t, count);
    uint16_t *shape = arena_array(b->arena, uint16_t, count);
    uint32_t *left = arena_array(b->arena, uint32_t, count);
    usd_hour *prices = arena_array(b->arena, usd_hour, count);
    const usd_hour **price_of = arena_array(b->arena, const usd_hour *, types);
    struct bitset available = bitset_new(b->arena, count);
    for (uint32_t t = 0; t < types; t++) {
        const struct instance_type_draft *draft = draft_of(b, t);
        const uint32_t *shapes = d->shapes.items + d->offering_start.items[d->order[t]];
        start[t] = o;
        price_of[t] = &prices[o];
        for (uint32_t i = 0; i < draft->offering_count; i++, o++) {
            const struct offering_draft *from = &draft->offerings[i];
            type[o] = t;
            shape[o] = (uint16_t)b->pool->shapes.items[shapes[i]].rank;
            left[o] = from->reservation_capacity < UINT32_MAX ? (uint32_t)from->reservation_capacity
                                                              : UINT32_MAX;
            prices[o] = from->price;
            if (from->available)
                bitset_set(&available, o);
        }
    }
    start[types] = o;
    b->s.offering_start = start;
    b->s.offering_type = type;
    b->s.offering_shape = shape;
    b->s.reservation_capacity = left;
    b->s.prices = price_of;
    b->s.available = available;
}

static void build_price_order(struct build *b)
{
    uint32_t n = b->s.type_count;
    usd_hour *cheapest = arena_array(b->arena, usd_hour, n);
    uint32_t *order = arena_array(b->arena, uint32_t, n);
    for (uint32_t t = 0; t < n; t++) {
        cheapest[t] = instance_types_lowest(&b->s, t);
        order[t] = t;
    }
    instance_types_sort_by_price(order, n, cheapest);
    b->s.price_cheapest = cheapest;
    b->s.price_order = order;
}

/* --- rows --- */

static bool has_override(const struct offering_draft *o)
{
    return o->capacity_override.count || o->overhead_override.count;
}

static uint64_t resources_hash(uint64_t hash, const struct resources *r)
{
    for (uint32_t i = 0; i < r->count; i++) {
        hash = kv_mix64(hash ^ kv_hash(r->items[i].name.p, r->items[i].name.len));
        hash = kv_mix64(hash + (uint64_t)r->items[i].amount.units);
        hash = kv_mix64(hash + (uint64_t)r->items[i].amount.nano);
    }
    return kv_mix64(hash + r->count);
}

static bool resources_equal(const struct resources *a, const struct resources *b)
{
    bool equal = a->count == b->count;
    for (uint32_t i = 0; equal && i < a->count; i++)
        equal = str_eq(a->items[i].name, b->items[i].name) &&
                quantity_cmp(a->items[i].amount, b->items[i].amount) == 0;
    return equal;
}

struct override_row {
    uint32_t type;
    const struct offering_draft *says;
};
struct override_rows {
    struct override_row *items; /* room for one per offering that has an override */
    uint32_t count;
    struct pool_index index;
};

static uint32_t row_for(struct build *b, struct override_rows *rows, uint32_t type,
                        const struct offering_draft *o)
{
    uint64_t hash =
        resources_hash(resources_hash(type, &o->capacity_override), &o->overhead_override);
    for (uint32_t at = 0, id; (id = pool_index_next(&rows->index, hash, &at)) != POOL_NONE;) {
        const struct override_row *row = &rows->items[id];
        if (row->type == type &&
            resources_equal(&row->says->capacity_override, &o->capacity_override) &&
            resources_equal(&row->says->overhead_override, &o->overhead_override))
            return b->s.type_count + id;
    }
    rows->items[rows->count++] = (struct override_row){ type, o };
    return b->s.type_count + pool_index_add(&rows->index, hash);
}

/* The row of each offering; what overrides say is found in `rows`, type after type. */
static void assign_rows(struct build *b, uint32_t *row, struct override_rows *rows)
{
    struct instance_types *s = &b->s;
    memcpy(row, s->offering_type, s->offering_count * sizeof *row);
    for (uint32_t t = 0; t < s->type_count; t++) {
        const struct instance_type_draft *draft = draft_of(b, t);
        for (uint32_t i = 0; i < draft->offering_count; i++) {
            if (!has_override(&draft->offerings[i]))
                continue;
            row[s->offering_start[t] + i] = row_for(b, rows, t, &draft->offerings[i]);
            bitset_set(&s->overridden, t);
        }
    }
    pool_index_done(&rows->index);
}

static struct override_rows build_rows(struct build *b)
{
    struct instance_types *s = &b->s;
    uint32_t overrides = b->drafts->override_count;
    struct override_rows rows = { .items =
                                      arena_array(b->scratch, struct override_row, overrides) };
    s->overridden = bitset_new(b->arena, s->type_count);
    s->offering_row = s->offering_type; /* the usual case */
    if (overrides) {
        uint32_t *row = arena_array(b->arena, uint32_t, s->offering_count);
        assign_rows(b, row, &rows);
        s->offering_row = row;
    }
    s->row_count = s->type_count + rows.count;
    uint32_t *row_type = arena_array(b->arena, uint32_t, s->row_count);
    for (uint32_t r = 0; r < s->row_count; r++)
        row_type[r] = r < s->type_count ? r : rows.items[r - s->type_count].type;
    s->row_type = row_type;
    return rows;
}

/* --- resources --- */

/* A column while it is written; the snapshot's has the same pointers, to const. What is all zero
 * is not there yet. */
struct cells {
    int64_t *capacity, *maybe_overhead;
};

static uint32_t column_of(struct build *b, struct str resource)
{
    return b->pool->texts.items[pool_text(&b->drafts->pool, resource)].column;
}

static void write_row(struct build *b, const struct cells *cells, uint32_t row,
                      const struct resources *capacity, const struct resources *overhead)
{
    for (uint32_t i = 0; i < capacity->count; i++) {
        const struct resource *r = &capacity->items[i];
        cells[column_of(b, r->name)].capacity[row] = milli_floor(r->amount);
    }
    for (uint32_t i = 0; i < overhead->count; i++) {
        const struct resource *r = &overhead->items[i];
        int64_t *column = cells[column_of(b, r->name)].maybe_overhead;
        if (column)
            column[row] = milli_ceil(r->amount);
    }
}

static void write_rows(struct build *b, const struct override_rows *rows, const struct cells *cells)
{
    const struct instance_types *s = &b->s;
    for (uint32_t t = 0; t < s->type_count; t++)
        write_row(b, cells, t, &draft_of(b, t)->capacity, &draft_of(b, t)->overhead);
    for (uint32_t r = s->type_count; r < s->row_count; r++) {
        const struct override_row *from = &rows->items[r - s->type_count];
        for (uint32_t c = 0; c < s->resource_count; c++) {
            cells[c].capacity[r] = cells[c].capacity[from->type];
            if (cells[c].maybe_overhead)
                cells[c].maybe_overhead[r] = cells[c].maybe_overhead[from->type];
        }
        write_row(b, cells, r, &from->says->capacity_override, &from->says->overhead_override);
    }
}

/* Which rows say their own capacity of a resource: a layer leaves those alone. */
static void note_overrides(struct build *b, const struct override_rows *rows,
                           struct resource_column *columns)
{
    uint32_t first = b->s.type_count;
    size_t word_count = 0;
    for (uint32_t i = 0; i < rows->count; i++) {
        const struct resources *own = &rows->items[i].says->capacity_override;
        for (uint32_t k = 0; k < own->count; k++)
            posting_note(&columns[column_of(b, own->items[k].name)].overrides, first + i);
    }
    for (uint32_t c = 0; c < b->s.resource_count; c++)
        word_count += columns[c].overrides.count;
    uint64_t *words = arena_array(b->arena, uint64_t, word_count);
    for (uint32_t c = 0; c < b->s.resource_count; c++)
        words = posting_place(&columns[c].overrides, words);
    for (uint32_t i = 0; i < rows->count; i++) {
        const struct resources *own = &rows->items[i].says->capacity_override;
        for (uint32_t k = 0; k < own->count; k++)
            posting_add(&columns[column_of(b, own->items[k].name)].overrides, first + i);
    }
}

/* Names of resources in order; each text learns its column. */
static struct resource_column *new_columns(struct build *b)
{
    struct pool *p = &b->drafts->pool;
    for (uint32_t i = 0; i < p->texts.count; i++) {
        struct pool_text *text = &p->texts.items[p->text_order[i]];
        if (text->is_resource)
            text->column = b->s.resource_count++;
    }
    struct resource_column *columns =
        arena_array(b->arena, struct resource_column, b->s.resource_count);
    for (uint32_t i = 0; i < p->texts.count; i++) {
        const struct pool_text *text = &p->texts.items[p->text_order[i]];
        if (!text->is_resource)
            continue;
        struct resource_column *c = &columns[text->column];
        c->name = b->texts[i];
        c->format = text->is_binary ? QUANTITY_BINARY : QUANTITY_DECIMAL;
    }
    return columns;
}

static int build_resources(struct build *b, const struct override_rows *rows, struct err *err)
{
    struct instance_types *s = &b->s;
    struct resource_column *columns = new_columns(b);
    if (build_reserve(b, (uint64_t)s->resource_count * s->row_count, err) < 0)
        return -1;
    struct cells *cells = arena_array(b->scratch, struct cells, s->resource_count);
    for (uint32_t i = 0; i < b->pool->texts.count; i++) {
        const struct pool_text *text = &b->pool->texts.items[i];
        if (!text->is_resource)
            continue;
        struct cells *c = &cells[text->column];
        c->capacity = arena_array(b->arena, int64_t, s->row_count);
        if (text->has_overhead)
            c->maybe_overhead = arena_array(b->arena, int64_t, s->row_count);
    }
    write_rows(b, rows, cells);
    const int64_t *zeros = arena_array(b->arena, int64_t, s->row_count);
    for (uint32_t i = 0; i < s->resource_count; i++) {
        columns[i].capacity = cells[i].capacity;
        columns[i].overhead = cells[i].maybe_overhead ? cells[i].maybe_overhead : zeros;
    }
    note_overrides(b, rows, columns);
    s->zeros = zeros;
    s->resources = columns;
    instance_types_subtract(s, b->arena, columns);
    return 0;
}

/* --- all of it --- */

static int build_columns(struct build *b, struct err *err)
{
    struct instance_types *s = &b->s;
    s->type_count = b->drafts->count;
    s->offering_count = b->drafts->offering_count;
    s->shape_count = (uint32_t)b->pool->shapes.count;
    build_texts(b);
    build_requirements(b);
    build_types(b);
    build_offerings(b);
    build_price_order(b);
    if (build_shape_postings(b, build_shapes(b), err) < 0 || build_labels(b, err) < 0)
        return -1;
    struct override_rows rows = build_rows(b);
    return build_resources(b, &rows, err);
}

int instance_types_build(const struct instance_type_draft *drafts, uint32_t count,
                         struct instance_types_options options, const struct instance_types **out,
                         struct err *err)
{
    struct drafts d;
    struct instance_types_memory *memory = instance_types_memory_new(NULL);
    struct build b = { .drafts = &d,
                       .pool = &d.pool,
                       .arena = &memory->arena,
                       .scratch = &d.scratch,
                       .s = { .memory = memory } };
    int rc = drafts_read(&d, drafts, count, err);
    if (rc == 0)
        rc = build_columns(&b, err);
    drafts_done(&d);
    if (rc < 0)
        instance_types_memory_unref(memory);
    else
        *out = instance_types_publish(&b.s, options);
    return rc;
}

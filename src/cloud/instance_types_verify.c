/* The checksum is of what readers see: contents, never addresses, so that equal snapshots have equal
 * checksums in every run and on every machine of the same byte order.
 */
#include "cloud/instance_types_inner.h"

static void add(uint64_t *sum, const void *p, size_t bytes)
{
    *sum = kv_mix64(*sum + (bytes ? kv_hash(p, bytes) : 0)) + bytes;
}

#define ADD_ARRAY(sum, array, count) add((sum), (array), (count) * sizeof *(array))

static void add_number(uint64_t *sum, uint64_t n)
{
    *sum = kv_mix64(*sum + n) + 1;
}

static void add_text(uint64_t *sum, struct str s)
{
    add(sum, s.p, s.len);
}

static void add_bitset(uint64_t *sum, const struct bitset *bs)
{
    add_number(sum, bs->bit_count);
    ADD_ARRAY(sum, bs->words, bs->words ? BITSET_WORDS(bs->bit_count) : 0);
}

static void add_posting(uint64_t *sum, const struct posting *p)
{
    add_number(sum, p->first);
    ADD_ARRAY(sum, p->words, p->count);
}

static void add_maybe(uint64_t *sum, struct maybe_int n)
{
    add_number(sum, n.set ? (uint64_t)n.value : 0);
    add_number(sum, n.set);
}

static void add_requirement(uint64_t *sum, const struct requirement *r)
{
    add_text(sum, r->key);
    add_number(sum, r->values.count);
    for (uint32_t i = 0; i < r->values.count; i++)
        add_text(sum, r->values.items[i]);
    add_number(sum, r->complement);
    add_maybe(sum, r->gte);
    add_maybe(sum, r->lte);
    add_maybe(sum, r->min_values);
}

static void add_types(uint64_t *sum, const struct instance_types *s)
{
    for (uint32_t t = 0; t < s->type_count; t++)
        add_text(sum, s->names[t]);
    ADD_ARRAY(sum, s->type_requirements_start, (size_t)s->type_count + 1);
    ADD_ARRAY(sum, s->type_requirements, s->type_requirements_start[s->type_count]);
    for (uint32_t i = 0; i < s->requirement_count; i++)
        add_requirement(sum, &s->requirement_pool[i]);
}

static void add_offerings(uint64_t *sum, const struct instance_types *s)
{
    ADD_ARRAY(sum, s->offering_start, (size_t)s->type_count + 1);
    ADD_ARRAY(sum, s->offering_type, s->offering_count);
    ADD_ARRAY(sum, s->offering_row, s->offering_count);
    ADD_ARRAY(sum, s->offering_shape, s->offering_count);
    ADD_ARRAY(sum, s->reservation_capacity, s->offering_count);
    add_bitset(sum, &s->available);
    for (uint32_t t = 0; t < s->type_count; t++)
        ADD_ARRAY(sum, s->prices[t], s->offering_start[t + 1] - s->offering_start[t]);
    ADD_ARRAY(sum, s->price_order, s->type_count);
    ADD_ARRAY(sum, s->price_cheapest, s->type_count);
    add_bitset(sum, &s->priced);
}

static void add_shapes(uint64_t *sum, const struct instance_types *s)
{
    for (uint32_t i = 0; i < s->shape_count; i++) {
        const struct offering_shape *shape = &s->shapes[i];
        for (uint32_t k = 0; k < shape->requirements.count; k++)
            add_requirement(sum, &shape->requirements.items[k]);
        add_text(sum, shape->zone);
        add_text(sum, shape->capacity_type);
        add_text(sum, shape->reservation_id);
        add_number(sum, shape->capacity_type_ix);
        add_number(sum, shape->zone_ix);
        add_posting(sum, &shape->offerings);
        add_posting(sum, &shape->types);
    }
    for (uint32_t i = 0; i < s->zone_count; i++)
        add_text(sum, s->zones[i]);
}

static void add_labels(uint64_t *sum, const struct instance_types *s)
{
    for (uint32_t i = 0; i < s->key_count; i++) {
        const struct label_column *c = &s->labels[i];
        add_text(sum, c->key);
        for (uint32_t v = 0; v < c->value_count; v++) {
            add_text(sum, c->values[v].text);
            add_posting(sum, &c->values[v].types);
        }
        add_bitset(sum, &c->defined);
        add_bitset(sum, &c->absent);
        add_bitset(sum, &c->complement);
        add_bitset(sum, &c->several);
        for (uint32_t n = 0; n < c->number_count; n++) {
            add_number(sum, (uint64_t)c->numbers[n].number);
            add_number(sum, c->numbers[n].value);
        }
    }
}

static void add_resources(uint64_t *sum, const struct instance_types *s)
{
    for (uint32_t i = 0; i < s->resource_count; i++) {
        const struct resource_column *c = &s->resources[i];
        add_text(sum, c->name);
        add_number(sum, c->format);
        ADD_ARRAY(sum, c->capacity, s->row_count);
        ADD_ARRAY(sum, c->overhead, s->row_count);
        ADD_ARRAY(sum, c->allocatable, s->row_count);
        add_posting(sum, &c->overrides);
    }
    ADD_ARRAY(sum, s->row_type, s->row_count);
    add_bitset(sum, &s->overridden);
    add_bitset(sum, &s->overdrawn);
    add_bitset(sum, &s->recapacitied);
}

uint64_t instance_types_checksum(const struct instance_types *s)
{
    const uint32_t counts[] = { s->type_count,     s->offering_count,   s->row_count,
                                s->shape_count,    s->zone_count,       s->key_count,
                                s->resource_count, s->requirement_count };
    uint64_t sum = 0;
    ADD_ARRAY(&sum, counts, KV_COUNT_OF(counts));
    add_types(&sum, s);
    add_offerings(&sum, s);
    add_shapes(&sum, s);
    add_labels(&sum, s);
    add_resources(&sum, s);
    return sum;
}

bool instance_types_verify(const struct instance_types *s)
{
    return instance_types_checksum(s) == s->checksum;
}

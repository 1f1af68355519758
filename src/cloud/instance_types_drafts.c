/* Everything that a draft can have wrong is found here, so that the second half of a build cannot
 * fail but for size. An error names the type and the offering.
 */
#include "cloud/instance_types_drafts.h"

/* --- requirements --- */

static int read_requirement(struct drafts *d, const struct requirement *r, uint32_t hint,
                            uint32_t *id, struct err *err)
{
    size_t before = d->pool.requirements.count;
    *id = pool_requirement(&d->pool, r, hint);
    if (*id < before)
        return 0; /* known, and found good then */
    if (!r->key.len)
        return err_set(err, ERR_INVALID, "a requirement without a key");
    if (!r->complement && (r->gte.set || r->lte.set))
        return err_set(err, ERR_INVALID, "%s: both values and bounds", STR_SHOWN(r->key));
    for (uint32_t i = 1; i < r->values.count; i++) {
        if (str_cmp(r->values.items[i - 1], r->values.items[i]) >= 0)
            return err_set(err, ERR_INVALID, "%s: values are not sorted", STR_SHOWN(r->key));
    }
    return 0;
}

/* The place in the pool of the one value that an offering must have for `key`. */
static int one_value(const struct drafts *d, const struct requirements *set, const uint32_t *ids,
                     const char *key, const char *what, uint32_t *out, struct err *err)
{
    const struct requirement *r = requirements_find(set, str_of(key));
    if (!r)
        return err_set(err, ERR_INVALID, "no %s (%s)", what, key);
    if (r->complement || r->values.count != 1)
        return err_set(err, ERR_INVALID, "%s must have exactly one value (%s)", what, key);
    *out = d->pool.values.items[d->pool.requirements.items[ids[r - set->items]].values];
    if (!r->values.items[0].len)
        return err_set(err, ERR_INVALID, "%s is empty (%s)", what, key);
    return 0;
}

static uint32_t reservation_of(const struct drafts *d, const struct requirements *set,
                               const uint32_t *ids)
{
    for (uint32_t i = 0; i < set->count; i++) {
        const struct requirement *r = &set->items[i];
        if (str_ends(r->key, STR("reservation-id")) && !r->complement && r->values.count == 1)
            return d->pool.values.items[d->pool.requirements.items[ids[i]].values];
    }
    return POOL_NONE;
}

/* Keys are sorted, and each is there once. */
static int check_keys(const struct requirements *set, struct err *err)
{
    for (uint32_t i = 1; i < set->count; i++) {
        if (str_cmp(set->items[i - 1].key, set->items[i].key) >= 0)
            return err_set(err, ERR_INVALID, "requirements are not sorted by key: %s after %s",
                           STR_SHOWN(set->items[i].key), STR_SHOWN(set->items[i - 1].key));
    }
    return 0;
}

#define OFFERING_REQUIREMENTS_MAX 64

static int read_shape(struct drafts *d, const struct requirements *set, uint32_t hint,
                      uint32_t *out, struct err *err)
{
    uint32_t ids[OFFERING_REQUIREMENTS_MAX];
    *out = hint;
    if (pool_is_shape(&d->pool, hint, set))
        return 0;
    if (set->count > OFFERING_REQUIREMENTS_MAX)
        return err_set(err, ERR_INVALID, "%u requirements, at most %d are allowed", set->count,
                       OFFERING_REQUIREMENTS_MAX);
    for (uint32_t i = 0; i < set->count; i++) {
        if (read_requirement(d, &set->items[i], POOL_NONE, &ids[i], err) < 0)
            return -1;
    }
    bool added;
    *out = pool_shape(&d->pool, set, ids, &added);
    if (!added)
        return 0;
    struct pool_shape *shape = &d->pool.shapes.items[*out];
    if (d->pool.shapes.count > INSTANCE_SHAPES_MAX)
        return err_set(err, ERR_INVALID, "more than %d different kinds of offerings",
                       INSTANCE_SHAPES_MAX);
    shape->maybe_reservation = reservation_of(d, set, ids);
    if (check_keys(set, err) < 0 ||
        one_value(d, set, ids, LABEL_ZONE, "zone", &shape->zone, err) < 0 ||
        one_value(d, set, ids, LABEL_CAPACITY_TYPE, "capacity type", &shape->capacity_type, err) <
            0)
        return -1;
    return 0;
}

/* --- resources --- */

static int read_resources(struct drafts *d, const struct resources *r, bool overhead,
                          struct err *err)
{
    for (uint32_t i = 0; i < r->count; i++) {
        const struct resource *item = &r->items[i];
        if (!item->name.len)
            return err_set(err, ERR_INVALID, "a resource without a name");
        if (i > 0 && str_cmp(r->items[i - 1].name, item->name) >= 0)
            return err_set(err, ERR_INVALID, "resources are not sorted by name: %s after %s",
                           STR_SHOWN(item->name), STR_SHOWN(r->items[i - 1].name));
        if (quantity_cmp(item->amount, quantity_of(0)) < 0)
            return err_set(err, ERR_INVALID, "%s: the amount is negative", STR_SHOWN(item->name));
        uint32_t id = pool_text(&d->pool, item->name); /* before its place: texts may move */
        struct pool_text *text = &d->pool.texts.items[id];
        text->is_resource = true;
        text->has_overhead |= overhead && !quantity_is_zero(item->amount);
        text->is_binary |= item->amount.format == QUANTITY_BINARY;
    }
    return 0;
}

/* --- a type --- */

/* What the type before this one had at place `i` of a list that is being filled. */
static uint32_t hint_at(const uint32_t *items, const uint32_t *starts, size_t type, uint32_t i)
{
    if (type == 0 || i >= starts[type] - starts[type - 1])
        return POOL_NONE;
    return items[starts[type - 1] + i];
}

static int read_offering(struct drafts *d, const struct offering_draft *o, uint32_t hint,
                         struct err *err)
{
    uint32_t shape;
    if (read_shape(d, &o->requirements, hint, &shape, err) < 0)
        return -1;
    if (o->price < 0)
        return err_set(err, ERR_INVALID, "the price is negative");
    if (o->reservation_capacity < 0)
        return err_set(err, ERR_INVALID, "the reservation's capacity is negative");
    if (read_resources(d, &o->capacity_override, false, err) < 0)
        return err_wrap(err, "capacity");
    if (read_resources(d, &o->overhead_override, true, err) < 0)
        return err_wrap(err, "overhead");
    d->override_count += o->capacity_override.count || o->overhead_override.count;
    vec_push(&d->shapes, shape);
    return 0;
}

/* What the type's offerings have for a key, as a requirement of the type. */
static struct requirement values_of_offerings(struct drafts *d,
                                              const struct instance_type_draft *draft,
                                              const char *key)
{
    struct str *values = arena_array(&d->scratch, struct str, draft->offering_count);
    for (uint32_t i = 0; i < draft->offering_count; i++)
        values[i] =
            requirements_find(&draft->offerings[i].requirements, str_of(key))->values.items[0];
    uint32_t count = (uint32_t)str_sort_unique(values, draft->offering_count);
    return (struct requirement){ .key = str_of(key), .values = { values, count } };
}

static int add_requirement(struct drafts *d, struct requirement r, struct err *err)
{
    struct requirement *kept = arena_new(&d->scratch, struct requirement);
    *kept = r; /* the pool borrows it */
    uint32_t id;
    if (read_requirement(d, kept, POOL_NONE, &id, err) < 0)
        return -1;
    vec_push(&d->requirements, id);
    return 0;
}

static int fill_in(struct drafts *d, const struct instance_type_draft *draft, struct err *err)
{
    const struct requirements *have = &draft->requirements;
    if (!requirements_find(have, STR(LABEL_INSTANCE_TYPE))) {
        struct str *name = arena_new(&d->scratch, struct str);
        *name = draft->name;
        struct requirement r = { .key = STR(LABEL_INSTANCE_TYPE), .values = { name, 1 } };
        if (add_requirement(d, r, err) < 0)
            return -1;
    }
    static const char *const keys[] = { LABEL_ZONE, LABEL_CAPACITY_TYPE };
    for (size_t i = 0; i < KV_COUNT_OF(keys); i++) {
        if (!requirements_find(have, str_of(keys[i])) &&
            add_requirement(d, values_of_offerings(d, draft, keys[i]), err) < 0)
            return -1;
    }
    return 0;
}

static bool same_key(const struct pool *p, uint32_t a, uint32_t b)
{
    return p->requirements.items[a].key == p->requirements.items[b].key;
}

static int read_type(struct drafts *d, const struct instance_type_draft *draft, struct err *err)
{
    size_t type = d->names.count;
    bool same_keys = true; /* as the type before, whose keys were sorted */
    vec_push(&d->names, pool_text(&d->pool, draft->name));
    for (uint32_t i = 0; i < draft->requirements.count; i++) {
        uint32_t id;
        uint32_t hint = hint_at(d->requirements.items, d->requirements_start.items, type, i);
        if (read_requirement(d, &draft->requirements.items[i], hint, &id, err) < 0)
            return -1;
        vec_push(&d->requirements, id);
        same_keys = same_keys && hint != POOL_NONE && same_key(&d->pool, id, hint);
    }
    if (!same_keys && check_keys(&draft->requirements, err) < 0)
        return -1;
    if (read_resources(d, &draft->capacity, false, err) < 0)
        return err_wrap(err, "capacity");
    if (read_resources(d, &draft->overhead, true, err) < 0)
        return err_wrap(err, "overhead");
    for (uint32_t i = 0; i < draft->offering_count; i++) {
        uint32_t hint = hint_at(d->shapes.items, d->offering_start.items, type, i);
        if (read_offering(d, &draft->offerings[i], hint, err) < 0)
            return err_wrap(err, "offering %u", i);
    }
    return fill_in(d, draft, err);
}

/* --- all of them --- */

static int by_name(const void *a, const void *b, void *ctx)
{
    const struct drafts *d = ctx;
    uint32_t x = d->pool.texts.items[d->names.items[*(const uint32_t *)a]].rank;
    uint32_t y = d->pool.texts.items[d->names.items[*(const uint32_t *)b]].rank;
    return x < y ? -1 : x > y;
}

static int order_by_name(struct drafts *d, struct err *err)
{
    d->order = kv_calloc((size_t)d->count + 1, sizeof *d->order);
    for (uint32_t i = 0; i < d->count; i++)
        d->order[i] = i;
    qsort_r(d->order, d->count, sizeof *d->order, by_name, d);
    for (uint32_t i = 1; i < d->count; i++) {
        if (d->names.items[d->order[i - 1]] == d->names.items[d->order[i]])
            return err_set(err, ERR_INVALID, "two instance types are named %s",
                           STR_SHOWN(d->items[d->order[i]].name));
    }
    return 0;
}

int drafts_read(struct drafts *d, const struct instance_type_draft *items, uint32_t count,
                struct err *err)
{
    *d = (struct drafts){ .items = items, .count = count };
    if (count > INSTANCE_TYPES_MAX)
        return err_set(err, ERR_INVALID, "%u instance types, at most %d are held", count,
                       INSTANCE_TYPES_MAX);
    for (uint32_t i = 0; i < count; i++) {
        const struct instance_type_draft *draft = &items[i];
        vec_push(&d->requirements_start, (uint32_t)d->requirements.count);
        vec_push(&d->offering_start, d->offering_count);
        if (!draft->name.len)
            return err_set(err, ERR_INVALID, "an instance type without a name");
        if (draft->offering_count > INSTANCE_OFFERINGS_MAX - d->offering_count)
            return err_set(err, ERR_INVALID, "more than %d offerings", INSTANCE_OFFERINGS_MAX);
        d->offering_count += draft->offering_count;
        if (read_type(d, draft, err) < 0)
            return err_wrap(err, "instance type %s", STR_SHOWN(draft->name));
    }
    vec_push(&d->requirements_start, (uint32_t)d->requirements.count);
    vec_push(&d->offering_start, d->offering_count);
    pool_rank(&d->pool);
    return order_by_name(d, err);
}

void drafts_done(struct drafts *d)
{
    pool_done(&d->pool);
    arena_done(&d->scratch);
    vec_done(&d->names);
    vec_done(&d->requirements);
    vec_done(&d->requirements_start);
    vec_done(&d->shapes);
    vec_done(&d->offering_start);
    free(d->order);
}

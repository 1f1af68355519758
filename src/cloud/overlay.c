/* Compiling: an overlay's texts are read once, into requirements, a price in ten-trillionths of a
 * dollar and capacities in thousandths. What cannot be read is not an error of the call but of that
 * overlay: it is kept with a text that says what is wrong, and changes nothing.
 *
 * The API server has checked most of this already. It is checked again, because a set may come from
 * files, or from objects that were stored under other rules.
 *
 * Keys and resources that valid overlays name are collected in sorted lists, and overlays refer to
 * them by place: matching keeps one answer per key, applying one column per resource.
 */
#include "cloud/overlay_inner.h"

#include "api/resources.h"
#include "base/map.h"
#include "base/vec.h"

#include <inttypes.h>

/* --- one overlay --- */

/* What the scheduler computes with comes from the cloud and from nothing else. */
static const char *const fixed_resources[] = { "cpu", "memory", "ephemeral-storage", "pods" };

static bool resource_is_fixed(struct str name)
{
    for (size_t i = 0; i < KV_COUNT_OF(fixed_resources); i++) {
        if (str_eqz(name, fixed_resources[i]))
            return true;
    }
    return false;
}

/* Compile functions return 0, or -1 with the problem in `err`. */
static int compile_price(struct overlay *o, struct err *err)
{
    const struct nodeoverlay_spec *spec = &o->object->spec;
    if (spec->price.p && spec->price_adjustment.p)
        return err_set(err, ERR_INVALID,
                       "spec: price and priceAdjustment exclude each other, expected one of them");
    if (spec->price.p) {
        o->pricing = PRICING_ABSOLUTE;
        if (usd_hour_parse(spec->price, &o->price, err) < 0)
            return err_wrap(err, "spec.price");
    } else if (spec->price_adjustment.p) {
        o->pricing = PRICING_ADJUSTMENT;
        if (price_adjustment_parse(spec->price_adjustment, &o->adjustment, err) < 0)
            return err_wrap(err, "spec.priceAdjustment");
        if (!o->adjustment.percent && !o->adjustment.negative &&
            o->adjustment.amount > USD_HOUR_MAX)
            return err_set(err, ERR_INVALID, "spec.priceAdjustment: %s is more than any price",
                           STR_SHOWN(spec->price_adjustment));
    }
    return 0;
}

static int check_capacity(const struct resource *r, struct err *err)
{
    const char *wrong = label_key_problem(r->name); /* resources are named as labels are */
    if (wrong)
        return err_set(err, ERR_INVALID, "spec.capacity: %s %s", STR_SHOWN(r->name), wrong);
    if (resource_is_fixed(r->name))
        return err_set(err, ERR_INVALID, "spec.capacity: %.*s cannot be changed by an overlay",
                       STR_ARG(r->name));
    if (quantity_cmp(r->amount, (struct quantity){ 0 }) < 0)
        return err_set(err, ERR_INVALID, "spec.capacity: %s is negative, expected 0 or more",
                       STR_SHOWN(r->name));
    if (r->amount.units > INT64_MAX / 1000 - 1)
        return err_set(err, ERR_INVALID,
                       "spec.capacity: %s is too large, at most %" PRId64 " is held",
                       STR_SHOWN(r->name), INT64_MAX / 1000 - 1);
    return 0;
}

static int check_expression(const struct expression *e, struct err *err)
{
    const char *wrong = label_key_problem(e->key);
    if (wrong)
        return err_set(err, ERR_INVALID, "key: %s %s", STR_SHOWN(e->key), wrong);
    if ((e->op == OP_IN || e->op == OP_NOT_IN) && e->values.count == 0)
        return err_set(err, ERR_INVALID, "%.*s: %s needs at least one value", STR_ARG(e->key),
                       requirement_op_names[e->op - 1]);
    for (uint32_t i = 0; i < e->values.count; i++) {
        wrong = label_value_problem(e->values.items[i]);
        if (wrong)
            return err_set(err, ERR_INVALID, "%.*s: value %s %s", STR_ARG(e->key),
                           STR_SHOWN(e->values.items[i]), wrong);
    }
    return 0;
}

/* Requirements on one key that leave no value are intersected to "the label is not there", which
 * is not what anybody wrote: such an overlay would match the types without the label. */
static int check_contradictions(const struct nodeoverlay_spec *spec, struct err *err)
{
    AUTO_ARENA scratch = { 0 };
    struct contradictions found =
        requirements_contradictions(&scratch, spec->requirements.items, spec->requirements.count);
    if (found.count == 0)
        return 0;
    const struct contradiction *c = &found.items[0];
    if (c->at == c->with)
        return err_set(err, ERR_INVALID, "spec.requirements[%" PRIu32 "]: nothing can meet %.*s",
                       c->at, STR_ARG(c->key));
    return err_set(err, ERR_INVALID,
                   "spec.requirements[%" PRIu32 "]: %.*s contradicts requirements[%" PRIu32 "]",
                   c->at, STR_ARG(c->key), c->with);
}

static int compile_requirements(struct overlay *o, struct arena *arena, struct err *err)
{
    const struct nodeoverlay_spec *spec = &o->object->spec;
    uint32_t count = spec->requirements.count;
    if (count > REQUIREMENTS_MAX)
        return err_set(err, ERR_INVALID,
                       "spec.requirements: has %" PRIu32 " items, at most %d are allowed", count,
                       REQUIREMENTS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        if (check_expression(&spec->requirements.items[i], err) < 0)
            return err_wrap(err, "spec.requirements[%" PRIu32 "]", i);
    }
    if (requirements_from_expressions(arena, spec->requirements.items, count, &o->requirements,
                                      err) < 0)
        return err_wrap(err, "spec.requirements");
    return check_contradictions(spec, err);
}

/* `names` has the resources of the valid overlays before this one. */
static int compile_capacity(const struct overlay *o, struct str_table *names, struct err *err)
{
    const struct resources *capacity = &o->object->spec.capacity;
    uint32_t more = 0;
    for (uint32_t i = 0; i < capacity->count; i++) {
        if (check_capacity(&capacity->items[i], err) < 0)
            return -1;
        more += !str_table_has(names, capacity->items[i].name);
    }
    if (names->live_count + more > OVERLAY_RESOURCES_MAX)
        return err_set(err, ERR_INVALID,
                       "spec.capacity: with it the overlays name more than %d different resources",
                       OVERLAY_RESOURCES_MAX);
    for (uint32_t i = 0; i < capacity->count; i++)
        str_table_put(names, capacity->items[i].name, NULL);
    return 0;
}

static void compile(struct overlay *o, struct arena *arena, struct str_table *resource_names)
{
    const struct maybe_int weight = o->object->spec.weight;
    struct err err = { 0 };

    o->weight = weight.set ? weight.value : 0;
    o->problem = STR("");
    if (compile_requirements(o, arena, &err) < 0 || compile_price(o, &err) < 0 ||
        compile_capacity(o, resource_names, &err) < 0)
        o->problem = arena_str(arena, str_of(err.text));
}

/* --- the lists of keys and resources --- */

static uint32_t place_of(const struct str *sorted, uint32_t count, struct str s)
{
    uint32_t low = 0, high = count;
    while (low + 1 < high) {
        uint32_t middle = low + (high - low) / 2;
        if (str_cmp(sorted[middle], s) <= 0)
            low = middle;
        else
            high = middle;
    }
    KV_ASSERT(low < count && str_eq(sorted[low], s));
    return low;
}

/* The table's keys, sorted, as strings that live in the arena. */
static struct str_list sorted_names(const struct str_table *names, struct arena *arena)
{
    struct str *out = arena_array(arena, struct str, names->live_count);
    uint32_t count = 0;
    str_table_each(names, it)
        out[count++] = arena_str(arena, it->key);
    return (struct str_list){ out, (uint32_t)str_sort_unique(out, count) };
}

static void link_resources(struct overlay_set *set, struct overlay *items,
                           const struct str_table *resource_names)
{
    struct str_list names = sorted_names(resource_names, &set->arena);
    set->resources = names.items;
    set->resource_count = names.count;
    for (uint32_t i = 0; i < set->count; i++) {
        struct overlay *o = &items[i];
        const struct resources *capacity = &o->object->spec.capacity;
        if (!overlay_is_valid(o) || capacity->count == 0)
            continue;
        struct overlay_capacity *linked =
            arena_array(&set->arena, struct overlay_capacity, capacity->count);
        for (uint32_t k = 0; k < capacity->count; k++)
            linked[k] = (struct overlay_capacity){
                .resource = place_of(names.items, names.count, capacity->items[k].name),
                .milli = milli_floor(capacity->items[k].amount),
            };
        o->capacity = linked;
        o->capacity_count = capacity->count;
    }
}

typedef VEC(struct str) str_vec;

/* All values that requirements list for each key, and whether any has bounds. */
static void collect_values(const struct overlay_set *set, struct overlay_key *keys,
                           struct arena *arena)
{
    str_vec *listed = kv_calloc(set->key_count + 1, sizeof *listed);
    for (uint32_t i = 0; i < set->count; i++) {
        const struct overlay *o = &set->items[i];
        for (uint32_t k = 0; overlay_is_valid(o) && k < o->requirements.count; k++) {
            const struct requirement *r = &o->requirements.items[k];
            struct overlay_key *key = &keys[o->keys[k]];
            key->bounded = key->bounded || r->gte.set || r->lte.set;
            for (uint32_t v = 0; v < r->values.count; v++)
                vec_push(&listed[o->keys[k]], r->values.items[v]);
        }
    }
    for (uint32_t k = 0; k < set->key_count; k++) {
        size_t count = str_sort_unique(listed[k].items, listed[k].count);
        struct str *values = arena_array(arena, struct str, count);
        for (size_t v = 0; v < count; v++)
            values[v] = listed[k].items[v];
        keys[k].values = (struct str_list){ values, (uint32_t)count };
        vec_done(&listed[k]);
    }
    free(listed);
}

static void link_keys(struct overlay_set *set, struct overlay *items)
{
    struct str_table table = { 0 };
    for (uint32_t i = 0; i < set->count; i++) {
        for (uint32_t k = 0; overlay_is_valid(&items[i]) && k < items[i].requirements.count; k++)
            str_table_put(&table, items[i].requirements.items[k].key, NULL);
    }
    struct str_list names = sorted_names(&table, &set->arena);
    str_table_done(&table);

    struct overlay_key *keys = arena_array(&set->arena, struct overlay_key, names.count);
    for (uint32_t k = 0; k < names.count; k++)
        keys[k].key = names.items[k];
    for (uint32_t i = 0; i < set->count; i++) {
        struct overlay *o = &items[i];
        uint32_t *linked = arena_array(&set->arena, uint32_t, o->requirements.count);
        for (uint32_t k = 0; overlay_is_valid(o) && k < o->requirements.count; k++)
            linked[k] = place_of(names.items, names.count, o->requirements.items[k].key);
        o->keys = linked;
    }
    set->keys = keys;
    set->key_count = names.count;
    collect_values(set, keys, &set->arena);
}

/* --- the set --- */

static int order(const void *a, const void *b)
{
    return nodeoverlay_order(((const struct overlay *)a)->object,
                             ((const struct overlay *)b)->object);
}

const struct overlay_set *overlay_set_new(const struct nodeoverlay *const *overlays, uint32_t count,
                                          uint64_t generation)
{
    struct overlay_set *set = kv_calloc(1, sizeof *set);
    struct overlay *items = arena_array(&set->arena, struct overlay, count);
    struct str_table resource_names = { 0 };

    rc_init(&set->rc);
    set->generation = generation;
    set->items = items;
    set->count = count;
    for (uint32_t i = 0; i < count; i++) {
        object_ref(&overlays[i]->object);
        items[i].object = overlays[i];
    }
    qsort(items, count, sizeof *items, order);
    for (uint32_t i = 0; i < count; i++)
        compile(&items[i], &set->arena, &resource_names);
    link_resources(set, items, &resource_names);
    link_keys(set, items);
    str_table_done(&resource_names);
    return set;
}

const struct overlay_set *overlay_set_ref(const struct overlay_set *set)
{
    rc_ref(&set->rc);
    return set;
}

void overlay_set_unref(const struct overlay_set *set)
{
    if (!set || !rc_unref(&set->rc))
        return;
    for (uint32_t i = 0; i < set->count; i++)
        object_unref(&set->items[i].object->object);
    struct overlay_set *ours = (struct overlay_set *)set;
    arena_done(&ours->arena);
    free(ours);
}

uint64_t overlay_set_generation(const struct overlay_set *set)
{
    return set->generation;
}

uint32_t overlay_set_count(const struct overlay_set *set)
{
    return set->count;
}

/* --- what a verdict looks like in the object --- */

struct condition_set *overlay_verdict_conditions(const struct overlay_verdict *verdict,
                                                 struct arena *arena, int64_t now_us)
{
    const struct nodeoverlay *o = verdict->overlay;
    struct condition_set *set =
        conditions_new(arena, &node_overlay_conditions, &o->object.meta, o->status.conditions.items,
                       o->status.conditions.count, now_us);
    switch (verdict->state) {
    case OVERLAY_ACCEPTED:
        conditions_set_true(set, CONDITION_VALIDATION_SUCCEEDED);
        break;
    case OVERLAY_INVALID:
        conditions_set_false(set, CONDITION_VALIDATION_SUCCEEDED, REASON_RUNTIME_VALIDATION,
                             verdict->message);
        break;
    case OVERLAY_CONFLICT:
        conditions_set_false(set, CONDITION_VALIDATION_SUCCEEDED, REASON_CONFLICT,
                             verdict->message);
        break;
    }
    return set;
}

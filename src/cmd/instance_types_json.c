/* `karve instance-types -o json`: complete, whatever the tables leave out. */
#include "cmd/instance_types_inner.h"

#include "api/json_parts.h"
#include "api/resources.h"

static void set_amount(struct json_build *b, json_mut *type, const json_mut *capacity,
                       const char *name)
{
    struct str amount = json_mut_str(json_mut_get(capacity, str_of(name)));
    json_set_str(b, type, name, amount.p ? amount : STR("0"));
}

static void set_price(struct json_build *b, json_mut *o, const char *key, usd_hour price)
{
    json_set(b, o, str_of(key), json_new_double(b, usd_hour_double(price)));
}

static json_mut *json_offering(struct json_build *b, const struct pool_view *view, uint32_t o)
{
    const struct instance_types *types = view->types;
    const struct offering_shape *shape = &types->shapes[types->offering_shape[o]];
    json_mut *offering = json_new_object(b);
    json_set_str(b, offering, "zone", shape->zone);
    json_set_str(b, offering, "capacityType", shape->capacity_type);
    set_price(b, offering, "price", instance_types_price(types, o));
    if (offering_is_priced(types, o))
        set_price(b, offering, "priceBefore", instance_types_price(view->raw, o));
    json_set_bool(b, offering, "available", bitset_test(&types->available, o));
    json_set_bool(b, offering, "allowed", bitset_test(&view->shapes, types->offering_shape[o]));
    if (shape->reservation_id.len) {
        json_set_str(b, offering, "reservationId", shape->reservation_id);
        json_set_i64(b, offering, "reservationCapacity", types->reservation_capacity[o]);
    }
    return offering;
}

/* Labels with one value are what a node will have; of the others it will have one of several. */
static void set_labels(struct json_build *b, json_mut *type, const struct pool_view *view,
                       uint32_t t, struct arena *arena)
{
    struct requirements all = instance_type_requirements(view->types, t, arena);
    struct requirement *open = arena_array(arena, struct requirement, all.count);
    struct requirements rest = { open, 0 };
    json_mut *labels = json_new_object(b);
    for (uint32_t i = 0; i < all.count; i++) {
        const struct requirement *r = &all.items[i];
        if (requirement_operator(r) == OP_IN && r->values.count == 1)
            json_add(labels, json_new_str(b, r->key), json_new_str(b, r->values.items[0]));
        else if (requirement_operator(r) != OP_DOES_NOT_EXIST)
            open[rest.count++] = *r;
    }
    json_set(b, type, STR("labels"), labels);
    json_set(b, type, STR("requirements"), json_requirements(b, &rest, arena));
}

static json_mut *json_type(struct json_build *b, const struct pool_view *view, uint32_t t)
{
    const struct instance_types *types = view->types;
    AUTO_ARENA arena = { 0 };
    struct resources capacity = instance_type_capacity(types, t, &arena);
    struct resources overhead = instance_type_overhead(types, t, &arena);
    struct resources allocatable = instance_type_allocatable(types, t, &arena);
    json_mut *type = json_new_object(b), *offerings = json_new_array(b);
    json_mut *amounts = resources_json(b, &capacity);

    json_set_str(b, type, "name", types->names[t]);
    set_amount(b, type, amounts, "cpu");
    set_amount(b, type, amounts, "memory");
    set_amount(b, type, amounts, "pods");
    uint32_t cheapest = cheapest_offering(view, t, STR(""));
    if (cheapest != INSTANCE_TYPE_NONE)
        json_set(b, type, STR("cheapest"), json_offering(b, view, cheapest));
    json_set(b, type, STR("capacity"), amounts);
    json_set(b, type, STR("overhead"), resources_json(b, &overhead));
    json_set(b, type, STR("allocatable"), resources_json(b, &allocatable));
    if (types->recapacitied.words && bitset_test(&types->recapacitied, t)) {
        struct resources before = instance_type_capacity(view->raw, t, &arena);
        json_set(b, type, STR("capacityBefore"), resources_json(b, &before));
    }
    set_labels(b, type, view, t, &arena);
    for (uint32_t o = types->offering_start[t]; o < types->offering_start[t + 1]; o++)
        json_push(b, offerings, json_offering(b, view, o));
    json_set(b, type, STR("offerings"), offerings);
    return type;
}

static json_mut *json_min_values(struct json_build *b, const struct pool_view *view)
{
    json_mut *array = json_new_array(b);
    for (uint32_t i = 0; i < view->min_values.count; i++) {
        const struct min_values *m = &view->min_values.items[i];
        json_mut *o = json_new_object(b);
        json_set_str(b, o, "key", m->key);
        json_set_i64(b, o, "want", m->want);
        json_set_i64(b, o, "have", m->have);
        json_set_bool(b, o, "met", m->have >= m->want);
        json_push(b, array, o);
    }
    return array;
}

static json_mut *json_excluded(struct json_build *b, const struct pool_view *view)
{
    AUTO_ARENA arena = { 0 };
    json_mut *array = json_new_array(b);
    for (uint32_t t = 0; t < view->types->type_count; t++) {
        if (bitset_test(&view->launchable, t))
            continue;
        struct exclusion why = exclusion_of(view, t, &arena);
        json_mut *o = json_new_object(b);
        json_set_str(b, o, "name", view->types->names[t]);
        json_set_str(b, o, "reason", str_of(why.reason));
        json_set_str(b, o, "detail", why.detail);
        json_push(b, array, o);
    }
    return array;
}

static json_mut *json_pool(struct json_build *b, const struct pool_view *view, enum sort_by sort)
{
    AUTO_ARENA arena = { 0 };
    const struct node_class_ref *ref = &view->pool->spec.template.spec.node_class_ref;
    json_mut *pool = json_new_object(b), *types = json_new_array(b);

    json_set_str(b, pool, "name", view->name);
    if (view->name.len) {
        json_mut *class_ = json_new_object(b);
        json_set_str(b, class_, "group", ref->group);
        json_set_str(b, class_, "kind", ref->kind);
        json_set_str(b, class_, "name", ref->name);
        json_set_bool(b, class_, "found", view->has_class);
        json_set_i64(b, pool, "weight", view->pool->spec.weight.value);
        json_set(b, pool, STR("nodeClass"), class_);
    }
    json_set(b, pool, STR("requirements"), json_requirements(b, &view->wanted, &arena));
    json_set(b, pool, STR("minValues"), json_min_values(b, view));
    uint32_t count;
    const uint32_t *sorted = types_sorted(view, &view->launchable, sort, &arena, &count);
    for (uint32_t i = 0; i < count; i++)
        json_push(b, types, json_type(b, view, sorted[i]));
    json_set(b, pool, STR("instanceTypes"), types);
    json_set(b, pool, STR("excluded"), json_excluded(b, view));
    return pool;
}

static json_mut *json_overlay(struct json_build *b, const struct overlay_verdict *v)
{
    json_mut *o = json_new_object(b);
    json_set_str(b, o, "name", v->overlay->object.meta.name);
    json_set_i64(b, o, "weight", v->overlay->spec.weight.value);
    json_set_str(b, o, "state", str_of(overlay_state_word(v->state)));
    json_set_str(b, o, "message", v->message);
    json_set_i64(b, o, "instanceTypes", v->type_count);
    json_set_i64(b, o, "offerings", v->offering_count);
    return o;
}

static json_mut *json_catalogue(struct json_build *b, const struct listing *l)
{
    json_mut *o = json_new_object(b);
    json_set_str(b, o, "source",
                 l->loaded.catalogue_path ? str_of(l->loaded.catalogue_path) : STR("built-in"));
    if (!l->loaded.catalogue_path)
        json_set_str(b, o, "date", STR(CATALOGUE_DATE));
    return o;
}

void listing_json(const struct listing *l, enum sort_by sort, struct buf *out)
{
    AUTO_JSON_BUILD b = { 0 };
    json_build_init(&b);
    json_mut *root = json_new_object(&b);
    json_mut *pools = json_new_array(&b), *overlays = json_new_array(&b);
    vec_each(&l->pools, struct pool_view, view) {
        if (view->shown)
            json_push(&b, pools, json_pool(&b, view, sort));
    }
    for (uint32_t i = 0; i < l->loaded.evaluation.verdicts.count; i++)
        json_push(&b, overlays, json_overlay(&b, &l->loaded.evaluation.verdicts.items[i]));
    json_set(&b, root, STR("catalogue"), json_catalogue(&b, l));
    json_set(&b, root, STR("nodePools"), pools);
    json_set(&b, root, STR("overlays"), overlays);
    json_write_pretty(root, out);
    buf_addc(out, '\n');
}

#include "api/json_parts.h"

#include "codec/duration.h"

json_mut *json_strings(struct json_build *b, struct str_list list)
{
    json_mut *array = json_new_array(b);
    for (uint32_t i = 0; i < list.count; i++)
        json_push(b, array, json_new_str(b, list.items[i]));
    return array;
}

json_mut *json_labels(struct json_build *b, const struct str_map *labels)
{
    json_mut *o = json_new_object(b);
    for (uint32_t i = 0; i < labels->count; i++)
        json_add(o, json_new_str(b, labels->items[i].key), json_new_str(b, labels->items[i].value));
    return o;
}

json_mut *json_taints(struct json_build *b, const struct taint *taints, uint32_t count)
{
    static const char *const effects[] = {
        [EFFECT_ANY] = "",
        [EFFECT_NO_SCHEDULE] = "NoSchedule",
        [EFFECT_PREFER_NO_SCHEDULE] = "PreferNoSchedule",
        [EFFECT_NO_EXECUTE] = "NoExecute",
    };
    json_mut *array = json_new_array(b);
    for (uint32_t i = 0; i < count; i++) {
        json_mut *o = json_new_object(b);
        json_set_str(b, o, "key", taints[i].key);
        if (taints[i].value.len)
            json_set_str(b, o, "value", taints[i].value);
        json_set_str(b, o, "effect", str_of(effects[taints[i].effect]));
        if (taints[i].time_added_us) {
            char added[TIME_TEXT_MAX];
            time_format(taints[i].time_added_us, added);
            json_set_str(b, o, "timeAdded", str_of(added));
        }
        json_push(b, array, o);
    }
    return array;
}

json_mut *json_expressions(struct json_build *b, const struct expression *items, uint32_t count)
{
    json_mut *array = json_new_array(b);
    for (uint32_t i = 0; i < count; i++) {
        const struct expression *e = &items[i];
        json_mut *o = json_new_object(b);
        json_set_str(b, o, "key", e->key);
        json_set_str(b, o, "operator", str_of(requirement_op_names[e->op - OP_IN]));
        if (e->values.count)
            json_set(b, o, STR("values"), json_strings(b, e->values));
        if (e->min_values.set)
            json_set_i64(b, o, "minValues", e->min_values.value);
        json_push(b, array, o);
    }
    return array;
}

json_mut *json_owner(struct json_build *b, const struct owner_ref *owner)
{
    json_mut *o = json_new_object(b);
    json_set_str(b, o, "apiVersion", owner->api_version);
    json_set_str(b, o, "kind", owner->kind);
    json_set_str(b, o, "name", owner->name);
    json_set_str(b, o, "uid", owner->uid);
    if (owner->controller)
        json_set_bool(b, o, "controller", true);
    if (owner->block_owner_deletion)
        json_set_bool(b, o, "blockOwnerDeletion", true);
    return o;
}

json_mut *json_requirements(struct json_build *b, const struct requirements *set,
                            struct arena *arena)
{
    expression_list list = requirements_to_expressions(arena, set);
    return json_expressions(b, list.items, list.count);
}

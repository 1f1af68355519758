#include "cloud/provider.h"

bool cloud_provider_supports(const struct cloud_provider *p, const struct node_class_ref *ref)
{
    for (uint32_t i = 0; i < p->node_class_count; i++)
        if (str_eq(ref->group, str_of(p->node_classes[i].group)) &&
            str_eq(ref->kind, str_of(p->node_classes[i].kind)))
            return true;
    return false;
}

uint64_t node_class_ref_hash(const struct node_class_ref *ref)
{
    /* Hashed side by side, since this is read on every use of the cache. Each part has a factor of its
     * own: ("ab", "c") and ("a", "bc") differ, and so do ("a", "b") and ("b", "a"). */
    uint64_t group = kv_hash(ref->group.p, ref->group.len);
    uint64_t kind = kv_hash(ref->kind.p, ref->kind.len);
    uint64_t name = kv_hash(ref->name.p, ref->name.len);
    return 3 * group + 5 * kind + 7 * name;
}

struct str_list provider_well_known(struct arena *arena, const struct node_class_ref *ref,
                                    const struct instance_types *types)
{
    struct str *keys = arena_array(arena, struct str, types->key_count);
    for (uint32_t i = 0; i < types->key_count; i++)
        keys[i] = types->labels[i].key;
    struct str_list of_types = { keys, types->key_count };
    return label_rules_extend(arena, label_rules_for(ref->group), of_types).well_known;
}

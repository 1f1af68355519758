/* Questions about claims, pools and nodes that several reconcilers ask. */
#include "control/control_impl.h"

#include "codec/duration.h"

bool control_manages(const struct control *c, const struct node_class_ref *ref)
{
    return cloud_provider_supports(c->options.provider, ref);
}

const struct condition *claim_condition(const struct nodeclaim *claim, struct str type)
{
    return condition_find(claim->status.conditions.items, claim->status.conditions.count, type);
}

bool claim_condition_true(const struct nodeclaim *claim, struct str type)
{
    return condition_status_of(claim_condition(claim, type)) == CONDITION_TRUE;
}

struct condition_set *claim_conditions(const struct control *c, const struct nodeclaim *claim,
                                       struct arena *arena)
{
    return conditions_new(arena, &node_claim_conditions, &claim->object.meta,
                          claim->status.conditions.items, claim->status.conditions.count,
                          control_now_us(c));
}

struct condition_set *pool_conditions(const struct control *c, const struct nodepool *pool,
                                      struct arena *arena)
{
    return conditions_new(arena, &node_pool_conditions, &pool->object.meta,
                          pool->status.conditions.items, pool->status.conditions.count,
                          control_now_us(c));
}

struct str claim_pool_name(const struct nodeclaim *claim)
{
    struct str name = str_map_get(&claim->object.meta.labels, STR(LABEL_NODEPOOL));
    return name.len ? name : STR("");
}

bool object_is_owned_by(const struct object *object, const struct object *owner)
{
    for (uint32_t i = 0; i < object->meta.owners.count; i++) {
        if (str_eq(object->meta.owners.items[i].uid, owner->meta.uid))
            return true;
    }
    return false;
}

const struct object *claim_pool(struct control *c, const struct nodeclaim *claim)
{
    struct str name = claim_pool_name(claim);
    if (!name.len)
        return NULL;
    AUTO_OBJECT pool = cluster_get(c->cluster, &nodepool_kind, STR(""), name);
    return pool && object_is_owned_by(&claim->object, pool) ? take(&pool) : NULL;
}

/* The first of a list, as a reference. */
static const struct object *first_of(struct object_list *list, uint32_t *maybe_count)
{
    const struct object *first = list->count ? object_ref(list->items[0]) : NULL;
    if (maybe_count)
        *maybe_count = (uint32_t)list->count;
    object_list_done(list);
    return first;
}

const struct object *claim_node(struct control *c, const struct nodeclaim *claim, uint32_t *count)
{
    struct object_list nodes;
    cluster_list_by(c->cluster, NODES_BY_PROVIDER_ID, claim->status.provider_id, &nodes);
    return first_of(&nodes, count);
}

const struct object *node_claim(struct control *c, const struct node *node)
{
    struct object_list claims;
    cluster_list_by(c->cluster, CLAIMS_BY_PROVIDER_ID, node->spec.provider_id, &claims);
    return first_of(&claims, NULL);
}

int64_t pool_duration_ns(const struct nodepool *pool, const char *annotation, int64_t dflt_ns)
{
    struct str text = str_map_get(&pool->object.meta.annotations, str_of(annotation));
    int64_t ns;
    struct err err = { 0 };
    if (!text.len || duration_parse(text, &ns, &err) < 0 || ns <= 0)
        return dflt_ns;
    return ns;
}

struct str class_label(struct arena *arena, struct str group, struct str kind)
{
    char *text = arena_alloc(arena, group.len + 1 + kind.len);
    for (size_t i = 0; i < group.len; i++)
        text[i] = char_lower(group.p[i]);
    text[group.len] = '/';
    for (size_t i = 0; i < kind.len; i++)
        text[group.len + 1 + i] = char_lower(kind.p[i]);
    return (struct str){ text, group.len + 1 + kind.len };
}

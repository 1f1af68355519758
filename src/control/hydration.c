/* Hydration: claims and Nodes carry the name of their node class as a label, "GROUP/KIND" in lower
 * case. Those that we made have it from the start; this is for those that somebody else made.
 */
#include "codec/duration.h"
#include "control/controllers.h"

static int hydrate(struct control *c, const struct object *object, const struct node_class_ref *ref,
                   struct err *err)
{
    AUTO_ARENA arena = { 0 };
    AUTO_JSON_BUILD b;
    struct str label = class_label(&arena, ref->group, ref->kind);

    json_build_init(&b);
    if (str_eq(str_map_get(&object->meta.labels, label), ref->name))
        return 0;
    json_mut *root = json_new_object(&b), *metadata = json_mut_object(&b, root, STR("metadata"));
    json_set(&b, json_mut_object(&b, metadata, STR("labels")), label, json_new_str(&b, ref->name));
    return control_patch(c, object, false, false, root, NULL, err);
}

static struct outcome reconcile_claim(struct control *c, struct str key)
{
    AUTO_OBJECT object = cluster_get(c->cluster, &nodeclaim_kind, STR(""), key);
    struct err err = { 0 };
    if (!object || object->meta.deleted_us)
        return outcome_done();
    const struct node_class_ref *ref = &nodeclaim_of(object)->spec.node.node_class_ref;
    if (control_manages(c, ref) && hydrate(c, object, ref, &err) < 0)
        return control_failed(c, &nodeclaim_hydration, key, &err);
    return outcome_done();
}

static struct outcome reconcile_node(struct control *c, struct str key)
{
    AUTO_OBJECT object = cluster_get(c->cluster, &node_kind, STR(""), key);
    struct err err = { 0 };
    if (!object || object->meta.deleted_us)
        return outcome_done();
    AUTO_OBJECT claim = node_claim(c, node_of(object));
    if (!claim)
        return outcome_done();
    const struct node_class_ref *ref = &nodeclaim_of(claim)->spec.node.node_class_ref;
    if (control_manages(c, ref) && hydrate(c, object, ref, &err) < 0)
        return control_failed(c, &node_hydration, key, &err);
    return outcome_done();
}

static bool same_labels(const struct str_map *a, const struct str_map *b)
{
    bool same = a->count == b->count;
    for (uint32_t i = 0; same && i < a->count; i++)
        same = str_eq(a->items[i].key, b->items[i].key) &&
               str_eq(a->items[i].value, b->items[i].value);
    return same;
}

static void on_claim(struct control *c KV_UNUSED, struct queue *q, const struct object *maybe_old,
                     const struct object *maybe_new)
{
    if (maybe_new && (!maybe_old || !same_labels(&maybe_old->meta.labels, &maybe_new->meta.labels)))
        queue_add(q, maybe_new->meta.name);
}

static void on_node(struct control *c KV_UNUSED, struct queue *q, const struct object *maybe_old,
                    const struct object *maybe_new)
{
    if (maybe_new &&
        (!maybe_old || !same_labels(&maybe_old->meta.labels, &maybe_new->meta.labels) ||
         !str_eq(node_of(maybe_old)->spec.provider_id, node_of(maybe_new)->spec.provider_id)))
        queue_add(q, maybe_new->meta.name);
}

/* A claim that learns its providerID may have a Node already. */
static void on_claim_for_node(struct control *c, struct queue *q, const struct object *maybe_old,
                              const struct object *maybe_new)
{
    uint32_t count;
    if (!maybe_new || (maybe_old && str_eq(nodeclaim_of(maybe_old)->status.provider_id,
                                           nodeclaim_of(maybe_new)->status.provider_id)))
        return;
    AUTO_OBJECT node = claim_node(c, nodeclaim_of(maybe_new), &count);
    if (node)
        queue_add(q, node->meta.name);
}

const struct controller nodeclaim_hydration = {
    .name = "nodeclaim.hydration",
    .reconcile = reconcile_claim,
    .triggers = { { &nodeclaim_kind, on_claim } },
};

const struct controller node_hydration = {
    .name = "node.hydration",
    .reconcile = reconcile_node,
    .triggers = { { &node_kind, on_node }, { &nodeclaim_kind, on_claim_for_node } },
};

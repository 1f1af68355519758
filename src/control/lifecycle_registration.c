/* Registration: the Node that has the claim's providerID becomes the claim's.
 *
 * One patch of the Node, under the version that was read, does it all: finalizer and owner, the
 * claim's labels, annotations and taints, the taint karpenter.sh/unregistered away and the label
 * karpenter.sh/registered there. A Node that has been through it is not touched again, though the
 * claim may not say Registered yet: a startup taint that somebody has removed since would come
 * back, and nobody would remove it twice.
 */
#include "api/json_parts.h"
#include "base/vec.h"
#include "control/health.h"
#include "control/lifecycle.h"

static bool is_synced(const struct node *node)
{
    const struct object *object = &node->object;
    return str_eqz(str_map_get(&object->meta.labels, STR(LABEL_REGISTERED)), "true") &&
           object_has_finalizer(object, STR(FINALIZER_TERMINATION)) &&
           !node_taint(node, STR(TAINT_UNREGISTERED), EFFECT_NO_EXECUTE);
}

/* --- the patch --- */

static void put_finalizers(struct json_build *b, json_mut *metadata, const struct meta *meta)
{
    json_mut *list = json_new_array(b);
    for (uint32_t i = 0; i < meta->finalizers.count; i++) {
        if (str_eqz(meta->finalizers.items[i], FINALIZER_TERMINATION))
            return;
        json_push(b, list, json_new_str(b, meta->finalizers.items[i]));
    }
    json_push(b, list, json_new_str(b, STR(FINALIZER_TERMINATION)));
    json_set(b, metadata, STR("finalizers"), list);
}

static void put_owners(struct json_build *b, json_mut *metadata, const struct meta *meta,
                       const struct object *claim)
{
    const struct owner_ref ours = { .api_version = STR("karpenter.sh/v1"),
                                    .kind = STR("NodeClaim"),
                                    .name = claim->meta.name,
                                    .uid = claim->meta.uid,
                                    .block_owner_deletion = true };
    json_mut *list = json_new_array(b);
    for (uint32_t i = 0; i < meta->owners.count; i++) {
        if (str_eq(meta->owners.items[i].uid, ours.uid))
            return;
        json_push(b, list, json_owner(b, &meta->owners.items[i]));
    }
    json_push(b, list, json_owner(b, &ours));
    json_set(b, metadata, STR("ownerReferences"), list);
}

/* A node has each key and effect once; what it has already stays as it is. */
struct taint_list {
    struct taint_set seen;
    VEC(struct taint) items;
};

static void add_taints(struct taint_list *list, const struct taint *taints, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        bool unregistered =
            str_eqz(taints[i].key, TAINT_UNREGISTERED) && taints[i].effect == EFFECT_NO_EXECUTE;
        if (!unregistered && !taint_set_add(&list->seen, &taints[i]))
            vec_push(&list->items, taints[i]);
    }
}

static void put_taints(struct json_build *b, json_mut *root, const struct node *node,
                       const struct claim_node_spec *claim)
{
    struct taint_list list = { 0 };
    add_taints(&list, node->spec.taints.items, node->spec.taints.count);
    if (!str_eqz(str_map_get(&node->object.meta.labels, STR(LABEL_DO_NOT_SYNC_TAINTS)), "true")) {
        add_taints(&list, claim->taints.items, claim->taints.count);
        add_taints(&list, claim->startup_taints.items, claim->startup_taints.count);
    }
    json_set(b, json_mut_object(b, root, STR("spec")), STR("taints"),
             json_taints(b, list.items.items, (uint32_t)list.items.count));
    taint_set_done(&list.seen);
    vec_done(&list.items);
}

static void put_labels(struct json_build *b, json_mut *metadata, const struct meta *node,
                       const struct meta *claim)
{
    life_put_pairs(b, metadata, "labels", &node->labels, &claim->labels, true);
    json_set_str(b, json_mut_object(b, metadata, STR("labels")), LABEL_REGISTERED, STR("true"));
}

static int sync_node(struct life *life, struct err *err)
{
    const struct meta *meta = &life->maybe_node->meta;
    const struct object *written = NULL;
    AUTO_JSON_BUILD b;
    json_build_init(&b);
    json_mut *root = json_new_object(&b), *metadata = json_mut_object(&b, root, STR("metadata"));

    put_finalizers(&b, metadata, meta);
    put_owners(&b, metadata, meta, life->object);
    put_labels(&b, metadata, meta, &life->object->meta);
    life_put_pairs(&b, metadata, "annotations", &meta->annotations, &life->object->meta.annotations,
                   true);
    put_taints(&b, root, node_of(life->maybe_node), &life->claim->spec.node);
    if (control_patch(life->c, life->maybe_node, false, true, root, &written, err) < 0)
        return -1;
    object_unref(life->maybe_node);
    life->maybe_node = written;
    return 0;
}

/* --- the part --- */

/* The taint keeps pods away until the node is known; without it some may be there by now. */
static void warn_if_open(struct life *life)
{
    const struct node *node = node_of(life->maybe_node);
    if (!node_taint(node, STR(TAINT_UNREGISTERED), EFFECT_NO_EXECUTE) &&
        !str_map_get(&node->object.meta.labels, STR(LABEL_REGISTERED)).p)
        recorder_say(life->c->recorder, life->object, true, "UnregisteredTaintMissing",
                     "Missing karpenter.sh/unregistered taint which prevents registration related "
                     "race conditions on Karpenter-managed nodes");
}

int lifecycle_register(struct life *life, struct err *err)
{
    struct object_list nodes;
    /* In the pass that launched it, it has no providerID yet and so no Node: the Node must not be
     * ours before the claim's end can find it. The write that gives it one wakes us again. */
    cluster_list_by(life->c->cluster, NODES_BY_PROVIDER_ID, life->claim->status.provider_id,
                    &nodes);
    size_t count = nodes.count;
    if (count == 1)
        life->maybe_node = object_ref(nodes.items[0]);
    object_list_done(&nodes);
    if (conditions_is_true(life->conditions, CONDITION_REGISTERED))
        return 0;
    if (count > 1) {
        conditions_set_false(life->conditions, CONDITION_REGISTERED, REASON_MULTIPLE_NODES_FOUND,
                             STR("Several nodes have the provider id of this claim"));
        return 0;
    }
    /* To one that is on its way out nothing can be added. */
    if (!life->maybe_node || life->maybe_node->meta.deleted_us) {
        conditions_set_unknown(life->conditions, CONDITION_REGISTERED, REASON_NODE_NOT_FOUND,
                               STR("Node not registered with cluster"));
        return 0;
    }
    if (!is_synced(node_of(life->maybe_node))) {
        warn_if_open(life);
        if (sync_node(life, err) < 0)
            return -1;
    }
    if (health_succeeded(life->c, life->claim, err) < 0)
        return -1;
    life->node_name = life->maybe_node->meta.name;
    conditions_set_true(life->conditions, CONDITION_REGISTERED);
    log_info(life->c->log, "registered", LOG_STR("claim", life->object->meta.name),
             LOG_STR("node", life->node_name));
    return 0;
}

/* The NodeClaim that a launch asks for: what the pool's template says, what the plan decided, and where
 * it came from. It is born with its finalizer, so there is no moment at which it could vanish while an
 * instance of its own is on the way.
 */
#include "control/provisioner.h"

#include "api/hash.h"
#include "api/json_parts.h"
#include "api/resources.h"
#include "codec/duration.h"

static bool any_priced(const struct instance_types *types, const struct plan_launch *launch)
{
    for (uint32_t i = 0; types->priced.words && i < launch->type_count; i++) {
        uint32_t t = launch->types[i];
        for (uint32_t o = types->offering_start[t]; o < types->offering_start[t + 1]; o++) {
            if (bitset_test(&types->priced, o))
                return true;
        }
    }
    return false;
}

static bool any_recapacitied(const struct instance_types *types, const struct plan_launch *launch)
{
    for (uint32_t i = 0; types->recapacitied.words && i < launch->type_count; i++) {
        if (bitset_test(&types->recapacitied, launch->types[i]))
            return true;
    }
    return false;
}

static json_mut *annotations_json(const struct sched_pool *pool, const struct plan_launch *launch,
                                  struct json_build *b)
{
    json_mut *o = json_labels(b, &pool->pool->spec.template.meta.annotations);
    char hash[HASH_TEXT_MAX];
    hash_format(nodepool_hash(pool->pool), hash);
    json_set_str(b, o, ANNOTATION_NODEPOOL_HASH, str_of(hash));
    json_set_str(b, o, ANNOTATION_NODEPOOL_HASH_VERSION, STR(NODEPOOL_HASH_VERSION));
    if (launch->min_values_relaxed)
        json_set_str(b, o, ANNOTATION_MIN_VALUES_RELAXED, STR("true"));
    if (any_priced(pool->types, launch))
        json_set_str(b, o, ANNOTATION_PRICE_OVERLAY, STR("true"));
    if (any_recapacitied(pool->types, launch))
        json_set_str(b, o, ANNOTATION_CAPACITY_OVERLAY, STR("true"));
    return o;
}

static json_mut *labels_json(const struct nodepool *pool, const struct plan_launch *launch,
                             struct json_build *b)
{
    const struct node_class_ref *ref = &pool->spec.template.spec.node_class_ref;
    AUTO_ARENA arena = { 0 };
    json_mut *o = json_labels(b, &launch->labels);
    json_set_str(b, o, LABEL_NODEPOOL, pool->object.meta.name);
    json_set(b, o, class_label(&arena, ref->group, ref->kind), json_new_str(b, ref->name));
    return o;
}

static json_mut *owners_json(const struct nodepool *pool, struct json_build *b)
{
    json_mut *list = json_new_array(b);
    json_push(b, list,
              json_owner(b, &(struct owner_ref){ .api_version = STR("karpenter.sh/v1"),
                                                 .kind = STR("NodePool"),
                                                 .name = pool->object.meta.name,
                                                 .uid = pool->object.meta.uid,
                                                 .block_owner_deletion = true }));
    return list;
}

static json_mut *spec_json(const struct nodepool *pool, const struct plan_launch *launch,
                           struct arena *arena, struct json_build *b)
{
    const struct claim_node_spec *from = &pool->spec.template.spec;
    json_mut *o = json_new_object(b), *ref = json_new_object(b), *resources = json_new_object(b);
    json_set_str(b, ref, "group", from->node_class_ref.group);
    json_set_str(b, ref, "kind", from->node_class_ref.kind);
    json_set_str(b, ref, "name", from->node_class_ref.name);
    json_set(b, o, STR("nodeClassRef"), ref);
    json_set(b, o, STR("requirements"), json_requirements(b, &launch->requirements, arena));
    json_set(b, resources, STR("requests"), resources_json(b, &launch->requests));
    json_set(b, o, STR("resources"), resources);
    if (from->taints.count)
        json_set(b, o, STR("taints"), json_taints(b, from->taints.items, from->taints.count));
    if (from->startup_taints.count)
        json_set(b, o, STR("startupTaints"),
                 json_taints(b, from->startup_taints.items, from->startup_taints.count));
    if (from->expire_after.len)
        json_set_str(b, o, "expireAfter", from->expire_after);
    if (from->termination_grace_period.set) {
        char text[DURATION_TEXT_MAX];
        duration_format(from->termination_grace_period.ns, text);
        json_set_str(b, o, "terminationGracePeriod", str_of(text));
    }
    return o;
}

json_mut *provision_claim_json(const struct provision *p, const struct plan_launch *launch,
                               struct str name, struct json_build *b)
{
    const struct sched_pool *pool = &p->pools[launch->pool];
    AUTO_ARENA arena = { 0 };
    json_mut *root = json_new_object(b), *meta = json_new_object(b);
    json_mut *finalizers = json_new_array(b);
    json_push(b, finalizers, json_new_str(b, STR(FINALIZER_TERMINATION)));
    json_set_str(b, meta, "name", name);
    json_set(b, meta, STR("labels"), labels_json(pool->pool, launch, b));
    json_set(b, meta, STR("annotations"), annotations_json(pool, launch, b));
    json_set(b, meta, STR("ownerReferences"), owners_json(pool->pool, b));
    json_set(b, meta, STR("finalizers"), finalizers);
    json_set(b, root, STR("metadata"), meta);
    json_set(b, root, STR("spec"), spec_json(pool->pool, launch, &arena, b));
    return root;
}

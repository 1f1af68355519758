/* What the reconcilers of NodePools share: which pools are ours, and which a change is about. */
#include "control/pools.h"

#include "api/ec2nodeclass.h"
#include "api/kwoknodeclass.h"

const struct object *pool_managed(struct control *c, struct str name)
{
    AUTO_OBJECT pool = cluster_get(c->cluster, &nodepool_kind, STR(""), name);
    if (!pool || !control_manages(c, &nodepool_of(pool)->spec.template.spec.node_class_ref))
        return NULL;
    return take(&pool);
}

void trigger_pools_of_class(struct control *c, struct queue *q, const struct object *maybe_old,
                            const struct object *maybe_new)
{
    const struct object *class_ = maybe_new ? maybe_new : maybe_old;
    AUTO_ARENA arena = { 0 };
    struct object_list pools;
    const struct node_class_ref ref = { .group = str_of(class_->kind->group),
                                        .kind = str_of(class_->kind->name),
                                        .name = class_->meta.name };
    cluster_list_by(c->cluster, POOLS_BY_CLASS, cluster_class_key(&arena, &ref), &pools);
    for (size_t i = 0; i < pools.count; i++)
        queue_add(q, pools.items[i]->meta.name);
    object_list_done(&pools);
}

void trigger_pool_asked(struct control *c KV_UNUSED, struct queue *q,
                        const struct object *maybe_old, const struct object *maybe_new)
{
    if (!maybe_old || !maybe_new || maybe_old->meta.generation != maybe_new->meta.generation)
        queue_add(q, (maybe_new ? maybe_new : maybe_old)->meta.name);
}

int pool_requirements(struct arena *arena, const struct nodepool *pool, struct requirements *out,
                      struct err *err)
{
    const struct node_template *template = &pool->spec.template;
    struct requirements asked;
    if (requirements_from_expressions(arena, template->spec.requirements.items,
                                      template->spec.requirements.count, &asked, err) < 0)
        return -1;
    struct requirements labels = requirements_from_labels(arena, &template->meta.labels);
    *out = requirements_merge(arena, &asked, &labels);
    return 0;
}

const struct condition *class_condition(const struct object *class_, struct str type)
{
    if (class_->kind == &ec2nodeclass_kind) {
        const struct ec2nodeclass *ec2 = ec2nodeclass_of(class_);
        return condition_find(ec2->status.conditions.items, ec2->status.conditions.count, type);
    }
    const struct kwoknodeclass *kwok = kwoknodeclass_of(class_);
    return condition_find(kwok->status.conditions.items, kwok->status.conditions.count, type);
}

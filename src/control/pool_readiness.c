/* NodeClassReady of a NodePool: what its node class says of itself, carried over.
 *
 * A class that has no condition Ready at all counts as ready. There are clouds in which nobody judges
 * classes (the simulated ones); where somebody does, the condition is there from the first look at
 * the class on, and is Unknown until it is known.
 */
#include "control/controllers.h"

#include "api/ec2nodeclass.h"
#include "api/kwoknodeclass.h"
#include "control/pools.h"

static void carry_over(struct condition_set *set, const struct object *maybe_class)
{
    if (!maybe_class) {
        conditions_set_false(set, CONDITION_NODE_CLASS_READY, REASON_NODE_CLASS_NOT_FOUND,
                             STR("NodeClass not found on cluster"));
        return;
    }
    if (maybe_class->meta.deleted_us) {
        conditions_set_false(set, CONDITION_NODE_CLASS_READY, REASON_NODE_CLASS_TERMINATING,
                             STR("NodeClass is Terminating"));
        return;
    }
    const struct condition *ready = class_condition(maybe_class, CONDITION_READY);
    if (!ready || ready->status == CONDITION_TRUE)
        conditions_set_true(set, CONDITION_NODE_CLASS_READY);
    else if (ready->status == CONDITION_FALSE)
        conditions_set_false(set, CONDITION_NODE_CLASS_READY, ready->reason, ready->message);
    else
        conditions_set_false(set, CONDITION_NODE_CLASS_READY, REASON_NODE_CLASS_READINESS_UNKNOWN,
                             STR("Node Class Readiness Unknown"));
}

void pool_judge_class(struct control *c, const struct nodepool *pool, struct condition_set *set)
{
    AUTO_OBJECT class_ = cluster_get_class(c->cluster, &pool->spec.template.spec.node_class_ref);
    carry_over(set, class_);
}

static struct outcome reconcile(struct control *c, struct str key)
{
    AUTO_ARENA arena = { 0 };
    AUTO_OBJECT object = pool_managed(c, key);
    struct err err = { 0 };
    if (!object)
        return outcome_done();
    const struct nodepool *pool = nodepool_of(object);
    struct condition_set *set = pool_conditions(c, pool, &arena);
    pool_judge_class(c, pool, set);
    if (control_patch_conditions(c, object, set, NULL, &err) < 0)
        return control_failed(c, &nodepool_readiness, key, &err);
    return outcome_done();
}

const struct controller nodepool_readiness = {
    .name = "nodepool.readiness",
    .reconcile = reconcile,
    .triggers = { { &nodepool_kind, trigger_own_name },
                  { &ec2nodeclass_kind, trigger_pools_of_class },
                  { &kwoknodeclass_kind, trigger_pools_of_class } },
};

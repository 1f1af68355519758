/* nodepool.registrationhealth: keeps NodeRegistrationHealthy true to what the pool and its node class
 * are now. Results are written by those who see them (control/health.h); here the condition is made,
 * starts anew after a change, and ages.
 */
#include "api/kinds.h"
#include "control/controllers.h"
#include "control/health.h"
#include "control/pools.h"

static struct outcome reconcile(struct control *c, struct str key)
{
    struct err err = { 0 };
    int64_t due_ns;
    AUTO_OBJECT pool = cluster_get(c->cluster, &nodepool_kind, STR(""), key);
    health_forget(c, key, pool ? pool->meta.uid : STR(""));
    if (!pool)
        return outcome_done();
    if (health_refresh(c, key, &due_ns, &err) < 0)
        return control_failed(c, &nodepool_registration_health, key, &err);
    return due_ns == INT64_MAX ? outcome_done() : outcome_requeue(due_ns);
}

/* The pools of a node class whose spec is another. */
static void on_class(struct control *c, struct queue *q, const struct object *maybe_old,
                     const struct object *maybe_new)
{
    if (maybe_new && (!maybe_old || maybe_old->meta.generation != maybe_new->meta.generation))
        trigger_pools_of_class(c, q, maybe_old, maybe_new);
}

const struct controller nodepool_registration_health = {
    .name = "nodepool.registrationhealth",
    .reconcile = reconcile,
    .triggers = { { &nodepool_kind, trigger_own_name },
                  { &ec2nodeclass_kind, on_class },
                  { &kwoknodeclass_kind, on_class } },
    .threads = 4,
};

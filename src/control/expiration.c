/* Expiration: a claim that has lived for its expireAfter is deleted, whatever runs on it. Budgets
 * do not count, and nothing is launched for it beforehand: the drain, and who waits for a place
 * after it, see to the rest.
 */
#include "codec/duration.h"
#include "control/controllers.h"

static struct outcome reconcile(struct control *c, struct str key)
{
    AUTO_OBJECT object = cluster_get(c->cluster, &nodeclaim_kind, STR(""), key);
    struct err err = { 0 };

    if (!object || object->meta.deleted_us)
        return outcome_done();
    const struct nodeclaim *claim = nodeclaim_of(object);
    struct duration life = nillable_duration(claim->spec.node.expire_after);
    if (life.never || !life.set || !control_manages(c, &claim->spec.node.node_class_ref))
        return outcome_done();
    int64_t left_us = object->meta.created_us + life.ns / 1000 - control_now_us(c);
    if (left_us > 0)
        return outcome_requeue(left_us > INT64_MAX / 1000 ? INT64_MAX : left_us * 1000);
    if (control_remove(c, object, &err) < 0)
        return control_failed(c, &nodeclaim_expiration, key, &err);
    claim_count_disrupted(c, claim, "expired");
    log_info(c->log, "claim expired", LOG_STR("claim", key));
    return outcome_done();
}

/* Its spec never changes: one look at the start is enough. */
static void on_claim(struct control *c KV_UNUSED, struct queue *q, const struct object *maybe_old,
                     const struct object *maybe_new)
{
    if (!maybe_old && maybe_new)
        queue_add(q, maybe_new->meta.name);
}

const struct controller nodeclaim_expiration = {
    .name = "nodeclaim.expiration",
    .reconcile = reconcile,
    .triggers = { { &nodeclaim_kind, on_claim } },
};

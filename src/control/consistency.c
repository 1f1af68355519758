/* Consistency: is the Node as large as the provider said it would be?
 *
 * Looked at when a claim is initialized and every ten minutes from then on. A node that is smaller
 * than expected cannot hold the pods that were planned for it, and the claim's condition and an
 * Event say so; nothing is done about it.
 */
#include "api/resources.h"
#include "codec/duration.h"
#include "control/controllers.h"

#define SCAN_PERIOD_NS (10 * DURATION_MINUTE)
#define SHARE_MIN 0.9

static double amount(struct quantity q)
{
    return (double)q.units + (double)q.nano / 1e9;
}

/* The first resource that was asked for and of which there is too little; absent: none. */
static struct str shortage(const struct nodeclaim *claim, const struct node *node,
                           struct arena *arena)
{
    const struct resources *requests = &claim->spec.resources.requests;
    for (uint32_t i = 0; i < requests->count; i++) {
        struct str name = requests->items[i].name;
        struct quantity want = resources_get(&claim->status.capacity, name);
        struct quantity have = resources_get(&node->status.capacity, name);
        if (quantity_is_zero(requests->items[i].amount) || quantity_is_zero(want))
            continue;
        double share = amount(have) / amount(want);
        if (share >= SHARE_MIN)
            continue;
        char want_text[QUANTITY_TEXT_MAX], have_text[QUANTITY_TEXT_MAX];
        quantity_format(want, want_text);
        quantity_format(have, have_text);
        return arena_strf(arena, "expected %s of resource %.*s, but found %s (%.1f%% of expected)",
                          want_text, STR_ARG(name), have_text, share * 100);
    }
    return STR_NONE;
}

static struct outcome reconcile(struct control *c, struct str key)
{
    AUTO_OBJECT object = cluster_get(c->cluster, &nodeclaim_kind, STR(""), key);
    AUTO_ARENA arena = { 0 };
    struct err err = { 0 };
    uint32_t count;

    if (!object || object->meta.deleted_us)
        return outcome_done();
    const struct nodeclaim *claim = nodeclaim_of(object);
    if (!control_manages(c, &claim->spec.node.node_class_ref) ||
        !claim_condition_true(claim, CONDITION_INITIALIZED))
        return outcome_done();
    AUTO_OBJECT node = claim_node(c, claim, &count);
    if (!node || count != 1) /* not ours to judge */
        return outcome_requeue(SCAN_PERIOD_NS);

    struct condition_set *conditions = claim_conditions(c, claim, &arena);
    struct str words = shortage(claim, node_of(node), &arena);
    if (words.p) {
        recorder_say(c->recorder, object, true, "FailedConsistencyCheck", "%.*s", STR_ARG(words));
        conditions_set_false(conditions, CONDITION_CONSISTENT_STATE_FOUND,
                             REASON_CONSISTENCY_CHECK_FAILED, STR("Consistency Check Failed"));
    } else {
        conditions_set_true(conditions, CONDITION_CONSISTENT_STATE_FOUND);
    }
    if (control_patch_conditions(c, object, conditions, NULL, &err) < 0)
        return control_failed(c, &nodeclaim_consistency, key, &err);
    return outcome_requeue(SCAN_PERIOD_NS);
}

static bool is_initialized(const struct object *claim)
{
    return claim_condition_true(nodeclaim_of(claim), CONDITION_INITIALIZED);
}

static void on_claim(struct control *c KV_UNUSED, struct queue *q, const struct object *maybe_old,
                     const struct object *maybe_new)
{
    if (maybe_new && is_initialized(maybe_new) && (!maybe_old || !is_initialized(maybe_old)))
        queue_add(q, maybe_new->meta.name);
}

const struct controller nodeclaim_consistency = {
    .name = "nodeclaim.consistency",
    .reconcile = reconcile,
    .triggers = { { &nodeclaim_kind, on_claim } },
};

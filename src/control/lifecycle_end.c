/* The end of a claim that is being deleted: its Nodes first (they are drained), then its instance,
 * then the finalizer.
 *
 * Whether the claim says Launched or Registered is not trusted: a process may have died before it
 * wrote that. A Node that carries our finalizer is drained as one that is registered, and the
 * provider is always asked to delete, by providerID or by the claim's UID, and asked until it says
 * that there is nothing.
 */
#include "codec/duration.h"
#include "control/lifecycle.h"

#define INSTANCE_POLL_NS (5 * DURATION_SECOND)

/* When the drain ends, whatever is still running then. Written once: who shortens it is right. */
static int set_deadline(struct life *life, struct err *err)
{
    const struct duration *grace = &life->claim->spec.node.termination_grace_period;
    const struct object *written = NULL;
    AUTO_JSON_BUILD b;
    char text[TIME_TEXT_MAX];

    json_build_init(&b);
    if (!grace->set ||
        str_map_get(&life->object->meta.annotations, STR(ANNOTATION_TERMINATION_TIMESTAMP)).p)
        return 0;
    time_format(life->object->meta.deleted_us + grace->ns / 1000, text);
    json_mut *root = json_new_object(&b), *metadata = json_mut_object(&b, root, STR("metadata"));
    json_set_str(&b, json_mut_object(&b, metadata, STR("annotations")),
                 ANNOTATION_TERMINATION_TIMESTAMP, str_of(text));
    if (control_patch(life->c, life->object, false, true, root, &written, err) < 0)
        return -1;
    life_see(life, written);
    return 0;
}

static int remove_all(struct control *c, const struct object_list *nodes, struct err *err)
{
    for (size_t i = 0; i < nodes->count; i++) {
        if (control_remove(c, nodes->items[i], err) < 0)
            return -1;
    }
    return 0;
}

/* A patch that made the Node ours may have had its effect and no answer: before a machine goes without a
 * drain, it counts what is in the store. */
static int read_afresh(struct life *life, const struct object **node, struct err *err)
{
    AUTO_OBJECT fresh = NULL;
    struct object_ref ref = { &node_kind, STR(""), (*node)->meta.name };
    if (object_has_finalizer(*node, STR(FINALIZER_TERMINATION)))
        return 0;
    if (store_get(life->c->options.store, ref, &fresh, err) < 0)
        return err->kind == ERR_NOT_FOUND ? 0 : -1;
    cluster_assume(life->c->cluster, fresh);
    object_unref(*node);
    *node = take(&fresh);
    return 0;
}

/* 1: they are on their way out, and the last one's going wakes us. */
static int end_nodes(struct life *life, struct err *err)
{
    struct object_list nodes;
    cluster_list_by(life->c->cluster, NODES_BY_PROVIDER_ID, life->claim->status.provider_id,
                    &nodes);
    bool ours = conditions_is_true(life->conditions, CONDITION_REGISTERED);
    int rc = 0;
    for (size_t i = 0; i < nodes.count && rc == 0; i++) {
        rc = read_afresh(life, &nodes.items[i], err);
        ours |= object_has_finalizer(nodes.items[i], STR(FINALIZER_TERMINATION));
    }
    if (rc == 0 && ours && nodes.count)
        rc = remove_all(life->c, &nodes, err) < 0 ? -1 : 1;
    object_list_done(&nodes);
    return rc;
}

/* 1: there is no instance (any more). */
static int end_instance(struct life *life, struct err *err)
{
    const struct cloud_provider *provider = life->c->provider;
    if (provider->delete_(provider->ctx, life->claim, err) < 0)
        return err->kind == ERR_NOT_FOUND ? 1 : -1;
    life_again_after(life, INSTANCE_POLL_NS);
    conditions_set_true(life->conditions, CONDITION_INSTANCE_TERMINATING);
    return control_patch_conditions(life->c, life->object, life->conditions, NULL, err);
}

/* A Node that never registered: without its machine nobody reports for it any more. */
static int remove_leftover_nodes(struct life *life, struct err *err)
{
    struct object_list nodes;
    cluster_list_by(life->c->cluster, NODES_BY_PROVIDER_ID, life->claim->status.provider_id,
                    &nodes);
    int rc = remove_all(life->c, &nodes, err);
    object_list_done(&nodes);
    return rc;
}

static double seconds_since(const struct life *life, int64_t since_us)
{
    int64_t us = control_now_us(life->c) - since_us;
    return us > 0 ? (double)us / 1e6 : 0;
}

static struct str label_or_empty(const struct life *life, const char *key)
{
    struct str value = str_map_get(&life->object->meta.labels, str_of(key));
    return value.p ? value : STR("");
}

static void observe(const struct life *life)
{
    const struct control_metrics *m = &life->c->metrics;
    struct str pool = claim_pool_name(life->claim);
    const struct condition *terminating =
        conditions_get(life->conditions, CONDITION_INSTANCE_TERMINATING);

    if (condition_status_of(terminating) == CONDITION_TRUE)
        metric_observe_in(m->instance_termination_duration,
                          seconds_since(life, terminating->transition_us), pool);
    metric_observe_in(m->nodeclaim_termination_duration,
                      seconds_since(life, life->object->meta.deleted_us), pool);
    metric_count(m->nodeclaims_terminated, pool, label_or_empty(life, LABEL_CAPACITY_TYPE),
                 label_or_empty(life, LABEL_ZONE));
}

int lifecycle_end(struct life *life, struct err *err)
{
    if (set_deadline(life, err) < 0)
        return -1;
    int waiting = end_nodes(life, err);
    if (waiting)
        return waiting < 0 ? -1 : 0;
    int gone = end_instance(life, err);
    if (gone <= 0)
        return gone;
    if (remove_leftover_nodes(life, err) < 0)
        return -1;
    if (control_set_finalizer(life->c, life->object, STR(FINALIZER_TERMINATION), false, NULL, err) <
        0)
        return -1;
    observe(life);
    log_info(life->c->log, "claim ended", LOG_STR("claim", life->object->meta.name));
    return 0;
}

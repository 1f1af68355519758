/* The life of a NodeClaim, from the wish to its end.
 *
 *     created --finalizer--> [Launched] --> [Registered] --> [Initialized]
 *                  |              |              |
 *                  +-- no capacity, class not ready, too late: deleted --> end
 *
 * A process may die between any two calls, so the order of writes is what keeps things whole:
 *
 *  1. The finalizer is there before the first launch, so that no claim goes without its instance.
 *  2. Launching is idempotent by the claim's UID, and the labels that come of it are written before
 *     the status that says Launched: who finds it unsaid launches again, and gets the same instance.
 *  3. The Node is made ours in one patch, then the NodePool is told of the success, then the claim
 *     says Registered: a pass that finds it unsaid does the three again, and each knows that it has
 *     been done.
 *  4. A failure is told to the NodePool before the claim is deleted.
 *  5. The end asks the provider to delete whether or not the claim says that it was launched.
 *
 * A pass is woken by what matters to it: the claim is new, is being deleted or has got its
 * providerID; its Node changed; a timeout of its pool changed. Above all it is not woken by the
 * status that it wrote itself, or a launch that fails in ever other words would be tried without a
 * pause.
 */
#include "control/lifecycle.h"

#include "api/resources.h"
#include "codec/duration.h"
#include "control/controllers.h"

/* --- what the parts share --- */

void life_see(struct life *life, const struct object *claim)
{
    object_unref(life->object);
    life->object = claim;
    life->claim = nodeclaim_of(claim);
    life->conditions = claim_conditions(life->c, life->claim, &life->arena);
}

int life_remove(struct life *life, const char *reason, struct err *err)
{
    if (control_remove(life->c, life->object, err) < 0)
        return -1;
    claim_count_disrupted(life->c, life->claim, reason);
    log_info(life->c->log, "claim deleted", LOG_STR("claim", life->object->meta.name),
             LOG_Z("reason", reason));
    life->removed = true;
    return 0;
}

void life_again_after(struct life *life, int64_t after_ns)
{
    life->next = outcome_sooner(life->next, outcome_requeue(after_ns > 0 ? after_ns : 0));
}

bool life_put_pairs(struct json_build *b, json_mut *into, const char *field,
                    const struct str_map *have, const struct str_map *want, bool overwrite)
{
    json_mut *pairs = json_new_object(b);
    for (uint32_t i = 0; i < want->count; i++) {
        struct str now = str_map_get(have, want->items[i].key);
        if (!now.p || (overwrite && !str_eq(now, want->items[i].value)))
            json_set(b, pairs, want->items[i].key, json_new_str(b, want->items[i].value));
    }
    if (!json_mut_count(pairs))
        return false;
    json_set(b, into, str_of(field), pairs);
    return true;
}

/* --- one pass --- */

static void life_done(struct life *life)
{
    object_unref(life->object);
    object_unref(life->maybe_pool);
    object_unref(life->maybe_node);
    arena_done(&life->arena);
}

/* The conditions replace what is there, and others write conditions too: only if nobody has. */
static int write_status(struct life *life, struct err *err)
{
    AUTO_JSON_BUILD b;
    AUTO_OBJECT written = NULL;
    json_build_init(&b);
    json_mut *root = json_new_object(&b), *status = json_mut_object(&b, root, STR("status"));
    const struct instance *launched = life->maybe_launched;

    if (launched) {
        json_set_str(&b, status, "providerID", launched->provider_id);
        if (launched->image_id.len)
            json_set_str(&b, status, "imageID", launched->image_id);
        json_set(&b, status, STR("capacity"), resources_json(&b, &launched->capacity));
        json_set(&b, status, STR("allocatable"), resources_json(&b, &launched->allocatable));
    }
    if (life->node_name.p && !str_eq(life->node_name, life->claim->status.node_name))
        json_set_str(&b, status, "nodeName", life->node_name);
    if (conditions_changed(life->conditions))
        json_set(&b, status, STR("conditions"), conditions_json(life->conditions, &b));
    if (!json_mut_count(status))
        return 0;
    return control_patch(life->c, life->object, true, true, root, &written, err);
}

static bool is_registered(const struct life *life)
{
    return conditions_is_true(life->conditions, CONDITION_REGISTERED);
}

static void count_registered(const struct life *life)
{
    struct str zone = str_map_get(&life->object->meta.labels, STR(LABEL_ZONE));
    metric_count(life->c->metrics.nodes_created, claim_pool_name(life->claim),
                 zone.p ? zone : STR(""));
}

static int advance(struct life *life, struct err *err)
{
    if (lifecycle_launch(life, err) < 0 || life->removed)
        return life->removed ? 0 : -1;
    if (lifecycle_register(life, err) < 0)
        return -1;
    return lifecycle_initialize(life, err);
}

/* What was found out is written whatever failed after it, and time passes whatever fails. */
static int live(struct life *life, struct err *err)
{
    const struct object *held = NULL;
    if (control_set_finalizer(life->c, life->object, STR(FINALIZER_TERMINATION), true, &held, err) <
        0)
        return -1;
    life_see(life, held);
    bool was_registered = is_registered(life);
    struct err late = { 0 };

    int rc = advance(life, err);
    if (!life->removed && lifecycle_liveness(life, &late) < 0 && rc == 0) {
        *err = late;
        rc = -1;
    }
    if (life->removed)
        return 0;
    if (write_status(life, &late) < 0) {
        *err = late;
        return -1;
    }
    if (!was_registered && is_registered(life))
        count_registered(life);
    return rc;
}

static struct outcome reconcile(struct control *c, struct str key)
{
    const struct object *object = cluster_get(c->cluster, &nodeclaim_kind, STR(""), key);
    struct err err = { 0 };
    if (!object)
        return outcome_done();
    struct life life = { .c = c, .next = outcome_done() };
    life_see(&life, object);
    int rc = 0;
    if (control_manages(c, &life.claim->spec.node.node_class_ref)) {
        life.maybe_pool = claim_pool(c, life.claim);
        if (!object->meta.deleted_us)
            rc = live(&life, &err);
        else if (object_has_finalizer(object, STR(FINALIZER_TERMINATION)))
            rc = lifecycle_end(&life, &err);
    }
    struct outcome outcome =
        rc < 0 ? control_failed(c, &nodeclaim_lifecycle, key, &err) : life.next;
    life_done(&life);
    return outcome;
}

/* --- what wakes it --- */

static void on_claim(struct control *c KV_UNUSED, struct queue *q, const struct object *maybe_old,
                     const struct object *maybe_new)
{
    if (!maybe_new)
        return;
    if (!maybe_old || maybe_old->meta.deleted_us != maybe_new->meta.deleted_us ||
        !str_eq(nodeclaim_of(maybe_old)->status.provider_id,
                nodeclaim_of(maybe_new)->status.provider_id))
        queue_add(q, maybe_new->meta.name);
}

/* A Node whose claim is as far as it gets is of no interest until one of them goes. */
static void on_node(struct control *c, struct queue *q, const struct object *maybe_old,
                    const struct object *maybe_new)
{
    struct object_list claims;
    const struct node *node = node_of(maybe_new ? maybe_new : maybe_old);
    cluster_list_by(c->cluster, CLAIMS_BY_PROVIDER_ID, node->spec.provider_id, &claims);
    for (size_t i = 0; i < claims.count; i++) {
        const struct object *claim = claims.items[i];
        if (!maybe_new || claim->meta.deleted_us ||
            !claim_condition_true(nodeclaim_of(claim), CONDITION_INITIALIZED))
            queue_add(q, claim->meta.name);
    }
    object_list_done(&claims);
}

/* Timeouts are annotations of the pool. */
static void on_pool(struct control *c, struct queue *q, const struct object *maybe_old,
                    const struct object *maybe_new)
{
    static const char *const timeouts[] = { ANNOTATION_LAUNCH_TIMEOUT,
                                            ANNOTATION_REGISTRATION_TIMEOUT,
                                            ANNOTATION_INITIALIZATION_TIMEOUT };
    bool differs = false;
    for (size_t i = 0; maybe_old && maybe_new && i < KV_COUNT_OF(timeouts); i++)
        differs |= !str_eq(str_map_get(&maybe_old->meta.annotations, str_of(timeouts[i])),
                           str_map_get(&maybe_new->meta.annotations, str_of(timeouts[i])));
    if (!differs)
        return;
    struct object_list claims;
    cluster_list_by(c->cluster, CLAIMS_BY_POOL, maybe_new->meta.name, &claims);
    for (size_t i = 0; i < claims.count; i++) {
        if (!claim_condition_true(nodeclaim_of(claims.items[i]), CONDITION_INITIALIZED))
            queue_add(q, claims.items[i]->meta.name);
    }
    object_list_done(&claims);
}

const struct controller nodeclaim_lifecycle = {
    .name = "nodeclaim.lifecycle",
    .reconcile = reconcile,
    .triggers = { { &nodeclaim_kind, on_claim },
                  { &node_kind, on_node },
                  { &nodepool_kind, on_pool } },
    .threads = 16, /* launches wait for the cloud */
    .backoff_min_ns = DURATION_SECOND,
    .backoff_max_ns = DURATION_MINUTE,
};

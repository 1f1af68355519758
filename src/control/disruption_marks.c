/* The marks by which disruption chooses: Drifted (the claim is no longer what its pool and class
 * ask for) and Consolidatable (nothing has come or gone for a while). They are on the claim or not
 * there; neither is ever False.
 *
 * Drifted, the first that applies:
 *  1. NodePoolDrifted: the pool's hash is another than the one that the claim was made from;
 *  2. RequirementsDrifted: its labels are not within the pool's requirements any more;
 *  3. InstanceTypeNotFound: its type, or its offering of it, does not exist any more. Asked once it
 *     is an hour old, and not within half an hour of a look that found it;
 *  4. what the provider says.
 */
#include "control/disruption_marks.h"

#include "api/kinds.h"
#include "api/requirements.h"
#include "base/map.h"
#include "codec/duration.h"
#include "control/controllers.h"

#define RECHECK_NS (5 * DURATION_MINUTE)
#define TYPE_AGE_US ((int64_t)3600 * 1000000)
#define TYPE_CHECK_NS (30 * DURATION_MINUTE)
#define RESERVATION_LABELS "karpenter.k8s.aws/capacity-reservation-"

struct disruption_marks {
    pthread_mutex_t lock;   /* of the table; nothing is asked inside */
    struct str_table found; /* by claim: until when (mono_ns) its type need not be looked for */
};

struct disruption_marks *disruption_marks_new(void)
{
    struct disruption_marks *marks = kv_calloc(1, sizeof *marks);
    pthread_mutex_init(&marks->lock, NULL);
    return marks;
}

void disruption_marks_free(struct disruption_marks *marks)
{
    if (!marks)
        return;
    str_table_done(&marks->found);
    pthread_mutex_destroy(&marks->lock);
    free(marks);
}

static bool was_found(struct control *c, struct str claim)
{
    pthread_mutex_lock(&c->marks->lock);
    int64_t until = (int64_t)(uintptr_t)str_table_get(&c->marks->found, claim);
    pthread_mutex_unlock(&c->marks->lock);
    return control_now_ns(c) < until;
}

static void remember_found(struct control *c, struct str claim)
{
    uintptr_t until = (uintptr_t)(control_now_ns(c) + TYPE_CHECK_NS);
    pthread_mutex_lock(&c->marks->lock);
    str_table_put(&c->marks->found, claim, (void *)until);
    pthread_mutex_unlock(&c->marks->lock);
}

static void forget_found(struct control *c, struct str claim)
{
    pthread_mutex_lock(&c->marks->lock);
    str_table_remove(&c->marks->found, claim);
    pthread_mutex_unlock(&c->marks->lock);
}

/* --- Drifted --- */

static bool is_pool_drifted(const struct nodeclaim *claim, const struct nodepool *pool)
{
    const struct str_map *ours = &claim->object.meta.annotations;
    const struct str_map *theirs = &pool->object.meta.annotations;
    struct str hash = str_map_get(ours, STR(ANNOTATION_NODEPOOL_HASH));
    struct str version = str_map_get(ours, STR(ANNOTATION_NODEPOOL_HASH_VERSION));
    struct str pool_hash = str_map_get(theirs, STR(ANNOTATION_NODEPOOL_HASH));
    struct str pool_version = str_map_get(theirs, STR(ANNOTATION_NODEPOOL_HASH_VERSION));
    return hash.p && version.p && pool_hash.p && pool_version.p && str_eq(version, pool_version) &&
           !str_eq(hash, pool_hash);
}

static bool are_requirements_drifted(const struct nodeclaim *claim, const struct nodepool *pool,
                                     struct arena *arena)
{
    const struct claim_node_spec *spec = &pool->spec.template.spec;
    struct requirements asked, has;
    struct err err = { 0 };
    if (requirements_from_expressions(arena, spec->requirements.items, spec->requirements.count,
                                      &asked, &err) < 0)
        return false; /* the pool makes no sense, which is no fault of its nodes */
    has = requirements_from_labels(arena, &claim->object.meta.labels);
    return !requirements_compatible(&has, &asked, (struct str_list){ 0 }, NULL);
}

/* What its offering must agree with. A reservation that ended left an on-demand instance. */
static struct requirements offering_of(const struct nodeclaim *claim, struct arena *arena)
{
    const struct str_map *labels = &claim->object.meta.labels;
    bool reserved = str_eqz(str_map_get(labels, STR(LABEL_CAPACITY_TYPE)), CAPACITY_RESERVED);
    struct str_pair *kept = arena_array(arena, struct str_pair, labels->count + 1);
    uint32_t count = 0;
    for (uint32_t i = 0; i < labels->count; i++) {
        bool dropped = reserved && (str_eqz(labels->items[i].key, LABEL_CAPACITY_TYPE) ||
                                    str_starts(labels->items[i].key, STR(RESERVATION_LABELS)));
        if (!dropped)
            kept[count++] = labels->items[i];
    }
    struct requirements set = requirements_from_labels(arena, &(struct str_map){ kept, count });
    if (!reserved)
        return set;
    struct str either[] = { STR(CAPACITY_ON_DEMAND), STR(CAPACITY_RESERVED) };
    struct requirement type = requirement_in(arena, STR(LABEL_CAPACITY_TYPE),
                                             (struct str_list){ either, KV_COUNT_OF(either) });
    return requirements_add(arena, &set, &type);
}

static bool is_offered(const struct instance_types *types, const struct nodeclaim *claim,
                       struct arena *arena)
{
    struct str name = str_map_get(&claim->object.meta.labels, STR(LABEL_INSTANCE_TYPE));
    uint32_t type = instance_types_find(types, name.p ? name : STR(""));
    if (type == INSTANCE_TYPE_NONE)
        return false;
    struct requirements set = offering_of(claim, arena);
    struct bitset shapes = bitset_new(arena, types->shape_count);
    instance_types_shapes(types, &set, &shapes);
    for (uint32_t o = types->offering_start[type]; o < types->offering_start[type + 1]; o++) {
        if (bitset_test(&shapes, types->offering_shape[o]))
            return true;
    }
    return false;
}

static int is_type_missing(struct control *c, const struct nodeclaim *claim,
                           const struct nodepool *pool, struct arena *arena, bool *missing,
                           struct err *err)
{
    AUTO_INSTANCE_TYPES types = NULL;
    struct str name = claim->object.meta.name;

    *missing = false;
    if (control_now_us(c) - claim->object.meta.created_us < TYPE_AGE_US || was_found(c, name))
        return 0;
    if (c->provider->get_instance_types(c->provider->ctx, pool, &types, err) < 0)
        return -1;
    *missing = !is_offered(types, claim, arena);
    if (!*missing)
        remember_found(c, name);
    return 0;
}

/* *reason is "" if the claim is as it should be. */
static int drift_reason(struct control *c, const struct nodeclaim *claim,
                        const struct nodepool *pool, struct arena *arena, struct str *reason,
                        struct err *err)
{
    const char *said = "";
    bool missing;
    *reason = STR("");
    if (is_pool_drifted(claim, pool)) {
        *reason = REASON_NODE_POOL_DRIFTED;
        return 0;
    }
    if (are_requirements_drifted(claim, pool, arena)) {
        *reason = REASON_REQUIREMENTS_DRIFTED;
        return 0;
    }
    if (is_type_missing(c, claim, pool, arena, &missing, err) < 0)
        return err_wrap(err, "instance types");
    if (missing) {
        *reason = REASON_INSTANCE_TYPE_NOT_FOUND;
        return 0;
    }
    if (c->provider->is_drifted(c->provider->ctx, claim, &said, err) < 0) {
        if (err->kind != ERR_NOT_FOUND) /* without an instance there is nothing to be drifted */
            return err_wrap(err, "drift");
        said = "";
    }
    *reason = arena_str(arena, str_of(said));
    return 0;
}

/* On failure the mark stays as it is. */
static int mark_drifted(struct control *c, const struct nodeclaim *claim,
                        const struct nodepool *pool, struct condition_set *conditions,
                        struct arena *arena, struct err *err)
{
    struct str reason;
    if (drift_reason(c, claim, pool, arena, &reason, err) < 0)
        return -1;
    if (reason.len)
        conditions_set(conditions, CONDITION_DRIFTED, CONDITION_TRUE, reason, reason);
    else if (conditions_get(conditions, CONDITION_DRIFTED))
        conditions_clear(conditions, CONDITION_DRIFTED);
    return 0;
}

/* --- Consolidatable --- */

/* After how long to look again; INT64_MAX: something has to happen first. */
static int64_t mark_consolidatable(struct control *c, const struct nodeclaim *claim,
                                   const struct nodepool *pool, struct condition_set *conditions)
{
    struct duration after = nillable_duration(pool->spec.disruption.consolidate_after);
    const struct condition *initialized = conditions_get(conditions, CONDITION_INITIALIZED);
    int64_t left_us = INT64_MAX;

    if (!after.never && condition_status_of(initialized) == CONDITION_TRUE) {
        int64_t since = claim->status.last_pod_event_us ? claim->status.last_pod_event_us
                                                        : initialized->transition_us;
        left_us = since + after.ns / 1000 - control_now_us(c);
    }
    if (left_us <= 0) {
        conditions_set_true(conditions, CONDITION_CONSOLIDATABLE);
        return INT64_MAX;
    }
    if (conditions_get(conditions, CONDITION_CONSOLIDATABLE))
        conditions_clear(conditions, CONDITION_CONSOLIDATABLE);
    return left_us < INT64_MAX / 1000 ? left_us * 1000 : INT64_MAX;
}

/* --- the pass --- */

static struct outcome reconcile(struct control *c, struct str key)
{
    AUTO_OBJECT object = cluster_get(c->cluster, &nodeclaim_kind, STR(""), key);
    AUTO_ARENA arena = { 0 };
    struct err err = { 0 }, unwritten = { 0 };

    if (!object || object->meta.deleted_us) {
        forget_found(c, key);
        return outcome_done();
    }
    const struct nodeclaim *claim = nodeclaim_of(object);
    if (!claim_condition_true(claim, CONDITION_LAUNCHED))
        return outcome_done();
    AUTO_OBJECT pool_object = claim_pool(c, claim);
    if (!pool_object || !control_manages(c, &claim->spec.node.node_class_ref))
        return outcome_done();
    const struct nodepool *pool = nodepool_of(pool_object);
    struct condition_set *conditions = claim_conditions(c, claim, &arena);

    int rc = mark_drifted(c, claim, pool, conditions, &arena, &err);
    int64_t again_ns = mark_consolidatable(c, claim, pool, conditions);
    if (control_patch_conditions(c, object, conditions, NULL, &unwritten) < 0)
        return control_failed(c, &nodeclaim_disruption, key, &unwritten);
    if (rc < 0) {
        err.kind = ERR_UNAVAILABLE; /* the provider's trouble, whatever it is: people are told */
        return control_failed(c, &nodeclaim_disruption, key, &err);
    }
    return outcome_requeue(again_ns < RECHECK_NS ? again_ns : RECHECK_NS);
}

/* --- what wakes it --- */

static void add_all(struct queue *q, struct object_list *claims)
{
    for (size_t i = 0; i < claims->count; i++)
        queue_add(q, claims->items[i]->meta.name);
    object_list_done(claims);
}

/* Its status changes every few seconds; what the marks follow from does not. */
static void on_pool(struct control *c, struct queue *q, const struct object *maybe_old,
                    const struct object *maybe_new)
{
    struct object_list claims;
    struct str hash = STR(ANNOTATION_NODEPOOL_HASH),
               version = STR(ANNOTATION_NODEPOOL_HASH_VERSION);
    if (!maybe_new)
        return;
    if (maybe_old && maybe_old->meta.generation == maybe_new->meta.generation &&
        str_eq(str_map_get(&maybe_old->meta.annotations, hash),
               str_map_get(&maybe_new->meta.annotations, hash)) &&
        str_eq(str_map_get(&maybe_old->meta.annotations, version),
               str_map_get(&maybe_new->meta.annotations, version)))
        return;
    cluster_list_by(c->cluster, CLAIMS_BY_POOL, maybe_new->meta.name, &claims);
    add_all(q, &claims);
}

static void on_class(struct control *c, struct queue *q, const struct object *maybe_old,
                     const struct object *maybe_new)
{
    AUTO_ARENA arena = { 0 };
    struct object_list claims;
    const struct object *class_ = maybe_new ? maybe_new : maybe_old;
    struct node_class_ref ref = { str_of(class_->kind->group), str_of(class_->kind->name),
                                  class_->meta.name };
    cluster_list_by(c->cluster, CLAIMS_BY_CLASS, cluster_class_key(&arena, &ref), &claims);
    add_all(q, &claims);
}

const struct controller nodeclaim_disruption = {
    .name = "nodeclaim.disruption",
    .reconcile = reconcile,
    .triggers = { { &nodeclaim_kind, trigger_own_name },
                  { &nodepool_kind, on_pool },
                  { &kwoknodeclass_kind, on_class },
                  { &ec2nodeclass_kind, on_class } },
    .threads = 4, /* drift is asked of the cloud */
};

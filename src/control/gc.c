/* Garbage collection, both ways: claims whose instance is gone, and instances whose claim is.
 *
 * The claims are read before the provider is asked: what a claim says was launched then must be in
 * an answer that is younger. The other way round an instance may be younger than what we have
 * read, so only those that have been there for a minute count, and the store itself is asked
 * before one is taken down: a copy that lags behind must not cost a running machine.
 */
#include "base/map.h"
#include "codec/duration.h"
#include "control/controllers.h"

#define GC_PERIOD_NS (2 * DURATION_MINUTE)
#define GC_AGE_US ((int64_t)60 * 1000000)

struct gc {
    struct control *c;
    struct arena arena;
    struct object_list claims;
    struct instances instances;
    struct str_table by_provider_id; /* struct nodeclaim, of `claims` */
    struct str_table by_name;
    bool launching;     /* some claim has no providerID yet */
    struct err trouble; /* the first; the others go on */
};

static void note(struct gc *gc, const struct err *err)
{
    if (!gc->trouble.kind)
        gc->trouble = *err;
}

static int64_t age_us(const struct gc *gc, int64_t since_us)
{
    return control_now_us(gc->c) - since_us;
}

/* --- claims without an instance --- */

static const struct instance *find_instance(const struct gc *gc, struct str provider_id)
{
    size_t low = 0, high = gc->instances.count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = str_cmp(gc->instances.items[mid].provider_id, provider_id);
        if (order == 0)
            return &gc->instances.items[mid];
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

/* A list may lag or be cut short: the instance itself is asked for too. */
static bool is_gone(struct gc *gc, const struct nodeclaim *claim)
{
    const struct cloud_provider *provider = gc->c->provider;
    const struct instance *listed = find_instance(gc, claim->status.provider_id);
    struct instance found;
    struct err err = { 0 };

    if (listed)
        return listed->terminating;
    if (provider->get(provider->ctx, claim->status.provider_id, &gc->arena, &found, &err) == 0)
        return found.terminating;
    if (err.kind == ERR_NOT_FOUND)
        return true;
    note(gc, &err);
    return false;
}

/* A Node that reports is a machine that runs, whatever the provider says. */
static bool has_ready_node(struct gc *gc, const struct nodeclaim *claim)
{
    uint32_t count;
    AUTO_OBJECT node = claim_node(gc->c, claim, &count);
    return node && node_is_ready(node_of(node));
}

static void collect_claim(struct gc *gc, const struct nodeclaim *claim)
{
    const struct condition *launched = claim_condition(claim, CONDITION_LAUNCHED);
    struct err err = { 0 };

    if (claim->object.meta.deleted_us || !claim->status.provider_id.len ||
        condition_status_of(launched) != CONDITION_TRUE ||
        (!claim_condition_true(claim, CONDITION_REGISTERED) &&
         age_us(gc, launched->transition_us) < GC_AGE_US))
        return;
    if (!is_gone(gc, claim) || has_ready_node(gc, claim))
        return;
    if (control_remove(gc->c, &claim->object, &err) < 0) {
        note(gc, &err);
        return;
    }
    claim_count_disrupted(gc->c, claim, "garbage_collected");
    log_info(gc->c->log, "claim without instance deleted",
             LOG_STR("claim", claim->object.meta.name),
             LOG_STR("provider-id", claim->status.provider_id));
}

/* --- instances without a claim --- */

/* Is it the claim's instance, or may it become so? */
static bool is_of(const struct instance *instance, const struct nodeclaim *claim)
{
    return !claim->status.provider_id.len ||
           str_eq(claim->status.provider_id, instance->provider_id);
}

static bool is_orphan(struct gc *gc, const struct instance *instance)
{
    if (instance->terminating || age_us(gc, instance->created_us) < GC_AGE_US ||
        str_table_has(&gc->by_provider_id, instance->provider_id))
        return false;
    if (!instance->claim_name.len) /* not tagged yet: it may be of any that is being launched */
        return !gc->launching;
    const struct nodeclaim *claim = str_table_get(&gc->by_name, instance->claim_name);
    return !claim || !is_of(instance, claim);
}

/* The same of one that is not tagged yet, and may be of any claim that has no providerID. */
static int is_untagged_orphan_in_store(struct gc *gc, const struct instance *instance,
                                       struct err *err)
{
    struct object_list claims = { 0 };
    if (store_list(gc->c->options.store, &nodeclaim_kind, NULL, &claims, err) < 0)
        return -1;
    int orphan = 1;
    for (size_t i = 0; i < claims.count; i++) {
        if (is_of(instance, nodeclaim_of(claims.items[i])))
            orphan = 0;
    }
    object_list_done(&claims);
    return orphan;
}

/* 1: the store knows no claim that it is of. Our copy may lag behind, and this is for good. */
static int is_orphan_in_store(struct gc *gc, const struct instance *instance, struct err *err)
{
    AUTO_OBJECT claim = NULL;
    struct object_ref ref = { &nodeclaim_kind, STR(""), instance->claim_name };
    if (!instance->claim_name.len)
        return is_untagged_orphan_in_store(gc, instance, err);
    if (store_get(gc->c->options.store, ref, &claim, err) < 0)
        return err->kind == ERR_NOT_FOUND ? 1 : -1;
    return !is_of(instance, nodeclaim_of(claim));
}

/* As much of a claim as the provider needs. Its UID is one that no object has, so that nothing
 * else of the same name is meant. */
static int delete_instance(struct gc *gc, const struct instance *instance, struct err *err)
{
    const struct cloud_provider *provider = gc->c->provider;
    struct nodeclaim claim = { 0 };
    claim.object.kind = &nodeclaim_kind;
    claim.object.meta.name = instance->claim_name.p ? instance->claim_name : STR("");
    claim.object.meta.uid = instance->provider_id;
    claim.status.provider_id = instance->provider_id;
    claim.status.node_name = instance->node_name;
    if (provider->delete_(provider->ctx, &claim, err) < 0 && err->kind != ERR_NOT_FOUND)
        return -1;
    return 0;
}

static int delete_nodes(struct gc *gc, const struct instance *instance, struct err *err)
{
    struct object_list nodes;
    int rc = 0;
    cluster_list_by(gc->c->cluster, NODES_BY_PROVIDER_ID, instance->provider_id, &nodes);
    for (size_t i = 0; i < nodes.count && rc == 0; i++)
        rc = control_remove(gc->c, nodes.items[i], err);
    object_list_done(&nodes);
    return rc;
}

static void collect_instance(struct gc *gc, const struct instance *instance)
{
    struct err err = { 0 };
    if (!is_orphan(gc, instance))
        return;
    int orphan = is_orphan_in_store(gc, instance, &err);
    if (orphan == 0)
        return;
    if (orphan < 0 || delete_instance(gc, instance, &err) < 0 ||
        delete_nodes(gc, instance, &err) < 0) {
        note(gc, &err);
        return;
    }
    log_info(gc->c->log, "instance without claim deleted",
             LOG_STR("provider-id", instance->provider_id), LOG_STR("claim", instance->claim_name));
}

/* --- the pass --- */

static void index_claims(struct gc *gc)
{
    for (size_t i = 0; i < gc->claims.count; i++) {
        const struct nodeclaim *claim = nodeclaim_of(gc->claims.items[i]);
        str_table_put(&gc->by_name, claim->object.meta.name, (void *)claim);
        if (claim->status.provider_id.len)
            str_table_put(&gc->by_provider_id, claim->status.provider_id, (void *)claim);
        else
            gc->launching = true;
    }
}

static void gc_done(struct gc *gc)
{
    str_table_done(&gc->by_provider_id);
    str_table_done(&gc->by_name);
    object_list_done(&gc->claims);
    arena_done(&gc->arena);
}

static struct outcome reconcile(struct control *c, struct str key)
{
    struct gc gc = { .c = c };
    const struct cloud_provider *provider = c->provider;

    cluster_list(c->cluster, &nodeclaim_kind, &gc.claims);
    index_claims(&gc);
    if (provider->list(provider->ctx, &gc.arena, &gc.instances, &gc.trouble) == 0) {
        for (size_t i = 0; i < gc.claims.count; i++) {
            const struct nodeclaim *claim = nodeclaim_of(gc.claims.items[i]);
            if (control_manages(c, &claim->spec.node.node_class_ref))
                collect_claim(&gc, claim);
        }
        for (uint32_t i = 0; i < gc.instances.count; i++)
            collect_instance(&gc, &gc.instances.items[i]);
    }
    struct err trouble = gc.trouble;
    gc_done(&gc);
    if (!trouble.kind)
        return outcome_requeue(GC_PERIOD_NS);
    trouble.kind = ERR_UNAVAILABLE; /* whatever it was: the next pass sees what is left to do */
    return control_failed(c, &nodeclaim_garbage_collection, key, &trouble);
}

const struct controller nodeclaim_garbage_collection = {
    .name = "nodeclaim.garbagecollection",
    .reconcile = reconcile,
    .singleton = true,
    .backoff_min_ns = DURATION_SECOND,
    .backoff_max_ns = GC_PERIOD_NS,
};

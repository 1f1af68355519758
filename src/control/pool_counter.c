/* status.resources and status.nodes of a NodePool: what its nodes have together.
 *
 * A node counts from the moment it is launched (its claim has a providerID) until it is gone, on its way
 * out or not, as it does for the pool's limits. Until a node is initialised, what it does not say
 * of itself is what the provider estimated for its claim. Nodes that lost their claim count too.
 *
 * Claims come in hundreds, and a patch for each would say nothing: a change is counted a second
 * later, together with whatever came meanwhile. The traces of a pool that is gone are removed here,
 * too: its instance types at once, its metrics when its last claim is gone.
 */
#include "control/controllers.h"

#include "api/resources.h"
#include "base/map.h"
#include "control/pools.h"

#define SETTLE_NS ((int64_t)1000000000)

/* --- counting --- */

struct count {
    struct arena *arena;
    struct resources total;
    int64_t nodes;
};

/* A sum beyond what a quantity can hold stays what it was: no cluster has that, a typo might. */
static void count_add(struct count *count, const struct resources *capacity)
{
    struct resources sum;
    struct err err = { 0 };
    if (resources_merge(count->arena, &count->total, capacity, &sum, &err) == 0)
        count->total = sum;
    count->nodes++;
}

static bool is_initialized(const struct node *node)
{
    return str_eqz(str_map_get(&node->object.meta.labels, STR(LABEL_INITIALIZED)), "true");
}

/* Of a node with a claim: what it says, and what it does not say yet from the claim. */
static struct resources joint_capacity(const struct node *node, const struct nodeclaim *claim,
                                       struct arena *arena)
{
    const struct resources *own = &node->status.capacity, *estimate = &claim->status.capacity;
    if (is_initialized(node))
        return *own;
    struct resources zero_or_own = resources_max(arena, own, estimate); /* every name of either */
    struct resource *items = arena_array(arena, struct resource, zero_or_own.count);
    for (uint32_t i = 0; i < zero_or_own.count; i++) {
        struct str name = zero_or_own.items[i].name;
        struct quantity said = resources_get(own, name);
        items[i] = (struct resource){ name, quantity_is_zero(said) ? resources_get(estimate, name)
                                                                   : said };
    }
    return (struct resources){ items, zero_or_own.count };
}

static void count_pool(struct control *c, struct str pool, struct count *count)
{
    struct object_list claims, nodes;
    struct str_table by_id = { 0 }; /* nodes of the pool whose claim has not been met */

    cluster_list_by(c->cluster, CLAIMS_BY_POOL, pool, &claims);
    cluster_list_by(c->cluster, NODES_BY_POOL, pool, &nodes);
    for (size_t i = 0; i < nodes.count; i++) {
        struct str id = node_of(nodes.items[i])->spec.provider_id;
        if (id.len)
            str_table_put(&by_id, id, (void *)nodes.items[i]);
    }
    for (size_t i = 0; i < claims.count; i++) {
        const struct nodeclaim *claim = nodeclaim_of(claims.items[i]);
        if (!claim->status.provider_id.len)
            continue;
        const struct object *node = str_table_remove(&by_id, claim->status.provider_id);
        struct resources capacity =
            node ? joint_capacity(node_of(node), claim, count->arena) : claim->status.capacity;
        count_add(count, &capacity);
    }
    for (size_t i = 0; i < nodes.count; i++) {
        struct str id = node_of(nodes.items[i])->spec.provider_id;
        if (!id.len || str_table_get(&by_id, id) == nodes.items[i])
            count_add(count, &node_of(nodes.items[i])->status.capacity);
    }
    str_table_done(&by_id);
    object_list_done(&nodes);
    object_list_done(&claims);
}

/* Those that every pool shows, be it as zero. */
static struct resources base_resources(int64_t nodes, struct arena *arena)
{
    static const struct str names[] = { STR("cpu"), STR("ephemeral-storage"), STR("memory"),
                                        STR("nodes"), STR("pods") }; /* sorted */
    struct resource *items = arena_array(arena, struct resource, KV_COUNT_OF(names));
    for (size_t i = 0; i < KV_COUNT_OF(names); i++)
        items[i] =
            (struct resource){ names[i], quantity_of(str_eqz(names[i], "nodes") ? nodes : 0) };
    return (struct resources){ items, KV_COUNT_OF(names) };
}

/* --- writing --- */

static bool resources_same(const struct resources *a, const struct resources *b)
{
    if (a->count != b->count)
        return false;
    for (uint32_t i = 0; i < a->count; i++) {
        if (!str_eq(a->items[i].name, b->items[i].name) ||
            quantity_cmp(a->items[i].amount, b->items[i].amount) != 0)
            return false;
    }
    return true;
}

static int write_count(struct control *c, const struct nodepool *pool, const struct count *count,
                       struct err *err)
{
    AUTO_JSON_BUILD b;
    json_build_init(&b);
    json_mut *root = json_new_object(&b);
    json_mut *status = json_mut_object(&b, root, STR("status"));
    json_mut *resources = resources_json(&b, &count->total);
    for (uint32_t i = 0; i < pool->status.resources.count; i++) {
        struct str name = pool->status.resources.items[i].name;
        if (!resources_find(&count->total, name))
            json_set(&b, resources, name, json_new_null(&b)); /* a merge patch takes it away */
    }
    json_set(&b, status, STR("resources"), resources);
    json_set_i64(&b, status, "nodes", count->nodes);
    return control_patch(c, &pool->object, true, false, root, NULL, err);
}

/* The pool is gone. Its claims take their time and are still counted under its name. */
static void forget(struct control *c, struct str pool)
{
    struct object_list claims;
    cluster_list_by(c->cluster, CLAIMS_BY_POOL, pool, &claims);
    bool last = claims.count == 0;
    object_list_done(&claims);
    instance_cache_forget(c->cache, pool);
    if (last)
        metrics_remove_where(c->metrics_registry, "nodepool", pool);
}

static struct outcome reconcile(struct control *c, struct str key)
{
    AUTO_ARENA arena = { 0 };
    AUTO_OBJECT object = cluster_get(c->cluster, &nodepool_kind, STR(""), key);
    struct err err = { 0 };
    if (!object) {
        forget(c, key);
        return outcome_done();
    }
    const struct nodepool *pool = nodepool_of(object);
    if (!control_manages(c, &pool->spec.template.spec.node_class_ref))
        return outcome_done();
    struct count count = { .arena = &arena };
    count_pool(c, key, &count);
    struct resources base = base_resources(count.nodes, &arena);
    if (resources_merge(&arena, &count.total, &base, &count.total, &err) < 0)
        return control_failed(c, &nodepool_counter, key, &err);
    if (count.nodes == pool->status.nodes && resources_same(&count.total, &pool->status.resources))
        return outcome_done();
    if (write_count(c, pool, &count, &err) < 0)
        return control_failed(c, &nodepool_counter, key, &err);
    return outcome_done();
}

/* --- what a change is about --- */

static void add_pool_of(struct queue *q, const struct object *object)
{
    struct str pool = str_map_get(&object->meta.labels, STR(LABEL_NODEPOOL));
    if (pool.len)
        queue_add_after(q, pool, SETTLE_NS);
}

static void either_pool(struct queue *q, const struct object *maybe_old,
                        const struct object *maybe_new)
{
    if (maybe_old)
        add_pool_of(q, maybe_old);
    if (maybe_new)
        add_pool_of(q, maybe_new);
}

static bool same_pool(const struct object *a, const struct object *b)
{
    return str_eq(str_map_get(&a->meta.labels, STR(LABEL_NODEPOOL)),
                  str_map_get(&b->meta.labels, STR(LABEL_NODEPOOL)));
}

static void trigger_claim(struct control *c KV_UNUSED, struct queue *q,
                          const struct object *maybe_old, const struct object *maybe_new)
{
    if (maybe_old && maybe_new && same_pool(maybe_old, maybe_new)) {
        const struct nodeclaim_status *was = &nodeclaim_of(maybe_old)->status;
        const struct nodeclaim_status *is = &nodeclaim_of(maybe_new)->status;
        if (str_eq(was->provider_id, is->provider_id) &&
            resources_same(&was->capacity, &is->capacity))
            return;
    }
    either_pool(q, maybe_old, maybe_new);
}

static void trigger_node(struct control *c KV_UNUSED, struct queue *q,
                         const struct object *maybe_old, const struct object *maybe_new)
{
    if (maybe_old && maybe_new && same_pool(maybe_old, maybe_new)) {
        const struct node *was = node_of(maybe_old), *is = node_of(maybe_new);
        if (str_eq(was->spec.provider_id, is->spec.provider_id) &&
            is_initialized(was) == is_initialized(is) &&
            resources_same(&was->status.capacity, &is->status.capacity))
            return;
    }
    either_pool(q, maybe_old, maybe_new);
}

static void trigger_pool(struct control *c KV_UNUSED, struct queue *q,
                         const struct object *maybe_old, const struct object *maybe_new)
{
    if (!maybe_old || !maybe_new)
        queue_add_after(q, (maybe_new ? maybe_new : maybe_old)->meta.name, SETTLE_NS);
}

const struct controller nodepool_counter = {
    .name = "nodepool.counter",
    .reconcile = reconcile,
    .triggers = { { &nodepool_kind, trigger_pool },
                  { &nodeclaim_kind, trigger_claim },
                  { &node_kind, trigger_node } },
};

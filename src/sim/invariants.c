/* The rules, each by itself, from the store and the cloud alone: nothing that the control plane
 * thinks is believed.
 *
 * Between two looks much may happen, so a rule about changes asks for what cannot have been in
 * between: a condition that may only be taken back when the object's generation changes is compared
 * together with that generation.
 */
#include "sim/invariants_impl.h"

#include "api/conditions.h"
#include "api/kinds.h"
#include "api/node.h"
#include "api/nodeclaim.h"
#include "api/nodepool.h"
#include "api/pod.h"
#include "api/requests.h"
#include "api/resources.h"
#include "control/control_impl.h"
#include "control/drain.h"
#include "control/termination.h"

#include <stdio.h>

/* What garbage collection may take of a control plane that is up: its period, the age that it asks for,
 * a few tries that fail, and one or two that a death cuts short. */
#define ORPHAN_NS ((int64_t)15 * 60 * 1000000000)
/* A claim that was decided on before the limit was lowered may still come. */
#define LIMIT_GRACE_US ((int64_t)60 * 1000000)

struct claim_past { /* by uid */
    struct str provider_id;
    bool launched, registered, initialized;
    bool held; /* by our finalizer */
};

struct pool_past { /* by uid */
    uint64_t limits_hash;
    int64_t limits_since_us; /* the look at which they were new; those it was made with: for ever */
    int64_t health_generation, class_generation; /* that the condition is about */
    enum condition_status health;
    bool first_success; /* the policy */
    bool seen;
};

struct invariants *invariants_new(void)
{
    return kv_calloc(1, sizeof(struct invariants));
}

void invariants_free(struct invariants *inv)
{
    if (!inv)
        return;
    str_table_done(&inv->claims);
    str_table_done(&inv->pools);
    str_table_done(&inv->instances);
    str_table_done(&inv->nodes_of_pods);
    str_table_done(&inv->orphans);
    arena_done(&inv->arena);
    free(inv);
}

void look_broken(struct look *l, uint32_t rule, const char *fmt, ...)
{
    struct invariants *inv = l->inv;
    char text[512];
    va_list args;
    if (inv->broken)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    inv->broken = true;
    inv->finding = (struct finding){ .rule = rule,
                                     .step = l->world->step,
                                     .at_ns = clock_mono_ns(l->world->clock),
                                     .what = arena_str(&inv->arena, str_of(text)) };
}

/* --- looking --- */

static void list(struct look *l, const struct kind *kind, struct object_list *out)
{
    struct err err = { 0 };
    int rc = store_list(l->world->store, kind, NULL, out, &err);
    KV_ASSERT(rc == 0); /* the store without faults */
}

void look_init(struct look *l, struct invariants *inv, const struct world_parts *world)
{
    *l = (struct look){ .inv = inv, .world = world };
    list(l, &pod_kind, &l->pods);
    list(l, &node_kind, &l->nodes);
    list(l, &nodeclaim_kind, &l->claims);
    list(l, &nodepool_kind, &l->pools);
    l->instances = sim_cloud_instances(world->cloud, &l->arena, &l->instance_count);
    for (size_t i = 0; i < l->claims.count; i++)
        str_table_put(&l->claims_by_uid, l->claims.items[i]->meta.uid, (void *)l->claims.items[i]);
    for (size_t i = 0; i < l->nodes.count; i++) {
        const struct node *node = node_of(l->nodes.items[i]);
        if (node->spec.provider_id.len)
            str_table_put(&l->nodes_by_provider_id, node->spec.provider_id, (void *)node);
    }
    for (uint32_t i = 0; i < l->instance_count; i++)
        str_table_put(&l->instances_by_id, l->instances[i].instance.provider_id,
                      (void *)&l->instances[i]);
}

void look_done(struct look *l)
{
    object_list_done(&l->pods);
    object_list_done(&l->nodes);
    object_list_done(&l->claims);
    object_list_done(&l->pools);
    str_table_done(&l->claims_by_uid);
    str_table_done(&l->nodes_by_provider_id);
    str_table_done(&l->instances_by_id);
    arena_done(&l->arena);
}

/* --- 1: pods on nodes --- */

static void check_binding(struct look *l, const struct pod *pod)
{
    struct str_table *known = &l->inv->nodes_of_pods;
    struct str uid = pod->object.meta.uid;
    const char *before = str_table_get(known, uid);
    if (!before)
        str_table_put(known, uid, (void *)arena_str(&l->inv->arena, pod->node_name).p);
    else if (!str_eqz(pod->node_name, before))
        look_broken(l, 1, "pod %.*s was on node %s and is on %.*s", STR_ARG(pod->object.meta.name),
                    before, STR_ARG(pod->node_name));
}

struct load {
    const struct node *node;
    struct resources used;
};

static void check_load(struct look *l, const struct load *load)
{
    struct shortage why;
    if (!resources_fit(&load->used, &load->node->status.allocatable, &why)) {
        char want[QUANTITY_TEXT_MAX], have[QUANTITY_TEXT_MAX];
        quantity_format(why.want, want);
        quantity_format(why.have, have);
        look_broken(l, 1, "node %.*s has %s of %.*s and its pods ask for %s",
                    STR_ARG(load->node->object.meta.name), have, STR_ARG(why.name), want);
    }
}

static void check_pods(struct look *l)
{
    struct load *loads = arena_array(&l->arena, struct load, l->nodes.count);
    struct str_table by_name = { 0 };
    for (size_t i = 0; i < l->nodes.count; i++) {
        loads[i].node = node_of(l->nodes.items[i]);
        str_table_put(&by_name, l->nodes.items[i]->meta.name, &loads[i]);
    }
    for (size_t i = 0; i < l->pods.count; i++) {
        const struct pod *pod = pod_of(l->pods.items[i]);
        if (!pod_is_scheduled(pod))
            continue;
        check_binding(l, pod);
        struct load *load = str_table_get(&by_name, pod->node_name);
        struct resources request;
        struct err err;
        if (!load || pod_is_terminal(pod) ||
            pod_requests_on_node(pod, &l->arena, &request, &err) < 0)
            continue;
        if (resources_merge(&l->arena, &load->used, &request, &load->used, &err) < 0)
            look_broken(l, 1, "node %.*s: %s", STR_ARG(pod->node_name), err.text);
    }
    for (size_t i = 0; i < l->nodes.count; i++)
        check_load(l, &loads[i]);
    str_table_done(&by_name);
}

/* --- 2, 3, 6: claims and instances --- */

/* Time in which there was a control plane. While there is none nobody collects anything, and one that
 * keeps dying at its first calls is away for five minutes at a time, as often as it does: that is no
 * mistake of garbage collection, and no number of minutes on the clock would be enough for it. */
static int64_t uptime_ns(const struct look *l)
{
    return clock_mono_ns(l->world->clock) - l->world->down_ns;
}

/* Has it been like that for too long? */
static bool alone_too_long(struct look *l, struct str what, bool alone)
{
    struct str_table *orphans = &l->inv->orphans;
    int64_t now = uptime_ns(l);
    if (!alone) {
        str_table_remove(orphans, what);
        return false;
    }
    uintptr_t since = (uintptr_t)str_table_get(orphans, what);
    if (!since)
        str_table_put(orphans, what, (void *)((uintptr_t)now + 1));
    return since && now - ((int64_t)since - 1) > ORPHAN_NS;
}

static void check_instance(struct look *l, const struct sim_instance *i)
{
    const struct object *claim = str_table_get(&l->claims_by_uid, i->claim_uid);
    struct str id = i->instance.provider_id;
    const char *before = str_table_get(&l->inv->instances, i->claim_uid);
    if (!before)
        str_table_put(&l->inv->instances, i->claim_uid, (void *)arena_str(&l->inv->arena, id).p);
    else if (!str_eqz(id, before))
        look_broken(l, 3, "claim %.*s had instance %s and has %.*s",
                    STR_ARG(i->instance.claim_name), before, STR_ARG(id));
    if (i->state != SIM_ENDING && alone_too_long(l, id, !claim))
        look_broken(l, 2, "instance %.*s has no NodeClaim for more than %d minutes", STR_ARG(id),
                    (int)(ORPHAN_NS / 60000000000));
    if (claim && !claim->meta.deleted_us &&
        !object_has_finalizer(claim, STR(FINALIZER_TERMINATION)))
        look_broken(l, 6, "claim %.*s has an instance and no finalizer", STR_ARG(claim->meta.name));
    const struct claim_past *past = str_table_get(&l->inv->claims, i->claim_uid);
    if (!claim && past && past->held)
        look_broken(l, 6, "claim %.*s went before its instance %.*s",
                    STR_ARG(i->instance.claim_name), STR_ARG(id));
}

bool look_claim_is(const struct nodeclaim *claim, struct str type)
{
    return condition_status_of(condition_find(claim->status.conditions.items,
                                              claim->status.conditions.count, type)) ==
           CONDITION_TRUE;
}

static void check_claim(struct look *l, const struct nodeclaim *claim)
{
    struct str id = claim->status.provider_id, name = claim->object.meta.name;
    const struct sim_instance *instance = id.len ? str_table_get(&l->instances_by_id, id) : NULL;
    const struct node *node = id.len ? str_table_get(&l->nodes_by_provider_id, id) : NULL;
    bool alone = id.len && (!instance || instance->state == SIM_ENDING) &&
                 !claim->object.meta.deleted_us && !(node && node_is_ready(node));
    if (alone_too_long(l, claim->object.meta.uid, alone))
        look_broken(l, 2, "NodeClaim %.*s has no instance for more than %d minutes", STR_ARG(name),
                    (int)(ORPHAN_NS / 60000000000));

    struct claim_past *past = str_table_get(&l->inv->claims, claim->object.meta.uid);
    if (!past) {
        past = arena_new(&l->inv->arena, struct claim_past);
        str_table_put(&l->inv->claims, claim->object.meta.uid, past);
    }
    struct claim_past now = { .provider_id = past->provider_id,
                              .launched = look_claim_is(claim, CONDITION_LAUNCHED),
                              .registered = look_claim_is(claim, CONDITION_REGISTERED),
                              .initialized = look_claim_is(claim, CONDITION_INITIALIZED),
                              .held = object_has_finalizer(&claim->object,
                                                           STR(FINALIZER_TERMINATION)) };
    if (past->provider_id.len && !str_eq(past->provider_id, id))
        look_broken(l, 3, "NodeClaim %.*s had providerID %.*s and has %.*s", STR_ARG(name),
                    STR_ARG(past->provider_id), STR_ARG(id));
    if ((past->launched && !now.launched) || (past->registered && !now.registered) ||
        (past->initialized && !now.initialized))
        look_broken(l, 5, "NodeClaim %.*s took back that it was %s", STR_ARG(name),
                    past->launched && !now.launched       ? "launched"
                    : past->registered && !now.registered ? "registered"
                                                          : "initialized");
    if ((now.registered && !now.launched) || (now.initialized && !now.registered))
        look_broken(l, 5, "NodeClaim %.*s is %s and was never %s", STR_ARG(name),
                    now.registered ? "registered" : "initialized",
                    now.registered ? "launched" : "registered");
    if (!past->provider_id.len && id.len)
        now.provider_id = arena_str(&l->inv->arena, id);
    *past = now;
}

/* --- 4, 5: pools --- */

static bool of_pool(const struct object *claim, const struct nodepool *pool)
{
    for (uint32_t i = 0; i < claim->meta.owners.count; i++) {
        if (str_eq(claim->meta.owners.items[i].uid, pool->object.meta.uid))
            return true;
    }
    return false;
}

/* Limits that were lowered below what is there are nobody's fault, unless a claim came after.
 *
 * What its claims have, launched or not; an upper end for none of them is known, so it is the least. */
static void check_limits(struct look *l, const struct nodepool *pool, const struct pool_past *past)
{
    struct resource node = { .name = STR("nodes"), .amount = quantity_of(1) };
    struct resources used = { 0 }, one_node = { &node, 1 };
    struct shortage why;
    struct err err;
    int64_t newest_us = 0;
    for (size_t i = 0; i < l->claims.count; i++) {
        const struct nodeclaim *claim = nodeclaim_of(l->claims.items[i]);
        if (!of_pool(&claim->object, pool))
            continue;
        const struct resources *has = claim->status.capacity.count
                                          ? &claim->status.capacity
                                          : &claim->spec.resources.requests;
        if (claim->object.meta.created_us > newest_us)
            newest_us = claim->object.meta.created_us;
        if (resources_merge(&l->arena, &used, has, &used, &err) < 0 ||
            resources_merge(&l->arena, &used, &one_node, &used, &err) < 0)
            look_broken(l, 4, "NodePool %.*s: %s", STR_ARG(pool->object.meta.name), err.text);
    }
    if (newest_us > past->limits_since_us && resources_exceed(&used, &pool->spec.limits, &why)) {
        char want[QUANTITY_TEXT_MAX], have[QUANTITY_TEXT_MAX];
        quantity_format(why.want, want);
        quantity_format(why.have, have);
        look_broken(l, 4, "NodePool %.*s may have %s of %.*s and has %s",
                    STR_ARG(pool->object.meta.name), have, STR_ARG(why.name), want);
    }
}

static const char *const status_words[] = { "unset", "True", "False", "Unknown" };

static bool is_first_success(const struct look *l, const struct nodepool *pool)
{
    struct str policy = str_map_get(&pool->object.meta.annotations, STR(ANNOTATION_HEALTH_POLICY));
    enum health_policy said = l->world->scenario->settings.health.policy;
    health_policy_parse(policy, &said);
    return said == HEALTH_FIRST_SUCCESS;
}

/* first-success: once True it stays True, and Unknown is never gone back to, until something is
 * edited. */
static void check_health(struct look *l, const struct nodepool *pool, const struct pool_past *past,
                         const struct pool_past *now)
{
    struct str name = pool->object.meta.name;
    bool edited = past->health_generation != now->health_generation ||
                  past->class_generation != now->class_generation;
    bool by_first_success = past->first_success && now->first_success;
    if (now->health_generation > pool->object.meta.generation)
        look_broken(l, 5,
                    "NodePool %.*s: NodeRegistrationHealthy is of generation %lld, there were %lld",
                    STR_ARG(name), (long long)now->health_generation,
                    (long long)pool->object.meta.generation);
    if (past->health == CONDITION_UNSET || past->health == now->health)
        return;
    if (now->health == CONDITION_UNSET ||
        (by_first_success && !edited &&
         (past->health == CONDITION_TRUE || now->health == CONDITION_UNKNOWN)))
        look_broken(l, 5, "NodePool %.*s: NodeRegistrationHealthy went from %s to %s",
                    STR_ARG(name), status_words[past->health], status_words[now->health]);
}

const struct condition *look_health(const struct nodepool *pool)
{
    return condition_find(pool->status.conditions.items, pool->status.conditions.count,
                          CONDITION_NODE_REGISTRATION_HEALTHY);
}

static uint64_t limits_hash(const struct nodepool *pool)
{
    uint64_t hash = 0;
    for (uint32_t i = 0; i < pool->spec.limits.count; i++) {
        const struct resource *limit = &pool->spec.limits.items[i];
        char text[QUANTITY_TEXT_MAX];
        quantity_format(limit->amount, text);
        hash = kv_hash_salted(limit->name.p, limit->name.len, hash);
        hash = kv_hash_salted(text, strlen(text), hash);
    }
    return hash;
}

static void check_pool(struct look *l, const struct nodepool *pool)
{
    struct pool_past *past = str_table_get(&l->inv->pools, pool->object.meta.uid);
    if (!past) {
        past = arena_new(&l->inv->arena, struct pool_past);
        str_table_put(&l->inv->pools, pool->object.meta.uid, past);
    }
    const struct condition *health = look_health(pool);
    struct pool_past now = { .limits_hash = limits_hash(pool),
                             .limits_since_us = past->limits_since_us,
                             .health_generation = health ? health->observed_generation : 0,
                             .class_generation = pool->status.node_class_observed_generation,
                             .health = health ? health->status : CONDITION_UNSET,
                             .first_success = is_first_success(l, pool),
                             .seen = true };
    if (past->seen && past->limits_hash != now.limits_hash)
        now.limits_since_us = clock_wall_us(l->world->clock) + LIMIT_GRACE_US;
    check_health(l, pool, past, &now);
    *past = now;
    check_limits(l, pool, past);
}

/* --- 8: pods leave first --- */

/* The Nodes of instances whose end has begun, by name; not those whose time is over. */
static void find_ending(struct look *l, struct str_table *ending)
{
    for (uint32_t i = 0; i < l->instance_count; i++) {
        const struct sim_instance *one = &l->instances[i];
        const struct object *claim = str_table_get(&l->claims_by_uid, one->claim_uid);
        const struct node *node =
            str_table_get(&l->nodes_by_provider_id, one->instance.provider_id);
        if (one->state == SIM_ENDING && claim && node &&
            clock_wall_us(l->world->clock) < termination_deadline_us(nodeclaim_of(claim)))
            str_table_put(ending, node->object.meta.name, (void *)one);
    }
}

static void check_pods_left(struct look *l)
{
    struct str_table ending = { 0 };
    find_ending(l, &ending);
    for (size_t i = 0; i < l->pods.count && ending.live_count; i++) {
        const struct pod *pod = pod_of(l->pods.items[i]);
        const struct sim_instance *on = str_table_get(&ending, pod->node_name);
        if (on && !pod_is_terminal(pod) && pod_is_drainable(pod, clock_wall_us(l->world->clock)))
            look_broken(l, 8, "instance %.*s is ended while pod %.*s is on its node",
                        STR_ARG(on->instance.provider_id), STR_ARG(pod->object.meta.name));
    }
    str_table_done(&ending);
}

const struct finding *invariants_check(struct invariants *inv, const struct world_parts *world)
{
    struct look l;
    look_init(&l, inv, world);
    check_pods(&l);
    for (uint32_t i = 0; i < l.instance_count; i++)
        check_instance(&l, &l.instances[i]);
    for (size_t i = 0; i < l.claims.count; i++)
        check_claim(&l, nodeclaim_of(l.claims.items[i]));
    for (size_t i = 0; i < l.pools.count; i++)
        check_pool(&l, nodepool_of(l.pools.items[i]));
    check_pods_left(&l);
    if (binder_disagreement(world->binder))
        look_broken(&l, 1, "binder: %s", binder_disagreement(world->binder));
    look_done(&l);
    return inv->broken ? &inv->finding : NULL;
}

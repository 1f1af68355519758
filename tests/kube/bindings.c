/* See bindings.h. The cluster is read as a snapshot in which every pod has to leave its node, and what
 * the scheduler did is written down as a plan that puts each back where it was.
 *
 * The order of a plan matters for topology. The scheduler's own is lost; and while nodes were still
 * coming it saw fewer domains than there are now. But what is right at the end can be reached in some
 * order: pods that follow others last, and those of one owner in turns, zone by zone.
 */
#include "kube/bindings.h"

#include "support/test.h"

#include "api/kinds.h"
#include "api/labels.h"
#include "cloud/kwok.h"
#include "sched/check.h"

#include <stdlib.h>

struct reading {
    const struct store *store;
    struct arena *arena;
    struct snapshot snap;
    struct object_list pods, nodes, claims, pools, daemon_sets, namespaces, priorities;
    struct placed *order; /* of the pods that are displaced */
    uint32_t placed_count;
    bool *displaced;
};

struct placed {
    uint32_t pod, node;
    struct str owner, zone;
    uint32_t turn; /* of its owner in its zone */
    bool follows;  /* other pods */
};

static void list(struct reading *r, const struct kind *kind, struct object_list *out)
{
    struct err err;
    EXPECT_OK(store_list(r->store, kind, NULL, out, &err), err);
}

static bool is_of_daemon_set(const struct pod *pod)
{
    const struct owner_ref *owner = meta_controller(&pod->object.meta);
    return owner && str_eqz(owner->kind, "DaemonSet");
}

static int by_owner_and_zone(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    int order = str_cmp(x->owner, y->owner);
    return order ? order : str_cmp(x->zone, y->zone);
}

static int by_turn(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    if (x->follows != y->follows)
        return x->follows ? 1 : -1;
    int order = str_cmp(x->owner, y->owner);
    if (!order)
        order = (x->turn > y->turn) - (x->turn < y->turn);
    return order ? order : str_cmp(x->zone, y->zone);
}

static int by_name(const void *name, const void *object)
{
    return str_cmp(*(const struct str *)name, (*(const struct object *const *)object)->meta.name);
}

static uint32_t find_node(const struct reading *r, const struct pod *pod)
{
    const struct object **at =
        bsearch(&pod->node_name, r->nodes.items, r->nodes.count, sizeof *r->nodes.items, by_name);
    if (!at)
        fail_msg("%.*s is on a node that is not there", STR_ARG(pod->object.meta.name));
    return (uint32_t)(at - r->nodes.items);
}

static void find_placed(struct reading *r)
{
    r->displaced = arena_array(r->arena, bool, r->pods.count);
    r->order = arena_array(r->arena, struct placed, r->pods.count);
    for (uint32_t i = 0; i < r->pods.count; i++) {
        const struct pod *pod = pod_of(r->pods.items[i]);
        const struct owner_ref *owner = meta_controller(&pod->object.meta);
        if (!pod->node_name.len || is_of_daemon_set(pod) || pod_is_terminating(pod))
            continue;
        uint32_t n = find_node(r, pod);
        r->displaced[i] = true;
        r->order[r->placed_count++] = (struct placed){
            .pod = i,
            .node = n,
            .owner = owner ? owner->name : pod->object.meta.name,
            .zone = str_map_get(&r->nodes.items[n]->meta.labels, STR(LABEL_ZONE)),
            .follows = pod->maybe_affinity && pod->maybe_affinity->pod.required.count > 0,
        };
    }
    qsort(r->order, r->placed_count, sizeof *r->order, by_owner_and_zone);
    for (uint32_t i = 1; i < r->placed_count; i++) {
        if (by_owner_and_zone(&r->order[i - 1], &r->order[i]) == 0)
            r->order[i].turn = r->order[i - 1].turn + 1;
    }
    qsort(r->order, r->placed_count, sizeof *r->order, by_turn);
}

static int by_node_and_pod(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return (x->pod > y->pod) - (x->pod < y->pod);
}

/* Lists are by name, and so are indices into them. */
static const struct plan *plan_of(struct reading *r)
{
    struct plan *plan = arena_new(r->arena, struct plan);
    struct plan_existing *existing = arena_array(r->arena, struct plan_existing, r->nodes.count);
    uint32_t *order = arena_array(r->arena, uint32_t, r->placed_count);
    uint32_t *pods = arena_array(r->arena, uint32_t, r->placed_count);
    for (uint32_t i = 0; i < r->placed_count; i++)
        order[i] = r->order[i].pod;
    qsort(r->order, r->placed_count, sizeof *r->order, by_node_and_pod);
    for (uint32_t i = 0; i < r->placed_count; i++) {
        pods[i] = r->order[i].pod;
        if (i == 0 || r->order[i].node != r->order[i - 1].node)
            existing[plan->existing_count++] = (struct plan_existing){ .node = r->order[i].node,
                                                                       .claim = PLAN_NONE,
                                                                       .pods = { &pods[i], 0 } };
        existing[plan->existing_count - 1].pods.count++;
    }
    plan->existing = existing;
    plan->order = (struct plan_pods){ order, r->placed_count };
    return plan;
}

static void read_pools(struct reading *r, struct kwok *kwok)
{
    const struct cloud_provider *provider = kwok_provider(kwok);
    struct sched_pool *pools = arena_array(r->arena, struct sched_pool, r->pools.count);
    for (uint32_t i = 0; i < r->pools.count; i++) {
        const struct nodepool *pool = nodepool_of(r->pools.items[i]);
        struct err err;
        pools[i] = (struct sched_pool){ .pool = pool, .not_ready = STR("") };
        EXPECT_OK(provider->get_instance_types(provider->ctx, pool, &pools[i].types, &err), err);
        pools[i].well_known =
            provider_well_known(r->arena, &pool->spec.template.spec.node_class_ref, pools[i].types);
    }
    r->snap.pools = pools;
    r->snap.pool_count = (uint32_t)r->pools.count;
}

static void read_cluster(struct reading *r)
{
    list(r, &node_kind, &r->nodes);
    list(r, &nodeclaim_kind, &r->claims);
    list(r, &nodepool_kind, &r->pools);
    list(r, &pod_kind, &r->pods);
    list(r, &daemon_set_kind, &r->daemon_sets);
    list(r, &namespace_kind, &r->namespaces);
    list(r, &priority_class_kind, &r->priorities);
    find_placed(r);
    struct snapshot *s = &r->snap;
    s->pods = (const struct pod *const *)r->pods.items;
    s->pod_count = (uint32_t)r->pods.count;
    s->maybe_displaced = r->displaced;
    s->nodes = (const struct node *const *)r->nodes.items;
    s->node_count = (uint32_t)r->nodes.count;
    s->claims = (const struct nodeclaim *const *)r->claims.items;
    s->claim_count = (uint32_t)r->claims.count;
    s->daemon_sets = (const struct daemon_set *const *)r->daemon_sets.items;
    s->daemon_set_count = (uint32_t)r->daemon_sets.count;
    s->namespaces = (const struct namespace_object *const *)r->namespaces.items;
    s->namespace_count = (uint32_t)r->namespaces.count;
    s->priority_classes = (const struct priority_class *const *)r->priorities.items;
    s->priority_class_count = (uint32_t)r->priorities.count;
}

static void reading_done(struct reading *r)
{
    for (uint32_t i = 0; i < r->snap.pool_count; i++)
        instance_types_unref(r->snap.pools[i].types);
    object_list_done(&r->pods);
    object_list_done(&r->nodes);
    object_list_done(&r->claims);
    object_list_done(&r->pools);
    object_list_done(&r->daemon_sets);
    object_list_done(&r->namespaces);
    object_list_done(&r->priorities);
}

void bindings_check(const struct store *store, struct arena *arena, struct bindings *out)
{
    struct reading r = { .store = store, .arena = arena };
    AUTO(kwok) kwok = kwok_new((struct kwok_options){ .store = store, .clock = clock_real() });
    read_cluster(&r);
    read_pools(&r, kwok);
    const struct plan *plan = plan_of(&r);
    struct check_result result = plan_check(arena, &r.snap, PLAN_OPTIONS_DEFAULT, plan);
    const char **wrong = arena_array(arena, const char *, result.count);
    for (uint32_t i = 0; i < result.count; i++)
        wrong[i] = arena_str(arena, result.findings[i].what).p;
    *out = (struct bindings){ .pods = r.placed_count,
                              .nodes = plan->existing_count,
                              .wrong = wrong,
                              .wrong_count = result.count };
    reading_done(&r);
}

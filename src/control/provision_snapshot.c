/* The cluster as a plan sees it. Nodes are listed before pods: a pod that is bound in between counts
 * twice rather than never, and the plan is too small rather than too large.
 */
#include "control/provisioner.h"

#include "api/policy.h"
#include "control/do_not_disrupt.h"
#include "control/health.h"
#include "control/pools.h"

bool pod_is_provisionable(const struct pod *pod)
{
    if (pod_is_scheduled(pod) || pod_is_terminal(pod) || pod_is_terminating(pod) ||
        pod_is_mirror(pod) || pod->status->nominated_node.len)
        return false;
    const struct owner_ref *owner = meta_controller(&pod->object.meta);
    if (owner && (str_eqz(owner->kind, "DaemonSet") || str_eqz(owner->kind, "Node")))
        return false;
    const struct pod_condition *scheduled = pod_condition(pod, STR("PodScheduled"));
    return scheduled && scheduled->status == CONDITION_FALSE &&
           str_eqz(scheduled->reason, "Unschedulable");
}

bool node_is_leaving(struct control *c, const struct node *node)
{
    if (node->object.meta.deleted_us || node_taint(node, STR(TAINT_DISRUPTED), EFFECT_NO_SCHEDULE))
        return true;
    AUTO_OBJECT claim = node_claim(c, node);
    return claim && (claim->meta.deleted_us ||
                     claim_condition_true(nodeclaim_of(claim), CONDITION_INSTANCE_TERMINATING));
}

/* --- pods that have to leave --- */

/* However many pods there are, none may go. */
static bool blocks_for_ever(const struct pdb *pdb)
{
    const int64_t many = 1000000;
    int64_t desired;
    return !pdb_desired_healthy(&pdb->spec, many, &desired) || desired >= many;
}

static bool is_held(const struct provision *p, const struct pod *pod)
{
    for (size_t i = 0; i < p->pdbs.count; i++) {
        const struct pdb *pdb = pdb_of(p->pdbs.items[i]);
        if (str_eq(pdb->object.meta.namespace_, pod->object.meta.namespace_) &&
            blocks_for_ever(pdb) &&
            label_selector_matches(pdb->spec.maybe_selector, &pod->object.meta.labels))
            return true;
    }
    return false;
}

/* It will be somewhere else, as itself or as the pod that replaces it. One that must not be disrupted, or
 * that a budget holds for ever, stays until somebody else ends it. */
static bool is_reschedulable(const struct control *c, const struct provision *p,
                             const struct pod *pod)
{
    const struct owner_ref *owner = meta_controller(&pod->object.meta);
    if (pod_is_terminal(pod) || pod_is_mirror(pod))
        return false;
    if (owner && (str_eqz(owner->kind, "DaemonSet") || str_eqz(owner->kind, "Node")))
        return false;
    if (pod_is_terminating(pod) && !(owner && str_eqz(owner->kind, "StatefulSet")))
        return false;
    return !do_not_disrupt_is_active(do_not_disrupt_of(pod, control_now_us(c))) && !is_held(p, pod);
}

static void find_displaced(struct control *c, struct provision *p)
{
    struct str_table leaving = { 0 };
    for (size_t i = 0; i < p->nodes.count; i++) {
        const struct node *node = node_of(p->nodes.items[i]);
        if (node_is_leaving(c, node))
            str_table_put(&leaving, node->object.meta.name, (void *)node);
    }
    p->displaced = arena_array(&p->arena, bool, p->pods.count);
    for (size_t i = 0; i < p->pods.count; i++) {
        const struct pod *pod = pod_of(p->pods.items[i]);
        p->displaced[i] = leaving.live_count && pod_is_scheduled(pod) &&
                          str_table_has(&leaving, pod->node_name) && is_reschedulable(c, p, pod);
        p->pending_count += p->displaced[i] || pod_is_provisionable(pod);
    }
    str_table_done(&leaving);
}

/* --- pools --- */

/* In a dry run nobody writes that down, so it is found out here. */
static const struct condition *judged_ready(struct control *c, const struct nodepool *pool,
                                            struct arena *arena)
{
    struct condition_set *set = pool_conditions(c, pool, arena);
    pool_judge_class(c, pool, set);
    pool_judge_spec(pool, set, arena);
    return conditions_root(set);
}

static struct str not_ready_words(struct control *c, const struct nodepool *pool,
                                  struct arena *arena)
{
    const struct condition *ready =
        c->options.settings.dry_run
            ? judged_ready(c, pool, arena)
            : condition_find(pool->status.conditions.items, pool->status.conditions.count,
                             CONDITION_READY);
    if (pool->object.meta.deleted_us)
        return STR("it is being deleted");
    if (pool->spec.replicas.set)
        return STR("it is a static pool");
    if (condition_status_of(ready) == CONDITION_TRUE)
        return STR("");
    if (!ready)
        return STR("it has not been looked at yet");
    return ready->message.len ? arena_strf(arena, "it is not ready: %.*s", STR_ARG(ready->message))
                              : STR("it is not ready");
}

/* That there is no such node class is an answer. Any other failure is none: it comes and goes without
 * a trace in what the next look compares, so that look must not be content with this pass. */
static void collect_types(struct control *c, struct provision *p, struct sched_pool *pool)
{
    struct err err = { 0 };
    if (c->provider->get_instance_types(c->provider->ctx, pool->pool, &pool->types, &err) < 0) {
        pool->types = NULL;
        p->whole &= err.kind == ERR_NOT_FOUND;
        if (!pool->not_ready.len)
            pool->not_ready = arena_strf(&p->arena, "its instance types: %s", err.text);
        return;
    }
    pool->well_known =
        provider_well_known(&p->arena, &pool->pool->spec.template.spec.node_class_ref, pool->types);
}

static void collect_cooldown(struct control *c, struct provision *p, uint32_t ix)
{
    struct sched_pool *pool = &p->pools[ix];
    int64_t until_ns = INT64_MAX;
    enum cooldown cooldown =
        pool->not_ready.len ? COOLDOWN_NONE : health_cooldown(c, pool->pool, &until_ns);
    if (cooldown == COOLDOWN_NONE)
        return;
    pool->not_ready = health_cooldown_words(c, pool->pool, &p->arena);
    if (cooldown == COOLDOWN_PROBE)
        bitset_set(&p->probes, ix);
    else if (until_ns < p->cooldown_until_ns)
        p->cooldown_until_ns = until_ns;
}

static void collect_pools(struct control *c, struct provision *p)
{
    uint32_t count = 0;
    p->pools = arena_array(&p->arena, struct sched_pool, p->nodepools.count);
    p->probes = bitset_new(&p->arena, (uint32_t)p->nodepools.count);
    p->cooldown_until_ns = INT64_MAX;
    for (size_t i = 0; i < p->nodepools.count; i++) {
        const struct nodepool *pool = nodepool_of(p->nodepools.items[i]);
        if (!control_manages(c, &pool->spec.template.spec.node_class_ref))
            continue;
        p->pools[count] =
            (struct sched_pool){ .pool = pool, .not_ready = not_ready_words(c, pool, &p->arena) };
        collect_types(c, p, &p->pools[count]);
        collect_cooldown(c, p, count++);
    }
    p->snap.pools = p->pools;
    p->snap.pool_count = count;
}

/* --- images --- */

static void collect_fits(struct control *c, struct provision *p)
{
    if (!c->options.maybe_images || !p->pending_count)
        return;
    uint32_t looked_up = 0;
    struct bitset wanted = bitset_new(&p->arena, p->snap.pod_count);
    for (uint32_t i = 0; i < p->snap.pod_count; i++) {
        if (p->displaced[i] || pod_is_provisionable(p->snap.pods[i]))
            bitset_set(&wanted, i);
    }
    p->maybe_fits =
        image_fits_build(&p->arena, c->options.maybe_images, &wanted, &p->snap, &looked_up);
    p->whole &= !looked_up;
}

/* --- all of it --- */

/* Objects start with their `struct object`, so a list of them is a list of theirs. */
#define SNAPSHOT_LIST(p, list, type, field, kind)                                                  \
    do {                                                                                           \
        cluster_list(c->cluster, &(kind), &(p)->list);                                             \
        (p)->snap.field##s = (const type *const *)(p)->list.items;                                 \
        (p)->snap.field##_count = (uint32_t)(p)->list.count;                                       \
    } while (0)

void provision_collect(struct control *c, struct provision *p)
{
    *p = (struct provision){ .whole = true };
    SNAPSHOT_LIST(p, nodes, struct node, node, node_kind);
    SNAPSHOT_LIST(p, claims, struct nodeclaim, claim, nodeclaim_kind);
    SNAPSHOT_LIST(p, pods, struct pod, pod, pod_kind);
    SNAPSHOT_LIST(p, daemon_sets, struct daemon_set, daemon_set, daemon_set_kind);
    SNAPSHOT_LIST(p, pvcs, struct pvc, pvc, pvc_kind);
    SNAPSHOT_LIST(p, pvs, struct pv, pv, pv_kind);
    SNAPSHOT_LIST(p, csi_nodes, struct csi_node, csi_node, csi_node_kind);
    SNAPSHOT_LIST(p, namespaces, struct namespace_object, namespace, namespace_kind);
    cluster_list(c->cluster, &storage_class_kind, &p->storage_classes);
    p->snap.storage_classes = (const struct storage_class *const *)p->storage_classes.items;
    p->snap.storage_class_count = (uint32_t)p->storage_classes.count;
    cluster_list(c->cluster, &priority_class_kind, &p->priority_classes);
    p->snap.priority_classes = (const struct priority_class *const *)p->priority_classes.items;
    p->snap.priority_class_count = (uint32_t)p->priority_classes.count;
    cluster_list(c->cluster, &nodepool_kind, &p->nodepools);
    cluster_list(c->cluster, &pdb_kind, &p->pdbs);
    find_displaced(c, p);
    p->snap.maybe_displaced = p->displaced;
    collect_pools(c, p);
    collect_fits(c, p);
}

void provision_done(struct provision *p)
{
    image_fits_done(p->maybe_fits);
    for (uint32_t i = 0; i < p->snap.pool_count; i++)
        instance_types_unref(p->pools[i].types);
    object_list_done(&p->nodes);
    object_list_done(&p->claims);
    object_list_done(&p->pods);
    object_list_done(&p->nodepools);
    object_list_done(&p->daemon_sets);
    object_list_done(&p->pvcs);
    object_list_done(&p->pvs);
    object_list_done(&p->storage_classes);
    object_list_done(&p->csi_nodes);
    object_list_done(&p->namespaces);
    object_list_done(&p->priority_classes);
    object_list_done(&p->pdbs);
    arena_done(&p->arena);
}

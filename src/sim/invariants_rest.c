/* The seventh rule: a cluster in which nothing happens any more is as it should be, and stays so.
 *
 * What is there is read from the store and the cloud. What there would be to do is asked of the control
 * plane that has been there all along, and of one that is made for the question: the first may remember
 * what is no longer true, and the second must agree with what the first has left.
 */
#include "sim/invariants_impl.h"

#include "api/conditions.h"
#include "api/kinds.h"
#include "api/node.h"
#include "api/pod.h"
#include "control/provisioner.h"

#define REST_STEPS_MAX 1000000

/* --- what is there --- */

static void check_half_done(struct look *l, const struct object_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct object *object = list->items[i];
        if (object->meta.deleted_us)
            look_broken(l, 7, "%s %.*s is still being deleted", object->kind->name,
                        STR_ARG(object->meta.name));
    }
}

static bool has_taint(const struct node *node, const char *key)
{
    for (uint32_t i = 0; i < node->spec.taints.count; i++) {
        if (str_eqz(node->spec.taints.items[i].key, key))
            return true;
    }
    return false;
}

/* Those that are there at the end expire once more. */
static bool has_expired(struct look *l, const struct nodeclaim *claim)
{
    struct duration life = nillable_duration(claim->spec.node.expire_after);
    int64_t age_us = clock_wall_us(l->world->clock) - claim->object.meta.created_us;
    return life.set && !life.never && age_us > life.ns / 1000;
}

/* The Node of a claim: it is there, and open. */
static void check_claim_node(struct look *l, const struct nodeclaim *claim)
{
    struct str name = claim->object.meta.name;
    const struct node *node = str_table_get(&l->nodes_by_provider_id, claim->status.provider_id);
    if (!str_table_has(&l->instances_by_id, claim->status.provider_id))
        look_broken(l, 7, "NodeClaim %.*s has no instance", STR_ARG(name));
    if (!node)
        look_broken(l, 7, "NodeClaim %.*s has no Node", STR_ARG(name));
    else if (has_taint(node, TAINT_UNREGISTERED) || has_taint(node, TAINT_DISRUPTED))
        look_broken(l, 7, "Node %.*s of NodeClaim %.*s is closed to pods",
                    STR_ARG(node->object.meta.name), STR_ARG(name));
}

static void check_claims_finished(struct look *l)
{
    for (size_t i = 0; i < l->claims.count; i++) {
        const struct nodeclaim *claim = nodeclaim_of(l->claims.items[i]);
        if (!look_claim_is(claim, CONDITION_INITIALIZED))
            look_broken(l, 7, "NodeClaim %.*s is not initialized",
                        STR_ARG(claim->object.meta.name));
        if (has_expired(l, claim))
            look_broken(l, 7, "NodeClaim %.*s has expired", STR_ARG(claim->object.meta.name));
        check_claim_node(l, claim);
    }
}

/* Every instance has its claim, without any grace; and every Node of the cloud its instance. */
static void check_nothing_left(struct look *l)
{
    for (uint32_t i = 0; i < l->instance_count; i++) {
        if (!str_table_has(&l->claims_by_uid, l->instances[i].claim_uid))
            look_broken(l, 7, "instance %.*s is left behind",
                        STR_ARG(l->instances[i].instance.provider_id));
    }
    for (size_t i = 0; i < l->nodes.count; i++) {
        const struct node *node = node_of(l->nodes.items[i]);
        if (str_starts(node->spec.provider_id, STR(SIM_PROVIDER_PREFIX)) &&
            !str_table_has(&l->instances_by_id, node->spec.provider_id))
            look_broken(l, 7, "Node %.*s is left behind", STR_ARG(node->object.meta.name));
    }
}

/* What NodeRegistrationHealthy says is about the pool as it is. */
static void check_health_current(struct look *l)
{
    for (size_t i = 0; i < l->pools.count; i++) {
        const struct nodepool *pool = nodepool_of(l->pools.items[i]);
        const struct condition *health = look_health(pool);
        if (health && health->observed_generation != pool->object.meta.generation)
            look_broken(l, 7, "NodePool %.*s: NodeRegistrationHealthy is not of its generation",
                        STR_ARG(pool->object.meta.name));
    }
}

/* --- what would be done --- */

/* A plan of what is there now has nothing to do. */
static void check_nothing_fits(struct look *l, struct control *control)
{
    struct provision p;
    provision_collect(control, &p);
    struct plan_options options = PLAN_OPTIONS_DEFAULT;
    options.only_unschedulable = true;
    options.preferences = l->world->scenario->settings.preferences;
    options.min_values = l->world->scenario->settings.min_values;
    const struct plan *plan = plan_build(&p.arena, &p.snap, options);
    if (plan->launch_count) {
        const struct plan_launch *launch = &plan->launches[0];
        const struct pod *pod = p.snap.pods[launch->pods.items[0]];
        look_broken(l, 7, "pod %.*s is pending although NodePool %.*s has a node for it",
                    STR_ARG(pod->object.meta.name),
                    STR_ARG(p.pools[launch->pool].pool->object.meta.name));
    } else if (plan->existing_count) {
        const struct pod *pod = p.snap.pods[plan->existing[0].pods.items[0]];
        look_broken(l, 7, "pod %.*s is pending although there is a node for it",
                    STR_ARG(pod->object.meta.name));
    }
    provision_done(&p);
}

/* All that is to be done at this very moment: nothing is written. */
static void check_no_writes(struct look *l, struct control *control, const char *who)
{
    uint64_t before = faults_writes(l->world->faults);
    for (uint32_t i = 0; control_step(control, NULL); i++) {
        if (i == REST_STEPS_MAX) {
            look_broken(l, 7, "%s does not end", who);
            return;
        }
    }
    uint64_t after = faults_writes(l->world->faults);
    if (after != before)
        look_broken(l, 7, "%s wrote %d times, last: %s", who, (int)(after - before),
                    faults_last_write(l->world->faults));
}

static void check_processes(struct look *l)
{
    const struct world_parts *world = l->world;
    AUTO(control) fresh =
        control_new((struct control_options){ .store = faults_store(world->faults),
                                              .provider = faults_provider(world->faults),
                                              .clock = world->clock,
                                              .seed = 1,
                                              .settings = world->scenario->settings });
    struct look second = *l;
    struct invariants writes = { 0 }; /* what fits is told before what is written */
    second.inv = &writes;
    control_resync(world->control);
    check_no_writes(&second, world->control, "reconciling everything again");
    check_no_writes(&second, fresh, "a new process");
    check_nothing_fits(l, fresh);
    if (writes.broken)
        look_broken(l, 7, "%.*s", STR_ARG(writes.finding.what));
    arena_done(&writes.arena);
}

const struct finding *invariants_check_rest(struct invariants *inv, const struct world_parts *world)
{
    struct look l;
    if (invariants_check(inv, world))
        return &inv->finding;
    look_init(&l, inv, world);
    check_half_done(&l, &l.pods);
    check_half_done(&l, &l.claims);
    check_half_done(&l, &l.nodes);
    check_claims_finished(&l);
    check_nothing_left(&l);
    check_health_current(&l);
    if (!inv->broken)
        check_processes(&l);
    look_done(&l);
    return inv->broken ? &inv->finding : NULL;
}

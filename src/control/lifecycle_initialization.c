/* Initialization: the Node can run what it was launched for.
 *
 * It is ready, nobody holds it back with a startup taint or one of those that a young node has, and
 * everything that the claim asked for has shown up (device plugins register their resources late).
 */
#include "api/resources.h"
#include "control/lifecycle.h"

static bool is_ephemeral(const struct taint *taint)
{
    static const struct taint known[] = {
        { .key = STR("node.kubernetes.io/not-ready"), .effect = EFFECT_NO_SCHEDULE },
        { .key = STR("node.kubernetes.io/not-ready"), .effect = EFFECT_NO_EXECUTE },
        { .key = STR("node.kubernetes.io/unreachable"), .effect = EFFECT_NO_SCHEDULE },
        { .key = STR("node.cloudprovider.kubernetes.io/uninitialized"),
          .value = STR("true"),
          .effect = EFFECT_NO_SCHEDULE },
        { .key = STR(TAINT_UNREGISTERED), .effect = EFFECT_NO_EXECUTE },
    };
    if (str_starts(taint->key, STR("readiness.k8s.io/")))
        return true;
    for (size_t i = 0; i < KV_COUNT_OF(known); i++) {
        if (str_eq(taint->key, known[i].key) && taint->effect == known[i].effect &&
            (!known[i].value.len || str_eq(taint->value, known[i].value)))
            return true;
    }
    return false;
}

static const struct taint *startup_taint(const struct nodeclaim *claim, const struct node *node)
{
    for (uint32_t i = 0; i < claim->spec.node.startup_taints.count; i++) {
        const struct taint *want = &claim->spec.node.startup_taints.items[i];
        const struct taint *found = node_taint(node, want->key, (enum taint_effect)want->effect);
        if (found)
            return found;
    }
    return NULL;
}

static const struct taint *ephemeral_taint(const struct node *node)
{
    for (uint32_t i = 0; i < node->spec.taints.count; i++) {
        if (is_ephemeral(&node->spec.taints.items[i]))
            return &node->spec.taints.items[i];
    }
    return NULL;
}

/* The name of what was asked for and is not there; absent: everything is. */
static struct str missing_resource(const struct nodeclaim *claim, const struct node *node)
{
    const struct resources *requests = &claim->spec.resources.requests;
    for (uint32_t i = 0; i < requests->count; i++) {
        struct quantity have = resources_get(&node->status.allocatable, requests->items[i].name);
        if (!quantity_is_zero(requests->items[i].amount) && quantity_is_zero(have))
            return requests->items[i].name;
    }
    return STR_NONE;
}

static void wait_because(struct life *life, struct str reason, struct str message)
{
    conditions_set_unknown(life->conditions, CONDITION_INITIALIZED, reason, message);
}

static struct str taint_words(struct life *life, const char *what, const struct taint *taint)
{
    static const char *const effects[] = { "", "NoSchedule", "PreferNoSchedule", "NoExecute" };
    return arena_strf(&life->arena, "%s \"%.*s%s%.*s:%s\" still exists", what, STR_ARG(taint->key),
                      taint->value.len ? "=" : "", STR_ARG(taint->value), effects[taint->effect]);
}

/* True: there is nothing left to wait for. */
static bool is_usable(struct life *life)
{
    if (!life->maybe_node) {
        wait_because(life, REASON_NODE_NOT_FOUND, STR("Node not registered with cluster"));
        return false;
    }
    const struct node *node = node_of(life->maybe_node);
    if (!node_is_ready(node)) {
        wait_because(life, REASON_NODE_NOT_READY, STR("Node status is NotReady"));
        return false;
    }
    const struct taint *taint = startup_taint(life->claim, node);
    if (taint) {
        wait_because(life, REASON_STARTUP_TAINTS_EXIST, taint_words(life, "StartupTaint", taint));
        return false;
    }
    taint = ephemeral_taint(node);
    if (taint) {
        wait_because(life, REASON_KNOWN_EPHEMERAL_TAINTS_EXIST,
                     taint_words(life, "KnownEphemeralTaint", taint));
        return false;
    }
    struct str missing = missing_resource(life->claim, node);
    if (missing.p) {
        wait_because(life, REASON_RESOURCE_NOT_REGISTERED,
                     arena_strf(&life->arena, "Resource \"%.*s\" was requested but not registered",
                                STR_ARG(missing)));
        return false;
    }
    return true;
}

static int label_node(struct life *life, struct err *err)
{
    AUTO_JSON_BUILD b;
    json_build_init(&b);
    if (str_eqz(str_map_get(&life->maybe_node->meta.labels, STR(LABEL_INITIALIZED)), "true"))
        return 0;
    json_mut *root = json_new_object(&b), *metadata = json_mut_object(&b, root, STR("metadata"));
    json_set_str(&b, json_mut_object(&b, metadata, STR("labels")), LABEL_INITIALIZED, STR("true"));
    return control_patch(life->c, life->maybe_node, false, false, root, NULL, err);
}

int lifecycle_initialize(struct life *life, struct err *err)
{
    if (!conditions_is_true(life->conditions, CONDITION_REGISTERED) ||
        conditions_is_true(life->conditions, CONDITION_INITIALIZED))
        return 0;
    if (!is_usable(life))
        return 0;
    if (label_node(life, err) < 0)
        return -1;
    conditions_set_true(life->conditions, CONDITION_INITIALIZED);
    log_info(life->c->log, "initialized", LOG_STR("claim", life->object->meta.name),
             LOG_STR("node", life->maybe_node->meta.name));
    return 0;
}

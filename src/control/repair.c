/* Nodes that are ill for longer than the provider says they may be are replaced: the claim gets a
 * deadline of now and is deleted, which no budget and no pod holds up.
 *
 * When many nodes of a pool are ill at once, the illness is more likely in what they share (a network,
 * an image, the control plane) than in each of them, and replacing them all would make it worse: beyond
 * a fifth of them, rounded up, nothing is replaced.
 */
#include "codec/duration.h"
#include "control/controllers.h"
#include "control/termination.h"

#define ILL_SHARE_PERCENT 20
#define BLOCKED_AGAIN_NS (5 * DURATION_MINUTE)
#define BLOCKED_QUIET_NS (15 * DURATION_MINUTE)

struct illness {
    const struct condition *maybe_condition; /* NULL: it is well */
    int64_t until_us;                        /* how long it is tolerated */
};

static bool is_status(const struct condition *condition, const char *name)
{
    return condition->status != CONDITION_UNSET &&
           strcmp(condition_status_name((enum condition_status)condition->status), name) == 0;
}

/* The one that is tolerated the shortest. */
static struct illness illness_of(const struct control *c, const struct node *node)
{
    struct illness worst = { .until_us = INT64_MAX };
    for (uint32_t i = 0; i < c->provider->repair_policy_count; i++) {
        const struct repair_policy *policy = &c->provider->repair_policies[i];
        const struct condition *found = node_condition(node, str_of(policy->condition));
        if (!found || !is_status(found, policy->status))
            continue;
        int64_t until_us = found->transition_us + policy->toleration_ns / 1000;
        if (until_us < worst.until_us)
            worst = (struct illness){ found, until_us };
    }
    return worst;
}

/* --- how many are ill --- */

struct ward {
    uint32_t nodes, ill;
};

/* Of the pool; without one, of the cluster. */
static struct ward count_ward(struct control *c, struct str pool)
{
    struct ward ward = { 0 };
    struct object_list nodes;
    if (pool.len)
        cluster_list_by(c->cluster, NODES_BY_POOL, pool, &nodes);
    else
        cluster_list(c->cluster, &node_kind, &nodes);
    ward.nodes = (uint32_t)nodes.count;
    for (size_t i = 0; i < nodes.count; i++)
        ward.ill += illness_of(c, node_of(nodes.items[i])).maybe_condition != NULL;
    object_list_done(&nodes);
    return ward;
}

static bool is_epidemic(struct ward ward)
{
    uint32_t most = (ward.nodes * ILL_SHARE_PERCENT + 99) / 100;
    return ward.ill > most;
}

static void tell_blocked(struct control *c, const struct object *node,
                         const struct nodeclaim *claim, struct ward ward)
{
    AUTO_OBJECT pool = claim_pool(c, claim);
    const struct object *about[] = { node, &claim->object, pool };
    AUTO_BUF text = { 0 };

    buf_addf(&text, "Not repaired: %u of %u nodes %s are unhealthy, more than %d%%", ward.ill,
             ward.nodes, claim_pool_name(claim).len ? "of the pool" : "of the cluster",
             ILL_SHARE_PERCENT);
    for (size_t i = 0; i < KV_COUNT_OF(about); i++) {
        if (about[i])
            recorder_publish(c->recorder, &(struct notice){ .about = about[i],
                                                            .warning = true,
                                                            .reason = "NodeRepairBlocked",
                                                            .message = buf_str(&text),
                                                            .key = STR("blocked"),
                                                            .quiet_ns = BLOCKED_QUIET_NS });
    }
}

/* --- replacing --- */

/* The deadline first: a claim that is deleted without one would drain as long as its pods like. */
static int set_deadline(struct control *c, const struct object *claim, int64_t now_us,
                        struct err *err)
{
    struct str text = str_map_get(&claim->meta.annotations, STR(ANNOTATION_TERMINATION_TIMESTAMP));
    char now[TIME_TEXT_MAX];
    int64_t at_us;

    if (text.len && time_parse(text, &at_us, NULL) == 0 && at_us <= now_us)
        return 0;
    time_format(now_us, now);
    AUTO_JSON_BUILD b;
    json_build_init(&b);
    json_mut *root = json_new_object(&b), *meta = json_mut_object(&b, root, STR("metadata"));
    json_set_str(&b, json_mut_object(&b, meta, STR("annotations")),
                 ANNOTATION_TERMINATION_TIMESTAMP, str_of(now));
    return control_patch(c, claim, false, true, root, NULL, err);
}

/* "KubeletReady" as dashboards have it: "kubelet_ready". */
static struct str snake_case(struct arena *arena, struct str text)
{
    char *out = arena_alloc(arena, 2 * text.len + 1);
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        char lower = char_lower(text.p[i]);
        if (i && lower != text.p[i] && char_lower(text.p[i - 1]) == text.p[i - 1])
            out[len++] = '_';
        out[len++] = lower;
    }
    return (struct str){ out, len };
}

static struct outcome replace(struct control *c, struct str key, const struct object *claim,
                              const struct condition *illness)
{
    const struct nodeclaim *typed = nodeclaim_of(claim);
    struct str capacity = str_map_get(&claim->meta.labels, STR(LABEL_CAPACITY_TYPE));
    struct str image = typed->status.image_id;
    AUTO_ARENA arena = { 0 };
    struct err err = { 0 };

    if (set_deadline(c, claim, control_now_us(c), &err) < 0 || control_remove(c, claim, &err) < 0)
        return control_failed(c, &node_health, key, &err);
    claim_count_disrupted(c, typed, "unhealthy");
    metric_count(c->metrics.nodeclaims_unhealthy_disrupted, snake_case(&arena, illness->type),
                 claim_pool_name(typed), capacity.len ? capacity : STR(""),
                 image.len ? image : STR(""));
    log_info(c->log, "replacing an unhealthy node", LOG_STR("node", key),
             LOG_STR("claim", claim->meta.name), LOG_STR("condition", illness->type));
    return outcome_done();
}

static struct outcome reconcile(struct control *c, struct str key)
{
    AUTO_OBJECT node = cluster_get(c->cluster, &node_kind, STR(""), key);
    if (!node || node->meta.deleted_us)
        return outcome_done();
    struct illness illness = illness_of(c, node_of(node));
    if (!illness.maybe_condition)
        return outcome_done();
    AUTO_OBJECT claim = termination_claim(c, node_of(node));
    if (!claim || claim->meta.deleted_us ||
        !control_manages(c, &nodeclaim_of(claim)->spec.node.node_class_ref))
        return outcome_done();
    int64_t now_us = control_now_us(c);
    if (now_us < illness.until_us)
        return outcome_requeue((illness.until_us - now_us) * 1000);

    struct ward ward = count_ward(c, claim_pool_name(nodeclaim_of(claim)));
    if (is_epidemic(ward)) {
        tell_blocked(c, node, nodeclaim_of(claim), ward);
        return outcome_requeue(BLOCKED_AGAIN_NS);
    }
    return replace(c, key, claim, illness.maybe_condition);
}

static bool is_enabled(const struct control_settings *settings)
{
    return settings->node_repair;
}

/* Heartbeats come by the thousand: only an illness that is new, or a node that has become ours. */
static void on_node(struct control *c, struct queue *q, const struct object *maybe_old,
                    const struct object *maybe_new)
{
    if (!maybe_new)
        return;
    struct illness now = illness_of(c, node_of(maybe_new));
    if (!now.maybe_condition)
        return;
    struct str registered = STR(LABEL_REGISTERED);
    if (maybe_old && illness_of(c, node_of(maybe_old)).until_us == now.until_us &&
        str_eq(str_map_get(&maybe_old->meta.labels, registered),
               str_map_get(&maybe_new->meta.labels, registered)))
        return;
    queue_add(q, maybe_new->meta.name);
}

const struct controller node_health = {
    .name = "node.health",
    .reconcile = reconcile,
    .triggers = { { &node_kind, on_node } },
    .enabled = is_enabled,
    .threads = 4,
};

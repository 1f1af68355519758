/* Nodes, as the node lifecycle controller and the taint manager treat them: taints follow from the
 * Ready condition and from cordoning, and pods are driven away by NoExecute taints. And as the daemons
 * do that a node waits for: its startup taints go some time after it got ready.
 *
 * What an admission plugin adds to every pod (five minutes of tolerance for nodes that are not ready
 * or cannot be reached) the embedded store does not: it counts here.
 */
#include "sim/kubelet_impl.h"

#include "api/karpenter.h"
#include "codec/duration.h"

#define TOLERANCE_NS (5 * DURATION_MINUTE)

/* --- changes --- */

static enum condition_status ready_of(const struct node *node)
{
    const struct condition *ready = node_condition(node, STR("Ready"));
    return ready ? ready->status : CONDITION_UNSET;
}

static bool taints_equal(const struct node *a, const struct node *b)
{
    if (a->spec.taints.count != b->spec.taints.count)
        return false;
    for (uint32_t i = 0; i < a->spec.taints.count; i++) {
        const struct taint *x = &a->spec.taints.items[i], *y = &b->spec.taints.items[i];
        if (!str_eq(x->key, y->key) || !str_eq(x->value, y->value) || x->effect != y->effect ||
            x->time_added_us != y->time_added_us)
            return false;
    }
    return true;
}

static bool matters(const struct object *maybe_old, const struct object *maybe_new)
{
    if (!maybe_old || !maybe_new)
        return true;
    const struct node *old = node_of(maybe_old), *new = node_of(maybe_new);
    return ready_of(old) != ready_of(new) || old->spec.unschedulable != new->spec.unschedulable ||
           !taints_equal(old, new);
}

void kubelet_on_node(void *ctx, const struct object *maybe_old, const struct object *maybe_new)
{
    struct kubelet *k = ctx;
    if (matters(maybe_old, maybe_new))
        str_table_put(&k->dirty_nodes, (maybe_new ? maybe_new : maybe_old)->meta.name, k);
}

/* --- taints --- */

static const struct {
    struct taint taint;
    enum condition_status ready; /* unset: cordoned */
} own_taints[] = {
    { { .key = { "" TAINT_NOT_READY, sizeof TAINT_NOT_READY - 1 }, .effect = EFFECT_NO_SCHEDULE },
      CONDITION_FALSE },
    { { .key = { "" TAINT_NOT_READY, sizeof TAINT_NOT_READY - 1 }, .effect = EFFECT_NO_EXECUTE },
      CONDITION_FALSE },
    { { .key = { "" TAINT_UNREACHABLE, sizeof TAINT_UNREACHABLE - 1 },
        .effect = EFFECT_NO_SCHEDULE },
      CONDITION_UNKNOWN },
    { { .key = { "" TAINT_UNREACHABLE, sizeof TAINT_UNREACHABLE - 1 },
        .effect = EFFECT_NO_EXECUTE },
      CONDITION_UNKNOWN },
    { { .key = { "" TAINT_UNSCHEDULABLE, sizeof TAINT_UNSCHEDULABLE - 1 },
        .effect = EFFECT_NO_SCHEDULE },
      CONDITION_UNSET },
};

static bool is_startup_taint(const struct nodeclaim *claim, const struct taint *taint)
{
    for (uint32_t i = 0; i < claim->spec.node.startup_taints.count; i++) {
        const struct taint *startup = &claim->spec.node.startup_taints.items[i];
        if (str_eq(taint->key, startup->key) && taint->effect == startup->effect)
            return true;
    }
    return false;
}

static void push_taint(struct json_build *b, json_mut *list, const struct taint *taint)
{
    static const char *const effects[] = { "", "NoSchedule", "PreferNoSchedule", "NoExecute" };
    char time[TIME_TEXT_MAX];
    json_mut *o = json_new_object(b);

    json_set_str(b, o, "key", taint->key);
    if (taint->value.len)
        json_set_str(b, o, "value", taint->value);
    json_set_str(b, o, "effect", str_of(effects[taint->effect]));
    if (taint->time_added_us) {
        time_format(taint->time_added_us, time);
        json_set_str(b, o, "timeAdded", str_of(time));
    }
    json_push(b, list, o);
}

/* Those of others as they are, in their order, but without the startup taints of `maybe_started`; and ours
 * as they should be. False: they are so. */
static bool taints_json(const struct node *node, const struct nodeclaim *maybe_started,
                        int64_t now_us, struct json_build *b, json_mut *list)
{
    enum condition_status ready = ready_of(node);
    bool wanted[KV_COUNT_OF(own_taints)], changed = false;

    for (size_t i = 0; i < KV_COUNT_OF(own_taints); i++)
        wanted[i] = own_taints[i].ready == CONDITION_UNSET ? node->spec.unschedulable
                                                           : own_taints[i].ready == ready;
    for (uint32_t t = 0; t < node->spec.taints.count; t++) {
        const struct taint *taint = &node->spec.taints.items[t];
        bool keep = !maybe_started || !is_startup_taint(maybe_started, taint);
        for (size_t i = 0; i < KV_COUNT_OF(own_taints); i++) {
            if (!str_eq(taint->key, own_taints[i].taint.key) ||
                taint->effect != own_taints[i].taint.effect)
                continue;
            keep = wanted[i];
            wanted[i] = false;
        }
        changed |= !keep;
        if (keep)
            push_taint(b, list, taint);
    }
    for (size_t i = 0; i < KV_COUNT_OF(own_taints); i++) {
        struct taint taint = own_taints[i].taint;
        taint.time_added_us = now_us;
        changed |= wanted[i];
        if (wanted[i])
            push_taint(b, list, &taint);
    }
    return changed;
}

static void set_taints(struct kubelet *k, const struct node *node,
                       const struct nodeclaim *maybe_started)
{
    AUTO_JSON_BUILD b = { 0 };
    AUTO_BUF patch = { 0 };
    struct err err;

    json_build_init(&b);
    json_mut *root = json_new_object(&b), *list = json_new_array(&b);
    if (!taints_json(node, maybe_started, kubelet_now_us(k), &b, list))
        return;
    json_set(&b, json_mut_object(&b, root, STR("spec")), STR("taints"), list);
    json_write_mut(root, &patch);
    struct patch_options options = { .type = PATCH_MERGE,
                                     .resource_version = node->object.meta.resource_version };
    if (store_patch(k->options.store, object_ref_of(&node->object), options, buf_str(&patch), NULL,
                    &err) < 0 &&
        err.kind == ERR_CONFLICT) /* with something that need not matter to us */
        str_table_put(&k->dirty_nodes, node->object.meta.name, k);
}

/* --- startup --- */

/* The claim that the node was registered for; NULL: none. A reference. */
static const struct object *claim_of_node(struct kubelet *k, const struct node *node)
{
    const struct meta *meta = &node->object.meta;
    for (uint32_t i = 0; i < meta->owners.count; i++) {
        const struct object *claim = NULL;
        struct object_ref ref = { &nodeclaim_kind, STR(""), meta->owners.items[i].name };
        struct err err;
        if (str_eqz(meta->owners.items[i].kind, "NodeClaim") &&
            store_get(k->options.store, ref, &claim, &err) == 0)
            return claim;
    }
    return NULL;
}

static bool has_startup_taint(const struct node *node, const struct nodeclaim *claim)
{
    for (uint32_t i = 0; i < node->spec.taints.count; i++) {
        if (is_startup_taint(claim, &node->spec.taints.items[i]))
            return true;
    }
    return false;
}

static void forget_starting(struct kubelet *k, struct str name)
{
    struct starting_node *s = str_table_remove(&k->starting, name);
    if (!s)
        return;
    timers_clear(&k->node_timers, &s->timer);
    free(s->name);
    free(s);
}

/* The claim of a node whose startup taints should go now; NULL: not now. A reference. */
static const struct object *started_claim(struct kubelet *k, const struct node *node)
{
    struct str name = node->object.meta.name;
    AUTO_OBJECT claim = node->spec.taints.count ? claim_of_node(k, node) : NULL;
    if (!claim || ready_of(node) != CONDITION_TRUE ||
        !sim_cloud_runs(k->options.cloud, node->spec.provider_id) ||
        !has_startup_taint(node, nodeclaim_of(claim))) {
        forget_starting(k, name);
        return NULL;
    }
    struct starting_node *s = str_table_get(&k->starting, name);
    if (!s) {
        uint64_t fate = fate_of(k->options.seed, node->object.meta.uid, "startup");
        s = kv_calloc(1, sizeof *s);
        s->name = str_dup(name);
        str_table_put(&k->starting, name, s);
        timers_set(&k->node_timers, &s->timer,
                   kubelet_later(kubelet_now_ns(k), span_pick(k->options.startup_taints, fate)));
    }
    return timer_is_set(&s->timer) ? NULL : object_ref(claim);
}

void kubelet_nodes_due(struct kubelet *k)
{
    for (struct timer *timer; (timer = timers_take(&k->node_timers, kubelet_now_ns(k))) != NULL;)
        str_table_put(&k->dirty_nodes,
                      str_of(TIMER_OWNER(timer, struct starting_node, timer)->name), k);
}

void kubelet_nodes_done(struct kubelet *k)
{
    str_table_each(&k->starting, it)
        forget_starting(k, it->key);
    str_table_done(&k->starting);
    timers_done(&k->node_timers);
}

/* --- looking --- */

/* A Node without a Ready condition is nobody's: from a manifest, and left as it is. Taints are written
 * from what is in the store; a change that is on its way brings the Node here again. */
void kubelet_look_at_node(struct kubelet *k, struct str name)
{
    AUTO_OBJECT node = NULL;
    struct object_list pods = { 0 };
    struct err err;

    if (store_get(k->options.store, (struct object_ref){ &node_kind, STR(""), name }, &node, &err) <
        0) {
        forget_starting(k, name);
    } else if (ready_of(node_of(node)) != CONDITION_UNSET) {
        AUTO_OBJECT started = started_claim(k, node_of(node));
        set_taints(k, node_of(node), started ? nodeclaim_of(started) : NULL);
    }
    kubelet_pods_of(k, name, &pods);
    for (size_t i = 0; i < pods.count; i++)
        kubelet_look_soon(k, pods.items[i]);
    object_list_done(&pods);
}

/* --- eviction --- */

static const struct toleration *tolerance(const struct pod_spec *spec, const struct taint *taint)
{
    for (uint32_t i = 0; i < spec->tolerations.count; i++)
        if (toleration_tolerates(&spec->tolerations.items[i], taint))
            return &spec->tolerations.items[i];
    return NULL;
}

/* How long the pod bears the taint. INT64_MAX: for ever. */
static int64_t bears_ns(const struct pod_spec *spec, const struct taint *taint)
{
    const struct toleration *t = tolerance(spec, taint);
    bool usual = str_eqz(taint->key, TAINT_NOT_READY) || str_eqz(taint->key, TAINT_UNREACHABLE);
    if (!t)
        return usual ? TOLERANCE_NS : 0;
    if (!t->seconds.set || t->seconds.value > INT64_MAX / DURATION_SECOND)
        return INT64_MAX;
    return t->seconds.value > 0 ? t->seconds.value * DURATION_SECOND : 0;
}

int64_t kubelet_eviction_ns(const struct kubelet *k, const struct node *node, const struct pod *pod,
                            int64_t *tainted_ns)
{
    int64_t due_ns = INT64_MAX;
    bool tainted = false;

    for (uint32_t i = 0; i < node->spec.taints.count; i++) {
        const struct taint *taint = &node->spec.taints.items[i];
        if (taint->effect != EFFECT_NO_EXECUTE)
            continue;
        tainted = true;
        if (*tainted_ns < 0)
            *tainted_ns = kubelet_now_ns(k);
        int64_t since_ns =
            taint->time_added_us ? kubelet_mono_of(k, taint->time_added_us) : *tainted_ns;
        int64_t at_ns = kubelet_later(since_ns, bears_ns(pod->spec, taint));
        due_ns = at_ns < due_ns ? at_ns : due_ns;
    }
    if (!tainted)
        *tainted_ns = -1;
    return pod_is_mirror(pod) ? INT64_MAX : due_ns;
}

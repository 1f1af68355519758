/* Keeping the Node: made or taken over once, its status sent when something changed, when somebody
 * else changed it, and every five minutes. Whether the node lives is the Lease's to say.
 *
 * A Node that is deleted afterwards is not made again: somebody took this machine out of the
 * cluster, and a new Node would bring it back. A restarted agent registers anew.
 */
#include "node/node_api_inner.h"

#include <stdio.h>

#define KUBELET_VERSION "v1.34.0" /* whose behaviour ours is */
#define REGISTER_FIRST_NS (DURATION_SECOND / 10)
#define REGISTER_MAX_NS (7 * DURATION_SECOND)
#define READY_LOOK_NS (DURATION_SECOND / 10) /* at first nothing is as eagerly awaited as Ready */
#define READY_LOOK_FOR_NS (120 * DURATION_SECOND)
#define PRESSURE_STAYS_NS (5 * DURATION_MINUTE) /* so that it does not flap */

static const struct {
    const char *type, *good, *bad, *good_words, *bad_words;
} condition_words[] = {
    [NODE_MEMORY] = { "MemoryPressure", "KubeletHasSufficientMemory",
                      "KubeletHasInsufficientMemory", "kubelet has sufficient memory available",
                      "kubelet has insufficient memory available" },
    [NODE_DISK] = { "DiskPressure", "KubeletHasNoDiskPressure", "KubeletHasDiskPressure",
                    "kubelet has no disk pressure", "kubelet has disk pressure" },
    [NODE_PID] = { "PIDPressure", "KubeletHasSufficientPID", "KubeletHasInsufficientPID",
                   "kubelet has sufficient PID available",
                   "kubelet has insufficient PID available" },
    [NODE_READY] = { "Ready", "KubeletReady", "KubeletNotReady", "kubelet is posting ready status",
                     "" },
};

/* --- labels --- */

#define LABELS_OWN 5

/* Those that every Node has, and the given ones; a given one of the same key wins. */
static void make_labels(struct node_keeper *k, struct str node_name, const struct str_map *given)
{
    const struct str_pair own[LABELS_OWN] = {
        { STR("beta.kubernetes.io/arch"), k->machine.architecture },
        { STR("beta.kubernetes.io/os"), STR("linux") },
        { STR("kubernetes.io/arch"), k->machine.architecture },
        { STR("kubernetes.io/hostname"), node_name },
        { STR("kubernetes.io/os"), STR("linux") },
    };
    struct str_pair *items = arena_array(&k->arena, struct str_pair, LABELS_OWN + given->count);
    uint32_t count = 0;
    for (size_t i = 0; i < LABELS_OWN; i++)
        if (!str_map_get(given, own[i].key).p)
            items[count++] = own[i];
    for (uint32_t i = 0; i < given->count; i++)
        items[count++] = given->items[i];
    qsort(items, count, sizeof *items, str_pair_order);
    k->view.labels = (struct str_map){ items, count };
}

int node_keeper_init(struct node_api *api, struct err *err)
{
    struct node_keeper *k = &api->keeper;
    const struct node_api_options *opts = &api->opts;
    pthread_mutex_init(&k->lock, NULL);
    rng_init(&k->rng, opts->seed ^ 2);
    k->started_ns = clock_mono_ns(opts->clock);
    if (opts->pods_max < 0)
        return err_set(err, ERR_INVALID, "max pods: expected zero or more");
    if (node_machine_read(&k->arena, opts, &k->machine, err) < 0 ||
        node_labels_parse(&k->arena, str_of(opts->labels ? opts->labels : ""), &k->view.labels,
                          err) < 0 ||
        node_taints_parse(&k->arena, str_of(opts->taints ? opts->taints : ""), &k->view, err) < 0)
        return -1;
    k->view.machine = &k->machine;
    k->view.provider_id = str_of(opts->provider_id ? opts->provider_id : "");
    k->view.kubelet_version = arena_strf(&k->arena, KUBELET_VERSION "+karve.%s", opts->version);
    return 0;
}

void node_keeper_done(struct node_api *api)
{
    struct node_keeper *k = &api->keeper;
    arena_done(&k->arena);
    pthread_mutex_destroy(&k->lock);
    free(k->said);
    free(k->uid);
}

/* --- the uid --- */

static void set_uid(struct node_keeper *k, struct str maybe_uid)
{
    pthread_mutex_lock(&k->lock);
    free(k->uid);
    k->uid = maybe_uid.p ? str_dup(maybe_uid) : NULL;
    pthread_mutex_unlock(&k->lock);
}

struct str node_uid(struct node_api *api, struct arena *arena)
{
    struct node_keeper *k = &api->keeper;
    pthread_mutex_lock(&k->lock);
    struct str uid = arena_str(arena, str_of(k->uid));
    pthread_mutex_unlock(&k->lock);
    return uid;
}

/* --- how it is now --- */

static void set_condition(struct node_view *view, enum node_condition_type type, bool good,
                          const char *maybe_why)
{
    view->conditions[type] = (struct node_said_condition){
        .type = condition_words[type].type,
        .status = type == NODE_READY ? good : !good,
        .reason = good ? condition_words[type].good : condition_words[type].bad,
        .message = maybe_why ? maybe_why
                   : good    ? condition_words[type].good_words
                             : condition_words[type].bad_words,
    };
}

/* What was seen in the last minutes counts. */
static bool lingers(bool now_so, int64_t *until_ns, int64_t now_ns)
{
    if (now_so)
        *until_ns = now_ns + PRESSURE_STAYS_NS;
    return now_ns < *until_ns;
}

/* Texts in `arena`. */
static void look(struct node_api *api, struct arena *arena, struct node_view *view)
{
    struct node_keeper *k = &api->keeper;
    int64_t now_ns = clock_mono_ns(api->opts.clock);
    struct node_pressure pressure = node_pressure_now(api->opts.root);
    struct err why = { 0 };
    AUTO_BUF runtime = { 0 };
    *view = k->view;
    agent_runtime_version(api->agent, &runtime);
    view->runtime_version = arena_str(arena, buf_str(&runtime));
    set_condition(view, NODE_MEMORY, !lingers(pressure.memory, &k->pressure_until_ns[0], now_ns),
                  NULL);
    set_condition(view, NODE_DISK, !lingers(pressure.disk, &k->pressure_until_ns[1], now_ns), NULL);
    set_condition(view, NODE_PID, true, NULL);
    bool ready = agent_ready(api->agent, &why);
    set_condition(view, NODE_READY, ready, ready ? NULL : arena_str(arena, str_of(why.text)).p);
}

/* --- registering --- */

static struct object_ref node_ref(const struct node_api *api)
{
    return (struct object_ref){ &node_kind, STR(""), api->node_name };
}

static void date_view(struct node_view *view, const struct node *maybe_node, int64_t now_us)
{
    view->now_us = now_us;
    for (size_t i = 0; i < NODE_CONDITION_COUNT; i++) {
        struct node_said_condition *said = &view->conditions[i];
        const struct condition *was =
            maybe_node ? node_condition(maybe_node, str_of(said->type)) : NULL;
        bool same = was && was->status == (said->status ? CONDITION_TRUE : CONDITION_FALSE);
        said->since_us = same && was->transition_us ? was->transition_us : now_us;
    }
}

static int create_node(struct node_api *api, const struct object **out, struct err *err)
{
    AUTO_ARENA arena = { 0 };
    AUTO_BUF text = { 0 };
    AUTO_JSON_BUILD b = { 0 };
    struct node_view view;
    json_build_init(&b);
    look(api, &arena, &view);
    date_view(&view, NULL, clock_wall_us(api->opts.clock));
    json_write_mut(node_object_json(&b, &view), &text);
    return store_create(api->heartbeats, &node_kind, STR(""), buf_str(&text), out, err);
}

/* The labels that are this machine's to say; taints and other labels are for a new Node alone. */
static bool is_managed(struct str key)
{
    static const char *const managed[] = {
        "kubernetes.io/hostname",
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
        "node.kubernetes.io/instance-type",
        "beta.kubernetes.io/instance-type",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
    };
    for (size_t i = 0; i < KV_COUNT_OF(managed); i++)
        if (str_eqz(key, managed[i]))
            return true;
    return false;
}

/* A Node that was there: from an earlier run of ours, or made by somebody for us. */
static int adopt_node(struct node_api *api, const struct node *node, struct err *err)
{
    const struct node_view *view = &api->keeper.view;
    AUTO_BUF text = { 0 };
    AUTO_JSON_BUILD b = { 0 };
    bool changes = false;
    json_build_init(&b);
    json_mut *patch = json_new_object(&b);
    for (uint32_t i = 0; i < view->labels.count; i++) {
        const struct str_pair *label = &view->labels.items[i];
        if (!is_managed(label->key) ||
            str_eq(str_map_get(&node->object.meta.labels, label->key), label->value))
            continue;
        json_mut *meta = json_mut_object(&b, patch, STR("metadata"));
        json_set(&b, json_mut_object(&b, meta, STR("labels")), label->key,
                 json_new_str(&b, label->value));
        changes = true;
    }
    if (view->provider_id.len && node->spec.provider_id.len == 0) {
        json_set_str(&b, json_mut_object(&b, patch, STR("spec")), "providerID", view->provider_id);
        changes = true;
    }
    if (!changes)
        return 0;
    json_write_mut(patch, &text);
    return store_patch(api->heartbeats, node_ref(api), (struct patch_options){ PATCH_MERGE },
                       buf_str(&text), NULL, err);
}

static int register_node(struct node_api *api, struct err *err)
{
    AUTO_OBJECT node = NULL;
    int rc = store_get(api->heartbeats, node_ref(api), &node, err);
    if (rc < 0 && err->kind == ERR_NOT_FOUND && api->opts.register_node) {
        rc = create_node(api, &node, err);
        if (rc < 0 && err->kind == ERR_EXISTS) /* by an attempt whose answer was lost, say */
            rc = store_get(api->heartbeats, node_ref(api), &node, err);
    }
    if (rc < 0 || adopt_node(api, node_of(node), err) < 0)
        return -1;
    set_uid(&api->keeper, node->meta.uid);
    log_info(api->opts.log, "the node is registered", LOG_STR("node", api->node_name),
             LOG_STR("uid", node->meta.uid));
    return 0;
}

/* --- its status --- */

static bool api_agrees(const struct node *node, const struct node_view *view)
{
    for (size_t i = 0; i < NODE_CONDITION_COUNT; i++) {
        const struct node_said_condition *said = &view->conditions[i];
        const struct condition *c = node_condition(node, str_of(said->type));
        if (!c || c->status != (said->status ? CONDITION_TRUE : CONDITION_FALSE) ||
            !str_eqz(c->reason, said->reason) || !str_eqz(c->message, said->message))
            return false;
    }
    return true;
}

static int send_status(struct node_api *api, struct node_view *view, const struct node *node,
                       struct err *err)
{
    AUTO_BUF text = { 0 };
    AUTO_JSON_BUILD b = { 0 };
    json_build_init(&b);
    date_view(view, node, clock_wall_us(api->opts.clock));
    json_write_mut(node_status_json(&b, view), &text);
    return store_patch(api->heartbeats, node_ref(api),
                       (struct patch_options){ .type = PATCH_STRATEGIC, .status = true },
                       buf_str(&text), NULL, err);
}

static int report(struct node_api *api, struct err *err)
{
    struct node_keeper *k = &api->keeper;
    int64_t now_ns = clock_mono_ns(api->opts.clock);
    AUTO_ARENA arena = { 0 };
    AUTO_BUF said = { 0 };
    AUTO_JSON_BUILD b = { 0 };
    AUTO_OBJECT node = NULL;
    struct node_view view;
    if (store_get(api->heartbeats, node_ref(api), &node, err) < 0)
        return -1;
    set_uid(k, node->meta.uid);
    json_build_init(&b);
    look(api, &arena, &view);
    json_write_mut(node_status_json(&b, &view), &said);
    bool changed = !k->said || strcmp(k->said, said.p) != 0 || !api_agrees(node_of(node), &view);
    if (!changed && now_ns < k->report_ns)
        return 0;
    if (send_status(api, &view, node_of(node), err) < 0)
        return -1;
    free(k->said);
    k->said = buf_take(&said);
    k->said_ready = view.conditions[NODE_READY].status;
    /* After a change at another time than those of other nodes, which perhaps changed with us. */
    double share = changed ? 0.5 + rng_unit(&k->rng) : 1;
    k->report_ns = now_ns + (int64_t)(share * (double)api->opts.report_period_ns);
    if (changed)
        log_info(api->opts.log, "the node's status is told",
                 LOG_BOOL("ready", view.conditions[NODE_READY].status),
                 LOG_Z("message", view.conditions[NODE_READY].message));
    return 0;
}

/* Once, with the agent at hand. */
static void fill_view(struct node_api *api)
{
    struct node_keeper *k = &api->keeper;
    if (k->view.name.p)
        return;
    struct str_map given = k->view.labels;
    k->view.name = api->node_name;
    k->view.ips = agent_facts(api->agent)->node_ips;
    make_labels(k, api->node_name, &given);
}

/* Nothing to send yet, and Ready is awaited: look often, without asking the server. */
static bool may_wait_for_ready(struct node_api *api, int64_t now_ns)
{
    struct node_keeper *k = &api->keeper;
    struct err why;
    return k->registered && !k->said_ready && now_ns - k->started_ns < READY_LOOK_FOR_NS &&
           now_ns < k->step_ns && !agent_ready(api->agent, &why);
}

int64_t node_keeper_step(struct node_api *api)
{
    struct node_keeper *k = &api->keeper;
    int64_t now_ns = clock_mono_ns(api->opts.clock);
    struct err err;
    fill_view(api);
    if (may_wait_for_ready(api, now_ns))
        return now_ns + READY_LOOK_NS;
    if (!k->registered) {
        if (register_node(api, &err) < 0) {
            log_warn(api->opts.log, "the node is not registered", LOG_STR("node", api->node_name),
                     LOG_ERR(&err));
            return now_ns + api_backoff_next(&k->backoff, REGISTER_FIRST_NS, REGISTER_MAX_NS);
        }
        k->registered = true;
        k->backoff.failures = 0;
        api_loop_wake(&api->lease_loop);
        api_loop_wake(&api->source_loop);
    }
    k->step_ns = now_ns + api->opts.status_period_ns;
    if (report(api, &err) < 0) {
        if (err.kind == ERR_NOT_FOUND)
            set_uid(k, STR_NONE);
        log_warn(api->opts.log, "the node's status is not told", LOG_ERR(&err));
        int64_t wait =
            api_backoff_next(&k->backoff, api->opts.retry_ns, api->opts.status_period_ns);
        return now_ns + wait;
    }
    k->backoff.failures = 0;
    bool eager = !k->said_ready && now_ns - k->started_ns < READY_LOOK_FOR_NS;
    return eager ? now_ns + READY_LOOK_NS : k->step_ns;
}

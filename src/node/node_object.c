/* The Node of this machine as JSON: labels, taints and provider id of a new one, and the status that
 * is patched from then on. Pure: equal views give equal texts.
 *
 * kubeletVersion has to be a version that others parse and compare, so it is the Kubernetes minor
 * whose kubelet we behave like, with ours as build metadata: "v1.34.0+karve.0.1.0".
 */
#include "node/node_api_inner.h"

#include "api/resources.h"

/* --- flags --- */

/* The next of a list with commas; false: there is none left. */
static bool next_item(struct str *rest, struct str *item)
{
    struct str tail = STR_NONE;
    if (!rest->p)
        return false;
    if (!str_cut(*rest, ',', item, &tail))
        tail = STR_NONE;
    *rest = tail;
    return true;
}

int node_labels_parse(struct arena *arena, struct str text, struct str_map *out, struct err *err)
{
    VEC(struct str_pair) pairs = { 0 };
    struct str rest = str_trim(text).len ? text : STR_NONE, item;
    int rc = 0;
    while (rc == 0 && next_item(&rest, &item)) {
        struct str key, value;
        if (!str_cut(str_trim(item), '=', &key, &value)) {
            rc = err_set(err, ERR_INVALID, "label %s: expected KEY=VALUE", STR_SHOWN(item));
            break;
        }
        const char *problem = label_key_problem(key);
        if (!problem)
            problem = label_value_problem(value);
        for (size_t i = 0; !problem && i < pairs.count; i++)
            if (str_eq(pairs.items[i].key, key))
                problem = "is there twice";
        if (problem)
            rc = err_set(err, ERR_INVALID, "label %s: %s", STR_SHOWN(item), problem);
        vec_push(&pairs, (struct str_pair){ arena_str(arena, key), arena_str(arena, value) });
    }
    if (rc == 0) {
        struct str_pair *kept = arena_array(arena, struct str_pair, pairs.count);
        if (pairs.count) {
            memcpy(kept, pairs.items, pairs.count * sizeof *kept);
            qsort(kept, pairs.count, sizeof *kept, str_pair_order);
        }
        *out = (struct str_map){ kept, (uint32_t)pairs.count };
    }
    vec_done(&pairs);
    return rc;
}

static const char *const effect_names[] = { [EFFECT_NO_SCHEDULE] = "NoSchedule",
                                            [EFFECT_PREFER_NO_SCHEDULE] = "PreferNoSchedule",
                                            [EFFECT_NO_EXECUTE] = "NoExecute" };

/* "key=value:Effect", "key:Effect" */
static int parse_taint(struct arena *arena, struct str text, struct taint *out, struct err *err)
{
    struct str left, effect, key, value;
    *out = (struct taint){ 0 };
    if (!str_cut(str_trim(text), ':', &left, &effect))
        return err_set(err, ERR_INVALID, "taint %s: expected KEY=VALUE:EFFECT", STR_SHOWN(text));
    if (!str_cut(left, '=', &key, &value))
        value = STR("");
    for (size_t i = EFFECT_NO_SCHEDULE; i < KV_COUNT_OF(effect_names); i++)
        if (str_eqz(effect, effect_names[i]))
            out->effect = (uint8_t)i;
    const char *problem = label_key_problem(key);
    if (!problem)
        problem = label_value_problem(value);
    if (!problem && out->effect == EFFECT_ANY)
        problem = "its effect is none of NoSchedule, PreferNoSchedule and NoExecute";
    if (problem)
        return err_set(err, ERR_INVALID, "taint %s: %s", STR_SHOWN(text), problem);
    out->key = arena_str(arena, key);
    out->value = arena_str(arena, value);
    return 0;
}

int node_taints_parse(struct arena *arena, struct str text, struct node_view *out, struct err *err)
{
    VEC(struct taint) taints = { 0 };
    struct str rest = str_trim(text).len ? text : STR_NONE, item;
    int rc = 0;
    while (rc == 0 && next_item(&rest, &item)) {
        struct taint taint;
        rc = parse_taint(arena, item, &taint, err);
        for (size_t i = 0; rc == 0 && i < taints.count; i++)
            if (str_eq(taints.items[i].key, taint.key) && taints.items[i].effect == taint.effect)
                rc = err_set(err, ERR_INVALID, "taint %s: its key and effect are there twice",
                             STR_SHOWN(item));
        vec_push(&taints, taint);
    }
    if (rc == 0) {
        struct taint *kept = arena_array(arena, struct taint, taints.count);
        if (taints.count)
            memcpy(kept, taints.items, taints.count * sizeof *kept);
        out->taints.items = kept;
        out->taints.count = (uint32_t)taints.count;
    }
    vec_done(&taints);
    return rc;
}

/* --- the status --- */

static void push_address(struct json_build *b, json_mut *list, const char *type, struct str address)
{
    json_mut *o = json_new_object(b);
    json_set_str(b, o, "type", str_of(type));
    json_set_str(b, o, "address", address);
    json_push(b, list, o);
}

/* In a patch the list is replaced: it is merged by type otherwise, and a node has two InternalIPs. */
static json_mut *addresses_json(struct json_build *b, const struct node_view *view, bool patch)
{
    json_mut *list = json_new_array(b);
    if (patch) {
        json_mut *directive = json_new_object(b);
        json_set_str(b, directive, "$patch", STR("replace"));
        json_push(b, list, directive);
    }
    for (uint32_t i = 0; i < view->ips.count; i++)
        push_address(b, list, "InternalIP", view->ips.items[i]);
    push_address(b, list, "Hostname", view->name);
    return list;
}

static void set_time(struct json_build *b, json_mut *object, const char *key, int64_t us)
{
    char text[TIME_TEXT_MAX];
    time_format(us, text);
    json_set_str(b, object, key, str_of(text));
}

static json_mut *conditions_json(struct json_build *b, const struct node_view *view)
{
    json_mut *list = json_new_array(b);
    for (size_t i = 0; i < NODE_CONDITION_COUNT; i++) {
        const struct node_said_condition *c = &view->conditions[i];
        json_mut *o = json_new_object(b);
        json_set_str(b, o, "type", str_of(c->type));
        json_set_str(b, o, "status", c->status ? STR("True") : STR("False"));
        if (view->now_us) {
            set_time(b, o, "lastHeartbeatTime", view->now_us);
            set_time(b, o, "lastTransitionTime", c->since_us);
        }
        json_set_str(b, o, "reason", str_of(c->reason));
        json_set_str(b, o, "message", str_of(c->message));
        json_push(b, list, o);
    }
    return list;
}

static json_mut *info_json(struct json_build *b, const struct node_view *view)
{
    const struct node_machine *m = view->machine;
    json_mut *o = json_new_object(b);
    json_set_str(b, o, "machineID", m->machine_id);
    json_set_str(b, o, "systemUUID", m->system_uuid);
    json_set_str(b, o, "bootID", m->boot_id);
    json_set_str(b, o, "kernelVersion", m->kernel);
    json_set_str(b, o, "osImage", m->os_image);
    json_set_str(b, o, "containerRuntimeVersion", view->runtime_version);
    json_set_str(b, o, "kubeletVersion", view->kubelet_version);
    json_set_str(b, o, "kubeProxyVersion", STR(""));
    json_set_str(b, o, "operatingSystem", STR("linux"));
    json_set_str(b, o, "architecture", m->architecture);
    return o;
}

static json_mut *status_json(struct json_build *b, const struct node_view *view, bool patch)
{
    json_mut *status = json_new_object(b);
    json_set(b, status, STR("capacity"), resources_json(b, &view->machine->capacity));
    json_set(b, status, STR("allocatable"), resources_json(b, &view->machine->allocatable));
    json_set(b, status, STR("conditions"), conditions_json(b, view));
    json_set(b, status, STR("addresses"), addresses_json(b, view, patch));
    json_set(b, status, STR("nodeInfo"), info_json(b, view));
    return status;
}

json_mut *node_status_json(struct json_build *b, const struct node_view *view)
{
    json_mut *root = json_new_object(b);
    json_set(b, root, STR("status"), status_json(b, view, true));
    return root;
}

/* --- the whole --- */

static json_mut *taints_json(struct json_build *b, const struct node_view *view)
{
    json_mut *list = json_new_array(b);
    for (uint32_t i = 0; i < view->taints.count; i++) {
        const struct taint *taint = &view->taints.items[i];
        json_mut *o = json_new_object(b);
        json_set_str(b, o, "key", taint->key);
        if (taint->value.len)
            json_set_str(b, o, "value", taint->value);
        json_set_str(b, o, "effect", str_of(effect_names[taint->effect]));
        json_push(b, list, o);
    }
    return list;
}

json_mut *node_object_json(struct json_build *b, const struct node_view *view)
{
    json_mut *root = json_new_object(b);
    json_set_str(b, root, "apiVersion", STR("v1"));
    json_set_str(b, root, "kind", STR("Node"));
    json_mut *meta = json_mut_object(b, root, STR("metadata"));
    json_set_str(b, meta, "name", view->name);
    json_mut *labels = json_mut_object(b, meta, STR("labels"));
    for (uint32_t i = 0; i < view->labels.count; i++)
        json_set(b, labels, view->labels.items[i].key,
                 json_new_str(b, view->labels.items[i].value));
    json_set_str(b, json_mut_object(b, meta, STR("annotations")),
                 "volumes.kubernetes.io/controller-managed-attach-detach", STR("true"));
    json_mut *spec = json_mut_object(b, root, STR("spec"));
    if (view->provider_id.len)
        json_set_str(b, spec, "providerID", view->provider_id);
    if (view->taints.count)
        json_set(b, spec, STR("taints"), taints_json(b, view));
    json_set(b, root, STR("status"), status_json(b, view, false));
    return root;
}

/* What can happen to a world. Objects are applied as kubectl would: a field that was in the text applied
 * before and is not in this one is taken away, fields that others have written stay.
 */
#include "sim/world_impl.h"

#include "api/kinds.h"
#include "codec/json.h"

#include <stdio.h>

/* --- applying --- */

/* The merge patch that makes `new_` of what `last` has made. */
static json_mut *apply_patch(struct json_build *b, const json_val *last, const json_val *new_)
{
    json_mut *patch = json_new_object(b);
    json_each_member(last, key, value) {
        if (!json_get(new_, json_key(key)))
            json_set(b, patch, json_key(key), json_new_null(b));
    }
    json_each_member(new_, key, value) {
        const json_val *before = json_get(last, json_key(key));
        bool both = json_is_object(value) && json_is_object(before);
        json_set(b, patch, json_key(key),
                 both ? apply_patch(b, before, value) : json_copy(b, value));
    }
    return patch;
}

struct applying {
    struct object_ref ref;
    struct str key; /* of w->applied */
    struct str json;
    const json_val *root;
};

static int patch_there(struct world *w, const struct applying *a, struct err *err)
{
    struct str *last_text = str_table_get(&w->applied, a->key);
    AUTO_JSON_BUILD b = { 0 };
    AUTO_BUF text = { 0 };
    struct doc last = { 0 };
    json_build_init(&b);
    if (last_text && json_read_trusted(*last_text, &last, err) < 0)
        return -1;
    json_mut *patch = apply_patch(&b, last.root, a->root);
    json_mut_remove(patch, STR("status"));
    json_write_mut(patch, &text);
    doc_done(&last);
    return store_patch(w->parts.store, a->ref, (struct patch_options){ .type = PATCH_MERGE },
                       buf_str(&text), NULL, err);
}

/* As whoever reports about the object would have written it. */
static int patch_status(struct world *w, const struct applying *a, struct err *err)
{
    const json_val *status = json_get(a->root, STR("status"));
    if (!status || !a->ref.kind->has_status)
        return 0;
    AUTO_BUF text = { 0 };
    buf_addz(&text, "{\"status\":");
    json_write(status, &text);
    buf_addc(&text, '}');
    return store_patch(w->parts.store, a->ref,
                       (struct patch_options){ .type = PATCH_MERGE, .status = true },
                       buf_str(&text), NULL, err);
}

static int apply_one(struct world *w, const struct applying *a, struct err *err)
{
    AUTO_OBJECT made = NULL;
    int rc = store_create(w->parts.store, a->ref.kind, STR(""), a->json, &made, err);
    if (rc < 0 && (!err || err->kind != ERR_EXISTS))
        return -1;
    if (rc < 0 && patch_there(w, a, err) < 0)
        return -1;
    struct str *kept = arena_new(&w->arena, struct str);
    *kept = arena_str(&w->arena, a->json);
    str_table_put(&w->applied, a->key, kept);
    return a->ref.name.len ? patch_status(w, a, err) : 0;
}

int world_apply(struct world *w, struct str json, struct err *err)
{
    struct doc doc;
    struct err why = { 0 };
    if (json_read_trusted(json, &doc, err) < 0)
        return -1;
    const struct kind *kind = kind_find(json_str(json_get(doc.root, STR("apiVersion"))),
                                        json_str(json_get(doc.root, STR("kind"))));
    struct str name = json_str(json_path(doc.root, "metadata.name"));
    struct str namespace_ = json_str(json_path(doc.root, "metadata.namespace"));
    KV_ASSERT(kind != NULL); /* the scenario was checked */
    if (!kind->namespaced)
        namespace_ = STR("");
    else if (!namespace_.len)
        namespace_ = STR("default");
    AUTO_BUF key = { 0 };
    buf_addf(&key, "%s %.*s/%.*s", kind->name, STR_ARG(namespace_), STR_ARG(name));
    struct applying a = { .ref = { kind, namespace_, name.p ? name : STR("") },
                          .key = buf_str(&key),
                          .json = json,
                          .root = doc.root };
    int rc = apply_one(w, &a, &why);
    if (rc < 0)
        err_set(err, why.kind, "%s %.*s: %s", kind->name, STR_ARG(name), why.text);
    doc_done(&doc);
    return rc;
}

static int act_apply(struct world *w, const struct action *a, struct err *err)
{
    for (uint32_t i = 0; i < a->apply.object_count; i++) {
        if (world_apply(w, a->apply.objects[i], err) < 0)
            return -1;
    }
    return 0;
}

/* --- deleting and scaling --- */

static int act_scale(struct world *w, const struct action *a, struct err *err)
{
    char patch[64];
    int len = snprintf(patch, sizeof patch, "{\"spec\":{\"replicas\":%lld}}",
                       (long long)a->target.replicas);
    struct object_ref ref = { a->target.kind, a->target.namespace_, a->target.name };
    return store_patch(w->parts.store, ref, (struct patch_options){ .type = PATCH_MERGE },
                       (struct str){ patch, (size_t)len }, NULL, err);
}

static int delete_one(struct world *w, const struct object *object, struct err *err)
{
    struct object_ref ref = { object->kind, object->meta.namespace_, object->meta.name };
    return store_remove(w->parts.store, ref, NULL, err);
}

/* Of those that are not going already. */
static int delete_any(struct world *w, const struct action *a, struct err *err)
{
    struct object_list list;
    struct list_options options = { .namespace_ = a->target.namespace_ };
    if (store_list(w->parts.store, a->target.kind, &options, &list, err) < 0)
        return -1;
    VEC(const struct object *) alive = { 0 };
    for (size_t i = 0; i < list.count; i++) {
        if (!list.items[i]->meta.deleted_us)
            vec_push(&alive, list.items[i]);
    }
    int rc = 0;
    for (uint32_t n = 0; rc == 0 && n < a->target.any && alive.count; n++) {
        size_t ix = (size_t)rng_below(&w->luck, alive.count);
        rc = delete_one(w, alive.items[ix], err);
        alive.items[ix] = vec_last(&alive);
        alive.count--;
    }
    vec_done(&alive);
    object_list_done(&list);
    return rc;
}

static int act_delete(struct world *w, const struct action *a, struct err *err)
{
    if (!a->target.name.len)
        return delete_any(w, a, err);
    struct object_ref ref = { a->target.kind, a->target.namespace_, a->target.name };
    return store_remove(w->parts.store, ref, NULL, err);
}

/* --- the cloud and the control plane --- */

static bool matches(struct str want, struct str is)
{
    return !want.len || str_eq(want, is);
}

static void act_kill(struct world *w, const struct action *a)
{
    AUTO_ARENA arena = { 0 };
    uint32_t count, n = 0;
    const struct sim_instance *all = sim_cloud_instances(w->parts.cloud, &arena, &count);
    struct str *ids = arena_array(&arena, struct str, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct instance *one = &all[i].instance;
        if (all[i].state != SIM_ENDING && matches(a->kill.match.zone, one->zone) &&
            matches(a->kill.match.instance_type, one->instance_type) &&
            matches(a->kill.match.capacity_type, one->capacity_type))
            ids[n++] = arena_str(&arena, one->provider_id);
    }
    for (uint32_t i = 0; i < a->kill.count && n; i++) {
        uint32_t ix = (uint32_t)rng_below(&w->luck, n);
        sim_cloud_kill_instance(w->parts.cloud, ids[ix]);
        ids[ix] = ids[--n];
    }
}

static void act_crash(struct world *w, const struct action *a)
{
    if (a->crash.calls) {
        faults_die_at(w->parts.faults, faults_calls(w->parts.faults) + a->crash.calls,
                      a->crash.after_effect);
        return;
    }
    if (clock_mono_ns(w->parts.clock) < w->control_up_ns)
        return; /* there is no process, and the next one comes no later for it */
    faults_kill(w->parts.faults);
    world_bury_control(w);
}

static int act(struct world *w, const struct action *a, struct err *err)
{
    struct sim_cloud *cloud = w->parts.cloud;
    switch (a->kind) {
    case ACTION_SAY:
        return 0;
    case ACTION_APPLY:
        return act_apply(w, a, err);
    case ACTION_DELETE:
        return act_delete(w, a, err);
    case ACTION_SCALE:
        return act_scale(w, a, err);
    case ACTION_PRICE:
        sim_cloud_price(cloud, &a->offering.match, a->ends ? 1 : a->offering.factor);
        return 0;
    case ACTION_DROUGHT:
        sim_cloud_drought(cloud, &a->offering.match, !a->ends);
        return 0;
    case ACTION_OUTAGE:
        sim_cloud_outage(cloud, a->zone, !a->ends);
        return 0;
    case ACTION_BREAK:
        sim_cloud_break(cloud, a->broken.node_class, a->broken.what, !a->ends);
        return 0;
    case ACTION_KILL:
        act_kill(w, a);
        return 0;
    case ACTION_CRASH:
        act_crash(w, a);
        return 0;
    case ACTION_FAULTS:
        faults_set_rates(w->parts.faults, a->ends ? w->options.scenario->rates : a->rates);
        return 0;
    }
    KV_UNREACHABLE();
}

void world_act(struct world *w, const struct action *a)
{
    struct err err = { 0 };
    AUTO_BUF words = { 0 };
    action_words(a, &words);
    if (act(w, a, &err) < 0)
        buf_addf(&words, " (%s)", err.text);
    if (w->record)
        record_action(w->record, a->at_ns, buf_str(&words));
}

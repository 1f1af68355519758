/* How reconcilers write: through the port, and the answer is known here before anybody reads again. */
#include "control/control_impl.h"

int control_create(struct control *c, const struct kind *kind, struct str namespace_,
                   const json_mut *object, const struct object **maybe_out, struct err *err)
{
    AUTO_BUF text = { 0 };
    AUTO_OBJECT made = NULL;
    json_write_mut(object, &text);
    if (store_create(c->options.store, kind, namespace_, buf_str(&text), &made, err) < 0)
        return err_wrap(err, "creating a %s", kind->name);
    cluster_assume(c->cluster, made);
    if (maybe_out)
        *maybe_out = take(&made);
    return 0;
}

static struct object_ref ref_of(const struct object *object)
{
    return (struct object_ref){ object->kind, object->meta.namespace_, object->meta.name };
}

int control_patch(struct control *c, const struct object *of, bool status, bool locked,
                  const json_mut *patch, const struct object **maybe_out, struct err *err)
{
    AUTO_BUF text = { 0 };
    AUTO_OBJECT written = NULL;
    struct patch_options options = { .type = PATCH_MERGE,
                                     .status = status,
                                     .resource_version = locked ? of->meta.resource_version : 0 };
    json_write_mut(patch, &text);
    if (store_patch(c->options.store, ref_of(of), options, buf_str(&text), &written, err) < 0)
        return err_wrap(err, "patching %s %.*s", of->kind->name, STR_ARG(of->meta.name));
    /* The last finalizer of an object that is being deleted: that was its end. */
    if (written->meta.deleted_us && !written->meta.finalizers.count && of->meta.finalizers.count)
        cluster_assume_gone(c->cluster, written);
    else
        cluster_assume(c->cluster, written);
    if (maybe_out)
        *maybe_out = take(&written);
    return 0;
}

int control_patch_conditions(struct control *c, const struct object *of,
                             const struct condition_set *set, const struct object **maybe_out,
                             struct err *err)
{
    if (!conditions_changed(set)) {
        if (maybe_out)
            *maybe_out = object_ref(of);
        return 0;
    }
    AUTO_JSON_BUILD b;
    json_build_init(&b);
    json_mut *root = json_new_object(&b);
    json_set(&b, json_mut_object(&b, root, STR("status")), STR("conditions"),
             conditions_json(set, &b));
    return control_patch(c, of, true, true, root, maybe_out, err);
}

/* The answer to a deletion does not say what is left. With finalizers, or the grace of a pod, the object
 * stays for a while, and is read once more: else every reconciler would take it for one that nobody has
 * deleted until the event comes. If that fails, the event it is. */
static void see_removed(struct control *c, const struct object *of)
{
    AUTO_OBJECT left = NULL;
    struct err err = { 0 };
    if (!of->meta.finalizers.count && of->kind != &pod_kind)
        cluster_assume_gone(c->cluster, of);
    else if (store_get(c->options.store, ref_of(of), &left, &err) == 0)
        cluster_assume(c->cluster, left);
    else if (err.kind == ERR_NOT_FOUND)
        cluster_assume_gone(c->cluster, of);
}

int control_remove(struct control *c, const struct object *of, struct err *err)
{
    struct delete_options options = { .uid = of->meta.uid };
    if (of->meta.deleted_us)
        return 0;
    if (store_remove(c->options.store, ref_of(of), &options, err) < 0) {
        /* Another object of that name is not what we meant. */
        if (err->kind == ERR_NOT_FOUND || err->kind == ERR_CONFLICT)
            return 0;
        return err_wrap(err, "deleting %s %.*s", of->kind->name, STR_ARG(of->meta.name));
    }
    see_removed(c, of);
    return 0;
}

bool object_has_finalizer(const struct object *object, struct str finalizer)
{
    for (uint32_t i = 0; i < object->meta.finalizers.count; i++) {
        if (str_eq(object->meta.finalizers.items[i], finalizer))
            return true;
    }
    return false;
}

int control_set_finalizer(struct control *c, const struct object *of, struct str finalizer,
                          bool present, const struct object **maybe_out, struct err *err)
{
    if (object_has_finalizer(of, finalizer) == present) {
        if (maybe_out)
            *maybe_out = object_ref(of);
        return 0;
    }
    AUTO_JSON_BUILD b;
    json_build_init(&b);
    json_mut *root = json_new_object(&b), *list = json_new_array(&b);
    for (uint32_t i = 0; i < of->meta.finalizers.count; i++) {
        if (!str_eq(of->meta.finalizers.items[i], finalizer))
            json_push(&b, list, json_new_str(&b, of->meta.finalizers.items[i]));
    }
    if (present)
        json_push(&b, list, json_new_str(&b, finalizer));
    json_set(&b, json_mut_object(&b, root, STR("metadata")), STR("finalizers"), list);
    return control_patch(c, of, false, true, root, maybe_out, err);
}

struct outcome control_failed(struct control *c, const struct controller *who, struct str key,
                              const struct err *err)
{
    switch (err->kind) {
    case ERR_NONE:
        return outcome_done();
    case ERR_CANCELLED: /* we are shutting down, and a queue that is shut down drops it */
        return outcome_retry();
    case ERR_NOT_FOUND: /* of the key, or of something else on its way: the next try sees which */
    case ERR_CONFLICT:  /* somebody else wrote: by the next try we have read it */
    case ERR_EXISTS:
    case ERR_GONE:
        log_debug(c->log, "the world moved", LOG_Z("controller", who->name), LOG_STR("key", key),
                  LOG_ERR(err));
        return outcome_retry();
    case ERR_UNAVAILABLE:
    case ERR_THROTTLED:
    case ERR_CAPACITY:
        log_warn(c->log, "will try again", LOG_Z("controller", who->name), LOG_STR("key", key),
                 LOG_ERR(err));
        return outcome_retry();
    case ERR_INVALID:
    case ERR_DENIED:
    case ERR_INTERNAL:
        log_error(c->log, "failed", LOG_Z("controller", who->name), LOG_STR("key", key),
                  LOG_ERR(err));
        return outcome_retry();
    }
    KV_UNREACHABLE();
}

struct outcome outcome_sooner(struct outcome a, struct outcome b)
{
    if (a.kind == OUTCOME_RETRY || b.kind == OUTCOME_DONE)
        return a;
    if (b.kind == OUTCOME_RETRY || a.kind == OUTCOME_DONE)
        return b;
    return a.after_ns <= b.after_ns ? a : b;
}

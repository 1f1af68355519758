/* Mirror pods: what the API shows of static pods. Each static pod has one, of the same name, which says
 * whose it is by the hash of the manifest. It is made when it is missing, made anew when it is deleted or
 * another's, and deleted when its static pod is gone and has ended. It is never acted upon.
 */
#include "node/node_api_inner.h"

#define ANNOTATION_CONFIG_HASH "kubernetes.io/config.hash"
#define ANNOTATION_CONFIG_MIRROR "kubernetes.io/config.mirror"
#define RETRY_MAX_NS (10 * DURATION_SECOND)
#define ENDING_LOOK_NS (2 * DURATION_SECOND)

static void unref_all(const struct node_pod **items, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        node_pod_unref(items[i]);
    free(items);
}

void mirror_pods_set(struct node_api *api, const struct node_pod *const *pods, uint32_t count)
{
    struct mirror_pods *mirrors = &api->mirrors;
    const struct node_pod **items = kv_calloc(count ? count : 1, sizeof *items);
    for (uint32_t i = 0; i < count; i++)
        items[i] = node_pod_ref(pods[i]);
    pthread_mutex_lock(&mirrors->lock);
    const struct node_pod **old = mirrors->items;
    uint32_t old_count = mirrors->count;
    mirrors->items = items;
    mirrors->count = count;
    mirrors->seen = true;
    pthread_mutex_unlock(&mirrors->lock);
    unref_all(old, old_count);
    api_loop_wake(&api->source_loop);
}

void mirror_pods_done(struct mirror_pods *mirrors)
{
    unref_all(mirrors->items, mirrors->count);
    pthread_mutex_destroy(&mirrors->lock);
}

static struct str hash_of(const struct node_pod *pod)
{
    return str_map_get(&pod->annotations, STR(ANNOTATION_CONFIG_HASH));
}

static bool is_mirror_of(const struct object *object, struct str hash)
{
    return pod_is_mirror(pod_of(object)) && object->meta.deleted_us == 0 &&
           str_eq(str_map_get(&object->meta.annotations, STR(ANNOTATION_CONFIG_MIRROR)), hash);
}

const struct object *mirror_pods_find(struct node_api *api, struct str namespace_, struct str name,
                                      struct str hash)
{
    AUTO_OBJECT object = informer_get(api->source.informer, namespace_, name);
    return object && is_mirror_of(object, hash) ? take(&object) : NULL;
}

/* --- making and removing --- */

static void mirror_json(struct node_api *api, const struct node_pod *pod, struct str node_uid_,
                        struct buf *out)
{
    AUTO_JSON_BUILD b = { 0 };
    json_build_init(&b);
    json_mut *root = json_copy(&b, pod->doc.root);
    json_mut *meta = json_mut_object(&b, root, STR("metadata"));
    json_mut *owners = json_new_array(&b), *owner = json_new_object(&b);
    json_mut_remove(meta, STR("uid"));
    json_mut_remove(meta, STR("resourceVersion"));
    json_mut_remove(meta, STR("creationTimestamp"));
    json_mut_remove(root, STR("status"));
    json_set_str(&b, json_mut_object(&b, meta, STR("annotations")), ANNOTATION_CONFIG_MIRROR,
                 hash_of(pod));
    json_set_str(&b, owner, "apiVersion", STR("v1"));
    json_set_str(&b, owner, "kind", STR("Node"));
    json_set_str(&b, owner, "name", api->node_name);
    json_set_str(&b, owner, "uid", node_uid_);
    json_set_bool(&b, owner, "controller", true);
    json_push(&b, owners, owner);
    json_set(&b, meta, STR("ownerReferences"), owners);
    json_write_mut(root, out);
}

static int remove_mirror(struct node_api *api, const struct object *mirror, struct err *err)
{
    struct object_ref ref = { &pod_kind, mirror->meta.namespace_, mirror->meta.name };
    struct delete_options options = { .uid = mirror->meta.uid, .grace_s = { 0, true } };
    int rc = store_remove(api->opts.store, ref, &options, err);
    return rc < 0 && (err->kind == ERR_NOT_FOUND || err->kind == ERR_CONFLICT) ? 0 : rc;
}

/* One step towards its mirror; the next comes when the informer has seen this one. */
static int mirror_one(struct node_api *api, const struct node_pod *pod, struct err *err)
{
    AUTO_ARENA arena = { 0 };
    AUTO_BUF text = { 0 };
    AUTO_OBJECT there = informer_get(api->source.informer, pod->namespace_, pod->name);
    if (there && is_mirror_of(there, hash_of(pod)))
        return 0;
    if (there && !pod_is_mirror(pod_of(there)))
        return err_set(err, ERR_EXISTS, "a pod of the API's has the name of a static pod");
    if (there)
        return remove_mirror(api, there, err);
    struct str uid = node_uid(api, &arena);
    if (!uid.len)
        return 0; /* no Node, no mirrors; a new Node wakes us */
    mirror_json(api, pod, uid, &text);
    int rc = store_create(api->opts.store, &pod_kind, pod->namespace_, buf_str(&text), NULL, err);
    return rc < 0 && err->kind == ERR_EXISTS ? 0 : rc;
}

static bool has_name(const struct node_pod *const *pods, uint32_t count,
                     const struct object *mirror)
{
    for (uint32_t i = 0; i < count; i++)
        if (str_eq(pods[i]->name, mirror->meta.name) &&
            str_eq(pods[i]->namespace_, mirror->meta.namespace_))
            return true;
    return false;
}

/* Mirrors of static pods that there are no more, once they have told their end. */
static int remove_orphans(struct node_api *api, const struct node_pod *const *pods, uint32_t count,
                          bool *ending, struct err *err)
{
    struct object_list list;
    int rc = 0;
    informer_list(api->source.informer, STR(""), &list);
    for (size_t i = 0; i < list.count && rc == 0; i++) {
        const struct object *mirror = list.items[i];
        struct str hash = str_map_get(&mirror->meta.annotations, STR(ANNOTATION_CONFIG_MIRROR));
        if (!pod_is_mirror(pod_of(mirror)) || has_name(pods, count, mirror))
            continue;
        if (status_writer_living(api, hash)) /* the hash is the static pod's uid */
            *ending = true;
        else
            rc = remove_mirror(api, mirror, err);
    }
    object_list_done(&list);
    return rc;
}

int64_t mirror_pods_step(struct node_api *api)
{
    struct mirror_pods *mirrors = &api->mirrors;
    AUTO_ARENA arena = { 0 };
    int64_t now_ns = clock_mono_ns(api->opts.clock);
    pthread_mutex_lock(&mirrors->lock);
    bool seen = mirrors->seen;
    uint32_t count = mirrors->count;
    const struct node_pod **pods = arena_array(&arena, const struct node_pod *, count);
    for (uint32_t i = 0; i < count; i++)
        pods[i] = node_pod_ref(mirrors->items[i]);
    pthread_mutex_unlock(&mirrors->lock);

    bool failed = false, ending = false;
    struct err err;
    for (uint32_t i = 0; i < count; i++) {
        if (mirror_one(api, pods[i], &err) < 0) {
            failed = true;
            log_warn(api->opts.log, "a static pod has no mirror", LOG_STR("pod", pods[i]->name),
                     LOG_ERR(&err));
        }
    }
    if (seen && remove_orphans(api, pods, count, &ending, &err) < 0) {
        failed = true;
        log_warn(api->opts.log, "a mirror pod is not removed", LOG_ERR(&err));
    }
    if (seen)
        status_writer_statics(api, pods, count);
    for (uint32_t i = 0; i < count; i++)
        node_pod_unref(pods[i]);
    if (failed)
        return now_ns + api_backoff_next(&mirrors->backoff, api->opts.retry_ns, RETRY_MAX_NS);
    mirrors->backoff.failures = 0;
    return ending ? now_ns + ENDING_LOOK_NS : INT64_MAX;
}

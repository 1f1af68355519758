/* What shall be in a configMap, secret, downwardAPI or projected volume. Sources are taken in their
 * order; where two give the same path, the later one wins. Paths and keys come from manifests and
 * objects: one that would leave the volume, or that takes a name of ours (..data), is refused.
 */
#include "node/volumes_inner.h"

#include "codec/base64.h"

struct gathering {
    struct arena *arena;
    const struct node_pod *pod;
    const struct node_volume *volume;
    const struct node_facts *facts;
    const struct object_source *objects;
    struct volume_files *files;
    size_t bytes;
    struct err *err;
};

/* --- objects --- */

int object_fetch(const struct object_source *objects, bool secret, struct str namespace_,
                 struct str name, struct doc *out, struct err *err)
{
    int (*fetch)(void *, struct str, struct str, struct doc *, struct err *) =
        secret ? objects->secret : objects->config_map;
    const char *kind = secret ? "secret" : "configmap";
    if (!fetch)
        return err_set(err, ERR_UNAVAILABLE, "%s %s: needs an API server", kind, STR_SHOWN(name));
    if (fetch(objects->ctx, namespace_, name, out, err) < 0)
        return err_wrap(err, "%s %s", kind, STR_SHOWN(name));
    return 0;
}

static int decode(struct str key, struct str text, struct arena *arena, struct str *out,
                  struct err *err)
{
    AUTO_BUF bytes = { 0 };
    if (base64_decode(text, &bytes, err) < 0)
        return err_wrap(err, "key %s", STR_SHOWN(key));
    *out = arena_str(arena, buf_str(&bytes));
    return 1;
}

int object_value(const struct doc *object, bool secret, bool binary, struct str key,
                 struct arena *arena, struct str *out, struct err *err)
{
    struct str text = json_str(json_get(json_get(object->root, STR("data")), key));
    if (text.p && secret)
        return decode(key, text, arena, out, err);
    if (text.p) {
        *out = arena_str(arena, text);
        return 1;
    }
    text = json_str(json_get(json_get(object->root, STR("binaryData")), key));
    return text.p && binary && !secret ? decode(key, text, arena, out, err) : 0;
}

/* --- gathering --- */

static int add_file(struct gathering *g, struct str path, struct str content, struct maybe_int mode)
{
    if (!host_path_inside(path) || str_starts(path, STR("..")))
        return err_set(g->err, ERR_INVALID, "path %s: this would leave the volume",
                       STR_SHOWN(path));
    g->bytes += content.len;
    if (g->bytes > VOLUME_CONTENT_BYTES_MAX || g->files->items.count >= VOLUME_CONTENT_FILES_MAX)
        return err_set(g->err, ERR_INVALID, "more than %zu MiB or %d files",
                       VOLUME_CONTENT_BYTES_MAX >> 20, VOLUME_CONTENT_FILES_MAX);

    int64_t bits = mode.set ? mode.value : g->volume->default_mode;
    struct volume_file file = { .path = arena_str(g->arena, path),
                                .content = content,
                                .mode = (mode_t)(bits & 0777) };
    vec_each(&g->files->items, struct volume_file, earlier) {
        if (str_eq(earlier->path, path)) {
            *earlier = file;
            return 0;
        }
    }
    vec_push(&g->files->items, file);
    return 0;
}

static int add_key(struct gathering *g, const struct doc *object, bool secret, struct str key,
                   struct str path, struct maybe_int mode, bool optional)
{
    struct str value;
    int found = object_value(object, secret, true, key, g->arena, &value, g->err);
    if (found < 0 || (found == 0 && optional))
        return found;
    if (found == 0)
        return err_set(g->err, ERR_NOT_FOUND, "it has no key %s", STR_SHOWN(key));
    return add_file(g, path, value, mode);
}

static int add_every_key(struct gathering *g, const struct doc *object, bool secret)
{
    static const char *const parts[] = { "data", "binaryData" };
    for (size_t i = 0; i < KV_COUNT_OF(parts); i++) {
        json_each_member(json_get(object->root, str_of(parts[i])), key, value) {
            if (add_key(g, object, secret, json_key(key), json_key(key), (struct maybe_int){ 0 },
                        true) < 0)
                return -1;
        }
    }
    return 0;
}

static int add_object(struct gathering *g, const struct volume_source *source)
{
    bool secret = source->kind == NODE_VOLUME_SECRET;
    struct err why = { 0 };
    struct doc object = { 0 };
    if (object_fetch(g->objects, secret, g->pod->namespace_, source->object, &object, &why) < 0) {
        if (source->optional && why.kind == ERR_NOT_FOUND)
            return 0;
        return err_set(g->err, why.kind, "%s", why.text);
    }
    int rc = source->items.count == 0 ? add_every_key(g, &object, secret) : 0;
    for (uint32_t i = 0; rc == 0 && i < source->items.count; i++) {
        const struct key_path *item = &source->items.items[i];
        rc = add_key(g, &object, secret, item->key, item->path, item->mode, source->optional);
    }
    doc_done(&object);
    return rc < 0 ? err_wrap(g->err, "%s %s", secret ? "secret" : "configmap",
                             STR_SHOWN(source->object))
                  : 0;
}

static int add_downward(struct gathering *g, const struct downward_item *item)
{
    struct str value;
    if (item->field_path.len > 0) {
        if (!downward_field(g->pod, g->facts, item->field_path, g->arena, &value))
            return err_set(g->err, ERR_INVALID, "field %s: there is no such field",
                           STR_SHOWN(item->field_path));
        return add_file(g, item->path, value, item->mode);
    }
    const struct node_container *container = node_pod_container(g->pod, item->container);
    if (!container)
        return err_set(g->err, ERR_INVALID, "container %s: the pod has none of that name",
                       STR_SHOWN(item->container));
    if (!downward_resource(container, g->facts, item->resource, item->divisor, g->arena, &value))
        return err_set(g->err, ERR_INVALID, "resource %s: unknown, or divided by what is not one",
                       STR_SHOWN(item->resource));
    return add_file(g, item->path, value, item->mode);
}

static int add_token(struct gathering *g, const struct volume_source *source)
{
    const struct node_pod *pod = g->pod;
    if (!g->objects->token)
        return err_set(g->err, ERR_UNAVAILABLE, "service account token: needs an API server");
    AUTO_BUF token = { 0 };
    if (g->objects->token(g->objects->ctx, pod->namespace_, pod->service_account, pod->name,
                          pod->uid, source->token_audience, source->token_expiration_s, &token,
                          g->err) < 0)
        return err_wrap(g->err, "service account token");
    /* With a group of its own the token is not for everybody. */
    struct maybe_int mode = { 0600, pod->fs_group.set };
    return add_file(g, source->token_path, arena_str(g->arena, buf_str(&token)), mode);
}

int volume_content(struct arena *arena, const struct node_pod *pod,
                   const struct node_volume *volume, const struct node_facts *facts,
                   const struct object_source *objects, struct volume_files *out, struct err *err)
{
    struct gathering g = { arena, pod, volume, facts, objects, out, 0, err };
    for (uint32_t i = 0; i < volume->sources.count; i++) {
        const struct volume_source *source = &volume->sources.items[i];
        if ((source->kind == NODE_VOLUME_CONFIG_MAP || source->kind == NODE_VOLUME_SECRET) &&
            add_object(&g, source) < 0)
            return -1;
        for (uint32_t k = 0; k < source->downward.count; k++) {
            if (add_downward(&g, &source->downward.items[k]) < 0)
                return -1;
        }
        if (source->token_path.len > 0 && add_token(&g, source) < 0)
            return -1;
    }
    return 0;
}

/* store/store.c - calls through the port: defaults filled in, results that nobody wants dropped. */
#include "store/store.h"

void object_list_done(struct object_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        object_unref(list->items[i]);
    free(list->items);
    free(list->continue_);
    for (size_t i = 0; i < list->unreadable_count; i++) {
        free(list->unreadable[i].namespace_);
        free(list->unreadable[i].name);
    }
    free(list->unreadable);
    *list = (struct object_list){ 0 };
}

int watch_next(struct watch *watch, struct watch_event *out, struct err *err)
{
    return watch->next(watch, out, err);
}

bool watch_quiet(struct watch *watch)
{
    return watch->quiet && watch->quiet(watch);
}

void watch_close(struct watch *watch)
{
    if (watch)
        watch->close(watch);
}

int store_get(const struct store *s, struct object_ref ref, const struct object **out,
              struct err *err)
{
    AUTO_OBJECT object = NULL;

    if (s->ops->get(s->ctx, ref, &object, err) < 0)
        return -1;
    if (out)
        *out = take(&object);
    return 0;
}

int store_get_json(const struct store *s, struct object_ref ref, struct buf *out, struct err *err)
{
    if (!s->ops->get_json)
        return err_set(err, ERR_INTERNAL, "this store does not show objects as text");
    return s->ops->get_json(s->ctx, ref, out, err);
}

int store_post(const struct store *s, struct object_ref ref, const char *subresource,
               struct str json, struct buf *out, struct err *err)
{
    if (!s->ops->post)
        return err_set(err, ERR_INTERNAL, "this store has no %s/%s", ref.kind->plural, subresource);
    return s->ops->post(s->ctx, ref, subresource, json, out, err);
}

uint64_t store_version(const struct store *s)
{
    return s->ops->version ? s->ops->version(s->ctx) : 0;
}

int store_list(const struct store *s, const struct kind *kind, const struct list_options *opts,
               struct object_list *out, struct err *err)
{
    return s->ops->list(s->ctx, kind, opts ? opts : &(struct list_options){ 0 }, out, err);
}

int store_watch(const struct store *s, const struct kind *kind, const struct watch_options *opts,
                struct watch **out, struct err *err)
{
    return s->ops->watch(s->ctx, kind, opts ? opts : &(struct watch_options){ 0 }, out, err);
}

int store_create(const struct store *s, const struct kind *kind, struct str namespace_,
                 struct str json, const struct object **out, struct err *err)
{
    return s->ops->create(s->ctx, kind, namespace_, json, out, err);
}

int store_patch(const struct store *s, struct object_ref ref, struct patch_options opts,
                struct str patch, const struct object **out, struct err *err)
{
    return s->ops->patch(s->ctx, ref, opts, patch, out, err);
}

int store_remove(const struct store *s, struct object_ref ref, const struct delete_options *opts,
                 struct err *err)
{
    return s->ops->remove(s->ctx, ref, opts ? opts : &(struct delete_options){ 0 }, err);
}

int store_evict(const struct store *s, struct str namespace_, struct str pod,
                const struct delete_options *opts, struct err *err)
{
    return s->ops->evict(s->ctx, namespace_, pod, opts ? opts : &(struct delete_options){ 0 }, err);
}

int store_bind(const struct store *s, struct str namespace_, struct str pod, struct str node,
               struct err *err)
{
    return s->ops->bind(s->ctx, namespace_, pod, node, err);
}

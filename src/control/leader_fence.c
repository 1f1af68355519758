/* What stands between a leader and those who act in its name. Each write asks whether the lead is held
 * at this moment; a read never does: it hurts nobody.
 */
#include "control/leader_inner.h"

#include "cloud/provider_forward.h"

struct leader_fence {
    struct provider_forward forward; /* of a provider; first */
    struct store port;               /* of a store */
    const struct store *inner;
    struct leader *leader;
    struct leader_fence *next;
};

static struct leader_fence *fence_new(struct leader *l)
{
    struct leader_fence *f = kv_calloc(1, sizeof *f), **first = leader_fences(l);
    f->leader = l;
    f->next = *first;
    *first = f;
    return f;
}

void leader_fences_free(struct leader_fence *first)
{
    while (first) {
        struct leader_fence *next = first->next;
        free(first);
        first = next;
    }
}

static int check(const struct leader_fence *f, struct err *err)
{
    if (leader_holds(f->leader))
        return 0;
    return err_set(err, ERR_CANCELLED, "this process is not the leader (any more)");
}

/* --- a store --- */

static int fenced_get(void *ctx, struct object_ref ref, const struct object **out, struct err *err)
{
    const struct leader_fence *f = ctx;
    return store_get(f->inner, ref, out, err);
}

static int fenced_list(void *ctx, const struct kind *kind, const struct list_options *opts,
                       struct object_list *out, struct err *err)
{
    const struct leader_fence *f = ctx;
    return store_list(f->inner, kind, opts, out, err);
}

static int fenced_watch(void *ctx, const struct kind *kind, const struct watch_options *opts,
                        struct watch **out, struct err *err)
{
    const struct leader_fence *f = ctx;
    return store_watch(f->inner, kind, opts, out, err);
}

static int fenced_create(void *ctx, const struct kind *kind, struct str namespace_, struct str json,
                         const struct object **out, struct err *err)
{
    const struct leader_fence *f = ctx;
    return check(f, err) < 0 ? -1 : store_create(f->inner, kind, namespace_, json, out, err);
}

static int fenced_patch(void *ctx, struct object_ref ref, struct patch_options opts,
                        struct str patch, const struct object **out, struct err *err)
{
    const struct leader_fence *f = ctx;
    return check(f, err) < 0 ? -1 : store_patch(f->inner, ref, opts, patch, out, err);
}

static int fenced_remove(void *ctx, struct object_ref ref, const struct delete_options *opts,
                         struct err *err)
{
    const struct leader_fence *f = ctx;
    return check(f, err) < 0 ? -1 : store_remove(f->inner, ref, opts, err);
}

static int fenced_evict(void *ctx, struct str namespace_, struct str pod,
                        const struct delete_options *opts, struct err *err)
{
    const struct leader_fence *f = ctx;
    return check(f, err) < 0 ? -1 : store_evict(f->inner, namespace_, pod, opts, err);
}

static int fenced_bind(void *ctx, struct str namespace_, struct str pod, struct str node,
                       struct err *err)
{
    const struct leader_fence *f = ctx;
    return check(f, err) < 0 ? -1 : store_bind(f->inner, namespace_, pod, node, err);
}

static int fenced_get_json(void *ctx, struct object_ref ref, struct buf *out, struct err *err)
{
    const struct leader_fence *f = ctx;
    return store_get_json(f->inner, ref, out, err);
}

static uint64_t fenced_version(void *ctx)
{
    const struct leader_fence *f = ctx;
    return store_version(f->inner);
}

static int fenced_post(void *ctx, struct object_ref ref, const char *subresource, struct str json,
                       struct buf *out, struct err *err)
{
    const struct leader_fence *f = ctx;
    return check(f, err) < 0 ? -1 : store_post(f->inner, ref, subresource, json, out, err);
}

static const struct store_ops fenced_ops = {
    .get = fenced_get,
    .list = fenced_list,
    .watch = fenced_watch,
    .create = fenced_create,
    .patch = fenced_patch,
    .remove = fenced_remove,
    .evict = fenced_evict,
    .bind = fenced_bind,
    .get_json = fenced_get_json,
    .version = fenced_version,
    .post = fenced_post,
};

const struct store *leader_store(struct leader *l, const struct store *inner)
{
    struct leader_fence *f = fence_new(l);
    f->inner = inner;
    f->port = (struct store){ &fenced_ops, f };
    return &f->port;
}

/* --- a provider --- */

static int fenced_launch(void *ctx, const struct nodeclaim *claim, struct arena *arena,
                         struct instance *out, struct launch_failure *why, struct err *err)
{
    const struct leader_fence *f = ctx;
    const struct cloud_provider *inner = f->forward.inner;
    *why = (struct launch_failure){ .kind = LAUNCH_OTHER };
    return check(f, err) < 0 ? -1 : inner->create(inner->ctx, claim, arena, out, why, err);
}

static int fenced_terminate(void *ctx, const struct nodeclaim *claim, struct err *err)
{
    const struct leader_fence *f = ctx;
    const struct cloud_provider *inner = f->forward.inner;
    return check(f, err) < 0 ? -1 : inner->delete_(inner->ctx, claim, err);
}

const struct cloud_provider *leader_provider(struct leader *l, const struct cloud_provider *inner)
{
    struct leader_fence *f = fence_new(l);
    provider_forward_init(&f->forward, inner);
    f->forward.port.create = fenced_launch;
    f->forward.port.delete_ = fenced_terminate;
    return &f->forward.port;
}

#include "cloud/provider_forward.h"

static int get_instance_types(void *ctx, const struct nodepool *pool,
                              const struct instance_types **out, struct err *err)
{
    const struct cloud_provider *inner = ((struct provider_forward *)ctx)->inner;
    return inner->get_instance_types(inner->ctx, pool, out, err);
}

static int get_generation(void *ctx, const struct nodepool *pool, struct generation *out,
                          struct err *err)
{
    const struct cloud_provider *inner = ((struct provider_forward *)ctx)->inner;
    return inner->get_generation(inner->ctx, pool, out, err);
}

static int create(void *ctx, const struct nodeclaim *claim, struct arena *arena,
                  struct instance *out, struct launch_failure *why, struct err *err)
{
    const struct cloud_provider *inner = ((struct provider_forward *)ctx)->inner;
    return inner->create(inner->ctx, claim, arena, out, why, err);
}

static int delete_(void *ctx, const struct nodeclaim *claim, struct err *err)
{
    const struct cloud_provider *inner = ((struct provider_forward *)ctx)->inner;
    return inner->delete_(inner->ctx, claim, err);
}

static int get(void *ctx, struct str provider_id, struct arena *arena, struct instance *out,
               struct err *err)
{
    const struct cloud_provider *inner = ((struct provider_forward *)ctx)->inner;
    return inner->get(inner->ctx, provider_id, arena, out, err);
}

static int list(void *ctx, struct arena *arena, struct instances *out, struct err *err)
{
    const struct cloud_provider *inner = ((struct provider_forward *)ctx)->inner;
    return inner->list(inner->ctx, arena, out, err);
}

static int is_drifted(void *ctx, const struct nodeclaim *claim, const char **reason,
                      struct err *err)
{
    const struct cloud_provider *inner = ((struct provider_forward *)ctx)->inner;
    return inner->is_drifted(inner->ctx, claim, reason, err);
}

void provider_forward_init(struct provider_forward *f, const struct cloud_provider *inner)
{
    f->inner = inner;
    f->port = *inner; /* name, node classes and repair policies are constants */
    f->port.get_instance_types = get_instance_types;
    f->port.get_generation = get_generation;
    f->port.create = create;
    f->port.delete_ = delete_;
    f->port.get = get;
    f->port.list = list;
    f->port.is_drifted = is_drifted;
    f->port.ctx = f;
}

/* The simulated cloud has one thread; the control plane has many. One lock around every call makes
 * them agree. Calls of the simulated cloud never wait, so neither does the lock for long. */
#include "cmd/controller_inner.h"

static struct locked_provider *enter(void *ctx)
{
    struct locked_provider *p = ctx;
    pthread_mutex_lock(p->mutex);
    return p;
}

static int leave(struct locked_provider *p, int rc)
{
    pthread_mutex_unlock(p->mutex);
    return rc;
}

static int get_instance_types(void *ctx, const struct nodepool *pool,
                              const struct instance_types **out, struct err *err)
{
    struct locked_provider *p = enter(ctx);
    return leave(p, p->inner->get_instance_types(p->inner->ctx, pool, out, err));
}

static int get_generation(void *ctx, const struct nodepool *pool, struct generation *out,
                          struct err *err)
{
    struct locked_provider *p = enter(ctx);
    return leave(p, p->inner->get_generation(p->inner->ctx, pool, out, err));
}

static int create(void *ctx, const struct nodeclaim *claim, struct arena *arena,
                  struct instance *out, struct launch_failure *why, struct err *err)
{
    struct locked_provider *p = enter(ctx);
    return leave(p, p->inner->create(p->inner->ctx, claim, arena, out, why, err));
}

static int delete_(void *ctx, const struct nodeclaim *claim, struct err *err)
{
    struct locked_provider *p = enter(ctx);
    return leave(p, p->inner->delete_(p->inner->ctx, claim, err));
}

static int get(void *ctx, struct str provider_id, struct arena *arena, struct instance *out,
               struct err *err)
{
    struct locked_provider *p = enter(ctx);
    return leave(p, p->inner->get(p->inner->ctx, provider_id, arena, out, err));
}

static int list(void *ctx, struct arena *arena, struct instances *out, struct err *err)
{
    struct locked_provider *p = enter(ctx);
    return leave(p, p->inner->list(p->inner->ctx, arena, out, err));
}

static int is_drifted(void *ctx, const struct nodeclaim *claim, const char **reason,
                      struct err *err)
{
    struct locked_provider *p = enter(ctx);
    return leave(p, p->inner->is_drifted(p->inner->ctx, claim, reason, err));
}

void locked_provider_init(struct locked_provider *p, const struct cloud_provider *inner,
                          pthread_mutex_t *mutex)
{
    p->inner = inner;
    p->mutex = mutex;
    p->port = *inner; /* name, node classes and repair policies are constants */
    p->port.get_instance_types = get_instance_types;
    p->port.get_generation = get_generation;
    p->port.create = create;
    p->port.delete_ = delete_;
    p->port.get = get;
    p->port.list = list;
    p->port.is_drifted = is_drifted;
    p->port.ctx = p;
}

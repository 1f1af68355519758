#include "control/metered.h"

#include "cloud/provider_forward.h"

struct metered {
    struct provider_forward forward; /* first */
    const struct clock *clock;
    const struct control_metrics *metrics;
};

static _Thread_local const char *caller = "";

void metered_set_caller(const char *controller)
{
    caller = controller;
}

static void told(struct metered *m, const char *method, int64_t began_ns, int rc,
                 const struct err *err)
{
    double seconds = (double)(clock_mono_ns(m->clock) - began_ns) / 1e9;
    metric_observe_in(m->metrics->cloud_duration, seconds, str_of(caller), str_of(method),
                      str_of(m->forward.port.name));
    if (rc < 0 && err->kind != ERR_NOT_FOUND)
        metric_count(m->metrics->cloud_errors, str_of(caller), str_of(method),
                     str_of(m->forward.port.name), str_of(err_kind_name(err->kind)));
}

static int get_instance_types(void *ctx, const struct nodepool *pool,
                              const struct instance_types **out, struct err *err)
{
    struct metered *m = ctx;
    const struct cloud_provider *inner = m->forward.inner;
    int64_t began = clock_mono_ns(m->clock);
    int rc = inner->get_instance_types(inner->ctx, pool, out, err);
    told(m, "GetInstanceTypes", began, rc, err);
    return rc;
}

static int create(void *ctx, const struct nodeclaim *claim, struct arena *arena,
                  struct instance *out, struct launch_failure *why, struct err *err)
{
    struct metered *m = ctx;
    const struct cloud_provider *inner = m->forward.inner;
    int64_t began = clock_mono_ns(m->clock);
    int rc = inner->create(inner->ctx, claim, arena, out, why, err);
    told(m, "Create", began, rc, err);
    return rc;
}

static int delete_(void *ctx, const struct nodeclaim *claim, struct err *err)
{
    struct metered *m = ctx;
    const struct cloud_provider *inner = m->forward.inner;
    int64_t began = clock_mono_ns(m->clock);
    int rc = inner->delete_(inner->ctx, claim, err);
    told(m, "Delete", began, rc, err);
    return rc;
}

static int get(void *ctx, struct str provider_id, struct arena *arena, struct instance *out,
               struct err *err)
{
    struct metered *m = ctx;
    const struct cloud_provider *inner = m->forward.inner;
    int64_t began = clock_mono_ns(m->clock);
    int rc = inner->get(inner->ctx, provider_id, arena, out, err);
    told(m, "Get", began, rc, err);
    return rc;
}

static int list(void *ctx, struct arena *arena, struct instances *out, struct err *err)
{
    struct metered *m = ctx;
    const struct cloud_provider *inner = m->forward.inner;
    int64_t began = clock_mono_ns(m->clock);
    int rc = inner->list(inner->ctx, arena, out, err);
    told(m, "List", began, rc, err);
    return rc;
}

static int is_drifted(void *ctx, const struct nodeclaim *claim, const char **reason,
                      struct err *err)
{
    struct metered *m = ctx;
    const struct cloud_provider *inner = m->forward.inner;
    int64_t began = clock_mono_ns(m->clock);
    int rc = inner->is_drifted(inner->ctx, claim, reason, err);
    told(m, "IsDrifted", began, rc, err);
    return rc;
}

struct metered *metered_new(const struct cloud_provider *provider, const struct clock *clock,
                            const struct control_metrics *metrics)
{
    struct metered *m = kv_calloc(1, sizeof *m);
    m->clock = clock;
    m->metrics = metrics;
    /* get_generation passes as it is: read on every use of a type, it is a few loads. */
    provider_forward_init(&m->forward, provider);
    struct cloud_provider *port = &m->forward.port;
    port->get_instance_types = get_instance_types;
    port->create = create;
    port->delete_ = delete_;
    port->get = get;
    port->list = list;
    port->is_drifted = is_drifted;
    return m;
}

void metered_free(struct metered *m)
{
    free(m);
}

const struct cloud_provider *metered_provider(struct metered *m)
{
    return &m->forward.port;
}

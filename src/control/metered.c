#include "control/metered.h"

struct metered {
    const struct cloud_provider *inner;
    const struct clock *clock;
    const struct control_metrics *metrics;
    struct cloud_provider port;
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
                      str_of(m->inner->name));
    if (rc < 0 && err->kind != ERR_NOT_FOUND)
        metric_count(m->metrics->cloud_errors, str_of(caller), str_of(method),
                     str_of(m->inner->name), str_of(err_kind_name(err->kind)));
}

static int get_instance_types(void *ctx, const struct nodepool *pool,
                              const struct instance_types **out, struct err *err)
{
    struct metered *m = ctx;
    int64_t began = clock_mono_ns(m->clock);
    int rc = m->inner->get_instance_types(m->inner->ctx, pool, out, err);
    told(m, "GetInstanceTypes", began, rc, err);
    return rc;
}

/* Read on every use of a type: nothing is measured, it is a few loads. */
static int get_generation(void *ctx, const struct nodepool *pool, struct generation *out,
                          struct err *err)
{
    struct metered *m = ctx;
    return m->inner->get_generation(m->inner->ctx, pool, out, err);
}

static int create(void *ctx, const struct nodeclaim *claim, struct arena *arena,
                  struct instance *out, struct launch_failure *why, struct err *err)
{
    struct metered *m = ctx;
    int64_t began = clock_mono_ns(m->clock);
    int rc = m->inner->create(m->inner->ctx, claim, arena, out, why, err);
    told(m, "Create", began, rc, err);
    return rc;
}

static int delete_(void *ctx, const struct nodeclaim *claim, struct err *err)
{
    struct metered *m = ctx;
    int64_t began = clock_mono_ns(m->clock);
    int rc = m->inner->delete_(m->inner->ctx, claim, err);
    told(m, "Delete", began, rc, err);
    return rc;
}

static int get(void *ctx, struct str provider_id, struct arena *arena, struct instance *out,
               struct err *err)
{
    struct metered *m = ctx;
    int64_t began = clock_mono_ns(m->clock);
    int rc = m->inner->get(m->inner->ctx, provider_id, arena, out, err);
    told(m, "Get", began, rc, err);
    return rc;
}

static int list(void *ctx, struct arena *arena, struct instances *out, struct err *err)
{
    struct metered *m = ctx;
    int64_t began = clock_mono_ns(m->clock);
    int rc = m->inner->list(m->inner->ctx, arena, out, err);
    told(m, "List", began, rc, err);
    return rc;
}

static int is_drifted(void *ctx, const struct nodeclaim *claim, const char **reason,
                      struct err *err)
{
    struct metered *m = ctx;
    int64_t began = clock_mono_ns(m->clock);
    int rc = m->inner->is_drifted(m->inner->ctx, claim, reason, err);
    told(m, "IsDrifted", began, rc, err);
    return rc;
}

struct metered *metered_new(const struct cloud_provider *provider, const struct clock *clock,
                            const struct control_metrics *metrics)
{
    struct metered *m = kv_calloc(1, sizeof *m);
    *m = (struct metered){ .inner = provider, .clock = clock, .metrics = metrics };
    m->port = *provider; /* name, node classes, repair policies */
    m->port.get_instance_types = get_instance_types;
    m->port.get_generation = get_generation;
    m->port.create = create;
    m->port.delete_ = delete_;
    m->port.get = get;
    m->port.list = list;
    m->port.is_drifted = is_drifted;
    m->port.ctx = m;
    return m;
}

void metered_free(struct metered *m)
{
    free(m);
}

const struct cloud_provider *metered_provider(struct metered *m)
{
    return &m->port;
}

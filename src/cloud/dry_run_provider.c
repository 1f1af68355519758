#include "cloud/dry_run_provider.h"

#include "api/labels.h"
#include "cloud/provider_forward.h"

struct dry_run_provider {
    struct provider_forward forward; /* first */
    struct dry_run_provider_options options;
};

static bool is_new(struct dry_run_provider *p, const char *verb, struct str what)
{
    return dry_run_is_new(p->options.dry_run, kv_hash_salted(what.p ? what.p : "", what.len,
                                                             kv_hash(verb, strlen(verb))));
}

/* What the claim leaves no choice about; "" otherwise. */
static struct str only_value(const struct nodeclaim *claim, const char *key)
{
    const struct claim_node_spec *node = &claim->spec.node;
    for (uint32_t i = 0; i < node->requirements.count; i++) {
        const struct expression *e = &node->requirements.items[i];
        if (str_eqz(e->key, key) && e->op == OP_IN && e->values.count == 1)
            return e->values.items[0];
    }
    return STR("");
}

static struct str text_or_empty(struct str s)
{
    return s.p ? s : STR("");
}

static int launch(void *ctx, const struct nodeclaim *claim, struct arena *arena,
                  struct instance *out, struct launch_failure *why, struct err *err)
{
    struct dry_run_provider *p = ctx;
    const struct cloud_provider *inner = p->forward.inner;
    const struct meta *meta = &claim->object.meta;
    struct str pool = text_or_empty(str_map_get(&meta->labels, STR(LABEL_NODEPOOL)));

    /* Asked again for a claim that has its instance: somebody else launched it. */
    *why = (struct launch_failure){ .kind = LAUNCH_OTHER };
    if (claim->status.provider_id.len)
        return inner->get(inner->ctx, claim->status.provider_id, arena, out, err);
    *out = (struct instance){
        .provider_id = arena_strf(arena, DRY_RUN_PROVIDER_PREFIX "%.*s", STR_ARG(meta->uid)),
        .node_name = STR(""),
        .claim_name = arena_str(arena, meta->name),
        .nodepool = arena_str(arena, pool),
        .image_id = STR(""),
        .instance_type = arena_str(arena, only_value(claim, LABEL_INSTANCE_TYPE)),
        .zone = arena_str(arena, only_value(claim, LABEL_ZONE)),
        .capacity_type = arena_str(arena, only_value(claim, LABEL_CAPACITY_TYPE)),
        .created_us = clock_wall_us(p->options.clock),
    };
    if (is_new(p, "launch", meta->uid))
        log_info(p->options.log, "would launch", LOG_STR("claim", meta->name),
                 LOG_STR("nodepool", pool));
    return 0;
}

/* The instance that the claim is about: by its id, or by the name that the instance bears. */
static int find(struct dry_run_provider *p, const struct nodeclaim *claim, struct arena *arena,
                struct instance *out, struct err *err)
{
    const struct cloud_provider *inner = p->forward.inner;
    struct instances all;
    if (claim->status.provider_id.len)
        return inner->get(inner->ctx, claim->status.provider_id, arena, out, err);
    if (inner->list(inner->ctx, arena, &all, err) < 0)
        return -1;
    for (uint32_t i = 0; i < all.count; i++) {
        if (!str_eq(all.items[i].claim_name, claim->object.meta.name))
            continue;
        *out = all.items[i];
        return 0;
    }
    return err_set(err, ERR_NOT_FOUND, "claim %.*s has no instance",
                   STR_ARG(claim->object.meta.name));
}

static int terminate(void *ctx, const struct nodeclaim *claim, struct err *err)
{
    struct dry_run_provider *p = ctx;
    AUTO_ARENA arena = { 0 };
    struct instance instance;
    if (find(p, claim, &arena, &instance, err) < 0)
        return -1;
    if (!instance.terminating && is_new(p, "terminate", instance.provider_id))
        log_info(p->options.log, "would terminate", LOG_STR("instance", instance.provider_id),
                 LOG_STR("claim", claim->object.meta.name));
    return 0;
}

struct dry_run_provider *dry_run_provider_new(struct dry_run_provider_options options)
{
    struct dry_run_provider *p = kv_calloc(1, sizeof *p);
    p->options = options;
    provider_forward_init(&p->forward, options.inner);
    p->forward.port.create = launch;
    p->forward.port.delete_ = terminate;
    return p;
}

void dry_run_provider_free(struct dry_run_provider *p)
{
    free(p);
}

const struct cloud_provider *dry_run_provider_port(struct dry_run_provider *p)
{
    return &p->forward.port;
}

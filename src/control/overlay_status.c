/* NodeOverlays: judged all together, told by their conditions, and put to use.
 *
 * One worker, one key. Whether an overlay is accepted depends on all the others and on the instance
 * types of every pool, so any change of what one of them asks evaluates everything anew. Verdicts
 * are written first. If somebody changed an overlay meanwhile its verdict is about the past, and
 * nothing is put to use: the change itself brings the next evaluation. Only then does the accepted
 * set replace the one in the cache, and only if it is another one: a new set makes all layers anew.
 * A verdict that we are not allowed to write holds up nothing: nobody could provision for want of a
 * permission that is about conditions.
 *
 * A pool whose types cannot be fetched is passed over and does not hold up the others; it is tried
 * again. Types and offerings that appear later need no evaluation: layers match anew when they are made.
 */
#include "control/controllers.h"

#include "api/ec2nodeclass.h"
#include "api/kwoknodeclass.h"
#include "base/vec.h"
#include "cloud/overlay.h"

#define AGAIN_NS ((int64_t)6 * 3600 * 1000000000)

struct evaluation {
    struct arena arena;
    struct object_list overlays, pools;
    VEC(struct overlay_pool) seen; /* what overlays see of the pools; types are references */
    struct overlay_evaluation result;
    struct err trouble; /* the last; a pool's types could not be had, or a verdict not be written */
};

static void evaluation_done(struct evaluation *e)
{
    vec_each(&e->seen, struct overlay_pool, pool)
        instance_types_unref(pool->types);
    vec_done(&e->seen);
    overlay_set_unref(e->result.accepted);
    object_list_done(&e->overlays);
    object_list_done(&e->pools);
    arena_done(&e->arena);
}

static void see_pools(struct control *c, struct evaluation *e)
{
    cluster_list(c->cluster, &nodepool_kind, &e->pools);
    for (size_t i = 0; i < e->pools.count; i++) {
        const struct nodepool *pool = nodepool_of(e->pools.items[i]);
        const struct node_class_ref *ref = &pool->spec.template.spec.node_class_ref;
        struct overlay_pool seen = { .name = pool->object.meta.name,
                                     .labels = pool->spec.template.meta.labels,
                                     .well_known = label_rules_for(ref->group)->well_known };
        struct err err = { 0 };
        if (!control_manages(c, ref))
            continue;
        if (instance_cache_get_raw(c->cache, pool, &seen.types, &err) == 0) {
            vec_push(&e->seen, seen);
        } else if (err.kind != ERR_NOT_FOUND) { /* a class that comes later is a change */
            e->trouble = err;
            err_wrap(&e->trouble, "instance types of NodePool %.*s", STR_ARG(seen.name));
        }
    }
}

static void evaluate(struct control *c, struct evaluation *e)
{
    cluster_list(c->cluster, &nodeoverlay_kind, &e->overlays);
    if (e->overlays.count) /* else no types need be fetched */
        see_pools(c, e);
    const struct nodeoverlay **list =
        arena_array(&e->arena, const struct nodeoverlay *, e->overlays.count);
    for (size_t i = 0; i < e->overlays.count; i++)
        list[i] = nodeoverlay_of(e->overlays.items[i]);
    AUTO_OVERLAY_SET set =
        overlay_set_new(list, (uint32_t)e->overlays.count, c->overlays.generation + 1);
    overlay_set_evaluate(set, e->seen.items, (uint32_t)e->seen.count, &e->arena, &e->result);
}

static int write_verdicts(struct control *c, struct evaluation *e, struct err *err)
{
    for (uint32_t i = 0; i < e->result.verdicts.count; i++) {
        const struct overlay_verdict *verdict = &e->result.verdicts.items[i];
        struct condition_set *set =
            overlay_verdict_conditions(verdict, &e->arena, control_now_us(c));
        if (control_patch_conditions(c, &verdict->overlay->object, set, NULL, err) == 0)
            continue;
        if (err->kind != ERR_DENIED && err->kind != ERR_INVALID)
            return -1;
        e->trouble = *err;
    }
    return 0;
}

/* Of what is accepted, in order: equal ones make equal layers. */
static uint64_t fingerprint(const struct evaluation *e)
{
    AUTO_BUF text = { 0 };
    for (uint32_t i = 0; i < e->result.verdicts.count; i++) {
        const struct overlay_verdict *verdict = &e->result.verdicts.items[i];
        const struct meta *meta = &verdict->overlay->object.meta;
        if (verdict->state == OVERLAY_ACCEPTED)
            buf_addf(&text, "%.*s %.*s %lld\n", STR_ARG(meta->name), STR_ARG(meta->uid),
                     (long long)meta->generation);
    }
    return kv_hash(buf_str(&text).p, text.len);
}

static void publish(struct control *c, const struct evaluation *e)
{
    uint64_t print = fingerprint(e);
    bool first = !atomic_load(&c->overlays.published);
    if (first || print != c->overlays.fingerprint) {
        c->overlays.generation++;
        c->overlays.fingerprint = print;
        instance_cache_set_overlays(c->cache, e->result.accepted);
        log_info(c->log, "overlays in use",
                 LOG_INT("accepted", overlay_set_count(e->result.accepted)),
                 LOG_INT("overlays", e->overlays.count), LOG_INT("pools", e->seen.count));
    }
    atomic_store(&c->overlays.published, true);
}

bool overlays_published(const struct control *c)
{
    return !c->options.settings.node_overlays || atomic_load(&c->overlays.published);
}

static struct outcome reconcile(struct control *c, struct str key)
{
    struct evaluation e = { 0 };
    struct err err = { 0 };
    struct outcome outcome = outcome_requeue(AGAIN_NS);

    evaluate(c, &e);
    if (write_verdicts(c, &e, &err) < 0) {
        outcome = control_failed(c, &nodeoverlay_status, key, &err);
    } else {
        publish(c, &e);
        if (e.trouble.kind)
            outcome = control_failed(c, &nodeoverlay_status, key, &e.trouble);
    }
    evaluation_done(&e);
    return outcome;
}

/* Its own conditions are not what an overlay asks. */
static void trigger_asked(struct control *c KV_UNUSED, struct queue *q,
                          const struct object *maybe_old, const struct object *maybe_new)
{
    if (!maybe_old || !maybe_new || maybe_old->meta.generation != maybe_new->meta.generation)
        queue_add(q, STR(""));
}

static bool enabled(const struct control_settings *settings)
{
    return settings->node_overlays;
}

const struct controller nodeoverlay_status = {
    .name = "nodeoverlay.controller",
    .reconcile = reconcile,
    .triggers = { { &nodeoverlay_kind, trigger_asked },
                  { &nodepool_kind, trigger_asked },
                  { &ec2nodeclass_kind, trigger_asked },
                  { &kwoknodeclass_kind, trigger_asked } },
    .singleton = true,
    .enabled = enabled,
};

/* The wiring: informers tell triggers, triggers fill queues, queues feed reconcilers.
 *
 * Which controller goes next in a simulation is drawn from those that have a key ready, so that a seed
 * stands for an interleaving: reconcilers that depend on each other's order are found out.
 */
#include "control/control_impl.h"

#include "base/workers.h"
#include "control/controllers.h"
#include "control/disruption_marks.h"
#include "control/eviction.h"
#include "control/health.h"
#include "control/metered.h"
#include "control/pod_latency.h"
#include "control/provisioner.h"

struct controller_slot {
    struct control *c;
    const struct controller *controller;
    struct queue *queue;
    struct worker_pool *workers;
    struct {
        struct controller_slot *slot;
        trigger_fn *fn;
    } triggers[TRIGGERS_MAX];
};

/* --- queues --- */

static struct controller_slot *slot_of(struct control *c, const struct controller *who)
{
    for (uint32_t i = 0; i < c->slot_count; i++) {
        if (c->slots[i].controller == who)
            return &c->slots[i];
    }
    return NULL;
}

void control_enqueue(struct control *c, const struct controller *who, struct str key)
{
    struct controller_slot *slot = slot_of(c, who);
    if (slot)
        queue_add(slot->queue, key);
}

void trigger_own_name(struct control *c KV_UNUSED, struct queue *q, const struct object *maybe_old,
                      const struct object *maybe_new)
{
    queue_add(q, (maybe_new ? maybe_new : maybe_old)->meta.name);
}

static void on_change(void *ctx, const struct object *maybe_old, const struct object *maybe_new)
{
    const __typeof__(((struct controller_slot *)0)->triggers[0]) *trigger = ctx;
    trigger->fn(trigger->slot->c, trigger->slot->queue, maybe_old, maybe_new);
}

static const char *const outcome_words[] = {
    [OUTCOME_DONE] = "done", [OUTCOME_REQUEUE] = "requeue", [OUTCOME_RETRY] = "error"
};

#define SYNC_POLL_NS ((int64_t)50 * 1000000)

static struct outcome run(void *ctx, struct str key)
{
    struct controller_slot *slot = ctx;
    struct control *c = slot->c;
    /* A program's workers are there before everything has been listed once: what is missing then may
     * only not have been seen yet. */
    if (!cluster_synced(c->cluster))
        return outcome_requeue(SYNC_POLL_NS);
    metered_set_caller(slot->controller->name);
    struct outcome outcome = slot->controller->reconcile(c, key);
    atomic_fetch_add(&c->reconcile_count, 1);
    if (outcome.kind == OUTCOME_RETRY)
        atomic_fetch_add(&c->failure_count, 1);
    metric_count(c->metrics.reconciles, str_of(slot->controller->name),
                 str_of(outcome_words[outcome.kind]));
    return outcome;
}

/* --- life --- */

static void slot_init(struct control *c, struct controller_slot *slot,
                      const struct controller *controller, uint64_t seed)
{
    slot->c = c;
    slot->controller = controller;
    slot->queue = queue_new((struct queue_options){ .clock = c->clock,
                                                    .seed = seed,
                                                    .backoff_min_ns = controller->backoff_min_ns,
                                                    .backoff_max_ns = controller->backoff_max_ns });
    for (uint32_t i = 0; i < TRIGGERS_MAX && controller->triggers[i].kind; i++) {
        slot->triggers[i].slot = slot;
        slot->triggers[i].fn = controller->triggers[i].fn;
        cluster_on_change(c->cluster, controller->triggers[i].kind, on_change, &slot->triggers[i]);
    }
    if (controller->singleton)
        queue_add(slot->queue, STR(""));
}

struct control *control_new_with(struct control_options options,
                                 const struct controller *const *list, uint32_t count)
{
    struct control *c = kv_calloc(1, sizeof *c);
    c->options = options;
    c->clock = options.clock;
    c->log = options.maybe_log;
    c->cluster = cluster_new(options.store, options.clock, options.seed);
    if (!options.maybe_metrics)
        c->own_metrics = metrics_new(options.clock);
    c->metrics_registry = options.maybe_metrics ? options.maybe_metrics : c->own_metrics;
    control_metrics_init(&c->metrics, c->metrics_registry);
    c->metered = metered_new(options.provider, options.clock, &c->metrics);
    c->cache = instance_cache_new(
        (struct instance_cache_options){ .provider = metered_provider(c->metered),
                                         .clock = options.clock,
                                         .maybe_metrics = c->metrics_registry,
                                         .node_overlays = options.settings.node_overlays,
                                         .stripes = 1 });
    c->provider = instance_cache_provider(c->cache);
    c->recorder = recorder_new(options.store, options.clock, options.maybe_log, options.seed);
    c->health = health_new();
    c->provisioner = provisioner_new();
    c->pod_latency = pod_latency_new(c->metrics_registry, options.clock);
    c->terminations = terminations_new();
    c->marks = disruption_marks_new();

    c->slots = kv_calloc(count, sizeof *c->slots);
    for (uint32_t i = 0; i < count; i++) {
        if (!list[i]->enabled || list[i]->enabled(&options.settings))
            slot_init(c, &c->slots[c->slot_count++], list[i], options.seed + i);
    }
    static const struct kind *const seen[] = { &pod_kind, &node_kind, &nodeclaim_kind };
    for (size_t i = 0; options.maybe_images && i < KV_COUNT_OF(seen); i++)
        cluster_on_change(c->cluster, seen[i], compat_service_observe, options.maybe_images);
    control_metrics_start(c);
    return c;
}

struct control *control_new(struct control_options options)
{
    return control_new_with(options, controllers, controller_count);
}

void control_free(struct control *c)
{
    if (!c)
        return;
    control_stop(c);
    control_metrics_stop(c);
    cluster_free(c->cluster);
    for (uint32_t i = 0; i < c->slot_count; i++)
        queue_free(c->slots[i].queue);
    free(c->slots);
    disruption_marks_free(c->marks);
    terminations_free(c->terminations);
    pod_latency_free(c->pod_latency);
    provisioner_free(c->provisioner);
    health_free(c->health);
    recorder_free(c->recorder);
    instance_cache_free(c->cache);
    metered_free(c->metered);
    metrics_free(c->own_metrics);
    free(c);
}

/* --- in a simulation --- */

bool control_step(struct control *c, struct rng *maybe_order)
{
    bool changed = cluster_pump(c->cluster) > 0;
    if (!cluster_synced(c->cluster))
        return changed;
    int64_t now = control_now_ns(c);
    struct controller_slot *chosen = NULL;
    uint32_t ready = 0;
    for (uint32_t i = 0; i < c->slot_count; i++) {
        if (queue_next_due(c->slots[i].queue) > now)
            continue;
        /* Each of those seen so far is chosen with equal chance. */
        if (!ready++ || (maybe_order && rng_below(maybe_order, ready) == 0))
            chosen = &c->slots[i];
    }
    return (chosen && queue_run_one(chosen->queue, run, chosen)) || changed;
}

int64_t control_next_due(struct control *c)
{
    int64_t due = cluster_due_ns(c->cluster);
    if (!cluster_synced(c->cluster))
        return due;
    for (uint32_t i = 0; i < c->slot_count; i++) {
        int64_t at = queue_next_due(c->slots[i].queue);
        due = at < due ? at : due;
    }
    return due;
}

void control_resync(struct control *c)
{
    for (uint32_t i = 0; i < c->slot_count; i++) {
        struct controller_slot *slot = &c->slots[i];
        if (slot->controller->singleton)
            queue_add(slot->queue, STR(""));
        for (uint32_t t = 0; t < TRIGGERS_MAX && slot->controller->triggers[t].kind; t++) {
            struct object_list all;
            cluster_list(c->cluster, slot->controller->triggers[t].kind, &all);
            for (size_t k = 0; k < all.count; k++)
                slot->controller->triggers[t].fn(c, slot->queue, NULL, all.items[k]);
            object_list_done(&all);
        }
    }
}

/* --- in a program --- */

int control_start(struct control *c, struct err *err)
{
    uint32_t most = c->options.settings.threads_max ? c->options.settings.threads_max : 1;
    KV_ASSERT(!c->started);
    KV_ASSERT(!c->stopped);
    if (recorder_start(c->recorder, err) < 0)
        return -1;
    c->started = true;
    cluster_start(c->cluster);
    for (uint32_t i = 0; i < c->slot_count; i++) {
        struct controller_slot *slot = &c->slots[i];
        uint32_t threads = slot->controller->threads ? slot->controller->threads : 1;
        struct worker_pool_options options = { .name = slot->controller->name,
                                               .queue = slot->queue,
                                               .thread_count = threads < most ? threads : most,
                                               .reconcile = run,
                                               .ctx = slot };
        if (worker_pool_start(options, &slot->workers, err) < 0) {
            control_stop(c);
            return err_wrap(err, "controller %s", slot->controller->name);
        }
    }
    return 0;
}

void control_stop(struct control *c)
{
    if (!c->started)
        return;
    for (uint32_t i = 0; i < c->slot_count; i++)
        queue_shutdown(c->slots[i].queue, QUEUE_DROP);
    for (uint32_t i = 0; i < c->slot_count; i++) {
        worker_pool_stop(c->slots[i].workers, QUEUE_DROP);
        c->slots[i].workers = NULL;
    }
    recorder_stop(c->recorder);
    cluster_stop(c->cluster);
    c->started = false;
    c->stopped = true;
}

void control_images_changed(struct control *c)
{
    if (provisioner_wants_pass(c))
        control_enqueue(c, &provisioner_controller, STR(""));
}

bool control_synced(struct control *c)
{
    return cluster_synced(c->cluster);
}

/* --- seen from outside --- */

struct control_stats control_stats(struct control *c)
{
    struct control_stats stats = { .reconciles = atomic_load(&c->reconcile_count),
                                   .failures = atomic_load(&c->failure_count) };
    provisioner_stats(c->provisioner, &stats);
    return stats;
}

struct instance_cache *control_instance_cache(struct control *c)
{
    return c->cache;
}

/* The record of a run. Handlers of five informers take the old state of an object out of the counts
 * and put the new one in; objects are immutable, so both give what they gave before. */
#include "sim/record.h"

#include "api/conditions.h"
#include "api/kinds.h"
#include "api/labels.h"
#include "api/node.h"
#include "api/nodeclaim.h"
#include "api/nodepool.h"
#include "api/pod.h"
#include "api/policy.h"
#include "cloud/instance_cache.h"
#include "control/control.h"
#include "sim/cloud.h"
#include "sim/world.h"
#include "store/informer.h"

#define LINE_BYTES_MAX 400 /* of an event's text */

const char *const record_kind_names[RECORD_KIND_COUNT] = {
    [RECORD_ACTION] = "action",
    [RECORD_EVENT] = "event",
    [RECORD_CRASH] = "crash",
    [RECORD_HEALTH] = "health",
};

enum pod_state { POD_PENDING, POD_STARTING, POD_RUNNING, POD_ENDED, POD_STATES };

#define KIND_COUNT 5

struct fold { /* an event that others are folded into */
    size_t event_ix;
    int64_t until_ns;
};

struct record_inner {
    struct informer *informers[KIND_COUNT];
    int64_t start_ns, now_ns; /* mono; now: since the start */
    uint32_t pods[POD_STATES];
    uint32_t nodes, nodes_ready, claims;
    VEC(uint32_t) type_nodes;            /* per type */
    VEC(struct record_pool) pool_counts; /* per pool */
    struct str_table type_ix, pool_ix;   /* name to 1 + number */
    struct str_table reason_ix;          /* likewise */
    struct map waiting;                  /* hash of a pod's uid to when it was first seen, +1 */
    struct str_table folds;              /* key to struct fold, in `fold_arena` */
    struct arena fold_arena;
    size_t wait_ix; /* of the oldest one, where their number is limited */
    /* What a control plane counts starts anew when it dies. */
    uint32_t crashes;
    struct control_stats control;
    uint64_t cache_hits, cache_misses, cache_hits_then, cache_misses_then;
};

/* --- names --- */

static struct str label_of(const struct meta *meta, const char *key)
{
    struct str value = str_map_get(&meta->labels, str_of(key));
    return value.len ? value : STR("");
}

static uint32_t number_of(struct str_table *table, struct str name)
{
    return (uint32_t)(uintptr_t)str_table_get(table, name);
}

static uint32_t type_number(struct record *r, struct str name)
{
    struct record_inner *in = r->inner;
    uint32_t number = number_of(&in->type_ix, name);
    if (number)
        return number - 1;
    vec_push(&r->types, arena_str(&r->arena, name));
    vec_push(&in->type_nodes, 0);
    str_table_put(&in->type_ix, name, (void *)(uintptr_t)r->types.count);
    return (uint32_t)r->types.count - 1;
}

static struct record_pool *pool_of(struct record *r, struct str name)
{
    struct record_inner *in = r->inner;
    uint32_t number = number_of(&in->pool_ix, name);
    if (!number) {
        vec_push(&r->pools, arena_str(&r->arena, name));
        vec_push(&in->pool_counts, (struct record_pool){ 0 });
        str_table_put(&in->pool_ix, name, (void *)(uintptr_t)r->pools.count);
        number = (uint32_t)r->pools.count;
    }
    return &in->pool_counts.items[number - 1];
}

/* --- lines --- */

/* One line that a terminal shows and does not obey: control characters (C1 too) become blanks. */
static struct str line_of(struct arena *arena, struct str text)
{
    AUTO_BUF valid = { 0 };
    buf_add_utf8(&valid, str_sub(text, 0, str_utf8_cut(text, LINE_BYTES_MAX)));
    for (size_t i = 0; i < valid.len; i++) {
        unsigned char c = (unsigned char)valid.p[i];
        if (c < 0x20 || c == 0x7f)
            valid.p[i] = ' ';
        if (c == 0xc2 && i + 1 < valid.len && (unsigned char)valid.p[i + 1] < 0xa0)
            valid.p[i] = valid.p[i + 1] = ' ';
    }
    if (text.len > LINE_BYTES_MAX)
        buf_addz(&valid, "...");
    return arena_str(arena, str_trim(buf_str(&valid)));
}

/* Half of them go when there are twice as many as wanted. What could be folded into them starts
 * a line of its own then. */
static void forget_old_events(struct record *r)
{
    size_t keep = r->limits.events;
    if (!keep || r->events.count < 2 * keep)
        return;
    struct arena fresh = { 0 };
    size_t first = r->events.count - keep;
    for (size_t i = 0; i < keep; i++) {
        r->events.items[i] = r->events.items[first + i];
        r->events.items[i].what = arena_str(&fresh, r->events.items[i].what);
    }
    r->events.count = keep;
    r->events_forgotten += first;
    arena_done(&r->event_arena);
    r->event_arena = fresh;
    if (r->inner) {
        str_table_clear(&r->inner->folds);
        arena_reset(&r->inner->fold_arena);
    }
}

static struct fold *fold_of(struct record *r, struct str key)
{
    return r->inner && key.len ? str_table_get(&r->inner->folds, key) : NULL;
}

void record_add(struct record *r, const struct record_event *event, struct str fold_key)
{
    struct fold *fold = fold_of(r, fold_key);
    if (fold && event->at_ns < fold->until_ns) {
        r->events.items[fold->event_ix].count += event->count;
        return;
    }
    forget_old_events(r);
    struct record_event kept = *event;
    kept.what = line_of(&r->event_arena, event->what);
    vec_push(&r->events, kept);
    if (!r->inner || !fold_key.len)
        return;
    fold = fold_of(r, fold_key); /* it may have been forgotten */
    if (!fold) {
        fold = arena_new(&r->inner->fold_arena, struct fold);
        str_table_put(&r->inner->folds, fold_key, fold);
    }
    *fold = (struct fold){ r->events.count - 1, event->at_ns + RECORD_FOLD_NS };
}

void record_action(struct record *r, int64_t at_ns, struct str what)
{
    record_add(r, &(struct record_event){ .at_ns = at_ns, .what = what, .count = 1 }, STR(""));
}

void record_crash(struct record *r, int64_t at_ns, struct str what)
{
    const struct record_event event = {
        .at_ns = at_ns, .kind = RECORD_CRASH, .what = what, .count = 1, .warning = true
    };
    record_add(r, &event, STR(""));
}

/* --- pods --- */

static enum pod_state pod_state_of(const struct pod *pod)
{
    if (pod_is_terminal(pod))
        return POD_ENDED;
    if (!pod_is_scheduled(pod))
        return POD_PENDING;
    return pod->status->phase == PHASE_RUNNING ? POD_RUNNING : POD_STARTING;
}

static bool is_daemon(const struct pod *pod)
{
    const struct owner_ref *owner = meta_controller(&pod->object.meta);
    return owner && str_eqz(owner->kind, "DaemonSet");
}

static void add_wait(struct record *r, int64_t wait_ns)
{
    struct record_inner *in = r->inner;
    r->totals.pods_bound++;
    if (!r->limits.waits || r->waits_ns.count < r->limits.waits) {
        vec_push(&r->waits_ns, wait_ns);
        return;
    }
    r->waits_ns.items[in->wait_ix] = wait_ns;
    in->wait_ix = (in->wait_ix + 1) % r->limits.waits;
}

/* Creation times have whole seconds: where a pod was seen while it waited, that moment is exact. */
static void note_binding(struct record *r, const struct pod *maybe_old, const struct pod *maybe_new)
{
    struct record_inner *in = r->inner;
    const struct meta *meta = &(maybe_new ? maybe_new : maybe_old)->object.meta;
    uint64_t key = kv_hash(meta->uid.p, meta->uid.len);
    uintptr_t seen = 0;
    if (!maybe_new || pod_is_scheduled(maybe_new) || pod_is_terminal(maybe_new))
        map_remove(&in->waiting, key, &seen);
    else if (!maybe_old)
        map_put(&in->waiting, key, (uintptr_t)(in->now_ns + 1));
    if (!maybe_new || !pod_is_scheduled(maybe_new) || is_daemon(maybe_new) ||
        (maybe_old && pod_is_scheduled(maybe_old)))
        return;
    if (seen)
        add_wait(r, in->now_ns + 1 - (int64_t)seen);
    else if (!pod_is_terminal(maybe_new) && maybe_new->status->phase != PHASE_RUNNING)
        add_wait(r, 0); /* made and bound since the last look */
}

static void on_pod(void *ctx, const struct object *maybe_old, const struct object *maybe_new)
{
    struct record *r = ctx;
    const struct pod *old = maybe_old ? pod_of(maybe_old) : NULL;
    const struct pod *new_ = maybe_new ? pod_of(maybe_new) : NULL;
    if (old)
        r->inner->pods[pod_state_of(old)]--;
    if (new_)
        r->inner->pods[pod_state_of(new_)]++;
    note_binding(r, old, new_);
}

/* --- nodes, claims, pools --- */

/* `one` is 1 or, modulo 2^32, -1. */
static void count_node(struct record *r, const struct node *node, uint32_t one)
{
    struct record_inner *in = r->inner;
    const struct meta *meta = &node->object.meta;
    struct str type = label_of(meta, LABEL_INSTANCE_TYPE), pool = label_of(meta, LABEL_NODEPOOL);
    in->nodes += one;
    in->nodes_ready += node_is_ready(node) ? one : 0;
    uint32_t type_ix = type_number(r, type.len ? type : STR("other")); /* may move the counts */
    in->type_nodes.items[type_ix] += one;
    if (pool.len)
        pool_of(r, pool)->nodes += one;
}

static void on_node(void *ctx, const struct object *maybe_old, const struct object *maybe_new)
{
    if (maybe_old)
        count_node(ctx, node_of(maybe_old), UINT32_MAX);
    if (maybe_new)
        count_node(ctx, node_of(maybe_new), 1);
}

static void count_claim(struct record *r, const struct object *claim, uint32_t one)
{
    struct str pool = label_of(&claim->meta, LABEL_NODEPOOL);
    r->inner->claims += one;
    if (pool.len)
        pool_of(r, pool)->claims += one;
}

static void on_claim(void *ctx, const struct object *maybe_old, const struct object *maybe_new)
{
    if (maybe_old)
        count_claim(ctx, maybe_old, UINT32_MAX);
    if (maybe_new)
        count_claim(ctx, maybe_new, 1);
}

static const struct condition *health_of(const struct object *pool)
{
    const struct nodepool_status *status = &nodepool_of(pool)->status;
    return condition_find(status->conditions.items, status->conditions.count,
                          CONDITION_NODE_REGISTRATION_HEALTHY);
}

static void note_health(struct record *r, struct str pool, const struct condition *health)
{
    static const char *const words[] = {
        [CONDITION_UNSET] = "it is not known whether nodes join",
        [CONDITION_TRUE] = "nodes join",
        [CONDITION_FALSE] = "nodes do not join",
        [CONDITION_UNKNOWN] = "it is not known whether nodes join",
    };
    AUTO_BUF line = { 0 };
    buf_addf(&line, "NodePool %.*s: %s", STR_ARG(pool), words[health->status]);
    if (health->status == CONDITION_FALSE)
        buf_addf(&line, " (%.*s: %.*s)", STR_ARG(health->reason), STR_ARG(health->message));
    const struct record_event event = { .at_ns = r->inner->now_ns,
                                        .kind = RECORD_HEALTH,
                                        .what = buf_str(&line),
                                        .count = 1,
                                        .warning = health->status == CONDITION_FALSE };
    record_add(r, &event, STR(""));
}

static void on_pool(void *ctx, const struct object *maybe_old, const struct object *maybe_new)
{
    struct record *r = ctx;
    struct str name = (maybe_new ? maybe_new : maybe_old)->meta.name;
    struct record_pool *pool = pool_of(r, name);
    uint8_t before = pool->health;
    if (!maybe_new) {
        pool->health = CONDITION_UNSET;
        return;
    }
    const struct condition *health = health_of(maybe_new);
    pool->health = health && health->status ? health->status : (uint8_t)CONDITION_UNKNOWN;
    /* That it starts as Unknown goes without saying. */
    bool starts = before == CONDITION_UNSET && pool->health == CONDITION_UNKNOWN;
    if (health && pool->health != before && !starts)
        note_health(r, name, health);
}

/* --- events --- */

static void count_reason(struct record *r, struct str reason, uint64_t count)
{
    uint32_t number = number_of(&r->inner->reason_ix, reason);
    if (!number) {
        vec_push(&r->reasons, (struct record_reason){ .reason = line_of(&r->arena, reason) });
        number = (uint32_t)r->reasons.count;
        str_table_put(&r->inner->reason_ix, reason, (void *)(uintptr_t)number);
    }
    r->reasons.items[number - 1].count += count;
}

static int64_t times(const struct event *event)
{
    int64_t count = event->maybe_series ? event->maybe_series->count : event->count;
    return count > 0 ? count : 1;
}

/* What happens to single pods as it should is in the counts. */
static bool is_notable(const struct event *event)
{
    return str_eqz(event->type, "Warning") || !str_eqz(event->involved.kind, "Pod");
}

static void on_event(void *ctx, const struct object *maybe_old, const struct object *maybe_new)
{
    struct record *r = ctx;
    if (!maybe_new)
        return;
    const struct event *event = event_of(maybe_new);
    int64_t count = times(event) - (maybe_old ? times(event_of(maybe_old)) : 0);
    if (count <= 0 || !is_notable(event))
        return;
    bool warning = str_eqz(event->type, "Warning");
    if (warning)
        count_reason(r, event->reason, (uint64_t)count);
    AUTO_BUF line = { 0 }, key = { 0 };
    buf_addf(&key, "%.*s/%.*s", STR_ARG(event->involved.kind), STR_ARG(event->reason));
    buf_addf(&line, "%.*s %.*s: %.*s: %.*s", STR_ARG(event->involved.kind),
             STR_ARG(event->involved.name), STR_ARG(event->reason), STR_ARG(event->message));
    const struct record_event noted = { .at_ns = r->inner->now_ns,
                                        .kind = RECORD_EVENT,
                                        .what = buf_str(&line),
                                        .count = (uint32_t)count,
                                        .warning = warning };
    record_add(r, &noted, buf_str(&key));
}

/* --- its life --- */

static const struct {
    const struct kind *kind;
    informer_handler_fn on_change;
} followed[KIND_COUNT] = {
    { &nodepool_kind, on_pool }, { &nodeclaim_kind, on_claim }, { &node_kind, on_node },
    { &pod_kind, on_pod },       { &event_kind, on_event },
};

void record_init(struct record *r)
{
    *r = (struct record){ .inner = kv_calloc(1, sizeof *r->inner) };
}

void record_close(struct record *r)
{
    struct record_inner *in = take(&r->inner);
    if (!in)
        return;
    for (size_t i = 0; i < KIND_COUNT; i++) {
        if (in->informers[i])
            informer_free(in->informers[i]);
    }
    vec_done(&in->type_nodes);
    vec_done(&in->pool_counts);
    str_table_done(&in->type_ix);
    str_table_done(&in->pool_ix);
    str_table_done(&in->reason_ix);
    str_table_done(&in->folds);
    arena_done(&in->fold_arena);
    map_done(&in->waiting);
    free(in);
}

void record_done(struct record *r)
{
    record_close(r);
    vec_done(&r->samples);
    vec_done(&r->events);
    vec_done(&r->reasons);
    vec_done(&r->types);
    vec_done(&r->pools);
    vec_done(&r->waits_ns);
    arena_done(&r->arena);
    arena_done(&r->event_arena);
}

static void open_informers(struct record *r, const struct world_parts *world)
{
    struct record_inner *in = r->inner;
    if (in->informers[0])
        return;
    in->start_ns = world->time ? 0 : clock_mono_ns(world->clock); /* virtual time starts at 0 */
    /* Nothing may happen otherwise because it is written down: `--seed` repeats what `--seeds` found. */
    const struct store *store = world->embedded ? embedded_onlooker(world->embedded) : world->store;
    for (size_t i = 0; i < KIND_COUNT; i++) {
        in->informers[i] = informer_new((struct informer_options){
            .store = store, .kind = followed[i].kind, .clock = world->clock });
        informer_on_change(in->informers[i], followed[i].on_change, r);
    }
}

/* --- looking --- */

static void add_control_stats(struct record *r, const struct world_parts *world)
{
    struct record_inner *in = r->inner;
    struct record_totals *t = &r->totals;
    if (!world->control)
        return;
    if (world->crashes != in->crashes) {
        in->crashes = world->crashes;
        in->control = (struct control_stats){ 0 };
        in->cache_hits_then = in->cache_misses_then = 0;
    }
    struct control_stats now = control_stats(world->control);
    t->reconciles += now.reconciles - in->control.reconciles;
    t->reconcile_failures += now.failures - in->control.failures;
    t->passes += now.passes - in->control.passes;
    t->claims_created += now.claims_created - in->control.claims_created;
    in->control = now;
}

static void add_cache_stats(struct record *r, const struct world_parts *world)
{
    struct record_inner *in = r->inner;
    if (!world->control)
        return;
    struct instance_cache_stats now = instance_cache_stats(control_instance_cache(world->control));
    in->cache_hits += now.hits - in->cache_hits_then;
    in->cache_misses += now.misses - in->cache_misses_then;
    in->cache_hits_then = now.hits;
    in->cache_misses_then = now.misses;
}

void record_look(struct record *r, const struct world_parts *world)
{
    struct record_inner *in = r->inner;
    if (!in)
        return;
    open_informers(r, world);
    in->now_ns = clock_mono_ns(world->clock) - in->start_ns;
    for (size_t i = 0; i < KIND_COUNT; i++)
        informer_pump(in->informers[i]);
    add_control_stats(r, world);
    r->totals.steps = world->step;
    r->totals.crashes = world->crashes;
}

static void add_cloud_stats(struct record *r, const struct sim_cloud_stats *cloud)
{
    r->totals.launches = cloud->launches;
    r->totals.launch_failures = cloud->launch_failures;
    r->totals.refusals = cloud->refusals;
    r->totals.joined = cloud->joined;
    r->totals.lost = cloud->lost;
    r->totals.terminated = cloud->terminated;
}

struct record_sample record_now(struct record *r, const struct world_parts *world,
                                struct arena *arena)
{
    struct record_inner *in = r->inner;
    record_look(r, world);
    add_cache_stats(r, world);
    struct sim_cloud_stats cloud = sim_cloud_stats(world->cloud);
    add_cloud_stats(r, &cloud);
    uint32_t *types = arena_array(arena, uint32_t, r->types.count);
    struct record_pool *pools = arena_array(arena, struct record_pool, r->pools.count);
    for (size_t i = 0; i < r->types.count; i++)
        types[i] = in->type_nodes.items[i];
    for (size_t i = 0; i < r->pools.count; i++)
        pools[i] = in->pool_counts.items[i];
    return (struct record_sample){
        .at_ns = in->now_ns,
        .pods_pending = in->pods[POD_PENDING],
        .pods_starting = in->pods[POD_STARTING],
        .pods_running = in->pods[POD_RUNNING],
        .pods_ended = in->pods[POD_ENDED],
        .nodes = in->nodes,
        .nodes_ready = in->nodes_ready,
        .claims = in->claims,
        .dollars_hour = cloud.dollars_hour,
        .dollars = cloud.dollars,
        .launches = cloud.launches,
        .launch_failures = cloud.launch_failures + cloud.refusals,
        .cache_hits = in->cache_hits,
        .cache_misses = in->cache_misses,
        .types = types,
        .type_count = (uint32_t)r->types.count,
        .pools = pools,
        .pool_count = (uint32_t)r->pools.count,
    };
}

void record_sample(struct record *r, const struct world_parts *world)
{
    if (!r->inner)
        return;
    struct record_sample sample = record_now(r, world, &r->arena);
    if (r->samples.count && vec_last(&r->samples).at_ns == sample.at_ns)
        r->samples.count--; /* a moment has one: the last */
    vec_push(&r->samples, sample);
}

/* --- what follows from it --- */

static int by_length(const void *va, const void *vb)
{
    int64_t a = *(const int64_t *)va, b = *(const int64_t *)vb;
    return (a > b) - (a < b);
}

int64_t record_wait_ns(const struct record *r, double share)
{
    size_t count = r->waits_ns.count;
    if (!count)
        return 0;
    AUTO_ARENA scratch = { 0 };
    int64_t *sorted = arena_array(&scratch, int64_t, count);
    memcpy(sorted, r->waits_ns.items, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_length);
    size_t below = (size_t)(share * (double)count);
    if ((double)below < share * (double)count)
        below++;
    return sorted[below == 0 ? 0 : below > count ? count - 1 : below - 1];
}

const struct record_sample *record_last(const struct record *r)
{
    return r->samples.count ? &vec_last(&r->samples) : NULL;
}

uint32_t record_type_peak(const struct record *r, uint32_t type)
{
    uint32_t peak = 0;
    vec_each(&r->samples, struct record_sample, s) {
        if (type < s->type_count && s->types[type] > peak)
            peak = s->types[type];
    }
    return peak;
}

/* The loop of a simulation: at each moment everybody does what there is to do until nobody has
 * anything; then time goes to the next moment at which somebody will.
 *
 * The control plane and the physics take turns of random length, so that seeds differ in who sees
 * what first. A part of the physics is stepped only with a reason: the store has changed since it
 * looked, its own time has come, late events have arrived, or something was done to the cloud. Events
 * (the objects) are no reason: nobody acts on them, and whoever forgets them in the end may see them
 * with the next thing that happens.
 */
#include "sim/world_impl.h"

#include "api/karpenter.h"
#include "api/kinds.h"
#include "codec/duration.h"
#include "sim/chaos.h"

#define TURN_MAX 32 /* reconciles of one turn of the control plane */
/* So much may be done without time passing, plus so much for each write there ever was; beyond, it is
 * a loop that does not end. */
#define MOMENT_STEPS_MAX 100000
#define MOMENT_STEPS_PER_WRITE 100
#define NUDGE_NS (DURATION_SECOND / 1000)
/* A process that was killed is back after a moment; one that keeps dying waits longer and longer, as
 * in a cluster: five minutes at most, which is where a kubelet's back-off ends too. */
#define RESTART_NS (3 * DURATION_SECOND)
#define RESTART_MAX_NS (5 * DURATION_MINUTE)
#define STABLE_NS DURATION_MINUTE
#define CRASH_CALLS 8 /* a crash at random comes within so many calls */

static int64_t now_ns(const struct world *w)
{
    return clock_mono_ns(w->parts.clock);
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static uint64_t seed_of(const struct world *w, const char *what)
{
    return kv_hash_salted(what, strlen(what), w->options.seed);
}

/* --- the control plane and its deaths --- */

static void start_control(struct world *w)
{
    w->parts.control = control_new((struct control_options){
        .store = faults_store(w->parts.faults),
        .provider = faults_provider(w->parts.faults),
        .clock = w->parts.clock,
        .maybe_metrics = w->parts.metrics,
        .maybe_log = w->options.maybe_log,
        .seed = seed_of(w, "control") + w->parts.crashes,
        .settings = w->options.scenario->settings,
    });
}

void world_bury_control(struct world *w)
{
    int64_t now = now_ns(w), wait = (int64_t)rng_below(&w->luck, RESTART_NS);
    AUTO_BUF words = { 0 };
    buf_addf(&words, "the control plane dies at: %s", faults_last_words(w->parts.faults));
    if (w->record)
        record_crash(w->record, now, buf_str(&words));
    w->deaths_in_a_row = now - w->control_born_ns < STABLE_NS ? w->deaths_in_a_row + 1 : 0;
    for (uint32_t i = 1; i < w->deaths_in_a_row && wait < RESTART_MAX_NS; i++)
        wait = 2 * wait + DURATION_SECOND;
    wait = earlier(wait, RESTART_MAX_NS);
    control_free(w->parts.control);
    w->parts.crashes++;
    faults_revive(w->parts.faults);
    start_control(w);
    w->control_look = true;
    w->control_up_ns = w->control_born_ns = now + wait;
}

static void plan_crash(struct world *w)
{
    double per_hour = w->options.scenario->crashes_per_hour;
    if (per_hour <= 0 || w->faultless) {
        w->crash_next_ns = INT64_MAX;
        return;
    }
    /* Uniform, where real ones are exponential: logarithms differ from machine to machine. */
    double hours = 2 * rng_unit(&w->luck) / per_hour;
    w->crash_next_ns = now_ns(w) + (int64_t)(hours * (double)DURATION_HOUR) + 1;
}

static void crash_at_random(struct world *w)
{
    uint64_t calls =
        1 + rng_below(&w->luck, CRASH_CALLS); /* drawn in this order by every compiler */
    bool after_effect = rng_below(&w->luck, 2) == 0;
    faults_die_at(w->parts.faults, faults_calls(w->parts.faults) + calls, after_effect);
    plan_crash(w);
}

/* One turn. False: it has nothing to do. */
static bool control_turn(struct world *w, uint64_t *steps)
{
    struct world_part *idle = &w->control_idle;
    if (now_ns(w) < w->control_up_ns ||
        (!w->control_look && idle->seen == w->changes && idle->due_ns > now_ns(w)))
        return false;
    uint64_t turn = 1 + rng_below(&w->order, TURN_MAX), done = 0;
    w->control_look = false;
    while (done < turn && !faults_dead(w->parts.faults) &&
           control_step(w->parts.control, &w->order))
        done++;
    if (faults_dead(w->parts.faults))
        world_bury_control(w);
    /* Unless the turn was too short, it has nothing to do until one of these changes. */
    w->control_look |= done == turn;
    idle->seen = w->changes;
    idle->due_ns = control_next_due(w->parts.control);
    *steps += done;
    return done > 0;
}

/* --- the physics --- */

static int64_t step_cloud(void *ctx)
{
    return sim_cloud_step(ctx);
}
static int64_t step_workloads(void *ctx)
{
    return workloads_step(ctx);
}
static int64_t step_binder(void *ctx)
{
    return binder_step(ctx);
}
static int64_t step_kubelet(void *ctx)
{
    return kubelet_step(ctx);
}

/* The garbage collector's second look: objects that came after their owner had gone. */
static int64_t step_collector(void *ctx)
{
    struct world *w = ctx;
    if (w->collected == w->changes)
        return INT64_MAX;
    if (now_ns(w) < w->collect_next_ns)
        return w->collect_next_ns;
    embedded_gc(w->parts.embedded);
    w->collected = w->changes;
    w->collect_next_ns = now_ns(w) + DURATION_MINUTE;
    return INT64_MAX;
}

static bool physics_turn(struct world *w, uint64_t *steps)
{
    bool any = false, look = w->look_anyway;
    w->look_anyway = false;
    /* What was asked of the cloud changes what it will do, and perhaps nothing in the store. */
    if (w->calls_seen != faults_calls(w->parts.faults)) {
        w->calls_seen = faults_calls(w->parts.faults);
        look = true;
    }
    for (size_t i = 0; i < WORLD_PARTS_MAX; i++) {
        struct world_part *part = &w->physics[i];
        uint64_t changes = w->changes;
        if (!look && part->seen == changes && part->due_ns > now_ns(w))
            continue;
        if (w->classes)
            informer_pump(w->classes);
        part->seen = changes; /* not what it will write: that it has to take in as well */
        part->due_ns = part->step(part->ctx);
        (*steps)++;
        any = true;
    }
    return any;
}

/* --- time --- */

static bool lost_in_a_loop(struct world *w, uint64_t steps)
{
    uint64_t writes = embedded_version(w->parts.embedded);
    if (steps < MOMENT_STEPS_MAX + MOMENT_STEPS_PER_WRITE * writes)
        return false;
    struct control_stats stats = control_stats(w->parts.control);
    w->own_finding = (struct finding){
        .rule = 7,
        .step = w->parts.step,
        .at_ns = now_ns(w),
        .what = arena_strf(&w->arena,
                           "%llu steps without time passing (%llu reconciles, %llu of them failed; "
                           "last write: %s)",
                           (unsigned long long)steps, (unsigned long long)stats.reconciles,
                           (unsigned long long)stats.failures, faults_last_write(w->parts.faults)),
    };
    w->broken = &w->own_finding;
    return true;
}

/* Everything that there is to do now. False: it does not end. */
static bool live_moment(struct world *w)
{
    uint64_t steps = 0;
    if (now_ns(w) >= w->crash_next_ns)
        crash_at_random(w);
    for (;;) {
        bool physics = physics_turn(w, &steps);
        bool control = control_turn(w, &steps);
        if (!physics && !control)
            break;
        if (lost_in_a_loop(w, steps))
            return false;
    }
    if (w->record && w->recorded_version != embedded_version(w->parts.embedded)) {
        w->recorded_version = embedded_version(w->parts.embedded);
        record_look(w->record, &w->parts);
    }
    return true;
}

/* When somebody has something to do although nothing happens. */
static int64_t next_due(struct world *w)
{
    int64_t now = now_ns(w), due = w->crash_next_ns;
    for (size_t i = 0; i < WORLD_PARTS_MAX; i++)
        due = earlier(due, w->physics[i].due_ns);
    due = earlier(due,
                  now < w->control_up_ns ? w->control_up_ns : control_next_due(w->parts.control));
    if (w->options.scenario->event_delay_ns)
        due = earlier(due, embedded_event_due_ns(w->parts.embedded));
    /* Whoever says "now" has just had its turn and did nothing: time must go on. */
    return due > now ? due : now + NUDGE_NS;
}

static void advance_to(struct world *w, int64_t at_ns)
{
    int64_t now = now_ns(w);
    if (at_ns <= now)
        return;
    if (w->options.scenario->event_delay_ns && at_ns >= embedded_event_due_ns(w->parts.embedded))
        w->look_anyway = w->control_look = true;
    if (now < w->control_up_ns)
        w->parts.down_ns += earlier(at_ns, w->control_up_ns) - now;
    virtual_clock_advance(w->parts.time, at_ns - now);
}

/* Live until `at_ns`; what happens at that very moment, only if it is now. */
static bool run_until(struct world *w, int64_t at_ns)
{
    for (;;) {
        if (now_ns(w) >= w->due_ns) {
            if (!live_moment(w))
                return false;
            w->due_ns = next_due(w);
        }
        if (w->due_ns >= at_ns) {
            advance_to(w, at_ns);
            return true;
        }
        advance_to(w, w->due_ns);
    }
}

/* --- steps --- */

static void check(struct world *w)
{
    if (w->options.check && !w->broken)
        w->broken = invariants_check(w->invariants, &w->parts);
}

bool world_live(struct world *w, int64_t ns)
{
    w->due_ns = 0;
    bool alive = !w->broken && run_until(w, now_ns(w) + ns);
    w->due_ns = 0; /* whoever asked for it may do something now */
    return alive;
}

bool world_step(struct world *w)
{
    if (w->over || w->broken)
        return false;
    const struct scenario *s = w->options.scenario;
    int64_t action_ns =
        w->action_next < w->action_count ? w->actions[w->action_next].at_ns : INT64_MAX;
    int64_t target = earlier(s->duration_ns, earlier(action_ns, w->sample_next_ns));
    if (!run_until(w, target))
        return false;
    check(w);
    if (w->broken)
        return false;
    if (target == action_ns) {
        w->parts.step++;
        world_act(w, &w->actions[w->action_next++]);
        w->look_anyway = true;
        w->due_ns = 0;
        return true;
    }
    /* Time goes on as if it had not stopped for a sample: a run is the same without a record. */
    if (target == w->sample_next_ns) {
        if (w->record)
            record_sample(w->record, &w->parts);
        w->sample_next_ns += s->sample_ns;
    }
    w->over = target >= s->duration_ns;
    return !w->broken;
}

/* A cluster whose nodes expire is never at rest. Those that are there expire once more. */
static void end_expiry(struct world *w)
{
    struct object_list pools;
    struct err err;
    if (store_list(w->parts.store, &nodepool_kind, NULL, &pools, &err) < 0)
        return;
    for (size_t i = 0; i < pools.count; i++) {
        struct object_ref ref = { &nodepool_kind, STR(""), pools.items[i]->meta.name };
        store_patch(w->parts.store, ref, (struct patch_options){ .type = PATCH_MERGE },
                    STR("{\"spec\":{\"template\":{\"spec\":{\"expireAfter\":\"Never\"}}}}"), NULL,
                    &err);
    }
    object_list_done(&pools);
}

bool world_settle(struct world *w, int64_t quiet_ns, int64_t limit_ns)
{
    end_expiry(w);
    w->faultless = true;
    w->look_anyway = true; /* at what the caller has mended */
    w->record = NULL;
    faults_set_rates(w->parts.faults, (struct fault_rates){ 0 });
    faults_die_at(w->parts.faults, UINT64_MAX, false);
    plan_crash(w);
    int64_t end = now_ns(w) + limit_ns, quiet_since = now_ns(w);
    uint64_t changes = w->changes;
    while (live_moment(w)) {
        if (w->changes != changes) {
            changes = w->changes;
            quiet_since = now_ns(w);
        }
        if (now_ns(w) - quiet_since >= quiet_ns)
            return true;
        if (now_ns(w) >= end)
            return false;
        advance_to(w, earlier(next_due(w), earlier(end, quiet_since + quiet_ns)));
    }
    return false;
}

const struct world_parts *world_parts(const struct world *w)
{
    return &w->parts;
}

const struct finding *world_broken(const struct world *w)
{
    return w->broken;
}

const struct finding *world_check_rest(struct world *w)
{
    if (!w->broken && w->options.check)
        w->broken = invariants_check_rest(w->invariants, &w->parts);
    return w->broken;
}

/* --- the store's own faults --- */

static int64_t event_delay(void *ctx, const struct kind *kind, uint64_t version)
{
    const struct world *w = ctx;
    if (kind == &event_kind) /* nobody waits for these */
        return 0;
    uint64_t most = (uint64_t)w->options.scenario->event_delay_ns;
    return (int64_t)(kv_mix64(version ^ w->options.seed) % (most + 1));
}

/* Nothing fails here: it is where every call of everybody comes by. */
static enum err_kind note_change(void *ctx, const struct embedded_call *call)
{
    struct world *w = ctx;
    uint64_t version = embedded_version(w->parts.embedded);
    if (version != w->hooked_version && call->kind != &event_kind)
        w->changes++;
    w->hooked_version = version;
    return ERR_NONE;
}

/* --- node classes, for the catalogue --- */

static void class_changed(void *ctx, const struct object *maybe_old, const struct object *maybe_new)
{
    struct world *w = ctx;
    const struct object *object = maybe_new ? maybe_new : maybe_old;
    object_unref(str_table_remove(&w->class_objects, object->meta.name));
    if (maybe_new)
        str_table_put(&w->class_objects, object->meta.name, (void *)object_ref(maybe_new));
}

static const struct object *find_class(void *ctx, const struct node_class_ref *ref)
{
    struct world *w = ctx;
    return str_eqz(ref->kind, ec2nodeclass_kind.name) ? str_table_get(&w->class_objects, ref->name)
                                                      : NULL;
}

static int make_catalogue(struct world *w, struct err *err)
{
    const struct scenario *s = w->options.scenario;
    if (s->kwok_types)
        return 0;
    w->classes = informer_new((struct informer_options){
        .store = w->parts.store, .kind = &ec2nodeclass_kind, .clock = w->parts.clock });
    informer_on_change(w->classes, class_changed, w);
    return catalogue_new((struct catalogue_options){ .region = s->region,
                                                     .maybe_path = s->catalogue_path.len
                                                                       ? s->catalogue_path.p
                                                                       : NULL,
                                                     .maybe_class = find_class,
                                                     .class_ctx = w },
                         &w->catalogue, err);
}

/* --- making it --- */

static void make_store(struct world *w)
{
    const struct scenario *s = w->options.scenario;
    w->parts.start_us = s->start_us;
    w->parts.time = virtual_clock_new(s->start_us);
    w->parts.clock = virtual_clock_port(w->parts.time);
    w->pool = object_pool_new();
    w->parts.embedded = embedded_new((struct embedded_options){ .clock = w->parts.clock,
                                                                .pool = w->pool,
                                                                .seed = seed_of(w, "store"),
                                                                .auto_namespaces = true });
    w->parts.store = embedded_store(w->parts.embedded);
    embedded_set_faults(
        w->parts.embedded,
        &(struct embedded_faults){ .after = note_change,
                                   .event_delay_ns = s->event_delay_ns ? event_delay : NULL,
                                   .ctx = w });
}

static void make_parts(struct world *w)
{
    const struct scenario *s = w->options.scenario;
    const struct clock *clock = w->parts.clock;
    const struct store *store = w->parts.store;
    w->parts.cloud = sim_cloud_new((struct sim_cloud_options){
        .clock = clock,
        .store = store,
        .types = w->catalogue ? catalogue_provider(w->catalogue) : NULL,
        .seed = seed_of(w, "cloud"),
        .boot = s->boot,
        .ready = s->ready,
        .terminate = s->terminate,
        .boot_failure_rate = s->boot_failure_rate,
        .ready_failure_rate = s->ready_failure_rate,
    });
    w->workloads = workloads_new(store, clock, seed_of(w, "workloads"));
    w->kubelet = kubelet_new((struct kubelet_options){
        .clock = clock,
        .store = store,
        .cloud = w->parts.cloud,
        .seed = seed_of(w, "kubelet"),
        .pod_start = s->pod_start,
        .pod_stop = s->pod_stop,
        .job_run = s->job_run,
        .startup_taints = s->startup_taints,
    });
    w->parts.binder = binder_new((struct binder_options){
        .clock = clock, .store = store, .seed = seed_of(w, "binder"), .doubt = w->options.doubt });
    struct world_part parts[WORLD_PARTS_MAX] = {
        { .step = step_workloads, .ctx = w->workloads },
        { .step = step_cloud, .ctx = w->parts.cloud },
        { .step = step_binder, .ctx = w->parts.binder },
        { .step = step_kubelet, .ctx = w->kubelet },
        { .step = step_collector, .ctx = w },
    };
    memcpy(w->physics, parts, sizeof parts);
}

static void make_control(struct world *w)
{
    w->parts.metrics = metrics_new(w->parts.clock);
    w->parts.faults = faults_new((struct faults_options){
        .embedded = w->parts.embedded,
        .provider = sim_cloud_provider(w->parts.cloud),
        .seed = seed_of(w, "faults"),
        .rates = w->options.scenario->rates,
    });
    if (w->options.die_at)
        faults_die_at(w->parts.faults, w->options.die_at, w->options.die_after_effect);
    start_control(w);
}

/* Timeline and chaos by time; of two at the same moment the timeline's is first. */
static void make_actions(struct world *w)
{
    const struct scenario *s = w->options.scenario;
    uint32_t random_count = 0, n = 0;
    const struct action *random = chaos_generate(&w->arena, s, w->options.seed, &random_count);
    struct action *all = arena_array(&w->arena, struct action, s->timeline_count + random_count);
    for (uint32_t i = 0, k = 0; i < s->timeline_count || k < random_count;) {
        bool planned =
            i < s->timeline_count && (k == random_count || s->timeline[i].at_ns <= random[k].at_ns);
        all[n++] = planned ? s->timeline[i++] : random[k++];
    }
    w->actions = all;
    w->action_count = n;
}

struct world *world_new(struct world_options options, struct err *err)
{
    AUTO(world) w = kv_calloc(1, sizeof *w);
    w->options = options;
    w->parts.scenario = options.scenario;
    w->record = options.maybe_record;
    w->sample_next_ns = options.maybe_record ? 0 : INT64_MAX;
    rng_init(&w->order, seed_of(w, "order"));
    rng_init(&w->luck, seed_of(w, "luck"));
    make_store(w);
    if (make_catalogue(w, err) < 0)
        return NULL;
    make_parts(w);
    make_control(w);
    make_actions(w);
    plan_crash(w);
    if (options.check)
        w->invariants = invariants_new();
    for (uint32_t i = 0; i < options.scenario->object_count; i++) {
        if (world_apply(w, options.scenario->objects[i], err) < 0)
            return NULL;
    }
    return take(&w);
}

void world_free(struct world *w)
{
    if (!w)
        return;
    control_free(w->parts.control);
    faults_free(w->parts.faults);
    if (w->parts.metrics)
        metrics_free(w->parts.metrics);
    invariants_free(w->invariants);
    binder_free(w->parts.binder);
    kubelet_free(w->kubelet);
    workloads_free(w->workloads);
    sim_cloud_free(w->parts.cloud);
    catalogue_free(w->catalogue);
    if (w->classes)
        informer_free(w->classes);
    str_table_each(&w->class_objects, it)
        object_unref(it->value);
    str_table_done(&w->class_objects);
    str_table_done(&w->applied);
    embedded_free(w->parts.embedded);
    object_pool_free(w->pool);
    virtual_clock_free(w->parts.time);
    arena_done(&w->arena);
    free(w);
}

/* When to plan, and what to do with a plan.
 *
 *     nothing to do --a pod is called unschedulable--> waiting --no more come, or long enough--> pass
 *           ^                                                                                     |
 *           +------------- nothing left pending ------------------ or look again in 10 s ---------+
 *
 * A second look is only taken if anything that a plan depends on has changed: the versions of the
 * kinds it reads and the generations of the pools' instance types say so, for the cost of a few sums.
 * Or if the last pass was not whole: a claim could not be created, a pool's types could not be had, a
 * pod could not be told. Then nothing need change for the next one to do better.
 */
#include "control/provisioner.h"

#include "api/kinds.h"
#include "control/controllers.h"
#include "control/health.h"

#define LOOK_AGAIN_NS ((int64_t)10 * 1000000000)

struct provisioner {
    pthread_mutex_t lock; /* of these; nothing is taken or asked inside */
    /* The batch that is being waited for. */
    bool open, urgent;
    bool some_pending; /* when last looked */
    int64_t first_ns, last_ns;
    int64_t pass_end_ns;        /* of the last pass */
    struct str_table nominated; /* name to 1 + until when, in seconds of mono time */
    uint64_t pass_count, created_count;
    double pass_seconds_max;

    /* Of the worker alone, of which there is one. */
    uint64_t seen;   /* fingerprint of what the last pass read */
    bool was_whole;  /* and nothing went wrong */
    int64_t look_ns; /* something that it read changes by itself then */
    struct claim_maker maker;
};

struct provisioner *provisioner_new(void)
{
    struct provisioner *p = kv_calloc(1, sizeof *p);
    pthread_mutex_init(&p->lock, NULL);
    p->pass_end_ns = INT64_MIN / 2;
    p->look_ns = INT64_MAX;
    claim_maker_init(&p->maker);
    return p;
}

void provisioner_free(struct provisioner *p)
{
    if (!p)
        return;
    str_table_done(&p->nominated);
    claim_maker_done(&p->maker);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

void provisioner_stats(struct provisioner *p, struct control_stats *out)
{
    pthread_mutex_lock(&p->lock);
    out->passes = p->pass_count;
    out->claims_created = p->created_count;
    out->pass_seconds_max = p->pass_seconds_max;
    pthread_mutex_unlock(&p->lock);
}

/* --- the batch --- */

/* When the batch is complete. */
static int64_t ready_at(const struct control *c, const struct provisioner *p)
{
    const struct control_settings *settings = &c->options.settings;
    int64_t idle = p->last_ns + settings->batch_idle_ns,
            most = p->first_ns + settings->batch_max_ns;
    if (p->urgent) /* nobody else will come for this reason; but do not plan without a pause */
        idle = p->pass_end_ns + settings->batch_idle_ns;
    return idle < most ? idle : most;
}

static void batch_add(struct control *c, struct queue *q, bool urgent)
{
    struct provisioner *p = c->provisioner;
    int64_t now = control_now_ns(c);
    pthread_mutex_lock(&p->lock);
    if (!p->open)
        p->first_ns = now;
    p->open = true;
    p->urgent |= urgent;
    p->last_ns = now;
    int64_t wait = ready_at(c, p) - now;
    pthread_mutex_unlock(&p->lock);
    queue_add_after(q, STR(""), wait > 0 ? wait : 0);
}

bool provisioner_wants_pass(struct control *c)
{
    struct provisioner *p = c->provisioner;
    int64_t now = control_now_ns(c);
    pthread_mutex_lock(&p->lock);
    bool wants = p->some_pending && !p->open;
    if (wants) {
        p->first_ns = p->last_ns = now;
        p->open = p->urgent = true;
    }
    pthread_mutex_unlock(&p->lock);
    return wants;
}

static void on_pod(struct control *c, struct queue *q, const struct object *maybe_old,
                   const struct object *maybe_new)
{
    bool was = maybe_old && pod_is_provisionable(pod_of(maybe_old));
    if (maybe_new && !was && pod_is_provisionable(pod_of(maybe_new)))
        batch_add(c, q, false);
}

static void on_node(struct control *c, struct queue *q, const struct object *maybe_old,
                    const struct object *maybe_new)
{
    bool was = maybe_old && node_is_leaving(c, node_of(maybe_old));
    if (maybe_new && !was && node_is_leaving(c, node_of(maybe_new)))
        batch_add(c, q, false);
}

/* A claim that goes before it became a node leaves its pods without one; nobody else says so. */
static void on_claim(struct control *c, struct queue *q, const struct object *maybe_old,
                     const struct object *maybe_new)
{
    bool goes =
        maybe_old && !maybe_old->meta.deleted_us && (!maybe_new || maybe_new->meta.deleted_us);
    if (goes && !claim_condition_true(nodeclaim_of(maybe_old), CONDITION_REGISTERED))
        batch_add(c, q, true);
}

/* What a pool allows has changed: pods that found nothing may find something. */
static void on_pool(struct control *c, struct queue *q, const struct object *maybe_old,
                    const struct object *maybe_new)
{
    if (!maybe_new)
        return;
    AUTO_ARENA arena = { 0 };
    const struct nodepool *pool = nodepool_of(maybe_new);
    const struct condition_set *now = pool_conditions(c, pool, &arena);
    const struct condition_set *before =
        maybe_old ? pool_conditions(c, nodepool_of(maybe_old), &arena) : NULL;
    bool changed =
        !before || maybe_old->meta.generation != maybe_new->meta.generation ||
        conditions_is_true(before, CONDITION_READY) != conditions_is_true(now, CONDITION_READY);
    if (changed)
        batch_add(c, q, false);
}

/* --- has anything changed? --- */

static const struct kind *const read_kinds[] = {
    &pod_kind,           &node_kind,
    &nodeclaim_kind,     &nodepool_kind,
    &nodeoverlay_kind,   &ec2nodeclass_kind,
    &kwoknodeclass_kind, &daemon_set_kind,
    &pvc_kind,           &pv_kind,
    &storage_class_kind, &csi_node_kind,
    &namespace_kind,     &priority_class_kind,
    &pdb_kind,
};

static uint64_t fingerprint(struct control *c)
{
    struct object_list pools;
    uint64_t hash = 0;
    for (size_t i = 0; i < KV_COUNT_OF(read_kinds); i++) {
        uint64_t version = cluster_version(c->cluster, read_kinds[i]);
        hash = kv_hash_salted(&version, sizeof version, hash);
    }
    cluster_list(c->cluster, &nodepool_kind, &pools);
    for (size_t i = 0; i < pools.count; i++) {
        struct generation generation = { 0 };
        struct err err;
        c->provider->get_generation(c->provider->ctx, nodepool_of(pools.items[i]), &generation,
                                    &err);
        hash = kv_hash_salted(&generation, sizeof generation, hash);
    }
    object_list_done(&pools);
    if (c->options.maybe_images) {
        uint64_t generation = compat_service_generation(c->options.maybe_images);
        hash = kv_hash_salted(&generation, sizeof generation, hash);
    }
    return hash;
}

/* --- claims --- */

static void count_created(struct control *c, const struct provision *p,
                          const struct plan_launch *launch)
{
    struct provisioner *own = c->provisioner;
    metric_count(c->metrics.nodeclaims_created, STR("provisioned"),
                 p->pools[launch->pool].pool->object.meta.name,
                 launch->min_values_relaxed ? STR("true") : STR("false"));
    pthread_mutex_lock(&own->lock);
    own->created_count++;
    pthread_mutex_unlock(&own->lock);
}

/* All that can be created are; the first failure is told. */
static int create_claims(struct control *c, struct provision *p, const struct plan *plan,
                         const struct object **claims, struct err *err)
{
    int rc = claims_create(c, &c->provisioner->maker, p, plan, claims, err);
    for (uint32_t i = 0; i < plan->launch_count; i++) {
        if (claims[i])
            count_created(c, p, &plan->launches[i]);
    }
    return rc;
}

/* --- nominations --- */

static int64_t nomination_ns(const struct control *c)
{
    int64_t window = 2 * c->options.settings.batch_max_ns;
    return window > LOOK_AGAIN_NS ? window : LOOK_AGAIN_NS;
}

void nominate(struct control *c, struct str name)
{
    struct provisioner *p = c->provisioner;
    int64_t until_s = (control_now_ns(c) + nomination_ns(c)) / 1000000000 + 1;
    pthread_mutex_lock(&p->lock);
    str_table_put(&p->nominated, name, (void *)(uintptr_t)(until_s + 1));
    pthread_mutex_unlock(&p->lock);
}

static bool is_still(const struct control *c, const void *maybe_until)
{
    return maybe_until && (int64_t)(uintptr_t)maybe_until - 1 > control_now_ns(c) / 1000000000;
}

bool control_is_nominated(struct control *c, struct str name)
{
    struct provisioner *p = c->provisioner;
    pthread_mutex_lock(&p->lock);
    bool still = is_still(c, str_table_get(&p->nominated, name));
    pthread_mutex_unlock(&p->lock);
    return still;
}

static void forget_nominations(struct control *c)
{
    struct provisioner *p = c->provisioner;
    pthread_mutex_lock(&p->lock);
    str_table_each(&p->nominated, it) {
        if (!is_still(c, it->value))
            str_table_remove(&p->nominated, it->key);
    }
    pthread_mutex_unlock(&p->lock);
}

/* --- a pass --- */

static struct plan_options plan_options(const struct control *c)
{
    const struct control_settings *settings = &c->options.settings;
    return (struct plan_options){ .seed = c->options.seed,
                                  .effort = settings->plan_effort,
                                  .preferences = settings->preferences,
                                  .min_values = settings->min_values,
                                  .only_unschedulable = true };
}

static bool any_probe(const struct provision *p)
{
    return p->snap.pool_count && bitset_next(&p->probes, 0) < p->snap.pool_count;
}

/* Pods that no healthy pool takes: one node of a pool that cools down is tried for them. The plan that is
 * returned has the launches of `plan` and that one. */
static const struct plan *plan_probe(struct control *c, struct provision *p,
                                     const struct plan *plan)
{
    for (uint32_t i = 0; i < p->snap.pool_count; i++) {
        if (bitset_test(&p->probes, i))
            p->pools[i].not_ready = STR("");
        else if (!p->pools[i].not_ready.len)
            p->pools[i].not_ready = STR("has no place for the pod");
    }
    const struct plan *probe = plan_build(&p->arena, &p->snap, plan_options(c));
    for (uint32_t i = 0; i < probe->launch_count; i++) {
        if (!bitset_test(&p->probes, probe->launches[i].pool))
            continue;
        struct plan *both = arena_new(&p->arena, struct plan);
        struct plan_launch *launches =
            arena_array(&p->arena, struct plan_launch, plan->launch_count + 1);
        if (plan->launch_count)
            memcpy(launches, plan->launches, plan->launch_count * sizeof *launches);
        /* Its pods are numbered in the smaller list; they stay missed until it has told. */
        launches[plan->launch_count] = probe->launches[i];
        launches[plan->launch_count].pods = (struct plan_pods){ 0 };
        *both = *plan;
        both->launches = launches;
        both->launch_count = plan->launch_count + 1;
        return both;
    }
    return plan;
}

/* The placed pods are no concern of the probe. */
static void leave_only_missed(struct provision *p, const struct plan *plan)
{
    const struct pod **pods = arena_array(&p->arena, const struct pod *, p->snap.pod_count);
    bool *displaced = arena_array(&p->arena, bool, p->snap.pod_count);
    bool *placed = arena_array(&p->arena, bool, p->snap.pod_count);
    uint32_t *fits = arena_array(&p->arena, uint32_t, p->snap.pod_count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < plan->order.count; i++)
        placed[plan->order.items[i]] = true;
    for (uint32_t i = 0; i < p->snap.pod_count; i++) {
        if (placed[i])
            continue;
        displaced[count] = p->displaced[i];
        fits[count] = p->snap.fits.count ? p->snap.fits.pods[i] : UINT32_MAX;
        pods[count++] = p->snap.pods[i];
    }
    p->snap.fits.pods = fits;
    p->snap.pods = pods;
    p->snap.pod_count = count;
    p->snap.maybe_displaced = displaced;
}

static const struct plan *make_plan(struct control *c, struct provision *p)
{
    const struct plan *plan = plan_build(&p->arena, &p->snap, plan_options(c));
    if (!plan->miss_count || !any_probe(p))
        return plan;
    struct snapshot all = p->snap;
    struct sched_pool *pools = arena_array(&p->arena, struct sched_pool, all.pool_count);
    memcpy(pools, p->pools, all.pool_count * sizeof *pools);
    leave_only_missed(p, plan);
    plan = plan_probe(c, p, plan);
    memcpy(p->pools, pools, all.pool_count * sizeof *pools);
    p->snap = all;
    return plan;
}

static void count_pass(struct control *c, double seconds)
{
    struct provisioner *own = c->provisioner;
    pthread_mutex_lock(&own->lock);
    own->pass_count++;
    own->pass_seconds_max = seconds > own->pass_seconds_max ? seconds : own->pass_seconds_max;
    pthread_mutex_unlock(&own->lock);
}

/* A pool that may be tried says so; with a node on its way it says that. */
static void reword_probes(struct control *c, struct provision *p)
{
    for (uint32_t i = 0; i < p->snap.pool_count; i++) {
        if (bitset_test(&p->probes, i))
            p->pools[i].not_ready = health_cooldown_words(c, p->pools[i].pool, &p->arena);
    }
}

/* With nothing pending it only takes back what was told before. */
static int pass(struct control *c, struct provision *p, bool *look_again, struct err *err)
{
    static const struct plan nothing;
    int64_t begin = control_now_ns(c);
    if (!p->pending_count) {
        bool told = provision_tell(c, p, &(struct provision_result){ &nothing, NULL });
        p->whole &= told;
        *look_again = !told;
        return 0;
    }
    const struct plan *plan = make_plan(c, p);
    const struct object **claims =
        arena_array(&p->arena, const struct object *, plan->launch_count);
    int rc = create_claims(c, p, plan, claims, err);
    double seconds = (double)(control_now_ns(c) - begin) / 1e9;
    metric_observe_in(c->metrics.scheduling_duration, seconds, STR("provisioner"));
    reword_probes(c, p);
    p->whole &= provision_tell(c, p, &(struct provision_result){ plan, claims });
    log_info(c->log, "planned", LOG_INT("pods", p->pending_count),
             LOG_INT("launches", plan->launch_count), LOG_INT("unschedulable", plan->miss_count));
    for (uint32_t i = 0; i < plan->launch_count; i++)
        object_unref(claims[i]);
    *look_again = true;
    count_pass(c, seconds);
    return rc;
}

/* How long the batch is still open; 0: it is taken. `*any`: there is one. */
static int64_t batch_take(struct control *c, bool *any)
{
    struct provisioner *own = c->provisioner;
    pthread_mutex_lock(&own->lock);
    int64_t wait = own->open ? ready_at(c, own) - control_now_ns(c) : 0;
    *any = own->open;
    if (wait <= 0)
        own->open = own->urgent = false;
    pthread_mutex_unlock(&own->lock);
    return wait > 0 ? wait : 0;
}

/* One that went through has seen what was there at its start. What came meanwhile, its own writes too,
 * is for the next look. */
static void pass_over(struct control *c, uint64_t seen, bool whole, bool some_pending)
{
    struct provisioner *own = c->provisioner;
    own->seen = seen;
    own->was_whole = whole;
    pthread_mutex_lock(&own->lock);
    own->pass_end_ns = control_now_ns(c);
    own->some_pending = some_pending;
    pthread_mutex_unlock(&own->lock);
    forget_nominations(c);
}

static struct outcome reconcile(struct control *c, struct str key)
{
    struct provisioner *own = c->provisioner;
    struct provision p;
    struct err err = { 0 };
    bool batch, look_again = false, whole = false;

    if (!overlays_published(c))
        return outcome_requeue(c->options.settings.batch_idle_ns);
    int64_t wait = batch_take(c, &batch);
    if (wait)
        return outcome_requeue(wait);

    uint64_t seen = fingerprint(c);
    if (!batch && own->was_whole && seen == own->seen && control_now_ns(c) < own->look_ns)
        return outcome_requeue(LOOK_AGAIN_NS);
    int rc = claims_settle(c, &own->maker, &err);
    if (rc == 0) {
        provision_collect(c, &p);
        rc = pass(c, &p, &look_again, &err);
        whole = rc == 0 && p.whole;
        own->look_ns = p.cooldown_until_ns;
        provision_done(&p);
    }
    pass_over(c, seen, whole, look_again || rc < 0);
    if (rc < 0)
        return control_failed(c, &provisioner_controller, key, &err);
    return look_again ? outcome_requeue(LOOK_AGAIN_NS) : outcome_done();
}

const struct controller provisioner_controller = {
    .name = "provisioner",
    .reconcile = reconcile,
    .triggers = { { &pod_kind, on_pod },
                  { &node_kind, on_node },
                  { &nodeclaim_kind, on_claim },
                  { &nodepool_kind, on_pool } },
    .singleton = true,
};

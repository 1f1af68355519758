/* A change to a pool's health is: read the pool and the record, decide (health_record.c), write the
 * condition if it changes, put the record back. Nothing is locked while the store is asked. Who finds
 * that the record has moved meanwhile decides again, unless it has written: then the condition is the
 * truth, and the record will be made from it.
 *
 * Claims whose results were counted are remembered for an hour, by the hash of their uid. That is far
 * longer than a reconciler takes to make the fact final, after which it tells no more.
 */
#include "control/health.h"

#include "base/map.h"
#include "codec/duration.h"
#include "control/health_record.h"

#define COUNTED_NS DURATION_HOUR
#define COUNTED_MIN                                                                                \
    1024 /* claims remembered before the first look for those that may be forgotten */
#define IDLE_MAX_NS (365 * 24 * DURATION_HOUR) /* no registration takes longer */

struct tracker { /* of one NodePool */
    char *pool;  /* its name */
    struct health_record record;
    uint64_t version;   /* of the record */
    struct map counted; /* hash of a claim's uid: until when it is remembered (mono_ns) */
    uint32_t counted_max;
};

struct health {
    pthread_mutex_t lock;      /* of all that is below; nothing is taken or asked inside */
    struct str_table trackers; /* struct tracker *, by the pool's uid */
};

struct health *health_new(void)
{
    struct health *h = kv_calloc(1, sizeof *h);
    pthread_mutex_init(&h->lock, NULL);
    return h;
}

static void tracker_free(struct tracker *t)
{
    map_done(&t->counted);
    free(t->pool);
    free(t);
}

void health_free(struct health *h)
{
    if (!h)
        return;
    str_table_each(&h->trackers, it)
        tracker_free(it->value);
    str_table_done(&h->trackers);
    pthread_mutex_destroy(&h->lock);
    free(h);
}

/* --- the records --- */

static struct tracker *tracker_of(struct health *h, const struct object *pool)
{
    struct tracker *t = str_table_get(&h->trackers, pool->meta.uid);
    if (!t) {
        t = kv_calloc(1, sizeof *t);
        t->pool = str_dup(pool->meta.name);
        t->counted_max = COUNTED_MIN;
        str_table_put(&h->trackers, pool->meta.uid, t);
    }
    return t;
}

static uint64_t claim_hash(const struct nodeclaim *claim)
{
    return kv_hash(claim->object.meta.uid.p, claim->object.meta.uid.len);
}

/* The record and its version. False: the result of the claim has been counted. */
static bool record_read(struct health *h, const struct object *pool,
                        const struct nodeclaim *maybe_claim, struct health_record *out,
                        uint64_t *version)
{
    uintptr_t until;
    pthread_mutex_lock(&h->lock);
    const struct tracker *t = tracker_of(h, pool);
    *out = t->record;
    *version = t->version;
    bool counted = maybe_claim && map_get(&t->counted, claim_hash(maybe_claim), &until);
    pthread_mutex_unlock(&h->lock);
    return !counted;
}

static void remember_counted(struct tracker *t, const struct nodeclaim *claim, int64_t now_ns)
{
    if (t->counted.live_count > t->counted_max) {
        map_each(&t->counted, it) {
            if ((int64_t)it->value <= now_ns)
                map_remove(&t->counted, it->key, NULL);
        }
        uint32_t twice = 2 * t->counted.live_count;
        t->counted_max = twice > COUNTED_MIN ? twice : COUNTED_MIN;
    }
    map_put(&t->counted, claim_hash(claim), (uintptr_t)(now_ns + COUNTED_NS));
}

/* False: the record is not what it was, and nothing is written: decide again. */
static bool record_put(struct health *h, const struct object *pool,
                       const struct nodeclaim *maybe_claim, const struct health_record *next,
                       uint64_t version, bool written, int64_t now_ns)
{
    pthread_mutex_lock(&h->lock);
    struct tracker *t = tracker_of(h, pool);
    bool moved = t->version != version;
    if (!moved || written) {
        t->record = *next;
        t->record.known = !moved;
        t->version++;
        if (maybe_claim)
            remember_counted(t, maybe_claim, now_ns);
    }
    pthread_mutex_unlock(&h->lock);
    return !moved || written;
}

/* --- a change --- */

static struct health_settings settings_of(const struct control *c, const struct nodepool *pool)
{
    struct health_settings settings = c->options.settings.health;
    health_policy_parse(str_map_get(&pool->object.meta.annotations, STR(ANNOTATION_HEALTH_POLICY)),
                        &settings.policy);
    return health_settings_sane(settings);
}

static struct health_view view_of(struct control *c, const struct nodepool *pool,
                                  const struct object *maybe_class)
{
    int64_t timeout_ns =
        pool_duration_ns(pool, ANNOTATION_REGISTRATION_TIMEOUT, REGISTRATION_TIMEOUT_NS);
    return (struct health_view){
        .pool = pool,
        .maybe_class = maybe_class,
        .settings = settings_of(c, pool),
        .idle_max_ns = 2 * (timeout_ns < IDLE_MAX_NS ? timeout_ns : IDLE_MAX_NS),
        .cooldown_ns = c->options.settings.registration_cooldown_ns,
        .now_us = control_now_us(c),
        .now_ns = control_now_ns(c),
    };
}

struct verdict { /* why the condition is what it is */
    struct str reason, message;
    bool started_anew, failed;
};

static void set_condition(struct condition_set *set, const struct health_record *r,
                          const struct health_view *v, const struct verdict *verdict,
                          struct arena *arena)
{
    const struct str type = CONDITION_NODE_REGISTRATION_HEALTHY;
    char idle[DURATION_TEXT_MAX];

    if (verdict->started_anew)
        conditions_set_unknown(set, type, REASON_AWAITING_RECONCILIATION,
                               STR("no node of this NodePool and node class was tried yet"));
    enum condition_status before = condition_status_of(conditions_get(set, type));
    if (r->state.status == before && !(verdict->failed && before == CONDITION_FALSE))
        return;
    switch (r->state.status) {
    case CONDITION_TRUE:
        conditions_set_true(set, type);
        return;
    case CONDITION_FALSE: /* also again, in the words of the latest failure */
        conditions_set_false(set, type, verdict->reason, verdict->message);
        return;
    case CONDITION_UNSET:
    case CONDITION_UNKNOWN: /* by age */
        duration_format_short(v->idle_max_ns, idle);
        conditions_set_unknown(set, type, REASON_AWAITING_RECONCILIATION,
                               arena_strf(arena, "no result for %s: failures are forgotten", idle));
        return;
    }
    KV_UNREACHABLE();
}

/* The condition, and with it the class generation that it is about: in one write, so that neither is
 * ever there without the other. */
static int write_condition(struct control *c, const struct health_view *v,
                           const struct health_record *r, const struct verdict *verdict,
                           struct arena *arena, bool *written, struct err *err)
{
    struct condition_set *set = pool_conditions(c, v->pool, arena);
    set_condition(set, r, v, verdict, arena);
    int64_t seen = v->pool->status.node_class_observed_generation;
    int64_t generation =
        verdict->started_anew && v->maybe_class ? v->maybe_class->meta.generation : seen;
    *written = conditions_changed(set) || generation != seen;
    if (!*written)
        return 0;

    AUTO_JSON_BUILD b;
    json_build_init(&b);
    json_mut *root = json_new_object(&b), *status = json_mut_object(&b, root, STR("status"));
    json_set(&b, status, STR("conditions"), conditions_json(set, &b));
    if (generation != seen)
        json_set_i64(&b, status, "nodeClassObservedGeneration", generation);
    return control_patch(c, &v->pool->object, true, true, root, NULL, err);
}

static void show_status(struct control *c, struct str pool, enum condition_status status)
{
    static const enum condition_status all[] = { CONDITION_TRUE, CONDITION_FALSE,
                                                 CONDITION_UNKNOWN };
    for (size_t i = 0; i < KV_COUNT_OF(all); i++) {
        const struct str values[] = { pool, str_of(condition_status_name(all[i])) };
        gauge_set(c->metrics.registration_healthy, all[i] == status, values);
    }
}

static void show_change(struct control *c, const struct nodepool *pool,
                        enum condition_status status, const struct verdict *verdict)
{
    struct str name = pool->object.meta.name;
    show_status(c, name, status);
    if (condition_status_of(health_condition(pool)) == status)
        return;
    if (status == CONDITION_FALSE)
        log_warn(c->log, "nodes of a pool do not join", LOG_STR("nodepool", name),
                 LOG_STR("reason", verdict->reason), LOG_STR("message", verdict->message));
    else
        log_info(c->log, "registration health of a pool", LOG_STR("nodepool", name),
                 LOG_Z("status", condition_status_name(status)));
}

struct result { /* of a claim */
    const struct nodeclaim *claim;
    bool success;
    struct str reason, message; /* of a failure */
};

/* One try. 1: done; 0: the record moved, decide again. */
static int change_once(struct control *c, const struct object *pool_object,
                       const struct result *maybe_result, int64_t *due_ns, struct err *err)
{
    AUTO_ARENA arena = { 0 };
    const struct nodepool *pool = nodepool_of(pool_object);
    const struct nodeclaim *claim = maybe_result ? maybe_result->claim : NULL;
    AUTO_OBJECT class_ = cluster_get_class(c->cluster, &pool->spec.template.spec.node_class_ref);
    struct health_view view = view_of(c, pool, class_);
    struct health_record record;
    uint64_t version;
    bool written;

    if (!record_read(c->health, pool_object, claim, &record, &version))
        return 1;
    struct verdict verdict = { .started_anew = health_record_catch_up(&record, &view) };
    if (maybe_result && health_record_counts(&record, &view, claim)) {
        health_record_result(&record, &view, claim, maybe_result->success);
        verdict.failed = !maybe_result->success;
        verdict.reason = maybe_result->reason;
        verdict.message = maybe_result->message;
    }
    if (write_condition(c, &view, &record, &verdict, &arena, &written, err) < 0)
        return -1;
    if (!record_put(c->health, pool_object, claim, &record, version, written, view.now_ns))
        return 0;
    show_change(c, pool, record.state.status, &verdict);
    *due_ns = health_record_age_due_ns(&record, &view);
    return 1;
}

static bool is_ours(const struct control *c, const struct object *maybe_pool)
{
    return maybe_pool && !maybe_pool->meta.deleted_us &&
           control_manages(c, &nodepool_of(maybe_pool)->spec.template.spec.node_class_ref);
}

/* Of the pool of that name, or of the result's claim. */
static int change(struct control *c, struct str name, const struct result *maybe_result,
                  int64_t *due_ns, struct err *err)
{
    *due_ns = INT64_MAX;
    for (int done = 0; !done;) {
        AUTO_OBJECT pool = maybe_result ? claim_pool(c, maybe_result->claim)
                                        : cluster_get(c->cluster, &nodepool_kind, STR(""), name);
        if (!is_ours(c, pool))
            return 0;
        done = change_once(c, pool, maybe_result, due_ns, err);
        if (done < 0 && err->kind == ERR_NOT_FOUND) { /* the pool; the caller means the claim */
            *err = (struct err){ 0 };
            return 0;
        }
        if (done < 0)
            return err_wrap(err, "registration health");
    }
    return 0;
}

int health_refresh(struct control *c, struct str pool, int64_t *due_ns, struct err *err)
{
    return change(c, pool, NULL, due_ns, err);
}

/* --- results --- */

/* Is this the first time that the result is told, as far as is known here? */
static bool is_news(struct control *c, const struct nodeclaim *claim)
{
    struct health_record record;
    uint64_t version;
    AUTO_OBJECT pool = claim_pool(c, claim);
    return is_ours(c, pool) && record_read(c->health, pool, claim, &record, &version);
}

int health_succeeded(struct control *c, const struct nodeclaim *claim, struct err *err)
{
    int64_t due_ns;
    if (!is_news(c, claim))
        return 0;
    if (change(c, STR(""), &(struct result){ .claim = claim, .success = true }, &due_ns, err) < 0)
        return -1;
    int64_t waited_us = control_now_us(c) - claim->object.meta.created_us;
    metric_count(c->metrics.registrations, claim_pool_name(claim));
    metric_observe_in(c->metrics.registration_duration, (double)waited_us / 1e6,
                      claim_pool_name(claim));
    return 0;
}

int health_failed(struct control *c, const struct nodeclaim *claim, struct err *err)
{
    AUTO_ARENA arena = { 0 };
    struct result result = { .claim = claim };
    int64_t due_ns;
    if (!is_news(c, claim))
        return 0;
    health_failure_words(claim, control_now_us(c), &arena, &result.reason, &result.message);
    if (change(c, STR(""), &result, &due_ns, err) < 0)
        return -1;
    metric_count(c->metrics.registration_failures, claim_pool_name(claim), result.reason);
    return 0;
}

void health_forget(struct control *c, struct str pool, struct str keep_uid)
{
    struct metric_family *const of_pool[] = { c->metrics.registration_healthy,
                                              c->metrics.registrations,
                                              c->metrics.registration_failures,
                                              c->metrics.registration_duration };

    pthread_mutex_lock(&c->health->lock);
    str_table_each(&c->health->trackers, it) {
        struct tracker *t = it->value;
        if (!str_eqz(pool, t->pool) || str_eq(it->key, keep_uid))
            continue;
        str_table_remove(&c->health->trackers, it->key);
        tracker_free(t);
    }
    pthread_mutex_unlock(&c->health->lock);
    for (size_t i = 0; i < KV_COUNT_OF(of_pool) && !keep_uid.len; i++)
        metric_family_remove(of_pool[i], "nodepool", pool);
}

/* --- what follows --- */

bool health_is_true(const struct nodepool *pool)
{
    const struct condition *condition = health_condition(pool);
    return condition_status_of(condition) == CONDITION_TRUE &&
           condition->observed_generation == pool->object.meta.generation;
}

/* The claim that finds out whether the pool is fixed: the youngest whose node has not registered and
 * that is not given up. NULL: none; a reference. */
static const struct object *probe_of(struct control *c, const struct nodepool *pool)
{
    struct object_list claims = { 0 };
    const struct object *probe = NULL;
    cluster_list_by(c->cluster, CLAIMS_BY_POOL, pool->object.meta.name, &claims);
    for (size_t i = 0; i < claims.count; i++) {
        const struct nodeclaim *claim = nodeclaim_of(claims.items[i]);
        if (!object_is_owned_by(&claim->object, &pool->object) || claim->object.meta.deleted_us ||
            claim_condition_true(claim, CONDITION_REGISTERED))
            continue;
        if (!probe || probe->meta.created_us < claim->object.meta.created_us)
            probe = &claim->object;
    }
    probe = probe ? object_ref(probe) : NULL;
    object_list_done(&claims);
    return probe;
}

/* How long the pool is left alone; 0: it may be tried. `*probing`: because a node is being tried. */
static int64_t cooldown_left_us(struct control *c, const struct nodepool *pool, bool *probing)
{
    AUTO_OBJECT class_ = cluster_get_class(c->cluster, &pool->spec.template.spec.node_class_ref);
    struct health_view view = view_of(c, pool, class_);
    struct health_record record;
    uint64_t version;

    AUTO_OBJECT probe = probe_of(c, pool);
    *probing = probe != NULL;
    if (probe) {
        int64_t most_us =
            pool_duration_ns(pool, ANNOTATION_LAUNCH_TIMEOUT, LAUNCH_TIMEOUT_NS) / 1000 +
            view.idle_max_ns / 2000;
        int64_t left = probe->meta.created_us + most_us - view.now_us;
        return left > 1000000 ? left : 1000000; /* it is about to tell */
    }
    record_read(c->health, &pool->object, NULL, &record, &version);
    health_record_catch_up(&record, &view);
    if (record.state.status != CONDITION_FALSE)
        return 0;
    int64_t left = health_record_retry_us(&record, &view) - view.now_us;
    return left > 0 ? left : 0;
}

static bool cools_down(const struct control *c, const struct nodepool *pool)
{
    const struct condition *condition = health_condition(pool);
    return c->options.settings.registration_cooldown_ns > 0 &&
           condition_status_of(condition) == CONDITION_FALSE &&
           condition->observed_generation == pool->object.meta.generation;
}

enum cooldown health_cooldown(struct control *c, const struct nodepool *pool, int64_t *until_ns)
{
    bool probing;
    *until_ns = INT64_MAX;
    if (!cools_down(c, pool))
        return COOLDOWN_NONE;
    int64_t left_us = cooldown_left_us(c, pool, &probing);
    if (!left_us)
        return COOLDOWN_PROBE;
    *until_ns = control_now_ns(c) + left_us * 1000;
    return COOLDOWN_WAIT;
}

struct str health_cooldown_words(struct control *c, const struct nodepool *pool,
                                 struct arena *arena)
{
    const struct condition *condition = health_condition(pool);
    char left[DURATION_TEXT_MAX];
    bool probing;
    if (!cools_down(c, pool))
        return STR("");
    int64_t left_us = cooldown_left_us(c, pool, &probing);
    duration_format_short(left_us * 1000, left);
    return arena_strf(arena, "its nodes do not join the cluster (%.*s%s%.*s); %s%s",
                      STR_ARG(condition->reason), condition->message.len ? ": " : "",
                      STR_ARG(condition->message),
                      probing   ? "a node is being tried now"
                      : left_us ? "next try in "
                                : "next try now",
                      !probing && left_us ? left : "");
}

/* Instances whose nodes are yet to appear: the table, what a restart finds of it in the store, and
 * the making of nodes when their time has come.
 */
#include "cloud/kwok_impl.h"

#include "api/conditions.h"
#include "api/kwoknodeclass.h"
#include "codec/duration.h"

#include <signal.h>

#define RETRY_MIN_NS DURATION_SECOND
#define RETRY_MAX_NS DURATION_MINUTE

/* --- the pending table; the caller has the lock --- */

void kwok_pending_free(struct kwok_pending *p)
{
    arena_done(&p->arena);
    free(p);
}

static void forget(struct kwok *k, struct kwok_pending *p)
{
    str_table_remove(&k->pending, p->instance.node_name);
    kwok_pending_free(p);
    pthread_cond_broadcast(&k->changed);
}

void kwok_pending_put(struct kwok *k, struct kwok_pending *p)
{
    str_table_put(&k->pending, p->instance.node_name, p);
    pthread_cond_broadcast(&k->changed);
}

/* The first that is due, of equal ones the first that was launched. NULL: none is waiting. */
static struct kwok_pending *earliest(struct kwok *k)
{
    struct kwok_pending *first = NULL;
    str_table_each(&k->pending, it) {
        struct kwok_pending *p = it->value;
        if (!p->busy && (!first || p->due_ns < first->due_ns))
            first = p;
    }
    return first;
}

int64_t kwok_later(int64_t from_ns, int64_t delay_ns)
{
    int64_t sum;
    return __builtin_add_overflow(from_ns, delay_ns, &sum) ? INT64_MAX : sum;
}

void kwok_pending_drop(struct kwok *k, struct str node_name)
{
    for (struct kwok_pending *p; (p = str_table_get(&k->pending, node_name)) != NULL;) {
        if (!p->busy) {
            forget(k, p);
            return;
        }
        clock_wait(k->options.clock, &k->changed, &k->lock, INT64_MAX);
    }
}

/* --- node classes --- */

int64_t kwok_class_delay(const struct kwok *k, const struct object *class_)
{
    if (class_->kind != &kwoknodeclass_kind)
        return k->options.registration_delay_ns;
    return kwoknodeclass_of(class_)->spec.node_registration_delay.ns; /* unset is 0 */
}

/* --- what a process that died left behind --- */

static bool is_waiting_for_node(const struct nodeclaim *claim)
{
    const struct nodeclaim_status *status = &claim->status;
    const struct condition *registered =
        condition_find(status->conditions.items, status->conditions.count, CONDITION_REGISTERED);
    return fake_node_of_provider_id(&kwok_naming, status->provider_id).len > 0 &&
           !claim->object.meta.deleted_us && condition_status_of(registered) != CONDITION_TRUE;
}

static int64_t recovered_due_ns(const struct kwok *k, const struct nodeclaim *claim,
                                int64_t launched_us)
{
    AUTO_OBJECT class_ = NULL;
    struct err err;
    int64_t delay_ns = 0;
    if (fake_class_get(&k->port, k->options.store, &claim->spec.node.node_class_ref, &class_,
                       &err) == 0)
        delay_ns = kwok_class_delay(k, class_);
    int64_t waited_us = clock_wall_us(k->options.clock) - launched_us;
    int64_t left_us = delay_ns / 1000 - (waited_us > 0 ? waited_us : 0);
    return kwok_later(clock_mono_ns(k->options.clock), left_us > 0 ? left_us * 1000 : 0);
}

static int recover_claim(struct kwok *k, const struct nodeclaim *claim, struct err *err)
{
    struct str name = fake_node_of_provider_id(&kwok_naming, claim->status.provider_id);
    if (store_get(k->options.store, (struct object_ref){ &node_kind, STR(""), name }, NULL, err) ==
        0)
        return 0;
    if (err->kind != ERR_NOT_FOUND)
        return -1;
    struct kwok_pending *p = kv_calloc(1, sizeof *p);
    fake_instance_of_claim(&p->arena, &kwok_naming, claim, &p->instance);
    p->claim_uid = arena_str(&p->arena, claim->object.meta.uid);
    p->due_ns = recovered_due_ns(k, claim, p->instance.created_us);
    p->recovered = true;
    kwok_pending_put(k, p);
    return 0;
}

/* Once per process. Calls that fail find it undone and begin again. The caller has the lock. */
static int recover(struct kwok *k, struct err *err)
{
    struct object_list claims = { 0 };
    int rc = 0;

    if (k->recovered)
        return 0;
    /* One that cannot be read waits for its node until it can be: the others need not. */
    struct list_options options = { .skip_unreadable = true };
    if (store_list(k->options.store, &nodeclaim_kind, &options, &claims, err) < 0)
        return err_wrap(err, "looking for launched claims");
    for (size_t i = 0; i < claims.count && rc == 0; i++) {
        const struct nodeclaim *claim = nodeclaim_of(claims.items[i]);
        struct str name = fake_node_of_provider_id(&kwok_naming, claim->status.provider_id);
        if (is_waiting_for_node(claim) && !str_table_has(&k->pending, name))
            rc = recover_claim(k, claim, err);
    }
    object_list_done(&claims);
    k->recovered = rc == 0;
    return rc;
}

/* The lock, and everything that is pending under it. */
int kwok_lock(struct kwok *k, struct err *err)
{
    pthread_mutex_lock(&k->lock);
    int rc = recover(k, err);
    if (rc < 0)
        pthread_mutex_unlock(&k->lock);
    return rc;
}

/* --- nodes --- */

/* Of what was found in the store at the start, somebody else may have made an end since. 1: so it
 * is; negative: the store does not say. */
static int claim_is_gone(struct kwok *k, const struct kwok_pending *p, struct err *err)
{
    AUTO_OBJECT claim = NULL;
    struct object_ref ref = { &nodeclaim_kind, STR(""), p->instance.claim_name };
    if (store_get(k->options.store, ref, &claim, err) < 0)
        return err->kind == ERR_NOT_FOUND ? 1 : -1;
    return claim->meta.deleted_us || !str_eq(claim->meta.uid, p->claim_uid);
}

static void node_json(const struct instance *instance, struct buf *out)
{
    AUTO_JSON_BUILD b = { 0 };
    json_build_init(&b);
    json_mut *root = fake_node_json(&b, instance);
    json_mut *meta = json_mut_object(&b, root, STR("metadata"));
    json_set_str(&b, json_mut_object(&b, meta, STR("annotations")), KWOK_CLAIM,
                 instance->claim_name);
    json_write_mut(root, out);
}

static int make_node(struct kwok *k, const struct kwok_pending *p, struct err *err)
{
    AUTO_BUF json = { 0 };
    int gone = p->recovered ? claim_is_gone(k, p, err) : 0;
    if (gone)
        return gone < 0 ? -1 : 0;
    node_json(&p->instance, &json);
    if (store_create(k->options.store, &node_kind, STR(""), buf_str(&json), NULL, err) == 0)
        return 0;
    /* Its name follows from the claim's UID: who made it before us made this one. */
    return err->kind == ERR_EXISTS ? 0 : -1;
}

static int64_t backoff_ns(uint32_t failures)
{
    int64_t wait = RETRY_MIN_NS << (failures < 6 ? failures : 6);
    return wait < RETRY_MAX_NS ? wait : RETRY_MAX_NS;
}

/* Makes one node. The lock is held on entry and on return, and not in between. */
static void make_pending(struct kwok *k, struct kwok_pending *p)
{
    struct err err = { 0 };

    p->busy = true;
    pthread_mutex_unlock(&k->lock);
    int rc = make_node(k, p, &err);
    if (rc < 0)
        log_warn(k->options.maybe_log, "node not created", LOG_STR("node", p->instance.node_name),
                 LOG_STR("claim", p->instance.claim_name), LOG_ERR(&err));
    pthread_mutex_lock(&k->lock);
    p->busy = false;
    if (rc == 0) {
        forget(k, p);
        return;
    }
    p->due_ns = kwok_later(clock_mono_ns(k->options.clock), backoff_ns(p->failures++));
    pthread_cond_broadcast(&k->changed);
}

/* What is due, earliest first; the next moment. The caller has the lock. */
static int64_t step_locked(struct kwok *k)
{
    struct err err = { 0 };
    struct kwok_pending *p;

    if (recover(k, &err) < 0) {
        log_warn(k->options.maybe_log, "pending nodes not known", LOG_ERR(&err));
        return kwok_later(clock_mono_ns(k->options.clock), RETRY_MIN_NS);
    }
    while ((p = earliest(k)) != NULL && p->due_ns <= clock_mono_ns(k->options.clock) &&
           !k->stopping)
        make_pending(k, p);
    return p ? p->due_ns : INT64_MAX;
}

int64_t kwok_step(struct kwok *k)
{
    pthread_mutex_lock(&k->lock);
    int64_t next_ns = step_locked(k);
    pthread_mutex_unlock(&k->lock);
    return next_ns;
}

static void *thread_main(void *ctx)
{
    struct kwok *k = ctx;
    pthread_mutex_lock(&k->lock);
    while (!k->stopping) {
        int64_t next_ns = step_locked(k);
        if (!k->stopping)
            clock_wait(k->options.clock, &k->changed, &k->lock, next_ns);
    }
    pthread_mutex_unlock(&k->lock);
    return NULL;
}

int kwok_start(struct kwok *k, struct err *err)
{
    KV_ASSERT(!k->started);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* inherited: signals are for the main thread */
    k->started = pthread_create(&k->thread, NULL, thread_main, k) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!k->started)
        return err_set(err, ERR_UNAVAILABLE, "kwok: the system gives no more threads");
    pthread_setname_np(k->thread, "kwok");
    return 0;
}

/* Makers, and when each of them is looked at.
 *
 * Informers tell what changed; a change marks the maker that it is about: itself, or whoever controls
 * what changed (pods their ReplicaSet, ReplicaSets their Deployment). A round syncs all that are
 * marked, in the order in which they were marked, and the next round takes in what that did, until
 * nothing is marked any more.
 *
 *  1. A maker is synced only once the informers have seen all that was written for it.
 *  2. Pods that we deleted do not count from that moment (`going`), although a pod may stay for its
 *     grace and its events come late.
 *  3. Nothing is written when nothing changes.
 */
#include "sim/workloads_impl.h"

#include "api/node.h"

static const struct {
    const struct kind *kind;
    void (*read)(struct workloads *w, struct maker *m, struct str text, const json_val *root);
    void (*sync)(struct workloads *w, struct maker *m);
} watched_kinds[WATCH_COUNT] = {
    [WATCH_DEPLOYMENTS] = { &deployment_kind, deployment_read, deployment_sync },
    [WATCH_REPLICA_SETS] = { &replica_set_kind, replica_set_read, replica_set_sync },
    [WATCH_STATEFUL_SETS] = { &stateful_set_kind, stateful_set_read, stateful_set_sync },
    [WATCH_DAEMON_SETS] = { &daemon_set_kind, daemon_set_read, daemon_set_sync },
    [WATCH_JOBS] = { &job_kind, job_read, job_sync },
    [WATCH_CRON_JOBS] = { &cron_job_kind, cron_job_read, cron_job_sync },
    [WATCH_PODS] = { &pod_kind, NULL, NULL },
    [WATCH_NODES] = { &node_kind, NULL, NULL },
};

/* --- makers --- */

static enum watched watched_of(const struct kind *kind)
{
    for (unsigned i = 0; i < WATCH_COUNT; i++) {
        if (watched_kinds[i].kind == kind)
            return (enum watched)i;
    }
    return WATCH_COUNT;
}

void maker_mark(struct workloads *w, struct maker *m)
{
    if (m->dirty)
        return;
    m->dirty = true;
    vec_push(&w->dirty, m);
}

void maker_due(struct maker *m, int64_t at_ns)
{
    m->due_ns = at_ns < m->due_ns ? at_ns : m->due_ns;
}

static struct maker *maker_new(struct workloads *w, const struct object *object,
                               enum watched watched)
{
    struct maker *m = kv_calloc(1, sizeof *m);
    struct str uid = object->meta.uid;
    m->watched = watched;
    m->due_ns = INT64_MAX;
    m->all_nodes = true;
    rng_init(&m->rng, w->seed ^ kv_hash(uid.p, uid.len));
    if (watched == WATCH_JOBS) {
        m->succeeded = job_of(object)->status.succeeded;
        m->failed = job_of(object)->status.failed;
    }
    str_table_put(&w->makers, uid, m);
    return m;
}

static void maker_free(struct maker *m)
{
    object_unref(m->maybe_object);
    mould_done(&m->mould);
    vec_each(&m->claims, struct mould, claim)
        mould_done(claim);
    vec_done(&m->claims);
    daemon_set_done(m);
    str_table_done(&m->counted);
    str_table_done(&m->completed);
    free(m);
}

/* Who controls it, if we know them. */
static struct maker *maker_of(struct workloads *w, const struct object *maybe_object)
{
    const struct owner_ref *owner = maybe_object ? meta_controller(&maybe_object->meta) : NULL;
    return owner ? str_table_get(&w->makers, owner->uid) : NULL;
}

static void mark_maker_of(struct workloads *w, const struct object *maybe_object)
{
    struct maker *m = maker_of(w, maybe_object);
    if (m)
        maker_mark(w, m);
}

/* --- what informers tell --- */

static void maker_changed(void *ctx, const struct object *maybe_old, const struct object *maybe_new)
{
    struct workloads *w = ctx;
    const struct object *object = maybe_new ? maybe_new : maybe_old;
    enum watched watched = watched_of(object->kind);
    struct maker *m = str_table_get(&w->makers, object->meta.uid);
    if (!m && maybe_new)
        m = maker_new(w, object, watched);
    if (!m)
        return;
    object_unref(m->maybe_object);
    m->maybe_object = maybe_new ? object_ref(maybe_new) : NULL;
    if (!maybe_new)
        str_table_remove(&w->makers, object->meta.uid);
    maker_mark(w, m);
    mark_maker_of(w, object);
}

static void pod_changed(void *ctx, const struct object *maybe_old, const struct object *maybe_new)
{
    struct workloads *w = ctx;
    const struct object *object = maybe_new ? maybe_new : maybe_old;
    struct maker *m = maker_of(w, object), *before = maker_of(w, maybe_old);
    if (!maybe_new || pod_is_terminating(pod_of(maybe_new)))
        str_table_remove(&w->going, object->meta.uid);
    if (before && before != m)
        maker_mark(w, before);
    if (!m)
        return;
    if (m->watched == WATCH_DAEMON_SETS)
        daemon_set_pod_changed(m, maybe_old ? pod_of(maybe_old) : NULL,
                               maybe_new ? pod_of(maybe_new) : NULL);
    if (m->watched == WATCH_JOBS)
        job_pod_changed(w, m, pod_of(object));
    maker_mark(w, m);
    if (!maybe_new)
        mark_maker_of(w, m->maybe_object); /* who recreates pods waits for the last to be gone */
}

/* Heartbeats and conditions say nothing to a DaemonSet. */
static bool node_moved(const struct object *a, const struct object *b)
{
    const struct node *x = node_of(a), *y = node_of(b);
    const struct str_map *p = &a->meta.labels, *q = &b->meta.labels;
    if (p->count != q->count || x->spec.unschedulable != y->spec.unschedulable ||
        x->spec.taints.count != y->spec.taints.count)
        return true;
    for (uint32_t i = 0; p->items != q->items && i < p->count; i++) {
        if (!str_eq(p->items[i].key, q->items[i].key) ||
            !str_eq(p->items[i].value, q->items[i].value))
            return true;
    }
    for (uint32_t i = 0; i < x->spec.taints.count; i++) {
        const struct taint *s = &x->spec.taints.items[i], *t = &y->spec.taints.items[i];
        if (!str_eq(s->key, t->key) || !str_eq(s->value, t->value) || s->effect != t->effect)
            return true;
    }
    return false;
}

static void node_changed(void *ctx, const struct object *maybe_old, const struct object *maybe_new)
{
    struct workloads *w = ctx;
    if (maybe_old && maybe_new && !node_moved(maybe_old, maybe_new))
        return;
    str_table_each(&w->makers, slot) {
        struct maker *m = slot->value;
        if (m->watched != WATCH_DAEMON_SETS)
            continue;
        daemon_set_node_changed(m, (maybe_new ? maybe_new : maybe_old)->meta.name);
        maker_mark(w, m);
    }
}

static struct str controller_uid(const struct object *object)
{
    const struct owner_ref *owner = meta_controller(&object->meta);
    return owner ? owner->uid : STR("");
}

struct workloads *workloads_new(const struct store *store, const struct clock *clock, uint64_t seed)
{
    struct workloads *w = kv_calloc(1, sizeof *w);
    w->store = store;
    w->clock = clock;
    w->seed = seed;
    for (unsigned i = 0; i < WATCH_COUNT; i++) {
        w->informers[i] = informer_new((struct informer_options){
            .store = store, .kind = watched_kinds[i].kind, .clock = clock, .seed = seed + i });
        informer_on_change(w->informers[i],
                           i == WATCH_PODS    ? pod_changed
                           : i == WATCH_NODES ? node_changed
                                              : maker_changed,
                           w);
        w->by_controller[i] = informer_add_index(w->informers[i], controller_uid);
    }
    return w;
}

void workloads_free(struct workloads *w)
{
    if (!w)
        return;
    for (unsigned i = 0; i < WATCH_COUNT; i++)
        informer_free(w->informers[i]);
    vec_each(&w->dirty, struct maker *, m) {
        if (!(*m)->maybe_object) /* out of the table already */
            maker_free(*m);
    }
    str_table_each(&w->makers, slot)
        maker_free(slot->value);
    str_table_done(&w->makers);
    str_table_done(&w->going);
    vec_done(&w->dirty);
    arena_done(&w->scratch);
    free(w);
}

/* --- for the kinds --- */

void made_list(struct workloads *w, const struct maker *m, enum watched what,
               struct object_list *out)
{
    informer_list_index(w->informers[what], w->by_controller[what], m->maybe_object->meta.uid, out);
}

static void wrote(struct maker *m, enum watched what, const struct object *object)
{
    if (object->meta.resource_version > m->wrote[what])
        m->wrote[what] = object->meta.resource_version;
}

static void maker_retry(struct workloads *w, struct maker *m)
{
    maker_due(m, clock_mono_ns(w->clock) + MAKER_RETRY_NS);
}

bool maker_create(struct workloads *w, struct maker *m, enum watched what, struct str json,
                  bool *maybe_exists)
{
    AUTO_OBJECT made = NULL;
    struct err err = { 0 };
    if (maybe_exists)
        *maybe_exists = false;
    if (store_create(w->store, watched_kinds[what].kind, m->maybe_object->meta.namespace_, json,
                     &made, &err) < 0) {
        if (maybe_exists)
            *maybe_exists = err.kind == ERR_EXISTS;
        if (!maybe_exists || err.kind != ERR_EXISTS)
            maker_retry(w, m);
        return false;
    }
    wrote(m, what, made);
    return true;
}

static struct object_ref ref_of(const struct object *object)
{
    return (struct object_ref){ object->kind, object->meta.namespace_, object->meta.name };
}

bool maker_patch(struct workloads *w, struct maker *m, const struct object *object, bool status,
                 struct str patch)
{
    AUTO_OBJECT patched = NULL;
    struct err err = { 0 };
    if (store_patch(w->store, ref_of(object),
                    (struct patch_options){ .type = PATCH_MERGE, .status = status }, patch,
                    &patched, &err) < 0) {
        if (err.kind != ERR_NOT_FOUND)
            maker_retry(w, m);
        return false;
    }
    wrote(m, watched_of(object->kind), patched);
    return true;
}

void maker_status(struct workloads *w, struct maker *m, struct str patch)
{
    maker_patch(w, m, m->maybe_object, true, patch);
}

void maker_remove(struct workloads *w, struct maker *m, const struct object *object)
{
    struct err err = { 0 };
    struct delete_options opts = { .uid = object->meta.uid };
    if (store_remove(w->store, ref_of(object), &opts, &err) < 0 && err.kind != ERR_NOT_FOUND)
        maker_retry(w, m);
}

void pod_remove(struct workloads *w, struct maker *m, const struct pod *pod)
{
    str_table_put(&w->going, pod->object.meta.uid, w);
    maker_remove(w, m, &pod->object);
}

bool maker_read(struct workloads *w, struct maker *m)
{
    AUTO_BUF text = { 0 };
    struct doc doc = { 0 };
    if (m->read == m->maybe_object->meta.generation && m->read)
        return true;
    if (store_get_json(w->store, ref_of(m->maybe_object), &text, NULL) < 0 ||
        json_read_trusted(buf_str(&text), &doc, NULL) < 0)
        return false;
    watched_kinds[m->watched].read(w, m, buf_str(&text), doc.root);
    m->read = m->maybe_object->meta.generation;
    doc_done(&doc);
    return true;
}

bool pod_is_active(const struct workloads *w, const struct pod *pod)
{
    return !pod_is_terminal(pod) && !pod_is_terminating(pod) &&
           !str_table_has(&w->going, pod->object.meta.uid);
}

bool pod_is_available(struct workloads *w, struct maker *m, const struct pod *pod,
                      int64_t min_ready_s)
{
    if (!pod_is_ready(pod))
        return false;
    if (min_ready_s <= 0)
        return true;
    const struct pod_condition *ready = pod_condition(pod, STR("Ready"));
    int64_t since_us = pod_condition_us(pod, ready);
    int64_t until_us = since_us + min_ready_s * 1000000;
    if (!since_us)
        return false; /* for how long is not said */
    int64_t left_us = until_us - clock_wall_us(w->clock);
    if (left_us > 0)
        maker_due(m, clock_mono_ns(w->clock) + left_us * 1000);
    return left_us <= 0;
}

/* --- running --- */

static bool has_seen_its_writes(struct workloads *w, const struct maker *m)
{
    for (unsigned i = 0; i < WATCH_COUNT; i++) {
        if (m->wrote[i] && informer_version(w->informers[i]) < m->wrote[i])
            return false;
    }
    return true;
}

static void sync(struct workloads *w, struct maker *m)
{
    m->due_ns = INT64_MAX;
    if (!m->maybe_object->meta.deleted_us && maker_read(w, m))
        watched_kinds[m->watched].sync(w, m);
    arena_reset(&w->scratch);
}

static void mark_due(struct workloads *w)
{
    int64_t now_ns = clock_mono_ns(w->clock);
    str_table_each(&w->makers, slot) {
        struct maker *m = slot->value;
        if (m->due_ns <= now_ns)
            maker_mark(w, m);
    }
}

/* False: nobody was marked, or all that were wait for events. */
static bool round_of_syncs(struct workloads *w)
{
    bool synced = false;
    size_t count = w->dirty.count;
    AUTO_FREE struct maker **items = kv_calloc(count + 1, sizeof *items);
    if (count)
        memcpy(items, w->dirty.items, count * sizeof *items);
    vec_clear(&w->dirty);
    for (size_t i = 0; i < count; i++) {
        struct maker *m = items[i];
        m->dirty = false;
        if (!m->maybe_object) {
            maker_free(m);
        } else if (!has_seen_its_writes(w, m)) {
            maker_mark(w, m);
        } else {
            sync(w, m);
            synced = true;
        }
    }
    return synced;
}

int64_t workloads_step(struct workloads *w)
{
    int64_t next_ns = INT64_MAX;
    mark_due(w);
    do {
        for (unsigned i = 0; i < WATCH_COUNT; i++)
            informer_pump(w->informers[i]);
    } while (round_of_syncs(w));
    str_table_each(&w->makers, slot) {
        const struct maker *m = slot->value;
        next_ns = m->due_ns < next_ns ? m->due_ns : next_ns;
    }
    for (unsigned i = 0; i < WATCH_COUNT; i++) {
        int64_t due_ns = informer_due_ns(w->informers[i]);
        next_ns = due_ns < next_ns ? due_ns : next_ns;
    }
    return next_ns;
}

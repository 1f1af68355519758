/* store/embedded.c - the embedded store's heart: entries, the commits that change them, the port.
 *
 * An entry is an object as compact JSON (what patches are applied to) and the same decoded (what
 * readers get). Both are made once per write. The resourceVersion is in neither text: it is stamped
 * into the decoded object by the commit, so equal texts mean that nothing changed.
 *
 * Invariants:
 *   1. Each commit is one version and one event; versions have no gaps, so an event's place in the
 *      log follows from its version.
 *   2. Indexes, log and budgets follow inside the commit; nobody sees an entry without them.
 *   3. Readers' code (wake, faults) runs with the lock released.
 */
#include "store/embedded_impl.h"

#include "api/pod.h"
#include "api/policy.h"

static const char *const namespaces_at_start[] = { "default", "kube-node-lease", "kube-public",
                                                   "kube-system" };

static const struct store_ops embedded_ops, onlooker_ops;

struct embedded *embedded_new(struct embedded_options opts)
{
    struct embedded *e = kv_calloc(1, sizeof *e);
    e->port = (struct store){ .ops = &embedded_ops, .ctx = e };
    e->onlooker = (struct store){ .ops = &onlooker_ops, .ctx = e };
    e->clock = opts.clock;
    e->pool = opts.pool;
    e->auto_namespaces = opts.auto_namespaces;
    e->bookmark_every = opts.bookmark_every ? opts.bookmark_every : EMBEDDED_BOOKMARK_EVERY;
    e->log_cap = opts.history_max ? opts.history_max : EMBEDDED_HISTORY;
    e->log = kv_calloc(e->log_cap, sizeof *e->log);
    rng_init(&e->rng, opts.seed);
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->wake_end, NULL);

    for (size_t i = 0; i < KV_COUNT_OF(namespaces_at_start); i++) {
        AUTO_BUF json = { 0 };
        buf_addf(&json, "{\"metadata\":{\"name\":\"%s\"}}", namespaces_at_start[i]);
        struct err err = { 0 };
        int rc = store_create(&e->port, &namespace_kind, STR(""), buf_str(&json), NULL, &err);
        KV_ASSERT(rc == 0);
    }
    return e;
}

static void log_event_done(struct log_event *event)
{
    object_unref(event->maybe_old);
    object_unref(event->object);
    *event = (struct log_event){ 0 };
}

static void entry_free(struct entry *entry)
{
    object_unref(entry->object);
    free((char *)entry->text.p);
    free(entry);
}

static void kind_state_free(struct kind_state *ks)
{
    KV_ASSERT(ks->watchers.count == 0);
    for (sorted_each(&ks->entries, STR(""), it))
        entry_free(it.item->value);
    sorted_done(&ks->entries);
    vec_done(&ks->watchers);
    free(ks);
}

void embedded_free(struct embedded *e)
{
    for (sorted_each(&e->budgets, STR(""), it))
        budget_free(it.item->value);
    vec_each(&e->kinds, struct kind_state *, ks)
        kind_state_free(*ks);
    for (uint32_t i = 0; i < e->log_cap; i++)
        log_event_done(&e->log[i]);
    free(e->log);
    vec_done(&e->kinds);
    vec_done(&e->wakes);
    vec_done(&e->collect);
    vec_done(&e->budgets_stale);
    sorted_done(&e->budgets);
    sorted_done(&e->pods_by_node);
    sorted_done(&e->dependents);
    str_table_done(&e->uids);
    pthread_cond_destroy(&e->wake_end);
    pthread_mutex_destroy(&e->lock);
    free(e);
}

const struct store *embedded_store(struct embedded *e)
{
    return &e->port;
}

const struct store *embedded_onlooker(struct embedded *e)
{
    return &e->onlooker;
}

void embedded_lock(struct embedded *e)
{
    pthread_mutex_lock(&e->lock);
}

void embedded_unlock(struct embedded *e)
{
    while (gc_run(e) || budgets_run(e))
        continue;
    watchers_wake(e);
    pthread_mutex_unlock(&e->lock);
}

uint64_t embedded_version(struct embedded *e)
{
    return atomic_load(&e->version);
}

/* --- kinds and entries --- */

struct kind_state *kind_state(struct embedded *e, const struct kind *kind)
{
    vec_each(&e->kinds, struct kind_state *, it) {
        if ((*it)->kind == kind)
            return *it;
    }
    struct kind_state *ks = kv_calloc(1, sizeof *ks);
    ks->kind = kind;
    vec_push(&e->kinds, ks);
    return ks;
}

bool kind_is_custom(const struct kind *kind)
{
    return strchr(kind->group, '.') && !str_ends(str_of(kind->group), STR(".k8s.io"));
}

struct entry *entry_find(struct embedded *e, struct object_ref ref)
{
    AUTO_BUF key = { 0 };
    SORTED_KEY(&key, ref.kind->namespaced ? ref.namespace_ : STR(""), ref.name);
    return sorted_get(&kind_state(e, ref.kind)->entries, buf_str(&key));
}

struct entry *entry_need(struct embedded *e, struct object_ref ref, struct err *err)
{
    struct entry *entry = entry_find(e, ref);
    if (!entry)
        err_set(err, ERR_NOT_FOUND, "%s \"%.*s\" not found", ref.kind->plural, STR_ARG(ref.name));
    return entry;
}

/* --- commits --- */

static struct str pod_node(const struct object *object)
{
    return object->kind == &pod_kind ? pod_of(object)->node_name : STR_NONE;
}

static void index_add(struct embedded *e, struct entry *entry)
{
    const struct meta *meta = &entry->object->meta;
    AUTO_BUF key = { 0 };

    str_table_put(&e->uids, meta->uid, entry);
    struct str node = pod_node(entry->object);
    if (node.len > 0) {
        SORTED_KEY(&key, node, entry->namespace_, entry->name);
        sorted_put(&e->pods_by_node, buf_str(&key), entry);
    }
    for (uint32_t i = 0; i < meta->owners.count; i++) {
        SORTED_KEY(&key, meta->owners.items[i].uid, str_of(entry->ks->kind->name),
                   entry->namespace_, entry->name);
        sorted_put(&e->dependents, buf_str(&key), entry);
    }
}

static void index_remove(struct embedded *e, struct entry *entry)
{
    const struct meta *meta = &entry->object->meta;
    AUTO_BUF key = { 0 };

    str_table_remove(&e->uids, meta->uid);
    struct str node = pod_node(entry->object);
    if (node.len > 0) {
        SORTED_KEY(&key, node, entry->namespace_, entry->name);
        sorted_remove(&e->pods_by_node, buf_str(&key));
    }
    for (uint32_t i = 0; i < meta->owners.count; i++) {
        SORTED_KEY(&key, meta->owners.items[i].uid, str_of(entry->ks->kind->name),
                   entry->namespace_, entry->name);
        sorted_remove(&e->dependents, buf_str(&key));
    }
}

static bool index_same(const struct object *a, const struct object *b)
{
    if (!str_eq(a->meta.uid, b->meta.uid) || !str_eq(pod_node(a), pod_node(b)) ||
        a->meta.owners.count != b->meta.owners.count)
        return false;
    for (uint32_t i = 0; i < a->meta.owners.count; i++) {
        if (!str_eq(a->meta.owners.items[i].uid, b->meta.owners.items[i].uid))
            return false;
    }
    return true;
}

/* One more version, with its event. Takes over a reference to each object. */
static void log_append(struct embedded *e, struct kind_state *ks, const struct object *maybe_old,
                       const struct object *object, bool removed)
{
    /* Nobody but the writer has seen the object yet. */
    ((struct object *)object)->meta.resource_version = ++e->version;
    struct log_event *event = &e->log[e->version % e->log_cap];
    if (event->ks)
        event->ks->trimmed = e->version - e->log_cap;
    log_event_done(event);
    *event = (struct log_event){
        .ks = ks,
        .maybe_old = maybe_old,
        .object = object,
        .removed = removed,
        .at_ns = clock_mono_ns(e->clock),
    };
    ks->last = e->version;
    watchers_notice(e, ks);
}

struct entry *commit_add(struct embedded *e, struct kind_state *ks, struct str namespace_,
                         struct str name, struct str text, const struct object *object)
{
    struct entry *entry = kv_calloc(1, sizeof *entry);
    AUTO_BUF key = { 0 };

    SORTED_KEY(&key, namespace_, name);
    entry->ks = ks;
    entry->key = sorted_put(&ks->entries, buf_str(&key), entry);
    entry->namespace_ = str_sub(entry->key, 0, namespace_.len);
    entry->name = str_sub(entry->key, namespace_.len + 1, name.len);
    entry->text = text;
    entry->object = object;
    index_add(e, entry);
    log_append(e, ks, NULL, object_ref(object), false);
    gc_changed(e, NULL, entry);
    budget_changed(e, NULL, object, entry);
    return entry;
}

void commit_replace(struct embedded *e, struct entry *entry, struct str text,
                    const struct object *object)
{
    const struct object *old = entry->object;
    bool reindex = !index_same(old, object);

    if (reindex)
        index_remove(e, entry);
    free((char *)entry->text.p);
    entry->text = text;
    entry->object = object;
    if (reindex)
        index_add(e, entry);
    log_append(e, entry->ks, object_ref(old), object_ref(object), false);
    gc_changed(e, old, entry);
    budget_changed(e, old, object, entry);
    object_unref(old);
}

/* The last state again, because it gets a version of its own: that of the removal. */
static const struct object *decode_again(struct embedded *e, const struct entry *entry)
{
    AUTO_DOC doc = { 0 };
    const struct object *object = NULL;
    struct err err = { 0 };

    int rc = json_read_trusted(entry->text, &doc, &err);
    KV_ASSERT(rc == 0);
    rc = object_decode(e->pool, entry->ks->kind, doc.root, &object, &err);
    KV_ASSERT(rc == 0);
    return object;
}

void commit_remove(struct embedded *e, struct entry *entry)
{
    index_remove(e, entry);
    log_append(e, entry->ks, object_ref(entry->object), decode_again(e, entry), true);
    budget_changed(e, entry->object, NULL, entry);
    gc_removed(e, entry);
    sorted_remove(&entry->ks->entries, entry->key);
    entry_free(entry);
}

/* --- faults --- */

void embedded_set_faults(struct embedded *e, const struct embedded_faults *faults)
{
    embedded_lock(e);
    e->faults = faults ? *faults : (struct embedded_faults){ 0 };
    embedded_unlock(e);
}

static struct embedded_faults faults_now(struct embedded *e)
{
    pthread_mutex_lock(&e->lock);
    struct embedded_faults faults = e->faults;
    pthread_mutex_unlock(&e->lock);
    return faults;
}

static int fault(enum err_kind kind, const struct embedded_call *call, const char *when,
                 struct err *err)
{
    if (kind == ERR_NONE)
        return 0;
    return err_set(err, kind, "%s \"%.*s\": injected: %s, %s", call->kind->plural,
                   STR_ARG(call->name), err_kind_name(kind), when);
}

static int fault_before(struct embedded *e, const struct embedded_call *call, struct err *err)
{
    struct embedded_faults faults = faults_now(e);
    if (!faults.before)
        return 0;
    return fault(faults.before(faults.ctx, call), call, "before it took effect", err);
}

/* What the call returned, unless it succeeded and the caller is to believe otherwise. */
static int fault_after(struct embedded *e, const struct embedded_call *call, int rc,
                       struct err *err)
{
    struct embedded_faults faults = faults_now(e);
    if (rc < 0 || !faults.after)
        return rc;
    return fault(faults.after(faults.ctx, call), call, "after it took effect", err);
}

/* --- the port --- */

static int port_get(void *ctx, struct object_ref ref, const struct object **out, struct err *err)
{
    struct embedded *e = ctx;
    struct embedded_call call = { EMBEDDED_GET, ref.kind, ref.namespace_, ref.name };

    if (fault_before(e, &call, err) < 0)
        return -1;
    embedded_lock(e);
    struct entry *entry = entry_need(e, ref, err);
    const struct object *object = entry ? object_ref(entry->object) : NULL;
    embedded_unlock(e);
    if (!object)
        return -1;
    *out = object;
    return 0;
}

static int port_get_json(void *ctx, struct object_ref ref, struct buf *out, struct err *err)
{
    struct embedded *e = ctx;
    struct embedded_call call = { EMBEDDED_GET, ref.kind, ref.namespace_, ref.name };

    if (fault_before(e, &call, err) < 0)
        return -1;
    embedded_lock(e);
    struct entry *entry = entry_need(e, ref, err);
    if (entry)
        buf_add(out, entry->text);
    embedded_unlock(e);
    return entry ? 0 : -1;
}

static int port_list(void *ctx, const struct kind *kind, const struct list_options *opts,
                     struct object_list *out, struct err *err)
{
    struct embedded *e = ctx;
    struct embedded_call call = { EMBEDDED_LIST, kind, opts->namespace_, STR("") };

    if (fault_before(e, &call, err) < 0)
        return -1;
    embedded_lock(e);
    int rc = embedded_list(e, kind_state(e, kind), opts, out, err);
    embedded_unlock(e);
    return rc;
}

static int open_watch(struct embedded *e, const struct kind *kind, const struct watch_options *opts,
                      bool onlooker, struct watch **out, struct err *err)
{
    struct embedded_call call = { EMBEDDED_WATCH, kind, opts->namespace_, STR("") };

    if (fault_before(e, &call, err) < 0)
        return -1;
    embedded_lock(e);
    int rc = embedded_watch(e, kind_state(e, kind), opts, onlooker, out, err);
    embedded_unlock(e);
    return rc;
}

static int port_watch(void *ctx, const struct kind *kind, const struct watch_options *opts,
                      struct watch **out, struct err *err)
{
    return open_watch(ctx, kind, opts, false, out, err);
}

static int onlooker_watch(void *ctx, const struct kind *kind, const struct watch_options *opts,
                          struct watch **out, struct err *err)
{
    return open_watch(ctx, kind, opts, true, out, err);
}

static int port_create(void *ctx, const struct kind *kind, struct str namespace_, struct str json,
                       const struct object **maybe_out, struct err *err)
{
    struct embedded *e = ctx;
    struct embedded_call call = { EMBEDDED_CREATE, kind, namespace_, STR("") };
    AUTO_DOC doc = { 0 };
    AUTO_OBJECT object = NULL;

    if (fault_before(e, &call, err) < 0)
        return -1;
    if (json_read(json, &doc, err) < 0)
        return err_wrap(err, "%s", kind->plural);
    embedded_lock(e);
    int rc = embedded_create(e, kind_state(e, kind), namespace_, doc.root, false, &object, err);
    embedded_unlock(e);
    if (fault_after(e, &call, rc, err) < 0)
        return -1;
    if (maybe_out)
        *maybe_out = take(&object);
    return 0;
}

static int port_patch(void *ctx, struct object_ref ref, struct patch_options opts, struct str patch,
                      const struct object **maybe_out, struct err *err)
{
    struct embedded *e = ctx;
    struct embedded_call call = { EMBEDDED_PATCH, ref.kind, ref.namespace_, ref.name };
    AUTO_OBJECT object = NULL;

    if (fault_before(e, &call, err) < 0)
        return -1;
    embedded_lock(e);
    int rc = embedded_patch(e, ref, opts, patch, &object, err);
    embedded_unlock(e);
    if (fault_after(e, &call, rc, err) < 0)
        return -1;
    if (maybe_out)
        *maybe_out = take(&object);
    return 0;
}

static int port_remove(void *ctx, struct object_ref ref, const struct delete_options *opts,
                       struct err *err)
{
    struct embedded *e = ctx;
    struct embedded_call call = { EMBEDDED_REMOVE, ref.kind, ref.namespace_, ref.name };

    if (fault_before(e, &call, err) < 0)
        return -1;
    embedded_lock(e);
    struct entry *entry = entry_need(e, ref, err);
    int rc = entry ? entry_remove(e, entry, opts, err) : -1;
    embedded_unlock(e);
    return fault_after(e, &call, rc, err);
}

static int port_evict(void *ctx, struct str namespace_, struct str pod,
                      const struct delete_options *opts, struct err *err)
{
    struct embedded *e = ctx;
    struct embedded_call call = { EMBEDDED_EVICT, &pod_kind, namespace_, pod };

    if (fault_before(e, &call, err) < 0)
        return -1;
    embedded_lock(e);
    int rc = embedded_evict(e, namespace_, pod, opts, err);
    embedded_unlock(e);
    return fault_after(e, &call, rc, err);
}

static int port_bind(void *ctx, struct str namespace_, struct str pod, struct str node,
                     struct err *err)
{
    struct embedded *e = ctx;
    struct embedded_call call = { EMBEDDED_BIND, &pod_kind, namespace_, pod };

    if (fault_before(e, &call, err) < 0)
        return -1;
    embedded_lock(e);
    int rc = embedded_bind(e, namespace_, pod, node, err);
    embedded_unlock(e);
    return fault_after(e, &call, rc, err);
}

static uint64_t port_version(void *ctx)
{
    return embedded_version(ctx);
}

static const struct store_ops embedded_ops = {
    .get = port_get,
    .list = port_list,
    .watch = port_watch,
    .create = port_create,
    .patch = port_patch,
    .remove = port_remove,
    .evict = port_evict,
    .bind = port_bind,
    .get_json = port_get_json,
    .version = port_version,
};

static const struct store_ops onlooker_ops = {
    .get = port_get,
    .list = port_list,
    .watch = onlooker_watch,
    .version = port_version,
};

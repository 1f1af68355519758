/* Informers, and over them what this process has written and not seen come back.
 *
 * An entry of `assumed` is an object as the store answered our write, or the fact that it is gone. It
 * counts until the informer is known to be as new: its version has reached the entry's, or it told of a
 * later change of that object. So there is no moment at which a reader sees less than was written.
 * Answers to two writers may arrive here in either order: the newer one stays.
 */
#include "control/cluster.h"

#include "api/kinds.h"
#include "api/nodeclaim.h"
#include "api/nodepool.h"
#include "api/node.h"
#include "api/pod.h"
#include "api/storage.h"
#include "base/map.h"
#include "base/vec.h"

#include <stdatomic.h>

static const struct kind *const cluster_kinds[] = {
    &pod_kind,
    &node_kind,
    &nodeclaim_kind,
    &nodepool_kind,
    &nodeoverlay_kind,
    &ec2nodeclass_kind,
    &kwoknodeclass_kind,
    &daemon_set_kind,
    &pvc_kind,
    &pv_kind,
    &storage_class_kind,
    &csi_node_kind,
    &namespace_kind,
    &priority_class_kind,
    &volume_attachment_kind,
    &pdb_kind,
};
#define KIND_COUNT KV_COUNT_OF(cluster_kinds)

struct assumed {
    const struct object *object; /* a reference */
    bool gone;
};

struct copy { /* of one kind */
    struct cluster *cluster;
    struct informer *informer;
    struct str_table assumed;           /* struct assumed *, by "namespace/name" */
    atomic_uint_fast64_t assumed_count; /* ever */
};

struct cluster {
    struct copy copies[KIND_COUNT];
    uint32_t index_at[CLUSTER_INDEX_COUNT]; /* within its informer */
    struct informer_set *set;
    const struct store *store;
    const struct clock *clock;
    atomic_bool synced; /* once all are, they stay so */
    /* In a simulation: what the last pump left behind. While time and store stand still there is nothing
     * more to take in. */
    uint64_t pumped_version; /* 0: it is not known */
    int64_t pumped_ns, due_ns;
    pthread_mutex_t lock; /* of every `assumed`; those of informers are taken inside */
};

/* --- indexes --- */

static struct str pod_node(const struct object *object)
{
    return pod_of(object)->node_name;
}

static struct str pod_unbound(const struct object *object)
{
    const struct pod *pod = pod_of(object);
    return pod_is_scheduled(pod) || pod_is_terminal(pod) ? STR_NONE : CLUSTER_UNBOUND;
}

static struct str node_provider_id(const struct object *object)
{
    return node_of(object)->spec.provider_id;
}

static struct str claim_provider_id(const struct object *object)
{
    return nodeclaim_of(object)->status.provider_id;
}

static struct str pool_label(const struct object *object)
{
    return str_map_get(&object->meta.labels, STR(LABEL_NODEPOOL));
}

/* A key is made of three texts, and an index wants one that lives as long as the object: the name of the
 * class, which is nearly always enough. What else has that name is left out by cluster_list_by. */
static struct str claim_class(const struct object *object)
{
    return nodeclaim_of(object)->spec.node.node_class_ref.name;
}

static struct str pool_class(const struct object *object)
{
    return nodepool_of(object)->spec.template.spec.node_class_ref.name;
}

static struct str attachment_node(const struct object *object)
{
    return volume_attachment_of(object)->spec.node_name;
}

static const struct {
    const struct kind *kind;
    informer_index_fn fn;
} indexes[CLUSTER_INDEX_COUNT] = {
    [PODS_BY_NODE] = { &pod_kind, pod_node },
    [PODS_UNBOUND] = { &pod_kind, pod_unbound },
    [NODES_BY_PROVIDER_ID] = { &node_kind, node_provider_id },
    [NODES_BY_POOL] = { &node_kind, pool_label },
    [CLAIMS_BY_PROVIDER_ID] = { &nodeclaim_kind, claim_provider_id },
    [CLAIMS_BY_POOL] = { &nodeclaim_kind, pool_label },
    [CLAIMS_BY_CLASS] = { &nodeclaim_kind, claim_class },
    [POOLS_BY_CLASS] = { &nodepool_kind, pool_class },
    [ATTACHMENTS_BY_NODE] = { &volume_attachment_kind, attachment_node },
};

/* --- assumed objects --- */

static struct copy *copy_of(struct cluster *cluster, const struct kind *kind)
{
    for (size_t i = 0; i < KIND_COUNT; i++) {
        if (cluster_kinds[i] == kind)
            return &cluster->copies[i];
    }
    return NULL;
}

static struct str key_of(struct buf *buf, struct str namespace_, struct str name)
{
    buf_clear(buf);
    buf_add(buf, namespace_);
    buf_addz(buf, "/");
    buf_add(buf, name);
    return buf_str(buf);
}

static void assumed_drop(struct copy *copy, struct str key)
{
    struct assumed *a = str_table_remove(&copy->assumed, key);
    if (!a)
        return;
    object_unref(a->object);
    free(a);
}

/* What is assumed is newer than this answer. */
static bool is_newer(const struct assumed *a, const struct object *object, bool gone)
{
    if (str_eq(a->object->meta.uid, object->meta.uid) && a->gone != gone)
        return a->gone;
    return a->object->meta.resource_version > object->meta.resource_version;
}

static void assumed_put(struct copy *copy, const struct object *object, bool gone)
{
    AUTO_BUF buf = { 0 };
    struct str key = key_of(&buf, object->meta.namespace_, object->meta.name);
    struct assumed *a = str_table_get(&copy->assumed, key);
    if (a && is_newer(a, object, gone))
        return;
    if (a) {
        object_unref(a->object);
    } else {
        a = kv_calloc(1, sizeof *a);
        str_table_put(&copy->assumed, key, a);
    }
    *a = (struct assumed){ object_ref(object), gone };
    atomic_fetch_add(&copy->assumed_count, 1);
}

/* Does the informer know that object, or will it still hear of it? With the lock, so that on_event
 * comes after it: else the news that it is gone could be kept for ever. The version is read first: what
 * it has taken in by then can be found afterwards. */
static bool is_known(const struct copy *copy, const struct object *object)
{
    if (informer_version(copy->informer) < object->meta.resource_version)
        return true;
    AUTO_OBJECT known = informer_get(copy->informer, object->meta.namespace_, object->meta.name);
    return known && str_eq(known->meta.uid, object->meta.uid);
}

/* With the lock: the informer has caught up with the entry. One that says "gone" has the version of
 * the last state; normally an event overtakes it (on_event), but a new list may have left out both. */
static bool is_settled(const struct copy *copy, const struct assumed *a, uint64_t version)
{
    return a->gone ? !is_known(copy, a->object) : version >= a->object->meta.resource_version;
}

/* With the lock. An entry that the informer has caught up with is dropped: NULL. */
static struct assumed *assumed_get(struct copy *copy, struct str key)
{
    struct assumed *a = str_table_get(&copy->assumed, key);
    if (a && is_settled(copy, a, informer_version(copy->informer))) {
        assumed_drop(copy, key);
        return NULL;
    }
    return a;
}

static void on_event(void *ctx, const struct object *maybe_old, const struct object *maybe_new)
{
    struct copy *copy = ctx;
    struct cluster *cluster = copy->cluster;
    const struct object *seen = maybe_new ? maybe_new : maybe_old;

    pthread_mutex_lock(&cluster->lock);
    if (copy->assumed.live_count) {
        AUTO_BUF buf = { 0 };
        struct str key = key_of(&buf, seen->meta.namespace_, seen->meta.name);
        const struct assumed *a = str_table_get(&copy->assumed, key);
        bool same = a && str_eq(a->object->meta.uid, seen->meta.uid);
        uint64_t assumed_version = a ? a->object->meta.resource_version : 0;
        bool overtaken =
            a && (maybe_new ? seen->meta.resource_version > assumed_version ||
                                  (seen->meta.resource_version == assumed_version && !a->gone)
                            : same);
        if (overtaken)
            assumed_drop(copy, key);
    }
    pthread_mutex_unlock(&cluster->lock);
}

void cluster_assume(struct cluster *cluster, const struct object *written)
{
    struct copy *copy = copy_of(cluster, written->kind);
    if (!copy)
        return;
    pthread_mutex_lock(&cluster->lock);
    if (informer_version(copy->informer) < written->meta.resource_version)
        assumed_put(copy, written, false);
    pthread_mutex_unlock(&cluster->lock);
}

void cluster_assume_gone(struct cluster *cluster, const struct object *object)
{
    struct copy *copy = copy_of(cluster, object->kind);
    if (!copy)
        return;
    pthread_mutex_lock(&cluster->lock);
    if (is_known(copy, object))
        assumed_put(copy, object, true);
    pthread_mutex_unlock(&cluster->lock);
}

/* --- reading --- */

const struct object *cluster_get(struct cluster *cluster, const struct kind *kind,
                                 struct str namespace_, struct str name)
{
    struct copy *copy = copy_of(cluster, kind);
    KV_ASSERT(copy);
    pthread_mutex_lock(&cluster->lock);
    if (copy->assumed.live_count) {
        AUTO_BUF buf = { 0 };
        const struct assumed *a = assumed_get(copy, key_of(&buf, namespace_, name));
        if (a) {
            const struct object *object = a->gone ? NULL : object_ref(a->object);
            pthread_mutex_unlock(&cluster->lock);
            return object;
        }
    }
    pthread_mutex_unlock(&cluster->lock);
    return informer_get(copy->informer, namespace_, name);
}

static int by_name(const struct object *a, const struct object *b)
{
    int order = str_cmp(a->meta.namespace_, b->meta.namespace_);
    return order ? order : str_cmp(a->meta.name, b->meta.name);
}

static int by_name_indirect(const void *a, const void *b)
{
    return by_name((*(struct assumed *const *)a)->object, (*(struct assumed *const *)b)->object);
}

/* Put the assumed objects into a sorted list: instead of older ones, between others, or away. Those
 * that `maybe_fn` does not give `value` for are away. */
static void merge_assumed(struct copy *copy, informer_index_fn maybe_fn, struct str value,
                          struct object_list *list)
{
    VEC(struct assumed *) entries = { 0 };
    VEC(const struct object *) merged = { 0 };

    str_table_each(&copy->assumed, it)
        vec_push(&entries, (struct assumed *)it->value);
    qsort(entries.items, entries.count, sizeof *entries.items, by_name_indirect);
    size_t at = 0;
    for (size_t i = 0; i < entries.count; i++) {
        const struct assumed *a = entries.items[i];
        int order = -1;
        while (at < list->count && (order = by_name(list->items[at], a->object)) < 0)
            vec_push(&merged, list->items[at++]);
        if (at < list->count && order == 0)
            object_unref(list->items[at++]);
        if (!a->gone && (!maybe_fn || str_eq(maybe_fn(a->object), value)))
            vec_push(&merged, object_ref(a->object));
    }
    while (at < list->count)
        vec_push(&merged, list->items[at++]);
    free(list->items);
    list->items = merged.items;
    list->count = merged.count;
    vec_done(&entries);
}

/* With the lock: forget what the informer knows by now. */
static void settle_assumed(struct copy *copy)
{
    uint64_t version = informer_version(copy->informer);
    VEC(struct str) done = { 0 };
    str_table_each(&copy->assumed, it) {
        const struct assumed *a = it->value;
        if (is_settled(copy, a, version))
            vec_push(&done, it->key);
    }
    for (size_t i = 0; i < done.count; i++)
        assumed_drop(copy, done.items[i]);
    vec_done(&done);
}

static void list_merged(struct copy *copy, uint32_t maybe_index, informer_index_fn maybe_fn,
                        struct str value, struct object_list *out)
{
    struct cluster *cluster = copy->cluster;
    pthread_mutex_lock(&cluster->lock);
    if (copy->assumed.live_count)
        settle_assumed(copy);
    if (maybe_fn)
        informer_list_index(copy->informer, maybe_index, value, out);
    else
        informer_list(copy->informer, STR(""), out);
    if (copy->assumed.live_count)
        merge_assumed(copy, maybe_fn, value, out);
    pthread_mutex_unlock(&cluster->lock);
}

void cluster_list(struct cluster *cluster, const struct kind *kind, struct object_list *out)
{
    struct copy *copy = copy_of(cluster, kind);
    KV_ASSERT(copy);
    list_merged(copy, 0, NULL, STR(""), out);
}

static const struct node_class_ref *class_ref_of(const struct object *object)
{
    return object->kind == &nodepool_kind ? &nodepool_of(object)->spec.template.spec.node_class_ref
                                          : &nodeclaim_of(object)->spec.node.node_class_ref;
}

static void list_by_class(struct cluster *cluster, enum cluster_index index, struct str key,
                          struct object_list *out)
{
    struct str group, rest, kind, name;
    if (!str_cut(key, '/', &group, &rest) || !str_cut(rest, '/', &kind, &name)) {
        *out = (struct object_list){ 0 };
        return;
    }
    list_merged(copy_of(cluster, indexes[index].kind), cluster->index_at[index], indexes[index].fn,
                name, out);
    size_t kept = 0;
    for (size_t i = 0; i < out->count; i++) {
        const struct node_class_ref *ref = class_ref_of(out->items[i]);
        if (str_eq(ref->group, group) && str_eq(ref->kind, kind))
            out->items[kept++] = out->items[i];
        else
            object_unref(out->items[i]);
    }
    out->count = kept;
}

void cluster_list_by(struct cluster *cluster, enum cluster_index index, struct str value,
                     struct object_list *out)
{
    if (index == CLAIMS_BY_CLASS || index == POOLS_BY_CLASS) {
        list_by_class(cluster, index, value, out);
        return;
    }
    *out = (struct object_list){ 0 };
    if (value.len)
        list_merged(copy_of(cluster, indexes[index].kind), cluster->index_at[index],
                    indexes[index].fn, value, out);
}

uint64_t cluster_version(struct cluster *cluster, const struct kind *kind)
{
    struct copy *copy = copy_of(cluster, kind);
    /* Both only grow, so their sum changes with either. */
    return informer_version(copy->informer) + atomic_load(&copy->assumed_count);
}

struct str cluster_class_key(struct arena *arena, const struct node_class_ref *ref)
{
    return arena_strf(arena, "%.*s/%.*s/%.*s", STR_ARG(ref->group), STR_ARG(ref->kind),
                      STR_ARG(ref->name));
}

const struct object *cluster_get_class(struct cluster *cluster, const struct node_class_ref *ref)
{
    for (size_t i = 0; i < KIND_COUNT; i++) {
        const struct kind *kind = cluster_kinds[i];
        if (str_eqz(ref->kind, kind->name) && str_eqz(ref->group, kind->group))
            return cluster_get(cluster, kind, STR(""), ref->name);
    }
    return NULL;
}

/* --- life --- */

struct cluster *cluster_new(const struct store *store, const struct clock *clock, uint64_t seed)
{
    struct cluster *cluster = kv_calloc(1, sizeof *cluster);
    cluster->store = store;
    cluster->clock = clock;
    pthread_mutex_init(&cluster->lock, NULL);
    for (size_t i = 0; i < KIND_COUNT; i++) {
        struct copy *copy = &cluster->copies[i];
        copy->cluster = cluster;
        copy->informer = informer_new((struct informer_options){
            .store = store, .kind = cluster_kinds[i], .clock = clock, .seed = seed + i });
        informer_on_change(copy->informer, on_event, copy);
    }
    for (uint32_t i = 0; i < CLUSTER_INDEX_COUNT; i++)
        cluster->index_at[i] =
            informer_add_index(copy_of(cluster, indexes[i].kind)->informer, indexes[i].fn);
    return cluster;
}

void cluster_free(struct cluster *cluster)
{
    if (!cluster)
        return;
    cluster_stop(cluster);
    for (size_t i = 0; i < KIND_COUNT; i++) {
        struct copy *copy = &cluster->copies[i];
        informer_free(copy->informer);
        str_table_each(&copy->assumed, it) {
            struct assumed *a = it->value;
            object_unref(a->object);
            free(a);
        }
        str_table_done(&copy->assumed);
    }
    pthread_mutex_destroy(&cluster->lock);
    free(cluster);
}

void cluster_on_change(struct cluster *cluster, const struct kind *kind, informer_handler_fn fn,
                       void *ctx)
{
    struct copy *copy = copy_of(cluster, kind);
    KV_ASSERT(copy);
    informer_on_change(copy->informer, fn, ctx);
}

size_t cluster_pump(struct cluster *cluster)
{
    size_t changed = 0;
    uint64_t version = store_version(cluster->store);
    int64_t now = clock_mono_ns(cluster->clock);
    if (version && version == cluster->pumped_version && now == cluster->pumped_ns)
        return 0;
    cluster->due_ns = INT64_MAX;
    for (size_t i = 0; i < KIND_COUNT; i++) {
        struct informer *informer = cluster->copies[i].informer;
        changed += informer_pump(informer);
        int64_t due = informer_due_ns(informer);
        cluster->due_ns = due < cluster->due_ns ? due : cluster->due_ns;
    }
    cluster->pumped_version = version;
    cluster->pumped_ns = now;
    return changed;
}

int64_t cluster_due_ns(struct cluster *cluster)
{
    return cluster->due_ns;
}

void cluster_start(struct cluster *cluster)
{
    cluster->set = informer_set_new(cluster->clock);
    for (size_t i = 0; i < KIND_COUNT; i++)
        informer_set_add(cluster->set, cluster->copies[i].informer);
    informer_set_start(cluster->set);
}

void cluster_stop(struct cluster *cluster)
{
    if (cluster->set)
        informer_set_free(cluster->set);
    cluster->set = NULL;
}

bool cluster_synced(struct cluster *cluster)
{
    if (atomic_load(&cluster->synced))
        return true;
    for (size_t i = 0; i < KIND_COUNT; i++) {
        if (!informer_synced(cluster->copies[i].informer))
            return false;
    }
    atomic_store(&cluster->synced, true);
    return true;
}

/* Launching without machines.
 *
 *     create ---> pending ---delay is over---> Node in the store ---> (somebody plays the kubelet)
 *                    |                            |
 *                  delete                       delete
 *                    v                            v
 *                  gone                   Node removed, or marked until its finalizers are
 *
 * Pending instances are in memory, keyed by the name of their node, and each is also a NodeClaim in
 * the store that has a providerID and no Node: that is where a new process finds them, before it
 * does anything else (`recover`). A process that dies between the answer of create and the
 * claim's status loses nothing that anybody saw: create is called again, and the node has the same
 * name.
 *
 * The lock guards the pending table and is not held over calls to the store, except while
 * recovering. The node that is being made is `busy` instead: delete waits for it, so that none
 * appears after its instance was said to be gone.
 */
#include "cloud/kwok_impl.h"

#include "base/vec.h"
#include "codec/duration.h"

const struct fake_naming kwok_naming = {
    .node_prefix = "kwok-",
    .provider_prefix = KWOK_PROVIDER_PREFIX,
    .maybe_marker = "kwok.x-k8s.io/node", /* tells the kwok controller to play the kubelet */
    .maybe_partition = "kwok-partition",
};

bool kwok_node_is_terminated(const struct node *node)
{
    return str_map_get(&node->object.meta.annotations, STR(KWOK_TERMINATED)).p != NULL;
}

static void instance_of_node(struct arena *arena, const struct node *node, struct instance *out)
{
    fake_instance_of_node(arena, node, out);
    struct str claim = str_map_get(&out->annotations, STR(KWOK_CLAIM));
    if (claim.p)
        out->claim_name = claim;
}

/* --- instance types --- */

static int get_base_types(struct kwok *k, const struct nodepool *pool,
                          const struct instance_types **out, struct err *err)
{
    const struct cloud_provider *types = k->options.maybe_types;
    if (types)
        return types->get_instance_types(types->ctx, pool, out, err);
    *out = instance_types_ref(kwok_types());
    return 0;
}

static int get_instance_types(void *ctx, const struct nodepool *pool,
                              const struct instance_types **out, struct err *err)
{
    struct kwok *k = ctx;
    AUTO_INSTANCE_TYPES base = NULL;
    if (get_base_types(k, pool, &base, err) < 0)
        return -1;
    return fake_types_marked(base, k->unavailable, out, err);
}

static int get_generation(void *ctx, const struct nodepool *pool, struct generation *out,
                          struct err *err)
{
    struct kwok *k = ctx;
    const struct cloud_provider *types = k->options.maybe_types;
    struct generation own;

    unavailable_settle(k->unavailable);
    generation_read(&k->counters, &own);
    if (!types) {
        *out = own;
        out->member[GENERATION_INPUTS] =
            node_class_ref_hash(&pool->spec.template.spec.node_class_ref);
        return 0;
    }
    if (types->get_generation(types->ctx, pool, out, err) < 0)
        return -1;
    /* There are marks of theirs and marks of ours, and one member for both: hashed together, so
     * that no change of the one can undo a change of the other. */
    uint64_t *theirs = &out->member[GENERATION_UNAVAILABLE];
    *theirs =
        kv_hash_salted(theirs, sizeof *theirs, kv_mix64(own.member[GENERATION_UNAVAILABLE] + 1));
    return 0;
}

/* --- create --- */

/* A claim has its instance already: one that is pending, or a Node. 1: yes, and it is in `out`. */
static int find_instance(struct kwok *k, struct str node_name, struct arena *arena,
                         struct instance *out, struct err *err)
{
    AUTO_OBJECT object = NULL;

    if (kwok_lock(k, err) < 0)
        return -1;
    const struct kwok_pending *p = str_table_get(&k->pending, node_name);
    if (p)
        fake_instance_copy(arena, &p->instance, out);
    pthread_mutex_unlock(&k->lock);
    if (p)
        return 1;
    if (store_get(k->options.store, (struct object_ref){ &node_kind, STR(""), node_name }, &object,
                  err) < 0)
        return err->kind == ERR_NOT_FOUND ? 0 : -1;
    const struct node *node = node_of(object);
    if (!str_starts(node->spec.provider_id, STR(KWOK_PROVIDER_PREFIX)) ||
        kwok_node_is_terminated(node))
        return 0;
    instance_of_node(arena, node, out);
    return 1;
}

/* Types depend on a pool through its node class alone, and the claim has that. */
static int pick(struct kwok *k, const struct nodeclaim *claim, struct arena *arena,
                const struct instance_types **types, uint32_t *offering, struct launch_failure *why,
                struct err *err)
{
    struct nodepool pool = { 0 };
    struct fake_offerings found;
    pool.object.meta.name = str_map_get(&claim->object.meta.labels, STR(LABEL_NODEPOOL));
    pool.spec.template.spec.node_class_ref = claim->spec.node.node_class_ref;
    if (get_base_types(k, &pool, types, err) < 0)
        return err_wrap(err, "instance types");
    if (fake_offerings_find(arena, *types, claim, k->unavailable, k->options.seed, &found, why,
                            err) < 0)
        return -1;
    return fake_offerings_take(&found, offering) ? 0
                                                 : fake_offerings_insufficient(&found, why, err);
}

static int launch(struct kwok *k, const struct nodeclaim *claim, struct arena *arena,
                  struct instance *out, struct launch_failure *why, struct err *err)
{
    AUTO_OBJECT class_ = NULL;
    AUTO_INSTANCE_TYPES types = NULL;
    AUTO_ARENA scratch = { 0 };
    uint32_t offering;

    if (fake_class_for_launch(&k->port, k->options.store, &claim->spec.node.node_class_ref, &class_,
                              why, err) < 0 ||
        pick(k, claim, &scratch, &types, &offering, why, err) < 0)
        return -1;
    struct kwok_pending *p = kv_calloc(1, sizeof *p);
    fake_instance_new(&p->arena, &kwok_naming, claim, types, offering,
                      clock_wall_us(k->options.clock), &p->instance);
    p->claim_uid = arena_str(&p->arena, claim->object.meta.uid);
    p->due_ns = kwok_later(clock_mono_ns(k->options.clock), kwok_class_delay(k, class_));

    pthread_mutex_lock(&k->lock);
    const struct kwok_pending *other = str_table_get(&k->pending, p->instance.node_name);
    if (other) { /* the same claim, from another thread */
        fake_instance_copy(arena, &other->instance, out);
        kwok_pending_free(p);
    } else {
        fake_instance_copy(arena, &p->instance, out);
        kwok_pending_put(k, p);
    }
    pthread_mutex_unlock(&k->lock);
    return 0;
}

static int create(void *ctx, const struct nodeclaim *claim, struct arena *arena,
                  struct instance *out, struct launch_failure *why, struct err *err)
{
    struct kwok *k = ctx;
    AUTO_ARENA scratch = { 0 };

    *why = (struct launch_failure){ .kind = LAUNCH_OTHER };
    int found = find_instance(k, fake_node_name(&scratch, &kwok_naming, claim), arena, out, err);
    if (found < 0)
        return -1;
    return found ? 0 : launch(k, claim, arena, out, why, err);
}

/* --- delete --- */

/* A Node that is kept by finalizers would look like a running instance: it is marked first. */
static int remove_node(struct kwok *k, struct str node_name, struct err *err)
{
    const struct store *store = k->options.store;
    struct object_ref ref = { &node_kind, STR(""), node_name };
    AUTO_OBJECT object = NULL;

    if (store_get(store, ref, &object, err) < 0)
        return err->kind == ERR_NOT_FOUND ? 0 : -1;
    const struct node *node = node_of(object);
    if (!str_starts(node->spec.provider_id, STR(KWOK_PROVIDER_PREFIX)))
        return 0;
    if (object->meta.finalizers.count > 0 && !kwok_node_is_terminated(node) &&
        store_patch(store, ref, (struct patch_options){ .type = PATCH_MERGE },
                    STR("{\"metadata\":{\"annotations\":{\"" KWOK_TERMINATED "\":\"true\"}}}"),
                    NULL, err) < 0)
        return err->kind == ERR_NOT_FOUND ? 0 : -1;
    struct delete_options options = { .uid = object->meta.uid };
    if (!object->meta.deleted_us && store_remove(store, ref, &options, err) < 0)
        return err->kind == ERR_NOT_FOUND ? 0 : -1;
    return 0;
}

/* The claim goes with its instance; another that has taken its name since does not. */
static int remove_claim(struct kwok *k, const struct nodeclaim *claim, struct err *err)
{
    struct object_ref ref = { &nodeclaim_kind, STR(""), claim->object.meta.name };
    struct delete_options options = { .uid = claim->object.meta.uid };
    if (store_remove(k->options.store, ref, &options, err) == 0)
        return 0;
    return err->kind == ERR_NOT_FOUND || err->kind == ERR_CONFLICT ? 0 : -1;
}

static int delete_(void *ctx, const struct nodeclaim *claim, struct err *err)
{
    struct kwok *k = ctx;
    AUTO_ARENA arena = { 0 };

    struct str name = fake_node_of_provider_id(&kwok_naming, claim->status.provider_id);
    if (!name.len)
        name = fake_node_name(&arena, &kwok_naming, claim); /* launched, and not told yet */
    if (kwok_lock(k, err) < 0)
        return -1;
    kwok_pending_drop(k, name);
    pthread_mutex_unlock(&k->lock);
    if (remove_node(k, name, err) < 0)
        return err_wrap(err, "node %.*s", STR_ARG(name));
    if (remove_claim(k, claim, err) < 0)
        return err_wrap(err, "claim %.*s", STR_ARG(claim->object.meta.name));
    return err_set(err, ERR_NOT_FOUND, "instance %.*s is terminated", STR_ARG(name));
}

/* --- get and list --- */

static int get(void *ctx, struct str provider_id, struct arena *arena, struct instance *out,
               struct err *err)
{
    struct str name = fake_node_of_provider_id(&kwok_naming, provider_id);
    int found = name.len ? find_instance(ctx, name, arena, out, err) : 0;
    if (found == 0)
        return err_set(err, ERR_NOT_FOUND, "there is no instance %s", STR_SHOWN(provider_id));
    return found < 0 ? -1 : 0;
}

static int by_provider_id(const void *a, const void *b)
{
    return str_cmp(((const struct instance *)a)->provider_id,
                   ((const struct instance *)b)->provider_id);
}

/* Pending ones first: one whose node is made in between is in both, and none is in neither. */
static int list(void *ctx, struct arena *arena, struct instances *out, struct err *err)
{
    struct kwok *k = ctx;
    struct object_list nodes = { 0 };
    struct str_table seen = { 0 };
    VEC(struct instance) found = { 0 };
    struct instance instance;

    if (kwok_lock(k, err) < 0)
        return -1;
    str_table_each(&k->pending, it) {
        fake_instance_copy(arena, &((const struct kwok_pending *)it->value)->instance, &instance);
        str_table_put(&seen, instance.node_name, k);
        vec_push(&found, instance);
    }
    pthread_mutex_unlock(&k->lock);
    int rc = store_list(k->options.store, &node_kind, NULL, &nodes, err);
    for (size_t i = 0; i < nodes.count; i++) {
        const struct node *node = node_of(nodes.items[i]);
        if (!str_starts(node->spec.provider_id, STR(KWOK_PROVIDER_PREFIX)) ||
            kwok_node_is_terminated(node) || str_table_has(&seen, node->object.meta.name))
            continue;
        instance_of_node(arena, node, &instance);
        vec_push(&found, instance);
    }
    if (rc == 0) {
        struct instance *items = arena_array(arena, struct instance, found.count);
        if (found.count) {
            memcpy(items, found.items, found.count * sizeof *items);
            qsort(items, found.count, sizeof *items, by_provider_id);
        }
        *out = (struct instances){ items, (uint32_t)found.count };
    }
    object_list_done(&nodes);
    str_table_done(&seen);
    vec_done(&found);
    return rc;
}

/* --- life --- */

static void fill_port(struct kwok *k)
{
    struct cloud_provider *port = &k->port;
    fake_port_init(port, k->options.maybe_types, k->node_classes);
    port->get_instance_types = get_instance_types;
    port->get_generation = get_generation;
    port->create = create;
    port->delete_ = delete_;
    port->get = get;
    port->list = list;
    port->name = "kwok";
    port->ctx = k;
}

struct kwok *kwok_new(struct kwok_options options)
{
    struct kwok *k = kv_calloc(1, sizeof *k);
    k->options = options;
    pthread_mutex_init(&k->lock, NULL);
    clock_cond_init(&k->changed);
    k->unavailable = unavailable_new(options.clock, &k->counters, UNAVAILABLE_TTL_NS);
    fill_port(k);
    return k;
}

void kwok_free(struct kwok *k)
{
    if (!k)
        return;
    if (k->started) {
        pthread_mutex_lock(&k->lock);
        k->stopping = true;
        pthread_cond_broadcast(&k->changed);
        pthread_mutex_unlock(&k->lock);
        pthread_join(k->thread, NULL);
    }
    str_table_each(&k->pending, it)
        kwok_pending_free(it->value);
    str_table_done(&k->pending);
    unavailable_free(k->unavailable);
    pthread_cond_destroy(&k->changed);
    pthread_mutex_destroy(&k->lock);
    free(k);
}

const struct cloud_provider *kwok_provider(struct kwok *k)
{
    return &k->port;
}

struct unavailable *kwok_unavailable(struct kwok *k)
{
    return k->unavailable;
}

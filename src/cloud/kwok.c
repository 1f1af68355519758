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

#include "api/conditions.h"
#include "api/ec2nodeclass.h"
#include "api/kwoknodeclass.h"
#include "base/vec.h"
#include "codec/duration.h"

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
    return kwok_types_marked(base, k->unavailable, out, err);
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
        kwok_instance_copy(arena, &p->instance, out);
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
    kwok_instance_of_node(arena, node, out);
    return 1;
}

static const struct condition *class_condition(const struct object *class_, struct str type)
{
    if (class_->kind == &kwoknodeclass_kind) {
        const struct kwoknodeclass *c = kwoknodeclass_of(class_);
        return condition_find(c->status.conditions.items, c->status.conditions.count, type);
    }
    if (class_->kind == &ec2nodeclass_kind) {
        const struct ec2nodeclass *c = ec2nodeclass_of(class_);
        return condition_find(c->status.conditions.items, c->status.conditions.count, type);
    }
    return NULL;
}

static int check_class(struct kwok *k, const struct nodeclaim *claim, int64_t *delay_ns,
                       struct launch_failure *why, struct err *err)
{
    const struct node_class_ref *ref = &claim->spec.node.node_class_ref;
    AUTO_OBJECT class_ = NULL;

    if (kwok_get_class(k, ref, &class_, err) < 0) {
        if (err->kind == ERR_NOT_FOUND) {
            why->kind = LAUNCH_INSUFFICIENT_CAPACITY;
            err->kind = ERR_CAPACITY;
        }
        return err_wrap(err, "node class %s", STR_SHOWN(ref->name));
    }
    const struct condition *ready = class_condition(class_, CONDITION_READY);
    if (condition_status_of(ready) == CONDITION_FALSE) {
        why->kind = LAUNCH_CLASS_NOT_READY;
        return err_set(err, ERR_UNAVAILABLE, "node class %s is not ready: %.*s",
                       STR_SHOWN(ref->name), STR_ARG(ready->message));
    }
    *delay_ns = kwok_class_delay(k, class_);
    return 0;
}

/* Types depend on a pool through its node class alone, and the claim has that. */
static int pick(struct kwok *k, const struct nodeclaim *claim, struct arena *arena,
                const struct instance_types **types, uint32_t *offering, struct launch_failure *why,
                struct err *err)
{
    struct nodepool pool = { 0 };
    pool.object.meta.name = str_map_get(&claim->object.meta.labels, STR(LABEL_NODEPOOL));
    pool.spec.template.spec.node_class_ref = claim->spec.node.node_class_ref;
    if (get_base_types(k, &pool, types, err) < 0)
        return err_wrap(err, "instance types");
    return kwok_pick(*types, claim, k->unavailable, k->options.seed, arena, offering, why, err);
}

static int launch(struct kwok *k, const struct nodeclaim *claim, struct arena *arena,
                  struct instance *out, struct launch_failure *why, struct err *err)
{
    AUTO_INSTANCE_TYPES types = NULL;
    AUTO_ARENA scratch = { 0 };
    uint32_t offering;
    int64_t delay_ns;

    if (check_class(k, claim, &delay_ns, why, err) < 0 ||
        pick(k, claim, &scratch, &types, &offering, why, err) < 0)
        return -1;
    struct kwok_pending *p = kv_calloc(1, sizeof *p);
    kwok_instance_new(&p->arena, claim, types, offering, clock_wall_us(k->options.clock),
                      &p->instance);
    p->claim_uid = arena_str(&p->arena, claim->object.meta.uid);
    p->due_ns = kwok_later(clock_mono_ns(k->options.clock), delay_ns);

    pthread_mutex_lock(&k->lock);
    const struct kwok_pending *other = str_table_get(&k->pending, p->instance.node_name);
    if (other) { /* the same claim, from another thread */
        kwok_instance_copy(arena, &other->instance, out);
        kwok_pending_free(p);
    } else {
        kwok_instance_copy(arena, &p->instance, out);
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
    int found = find_instance(k, kwok_node_name(&scratch, claim), arena, out, err);
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

    struct str name = kwok_node_of_provider_id(claim->status.provider_id);
    if (!name.len)
        name = kwok_node_name(&arena, claim); /* launched, and not told yet */
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
    struct str name = kwok_node_of_provider_id(provider_id);
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
        kwok_instance_copy(arena, &((const struct kwok_pending *)it->value)->instance, &instance);
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
        kwok_instance_of_node(arena, node, &instance);
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

static int is_drifted(void *ctx KV_UNUSED, const struct nodeclaim *claim KV_UNUSED,
                      const char **reason, struct err *err KV_UNUSED)
{
    *reason = "";
    return 0;
}

/* --- life --- */

static const struct repair_policy repair_policies[] = {
    { "Ready", "False", 10 * DURATION_MINUTE },
    { "Ready", "Unknown", 10 * DURATION_MINUTE },
};

static void fill_port(struct kwok *k)
{
    const struct cloud_provider *types = k->options.maybe_types;
    uint32_t count = 0;
    k->node_classes[count++] = (struct node_class_kind){ KWOK_GROUP, "KWOKNodeClass" };
    for (uint32_t i = 0; types && i < types->node_class_count && count < KWOK_CLASSES_MAX; i++)
        if (strcmp(types->node_classes[i].group, KWOK_GROUP) != 0)
            k->node_classes[count++] = types->node_classes[i];
    k->port = (struct cloud_provider){
        .get_instance_types = get_instance_types,
        .get_generation = get_generation,
        .create = create,
        .delete_ = delete_,
        .get = get,
        .list = list,
        .is_drifted = is_drifted,
        .repair_policies = repair_policies,
        .repair_policy_count = KV_COUNT_OF(repair_policies),
        .name = "kwok",
        .node_classes = k->node_classes,
        .node_class_count = count,
        .ctx = k,
    };
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

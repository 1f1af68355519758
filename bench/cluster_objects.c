#include "bench/cluster_objects.h"

#include "cloud/catalogue.h"
#include "sched/check.h"
#include "sched/model.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

void cluster_done(struct cluster *c)
{
    vec_each(&c->pools, struct sched_pool, pool)
        instance_types_unref(pool->types);
    vec_done(&c->pods);
    vec_done(&c->nodes);
    vec_done(&c->pools);
    vec_done(&c->daemon_sets);
    vec_done(&c->pvcs);
    vec_done(&c->pvs);
    vec_done(&c->storage_classes);
    vec_done(&c->csi_nodes);
    arena_done(&c->arena);
}

struct snapshot cluster_snapshot(const struct cluster *c)
{
    return (struct snapshot){
        .pods = c->pods.items,
        .pod_count = (uint32_t)c->pods.count,
        .nodes = c->nodes.items,
        .node_count = (uint32_t)c->nodes.count,
        .pools = c->pools.items,
        .pool_count = (uint32_t)c->pools.count,
        .daemon_sets = c->daemon_sets.items,
        .daemon_set_count = (uint32_t)c->daemon_sets.count,
        .pvcs = c->pvcs.items,
        .pvc_count = (uint32_t)c->pvcs.count,
        .pvs = c->pvs.items,
        .pv_count = (uint32_t)c->pvs.count,
        .storage_classes = c->storage_classes.items,
        .storage_class_count = (uint32_t)c->storage_classes.count,
        .csi_nodes = c->csi_nodes.items,
        .csi_node_count = (uint32_t)c->csi_nodes.count,
    };
}

/* --- small pieces --- */

struct str_map map_one(struct arena *a, struct str key, struct str value)
{
    struct str_pair *pair = arena_new(a, struct str_pair);
    *pair = (struct str_pair){ key, value };
    return (struct str_map){ pair, 1 };
}

struct str_map map_of(struct arena *a, const char *const *pairs)
{
    uint32_t count = 0;
    while (pairs[2 * count])
        count++;
    struct str_pair *items = arena_array(a, struct str_pair, count);
    for (uint32_t i = 0; i < count; i++)
        items[i] = (struct str_pair){ str_of(pairs[2 * i]), str_of(pairs[2 * i + 1]) };
    if (count)
        qsort(items, count, sizeof *items, str_pair_order);
    return (struct str_map){ items, count };
}

struct str_list list_one(struct arena *a, struct str value)
{
    struct str *item = arena_new(a, struct str);
    *item = value;
    return (struct str_list){ item, 1 };
}

struct str_list list_of(struct arena *a, const char *const *values)
{
    uint32_t count = 0;
    while (values[count])
        count++;
    struct str *items = arena_array(a, struct str, count);
    for (uint32_t i = 0; i < count; i++)
        items[i] = str_of(values[i]);
    return (struct str_list){ items, count };
}

struct resources resources_of(struct arena *a, struct amounts amounts)
{
    struct resource *items = arena_array(a, struct resource, 3);
    uint32_t count = 0;
    struct quantity memory = quantity_of(amounts.memory_mib << 20);
    memory.format = QUANTITY_BINARY;
    items[count++] = (struct resource){ STR("cpu"), quantity_of_milli(amounts.cpu_milli) };
    items[count++] = (struct resource){ STR("memory"), memory };
    if (amounts.gpus)
        items[count++] = (struct resource){ STR("nvidia.com/gpu"), quantity_of(amounts.gpus) };
    return (struct resources){ items, count };
}

const struct label_selector *select_one(struct arena *a, struct str key, struct str value)
{
    struct label_selector *selector = arena_new(a, struct label_selector);
    selector->match_labels = map_one(a, key, value);
    return selector;
}

struct expression expression_in(const char *key, struct str_list values)
{
    return (struct expression){ .key = str_of(key), .op = OP_IN, .values = values };
}

struct pod_spec *spec_new(struct arena *a, struct amounts amounts)
{
    struct pod_spec *spec = arena_new(a, struct pod_spec);
    struct container *container = arena_new(a, struct container);
    container->name = STR("main");
    container->resources.requests = resources_of(a, amounts);
    if (amounts.gpus) /* an extended resource is limited to what is requested */
        container->resources.limits = container->resources.requests;
    spec->containers.items = container;
    spec->containers.count = 1;
    return spec;
}

struct spread_constraint *spec_spread(struct arena *a, struct pod_spec *spec, const char *key,
                                      int64_t max_skew, const struct label_selector *selector)
{
    struct spread_constraint *items =
        arena_array(a, struct spread_constraint, spec->spread.count + 1);
    if (spec->spread.count)
        memcpy(items, spec->spread.items, spec->spread.count * sizeof *items);
    struct spread_constraint *added = &items[spec->spread.count];
    added->max_skew = max_skew;
    added->topology_key = str_of(key);
    added->when_unsatisfiable = UNSATISFIABLE_DO_NOT_SCHEDULE;
    added->maybe_selector = selector;
    spec->spread.items = items;
    spec->spread.count++;
    return added;
}

static void require_term(struct arena *a, struct pod_affinity *affinity, const char *key,
                         const struct label_selector *selector)
{
    struct pod_affinity_term *term = arena_new(a, struct pod_affinity_term);
    term->topology_key = str_of(key);
    term->maybe_selector = selector;
    affinity->required.items = term;
    affinity->required.count = 1;
}

const struct affinity *affinity_to(struct arena *a, const char *key,
                                   const struct label_selector *selector)
{
    struct affinity *affinity = arena_new(a, struct affinity);
    require_term(a, &affinity->pod, key, selector);
    return affinity;
}

const struct affinity *affinity_against(struct arena *a, const char *key,
                                        const struct label_selector *selector)
{
    struct affinity *affinity = arena_new(a, struct affinity);
    require_term(a, &affinity->anti, key, selector);
    return affinity;
}

/* --- objects --- */

static const struct pod_condition unschedulable = {
    .type = { "PodScheduled", 12 },
    .reason = { "Unschedulable", 13 },
    .status = CONDITION_FALSE,
};
static const struct pod_status pending = { .phase = PHASE_PENDING,
                                           .conditions = { &unschedulable, 1 } };
static const struct pod_status running = { .phase = PHASE_RUNNING };

struct pod *cluster_add_pod(struct cluster *c, const struct pod_mould *mould, struct str name,
                            struct str maybe_node)
{
    struct pod *pod = arena_new(&c->arena, struct pod);
    pod->object.kind = &pod_kind;
    pod->object.meta.name = name;
    pod->object.meta.namespace_ = STR("default");
    pod->object.meta.labels = mould->labels;
    pod->spec = mould->spec;
    pod->maybe_affinity = mould->maybe_affinity;
    pod->status = maybe_node.len ? &running : &pending;
    pod->node_name = maybe_node;
    vec_push(&c->pods, pod);
    return pod;
}

/* Keys that types speak of are well known, those of the class' cloud too. */
static struct str_list well_known_keys(struct arena *a, const char *class_group,
                                       const struct instance_types *types)
{
    struct str *keys = arena_array(a, struct str, types->key_count);
    for (uint32_t i = 0; i < types->key_count; i++)
        keys[i] = types->labels[i].key;
    return label_rules_extend(a, label_rules_for(str_of(class_group)),
                              (struct str_list){ keys, types->key_count })
        .well_known;
}

struct nodepool *cluster_add_pool(struct cluster *c, const char *name, const char *class_group,
                                  const struct instance_types *types)
{
    struct nodepool *pool = arena_new(&c->arena, struct nodepool);
    pool->object.kind = &nodepool_kind;
    pool->object.meta.name = str_of(name);
    pool->spec.template.spec.node_class_ref =
        (struct node_class_ref){ str_of(class_group), STR("NodeClass"), STR("default") };
    vec_push(&c->pools, (struct sched_pool){
                            .pool = pool,
                            .types = instance_types_ref(types),
                            .well_known = well_known_keys(&c->arena, class_group, types),
                            .not_ready = STR(""),
                        });
    return pool;
}

void nodepool_require(struct arena *a, struct nodepool *pool, const char *key,
                      const char *const *values)
{
    struct claim_node_spec *spec = &pool->spec.template.spec;
    uint32_t count = spec->requirements.count;
    struct expression *items = arena_array(a, struct expression, count + 1);
    if (count)
        memcpy(items, spec->requirements.items, count * sizeof *items);
    items[count] = expression_in(key, list_of(a, values));
    spec->requirements.items = items;
    spec->requirements.count = count + 1;
}

const struct instance_types *built_in_types(const char *bench)
{
    AUTO(catalogue) catalogue = NULL;
    struct err err = { 0 };
    const struct instance_types *types = NULL;
    struct nodepool any = { 0 };
    if (catalogue_new((struct catalogue_options){ 0 }, &catalogue, &err) == 0) {
        const struct cloud_provider *provider = catalogue_provider(catalogue);
        if (provider->get_instance_types(provider->ctx, &any, &types, &err) == 0)
            return types;
    }
    fprintf(stderr, "%s: %s\n", bench, err.text);
    exit(1);
}

/* --- what benchmarks print --- */

int64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t plan_setup_ns(const struct snapshot *snap, struct plan_options options)
{
    AUTO_ARENA arena = { 0 };
    struct model model;
    int64_t start = cpu_ns();
    model_compile(&model, &arena, snap, options);
    int64_t took = cpu_ns() - start;
    model_done(&model);
    return took;
}

long peak_kb(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

static uint64_t hash_str(uint64_t hash, struct str s)
{
    return kv_mix64(hash ^ kv_hash(s.p, s.len)) + s.len;
}

static uint64_t hash_pods(uint64_t hash, const struct snapshot *snap, struct plan_pods pods)
{
    for (uint32_t i = 0; i < pods.count; i++)
        hash = hash_str(hash, snap->pods[pods.items[i]]->object.meta.name);
    return kv_mix64(hash + pods.count);
}

uint64_t plan_hash(const struct snapshot *snap, const struct plan *plan)
{
    uint64_t hash = kv_mix64((uint64_t)plan->price ^ plan->launch_count);
    for (uint32_t i = 0; i < plan->launch_count; i++) {
        const struct plan_launch *l = &plan->launches[i];
        const struct sched_pool *pool = &snap->pools[l->pool];
        hash = hash_str(hash, pool->pool->object.meta.name);
        hash = hash_str(hash, pool->types->names[l->type]);
        hash = kv_mix64(hash ^ l->offering ^ (uint64_t)l->price);
        for (uint32_t t = 0; t < l->type_count; t++)
            hash = hash_str(hash, pool->types->names[l->types[t]]);
        hash = hash_pods(hash, snap, l->pods);
    }
    for (uint32_t i = 0; i < plan->existing_count; i++) {
        const struct plan_existing *e = &plan->existing[i];
        hash = hash_str(hash, e->node != PLAN_NONE ? snap->nodes[e->node]->object.meta.name
                                                   : snap->claims[e->claim]->object.meta.name);
        hash = hash_pods(hash, snap, e->pods);
    }
    for (uint32_t i = 0; i < plan->miss_count; i++)
        hash = hash_str(hash, snap->pods[plan->misses[i].pod]->object.meta.name);
    return hash;
}

void print_misses(const char *bench, const struct snapshot *snap, const struct plan *plan)
{
    uint32_t counts[PLAN_REASON_COUNT] = { 0 };
    const struct plan_miss *first[PLAN_REASON_COUNT] = { 0 };
    for (uint32_t i = 0; i < plan->miss_count; i++) {
        enum plan_reason reason = plan->misses[i].reasons[0].reason;
        if (counts[reason]++ == 0)
            first[reason] = &plan->misses[i];
    }
    for (uint32_t i = 0; i < PLAN_REASON_COUNT; i++) {
        if (counts[i])
            fprintf(stderr, "%s: %u unschedulable: %s: %.*s: %.*s\n", bench, counts[i],
                    plan_reason_names[i], STR_ARG(snap->pods[first[i]->pod]->object.meta.name),
                    STR_ARG(first[i]->reasons[0].detail));
    }
}

bool plan_is_right(const char *bench, const struct snapshot *snap, struct plan_options options,
                   const struct plan *plan)
{
    AUTO_ARENA arena = { 0 };
    struct check_result result = plan_check(&arena, snap, options, plan);
    for (uint32_t i = 0; i < result.count && i < 10; i++)
        fprintf(stderr, "%s: not right: %.*s\n", bench, STR_ARG(result.findings[i].what));
    return result.count == 0;
}

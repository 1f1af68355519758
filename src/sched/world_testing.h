/* sched/world_testing.h - a cluster written down as YAML, and a plan for it, for tests.
 *
 *     WORLD w;
 *     world_load(&w, WORLD_POOL("web", "[]", "") WORLD_POD("a", "{}", "{cpu: 1}", ""),
 *                WORLD_TYPES_SMALL);
 *     const struct plan *plan = world_plan(&w);
 *     EXPECT_Z(world_home(&w, plan, "a"), "launch 0");
 *     EXPECT_Z(world_launch(&w, plan, 0), "web: small zone-a spot 0.04");
 *
 * Everything lives until world_done. What is wrong with the YAML, or with a plan, fails the test
 * and is told.
 */
#pragma once

#include "api/kinds.h"
#include "api/manifest.h"
#include "api/nodeoverlay.h"
#include "cloud/catalogue.h"
#include "cloud/instance_cache.h"
#include "sched/check.h"
#include "sched/plan.h"
#include "support/test.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

/* --- building blocks of worlds --- */

/* Types without overhead, so that sums can be done in the head. In three zones, on demand and as
 * spot for 0.4 of the price in zone-a and a little more in the others; `gpu` only on demand in
 * zone-a.
 *
 *            cpu  memory  price   spot in zone-a
 *     arm      4     8Gi   0.16   0.064            arm64, the others are amd64
 *     gpu      8    32Gi   1                       nvidia.com/gpu: 1
 *     large    8    16Gi   0.4    0.16
 *     medium   4     8Gi   0.2    0.08
 *     memory   4    32Gi   0.3    0.12
 *     small    2     4Gi   0.1    0.04
 */
#define WORLD_OFFERINGS(on_demand, spot_a, spot_b, spot_c)                                         \
    "  offerings:\n"                                                                               \
    "  - {zone: zone-a, capacityType: on-demand, price: " on_demand "}\n"                          \
    "  - {zone: zone-b, capacityType: on-demand, price: " on_demand "}\n"                          \
    "  - {zone: zone-c, capacityType: on-demand, price: " on_demand "}\n"                          \
    "  - {zone: zone-a, capacityType: spot, price: " spot_a "}\n"                                  \
    "  - {zone: zone-b, capacityType: spot, price: " spot_b "}\n"                                  \
    "  - {zone: zone-c, capacityType: spot, price: " spot_c "}\n"
#define WORLD_TYPE(name, arch, capacity)                                                           \
    "- name: " name "\n"                                                                           \
    "  capacity: {" capacity "}\n"                                                                 \
    "  requirements:\n"                                                                            \
    "  - {key: kubernetes.io/arch, operator: In, values: [" arch "]}\n"                            \
    "  - {key: kubernetes.io/os, operator: In, values: [linux]}\n"
/* clang-format off */
#define WORLD_TYPES_SMALL                                                                          \
    "instanceTypes:\n"                                                                             \
    WORLD_TYPE("arm", "arm64", "cpu: 4, memory: 8Gi, pods: 40")                                    \
    WORLD_OFFERINGS("0.16", "0.064", "0.065", "0.066")                                             \
    WORLD_TYPE("gpu", "amd64", "cpu: 8, memory: 32Gi, pods: 80, nvidia.com/gpu: 1")                \
    "  offerings: [{zone: zone-a, capacityType: on-demand, price: 1}]\n"                           \
    WORLD_TYPE("large", "amd64", "cpu: 8, memory: 16Gi, pods: 80")                                 \
    WORLD_OFFERINGS("0.4", "0.16", "0.165", "0.17")                                                \
    WORLD_TYPE("medium", "amd64", "cpu: 4, memory: 8Gi, pods: 40")                                 \
    WORLD_OFFERINGS("0.2", "0.08", "0.082", "0.084")                                               \
    WORLD_TYPE("memory", "amd64", "cpu: 4, memory: 32Gi, pods: 40")                                \
    WORLD_OFFERINGS("0.3", "0.12", "0.123", "0.126")                                               \
    WORLD_TYPE("small", "amd64", "cpu: 2, memory: 4Gi, pods: 20")                                  \
    WORLD_OFFERINGS("0.1", "0.04", "0.041", "0.042")
/* clang-format on */

/* `requirements` is a YAML list in brackets; `more` are whole lines, indented by two blanks if they
 * are of the spec and by six if they are of the template's: "      taints: [...]\n  weight: 9\n". */
#define WORLD_POOL(name, requirements, more)                                                       \
    "---\n"                                                                                        \
    "apiVersion: karpenter.sh/v1\n"                                                                \
    "kind: NodePool\n"                                                                             \
    "metadata: {name: " name "}\n"                                                                 \
    "spec:\n"                                                                                      \
    "  template:\n"                                                                                \
    "    spec:\n"                                                                                  \
    "      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}\n"          \
    "      requirements: " requirements "\n" more

/* `labels` and `requests` are YAML maps in braces; `more` are whole lines of the spec, indented by
 * two blanks. */
#define WORLD_POD(name, labels, requests, more)                                                    \
    "---\n"                                                                                        \
    "apiVersion: v1\n"                                                                             \
    "kind: Pod\n"                                                                                  \
    "metadata: {name: " name ", namespace: default, labels: " labels "}\n"                         \
    "spec:\n"                                                                                      \
    "  containers: [{name: c, image: i, resources: {requests: " requests "}}]\n" more

/* A node that is ready and initialised. `labels` come on top of its host name, zone, system and
 * architecture ("" or ", key: value"); `resources` are without braces; 110 pods. */
#define WORLD_NODE(name, zone, labels, resources)                                                  \
    "---\n"                                                                                        \
    "apiVersion: v1\n"                                                                             \
    "kind: Node\n"                                                                                 \
    "metadata:\n"                                                                                  \
    "  name: " name "\n"                                                                           \
    "  labels: {kubernetes.io/hostname: " name ", topology.kubernetes.io/zone: " zone              \
    ", kubernetes.io/os: linux, kubernetes.io/arch: amd64, karpenter.sh/registered: 'true'"        \
    ", karpenter.sh/initialized: 'true'" labels "}\n"                                              \
    "spec: {providerID: 'test:///" zone "/" name "'}\n"                                            \
    "status:\n"                                                                                    \
    "  capacity: {" resources ", pods: 110}\n"                                                     \
    "  allocatable: {" resources ", pods: 110}\n"                                                  \
    "  conditions: [{type: Ready, status: 'True', reason: R, message: m, "                         \
    "lastTransitionTime: '2026-01-02T03:04:05Z'}]\n"

/* --- the world --- */

struct world {
    struct arena arena;
    struct manifests manifests;
    struct catalogue *catalogue;
    struct instance_cache *cache;
    struct overlay_evaluation evaluation;
    struct snapshot snap;        /* points at what follows; see world_refresh */
    struct plan_options options; /* the default; tests may change them */

    VEC(const struct pod *) pods;
    VEC(const struct node *) nodes;
    VEC(const struct nodeclaim *) claims;
    VEC(struct sched_pool) pools;
    VEC(const struct instance_types *) raw; /* per pool: before overlays; one reference */
    VEC(const struct nodeoverlay *) overlays;
    VEC(const struct daemon_set *) daemon_sets;
    VEC(const struct pvc *) pvcs;
    VEC(const struct pv *) pvs;
    VEC(const struct storage_class *) storage_classes;
    VEC(const struct csi_node *) csi_nodes;
    VEC(const struct namespace_object *) namespaces;
    VEC(const struct priority_class *) priority_classes;
};

static inline void world_done(struct world *w)
{
    vec_each(&w->pools, struct sched_pool, p)
        instance_types_unref(p->types);
    vec_each(&w->raw, const struct instance_types *, types)
        instance_types_unref(*types);
    overlay_set_unref(w->evaluation.accepted);
    instance_cache_free(w->cache);
    catalogue_free(w->catalogue);
    vec_done(&w->pods);
    vec_done(&w->nodes);
    vec_done(&w->claims);
    vec_done(&w->pools);
    vec_done(&w->raw);
    vec_done(&w->overlays);
    vec_done(&w->daemon_sets);
    vec_done(&w->pvcs);
    vec_done(&w->pvs);
    vec_done(&w->storage_classes);
    vec_done(&w->csi_nodes);
    vec_done(&w->namespaces);
    vec_done(&w->priority_classes);
    if (w->manifests.pool)
        manifests_done(&w->manifests);
    arena_done(&w->arena);
    *w = (struct world){ 0 };
}
#define WORLD __attribute__((cleanup(world_done))) struct world

/* The snapshot shows what the lists have now. Call it after changing them by hand. */
static inline void world_refresh(struct world *w)
{
#define WORLD_SHOWN(many, one) .many = w->many.items, .one##_count = (uint32_t)w->many.count
    w->snap = (struct snapshot){
        WORLD_SHOWN(pods, pod),
        WORLD_SHOWN(nodes, node),
        WORLD_SHOWN(claims, claim),
        WORLD_SHOWN(pools, pool),
        WORLD_SHOWN(daemon_sets, daemon_set),
        WORLD_SHOWN(pvcs, pvc),
        WORLD_SHOWN(pvs, pv),
        WORLD_SHOWN(storage_classes, storage_class),
        WORLD_SHOWN(csi_nodes, csi_node),
        WORLD_SHOWN(namespaces, namespace),
        WORLD_SHOWN(priority_classes, priority_class),
    };
#undef WORLD_SHOWN
}

/* --- text as a file: readers of manifests and catalogues take paths --- */

struct world_file {
    int fd;
    char path[32];
};

static inline struct world_file world_file_new(struct str text)
{
    struct world_file f = { .fd = memfd_create("world", MFD_CLOEXEC) };
    EXPECT_TRUE(f.fd >= 0);
    EXPECT_EQ(write(f.fd, text.p, text.len), text.len);
    snprintf(f.path, sizeof f.path, "/proc/self/fd/%d", f.fd);
    return f;
}

/* --- objects --- */

/* A namespaced object that names no namespace is in `default`. */
#define WORLD_PUT(list, type, of)                                                                  \
    do {                                                                                           \
        const struct type *put_ = of(item->object);                                                \
        if (item->kind->namespaced && !put_->object.meta.namespace_.len) {                         \
            struct type *copy_ = arena_new(&w->arena, struct type);                                \
            *copy_ = *put_;                                                                        \
            copy_->object.meta.namespace_ = STR("default");                                        \
            put_ = copy_;                                                                          \
        }                                                                                          \
        vec_push(&w->list, put_);                                                                  \
    } while (0)

static inline void world_put(struct world *w, const struct manifest *item)
{
    if (item->kind == &pod_kind)
        WORLD_PUT(pods, pod, pod_of);
    else if (item->kind == &node_kind)
        WORLD_PUT(nodes, node, node_of);
    else if (item->kind == &nodeclaim_kind)
        WORLD_PUT(claims, nodeclaim, nodeclaim_of);
    else if (item->kind == &nodepool_kind)
        vec_push(&w->pools,
                 (struct sched_pool){ .pool = nodepool_of(item->object), .not_ready = STR("") });
    else if (item->kind == &nodeoverlay_kind)
        WORLD_PUT(overlays, nodeoverlay, nodeoverlay_of);
    else if (item->kind == &daemon_set_kind)
        WORLD_PUT(daemon_sets, daemon_set, daemon_set_of);
    else if (item->kind == &pvc_kind)
        WORLD_PUT(pvcs, pvc, pvc_of);
    else if (item->kind == &pv_kind)
        WORLD_PUT(pvs, pv, pv_of);
    else if (item->kind == &storage_class_kind)
        WORLD_PUT(storage_classes, storage_class, storage_class_of);
    else if (item->kind == &csi_node_kind)
        WORLD_PUT(csi_nodes, csi_node, csi_node_of);
    else if (item->kind == &namespace_kind)
        WORLD_PUT(namespaces, namespace_object, namespace_of);
    else if (item->kind == &priority_class_kind)
        WORLD_PUT(priority_classes, priority_class, priority_class_of);
    else if (item->kind != &ec2nodeclass_kind && item->kind != &kwoknodeclass_kind)
        fail_msg("a %.*s has no place in a snapshot", STR_ARG(item->kind_name));
}

/* Reads the text; returns the number of the first new item. */
static inline size_t world_read(struct world *w, struct str yaml)
{
    size_t first = w->manifests.items.count;
    struct world_file file = world_file_new(yaml);
    const char *path = file.path;
    struct err err = { 0 };
    int rc = manifests_load(&w->manifests, &path, 1, &err);
    close(file.fd);
    EXPECT_OK(rc, err);
    vec_each(&w->manifests.problems, struct manifest_problem, p) {
        AUTO_BUF text = { 0 };
        manifest_problem_format(p, &text);
        if (p->severity == PROBLEM_ERROR)
            print_error("%s\n", text.p);
    }
    EXPECT_EQ(w->manifests.error_count, 0);
    return first;
}

/* --- instance types, as the commands load them --- */

static inline const struct object *world_class(void *ctx, const struct node_class_ref *ref)
{
    const struct world *w = ctx;
    vec_each(&w->manifests.items, struct manifest, item) {
        if (item->object && str_eqz(ref->kind, item->kind->name) &&
            str_eqz(ref->group, item->kind->group) && str_eq(ref->name, item->name))
            return item->object;
    }
    return NULL;
}

static inline void world_open_catalogue(struct world *w, const char *maybe_yaml)
{
    struct err err = { 0 };
    struct world_file file = { .fd = -1 };
    if (maybe_yaml)
        file = world_file_new(str_of(maybe_yaml));
    int rc = catalogue_new((struct catalogue_options){ .maybe_path = maybe_yaml ? file.path : NULL,
                                                       .maybe_class = world_class,
                                                       .class_ctx = w },
                           &w->catalogue, &err);
    if (maybe_yaml)
        close(file.fd);
    EXPECT_OK(rc, err);
}

static inline struct str_list world_well_known(struct world *w, const struct nodepool *pool,
                                               const struct instance_types *types)
{
    struct str *keys = arena_array(&w->arena, struct str, types->key_count);
    for (uint32_t i = 0; i < types->key_count; i++)
        keys[i] = types->labels[i].key;
    return label_rules_extend(&w->arena,
                              label_rules_for(pool->spec.template.spec.node_class_ref.group),
                              (struct str_list){ keys, types->key_count })
        .well_known;
}

static inline void world_evaluate_overlays(struct world *w)
{
    AUTO_OVERLAY_SET set = overlay_set_new(w->overlays.items, (uint32_t)w->overlays.count, 1);
    struct overlay_pool *pools = arena_array(&w->arena, struct overlay_pool, w->pools.count);
    for (size_t i = 0; i < w->pools.count; i++)
        pools[i] = (struct overlay_pool){
            .name = w->pools.items[i].pool->object.meta.name,
            .labels = w->pools.items[i].pool->spec.template.meta.labels,
            .types = w->raw.items[i],
            .well_known = w->pools.items[i].well_known,
        };
    overlay_set_evaluate(set, pools, (uint32_t)w->pools.count, &w->arena, &w->evaluation);
    instance_cache_set_overlays(w->cache, w->evaluation.accepted);
    for (uint32_t i = 0; i < w->evaluation.verdicts.count; i++) {
        const struct overlay_verdict *v = &w->evaluation.verdicts.items[i];
        if (v->state != OVERLAY_ACCEPTED)
            fail_msg("overlay %.*s: %.*s", STR_ARG(v->overlay->object.meta.name),
                     STR_ARG(v->message));
    }
}

static inline void world_load_types(struct world *w)
{
    struct err err = { 0 };
    w->cache = instance_cache_new(
        (struct instance_cache_options){ .provider = catalogue_provider(w->catalogue),
                                         .clock = clock_real(),
                                         .node_overlays = w->overlays.count > 0,
                                         .stripes = 1 });
    vec_each(&w->pools, struct sched_pool, p) {
        const struct instance_types *raw = NULL;
        EXPECT_OK(instance_cache_get_raw(w->cache, p->pool, &raw, &err), err);
        vec_push(&w->raw, raw);
        p->well_known = world_well_known(w, p->pool, raw);
    }
    if (w->overlays.count)
        world_evaluate_overlays(w);
    vec_each(&w->pools, struct sched_pool, p)
        EXPECT_OK(instance_cache_get(w->cache, p->pool, &p->types, &err), err);
}

/* Objects from YAML (several documents, lists); types from a catalogue's text as `--catalogue` takes
 * it, or the built-in ones. */
static inline void world_load(struct world *w, const char *yaml, const char *maybe_catalogue_yaml)
{
    *w = (struct world){ .options = PLAN_OPTIONS_DEFAULT };
    manifests_init(&w->manifests);
    world_read(w, str_of(yaml));
    vec_each(&w->manifests.items, struct manifest, item)
        world_put(w, item);
    world_open_catalogue(w, maybe_catalogue_yaml);
    world_load_types(w);
    world_refresh(w);
}

/* `count` pods PREFIX-0, PREFIX-1, ... that differ in nothing but their names. The body is a pod
 * without apiVersion, kind and name: "metadata: {labels: {app: web}}\nspec: {...}", where the
 * metadata may be left out. */
static inline void world_add_pods(struct world *w, uint32_t count, const char *prefix,
                                  const char *body)
{
    static const char flow[] = "metadata: {", block[] = "metadata:\n";
    AUTO_BUF yaml = { 0 };
    buf_addz(&yaml, "apiVersion: v1\nkind: Pod\n");
    if (str_starts(str_of(body), STR("metadata: {")))
        buf_addf(&yaml, "metadata: {name: %s-0, %s", prefix, body + strlen(flow));
    else if (str_starts(str_of(body), STR("metadata:\n")))
        buf_addf(&yaml, "metadata:\n  name: %s-0\n%s", prefix, body + strlen(block));
    else
        buf_addf(&yaml, "metadata: {name: %s-0}\n%s", prefix, body);

    size_t first = world_read(w, buf_str(&yaml));
    world_put(w, &w->manifests.items.items[first]);
    const struct pod *model = vec_pop(&w->pods);
    struct pod *pods = arena_array(&w->arena, struct pod, count);
    for (uint32_t i = 0; i < count; i++) {
        pods[i] = *model;
        pods[i].object.meta.name = arena_strf(&w->arena, "%s-%u", prefix, i);
        vec_push(&w->pods, &pods[i]);
    }
    world_refresh(w);
}

/* --- planning --- */

/* "namespace/name"; a name alone is in `default`. */
static inline uint32_t world_pod_ix(const struct world *w, const char *name)
{
    struct str namespace_, rest;
    if (!str_cut(str_of(name), '/', &namespace_, &rest)) {
        namespace_ = STR("default");
        rest = str_of(name);
    }
    for (uint32_t i = 0; i < w->snap.pod_count; i++) {
        const struct meta *meta = &w->snap.pods[i]->object.meta;
        if (str_eq(meta->namespace_, namespace_) && str_eq(meta->name, rest))
            return i;
    }
    fail_msg("there is no pod %s", name);
    return PLAN_NONE;
}

/* How many things are wrong with the plan; each is told. */
static inline uint32_t world_findings(struct world *w, const struct plan *plan)
{
    struct check_result result = plan_check(&w->arena, &w->snap, w->options, plan);
    for (uint32_t i = 0; i < result.count; i++)
        print_error("plan_check: %.*s\n", STR_ARG(result.findings[i].what));
    return result.count;
}

/* A plan, checked. */
static inline const struct plan *world_plan(struct world *w)
{
    const struct plan *plan = plan_build(&w->arena, &w->snap, w->options);
    EXPECT_EQ(world_findings(w, plan), 0);
    return plan;
}

static inline bool world_has(const struct plan_pods *pods, uint32_t pod)
{
    for (uint32_t i = 0; i < pods->count; i++) {
        if (pods->items[i] == pod)
            return true;
    }
    return false;
}

/* Where the plan has that pod (an index): "node a", "claim b", "launch 0", "miss resources",
 * "skip finished", and "none" of a pod that the plan does not speak of. */
static inline const char *world_home_of(struct world *w, const struct plan *plan, uint32_t pod)
{
    for (uint32_t i = 0; i < plan->existing_count; i++) {
        const struct plan_existing *e = &plan->existing[i];
        if (!world_has(&e->pods, pod))
            continue;
        if (e->node != PLAN_NONE)
            return arena_strf(&w->arena, "node %.*s",
                              STR_ARG(w->snap.nodes[e->node]->object.meta.name))
                .p;
        return arena_strf(&w->arena, "claim %.*s",
                          STR_ARG(w->snap.claims[e->claim]->object.meta.name))
            .p;
    }
    for (uint32_t i = 0; i < plan->launch_count; i++) {
        if (world_has(&plan->launches[i].pods, pod))
            return arena_strf(&w->arena, "launch %u", i).p;
    }
    for (uint32_t i = 0; i < plan->miss_count; i++) {
        if (plan->misses[i].pod == pod)
            return arena_strf(&w->arena, "miss %s",
                              plan_reason_names[plan->misses[i].reasons[0].reason])
                .p;
    }
    for (uint32_t i = 0; i < plan->skip_count; i++) {
        if (plan->skips[i].pod == pod)
            return arena_strf(&w->arena, "skip %.*s", STR_ARG(plan->skips[i].reason)).p;
    }
    return "none";
}

static inline const char *world_home(struct world *w, const struct plan *plan, const char *name)
{
    return world_home_of(w, plan, world_pod_ix(w, name));
}

/* "web: small zone-a spot 0.04": the offering that a launch is priced by. */
static inline const char *world_launch(struct world *w, const struct plan *plan, uint32_t launch)
{
    EXPECT_TRUE(launch < plan->launch_count);
    const struct plan_launch *l = &plan->launches[launch];
    const struct sched_pool *pool = &w->snap.pools[l->pool];
    const struct offering_shape *shape =
        &pool->types->shapes[pool->types->offering_shape[l->offering]];
    char price[USD_HOUR_TEXT_MAX];
    usd_hour_format(l->price, price);
    return arena_strf(&w->arena, "%.*s: %.*s %.*s %.*s %s", STR_ARG(pool->pool->object.meta.name),
                      STR_ARG(pool->types->names[l->type]), STR_ARG(shape->zone),
                      STR_ARG(shape->capacity_type), price)
        .p;
}

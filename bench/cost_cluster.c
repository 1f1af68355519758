/* A cluster has a pool that takes everything of amd64 and a few others from the list below, all of equal
 * weight. Workloads have from one pod to a few hundred; large pods come in small numbers. What a
 * workload asks of nodes is drawn only from what the cluster's pools have. */
#include "bench/cost_cluster.h"

#include "base/rng.h"

#define KEY_CATEGORY "karpenter.k8s.aws/instance-category"
#define KEY_CPU "karpenter.k8s.aws/instance-cpu"
#define KEY_GENERATION "karpenter.k8s.aws/instance-generation"
#define KEY_BATCH "bench/batch" /* a taint */

#define VALUES(...) ((const char *const[]){ __VA_ARGS__, NULL })

static const char *const zones[] = { "us-east-1a", "us-east-1b", "us-east-1c", "us-east-1d", NULL };
static const char *const zones_few[] = { "us-east-1a", "us-east-1b", NULL };

static const struct pool_row {
    const char *name, *arch;
    const char *categories[4];
    const char *capacity_types[3];
    bool few_zones, tainted;
    uint32_t permille; /* of clusters that have it */
} rows[] = {
    { "general", "amd64", { "c", "m", "r" }, { "on-demand", "spot" }, false, false, 500 },
    { "steady", "amd64", { "c", "m", "r" }, { "on-demand" }, false, false, 700 },
    { "arm", "arm64", { "c", "m", "r" }, { "on-demand", "spot" }, false, false, 500 },
    { "arm-steady", "arm64", { "m", "r" }, { "on-demand" }, true, false, 300 },
    { "compute", "amd64", { "c" }, { "spot" }, false, false, 400 },
    { "memory", "amd64", { "r" }, { "on-demand", "spot" }, true, false, 300 },
    { "batch", "amd64", { "c", "m" }, { "spot" }, false, true, 400 },
    { "burst", "amd64", { "m", "t" }, { "on-demand", "spot" }, false, false, 300 },
};

/* Sizes that operators allow. The largest pod fits on the largest of each. */
static const char *const *const size_lists[] = {
    NULL,
    VALUES("2", "4", "8", "16", "32"),
    VALUES("4", "8", "16", "32", "48", "64", "96"),
    VALUES("8", "16", "32"),
};

struct maker {
    struct cluster *c;
    struct arena *a;
    struct rng rng;
    bool arm, spot, batch; /* some pool has it */
    int64_t ratio_shift;   /* of memory per cpu: the cluster's leaning, in half powers of two */
};

static bool chance(struct maker *m, uint32_t permille)
{
    return rng_below(&m->rng, 1000) < permille;
}

/* --- pools --- */

static void taint_pool(struct maker *m, struct nodepool *pool)
{
    struct taint *taint = arena_new(m->a, struct taint);
    *taint =
        (struct taint){ .key = STR(KEY_BATCH), .value = STR("true"), .effect = EFFECT_NO_SCHEDULE };
    pool->spec.template.spec.taints.items = taint;
    pool->spec.template.spec.taints.count = 1;
}

static void add_pool(struct maker *m, const struct pool_row *row,
                     const struct instance_types *types, const char *const *maybe_sizes)
{
    struct nodepool *pool = cluster_add_pool(m->c, row->name, AWS_GROUP, types);
    nodepool_require(m->a, pool, LABEL_ARCH, VALUES(row->arch));
    nodepool_require(m->a, pool, LABEL_OS, VALUES("linux"));
    nodepool_require(m->a, pool, KEY_CATEGORY, row->categories);
    nodepool_require(m->a, pool, KEY_GENERATION, VALUES("5", "6", "7", "8"));
    nodepool_require(m->a, pool, LABEL_CAPACITY_TYPE, row->capacity_types);
    nodepool_require(m->a, pool, LABEL_ZONE, row->few_zones ? zones_few : zones);
    if (maybe_sizes)
        nodepool_require(m->a, pool, KEY_CPU, maybe_sizes);
    if (row->tainted)
        taint_pool(m, pool);
    m->arm |= str_eqz(str_of(row->arch), "arm64");
    m->spot |= !row->tainted && str_eqz(str_of(row->capacity_types[0]), "spot");
    m->batch |= row->tainted;
}

/* "steady" takes any pod of amd64, so it is always there unless "general" is. */
static void add_pools(struct maker *m, const struct instance_types *types)
{
    const char *const *sizes = size_lists[rng_below(&m->rng, KV_COUNT_OF(size_lists))];
    bool general = false;
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        bool drawn = chance(m, rows[i].permille);
        general |= i == 0 && drawn;
        if (drawn || (i == 1 && !general))
            add_pool(m, &rows[i], types, sizes);
    }
}

/* --- daemons --- */

static void add_daemon(struct maker *m, uint32_t nth)
{
    static const struct toleration everything = { .op = TOLERATION_EXISTS };
    struct daemon_set *set = arena_new(m->a, struct daemon_set);
    struct pod_template *template = arena_new(m->a, struct pod_template);
    struct str name = arena_strf(m->a, "daemon-%u", nth);
    template->meta.labels = map_one(m->a, STR("app"), name);
    template->spec = *spec_new(m->a, (struct amounts){
                                         .cpu_milli = 10 + (int64_t)rng_below(&m->rng, 25) * 10,
                                         .memory_mib = 32 + (int64_t)rng_below(&m->rng, 15) * 32,
                                     });
    template->spec.tolerations.items = &everything;
    template->spec.tolerations.count = 1;
    if (m->arm && nth == 2)
        template->spec.node_selector = map_one(m->a, STR(LABEL_ARCH), STR("amd64"));
    set->object.kind = &daemon_set_kind;
    set->object.meta.name = name;
    set->object.meta.namespace_ = STR("kube-system");
    set->object.meta.uid = name;
    set->spec.maybe_selector = select_one(m->a, STR("app"), name);
    set->spec.maybe_template = template;
    vec_push(&m->c->daemon_sets, set);
}

/* --- workloads --- */

/* 50m to 16 cpu, half of them round figures; 64Mi to 64Gi, about 0.5 to 16 Gi per cpu. */
static struct amounts draw_amounts(struct maker *m)
{
    static const int64_t round_cpu[] = { 50, 100, 100, 200, 250, 500, 500, 1000, 2000, 4000, 8000 };
    int64_t cpu = round_cpu[rng_below(&m->rng, KV_COUNT_OF(round_cpu))];
    if (chance(m, 500)) {
        cpu = INT64_C(50) << rng_below(&m->rng, 8);
        cpu += (int64_t)rng_below(&m->rng, (uint64_t)cpu / 5) * 5;
    }
    if (chance(m, 20))
        cpu = 16000;
    /* Three dice give a bell over seven half powers of two. */
    int64_t shift = m->ratio_shift;
    for (int i = 0; i < 3; i++)
        shift += (int64_t)rng_below(&m->rng, 4);
    int64_t memory = cpu * (INT64_C(512) << (shift / 2)) / 1000;
    memory += shift % 2 ? memory * 2 / 5 : 0;
    memory = (memory + 63) / 64 * 64;
    return (struct amounts){ .cpu_milli = cpu, .memory_mib = memory < 65536 ? memory : 65536 };
}

/* Many small, few large. */
static uint32_t draw_replicas(struct maker *m, struct amounts amounts)
{
    uint32_t few = 1 + (uint32_t)rng_below(&m->rng, 12);
    if (amounts.cpu_milli >= 4000 || amounts.memory_mib >= 16384)
        return few;
    return chance(m, 150) ? few * 12 : chance(m, 400) ? few * 4 : few;
}

static void select_nodes(struct maker *m, struct pod_spec *spec)
{
    const char *pairs[7] = { 0 };
    uint32_t n = 0;
    if (!m->arm || chance(m, 500)) {
        pairs[n++] = LABEL_ARCH;
        pairs[n++] = m->arm && chance(m, 250) ? "arm64" : "amd64";
    }
    if (chance(m, 200)) {
        pairs[n++] = LABEL_CAPACITY_TYPE;
        pairs[n++] = "on-demand";
    }
    if (chance(m, 50)) {
        pairs[n++] = LABEL_ZONE;
        pairs[n++] = zones_few[rng_below(&m->rng, 2)];
    }
    spec->node_selector = map_of(m->a, pairs);
    if (m->batch && chance(m, 250)) {
        struct toleration *t = arena_new(m->a, struct toleration);
        *t = (struct toleration){ .key = STR(KEY_BATCH), .op = TOLERATION_EXISTS };
        spec->tolerations.items = t;
        spec->tolerations.count = 1;
    }
}

static uint32_t add_workload(struct maker *m, uint32_t nth, uint32_t pods_max)
{
    struct amounts amounts = draw_amounts(m);
    uint32_t replicas = draw_replicas(m, amounts);
    struct str app = arena_strf(m->a, "app-%03u", nth);
    struct pod_spec *spec = spec_new(m->a, amounts);
    struct pod_mould mould = { .spec = spec, .labels = map_one(m->a, STR("app"), app) };
    const struct label_selector *kin = select_one(m->a, STR("app"), app);
    select_nodes(m, spec);
    switch (rng_below(&m->rng, 20)) {
    case 0:
    case 1:
    case 2:
    case 3:
        spec_spread(m->a, spec, LABEL_ZONE, 1, kin);
        break;
    case 4:
        mould.maybe_affinity = affinity_against(m->a, LABEL_HOSTNAME, kin);
        replicas = 2 + (uint32_t)rng_below(&m->rng, 6);
        break;
    case 5:
        spec_spread(m->a, spec, LABEL_HOSTNAME, 4, kin);
        break;
    default:
        break;
    }
    replicas = replicas < pods_max ? replicas : pods_max;
    for (uint32_t i = 0; i < replicas; i++)
        cluster_add_pod(m->c, &mould, arena_strf(m->a, "app-%03u-%u", nth, i), STR_NONE);
    return replicas;
}

void cost_cluster_fill(struct cluster *c, const struct instance_types *types, uint32_t pod_count,
                       uint64_t seed)
{
    struct maker m = { .c = c, .a = &c->arena };
    rng_init(&m.rng, seed);
    m.ratio_shift = (int64_t)rng_below(&m.rng, 3);
    add_pools(&m, types);
    for (uint32_t i = 0, count = 1 + (uint32_t)rng_below(&m.rng, 4); i < count; i++)
        add_daemon(&m, i);
    for (uint32_t i = 0, left = pod_count; left; i++)
        left -= add_workload(&m, i, left);
}

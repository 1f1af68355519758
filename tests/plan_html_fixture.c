#include "plan_html_fixture.h"

#include "base/rng.h"

static const char *const pool_names[] = { "general", "spot", "memory" };
#define POOLS KV_COUNT_OF(pool_names)
#define TYPE_NAMES_MAX 40 /* of one launch */
#define MISSES 3          /* workloads of which no pod is placed: the last ones */

struct made_workload {
    struct pod_spec spec;
    struct container container;
    struct resource requests[2];
    int64_t cpu_milli, memory_mib;
    uint32_t made; /* pods */
};

struct plan_fixture {
    struct planning planning;
    struct plan_fixture_options options;
    struct arena *a;
    struct rng rng;
    struct catalogue *catalogue;
    const struct instance_types *types;
    struct made_workload *workloads;
    VEC(struct pod *) pods;
    VEC(struct str) names;
    VEC(uint32_t) whose; /* workload of each pod */
    VEC(struct plan_launch) launches;
    struct plan plan;
};

/* A text as it is, or as somebody with bad intentions would write it. */
static struct str worded(struct plan_fixture *f, struct str text)
{
    return f->options.hostile ? arena_strf(f->a, "%.*s" HOSTILE, STR_ARG(text)) : text;
}

static uint32_t below(struct plan_fixture *f, size_t n)
{
    return (uint32_t)rng_below(&f->rng, n);
}

static void load_types(struct plan_fixture *f)
{
    struct err err = { 0 };
    struct nodepool any = { 0 };
    int rc = catalogue_new((struct catalogue_options){ 0 }, &f->catalogue, &err);
    KV_ASSERT(rc == 0);
    const struct cloud_provider *provider = catalogue_provider(f->catalogue);
    rc = provider->get_instance_types(provider->ctx, &any, &f->types, &err);
    KV_ASSERT(rc == 0);
}

static void make_pools(struct plan_fixture *f)
{
    struct sched_pool *pools = arena_array(f->a, struct sched_pool, POOLS);
    for (size_t i = 0; i < POOLS; i++) {
        struct nodepool *pool = arena_new(f->a, struct nodepool);
        pool->object.meta.name = worded(f, str_of(pool_names[i]));
        pools[i] = (struct sched_pool){ .pool = pool, .types = f->types, .not_ready = STR("") };
    }
    f->planning.snapshot.pools = pools;
    f->planning.snapshot.pool_count = POOLS;
}

static void make_workloads(struct plan_fixture *f)
{
    static const char *const words[] = { "web",  "api",  "search", "cache", "worker",
                                         "cron", "auth", "mail",   "media", "index" };
    static const int64_t cpu[] = { 100, 250, 500, 500, 1000, 2000 };
    static const int64_t memory[] = { 128, 256, 512, 1024, 2048, 6144 };
    uint32_t count = f->options.workloads;
    struct plan_workload *named = arena_array(f->a, struct plan_workload, count);
    f->workloads = arena_array(f->a, struct made_workload, count);
    for (uint32_t i = 0; i < count; i++) {
        struct made_workload *w = &f->workloads[i];
        size_t word = i % KV_COUNT_OF(words), lap = i / KV_COUNT_OF(words);
        struct str name = lap ? arena_strf(f->a, "%s-%zu", words[word], lap) : str_of(words[word]);
        named[i] = (struct plan_workload){ STR("Deployment"), worded(f, STR("shop")),
                                           worded(f, name), false };
        w->cpu_milli = cpu[below(f, KV_COUNT_OF(cpu))];
        w->memory_mib = memory[below(f, KV_COUNT_OF(memory))];
        struct quantity bytes = quantity_of(w->memory_mib << 20);
        bytes.format = QUANTITY_BINARY;
        w->requests[0] = (struct resource){ STR("cpu"), quantity_of_milli(w->cpu_milli) };
        w->requests[1] = (struct resource){ STR("memory"), bytes };
        w->container.resources.requests = (struct resources){ w->requests, 2 };
        w->spec.containers.items = &w->container;
        w->spec.containers.count = 1;
    }
    f->planning.workloads = named;
    f->planning.workload_count = count;
}

static uint32_t add_pod(struct plan_fixture *f, uint32_t workload, struct str node)
{
    static const struct pod_status status = { 0 };
    struct pod *pod = arena_new(f->a, struct pod);
    struct made_workload *w = &f->workloads[workload];
    const struct plan_workload *named = &f->planning.workloads[workload];
    pod->object.kind = &pod_kind;
    pod->object.meta.namespace_ = named->namespace_;
    pod->object.meta.name = arena_strf(f->a, "%.*s-%u", STR_ARG(named->name), w->made++);
    pod->spec = &w->spec;
    pod->status = &status;
    pod->node_name = node;
    vec_push(&f->pods, pod);
    vec_push(&f->whose, workload);
    vec_push(&f->names, arena_strf(f->a, "%.*s/%.*s", STR_ARG(named->namespace_),
                                   STR_ARG(pod->object.meta.name)));
    return (uint32_t)f->pods.count - 1;
}

/* So many pods of some workloads, until one is full: a list of workloads, perhaps with repetitions. */
static uint32_t fill(struct plan_fixture *f, int64_t cpu_milli, int64_t memory_mib, uint32_t *out,
                     uint32_t max)
{
    uint32_t count = 0;
    while (count < max) {
        uint32_t w = below(f, f->options.workloads - MISSES), repeat = 1 + below(f, 8);
        while (repeat-- > 0 && count < max) {
            if (f->workloads[w].cpu_milli > cpu_milli || f->workloads[w].memory_mib > memory_mib)
                return count;
            cpu_milli -= f->workloads[w].cpu_milli;
            memory_mib -= f->workloads[w].memory_mib;
            out[count++] = w;
        }
    }
    return count;
}

static struct plan_pods add_pods(struct plan_fixture *f, const uint32_t *workloads, uint32_t count)
{
    uint32_t *items = arena_array(f->a, uint32_t, count);
    for (uint32_t i = 0; i < count; i++)
        items[i] = add_pod(f, workloads[i], STR(""));
    return (struct plan_pods){ items, count };
}

#define PODS_MAX 110

static struct resources requests_of(struct plan_fixture *f, const uint32_t *workloads,
                                    uint32_t count)
{
    struct resource *sums = arena_array(f->a, struct resource, 2);
    int64_t cpu = 150, memory_mib = 200; /* of daemons */
    for (uint32_t i = 0; i < count; i++) {
        cpu += f->workloads[workloads[i]].cpu_milli;
        memory_mib += f->workloads[workloads[i]].memory_mib;
    }
    sums[0] = (struct resource){ STR("cpu"), quantity_of_milli(cpu) };
    sums[1] = (struct resource){ STR("memory"), quantity_of(memory_mib << 20) };
    return (struct resources){ sums, 2 };
}

static uint32_t draw_offering(struct plan_fixture *f)
{
    const struct resource_column *cpu = instance_types_resource(f->types, STR("cpu"));
    const struct resource_column *memory = instance_types_resource(f->types, STR("memory"));
    for (;;) {
        uint32_t o = below(f, f->types->offering_count), t = f->types->offering_type[o];
        bool offered = bitset_test(&f->types->available, o);
        if (offered && cpu->allocatable[t] >= 1900 && cpu->allocatable[t] <= 64000 &&
            memory->allocatable[t] >= INT64_C(3000) << 30)
            return o;
    }
}

static void set_requirements(struct plan_fixture *f, struct plan_launch *launch)
{
    struct requirement *items = arena_array(f->a, struct requirement, 2);
    struct str *values = arena_array(f->a, struct str, 2);
    const struct offering_shape *shape =
        &f->types->shapes[f->types->offering_shape[launch->offering]];
    values[0] = worded(f, shape->capacity_type);
    values[1] = shape->zone;
    items[0] = (struct requirement){ .key = STR(LABEL_CAPACITY_TYPE), .values = { &values[0], 1 } };
    items[1] = (struct requirement){ .key = STR(LABEL_ZONE), .values = { &values[1], 1 } };
    launch->requirements = (struct requirements){ items, 2 };
}

static void add_launch(struct plan_fixture *f)
{
    uint32_t who[PODS_MAX];
    uint32_t o = draw_offering(f), t = f->types->offering_type[o];
    int64_t cpu = instance_types_resource(f->types, STR("cpu"))->allocatable[t];
    int64_t memory = instance_types_resource(f->types, STR("memory"))->allocatable[t];
    uint32_t count = fill(f, cpu - 150, (memory / 1000 >> 20) - 200, who, PODS_MAX);
    uint32_t *types = arena_array(f->a, uint32_t, TYPE_NAMES_MAX);
    uint32_t type_count = 1 + below(f, TYPE_NAMES_MAX - 1);
    types[0] = t;
    for (uint32_t i = 1; i < type_count; i++)
        types[i] = below(f, f->types->type_count);
    struct plan_launch launch = {
        .pool = below(f, POOLS),
        .type = t,
        .offering = o,
        .row = t,
        .price = instance_types_price(f->types, o),
        .types = types,
        .type_count = type_count,
        .requests = requests_of(f, who, count),
        .pods = add_pods(f, who, count),
    };
    set_requirements(f, &launch);
    vec_push(&f->launches, launch);
}

/* The same again, with pods of its own. */
static void copy_launch(struct plan_fixture *f)
{
    uint32_t who[PODS_MAX];
    struct plan_launch launch = f->launches.items[below(f, f->options.launches / 10 + 1)];
    for (uint32_t i = 0; i < launch.pods.count; i++)
        who[i] = f->whose.items[launch.pods.items[i]];
    launch.pods = add_pods(f, who, launch.pods.count);
    vec_push(&f->launches, launch);
}

static void add_existing(struct plan_fixture *f)
{
    uint32_t count = f->options.existing;
    const struct node **nodes = arena_array(f->a, const struct node *, count);
    struct plan_existing *existing = arena_array(f->a, struct plan_existing, count);
    for (uint32_t i = 0; i < count; i++) {
        struct node *node = arena_new(f->a, struct node);
        struct str_pair *labels = arena_array(f->a, struct str_pair, 3);
        struct resource *has = arena_array(f->a, struct resource, 2);
        uint32_t who[4] = { 0 };
        labels[0] = (struct str_pair){ STR(LABEL_NODEPOOL), worded(f, STR("general")) };
        labels[1] = (struct str_pair){ STR(LABEL_INSTANCE_TYPE), STR("m7g.2xlarge") };
        labels[2] = (struct str_pair){ STR(LABEL_ZONE), worded(f, STR("us-east-1a")) };
        has[0] = (struct resource){ STR("cpu"), quantity_of_milli(7910) };
        has[1] = (struct resource){ STR("memory"), quantity_of(INT64_C(29) << 30) };
        node->object.kind = &node_kind;
        node->object.meta.name = worded(f, arena_strf(f->a, "ip-10-0-0-%u", i));
        node->object.meta.labels = (struct str_map){ labels, 3 };
        node->status.allocatable = (struct resources){ has, 2 };
        nodes[i] = node;
        for (uint32_t k = 0; k < 6; k++)
            add_pod(f, below(f, f->options.workloads - MISSES), node->object.meta.name);
        uint32_t fitting = fill(f, 2000, 4096, who, KV_COUNT_OF(who));
        existing[i] = (struct plan_existing){ i, PLAN_NONE, add_pods(f, who, fitting) };
    }
    f->planning.snapshot.nodes = nodes;
    f->planning.snapshot.node_count = count;
    f->plan.existing = existing;
    f->plan.existing_count = count;
}

static void add_misses(struct plan_fixture *f)
{
    struct plan_miss *misses = arena_array(f->a, struct plan_miss, 3 * MISSES);
    for (uint32_t i = 0; i < 3 * MISSES; i++) {
        struct plan_blame *blame = arena_array(f->a, struct plan_blame, 2);
        uint32_t w = f->options.workloads - 1 - i / 3;
        blame[0] = (struct plan_blame){
            0, REASON_RESOURCES,
            worded(f, STR("needs 96 cpu in us-east-1a; the largest type that pool `general` "
                          "allows has 64"))
        };
        blame[1] = (struct plan_blame){ 1, REASON_TAINTS,
                                        worded(f, STR("does not tolerate dedicated=batch")) };
        misses[i] = (struct plan_miss){ add_pod(f, w, STR("")), blame, 2 };
    }
    f->plan.misses = misses;
    f->plan.miss_count = 3 * MISSES;
    struct plan_skip *skip = arena_new(f->a, struct plan_skip);
    *skip = (struct plan_skip){ add_pod(f, 0, STR("")), worded(f, STR("scheduling gate")) };
    f->plan.skips = skip;
    f->plan.skip_count = 1;
}

static const struct explain_pool *explain_pools(struct plan_fixture *f, bool missed)
{
    struct explain_step *steps = arena_array(f->a, struct explain_step, 4);
    struct explain_pool *pools = arena_array(f->a, struct explain_pool, POOLS);
    steps[0] = (struct explain_step){ REASON_TAINTS, STR("taints"), 1042, 1042 };
    steps[1] = (struct explain_step){ REASON_REQUIREMENTS,
                                      worded(f, STR("kubernetes.io/arch In [amd64]")), 1042, 688 };
    steps[2] =
        (struct explain_step){ REASON_REQUIREMENTS, STR(LABEL_ZONE " In [us-east-1a]"), 688, 611 };
    steps[3] = (struct explain_step){ REASON_RESOURCES, STR("cpu 96"), 611, missed ? 0 : 402 };
    for (uint32_t i = 0; i < POOLS; i++) {
        bool possible = !missed && i < 2;
        pools[i] = (struct explain_pool){ .pool = i,
                                          .steps = steps,
                                          .step_count = i == 2 ? 1 : 4,
                                          .possible = possible,
                                          .reason = i == 2 ? REASON_TAINTS : REASON_RESOURCES };
        if (possible)
            continue;
        pools[i].detail = worded(f, STR("needs 96 cpu; the largest type has 64"));
        pools[i].nearest = worded(f, STR("m7i.16xlarge: 63.8 of 96 cpu"));
        pools[i].edit = worded(f, STR("lower the request of container main to 63 cpu, or allow "
                                      "instance-size metal-24xl"));
    }
    return pools;
}

/* One explanation for each workload. */
static void explain(struct plan_fixture *f)
{
    struct planning *p = &f->planning;
    uint32_t *pods = arena_array(f->a, uint32_t, f->pods.count);
    struct explanation *made = arena_array(f->a, struct explanation, f->options.workloads);
    struct explanation *all = arena_array(f->a, struct explanation, f->pods.count);
    for (uint32_t w = 0; w < f->options.workloads; w++) {
        bool missed = w >= f->options.workloads - MISSES;
        made[w] = (struct explanation){
            .class_ = w,
            .pools = explain_pools(f, missed),
            .pool_count = POOLS,
            .given_up = w % 3 ? STR("") : worded(f, STR("preferred zone us-east-1a")),
            .homes = STR("none of 5 nodes takes it: resources 3, taints 2"),
        };
    }
    for (uint32_t i = 0; i < f->pods.count; i++) {
        if (f->pods.items[i]->node_name.len)
            continue;
        pods[p->explained_count] = i;
        all[p->explained_count++] = made[f->whose.items[i]];
    }
    p->explained = pods;
    p->explanations = all;
}

struct plan_fixture *plan_fixture_new(struct plan_fixture_options options)
{
    struct plan_fixture *f = kv_calloc(1, sizeof *f);
    f->a = &f->planning.arena;
    f->options = options;
    rng_init(&f->rng, 5);
    load_types(f);
    make_pools(f);
    make_workloads(f);
    for (uint32_t i = 0; i < options.launches; i++)
        add_launch(f);
    for (uint32_t i = 0; i < options.copies; i++)
        copy_launch(f);
    add_existing(f);
    f->plan.order.count = (uint32_t)f->pods.count - 6 * options.existing;
    add_misses(f);
    explain(f);
    for (size_t i = 0; i < f->launches.count; i++)
        f->plan.price += f->launches.items[i].price;
    f->plan.lower_bound = f->plan.price / 1000 * 968;
    f->plan.launches = f->launches.items;
    f->plan.launch_count = (uint32_t)f->launches.count;
    f->planning.plan = &f->plan;
    f->planning.snapshot.pods = (const struct pod *const *)f->pods.items;
    f->planning.snapshot.pod_count = (uint32_t)f->pods.count;
    f->planning.pod_names = f->names.items;
    f->planning.pod_workloads = f->whose.items;
    vec_push(&f->planning.notes,
             worded(f, STR("NodePool/general: EC2NodeClass/default is not among the manifests: its "
                           "defaults are assumed")));
    return f;
}

const struct planning *plan_fixture_planning(const struct plan_fixture *f)
{
    return &f->planning;
}

void plan_fixture_free(struct plan_fixture *f)
{
    vec_done(&f->planning.notes);
    vec_done(&f->pods);
    vec_done(&f->names);
    vec_done(&f->whose);
    vec_done(&f->launches);
    instance_types_unref(f->types);
    catalogue_free(f->catalogue);
    arena_done(&f->planning.arena);
    free(f);
}

/* Instance types from the cache, beside a deep copy for every caller.
 *
 *     hit      get and let go of an answer, on so many threads at once. `ns` is what one thread needs
 *              for one, `bytes` what it allocates. `ratio` is the baseline's time over ours.
 *     marked   a hit while an offering is marked unavailable.
 *     miss     the provider's counters moved: the whole way from drafts to a published snapshot.
 *     catalogue  the same for the built-in list: hardware and a node class to a snapshot.
 *     overlay  overlays arrive for pools that have their answers: what compiling, evaluating and all pools'
 *              new answers cost together, in calls to malloc and mmap, and what base and layers
 *              hold afterwards.
 *
 * The baseline copies, for each call, every type with its requirements, offerings, capacity and
 * overhead, one malloc per object, and frees them again. It does not copy the bytes of strings: the
 * programs that copy today do not either.
 *
 * Times are of the processor, so that what else runs on the machine matters less, and the best of
 * several rounds counts; only `mhits_per_s`, over all threads, is by the wall clock. The hash is of
 * names, prices, availability and price order.
 */
#include "base/clock.h"
#include "base/vec.h"
#include "bench/allocs.h"
#include "bench/types.h"
#include "cloud/catalogue.h"
#include "cloud/instance_cache.h"
#include "cloud/unavailable.h"
#include "codec/yaml.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

#define SEED 42
#define ROUNDS 20
#define POOLS_MAX 100
#define THREADS_MAX 8

static int64_t thread_cpu_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

struct world {
    struct arena arena;
    const struct instance_type_draft *drafts;
    uint32_t type_count;
    struct generation_counters counters;
    struct unavailable *unavailable;
    struct cloud_provider port;
    struct instance_cache *cache;
    struct nodepool pools[POOLS_MAX];
    uint32_t pool_count;
    struct object_pool *objects;
    VEC(const struct object *) overlays;
};

/* --- the world --- */

static void fail(const char *what, const struct err *err)
{
    fprintf(stderr, "instance_cache: %s: %s\n", what, err->text);
    exit(1);
}

/* What does not depend on the machine is a promise: the run fails where it is broken. */
static void must(const char *what, bool holds)
{
    if (holds)
        return;
    fprintf(stderr, "instance_cache: broken: %s\n", what);
    exit(1);
}

/* --- the provider --- */

static int provide_types(void *ctx, const struct nodepool *pool KV_UNUSED,
                         const struct instance_types **out, struct err *err)
{
    struct world *w = ctx;
    return instance_types_build(w->drafts, w->type_count, (struct instance_types_options){ 0 }, out,
                                err);
}

static int provide_generation(void *ctx, const struct nodepool *pool, struct generation *out,
                              struct err *err KV_UNUSED)
{
    struct world *w = ctx;
    unavailable_settle(w->unavailable);
    generation_read(&w->counters, out);
    out->member[GENERATION_INPUTS] = node_class_ref_hash(&pool->spec.template.spec.node_class_ref);
    return 0;
}

/* --- the world --- */

static struct nodepool make_pool(struct arena *a, uint32_t i)
{
    struct nodepool pool = { 0 };
    struct str_pair *pairs = arena_array(a, struct str_pair, 2);
    pairs[0] = (struct str_pair){ STR("env"), STR("production") };
    pairs[1] = (struct str_pair){ STR("team"), arena_strf(a, "team-%u", i) };
    pool.object.meta.name = arena_strf(a, "pool-%u", i);
    pool.spec.template.meta.labels = (struct str_map){ pairs, 2 };
    pool.spec.template.spec.node_class_ref =
        (struct node_class_ref){ STR(AWS_GROUP), STR("EC2NodeClass"), STR("default") };
    return pool;
}

static void world_init(struct world *w, uint32_t type_count, uint32_t pool_count)
{
    *w = (struct world){ .pool_count = pool_count, .objects = object_pool_new() };
    w->type_count = type_count;
    w->unavailable = unavailable_new(clock_real(), &w->counters, UNAVAILABLE_TTL_NS);
    w->drafts = type_drafts(&w->arena, SEED, type_count);
    for (uint32_t i = 0; i < pool_count; i++)
        w->pools[i] = make_pool(&w->arena, i);
    w->port = (struct cloud_provider){ .get_instance_types = provide_types,
                                       .get_generation = provide_generation,
                                       .name = "bench",
                                       .ctx = w };
    w->cache = instance_cache_new((struct instance_cache_options){
        .provider = &w->port, .clock = clock_real(), .node_overlays = true });
}

static void world_done(struct world *w)
{
    instance_cache_free(w->cache);
    unavailable_free(w->unavailable);
    vec_each(&w->overlays, const struct object *, it)
        object_unref(*it);
    vec_done(&w->overlays);
    object_pool_free(w->objects);
    arena_done(&w->arena);
}

static const struct instance_types *get(struct world *w, uint32_t pool)
{
    const struct instance_types *types = NULL;
    struct err err; /* written if it fails; to clear it would be a fifth of the time */
    if (instance_cache_get(w->cache, &w->pools[pool], &types, &err) < 0)
        fail("get", &err);
    return types;
}

static void get_all(struct world *w)
{
    for (uint32_t i = 0; i < w->pool_count; i++)
        instance_types_unref(get(w, i));
}

static void add_overlay(struct world *w, const char *name, const char *requirement)
{
    struct buf text = { 0 };
    struct docs docs = { 0 };
    struct text_pos at = { 0 };
    struct err err = { 0 };
    const struct object *object = NULL;
    buf_addf(&text,
             "{apiVersion: karpenter.sh/v1alpha1, kind: NodeOverlay, metadata: {name: %s}, "
             "spec: {priceAdjustment: '-10%%', requirements: [%s]}}",
             name, requirement);
    if (yaml_read(buf_str(&text), &docs, &at, &err) < 0 ||
        object_decode(w->objects, &nodeoverlay_kind, docs.items[0].root, &object, &err) < 0)
        fail("overlay", &err);
    vec_push(&w->overlays, object);
    docs_done(&docs);
    buf_done(&text);
}

static const struct overlay_set *compile(const struct world *w, uint64_t generation)
{
    VEC(const struct nodeoverlay *) list = { 0 };
    vec_each(&w->overlays, const struct object *, it)
        vec_push(&list, nodeoverlay_of(*it));
    const struct overlay_set *set = overlay_set_new(list.items, (uint32_t)list.count, generation);
    vec_done(&list);
    return set;
}

/* As a controller does when overlays change: compile, evaluate over all pools, keep the accepted. */
static const struct overlay_set *evaluate(struct world *w, uint64_t generation)
{
    const struct overlay_set *set = compile(w, generation);
    const struct instance_types *raw[POOLS_MAX];
    struct overlay_pool pools[POOLS_MAX];
    struct overlay_evaluation result;
    struct err err;
    AUTO_ARENA arena = { 0 };
    for (uint32_t i = 0; i < w->pool_count; i++) {
        if (instance_cache_get_raw(w->cache, &w->pools[i], &raw[i], &err) < 0)
            fail("get", &err);
        pools[i] =
            (struct overlay_pool){ .name = w->pools[i].object.meta.name,
                                   .labels = w->pools[i].spec.template.meta.labels,
                                   .types = raw[i],
                                   .well_known = label_rules_for(STR(AWS_GROUP))->well_known };
    }
    overlay_set_evaluate(set, pools, w->pool_count, &arena, &result);
    for (uint32_t i = 0; i < w->pool_count; i++)
        instance_types_unref(raw[i]);
    overlay_set_unref(set);
    return result.accepted;
}

/* One for all pools, or one for each. */
static void add_overlays(struct world *w, bool per_pool)
{
    char name[32], requirement[120];
    if (!per_pool)
        add_overlay(w, "all", "{key: karpenter.sh/capacity-type, operator: In, values: [spot]}");
    for (uint32_t i = 0; per_pool && i < w->pool_count; i++) {
        snprintf(name, sizeof name, "only-%u", i);
        snprintf(requirement, sizeof requirement,
                 "{key: karpenter.sh/nodepool, operator: In, values: [pool-%u]}", i);
        add_overlay(w, name, requirement);
    }
}

static void set_overlays(struct world *w, uint64_t generation)
{
    const struct overlay_set *set = compile(w, generation);
    instance_cache_set_overlays(w->cache, set);
    overlay_set_unref(set);
}

static uint64_t add_hash(uint64_t hash, uint64_t v)
{
    return kv_hash_salted(&v, sizeof v, hash);
}

static uint64_t answer_hash(const struct instance_types *s, uint64_t hash)
{
    for (uint32_t t = 0; t < s->type_count; t++) {
        hash = kv_hash_salted(s->names[t].p, s->names[t].len, hash);
        hash = add_hash(hash, s->price_order[t]);
    }
    for (uint32_t o = 0; o < s->offering_count; o++) {
        hash = add_hash(hash, (uint64_t)instance_types_price(s, o));
        hash = add_hash(hash, bitset_test(&s->available, o));
    }
    return hash;
}

static uint64_t world_hash(struct world *w)
{
    uint64_t hash = 0;
    for (uint32_t i = 0; i < w->pool_count; i++) {
        const struct instance_types *types = get(w, i);
        hash = answer_hash(types, hash);
        instance_types_unref(types);
    }
    return hash;
}

static long peak_kb(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

/* --- the baseline --- */

struct copied_requirements {
    struct requirement **items;
    uint32_t count;
};
struct copied_offering {
    struct copied_requirements requirements;
    usd_hour price;
    bool available;
    int64_t reservation_capacity;
};
struct copied_type {
    struct str name;
    struct copied_requirements requirements;
    struct resources capacity, overhead;
    struct copied_offering **offerings;
    uint32_t offering_count;
};

static struct copied_requirements copy_requirements(const struct requirements *from)
{
    struct copied_requirements to = { kv_malloc(from->count * sizeof *to.items), from->count };
    for (uint32_t i = 0; i < from->count; i++) {
        const struct requirement *r = &from->items[i];
        struct str *values = kv_malloc(r->values.count * sizeof *values);
        for (uint32_t v = 0; v < r->values.count; v++)
            values[v] = r->values.items[v];
        to.items[i] = kv_malloc(sizeof *r);
        *to.items[i] = *r;
        to.items[i]->values.items = values;
    }
    return to;
}

static void free_requirements(struct copied_requirements *set)
{
    for (uint32_t i = 0; i < set->count; i++) {
        free((void *)set->items[i]->values.items);
        free(set->items[i]);
    }
    free(set->items);
}

static struct resources copy_resources(const struct resources *from)
{
    struct resource *items = kv_malloc(from->count * sizeof *items);
    for (uint32_t i = 0; i < from->count; i++)
        items[i] = from->items[i];
    return (struct resources){ items, from->count };
}

static struct copied_type *copy_type(const struct instance_type_draft *from)
{
    struct copied_type *to = kv_malloc(sizeof *to);
    to->name = from->name;
    to->requirements = copy_requirements(&from->requirements);
    to->capacity = copy_resources(&from->capacity);
    to->overhead = copy_resources(&from->overhead);
    to->offering_count = from->offering_count;
    to->offerings = kv_malloc(from->offering_count * sizeof(struct copied_offering *));
    for (uint32_t i = 0; i < from->offering_count; i++) {
        const struct offering_draft *o = &from->offerings[i];
        to->offerings[i] = kv_malloc(sizeof *to->offerings[i]);
        *to->offerings[i] = (struct copied_offering){ copy_requirements(&o->requirements), o->price,
                                                      o->available, o->reservation_capacity };
    }
    return to;
}

static void free_type(struct copied_type *type)
{
    for (uint32_t i = 0; i < type->offering_count; i++) {
        free_requirements(&type->offerings[i]->requirements);
        free(type->offerings[i]);
    }
    free(type->offerings);
    free((void *)type->capacity.items);
    free((void *)type->overhead.items);
    free_requirements(&type->requirements);
    free(type);
}

static void copy_all(const struct world *w)
{
    struct copied_type **types = kv_malloc(w->type_count * sizeof *types);
    for (uint32_t i = 0; i < w->type_count; i++)
        types[i] = copy_type(&w->drafts[i]);
    for (uint32_t i = 0; i < w->type_count; i++)
        free_type(types[i]);
    free(types);
}

struct baseline {
    double ns;
    struct allocs allocs;
};

static struct baseline measure_copies(const struct world *w)
{
    struct baseline b = { .ns = 1e18 };
    for (int round = 0; round < ROUNDS; round++) {
        int64_t start_ns = thread_cpu_ns();
        copy_all(w);
        double ns = (double)(thread_cpu_ns() - start_ns);
        if (ns < b.ns)
            b.ns = ns;
    }
    allocs_begin();
    copy_all(w);
    b.allocs = allocs_end();
    return b;
}

/* --- hits --- */

struct reader {
    struct world *w;
    pthread_t thread;
    pthread_barrier_t *start;
    uint32_t number, hits;
    int64_t cpu_ns, wall_ns;
};

static void *read_many(void *ctx)
{
    struct reader *r = ctx;
    struct world *w = r->w;
    get_all(w); /* the thread's stripe has them all */
    pthread_barrier_wait(r->start);
    int64_t wall_ns = clock_mono_ns(clock_real()), cpu_ns = thread_cpu_ns();
    uint32_t pool = r->number % w->pool_count;
    for (uint32_t i = 0; i < r->hits; i++) {
        instance_types_unref(get(w, pool));
        pool = pool + 1 < w->pool_count ? pool + 1 : 0;
    }
    r->cpu_ns = thread_cpu_ns() - cpu_ns;
    r->wall_ns = clock_mono_ns(clock_real()) - wall_ns;
    return NULL;
}

struct hit_timing {
    double cpu_ns, wall_ns; /* for one hit of one thread: the slowest thread of the best round */
};

static struct hit_timing measure_hits(struct world *w, uint32_t thread_count, uint32_t hits)
{
    struct hit_timing best = { 1e18, 1e18 };
    for (int round = 0; round < ROUNDS; round++) {
        struct reader readers[THREADS_MAX];
        struct hit_timing slowest = { 0 };
        pthread_barrier_t start;
        pthread_barrier_init(&start, NULL, thread_count);
        for (uint32_t i = 0; i < thread_count; i++) {
            readers[i] = (struct reader){ .w = w, .start = &start, .number = i, .hits = hits };
            int rc = pthread_create(&readers[i].thread, NULL, read_many, &readers[i]);
            KV_ASSERT(rc == 0);
        }
        for (uint32_t i = 0; i < thread_count; i++) {
            pthread_join(readers[i].thread, NULL);
            double cpu_ns = (double)readers[i].cpu_ns / hits;
            double wall_ns = (double)readers[i].wall_ns / hits;
            slowest.cpu_ns = cpu_ns > slowest.cpu_ns ? cpu_ns : slowest.cpu_ns;
            slowest.wall_ns = wall_ns > slowest.wall_ns ? wall_ns : slowest.wall_ns;
        }
        pthread_barrier_destroy(&start);
        best.cpu_ns = slowest.cpu_ns < best.cpu_ns ? slowest.cpu_ns : best.cpu_ns;
        best.wall_ns = slowest.wall_ns < best.wall_ns ? slowest.wall_ns : best.wall_ns;
    }
    return best;
}

static void report_hits(uint32_t type_count, uint32_t pool_count, bool overlays, uint32_t hits)
{
    struct world w;
    world_init(&w, type_count, pool_count);
    struct baseline base = measure_copies(&w);
    if (overlays) {
        add_overlays(&w, false);
        set_overlays(&w, 1);
    }
    get_all(&w);
    allocs_begin();
    for (uint32_t i = 0; i < 1000; i++)
        instance_types_unref(get(&w, i % pool_count));
    uint64_t bytes = allocs_end().bytes;
    must("a hit allocates nothing", bytes == 0);

    for (uint32_t threads = 1; threads <= THREADS_MAX; threads *= 2) {
        struct hit_timing t = measure_hits(&w, threads, hits);
        printf("instance_cache hit threads=%u ns=%.1f bytes=%" PRIu64
               " ratio=%.0f pools=%u overlays=%d types=%u mhits_per_s=%.1f "
               "base_ms=%.2f base_allocs=%" PRIu64 " base_bytes=%" PRIu64
               " peak_kb=%ld hash=%016" PRIx64 "\n",
               threads, t.cpu_ns, bytes / 1000, base.ns / t.cpu_ns, pool_count, overlays,
               type_count, threads / t.wall_ns * 1e3, base.ns / 1e6, base.allocs.count,
               base.allocs.bytes, peak_kb(), world_hash(&w));
        fflush(stdout);
    }
    world_done(&w);
}

/* --- misses --- */

static void report_miss(uint32_t type_count, bool overlays)
{
    struct world w;
    double best_ns = 1e18;
    world_init(&w, type_count, 1);
    if (overlays) {
        add_overlays(&w, false);
        set_overlays(&w, 1);
    }
    struct allocs allocs = { 0 };
    for (int round = 0; round < ROUNDS + 1; round++) { /* the first is not counted: it warms up */
        generation_bump(&w.counters, GENERATION_SPOT);
        allocs_begin();
        int64_t start_ns = thread_cpu_ns();
        instance_types_unref(get(&w, 0));
        double ns = (double)(thread_cpu_ns() - start_ns);
        allocs = allocs_end();
        if (round > 0 && ns < best_ns)
            best_ns = ns;
    }
    struct instance_cache_stats stats = instance_cache_stats(w.cache);
    printf("instance_cache miss types=%u ms=%.3f overlays=%d us_per_type=%.2f snapshot_bytes=%zu "
           "allocs=%" PRIu64 " alloc_bytes=%" PRIu64 " peak_kb=%ld hash=%016" PRIx64 "\n",
           type_count, best_ns / 1e6, overlays, best_ns / 1e3 / type_count, stats.bytes,
           allocs.count, allocs.bytes, peak_kb(), world_hash(&w));
    fflush(stdout);
    world_done(&w);
}

/* --- overlays --- */

/* The answers without overlays are there; now overlays come. */
static void report_overlay(uint32_t type_count, uint32_t pool_count, bool per_pool)
{
    struct world w;
    double best_ns = 1e18;
    world_init(&w, type_count, pool_count);
    add_overlays(&w, per_pool);
    get_all(&w);
    struct allocs allocs = { 0 };
    for (uint64_t round = 0; round < ROUNDS; round++) {
        allocs_begin();
        int64_t start_ns = thread_cpu_ns();
        const struct overlay_set *set = evaluate(&w, round + 1);
        instance_cache_set_overlays(w.cache, set);
        get_all(&w);
        double ns = (double)(thread_cpu_ns() - start_ns);
        allocs = allocs_end();
        best_ns = ns < best_ns ? ns : best_ns;
        overlay_set_unref(set);
    }
    struct instance_cache_stats stats = instance_cache_stats(w.cache);
    printf("instance_cache overlay types=%u pools=%u allocs=%" PRIu64
           " bytes=%zu overlays=%zu layers=%u ms=%.3f alloc_bytes=%" PRIu64
           " peak_kb=%ld hash=%016" PRIx64 "\n",
           type_count, pool_count, allocs.count, stats.bytes, w.overlays.count, stats.layers,
           best_ns / 1e6, allocs.bytes, peak_kb(), world_hash(&w));
    fflush(stdout);
    if (type_count == 200 && pool_count == 5) {
        must("an overlay for 200 types and 5 pools takes under 100 allocations",
             per_pool || allocs.count < 100);
        must("200 types for 5 pools with overlays are under 2 MB", stats.bytes < 2000000);
    }
    world_done(&w);
}

/* While something is marked unavailable, the generation depends on the time, and reading it includes
 * reading the clock. */
static void report_marked(uint32_t type_count, uint32_t hits)
{
    struct world w;
    world_init(&w, type_count, 1);
    unavailable_mark(w.unavailable, STR("any"), STR("any"), STR("spot"), STR(""));
    get_all(&w);
    struct hit_timing t = measure_hits(&w, 1, hits);
    printf("instance_cache marked threads=1 ns=%.1f marks=1 types=%u peak_kb=%ld hash=%016" PRIx64
           "\n",
           t.cpu_ns, type_count, peak_kb(), world_hash(&w));
    fflush(stdout);
    world_done(&w);
}

/* --- the built-in catalogue, as a fetch of it goes: machines and a node class to a snapshot --- */

static void report_catalogue(void)
{
    AUTO(catalogue) catalogue = NULL;
    struct nodepool pool = { .object.meta.name = STR("default") };
    const struct instance_types *types = NULL;
    double best_ns = 1e18;
    struct err err = { 0 };

    if (catalogue_new((struct catalogue_options){ 0 }, &catalogue, &err) < 0)
        fail("the catalogue", &err);
    const struct cloud_provider *provider = catalogue_provider(catalogue);
    for (int round = 0; round < ROUNDS + 1; round++) {
        instance_types_unref(types);
        int64_t start_ns = thread_cpu_ns();
        if (provider->get_instance_types(provider->ctx, &pool, &types, &err) < 0)
            fail("the catalogue", &err);
        double ns = (double)(thread_cpu_ns() - start_ns);
        if (round > 0 && ns < best_ns)
            best_ns = ns;
    }
    printf("instance_cache catalogue types=%u ms=%.3f us_per_type=%.2f snapshot_bytes=%zu "
           "peak_kb=%ld hash=%016" PRIx64 "\n",
           types->type_count, best_ns / 1e6, best_ns / 1e3 / types->type_count, types->bytes,
           peak_kb(), types->checksum);
    instance_types_unref(types);
}

int main(int argc, char **argv)
{
    bool small = argc > 1 && strcmp(argv[1], "--small") == 0;
    uint32_t types = small ? 100 : 850, hits = small ? 5000 : 200000;

    report_hits(types, 1, false, hits);
    report_hits(types, 1, true, hits);
    report_hits(types, POOLS_MAX, false, hits);
    report_hits(types, POOLS_MAX, true, hits);
    report_marked(types, hits);
    for (uint32_t quarters = small ? 4 : 1; quarters <= (small ? 4 : 16); quarters *= 2) {
        report_miss(types * quarters / 4, false);
        report_miss(types * quarters / 4, true);
    }
    report_catalogue();
    report_overlay(200, 5, false);
    report_overlay(200, 5, true);
    if (!small) {
        report_overlay(types, POOLS_MAX, false);
        report_overlay(types, POOLS_MAX, true);
    }
    return 0;
}

/* Image compatibility: what a lookup, a filter, a miss and a change cost.
 *
 *     lookup    what is known of an image with two sets, and which of its groups are there: the image cache and
 *               the group cache, warm. Beside it the way of the document: a GET per group and lookup to a real
 *               API server, which `--small` and machines without one leave out
 *     filter    a call of kube-scheduler for so many nodes, from JSON to JSON, warm
 *     cold      an image asked of a real registry by who knows nothing (`first`), and by who knows it (`again`)
 *     hits      the share of lookups that find an answer, for pods whose images follow a Zipf distribution
 *     memory    what so many images take in both caches, with few different specs and with as many as images;
 *               what so many nodes take
 *     learn     a NodeFeature with so many kernel options comes in: the first of its kind, and those after it.
 *               `ratio` is the first over the others
 *     classify  rules mention something for the first time: all nodes are looked at again
 *
 * Times are of the processor (`*wall*` are not), so that what else runs on the machine matters less. Hashes are of
 * what was answered.
 */
#include "bench/compat_outside.h"
#include "bench/compat_world.h"
#include "support/program.h"

#include "api/node.h"
#include "base/rng.h"
#include "base/vec.h"
#include "codec/json.h"
#include "compat/extender.h"
#include "store/embedded.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#define SEED 42
#define SPECS 20
#define LOOKUP_IMAGES 1000
#define FOREVER INT64_MAX

struct sizes {
    uint32_t lookups, gets, calls, cold, pods, options;
    uint32_t nodes[4], images[4]; /* up to 0 */
};
static const struct sizes full = { .lookups = 500000,
                                   .gets = 2000,
                                   .calls = 1000,
                                   .cold = 200,
                                   .pods = 200000,
                                   .options = 2500,
                                   .nodes = { 1000, 5000, 10000 },
                                   .images = { 1000, 10000, 100000 } };
static const struct sizes small = { .lookups = 20000,
                                    .calls = 20,
                                    .cold = 5,
                                    .pods = 5000,
                                    .options = 250,
                                    .nodes = { 100, 500 },
                                    .images = { 200, 1000 } };

static int64_t cpu_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static int64_t wall_ns(void)
{
    return clock_mono_ns(clock_real());
}

static long peak_kb(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

static size_t allocated(void)
{
    return mallinfo2().uordblks;
}

static void hash_on(uint64_t *hash, struct str text)
{
    *hash = kv_hash_salted(text.p, text.len, *hash);
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static double quantile_us(int64_t *ns, uint32_t count, double q)
{
    qsort(ns, count, sizeof *ns, by_value);
    return (double)ns[(uint32_t)(q * (count - 1))] / 1e3;
}

static struct embedded *store_new(struct object_pool *pool)
{
    return embedded_new((struct embedded_options){
        .clock = clock_real(), .pool = pool, .seed = SEED, .auto_namespaces = true });
}

/* --- caches full of images --- */

struct caches {
    struct image_world images;
    size_t spec_bytes;
    struct object_pool *pool;
    struct embedded *embedded;
    struct image_cache *cache;
    struct nfg_cache *groups;
};

static void fetch(struct image_cache *cache, uint32_t number)
{
    char name[IMAGE_TEXT_MAX];
    struct image_answer answer;
    image_cache_wait(cache, image_name(name, number), NULL, FOREVER, &answer);
    bench_must(answer.state == IMAGE_KNOWN, "%s: %s", name, answer.err.text);
    image_answer_done(&answer);
}

static void publish(struct nfg_cache *groups, struct image_world *world, uint32_t number)
{
    AUTO_ARENA arena = { 0 };
    char name[IMAGE_TEXT_MAX];
    struct nfg_names names;
    struct err err = { 0 };
    AUTO_IMAGE_FACTS facts = image_world_facts(world, number);
    int rc = nfg_cache_publish(groups, image_name(name, number), facts, &arena, &names, &err);
    bench_must(rc == 0, "%s", err.text);
    bench_must(names.count == 2, "%s has %u groups", name, names.count);
}

static void caches_init(struct caches *c, uint32_t images, uint32_t specs)
{
    struct err err = { 0 };
    size_t before = allocated();
    image_world_init(&c->images, specs);
    c->spec_bytes = allocated() - before;
    c->pool = object_pool_new();
    c->embedded = store_new(c->pool);
    struct image_cache_options options = { .source = image_world_source(&c->images),
                                           .clock = clock_real(),
                                           .threads = 1,
                                           .entries_max = images + 1,
                                           .bytes_max = SIZE_MAX };
    bench_must(image_cache_new(options, &c->cache, &err) == 0, "%s", err.text);
    c->groups = nfg_cache_new((struct nfg_cache_options){ .store = embedded_store(c->embedded),
                                                          .clock = clock_real(),
                                                          .mode = NFG_PUBLISH,
                                                          .namespace_ = STR("nfd") });
}

static void caches_done(struct caches *c)
{
    nfg_cache_free(c->groups);
    image_cache_free(c->cache);
    embedded_free(c->embedded);
    object_pool_free(c->pool);
    image_world_done(&c->images);
}

/* --- lookup --- */

static uint64_t lookup(struct caches *c, struct arena *arena, struct str name)
{
    struct image_answer answer;
    struct nfg_names names;
    arena_reset(arena);
    image_cache_get(c->cache, name, NULL, &answer);
    bench_must(answer.state == IMAGE_KNOWN, "a lookup was no hit");
    bool hit = nfg_cache_get_valid(c->groups, name, arena, &names);
    bench_must(hit && names.count == 2, "a lookup has not both groups");
    uint64_t hash = kv_hash(names.items[1].p, names.items[1].len) ^ answer.maybe_facts->digest.len;
    image_answer_done(&answer);
    return hash;
}

/* Microseconds of a lookup that asks an API server; 0: nobody can be asked. */
static double gets_us(uint32_t count)
{
    struct process_run run;
    double us = 0;
    char number[16];
    if (count == 0)
        return 0;
    snprintf(number, sizeof number, "%u", count);
    process_run((const char *const[]){ "/proc/self/exe", "--gets", number, NULL }, &run);
    if (sscanf(buf_str(&run.said).p, "gets us=%lf", &us) != 1)
        printf("%.*s", STR_ARG(buf_str(&run.said))); /* why not */
    buf_done(&run.said);
    return us;
}

static void bench_lookup(const struct sizes *sizes)
{
    struct caches c;
    AUTO_ARENA arena = { 0 };
    struct rng rng;
    uint64_t hash = 0;
    caches_init(&c, LOOKUP_IMAGES, SPECS);
    static char names[LOOKUP_IMAGES][IMAGE_TEXT_MAX];
    struct str texts[LOOKUP_IMAGES];
    for (uint32_t i = 0; i < LOOKUP_IMAGES; i++) {
        texts[i] = image_name(names[i], i);
        fetch(c.cache, i);
        publish(c.groups, &c.images, i);
    }
    rng_init(&rng, SEED);
    double best_ns = 1e18;
    for (int round = 0; round < 5; round++) {
        uint32_t count = sizes->lookups / 5;
        int64_t start = cpu_ns();
        for (uint32_t i = 0; i < count; i++)
            hash += lookup(&c, &arena, texts[rng_below(&rng, LOOKUP_IMAGES)]);
        double ns = (double)(cpu_ns() - start) / count;
        best_ns = ns < best_ns ? ns : best_ns;
    }
    caches_done(&c);
    double base_us = gets_us(sizes->gets);
    printf("compat lookup images=%d sets=2 ns=%.0f", LOOKUP_IMAGES, best_ns);
    if (base_us > 0)
        printf(" gets_us=%.1f ratio=%.0f", base_us, base_us * 1e3 / best_ns);
    printf(" peak_kb=%ld hash=%016" PRIx64 "\n", peak_kb(), hash);
    fflush(stdout);
}

/* --- a cluster --- */

struct cluster {
    struct image_world images;
    struct object_pool *pool;
    struct embedded *embedded;
    struct compat_service *service;
    struct extender *extender;
    struct node_world nodes;
    VEC(const struct object *) kept;
};

static void cluster_init(struct cluster *c, uint32_t option_count)
{
    struct err err = { 0 };
    *c = (struct cluster){ .pool = object_pool_new() };
    image_world_init(&c->images, SPECS);
    c->embedded = store_new(c->pool);
    node_world_init(&c->nodes, c->pool, option_count);
    struct compat_service_options options = {
        .source = image_world_source(&c->images),
        .store = embedded_store(c->embedded),
        .clock = clock_real(),
        .settings.nfd_namespace = STR("node-feature-discovery"),
    };
    bench_must(compat_service_new(options, &c->service, &err) == 0, "%s", err.text);
    c->extender = extender_new(
        (struct extender_options){ .service = c->service, .pool = c->pool, .clock = clock_real() });
}

static void cluster_done(struct cluster *c)
{
    extender_free(c->extender);
    compat_service_free(c->service);
    vec_each(&c->kept, const struct object *, it)
        object_unref(*it);
    vec_done(&c->kept);
    node_world_done(&c->nodes);
    embedded_free(c->embedded);
    object_pool_free(c->pool);
    image_world_done(&c->images);
}

static void cluster_tell(struct cluster *c, const struct object *object)
{
    compat_service_observe(c->service, NULL, object);
    vec_push(&c->kept, object);
}

/* --- learn --- */

/* The nodes come, and what they publish; that is timed. */
static void bench_learn(struct cluster *c, uint32_t count, uint32_t option_count)
{
    int64_t first_ns = 0, next_ns = 0;
    AUTO_FREE int64_t *times = kv_calloc(count, sizeof *times);
    uint32_t later = 0;
    for (uint32_t i = 0; i < count; i++) {
        cluster_tell(c, node_world_claim(&c->nodes, i));
        cluster_tell(c, node_world_node(&c->nodes, i));
        const struct object *feature = node_world_feature(&c->nodes, i);
        int64_t start = cpu_ns();
        cluster_tell(c, feature);
        int64_t ns = cpu_ns() - start;
        if (i < NODE_KINDS) {
            first_ns += ns;
            continue;
        }
        next_ns += ns;
        times[later++] = ns;
    }
    struct fleet_stats stats = fleet_stats(compat_service_fleet(c->service));
    double first_us = (double)first_ns / NODE_KINDS / 1e3, us = (double)next_ns / later / 1e3;
    printf("compat learn nodes=%u kinds=%d options=%u first_us=%.0f us=%.1f p99_us=%.1f ratio=%.0f "
           "classes=%u peak_kb=%ld hash=%016" PRIx64 "\n",
           count, NODE_KINDS, option_count, first_us, us, quantile_us(times, later, 0.99),
           first_us / us, stats.classes, peak_kb(), (uint64_t)stats.observed);
    printf("compat memory nodes=%u bytes=%zu bytes_per_node=%zu peak_kb=%ld hash=%016" PRIx64 "\n",
           stats.nodes, stats.bytes, stats.bytes / stats.nodes, peak_kb(), (uint64_t)stats.classes);
    fflush(stdout);
}

/* --- classify --- */

static void bench_classify(struct cluster *c, const char *feature, const char *element)
{
    struct fleet *fleet = compat_service_fleet(c->service);
    AUTO_BUF text = { 0 };
    AUTO_COMPAT_SPEC spec = NULL;
    struct err err = { 0 };
    buf_addf(&text,
             "{version: v1alpha1, compatibilities: [{rules: [{name: r, matchFeatures: [{feature: "
             "%s, matchExpressions: {%s: {op: Exists}}}]}]}]}",
             feature, element);
    bench_must(compat_spec_read("spec", buf_str(&text), (struct compat_spec_options){ 0 }, &spec,
                                &err) == 0,
               "%s", err.text);
    AUTO_IMAGE_FACTS facts = image_facts_make(STR("sha256:new"), NULL, 0, spec);
    struct fleet_image image = { .name = STR("new:1"), .maybe_facts = facts };
    int64_t start = cpu_ns();
    const struct demand *demand = fleet_demand(fleet, &image, 1);
    double ms = (double)(cpu_ns() - start) / 1e6;
    demand_unref(demand);
    struct fleet_stats stats = fleet_stats(fleet);
    printf("compat classify nodes=%u feature=%s ms=%.1f us_per_node=%.2f classes=%u peak_kb=%ld "
           "hash=%016" PRIx64 "\n",
           stats.nodes, feature, ms, ms * 1e3 / stats.nodes, stats.classes, peak_kb(),
           (uint64_t)stats.classes);
    fflush(stdout);
}

/* --- filter --- */

static const struct pod *cluster_pod(struct cluster *c, struct str pod_json)
{
    struct doc doc;
    struct err err = { 0 };
    const struct object *object = NULL;
    bench_must(json_read(pod_json, &doc, &err) == 0, "%s", err.text);
    bench_must(object_decode(c->pool, &pod_kind, doc.root, &object, &err) == 0, "%s", err.text);
    doc_done(&doc);
    cluster_tell(c, object);
    return pod_of(object);
}

static void bench_filter(struct cluster *c, uint32_t node_count, uint32_t calls)
{
    AUTO_BUF pod_json = { 0 }, body = { 0 }, out = { 0 };
    char name[IMAGE_TEXT_MAX];
    uint64_t hash = 0;
    image_name(name, 1); /* asks for AVX512F: three kinds of seven have it */
    buf_addf(
        &pod_json,
        "{\"metadata\":{\"name\":\"web\",\"namespace\":\"default\",\"uid\":\"uid-1\"},\"spec\":"
        "{\"containers\":[{\"name\":\"c\",\"image\":\"%s\"}]},\"status\":{}}",
        name);
    const struct pod *pod = cluster_pod(c, buf_str(&pod_json));
    compat_service_settle(c->service, &pod, 1, wall_ns() + (int64_t)60 * 1000000000);
    buf_addf(&body, "{\"Pod\":%s,\"Nodes\":null,\"NodeNames\":[", pod_json.p);
    for (uint32_t i = 0; i < node_count; i++) {
        node_name(name, i);
        buf_addf(&body, "%s\"%s\"", i ? "," : "", name);
    }
    buf_addz(&body, "]}");

    AUTO_FREE int64_t *cpu = kv_calloc(calls, sizeof *cpu);
    AUTO_FREE int64_t *wall = kv_calloc(calls, sizeof *wall);
    for (uint32_t i = 0; i < calls + 3; i++) { /* the first make it warm */
        buf_clear(&out);
        int64_t wall_start = wall_ns(), cpu_start = cpu_ns();
        int status = extender_answer(c->extender, EXTENDER_FILTER, buf_str(&body), &out);
        bench_must(status == 200, "the extender said %d", status);
        if (i < 3)
            continue;
        cpu[i - 3] = cpu_ns() - cpu_start;
        wall[i - 3] = wall_ns() - wall_start;
    }
    hash_on(&hash, buf_str(&out));
    printf("compat filter nodes=%u p50_us=%.0f p99_us=%.0f wall_p50_us=%.0f wall_p99_us=%.0f "
           "ns_per_node=%.0f request_bytes=%zu reply_bytes=%zu peak_kb=%ld hash=%016" PRIx64 "\n",
           node_count, quantile_us(cpu, calls, 0.5), quantile_us(cpu, calls, 0.99),
           quantile_us(wall, calls, 0.5), quantile_us(wall, calls, 0.99),
           quantile_us(cpu, calls, 0.5) * 1e3 / node_count, body.len, out.len, peak_kb(), hash);
    fflush(stdout);
}

static void bench_cluster(const struct sizes *sizes)
{
    struct cluster c;
    uint32_t most = 0;
    cluster_init(&c, sizes->options);
    for (const uint32_t *n = sizes->nodes; *n; n++)
        most = *n;
    bench_learn(&c, most, sizes->options);
    for (const uint32_t *n = sizes->nodes; *n; n++)
        bench_filter(&c, *n, sizes->calls);
    bench_classify(&c, "cpu.cpuid", "ADX");
    bench_classify(&c, "kernel.config", "DRIVER_OPTION_7_OF_MANY");
    cluster_done(&c);
}

/* --- cold --- */

static void bench_cold(uint32_t images)
{
    struct process_run run;
    char number[16];
    snprintf(number, sizeof number, "%u", images);
    process_run((const char *const[]){ "/proc/self/exe", "--cold", number, NULL }, &run);
    printf("%.*s", STR_ARG(buf_str(&run.said)));
    buf_done(&run.said);
    fflush(stdout);
}

/* --- hits --- */

/* The nth image is asked for with a weight of 1/n. A pod every second, so that entries also grow old. */
static void bench_hits(uint32_t pods, uint32_t entries_max)
{
    enum { IMAGES = 2000 };
    static double until[IMAGES];
    struct image_world world;
    struct image_cache *cache = NULL;
    struct err err = { 0 };
    struct rng rng;
    double sum = 0;
    AUTO(virtual_clock) time = virtual_clock_new(0);
    image_world_init(&world, SPECS);
    for (int i = 0; i < IMAGES; i++)
        until[i] = sum += 1.0 / (i + 1);
    struct image_cache_options options = { .source = image_world_source(&world),
                                           .clock = virtual_clock_port(time),
                                           .threads = 1,
                                           .entries_max = entries_max };
    bench_must(image_cache_new(options, &cache, &err) == 0, "%s", err.text);
    rng_init(&rng, SEED);
    for (uint32_t pod = 0; pod < pods; pod++) {
        double at = rng_unit(&rng) * sum;
        uint32_t image = 0;
        while (until[image] < at)
            image++;
        fetch(cache, image);
        virtual_clock_advance(time, 1000000000);
    }
    struct image_cache_stats stats = image_cache_stats(cache);
    printf("compat hits images=%d entries=%u pods=%u rate=%.4f evictions=%" PRIu64
           " peak_kb=%ld hash=%016" PRIx64 "\n",
           IMAGES, entries_max, pods, (double)stats.hits / (double)stats.requests, stats.evictions,
           peak_kb(), stats.requests);
    fflush(stdout);
    image_cache_free(cache);
    image_world_done(&world);
}

/* --- memory --- */

/* The groups' objects are the store's; what freeing the caches gives back is theirs. */
static void bench_memory(uint32_t images, uint32_t specs)
{
    struct caches c;
    caches_init(&c, images, specs);
    size_t before = allocated();
    for (uint32_t i = 0; i < images; i++)
        fetch(c.cache, i);
    size_t cache_bytes = allocated() - before + c.spec_bytes;
    for (uint32_t i = 0; i < images; i++)
        publish(c.groups, &c.images, i);
    struct image_cache_stats stats = image_cache_stats(c.cache);
    before = allocated();
    nfg_cache_free(take(&c.groups));
    size_t group_bytes = before - allocated();
    printf("compat memory images=%u specs=%u cache_kb=%zu cache_bytes_per_image=%zu "
           "counted_per_image=%zu groups_kb=%zu groups_bytes_per_image=%zu document_bytes=200 "
           "peak_kb=%ld hash=%016" PRIx64 "\n",
           images, specs, cache_bytes / 1024, cache_bytes / images, stats.bytes / images,
           group_bytes / 1024, group_bytes / images, peak_kb(), (uint64_t)stats.digests);
    fflush(stdout);
    caches_done(&c);
}

static void bench_all(const struct sizes *sizes)
{
    bench_lookup(sizes);
    bench_cluster(sizes);
    bench_cold(sizes->cold);
    bench_hits(sizes->pods, 10000);
    bench_hits(sizes->pods, 500);
    for (const uint32_t *n = sizes->images; *n; n++)
        bench_memory(*n, SPECS);
    bench_memory(sizes->images[0], sizes->images[0]);
}

int main(int argc, char **argv)
{
    mallopt(M_ARENA_MAX, 1); /* what is counted is what all threads have */
    uint32_t count = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
    if (count && strcmp(argv[1], "--gets") == 0)
        outside_gets(count);
    else if (count && strcmp(argv[1], "--cold") == 0)
        outside_cold(count);
    else
        bench_all(argc > 1 && strcmp(argv[1], "--small") == 0 ? &small : &full);
    return 0;
}

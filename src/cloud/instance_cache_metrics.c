/* Hits are counted in the stripes and everything else under the cache's lock; an atomic counter that
 * all threads share would cost more than the hit it counts. A scrape reads the statistics and adds
 * what is new since the last one.
 */
#include "cloud/instance_cache_inner.h"

#define PREFIX "karve_instance_cache_"

enum { HITS, FETCHES, FETCH_ERRORS, COUNTERS };
enum { WAITERS, ENTRIES, SNAPSHOTS, LAYERS, BYTES, GAUGES };
enum { CAUSE_COLD = GENERATION_MEMBERS, CAUSES };

struct cache_metrics {
    struct instance_cache *cache;
    struct metrics *metrics;
    struct metric *counters[COUNTERS];
    struct metric *gauges[GAUGES];
    struct metric *misses[CAUSES];
    struct metric *generation[GENERATION_MEMBERS]; /* NULL for inputs */
    struct metric *duration;
    struct instance_cache_stats told;
};

static const char *const cause_label[] = { "cause", NULL };
static const char *const member_label[] = { "member", NULL };

/* From a snapshot that is at hand, 100 us, to a cloud that makes us wait, a minute. */
static const double duration_buckets[] = {
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
    0.1,    0.25,    0.5,    1,     2.5,    5,     10,   30,    60,
};

static struct metric *single(struct metrics *m, const struct metric_desc *desc)
{
    return metric_get(metrics_family(m, desc), NULL);
}

static void make_counters(struct cache_metrics *m)
{
    static const struct metric_desc descs[COUNTERS] = {
        [HITS] = { .name = PREFIX "hits_total", .help = "Instance types answered from the cache." },
        [FETCHES] = { .name = PREFIX "fetches_total",
                      .help = "Instance types asked from the provider." },
        [FETCH_ERRORS] = { .name = PREFIX "fetch_errors_total",
                           .help = "Of the fetches, those that failed." },
    };
    for (int i = 0; i < COUNTERS; i++)
        m->counters[i] = single(m->metrics, &descs[i]);

    struct metric_family *misses = metrics_family(
        m->metrics, &(struct metric_desc){
                        .name = PREFIX "misses_total",
                        .help = "Instance types not answered from the cache, by what had changed.",
                        .labels = cause_label });
    for (int i = 0; i < CAUSES; i++) {
        struct str cause = str_of(i == CAUSE_COLD ? "cold" : generation_member_names[i]);
        m->misses[i] = metric_get(misses, &cause);
    }
}

static void make_gauges(struct cache_metrics *m)
{
    static const struct metric_desc descs[GAUGES] = {
        [WAITERS] = { .name = PREFIX "waiters",
                      .help = "Callers that wait for a fetch or a layer.",
                      .type = METRIC_GAUGE },
        [ENTRIES] = { .name = PREFIX "entries",
                      .help = "NodePools that have an answer.",
                      .type = METRIC_GAUGE },
        [SNAPSHOTS] = { .name = PREFIX "snapshots",
                        .help = "Distinct fetched snapshots.",
                        .type = METRIC_GAUGE },
        [LAYERS] = { .name = PREFIX "layers",
                     .help = "Distinct layers of overlays.",
                     .type = METRIC_GAUGE },
        [BYTES] = { .name = PREFIX "snapshot_bytes",
                    .help = "Memory of snapshots and layers.",
                    .type = METRIC_GAUGE },
    };
    for (int i = 0; i < GAUGES; i++)
        m->gauges[i] = single(m->metrics, &descs[i]);

    struct metric_family *generation = metrics_family(
        m->metrics, &(struct metric_desc){ .name = PREFIX "generation",
                                           .help = "The generation of the newest answer.",
                                           .type = METRIC_GAUGE,
                                           .labels = member_label });
    for (int i = 0; i < GENERATION_MEMBERS; i++) {
        struct str member = str_of(generation_member_names[i]);
        if (i != GENERATION_INPUTS)
            m->generation[i] = metric_get(generation, &member);
    }
}

static void add_new(struct metric *counter, uint64_t now, uint64_t told)
{
    metric_add(counter, (double)(now - told));
}

static void collect(void *ctx)
{
    struct cache_metrics *m = ctx;
    struct instance_cache_stats now = instance_cache_stats(m->cache), told = m->told;
    m->told = now;

    add_new(m->counters[HITS], now.hits, told.hits);
    add_new(m->counters[FETCHES], now.fetches, told.fetches);
    add_new(m->counters[FETCH_ERRORS], now.fetch_errors, told.fetch_errors);
    for (int i = 0; i < GENERATION_MEMBERS; i++)
        add_new(m->misses[i], now.misses_by[i], told.misses_by[i]);
    add_new(m->misses[CAUSE_COLD], now.misses_cold, told.misses_cold);

    metric_set(m->gauges[WAITERS], now.waiting);
    metric_set(m->gauges[ENTRIES], now.entries);
    metric_set(m->gauges[SNAPSHOTS], now.snapshots);
    metric_set(m->gauges[LAYERS], now.layers);
    metric_set(m->gauges[BYTES], (double)now.bytes);
    for (int i = 0; i < GENERATION_MEMBERS; i++) {
        if (m->generation[i])
            metric_set(m->generation[i], (double)now.newest.member[i]);
    }
}

struct cache_metrics *cache_metrics_new(struct instance_cache *cache, struct metrics *metrics)
{
    struct cache_metrics *m = kv_calloc(1, sizeof *m);
    m->cache = cache;
    m->metrics = metrics;
    make_counters(m);
    make_gauges(m);
    m->duration =
        single(metrics, &(struct metric_desc){ .name = PREFIX "refresh_duration_seconds",
                                               .help = "How long fetches of instance types took.",
                                               .type = METRIC_HISTOGRAM,
                                               .buckets = duration_buckets,
                                               .bucket_count = KV_COUNT_OF(duration_buckets) });
    metrics_on_collect(metrics, collect, m);
    return m;
}

void cache_metrics_free(struct cache_metrics *m)
{
    if (!m)
        return;
    metrics_on_collect_remove(m->metrics, collect, m);
    for (int i = 0; i < COUNTERS; i++)
        metric_unref(m->counters[i]);
    for (int i = 0; i < GAUGES; i++)
        metric_unref(m->gauges[i]);
    for (int i = 0; i < CAUSES; i++)
        metric_unref(m->misses[i]);
    for (int i = 0; i < GENERATION_MEMBERS; i++)
        metric_unref(m->generation[i]);
    metric_unref(m->duration);
    free(m);
}

void cache_metrics_fetched(struct cache_metrics *maybe, int64_t duration_ns)
{
    if (maybe)
        metric_observe(maybe->duration, (double)duration_ns / 1e9);
}

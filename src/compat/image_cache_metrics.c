/* Requests are counted in the shards and everything else under the cache's lock; a scrape adds what is new
 * since the last one. The names that start with nf_ are those of the design document.
 */
#include "compat/image_cache_inner.h"

#define PREFIX "karve_image_cache_"

static const char *const outcome_label[] = { "outcome", NULL };
static const char *const outcome_names[ASK_NOTHING] = {
    [ASK_SAME] = "same",     [ASK_CHANGED] = "changed", [ASK_UNKNOWN] = "unknown",
    [ASK_DENIED] = "denied", [ASK_INVALID] = "invalid", [ASK_FAILED] = "failed",
};

/* From a registry next door, a millisecond, to one that makes us wait, a minute. */
static const double seconds_buckets[] = { 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                          0.5,   1,      2.5,   5,    10,    30,   60 };

static struct metric *counter(struct metrics *m, const char *name, const char *help)
{
    return metric_get(metrics_family(m, &(struct metric_desc){ .name = name, .help = help }), NULL);
}

static struct metric *gauge(struct metrics *m, const char *name, const char *help)
{
    struct metric_desc desc = { .name = name, .help = help, .type = METRIC_GAUGE };
    return metric_get(metrics_family(m, &desc), NULL);
}

static void add_new(struct metric *metric, uint64_t now, uint64_t shown)
{
    metric_add(metric, (double)(now - shown));
}

static void collect(void *ctx)
{
    struct image_cache *cache = ctx;
    struct image_cache_metrics *m = &cache->metrics;
    struct image_cache_stats now = image_cache_stats(cache);
    add_new(m->requests, now.requests, m->shown.requests);
    add_new(m->hits, now.hits, m->shown.hits);
    add_new(m->joined, now.joined, m->shown.joined);
    add_new(m->refused, now.refused, m->shown.refused);
    add_new(m->resolves, now.resolves, m->shown.resolves);
    add_new(m->evictions, now.evictions, m->shown.evictions);
    metric_set(m->size, now.names);
    metric_set(m->digests, now.digests);
    metric_set(m->bytes, (double)now.bytes);
    m->shown = now;
}

void image_cache_metrics_init(struct image_cache *cache)
{
    struct metrics *metrics = cache->options.maybe_metrics;
    struct image_cache_metrics *m = &cache->metrics;
    if (!metrics)
        return;
    m->requests = counter(metrics, "nf_cache_requests_total", "Images looked up.");
    m->hits = counter(metrics, "nf_cache_hits_total", "Images answered from memory.");
    m->size = gauge(metrics, "nf_cache_size", "Names of images in the cache.");
    m->joined = counter(metrics, PREFIX "joined_total",
                        "Images looked up while they were being asked for already.");
    m->refused = counter(metrics, PREFIX "refused_total",
                         "Images looked up while too many were being asked for.");
    m->resolves = counter(metrics, PREFIX "resolves_total", "Tags whose digest was asked for.");
    m->evictions = counter(metrics, PREFIX "evictions_total", "Names that made room for others.");
    m->digests = gauge(metrics, PREFIX "digests", "Digests whose facts are in the cache.");
    m->bytes = gauge(metrics, PREFIX "bytes", "Memory of names and facts.");

    struct metric_family *asks =
        metrics_family(metrics, &(struct metric_desc){ .name = PREFIX "asks_total",
                                                       .help = "Images asked for, by outcome.",
                                                       .labels = outcome_label });
    for (int i = 0; i < ASK_NOTHING; i++) {
        struct str outcome = str_of(outcome_names[i]);
        m->asks[i] = metric_get(asks, &outcome);
    }
    struct metric_desc seconds = { .name = PREFIX "ask_duration_seconds",
                                   .help = "How long it took to ask for an image.",
                                   .type = METRIC_HISTOGRAM,
                                   .buckets = seconds_buckets,
                                   .bucket_count = KV_COUNT_OF(seconds_buckets) };
    m->ask_seconds = metric_get(metrics_family(metrics, &seconds), NULL);
    metrics_on_collect(metrics, collect, cache);
}

void image_cache_metrics_done(struct image_cache *cache)
{
    struct image_cache_metrics *m = &cache->metrics;
    if (!cache->options.maybe_metrics)
        return;
    metrics_on_collect_remove(cache->options.maybe_metrics, collect, cache);
    struct metric *const all[] = {
        m->requests,  m->hits,  m->size,    m->joined,   m->refused,
        m->evictions, m->bytes, m->digests, m->resolves, m->ask_seconds
    };
    for (size_t i = 0; i < KV_COUNT_OF(all); i++)
        metric_unref(all[i]);
    for (int i = 0; i < ASK_NOTHING; i++)
        metric_unref(m->asks[i]);
}

void image_cache_metrics_asked(struct image_cache *cache, enum ask_outcome outcome, int64_t took_ns)
{
    if (!cache->options.maybe_metrics || outcome == ASK_NOTHING)
        return;
    metric_inc(cache->metrics.asks[outcome]);
    metric_observe(cache->metrics.ask_seconds, (double)took_ns / 1e9);
}

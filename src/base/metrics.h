/* base/metrics.h - counters, gauges, histograms and summaries, exposed as Prometheus text.
 *
 *     static const char *const labels[] = { "nodepool", NULL };
 *     struct metric_family *created = metrics_family(m, &(struct metric_desc){
 *         .name = "claims_created_total", .help = "Claims created.",
 *         .type = METRIC_COUNTER, .labels = labels });
 *     struct metric *of_pool = metric_get(created, &pool_name);
 *     metric_inc(of_pool);
 *
 * A `struct metric` is one series: a family and a value for each of its labels. Getting one looks
 * it up under the registry's lock; using it is a few atomic operations and takes none, so callers
 * on a hot path get theirs once and keep it. It is counted: a series that is removed (its pool is
 * gone) leaves the exposition at once, and its memory when the last holder drops it; what is added
 * to it in between is lost, as it should be.
 *
 * A family holds at most `series_max` series. Asking for one more gives a series that counts but is
 * never shown, and metrics_overflow_total{metric="..."} goes up: label values that nobody bounded
 * cost a number on a dashboard, not the memory of the process.
 */
#pragma once

#include "base/clock.h"
#include "base/str.h"

#define METRIC_SERIES_MAX 10000
#define METRIC_LABELS_MAX 24
#define METRIC_SUMMARY_SAMPLES 1024                              /* the newest are kept */
#define METRIC_SUMMARY_WINDOW_NS ((int64_t)10 * 60 * 1000000000) /* and of those the younger */

enum metric_type {
    METRIC_COUNTER,
    METRIC_GAUGE,
    METRIC_HISTOGRAM,
    METRIC_SUMMARY, /* quantiles 0, 0.5, 0.9, 0.99 and 1 of recent observations */
};

/* Names and labels match Prometheus' grammar, bounds ascend: both are asserted. All that this
 * points at is borrowed for as long as a series lives: literals and static arrays. */
struct metric_desc {
    const char *name, *help;
    enum metric_type type;
    const char *const *labels; /* NULL-terminated; NULL: none */
    const double *buckets;     /* of a histogram: upper bounds, ascending, without +Inf */
    uint32_t bucket_count;
    uint32_t series_max; /* 0: METRIC_SERIES_MAX */
};

struct metrics;
struct metric_family;
struct metric;

struct metrics *metrics_new(const struct clock *clock);
void metrics_free(struct metrics *m); /* series that are still held live on, unseen */
KV_AUTO_TYPE(metrics, metrics_free)

/* Register. The same name twice gives the same family; a different type or labels is asserted. */
struct metric_family *metrics_family(struct metrics *m, const struct metric_desc *desc);

/* The series with these label values, in the order of the family's labels; made if it is new. One
 * reference for the caller. `values` may be NULL for a family without labels. */
struct metric *metric_get(struct metric_family *family, const struct str *values);
void metric_unref(struct metric *metric); /* NULL is fine */
KV_AUTO_TYPE(metric, metric_unref)

/* Thread safe and without locks. Using the wrong one for the family's type is asserted. */
void metric_inc(struct metric *metric);               /* counter, gauge */
void metric_add(struct metric *metric, double v);     /* counter (v >= 0), gauge */
void metric_set(struct metric *metric, double v);     /* gauge */
void metric_observe(struct metric *metric, double v); /* histogram, summary */

/* Remove one series, or in every family those with label=value. False or 0 if there is none. */
bool metric_remove(struct metric_family *family, const struct str *values);
uint32_t metrics_remove_where(struct metrics *m, const char *label, struct str value);
/* The same in one family; a NULL label: all its series. */
uint32_t metric_family_remove(struct metric_family *family, const char *maybe_label,
                              struct str value);

/* `fn` runs at the start of every metrics_write, one at a time, and puts numbers that are kept elsewhere
 * (counted per thread, say, because an atomic that all share would cost more than what it counts)
 * into their series. It may use all of the above, and neither write nor remove. Once remove has
 * returned, it is not running and will not run again. */
typedef void metrics_collect_fn(void *ctx);
void metrics_on_collect(struct metrics *m, metrics_collect_fn *fn, void *ctx);
void metrics_on_collect_remove(struct metrics *m, metrics_collect_fn *fn, void *ctx);

/* Text exposition format 0.0.4: families by name, series by label values, in byte order. A family
 * without series is left out. */
#define METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"
void metrics_write(struct metrics *m, struct buf *out);

/* Bounds for durations from 5 ms to 10 minutes, in seconds. */
extern const double metric_duration_buckets[];
extern const uint32_t metric_duration_bucket_count;
/* Fill `out` with first, first * factor, first * factor^2, ... */
void metric_exponential_buckets(double first, double factor, uint32_t count, double *out);

/* Families stand in an array sorted by name, the series of a family in one sorted by their label
 * values. Looking up is a binary search, writing a walk; nothing needs hashing, and the order is
 * the same in every run. One mutex guards these arrays. The numbers inside a series are atomics
 * that nobody locks: a scrape reads them while they move. The sum of a histogram may therefore be
 * an observation away from its buckets; the count is taken from the buckets, so those two agree.
 *
 * Collectors run before a scrape, under a lock of their own: they may look up series.
 *
 * A summary keeps its newest observations in a ring, each with its time. A scrape sorts those that
 * are young enough. A reader can meet a slot between the two stores of a writer and pair a value
 * with the time of the one before it: at worst a sample counts a moment too long or too little.
 */
#include "base/metrics.h"

#include "base/rc.h"
#include "base/vec.h"

#include <math.h>

struct sample {
    _Atomic int64_t at_ns; /* INT64_MIN: nothing yet */
    _Atomic uint64_t bits; /* of a double */
};

struct metric {
    struct rc rc;
    enum metric_type type;
    struct str *values; /* one per label; their bytes are in the same block */

    _Atomic uint64_t sum_bits; /* a double: value of a counter or gauge, sum of the others */
    _Atomic uint64_t count;    /* of a summary */

    /* Of a histogram. Here as well, because the series may outlive its family. */
    const double *bounds;
    uint32_t bound_count;
    _Atomic uint64_t *buckets; /* bound_count + 1, the last for +Inf; not cumulative */

    const struct clock *clock; /* of a summary */
    _Atomic uint64_t sample_next;
    struct sample *samples; /* a ring */
};

struct metric_family {
    struct metrics *registry;
    struct metric_desc desc;
    uint32_t label_count;
    VEC(struct metric *) series; /* sorted by label values; each holds a reference */
    struct metric *sink;         /* what the series beyond series_max share; NULL until needed */
};

struct collector {
    metrics_collect_fn *fn;
    void *ctx;
};

struct metrics {
    const struct clock *clock;
    pthread_mutex_t collect_lock; /* guards collectors; held while they run, before `lock` */
    VEC(struct collector) collectors;
    pthread_mutex_t lock; /* guards families and their series; no other lock is taken inside */
    VEC(struct metric_family *) families; /* sorted by name */
    struct metric_family *overflow;
};

static const double quantiles[] = { 0, 0.5, 0.9, 0.99, 1 };

const double metric_duration_buckets[] = {
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7,
    0.8,   0.9,  1,     1.25, 1.5, 1.75, 2,   2.5,  3,   3.5,  4,   4.5,  5,   6,   7,
    8,     9,    10,    15,   20,  25,   30,  40,   50,  60,   120, 150,  300, 450, 600,
};
const uint32_t metric_duration_bucket_count = KV_COUNT_OF(metric_duration_buckets);

void metric_exponential_buckets(double first, double factor, uint32_t count, double *out)
{
    for (uint32_t i = 0; i < count; i++) {
        out[i] = first;
        first *= factor;
    }
}

/* --- series --- */

static double double_of(uint64_t bits)
{
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static uint64_t bits_of(double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static double load_double(const _Atomic uint64_t *bits)
{
    return double_of(atomic_load_explicit(bits, memory_order_relaxed));
}

static void add_double(_Atomic uint64_t *bits, double v)
{
    uint64_t old = atomic_load_explicit(bits, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(bits, &old, bits_of(double_of(old) + v),
                                                  memory_order_relaxed, memory_order_relaxed)) {
    }
}

void metric_inc(struct metric *metric)
{
    metric_add(metric, 1);
}

void metric_add(struct metric *metric, double v)
{
    KV_ASSERT(metric->type == METRIC_GAUGE || metric->type == METRIC_COUNTER);
    KV_ASSERT(metric->type == METRIC_GAUGE || v >= 0);
    add_double(&metric->sum_bits, v);
}

void metric_set(struct metric *metric, double v)
{
    KV_ASSERT(metric->type == METRIC_GAUGE);
    atomic_store_explicit(&metric->sum_bits, bits_of(v), memory_order_relaxed);
}

/* The first bucket whose bound is not below v; NaN is below nothing and lands in +Inf. */
static uint32_t bucket_of(const struct metric *metric, double v)
{
    uint32_t low = 0, high = metric->bound_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (v <= metric->bounds[middle])
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void keep_sample(struct metric *metric, double v)
{
    uint64_t n = atomic_fetch_add_explicit(&metric->sample_next, 1, memory_order_relaxed);
    struct sample *slot = &metric->samples[n % METRIC_SUMMARY_SAMPLES];
    atomic_store_explicit(&slot->bits, bits_of(v), memory_order_relaxed);
    atomic_store_explicit(&slot->at_ns, clock_mono_ns(metric->clock), memory_order_relaxed);
}

void metric_observe(struct metric *metric, double v)
{
    KV_ASSERT(metric->type == METRIC_HISTOGRAM || metric->type == METRIC_SUMMARY);
    if (metric->type == METRIC_HISTOGRAM) {
        atomic_fetch_add_explicit(&metric->buckets[bucket_of(metric, v)], 1, memory_order_relaxed);
    } else {
        atomic_fetch_add_explicit(&metric->count, 1, memory_order_relaxed);
        if (!isnan(v)) /* has no place in an order */
            keep_sample(metric, v);
    }
    add_double(&metric->sum_bits, v);
}

static struct metric *series_new(const struct metric_family *family, const struct str *values)
{
    struct metric *metric = kv_calloc(1, sizeof *metric);
    size_t bytes = 0;
    for (uint32_t i = 0; i < family->label_count; i++)
        bytes += values[i].len;
    metric->values = kv_malloc(family->label_count * sizeof *metric->values + bytes);
    char *text = (char *)(metric->values + family->label_count);
    for (uint32_t i = 0; i < family->label_count; i++) {
        if (values[i].len)
            memcpy(text, values[i].p, values[i].len);
        metric->values[i] = (struct str){ text, values[i].len };
        text += values[i].len;
    }

    rc_init(&metric->rc);
    metric->type = family->desc.type;
    if (metric->type == METRIC_HISTOGRAM) {
        metric->bounds = family->desc.buckets;
        metric->bound_count = family->desc.bucket_count;
        metric->buckets = kv_calloc((size_t)metric->bound_count + 1, sizeof *metric->buckets);
    } else if (metric->type == METRIC_SUMMARY) {
        metric->clock = family->registry->clock;
        metric->samples = kv_calloc(METRIC_SUMMARY_SAMPLES, sizeof *metric->samples);
        for (uint32_t i = 0; i < METRIC_SUMMARY_SAMPLES; i++)
            atomic_init(&metric->samples[i].at_ns, INT64_MIN);
    }
    return metric;
}

static struct metric *series_ref(struct metric *metric)
{
    rc_ref(&metric->rc);
    return metric;
}

void metric_unref(struct metric *metric)
{
    if (!metric || !rc_unref(&metric->rc))
        return;
    free(metric->values);
    free(metric->buckets);
    free(metric->samples);
    free(metric);
}

/* --- the registry --- */

static const char *const overflow_labels[] = { "metric", NULL };

struct metrics *metrics_new(const struct clock *clock)
{
    struct metrics *m = kv_calloc(1, sizeof *m);
    m->clock = clock;
    pthread_mutex_init(&m->collect_lock, NULL);
    pthread_mutex_init(&m->lock, NULL);
    m->overflow =
        metrics_family(m, &(struct metric_desc){
                              .name = "metrics_overflow_total",
                              .help = "Requests for a series beyond the limit of its metric.",
                              .type = METRIC_COUNTER,
                              .labels = overflow_labels,
                              .series_max = UINT32_MAX, /* one per family */
                          });
    return m;
}

void metrics_free(struct metrics *m)
{
    if (!m)
        return;
    vec_each(&m->families, struct metric_family *, it) {
        struct metric_family *family = *it;
        vec_each(&family->series, struct metric *, series)
            metric_unref(*series);
        vec_done(&family->series);
        metric_unref(family->sink);
        free(family);
    }
    vec_done(&m->families);
    vec_done(&m->collectors);
    pthread_mutex_destroy(&m->lock);
    pthread_mutex_destroy(&m->collect_lock);
    free(m);
}

static bool is_name(const char *name, bool colons)
{
    for (const char *c = name; *c; c++) {
        bool letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || *c == '_' ||
                      (colons && *c == ':');
        bool digit = *c >= '0' && *c <= '9';
        if (!letter && !(digit && c > name))
            return false;
    }
    return *name != '\0';
}

static void check_desc(const struct metric_desc *desc)
{
    KV_ASSERT(is_name(desc->name, true));
    for (const char *const *label = desc->labels; label && *label; label++) {
        KV_ASSERT(is_name(*label, false));
        KV_ASSERT(strncmp(*label, "__", 2) != 0); /* reserved */
        KV_ASSERT(desc->type != METRIC_HISTOGRAM || strcmp(*label, "le") != 0);
        KV_ASSERT(desc->type != METRIC_SUMMARY || strcmp(*label, "quantile") != 0);
    }
    for (uint32_t i = 0; i < desc->bucket_count; i++) {
        KV_ASSERT(isfinite(desc->buckets[i]));
        KV_ASSERT(i == 0 || desc->buckets[i - 1] < desc->buckets[i]);
    }
}

static uint32_t label_count_of(const struct metric_desc *desc)
{
    uint32_t n = 0;
    while (desc->labels && desc->labels[n])
        n++;
    KV_ASSERT(n <= METRIC_LABELS_MAX);
    return n;
}

/* Position of the first family not before `name`. */
static size_t family_position(const struct metrics *m, const char *name)
{
    size_t low = 0, high = m->families.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(m->families.items[middle]->desc.name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Open a gap in a sorted vec and fill it. */
#define vec_insert(v, at, ...)                                                                     \
    do {                                                                                           \
        vec_reserve(v, (v)->count + 1);                                                            \
        memmove((v)->items + (at) + 1, (v)->items + (at),                                          \
                ((v)->count - (at)) * sizeof *(v)->items);                                         \
        (v)->items[at] = (__VA_ARGS__);                                                            \
        (v)->count++;                                                                              \
    } while (0)

struct metric_family *metrics_family(struct metrics *m, const struct metric_desc *desc)
{
    check_desc(desc);
    pthread_mutex_lock(&m->lock);
    size_t at = family_position(m, desc->name);
    struct metric_family *family = at < m->families.count ? m->families.items[at] : NULL;
    if (family && strcmp(family->desc.name, desc->name) == 0) {
        KV_ASSERT(family->desc.type == desc->type);
        KV_ASSERT(family->label_count == label_count_of(desc));
        for (uint32_t i = 0; i < family->label_count; i++)
            KV_ASSERT(strcmp(family->desc.labels[i], desc->labels[i]) == 0);
    } else {
        family = kv_calloc(1, sizeof *family);
        family->registry = m;
        family->desc = *desc;
        family->label_count = label_count_of(desc);
        if (family->desc.series_max == 0)
            family->desc.series_max = METRIC_SERIES_MAX;
        vec_insert(&m->families, at, family);
    }
    pthread_mutex_unlock(&m->lock);
    return family;
}

static int compare_values(const struct metric_family *family, const struct str *a,
                          const struct str *b)
{
    for (uint32_t i = 0; i < family->label_count; i++) {
        int c = str_cmp(a[i], b[i]);
        if (c != 0)
            return c;
    }
    return 0;
}

/* Position of the first series not before `values`; whether it is that very one. */
static size_t series_position(const struct metric_family *family, const struct str *values,
                              bool *found)
{
    size_t low = 0, high = family->series.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_values(family, family->series.items[middle]->values, values) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *found = low < family->series.count &&
             compare_values(family, family->series.items[low]->values, values) == 0;
    return low;
}

/* Borrowed from the family. The registry is locked. */
static struct metric *find_or_add(struct metric_family *family, const struct str *values)
{
    bool found;
    size_t at = series_position(family, values, &found);
    if (found)
        return family->series.items[at];
    if (family->series.count < family->desc.series_max) {
        vec_insert(&family->series, at, series_new(family, values));
        return family->series.items[at];
    }
    struct str name = str_of(family->desc.name);
    KV_ASSERT(family->registry->overflow->label_count == 1);
    metric_inc(find_or_add(family->registry->overflow, &name));
    if (!family->sink)
        family->sink = series_new(family, values);
    return family->sink;
}

/* Label values with what is not UTF-8 replaced by U+FFFD, before they are compared: two values that
 * print alike must be one series, or the scrape is refused as a whole. */
static void clean_values(const struct metric_family *family, const struct str *values,
                         struct str *out, struct buf *text)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < family->label_count; i++)
        bytes += str_is_utf8(values[i]) ? 0 : 3 * values[i].len; /* U+FFFD has three bytes */
    if (bytes)
        buf_reserve(text, bytes); /* at once: `out` points into it */
    for (uint32_t i = 0; i < family->label_count; i++) {
        out[i] = values[i];
        if (str_is_utf8(values[i]))
            continue;
        size_t start = text->len;
        buf_add_utf8(text, values[i]);
        out[i] = (struct str){ text->p + start, text->len - start };
    }
}

struct metric *metric_get(struct metric_family *family, const struct str *values)
{
    struct str clean[METRIC_LABELS_MAX] = { 0 };
    AUTO_BUF text = { 0 };
    clean_values(family, values, clean, &text);

    pthread_mutex_lock(&family->registry->lock);
    struct metric *metric = series_ref(find_or_add(family, clean));
    pthread_mutex_unlock(&family->registry->lock);
    return metric;
}

bool metric_remove(struct metric_family *family, const struct str *values)
{
    struct str clean[METRIC_LABELS_MAX] = { 0 };
    AUTO_BUF text = { 0 };
    clean_values(family, values, clean, &text);

    bool found;
    pthread_mutex_lock(&family->registry->lock);
    size_t at = series_position(family, clean, &found);
    if (found) {
        metric_unref(family->series.items[at]);
        family->series.count--;
        memmove(family->series.items + at, family->series.items + at + 1,
                (family->series.count - at) * sizeof *family->series.items);
    }
    pthread_mutex_unlock(&family->registry->lock);
    return found;
}

static int label_position(const struct metric_family *family, const char *label)
{
    for (uint32_t i = 0; i < family->label_count; i++) {
        if (strcmp(family->desc.labels[i], label) == 0)
            return (int)i;
    }
    return -1;
}

/* The registry is locked. `maybe_label` NULL: all of them. */
static uint32_t remove_where(struct metric_family *family, const char *maybe_label,
                             struct str value)
{
    int position = maybe_label ? label_position(family, maybe_label) : -1;
    size_t kept = 0;
    if (maybe_label && position < 0)
        return 0;
    vec_each(&family->series, struct metric *, series) {
        if (!maybe_label || str_eq((*series)->values[position], value))
            metric_unref(*series);
        else
            family->series.items[kept++] = *series;
    }
    uint32_t removed = (uint32_t)(family->series.count - kept);
    family->series.count = kept;
    return removed;
}

uint32_t metric_family_remove(struct metric_family *family, const char *maybe_label,
                              struct str value)
{
    AUTO_BUF clean = { 0 };
    buf_add_utf8(&clean, value); /* as metric_get does */
    pthread_mutex_lock(&family->registry->lock);
    uint32_t removed = remove_where(family, maybe_label, buf_str(&clean));
    pthread_mutex_unlock(&family->registry->lock);
    return removed;
}

uint32_t metrics_remove_where(struct metrics *m, const char *label, struct str value)
{
    uint32_t removed = 0;
    AUTO_BUF clean = { 0 };
    buf_add_utf8(&clean, value);
    pthread_mutex_lock(&m->lock);
    vec_each(&m->families, struct metric_family *, it)
        removed += remove_where(*it, label, buf_str(&clean));
    pthread_mutex_unlock(&m->lock);
    return removed;
}

/* --- exposition --- */

static void add_escaped(struct buf *out, struct str s, bool quotes)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.p[i] == '\n')
            buf_addz(out, "\\n");
        else if (s.p[i] == '\\' || (quotes && s.p[i] == '"'))
            buf_addf(out, "\\%c", s.p[i]);
        else
            buf_addc(out, s.p[i]);
    }
}

/* name{labels, extra="bound"}; `extra` may be NULL. */
static void add_series_name(struct buf *out, const struct metric_family *family, const char *suffix,
                            const struct str *values, const char *extra, double bound)
{
    const char *separator = "{";
    buf_addf(out, "%s%s", family->desc.name, suffix);
    for (uint32_t i = 0; i < family->label_count; i++) {
        buf_addf(out, "%s%s=\"", separator, family->desc.labels[i]);
        add_escaped(out, values[i], true);
        buf_addc(out, '"');
        separator = ",";
    }
    if (extra) {
        buf_addf(out, "%s%s=\"", separator, extra);
        buf_add_double(out, bound);
        buf_addc(out, '"');
        separator = ",";
    }
    buf_addz(out, *separator == ',' ? "} " : " ");
}

static void add_sum_and_count(struct buf *out, const struct metric_family *family,
                              const struct metric *metric, uint64_t count)
{
    add_series_name(out, family, "_sum", metric->values, NULL, 0);
    buf_add_double(out, load_double(&metric->sum_bits));
    buf_addc(out, '\n');
    add_series_name(out, family, "_count", metric->values, NULL, 0);
    buf_addf(out, "%llu\n", (unsigned long long)count);
}

static void add_histogram(struct buf *out, const struct metric_family *family,
                          const struct metric *metric)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i <= metric->bound_count; i++) {
        double bound = i < metric->bound_count ? metric->bounds[i] : INFINITY;
        count += atomic_load_explicit(&metric->buckets[i], memory_order_relaxed);
        add_series_name(out, family, "_bucket", metric->values, "le", bound);
        buf_addf(out, "%llu\n", (unsigned long long)count);
    }
    add_sum_and_count(out, family, metric, count);
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The smallest sample that at least a share q of the samples do not exceed. */
static double quantile(const double *sorted, uint32_t count, double q)
{
    if (count == 0)
        return NAN;
    double share = q * count;
    uint32_t rank = (uint32_t)share;
    rank += rank < share; /* rounded up, without libm */
    return sorted[rank < 1 ? 0 : rank - 1];
}

static void add_summary(struct buf *out, const struct metric_family *family,
                        const struct metric *metric)
{
    double recent[METRIC_SUMMARY_SAMPLES];
    uint32_t count = 0;
    int64_t now_ns = clock_mono_ns(metric->clock);
    for (uint32_t i = 0; i < METRIC_SUMMARY_SAMPLES; i++) {
        const struct sample *s = &metric->samples[i];
        int64_t at_ns = atomic_load_explicit(&s->at_ns, memory_order_relaxed);
        if (at_ns != INT64_MIN && now_ns - at_ns < METRIC_SUMMARY_WINDOW_NS)
            recent[count++] = load_double(&s->bits);
    }
    qsort(recent, count, sizeof recent[0], compare_doubles);

    for (size_t i = 0; i < KV_COUNT_OF(quantiles); i++) {
        add_series_name(out, family, "", metric->values, "quantile", quantiles[i]);
        buf_add_double(out, quantile(recent, count, quantiles[i]));
        buf_addc(out, '\n');
    }
    add_sum_and_count(out, family, metric,
                      atomic_load_explicit(&metric->count, memory_order_relaxed));
}

static void add_series(struct buf *out, const struct metric_family *family,
                       const struct metric *metric)
{
    switch (metric->type) {
    case METRIC_COUNTER:
    case METRIC_GAUGE:
        add_series_name(out, family, "", metric->values, NULL, 0);
        buf_add_double(out, load_double(&metric->sum_bits));
        buf_addc(out, '\n');
        return;
    case METRIC_HISTOGRAM:
        add_histogram(out, family, metric);
        return;
    case METRIC_SUMMARY:
        add_summary(out, family, metric);
        return;
    }
    KV_UNREACHABLE();
}

void metrics_on_collect(struct metrics *m, metrics_collect_fn *fn, void *ctx)
{
    pthread_mutex_lock(&m->collect_lock);
    vec_push(&m->collectors, (struct collector){ fn, ctx });
    pthread_mutex_unlock(&m->collect_lock);
}

void metrics_on_collect_remove(struct metrics *m, metrics_collect_fn *fn, void *ctx)
{
    pthread_mutex_lock(&m->collect_lock);
    size_t kept = 0;
    vec_each(&m->collectors, struct collector, it) {
        if (it->fn != fn || it->ctx != ctx)
            m->collectors.items[kept++] = *it;
    }
    m->collectors.count = kept;
    pthread_mutex_unlock(&m->collect_lock);
}

static void collect(struct metrics *m)
{
    pthread_mutex_lock(&m->collect_lock);
    vec_each(&m->collectors, struct collector, it)
        it->fn(it->ctx);
    pthread_mutex_unlock(&m->collect_lock);
}

void metrics_write(struct metrics *m, struct buf *out)
{
    static const char *const type_names[] = { "counter", "gauge", "histogram", "summary" };
    collect(m);
    pthread_mutex_lock(&m->lock);
    vec_each(&m->families, struct metric_family *, it) {
        const struct metric_family *family = *it;
        if (family->series.count == 0)
            continue;
        buf_addf(out, "# HELP %s ", family->desc.name);
        add_escaped(out, str_of(family->desc.help), false);
        buf_addf(out, "\n# TYPE %s %s\n", family->desc.name, type_names[family->desc.type]);
        vec_each(&family->series, struct metric *, series)
            add_series(out, family, *series);
    }
    pthread_mutex_unlock(&m->lock);
}

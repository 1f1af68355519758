#include "base/metrics.h"

#include "support/test.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define MINUTE_NS ((int64_t)60 * 1000000000)

static const char *const pool_label[] = { "pool", NULL };
static const char *const pool_zone_labels[] = { "pool", "zone", NULL };

static struct str exposition(struct metrics *m, struct buf *out)
{
    buf_clear(out);
    metrics_write(m, out);
    return buf_str(out);
}

TEST(metrics_of_each_type_are_exposed_as_prometheus_text)
{
    static const double buckets[] = { 0.25, 1, 2592000 };
    AUTO(metrics) m = metrics_new(clock_real());
    AUTO_BUF out = { 0 };
    AUTO(metric) counter = metric_get(
        metrics_family(m, &(struct metric_desc){ .name = "b_total", .help = "B\\C\nD \"E\"." }),
        NULL);
    AUTO(metric) gauge = metric_get(
        metrics_family(m, &(struct metric_desc){ .name = "a", .help = "A.", .type = METRIC_GAUGE }),
        NULL);
    AUTO(metric) histogram =
        metric_get(metrics_family(m, &(struct metric_desc){ .name = "c_seconds",
                                                            .help = "C.",
                                                            .type = METRIC_HISTOGRAM,
                                                            .buckets = buckets,
                                                            .bucket_count = 3 }),
                   NULL);
    metric_inc(counter);
    metric_add(counter, 0.5);
    metric_set(gauge, -3);
    metric_add(gauge, 0.1);
    metric_observe(histogram, 0.25); /* a bound belongs to its bucket */
    metric_observe(histogram, 0.26);
    metric_observe(histogram, 1e9);
    EXPECT_STR(exposition(m, &out), "# HELP a A.\n"
                                    "# TYPE a gauge\n"
                                    "a -2.9\n"
                                    "# HELP b_total B\\\\C\\nD \"E\".\n"
                                    "# TYPE b_total counter\n"
                                    "b_total 1.5\n"
                                    "# HELP c_seconds C.\n"
                                    "# TYPE c_seconds histogram\n"
                                    "c_seconds_bucket{le=\"0.25\"} 1\n"
                                    "c_seconds_bucket{le=\"1\"} 2\n"
                                    "c_seconds_bucket{le=\"2.592e+06\"} 2\n"
                                    "c_seconds_bucket{le=\"+Inf\"} 3\n"
                                    "c_seconds_sum 1.00000000051e+09\n"
                                    "c_seconds_count 3\n");
}

TEST(metrics_special_values_print_as_prometheus_spells_them)
{
    AUTO(metrics) m = metrics_new(clock_real());
    AUTO_BUF out = { 0 };
    AUTO(metric) gauge = metric_get(
        metrics_family(m, &(struct metric_desc){ .name = "g", .help = "", .type = METRIC_GAUGE }),
        NULL);
    metric_set(gauge, -INFINITY);
    EXPECT_STR(exposition(m, &out), "# HELP g \n# TYPE g gauge\ng -Inf\n");
    metric_set(gauge, NAN);
    EXPECT_STR(exposition(m, &out), "# HELP g \n# TYPE g gauge\ng NaN\n");
    metric_set(gauge, 1e6);
    EXPECT_STR(exposition(m, &out), "# HELP g \n# TYPE g gauge\ng 1e+06\n");
}

TEST(metrics_label_values_are_escaped)
{
    AUTO(metrics) m = metrics_new(clock_real());
    AUTO_BUF out = { 0 };
    struct metric_family *f =
        metrics_family(m, &(struct metric_desc){ .name = "x", .help = "X.", .labels = pool_label });
    struct str value = STR("a\"b\\c\nd\xc3\xa9");
    metric_unref(metric_get(f, &value));
    EXPECT_HAS(exposition(m, &out), "x{pool=\"a\\\"b\\\\c\\nd\xc3\xa9\"} 0\n");
}

TEST(metrics_label_values_that_are_not_utf8_are_mended_and_share_a_series)
{
    AUTO(metrics) m = metrics_new(clock_real());
    AUTO_BUF out = { 0 };
    struct metric_family *f = metrics_family(
        m, &(struct metric_desc){ .name = "x", .help = "X.", .labels = pool_zone_labels });
    struct str first[] = { STR("a\xff\xffz"), STR("\xc3") };
    struct str second[] = { STR("a\xfe\xfez"), STR("\x80") };
    AUTO(metric) a = metric_get(f, first);
    AUTO(metric) b = metric_get(f, second);
    EXPECT_TRUE(a == b);
    EXPECT_HAS(exposition(m, &out),
               "x{pool=\"a\xef\xbf\xbd\xef\xbf\xbdz\",zone=\"\xef\xbf\xbd\"} 0\n");
    EXPECT_TRUE(metric_remove(f, first));
    metric_unref(metric_get(f, first));
    EXPECT_EQ(metrics_remove_where(m, "pool", second[0]), 1);
}

TEST(metrics_series_are_sorted_by_label_values_whatever_the_order_of_creation)
{
    static const char *const names[] = { "b", "a", "ab", "", "c" };
    AUTO_BUF forward = { 0 };
    AUTO_BUF backward = { 0 };
    for (int round = 0; round < 2; round++) {
        AUTO(metrics) m = metrics_new(clock_real());
        struct metric_family *f = metrics_family(
            m, &(struct metric_desc){ .name = "x", .help = "X.", .labels = pool_zone_labels });
        for (size_t i = 0; i < 25; i++) {
            size_t n = round ? 24 - i : i;
            struct str values[] = { str_of(names[n % 5]), str_of(names[n / 5]) };
            metric_unref(metric_get(f, values));
        }
        exposition(m, round ? &backward : &forward);
    }
    EXPECT_STR(buf_str(&forward), backward.p);
    EXPECT_HAS(buf_str(&forward), "x{pool=\"\",zone=\"c\"} 0\nx{pool=\"a\",zone=\"\"} 0\n"
                                  "x{pool=\"a\",zone=\"a\"} 0\nx{pool=\"a\",zone=\"ab\"} 0\n");
}

TEST(metrics_getting_a_series_twice_gives_the_same_one)
{
    AUTO(metrics) m = metrics_new(clock_real());
    struct metric_desc desc = { .name = "x_total", .help = "X.", .labels = pool_zone_labels };
    struct str one[] = { STR("a"), STR("bc") }, two[] = { STR("ab"), STR("c") };
    AUTO(metric) a = metric_get(metrics_family(m, &desc), one);
    AUTO(metric) b = metric_get(metrics_family(m, &desc), one);
    AUTO(metric) c = metric_get(metrics_family(m, &desc), two);
    EXPECT_TRUE(a == b);
    EXPECT_TRUE(a != c);
}

TEST(metrics_of_a_deleted_pool_go_from_every_family)
{
    AUTO(metrics) m = metrics_new(clock_real());
    AUTO_BUF out = { 0 };
    struct metric_family *x =
        metrics_family(m, &(struct metric_desc){ .name = "x", .help = "X.", .labels = pool_label });
    struct metric_family *y = metrics_family(
        m, &(struct metric_desc){ .name = "y", .help = "Y.", .labels = pool_zone_labels });
    static const char *const pools[] = { "a", "b" }, *const zones[] = { "1", "2", "3" };
    for (size_t p = 0; p < 2; p++) {
        struct str pool = str_of(pools[p]);
        metric_unref(metric_get(x, &pool));
        for (size_t z = 0; z < 3; z++) {
            struct str values[] = { pool, str_of(zones[z]) };
            metric_unref(metric_get(y, values));
        }
    }
    EXPECT_EQ(metrics_remove_where(m, "pool", STR("a")), 4);
    EXPECT_EQ(metrics_remove_where(m, "pool", STR("a")), 0);
    EXPECT_EQ(metrics_remove_where(m, "nodepool", STR("b")), 0);
    EXPECT_STR(exposition(m, &out), "# HELP x X.\n# TYPE x counter\nx{pool=\"b\"} 0\n"
                                    "# HELP y Y.\n# TYPE y counter\ny{pool=\"b\",zone=\"1\"} 0\n"
                                    "y{pool=\"b\",zone=\"2\"} 0\ny{pool=\"b\",zone=\"3\"} 0\n");
    struct str gone[] = { STR("b"), STR("2") };
    EXPECT_TRUE(metric_remove(y, gone));
    EXPECT_FALSE(metric_remove(y, gone));
    EXPECT_EQ(metric_family_remove(y, "zone", STR("1")), 1);
    EXPECT_EQ(metric_family_remove(y, "other", STR("1")), 0);
    EXPECT_EQ(metric_family_remove(y, NULL, STR("")), 1);
    EXPECT_EQ(metric_family_remove(x, NULL, STR("")), 1);
}

TEST(metrics_a_removed_series_can_still_be_used_and_starts_anew_when_asked_for_again)
{
    AUTO(metrics) m = metrics_new(clock_real());
    AUTO_BUF out = { 0 };
    struct metric_family *x =
        metrics_family(m, &(struct metric_desc){ .name = "x", .help = "X.", .labels = pool_label });
    struct str pool = STR("a");
    AUTO(metric) old = metric_get(x, &pool);
    metric_inc(old);
    EXPECT_TRUE(metric_remove(x, &pool));
    metric_inc(old);
    EXPECT_STR(exposition(m, &out), "");
    AUTO(metric) new = metric_get(x, &pool);
    EXPECT_TRUE(old != new);
    EXPECT_HAS(exposition(m, &out), "x{pool=\"a\"} 0\n");
}

TEST(metrics_series_beyond_the_limit_are_counted_and_not_shown)
{
    AUTO(metrics) m = metrics_new(clock_real());
    AUTO_BUF out = { 0 };
    struct metric_family *x = metrics_family(
        m,
        &(struct metric_desc){ .name = "x", .help = "X.", .labels = pool_label, .series_max = 2 });
    static const char *const pools[] = { "a", "b", "c", "d", "a" };
    for (size_t i = 0; i < KV_COUNT_OF(pools); i++) {
        struct str pool = str_of(pools[i]);
        AUTO(metric) metric = metric_get(x, &pool);
        metric_inc(metric);
    }
    EXPECT_STR(
        exposition(m, &out),
        "# HELP metrics_overflow_total Requests for a series beyond the limit of its metric.\n"
        "# TYPE metrics_overflow_total counter\nmetrics_overflow_total{metric=\"x\"} 2\n"
        "# HELP x X.\n# TYPE x counter\nx{pool=\"a\"} 2\nx{pool=\"b\"} 1\n");

    struct str pool = STR("a"), other = STR("c");
    EXPECT_TRUE(metric_remove(x, &pool)); /* makes room */
    metric_unref(metric_get(x, &other));
    EXPECT_HAS(exposition(m, &out), "x{pool=\"c\"} 0\n");
}

TEST(metrics_histogram_puts_every_value_into_the_first_bucket_that_holds_it)
{
    enum { COUNT = 5 };
    static const double buckets[COUNT] = { -1, 0, 0.5, 10, 1e9 };
    static const double values[] = { -INFINITY, -1.5, -1,   -0.5, 0,   0.25,     0.5,
                                     7,         10,   10.1, 1e9,  2e9, INFINITY, NAN };
    AUTO(metrics) m = metrics_new(clock_real());
    AUTO_BUF out = { 0 };
    AUTO(metric) h = metric_get(metrics_family(m, &(struct metric_desc){ .name = "h",
                                                                         .help = "H.",
                                                                         .type = METRIC_HISTOGRAM,
                                                                         .buckets = buckets,
                                                                         .bucket_count = COUNT }),
                                NULL);
    for (size_t i = 0; i < KV_COUNT_OF(values); i++)
        metric_observe(h, values[i]);
    exposition(m, &out);
    for (size_t b = 0; b < COUNT; b++) {
        int held = 0;
        for (size_t i = 0; i < KV_COUNT_OF(values); i++)
            held += values[i] <= buckets[b];
        AUTO_BUF want = { 0 };
        buf_addz(&want, "h_bucket{le=\"");
        buf_add_double(&want, buckets[b]);
        buf_addf(&want, "\"} %d\n", held);
        EXPECT_HAS(buf_str(&out), want.p);
    }
    EXPECT_HAS(buf_str(&out), "h_bucket{le=\"+Inf\"} 14\nh_sum NaN\nh_count 14\n");
}

TEST(metrics_exponential_buckets_multiply)
{
    double buckets[12];
    metric_exponential_buckets(0.5, 2, 12, buckets);
    EXPECT_TRUE(buckets[0] == 0.5 && buckets[1] == 1 && buckets[11] == 1024);
    EXPECT_EQ(metric_duration_bucket_count, 45);
}

/* --- summaries --- */

static struct metric *summary_of(struct metrics *m)
{
    return metric_get(metrics_family(m, &(struct metric_desc){ .name = "s",
                                                               .help = "S.",
                                                               .type = METRIC_SUMMARY,
                                                               .labels = pool_label }),
                      &STR("a"));
}

#define SUMMARY(q0, q5, q9, q99, q1, sum, count)                                                   \
    "# HELP s S.\n# TYPE s summary\ns{pool=\"a\",quantile=\"0\"} " q0                              \
    "\ns{pool=\"a\",quantile=\"0.5\"} " q5 "\ns{pool=\"a\",quantile=\"0.9\"} " q9                  \
    "\ns{pool=\"a\",quantile=\"0.99\"} " q99 "\ns{pool=\"a\",quantile=\"1\"} " q1                  \
    "\ns_sum{pool=\"a\"} " sum "\ns_count{pool=\"a\"} " count "\n"

TEST(metrics_summary_gives_quantiles_of_what_was_observed)
{
    AUTO(metrics) m = metrics_new(clock_real());
    AUTO_BUF out = { 0 };
    AUTO(metric) s = summary_of(m);
    EXPECT_STR(exposition(m, &out), SUMMARY("NaN", "NaN", "NaN", "NaN", "NaN", "0", "0"));
    metric_observe(s, 7);
    EXPECT_STR(exposition(m, &out), SUMMARY("7", "7", "7", "7", "7", "7", "1"));
    for (int i = 100; i >= 1; i--)
        metric_observe(s, i == 7 ? 50 : i); /* 7 is there already */
    EXPECT_STR(exposition(m, &out), SUMMARY("1", "50", "90", "99", "100", "5100", "101"));
}

TEST(metrics_summary_forgets_after_ten_minutes_but_keeps_sum_and_count)
{
    AUTO(virtual_clock) clock = virtual_clock_new(0);
    AUTO(metrics) m = metrics_new(virtual_clock_port(clock));
    AUTO_BUF out = { 0 };
    AUTO(metric) s = summary_of(m);
    metric_observe(s, 100);
    virtual_clock_advance(clock, 5 * MINUTE_NS);
    metric_observe(s, 1);
    EXPECT_STR(exposition(m, &out), SUMMARY("1", "1", "100", "100", "100", "101", "2"));
    virtual_clock_advance(clock, 5 * MINUTE_NS);
    EXPECT_STR(exposition(m, &out), SUMMARY("1", "1", "1", "1", "1", "101", "2"));
    virtual_clock_advance(clock, 5 * MINUTE_NS);
    EXPECT_STR(exposition(m, &out), SUMMARY("NaN", "NaN", "NaN", "NaN", "NaN", "101", "2"));
}

TEST(metrics_summary_keeps_the_newest_samples)
{
    AUTO(metrics) m = metrics_new(clock_real());
    AUTO_BUF out = { 0 };
    AUTO(metric) s = summary_of(m);
    for (int i = 1; i <= METRIC_SUMMARY_SAMPLES + 500; i++)
        metric_observe(s, i);
    metric_observe(s, NAN);
    EXPECT_HAS(exposition(m, &out), "s{pool=\"a\",quantile=\"0\"} 501\n");
    EXPECT_HAS(buf_str(&out), "s{pool=\"a\",quantile=\"1\"} 1524\n");
    EXPECT_HAS(buf_str(&out), "s_count{pool=\"a\"} 1525\n");
}

/* --- our own mistakes --- */

static bool aborts(void (*fn)(struct metrics *))
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        close(STDERR_FILENO); /* says why it aborts */
        signal(SIGABRT, SIG_DFL);
        fn(metrics_new(clock_real()));
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void bad_name(struct metrics *m)
{
    metrics_family(m, &(struct metric_desc){ .name = "1st", .help = "" });
}
static void bad_name_character(struct metrics *m)
{
    metrics_family(m, &(struct metric_desc){ .name = "a-b", .help = "" });
}
static void empty_name(struct metrics *m)
{
    metrics_family(m, &(struct metric_desc){ .name = "", .help = "" });
}
static void bad_label(struct metrics *m)
{
    static const char *const labels[] = { "a:b", NULL };
    metrics_family(m, &(struct metric_desc){ .name = "x", .help = "", .labels = labels });
}
static void reserved_label(struct metrics *m)
{
    static const char *const labels[] = { "le", NULL };
    metrics_family(m, &(struct metric_desc){
                          .name = "x", .help = "", .type = METRIC_HISTOGRAM, .labels = labels });
}
static void descending_buckets(struct metrics *m)
{
    static const double buckets[] = { 2, 1 };
    metrics_family(m, &(struct metric_desc){ .name = "x",
                                             .help = "",
                                             .type = METRIC_HISTOGRAM,
                                             .buckets = buckets,
                                             .bucket_count = 2 });
}
static void two_types(struct metrics *m)
{
    metrics_family(m, &(struct metric_desc){ .name = "x", .help = "" });
    metrics_family(m, &(struct metric_desc){ .name = "x", .help = "", .type = METRIC_GAUGE });
}
static void counting_down(struct metrics *m)
{
    metric_add(
        metric_get(metrics_family(m, &(struct metric_desc){ .name = "x", .help = "" }), NULL), -1);
}
static void setting_a_counter(struct metrics *m)
{
    metric_set(
        metric_get(metrics_family(m, &(struct metric_desc){ .name = "x", .help = "" }), NULL), 1);
}

TEST(metrics_misuse_is_asserted)
{
    EXPECT_TRUE(aborts(bad_name));
    EXPECT_TRUE(aborts(bad_name_character));
    EXPECT_TRUE(aborts(empty_name));
    EXPECT_TRUE(aborts(bad_label));
    EXPECT_TRUE(aborts(reserved_label));
    EXPECT_TRUE(aborts(descending_buckets));
    EXPECT_TRUE(aborts(two_types));
    EXPECT_TRUE(aborts(counting_down));
    EXPECT_TRUE(aborts(setting_a_counter));
}

/* --- threads --- */

#define WRITERS 4
#define ROUNDS 20000

struct crowd {
    struct metrics *m;
    struct metric_family *counters, *histograms, *summaries;
};

static void *write_metrics(void *arg)
{
    struct crowd *c = arg;
    struct str all = STR("all"), passing = STR("passing");
    AUTO(metric) counter = metric_get(c->counters, &all);
    AUTO(metric) histogram = metric_get(c->histograms, &all);
    AUTO(metric) summary = metric_get(c->summaries, &all);
    for (int i = 0; i < ROUNDS; i++) {
        metric_inc(counter);
        metric_observe(histogram, i % 3);
        metric_observe(summary, i % 3);
        if (i % 200 == 0) { /* series come and go meanwhile */
            AUTO(metric) short_lived = metric_get(c->counters, &passing);
            metric_inc(short_lived);
            metrics_remove_where(c->m, "pool", passing);
            metric_inc(short_lived);
        }
    }
    return NULL;
}

TEST(metrics_lose_nothing_while_threads_write_and_a_scraper_reads)
{
    static const double buckets[] = { 0, 1 };
    AUTO(metrics) m = metrics_new(clock_real());
    struct crowd c = { .m = m };
    c.counters = metrics_family(
        m, &(struct metric_desc){ .name = "n_total", .help = "N.", .labels = pool_label });
    c.histograms = metrics_family(m, &(struct metric_desc){ .name = "h",
                                                            .help = "H.",
                                                            .type = METRIC_HISTOGRAM,
                                                            .labels = pool_label,
                                                            .buckets = buckets,
                                                            .bucket_count = 2 });
    c.summaries = metrics_family(
        m, &(struct metric_desc){
               .name = "s", .help = "S.", .type = METRIC_SUMMARY, .labels = pool_label });
    pthread_t threads[WRITERS];
    for (int i = 0; i < WRITERS; i++)
        pthread_create(&threads[i], NULL, write_metrics, &c);
    AUTO_BUF out = { 0 };
    for (int i = 0; i < 50; i++)
        exposition(m, &out);
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);

    exposition(m, &out);
    EXPECT_HAS(buf_str(&out), "n_total{pool=\"all\"} 80000\n");
    EXPECT_HAS(buf_str(&out), "h_bucket{pool=\"all\",le=\"0\"} 26668\n");
    EXPECT_HAS(buf_str(&out), "h_count{pool=\"all\"} 80000\n");
    EXPECT_HAS(buf_str(&out), "s_count{pool=\"all\"} 80000\n");
    EXPECT_HAS(buf_str(&out), "s{pool=\"all\",quantile=\"0.5\"} 1\n");
}

/* --- numbers that are kept elsewhere --- */

struct elsewhere {
    struct metric_family *family;
    int count;
};

static void copy_count(void *ctx)
{
    struct elsewhere *e = ctx;
    AUTO(metric) gauge = metric_get(e->family, NULL); /* looking up inside is allowed */
    metric_set(gauge, e->count);
}

TEST(metrics_collectors_run_before_each_exposition_until_they_are_removed)
{
    AUTO(metrics) m = metrics_new(clock_real());
    AUTO_BUF out = { 0 };
    struct elsewhere a = { .count = 1 }, b = { .count = 10 };
    a.family =
        metrics_family(m, &(struct metric_desc){ .name = "a", .help = "", .type = METRIC_GAUGE });
    b.family =
        metrics_family(m, &(struct metric_desc){ .name = "b", .help = "", .type = METRIC_GAUGE });
    metrics_on_collect(m, copy_count, &a);
    metrics_on_collect(m, copy_count, &b);
    EXPECT_STR(exposition(m, &out), "# HELP a \n# TYPE a gauge\na 1\n"
                                    "# HELP b \n# TYPE b gauge\nb 10\n");
    a.count = 2, b.count = 20;
    metrics_on_collect_remove(m, copy_count, &b);
    EXPECT_STR(exposition(m, &out), "# HELP a \n# TYPE a gauge\na 2\n"
                                    "# HELP b \n# TYPE b gauge\nb 10\n");
}

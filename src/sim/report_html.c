/* The page of a run: what it came to, then plots of one width below each other, with the actions of
 * the timeline as numbered lines through all of them, then the list of what happened. */
#include "api/common.h"
#include "codec/duration.h"
#include "sim/report_page.h"

#include <inttypes.h>

#define COLUMNS_MAX 720 /* as many as a wide screen tells apart */
#define COARSE_MAX 96   /* for what is counted per stretch of time */
#define TYPES_SHOWN 7   /* the rest are "others" */
#define POOLS_SHOWN 24
#define EVENTS_OPEN 200 /* those after are folded away */
#define EVENTS_SHOWN 2000
#define MARKS_PLAIN 40 /* more are drawn faintly, and their list is folded away */
#define LANES_MAX 8
#define LANE_PX 22
#define BADGE_WIDTH (PLOT_WIDTH * 7 / 100) /* on a phone */

struct page {
    const struct run_report *report;
    const struct record *record;
    struct arena arena;
    struct plot_frame fine, coarse;
    struct buf *out;
    struct buf data; /* JSON: the plots again, for the pointer */
    uint32_t plot_count;
};

/* --- columns --- */

/* The samples of a column; the last of them is how things are from its start on. */
static void column_samples(const struct page *g, const struct plot_frame *frame, uint32_t column,
                           size_t *first, size_t *end)
{
    size_t samples = g->record->samples.count;
    *first = column * samples / frame->column_count;
    *end = (column + 1) * samples / frame->column_count;
}

static struct plot_frame frame_of(struct page *g, uint32_t columns_max)
{
    size_t samples = g->record->samples.count;
    uint32_t columns = samples < columns_max ? (uint32_t)samples : columns_max;
    struct plot_frame frame = { .start_us = g->report->start_us,
                                .duration_ns = g->report->duration_ns,
                                .column_count = columns };
    int64_t *starts = arena_array(&g->arena, int64_t, columns);
    for (uint32_t i = 0; i < columns; i++) {
        size_t first, end;
        column_samples(g, &frame, i, &first, &end);
        starts[i] = g->record->samples.items[first].at_ns;
    }
    frame.columns_ns = starts;
    return frame;
}

typedef double sample_value_fn(const struct record_sample *s);

/* The largest of a column: a short peak must not fall between two of them. */
static double *peaks(struct page *g, sample_value_fn *value)
{
    double *values = arena_array(&g->arena, double, g->fine.column_count);
    for (uint32_t i = 0; i < g->fine.column_count; i++) {
        size_t first, end;
        column_samples(g, &g->fine, i, &first, &end);
        for (size_t s = first; s < end; s++) {
            double v = value(&g->record->samples.items[s]);
            values[i] = v > values[i] ? v : values[i];
        }
    }
    return values;
}

/* How much a counter grew in a coarse column: since the end of the one before. */
static double *growth(struct page *g, sample_value_fn *value)
{
    double *values = arena_array(&g->arena, double, g->coarse.column_count);
    double before = 0;
    for (uint32_t i = 0; i < g->coarse.column_count; i++) {
        size_t first, end;
        column_samples(g, &g->coarse, i, &first, &end);
        double now = value(&g->record->samples.items[end - 1]);
        values[i] = now > before ? now - before : 0;
        before = now;
    }
    return values;
}

static double pending_of(const struct record_sample *s)
{
    return s->pods_pending;
}
static double starting_of(const struct record_sample *s)
{
    return s->pods_starting;
}
static double running_of(const struct record_sample *s)
{
    return s->pods_running;
}
static double dollars_hour_of(const struct record_sample *s)
{
    return s->dollars_hour;
}
static double dollars_of(const struct record_sample *s)
{
    return s->dollars;
}
static double launches_of(const struct record_sample *s)
{
    return (double)s->launches;
}
static double failures_of(const struct record_sample *s)
{
    return (double)s->launch_failures;
}
static double hits_of(const struct record_sample *s)
{
    return (double)s->cache_hits;
}
static double misses_of(const struct record_sample *s)
{
    return (double)s->cache_misses;
}

/* --- plots --- */

/* Inside a script element nothing may look like its end. */
static void add_data_text(struct page *g, struct str s)
{
    AUTO_BUF quoted = { 0 };
    buf_add_quoted(&quoted, s);
    for (size_t i = 0; i < quoted.len; i++) {
        if (quoted.p[i] == '<')
            buf_addz(&g->data, "\\u003c");
        else
            buf_addc(&g->data, quoted.p[i]);
    }
}

static void add_plot_data(struct page *g, const struct plot_frame *frame, const struct plot *plot)
{
    static const char *const units[] = {
        [UNIT_COUNT] = "count", [UNIT_DOLLARS] = "dollars", [UNIT_PERCENT] = "percent"
    };
    buf_addf(&g->data, "%s{\"id\":\"%s\",\"frame\":%d,\"unit\":\"%s\",\"series\":[",
             g->plot_count++ ? ",\n" : "", plot->id, frame == &g->coarse, units[plot->unit]);
    for (uint32_t s = 0; s < plot->series_count; s++) {
        buf_addz(&g->data, s ? ",{\"name\":" : "{\"name\":");
        add_data_text(g, plot->series[s].name);
        buf_addf(&g->data, ",\"colour\":\"%s\",\"values\":[", plot->series[s].colour);
        for (uint32_t i = 0; i < frame->column_count; i++) {
            double v = plot->series[s].values[i];
            if (i)
                buf_addc(&g->data, ',');
            buf_add_double(&g->data, v < 0 ? -1 : (double)(int64_t)(v * 100 + 0.5) / 100);
        }
        buf_addz(&g->data, "]}");
    }
    buf_addz(&g->data, "]}");
}

static void add_plot(struct page *g, const struct plot_frame *frame, struct plot plot)
{
    plot_write(frame, &plot, g->out);
    add_plot_data(g, frame, &plot);
}

static void add_pods(struct page *g)
{
    struct plot_series series[] = {
        { STR("running"), "running", peaks(g, running_of) },
        { STR("starting"), "starting", peaks(g, starting_of) },
        { STR("pending"), "pending", peaks(g, pending_of) },
    };
    add_plot(g, &g->fine,
             (struct plot){ .id = "pods",
                            .title = "Pods",
                            .height_px = 170,
                            .series = series,
                            .series_count = KV_COUNT_OF(series) });
}

struct type_peak {
    uint32_t type, peak;
};

static int by_peak(const void *va, const void *vb)
{
    const struct type_peak *a = va, *b = vb;
    if (a->peak != b->peak)
        return a->peak > b->peak ? -1 : 1;
    return a->type < b->type ? -1 : 1;
}

static double *type_values(struct page *g, const struct type_peak *types, uint32_t count)
{
    double *values = arena_array(&g->arena, double, g->fine.column_count);
    for (uint32_t i = 0; i < g->fine.column_count; i++) {
        size_t first, end;
        column_samples(g, &g->fine, i, &first, &end);
        const struct record_sample *s = &g->record->samples.items[end - 1];
        for (uint32_t t = 0; t < count; t++)
            values[i] += types[t].type < s->type_count ? s->types[types[t].type] : 0;
    }
    return values;
}

static void add_nodes(struct page *g)
{
    static const char *const colours[TYPES_SHOWN] = { "type0", "type1", "type2", "type3",
                                                      "type4", "type5", "type6" };
    uint32_t count = (uint32_t)g->record->types.count;
    struct type_peak *types = arena_array(&g->arena, struct type_peak, count);
    for (uint32_t i = 0; i < count; i++)
        types[i] = (struct type_peak){ i, record_type_peak(g->record, i) };
    if (count)
        qsort(types, count, sizeof *types, by_peak);
    struct plot_series series[TYPES_SHOWN + 1];
    uint32_t shown = count < TYPES_SHOWN ? count : TYPES_SHOWN;
    for (uint32_t i = 0; i < shown; i++)
        series[i] = (struct plot_series){ g->record->types.items[types[i].type], colours[i],
                                          type_values(g, types + i, 1) };
    if (count > shown)
        series[shown] =
            (struct plot_series){ arena_strf(&g->arena, "%u others", count - shown), "others",
                                  type_values(g, types + shown, count - shown) };
    add_plot(g, &g->fine,
             (struct plot){ .id = "nodes",
                            .title = "Nodes by instance type",
                            .stacked = true,
                            .height_px = 170,
                            .series = series,
                            .series_count = shown + (count > shown) });
}

static void add_costs(struct page *g)
{
    struct plot_series hour = { STR("an hour"), "cost", peaks(g, dollars_hour_of) };
    struct plot_series total = { STR("in total"), "total", peaks(g, dollars_of) };
    struct plot plot = { .id = "cost",
                         .title = "Cost per hour",
                         .unit = UNIT_DOLLARS,
                         .height_px = 120,
                         .series = &hour,
                         .series_count = 1 };
    add_plot(g, &g->fine, plot);
    plot.id = "spent";
    plot.title = "Spent so far";
    plot.series = &total;
    plot.height_px = 90;
    add_plot(g, &g->fine, plot);
}

static void add_launches(struct page *g)
{
    struct plot_series series[] = {
        { STR("launched"), "launched", growth(g, launches_of) },
        { STR("failed or refused"), "failed", growth(g, failures_of) },
    };
    add_plot(g, &g->coarse,
             (struct plot){ .id = "launches",
                            .title = "Launches",
                            .stacked = true,
                            .height_px = 100,
                            .series = series,
                            .series_count = KV_COUNT_OF(series) });
}

static void add_cache(struct page *g)
{
    const double *hits = growth(g, hits_of), *misses = growth(g, misses_of);
    double *rate = arena_array(&g->arena, double, g->coarse.column_count);
    for (uint32_t i = 0; i < g->coarse.column_count; i++) {
        double asked = hits[i] + misses[i];
        rate[i] = asked > 0 ? hits[i] / asked * 100 : PLOT_GAP;
    }
    struct plot_series series = { STR("answered from the cache"), "cache", rate };
    add_plot(g, &g->coarse,
             (struct plot){ .id = "cache",
                            .title = "Instance types answered from the cache",
                            .unit = UNIT_PERCENT,
                            .height_px = 80,
                            .series = &series,
                            .series_count = 1 });
}

/* --- health --- */

static uint8_t health_at(const struct record *r, size_t sample, uint32_t pool)
{
    const struct record_sample *s = &r->samples.items[sample];
    return pool < s->pool_count ? s->pools[pool].health : (uint8_t)CONDITION_UNSET;
}

static const char *health_class(uint8_t health)
{
    return health == CONDITION_TRUE ? "good" : health == CONDITION_FALSE ? "bad" : "unknown";
}

static void add_band(struct page *g, uint32_t pool)
{
    const struct record *r = g->record;
    size_t count = r->samples.count;
    AUTO_BUF rects = { 0 }, words = { 0 };
    for (size_t from = 0, to; from < count; from = to) {
        uint8_t health = health_at(r, from, pool);
        for (to = from + 1; to < count && health_at(r, to, pool) == health;)
            to++;
        if (health == CONDITION_UNSET)
            continue;
        int64_t from_ns = r->samples.items[from].at_ns;
        int64_t to_ns = to < count ? r->samples.items[to].at_ns : g->report->duration_ns;
        uint32_t x = plot_x(&g->fine, from_ns), end = plot_x(&g->fine, to_ns);
        buf_addf(&rects, "<rect class=\"h-%s\" x=\"%u\" width=\"%u\" height=\"%u\"/>",
                 health_class(health), x, end - x, PLOT_HEIGHT);
        buf_addf(&words, "%s%s from ", words.len ? ", " : "", health_word(health));
        clock_text(g->report->start_us + from_ns / 1000, false, &words);
    }
    buf_addz(g->out, "<div class=\"band\"><span>");
    html_text(r->pools.items[pool], g->out);
    buf_addf(g->out,
             "</span><svg viewBox=\"0 0 %u %u\" preserveAspectRatio=\"none\" role=\"img\" "
             "aria-label=\"NodeRegistrationHealthy of ",
             PLOT_WIDTH, PLOT_HEIGHT);
    html_text(r->pools.items[pool], g->out);
    buf_addf(g->out, ": %s\">", words.len ? words.p : "not there");
    buf_add(g->out, buf_str(&rects));
    plot_write_marks(&g->fine, g->out);
    buf_addz(g->out, "</svg></div>");
}

static void add_health(struct page *g)
{
    size_t pools = g->record->pools.count;
    buf_addz(g->out, "<figure class=\"plot\" id=\"plot-health\"><figcaption>"
                     "<h2>Do the nodes of each NodePool join?</h2><ul class=\"key\">"
                     "<li><i class=\"h-good\"></i>yes</li><li><i class=\"h-bad\"></i>no</li>"
                     "<li><i class=\"h-unknown\"></i>not known yet</li></ul></figcaption>"
                     "<div class=\"bands\">");
    for (uint32_t i = 0; i < pools && i < POOLS_SHOWN; i++)
        add_band(g, i);
    if (pools > POOLS_SHOWN)
        buf_addf(g->out, "<p class=\"soft\">and %zu other NodePools</p>", pools - POOLS_SHOWN);
    buf_addz(g->out, "<div class=\"cross\" hidden></div></div>");
    plot_write_times(&g->fine, g->out);
    buf_addz(g->out, "</figure>\n");
}

/* --- marks --- */

static void find_marks(struct page *g)
{
    const struct record *r = g->record;
    int64_t *marks = arena_array(&g->arena, int64_t, r->events.count);
    uint32_t count = 0;
    vec_each(&r->events, struct record_event, e) {
        if (e->kind == RECORD_ACTION)
            marks[count++] = e->at_ns;
    }
    g->fine.marks_ns = g->coarse.marks_ns = marks;
    g->fine.mark_count = g->coarse.mark_count = count;
}

struct badge {
    uint32_t x, lane, number, folded; /* folded: actions after it for which there was no room */
};

static void add_badge(const struct badge *b, struct buf *out)
{
    buf_addf(out, "<a href=\"#action-%u\" style=\"left:%.2f%%;top:%upx\"", b->number,
             b->x / (PLOT_WIDTH / 100.0), b->lane * LANE_PX);
    if (b->folded)
        buf_addf(out, " title=\"actions %u to %u\">%u+%u</a>", b->number, b->number + b->folded,
                 b->number, b->folded);
    else
        buf_addf(out, ">%u</a>", b->number);
}

/* Badges in lanes, so that none covers another. One that finds no lane free is counted on the badge
 * before it. */
static void add_badges(struct page *g)
{
    uint32_t free_from[LANES_MAX] = { 0 }, lanes = 0;
    struct badge last = { 0 };
    AUTO_BUF badges = { 0 };
    for (uint32_t i = 0; i < g->fine.mark_count; i++) {
        uint32_t x = plot_x(&g->fine, g->fine.marks_ns[i]), lane = 0;
        while (lane < LANES_MAX && x < free_from[lane])
            lane++;
        if (lane == LANES_MAX) {
            last.folded++;
            continue;
        }
        if (last.number)
            add_badge(&last, &badges);
        last = (struct badge){ .x = x, .lane = lane, .number = i + 1 };
        free_from[lane] = x + BADGE_WIDTH;
        lanes = lane + 1 > lanes ? lane + 1 : lanes;
    }
    if (!last.number)
        return;
    add_badge(&last, &badges);
    buf_addf(g->out, "<div class=\"badges\" style=\"height:%upx\" aria-label=\"Actions\">",
             lanes * LANE_PX);
    buf_add(g->out, buf_str(&badges));
    buf_addz(g->out, "</div>\n");
}

static void add_time(struct page *g, int64_t at_ns)
{
    bool days = g->report->duration_ns >= 24 * DURATION_HOUR;
    int64_t us = g->report->start_us + at_ns / 1000;
    buf_addz(g->out, "<time>");
    if (days)
        buf_addf(g->out, "day %" PRId64 " ",
                 us / 86400000000 - g->report->start_us / 86400000000 + 1);
    clock_text(us, true, g->out);
    buf_addz(g->out, "</time> ");
}

static void add_legend(struct page *g)
{
    uint32_t number = 0;
    if (!g->fine.mark_count)
        return;
    bool many = g->fine.mark_count > MARKS_PLAIN;
    if (many)
        buf_addf(g->out, "<details><summary>%u actions</summary>", g->fine.mark_count);
    buf_addz(g->out, "<ol class=\"legend\">");
    vec_each(&g->record->events, struct record_event, e) {
        if (e->kind != RECORD_ACTION)
            continue;
        buf_addf(g->out, "<li id=\"action-%u\"><b>%u</b>", number + 1, number + 1);
        number++;
        add_time(g, e->at_ns);
        buf_addz(g->out, "<span>");
        html_text(e->what, g->out);
        buf_addz(g->out, "</span></li>\n");
    }
    buf_addz(g->out, many ? "</ol></details>\n" : "</ol>\n");
}

/* --- head and events --- */

static void add_tile(struct page *g, bool alarm, const char *what, const char *fmt, ...)
    KV_PRINTF(4, 5);
static void add_tile(struct page *g, bool alarm, const char *what, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    buf_addf(g->out, "<li class=\"tile%s\"><b>", alarm ? " alarm" : "");
    buf_vaddf(g->out, fmt, args);
    buf_addf(g->out, "</b><span>%s</span></li>", what);
    va_end(args);
}

static void add_number(struct page *g, bool alarm, const char *what, double v, enum plot_unit unit)
{
    AUTO_BUF text = { 0 };
    value_text(v, unit, &text);
    add_tile(g, alarm, what, "%s", text.p);
}

static double peak_of(const struct record *r, sample_value_fn *value)
{
    double peak = 0;
    vec_each(&r->samples, struct record_sample, s)
        peak = value(s) > peak ? value(s) : peak;
    return peak;
}

static double nodes_of(const struct record_sample *s)
{
    return s->nodes;
}

static void add_tiles(struct page *g)
{
    const struct record *r = g->record;
    const struct record_sample *end = record_last(r);
    char p50[DURATION_TEXT_MAX], p99[DURATION_TEXT_MAX];
    duration_format_short(record_wait_ns(r, 0.5), p50);
    duration_format_short(record_wait_ns(r, 0.99), p99);
    buf_addz(g->out, "<ul class=\"tiles\">");
    add_number(g, false, "pods bound", (double)r->totals.pods_bound, UNIT_COUNT);
    add_tile(g, false, "wait, median", "%s", p50);
    add_tile(g, false, "wait, 99%", "%s", p99);
    add_number(g, end && end->pods_pending, "still pending", end ? end->pods_pending : 0,
               UNIT_COUNT);
    add_number(g, false, "nodes at most", peak_of(r, nodes_of), UNIT_COUNT);
    add_number(g, false, "launches", (double)r->totals.launches, UNIT_COUNT);
    add_number(g, false, "failed or refused",
               (double)(r->totals.launch_failures + r->totals.refusals), UNIT_COUNT);
    add_number(g, false, "spent", end ? end->dollars : 0, UNIT_DOLLARS);
    if (r->totals.crashes)
        add_number(g, false, "crashes", r->totals.crashes, UNIT_COUNT);
    buf_addz(g->out, "</ul>\n");
}

static void add_head(struct page *g)
{
    const struct run_report *report = g->report;
    char length[DURATION_TEXT_MAX], start[TIME_TEXT_MAX];
    duration_format_short(report->duration_ns, length);
    time_format(report->start_us, start);
    buf_addz(g->out, "<header><p class=\"brand\">karve simulate</p><h1>");
    html_text(report->name, g->out);
    buf_addz(g->out, "</h1>");
    if (report->about.len) {
        buf_addz(g->out, "<p class=\"about\">");
        html_text(report->about, g->out);
        buf_addz(g->out, "</p>");
    }
    buf_addf(g->out, "<p class=\"soft\">%s from %.10s %.5s UTC, seed %" PRIu64 "</p></header>\n",
             length, start, start + 11, report->seed);
    if (report->maybe_finding) {
        buf_addf(g->out, "<p class=\"finding\"><b>Invariant %u is broken at step %u:</b> ",
                 report->maybe_finding->rule, report->maybe_finding->step);
        html_text(report->maybe_finding->what, g->out);
        buf_addz(g->out, "</p>\n");
    }
}

static void add_event(struct page *g, const struct record_event *e)
{
    buf_addf(g->out, "<li class=\"e-%s%s\">", record_kind_names[e->kind],
             e->warning ? " warning" : "");
    add_time(g, e->at_ns);
    buf_addf(g->out, "<em>%s</em><span><bdi>", record_kind_names[e->kind]);
    html_text(e->what, g->out);
    buf_addz(g->out, "</bdi>");
    if (e->count > 1)
        buf_addf(g->out, " <b>\xc3\x97%u</b>", e->count);
    buf_addz(g->out, "</span></li>\n");
}

static void add_events(struct page *g)
{
    const struct record *r = g->record;
    size_t shown = r->events.count < EVENTS_SHOWN ? r->events.count : EVENTS_SHOWN;
    buf_addz(g->out, "<section><h2>What happened</h2><ul class=\"events\">\n");
    for (size_t i = 0; i < shown && i < EVENTS_OPEN; i++)
        add_event(g, &r->events.items[i]);
    buf_addz(g->out, "</ul>");
    if (shown > EVENTS_OPEN) {
        buf_addf(g->out, "<details><summary>%zu more</summary><ul class=\"events\">\n",
                 r->events.count - EVENTS_OPEN);
        for (size_t i = EVENTS_OPEN; i < shown; i++)
            add_event(g, &r->events.items[i]);
        buf_addz(g->out, "</ul>");
        if (shown < r->events.count)
            buf_addf(g->out, "<p class=\"soft\">and %zu after these</p>", r->events.count - shown);
        buf_addz(g->out, "</details>");
    }
    if (!r->events.count)
        buf_addz(g->out, "<p class=\"soft\">Nothing.</p>");
    buf_addz(g->out, "</section>\n");
}

/* --- the page --- */

static void add_frame_data(struct page *g, const struct plot_frame *frame)
{
    for (uint32_t i = 0; i < frame->column_count; i++)
        buf_addf(g->out, "%s%" PRId64, i ? "," : "", frame->columns_ns[i] / 1000000);
}

static void add_data(struct page *g)
{
    buf_addf(g->out,
             "<script type=\"application/json\" id=\"data\">{\"startMs\":%" PRId64
             ",\"durationMs\":%" PRId64 ",\"frames\":[[",
             g->report->start_us / 1000, g->report->duration_ns / 1000000);
    add_frame_data(g, &g->fine);
    buf_addz(g->out, "],[");
    add_frame_data(g, &g->coarse);
    buf_addz(g->out, "]],\"plots\":[\n");
    buf_add(g->out, buf_str(&g->data));
    buf_addz(g->out, "]}</script>\n");
}

static void add_plots(struct page *g)
{
    buf_addf(g->out, "<section class=\"plots%s\">\n",
             g->fine.mark_count > MARKS_PLAIN ? " many" : "");
    if (!g->record->samples.count) {
        buf_addz(g->out, "<p class=\"soft\">There are no samples to draw.</p></section>\n");
        return;
    }
    add_badges(g);
    add_pods(g);
    add_nodes(g);
    add_costs(g);
    add_health(g);
    add_launches(g);
    add_cache(g);
    buf_addz(g->out, "</section>\n");
}

static const char before_style[] =
    "<!DOCTYPE html>\n"
    "<html lang=\"en\">\n"
    "<head>\n"
    "<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
    "style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n"
    "<link rel=\"icon\" href=\"data:,\">\n"
    "<title>";

void report_html(const struct run_report *report, struct buf *out)
{
    struct page g = { .report = report, .record = report->record, .out = out };
    g.fine = frame_of(&g, COLUMNS_MAX);
    g.coarse = frame_of(&g, COARSE_MAX);
    find_marks(&g);
    buf_addz(out, before_style);
    html_text(report->name, out);
    buf_addz(out, " - karve simulate</title>\n<style>\n");
    buf_addz(out, report_page_css);
    buf_addz(out, "</style>\n</head>\n<body>\n<main>\n");
    add_head(&g);
    add_tiles(&g);
    add_legend(&g);
    add_plots(&g);
    add_events(&g);
    buf_addz(out, "</main>\n<div id=\"tip\" role=\"status\" hidden></div>\n");
    add_data(&g);
    buf_addz(out, "<script>\n");
    buf_addz(out, report_page_js);
    buf_addz(out, "</script>\n</body>\n</html>\n");
    buf_done(&g.data);
    arena_done(&g.arena);
}

/* What `karve simulate` tells people: the timeline, the table at the end, progress. */
#include "cmd/simulate_inner.h"

#include "api/common.h"
#include "cmd/table.h"
#include "codec/duration.h"
#include "sim/report_page.h"

#include <inttypes.h>

#define PROGRESS_EVERY_NS (DURATION_SECOND / 10)
#define WARNINGS_SHOWN 12

/* --- the timeline --- */

static const char *tint_of(const struct record_event *e)
{
    switch (e->kind) {
    case RECORD_ACTION:
        return "\033[1;35m";
    case RECORD_CRASH:
        return "\033[31m";
    case RECORD_HEALTH:
        return e->warning ? "\033[31m" : "\033[32m";
    case RECORD_EVENT:
        return e->warning ? "\033[33m" : "";
    }
    KV_UNREACHABLE();
}

void timeline_line(const struct record_event *e, int64_t start_us, bool colour, struct buf *out)
{
    int64_t us = start_us + e->at_ns / 1000, day = us / 86400000000 - start_us / 86400000000;
    const char *tint = colour ? tint_of(e) : "";
    if (day > 0)
        buf_addf(out, "+%" PRId64 "d ", day);
    clock_text(us, true, out);
    buf_addf(out, "  %-6s  %s%.*s%s", record_kind_names[e->kind], tint, STR_ARG(e->what),
             *tint ? "\033[0m" : "");
    if (e->count > 1)
        buf_addf(out, " (%u times)", e->count);
    buf_addc(out, '\n');
}

/* --- the table --- */

struct page {
    const struct record *r;
    const struct record_sample *end;
    bool colour;
    struct buf *out;
};

static void label(struct page *g, const char *what)
{
    buf_addf(g->out, "%s%-9s%s ", g->colour ? "\033[1m" : "", what, g->colour ? "\033[0m" : "");
}

static void number(struct page *g, uint64_t n, const char *what)
{
    value_text((double)n, UNIT_COUNT, g->out);
    buf_addz(g->out, what);
}

static void money(struct page *g, double dollars, const char *what)
{
    buf_addf(g->out, "$%.2f%s", dollars, what);
}

static void time_of(struct page *g, int64_t ns, const char *what)
{
    char text[DURATION_TEXT_MAX];
    duration_format_short(ns, text);
    buf_addf(g->out, "%s%s", text, what);
}

static void add_pods(struct page *g)
{
    const struct record_sample *end = g->end;
    label(g, "pods");
    number(g, end->pods_running, " running, ");
    number(g, end->pods_starting, " starting, ");
    number(g, end->pods_pending, " pending, ");
    number(g, end->pods_ended, " ended; ");
    number(g, g->r->totals.pods_bound, " were bound\n");
    label(g, "wait");
    if (!g->r->waits_ns.count) {
        buf_addz(g->out, "no pod was bound\n");
        return;
    }
    buf_addz(g->out, "half of them ");
    time_of(g, record_wait_ns(g->r, 0.5), " or less, 99% ");
    time_of(g, record_wait_ns(g->r, 0.99), " or less, the longest ");
    time_of(g, record_wait_ns(g->r, 1), "\n");
}

static void add_nodes(struct page *g)
{
    const struct record_totals *t = &g->r->totals;
    uint32_t peak = 0;
    vec_each(&g->r->samples, struct record_sample, s)
        peak = s->nodes > peak ? s->nodes : peak;
    label(g, "nodes");
    number(g, g->end->nodes, ", ");
    number(g, g->end->nodes_ready, " of them ready; at most ");
    number(g, peak, "\n");
    label(g, "launches");
    number(g, t->launches, "; ");
    number(g, t->refusals, " refused for want of capacity, ");
    number(g, t->launch_failures, " failed, ");
    number(g, t->lost, " never joined, ");
    number(g, t->terminated, " ended\n");
}

static void add_cost(struct page *g)
{
    double peak = 0;
    vec_each(&g->r->samples, struct record_sample, s)
        peak = s->dollars_hour > peak ? s->dollars_hour : peak;
    label(g, "cost");
    money(g, g->end->dollars, " spent; ");
    money(g, g->end->dollars_hour, " an hour at the end, ");
    money(g, peak, " at most\n");
}

static void add_control(struct page *g)
{
    const struct record_totals *t = &g->r->totals;
    uint64_t asked = g->end->cache_hits + g->end->cache_misses;
    label(g, "control");
    number(g, t->passes, " passes, ");
    number(g, t->claims_created, " NodeClaims, ");
    number(g, t->reconciles, " reconciles (");
    number(g, t->reconcile_failures, " failed), ");
    number(g, t->crashes, t->crashes == 1 ? " crash\n" : " crashes\n");
    label(g, "cache");
    number(g, asked, " questions, ");
    buf_addf(g->out, "%.1f%% answered from it\n",
             asked ? (double)g->end->cache_hits / (double)asked * 100 : (double)0);
}

static void add_pools(struct page *g)
{
    static const char *const headings[] = { "NODEPOOL", "NODES", "CLAIMS", "NODES JOIN" };
    static const char *const words[] = {
        [CONDITION_UNSET] = "(deleted)",
        [CONDITION_TRUE] = "yes",
        [CONDITION_FALSE] = "no",
        [CONDITION_UNKNOWN] = "not known",
    };
    struct table table;
    if (!g->end->pool_count)
        return;
    table_init(&table, headings, KV_COUNT_OF(headings));
    for (uint32_t i = 0; i < g->end->pool_count; i++) {
        const struct record_pool *pool = &g->end->pools[i];
        table_add(&table, g->r->pools.items[i]);
        table_addf(&table, "%u", pool->nodes);
        table_addf(&table, "%u", pool->claims);
        table_addf(&table, "%s", words[pool->health]);
    }
    buf_addc(g->out, '\n');
    table_print(&table, g->out, g->colour);
    table_done(&table);
}

static int by_count(const void *va, const void *vb)
{
    const struct record_reason *a = va, *b = vb;
    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    return str_cmp(a->reason, b->reason);
}

static void add_warnings(struct page *g)
{
    static const char *const headings[] = { "WARNING", "TIMES" };
    AUTO_ARENA arena = { 0 };
    struct table table;
    size_t count = g->r->reasons.count;
    if (!count)
        return;
    struct record_reason *reasons = arena_array(&arena, struct record_reason, count);
    memcpy(reasons, g->r->reasons.items, count * sizeof *reasons);
    qsort(reasons, count, sizeof *reasons, by_count);
    table_init(&table, headings, KV_COUNT_OF(headings));
    for (size_t i = 0; i < count && i < WARNINGS_SHOWN; i++) {
        AUTO_BUF times = { 0 };
        value_text((double)reasons[i].count, UNIT_COUNT, &times);
        table_add(&table, reasons[i].reason);
        table_add(&table, buf_str(&times));
    }
    buf_addc(g->out, '\n');
    table_print(&table, g->out, g->colour);
    table_done(&table);
    if (count > WARNINGS_SHOWN)
        buf_addf(g->out, "and %zu other kinds\n", count - WARNINGS_SHOWN);
}

void simulate_table(const struct run_report *report, int64_t took_ns, bool colour, struct buf *out)
{
    static const struct record_sample nothing;
    const struct record *r = report->record;
    struct page g = { r, record_last(r) ? record_last(r) : &nothing, colour, out };
    buf_addf(out, "%s%.*s%s, seed %" PRIu64 ", %u steps\n\n", colour ? "\033[1m" : "",
             STR_ARG(report->name), colour ? "\033[0m" : "", report->seed, r->totals.steps);
    add_pods(&g);
    add_nodes(&g);
    add_cost(&g);
    add_control(&g);
    add_pools(&g);
    add_warnings(&g);
    buf_addc(out, '\n');
    time_of(&g, report->duration_ns, " of virtual time in ");
    time_of(&g, took_ns, "\n");
}

/* --- progress --- */

bool progress_due(const struct progress_line *p)
{
    return p->on && clock_mono_ns(clock_real()) - p->drawn_ns >= PROGRESS_EVERY_NS;
}

void progress_draw(struct progress_line *p, const char *fmt, ...)
{
    va_list args;
    if (!p->on)
        return;
    AUTO_BUF line = { 0 };
    va_start(args, fmt);
    buf_vaddf(&line, fmt, args);
    va_end(args);
    /* Cut rather than wrapped: a line that wraps cannot be drawn over. */
    fprintf(stderr, "\r\033[?7l%s\033[K\033[?7h", line.p);
    fflush(stderr);
    p->drawn = true;
    p->drawn_ns = clock_mono_ns(clock_real());
}

void progress_clear(struct progress_line *p)
{
    if (!p->drawn)
        return;
    fputs("\r\033[K", stderr);
    fflush(stderr);
    p->drawn = false;
    p->drawn_ns = 0;
}

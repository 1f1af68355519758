/* A plan for people: launches with how full they will be, what goes to nodes that are there, what it
 * costs, and what could not be placed.
 *
 * Launches that are alike in everything that is shown are one row, "3x", so that its columns add up
 * to the totals below: forty nodes of a large Deployment are a few lines. If there are too many rows
 * all the same, those of one offering are one. -o wide has a row for each launch, with its pods by
 * name.
 */
#include "cmd/plan_inner.h"
#include "cmd/table.h"

#include <inttypes.h>
#include <math.h>

#define BAR_CELLS 10
#define WORKLOADS_SHOWN 4
#define ROWS_MAX 60     /* of launches; with more, only offerings are told apart */
#define NODES_SHOWN 20  /* unless wide */
#define MISSES_SHOWN 40 /* groups, unless wide */

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* --- bars --- */

static void add_blocks(struct buf *out, uint32_t percent)
{
    static const char *const eighths[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
    uint32_t filled = (percent < 100 ? percent : 100) * BAR_CELLS * 8 / 100;
    uint32_t cells = filled / 8 + (filled % 8 != 0);
    for (uint32_t i = 0; i < filled / 8; i++)
        buf_addz(out, "█");
    buf_addz(out, eighths[filled % 8]);
    buf_addf(out, "%*s", (int)(BAR_CELLS - cells), "");
}

static void add_hashes(struct buf *out, uint32_t percent)
{
    uint32_t filled = (percent < 100 ? percent : 100) * BAR_CELLS / 100;
    for (uint32_t i = 0; i < BAR_CELLS; i++)
        buf_addc(out, i < filled ? '#' : '.');
}

/* Of many nodes together, which thousandths of bytes would overflow. */
struct fullness {
    double requested, allocatable;
};

static void add_bar(struct table *t, struct plan_look look, struct fullness f, const char *colour)
{
    double share = f.allocatable > 0 ? f.requested / f.allocatable : 0;
    uint32_t percent = (uint32_t)(100 * (share < 9.99 ? share : 9.99) + 0.5);
    AUTO_BUF cell = { 0 };
    if (look.unicode) {
        buf_addf(&cell, "%s▕%s%s", paint(look, DIM), paint(look, PLAIN), paint(look, colour));
        add_blocks(&cell, percent);
        buf_addf(&cell, "%s%s▏%s", paint(look, PLAIN), paint(look, DIM), paint(look, PLAIN));
    } else {
        buf_addf(&cell, "[%s", paint(look, colour));
        add_hashes(&cell, percent);
        buf_addf(&cell, "%s]", paint(look, PLAIN));
    }
    buf_addf(&cell, " %3u%%", percent);
    table_add(t, buf_str(&cell));
}

/* --- launches --- */

enum fold { FOLD_NOTHING, FOLD_ALIKE, FOLD_OFFERING };

struct row {                          /* of launches that are shown as one */
    const struct plan_launch *launch; /* the first */
    uint32_t count;
    usd_hour price;
    struct fullness cpu, memory;
    struct plan_pods pods;
};

static void fold_key(const struct planning *p, const struct plan_launch *launch, enum fold fold,
                     struct arena *arena, struct buf *key)
{
    buf_addf(key, "%u %u %u", launch->pool, launch->type, launch->offering);
    if (fold == FOLD_OFFERING)
        return;
    struct workload_counts counts = workloads_among(p, launch->pods, arena);
    struct plan_use cpu = launch_use(p, launch, STR("cpu"));
    struct plan_use memory = launch_use(p, launch, STR("memory"));
    buf_addf(key, " %" PRId64 " %" PRId64, cpu.requested, memory.requested);
    for (uint32_t i = 0; i < counts.count; i++)
        buf_addf(key, " %u:%u", counts.items[i].workload, counts.items[i].count);
}

static void add_use(struct fullness *sum, struct plan_use use)
{
    sum->requested += (double)use.requested;
    sum->allocatable += (double)use.allocatable;
}

static void count_launch(const struct planning *p, struct row *row,
                         const struct plan_launch *launch)
{
    row->launch = row->launch ? row->launch : launch;
    row->count++;
    row->price = usd_hour_sum(row->price, launch->price);
    add_use(&row->cpu, launch_use(p, launch, STR("cpu")));
    add_use(&row->memory, launch_use(p, launch, STR("memory")));
}

static void gather_pods(const struct plan *plan, struct row *rows, uint32_t count,
                        const uint32_t *row_of_launch, struct arena *arena)
{
    uint32_t *pods = arena_array(arena, uint32_t, plan->order.count);
    uint32_t *row = arena_array(arena, uint32_t, plan->order.count);
    uint32_t pod_count = 0;
    for (uint32_t i = 0; i < plan->launch_count; i++) {
        for (uint32_t k = 0; k < plan->launches[i].pods.count; k++, pod_count++) {
            pods[pod_count] = plan->launches[i].pods.items[k];
            row[pod_count] = row_of_launch[i];
        }
    }
    const struct plan_pods *dealt = pods_dealt(arena, pods, row, pod_count, count);
    for (uint32_t r = 0; r < count; r++)
        rows[r].pods = dealt[r];
}

/* In the order of the plan, each where the first of its kind is. */
static struct row *rows_of(const struct planning *p, enum fold fold, struct arena *arena,
                           uint32_t *count)
{
    const struct plan *plan = p->plan;
    struct row *rows = arena_array(arena, struct row, plan->launch_count);
    uint32_t *row_of_launch = arena_array(arena, uint32_t, plan->launch_count);
    struct str_table found = { 0 };
    *count = 0;
    for (uint32_t i = 0; i < plan->launch_count; i++) {
        AUTO_ARENA scratch = { 0 };
        AUTO_BUF key = { 0 };
        fold_key(p, &plan->launches[i], fold, &scratch, &key);
        uintptr_t at = fold == FOLD_NOTHING ? 0 : (uintptr_t)str_table_get(&found, buf_str(&key));
        if (!at) {
            at = ++*count;
            str_table_put(&found, buf_str(&key), (void *)at);
        }
        row_of_launch[i] = (uint32_t)at - 1;
        count_launch(p, &rows[at - 1], &plan->launches[i]);
    }
    str_table_done(&found);
    gather_pods(plan, rows, *count, row_of_launch, arena);
    return rows;
}

static void add_workloads(struct table *t, const struct planning *p, struct plan_pods pods)
{
    AUTO_ARENA arena = { 0 };
    AUTO_BUF text = { 0 };
    workload_counts_format(p, workloads_among(p, pods, &arena), WORKLOADS_SHOWN, &text);
    table_add(t, buf_str(&text));
}

static void add_pods(struct table *t, const struct planning *p, struct plan_pods pods)
{
    AUTO_BUF text = { 0 };
    pods_format(p, pods, &text);
    table_add(t, buf_str(&text));
}

static void add_row(struct table *t, const struct planning *p, struct plan_look look,
                    const struct row *row, bool counted)
{
    AUTO_ARENA arena = { 0 };
    const struct plan_launch *launch = row->launch;
    bool spot = str_eqz(launch_capacity_type(p, launch), CAPACITY_SPOT);
    if (counted)
        table_addf(t, "%3ux", row->count);
    table_add(t, launch_pool(p, launch));
    table_add(t, launch_type(p, launch));
    table_add(t, launch_zone(p, launch));
    table_addf(t, "%s%.*s%s", spot ? paint(look, YELLOW) : "",
               STR_ARG(launch_capacity_type(p, launch)), spot ? paint(look, PLAIN) : "");
    table_add(t, price_text(&arena, row->price));
    add_bar(t, look, row->cpu, GREEN);
    add_bar(t, look, row->memory, CYAN);
    if (look.wide)
        table_addf(t, "%u", launch->type_count);
    table_addf(t, "%u", row->pods.count);
    if (look.wide)
        add_pods(t, p, row->pods);
    else
        add_workloads(t, p, row->pods);
}

static void print_launches(const struct planning *p, struct plan_look look, struct buf *out)
{
    AUTO_ARENA arena = { 0 };
    uint32_t count;
    struct row *rows = rows_of(p, look.wide ? FOLD_NOTHING : FOLD_ALIKE, &arena, &count);
    bool many = !look.wide && count > ROWS_MAX;
    if (many)
        rows = rows_of(p, FOLD_OFFERING, &arena, &count);
    bool counted = count < p->plan->launch_count;
    const char *headings[11];
    size_t columns = 0;
    if (counted)
        headings[columns++] = "NODES";
    headings[columns++] = "NODEPOOL";
    headings[columns++] = "TYPE";
    headings[columns++] = "ZONE";
    headings[columns++] = "CAPACITY";
    headings[columns++] = "$/HOUR";
    headings[columns++] = "CPU";
    headings[columns++] = "MEMORY";
    if (look.wide)
        headings[columns++] = "TYPES";
    headings[columns++] = "PODS";
    headings[columns++] = look.wide ? "POD NAMES" : "WORKLOADS";

    struct table t;
    table_init(&t, headings, columns);
    for (uint32_t i = 0; i < count; i++)
        add_row(&t, p, look, &rows[i], counted);
    table_print(&t, out, look.colour);
    table_done(&t);
    if (many)
        buf_addz(out, "nodes of one type and zone are one row; -o wide shows each\n");
}

/* --- nodes that are there --- */

static void print_existing(const struct planning *p, struct plan_look look, struct buf *out)
{
    const char *const headings[] = { "EXISTING", "STATE", "PODS",
                                     look.wide ? "POD NAMES" : "WORKLOADS" };
    const struct plan *plan = p->plan;
    uint32_t shown = plan->existing_count, pods_left = 0;
    struct table t;
    if (!look.wide && shown > NODES_SHOWN)
        shown = NODES_SHOWN;
    table_init(&t, headings, KV_COUNT_OF(headings));
    for (uint32_t i = 0; i < plan->existing_count; i++) {
        const struct plan_existing *e = &plan->existing[i];
        if (i >= shown) {
            pods_left += e->pods.count;
            continue;
        }
        table_add(&t, existing_name(p, e));
        table_add(&t, e->node != PLAN_NONE ? STR("node") : STR("on its way"));
        table_addf(&t, "%u", e->pods.count);
        if (look.wide)
            add_pods(&t, p, e->pods);
        else
            add_workloads(&t, p, e->pods);
    }
    table_print(&t, out, look.colour);
    table_done(&t);
    if (pods_left)
        buf_addf(out, "and %u more with %u pod%s (-o wide lists them)\n",
                 plan->existing_count - shown, pods_left, plural(pods_left));
}

/* --- what it comes to --- */

static uint32_t pods_on_existing(const struct plan *plan)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < plan->existing_count; i++)
        count += plan->existing[i].pods.count;
    return count;
}

static void print_heading(const struct planning *p, struct plan_look look, struct buf *out)
{
    const struct plan *plan = p->plan;
    uint32_t existing = pods_on_existing(plan), launched = plan->order.count - existing;
    const char *separator = "";
    buf_addz(out, paint(look, BOLD));
    if (launched || !existing) {
        buf_addf(out, "%u pod%s on %u new node%s", launched, plural(launched), plan->launch_count,
                 plural(plan->launch_count));
        separator = ", ";
    }
    if (existing)
        buf_addf(out, "%s%u pod%s on %u node%s that %s there", separator, existing,
                 plural(existing), plan->existing_count, plural(plan->existing_count),
                 plan->existing_count == 1 ? "is" : "are");
    if (plan->miss_count)
        buf_addf(out, ", %s%u %s nowhere", paint(look, RED), plan->miss_count,
                 plan->miss_count == 1 ? "goes" : "go");
    buf_addf(out, "%s\n", paint(look, PLAIN));
}

static void print_totals(const struct planning *p, struct plan_look look, struct buf *out)
{
    AUTO_ARENA arena = { 0 };
    const struct plan *plan = p->plan;
    struct str price = price_text(&arena, plan->price);
    struct str bound = price_text(&arena, plan->lower_bound);
    double distance = plan_distance(plan) * 100;
    buf_addf(out, "%stotal        $%.*s an hour, $", paint(look, BOLD), STR_ARG(price));
    dollars_format(usd_hour_double(plan->price) * HOURS_PER_MONTH, out);
    buf_addf(out, " a month%s\n", paint(look, PLAIN));
    buf_addf(out, "lower bound  $%.*s an hour; ", STR_ARG(bound));
    if (distance <= 0)
        buf_addz(out, "no plan costs less than this one\n");
    else if (isinf(distance))
        buf_addz(out, "none better is known\n");
    else
        buf_addf(out, "the plan is %s%.1f%% above it\n", distance < 0.05 ? "less than " : "",
                 distance < 0.05 ? 0.1 : distance);
}

static void print_misses(const struct planning *p, struct plan_look look, struct buf *out)
{
    AUTO_ARENA arena = { 0 };
    uint32_t count;
    struct miss_group *groups = misses_grouped(p, &arena, &count);
    uint32_t shown = look.wide || count <= MISSES_SHOWN ? count : MISSES_SHOWN;
    buf_addf(out, "\n%s%u pod%s cannot be placed:%s\n", paint(look, RED), p->plan->miss_count,
             plural(p->plan->miss_count), paint(look, PLAIN));
    for (uint32_t i = 0; i < shown; i++) {
        buf_addz(out, "  ");
        miss_group_name(p, &groups[i], out);
        buf_addf(out, ": %.*s\n", STR_ARG(groups[i].line));
    }
    if (shown < count)
        buf_addf(out, "  and %u more reasons (-o wide lists them)\n", count - shown);
    if (!p->explained_count && p->snapshot.pool_count)
        buf_addf(out, "%s  --explain POD says what each NodePool lacks%s\n", paint(look, DIM),
                 paint(look, PLAIN));
}

static void print_skips(const struct planning *p, struct buf *out)
{
    AUTO_ARENA arena = { 0 };
    uint32_t count;
    struct skip_count *counts = skips_counted(p, &arena, &count);
    buf_addf(out, "\n%u pod%s skipped: ", p->plan->skip_count, plural(p->plan->skip_count));
    for (uint32_t i = 0; i < count; i++)
        buf_addf(out, "%s%.*s %u", i ? ", " : "", STR_ARG(counts[i].reason), counts[i].count);
    buf_addc(out, '\n');
}

static void print_check(const struct planning *p, struct plan_look look, struct buf *out)
{
    const struct check_result *check = &p->check;
    if (!check->count) {
        buf_addf(out, "\n%splan checked: %u placement%s, all rules hold%s\n", paint(look, GREEN),
                 p->plan->order.count, plural(p->plan->order.count), paint(look, PLAIN));
        return;
    }
    buf_addf(out, "\n%splan checked: %u rule%s broken%s\n", paint(look, RED), check->count,
             check->count == 1 ? " is" : "s are", paint(look, PLAIN));
    for (uint32_t i = 0; i < check->count; i++)
        buf_addf(out, "  %.*s\n", STR_ARG(check->findings[i].what));
}

void plan_table(const struct planning *p, struct plan_look look, struct buf *out)
{
    print_heading(p, look, out);
    if (p->plan->launch_count) {
        buf_addc(out, '\n');
        print_launches(p, look, out);
    }
    if (p->plan->existing_count) {
        buf_addc(out, '\n');
        print_existing(p, look, out);
    }
    if (p->plan->launch_count) {
        buf_addc(out, '\n');
        print_totals(p, look, out);
    }
    if (p->plan->miss_count)
        print_misses(p, look, out);
    if (p->plan->skip_count)
        print_skips(p, out);
    if (p->checked)
        print_check(p, look, out);
    if (p->notes.count)
        buf_addc(out, '\n');
    vec_each(&p->notes, struct str, note)
        buf_addf(out, "%snote: %.*s%s\n", paint(look, DIM), STR_ARG(*note), paint(look, PLAIN));
}

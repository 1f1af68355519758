/* What every way of printing a plan asks: names behind indices, pods told by their workloads, misses
 * and skips counted. */
#include "cmd/plan_inner.h"

#include <inttypes.h>
#include <math.h>

/* --- launches and nodes --- */

static const struct instance_types *types_of(const struct planning *p,
                                             const struct plan_launch *launch)
{
    return p->snapshot.pools[launch->pool].types;
}

static const struct offering_shape *shape_of(const struct planning *p,
                                             const struct plan_launch *launch)
{
    const struct instance_types *types = types_of(p, launch);
    return &types->shapes[types->offering_shape[launch->offering]];
}

struct plan_use launch_use(const struct planning *p, const struct plan_launch *launch,
                           struct str resource)
{
    const struct resource_column *column = instance_types_resource(types_of(p, launch), resource);
    const struct resource *asked = NULL;
    for (uint32_t i = 0; i < launch->requests.count; i++) {
        if (str_eq(launch->requests.items[i].name, resource))
            asked = &launch->requests.items[i];
    }
    return (struct plan_use){
        .requested = asked ? milli_ceil(asked->amount) : 0,
        .allocatable = column ? column->allocatable[launch->row] : 0,
    };
}

struct str launch_type(const struct planning *p, const struct plan_launch *launch)
{
    return types_of(p, launch)->names[launch->type];
}

struct str launch_zone(const struct planning *p, const struct plan_launch *launch)
{
    return shape_of(p, launch)->zone;
}

struct str launch_capacity_type(const struct planning *p, const struct plan_launch *launch)
{
    return shape_of(p, launch)->capacity_type;
}

struct str launch_pool(const struct planning *p, const struct plan_launch *launch)
{
    return p->snapshot.pools[launch->pool].pool->object.meta.name;
}

struct str existing_name(const struct planning *p, const struct plan_existing *existing)
{
    return existing->node != PLAN_NONE ? p->snapshot.nodes[existing->node]->object.meta.name
                                       : p->snapshot.claims[existing->claim]->object.meta.name;
}

struct str blame_pool(const struct planning *p, const struct plan_blame *blame)
{
    return blame->pool == PLAN_NONE ? STR("")
                                    : p->snapshot.pools[blame->pool].pool->object.meta.name;
}

/* --- groups of pods --- */

const struct plan_pods *pods_dealt(struct arena *arena, const uint32_t *pods, const uint32_t *group,
                                   uint32_t count, uint32_t group_count)
{
    struct plan_pods *dealt = arena_array(arena, struct plan_pods, group_count);
    uint32_t *items = arena_array(arena, uint32_t, count);
    uint32_t *next = arena_array(arena, uint32_t, group_count);
    for (uint32_t i = 0; i < count; i++)
        dealt[group[i]].count++;
    for (uint32_t g = 0, start = 0; g < group_count; g++) {
        dealt[g].items = items + start;
        next[g] = start;
        start += dealt[g].count;
    }
    for (uint32_t i = 0; i < count; i++)
        items[next[group[i]]++] = pods[i];
    return dealt;
}

/* --- pods by workload --- */

static int by_workload(const void *va, const void *vb)
{
    uint32_t a = *(const uint32_t *)va, b = *(const uint32_t *)vb;
    return a < b ? -1 : a > b;
}

struct ranked {
    struct workload_count count;
    const struct plan_workload *workload;
};

static int by_rank(const void *va, const void *vb)
{
    const struct ranked *a = va, *b = vb;
    if (a->count.count != b->count.count)
        return a->count.count > b->count.count ? -1 : 1;
    int c = str_cmp(a->workload->name, b->workload->name);
    c = c ? c : str_cmp(a->workload->namespace_, b->workload->namespace_);
    return c ? c : str_cmp(a->workload->kind, b->workload->kind);
}

struct workload_counts workloads_among(const struct planning *p, struct plan_pods pods,
                                       struct arena *arena)
{
    uint32_t *whose = arena_array(arena, uint32_t, pods.count);
    for (uint32_t i = 0; i < pods.count; i++)
        whose[i] = p->pod_workloads[pods.items[i]];
    qsort(whose, pods.count, sizeof *whose, by_workload);

    struct ranked *ranked = arena_array(arena, struct ranked, pods.count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < pods.count; i++) {
        if (i == 0 || whose[i] != whose[i - 1])
            ranked[count++] = (struct ranked){ { whose[i], 0 }, &p->workloads[whose[i]] };
        ranked[count - 1].count.count++;
    }
    qsort(ranked, count, sizeof *ranked, by_rank);

    struct workload_count *items = arena_array(arena, struct workload_count, count);
    for (uint32_t i = 0; i < count; i++)
        items[i] = ranked[i].count;
    return (struct workload_counts){ items, count };
}

static void workload_format(const struct plan_workload *w, bool with_namespace, struct buf *out)
{
    if (with_namespace) {
        name_format(w->namespace_, out);
        buf_addc(out, '/');
    }
    name_format(w->name, out);
}

void workload_counts_format(const struct planning *p, struct workload_counts counts, uint32_t max,
                            struct buf *out)
{
    uint32_t shown = counts.count <= max + 1 ? counts.count : max; /* never "and 1 more" */
    for (uint32_t i = 0; i < shown; i++) {
        const struct workload_count *c = &counts.items[i];
        const struct plan_workload *w = &p->workloads[c->workload];
        buf_addz(out, i ? ", " : "");
        workload_format(w, w->has_namesake, out);
        if (c->count > 1)
            buf_addf(out, " x%u", c->count);
    }
    if (shown < counts.count)
        buf_addf(out, " and %u more", counts.count - shown);
}

/* --- pods by name, numbers that follow each other as ranges --- */

struct numbered {
    struct str stem; /* "shop/web-", or the whole name */
    int64_t number;  /* -1: none */
};

static struct numbered numbered_of(struct str name)
{
    size_t at = name.len;
    int64_t number;
    while (at > 0 && char_is_digit(name.p[at - 1]))
        at--;
    struct str digits = str_sub(name, at, name.len);
    bool plain = digits.len && (digits.p[0] != '0' || digits.len == 1);
    if (!plain || at == 0 || name.p[at - 1] != '-' || !str_to_i64(digits, &number))
        return (struct numbered){ name, -1 };
    return (struct numbered){ str_sub(name, 0, at), number };
}

static int by_number(const void *va, const void *vb)
{
    const struct numbered *a = va, *b = vb;
    int c = str_cmp(a->stem, b->stem);
    return c ? c : a->number < b->number ? -1 : a->number > b->number;
}

void pods_format(const struct planning *p, struct plan_pods pods, struct buf *out)
{
    struct numbered *names = kv_calloc(pods.count + 1, sizeof *names);
    for (uint32_t i = 0; i < pods.count; i++)
        names[i] = numbered_of(p->pod_names[pods.items[i]]);
    qsort(names, pods.count, sizeof *names, by_number);
    for (uint32_t i = 0, next; i < pods.count; i = next) {
        next = i + 1;
        while (next < pods.count && names[i].number >= 0 &&
               str_eq(names[next].stem, names[i].stem) &&
               names[next].number == names[next - 1].number + 1)
            next++;
        buf_addz(out, i ? ", " : "");
        buf_add(out, names[i].stem);
        if (names[i].number >= 0)
            buf_addf(out, "%" PRId64, names[i].number);
        if (next > i + 1)
            buf_addf(out, "..%" PRId64, names[next - 1].number);
    }
    free(names);
}

/* --- misses --- */

/* How far a pod came: a pool whose taints it does not bear was never meant for it, one that lacks
 * room nearly was its home. */
static uint32_t nearness(enum plan_reason reason)
{
    static const uint8_t rank[PLAN_REASON_COUNT] = {
        [REASON_NODEPOOL_NOT_READY] = 1,
        [REASON_TAINTS] = 2,
        [REASON_REQUIREMENTS] = 3,
        [REASON_VOLUME] = 4,
        [REASON_IMAGE] = 4,
        [REASON_RESOURCES] = 5,
        [REASON_HOST_PORT] = 5,
        [REASON_OFFERING] = 6,
        [REASON_MIN_VALUES] = 7,
        [REASON_POD_AFFINITY] = 8,
        [REASON_POD_ANTI_AFFINITY] = 8,
        [REASON_TOPOLOGY_SPREAD] = 8,
        [REASON_LIMITS] = 9,
        [REASON_UNSUPPORTED] = 10,
    };
    return rank[reason];
}

static void other_pools_format(const struct plan_miss *miss, uint32_t told, struct buf *out)
{
    uint32_t by_reason[PLAN_REASON_COUNT] = { 0 };
    const char *separator = "";
    if (miss->reason_count < 2)
        return;
    for (uint32_t i = 0; i < miss->reason_count; i++)
        by_reason[miss->reasons[i].reason] += i != told;
    buf_addf(out, " (%u other pool%s: ", miss->reason_count - 1,
             miss->reason_count == 2 ? "" : "s");
    for (uint32_t r = 0; r < PLAN_REASON_COUNT; r++) {
        if (!by_reason[r])
            continue;
        buf_addf(out, "%s%s", separator, plan_reason_names[r]);
        if (miss->reason_count > 2)
            buf_addf(out, " %u", by_reason[r]);
        separator = ", ";
    }
    buf_addc(out, ')');
}

void miss_format(const struct planning *p, const struct plan_miss *miss, struct buf *out)
{
    uint32_t told = 0;
    for (uint32_t i = 1; i < miss->reason_count; i++) {
        if (nearness(miss->reasons[i].reason) > nearness(miss->reasons[told].reason))
            told = i;
    }
    if (p->snapshot.pool_count)
        buf_add(out, miss->reasons[told].detail);
    else
        buf_addz(out, "no node that is there takes it, and there is no NodePool");
    other_pools_format(miss, told, out);
}

struct miss_group *misses_grouped(const struct planning *p, struct arena *arena, uint32_t *count)
{
    const struct plan *plan = p->plan;
    struct miss_group *groups = arena_array(arena, struct miss_group, plan->miss_count);
    uint32_t *missed = arena_array(arena, uint32_t, plan->miss_count);
    uint32_t *group = arena_array(arena, uint32_t, plan->miss_count);
    struct str_table found = { 0 };
    *count = 0;
    for (uint32_t i = 0; i < plan->miss_count; i++) {
        AUTO_BUF key = { 0 };
        miss_format(p, &plan->misses[i], &key);
        size_t line = key.len;
        missed[i] = plan->misses[i].pod;
        buf_addf(&key, "/%u", p->pod_workloads[missed[i]]);
        uintptr_t at = (uintptr_t)str_table_get(&found, buf_str(&key));
        if (!at) {
            at = ++*count;
            str_table_put(&found, buf_str(&key), (void *)at);
            groups[at - 1].line = arena_str(arena, str_sub(buf_str(&key), 0, line));
        }
        group[i] = (uint32_t)at - 1;
    }
    str_table_done(&found);
    const struct plan_pods *dealt = pods_dealt(arena, missed, group, plan->miss_count, *count);
    for (uint32_t g = 0; g < *count; g++)
        groups[g].pods = dealt[g];
    return groups;
}

void miss_group_name(const struct planning *p, const struct miss_group *group, struct buf *out)
{
    uint32_t first = group->pods.items[0];
    if (group->pods.count == 1) {
        buf_add(out, p->pod_names[first]);
        return;
    }
    workload_format(&p->workloads[p->pod_workloads[first]], true, out);
    buf_addf(out, " x%u", group->pods.count);
}

/* --- explanations --- */

struct explained_class *explained_by_class(const struct planning *p, struct arena *arena,
                                           uint32_t *count)
{
    struct explained_class *classes =
        arena_array(arena, struct explained_class, p->explained_count);
    uint32_t *group = arena_array(arena, uint32_t, p->explained_count);
    struct map found = { 0 };
    *count = 0;
    for (uint32_t i = 0; i < p->explained_count; i++) {
        uintptr_t at;
        if (!map_get(&found, p->explanations[i].class_, &at)) {
            at = (*count)++;
            map_put(&found, p->explanations[i].class_, at);
            classes[at].explanation = &p->explanations[i];
        }
        group[i] = (uint32_t)at;
    }
    map_done(&found);
    const struct plan_pods *dealt =
        pods_dealt(arena, p->explained, group, p->explained_count, *count);
    for (uint32_t c = 0; c < *count; c++)
        classes[c].pods = dealt[c];
    return classes;
}

/* --- skips --- */

static int by_skip_count(const void *va, const void *vb)
{
    const struct skip_count *a = va, *b = vb;
    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    return str_cmp(a->reason, b->reason);
}

struct skip_count *skips_counted(const struct planning *p, struct arena *arena, uint32_t *count)
{
    struct str_table found = { 0 };
    for (uint32_t i = 0; i < p->plan->skip_count; i++) {
        struct str reason = p->plan->skips[i].reason;
        uintptr_t n = (uintptr_t)str_table_get(&found, reason);
        str_table_put(&found, reason, (void *)(n + 1));
    }
    struct skip_count *counts = arena_array(arena, struct skip_count, found.live_count);
    *count = 0;
    str_table_each(&found, it) {
        counts[(*count)++] =
            (struct skip_count){ arena_str(arena, it->key), (uint32_t)(uintptr_t)it->value };
    }
    qsort(counts, *count, sizeof *counts, by_skip_count);
    str_table_done(&found);
    return counts;
}

/* --- money --- */

void dollars_format(double dollars, struct buf *out)
{
    uint64_t cents = (uint64_t)(dollars * 100 + 0.5);
    AUTO_BUF whole = { 0 };
    buf_addf(&whole, "%" PRIu64, cents / 100);
    for (size_t i = 0; i < whole.len; i++) {
        if (i && (whole.len - i) % 3 == 0)
            buf_addc(out, ',');
        buf_addc(out, whole.p[i]);
    }
    buf_addf(out, ".%02" PRIu64, cents % 100);
}

double plan_distance(const struct plan *plan)
{
    if (plan->price <= plan->lower_bound)
        return 0;
    if (plan->lower_bound <= 0)
        return INFINITY;
    return (double)(plan->price - plan->lower_bound) / (double)plan->lower_bound;
}

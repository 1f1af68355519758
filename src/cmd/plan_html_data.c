/* The data of the page. What many launches or pods have in common is there once, and they have its
 * number: lists of instance types, requirements, and kinds of pods, which are pods of one workload
 * that ask for the same and have one explanation. So 30,000 pods are little more than their names.
 */
#include "cmd/plan_html.h"

#include "api/requests.h"
#include "api/json_parts.h"
#include "api/resources.h"
#include "cmd/requirement_arg.h"

#include <inttypes.h>

/* Values that are told apart by their text. */
struct shared_values {
    struct str_table numbers; /* text to 1 + number */
    json_mut *values;
};

struct amounts { /* what a pod asks for */
    int64_t cpu_milli, memory_bytes;
};

struct page {
    const struct planning *p;
    struct json_build b;
    struct arena arena;
    struct shared_values kinds, type_lists, want_lists;
    uint32_t *kind;              /* per pod of the snapshot: 1 + its kind; 0: not asked yet */
    uint32_t *explanation;       /* per pod: 1 + its number; 0: none */
    VEC(struct amounts) of_kind; /* per kind */
    struct str_table node_usage; /* name to struct node_usage */
};

struct node_usage { /* of a node, by pods that are bound to it */
    int64_t cpu_milli, memory_bytes;
    uint32_t pods;
};

/* --- small pieces --- */

/* Of texts from outside, some (names of files) may be no UTF-8. */
static json_mut *text(struct page *g, struct str s)
{
    AUTO_BUF valid = { 0 };
    if (str_is_utf8(s))
        return json_new_str(&g->b, s.p ? s : STR(""));
    buf_add_utf8(&valid, s);
    return json_new_str(&g->b, buf_str(&valid));
}

static void set(struct page *g, json_mut *object, const char *key, json_mut *value)
{
    json_set(&g->b, object, str_of(key), value);
}

static void push(struct page *g, json_mut *array, json_mut *value)
{
    json_push(&g->b, array, value);
}

static json_mut *pair(struct page *g, int64_t a, int64_t b)
{
    json_mut *array = json_new_array(&g->b);
    push(g, array, json_new_i64(&g->b, a));
    push(g, array, json_new_i64(&g->b, b));
    return array;
}

/* -1: none. */
static json_mut *number_or_none(struct page *g, uint32_t ix)
{
    return json_new_i64(&g->b, ix == PLAN_NONE ? -1 : (int64_t)ix);
}

static json_mut *price(struct page *g, usd_hour amount)
{
    return json_new_double(&g->b, usd_hour_double(amount));
}

/* The number of an equal value that is there, or of this one. */
static uint32_t share(struct page *g, struct shared_values *s, json_mut *value, bool *is_new)
{
    AUTO_BUF key = { 0 };
    json_write_mut(value, &key);
    uintptr_t found = (uintptr_t)str_table_get(&s->numbers, buf_str(&key));
    if (is_new)
        *is_new = found == 0;
    if (found)
        return (uint32_t)found - 1;
    found = s->numbers.live_count + 1;
    str_table_put(&s->numbers, buf_str(&key), (void *)found);
    push(g, s->values, value);
    return (uint32_t)found - 1;
}

/* Thousandths of bytes to bytes; those of cores are what is wanted already. */
static int64_t bytes_of(int64_t thousandths)
{
    return thousandths / 1000;
}

static struct amounts amounts_of(const struct resources *r)
{
    return (struct amounts){ quantity_milli(resources_get(r, STR("cpu"))),
                             quantity_units(resources_get(r, STR("memory"))) };
}

/* --- kinds of pods --- */

static json_mut *other_requests(struct page *g, const struct resources *r)
{
    json_mut *array = json_new_array(&g->b);
    for (uint32_t i = 0; i < r->count; i++) {
        char amount[QUANTITY_TEXT_MAX];
        if (str_eqz(r->items[i].name, "cpu") || str_eqz(r->items[i].name, "memory") ||
            quantity_is_zero(r->items[i].amount))
            continue;
        json_mut *item = json_new_array(&g->b);
        size_t len = quantity_format(r->items[i].amount, amount);
        push(g, item, text(g, r->items[i].name));
        push(g, item, json_new_str(&g->b, (struct str){ amount, len }));
        push(g, array, item);
    }
    return array;
}

static uint32_t kind_of(struct page *g, uint32_t pod)
{
    struct resources requests = { 0 };
    bool is_new;
    if (g->kind[pod])
        return g->kind[pod] - 1;
    arena_reset(&g->arena);
    if (pod_requests(g->p->snapshot.pods[pod], &g->arena, &requests, NULL) < 0)
        requests = (struct resources){ 0 }; /* beyond counting: refused, and told why */
    struct amounts amounts = amounts_of(&requests);
    json_mut *kind = pair(g, g->p->pod_workloads[pod], (int64_t)g->explanation[pod] - 1);
    push(g, kind, json_new_i64(&g->b, amounts.cpu_milli));
    push(g, kind, json_new_i64(&g->b, amounts.memory_bytes));
    push(g, kind, other_requests(g, &requests));
    uint32_t number = share(g, &g->kinds, kind, &is_new);
    if (is_new)
        vec_push(&g->of_kind, amounts);
    g->kind[pod] = number + 1;
    return number;
}

struct kind_pod {
    uint32_t kind, at; /* in a list by name */
};

static int by_kind(const void *va, const void *vb)
{
    const struct kind_pod *a = va, *b = vb;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    return a->at < b->at ? -1 : a->at > b->at;
}

/* [[kind, [name, ...]], ...], and what they ask for together. */
static json_mut *pods(struct page *g, struct plan_pods list, struct amounts *total)
{
    struct kind_pod *sorted = kv_calloc(list.count + 1, sizeof *sorted);
    json_mut *array = json_new_array(&g->b), *names = NULL;
    *total = (struct amounts){ 0 };
    for (uint32_t i = 0; i < list.count; i++)
        sorted[i] = (struct kind_pod){ kind_of(g, list.items[i]), i };
    qsort(sorted, list.count, sizeof *sorted, by_kind);
    for (uint32_t i = 0; i < list.count; i++) {
        if (i == 0 || sorted[i].kind != sorted[i - 1].kind) {
            json_mut *item = json_new_array(&g->b);
            names = json_new_array(&g->b);
            push(g, item, json_new_i64(&g->b, sorted[i].kind));
            push(g, item, names);
            push(g, array, item);
        }
        push(g, names, text(g, g->p->pod_names[list.items[sorted[i].at]]));
        total->cpu_milli += g->of_kind.items[sorted[i].kind].cpu_milli;
        total->memory_bytes += g->of_kind.items[sorted[i].kind].memory_bytes;
    }
    free(sorted);
    return array;
}

static json_mut *names(struct page *g, struct plan_pods list)
{
    json_mut *array = json_new_array(&g->b);
    for (uint32_t i = 0; i < list.count; i++)
        push(g, array, text(g, g->p->pod_names[list.items[i]]));
    return array;
}

/* --- launches --- */

static uint32_t type_list(struct page *g, const struct plan_launch *launch)
{
    const struct instance_types *types = g->p->snapshot.pools[launch->pool].types;
    json_mut *array = json_new_array(&g->b);
    for (uint32_t i = 0; i < launch->type_count; i++)
        push(g, array, text(g, types->names[launch->types[i]]));
    return share(g, &g->type_lists, array, NULL);
}

static uint32_t want_list(struct page *g, const struct plan_launch *launch)
{
    json_mut *array = json_new_array(&g->b);
    arena_reset(&g->arena);
    expression_list list = requirements_to_expressions(&g->arena, &launch->requirements);
    for (uint32_t i = 0; i < list.count; i++) {
        AUTO_BUF line = { 0 };
        if (str_eqz(list.items[i].key, LABEL_INSTANCE_TYPE))
            continue; /* has a list of its own */
        expression_format(&list.items[i], &line);
        push(g, array, text(g, buf_str(&line)));
    }
    return share(g, &g->want_lists, array, NULL);
}

static json_mut *launch_json(struct page *g, const struct plan_launch *launch)
{
    const struct planning *p = g->p;
    struct plan_use cpu = launch_use(p, launch, STR("cpu"));
    struct plan_use memory = launch_use(p, launch, STR("memory"));
    struct amounts total;
    json_mut *o = json_new_object(&g->b), *list = pods(g, launch->pods, &total);
    set(g, o, "pool", json_new_i64(&g->b, launch->pool));
    set(g, o, "type", text(g, launch_type(p, launch)));
    set(g, o, "zone", text(g, launch_zone(p, launch)));
    set(g, o, "capacityType", text(g, launch_capacity_type(p, launch)));
    set(g, o, "price", price(g, launch->price));
    set(g, o, "cpu", pair(g, cpu.requested, cpu.allocatable));
    set(g, o, "mem", pair(g, bytes_of(memory.requested), bytes_of(memory.allocatable)));
    set(g, o, "own",
        pair(g, cpu.requested - total.cpu_milli, bytes_of(memory.requested) - total.memory_bytes));
    set(g, o, "types", json_new_i64(&g->b, type_list(g, launch)));
    set(g, o, "wants", json_new_i64(&g->b, want_list(g, launch)));
    set(g, o, "pods", list);
    return o;
}

/* --- nodes that are there --- */

static void count_bound_pods(struct page *g)
{
    const struct snapshot *snap = &g->p->snapshot;
    for (uint32_t i = 0; i < g->p->plan->existing_count; i++) {
        struct str name = existing_name(g->p, &g->p->plan->existing[i]);
        str_table_put(&g->node_usage, name, kv_calloc(1, sizeof(struct node_usage)));
    }
    for (uint32_t i = 0; i < snap->pod_count; i++) {
        const struct pod *pod = snap->pods[i];
        struct resources requests;
        struct node_usage *use = str_table_get(&g->node_usage, pod->node_name);
        if (!use || !pod->node_name.len || pod_is_terminal(pod))
            continue;
        arena_reset(&g->arena);
        use->pods++;
        if (pod_requests(pod, &g->arena, &requests, NULL) == 0) {
            struct amounts amounts = amounts_of(&requests);
            use->cpu_milli += amounts.cpu_milli;
            use->memory_bytes += amounts.memory_bytes;
        }
    }
}

static uint32_t pool_named(const struct snapshot *snap, struct str name)
{
    for (uint32_t i = 0; i < snap->pool_count; i++) {
        if (name.len && str_eq(snap->pools[i].pool->object.meta.name, name))
            return i;
    }
    return PLAN_NONE;
}

static json_mut *existing_json(struct page *g, const struct plan_existing *existing)
{
    const struct snapshot *snap = &g->p->snapshot;
    bool joined = existing->node != PLAN_NONE;
    const struct object *object =
        joined ? &snap->nodes[existing->node]->object : &snap->claims[existing->claim]->object;
    const struct str_map *labels = &object->meta.labels;
    struct amounts has = amounts_of(joined ? &snap->nodes[existing->node]->status.allocatable
                                           : &snap->claims[existing->claim]->status.allocatable);
    const struct node_usage *use = str_table_get(&g->node_usage, object->meta.name);
    struct amounts total;
    json_mut *o = json_new_object(&g->b), *list = pods(g, existing->pods, &total);
    set(g, o, "name", text(g, object->meta.name));
    set(g, o, "pool",
        number_or_none(g, pool_named(snap, str_map_get(labels, STR(LABEL_NODEPOOL)))));
    set(g, o, "type", text(g, str_map_get(labels, STR(LABEL_INSTANCE_TYPE))));
    set(g, o, "zone", text(g, str_map_get(labels, STR(LABEL_ZONE))));
    set(g, o, "capacityType", text(g, str_map_get(labels, STR(LABEL_CAPACITY_TYPE))));
    set(g, o, "cpu", pair(g, use->cpu_milli + total.cpu_milli, has.cpu_milli));
    set(g, o, "mem", pair(g, use->memory_bytes + total.memory_bytes, has.memory_bytes));
    set(g, o, "own", pair(g, use->cpu_milli, use->memory_bytes));
    set(g, o, "running", json_new_i64(&g->b, use->pods));
    set(g, o, "pods", list);
    return o;
}

/* --- pods that went nowhere --- */

static json_mut *misses_json(struct page *g)
{
    AUTO_ARENA arena = { 0 };
    uint32_t count;
    struct miss_group *groups = misses_grouped(g->p, &arena, &count);
    json_mut *array = json_new_array(&g->b);
    for (uint32_t i = 0; i < count; i++) {
        struct amounts total;
        json_mut *o = json_new_object(&g->b);
        set(g, o, "line", text(g, groups[i].line));
        set(g, o, "pods", pods(g, groups[i].pods, &total));
        push(g, array, o);
    }
    return array;
}

/* Skips lie in the order of names: neighbours of one workload and reason are one entry. */
static json_mut *skips_json(struct page *g)
{
    const struct plan *plan = g->p->plan;
    json_mut *array = json_new_array(&g->b);
    uint32_t *run = kv_calloc(plan->skip_count + 1, sizeof *run);
    for (uint32_t i = 0, next; i < plan->skip_count; i = next) {
        uint32_t workload = g->p->pod_workloads[plan->skips[i].pod];
        for (next = i;
             next < plan->skip_count && g->p->pod_workloads[plan->skips[next].pod] == workload &&
             str_eq(plan->skips[next].reason, plan->skips[i].reason);
             next++)
            run[next - i] = plan->skips[next].pod;
        json_mut *o = json_new_object(&g->b);
        set(g, o, "workload", json_new_i64(&g->b, workload));
        set(g, o, "why", text(g, plan->skips[i].reason));
        set(g, o, "pods", names(g, (struct plan_pods){ run, next - i }));
        push(g, array, o);
    }
    free(run);
    return array;
}

/* --- explanations --- */

static json_mut *explain_pool_json(struct page *g, const struct explain_pool *pool)
{
    json_mut *row = json_new_array(&g->b), *steps = json_new_array(&g->b);
    for (uint32_t i = 0; i < pool->step_count; i++) {
        const struct explain_step *step = &pool->steps[i];
        json_mut *s = json_new_array(&g->b);
        push(g, s, text(g, step->what));
        push(g, s, json_new_i64(&g->b, step->before));
        push(g, s, json_new_i64(&g->b, step->after));
        push(g, steps, s);
    }
    push(g, row, json_new_i64(&g->b, pool->pool));
    push(g, row, json_new_bool(&g->b, pool->possible));
    push(g, row, text(g, pool->possible ? STR("") : str_of(plan_reason_names[pool->reason])));
    push(g, row, text(g, pool->detail));
    push(g, row, text(g, pool->nearest));
    push(g, row, text(g, pool->edit));
    push(g, row, steps);
    return row;
}

static json_mut *explanation_json(struct page *g, const struct explanation *e)
{
    json_mut *o = json_new_object(&g->b), *pools = json_new_array(&g->b);
    for (uint32_t i = 0; i < e->pool_count; i++)
        push(g, pools, explain_pool_json(g, &e->pools[i]));
    set(g, o, "gaveUp", text(g, e->given_up));
    set(g, o, "homes", text(g, e->homes));
    set(g, o, "refused", text(g, e->maybe_refused ? e->maybe_refused->detail : STR("")));
    set(g, o, "pools", pools);
    return o;
}

/* Pods point at theirs from here on. */
static json_mut *explanations_json(struct page *g)
{
    AUTO_ARENA arena = { 0 };
    uint32_t count;
    struct explained_class *classes = explained_by_class(g->p, &arena, &count);
    json_mut *array = json_new_array(&g->b);
    for (uint32_t i = 0; i < count; i++) {
        push(g, array, explanation_json(g, classes[i].explanation));
        for (uint32_t k = 0; k < classes[i].pods.count; k++)
            g->explanation[classes[i].pods.items[k]] = i + 1;
    }
    return array;
}

/* --- the whole --- */

static json_mut *totals_json(struct page *g)
{
    const struct plan *plan = g->p->plan;
    json_mut *o = json_new_object(&g->b);
    set(g, o, "price", price(g, plan->price));
    set(g, o, "bound", price(g, plan->lower_bound));
    set(g, o, "pods", json_new_i64(&g->b, plan->order.count));
    set(g, o, "launches", json_new_i64(&g->b, plan->launch_count));
    return o;
}

static json_mut *workloads_json(struct page *g)
{
    json_mut *array = json_new_array(&g->b);
    for (uint32_t i = 0; i < g->p->workload_count; i++) {
        const struct plan_workload *w = &g->p->workloads[i];
        AUTO_BUF name = { 0 };
        json_mut *item = json_new_array(&g->b);
        if (w->namespace_.len) {
            buf_add(&name, w->namespace_);
            buf_addc(&name, '/');
        }
        buf_add(&name, w->name);
        push(g, item, text(g, w->kind));
        push(g, item, text(g, buf_str(&name)));
        push(g, array, item);
    }
    return array;
}

static json_mut *pools_json(struct page *g)
{
    json_mut *array = json_new_array(&g->b);
    for (uint32_t i = 0; i < g->p->snapshot.pool_count; i++)
        push(g, array, text(g, g->p->snapshot.pools[i].pool->object.meta.name));
    return array;
}

static json_mut *notes_json(struct page *g)
{
    json_mut *array = json_new_array(&g->b);
    vec_each(&g->p->notes, struct str, note)
        push(g, array, text(g, *note));
    return array;
}

static json_mut *check_json(struct page *g)
{
    if (!g->p->checked)
        return json_new_null(&g->b);
    json_mut *array = json_new_array(&g->b);
    for (uint32_t i = 0; i < g->p->check.count; i++)
        push(g, array, text(g, g->p->check.findings[i].what));
    return array;
}

static json_mut *page_json(struct page *g)
{
    const struct plan *plan = g->p->plan;
    json_mut *root = json_new_object(&g->b), *launches = json_new_array(&g->b);
    json_mut *existing = json_new_array(&g->b);
    set(g, root, "hoursPerMonth", json_new_i64(&g->b, HOURS_PER_MONTH));
    set(g, root, "totals", totals_json(g));
    set(g, root, "notes", notes_json(g));
    set(g, root, "check", check_json(g));
    set(g, root, "pools", pools_json(g));
    set(g, root, "workloads", workloads_json(g));
    set(g, root, "explanations", explanations_json(g));
    for (uint32_t i = 0; i < plan->launch_count; i++)
        push(g, launches, launch_json(g, &plan->launches[i]));
    set(g, root, "launches", launches);
    count_bound_pods(g);
    for (uint32_t i = 0; i < plan->existing_count; i++)
        push(g, existing, existing_json(g, &plan->existing[i]));
    set(g, root, "existing", existing);
    set(g, root, "misses", misses_json(g));
    set(g, root, "skips", skips_json(g));
    set(g, root, "kinds", g->kinds.values);
    set(g, root, "typeLists", g->type_lists.values);
    set(g, root, "wantLists", g->want_lists.values);
    return root;
}

static void page_init(struct page *g, const struct planning *p)
{
    *g = (struct page){ .p = p };
    json_build_init(&g->b);
    g->kinds.values = json_new_array(&g->b);
    g->type_lists.values = json_new_array(&g->b);
    g->want_lists.values = json_new_array(&g->b);
    g->kind = kv_calloc(p->snapshot.pod_count + 1, sizeof *g->kind);
    g->explanation = kv_calloc(p->snapshot.pod_count + 1, sizeof *g->explanation);
}

static void page_done(struct page *g)
{
    str_table_each(&g->node_usage, it)
        free(it->value);
    str_table_done(&g->node_usage);
    str_table_done(&g->kinds.numbers);
    str_table_done(&g->type_lists.numbers);
    str_table_done(&g->want_lists.numbers);
    vec_done(&g->of_kind);
    free(g->kind);
    free(g->explanation);
    json_build_done(&g->b);
    arena_done(&g->arena);
}

void plan_html_data(const struct planning *p, struct buf *out)
{
    AUTO_BUF json = { 0 };
    struct page g;
    page_init(&g, p);
    json_write_mut(page_json(&g), &json);
    page_done(&g);
    struct str head, rest = buf_str(&json);
    while (str_cut(rest, '<', &head, &rest)) { /* in texts only, where this says the same */
        buf_add(out, head);
        buf_addz(out, "\\u003c");
    }
    buf_add(out, head);
}

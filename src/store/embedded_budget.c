/* store/embedded_budget.c - the status of PodDisruptionBudgets, as the disruption controller keeps
 * it.
 *
 * A budget's counts follow each change of a pod of its namespace (one selector match per budget, no
 * listing); they are taken anew only when the budget itself changes. A budget whose counts or whose
 * controllers changed is stale; its status is written when the call that made it so is done.
 *
 *     desired   from minAvailable or maxUnavailable, of the expected pods
 *     expected  the pods there are (minAvailable as a number), else the sum of the scales of the
 *               controllers that they belong to
 *     allowed   healthy - desired, not below 0; 0 when nothing is expected
 */
#include "store/embedded_impl.h"

#include "api/policy.h"
#include "api/workloads.h"

void budget_free(struct budget_state *budget)
{
    str_table_done(&budget->controllers);
    free(budget);
}

bool budget_has(const struct budget_state *budget, const struct object *pod)
{
    const struct pdb *pdb = pdb_of(budget->entry->object);
    return label_selector_matches(pdb->spec.maybe_selector, &pod->meta.labels);
}

static void set_stale(struct embedded *e, struct budget_state *budget)
{
    if (budget->stale)
        return;
    budget->stale = true;
    vec_push(&e->budgets_stale, budget);
}

/* --- counting --- */

static bool is_healthy(const struct object *pod)
{
    return !pod_is_terminating(pod_of(pod)) && pod_is_ready(pod_of(pod));
}

/* One pod more (by = 1) or less (by = -1). */
static void count_pod(struct budget_state *budget, const struct object *pod, int by)
{
    const struct owner_ref *controller = meta_controller(&pod->meta);

    budget->pod_count += (uint32_t)by;
    if (is_healthy(pod))
        budget->healthy_count += (uint32_t)by;
    if (!controller)
        return;
    AUTO_BUF key = { 0 };
    SORTED_KEY(&key, controller->api_version, controller->kind, controller->name, controller->uid);
    intptr_t count = (intptr_t)str_table_get(&budget->controllers, buf_str(&key)) + by;
    if (count > 0)
        str_table_put(&budget->controllers, buf_str(&key), (void *)count);
    else
        str_table_remove(&budget->controllers, buf_str(&key));
}

static void count_all(struct embedded *e, struct budget_state *budget)
{
    AUTO_BUF prefix = { 0 };

    budget->pod_count = budget->healthy_count = 0;
    str_table_clear(&budget->controllers);
    SORTED_PREFIX(&prefix, budget->entry->namespace_);
    for (sorted_each(&kind_state(e, &pod_kind)->entries, buf_str(&prefix), it)) {
        const struct entry *pod = it.item->value;
        if (budget_has(budget, pod->object))
            count_pod(budget, pod->object, 1);
    }
}

/* --- what changes make stale --- */

static bool controller_same(const struct object *a, const struct object *b)
{
    const struct owner_ref *was = meta_controller(&a->meta), *is = meta_controller(&b->meta);
    if (!was || !is)
        return was == is;
    return str_eq(was->uid, is->uid) && str_eq(was->name, is->name) &&
           str_eq(was->kind, is->kind) && str_eq(was->api_version, is->api_version);
}

static bool labels_same(const struct object *a, const struct object *b)
{
    const struct str_map *x = &a->meta.labels, *y = &b->meta.labels;

    if (x->count != y->count)
        return false;
    for (uint32_t i = 0; i < x->count; i++) {
        if (!str_eq(x->items[i].key, y->items[i].key) ||
            !str_eq(x->items[i].value, y->items[i].value))
            return false;
    }
    return true;
}

static bool pod_counts_same(const struct object *a, const struct object *b)
{
    return is_healthy(a) == is_healthy(b) && controller_same(a, b);
}

static void pod_changed(struct embedded *e, struct str namespace_, const struct object *maybe_old,
                        const struct object *maybe_new)
{
    AUTO_BUF prefix = { 0 };

    if (maybe_old && maybe_new && pod_counts_same(maybe_old, maybe_new) &&
        labels_same(maybe_old, maybe_new))
        return; /* nearly every report of a kubelet */
    SORTED_PREFIX(&prefix, namespace_);
    for (sorted_each(&e->budgets, buf_str(&prefix), it)) {
        struct budget_state *budget = it.item->value;
        bool had = maybe_old && budget_has(budget, maybe_old);
        bool has = maybe_new && budget_has(budget, maybe_new);
        if ((!had && !has) || (had && has && pod_counts_same(maybe_old, maybe_new)))
            continue;
        if (had)
            count_pod(budget, maybe_old, -1);
        if (has)
            count_pod(budget, maybe_new, 1);
        set_stale(e, budget);
    }
}

/* Of what may control pods: how many it wants, or whom it belongs to. */
static bool scale_changed(const struct object *maybe_old, const struct object *maybe_new)
{
    struct workload was = { 0 }, is = { 0 };

    if (!maybe_old || !maybe_new)
        return workload_of(maybe_new ? maybe_new : maybe_old, &is);
    return workload_of(maybe_old, &was) && workload_of(maybe_new, &is) &&
           (was.replicas != is.replicas || !controller_same(maybe_old, maybe_new));
}

static void controller_changed(struct embedded *e, struct str namespace_)
{
    AUTO_BUF prefix = { 0 };

    SORTED_PREFIX(&prefix, namespace_);
    for (sorted_each(&e->budgets, buf_str(&prefix), it))
        set_stale(e, it.item->value);
}

static void forget(struct embedded *e, struct entry *entry)
{
    struct budget_state *budget = sorted_remove(&e->budgets, entry->key);
    for (size_t i = 0; i < e->budgets_stale.count; i++) {
        if (e->budgets_stale.items[i] == budget)
            e->budgets_stale.items[i] = NULL;
    }
    budget_free(budget);
}

static void pdb_changed(struct embedded *e, const struct object *maybe_old,
                        const struct object *maybe_new, struct entry *entry)
{
    if (!maybe_new) {
        forget(e, entry);
        return;
    }
    if (e->budgets_writing)
        return;
    struct budget_state *budget = sorted_get(&e->budgets, entry->key);
    if (!budget) {
        budget = kv_calloc(1, sizeof *budget);
        budget->entry = entry;
        sorted_put(&e->budgets, entry->key, budget);
    }
    if (!maybe_old || maybe_old->meta.generation != maybe_new->meta.generation)
        count_all(e, budget);
    set_stale(e, budget);
}

void budget_changed(struct embedded *e, const struct object *maybe_old,
                    const struct object *maybe_new, struct entry *entry)
{
    const struct kind *kind = entry->ks->kind;

    if (kind == &pdb_kind)
        pdb_changed(e, maybe_old, maybe_new, entry);
    else if (e->budgets.count > 0 && kind == &pod_kind)
        pod_changed(e, entry->namespace_, maybe_old, maybe_new);
    else if (e->budgets.count > 0 && scale_changed(maybe_old, maybe_new))
        controller_changed(e, entry->namespace_);
}

/* --- the status --- */

static struct entry *controller_entry(struct embedded *e, struct str namespace_,
                                      struct str api_version, struct str kind, struct str name,
                                      struct str uid)
{
    const struct kind *known = kind_find(api_version, kind);
    if (known != &deployment_kind && known != &replica_set_kind && known != &stateful_set_kind)
        return NULL; /* nothing else that owns pods has a scale */
    struct entry *entry = entry_find(e, (struct object_ref){ known, namespace_, name });
    return entry && str_eq(entry->object->meta.uid, uid) ? entry : NULL;
}

/* The controllers themselves, a ReplicaSet's Deployment in its place, each once. False: one cannot
 * be found, and the controller of Kubernetes would report a failure and allow nothing. */
static bool expected_scale(struct embedded *e, const struct budget_state *budget, int64_t *out)
{
    struct str_table seen = { 0 };
    bool found = true;

    *out = 0;
    str_table_each(&budget->controllers, slot) {
        struct str version, kind, name, rest = slot->key;
        str_cut(rest, '\0', &version, &rest);
        str_cut(rest, '\0', &kind, &rest);
        str_cut(rest, '\0', &name, &rest);
        struct entry *entry =
            controller_entry(e, budget->entry->namespace_, version, kind, name, rest);
        const struct owner_ref *up = entry ? meta_controller(&entry->object->meta) : NULL;
        if (up && entry->ks->kind == &replica_set_kind)
            entry = controller_entry(e, budget->entry->namespace_, up->api_version, up->kind,
                                     up->name, up->uid);
        struct workload workload;
        if (!entry || !workload_of(entry->object, &workload)) {
            found = false;
            break;
        }
        if (!str_table_has(&seen, entry->object->meta.uid)) {
            str_table_put(&seen, entry->object->meta.uid, entry);
            *out += workload.replicas;
        }
    }
    str_table_done(&seen);
    return found;
}

struct budget_numbers {
    int64_t expected, desired, allowed;
    bool failed; /* the expected scale cannot be told */
};

static struct budget_numbers budget_compute(struct embedded *e, const struct budget_state *budget)
{
    const struct pdb_spec *spec = &pdb_of(budget->entry->object)->spec;
    struct budget_numbers n = { .expected = budget->pod_count };
    bool scaled =
        spec->max_unavailable.set || (spec->min_available.set && spec->min_available.str.p);

    if (scaled && !expected_scale(e, budget, &n.expected))
        return (struct budget_numbers){ .failed = true };
    if (!pdb_desired_healthy(spec, n.expected, &n.desired)) {
        n.expected = 0;
        n.desired = 0;
    }
    n.allowed = (int64_t)budget->healthy_count - n.desired;
    if (n.expected <= 0 || n.allowed < 0)
        n.allowed = 0;
    return n;
}

static void budget_write(struct embedded *e, struct budget_state *budget)
{
    struct budget_numbers n = budget_compute(e, budget);
    const struct meta *meta = &budget->entry->object->meta;
    struct condition_change condition = {
        .type = "DisruptionAllowed",
        .status = n.allowed > 0 ? "True" : "False",
        .reason = n.failed        ? "SyncFailed"
                  : n.allowed > 0 ? "SufficientPods"
                                  : "InsufficientPods",
        .message = n.failed ? "the controllers of its pods cannot be found, or have no scale" : "",
        .observed_generation = meta->generation,
    };
    struct edit edit;

    edit_begin(&edit, budget->entry);
    json_mut *status = json_mut_object(&edit.b, edit.root, STR("status"));
    if (!n.failed) { /* else what was known stays, but nothing is allowed */
        json_set_i64(&edit.b, status, "observedGeneration", meta->generation);
        json_set_i64(&edit.b, status, "currentHealthy", budget->healthy_count);
        json_set_i64(&edit.b, status, "desiredHealthy", n.desired);
        json_set_i64(&edit.b, status, "expectedPods", n.expected);
    }
    json_set_i64(&edit.b, status, "disruptionsAllowed", n.allowed);
    edit_set_condition(&edit, condition, clock_wall_us(e->clock));
    e->budgets_writing = true;
    edit_write(e, budget->entry, &edit);
    e->budgets_writing = false;
}

bool budgets_run(struct embedded *e)
{
    bool worked = e->budgets_stale.count > 0;

    vec_each(&e->budgets_stale, struct budget_state *, it) {
        if (!*it)
            continue;
        (*it)->stale = false;
        budget_write(e, *it);
    }
    vec_clear(&e->budgets_stale);
    return worked;
}

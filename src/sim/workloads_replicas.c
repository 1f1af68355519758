/* ReplicaSets: as many pods as asked for. Too many: those go first whose loss matters least, in the
 * order of the real controller: not on a node, not running, not ready, cheap to delete by their own
 * word, crowded on their node, ready for the shortest time, restarted most, youngest. */
#include "sim/workloads_impl.h"

#define POD_SUFFIX 5
#define POD_NAME_MAX 63
#define NAME_TRIES 100

void replica_set_read(struct workloads *w KV_UNUSED, struct maker *m, struct str text,
                      const json_val *root)
{
    const json_val *template = json_path(root, "spec.template");
    struct draft d;
    AUTO_BUF prefix = { 0 };
    template_hash(template, LABEL_TEMPLATE_HASH, m->hash);
    draft_init(&d, text, m->maybe_object, template);
    buf_addf(&prefix, "%.*s-", STR_ARG(m->maybe_object->meta.name));
    json_set_str(&d.b, d.meta, "generateName", buf_str(&prefix));
    draft_cast(&d, &m->mould);
    draft_done(&d);
}

/* --- too many --- */

struct victim {
    const struct pod *pod;
    int64_t cost, ready_us, restarts;
    uint32_t crowd;
    uint8_t phase; /* Pending before unknown before running */
    bool bound, ready;
};

static int64_t deletion_cost(const struct pod *pod)
{
    int64_t cost = 0;
    str_to_i64(str_map_get(&pod->object.meta.annotations,
                           STR("controller.kubernetes.io/pod-deletion-cost")),
               &cost);
    return cost;
}

static struct victim victim_of(const struct pod *pod, const struct str_table *crowds)
{
    struct victim v = { .pod = pod,
                        .cost = deletion_cost(pod),
                        .bound = pod_is_scheduled(pod),
                        .ready = pod_is_ready(pod),
                        .phase = pod->status->phase == PHASE_RUNNING   ? 2
                                 : pod->status->phase == PHASE_UNKNOWN ? 1
                                                                       : 0 };
    const struct pod_condition *ready = pod_condition(pod, STR("Ready"));
    v.ready_us = v.ready ? pod_condition_us(pod, ready) : 0;
    for (uint32_t i = 0; i < pod->status->containers.count; i++) {
        int64_t count = pod->status->containers.items[i].restart_count;
        v.restarts = count > v.restarts ? count : v.restarts;
    }
    if (v.bound)
        v.crowd = (uint32_t)(uintptr_t)str_table_get(crowds, pod->node_name);
    return v;
}

static int order(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

static int victim_order(const void *x, const void *y)
{
    const struct victim *a = x, *b = y;
    int by[] = {
        order(a->bound, b->bound),
        order(a->phase, b->phase),
        order(a->ready, b->ready),
        order(a->cost, b->cost),
        order(b->crowd, a->crowd),
        order(b->ready_us, a->ready_us),
        order(b->restarts, a->restarts),
        order(b->pod->object.meta.created_us, a->pod->object.meta.created_us),
    };
    for (size_t i = 0; i < KV_COUNT_OF(by); i++) {
        if (by[i])
            return by[i];
    }
    return str_cmp(a->pod->object.meta.name, b->pod->object.meta.name);
}

static void remove_pods(struct workloads *w, struct maker *m, const struct pod *const *pods,
                        size_t count, size_t how_many)
{
    struct str_table crowds = { 0 };
    struct victim *victims = arena_array(&w->scratch, struct victim, count);
    for (size_t i = 0; i < count; i++) {
        struct str node = pods[i]->node_name;
        if (node.len)
            str_table_put(&crowds, node, (void *)((uintptr_t)str_table_get(&crowds, node) + 1));
    }
    for (size_t i = 0; i < count; i++)
        victims[i] = victim_of(pods[i], &crowds);
    str_table_done(&crowds);
    qsort(victims, count, sizeof *victims, victim_order);
    for (size_t i = 0; i < how_many; i++)
        pod_remove(w, m, victims[i].pod);
}

/* --- too few --- */

static void create_pods(struct workloads *w, struct maker *m, int64_t how_many)
{
    AUTO_BUF name = { 0 }, json = { 0 };
    struct str base = m->maybe_object->meta.name;
    unsigned tries = 0;
    while (how_many > 0 && tries < NAME_TRIES) {
        char suffix[POD_SUFFIX + 1];
        bool exists = false;
        rng_name(&m->rng, suffix, POD_SUFFIX);
        buf_clear(&name);
        buf_add(&name, str_sub(base, 0, POD_NAME_MAX - POD_SUFFIX - 1));
        buf_addf(&name, "-%s", suffix);
        buf_clear(&json);
        mould_fill(&m->mould, buf_str(&name), STR(""), &json);
        if (maker_create(w, m, WATCH_PODS, buf_str(&json), &exists)) {
            how_many--;
            tries = 0;
        } else if (exists) {
            tries++;
        } else {
            return; /* it comes again later */
        }
    }
}

/* --- status --- */

static void write_status(struct workloads *w, struct maker *m, const struct replica_set_status *is)
{
    const struct replica_set *set = replica_set_of(m->maybe_object);
    const struct replica_set_status *was = &set->status;
    if (was->replicas == is->replicas && was->ready_replicas == is->ready_replicas &&
        was->available_replicas == is->available_replicas &&
        was->observed_generation == is->observed_generation)
        return;
    AUTO_BUF patch = { 0 };
    buf_addf(&patch,
             "{\"status\":{\"replicas\":%lld,\"fullyLabeledReplicas\":%lld,\"readyReplicas\":%lld,"
             "\"availableReplicas\":%lld,\"observedGeneration\":%lld}}",
             (long long)is->replicas, (long long)is->replicas, (long long)is->ready_replicas,
             (long long)is->available_replicas, (long long)is->observed_generation);
    maker_status(w, m, buf_str(&patch));
}

void replica_set_sync(struct workloads *w, struct maker *m)
{
    const struct replica_set *set = replica_set_of(m->maybe_object);
    struct object_list made = { 0 };
    made_list(w, m, WATCH_PODS, &made);
    const struct pod **pods = arena_array(&w->scratch, const struct pod *, made.count);
    struct replica_set_status status = { .observed_generation = set->object.meta.generation };
    size_t count = 0;
    for (size_t i = 0; i < made.count; i++) {
        const struct pod *pod = pod_of(made.items[i]);
        if (!pod_is_active(w, pod))
            continue;
        pods[count++] = pod;
        status.ready_replicas += pod_is_ready(pod);
        status.available_replicas += pod_is_available(w, m, pod, set->spec.min_ready_s);
    }
    status.replicas = (int64_t)count;
    int64_t want = set->spec.replicas.set ? set->spec.replicas.value : 1;
    write_status(w, m, &status);
    if ((int64_t)count < want)
        create_pods(w, m, want - (int64_t)count);
    if ((int64_t)count > want)
        remove_pods(w, m, pods, count, count - (size_t)want);
    object_list_done(&made);
}

/* Doubt: what was bound in this step as a plan, for the checker to judge. The cluster as it was before,
 * the pods that were bound waiting, each with its node, and their order.
 *
 * Whose pods a plan is for is no question of kube-scheduler's, nor is a node that is being deleted out of
 * bounds for it (whoever deletes it taints it): nodes are shown without that, and the finding "is not
 * for us" is passed over. */
#include "sim/binder_impl.h"

#include "sched/check.h"

struct doubts {
    struct binder *b;
    struct str_table bound; /* uids, to 1 + the index in `pods` */
    const struct pod **pods;
    uint32_t pod_count;
    const struct node **nodes;
    uint32_t node_count;
    uint32_t *node_ix; /* per site */
};

static void doubt_pods(struct doubts *d, const struct object_list *all)
{
    struct binder *b = d->b;
    struct arena *a = &b->scratch;
    d->pods = arena_array(a, const struct pod *, all->count + b->bindings.count);
    vec_each(&b->bindings, struct binding, binding) {
        d->pods[d->pod_count++] = binding->pod;
        str_table_put(&d->bound, binding->pod->object.meta.uid, (void *)(uintptr_t)d->pod_count);
    }
    for (size_t i = 0; i < all->count; i++) {
        const struct pod *pod = pod_of(all->items[i]);
        const struct waiting *w = str_table_get(&b->waiting, pod->object.meta.uid);
        if (str_table_has(&d->bound, pod->object.meta.uid))
            continue;
        if (w && w->assumed != NO_NODE) { /* of an earlier step; its event is late */
            struct pod *copy = arena_new(a, struct pod);
            *copy = *pod;
            copy->node_name = b->sites.items[w->assumed]->name;
            d->pods[d->pod_count++] = copy;
        } else if (pod_is_scheduled(pod)) {
            d->pods[d->pod_count++] = pod;
        }
    }
}

static void doubt_nodes(struct doubts *d)
{
    struct binder *b = d->b;
    d->nodes = arena_array(&b->scratch, const struct node *, b->node_count);
    d->node_ix = arena_array(&b->scratch, uint32_t, b->sites.count);
    for (uint32_t at = 0; at < b->sites.count; at++) {
        const struct site *site = b->sites.items[at];
        if (!site || !site->maybe_node)
            continue;
        struct node *copy = arena_new(&b->scratch, struct node);
        *copy = *site->maybe_node;
        copy->object.meta.deleted_us = 0;
        d->node_ix[at] = d->node_count;
        d->nodes[d->node_count++] = copy;
    }
}

static int by_node_and_name(const void *x, const void *y, void *ctx)
{
    const struct binder *b = ctx;
    const struct binding *p = &b->bindings.items[*(const uint32_t *)x],
                         *q = &b->bindings.items[*(const uint32_t *)y];
    const struct meta *s = &p->pod->object.meta, *t = &q->pod->object.meta;
    int order = str_cmp(b->sites.items[p->node]->name, b->sites.items[q->node]->name);
    if (!order)
        order = str_cmp(s->namespace_, t->namespace_);
    return order ? order : str_cmp(s->name, t->name);
}

/* Binding number i is pod number i. */
static struct plan doubt_plan(struct doubts *d)
{
    struct binder *b = d->b;
    uint32_t count = (uint32_t)b->bindings.count;
    uint32_t *order = arena_array(&b->scratch, uint32_t, count);
    uint32_t *sorted = arena_array(&b->scratch, uint32_t, count);
    struct plan_existing *homes = arena_array(&b->scratch, struct plan_existing, count);
    struct plan plan = { .existing = homes, .order = { order, count } };
    for (uint32_t i = 0; i < count; i++)
        order[i] = sorted[i] = i;
    qsort_r(sorted, count, sizeof *sorted, by_node_and_name, b);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t node = d->node_ix[b->bindings.items[sorted[i]].node];
        if (!plan.existing_count || homes[plan.existing_count - 1].node != node)
            homes[plan.existing_count++] =
                (struct plan_existing){ node, PLAN_NONE, { &sorted[i], 0 } };
        homes[plan.existing_count - 1].pods.count++;
    }
    return plan;
}

static const void **doubt_list(struct binder *b, enum binder_watch what, struct object_list *list,
                               uint32_t *count)
{
    informer_list(b->informers[what], STR(""), list);
    const void **items = arena_array(&b->scratch, const void *, list->count);
    for (size_t i = 0; i < list->count; i++)
        items[i] = list->items[i];
    *count = (uint32_t)list->count;
    return items;
}

static void judge(struct doubts *d)
{
    struct binder *b = d->b;
    struct object_list lists[BINDER_WATCH_COUNT] = { 0 };
    struct snapshot snap = {
        .pods = d->pods, .pod_count = d->pod_count, .nodes = d->nodes, .node_count = d->node_count
    };
    snap.pvcs = (const struct pvc *const *)doubt_list(b, BINDER_CLAIMS, &lists[0], &snap.pvc_count);
    snap.pvs = (const struct pv *const *)doubt_list(b, BINDER_VOLUMES, &lists[1], &snap.pv_count);
    snap.storage_classes = (const struct storage_class *const *)doubt_list(
        b, BINDER_CLASSES, &lists[2], &snap.storage_class_count);
    snap.csi_nodes = (const struct csi_node *const *)doubt_list(b, BINDER_CSI_NODES, &lists[3],
                                                                &snap.csi_node_count);
    snap.namespaces = (const struct namespace_object *const *)doubt_list(
        b, BINDER_NAMESPACES, &lists[4], &snap.namespace_count);
    struct plan plan = doubt_plan(d);
    struct check_result result =
        plan_check(&b->scratch, &snap, (struct plan_options){ .seed = 1 }, &plan);
    for (uint32_t i = 0; i < result.count; i++) {
        struct str what = result.findings[i].what;
        if (memmem(what.p, what.len, "is not for us", 13))
            continue;
        b->stats.disagreements++;
        if (!b->maybe_disagreement)
            b->maybe_disagreement = str_dup(what);
    }
    for (size_t i = 0; i < BINDER_WATCH_COUNT; i++)
        object_list_done(&lists[i]);
}

void doubt(struct binder *b)
{
    struct doubts d = { .b = b };
    struct object_list all = { 0 };
    informer_list(b->informers[BINDER_PODS], STR(""), &all);
    doubt_pods(&d, &all);
    doubt_nodes(&d);
    judge(&d);
    object_list_done(&all);
    str_table_done(&d.bound);
    vec_each(&b->bindings, struct binding, binding)
        object_unref(&binding->pod->object);
    vec_clear(&b->bindings);
    arena_reset(&b->scratch);
}

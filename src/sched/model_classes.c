/* Pods that nothing tells apart are one class.
 *
 * All that a placement depends on is a number by now (wants, tolerances, groups, ports, drivers), so a
 * class is found by the bytes of those numbers. Sorts of different workloads that ask for the same
 * end up in one, and so do the replicas of a StatefulSet, whose labels and claims differ.
 */
#include "sched/model_inner.h"
#include "sched/model_memo.h"

struct builder {
    struct compile *c;
    struct str_table ids; /* what a class is to 1 + its number */
    VEC(struct pod_class) classes;
    uint32_t *class_of_sort; /* NONE for sorts of which no pod is pending */
    uint32_t pod_count;      /* of all classes */
};

/* --- one sort --- */

static const struct plan_blame *construct_refused(struct compile *c, const struct pod_sort *sort)
{
    if (sort->pod->spec->resource_claims.count)
        return blame_new(c, REASON_UNSUPPORTED,
                         STR("resource claims (dynamic resource allocation) are not handled"));
    return NULL;
}

static struct pod_class class_of(struct compile *c, const struct pod_sort *sort)
{
    struct pod_class k = { .request = sort->request,
                           .priority = pod_priority(c, sort->pod->spec),
                           .matched = sort->matched,
                           .matched_count = sort->matched_count,
                           .ports = sort->ports,
                           .port_count = sort->port_count };
    k.maybe_refused = sort->maybe_refused ? sort->maybe_refused : construct_refused(c, sort);
    if (k.maybe_refused)
        return k;
    struct pod_volumes volumes = pod_volumes_of(c, sort->pod);
    k.volumes = volumes.items;
    k.volume_count = volumes.count;
    k.maybe_refused = volumes.maybe_refused;
    if (k.maybe_refused)
        return k;
    struct variants variants = variants_of(c, sort, &volumes);
    k.variants = variants.items;
    k.variant_count = variants.count;
    k.maybe_refused = variants.maybe_refused;
    return k;
}

static void numbers_encode(const uint32_t *items, uint32_t count, struct buf *out)
{
    u32_encode(count, out);
    for (uint32_t i = 0; i < count; i++)
        u32_encode(items[i], out);
}

static void amount_encode(int64_t n, struct buf *out)
{
    u32_encode((uint32_t)((uint64_t)n >> 32), out);
    u32_encode((uint32_t)n, out);
}

static void class_encode(const struct model *m, const struct pod_class *k, struct buf *out)
{
    amount_encode(k->priority, out);
    for (uint32_t i = 0; i < m->resource_count; i++)
        amount_encode(k->request[i], out);
    numbers_encode(k->matched, k->matched_count, out);
    numbers_encode(k->ports, k->port_count, out);
    u32_encode(k->volume_count, out);
    for (uint32_t i = 0; i < k->volume_count; i++) {
        u32_encode(k->volumes[i].driver, out);
        u32_encode(k->volumes[i].claim, out);
    }
    u32_encode(k->variant_count, out);
    for (uint32_t i = 0; i < k->variant_count; i++) {
        const struct variant *v = &k->variants[i];
        u32_encode(v->wants, out);
        u32_encode(v->tolerance, out);
        numbers_encode(v->owned, v->owned_count, out);
        str_encode(v->given_up, out);
    }
    if (k->maybe_refused) {
        u32_encode(k->maybe_refused->reason, out);
        str_encode(k->maybe_refused->detail, out);
    }
}

static uint32_t class_intern(struct builder *b, const struct pod_class *k, uint32_t pods)
{
    struct buf *text = &b->c->text;
    buf_clear(text);
    class_encode(b->c->m, k, text);
    uintptr_t found = (uintptr_t)str_table_get(&b->ids, buf_str(text));
    if (!found) {
        vec_push(&b->classes, *k);
        found = b->classes.count;
        str_table_put(&b->ids, buf_str(text), (void *)found);
    }
    b->classes.items[found - 1].count += pods;
    b->pod_count += pods;
    return (uint32_t)(found - 1);
}

/* --- pods --- */

struct seat { /* what a pod is sorted by, out of the pod: there are many of them */
    const struct pod *pod;
    struct str name;
    uint32_t number;
};

static int by_name(const void *a, const void *b)
{
    const struct seat *x = a, *y = b;
    return str_cmp(x->name, y->name);
}

static int by_all(const void *a, const void *b)
{
    const struct seat *x = a, *y = b;
    return pod_order(x->pod, y->pod);
}

static void pods_sort(struct compile *c, uint32_t *pods, uint32_t count)
{
    struct seat *seats = arena_array(&c->scratch, struct seat, count);
    bool sorted = true, one_namespace = true;
    for (uint32_t i = 0; i < count; i++) {
        const struct pod *pod = c->m->snap->pods[pods[i]];
        seats[i] = (struct seat){ pod, pod->object.meta.name, pods[i] };
        if (i == 0)
            continue;
        one_namespace &=
            str_eq(seats[i - 1].pod->object.meta.namespace_, pod->object.meta.namespace_);
        sorted = sorted && pod_order(seats[i - 1].pod, pod) <= 0;
    }
    if (sorted) /* as they come from an API server */
        return;
    qsort(seats, count, sizeof *seats, one_namespace ? by_name : by_all);
    for (uint32_t i = 0; i < count; i++)
        pods[i] = seats[i].number;
}

static void pods_deal_out(struct builder *b)
{
    struct compile *c = b->c;
    const struct snapshot *snap = c->m->snap;
    uint32_t *place = arena_array(&c->scratch, uint32_t, b->classes.count); /* of its next pod */
    uint32_t *pods = arena_array(c->arena, uint32_t, b->pod_count), first = 0;
    vec_each(&b->classes, struct pod_class, k) {
        place[k - b->classes.items] = first;
        k->pods = pods + first;
        first += k->count;
    }
    for (uint32_t i = 0; i < snap->pod_count; i++) {
        if (c->state[i] == POD_PENDING)
            pods[place[b->class_of_sort[c->sort[i]]]++] = i;
    }
    vec_each(&b->classes, struct pod_class, k)
        pods_sort(c, pods + (k->pods - pods), k->count);
}

/* --- order --- */

/* Important ones first, then large ones, which have the fewest places to go. */
static int class_order(const void *a, const void *b, void *ctx)
{
    const struct model *m = ctx;
    const struct pod_class *x = a, *y = b;
    if (x->priority != y->priority)
        return x->priority > y->priority ? -1 : 1;
    for (uint32_t i = 0; i < m->resource_count; i++) {
        if (x->request[i] != y->request[i])
            return x->request[i] > y->request[i] ? -1 : 1;
    }
    return pod_order(m->snap->pods[x->pods[0]], m->snap->pods[y->pods[0]]);
}

void classes_compile(struct compile *c)
{
    struct model *m = c->m;
    struct builder b = { .c = c };
    b.class_of_sort = arena_array(c->arena, uint32_t, c->sorts.count);
    for (uint32_t i = 0; i < c->sorts.count; i++) {
        b.class_of_sort[i] = NONE;
        if (!c->sorts.items[i].pending_count)
            continue;
        arena_reset(&c->scratch); /* there can be as many sorts as pods */
        struct pod_class k = class_of(c, &c->sorts.items[i]);
        b.class_of_sort[i] = class_intern(&b, &k, c->sorts.items[i].pending_count);
    }
    pods_deal_out(&b);

    struct pod_class *classes = arena_array(c->arena, struct pod_class, b.classes.count);
    for (size_t i = 0; i < b.classes.count; i++)
        classes[i] = b.classes.items[i];
    m->class_count = (uint32_t)b.classes.count;
    qsort_r(classes, m->class_count, sizeof *classes, class_order, m);
    m->classes = classes;
    vec_done(&b.classes);
    str_table_done(&b.ids);
}

/* Which node? Of those that pass all filters the emptiest, by what would be left of processors and
 * memory; of equally empty ones the first by name.
 *
 * A class that asks nothing of other pods, and that no anti-affinity finds, has its candidates in a heap.
 * As long as only bindings happen, nodes get fuller and never emptier: the score in the heap is an upper
 * bound, a top whose score is still true is the best, and one that does not take the pod any more never
 * will. When room is made somewhere (binder.epoch) the heap is built anew.
 */
#include "sim/binder_impl.h"

/* --- filters --- */

struct look { /* of one pod */
    struct binder *b;
    struct class *class;
    struct volumes volumes;
};

static const char *look_refuses(const struct look *l, uint32_t at)
{
    const struct site *site = l->b->sites.items[at];
    struct ask *ask = l->class->ask;
    switch (ask_fit(ask, l->b, at)) {
    case ASK_FIT_TAINT:
        return "taint";
    case ASK_FIT_LABELS:
        return "node(s) didn't match Pod's node affinity/selector";
    case ASK_FIT_YES:
    case ASK_FIT_UNKNOWN:
        break;
    }
    if (!ask_fits_room(ask, site))
        return "resources";
    if (!site_ports_free(site, ask))
        return "node(s) didn't have free ports for the requested pod ports";
    const char *why = l->volumes.count ? volumes_refuse(l->b, &l->volumes, at) : NULL;
    return why ? why : class_terms_refuse(l->class, at);
}

static double score_of(const struct binder *b, const struct ask *ask, const struct site *site)
{
    double cpu = b->cpu < site->free.count ? (double)site->free.items[b->cpu] : 0;
    double memory = b->memory < site->free.count ? (double)site->free.items[b->memory] : 0;
    return (cpu - (double)ask->cpu_milli) * site->cpu_scale +
           (memory - (double)ask->memory_milli) * site->memory_scale;
}

/* --- candidates --- */

static bool is_better(const struct binder *b, const struct candidate *x, const struct candidate *y)
{
    if (x->score != y->score)
        return x->score > y->score;
    return str_cmp(b->sites.items[x->node]->name, b->sites.items[y->node]->name) < 0;
}

static void sift_down(const struct binder *b, struct candidate *items, size_t count, size_t at)
{
    for (;;) {
        size_t best = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < count; child++) {
            if (is_better(b, &items[child], &items[best]))
                best = child;
        }
        if (best == at)
            return;
        struct candidate moved = items[at];
        items[at] = items[best];
        items[best] = moved;
        at = best;
    }
}

static void heap_build(const struct look *l)
{
    struct binder *b = l->b;
    struct class *class = l->class;
    vec_clear(&class->heap);
    for (uint32_t at = 0; at < b->sites.count; at++) {
        const struct site *site = b->sites.items[at];
        if (site && site->maybe_node && ask_fit(class->ask, b, at) == ASK_FIT_YES &&
            ask_fits_room(class->ask, site))
            vec_push(&class->heap, (struct candidate){ score_of(b, class->ask, site), at });
    }
    for (size_t i = class->heap.count / 2; i-- > 0;)
        sift_down(b, class->heap.items, class->heap.count, i);
    class->heap_epoch = b->epoch;
}

static uint32_t heap_pick(const struct look *l)
{
    struct binder *b = l->b;
    struct class *class = l->class;
    if (class->heap_epoch != b->epoch)
        heap_build(l);
    while (class->heap.count) {
        struct candidate *top = class->heap.items;
        double score = score_of(b, class->ask, b->sites.items[top->node]);
        bool moved = score != top->score;
        if (!moved && !look_refuses(l, top->node))
            return top->node;
        if (moved)
            top->score = score;
        else
            *top = vec_pop(&class->heap);
        sift_down(b, class->heap.items, class->heap.count, 0);
    }
    return NO_NODE;
}

static uint32_t scan_pick(const struct look *l)
{
    struct binder *b = l->b;
    struct candidate best = { .node = NO_NODE };
    for (uint32_t at = 0; at < b->sites.count; at++) {
        const struct site *site = b->sites.items[at];
        if (!site || !site->maybe_node || look_refuses(l, at))
            continue;
        struct candidate here = { score_of(b, l->class->ask, site), at };
        if (best.node == NO_NODE || is_better(b, &here, &best))
            best = here;
    }
    return best.node;
}

static uint32_t only_pick(const struct look *l)
{
    struct binder *b = l->b;
    uintptr_t known = (uintptr_t)str_table_get(&b->node_ids, l->class->ask->only_node);
    uint32_t at = known ? (uint32_t)known - 1 : NO_NODE;
    if (!known || !b->sites.items[at]->maybe_node || look_refuses(l, at))
        return NO_NODE;
    return at;
}

static bool minds_others(const struct class *class)
{
    if (class->terms.count)
        return true;
    vec_each(&class->tag->matched, struct term *, term) {
        if ((*term)->held_total)
            return true;
    }
    return false;
}

/* --- why not --- */

struct excuses {
    struct str_table counts; /* words to how many nodes */
};

static void excuse(struct excuses *e, struct str words)
{
    str_table_put(&e->counts, words, (void *)((uintptr_t)str_table_get(&e->counts, words) + 1));
}

static void excuse_room(struct excuses *e, const struct look *l, const struct site *site)
{
    AUTO_BUF words = { 0 };
    const struct ask *ask = l->class->ask;
    for (uint32_t i = 0; i < ask->amount_count; i++) {
        const struct amount *a = &ask->amounts[i];
        if (a->resource < site->free.count && site->free.items[a->resource] >= a->milli)
            continue;
        buf_clear(&words);
        if (a->resource == l->b->pods)
            buf_addz(&words, "Too many pods");
        else
            buf_addf(&words, "Insufficient %.*s", STR_ARG(l->b->resource_names.items[a->resource]));
        excuse(e, buf_str(&words));
    }
}

static void excuse_taint(struct excuses *e, const struct look *l, const struct site *site)
{
    AUTO_BUF words = { 0 };
    const struct pod_spec *spec = l->class->pod->spec;
    const struct taint *taint = node_taint_in_the_way(
        site->maybe_node, EFFECTS_THAT_REPEL, spec->tolerations.items, spec->tolerations.count);
    if (site->maybe_node->spec.unschedulable &&
        str_eqz(taint->key, "node.kubernetes.io/unschedulable"))
        buf_addz(&words, "node(s) were unschedulable");
    else
        buf_addf(&words, "node(s) had untolerated taint {%.*s: %.*s}", STR_ARG(taint->key),
                 STR_ARG(taint->value));
    excuse(e, buf_str(&words));
}

static void excuse_node(struct excuses *e, const struct look *l, uint32_t at)
{
    const struct site *site = l->b->sites.items[at];
    const char *why = look_refuses(l, at);
    if (!why)
        return;
    if (strcmp(why, "taint") == 0)
        excuse_taint(e, l, site);
    else if (strcmp(why, "resources") == 0)
        excuse_room(e, l, site);
    else
        excuse(e, str_of(why));
}

static void excuse_nodes(struct excuses *e, const struct look *l)
{
    struct binder *b = l->b;
    struct str only = l->class->ask->only_node;
    for (uint32_t at = 0; at < b->sites.count; at++) {
        const struct site *site = b->sites.items[at];
        if (!site || !site->maybe_node)
            continue;
        if (only.p && !str_eq(site->name, only)) /* no need to look: it is for another */
            excuse(e, STR("node(s) didn't match Pod's node affinity/selector"));
        else
            excuse_node(e, l, at);
    }
}

/* "0/5 nodes are available: 2 Insufficient cpu, 3 node(s) had untolerated taint {a: b}." */
static char *make_message(const struct look *l)
{
    struct binder *b = l->b;
    struct excuses e = { 0 };
    AUTO_BUF text = { 0 };
    const char *never =
        l->class->ask->maybe_never ? l->class->ask->maybe_never : l->volumes.maybe_never;
    buf_addf(&text, "0/%u nodes are available", b->node_count);
    if (never || !b->node_count) {
        if (never)
            buf_addf(&text, ": %s", never);
        else
            buf_addz(&text, ": no nodes available to schedule pods");
        buf_addc(&text, '.');
        return buf_take(&text);
    }
    excuse_nodes(&e, l);
    uint32_t *order = arena_array(&b->scratch, uint32_t, e.counts.live_count);
    str_table_sorted(&e.counts, order);
    for (uint32_t i = 0; i < e.counts.live_count; i++) {
        const struct str_slot *slot = &e.counts.slots[order[i]];
        buf_addf(&text, "%s %lu %.*s", i ? "," : ":", (unsigned long)(uintptr_t)slot->value,
                 STR_ARG(slot->key));
    }
    buf_addc(&text, '.');
    str_table_done(&e.counts);
    return buf_take(&text);
}

uint32_t class_pick(struct binder *b, struct class *class, const struct pod *pod)
{
    struct look l = { .b = b, .class = class };
    uint32_t at = NO_NODE;
    if (class->has_claims)
        l.volumes = volumes_of(b, pod);
    class_weigh_terms(class);
    if (!class->ask->maybe_never && !l.volumes.maybe_never)
        at = class->ask->only_node.p ? only_pick(&l)
             : minds_others(class)   ? scan_pick(&l)
                                     : heap_pick(&l);
    if (at == NO_NODE) {
        free(class->message);
        class->message = make_message(&l);
    }
    volumes_done(&l.volumes);
    arena_reset(&b->scratch);
    return at;
}

/* The queue, and what wakes it.
 *
 * Pods wait in their classes. A class is tried when a pod comes to it, and when something changes that may
 * help it; its pods and those of the other classes that are tried come in the order of the queue. When
 * no node will do for one pod of a class, none will for the others: the class is blocked until
 *
 *   a node comes, changes, or loses a pod       and it would suit, or the class has topology terms
 *   a pod comes that one of its terms finds     (affinity, spread)
 *   a pod goes whose anti-affinity found it, or its node moves to another domain
 *   volumes, claims, classes, limits change     and it has volumes
 *
 * A pod that was bound is counted on its node at once and waits as *assumed* until the informer says so.
 */
#include "sim/binder_impl.h"

#include "codec/duration.h"

/* A verdict is told at once; other words for the same verdict ("0/5" becomes "0/6") only so often. */
#define TELL_AGAIN_NS ((int64_t)60 * 1000000000)

/* --- what is of interest --- */

static bool is_resident(const struct pod *pod)
{
    return pod_is_scheduled(pod) && !pod_is_terminal(pod);
}

static bool is_for_us(const struct pod *pod)
{
    struct str scheduler = pod->spec->scheduler_name;
    return !pod_is_scheduled(pod) && !pod_is_terminal(pod) && !pod_is_terminating(pod) &&
           !pod_is_gated(pod) && (!scheduler.len || str_eqz(scheduler, "default-scheduler"));
}

static int64_t priority_of(struct binder *b, const struct pod *pod)
{
    struct str name = pod->spec->priority_class_name;
    if (pod->spec->priority.set)
        return pod->spec->priority.value;
    if (name.len) {
        AUTO_OBJECT class = informer_get(b->informers[BINDER_PRIORITIES], STR(""), name);
        if (class)
            return priority_class_of(class)->value;
        return str_eqz(name, "system-node-critical")      ? 2000001000
               : str_eqz(name, "system-cluster-critical") ? 2000000000
                                                          : 0;
    }
    struct object_list list = { 0 };
    int64_t value = 0;
    informer_list(b->informers[BINDER_PRIORITIES], STR(""), &list);
    for (size_t i = 0; i < list.count; i++) {
        if (priority_class_of(list.items[i])->global_default)
            value = priority_class_of(list.items[i])->value;
    }
    object_list_done(&list);
    return value;
}

/* --- waking --- */

static void class_make_ready(struct binder *b, struct class *class)
{
    if (class->ready || !class->waiting.count)
        return;
    class->ready = true;
    vec_push(&b->ready, class);
}

static void class_wake(struct binder *b, struct class *class)
{
    class->blocked = false;
    class_make_ready(b, class);
}

static void class_block(struct binder *b, struct class *class)
{
    class->blocked = true;
    vec_done(&class->heap);
    class->heap_epoch = 0;
    if (!class->listed) {
        class->listed = true;
        vec_push(&b->blocked, class);
    }
    if (!class->telling) {
        class->telling = true;
        vec_push(&b->telling, class);
    }
}

/* Does what happened there help? */
struct relief {
    uint32_t at;                    /* NO_NODE: it is not about a node */
    const struct class *maybe_gone; /* pods of that class have left it */
    bool moved;   /* a node with pods on it left its domains, or is in others now */
    bool volumes; /* what they are has changed */
    bool all;
};

static bool class_has(const struct class *maybe_class, const struct term *term)
{
    for (size_t i = 0; maybe_class && i < maybe_class->terms.count; i++) {
        if (maybe_class->terms.items[i] == term)
            return true;
    }
    return false;
}

static bool helps(const struct binder *b, const struct relief *r, struct class *class)
{
    if (r->all || class->terms.count || (r->volumes && class->has_claims))
        return true;
    vec_each(&class->tag->matched, struct term *, term) {
        if ((*term)->kind == TERM_ANTI && (r->moved || class_has(r->maybe_gone, *term)))
            return true;
    }
    const struct site *site = r->at == NO_NODE ? NULL : b->sites.items[r->at];
    return site && site->maybe_node && ask_fit(class->ask, b, r->at) == ASK_FIT_YES &&
           ask_fits_room(class->ask, site);
}

static void relieve(struct binder *b, struct relief r)
{
    size_t kept = 0;
    for (size_t i = 0; i < b->blocked.count; i++) {
        struct class *class = b->blocked.items[i];
        if (class->blocked && helps(b, &r, class))
            class_wake(b, class);
        if (class->blocked)
            b->blocked.items[kept++] = class;
        else
            class->listed = false;
    }
    b->blocked.count = kept;
}

/* A pod is on a node: those who want to be near it, or as far as others, may go on. */
static void relieve_seekers(struct binder *b, const struct class *came)
{
    vec_each(&came->tag->matched, struct term *, term) {
        if ((*term)->kind == TERM_ANTI)
            continue;
        vec_each(&(*term)->owners, struct class *, owner) {
            if ((*owner)->blocked)
                class_wake(b, *owner);
        }
    }
}

/* --- pods on nodes --- */

static void arrive(struct binder *b, struct class *class, uint32_t at, bool ending)
{
    site_count(b, at, class, ending, 1);
    relieve_seekers(b, class);
}

static void leave(struct binder *b, struct class *class, uint32_t at, bool ending)
{
    site_count(b, at, class, ending, -1);
    bool there = b->sites.items[at] != NULL;
    relieve(b, (struct relief){ .at = there ? at : NO_NODE, .maybe_gone = class });
    class_drop(b, class);
}

/* --- the line of all that wait --- */

static int line_order(const void *x, const void *y)
{
    const struct waiting *a = *(struct waiting *const *)x, *b = *(struct waiting *const *)y;
    const struct meta *p = &a->pod->object.meta, *q = &b->pod->object.meta;
    if (a->priority != b->priority)
        return a->priority > b->priority ? -1 : 1;
    if (p->created_us != q->created_us)
        return p->created_us < q->created_us ? -1 : 1;
    int order = str_cmp(p->namespace_, q->namespace_);
    return order ? order : str_cmp(p->name, q->name);
}

static void line_add(struct binder *b, struct waiting *w)
{
    w->line_at = b->line.count;
    vec_push(&b->line, w);
    b->line_unsorted = true;
}

static void line_remove(struct binder *b, struct waiting *w)
{
    b->line.items[w->line_at] = NULL;
    b->line_gone++;
}

/* Many wait while few go: it is put in order when somebody came, not whenever it is walked. */
static void line_tidy(struct binder *b)
{
    size_t kept = 0;
    if (!b->line_unsorted && b->line_gone * 2 <= b->line.count)
        return;
    vec_each(&b->line, struct waiting *, w) {
        if (*w)
            b->line.items[kept++] = *w;
    }
    b->line.count = kept;
    b->line_gone = 0;
    if (b->line_unsorted && kept)
        qsort(b->line.items, kept, sizeof *b->line.items, line_order);
    b->line_unsorted = false;
    for (size_t i = 0; i < kept; i++)
        b->line.items[i]->line_at = i;
}

/* --- pods that wait --- */

static void waiting_add(struct binder *b, const struct pod *pod)
{
    struct waiting *w = kv_calloc(1, sizeof *w);
    w->pod = pod_of(object_ref(&pod->object));
    w->class = class_of(b, pod);
    w->at = (uint32_t)w->class->waiting.count;
    w->priority = priority_of(b, pod);
    w->assumed = NO_NODE;
    vec_push(&w->class->waiting, w);
    str_table_put(&b->waiting, pod->object.meta.uid, w);
    line_add(b, w);
    if (!w->class->blocked)
        class_make_ready(b, w->class);
    else
        class_block(b, w->class); /* it is told the same */
}

/* Its own count on a node, if it was assumed, is somebody else's now or goes with `forget`. */
static void waiting_end(struct binder *b, struct waiting *w, bool forget)
{
    struct class *class = w->class;
    class->waiting.items[w->at] = vec_last(&class->waiting);
    class->waiting.items[w->at]->at = w->at;
    class->waiting.count--;
    if (!class->waiting.count) {
        vec_done(&class->heap);
        class->heap_epoch = 0;
    }
    str_table_remove(&b->waiting, w->pod->object.meta.uid);
    line_remove(b, w);
    if (forget && w->assumed != NO_NODE)
        leave(b, class, w->assumed, false);
    object_unref(&w->pod->object);
    free(w);
    class_drop(b, class);
}

static void waiting_update(struct binder *b, struct waiting *w, const struct pod *pod)
{
    if (w->assumed == NO_NODE && class_of(b, pod) != w->class) {
        class_drop(b, class_find(b, pod));
        waiting_end(b, w, true);
        waiting_add(b, pod);
        return;
    }
    if (w->assumed == NO_NODE)
        class_drop(b, w->class);
    object_ref(&pod->object);
    object_unref(&w->pod->object);
    w->pod = pod;
}

/* --- what informers tell --- */

static bool pods_alike(const struct pod *a, const struct pod *b) /* but for their status */
{
    return a->spec == b->spec && a->maybe_affinity == b->maybe_affinity &&
           a->object.meta.labels.items == b->object.meta.labels.items &&
           a->volumes.items == b->volumes.items && str_eq(a->node_name, b->node_name) &&
           pod_is_terminating(a) == pod_is_terminating(b) &&
           pod_is_terminal(a) == pod_is_terminal(b);
}

static void pod_came(struct binder *b, const struct pod *pod, struct waiting *maybe_w)
{
    uint32_t at = site_of(b, pod->node_name);
    struct class *class = class_of(b, pod);
    bool ending = pod_is_terminating(pod);
    if (maybe_w && maybe_w->assumed == at && maybe_w->class == class && !ending) {
        class_drop(b, class); /* it is counted, as the assumed one */
        waiting_end(b, maybe_w, false);
        return;
    }
    if (maybe_w)
        waiting_end(b, maybe_w, true);
    arrive(b, class, site_of(b, pod->node_name), ending);
}

static void pod_changed(void *ctx, const struct object *maybe_old, const struct object *maybe_new)
{
    struct binder *b = ctx;
    const struct pod *old = maybe_old ? pod_of(maybe_old) : NULL;
    const struct pod *new = maybe_new ? pod_of(maybe_new) : NULL;
    struct waiting *w = str_table_get(&b->waiting, (new ? new : old)->object.meta.uid);
    if (!w && old && new &&is_resident(old) && pods_alike(old, new) && !pod_resized(old) &&
        !pod_resized(new))
        return; /* the kubelet's news */
    bool stays = new &&is_resident(new);
    if (stays && !(old && is_resident(old)))
        pod_came(b, new, w);
    else if (stays) { /* first come, then go: what both need stays */
        pod_came(b, new, NULL);
        leave(b, class_find(b, old), site_of(b, old->node_name), pod_is_terminating(old));
    } else if (old && is_resident(old))
        leave(b, class_find(b, old), site_of(b, old->node_name), pod_is_terminating(old));
    else if (new &&is_for_us(new) && w)
        waiting_update(b, w, new);
    else if (new &&is_for_us(new))
        waiting_add(b, new);
    else if (w)
        waiting_end(b, w, true);
}

static bool nodes_alike(const struct node *a, const struct node *b)
{
    const struct str_map *p = &a->object.meta.labels, *q = &b->object.meta.labels;
    if (a->status.allocatable.items != b->status.allocatable.items ||
        a->status.capacity.items != b->status.capacity.items || p->items != q->items ||
        a->spec.unschedulable != b->spec.unschedulable ||
        a->spec.taints.count != b->spec.taints.count)
        return false;
    for (uint32_t i = 0; i < a->spec.taints.count; i++) {
        const struct taint *s = &a->spec.taints.items[i], *t = &b->spec.taints.items[i];
        if (!str_eq(s->key, t->key) || !str_eq(s->value, t->value) || s->effect != t->effect)
            return false;
    }
    return true;
}

static void node_changed(void *ctx, const struct object *maybe_old, const struct object *maybe_new)
{
    struct binder *b = ctx;
    const struct node *new = maybe_new ? node_of(maybe_new) : NULL;
    uint32_t at = site_of(b, (maybe_new ? maybe_new : maybe_old)->meta.name);
    struct site *site = b->sites.items[at];
    if (maybe_old && new &&nodes_alike(node_of(maybe_old), new)) {
        object_unref(&site->maybe_node->object);
        site->maybe_node = node_of(object_ref(maybe_new));
        return;
    }
    bool moved = site->residents.count > 0;
    site_set_node(b, at, new);
    relieve(b, (struct relief){ .at = new ? at : NO_NODE, .moved = moved });
}

static void storage_changed(void *ctx, const struct object *maybe_old KV_UNUSED,
                            const struct object *maybe_new KV_UNUSED)
{
    struct binder *b = ctx;
    b->epoch++;
    relieve(b, (struct relief){ .at = NO_NODE, .volumes = true });
}

static void namespace_changed(void *ctx, const struct object *maybe_old,
                              const struct object *maybe_new)
{
    struct binder *b = ctx;
    if (maybe_old && maybe_new && maybe_old->meta.labels.items == maybe_new->meta.labels.items)
        return;
    if (!b->terms.live_count)
        return;
    terms_rematch(b);
    relieve(b, (struct relief){ .at = NO_NODE, .all = true });
}

/* --- binding --- */

static void try_pod(struct binder *b, struct waiting *w)
{
    struct err err = { 0 };
    const struct meta *meta = &w->pod->object.meta;
    uint32_t at = class_pick(b, w->class, w->pod);
    if (at == NO_NODE) {
        b->stats.refused += w->class->waiting.count;
        class_block(b, w->class);
        return;
    }
    if (store_bind(b->options.store, meta->namespace_, meta->name, b->sites.items[at]->name, &err) <
        0)
        return; /* it changed, and the informer will say how */
    b->stats.bound++;
    w->assumed = at;
    w->class->users++; /* as a resident */
    if (b->options.doubt)
        vec_push(&b->bindings, (struct binding){ pod_of(object_ref(&w->pod->object)), at });
    arrive(b, w->class, at, false);
}

/* One pass over all that may go on now; it ends early when no class is left that may. Only a pod that
 * is bound lets others go on. */
static void pass(struct binder *b)
{
    VEC(struct class *) classes = { 0 };
    bool more = true;
    line_tidy(b);
    vec_each(&b->ready, struct class *, class) {
        (*class)->ready = false;
        (*class)->passing = true;
        vec_push(&classes, *class);
    }
    vec_clear(&b->ready);
    for (size_t i = 0; i < b->line.count && more; i++) {
        struct waiting *w = b->line.items[i];
        if (!w || !w->class->passing || w->class->blocked || w->assumed != NO_NODE)
            continue;
        try_pod(b, w);
        if (w->class->blocked) {
            more = false;
            vec_each(&classes, struct class *, class)
                more |= !(*class)->blocked;
        }
    }
    vec_each(&classes, struct class *, class)
        (*class)->passing = false;
    vec_done(&classes);
}

/* --- telling --- */

static void tell_pod(struct binder *b, struct waiting *w, bool is_new)
{
    AUTO_BUF patch = { 0 };
    AUTO_OBJECT patched = NULL;
    char now[TIME_TEXT_MAX];
    struct err err = { 0 };
    const struct meta *meta = &w->pod->object.meta;
    time_format(clock_wall_us(b->options.clock), now);
    buf_addz(&patch, "{\"status\":{\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\","
                     "\"reason\":\"Unschedulable\",\"message\":");
    buf_add_quoted(&patch, str_of(w->class->message));
    if (is_new)
        buf_addf(&patch, ",\"lastTransitionTime\":\"%s\"", now);
    buf_addz(&patch, "}]}}");
    if (store_patch(b->options.store,
                    (struct object_ref){ &pod_kind, meta->namespace_, meta->name },
                    (struct patch_options){ .type = PATCH_STRATEGIC, .status = true },
                    buf_str(&patch), &patched, &err) < 0)
        return; /* gone */
    if (!str_eq(patched->meta.uid, meta->uid))
        return;
    object_unref(&w->pod->object);
    w->pod = pod_of(take(&patched));
}

/* True: there are words that will be told later. */
static bool tell_class(struct binder *b, struct class *class)
{
    int64_t now_ns = clock_mono_ns(b->options.clock);
    bool again = !class->told_ns || now_ns - class->told_ns >= TELL_AGAIN_NS, later = false;
    bool told = false;
    for (size_t i = 0; class->blocked && i < class->waiting.count; i++) {
        struct waiting *w = class->waiting.items[i];
        const struct pod_condition *c = pod_condition(w->pod, STR("PodScheduled"));
        bool is_new = !c || c->status != CONDITION_FALSE;
        bool verdict = !is_new && str_eqz(c->reason, "Unschedulable");
        if (w->assumed != NO_NODE || (verdict && str_eqz(c->message, class->message)))
            continue;
        if (verdict && !again) {
            later = true;
            continue;
        }
        tell_pod(b, w, is_new);
        told = true;
    }
    if (told)
        class->told_ns = now_ns ? now_ns : 1;
    return later;
}

static int64_t tell(struct binder *b)
{
    int64_t due_ns = INT64_MAX;
    size_t kept = 0;
    for (size_t i = 0; i < b->telling.count; i++) {
        struct class *class = b->telling.items[i];
        class->telling = tell_class(b, class);
        if (!class->telling)
            continue;
        int64_t at_ns = class->told_ns + TELL_AGAIN_NS;
        due_ns = at_ns < due_ns ? at_ns : due_ns;
        b->telling.items[kept++] = class;
    }
    b->telling.count = kept;
    return due_ns;
}

/* --- life --- */

static const struct {
    const struct kind *kind;
    informer_handler_fn changed;
} watches[BINDER_WATCH_COUNT] = {
    [BINDER_NAMESPACES] = { &namespace_kind, namespace_changed },
    [BINDER_PRIORITIES] = { &priority_class_kind, NULL },
    [BINDER_CLASSES] = { &storage_class_kind, storage_changed },
    [BINDER_VOLUMES] = { &pv_kind, storage_changed },
    [BINDER_CLAIMS] = { &pvc_kind, storage_changed },
    [BINDER_CSI_NODES] = { &csi_node_kind, storage_changed },
    [BINDER_NODES] = { &node_kind, node_changed },
    [BINDER_PODS] = { &pod_kind, pod_changed },
};

struct binder *binder_new(struct binder_options options)
{
    struct binder *b = kv_calloc(1, sizeof *b);
    b->options = options;
    b->epoch = 1;
    b->cpu = resource_id(b, STR("cpu"));
    b->memory = resource_id(b, STR("memory"));
    b->pods = resource_id(b, STR("pods"));
    for (unsigned i = 0; i < BINDER_WATCH_COUNT; i++) {
        b->informers[i] = informer_new((struct informer_options){ .store = options.store,
                                                                  .kind = watches[i].kind,
                                                                  .clock = options.clock,
                                                                  .seed = options.seed + i });
        if (watches[i].changed)
            informer_on_change(b->informers[i], watches[i].changed, b);
    }
    return b;
}

/* Everything goes as if every pod did. */
static void forget_pods(struct binder *b)
{
    str_table_each(&b->waiting, slot)
        waiting_end(b, slot->value, true);
    for (uint32_t at = 0; at < b->sites.count; at++) {
        struct site *site = b->sites.items[at];
        while (site && site->residents.count) {
            struct resident r = vec_pop(&site->residents);
            for (uint32_t i = 0; i < r.live + r.ending; i++)
                class_drop(b, r.class);
        }
    }
}

void binder_free(struct binder *b)
{
    if (!b)
        return;
    for (unsigned i = 0; i < BINDER_WATCH_COUNT; i++)
        informer_free(b->informers[i]);
    vec_clear(&b->blocked); /* nobody is woken any more */
    forget_pods(b);
    vec_each(&b->sites, struct site *, site)
        site_free(*site);
    vec_done(&b->sites);
    vec_done(&b->sites_free);
    binder_terms_done(b);
    str_table_done(&b->node_ids);
    str_table_done(&b->resources);
    vec_done(&b->resource_names);
    str_table_done(&b->asks);
    str_table_done(&b->tags);
    str_table_done(&b->classes);
    str_table_done(&b->waiting);
    vec_done(&b->blocked);
    vec_done(&b->ready);
    vec_done(&b->line);
    vec_done(&b->telling);
    vec_done(&b->bindings);
    free(b->maybe_disagreement);
    arena_done(&b->scratch);
    free(b);
}

int64_t binder_step(struct binder *b)
{
    for (unsigned i = 0; i < BINDER_WATCH_COUNT; i++)
        informer_pump(b->informers[i]);
    while (b->ready.count) /* each pass binds a pod, or blocks all that it tried */
        pass(b);
    if (b->bindings.count)
        doubt(b);
    int64_t next_ns = tell(b);
    for (unsigned i = 0; i < BINDER_WATCH_COUNT; i++) {
        int64_t due_ns = informer_due_ns(b->informers[i]);
        next_ns = due_ns < next_ns ? due_ns : next_ns;
    }
    return next_ns;
}

struct binder_stats binder_stats(const struct binder *b)
{
    return b->stats;
}

const char *binder_disagreement(const struct binder *b)
{
    return b->maybe_disagreement;
}

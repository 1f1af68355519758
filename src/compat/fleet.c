/* Nodes come and go, and publish features.
 *
 * A node is a Node and any number of NodeFeatures, which come in any order. Each change ends in the class that
 * the node should be in now; nothing else is kept up to date, so that events which are lost, repeated or in
 * another order do no harm. A heartbeat, which changes nothing that is looked at here, costs a lookup.
 */
#include "compat/fleet_inner.h"

#include "api/nodeclaim.h"

/* --- nodes --- */

static struct fleet_node *node_get(struct fleet *f, struct str name)
{
    struct fleet_node *node = str_table_get(&f->nodes, name);
    if (!node) {
        node = kv_calloc(1, sizeof *node);
        str_table_put(&f->nodes, name, node);
        node->name = str_table_slot(&f->nodes, name)->key;
    }
    return node;
}

static void node_free(struct fleet *f, struct fleet_node *node)
{
    fleet_class_drop(f, node->maybe_class);
    fleet_machine_drop(f, node->maybe_machine);
    vec_each(&node->features, const struct node_feature *, it)
        object_unref(&(*it)->object);
    vec_done(&node->features);
    free((char *)node->image.p);
    free(node);
}

/* Nothing is known of it any more. */
static void node_forget_if_empty(struct fleet *f, struct fleet_node *node)
{
    if (node->exists || node->features.count || node->image.len)
        return;
    str_table_remove(&f->nodes, node->name);
    node_free(f, node);
}

static void node_appear(struct fleet *f, struct fleet_node *node)
{
    pthread_rwlock_wrlock(&f->lock);
    if (f->ixs_free.count) {
        node->ix = vec_pop(&f->ixs_free);
        f->class_of.items[node->ix] = CLASS_NONE;
    } else {
        node->ix = (uint32_t)f->class_of.count;
        vec_push(&f->class_of, CLASS_NONE);
    }
    str_table_put(&f->names, node->name, (void *)((uintptr_t)node->ix + 1));
    pthread_rwlock_unlock(&f->lock);
    node->exists = true;
}

static void node_vanish(struct fleet *f, struct fleet_node *node)
{
    pthread_rwlock_wrlock(&f->lock);
    str_table_remove(&f->names, node->name);
    f->class_of.items[node->ix] = CLASS_NONE;
    pthread_rwlock_unlock(&f->lock);
    vec_push(&f->ixs_free, node->ix);
    fleet_class_drop(f, take(&node->maybe_class));
    fleet_machine_drop(f, take(&node->maybe_machine));
    node->exists = false;
    atomic_fetch_add(&f->generation, 1);
}

struct fleet_class *fleet_node_class(struct fleet *f, const struct fleet_node *node)
{
    const struct machine_kind *machine = &node->maybe_machine->machine;
    if (node->features.count)
        return fleet_class_observed(f, node);
    if (f->options.unobserved == UNOBSERVED_REJECT)
        return fleet_class_hold(f, NULL, machine, true);
    struct fleet_class *class = fleet_machine_class(f, node->maybe_machine, machine);
    class->users++;
    return class;
}

uint32_t fleet_move(struct fleet *f, const struct fleet_move *moves, size_t count)
{
    uint32_t moved = 0;
    pthread_rwlock_wrlock(&f->lock);
    for (size_t i = 0; i < count; i++)
        f->class_of.items[moves[i].node->ix] = moves[i].maybe_class->slot;
    pthread_rwlock_unlock(&f->lock);
    for (size_t i = 0; i < count; i++) {
        struct fleet_class *old = moves[i].node->maybe_class;
        moved += old != moves[i].maybe_class;
        moves[i].node->maybe_class = moves[i].maybe_class;
        fleet_class_drop(f, old);
    }
    return moved;
}

static void node_settle(struct fleet *f, struct fleet_node *node)
{
    if (!node->exists)
        return;
    struct fleet_class *class = fleet_node_class(f, node);
    if (class == node->maybe_class) {
        fleet_class_drop(f, class);
        return;
    }
    fleet_move(f, &(struct fleet_move){ node, class }, 1);
    atomic_fetch_add(&f->generation, 1);
}

/* The Node or its claim says what machine it is. */
static struct fleet_lesson *node_identify(struct fleet *f, struct fleet_node *node,
                                          struct machine_kind machine)
{
    struct fleet_machine *before = node->maybe_machine;
    machine.image = node->image;
    node->maybe_machine = fleet_machine_hold(f, &machine);
    fleet_machine_drop(f, before);
    if (node->maybe_machine == before)
        return NULL;
    node_settle(f, node);
    return fleet_lesson_of(f, node);
}

void fleet_observe_node(void *fleet, const struct object *maybe_old, const struct object *maybe_new)
{
    struct fleet *f = fleet;
    struct fleet_lesson *lesson = NULL;
    if (!maybe_old && !maybe_new)
        return;
    struct str name = (maybe_new ? maybe_new : maybe_old)->meta.name;
    pthread_mutex_lock(&f->change);
    struct fleet_node *node = maybe_new ? node_get(f, name) : str_table_get(&f->nodes, name);
    if (maybe_new) {
        struct machine_kind machine;
        machine_of_node(node_of(maybe_new), &machine);
        if (!node->exists)
            node_appear(f, node);
        lesson = node_identify(f, node, machine);
    } else if (node) {
        if (node->exists)
            node_vanish(f, node);
        node_forget_if_empty(f, node);
    }
    pthread_mutex_unlock(&f->change);
    fleet_learn(f, lesson);
}

void fleet_observe_claim(void *fleet, const struct object *maybe_old,
                         const struct object *maybe_new)
{
    struct fleet *f = fleet;
    struct fleet_lesson *lesson = NULL;
    if (!maybe_old && !maybe_new)
        return;
    const struct nodeclaim_status *status =
        &nodeclaim_of(maybe_new ? maybe_new : maybe_old)->status;
    struct str image = maybe_new && status->image_id.p ? status->image_id : STR("");
    if (status->node_name.len == 0)
        return;
    pthread_mutex_lock(&f->change);
    struct fleet_node *node = node_get(f, status->node_name);
    if (!str_eq(node->image, image)) {
        free((char *)node->image.p);
        node->image = (struct str){ str_dup(image), image.len };
        if (node->exists)
            lesson = node_identify(f, node, node->maybe_machine->machine);
    }
    node_forget_if_empty(f, node);
    pthread_mutex_unlock(&f->change);
    fleet_learn(f, lesson);
}

/* --- features --- */

static void feature_take_out(struct fleet_node *node, const struct meta *meta)
{
    size_t kept = 0;
    for (size_t i = 0; i < node->features.count; i++) {
        const struct node_feature *nf = node->features.items[i];
        if (str_eq(nf->object.meta.name, meta->name) &&
            str_eq(nf->object.meta.namespace_, meta->namespace_))
            object_unref(&nf->object);
        else
            node->features.items[kept++] = nf;
    }
    node->features.count = kept;
}

void fleet_observe_feature(void *fleet, const struct object *maybe_old,
                           const struct object *maybe_new)
{
    struct fleet *f = fleet;
    struct fleet_lesson *lesson = NULL;
    AUTO_BUF key = { 0 };
    if (!maybe_old && !maybe_new)
        return;
    const struct meta *meta = &(maybe_new ? maybe_new : maybe_old)->meta;
    buf_addf(&key, "%.*s/%.*s", STR_ARG(meta->namespace_), STR_ARG(meta->name));
    struct str name = maybe_new ? node_feature_node(node_feature_of(maybe_new)) : STR_NONE;

    pthread_mutex_lock(&f->change);
    /* Who had it is not read from the old object: that one may never have come. */
    struct fleet_node *before = str_table_remove(&f->nodes_by_feature, buf_str(&key));
    struct fleet_node *now = name.p ? node_get(f, name) : NULL;
    if (before)
        feature_take_out(before, meta);
    if (now) {
        vec_push(&now->features, node_feature_of(object_ref(maybe_new)));
        str_table_put(&f->nodes_by_feature, buf_str(&key), now);
        node_settle(f, now);
        lesson = fleet_lesson_of(f, now);
    }
    if (before && before != now) {
        node_settle(f, before);
        node_forget_if_empty(f, before);
    }
    pthread_mutex_unlock(&f->change);
    fleet_learn(f, lesson);
}

void fleet_set_nfd_namespace(struct fleet *f, struct str namespace_)
{
    pthread_mutex_lock(&f->change);
    if (!str_eq(f->options.nfd_namespace, namespace_)) {
        free((char *)f->options.nfd_namespace.p);
        f->options.nfd_namespace = (struct str){ str_dup(namespace_), namespace_.len };
        str_table_each(&f->nodes, it) {
            struct fleet_node *node = it->value;
            if (node->features.count > 1)
                node_settle(f, node);
        }
    }
    pthread_mutex_unlock(&f->change);
}

/* --- predictions --- */

void fleet_refresh(struct fleet *f)
{
    if (!f->options.maybe_predictor || f->options.unobserved != UNOBSERVED_PREDICT)
        return;
    uint64_t version = predictor_generation(f->options.maybe_predictor);
    if (version == atomic_load(&f->predictor_version) || pthread_mutex_trylock(&f->change) != 0)
        return;
    VEC(struct fleet_move) moves = { 0 };
    str_table_each(&f->nodes, it) {
        struct fleet_node *node = it->value;
        if (node->exists && node->features.count == 0)
            vec_push(&moves, (struct fleet_move){ node, fleet_node_class(f, node) });
    }
    if (moves.count && fleet_move(f, moves.items, moves.count) > 0)
        atomic_fetch_add(&f->generation, 1);
    atomic_store(&f->predictor_version, version);
    vec_done(&moves);
    pthread_mutex_unlock(&f->change);
}

uint64_t fleet_generation(struct fleet *f)
{
    uint64_t predictions =
        f->options.maybe_predictor ? predictor_generation(f->options.maybe_predictor) : 0;
    return atomic_load(&f->generation) + predictions;
}

/* --- the whole --- */

/* Classes that nodes are in, and nodes that have been observed. With `lock` held. */
static void count_nodes(const struct fleet *f, struct fleet_stats *stats)
{
    AUTO_FREE bool *seen = kv_calloc(f->classes.count + 1, sizeof *seen);
    for (size_t i = 0; i < f->class_of.count; i++) {
        uint32_t slot = f->class_of.items[i];
        if (slot == CLASS_NONE)
            continue;
        stats->observed += !f->classes.items[slot]->unobserved;
        stats->classes += !seen[slot];
        seen[slot] = true;
    }
    stats->nodes = f->names.live_count;
}

struct fleet_stats fleet_stats(struct fleet *f)
{
    struct fleet_stats stats = { .judged = atomic_load(&f->judged),
                                 .evaluated = atomic_load(&f->evaluated) };
    pthread_rwlock_rdlock(&f->lock);
    count_nodes(f, &stats);
    stats.bytes = f->cell_bytes + f->class_of.cap * sizeof(uint32_t) +
                  f->classes.count * sizeof(struct fleet_class) +
                  stats.nodes * (sizeof(struct fleet_node) + 3 * sizeof(struct str_slot)) +
                  f->machines.live_count * sizeof(struct fleet_machine);
    pthread_rwlock_unlock(&f->lock);
    pthread_mutex_lock(&f->demand_lock);
    stats.demands = f->demands.live_count;
    pthread_mutex_unlock(&f->demand_lock);
    stats.bytes += feature_sets_stats(f->pool).bytes;
    return stats;
}

static void collect(void *fleet)
{
    struct fleet *f = fleet;
    struct fleet_stats stats = fleet_stats(f);
    metric_set(f->maybe_nodes, stats.nodes);
    metric_set(f->maybe_classes, stats.classes);
    metric_set(f->maybe_demands, stats.demands);
}

static struct metric *metric_of(struct metrics *m, const char *name, const char *help,
                                enum metric_type type)
{
    struct metric_desc desc = { .name = name, .help = help, .type = type };
    return metric_get(metrics_family(m, &desc), NULL);
}

static void metrics_start(struct fleet *f, struct metrics *m)
{
    f->maybe_nodes =
        metric_of(m, "karve_compat_nodes", "Nodes that images are judged against.", METRIC_GAUGE);
    f->maybe_classes = metric_of(m, "karve_compat_classes",
                                 "Classes of nodes that no rule in use tells apart.", METRIC_GAUGE);
    f->maybe_demands = metric_of(m, "karve_compat_demands",
                                 "Different lists of images that pods have.", METRIC_GAUGE);
    f->maybe_evaluated = metric_of(
        m, "karve_compat_evaluations_total",
        "Images evaluated against a class; other verdicts are remembered.", METRIC_COUNTER);
    metrics_on_collect(m, collect, f);
}

struct fleet *fleet_new(struct fleet_options options)
{
    struct fleet *f = kv_calloc(1, sizeof *f);
    pthread_rwlockattr_t writers_first;
    f->options = options;
    f->options.nfd_namespace.p = str_dup(options.nfd_namespace);
    f->pool = feature_sets_new();
    feature_mask_settle(&f->mask);
    pthread_mutex_init(&f->change, NULL);
    pthread_mutex_init(&f->demand_lock, NULL);
    /* Or filters that overlap, one after another, would keep every change out. */
    pthread_rwlockattr_init(&writers_first);
    pthread_rwlockattr_setkind_np(&writers_first, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&f->lock, &writers_first);
    pthread_rwlockattr_destroy(&writers_first);
    if (options.maybe_metrics)
        metrics_start(f, options.maybe_metrics);
    return f;
}

void fleet_free(struct fleet *f)
{
    if (!f)
        return;
    KV_ASSERT(f->demands.live_count == 0);
    if (f->options.maybe_metrics)
        metrics_on_collect_remove(f->options.maybe_metrics, collect, f);
    metric_unref(f->maybe_nodes);
    metric_unref(f->maybe_classes);
    metric_unref(f->maybe_demands);
    metric_unref(f->maybe_evaluated);
    str_table_each(&f->nodes, it)
        node_free(f, it->value);
    str_table_each(&f->machines, it)
        fleet_machine_free(f, it->value);
    KV_ASSERT(f->classes_by_key.live_count == 0);
    str_table_done(&f->nodes);
    str_table_done(&f->nodes_by_feature);
    str_table_done(&f->classes_by_key);
    str_table_done(&f->names);
    str_table_done(&f->machines);
    str_table_done(&f->demands);
    map_done(&f->rows);
    vec_done(&f->slots_free);
    vec_done(&f->ixs_free);
    vec_done(&f->class_of);
    vec_done(&f->classes);
    feature_mask_done(&f->mask);
    arena_done(&f->mask_texts);
    buf_done(&f->key);
    feature_sets_free(f->pool);
    pthread_rwlock_destroy(&f->lock);
    pthread_mutex_destroy(&f->change);
    pthread_mutex_destroy(&f->demand_lock);
    free((char *)f->options.nfd_namespace.p);
    free(f);
}

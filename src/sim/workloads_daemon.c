/* DaemonSets: a pod on each node that the template selects and tolerates. The pod is for that node
 * alone (affinity by its name), and kube-scheduler binds it.
 *
 * A node that no longer suits loses the pod only if the reason is its labels or a NoExecute taint. Only
 * nodes that changed, or whose pod did, are looked at.
 */
#include "sim/workloads_impl.h"

#include "api/builtin.h"
#include "sim/binder_match.h"

#define POD_SUFFIX 5
#define POD_NAME_MAX 63
#define NAME_TRIES 100

static const struct toleration added_tolerations[] = {
    { .key = STR("node.kubernetes.io/not-ready"), .effect = EFFECT_NO_EXECUTE },
    { .key = STR("node.kubernetes.io/unreachable"), .effect = EFFECT_NO_EXECUTE },
    { .key = STR("node.kubernetes.io/disk-pressure"), .effect = EFFECT_NO_SCHEDULE },
    { .key = STR("node.kubernetes.io/memory-pressure"), .effect = EFFECT_NO_SCHEDULE },
    { .key = STR("node.kubernetes.io/pid-pressure"), .effect = EFFECT_NO_SCHEDULE },
    { .key = STR("node.kubernetes.io/unschedulable"), .effect = EFFECT_NO_SCHEDULE },
    /* Only with the host's network; it stands last. */
    { .key = STR("node.kubernetes.io/network-unavailable"), .effect = EFFECT_NO_SCHEDULE },
};

static uint32_t added_count(const struct pod_spec *spec)
{
    return (uint32_t)KV_COUNT_OF(added_tolerations) - !spec->host_network;
}

/* --- the mould --- */

static void add_tolerations(struct draft *d, const json_val *template, const struct pod_spec *spec)
{
    json_mut *list = json_new_array(&d->b);
    json_each_item(json_path(template, "spec.tolerations"), own)
        json_push(&d->b, list, json_copy(&d->b, own));
    for (uint32_t i = 0; i < added_count(spec); i++) {
        const struct toleration *from = &added_tolerations[i];
        json_mut *to = json_new_object(&d->b);
        json_set_str(&d->b, to, "key", from->key);
        json_set_str(&d->b, to, "operator", STR("Exists"));
        json_set_str(&d->b, to, "effect",
                     from->effect == EFFECT_NO_EXECUTE ? STR("NoExecute") : STR("NoSchedule"));
        json_push(&d->b, list, to);
    }
    json_set(&d->b, d->spec, STR("tolerations"), list);
}

static json_mut *name_field(struct draft *d)
{
    json_mut *field = json_new_object(&d->b), *values = json_new_array(&d->b),
             *fields = json_new_array(&d->b);
    json_push(&d->b, values, json_new_str(&d->b, d->detail));
    json_set_str(&d->b, field, "key", STR("metadata.name"));
    json_set_str(&d->b, field, "operator", STR("In"));
    json_set(&d->b, field, STR("values"), values);
    json_push(&d->b, fields, field);
    return fields;
}

/* Each term of the template, and the node's name. */
static void add_affinity(struct draft *d, const json_val *template)
{
    const struct str key = STR("requiredDuringSchedulingIgnoredDuringExecution");
    const json_val *affinity = json_path(template, "spec.affinity");
    const json_val *node = json_get(affinity, STR("nodeAffinity"));
    const json_val *own = json_get(json_get(node, key), STR("nodeSelectorTerms"));
    json_mut *terms = json_new_array(&d->b);
    json_each_item(own, term) {
        json_mut *copy = json_copy(&d->b, term);
        json_set(&d->b, copy, STR("matchFields"), name_field(d));
        json_push(&d->b, terms, copy);
    }
    if (!json_count(own)) {
        json_mut *term = json_new_object(&d->b);
        json_set(&d->b, term, STR("matchFields"), name_field(d));
        json_push(&d->b, terms, term);
    }
    json_mut *to = json_mut_object(&d->b, json_mut_object(&d->b, d->spec, STR("affinity")),
                                   STR("nodeAffinity"));
    json_set(&d->b, json_mut_object(&d->b, to, key), STR("nodeSelectorTerms"), terms);
}

void daemon_set_read(struct workloads *w KV_UNUSED, struct maker *m, struct str text,
                     const json_val *root)
{
    const json_val *template = json_path(root, "spec.template");
    const struct daemon_set *set = daemon_set_of(m->maybe_object);
    struct draft d;
    AUTO_BUF prefix = { 0 };
    template_hash(template, STR(""), m->hash);
    draft_init(&d, text, m->maybe_object, template);
    buf_addf(&prefix, "%.*s-", STR_ARG(set->object.meta.name));
    json_set_str(&d.b, d.meta, "generateName", buf_str(&prefix));
    json_set(&d.b, d.labels, LABEL_REVISION_HASH, json_new_str(&d.b, str_of(m->hash)));
    add_tolerations(&d, template, &set->spec.maybe_template->spec);
    add_affinity(&d, template);
    draft_cast(&d, &m->mould);
    draft_done(&d);
    m->all_nodes = true;
}

/* --- its nodes --- */

static struct daemon_node *node_mark(struct maker *m, struct str name)
{
    struct daemon_node *n = str_table_get(&m->nodes, name);
    if (!n) {
        n = kv_calloc(1, sizeof *n);
        str_table_put(&m->nodes, name, n);
    }
    if (!n->dirty) {
        n->dirty = true;
        vec_push(&m->dirty_nodes, n);
        vec_push(&m->dirty_names, str_table_slot(&m->nodes, name)->key);
    }
    return n;
}

void daemon_set_node_changed(struct maker *m, struct str name)
{
    node_mark(m, name);
}

static struct str target_of(const struct pod *pod)
{
    return pod->node_name.len ? pod->node_name : pod_only_node(pod->maybe_affinity);
}

void daemon_set_pod_changed(struct maker *m, const struct pod *maybe_old,
                            const struct pod *maybe_new)
{
    struct str from = maybe_old ? target_of(maybe_old) : STR("");
    struct str to = maybe_new ? target_of(maybe_new) : STR("");
    if (from.len) {
        struct daemon_node *n = node_mark(m, from);
        size_t kept = 0;
        for (size_t i = 0; i < n->pods.count; i++) {
            const struct object *pod = n->pods.items[i];
            if (str_eq(pod->meta.uid, maybe_old->object.meta.uid))
                object_unref(pod);
            else
                n->pods.items[kept++] = pod;
        }
        n->pods.count = kept;
    }
    if (to.len) {
        struct daemon_node *n = node_mark(m, to);
        vec_push(&n->pods, object_ref(&maybe_new->object));
    }
}

void daemon_set_done(struct maker *m)
{
    str_table_each(&m->nodes, slot) {
        struct daemon_node *n = slot->value;
        vec_each(&n->pods, const struct object *, pod)
            object_unref(*pod);
        vec_done(&n->pods);
        free(n);
    }
    str_table_done(&m->nodes);
    vec_done(&m->dirty_nodes);
    vec_done(&m->dirty_names);
}

/* --- one node --- */

struct wish {
    bool run, stay;
};

static struct wish wish_of(const struct daemon_set *set, const struct node *maybe_node,
                           const struct toleration *tolerations, uint32_t count)
{
    const struct pod_spec *spec = &set->spec.maybe_template->spec;
    if (!maybe_node || !node_matches_pod(maybe_node, spec, spec->affinity))
        return (struct wish){ 0 };
    return (struct wish){
        .run = !node_taint_in_the_way(maybe_node, EFFECTS_THAT_REPEL, tolerations, count),
        .stay = !node_taint_in_the_way(maybe_node, 1u << EFFECT_NO_EXECUTE, tolerations, count),
    };
}

static void create(struct workloads *w, struct maker *m, struct str node)
{
    AUTO_BUF name = { 0 }, json = { 0 };
    for (unsigned tries = 0; tries < NAME_TRIES; tries++) {
        char suffix[POD_SUFFIX + 1];
        bool exists = false;
        rng_name(&m->rng, suffix, POD_SUFFIX);
        buf_clear(&name);
        buf_add(&name, str_sub(m->maybe_object->meta.name, 0, POD_NAME_MAX - POD_SUFFIX - 1));
        buf_addf(&name, "-%s", suffix);
        buf_clear(&json);
        mould_fill(&m->mould, buf_str(&name), node, &json);
        maker_create(w, m, WATCH_PODS, buf_str(&json), &exists);
        if (!exists)
            return;
    }
}

static bool is_current(const struct maker *m, const struct pod *pod)
{
    return str_eqz(str_map_get(&pod->object.meta.labels, LABEL_REVISION_HASH), m->hash);
}

static void manage(struct workloads *w, struct maker *m, struct str name, struct daemon_node *n,
                   struct wish wish)
{
    const struct daemon_set *set = daemon_set_of(m->maybe_object);
    const struct pod *keeper = NULL;
    bool waiting = false;
    for (size_t i = 0; i < n->pods.count; i++) {
        const struct pod *pod = pod_of(n->pods.items[i]);
        if (pod_is_terminating(pod) || str_table_has(&w->going, pod->object.meta.uid)) {
            waiting = true; /* its place is taken until it is gone */
        } else if (pod_is_terminal(pod)) {
            pod_remove(w, m, pod);
            waiting = true;
        } else if (!wish.stay || keeper) {
            pod_remove(w, m, pod);
        } else {
            keeper = pod;
        }
    }
    n->desired = wish.run;
    n->scheduled = wish.run && keeper;
    n->misscheduled = !wish.run && keeper;
    n->ready = n->scheduled && pod_is_ready(keeper);
    n->available = n->scheduled && pod_is_available(w, m, keeper, set->spec.min_ready_s);
    n->updated = n->scheduled && is_current(m, keeper);
    if (keeper && n->ready && !n->available)
        m->all_nodes = true; /* which of them will be is not kept */
    if (wish.run && !keeper && !waiting)
        create(w, m, name);
}

/* --- a new template --- */

static void update(struct workloads *w, struct maker *m)
{
    static const struct int_or_str one = { .number = 1, .set = true };
    const struct daemon_set_strategy *strategy = &daemon_set_of(m->maybe_object)->spec.strategy;
    const struct rolling_update *rolling = strategy->maybe_rolling;
    if (strategy->type == UPDATE_ON_DELETE)
        return;
    int64_t desired = 0, down = 0;
    str_table_each(&m->nodes, slot) {
        const struct daemon_node *n = slot->value;
        desired += n->desired;
        down += n->desired && !n->available;
    }
    int64_t may = int_or_percent_of(
        rolling && rolling->max_unavailable.set ? &rolling->max_unavailable : &one, desired, true);
    may = may > 0 ? may : 1;
    str_table_each(&m->nodes, slot) {
        const struct daemon_node *n = slot->value;
        if (!n->scheduled || n->updated || (n->available && down >= may))
            continue;
        for (size_t i = 0; i < n->pods.count; i++) {
            const struct pod *pod = pod_of(n->pods.items[i]);
            if (pod_is_active(w, pod) && !is_current(m, pod))
                pod_remove(w, m, pod);
        }
        down += n->available;
    }
}

static void write_status(struct workloads *w, struct maker *m)
{
    const struct daemon_set_status *was = &daemon_set_of(m->maybe_object)->status;
    struct daemon_set_status is = { .observed_generation = m->maybe_object->meta.generation };
    str_table_each(&m->nodes, slot) {
        const struct daemon_node *n = slot->value;
        is.desired += n->desired;
        is.scheduled += n->scheduled;
        is.misscheduled += n->misscheduled;
        is.ready += n->ready;
        is.available += n->available;
        is.updated += n->updated;
    }
    is.unavailable = is.desired - is.available;
    if (was->observed_generation == is.observed_generation && was->desired == is.desired &&
        was->scheduled == is.scheduled && was->misscheduled == is.misscheduled &&
        was->ready == is.ready && was->available == is.available && was->updated == is.updated &&
        was->unavailable == is.unavailable)
        return;
    AUTO_BUF patch = { 0 };
    buf_addf(&patch,
             "{\"status\":{\"observedGeneration\":%lld,\"desiredNumberScheduled\":%lld,"
             "\"currentNumberScheduled\":%lld,\"numberMisscheduled\":%lld,\"numberReady\":%lld,"
             "\"numberAvailable\":%lld,\"numberUnavailable\":%lld,"
             "\"updatedNumberScheduled\":%lld}}",
             (long long)is.observed_generation, (long long)is.desired, (long long)is.scheduled,
             (long long)is.misscheduled, (long long)is.ready, (long long)is.available,
             (long long)is.unavailable, (long long)is.updated);
    maker_status(w, m, buf_str(&patch));
}

static void mark_all(struct workloads *w, struct maker *m)
{
    struct object_list nodes = { 0 };
    informer_list(w->informers[WATCH_NODES], STR(""), &nodes);
    for (size_t i = 0; i < nodes.count; i++)
        node_mark(m, nodes.items[i]->meta.name);
    object_list_done(&nodes);
    str_table_each(&m->nodes, slot)
        node_mark(m, slot->key);
    m->all_nodes = false;
}

static void forget_gone(struct maker *m, struct str name, struct daemon_node *n)
{
    if (n->pods.count)
        return;
    vec_done(&n->pods);
    str_table_remove(&m->nodes, name);
    free(n);
}

void daemon_set_sync(struct workloads *w, struct maker *m)
{
    const struct daemon_set *set = daemon_set_of(m->maybe_object);
    const struct pod_spec *spec = &set->spec.maybe_template->spec;
    uint32_t own = spec->tolerations.count, added = added_count(spec);
    struct toleration *tolerations =
        arena_array(&w->scratch, struct toleration, (size_t)own + added);
    for (uint32_t i = 0; i < own; i++)
        tolerations[i] = spec->tolerations.items[i];
    for (uint32_t i = 0; i < added; i++) {
        tolerations[own + i] = added_tolerations[i];
        tolerations[own + i].op = TOLERATION_EXISTS;
    }

    if (m->all_nodes)
        mark_all(w, m);
    for (size_t i = 0; i < m->dirty_nodes.count; i++) {
        struct daemon_node *n = m->dirty_nodes.items[i];
        struct str name = m->dirty_names.items[i];
        AUTO_OBJECT node = informer_get(w->informers[WATCH_NODES], STR(""), name);
        n->dirty = false;
        manage(w, m, name, n, wish_of(set, node ? node_of(node) : NULL, tolerations, own + added));
        if (!node)
            forget_gone(m, name, n);
    }
    vec_clear(&m->dirty_nodes);
    vec_clear(&m->dirty_names);
    update(w, m);
    write_status(w, m);
}

/* Who is waiting for a node, and what they ask for.
 *
 * Objects share what they have in common (api/object.h), so pods of one workload are recognised by
 * pointers and looked at once: one hash of a few words per pod, and everything else per sort.
 *
 * Requests are turned into vectors once it is known which resources pending pods ask for. What only
 * running pods use does not matter to anybody. There are at most RESOURCES_MAX, the first by name.
 */
#include "sched/model_inner.h"
#include "sched/model_memo.h"
#include "sched/words.h"

#include "api/requests.h"

/* --- small things --- */

static int number_order(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

uint32_t numbers_sort_unique(uint32_t *items, uint32_t count)
{
    uint32_t kept = 0;
    qsort(items, count, sizeof *items, number_order);
    for (uint32_t i = 0; i < count; i++) {
        if (!kept || items[kept - 1] != items[i])
            items[kept++] = items[i];
    }
    return kept;
}

const struct plan_blame *blame_new(struct compile *c, enum plan_reason reason, struct str detail)
{
    struct plan_blame *blame = arena_new(c->arena, struct plan_blame);
    *blame = (struct plan_blame){ PLAN_NONE, reason, detail };
    return blame;
}

int pod_order(const struct pod *a, const struct pod *b)
{
    int order = str_cmp(a->object.meta.namespace_, b->object.meta.namespace_);
    if (order == 0)
        order = str_cmp(a->object.meta.name, b->object.meta.name);
    return order ? order : str_cmp(a->object.meta.uid, b->object.meta.uid);
}

struct str pod_node(const struct pod *pod)
{
    return pod_is_scheduled(pod) ? pod->node_name : pod->status->nominated_node;
}

/* --- states --- */

static const struct str nominated = STR("nominated to a node");

static bool owned_by(const struct pod *pod, const char *kind, const char *api_prefix)
{
    const struct meta *meta = &pod->object.meta;
    for (uint32_t i = 0; i < meta->owners.count; i++) {
        const struct owner_ref *owner = &meta->owners.items[i];
        if (str_eqz(owner->kind, kind) && str_starts(owner->api_version, str_of(api_prefix)))
            return true;
    }
    return false;
}

static bool shuns_pools(const struct node_selector_term *term)
{
    for (uint32_t i = 0; i < term->expressions.count; i++) {
        const struct expression *e = &term->expressions.items[i];
        if (e->op == OP_DOES_NOT_EXIST && str_eq(e->key, STR(LABEL_NODEPOOL)))
            return true;
    }
    return false;
}

/* Every term of the required node affinity says that the node must be of no pool. */
static bool opted_out(const struct pod *pod)
{
    const struct affinity *affinity = pod->maybe_affinity;
    const struct node_selector *required = affinity ? affinity->node.maybe_required : NULL;
    if (!required || !required->terms.count)
        return false;
    for (uint32_t i = 0; i < required->terms.count; i++) {
        if (!shuns_pools(&required->terms.items[i]))
            return false;
    }
    return true;
}

static bool called_unschedulable(const struct pod *pod)
{
    const struct pod_condition *scheduled = pod_condition(pod, STR("PodScheduled"));
    return scheduled && scheduled->status == CONDITION_FALSE &&
           str_eq(scheduled->reason, STR("Unschedulable"));
}

/* "" for a pod that is pending. */
static struct str skip_reason(const struct compile *c, const struct pod *pod)
{
    if (pod_is_mirror(pod) || owned_by(pod, "Node", "v1"))
        return STR("mirror of a static pod");
    if (owned_by(pod, "DaemonSet", "apps/"))
        return STR("owned by a DaemonSet");
    if (pod_is_terminating(pod))
        return STR("being deleted");
    if (pod_is_gated(pod))
        return STR("scheduling gate");
    if (pod->status->nominated_node.len)
        return nominated;
    if (opted_out(pod))
        return STR("opted out of NodePools");
    if (c->m->options.only_unschedulable && !called_unschedulable(pod))
        return STR("not yet seen by the scheduler");
    return STR("");
}

static enum pod_state pod_judge(struct compile *c, const struct str_table *nodes, uint32_t ix)
{
    const struct pod *pod = c->m->snap->pods[ix];
    struct str why = STR("finished");
    if (snapshot_pod_displaced(c->m->snap, ix))
        return POD_PENDING;
    if (!pod_is_terminal(pod)) {
        if (pod_is_scheduled(pod))
            return str_table_has(nodes, pod->node_name) ? POD_BOUND : POD_GONE;
        why = skip_reason(c, pod);
    }
    if (!why.len)
        return POD_PENDING;
    vec_push(&c->skips, (struct plan_skip){ .pod = ix, .reason = why });
    return str_eq(why, nominated) && str_table_has(nodes, pod_node(pod)) ? POD_BOUND : POD_SKIPPED;
}

static int skip_order(const void *a, const void *b, void *ctx)
{
    const struct snapshot *snap = ctx;
    const struct plan_skip *x = a, *y = b;
    return pod_order(snap->pods[x->pod], snap->pods[y->pod]);
}

static void states_find(struct compile *c)
{
    const struct snapshot *snap = c->m->snap;
    struct str_table nodes = { 0 };
    for (uint32_t i = 0; i < snap->node_count; i++)
        str_table_put(&nodes, snap->nodes[i]->object.meta.name, (void *)snap->nodes[i]);
    c->state = arena_array(c->arena, uint8_t, snap->pod_count);
    for (uint32_t i = 0; i < snap->pod_count; i++)
        c->state[i] = (uint8_t)pod_judge(c, &nodes, i);
    if (c->skips.count)
        qsort_r(c->skips.items, c->skips.count, sizeof *c->skips.items, skip_order, (void *)snap);
    str_table_done(&nodes);
}

/* --- priority --- */

int64_t pod_priority(const struct compile *c, const struct pod_spec *spec)
{
    const struct snapshot *snap = c->m->snap;
    struct str name = spec->priority_class_name;
    const struct priority_class *dflt = NULL;
    if (spec->priority.set)
        return spec->priority.value;
    for (uint32_t i = 0; i < snap->priority_class_count; i++) {
        const struct priority_class *pc = snap->priority_classes[i];
        if (name.len && str_eq(pc->object.meta.name, name))
            return pc->value;
        if (pc->global_default && (!dflt || pc->value < dflt->value))
            dflt = pc;
    }
    if (str_eq(name, STR("system-cluster-critical")))
        return 2 * (int64_t)PRIORITY_USER_MAX;
    if (str_eq(name, STR("system-node-critical")))
        return 2 * (int64_t)PRIORITY_USER_MAX + 1000;
    return dflt && !name.len ? dflt->value : 0;
}

/* --- sorts --- */

struct sort_key { /* pods that are equal in these differ in nothing that is asked of them */
    const void *spec, *affinity, *labels, *volumes;
    const void *status; /* of a bound pod, if it says what its containers were given */
    const void *self;   /* of a pod whose volumes are its own although the list is shared */
    uint32_t fit;       /* of a pending pod */
    struct str namespace_;
};

struct sort_draft {
    struct sort_key key;
    struct amount {
        struct str name;
        int64_t milli;
    } * amounts; /* in scratch memory */
    uint32_t amount_count;
    uint32_t next; /* of the same hash, or NONE */
};

struct collector {
    struct compile *c;
    struct map by_hash; /* to the first sort */
    VEC(struct sort_draft) drafts;
    struct arena tmp;
};

static bool says_what_was_given(const struct pod_status *status)
{
    for (uint32_t i = 0; i < status->containers.count; i++) {
        const struct container_status *cs = &status->containers.items[i];
        if (cs->maybe_resources || cs->allocated.count)
            return true;
    }
    for (uint32_t i = 0; i < status->init_containers.count; i++) {
        const struct container_status *cs = &status->init_containers.items[i];
        if (cs->maybe_resources || cs->allocated.count)
            return true;
    }
    return false;
}

/* The status of a pod that waits for a node says nothing: nothing of it runs. */
static struct sort_key sort_key_of(struct compile *c, uint32_t ix, bool bound)
{
    const struct pod *pod = c->m->snap->pods[ix];
    bool given = bound && says_what_was_given(pod->status);
    return (struct sort_key){ .spec = pod->spec,
                              .affinity = pod->maybe_affinity,
                              .labels = pod->object.meta.labels.items,
                              .volumes = pod->volumes.items,
                              .status = given ? pod->status : NULL,
                              .self = pod->volumes.count && volumes_are_own(c, pod) ? pod : NULL,
                              .fit = bound ? NONE : snapshot_pod_fit(c->m->snap, ix),
                              .namespace_ = pod->object.meta.namespace_ };
}

static uint64_t sort_hash(const struct sort_key *k)
{
    uint64_t hash = kv_hash(k->namespace_.p, k->namespace_.len);
    hash = kv_mix64(hash ^ (uintptr_t)k->spec);
    hash = kv_mix64(hash ^ (uintptr_t)k->labels);
    hash = kv_mix64(hash ^ (uintptr_t)k->affinity) + (uintptr_t)k->volumes;
    return kv_mix64(hash ^ (uintptr_t)k->status) + (uintptr_t)k->self + k->fit;
}

static bool sort_key_equal(const struct sort_key *a, const struct sort_key *b)
{
    return a->spec == b->spec && a->affinity == b->affinity && a->labels == b->labels &&
           a->volumes == b->volumes && a->status == b->status && a->self == b->self &&
           a->fit == b->fit && str_eq(a->namespace_, b->namespace_);
}

static void draft_requests(struct collector *q, struct sort_draft *d, struct pod_sort *sort)
{
    struct compile *c = q->c;
    struct resources asked = { 0 };
    struct err err = { 0 };
    arena_reset(&q->tmp);
    int rc = d->key.status ? pod_requests(sort->pod, &q->tmp, &asked, &err)
                           : pod_spec_requests(sort->pod->spec, &q->tmp, &asked, &err);
    if (rc < 0) {
        sort->maybe_refused = blame_new(c, REASON_RESOURCES, arena_strf(c->arena, "%s", err.text));
        return;
    }
    d->amounts = arena_array(&c->scratch, struct amount, asked.count);
    for (uint32_t i = 0; i < asked.count; i++) {
        int64_t milli = milli_ceil(asked.items[i].amount);
        if (milli <= 0 || str_eq(asked.items[i].name, STR("pods")))
            continue;
        d->amounts[d->amount_count++] = (struct amount){ asked.items[i].name, milli };
        if (milli == INT64_MAX && !sort->maybe_refused)
            sort->maybe_refused =
                blame_new(c, REASON_RESOURCES,
                          arena_strf(c->arena, "asks for more %s than can be counted",
                                     NAME_SHOWN(asked.items[i].name)));
    }
}

static uint32_t sort_add(struct collector *q, const struct pod *pod, const struct sort_key *key)
{
    struct compile *c = q->c;
    struct pod_sort sort = { .pod = pod, .fit = key->fit };
    struct sort_draft draft = { .key = *key, .next = NONE };
    draft_requests(q, &draft, &sort);
    sort.ports = pod_ports(c, pod->spec, &sort.port_count);
    vec_push(&c->sorts, sort);
    vec_push(&q->drafts, draft);
    return (uint32_t)c->sorts.count - 1;
}

static uint32_t sort_of(struct collector *q, uint32_t pod, bool bound)
{
    struct sort_key key = sort_key_of(q->c, pod, bound);
    uint64_t hash = sort_hash(&key);
    uintptr_t first = NONE;
    map_get(&q->by_hash, hash, &first);
    for (uint32_t ix = (uint32_t)first; ix != NONE; ix = q->drafts.items[ix].next) {
        KV_ASSERT(ix < q->drafts.count);
        if (sort_key_equal(&q->drafts.items[ix].key, &key))
            return ix;
    }
    uint32_t added = sort_add(q, q->c->m->snap->pods[pod], &key);
    q->drafts.items[added].next = (uint32_t)first;
    map_put(&q->by_hash, hash, added);
    return added;
}

/* --- resources --- */

/* The first three have places of their own. */
static uint32_t resource_place(const struct model *m, struct str name)
{
    if (str_eq(name, STR("cpu")))
        return RESOURCE_CPU;
    if (str_eq(name, STR("memory")))
        return RESOURCE_MEMORY;
    uint32_t low = RESOURCE_FIRST_OTHER, high = m->resource_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (str_cmp(m->resources[middle], name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < m->resource_count && str_eq(m->resources[low], name) ? low : NONE;
}

static void resources_name(struct collector *q)
{
    struct compile *c = q->c;
    struct str_table names = { 0 };
    vec_each(&q->drafts, struct sort_draft, d) {
        bool pending = c->sorts.items[d - q->drafts.items].pending_count > 0;
        for (uint32_t i = 0; i < d->amount_count && pending; i++) {
            struct str name = d->amounts[i].name;
            if (!str_eq(name, STR("cpu")) && !str_eq(name, STR("memory")))
                str_table_put(&names, name, d);
        }
    }
    uint32_t others = names.live_count, most = RESOURCES_MAX - RESOURCE_FIRST_OTHER;
    uint32_t *order = arena_array(&c->scratch, uint32_t, others);
    others = others < most ? others : most;
    struct str *all = arena_array(c->arena, struct str, (size_t)RESOURCE_FIRST_OTHER + others);
    all[RESOURCE_CPU] = STR("cpu");
    all[RESOURCE_MEMORY] = STR("memory");
    all[RESOURCE_PODS] = STR("pods");
    str_table_sorted(&names, order);
    for (uint32_t i = 0; i < others; i++)
        all[RESOURCE_FIRST_OTHER + i] = arena_str(c->arena, names.slots[order[i]].key);
    c->m->resources = all;
    c->m->resource_count = RESOURCE_FIRST_OTHER + others;
    str_table_done(&names);
}

/* Of what a running pod uses without a place nothing is counted; a pending one had better not ask. */
static void refuse_resource(struct compile *c, struct pod_sort *sort, struct str name)
{
    if (!sort->pending_count || sort->maybe_refused)
        return;
    sort->maybe_refused = blame_new(
        c, REASON_UNSUPPORTED,
        arena_strf(c->arena,
                   "asks for %s, and pods ask for more than the %d resources that are handled",
                   NAME_SHOWN(name), RESOURCES_MAX));
}

static void requests_lay_out(struct collector *q)
{
    const struct model *m = q->c->m;
    size_t width = m->resource_count;
    int64_t *all = arena_array(q->c->arena, int64_t, q->drafts.count * width);
    vec_each(&q->drafts, struct sort_draft, d) {
        size_t s = (size_t)(d - q->drafts.items);
        int64_t *request = all + s * width;
        for (uint32_t i = 0; i < d->amount_count; i++) {
            uint32_t place = resource_place(m, d->amounts[i].name);
            if (place != NONE)
                request[place] = d->amounts[i].milli;
            else
                refuse_resource(q->c, &q->c->sorts.items[s], d->amounts[i].name);
        }
        request[RESOURCE_PODS] = 1000;
        q->c->sorts.items[s].request = request;
    }
}

void sorts_collect(struct compile *c)
{
    const struct snapshot *snap = c->m->snap;
    struct collector q = { .c = c };
    arena_reset(&c->scratch);
    states_find(c);
    storage_index(c);
    c->sort = arena_array(c->arena, uint32_t, snap->pod_count);
    for (uint32_t i = 0; i < snap->pod_count; i++) {
        c->sort[i] = NONE;
        if (c->state[i] != POD_PENDING && c->state[i] != POD_BOUND)
            continue;
        bool bound = c->state[i] == POD_BOUND;
        c->sort[i] = sort_of(&q, i, bound);
        struct pod_sort *sort = &c->sorts.items[c->sort[i]];
        sort->pending_count += !bound;
        sort->bound_count += bound;
    }
    resources_name(&q);
    requests_lay_out(&q);
    map_done(&q.by_hash);
    vec_done(&q.drafts);
    arena_done(&q.tmp);
}

void compile_done(struct compile *c)
{
    storage_done(c);
    vec_done(&c->sorts);
    vec_done(&c->skips);
    vec_done(&c->groups);
    vec_done(&c->keys);
    vec_done(&c->ports);
    vec_done(&c->drivers);
    vec_done(&c->tolerances);
    vec_done(&c->taints);
    vec_done(&c->fits);
    str_table_done(&c->port_ids);
    str_table_done(&c->driver_ids);
    str_table_done(&c->tolerance_ids);
    str_table_done(&c->taint_ids);
    arena_done(&c->scratch);
    buf_done(&c->text);
}

/* Daemons: what every node gives up before the first pod is on it.
 *
 * What a DaemonSet asks for is best told by its newest pod, which admission has seen (limit ranges,
 * an autoscaler of requests); where there is none, by its template. Its pods are bound to nodes by
 * an affinity of their own, so the required node affinity is always the template's.
 *
 * On a pool a daemon counts for every type that it may be on: whether it will be there can depend on
 * the zone, and a node without room for its daemons is a broken promise.
 */
#include "sched/model_nodes.h"

#include "api/requests.h"
#include "sched/model_memo.h"

/* --- what a daemon is --- */

/* The controller adds these to whatever the template tolerates. */
#define CONTROLLER_TOLERATES(key_, effect_)                                                        \
    {                                                                                              \
        .key = { "node.kubernetes.io/" key_, sizeof "node.kubernetes.io/" key_ - 1 },              \
        .op = TOLERATION_EXISTS, .effect = EFFECT_##effect_                                        \
    }
static const struct toleration controller_tolerations[] = {
    CONTROLLER_TOLERATES("not-ready", NO_EXECUTE),
    CONTROLLER_TOLERATES("unreachable", NO_EXECUTE),
    CONTROLLER_TOLERATES("disk-pressure", NO_SCHEDULE),
    CONTROLLER_TOLERATES("memory-pressure", NO_SCHEDULE),
    CONTROLLER_TOLERATES("pid-pressure", NO_SCHEDULE),
    CONTROLLER_TOLERATES("unschedulable", NO_SCHEDULE),
    /* Only for those that use the host's network, so the last. */
    CONTROLLER_TOLERATES("network-unavailable", NO_SCHEDULE),
};

static void daemon_tolerations(struct compile *c, const struct pod_spec *spec, struct daemon *out)
{
    uint32_t own = spec->tolerations.count, count = own;
    struct toleration *items =
        arena_array(c->arena, struct toleration, own + KV_COUNT_OF(controller_tolerations));
    for (uint32_t i = 0; i < own; i++)
        items[i] = spec->tolerations.items[i];
    for (size_t i = 0; i < KV_COUNT_OF(controller_tolerations) - !spec->host_network; i++)
        items[count++] = controller_tolerations[i];
    out->tolerations = items;
    out->toleration_count = count;
}

/* A term that cannot be met by a node whose name is not known (matchFields), that says nothing
 * (Kubernetes takes it for "no node"), or that makes no sense, is no alternative. */
static void daemon_alternatives(struct compile *c, const struct pod_spec *spec,
                                const struct pod_template *template, struct daemon *out)
{
    const struct affinity *affinity = template->spec.affinity;
    const struct node_selector *required = affinity ? affinity->node.maybe_required : NULL;
    uint32_t terms = required ? required->terms.count : 1, count = 0;
    struct requirements *sets = arena_array(c->arena, struct requirements, terms);
    for (uint32_t i = 0; i < terms; i++) {
        const struct node_selector_term *term = required ? &required->terms.items[i] : NULL;
        if (term && !term->expressions.count)
            continue;
        if (requirements_from_pod(c->arena, &spec->node_selector, term, NULL, &sets[count], NULL) ==
            0)
            count++;
    }
    out->alternatives = sets;
    out->alternative_count = count;
}

/* --- which pods are whose --- */

static void set_name(struct compile *c, struct str namespace_, struct str name)
{
    buf_clear(&c->text);
    buf_add(&c->text, namespace_);
    buf_addc(&c->text, '/');
    buf_add(&c->text, name);
}

struct daemon_draft {
    const struct daemon_set *set;
    const struct pod *maybe_newest;
    struct resources asked;
    bool countable; /* else no node can ever have one of its pods */
};

static bool is_newer(const struct pod *pod, const struct pod *maybe_than)
{
    if (!maybe_than)
        return true;
    int64_t a = pod->object.meta.created_us, b = maybe_than->object.meta.created_us;
    return a != b ? a > b : str_cmp(pod->object.meta.name, maybe_than->object.meta.name) < 0;
}

/* The set that made the pod, or NONE. */
static uint32_t set_of(struct compile *c, const struct pod *pod, const struct daemon_draft *drafts,
                       const struct str_table *set_ids)
{
    const struct owner_ref *owner = meta_controller(&pod->object.meta);
    if (!owner || !str_eq(owner->kind, STR("DaemonSet")))
        return NONE;
    set_name(c, pod->object.meta.namespace_, owner->name);
    uintptr_t found = (uintptr_t)str_table_get(set_ids, buf_str(&c->text));
    if (!found)
        return NONE;
    struct str uid = drafts[found - 1].set->object.meta.uid;
    bool same = !uid.len || !owner->uid.len || str_eq(uid, owner->uid);
    return same ? (uint32_t)(found - 1) : NONE;
}

static void pods_find(struct compile *c, struct daemon_draft *drafts,
                      const struct str_table *set_ids, uint32_t *pod_set)
{
    const struct snapshot *snap = c->m->snap;
    for (uint32_t i = 0; i < snap->pod_count; i++) {
        const struct pod *pod = snap->pods[i];
        pod_set[i] = set_ids->live_count ? set_of(c, pod, drafts, set_ids) : NONE;
        if (pod_set[i] == NONE || pod_is_terminal(pod) || pod_is_terminating(pod))
            continue;
        struct daemon_draft *d = &drafts[pod_set[i]];
        if (is_newer(pod, d->maybe_newest))
            d->maybe_newest = pod;
    }
}

static int daemon_draft_order(const void *a, const void *b)
{
    const struct meta *x = &((const struct daemon_draft *)a)->set->object.meta;
    const struct meta *y = &((const struct daemon_draft *)b)->set->object.meta;
    int order = str_cmp(x->namespace_, y->namespace_);
    return order ? order : str_cmp(x->name, y->name);
}

/* Sets that put pods on new nodes, with what those ask for. */
static uint32_t drafts_make(struct compile *c, struct daemon_draft **out)
{
    const struct snapshot *snap = c->m->snap;
    struct daemon_draft *drafts =
        arena_array(&c->scratch, struct daemon_draft, snap->daemon_set_count);
    uint32_t *pod_set = arena_array(c->arena, uint32_t, snap->pod_count);
    struct str_table ids = { 0 };
    uint32_t count = 0;
    for (uint32_t i = 0; i < snap->daemon_set_count; i++) {
        const struct daemon_set *set = snap->daemon_sets[i];
        if (set->spec.maybe_template && !set->object.meta.deleted_us)
            drafts[count++].set = set;
    }
    qsort(drafts, count, sizeof *drafts, daemon_draft_order);
    for (uint32_t i = 0; i < count; i++) {
        set_name(c, drafts[i].set->object.meta.namespace_, drafts[i].set->object.meta.name);
        str_table_put(&ids, buf_str(&c->text), (void *)(uintptr_t)(i + 1));
    }
    pods_find(c, drafts, &ids, pod_set);
    str_table_done(&ids);

    for (uint32_t i = 0; i < count; i++) {
        struct daemon_draft *d = &drafts[i];
        int rc = d->maybe_newest ? pod_requests(d->maybe_newest, &c->scratch, &d->asked, NULL)
                                 : pod_spec_requests(&d->set->spec.maybe_template->spec,
                                                     &c->scratch, &d->asked, NULL);
        d->countable = rc == 0;
        if (rc < 0)
            d->asked = (struct resources){ 0 };
    }
    c->nodes->pod_daemon = pod_set;
    *out = drafts;
    return count;
}

/* --- collecting --- */

/* The model's resources, and what only daemons ask for: nothing may be overdrawn. */
static void resources_extend(struct compile *c, const struct daemon_draft *drafts, uint32_t count)
{
    struct model *m = c->m;
    VEC(struct str) names = { 0 };
    for (uint32_t i = 0; i < m->resource_count; i++)
        vec_push(&names, m->resources[i]);
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t j = 0; j < drafts[i].asked.count; j++) {
            struct str name = drafts[i].asked.items[j].name;
            size_t at = 0;
            while (at < names.count && !str_eq(names.items[at], name))
                at++;
            if (at == names.count)
                vec_push(&names, arena_str(c->arena, name));
        }
    }
    struct str *all = arena_array(c->arena, struct str, names.count);
    for (size_t i = 0; i < names.count; i++)
        all[i] = names.items[i];
    c->nodes->resources = all;
    c->nodes->resource_count = (uint32_t)names.count;
    vec_done(&names);
}

static const int64_t *daemon_request(struct compile *c, const struct resources *asked)
{
    const struct node_side *side = c->nodes;
    int64_t *request = arena_array(c->arena, int64_t, side->resource_count);
    for (uint32_t i = 0; i < side->resource_count; i++) {
        for (uint32_t j = 0; j < asked->count; j++) {
            if (str_eq(side->resources[i], asked->items[j].name))
                request[i] = milli_ceil(asked->items[j].amount);
        }
    }
    request[RESOURCE_PODS] = 1000;
    return request;
}

void daemons_collect(struct compile *c)
{
    struct daemon_draft *drafts;
    uint32_t count = drafts_make(c, &drafts);
    struct daemon *daemons = arena_array(c->arena, struct daemon, count);
    resources_extend(c, drafts, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct pod_template *template = drafts[i].set->spec.maybe_template;
        const struct pod_spec *spec =
            drafts[i].maybe_newest ? drafts[i].maybe_newest->spec : &template->spec;
        struct daemon *d = &daemons[i];
        d->request = daemon_request(c, &drafts[i].asked);
        d->ports = pod_ports(c, spec, &d->port_count);
        daemon_tolerations(c, spec, d);
        if (drafts[i].countable)
            daemon_alternatives(c, spec, template, d);
    }
    c->nodes->daemons = daemons;
    c->nodes->daemon_count = count;
}

/* --- where they run --- */

static bool daemon_bears(const struct daemon *d, const struct taint *taints, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        bool keeps_away =
            taints[i].effect == EFFECT_NO_SCHEDULE || taints[i].effect == EFFECT_NO_EXECUTE;
        if (keeps_away && !taint_tolerated(d->tolerations, d->toleration_count, &taints[i]))
            return false;
    }
    return true;
}

/* What is not decided yet may turn out to suit. */
static bool labels_may_suit(const struct requirements *labels, const struct requirements *asked)
{
    for (uint32_t i = 0; i < asked->count; i++) {
        const struct requirement *label = requirements_find(labels, asked->items[i].key);
        if (!label && demands_label(&asked->items[i]))
            return false;
    }
    return requirements_intersects(labels, asked, NULL);
}

bool daemon_runs_on(const struct daemon *d, const struct requirements *labels,
                    const struct taint *taints, uint32_t taint_count)
{
    if (!daemon_bears(d, taints, taint_count))
        return false;
    for (uint32_t i = 0; i < d->alternative_count; i++) {
        if (labels_may_suit(labels, &d->alternatives[i]))
            return true;
    }
    return false;
}

/* Types of the pool that the daemon may be on. */
static void daemon_types(struct compile *c, const struct daemon *d, const struct pool *pool,
                         struct bitset *out)
{
    const struct instance_types *s = pool->types;
    const struct taint_list *taints = &c->taints.items[pool->taints];
    bitset_zero(out);
    if (!daemon_bears(d, taints->items, taints->count))
        return;
    struct bitset some = bitset_new(&c->scratch, s->type_count);
    for (uint32_t i = 0; i < d->alternative_count; i++) {
        struct requirements asked;
        if (!wants_reduce(&pool->requirements, &d->alternatives[i], pool->well_known, &c->scratch,
                          &asked) ||
            !requirements_compatible(&pool->requirements, &asked, pool->well_known, NULL))
            continue;
        bitset_fill(&some);
        for (uint32_t j = 0; j < asked.count; j++)
            instance_types_narrow(s, &asked.items[j], true, &some);
        bitset_or(out, &some);
    }
}

/* Ports that the daemons of a type take, ended by NONE; lists that are equal follow each other. */
static const uint32_t *type_ports(struct compile *c, const struct bitset *on, uint32_t type,
                                  const uint32_t *previous)
{
    const struct node_side *side = c->nodes;
    VEC(uint32_t) ports = { 0 };
    for (uint32_t d = 0; d < side->daemon_count; d++) {
        for (uint32_t i = 0; i < side->daemons[d].port_count && bitset_test(&on[d], type); i++)
            vec_push(&ports, side->daemons[d].ports[i]);
    }
    ports.count = ports.count ? numbers_sort_unique(ports.items, (uint32_t)ports.count) : 0;
    vec_push(&ports, NONE);
    const uint32_t *list = previous;
    size_t same = 0;
    while (previous && same < ports.count && previous[same] == ports.items[same])
        same++;
    if (same < ports.count) {
        uint32_t *own = arena_array(c->arena, uint32_t, ports.count);
        memcpy(own, ports.items, ports.count * sizeof *own);
        list = own;
    }
    vec_done(&ports);
    return list;
}

static void pool_ports(struct compile *c, struct pool *pool, const struct bitset *on)
{
    const struct node_side *side = c->nodes;
    const struct instance_types *s = pool->types;
    bool any = false;
    for (uint32_t d = 0; d < side->daemon_count; d++)
        any |= side->daemons[d].port_count && bitset_any(&on[d]);
    if (!any)
        return;
    const uint32_t **lists = arena_array(c->arena, const uint32_t *, s->row_count);
    for (uint32_t row = 0; row < s->row_count; row++)
        lists[row] = row < s->type_count ? type_ports(c, on, row, row ? lists[row - 1] : NULL)
                                         : lists[s->row_type[row]];
    pool->daemon_ports = lists;
}

void daemons_of_pool(struct compile *c, struct pool *pool)
{
    const struct node_side *side = c->nodes;
    const struct instance_types *s = pool->types;
    uint32_t width = c->m->resource_count;
    struct bitset *on = arena_array(&c->scratch, struct bitset, side->daemon_count);
    int64_t *taken = arena_array(c->arena, int64_t, (size_t)s->row_count * width);
    int64_t *room = arena_array(c->arena, int64_t, (size_t)s->row_count * width);
    for (uint32_t d = 0; d < side->daemon_count; d++) {
        on[d] = bitset_new(&c->scratch, s->type_count);
        daemon_types(c, &side->daemons[d], pool, &on[d]);
    }
    for (uint32_t r = 0; r < side->resource_count; r++) {
        const struct resource_column *column = instance_types_resource(s, side->resources[r]);
        for (uint32_t row = 0; row < s->row_count; row++) {
            int64_t sum = 0, has = column ? column->allocatable[row] : 0;
            for (uint32_t d = 0; d < side->daemon_count; d++) {
                if (bitset_test(&on[d], s->row_type[row]))
                    sum = add_saturating(sum, side->daemons[d].request[r]);
            }
            if (r < width) {
                taken[(size_t)row * width + r] = sum;
                room[(size_t)row * width + r] = subtract_saturating(has, sum);
            } else if (sum > has) { /* of something that no pod asks for: no room for any */
                room[(size_t)row * width + RESOURCE_PODS] = -1;
            }
        }
    }
    bitset_each(&s->overdrawn, row)
        room[(size_t)row * width + RESOURCE_PODS] = -1;
    pool->daemons = taken;
    pool->room = room;
    pool_ports(c, pool, on);
}

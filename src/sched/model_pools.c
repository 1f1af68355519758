/* Pools: what can be launched, in the order in which it is tried, and how much of it.
 *
 * What is left of a limit is the limit less everything that the pool has now, whether or not it is
 * on its way out: a node counts until it is gone. Where the size of something is not known it counts
 * as the largest that it can be, so that a limit is never overshot.
 */
#include "sched/model_nodes.h"

#include "api/conditions.h"
#include "sched/model_memo.h"

/* --- which can be used --- */

static struct str pool_not_ready(struct compile *c, struct str message)
{
    AUTO_BUF text = { 0 };
    if (!message.len)
        return STR("it is not ready");
    message_format(message, &text);
    return arena_strf(c->arena, "it is not ready: %s", text.p);
}

static struct str pool_trouble(struct compile *c, const struct sched_pool *p)
{
    const struct nodepool *pool = p->pool;
    const struct condition *ready = condition_find(pool->status.conditions.items,
                                                   pool->status.conditions.count, CONDITION_READY);
    if (pool->object.meta.deleted_us)
        return STR("it is being deleted");
    if (pool->spec.replicas.set)
        return STR("it has a fixed number of nodes (replicas)");
    if (p->not_ready.len)
        return p->not_ready;
    if (ready && ready->status == CONDITION_FALSE)
        return pool_not_ready(c, ready->message);
    if (!p->types)
        return STR("its instance types are not known");
    return STR("");
}

/* --- the template --- */

static struct str class_label(struct compile *c, const struct node_class_ref *ref)
{
    struct str key = arena_strf(c->arena, "%.*s/%.*s", STR_ARG(ref->group), STR_ARG(ref->kind));
    char *text = (char *)key.p;
    for (size_t i = ref->group.len; i < key.len; i++)
        text[i] = char_lower(text[i]);
    return key;
}

static void set_label(struct compile *c, struct requirements *set, struct str key, struct str value)
{
    struct requirement r = requirement_in(c->arena, key, (struct str_list){ &value, 1 });
    *set = requirements_add(c->arena, set, &r);
}

static int template_requirements(struct compile *c, const struct nodepool *pool,
                                 struct requirements *out, struct err *err)
{
    const struct node_template *template = &pool->spec.template;
    struct requirements asked, labels;
    if (requirements_from_expressions(c->arena, template->spec.requirements.items,
                                      template->spec.requirements.count, &asked, err) < 0)
        return -1;
    labels = requirements_from_labels(c->arena, &template->meta.labels);
    *out = requirements_merge(c->arena, &asked, &labels);
    set_label(c, out, STR(LABEL_NODEPOOL), pool->object.meta.name);
    if (template->spec.node_class_ref.kind.len)
        set_label(c, out, class_label(c, &template->spec.node_class_ref),
                  template->spec.node_class_ref.name);
    /* Pods may ask for nodes that are up; every node will be. */
    set_label(c, out, STR(LABEL_REGISTERED), STR("true"));
    set_label(c, out, STR(LABEL_INITIALIZED), STR("true"));
    return 0;
}

/* --- limits --- */

static const int64_t *capacities(struct compile *c, const struct pool *pool, struct str name)
{
    const struct resource_column *column = instance_types_resource(pool->types, name);
    return column ? column->capacity
                  : arena_array(c->arena, int64_t, pool->types->row_count); /* none of it */
}

/* What the pool's nodes and claims have of each name, and how many there are. */
static int64_t pool_usage(struct compile *c, uint32_t source, const struct str *names,
                          uint32_t count, int64_t *used)
{
    const struct snapshot *snap = c->m->snap;
    int64_t *has = arena_array(&c->scratch, int64_t, count), nodes = 0;
    for (uint32_t i = 0; i < snap->node_count; i++) {
        if (c->nodes->node_pool[i] != source)
            continue;
        node_capacity(c, i, names, count, has);
        for (uint32_t k = 0; k < count; k++)
            used[k] = add_saturating(used[k], has[k]);
        nodes++;
    }
    for (uint32_t i = 0; i < snap->claim_count; i++) {
        if (c->nodes->claim_node[i] != NONE || c->nodes->claim_pool[i] != source)
            continue;
        claim_capacity(c, i, names, count, has);
        for (uint32_t k = 0; k < count; k++)
            used[k] = add_saturating(used[k], has[k]);
        nodes++;
    }
    return nodes;
}

static void pool_limits(struct compile *c, struct pool *pool)
{
    const struct resources *said = &c->m->snap->pools[pool->source].pool->spec.limits;
    struct limit *limits = arena_array(c->arena, struct limit, said->count);
    struct str *names = arena_array(&c->scratch, struct str, said->count);
    int64_t *used = arena_array(&c->scratch, int64_t, said->count);
    uint32_t count = 0;

    pool->nodes_left = INT64_MAX;
    if (!said->count)
        return;
    for (uint32_t i = 0; i < said->count; i++) {
        struct str name = said->items[i].name;
        int64_t milli = milli_floor(said->items[i].amount);
        if (str_eq(name, STR("nodes"))) {
            pool->nodes_left = milli / 1000;
        } else {
            limits[count] = (struct limit){ name, milli, capacities(c, pool, name) };
            names[count++] = name;
        }
    }
    int64_t nodes = pool_usage(c, pool->source, names, count, used);
    for (uint32_t i = 0; i < count; i++)
        limits[i].left = subtract_saturating(limits[i].left, used[i]);
    if (pool->nodes_left != INT64_MAX)
        pool->nodes_left -= nodes;
    pool->limits = limits;
    pool->limit_count = count;
}

/* --- all of them --- */

struct pool_ref {
    const struct nodepool *pool;
    uint32_t source;
};

static int pool_ref_order(const void *a, const void *b)
{
    const struct pool_ref *x = a, *y = b;
    return nodepool_order(x->pool, y->pool);
}

/* STR("") and a pool, or why there is none. */
static struct str pool_compile(struct compile *c, uint32_t source, struct pool *out)
{
    const struct sched_pool *p = &c->m->snap->pools[source];
    const struct claim_node_spec *spec = &p->pool->spec.template.spec;
    struct err err = { 0 };
    struct str trouble = pool_trouble(c, p);
    *out = (struct pool){ .source = source, .types = p->types, .well_known = p->well_known };
    if (trouble.len)
        return trouble;
    if (template_requirements(c, p->pool, &out->requirements, &err) < 0)
        return arena_strf(c->arena, "its requirements make no sense: %s", err.text);
    out->machine_count = p->types->row_count;
    out->taints = taints_intern(c, spec->taints.items, spec->taints.count);
    daemons_of_pool(c, out);
    pool_limits(c, out);
    return STR("");
}

void pools_compile(struct compile *c)
{
    struct model *m = c->m;
    const struct snapshot *snap = m->snap;
    struct pool *pools = arena_array(c->arena, struct pool, snap->pool_count);
    struct pool_out *out = arena_array(c->arena, struct pool_out, snap->pool_count);

    arena_reset(&c->scratch);
    node_side_init(c);
    daemons_collect(c);
    struct pool_ref *order = arena_array(&c->scratch, struct pool_ref, snap->pool_count);
    for (uint32_t i = 0; i < snap->pool_count; i++)
        order[i] = (struct pool_ref){ snap->pools[i].pool, i };
    qsort(order, snap->pool_count, sizeof *order, pool_ref_order);

    int64_t tier_weight = 0;
    uint32_t tier = 0;
    for (uint32_t i = 0; i < snap->pool_count; i++) {
        struct pool *pool = &pools[m->pool_count];
        struct str why = pool_compile(c, order[i].source, pool);
        if (why.len) {
            out[m->pools_out_count++] = (struct pool_out){ order[i].source, why };
            continue;
        }
        int64_t weight = order[i].pool->spec.weight.set ? order[i].pool->spec.weight.value : 0;
        tier += m->pool_count && weight != tier_weight;
        tier_weight = weight;
        pool->tier = tier;
        m->pool_count++;
    }
    m->pools = pools;
    m->pools_out = out;
    reservations_collect(m);
    for (uint32_t i = 0; i < m->pool_count; i++)
        pools[i].terms = terms_intern(m, i, &pools[i].requirements);
}

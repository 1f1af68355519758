/* Does a launch hold together as a claim? Its pool may launch, its types and offerings are to be had,
 * the price is the lowest of them, and its requirements say no less than the pool's do.
 */
#include "sched/check_inner.h"

#include "api/resources.h"

/* `r` allows nothing that `pool` does not. */
static bool requirement_within(const struct requirement *r, const struct requirement *pool)
{
    if (!r->complement) {
        bool may_be_missing = requirement_operator(pool) == OP_NOT_IN ||
                              requirement_operator(pool) == OP_DOES_NOT_EXIST;
        for (uint32_t i = 0; i < r->values.count; i++) {
            if (!requirement_has(pool, r->values.items[i]))
                return false;
        }
        return r->values.count || may_be_missing;
    }
    for (uint32_t i = 0; i < pool->values.count; i++) {
        if (requirement_has(r, pool->values.items[i]))
            return false;
    }
    return pool->complement &&
           (!pool->gte.set || (r->gte.set && r->gte.value >= pool->gte.value)) &&
           (!pool->lte.set || (r->lte.set && r->lte.value <= pool->lte.value));
}

static const char *requirement_shown(struct checker *c, const struct requirement *r)
{
    AUTO_BUF text = { 0 };
    requirement_format(r, &text);
    return arena_str(&c->scratch, buf_str(&text)).p;
}

static struct requirements pool_requirements(struct checker *c, const struct sched_pool *pool)
{
    const struct claim_node_spec *spec = &pool->pool->spec.template.spec;
    struct requirements set = { 0 };
    struct err err = { 0 };
    if (requirements_from_expressions(&c->scratch, spec->requirements.items,
                                      spec->requirements.count, &set, &err) < 0)
        finding(c, PLAN_NONE, PLAN_NONE, "pool %.*s launches, and its requirements are broken: %s",
                STR_ARG(pool->pool->object.meta.name), err.text);
    return set;
}

/* --- the pool --- */

static void check_pool(struct checker *c, const struct site *p, const struct sched_pool *pool)
{
    if (pool->not_ready.len)
        finding(c, PLAN_NONE, p->index, "%s: the pool is not ready: %.*s", p->name,
                STR_ARG(pool->not_ready));
    if (pool->pool->object.meta.deleted_us)
        finding(c, PLAN_NONE, p->index, "%s: the pool is being deleted", p->name);
    if (pool->pool->spec.replicas.set)
        finding(c, PLAN_NONE, p->index, "%s: the pool is static", p->name);
}

/* --- types and prices --- */

static usd_hour type_price(const struct blueprint *b, uint32_t type)
{
    const struct instance_types *s = b->pool->types;
    usd_hour lowest = USD_HOUR_MAX;
    for (uint32_t o = s->offering_start[type]; o < s->offering_start[type + 1]; o++) {
        if (bitset_test(&s->available, o) && b->shapes[s->offering_shape[o]] &&
            instance_types_price(s, o) < lowest)
            lowest = instance_types_price(s, o);
    }
    return lowest;
}

static void check_type_list(struct checker *c, const struct site *p, const struct plan_launch *l)
{
    const struct instance_types *s = p->maybe_blueprint->pool->types;
    uint32_t most = c->options.types_max ? c->options.types_max : PLAN_TYPES_MAX;
    if (l->type_count > most)
        finding(c, PLAN_NONE, p->index, "%s allows %u types, and at most %u are asked for", p->name,
                l->type_count, most);
    struct bitset seen = bitset_new(&c->scratch, s->type_count);
    usd_hour before = 0;
    for (uint32_t i = 0; i < l->type_count; i++) {
        uint32_t type = l->types[i];
        struct str name = s->names[type];
        usd_hour price = type_price(p->maybe_blueprint, type);
        if (bitset_test(&seen, type))
            finding(c, PLAN_NONE, p->index, "%s has type %.*s twice", p->name, STR_ARG(name));
        bitset_set(&seen, type);
        if (!type_is_allowed(s, type, &l->requirements))
            finding(c, PLAN_NONE, p->index, "%s: its requirements do not allow its type %.*s",
                    p->name, STR_ARG(name));
        if (price == USD_HOUR_MAX)
            finding(c, PLAN_NONE, p->index,
                    "%s: type %.*s has no available offering that the requirements allow", p->name,
                    STR_ARG(name));
        if (price < before)
            finding(c, PLAN_NONE, p->index, "%s: type %.*s at %s stands after one at %s", p->name,
                    STR_ARG(name), price_shown(c, price), price_shown(c, before));
        before = price;
    }
}

static void check_price(struct checker *c, const struct site *p, const struct plan_launch *l)
{
    const struct blueprint *b = p->maybe_blueprint;
    const struct instance_types *s = b->pool->types;
    if (s->offering_type[l->offering] != l->type || s->offering_row[l->offering] != l->row)
        finding(c, PLAN_NONE, p->index, "%s: offering, type and row do not belong together",
                p->name);
    if (!bitset_test(&s->available, l->offering))
        finding(c, PLAN_NONE, p->index, "%s: its offering is not available", p->name);
    if (!b->shapes[s->offering_shape[l->offering]])
        finding(c, PLAN_NONE, p->index, "%s: its requirements do not allow its offering", p->name);
    usd_hour price = instance_types_price(s, l->offering), lowest = USD_HOUR_MAX;
    if (price != l->price)
        finding(c, PLAN_NONE, p->index, "%s: its offering costs %s an hour, and it says %s",
                p->name, price_shown(c, price), price_shown(c, l->price));
    for (uint32_t i = 0; i < l->type_count; i++) {
        usd_hour cheapest = type_price(b, l->types[i]);
        lowest = cheapest < lowest ? cheapest : lowest;
    }
    bool listed = false;
    for (uint32_t i = 0; i < l->type_count; i++)
        listed |= l->types[i] == l->type;
    if (!listed)
        finding(c, PLAN_NONE, p->index, "%s: type %.*s is not among those that it allows", p->name,
                STR_ARG(s->names[l->type]));
    if (lowest < l->price)
        finding(c, PLAN_NONE, p->index, "%s costs %s an hour, and allows an offering at %s",
                p->name, price_shown(c, l->price), price_shown(c, lowest));
}

/* --- requirements --- */

static void check_type_requirement(struct checker *c, const struct site *p,
                                   const struct plan_launch *l)
{
    const struct instance_types *s = p->maybe_blueprint->pool->types;
    const struct requirement *r = requirements_find(&l->requirements, STR(LABEL_INSTANCE_TYPE));
    bool same = r && !r->complement && r->values.count == l->type_count;
    for (uint32_t i = 0; same && i < l->type_count; i++)
        same = requirement_has(r, s->names[l->types[i]]);
    if (!same)
        finding(c, PLAN_NONE, p->index,
                "%s: the requirement on the instance type is not the list of its types", p->name);
    r = requirements_find(&l->requirements, STR(LABEL_CAPACITY_TYPE));
    if (!r || requirement_operator(r) != OP_IN)
        finding(c, PLAN_NONE, p->index, "%s does not say which capacity types it allows", p->name);
}

/* The pool's own word on everything that it speaks of. */
static void check_within_pool(struct checker *c, const struct site *p, const struct plan_launch *l,
                              const struct requirements *pool)
{
    const struct str_map *labels = &p->maybe_blueprint->pool->pool->spec.template.meta.labels;
    for (uint32_t i = 0; i < pool->count; i++) {
        const struct requirement *r = requirements_find(&l->requirements, pool->items[i].key);
        if (!r || !requirement_within(r, &pool->items[i]))
            finding(c, PLAN_NONE, p->index, "%s does not keep to the pool's %s", p->name,
                    requirement_shown(c, &pool->items[i]));
    }
    for (uint32_t i = 0; i < labels->count; i++) {
        const struct str_pair *label = &labels->items[i];
        const struct requirement *r =
            requirements_find(&l->requirements, label_normalise(label->key));
        if (!str_eq(str_map_get(&l->labels, label->key), label->value))
            finding(c, PLAN_NONE, p->index, "%s does not have the pool's label %.*s=%.*s", p->name,
                    STR_ARG(label->key), STR_ARG(label->value));
        if (r && !requirement_has(r, label->value))
            finding(c, PLAN_NONE, p->index, "%s: %s is not what the pool's label %.*s=%.*s says",
                    p->name, requirement_shown(c, r), STR_ARG(label->key), STR_ARG(label->value));
    }
}

static bool pool_speaks_of(const struct sched_pool *pool, const struct requirements *said,
                           struct str key)
{
    const struct node_class_ref *class = &pool->pool->spec.template.spec.node_class_ref;
    return requirements_find(said, key) ||
           str_map_get(&pool->pool->spec.template.meta.labels, key).p ||
           str_sorted_has(pool->well_known.items, pool->well_known.count, key) ||
           str_eqz(key, LABEL_NODEPOOL) || str_eqz(key, LABEL_REGISTERED) ||
           str_eqz(key, LABEL_INITIALIZED) ||
           (class->group.len && str_starts(key, class->group)); /* the node class's own label */
}

/* Pods cannot bring labels that neither the pool nor the cloud knows of. */
static void check_own_labels(struct checker *c, const struct site *p, const struct plan_launch *l,
                             const struct requirements *pool)
{
    const struct sched_pool *of = p->maybe_blueprint->pool;
    for (uint32_t i = 0; i < l->requirements.count; i++) {
        const struct requirement *r = &l->requirements.items[i];
        enum requirement_op op = requirement_operator(r);
        if (op != OP_NOT_IN && op != OP_DOES_NOT_EXIST && !pool_speaks_of(of, pool, r->key))
            finding(c, PLAN_NONE, p->index, "%s requires %s, and its pool does not define that key",
                    p->name, requirement_shown(c, r));
    }
    for (uint32_t i = 0; i < l->labels.count; i++) {
        const struct str_pair *label = &l->labels.items[i];
        const struct requirement *r =
            requirements_find(&l->requirements, label_normalise(label->key));
        if (!pool_speaks_of(of, pool, label->key))
            finding(c, PLAN_NONE, p->index, "%s has a label %.*s, which its pool does not define",
                    p->name, STR_ARG(label->key));
        if (r && !requirement_has(r, label->value))
            finding(c, PLAN_NONE, p->index, "%s: its label %.*s=%.*s is not what it requires: %s",
                    p->name, STR_ARG(label->key), STR_ARG(label->value), requirement_shown(c, r));
    }
}

/* --- minValues --- */

static size_t different_values(const struct site *p, const struct plan_launch *l, struct str key)
{
    const struct instance_types *s = p->maybe_blueprint->pool->types;
    VEC(struct str) values = { 0 };
    for (uint32_t i = 0; i < l->type_count; i++) {
        const struct requirement *r = instance_type_requirement(s, l->types[i], key);
        for (uint32_t v = 0; r && !r->complement && v < r->values.count; v++)
            vec_push(&values, r->values.items[v]);
    }
    size_t count = str_sort_unique(values.items, values.count);
    vec_done(&values);
    return count;
}

static void check_min_values(struct checker *c, const struct site *p, const struct plan_launch *l,
                             const struct requirements *pool)
{
    bool strict = c->options.min_values == MIN_VALUES_STRICT;
    if (strict && l->min_values_relaxed)
        finding(c, PLAN_NONE, p->index, "%s gives up minValues, which are strict", p->name);
    for (uint32_t i = 0; i < pool->count; i++) {
        const struct requirement *r = &pool->items[i];
        size_t have = r->min_values.set ? different_values(p, l, r->key) : 0;
        if (r->min_values.set && (int64_t)have < r->min_values.value &&
            (strict || !l->min_values_relaxed))
            finding(c, PLAN_NONE, p->index,
                    "%s: its types have %zu values of %.*s, and the pool wants %ld%s", p->name,
                    have, STR_ARG(r->key), (long)r->min_values.value,
                    strict ? "" : " (not marked as relaxed)");
    }
}

/* --- requests --- */

/* Those of the pods, and of the daemons that are on every node it may become, at least; with those
 * that are on some of them, at most. */
static void check_requests(struct checker *c, const struct site *p, const struct plan_launch *l)
{
    const struct blueprint *b = p->maybe_blueprint;
    const wide *placed = placed_requests(c, p);
    for (uint32_t r = 0; r < c->resources.count; r++) {
        wide least = placed[r] + b->daemons[r], most = least;
        for (uint32_t i = 0; i < b->unsure_count; i++)
            most += c->daemons.items[b->unsure[i]].request[r];
        struct str name = c->resources.items[r];
        wide says = milli_ceil(resources_get(&l->requests, name));
        if (says < least || says > most)
            finding(c, PLAN_NONE, p->index, "%s says that %s %.*s are requested, and it is %s",
                    p->name, amount_shown(c, name, says), STR_ARG(name),
                    amount_shown(c, name, least));
    }
}

void check_claim(struct checker *c, uint32_t launch)
{
    const struct plan_launch *l = &c->plan->launches[launch];
    const struct site *p = &c->sites[c->site_count - c->plan->launch_count + launch];
    const struct sched_pool *pool = &c->snap->pools[l->pool];
    struct requirements said = pool_requirements(c, pool);

    if (!l->pods.count)
        finding(c, PLAN_NONE, launch, "%s is for no pods", p->name);
    check_pool(c, p, pool);
    if (p->maybe_blueprint->launch == l) /* the others have the same list */
        check_type_list(c, p, l);
    check_price(c, p, l);
    check_type_requirement(c, p, l);
    check_within_pool(c, p, l, &said);
    check_own_labels(c, p, l, &said);
    check_min_values(c, p, l, &said);
    check_requests(c, p, l);
}

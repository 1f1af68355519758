/* What is limited over the whole plan: the resources of a pool, whichever types its launches become,
 * and the instances left in a capacity reservation.
 */
#include "sched/check_inner.h"

#include "api/resources.h"

#include <inttypes.h>

/* --- limits --- */

static struct str pool_of(const struct site *p)
{
    struct str key = STR(LABEL_NODEPOOL), name = STR_NONE;
    if (p->kind == SITE_LAUNCH)
        return p->maybe_blueprint->pool->pool->object.meta.name;
    if (p->maybe_node)
        name = str_map_get(&p->maybe_node->object.meta.labels, key);
    return name.p || !p->maybe_claim ? name : str_map_get(&p->maybe_claim->object.meta.labels, key);
}

/* The most that a launch may turn out to have. */
static wide launch_capacity(const struct blueprint *b, struct str name)
{
    const struct instance_types *s = b->pool->types;
    const struct resource_column *column = instance_types_resource(s, name);
    wide most = 0;
    if (!column)
        return 0;
    combination_each(b, of)
    {
        wide here = column->capacity[s->offering_row[of.offering]];
        most = here > most ? here : most;
    }
    return most;
}

/* What the node reports or, until it is initialised, what its claim expects. */
static wide site_capacity(const struct site *p, struct str name)
{
    const struct nodeclaim *claim = p->maybe_claim;
    if (str_eqz(name, "nodes"))
        return 1000;
    if (p->kind == SITE_LAUNCH)
        return launch_capacity(p->maybe_blueprint, name);
    struct quantity amount = { 0 };
    bool initialized = false;
    if (p->maybe_node) {
        const struct str_map *labels = &p->maybe_node->object.meta.labels;
        amount = resources_get(&p->maybe_node->status.capacity, name);
        initialized = str_eqz(str_map_get(labels, STR(LABEL_INITIALIZED)), "true");
    }
    if (!quantity_is_zero(amount) || initialized || !claim)
        return milli_ceil(amount);
    if (claim->status.capacity.count)
        return milli_ceil(resources_get(&claim->status.capacity, name));
    return p->maybe_blueprint ? launch_capacity(p->maybe_blueprint, name)
                              : milli_ceil(resources_get(&claim->spec.resources.requests, name));
}

static void check_limit(struct checker *c, const struct nodepool *pool,
                        const struct resource *limit)
{
    wide there = 0, launched = 0, allowed = milli_floor(limit->amount);
    for (uint32_t i = 0; i < c->site_count; i++) {
        const struct site *p = &c->sites[i];
        if (str_eq(pool_of(p), pool->object.meta.name))
            *(p->kind == SITE_LAUNCH ? &launched : &there) += site_capacity(p, limit->name);
    }
    /* A pool that is over its limit already is nobody's fault here, as long as it gets no more. */
    if (launched > 0 && there + launched > allowed)
        finding(c, PLAN_NONE, PLAN_NONE,
                "pool %.*s is limited to %s %.*s: it has %s, and the launches may add %s",
                STR_ARG(pool->object.meta.name), amount_shown(c, limit->name, allowed),
                STR_ARG(limit->name), amount_shown(c, limit->name, there),
                amount_shown(c, limit->name, launched));
}

void check_limits(struct checker *c)
{
    for (uint32_t i = 0; i < c->snap->pool_count; i++) {
        const struct nodepool *pool = c->snap->pools[i].pool;
        for (uint32_t k = 0; k < pool->spec.limits.count; k++)
            check_limit(c, pool, &pool->spec.limits.items[k]);
    }
}

/* --- reservations --- */

static const struct offering_shape *launch_shape(const struct site *p, const struct plan_launch *l)
{
    const struct instance_types *s = p->maybe_blueprint->pool->types;
    return &s->shapes[s->offering_shape[l->offering]];
}

/* A claim for reserved capacity must not turn into anything else. */
static void check_pinned(struct checker *c, const struct site *p, const struct plan_launch *l)
{
    const struct offering_shape *shape = launch_shape(p, l);
    const struct requirement *capacity =
        requirements_find(&l->requirements, STR(LABEL_CAPACITY_TYPE));
    if (!capacity || capacity->complement || capacity->values.count != 1)
        finding(c, PLAN_NONE, p->index, "%s is reserved capacity and does not pin that", p->name);
    for (uint32_t i = 0; i < shape->requirements.count; i++) {
        const struct requirement *of = &shape->requirements.items[i];
        if (of->complement || of->values.count != 1 ||
            !str_eq(of->values.items[0], shape->reservation_id))
            continue;
        const struct requirement *pin = requirements_find(&l->requirements, of->key);
        if (!pin || pin->complement || !requirement_has(pin, shape->reservation_id))
            finding(c, PLAN_NONE, p->index, "%s uses reservation %.*s and does not pin it", p->name,
                    STR_ARG(shape->reservation_id));
    }
}

struct reservation {
    struct str id;
    uint64_t left, used;
};

/* Pools may see different numbers: the smallest counts. */
static uint64_t reservation_left(const struct checker *c, struct str id)
{
    uint64_t left = UINT64_MAX;
    for (uint32_t i = 0; i < c->snap->pool_count; i++) {
        const struct instance_types *s = c->snap->pools[i].types;
        for (uint32_t o = 0; s && o < s->offering_count; o++) {
            if (str_eq(s->shapes[s->offering_shape[o]].reservation_id, id) &&
                s->reservation_capacity[o] < left)
                left = s->reservation_capacity[o];
        }
    }
    return left;
}

void check_reservations(struct checker *c)
{
    VEC(struct reservation) all = { 0 };
    for (uint32_t i = 0; i < c->site_count; i++) {
        const struct site *p = &c->sites[i];
        if (p->kind != SITE_LAUNCH)
            continue;
        const struct plan_launch *l = &c->plan->launches[p->index];
        const struct offering_shape *shape = launch_shape(p, l);
        if (shape->capacity_type_ix != CAPACITY_TYPE_RESERVED)
            continue;
        check_pinned(c, p, l);
        size_t k = 0;
        while (k < all.count && !str_eq(all.items[k].id, shape->reservation_id))
            k++;
        if (k == all.count)
            vec_push(&all,
                     (struct reservation){ .id = shape->reservation_id,
                                           .left = reservation_left(c, shape->reservation_id) });
        if (all.items[k].used++ == all.items[k].left)
            finding(c, PLAN_NONE, p->index,
                    "%s: reservation %.*s has %" PRIu64 " left, and launches use more", p->name,
                    STR_ARG(shape->reservation_id), all.items[k].left);
    }
    vec_done(&all);
}

/* sched/reference_places_testing.h - what the reference solver (reference_testing.h) reasons about, and
 * where pods can be: nodes, and concrete nodes that could be launched.
 */
#pragma once

#include "api/requests.h"
#include "sched/world_testing.h"

#define REF_PODS_MAX 24 /* bound ones too */
#define REF_HOMES_MAX 8
#define REF_OPTIONS_MAX 256
#define REF_RESOURCES_MAX 6
#define REF_TERMS_MAX 3
#define REF_DOMAINS_MAX 8
#define REF_LEVELS_MAX 4
#define REF_STEPS_MAX 200000 /* then it gives up */

#define REF_UNPLACED (-1)

struct ref_set { /* of options */
    uint64_t words[REF_OPTIONS_MAX / 64];
};

/* A node, or what can become one. */
struct ref_place {
    struct str_map labels; /* the host name apart */
    const struct taint *taints;
    uint32_t taint_count;
    bool cordoned;
    int64_t room[REF_RESOURCES_MAX];
    /* Of options: */
    uint32_t pool, type, offering;
    usd_hour price;
    bool limited; /* its pool has limits */
};

struct ref_term {
    enum ref_kind { REF_SPREAD, REF_AFFINITY, REF_ANTI } kind;
    struct str key;
    bool hostname;
    uint32_t matches; /* bits of pods */
    int64_t max_skew, min_domains;
    struct str domains[REF_DOMAINS_MAX]; /* that count for the minimum */
    uint32_t domain_count;
    uint32_t counts_home;         /* bits: nodes that pass the filter */
    struct ref_set counts_option; /* options that do */
};

struct ref_pod {
    const struct pod *pod;
    uint32_t ix; /* into the snapshot */
    bool bound;
    uint32_t home; /* if it is bound */
    int64_t request[REF_RESOURCES_MAX];
    int64_t priority;
    uint32_t level; /* by priority; 0 is the highest */
    uint32_t alike; /* the pod before it that nothing tells from it, or itself */
    struct ref_term terms[REF_TERMS_MAX];
    uint32_t term_count;
    uint32_t homes;         /* bits: where it may go, as far as it alone is concerned */
    struct ref_set options; /* likewise */
    uint32_t conflicts;     /* bits: pods that cannot be on one node with it */
};

struct ref_group { /* pods that share a new node */
    uint32_t pods; /* bits */
    int64_t used[REF_RESOURCES_MAX];
    struct ref_set options; /* that take them all */
    usd_hour price;         /* of the cheapest of these */
};

struct ref_result {
    bool found;                        /* else it gave up */
    uint32_t unplaced[REF_LEVELS_MAX]; /* per level of priority */
    usd_hour price;
    /* Per pod: REF_UNPLACED, a node, or home_count + group. */
    int where[REF_PODS_MAX];
    uint32_t option[REF_PODS_MAX]; /* per group */
    uint32_t group_count;
    uint32_t order[REF_PODS_MAX]; /* of the pods that have a place */
    uint32_t order_count;
};

struct reference {
    struct arena *arena;
    const struct snapshot *snap;
    struct str resources[REF_RESOURCES_MAX];
    uint32_t resource_count;
    struct ref_pod pods[REF_PODS_MAX]; /* pending ones first */
    uint32_t pod_count, pending_count;
    struct ref_place homes[REF_HOMES_MAX];
    uint32_t home_count;
    struct ref_place options[REF_OPTIONS_MAX]; /* cheapest first */
    uint32_t option_count;
    uint32_t level_count;

    /* The search. */
    int64_t free[REF_HOMES_MAX][REF_RESOURCES_MAX];
    struct ref_group groups[REF_PODS_MAX];
    uint32_t group_count;
    uint32_t chosen[REF_PODS_MAX]; /* per group: its option */
    int where[REF_PODS_MAX];
    uint32_t unplaced[REF_LEVELS_MAX];
    uint64_t steps;
    struct ref_result best;
    bool has_best;
};

/* --- sets of options --- */

static inline bool ref_has(const struct ref_set *s, uint32_t i)
{
    return s->words[i / 64] >> (i % 64) & 1;
}
static inline void ref_add(struct ref_set *s, uint32_t i)
{
    s->words[i / 64] |= UINT64_C(1) << (i % 64);
}
static inline void ref_drop(struct ref_set *s, uint32_t i)
{
    s->words[i / 64] &= ~(UINT64_C(1) << (i % 64));
}

/* --- labels and taints, as kube-scheduler reads them --- */

static inline bool ref_listed(const struct str_list *values, struct str value)
{
    for (uint32_t i = 0; i < values->count; i++) {
        if (str_eq(values->items[i], value))
            return true;
    }
    return false;
}

static inline bool ref_expression_matches(const struct expression *e, const struct str_map *labels)
{
    struct str value = str_map_get(labels, label_normalise(e->key));
    int64_t have, bound;
    switch ((enum requirement_op)e->op) {
    case OP_UNSET: /* of a storage class */
    case OP_IN:
        return value.p && ref_listed(&e->values, value);
    case OP_NOT_IN:
        return !value.p || !ref_listed(&e->values, value);
    case OP_EXISTS:
        return value.p != NULL;
    case OP_DOES_NOT_EXIST:
        return value.p == NULL;
    case OP_GT:
    case OP_LT:
        if (!value.p || !str_to_i64(value, &have) || !str_to_i64(e->values.items[0], &bound))
            return false;
        return e->op == OP_GT ? have > bound : have < bound;
    case OP_GTE:
    case OP_LTE:
        break;
    }
    fail_msg("the reference does not know operator %u", e->op);
    return false;
}

static inline bool ref_term_matches(const struct expression *items, uint32_t count,
                                    const struct str_map *labels)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!ref_expression_matches(&items[i], labels))
            return false;
    }
    return count > 0;
}

/* Node selector and required node affinity. */
static inline bool ref_selects(const struct pod_spec *spec, const struct affinity *maybe_affinity,
                               const struct str_map *labels)
{
    for (uint32_t i = 0; i < spec->node_selector.count; i++) {
        const struct str_pair *want = &spec->node_selector.items[i];
        struct str have = str_map_get(labels, label_normalise(want->key));
        if (!have.p || !str_eq(have, want->value))
            return false;
    }
    if (!maybe_affinity || !maybe_affinity->node.maybe_required)
        return true;
    const struct node_selector *required = maybe_affinity->node.maybe_required;
    for (uint32_t i = 0; i < required->terms.count; i++) {
        if (ref_term_matches(required->terms.items[i].expressions.items,
                             required->terms.items[i].expressions.count, labels))
            return true;
    }
    return false;
}

static inline bool ref_tolerates_one(const struct pod_spec *spec, const struct taint *taint)
{
    for (uint32_t i = 0; i < spec->tolerations.count; i++) {
        if (toleration_tolerates(&spec->tolerations.items[i], taint))
            return true;
    }
    return taint->effect == EFFECT_PREFER_NO_SCHEDULE;
}

static inline bool ref_tolerates_taints(const struct pod_spec *spec, const struct ref_place *place)
{
    for (uint32_t i = 0; i < place->taint_count; i++) {
        if (!ref_tolerates_one(spec, &place->taints[i]))
            return false;
    }
    return true;
}

static inline bool ref_tolerates(const struct pod_spec *spec, const struct ref_place *place)
{
    static const struct taint cordon = { .key = { "node.kubernetes.io/unschedulable", 32 },
                                         .value = { "", 0 },
                                         .effect = EFFECT_NO_SCHEDULE };
    return ref_tolerates_taints(spec, place) &&
           (!place->cordoned || ref_tolerates_one(spec, &cordon));
}

/* --- resources --- */

static inline void ref_amounts(const struct reference *ref, const struct resources *list,
                               int64_t (*round)(struct quantity), int64_t *out)
{
    for (uint32_t i = 0; i < ref->resource_count; i++)
        out[i] = round(resources_get(list, ref->resources[i]));
}

static inline bool ref_fits(const struct reference *ref, const int64_t *request,
                            const int64_t *room)
{
    for (uint32_t i = 0; i < ref->resource_count; i++) {
        if (request[i] > room[i] || room[i] < 0)
            return false;
    }
    return true;
}

static inline void ref_take(const struct reference *ref, int64_t *room, const int64_t *request,
                            int sign)
{
    for (uint32_t i = 0; i < ref->resource_count; i++)
        room[i] -= sign * request[i];
}

/* A cordon does not keep daemons away. */
static inline bool ref_daemon_comes(const struct pod_spec *spec, const struct ref_place *place)
{
    return ref_selects(spec, spec->affinity, &place->labels) && ref_tolerates_taints(spec, place);
}

/* Daemons that will be on such a node. None is running yet in these worlds. */
static inline void ref_take_daemons(struct reference *ref, struct ref_place *place)
{
    for (uint32_t i = 0; i < ref->snap->daemon_set_count; i++) {
        const struct pod_spec *spec = &ref->snap->daemon_sets[i]->spec.maybe_template->spec;
        struct resources list;
        int64_t request[REF_RESOURCES_MAX];
        struct err err = { 0 };
        if (!ref_daemon_comes(spec, place))
            continue;
        EXPECT_OK(pod_spec_requests(spec, ref->arena, &list, &err), err);
        ref_amounts(ref, &list, milli_ceil, request);
        request[0] = 1000; /* pods */
        ref_take(ref, place->room, request, 1);
    }
}

static inline void ref_add_resource(struct reference *ref, struct str name)
{
    for (uint32_t i = 0; i < ref->resource_count; i++) {
        if (str_eq(ref->resources[i], name))
            return;
    }
    EXPECT_TRUE(ref->resource_count < REF_RESOURCES_MAX);
    ref->resources[ref->resource_count++] = name;
}

/* --- options --- */

struct ref_labels {
    struct str_pair items[32];
    uint32_t count;
};

static inline void ref_label(struct ref_labels *l, struct str key, struct str value)
{
    for (uint32_t i = 0; i < l->count; i++) {
        if (str_eq(l->items[i].key, key)) {
            l->items[i].value = value;
            return;
        }
    }
    KV_ASSERT(l->count < KV_COUNT_OF(l->items));
    l->items[l->count++] = (struct str_pair){ key, value };
}

static inline struct str_map ref_labels_map(struct arena *arena, const struct ref_labels *l)
{
    struct str_pair *items = arena_array(arena, struct str_pair, l->count);
    memcpy(items, l->items, l->count * sizeof *items);
    qsort(items, l->count, sizeof *items, str_pair_order);
    return (struct str_map){ items, l->count };
}

static inline void ref_labels_of(struct ref_labels *l, const struct requirements *set)
{
    for (uint32_t i = 0; i < set->count; i++) {
        const struct requirement *r = &set->items[i];
        if (!r->complement && r->values.count == 1)
            ref_label(l, r->key, r->values.items[0]);
    }
}

static inline void ref_add_option(struct reference *ref, uint32_t pool_ix, uint32_t offering,
                                  const struct ref_labels *labels)
{
    const struct sched_pool *pool = &ref->snap->pools[pool_ix];
    const struct claim_node_spec *spec = &pool->pool->spec.template.spec;
    struct ref_place place = { .labels = ref_labels_map(ref->arena, labels),
                               .taints = spec->taints.items,
                               .taint_count = spec->taints.count,
                               .pool = pool_ix,
                               .type = pool->types->offering_type[offering],
                               .offering = offering,
                               .price = instance_types_price(pool->types, offering),
                               .limited = pool->pool->spec.limits.count > 0 };
    for (uint32_t i = 0; i < spec->requirements.count; i++) {
        if (!ref_expression_matches(&spec->requirements.items[i], &place.labels))
            return;
    }
    struct resources room =
        instance_type_allocatable(pool->types, pool->types->offering_row[offering], ref->arena);
    ref_amounts(ref, &room, milli_floor, place.room);
    ref_take_daemons(ref, &place);
    EXPECT_TRUE(ref->option_count < REF_OPTIONS_MAX);
    ref->options[ref->option_count++] = place;
}

/* A label that the pool asks for and that no type has gets each value that it may have; if it may
 * have any, those that matter in these worlds and one that does not. */
static inline void ref_add_open_labels(struct reference *ref, uint32_t pool_ix, uint32_t offering,
                                       struct ref_labels labels, uint32_t from)
{
    static const struct str some[] = { STR("a"), STR("b"), STR("other") };
    const struct nodepool *pool = ref->snap->pools[pool_ix].pool;
    for (uint32_t i = from; i < pool->spec.template.spec.requirements.count; i++) {
        const struct expression *e = &pool->spec.template.spec.requirements.items[i];
        struct str_map so_far = ref_labels_map(ref->arena, &labels);
        if ((e->op != OP_IN && e->op != OP_EXISTS) || str_map_get(&so_far, e->key).p)
            continue;
        struct str_list values = e->op == OP_IN ? e->values : (struct str_list){ some, 3 };
        for (uint32_t v = 0; v < values.count; v++) {
            struct ref_labels with = labels;
            ref_label(&with, e->key, values.items[v]);
            ref_add_open_labels(ref, pool_ix, offering, with, i + 1);
        }
        return;
    }
    ref_add_option(ref, pool_ix, offering, &labels);
}

static inline void ref_add_offering(struct reference *ref, uint32_t pool_ix, uint32_t offering)
{
    const struct sched_pool *pool = &ref->snap->pools[pool_ix];
    const struct instance_types *types = pool->types;
    struct ref_labels labels = { .count = 0 };
    struct requirements of_type =
        instance_type_requirements(types, types->offering_type[offering], ref->arena);
    ref_labels_of(&labels, &of_type);
    ref_labels_of(&labels, &types->shapes[types->offering_shape[offering]].requirements);
    for (uint32_t i = 0; i < pool->pool->spec.template.meta.labels.count; i++)
        ref_label(&labels, pool->pool->spec.template.meta.labels.items[i].key,
                  pool->pool->spec.template.meta.labels.items[i].value);
    ref_label(&labels, STR(LABEL_NODEPOOL), pool->pool->object.meta.name);
    ref_add_open_labels(ref, pool_ix, offering, labels, 0);
}

static inline int ref_by_price(const void *va, const void *vb)
{
    const struct ref_place *a = va, *b = vb;
    if (a->price != b->price)
        return a->price < b->price ? -1 : 1;
    if (a->pool != b->pool)
        return a->pool < b->pool ? -1 : 1;
    return a->offering < b->offering ? -1 : a->offering > b->offering;
}

static inline void ref_add_options(struct reference *ref)
{
    for (uint32_t p = 0; p < ref->snap->pool_count; p++) {
        const struct sched_pool *pool = &ref->snap->pools[p];
        if (pool->not_ready.len)
            continue;
        bitset_each(&pool->types->available, o)
            ref_add_offering(ref, p, o);
    }
    qsort(ref->options, ref->option_count, sizeof *ref->options, ref_by_price);
}

static inline void ref_add_homes(struct reference *ref)
{
    for (uint32_t i = 0; i < ref->snap->node_count; i++) {
        const struct node *node = ref->snap->nodes[i];
        EXPECT_TRUE(ref->home_count < REF_HOMES_MAX);
        struct ref_place *place = &ref->homes[ref->home_count++];
        *place = (struct ref_place){ .labels = node->object.meta.labels,
                                     .taints = node->spec.taints.items,
                                     .taint_count = node->spec.taints.count,
                                     .cordoned = node->spec.unschedulable };
        ref_amounts(ref, &node->status.allocatable, milli_floor, place->room);
        ref_take_daemons(ref, place);
    }
}

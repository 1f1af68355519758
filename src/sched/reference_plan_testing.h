/* sched/reference_plan_testing.h - a result of the reference solver as a plan, for the checker. */
#pragma once

#include "sched/reference_testing.h"

static inline void ref_pin(struct reference *ref, struct requirements *set, struct str key,
                           struct str value)
{
    struct str *values = arena_array(ref->arena, struct str, 1);
    values[0] = value;
    struct requirement r = requirement_in(ref->arena, key, (struct str_list){ values, 1 });
    *set = requirements_add(ref->arena, set, &r);
}

/* Exactly this type, offering and value of labels that the pool leaves open. */
static inline void ref_describe(struct reference *ref, const struct ref_place *o,
                                struct plan_launch *l)
{
    const struct sched_pool *pool = &ref->snap->pools[o->pool];
    const struct claim_node_spec *spec = &pool->pool->spec.template.spec;
    const struct requirements *shape =
        &pool->types->shapes[pool->types->offering_shape[o->offering]].requirements;
    struct ref_labels labels = { .count = 0 };
    struct err err = { 0 };
    EXPECT_OK(requirements_from_expressions(ref->arena, spec->requirements.items,
                                            spec->requirements.count, &l->requirements, &err),
              err);
    for (uint32_t i = 0; i < shape->count; i++)
        l->requirements = requirements_add(ref->arena, &l->requirements, &shape->items[i]);
    ref_pin(ref, &l->requirements, STR(LABEL_INSTANCE_TYPE), pool->types->names[o->type]);
    for (uint32_t i = 0; i < pool->pool->spec.template.meta.labels.count; i++)
        ref_label(&labels, pool->pool->spec.template.meta.labels.items[i].key,
                  pool->pool->spec.template.meta.labels.items[i].value);
    for (uint32_t i = 0; i < spec->requirements.count; i++) {
        struct str key = spec->requirements.items[i].key, value = str_map_get(&o->labels, key);
        if (!value.p || str_sorted_has(pool->well_known.items, pool->well_known.count, key))
            continue;
        ref_pin(ref, &l->requirements, key, value);
        ref_label(&labels, key, value);
    }
    l->labels = ref_labels_map(ref->arena, &labels);
}

static inline void ref_request(struct reference *ref, struct plan_launch *l,
                               const struct ref_place *o)
{
    struct resources list, pods = { 0 };
    struct resource one = { STR("pods"), quantity_of_milli(1000) };
    struct err err = { 0 };
    for (uint32_t i = 0; i < l->pods.count; i++) {
        EXPECT_OK(pod_requests_on_node(ref->snap->pods[l->pods.items[i]], ref->arena, &list, &err),
                  err);
        EXPECT_OK(resources_merge(ref->arena, &pods, &list, &pods, &err), err);
    }
    for (uint32_t i = 0; i < ref->snap->daemon_set_count; i++) {
        const struct pod_spec *spec = &ref->snap->daemon_sets[i]->spec.maybe_template->spec;
        if (!ref_daemon_comes(spec, o))
            continue;
        EXPECT_OK(pod_spec_requests(spec, ref->arena, &list, &err), err);
        EXPECT_OK(resources_merge(ref->arena, &pods, &list, &pods, &err), err);
        EXPECT_OK(resources_merge(ref->arena, &pods, &(struct resources){ &one, 1 }, &pods, &err),
                  err);
    }
    l->requests = pods;
}

static const struct snapshot *ref_sorting; /* for qsort */

static inline int ref_pod_order(const void *va, const void *vb)
{
    const struct meta *a = &ref_sorting->pods[*(const uint32_t *)va]->object.meta;
    const struct meta *b = &ref_sorting->pods[*(const uint32_t *)vb]->object.meta;
    int order = str_cmp(a->namespace_, b->namespace_);
    return order ? order : str_cmp(a->name, b->name);
}

static inline struct plan_pods ref_pods_at(struct reference *ref, const struct ref_result *best,
                                           int where)
{
    uint32_t *items = arena_array(ref->arena, uint32_t, ref->pending_count), count = 0;
    for (uint32_t i = 0; i < ref->pending_count; i++) {
        if (best->where[i] == where)
            items[count++] = ref->pods[i].ix;
    }
    ref_sorting = ref->snap;
    qsort(items, count, sizeof *items, ref_pod_order);
    return (struct plan_pods){ items, count };
}

static inline int ref_launch_order(const void *va, const void *vb)
{
    const struct plan_launch *a = va, *b = vb;
    if (a->pool != b->pool)
        return nodepool_order(ref_sorting->pools[a->pool].pool, ref_sorting->pools[b->pool].pool);
    if (a->price != b->price)
        return a->price > b->price ? -1 : 1;
    return ref_pod_order(a->pods.items, b->pods.items);
}

static inline const struct plan *reference_plan(struct reference *ref,
                                                const struct ref_result *best)
{
    static const struct plan_blame blame = { .pool = PLAN_NONE,
                                             .reason = REASON_RESOURCES,
                                             .detail = { "the reference says so", 21 } };
    struct plan *plan = arena_new(ref->arena, struct plan);
    struct plan_launch *launches = arena_array(ref->arena, struct plan_launch, best->group_count);
    struct plan_existing *existing = arena_array(ref->arena, struct plan_existing, ref->home_count);
    struct plan_miss *misses = arena_array(ref->arena, struct plan_miss, ref->pending_count);
    uint32_t *order = arena_array(ref->arena, uint32_t, best->order_count);

    for (uint32_t g = 0; g < best->group_count; g++) {
        const struct ref_place *o = &ref->options[best->option[g]];
        struct plan_launch *l = &launches[g];
        uint32_t *types = arena_array(ref->arena, uint32_t, 1);
        types[0] = o->type;
        *l =
            (struct plan_launch){ .pool = o->pool,
                                  .type = o->type,
                                  .offering = o->offering,
                                  .row = ref->snap->pools[o->pool].types->offering_row[o->offering],
                                  .price = o->price,
                                  .types = types,
                                  .type_count = 1,
                                  .pods = ref_pods_at(ref, best, (int)(ref->home_count + g)) };
        ref_describe(ref, o, l);
        ref_request(ref, l, o);
    }
    qsort(launches, best->group_count, sizeof *launches, ref_launch_order);
    for (uint32_t h = 0; h < ref->home_count; h++) {
        struct plan_pods pods = ref_pods_at(ref, best, (int)h);
        if (pods.count)
            existing[plan->existing_count++] = (struct plan_existing){ h, PLAN_NONE, pods };
    }
    struct plan_pods missed = ref_pods_at(ref, best, REF_UNPLACED);
    for (uint32_t i = 0; i < missed.count; i++)
        misses[i] = (struct plan_miss){ missed.items[i], &blame, 1 };
    for (uint32_t i = 0; i < best->order_count; i++)
        order[i] = ref->pods[best->order[i]].ix;

    plan->launches = launches;
    plan->launch_count = best->group_count;
    plan->existing = existing;
    plan->misses = misses;
    plan->miss_count = missed.count;
    plan->order = (struct plan_pods){ order, best->order_count };
    plan->price = best->price;
    return plan;
}

/* sched/reference_pods_testing.h - pods as the reference solver (reference_testing.h) sees them: where
 * each may be by itself, and whom it concerns.
 */
#pragma once

#include "sched/reference_places_testing.h"

/* --- volumes and ports --- */

/* Where its volumes can be; false: they cannot be had. */
static inline const struct pvc *ref_claim(const struct reference *ref, struct str name)
{
    for (uint32_t i = 0; i < ref->snap->pvc_count; i++) {
        if (str_eq(ref->snap->pvcs[i]->object.meta.name, name))
            return ref->snap->pvcs[i];
    }
    return NULL;
}

static inline bool ref_bound_volume_reaches(const struct reference *ref, const struct pvc *claim,
                                            const struct str_map *labels)
{
    for (uint32_t i = 0; i < ref->snap->pv_count; i++) {
        const struct pv *pv = ref->snap->pvs[i];
        if (!str_eq(pv->object.meta.name, claim->spec.volume_name))
            continue;
        if (!pv->spec.maybe_affinity)
            return true;
        for (uint32_t t = 0; t < pv->spec.maybe_affinity->required.terms.count; t++) {
            const struct node_selector_term *term =
                &pv->spec.maybe_affinity->required.terms.items[t];
            if (ref_term_matches(term->expressions.items, term->expressions.count, labels))
                return true;
        }
    }
    return false;
}

static inline bool ref_class_reaches(const struct reference *ref, const struct pvc *claim,
                                     const struct str_map *labels)
{
    for (uint32_t i = 0; i < ref->snap->storage_class_count; i++) {
        const struct storage_class *sc = ref->snap->storage_classes[i];
        if (!str_eq(sc->object.meta.name, claim->spec.storage_class_name))
            continue;
        for (uint32_t t = 0; t < sc->allowed_topologies.count; t++) {
            const struct topology_term *term = &sc->allowed_topologies.items[t];
            if (ref_term_matches(term->expressions.items, term->expressions.count, labels))
                return true;
        }
        return sc->allowed_topologies.count == 0;
    }
    return false;
}

static inline bool ref_volumes_reach(const struct reference *ref, const struct pod *pod,
                                     const struct str_map *labels)
{
    for (uint32_t i = 0; i < pod->volumes.count; i++) {
        if (!pod->volumes.items[i].claim.name.len)
            continue;
        const struct pvc *claim = ref_claim(ref, pod->volumes.items[i].claim.name);
        if (!claim)
            return false;
        if (claim->spec.volume_name.len ? !ref_bound_volume_reaches(ref, claim, labels)
                                        : !ref_class_reaches(ref, claim, labels))
            return false;
    }
    return true;
}

static inline bool ref_has_host_port(const struct pod *pod)
{
    for (uint32_t c = 0; c < pod->spec->containers.count; c++) {
        const struct container *container = &pod->spec->containers.items[c];
        for (uint32_t i = 0; i < container->ports.count; i++) {
            if (pod_host_port(pod->spec, &container->ports.items[i]))
                return true; /* there is but one port in these worlds */
        }
    }
    return false;
}

/* --- topology --- */

static inline bool ref_matches(const struct pod *by, const struct label_selector *selector,
                               const struct pod *pod)
{
    return str_eq(by->object.meta.namespace_, pod->object.meta.namespace_) &&
           label_selector_matches(selector, &pod->object.meta.labels);
}

static inline struct ref_term *ref_term_add(struct reference *ref, struct ref_pod *p,
                                            enum ref_kind kind, struct str key,
                                            const struct label_selector *selector)
{
    EXPECT_TRUE(p->term_count < REF_TERMS_MAX);
    struct ref_term *t = &p->terms[p->term_count++];
    *t = (struct ref_term){ .kind = kind, .key = key, .hostname = str_eqz(key, LABEL_HOSTNAME) };
    for (uint32_t i = 0; i < ref->pod_count; i++) {
        if (ref_matches(p->pod, selector, ref->pods[i].pod))
            t->matches |= 1u << i;
    }
    return t;
}

static inline void ref_domain_add(struct ref_term *t, const struct ref_place *place)
{
    struct str value = str_map_get(&place->labels, t->key);
    for (uint32_t i = 0; i < t->domain_count; i++) {
        if (str_eq(t->domains[i], value))
            return;
    }
    if (!value.p)
        return;
    EXPECT_TRUE(t->domain_count < REF_DOMAINS_MAX);
    t->domains[t->domain_count++] = value;
}

/* A node without the label of any of the pod's spreads counts for none of them. */
static inline bool ref_filter_passes(const struct ref_pod *p, const struct spread_constraint *c,
                                     const struct ref_place *place)
{
    for (uint32_t i = 0; i < p->pod->spec->spread.count; i++) {
        const struct spread_constraint *other = &p->pod->spec->spread.items[i];
        if (other->when_unsatisfiable == UNSATISFIABLE_DO_NOT_SCHEDULE &&
            !str_eqz(other->topology_key, LABEL_HOSTNAME) &&
            !str_map_get(&place->labels, other->topology_key).p)
            return false;
    }
    return (c->node_affinity_policy == INCLUSION_IGNORE ||
            ref_selects(p->pod->spec, p->pod->maybe_affinity, &place->labels)) &&
           (c->node_taints_policy != INCLUSION_HONOR || ref_tolerates(p->pod->spec, place));
}

static inline bool ref_suits(const struct reference *ref, const struct ref_pod *p,
                             const struct ref_place *place)
{
    return ref_selects(p->pod->spec, p->pod->maybe_affinity, &place->labels) &&
           ref_tolerates(p->pod->spec, place) && ref_volumes_reach(ref, p->pod, &place->labels) &&
           ref_fits(ref, p->request, place->room);
}

/* Limits of pools, and what is left of reservations, for the options of groups [0, count). */
static inline bool ref_options_go_together(const struct reference *ref, uint32_t count)
{
    const struct ref_place *last = &ref->options[ref->chosen[count - 1]];
    const struct sched_pool *pool = &ref->snap->pools[last->pool];
    const struct resources *limits = &pool->pool->spec.limits;
    int64_t left[REF_RESOURCES_MAX], nodes = 0, reserved = 0;
    uint32_t of_reservation = pool->types->reservation_capacity[last->offering];

    EXPECT_TRUE(limits->count <= REF_RESOURCES_MAX);
    for (uint32_t k = 0; k < limits->count; k++)
        left[k] = milli_floor(limits->items[k].amount);
    for (uint32_t n = 0; n < ref->snap->node_count; n++) {
        const struct node *node = ref->snap->nodes[n];
        if (!str_eq(str_map_get(&node->object.meta.labels, STR(LABEL_NODEPOOL)),
                    pool->pool->object.meta.name))
            continue;
        nodes++;
        for (uint32_t k = 0; k < limits->count; k++)
            left[k] -= milli_ceil(resources_get(&node->status.capacity, limits->items[k].name));
    }
    for (uint32_t g = 0; g < count; g++) {
        const struct ref_place *o = &ref->options[ref->chosen[g]];
        if (o->pool == last->pool) {
            nodes++;
            struct resources capacity = instance_type_capacity(
                pool->types, pool->types->offering_row[o->offering], ref->arena);
            for (uint32_t k = 0; k < limits->count; k++)
                left[k] -= milli_ceil(resources_get(&capacity, limits->items[k].name));
        }
        /* Pools share a catalogue here, so an offering has the same number in all of them. */
        reserved += o->offering == last->offering;
    }
    for (uint32_t k = 0; k < limits->count; k++) {
        if (str_eqz(limits->items[k].name, "nodes"))
            left[k] -= nodes * 1000;
        if (left[k] < 0)
            return false;
    }
    return !of_reservation || reserved <= of_reservation;
}

static inline void ref_spread_add(struct reference *ref, struct ref_pod *p,
                                  const struct spread_constraint *c)
{
    struct ref_term *t = ref_term_add(ref, p, REF_SPREAD, c->topology_key, c->maybe_selector);
    t->max_skew = c->max_skew;
    t->min_domains = c->min_domains.set ? c->min_domains.value : 0;
    for (uint32_t i = 0; i < ref->home_count; i++) {
        if (!ref_filter_passes(p, c, &ref->homes[i]))
            continue;
        t->counts_home |= 1u << i;
        ref_domain_add(t, &ref->homes[i]);
    }
    for (uint32_t i = 0; i < ref->option_count; i++) {
        if (!ref_filter_passes(p, c, &ref->options[i]))
            continue;
        ref_add(&t->counts_option, i);
        ref->chosen[0] = i;
        if (ref_suits(ref, p, &ref->options[i]) && ref_options_go_together(ref, 1))
            ref_domain_add(t, &ref->options[i]);
    }
}

static inline void ref_add_terms(struct reference *ref, struct ref_pod *p)
{
    for (uint32_t i = 0; i < p->pod->spec->spread.count; i++) {
        const struct spread_constraint *c = &p->pod->spec->spread.items[i];
        if (c->when_unsatisfiable == UNSATISFIABLE_DO_NOT_SCHEDULE)
            ref_spread_add(ref, p, c);
    }
    if (!p->pod->maybe_affinity)
        return;
    const struct affinity *a = p->pod->maybe_affinity;
    EXPECT_TRUE(a->pod.required.count <= 1); /* several are judged together: not here */
    for (uint32_t i = 0; i < a->pod.required.count; i++)
        ref_term_add(ref, p, REF_AFFINITY, a->pod.required.items[i].topology_key,
                     a->pod.required.items[i].maybe_selector);
    for (uint32_t i = 0; i < a->anti.required.count; i++)
        ref_term_add(ref, p, REF_ANTI, a->anti.required.items[i].topology_key,
                     a->anti.required.items[i].maybe_selector);
}

/* --- all of them --- */

/* Only the heaviest pools that would take it, and those lighter than a pool that may be full. */
static inline void ref_keep_heaviest(const struct reference *ref, struct ref_pod *p)
{
    int64_t floor = INT64_MIN; /* of weights */
    for (uint32_t i = 0; i < ref->option_count; i++) {
        int64_t weight = ref->snap->pools[ref->options[i].pool].pool->spec.weight.value;
        if (ref_has(&p->options, i) && !ref->options[i].limited && weight > floor)
            floor = weight;
    }
    for (uint32_t i = 0; i < ref->option_count; i++) {
        if (ref->snap->pools[ref->options[i].pool].pool->spec.weight.value < floor)
            ref_drop(&p->options, i);
    }
}

static inline void ref_add_pod(struct reference *ref, uint32_t ix)
{
    const struct pod *pod = ref->snap->pods[ix];
    struct resources list;
    struct err err = { 0 };
    EXPECT_TRUE(ref->pod_count < REF_PODS_MAX);
    struct ref_pod *p = &ref->pods[ref->pod_count++];
    *p = (struct ref_pod){ .pod = pod, .ix = ix, .priority = pod->spec->priority.value };
    EXPECT_OK(pod_requests_on_node(pod, ref->arena, &list, &err), err);
    ref_amounts(ref, &list, milli_ceil, p->request);
    for (uint32_t n = 0; pod->node_name.len && n < ref->snap->node_count; n++) {
        if (str_eq(ref->snap->nodes[n]->object.meta.name, pod->node_name)) {
            p->bound = true;
            p->home = n;
            ref_take(ref, ref->homes[n].room, p->request, 1);
        }
    }
}

static inline bool ref_alike(const struct ref_pod *a, const struct ref_pod *b)
{
    return a->pod->spec == b->pod->spec && a->pod->maybe_affinity == b->pod->maybe_affinity &&
           a->pod->volumes.items == b->pod->volumes.items &&
           a->pod->object.meta.labels.items == b->pod->object.meta.labels.items;
}

static inline bool ref_conflict(const struct ref_pod *a, uint32_t a_ix, const struct ref_pod *b,
                                uint32_t b_ix)
{
    if (ref_has_host_port(a->pod) && ref_has_host_port(b->pod))
        return true;
    for (uint32_t i = 0; i < a->term_count; i++) {
        if (a->terms[i].kind == REF_ANTI && a->terms[i].hostname &&
            (a->terms[i].matches >> b_ix & 1))
            return true;
    }
    for (uint32_t i = 0; i < b->term_count; i++) {
        if (b->terms[i].kind == REF_ANTI && b->terms[i].hostname &&
            (b->terms[i].matches >> a_ix & 1))
            return true;
    }
    return false;
}

static inline void ref_relate_pods(struct reference *ref)
{
    for (uint32_t i = 0; i < ref->pod_count; i++) {
        struct ref_pod *p = &ref->pods[i];
        p->alike = i;
        for (uint32_t j = 0; j < ref->pod_count; j++) {
            const struct ref_pod *q = &ref->pods[j];
            if (i != j && ref_conflict(p, i, q, j))
                p->conflicts |= 1u << j;
            if (j < i && i < ref->pending_count && ref_alike(p, q))
                p->alike = j;
        }
        for (uint32_t h = 0; h < ref->home_count; h++) {
            bool free = true;
            for (uint32_t j = ref->pending_count; j < ref->pod_count; j++)
                free &= !ref->pods[j].bound || ref->pods[j].home != h || !(p->conflicts >> j & 1);
            if (free && ref_suits(ref, p, &ref->homes[h]))
                p->homes |= 1u << h;
        }
        for (uint32_t o = 0; o < ref->option_count; o++) {
            if (ref_suits(ref, p, &ref->options[o]))
                ref_add(&p->options, o);
        }
    }
}

static inline void ref_rank_priorities(struct reference *ref)
{
    for (uint32_t i = 0; i < ref->pending_count; i++) {
        int64_t higher[REF_PODS_MAX];
        uint32_t count = 0;
        for (uint32_t j = 0; j < ref->pending_count; j++) {
            bool known = ref->pods[j].priority <= ref->pods[i].priority;
            for (uint32_t k = 0; k < count; k++)
                known |= higher[k] == ref->pods[j].priority;
            if (!known)
                higher[count++] = ref->pods[j].priority;
        }
        EXPECT_TRUE(count < REF_LEVELS_MAX);
        ref->pods[i].level = count;
        if (count >= ref->level_count)
            ref->level_count = count + 1;
    }
}

static inline void reference_init(struct reference *ref, struct arena *arena,
                                  const struct snapshot *snap, bool by_weight)
{
    *ref = (struct reference){ .arena = arena, .snap = snap };
    ref_add_resource(ref, STR("pods"));
    for (uint32_t i = 0; i < snap->pod_count; i++) {
        struct resources list;
        struct err err = { 0 };
        EXPECT_OK(pod_requests(snap->pods[i], arena, &list, &err), err);
        for (uint32_t k = 0; k < list.count; k++)
            ref_add_resource(ref, list.items[k].name);
    }
    ref_add_options(ref);
    ref_add_homes(ref);
    for (uint32_t i = 0; i < snap->pod_count; i++) {
        if (!snap->pods[i]->node_name.len)
            ref_add_pod(ref, i);
    }
    ref->pending_count = ref->pod_count;
    for (uint32_t i = 0; i < snap->pod_count; i++) {
        if (snap->pods[i]->node_name.len)
            ref_add_pod(ref, i);
    }
    for (uint32_t i = 0; i < ref->pod_count; i++)
        ref_add_terms(ref, &ref->pods[i]);
    ref_relate_pods(ref);
    for (uint32_t i = 0; by_weight && i < ref->pending_count; i++)
        ref_keep_heaviest(ref, &ref->pods[i]);
    ref_rank_priorities(ref);
    for (uint32_t h = 0; h < ref->home_count; h++)
        memcpy(ref->free[h], ref->homes[h].room, sizeof ref->free[h]);
    for (uint32_t i = ref->pending_count; i < ref->pod_count; i++)
        ref->where[i] = ref->pods[i].bound ? (int)ref->pods[i].home : REF_UNPLACED;
}

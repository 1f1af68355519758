/* A plan put back into a state, so that it can be asked about.
 *
 * A plan says where each pod goes and in which order kube-scheduler would agree; it does not say
 * what was given up for it. That is found again: in that order, each pod is read as the first of
 * its variants that its place agrees with.
 */
#include "sched/explain_inner.h"

struct replay {
    struct state *s;
    const struct plan *plan;
    uint32_t *class_of; /* per pod of the snapshot; NONE */
    uint32_t *bin_of;   /* likewise */
    uint32_t *domains;  /* of a bin, while it is changed */
};

static void set_all(uint32_t *items, uint32_t count, uint32_t value)
{
    for (uint32_t i = 0; i < count; i++)
        items[i] = value;
}

static void pods_in_bin(struct replay *r, const struct plan_pods *pods, uint32_t bin)
{
    for (uint32_t i = 0; i < pods->count; i++)
        r->bin_of[pods->items[i]] = bin;
}

static void homes_reopen(struct replay *r, struct arena *arena)
{
    const struct model *m = r->s->model;
    uint32_t *of_node = arena_array(arena, uint32_t, m->snap->node_count);
    uint32_t *of_claim = arena_array(arena, uint32_t, m->snap->claim_count);
    set_all(of_node, m->snap->node_count, NONE);
    set_all(of_claim, m->snap->claim_count, NONE);
    for (uint32_t i = 0; i < m->home_count; i++) {
        if (m->homes[i].node != NONE)
            of_node[m->homes[i].node] = i;
        else if (m->homes[i].claim != NONE)
            of_claim[m->homes[i].claim] = i;
    }
    for (uint32_t i = 0; i < r->plan->existing_count; i++) {
        const struct plan_existing *e = &r->plan->existing[i];
        pods_in_bin(r, &e->pods, e->node != PLAN_NONE ? of_node[e->node] : of_claim[e->claim]);
    }
}

/* The domain that the launch's requirements leave no choice of; NONE. */
static uint32_t launch_domain(const struct model *m, const struct plan_launch *launch, uint32_t key)
{
    const struct requirement *r = requirements_find(&launch->requirements, m->keys[key].name);
    if (key == KEY_HOSTNAME || !r || r->complement || r->values.count != 1)
        return NONE;
    for (uint32_t d = 0; d < m->keys[key].domain_count; d++) {
        if (str_eq(m->keys[key].domains[d], r->values.items[0]))
            return d;
    }
    return NONE;
}

static uint32_t pool_of_launch(const struct model *m, const struct plan_launch *launch)
{
    uint32_t pool = 0;
    while (pool < m->pool_count && m->pools[pool].source != launch->pool)
        pool++;
    KV_ASSERT(pool < m->pool_count);
    return pool;
}

static void launches_reopen(struct replay *r)
{
    struct model *m = r->s->model;
    for (uint32_t i = 0; i < r->plan->launch_count; i++) {
        const struct plan_launch *launch = &r->plan->launches[i];
        uint32_t pool = pool_of_launch(m, launch);
        uint32_t bin = state_open(r->s, pool, launch->row, m->pools[pool].terms);
        for (uint32_t key = 0; key < m->key_count; key++) {
            uint32_t domain = launch_domain(m, launch, key);
            r->s->bins.items[bin].domains[key] = domain;
            if (domain != NONE)
                bitset_set(&r->s->launched[key], domain);
        }
        pods_in_bin(r, &launch->pods, bin);
    }
}

/* When all pods are back: a reservation that is used up is no place for any more. */
static void reservations_retake(struct replay *r)
{
    struct model *m = r->s->model;
    for (uint32_t i = 0; i < r->plan->launch_count; i++) {
        const struct plan_launch *launch = &r->plan->launches[i];
        uint32_t pool = pool_of_launch(m, launch);
        if (reservation_left(m, pool, launch->offering) > 0)
            reservation_take(m, pool, launch->offering);
    }
}

/* The variant's wants with the bin's domains; NONE if they cannot be there. */
static uint32_t wants_there(struct state *s, uint32_t bin, const struct variant *v)
{
    struct model *m = s->model;
    uint32_t wants = v->wants;
    if (bin_is_home(s, bin))
        return home_admits(m, &m->homes[bin], wants) ? wants : NONE;
    for (uint32_t key = 0; key < m->key_count && wants != NONE; key++) {
        uint32_t domain = s->bins.items[bin].domains[key];
        if (domain != NONE)
            wants = wants_pin(m, wants, key, domain);
    }
    uint32_t joined = wants == NONE ? NONE : terms_join(m, s->bins.items[bin].terms, wants);
    if (joined == NONE)
        return NONE;
    return bitset_test(&terms_at(m, joined)->machines, s->bins.items[bin].machine) ? wants : NONE;
}

static void pod_replace(struct replay *r, uint32_t class_, uint32_t bin)
{
    struct state *s = r->s;
    const struct model *m = s->model;
    const struct pod_class *c = &m->classes[class_];
    uint32_t taints =
        bin_is_home(s, bin) ? m->homes[bin].taints : m->pools[s->bins.items[bin].pool].taints;
    uint32_t variant = NONE, wants = NONE;
    bool agreed = false;
    for (uint32_t i = 0; i < c->variant_count && !agreed; i++) {
        const struct variant *v = &c->variants[i];
        uint32_t there = wants_there(s, bin, v);
        if (there == NONE || !taints_tolerated(m, v->tolerance, taints))
            continue;
        agreed = group_objecting(s, class_, v, bin) == NONE;
        variant = i; /* if none agrees then the last, which asks least */
        wants = there;
    }
    if (variant == NONE) /* not a plan of this snapshot and these options */
        return;
    /* Placing works domains out anew, from the terms alone; the launch knows more. */
    size_t bytes = m->key_count * sizeof *r->domains;
    memcpy(r->domains, s->bins.items[bin].domains, bytes);
    state_place(s, bin, class_, variant, wants, 1);
    memcpy(s->bins.items[bin].domains, r->domains, bytes);
    for (uint32_t key = 0; key < m->key_count && !bin_is_home(s, bin); key++) {
        if (r->domains[key] != NONE)
            state_count(s, class_, variant, key, r->domains[key], 1);
    }
}

static void plan_replay(struct replay *r, struct arena *arena)
{
    const struct model *m = r->s->model;
    uint32_t pod_count = m->snap->pod_count;
    r->class_of = arena_array(arena, uint32_t, pod_count);
    r->bin_of = arena_array(arena, uint32_t, pod_count);
    r->domains = arena_array(arena, uint32_t, m->key_count);
    set_all(r->class_of, pod_count, NONE);
    set_all(r->bin_of, pod_count, NONE);
    for (uint32_t i = 0; i < m->class_count; i++) {
        for (uint32_t k = 0; k < m->classes[i].count; k++)
            r->class_of[m->classes[i].pods[k]] = i;
    }
    homes_reopen(r, arena);
    launches_reopen(r);
    for (uint32_t i = 0; i < r->plan->order.count; i++) {
        uint32_t pod = r->plan->order.items[i];
        if (r->class_of[pod] != NONE && r->bin_of[pod] != NONE)
            pod_replace(r, r->class_of[pod], r->bin_of[pod]);
    }
    reservations_retake(r);
}

void plan_explain(struct arena *arena, const struct snapshot *snap, struct plan_options options,
                  const struct plan *plan, const uint32_t *pods, uint32_t count,
                  struct explanation *explanations)
{
    AUTO_ARENA scratch = { 0 };
    struct model m;
    struct state s;
    model_compile(&m, &scratch, snap, options);
    state_init(&s, &m, &scratch);
    struct replay r = { .s = &s, .plan = plan };
    plan_replay(&r, &scratch);

    struct explanation *of_class = arena_array(&scratch, struct explanation, m.class_count);
    bool *known = arena_array(&scratch, bool, m.class_count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t class_ = r.class_of[pods[i]];
        if (class_ == NONE) {
            explanations[i] =
                (struct explanation){ .class_ = PLAN_NONE, .given_up = STR(""), .homes = STR("") };
            continue;
        }
        if (!known[class_])
            of_class[class_] = explain_class(&s, class_, arena);
        known[class_] = true;
        explanations[i] = of_class[class_];
    }
    state_done(&s);
    model_done(&m);
}

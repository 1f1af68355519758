/* Explanations are worked out after the fact: for each pool a trial of what the class asks for
 * (explain_trial.c), against the state that the plan ended in.
 *
 * A class has several readings (variants). Those that share the last one's `given_up` have given up
 * everything there is, and differ in which alternative of the required node affinity and of the
 * volumes they take. The one that gets furthest is the one that is told of: that another fails at
 * once is of no interest.
 */
#include "sched/explain.h"

#include "sched/explain_inner.h"

/* --- pools --- */

/* The trial of the alternative that gets furthest; `ask` is what it is of. */
static void trial_of_pool(struct state *s, uint32_t class_, uint32_t pool, struct arena *arena,
                          struct ask *ask, struct trial *t)
{
    const struct pod_class *c = &s->model->classes[class_];
    const struct variant *last = &c->variants[c->variant_count - 1], *best = NULL;
    KV_ASSERT(c->variant_count > 0);
    enum subject best_subject = SUBJECT_TAINTS;
    uint32_t best_at = 0;
    for (const struct variant *v = c->variants; v <= last; v++) {
        if (!str_eq(v->given_up, last->given_up))
            continue;
        *ask = ask_of(s, class_, v, pool);
        trial_run(t, ask, arena, NULL);
        if (t->possible)
            return;
        if (!best || t->subject > best_subject || (t->subject == best_subject && t->at > best_at)) {
            best = v;
            best_subject = t->subject;
            best_at = t->at;
        }
    }
    if (best == last) /* the trial that was run last */
        return;
    *ask = ask_of(s, class_, best, pool);
    trial_run(t, ask, arena, NULL);
}

/* A new node would take it after all: it was tried before the pods that it depends on, or another that
 * was in its way has moved. */
static struct plan_blame blame_too_early(const struct ask *ask, struct arena *arena)
{
    const struct model *m = ask->state->model;
    AUTO_BUF out = { 0 };
    buf_addz(&out, "a new node of ");
    add_pool(&out, ask);
    buf_addz(&out, " would take it now that other pods have their places: plan again");
    return (struct plan_blame){
        .pool = ask->pool->source,
        .reason = ask->variant->owned_count ? group_reason(&m->groups[ask->variant->owned[0]])
                                            : REASON_RESOURCES,
        .detail = buf_keep(arena, &out),
    };
}

static struct plan_blame blame_of_pool(struct state *s, uint32_t class_, uint32_t pool,
                                       struct arena *arena, struct arena *scratch)
{
    struct ask ask;
    struct trial t;
    arena_reset(scratch);
    trial_of_pool(s, class_, pool, scratch, &ask, &t);
    if (t.possible) { /* unless it counts on pods that have no place either */
        counts_renew(s);
        arena_reset(scratch);
        trial_of_pool(s, class_, pool, scratch, &ask, &t);
    }
    if (t.possible)
        return blame_too_early(&ask, arena);
    return (struct plan_blame){ ask.pool->source, t.reason, trial_detail(&t, arena) };
}

static struct explain_pool pool_explained(struct state *s, uint32_t class_, uint32_t pool,
                                          struct arena *arena)
{
    AUTO_ARENA scratch = { 0 };
    struct ask ask;
    struct trial t;
    trial_of_pool(s, class_, pool, &scratch, &ask, &t);
    trial_run(&t, &ask, &scratch, arena); /* once more, with words */
    struct explain_pool out = { .pool = ask.pool->source,
                                .steps = t.steps,
                                .step_count = t.step_count,
                                .possible = t.possible,
                                .detail = STR(""),
                                .nearest = STR(""),
                                .edit = STR("") };
    if (!t.possible) {
        out.reason = t.reason;
        out.detail = trial_detail(&t, arena);
        out.nearest = trial_nearest(&t, arena);
        out.edit = trial_edit(&t, arena);
    }
    return out;
}

/* Pools that can be launched from and the others, in the one order in which pools are tried. */
struct pool_walk {
    const struct model *m;
    uint32_t pool, out;
};

/* False at the end. One of the two is NONE. */
static bool pool_next(struct pool_walk *w, uint32_t *pool, uint32_t *out)
{
    const struct model *m = w->m;
    *pool = *out = NONE;
    if (w->pool == m->pool_count && w->out == m->pools_out_count)
        return false;
    bool take_out = w->pool == m->pool_count;
    if (w->pool < m->pool_count && w->out < m->pools_out_count) {
        const struct sched_pool *pools = m->snap->pools;
        take_out = nodepool_order(pools[m->pools_out[w->out].source].pool,
                                  pools[m->pools[w->pool].source].pool) < 0;
    }
    if (take_out)
        *out = w->out++;
    else
        *pool = w->pool++;
    return true;
}

/* --- nodes that are there --- */

static bool home_ports_conflict(const struct state *s, const struct pod_class *c, uint32_t bin)
{
    vec_each(&s->bins.items[bin].ports, uint32_t, taken) {
        for (uint32_t i = 0; i < c->port_count; i++) {
            if (bitset_test(&s->model->ports[c->ports[i]].conflicts, *taken))
                return true;
        }
    }
    return false;
}

/* Why the home does not take one more pod; false if it does. In the order of a trial. */
static bool home_refuses(struct state *s, uint32_t class_, const struct variant *v, uint32_t bin,
                         enum plan_reason *reason)
{
    struct model *m = s->model;
    const struct pod_class *c = &m->classes[class_];
    if (!taints_tolerated(m, v->tolerance, m->homes[bin].taints)) {
        *reason = REASON_TAINTS;
        return true;
    }
    if (!home_suits(m, &m->homes[bin], v->wants)) {
        *reason = REASON_REQUIREMENTS;
        return true;
    }
    if (!home_fits(m, &m->homes[bin], v->wants)) {
        *reason = REASON_IMAGE;
        return true;
    }
    for (uint32_t r = 0; r < m->resource_count; r++) {
        if (s->bins.items[bin].free[r] < c->request[r]) {
            *reason = REASON_RESOURCES;
            return true;
        }
    }
    if (home_ports_conflict(s, c, bin)) {
        *reason = REASON_HOST_PORT;
        return true;
    }
    uint32_t group = group_objecting(s, class_, v, bin);
    if (group != NONE) {
        *reason = group_reason(&m->groups[group]);
        return true;
    }
    /* Only the volumes' attachments are left to object. */
    *reason = REASON_VOLUME;
    return state_room(s, bin, class_, v, v->wants, 1) == 0;
}

static void homes_explained(struct state *s, uint32_t class_, struct explanation *e,
                            struct arena *arena)
{
    const struct pod_class *c = &s->model->classes[class_];
    const struct variant *last = &c->variants[c->variant_count - 1];
    AUTO_BUF out = { 0 };
    e->homes = STR("");
    e->homes_considered = s->model->home_count;
    for (uint32_t bin = 0; bin < s->model->home_count; bin++) {
        enum plan_reason reason = REASON_RESOURCES;
        bool refuses = true;
        for (const struct variant *v = c->variants; v <= last && refuses; v++) {
            if (str_eq(v->given_up, last->given_up))
                refuses = home_refuses(s, class_, v, bin, &reason);
        }
        e->homes_full += refuses;
        e->homes_by_reason[reason] += refuses;
    }
    if (!e->homes_considered)
        return;
    uint32_t takers = e->homes_considered - e->homes_full;
    if (takers)
        buf_addf(&out, "%u of %u node%s would take %s", takers, e->homes_considered,
                 e->homes_considered == 1 ? "" : "s", c->count == 1 ? "it" : "one more");
    else
        buf_addf(&out, "none of %u node%s takes it", e->homes_considered,
                 e->homes_considered == 1 ? "" : "s");
    const char *sep = ": ";
    for (uint32_t i = 0; i < PLAN_REASON_COUNT; i++) {
        if (!e->homes_by_reason[i])
            continue;
        buf_addf(&out, "%s%s %u", sep, plan_reason_names[i], e->homes_by_reason[i]);
        sep = ", ";
    }
    e->homes = buf_keep(arena, &out);
}

/* --- the record of a class --- */

/* What the pods of the class that were placed gave up, most; else what all have. */
static void placements_explained(const struct state *s, uint32_t class_, struct explanation *e)
{
    const struct pod_class *c = &s->model->classes[class_];
    uint32_t furthest = 0;
    for (uint32_t bin = 0; bin < s->bins.count; bin++) {
        vec_each(&s->bins.items[bin].placements, struct placement, p) {
            if (p->class_ != class_)
                continue;
            *(bin_is_home(s, bin) ? &e->on_homes : &e->on_launches) += p->count;
            furthest = p->variant > furthest ? p->variant : furthest;
        }
    }
    e->missed = c->count - e->on_homes - e->on_launches;
    if (e->missed)
        furthest = c->variant_count - 1;
    e->given_up = c->variants[furthest].given_up;
}

/* The model may be gone before the plan is read. */
static struct plan_blame blame_refused(const struct pod_class *c, struct arena *arena)
{
    struct plan_blame blame = *c->maybe_refused;
    blame.detail = arena_str(arena, blame.detail);
    return blame;
}

struct explanation explain_class(struct state *s, uint32_t class_, struct arena *arena)
{
    const struct model *m = s->model;
    const struct pod_class *c = &m->classes[class_];
    struct explanation e = { .class_ = class_, .given_up = STR(""), .homes = STR("") };
    if (c->maybe_refused) {
        struct plan_blame *refused = arena_new(arena, struct plan_blame);
        *refused = blame_refused(c, arena);
        e.maybe_refused = refused;
        e.missed = c->count;
        return e;
    }
    struct explain_pool *pools =
        arena_array(arena, struct explain_pool, m->pool_count + m->pools_out_count);
    struct pool_walk walk = { .m = m };
    for (uint32_t pool, out; pool_next(&walk, &pool, &out);) {
        if (pool != NONE)
            pools[e.pool_count++] = pool_explained(s, class_, pool, arena);
        else
            pools[e.pool_count++] =
                (struct explain_pool){ .pool = m->pools_out[out].source,
                                       .reason = REASON_NODEPOOL_NOT_READY,
                                       .detail = arena_str(arena, m->pools_out[out].why),
                                       .nearest = STR(""),
                                       .edit = STR("") };
    }
    e.pools = pools;
    placements_explained(s, class_, &e);
    e.given_up = arena_str(arena, e.given_up);
    homes_explained(s, class_, &e, arena);
    return e;
}

static struct plan_blame blame_no_pool(struct state *s, uint32_t class_, struct arena *arena)
{
    struct explanation e = { 0 };
    AUTO_BUF out = { 0 };
    homes_explained(s, class_, &e, arena);
    buf_addz(&out, "there is no NodePool to launch a node from");
    if (e.homes.len)
        buf_addf(&out, ", and %.*s", STR_ARG(e.homes));
    return (struct plan_blame){ PLAN_NONE, REASON_NODEPOOL_NOT_READY, buf_keep(arena, &out) };
}

void explain_miss(struct state *s, uint32_t class_, struct arena *arena,
                  const struct plan_blame **reasons, uint32_t *count)
{
    const struct model *m = s->model;
    const struct pod_class *c = &m->classes[class_];
    struct plan_blame *blames =
        arena_array(arena, struct plan_blame, m->pool_count + m->pools_out_count + 1);
    struct pool_walk walk = { .m = m };
    AUTO_ARENA scratch = { 0 };
    uint32_t n = 0;
    if (c->maybe_refused)
        blames[n++] = blame_refused(c, arena);
    for (uint32_t pool, out; !c->maybe_refused && pool_next(&walk, &pool, &out);) {
        if (pool != NONE)
            blames[n++] = blame_of_pool(s, class_, pool, arena, &scratch);
        else
            blames[n++] = (struct plan_blame){ m->pools_out[out].source, REASON_NODEPOOL_NOT_READY,
                                               arena_str(arena, m->pools_out[out].why) };
    }
    if (!n)
        blames[n++] = blame_no_pool(s, class_, arena);
    *reasons = blames;
    *count = n;
}

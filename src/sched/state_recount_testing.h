/* sched/state_recount_testing.h - every number of a plan in the making, counted again from what was
 * there at the start and what has been placed since: slow, and plain to see. For tests.
 */
#pragma once

#include "sched/state_testing.h"

static inline void differ(struct buf *why, const char *what, uint32_t bin, int64_t got,
                          int64_t want)
{
    if (got != want)
        buf_addf(why, "bin %u: %s is %lld, and should be %lld\n", bin, what, (long long)got,
                 (long long)want);
}

static inline void recount_resources(const struct state *s, uint32_t ix, struct buf *why)
{
    const struct model *m = s->model;
    const struct bin *bin = &s->bins.items[ix];
    const int64_t *whole =
        bin_is_home(s, ix) ? m->homes[ix].free
                           : m->pools[bin->pool].room + (size_t)bin->machine * m->resource_count;
    for (uint32_t r = 0; r < m->resource_count; r++) {
        int64_t free = whole[r];
        vec_each(&bin->placements, struct placement, p)
            free -= p->count * m->classes[p->class_].request[r];
        differ(why, m->resources[r].p, ix, bin->free[r], free);
    }
}

static inline bool counts_as_owner(const struct model *m, const struct placement *p, uint32_t group)
{
    const struct pod_class *c = &m->classes[p->class_];
    return variant_owns(&c->variants[p->variant], group) &&
           (m->groups[group].kind != GROUP_ANTI || class_requires(c, group));
}

static inline void recount_tallies(const struct state *s, uint32_t ix, uint32_t group,
                                   struct buf *why)
{
    const struct model *m = s->model;
    const struct bin *bin = &s->bins.items[ix];
    int64_t want[2][RANK_COUNT] = { 0 }, got[2][RANK_COUNT] = { 0 };
    for (uint32_t i = 0; bin_is_home(s, ix) && i < m->homes[ix].tally_count; i++)
        if (m->homes[ix].tallies[i].group == group) {
            want[0][RANK_HOST] = m->homes[ix].tallies[i].matched;
            want[1][RANK_HOST] = m->homes[ix].tallies[i].owners;
        }
    vec_each(&bin->placements, struct placement, p) {
        if (class_matched(&m->classes[p->class_], group))
            want[0][s->ranks[p->class_]] += p->count;
        if (counts_as_owner(m, p, group))
            want[1][s->ranks[p->class_]] += p->count;
    }
    vec_each(&bin->tallies, struct bin_tally, t)
        for (int rank = 0; rank < RANK_COUNT && t->group == group; rank++) {
            got[0][rank] += t->matched[rank];
            got[1][rank] += t->owners[rank];
        }
    for (int rank = 0; rank < RANK_COUNT; rank++) {
        differ(why, "pods found", ix, got[0][rank], want[0][rank]);
        differ(why, "owners", ix, got[1][rank], want[1][rank]);
    }
}

static inline void recount_ports(const struct state *s, uint32_t ix, struct buf *why)
{
    const struct model *m = s->model;
    const struct bin *bin = &s->bins.items[ix];
    size_t want = 0;
    if (bin_is_home(s, ix))
        want = m->homes[ix].port_count;
    else if (m->pools[bin->pool].daemon_ports)
        while (m->pools[bin->pool].daemon_ports[bin->machine][want] != NONE)
            want++;
    vec_each(&bin->placements, struct placement, p)
        want += p->count * m->classes[p->class_].port_count;
    differ(why, "ports", ix, (int64_t)bin->ports.count, (int64_t)want);
}

static inline void recount_price(const struct state *s, struct buf *why)
{
    const struct model *m = s->model;
    usd_hour price = 0;
    for (uint32_t p = 0; p < m->pool_count; p++) {
        int64_t nodes = m->pools[p].nodes_left;
        for (uint32_t i = 0; i < m->pools[p].limit_count; i++) {
            int64_t left = m->pools[p].limits[i].left;
            for (uint32_t ix = m->home_count; ix < s->bins.count; ix++)
                if (s->bins.items[ix].pool == p)
                    left -= m->pools[p].limits[i].capacity[s->bins.items[ix].machine];
            differ(why, "what is left of a limit", NONE, s->pools[p].limits[i], left);
        }
        for (uint32_t ix = m->home_count; ix < s->bins.count; ix++)
            nodes -= nodes != INT64_MAX && s->bins.items[ix].pool == p;
        differ(why, "what is left of nodes", NONE, s->pools[p].nodes, nodes);
    }
    for (uint32_t ix = m->home_count; ix < s->bins.count; ix++) {
        const struct bin *bin = &s->bins.items[ix];
        if (!bin_is_live(s, ix))
            continue;
        price += bin->price;
        if (bin->reserved == NONE) /* a place that is held keeps its price */
            differ(why, "price", ix, bin->price,
                   terms_at(s->model, bin->terms)->price[bin->machine]);
    }
    differ(why, "the price of all", NONE, s->price, price);
}

/* Of hostname groups. */
static inline void recount_total(const struct state *s, uint32_t group, struct buf *why)
{
    const struct model *m = s->model;
    int64_t total = m->groups[group].total;
    for (uint32_t ix = 0; ix < s->bins.count; ix++)
        vec_each(&s->bins.items[ix].placements, struct placement, p)
            if (class_matched(&m->classes[p->class_], group))
                total += p->count;
    differ(why, "a group's total", NONE, s->groups[group].total, total);
}

/* Of groups of wider domains: what is on homes. */
static inline void recount_domains(const struct state *s, uint32_t group, struct buf *why)
{
    const struct model *m = s->model;
    const struct group *g = &m->groups[group];
    int64_t total = g->total;
    for (uint32_t ix = 0; ix < m->home_count; ix++)
        vec_each(&s->bins.items[ix].placements, struct placement, p)
            if (class_matched(&m->classes[p->class_], group))
                total += p->count;
    differ(why, "a group's total", NONE, s->groups[group].total, total);
    for (uint32_t d = 0; d < m->keys[g->key].domain_count; d++) {
        int64_t matched = g->matched[d], owners = g->owners[d];
        for (uint32_t ix = 0; ix < m->home_count; ix++) {
            if (m->homes[ix].domains[g->key] != d)
                continue;
            bool counts = g->kind != GROUP_SPREAD || bitset_test(&g->homes, ix);
            vec_each(&s->bins.items[ix].placements, struct placement, p) {
                if (counts && class_matched(&m->classes[p->class_], group))
                    matched += p->count;
                if (g->kind == GROUP_ANTI && counts_as_owner(m, p, group))
                    owners += p->count;
            }
        }
        differ(why, "a domain's count", NONE, s->groups[group].matched[d], matched);
        differ(why, "a domain's owners", NONE, s->groups[group].owners[d], owners);
    }
}

/* All but what is counted when domains are chosen. */
static inline bool recounted_bins(const struct state *s, struct buf *why)
{
    for (uint32_t ix = 0; ix < s->bins.count; ix++) {
        if (!bin_is_live(s, ix))
            continue;
        recount_resources(s, ix, why);
        recount_ports(s, ix, why);
        for (uint32_t g = 0; g < s->model->group_count; g++)
            if (s->model->groups[g].key == KEY_HOSTNAME)
                recount_tallies(s, ix, g, why);
    }
    for (uint32_t g = 0; g < s->model->group_count; g++)
        if (s->model->groups[g].key == KEY_HOSTNAME)
            recount_total(s, g, why);
    recount_price(s, why);
    return why->len == 0;
}

/* Everything, while no domains have been chosen for launches. */
static inline bool recounted(const struct state *s, struct buf *why)
{
    recounted_bins(s, why);
    for (uint32_t g = 0; g < s->model->group_count; g++)
        if (s->model->groups[g].key != KEY_HOSTNAME)
            recount_domains(s, g, why);
    return why->len == 0;
}

/* What topology terms demand of a node, in the counts as they are now.
 *
 * A term over a wider domain (a zone) comes down to a requirement on one label: spread and affinity
 * want it to be one of some values, anti-affinity wants it to be none of some. So it narrows types
 * and offerings just as a pod's own requirement does. On hosts a new node is a new domain: only
 * affinity to pods that are elsewhere rules it out.
 */
#include "sched/domains.h"
#include "sched/explain_inner.h"

#include <inttypes.h>

/* --- counts --- */

static const struct group *group_at(const struct ask *ask, uint32_t group)
{
    return &ask->state->model->groups[group];
}

/* As a pod on a node that is there is counted: by its labels, and past node filters. */
static void count_on_home(struct state *s, uint32_t home, const struct placement *p)
{
    const struct model *m = s->model;
    const struct pod_class *c = &m->classes[p->class_];
    const struct variant *v = &c->variants[p->variant];
    const uint32_t *domains = s->bins.items[home].domains;
    for (uint32_t i = 0; i < c->matched_count; i++) {
        const struct group *g = &m->groups[c->matched[i]];
        struct group_count *live = &s->groups[c->matched[i]];
        if (g->key == KEY_HOSTNAME)
            continue;
        live->total += p->count;
        if (domains[g->key] != NONE && (g->kind != GROUP_SPREAD || bitset_test(&g->homes, home)))
            live->matched[domains[g->key]] += p->count;
    }
    for (uint32_t i = 0; i < v->owned_count; i++) {
        const struct group *g = &m->groups[v->owned[i]];
        if (g->key != KEY_HOSTNAME && g->kind == GROUP_ANTI && domains[g->key] != NONE &&
            class_requires(c, v->owned[i]))
            s->groups[v->owned[i]].owners[domains[g->key]] += p->count;
    }
}

void counts_renew(struct state *s)
{
    const struct model *m = s->model;
    for (uint32_t i = 0; i < m->group_count; i++) {
        const struct group *g = &m->groups[i];
        size_t bytes = m->keys[g->key].domain_count * sizeof *g->matched;
        if (g->key == KEY_HOSTNAME || !bytes)
            continue;
        memcpy(s->groups[i].matched, g->matched, bytes);
        memcpy(s->groups[i].owners, g->owners, bytes);
        s->groups[i].total = g->total;
    }
    for (uint32_t bin = 0; bin < s->bins.count; bin++) {
        vec_each(&s->bins.items[bin].placements, struct placement, p) {
            if (bin_is_home(s, bin))
                count_on_home(s, bin, p);
            for (uint32_t key = 0; key < m->key_count && !bin_is_home(s, bin); key++) {
                uint32_t domain = s->bins.items[bin].domains[key];
                if (key != KEY_HOSTNAME && domain != NONE)
                    state_count(s, p->class_, p->variant, key, domain, p->count);
            }
        }
    }
}

/* Of a spread: the least count of the domains that count. Those with nodes do; before a node is
 * launched (`maybe_trial`) also those that a new one could be in, of a pool as it is or as an edit
 * would have it. */
static int64_t spread_least(struct state *s, uint32_t class_, const struct variant *v,
                            uint32_t group, const struct trial *maybe_trial)
{
    const struct group *g = &s->model->groups[group];
    if (g->kind != GROUP_SPREAD || g->key == KEY_HOSTNAME)
        return 0;
    if (!maybe_trial)
        return state_spread_minimum(g, &s->groups[group], &s->launched[g->key]);
    AUTO_ARENA scratch = { 0 };
    struct str key = s->model->keys[g->key].name;
    struct bitset open = bitset_new(&scratch, s->model->keys[g->key].domain_count);
    bitset_copy(&open, &s->launched[g->key]);
    for (uint32_t d = 0; d < open.bit_count; d++) {
        uint32_t wants = wants_pin(s->model, v->wants, g->key, d);
        struct requirement there = { .key = key,
                                     .values = { &s->model->keys[g->key].domains[d], 1 } };
        if ((wants != NONE && launch_outlook(s, class_, v, wants).tier != NONE) ||
            trial_reaches(maybe_trial, &there))
            bitset_set(&open, d);
    }
    return state_spread_minimum(g, &s->groups[group], &open);
}

int64_t trial_least(const struct trial *t, uint32_t group)
{
    const struct ask *ask = t->ask;
    uint32_t class_ = (uint32_t)(ask->class_ - ask->state->model->classes);
    return spread_least(ask->state, class_, ask->variant, group, t);
}

/* Nobody matches yet, and the pod matches itself: it may be the first, anywhere. */
static bool may_be_first(const struct state *s, const struct pod_class *c, uint32_t group)
{
    return s->groups[group].total == 0 && class_matched(c, group);
}

/* May a pod of the class, which owns the group or is kept away by it, go to that domain? */
static bool domain_allowed(const struct state *s, const struct pod_class *c,
                           const struct variant *v, uint32_t group, int64_t least, uint32_t domain)
{
    const struct group *g = &s->model->groups[group];
    const struct group_count *live = &s->groups[group];
    bool self = class_matched(c, group);
    switch (g->kind) {
    case GROUP_SPREAD:
        return live->matched[domain] + self - least <= g->max_skew;
    case GROUP_AFFINITY:
        return live->matched[domain] > 0 || may_be_first(s, c, group);
    case GROUP_ANTI:
        return !(variant_owns(v, group) && live->matched[domain] > 0) &&
               !(self && live->owners[domain] > 0);
    }
    KV_UNREACHABLE();
}

/* --- a new node --- */

struct group_list groups_asked(const struct ask *ask, struct arena *arena)
{
    const struct model *m = ask->state->model;
    const struct pod_class *c = ask->class_;
    const struct variant *v = ask->variant;
    uint32_t *items = arena_array(arena, uint32_t, v->owned_count + c->matched_count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < v->owned_count; i++)
        items[count++] = v->owned[i];
    for (uint32_t i = 0; i < c->matched_count; i++) {
        uint32_t group = c->matched[i];
        const struct group *g = &m->groups[group];
        bool kept_away = false;
        if (g->kind != GROUP_ANTI || g->key == KEY_HOSTNAME || variant_owns(v, group))
            continue;
        for (uint32_t d = 0; d < m->keys[g->key].domain_count; d++)
            kept_away |= ask->state->groups[group].owners[d] > 0;
        if (kept_away)
            items[count++] = group;
    }
    return (struct group_list){ items, count };
}

enum plan_reason group_reason(const struct group *g)
{
    switch (g->kind) {
    case GROUP_SPREAD:
        return REASON_TOPOLOGY_SPREAD;
    case GROUP_AFFINITY:
        return REASON_POD_AFFINITY;
    case GROUP_ANTI:
        return REASON_POD_ANTI_AFFINITY;
    }
    KV_UNREACHABLE();
}

/* Values of the key that are allowed, or those that are not. In the order of domains: sorted. */
static struct str_list domains_that(const struct trial *t, uint32_t group, bool allowed)
{
    const struct ask *ask = t->ask;
    const struct topology_key *key = &ask->state->model->keys[group_at(ask, group)->key];
    struct str *values = arena_array(t->arena, struct str, key->domain_count);
    uint32_t count = 0;
    for (uint32_t d = 0; d < key->domain_count; d++) {
        if (domain_allowed(ask->state, ask->class_, ask->variant, group, t->least, d) == allowed)
            values[count++] = key->domains[d];
    }
    return (struct str_list){ values, count };
}

bool group_demand(const struct trial *t, uint32_t group, struct requirement *out)
{
    const struct group *g = group_at(t->ask, group);
    struct str key = t->ask->state->model->keys[g->key].name;
    if (g->key == KEY_HOSTNAME)
        return false;
    if (g->kind == GROUP_ANTI) {
        *out = (struct requirement){ .key = key,
                                     .values = domains_that(t, group, false),
                                     .complement = true };
        return out->values.count > 0;
    }
    *out = (struct requirement){ .key = key, .values = domains_that(t, group, true) };
    return true;
}

bool group_allows_new_node(const struct ask *ask, uint32_t group)
{
    const struct group *g = group_at(ask, group);
    return g->key != KEY_HOSTNAME || g->kind != GROUP_AFFINITY ||
           may_be_first(ask->state, ask->class_, group);
}

bool group_lacks_label(const struct ask *ask, uint32_t group)
{
    const struct group *g = group_at(ask, group);
    struct str key = ask->state->model->keys[g->key].name;
    return g->key != KEY_HOSTNAME && g->kind != GROUP_ANTI &&
           !requirements_find(&ask->allowed, key) &&
           !str_sorted_has(ask->pool->well_known.items, ask->pool->well_known.count, key);
}

/* --- bins that are there --- */

static uint32_t sum(const uint32_t by_rank[RANK_COUNT])
{
    uint32_t total = 0;
    for (uint32_t i = 0; i < RANK_COUNT; i++)
        total += by_rank[i];
    return total;
}

static bool host_objects(const struct state *s, const struct pod_class *c, const struct variant *v,
                         uint32_t bin, uint32_t group)
{
    const struct group *g = &s->model->groups[group];
    uint32_t matched = 0, owners = 0;
    vec_each(&s->bins.items[bin].tallies, struct bin_tally, t) {
        if (t->group == group) {
            matched = sum(t->matched);
            owners = sum(t->owners);
        }
    }
    switch (g->kind) {
    case GROUP_SPREAD:
        return variant_owns(v, group) && matched + class_matched(c, group) > g->max_skew;
    case GROUP_AFFINITY:
        return variant_owns(v, group) && matched == 0 && !may_be_first(s, c, group);
    case GROUP_ANTI:
        return (variant_owns(v, group) && matched > 0) || (class_matched(c, group) && owners > 0);
    }
    KV_UNREACHABLE();
}

static bool bin_objects(struct state *s, uint32_t class_, const struct variant *v, uint32_t bin,
                        uint32_t group)
{
    const struct pod_class *c = &s->model->classes[class_];
    const struct group *g = &s->model->groups[group];
    if (g->key == KEY_HOSTNAME)
        return host_objects(s, c, v, bin, group);
    uint32_t domain = s->bins.items[bin].domains[g->key];
    if (domain == NONE)
        return g->kind != GROUP_ANTI;
    return !domain_allowed(s, c, v, group, spread_least(s, class_, v, group, NULL), domain);
}

uint32_t group_objecting(struct state *s, uint32_t class_, const struct variant *v, uint32_t bin)
{
    const struct pod_class *c = &s->model->classes[class_];
    for (uint32_t i = 0; i < v->owned_count; i++) {
        if (bin_objects(s, class_, v, bin, v->owned[i]))
            return v->owned[i];
    }
    for (uint32_t i = 0; i < c->matched_count; i++) {
        if (s->model->groups[c->matched[i]].kind == GROUP_ANTI &&
            bin_objects(s, class_, v, bin, c->matched[i]))
            return c->matched[i];
    }
    return NONE;
}

/* --- in words --- */

/* "and no type of pool `general` that would do can be launched there" */
static void add_nothing(const struct ask *ask, const char *where, struct buf *out)
{
    buf_addz(out, " and no type of ");
    add_pool(out, ask);
    buf_addf(out, " that would do can be launched %s", where);
}

static void spread_detail(const struct trial *t, uint32_t group, struct buf *out)
{
    const struct ask *ask = t->ask;
    const struct model *m = ask->state->model;
    const struct group *g = group_at(ask, group);
    const struct topology_key *key = &m->keys[g->key];
    const int64_t *matched = ask->state->groups[group].matched;
    uint32_t shown = 0;
    for (uint32_t d = 0; d < key->domain_count; d++) {
        if (!domain_allowed(ask->state, ask->class_, ask->variant, group, t->least, d))
            continue;
        buf_addz(out, shown++ ? ", " : "");
        add_name(out, key->domains[d]);
        buf_addf(out, " has %" PRId64 " pod%s", matched[d], matched[d] == 1 ? "" : "s");
    }
    if (shown)
        add_nothing(ask, "there", out);
    else
        buf_addf(out, "%u domains count, and each has all it may have",
                 bitset_popcount(&g->eligible));
}

static void affinity_detail(const struct trial *t, uint32_t group, struct buf *out)
{
    const struct ask *ask = t->ask;
    const struct group *g = group_at(ask, group);
    const struct group_count *live = &ask->state->groups[group];
    if (live->total == 0 && !class_matched(ask->class_, group)) {
        buf_addz(out, "no pod matches");
        return;
    }
    if (g->key == KEY_HOSTNAME) {
        buf_addz(out, "pods that match are on nodes that do not take it, and a new node has none");
        return;
    }
    struct str_list domains = domains_that(t, group, true);
    if (live->total == 0) {
        buf_addz(out, "it would be the first,");
        add_nothing(ask, "with that label", out);
    } else if (domains.count) {
        buf_addz(out, "pods that match are in ");
        add_names(out, domains);
        add_nothing(ask, "there", out);
    } else {
        buf_addz(out, "pods that match are on nodes without that label");
    }
}

static void anti_detail(const struct trial *t, uint32_t group, struct buf *out)
{
    const struct ask *ask = t->ask;
    buf_addz(out, variant_owns(ask->variant, group) ? "such pods are in "
                                                    : "pods that keep it away are in ");
    add_names(out, domains_that(t, group, false));
    add_nothing(ask, "elsewhere", out);
}

void group_detail(const struct trial *t, uint32_t group, struct buf *out)
{
    const struct ask *ask = t->ask;
    const struct group *g = group_at(ask, group);
    add_group(out, ask->state->model, g);
    buf_addz(out, ": ");
    if (group_lacks_label(ask, group)) {
        buf_addz(out, "nodes of ");
        add_pool(out, ask);
        buf_addz(out, " do not have that label");
        return;
    }
    switch (g->kind) {
    case GROUP_SPREAD:
        spread_detail(t, group, out);
        return;
    case GROUP_AFFINITY:
        affinity_detail(t, group, out);
        return;
    case GROUP_ANTI:
        anti_detail(t, group, out);
        return;
    }
    KV_UNREACHABLE();
}

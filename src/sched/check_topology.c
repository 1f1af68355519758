/* Topology, by replay: pods that are bound stand on their nodes, all nodes of the plan are there, and
 * the pods of the plan come one by one in its order. Each is judged at its turn as kube-scheduler
 * does it:
 *
 *  1. Spread (DoNotSchedule): the pods found in the domain, itself included, less those in the
 *     domain with the fewest, are at most maxSkew. Domains are those of nodes that count. With
 *     fewer of them than minDomains the fewest is 0. Pods that are being deleted do not count.
 *  2. Affinity: a pod that all terms find is in the domain of every term; or there is none anywhere
 *     and the pod itself is such a pod.
 *  3. Anti-affinity: no pod that a term finds is in the domain; and no pod is there that has a term
 *     which finds this one.
 *
 * A launch may be left open to several zones. A pod that a term over zones holds cannot be on it. For
 * the others it counts as where it hurts: see struct term.
 */
#include "sched/check_terms.h"

/* --- counting --- */

static void term_count(struct topology *t, struct term *term, const struct pod *pod, uint32_t site)
{
    bool spread = term->kind == TERM_SPREAD, labelled = false;
    if (spread && (term->counts_none || pod_is_terminating(pod)))
        return;
    enum verdict counted = spread ? (enum verdict)term->counted[site] : ALWAYS;
    for (uint32_t i = 0; i < term->key_count; i++) {
        const struct domains *d = &t->keys.items[term->keys[i]].at[site];
        labelled |= d->count || d->open;
        for (uint32_t k = 0; k < d->count; k++) {
            if (!spread || spread_counts_in(t, term, counted, site, d->ids[k]))
                term->high[i][d->ids[k]]++;
        }
        if (domains_known(d) && counted == ALWAYS)
            term->low[i][d->ids[0]]++;
    }
    term->total += labelled;
    if (spread && counted != NEVER)
        term->on_site[site]++;
}

static void put(struct topology *t, uint32_t pod, uint32_t site)
{
    const struct stamp_terms *terms = &t->of_stamp[t->c->stamp_of[pod]];
    for (uint32_t i = 0; i < terms->matched_count; i++)
        term_count(t, &t->terms.items[terms->matched[i]], t->c->snap->pods[pod], site);
    for (uint32_t i = 0; i < terms->owned_count; i++) {
        struct term *term = &t->terms.items[terms->owned[i]];
        const struct domains *d = &t->keys.items[term->keys[0]].at[site];
        for (uint32_t k = 0; term->kind == TERM_ANTI && k < d->count; k++)
            term->owners[d->ids[k]]++;
    }
    t->present[pod] = true;
}

/* --- for findings --- */

static bool list_has(const uint32_t *items, uint32_t count, uint32_t wanted)
{
    for (uint32_t i = 0; i < count; i++) {
        if (items[i] == wanted)
            return true;
    }
    return false;
}

/* A pod by now in that domain that owns the term, or that it finds. */
static const char *culprit(struct topology *t, uint32_t term, uint32_t domain, bool owner)
{
    struct checker *c = t->c;
    const struct topology_key *key = &t->keys.items[t->terms.items[term].keys[0]];
    for (uint32_t i = 0; i < c->site_count; i++) {
        const struct site *p = &c->sites[i];
        if (!list_has(key->at[i].ids, key->at[i].count, domain))
            continue;
        for (uint32_t k = 0; k < p->bound_count + p->placed.count; k++) {
            uint32_t pod = k < p->bound_count ? p->bound[k] : p->placed.items[k - p->bound_count];
            const struct stamp_terms *of = &t->of_stamp[c->stamp_of[pod]];
            if (t->present[pod] && (owner ? list_has(of->owned, of->owned_count, term)
                                          : list_has(of->matched, of->matched_count, term)))
                return pod_shown(c, pod);
        }
    }
    return "a pod";
}

static const char *const kind_words[] = { "topology spread", "pod affinity", "pod anti-affinity" };

/* The pod's own terms want to know where it is. */
static bool site_is_known(struct topology *t, const struct term *term, uint32_t key_ix,
                          uint32_t pod, const struct site *p, const struct domains *d)
{
    struct str key = t->keys.items[key_ix].name;
    if (domains_known(d))
        return true;
    if (d->count || d->open)
        finding(t->c, pod, site_launch(p), "%s: its %s is over %.*s, and %s may be one of several",
                pod_shown(t->c, pod), kind_words[term->kind], STR_ARG(key), p->name);
    else if (term->kind != TERM_ANTI)
        finding(t->c, pod, site_launch(p), "%s: its %s is over %.*s, which %s does not have",
                pod_shown(t->c, pod), kind_words[term->kind], STR_ARG(key), p->name);
    return false;
}

/* --- judging --- */

struct turn {
    uint32_t pod, site;
    const struct site *p;
    const struct stamp_terms *terms;
};

/* How many pods fewer than in `home`, if all that may be there is there, another domain may have. One
 * that has a node for sure has what is surely in it. One that is there only if some site turns out to be
 * in it has what is on that site, and then that is not in `home`. */
static int64_t largest_gap(struct topology *t, const struct term *term, uint32_t home)
{
    const struct topology_key *key = &t->keys.items[term->keys[0]];
    int64_t high = term->high[0][home], gap = 0;
    for (uint32_t i = 0; i < key->values.count; i++) {
        int64_t here = high - (int64_t)term->low[0][i];
        if (i != home && term->must[i] && here > gap)
            gap = here;
    }
    for (uint32_t site = 0; high > gap && site < t->c->site_count; site++) {
        const struct domains *d = &key->at[site];
        enum verdict counted = (enum verdict)term->counted[site];
        if (counted == NEVER || (counted == ALWAYS && domains_known(d)))
            continue;
        int64_t its = term->on_site[site];
        int64_t here = high - its - (list_has(d->ids, d->count, home) ? its : 0);
        for (uint32_t i = 0; here > gap && i < d->count; i++) {
            if (d->ids[i] != home && !term->must[d->ids[i]] &&
                spread_counts_in(t, term, counted, site, d->ids[i]))
                gap = here;
        }
    }
    return gap;
}

static void judge_spread(struct topology *t, const struct turn *turn, uint32_t term_ix)
{
    const struct term *term = &t->terms.items[term_ix];
    const struct topology_key *key = &t->keys.items[term->keys[0]];
    const struct domains *d = &key->at[turn->site];
    if (!site_is_known(t, term, term->keys[0], turn->pod, turn->p, d))
        return;
    int64_t domains = 0, high = term->high[0][d->ids[0]];
    for (uint32_t i = 0; i < key->values.count; i++)
        domains += term->must[i];
    int64_t gap = domains < term->min_domains ? high : largest_gap(t, term, d->ids[0]);
    bool itself = list_has(turn->terms->matched, turn->terms->matched_count, term_ix);
    if (gap + itself > term->max_skew)
        finding(t->c, turn->pod, site_launch(turn->p),
                "%s on %s: its topology spread allows a skew of %ld over %.*s, and %.*s would have "
                "%ld pods where another has %ld",
                pod_shown(t->c, turn->pod), turn->p->name, (long)term->max_skew, STR_ARG(key->name),
                STR_ARG(key->values.items[d->ids[0]]), (long)(high + itself), (long)(high - gap));
}

static void judge_affinity(struct topology *t, const struct turn *turn, uint32_t term_ix)
{
    const struct term *term = &t->terms.items[term_ix];
    bool first =
        !term->total && list_has(turn->terms->matched, turn->terms->matched_count, term_ix);
    for (uint32_t i = 0; i < term->key_count; i++) {
        const struct topology_key *key = &t->keys.items[term->keys[i]];
        const struct domains *d = &key->at[turn->site];
        if (site_is_known(t, term, term->keys[i], turn->pod, turn->p, d) && !first &&
            !term->low[i][d->ids[0]])
            finding(t->c, turn->pod, site_launch(turn->p),
                    "%s on %s: its pod affinity finds no pod in %.*s %.*s",
                    pod_shown(t->c, turn->pod), turn->p->name, STR_ARG(key->name),
                    STR_ARG(key->values.items[d->ids[0]]));
    }
}

static void judge_anti(struct topology *t, const struct turn *turn, uint32_t term_ix)
{
    const struct term *term = &t->terms.items[term_ix];
    const struct topology_key *key = &t->keys.items[term->keys[0]];
    const struct domains *d = &key->at[turn->site];
    if (site_is_known(t, term, term->keys[0], turn->pod, turn->p, d) && term->high[0][d->ids[0]])
        finding(t->c, turn->pod, site_launch(turn->p),
                "%s on %s: its pod anti-affinity finds %s in %.*s %.*s", pod_shown(t->c, turn->pod),
                turn->p->name, culprit(t, term_ix, d->ids[0], false), STR_ARG(key->name),
                STR_ARG(key->values.items[d->ids[0]]));
}

static void judge_anti_of_others(struct topology *t, const struct turn *turn, uint32_t term_ix)
{
    const struct term *term = &t->terms.items[term_ix];
    const struct topology_key *key = &t->keys.items[term->keys[0]];
    const struct domains *d = &key->at[turn->site];
    for (uint32_t i = 0; i < d->count; i++) {
        if (!term->owners[d->ids[i]])
            continue;
        finding(t->c, turn->pod, site_launch(turn->p),
                "%s on %s: the pod anti-affinity of %s in %.*s %.*s finds it",
                pod_shown(t->c, turn->pod), turn->p->name, culprit(t, term_ix, d->ids[i], true),
                STR_ARG(key->name), STR_ARG(key->values.items[d->ids[i]]));
        return;
    }
}

static void judge(struct topology *t, uint32_t pod)
{
    struct checker *c = t->c;
    struct turn turn = { .pod = pod,
                         .site = c->site_of[pod],
                         .p = &c->sites[c->site_of[pod]],
                         .terms = &t->of_stamp[c->stamp_of[pod]] };
    for (uint32_t i = 0; i < turn.terms->owned_count; i++) {
        uint32_t term = turn.terms->owned[i];
        switch (t->terms.items[term].kind) {
        case TERM_SPREAD:
            judge_spread(t, &turn, term);
            break;
        case TERM_AFFINITY:
            judge_affinity(t, &turn, term);
            break;
        case TERM_ANTI:
            judge_anti(t, &turn, term);
            break;
        }
    }
    for (uint32_t i = 0; i < turn.terms->matched_count; i++) {
        if (t->terms.items[turn.terms->matched[i]].kind == TERM_ANTI)
            judge_anti_of_others(t, &turn, turn.terms->matched[i]);
    }
}

void check_topology(struct checker *c)
{
    struct topology t;
    topology_init(&t, c);
    for (uint32_t i = 0; i < c->site_count; i++) {
        for (uint32_t k = 0; k < c->sites[i].bound_count; k++)
            put(&t, c->sites[i].bound[k], i);
    }
    for (uint32_t i = 0; i < c->plan->order.count; i++) {
        uint32_t pod = c->plan->order.items[i];
        if (c->site_of[pod] == PLAN_NONE || t.present[pod])
            continue; /* told of already: check_book.c */
        judge(&t, pod);
        put(&t, pod, c->site_of[pod]);
    }
    topology_done(&t);
}

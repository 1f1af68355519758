/* sched/check_terms.h - topology terms of pods, for check_terms.c and check_topology.c.
 *
 * Terms that say the same are one, whichever pods have them. Only what kube-scheduler insists on is a
 * term: no preferred ones, no ScheduleAnyway.
 */
#pragma once

#include "sched/check_inner.h"

struct domains { /* of a site: what its label may be */
    const uint32_t *ids;
    uint32_t count;
    bool missing, open; /* as in struct label_values */
};

static inline bool domains_known(const struct domains *d)
{
    return d->count == 1 && !d->missing && !d->open;
}

struct topology_key {
    struct str name;
    struct str_table ids;     /* value to 1 + its id */
    VEC(struct str) values;   /* by id */
    const struct domains *at; /* per site */
};

struct finder { /* of pods */
    struct str_list namespaces;
    const struct label_selector *maybe_namespaces; /* those with such labels, too */
    const struct label_selector *maybe_selector;   /* match label keys are in it */
};

enum term_kind { TERM_SPREAD, TERM_AFFINITY, TERM_ANTI };

/* Counts have two ends: a pod whose site may be in several domains may be in each of them (`high`) and
 * is surely in none (`low`). */
struct term {
    enum term_kind kind;
    const uint32_t *keys; /* an affinity may have several, all others have one */
    uint32_t key_count;
    const struct finder *finders; /* a pod counts if all of them find it */
    uint32_t finder_count;
    uint32_t **high, **low; /* per key and domain: pods that were found */
    uint32_t *owners;       /* of an anti-affinity, per domain: pods that have it, high */
    uint32_t total;         /* of an affinity: pods that were found on a node with such a label */

    /* Of a spread: */
    int64_t max_skew, min_domains;
    bool counts_none;   /* an empty selector: kube-scheduler counts nothing for it */
    uint32_t maybe_ask; /* nodes that do not suit do not count; PLAN_NONE: they do */
    const struct pod_spec *maybe_tolerant; /* nor do those with taints it does not tolerate */
    const uint32_t *hard_keys;             /* nor those without one of these labels */
    uint32_t hard_key_count;
    const uint8_t *counted; /* per site: enum verdict */
    const bool *must;       /* per domain: a node that counts is surely in it */
    uint32_t *on_site;      /* per site: pods that were found there */
};

struct stamp_terms {
    const uint32_t *owned;   /* what these pods ask for */
    const uint32_t *matched; /* what finds them */
    uint32_t owned_count, matched_count;
};

struct topology {
    struct checker *c;
    VEC(struct topology_key) keys;
    VEC(struct term) terms;
    struct str_table term_ids;
    struct str_table namespaces; /* name to its labels, `struct str_map *` */
    struct stamp_terms *of_stamp;
    uint8_t *present; /* per pod: on its site by now */
};

void topology_init(struct topology *t, struct checker *c);
void topology_done(struct topology *t);

bool spread_counts_in(struct topology *t, const struct term *term, enum verdict counted,
                      uint32_t site, uint32_t domain);

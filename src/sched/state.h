/* sched/state.h - a plan in the making: bins, what is in them, and the counts that topology needs.
 *
 * A bin is a home (a node that is there, a claim on its way) or a launch. Bins [0, home_count) are the
 * homes in their order, launches follow. A launch has a machine that it is meant to be, which fixes
 * its room; which other machines would do is worked out at the end (finish.c).
 *
 * Ranks. What a topology term allows can depend on the order in which pods come. A plan has such an
 * order (plan.order), and these ranks are the frame of it: first pods whose terms speak of hosts only
 * (and pods that others want to be near), then pods whose terms speak of wider domains, in the order
 * in which their domains were chosen, then pods without terms. A hostname spread therefore counts
 * pods of its own and of lower ranks only.
 */
#pragma once

#include "base/vec.h"
#include "sched/model.h"

enum rank { RANK_HOST, RANK_DOMAIN, RANK_FREE, RANK_COUNT };

struct placement {
    uint32_t class_, variant;
    uint32_t wants; /* of the variant, with the domains that were chosen */
    uint32_t count;
};

struct bin_tally { /* of a hostname group */
    uint32_t group;
    uint32_t matched[RANK_COUNT]; /* pods that it finds, by rank; bound ones are RANK_HOST */
    uint32_t owners[RANK_COUNT];  /* pods that own it: of an anti-affinity, as a required term */
};

struct bin {
    uint32_t pool, machine, terms; /* of a launch; NONE for a home and for a launch given up */
    usd_hour price;                /* of the machine on those terms */
    uint32_t reserved;             /* the offering whose reservation it holds a place of, or NONE */
    int64_t *free;                 /* per resource */
    uint32_t *domains;             /* per key; NONE: not decided, or no such label */
    VEC(struct bin_tally) tallies; /* sorted by group */
    VEC(uint32_t) ports;           /* taken */
    VEC(struct volume_room) rooms; /* what is left; homes only */
    VEC(uint32_t) claims;          /* shared claims in use; homes only */
    VEC(struct placement) placements;
};

struct group_count {           /* the live form of struct group's counts */
    int64_t *matched, *owners; /* per domain; of hostname groups empty */
    int64_t total;
    struct bitset present; /* of a spread over wider domains: those of homes that count */
};

struct pool_left {
    int64_t *limits; /* per limit of the pool */
    int64_t nodes;
};

/* A pod whose domains were chosen, in the order of choosing. */
struct choice {
    uint32_t class_, wants;
    uint32_t bin; /* where it went at once; NONE: to be launched for */
};

/* What a new node for a pod would be. */
struct outlook {
    uint32_t tier;     /* of pools, the first that can take it; NONE: none can */
    usd_hour cheapest; /* in that tier */
};

struct state {
    struct model *model;
    struct arena *arena;
    VEC(struct bin) bins;
    VEC(uint32_t) spare; /* launches given up, to be used again */
    struct group_count *groups;
    struct bitset *launched; /* per key: domains that launches are, or were, in */
    /* NULL, or per key: domains to keep out of if another will do. A node there would be one more
     * domain for spreads whose pods cannot be there. */
    const struct bitset *maybe_avoid;
    struct pool_left *pools;
    uint8_t *ranks;  /* per class: enum rank */
    uint32_t *sizes; /* per class: equal requests, equal numbers */
    /* Answers of launch_outlook, as places in `outlooks`; good until a launch of a pool with limits is
     * opened or given up, or a reservation is taken. */
    struct map possible;
    VEC(struct outlook) outlooks;
    bool possible_stale;
    struct map domains_of; /* terms to const uint32_t[key_count]: see launch_set_domains */
    VEC(struct choice) choices;
    usd_hour price;   /* of all launches */
    usd_hour premium; /* by which a pod may make the launch dearer that it joins */
    uint64_t steps;   /* of work */
    uint64_t careful; /* packing takes care while steps are below this */
    bool dense;       /* what is limited counts, not what it costs */
    uint64_t whim;    /* 0, or what decides instead of order and price where either will do */
};

void state_init(struct state *s, struct model *m, struct arena *arena);
void state_done(struct state *s);

static inline bool bin_is_home(const struct state *s, uint32_t bin)
{
    return bin < s->model->home_count;
}
static inline bool bin_is_live(const struct state *s, uint32_t bin)
{
    return bin_is_home(s, bin) || s->bins.items[bin].pool != NONE;
}

/* A new, empty launch; its share of the pool's limits is taken. */
uint32_t state_open(struct state *s, uint32_t pool, uint32_t machine, uint32_t terms);
/* Gives up an empty launch. */
void state_close(struct state *s, uint32_t bin);
/* May the pool launch that machine `times` over, by its limits? */
uint32_t state_allowed(const struct state *s, uint32_t pool, uint32_t machine, uint32_t times);

/* How many of `want` pods could go there now. Domains wider than a host are not judged: see
 * sched/domains.h. `wants` is the variant's, perhaps with domains chosen. */
uint32_t state_room(struct state *s, uint32_t bin, uint32_t class_, const struct variant *v,
                    uint32_t wants, uint32_t want);
/* All that a placement changes, in the bin and (for a home) in the counts of wider domains; for a
 * launch these were counted when the domains were chosen. */
void state_place(struct state *s, uint32_t bin, uint32_t class_, uint32_t variant, uint32_t wants,
                 uint32_t count);
/* Takes the last `count` pods of the placement at that place away again; launches only. */
void state_take(struct state *s, uint32_t bin, uint32_t placement, uint32_t count);

/* Of what the pool limits. */
static inline bool machine_no_larger(const struct pool *pool, uint32_t machine, uint32_t than)
{
    for (uint32_t i = 0; i < pool->limit_count; i++)
        if (pool->limits[i].capacity[machine] > pool->limits[i].capacity[than])
            return false;
    return true;
}

/* Would ports and hostname groups let one more pod of the class in? */
bool state_host_admits(const struct state *s, uint32_t bin, uint32_t class_,
                       const struct variant *v);

/* Would minValues that are strict be met if the launch were on these terms? */
bool state_min_values_met(struct state *s, uint32_t bin, uint32_t terms);

/* --- launch.c --- */

/* Takes everything out of a launch and gives it up. */
void launch_dissolve(struct state *s, uint32_t bin);
/* The launch is to stay: a reserved offering that it would take is taken. */
void launch_settle(struct state *s, uint32_t bin);
/* Makes the launch the cheapest machine with room for one more pod of the class, if there is one that
 * admits it. */
bool launch_grow(struct state *s, uint32_t bin, uint32_t class_, const struct variant *v,
                 uint32_t wants);

/* Would a daemon on that machine take a port that a pod of the launch has? */
bool launch_ports_clash(const struct state *s, const struct bin *bin, uint32_t machine);
/* The cheapest machine of the launch's terms that has room for what is in it, within the limits; its
 * own if there is none cheaper. */
uint32_t launch_right_size(struct state *s, uint32_t bin);
/* Domains that the terms leave no choice of. */
void launch_set_domains(struct state *s, struct bin *bin);
/* Domains of the key that a node on these terms could be in; over the key's domains. */
void launch_domains(struct state *s, uint32_t terms, uint32_t key, struct bitset *out);
/* The terms anew, from the pods that are in the launch now. */
void launch_rejoin(struct state *s, uint32_t bin);
/* Asks more of the launch: that it has the label with the value that it was planned with. */
void launch_pin(struct state *s, uint32_t bin, struct str key, struct str value);

/* Counts pods in (or with a negative count out of) a domain wider than a host. */
void state_count(struct state *s, uint32_t class_, uint32_t variant, uint32_t key, uint32_t domain,
                 int64_t count);

/* The least count of a spread over the domains that it counts: those of homes, and of `others` those
 * that pass its node filter. */
int64_t state_spread_minimum(const struct group *g, const struct group_count *live,
                             const struct bitset *others);

/* A number that the whim has for a question; 0 without one. */
static inline uint64_t state_whim(const struct state *s, uint32_t about, uint32_t which)
{
    return s->whim ? kv_mix64(s->whim ^ kv_mix64((uint64_t)about << 32 | which)) : 0;
}

/* --- questions about classes --- */

static inline bool class_matched(const struct pod_class *c, uint32_t group)
{
    for (uint32_t i = 0; i < c->matched_count; i++)
        if (c->matched[i] == group)
            return true;
    return false;
}
static inline bool variant_owns(const struct variant *v, uint32_t group)
{
    for (uint32_t i = 0; i < v->owned_count; i++)
        if (v->owned[i] == group)
            return true;
    return false;
}
/* The class has the term as a required one: kube-scheduler insists on it, and an anti-affinity keeps
 * others away too. What is left when everything has been given up is required. */
static inline bool class_requires(const struct pod_class *c, uint32_t group)
{
    return variant_owns(&c->variants[c->variant_count - 1], group);
}

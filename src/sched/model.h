/* sched/model.h - a snapshot, compiled: whatever the solver compares is a small integer.
 *
 * Pods that differ in nothing that matters are one class. What they ask of a node's labels (wants),
 * which taints they bear (tolerance) and what a node must be (terms) are interned sets, so a question
 * about two of them is asked once and remembered. Amounts are in thousandths (cloud/instance_types.h),
 * in vectors of `resource_count`.
 *
 * Everything lives in `arena` (memo tables apart: model_done). Order of the input does not show:
 * classes, homes, pools, keys, domains and groups are in orders of their own. Not thread safe: asking
 * remembers.
 */
#pragma once

#include "base/map.h"
#include "sched/plan.h"

#define NONE UINT32_MAX /* no such index */

enum { RESOURCE_CPU, RESOURCE_MEMORY, RESOURCE_PODS, RESOURCE_FIRST_OTHER };
#define RESOURCES_MAX 64 /* of one model; pods that ask for yet others are refused */

/* --- topology --- */

#define KEY_HOSTNAME 0 /* always there; each bin is its own domain and `domains` is empty */

struct topology_key { /* a label that some topology term of some pod names */
    struct str name;
    /* Values that nodes have, and that can be launched: for the zone those with an available
     * offering that some pool allows. Sorted. */
    const struct str *domains;
    uint32_t domain_count;
};

enum group_kind {
    GROUP_SPREAD,
    GROUP_AFFINITY,
    GROUP_ANTI,
};

/* A topology term, told apart by all it says: kind, key, namespaces, selector (with match label
 * keys folded in), skew, minimum of domains and, for spreads, the node filter. A pod class may own
 * it (is constrained by it), be matched by it (counts), or both. Preferred terms and ScheduleAnyway
 * are the same while a variant holds to them.
 *
 * Counts are of bound pods at the start; the solver keeps its own from there. Those of hostname
 * groups are in the homes' tallies. */
struct group {
    enum group_kind kind;
    uint32_t key;
    int64_t max_skew;       /* of a spread */
    int64_t min_domains;    /* of a spread; 0: not given */
    struct bitset eligible; /* over the key's domains: those that count for a spread's minimum */
    struct bitset homes;    /* of a spread over wider domains: homes whose pods count */
    struct bitset pools;    /* of a spread: pools whose taints do not keep nodes from counting */
    /* Of a spread: a launch counts if one of these wants excludes nothing that it may be. */
    const uint32_t *filter;
    uint32_t filter_count;
    int64_t *matched;   /* per domain: pods that the selector finds, on nodes that count */
    int64_t *owners;    /* per domain: pods that have this as a *required* anti-affinity term */
    int64_t total;      /* pods that the selector finds anywhere, for the first of an affinity */
    const void *source; /* the term it was made of: model_groups.c */
    /* For words: all of them must find a pod. Match label keys are folded in; a term without a
     * selector, which finds nobody, is not here. */
    const struct label_selector *selectors;
    uint32_t selector_count;
};

/* --- pods --- */

struct wants { /* what pods ask of a node: of its labels, and that it runs their images */
    struct requirements set;
    uint32_t fit; /* into `fits`; NONE: nothing is asked */
};

/* Where some images run, in one way to take what is not known. */
struct image_fit {
    uint32_t source; /* into snapshot.fits.items */
    struct bitset homes;
    const struct bitset *types; /* per pool, over its instance types */
};

struct tolerance {
    const struct toleration *items;
    uint32_t count;
    bool all_prefer;         /* and every PreferNoSchedule taint */
    struct bitset tolerated; /* over taint sets */
};

struct taint_list { /* distinct */
    const struct taint *items;
    uint32_t count;
};

/* One way to read what a pod asks for. The first takes everything as it stands; each further one
 * gives up a little, in the order of relaxation: for each set of preferences that is left, every
 * term of the required node affinity and every alternative of the volumes. What is not known to run the
 * images is taken last, if that is how it is to be. */
struct variant {
    uint32_t wants;
    uint32_t tolerance;
    const uint32_t *owned; /* groups, sorted */
    uint32_t owned_count;
    struct str given_up; /* what has been relaxed so far, in words; "" for nothing */
};

struct class_volume {
    uint32_t driver; /* CSI, into `drivers` */
    uint32_t claim;  /* into `claims`: one that several pods share counts once; NONE: its own */
};

struct pod_class {
    const uint32_t *pods; /* into snapshot.pods, by namespace and name */
    uint32_t count;
    const int64_t *request; /* `pods` is 1 in it */
    int64_t priority;
    const struct variant *variants;
    uint32_t variant_count;
    const uint32_t *matched; /* groups whose selector and namespaces find these pods, sorted */
    uint32_t matched_count;
    const uint32_t *ports; /* host ports, into `ports` */
    uint32_t port_count;
    const struct class_volume *volumes;
    uint32_t volume_count;
    /* Not to be placed at all: a construct that is not handled, a claim that cannot be bound. */
    const struct plan_blame *maybe_refused;
};

struct host_port {
    struct str ip; /* "0.0.0.0": any */
    int64_t port;
    uint8_t protocol;
    struct bitset conflicts; /* over ports; itself too */
};

/* --- nodes that are there, and claims on their way --- */

struct tally { /* of a hostname group on one bin */
    uint32_t group;
    uint32_t matched, owners;
};

struct volume_room { /* per CSI driver of a node */
    uint32_t driver;
    int64_t left; /* attachments; only drivers with a limit are here */
};

struct home {
    uint32_t node, claim; /* into the snapshot; see plan_existing */
    struct str name;
    const int64_t *free; /* allocatable less pods, and less daemons that are yet to come */
    uint32_t shape;      /* distinct label sets (hostname apart): see home_admits */
    uint32_t taints;
    uint32_t pool;           /* into `pools`, or NONE */
    const uint32_t *domains; /* per key; NONE: lacks the label. That of the host name is unused */
    struct str hostname;
    const struct tally *tallies; /* sorted by group */
    uint32_t tally_count;
    const uint32_t *ports; /* taken; sorted */
    uint32_t port_count;
    const struct volume_room *rooms;
    uint32_t room_count;
    const uint32_t *claims; /* shared claims that are in use there; sorted */
    uint32_t claim_count;
};

/* --- what can be launched --- */

/* Of a resource that the pool limits. */
struct limit {
    struct str name;
    int64_t left;            /* after the nodes and claims that are there; may be negative */
    const int64_t *capacity; /* per machine */
};

/* A machine is a row of the pool's instance types: a type, or a type as some offerings override
 * it. */
struct pool {
    uint32_t source; /* into snapshot.pools */
    const struct instance_types *types;
    struct requirements requirements; /* of the template, its labels included */
    struct str_list well_known;
    uint32_t taints; /* startup taints are not in it */
    uint32_t tier;   /* pools of equal weight share one; 0 is tried first */
    uint32_t machine_count;
    const int64_t *room; /* [machine][resource]: allocatable less the daemons that will be there */
    const int64_t *daemons;              /* [machine][resource]: those daemons */
    const uint32_t *const *daemon_ports; /* per machine, ended by NONE; NULL: no daemon has any */
    const struct limit *limits;
    uint32_t limit_count;
    int64_t nodes_left; /* INT64_MAX: no limit */
    uint32_t terms;     /* its own: nothing asked by pods */
};

/* A pool that nothing can be launched from. */
struct pool_out {
    uint32_t source; /* into snapshot.pools */
    struct str why;  /* in words: "it is being deleted" */
};

/* What a node of a pool must be after some pods have had their say. Interned. */
struct terms {
    uint32_t pool;
    struct requirements set;
    struct bitset shapes;   /* of offerings, less reservations that are used up */
    struct bitset machines; /* compatible, and to be had in one of the shapes */
    const usd_hour *price;  /* per machine: the cheapest offering; USD_HOUR_MAX if there is none */
    const uint32_t *offering;
    bool has_min_values;
    uint32_t epoch; /* of `exhausted` that shapes, machines and prices are of */
};

struct model_memo; /* the interning tables, model_memo.h */

struct model {
    struct arena *arena;
    const struct snapshot *snap;
    struct plan_options options;

    const struct str *resources; /* cpu, memory, pods, then what else pods ask for, by name */
    uint32_t resource_count;

    const struct topology_key *keys;
    uint32_t key_count;
    const struct group *groups;
    uint32_t group_count;

    const struct pod_class *classes;
    uint32_t class_count;
    const struct plan_skip *skips;
    uint32_t skip_count;

    const struct home *homes; /* initialised nodes first, then by name */
    uint32_t home_count;
    uint32_t shape_count;

    const struct pool *pools; /* as tried: by weight, then later in the alphabet first */
    uint32_t pool_count;
    const struct pool_out *pools_out; /* the others, in the same order */
    uint32_t pools_out_count;

    const struct image_fit *fits; /* that pending pods ask for, and which leave something out */
    uint32_t fit_count;
    const struct tolerance *tolerances;
    uint32_t tolerance_count;
    const struct taint_list *taints;
    uint32_t taints_count;
    const struct host_port *ports;
    uint32_t port_count;
    const struct str *drivers;
    uint32_t driver_count;

    uint32_t exhaust_epoch;
    struct model_memo *memo;
};

/* `options` with its defaults filled in are kept in it. */
void model_compile(struct model *m, struct arena *arena, const struct snapshot *snap,
                   struct plan_options options);
void model_done(struct model *m);

/* --- asking; every answer is remembered --- */

const struct wants *wants_at(const struct model *m, uint32_t wants);
/* wants & (key In [that domain]), for the same images as are the next two; NONE if nothing can be both.
 * For keys but the host name. */
uint32_t wants_pin(struct model *m, uint32_t wants, uint32_t key, uint32_t domain);

/* wants & (key NotIn those domains); NONE if nothing is left. */
uint32_t wants_avoid(struct model *m, uint32_t wants, uint32_t key, const struct bitset *domains);
/* Of nodes that do not have that label at all; NONE if the wants ask for it. */
uint32_t wants_without(struct model *m, uint32_t wants, uint32_t key);
/* Nothing but one label with that value; STR_NONE: without the label. */
uint32_t wants_label(struct model *m, struct str key, struct str maybe_value);

/* Current: computed anew after reservation_take. The pointer is good until the next call that interns
 * terms. */
const struct terms *terms_at(struct model *m, uint32_t terms);
/* The terms after pods with these wants have joined too; NONE: they cannot be there together, or no
 * machine is left. */
uint32_t terms_join(struct model *m, uint32_t terms, uint32_t wants);
/* Do these machines (of the terms' pool) have as many different values as the terms' minValues ask
 * for? Types count cheapest first; what is in `maybe_out` lives in `scratch`. */
bool terms_min_values(struct model *m, uint32_t terms, const struct bitset *machines,
                      struct arena *scratch, struct min_values_result *maybe_out);

/* Do the labels of that home suit? Does it run the images? Both? */
bool home_suits(struct model *m, const struct home *home, uint32_t wants);
bool home_fits(const struct model *m, const struct home *home, uint32_t wants);
bool home_admits(struct model *m, const struct home *home, uint32_t wants);
static inline bool taints_tolerated(const struct model *m, uint32_t tolerance, uint32_t taints)
{
    return bitset_test(&m->tolerances[tolerance].tolerated, taints);
}

/* Instances left of the reservation that this offering of the pool's types is of; -1: it is not of
 * one. */
int64_t reservation_left(const struct model *m, uint32_t pool, uint32_t offering);
/* One more instance of it is taken; when none is left its shapes are gone from all terms. */
void reservation_take(struct model *m, uint32_t pool, uint32_t offering);
void reservation_give(struct model *m, uint32_t pool, uint32_t offering); /* one back */
void reservations_reset(struct model *m);                                 /* as at the start */

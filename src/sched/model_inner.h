/* sched/model_inner.h - how a model is compiled; for the model_*.c files only.
 *
 * In this order, each step reading what the ones before it left:
 *
 *     sorts_collect    pods that are alike as objects; who is pending, who is bound, who is skipped
 *     pools_compile    templates, machines, daemons, limits
 *     groups_compile   topology keys, their domains, groups; which sorts own and match which
 *     homes_compile    nodes and claims, with bound pods taken off; the groups' first counts
 *     classes_compile  pending sorts that nothing tells apart become one class; where images run
 *     taints_settle    which tolerances bear which taints
 *     ports_settle     which host ports are in each other's way
 */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "sched/model.h"

enum pod_state {
    POD_PENDING,
    /* Counts on its node, which is in the snapshot; terminating ones too. So does a pod that
     * kube-scheduler has nominated to one, which has a line in model.skips beside. */
    POD_BOUND,
    POD_SKIPPED, /* not for us: has a line in model.skips */
    POD_GONE,    /* bound to a node that is not there: counts nowhere */
};

/* Pods that share spec, affinity, labels, volumes (as pointers), namespace and what their images ask
 * for, and which differ at most in name, node and status. Found by a hash of pointers; equal content
 * behind different pointers may be two sorts, which classes_compile merges. */
struct pod_sort {
    const struct pod *pod;                  /* one of them */
    const int64_t *request;                 /* per resource of the model, `pods` included */
    const struct plan_blame *maybe_refused; /* requests beyond what can be counted, ... */
    const uint32_t *matched;                /* groups that find them, sorted */
    uint32_t matched_count;
    const uint32_t *anti; /* groups of their *required* anti-affinity terms, sorted */
    uint32_t anti_count;
    const uint32_t *ports; /* sorted */
    uint32_t port_count;
    uint32_t pending_count, bound_count;
    uint32_t fit; /* of a pending sort: what their images ask for, into snapshot.fits.items; NONE */
    /* Of a pending sort: the groups of its topology terms, one for one in the order of the spec. NONE:
     * a term that asks for nothing, or that nobody heeds (PREFERENCES_IGNORE). */
    struct {
        const uint32_t *spread, *affinity, *affinity_preferred, *anti, *anti_preferred;
    } terms;
};

struct compile {
    struct model *m;
    struct arena *arena;
    uint8_t *state; /* per pod of the snapshot: enum pod_state */
    uint32_t *sort; /* per pod: into `sorts`, or NONE */
    VEC(struct pod_sort) sorts;
    VEC(struct plan_skip) skips;
    VEC(struct group) groups;
    VEC(struct topology_key) keys;
    VEC(struct host_port) ports;
    VEC(struct str) drivers;
    VEC(struct tolerance) tolerances;
    VEC(struct taint_list) taints;
    /* Canonical bytes to 1 + index. */
    struct str_table port_ids, driver_ids, tolerance_ids, taint_ids;
    VEC(struct image_fit) fits;
    struct fit_readings *maybe_fits; /* per fit of the snapshot: model_fits.c */
    struct storage *storage;         /* claims and volumes by name: model_volumes.c */
    struct node_side *nodes;         /* what belongs to whom, daemons: model_nodes.h */
    struct arena scratch;            /* for a step's own use; reset at its start */
    struct buf text;                 /* likewise */
};

/* What is on the heap. The driver moves the vectors that are the model's into its arena first. */
void compile_done(struct compile *c);

/* model_pods.c. Sets the model's resources; `skips` are by namespace and name. */
void sorts_collect(struct compile *c);
int64_t pod_priority(const struct compile *c, const struct pod_spec *spec);
int pod_order(const struct pod *a, const struct pod *b); /* by namespace, name, uid */
/* The node that it is on, or that kube-scheduler has nominated it to; absent: neither. */
struct str pod_node(const struct pod *pod);
/* Whatever the pool, in the arena. */
const struct plan_blame *blame_new(struct compile *c, enum plan_reason reason, struct str detail);
uint32_t numbers_sort_unique(uint32_t *items, uint32_t count); /* how many are left */

/* model_ports.c: host ports of what runs all the time. Sorted, in the arena. */
const uint32_t *pod_ports(struct compile *c, const struct pod_spec *spec, uint32_t *count);
/* Which ports are in each other's way: when all are known. */
void ports_settle(struct compile *c);
/* model_pools.c */
void pools_compile(struct compile *c);
/* model_groups.c */
void groups_compile(struct compile *c);
/* Does a node with these labels and taints count for the group? Spreads have a node filter, others
 * count every node. */
bool group_counts(const struct compile *c, const struct group *g, const struct str_map *labels,
                  const struct taint *taints, uint32_t taint_count);
/* Index of a domain of the key, or NONE. */
uint32_t domain_find(const struct topology_key *key, struct str value);
/* model_homes.c */
void homes_compile(struct compile *c);
/* model_demands.c: what labels must be, as it is written: one requirement per expression. */
struct demands {
    const struct requirement *items;
    uint32_t count;
};
struct demands demands_of_labels(struct arena *arena, const struct str_map *labels);
/* ERR_INVALID: one of them makes no sense. */
int demands_of_term(struct arena *arena, const struct node_selector_term *term, struct demands *out,
                    struct err *err);
struct demands demands_both(struct arena *arena, struct demands a, struct demands b);
/* As a set, in scratch memory. ERR_INVALID: no node can be all of it. */
int demands_settle(struct compile *c, struct demands d, struct requirements *out, struct err *err);

/* model_classes.c */
void classes_compile(struct compile *c);
/* model_volumes.c: drivers and shared claims of a pod's volumes, for classes and for homes. Of a
 * bound pod only `items` are told. */
void storage_index(struct compile *c); /* by sorts_collect, when states are known */
void storage_done(struct compile *c);
/* Pods that have the same list of volumes may still have different ones behind it, or one that not
 * all of them can have. */
bool volumes_are_own(struct compile *c, const struct pod *pod);
uint32_t driver_intern(struct compile *c, struct str name);
struct pod_volumes {
    const struct class_volume *items;
    uint32_t count;
    /* Alternatives of where they can be, one requirement set each; none: anywhere. */
    const struct requirements *alternatives;
    uint32_t alternative_count;
    const struct plan_blame *maybe_refused;
};
struct pod_volumes pod_volumes_of(struct compile *c, const struct pod *pod);

/* model_fits.c: a fit of the snapshot, read. NONE as a reading: it leaves nothing out. */
struct fit_readings {
    uint32_t first, last; /* into `fits`: what is taken at first, and what is taken in the end */
    bool known;           /* both have been worked out */
};
struct fit_readings fit_readings_of(struct compile *c, uint32_t maybe_fit);

/* model_variants.c. At least one, unless the pods are refused. Everything is in the arena. */
struct variants {
    const struct variant *items;
    uint32_t count;
    const struct plan_blame *maybe_refused;
};
struct variants variants_of(struct compile *c, const struct pod_sort *sort,
                            const struct pod_volumes *volumes);

/* model_wants.c, model_terms.c: interning. Equal content, equal number. */
uint32_t wants_intern(struct model *m, const struct requirements *set); /* copies what it keeps */
uint32_t wants_with_fit(struct model *m, const struct requirements *set, uint32_t maybe_fit);
uint32_t terms_intern(struct model *m, uint32_t pool, const struct requirements *set);
void terms_init(struct model *m);
void terms_done(struct model *m);

/* model_taints.c */
uint32_t taints_intern(struct compile *c, const struct taint *items, uint32_t count);
uint32_t tolerance_intern(struct compile *c, const struct toleration *items, uint32_t count,
                          bool all_prefer);
bool taint_tolerated(const struct toleration *items, uint32_t count, const struct taint *taint);
void taints_settle(struct compile *c);

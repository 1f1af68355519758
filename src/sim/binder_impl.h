/* sim/binder_impl.h - what the files of the binder share. For binder*.c only.
 *
 *     pod --> class --> ask   what it asks of a node by itself: resources, ports, labels, taints
 *               |-----> tag   how others find it: namespace and labels
 *               +-----> terms what it asks of other pods: spread, affinity, anti-affinity
 *
 * Pods that differ in nothing that matters are of one class, asks and tags are shared further. All three
 * are known by the addresses of the blocks that objects share (api/object.h), live as long as a pod of
 * theirs does, and hold an object so that the addresses stay theirs.
 *
 * Amounts are in thousandths, as in cloud/instance_types.h.
 */
#pragma once

#include "api/node.h"
#include "api/policy.h"
#include "api/storage.h"
#include "base/map.h"
#include "base/vec.h"
#include "sim/binder.h"
#include "sim/binder_match.h"
#include "store/informer.h"

__extension__ typedef __int128 wide;

#define NO_NODE UINT32_MAX

enum binder_watch { /* in the order in which they are taken in: pods last */
                    BINDER_NAMESPACES,
                    BINDER_PRIORITIES,
                    BINDER_CLASSES, /* of storage */
                    BINDER_VOLUMES,
                    BINDER_CLAIMS,
                    BINDER_CSI_NODES,
                    BINDER_NODES,
                    BINDER_PODS,
                    BINDER_WATCH_COUNT
};

struct host_port {
    struct str ip; /* "0.0.0.0": all */
    int64_t port;
    uint8_t protocol;
};

struct amount {
    uint32_t resource;
    int64_t milli;
};

enum ask_fit { /* of a node by its labels and taints */
               ASK_FIT_UNKNOWN,
               ASK_FIT_YES,
               ASK_FIT_TAINT,
               ASK_FIT_LABELS,
};

struct ask {
    const struct pod *pod; /* one that asks this; a reference */
    uint32_t users;        /* classes */
    struct arena arena;    /* of the lists */
    const struct amount *amounts;
    uint32_t amount_count;
    int64_t cpu_milli, memory_milli;
    const struct host_port *ports;
    uint32_t port_count;
    const char *maybe_never; /* it fits nowhere: why */
    struct str only_node;    /* absent: any */
    VEC(uint8_t) fits;       /* enum ask_fit, by node; unless there is only one node */
};

struct tag {
    const struct pod *pod; /* a reference */
    uint32_t users;        /* classes */
    VEC(struct term *) matched;
};

enum term_kind { TERM_SPREAD, TERM_AFFINITY, TERM_ANTI };

struct finder { /* of pods */
    struct str_list namespaces;
    const struct label_selector *maybe_namespaces; /* those with such labels, too */
    const struct label_selector *maybe_selector;   /* match label keys are in it */
};

struct topology_key {
    struct str name;
    struct str_table ids;      /* value to 1 + its id */
    VEC(struct str) values;    /* keys of `ids`, by id */
    VEC(uint32_t) node_domain; /* by node: 1 + the id; 0: it has no such label */
};

typedef VEC(uint32_t) counts;

struct term {
    enum term_kind kind;
    const struct pod *pod; /* that has it; a reference: what is borrowed below lives in it */
    struct arena arena;
    struct str id; /* in binder.terms */
    VEC(struct class *) owners;
    struct topology_key **keys; /* an affinity may have several, all others have one */
    uint32_t key_count;
    const struct finder *finders; /* a pod counts if all of them find it */
    uint32_t finder_count;
    counts *found;  /* per key, by domain: pods that were found */
    uint64_t total; /* found on nodes that have one of the labels */
    counts held;    /* of an anti-affinity, by domain: pods that have it */
    uint64_t held_total;

    /* Of a spread: */
    int64_t max_skew, min_domains;
    bool counts_none;                /* an empty selector: kube-scheduler counts nothing for it */
    bool by_affinity;                /* nodes that do not suit the pod do not count */
    bool by_taints;                  /* nor do those with taints that it does not tolerate */
    struct topology_key **hard_keys; /* nor those without one of these labels */
    uint32_t hard_key_count;
    VEC(bool) counted;    /* by node */
    counts counted_nodes; /* by domain */
    uint32_t fewest;      /* pods in a domain, while a pod is looked at */
};

struct waiting {           /* a pod without a node */
    const struct pod *pod; /* a reference */
    struct class *class;
    uint32_t at;    /* in class->waiting */
    size_t line_at; /* in binder.line */
    int64_t priority;
    uint32_t assumed; /* bound by us and not seen so yet; NO_NODE: not */
};

struct candidate { /* of a class that asks nothing of others: see binder_pick.c */
    double score;
    uint32_t node;
};

struct class
{
    const struct pod *pod; /* a reference */
    uint32_t users;        /* waiting pods and residents */
    struct ask *ask;
    struct tag *tag;
    VEC(struct term *) terms;
    VEC(struct waiting *) waiting;
    bool has_claims;
    bool blocked; /* no node will do, until something changes */
    bool listed;  /* in binder.blocked */
    bool ready;   /* in binder.ready: to be tried */
    bool passing; /* being tried */
    bool telling; /* in binder.telling: some waiting pod is to be told the message */
    char *message;
    int64_t told_ns; /* when a message was last replaced by another */
    VEC(struct candidate) heap;
    uint64_t heap_epoch; /* 0: there is none */
};

struct resident {
    struct class *class;
    uint32_t live, ending; /* ending: being deleted, and not gone */
};

struct site {                       /* a node, or one that a pod names and nobody has seen */
    const struct node *maybe_node;  /* a reference */
    struct str name;                /* key of binder.node_ids */
    VEC(wide) free;                 /* by resource */
    double cpu_scale, memory_scale; /* 1 / allocatable; 0: none */
    VEC(struct resident) residents;
};

struct binding {           /* of this step, for those who doubt it */
    const struct pod *pod; /* a reference; as it was before */
    uint32_t node;
};

struct binder {
    struct binder_options options;
    struct informer *informers[BINDER_WATCH_COUNT];
    struct str_table resources; /* name to 1 + its number */
    VEC(struct str) resource_names;
    uint32_t cpu, memory, pods;

    VEC(struct site *) sites; /* NULL: unused */
    VEC(uint32_t) sites_free;
    struct str_table node_ids; /* name to 1 + its site */
    uint32_t node_count;       /* of real ones */

    struct str_table asks, tags, classes; /* by what they are known by */
    struct str_table terms;
    VEC(struct topology_key *) keys;
    struct str_table waiting;    /* by uid */
    VEC(struct class *) blocked; /* some may not be any more */
    VEC(struct class *) ready, telling;
    VEC(struct waiting *)
    line;             /* all that wait, in the order in which they are tried; NULL: gone */
    size_t line_gone; /* so many are */
    bool line_unsorted;
    uint64_t epoch; /* +1 when room was made somewhere */

    VEC(struct binding) bindings;
    struct binder_stats stats;
    char *maybe_disagreement;
    struct arena scratch;
};

/* --- binder_classes.c --- */

struct class *class_of(struct binder *b, const struct pod *pod);   /* one user more */
struct class *class_find(struct binder *b, const struct pod *pod); /* must be there */
void class_drop(struct binder *b, struct class *class);
/* While a container is resized in place the pod takes up what its status says: that; else NULL. */
const void *pod_resized(const struct pod *pod);
uint32_t resource_id(struct binder *b, struct str name);
enum ask_fit ask_fit(struct ask *ask, const struct binder *b, uint32_t node);
bool ask_fits_room(const struct ask *ask, const struct site *site);
bool ports_clash(const struct ask *a, const struct ask *b);

/* --- binder_sites.c --- */

uint32_t site_of(struct binder *b, struct str name); /* made if need be */
void site_set_node(struct binder *b, uint32_t at, const struct node *maybe_node);
void site_count(struct binder *b, uint32_t at, struct class *class, bool ending, int by);
bool site_ports_free(const struct site *site, const struct ask *ask);
void site_free(struct site *site);

/* --- binder_topology.c --- */

void terms_own(struct binder *b, struct class *class); /* the terms that it has */
void terms_disown(struct binder *b, struct class *class);
void tag_match(struct binder *b, struct tag *tag); /* the terms that find it */
void terms_count(struct binder *b, uint32_t at, const struct class *class, bool ending, int by);
/* Before and after the labels or taints of a node change. */
void terms_node_leaves(struct binder *b, uint32_t at);
void terms_node_joins(struct binder *b, uint32_t at);
void terms_rematch(struct binder *b); /* labels of a namespace have changed */
void binder_terms_done(struct binder *b);
/* Once per pod, then for each node. NULL: it may be there; else why not, as kube-scheduler says it. */
void class_weigh_terms(struct class *class);
const char *class_terms_refuse(const struct class *class, uint32_t at);

/* --- binder_volumes.c --- */

bool pod_has_claims(const struct pod *pod); /* or disks that are attached */
/* What the pod's volumes are, found out once for all nodes; in the scratch arena until volumes_done.
 * `maybe_never`: the pod can be nowhere. */
struct volumes {
    struct volume_seen *items;
    uint32_t count;
    const char *maybe_never;
};
struct volumes volumes_of(struct binder *b, const struct pod *pod);
void volumes_done(struct volumes *v);
/* NULL: they can be had there. */
const char *volumes_refuse(struct binder *b, const struct volumes *v, uint32_t at);

/* --- binder_pick.c --- */

/* The node for the next pod of the class, or NO_NODE; then class->message says why. */
uint32_t class_pick(struct binder *b, struct class *class, const struct pod *pod);

/* --- binder_doubt.c --- */

void doubt(struct binder *b); /* asks sched/check about the bindings, and forgets them */

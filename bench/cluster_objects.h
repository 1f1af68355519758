/* bench/cluster_objects.h - clusters for the solver's benchmarks: objects as a store would hold them,
 * made in an arena without the JSON.
 *
 * Pods that are made from one template point at the same spec, labels and affinity, as pods that were
 * decoded through an object pool do.
 */
#pragma once

#include "base/vec.h"
#include "sched/plan.h"

/* Lists that a snapshot borrows. Zero-initialised is empty; cluster_done frees. */
struct cluster {
    struct arena arena; /* owns every object */
    VEC(const struct pod *) pods;
    VEC(const struct node *) nodes;
    VEC(struct sched_pool) pools; /* each with a reference to its types */
    VEC(const struct daemon_set *) daemon_sets;
    VEC(const struct pvc *) pvcs;
    VEC(const struct pv *) pvs;
    VEC(const struct storage_class *) storage_classes;
    VEC(const struct csi_node *) csi_nodes;
};
void cluster_done(struct cluster *c);
#define AUTO_CLUSTER __attribute__((cleanup(cluster_done))) struct cluster

struct snapshot cluster_snapshot(const struct cluster *c); /* while nothing is added */

/* --- small pieces, in the arena; texts are borrowed --- */

struct str_map map_one(struct arena *a, struct str key, struct str value);
/* Pairs of key and value, ended by NULL. Sorted by key. */
struct str_map map_of(struct arena *a, const char *const *pairs);
struct str_list list_one(struct arena *a, struct str value);
struct str_list list_of(struct arena *a, const char *const *values); /* ended by NULL */

/* What containers ask for. */
struct amounts {
    int64_t cpu_milli, memory_mib;
    int64_t gpus; /* nvidia.com/gpu */
};
struct resources resources_of(struct arena *a, struct amounts amounts);

const struct label_selector *select_one(struct arena *a, struct str key, struct str value);
struct expression expression_in(const char *key, struct str_list values);

/* A spec with one container. The caller completes it. */
struct pod_spec *spec_new(struct arena *a, struct amounts amounts);
struct spread_constraint *spec_spread(struct arena *a, struct pod_spec *spec, const char *key,
                                      int64_t max_skew, const struct label_selector *selector);
/* A required term alone. */
const struct affinity *affinity_to(struct arena *a, const char *key,
                                   const struct label_selector *selector);
const struct affinity *affinity_against(struct arena *a, const char *key,
                                        const struct label_selector *selector);

/* --- objects --- */

/* What pods of one workload have in common. */
struct pod_mould {
    const struct pod_spec *spec;
    const struct affinity *maybe_affinity;
    struct str_map labels;
};

/* A pod that kube-scheduler has called unschedulable or, with a node, one that runs. To be completed
 * before a snapshot is made. */
struct pod *cluster_add_pod(struct cluster *c, const struct pod_mould *mould, struct str name,
                            struct str maybe_node);
/* A pool; its requirements may be given later. Takes a reference to the types. */
struct nodepool *cluster_add_pool(struct cluster *c, const char *name, const char *class_group,
                                  const struct instance_types *types);
void nodepool_require(struct arena *a, struct nodepool *pool, const char *key,
                      const char *const *values); /* In, ended by NULL */

/* One reference to the types of the built-in catalogue. Ends the program if there are none. */
const struct instance_types *built_in_types(const char *bench);

/* --- what benchmarks print --- */

int64_t cpu_ns(void); /* of this process alone: what else runs on the machine does not count */
/* What compiling the snapshot takes of a plan's time: done once more, by itself. */
int64_t plan_setup_ns(const struct snapshot *snap, struct plan_options options);
long peak_kb(void);
/* Of everything that a plan decides, by names. */
uint64_t plan_hash(const struct snapshot *snap, const struct plan *plan);
/* How many misses have each reason (of their first pool), on stderr. */
void print_misses(const char *bench, const struct snapshot *snap, const struct plan *plan);
/* Judge it; findings go to stderr. True: the plan is right. */
bool plan_is_right(const char *bench, const struct snapshot *snap, struct plan_options options,
                   const struct plan *plan);

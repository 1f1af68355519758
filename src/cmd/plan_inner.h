/* cmd/plan_inner.h - the parts of `karve plan`.
 *
 * A planning is made in one go: what is to be planned for (planning_load), the plan, and what was
 * asked to be known of it; then it is printed, in one of several ways that all only read it.
 * Everything in it lives until planning_done.
 */
#pragma once

#include "cmd/command.h"
#include "cmd/types_load.h"
#include "sched/check.h"
#include "sched/explain.h"

/* What pods come from, as people know it: the Deployment, not its ReplicaSet. Pods that nobody made
 * are a workload of their own. */
struct plan_workload {
    struct str kind;             /* "Deployment"; "Pod": nobody made it */
    struct str namespace_, name; /* of it */
    bool has_namesake;           /* another namespace has one of that name */
};

/* What was read and what was made of it, sorted out; the snapshot's lists are these. */
struct plan_objects {
    VEC(const struct pod *) pods;
    VEC(uint32_t) pod_workloads; /* one for each */
    VEC(struct plan_workload) workloads;
    VEC(const struct node *) nodes;
    VEC(const struct nodeclaim *) claims;
    VEC(const struct daemon_set *) daemon_sets;
    VEC(const struct pvc *) pvcs;
    VEC(const struct pv *) pvs;
    VEC(const struct storage_class *) storage_classes;
    VEC(const struct csi_node *) csi_nodes;
    VEC(const struct namespace_object *) namespaces;
    VEC(const struct priority_class *) priority_classes;
    VEC(const struct object *) node_features;
    VEC(struct sched_pool) pools;

    VEC(const struct object *) makers;            /* of -f: workloads whose pods are to be made */
    VEC(const struct replica_set *) replica_sets; /* all of them */
};

struct planning {
    struct arena arena;         /* owns everything that is not owned by the next three */
    struct manifests manifests; /* of -f */
    struct manifests running;   /* of --nodes and --context: what is there */
    struct loaded_types types;  /* pools in the order in which they are tried, catalogue */
    struct plan_objects objects;

    struct snapshot snapshot; /* its pools are in the order of types.pools */
    struct plan_options options;
    const struct plan *plan;
    struct plan_images *maybe_images; /* behind snapshot.fits */

    /* Per pod of the snapshot. */
    const struct str *pod_names; /* "default/web-0" */
    const uint32_t *pod_workloads;
    const struct plan_workload *workloads;
    uint32_t workload_count;

    /* Of --explain, and of every pending pod with -o html; by namespace and name. Pods of one class
     * have equal explanations: equal `class_`. */
    const uint32_t *explained; /* into snapshot.pods */
    const struct explanation *explanations;
    uint32_t explained_count;

    bool checked; /* --check */
    struct check_result check;

    VEC(struct str) notes; /* what the reader should know of the input, one plain line each */
};

/* An enum exit_code; what is wrong has been said on stderr. On EXIT_DONE the snapshot, the options
 * and the names are there, the plan is not yet. */
int planning_load(struct planning *p, const struct invocation *inv);
void planning_done(struct planning *p);
void planning_note(struct planning *p, const char *fmt, ...) KV_PRINTF(2, 3);

/* --- plan_live.c --- */

/* Add the objects of the cluster that --kubeconfig and --context name to `running`. An enum exit_code. */
int plan_read_live(struct planning *p, const struct invocation *inv);

/* --- plan_images.c --- */

/* Do images count? Unless it is said, for a live cluster: the controller there would look at them. */
bool plan_images_wanted(const struct invocation *inv, bool live);
/* Find out what images ask of nodes (snapshot.fits); all else of the snapshot is in place. An enum exit_code. */
int plan_look_at_images(struct planning *p, const struct invocation *inv);
void plan_images_free(struct plan_images *maybe_images);

/* --- plan_expand.c: workloads become pods --- */

#define PLAN_PODS_MAX 1000000 /* read and made */

/* Find out whose each pod is (objects.pod_workloads), and add those that the makers lack: what their
 * controllers would make now. Claims of stateful sets are added likewise. An enum exit_code. */
int plan_expand(struct planning *p);

/* --- plan_view.c: what every way of printing asks --- */

/* Requests of pods and daemons, and what the node has for them, in thousandths. */
struct plan_use {
    int64_t requested, allocatable;
};
struct plan_use launch_use(const struct planning *p, const struct plan_launch *launch,
                           struct str resource);
struct str launch_type(const struct planning *p, const struct plan_launch *launch);
struct str launch_zone(const struct planning *p, const struct plan_launch *launch);
struct str launch_capacity_type(const struct planning *p, const struct plan_launch *launch);
struct str launch_pool(const struct planning *p, const struct plan_launch *launch);
struct str existing_name(const struct planning *p, const struct plan_existing *existing);
struct str blame_pool(const struct planning *p, const struct plan_blame *blame); /* "": any */

/* Lists of the pods of each group, in the arena; group[i] is that of pods[i], and a list has them in
 * the order in which they are given. */
const struct plan_pods *pods_dealt(struct arena *arena, const uint32_t *pods, const uint32_t *group,
                                   uint32_t count, uint32_t group_count);

/* How many pods of each workload, most first, then by name. */
struct workload_count {
    uint32_t workload, count;
};
struct workload_counts {
    const struct workload_count *items;
    uint32_t count;
};
struct workload_counts workloads_among(const struct planning *p, struct plan_pods pods,
                                       struct arena *arena);
/* "web x12, api x3"; the namespace is only said where names meet. After `max` of them "and 4 more". */
void workload_counts_format(const struct planning *p, struct workload_counts counts, uint32_t max,
                            struct buf *out);
/* "shop/web-0..11, shop/debug": all of them, numbers that follow each other as a range. */
void pods_format(const struct planning *p, struct plan_pods pods, struct buf *out);

/* The one line for a miss: its most telling reason, with the pool where that matters. */
void miss_format(const struct planning *p, const struct plan_miss *miss, struct buf *out);

/* Misses of one workload that have the same line. */
struct miss_group {
    struct plan_pods pods;
    struct str line;
};
struct miss_group *misses_grouped(const struct planning *p, struct arena *arena, uint32_t *count);
/* "shop/big-0" of one, "shop/big x12" of several. */
void miss_group_name(const struct planning *p, const struct miss_group *group, struct buf *out);

/* What --explain asked for, one entry for all pods of a class, in the order of their first pod. */
struct explained_class {
    const struct explanation *explanation;
    struct plan_pods pods; /* those that were asked for */
};
struct explained_class *explained_by_class(const struct planning *p, struct arena *arena,
                                           uint32_t *count);

/* Skipped pods by reason, most first, then by reason. */
struct skip_count {
    struct str reason;
    uint32_t count;
};
struct skip_count *skips_counted(const struct planning *p, struct arena *arena, uint32_t *count);

#define HOURS_PER_MONTH 730
/* For people: "1,036.60", two decimals. Rounded half up. */
void dollars_format(double dollars, struct buf *out);
/* From the lower bound, as a share of it: 0.022. Infinite where nothing is known but that it costs. */
double plan_distance(const struct plan *plan);

/* --- printing --- */

struct plan_look {
    bool wide;
    bool colour;  /* escapes are welcome */
    bool unicode; /* blocks and dashes, not only ASCII */
};

#define BOLD "\033[1m"
#define DIM "\033[2m"
#define RED "\033[31m"
#define GREEN "\033[32m"
#define YELLOW "\033[33m"
#define CYAN "\033[36m"
#define PLAIN "\033[0m"

static inline const char *paint(struct plan_look look, const char *escape)
{
    return look.colour ? escape : "";
}

void plan_table(const struct planning *p, struct plan_look look, struct buf *out);
void plan_json(const struct planning *p, struct buf *out);
void plan_yaml(const struct planning *p, struct buf *out); /* the same document */
void plan_html(const struct planning *p, struct buf *out); /* one page, complete in itself */
void plan_explain_text(const struct planning *p, struct plan_look look, struct buf *out);

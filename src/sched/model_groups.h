/* sched/model_groups.h - which pods and which nodes a topology term speaks of; for model_*.c only. */
#pragma once

#include "sched/model_inner.h"

/* --- pods: model_selectors.c --- */

struct namespaces { /* those that pods are in, sorted by name; a namespace is named by its place */
    struct str *names;
    uint32_t count;
    const uint32_t *of_sort;
    const struct str_map *maybe_labels; /* per namespace; NULL until a selector asks */
};

struct pod_finder {
    bool nothing; /* there is no selector */
    bool everywhere;
    const uint32_t *namespaces; /* unless everywhere; sorted */
    uint32_t namespace_count;
    struct label_selector selector; /* expressions only */
};

void namespaces_collect(struct compile *c, struct namespaces *ns);

/* In scratch memory; `pod` owns the term: its namespace and labels are filled in. */
struct pod_finder spread_finder(struct compile *c, const struct namespaces *ns, uint32_t sort,
                                const struct spread_constraint *term);
struct pod_finder affinity_finder(struct compile *c, struct namespaces *ns, uint32_t sort,
                                  const struct pod_affinity_term *term);
void finder_encode(const struct pod_finder *f, struct buf *out);

/* Finds the groups that find a pod, without asking each: a group is filed under one label that its
 * pods must have. */
struct match_cell {
    uint32_t group, next; /* 1 + the next cell of the same label; 0: none */
};
struct match_index {
    struct map filed; /* hash of a label to 1 + the first of its cells */
    VEC(struct match_cell) cells;
    VEC(uint32_t) unfiled; /* no label is asked for by value */
};

/* Several finders: all of them must find the pod. */
void match_file(struct match_index *ix, uint32_t group, const struct pod_finder *finders,
                uint32_t finder_count);
bool finders_find(const struct pod_finder *finders, uint32_t count, uint32_t namespace_,
                  const struct str_map *labels);
/* Calls `found` for every group that may find pods with these labels: ask finders_find. */
void match_candidates(const struct match_index *ix, const struct str_map *labels,
                      void (*found)(void *ctx, uint32_t group), void *ctx);
void match_done(struct match_index *ix);

/* --- nodes: model_filters.c --- */

/* Which nodes count for a spread. */
struct node_filter {
    const struct demands *terms; /* one of them must hold; none: no node counts */
    uint32_t term_count;
    const struct toleration *tolerations;
    uint32_t toleration_count;
    bool honor_taints;
    struct str_list labels; /* that a node must have, for all spreads of the pod */
};

/* In the arena. */
struct node_filter *filter_of(struct compile *c, const struct pod *pod,
                              const struct spread_constraint *term);
void filter_encode(const struct node_filter *f, struct buf *out);
bool filter_passes(const struct node_filter *f, const struct str_map *labels,
                   const struct taint *taints, uint32_t taint_count);

/* Fills in what the solver judges launches by. */
void filter_for_launches(struct compile *c, const struct node_filter *f, struct group *g);

/* Values of a label on nodes and claims that are there, and on what pools can launch; of what
 * passes the filter if there is one (then also not of what is being deleted). Sorted, in scratch
 * memory. */
struct str_list label_values(struct compile *c, struct str key,
                             const struct node_filter *maybe_filter);

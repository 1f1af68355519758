/* compat/fleet.h - the nodes of the cluster as rules see them, in classes: which of them can run an image.
 *
 * Nodes whose features do not differ in anything that some rule asks for are one class, and a question about
 * an image is asked once per class and remembered. When rules mention a feature for the first time the nodes
 * are sorted into classes anew; when one node changes, only its class is. A filter over thousands of nodes is
 * a table lookup per node.
 *
 * A node without NodeFeatures is judged by what is predicted of its instance type, if told to.
 * Thread safe: many ask, one changes.
 */
#pragma once

#include "api/node.h"
#include "base/metrics.h"
#include "compat/image.h"
#include "compat/predict.h"

enum unobserved_policy { UNOBSERVED_PREDICT, UNOBSERVED_REJECT };

struct fleet_options {
    struct str nfd_namespace; /* whose NodeFeatures come first in a merge. Copied */
    enum unobserved_policy unobserved;
    struct predictor *maybe_predictor; /* outlives it; it learns from nodes here */
    struct metrics *maybe_metrics;
    struct compat_options rules; /* tags are borrowed */
};

struct fleet;
struct fleet *fleet_new(struct fleet_options options);
void fleet_free(struct fleet *fleet); /* NULL is fine */
KV_AUTO_TYPE(fleet, fleet_free)

/* nfd-master was found there, or has moved: its NodeFeatures come first from now on. */
void fleet_set_nfd_namespace(struct fleet *fleet, struct str namespace_);

/* Changes, as informers tell them. */
void fleet_observe_node(void *fleet, const struct object *maybe_old,
                        const struct object *maybe_new);
void fleet_observe_feature(void *fleet, const struct object *maybe_old,
                           const struct object *maybe_new);
/* NodeClaims know from which image a node's machine was made; it helps predictions, and is not needed. */
void fleet_observe_claim(void *fleet, const struct object *maybe_old,
                         const struct object *maybe_new);

/* What one pod asks of a node: all its images, each once. Immutable, counted. Facts are taken by reference. An
 * image that cannot be judged (not resolved, and the policy says so) makes every node MATCH_ERROR, with the
 * words of `trouble`. */
struct fleet_image {
    struct str name;                       /* as the pod has it */
    const struct image_facts *maybe_facts; /* NULL: no constraint, unless there is trouble */
    struct str trouble;
};
struct demand; /* does not outlive its fleet */
/* Equal facts in the same order are the same demand while somebody has it: the verdicts are shared. */
const struct demand *fleet_demand(struct fleet *fleet, const struct fleet_image *images,
                                  uint32_t count);
const struct demand *demand_ref(const struct demand *demand);
void demand_unref(const struct demand *demand); /* NULL is fine */
uint32_t demand_image_count(const struct demand *demand);
const struct fleet_image *demand_image(const struct demand *demand, uint32_t ix);
/* Nothing is asked of any node. */
bool demand_is_empty(const struct demand *demand);

struct fleet_verdict {
    enum match match; /* the least of all images */
    /* Best weight of the sets that match, of all images that have any the least; 0: none has. */
    uint32_t weight;
    uint32_t image_ix; /* that decided */
    /* Nodes of one answer with the same number have the same explanation; UINT32_MAX: like no other. */
    uint32_t class_ix;
    bool predicted; /* the node has not been observed yet */
};
/* Per name, in `out`. A name that is not a node here is MATCH_UNKNOWN. Waits for nobody who changes anything. */
void fleet_judge(struct fleet *fleet, const struct demand *demand, const struct str *names,
                 uint32_t count, struct fleet_verdict *out);
/* Why not, in a line: `registry.example/app:1 set "baseline": cpu.cpuid AVX2: expected to exist, is absent`. */
void fleet_explain(struct fleet *fleet, const struct demand *demand, struct str node,
                   struct buf *out);
/* The same for a machine that is not there yet. */
struct fleet_verdict fleet_judge_machine(struct fleet *fleet, const struct demand *demand,
                                         const struct machine_kind *machine);
void fleet_explain_machine(struct fleet *fleet, const struct demand *demand,
                           const struct machine_kind *machine, struct buf *out);

struct fleet_stats {
    uint32_t nodes, observed, classes, demands;
    uint64_t judged, evaluated; /* verdicts given; rules really looked at */
    size_t bytes; /* about; NodeFeatures, which are shared with whoever watches them, not counted */
};
struct fleet_stats fleet_stats(struct fleet *fleet);
/* Another number than before if a verdict may have changed since. */
uint64_t fleet_generation(struct fleet *fleet);

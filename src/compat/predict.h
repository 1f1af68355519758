/* compat/predict.h - features of a node that does not exist yet: from nodes of its kind that were seen, and
 * from tables of instance families.
 *
 * What was seen beats the tables: of nodes of one instance type and machine image the features that all of
 * them had are known, those that varied are unsure. Of nodes that share only the type, what comes with the
 * hardware is taken (CPU, PCI, NUMA); of those that share only the image, what comes with it (kernel,
 * distribution). The tables know the vector extensions of a listed family completely and its devices in part;
 * what the user declares fills the gaps. Everything else is unknown, and rules answer so.
 */
#pragma once

#include "base/metrics.h"
#include "compat/feature_set.h"

struct instance_types;
struct node;

/* What is known of a machine before it is there (bootstrap's `struct machine` is its capacity). Borrows. */
struct machine_kind {
    struct str instance_type; /* "m7i.large", "p5.48xlarge" */
    struct str architecture;  /* "amd64", "arm64" */
    struct str os;            /* "linux" */
    struct str image;         /* of the machine: an AMI's id; "" if not known */
    struct str cpu_manufacturer, gpu_name, gpu_manufacturer,
        accelerator_name;                  /* labels; "" if none */
    int64_t cpu;                           /* vCPUs; 0 if not known */
    const struct features *maybe_declared; /* by the user, for nodes of this class */
};

/* From a row of a snapshot: one from type_count on is an override of a type. The image and what is declared
 * are the caller's to fill in. */
void machine_of_type(const struct instance_types *types, uint32_t row, struct machine_kind *out);
/* From a Node's labels and capacity. A Node does not say which image it was made from: its claim does. */
void machine_of_node(const struct node *node, struct machine_kind *out);

/* The instance family of a type's name: "m7i-flex" of "m7i-flex.large"; "" if the name has no size. */
struct str instance_family(struct str instance_type);

#define PREDICTOR_PROFILES_MAX 5000
#define PREDICTOR_BYTES_MAX ((size_t)256 << 20) /* of all profiles; the least used go first */

struct predictor_options {
    struct metrics *maybe_metrics; /* karve_feature_prediction_mismatch_total */
    uint32_t
        profiles_max; /* (type, image) pairs kept; 0: PREDICTOR_PROFILES_MAX. As many types, as many
                              images */
};

struct predictor;
struct predictor *predictor_new(struct predictor_options options); /* thread safe */
void predictor_free(struct predictor *predictor);                  /* NULL is fine */
KV_AUTO_TYPE(predictor, predictor_free)

/* Into the draft, which is empty, through its mask; the texts it borrows live as long as the arena and what the
 * machine declares. */
void predictor_draft(struct predictor *predictor, const struct machine_kind *machine,
                     struct arena *arena, struct feature_draft *draft);

/* A node of this machine has these features: learn. Where a certain prediction was wrong, it is counted. What
 * the same node says again changes nothing. */
void predictor_learn(struct predictor *predictor, const struct machine_kind *machine,
                     const struct features *features);
/* The same of a node that several objects describe, merged as feature_draft_node does. */
void predictor_learn_node(struct predictor *predictor, const struct machine_kind *machine,
                          const struct node_feature *const *objects, uint32_t count,
                          struct str nfd_namespace);

/* Goes up when a prediction may have changed. */
uint64_t predictor_generation(struct predictor *predictor);

struct predictor_stats {
    uint32_t pairs, types, images; /* profiles */
    size_t bytes;                  /* of the features they share */
    uint64_t mismatches;
};
struct predictor_stats predictor_stats(struct predictor *predictor);

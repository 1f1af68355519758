/* compat/fleet_inner.h - nodes, classes and demands, for the files that keep them.
 *
 * Two locks. Whoever changes anything holds `change` from beginning to end, and may take its time: projecting
 * thousands of nodes does. What those who ask look at is guarded by `lock` as well, which is held for writing only
 * to put finished things in place. Rules are evaluated with neither. `demand_lock` guards the tables of demands
 * and is a leaf. Order: change, lock; change, demand_lock.
 */
#pragma once

#include "compat/fleet.h"

#include "base/map.h"

#include <pthread.h>

#define CLASS_NONE UINT32_MAX

/* --- classes (fleet_classes.c) --- */

/* Nodes that no rule in use can tell apart. All but `users` stays as it is. */
struct fleet_class {
    struct rc rc;
    uint32_t slot;                       /* its place in fleet.classes, reused when it is gone */
    uint32_t serial;                     /* tells it from others that had the place; never 0 */
    uint32_t users;                      /* nodes and machines; guarded by `change` */
    bool unobserved;                     /* its features are predicted, or rejected */
    const struct feature_set *maybe_set; /* NULL: unobserved, and nothing may be presumed */
    struct str os, architecture;
    char text[]; /* of both */
};

/* What a node is, beside its features. Nodes of equal machines share one. */
struct fleet_machine {
    struct str key; /* all fields, the table's */
    struct arena arena;
    struct machine_kind machine;              /* without what is declared */
    uint32_t users;                           /* nodes; guarded by `change` */
    struct fleet_class *maybe_class;          /* predicted; guarded by `lock` */
    uint64_t predictor_version, mask_version; /* that it was predicted with; likewise */
};

struct fleet_node {
    struct str name;  /* the table's */
    uint32_t ix;      /* in fleet.class_of; while there is a Node */
    bool exists;      /* there is a Node of this name, not only what others say of it */
    struct str image; /* of the machine, by its claim; owned; "": not known */
    struct fleet_machine *maybe_machine;       /* while it exists */
    struct fleet_class *maybe_class;           /* likewise */
    VEC(const struct node_feature *) features; /* counted */
};

/* What is known of one image and one class. */
struct fleet_cell {
    uint64_t match : 2;
    uint64_t weight : 31;
    uint64_t serial : 31; /* of the class; 0: nothing is known */
};

/* The verdicts about one image, shared by all demands with these facts. */
struct fleet_row {
    const struct image_facts *facts; /* counted */
    uint32_t users;                  /* demands; guarded by `demand_lock` */
    VEC(struct fleet_cell) cells;    /* by the class's slot; guarded by `lock` */
};

struct fleet {
    struct fleet_options options;
    struct feature_sets *pool;

    pthread_mutex_t change;            /* see above; guards these: */
    struct str_table nodes;            /* name -> struct fleet_node */
    struct str_table nodes_by_feature; /* "namespace/name" of a NodeFeature -> struct fleet_node */
    struct str_table classes_by_key;
    struct feature_mask mask; /* what rules in use mention, and perhaps some that are not */
    struct arena mask_texts;
    size_t mask_compact_at; /* mentions, from which on those of old demands are dropped */
    uint32_t serial_last;
    VEC(uint32_t) slots_free, ixs_free;
    struct buf key; /* scratch */

    pthread_rwlock_t lock;             /* guards these, together with `change`: */
    struct str_table names;            /* of nodes that exist -> 1 + ix */
    VEC(uint32_t) class_of;            /* by ix: the class's slot, or CLASS_NONE */
    VEC(struct fleet_class *) classes; /* by slot; NULL: free */
    struct str_table machines;         /* key -> struct fleet_machine */
    uint64_t mask_version;
    size_t cell_bytes;

    pthread_mutex_t demand_lock; /* guards these: */
    struct str_table demands;    /* key -> struct demand */
    struct map rows;             /* facts -> struct fleet_row */

    atomic_uint_fast64_t generation, judged, evaluated;
    atomic_uint_fast64_t predictor_version; /* that the classes of nodes were predicted with */
    struct metric *maybe_nodes, *maybe_classes, *maybe_demands, *maybe_evaluated;
};

/* All of these with `change` held. */

/* A class that is in use once more. */
struct fleet_class *fleet_class_hold(struct fleet *f, const struct feature_set *maybe_set,
                                     const struct machine_kind *machine, bool unobserved);
void fleet_class_drop(struct fleet *f, struct fleet_class *maybe_class);
/* The class of what a node publishes, or of what is predicted of a machine; held. */
struct fleet_class *fleet_class_observed(struct fleet *f, const struct fleet_node *node);
struct fleet_class *fleet_class_predicted(struct fleet *f, const struct machine_kind *machine);
/* Keep also what these rules mention. True: the nodes must be sorted anew. */
bool fleet_mask_grow(struct fleet *f, const struct fleet_image *images, uint32_t count);
void fleet_classify_all(struct fleet *f);

void fleet_class_unref(const struct fleet_class *maybe_class); /* any time */

/* --- machines (fleet_machines.c) --- */

/* The machine is in use once more, by a node; and no longer. With `change` held. */
struct fleet_machine *fleet_machine_hold(struct fleet *f, const struct machine_kind *machine);
void fleet_machine_drop(struct fleet *f, struct fleet_machine *maybe_machine);
void fleet_machine_free(struct fleet *f, struct fleet_machine *machine);
/* Its predicted class as of now; not counted. With `change` held. */
struct fleet_class *fleet_machine_class(struct fleet *f, struct fleet_machine *entry,
                                        const struct machine_kind *machine);
/* The same for any machine; counted. Without any lock. */
const struct fleet_class *fleet_class_of_machine(struct fleet *f,
                                                 const struct machine_kind *machine);
/* What a node's features tell of machines of its kind. It takes milliseconds to learn, which is done when all
 * locks are released. NULL: nothing. */
struct fleet_lesson {
    struct arena arena;
    struct machine_kind machine;
    struct str nfd_namespace;
    VEC(const struct node_feature *) features; /* counted */
};
struct fleet_lesson *fleet_lesson_of(struct fleet *f, const struct fleet_node *node);
void fleet_learn(struct fleet *f, struct fleet_lesson *maybe_lesson);

/* --- nodes (fleet.c) --- */

/* The class that a node should be in, held; NULL: none. With `change` held. */
struct fleet_class *fleet_node_class(struct fleet *f, const struct fleet_node *node);

struct fleet_move {
    struct fleet_node *node;
    struct fleet_class *maybe_class; /* held; the node takes it over */
};
/* Put nodes into their classes, all at once. Returns how many were in another one. With `change` held. */
uint32_t fleet_move(struct fleet *f, const struct fleet_move *moves, size_t count);
/* Predictions that have changed are put in place, unless somebody is changing things anyway. */
void fleet_refresh(struct fleet *f);

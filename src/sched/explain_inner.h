/* sched/explain_inner.h - how explanations are worked out; for the explain*.c files only.
 *
 * An `ask` is what one variant of a class asks of a new node of one pool, in the state as it is. A
 * `trial` applies its constraints one after the other until no machine is left. An edit is another
 * ask that differs in one thing: that it would help is known because its trial succeeds.
 */
#pragma once

#include "sched/explain.h"
#include "sched/words.h"

struct ask {
    struct state *state;
    const struct pod_class *class_;
    const struct variant *variant;
    const struct pool *pool;
    uint32_t pool_ix;
    struct requirements wants;   /* of the pod */
    struct requirements allowed; /* of the pool */
    uint32_t fit;                /* of the pod's images, into model.fits; NONE */
    const int64_t *request;
    struct pool_left left;     /* of the pool's limits */
    uint32_t overlooked;       /* 1 << enum plan_reason: constraints that do not count */
    uint32_t overlooked_group; /* of topology one that does not count; NONE */
};

/* What a step is about. */
enum subject {
    SUBJECT_TAINTS,
    SUBJECT_POOL, /* what the pool itself allows */
    SUBJECT_WANT,
    SUBJECT_IMAGES,
    SUBJECT_RESOURCE,
    SUBJECT_PORTS,
    SUBJECT_OFFERING,
    SUBJECT_LIMITS,
    SUBJECT_GROUP,
    SUBJECT_MIN_VALUES,
};

struct trial {
    const struct ask *ask;
    struct arena *arena; /* for what the trial itself needs */
    struct arena *texts; /* of the steps' texts; NULL: the steps are not kept */

    struct requirements joined; /* the pool's and the pod's, and what topology adds */
    struct bitset machines;     /* left */
    struct bitset before;       /* at the start of the last step */
    struct bitset suitable;     /* before the first resource was asked for */
    int64_t least;              /* of the spread at hand: see trial_least */

    bool possible;
    /* Of the step that left nothing. */
    enum subject subject;
    enum plan_reason reason;
    uint32_t at;              /* of wants, resources, groups: which */
    struct mismatch mismatch; /* of a want that the pool itself rules out */
    struct min_values min_values;

    struct explain_step *steps;
    uint32_t step_count, step_cap;
};

/* --- explain_trial.c --- */

struct ask ask_of(struct state *s, uint32_t class_, const struct variant *variant, uint32_t pool);
/* `texts` may be NULL, see above. */
void trial_run(struct trial *t, const struct ask *ask, struct arena *arena, struct arena *texts);
bool ask_possible(const struct ask *ask); /* does the trial of it succeed? */
/* Would something be left if that were demanded too? */
bool trial_reaches(const struct trial *t, const struct requirement *demand);
uint32_t types_among(const struct instance_types *types, const struct bitset *machines);
/* `machines` &= those whose type goes with r; types that do not speak of the key do. */
void machines_narrow(const struct instance_types *types, const struct requirement *r,
                     struct bitset *machines);
/* Likewise those whose type runs the images. */
void machines_run_images(const struct ask *ask, struct bitset *machines);
/* Offerings' shapes that the requirements allow. */
struct bitset shapes_of(const struct instance_types *types, const struct requirements *set,
                        struct arena *arena);
/* Whose requirement it is: the pod's own, or that of its volumes. */
enum plan_reason want_reason(const struct ask *ask, const struct requirement *r);
/* The pods' room of a machine falls short in none of the resources. */
bool machine_fits(const struct ask *ask, uint32_t machine);

/* --- explain_topology.c --- */

/* Counts of wider domains anew, from what is in the bins: pods that were dropped because no order lets
 * them in are still among the solver's. */
void counts_renew(struct state *s);
/* Groups that have a say about the class: those that the variant owns, and anti-affinity of others
 * that finds the class. */
struct group_list {
    const uint32_t *items;
    uint32_t count;
};
struct group_list groups_asked(const struct ask *ask, struct arena *arena);
enum plan_reason group_reason(const struct group *g);
/* The count that a spread compares with. */
int64_t trial_least(const struct trial *t, uint32_t group);
/* What the group demands of a new node, t->least being known: false, nothing. */
bool group_demand(const struct trial *t, uint32_t group, struct requirement *out);
/* Can a new node ever comply, whatever its labels? No: affinity to pods on other hosts. */
bool group_allows_new_node(const struct ask *ask, uint32_t group);
/* The pool's nodes have no such label. */
bool group_lacks_label(const struct ask *ask, uint32_t group);
void group_detail(const struct trial *t, uint32_t group, struct buf *out);
/* Of a pod on a bin that is there: the first group that objects; NONE. */
uint32_t group_objecting(struct state *s, uint32_t class_, const struct variant *v, uint32_t bin);

/* --- explain_words.c --- */

struct str pool_name(const struct ask *ask);
void add_pool(struct buf *out, const struct ask *ask);   /* "pool `general`" */
void add_images(struct buf *out, const struct ask *ask); /* those that ask something of a node */
void add_taint(struct buf *out, const struct taint *taint);
void add_port(struct buf *out, const struct host_port *port);
bool resource_is_bytes(struct str resource);
/* "96", "512Gi": of what is needed rounded up, of what there is rounded down. */
void add_need(struct buf *out, struct str resource, int64_t milli);
void add_have(struct buf *out, struct str resource, int64_t milli);
/* "zone us-east-1a", "karpenter.k8s.aws/instance-cpu of at least 4": what a pod asks for. */
void add_want(struct buf *out, const struct requirement *r);
/* "us-east-1a, us-east-1b", "all but t", "at least 4": what the other side has to say on it. */
void add_values(struct buf *out, const struct requirement *r);
void add_key(struct buf *out, struct str key); /* "zone", or the key */
/* "spread over KEY with max skew 1", "anti-affinity on KEY with app=web". */
void add_group(struct buf *out, const struct model *m, const struct group *g);
struct str buf_keep(struct arena *arena, const struct buf *b);

/* --- explain_pool.c --- */

/* Taints of the pool that the variant does not tolerate, in the arena. */
struct taint_list taints_refused(const struct ask *ask, struct arena *arena);
/* Of the machines the one with the most of a resource, of equal ones the first; NONE of none. */
uint32_t machine_largest(const struct ask *ask, const struct bitset *machines, uint32_t resource);
int64_t machine_room(const struct ask *ask, uint32_t machine, uint32_t resource);
/* Why the machine does not run the images, or is not known to. */
void add_images_why(const struct trial *t, uint32_t machine, struct buf *out);
int64_t limit_total(const struct ask *ask, struct str resource); /* as the NodePool has it */
/* Why the trial failed, in one line. */
struct str trial_detail(const struct trial *t, struct arena *arena);

/* --- explain_nearest.c --- */

struct str trial_nearest(const struct trial *t, struct arena *arena); /* "" if nothing is near */
/* Of a trial that failed for the images: the machine that would do but for them, of several the
 * cheapest. False: it would still not do. */
bool trial_nearest_image(const struct trial *t, uint32_t *machine);

/* --- explain_edit.c --- */

/* What would make it fit: one or two ways, each tried. "" if none is known. */
struct str trial_edit(const struct trial *t, struct arena *arena);

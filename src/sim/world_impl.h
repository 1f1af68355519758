/* What world.c and world_actions.c share. */
#pragma once

#include "base/map.h"
#include "cloud/catalogue.h"
#include "sim/world.h"
#include "store/informer.h"

#define WORLD_PARTS_MAX 5

/* A part of the physics. It is stepped when something changed since it last looked, or when its time
 * has come: nothing else can make it do anything. */
struct world_part {
    int64_t (*step)(void *ctx);
    void *ctx;
    int64_t due_ns;
    uint64_t seen; /* of the world's `changes` */
};

struct world {
    struct world_options options;
    struct world_parts parts;
    struct arena arena;
    struct object_pool *pool;
    struct catalogue *catalogue; /* NULL: kwok's types */
    struct informer *classes;    /* of EC2NodeClasses, for the catalogue */
    struct str_table class_objects;
    struct workloads *workloads;
    struct kubelet *kubelet;
    struct invariants *invariants;
    struct world_part physics[WORLD_PARTS_MAX];
    struct record *record; /* may be NULL */

    struct rng order;             /* who goes first */
    struct rng luck;              /* which of several */
    const struct action *actions; /* timeline and chaos, by time */
    uint32_t action_count, action_next;
    int64_t due_ns;                        /* nobody has anything to do before; 0: look */
    int64_t sample_next_ns, crash_next_ns; /* INT64_MAX: none */
    struct str_table applied;              /* "Kind namespace/name" -> JSON text, struct str * */

    struct world_part control_idle; /* when it last found nothing to do; `step` is not used */
    bool control_look;              /* something else than that has happened */
    int64_t control_up_ns;          /* a new process does nothing before */
    int64_t control_born_ns;        /* when the present one came up */
    uint32_t deaths_in_a_row;
    bool look_anyway; /* late events, or an action: everybody looks, whatever the store says */
    bool faultless;   /* while settling */
    bool over;
    uint64_t calls_seen; /* of the control plane, by the physics */
    uint64_t collected;  /* `changes` at the last garbage collection */
    int64_t collect_next_ns;
    uint64_t recorded_version;
    uint64_t hooked_version, changes; /* of the store: changes of anything but Events */
    struct finding own_finding;
    const struct finding *broken;
};

/* Do it. What a cluster refuses is told on the timeline. */
void world_act(struct world *w, const struct action *a);
/* Create the object, or change what is there as kubectl apply would. */
int world_apply(struct world *w, struct str json, struct err *err);
/* The control plane has died, or dies now: the next one starts a little later. */
void world_bury_control(struct world *w);

/* cloud/kwok_impl.h - the parts that kwok.c is put together from. */
#pragma once

#include "api/node.h"
#include "base/map.h"
#include "cloud/kwok.h"

#include <pthread.h>

#define KWOK_CLASSES_MAX 8

struct kwok {
    struct kwok_options options;
    struct cloud_provider port;
    struct node_class_kind node_classes[KWOK_CLASSES_MAX];
    struct generation_counters counters;
    struct unavailable *unavailable;

    /* Guards what follows; not held over calls to the store, except while recovering. */
    pthread_mutex_t lock;
    pthread_cond_t changed;   /* there is something earlier to do, or something is no longer busy */
    struct str_table pending; /* struct kwok_pending, by the name of the node */
    bool recovered, started, stopping;
    pthread_t thread;
};

/* --- kwok_pending.c: instances whose nodes are yet to appear --- */

struct kwok_pending {
    struct arena arena; /* owns the texts of the instance */
    struct instance instance;
    struct str claim_uid;
    int64_t due_ns;
    uint32_t failures;
    bool busy;      /* its node is being made, without the lock */
    bool recovered; /* found in the store: its claim may have gone since */
};

/* Take the lock, and know all that is pending. On failure it is not held. */
int kwok_lock(struct kwok *k, struct err *err);
/* With the lock held: */
void kwok_pending_put(struct kwok *k, struct kwok_pending *p); /* takes it over */
/* No node of that name appears once this returns, unless it is there already. */
void kwok_pending_drop(struct kwok *k, struct str node_name);
void kwok_pending_free(struct kwok_pending *p);

int64_t kwok_later(int64_t from_ns, int64_t delay_ns); /* saturating */
int kwok_get_class(const struct kwok *k, const struct node_class_ref *ref,
                   const struct object **out, struct err *err);
int64_t kwok_class_delay(const struct kwok *k, const struct object *class_);

/* --- kwok_types.c and kwok_pick.c --- */

/* `base` with the marked offerings not available: another reference to it if none is marked. */
int kwok_types_marked(const struct instance_types *base, struct unavailable *marks,
                      const struct instance_types **out, struct err *err);

/* The cheapest offering that the claim allows, is large enough for its requests, is available and
 * is not marked; of equal prices one that `seed` and the claim decide. */
int kwok_pick(const struct instance_types *types, const struct nodeclaim *claim,
              struct unavailable *marks, uint64_t seed, struct arena *arena, uint32_t *offering,
              struct launch_failure *why, struct err *err);

/* --- kwok_node.c: an instance in its three forms. Results live in the arena. --- */

/* "kwok-<claim>-<5 characters>-<number>": the same for the same claim, always. */
struct str kwok_node_name(struct arena *arena, const struct nodeclaim *claim);
struct str kwok_provider_id(struct arena *arena, struct str node_name);
struct str kwok_node_of_provider_id(struct str provider_id); /* STR_NONE: not one of ours */

/* As it is launched from that offering. */
void kwok_instance_new(struct arena *arena, const struct nodeclaim *claim,
                       const struct instance_types *types, uint32_t offering, int64_t now_us,
                       struct instance *out);
/* As the claim remembers it: it was launched, and its node has not joined yet. */
void kwok_instance_of_claim(struct arena *arena, const struct nodeclaim *claim,
                            struct instance *out);
void kwok_instance_of_node(struct arena *arena, const struct node *node, struct instance *out);
void kwok_instance_copy(struct arena *arena, const struct instance *from, struct instance *out);

void kwok_node_json(const struct instance *instance, struct buf *out);

/* A Node with finalizers outlives its instance: this annotation on it says so. */
#define KWOK_TERMINATED "karve.io/kwok-terminated"
/* On the Node: the name of the NodeClaim, which a label may be too short for. */
#define KWOK_CLAIM "karve.io/kwok-claim"
bool kwok_node_is_terminated(const struct node *node);

/* cloud/provider.h - the port to a cloud: what can be launched, launching it, and taking it down.
 *
 * This is the contract that a new cloud implements. All calls are thread safe and may block the
 * caller, but each ends within a time of its own (requests have deadlines): a caller is never
 * stuck for ever. Nothing here is cached by the callers except instance types, through
 * cloud/instance_cache.h, which wraps any provider and is itself one.
 *
 * NodePools and NodeClaims are borrowed for the call.
 */
#pragma once

#include "api/nodeclaim.h"
#include "api/nodepool.h"
#include "cloud/generation.h"
#include "cloud/instance_types.h"

/* An instance: all that the cloud knows of one machine it launched for us. Strings live in the arena
 * that the call was given. */
struct instance {
    struct str provider_id; /* "aws:///us-east-1a/i-0123", "kwok://node-7"; unique, never reused */
    struct str node_name;   /* "" if the cloud does not know */
    struct str claim_name;  /* of the NodeClaim it was launched for; "" if it is not tagged yet */
    struct str nodepool;    /* likewise */
    struct str image_id;    /* "" if there is none */
    struct str instance_type, zone, capacity_type;
    struct str_map labels; /* for the claim: type, zone, capacity type and single-valued others */
    struct str_map annotations;             /* for the claim */
    struct resources capacity, allocatable; /* an estimate until the node has joined */
    int64_t created_us;
    bool terminating; /* its end has begun: for most purposes it is gone */
};

struct instances {
    const struct instance *items; /* sorted by provider id */
    uint32_t count;
};

/* Why a launch failed, for callers to branch on. `err` has the words. */
enum launch_failure_kind {
    LAUNCH_INSUFFICIENT_CAPACITY, /* nothing that the claim allows can be had: delete it, plan again */
    LAUNCH_CLASS_NOT_READY,       /* the node class is missing or not ready: delete the claim */
    LAUNCH_CREATE_ERROR, /* the cloud said no, with a reason: keep the claim, show it, retry */
    LAUNCH_OTHER,        /* the call itself failed: keep the claim, retry */
};

#define LAUNCH_REASON_MAX 64
struct launch_failure {
    enum launch_failure_kind kind;
    char reason
        [LAUNCH_REASON_MAX]; /* a condition's reason ("Unauthorized"), for CREATE_ERROR; else "" */
};

struct repair_policy {
    const char *condition; /* of the Node: "Ready" */
    const char *status;    /* the bad one: "False", "Unknown" */
    int64_t toleration_ns; /* how long it may be so before the node is replaced */
};

struct node_class_kind { /* which objects nodeClassRef may point at */
    const char *group, *kind;
};

struct cloud_provider {
    /* *All* types of the pool's node class, also those of which nothing is available at the moment,
     * as a snapshot with one reference for the caller. Depends on the pool only through its node class
     * reference: two pools whose generations are equal in every member get equal types, and
     * share one answer.
     * ERR_NOT_FOUND: no such node class. ERR_UNAVAILABLE, ERR_THROTTLED: try later. */
    int (*get_instance_types)(void *ctx, const struct nodepool *pool,
                              const struct instance_types **out, struct err *err);

    /* The generation of that answer: when any member changes, the answer may have changed; while
     * all are equal, it has not. Members may jump or move backwards (a restart); only equality counts.
     * It must not block, and costs nanoseconds: it is read on every use. A change is first made
     * visible to get_instance_types and then to this, so a caller that reads the generation and
     * then fetches can only be too careful, never stale. */
    int (*get_generation)(void *ctx, const struct nodepool *pool, struct generation *out,
                          struct err *err);

    /* Launch a machine for the claim. Idempotent: the claim's UID is the token, and asking again
     * for a claim that has its instance returns that instance. On failure `why` says what to do
     * about it (always set then), `err` says it in words. */
    int (*create)(void *ctx, const struct nodeclaim *claim, struct arena *arena,
                  struct instance *out, struct launch_failure *why, struct err *err);

    /* Begin to terminate. 0: it has begun; ask again until ERR_NOT_FOUND, which says it is gone. */
    int (*delete_)(void *ctx, const struct nodeclaim *claim, struct err *err);

    int (*get)(void *ctx, struct str provider_id, struct arena *arena, struct instance *out,
               struct err *err); /* ERR_NOT_FOUND */
    /* Every instance of this cluster, tagged as ours. */
    int (*list)(void *ctx, struct arena *arena, struct instances *out, struct err *err);

    /* Does the instance still correspond to its node class? `reason` is "" if it does, else a
     * condition's reason ("AMIDrift"): a literal. ERR_NOT_FOUND: no such instance. */
    int (*is_drifted)(void *ctx, const struct nodeclaim *claim, const char **reason,
                      struct err *err);

    const struct repair_policy *repair_policies;
    uint32_t repair_policy_count;
    const char *name;                           /* "aws", "kwok" */
    const struct node_class_kind *node_classes; /* the first is the default */
    uint32_t node_class_count;
    void *ctx;
};

/* Is that one of the provider's node classes? Everything else is ignored by every controller. */
bool cloud_provider_supports(const struct cloud_provider *p, const struct node_class_ref *ref);
/* A hash of a node class reference: the start of every GENERATION_INPUTS, so that a pool which
 * turns to another class never meets the answer for the old one. */
uint64_t node_class_ref_hash(const struct node_class_ref *ref);
/* Label keys that pools of that class may leave undefined, sorted and in the arena: what everybody
 * knows of the class's cloud, and what its types say of themselves. */
struct str_list provider_well_known(struct arena *arena, const struct node_class_ref *ref,
                                    const struct instance_types *types);

/* cloud/kwok_impl.h - the parts that kwok.c is put together from. */
#pragma once

#include "base/map.h"
#include "cloud/fake_node.h"
#include "cloud/kwok.h"

#include <pthread.h>

struct kwok {
    struct kwok_options options;
    struct cloud_provider port;
    struct node_class_kind node_classes[FAKE_CLASSES_MAX];
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
int64_t kwok_class_delay(const struct kwok *k, const struct object *class_);

/* --- as Nodes --- */

extern const struct fake_naming kwok_naming;

/* A Node with finalizers outlives its instance: this annotation on it says so. */
#define KWOK_TERMINATED "karve.io/kwok-terminated"
/* On the Node: the name of the NodeClaim, which a label may be too short for. */
#define KWOK_CLAIM "karve.io/kwok-claim"
bool kwok_node_is_terminated(const struct node *node);

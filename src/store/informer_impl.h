/* store/informer_impl.h - what informer.c and informer_set.c share. */
#pragma once

#include "base/rng.h"
#include "base/vec.h"
#include "store/informer.h"
#include "store/sorted.h"

struct handler {
    informer_handler_fn fn;
    void *ctx;
};

struct index {
    informer_index_fn fn;
    struct sorted items; /* "value\0namespace\0name" -> the cache's object */
};

struct informer {
    const struct store *store;
    const struct kind *kind;
    const struct clock *clock;
    struct arena arena; /* owns the selectors */
    struct str namespace_, label_selector, field_selector;
    uint32_t page_max;
    VEC(struct handler) handlers;

    pthread_mutex_t pump_lock; /* held while pumping, taken before `lock`; guards: */
    struct watch *watch;       /* NULL: closed */
    bool must_list;
    uint32_t failures; /* in a row */
    int64_t retry_ns;  /* not before */
    int64_t opened_ns; /* when the watch was */
    struct rng rng;

    pthread_mutex_t lock; /* held shortly; a leaf; guards: */
    pthread_cond_t moved; /* `version` or `stopped` changed */
    struct sorted cache;  /* "namespace\0name" -> a counted object */
    VEC(struct index) indexes;
    uint64_t version;
    bool synced;
    struct err trouble; /* ERR_NONE: none */

    struct informer_set *maybe_set;
    atomic_bool stopped; /* set under `lock` */
    atomic_bool woken;   /* the set's thread is to pump it */
};

void informer_woken(void *ctx);           /* the wake call of its watch */
void informer_stop(struct informer *inf); /* close the watch, release the waiters */

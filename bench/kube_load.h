/* bench/kube_load.h - pods for a real API server.
 *
 * Most are put into etcd (kube/etcd_fill.h), complete, with the statuses that kubelets reported.
 */
#pragma once

#include "bench/pods.h"

#include "kube/etcd_fill.h"

#include "base/vec.h"
#include "store/store.h"

struct load_pod {
    char *namespace_, *name;
    char *maybe_text; /* until it is written */
};

struct load {
    const struct store *store;
    struct etcd_fill *etcd;
    struct pod_maker maker;
    VEC(struct load_pod) pods;
    uint32_t reported_count;
};

/* Equal loads are equal pods. Makes their namespaces. */
void load_init(struct load *load, const struct store *store, const char *etcd);
void load_done(struct load *load);

void load_fill(struct load *load, uint32_t count); /* so many more */

/* From many connections at once, through the store; each returns the seconds that it took. */
double load_create(struct load *load, uint32_t count); /* so many more, without a status */
double load_report(struct load *load,
                   uint32_t count); /* so many statuses change, each time others */

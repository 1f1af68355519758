/* compat/service_inner.h - between service.c, which puts the parts together, and service_pods.c, which works out what
 * pods ask for. */
#pragma once

#include "base/map.h"
#include "base/queue.h"
#include "base/workers.h"
#include "compat/pull_secrets.h"
#include "compat/service.h"

#include <stdatomic.h>

struct pod_record {
    const struct object
        *pod; /* a reference: keeps the images' names alive, and its spec comparable */
    const struct str *images;
    uint32_t image_count;
    struct arena arena; /* of `images` and `secrets` */
    struct str secrets; /* pull_secrets_key; "": none */
    bool keys_ready;
    const struct keyring *maybe_keys;
    int64_t keys_ns; /* when they were read */
    const struct demand
        *demands[2]; /* per demand_for: the last answer, kept so that it is shared */
};

struct compat_service {
    struct compat_service_options options;
    struct compat_settings settings;
    struct predictor *predictor;
    struct fleet *fleet;
    struct image_cache *images;
    struct nfg_cache *groups;
    struct pull_secrets *maybe_secrets;
    struct queue
        *queue; /* "k" + pod: read its secrets; "i" + image: publish its groups; "t": tend */
    struct worker_pool *workers;

    atomic_uint_fast64_t changes; /* of images, and of who is in groups */

    pthread_mutex_t lock;
    pthread_cond_t keys_read;
    struct str_table records;    /* by the pod's key -> struct pod_record */
    struct str_table to_publish; /* by image -> const struct image_facts, a reference */
    struct arena texts;          /* of the namespace */
    struct str nfd_namespace;
};

void service_forget_pod(struct compat_service *s, const struct pod *pod);
void service_forget_all(struct compat_service *s); /* at the end */
/* Of the service's workers: see `queue`. */
struct outcome service_reconcile(void *service, struct str key);

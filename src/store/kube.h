/* store/kube.h - the store port on a real API server.
 *
 *     calls (any thread)  -->  kube_client: credential, rate limit, retries  -->  net/http
 *     watches             <--  lines of JSON, decoded by whoever reads them  <--  net/http
 *
 * Reads that fail for want of a server are tried again a few times; so are writes that cannot have
 * been carried out (no connection, 429, 503 with Retry-After). A write whose answer was lost is
 * ERR_UNAVAILABLE: the caller's next reconcile finds out.
 */
#pragma once

#include "base/clock.h"
#include "base/metrics.h"
#include "net/kubeconfig.h"
#include "store/store.h"

struct kube_options {
    struct kubeconfig *access; /* outlives it, as does everything else here */
    struct object_pool *pool;
    const struct clock *clock;
    struct metrics *maybe_metrics;
    struct log *maybe_log;
    const char *user_agent;   /* NULL: "karve" */
    double qps;               /* requests a second, on average; 0: no limit */
    uint32_t burst;           /* and at once */
    int64_t timeout_ns;       /* of one attempt; 0: 30 s */
    int64_t write_timeout_ns; /* of one attempt of a write; 0: the same */
    /* A watch on which nothing comes for so long, not even a bookmark, is dead. 0: 150 s */
    int64_t watch_idle_timeout_ns;
    int64_t patience_ns; /* of a call with all its attempts; 0: a minute */
    uint64_t seed;       /* of the jitter in its back-off */
    /* Asked right before each attempt of a write, when all waiting is over: false ends it with
     * ERR_CANCELLED. NULL: it always may. */
    bool (*may_write)(void *ctx);
    void *may_write_ctx;
};

struct kube;
int kube_new(struct kube_options options, struct kube **out, struct err *err); /* asks nobody yet */
void kube_free(struct kube *kube); /* every watch has been closed; NULL is fine */
KV_AUTO_TYPE(kube, kube_free)

const struct store *kube_store(struct kube *kube);

/* For a quick end: calls and watches under way, and all from now on, end with ERR_CANCELLED. */
void kube_cancel(struct kube *kube);

/* The server's "v1.34.3": the first thing to ask, its error says what is wrong with the access. */
int kube_server_version(struct kube *kube, struct buf *out, struct err *err);
/* Does the server serve this kind (is its CRD there)? ERR_NOT_FOUND: no. */
int kube_serves(struct kube *kube, const struct kind *kind, struct err *err);

/* store/kube_client.h - one request to an API server: credential, rate limit, retries, errors.
 *
 * Below store/kube.h, which see; knows URLs, headers and Status objects, but no objects.
 */
#pragma once

#include "base/clock.h"
#include "base/metrics.h"
#include "codec/json.h"
#include "net/kubeconfig.h"

struct kind;

/* --- requests --- */

struct kube_client_options { /* as in struct kube_options */
    struct kubeconfig *access;
    const struct clock *clock;
    struct metrics *maybe_metrics;
    struct log *maybe_log;
    const char *user_agent;
    double qps;
    uint32_t burst;
    int64_t timeout_ns, write_timeout_ns, patience_ns;
    uint64_t seed;
    bool (*may_write)(void *ctx);
    void *may_write_ctx;
};

struct kube_client;
int kube_client_new(struct kube_client_options options, struct kube_client **out, struct err *err);
void kube_client_free(struct kube_client *c); /* every answer and stream is freed; NULL is fine */
KV_AUTO_TYPE(kube_client, kube_client_free)
/* Calls and streams that are under way, and those that start from now on, end with ERR_CANCELLED. */
void kube_client_cancel(struct kube_client *c);

struct kube_request {
    const char *method;
    struct str path;          /* with its query: "/api/v1/pods?limit=500" */
    const char *content_type; /* of the body; NULL: application/json */
    struct str body;          /* absent: none */
    bool once;                /* never again, except with a new credential after a 401 */
};

/* The answer of a 2xx reply: the body lives until it is done with. Any other reply is an error (see
 * kube_refusal), and so is no reply. Takes no longer than the patience, not counting its wait for a turn
 * and the time of a plugin that gets the credential. */
struct kube_answer {
    struct str body;
    struct http_call *call;
};
int kube_client_do(struct kube_client *c, const struct kube_request *request,
                   struct kube_answer *out, struct err *err);
void kube_answer_done(struct kube_answer *answer);
#define AUTO_KUBE_ANSWER __attribute__((cleanup(kube_answer_done))) struct kube_answer

/* A reply that comes bit by bit, once its head has come and is 2xx. Tried once: who follows a
 * stream opens it again anyway. `wake` as in net/http.h. */
struct kube_stream;
int kube_client_stream(struct kube_client *c, const struct kube_request *request,
                       int64_t idle_timeout_ns, void (*wake)(void *ctx), void *ctx,
                       struct kube_stream **out, struct err *err);
enum http_took kube_stream_take(struct kube_stream *stream, struct buf *out, struct err *err);
void kube_stream_free(struct kube_stream *stream); /* never waits for the network; NULL is fine */

uint64_t kube_client_random(struct kube_client *c, uint64_t below);

/* --- paths --- */

/* "/api/v1/namespaces/NS/pods/NAME/SUB", added to `out`. An empty namespace is all of them, an empty
 * name the whole collection. ERR_INVALID: a name that no object can have. */
int kube_path(const struct kind *kind, struct str namespace_, struct str name,
              const char *maybe_sub, struct buf *out, struct err *err);
void kube_path_group(const struct kind *kind, struct buf *out); /* "/apis/apps/v1" */
/* "?key=value", or "&..." after the first. Nothing if the value is empty. */
void kube_path_query(struct buf *path, const char *key, struct str value);

/* --- errors --- */

/* What a reply that is not 2xx means; returns -1. The body is untrusted: a Status object, a proxy's
 * page, anything. `maybe_budget` is told whether a disruption budget refused an eviction. */
int kube_refusal(int http_status, struct str body, bool *maybe_budget, struct err *err);
/* The same of a Status object that was read already. */
int kube_refusal_status(const json_val *status, int http_status, bool *maybe_budget,
                        struct err *err);

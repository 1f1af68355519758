/* node/cri.h - calls to the container runtime, typed.
 *
 * Messages are protobuf-c's, generated from cri.proto (ours: only what we use, with the numbers of
 * the interface). Replies are decoded into an arena, so nothing is freed piece by piece. Each
 * method has a time limit of its own in one table. Thread safe.
 */
#pragma once

#include "base/arena.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "net/grpc.h"
#include "node/cri.pb-c.h"
#include "node/runtime.h"

enum cri_method {
    CRI_VERSION,
    CRI_STATUS,
    CRI_RUN_POD_SANDBOX,
    CRI_STOP_POD_SANDBOX,
    CRI_REMOVE_POD_SANDBOX,
    CRI_POD_SANDBOX_STATUS,
    CRI_LIST_POD_SANDBOX,
    CRI_CREATE_CONTAINER,
    CRI_START_CONTAINER,
    CRI_STOP_CONTAINER,
    CRI_REMOVE_CONTAINER,
    CRI_LIST_CONTAINERS,
    CRI_CONTAINER_STATUS,
    CRI_GET_CONTAINER_EVENTS, /* a stream */
    CRI_UPDATE_RUNTIME_CONFIG,
    CRI_EXEC_SYNC,
    CRI_REOPEN_CONTAINER_LOG,
    CRI_RUNTIME_CONFIG,
    CRI_LIST_IMAGES,
    CRI_IMAGE_STATUS,
    CRI_PULL_IMAGE,
    CRI_REMOVE_IMAGE,
    CRI_IMAGE_FS_INFO,
    CRI_METHOD_COUNT,
};

struct cri_options {
    const char *endpoint; /* "unix:///run/containerd/containerd.sock", or the path alone */
    const struct clock *clock;
    struct log *log;         /* NULL is silent */
    struct metrics *metrics; /* NULL: not counted */
};

#define CRI_ENDPOINT_DEFAULT "unix:///run/containerd/containerd.sock"
#define CRI_INSPECT_TIMEOUT_NS ((int64_t)10 * 1000000000)

struct cri;
int cri_new(struct cri_options options, struct cri **out, struct err *err);
void cri_free(struct cri *cri); /* NULL is fine */
KV_AUTO_TYPE(cri, cri_free)

/* One call, from start to end. `request` is of the method's request type (NULL: one without fields);
 * `*out` becomes a message of its reply type in `arena` (out may be NULL). The message of a failure
 * starts with the method. */
int cri_call(struct cri *cri, enum cri_method method, const void *request, struct arena *arena,
             void *out, struct err *err);
/* The same with another time limit (0: none) and a way out: `cancel`, if not NULL, ends the call with
 * ERR_CANCELLED when cri_cancel is called on it, before or during. */
struct cri_cancel;
int cri_call_within(struct cri *cri, enum cri_method method, const void *request,
                    int64_t timeout_ns, struct cri_cancel *maybe_cancel, struct arena *arena,
                    void *out, struct err *err);
struct cri_cancel *cri_cancel_new(void);
void cri_cancel(struct cri_cancel *cancel); /* every call with it, now and later */
bool cri_cancelled(struct cri_cancel *cancel);
void cri_cancel_free(struct cri_cancel *cancel);
KV_AUTO_TYPE(cri_cancel, cri_cancel_free)

/* In two halves, for those who do not wait: the options are grpc_start's. Take it up again with
 * cri_take once grpc_ready (or to wait); then free it. */
struct cri_pending;
struct cri_pending *cri_start(struct cri *cri, enum cri_method method, const void *request,
                              int64_t timeout_ns, void (*wake)(void *ctx), void *ctx);
bool cri_ready(struct cri_pending *pending);
int cri_take(struct cri_pending *pending, struct arena *arena, void *out, struct err *err);
int cri_take_next(struct cri_pending *stream, struct arena *arena, void *out,
                  struct err *err);                       /* 1, 0, -1 */
uint32_t cri_pending_status(struct cri_pending *pending); /* the gRPC code, once it has ended */
void cri_pending_cancel(struct cri_pending *pending);
void cri_pending_free(struct cri_pending *pending); /* cancels; NULL is fine */

/* How many calls of each method were made; bench and tests read it. */
uint64_t cri_call_count(const struct cri *cri, enum cri_method method);
const char *cri_method_name(enum cri_method method); /* "ListPodSandbox" */

/* --- listing and inspecting --- */

/* Both lists at the same time. With a uid, of that pod alone; one more call if it has no sandbox. */
int cri_list(struct cri *cri, struct str maybe_uid, struct arena *arena,
             struct runtime_listing *out, struct err *err);
/* The same with a way out; and for who has seen it all before: `digest` (NULL: no matter) is of ids and
 * states, in whatever order, and never 0. If it is what the caller has put there, nothing is built: 1, and
 * `out` has a timestamp only. Otherwise 0, and the digest of this listing. */
int cri_list_until(struct cri *cri, struct str maybe_uid, struct cri_cancel *maybe_cancel,
                   uint64_t *maybe_digest, struct arena *arena, struct runtime_listing *out,
                   struct err *err);

/* An inspection of one pod: PodSandboxStatus of each sandbox, ContainerStatus of each container,
 * all in flight at once (at most CRI_INSPECT_CALLS_MAX; the rest follow). What the runtime says is
 * not there is left out: it vanished after the listing. `wake` (NULL: none) is called, from another
 * thread, when cri_inspection_step has something to do. `pod` is borrowed for the call. */
#define CRI_INSPECT_CALLS_MAX 16
struct cri_inspection;
struct cri_inspection *cri_inspect_start(struct cri *cri, const struct runtime_pod *pod,
                                         int64_t timestamp_ns, void (*wake)(void *ctx), void *ctx);
/* Take in answers, send what waits. True: it is finished, well or not. Never blocks. */
bool cri_inspection_step(struct cri_inspection *inspection);
/* The result, once finished: a new status with one reference, or why not. */
int cri_inspection_take(struct cri_inspection *inspection, const struct runtime_status **out,
                        struct err *err);
void cri_inspection_free(struct cri_inspection *inspection); /* cancels; NULL is fine */

/* List and inspect one pod now, waiting: for the end of a termination, which bypasses the cache. */
int cri_inspect_now(struct cri *cri, struct str uid, const struct runtime_status **out,
                    struct err *err);

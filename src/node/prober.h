/* node/prober.h - liveness, readiness and startup probes of every running container.
 *
 * One thread keeps all probes: HTTP and TCP on non-blocking sockets, exec and HTTPS as calls in flight. A
 * probe that is due while its last attempt still runs waits for it; an attempt ends at its timeout. Verdicts
 * are kept by container id, so that a new instance starts anew.
 *
 * gRPC probes cannot be tried by this agent: each attempt is told in the log and counted as
 * "unknown", and changes no verdict. Such a container is never killed for it, and never ready.
 */
#pragma once

#include "node/actions.h"
#include "node/cri.h"

struct prober_options {
    struct cri *cri;
    const struct clock *clock;
    struct log *log;
    struct metrics *metrics; /* NULL: none */
    struct str host_ip;      /* of pods on the host's network */
    uint64_t seed;
    /* A verdict changed: sync that pod. From the prober's thread, without its locks; quick. May be NULL. */
    void (*changed)(void *ctx, struct str uid);
    void *ctx;
};

struct prober;
struct prober *prober_new(struct prober_options options);
int prober_start(struct prober *prober, struct err *err);
void prober_stop(struct prober *prober); /* NULL is fine */
void prober_free(struct prober *prober); /* stops; NULL is fine */
KV_AUTO_TYPE(prober, prober_free)

/* What runs now: containers that are new get their probes, those that are not in `status` any more lose
 * them. Called at each sync. */
void prober_update(struct prober *prober, const struct node_pod *pod,
                   const struct runtime_status *status);
/* Termination: liveness and startup end, readiness goes on. */
void prober_stop_liveness(struct prober *prober, struct str uid);
void prober_remove(struct prober *prober, struct str uid);

struct probe_source prober_source(struct prober *prober); /* the verdicts */

/* Without the thread: take in what has come, start what is due, and wait at most so long (-1: as long as
 * it takes) for something to do. For tests, and never while the thread runs. */
void prober_step(struct prober *prober, int most_ms);

/* One attempt of a handler, waiting at most timeout_ns (0: no limit): for lifecycle hooks. 0: it went
 * well; as kubelets see it, any answer to an HTTP hook will do. ERR_CANCELLED: soon after a cri_cancel. */
int handler_run(struct cri *cri, const struct clock *clock, const struct handler *handler,
                const struct node_container *container, struct str container_id, struct str pod_ip,
                int64_t timeout_ns, struct cri_cancel *maybe_cancel, struct err *err);

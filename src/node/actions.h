/* node/actions.h - what to do for a pod, from its spec and what runs. Pure.
 *
 * New sandbox, init containers in order, sidecars, main containers, restarts by policy and hash,
 * kills on failed probes: the decisions; node/pod_sync.c carries them out.
 */
#pragma once

#include "node/node_pod.h"
#include "node/runtime.h"

/* What the probes say of a container instance. */
enum probe_verdict { PROBE_UNKNOWN, PROBE_SUCCESS, PROBE_FAILURE };

struct container_probes {
    uint8_t liveness, readiness,
        startup; /* enum probe_verdict; success where there is no such probe */
};
/* By container id. Must answer for every id; `ctx` is the prober, or a test's table. */
struct probe_source {
    struct container_probes (*get)(void *ctx, struct str container_id,
                                   const struct node_container *spec);
    void *ctx;
};

enum kill_reason {
    KILL_POD,
    KILL_CHANGED,
    KILL_LIVENESS,
    KILL_STARTUP,
    KILL_UNKNOWN, /* nobody knows its state, so it may run: stop it before another starts */
};

struct container_kill {
    struct str id, name;
    uint8_t reason;           /* enum kill_reason */
    struct str message;       /* for the event */
    struct maybe_int grace_s; /* the probe's own */
};

struct start_list {
    const struct node_container *const *items;
    uint32_t count;
};

struct pod_actions {
    bool kill_pod; /* all of it, not only what `kill` lists */
    bool create_sandbox;
    struct str sandbox_id; /* the one to use; empty when one must be made */
    uint32_t attempt;      /* of the one to use or make */
    /* In the order of the spec. A container that is also killed is started after that. */
    struct start_list start_inits, start_containers, start_ephemerals;
    LIST(struct container_kill) kill;
};

/* Texts point into `pod`, `status` and `arena`. */
struct pod_actions pod_actions(struct arena *arena, const struct node_pod *pod,
                               const struct runtime_status *status, struct probe_source probes);
bool pod_actions_none(const struct pod_actions *actions);

/* Does the pod need a new sandbox, and why? `attempt` and `why` may be NULL; `why` is also the message
 * of PodReadyToStartContainers. */
bool pod_needs_sandbox(const struct node_pod *pod, const struct runtime_status *status,
                       uint32_t *attempt, struct str *why);
/* Has a regular container been made in the newest sandbox? Then initialisation was over once, and
 * init containers that are gone have been tidied away. */
bool pod_has_initialized(const struct node_pod *pod, const struct runtime_status *status);
/* Shall this container, whose newest instance is `maybe_last` (NULL: never ran), run again? */
bool container_should_restart(const struct node_pod *pod, const struct node_container *container,
                              const struct runtime_container *maybe_last);

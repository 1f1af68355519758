/* node/api_status.h - the status of a Pod as the API shows it, from spec, cache and what was said before.
 *
 * Pure; times are arguments. The result is JSON, the form in which it is compared, patched and shown:
 * {"phase": ..., "conditions": [...], "containerStatuses": [...], ...}.
 */
#pragma once

#include "node/actions.h"

/* Why a container could not be started: kept by the worker, by container name. */
struct start_failure {
    struct str container; /* its name */
    struct str reason;    /* "CrashLoopBackOff", "ErrImagePull" */
    struct str message;
};

/* What an ended container left as its message; empty: nothing, and the runtime's word counts. Asked once
 * per instance: what was told before is told again. */
struct last_words_source {
    struct str (*get)(void *ctx, const struct runtime_container *ended); /* NULL: there are none */
    void *ctx;
};

struct api_status_input {
    const struct node_pod *pod;
    const struct runtime_status *status;
    const json_val *maybe_previous; /* our last one, else what the API has; NULL: none */
    LIST(struct start_failure) failures;
    struct probe_source probes;
    struct last_words_source last_words;
    struct str_list node_ips;
    int64_t now_us; /* wall */
    bool terminal;  /* TERMINATING has finished: containers will not run again */
    bool deleting;  /* termination was asked for */
    /* A kill with a verdict of its own (eviction, deadline): Failed, with these. */
    struct str failed_reason, failed_message;
    const char *runtime_name; /* "containerd", of containerID's prefix */
};

/* The result lives in `b`. */
json_mut *api_status_build(struct json_build *b, const struct api_status_input *input);

/* The last rule before it is kept: containers that never told their end are said to have ended (137,
 * ContainerStatusUnknown), and a pod that is not static and not terminal has Failed. */
json_mut *api_status_terminate(struct json_build *b, const struct node_pod *pod,
                               const json_val *status, int64_t now_us);

/* May `next` follow `previous`? A terminated container of a pod that may not restart it stays so. */
bool api_status_may_follow(const struct node_pod *pod, const json_val *maybe_previous,
                           const json_val *next, struct err *why);
bool api_status_same(const json_val *a,
                     const json_val *b);             /* but for conditions that are not ours */
struct str api_status_phase(const json_val *status); /* "Running"; empty: none */
bool api_phase_terminal(struct str phase);

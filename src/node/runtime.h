/* node/runtime.h - what the container runtime says: in a listing, and in an inspection of a pod.
 *
 * A listing is cheap and shows every pod: ids and states. An inspection asks for each sandbox and
 * container of one pod and knows everything. Times called *_ns without another word are
 * nanoseconds since 1970 as the runtime tells them, for people and the API; `timestamp_ns` is our
 * own monotonic clock, taken just before the first call that the data comes from was made.
 */
#pragma once

#include "api/schema.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/rc.h"

/* On every sandbox and container that we make: what lacks it is somebody else's, and not ours to end. */
#define AGENT_ANNOTATION "karve.io/agent"

enum runtime_state { RUNTIME_CREATED, RUNTIME_RUNNING, RUNTIME_EXITED, RUNTIME_UNKNOWN };
const char *runtime_state_name(enum runtime_state state); /* "created", "running", ... */

/* --- a listing --- */

struct listed { /* a sandbox or a container */
    struct str id;
    struct str name;       /* of the container; "" for a sandbox */
    struct str sandbox_id; /* of the container; absent for a sandbox */
    int64_t created_ns;
    uint32_t attempt;
    uint8_t state; /* enum runtime_state; a sandbox is running (READY) or exited (NOTREADY) */
};

struct runtime_pod {
    struct str uid, name, namespace_;
    LIST(struct listed) sandboxes, containers; /* newest first, by id where times are equal */
};

struct runtime_listing {
    const struct runtime_pod *pods; /* sorted by uid */
    uint32_t pod_count;
    int64_t timestamp_ns;
};

/* --- an inspection --- */

struct runtime_sandbox {
    struct str id;
    uint32_t attempt;
    bool ready, host_network;
    bool ours; /* has AGENT_ANNOTATION */
    int64_t created_ns;
    struct str_list ips; /* empty for the host's network */
};

struct runtime_container {
    struct str id, name, sandbox_id;
    uint8_t state;                               /* enum runtime_state */
    int64_t created_ns, started_ns, finished_ns; /* 0: not yet */
    int32_t exit_code;
    uint32_t restart_count; /* from its annotation, else its attempt */
    struct str image, image_id, image_ref;
    struct str hash; /* its annotation, hexadecimal */
    bool ours;       /* has AGENT_ANNOTATION */
    struct str reason, message;
    struct str log_path; /* on the host; empty: unknown */
    struct str termination_message_path, termination_message_policy; /* inside; from annotations */
    struct str termination_message_file; /* on the host, found among the mounts; empty: none */
    /* What lets somebody without the spec stop it properly; -1 and absent where it is not there. */
    int64_t termination_grace_s, deletion_grace_s;
    struct str pre_stop; /* JSON of the handler */
};

/* Immutable and counted; owns all it points at. */
struct runtime_status {
    struct rc rc;
    struct arena arena;
    struct str uid, name, namespace_;
    struct str_list ips; /* of the newest sandbox, or kept from before: see the PLEG */
    LIST(struct runtime_sandbox) sandboxes;    /* newest first */
    LIST(struct runtime_container) containers; /* newest first */
    int64_t timestamp_ns;
    /* ERR_NONE, or why the last inspection failed; then the lists are what was known before it. */
    enum err_kind error_kind;
    struct str error;
    const struct runtime_status *maybe_last; /* of a failed one: what the lists are borrowed from */
};

const struct runtime_status *runtime_status_ref(const struct runtime_status *status);
void runtime_status_unref(const struct runtime_status *status); /* NULL is fine */
static inline void runtime_status_cleanup(const struct runtime_status **p)
{
    runtime_status_unref(*p);
}
#define AUTO_STATUS __attribute__((cleanup(runtime_status_cleanup))) const struct runtime_status *

/* One reference; to be filled in its arena and then published. */
struct runtime_status *runtime_status_new(struct str uid);
/* What is known when an inspection failed: the last good status (NULL: none), and the error. */
const struct runtime_status *runtime_status_failed(const struct runtime_status *maybe_last,
                                                   const struct runtime_pod *listed,
                                                   int64_t timestamp_ns, const struct err *err);

/* Equal in everything but timestamp_ns: no real change, no event. */
bool runtime_status_same(const struct runtime_status *a, const struct runtime_status *b);

/* The newest READY sandbox, or NULL. Is `c` in it? (An *active* container.) */
const struct runtime_sandbox *runtime_ready_sandbox(const struct runtime_status *status);
/* The newest instance of that name, or NULL. */
const struct runtime_container *runtime_container_find(const struct runtime_status *status,
                                                       struct str name);
const struct runtime_container *runtime_container_by_id(const struct runtime_status *status,
                                                        struct str id);
/* Was all that is known of the pod made by us? */
bool runtime_status_ours(const struct runtime_status *status);
/* Does anything of the pod run: a container, or a READY sandbox? */
bool runtime_status_running(const struct runtime_status *status);

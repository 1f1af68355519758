/* node/fake_cri_testing.h - a container runtime in memory, for tests.
 *
 * A gRPC server on a unix socket that answers as containerd does: names are reserved, stopping what
 * is not there is fine, every change is told to everybody who listens. Told to, it answers as a
 * broken runtime does: late, wrong, twice, never. Tests act on it from the side as well, as a
 * crash, or somebody with crictl, would.
 *
 *     AUTO(fake_cri) fake = fake_cri_new((struct fake_cri_options){ 0 });
 *     const char *sandbox = fake_cri_sandbox(fake, "uid-1", "web", 0);
 *     const char *id = fake_cri_container(fake, sandbox, "main", 0);
 *     fake_cri_start(fake, id);
 *     fake_cri_exit(fake, id, 1);
 *
 * Deterministic: ids are numbered, its time moves by a millisecond with each change. Thread safe.
 * A wrong id is a failed KV_ASSERT. Texts that it returns live as long as the fake.
 */
#pragma once

#include "node/cri.h"

struct fake_cri_options {
    const char *maybe_path; /* of the socket; NULL: one of its own, removed at the end */
    bool no_events;         /* as containerd 1.6: GetContainerEvents is UNIMPLEMENTED */
    bool
        keep_events; /* as 1.7: events that nobody hears wait (1000 of them) for the next listener */
    bool equal_times; /* time stands still: everything was created at once */
    int64_t start_ns; /* where its time begins; 0: a fixed moment, long ago */
};

struct fake_cri;
struct fake_cri *fake_cri_new(struct fake_cri_options options); /* it answers on return */
void fake_cri_free(struct fake_cri *fake);                      /* NULL is fine */
KV_AUTO_TYPE(fake_cri, fake_cri_free)
const char *fake_cri_endpoint(struct fake_cri *fake); /* for cri_new */

/* --- acting from the side: each sends the event that containerd would --- */

/* READY, with an address of its own; namespace "default". Returns its id. */
const char *fake_cri_sandbox(struct fake_cri *fake, const char *uid, const char *pod_name,
                             uint32_t attempt);
/* CREATED; labels as an agent sets them, and its attempt as restart count. Returns its id. */
const char *fake_cri_container(struct fake_cri *fake, const char *sandbox_id, const char *name,
                               uint32_t attempt);
void fake_cri_start(struct fake_cri *fake, const char *id);              /* a container: RUNNING */
void fake_cri_exit(struct fake_cri *fake, const char *id, int32_t code); /* a sandbox: NOT_READY */
void fake_cri_oom(struct fake_cri *fake, const char *id);    /* exit 137, reason OOMKilled */
void fake_cri_remove(struct fake_cri *fake, const char *id); /* of a sandbox: and its containers */

/* Silently, without rules or event. */
void fake_cri_set_state(struct fake_cri *fake, const char *id, enum runtime_state state);
void fake_cri_set_reason(struct fake_cri *fake, const char *id,
                         const char *reason); /* of its end; a literal */
void fake_cri_set_created(struct fake_cri *fake, const char *id, int64_t created_ns);
/* `value` NULL: none. Of a sandbox or a container. */
void fake_cri_set_label(struct fake_cri *fake, const char *id, const char *key, const char *value);
void fake_cri_set_annotation(struct fake_cri *fake, const char *id, const char *key,
                             const char *value);
void fake_cri_set_host_network(struct fake_cri *fake, const char *sandbox_id);
void fake_cri_set_ips(struct fake_cri *fake, const char *sandbox_id, const char *ip,
                      const char *maybe_second_ip);          /* ip "": none */
void fake_cri_forget(struct fake_cri *fake, const char *id); /* remove this alone, without event */
/* So many running pods at once, uids "flood-000000" onwards. No events. */
void fake_cri_flood(struct fake_cri *fake, uint32_t pods, uint32_t containers_per_pod);

/* Containers of that name (NULL: all) started from now on exit at once with this code; -1: they run. */
void fake_cri_exits_at_once(struct fake_cri *fake, const char *container_name, int32_t code);
void fake_cri_add_image(struct fake_cri *fake, const char *image); /* as if pulled */
/* The answer of ExecSync from now on; fn runs in the server's thread and does not call the fake.
 * Without: exit code 0. */
typedef int32_t fake_exec_fn(void *ctx, const char *container_id,
                             const Cri__ExecSyncRequest *request, struct buf *out);
void fake_cri_on_exec(struct fake_cri *fake, fake_exec_fn *fn, void *ctx);

/* --- looking at it --- */

struct fake_item {
    bool exists, sandbox;
    uint8_t state; /* enum runtime_state, as in a listing */
    int32_t exit_code;
    uint32_t attempt;
    uint32_t start_count; /* how often it was started: never more than once */
    const char *id, *sandbox_id, *uid, *name;
    const Cri__PodSandboxConfig
        *sandbox_config; /* as it was asked for; NULL if made from the side */
    const Cri__ContainerConfig *config;
};
struct fake_item fake_cri_get(struct fake_cri *fake, const char *id); /* also of removed ones */
/* The newest that exists: container `name` of the pod, or its sandbox with NULL. `exists` is false: none. */
struct fake_item fake_cri_find(struct fake_cri *fake, const char *uid, const char *maybe_name);
/* How many exist in that state: containers (of that name; NULL: any), sandboxes. NULL uid: of any pod. */
uint32_t fake_cri_containers(struct fake_cri *fake, const char *maybe_uid, const char *maybe_name,
                             enum runtime_state state);
uint32_t fake_cri_sandboxes(struct fake_cri *fake, const char *maybe_uid, enum runtime_state state);
uint64_t fake_cri_calls(struct fake_cri *fake, enum cri_method method); /* received so far */
uint64_t fake_cri_calls_all(struct fake_cri *fake);                     /* of every method */

/* --- faults of calls --- */

#define FAKE_EVERY_METHOD CRI_METHOD_COUNT

struct fake_fault {
    enum cri_method method; /* FAKE_EVERY_METHOD: all */
    /* Only where the request names this container, sandbox or image; of RunPodSandbox the pod's uid, of
     * CreateContainer also the container's name. NULL: all. */
    const char *maybe_id;
    uint32_t times;      /* then it is used up; 0: until fake_cri_heal */
    uint32_t status;     /* the gRPC code to fail with; 0: it does not fail */
    const char *message; /* NULL: "injected" */
    int64_t delay_ns;    /* wait so long first (real time) */
    bool hang;           /* wait for fake_cri_heal first */
    bool after;   /* carry the call out first and then wait or fail: an old or a lost answer */
    bool garbage; /* answer with bytes that do not decode */
    bool empty;   /* answer with an empty message */
};
void fake_cri_fault(struct fake_cri *fake,
                    struct fake_fault fault);     /* the newest that fits decides */
void fake_cri_heal(struct fake_cri *fake);        /* no faults; what hangs goes on */
uint32_t fake_cri_waiting(struct fake_cri *fake); /* calls that hang or are delayed now */

/* --- faults of events --- */

/* Each event, by chance (the seed's): is lost, comes twice, or waits and comes after later ones. Zero
 * percents: as they should be. */
struct fake_event_faults {
    uint64_t seed;
    uint8_t lost_percent, twice_percent, late_percent;
};
void fake_cri_event_faults(struct fake_cri *fake, struct fake_event_faults faults);
void fake_cri_events_hold(struct fake_cri *fake); /* from now on they all wait */
void fake_cri_events_release(
    struct fake_cri *fake); /* what waited is sent, and nothing waits more */
void fake_cri_events_replay(struct fake_cri *fake); /* the last 1000 again, as they were */
void fake_cri_event_send(struct fake_cri *fake, const char *id, Cri__ContainerEventType type);
void fake_cri_events_end(struct fake_cri *fake, uint32_t status); /* every stream ends with it */
uint32_t fake_cri_listeners(struct fake_cri *fake);

/* --- faults of the server --- */

void fake_cri_drop_connections(struct fake_cri *fake); /* at once; new ones are welcome */
void fake_cri_down(struct fake_cri *fake); /* killed: no socket. Everything in it goes on */
void fake_cri_up(struct fake_cri *fake);
void fake_cri_pause(struct fake_cri *fake); /* frozen: takes connections and answers nothing */
void fake_cri_resume(struct fake_cri *fake);

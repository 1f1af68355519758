/* node/node_api_inner.h - what the files of the API half share. */
#pragma once

#include "api/node.h"
#include "base/rng.h"
#include "codec/duration.h"
#include "node/api_status.h"
#include "node/node_api.h"
#include "store/informer.h"

/* --- a thread that does what is due (node_api.c) --- */

struct api_loop {
    struct node_api *api;
    /* Do what is due; when (mono_ns) to be called again, if nobody wakes it before. */
    int64_t (*step)(struct node_api *api);
    pthread_t thread;
    pthread_mutex_t lock; /* guards the two below */
    pthread_cond_t changed;
    bool woken, stopping;
    bool running; /* the owner's */
};
void api_loop_wake(struct api_loop *loop);

/* How long to wait after a failure: doubled each time, from `first_ns` up to `max_ns`. */
struct api_backoff {
    uint32_t failures;
};
int64_t api_backoff_next(struct api_backoff *backoff, int64_t first_ns, int64_t max_ns);

/* --- the machine (node_machine.c) --- */

struct node_machine {
    struct str kernel, os_image, architecture; /* architecture as Go names it */
    struct str machine_id, system_uuid, boot_id;
    struct resources capacity, allocatable;
};
/* What does not change while we run. Texts in `arena`. */
int node_machine_read(struct arena *arena, const struct node_api_options *options,
                      struct node_machine *out, struct err *err);
/* "cpu=100m,memory=200Mi", sorted by name. */
int node_resources_parse(struct arena *arena, struct str text, struct resources *out,
                         struct err *err);

struct node_pressure {
    bool memory, disk;
};
struct node_pressure node_pressure_now(const char *root);

/* --- the Node (node_object.c) --- */

enum node_condition_type { NODE_MEMORY, NODE_DISK, NODE_PID, NODE_READY, NODE_CONDITION_COUNT };

struct node_said_condition {
    const char *type, *reason;
    const char *message; /* of Ready perhaps not a literal */
    bool status;
    int64_t since_us;
};

/* Everything that a Node says, as it is now. */
struct node_view {
    struct str name;
    struct str_map labels;
    LIST(struct taint) taints;
    struct str provider_id, runtime_version, kubelet_version;
    struct str_list ips;
    const struct node_machine *machine;
    struct node_said_condition conditions[NODE_CONDITION_COUNT];
    int64_t now_us; /* of the heartbeat; 0: without times, to compare */
};
json_mut *node_object_json(struct json_build *b, const struct node_view *view);
json_mut *node_status_json(struct json_build *b, const struct node_view *view);
/* "a=1,b=2" and "key=value:NoSchedule,other:NoExecute". */
int node_labels_parse(struct arena *arena, struct str text, struct str_map *out, struct err *err);
int node_taints_parse(struct arena *arena, struct str text, struct node_view *out, struct err *err);

struct node_keeper {
    struct arena arena;
    struct node_machine machine;
    struct node_view view; /* what does not change is set once */
    struct api_backoff backoff;
    int64_t started_ns, report_ns; /* when the next report is due although nothing changed */
    int64_t step_ns;               /* when the status is made next */
    int64_t pressure_until_ns[2];  /* memory, disk: not sooner is it over */
    bool registered, said_ready;
    char *said; /* the last status sent, without times; NULL: none */
    struct rng rng;

    pthread_mutex_t lock; /* guards the uid */
    char *uid;            /* of the Node; NULL: there is none, or not yet */
};
int node_keeper_init(struct node_api *api, struct err *err);
void node_keeper_done(struct node_api *api);
int64_t node_keeper_step(struct node_api *api);
/* The Node's uid, or STR_NONE: there is no Node (yet, or any more). */
struct str node_uid(struct node_api *api, struct arena *arena);

/* --- the Lease (node_lease.c) --- */

struct node_lease {
    struct api_backoff backoff;
    struct rng rng;
};
int64_t node_lease_step(struct node_api *api);

/* --- pods from the API (pod_source_api.c) --- */

struct pod_source_api {
    struct informer *informer;
    struct informer_set *set;
    struct str_table known; /* uid -> struct known_pod; the loop's own */
    struct api_backoff backoff;
    bool delivered; /* once: all of them */
};
void pod_source_open(struct node_api *api);
void pod_source_close(struct node_api *api);
int64_t pod_source_step(struct node_api *api);

/* --- mirror pods (mirror_pods.c) --- */

struct mirror_pods {
    pthread_mutex_t lock; /* guards what follows */
    const struct node_pod **items;
    uint32_t count;
    bool seen;                  /* the folder of manifests has been read */
    struct api_backoff backoff; /* the loop's own */
};
/* Make them what the static pods are; when to look again. */
int64_t mirror_pods_step(struct node_api *api);
void mirror_pods_set(struct node_api *api, const struct node_pod *const *pods, uint32_t count);
void mirror_pods_done(struct mirror_pods *mirrors);
/* The mirror of that static pod, with a reference; NULL: none that can have its status. */
const struct object *mirror_pods_find(struct node_api *api, struct str namespace_, struct str name,
                                      struct str hash);

/* --- statuses (status_writer.c) --- */

struct status_writer {
    pthread_mutex_t lock;       /* guards all of it; never held during a call to the store */
    struct str_table entries;   /* uid -> struct status_entry */
    struct api_backoff backoff; /* of the server as a whole; the loop's own, as what follows */
    int64_t due_ns;             /* nothing is sent before */
    int64_t compare_ns;         /* when what the API has is compared next */
};
void status_writer_init(struct status_writer *writer);
void status_writer_done(struct status_writer *writer);
int64_t status_writer_step(struct node_api *api);
void status_writer_told(struct node_api *api, const struct node_pod *pod, const json_val *status,
                        bool finished);
/* What the API has, at this version; NULL pod: it has no pod of that uid any more. */
void status_writer_seen(struct node_api *api, struct str uid, const struct node_pod *maybe_pod,
                        uint64_t version);
/* A pod of the API's that this agent cannot read: it has failed. */
void status_writer_refuse(struct node_api *api, const struct object *pod, const char *why);
/* Is there a status of that pod which is not its last? */
bool status_writer_living(struct node_api *api, struct str uid);
/* These are all the static pods: what is kept of others that have ended and told it is dropped. */
void status_writer_statics(struct node_api *api, const struct node_pod *const *pods,
                           uint32_t count);
/* The patch of a status: what is an agent's to say, and nothing else. Added to `out`. */
void status_patch(const json_val *status, struct str uid, bool finished, struct buf *out);

/* --- events (node_events.c) --- */

struct event_writer;
struct event_writer *event_writer_new(const struct clock *clock);
void event_writer_free(struct event_writer *writer);
void event_writer_tell(struct node_api *api, const struct node_pod *pod, bool warning,
                       struct str reason, struct str message);
int64_t event_writer_step(struct node_api *api);

/* --- objects that pods refer to (node_objects.c) --- */

struct node_objects;
struct node_objects *node_objects_new(const struct store *store, const struct clock *clock);
void node_objects_free(struct node_objects *objects);
struct object_source node_objects_source(struct node_objects *objects);
/* A new pod of this namespace: it gets what is true now. */
void node_objects_refresh(struct node_objects *objects, struct str namespace_);

/* --- all of it --- */

struct node_api {
    struct node_api_options opts;
    struct arena arena;
    const struct store *heartbeats;
    struct agent *agent;  /* NULL until the start */
    struct str node_name; /* likewise */
    struct node_keeper keeper;
    struct node_lease lease;
    struct pod_source_api source;
    struct mirror_pods mirrors;
    struct status_writer statuses;
    struct event_writer *events;
    struct node_objects *objects;
    struct api_loop keeper_loop, lease_loop, source_loop, status_loop, event_loop;
};

/* api/pod.h - Pod, as scheduling, disruption and status need it.
 *
 * A thousand pods of one Deployment differ in name, node, address and times, and in little else.
 * What they have in common is kept once: the spec, the affinity, the volumes and the status are
 * shared blocks (api/object.h), and `settle` moves out of them what differs: the node's name, the
 * times of conditions and containers. What the control plane never reads (commands, env, probes,
 * mounts) is checked but not kept; node/ decodes its own.
 */
#pragma once

#include "api/common.h"

/* --- spec --- */

enum protocol { PROTOCOL_UNSET, PROTOCOL_TCP, PROTOCOL_UDP, PROTOCOL_SCTP };

struct container_port {
    struct str name, host_ip;
    int64_t host_port; /* 0: none. With hostNetwork the container's port, see pod_host_port */
    int64_t container_port;
    uint8_t protocol; /* enum protocol; unset is TCP */
};

struct resource_claim_use {
    struct str name;    /* of one of the pod's resourceClaims */
    struct str request; /* absent: all of the claim's requests */
};

struct resource_needs {
    struct resources limits, requests;
    LIST(struct resource_claim_use) claims;
};

enum container_restart {
    CONTAINER_RESTART_UNSET,
    CONTAINER_RESTART_ALWAYS, /* of an init container: a sidecar */
    CONTAINER_RESTART_NEVER,
    CONTAINER_RESTART_ON_FAILURE,
};

struct container {
    struct str name, image;
    LIST(struct container_port) ports;
    struct resource_needs resources;
    uint8_t restart_policy; /* enum container_restart */
};

static inline bool container_is_sidecar(const struct container *init)
{
    return init->restart_policy == CONTAINER_RESTART_ALWAYS;
}

struct node_selector { /* behind a pointer: NULL allows every node, one without terms none */
    LIST(struct node_selector_term) terms; /* any of them */
};

struct preferred_node_term {
    int64_t weight;
    struct node_selector_term term;
};

struct node_affinity {
    const struct node_selector *maybe_required;
    LIST(struct preferred_node_term) preferred;
};

struct pod_affinity_term {
    const struct label_selector *maybe_selector;
    struct str_list namespaces;
    const struct label_selector *maybe_namespace_selector; /* an empty one is every namespace */
    struct str topology_key;
    struct str_list match_label_keys, mismatch_label_keys;
};

struct weighted_pod_term {
    int64_t weight;
    struct pod_affinity_term term;
};

struct pod_affinity {
    LIST(struct pod_affinity_term) required;
    LIST(struct weighted_pod_term) preferred;
};

struct affinity {
    struct node_affinity node;
    struct pod_affinity pod, anti;
};
extern const struct schema affinity_schema;

enum unsatisfiable { UNSATISFIABLE_UNSET, UNSATISFIABLE_DO_NOT_SCHEDULE, UNSATISFIABLE_ANYWAY };
enum inclusion { INCLUSION_UNSET, INCLUSION_IGNORE, INCLUSION_HONOR };

struct spread_constraint {
    int64_t max_skew;
    struct str topology_key;
    uint8_t when_unsatisfiable;   /* enum unsatisfiable */
    uint8_t node_affinity_policy; /* enum inclusion; unset is Honor */
    uint8_t node_taints_policy;   /* enum inclusion; unset is Ignore */
    const struct label_selector *maybe_selector;
    struct maybe_int min_domains;
    struct str_list match_label_keys;
};

/* Volumes that decide where a pod may run or how many fit on a node. Others (config maps, tokens,
 * empty directories) are not kept. One of the sources is set. */
struct volume_claim_source {
    struct str name; /* absent: not this source */
    bool read_only;
};

struct volume_id_source {
    struct str id; /* absent: not this source */
};

struct volume_template_spec {
    struct str_list access_modes;
    const struct label_selector *maybe_selector;
    struct resource_needs resources;
    struct str volume_name;
    struct str storage_class_name; /* absent: the default class; "": no class */
};

struct volume_template { /* the claim is called POD-VOLUME */
    struct meta_template meta;
    struct volume_template_spec spec;
};

struct volume_ephemeral_source {
    const struct volume_template *maybe_template;
};

struct volume {
    struct str name;
    struct volume_claim_source claim;
    struct volume_ephemeral_source ephemeral;
    struct volume_id_source csi; /* the driver of an inline volume */
    struct volume_id_source aws_disk, gce_disk, azure_disk, cinder_disk; /* in-tree: its id */
    struct volume_id_source image; /* its reference; of a pod moved to spec.volume_images */
};
extern const struct schema volume_schema;

struct pod_resource_claim {
    struct str name;
    struct str claim_name, template_name; /* one of them */
};

struct named { /* a list of objects with a name */
    struct str name;
};

struct condition_type {
    struct str type;
};

enum restart_policy { RESTART_UNSET, RESTART_ALWAYS, RESTART_ON_FAILURE, RESTART_NEVER };
enum preemption_policy { PREEMPTION_UNSET, PREEMPTION_LOWER_PRIORITY, PREEMPTION_NEVER };
enum pod_os { POD_OS_UNSET, POD_OS_LINUX, POD_OS_WINDOWS };

struct pod_os_name {
    uint8_t name; /* enum pod_os */
};

struct pod_spec {
    LIST(struct volume) volumes;   /* of a template; a pod's are in pod.volumes */
    struct str_list volume_images; /* of a pod: what its image volumes refer to */
    LIST(struct container) init_containers, containers;
    struct maybe_int termination_grace_s, active_deadline_s;
    struct str_map node_selector;
    struct str service_account_name;
    LIST(struct named) image_pull_secrets;
    struct str node_name;            /* of a template; a pod's is in pod.node_name */
    const struct affinity *affinity; /* of a template; a pod's is in pod.maybe_affinity */
    struct str scheduler_name;
    LIST(struct toleration) tolerations;
    struct str priority_class_name;
    struct maybe_int priority;
    LIST(struct condition_type) readiness_gates;
    struct str runtime_class_name;
    struct resources overhead;
    LIST(struct spread_constraint) spread;
    LIST(struct named) scheduling_gates;
    LIST(struct pod_resource_claim) resource_claims;
    struct resource_needs resources; /* of the pod as a whole */
    struct pod_os_name os;
    uint8_t restart_policy;    /* enum restart_policy; unset is Always */
    uint8_t preemption_policy; /* enum preemption_policy */
    bool host_network, host_pid, host_ipc;
};
extern const struct schema pod_spec_schema;

struct pod_template {
    struct meta_template meta;
    struct pod_spec spec;
};
extern const struct schema pod_template_schema;

/* --- status --- */

enum pod_phase {
    PHASE_UNSET,
    PHASE_PENDING,
    PHASE_RUNNING,
    PHASE_SUCCEEDED,
    PHASE_FAILED,
    PHASE_UNKNOWN,
};

struct pod_condition {
    struct str type, reason, message;
    uint8_t status;        /* enum condition_status */
    int64_t transition_us; /* of a pod always 0: see pod_condition_us */
};

enum container_state { STATE_UNSET, STATE_WAITING, STATE_RUNNING, STATE_TERMINATED };

struct container_state_detail {
    struct str reason;
    int64_t exit_code;
    int64_t started_us, finished_us; /* of a pod always 0: see pod_container_times */
};

/* As JSON has it, one of three; settle turns it into `state` and `detail`. */
struct container_states {
    const struct container_state_detail *maybe_waiting, *maybe_running, *maybe_terminated;
};

struct container_status {
    struct str name;
    struct container_states states; /* empty after settling */
    uint8_t state;                  /* enum container_state */
    struct container_state_detail detail;
    bool ready;
    uint8_t started; /* enum tri */
    int64_t restart_count;
    struct resources allocated;
    const struct resource_needs *maybe_resources; /* what the container runs with now */
};

struct pod_ip {
    struct str ip;
};

struct pod_status {
    uint8_t phase; /* enum pod_phase */
    uint8_t qos;   /* enum pod_qos */
    LIST(struct pod_condition) conditions;
    struct str reason; /* "Evicted", "NodeLost" */
    struct str nominated_node;
    LIST(struct container_status) init_containers, containers;
    struct str resize;       /* in-place resize of older servers: "Infeasible" */
    LIST(struct pod_ip) ips; /* moved to pod.ips */
    int64_t start_us;        /* moved to pod.start_us */
};

enum pod_qos { QOS_UNSET, QOS_GUARANTEED, QOS_BURSTABLE, QOS_BEST_EFFORT };

struct pod {
    struct object object;
    const struct pod_spec *spec;     /* never NULL */
    const struct pod_status *status; /* never NULL */
    const struct affinity *maybe_affinity;
    LIST(struct volume) volumes;
    struct str node_name; /* empty or absent: not bound */
    LIST(struct pod_ip) ips;
    int64_t start_us;   /* 0: not started */
    struct str moments; /* packed times: pod_condition_us, pod_container_times */
};
extern const struct schema pod_schema;
extern const struct kind pod_kind;

static inline const struct pod *pod_of(const struct object *object)
{
    KV_ASSERT(object->kind == &pod_kind);
    return (const struct pod *)object;
}

/* --- what callers ask --- */

/* NULL: the pod does not have that condition. */
const struct pod_condition *pod_condition(const struct pod *pod, struct str type);
/* When that condition (of this pod) last changed; whole seconds, as Kubernetes keeps them. */
int64_t pod_condition_us(const struct pod *pod, const struct pod_condition *condition);

struct container_times {
    int64_t started_us, finished_us; /* 0: not yet */
};
/* Of the container with that status (one of this pod's). */
struct container_times pod_container_times(const struct pod *pod,
                                           const struct container_status *status);

bool pod_is_terminal(const struct pod *pod);    /* Succeeded or Failed */
bool pod_is_terminating(const struct pod *pod); /* has a deletion timestamp */
bool pod_is_ready(const struct pod *pod);
bool pod_is_scheduled(const struct pod *pod); /* bound to a node */
bool pod_is_gated(const struct pod *pod);
bool pod_is_mirror(const struct pod *pod);   /* the API server's image of a static pod */
bool pod_is_critical(const struct pod *pod); /* system-cluster-critical, system-node-critical */

/* The port of the host that `port` takes, or 0. */
int64_t pod_host_port(const struct pod_spec *spec, const struct container_port *port);

/* The name of the claim behind a volume: its own, or that of its template. Lives in `arena`.
 * STR_NONE: the volume is not a claim. */
struct str pod_volume_claim(const struct pod *pod, const struct volume *volume,
                            struct arena *arena);

/* The images that its node needs, each once, in the order of their first use: of init containers, of
 * containers, of image volumes. The array is the arena's, the texts the pod's. Returns how many. */
uint32_t pod_images(const struct pod *pod, struct arena *arena, const struct str **out);

/* Checks of a pod's spec beyond the schema, a template's too. `spec` is the JSON at `path` that
 * `typed` was decoded from. The names of a StatefulSet's volumeClaimTemplates are volumes too. */
void pod_spec_check(const struct pod_spec *typed, const json_val *spec,
                    const json_val *maybe_claim_templates, const struct path *path,
                    struct report *report);
/* What the API server adds to a pod's spec (not to a template's): requests from limits. */
void pod_spec_complete(struct json_build *b, json_mut *spec);

/* node/node_pod.h - a pod as this node runs it: every field that an agent acts on.
 *
 * api/pod.h keeps what scheduling needs and only checks the rest (commands, env, probes, mounts); here
 * is the rest. Immutable and counted. Strings live in the JSON that it was read from, which it
 * owns. Defaults of the API server are filled in, because a manifest folder has none.
 */
#pragma once

#include "api/pod.h"
#include "base/rc.h"
#include "codec/json.h"

#define NODE_POD_BYTES_MAX ((size_t)3 << 20) /* of a manifest: twice what an API server takes */

/* --- what containers ask for --- */

enum handler_kind {
    HANDLER_NONE,
    HANDLER_EXEC,
    HANDLER_HTTP,
    HANDLER_TCP,
    HANDLER_GRPC,
    HANDLER_SLEEP
};

struct handler_header {
    struct str name, value;
};

struct handler {
    uint8_t kind;            /* enum handler_kind */
    struct str_list command; /* exec */
    struct str host, path;   /* http; host also of tcp. Empty host: the pod's address */
    bool https;
    LIST(struct handler_header) headers;
    struct str port_name; /* empty: `port` is it */
    int64_t port;
    struct str service; /* grpc */
    int64_t sleep_s;
};

struct probe {
    struct handler handler; /* HANDLER_NONE: there is no such probe */
    int64_t initial_delay_s, period_s, timeout_s, success_threshold, failure_threshold;
    struct maybe_int termination_grace_s;
};

enum env_kind { ENV_VALUE, ENV_FIELD, ENV_RESOURCE, ENV_CONFIG_MAP, ENV_SECRET };

struct env_var {
    struct str name;
    uint8_t kind;          /* enum env_kind */
    struct str value;      /* with $(VAR) still in it */
    struct str field_path; /* ENV_FIELD: "status.podIP" */
    struct str container;  /* ENV_RESOURCE: absent is this one */
    struct str resource, divisor;
    struct str object, key; /* of a ConfigMap or Secret */
    bool optional;
};

struct env_from {
    struct str prefix, object;
    bool secret, optional;
};

struct volume_mount {
    struct str name, path, sub_path, sub_path_expr;
    bool read_only, recursive_read_only; /* recursive: only if Enabled, not for IfPossible */
    uint8_t propagation;                 /* 0 None, 1 HostToContainer, 2 Bidirectional */
};

struct security_profile {
    uint8_t kind; /* 0 unset, 1 RuntimeDefault, 2 Unconfined, 3 Localhost */
    struct str localhost;
};

struct selinux_options {
    struct str user, role, type, level;
};

struct security_context { /* of a container, the pod's already merged into it */
    struct maybe_int run_as_user, run_as_group;
    uint8_t run_as_non_root;                              /* enum tri */
    uint8_t privileged, read_only_root, allow_escalation; /* enum tri */
    struct str_list add_capabilities, drop_capabilities;
    struct security_profile seccomp, apparmor;
    struct selinux_options selinux;
    bool unmasked_proc; /* procMount: Unmasked */
};

enum pull_policy { PULL_UNSET, PULL_ALWAYS, PULL_IF_NOT_PRESENT, PULL_NEVER }; /* never unset */

struct node_container {
    struct str name, image, working_dir;
    bool init, sidecar, ephemeral;
    uint8_t restart_policy; /* enum container_restart; of a sidecar ALWAYS */
    uint8_t pull_policy;    /* enum pull_policy; by the image's tag if the manifest does not say */
    struct str_list command, args;
    LIST(struct env_var) env;
    LIST(struct env_from) env_from;
    LIST(struct container_port) ports;
    struct resource_needs resources;
    LIST(struct volume_mount) mounts;
    struct probe liveness, readiness, startup;
    struct handler post_start, pre_stop;
    struct str stop_signal;
    struct security_context security;
    struct str termination_message_path, termination_message_policy;
    bool stdin_open, stdin_once, tty;
    struct str target; /* of an ephemeral container: whose processes it sees; empty: nobody's */
    char hash[17];     /* of name and image alone, hexadecimal */
};

/* --- what pods ask for --- */

struct key_path { /* an item of a configMap, secret or projected volume */
    struct str key, path;
    struct maybe_int mode;
};

enum node_volume_kind {
    NODE_VOLUME_OTHER, /* a kind that this agent does not mount: `other` names it */
    NODE_VOLUME_EMPTY_DIR,
    NODE_VOLUME_HOST_PATH,
    NODE_VOLUME_CONFIG_MAP,
    NODE_VOLUME_SECRET,
    NODE_VOLUME_DOWNWARD,
    NODE_VOLUME_PROJECTED,
};

struct downward_item {
    struct str path, field_path, container, resource, divisor;
    struct maybe_int mode;
};

struct volume_source { /* of a projected volume, or of the volume itself */
    uint8_t kind;      /* CONFIG_MAP, SECRET, DOWNWARD, or 0 with a token */
    struct str object;
    bool optional;
    LIST(struct key_path) items; /* empty: every key */
    LIST(struct downward_item) downward;
    struct str token_audience, token_path; /* serviceAccountToken; empty path: none */
    int64_t token_expiration_s;
};

struct node_volume {
    struct str name;
    uint8_t kind; /* enum node_volume_kind */
    struct str other;
    struct str host_path, host_path_type; /* "", "DirectoryOrCreate", "File", ... */
    bool memory;                          /* emptyDir: medium Memory */
    int64_t size_limit_bytes;             /* emptyDir; 0: none */
    int64_t default_mode;                 /* of files; 0644 unless the pod says */
    LIST(struct volume_source) sources;   /* one, but for projected */
};

enum pod_source { POD_FROM_FILE, POD_FROM_API };
#define POD_SOURCE_COUNT 2

struct host_alias {
    struct str ip;
    struct str_list hostnames;
};

struct dns_option {
    struct str name, value;
};

struct node_pod {
    struct rc rc;
    struct arena arena;
    struct doc doc; /* owns the strings; the whole object */
    uint8_t source; /* enum pod_source */
    struct str uid, name, namespace_;
    struct str_map labels, annotations;
    int64_t created_us, deleted_us;
    struct maybe_int deletion_grace_s;
    struct str node_name, service_account, runtime_class;
    struct str hostname, subdomain; /* hostname: as it shall be inside, never empty */
    bool host_network, host_pid, host_ipc, share_process_namespace;
    uint8_t restart_policy; /* enum restart_policy, never unset */
    int64_t termination_grace_s;
    struct maybe_int active_deadline_s, priority;
    LIST(struct node_container) inits, containers,
        ephemerals; /* inits in order, sidecars among them */
    LIST(struct node_volume) volumes;
    LIST(struct host_alias) host_aliases;
    struct str_list readiness_gates, image_pull_secrets;
    struct str dns_policy; /* "ClusterFirst" */
    struct str_list dns_servers, dns_searches;
    LIST(struct dns_option) dns_options;
    LIST(struct dns_option) sysctls;
    struct security_context security; /* the pod's own, for its sandbox */
    struct maybe_int fs_group;
    const int64_t *supplemental_groups;
    uint32_t supplemental_group_count;
    bool set_hostname_as_fqdn;
    struct resources overhead;
    struct resource_needs resources; /* of the pod as a whole */
    uint8_t qos;                     /* enum pod_qos */
    const json_val *maybe_status;    /* as the API has it */
};

const struct node_pod *node_pod_ref(const struct node_pod *pod);
void node_pod_unref(const struct node_pod *pod); /* NULL is fine */
static inline void node_pod_cleanup(const struct node_pod **p)
{
    node_pod_unref(*p);
}
#define AUTO_NODE_POD __attribute__((cleanup(node_pod_cleanup))) const struct node_pod *

/* From a Pod's JSON (the API's: complete and valid). `doc` is taken over, also on failure. */
int node_pod_decode(struct doc *doc, enum pod_source source, const struct node_pod **out,
                    struct err *err);

/* From a manifest (YAML or JSON): checked with the Pod table, defaults added, made a static pod of
 * this node: name "<name>-<node>", namespace, uid from content, node and path, annotations
 * config.hash, config.source and config.seen, the toleration of everything. The message of a failure
 * names file, line and field. */
struct static_pod_options {
    const char *path; /* of the file, for messages and the uid */
    struct str node_name;
    int64_t seen_us;
};
int node_pod_from_manifest(struct str text, struct static_pod_options options,
                           const struct node_pod **out, struct err *err);

bool node_pod_is_static(const struct node_pod *pod);
const struct node_container *node_pod_container(const struct node_pod *pod,
                                                struct str name); /* or NULL */
/* What is different for a worker: same spec, same deletion? (Not the status.) */
bool node_pod_same(const struct node_pod *a, const struct node_pod *b);
/* The number of the port: a named one is looked up among the container's. 0: unknown. */
int64_t handler_port(const struct handler *handler, const struct node_container *container);
/* The policy that decides for this container: its own, or the pod's. enum restart_policy. */
uint8_t node_pod_restart_policy(const struct node_pod *pod, const struct node_container *container);

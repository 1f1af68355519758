/* node/volumes.h - the folders and files that a pod's volumes are, on the host.
 *
 * <root>/pods/<uid>/volumes/<kind>/<name>, as a kubelet lays them out. Files from ConfigMaps,
 * Secrets and the downward API are written whole into a new folder, and a link is turned over to
 * it at once: a reader sees the old or the new, never half. Setting up what is set up changes
 * nothing, so every sync may call it.
 */
#pragma once

#include "node/node_pod.h"

/* Objects that pods refer to. NULL functions: there is no API server, and such volumes cannot be
 * mounted. Answers JSON objects in the caller's doc; ERR_NOT_FOUND where there is none. They are
 * asked once per reference, so who supplies them keeps what was fetched; a token that is not yet
 * old is answered again, or each sync would write a new one. */
struct object_source {
    int (*config_map)(void *ctx, struct str namespace_, struct str name, struct doc *out,
                      struct err *err);
    int (*secret)(void *ctx, struct str namespace_, struct str name, struct doc *out,
                  struct err *err);
    int (*service)(void *ctx, struct str namespace_, struct str name, struct doc *out,
                   struct err *err);
    int (*token)(void *ctx, struct str namespace_, struct str service_account, struct str pod_name,
                 struct str pod_uid, struct str audience, int64_t expiration_s, struct buf *out,
                 struct err *err);
    void *ctx;
};

struct node_facts { /* what containers may ask about their node */
    struct str node_name;
    struct str_list node_ips;
    struct str_list pod_ips;       /* of the pod at hand; empty until its sandbox has some */
    struct str root;               /* "/var/lib/karve"; absolute */
    struct str log_root;           /* "/var/log/pods" */
    struct str container_log_root; /* "/var/log/containers"; empty: no links */
    struct str_list dns_servers,
        dns_searches; /* of the cluster (ClusterFirst); empty: the host's */
    struct str dns_domain;
    struct resources allocatable; /* what a container without a limit may see as its limit */
    int64_t memory_bytes;         /* of the machine, for OOM scores; 0: as allocatable says */
    bool systemd_cgroups;         /* the runtime's cgroup driver; false: cgroupfs */
};

/* Make them all. ERR_UNAVAILABLE, ERR_NOT_FOUND: worth trying again. Ephemeral content is mode bits
 * and ownership (fsGroup) as asked. */
int volumes_set_up(const struct node_pod *pod, const struct node_facts *facts,
                   const struct object_source *objects, struct err *err);
/* The folder or file of a volume on the host; empty for a kind that we do not mount. */
struct str volume_host_path(struct arena *arena, const struct node_pod *pod,
                            const struct node_volume *volume, const struct node_facts *facts);
/* The pod is gone: unmount, remove <root>/pods/<uid>. Works without the spec, by what is there. */
int volumes_remove(struct str uid, const struct node_facts *facts, struct err *err);
/* The uids that have a folder there, sorted; for clearing what no pod owns. */
int volumes_list(const struct node_facts *facts, struct arena *arena, struct str_list *out,
                 struct err *err);

/* metadata.name, status.podIP, ...: the value of a downward field. False: there is no such field.
 */
bool downward_field(const struct node_pod *pod, const struct node_facts *facts, struct str path,
                    struct arena *arena, struct str *out);
/* limits.cpu and friends, divided and rounded up. An absent divisor is 1. False: no such resource,
 * or no such divisor. */
bool downward_resource(const struct node_container *container, const struct node_facts *facts,
                       struct str resource, struct str divisor, struct arena *arena,
                       struct str *out);

/* node/configs.h - what the runtime is told to make: sandbox and container configurations.
 *
 * Names, labels, annotations and log paths are those that kubelets use and crictl expects. Messages
 * live in the caller's arena; freeing one with protobuf-c's functions is a mistake.
 */
#pragma once

#include "node/cri.h"
#include "node/pod_logs.h"
#include "node/volumes.h"

/* "/kubepods/burstable/pod<uid>": the runtime makes it, and whoever ends the pod removes it. */
struct str pod_cgroup_parent(struct arena *arena, const struct node_pod *pod,
                             const struct node_facts *facts);

/* The sandbox's configuration; its log folder is made. Equal inputs give equal messages. */
int sandbox_config(struct arena *arena, const struct node_pod *pod, const struct node_facts *facts,
                   uint32_t attempt, Cri__PodSandboxConfig **out, struct err *err);

struct container_config_input {
    const struct node_pod *pod;
    const struct node_container *container;
    const struct node_facts *facts;
    const struct object_source *objects;
    uint32_t restart_count;
    struct str image_ref;       /* what the pull or the image store answered */
    struct maybe_int image_uid; /* the user the image runs as; for runAsNonRoot */
    struct str image_username;  /* neither: the image says nothing, and runs as root */
    struct str maybe_target_id; /* pid namespace of another container, for ephemeral ones */
};
/* The container's configuration; its log folder, termination message file and /etc/hosts are made.
 * The volumes are set up. The reason of a failure is CreateContainerConfigError. */
int container_config(struct arena *arena, const struct container_config_input *input,
                     Cri__ContainerConfig **out, struct err *err);

/* The last words of an ended container: its file, or with FallbackToLogsOnError the end of its
 * log. UTF-8; empty: none. */
struct str termination_message(struct arena *arena, const struct runtime_container *container,
                               uint32_t containers_in_pod);

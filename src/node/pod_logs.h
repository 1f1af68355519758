/* node/pod_logs.h - where the logs of containers are, and their removal. */
#pragma once

#include "node/runtime.h"
#include "node/volumes.h"

/* "/var/log/pods/<namespace>_<name>_<uid>" */
struct str pod_log_folder(struct arena *arena, const struct node_pod *pod,
                          const struct node_facts *facts);
/* The pod's folder, or a container's in it. */
int log_folder_make(struct arena *arena, const struct node_pod *pod, const struct node_facts *facts,
                    struct str maybe_container, struct err *err);

/* The restart count that a new instance gets: the newest one's plus one, else from the log folder.
 */
uint32_t next_restart_count(const struct node_pod *pod, const struct node_container *container,
                            const struct runtime_status *status, const struct node_facts *facts);

/* "/var/log/containers/<pod>_<namespace>_<container>-<id>.log" -> the log. For those who read logs
 * by container; that it could not be made stops nobody. */
void container_log_link(const struct node_pod *pod, const struct node_container *container,
                        struct str id, uint32_t restart_count, const struct node_facts *facts);

/* With a container that is removed: its log and the link to it. With a pod: its folder. */
void container_log_remove(const struct runtime_status *status,
                          const struct runtime_container *container,
                          const struct node_facts *facts);
int pod_log_remove(const struct runtime_status *status, const struct node_facts *facts,
                   struct err *err);

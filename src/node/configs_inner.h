/* node/configs_inner.h - what the files of sandbox and container configurations share. */
#pragma once

#include "node/configs.h"
#include "node/volumes_inner.h"

/* --- messages in an arena --- */

/* MESSAGE(arena, mount, Mount): with every field at its default. */
#define MESSAGE(arena, name, type)                                                                 \
    __extension__({                                                                                \
        Cri__##type *message_ = arena_new((arena), Cri__##type);                                   \
        cri__##name##__init(message_);                                                             \
        message_;                                                                                  \
    })

char *message_str(struct arena *arena, struct str s); /* absent is empty */
char **message_strs(struct arena *arena, struct str_list list);
Cri__Int64Value *message_int(struct arena *arena, struct maybe_int value); /* NULL: not set */

struct entries { /* of a map, or of an environment */
    Cri__Entry **items;
    size_t count, cap;
};
void entries_add(struct entries *entries, struct arena *arena, struct str key, struct str value);

/* --- what both configurations have --- */

void pod_labels_add(struct entries *labels, struct arena *arena, const struct node_pod *pod);
Cri__NamespaceOption *namespace_options(struct arena *arena, const struct node_pod *pod,
                                        struct str maybe_target_id);
Cri__SELinuxOption *selinux_options(struct arena *arena, const struct selinux_options *options);
/* fsGroup and supplementalGroups. */
int64_t *pod_groups(struct arena *arena, const struct node_pod *pod, size_t *count);

/* --- resources --- */

/* Of a pod or a part of it: shares, quota and memory. Amounts that are zero are not set. */
Cri__LinuxContainerResources *linux_resources(struct arena *arena, struct quantity cpu_request,
                                              struct quantity cpu_limit,
                                              struct quantity memory_limit);
Cri__LinuxContainerResources *container_resources(struct arena *arena, const struct node_pod *pod,
                                                  const struct node_container *container,
                                                  const struct node_facts *facts);
/* All containers of the pod together, without its overhead. */
Cri__LinuxContainerResources *pod_resources(struct arena *arena, const struct node_pod *pod);

/* --- DNS --- */

#define DNS_SERVERS_MAX 3
#define DNS_SEARCHES_MAX 32
#define DNS_SEARCH_CHARS_MAX 2048

/* `resolv_conf` is the host's file; lines that we do not understand are passed over. */
Cri__DNSConfig *pod_dns(struct arena *arena, const struct node_pod *pod,
                        const struct node_facts *facts, struct str resolv_conf);

/* --- parts of a container --- */

#define ENV_TEXT_BYTES_MAX ((size_t)128 << 10) /* execve takes no longer argument or variable */
#define ENV_ALL_BYTES_MAX ((size_t)4 << 20)    /* and not more of them all together */
#define ENV_COUNT_MAX 5000

/* The environment in order of first appearance, a later value in the place of an earlier one. */
int container_env(struct arena *arena, const struct container_config_input *input,
                  struct entries *out, struct err *err);
/* `text` with $(NAME) replaced by that variable's value and $$ by $. A name that is not there stays
 * as it is, or is ERR_INVALID if `strict`. */
int env_expand(struct arena *arena, const struct entries *env, struct str text, bool strict,
               struct str *out, struct err *err);

int container_mounts(struct arena *arena, const struct container_config_input *input,
                     const struct entries *env, Cri__ContainerConfig *config, struct err *err);
int container_security(struct arena *arena, const struct container_config_input *input,
                       Cri__LinuxContainerSecurityContext **out, struct err *err);
/* The number that the interface gives to "SIGTERM" and the others; 0: there is no such signal. */
int32_t signal_number(struct str name);

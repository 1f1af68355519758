/* api/pod_tables.h - tables of what a pod's JSON may have and the control plane does not keep; for
 * pod_*.c only. They exist so that a slip in a probe or a security context is found offline. */
#pragma once

#include "api/pod.h"

extern const struct schema probe_schema, lifecycle_schema, env_schema, env_from_schema;
extern const struct schema volume_mount_schema, volume_device_schema, resize_policy_schema;
extern const struct schema restart_rule_schema;
extern const struct schema container_security_schema, pod_security_schema;
extern const struct schema host_alias_schema, dns_config_schema, local_ref_schema;

extern const struct schema host_path_schema, empty_dir_schema, secret_volume_schema,
    config_map_volume_schema, downward_volume_schema, projected_volume_schema, nfs_volume_schema;

extern const struct schema resource_needs_schema; /* of struct resource_needs; also for node/ */

/* Rules used in more than one of the tables. */
extern const struct rule port_rule;         /* 1 to 65535 */
extern const struct rule port_or_name_rule; /* the same, or the name of a port */
extern const struct rule port_name_rule;
extern const struct rule int32_rule, not_negative_rule, positive_rule;
extern const struct rule text_rule; /* not empty */

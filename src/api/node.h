/* api/node.h - Node, as scheduling, registration, repair and disruption read it.
 *
 * Capacity, allocatable and nodeInfo are shared: nodes of one instance type have them in common.
 * Image lists and heartbeats are checked but not kept.
 */
#pragma once

#include "api/common.h"

struct node_object_spec {
    struct str_list pod_cidrs;
    struct str provider_id; /* "aws:///us-east-1a/i-0abc" */
    bool unschedulable;     /* cordoned */
    LIST(struct taint) taints;
};

struct node_address {
    struct str type; /* InternalIP, ExternalIP, Hostname, InternalDNS, ExternalDNS */
    struct str address;
};

struct node_info {
    struct str kernel_version, os_image, container_runtime_version, kubelet_version;
    struct str operating_system, architecture; /* as in Go: "linux", "arm64" */
};

struct attached_volume {
    struct str name; /* "kubernetes.io/csi/ebs.csi.aws.com^vol-0abc" */
};

struct node_object_status {
    struct resources capacity, allocatable;
    LIST(struct condition) conditions;
    LIST(struct node_address) addresses;
    const struct node_info *maybe_info; /* NULL until the kubelet has reported */
    struct str_list volumes_in_use;
    LIST(struct attached_volume) volumes_attached;
};

struct node {
    struct object object;
    struct node_object_spec spec;
    struct node_object_status status;
};

extern const struct kind node_kind;

static inline const struct node *node_of(const struct object *object)
{
    KV_ASSERT(object->kind == &node_kind);
    return (const struct node *)object;
}

/* NULL: the node does not report that condition. */
const struct condition *node_condition(const struct node *node, struct str type);
bool node_is_ready(const struct node *node); /* Ready is True */

/* EFFECT_ANY finds the key with any effect. NULL: not tainted so. */
const struct taint *node_taint(const struct node *node, struct str key, enum taint_effect effect);

/* The name that pods are spread by: the hostname label, else the node's name. */
struct str node_hostname(const struct node *node);

/* The first address of that type, or STR_NONE. */
struct str node_address(const struct node *node, struct str type);

/* api/ec2nodeclass.h - EC2NodeClass (karpenter.k8s.aws/v1): what EC2 needs to know to launch a
 * node. */
#pragma once

#include "api/karpenter.h"

enum ami_family {
    AMI_FAMILY_UNSET,
    AMI_FAMILY_AL2,
    AMI_FAMILY_AL2023,
    AMI_FAMILY_BOTTLEROCKET,
    AMI_FAMILY_CUSTOM,
    AMI_FAMILY_WINDOWS2019,
    AMI_FAMILY_WINDOWS2022,
    AMI_FAMILY_WINDOWS2025,
};

struct ami_term {
    struct str alias, id, name, owner, ssm_parameter;
    struct str_map tags;
};

struct subnet_term {
    struct str id;
    struct str_map tags;
};

struct security_group_term {
    struct str id, name;
    struct str_map tags;
};

struct reservation_term {
    struct str id, owner_id;
    uint8_t match_criteria; /* enum match_criteria */
    struct str_map tags;
};
enum match_criteria { MATCH_UNSET, MATCH_OPEN, MATCH_TARGETED };

struct placement_group_selector {
    struct str id, name;
};

struct ebs_volume {
    uint8_t delete_on_termination, encrypted; /* enum tri */
    struct maybe_int iops;
    struct str kms_key_id, snapshot_id;
    struct maybe_int throughput, initialization_rate;
    struct str size; /* "100Gi", see ebs_size_gib; absent: the snapshot's */
    uint8_t type;    /* enum volume_type */
};
enum volume_type {
    VOLUME_UNSET,
    VOLUME_STANDARD,
    VOLUME_IO1,
    VOLUME_IO2,
    VOLUME_GP2,
    VOLUME_SC1,
    VOLUME_ST1,
    VOLUME_GP3,
};

struct block_device {
    struct str device_name;
    const struct ebs_volume *ebs; /* NULL: not said */
    bool root_volume;             /* kubelet's root directory is here */
};

struct network_interface {
    int64_t device_index, card_index;
    uint8_t type; /* enum interface_type */
};
enum interface_type { INTERFACE_UNSET, INTERFACE_PLAIN, INTERFACE_EFA_ONLY };

enum on_off { ON_OFF_UNSET, ON_OFF_ENABLED, ON_OFF_DISABLED };

struct metadata_options {
    uint8_t http_endpoint, http_ipv6; /* enum on_off */
    struct maybe_int hop_limit;
    uint8_t http_tokens; /* enum http_tokens */
};
enum http_tokens { HTTP_TOKENS_UNSET, HTTP_TOKENS_REQUIRED, HTTP_TOKENS_OPTIONAL };

struct connection_tracking { /* seconds */
    struct maybe_int tcp_established_s, udp_stream_s, udp_s;
};

struct cpu_options {
    uint8_t nested_virtualization; /* enum on_off */
};

struct ec2nodeclass_spec {
    uint8_t ami_family; /* enum ami_family, as written: ec2nodeclass_ami_family is what counts */
    LIST(struct ami_term) ami_terms;
    uint8_t associate_public_ip; /* enum tri */
    LIST(struct block_device) block_devices;
    LIST(struct reservation_term) reservation_terms;
    const struct connection_tracking *connection_tracking; /* NULL: not set */
    struct str context;
    const struct cpu_options *cpu_options; /* NULL: not set */
    uint8_t detailed_monitoring;           /* enum tri */
    struct str instance_profile;
    uint8_t instance_store_policy; /* enum instance_store_policy */
    struct maybe_int ip_prefix_count;
    struct str kubelet; /* canonical JSON; absent: not set */
    struct metadata_options metadata_options;
    LIST(struct network_interface) network_interfaces;
    const struct placement_group_selector *placement_group; /* NULL: not set */
    struct str role;
    LIST(struct security_group_term) security_group_terms;
    LIST(struct subnet_term) subnet_terms;
    struct str_map tags;
    struct str user_data;
};
enum instance_store_policy { INSTANCE_STORE_UNSET, INSTANCE_STORE_RAID0 };

struct resolved_ami {
    bool deprecated;
    struct str id, name;
    LIST(struct expression) requirements;
};

struct resolved_reservation {
    struct str availability_zone;
    int64_t end_us; /* 0: no end */
    struct str id;
    uint8_t match_criteria; /* enum match_criteria */
    struct str instance_type;
    bool interruptible;
    struct str owner_id;
    uint8_t type;  /* enum reservation_type */
    uint8_t state; /* enum reservation_state */
};
enum reservation_type { RESERVATION_UNSET, RESERVATION_DEFAULT, RESERVATION_CAPACITY_BLOCK };
enum reservation_state { RESERVATION_STATE_UNSET, RESERVATION_ACTIVE, RESERVATION_EXPIRING };

struct resolved_security_group {
    struct str id, name;
};

struct resolved_subnet {
    struct str id, zone, zone_id;
};

struct ec2nodeclass_status {
    LIST(struct resolved_ami) amis;
    LIST(struct resolved_reservation) reservations;
    LIST(struct condition) conditions;
    struct str instance_profile;
    LIST(struct resolved_security_group) security_groups;
    LIST(struct resolved_subnet) subnets;
};

struct ec2nodeclass {
    struct object object;
    struct ec2nodeclass_spec spec;
    struct ec2nodeclass_status status;
};

extern const struct kind ec2nodeclass_kind;
extern const struct schema ec2nodeclass_spec_schema;   /* ec2nodeclass_spec.c */
extern const struct schema ec2nodeclass_status_schema; /* ec2nodeclass.c */

static inline const struct ec2nodeclass *ec2nodeclass_of(const struct object *object)
{
    KV_ASSERT(object->kind == &ec2nodeclass_kind);
    return (const struct ec2nodeclass *)object;
}

/* What the nodes boot: amiFamily if it is set, otherwise the family of the alias. A class with
 * neither, which validation refuses, counts as Custom: nothing is assumed of its images. */
enum ami_family ec2nodeclass_ami_family(const struct ec2nodeclass_spec *spec);
const char *ami_family_name(enum ami_family family); /* "AL2023"; "" for unset */

/* The size that EC2 is told: whole GiB, rounded up. 0: not a size that the schema accepts. */
int64_t ebs_size_gib(struct str size);

/* spec.kubelet as the controller would judge it (ec2nodeclass_kubelet.c). `kubelet` may be NULL. */
void kubelet_check(const json_val *kubelet, enum ami_family family, const struct place *place,
                   struct report *report);

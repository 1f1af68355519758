/* bootstrap/launch_template.h - what EC2 is told about an instance besides its type and subnet.
 *
 * Decided here, from the class and from what was chosen for this launch; the AWS provider only spells
 * it. Pure: equal inputs give equal templates and, by launch_template_name, equal names, so that a
 * template that is there already is found again.
 */
#pragma once

#include "api/ec2nodeclass.h"

/* --- what was chosen --- */

struct launch_choice {
    struct str cluster_name, nodepool, class_name;
    struct str region; /* "us-iso-east-1": some know no IPv6 metadata */
    struct str image_id;
    struct str user_data;               /* rendered, not yet base64; "" is fine */
    struct str instance_profile;        /* spec.instanceProfile, or what was made for spec.role */
    struct str_list security_groups;    /* ids */
    struct str capacity_type;           /* "on-demand", "spot", "reserved" */
    struct str reservation_id;          /* of a reserved one */
    bool capacity_block, interruptible; /* what kind of reservation */
    bool reserved_capacity;             /* the feature gate: reservations are managed */
    struct str tenancy;                 /* absent: default */
    struct str placement_group_id;      /* absent: none */
    struct maybe_int partition;         /* in it */
    uint32_t efa_count;                 /* EFA interfaces that the claim asks for */
    bool ipv6;                          /* the cluster's */
    bool enclaves;                      /* a nitro sandbox is asked for */
};

/* --- what EC2 is told; absent, unset and zero: left out --- */

struct launch_device {
    struct str name;
    bool has_ebs;
    uint8_t delete_on_termination, encrypted; /* enum tri */
    uint8_t type;                             /* enum volume_type */
    int64_t size_gib, iops, throughput, initialization_rate;
    struct str kms_key_id, snapshot_id;
};

struct launch_interface {
    int64_t card_index, device_index;
    const char *type;            /* "efa", "efa-only"; NULL: plain */
    struct str_list groups;      /* ids */
    uint8_t associate_public_ip; /* enum tri */
    struct maybe_int ipv4_prefix_count, ipv6_prefix_count;
    int64_t ipv6_address_count;
    bool primary_ipv6;
    const struct connection_tracking *maybe_tracking;
};

struct launch_template {
    struct str image_id, instance_profile;
    struct str user_data;          /* base64 */
    uint8_t monitoring;            /* enum tri */
    uint8_t nested_virtualization; /* enum on_off */
    bool enclaves;
    LIST(struct launch_device) block_devices;
    LIST(struct launch_interface) interfaces;
    struct {
        uint8_t http_endpoint, http_ipv6; /* enum on_off */
        uint8_t http_tokens;              /* enum http_tokens */
        int64_t hop_limit;
        const char *instance_tags; /* always "disabled" */
    } metadata;
    struct {
        struct str tenancy, group_id;
        struct maybe_int partition;
    } placement;
    struct {
        const char *preference; /* "none", "capacity-reservations-only"; NULL: nothing is said */
        struct str target_id;
    } reservation;
    const char *market_type; /* "capacity-block", "interruptible-capacity-reservation" */
    struct str_map tags;
    bool tags_spot_request; /* besides the network interfaces */
};

/* ERR_INVALID names the field of the class that EC2 would refuse, or what was not resolved yet. */
int launch_template_build(struct arena *arena, const struct ec2nodeclass *class_,
                          const struct launch_choice *choice, struct launch_template *out,
                          struct err *err);

/* "karpenter.k8s.aws/" and 16 hex digits that depend on all of it. */
#define LAUNCH_TEMPLATE_NAME_MAX 40
void launch_template_name(const struct launch_template *t, char out[LAUNCH_TEMPLATE_NAME_MAX]);

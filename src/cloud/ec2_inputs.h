/* cloud/ec2_inputs.h - does an edit of an EC2NodeClass change what its pools can launch?
 *
 * The hash of everything in a node class that the instance types of its pools are computed from: the
 * GENERATION_INPUTS of providers whose classes are EC2NodeClasses. It is made once when a class
 * changes, not on every read of a generation.
 *
 * It is not the hash that drift is judged by (api/hash.h): that one leaves out all of status, where
 * the zones, images and reservations are, and has much in it that no instance type depends on.
 */
#pragma once

#include "api/ec2nodeclass.h"

struct ec2_placement_group { /* as EC2 resolved it; zero-initialised: none */
    struct str id, strategy; /* "pg-1", "partition" */
    int64_t partition_count;
};

struct ec2_inputs {
    const struct ec2nodeclass *class_;
    /* What user data in TOML reserves; empty: nothing. See allocatable_class_of. */
    struct str_map toml_kube_reserved, toml_system_reserved, toml_eviction_hard;
    struct ec2_placement_group placement_group;
};

/* Starts from the class's identity: its reference (as node_class_ref_hash) and its UID, so that
 * neither another class nor a namesake that was made anew has the same. */
uint64_t ec2_inputs_hash(const struct ec2_inputs *inputs);

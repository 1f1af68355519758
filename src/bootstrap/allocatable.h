/* bootstrap/allocatable.h - what a machine offers to pods once it is a node. Pure.
 *
 * One computation, used by the providers when they describe instance types and by whoever shows it:
 *
 *     allocatable = capacity - kube-reserved - system-reserved - eviction threshold
 *
 * In two steps, because a class has a thousand machines: allocatable_prepare reads everything of the
 * class that is written as text, once; allocatable_of is arithmetic, and cannot fail.
 */
#pragma once

#include "api/ec2nodeclass.h"
#include "api/resources.h"
#include "bootstrap/kubelet.h"
#include "bootstrap/machine.h"

#define ANNOTATION_PREFIX_DELEGATION "karve.io/prefix-delegation" /* EC2NodeClass: "true" */

struct allocatable_options {
    /* Share of memory that firmware and kernel keep, in millionths: 75000 is 7.5 %. */
    uint32_t memory_overhead_ppm;
    uint32_t reserved_enis;
};
#define ALLOCATABLE_DEFAULTS ((struct allocatable_options){ .memory_overhead_ppm = 75000 })

/* Of the node class, whatever matters here. Zero-initialised (with a family) is a class without opinions. */
struct allocatable_class {
    enum ami_family family;
    const struct kubelet_config *maybe_kubelet;
    const struct block_device *block_devices;
    uint32_t block_device_count;
    bool raid0;                   /* instanceStorePolicy */
    uint32_t efa_only_interfaces; /* networkInterfaces of type efa-only */
    uint32_t efa_only_on_card0;
    bool has_network_interfaces;
    bool prefix_delegation; /* pods get addresses from /28 prefixes, on nitro */
    /* From user data in TOML, where spec.kubelet leaves them unset; empty: none. */
    struct str_map toml_kube_reserved, toml_system_reserved, toml_eviction_hard;
};

/* The class's side of the computation. The kubelet configuration is read into the arena, and for
 * Bottlerocket the reservations in user data too. */
int allocatable_class_of(struct arena *arena, const struct ec2nodeclass *class_,
                         struct allocatable_class *out, struct err *err);

/* --- the two steps --- */

#define RESERVABLE_COUNT 4 /* cpu, ephemeral-storage, memory, pid: in that order */

struct reservation { /* for each of them, what the class says */
    struct quantity amount[RESERVABLE_COUNT];
    bool set[RESERVABLE_COUNT];
};

struct eviction_threshold {
    bool set;
    bool percent;           /* of the capacity */
    struct quantity amount; /* bytes, or percent; zero: disabled, as 100% is */
};

struct allocatable_rules { /* by value: nothing in it points anywhere but at constants */
    const struct family *family;
    struct allocatable_options options;
    struct reservation kube, system;
    struct eviction_threshold memory, storage;
    struct quantity storage_capacity; /* without the instance's own disks */
    struct maybe_int max_pods, pods_per_core;
    uint32_t efa_only_interfaces, efa_only_on_card0;
    bool raid0, has_network_interfaces, prefix_delegation;
};

/* ERR_INVALID: a quantity or percentage of the class is broken; names it. */
int allocatable_prepare(const struct allocatable_class *class_,
                        const struct allocatable_options *options, struct allocatable_rules *out,
                        struct err *err);

struct node_resources { /* a resource that the node has none of is left out */
    struct resources capacity;
    struct resources kube_reserved, system_reserved, eviction;
    struct resources overhead;    /* their sum; without pid, of which nodes have no capacity */
    struct resources allocatable; /* never negative */
    int64_t pods;
};

/* All of it in the arena; names are constants. */
void allocatable_of(struct arena *arena, const struct allocatable_rules *rules,
                    const struct machine *machine, struct node_resources *out);

/* Both steps, for one machine. */
int allocatable_compute(struct arena *arena, const struct machine *machine,
                        const struct allocatable_class *class_,
                        const struct allocatable_options *options, struct node_resources *out,
                        struct err *err);

/* --- its parts, for tests and for those who need only one --- */

int64_t allocatable_eni_pods(const struct machine *machine, uint32_t reserved_enis,
                             uint32_t efa_only_on_card0);
int64_t allocatable_pods(const struct machine *machine, const struct allocatable_class *class_,
                         const struct allocatable_options *options);

/* bootstrap/machine.h - what is known of an instance type's hardware, whoever says so: EC2 or the
 * built-in catalogue. Capacity, allocatable and labels are computed from it. */
#pragma once

#include "base/str.h"

enum machine_arch { MACHINE_AMD64, MACHINE_ARM64 };

struct machine_gpu {               /* one kind of GPU in the machine */
    struct str name, manufacturer; /* as EC2 says: "A10G", "NVIDIA" */
    uint32_t count;
    uint32_t memory_mib; /* of one */
};

struct machine_accelerator { /* Inferentia, Trainium, ...: NeuronInfo or InferenceAcceleratorInfo */
    struct str name, manufacturer;
    uint32_t count;
    uint32_t cores; /* of one */
    bool neuron;    /* counts as aws.amazon.com/neuron */
};

struct machine {
    struct str name; /* "m7g.xlarge" */
    enum machine_arch arch;
    uint32_t vcpus;
    uint64_t memory_mib;
    struct str cpu_manufacturer; /* "Intel", "AMD", "AWS" */
    uint32_t clock_mhz;          /* sustained; 0: not known */

    uint32_t enis, ipv4_per_eni; /* of the default network card */
    uint32_t card_count;
    uint32_t branch_interfaces; /* vpc.amazonaws.com/pod-eni; 0: cannot trunk */
    uint32_t efa_max;           /* 0: none */
    uint32_t network_mbps;      /* baseline */
    uint32_t ebs_mbps;          /* 0: not EBS-optimized by default */
    bool encryption_in_transit, nitro_enclaves;
    bool nested_virtualization;
    struct str hypervisor; /* "nitro", "xen", "" for bare metal */

    uint32_t local_nvme_gb; /* decimal; 0: none */
    uint32_t local_disk_gb; /* all instance storage, NVMe or not */

    struct machine_gpu gpus[2];
    uint32_t gpu_count; /* kinds */
    struct machine_accelerator accelerators[2];
    uint32_t accelerator_count;

    bool on_demand, spot; /* supported usage classes */
};

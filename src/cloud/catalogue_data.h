/* cloud/catalogue_data.h - how the built-in facts are written down (catalogue_data_*.c).
 *
 * A family says what its sizes have in common; a ladder of sizes is shared by the families that
 * have the same one. What follows a rule is left out: memory and price grow with the vCPUs, and a
 * size states its own only where the list departs from that. catalogue_build.c expands them.
 */
#pragma once

#include "bootstrap/machine.h"
#include "cloud/price.h"

struct catalogue_size {
    const char *name; /* "2xlarge"; bare metal starts with "metal" */
    uint32_t vcpus;
    uint32_t enis, ips; /* interfaces of the default card, IPv4 addresses of each: pods */
    uint32_t branch;    /* interfaces for pods with their own security group; 0: none */
    uint32_t network_mbps, ebs_mbps; /* baseline of all cards; maximum. 0: EC2 states none */

    /* Where zero: none or, for memory, price and cards, as the family's rule has it. */
    uint32_t efa, cards;
    uint32_t memory_gib;
    uint32_t usd_micro; /* per hour, in millionths */
    uint32_t disk_gb;   /* instance storage, all of it */
    uint32_t devices;   /* GPUs or accelerators */
};

enum cpu_maker { CPU_INTEL, CPU_AMD, CPU_AWS /* arm64 */ };

enum family_flags {
    FAMILY_XEN = 1 << 0,         /* older than Nitro, except its metal sizes */
    FAMILY_PLAIN = 1 << 1,       /* traffic between instances is not encrypted by the hardware */
    FAMILY_NO_ENCLAVES = 1 << 2, /* whatever its size */
    FAMILY_CORES = 1 << 3,       /* a vCPU is a whole core, not half of one; always so on arm64 */
    FAMILY_DISK_NOT_NVME = 1 << 4,
    FAMILY_NO_ENA = 1 << 5,
    FAMILY_NO_SPOT = 1 << 6,
    FAMILY_NESTED = 1 << 7, /* virtual machines within */
};

struct catalogue_device {
    const char *name, *maker; /* as EC2 writes them: "A10G", "NVIDIA" */
    uint32_t memory_mib;      /* of a GPU */
    uint32_t neuron_cores;    /* of an accelerator; 0: it is a GPU */
};

struct catalogue_family {
    const char *name; /* "m5" */
    enum cpu_maker maker;
    uint32_t clock_mhz;
    uint32_t mib_per_vcpu;
    uint32_t vcpu_price; /* in 10^-8 dollars per hour */
    const struct catalogue_size *sizes;
    uint32_t size_count;

    uint32_t flags;              /* enum family_flags */
    uint32_t decimals;           /* prices are rounded half up to so many; 0: five */
    uint32_t metal_percent;      /* of the rule's price, for the largest metal size; 0: 100 */
    uint32_t half_metal_percent; /* for a metal size that is half the machine */
    uint32_t metal_usd_micro;    /* instead of the largest metal size's percentage */
    const uint32_t *disks_gb;    /* per size; NULL: what the sizes say */
    const struct catalogue_device *device;
    uint32_t spot_permille;
    uint32_t zones; /* bit i: offered in a region's i-th zone */
};

/* Constants, folded by the compiler: USD(0.096) is 96000. */
#define USD(dollars) ((uint32_t)((dollars)*1e6 + 0.5))
#define PER_VCPU(dollars) ((uint32_t)((dollars)*1e8 + 0.5))
#define GIB(n) ((uint32_t)((n)*1024))
#define LADDER(array) (array), KV_COUNT_OF(array)

/* Which zones of a region have a family: an approximation, see docs/catalogue.md. */
enum {
    ZONES_ALL = 0x3f,
    ZONES_MOST = 0x2f, /* all but the fifth: in us-east-1 it gets nothing new */
    ZONES_FOUR = 0x0f,
    ZONES_THREE = 0x07,
    ZONES_TWO = 0x06,
    ZONES_ONE = 0x02,
};

struct catalogue_families {
    const struct catalogue_family *items;
    uint32_t count;
};
extern const struct catalogue_families catalogue_general, catalogue_compute, catalogue_memory,
    catalogue_storage, catalogue_accelerated;

/* Ladders that families of several groups share (catalogue_data_sizes.c). */
#define SIZES_5 9
#define SIZES_5A 8
#define SIZES_5N 9
#define SIZES_6G 9
#define SIZES_6I 10
#define SIZES_6A 11
#define SIZES_6IN 10
#define SIZES_7G 9
#define SIZES_7I 11
#define SIZES_7A 12
#define SIZES_7I_FLEX 7
#define SIZES_8G 12
#define SIZES_8GN 12
#define SIZES_8I 13
#define SIZES_8A 12
#define SIZES_8I_FLEX 7
extern const struct catalogue_size sizes_5[SIZES_5], sizes_5a[SIZES_5A], sizes_5n[SIZES_5N];
extern const struct catalogue_size sizes_6g[SIZES_6G], sizes_6i[SIZES_6I], sizes_6a[SIZES_6A],
    sizes_6in[SIZES_6IN];
extern const struct catalogue_size sizes_7g[SIZES_7G], sizes_7i[SIZES_7I], sizes_7a[SIZES_7A],
    sizes_7i_flex[SIZES_7I_FLEX];
extern const struct catalogue_size sizes_8g[SIZES_8G], sizes_8gn[SIZES_8GN], sizes_8i[SIZES_8I],
    sizes_8a[SIZES_8A], sizes_8i_flex[SIZES_8I_FLEX];

/* Instance storage of their variants with disks. */
extern const uint32_t disks_5d[SIZES_5], disks_6gd[SIZES_6G], disks_6id[SIZES_6I],
    disks_8gd[SIZES_8G], disks_8id[SIZES_8I];

/* Burstable and general purpose families: t, m and a. Prices are us-east-1's, per vCPU and hour;
 * m5.large, with two, costs 2 x 0.048. */
#include "cloud/catalogue_data.h"

/* clang-format off */

/* t: prices double with the size, memory has steps of its own */
static const struct catalogue_size sizes_t2[] = {
    { "nano",    1, 2,  2, 0, 0, 0, .memory_gib = 0,  .usd_micro = USD(0.0058) }, /* half a GiB */
    { "micro",   1, 2,  2, 0, 0, 0, .memory_gib = 1,  .usd_micro = USD(0.0116) },
    { "small",   1, 3,  4, 0, 0, 0, .memory_gib = 2,  .usd_micro = USD(0.023) },
    { "medium",  2, 3,  6, 0, 0, 0, .memory_gib = 4,  .usd_micro = USD(0.0464) },
    { "large",   2, 3, 12, 0, 0, 0, .memory_gib = 8,  .usd_micro = USD(0.0928) },
    { "xlarge",  4, 3, 15, 0, 0, 0, .memory_gib = 16, .usd_micro = USD(0.1856) },
    { "2xlarge", 8, 3, 15, 0, 0, 0, .memory_gib = 32, .usd_micro = USD(0.3712) },
};

#define SIZES_T(small_enis, nano, micro, small, medium, large, xlarge, xlarge2)                    \
    {                                                                                              \
        { "nano",    2, 2,  2, 0,   32, 2085, .memory_gib = 0,  .usd_micro = USD(nano) },          \
        { "micro",   2, 2,  2, 0,   64, 2085, .memory_gib = 1,  .usd_micro = USD(micro) },         \
        { "small",   2, small_enis, 4, 0, 128, 2085, .memory_gib = 2, .usd_micro = USD(small) },   \
        { "medium",  2, 3,  6, 0,  256, 2085, .memory_gib = 4,  .usd_micro = USD(medium) },        \
        { "large",   2, 3, 12, 0,  512, 2780, .memory_gib = 8,  .usd_micro = USD(large) },         \
        { "xlarge",  4, 4, 15, 0, 1024, 2780, .memory_gib = 16, .usd_micro = USD(xlarge) },        \
        { "2xlarge", 8, 4, 15, 0, 2048, 2780, .memory_gib = 32, .usd_micro = USD(xlarge2) },       \
    }
static const struct catalogue_size sizes_t3[] =
    SIZES_T(3, 0.0052, 0.0104, 0.0208, 0.0416, 0.0832, 0.1664, 0.3328);
static const struct catalogue_size sizes_t3a[] =
    SIZES_T(2, 0.0047, 0.0094, 0.0188, 0.0376, 0.0752, 0.1504, 0.3008);
static const struct catalogue_size sizes_t4g[] =
    SIZES_T(3, 0.0042, 0.0084, 0.0168, 0.0336, 0.0672, 0.1344, 0.2688);

static const struct catalogue_size sizes_a1[] = {
    { "medium",   1, 2,  4, 10,  500, 3500 },
    { "large",    2, 3, 10,  9,  750, 3500 },
    { "xlarge",   4, 4, 15, 18, 1250, 3500 },
    { "2xlarge",  8, 4, 15, 38, 2500, 3500 },
    { "4xlarge", 16, 8, 30, 54, 5000, 3500 },
    { "metal",   16, 8, 30, 54, 5000, 3500 },
};

static const struct catalogue_size sizes_m4[] = {
    { "large",     2, 2, 10, 0,     0,   450 },
    { "xlarge",    4, 4, 15, 0,     0,   750 },
    { "2xlarge",   8, 4, 15, 0,     0,  1000 },
    { "4xlarge",  16, 8, 30, 0,     0,  2000 },
    { "10xlarge", 40, 8, 30, 0, 10000,  4000 },
    { "16xlarge", 64, 8, 30, 0, 25000, 10000 },
};

static const struct catalogue_size sizes_m5zn[] = {
    { "large",     2,  3, 10,  13,   3000,  3170 },
    { "xlarge",    4,  4, 15,  29,   5000,  3170 },
    { "2xlarge",   8,  4, 15,  62,  10000,  3170 },
    { "3xlarge",  12,  8, 30,  92,  15000,  4750 },
    { "6xlarge",  24,  8, 30, 114,  50000,  9500 },
    { "12xlarge", 48, 15, 50, 107, 100000, 19000, 1 },
    { "metal",    48, 15, 50, 107, 100000, 19000, 1 },
};

static const struct catalogue_family families[] = {
    { "a1", CPU_AWS, 2300, GIB(2), PER_VCPU(0.0255), LADDER(sizes_a1),
      .flags = FAMILY_PLAIN | FAMILY_NO_ENCLAVES, .spot_permille = 390, .zones = ZONES_FOUR },

    /* nano is the only size with half a GiB: the ratio is that of t2's single vCPU, or t3's two */
    { "t2", CPU_INTEL, 2300, GIB(0.5), 0, LADDER(sizes_t2),
      .flags = FAMILY_XEN | FAMILY_PLAIN | FAMILY_NO_ENCLAVES | FAMILY_NO_ENA,
      .spot_permille = 350, .zones = ZONES_ALL },
    { "t3", CPU_INTEL, 2500, GIB(0.25), 0, LADDER(sizes_t3),
      .flags = FAMILY_PLAIN | FAMILY_NO_ENCLAVES, .spot_permille = 380, .zones = ZONES_MOST },
    { "t3a", CPU_AMD, 2200, GIB(0.25), 0, LADDER(sizes_t3a),
      .flags = FAMILY_PLAIN | FAMILY_NO_ENCLAVES, .spot_permille = 400, .zones = ZONES_MOST },
    { "t4g", CPU_AWS, 2500, GIB(0.25), 0, LADDER(sizes_t4g),
      .flags = FAMILY_PLAIN | FAMILY_NO_ENCLAVES, .spot_permille = 390, .zones = ZONES_MOST },

    { "m4", CPU_INTEL, 2300, GIB(4), PER_VCPU(0.05), LADDER(sizes_m4),
      .flags = FAMILY_XEN | FAMILY_PLAIN | FAMILY_NO_ENA, .spot_permille = 420,
      .zones = ZONES_ALL },

    { "m5", CPU_INTEL, 3100, GIB(4), PER_VCPU(0.048), LADDER(sizes_5),
      .flags = FAMILY_PLAIN, .spot_permille = 410, .zones = ZONES_MOST },
    { "m5d", CPU_INTEL, 3100, GIB(4), PER_VCPU(0.0565), LADDER(sizes_5), .disks_gb = disks_5d,
      .flags = FAMILY_PLAIN, .spot_permille = 380, .zones = ZONES_MOST },
    { "m5a", CPU_AMD, 2500, GIB(4), PER_VCPU(0.043), LADDER(sizes_5a),
      .flags = FAMILY_PLAIN, .spot_permille = 430, .zones = ZONES_MOST },
    { "m5ad", CPU_AMD, 2200, GIB(4), PER_VCPU(0.0515), LADDER(sizes_5a), .disks_gb = disks_5d,
      .flags = FAMILY_PLAIN, .spot_permille = 390, .zones = ZONES_MOST },
    { "m5n", CPU_INTEL, 3100, GIB(4), PER_VCPU(0.0595), LADDER(sizes_5n),
      .spot_permille = 360, .zones = ZONES_MOST },
    { "m5dn", CPU_INTEL, 3100, GIB(4), PER_VCPU(0.068), LADDER(sizes_5n), .disks_gb = disks_5d,
      .spot_permille = 350, .zones = ZONES_MOST },
    { "m5zn", CPU_INTEL, 4500, GIB(4), PER_VCPU(0.082585), LADDER(sizes_m5zn), .decimals = 4,
      .metal_percent = 110, .spot_permille = 370, .zones = ZONES_THREE },

    { "m6i", CPU_INTEL, 3500, GIB(4), PER_VCPU(0.048), LADDER(sizes_6i),
      .spot_permille = 400, .zones = ZONES_MOST },
    { "m6id", CPU_INTEL, 3500, GIB(4), PER_VCPU(0.059325), LADDER(sizes_6i),
      .disks_gb = disks_6id, .spot_permille = 370, .zones = ZONES_MOST },
    { "m6in", CPU_INTEL, 3500, GIB(4), PER_VCPU(0.069615), LADDER(sizes_6in),
      .spot_permille = 340, .zones = ZONES_FOUR },
    { "m6idn", CPU_INTEL, 3500, GIB(4), PER_VCPU(0.07956), LADDER(sizes_6in),
      .disks_gb = disks_6id, .spot_permille = 330, .zones = ZONES_FOUR },
    { "m6a", CPU_AMD, 3600, GIB(4), PER_VCPU(0.0432), LADDER(sizes_6a),
      .spot_permille = 420, .zones = ZONES_MOST },
    { "m6g", CPU_AWS, 2500, GIB(4), PER_VCPU(0.0385), LADDER(sizes_6g), .decimals = 4,
      .metal_usd_micro = USD(2.6112), .flags = FAMILY_PLAIN, .spot_permille = 410,
      .zones = ZONES_MOST },
    { "m6gd", CPU_AWS, 2500, GIB(4), PER_VCPU(0.0452), LADDER(sizes_6g), .decimals = 4,
      .disks_gb = disks_6gd, .metal_percent = 106, .flags = FAMILY_PLAIN, .spot_permille = 380,
      .zones = ZONES_MOST },

    { "m7i", CPU_INTEL, 3200, GIB(4), PER_VCPU(0.0504), LADDER(sizes_7i),
      .half_metal_percent = 110, .spot_permille = 390, .zones = ZONES_MOST },
    { "m7i-flex", CPU_INTEL, 3200, GIB(4), PER_VCPU(0.04788), LADDER(sizes_7i_flex),
      .spot_permille = 400, .zones = ZONES_MOST },
    { "m7a", CPU_AMD, 3700, GIB(4), PER_VCPU(0.05796), LADDER(sizes_7a),
      .flags = FAMILY_CORES, .spot_permille = 370, .zones = ZONES_FOUR },
    { "m7g", CPU_AWS, 2600, GIB(4), PER_VCPU(0.0408), LADDER(sizes_7g),
      .spot_permille = 400, .zones = ZONES_MOST },
    { "m7gd", CPU_AWS, 2600, GIB(4), PER_VCPU(0.0533925), LADDER(sizes_7g), .decimals = 4,
      .disks_gb = disks_6gd, .spot_permille = 360, .zones = ZONES_FOUR },

    { "m8i", CPU_INTEL, 3900, GIB(4), PER_VCPU(0.05292), LADDER(sizes_8i),
      .flags = FAMILY_NESTED, .spot_permille = 380, .zones = ZONES_FOUR },
    { "m8id", CPU_INTEL, 3900, GIB(4), PER_VCPU(0.06526), LADDER(sizes_8i),
      .disks_gb = disks_8id, .spot_permille = 370, .zones = ZONES_THREE },
    { "m8i-flex", CPU_INTEL, 3900, GIB(4), PER_VCPU(0.050275), LADDER(sizes_8i_flex),
      .flags = FAMILY_NESTED, .spot_permille = 390, .zones = ZONES_FOUR },
    { "m8a", CPU_AMD, 4500, GIB(4), PER_VCPU(0.06086), LADDER(sizes_8a),
      .half_metal_percent = 110, .flags = FAMILY_CORES, .spot_permille = 370, .zones = ZONES_FOUR },
    { "m8g", CPU_AWS, 2800, GIB(4), PER_VCPU(0.04488), LADDER(sizes_8g),
      .half_metal_percent = 110, .spot_permille = 390, .zones = ZONES_FOUR },
    { "m8gd", CPU_AWS, 2800, GIB(4), PER_VCPU(0.05766), LADDER(sizes_8g),
      .disks_gb = disks_8gd, .half_metal_percent = 110, .spot_permille = 360,
      .zones = ZONES_THREE },
    { "m8gn", CPU_AWS, 2800, GIB(4), PER_VCPU(0.07275), sizes_8gn, 10, .decimals = 4,
      .spot_permille = 350, .zones = ZONES_THREE },
};

const struct catalogue_families catalogue_general = { families, KV_COUNT_OF(families) };

/* Compute optimized families: c, and hpc. Prices are us-east-1's, per vCPU and hour. */
#include "cloud/catalogue_data.h"

/* clang-format off */

static const struct catalogue_size sizes_c4[] = {
    { "large",    2, 3, 10, 0,     0,  500, .usd_micro = USD(0.1) },
    { "xlarge",   4, 4, 15, 0,     0,  750, .usd_micro = USD(0.199) },
    { "2xlarge",  8, 4, 15, 0,     0, 1000, .usd_micro = USD(0.398) },
    { "4xlarge", 16, 8, 30, 0,     0, 2000, .usd_micro = USD(0.796) },
    { "8xlarge", 36, 8, 30, 0, 10000, 4000, .usd_micro = USD(1.591), .memory_gib = 60 },
};

static const struct catalogue_size sizes_c5[] = {
    { "large",     2,  3, 10,   9,   750,  4750 },
    { "xlarge",    4,  4, 15,  18,  1250,  4750 },
    { "2xlarge",   8,  4, 15,  38,  2500,  4750 },
    { "4xlarge",  16,  8, 30,  54,  5000,  4750 },
    { "9xlarge",  36,  8, 30,  54, 12000,  9500 },
    { "12xlarge", 48,  8, 30,  54, 12000,  9500 },
    { "18xlarge", 72, 15, 50, 107, 25000, 19000 },
    { "24xlarge", 96, 15, 50, 107, 25000, 19000 },
    { "metal",    96, 15, 50, 107, 25000, 19000 },
};
static const uint32_t disks_c5d[] = { 50, 100, 200, 400, 900, 1800, 1800, 3600, 3600 };

static const struct catalogue_size sizes_c5a[] = {
    { "large",     2,  3, 10,   9,   750, 3170 },
    { "xlarge",    4,  4, 15,  18,  1250, 3170 },
    { "2xlarge",   8,  4, 15,  38,  2500, 3170 },
    { "4xlarge",  16,  8, 30,  54,  5000, 3170 },
    { "8xlarge",  32,  8, 30,  54, 10000, 3170 },
    { "12xlarge", 48,  8, 30,  54, 12000, 4750 },
    { "16xlarge", 64, 15, 50, 107, 20000, 6300 },
    { "24xlarge", 96, 15, 50, 107, 20000, 9500 },
};
static const uint32_t disks_c5ad[] = { 75, 150, 300, 600, 1200, 1800, 2400, 3800 };

static const struct catalogue_size sizes_c5n[] = {
    { "large",     2,  3, 10,   9,   3000,  4750 },
    { "xlarge",    4,  4, 15,  18,   5000,  4750 },
    { "2xlarge",   8,  4, 15,  38,  10000,  4750 },
    { "4xlarge",  16,  8, 30,  54,  15000,  4750 },
    { "9xlarge",  36,  8, 30,  54,  50000,  9500, 1, .memory_gib = 96 },
    { "18xlarge", 72, 15, 50, 107, 100000, 19000, 1, .memory_gib = 192 },
    { "metal",    72, 15, 50, 107, 100000, 19000, 1, .memory_gib = 192 },
};

static const struct catalogue_size sizes_c6gn[] = {
    { "medium",    1,  2,  4,   4,   1600,  9500 },
    { "large",     2,  3, 10,   9,   3000,  9500 },
    { "xlarge",    4,  4, 15,  18,   6300,  9500 },
    { "2xlarge",   8,  4, 15,  38,  12500,  9500 },
    { "4xlarge",  16,  8, 30,  54,  25000,  9500 },
    { "8xlarge",  32,  8, 30,  54,  50000, 19000 },
    { "12xlarge", 48,  8, 30,  54,  75000, 28500 },
    { "16xlarge", 64, 15, 50, 107, 100000, 38000, 1 },
};

static const struct catalogue_size sizes_c7gn[] = {
    { "medium",    1,  2,  4,   4,   3125, 10000 },
    { "large",     2,  3, 10,   9,   6250, 10000 },
    { "xlarge",    4,  4, 15,  18,  12500, 10000 },
    { "2xlarge",   8,  4, 15,  38,  25000, 10000 },
    { "4xlarge",  16,  8, 30,  54,  50000, 10000 },
    { "8xlarge",  32,  8, 30,  54, 100000, 20000 },
    { "12xlarge", 48,  8, 30,  54, 150000, 30000 },
    { "16xlarge", 64, 15, 50, 107, 200000, 40000, 1 },
    { "metal",    64, 15, 50, 107, 200000, 40000, 1 },
};

/* One machine in three cuts of its cores, all at the price of the whole. */
static const struct catalogue_size sizes_hpc7g[] = {
    { "4xlarge",  16, 4, 50, 0, 200000, 2085, 1, .memory_gib = 128, .usd_micro = USD(1.6832) },
    { "8xlarge",  32, 4, 50, 0, 200000, 2085, 1, .memory_gib = 128, .usd_micro = USD(1.6832) },
    { "16xlarge", 64, 4, 50, 0, 200000, 2085, 1, .memory_gib = 128, .usd_micro = USD(1.6832) },
};

static const struct catalogue_family families[] = {
    { "c4", CPU_INTEL, 2900, GIB(1.875), 0, LADDER(sizes_c4),
      .flags = FAMILY_XEN | FAMILY_PLAIN | FAMILY_NO_ENA, .spot_permille = 430,
      .zones = ZONES_ALL },

    { "c5", CPU_INTEL, 3400, GIB(2), PER_VCPU(0.0425), LADDER(sizes_c5),
      .flags = FAMILY_PLAIN, .spot_permille = 420, .zones = ZONES_MOST },
    { "c5d", CPU_INTEL, 3400, GIB(2), PER_VCPU(0.048), LADDER(sizes_c5), .disks_gb = disks_c5d,
      .flags = FAMILY_PLAIN, .spot_permille = 400, .zones = ZONES_MOST },
    { "c5a", CPU_AMD, 3300, GIB(2), PER_VCPU(0.0385), LADDER(sizes_c5a),
      .spot_permille = 430, .zones = ZONES_MOST },
    { "c5ad", CPU_AMD, 3300, GIB(2), PER_VCPU(0.043), LADDER(sizes_c5a), .disks_gb = disks_c5ad,
      .spot_permille = 400, .zones = ZONES_FOUR },
    { "c5n", CPU_INTEL, 3400, GIB(2.625), PER_VCPU(0.054), LADDER(sizes_c5n),
      .spot_permille = 370, .zones = ZONES_MOST },

    { "c6i", CPU_INTEL, 3500, GIB(2), PER_VCPU(0.0425), LADDER(sizes_6i),
      .spot_permille = 410, .zones = ZONES_MOST },
    { "c6id", CPU_INTEL, 3500, GIB(2), PER_VCPU(0.0504), LADDER(sizes_6i),
      .disks_gb = disks_6id, .spot_permille = 380, .zones = ZONES_MOST },
    { "c6in", CPU_INTEL, 3500, GIB(2), PER_VCPU(0.0567), LADDER(sizes_6in),
      .spot_permille = 350, .zones = ZONES_MOST },
    { "c6a", CPU_AMD, 3600, GIB(2), PER_VCPU(0.03825), LADDER(sizes_6a),
      .spot_permille = 430, .zones = ZONES_MOST },
    { "c6g", CPU_AWS, 2500, GIB(2), PER_VCPU(0.034), LADDER(sizes_6g), .decimals = 4,
      .metal_percent = 106, .flags = FAMILY_PLAIN, .spot_permille = 420, .zones = ZONES_MOST },
    { "c6gd", CPU_AWS, 2500, GIB(2), PER_VCPU(0.0384), LADDER(sizes_6g), .decimals = 4,
      .disks_gb = disks_6gd, .metal_percent = 106, .flags = FAMILY_PLAIN, .spot_permille = 390,
      .zones = ZONES_MOST },
    { "c6gn", CPU_AWS, 2500, GIB(2), PER_VCPU(0.0432), LADDER(sizes_c6gn),
      .spot_permille = 380, .zones = ZONES_MOST },

    { "c7i", CPU_INTEL, 3200, GIB(2), PER_VCPU(0.044625), LADDER(sizes_7i),
      .half_metal_percent = 110, .spot_permille = 400, .zones = ZONES_MOST },
    { "c7i-flex", CPU_INTEL, 3200, GIB(2), PER_VCPU(0.04239375), LADDER(sizes_7i_flex),
      .spot_permille = 410, .zones = ZONES_MOST },
    { "c7a", CPU_AMD, 3700, GIB(2), PER_VCPU(0.05132), LADDER(sizes_7a),
      .flags = FAMILY_CORES, .spot_permille = 380, .zones = ZONES_FOUR },
    { "c7g", CPU_AWS, 2600, GIB(2), PER_VCPU(0.03625), LADDER(sizes_7g), .decimals = 4,
      .spot_permille = 410, .zones = ZONES_MOST },
    { "c7gd", CPU_AWS, 2600, GIB(2), PER_VCPU(0.04536), LADDER(sizes_7g), .decimals = 4,
      .disks_gb = disks_6gd, .spot_permille = 370, .zones = ZONES_FOUR },
    { "c7gn", CPU_AWS, 2600, GIB(2), PER_VCPU(0.0624), LADDER(sizes_c7gn),
      .spot_permille = 350, .zones = ZONES_FOUR },

    { "c8i", CPU_INTEL, 3900, GIB(2), PER_VCPU(0.046855), LADDER(sizes_8i),
      .half_metal_percent = 110, .flags = FAMILY_NESTED, .spot_permille = 390,
      .zones = ZONES_FOUR },
    { "c8id", CPU_INTEL, 3900, GIB(2), PER_VCPU(0.05544), LADDER(sizes_8i),
      .disks_gb = disks_8id, .half_metal_percent = 110, .spot_permille = 370,
      .zones = ZONES_THREE },
    { "c8i-flex", CPU_INTEL, 3900, GIB(2), PER_VCPU(0.04451), LADDER(sizes_8i_flex),
      .flags = FAMILY_NESTED, .spot_permille = 400, .zones = ZONES_FOUR },
    { "c8a", CPU_AMD, 4500, GIB(2), PER_VCPU(0.053885), LADDER(sizes_8a),
      .half_metal_percent = 110, .flags = FAMILY_CORES, .spot_permille = 380, .zones = ZONES_FOUR },
    { "c8g", CPU_AWS, 2800, GIB(2), PER_VCPU(0.03988), LADDER(sizes_8g),
      .half_metal_percent = 110, .spot_permille = 400, .zones = ZONES_FOUR },
    { "c8gd", CPU_AWS, 2800, GIB(2), PER_VCPU(0.04899), LADDER(sizes_8g),
      .disks_gb = disks_8gd, .half_metal_percent = 110, .spot_permille = 370,
      .zones = ZONES_THREE },
    { "c8gn", CPU_AWS, 2800, GIB(2), PER_VCPU(0.05925), LADDER(sizes_8gn), .decimals = 4,
      .half_metal_percent = 106, .spot_permille = 360, .zones = ZONES_THREE },

    { "hpc7g", CPU_AWS, 2600, GIB(2), 0, LADDER(sizes_hpc7g),
      .flags = FAMILY_NO_SPOT | FAMILY_NO_ENCLAVES, .zones = ZONES_ONE },
};

const struct catalogue_families catalogue_compute = { families, KV_COUNT_OF(families) };

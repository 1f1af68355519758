/* Memory optimized families: r, x, z and u. Prices are us-east-1's, per vCPU and hour. */
#include "cloud/catalogue_data.h"

/* clang-format off */

static const struct catalogue_size sizes_r4[] = {
    { "large",     2,  3, 10, 0,   750,   425 },
    { "xlarge",    4,  4, 15, 0,  1250,   850 },
    { "2xlarge",   8,  4, 15, 0,  2500,  1700 },
    { "4xlarge",  16,  8, 30, 0,  5000,  3500 },
    { "8xlarge",  32,  8, 30, 0, 10000,  7000 },
    { "16xlarge", 64, 15, 50, 0, 25000, 14000 },
};

static const struct catalogue_size sizes_r5b[] = {
    { "large",     2,  3, 10,   9,   750, 10000 },
    { "xlarge",    4,  4, 15,  18,  1250, 10000 },
    { "2xlarge",   8,  4, 15,  38,  2500, 10000 },
    { "4xlarge",  16,  8, 30,  54,  5000, 10000 },
    { "8xlarge",  32,  8, 30,  54, 10000, 20000 },
    { "12xlarge", 48,  8, 30,  54, 12000, 30000 },
    { "16xlarge", 64, 15, 50, 107, 20000, 40000 },
    { "24xlarge", 96, 15, 50, 107, 25000, 60000 },
    { "metal",    96, 15, 50, 107, 25000, 60000 },
};

static const struct catalogue_size sizes_r7iz[] = {
    { "large",        2,  3, 10,   9,   781, 10000 },
    { "xlarge",       4,  4, 15,  18,  1562, 10000 },
    { "2xlarge",      8,  4, 15,  38,  3125, 10000 },
    { "4xlarge",     16,  8, 30,  54,  6250, 10000 },
    { "8xlarge",     32,  8, 30,  84, 12500, 10000 },
    { "12xlarge",    48,  8, 30, 114, 25000, 19000 },
    { "16xlarge",    64, 15, 50, 107, 25000, 20000 },
    { "32xlarge",   128, 15, 50, 107, 50000, 40000, 1 },
    { "metal-16xl",  64, 15, 50, 107, 25000, 20000 },
    { "metal-32xl", 128, 15, 50, 107, 50000, 40000, 1 },
};

static const struct catalogue_size sizes_x1[] = {
    { "16xlarge",  64, 8, 30, 0, 10000,  7000, .disk_gb = 1920 },
    { "32xlarge", 128, 8, 30, 0, 25000, 14000, .disk_gb = 3840 },
};

static const struct catalogue_size sizes_x1e[] = {
    { "xlarge",     4, 3, 10, 0,   625,   500, .disk_gb = 120 },
    { "2xlarge",    8, 4, 15, 0,  1250,  1000, .disk_gb = 240 },
    { "4xlarge",   16, 4, 15, 0,  2500,  1750, .disk_gb = 480 },
    { "8xlarge",   32, 4, 15, 0,  5000,  3500, .disk_gb = 960 },
    { "16xlarge",  64, 8, 30, 0, 10000,  7000, .disk_gb = 1920 },
    { "32xlarge", 128, 8, 30, 0, 25000, 14000, .disk_gb = 3840 },
};

static const struct catalogue_size sizes_x2gd[] = {
    { "medium",    1,  2,  4,   4,   500,  4750 },
    { "large",     2,  3, 10,   9,   750,  4750 },
    { "xlarge",    4,  4, 15,  18,  1250,  4750 },
    { "2xlarge",   8,  4, 15,  38,  2500,  4750 },
    { "4xlarge",  16,  8, 30,  54,  5000,  4750 },
    { "8xlarge",  32,  8, 30,  54, 12000,  9500 },
    { "12xlarge", 48,  8, 30,  54, 20000, 14250 },
    { "16xlarge", 64, 15, 50, 107, 25000, 19000 },
    { "metal",    64, 15, 50, 107, 25000, 19000 },
};

static const struct catalogue_size sizes_x2idn[] = {
    { "16xlarge",  64, 15, 50, 107,  50000, 40000,    .disk_gb = 1900 },
    { "24xlarge",  96, 15, 50, 107,  75000, 60000,    .disk_gb = 2850 },
    { "32xlarge", 128, 15, 50, 107, 100000, 80000, 1, .disk_gb = 3800 },
    { "metal",    128, 15, 50, 107, 100000, 80000, 1, .disk_gb = 3800 },
};

static const struct catalogue_size sizes_x2iedn[] = {
    { "xlarge",     4,  4, 15,  11,   1875, 20000,    .disk_gb = 118 },
    { "2xlarge",    8,  4, 15,  27,   5000, 20000,    .disk_gb = 237 },
    { "4xlarge",   16,  8, 30,  54,  12500, 20000,    .disk_gb = 475 },
    { "8xlarge",   32,  8, 30, 114,  25000, 20000,    .disk_gb = 950 },
    { "16xlarge",  64, 15, 50, 107,  50000, 40000,    .disk_gb = 1900 },
    { "24xlarge",  96, 15, 50, 107,  75000, 60000,    .disk_gb = 2850 },
    { "32xlarge", 128, 15, 50, 107, 100000, 80000, 1, .disk_gb = 3800 },
    { "metal",    128, 15, 50, 107, 100000, 80000, 1, .disk_gb = 3800 },
};

static const struct catalogue_size sizes_x2iezn[] = {
    { "2xlarge",   8,  4, 15,  62,  12500,  3170 },
    { "4xlarge",  16,  8, 30, 114,  15000,  4750 },
    { "6xlarge",  24,  8, 30, 114,  50000,  9500 },
    { "8xlarge",  32,  8, 30, 114,  75000, 12000 },
    { "12xlarge", 48, 15, 50, 107, 100000, 19000, 1 },
    { "metal",    48, 15, 50, 107, 100000, 19000, 1 },
};

static const struct catalogue_size sizes_z1d[] = {
    { "large",     2,  3, 10,  13,   750,  3170, .disk_gb = 75 },
    { "xlarge",    4,  4, 15,  28,  1250,  3170, .disk_gb = 150 },
    { "2xlarge",   8,  4, 15,  58,  2500,  3170, .disk_gb = 300 },
    { "3xlarge",  12,  8, 30,  54,  5000,  4750, .disk_gb = 450 },
    { "6xlarge",  24,  8, 30,  54, 12000,  9500, .disk_gb = 900 },
    { "12xlarge", 48, 15, 50, 107, 25000, 19000, .disk_gb = 1800 },
    { "metal",    48, 15, 50, 107, 25000, 19000, .disk_gb = 1800 },
};

/* u: a machine each, so a family each. The number in the name is its memory in TiB. */
#define U(id, tib, dollars, ...)                                                                   \
    static const struct catalogue_size sizes_##id[] = {                                            \
        { __VA_ARGS__, .memory_gib = (tib)*1024, .usd_micro = USD(dollars) }                       \
    }
U(u_3tb1, 3, 27.3, "56xlarge", 224, 8, 30, 6, 50000, 19000);
static const struct catalogue_size sizes_u_6tb1[] = {
    { "56xlarge",  224, 15, 50, 0, 100000, 38000, .memory_gib = 6144, .usd_micro = USD(46.40391) },
    { "112xlarge", 448, 15, 50, 0, 100000, 38000, .memory_gib = 6144, .usd_micro = USD(54.6) },
};
U(u_9tb1, 9, 81.9, "112xlarge", 448, 15, 50, 0, 100000, 38000);
U(u_12tb1, 12, 109.2, "112xlarge", 448, 15, 50, 0, 100000, 38000);
U(u_18tb1, 18, 163.8, "112xlarge", 448, 15, 50, 0, 100000, 38000);
U(u_24tb1, 24, 218.4, "112xlarge", 448, 15, 50, 0, 100000, 38000);
U(u7i_6tb, 6, 62.79, "112xlarge", 448, 15, 50, 0, 100000, 100000);
U(u7i_8tb, 8, 83.72, "112xlarge", 448, 15, 50, 0, 100000, 100000);
U(u7i_12tb, 12, 125.58182, "224xlarge", 896, 15, 50, 0, 100000, 100000);
U(u7in_16tb, 16, 180.47558, "224xlarge", 896, 8, 50, 0, 200000, 100000, 2, 2);
U(u7in_24tb, 24, 270.73128, "224xlarge", 896, 8, 50, 0, 200000, 100000, 2, 2);
U(u7in_32tb, 32, 360.98695, "224xlarge", 896, 8, 50, 0, 200000, 100000, 2, 2);
#define U_FAMILY(name, id, clock)                                                                  \
    { name, CPU_INTEL, clock, 0, 0, LADDER(sizes_##id),                                            \
      .flags = FAMILY_NO_SPOT | FAMILY_NO_ENCLAVES, .zones = ZONES_TWO }

static const struct catalogue_family families[] = {
    { "r4", CPU_INTEL, 2300, GIB(7.625), PER_VCPU(0.0665), LADDER(sizes_r4),
      .flags = FAMILY_XEN | FAMILY_PLAIN, .spot_permille = 380, .zones = ZONES_ALL },

    { "r5", CPU_INTEL, 3100, GIB(8), PER_VCPU(0.063), LADDER(sizes_5),
      .flags = FAMILY_PLAIN, .spot_permille = 400, .zones = ZONES_MOST },
    { "r5d", CPU_INTEL, 3100, GIB(8), PER_VCPU(0.072), LADDER(sizes_5), .disks_gb = disks_5d,
      .flags = FAMILY_PLAIN, .spot_permille = 370, .zones = ZONES_MOST },
    { "r5a", CPU_AMD, 2500, GIB(8), PER_VCPU(0.0565), LADDER(sizes_5a),
      .flags = FAMILY_PLAIN, .spot_permille = 420, .zones = ZONES_MOST },
    { "r5ad", CPU_AMD, 2200, GIB(8), PER_VCPU(0.0655), LADDER(sizes_5a), .disks_gb = disks_5d,
      .flags = FAMILY_PLAIN, .spot_permille = 390, .zones = ZONES_MOST },
    { "r5b", CPU_INTEL, 3100, GIB(8), PER_VCPU(0.0745), LADDER(sizes_r5b),
      .metal_percent = 110, .flags = FAMILY_PLAIN, .spot_permille = 370, .zones = ZONES_FOUR },
    { "r5n", CPU_INTEL, 3100, GIB(8), PER_VCPU(0.0745), LADDER(sizes_5n),
      .spot_permille = 360, .zones = ZONES_MOST },
    { "r5dn", CPU_INTEL, 3100, GIB(8), PER_VCPU(0.0835), LADDER(sizes_5n),
      .disks_gb = disks_5d, .spot_permille = 350, .zones = ZONES_MOST },

    { "r6i", CPU_INTEL, 3500, GIB(8), PER_VCPU(0.063), LADDER(sizes_6i),
      .spot_permille = 390, .zones = ZONES_MOST },
    { "r6id", CPU_INTEL, 3500, GIB(8), PER_VCPU(0.0756), LADDER(sizes_6i),
      .disks_gb = disks_6id, .spot_permille = 360, .zones = ZONES_MOST },
    { "r6in", CPU_INTEL, 3500, GIB(8), PER_VCPU(0.087165), LADDER(sizes_6in),
      .spot_permille = 340, .zones = ZONES_FOUR },
    { "r6idn", CPU_INTEL, 3500, GIB(8), PER_VCPU(0.097695), LADDER(sizes_6in),
      .disks_gb = disks_6id, .spot_permille = 330, .zones = ZONES_FOUR },
    { "r6a", CPU_AMD, 3600, GIB(8), PER_VCPU(0.0567), LADDER(sizes_6a),
      .spot_permille = 410, .zones = ZONES_MOST },
    { "r6g", CPU_AWS, 2500, GIB(8), PER_VCPU(0.0504), LADDER(sizes_6g), .decimals = 4,
      .metal_percent = 106, .flags = FAMILY_PLAIN, .spot_permille = 400, .zones = ZONES_MOST },
    { "r6gd", CPU_AWS, 2500, GIB(8), PER_VCPU(0.0576), LADDER(sizes_6g), .decimals = 4,
      .disks_gb = disks_6gd, .metal_percent = 106, .flags = FAMILY_PLAIN, .spot_permille = 370,
      .zones = ZONES_MOST },

    { "r7i", CPU_INTEL, 3200, GIB(8), PER_VCPU(0.06615), LADDER(sizes_7i),
      .half_metal_percent = 110, .spot_permille = 380, .zones = ZONES_MOST },
    { "r7iz", CPU_INTEL, 3900, GIB(8), PER_VCPU(0.093), LADDER(sizes_r7iz),
      .metal_percent = 110, .half_metal_percent = 110, .spot_permille = 350,
      .zones = ZONES_THREE },
    { "r7a", CPU_AMD, 3700, GIB(8), PER_VCPU(0.076075), LADDER(sizes_7a),
      .flags = FAMILY_CORES, .spot_permille = 360, .zones = ZONES_FOUR },
    { "r7g", CPU_AWS, 2600, GIB(8), PER_VCPU(0.05355), LADDER(sizes_7g), .decimals = 4,
      .spot_permille = 390, .zones = ZONES_MOST },
    { "r7gd", CPU_AWS, 2600, GIB(8), PER_VCPU(0.06804), LADDER(sizes_7g), .decimals = 4,
      .disks_gb = disks_6gd, .spot_permille = 360, .zones = ZONES_FOUR },

    { "r8i", CPU_INTEL, 3900, GIB(8), PER_VCPU(0.06946), LADDER(sizes_8i),
      .half_metal_percent = 110, .flags = FAMILY_NESTED, .spot_permille = 370,
      .zones = ZONES_FOUR },
    { "r8id", CPU_INTEL, 3900, GIB(8), PER_VCPU(0.08316), LADDER(sizes_8i),
      .disks_gb = disks_8id, .half_metal_percent = 110, .spot_permille = 360,
      .zones = ZONES_THREE },
    { "r8i-flex", CPU_INTEL, 3900, GIB(8), PER_VCPU(0.065985), LADDER(sizes_8i_flex),
      .flags = FAMILY_NESTED, .spot_permille = 380, .zones = ZONES_FOUR },
    { "r8a", CPU_AMD, 4500, GIB(8), PER_VCPU(0.07988), LADDER(sizes_8a),
      .half_metal_percent = 110, .flags = FAMILY_CORES, .spot_permille = 360, .zones = ZONES_FOUR },
    { "r8g", CPU_AWS, 2800, GIB(8), PER_VCPU(0.05891), LADDER(sizes_8g),
      .half_metal_percent = 110, .spot_permille = 380, .zones = ZONES_FOUR },
    { "r8gd", CPU_AWS, 2800, GIB(8), PER_VCPU(0.07348), LADDER(sizes_8g),
      .disks_gb = disks_8gd, .half_metal_percent = 110, .spot_permille = 360,
      .zones = ZONES_THREE },
    { "r8gn", CPU_AWS, 2800, GIB(8), PER_VCPU(0.09109), LADDER(sizes_8gn), .decimals = 4,
      .half_metal_percent = 106, .spot_permille = 350, .zones = ZONES_THREE },

    { "x1", CPU_INTEL, 2300, GIB(15.25), PER_VCPU(0.104203125), LADDER(sizes_x1),
      .flags = FAMILY_XEN | FAMILY_PLAIN | FAMILY_DISK_NOT_NVME, .spot_permille = 300,
      .zones = ZONES_FOUR },
    { "x1e", CPU_INTEL, 2300, GIB(30.5), PER_VCPU(0.2085), LADDER(sizes_x1e),
      .flags = FAMILY_XEN | FAMILY_PLAIN | FAMILY_DISK_NOT_NVME, .spot_permille = 300,
      .zones = ZONES_FOUR },
    { "x2gd", CPU_AWS, 2500, GIB(16), PER_VCPU(0.0835), LADDER(sizes_x2gd),
      .disks_gb = disks_6gd, .metal_percent = 110, .flags = FAMILY_PLAIN, .spot_permille = 350,
      .zones = ZONES_FOUR },
    { "x2idn", CPU_INTEL, 3500, GIB(16), PER_VCPU(0.104203125), LADDER(sizes_x2idn),
      .spot_permille = 320, .zones = ZONES_FOUR },
    { "x2iedn", CPU_INTEL, 3500, GIB(32), PER_VCPU(0.20840625), LADDER(sizes_x2iedn),
      .spot_permille = 320, .zones = ZONES_FOUR },
    { "x2iezn", CPU_INTEL, 4500, GIB(32), PER_VCPU(0.2085), LADDER(sizes_x2iezn),
      .spot_permille = 330, .zones = ZONES_THREE },
    { "x8g", CPU_AWS, 2800, GIB(16), PER_VCPU(0.0977), LADDER(sizes_8g),
      .half_metal_percent = 110, .spot_permille = 350, .zones = ZONES_THREE },
    { "z1d", CPU_INTEL, 4000, GIB(8), PER_VCPU(0.093), LADDER(sizes_z1d),
      .flags = FAMILY_PLAIN, .spot_permille = 370, .zones = ZONES_FOUR },

    U_FAMILY("u-3tb1", u_3tb1, 2100),
    U_FAMILY("u-6tb1", u_6tb1, 2100),
    U_FAMILY("u-9tb1", u_9tb1, 2100),
    U_FAMILY("u-12tb1", u_12tb1, 2100),
    U_FAMILY("u-18tb1", u_18tb1, 2700),
    U_FAMILY("u-24tb1", u_24tb1, 2700),
    U_FAMILY("u7i-6tb", u7i_6tb, 1900),
    U_FAMILY("u7i-8tb", u7i_8tb, 1900),
    U_FAMILY("u7i-12tb", u7i_12tb, 1900),
    U_FAMILY("u7in-16tb", u7in_16tb, 1900),
    U_FAMILY("u7in-24tb", u7in_24tb, 1900),
    U_FAMILY("u7in-32tb", u7in_32tb, 1900),
};

const struct catalogue_families catalogue_memory = { families, KV_COUNT_OF(families) };

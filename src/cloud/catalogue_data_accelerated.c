/* Families with GPUs or with AWS's own accelerators: g, p, inf and trn. Each size states its price
 * in us-east-1: what they cost follows from their devices rather than from their vCPUs. */
#include "cloud/catalogue_data.h"

/* clang-format off */

static const struct catalogue_device gpu_t4 = { "T4", "NVIDIA", 16384, 0 };
static const struct catalogue_device gpu_t4g = { "T4g", "NVIDIA", 16384, 0 };
static const struct catalogue_device gpu_v520 = { "Radeon Pro V520", "AMD", 8192, 0 };
static const struct catalogue_device gpu_a10g = { "A10G", "NVIDIA", 24576, 0 };
static const struct catalogue_device gpu_l4 = { "L4", "NVIDIA", 22888, 0 };
static const struct catalogue_device gpu_l40s = { "L40S", "NVIDIA", 45776, 0 };
static const struct catalogue_device gpu_v100 = { "V100", "NVIDIA", 16384, 0 };
static const struct catalogue_device gpu_v100_32 = { "V100", "NVIDIA", 32768, 0 };
static const struct catalogue_device gpu_a100 = { "A100", "NVIDIA", 40960, 0 };
static const struct catalogue_device gpu_a100_80 = { "A100", "NVIDIA", 81920, 0 };
static const struct catalogue_device gpu_h100 = { "H100", "NVIDIA", 81920, 0 };
static const struct catalogue_device gpu_h200 = { "H200", "NVIDIA", 144384, 0 };
static const struct catalogue_device gpu_b200 = { "B200", "NVIDIA", 183296, 0 };
static const struct catalogue_device inferentia = { "Inferentia", "AWS", 0, 4 };
static const struct catalogue_device inferentia2 = { "Inferentia2", "AWS", 0, 2 };
static const struct catalogue_device trainium = { "Trainium", "AWS", 0, 2 };

#define HAS(count, disk, dollars) .devices = count, .disk_gb = disk, .usd_micro = USD(dollars)

static const struct catalogue_size sizes_g4dn[] = {
    { "xlarge",    4,  3, 10,  39,   5000,  3500,    HAS(1, 125, 0.526) },
    { "2xlarge",   8,  3, 10,  39,  10000,  3500,    HAS(1, 225, 0.752) },
    { "4xlarge",  16,  3, 10,  59,  20000,  4750,    HAS(1, 225, 1.204) },
    { "8xlarge",  32,  4, 15,  58,  50000,  9500, 1, HAS(1, 900, 2.176) },
    { "12xlarge", 48,  8, 30,  54,  50000,  9500, 1, HAS(4, 900, 3.912) },
    { "16xlarge", 64,  4, 15, 118,  50000,  9500, 1, HAS(1, 900, 4.352) },
    { "metal",    96, 15, 50, 107, 100000, 19000, 1, HAS(8, 1800, 7.824) },
};

static const struct catalogue_size sizes_g4ad[] = {
    { "xlarge",    4, 2,  4, 12,  2000, 3170, HAS(1, 150, 0.37853) },
    { "2xlarge",   8, 2,  4, 12,  4167, 3170, HAS(1, 300, 0.54117) },
    { "4xlarge",  16, 3, 10, 11,  8333, 3170, HAS(1, 600, 0.867) },
    { "8xlarge",  32, 4, 15, 10, 15000, 3170, HAS(2, 1200, 1.734) },
    { "16xlarge", 64, 8, 30,  6, 25000, 6300, HAS(4, 2400, 3.468) },
};

static const struct catalogue_size sizes_g5[] = {
    { "xlarge",     4,  4, 15,   4,   2500,  3500,    HAS(1, 250, 1.006) },
    { "2xlarge",    8,  4, 15,  17,   5000,  3500,    HAS(1, 450, 1.212) },
    { "4xlarge",   16,  8, 30,  34,  10000,  4750,    HAS(1, 600, 1.624) },
    { "8xlarge",   32,  8, 30,  84,  25000, 16000, 1, HAS(1, 900, 2.448) },
    { "12xlarge",  48, 15, 50, 107,  40000, 16000, 1, HAS(4, 3800, 5.672) },
    { "16xlarge",  64,  8, 30, 114,  25000, 16000, 1, HAS(1, 1900, 4.096) },
    { "24xlarge",  96, 15, 50, 107,  50000, 19000, 1, HAS(4, 3800, 8.144) },
    { "48xlarge", 192,  7, 50, 115, 100000, 19000, 1, HAS(8, 7600, 16.288) },
};

static const struct catalogue_size sizes_g5g[] = {
    { "xlarge",    4,  4, 15,  18,  1250,  3500, HAS(1, 0, 0.42) },
    { "2xlarge",   8,  4, 15,  38,  2500,  3500, HAS(1, 0, 0.556) },
    { "4xlarge",  16,  8, 30,  54,  5000,  3500, HAS(1, 0, 0.828) },
    { "8xlarge",  32,  8, 30,  54, 12000,  9000, HAS(1, 0, 1.372) },
    { "16xlarge", 64, 15, 50, 107, 25000, 19000, HAS(2, 0, 2.744) },
    { "metal",    64, 15, 50, 107, 25000, 19000, HAS(2, 0, 2.744) },
};

static const struct catalogue_size sizes_g6[] = {
    { "xlarge",     4,  4, 15,  18,   2500,  5000,    HAS(1, 250, 0.8048) },
    { "2xlarge",    8,  4, 15,  38,   5000,  5000,    HAS(1, 450, 0.9776) },
    { "4xlarge",   16,  8, 30,  54,  10000,  8000,    HAS(1, 600, 1.3232) },
    { "8xlarge",   32,  8, 30,  84,  25000, 16000, 1, HAS(1, 900, 2.0144) },
    { "12xlarge",  48,  8, 30, 114,  40000, 20000, 1, HAS(4, 3760, 4.6016) },
    { "16xlarge",  64, 15, 50, 107,  25000, 20000, 1, HAS(1, 1880, 3.3968) },
    { "24xlarge",  96, 15, 50, 107,  50000, 30000, 1, HAS(4, 3760, 6.6752) },
    { "48xlarge", 192, 15, 50, 107, 100000, 60000, 1, HAS(8, 7520, 13.3504) },
};

static const struct catalogue_size sizes_g6e[] = {
    { "xlarge",     4,  4, 15,  18,   2500,  5000,       HAS(1, 250, 1.861) },
    { "2xlarge",    8,  4, 15,  38,   5000,  5000,       HAS(1, 450, 2.24208) },
    { "4xlarge",   16,  8, 30,  54,  20000,  8000,       HAS(1, 600, 3.00424) },
    { "8xlarge",   32,  8, 30,  84,  25000, 16000, 1,    HAS(1, 900, 4.52856) },
    { "12xlarge",  48, 10, 30, 112, 100000, 20000, 1,    HAS(4, 3800, 10.49264) },
    { "16xlarge",  64, 15, 50, 107,  35000, 20000, 1,    HAS(1, 1900, 7.57719) },
    { "24xlarge",  96, 10, 50, 102, 200000, 30000, 2, 2, HAS(4, 3800, 15.06559) },
    { "48xlarge", 192, 10, 50,  82, 400000, 60000, 4, 4, HAS(8, 7600, 30.13118) },
};

static const struct catalogue_size sizes_gr6[] = {
    { "4xlarge", 16, 8, 30, 54, 10000,  8000,    HAS(1, 600, 1.5392) },
    { "8xlarge", 32, 8, 30, 84, 25000, 16000, 1, HAS(1, 900, 2.4464) },
};

static const struct catalogue_size sizes_p3[] = {
    { "2xlarge",   8, 4, 15, 0,  2500,  1750, HAS(1, 0, 3.06) },
    { "8xlarge",  32, 8, 30, 0, 10000,  7000, HAS(4, 0, 12.24) },
    { "16xlarge", 64, 8, 30, 0, 25000, 14000, HAS(8, 0, 24.48) },
};
static const struct catalogue_size sizes_p3dn[] = {
    { "24xlarge", 96, 15, 50, 107, 100000, 19000, 1, HAS(8, 1800, 31.212) },
};
static const struct catalogue_size sizes_p4d[] = {
    { "24xlarge", 96, 15, 50, 62, 400000, 19000, 4, 4, HAS(8, 8000, 21.957642) },
};
static const struct catalogue_size sizes_p4de[] = {
    { "24xlarge", 96, 15, 50, 62, 400000, 19000, 4, 4, HAS(8, 8000, 27.44705) },
};
static const struct catalogue_size sizes_p5[] = {
    { "4xlarge",   16, 4, 30,   0,  100000, 10000,  1,  1, 256,  HAS(1, 3800, 6.88) },
    { "48xlarge", 192, 2, 50, 120, 3200000, 80000, 32, 32, 2048, HAS(8, 30400, 55.04) },
};
static const struct catalogue_size sizes_p5en[] = {
    { "48xlarge", 192, 4, 50, 0, 3200000, 100000, 16, 16, 2048, HAS(8, 30400, 63.296) },
};
static const struct catalogue_size sizes_p6_b200[] = {
    { "48xlarge", 192, 4, 50, 0, 3200000, 100000, 8, 8, 2048, HAS(8, 30400, 113.9328) },
};

static const struct catalogue_size sizes_inf1[] = {
    { "xlarge",    4,  4, 10,  38,   5000,  4750,    HAS(1, 0, 0.228) },
    { "2xlarge",   8,  4, 10,  38,   5000,  4750,    HAS(1, 0, 0.362) },
    { "6xlarge",  24,  8, 30,  54,  25000,  4750,    HAS(4, 0, 1.18) },
    { "24xlarge", 96, 11, 30, 111, 100000, 19000, 1, HAS(16, 0, 4.721) },
};
static const struct catalogue_size sizes_inf2[] = {
    { "xlarge",     4,  4, 15,  18,   2083, 10000, HAS(1, 0, 0.7582) },
    { "8xlarge",   32,  8, 30,  84,  16667, 10000, HAS(1, 0, 1.96786) },
    { "24xlarge",  96, 15, 50, 107,  50000, 30000, HAS(6, 0, 6.49063) },
    { "48xlarge", 192, 15, 50, 107, 100000, 60000, HAS(12, 0, 12.98127) },
};
static const struct catalogue_size sizes_trn1[] = {
    { "2xlarge",    8, 4, 15, 17,   3125, 20000,       HAS(1, 474, 1.34375) },
    { "32xlarge", 128, 5, 50, 82, 800000, 80000, 8, 8, HAS(16, 7600, 21.5) },
};
static const struct catalogue_size sizes_trn1n[] = {
    { "32xlarge", 128, 5, 50, 120, 1600000, 80000, 16, 16, HAS(16, 7600, 24.78) },
};

static const struct catalogue_family families[] = {
    { "g4dn", CPU_INTEL, 2500, GIB(4), 0, LADDER(sizes_g4dn), .device = &gpu_t4,
      .spot_permille = 450, .zones = ZONES_MOST },
    { "g4ad", CPU_AMD, 3000, GIB(4), 0, LADDER(sizes_g4ad), .device = &gpu_v520,
      .spot_permille = 400, .zones = ZONES_THREE },
    { "g5", CPU_AMD, 3300, GIB(4), 0, LADDER(sizes_g5), .device = &gpu_a10g,
      .spot_permille = 470, .zones = ZONES_MOST },
    { "g5g", CPU_AWS, 2500, GIB(2), 0, LADDER(sizes_g5g), .device = &gpu_t4g,
      .flags = FAMILY_PLAIN, .spot_permille = 420, .zones = ZONES_THREE },
    { "g6", CPU_AMD, 3400, GIB(4), 0, LADDER(sizes_g6), .device = &gpu_l4,
      .spot_permille = 450, .zones = ZONES_FOUR },
    { "g6e", CPU_AMD, 3400, GIB(8), 0, LADDER(sizes_g6e), .device = &gpu_l40s,
      .spot_permille = 500, .zones = ZONES_FOUR },
    { "gr6", CPU_AMD, 3400, GIB(8), 0, LADDER(sizes_gr6), .device = &gpu_l4,
      .spot_permille = 450, .zones = ZONES_FOUR },

    { "p3", CPU_INTEL, 2700, GIB(7.625), 0, LADDER(sizes_p3), .device = &gpu_v100,
      .flags = FAMILY_XEN | FAMILY_PLAIN, .spot_permille = 350, .zones = ZONES_MOST },
    { "p3dn", CPU_INTEL, 2500, GIB(8), 0, LADDER(sizes_p3dn), .device = &gpu_v100_32,
      .spot_permille = 400, .zones = ZONES_THREE },
    { "p4d", CPU_INTEL, 3000, GIB(12), 0, LADDER(sizes_p4d), .device = &gpu_a100,
      .spot_permille = 500, .zones = ZONES_THREE },
    { "p4de", CPU_INTEL, 3000, GIB(12), 0, LADDER(sizes_p4de), .device = &gpu_a100_80,
      .spot_permille = 550, .zones = ZONES_TWO },
    { "p5", CPU_AMD, 3600, 0, 0, LADDER(sizes_p5), .device = &gpu_h100,
      .spot_permille = 550, .zones = ZONES_FOUR },
    { "p5en", CPU_INTEL, 3800, 0, 0, LADDER(sizes_p5en), .device = &gpu_h200,
      .spot_permille = 550, .zones = ZONES_TWO },
    { "p6-b200", CPU_INTEL, 3800, 0, 0, LADDER(sizes_p6_b200), .device = &gpu_b200,
      .spot_permille = 550, .zones = ZONES_ONE },

    { "inf1", CPU_INTEL, 2500, GIB(2), 0, LADDER(sizes_inf1), .device = &inferentia,
      .spot_permille = 350, .zones = ZONES_MOST },
    { "inf2", CPU_AMD, 2950, GIB(4), 0, LADDER(sizes_inf2), .device = &inferentia2,
      .spot_permille = 400, .zones = ZONES_FOUR },
    { "trn1", CPU_INTEL, 2900, GIB(4), 0, LADDER(sizes_trn1), .device = &trainium,
      .spot_permille = 400, .zones = ZONES_THREE },
    { "trn1n", CPU_INTEL, 2900, GIB(4), 0, LADDER(sizes_trn1n), .device = &trainium,
      .spot_permille = 420, .zones = ZONES_TWO },
};

const struct catalogue_families catalogue_accelerated = { families, KV_COUNT_OF(families) };

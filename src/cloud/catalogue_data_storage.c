/* Storage optimized families: i, d and h. Prices are us-east-1's, per vCPU and hour. */
#include "cloud/catalogue_data.h"

/* clang-format off */

static const struct catalogue_size sizes_i3[] = {
    { "large",     2,  3, 10,   0,   750,   425, .disk_gb = 475 },
    { "xlarge",    4,  4, 15,   0,  1250,   850, .disk_gb = 950 },
    { "2xlarge",   8,  4, 15,   0,  2500,  1700, .disk_gb = 1900 },
    { "4xlarge",  16,  8, 30,   0,  5000,  3500, .disk_gb = 3800 },
    { "8xlarge",  32,  8, 30,   0, 10000,  7000, .disk_gb = 7600 },
    { "16xlarge", 64, 15, 50,   0, 25000, 14000, .disk_gb = 15200 },
    { "metal",    72, 15, 50, 120, 25000, 19000, .disk_gb = 15200, .memory_gib = 512,
      .usd_micro = USD(4.992) },
};

static const struct catalogue_size sizes_i3en[] = {
    { "large",     2,  3, 10,   5,   2100,  4750,    .disk_gb = 1250 },
    { "xlarge",    4,  4, 15,  12,   4200,  4750,    .disk_gb = 2500 },
    { "2xlarge",   8,  4, 15,  28,   8400,  4750,    .disk_gb = 5000 },
    { "3xlarge",  12,  4, 15,  38,  12500,  4750,    .disk_gb = 7500 },
    { "6xlarge",  24,  8, 30,  54,  25000,  4750,    .disk_gb = 15000 },
    { "12xlarge", 48,  8, 30,  54,  50000,  9500, 1, .disk_gb = 30000 },
    { "24xlarge", 96, 15, 50, 107, 100000, 19000, 1, .disk_gb = 60000 },
    { "metal",    96, 15, 50, 107, 100000, 19000, 1, .disk_gb = 60000 },
};

static const struct catalogue_size sizes_i4g[] = {
    { "large",     2,  3, 10,   9,   781, 10000,    .disk_gb = 468 },
    { "xlarge",    4,  4, 15,  18,  1875, 10000,    .disk_gb = 937 },
    { "2xlarge",   8,  4, 15,  38,  4687, 10000,    .disk_gb = 1875 },
    { "4xlarge",  16,  8, 30,  54,  9375, 10000,    .disk_gb = 3750 },
    { "8xlarge",  32,  8, 30,  54, 18750, 10000,    .disk_gb = 7500 },
    { "16xlarge", 64, 15, 50, 107, 37500, 20000, 1, .disk_gb = 15000 },
};

/* Published with three decimals, but for the two largest. */
static const struct catalogue_size sizes_i4i[] = {
    { "large",      2,  3, 10,   0,   781, 10000,    .disk_gb = 468 },
    { "xlarge",     4,  4, 15,   6,  1875, 10000,    .disk_gb = 937 },
    { "2xlarge",    8,  4, 15,  26,  4687, 10000,    .disk_gb = 1875 },
    { "4xlarge",   16,  8, 30,  52,  9375, 10000,    .disk_gb = 3750 },
    { "8xlarge",   32,  8, 30, 112, 18750, 10000,    .disk_gb = 7500 },
    { "12xlarge",  48,  8, 30, 112, 28125, 15000,    .disk_gb = 11250 },
    { "16xlarge",  64, 15, 50, 120, 37500, 20000,    .disk_gb = 15000 },
    { "24xlarge",  96, 15, 30, 105, 56250, 30000,    .disk_gb = 22500, .usd_micro = USD(8.2368) },
    { "32xlarge", 128, 15, 50, 120, 75000, 40000, 1, .disk_gb = 30000, .usd_micro = USD(10.9824) },
    { "metal",    128, 15, 50, 120, 75000, 40000, 1, .disk_gb = 30000 },
};

static const struct catalogue_size sizes_i7i[] = {
    { "large",        2,  3, 10,   9,   1171, 10000,    .disk_gb = 468 },
    { "xlarge",       4,  4, 15,  18,   2343, 10000,    .disk_gb = 937 },
    { "2xlarge",      8,  4, 15,  38,   4687, 10000,    .disk_gb = 1875 },
    { "4xlarge",     16,  8, 30,  54,   9375, 10000,    .disk_gb = 3750 },
    { "8xlarge",     32,  8, 30,  84,  25000, 10000,    .disk_gb = 7500 },
    { "12xlarge",    48,  8, 30,  84,  28125, 15000,    .disk_gb = 11250 },
    { "16xlarge",    64, 15, 50, 107,  37500, 20000,    .disk_gb = 15000 },
    { "24xlarge",    96, 15, 50, 107,  56250, 30000,    .disk_gb = 22500 },
    { "48xlarge",   192, 15, 50, 107, 100000, 60000, 1, .disk_gb = 45000 },
    { "metal-24xl",  96, 15, 50, 107,  56250, 30000,    .disk_gb = 22500,
      .usd_micro = USD(9.6204) },
    { "metal-48xl", 192, 15, 50, 107, 100000, 60000, 1, .disk_gb = 45000,
      .usd_micro = USD(19.2408) },
};

static const struct catalogue_size sizes_i7ie[] = {
    { "large",        2,  3, 10,  19,   2083, 10000,    .disk_gb = 1250 },
    { "xlarge",       4,  4, 15,  27,   4166, 10000,    .disk_gb = 2500 },
    { "2xlarge",      8,  4, 15,  27,   8333, 10000,    .disk_gb = 5000 },
    { "3xlarge",     12,  4, 15,  27,  12500, 10000,    .disk_gb = 7500 },
    { "6xlarge",     24,  8, 30,  54,  12500, 10000,    .disk_gb = 15000 },
    { "12xlarge",    48,  8, 50,  54,  25000, 15000,    .disk_gb = 30000 },
    { "18xlarge",    72, 15, 50, 107,  37500, 22500,    .disk_gb = 45000 },
    { "24xlarge",    96, 15, 50, 107,  50000, 30000,    .disk_gb = 60000 },
    { "48xlarge",   192, 15, 50, 107, 100000, 60000, 1, .disk_gb = 120000 },
    { "metal-24xl",  96, 15, 50, 107,  50000, 30000,    .disk_gb = 60000,
      .usd_micro = USD(13.2844) },
    { "metal-48xl", 192, 15, 50, 107, 100000, 60000, 1, .disk_gb = 120000,
      .usd_micro = USD(26.5687) },
};

static const struct catalogue_size sizes_i8g[] = {
    { "large",        2,  3, 10,   9,   1172, 10000,    .disk_gb = 468 },
    { "xlarge",       4,  4, 15,  18,   2344, 10000,    .disk_gb = 937 },
    { "2xlarge",      8,  4, 15,  38,   4688, 10000,    .disk_gb = 1875 },
    { "4xlarge",     16,  8, 30,  54,   9375, 10000,    .disk_gb = 3750 },
    { "8xlarge",     32,  8, 30,  54,  25000, 10000,    .disk_gb = 7500 },
    { "12xlarge",    48,  8, 30,  54,  28125, 15000,    .disk_gb = 11250 },
    { "16xlarge",    64, 15, 50, 107,  37500, 20000,    .disk_gb = 15000 },
    { "24xlarge",    96, 15, 50, 107,  56250, 30000,    .disk_gb = 22500 },
    { "48xlarge",   192, 15, 50, 107, 100000, 60000, 1, .disk_gb = 45000 },
    { "metal-24xl",  96, 15, 50, 107,  56250, 30000,    .disk_gb = 22500 },
};

static const struct catalogue_size sizes_im4gn[] = {
    { "large",     2,  3, 10,   9,   3125,  9500,    .disk_gb = 937 },
    { "xlarge",    4,  4, 15,  18,   6250,  9500,    .disk_gb = 1875 },
    { "2xlarge",   8,  4, 15,  38,  12500,  9500,    .disk_gb = 3750 },
    { "4xlarge",  16,  8, 30,  54,  25000,  9500,    .disk_gb = 7500 },
    { "8xlarge",  32,  8, 30,  54,  50000, 19000,    .disk_gb = 15000 },
    { "16xlarge", 64, 15, 50, 107, 100000, 38000, 1, .disk_gb = 30000 },
};

static const struct catalogue_size sizes_is4gen[] = {
    { "medium",   1, 2,  4,  4,  1562,  9500, .disk_gb = 937 },
    { "large",    2, 3, 10,  9,  3125,  9500, .disk_gb = 1875 },
    { "xlarge",   4, 4, 15, 18,  6250,  9500, .disk_gb = 3750 },
    { "2xlarge",  8, 4, 15, 38, 12500,  9500, .disk_gb = 7500 },
    { "4xlarge", 16, 8, 30, 54, 25000,  9500, .disk_gb = 15000 },
    { "8xlarge", 32, 8, 30, 54, 50000, 19000, .disk_gb = 30000 },
};

static const struct catalogue_size sizes_d2[] = {
    { "xlarge",   4, 4, 15, 0,     0,  750, .disk_gb = 6144 },
    { "2xlarge",  8, 4, 15, 0,     0, 1000, .disk_gb = 12288 },
    { "4xlarge", 16, 8, 30, 0,     0, 2000, .disk_gb = 24576 },
    { "8xlarge", 36, 8, 30, 0, 10000, 4000, .disk_gb = 49152, .memory_gib = 244,
      .usd_micro = USD(5.52) },
};

static const struct catalogue_size sizes_d3[] = {
    { "xlarge",   4, 4,  3,  42,  3000, 2800, .disk_gb = 5940,  .usd_micro = USD(0.499) },
    { "2xlarge",  8, 4,  5,  92,  6000, 2800, .disk_gb = 11880, .usd_micro = USD(0.999) },
    { "4xlarge", 16, 4, 10, 118, 12500, 2800, .disk_gb = 23760, .usd_micro = USD(1.998) },
    { "8xlarge", 32, 3, 20, 119, 25000, 5000, .disk_gb = 47520, .usd_micro = USD(3.99552) },
};

static const struct catalogue_size sizes_d3en[] = {
    { "xlarge",    4, 4,  3,  24,  6000, 2800, .disk_gb = 27960,  .usd_micro = USD(0.526) },
    { "2xlarge",   8, 4,  5,  58, 12500, 2800, .disk_gb = 55920,  .usd_micro = USD(1.051) },
    { "4xlarge",  16, 4, 10, 118, 25000, 2800, .disk_gb = 111840, .usd_micro = USD(2.103) },
    { "6xlarge",  24, 4, 15, 118, 40000, 4000, .disk_gb = 167760, .usd_micro = USD(3.154) },
    { "8xlarge",  32, 4, 20, 118, 50000, 5000, .disk_gb = 223680, .usd_micro = USD(4.20576) },
    { "12xlarge", 48, 3, 30, 119, 75000, 7000, .disk_gb = 335520, .usd_micro = USD(6.30864) },
};

static const struct catalogue_size sizes_h1[] = {
    { "2xlarge",   8, 4, 15, 0,  2500,  1750, .disk_gb = 2000 },
    { "4xlarge",  16, 8, 30, 0,  5000,  3500, .disk_gb = 4000 },
    { "8xlarge",  32, 8, 30, 0, 10000,  7000, .disk_gb = 8000 },
    { "16xlarge", 64, 8, 50, 0, 25000, 14000, .disk_gb = 16000 },
};

static const struct catalogue_family families[] = {
    { "i3", CPU_INTEL, 2300, GIB(7.625), PER_VCPU(0.078), LADDER(sizes_i3),
      .flags = FAMILY_XEN | FAMILY_PLAIN, .spot_permille = 330, .zones = ZONES_MOST },
    { "i3en", CPU_INTEL, 3100, GIB(8), PER_VCPU(0.113), LADDER(sizes_i3en),
      .spot_permille = 340, .zones = ZONES_MOST },
    { "i4g", CPU_AWS, 2500, GIB(8), PER_VCPU(0.07722), LADDER(sizes_i4g),
      .spot_permille = 350, .zones = ZONES_FOUR },
    { "i4i", CPU_INTEL, 3500, GIB(8), PER_VCPU(0.0858), LADDER(sizes_i4i), .decimals = 3,
      .spot_permille = 350, .zones = ZONES_MOST },
    { "i7i", CPU_INTEL, 3200, GIB(8), PER_VCPU(0.09438), LADDER(sizes_i7i), .decimals = 4,
      .spot_permille = 350, .zones = ZONES_FOUR },
    { "i7ie", CPU_INTEL, 3200, GIB(8), PER_VCPU(0.12995), LADDER(sizes_i7ie),
      .spot_permille = 340, .zones = ZONES_FOUR },
    { "i8g", CPU_AWS, 2800, GIB(8), PER_VCPU(0.0858), LADDER(sizes_i8g),
      .half_metal_percent = 110, .spot_permille = 350, .zones = ZONES_THREE },
    { "im4gn", CPU_AWS, 2500, GIB(4), PER_VCPU(0.09094797), LADDER(sizes_im4gn),
      .spot_permille = 340, .zones = ZONES_FOUR },
    { "is4gen", CPU_AWS, 2500, GIB(6), PER_VCPU(0.144075), LADDER(sizes_is4gen),
      .spot_permille = 330, .zones = ZONES_FOUR },
    { "d2", CPU_INTEL, 2400, GIB(7.625), PER_VCPU(0.1725), LADDER(sizes_d2),
      .flags = FAMILY_XEN | FAMILY_PLAIN | FAMILY_NO_ENA | FAMILY_DISK_NOT_NVME,
      .spot_permille = 310, .zones = ZONES_ALL },
    { "d3", CPU_INTEL, 3100, GIB(8), 0, LADDER(sizes_d3),
      .spot_permille = 340, .zones = ZONES_FOUR },
    { "d3en", CPU_INTEL, 3100, GIB(4), 0, LADDER(sizes_d3en),
      .spot_permille = 340, .zones = ZONES_FOUR },
    { "h1", CPU_INTEL, 2300, GIB(4), PER_VCPU(0.0585), LADDER(sizes_h1),
      .flags = FAMILY_XEN | FAMILY_PLAIN | FAMILY_DISK_NOT_NVME, .spot_permille = 320,
      .zones = ZONES_FOUR },
};

const struct catalogue_families catalogue_storage = { families, KV_COUNT_OF(families) };

/* The tables of facts, expanded once: a family times its sizes, each with what the family's rules
 * say of it. The result is sorted by name, which is the order of every snapshot.
 */
#include "cloud/catalogue.h"
#include "cloud/catalogue_data.h"

#include <pthread.h>

#define DECIMALS_DEFAULT 5
#define DECIMALS_KEPT 13 /* of a usd_hour */

static struct {
    struct arena arena;
    struct catalogue_machine *items;
    uint32_t count;
} built;
static pthread_once_t built_once = PTHREAD_ONCE_INIT;

static bool is_metal(const struct catalogue_size *size)
{
    return str_starts(str_of(size->name), STR("metal"));
}

static uint32_t vcpus_most(const struct catalogue_family *f)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < f->size_count; i++)
        most = f->sizes[i].vcpus > most ? f->sizes[i].vcpus : most;
    return most;
}

/* --- price --- */

static usd_hour round_to(usd_hour price, uint32_t decimals)
{
    usd_hour unit = 1;
    for (uint32_t i = decimals; i < DECIMALS_KEPT; i++)
        unit *= 10;
    return (price + unit / 2) / unit * unit;
}

static usd_hour list_price(const struct catalogue_family *f, const struct catalogue_size *size)
{
    uint32_t micro = size->usd_micro, percent = 100;
    if (!micro && is_metal(size)) {
        bool whole = size->vcpus == vcpus_most(f);
        micro = whole ? f->metal_usd_micro : 0;
        percent = whole ? f->metal_percent : f->half_metal_percent;
        percent = percent ? percent : 100;
    }
    if (micro)
        return (usd_hour)micro * (USD_HOUR_ONE / 1000000);
    usd_hour exact = (usd_hour)f->vcpu_price * (USD_HOUR_ONE / 100000000) * size->vcpus;
    return round_to(exact / 100 * percent, f->decimals ? f->decimals : DECIMALS_DEFAULT);
}

/* --- hardware --- */

static void set_devices(const struct catalogue_device *device, uint32_t count, struct machine *out)
{
    if (!device || !count)
        return;
    if (!device->neuron_cores) {
        out->gpu_count = 1;
        out->gpus[0] = (struct machine_gpu){ .name = str_of(device->name),
                                             .manufacturer = str_of(device->maker),
                                             .count = count,
                                             .memory_mib = device->memory_mib };
        return;
    }
    out->accelerator_count = 1;
    out->accelerators[0] = (struct machine_accelerator){ .name = str_of(device->name),
                                                         .manufacturer = str_of(device->maker),
                                                         .count = count,
                                                         .cores = device->neuron_cores,
                                                         .neuron = true };
}

/* An enclave takes a core from its instance, which must have one left. */
static bool has_enclaves(const struct catalogue_family *f, const struct catalogue_size *size)
{
    bool cores = f->maker == CPU_AWS || (f->flags & FAMILY_CORES);
    return !(f->flags & (FAMILY_XEN | FAMILY_NO_ENCLAVES)) && !is_metal(size) &&
           size->vcpus >= (cores ? 2 : 4);
}

static struct machine machine_of(struct arena *arena, const struct catalogue_family *f,
                                 const struct catalogue_size *size, uint32_t size_ix)
{
    static const char *const makers[] = {
        [CPU_INTEL] = "Intel", [CPU_AMD] = "AMD", [CPU_AWS] = "AWS"
    };
    uint64_t memory_mib = size->memory_gib ? (uint64_t)size->memory_gib * 1024
                                           : (uint64_t)f->mib_per_vcpu * size->vcpus;
    uint32_t disk_gb = f->disks_gb ? f->disks_gb[size_ix] : size->disk_gb;
    const char *hypervisor = is_metal(size) ? "" : f->flags & FAMILY_XEN ? "xen" : "nitro";
    struct machine m = {
        .name = arena_strf(arena, "%s.%s", f->name, size->name),
        .arch = f->maker == CPU_AWS ? MACHINE_ARM64 : MACHINE_AMD64,
        .vcpus = size->vcpus,
        .memory_mib = memory_mib,
        .cpu_manufacturer = str_of(makers[f->maker]),
        .clock_mhz = f->clock_mhz,
        .enis = size->enis,
        .ipv4_per_eni = size->ips,
        .card_count = size->cards ? size->cards : 1,
        .branch_interfaces = size->branch,
        .efa_max = size->efa,
        .network_mbps = size->network_mbps,
        .ebs_mbps = size->ebs_mbps,
        .encryption_in_transit = !(f->flags & FAMILY_PLAIN),
        .nitro_enclaves = has_enclaves(f, size),
        .nested_virtualization = (f->flags & FAMILY_NESTED) && !is_metal(size),
        .hypervisor = str_of(hypervisor),
        .local_nvme_gb = f->flags & FAMILY_DISK_NOT_NVME ? 0 : disk_gb,
        .local_disk_gb = disk_gb,
        .on_demand = true,
        .spot = !(f->flags & FAMILY_NO_SPOT),
    };
    set_devices(f->device, size->devices, &m);
    return m;
}

static struct catalogue_machine expand(const struct catalogue_family *f, uint32_t size_ix)
{
    const struct catalogue_size *size = &f->sizes[size_ix];
    return (struct catalogue_machine){
        .machine = machine_of(&built.arena, f, size, size_ix),
        .on_demand = list_price(f, size),
        .spot_permille = f->flags & FAMILY_NO_SPOT ? 0 : f->spot_permille,
        .zones = f->zones,
        .ena = !(f->flags & FAMILY_NO_ENA),
    };
}

/* --- all of them --- */

static int by_name(const void *a, const void *b)
{
    const struct catalogue_machine *x = a, *y = b;
    return str_cmp(x->machine.name, y->machine.name);
}

static void build(void)
{
    const struct catalogue_families *groups[] = { &catalogue_general, &catalogue_compute,
                                                  &catalogue_memory, &catalogue_storage,
                                                  &catalogue_accelerated };
    uint32_t total = 0;
    for (size_t g = 0; g < KV_COUNT_OF(groups); g++) {
        for (uint32_t f = 0; f < groups[g]->count; f++)
            total += groups[g]->items[f].size_count;
    }
    built.items = arena_array(&built.arena, struct catalogue_machine, total);
    for (size_t g = 0; g < KV_COUNT_OF(groups); g++) {
        for (uint32_t f = 0; f < groups[g]->count; f++) {
            for (uint32_t s = 0; s < groups[g]->items[f].size_count; s++)
                built.items[built.count++] = expand(&groups[g]->items[f], s);
        }
    }
    qsort(built.items, built.count, sizeof *built.items, by_name);
}

const struct catalogue_machine *catalogue_machines(void)
{
    pthread_once(&built_once, build);
    return built.items;
}

uint32_t catalogue_machine_count(void)
{
    pthread_once(&built_once, build);
    return built.count;
}

const struct catalogue_machine *catalogue_machine_find(struct str name)
{
    const struct catalogue_machine *items = catalogue_machines();
    uint32_t low = 0, high = built.count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = str_cmp(items[middle].machine.name, name);
        if (order == 0)
            return &items[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* One list of keys in byte order, one list of values filled by name beside it: what is left empty
 * does not exist. A thousand types have 36 labels each, so texts are pointed at or written digit by
 * digit, and nothing is sorted.
 */
#include "cloud/catalogue_labels.h"

enum {
    RESERVATION_ID,
    RESERVATION_INTERRUPTIBLE,
    RESERVATION_TYPE,
    ACCELERATOR_COUNT,
    ACCELERATOR_MAKER,
    ACCELERATOR_NAME,
    FLEX,
    CATEGORY,
    CPU,
    CPU_MAKER,
    CPU_CLOCK,
    EBS_BANDWIDTH,
    ENCRYPTION,
    FAMILY,
    GENERATION,
    GPU_COUNT,
    GPU_MAKER,
    GPU_MEMORY,
    GPU_NAME,
    HYPERVISOR,
    LOCAL_NVME,
    MEMORY,
    NETWORK_BANDWIDTH,
    SIZE,
    TENANCY,
    NITRO_SANDBOX,
    PLACEMENT_GROUP,
    PLACEMENT_PARTITION,
    CAPACITY_TYPE,
    ARCH,
    OS,
    INSTANCE_TYPE,
    WINDOWS_BUILD,
    ZONE_ID,
    REGION,
    ZONE,
    LABELS,
};

#define K(literal)                                                                                 \
    {                                                                                              \
        "" literal, sizeof(literal) - 1                                                            \
    }
static const struct str keys[LABELS] = {
    [RESERVATION_ID] = K(LABEL_AWS("capacity-reservation-id")),
    [RESERVATION_INTERRUPTIBLE] = K(LABEL_AWS("capacity-reservation-interruptible")),
    [RESERVATION_TYPE] = K(LABEL_AWS("capacity-reservation-type")),
    [ACCELERATOR_COUNT] = K(LABEL_AWS("instance-accelerator-count")),
    [ACCELERATOR_MAKER] = K(LABEL_AWS("instance-accelerator-manufacturer")),
    [ACCELERATOR_NAME] = K(LABEL_AWS("instance-accelerator-name")),
    [FLEX] = K(LABEL_AWS("instance-capability-flex")),
    [CATEGORY] = K(LABEL_AWS("instance-category")),
    [CPU] = K(LABEL_AWS("instance-cpu")),
    [CPU_MAKER] = K(LABEL_AWS("instance-cpu-manufacturer")),
    [CPU_CLOCK] = K(LABEL_AWS("instance-cpu-sustained-clock-speed-mhz")),
    [EBS_BANDWIDTH] = K(LABEL_AWS("instance-ebs-bandwidth")),
    [ENCRYPTION] = K(LABEL_AWS("instance-encryption-in-transit-supported")),
    [FAMILY] = K(LABEL_AWS("instance-family")),
    [GENERATION] = K(LABEL_AWS("instance-generation")),
    [GPU_COUNT] = K(LABEL_AWS("instance-gpu-count")),
    [GPU_MAKER] = K(LABEL_AWS("instance-gpu-manufacturer")),
    [GPU_MEMORY] = K(LABEL_AWS("instance-gpu-memory")),
    [GPU_NAME] = K(LABEL_AWS("instance-gpu-name")),
    [HYPERVISOR] = K(LABEL_AWS("instance-hypervisor")),
    [LOCAL_NVME] = K(LABEL_AWS("instance-local-nvme")),
    [MEMORY] = K(LABEL_AWS("instance-memory")),
    [NETWORK_BANDWIDTH] = K(LABEL_AWS("instance-network-bandwidth")),
    [SIZE] = K(LABEL_AWS("instance-size")),
    [TENANCY] = K(LABEL_AWS("instance-tenancy")),
    [NITRO_SANDBOX] = K(LABEL_AWS("nitro-sandbox")),
    [PLACEMENT_GROUP] = K(LABEL_AWS("placement-group-id")),
    [PLACEMENT_PARTITION] = K(LABEL_AWS("placement-group-partition")),
    [CAPACITY_TYPE] = K(LABEL_CAPACITY_TYPE),
    [ARCH] = K(LABEL_ARCH),
    [OS] = K(LABEL_OS),
    [INSTANCE_TYPE] = K(LABEL_INSTANCE_TYPE),
    [WINDOWS_BUILD] = K(LABEL_WINDOWS_BUILD),
    [ZONE_ID] = K(LABEL_ZONE_ID),
    [REGION] = K(LABEL_REGION),
    [ZONE] = K(LABEL_ZONE),
};

static const struct str tenancies[] = { K("dedicated"), K("default") };

/* --- values --- */

static struct str_list one(struct arena *arena, struct str text)
{
    struct str *item = arena_new(arena, struct str);
    *item = text;
    return (struct str_list){ item, 1 };
}

static struct str_list one_or_none(struct arena *arena, struct str text)
{
    return text.len ? one(arena, text) : (struct str_list){ 0 };
}

static struct str_list number(struct arena *arena, uint64_t n)
{
    char digits[20];
    size_t at = sizeof digits;
    do
        digits[--at] = (char)('0' + n % 10);
    while (n /= 10);
    return one(arena, arena_str(arena, (struct str){ digits + at, sizeof digits - at }));
}

static struct str_list number_or_none(struct arena *arena, uint64_t n)
{
    return n ? number(arena, n) : (struct str_list){ 0 };
}

static struct str_list flag(struct arena *arena, bool on)
{
    return one(arena, on ? STR("true") : STR("false"));
}

/* "Radeon Pro V520" is radeon-pro-v520. */
static struct str_list kebab(struct arena *arena, struct str name)
{
    char *p = arena_alloc(arena, name.len + 1);
    for (size_t i = 0; i < name.len; i++)
        p[i] = name.p[i] == ' ' ? '-' : char_lower(name.p[i]);
    return one(arena, (struct str){ p, name.len });
}

/* --- names --- */

/* What follows an optional "-6tb" at the start of `rest`. */
static struct str skip_terabytes(struct str rest)
{
    struct str after = rest;
    if (!after.len || after.p[0] != '-')
        return rest;
    after = str_sub(after, 1, after.len);
    if (!str_take_digits(&after).len || !str_starts(after, STR("tb")))
        return rest;
    return str_sub(after, 2, after.len);
}

/* ^([a-z]+)(-[0-9]+tb)?([0-9]+).*\. : m5.large is m and 5, u-6tb1.metal u and 1. */
static void set_category(struct arena *arena, struct str name, struct str_list *values)
{
    size_t letters = 0;
    while (letters < name.len && name.p[letters] >= 'a' && name.p[letters] <= 'z')
        letters++;
    struct str rest = skip_terabytes(str_sub(name, letters, name.len));
    struct str generation = str_take_digits(&rest);
    if (!letters || !generation.len || str_find(rest, '.') < 0)
        return;
    values[CATEGORY] = one(arena, str_sub(name, 0, letters));
    values[GENERATION] = one(arena, generation);
}

static bool has_flex(struct str family)
{
    struct str flex = STR("-flex");
    for (size_t i = 0; i + flex.len <= family.len; i++) {
        if (str_eq(str_sub(family, i, flex.len), flex))
            return true;
    }
    return false;
}

static void set_names(struct arena *arena, struct str name, struct str_list *values)
{
    struct str family, size;
    values[INSTANCE_TYPE] = one(arena, name);
    set_category(arena, name, values);
    if (str_cut(name, '.', &family, &size) && str_find(size, '.') < 0) {
        values[FAMILY] = one(arena, family);
        values[SIZE] = one(arena, size);
    }
    values[FLEX] = flag(arena, has_flex(family));
}

/* --- hardware --- */

static void set_devices(struct arena *arena, const struct machine *m, struct str_list *values)
{
    if (m->gpu_count == 1) {
        const struct machine_gpu *gpu = &m->gpus[0];
        values[GPU_NAME] = kebab(arena, gpu->name);
        values[GPU_MAKER] = kebab(arena, gpu->manufacturer);
        values[GPU_COUNT] = number(arena, gpu->count);
        values[GPU_MEMORY] = number(arena, gpu->memory_mib);
    }
    if (m->accelerator_count == 1) {
        const struct machine_accelerator *accelerator = &m->accelerators[0];
        values[ACCELERATOR_NAME] = kebab(arena, accelerator->name);
        values[ACCELERATOR_MAKER] = kebab(arena, accelerator->manufacturer);
        values[ACCELERATOR_COUNT] = number(arena, accelerator->count);
    }
}

static void set_hardware(struct arena *arena, const struct machine *m, struct str_list *values)
{
    values[ARCH] = one(arena, m->arch == MACHINE_ARM64 ? STR("arm64") : STR("amd64"));
    values[CPU] = number(arena, m->vcpus);
    values[CPU_MAKER] = kebab(arena, m->cpu_manufacturer);
    values[CPU_CLOCK] = number(arena, m->clock_mhz);
    values[MEMORY] = number(arena, m->memory_mib);
    values[EBS_BANDWIDTH] = number_or_none(arena, m->ebs_mbps);
    values[NETWORK_BANDWIDTH] = number_or_none(arena, m->network_mbps);
    values[LOCAL_NVME] = number_or_none(arena, m->local_nvme_gb);
    values[HYPERVISOR] = one(arena, m->hypervisor); /* bare metal has the label, and it is empty */
    values[ENCRYPTION] = flag(arena, m->encryption_in_transit);
    if (m->nitro_enclaves)
        values[NITRO_SANDBOX] = flag(arena, true);
    values[TENANCY] = (struct str_list){ tenancies, KV_COUNT_OF(tenancies) };
}

static void set_placement(struct arena *arena, const struct type_placement *p,
                          struct str_list *values)
{
    values[REGION] = one_or_none(arena, p->region);
    values[OS] = one_or_none(arena, p->os);
    values[WINDOWS_BUILD] = one_or_none(arena, p->windows_build);
    values[ZONE] = p->zones;
    values[ZONE_ID] = p->zone_ids;
    values[CAPACITY_TYPE] = p->capacity_types;
    values[RESERVATION_ID] = p->reservation_ids;
    values[RESERVATION_TYPE] = p->reservation_types;
    values[RESERVATION_INTERRUPTIBLE] = p->reservation_interruptible;
}

struct requirements machine_labels(struct arena *arena, const struct machine *machine,
                                   const struct type_placement *placement)
{
    struct str_list values[LABELS] = { 0 };
    set_names(arena, machine->name, values);
    set_hardware(arena, machine, values);
    set_devices(arena, machine, values);
    set_placement(arena, placement, values);

    struct requirement *items = arena_array(arena, struct requirement, LABELS);
    for (int i = 0; i < LABELS; i++) {
        items[i].key = keys[i];
        items[i].values = values[i];
    }
    return (struct requirements){ items, LABELS };
}

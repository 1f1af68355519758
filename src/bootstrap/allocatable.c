/* The formulas of EKS nodes, as Karpenter has them: where they differ from what a node's own
 * scripts compute, pods would be placed on memory that is not there.
 *
 * Amounts are exact quantities throughout. A class can reserve more than a quantity holds (9E twice):
 * sums then stop at the largest one, and nothing is left to allocate.
 */
#include "bootstrap/allocatable.h"

#include "bootstrap/boot.h"
#include "bootstrap/families.h"

#define MIB ((int64_t)1 << 20)
#define GIB ((int64_t)1 << 30)

#define PODS_WITHOUT_ENI_LIMIT 110

/* Reservable resources, and where spec.kubelet and Bottlerocket's settings have them. */
enum { RESERVE_CPU, RESERVE_STORAGE, RESERVE_MEMORY, RESERVE_PID };
static const char *const reservable_names[RESERVABLE_COUNT] = { "cpu", "ephemeral-storage",
                                                                "memory", "pid" };

/* --- quantities --- */

static struct quantity binary(int64_t bytes)
{
    struct quantity q = quantity_of(bytes);
    q.format = QUANTITY_BINARY;
    return q;
}

static struct quantity add(struct quantity a, struct quantity b)
{
    struct quantity sum;
    return quantity_add(a, b, &sum, NULL) == 0 ? sum : quantity_of(INT64_MAX);
}

/* What is left of a, and never less than nothing: neither is negative, so it cannot overflow. */
static struct quantity less(struct quantity a, struct quantity b)
{
    struct quantity rest;
    if (quantity_cmp(a, b) <= 0 || quantity_sub(a, b, &rest, NULL) < 0)
        return (struct quantity){ .format = a.format };
    return rest;
}

/* ceil(capacity * percent / 100), percent counted in billionths. */
static struct quantity share(struct quantity capacity, struct quantity percent)
{
    __extension__ typedef __int128 wide;
    const wide billion = 1000000000, whole = 100 * billion;
    wide part = (wide)quantity_units(capacity) * (percent.units * billion + percent.nano);
    return binary((int64_t)((part + whole - 1) / whole));
}

/* --- the class: from text to numbers --- */

static int read_reservation(const struct str_map *map, const char *what, struct reservation *out,
                            struct err *err)
{
    for (uint32_t i = 0; i < map->count; i++) {
        const struct str_pair *pair = &map->items[i];
        for (int r = 0; r < RESERVABLE_COUNT; r++) {
            if (!str_eqz(pair->key, reservable_names[r]))
                continue;
            if (quantity_parse(pair->value, &out->amount[r], err) < 0)
                return err_wrap(err, "%s[\"%s\"]", what, reservable_names[r]);
            if (quantity_cmp(out->amount[r], quantity_of(0)) < 0)
                return err_set(err, ERR_INVALID, "%s[\"%s\"]: %s is negative", what,
                               reservable_names[r], STR_SHOWN(pair->value));
            out->set[r] = true;
        }
    }
    return 0;
}

static int read_threshold(const struct str_map *map, const char *what, struct str signal,
                          struct eviction_threshold *out, struct err *err)
{
    struct str text = str_map_get(map, signal);
    if (!text.p)
        return 0;
    out->set = true;
    out->percent = str_ends(text, STR("%"));
    bool ok = quantity_parse(str_sub(text, 0, text.len - out->percent), &out->amount, NULL) == 0 &&
              quantity_cmp(out->amount, quantity_of(0)) >= 0 &&
              (!out->percent || quantity_cmp(out->amount, quantity_of(100)) <= 0);
    if (!ok)
        return err_set(
            err, ERR_INVALID,
            "%s[\"%.*s\"]: %s is neither a percentage from 0%% to 100%% nor a quantity of "
            "at least 0",
            what, STR_ARG(signal), STR_SHOWN(text));
    if (out->percent && quantity_cmp(out->amount, quantity_of(100)) == 0)
        out->amount = quantity_of(0); /* 100% switches the signal off */
    return 0;
}

/* The size of a volume; false: it has none of its own (only a snapshot, say). */
static bool volume_size(const struct block_device *device, struct quantity *out)
{
    return device->ebs && device->ebs->size.len &&
           quantity_parse(device->ebs->size, out, NULL) == 0 &&
           quantity_cmp(*out, quantity_of(0)) > 0;
}

/* Where the kubelet's root directory is: the device that says so, else the family's, of which a
 * custom image does not tell (its last one is taken). */
static struct quantity storage_capacity(const struct allocatable_class *class_,
                                        const struct family *family)
{
    struct quantity size;
    uint32_t count = class_->block_device_count;

    for (uint32_t i = 0; i < count; i++) {
        if (class_->block_devices[i].root_volume && volume_size(&class_->block_devices[i], &size))
            return size;
    }
    for (uint32_t i = 0; i < count && family->ephemeral_device; i++) {
        const struct block_device *device = &class_->block_devices[i];
        if (str_eqz(device->device_name, family->ephemeral_device) && volume_size(device, &size))
            return size;
    }
    if (!family->ephemeral_device && count && volume_size(&class_->block_devices[count - 1], &size))
        return size;
    return binary((int64_t)family->ephemeral_default_gib * GIB);
}

int allocatable_prepare(const struct allocatable_class *class_,
                        const struct allocatable_options *options, struct allocatable_rules *out,
                        struct err *err)
{
    static const struct kubelet_config none;
    const struct kubelet_config *k = class_->maybe_kubelet ? class_->maybe_kubelet : &none;
    const struct family *family = family_of(class_->family);
    /* What spec.kubelet says replaces the table of the user's TOML as a whole. */
    const struct str_map *kube =
        k->has_kube_reserved ? &k->kube_reserved : &class_->toml_kube_reserved;
    const struct str_map *system =
        k->has_system_reserved ? &k->system_reserved : &class_->toml_system_reserved;
    const struct str_map *eviction =
        k->has_eviction_hard ? &k->eviction_hard : &class_->toml_eviction_hard;
    const char *kube_name =
        k->has_kube_reserved ? "spec.kubelet.kubeReserved" : "settings.kubernetes.kube-reserved";
    const char *system_name = k->has_system_reserved ? "spec.kubelet.systemReserved"
                                                     : "settings.kubernetes.system-reserved";
    const char *eviction_name =
        k->has_eviction_hard ? "spec.kubelet.evictionHard" : "settings.kubernetes.eviction-hard";
    struct allocatable_rules rules = {
        .family = family,
        .options = *options,
        .storage_capacity = storage_capacity(class_, family),
        .max_pods = k->max_pods,
        .pods_per_core = k->pods_per_core,
        .efa_only_interfaces = class_->efa_only_interfaces,
        .efa_only_on_card0 = class_->efa_only_on_card0,
        .raid0 = class_->raid0,
        .has_network_interfaces = class_->has_network_interfaces,
        .prefix_delegation = class_->prefix_delegation,
    };

    if (read_reservation(kube, kube_name, &rules.kube, err) < 0 ||
        read_reservation(system, system_name, &rules.system, err) < 0 ||
        read_threshold(eviction, eviction_name, STR("memory.available"), &rules.memory, err) < 0 ||
        read_threshold(eviction, eviction_name, STR("nodefs.available"), &rules.storage, err) < 0)
        return -1;
    *out = rules;
    return 0;
}

int allocatable_class_of(struct arena *arena, const struct ec2nodeclass *class_,
                         struct allocatable_class *out, struct err *err)
{
    const struct ec2nodeclass_spec *spec = &class_->spec;
    struct kubelet_config *kubelet = arena_new(arena, struct kubelet_config);
    struct allocatable_class of = {
        .family = ec2nodeclass_ami_family(spec),
        .maybe_kubelet = kubelet,
        .block_devices = spec->block_devices.items,
        .block_device_count = spec->block_devices.count,
        .raid0 = spec->instance_store_policy == INSTANCE_STORE_RAID0,
        .has_network_interfaces = spec->network_interfaces.count > 0,
        .prefix_delegation = str_eqz(
            str_map_get(&class_->object.meta.annotations, STR(ANNOTATION_PREFIX_DELEGATION)),
            "true"),
    };

    for (uint32_t i = 0; i < spec->network_interfaces.count; i++) {
        const struct network_interface *interface = &spec->network_interfaces.items[i];
        bool efa_only = interface->type == INTERFACE_EFA_ONLY;
        of.efa_only_interfaces += efa_only;
        of.efa_only_on_card0 += efa_only && interface->card_index == 0;
    }
    if (kubelet_config_read(arena, spec->kubelet, of.family, kubelet, err) < 0)
        return -1;
    if (of.family == AMI_FAMILY_BOTTLEROCKET &&
        bottlerocket_reservations(arena, spec->user_data, &of.toml_kube_reserved,
                                  &of.toml_system_reserved, &of.toml_eviction_hard, err) < 0)
        return err_wrap(err, "spec.userData");
    *out = of;
    return 0;
}

/* --- pods --- */

static int64_t pod_interfaces(const struct machine *m, uint32_t reserved, uint32_t efa_only)
{
    int64_t left = (int64_t)m->enis - reserved - efa_only;
    return left > 0 && m->ipv4_per_eni > 0 ? left : 0;
}

/* Every interface keeps its first address for itself; two pods use the host's network. */
int64_t allocatable_eni_pods(const struct machine *machine, uint32_t reserved_enis,
                             uint32_t efa_only_on_card0)
{
    int64_t interfaces = pod_interfaces(machine, reserved_enis, efa_only_on_card0);
    return interfaces ? interfaces * (machine->ipv4_per_eni - 1) + 2 : 0;
}

/* A slot that holds an address can hold a prefix of sixteen. The caps are those of the calculator on
 * EKS nodes: beyond them, not addresses but the kubelet is what a node runs out of. Bare metal
 * (no hypervisor) is nitro hardware too. */
static int64_t prefix_pods(const struct allocatable_rules *rules, const struct machine *m)
{
    int64_t interfaces = pod_interfaces(m, rules->options.reserved_enis, rules->efa_only_on_card0);
    int64_t pods = interfaces ? interfaces * (m->ipv4_per_eni - 1) * 16 + 2 : 0;
    int64_t cap = m->vcpus > 30 ? 250 : 110;
    return pods < cap ? pods : cap;
}

static int64_t count_pods(const struct allocatable_rules *rules, const struct machine *m)
{
    bool nitro = !m->hypervisor.len || str_eqz(m->hypervisor, "nitro");
    int64_t pods = PODS_WITHOUT_ENI_LIMIT;

    if (rules->max_pods.set)
        pods = rules->max_pods.value;
    else if (rules->family->eni_limited_pods && rules->prefix_delegation && nitro)
        pods = prefix_pods(rules, m);
    else if (rules->family->eni_limited_pods)
        pods = allocatable_eni_pods(m, rules->options.reserved_enis, rules->efa_only_on_card0);

    if (rules->family->pods_per_core && rules->pods_per_core.value > 0) {
        int64_t by_core = rules->pods_per_core.value * m->vcpus;
        pods = by_core < pods ? by_core : pods;
    }
    return pods;
}

int64_t allocatable_pods(const struct machine *machine, const struct allocatable_class *class_,
                         const struct allocatable_options *options)
{
    static const struct kubelet_config none;
    const struct kubelet_config *k = class_->maybe_kubelet ? class_->maybe_kubelet : &none;
    struct allocatable_rules rules = {
        .family = family_of(class_->family),
        .options = *options,
        .max_pods = k->max_pods,
        .pods_per_core = k->pods_per_core,
        .efa_only_on_card0 = class_->efa_only_on_card0,
        .prefix_delegation = class_->prefix_delegation,
    };
    return count_pods(&rules, machine);
}

/* --- capacity --- */

/* In the byte order of the names, so that filling them in order gives a sorted list. */
enum {
    HAS_AMD_GPU,
    HAS_NEURON,
    HAS_NEURON_CORE,
    HAS_CPU,
    HAS_STORAGE,
    HAS_GAUDI,
    HAS_MEMORY,
    HAS_NVIDIA_GPU,
    HAS_PODS,
    HAS_PRIVATE_IPV4,
    HAS_EFA,
    HAS_POD_ENI,
    CAPACITY_COUNT,
};

#define NAME(literal)                                                                              \
    {                                                                                              \
        "" literal, sizeof(literal) - 1                                                            \
    }
static const struct str capacity_names[CAPACITY_COUNT] = {
    [HAS_AMD_GPU] = NAME("amd.com/gpu"),
    [HAS_NEURON] = NAME("aws.amazon.com/neuron"),
    [HAS_NEURON_CORE] = NAME("aws.amazon.com/neuroncore"),
    [HAS_CPU] = NAME("cpu"),
    [HAS_STORAGE] = NAME("ephemeral-storage"),
    [HAS_GAUDI] = NAME("habana.ai/gaudi"),
    [HAS_MEMORY] = NAME("memory"),
    [HAS_NVIDIA_GPU] = NAME("nvidia.com/gpu"),
    [HAS_PODS] = NAME("pods"),
    [HAS_PRIVATE_IPV4] = NAME("vpc.amazonaws.com/PrivateIPv4Address"),
    [HAS_EFA] = NAME("vpc.amazonaws.com/efa"),
    [HAS_POD_ENI] = NAME("vpc.amazonaws.com/pod-eni"),
};

/* What the hypervisor and the kernel keep, rounded up; arm64 firmware keeps 64 MiB more. */
static int64_t memory_mib(const struct allocatable_rules *rules, const struct machine *m)
{
    int64_t mib = (int64_t)m->memory_mib - (m->arch == MACHINE_ARM64 ? 64 : 0);
    int64_t kept = (mib * rules->options.memory_overhead_ppm + 999999) / 1000000;
    return mib > kept ? mib - kept : 0;
}

static void count_gpus(const struct machine *m, struct quantity amount[CAPACITY_COUNT])
{
    static const struct {
        struct str manufacturer;
        int resource;
    } makers[] = {
        { NAME("AMD"), HAS_AMD_GPU },
        { NAME("Habana"), HAS_GAUDI },
        { NAME("NVIDIA"), HAS_NVIDIA_GPU },
    };
    for (uint32_t i = 0; i < m->gpu_count; i++) {
        for (size_t k = 0; k < KV_COUNT_OF(makers); k++) {
            if (str_eq(m->gpus[i].manufacturer, makers[k].manufacturer))
                amount[makers[k].resource].units += m->gpus[i].count;
        }
    }
}

static void count_neuron(const struct machine *m, struct quantity amount[CAPACITY_COUNT])
{
    bool first = true;
    for (uint32_t i = 0; i < m->accelerator_count; i++) {
        const struct machine_accelerator *a = &m->accelerators[i];
        if (!a->neuron)
            continue;
        amount[HAS_NEURON].units += a->count;
        if (first)
            amount[HAS_NEURON_CORE].units = (int64_t)a->count * a->cores;
        first = false;
    }
}

static void count_capacity(const struct allocatable_rules *rules, const struct machine *m,
                           int64_t pods, struct quantity amount[CAPACITY_COUNT])
{
    amount[HAS_CPU] = quantity_of(m->vcpus);
    amount[HAS_MEMORY] = binary(memory_mib(rules, m) * MIB);
    amount[HAS_PODS] = quantity_of(pods);
    amount[HAS_STORAGE] = rules->storage_capacity;
    if (rules->raid0 && m->local_disk_gb) {
        amount[HAS_STORAGE] = quantity_of((int64_t)m->local_disk_gb * 1000000000);
    }
    amount[HAS_POD_ENI] = quantity_of(m->branch_interfaces);
    amount[HAS_EFA] =
        quantity_of(rules->has_network_interfaces ? rules->efa_only_interfaces : m->efa_max);
    if (rules->family->windows && m->ipv4_per_eni)
        amount[HAS_PRIVATE_IPV4] = quantity_of(m->ipv4_per_eni - 1);
    count_gpus(m, amount);
    count_neuron(m, amount);
}

/* --- overhead --- */

/* A share of each core that shrinks as they get more, in thousandths of a core. */
static int64_t reserved_cpu_milli(uint32_t vcpus)
{
    static const struct {
        int64_t slice, rate; /* millicores, and how many of 10000 are kept */
    } tiers[] = { { 1000, 600 }, { 1000, 100 }, { 2000, 50 }, { INT64_MAX, 25 } };
    int64_t left = (int64_t)vcpus * 1000, milli = 0;
    for (size_t i = 0; i < KV_COUNT_OF(tiers); i++) {
        int64_t slice = left < tiers[i].slice ? left : tiers[i].slice;
        milli += slice * tiers[i].rate / 10000;
        left -= slice;
    }
    return milli;
}

static struct reservation kube_reserved(const struct allocatable_rules *rules,
                                        const struct machine *m, int64_t pods)
{
    struct reservation r = rules->kube;
    /* The node's scripts count the pods that its interfaces allow, whatever maxPods says. */
    int64_t counted = rules->family->reserved_by_eni_pods ? allocatable_eni_pods(m, 0, 0) : pods;

    if (!r.set[RESERVE_CPU])
        r.amount[RESERVE_CPU] = quantity_of_milli(reserved_cpu_milli(m->vcpus));
    if (!r.set[RESERVE_MEMORY])
        r.amount[RESERVE_MEMORY] = binary((11 * counted + 255) * MIB);
    if (!r.set[RESERVE_STORAGE])
        r.amount[RESERVE_STORAGE] = binary(GIB);
    r.set[RESERVE_CPU] = r.set[RESERVE_MEMORY] = r.set[RESERVE_STORAGE] = true;
    return r;
}

static struct quantity threshold(const struct eviction_threshold *t, struct quantity capacity,
                                 struct quantity dflt)
{
    if (!t->set)
        return dflt;
    return t->percent ? share(capacity, t->amount) : t->amount;
}

static struct reservation eviction(const struct allocatable_rules *rules, struct quantity memory,
                                   struct quantity storage)
{
    struct reservation r = { .set = { [RESERVE_STORAGE] = true, [RESERVE_MEMORY] = true } };
    r.amount[RESERVE_MEMORY] = threshold(&rules->memory, memory, binary(100 * MIB));
    r.amount[RESERVE_STORAGE] =
        threshold(&rules->storage, storage, share(storage, quantity_of(10)));
    return r;
}

static struct reservation sum(const struct reservation *a, const struct reservation *b)
{
    struct reservation r = { 0 };
    for (int i = 0; i < RESERVABLE_COUNT; i++) {
        r.amount[i] = add(a->amount[i], b->amount[i]);
        r.set[i] = a->set[i] || b->set[i];
    }
    return r;
}

/* --- the lists --- */

static struct resources list_of(struct arena *arena, const struct reservation *r)
{
    struct resource *items = arena_array(arena, struct resource, RESERVABLE_COUNT);
    uint32_t count = 0;
    for (int i = 0; i < RESERVABLE_COUNT; i++) {
        if (r->set[i])
            items[count++] = (struct resource){ str_of(reservable_names[i]), r->amount[i] };
    }
    return (struct resources){ items, count };
}

static bool always_listed(int resource)
{
    return resource == HAS_CPU || resource == HAS_MEMORY || resource == HAS_STORAGE ||
           resource == HAS_PODS;
}

static struct resources capacity_list(struct arena *arena, const struct quantity *amount)
{
    struct resource *items = arena_array(arena, struct resource, CAPACITY_COUNT);
    uint32_t count = 0;
    for (int i = 0; i < CAPACITY_COUNT; i++) {
        if (always_listed(i) || !quantity_is_zero(amount[i]))
            items[count++] = (struct resource){ capacity_names[i], amount[i] };
    }
    return (struct resources){ items, count };
}

void allocatable_of(struct arena *arena, const struct allocatable_rules *rules,
                    const struct machine *machine, struct node_resources *out)
{
    struct quantity amount[CAPACITY_COUNT] = { 0 };
    int64_t pods = count_pods(rules, machine);
    count_capacity(rules, machine, pods, amount);

    struct reservation kube = kube_reserved(rules, machine, pods);
    struct reservation evict = eviction(rules, amount[HAS_MEMORY], amount[HAS_STORAGE]);
    struct reservation both = sum(&kube, &rules->system), all = sum(&both, &evict);
    all.set[RESERVE_PID] = false;

    out->pods = pods;
    out->capacity = capacity_list(arena, amount);
    out->kube_reserved = list_of(arena, &kube);
    out->system_reserved = list_of(arena, &rules->system);
    out->eviction = list_of(arena, &evict);
    out->overhead = list_of(arena, &all);
    amount[HAS_CPU] = less(amount[HAS_CPU], all.amount[RESERVE_CPU]);
    amount[HAS_MEMORY] = less(amount[HAS_MEMORY], all.amount[RESERVE_MEMORY]);
    amount[HAS_STORAGE] = less(amount[HAS_STORAGE], all.amount[RESERVE_STORAGE]);
    out->allocatable = capacity_list(arena, amount);
}

int allocatable_compute(struct arena *arena, const struct machine *machine,
                        const struct allocatable_class *class_,
                        const struct allocatable_options *options, struct node_resources *out,
                        struct err *err)
{
    struct allocatable_rules rules;
    if (allocatable_prepare(class_, options, &rules, err) < 0)
        return -1;
    allocatable_of(arena, &rules, machine, out);
    return 0;
}

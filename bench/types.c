#include "bench/types.h"

#include "base/rng.h"

#include <inttypes.h>

#define ZONES 6

static const char *const zone_names[ZONES] = { "us-east-1a", "us-east-1b", "us-east-1c",
                                               "us-east-1d", "us-east-1e", "us-east-1f" };
static const char *const zone_ids[ZONES] = { "use1-az1", "use1-az2", "use1-az3",
                                             "use1-az4", "use1-az5", "use1-az6" };
static const char *const capacity_types[] = { CAPACITY_ON_DEMAND, CAPACITY_SPOT };

/* The labels of an EC2 instance type, sorted; how many of 100 types have one, and how many different
 * values there are. 0 values: see label_values. */
static const struct label {
    const char *key;
    uint32_t percent, values;
} labels[] = {
    { "karpenter.k8s.aws/capacity-reservation-id", 0, 1 },
    { "karpenter.k8s.aws/capacity-reservation-interruptible", 0, 1 },
    { "karpenter.k8s.aws/capacity-reservation-type", 0, 1 },
    { "karpenter.k8s.aws/instance-accelerator-count", 3, 4 },
    { "karpenter.k8s.aws/instance-accelerator-manufacturer", 3, 2 },
    { "karpenter.k8s.aws/instance-accelerator-name", 3, 4 },
    { "karpenter.k8s.aws/instance-capability-flex", 100, 2 },
    { "karpenter.k8s.aws/instance-category", 100, 18 },
    { "karpenter.k8s.aws/instance-cpu", 100, 20 },
    { "karpenter.k8s.aws/instance-cpu-manufacturer", 100, 3 },
    { "karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz", 100, 30 },
    { "karpenter.k8s.aws/instance-ebs-bandwidth", 95, 40 },
    { "karpenter.k8s.aws/instance-encryption-in-transit-supported", 100, 2 },
    { "karpenter.k8s.aws/instance-family", 100, 120 },
    { "karpenter.k8s.aws/instance-generation", 100, 9 },
    { "karpenter.k8s.aws/instance-gpu-count", 8, 5 },
    { "karpenter.k8s.aws/instance-gpu-manufacturer", 8, 2 },
    { "karpenter.k8s.aws/instance-gpu-memory", 8, 8 },
    { "karpenter.k8s.aws/instance-gpu-name", 8, 10 },
    { "karpenter.k8s.aws/instance-hypervisor", 100, 3 },
    { "karpenter.k8s.aws/instance-local-nvme", 40, 60 },
    { "karpenter.k8s.aws/instance-memory", 100, 80 },
    { "karpenter.k8s.aws/instance-network-bandwidth", 100, 60 },
    { "karpenter.k8s.aws/instance-size", 100, 20 },
    { "karpenter.k8s.aws/instance-tenancy", 100, 1 },
    { "karpenter.k8s.aws/nitro-sandbox", 70, 1 },
    { "karpenter.k8s.aws/placement-group-id", 0, 1 },
    { LABEL_CAPACITY_TYPE, 100, 0 },
    { LABEL_ARCH, 100, 2 },
    { LABEL_OS, 100, 1 },
    { LABEL_INSTANCE_TYPE, 100, 0 },
    { LABEL_WINDOWS_BUILD, 0, 1 },
    { "topology.k8s.aws/zone-id", 100, 0 },
    { LABEL_REGION, 100, 1 },
    { LABEL_ZONE, 100, 0 },
};
#define LABELS KV_COUNT_OF(labels)

static struct str_list one_of(struct arena *a, struct str value)
{
    struct str *items = arena_new(a, struct str);
    *items = value;
    return (struct str_list){ items, 1 };
}

static struct str_list all_of(struct arena *a, const char *const *values, uint32_t n)
{
    struct str *items = arena_array(a, struct str, n);
    for (uint32_t i = 0; i < n; i++)
        items[i] = str_of(values[i]);
    return (struct str_list){ items, n };
}

static struct str_list label_values(struct arena *a, struct rng *rng, const struct label *label,
                                    struct str type)
{
    if (rng_below(rng, 100) >= label->percent)
        return (struct str_list){ 0 }; /* DoesNotExist */
    if (label->values)
        return one_of(a, arena_strf(a, "%" PRIu64, rng_below(rng, label->values) * 1024));
    struct str key = str_of(label->key);
    if (str_eqz(key, LABEL_INSTANCE_TYPE))
        return one_of(a, type);
    if (str_eqz(key, LABEL_CAPACITY_TYPE))
        return all_of(a, capacity_types, KV_COUNT_OF(capacity_types));
    return all_of(a, str_eqz(key, LABEL_ZONE) ? zone_names : zone_ids, ZONES);
}

static struct requirements make_labels(struct arena *a, struct rng *rng, struct str type)
{
    struct requirement *items = arena_array(a, struct requirement, LABELS);
    for (size_t i = 0; i < LABELS; i++) {
        items[i].key = str_of(labels[i].key);
        items[i].values = label_values(a, rng, &labels[i], type);
    }
    return (struct requirements){ items, LABELS };
}

static struct resources make_resources(struct arena *a, const char *const *names,
                                       const int64_t *amounts, uint32_t n)
{
    struct resource *items = arena_array(a, struct resource, n);
    for (uint32_t i = 0; i < n; i++)
        items[i] = (struct resource){ str_of(names[i]), quantity_of(amounts[i]) };
    return (struct resources){ items, n };
}

static void make_offerings(struct arena *a, struct rng *rng, struct instance_type_draft *draft,
                           usd_hour on_demand)
{
    static const char *const keys[] = { LABEL_CAPACITY_TYPE, "topology.k8s.aws/zone-id",
                                        LABEL_ZONE };
    struct offering_draft *offerings =
        arena_array(a, struct offering_draft, ZONES * KV_COUNT_OF(capacity_types));
    for (uint32_t z = 0; z < ZONES; z++) {
        for (uint32_t c = 0; c < KV_COUNT_OF(capacity_types); c++) {
            struct offering_draft *o = &offerings[draft->offering_count++];
            const char *const values[] = { capacity_types[c], zone_ids[z], zone_names[z] };
            struct requirement *where = arena_array(a, struct requirement, KV_COUNT_OF(keys));
            for (size_t i = 0; i < KV_COUNT_OF(keys); i++) {
                where[i].key = str_of(keys[i]);
                where[i].values = one_of(a, str_of(values[i]));
            }
            o->requirements = (struct requirements){ where, KV_COUNT_OF(keys) };
            o->price = c ? on_demand / 1000 * (usd_hour)(200 + rng_below(rng, 300)) : on_demand;
            o->available = rng_below(rng, 20) > 0;
        }
    }
    draft->offerings = offerings;
}

const struct instance_type_draft *type_drafts(struct arena *arena, uint64_t seed,
                                              uint32_t type_count)
{
    static const char *const capacity[] = { "cpu", "ephemeral-storage", "memory", "pods" };
    static const char *const overhead[] = { "cpu", "memory" };
    struct rng rng;
    rng_init(&rng, seed);
    struct instance_type_draft *drafts = arena_array(arena, struct instance_type_draft, type_count);
    for (uint32_t i = 0; i < type_count; i++) {
        struct instance_type_draft *d = &drafts[i];
        int64_t cpu = INT64_C(1) << rng_below(&rng, 8), gib = INT64_C(1) << 30;
        d->name = arena_strf(arena, "f%02u.%uxlarge", i / 12, i % 12);
        d->requirements = make_labels(arena, &rng, d->name);
        d->capacity =
            make_resources(arena, capacity, (int64_t[]){ cpu, 20 * gib, cpu * 4 * gib, 58 }, 4);
        d->overhead = make_resources(arena, overhead, (int64_t[]){ 1, gib / 2 }, 2);
        make_offerings(arena, &rng, d, USD_HOUR_ONE / 20 * cpu);
    }
    return drafts;
}

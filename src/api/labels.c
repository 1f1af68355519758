#include "api/labels.h"

#define K(literal)                                                                                 \
    {                                                                                              \
        "" literal, sizeof(literal) - 1                                                            \
    }
#define AWS(name) K("karpenter.k8s.aws/" name)
#define KWOK(name) K("karpenter.kwok.sh/" name)

/* Each list is in byte order; the tests check it. */
#define WELL_KNOWN_SH K(LABEL_CAPACITY_TYPE), K(LABEL_NODEPOOL)
#define WELL_KNOWN_KUBERNETES                                                                      \
    K(LABEL_ARCH), K(LABEL_OS), K(LABEL_INSTANCE_TYPE), K(LABEL_WINDOWS_BUILD)
#define WELL_KNOWN_TOPOLOGY K(LABEL_REGION), K(LABEL_ZONE)

static const struct str core_known[] = {
    WELL_KNOWN_SH,
    WELL_KNOWN_KUBERNETES,
    WELL_KNOWN_TOPOLOGY,
};

static const struct str aws_known[] = {
    AWS("capacity-reservation-id"),
    AWS("capacity-reservation-interruptible"),
    AWS("capacity-reservation-type"),
    AWS("instance-accelerator-count"),
    AWS("instance-accelerator-manufacturer"),
    AWS("instance-accelerator-name"),
    AWS("instance-capability-flex"),
    AWS("instance-category"),
    AWS("instance-cpu"),
    AWS("instance-cpu-manufacturer"),
    AWS("instance-cpu-sustained-clock-speed-mhz"),
    AWS("instance-ebs-bandwidth"),
    AWS("instance-encryption-in-transit-supported"),
    AWS("instance-family"),
    AWS("instance-generation"),
    AWS("instance-gpu-count"),
    AWS("instance-gpu-manufacturer"),
    AWS("instance-gpu-memory"),
    AWS("instance-gpu-name"),
    AWS("instance-hypervisor"),
    AWS("instance-local-nvme"),
    AWS("instance-memory"),
    AWS("instance-network-bandwidth"),
    AWS("instance-size"),
    AWS("instance-tenancy"),
    AWS("nitro-sandbox"),
    AWS("placement-group-id"),
    AWS("placement-group-partition"),
    WELL_KNOWN_SH,
    WELL_KNOWN_KUBERNETES,
    K("topology.k8s.aws/zone-id"),
    WELL_KNOWN_TOPOLOGY,
};

static const struct str kwok_known[] = {
    KWOK("instance-cpu"), KWOK("instance-family"), KWOK("instance-memory"), KWOK("instance-size"),
    WELL_KNOWN_SH,        WELL_KNOWN_KUBERNETES,   WELL_KNOWN_TOPOLOGY,
};

static const struct str core_restricted[] = { K("karpenter.sh") };
static const struct str aws_restricted[] = { K("karpenter.k8s.aws"), K("karpenter.sh") };
static const struct str kwok_restricted[] = { K("karpenter.kwok.sh"), K("karpenter.sh") };

#define LIST_OF(array)                                                                             \
    {                                                                                              \
        array, KV_COUNT_OF(array)                                                                  \
    }
static const struct label_rules core_rules = { LIST_OF(core_known), LIST_OF(core_restricted) };

static const struct {
    struct str group;
    struct label_rules rules;
} provider_rules[] = {
    { K("karpenter.k8s.aws"), { LIST_OF(aws_known), LIST_OF(aws_restricted) } },
    { K("karpenter.kwok.sh"), { LIST_OF(kwok_known), LIST_OF(kwok_restricted) } },
};

const struct label_rules *label_rules_for(struct str class_group)
{
    for (size_t i = 0; i < KV_COUNT_OF(provider_rules); i++) {
        if (str_eq(class_group, provider_rules[i].group))
            return &provider_rules[i].rules;
    }
    return &core_rules;
}

struct label_rules label_rules_extend(struct arena *arena, const struct label_rules *rules,
                                      struct str_list keys)
{
    uint32_t base = rules->well_known.count, total = base + keys.count;
    struct str *all = arena_array(arena, struct str, total);
    memcpy(all, rules->well_known.items, base * sizeof *all);
    for (uint32_t i = 0; i < keys.count; i++)
        all[base + i] = arena_str(arena, label_normalise(keys.items[i]));
    uint32_t kept = (uint32_t)str_sort_unique(all, total);
    return (struct label_rules){ { all, kept }, rules->restricted_domains };
}

bool label_is_well_known(const struct label_rules *rules, struct str key)
{
    return str_sorted_has(rules->well_known.items, rules->well_known.count, key);
}

static bool in_domain(struct str domain, struct str parent)
{
    if (domain.len <= parent.len)
        return str_eq(domain, parent);
    return str_ends(domain, parent) && domain.p[domain.len - parent.len - 1] == '.';
}

bool label_is_restricted(const struct label_rules *rules, struct str key)
{
    if (label_is_well_known(rules, key))
        return false;
    if (str_eq(key, STR(LABEL_HOSTNAME)))
        return true;
    struct str domain, name;
    if (!str_cut(key, '/', &domain, &name))
        return false; /* a plain name belongs to nobody */
    for (uint32_t i = 0; i < rules->restricted_domains.count; i++) {
        if (in_domain(domain, rules->restricted_domains.items[i]))
            return true;
    }
    return false;
}

struct str label_normalise(struct str key)
{
    static const struct {
        struct str old, current;
    } aliases[] = {
        { K("failure-domain.beta.kubernetes.io/zone"), K(LABEL_ZONE) },
        { K("failure-domain.beta.kubernetes.io/region"), K(LABEL_REGION) },
        { K("beta.kubernetes.io/arch"), K(LABEL_ARCH) },
        { K("beta.kubernetes.io/os"), K(LABEL_OS) },
        { K("beta.kubernetes.io/instance-type"), K(LABEL_INSTANCE_TYPE) },
        { K("topology.ebs.csi.aws.com/zone"), K(LABEL_ZONE) },
    };
    for (size_t i = 0; i < KV_COUNT_OF(aliases); i++) {
        if (str_eq(key, aliases[i].old))
            return aliases[i].current;
    }
    return key;
}

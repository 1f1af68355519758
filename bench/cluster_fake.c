#include "bench/cluster_fake.h"

#include "base/rng.h"

/* --- types --- */

static const char *const zones[] = { "test-zone-1", "test-zone-2", "test-zone-3", NULL };

static const struct {
    const char *zone, *capacity_type;
} offered[] = {
    { "test-zone-1", CAPACITY_SPOT },      { "test-zone-2", CAPACITY_SPOT },
    { "test-zone-1", CAPACITY_ON_DEMAND }, { "test-zone-2", CAPACITY_ON_DEMAND },
    { "test-zone-3", CAPACITY_ON_DEMAND },
};

static struct requirement label(const char *key, struct str_list values)
{
    return (struct requirement){ .key = str_of(key), .values = values };
}

static struct requirements type_labels(struct arena *a, struct str name, int64_t cpu,
                                       int64_t memory_bytes)
{
    bool large = cpu > 4 && memory_bytes > INT64_C(8) << 30;
    struct requirement items[] = {
        /* sorted by key */
        label("integer", list_one(a, arena_strf(a, "%d", (int)cpu))),
        label(LABEL_CAPACITY_TYPE,
              list_of(a, (const char *[]){ CAPACITY_ON_DEMAND, CAPACITY_SPOT, NULL })),
        label(LABEL_ARCH, list_one(a, STR("amd64"))),
        label(LABEL_OS, list_of(a, (const char *[]){ "darwin", "linux", "windows", NULL })),
        label(LABEL_INSTANCE_TYPE, list_one(a, name)),
        label("size", list_one(a, large ? STR("large") : STR("small"))),
        label("special", large ? list_one(a, STR("optional")) : (struct str_list){ 0 }),
        label(LABEL_ZONE, list_of(a, zones)),
    };
    struct requirement *copy = arena_array(a, struct requirement, KV_COUNT_OF(items));
    memcpy(copy, items, sizeof items);
    return (struct requirements){ copy, KV_COUNT_OF(items) };
}

static const struct offering_draft *type_offerings(struct arena *a, usd_hour price)
{
    struct offering_draft *offerings = arena_array(a, struct offering_draft, KV_COUNT_OF(offered));
    for (size_t i = 0; i < KV_COUNT_OF(offered); i++) {
        struct requirement *where = arena_array(a, struct requirement, 2);
        where[0] = label(LABEL_CAPACITY_TYPE, list_one(a, str_of(offered[i].capacity_type)));
        where[1] = label(LABEL_ZONE, list_one(a, str_of(offered[i].zone)));
        offerings[i] = (struct offering_draft){ .requirements = { where, 2 },
                                                .price = price,
                                                .available = true };
    }
    return offerings;
}

static struct resources cpu_memory_pods(struct arena *a, struct amounts amounts, int64_t pods)
{
    struct resources two = resources_of(a, amounts);
    struct resource *items = arena_array(a, struct resource, 3);
    memcpy(items, two.items, two.count * sizeof *items);
    items[2] = (struct resource){ STR("pods"), quantity_of(pods) };
    return (struct resources){ items, 3 };
}

const struct instance_type_draft *fake_drafts(struct arena *a)
{
    struct instance_type_draft *drafts = arena_array(a, struct instance_type_draft, FAKE_TYPES);
    for (int64_t i = 0; i < FAKE_TYPES; i++) {
        int64_t cpu = i + 1, memory_mib = 2048 * cpu, memory_bytes = memory_mib << 20;
        /* A tenth of a dollar for a core, and for a billion bytes. */
        usd_hour price = USD_HOUR_ONE / 10 * cpu + USD_HOUR_ONE / 10 / 1000000000 * memory_bytes;
        struct instance_type_draft *d = &drafts[i];
        d->name = arena_strf(a, "fake-it-%d", (int)i);
        d->requirements = type_labels(a, d->name, cpu, memory_bytes);
        d->capacity = cpu_memory_pods(
            a, (struct amounts){ .cpu_milli = cpu * 1000, .memory_mib = memory_mib }, 10 * cpu);
        d->overhead = resources_of(a, (struct amounts){ .cpu_milli = 100, .memory_mib = 10 });
        d->offerings = type_offerings(a, price);
        d->offering_count = KV_COUNT_OF(offered);
    }
    return drafts;
}

void fake_add_pool(struct cluster *c, const struct instance_types *types)
{
    struct nodepool *pool = cluster_add_pool(c, "default", "karpenter.test.sh", types);
    pool->spec.template.meta.labels = map_one(&c->arena, STR("custom"), STR("value"));
    pool->spec.limits =
        resources_of(&c->arena, (struct amounts){ .cpu_milli = INT64_C(10000000) * 1000,
                                                  .memory_mib = INT64_C(10000000) * 1024 });
}

/* --- pods --- */

#define LETTERS 7
static const int64_t cpu_choices[] = { 100, 250, 500, 1000, 1500 };
static const int64_t memory_choices[] = { 100, 256, 512, 1024, 2048, 4096 };
#define CPUS KV_COUNT_OF(cpu_choices)
#define MEMORIES KV_COUNT_OF(memory_choices)

/* What was drawn before is shared. */
struct draws {
    struct cluster *c;
    struct rng rng;
    uint32_t made;
    const struct pod_spec *plain[CPUS][MEMORIES];
    const struct pod_spec *spread[2][LETTERS][CPUS][MEMORIES];
    struct str_map my_label[LETTERS], my_affinity[LETTERS], nginx;
    const struct affinity *to[LETTERS], *against;
};

static struct str letter(size_t i)
{
    return (struct str){ &"abcdefg"[i], 1 };
}

static void draws_init(struct draws *d, struct cluster *c, uint64_t seed)
{
    struct arena *a = &c->arena;
    *d = (struct draws){ .c = c };
    rng_init(&d->rng, seed);
    for (size_t i = 0; i < LETTERS; i++) {
        d->my_label[i] = map_one(a, STR("my-label"), letter(i));
        d->my_affinity[i] = map_one(a, STR("my-affininity"), letter(i));
        d->to[i] = affinity_to(a, LABEL_ZONE, select_one(a, STR("my-affininity"), letter(i)));
    }
    d->nginx = map_one(a, STR("app"), STR("nginx"));
    d->against = affinity_against(a, LABEL_HOSTNAME, select_one(a, STR("app"), STR("nginx")));
}

static size_t draw(struct draws *d, size_t below)
{
    return (size_t)rng_below(&d->rng, below);
}

static struct pod_spec *sized_spec(struct draws *d, size_t cpu, size_t memory)
{
    return spec_new(&d->c->arena, (struct amounts){ .cpu_milli = cpu_choices[cpu],
                                                    .memory_mib = memory_choices[memory] });
}

static const struct pod_spec *draw_plain(struct draws *d)
{
    size_t cpu = draw(d, CPUS), memory = draw(d, MEMORIES);
    const struct pod_spec **spec = &d->plain[cpu][memory];
    if (!*spec)
        *spec = sized_spec(d, cpu, memory);
    return *spec;
}

static const struct pod_spec *draw_spread(struct draws *d, bool hosts)
{
    size_t selected = draw(d, LETTERS), cpu = draw(d, CPUS), memory = draw(d, MEMORIES);
    const struct pod_spec **shared = &d->spread[hosts][selected][cpu][memory];
    if (!*shared) {
        struct arena *a = &d->c->arena;
        struct pod_spec *spec = sized_spec(d, cpu, memory);
        spec_spread(a, spec, hosts ? LABEL_HOSTNAME : LABEL_ZONE, 1,
                    select_one(a, STR("my-label"), letter(selected)));
        *shared = spec;
    }
    return *shared;
}

static void add(struct draws *d, struct pod_mould mould)
{
    cluster_add_pod(d->c, &mould, arena_strf(&d->c->arena, "pod-%06u", d->made++), STR(""));
}

static void add_generic(struct draws *d, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct pod_mould mould = { .labels = d->my_label[draw(d, LETTERS)] };
        mould.spec = draw_plain(d);
        add(d, mould);
    }
}

static void add_spread(struct draws *d, uint32_t count, bool hosts)
{
    for (uint32_t i = 0; i < count; i++) {
        struct pod_mould mould = { .labels = d->my_label[draw(d, LETTERS)] };
        mould.spec = draw_spread(d, hosts);
        add(d, mould);
    }
}

static void add_drawn_together(struct draws *d, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        size_t kin = draw(d, LETTERS);
        add(d, (struct pod_mould){ draw_plain(d), d->to[kin], d->my_affinity[kin] });
    }
}

static void add_repelled(struct draws *d, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        add(d, (struct pod_mould){ draw_plain(d), d->against, d->nginx });
}

void fake_add_diverse_pods(struct cluster *c, uint64_t seed, uint32_t count)
{
    struct draws d;
    uint32_t each = count / 5;
    draws_init(&d, c, seed);
    add_generic(&d, each);
    add_spread(&d, each, false);
    add_spread(&d, each, true);
    add_drawn_together(&d, each);
    add_repelled(&d, each);
    add_generic(&d, count - 5 * each);
}

static const struct affinity *preferences(struct arena *a)
{
    static const struct {
        int64_t weight;
        const char *key;
    } alone[] = { { 10, LABEL_ZONE }, { 1, LABEL_HOSTNAME } };
    struct affinity *affinity = arena_new(a, struct affinity);
    struct preferred_node_term *zone = arena_new(a, struct preferred_node_term);
    struct expression *in = arena_new(a, struct expression);
    struct weighted_pod_term *terms = arena_array(a, struct weighted_pod_term, 2);

    *in = expression_in(LABEL_ZONE, list_one(a, str_of(zones[0])));
    zone->weight = 1;
    zone->term.expressions.items = in;
    zone->term.expressions.count = 1;
    affinity->node.preferred.items = zone;
    affinity->node.preferred.count = 1;
    for (uint32_t i = 0; i < 2; i++) {
        terms[i].weight = alone[i].weight;
        terms[i].term.topology_key = str_of(alone[i].key);
        terms[i].term.maybe_selector = select_one(a, STR("app"), STR("nginx"));
    }
    affinity->anti.preferred.items = terms;
    affinity->anti.preferred.count = 2;
    return affinity;
}

void fake_add_preferring_pods(struct cluster *c, uint64_t seed, uint32_t count)
{
    struct draws d;
    draws_init(&d, c, seed);
    struct pod_mould mould = { draw_plain(&d), preferences(&c->arena), d.nginx };
    for (uint32_t i = 0; i < count; i++)
        add(&d, mould);
}

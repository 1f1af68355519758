/* The synthetic catalogue: sizes by cpu, families by memory per cpu, both systems and both
 * architectures. A price is 0.025 dollars per cpu and 0.001 per 10^9 bytes of memory, spot is seven
 * tenths of it; both are exact in the 13 decimals of a usd_hour.
 */
#include "cloud/kwok_impl.h"

#include "api/karpenter.h"
#include "base/vec.h"

static const uint32_t cpus[] = { 1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256 };
static const struct {
    uint32_t gib_per_cpu;
    const char *letter;
} families[] = { { 2, "c" }, { 4, "s" }, { 8, "m" } };
static const char *const systems[] = { "linux", "windows" };
static const char *const architectures[] = { "amd64", "arm64" };
static const char *const zones[] = { "test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d" };

#define OFFERINGS_PER_TYPE (2 * KV_COUNT_OF(zones))
#define GIB INT64_C(1073741824)
#define PRICE_PER_CPU (USD_HOUR_ONE / 40)
#define PRICE_PER_BYTE (USD_HOUR_ONE / INT64_C(1000000000000))

static struct requirements with_label(struct arena *arena, struct requirements set, const char *key,
                                      struct str value)
{
    struct requirement r =
        requirement_in(arena, str_of(key), (struct str_list){ .items = &value, .count = 1 });
    return requirements_add(arena, &set, &r);
}

static struct requirements without_label(struct arena *arena, struct requirements set,
                                         const char *key)
{
    struct requirement r = requirement_does_not_exist(arena, str_of(key));
    return requirements_add(arena, &set, &r);
}

static struct offering_draft offering(struct arena *arena, const char *zone,
                                      const char *capacity_type, usd_hour price)
{
    struct requirements set = { 0 };
    set = with_label(arena, set, LABEL_CAPACITY_TYPE, str_of(capacity_type));
    set = with_label(arena, set, LABEL_ZONE, str_of(zone));
    return (struct offering_draft){ .requirements = set, .price = price, .available = true };
}

static const struct offering_draft *offerings(struct arena *arena, usd_hour on_demand)
{
    struct offering_draft *all = arena_array(arena, struct offering_draft, OFFERINGS_PER_TYPE);
    for (size_t z = 0; z < KV_COUNT_OF(zones); z++) {
        all[2 * z] = offering(arena, zones[z], CAPACITY_ON_DEMAND, on_demand);
        all[2 * z + 1] = offering(arena, zones[z], CAPACITY_SPOT, on_demand / 10 * 7);
    }
    return all;
}

static struct quantity binary(int64_t bytes)
{
    struct quantity q = quantity_of(bytes);
    q.format = QUANTITY_BINARY;
    return q;
}

static struct resources capacity(struct arena *arena, uint32_t cpu, int64_t memory)
{
    struct resource *items = arena_array(arena, struct resource, 4);
    items[0] = (struct resource){ STR("cpu"), quantity_of(cpu) };
    items[1] = (struct resource){ STR("ephemeral-storage"), binary(20 * GIB) };
    items[2] = (struct resource){ STR("memory"), binary(memory) };
    items[3] = (struct resource){ STR("pods"), quantity_of(cpu < 64 ? 16 * cpu : 1024) };
    return (struct resources){ items, 4 };
}

static struct resources overhead(struct arena *arena)
{
    struct resource *items = arena_array(arena, struct resource, 2);
    items[0] = (struct resource){ STR("cpu"), quantity_of_milli(100) };
    items[1] = (struct resource){ STR("memory"), binary(10 << 20) };
    return (struct resources){ items, 2 };
}

static void draft_one(struct arena *arena, uint32_t cpu, size_t family, const char *system,
                      const char *architecture, struct instance_type_draft *out)
{
    const char *letter = families[family].letter;
    int64_t memory = (int64_t)cpu * families[family].gib_per_cpu * GIB;
    char memory_text[QUANTITY_TEXT_MAX];
    quantity_format(binary(memory), memory_text);

    struct requirements set = { 0 };
    set = with_label(arena, set, LABEL_ARCH, str_of(architecture));
    set = with_label(arena, set, LABEL_OS, str_of(system));
    set = with_label(arena, set, KWOK_GROUP "/instance-family", str_of(letter));
    set = with_label(arena, set, KWOK_GROUP "/instance-size", arena_strf(arena, "%u", cpu));
    set = with_label(arena, set, KWOK_GROUP "/instance-cpu", arena_strf(arena, "%u", cpu));
    set = with_label(arena, set, KWOK_GROUP "/instance-memory", str_of(memory_text));
    set = without_label(arena, set, LABEL_REGION);
    set = without_label(arena, set, LABEL_WINDOWS_BUILD);

    *out = (struct instance_type_draft){
        .name = arena_strf(arena, "%s-%ux-%s-%s", letter, cpu, architecture, system),
        .requirements = set,
        .capacity = capacity(arena, cpu, memory),
        .overhead = overhead(arena),
        .offerings = offerings(arena, PRICE_PER_CPU * cpu + PRICE_PER_BYTE * memory),
        .offering_count = OFFERINGS_PER_TYPE,
    };
}

static const struct instance_types *built;
static pthread_once_t built_once = PTHREAD_ONCE_INIT;

static void build(void)
{
    AUTO_ARENA arena = { 0 };
    struct instance_type_draft drafts[KWOK_TYPE_COUNT];
    struct err err;
    uint32_t count = 0;

    for (size_t c = 0; c < KV_COUNT_OF(cpus); c++)
        for (size_t f = 0; f < KV_COUNT_OF(families); f++)
            for (size_t s = 0; s < KV_COUNT_OF(systems); s++)
                for (size_t a = 0; a < KV_COUNT_OF(architectures); a++)
                    draft_one(&arena, cpus[c], f, systems[s], architectures[a], &drafts[count++]);
    KV_ASSERT(count == KWOK_TYPE_COUNT);
    int rc =
        instance_types_build(drafts, count, (struct instance_types_options){ 0 }, &built, &err);
    KV_ASSERT(rc == 0);
}

const struct instance_types *kwok_types(void)
{
    pthread_once(&built_once, build);
    return built;
}

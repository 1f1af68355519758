#include "cloud/kwok_impl.h"
#include "support/test.h"

static const struct instance_types *all(void)
{
    return instance_types_ref(kwok_types());
}

static uint32_t find(const struct instance_types *types, const char *name)
{
    uint32_t t = instance_types_find(types, str_of(name));
    EXPECT_TRUE(t != INSTANCE_TYPE_NONE);
    return t;
}

static uint32_t find_offering(const struct instance_types *types, const char *type,
                              const char *zone, const char *capacity_type)
{
    uint32_t t = find(types, type);
    for (uint32_t o = types->offering_start[t]; o < types->offering_start[t + 1]; o++) {
        const struct offering_shape *shape = &types->shapes[types->offering_shape[o]];
        if (str_eqz(shape->zone, zone) && str_eqz(shape->capacity_type, capacity_type))
            return o;
    }
    fail_msg("%s has no %s in %s", type, capacity_type, zone);
    return 0;
}

static void expect_price(const struct instance_types *types, const char *type,
                         const char *capacity_type, const char *want)
{
    static const char *const zones[] = { "test-zone-a", "test-zone-b", "test-zone-c",
                                         "test-zone-d" };
    for (size_t z = 0; z < KV_COUNT_OF(zones); z++) {
        char text[USD_HOUR_TEXT_MAX];
        uint32_t o = find_offering(types, type, zones[z], capacity_type);
        usd_hour_format(instance_types_price(types, o), text);
        EXPECT_Z(text, want);
    }
}

static void expect_amount(const struct resources *r, const char *name, const char *want)
{
    char text[QUANTITY_TEXT_MAX] = "";
    for (uint32_t i = 0; i < r->count; i++)
        if (str_eqz(r->items[i].name, name))
            quantity_format(r->items[i].amount, text);
    EXPECT_Z(text, want);
}

static void expect_label(const struct instance_types *types, const char *type, const char *key,
                         const char *want)
{
    const struct requirement *r = instance_type_requirement(types, find(types, type), str_of(key));
    EXPECT_TRUE(r != NULL);
    EXPECT_EQ(requirement_operator(r), OP_IN);
    EXPECT_EQ(r->values.count, 1);
    EXPECT_STR(r->values.items[0], want);
}

TEST(there_are_144_types_with_eight_offerings_each_all_available)
{
    AUTO_INSTANCE_TYPES types = all();
    EXPECT_EQ(types->type_count, 144);
    EXPECT_EQ(types->offering_count, 1152);
    EXPECT_EQ(types->shape_count, 8);
    EXPECT_EQ(bitset_popcount(&types->available), 1152);
}

TEST(prices_are_those_of_the_published_formula_to_the_last_digit)
{
    AUTO_INSTANCE_TYPES types = all();
    expect_price(types, "c-1x-amd64-linux", "on-demand", "0.027147483648");
    expect_price(types, "c-1x-amd64-linux", "spot", "0.0190032385536");
    expect_price(types, "c-1x-arm64-windows", "on-demand", "0.027147483648");
    expect_price(types, "s-4x-amd64-linux", "on-demand", "0.117179869184");
    expect_price(types, "m-256x-arm64-linux", "on-demand", "8.599023255552");
    expect_price(types, "m-256x-arm64-linux", "spot", "6.0193162788864");
}

TEST(capacity_grows_with_the_size_and_pods_end_at_1024)
{
    AUTO_INSTANCE_TYPES types = all();
    AUTO_ARENA arena = { 0 };
    struct resources small = instance_type_capacity(types, find(types, "s-2x-amd64-linux"), &arena);
    expect_amount(&small, "cpu", "2");
    expect_amount(&small, "memory", "8Gi");
    expect_amount(&small, "pods", "32");
    expect_amount(&small, "ephemeral-storage", "20Gi");
    struct resources large =
        instance_type_capacity(types, find(types, "m-192x-amd64-linux"), &arena);
    expect_amount(&large, "memory", "1536Gi");
    expect_amount(&large, "pods", "1024");
    struct resources edge = instance_type_capacity(types, find(types, "c-64x-amd64-linux"), &arena);
    expect_amount(&edge, "pods", "1024");
    struct resources below =
        instance_type_capacity(types, find(types, "c-48x-amd64-linux"), &arena);
    expect_amount(&below, "pods", "768");
}

TEST(allocatable_is_less_by_the_overhead_of_100m_and_10mi)
{
    AUTO_INSTANCE_TYPES types = all();
    AUTO_ARENA arena = { 0 };
    struct resources r = instance_type_allocatable(types, find(types, "c-1x-amd64-linux"), &arena);
    expect_amount(&r, "cpu", "900m");
    expect_amount(&r, "memory", "2038Mi");
    expect_amount(&r, "pods", "16");
}

TEST(labels_say_family_size_cpu_memory_system_and_architecture)
{
    AUTO_INSTANCE_TYPES types = all();
    const char *type = "m-128x-arm64-windows";
    expect_label(types, type, "karpenter.kwok.sh/instance-family", "m");
    expect_label(types, type, "karpenter.kwok.sh/instance-size", "128");
    expect_label(types, type, "karpenter.kwok.sh/instance-cpu", "128");
    expect_label(types, type, "karpenter.kwok.sh/instance-memory", "1Ti");
    expect_label(types, type, LABEL_OS, "windows");
    expect_label(types, type, LABEL_ARCH, "arm64");
    expect_label(types, type, LABEL_INSTANCE_TYPE, type);
}

TEST(every_well_known_label_but_the_pool_is_defined)
{
    AUTO_INSTANCE_TYPES types = all();
    struct str_list known = label_rules_for(STR("karpenter.kwok.sh"))->well_known;
    for (uint32_t i = 0; i < known.count; i++) {
        bool defined = instance_type_requirement(types, 0, known.items[i]) != NULL;
        EXPECT_EQ(defined, !str_eq(known.items[i], STR(LABEL_NODEPOOL)));
    }
}

/* --- marks --- */

struct marks {
    struct virtual_clock *time;
    struct generation_counters counters;
    struct unavailable *marks;
};

static struct marks *marks_new(void)
{
    struct marks *m = kv_calloc(1, sizeof *m);
    m->time = virtual_clock_new(0);
    m->marks = unavailable_new(virtual_clock_port(m->time), &m->counters, UNAVAILABLE_TTL_NS);
    return m;
}

static void marks_free(struct marks *m)
{
    unavailable_free(m->marks);
    virtual_clock_free(m->time);
    free(m);
}
KV_AUTO_TYPE(marks, marks_free)

static const struct instance_types *marked(const struct instance_types *base, struct marks *m)
{
    const struct instance_types *out = NULL;
    struct err err = { 0 };
    EXPECT_OK(fake_types_marked(base, m->marks, &out, &err), err);
    return out;
}

TEST(without_marks_the_types_are_the_same_snapshot)
{
    AUTO(marks) m = marks_new();
    AUTO_INSTANCE_TYPES base = all();
    AUTO_INSTANCE_TYPES same = marked(base, m);
    EXPECT_TRUE(same == base);
    unavailable_mark(m->marks, STR("no-such-type"), STR("test-zone-a"), STR("spot"), STR(""));
    AUTO_INSTANCE_TYPES still = marked(base, m);
    EXPECT_TRUE(still == base);
}

TEST(a_marked_offering_is_there_and_not_available_and_nothing_else_changes)
{
    AUTO(marks) m = marks_new();
    AUTO_INSTANCE_TYPES base = all();
    unavailable_mark(m->marks, STR("c-1x-amd64-linux"), STR("test-zone-b"), STR("spot"), STR(""));
    AUTO_INSTANCE_TYPES after = marked(base, m);
    EXPECT_EQ(after->offering_count, base->offering_count);
    uint32_t o = find_offering(after, "c-1x-amd64-linux", "test-zone-b", "spot");
    EXPECT_FALSE(bitset_test(&after->available, o));
    EXPECT_EQ(bitset_popcount(&after->available), 1151);

    AUTO_ARENA arena = { 0 };
    for (uint32_t t = 0; t < base->type_count; t++) {
        EXPECT_TRUE(str_eq(after->names[t], base->names[t]));
        struct requirements was = instance_type_requirements(base, t, &arena);
        struct requirements is = instance_type_requirements(after, t, &arena);
        EXPECT_EQ(is.count, was.count);
        for (uint32_t i = 0; i < was.count; i++)
            EXPECT_TRUE(requirement_equal(&is.items[i], &was.items[i]));
        for (uint32_t c = 0; c < base->resource_count; c++)
            EXPECT_EQ(after->resources[c].allocatable[t], base->resources[c].allocatable[t]);
    }
    for (o = 0; o < base->offering_count; o++)
        EXPECT_EQ(instance_types_price(after, o), instance_types_price(base, o));
}

TEST(a_mark_of_a_whole_zone_takes_every_type_out_of_it)
{
    AUTO(marks) m = marks_new();
    AUTO_INSTANCE_TYPES base = all();
    unavailable_mark(m->marks, STR(""), STR("test-zone-c"), STR(""), STR(""));
    AUTO_INSTANCE_TYPES after = marked(base, m);
    EXPECT_EQ(bitset_popcount(&after->available), 1152 - 2 * 144);
}

TEST(marked_types_keep_what_single_offerings_override)
{
    AUTO(marks) m = marks_new();
    AUTO_ARENA arena = { 0 };
    struct requirement zone =
        requirement_in(&arena, STR(LABEL_ZONE), (struct str_list){ &STR("z"), 1 });
    struct requirement spot =
        requirement_in(&arena, STR(LABEL_CAPACITY_TYPE), (struct str_list){ &STR("spot"), 1 });
    struct requirement demand =
        requirement_in(&arena, STR(LABEL_CAPACITY_TYPE), (struct str_list){ &STR("on-demand"), 1 });
    struct requirements none = { 0 }, in_zone = requirements_add(&arena, &none, &zone);
    struct resource four = { STR("cpu"), quantity_of(4) }, three = { STR("cpu"), quantity_of(3) };
    struct offering_draft offerings[] = {
        { .requirements = requirements_add(&arena, &in_zone, &spot),
          .price = 1,
          .available = true,
          .capacity_override = { &three, 1 } },
        { .requirements = requirements_add(&arena, &in_zone, &demand),
          .price = 2,
          .available = true },
    };
    struct instance_type_draft draft = {
        .name = STR("t"), .capacity = { &four, 1 }, .offerings = offerings, .offering_count = 2
    };
    AUTO_INSTANCE_TYPES base = NULL;
    struct err err = { 0 };
    EXPECT_OK(instance_types_build(&draft, 1, (struct instance_types_options){ 0 }, &base, &err),
              err);
    unavailable_mark(m->marks, STR("t"), STR("z"), STR("on-demand"), STR(""));
    AUTO_INSTANCE_TYPES after = marked(base, m);
    const struct resource_column *cpu = instance_types_resource(after, STR("cpu"));
    EXPECT_EQ(cpu->capacity[after->offering_row[find_offering(after, "t", "z", "spot")]], 3000);
    EXPECT_EQ(cpu->capacity[after->offering_row[find_offering(after, "t", "z", "on-demand")]],
              4000);
}

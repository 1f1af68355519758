#include "cloud/instance_types_testing.h"

#include "api/resources.h"
#include "base/rng.h"

#include <stdio.h>

static const struct instance_types_options plain = { 0 };

/* The names of the types that go with the labels, as a query of instance_types_narrow_all. */
static struct str matching(struct arena *arena, const struct instance_types *s, const char *labels,
                           const char *may_be_undefined)
{
    struct bitset out = bitset_new(arena, s->type_count);
    struct str known[8], rest = str_of(may_be_undefined), word;
    uint32_t count = 0;
    while (draft_word(&rest, ' ', &word))
        known[count++] = word;
    struct requirements set = draft_labels(arena, labels, ' ');
    bitset_fill(&out);
    instance_types_narrow_all(s, &set, (struct str_list){ known, count }, &out);
    return named_types(arena, s, &out);
}

TEST(types_are_found_by_the_values_of_their_labels)
{
    DRAFTS d = { 0 };
    draft_type(&d, "a", "arch=amd64 tenancy=default,dedicated", "z/spot=1");
    draft_type(&d, "b", "arch=arm64 tenancy=default", "z/spot=1");
    draft_type(&d, "c", "arch=arm64,amd64 tenancy=dedicated", "z/spot=1");
    AUTO_INSTANCE_TYPES s = drafts_build(&d);
    EXPECT_STR(matching(&d.arena, s, "arch=amd64", ""), "a c");
    EXPECT_STR(matching(&d.arena, s, "arch=amd64,arm64", ""), "a b c");
    EXPECT_STR(matching(&d.arena, s, "arch=s390x", ""), "");
    EXPECT_STR(matching(&d.arena, s, "arch=-amd64", ""), "b c"); /* c can be the other */
    EXPECT_STR(matching(&d.arena, s, "arch=-amd64,arm64", ""), "");
    EXPECT_STR(matching(&d.arena, s, "arch=-s390x", ""), "a b c");
    EXPECT_STR(matching(&d.arena, s, "arch=amd64 tenancy=-dedicated", ""), "a");
    EXPECT_STR(matching(&d.arena, s, "arch=*", ""), "a b c");
    EXPECT_STR(matching(&d.arena, s, "arch=!", ""), "");
}

TEST(numbers_are_compared_as_numbers)
{
    DRAFTS d = { 0 };
    draft_type(&d, "large", "cpu=16", "z/spot=1");
    draft_type(&d, "medium", "cpu=2,4", "z/spot=1");
    draft_type(&d, "odd", "cpu=many", "z/spot=1");
    draft_type(&d, "padded", "cpu=008", "z/spot=1");
    draft_type(&d, "small", "cpu=1", "z/spot=1");
    AUTO_INSTANCE_TYPES s = drafts_build(&d);
    EXPECT_STR(matching(&d.arena, s, "cpu=>3", ""), "large medium padded");
    EXPECT_STR(matching(&d.arena, s, "cpu=<3", ""), "medium small");
    EXPECT_STR(matching(&d.arena, s, "cpu=>8 cpu=<8", ""), "padded");
    EXPECT_STR(matching(&d.arena, s, "cpu=>3 cpu=-4,16", ""), "padded");
    EXPECT_STR(matching(&d.arena, s, "cpu=>-9223372036854775808", ""), "large medium padded small");
    EXPECT_STR(matching(&d.arena, s, "cpu=>9223372036854775807", ""), "");
    const struct label_column *cpu = instance_types_label(s, STR("cpu"));
    EXPECT_EQ(cpu->value_count, 6);
    EXPECT_EQ(cpu->number_count, 5);
    for (uint32_t i = 1; i < cpu->number_count; i++)
        EXPECT_TRUE(cpu->numbers[i - 1].number < cpu->numbers[i].number);
}

TEST(what_a_type_does_not_define_is_allowed_only_where_it_may_be)
{
    DRAFTS d = { 0 };
    draft_type(&d, "absent", "gpu=!", "z/spot=1");
    draft_type(&d, "has", "gpu=a10g", "z/spot=1");
    draft_type(&d, "silent", "", "z/spot=1");
    AUTO_INSTANCE_TYPES s = drafts_build(&d);
    EXPECT_STR(matching(&d.arena, s, "gpu=a10g", ""), "has");
    EXPECT_STR(matching(&d.arena, s, "gpu=a10g", "gpu"), "has silent");
    EXPECT_STR(matching(&d.arena, s, "gpu=!", ""), "absent silent");
    EXPECT_STR(matching(&d.arena, s, "gpu=-a10g", ""), "absent silent");
    EXPECT_STR(matching(&d.arena, s, "gpu=*", ""), "has");
    /* A key that no type has. */
    EXPECT_STR(matching(&d.arena, s, "team=shop", ""), "");
    EXPECT_STR(matching(&d.arena, s, "team=shop", "gpu team"), "absent has silent");
    EXPECT_STR(matching(&d.arena, s, "team=-shop", ""), "absent has silent");
}

TEST(types_that_say_something_open_are_asked_themselves)
{
    DRAFTS d = { 0 };
    draft_type(&d, "any", "n=*", "z/spot=1");
    draft_type(&d, "big", "n=>10", "z/spot=1");
    draft_type(&d, "not-a", "n=-a", "z/spot=1");
    AUTO_INSTANCE_TYPES s = drafts_build(&d);
    EXPECT_STR(matching(&d.arena, s, "n=a", ""), "any");
    EXPECT_STR(matching(&d.arena, s, "n=11", ""), "any big not-a");
    EXPECT_STR(matching(&d.arena, s, "n=<9", ""), "any not-a");
    EXPECT_STR(matching(&d.arena, s, "n=!", ""), "not-a"); /* both allow that it is not there */
}

TEST(offerings_are_found_by_shape)
{
    DRAFTS d = { 0 };
    draft_type(&d, "a", "", "z1/spot=1 z2/on-demand=2 z1/reserved=0.1+rack/reservation-id=cr-1");
    draft_type(&d, "b", "", "z2/spot=1! z2/on-demand=2");
    AUTO_INSTANCE_TYPES s = drafts_build(&d);
    EXPECT_EQ(s->shape_count, 4);
    EXPECT_EQ(s->zone_count, 2);
    static const char *const want[][3] = { { "z1", "reserved", "cr-1" },
                                           { "z1", "spot", "" },
                                           { "z2", "on-demand", "" },
                                           { "z2", "spot", "" } };
    static const uint8_t ix[] = { CAPACITY_TYPE_RESERVED, CAPACITY_TYPE_SPOT,
                                  CAPACITY_TYPE_ON_DEMAND, CAPACITY_TYPE_SPOT };
    for (uint32_t i = 0; i < 4; i++) {
        EXPECT_STR(s->shapes[i].zone, want[i][0]);
        EXPECT_STR(s->shapes[i].capacity_type, want[i][1]);
        EXPECT_STR(s->shapes[i].reservation_id, want[i][2]);
        EXPECT_EQ(s->shapes[i].capacity_type_ix, ix[i]);
        EXPECT_STR(s->zones[s->shapes[i].zone_ix], want[i][0]);
    }
    struct bitset shapes = bitset_new(&d.arena, s->shape_count);
    struct bitset types = bitset_new(&d.arena, s->type_count);
    struct requirements spot = draft_labels(&d.arena, LABEL_CAPACITY_TYPE "=spot", ' ');
    instance_types_shapes(s, &spot, &shapes);
    EXPECT_EQ(bitset_popcount(&shapes), 2);
    instance_types_offered(s, &shapes, &types);
    EXPECT_STR(named_types(&d.arena, s, &types), "a"); /* b's is not available */
    EXPECT_TRUE(posting_has(&s->shapes[3].offerings, s->offering_start[1]));
    EXPECT_FALSE(posting_has(&s->shapes[3].types, 1));

    struct requirements rack = draft_labels(&d.arena, "rack/reservation-id=cr-1", ' ');
    struct str key = STR("rack/reservation-id");
    instance_types_shapes(s, &rack, &shapes);
    EXPECT_EQ(bitset_popcount(&shapes), 4); /* that one, and those that are of no reservation */
    rack = draft_labels(&d.arena, "rack/reservation-id=cr-2", ' ');
    instance_types_shapes(s, &rack, &shapes);
    EXPECT_EQ(bitset_popcount(&shapes), 3);
    rack = draft_labels(&d.arena, "team=a", ' ');
    instance_types_shapes(s, &rack, &shapes);
    EXPECT_EQ(bitset_popcount(&shapes), 4);
    EXPECT_TRUE(instance_types_label(s, key) == NULL); /* of offerings, not of types */
}

TEST(the_cheapest_offering_of_equals_is_the_preferred_capacity_type_then_the_first)
{
    DRAFTS d = { 0 };
    draft_type(&d, "a", "", "z1/on-demand=1 z1/spot=1 z2/spot=1 z3/spot=0.5!");
    draft_type(&d, "b", "", "z1/spot=3!");
    AUTO_INSTANCE_TYPES s = drafts_build(&d);
    struct bitset shapes = bitset_new(&d.arena, s->shape_count);
    EXPECT_EQ(instance_types_cheapest(s, 0, &shapes), INSTANCE_TYPE_NONE);
    bitset_fill(&shapes);
    EXPECT_EQ(instance_types_cheapest(s, 0, &shapes), 1);
    EXPECT_EQ(instance_types_cheapest(s, 1, &shapes), INSTANCE_TYPE_NONE);
    EXPECT_EQ(s->price_cheapest[0], USD_HOUR_ONE);
    EXPECT_EQ(s->price_cheapest[1], USD_HOUR_MAX);
    EXPECT_EQ(s->price_order[0], 0);
    EXPECT_EQ(s->price_order[1], 1);
}

/* --- against the slow and obvious way --- */

static struct str pick(struct rng *rng, const char *const *from, size_t count)
{
    return str_of(from[rng_below(rng, count)]);
}

static const char *const some_values[] = { "a",
                                           "b",
                                           "c",
                                           "1",
                                           "2",
                                           "3",
                                           "4",
                                           "7",
                                           "10",
                                           "04",
                                           "-7",
                                           "",
                                           "9223372036854775807",
                                           "99999999999999999999" };
static const char *const some_keys[] = { "k0", "k1", "k2", "k3", "k4", "k5" };

static struct requirement random_requirement(struct rng *rng, struct arena *arena, struct str key)
{
    struct str values[4];
    uint32_t count = 1 + (uint32_t)rng_below(rng, 3);
    for (uint32_t i = 0; i < count; i++)
        values[i] = pick(rng, some_values, KV_COUNT_OF(some_values));
    struct requirement r =
        requirement_in(arena, key, (struct str_list){ values, count }); /* sorted, each once */
    switch (rng_below(rng, 8)) {
    case 0:
        r.values.count = 0; /* DoesNotExist */
        break;
    case 1:
        r.complement = true; /* NotIn */
        break;
    case 2:
        r.complement = true; /* Exists */
        r.values.count = 0;
        break;
    case 3:
        r.complement = true; /* bounds, perhaps with exceptions */
        r.values.count = rng_below(rng, 2) ? r.values.count : 0;
        if (rng_below(rng, 3))
            r.gte = (struct maybe_int){ (int64_t)rng_below(rng, 14) - 8, true };
        if (rng_below(rng, 3))
            r.lte = (struct maybe_int){ (int64_t)rng_below(rng, 14) - 8, true };
        break;
    default:
        break;
    }
    return r;
}

static struct requirements random_set(struct rng *rng, struct arena *arena, uint32_t one_in)
{
    struct requirement *items = arena_array(arena, struct requirement, KV_COUNT_OF(some_keys));
    uint32_t count = 0;
    for (size_t k = 0; k < KV_COUNT_OF(some_keys); k++) {
        if (rng_below(rng, one_in) == 0)
            items[count++] = random_requirement(rng, arena, str_of(some_keys[k]));
    }
    return (struct requirements){ items, count };
}

/* In steps of 50, so that what is asked is often exactly what there is. */
static struct resources random_resources(struct rng *rng, struct arena *arena, int64_t below)
{
    static const char *const names[] = { "cpu", "gpu", "hugepages-1Gi", "hugepages-2Mi", "memory" };
    struct resource *items = arena_array(arena, struct resource, KV_COUNT_OF(names));
    uint32_t count = 0;
    for (size_t i = 0; i < KV_COUNT_OF(names); i++) {
        if (rng_below(rng, 3))
            items[count++] = (struct resource){
                str_of(names[i]),
                quantity_of_milli(50 * (int64_t)rng_below(rng, (uint64_t)below / 50))
            };
    }
    return (struct resources){ items, count };
}

static void random_offering(struct rng *rng, struct arena *arena, struct offering_draft *o)
{
    static const char *const zones[] = { "a", "b", "c" };
    static const char *const capacity_types[] = { "on-demand", "spot", "reserved", "odd" };
    struct str zone = pick(rng, zones, 3), kind = pick(rng, capacity_types, 4);
    struct requirements set = random_set(rng, arena, 6);
    struct requirement z = requirement_in(arena, STR(LABEL_ZONE), (struct str_list){ &zone, 1 });
    struct requirement k =
        requirement_in(arena, STR(LABEL_CAPACITY_TYPE), (struct str_list){ &kind, 1 });
    set = requirements_add(arena, &set, &z);
    *o = (struct offering_draft){ .requirements = requirements_add(arena, &set, &k),
                                  .price = (usd_hour)rng_below(rng, 4),
                                  .available = rng_below(rng, 3) != 0 };
    if (rng_below(rng, 5) == 0)
        o->capacity_override = random_resources(rng, arena, 4000);
    if (rng_below(rng, 7) == 0)
        o->overhead_override = random_resources(rng, arena, 700);
}

static void random_drafts(struct rng *rng, struct draft_list *d, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t offerings = (uint32_t)rng_below(rng, 5);
        struct offering_draft *items = arena_array(&d->arena, struct offering_draft, offerings);
        for (uint32_t o = 0; o < offerings; o++)
            random_offering(rng, &d->arena, &items[o]);
        vec_push(&d->items,
                 (struct instance_type_draft){ .name = arena_strf(&d->arena, "type-%04u", i),
                                               .requirements = random_set(rng, &d->arena, 2),
                                               .capacity = random_resources(rng, &d->arena, 4000),
                                               .overhead = random_resources(rng, &d->arena, 700),
                                               .offerings = items,
                                               .offering_count = offerings });
    }
}

static struct str_list random_undefined(struct rng *rng, struct arena *arena)
{
    struct str *keys = arena_array(arena, struct str, KV_COUNT_OF(some_keys));
    uint32_t count = 0;
    for (size_t k = 0; k < KV_COUNT_OF(some_keys); k++) {
        if (rng_below(rng, 2))
            keys[count++] = str_of(some_keys[k]);
    }
    return (struct str_list){ keys, count };
}

static void check_narrow(struct rng *rng, struct draft_list *d, const struct instance_types *s)
{
    struct requirements set = random_set(rng, &d->arena, 3);
    struct str_list may = random_undefined(rng, &d->arena);
    struct bitset out = bitset_new(&d->arena, s->type_count);
    struct bitset before = bitset_new(&d->arena, s->type_count);
    for (uint32_t t = 0; t < s->type_count; t++) {
        if (rng_below(rng, 10))
            bitset_set(&before, t);
    }
    bitset_copy(&out, &before);
    instance_types_narrow_all(s, &set, may, &out);
    for (uint32_t t = 0; t < s->type_count; t++) {
        struct requirements own = d->items.items[t].requirements;
        bool want = bitset_test(&before, t) && requirements_compatible(&own, &set, may, NULL);
        EXPECT_EQ(bitset_test(&out, t), want);
    }
    for (size_t w = 0; w < BITSET_WORDS(s->type_count); w++)
        EXPECT_TRUE(w * 64 < s->type_count || out.words[w] == 0);
}

static void check_shapes(struct rng *rng, struct draft_list *d, const struct instance_types *s,
                         struct bitset *shapes)
{
    struct requirements set = random_set(rng, &d->arena, 6);
    instance_types_shapes(s, &set, shapes);
    struct bitset offered = bitset_new(&d->arena, s->type_count);
    instance_types_offered(s, shapes, &offered);
    for (uint32_t t = 0; t < s->type_count; t++) {
        const struct instance_type_draft *draft = &d->items.items[t];
        bool any = false;
        for (uint32_t i = 0; i < draft->offering_count; i++) {
            uint32_t o = s->offering_start[t] + i;
            bool want = requirements_intersects(&set, &draft->offerings[i].requirements, NULL);
            EXPECT_EQ(bitset_test(shapes, s->offering_shape[o]), want);
            EXPECT_TRUE(posting_has(&s->shapes[s->offering_shape[o]].offerings, o));
            any |= want && draft->offerings[i].available;
        }
        EXPECT_EQ(bitset_test(&offered, t), any);
    }
}

/* `to` with what `from` says in its place. */
static struct resources overridden(struct arena *arena, const struct resources *to,
                                   const struct resources *from)
{
    struct resource *items = arena_array(arena, struct resource, to->count + from->count);
    uint32_t count = 0;
    struct resources all = resources_max(arena, to, from);
    for (uint32_t i = 0; i < all.count; i++) {
        const struct resource *own = resources_find(from, all.items[i].name);
        items[count++] = own ? *own : *resources_find(to, all.items[i].name);
    }
    return (struct resources){ items, count };
}

/* Capacity less overhead, and memory less huge pages, the obvious way. */
static struct resources left_for_pods(struct arena *arena, const struct instance_type_draft *type,
                                      const struct offering_draft *o)
{
    struct resources capacity = overridden(arena, &type->capacity, &o->capacity_override);
    struct resources overhead = overridden(arena, &type->overhead, &o->overhead_override), out;
    struct err err = { 0 };
    EXPECT_OK(resources_subtract(arena, &capacity, &overhead, &out, &err), err);
    for (uint32_t i = 0; i < out.count; i++) {
        struct resource *item = (struct resource *)&out.items[i];
        if (quantity_is_zero(resources_get(&capacity, item->name)))
            item->amount = quantity_of(0);
    }
    for (uint32_t i = 0; i < capacity.count; i++) {
        struct resource *memory = (struct resource *)resources_find(&out, STR("memory"));
        if (!memory || !str_starts(capacity.items[i].name, STR("hugepages-")) ||
            quantity_is_zero(capacity.items[i].amount))
            continue;
        EXPECT_OK(quantity_sub(memory->amount, capacity.items[i].amount, &memory->amount, &err),
                  err);
        if (quantity_cmp(memory->amount, quantity_of(0)) < 0)
            memory->amount = quantity_of(0);
    }
    return out;
}

static void check_fitting(struct rng *rng, struct draft_list *d, const struct instance_types *s,
                          const struct bitset *shapes)
{
    struct resources request = random_resources(rng, &d->arena, 2500);
    struct bitset out = bitset_new(&d->arena, s->type_count);
    bitset_fill(&out);
    instance_types_fitting(s, &request, shapes, &out);
    for (uint32_t t = 0; t < s->type_count; t++) {
        const struct instance_type_draft *draft = &d->items.items[t];
        uint32_t best = INSTANCE_TYPE_NONE;
        bool fits = false;
        for (uint32_t i = 0; i < draft->offering_count; i++) {
            uint32_t o = s->offering_start[t] + i;
            const struct offering_draft *offering = &draft->offerings[i];
            if (!offering->available || !bitset_test(shapes, s->offering_shape[o]))
                continue;
            struct resources left = left_for_pods(&d->arena, draft, offering);
            fits |= resources_fit(&request, &left, NULL);
            usd_hour best_price = best == INSTANCE_TYPE_NONE ? 0 : instance_types_price(s, best);
            uint8_t rank = s->shapes[s->offering_shape[o]].capacity_type_ix;
            if (best == INSTANCE_TYPE_NONE || offering->price < best_price ||
                (offering->price == best_price &&
                 rank < s->shapes[s->offering_shape[best]].capacity_type_ix))
                best = o;
        }
        EXPECT_EQ(bitset_test(&out, t), fits);
        EXPECT_EQ(instance_types_cheapest(s, t, shapes), best);
    }
}

TEST(answers_are_those_of_the_algebra_whatever_types_and_requests_say)
{
    uint64_t seed = 31;
    printf("# seed %llu\n", (unsigned long long)seed);
    struct rng rng;
    rng_init(&rng, seed);
    static const uint32_t sizes[] = { 0, 1, 63, 64, 65, 130, 256, 300 };
    for (uint32_t round = 0; round < 24; round++) {
        DRAFTS d = { 0 };
        random_drafts(&rng, &d, sizes[round % KV_COUNT_OF(sizes)]);
        const struct instance_types *built = NULL;
        struct err err = { 0 };
        EXPECT_OK(instance_types_build(d.items.items, (uint32_t)d.items.count, plain, &built, &err),
                  err);
        AUTO_INSTANCE_TYPES s = built;
        struct bitset shapes = bitset_new(&d.arena, s->shape_count);
        for (uint32_t i = 0; i < 40; i++) {
            check_narrow(&rng, &d, s);
            check_shapes(&rng, &d, s, &shapes);
            check_fitting(&rng, &d, s, &shapes);
        }
    }
}

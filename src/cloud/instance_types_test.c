#include "cloud/instance_types_testing.h"

#include "base/rng.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct instance_types_options sealed = { .seal = true };

static void build_fails(const struct draft_list *d, const char *words)
{
    const struct instance_types *s = NULL;
    struct err err = { 0 };
    EXPECT_ERR(instance_types_build(d->items.items, (uint32_t)d->items.count,
                                    (struct instance_types_options){ 0 }, &s, &err),
               err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), words);
    EXPECT_TRUE(s == NULL);
}

/* A few types of the kind that clouds have. */
static void add_some(struct draft_list *d)
{
    struct instance_type_draft *t =
        draft_type(d, "m5.large", "arch=amd64 cpu=2 gpu=!",
                   "b/spot=0.04 a/spot=0.03! a/on-demand=0.096 b/on-demand=0.096");
    t->capacity = draft_resources(&d->arena, "cpu=2 memory=8Gi pods=29");
    t->overhead = draft_resources(&d->arena, "cpu=70m memory=600Mi");
    t = draft_type(d, "c7g.xlarge", "arch=arm64 cpu=4 gpu=!", "a/spot=0.05 a/on-demand=0.145");
    t->capacity = draft_resources(&d->arena, "cpu=4 memory=8Gi pods=58");
    t->overhead = draft_resources(&d->arena, "cpu=80m memory=900Mi");
    t = draft_type(d, "g5.xlarge", "arch=amd64 cpu=4 gpu=a10g", "b/on-demand=1.006");
    t->capacity = draft_resources(&d->arena, "cpu=4 memory=16Gi nvidia.com/gpu=1 pods=58");
    t->overhead = draft_resources(&d->arena, "cpu=80m memory=1Gi");
}

/* --- what is in it --- */

TEST(types_are_in_the_order_of_names_and_offerings_in_that_of_their_draft)
{
    DRAFTS d = { 0 };
    add_some(&d);
    AUTO_INSTANCE_TYPES s = drafts_build(&d);
    EXPECT_EQ(s->type_count, 3);
    EXPECT_EQ(s->offering_count, 7);
    EXPECT_STR(s->names[0], "c7g.xlarge");
    EXPECT_STR(s->names[1], "g5.xlarge");
    EXPECT_STR(s->names[2], "m5.large");
    EXPECT_EQ(instance_types_find(s, STR("m5.large")), 2);
    EXPECT_EQ(instance_types_find(s, STR("m5")), INSTANCE_TYPE_NONE);
    EXPECT_EQ(instance_types_find(s, STR("zz")), INSTANCE_TYPE_NONE);

    uint32_t first = s->offering_start[2];
    EXPECT_EQ(s->offering_start[3] - first, 4);
    EXPECT_STR(s->shapes[s->offering_shape[first]].zone, "b");
    EXPECT_EQ(instance_types_price(s, first), USD_HOUR_ONE / 25);
    EXPECT_TRUE(bitset_test(&s->available, first));
    EXPECT_FALSE(bitset_test(&s->available, first + 1));
    EXPECT_EQ(s->offering_type[first], 2);
    EXPECT_TRUE(s->priced.words == NULL);
    EXPECT_TRUE(s->recapacitied.words == NULL);
    EXPECT_TRUE(s->base == NULL);
}

TEST(types_are_ordered_by_their_cheapest_available_offering)
{
    DRAFTS d = { 0 };
    add_some(&d);
    draft_type(&d, "x1.gone", "", "a/spot=0.01!");
    draft_type(&d, "b1.same", "", "a/spot=0.04");
    AUTO_INSTANCE_TYPES s = drafts_build(&d);
    static const char *const order[] = { "b1.same", "m5.large", "c7g.xlarge", "g5.xlarge",
                                         "x1.gone" };
    for (uint32_t i = 0; i < 5; i++)
        EXPECT_STR(s->names[s->price_order[i]], order[i]);
    EXPECT_EQ(s->price_cheapest[s->price_order[0]], USD_HOUR_ONE / 25);
    EXPECT_EQ(s->price_cheapest[s->price_order[4]], USD_HOUR_MAX);
}

TEST(name_zone_and_capacity_type_become_labels)
{
    DRAFTS d = { 0 };
    add_some(&d);
    draft_type(&d, "said", LABEL_ZONE "=elsewhere", "a/spot=1");
    draft_type(&d, "unsold", "", "");
    AUTO_INSTANCE_TYPES s = drafts_build(&d);
    uint32_t m5 = instance_types_find(s, STR("m5.large"));
    const struct requirement *r = instance_type_requirement(s, m5, STR(LABEL_INSTANCE_TYPE));
    EXPECT_EQ(r->values.count, 1);
    EXPECT_STR(r->values.items[0], "m5.large");
    r = instance_type_requirement(s, m5, STR(LABEL_ZONE));
    EXPECT_EQ(r->values.count, 2);
    EXPECT_STR(r->values.items[0], "a"); /* also where nothing is available */
    EXPECT_STR(r->values.items[1], "b");
    r = instance_type_requirement(s, m5, STR(LABEL_CAPACITY_TYPE));
    EXPECT_STR(r->values.items[0], "on-demand");
    EXPECT_STR(r->values.items[1], "spot");

    uint32_t said = instance_types_find(s, STR("said"));
    EXPECT_STR(instance_type_requirement(s, said, STR(LABEL_ZONE))->values.items[0], "elsewhere");
    uint32_t unsold = instance_types_find(s, STR("unsold"));
    EXPECT_EQ(requirement_operator(instance_type_requirement(s, unsold, STR(LABEL_ZONE))),
              OP_DOES_NOT_EXIST);
    EXPECT_TRUE(instance_type_requirement(s, said, STR("gpu")) == NULL);

    struct requirements all = instance_type_requirements(s, m5, &d.arena);
    EXPECT_EQ(all.count, 6);
    for (uint32_t i = 1; i < all.count; i++)
        EXPECT_TRUE(str_cmp(all.items[i - 1].key, all.items[i].key) < 0);
}

TEST(equal_requirements_and_texts_are_stored_once)
{
    DRAFTS d = { 0 };
    for (int i = 0; i < 50; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%02d", i);
        draft_type(&d, name, "arch=amd64 gpu=!", "a/spot=1");
    }
    AUTO_INSTANCE_TYPES s = drafts_build(&d);
    const struct requirement *first = instance_type_requirement(s, 0, STR("arch"));
    for (uint32_t t = 1; t < s->type_count; t++)
        EXPECT_TRUE(instance_type_requirement(s, t, STR("arch")) == first);
    EXPECT_TRUE(first->values.items[0].p == instance_types_label(s, STR("arch"))->values[0].text.p);
    EXPECT_TRUE(s->names[7].p ==
                instance_type_requirement(s, 7, STR(LABEL_INSTANCE_TYPE))->values.items[0].p);
}

TEST(the_order_of_drafts_does_not_matter)
{
    DRAFTS d = { 0 }, reversed = { 0 };
    add_some(&d);
    for (size_t i = d.items.count; i-- > 0;)
        vec_push(&reversed.items, d.items.items[i]);
    AUTO_INSTANCE_TYPES a = drafts_build(&d);
    AUTO_INSTANCE_TYPES b = drafts_build(&reversed);
    EXPECT_TRUE(a->checksum == b->checksum);
    draft_offering_at(&reversed.items.items[0], 0)->price++;
    AUTO_INSTANCE_TYPES c = drafts_build(&reversed);
    EXPECT_TRUE(a->checksum != c->checksum);
}

TEST(drafts_are_copied)
{
    const struct instance_types *built;
    uint64_t checksum;
    {
        DRAFTS d = { 0 };
        add_some(&d);
        built = drafts_build(&d);
        checksum = built->checksum;
    } /* and gone */
    AUTO_INSTANCE_TYPES s = built;
    EXPECT_TRUE(instance_types_verify(s));
    EXPECT_TRUE(s->checksum == checksum);
    EXPECT_EQ(instance_types_find(s, STR("g5.xlarge")), 1);
}

TEST(a_snapshot_of_nothing_is_fine)
{
    DRAFTS d = { 0 };
    AUTO_INSTANCE_TYPES s = drafts_build(&d);
    EXPECT_EQ(s->type_count, 0);
    EXPECT_EQ(instance_types_find(s, STR("any")), INSTANCE_TYPE_NONE);
    struct bitset none = bitset_new(&d.arena, 0);
    struct requirement r = draft_requirement(&d.arena, STR("a=b"));
    struct resources request = draft_resources(&d.arena, "cpu=1");
    instance_types_narrow(s, &r, false, &none);
    instance_types_offered(s, &none, &none);
    instance_types_fitting(s, &request, &none, &none);
    const struct instance_types *layer = instance_types_layer(s, NULL, 0, NULL, 0, sealed);
    EXPECT_TRUE(layer == s);
    instance_types_unref(layer);
}

/* --- amounts --- */

TEST(what_is_left_for_pods_is_capacity_less_overhead_and_huge_pages)
{
    DRAFTS d = { 0 };
    struct instance_type_draft *t = draft_type(&d, "a", "", "z/spot=1");
    t->capacity = draft_resources(&d.arena, "cpu=4 hugepages-1Gi=1Gi hugepages-2Mi=2Gi memory=8Gi");
    t->overhead = draft_resources(&d.arena, "cpu=100m ephemeral-storage=1Gi memory=1Gi");
    t = draft_type(&d, "b", "", "z/spot=1");
    t->capacity = draft_resources(&d.arena, "cpu=1 hugepages-1Gi=16Gi memory=8Gi");
    t = draft_type(&d, "c", "", "z/spot=1");
    t->capacity = draft_resources(&d.arena, "cpu=50m");
    t->overhead = draft_resources(&d.arena, "cpu=100m");
    AUTO_INSTANCE_TYPES s = drafts_build(&d);
    const struct resource_column *memory = instance_types_resource(s, STR("memory"));
    const struct resource_column *cpu = instance_types_resource(s, STR("cpu"));
    EXPECT_EQ(cpu->allocatable[0], 3900);
    EXPECT_EQ(memory->allocatable[0], INT64_C(1000) * 4 << 30);
    EXPECT_EQ(memory->capacity[0], INT64_C(1000) * 8 << 30);
    EXPECT_EQ(memory->allocatable[1], 0); /* huge pages use it up and do not overdraw it */
    EXPECT_EQ(cpu->allocatable[2], -50);  /* overhead does */
    EXPECT_TRUE(bitset_test(&s->overdrawn, 2));
    /* Where there is no capacity, overhead takes nothing. */
    EXPECT_EQ(instance_types_resource(s, STR("ephemeral-storage"))->allocatable[0], 0);
    EXPECT_FALSE(bitset_test(&s->overdrawn, 0));
    EXPECT_TRUE(instance_types_resource(s, STR("pods")) == NULL);

    struct resources left = instance_type_allocatable(s, 0, &d.arena);
    EXPECT_EQ(left.count, 4); /* ephemeral storage is zero */
    char text[QUANTITY_TEXT_MAX];
    quantity_format(left.items[3].amount, text);
    EXPECT_STR(left.items[3].name, "memory");
    EXPECT_Z(text, "4Gi");
    EXPECT_EQ(instance_type_capacity(s, 0, &d.arena).count, 4);
    EXPECT_EQ(instance_type_overhead(s, 0, &d.arena).count, 3);
}

TEST(nothing_fits_on_a_type_that_is_overdrawn)
{
    DRAFTS d = { 0 };
    struct instance_type_draft *t = draft_type(&d, "a", "", "z/spot=1");
    t->capacity = draft_resources(&d.arena, "cpu=1 memory=1Gi");
    t->overhead = draft_resources(&d.arena, "cpu=2");
    AUTO_INSTANCE_TYPES s = drafts_build(&d);
    struct bitset out = bitset_new(&d.arena, 1), shapes = bitset_new(&d.arena, 1);
    struct resources request = draft_resources(&d.arena, "memory=1");
    bitset_fill(&out);
    bitset_fill(&shapes);
    instance_types_fitting(s, &request, &shapes, &out);
    EXPECT_FALSE(bitset_any(&out));
}

TEST(an_offering_with_amounts_of_its_own_has_a_row_of_its_own)
{
    DRAFTS d = { 0 };
    struct instance_type_draft *t =
        draft_type(&d, "a", "", "z1/spot=1 z2/spot=1 z3/spot=1 z4/spot=1");
    t->capacity = draft_resources(&d.arena, "cpu=4 memory=8Gi");
    t->overhead = draft_resources(&d.arena, "cpu=1");
    draft_offering_at(t, 1)->capacity_override = draft_resources(&d.arena, "cpu=8");
    draft_offering_at(t, 2)->capacity_override = draft_resources(&d.arena, "cpu=8000m");
    draft_offering_at(t, 3)->overhead_override = draft_resources(&d.arena, "cpu=2 memory=1Gi");
    draft_type(&d, "b", "", "z1/spot=1");
    AUTO_INSTANCE_TYPES s = drafts_build(&d);
    EXPECT_EQ(s->row_count, 4);
    EXPECT_EQ(s->offering_row[0], 0);
    EXPECT_EQ(s->offering_row[1], 2);
    EXPECT_EQ(s->offering_row[2], 2); /* the same amounts */
    EXPECT_EQ(s->offering_row[3], 3);
    EXPECT_EQ(s->row_type[2], 0);
    EXPECT_EQ(s->row_type[3], 0);
    const struct resource_column *cpu = instance_types_resource(s, STR("cpu"));
    EXPECT_EQ(cpu->allocatable[0], 3000);
    EXPECT_EQ(cpu->allocatable[2], 7000);
    EXPECT_EQ(cpu->allocatable[3], 2000);
    EXPECT_EQ(instance_types_resource(s, STR("memory"))->allocatable[3], INT64_C(7000) << 30);

    /* 5 cpus fit where an offering has them, if that offering can be had. */
    struct bitset out = bitset_new(&d.arena, 2), shapes = bitset_new(&d.arena, 4);
    struct resources request = draft_resources(&d.arena, "cpu=5");
    bitset_set(&shapes, 2);
    bitset_fill(&out);
    instance_types_fitting(s, &request, &shapes, &out);
    EXPECT_STR(named_types(&d.arena, s, &out), "a");
    bitset_clear(&shapes, 2);
    bitset_set(&shapes, 0);
    bitset_set(&shapes, 3);
    bitset_fill(&out);
    instance_types_fitting(s, &request, &shapes, &out);
    EXPECT_FALSE(bitset_any(&out));
}

TEST(amounts_are_rounded_against_the_pod_and_never_wrap)
{
    struct err err = { 0 };
    static const struct {
        const char *text;
        int64_t down, up;
    } cases[] = { { "1", 1000, 1000 },
                  { "1500m", 1500, 1500 },
                  { "1500u", 1, 2 },
                  { "1n", 0, 1 },
                  { "0", 0, 0 },
                  { "-1500u", -2, -1 },
                  { "9223372036854775807", INT64_MAX, INT64_MAX },
                  { "-9223372036854775807", -INT64_MAX, -INT64_MAX },
                  { "9223372036854775807m", INT64_MAX, INT64_MAX } };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        struct quantity q;
        EXPECT_OK(quantity_parse(str_of(cases[i].text), &q, &err), err);
        EXPECT_EQ(milli_floor(q), cases[i].down);
        EXPECT_EQ(milli_ceil(q), cases[i].up);
    }
}

/* --- drafts that make no sense --- */

TEST(a_name_is_used_once_and_there_is_one)
{
    DRAFTS d = { 0 };
    add_some(&d);
    draft_type(&d, "m5.large", "", "");
    build_fails(&d, "two instance types are named \"m5.large\"");
    d.items.items[3].name = STR("");
    build_fails(&d, "without a name");
    d.items.items[3].name = STR_NONE;
    build_fails(&d, "without a name");
}

TEST(an_offering_has_one_zone_and_one_capacity_type)
{
    static const struct {
        const char *labels, *words;
    } cases[] = {
        { LABEL_CAPACITY_TYPE "=spot", "instance type \"a\": offering 1: no zone" },
        { LABEL_ZONE "=a", "instance type \"a\": offering 1: no capacity type" },
        { LABEL_ZONE "=a,b " LABEL_CAPACITY_TYPE "=spot", "zone must have exactly one value" },
        { LABEL_ZONE "=* " LABEL_CAPACITY_TYPE "=spot", "zone must have exactly one value" },
        { LABEL_ZONE "=-b " LABEL_CAPACITY_TYPE "=spot", "zone must have exactly one value" },
        { LABEL_ZONE "=! " LABEL_CAPACITY_TYPE "=spot", "zone must have exactly one value" },
        { LABEL_ZONE "=a " LABEL_CAPACITY_TYPE "=spot,reserved", "capacity type must have" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        DRAFTS d = { 0 };
        struct instance_type_draft *t = draft_type(&d, "a", "", "a/spot=1 b/spot=2");
        draft_offering_at(t, 1)->requirements = draft_labels(&d.arena, cases[i].labels, ' ');
        build_fails(&d, cases[i].words);
    }
}

TEST(no_amount_price_or_count_is_negative)
{
    DRAFTS d = { 0 };
    struct instance_type_draft *t = draft_type(&d, "a", "", "a/spot=1");
    t->capacity = draft_resources(&d.arena, "cpu=-1");
    build_fails(&d, "instance type \"a\": capacity: \"cpu\": the amount is negative");
    t->capacity = draft_resources(&d.arena, "cpu=1");
    t->overhead = draft_resources(&d.arena, "memory=-1n");
    build_fails(&d, "overhead: \"memory\": the amount is negative");
    t->overhead.count = 0;
    struct offering_draft *o = draft_offering_at(t, 0);
    o->capacity_override = draft_resources(&d.arena, "cpu=-1");
    build_fails(&d, "offering 0: capacity: \"cpu\": the amount is negative");
    o->capacity_override.count = 0;
    o->overhead_override = draft_resources(&d.arena, "cpu=-1");
    build_fails(&d, "offering 0: overhead: \"cpu\": the amount is negative");
    o->overhead_override.count = 0;
    o->price = -1;
    build_fails(&d, "offering 0: the price is negative");
    o->price = 0;
    o->reservation_capacity = -1;
    build_fails(&d, "offering 0: the reservation's capacity is negative");
    o->reservation_capacity = INT64_MAX;
    AUTO_INSTANCE_TYPES s = drafts_build(&d);
    EXPECT_EQ(s->reservation_capacity[0], UINT32_MAX);
}

TEST(lists_that_are_not_sorted_are_refused)
{
    DRAFTS d = { 0 };
    struct instance_type_draft *t = draft_type(&d, "a", "a=1 b=2,3", "a/spot=1");
    struct requirement *items = (struct requirement *)t->requirements.items, kept = items[0];
    items[0] = items[1];
    items[1] = kept;
    build_fails(&d, "not sorted by key");
    items[0] = items[1]; /* twice */
    build_fails(&d, "not sorted by key");
    kept.values = (struct str_list){ (struct str[]){ STR("z"), STR("a") }, 2 };
    items[0] = kept;
    build_fails(&d, "values are not sorted");
    t->requirements.count = 0;
    t->capacity = draft_resources(&d.arena, "memory=1 cpu=1");
    build_fails(&d, "resources are not sorted");
}

TEST(more_than_can_be_held_is_refused)
{
    DRAFTS d = { 0 };
    struct instance_type_draft *t = draft_type(&d, "a", "", "a/spot=1");
    t->offering_count = INSTANCE_OFFERINGS_MAX + 1; /* refused before it is looked at */
    build_fails(&d, "more than 2000000 offerings");

    struct err err = { 0 };
    const struct instance_types *s;
    EXPECT_ERR(instance_types_build(t, INSTANCE_TYPES_MAX + 1, sealed, &s, &err), err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), "at most 20000");

    /* Offerings that are all different. */
    t->offering_count = INSTANCE_SHAPES_MAX + 1;
    struct offering_draft *all = arena_array(&d.arena, struct offering_draft, t->offering_count);
    for (uint32_t i = 0; i < t->offering_count; i++)
        all[i] = draft_offering(&d.arena, arena_strf(&d.arena, "z%u/spot=1", i));
    t->offerings = all;
    build_fails(&d, "more than 60000 different kinds");

    /* Rows x resources. */
    t->offering_count = 40000;
    struct resource *many = arena_array(&d.arena, struct resource, 900);
    for (uint32_t i = 0; i < 900; i++)
        many[i] = (struct resource){ arena_strf(&d.arena, "r%03u", i), quantity_of(1) };
    t->capacity = (struct resources){ many, 900 };
    for (uint32_t i = 0; i < t->offering_count; i++) {
        struct resource *own = arena_new(&d.arena, struct resource);
        *own = (struct resource){ STR("r000"), quantity_of(i) };
        all[i].requirements = all[0].requirements;
        all[i].capacity_override = (struct resources){ own, 1 };
    }
    build_fails(&d, "do not fit");
}

/* --- sharing --- */

TEST(replicas_share_columns_and_outlive_each_other)
{
    DRAFTS d = { 0 };
    add_some(&d);
    const struct instance_types *s = drafts_build(&d);
    const struct instance_types *a = instance_types_replica(s);
    const struct instance_types *b = instance_types_replica(a);
    EXPECT_TRUE(a != s);
    EXPECT_TRUE(a->names == s->names);
    EXPECT_TRUE((uintptr_t)a / 64 != (uintptr_t)s / 64);
    EXPECT_EQ((uintptr_t)a % 64, 0);
    instance_types_unref(s);
    instance_types_unref(a);
    EXPECT_TRUE(instance_types_verify(b));
    EXPECT_EQ(instance_types_find(b, STR("m5.large")), 2);
    instance_types_unref(instance_types_ref(b));
    instance_types_unref(b);
    instance_types_unref(NULL);
}

#define READERS 4

static void *reader(void *arg)
{
    const struct instance_types *s = arg;
    for (int i = 0; i < 300; i++) {
        const struct instance_types *mine =
            i % 2 ? instance_types_replica(s) : instance_types_ref(s);
        uint64_t words[BITSET_WORDS(8)];
        struct bitset out;
        bitset_init(&out, words, mine->type_count);
        bitset_fill(&out);
        struct str value = STR("amd64");
        struct requirement r = { .key = STR("arch"), .values = { &value, 1 } };
        instance_types_narrow(mine, &r, false, &out);
        KV_ASSERT(bitset_popcount(&out) == 2);
        KV_ASSERT(instance_types_verify(mine));
        instance_types_unref(mine);
    }
    instance_types_unref(s);
    return NULL;
}

TEST(threads_read_and_count_without_a_lock)
{
    DRAFTS d = { 0 };
    add_some(&d);
    const struct instance_types *s = drafts_build(&d);
    pthread_t threads[READERS];
    for (int i = 0; i < READERS; i++)
        EXPECT_EQ(pthread_create(&threads[i], NULL, reader, (void *)instance_types_ref(s)), 0);
    instance_types_unref(s); /* the last reader frees it */
    for (int i = 0; i < READERS; i++)
        pthread_join(threads[i], NULL);
}

/* The signal that ends a child which writes to `p`; 0 if nothing happens to it. */
static int signal_of_write(const void *p)
{
    fflush(NULL);
    pid_t child = fork();
    EXPECT_TRUE(child >= 0);
    if (child == 0) {
        struct rlimit none = { 0, 0 };
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGSEGV, SIG_DFL); /* a sanitizer has its own handler, and would exit */
        *(volatile unsigned char *)(uintptr_t)p = 1;
        _exit(0);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TEST(a_write_to_a_sealed_snapshot_faults)
{
    DRAFTS d = { 0 };
    add_some(&d);
    const struct instance_types *built = NULL;
    struct err err = { 0 };
    EXPECT_OK(instance_types_build(d.items.items, 3, sealed, &built, &err), err);
    AUTO_INSTANCE_TYPES s = built;
    struct price_edit edit = { 0, 7 };
    AUTO_INSTANCE_TYPES layer = instance_types_layer(s, &edit, 1, NULL, 0, sealed);
    const void *const columns[] = { s->names,
                                    s->names[0].p,
                                    s->prices[0],
                                    s->available.words,
                                    s->shapes,
                                    s->labels,
                                    s->resources[0].capacity,
                                    s->requirement_pool,
                                    layer->prices,
                                    layer->prices[0],
                                    layer->priced.words };
    for (size_t i = 0; i < KV_COUNT_OF(columns); i++)
        EXPECT_EQ(signal_of_write(columns[i]), SIGSEGV);
    EXPECT_EQ(signal_of_write(&s->rc), 0); /* the count does change */
}

TEST(debug_builds_seal_without_being_asked)
{
    DRAFTS d = { 0 };
    add_some(&d);
    AUTO_INSTANCE_TYPES s = drafts_build(&d);
#ifdef KARVE_DEBUG
    EXPECT_EQ(signal_of_write(s->names), SIGSEGV);
#else
    EXPECT_EQ(signal_of_write(s->names), 0);
#endif
}

/* Is a change of the byte noticed? It is changed back. */
static bool change_is_noticed(const struct instance_types *s, const void *p)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    void *start = (void *)((uintptr_t)p / page * page);
    unsigned char *byte = (unsigned char *)(uintptr_t)p;
    EXPECT_EQ(mprotect(start, page, PROT_READ | PROT_WRITE), 0);
    *byte ^= 1;
    bool noticed = !instance_types_verify(s);
    *byte ^= 1;
    EXPECT_TRUE(instance_types_verify(s));
    return noticed;
}

TEST(a_byte_that_changed_is_noticed)
{
    DRAFTS d = { 0 };
    add_some(&d);
    struct instance_type_draft *t = draft_type(&d, "o", "arch=-s390x cpu=>3", "z/spot=1");
    draft_offering_at(t, 0)->capacity_override = draft_resources(&d.arena, "cpu=8");
    AUTO_INSTANCE_TYPES s = drafts_build(&d);
    const struct label_column *cpu = instance_types_label(s, STR("cpu"));
    const struct resource_column *amount = instance_types_resource(s, STR("cpu"));
    const void *const bytes[] = { s->names[1].p,
                                  &s->names[2].len,
                                  s->offering_start,
                                  s->offering_type,
                                  s->offering_row,
                                  s->offering_shape,
                                  s->reservation_capacity,
                                  s->available.words,
                                  s->prices[1],
                                  s->price_order,
                                  s->price_cheapest,
                                  &s->shapes[1].zone_ix,
                                  &s->shapes[1].capacity_type_ix,
                                  s->shapes[1].offerings.words,
                                  s->shapes[0].types.words,
                                  &s->shapes[0].requirements.items[0].complement,
                                  cpu->key.p,
                                  cpu->values[0].text.p,
                                  cpu->values[0].types.words,
                                  cpu->defined.words,
                                  cpu->absent.words,
                                  cpu->complement.words,
                                  cpu->several.words,
                                  &cpu->numbers[0].number,
                                  amount->capacity,
                                  amount->overhead,
                                  amount->allocatable,
                                  amount->overrides.words,
                                  s->row_type,
                                  s->overridden.words,
                                  s->overdrawn.words,
                                  s->type_requirements,
                                  s->type_requirements_start,
                                  s->requirement_pool[0].values.items[0].p,
                                  &s->requirement_pool[3].complement };
    for (size_t i = 0; i < KV_COUNT_OF(bytes); i++)
        EXPECT_TRUE(change_is_noticed(s, bytes[i]));
}

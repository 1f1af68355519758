/* What nodes must be: joining, machines left, prices, minValues and reservations. */
#include "sched/model_inner.h"
#include "sched/model_memo.h"

#include "cloud/instance_types_testing.h"

#define RESERVATION "karpenter.k8s.aws/capacity-reservation-id"

struct bench {
    struct arena arena;
    struct model m;
    struct pool pools[3];
    struct draft_list drafts;
    const struct instance_types *types;
};

static void bench_done(struct bench *b)
{
    terms_done(&b->m);
    instance_types_unref(b->types);
    draft_list_done(&b->drafts);
    arena_done(&b->arena);
}
#define BENCH __attribute__((cleanup(bench_done))) struct bench

static const struct str bench_well_known[] = {
    { LABEL_CAPACITY_TYPE, sizeof LABEL_CAPACITY_TYPE - 1 },
    { LABEL_ARCH, sizeof LABEL_ARCH - 1 },
    { LABEL_INSTANCE_TYPE, sizeof LABEL_INSTANCE_TYPE - 1 },
    { LABEL_ZONE, sizeof LABEL_ZONE - 1 },
};

static struct requirements labels(struct bench *b, const char *text)
{
    return draft_labels(&b->arena, text, ' ');
}

static void bench_pool(struct bench *b, const char *says)
{
    struct pool *p = &b->pools[b->m.pool_count++];
    *p = (struct pool){ .source = b->m.pool_count - 1,
                        .types = b->types,
                        .requirements = labels(b, says),
                        .machine_count = b->types->row_count };
    struct str *known = arena_array(&b->arena, struct str, KV_COUNT_OF(bench_well_known) + 2);
    uint32_t count = 0;
    known[count++] = STR(RESERVATION);
    known[count++] = STR("gpu");
    for (size_t i = 0; i < KV_COUNT_OF(bench_well_known); i++)
        known[count++] = bench_well_known[i];
    count = (uint32_t)str_sort_unique(known, count);
    p->well_known = (struct str_list){ known, count };
}

/* Three types: a small and a large amd64 one, and an arm64 one with a gpu that is only in zone b. */
static void bench_types(struct bench *b)
{
    draft_type(&b->drafts, "large", "kubernetes.io/arch=amd64 gpu=!",
               "a/spot=0.2 a/on-demand=0.4 b/on-demand=0.4");
    draft_type(&b->drafts, "small", "kubernetes.io/arch=amd64 gpu=!",
               "a/spot=0.1 a/on-demand=0.2 b/spot=0.05! b/on-demand=0.2");
    draft_type(&b->drafts, "thorn", "kubernetes.io/arch=arm64 gpu=t4,a10",
               "b/on-demand=1 b/spot=1");
}

static void bench_start(struct bench *b)
{
    if (b->drafts.items.count == 0)
        bench_types(b);
    b->types = drafts_build(&b->drafts);
    b->m = (struct model){ .arena = &b->arena, .pools = b->pools };
    terms_init(&b->m);
}

static void bench_ready(struct bench *b)
{
    reservations_collect(&b->m);
    for (uint32_t p = 0; p < b->m.pool_count; p++)
        b->pools[p].terms = terms_intern(&b->m, p, &b->pools[p].requirements);
}

/* With one pool that says so. */
static void bench_with(struct bench *b, const char *pool)
{
    bench_start(b);
    bench_pool(b, pool);
    bench_ready(b);
}

static uint32_t wanting(struct bench *b, const char *text)
{
    struct requirements set = labels(b, text);
    return wants_intern(&b->m, &set);
}

static uint32_t join(struct bench *b, uint32_t terms, const char *text)
{
    return terms_join(&b->m, terms, wanting(b, text));
}

/* Names of the machines that are left, each with its cheapest offering and price. */
static struct str left(struct bench *b, uint32_t terms)
{
    AUTO_BUF out = { 0 };
    if (terms == NONE)
        return STR("none");
    const struct terms *t = terms_at(&b->m, terms);
    const struct instance_types *s = b->pools[t->pool].types;
    bitset_each(&t->machines, row) {
        const struct offering_shape *shape = &s->shapes[s->offering_shape[t->offering[row]]];
        char price[USD_HOUR_TEXT_MAX];
        usd_hour_format(t->price[row], price);
        buf_addf(&out, "%s%.*s:%.*s/%.*s=%s", out.len ? " " : "",
                 STR_ARG(s->names[s->row_type[row]]), STR_ARG(shape->zone),
                 STR_ARG(shape->capacity_type), price);
    }
    return arena_str(&b->arena, buf_str(&out));
}

TEST(wants_are_interned_by_what_they_say)
{
    BENCH b = { 0 };
    bench_with(&b, "");
    EXPECT_EQ(wanting(&b, "x=1,2 y=*"), wanting(&b, "y=* x=2,1"));
    EXPECT_TRUE(wanting(&b, "x=1,2,3,4,5,6") != wanting(&b, "x=1,2,3,4,5,7"));
    EXPECT_TRUE(wanting(&b, "x=1") != wanting(&b, "x=-1"));
    EXPECT_TRUE(wanting(&b, "x=>1") != wanting(&b, "x=>2"));
    EXPECT_TRUE(wanting(&b, "x=>1") != wanting(&b, "x=<1"));
    EXPECT_TRUE(wanting(&b, "x=*") != wanting(&b, "x=!"));
    EXPECT_TRUE(wanting(&b, "ab=c") != wanting(&b, "a=bc"));
    EXPECT_EQ(wants_at(&b.m, wanting(&b, "x=1 y=2"))->set.count, 2);
}

TEST(a_pin_is_the_wants_and_the_domain)
{
    BENCH b = { 0 };
    bench_with(&b, "");
    const struct str zones[] = { STR("a"), STR("b"), STR("c") }, racks[] = { STR("7") };
    const struct topology_key keys[] = { { .name = STR(LABEL_HOSTNAME) },
                                         { STR("rack"), racks, 1 },
                                         { STR(LABEL_ZONE), zones, 3 } };
    b.m.keys = keys;
    b.m.key_count = 3;
    uint32_t any = wanting(&b, "x=1"), some = wanting(&b, "topology.kubernetes.io/zone=a,c");
    for (int again = 0; again < 2; again++) {
        EXPECT_EQ(wants_pin(&b.m, any, 2, 1), wanting(&b, "x=1 topology.kubernetes.io/zone=b"));
        EXPECT_EQ(wants_pin(&b.m, some, 2, 0), wanting(&b, "topology.kubernetes.io/zone=a"));
        EXPECT_EQ(wants_pin(&b.m, some, 2, 1), NONE);
        EXPECT_EQ(wants_pin(&b.m, some, 1, 0),
                  wanting(&b, "rack=7 topology.kubernetes.io/zone=a,c"));
    }
}

TEST(a_pools_own_terms_have_every_machine_that_it_allows)
{
    BENCH b = { 0 };
    bench_with(&b, "kubernetes.io/arch=amd64 team=shop");
    EXPECT_STR(left(&b, b.pools[0].terms), "large:a/spot=0.2 small:a/spot=0.1");
}

TEST(joining_narrows_machines_and_offerings)
{
    BENCH b = { 0 };
    bench_with(&b, "");
    uint32_t own = b.pools[0].terms;
    EXPECT_STR(left(&b, own), "large:a/spot=0.2 small:a/spot=0.1 thorn:b/spot=1");
    uint32_t zone_b = join(&b, own, "topology.kubernetes.io/zone=b");
    EXPECT_STR(left(&b, zone_b), "large:b/on-demand=0.4 small:b/on-demand=0.2 thorn:b/spot=1");
    /* The offering of small as spot in b is not available. */
    EXPECT_STR(left(&b, join(&b, zone_b, "karpenter.sh/capacity-type=spot")), "thorn:b/spot=1");
    EXPECT_STR(left(&b, join(&b, zone_b, "topology.kubernetes.io/zone=a")), "none");
    uint32_t amd = join(&b, zone_b, "kubernetes.io/arch=amd64");
    EXPECT_STR(left(&b, join(&b, amd, "karpenter.sh/capacity-type=spot")), "none");
}

TEST(terms_do_not_depend_on_the_order_of_joining)
{
    BENCH b = { 0 };
    bench_with(&b, "");
    uint32_t own = b.pools[0].terms;
    uint32_t one =
        join(&b, join(&b, own, "topology.kubernetes.io/zone=a,b"), "kubernetes.io/arch=amd64");
    uint32_t two =
        join(&b, join(&b, own, "kubernetes.io/arch=amd64"), "topology.kubernetes.io/zone=a,b");
    EXPECT_TRUE(one != NONE);
    EXPECT_EQ(one, two);
    EXPECT_EQ(join(&b, one, "kubernetes.io/arch=amd64"), one);
    EXPECT_EQ(join(&b, one, ""), one);
    EXPECT_TRUE(one != own);
}

TEST(a_label_that_is_not_well_known_must_be_defined_by_the_pool)
{
    BENCH b = { 0 };
    bench_with(&b, "team=shop tier=-gold");
    uint32_t own = b.pools[0].terms;
    EXPECT_EQ(join(&b, own, "team=shop"), own);
    EXPECT_EQ(join(&b, own, "team=bank"), NONE);
    EXPECT_EQ(join(&b, own, "disk=ssd"), NONE);
    EXPECT_EQ(join(&b, own, "disk=*"), NONE);
    EXPECT_EQ(join(&b, own, "disk=>3"), NONE);
    /* The node will not have the label, whatever joins later. */
    EXPECT_EQ(join(&b, own, "disk=-ssd"), own);
    EXPECT_EQ(join(&b, own, "disk=!"), own);
    EXPECT_EQ(join(&b, join(&b, own, "disk=-ssd"), "disk=hdd"), NONE);
    EXPECT_TRUE(join(&b, own, "tier=silver") != NONE);
    EXPECT_EQ(join(&b, own, "tier=gold"), NONE);
}

TEST(whoever_asks_for_a_label_has_it_whatever_others_exclude)
{
    BENCH b = { 0 };
    bench_with(&b, "tier=-gold level=*");
    uint32_t own = b.pools[0].terms;
    /* NotIn alone is content with a type that has no gpu; with Exists it is not. */
    EXPECT_STR(left(&b, join(&b, own, "gpu=-t4")),
               "large:a/spot=0.2 small:a/spot=0.1 thorn:b/spot=1");
    EXPECT_STR(left(&b, join(&b, join(&b, own, "gpu=*"), "gpu=-t4")), "thorn:b/spot=1");
    EXPECT_STR(left(&b, join(&b, join(&b, own, "gpu=-t4"), "gpu=*")), "thorn:b/spot=1");
    /* The same for labels of the pool. */
    EXPECT_TRUE(join(&b, own, "tier=!") != NONE);
    EXPECT_EQ(join(&b, join(&b, own, "tier=*"), "tier=!"), NONE);
    EXPECT_EQ(join(&b, join(&b, own, "tier=!"), "tier=*"), NONE);
    EXPECT_EQ(join(&b, join(&b, join(&b, own, "tier=*"), "tier=-tin"), "tier=!"), NONE);
    EXPECT_TRUE(join(&b, join(&b, own, "tier=-tin"), "tier=!") != NONE);
    EXPECT_EQ(join(&b, own, "level=!"), NONE);
    EXPECT_EQ(join(&b, join(&b, own, "level=-9"), "level=!"), NONE);
    EXPECT_TRUE(join(&b, join(&b, own, "level=-9"), "level=8") != NONE);
}

TEST(a_new_node_has_a_host_name_that_nobody_knows)
{
    BENCH b = { 0 };
    bench_with(&b, "");
    uint32_t own = b.pools[0].terms;
    EXPECT_EQ(join(&b, own, "kubernetes.io/hostname=node-1"), NONE);
    EXPECT_EQ(join(&b, own, "kubernetes.io/hostname=!"), NONE);
    EXPECT_EQ(join(&b, own, "kubernetes.io/hostname=>3"), NONE);
    EXPECT_EQ(join(&b, own, "kubernetes.io/hostname=-node-1,node-2"), own);
    EXPECT_EQ(join(&b, own, "kubernetes.io/hostname=*"), own);
}

TEST(an_offering_with_other_resources_is_a_machine_of_its_own)
{
    BENCH b = { 0 };
    struct instance_type_draft *t =
        draft_type(&b.drafts, "one", "", "a/spot=0.1 a/on-demand=0.3 b/spot=0.2 b/on-demand=0.4");
    t->capacity = draft_resources(&b.drafts.arena, "cpu=2");
    struct offering_draft *offerings = arena_array(&b.drafts.arena, struct offering_draft, 4);
    memcpy(offerings, t->offerings, 4 * sizeof *offerings);
    offerings[1].capacity_override = draft_resources(&b.drafts.arena, "cpu=3");
    offerings[2].capacity_override = offerings[1].capacity_override;
    t->offerings = offerings;
    bench_with(&b, "");
    uint32_t own = b.pools[0].terms;
    EXPECT_STR(left(&b, own), "one:a/spot=0.1 one:b/spot=0.2");
    EXPECT_STR(left(&b, join(&b, own, "karpenter.sh/capacity-type=on-demand")),
               "one:b/on-demand=0.4 one:a/on-demand=0.3");
    uint32_t spot_a =
        join(&b, own, "karpenter.sh/capacity-type=spot topology.kubernetes.io/zone=a");
    EXPECT_STR(left(&b, spot_a), "one:a/spot=0.1");
    const struct terms *terms = terms_at(&b.m, spot_a);
    EXPECT_EQ(terms->price[1], USD_HOUR_MAX);
    EXPECT_EQ(terms->offering[1], NONE);
}

TEST(pools_with_the_same_types_share_prices)
{
    BENCH b = { 0 };
    bench_start(&b);
    bench_pool(&b, "team=shop");
    bench_pool(&b, "team=bank");
    bench_ready(&b);
    EXPECT_TRUE(b.pools[0].terms != b.pools[1].terms);
    EXPECT_TRUE(terms_at(&b.m, b.pools[0].terms)->price == terms_at(&b.m, b.pools[1].terms)->price);
    EXPECT_EQ(terms_at(&b.m, b.pools[1].terms)->pool, 1);
}

/* A type with a reservation of two instances, one with a reservation that has none. */
static void bench_reserved(struct bench *b)
{
    const struct {
        const char *name;
        uint32_t capacity;
    } types[] = { { "big", 2 }, { "old", 0 } };
    for (size_t i = 0; i < KV_COUNT_OF(types); i++) {
        char offerings[200];
        snprintf(offerings, sizeof offerings, "a/reserved=0+%s=cr-%s a/on-demand=1+%s=!",
                 RESERVATION, types[i].name, RESERVATION);
        struct instance_type_draft *t = draft_type(&b->drafts, types[i].name, "", offerings);
        ((struct offering_draft *)t->offerings)[0].reservation_capacity = types[i].capacity;
    }
    bench_start(b);
    bench_pool(b, "team=shop");
    bench_pool(b, "team=bank");
    bench_ready(b);
}

TEST(a_reservation_that_is_used_up_is_gone_from_all_terms)
{
    BENCH b = { 0 };
    bench_reserved(&b);
    uint32_t shop = b.pools[0].terms, bank = b.pools[1].terms;
    for (int again = 0; again < 2; again++) {
        EXPECT_STR(left(&b, shop), "big:a/reserved=0 old:a/on-demand=1");
        uint32_t reserved = join(&b, shop, "karpenter.sh/capacity-type=reserved");
        EXPECT_STR(left(&b, reserved), "big:a/reserved=0");
        uint32_t offering = terms_at(&b.m, reserved)->offering[0];
        EXPECT_EQ(reservation_left(&b.m, 0, offering), 2);
        reservation_take(&b.m, 0, offering);
        EXPECT_EQ(reservation_left(&b.m, 1, offering), 1);
        EXPECT_STR(left(&b, bank), "big:a/reserved=0 old:a/on-demand=1");
        reservation_take(&b.m, 1, offering);
        EXPECT_EQ(reservation_left(&b.m, 0, offering), 0);
        EXPECT_STR(left(&b, shop), "big:a/on-demand=1 old:a/on-demand=1");
        EXPECT_STR(left(&b, bank), "big:a/on-demand=1 old:a/on-demand=1");
        EXPECT_EQ(join(&b, shop, "karpenter.sh/capacity-type=reserved"), NONE);
        EXPECT_EQ(reservation_left(&b.m, 0, terms_at(&b.m, shop)->offering[0]), -1);
        reservation_take(&b.m, 0, terms_at(&b.m, shop)->offering[0]); /* nothing to take */
        reservations_reset(&b.m);
    }
}

TEST(who_asks_for_a_reservation_gets_no_other_offering)
{
    BENCH b = { 0 };
    bench_reserved(&b);
    EXPECT_STR(left(&b, join(&b, b.pools[0].terms, RESERVATION "=cr-big")), "big:a/reserved=0");
    EXPECT_STR(left(&b, join(&b, b.pools[0].terms, RESERVATION "=cr-old")), "none");
    EXPECT_STR(left(&b, join(&b, b.pools[0].terms, RESERVATION "=!")),
               "big:a/on-demand=1 old:a/on-demand=1");
}

TEST(min_values_count_what_the_machines_offer)
{
    BENCH b = { 0 };
    bench_start(&b);
    bench_pool(&b, "kubernetes.io/arch=amd64,arm64");
    struct requirement *arch = (struct requirement *)b.pools[0].requirements.items;
    arch->min_values = (struct maybe_int){ 2, true };
    bench_ready(&b);
    AUTO_ARENA scratch = { 0 };
    uint32_t own = b.pools[0].terms;
    const struct terms *t = terms_at(&b.m, own);
    EXPECT_TRUE(t->has_min_values);
    struct min_values_result result;
    EXPECT_TRUE(terms_min_values(&b.m, own, &t->machines, &scratch, &result));
    EXPECT_EQ(result.type_count, 3); /* small, large, and then thorn brings the other */
    struct bitset machines = bitset_new(&scratch, b.types->row_count);
    bitset_set(&machines, 0);
    bitset_set(&machines, 1);
    EXPECT_FALSE(terms_min_values(&b.m, own, &machines, &scratch, &result));
    EXPECT_EQ(result.keys.count, 1);
    EXPECT_EQ(result.keys.items[0].have, 1);
    EXPECT_EQ(result.keys.items[0].want, 2);
    EXPECT_FALSE(terms_min_values(&b.m, own, &machines, &scratch, NULL));
    EXPECT_TRUE(terms_at(&b.m, join(&b, own, "topology.kubernetes.io/zone=b"))->has_min_values);
}

/* The slow and obvious answer: types compatible with everything that was asked, in a shape that
 * goes with it all. */
static bool machine_expected(const struct bench *b, uint32_t row, const struct requirements *set)
{
    const struct instance_types *s = b->types;
    AUTO_ARENA arena = { 0 };
    struct requirements own = instance_type_requirements(s, s->row_type[row], &arena);
    if (!requirements_intersects(&own, set, NULL))
        return false;
    bitset_each(&s->available, o) {
        if (s->offering_row[o] == row &&
            requirements_intersects(set, &s->shapes[s->offering_shape[o]].requirements, NULL))
            return true;
    }
    return false;
}

TEST(machines_left_are_those_that_the_algebra_allows)
{
    static const char *const asks[] = {
        "topology.kubernetes.io/zone=a",
        "topology.kubernetes.io/zone=a,b",
        "topology.kubernetes.io/zone=-a",
        "karpenter.sh/capacity-type=spot",
        "karpenter.sh/capacity-type=-spot",
        "kubernetes.io/arch=arm64",
        "kubernetes.io/arch=amd64",
        "gpu=!",
        "gpu=t4",
        "node.kubernetes.io/instance-type=-small",
        "gpu=*",
        "",
    };
    BENCH b = { 0 };
    bench_with(&b, "team=shop");
    for (size_t i = 0; i < KV_COUNT_OF(asks); i++) {
        for (size_t j = 0; j < KV_COUNT_OF(asks); j++) {
            struct requirements one = labels(&b, asks[i]), two = labels(&b, asks[j]);
            struct requirements both = requirements_merge(&b.arena, &one, &two);
            bool possible = requirements_intersects(&one, &two, NULL), any = false;
            uint32_t got = join(&b, b.pools[0].terms, asks[i]);
            got = got == NONE ? NONE : join(&b, got, asks[j]);
            for (uint32_t row = 0; row < b.types->row_count; row++) {
                bool want = possible && machine_expected(&b, row, &both);
                bool have = got != NONE && bitset_test(&terms_at(&b.m, got)->machines, row);
                EXPECT_EQ(have, want);
                any |= want;
            }
            EXPECT_EQ(got != NONE, any);
        }
    }
}

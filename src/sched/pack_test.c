/* Launches for what needs them: what pods are worth, which machines are tried, how they are filled,
 * and that taking them apart again only ever makes the whole cheaper.
 */
#include "sched/improve.h"
#include "sched/property_testing.h"
#include "sched/state_recount_testing.h"

#define AMD64 "[{key: kubernetes.io/arch, operator: In, values: [amd64]}]"
#define POOL WORLD_POOL("p", AMD64, "") /* 2 cpu and 4Gi are 0.04, whatever the size */
#define ROUNDS 60

struct packing {
    struct stated t;
    struct arena scratch;
    struct items items;
    struct worth worth;
    struct packer k;
    bool begun;
};

static void packing_done(struct packing *p)
{
    if (p->begun)
        packer_done(&p->k);
    vec_done(&p->items.list);
    arena_done(&p->scratch);
    stated_done(&p->t);
}
#define PACKING __attribute__((cleanup(packing_done))) struct packing

/* `count` copies of a pod that is in the world once. */
static void copies(struct packing *p, const char *name, uint32_t count)
{
    struct world *w = &p->t.modelled.w;
    const struct pod *first = w->snap.pods[world_pod_ix(w, name)];
    for (uint32_t i = 1; i < count; i++) {
        struct pod *copy = arena_new(&w->arena, struct pod);
        *copy = *first;
        copy->object.meta.name = arena_strf(&w->arena, "%s-%u", name, i);
        vec_push(&w->pods, copy);
    }
    world_refresh(w);
}

/* All pods of the world, as far as they can be launched for, wait for a packer. */
static void begin(struct packing *p, uint64_t careful)
{
    stated_again(&p->t);
    p->t.s.careful = careful;
    const struct model *m = p->t.s.model;
    for (uint32_t c = 0; c < m->class_count; c++)
        if (m->classes[c].variant_count)
            domains_place(&p->t.s, c, 0, m->classes[c].count, &p->items);
    p->worth = worth_of(&p->t.s, &p->items, ROUNDS, &p->scratch);
    packer_init(&p->k, &p->t.s, &p->items, &p->worth, p->worth.value, &p->scratch);
    p->begun = true;
}

static void pack(struct packing *p, uint64_t careful)
{
    begin(p, careful);
    packer_run(&p->k);
}

static void load(struct packing *p, const char *yaml, const char *maybe_types)
{
    world_load(&p->t.modelled.w, yaml, maybe_types ? maybe_types : WORLD_TYPES_SMALL);
}

static uint32_t item_named(const struct packing *p, const char *pod)
{
    for (uint32_t i = 0; i < p->k.item_count; i++)
        if (p->k.items[i].class_ == class_named(&p->t, pod))
            return i;
    fail_msg("%s is not to be launched for", pod);
    return NONE;
}

/* "large medium": the machines of all launches, in the order of opening. */
static const char *launches(struct packing *p)
{
    AUTO_BUF out = { 0 };
    vec_each(&p->k.opened, uint32_t, ix) {
        if (out.len)
            buf_addc(&out, ' ');
        buf_add(&out, type_at(&p->t, *ix));
    }
    return arena_str(&p->scratch, buf_str(&out)).p;
}

/* --- worth --- */

static bool about(double a, double b)
{
    double apart = a > b ? a - b : b - a;
    return apart <= 1e-6 + 0.01 * b;
}

TEST(pods_are_worth_their_share_of_the_least_that_they_can_cost)
{
    PACKING p = { 0 };
    load(&p,
         POOL WORLD_POD("one", "{}", "{cpu: 1, memory: 2Gi}", "")
             WORLD_POD("two", "{}", "{cpu: 2, memory: 4Gi}", ""),
         NULL);
    copies(&p, "one", 5);
    begin(&p, 0);
    EXPECT_TRUE(about(p.worth.value[item_named(&p, "one")], 0.02));
    EXPECT_TRUE(about(p.worth.value[item_named(&p, "two")], 0.04));
    EXPECT_TRUE(about(usd_hour_double(p.worth.bound), 0.14));
    EXPECT_TRUE(p.worth.bound <= milli_usd(140));
}

TEST(pods_that_need_nodes_of_their_own_are_worth_those_nodes)
{
    static const struct {
        const char *term;
        int64_t milli_usd; /* of six pods that fit on one small */
    } cases[] = {
        { "", 40 },
        { AWAY(HOST, "w"), 240 },
        { SPREADS(SPREAD(HOST, "1", "w")), 240 },
        { SPREADS(SPREAD(HOST, "2", "w")), 120 },
        { SPREADS(SPREAD(HOST, "1", "other")), 40 },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        PACKING p = { 0 };
        AUTO_BUF yaml = { 0 };
        buf_addf(&yaml, POOL WORLD_POD("w", "{app: w}", "{cpu: 300m}", "%s"), cases[i].term);
        load(&p, yaml.p, NULL);
        copies(&p, "w", 6);
        pack(&p, UINT64_MAX);
        EXPECT_TRUE(p.worth.bound <= milli_usd(cases[i].milli_usd));
        if (cases[i].milli_usd > 40)
            EXPECT_TRUE(about(usd_hour_double(p.worth.bound), (double)cases[i].milli_usd / 1000));
        EXPECT_EQ(p.t.s.price, milli_usd(cases[i].milli_usd));
    }
}

TEST(the_bound_does_not_count_the_zones_that_were_chosen)
{
    PACKING p = { 0 };
    load(&p,
         POOL WORLD_POD("w", "{app: w}", "{cpu: 2, memory: 4Gi}", SPREADS(SPREAD(ZONE, "1", "w"))),
         NULL);
    copies(&p, "w", 3);
    pack(&p, UINT64_MAX);
    EXPECT_TRUE(p.worth.bound <= milli_usd(120)); /* all in the cheapest zone */
    EXPECT_TRUE(about(usd_hour_double(p.worth.bound), 0.12));
    EXPECT_EQ(p.t.s.price, milli_usd(123));
}

TEST(the_bound_is_of_the_heaviest_pools_as_long_as_these_have_no_limits)
{
    static const struct {
        const char *limits;
        double bound;
    } cases[] = { { "", 0.1 }, { "  limits: {cpu: 100}\n", 0.04 } };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        PACKING p = { 0 };
        AUTO_BUF yaml = { 0 };
        buf_addf(&yaml,
                 POOL WORLD_POOL("heavy",
                                 "[{key: karpenter.sh/capacity-type, operator: In, values: "
                                 "[on-demand]}, {key: kubernetes.io/arch, operator: In, values: "
                                 "[amd64]}]",
                                 "  weight: 9\n%s")
                     WORLD_POD("w", "{}", "{cpu: 2, memory: 4Gi}", ""),
                 cases[i].limits);
        load(&p, yaml.p, NULL);
        begin(&p, 0);
        EXPECT_TRUE(about(usd_hour_double(p.worth.bound), cases[i].bound));
    }
}

TEST(pods_that_need_a_dearer_offering_pay_for_it_and_others_may_ride_along)
{
    PACKING p = { 0 };
    load(&p,
         POOL WORLD_POD("firm", "{}", "{cpu: 2, memory: 4Gi}",
                        "  nodeSelector: {karpenter.sh/capacity-type: on-demand}\n")
             WORLD_POD("w", "{}", "{cpu: 2, memory: 4Gi}", ""),
         NULL);
    begin(&p, 0);
    EXPECT_TRUE(about(p.worth.value[item_named(&p, "firm")], 0.1));
    EXPECT_TRUE(about(p.worth.value[item_named(&p, "w")], 0.04));
}

TEST(rates_split_the_price_of_a_machine_and_scale_with_it)
{
    PACKING p = { 0 };
    load(&p,
         WORLD_POOL("p", "[]", "") WORLD_POD("w", "{}", "{cpu: 1, memory: 1Gi}",
                                             "  nodeSelector: {kubernetes.io/arch: amd64}\n"),
         NULL);
    copies(&p, "w", 10);
    begin(&p, 0);
    double scale = 0, sum = 0;
    uint32_t small = machine_named(&p.t, "p", "small");
    const double *unit = worth_rate(&p.worth, 0, small, milli_usd(40), &scale);
    EXPECT_TRUE(unit != NULL);
    EXPECT_TRUE(about(scale, 1));
    const int64_t *room = p.t.s.model->pools[0].room + (size_t)small * p.t.s.model->resource_count;
    for (uint32_t r = 0; r < p.t.s.model->resource_count; r++)
        sum += unit[r] * (double)room[r];
    EXPECT_TRUE(sum <= 0.04 * 1.000001);
    EXPECT_TRUE(about(sum, 0.04));
    EXPECT_TRUE(worth_rate(&p.worth, 0, small, milli_usd(120), &scale) == unit);
    EXPECT_TRUE(about(scale, 3));
    EXPECT_TRUE(worth_rate(&p.worth, 0, machine_named(&p.t, "p", "arm"), 1, &scale) == NULL);
}

/* --- candidates and fillings --- */

/* Each once, of the leader's tier, and with room for the leader. */
static bool candidates_suit(const struct random_world *r, struct buf *why)
{
    PACKING p = { 0 };
    random_world_load(&p.t.modelled.w, r, 1, "");
    begin(&p, r->seed % 2 ? UINT64_MAX : 0);
    for (uint32_t item = 0; item < p.k.item_count; item++) {
        struct candidate found[CANDIDATES_MAX];
        if (p.k.tier[item] == NONE) {
            buf_addf(why, "item %u has no tier before anything was launched\n", item);
            continue;
        }
        uint32_t count = packer_candidates(&p.k, item, found);
        if (!count || count > CANDIDATES_MAX)
            buf_addf(why, "item %u has %u candidates\n", item, count);
        for (uint32_t i = 0; i < count; i++) {
            const struct candidate *c = &found[i];
            for (uint32_t n = 0; n < i; n++)
                if (found[n].pool == c->pool && found[n].machine == c->machine)
                    buf_addf(why, "item %u: a candidate twice\n", item);
            if (p.t.s.model->pools[c->pool].tier != p.k.tier[item] ||
                !bitset_test(&terms_at(p.t.s.model, c->terms)->machines, c->machine) ||
                !machine_possible(&p.t.s, p.k.items[item].class_, c->pool, c->machine))
                buf_addf(why, "item %u: candidate %u does not suit\n", item, i);
        }
    }
    return why->len == 0;
}

TEST(candidates_are_different_machines_of_the_leaders_tier_that_have_room_for_it)
{
    property_check("candidates", false, 100, candidates_suit);
}

/* Fills one launch for each item; then nothing more may fit, and worth is what was put in. */
static bool fillings_are_full(const struct random_world *r, struct buf *why)
{
    PACKING p = { 0 };
    random_world_load(&p.t.modelled.w, r, 1, "");
    begin(&p, r->seed % 2 ? UINT64_MAX : 0);
    for (uint32_t leader = 0; leader < p.k.item_count; leader++) {
        struct candidate found[CANDIDATES_MAX];
        uint32_t sticky = 0, sticky_put = 0;
        if (p.k.tier[leader] == NONE || !packer_candidates(&p.k, leader, found))
            continue;
        uint32_t ix = state_open(&p.t.s, found[0].pool, found[0].machine, found[0].terms);
        vec_clear(&p.k.puts);
        double worth = packer_fill(&p.k, ix, false, &sticky), put = 0;
        vec_each(&p.k.puts, struct put, it) {
            put += it->count * p.k.value[it->item];
            if (item_is_sticky(p.t.s.model, &p.k.items[it->item]))
                sticky_put += it->count;
        }
        if (worth < put * 0.999999 || worth > put * 1.000001 || sticky != sticky_put)
            buf_addf(why, "a filling tells wrong of what is in it\n");
        for (uint32_t i = 0; i < p.k.item_count; i++)
            if (!item_is_sticky(p.t.s.model, &p.k.items[i]) && packer_put(&p.k, ix, i, 1))
                buf_addf(why, "item %u still fits into launch %u\n", i, ix);
        for (uint32_t i = 0; i < p.k.item_count; i++) {
            uint32_t left = p.k.items[i].count;
            vec_each(&p.k.puts, struct put, it)
                left -= it->item == i ? it->count : 0;
            differ(why, "what is left of an item", ix, p.k.left[i], left);
            p.k.left[i] = p.k.items[i].count;
        }
        recounted_bins(&p.t.s, why);
        launch_dissolve(&p.t.s, ix);
    }
    return why->len == 0;
}

TEST(a_filling_ends_when_nothing_more_fits_and_tells_what_it_is_worth)
{
    property_check("fillings", false, 100, fillings_are_full);
}

TEST(pods_are_put_in_up_to_what_is_asked_for_and_half_at_a_time_if_they_are_many)
{
    PACKING p = { 0 };
    load(&p, POOL WORLD_POD("w", "{}", "{cpu: 100m}", ""), NULL);
    copies(&p, "w", 30);
    begin(&p, UINT64_MAX);
    uint32_t bin = opened(&p.t, "p", "small");
    EXPECT_EQ(packer_put(&p.k, bin, 0, 1), 1);
    EXPECT_EQ(p.k.left[0], 29);
    uint32_t put = packer_put(&p.k, bin, 0, UINT32_MAX); /* of 19 */
    EXPECT_TRUE(put >= 9);
    EXPECT_TRUE(put <= 10);
    EXPECT_EQ(p.k.left[0], 29 - put);
    while (packer_put(&p.k, bin, 0, UINT32_MAX))
        ;
    EXPECT_EQ(p.k.left[0], 10);
    uint32_t sum = 0;
    vec_each(&p.k.puts, struct put, it)
        sum += it->count;
    EXPECT_EQ(sum, 20);
}

TEST(pods_that_a_heavier_pool_can_have_are_not_put_into_a_lighter_one)
{
    PACKING p = { 0 };
    load(&p, POOL WORLD_POOL("heavy", AMD64, "  weight: 9\n") WORLD_POD("w", "{}", "{cpu: 1}", ""),
         NULL);
    begin(&p, UINT64_MAX);
    EXPECT_EQ(p.k.tier[0], 0);
    EXPECT_EQ(packer_put(&p.k, opened(&p.t, "p", "small"), 0, 1), 0);
    EXPECT_EQ(packer_put(&p.k, opened(&p.t, "heavy", "small"), 0, 1), 1);
}

/* --- packing --- */

TEST(the_smallest_machine_that_holds_the_pods_is_launched)
{
    static const struct {
        const char *requests;
        uint32_t pods;
        const char *types;
    } cases[] = {
        { "{cpu: 1}", 1, "small" },
        { "{cpu: 1}", 2, "small" },
        { "{cpu: 3}", 1, "medium" },
        { "{cpu: 5}", 1, "large" },
        { "{cpu: 1, memory: 20Gi}", 1, "memory" },
        { "{cpu: 5, memory: 20Gi}", 1, "gpu" }, /* nothing else has that much of both */
        { "{cpu: 5}", 3, "large large large" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        for (uint64_t careful = 0; careful < 2; careful++) {
            PACKING p = { 0 };
            AUTO_BUF yaml = { 0 };
            buf_addf(&yaml, POOL WORLD_POD("w", "{}", "%s", ""), cases[i].requests);
            load(&p, yaml.p, NULL);
            copies(&p, "w", cases[i].pods);
            pack(&p, careful ? UINT64_MAX : 0);
            EXPECT_EQ(p.k.left[0], 0);
            EXPECT_Z(launches(&p), cases[i].types);
        }
    }
}

TEST(pods_that_need_many_nodes_lead_and_the_others_fill_the_room_beside_them)
{
    PACKING p = { 0 };
    load(&p,
         POOL WORLD_POD("big", "{}", "{cpu: 1500m}", "")
             WORLD_POD("alone", "{app: a}", "{cpu: 100m}", AWAY(HOST, "a"))
                 WORLD_POD("pair", "{app: b}", "{cpu: 100m}", SPREADS(SPREAD(HOST, "2", "b"))),
         NULL);
    copies(&p, "big", 4);
    copies(&p, "alone", 4);
    copies(&p, "pair", 4);
    pack(&p, UINT64_MAX);
    EXPECT_EQ(p.k.order[0], item_named(&p, "alone"));
    EXPECT_EQ(p.k.order[1], item_named(&p, "pair"));
    EXPECT_EQ(p.k.order[2], item_named(&p, "big"));
    EXPECT_Z(launches(&p), "small small small small");
}

TEST(pods_that_pull_others_to_their_host_lead_before_all)
{
    PACKING p = { 0 };
    load(&p,
         POOL WORLD_POD("alone", "{app: a}", "{cpu: 1}", AWAY(HOST, "a"))
             WORLD_POD("db", "{app: db}", "{cpu: 1}", "")
                 WORLD_POD("fan", "{app: f}", "{cpu: 1}", NEAR(HOST, "db"))
                     WORLD_POD("self", "{app: s}", "{cpu: 100m}", NEAR(HOST, "s")),
         NULL);
    begin(&p, UINT64_MAX);
    EXPECT_EQ(p.k.order[0], item_named(&p, "self"));
    EXPECT_EQ(p.k.order[1], item_named(&p, "db"));
    EXPECT_TRUE(item_is_sticky(p.t.s.model, &p.k.items[item_named(&p, "fan")]));
    EXPECT_FALSE(item_is_sticky(p.t.s.model, &p.k.items[item_named(&p, "db")]));
}

TEST(pods_that_must_share_a_host_share_one)
{
    PACKING p = { 0 };
    load(&p,
         POOL WORLD_POD("db", "{app: db}", "{cpu: 1}", "")
             WORLD_POD("fan", "{app: f}", "{cpu: 2}", NEAR(HOST, "db")),
         NULL);
    copies(&p, "fan", 3);
    pack(&p, UINT64_MAX);
    EXPECT_EQ(p.k.left[item_named(&p, "fan")], 0);
    EXPECT_Z(launches(&p), "large");
}

TEST(pods_that_want_each_others_host_fill_one_and_the_rest_stays)
{
    PACKING p = { 0 };
    load(&p, POOL WORLD_POD("self", "{app: s}", "{cpu: 1}", NEAR(HOST, "s")), NULL);
    copies(&p, "self", 16);
    pack(&p, UINT64_MAX);
    EXPECT_Z(launches(&p), "large");
    EXPECT_EQ(p.k.left[0], 8);
}

TEST(pods_that_must_share_a_host_may_join_launches_that_were_there_before_and_make_them_larger)
{
    for (uint32_t may_join = 0; may_join < 2; may_join++) {
        PACKING p = { 0 };
        load(&p,
             POOL WORLD_POD("db", "{app: db}", "{cpu: 1}", "")
                 WORLD_POD("fan", "{app: f}", "{cpu: 2}", NEAR(HOST, "db")),
             NULL);
        copies(&p, "fan", 3);
        stated_again(&p.t);
        uint32_t bin = opened(&p.t, "p", "small"), fan = class_named(&p.t, "fan");
        placed(&p.t, bin, "db", 1);
        vec_push(&p.items.list, (struct item){ fan, 0, variant_named(&p.t, "fan")->wants, 3 });
        p.worth = worth_of(&p.t.s, &p.items, ROUNDS, &p.scratch);
        packer_init(&p.k, &p.t.s, &p.items, &p.worth, p.worth.value, &p.scratch);
        p.begun = true;
        p.k.may_join = may_join;
        packer_run(&p.k);
        EXPECT_EQ(p.k.opened.count, 0);
        EXPECT_EQ(p.k.left[0], may_join ? 0 : 3);
        EXPECT_STR(type_at(&p.t, bin), may_join ? "large" : "small");
    }
}

TEST(a_filling_is_repeated_in_bulk)
{
    uint64_t steps[2];
    size_t opened_count[2];
    for (uint32_t i = 0; i < 2; i++) {
        PACKING p = { 0 };
        uint32_t count = i ? 1600 : 80;
        load(&p,
             POOL WORLD_POD("cpu", "{}", "{cpu: 3, memory: 1Gi}", "")
                 WORLD_POD("mem", "{}", "{cpu: 1, memory: 7Gi}", ""),
             NULL);
        copies(&p, "cpu", count);
        copies(&p, "mem", count);
        pack(&p, UINT64_MAX);
        EXPECT_EQ(p.t.s.price, milli_usd(80) * count); /* each pair fills a medium */
        steps[i] = p.t.s.steps;
        opened_count[i] = p.k.opened.count;
    }
    /* One more launch costs no more than placing its pods; trying machines would cost hundreds. */
    EXPECT_TRUE(steps[1] - steps[0] < 60 * (opened_count[1] - opened_count[0]));
}

TEST(limits_hold_and_what_they_leave_out_goes_to_lighter_pools_or_stays)
{
    static const struct {
        const char *heavy, *light;
        uint32_t in_heavy, left; /* of ten pods of 2 cpu each */
    } cases[] = {
        { "", "", 10, 0 },
        { "  limits: {cpu: 9}\n", "", 4, 0 },
        { "  limits: {cpu: 9}\n", "  limits: {memory: 9Gi}\n", 4, 4 },
        { "  limits: {cpu: 1}\n", "  limits: {cpu: 0}\n", 0, 10 },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        PACKING p = { 0 };
        AUTO_BUF yaml = { 0 };
        buf_addf(&yaml,
                 WORLD_POOL("heavy", AMD64, "  weight: 9\n%s") WORLD_POOL("light", AMD64, "%s")
                     WORLD_POD("w", "{}", "{cpu: 2, memory: 4Gi}", ""),
                 cases[i].heavy, cases[i].light);
        load(&p, yaml.p, NULL);
        copies(&p, "w", 10);
        pack(&p, UINT64_MAX);
        uint32_t in_heavy = 0;
        vec_each(&p.k.opened, uint32_t, ix)
            if (p.t.s.bins.items[*ix].pool == pool_named(&p.t, "heavy"))
                vec_each(&p.t.s.bins.items[*ix].placements, struct placement, at)
                    in_heavy += at->count;
        EXPECT_EQ(in_heavy, cases[i].in_heavy);
        EXPECT_EQ(p.k.item_count ? p.k.left[0] : 10, cases[i].left);
        for (uint32_t n = 0; n < p.t.s.model->pool_count; n++)
            for (uint32_t l = 0; l < p.t.s.model->pools[n].limit_count; l++)
                EXPECT_TRUE(p.t.s.pools[n].limits[l] >= 0);
    }
}

TEST(a_heavier_pool_is_used_at_any_price_and_of_equal_ones_the_cheaper)
{
    PACKING p = { 0 };
    load(&p,
         WORLD_POOL("dear",
                    "[{key: karpenter.sh/capacity-type, operator: In, values: "
                    "[on-demand]}]",
                    "") WORLD_POOL("cheap", "[]", "") WORLD_POD("w", "{}", "{cpu: 1}", ""),
         NULL);
    pack(&p, UINT64_MAX);
    EXPECT_EQ(p.t.s.price, milli_usd(40));
    PACKING q = { 0 };
    load(&q,
         WORLD_POOL("dear",
                    "[{key: karpenter.sh/capacity-type, operator: In, values: "
                    "[on-demand]}]",
                    "  weight: 1\n") WORLD_POOL("cheap", "[]", "")
             WORLD_POD("w", "{}", "{cpu: 1}", ""),
         NULL);
    pack(&q, UINT64_MAX);
    EXPECT_EQ(q.t.s.price, milli_usd(100));
}

#define RESERVED(zone, id, capacity)                                                               \
    "  - {zone: " zone ", capacityType: reserved, price: 0.001, reservationId: " id                \
    ", reservationCapacity: " capacity "}\n"

TEST(reservations_are_used_while_they_last)
{
    PACKING p = { 0 };
    load(
        &p, POOL WORLD_POD("w", "{}", "{cpu: 3}", ""),
        "instanceTypes:\n" WORLD_TYPE("one", "amd64", "cpu: 4, memory: 8Gi, pods: 40") "  offerings:\n  - {zone: zone-a, capacityType: on-demand, price: 0.2}\n" RESERVED(
            "zone-a", "cr-1", "3"));
    copies(&p, "w", 5);
    pack(&p, UINT64_MAX);
    uint32_t reserved = 0;
    vec_each(&p.k.opened, uint32_t, ix)
        reserved += p.t.s.bins.items[*ix].reserved != NONE;
    EXPECT_EQ(reserved, 3);
    EXPECT_EQ(p.t.s.price, milli_usd(403));
}

/* --- packing any world --- */

static bool packing_is_sound(const struct random_world *r, struct buf *why)
{
    PACKING p = { 0 };
    random_world_load(&p.t.modelled.w, r, 1, "");
    pack(&p, r->seed % 2 ? UINT64_MAX : 0);
    const struct state *s = &p.t.s;
    recounted_bins(s, why);
    for (uint32_t i = 0; i < p.k.item_count; i++) {
        uint32_t in = 0;
        for (uint32_t ix = s->model->home_count; ix < s->bins.count; ix++)
            vec_each(&s->bins.items[ix].placements, struct placement, at)
                if (at->class_ == p.items.list.items[i].class_ &&
                    at->variant == p.items.list.items[i].variant &&
                    at->wants == p.items.list.items[i].wants)
                    in += at->count;
        differ(why, "pods of an item", NONE, in + p.k.left[i], p.items.list.items[i].count);
    }
    for (uint32_t n = 0; n < s->model->pool_count; n++) {
        const struct pool *pool = &s->model->pools[n];
        for (uint32_t i = 0; i < pool->limit_count; i++)
            if (s->pools[n].limits[i] < 0 && s->pools[n].limits[i] < pool->limits[i].left)
                buf_addf(why, "pool %u is beyond its limits\n", n);
        if (s->pools[n].nodes < 0 && s->pools[n].nodes < pool->nodes_left)
            buf_addf(why, "pool %u has too many nodes\n", n);
    }
    vec_each(&p.k.opened, uint32_t, ix) {
        const struct bin *bin = &s->bins.items[*ix];
        if (!bin->placements.count)
            buf_addf(why, "launch %u is empty\n", *ix);
        for (uint32_t k = 0; k < s->model->resource_count; k++)
            if (bin->free[k] < 0)
                buf_addf(why, "launch %u is overfull\n", *ix);
        if (bin->reserved == NONE && launch_right_size(&p.t.s, *ix) != bin->machine)
            buf_addf(why, "launch %u is not of the right size\n", *ix);
    }
    return why->len == 0;
}

TEST(a_packing_of_any_world_is_counted_within_limits_and_of_the_right_size)
{
    property_check("packing", false, 150, packing_is_sound);
}

/* --- improving --- */

static uint32_t live_launches(const struct state *s)
{
    uint32_t count = 0;
    for (uint32_t ix = s->model->home_count; ix < s->bins.count; ix++)
        count += bin_is_live(s, ix);
    return count;
}

/* One pod of 1 cpu to a small each: twice as many as are needed. */
static void load_waste(struct packing *p, uint32_t count)
{
    load(p, POOL WORLD_POD("w", "{}", "{cpu: 1, memory: 2Gi}", ""), NULL);
    copies(p, "w", count);
    stated_again(&p->t);
    for (uint32_t i = 0; i < count; i++)
        placed(&p->t, opened(&p->t, "p", "small"), "w", 1);
    launched_items(&p->t.s, &p->items);
    p->worth = worth_of(&p->t.s, &p->items, ROUNDS, &p->scratch);
}

TEST(what_is_launched_is_told_in_items)
{
    PACKING p = { 0 };
    load(&p,
         POOL WORLD_NODE("node-1", "zone-a", "", "cpu: 4, memory: 8Gi")
             WORLD_POD("w", "{}", "{cpu: 1}", "") WORLD_POD("v", "{}", "{cpu: 500m}", ""),
         NULL);
    stated_again(&p.t);
    placed(&p.t, home_named(&p.t, "node-1"), "w", 2);
    uint32_t one = opened(&p.t, "p", "small"), two = opened(&p.t, "p", "small");
    placed(&p.t, one, "w", 1);
    placed(&p.t, one, "v", 2);
    placed(&p.t, two, "v", 4);
    launched_items(&p.t.s, &p.items);
    EXPECT_EQ(p.items.list.count, 2);
    EXPECT_EQ(p.items.list.items[0].count, 1);
    EXPECT_EQ(p.items.list.items[1].count, 6);
}

TEST(launches_that_waste_room_are_put_together)
{
    for (uint64_t careful = 0; careful < 2; careful++) {
        PACKING p = { 0 };
        load_waste(&p, 12);
        p.t.s.careful = careful;
        improve(&p.t.s, &p.items, &p.worth, 10000000, 1);
        EXPECT_EQ(p.t.s.price, milli_usd(240));
        EXPECT_TRUE(live_launches(&p.t.s) <= 6);
    }
}

TEST(without_effort_nothing_changes)
{
    PACKING p = { 0 };
    AUTO_BUF before = { 0 }, after = { 0 };
    load_waste(&p, 6);
    text_of_state(&p.t.s, &before);
    uint64_t steps = p.t.s.steps;
    improve(&p.t.s, &p.items, &p.worth, 0, 1);
    text_of_state(&p.t.s, &after);
    EXPECT_STR(buf_str(&after), before.p);
    EXPECT_EQ(p.t.s.steps, steps);
}

TEST(the_search_ends_within_a_round_of_its_effort_or_when_there_is_nothing_to_gain)
{
    for (uint64_t careful = 0; careful < 2; careful++)
        for (uint64_t effort = 1; effort <= 100000; effort *= 10) {
            PACKING p = { 0 };
            load_waste(&p, 40);
            p.t.s.careful = careful;
            uint64_t start = p.t.s.steps;
            improve(&p.t.s, &p.items, &p.worth, effort, 1);
            EXPECT_TRUE(p.t.s.steps - start < effort + 5000);
        }
    PACKING one = { 0 };
    load_waste(&one, 1);
    improve(&one.t.s, &one.items, &one.worth, UINT64_MAX, 1);
    EXPECT_EQ(one.t.s.price, milli_usd(40));
}

/* A random world, packed with little care and improved. */
static void improved(struct packing *p, const struct random_world *r, uint64_t seed,
                     struct items *launched)
{
    random_world_load(&p->t.modelled.w, r, 1, "");
    pack(p, r->seed % 3 ? 1 : 0);
    launched_items(&p->t.s, launched);
    if (!launched->list.count)
        return;
    struct worth worth = worth_of(&p->t.s, launched, ROUNDS, &p->scratch);
    improve(&p->t.s, launched, &worth, 30000, seed);
}

static int by_item(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    if (x->class_ != y->class_)
        return x->class_ < y->class_ ? -1 : 1;
    if (x->variant != y->variant)
        return x->variant < y->variant ? -1 : 1;
    return x->wants < y->wants ? -1 : x->wants > y->wants;
}

static void text_of_items(const struct items *items, struct buf *out)
{
    if (items->list.count)
        qsort(items->list.items, items->list.count, sizeof *items->list.items, by_item);
    vec_each(&items->list, struct item, it)
        buf_addf(out, "class %u variant %u wants %u: %u\n", it->class_, it->variant, it->wants,
                 it->count);
}

static bool improving_is_sound(const struct random_world *r, struct buf *why)
{
    PACKING p = { 0 }, q = { 0 };
    struct items before = { 0 }, again = { 0 }, after = { 0 };
    AUTO_BUF items_before = { 0 }, items_after = { 0 }, one = { 0 }, two = { 0 };
    random_world_load(&q.t.modelled.w, r, 1, "");
    pack(&q, r->seed % 3 ? 1 : 0);
    usd_hour price = q.t.s.price;
    uint32_t nodes = live_launches(&q.t.s);
    improved(&p, r, 1, &before);
    if (p.t.s.price > price || live_launches(&p.t.s) > nodes)
        buf_addf(why, "it was %lld with %u nodes, and is %lld with %u\n", (long long)price, nodes,
                 (long long)p.t.s.price, live_launches(&p.t.s));
    recounted_bins(&p.t.s, why);
    launched_items(&p.t.s, &after);
    text_of_items(&before, &items_before);
    text_of_items(&after, &items_after);
    if (!str_eq(buf_str(&items_before), buf_str(&items_after)))
        buf_addf(why, "launched for before:\n%s\nand after:\n%s\n", buf_str(&items_before).p,
                 buf_str(&items_after).p);
    PACKING other = { 0 };
    improved(&other, r, 1, &again);
    text_of_state(&p.t.s, &one);
    text_of_state(&other.t.s, &two);
    if (!str_eq(buf_str(&one), buf_str(&two)))
        buf_addf(why, "the same seed gives:\n%s\nand then:\n%s\n", buf_str(&one).p,
                 buf_str(&two).p);
    vec_done(&before.list);
    vec_done(&again.list);
    vec_done(&after.list);
    return why->len == 0;
}

TEST(improving_loses_no_pod_costs_no_more_adds_no_node_and_is_the_same_each_time)
{
    property_check("improving", false, 60, improving_is_sound);
}

/* The life of a launch: opened, pinned, made larger or smaller, given a place in a reservation, given
 * up.
 */
#include "sched/state_testing.h"

#define POOL WORLD_POOL("p", "[]", "")
#define NODE(name) WORLD_NODE(name, "zone-a", "", "cpu: 4, memory: 8Gi")
#define BOUND(name, labels, node, requests)                                                        \
    WORLD_POD(name, labels, requests, "  nodeName: " node "\n")

/* --- launches --- */

TEST(homes_are_the_first_bins_with_what_is_taken_there)
{
    STATED t = { 0 };
    stated_load(&t,
                POOL NODE("b") NODE("a") BOUND("x", "{}", "a", "{cpu: 1}")
                    WORLD_POD("w", "{}", "{cpu: 1}", ""),
                NULL);
    EXPECT_EQ(t.s.bins.count, 2);
    EXPECT_EQ(t.s.price, 0);
    EXPECT_EQ(free_cpu(&t, home_named(&t, "a")), 3000);
    EXPECT_EQ(free_cpu(&t, home_named(&t, "b")), 4000);
    EXPECT_TRUE(bin_is_home(&t.s, 1));
    EXPECT_TRUE(bin_is_live(&t.s, 1));
}

TEST(a_launch_has_the_room_and_the_price_of_its_machine)
{
    STATED t = { 0 };
    stated_load(&t, POOL NODE("a") WORLD_POD("w", "{}", "{cpu: 1}", ""), NULL);
    uint32_t one = opened(&t, "p", "medium"), two = opened(&t, "p", "small");
    EXPECT_FALSE(bin_is_home(&t.s, one));
    EXPECT_EQ(free_cpu(&t, one), 4000);
    EXPECT_EQ(free_cpu(&t, two), 2000);
    EXPECT_EQ(t.s.bins.items[one].price, milli_usd(80));
    EXPECT_EQ(t.s.price, milli_usd(120));
}

TEST(a_launch_given_up_leaves_nothing_but_its_number)
{
    STATED t = { 0 };
    AUTO_BUF before = { 0 };
    stated_load(&t,
                WORLD_POOL("p", "[]", "  limits: {cpu: 9, nodes: 3}\n")
                    WORLD_POD("w", "{app: w}", "{cpu: 1}", AWAY(HOST, "w")),
                NULL);
    text_of_state(&t.s, &before);
    uint32_t one = opened(&t, "p", "large");
    placed(&t, one, "w", 1);
    EXPECT_EQ(t.s.pools[0].nodes, 2);
    EXPECT_EQ(t.s.pools[0].limits[0], 1000);
    launch_dissolve(&t.s, one);
    EXPECT_FALSE(bin_is_live(&t.s, one));
    expect_state(&t, &before);
    EXPECT_EQ(opened(&t, "p", "small"), one); /* used again, and clean */
    EXPECT_EQ(room_at(&t, one, "w", 9), 1);
}

TEST(limits_say_how_often_a_machine_may_be_launched)
{
    STATED t = { 0 };
    stated_load(&t,
                WORLD_POOL("p", "[]", "  limits: {cpu: 10}\n")
                    WORLD_POOL("few", "[]", "  limits: {nodes: 2}\n")
                        WORLD_POOL("none", "[]", "  limits: {cpu: 0}\n")
                            WORLD_POD("w", "{}", "{cpu: 1}", ""),
                NULL);
    struct state *s = &t.s;
    uint32_t p = pool_named(&t, "p"), few = pool_named(&t, "few"), none = pool_named(&t, "none");
    uint32_t small = machine_named(&t, "p", "small"), large = machine_named(&t, "p", "large");
    EXPECT_EQ(state_allowed(s, p, small, 9), 5);
    EXPECT_EQ(state_allowed(s, p, small, 3), 3);
    EXPECT_EQ(state_allowed(s, p, large, 9), 1);
    EXPECT_EQ(state_allowed(s, few, large, 9), 2);
    EXPECT_EQ(state_allowed(s, none, small, 9), 0);
    opened(&t, "p", "small");
    EXPECT_EQ(state_allowed(s, p, large, 9), 1); /* to the last cpu */
    opened(&t, "p", "small");
    EXPECT_EQ(state_allowed(s, p, large, 9), 0);
    EXPECT_EQ(state_allowed(s, p, small, 9), 3);
    opened(&t, "few", "large");
    opened(&t, "few", "large");
    EXPECT_EQ(state_allowed(s, few, small, 9), 0);
}

TEST(a_limit_that_is_overdrawn_allows_nothing_even_of_what_is_free)
{
    STATED t = { 0 };
    stated_load(&t,
                WORLD_POOL("p", "[]", "  limits: {cpu: 3, nvidia.com/gpu: 0}\n")
                    WORLD_NODE("a", "zone-a", ", karpenter.sh/nodepool: p", "cpu: 4, memory: 8Gi")
                        WORLD_POD("w", "{}", "{cpu: 1}", ""),
                NULL);
    EXPECT_EQ(state_allowed(&t.s, 0, machine_named(&t, "p", "small"), 1), 0);
}

TEST(a_launch_knows_the_domains_that_its_terms_leave_no_choice_of)
{
    STATED t = { 0 };
    stated_load(&t,
                WORLD_POOL("p", "[]", "") WORLD_POOL(
                    "b", "[{key: " ZONE ", operator: In, values: [zone-b]}]", "")
                    WORLD_POD("w", "{app: w}", "{cpu: 1}", SPREADS(SPREAD(ZONE, "1", "w")))
                        WORLD_POD("c", "{}", "{cpu: 1}", "  nodeSelector: {" ZONE ": zone-c}\n"),
                NULL);
    uint32_t zone = key_named(&t, ZONE), any = opened(&t, "p", "small");
    uint32_t pinned = opened(&t, "b", "small");
    EXPECT_EQ(t.s.bins.items[any].domains[zone], NONE);
    EXPECT_EQ(t.s.bins.items[pinned].domains[zone], domain_named(&t, ZONE, "zone-b"));
    EXPECT_EQ(room_at(&t, pinned, "c", 1), 0);
    t.s.premium = USD_HOUR_ONE;
    placed(&t, any, "c", 1);
    EXPECT_EQ(t.s.bins.items[any].domains[zone], domain_named(&t, ZONE, "zone-c"));
    EXPECT_FALSE(bitset_test(&t.s.launched[zone], domain_named(&t, ZONE, "zone-a")));
    EXPECT_TRUE(bitset_test(&t.s.launched[zone], domain_named(&t, ZONE, "zone-b")));
    EXPECT_TRUE(bitset_test(&t.s.launched[zone], domain_named(&t, ZONE, "zone-c")));
}

/* --- another machine --- */

TEST(a_launch_is_as_right_the_cheapest_machine_that_holds_what_is_in_it)
{
    static const struct {
        uint32_t pods; /* of 1 cpu and 1Gi, on a `large` */
        const char *type;
    } cases[] = {
        { 0, "small" }, { 2, "small" }, { 3, "medium" }, { 4, "medium" }, { 5, "large" }
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        STATED t = { 0 };
        AUTO_BUF before = { 0 };
        stated_load(&t,
                    POOL WORLD_POD("w", "{}", "{cpu: 1, memory: 1Gi}",
                                   "  nodeSelector: {kubernetes.io/arch: amd64}\n"),
                    NULL);
        const struct pool *pool = &t.modelled.m.pools[0];
        uint32_t terms = terms_join(&t.modelled.m, pool->terms, variant_named(&t, "w")->wants);
        uint32_t bin = state_open(&t.s, 0, machine_named(&t, "p", "large"), terms);
        if (cases[i].pods)
            placed(&t, bin, "w", cases[i].pods);
        text_of_state(&t.s, &before);
        EXPECT_STR(pool->types->names[launch_right_size(&t.s, bin)], cases[i].type);
        expect_state(&t, &before); /* it only tells */
    }
}

/* Where the larger machine is the cheaper one. */
#define TYPES_ODD                                                                                  \
    "instanceTypes:\n" WORLD_TYPE("big", "amd64", "cpu: 8, memory: 16Gi, pods: 80")                \
        WORLD_OFFERINGS("0.1", "0.05", "0.05", "0.05")                                             \
            WORLD_TYPE("little", "amd64", "cpu: 2, memory: 4Gi, pods: 20")                         \
                WORLD_OFFERINGS("0.2", "0.08", "0.08", "0.08")

TEST(right_size_and_growth_stay_within_limits)
{
    static const struct {
        const char *limits;
        const char *right; /* for a `little` with one pod */
        bool grows;        /* for a pod that only a `big` can take too */
    } cases[] = {
        { "", "big", true },
        { "  limits: {cpu: 8}\n", "big", true }, /* its own 2 are given back first */
        { "  limits: {cpu: 7}\n", "little", false },
        { "  limits: {cpu: 100, memory: 5Gi}\n", "little", false },
        { "  limits: {nodes: 1}\n", "big", true },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        STATED t = { 0 };
        AUTO_BUF before = { 0 }, yaml = { 0 };
        buf_addf(&yaml,
                 WORLD_POOL("p", "[]", "%s") WORLD_POD("w", "{}", "{cpu: 1}", "")
                     WORLD_POD("more", "{}", "{cpu: 2}", ""),
                 cases[i].limits);
        stated_load(&t, yaml.p, TYPES_ODD);
        uint32_t bin = opened(&t, "p", "little");
        placed(&t, bin, "w", 1);
        text_of_state(&t.s, &before);
        const struct variant *v = variant_named(&t, "more");
        uint32_t right = launch_right_size(&t.s, bin), more = class_named(&t, "more");
        EXPECT_STR(t.modelled.m.pools[0].types->names[right], cases[i].right);
        EXPECT_EQ(launch_grow(&t.s, bin, more, v, v->wants), cases[i].grows);
        if (!cases[i].grows) {
            expect_state(&t, &before);
            continue;
        }
        EXPECT_STR(type_at(&t, bin), "big");
        EXPECT_EQ(free_cpu(&t, bin), 7000);
        EXPECT_EQ(t.s.price, milli_usd(50));
        placed(&t, bin, "more", 1);
    }
}

TEST(a_launch_grows_to_the_cheapest_machine_with_room_and_gives_it_all_back)
{
    STATED t = { 0 };
    AUTO_BUF before = { 0 };
    stated_load(&t,
                WORLD_POOL("p", "[]", "  limits: {cpu: 8, nodes: 1}\n")
                    WORLD_POD("w", "{}", "{cpu: 1}", "")
                        WORLD_POD("mem", "{}", "{memory: 9Gi}", ""),
                NULL);
    text_of_state(&t.s, &before);
    uint32_t bin = opened(&t, "p", "small");
    placed(&t, bin, "w", 1);
    const struct variant *v = variant_named(&t, "mem");
    EXPECT_TRUE(launch_grow(&t.s, bin, class_named(&t, "mem"), v, v->wants));
    EXPECT_STR(type_at(&t, bin), "memory");
    EXPECT_EQ(t.s.price, milli_usd(120));
    EXPECT_EQ(t.s.pools[0].limits[0], 4000);
    EXPECT_EQ(t.s.pools[0].nodes, 0);
    placed(&t, bin, "mem", 1);
    launch_dissolve(&t.s, bin);
    expect_state(&t, &before);
}

TEST(a_launch_does_not_grow_for_a_pod_that_it_cannot_have)
{
    STATED t = { 0 };
    AUTO_BUF before = { 0 };
    stated_load(&t,
                POOL WORLD_POOL("tainted", "[]", "      taints: [{key: t, effect: NoSchedule}]\n")
                    WORLD_POD("w", "{app: w}", "{cpu: 1}", "  tolerations: [{key: t}]\n")
                        WORLD_POD("lone", "{}", "{cpu: 2}", AWAY(HOST, "w"))
                            WORLD_POD("big", "{}", "{cpu: 9}", "")
                                WORLD_POD("arm", "{}", "{cpu: 3}",
                                          "  nodeSelector: {kubernetes.io/arch: arm64}\n"),
                NULL);
    static const struct {
        const char *pool, *pod;
        bool grows;
    } cases[] = {
        { "p", "lone", false },
        { "p", "big", false },
        { "p", "arm", true },
        { "tainted", "arm", false },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        uint32_t bin = opened(&t, cases[i].pool, "small");
        placed(&t, bin, "w", 1);
        const struct variant *v = variant_named(&t, cases[i].pod);
        buf_clear(&before);
        text_of_state(&t.s, &before);
        EXPECT_EQ(launch_grow(&t.s, bin, class_named(&t, cases[i].pod), v, v->wants),
                  cases[i].grows);
        if (cases[i].grows)
            EXPECT_STR(type_at(&t, bin), "arm");
        else
            expect_state(&t, &before);
        launch_dissolve(&t.s, bin);
    }
}

/* --- where a launch will be --- */

/* "zone-a zone-b": where a node on the launch's terms could be. */
static const char *zones_of(struct stated *t, uint32_t bin)
{
    AUTO_BUF out = { 0 };
    uint32_t key = key_named(t, ZONE);
    const struct topology_key *k = &t->modelled.m.keys[key];
    struct bitset set = bitset_new(&t->modelled.arena, k->domain_count);
    launch_domains(&t->s, t->s.bins.items[bin].terms, key, &set);
    bitset_each(&set, d)
        buf_addf(&out, "%s%.*s", out.len ? " " : "", STR_ARG(k->domains[d]));
    return arena_str(&t->modelled.arena, buf_str(&out)).p;
}

TEST(a_launch_can_be_where_its_terms_have_an_offering)
{
    STATED t = { 0 };
    stated_load(&t,
                POOL WORLD_POOL("gpu",
                                "[{key: node.kubernetes.io/instance-type, operator: In, values: "
                                "[gpu]}]",
                                "")
                    WORLD_POD("w", "{app: w}", "{cpu: 1}", SPREADS(SPREAD(ZONE, "1", "w")))
                        WORLD_POD("bc", "{}", "{cpu: 1}",
                                  "  affinity: {nodeAffinity: "
                                  "{requiredDuringSchedulingIgnoredDuringExecution: "
                                  "{nodeSelectorTerms: [{matchExpressions: [{key: " ZONE
                                  ", operator: NotIn, values: [zone-a]}]}]}}}\n"),
                NULL);
    uint32_t bin = opened(&t, "p", "small"), gpu = opened(&t, "gpu", "gpu");
    EXPECT_Z(zones_of(&t, bin), "zone-a zone-b zone-c");
    t.s.premium = USD_HOUR_ONE;
    placed(&t, bin, "bc", 1);
    EXPECT_Z(zones_of(&t, bin), "zone-b zone-c");
    EXPECT_Z(zones_of(&t, gpu), "zone-a"); /* it is offered nowhere else */
    EXPECT_EQ(t.s.bins.items[gpu].domains[key_named(&t, ZONE)], domain_named(&t, ZONE, "zone-a"));
}

TEST(a_launch_asks_no_more_than_the_pods_that_are_still_in_it)
{
    STATED t = { 0 };
    stated_load(&t,
                POOL WORLD_POD("w", "{app: w}", "{cpu: 1}", SPREADS(SPREAD(ZONE, "1", "w")))
                    WORLD_POD("firm", "{}", "{cpu: 1}",
                              "  nodeSelector: {karpenter.sh/capacity-type: on-demand, " ZONE
                              ": zone-b}\n"),
                NULL);
    uint32_t bin = opened(&t, "p", "small"), zone = key_named(&t, ZONE);
    AUTO_BUF before = { 0 };
    placed(&t, bin, "w", 1);
    text_of_state(&t.s, &before);
    t.s.premium = USD_HOUR_ONE;
    placed(&t, bin, "firm", 1);
    EXPECT_EQ(t.s.price, milli_usd(100));
    state_take(&t.s, bin, 1, 1);
    EXPECT_EQ(t.s.price, milli_usd(100));
    launch_rejoin(&t.s, bin);
    EXPECT_EQ(t.s.bins.items[bin].domains[zone], NONE);
    expect_state(&t, &before);
}

TEST(a_launch_that_is_pinned_is_there_and_costs_what_it_costs_there)
{
    STATED t = { 0 };
    stated_load(&t, POOL WORLD_POD("w", "{app: w}", "{cpu: 1}", SPREADS(SPREAD(ZONE, "1", "w"))),
                NULL);
    uint32_t bin = opened(&t, "p", "small"), gpu = opened(&t, "p", "gpu");
    uint32_t zone = key_named(&t, ZONE), gpu_terms = t.s.bins.items[gpu].terms;
    launch_pin(&t.s, bin, STR(ZONE), STR("zone-c"));
    EXPECT_EQ(t.s.bins.items[bin].domains[zone], domain_named(&t, ZONE, "zone-c"));
    EXPECT_EQ(t.s.bins.items[bin].price, milli_usd(42));
    EXPECT_EQ(t.s.price, milli_usd(1042));
    launch_pin(&t.s, gpu, STR(ZONE), STR("zone-c")); /* it cannot be there */
    EXPECT_EQ(t.s.bins.items[gpu].terms, gpu_terms);
    EXPECT_EQ(t.s.price, milli_usd(1042));
}

/* --- reservations --- */

#define TYPES_RESERVED                                                                                                    \
    "instanceTypes:\n" WORLD_TYPE(                                                                                        \
        "one", "amd64",                                                                                                   \
        "cpu: 4, memory: 8Gi, pods: 40") "  offerings:\n"                                                                 \
                                         "  - {zone: zone-a, capacityType: on-demand, price: 0.2}\n"                      \
                                         "  - {zone: zone-a, capacityType: reserved, price: 0.001, reservationId: cr-1, " \
                                         "reservationCapacity: 2}\n"

TEST(launches_that_stay_take_reservations_while_there_are_any_and_give_them_back)
{
    STATED t = { 0 };
    AUTO_BUF before = { 0 };
    stated_load(&t, POOL WORLD_POD("w", "{}", "{cpu: 1}", ""), TYPES_RESERVED);
    text_of_state(&t.s, &before);
    uint32_t bins[3];
    for (uint32_t i = 0; i < 3; i++) {
        bins[i] = opened(&t, "p", "one");
        EXPECT_EQ(t.s.bins.items[bins[i]].price, i < 2 ? milli_usd(1) : milli_usd(200));
        placed(&t, bins[i], "w", 1);
        launch_settle(&t.s, bins[i]);
        EXPECT_EQ(t.s.bins.items[bins[i]].reserved != NONE, i < 2);
    }
    EXPECT_EQ(t.s.price, milli_usd(202));
    placed(&t, bins[0], "w", 1); /* what has a place keeps its price */
    EXPECT_EQ(t.s.price, milli_usd(202));
    launch_dissolve(&t.s, bins[1]);
    EXPECT_EQ(t.s.price, milli_usd(201));
    EXPECT_EQ(t.s.bins.items[opened(&t, "p", "one")].price, milli_usd(1));
    launch_dissolve(&t.s, bins[1]);
    launch_dissolve(&t.s, bins[2]);
    launch_dissolve(&t.s, bins[0]);
    expect_state(&t, &before);
}

TEST(a_launch_that_does_not_stay_takes_no_reservation)
{
    STATED t = { 0 };
    AUTO_BUF before = { 0 };
    stated_load(&t, POOL WORLD_POD("w", "{}", "{cpu: 1}", ""), TYPES_RESERVED);
    text_of_state(&t.s, &before);
    for (uint32_t i = 0; i < 5; i++) {
        uint32_t bin = opened(&t, "p", "one");
        EXPECT_EQ(t.s.bins.items[bin].price, milli_usd(1));
        launch_dissolve(&t.s, bin);
    }
    expect_state(&t, &before);
}

TEST(a_new_state_has_all_reservations_again)
{
    STATED t = { 0 };
    struct state other;
    stated_load(&t, POOL WORLD_POD("w", "{}", "{cpu: 1}", ""), TYPES_RESERVED);
    for (uint32_t i = 0; i < 2; i++)
        launch_settle(&t.s, opened(&t, "p", "one"));
    state_init(&other, &t.modelled.m, &t.modelled.arena);
    uint32_t bin = state_open(&other, 0, 0, t.modelled.m.pools[0].terms);
    EXPECT_EQ(other.bins.items[bin].price, milli_usd(1));
    state_done(&other);
}

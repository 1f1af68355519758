/* Pods onto what is there, and domains for the rest: which zones are chosen, and that a choice can be
 * taken back.
 */
#include "sched/domains.h"
#include "sched/property_testing.h"
#include "sched/state_recount_testing.h"

#define CAPACITY "karpenter.sh/capacity-type"
#define POOL WORLD_POOL("p", "[]", "")
#define POOL_IN(name, zones, more)                                                                 \
    WORLD_POOL(name, "[{key: " ZONE ", operator: In, values: [" zones "]}]", more)
#define NODE(name, zone) WORLD_NODE(name, zone, "", "cpu: 4, memory: 8Gi")
#define BOUND(name, labels, node) WORLD_POD(name, labels, "{}", "  nodeName: " node "\n")

#define IN_ZONE(zone) "  nodeSelector: {" ZONE ": " zone "}\n"

struct placing {
    struct stated t;
    struct items items;
};

static void placing_done(struct placing *p)
{
    vec_done(&p->items.list);
    stated_done(&p->t);
}
#define PLACING __attribute__((cleanup(placing_done))) struct placing

/* Of `count` pods of that kind; how many it could do nothing with. */
static uint32_t place(struct placing *p, const char *pod, uint32_t count)
{
    return domains_place(&p->t.s, class_named(&p->t, pod), 0, count, &p->items);
}

/* "zone-a 2, zone-b 1": what pods of that kind are to be launched for, by the value of a key. Of all
 * values: "any". */
static const char *launching_by(struct placing *p, const char *pod, const char *key)
{
    AUTO_BUF out = { 0 };
    vec_each(&p->items.list, struct item, item) {
        if (item->class_ != class_named(&p->t, pod))
            continue;
        const struct wants *wants = wants_at(p->t.s.model, item->wants);
        const struct requirement *r = requirements_find(&wants->set, str_of(key));
        buf_addf(&out, "%s%.*s %u", out.len ? ", " : "",
                 STR_ARG(r ? r->values.items[0] : STR("any")), item->count);
    }
    return arena_str(&p->t.modelled.arena, buf_str(&out)).p;
}

static const char *launching(struct placing *p, const char *pod)
{
    return launching_by(p, pod, ZONE);
}

static uint32_t at_home(const struct placing *p, const char *home)
{
    uint32_t count = 0;
    vec_each(&p->t.s.bins.items[home_named(&p->t, home)].placements, struct placement, at)
        count += at->count;
    return count;
}

/* --- pods without wider terms --- */

TEST(pods_go_onto_what_is_there_and_the_rest_is_launched_for_as_one)
{
    PLACING p = { 0 };
    stated_load(&p.t,
                POOL NODE("a", "zone-a") NODE("b", "zone-b") WORLD_POD("w", "{}", "{cpu: 3}", ""),
                NULL);
    EXPECT_EQ(place(&p, "w", 7), 0);
    EXPECT_EQ(at_home(&p, "a") + at_home(&p, "b"), 2);
    EXPECT_EQ(p.items.list.count, 1);
    EXPECT_EQ(p.items.list.items[0].count, 5);
    EXPECT_EQ(p.items.list.items[0].wants, variant_named(&p.t, "w")->wants);
    EXPECT_EQ(p.t.s.choices.count, 0);
}

TEST(pods_that_nothing_can_take_are_handed_back)
{
    PLACING p = { 0 };
    stated_load(&p.t,
                POOL NODE("a", "zone-a") WORLD_POD("big", "{}", "{cpu: 9}", "")
                    WORLD_POD("w", "{}", "{cpu: 3}", IN_ZONE("zone-x")),
                NULL);
    EXPECT_EQ(place(&p, "big", 3), 3);
    EXPECT_EQ(place(&p, "w", 2), 2);
    EXPECT_EQ(p.items.list.count, 0);
    EXPECT_EQ(at_home(&p, "a"), 0);
}

TEST(open_launches_are_there_too)
{
    PLACING p = { 0 };
    stated_load(&p.t, POOL WORLD_POD("w", "{}", "{cpu: 1}", ""), NULL);
    uint32_t bin = opened(&p.t, "p", "small");
    EXPECT_EQ(place(&p, "w", 3), 0);
    EXPECT_EQ(p.t.s.bins.items[bin].free[RESOURCE_CPU], 0);
    EXPECT_Z(launching(&p, "w"), "any 1");
}

/* --- spreads --- */

TEST(each_pod_of_a_spread_goes_to_the_emptiest_zone_and_to_the_cheapest_of_those)
{
    static const struct {
        uint32_t pods;
        const char *zones;
    } cases[] = {
        { 1, "zone-a 1" }, /* spot is cheapest there */
        { 2, "zone-a 1, zone-b 1" },
        { 3, "zone-a 1, zone-b 1, zone-c 1" },
        { 7, "zone-a 3, zone-b 2, zone-c 2" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        PLACING p = { 0 };
        stated_load(&p.t,
                    POOL WORLD_POD("w", "{app: w}", "{cpu: 1}", SPREADS(SPREAD(ZONE, "1", "w"))),
                    NULL);
        EXPECT_EQ(place(&p, "w", cases[i].pods), 0);
        EXPECT_Z(launching(&p, "w"), cases[i].zones);
        EXPECT_EQ(p.t.s.choices.count, cases[i].pods);
    }
}

TEST(a_spread_counts_the_pods_that_are_there)
{
    PLACING p = { 0 };
    stated_load(&p.t,
                POOL NODE("a", "zone-a") BOUND("x", "{app: w}", "a") BOUND("z", "{app: w}", "a")
                    WORLD_POD("w", "{app: w}", "{cpu: 5}", SPREADS(SPREAD(ZONE, "2", "w"))),
                NULL);
    EXPECT_EQ(place(&p, "w", 4), 0);
    EXPECT_Z(launching(&p, "w"), "zone-b 2, zone-c 2");
}

TEST(what_is_there_is_used_where_the_skew_allows_it_and_not_beyond)
{
    PLACING p = { 0 };
    stated_load(&p.t,
                POOL NODE("c", "zone-c")
                    WORLD_POD("w", "{app: w}", "{cpu: 1}", SPREADS(SPREAD(ZONE, "1", "w"))),
                NULL);
    EXPECT_EQ(place(&p, "w", 5), 0);
    EXPECT_EQ(at_home(&p, "c"), 2); /* the first, and the fourth */
    EXPECT_Z(launching(&p, "w"), "zone-a 2, zone-b 1");
}

TEST(a_heavier_pool_comes_before_an_emptier_zone_and_that_before_a_lower_price)
{
    PLACING p = { 0 };
    stated_load(&p.t,
                POOL_IN("heavy", "zone-c", "  weight: 9\n")
                    POOL WORLD_POD("w", "{app: w}", "{cpu: 1}", SPREADS(SPREAD(ZONE, "2", "w"))),
                NULL);
    EXPECT_EQ(place(&p, "w", 1), 0);
    EXPECT_Z(launching(&p, "w"), "zone-c 1"); /* the dearest */
    EXPECT_EQ(place(&p, "w", 1), 0);
    EXPECT_EQ(p.t.s.groups[0].matched[domain_named(&p.t, ZONE, "zone-c")], 2);
    vec_clear(&p.items.list);
    EXPECT_EQ(place(&p, "w", 2), 0); /* three there would be too many */
    EXPECT_Z(launching(&p, "w"), "zone-a 1, zone-b 1");
}

TEST(a_zone_that_pods_cannot_be_launched_in_holds_nobody_back_unless_pods_could_be_there)
{
    PLACING p = { 0 };
    stated_load(&p.t,
                POOL_IN("p", "zone-a, zone-b", "")
                    WORLD_POD("w", "{app: w}", "{cpu: 1}", SPREADS(SPREAD(ZONE, "1", "w"))),
                NULL);
    EXPECT_EQ(place(&p, "w", 6), 0);
    EXPECT_Z(launching(&p, "w"), "zone-a 3, zone-b 3");
    PLACING full = { 0 };
    stated_load(&full.t,
                POOL_IN("p", "zone-a, zone-b", "") NODE("c", "zone-c")
                    WORLD_POD("w", "{app: w}", "{cpu: 5}", SPREADS(SPREAD(ZONE, "1", "w"))),
                NULL);
    EXPECT_EQ(place(&full, "w", 6), 4); /* a node is there, and stays empty */
    EXPECT_Z(launching(&full, "w"), "zone-a 1, zone-b 1");
}

TEST(of_zones_that_are_equally_empty_the_cheapest_is_chosen_wherever_it_is_in_the_alphabet)
{
    PLACING p = { 0 };
    stated_load(&p.t, POOL WORLD_POD("w", "{app: w}", "{cpu: 1}", SPREADS(SPREAD(ZONE, "1", "w"))),
                "instanceTypes:\n" WORLD_TYPE("one", "amd64", "cpu: 4, memory: 8Gi, pods: 40")
                    WORLD_OFFERINGS("0.3", "0.2", "0.1", "0.15"));
    EXPECT_EQ(place(&p, "w", 1), 0);
    EXPECT_Z(launching(&p, "w"), "zone-b 1");
    EXPECT_EQ(place(&p, "w", 1), 0);
    EXPECT_Z(launching(&p, "w"), "zone-b 1, zone-c 1");
}

TEST(a_zone_that_others_were_launched_in_counts_even_for_pods_that_cannot_be)
{
    PLACING p = { 0 };
    stated_load(&p.t,
                POOL_IN("p", "zone-a, zone-b", "")
                    POOL_IN("tainted", "zone-c", "      taints: [{key: t, effect: NoSchedule}]\n")
                        WORLD_POD("w", "{app: w}", "{cpu: 1}", SPREADS(SPREAD(ZONE, "1", "w"))),
                NULL);
    EXPECT_EQ(place(&p, "w", 2), 0);
    vec_each(&p.items.list, struct item, item)
        domains_undo(&p.t.s, item, item->count);
    vec_clear(&p.items.list);
    opened(&p.t, "tainted", "small"); /* a node in zone-c, without any of them */
    EXPECT_EQ(place(&p, "w", 6), 4);
    EXPECT_Z(launching(&p, "w"), "zone-a 1, zone-b 1");
}

TEST(while_there_are_fewer_zones_than_min_domains_each_takes_max_skew)
{
    static const struct {
        const char *min_domains;
        uint32_t left; /* of 6 pods in two zones, with a skew of 2 */
    } cases[] = { { "", 0 }, { "minDomains: 2, ", 0 }, { "minDomains: 3, ", 2 } };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        PLACING p = { 0 };
        AUTO_BUF yaml = { 0 };
        buf_addf(&yaml,
                 POOL_IN("p", "zone-a, zone-b", "") WORLD_POD(
                     "w", "{app: w}", "{cpu: 1}", SPREADS(SPREAD_AND(ZONE, "2", "w", "%s"))),
                 cases[i].min_domains);
        stated_load(&p.t, yaml.p, NULL);
        EXPECT_EQ(place(&p, "w", 6), cases[i].left);
    }
}

TEST(a_pod_with_two_keys_gets_a_domain_of_each)
{
    PLACING p = { 0 };
    stated_load(&p.t,
                POOL WORLD_POD("w", "{app: w}", "{cpu: 1}",
                               SPREADS(SPREAD(ZONE, "1", "w") ", " SPREAD(CAPACITY, "1", "w"))),
                NULL);
    EXPECT_EQ(place(&p, "w", 6), 0);
    uint32_t zones[3] = { 0 }, spot = 0;
    vec_each(&p.items.list, struct item, item) {
        const struct requirements *set = &wants_at(p.t.s.model, item->wants)->set;
        zones[requirements_find(set, STR(ZONE))->values.items[0].p[5] - 'a'] += item->count;
        if (str_eqz(requirements_find(set, STR(CAPACITY))->values.items[0], "spot"))
            spot += item->count;
    }
    EXPECT_EQ(spot, 3);
    for (uint32_t i = 0; i < 3; i++)
        EXPECT_EQ(zones[i], 2);
}

TEST(a_node_without_the_label_is_no_place_for_a_spread_but_for_pods_that_avoid_others)
{
    PLACING p = { 0 };
    stated_load(&p.t,
                "---\napiVersion: v1\nkind: Node\nmetadata: {name: bare, labels: "
                "{" HOST ": bare, karpenter.sh/registered: 'true', karpenter.sh/initialized: "
                "'true'}}\nspec: {providerID: 'test:///bare'}\nstatus: {capacity: {cpu: 8, pods: "
                "9}, allocatable: {cpu: 8, pods: 9}, conditions: [{type: Ready, status: 'True', "
                "reason: R, message: m, lastTransitionTime: '2026-01-02T03:04:05Z'}]}\n" WORLD_POD(
                    "w", "{app: w}", "{cpu: 1}", SPREADS(SPREAD(ZONE, "1", "w")))
                    WORLD_POD("near", "{app: near}", "{cpu: 1}", NEAR(ZONE, "near"))
                        WORLD_POD("lone", "{app: l}", "{cpu: 1}", AWAY(ZONE, "l")),
                NULL);
    EXPECT_EQ(place(&p, "w", 2), 2);
    EXPECT_EQ(place(&p, "near", 2), 2);
    EXPECT_EQ(place(&p, "lone", 2), 0); /* where there is no zone, nobody shares it */
}

/* --- affinity --- */

TEST(pods_that_want_their_like_share_the_zone_of_the_first)
{
    PLACING p = { 0 };
    stated_load(&p.t, POOL WORLD_POD("w", "{app: w}", "{cpu: 1}", NEAR(ZONE, "w")), NULL);
    EXPECT_EQ(place(&p, "w", 5), 0);
    EXPECT_Z(launching(&p, "w"), "zone-a 5");
}

TEST(pods_go_to_the_zone_of_those_that_they_want_to_be_near)
{
    PLACING p = { 0 };
    stated_load(&p.t,
                POOL NODE("c", "zone-c") BOUND("x", "{app: db}", "c")
                    WORLD_POD("fan", "{app: f}", "{cpu: 5}", NEAR(ZONE, "db"))
                        WORLD_POD("lost", "{app: l}", "{cpu: 5}", NEAR(ZONE, "nobody"))
                            WORLD_POD("self", "{app: db}", "{cpu: 5}", NEAR(ZONE, "db")),
                NULL);
    EXPECT_EQ(place(&p, "fan", 2), 0);
    EXPECT_Z(launching(&p, "fan"), "zone-c 2");
    EXPECT_EQ(place(&p, "lost", 2), 2);
    EXPECT_EQ(place(&p, "self", 1), 0);
    EXPECT_Z(launching(&p, "self"), "zone-c 1"); /* it is not the first */
}

TEST(pods_find_those_that_were_chosen_for_a_moment_ago)
{
    PLACING p = { 0 };
    stated_load(&p.t,
                POOL WORLD_POD("db", "{app: db}", "{cpu: 1}", IN_ZONE("zone-b"))
                    WORLD_POD("fan", "{app: f}", "{cpu: 1}", NEAR(ZONE, "db")),
                NULL);
    EXPECT_EQ(place(&p, "fan", 1), 1); /* too early */
    EXPECT_EQ(place(&p, "db", 1), 0);
    EXPECT_EQ(place(&p, "fan", 2), 0);
    EXPECT_Z(launching(&p, "fan"), "zone-b 2");
}

TEST(pods_that_avoid_each_other_have_a_zone_each_while_there_are_any)
{
    PLACING p = { 0 };
    stated_load(&p.t, POOL WORLD_POD("w", "{app: w}", "{cpu: 1}", AWAY(ZONE, "w")), NULL);
    EXPECT_EQ(place(&p, "w", 5), 2);
    EXPECT_Z(launching(&p, "w"), "zone-a 1, zone-b 1, zone-c 1");
}

TEST(zones_of_pods_that_others_avoid_are_chosen_too_and_kept_apart)
{
    static const char *const firsts[] = { "w", "lone" };
    for (size_t i = 0; i < KV_COUNT_OF(firsts); i++) {
        PLACING p = { 0 };
        stated_load(&p.t,
                    POOL_IN("p", "zone-a, zone-b", "") WORLD_POD("w", "{app: w}", "{cpu: 1}", "")
                        WORLD_POD("lone", "{app: l}", "{cpu: 1}", AWAY(ZONE, "w")),
                    NULL);
        EXPECT_EQ(place(&p, firsts[i], 3), 0);
        EXPECT_Z(launching(&p, firsts[i]), "zone-a 3");
        EXPECT_EQ(place(&p, firsts[1 - i], 3), 0);
        EXPECT_Z(launching(&p, firsts[1 - i]), "zone-b 3");
    }
}

/* --- what can be launched --- */

TEST(the_outlook_is_the_first_tier_that_can_take_a_pod_and_its_least_price)
{
    STATED t = { 0 };
    stated_load(
        &t,
        WORLD_POOL("heavy",
                   "[{key: node.kubernetes.io/instance-type, operator: In, values: [small]}]",
                   "  weight: 9\n  limits: {cpu: 4}\n") POOL WORLD_POD("w", "{}", "{cpu: 1}", "")
            WORLD_POD("big", "{}", "{cpu: 3}", "") WORLD_POD("huge", "{}", "{cpu: 9}", "")
                WORLD_POD("firm", "{}", "{cpu: 1}", "  nodeSelector: {" CAPACITY ": on-demand}\n"),
        NULL);
    static const struct {
        const char *pod;
        uint32_t tier;
        int64_t milli_usd;
    } cases[] = { { "w", 0, 40 }, { "big", 1, 64 }, { "firm", 0, 100 } };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        const struct variant *v = variant_named(&t, cases[i].pod);
        struct outlook out = launch_outlook(&t.s, class_named(&t, cases[i].pod), v, v->wants);
        EXPECT_EQ(out.tier, cases[i].tier);
        EXPECT_EQ(out.cheapest, USD_HOUR_ONE * cases[i].milli_usd / 1000);
    }
    const struct variant *huge = variant_named(&t, "huge");
    EXPECT_EQ(launch_outlook(&t.s, class_named(&t, "huge"), huge, huge->wants).tier, NONE);
}

TEST(the_outlook_follows_limits_and_reservations_as_they_are_used)
{
    STATED t = { 0 };
    stated_load(
        &t,
        WORLD_POOL("heavy", "[]", "  weight: 9\n  limits: {cpu: 4}\n")
            POOL WORLD_POD("w", "{}", "{cpu: 1}", "") WORLD_POD("big", "{}", "{cpu: 3}", ""),
        "instanceTypes:\n" WORLD_TYPE(
            "four", "amd64",
            "cpu: 4, memory: 8Gi, pods: 40") "  offerings:\n"
                                             "  - {zone: zone-a, capacityType: on-demand, price: 0.2}\n"
                                             "  - {zone: zone-a, capacityType: reserved, price: 0.001, reservationId: cr-1, "
                                             "reservationCapacity: 1}\n");
    uint32_t w = class_named(&t, "w");
    const struct variant *v = variant_named(&t, "w");
    EXPECT_EQ(launch_outlook(&t.s, w, v, v->wants).tier, 0);
    EXPECT_EQ(launch_outlook(&t.s, w, v, v->wants).cheapest, USD_HOUR_ONE / 1000);
    uint32_t bin = opened(&t, "heavy", "four");
    EXPECT_EQ(launch_outlook(&t.s, w, v, v->wants).tier, 1);
    launch_settle(&t.s, bin);
    EXPECT_EQ(launch_outlook(&t.s, w, v, v->wants).cheapest, USD_HOUR_ONE * 2 / 10);
    launch_dissolve(&t.s, bin);
    EXPECT_EQ(launch_outlook(&t.s, w, v, v->wants).tier, 0);
    EXPECT_EQ(launch_outlook(&t.s, w, v, v->wants).cheapest, USD_HOUR_ONE / 1000);
}

TEST(a_machine_is_possible_if_a_pod_fits_within_limits_beside_the_daemons_ports)
{
    STATED t = { 0 };
    stated_load(
        &t,
        WORLD_POOL("p", "[]", "  limits: {cpu: 4}\n") WORLD_POD(
            "w", "{}", "{cpu: 3}",
            "") "---\napiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: default}\nspec: "
                "{containers: [{name: c, image: i, ports: [{containerPort: 1, hostPort: 80}]}]}\n"
                "---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: d, namespace: "
                "default}\nspec:\n  selector: {matchLabels: {app: d}}\n  template:\n    metadata: "
                "{labels: {app: d}}\n    spec: {nodeSelector: {kubernetes.io/arch: arm64}, "
                "containers: [{name: c, image: i, ports: [{containerPort: 1, hostPort: 80}]}]}\n",
        NULL);
    static const struct {
        const char *pod, *type;
        bool possible;
    } cases[] = {
        { "w", "small", false }, { "w", "medium", true },  { "w", "large", false },
        { "w", "arm", true },    { "web", "small", true }, { "web", "arm", false },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++)
        EXPECT_EQ(machine_possible(&t.s, class_named(&t, cases[i].pod), 0,
                                   machine_named(&t, "p", cases[i].type)),
                  cases[i].possible);
    EXPECT_TRUE(launch_possible_on(&t.s, class_named(&t, "web"), t.modelled.m.pools[0].terms));
    opened(&t, "p", "small");
    EXPECT_FALSE(launch_possible_on(&t.s, class_named(&t, "w"), t.modelled.m.pools[0].terms));
}

TEST(strict_min_values_need_enough_machines_that_a_pod_fits_on)
{
    STATED t = { 0 };
    stated_load(&t,
                WORLD_POOL("p",
                           "[{key: node.kubernetes.io/instance-type, operator: In, values: "
                           "[small, medium, large], minValues: 2}]",
                           "") WORLD_POD("w", "{}", "{cpu: 3}", "")
                    WORLD_POD("big", "{}", "{cpu: 5}", ""),
                NULL);
    uint32_t terms = t.modelled.m.pools[0].terms;
    EXPECT_TRUE(launch_possible_on(&t.s, class_named(&t, "w"), terms));
    EXPECT_FALSE(launch_possible_on(&t.s, class_named(&t, "big"), terms));
    t.modelled.w.options.min_values = MIN_VALUES_BEST_EFFORT;
    stated_again(&t);
    EXPECT_TRUE(launch_possible_on(&t.s, class_named(&t, "big"), t.modelled.m.pools[0].terms));
}

/* --- taking choices back --- */

TEST(a_choice_that_is_taken_back_leaves_its_zone_to_the_next)
{
    PLACING p = { 0 };
    AUTO_BUF before = { 0 }, after = { 0 };
    stated_load(&p.t,
                POOL WORLD_POD("w", "{app: w}", "{cpu: 1}", AWAY(ZONE, "w"))
                    WORLD_POD("s", "{app: s}", "{cpu: 1}", SPREADS(SPREAD(ZONE, "1", "s"))),
                NULL);
    text_of_state(&p.t.s, &before);
    EXPECT_EQ(place(&p, "w", 4), 1);
    EXPECT_EQ(place(&p, "s", 4), 0);
    const struct item last = p.items.list.items[2];
    domains_undo(&p.t.s, &last, 1);
    EXPECT_EQ(place(&p, "w", 2), 1); /* again there is room for one */
    EXPECT_EQ(vec_last(&p.items.list).wants, last.wants);
    domains_undo(&p.t.s, &last, 1);
    p.items.list.count--;
    vec_each(&p.items.list, struct item, item)
        if (item->wants != last.wants || item->class_ != last.class_)
            domains_undo(&p.t.s, item, item->count);
    text_of_state(&p.t.s, &after);
    EXPECT_STR(buf_str(&after), before.p);
    vec_each(&p.t.s.choices, struct choice, choice)
        EXPECT_EQ(choice->class_, NONE);
}

TEST(pods_of_an_item_may_be_taken_back_in_part)
{
    PLACING p = { 0 };
    stated_load(&p.t, POOL WORLD_POD("w", "{app: w}", "{cpu: 1}", NEAR(ZONE, "w")), NULL);
    EXPECT_EQ(place(&p, "w", 5), 0);
    domains_undo(&p.t.s, &p.items.list.items[0], 2);
    EXPECT_EQ(p.t.s.groups[0].total, 3);
    EXPECT_EQ(p.t.s.groups[0].matched[domain_named(&p.t, ZONE, "zone-a")], 3);
    uint32_t kept = 0;
    vec_each(&p.t.s.choices, struct choice, choice)
        kept += choice->class_ != NONE;
    EXPECT_EQ(kept, 3);
    domains_undo(&p.t.s, &p.items.list.items[0], 3);
    EXPECT_EQ(p.t.s.groups[0].total, 0); /* the next is the first again */
}

/* All classes, in two rounds; then everything that is to be launched for is taken back, and what is
 * left must be what the homes say. */
static bool choices_can_be_taken_back(const struct random_world *r, struct buf *why)
{
    PLACING p = { 0 };
    random_world_load(&p.t.modelled.w, r, 1, "");
    stated_again(&p.t);
    const struct model *m = p.t.s.model;
    for (uint32_t round = 0; round < 2; round++)
        for (uint32_t c = 0; c < m->class_count; c++) {
            if (!m->classes[c].variant_count)
                continue;
            uint32_t variant = round ? m->classes[c].variant_count - 1 : 0;
            uint32_t count = m->classes[c].count, before = 0, after = 0;
            size_t first = p.items.list.count;
            for (uint32_t ix = 0; ix < m->home_count; ix++)
                before += (uint32_t)(m->homes[ix].free[RESOURCE_PODS] -
                                     p.t.s.bins.items[ix].free[RESOURCE_PODS]);
            uint32_t left = domains_place(&p.t.s, c, variant, count, &p.items);
            for (uint32_t ix = 0; ix < m->home_count; ix++)
                after += (uint32_t)(m->homes[ix].free[RESOURCE_PODS] -
                                    p.t.s.bins.items[ix].free[RESOURCE_PODS]);
            uint32_t done = (after - before) / 1000 + left;
            for (size_t i = first; i < p.items.list.count; i++) {
                const struct item *item = &p.items.list.items[i];
                const struct variant *v = &m->classes[c].variants[variant];
                done += item->count;
                if (launch_outlook(&p.t.s, c, v, item->wants).tier == NONE)
                    buf_addf(why, "class %u is to be launched for, which cannot be\n", c);
            }
            differ(why, "pods of a class", NONE, done, count);
        }
    vec_each(&p.items.list, struct item, item)
        domains_undo(&p.t.s, item, item->count);
    return recounted(&p.t.s, why);
}

TEST(every_choice_can_be_taken_back_in_any_world)
{
    property_check("taking back", false, 150, choices_can_be_taken_back);
}

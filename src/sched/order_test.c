/* The order in which placed pods may come: the order that seating_order finds is replayed by the
 * checker, and what no order lets in is dropped.
 */
#include "sched/finish.h"
#include "sched/state_testing.h"

#define POOL WORLD_POOL("p", "[]", "")
#define NODE(name, zone) WORLD_NODE(name, zone, "", "cpu: 4, memory: 8Gi")

/* --- by hand: pods in their places, in the order in which they are named --- */

struct seated {
    struct stated t;
    struct arena scratch;
    VEC(struct seat) seats;
    struct seating seating;
};

static void seated_done(struct seated *g)
{
    vec_done(&g->seats);
    arena_done(&g->scratch);
    stated_done(&g->t);
}
#define SEATED __attribute__((cleanup(seated_done))) struct seated

/* On a home of that name. */
static void seat(struct seated *g, const char *pod, const char *home)
{
    uint32_t class_ = class_named(&g->t, pod), bin = home_named(&g->t, home);
    const struct variant *v = variant_named(&g->t, pod);
    state_place(&g->t.s, bin, class_, 0, v->wants, 1);
    vec_push(&g->seats, (struct seat){ .pod = world_pod_ix(&g->t.modelled.w, pod),
                                       .bin = bin,
                                       .class_ = class_,
                                       .wants = v->wants });
}

/* "a b -c": pods in their order, then those that were dropped. */
static const char *ordered(struct seated *g)
{
    AUTO_BUF out = { 0 };
    const struct pod *const *pods = g->t.modelled.w.snap.pods;
    g->seating = (struct seating){ .seats = g->seats.items, .count = (uint32_t)g->seats.count };
    seating_order(&g->t.s, &g->seating, &g->scratch);
    for (uint32_t i = 0; i < g->seating.order_count; i++)
        buf_addf(&out, "%s%.*s", i ? " " : "",
                 STR_ARG(pods[g->seats.items[g->seating.order[i]].pod]->object.meta.name));
    vec_each(&g->seats, struct seat, s)
        if (s->dropped)
            buf_addf(&out, "%s-%.*s", out.len ? " " : "", STR_ARG(pods[s->pod]->object.meta.name));
    return arena_str(&g->scratch, buf_str(&out)).p;
}

TEST(pods_without_terms_come_after_those_that_have_some)
{
    SEATED g = { 0 };
    stated_load(&g.t,
                NODE("a", "zone-a") WORLD_POD("free", "{app: w}", "{cpu: 1}", "")
                    WORLD_POD("spread", "{app: w}", "{cpu: 1}", SPREADS(SPREAD(HOST, "1", "w"))),
                NULL);
    seat(&g, "free", "a");
    seat(&g, "spread", "a");
    EXPECT_Z(ordered(&g), "spread free"); /* the other way round there would be two */
}

TEST(pods_come_after_those_that_they_want_to_be_near)
{
    SEATED g = { 0 };
    stated_load(&g.t,
                NODE("a", "zone-a") WORLD_POD("third", "{app: c}", "{cpu: 1}", NEAR(HOST, "b"))
                    WORLD_POD("second", "{app: b}", "{cpu: 1}", NEAR(HOST, "a"))
                        WORLD_POD("first", "{app: a}", "{cpu: 1}", ""),
                NULL);
    seat(&g, "third", "a");
    seat(&g, "second", "a");
    seat(&g, "first", "a");
    EXPECT_Z(ordered(&g), "first second third");
}

TEST(a_pod_that_wants_its_like_comes_first_and_needs_nobody)
{
    SEATED g = { 0 };
    stated_load(&g.t,
                NODE("a", "zone-a") NODE("b", "zone-b")
                    WORLD_POD("fan", "{app: f}", "{cpu: 1}", NEAR(HOST, "self"))
                        WORLD_POD("self", "{app: self}", "{cpu: 1}", NEAR(HOST, "self")),
                NULL);
    seat(&g, "fan", "a");
    seat(&g, "self", "a");
    EXPECT_Z(ordered(&g), "self fan");
}

TEST(a_pod_waits_until_other_zones_have_filled_up)
{
    SEATED g = { 0 };
    stated_load(&g.t,
                NODE("a", "zone-a") NODE("b", "zone-b")
                    WORLD_POD("one", "{app: w}", "{cpu: 1}", SPREADS(SPREAD(ZONE, "1", "w")))
                        WORLD_POD("two", "{app: w}", "{cpu: 1, memory: 1Gi}",
                                  SPREADS(SPREAD(ZONE, "1", "w")))
                            WORLD_POD("three", "{app: w}", "{cpu: 1, memory: 2Gi}",
                                      SPREADS(SPREAD(ZONE, "1", "w"))),
                NULL);
    seat(&g, "one", "a");
    seat(&g, "two", "a");
    seat(&g, "three", "b");
    const char *order = ordered(&g);
    EXPECT_EQ(g.seating.order_count, 3);
    EXPECT_TRUE(str_starts(str_of(order), STR("one three two")) ||
                str_starts(str_of(order), STR("two three one")) ||
                str_starts(str_of(order), STR("three one two")) ||
                str_starts(str_of(order), STR("three two one")));
}

TEST(a_pod_that_nothing_lets_in_is_dropped_and_the_others_stay)
{
    SEATED g = { 0 };
    stated_load(&g.t,
                NODE("a", "zone-a") NODE("b", "zone-b")
                    WORLD_POD("lost", "{app: l}", "{cpu: 1}", NEAR(HOST, "nobody"))
                        WORLD_POD("apart", "{app: x}", "{cpu: 1}", NEAR(HOST, "w"))
                            WORLD_POD("w", "{app: w}", "{cpu: 1}", ""),
                NULL);
    seat(&g, "lost", "a");
    seat(&g, "apart", "a"); /* w is on another host */
    seat(&g, "w", "b");
    EXPECT_Z(ordered(&g), "w -lost -apart");
}

TEST(pods_whose_balance_rested_on_one_that_is_missing_are_dropped)
{
    SEATED g = { 0 };
    stated_load(&g.t,
                NODE("a", "zone-a") NODE("b", "zone-b")
                    WORLD_POD("one", "{app: w}", "{cpu: 1}", SPREADS(SPREAD(ZONE, "1", "w")))
                        WORLD_POD("two", "{app: w}", "{cpu: 1}", SPREADS(SPREAD(ZONE, "1", "w")))
                            WORLD_POD("fan", "{app: f}", "{cpu: 1}", NEAR(ZONE, "w")),
                NULL);
    seat(&g, "one", "a");
    seat(&g, "two", "a"); /* zone-b has nobody */
    seat(&g, "fan", "a");
    EXPECT_Z(ordered(&g), "one fan -two");
}

TEST(pods_that_are_there_already_count)
{
    SEATED g = { 0 };
    stated_load(&g.t,
                NODE("a", "zone-a") NODE("b", "zone-b")
                    WORLD_POD("x", "{app: w}", "{}", "  nodeName: b\n")
                        WORLD_POD("one", "{app: w}", "{cpu: 1}", SPREADS(SPREAD(ZONE, "1", "w")))
                            WORLD_POD("fan", "{app: f}", "{cpu: 1}", NEAR(HOST, "w")),
                NULL);
    seat(&g, "fan", "b");
    seat(&g, "one", "b"); /* zone-a has nobody, and b has one */
    EXPECT_Z(ordered(&g), "fan -one");
}

TEST(preferences_are_ours_and_drop_nobody)
{
    SEATED g = { 0 };
    stated_load(&g.t,
                NODE("a", "zone-a") WORLD_POD(
                    "w", "{app: w}", "{cpu: 1}",
                    "  affinity: {podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: "
                    "[{weight: 1, podAffinityTerm: {topologyKey: " HOST
                    ", labelSelector: {matchLabels: {app: nobody}}}}]}}\n"),
                NULL);
    seat(&g, "w", "a");
    EXPECT_Z(ordered(&g), "w");
}

TEST(pods_in_no_bin_and_pods_that_no_order_lets_in_are_unplaced)
{
    SEATED g = { 0 };
    stated_load(&g.t,
                NODE("a", "zone-a") WORLD_POD("w", "{app: w}", "{cpu: 1}", "")
                    WORLD_POD("w-2", "{app: w}", "{cpu: 1}", "")
                        WORLD_POD("lost", "{app: l}", "{cpu: 1}", NEAR(HOST, "nobody")),
                NULL);
    uint32_t unplaced[2] = { 0 };
    seat(&g, "w", "a");
    seat(&g, "lost", "a");
    EXPECT_EQ(g.t.modelled.m.class_count, 2);
    count_unplaced(&g.t.s, unplaced);
    EXPECT_EQ(unplaced[class_named(&g.t, "w")], 1);
    EXPECT_EQ(unplaced[class_named(&g.t, "lost")], 1);
}

/* --- small worlds, all of them: the checker replays the order --- */

static const char *const terms[] = {
    "",
    SPREADS(SPREAD(HOST, "1", "a")),
    SPREADS(SPREAD(ZONE, "1", "a")),
    NEAR(HOST, "a"),
    NEAR(ZONE, "a"),
    AWAY(HOST, "a"),
    AWAY(ZONE, "a"),
    SPREADS(SPREAD(HOST, "1", "b")),
    SPREADS(SPREAD(ZONE, "1", "b")),
    NEAR(HOST, "b"),
    NEAR(ZONE, "b"),
    AWAY(HOST, "b"),
    AWAY(ZONE, "b"),
};

/* Pods of app a with one term and of app b with another; nodes in two zones, one of them with a pod of
 * app a, and launches in three. */
static void expect_legal(const char *a, const char *b)
{
    WORLD w;
    AUTO_BUF yaml = { 0 };
    buf_addf(&yaml,
             POOL NODE("n1", "zone-a") NODE("n2", "zone-b")
                 WORLD_POD("x", "{app: a}", "{cpu: 1}", "  nodeName: n1\n")
                     WORLD_POD("a-0", "{app: a}", "{cpu: 1}", "%s")
                         WORLD_POD("a-1", "{app: a}", "{cpu: 1}", "%s")
                             WORLD_POD("a-2", "{app: a}", "{cpu: 3}", "%s")
                                 WORLD_POD("b-0", "{app: b}", "{cpu: 1}", "%s")
                                     WORLD_POD("b-1", "{app: b}", "{cpu: 1}", "%s")
                                         WORLD_POD("b-2", "{app: b}", "{cpu: 3}", "%s"),
             a, a, a, b, b, b);
    world_load(&w, yaml.p, WORLD_TYPES_SMALL);
    w.options.effort = 20000;
    const struct plan *plan = world_plan(&w);
    uint32_t placed_count = 0;
    for (uint32_t i = 0; i < plan->launch_count; i++)
        placed_count += plan->launches[i].pods.count;
    for (uint32_t i = 0; i < plan->existing_count; i++)
        placed_count += plan->existing[i].pods.count;
    EXPECT_EQ(plan->order.count, placed_count);
    EXPECT_EQ(placed_count + plan->miss_count, 6);
    for (uint32_t i = 0; i < plan->order.count; i++)
        for (uint32_t k = 0; k < i; k++)
            EXPECT_TRUE(plan->order.items[i] != plan->order.items[k]);
}

TEST(orders_are_legal_whatever_two_apps_ask_of_each_other)
{
    for (size_t a = 0; a < KV_COUNT_OF(terms); a++)
        for (size_t b = 0; b < KV_COUNT_OF(terms); b++)
            expect_legal(terms[a], terms[b]);
}

TEST(pods_of_a_plan_come_after_those_that_they_want_to_be_near)
{
    WORLD w;
    world_load(&w,
               POOL WORLD_POD("a-follower", "{app: f}", "{cpu: 1}", NEAR(HOST, "leader"))
                   WORLD_POD("z-leader", "{app: leader}", "{cpu: 1}", ""),
               WORLD_TYPES_SMALL);
    const struct plan *plan = world_plan(&w);
    EXPECT_EQ(plan->order.count, 2);
    EXPECT_EQ(plan->order.items[0], world_pod_ix(&w, "z-leader"));
}

/* Every event that changes what can be launched causes one fetch, by the way it really takes: the
 * timers, marks, reservations and node class inputs of a provider in virtual time. */
#include "cloud/ec2_inputs.h"
#include "cloud/instance_cache_testing.h"

#define SECOND_NS ((int64_t)1000000000)

/* Between any two events the cache answers without fetching. */
static void expect_one_fetch(struct world *w, const struct nodepool *pool,
                             enum generation_member cause)
{
    int fetches = w->fake.fetches;
    uint64_t misses = instance_cache_stats(w->cache).misses_by[cause];
    uint64_t age = ask(w, pool);
    EXPECT_EQ(age, fake_age(&w->fake));
    EXPECT_EQ(w->fake.fetches, fetches + 1);
    EXPECT_EQ(instance_cache_stats(w->cache).misses_by[cause], misses + 1);
    ask(w, pool);
    EXPECT_EQ(w->fake.fetches, fetches + 1);
}

static void expect_no_fetch(struct world *w, const struct nodepool *pool)
{
    int fetches = w->fake.fetches;
    ask(w, pool);
    EXPECT_EQ(w->fake.fetches, fetches);
}

/* Triggers 1 to 4: type info, zone offerings, on-demand and spot prices. */
TEST(triggers_each_source_is_refreshed_every_twelve_hours_and_a_difference_is_one_fetch)
{
    for (int source = 0; source < FAKE_SOURCES; source++) {
        WORLD(w);
        struct nodepool pool = pool_of("p", "c");
        ask(&w, &pool);
        w.fake.sources[source].data = 1; /* the cloud changed; nobody has looked */
        virtual_clock_advance(w.fake.time, REFRESH_INTERVAL_NS - 1);
        refresh_step(w.fake.refresh);
        expect_no_fetch(&w, &pool);
        virtual_clock_advance(w.fake.time, 1);
        refresh_step(w.fake.refresh);
        expect_one_fetch(&w, &pool, (enum generation_member)source);
        virtual_clock_advance(w.fake.time, REFRESH_INTERVAL_NS); /* refreshed, and the same */
        refresh_step(w.fake.refresh);
        expect_no_fetch(&w, &pool);
    }
}

static bool spot_is_available(struct world *w, const struct nodepool *pool)
{
    AUTO_INSTANCE_TYPES types = get(w, pool);
    return bitset_test(&types->available, offering_of(types, "t1", "a", "spot"));
}

/* Triggers 5 and 6. Nothing but the clock moves between the last two. */
TEST(triggers_a_launch_without_capacity_is_one_fetch_and_its_expiry_another)
{
    WORLD(w);
    struct nodepool pool = pool_of("p", "c");
    EXPECT_TRUE(spot_is_available(&w, &pool));
    unavailable_mark(w.fake.marks, STR("t1"), STR("a"), STR("spot"), STR(""));
    expect_one_fetch(&w, &pool, GENERATION_UNAVAILABLE);
    EXPECT_FALSE(spot_is_available(&w, &pool));
    unavailable_mark(w.fake.marks, STR("t1"), STR("a"), STR("spot"), STR(""));
    expect_no_fetch(&w, &pool); /* still not to be had */

    virtual_clock_advance(w.fake.time, UNAVAILABLE_TTL_NS - 1);
    expect_no_fetch(&w, &pool);
    EXPECT_FALSE(spot_is_available(&w, &pool));
    virtual_clock_advance(w.fake.time, 1);
    expect_one_fetch(&w, &pool, GENERATION_UNAVAILABLE);
    EXPECT_TRUE(spot_is_available(&w, &pool));
}

TEST(triggers_an_expiry_reaches_every_class_not_only_the_first_that_asks)
{
    WORLD(w);
    struct nodepool a = pool_of("a", "c1"), b = pool_of("b", "c2");
    ask(&w, &a);
    ask(&w, &b);
    unavailable_mark(w.fake.marks, STR("t1"), STR("a"), STR("spot"), STR(""));
    EXPECT_FALSE(spot_is_available(&w, &a));
    EXPECT_FALSE(spot_is_available(&w, &b));
    virtual_clock_advance(w.fake.time, UNAVAILABLE_TTL_NS);
    EXPECT_TRUE(spot_is_available(&w, &a));
    EXPECT_TRUE(spot_is_available(&w, &b));
}

/* Trigger 7, in all its ways. */
TEST(triggers_a_change_of_reservations_is_one_fetch)
{
    WORLD(w);
    struct nodepool pool = pool_of("p", "c");
    struct reservations *r = w.fake.reservations;
    ask(&w, &pool);
    reservations_class(r, STR("c"), 1); /* the class selects others */
    expect_one_fetch(&w, &pool, GENERATION_RESERVATIONS);
    reservations_class(r, STR("c"), 1);
    expect_no_fetch(&w, &pool);
    reservations_sync(r, STR("cr-1"), 2);
    expect_one_fetch(&w, &pool, GENERATION_RESERVATIONS);
    reservations_launched(r, STR("cr-1"));
    expect_one_fetch(&w, &pool, GENERATION_RESERVATIONS);
    reservations_exhausted(r, STR("cr-1"));
    expect_one_fetch(&w, &pool, GENERATION_RESERVATIONS);
    reservations_terminated(r, STR("cr-1"));
    expect_one_fetch(&w, &pool, GENERATION_RESERVATIONS);
    reservations_sync(r, STR("cr-1"), 1);
    expect_no_fetch(&w, &pool);
    reservations_expire_at(r, STR("cr-1"), 60 * SECOND_NS);
    expect_no_fetch(&w, &pool);
    virtual_clock_advance(w.fake.time, 60 * SECOND_NS); /* the capacity block nears its end */
    expect_one_fetch(&w, &pool, GENERATION_RESERVATIONS);
    virtual_clock_advance(w.fake.time, RESERVATION_TTL_NS); /* and nobody confirms it any more */
    expect_one_fetch(&w, &pool, GENERATION_RESERVATIONS);
}

/* Trigger 8, with the hash that an EC2 provider uses. */
static struct ec2nodeclass edited;

static int class_generation(void *ctx, const struct nodepool *pool, struct generation *out,
                            struct err *err)
{
    if (fake_generation(ctx, pool, out, err) < 0)
        return -1;
    out->member[GENERATION_INPUTS] = ec2_inputs_hash(&(struct ec2_inputs){ .class_ = &edited });
    return 0;
}

TEST(triggers_an_edit_of_the_node_class_is_one_fetch_if_types_depend_on_it)
{
    WORLD(w);
    struct nodepool pool = pool_of("p", "c");
    w.fake.port.get_generation = class_generation;
    edited = (struct ec2nodeclass){ .object.meta = { .name = STR("c"), .uid = STR("u-1") } };
    ask(&w, &pool);
    edited.spec.kubelet = STR("{\"maxPods\":42}");
    expect_one_fetch(&w, &pool, GENERATION_INPUTS);
    edited.spec.role = STR("another");
    expect_no_fetch(&w, &pool);
    edited.object.meta.uid = STR("u-2"); /* deleted and made anew, otherwise the same */
    expect_one_fetch(&w, &pool, GENERATION_INPUTS);
}

TEST(triggers_all_at_once_are_one_fetch)
{
    WORLD(w, .node_overlays = true);
    struct nodepool pool = pool_of("p", "c");
    ask(&w, &pool);
    for (int source = 0; source < FAKE_SOURCES; source++)
        w.fake.sources[source].data = 1;
    unavailable_mark(w.fake.marks, STR("t1"), STR("a"), STR("spot"), STR(""));
    reservations_sync(w.fake.reservations, STR("cr-1"), 2);
    atomic_fetch_add(&w.fake.class_version, 1);
    lab_overlay(&w.lab, "more",
                "{capacity: {example.com/a: '1'}, requirements: [{key: "
                "topology.kubernetes.io/zone, operator: In, values: [a]}]}");
    set_overlays(&w, 1);
    virtual_clock_advance(w.fake.time, REFRESH_INTERVAL_NS);
    refresh_step(w.fake.refresh);
    expect_one_fetch(&w, &pool, GENERATION_TYPES);
    EXPECT_EQ(instance_cache_stats(w.cache).layers_built, 1);
}

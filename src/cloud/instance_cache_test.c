/* What callers of the cache rely on, one thread at a time. */
#include "cloud/instance_cache_testing.h"

#define POOLS 500

/* --- hits --- */

TEST(instance_cache_answers_again_with_the_same_snapshot)
{
    WORLD(w);
    struct nodepool pool = pool_of("p", "c");
    AUTO_INSTANCE_TYPES a = get(&w, &pool);
    AUTO_INSTANCE_TYPES b = get(&w, &pool);
    EXPECT_TRUE(a == b);
    EXPECT_EQ(w.fake.fetches, 1);
    struct instance_cache_stats stats = instance_cache_stats(w.cache);
    EXPECT_EQ(stats.hits, 1);
    EXPECT_EQ(stats.misses, 1);
    EXPECT_EQ(stats.misses_cold, 1);
    EXPECT_EQ(stats.entries, 1);
    EXPECT_EQ(stats.snapshots, 1);
    EXPECT_TRUE(stats.bytes >= a->bytes);
}

TEST(instance_cache_an_answer_outlives_the_cache_in_the_hands_of_its_reader)
{
    const struct instance_types *types;
    struct nodepool pool = pool_of("p", "c");
    {
        WORLD(w);
        types = get(&w, &pool);
    }
    EXPECT_TRUE(instance_types_verify(types));
    EXPECT_EQ(types->type_count, 3);
    instance_types_unref(types);
}

TEST(instance_cache_a_provider_with_no_types_has_answered)
{
    WORLD(w);
    struct nodepool pool = pool_of("p", "c");
    w.fake.type_count = 0;
    for (int i = 0; i < 3; i++) {
        AUTO_INSTANCE_TYPES types = get(&w, &pool);
        EXPECT_EQ(types->type_count, 0);
        EXPECT_TRUE(instance_types_verify(types));
    }
    EXPECT_EQ(w.fake.fetches, 1);
}

/* --- changes --- */

TEST(instance_cache_one_update_of_types_and_one_of_prices_do_not_cancel_out)
{
    WORLD(w);
    struct nodepool pool = pool_of("p", "c");
    uint64_t before = ask(&w, &pool);
    generation_bump(&w.fake.counters, GENERATION_TYPES);
    generation_bump(&w.fake.counters, GENERATION_SPOT);
    EXPECT_EQ(ask(&w, &pool), before + 2);
    EXPECT_EQ(w.fake.fetches, 2);
}

static void bump_during(struct fake *f)
{
    generation_bump(&f->counters, GENERATION_SPOT);
    f->during = NULL;
}

static int fetch_then_bump(void *ctx, const struct nodepool *pool,
                           const struct instance_types **out, struct err *err)
{
    int rc = fake_types(ctx, pool, out, err);
    generation_bump(&((struct fake *)ctx)->counters, GENERATION_SPOT);
    return rc;
}

TEST(instance_cache_a_change_during_the_fetch_is_seen_afterwards)
{
    WORLD(w);
    struct nodepool pool = pool_of("p", "c");
    w.fake.port.get_instance_types = fetch_then_bump; /* the answer is old when it arrives */
    uint64_t first = ask(&w, &pool);
    w.fake.port.get_instance_types = fake_types;
    EXPECT_EQ(ask(&w, &pool), first + 1);
    EXPECT_EQ(w.fake.fetches, 2);

    /* The data already had the change: too careful, never stale. */
    generation_bump(&w.fake.counters, GENERATION_TYPES);
    w.fake.during = bump_during;
    EXPECT_EQ(ask(&w, &pool), first + 3);
    EXPECT_EQ(ask(&w, &pool), first + 3);
    EXPECT_EQ(w.fake.fetches, 4);
}

TEST(instance_cache_a_pool_that_turns_to_another_class_misses_though_counters_are_equal)
{
    WORLD(w);
    struct nodepool pool = pool_of("p", "c1"), turned = pool_of("p", "c2");
    ask(&w, &pool);
    ask(&w, &turned);
    EXPECT_EQ(w.fake.fetches, 2);
    struct instance_cache_stats stats = instance_cache_stats(w.cache);
    EXPECT_EQ(stats.misses_by[GENERATION_INPUTS], 1);
    EXPECT_EQ(stats.entries, 1);
    EXPECT_EQ(stats.snapshots, 1); /* nobody is of the old class any more */
}

static int constant_generation(void *ctx KV_UNUSED, const struct nodepool *pool KV_UNUSED,
                               struct generation *out, struct err *err KV_UNUSED)
{
    *out = (struct generation){ 0 };
    return 0;
}

TEST(instance_cache_does_not_mix_classes_up_even_if_the_provider_leaves_them_out)
{
    WORLD(w);
    w.fake.port.get_generation = constant_generation;
    struct nodepool pool = pool_of("p", "c1"), turned = pool_of("p", "c2");
    ask(&w, &pool);
    ask(&w, &turned);
    ask(&w, &pool);
    EXPECT_EQ(w.fake.fetches, 3);
}

TEST(instance_cache_a_generation_that_moves_backwards_is_a_change_like_any_other)
{
    WORLD(w);
    struct nodepool pool = pool_of("p", "c");
    uint64_t first = ask(&w, &pool);
    generation_bump(&w.fake.counters, GENERATION_SPOT);
    EXPECT_EQ(ask(&w, &pool), first + 1);
    atomic_fetch_sub(&w.fake.counters.member[GENERATION_SPOT], 1);
    EXPECT_EQ(ask(&w, &pool), first);
    EXPECT_EQ(ask(&w, &pool), first);
    EXPECT_EQ(w.fake.fetches, 3);
    struct instance_cache_stats stats = instance_cache_stats(w.cache);
    EXPECT_EQ(stats.misses_by[GENERATION_SPOT], 2);
}

TEST(instance_cache_keeps_one_snapshot_per_class_however_many_generations_pass)
{
    WORLD(w);
    struct nodepool a = pool_of("a", "c"), b = pool_of("b", "c");
    ask(&w, &a);
    ask(&w, &b);
    size_t bytes = instance_cache_stats(w.cache).bytes;
    for (int i = 0; i < 20; i++) {
        generation_bump(&w.fake.counters, GENERATION_SPOT);
        ask(&w, &a); /* b never asks again, and still holds nothing old */
        struct instance_cache_stats stats = instance_cache_stats(w.cache);
        EXPECT_EQ(stats.snapshots, 1);
        EXPECT_EQ(stats.bytes, bytes);
    }
    ask(&w, &b);
    EXPECT_EQ(w.fake.fetches, 21);
    EXPECT_EQ(instance_cache_stats(w.cache).misses_by[GENERATION_SPOT], 21);
}

TEST(instance_cache_lets_go_of_an_older_answer_at_once_also_for_pools_that_do_not_ask_again)
{
    WORLD(w, .node_overlays = true);
    struct nodepool quiet = pool_of("quiet", "c"), busy = pool_of("busy", "c");
    AUTO_INSTANCE_TYPES base = get(&w, &quiet);
    ask(&w, &busy);
    generation_bump(&w.fake.counters, GENERATION_SPOT);
    EXPECT_FALSE(is_ours_alone(base));
    ask(&w, &busy);
    EXPECT_TRUE(is_ours_alone(base));

    lab_overlay(&w.lab, "more",
                "{capacity: {example.com/a: '1'}, requirements: [{key: "
                "topology.kubernetes.io/zone, operator: In, values: [a]}]}");
    set_overlays(&w, 1);
    AUTO_INSTANCE_TYPES layer = get(&w, &quiet);
    ask(&w, &busy);
    EXPECT_FALSE(is_ours_alone(layer));
    set_overlays(&w, 2); /* before anybody asks */
    EXPECT_TRUE(is_ours_alone(layer));
    AUTO_INSTANCE_TYPES turned = get(&w, &busy);
    struct nodepool to_another = pool_of("busy", "another");
    ask(&w, &to_another);
    instance_cache_forget(w.cache, STR("quiet"));
    EXPECT_TRUE(is_ours_alone(turned));
}

/* --- trouble --- */

TEST(instance_cache_a_failed_fetch_is_told_and_keeps_the_last_good_answer_and_its_generation)
{
    WORLD(w);
    struct nodepool pool = pool_of("p", "c");
    const struct instance_types *none = NULL;
    AUTO_INSTANCE_TYPES good = get(&w, &pool);
    generation_bump(&w.fake.counters, GENERATION_SPOT);
    w.fake.failing = true;
    for (int i = 0; i < 2; i++) {
        struct err err = { 0 };
        EXPECT_ERR(instance_cache_get(w.cache, &pool, &none, &err), err, ERR_THROTTLED);
        EXPECT_Z(err.text, "slow down, fake");
        EXPECT_TRUE(none == NULL);
    }
    EXPECT_EQ(instance_cache_stats(w.cache).fetch_errors, 2);

    atomic_fetch_sub(&w.fake.counters.member[GENERATION_SPOT], 1); /* back where it was good */
    AUTO_INSTANCE_TYPES again = get(&w, &pool);
    EXPECT_TRUE(again == good);
    EXPECT_EQ(w.fake.fetches, 3);

    generation_bump(&w.fake.counters, GENERATION_SPOT);
    w.fake.failing = false;
    EXPECT_EQ(ask(&w, &pool), age_of(good) + 1);
}

TEST(instance_cache_a_generation_that_cannot_be_read_is_an_error)
{
    WORLD(w);
    struct nodepool pool = pool_of("p", "c");
    const struct instance_types *none = NULL;
    struct err err = { 0 };
    ask(&w, &pool);
    w.fake.forgetful = true;
    EXPECT_ERR(instance_cache_get(w.cache, &pool, &none, &err), err, ERR_NOT_FOUND);
    EXPECT_ERR(instance_cache_get_raw(w.cache, &pool, &none, &err), err, ERR_NOT_FOUND);
    EXPECT_EQ(w.fake.fetches, 1);
    w.fake.forgetful = false;
    ask(&w, &pool);
    EXPECT_EQ(w.fake.fetches, 1);
}

TEST(instance_cache_a_pool_whose_first_fetch_fails_leaves_nothing_behind)
{
    WORLD(w);
    struct nodepool pool = pool_of("p", "c");
    const struct instance_types *none = NULL;
    struct err err = { 0 };
    w.fake.failing = true;
    EXPECT_ERR(instance_cache_get(w.cache, &pool, &none, &err), err, ERR_THROTTLED);
    EXPECT_EQ(instance_cache_stats(w.cache).entries, 0);
}

/* --- pools --- */

TEST(instance_cache_a_forgotten_pool_takes_its_answer_along)
{
    WORLD(w);
    struct nodepool a = pool_of("a", "c"), b = pool_of("b", "c");
    ask(&w, &a);
    ask(&w, &b);
    instance_cache_forget(w.cache, STR("a"));
    instance_cache_forget(w.cache, STR("never"));
    EXPECT_EQ(instance_cache_stats(w.cache).entries, 1);
    EXPECT_EQ(instance_cache_stats(w.cache).snapshots, 1);
    instance_cache_forget(w.cache, STR("b"));
    EXPECT_EQ(instance_cache_stats(w.cache).entries, 0);
    EXPECT_EQ(instance_cache_stats(w.cache).snapshots, 0);
    EXPECT_EQ(instance_cache_stats(w.cache).bytes, 0);
    ask(&w, &a);
    EXPECT_EQ(w.fake.fetches, 2);
}

static void pools_of_one_class(struct world *w, struct nodepool *pools)
{
    for (int i = 0; i < POOLS; i++)
        pools[i] = pool_of(arena_strf(&w->lab.arena, "pool-%d", i).p, "c");
}

TEST(instance_cache_500_pools_of_one_class_share_one_fetch_and_one_snapshot)
{
    WORLD(w);
    struct nodepool pools[POOLS];
    pools_of_one_class(&w, pools);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < POOLS; i++)
            ask(&w, &pools[i]);
        EXPECT_EQ(w.fake.fetches, round + 1);
        EXPECT_EQ(instance_cache_stats(w.cache).entries, POOLS);
        EXPECT_EQ(instance_cache_stats(w.cache).snapshots, 1);
        generation_bump(&w.fake.counters, GENERATION_SPOT);
    }
}

/* --- overlays --- */

#define ALL_SPOT "requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [spot]}]"

TEST(instance_cache_overlays_are_applied_once_and_fetch_nothing)
{
    WORLD(w, .node_overlays = true);
    struct nodepool pool = pool_of("p", "c");
    uint64_t age = ask(&w, &pool);
    lab_overlay(&w.lab, "cheap", "{price: '0.05', " ALL_SPOT "}");
    set_overlays(&w, 1);
    for (int i = 0; i < 3; i++) {
        AUTO_INSTANCE_TYPES types = get(&w, &pool);
        EXPECT_TRUE(instance_types_verify(types));
        EXPECT_Z(price_in(types, "t0", "a", "spot"), "0.05");
        EXPECT_EQ(instance_types_price(types, offering_of(types, "t0", "b", "on-demand")),
                  (usd_hour)age * USD_HOUR_ONE + 1);
    }
    struct instance_cache_stats stats = instance_cache_stats(w.cache);
    EXPECT_EQ(w.fake.fetches, 1);
    EXPECT_EQ(stats.layers_built, 1);
    EXPECT_EQ(stats.layers, 1);
    EXPECT_EQ(stats.misses_by[GENERATION_OVERLAYS], 1);

    instance_cache_set_overlays(w.cache, NULL);
    EXPECT_EQ(ask(&w, &pool), age);
    EXPECT_EQ(w.fake.fetches, 1);
    EXPECT_EQ(instance_cache_stats(w.cache).layers, 0);
}

TEST(instance_cache_a_set_of_the_generation_that_is_in_force_changes_nothing)
{
    WORLD(w, .node_overlays = true);
    struct nodepool pool = pool_of("p", "c");
    lab_overlay(&w.lab, "cheap", "{price: '0.05', " ALL_SPOT "}");
    set_overlays(&w, 7);
    AUTO_INSTANCE_TYPES a = get(&w, &pool);
    set_overlays(&w, 7);
    AUTO_INSTANCE_TYPES b = get(&w, &pool);
    EXPECT_TRUE(a == b);
    set_overlays(&w, 8);
    AUTO_INSTANCE_TYPES c = get(&w, &pool);
    EXPECT_TRUE(a != c);
    EXPECT_EQ(instance_cache_stats(w.cache).layers_built, 2);
    EXPECT_EQ(w.fake.fetches, 1);
}

TEST(instance_cache_an_empty_set_of_overlays_is_none)
{
    WORLD(w, .node_overlays = true);
    struct nodepool pool = pool_of("p", "c");
    AUTO_INSTANCE_TYPES a = get(&w, &pool);
    set_overlays(&w, 1);
    AUTO_INSTANCE_TYPES b = get(&w, &pool);
    EXPECT_TRUE(a == b);
}

TEST(instance_cache_a_new_base_gets_the_overlays_too)
{
    WORLD(w, .node_overlays = true);
    struct nodepool pool = pool_of("p", "c");
    lab_overlay(&w.lab, "cheap", "{priceAdjustment: '+0.5', " ALL_SPOT "}");
    set_overlays(&w, 1);
    uint64_t age = ask(&w, &pool);
    generation_bump(&w.fake.counters, GENERATION_SPOT);
    AUTO_INSTANCE_TYPES types = get(&w, &pool);
    EXPECT_EQ(types->prices[0][0], (usd_hour)(age + 1) * USD_HOUR_ONE + USD_HOUR_ONE / 2);
    EXPECT_EQ(instance_cache_stats(w.cache).layers, 1);
}

TEST(instance_cache_with_the_gate_off_overlays_are_never_consulted)
{
    WORLD(w, .node_overlays = false);
    struct nodepool pool = pool_of("p", "c");
    const struct overlay_set *poison =
        (const struct overlay_set *)(uintptr_t)16; /* touch and die */
    uint64_t age = ask(&w, &pool);
    instance_cache_set_overlays(w.cache, poison);
    EXPECT_EQ(ask(&w, &pool), age);
    generation_bump(&w.fake.counters, GENERATION_SPOT);
    EXPECT_EQ(ask(&w, &pool), age + 1);
    EXPECT_EQ(instance_cache_stats(w.cache).layers_built, 0);
    EXPECT_EQ(instance_cache_stats(w.cache).newest.member[GENERATION_OVERLAYS], 0);
}

TEST(instance_cache_500_pools_that_overlays_cannot_tell_apart_share_one_layer)
{
    WORLD(w, .node_overlays = true);
    struct nodepool pools[POOLS];
    pools_of_one_class(&w, pools);
    lab_overlay(&w.lab, "cheap", "{price: '0.05', " ALL_SPOT "}");
    set_overlays(&w, 1);
    AUTO_INSTANCE_TYPES first = get(&w, &pools[0]);
    for (int i = 0; i < POOLS; i++) {
        AUTO_INSTANCE_TYPES types = get(&w, &pools[i]);
        EXPECT_TRUE(types == first);
    }
    EXPECT_EQ(w.fake.fetches, 1);
    EXPECT_EQ(instance_cache_stats(w.cache).layers_built, 1);
    EXPECT_EQ(instance_cache_stats(w.cache).layers, 1);

    lab_overlay(&w.lab, "one-pool",
                "{price: '0.01', weight: 5, requirements: [{key: karpenter.sh/nodepool, "
                "operator: In, values: [pool-7]}]}");
    set_overlays(&w, 2);
    for (int i = 0; i < POOLS; i++) {
        AUTO_INSTANCE_TYPES types = get(&w, &pools[i]);
        EXPECT_Z(price_in(types, "t0", "a", "spot"), i == 7 ? "0.01" : "0.05");
    }
    EXPECT_EQ(w.fake.fetches, 1);
    EXPECT_EQ(instance_cache_stats(w.cache).layers, 2);
    instance_cache_forget(w.cache, STR("pool-7"));
    EXPECT_EQ(instance_cache_stats(w.cache).layers, 1);
}

TEST(instance_cache_overlays_that_match_nothing_cost_no_layer)
{
    WORLD(w, .node_overlays = true);
    struct nodepool pool = pool_of("p", "c");
    lab_overlay(&w.lab, "elsewhere",
                "{price: '0.01', requirements: [{key: topology.kubernetes.io/zone, operator: In, "
                "values: [nowhere]}]}");
    set_overlays(&w, 1);
    ask(&w, &pool);
    ask(&w, &pool);
    struct instance_cache_stats stats = instance_cache_stats(w.cache);
    EXPECT_EQ(stats.layers, 0);
    EXPECT_EQ(stats.layers_built, 1); /* found out once */
    EXPECT_EQ(stats.hits, 1);
}

TEST(instance_cache_an_edit_of_the_pools_labels_changes_which_overlays_match)
{
    WORLD(w, .node_overlays = true);
    static const struct str_pair team_a = { { "team", 4 }, { "a", 1 } },
                                 team_b = { { "team", 4 }, { "b", 1 } };
    struct nodepool pool = pool_of("p", "c"), edited = pool;
    pool.spec.template.meta.labels = (struct str_map){ &team_a, 1 };
    edited.spec.template.meta.labels = (struct str_map){ &team_b, 1 };
    lab_overlay(&w.lab, "for-b",
                "{price: '0.01', requirements: [{key: team, operator: In, "
                "values: [b]}]}");
    set_overlays(&w, 1);
    EXPECT_EQ(ask(&w, &pool), fake_age(&w.fake));
    AUTO_INSTANCE_TYPES types = get(&w, &edited);
    EXPECT_Z(price_in(types, "t0", "a", "spot"), "0.01");
    EXPECT_EQ(w.fake.fetches, 1);
    EXPECT_EQ(instance_cache_stats(w.cache).misses_by[GENERATION_OVERLAYS], 1);
}

TEST(instance_cache_raw_answers_are_shared_and_have_no_overlays)
{
    WORLD(w, .node_overlays = true);
    struct nodepool pool = pool_of("p", "c");
    struct err err = { 0 };
    const struct instance_types *a = NULL, *b = NULL;
    lab_overlay(&w.lab, "cheap", "{price: '0.05', " ALL_SPOT "}");
    set_overlays(&w, 1);
    EXPECT_OK(instance_cache_get_raw(w.cache, &pool, &a, &err), err);
    AUTO_INSTANCE_TYPES layered = get(&w, &pool);
    EXPECT_OK(instance_cache_get_raw(w.cache, &pool, &b, &err), err);
    EXPECT_EQ(w.fake.fetches, 1);
    EXPECT_TRUE(a == b);
    EXPECT_TRUE(a->base == NULL);
    EXPECT_TRUE(layered->base != NULL);
    EXPECT_EQ(age_of(a), fake_age(&w.fake));
    EXPECT_Z(price_in(layered, "t0", "a", "spot"), "0.05");
    instance_types_unref(a);
    instance_types_unref(b);
    EXPECT_EQ(instance_cache_stats(w.cache).misses, 1);
}

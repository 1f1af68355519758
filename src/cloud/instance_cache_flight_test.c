/* Many callers, few fetches: who waits for whom, and what they get. */
#include "cloud/instance_cache_testing.h"

#include <pthread.h>

#define CALLERS 16

struct caller {
    struct world *w;
    struct nodepool pool;
    pthread_t thread;
    int rc;
    struct err err;
    const struct instance_types *types;
    _Atomic int done;
};

static void *call_get(void *ctx)
{
    struct caller *c = ctx;
    c->rc = instance_cache_get(c->w->cache, &c->pool, &c->types, &c->err);
    atomic_store(&c->done, 1);
    return NULL;
}

static void *call_get_raw(void *ctx)
{
    struct caller *c = ctx;
    c->rc = instance_cache_get_raw(c->w->cache, &c->pool, &c->types, &c->err);
    return NULL;
}

static void caller_start(struct caller *c, struct world *w, const char *pool,
                         const char *class_name)
{
    *c = (struct caller){ .w = w, .pool = pool_of(pool, class_name) };
    EXPECT_EQ(pthread_create(&c->thread, NULL, call_get, c), 0);
}

static void caller_end(struct caller *c)
{
    pthread_join(c->thread, NULL);
    instance_types_unref(c->types);
}

static void wait_for_waiting(struct world *w, uint32_t want)
{
    while (instance_cache_stats(w->cache).waiting < want)
        sched_yield();
}

/* Hold fetches up, start all callers, wait until one fetches and the others wait. */
static void gather(struct world *w, struct caller *callers, uint32_t count, bool own_pools)
{
    atomic_store(&w->fake.held, true);
    for (uint32_t i = 0; i < count; i++)
        caller_start(&callers[i], w, own_pools ? arena_strf(&w->lab.arena, "pool-%u", i).p : "pool",
                     "c");
    wait_until(&w->fake.running, 1);
    wait_for_waiting(w, count - 1);
}

TEST(flight_callers_of_one_pool_share_one_fetch)
{
    WORLD(w);
    struct caller callers[CALLERS];
    gather(&w, callers, CALLERS, false);
    EXPECT_EQ(w.fake.fetches, 1);
    atomic_store(&w.fake.held, false);
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(callers[i].thread, NULL);
        EXPECT_EQ(callers[i].rc, 0);
        EXPECT_TRUE(callers[i].types->memory == callers[0].types->memory);
    }
    for (int i = 0; i < CALLERS; i++)
        instance_types_unref(callers[i].types);
    EXPECT_EQ(w.fake.fetches, 1);
    EXPECT_EQ(instance_cache_stats(w.cache).waits, CALLERS - 1);
    EXPECT_EQ(instance_cache_stats(w.cache).misses, CALLERS);
}

TEST(flight_pools_of_one_class_share_one_fetch_and_one_layer)
{
    WORLD(w, .node_overlays = true);
    struct caller callers[CALLERS];
    lab_overlay(&w.lab, "cheap",
                "{price: '0.05', requirements: [{key: "
                "karpenter.sh/capacity-type, operator: In, values: [spot]}]}");
    set_overlays(&w, 1);
    gather(&w, callers, CALLERS, true);
    atomic_store(&w.fake.held, false);
    for (int i = 0; i < CALLERS; i++)
        caller_end(&callers[i]);
    EXPECT_EQ(w.fake.fetches, 1);
    struct instance_cache_stats stats = instance_cache_stats(w.cache);
    EXPECT_EQ(stats.entries, CALLERS);
    EXPECT_EQ(stats.snapshots, 1);
    EXPECT_EQ(stats.layers_built, 1);
}

TEST(flight_a_failure_is_told_to_all_who_waited_and_to_nobody_else)
{
    WORLD(w);
    struct caller callers[CALLERS];
    w.fake.failing = true;
    gather(&w, callers, CALLERS, true);
    atomic_store(&w.fake.held, false);
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(callers[i].thread, NULL);
        EXPECT_EQ(callers[i].rc, -1);
        EXPECT_EQ(callers[i].err.kind, ERR_THROTTLED);
        EXPECT_Z(callers[i].err.text, "slow down, fake");
    }
    EXPECT_EQ(w.fake.fetches, 1);
    EXPECT_EQ(instance_cache_stats(w.cache).fetch_errors, 1);
    w.fake.failing = false;
    ask(&w, &callers[0].pool);
    EXPECT_EQ(w.fake.fetches, 2);
}

/* One caller's fetch is held up, something changes, then many come. */
static void gather_late(struct world *w, struct caller *early, struct caller late[CALLERS])
{
    atomic_store(&w->fake.held, true);
    caller_start(early, w, "pool", "c");
    wait_until(&w->fake.running, 1);
    generation_bump(&w->fake.counters, GENERATION_SPOT);
    for (int i = 0; i < CALLERS; i++)
        caller_start(&late[i], w, "pool", "c");
    wait_for_waiting(w, CALLERS);
    EXPECT_EQ(w->fake.fetches, 1); /* never two at a time */
    atomic_store(&w->fake.held, false);
}

TEST(flight_a_caller_with_a_newer_generation_waits_for_the_next_fetch)
{
    WORLD(w);
    struct caller early, late[CALLERS];
    gather_late(&w, &early, late);
    caller_end(&early);
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(late[i].thread, NULL);
        EXPECT_EQ(late[i].rc, 0);
        EXPECT_EQ(age_of(late[i].types), fake_age(&w.fake));
        instance_types_unref(late[i].types);
    }
    EXPECT_EQ(w.fake.fetches, 2);
    EXPECT_EQ(ask(&w, &early.pool), fake_age(&w.fake));
    EXPECT_EQ(w.fake.fetches, 2);
}

/* Every fetch finds that everything has changed again. */
static void always_bump(struct fake *f)
{
    generation_bump(&f->counters, GENERATION_SPOT);
}

TEST(flight_nobody_waits_for_more_than_two_fetches_however_fast_things_change)
{
    WORLD(w);
    struct caller early, late[CALLERS];
    w.fake.during = always_bump;
    gather_late(&w, &early, late);
    caller_end(&early);
    for (int i = 0; i < CALLERS; i++)
        caller_end(&late[i]);
    /* No generation was ever met twice; the second began after they came, and that is enough. */
    EXPECT_EQ(w.fake.fetches, 2);
}

TEST(flight_a_failure_ends_the_wait_too_however_fast_things_change)
{
    WORLD(w);
    struct caller early, late[CALLERS];
    w.fake.during = always_bump;
    w.fake.failing = true;
    gather_late(&w, &early, late);
    caller_end(&early);
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(late[i].thread, NULL);
        EXPECT_EQ(late[i].rc, -1);
        EXPECT_EQ(late[i].err.kind, ERR_THROTTLED);
    }
    /* Those who flew were told, and so was who waited for them: at most one fetch each. */
    EXPECT_TRUE(w.fake.fetches <= 1 + CALLERS);
}

TEST(flight_a_fetch_that_hangs_holds_up_its_own_class_alone)
{
    WORLD(w);
    struct nodepool other = pool_of("other", "quick"), known = pool_of("known", "c");
    struct caller stuck, behind;
    uint64_t age = ask(&w, &known);
    generation_bump(&w.fake.counters, GENERATION_SPOT);
    w.fake.held_class = STR("c");
    atomic_store(&w.fake.held, true);
    caller_start(&stuck, &w, "stuck", "c");
    wait_until(&w.fake.running, 1);
    caller_start(&behind, &w, "known", "c");
    wait_for_waiting(&w, 1);

    EXPECT_EQ(ask(&w, &other), age + 1); /* fetches */
    EXPECT_EQ(ask(&w, &other), age + 1); /* hits */
    atomic_fetch_sub(&w.fake.counters.member[GENERATION_SPOT], 1);
    EXPECT_EQ(ask(&w, &known), age); /* a hit of the class whose fetch hangs */
    instance_cache_forget(w.cache, STR("other"));
    instance_cache_set_overlays(w.cache, NULL);
    EXPECT_EQ(stuck.done, 0);
    EXPECT_EQ(behind.done, 0);
    atomic_store(&w.fake.held, false);
    caller_end(&stuck);
    caller_end(&behind);
}

TEST(flight_what_arrives_for_a_pool_that_was_forgotten_meanwhile_is_not_kept)
{
    WORLD(w);
    struct caller callers[3];
    gather(&w, callers, 2, true);
    callers[2] = (struct caller){ .w = &w, .pool = pool_of("raw", "c") };
    EXPECT_EQ(pthread_create(&callers[2].thread, NULL, call_get_raw, &callers[2]), 0);
    wait_for_waiting(&w, 2);
    instance_cache_forget(w.cache, STR("pool-0"));
    instance_cache_forget(w.cache, STR("pool-1"));
    instance_cache_forget(w.cache, STR("raw"));
    atomic_store(&w.fake.held, false);
    for (int i = 0; i < 3; i++) {
        pthread_join(callers[i].thread, NULL);
        EXPECT_EQ(callers[i].rc, 0); /* the caller gets it all the same */
        EXPECT_TRUE(instance_types_verify(callers[i].types));
        instance_types_unref(callers[i].types);
    }
    struct instance_cache_stats stats = instance_cache_stats(w.cache);
    EXPECT_EQ(stats.entries, 0);
    EXPECT_EQ(stats.snapshots, 0);
}

TEST(flight_overlays_that_change_during_the_fetch_are_the_ones_applied)
{
    WORLD(w, .node_overlays = true);
    struct caller c;
    atomic_store(&w.fake.held, true);
    caller_start(&c, &w, "pool", "c");
    wait_until(&w.fake.running, 1);
    lab_overlay(&w.lab, "cheap",
                "{price: '0.05', requirements: [{key: "
                "karpenter.sh/capacity-type, operator: In, values: [spot]}]}");
    set_overlays(&w, 1);
    atomic_store(&w.fake.held, false);
    pthread_join(c.thread, NULL);
    EXPECT_Z(price_in(c.types, "t0", "a", "spot"), "0.05");
    instance_types_unref(c.types);
    AUTO_INSTANCE_TYPES again = get(&w, &c.pool);
    EXPECT_Z(price_in(again, "t0", "a", "spot"), "0.05");
    EXPECT_EQ(w.fake.fetches, 1);
    EXPECT_EQ(instance_cache_stats(w.cache).layers_built, 1);
}

TEST(flight_threads_have_stripes_of_their_own_and_share_the_snapshot)
{
    WORLD(w, .stripes = 64);
    struct caller callers[CALLERS];
    struct nodepool pool = pool_of("pool", "c");
    AUTO_INSTANCE_TYPES mine = get(&w, &pool);
    for (int i = 0; i < CALLERS; i++)
        caller_start(&callers[i], &w, "pool", "c");
    for (int i = 0; i < CALLERS; i++)
        pthread_join(callers[i].thread, NULL);
    for (int i = 0; i < CALLERS; i++) {
        EXPECT_TRUE(callers[i].types->memory == mine->memory);
        for (int k = 0; k < i; k++) /* threads that start one after the other */
            EXPECT_TRUE(callers[i].types != callers[k].types); /* another count */
    }
    for (int i = 0; i < CALLERS; i++)
        instance_types_unref(callers[i].types);
    EXPECT_EQ(w.fake.fetches, 1);
    EXPECT_EQ(instance_cache_stats(w.cache).hits, CALLERS);
    EXPECT_EQ(instance_cache_stats(w.cache).snapshots, 1);
}

/* Ask for it on a thread, and so on a stripe, of its own. */
static void ask_elsewhere(struct caller *c, struct world *w, const struct nodepool *pool)
{
    *c = (struct caller){ .w = w, .pool = *pool };
    EXPECT_EQ(pthread_create(&c->thread, NULL, call_get, c), 0);
    pthread_join(c->thread, NULL);
    EXPECT_EQ(c->rc, 0);
}

TEST(flight_an_edit_of_a_pool_drops_its_old_answer_from_the_stripes_of_other_threads_too)
{
    WORLD(w, .node_overlays = true, .stripes = 64);
    static const struct str_pair team_a = { { "team", 4 }, { "a", 1 } };
    struct nodepool pool = pool_of("p", "c"), labelled = pool, turned = pool_of("p", "another");
    labelled.spec.template.meta.labels = (struct str_map){ &team_a, 1 };
    lab_overlay(&w.lab, "for-a",
                "{price: '0.01', requirements: [{key: team, operator: In, "
                "values: [a]}]}");
    set_overlays(&w, 1);
    struct caller before, after;
    const struct instance_types *raw = NULL;
    struct err err = { 0 };
    ask_elsewhere(&before, &w, &labelled);
    ask_elsewhere(&after, &w, &pool);
    EXPECT_TRUE(is_ours_alone(before.types)); /* by its labels */
    instance_types_unref(before.types);
    EXPECT_OK(instance_cache_get_raw(w.cache, &turned, &raw, &err), err);
    EXPECT_TRUE(is_ours_alone(after.types)); /* by its class */
    instance_types_unref(after.types);
    instance_types_unref(raw);
}

/* What becomes of instances: launched again, after a restart, at their end, with a store that
 * fails, and from many threads.
 */
#include "cloud/kwok_impl.h"
#include "cloud/kwok_testing.h"

#include <pthread.h>
#include <unistd.h>

/* --- again and again --- */

TEST(launching_a_claim_again_gives_the_same_instance_before_and_after_its_node_is_there)
{
    AUTO(cloud) c = cloud_new();
    AUTO_OBJECT claim = claim_of(c, "a", LINUX "," AMD64, SMALL);
    struct instance first = launch(c, claim);
    unavailable_mark(kwok_unavailable(c->k), STR(""), STR(""), STR("spot"), STR(""));
    struct instance second = launch(c, claim);
    EXPECT_TRUE(str_eq(first.provider_id, second.provider_id));
    EXPECT_TRUE(str_eq(first.zone, second.zone));
    EXPECT_STR(second.capacity_type, "spot");
    pass(c, 30);
    struct instance third = launch(c, claim);
    EXPECT_TRUE(str_eq(first.provider_id, third.provider_id));
    EXPECT_STR(third.capacity_type, "spot");
    pass(c, 60);
    EXPECT_EQ(node_count(c), 1);
    EXPECT_EQ(list_count(c), 1);
}

TEST(a_claim_that_comes_back_under_its_name_is_another_instance)
{
    AUTO(cloud) c = cloud_new();
    AUTO_OBJECT claim = claim_of(c, "a", LINUX, SMALL);
    struct instance first = launch(c, claim);
    terminate(c, claim);
    AUTO_OBJECT next = claim_of(c, "a", LINUX, SMALL);
    struct instance second = launch(c, next);
    EXPECT_FALSE(str_eq(first.provider_id, second.provider_id));
}

TEST(a_process_that_dies_before_the_claim_was_told_launches_the_same_instance_again)
{
    AUTO(cloud) c = cloud_new();
    AUTO_OBJECT claim = claim_of(c, "a", LINUX, SMALL);
    struct instance first = launch(c, claim);
    cloud_restart(c);
    EXPECT_EQ(kwok_step(c->k), INT64_MAX); /* nobody knows of it, and nobody saw it */
    struct instance second = launch(c, claim);
    EXPECT_TRUE(str_eq(first.provider_id, second.provider_id));
    EXPECT_TRUE(str_eq(first.zone, second.zone));
    pass(c, 30);
    EXPECT_EQ(node_count(c), 1);
}

TEST(a_process_that_dies_before_the_node_appeared_leaves_it_to_the_next_one)
{
    AUTO(cloud) c = cloud_new();
    AUTO_OBJECT claim = claim_of(c, "a", LINUX "," AMD64 "," ZONE_A, SMALL);
    struct instance i = launch(c, claim);
    object_unref(told(c, &i));
    pass(c, 10);
    cloud_restart(c);
    EXPECT_TRUE(is_known(c, i.provider_id));
    EXPECT_EQ(list_count(c), 1);
    EXPECT_EQ(kwok_step(c->k), 30 * SECOND_NS); /* ten of the thirty seconds had passed */
    pass(c, 20);
    AUTO_OBJECT node = get(c->w->store, &node_kind, i.node_name.p);
    EXPECT_STR(str_map_get(&node->meta.labels, STR(LABEL_INSTANCE_TYPE)), "c-1x-amd64-linux");
    EXPECT_STR(str_map_get(&node->meta.labels, STR("kwok.x-k8s.io/node")), "fake");
    EXPECT_EQ(quantity_milli(resources_get(&node_of(node)->status.allocatable, STR("cpu"))), 900);
    EXPECT_TRUE(node_taint(node_of(node), STR(TAINT_UNREGISTERED), EFFECT_NO_EXECUTE) != NULL);
}

TEST(a_restart_after_a_long_pause_makes_up_for_it_at_once)
{
    AUTO(cloud) c = cloud_new();
    AUTO_OBJECT claim = claim_of(c, "a", LINUX, SMALL);
    struct instance i = launch(c, claim);
    object_unref(told(c, &i));
    virtual_clock_advance(c->w->time, 3600 * SECOND_NS);
    cloud_restart(c);
    kwok_step(c->k);
    EXPECT_EQ(node_count(c), 1);
}

TEST(a_restart_does_not_bring_back_what_registered_or_is_being_deleted)
{
    AUTO(cloud) c = cloud_new();
    AUTO_OBJECT joined = claim_of(c, "joined", LINUX, SMALL);
    struct instance i = launch(c, joined);
    object_unref(told(c, &i));
    pass(c, 30);
    object_unref(merge_status(c->w->store, &nodeclaim_kind, "joined",
                              js("{'status':{'conditions':[{'type':'Registered','status':'True',"
                                 "'reason':'Registered','message':'',"
                                 "'lastTransitionTime':'2026-01-02T03:00:30Z'}]}}")));
    remove_it(c->w->store, &node_kind, i.node_name.p);

    AUTO_OBJECT ending = claim_of(c, "ending", LINUX, SMALL);
    struct instance j = launch(c, ending);
    object_unref(told(c, &j));
    object_unref(merge(c->w->store, &nodeclaim_kind, "ending",
                       js("{'metadata':{'finalizers':['karpenter.sh/termination']}}")));
    remove_it(c->w->store, &nodeclaim_kind, "ending");

    cloud_restart(c);
    pass(c, 60);
    EXPECT_EQ(node_count(c), 0);
    EXPECT_EQ(list_count(c), 0);
    EXPECT_FALSE(is_known(c, i.provider_id));
}

TEST(a_recovered_instance_whose_claim_has_gone_meanwhile_gets_no_node)
{
    AUTO(cloud) c = cloud_new();
    AUTO_OBJECT claim = claim_of(c, "a", LINUX, SMALL);
    struct instance i = launch(c, claim);
    object_unref(told(c, &i));
    cloud_restart(c);
    EXPECT_EQ(list_count(c), 1);
    remove_it(c->w->store, &nodeclaim_kind, "a");
    pass(c, 60);
    EXPECT_EQ(node_count(c), 0);
    EXPECT_EQ(list_count(c), 0);
}

/* --- ends --- */

TEST(an_instance_that_is_deleted_while_it_waits_gets_no_node)
{
    AUTO(cloud) c = cloud_new();
    AUTO_OBJECT claim = claim_of(c, "a", LINUX, SMALL);
    struct instance i = launch(c, claim);
    EXPECT_TRUE(is_known(c, i.provider_id));
    AUTO_OBJECT stored = told(c, &i);
    terminate(c, stored);
    EXPECT_FALSE(is_known(c, i.provider_id));
    pass(c, 60);
    EXPECT_EQ(node_count(c), 0);
    EXPECT_FALSE(is_there(c->w->store, &nodeclaim_kind, "a"));
    terminate(c, stored);
}

TEST(an_instance_whose_claim_was_never_told_is_deleted_too)
{
    AUTO(cloud) c = cloud_new();
    AUTO_OBJECT claim = claim_of(c, "a", LINUX, SMALL);
    launch(c, claim);
    pass(c, 30);
    EXPECT_EQ(node_count(c), 1);
    terminate(c, claim); /* it has no providerID */
    EXPECT_EQ(node_count(c), 0);
}

TEST(deleting_removes_a_node_that_never_registered)
{
    AUTO(cloud) c = cloud_new();
    AUTO_OBJECT claim = claim_of(c, "a", LINUX, SMALL);
    struct instance i = launch(c, claim);
    AUTO_OBJECT stored = told(c, &i);
    pass(c, 30);
    terminate(c, stored);
    EXPECT_EQ(node_count(c), 0);
    EXPECT_EQ(list_count(c), 0);
}

TEST(a_node_that_is_being_drained_is_an_instance_until_it_is_deleted_here)
{
    AUTO(cloud) c = cloud_new();
    AUTO_OBJECT claim = claim_of(c, "a", LINUX, SMALL);
    struct instance i = launch(c, claim);
    AUTO_OBJECT stored = told(c, &i);
    pass(c, 30);
    object_unref(merge(c->w->store, &node_kind, i.node_name.p,
                       js("{'metadata':{'finalizers':['karpenter.sh/termination']}}")));
    remove_it(c->w->store, &node_kind, i.node_name.p);
    EXPECT_TRUE(is_known(c, i.provider_id));

    terminate(c, stored); /* the Node is still there: its finalizer waits for this answer */
    EXPECT_FALSE(is_known(c, i.provider_id));
    EXPECT_EQ(list_count(c), 0);
    EXPECT_EQ(node_count(c), 1);
    cloud_restart(c);
    EXPECT_FALSE(is_known(c, i.provider_id));
}

TEST(a_node_that_somebody_deleted_is_an_instance_that_is_gone)
{
    AUTO(cloud) c = cloud_new();
    AUTO_OBJECT claim = claim_of(c, "a", LINUX, SMALL);
    struct instance i = launch(c, claim);
    pass(c, 30);
    remove_it(c->w->store, &node_kind, i.node_name.p);
    EXPECT_FALSE(is_known(c, i.provider_id));
    EXPECT_EQ(list_count(c), 0);
    pass(c, 600);
    EXPECT_EQ(node_count(c), 0);
}

TEST(nodes_of_others_are_no_instances)
{
    AUTO(cloud) c = cloud_new();
    make_node(c->w->store, "bare");
    object_unref(make(c->w->store, &node_kind,
                      js("{'metadata':{'name':'ec2'},'spec':{'providerID':'aws:///a/i-1'}}")));
    EXPECT_EQ(list_count(c), 0);
    EXPECT_FALSE(is_known(c, STR("aws:///a/i-1")));
    EXPECT_FALSE(is_known(c, STR("kwok://bare")));
    EXPECT_FALSE(is_known(c, STR("kwok://")));
    EXPECT_FALSE(is_known(c, STR("")));
}

TEST(list_has_pending_instances_and_nodes_each_once)
{
    AUTO(cloud) c = cloud_new();
    for (int n = 0; n < 10; n++) {
        char name[16];
        snprintf(name, sizeof name, "claim-%d", n);
        AUTO_OBJECT claim = claim_of(c, name, LINUX, SMALL);
        launch(c, claim);
        pass(c, 5);
        EXPECT_EQ(list_count(c), n + 1);
    }
    EXPECT_EQ(node_count(c), 5);
}

/* --- trouble with the store --- */

struct trouble {
    enum embedded_verb verb;
    const struct kind *kind;
    enum err_kind error;
    int times, seen;
};

static enum err_kind make_trouble(void *ctx, const struct embedded_call *call)
{
    struct trouble *t = ctx;
    if (call->verb != t->verb || call->kind != t->kind)
        return ERR_NONE;
    t->seen++;
    return t->times-- > 0 ? t->error : ERR_NONE;
}

TEST(a_node_that_cannot_be_created_is_tried_again_later_and_slower)
{
    AUTO(cloud) c = cloud_new();
    AUTO_OBJECT claim = claim_of(c, "a", LINUX, SMALL);
    launch(c, claim);
    struct trouble t = { EMBEDDED_CREATE, &node_kind, ERR_UNAVAILABLE, 3, 0 };
    embedded_set_faults(c->w->e, &(struct embedded_faults){ .before = make_trouble, .ctx = &t });
    pass(c, 30);
    EXPECT_EQ(kwok_step(c->k), 31 * SECOND_NS);
    pass(c, 1);
    EXPECT_EQ(kwok_step(c->k), 33 * SECOND_NS);
    pass(c, 2);
    EXPECT_EQ(kwok_step(c->k), 37 * SECOND_NS);
    EXPECT_EQ(node_count(c), 0);
    pass(c, 4);
    EXPECT_EQ(t.seen, 4);
    EXPECT_EQ(node_count(c), 1);
}

TEST(the_wait_between_tries_ends_at_a_minute)
{
    AUTO(cloud) c = cloud_new();
    AUTO_OBJECT claim = claim_of(c, "a", LINUX, SMALL);
    launch(c, claim);
    struct trouble t = { EMBEDDED_CREATE, &node_kind, ERR_DENIED, 1000, 0 };
    embedded_set_faults(c->w->e, &(struct embedded_faults){ .before = make_trouble, .ctx = &t });
    const struct clock *clock = virtual_clock_port(c->w->time);
    for (int n = 0; n < 100; n++) {
        int64_t next = kwok_step(c->k), wait = next - clock_mono_ns(clock);
        EXPECT_TRUE(wait > 0 && wait <= 60 * SECOND_NS);
        virtual_clock_advance(c->w->time, wait);
    }
}

TEST(a_node_that_was_created_although_the_answer_was_an_error_is_not_created_twice)
{
    AUTO(cloud) c = cloud_new();
    AUTO_OBJECT claim = claim_of(c, "a", LINUX, SMALL);
    launch(c, claim);
    struct trouble t = { EMBEDDED_CREATE, &node_kind, ERR_UNAVAILABLE, 1, 0 };
    embedded_set_faults(c->w->e, &(struct embedded_faults){ .after = make_trouble, .ctx = &t });
    pass(c, 30);
    EXPECT_EQ(list_count(c), 1);
    pass(c, 1);
    EXPECT_EQ(kwok_step(c->k), INT64_MAX);
    EXPECT_EQ(node_count(c), 1);
    EXPECT_EQ(list_count(c), 1);
}

TEST(a_deletion_that_fails_half_way_is_finished_by_the_next)
{
    static const struct {
        enum embedded_verb verb;
        const struct kind *kind;
        enum err_kind error;
    } faults[] = {
        { EMBEDDED_GET, &node_kind, ERR_UNAVAILABLE },
        { EMBEDDED_PATCH, &node_kind, ERR_CONFLICT },
        { EMBEDDED_REMOVE, &node_kind, ERR_CONFLICT },
        { EMBEDDED_REMOVE, &node_kind, ERR_UNAVAILABLE },
        { EMBEDDED_REMOVE, &nodeclaim_kind, ERR_UNAVAILABLE },
    };
    for (size_t f = 0; f < KV_COUNT_OF(faults); f++) {
        AUTO(cloud) c = cloud_new();
        AUTO_OBJECT claim = claim_of(c, "a", LINUX, SMALL);
        struct instance i = launch(c, claim);
        AUTO_OBJECT stored = told(c, &i);
        pass(c, 30);
        object_unref(merge(c->w->store, &node_kind, i.node_name.p,
                           js("{'metadata':{'finalizers':['karpenter.sh/termination']}}")));
        struct trouble t = { faults[f].verb, faults[f].kind, faults[f].error, 1, 0 };
        struct embedded_faults hooks = { .before = make_trouble, .ctx = &t };
        embedded_set_faults(c->w->e, &hooks);
        struct err err = { 0 };
        EXPECT_ERR(c->p->delete_(c->p->ctx, nodeclaim_of(stored), &err), err, faults[f].error);
        terminate(c, stored);
        EXPECT_EQ(list_count(c), 0);
        AUTO_OBJECT node = get(c->w->store, &node_kind, i.node_name.p);
        EXPECT_TRUE(node->meta.deleted_us != 0);
    }
}

TEST(a_store_that_cannot_be_read_is_an_error_to_try_again_and_not_a_missing_instance)
{
    AUTO(cloud) c = cloud_new();
    AUTO_OBJECT claim = claim_of(c, "a", LINUX, SMALL);
    struct trouble t = { EMBEDDED_LIST, &nodeclaim_kind, ERR_UNAVAILABLE, 4, 0 };
    embedded_set_faults(c->w->e, &(struct embedded_faults){ .before = make_trouble, .ctx = &t });
    struct instance i;
    struct instances all;
    struct err err = { 0 };
    expect_refused(c, claim, LAUNCH_OTHER, "looking for launched claims");
    EXPECT_ERR(get_instance(c, STR("kwok://a"), &i, &err), err, ERR_UNAVAILABLE);
    EXPECT_ERR(c->p->list(c->p->ctx, &c->arena, &all, &err), err, ERR_UNAVAILABLE);
    EXPECT_EQ(kwok_step(c->k), SECOND_NS);
    EXPECT_EQ(kwok_step(c->k), INT64_MAX);
    launch(c, claim);
}

/* --- threads --- */

TEST(a_started_provider_makes_nodes_by_itself)
{
    AUTO(cloud) c = cloud_new();
    struct err err = { 0 };
    EXPECT_OK(kwok_start(c->k, &err), err);
    for (int n = 0; n < 5; n++) {
        char name[16];
        snprintf(name, sizeof name, "claim-%d", n);
        AUTO_OBJECT claim = claim_of(c, name, LINUX, SMALL);
        launch(c, claim);
    }
    EXPECT_EQ(node_count(c), 0);
    virtual_clock_advance(c->w->time, 30 * SECOND_NS);
    for (int spins = 0; node_count(c) < 5 && spins < 2000; spins++)
        usleep(1000);
    EXPECT_EQ(node_count(c), 5);
}

struct hand {
    struct cloud *c;
    int number;
    pthread_t thread;
};

#define CLAIMS_PER_HAND 20

/* Launches, launches again, and deletes every second one at some moment of its own. */
static void *work(void *ctx)
{
    struct hand *h = ctx;
    const struct cloud_provider *p = h->c->p;
    for (int n = 0; n < CLAIMS_PER_HAND; n++) {
        struct arena arena = { 0 };
        char name[32];
        struct instance first, second;
        struct launch_failure why;
        struct err err = { 0 };
        snprintf(name, sizeof name, "claim-%d-%d", h->number, n);
        AUTO_OBJECT claim = claim_of(h->c, name, LINUX, SMALL);
        KV_ASSERT(p->create(p->ctx, nodeclaim_of(claim), &arena, &first, &why, &err) == 0);
        KV_ASSERT(p->create(p->ctx, nodeclaim_of(claim), &arena, &second, &why, &err) == 0);
        KV_ASSERT(str_eq(first.provider_id, second.provider_id));
        virtual_clock_advance(h->c->w->time, SECOND_NS);
        if (n % 2) {
            KV_ASSERT(p->delete_(p->ctx, nodeclaim_of(claim), &err) < 0);
            KV_ASSERT(err.kind == ERR_NOT_FOUND);
        }
        arena_done(&arena);
    }
    return NULL;
}

TEST(many_threads_launch_and_delete_and_what_was_deleted_never_appears)
{
    AUTO(cloud) c = cloud_new();
    struct hand hands[4];
    struct err err = { 0 };
    EXPECT_OK(kwok_start(c->k, &err), err);
    for (int i = 0; i < 4; i++) {
        hands[i] = (struct hand){ .c = c, .number = i };
        EXPECT_EQ(pthread_create(&hands[i].thread, NULL, work, &hands[i]), 0);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(hands[i].thread, NULL);
    virtual_clock_advance(c->w->time, 60 * SECOND_NS);
    uint32_t kept = 4 * CLAIMS_PER_HAND / 2;
    for (int spins = 0; node_count(c) < kept && spins < 5000; spins++)
        usleep(1000);
    EXPECT_EQ(node_count(c), kept);
    EXPECT_EQ(list_count(c), kept);
}

/* Checkers are worth what they find. A small cluster is brought to rest, one rule is broken in its store
 * or its cloud behind the control plane's back, and exactly that must be said. Beside each stands what
 * looks like it and is allowed.
 */
#include "sim/invariants_testing.h"

/* --- 1 --- */

static const char *on_node(struct trial *t)
{
    return arena_strf(&t->arena, "'nodeName':'%.*s',", STR_ARG(t->node)).p;
}

TEST(a_node_that_holds_more_than_it_has_is_found)
{
    AUTO(trial) t = trial_new();
    create_pod(t, "small", on_node(t), "100m");
    expect_silence(look(t));
    create_pod(t, "large", on_node(t), "3");
    expect_finding(look(t), 1, "and its pods ask for 6200m");
}

TEST(pods_that_have_ended_take_no_room)
{
    AUTO(trial) t = trial_new();
    create_pod(t, "large", on_node(t), "3");
    patch(t, &pod_kind, STR("large"), true, js(t, "{'status':{'phase':'Succeeded'}}"));
    expect_silence(look(t));
}

/* No store moves a pod, so here is another one in which it is elsewhere. */
TEST(a_pod_that_is_bound_to_a_second_node_is_found)
{
    AUTO(trial) t = trial_new();
    AUTO(object_pool) pool = object_pool_new();
    AUTO(embedded) other = embedded_new((struct embedded_options){
        .clock = t->parts->clock, .pool = pool, .seed = 3, .auto_namespaces = true });
    AUTO_OBJECT pod = object_of(t, &pod_kind, "web");
    struct world_parts parts = *t->parts;
    struct embedded_loaded loaded;
    struct err err = { 0 };
    struct str text = arena_strf(&t->arena,
                                 "{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: "
                                 "default, uid: %.*s}, spec: {nodeName: other, containers: [{name: "
                                 "c, image: i}]}}\n",
                                 STR_ARG(pod->meta.uid));
    EXPECT_OK(embedded_load(other, text, &loaded, &err), err);
    parts.store = embedded_store(other);
    expect_finding(invariants_check(t->inv, &parts), 1, "and is on other");
}

TEST(a_pod_of_the_same_name_may_be_on_another_node)
{
    AUTO(trial) t = trial_new();
    struct err err = { 0 };
    struct delete_options now = { .grace_s = { .set = true, .value = 0 } };
    create(t, &node_kind, js(t, "{'metadata':{'name':'other'}}"));
    patch(t, &node_kind, STR("other"), true,
          js(t, "{'status':{'allocatable':{'cpu':'4','memory':'4Gi','pods':'9'}}}"));
    EXPECT_OK(store_remove(t->parts->store, ref_to(&pod_kind, STR("web")), &now, &err), err);
    create_pod(t, "web", "'nodeName':'other',", "1");
    expect_silence(look(t));
}

/* --- 2 --- */

TEST(an_instance_without_a_claim_is_found_once_garbage_collection_has_had_its_time)
{
    AUTO(trial) t = trial_new();
    force_delete_claim(t);
    forget(t);
    expect_silence(look(t));
    freeze(t, 15 * DURATION_MINUTE);
    expect_silence(look(t));
    freeze(t, DURATION_SECOND);
    expect_finding(look(t), 2, "has no NodeClaim for more than 15 minutes");
}

/* Its Node goes with the claim. If that takes leave in its turn, the instance ends by that; else
 * garbage collection is all there is. */
TEST(an_instance_without_a_claim_that_is_collected_in_time_is_no_harm)
{
    for (int node_goes_at_once = 0; node_goes_at_once <= 1; node_goes_at_once++) {
        AUTO(trial) t = trial_new();
        if (node_goes_at_once)
            release_node(t);
        force_delete_claim(t);
        forget(t);
        expect_silence(look(t));
        EXPECT_EQ(count_of(t, &node_kind), node_goes_at_once ? 0 : 1);
        for (int minute = 0; minute < 30; minute++) {
            EXPECT_TRUE(world_live(t->world, DURATION_MINUTE));
            expect_silence(look(t));
        }
        /* The pod that stood on it was nobody's and is gone with it. */
        EXPECT_EQ(instance_count(t), 0);
        expect_silence(invariants_check_rest(t->inv, t->parts));
    }
}

TEST(a_claim_whose_instance_is_gone_is_found_once_garbage_collection_has_had_its_time)
{
    AUTO(trial) t = trial_new();
    EXPECT_TRUE(sim_cloud_kill_instance(t->parts->cloud, t->provider_id));
    freeze(t, DURATION_MINUTE);
    sim_cloud_step(t->parts->cloud); /* the Node no longer reports */
    expect_silence(look(t));
    freeze(t, 15 * DURATION_MINUTE + DURATION_SECOND);
    expect_finding(look(t), 2, "has no instance for more than 15 minutes");
}

TEST(a_claim_whose_node_reports_is_not_without_an_instance)
{
    AUTO(trial) t = trial_new();
    EXPECT_TRUE(sim_cloud_kill_instance(t->parts->cloud, t->provider_id));
    expect_silence(look(t));
    freeze(t, DURATION_HOUR);
    expect_silence(look(t));
}

TEST(an_instance_that_dies_and_is_missed_by_the_control_plane_is_no_harm)
{
    AUTO(trial) t = trial_new();
    EXPECT_TRUE(sim_cloud_kill_instance(t->parts->cloud, t->provider_id));
    for (int minute = 0; minute < 30; minute++) {
        EXPECT_TRUE(world_live(t->world, DURATION_MINUTE));
        expect_silence(look(t));
    }
    EXPECT_EQ(count_of(t, &nodeclaim_kind), 0);
}

/* --- 3 --- */

TEST(a_second_instance_of_one_claim_is_found)
{
    AUTO(trial) t = trial_new();
    AUTO_OBJECT claim = only(t, &nodeclaim_kind);
    AUTO(sim_cloud) other = sim_cloud_new((struct sim_cloud_options){
        .clock = t->parts->clock, .store = t->parts->store, .seed = 9 });
    struct nodeclaim twin = *nodeclaim_of(claim);
    struct world_parts parts = *t->parts;
    struct launch_failure why;
    struct instance instance;
    struct err err = { 0 };
    twin.object.meta.name = STR("twin"); /* of the same uid, which is the token */
    twin.status.provider_id = STR("");
    const struct cloud_provider *provider = sim_cloud_provider(other);
    EXPECT_OK(provider->create(provider->ctx, &twin, &t->arena, &instance, &why, &err), err);
    parts.cloud = other;
    expect_finding(invariants_check(t->inv, &parts), 3, "claim twin had instance");
}

TEST(a_claim_that_changes_its_instance_is_found)
{
    AUTO(trial) t = trial_new();
    patch(t, &nodeclaim_kind, t->claim, true, js(t, "{'status':{'providerID':'sim://another'}}"));
    expect_finding(look(t), 3, "and has sim://another");
}

/* --- 4 --- */

TEST(a_claim_beyond_the_limits_of_its_pool_is_found)
{
    AUTO(trial) t = trial_new();
    create_claim_of_pool(t, "full", 16);
    expect_silence(look(t)); /* 4 and 16 of 20 */
    patch(t, &nodeclaim_kind, STR("full"), true, js(t, "{'status':{'capacity':{'cpu':'17'}}}"));
    expect_finding(look(t), 4, "NodePool web may have 20 of cpu and has 21");
}

TEST(one_node_more_than_a_pool_may_have_is_found)
{
    AUTO(trial) t = trial_new();
    create_claim_of_pool(t, "second", 1);
    create_claim_of_pool(t, "third", 1);
    expect_silence(look(t));
    create_claim_of_pool(t, "fourth", 1);
    expect_finding(look(t), 4, "NodePool web may have 3 of nodes and has 4");
}

TEST(a_claim_that_is_not_launched_counts_with_what_it_asks_for)
{
    AUTO(trial) t = trial_new();
    create_claim_of_pool(t, "full", 16);
    create_claim_of_pool(t, "asking", 1);
    patch(t, &nodeclaim_kind, STR("asking"), true, js(t, "{'status':{'capacity':null}}"));
    expect_finding(look(t), 4, "has 21");
}

TEST(claims_of_a_pool_that_is_no_more_do_not_count)
{
    AUTO(trial) t = trial_new();
    create_claim(t, "old", "another-uid", 100);
    expect_silence(look(t));
}

TEST(a_limit_that_is_lowered_below_what_is_there_is_nobodys_fault)
{
    AUTO(trial) t = trial_new();
    patch(t, &nodepool_kind, STR("web"), false, js(t, "{'spec':{'limits':{'cpu':'1'}}}"));
    expect_silence(look(t));
    freeze(t, 10 * DURATION_MINUTE);
    expect_silence(look(t));
}

TEST(a_claim_that_comes_long_after_the_limit_was_lowered_is_found)
{
    AUTO(trial) t = trial_new();
    patch(t, &nodepool_kind, STR("web"), false, js(t, "{'spec':{'limits':{'cpu':'1'}}}"));
    expect_silence(look(t));
    freeze(t, 30 * DURATION_SECOND);
    create_claim_of_pool(t, "decided-before", 1);
    expect_silence(look(t));
    freeze(t, 60 * DURATION_SECOND);
    create_claim_of_pool(t, "too-late", 1);
    expect_finding(look(t), 4, "NodePool web may have 1 of cpu and has 6");
}

TEST(an_edit_that_leaves_the_limits_alone_is_no_excuse)
{
    AUTO(trial) t = trial_new();
    patch(t, &nodepool_kind, STR("web"), false, js(t, "{'spec':{'weight':7}}"));
    expect_silence(look(t));
    create_claim_of_pool(t, "large", 17);
    expect_finding(look(t), 4, "has 21");
}

/* --- 5: claims --- */

static void put_conditions(struct trial *t, const char *launched, const char *registered,
                           const char *initialized)
{
    patch(t, &nodeclaim_kind, t->claim, true,
          js(t,
             "{'status':{'conditions':["
             "{'type':'Launched','status':'%s','reason':'x','message':'',"
             "'lastTransitionTime':'2026-01-01T00:00:00Z'},"
             "{'type':'Registered','status':'%s','reason':'x','message':'',"
             "'lastTransitionTime':'2026-01-01T00:00:00Z'},"
             "{'type':'Initialized','status':'%s','reason':'x','message':'',"
             "'lastTransitionTime':'2026-01-01T00:00:00Z'}]}}",
             launched, registered, initialized));
}

TEST(what_a_claim_was_it_stays)
{
    static const struct {
        const char *launched, *registered, *initialized, *words;
    } rows[] = {
        { "Unknown", "True", "True", "took back that it was launched" },
        { "True", "Unknown", "True", "took back that it was registered" },
        { "True", "True", "False", "took back that it was initialized" },
        { "True", "True", "True", NULL },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        AUTO(trial) t = trial_new();
        put_conditions(t, rows[i].launched, rows[i].registered, rows[i].initialized);
        if (rows[i].words)
            expect_finding(look(t), 5, rows[i].words);
        else
            expect_silence(look(t));
    }
}

TEST(conditions_that_are_no_longer_there_are_taken_back_too)
{
    AUTO(trial) t = trial_new();
    patch(t, &nodeclaim_kind, t->claim, true, js(t, "{'status':{'conditions':[]}}"));
    expect_finding(look(t), 5, "took back that it was launched");
}

TEST(a_claim_is_launched_then_registered_then_initialized)
{
    static const struct {
        const char *launched, *registered, *initialized, *words;
    } rows[] = {
        { "False", "True", "False", "is registered and was never launched" },
        { "True", "Unknown", "True", "is initialized and was never registered" },
        { "True", "True", "Unknown", NULL },
        { "True", "Unknown", "Unknown", NULL },
        { "Unknown", "Unknown", "Unknown", NULL },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        AUTO(trial) t = trial_new();
        put_conditions(t, rows[i].launched, rows[i].registered, rows[i].initialized);
        forget(t);
        if (rows[i].words)
            expect_finding(look(t), 5, rows[i].words);
        else
            expect_silence(look(t));
    }
}

/* --- 5: pools --- */

static void put_health(struct trial *t, const char *status, int generation)
{
    patch(t, &nodepool_kind, STR("web"), true,
          js(t,
             "{'status':{'conditions':[{'type':'NodeRegistrationHealthy','status':'%s',"
             "'reason':'x','message':'','lastTransitionTime':'2026-01-01T00:00:00Z',"
             "'observedGeneration':%d}]}}",
             status, generation));
}

static int64_t pool_generation(struct trial *t)
{
    AUTO_OBJECT pool = only(t, &nodepool_kind);
    return pool->meta.generation;
}

TEST(registration_health_changes_by_first_success)
{
    static const struct {
        const char *from, *to;
        bool may;
    } rows[] = {
        { "Unknown", "True", true },   { "Unknown", "False", true }, { "False", "True", true },
        { "True", "True", true },      { "True", "False", false },   { "True", "Unknown", false },
        { "False", "Unknown", false },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        AUTO(trial) t = trial_new();
        int generation = (int)pool_generation(t);
        put_health(t, rows[i].from, generation);
        forget(t);
        expect_silence(look(t));
        put_health(t, rows[i].to, generation);
        if (rows[i].may)
            expect_silence(look(t));
        else
            expect_finding(look(t), 5, "NodeRegistrationHealthy went from");
    }
}

TEST(registration_health_starts_anew_when_the_pool_is_edited)
{
    AUTO(trial) t = trial_new();
    put_health(t, "True", (int)pool_generation(t));
    expect_silence(look(t));
    edit_pool(t);
    put_health(t, "Unknown", (int)pool_generation(t));
    expect_silence(look(t));
    put_health(t, "False", (int)pool_generation(t));
    expect_silence(look(t));
}

TEST(registration_health_starts_anew_when_the_class_is_edited)
{
    AUTO(trial) t = trial_new();
    put_health(t, "True", (int)pool_generation(t));
    expect_silence(look(t));
    put_health(t, "Unknown", (int)pool_generation(t));
    patch(t, &nodepool_kind, STR("web"), true,
          js(t, "{'status':{'nodeClassObservedGeneration':2}}"));
    expect_silence(look(t));
}

TEST(registration_health_of_a_generation_that_never_was_is_found)
{
    AUTO(trial) t = trial_new();
    put_health(t, "Unknown", (int)pool_generation(t) + 1);
    expect_finding(look(t), 5, "NodeRegistrationHealthy is of generation");
}

TEST(registration_health_does_not_vanish)
{
    AUTO(trial) t = trial_new();
    put_health(t, "True", (int)pool_generation(t));
    expect_silence(look(t));
    patch(t, &nodepool_kind, STR("web"), true, js(t, "{'status':{'conditions':[]}}"));
    expect_finding(look(t), 5, "NodeRegistrationHealthy went from True to unset");
}

TEST(a_window_of_results_may_turn_a_healthy_pool_unhealthy)
{
    AUTO(trial) t = trial_new();
    patch(t, &nodepool_kind, STR("web"), false,
          js(t, "{'metadata':{'annotations':{'karve.io/registration-health-policy':'window'}}}"));
    put_health(t, "True", (int)pool_generation(t));
    expect_silence(look(t));
    put_health(t, "False", (int)pool_generation(t));
    expect_silence(look(t));
    put_health(t, "Unknown", (int)pool_generation(t));
    expect_silence(look(t));
}

/* --- 6 --- */

TEST(a_claim_with_an_instance_and_no_finalizer_is_found)
{
    AUTO(trial) t = trial_new();
    patch(t, &nodeclaim_kind, t->claim, false, js(t, "{'metadata':{'finalizers':null}}"));
    expect_finding(look(t), 6, "has an instance and no finalizer");
}

TEST(a_claim_without_an_instance_needs_no_finalizer)
{
    AUTO(trial) t = trial_new();
    create_claim_of_pool(t, "new", 1);
    patch(t, &nodeclaim_kind, STR("new"), false, js(t, "{'metadata':{'finalizers':null}}"));
    expect_silence(look(t));
}

TEST(a_claim_that_goes_before_its_instance_is_found)
{
    AUTO(trial) t = trial_new();
    force_delete_claim(t);
    expect_finding(look(t), 6, "went before its instance");
}

/* --- all of them --- */

TEST(the_first_finding_stays)
{
    AUTO(trial) t = trial_new();
    patch(t, &nodeclaim_kind, t->claim, false, js(t, "{'metadata':{'finalizers':null}}"));
    expect_finding(look(t), 6, "no finalizer");
    patch(t, &nodeclaim_kind, t->claim, true, js(t, "{'status':{'conditions':[]}}"));
    expect_finding(look(t), 6, "no finalizer");
    EXPECT_TRUE(look(t)->at_ns > 0);
}

/* The rules about a cluster at rest, and about the end of nodes. */
#include "sim/invariants_testing.h"

/* --- 7 --- */

static const struct finding *rest(struct trial *t)
{
    return invariants_check_rest(t->inv, t->parts);
}

TEST(a_cluster_at_rest_is_at_rest)
{
    AUTO(trial) t = trial_new();
    expect_silence(rest(t));
    expect_silence(rest(t)); /* looking has changed nothing */
}

TEST(deletions_that_do_not_end_are_found_at_rest)
{
    AUTO(trial) pod = trial_new();
    delete_(pod, &pod_kind, STR("web"));
    expect_finding(rest(pod), 7, "Pod web is still being deleted");

    AUTO(trial) claim = trial_new();
    delete_(claim, &nodeclaim_kind, claim->claim);
    expect_finding(rest(claim), 7, "NodeClaim web-");

    AUTO(trial) node = trial_new();
    delete_(node, &node_kind, node->node);
    expect_finding(rest(node), 7, "is still being deleted");
}

TEST(a_claim_that_has_lived_too_long_is_found_at_rest)
{
    AUTO(trial) t = trial_new();
    freeze(t, 23 * DURATION_HOUR);
    expect_silence(look(t));
    freeze(t, DURATION_HOUR);
    expect_finding(rest(t), 7, "has expired");
}

TEST(a_claim_that_never_gets_a_node_is_found_at_rest)
{
    AUTO(trial) t = trial_new();
    create_claim_of_pool(t, "waits", 1);
    expect_finding(rest(t), 7, "NodeClaim waits is not initialized");
}

TEST(an_instance_that_nobody_claims_is_found_at_rest)
{
    AUTO(trial) t = trial_new();
    release_node(t);
    force_delete_claim(t); /* and with it goes the Node */
    forget(t);
    expect_finding(rest(t), 7, "instance sim://");
}

TEST(a_claim_whose_instance_is_gone_is_found_at_rest)
{
    AUTO(trial) t = trial_new();
    EXPECT_TRUE(sim_cloud_kill_instance(t->parts->cloud, t->provider_id));
    expect_finding(rest(t), 7, "has no instance");
}

TEST(a_claim_whose_node_is_gone_is_found_at_rest)
{
    AUTO(trial) t = trial_new();
    release_node(t);
    delete_(t, &node_kind, t->node);
    expect_finding(rest(t), 7, "has no Node");
}

TEST(a_node_that_pods_are_kept_from_is_found_at_rest)
{
    static const char *const taints[] = {
        "{'key':'karpenter.sh/unregistered','effect':'NoExecute'}",
        "{'key':'karpenter.sh/disrupted','effect':'NoSchedule'}",
    };
    for (size_t i = 0; i < KV_COUNT_OF(taints); i++) {
        AUTO(trial) t = trial_new();
        patch(t, &node_kind, t->node, false, js(t, "{'spec':{'taints':[%s]}}", taints[i]));
        expect_finding(rest(t), 7, "is closed to pods");
    }
}

TEST(a_node_without_a_machine_is_found_at_rest)
{
    AUTO(trial) t = trial_new();
    create(t, &node_kind,
           js(t, "{'metadata':{'name':'ghost'},'spec':{'providerID':'sim://ghost'}}"));
    expect_finding(rest(t), 7, "Node ghost is left behind");
}

TEST(a_node_of_another_cloud_is_none_of_our_business)
{
    AUTO(trial) t = trial_new();
    create(t, &node_kind,
           js(t, "{'metadata':{'name':'old'},'spec':{'providerID':'aws:///zone/i-1'}}"));
    expect_silence(rest(t));
}

/* As the scheduler leaves a pod that it has found no place for. */
static void create_pending(struct trial *t, const char *cpu)
{
    create_pod(t, "pending", "", cpu);
    patch(t, &pod_kind, STR("pending"), true,
          js(t,
             "{'status':{'phase':'Pending','conditions':[{'type':'PodScheduled','status':'False',"
             "'reason':'Unschedulable'}]}}"));
}

TEST(a_pod_that_is_pending_although_a_pool_has_a_node_for_it_is_found_at_rest)
{
    AUTO(trial) t = trial_new();
    create_pending(t, "2");
    expect_finding(rest(t), 7, "pod pending is pending although NodePool web has a node for it");
}

TEST(a_pod_that_is_pending_although_a_node_has_place_is_found_at_rest)
{
    AUTO(trial) t = trial_new();
    create_pending(t, "100m");
    expect_finding(rest(t), 7, "pod pending is pending although there is a node for it");
}

TEST(a_pod_that_fits_nowhere_may_be_pending_for_ever)
{
    AUTO(trial) t = trial_new();
    create_pending(t, "200");
    EXPECT_TRUE(world_settle(t->world, 20 * DURATION_MINUTE, 2 * DURATION_HOUR));
    expect_silence(rest(t));
}

TEST(a_pod_that_the_limits_of_every_pool_forbid_may_be_pending_for_ever)
{
    AUTO(trial) t = trial_new();
    patch(t, &nodepool_kind, STR("web"), false, js(t, "{'spec':{'limits':{'cpu':'4'}}}"));
    create_pending(t, "3");
    EXPECT_TRUE(world_settle(t->world, 20 * DURATION_MINUTE, 2 * DURATION_HOUR));
    expect_silence(rest(t));
}

TEST(registration_health_of_what_the_pool_was_is_found_at_rest)
{
    AUTO(trial) t = trial_new();
    edit_pool(t);
    expect_finding(rest(t), 7, "NodeRegistrationHealthy is not of its generation");
}

TEST(a_control_plane_that_still_has_something_to_write_is_found_at_rest)
{
    AUTO(trial) t = trial_new();
    patch(t, &nodepool_kind, STR("web"), false,
          js(t, "{'metadata':{'annotations':{'karpenter.sh/nodepool-hash':'1'}}}"));
    expect_finding(rest(t), 7, "reconciling everything again wrote");
}

/* --- 8 --- */

static void end_instance(struct trial *t)
{
    const struct cloud_provider *provider = sim_cloud_provider(t->parts->cloud);
    AUTO_OBJECT claim = only(t, &nodeclaim_kind);
    struct err err = { 0 };
    EXPECT_OK(provider->delete_(provider->ctx, nodeclaim_of(claim), &err), err);
}

TEST(an_instance_that_is_ended_while_a_pod_is_on_its_node_is_found)
{
    AUTO(trial) t = trial_new();
    end_instance(t);
    expect_finding(look(t), 8, "is ended while pod web is on its node");
}

TEST(pods_that_stay_whatever_happens_hold_up_no_end)
{
    AUTO(trial) t = trial_new();
    struct err err = { 0 };
    struct delete_options now = { .grace_s = { .set = true, .value = 0 } };
    EXPECT_OK(store_remove(t->parts->store, ref_to(&pod_kind, STR("web")), &now, &err), err);
    EXPECT_EQ(count_of(t, &pod_kind), 1); /* the agent, which tolerates everything */
    end_instance(t);
    expect_silence(look(t));
}

TEST(once_its_time_is_over_a_node_ends_with_all_its_pods)
{
    AUTO(trial) t = trial_new();
    delete_(t, &nodeclaim_kind, t->claim);
    freeze(t, 10 * DURATION_MINUTE);
    end_instance(t);
    expect_silence(look(t));
}

TEST(a_claim_that_is_deleted_ends_without_a_rule_being_broken_at_any_second)
{
    AUTO(trial) t = trial_new();
    delete_(t, &nodeclaim_kind, t->claim);
    for (int second = 0; second < 120; second++) {
        EXPECT_TRUE(world_live(t->world, DURATION_SECOND));
        expect_silence(look(t));
    }
    EXPECT_EQ(instance_count(t), 0);
    expect_silence(rest(t));
}

#include "codec/duration.h"
#include "control/termination_testing.h"

/* --- how it begins --- */

TEST(a_node_that_is_not_being_deleted_is_left_alone)
{
    AUTO(scene) x = scene_new("", false);
    add_pod(x, "a", "", "");
    uint64_t version = embedded_version(x->s->w->e);
    pass(x, 60);
    EXPECT_EQ(embedded_version(x->s->w->e), version);
    EXPECT_EQ(x->cloud.gets + x->cloud.deletes, 0);
}

TEST(a_node_that_is_deleted_takes_its_claim_with_it)
{
    AUTO(scene) x = scene_new("", false);
    add_pod(x, "a", DO_NOT_DISRUPT("true"), "");
    delete_node(x);
    AUTO_OBJECT claim = get(x->s->w->store, &nodeclaim_kind, "claim-1");
    EXPECT_TRUE(claim->meta.deleted_us != 0);
}

TEST(a_draining_node_takes_no_pods_and_leaves_the_load_balancers)
{
    AUTO(scene) x = scene_new("", false);
    object_unref(
        merge(x->s->w->store, &node_kind, NODE,
              js("{'spec':{'taints':[{'key':'karpenter.sh/disrupted','effect':'NoExecute'},"
                 "{'key':'other','value':'v','effect':'NoExecute',"
                 "'timeAdded':'2026-01-02T02:00:00Z'}]}}")));
    add_pod(x, "a", DO_NOT_DISRUPT("true"), "");
    delete_node(x);

    AUTO_OBJECT object = get(x->s->w->store, &node_kind, NODE);
    const struct node *node = node_of(object);
    EXPECT_EQ(node->spec.taints.count, 2);
    EXPECT_TRUE(node_taint(node, STR("karpenter.sh/disrupted"), EFFECT_NO_SCHEDULE));
    const struct taint *other = node_taint(node, STR("other"), EFFECT_NO_EXECUTE);
    EXPECT_STR(other->value, "v");
    EXPECT_EQ(other->time_added_us, START_US - 3600 * SECOND_US);
    EXPECT_STR(str_map_get(&object->meta.labels,
                           STR("node.kubernetes.io/exclude-from-external-load-balancers")),
               "karpenter");
}

TEST(a_node_that_is_not_ready_and_has_no_instance_ends_at_once_without_evictions)
{
    AUTO(scene) x = scene_new("", false);
    add_pod(x, "a", "", "");
    set_node_condition(x, NODE, "Ready", "Unknown");
    x->cloud.is_there = false;
    delete_node(x);
    EXPECT_FALSE(has(x, &node_kind, NODE));
    EXPECT_FALSE(is_going(x, "a"));
}

TEST(a_node_that_loses_its_instance_while_a_pod_cannot_leave_ends)
{
    AUTO(scene) x = scene_new("", false);
    add_pod(x, "a", DO_NOT_DISRUPT("true"), "");
    delete_node(x);
    pass(x, 30);
    EXPECT_TRUE(has(x, &node_kind, NODE));
    x->cloud.is_there = false;
    pass(x, 30); /* ready still: nobody knows better */
    EXPECT_TRUE(has(x, &node_kind, NODE));
    set_node_condition(x, NODE, "Ready", "Unknown");
    settle(x->s);
    EXPECT_FALSE(has(x, &node_kind, NODE));
}

TEST(a_node_that_is_not_ready_is_drained_while_its_instance_is_there_or_the_cloud_cannot_tell)
{
    AUTO(scene) x = scene_new("", false);
    add_pod(x, "a", "", "");
    set_node_condition(x, NODE, "Ready", "False");
    delete_node(x);
    EXPECT_EQ(x->cloud.gets > 0, true);
    EXPECT_TRUE(is_going(x, "a"));
    EXPECT_TRUE(has(x, &node_kind, NODE));
}

TEST(a_claim_of_another_providers_class_keeps_its_node_from_us)
{
    AUTO(scene) x = scene_new("", false);
    static const struct node_class_kind other[] = { { "karpenter.k8s.aws", "EC2NodeClass" } };
    x->cloud.port.node_classes = other;
    stage_restart(x->s);
    add_pod(x, "a", "", "");
    delete_node(x);
    pass(x, 30);
    EXPECT_FALSE(is_going(x, "a"));
    EXPECT_EQ(x->cloud.gets + x->cloud.deletes, 0);
    EXPECT_TRUE(has(x, &node_kind, NODE));
}

/* --- draining --- */

TEST(pods_leave_tier_by_tier)
{
    AUTO(scene) x = scene_new("", false);
    x->kubelet_is_slow = true;
    add_pod(x, "plain", "", "");
    add_pod(x, "daemon", BY_DAEMON_SET, "");
    add_pod(x, "critical", "", SYSTEM_CRITICAL);
    add_pod(x, "both", BY_DAEMON_SET, SYSTEM_CRITICAL);
    delete_node(x);

    static const char *const order[] = { "plain", "daemon", "critical", "both" };
    for (size_t i = 0; i < KV_COUNT_OF(order); i++) {
        for (size_t k = i; k < KV_COUNT_OF(order); k++)
            EXPECT_EQ(is_going(x, order[k]), k == i);
        EXPECT_Z(condition_words(x, "Drained"), "Unknown Draining");
        pass(x, 31);
        EXPECT_FALSE(has(x, &pod_kind, order[i]));
    }
    pass(x, 60);
    EXPECT_FALSE(has(x, &node_kind, NODE));
}

TEST(a_drained_node_is_held_for_five_seconds_from_the_start_of_its_drain)
{
    AUTO(scene) x = scene_new("", false);
    virtual_clock_advance(x->s->w->time, SECOND_NS / 2); /* stamps have whole seconds */
    delete_node(x);
    stage_pass(x->s, 4);
    EXPECT_Z(condition_words(x, "Drained"), "Unknown Draining");
    EXPECT_EQ(x->cloud.deletes, 0);
    stage_pass(x->s, 1);
    EXPECT_Z(condition_words(x, "Drained"), "True Drained");
    EXPECT_EQ(x->cloud.deletes, 1);
}

TEST(a_pod_that_comes_late_is_drained_before_the_node_goes)
{
    AUTO(scene) x = scene_new("", false);
    delete_node(x);
    stage_pass(x->s, 3);
    add_pod(x, "late", "", "");
    settle(x->s);
    EXPECT_TRUE(is_going(x, "late"));
    stage_pass(x->s, 10);
    EXPECT_EQ(x->cloud.deletes, 0);
}

TEST(pods_that_tolerate_the_taint_and_mirror_pods_stay_to_the_end)
{
    AUTO(scene) x = scene_new("", false);
    add_pod(x, "agent", BY_DAEMON_SET, TOLERATES_ALL);
    add_pod(x, "static", BY_NODE, "");
    delete_node(x);
    pass(x, 60);
    EXPECT_FALSE(has(x, &node_kind, NODE));
    EXPECT_FALSE(is_going(x, "agent"));
    EXPECT_FALSE(is_going(x, "static"));
}

TEST(a_pod_that_is_stuck_is_given_up_a_minute_after_its_grace)
{
    AUTO(scene) x = scene_new("", false);
    x->kubelet_is_dead = true;
    add_pod(x, "stuck", "", ",'terminationGracePeriodSeconds':13");
    add_pod(x, "daemon", BY_DAEMON_SET, "");
    delete_node(x);
    EXPECT_TRUE(is_going(x, "stuck"));
    pass(x, 72); /* 13 of grace, 60 more */
    EXPECT_FALSE(is_going(x, "daemon"));
    pass(x, 1);
    EXPECT_TRUE(is_going(x, "daemon"));
    pass(x, 120);
    EXPECT_FALSE(has(x, &node_kind, NODE));
}

TEST(a_new_pod_under_an_evicted_ones_name_is_not_evicted_for_it)
{
    AUTO(scene) x = scene_new("", false);
    add_pod(x, "web-0", "", "");
    delete_node(x);
    kubelet(x);
    make_node(x->s->w->store, "node-2");
    object_unref(make(x->s->w->store, &pod_kind,
                      js("{'metadata':{'name':'web-0'},'spec':{'nodeName':'node-2',"
                         "'containers':[{'name':'c','image':'i'}]}}")));
    pass(x, 60);
    EXPECT_FALSE(has(x, &node_kind, NODE));
    EXPECT_FALSE(is_going(x, "web-0"));
}

/* --- what protects pods --- */

TEST(do_not_disrupt_holds_a_drain_until_it_is_taken_away)
{
    AUTO(scene) x = scene_new("", false);
    add_pod(x, "a", DO_NOT_DISRUPT("true"), "");
    delete_node(x);
    pass(x, 600);
    EXPECT_FALSE(is_going(x, "a"));
    EXPECT_TRUE(events(x, "FailedDraining", NODE) <= 6); /* one in two minutes */
    object_unref(merge(x->s->w->store, &pod_kind, "a",
                       js("{'metadata':{'annotations':{'karpenter.sh/do-not-disrupt':null}}}")));
    settle(x->s);
    EXPECT_TRUE(is_going(x, "a"));
}

TEST(do_not_disrupt_with_a_duration_holds_a_drain_until_that_is_over)
{
    AUTO(scene) x = scene_new("", false);
    add_pod(x, "a", DO_NOT_DISRUPT("3m7s"), "");
    delete_node(x);
    pass(x, 186);
    EXPECT_FALSE(is_going(x, "a"));
    EXPECT_EQ(events(x, "DoNotDisruptUntil", "a"), 1);
    EXPECT_EQ(events(x, "DoNotDisruptGracePeriodElapsed", "a"), 0);
    stage_pass(x->s, 1);
    EXPECT_TRUE(is_going(x, "a"));
    EXPECT_EQ(events(x, "DoNotDisruptGracePeriodElapsed", "a"), 1);
}

TEST(a_do_not_disrupt_that_makes_no_sense_is_ignored_and_told_of)
{
    AUTO(scene) x = scene_new("", false);
    add_pod(x, "a", DO_NOT_DISRUPT("please"), "");
    delete_node(x);
    EXPECT_TRUE(is_going(x, "a"));
    EXPECT_EQ(events(x, "InvalidDoNotDisruptAnnotation", "a"), 1);
}

/* --- the deadline --- */

TEST(the_deadline_of_the_claim_forces_pods_that_are_protected)
{
    AUTO(scene) x = scene_new("'terminationGracePeriod':'10m',", true);
    x->kubelet_is_slow = true;
    object_unref(make(x->s->w->store, &pdb_kind,
                      js("{'metadata':{'name':'b'},'spec':{'minAvailable':'100%%',"
                         "'selector':{'matchLabels':{'app':'web'}}}}")));
    add_pod(x, "blocked", "", "");
    add_pod(x, "kept", DO_NOT_DISRUPT("true"), ",'terminationGracePeriodSeconds':120");
    add_pod(x, "critical", "", SYSTEM_CRITICAL);
    delete_node(x);
    EXPECT_EQ(events(x, "TerminationGracePeriodExpiring", NODE), 1);
    EXPECT_EQ(events(x, "TerminationGracePeriodExpiring", "claim-1"), 1);

    pass(x, 600 - 121);
    EXPECT_FALSE(is_going(x, "kept"));
    pass(x, 2);
    AUTO_OBJECT kept = get(x->s->w->store, &pod_kind, "kept");
    EXPECT_EQ(kept->meta.deleted_us, START_US + 600 * SECOND_US);
    EXPECT_EQ(events(x, "Disrupted", "kept"), 1);
    EXPECT_FALSE(is_going(x, "blocked"));
    pass(x, 90);
    EXPECT_TRUE(is_going(x, "blocked"));
    EXPECT_TRUE(is_going(x, "critical")); /* of a later tier */
    pass(x, 60);
    EXPECT_FALSE(has(x, &node_kind, NODE));
}

TEST(a_deadline_in_the_past_gives_pods_a_second)
{
    AUTO(scene) x = scene_new("", false);
    add_pod(x, "a", DO_NOT_DISRUPT("true"), "");
    object_unref(merge(x->s->w->store, &nodeclaim_kind, "claim-1",
                       js("{'metadata':{'annotations':{"
                          "'karpenter.sh/nodeclaim-termination-timestamp':"
                          "'2026-01-01T00:00:00Z'}}}")));
    delete_node(x);
    AUTO_OBJECT pod = get(x->s->w->store, &pod_kind, "a");
    EXPECT_EQ(pod->meta.deletion_grace_s.value, 1);
}

TEST(a_pod_that_is_ending_already_is_made_to_end_before_the_deadline)
{
    AUTO(scene) x = scene_new("'terminationGracePeriod':'1m',", true);
    x->kubelet_is_slow = true;
    add_pod(x, "slow", "", ",'terminationGracePeriodSeconds':3600");
    remove_it(x->s->w->store, &pod_kind, "slow");
    delete_node(x);
    AUTO_OBJECT pod = get(x->s->w->store, &pod_kind, "slow");
    EXPECT_EQ(pod->meta.deleted_us, START_US + 60 * SECOND_US);
    pass(x, 90);
    EXPECT_FALSE(has(x, &node_kind, NODE));
}

/* --- volumes --- */

static void attach(struct scene *x, const char *name, const char *volume)
{
    object_unref(make(x->s->w->store, &volume_attachment_kind,
                      js("{'metadata':{'name':'%s'},'spec':{'attacher':'ebs','nodeName':'" NODE "',"
                         "'source':{%s%s%s}}}",
                         name, volume ? "'persistentVolumeName':'" : "", volume ? volume : "",
                         volume ? "'" : "")));
}

static void add_volume_claim(struct scene *x, const char *name, const char *volume)
{
    object_unref(make(x->s->w->store, &pvc_kind,
                      js("{'metadata':{'name':'%s'},'spec':{'accessModes':['ReadWriteOnce'],"
                         "'resources':{'requests':{'storage':'1Gi'}},'volumeName':'%s'}}",
                         name, volume)));
}

TEST(the_instance_is_kept_while_volumes_of_pods_that_left_are_attached)
{
    AUTO(scene) x = scene_new("", false);
    attach(x, "va-1", "pv-1");
    delete_node(x);
    pass(x, 300);
    EXPECT_EQ(x->cloud.deletes, 0);
    EXPECT_Z(condition_words(x, "Drained"), "True Drained");
    EXPECT_Z(condition_words(x, "VolumesDetached"), "Unknown AwaitingVolumeDetachment");
    EXPECT_TRUE(events(x, "AwaitingVolumeDetachment", NODE) >= 1);
    remove_it(x->s->w->store, &volume_attachment_kind, "va-1");
    settle(x->s);
    EXPECT_Z(condition_words(x, "VolumesDetached"), "True VolumesDetached");
    EXPECT_EQ(x->cloud.deletes, 1);
}

TEST(volumes_of_pods_that_stay_and_volumes_that_are_not_persistent_are_not_waited_for)
{
    AUTO(scene) x = scene_new("", false);
    add_volume_claim(x, "logs", "pv-2");
    add_pod(x, "agent", "",
            TOLERATES_ALL ",'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'logs'}}]");
    attach(x, "va-2", "pv-2");
    object_unref(make(x->s->w->store, &volume_attachment_kind,
                      js("{'metadata':{'name':'inline'},'spec':{'attacher':'ebs','nodeName':'" NODE
                         "','source':{'inlineVolumeSpec':{}}}}")));
    delete_node(x);
    pass(x, 60);
    EXPECT_FALSE(has(x, &node_kind, NODE));
}

TEST(volumes_are_not_waited_for_beyond_the_deadline)
{
    AUTO(scene) x = scene_new("'terminationGracePeriod':'2m',", true);
    attach(x, "va-1", "pv-1");
    delete_node(x);
    pass(x, 119);
    EXPECT_EQ(x->cloud.deletes, 0);
    pass(x, 2);
    EXPECT_EQ(x->cloud.deletes, 1);
    EXPECT_Z(condition_words(x, "VolumesDetached"), "False TerminationGracePeriodElapsed");
}

/* --- the end --- */

TEST(the_instance_is_deleted_until_the_cloud_knows_it_no_more)
{
    AUTO(scene) x = scene_new("", false);
    delete_node(x);
    stage_pass(x->s, 6);
    EXPECT_EQ(x->cloud.deletes, 1);
    EXPECT_Z(condition_words(x, "InstanceTerminating"), "True InstanceTerminating");
    stage_pass(x->s, 10);
    EXPECT_TRUE(has(x, &node_kind, NODE)); /* it takes 12 seconds */
    stage_pass(x->s, 5);
    EXPECT_EQ(x->cloud.deletes, 4); /* every five seconds */
    EXPECT_FALSE(has(x, &node_kind, NODE));
    EXPECT_TRUE(
        metrics_have(x, "karpenter_nodes_terminated_total{nodepool=\"web\",zone=\"z1\"} 1"));
    EXPECT_TRUE(metrics_have(x, "karpenter_nodes_drained_total{nodepool=\"web\"} 1"));
    EXPECT_TRUE(
        metrics_have(x, "karpenter_nodes_termination_duration_seconds_sum{nodepool=\"web\"} 20"));
    EXPECT_TRUE(
        metrics_have(x, "karpenter_nodes_lifetime_duration_seconds_sum{nodepool=\"web\"} 20"));
}

TEST(deleting_a_claim_ends_its_node_then_the_instance_then_the_claim)
{
    AUTO(scene) x = scene_new("", true);
    add_pod(x, "a", "", "");
    remove_it(x->s->w->store, &nodeclaim_kind, "claim-1");
    settle(x->s);
    EXPECT_TRUE(is_going(x, "a"));
    pass(x, 60);
    EXPECT_FALSE(has(x, &pod_kind, "a"));
    EXPECT_FALSE(has(x, &node_kind, NODE));
    EXPECT_FALSE(has(x, &nodeclaim_kind, "claim-1"));
    EXPECT_FALSE(x->cloud.is_there);
}

TEST(a_node_whose_claim_is_missing_is_drained_and_ends_with_its_instance)
{
    AUTO(scene) x = scene_new("", false);
    object_unref(
        merge(x->s->w->store, &nodeclaim_kind, "claim-1", js("{'metadata':{'finalizers':null}}")));
    remove_it(x->s->w->store, &nodeclaim_kind, "claim-1");
    add_pod(x, "a", "", "");
    delete_node(x);
    EXPECT_TRUE(is_going(x, "a"));
    stage_pass(x->s, 4);
    EXPECT_EQ(x->cloud.deletes, 0);
    pass(x, 30);
    EXPECT_FALSE(has(x, &node_kind, NODE));
    EXPECT_FALSE(x->cloud.is_there);
}

TEST(a_claim_that_vanishes_on_the_way_does_not_stop_the_end_of_its_node)
{
    AUTO(scene) x = scene_new("", false);
    delete_node(x);
    stage_pass(x->s, 7);
    EXPECT_EQ(x->cloud.deletes, 1);
    object_unref(
        merge(x->s->w->store, &nodeclaim_kind, "claim-1", js("{'metadata':{'finalizers':null}}")));
    pass(x, 30);
    EXPECT_FALSE(has(x, &nodeclaim_kind, "claim-1"));
    EXPECT_FALSE(has(x, &node_kind, NODE));
}

static enum err_kind claims_are_gone(void *ctx, const struct embedded_call *call)
{
    int *left = ctx;
    bool claim = call->verb == EMBEDDED_PATCH && call->kind == &nodeclaim_kind;
    return claim && (*left)-- > 0 ? ERR_NOT_FOUND : ERR_NONE;
}

TEST(a_claim_that_is_gone_before_its_event_came_does_not_stop_the_end_of_its_node)
{
    AUTO(scene) x = scene_new("", false);
    int left = 3;
    embedded_set_faults(x->s->w->e,
                        &(struct embedded_faults){ .before = claims_are_gone, .ctx = &left });
    delete_node(x);
    pass(x, 60);
    embedded_set_faults(x->s->w->e, NULL);
    EXPECT_TRUE(left < 0);
    EXPECT_FALSE(has(x, &node_kind, NODE));
}

TEST(an_ended_node_leaves_nothing_to_do)
{
    AUTO(scene) x = scene_new("", true);
    add_pod(x, "a", "", "");
    delete_node(x);
    pass(x, 120);
    EXPECT_FALSE(has(x, &node_kind, NODE));
    uint64_t version = embedded_version(x->s->w->e);
    control_resync(x->s->c);
    stage_pass(x->s, 3600);
    EXPECT_EQ(embedded_version(x->s->w->e), version);
    EXPECT_EQ(control_next_due(x->s->c), INT64_MAX);
}

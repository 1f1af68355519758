/* StatefulSets and DaemonSets. */
#include "sim/workloads_testing.h"

/* --- StatefulSets --- */

TEST(stateful_pods_come_in_order_each_with_its_claim)
{
    AUTO(lab) l = lab_new();
    stateful(l, "", 3);
    step(l);
    EXPECT_Z(names_of(l, &pod_kind), "db-0");
    step(l);
    EXPECT_Z(names_of(l, &pod_kind), "db-0"); /* not ready yet */
    kubelets(l);
    step(l);
    EXPECT_Z(names_of(l, &pod_kind), "db-0 db-1");
    settle(l);
    EXPECT_Z(names_of(l, &pod_kind), "db-0 db-1 db-2");
    EXPECT_Z(names_of(l, &pvc_kind), "data-db-0 data-db-1 data-db-2");

    AUTO_OBJECT object = get(l->store, &pod_kind, "db-1");
    const struct pod *pod = pod_of(object);
    EXPECT_STR(pod->volumes.items[0].claim.name, "data-db-1");
    EXPECT_STR(str_map_get(&object->meta.labels, STR("statefulset.kubernetes.io/pod-name")),
               "db-1");
    EXPECT_STR(str_map_get(&object->meta.labels, STR("apps.kubernetes.io/pod-index")), "1");
    AUTO_OBJECT claim = get(l->store, &pvc_kind, "data-db-1");
    EXPECT_STR(str_map_get(&claim->meta.labels, STR("app")), "web");
    EXPECT_EQ(claim->meta.owners.count, 0);
    AUTO_OBJECT set = get(l->store, &stateful_set_kind, "db");
    EXPECT_EQ(stateful_set_of(set)->status.ready_replicas, 3);
}

TEST(parallel_stateful_pods_come_at_once)
{
    AUTO(lab) l = lab_new();
    stateful(l, "'podManagementPolicy':'Parallel','ordinals':{'start':5},", 3);
    step(l);
    EXPECT_Z(names_of(l, &pod_kind), "db-5 db-6 db-7");
}

TEST(stateful_pods_go_from_the_highest_down_and_their_claims_stay)
{
    AUTO(lab) l = lab_new();
    stateful(l, "", 3);
    settle(l);
    scale(l, &stateful_set_kind, "db", 1);
    step(l);
    EXPECT_EQ(active_pods(l), 2); /* one at a time */
    settle(l);
    EXPECT_Z(names_of(l, &pod_kind), "db-0");
    EXPECT_EQ(count_of(l, &pvc_kind), 3);
    scale(l, &stateful_set_kind, "db", 2);
    settle(l);
    EXPECT_Z(names_of(l, &pod_kind), "db-0 db-1");
}

TEST(a_stateful_pod_that_goes_comes_back_under_its_name)
{
    AUTO(lab) l = lab_new();
    stateful(l, "", 2);
    settle(l);
    remove_it(l->store, &pod_kind, "db-0");
    step(l);
    EXPECT_EQ(active_pods(l), 1); /* the name is free only when the old one is gone */
    settle(l);
    EXPECT_Z(names_of(l, &pod_kind), "db-0 db-1");
}

TEST(a_new_template_is_taken_from_the_highest_ordinal_to_the_partition)
{
    AUTO(lab) l = lab_new();
    stateful(l, "'updateStrategy':{'rollingUpdate':{'partition':1}},", 3);
    settle(l);
    set_image(l, &stateful_set_kind, "db", "next");
    step(l);
    AUTO_OBJECT highest = get(l->store, &pod_kind, "db-2");
    EXPECT_TRUE(pod_is_terminating(pod_of(highest)));
    EXPECT_EQ(active_pods(l), 2);
    settle(l);
    EXPECT_EQ(pods_with(l, "next"), 2);
    AUTO_OBJECT first = get(l->store, &pod_kind, "db-0");
    EXPECT_STR(pod_of(first)->spec->containers.items[0].image, "i");
}

/* --- DaemonSets --- */

static void daemons(struct lab *l, const char *spec)
{
    object_unref(make(l->store, &daemon_set_kind,
                      js("{'metadata':{'name':'agent'},'spec':{"
                         "'selector':{'matchLabels':{'app':'agent'}},"
                         "'template':{'metadata':{'labels':{'app':'agent'}},"
                         "'spec':{%s'containers':[{'name':'c','image':'i'}]}}}}",
                         spec)));
}

static void node(struct lab *l, const char *name, const char *labels, const char *spec)
{
    object_unref(
        make(l->store, &node_kind,
             js("{'metadata':{'name':'%s','labels':{%s}},'spec':{%s}}", name, labels, spec)));
}

TEST(a_daemon_set_has_a_pod_for_each_node_that_suits)
{
    AUTO(lab) l = lab_new();
    node(l, "a", "'disk':'ssd'", "");
    node(l, "b", "", "");
    node(l, "cordoned", "'disk':'ssd'", "'unschedulable':true");
    node(l, "tainted", "'disk':'ssd'", "'taints':[{'key':'x','effect':'NoSchedule'}]");
    node(l, "soft", "'disk':'ssd'", "'taints':[{'key':'x','effect':'PreferNoSchedule'}]");
    daemons(l, "'nodeSelector':{'disk':'ssd'},");
    step(l);
    EXPECT_EQ(count_of(l, &pod_kind), 3); /* a, cordoned, soft */
    node(l, "late", "'disk':'ssd'", "");
    step(l);
    EXPECT_EQ(count_of(l, &pod_kind), 4);
    object_unref(merge(l->store, &node_kind, "tainted", js("{'spec':{'taints':null}}")));
    step(l);
    EXPECT_EQ(count_of(l, &pod_kind), 5);
    AUTO_OBJECT set = get(l->store, &daemon_set_kind, "agent");
    EXPECT_EQ(daemon_set_of(set)->status.desired, 5);
    EXPECT_EQ(daemon_set_of(set)->status.scheduled, 5);
    EXPECT_EQ(daemon_set_of(set)->status.ready, 0);
}

TEST(a_daemon_pod_is_for_its_node_alone_and_tolerates_what_daemons_do)
{
    AUTO(lab) l = lab_new();
    node(l, "a", "'zone':'z'", "");
    daemons(l, "'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{"
               "'nodeSelectorTerms':[{'matchExpressions':[{'key':'zone','operator':'Exists'}]}]}}},"
               "'tolerations':[{'key':'mine','operator':'Exists'}],");
    step(l);
    struct object_list pods = all(l, &pod_kind);
    EXPECT_EQ(pods.count, 1);
    const struct pod *pod = pod_of(pods.items[0]);
    const struct node_selector *required = pod->maybe_affinity->node.maybe_required;
    EXPECT_EQ(required->terms.count, 1);
    EXPECT_STR(required->terms.items[0].expressions.items[0].key, "zone");
    EXPECT_STR(required->terms.items[0].fields.items[0].key, "metadata.name");
    EXPECT_STR(required->terms.items[0].fields.items[0].values.items[0], "a");
    EXPECT_EQ(pod->spec->tolerations.count, 7);
    EXPECT_STR(meta_controller(&pod->object.meta)->kind, "DaemonSet");
    object_list_done(&pods);
}

TEST(daemon_pods_leave_nodes_that_evict_them_and_stay_on_those_that_only_repel)
{
    AUTO(lab) l = lab_new();
    node(l, "a", "", "");
    node(l, "b", "", "");
    daemons(l, "");
    settle(l);
    object_unref(merge(l->store, &node_kind, "a",
                       js("{'spec':{'taints':[{'key':'x','effect':'NoSchedule'}]}}")));
    object_unref(merge(l->store, &node_kind, "b",
                       js("{'spec':{'taints':[{'key':'x','effect':'NoExecute'}]}}")));
    step(l);
    EXPECT_EQ(active_pods(l), 1);
}

TEST(a_daemon_pod_that_ends_is_made_again_once_it_is_gone)
{
    AUTO(lab) l = lab_new();
    node(l, "node-1", "", "");
    daemons(l, "");
    settle(l);
    char name[300];
    snprintf(name, sizeof name, "%s", names_of(l, &pod_kind));
    set_pod(l->store, name, "Failed", false);
    settle(l);
    EXPECT_EQ(count_of(l, &pod_kind), 1);
    EXPECT_FALSE(is_there(l->store, &pod_kind, name));
    remove_it(l->store, &node_kind, "node-1");
    settle(l);
    EXPECT_EQ(count_of(l, &pod_kind), 0);
}

TEST(daemons_take_a_new_template_one_node_after_the_other)
{
    AUTO(lab) l = lab_new();
    char name[8];
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "n%d", i);
        node(l, name, "", "");
    }
    daemons(l, "");
    step(l);
    kubelets(l);
    step(l);
    set_image(l, &daemon_set_kind, "agent", "next");
    for (size_t rounds = 0; rounds < 4; rounds++) {
        step(l);
        EXPECT_TRUE(ready_pods(l) >= 3);
        kubelets(l);
        step(l);
        kubelets(l);
    }
    settle(l);
    EXPECT_EQ(pods_with(l, "next"), 4);
}

/* What a scrape of a small cluster says. */
#include "control/metrics_collect.h"

#include "control/testing.h"

static const struct stage_options nothing = { 0 };

static void make_cluster(struct stage *s)
{
    object_unref(make_pool(s, "default", ""));
    object_unref(
        merge(s->w->store, &nodepool_kind, "default", js("{'spec':{'limits':{'cpu':'10'}}}")));
    object_unref(merge_status(s->w->store, &nodepool_kind, "default",
                              js("{'status':{'resources':{'cpu':'4','nodes':'1'}}}")));
    object_unref(
        make(s->w->store, &node_kind,
             js("{'metadata':{'name':'n1','labels':{'karpenter.sh/nodepool':'default',"
                "'topology.kubernetes.io/zone':'z1','karpenter.sh/capacity-type':'spot'}},"
                "'status':{'capacity':{'cpu':'4','memory':'8Gi','pods':'20'},"
                "'allocatable':{'cpu':'3500m','memory':'7Gi','pods':'20'},"
                "'conditions':[{'type':'Ready','status':'False','reason':'KubeletNotReady',"
                "'lastTransitionTime':'2026-01-02T03:00:00Z'}]}}")));
    object_unref(make(s->w->store, &pod_kind,
                      js("{'metadata':{'name':'web','ownerReferences':[{'apiVersion':'apps/v1',"
                         "'kind':'ReplicaSet','name':'web-7','uid':'u1','controller':true}]},"
                         "'spec':{'nodeName':'n1','containers':[{'name':'c','image':'i',"
                         "'resources':{'requests':{'cpu':'500m'},'limits':{'cpu':'1'}}}]}}")));
    object_unref(make(s->w->store, &pod_kind,
                      js("{'metadata':{'name':'agent','ownerReferences':[{'apiVersion':'apps/v1',"
                         "'kind':'DaemonSet','name':'agent','uid':'u2','controller':true}]},"
                         "'spec':{'nodeName':'n1','containers':[{'name':'c','image':'i',"
                         "'resources':{'requests':{'cpu':'200m'}}}]}}")));
    settle(s);
}

#define N1                                                                                         \
    "{nodepool=\"default\",zone=\"z1\",region=\"\",instance_type=\"\",arch=\"\",os=\"\","          \
    "capacity_type=\"spot\",windows_build=\"\",node_name=\"n1\",phase=\"\",managed=\"true\""

TEST(a_scrape_tells_of_nodes_pods_and_pools)
{
    AUTO(stage) s = stage_new(nothing);
    AUTO_BUF text = { 0 };
    make_cluster(s);
    virtual_clock_advance(s->w->time, 90 * SECOND_NS);
    metrics_write(s->metrics, &text);
    static const char *const lines[] = {
        "karpenter_nodes_allocatable" N1 ",resource_type=\"cpu\"} 3.5\n",
        "karpenter_nodes_allocatable" N1 ",resource_type=\"memory\"} 7.516192768e+09\n",
        "karpenter_nodes_total_pod_requests" N1 ",resource_type=\"cpu\"} 0.7\n",
        "karpenter_nodes_total_pod_requests" N1 ",resource_type=\"pods\"} 2\n",
        "karpenter_nodes_total_pod_limits" N1 ",resource_type=\"cpu\"} 1\n",
        "karpenter_nodes_total_daemon_requests" N1 ",resource_type=\"cpu\"} 0.2\n",
        "karpenter_nodes_system_overhead" N1 ",resource_type=\"cpu\"} 0.5\n",
        "karpenter_nodes_current_lifetime_seconds" N1 "} 90\n",
        "karpenter_cluster_utilization_percent{resource_type=\"cpu\"} 20\n",
        "karpenter_nodepools_limit{resource_type=\"cpu\",nodepool=\"default\"} 10\n",
        "karpenter_nodepools_usage{resource_type=\"cpu\",nodepool=\"default\"} 4\n",
        "karpenter_cluster_state_node_count 1\n",
        "karpenter_cluster_state_synced 1\n",
        "karpenter_pods_state{name=\"web\",namespace=\"default\","
        "owner=\"/apis/apps/v1/namespaces/default/replicasets/web-7\",node=\"n1\","
        "scheduled=\"true\",nodepool=\"default\",zone=\"z1\",arch=\"\",capacity_type=\"spot\","
        "instance_type=\"\",phase=\"Pending\",ready=\"false\",managed=\"true\"} 1\n",
        "operator_nodepool_status_condition_count{namespace=\"\",name=\"default\",type=\"Ready\","
        "status=\"True\",reason=\"Ready\"} 1\n",
        "operator_node_status_condition_current_status_seconds{namespace=\"\",name=\"n1\","
        "type=\"Ready\",status=\"False\",reason=\"KubeletNotReady\",nodeclass=\"\","
        "nodepool=\"default\"} 90\n",
    };
    for (size_t i = 0; i < KV_COUNT_OF(lines); i++)
        EXPECT_HAS(buf_str(&text), lines[i]);
}

TEST(what_is_gone_is_not_in_the_next_scrape)
{
    AUTO(stage) s = stage_new(nothing);
    AUTO_BUF text = { 0 };
    make_cluster(s);
    metrics_write(s->metrics, &text);
    EXPECT_HAS(buf_str(&text), "node_name=\"n1\"");
    remove_it(s->w->store, &node_kind, "n1");
    settle(s);
    buf_clear(&text);
    metrics_write(s->metrics, &text);
    EXPECT_TRUE(strstr(text.p, "name=\"n1\"") == NULL);
    EXPECT_HAS(buf_str(&text), "karpenter_cluster_state_node_count 0\n");
}

TEST(a_condition_that_changes_is_counted_with_how_long_it_was_otherwise)
{
    AUTO(stage) s = stage_new(nothing);
    AUTO_BUF text = { 0 };
    make_cluster(s);
    object_unref(merge_status(s->w->store, &node_kind, "n1",
                              js("{'status':{'conditions':[{'type':'Ready','status':'True',"
                                 "'reason':'KubeletReady',"
                                 "'lastTransitionTime':'2026-01-02T03:00:25Z'}]}}")));
    settle(s);
    stage_restart(s); /* which is no change */
    settle(s);
    metrics_write(s->metrics, &text);
    EXPECT_HAS(buf_str(&text), "operator_node_status_condition_transitions_total{type=\"Ready\","
                               "status=\"True\",reason=\"KubeletReady\"} 1\n");
    EXPECT_HAS(buf_str(&text), "operator_node_status_condition_transition_seconds_sum{"
                               "type=\"Ready\",status=\"False\"} 25\n");
}

TEST(an_object_on_its_way_out_is_timed_until_it_is_gone)
{
    AUTO(stage) s = stage_new(nothing);
    AUTO_BUF text = { 0 };
    make_cluster(s);
    object_unref(merge(s->w->store, &node_kind, "n1", js("{'metadata':{'finalizers':['a/b']}}")));
    remove_it(s->w->store, &node_kind, "n1");
    settle(s);
    virtual_clock_advance(s->w->time, 12 * SECOND_NS);
    metrics_write(s->metrics, &text);
    EXPECT_HAS(buf_str(&text),
               "operator_node_termination_current_time_seconds{namespace=\"\",name=\"n1\"} 12\n");
    object_unref(merge(s->w->store, &node_kind, "n1", js("{'metadata':{'finalizers':null}}")));
    settle(s);
    buf_clear(&text);
    metrics_write(s->metrics, &text);
    EXPECT_HAS(buf_str(&text), "operator_node_termination_duration_seconds_sum 12\n");
    EXPECT_TRUE(strstr(text.p, "operator_node_termination_current_time_seconds{") == NULL);
}

TEST(a_disrupted_claim_is_counted_with_the_pods_that_have_to_move)
{
    AUTO(stage) s = stage_new(nothing);
    AUTO_BUF text = { 0 };
    make_cluster(s);
    struct str_pair labels[] = { { STR(LABEL_CAPACITY_TYPE), STR("spot") },
                                 { STR(LABEL_NODEPOOL), STR("default") } };
    struct nodeclaim claim = { .status.node_name = STR("n1") };
    claim.object.meta.labels = (struct str_map){ labels, 2 };
    claim_count_disrupted(s->c, &claim, "expired");
    metrics_write(s->metrics, &text);
#define EXPIRED                                                                                    \
    "{reason=\"expired\",nodepool=\"default\",capacity_type=\"spot\",consolidation_policy=\"\","   \
    "termination_mode=\"graceful\"} 1\n"
    EXPECT_HAS(buf_str(&text), "karpenter_nodeclaims_disrupted_total" EXPIRED);
    EXPECT_HAS(buf_str(&text), "karpenter_pods_disruption_initiated_total" EXPIRED);
}

TEST(the_program_says_what_it_was_built_from)
{
    AUTO(stage) s = stage_new(nothing);
    AUTO_BUF text = { 0 };
    control_metrics_build_info(s->metrics, STR("0.1.0"), STR("abc"));
    metrics_write(s->metrics, &text);
    EXPECT_HAS(buf_str(&text), "karpenter_build_info{version=\"0.1.0\",goversion=\"C ");
}

/* The controller while its API server and the network fail: nothing is launched twice, and nothing that
 * is wanted is forgotten. Leader election has tests of its own (replicas_test.c): here one controller
 * runs alone. */
#include "kube/launches.h"
#include "store/testing.h"

static const char *const alone[] = { "--leader-elect=false", NULL };

static struct replica acting_alone(struct plane *p, bool proxied)
{
    struct replica r = replica_start(p, "karve-alone", proxied, alone);
    PLANE_WAIT(p, replica_said(p, &r, ACTING));
    return r;
}

TEST(every_pod_gets_one_node_when_nothing_fails_and_nobody_else_is_asked_about_a_lease)
{
    AUTO(launches) l = launches_new();
    struct plane *p = l->plane;
    struct replica r = acting_alone(p, false);
    double start = launches_now_s();
    launches_want(l, 0, 30);
    launches_expect(l, 30);
    printf("# 31 nodes in %.1f s\n", launches_now_s() - start);
    EXPECT_STR(plane_must(p, "kubectl get lease -n kube-system -o name | grep karpenter || true"),
               "");
    EXPECT_EQ(plane_stop(p, r.pid), 0);
}

TEST(an_api_server_that_is_killed_amid_launches_changes_nothing)
{
    AUTO(launches) l = launches_new();
    struct plane *p = l->plane;
    struct replica r = acting_alone(p, false);
    launches_want(l, 0, 80);
    for (unsigned round = 0; round < 2; round++) {
        unsigned before = launches_wait(l, 40 * round + 10);
        double killed = launches_now_s();
        plane_apiserver_kill9(p);
        plane_apiserver_restart(p);
        double back = launches_now_s();
        unsigned after = launches_listed(l);
        launches_want(l, 80 + 10 * round, 10); /* on a slow day it was done with the others */
        launches_wait(l, after);
        printf("# killed after %u nodes; next launch %.1f s later, %.1f s after it was ready\n",
               before, launches_now_s() - killed, launches_now_s() - back);
    }
    launches_expect(l, 100);
    EXPECT_EQ(plane_stop(p, r.pid), 0);
}

/* It hears nothing while the versions that it knows are forgotten, so what has come and gone meanwhile is
 * only found by listing. A node whose pod has gone takes the next pod: ten nodes fewer are needed. */
TEST(what_changed_while_the_history_was_compacted_is_not_missed)
{
    AUTO(launches) l = launches_new();
    struct plane *p = l->plane;
    struct replica r = acting_alone(p, true);
    launches_want(l, 0, 20);
    launches_wait(l, 19);
    proxy_set(p->proxy, (struct proxy_faults){ .stall = true });
    int64_t lists = launches_pod_lists(p, "karve-alone");
    launches_unwant(l, 0, 10);
    launches_want(l, 20, 20);
    plane_compact(p);
    proxy_cut(p->proxy);
    proxy_set(p->proxy, (struct proxy_faults){ 0 });
    double woken = launches_now_s();
    launches_wait(l, 20);
    printf("# next launch %.1f s after it was connected again\n", launches_now_s() - woken);
    launches_expect(l, 30);
    /* 410: from its version on nobody knows. */
    EXPECT_TRUE(launches_pod_lists(p, "karve-alone") > lists);
    EXPECT_EQ(plane_stop(p, r.pid), 0);
}

TEST(a_network_that_is_slow_and_cuts_connections_at_random_only_takes_longer)
{
    AUTO(launches) l = launches_new();
    struct plane *p = l->plane;
    struct replica r = acting_alone(p, true);
    uint64_t connections = proxy_accepted_count(p->proxy);
    proxy_set(p->proxy, (struct proxy_faults){ .delay_ns = SECOND_NS / 200, .cut_one_in = 30 });
    double start = launches_now_s();
    launches_want(l, 0, 40);
    launches_wait(l, 39);
    connections = proxy_accepted_count(p->proxy) - connections;
    printf("# 40 nodes in %.1f s, with %llu connections\n", launches_now_s() - start,
           (unsigned long long)connections);
    EXPECT_TRUE(connections > 3);
    proxy_set(p->proxy, (struct proxy_faults){ 0 });
    launches_expect(l, 40);
    EXPECT_EQ(plane_stop(p, r.pid), 0);
}

/* Longer than a write may take: it fails for us, and is carried out nevertheless. */
TEST(a_store_behind_the_server_that_stands_still_for_a_while_only_takes_longer)
{
    AUTO(launches) l = launches_new();
    struct plane *p = l->plane;
    struct replica r = acting_alone(p, false);
    launches_want(l, 0, 40);
    launches_wait(l, 9);
    plane_freeze(p, "etcd");
    plane_must(p, "sleep 6");
    plane_thaw(p, "etcd");
    double thawed = launches_now_s();
    launches_expect(l, 40);
    printf("# the rest of 40 nodes %.1f s after it moved again\n", launches_now_s() - thawed);
    EXPECT_EQ(plane_stop(p, r.pid), 0);
}

/* Things start in any order in a cluster that comes up. Definitions of other providers never come. */
TEST(definitions_that_come_after_the_controller_are_waited_for)
{
    AUTO(launches) l = launches_new();
    struct plane *p = l->plane;
    plane_must(p, "kubectl delete --wait -f $DIR/crds.yaml");
    struct replica r = replica_start(p, "karve-alone", false, alone);
    PLANE_WAIT(p, replica_said(p, &r, "karve crds | kubectl apply"));
    plane_must(p, "kubectl apply -f $DIR/crds.yaml && kubectl delete --wait crd "
                  "ec2nodeclasses.karpenter.k8s.aws nodeoverlays.karpenter.sh && "
                  "kubectl wait --for=condition=Established --timeout=60s crd --all");
    PLANE_WAIT(p, plane_sh(p, NULL, "kubectl get nodepools,kwoknodeclasses") == 0);
    launches_pool(l);
    PLANE_WAIT(p, replica_said(p, &r, ACTING));
    launches_want(l, 0, 3);
    launches_expect(l, 3);
    plane_must(p, "kubectl apply -f $DIR/crds.yaml && "
                  "kubectl wait --for=condition=Established --timeout=60s crd --all");
}

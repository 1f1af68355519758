/* How nodes end on a real control plane: with real evictions and budgets, the real scheduler to find other
 * places, and the real controllers to collect what is left. */
#include "kube/life.h"

#include "api/kinds.h"

static struct str node_of_app(struct plane *p, const char *app)
{
    return life_get(p, "pod -l app=%s -o 'jsonpath={.items[0].spec.nodeName}'", app);
}

/* Of that node: pods that came one by one on a slow day have nodes of their own. */
static struct str claim_of_node(struct plane *p, struct str node)
{
    struct str claim = life_get(p,
                                "nodeclaim -o 'jsonpath={.items[?(@.status.nodeName==\"%.*s\")]"
                                ".metadata.name}'",
                                STR_ARG(node));
    EXPECT_TRUE(claim.len > 0);
    return claim;
}

static bool there_is(struct plane *p, const char *kind, struct str name)
{
    return life_count(p, "%s --ignore-not-found %.*s", kind, STR_ARG(name)) == 1;
}

static int events(struct plane *p, const char *reason)
{
    return life_count(p, "events -A --field-selector reason=%s", reason);
}

/* A pool, the controller, and two pods that run on one of its nodes. */
static struct plane *two_pods_run(const char *pool_template, const char *pod_metadata,
                                  const char *pod_spec)
{
    struct plane *p = life_plane();
    life_pool(p, "name: web", "", pool_template);
    life_controller(p, NULL);
    life_deployment(p, "web", 2, pod_metadata, pod_spec);
    PLANE_WAIT(p, life_running("web") == 2);
    return p;
}

static void delete_everything(struct plane *p)
{
    plane_must(p, "kubectl delete deployment --all && kubectl delete nodepool --all --wait=false");
    life_expect_nothing_left(p);
}

TEST(a_drain_that_a_budget_blocks_goes_on_when_it_is_released)
{
    struct plane *p = two_pods_run("", "", "terminationGracePeriodSeconds: 1");
    plane_must(p, "kubectl create pdb web --selector app=web --min-available 2");
    struct str node = node_of_app(p, "web");
    EXPECT_HAS(life_get(p, "node %.*s -o 'jsonpath={.metadata.finalizers}'", STR_ARG(node)),
               "karpenter.sh/termination");

    plane_must(p, "kubectl delete node %.*s --wait=false", STR_ARG(node));
    PLANE_WAIT(p, events(p, "FailedDraining") > 0);
    EXPECT_EQ(life_running("web"), 2);
    EXPECT_TRUE(there_is(p, "node", node));
    EXPECT_HAS(life_get(p, "node %.*s -o 'jsonpath={.spec.taints[*].key}'", STR_ARG(node)),
               "karpenter.sh/disrupted");

    plane_must(p, "kubectl delete pdb web");
    PLANE_WAIT(p, !there_is(p, "node", node));
    PLANE_WAIT(p, life_running("web") == 2);
    /* A claim goes after its node. */
    PLANE_WAIT(p, life_objects(&nodeclaim_kind) == life_objects(&node_kind));
    delete_everything(p);
}

TEST(a_termination_grace_period_ends_what_a_budget_and_an_annotation_protect)
{
    struct plane *p = two_pods_run("terminationGracePeriod: 8s",
                                   "annotations: {karpenter.sh/do-not-disrupt: 'true'}",
                                   "terminationGracePeriodSeconds: 3");
    plane_must(p, "kubectl create pdb web --selector app=web --max-unavailable 0");
    struct str node = node_of_app(p, "web");
    struct str claim = claim_of_node(p, node);

    plane_must(p, "kubectl delete nodeclaim %.*s --wait=false", STR_ARG(claim));
    PLANE_WAIT(p, !there_is(p, "nodeclaim", claim));
    EXPECT_FALSE(there_is(p, "node", node));
    PLANE_WAIT(p, events(p, "Disrupted") > 0);
    PLANE_WAIT(p, life_running("web") == 2);
    plane_must(p, "kubectl delete pdb web");
    delete_everything(p);
}

TEST(a_claim_that_somebody_else_holds_loses_its_node_and_stays_until_they_let_go)
{
    struct plane *p = two_pods_run("", "", "terminationGracePeriodSeconds: 0");
    struct str node = node_of_app(p, "web");
    struct str claim = claim_of_node(p, node);
    EXPECT_HAS(life_get(p, "nodeclaim %.*s -o 'jsonpath={.metadata.finalizers}'", STR_ARG(claim)),
               "karpenter.sh/termination");
    plane_must(p,
               "kubectl patch nodeclaim %.*s --type=json -p "
               "'[{\"op\":\"add\",\"path\":\"/metadata/finalizers/-\",\"value\":"
               "\"example.com/hold\"}]'",
               STR_ARG(claim));

    plane_must(p, "kubectl delete nodeclaim %.*s --wait=false", STR_ARG(claim));
    PLANE_WAIT(p, !there_is(p, "node", node));
    PLANE_WAIT(p, str_eqz(life_get(p, "nodeclaim %.*s -o 'jsonpath={.metadata.finalizers}'",
                                   STR_ARG(claim)),
                          "[\"example.com/hold\"]"));
    plane_must(p,
               "kubectl patch nodeclaim %.*s --type=merge -p '{\"metadata\":{\"finalizers\":[]}}'",
               STR_ARG(claim));
    PLANE_WAIT(p, !there_is(p, "nodeclaim", claim));
    PLANE_WAIT(p, life_running("web") == 2);
    delete_everything(p);
}

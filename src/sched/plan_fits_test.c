/* Pods go where their images run. The types are those of WORLD_TYPES_SMALL; every plan is checked. */
#include "sched/fits_testing.h"
#include "sched/plan_testing.h"

#define POOL WORLD_POOL("web", ON_DEMAND, "")
#define POD(name, requests) WORLD_POD(name, "{app: a}", requests, "")
#define CLAIM(name, type)                                                                          \
    "---\n"                                                                                        \
    "apiVersion: karpenter.sh/v1\n"                                                                \
    "kind: NodeClaim\n"                                                                            \
    "metadata:\n"                                                                                  \
    "  name: " name "\n"                                                                           \
    "  labels: {karpenter.sh/nodepool: web, node.kubernetes.io/instance-type: " type "}\n"         \
    "spec:\n"                                                                                      \
    "  nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}\n"              \
    "  requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [" type        \
    "]}]\n"                                                                                        \
    "status:\n"                                                                                    \
    "  providerID: test:///zone-a/" name "\n"                                                      \
    "  capacity: {cpu: 4, memory: 8Gi, pods: 10}\n"                                                \
    "  allocatable: {cpu: 4, memory: 8Gi, pods: 10}\n"                                             \
    "  conditions: [{type: Launched, status: 'True', reason: Launched, message: '', "              \
    "lastTransitionTime: '2026-01-02T03:04:05Z'}]\n"

/* "arm, medium": the types that a launch allows, cheapest first. */
static const char *types_of(struct world *w, const struct plan *plan, uint32_t launch)
{
    AUTO_BUF out = { 0 };
    const struct plan_launch *l = &plan->launches[launch];
    for (uint32_t i = 0; i < l->type_count; i++)
        buf_addf(&out, "%s%.*s", i ? ", " : "",
                 STR_ARG(w->snap.pools[l->pool].types->names[l->types[i]]));
    return arena_str(&w->arena, buf_str(&out)).p;
}

static const struct plan_blame *blame_of(struct world *w, const struct plan *plan, const char *pod)
{
    for (uint32_t i = 0; i < plan->miss_count; i++) {
        if (plan->misses[i].pod == world_pod_ix(w, pod))
            return &plan->misses[i].reasons[0];
    }
    fail_msg("pod %s has a place", pod);
    return NULL;
}

/* --- launches --- */

TEST(a_launch_becomes_nothing_but_what_runs_the_images)
{
    WORLD w;
    world_load(&w, POOL POD("a", "{cpu: 1}"), WORLD_TYPES_SMALL);
    const struct plan *plan = world_plan(&w);
    EXPECT_Z(types_of(&w, plan, 0), "small, arm, medium, memory, large, gpu");

    world_fits(&w, FIT_UNKNOWN_AS_NO);
    world_fit(&w, "app:arm64", "a", "arm");
    plan = world_plan(&w);
    EXPECT_Z(types_of(&w, plan, 0), "arm");
    EXPECT_Z(home(&w, plan, "a"), "launch 0");

    world_fits(&w, FIT_UNKNOWN_AS_NO);
    world_fit(&w, "app:avx512", "a", "memory large gpu");
    EXPECT_Z(types_of(&w, world_plan(&w), 0), "memory, large, gpu");
}

TEST(pods_that_no_type_runs_together_never_share_a_launch)
{
    WORLD w;
    world_load(&w, POOL POD("a", "{cpu: 1}") POD("b", "{cpu: 1}") POD("c", "{cpu: 1}"),
               WORLD_TYPES_SMALL);
    world_fits(&w, FIT_UNKNOWN_AS_NO);
    world_fit(&w, "app:arm64", "a", "arm");
    world_fit(&w, "app:amd64", "b", "gpu large medium memory small");
    const struct plan *plan = world_plan(&w);
    EXPECT_EQ(plan->launch_count, 2);
    EXPECT_TRUE(strcmp(home(&w, plan, "a"), home(&w, plan, "b")) != 0);
    EXPECT_EQ(plan->miss_count, 0);
}

TEST(pods_that_share_a_launch_leave_it_what_runs_them_all)
{
    WORLD w;
    world_load(&w, POOL POD("a", "{cpu: 1}") POD("b", "{cpu: 1}"), WORLD_TYPES_SMALL);
    world_fits(&w, FIT_UNKNOWN_AS_NO);
    world_fit(&w, "one", "a", "arm medium large");
    world_fit(&w, "two", "b", "memory medium large");
    const struct plan *plan = world_plan(&w);
    EXPECT_EQ(plan->launch_count, 1);
    EXPECT_Z(types_of(&w, plan, 0), "medium, large");
}

TEST(images_go_with_what_else_is_asked)
{
    WORLD w;
    world_load(
        &w,
        POOL WORLD_POD("a", "{}", "{cpu: 1}", "  nodeSelector: {kubernetes.io/arch: amd64}\n")
            WORLD_POD("g", "{}", "{cpu: 1, nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: 1}", ""),
        WORLD_TYPES_SMALL);
    world_fits(&w, FIT_UNKNOWN_AS_NO);
    world_fit(&w, "app:1", "a", "arm memory");
    world_fit(&w, "cuda:12", "g", "* small? medium?");
    const struct plan *plan = world_plan(&w);
    EXPECT_EQ(plan->miss_count, 0);
    EXPECT_EQ(plan->launch_count, 2);
    EXPECT_Z(world_launch(&w, plan, 0), "web: gpu zone-a on-demand 1");
    EXPECT_Z(world_launch(&w, plan, 1), "web: memory zone-a on-demand 0.3");
}

TEST(limits_hold_for_what_runs_the_images)
{
    WORLD w;
    world_load(&w,
               WORLD_POOL("web", ON_DEMAND, "  limits: {cpu: 8}\n") POD("a", "{cpu: 3}")
                   POD("b", "{cpu: 3}") POD("c", "{cpu: 3}"),
               WORLD_TYPES_SMALL);
    world_fits(&w, FIT_UNKNOWN_AS_NO);
    world_fit(&w, "app:arm64", "a b c", "arm");
    const struct plan *plan = world_plan(&w);
    EXPECT_EQ(plan->launch_count, 2);
    EXPECT_EQ(plan->miss_count, 1);
    EXPECT_Z(home(&w, plan, "c"), "miss limits");
}

/* --- what is there --- */

TEST(a_node_that_does_not_run_the_images_is_passed_over)
{
    WORLD w;
    world_load(&w,
               POOL WORLD_NODE("n1", "zone-a", "", "cpu: 8, memory: 16Gi")
                   WORLD_NODE("n2", "zone-a", "", "cpu: 1, memory: 4Gi") POD("a", "{cpu: 1}")
                       POD("b", "{cpu: 1}") POD("c", "{cpu: 1}"),
               WORLD_TYPES_SMALL);
    world_fits(&w, FIT_UNKNOWN_AS_NO);
    world_fit(&w, "app:1", "a b", "n2 large n1?");
    const struct plan *plan = world_plan(&w);
    EXPECT_Z(home(&w, plan, "a"), "node n2");
    EXPECT_Z(home(&w, plan, "b"), "launch 0");
    EXPECT_Z(home(&w, plan, "c"), "node n1");
    EXPECT_Z(types_of(&w, plan, 0), "large");
}

TEST(a_pod_that_is_on_such_a_node_already_stays_there)
{
    WORLD w;
    world_load(&w,
               POOL WORLD_NODE("n1", "zone-a", "", "cpu: 2, memory: 16Gi")
                   WORLD_POD("bound", "{}", "{cpu: 1}", "  nodeName: n1\n") POD("a", "{cpu: 1}")
                       POD("b", "{cpu: 1}"),
               WORLD_TYPES_SMALL);
    world_fits(&w, FIT_UNKNOWN_LAST);
    world_fit(&w, "app:1", "bound", "arm");
    const struct plan *plan = world_plan(&w);
    EXPECT_Z(home(&w, plan, "bound"), "none");
    EXPECT_EQ(plan->existing_count, 1); /* and takes up its room */
    EXPECT_EQ(plan->existing[0].pods.count, 1);
    EXPECT_EQ(plan->launch_count, 1);
}

TEST(a_pod_that_is_displaced_goes_where_its_images_run)
{
    WORLD w;
    world_load(&w,
               POOL WORLD_NODE("n1", "zone-a", "", "cpu: 4, memory: 16Gi")
                   WORLD_NODE("n2", "zone-a", "", "cpu: 4, memory: 16Gi")
                       WORLD_POD("a", "{}", "{cpu: 1}", "  nodeName: n1\n"),
               WORLD_TYPES_SMALL);
    w.snap.maybe_displaced = (const bool[]){ true };
    world_fits(&w, FIT_UNKNOWN_LAST);
    world_fit(&w, "app:1", "a", "n2 small");
    EXPECT_Z(home(&w, world_plan(&w), "a"), "node n2");
}

TEST(a_claim_on_its_way_takes_what_runs_on_what_will_come_of_it)
{
    WORLD w;
    world_load(&w, POOL CLAIM("c1", "arm") CLAIM("c2", "medium") POD("a", "{cpu: 1}"),
               WORLD_TYPES_SMALL);
    world_fits(&w, FIT_UNKNOWN_LAST);
    world_fit(&w, "app:amd64", "a", "c2 medium large");
    EXPECT_Z(home(&w, world_plan(&w), "a"), "claim c2");

    world_fits(&w, FIT_UNKNOWN_AS_NO);
    world_fit(&w, "app:amd64", "a", "c1? c2? medium large");
    EXPECT_Z(home(&w, world_plan(&w), "a"), "launch 0");
}

/* --- what is not known --- */

TEST(what_is_not_known_to_run_the_images_is_taken_last)
{
    WORLD w;
    world_load(&w, POOL WORLD_NODE("n1", "zone-a", "", "cpu: 8, memory: 16Gi") POD("a", "{cpu: 1}"),
               WORLD_TYPES_SMALL);
    world_fits(&w, FIT_UNKNOWN_LAST);
    world_fit(&w, "app:1", "a", "n1? small? large");
    const struct plan *plan = world_plan(&w);
    EXPECT_Z(types_of(&w, plan, 0), "large"); /* dearer, and not there yet, but sure */

    world_fits(&w, FIT_UNKNOWN_LAST);
    world_fit(&w, "app:1", "a", "n1? small?");
    EXPECT_Z(home(&w, world_plan(&w), "a"), "node n1");

    world_fits(&w, FIT_UNKNOWN_AS_YES);
    world_fit(&w, "app:1", "a", "n1? small? large");
    EXPECT_Z(home(&w, world_plan(&w), "a"), "node n1");

    world_fits(&w, FIT_UNKNOWN_AS_NO);
    world_fit(&w, "app:1", "a", "n1? small? large");
    EXPECT_Z(types_of(&w, world_plan(&w), 0), "large");
}

TEST(preferences_are_given_up_before_certainty)
{
    WORLD w;
    world_load(&w,
               POOL WORLD_POD("a", "{}", "{cpu: 1}",
                              "  affinity:\n"
                              "    nodeAffinity:\n"
                              "      preferredDuringSchedulingIgnoredDuringExecution:\n"
                              "      - weight: 1\n"
                              "        preference: {matchExpressions: [{key: "
                              "kubernetes.io/arch, operator: In, values: [arm64]}]}\n"),
               WORLD_TYPES_SMALL);
    EXPECT_Z(types_of(&w, world_plan(&w), 0), "arm");
    world_fits(&w, FIT_UNKNOWN_LAST);
    world_fit(&w, "app:1", "a", "arm? medium");
    EXPECT_Z(types_of(&w, world_plan(&w), 0), "medium");
}

TEST(pods_beyond_what_is_sure_go_to_what_is_not_known)
{
    WORLD w;
    world_load(&w,
               WORLD_POOL("sure", ON_DEMAND, "  weight: 10\n  limits: {cpu: 4}\n")
                   POD("a", "{cpu: 3}") POD("b", "{cpu: 3}"),
               WORLD_TYPES_SMALL);
    world_fits(&w, FIT_UNKNOWN_LAST);
    world_fit(&w, "app:1", "a b", "arm medium?");
    const struct plan *plan = world_plan(&w);
    EXPECT_EQ(plan->launch_count, 1); /* the limit is for both */
    EXPECT_Z(types_of(&w, plan, 0), "arm");

    world_done(&w);
    world_load(&w,
               POOL WORLD_NODE("n1", "zone-a", "", "cpu: 4, memory: 16Gi")
                   WORLD_NODE("n2", "zone-a", "", "cpu: 4, memory: 16Gi") POD("a", "{cpu: 3}")
                       POD("b", "{cpu: 3}") POD("c", "{cpu: 3}"),
               WORLD_TYPES_SMALL);
    world_fits(&w, FIT_UNKNOWN_LAST);
    world_fit(&w, "app:1", "a b c", "n2 n1?");
    plan = world_plan(&w);
    EXPECT_EQ(plan->existing_count, 2);
    EXPECT_EQ(plan->miss_count, 1);
    EXPECT_Z(plan_reason_names[plan->misses[0].reasons[0].reason], "image");
}

/* --- spreads --- */

#define SPREAD                                                                                     \
    "  topologySpreadConstraints: [{maxSkew: 1, topologyKey: " ZONE                                \
    ", whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: a}}}]\n"

TEST(a_spread_goes_over_zones_that_have_what_runs_the_images)
{
    WORLD w;
    world_load(&w, POOL, WORLD_TYPES_SMALL);
    world_add_pods(
        &w, 6, "a",
        "metadata: {labels: {app: a}}\n"
        "spec:\n"
        "  containers: [{name: c, image: i, resources: {requests: {cpu: 100m}}}]\n" SPREAD);
    world_fits(&w, FIT_UNKNOWN_AS_NO);
    world_fit(&w, "app:arm64", "a-*", "arm");
    EXPECT_Z(zones(&w, world_plan(&w), "a-"), "2 2 2");

    /* What runs them is to be had in one zone alone: the others stay empty and hold nothing back. */
    world_fits(&w, FIT_UNKNOWN_AS_NO);
    world_fit(&w, "cuda:12", "a-*", "gpu");
    const struct plan *plan = world_plan(&w);
    EXPECT_EQ(plan->miss_count, 0);
    EXPECT_Z(zones(&w, plan, "a-"), "6 0 0");
}

TEST(a_zone_with_a_node_counts_for_a_spread_though_the_images_do_not_run_there)
{
    WORLD w;
    world_load(&w, POOL WORLD_NODE("n1", "zone-b", "", "cpu: 8, memory: 16Gi"), WORLD_TYPES_SMALL);
    world_add_pods(
        &w, 3, "a",
        "metadata: {labels: {app: a}}\n"
        "spec:\n"
        "  containers: [{name: c, image: i, resources: {requests: {cpu: 100m}}}]\n" SPREAD);
    world_fits(&w, FIT_UNKNOWN_AS_NO);
    world_fit(&w, "cuda:12", "a-*", "gpu");
    const struct plan *plan = world_plan(&w);
    EXPECT_EQ(plan->miss_count, 2); /* kube-scheduler knows of no images when it counts */
    EXPECT_Z(zones(&w, plan, "a-"), "1 0 0");
}

/* --- who is alike --- */

TEST(pods_whose_images_run_everywhere_are_like_pods_that_ask_for_nothing)
{
    WORLD w;
    world_load(&w, POOL POD("a", "{cpu: 1}") POD("b", "{cpu: 1}") POD("c", "{cpu: 1}"),
               WORLD_TYPES_SMALL);
    world_fits(&w, FIT_UNKNOWN_AS_YES);
    world_fit(&w, "app:1", "a", "*");
    world_fit(&w, "app:2", "b", "* arm?");
    EXPECT_EQ(world_plan(&w)->class_count, 1);
    w.snap.fits.unknown = FIT_UNKNOWN_AS_NO;
    EXPECT_EQ(world_plan(&w)->class_count, 2);
    w.snap.fits.unknown = FIT_UNKNOWN_LAST;
    EXPECT_EQ(world_plan(&w)->class_count, 2);
}

TEST(lists_that_are_not_there_say_yes)
{
    WORLD w;
    world_load(&w,
               POOL WORLD_NODE("n1", "zone-a", "", "cpu: 1, memory: 4Gi") POD("a", "{cpu: 1}")
                   POD("b", "{cpu: 1}"),
               WORLD_TYPES_SMALL);
    world_fits(&w, FIT_UNKNOWN_AS_NO);
    world_fit(&w, "app:1", "a b", "");
    *(struct sched_fit *)w.snap.fits.items = (struct sched_fit){ .images = STR("app:1") };
    const struct plan *plan = world_plan(&w);
    EXPECT_EQ(plan->class_count, 1);
    EXPECT_EQ(plan->miss_count, 0);
}

/* --- nowhere --- */

TEST(a_pod_whose_images_run_nowhere_is_told_so)
{
    WORLD w;
    world_load(&w, POOL WORLD_NODE("n1", "zone-a", "", "cpu: 8, memory: 16Gi") POD("a", "{cpu: 1}"),
               WORLD_TYPES_SMALL);
    world_fits(&w, FIT_UNKNOWN_LAST);
    world_fit(&w, "app:avx512, side:1", "a", "");
    const struct plan *plan = world_plan(&w);
    EXPECT_Z(home(&w, plan, "a"), "miss image");
    EXPECT_STR(blame_of(&w, plan, "a")->detail,
               "no type that pool `web` allows runs its images (app:avx512, side:1); small: has no "
               "avx512f");

    w.snap.fits.unknown = FIT_UNKNOWN_AS_NO;
    world_fit(&w, "app:2", "a", "*?");
    plan = world_plan(&w);
    EXPECT_STR(blame_of(&w, plan, "a")->detail,
               "no type that pool `web` allows is known to run its images (app:2); small: it is "
               "not known what it has");
}

/* --- the checker --- */

static uint32_t findings(struct world *w, const struct plan *plan, const char *says)
{
    struct check_result result = plan_check(&w->arena, &w->snap, w->options, plan);
    for (uint32_t i = 0; i < result.count; i++)
        EXPECT_STR(result.findings[i].what, says);
    return result.count;
}

TEST(the_checker_finds_pods_where_their_images_do_not_run)
{
    WORLD w;
    world_load(&w, POOL POD("a", "{cpu: 1}"), WORLD_TYPES_SMALL);
    const struct plan *launched = world_plan(&w);
    world_fits(&w, FIT_UNKNOWN_AS_NO);
    world_fit(&w, "app:1", "a", "* large");
    EXPECT_EQ(findings(&w, launched, ""), 0);
    world_fits(&w, FIT_UNKNOWN_AS_NO);
    world_fit(&w, "app:1", "a", "* large?");
    EXPECT_EQ(findings(&w, launched,
                       "pod default/a: its images \"app:1\" do not run on large, which launch 0 of "
                       "pool web may become"),
              1);
    w.snap.fits.unknown = FIT_UNKNOWN_LAST;
    EXPECT_EQ(findings(&w, launched, ""), 0);

    world_done(&w);
    world_load(&w, POOL WORLD_NODE("n1", "zone-a", "", "cpu: 4, memory: 8Gi") POD("a", "{cpu: 1}"),
               WORLD_TYPES_SMALL);
    const struct plan *there = world_plan(&w);
    world_fits(&w, FIT_UNKNOWN_AS_YES);
    world_fit(&w, "app:1", "a", "*? n2");
    EXPECT_EQ(findings(&w, there, ""), 0);
    world_fits(&w, FIT_UNKNOWN_AS_YES);
    world_fit(&w, "app:1", "a", "");
    EXPECT_EQ(findings(&w, there, "pod default/a: its images \"app:1\" do not run on node n1"), 1);

    world_done(&w);
    world_load(&w, POOL CLAIM("c1", "arm") POD("a", "{cpu: 1}"), WORLD_TYPES_SMALL);
    const struct plan *claimed = world_plan(&w);
    world_fits(&w, FIT_UNKNOWN_LAST);
    world_fit(&w, "app:1", "a", "arm");
    EXPECT_EQ(findings(&w, claimed, "pod default/a: its images \"app:1\" do not run on claim c1"),
              1);
}

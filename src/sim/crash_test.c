/* kill -9 at every call that changes anything: the next process goes on from the store and the cloud
 * alone, and the end is as if nothing had happened.
 *
 * Each scenario is run once to count the calls, then once more for each of them, dying before its
 * effect, and once more dying after it. All invariants are checked all along. Sanitized builds, which
 * are slow, die at a part of the calls.
 */
#include "sim/campaign.h"

#include "support/test.h"

#include <stdio.h>

#define HEAD                                                                                       \
    "duration: 40m\n"                                                                              \
    "sample: 1h\n"                                                                                 \
    "cloud: {types: kwok, boot: 20s, ready: 5s, terminate: 10s}\n"                                 \
    "cluster: {podStart: 2s, podStop: 2s}\n"                                                       \
    "objects:\n"                                                                                   \
    "- {apiVersion: karpenter.kwok.sh/v1alpha1, kind: KWOKNodeClass, metadata: {name: default}}\n" \
    "- apiVersion: karpenter.sh/v1\n"                                                              \
    "  kind: NodePool\n"                                                                           \
    "  metadata: {name: web}\n"                                                                    \
    "  spec:\n"                                                                                    \
    "    limits: {cpu: 64}\n"                                                                      \
    "    template:\n"                                                                              \
    "      spec:\n"                                                                                \
    "        nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}\n"       \
    "        requirements: [{key: kubernetes.io/os, operator: In, values: [linux]}]\n"             \
    "- apiVersion: apps/v1\n"                                                                      \
    "  kind: Deployment\n"                                                                         \
    "  metadata: {name: web, namespace: default}\n"                                                \
    "  spec:\n"                                                                                    \
    "    replicas: 3\n"                                                                            \
    "    selector: {matchLabels: {app: web}}\n"                                                    \
    "    template:\n"                                                                              \
    "      metadata: {labels: {app: web}}\n"                                                       \
    "      spec: {containers: [{name: c, image: i, resources: {requests: {cpu: '3'}}}]}\n"

static bool count_calls(void *ctx, const struct world_parts *world)
{
    *(uint64_t *)ctx = faults_calls(world->faults);
    return true;
}

static void run(struct run_options options, uint64_t seed, const char *what)
{
    AUTO_ARENA arena = { 0 };
    struct run_result result;
    struct err err = { 0 };
    options.seed = seed;
    EXPECT_OK(scenario_run(options, &arena, &result, &err), err);
    if (result.broken) {
        print_message("# seed %d, %s, call %d: rule %u at step %u: %.*s\n", (int)seed, what,
                      (int)options.die_at, result.finding.rule, result.finding.step,
                      STR_ARG(result.finding.what));
        EXPECT_FALSE(result.broken);
    }
}

static void sweep(const char *text)
{
    AUTO(scenario) s = NULL;
    struct err err = { 0 };
    uint64_t calls = 0;
    EXPECT_OK(scenario_parse("crash.yaml", str_of(text), &s, &err), err);
    run((struct run_options){ .scenario = s, .progress = count_calls, .progress_ctx = &calls }, 1,
        "no crash");
    EXPECT_TRUE(calls > 20);
    uint32_t points = 0;
    for (uint64_t call = 1; call <= calls; call += calls / TEST_ROUNDS(calls), points += 2) {
        run((struct run_options){ .scenario = s, .die_at = call }, 1, "before its effect");
        run((struct run_options){ .scenario = s, .die_at = call, .die_after_effect = true }, 1,
            "after its effect");
    }
    print_message("# %u crash points\n", points);
}

TEST(dying_at_any_call_while_nodes_come_loses_nothing_and_launches_nothing_twice)
{
    sweep(HEAD);
}

TEST(dying_at_any_call_while_pods_come_and_go_loses_nothing)
{
    sweep(HEAD
          "timeline:\n"
          "- {at: 5m, scale: {kind: Deployment, namespace: default, name: web, replicas: 12}}\n"
          "- {at: 15m, scale: {kind: Deployment, namespace: default, name: web, replicas: 2}}\n");
}

TEST(dying_at_any_call_while_a_pool_and_all_its_nodes_are_deleted_leaves_nothing_behind)
{
    sweep(HEAD "timeline:\n"
               "- {at: 5m, delete: {kind: NodePool, name: web}}\n");
}

TEST(dying_at_any_call_while_a_zone_is_dry_leaves_no_claim_that_waits)
{
    sweep(HEAD
          "timeline:\n"
          "- {at: 0s, drought: {capacityType: spot}, for: 10m}\n"
          "- {at: 1m, drought: {zone: test-zone-a}, for: 10m}\n"
          "- {at: 2m, scale: {kind: Deployment, namespace: default, name: web, replicas: 9}}\n");
}

TEST(dying_at_any_call_while_nodes_do_not_join_ends_with_nodes_that_do)
{
    sweep(HEAD "timeline:\n"
               "- {at: 0s, breakNetwork: default, for: 25m}\n");
}

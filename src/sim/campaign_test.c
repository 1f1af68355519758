/* A run says the same every time, on any thread; and one that goes wrong is made as small as its reason. */
#include "sim/campaign.h"

#include "codec/duration.h"
#include "support/test.h"

#include <pthread.h>

/* A cluster to which things happen. */
#define LIVELY                                                                                     \
    "duration: 20m\n"                                                                              \
    "cloud: {types: kwok, boot: 20s, ready: 5s, terminate: 10s}\n"                                 \
    "cluster: {podStart: 2s, podStop: 2s, eventDelay: 2s}\n"                                       \
    "faults: {storeErrors: 0.05, storeLostReplies: 0.05, launchErrors: 0.1, watchCuts: 0.01, "     \
    "crashesPerHour: 6}\n"                                                                         \
    "chaos: {steps: 12, pause: {min: 10s, max: 90s}}\n"                                            \
    "objects:\n"                                                                                   \
    "- {apiVersion: karpenter.kwok.sh/v1alpha1, kind: KWOKNodeClass, metadata: {name: default}}\n" \
    "- apiVersion: karpenter.sh/v1\n"                                                              \
    "  kind: NodePool\n"                                                                           \
    "  metadata: {name: web}\n"                                                                    \
    "  spec:\n"                                                                                    \
    "    template:\n"                                                                              \
    "      spec:\n"                                                                                \
    "        nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}\n"       \
    "        terminationGracePeriod: 5m\n"                                                         \
    "        requirements: [{key: kubernetes.io/os, operator: In, values: [linux]}]\n"             \
    "- apiVersion: apps/v1\n"                                                                      \
    "  kind: Deployment\n"                                                                         \
    "  metadata: {name: web}\n"                                                                    \
    "  spec:\n"                                                                                    \
    "    replicas: 4\n"                                                                            \
    "    selector: {matchLabels: {app: web}}\n"                                                    \
    "    template:\n"                                                                              \
    "      metadata: {labels: {app: web}}\n"                                                       \
    "      spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}\n"

/* A pod that nobody lets go: it takes both actions, and nothing else. */
#define MISTAKE                                                                                    \
    "timeline:\n"                                                                                  \
    "- {at: 1m, scale: {name: web, replicas: 6}}\n"                                                \
    "- at: 5m\n"                                                                                   \
    "  apply:\n"                                                                                   \
    "    apiVersion: v1\n"                                                                         \
    "    kind: Pod\n"                                                                              \
    "    metadata: {name: held, namespace: default, finalizers: [example.com/hold]}\n"             \
    "    spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}\n"             \
    "- {at: 7m, scale: {name: web, replicas: 3}}\n"                                                \
    "- {at: 9m, delete: {kind: Pod, namespace: default, name: held}}\n"                            \
    "- {at: 12m, say: nothing}\n"

static struct scenario *parse(struct str text)
{
    struct scenario *s = NULL;
    struct err err = { 0 };
    EXPECT_OK(scenario_parse("campaign.yaml", text, &s, &err), err);
    return s;
}

static struct run_result run(const struct scenario *s, uint64_t seed, struct arena *arena)
{
    struct run_result result;
    struct err err = { 0 };
    EXPECT_OK(
        scenario_run((struct run_options){ .scenario = s, .seed = seed }, arena, &result, &err),
        err);
    return result;
}

/* --- runs --- */

TEST(equal_seeds_give_equal_runs_and_others_do_not)
{
    AUTO(scenario) s = parse(STR(LIVELY));
    AUTO_ARENA arena = { 0 };
    struct run_result first = run(s, 3, &arena), again = run(s, 3, &arena);
    if (first.broken)
        print_error("# rule %u: %.*s\n", first.finding.rule, STR_ARG(first.finding.what));
    EXPECT_FALSE(first.broken);
    EXPECT_EQ(first.steps, 12);
    EXPECT_TRUE(first.hash == again.hash);
    EXPECT_EQ(first.crashes, again.crashes);
    EXPECT_TRUE(run(s, 4, &arena).hash != first.hash);
}

#define THREADS 4
struct worker {
    const struct scenario *s;
    uint64_t seed, hash;
    pthread_t thread;
};

static void *work(void *ctx)
{
    struct worker *worker = ctx;
    struct run_result result;
    struct arena arena = { 0 };
    struct err err = { 0 };
    struct run_options options = { .scenario = worker->s, .seed = worker->seed };
    if (scenario_run(options, &arena, &result, &err) == 0)
        worker->hash = result.hash;
    arena_done(&arena);
    return NULL;
}

TEST(a_run_is_the_same_however_many_go_on_beside_it)
{
    AUTO(scenario) s = parse(STR(LIVELY));
    AUTO_ARENA arena = { 0 };
    struct worker workers[THREADS];
    for (uint64_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){ .s = s, .seed = 1 + i / 2 }; /* each seed twice */
        EXPECT_EQ(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    for (size_t i = 0; i < THREADS; i++)
        EXPECT_TRUE(workers[i].hash == run(s, workers[i].seed, &arena).hash);
}

/* What a campaign finds, `--seed` has to show again. */
TEST(a_run_is_the_same_whether_somebody_writes_it_down_or_doubts_it_or_not)
{
    AUTO(scenario) s = parse(STR(LIVELY));
    for (uint64_t seed = 1; seed <= TEST_ROUNDS(12); seed++) {
        AUTO_ARENA arena = { 0 };
        struct run_result alone = run(s, seed, &arena), watched;
        struct record record;
        struct err err = { 0 };
        record_init(&record);
        EXPECT_OK(scenario_run(
                      (struct run_options){
                          .scenario = s, .seed = seed, .doubt = true, .maybe_record = &record },
                      &arena, &watched, &err),
                  err);
        record_done(&record);
        EXPECT_TRUE(alone.hash == watched.hash);
        EXPECT_EQ(alone.calls, watched.calls);
    }
}

TEST(an_invariant_that_is_broken_is_told_with_its_rule_and_words)
{
    AUTO(scenario) s = parse(STR(LIVELY MISTAKE));
    AUTO_ARENA arena = { 0 };
    struct run_result result = run(s, 1, &arena);
    EXPECT_TRUE(result.broken);
    EXPECT_EQ(result.finding.rule, 7);
    EXPECT_STR(result.finding.what, "Pod held is still being deleted");
    EXPECT_EQ(result.steps, 12 + 5);
}

TEST(a_cluster_that_never_comes_to_rest_is_told)
{
    /* A Job whose pods end and are replaced for ever. */
    AUTO(scenario) s = parse(STR(
        "duration: 5m\n"
        "cloud: {types: kwok}\n"
        "objects:\n"
        "- apiVersion: v1\n"
        "  kind: Node\n"
        "  metadata: {name: one}\n"
        "  spec: {providerID: 'other://one'}\n"
        "  status: {allocatable: {cpu: '4', memory: 8Gi, pods: '10'}, conditions: [{type: Ready, "
        "status: 'True'}]}\n"
        "- apiVersion: batch/v1\n"
        "  kind: Job\n"
        "  metadata: {name: busy}\n"
        "  spec:\n"
        "    completions: 1000\n"
        "    parallelism: 1\n"
        "    template:\n"
        "      spec: {restartPolicy: Never, containers: [{name: c, image: i}]}\n"));
    AUTO_ARENA arena = { 0 };
    struct run_result result = run(s, 1, &arena);
    EXPECT_TRUE(result.broken);
    EXPECT_EQ(result.finding.rule, 7);
    EXPECT_HAS(result.finding.what, "it does not come to rest");
}

static bool stop_at_three(void *ctx, const struct world_parts *world)
{
    (*(uint32_t *)ctx)++;
    return world->step < 3;
}

TEST(whoever_watches_a_run_may_end_it_early)
{
    AUTO(scenario) s = parse(STR(LIVELY MISTAKE));
    AUTO_ARENA arena = { 0 };
    struct run_result result;
    struct err err = { 0 };
    uint32_t calls = 0;
    EXPECT_OK(scenario_run(
                  (struct run_options){
                      .scenario = s, .seed = 1, .progress = stop_at_three, .progress_ctx = &calls },
                  &arena, &result, &err),
              err);
    EXPECT_FALSE(result.broken); /* the mistake was still to come */
    EXPECT_EQ(result.steps, 3);
    EXPECT_EQ(calls, 3);
}

/* --- shrinking --- */

TEST(what_is_shrunk_has_only_the_actions_that_matter_and_no_faults_and_objects)
{
    AUTO(scenario) s = parse(STR(LIVELY MISTAKE));
    AUTO_ARENA arena = { 0 };
    struct shrunk shrunk;
    EXPECT_TRUE(scenario_shrink(s, 1, 500, &arena, &shrunk));
    const struct scenario *small = shrunk.scenario;
    EXPECT_EQ(shrunk.actions_before, 12 + 5);
    EXPECT_EQ(shrunk.actions_after, 2);
    EXPECT_EQ(small->timeline_count, 2);
    EXPECT_EQ(small->timeline[0].kind, ACTION_APPLY);
    EXPECT_EQ(small->timeline[1].kind, ACTION_DELETE);
    EXPECT_EQ(small->chaos.steps, 0);
    EXPECT_EQ(small->object_count, 0);
    EXPECT_EQ(shrunk.objects_before, 3);
    EXPECT_EQ(shrunk.objects_after, 0);
    EXPECT_TRUE(shrunk.smaller);
    EXPECT_TRUE(small->rates.store_error == 0 && small->rates.store_lost_reply == 0 &&
                small->rates.launch_error == 0 && small->rates.watch_cut == 0);
    EXPECT_TRUE(small->crashes_per_hour == 0);
    EXPECT_EQ(small->event_delay_ns, 0);
    EXPECT_EQ(shrunk.result.finding.rule, 7);
    EXPECT_STR(shrunk.result.finding.what, "Pod held is still being deleted");
}

TEST(what_is_shrunk_is_a_file_that_breaks_in_the_same_way)
{
    AUTO(scenario) s = parse(STR(LIVELY MISTAKE));
    AUTO_ARENA arena = { 0 };
    AUTO_BUF text = { 0 };
    struct shrunk shrunk;
    EXPECT_TRUE(scenario_shrink(s, 1, 60, &arena, &shrunk));
    scenario_write(shrunk.scenario, &text);
    AUTO(scenario) again = parse(buf_str(&text));
    EXPECT_EQ(again->seed, 1);
    struct run_result result = run(again, again->seed, &arena);
    EXPECT_TRUE(result.broken);
    EXPECT_EQ(result.finding.rule, shrunk.result.finding.rule);
    EXPECT_TRUE(str_eq(result.finding.what, shrunk.result.finding.what));
    EXPECT_TRUE(result.hash == shrunk.result.hash);
}

/* What it has when the tries are used up still breaks. */
TEST(shrinking_takes_no_more_tries_than_it_may)
{
    AUTO(scenario) s = parse(STR(LIVELY MISTAKE));
    uint32_t before = UINT32_MAX;
    for (uint32_t most = 2; most <= 32; most *= 2) {
        AUTO_ARENA arena = { 0 };
        struct shrunk shrunk;
        EXPECT_TRUE(scenario_shrink(s, 1, most, &arena, &shrunk));
        EXPECT_TRUE(shrunk.tries <= most);
        EXPECT_TRUE(shrunk.actions_after <= before);
        EXPECT_TRUE(run(shrunk.scenario, 1, &arena).broken);
        before = shrunk.actions_after;
    }
    AUTO_ARENA arena = { 0 };
    struct shrunk shrunk;
    EXPECT_FALSE(scenario_shrink(s, 1, 0, &arena, &shrunk));
}

TEST(what_does_not_break_is_not_shrunk)
{
    AUTO(scenario) s = parse(STR(LIVELY));
    AUTO_ARENA arena = { 0 };
    struct shrunk shrunk;
    EXPECT_FALSE(scenario_shrink(s, 3, 500, &arena, &shrunk));
}

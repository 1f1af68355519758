/* karve simulate, as users and scripts meet it. */
#include "cli_testing.h"

/* Two pods on kwok's types; the first node is lost. Half an hour of it is enough here. */
#define RUN "simulate transient --until 30m "

static const json_val *json_of(const struct result *r, struct doc *doc)
{
    struct err err;
    EXPECT_OK(json_read(buf_str(&r->out), doc, &err), err);
    return doc->root;
}

static int64_t number_at(const json_val *root, const char *path)
{
    int64_t n = -1;
    EXPECT_TRUE(json_i64(json_path(root, path), &n));
    return n;
}

TEST(a_run_prints_a_timeline_and_then_what_it_came_to)
{
    AUTO_RESULT r = karve(RUN);
    EXPECT_EQ(r.code, 0);
    EXPECT_STR(buf_str(&r.err), "");
    EXPECT_HAS(buf_str(&r.out), "action  whatever boots now is lost\n");
    EXPECT_HAS(buf_str(&r.out), "\npods      2 running, 0 starting, 0 pending");
    EXPECT_HAS(buf_str(&r.out), "NODEPOOL");
    EXPECT_HAS(buf_str(&r.out), "30m of virtual time in ");
}

TEST(quiet_leaves_the_timeline_out)
{
    AUTO_RESULT r = karve(RUN "--quiet");
    EXPECT_EQ(r.code, 0);
    EXPECT_TRUE(str_starts(buf_str(&r.out), STR("transient, seed ")));
}

TEST(json_is_one_document_and_the_same_every_time)
{
    AUTO_RESULT a = karve(RUN "-o json --seed 5"), b = karve(RUN "-o json --seed 5");
    struct doc doc;
    EXPECT_EQ(a.code, 0);
    const json_val *root = json_of(&a, &doc);
    EXPECT_EQ(number_at(root, "seed"), 5);
    EXPECT_EQ(number_at(root, "pods.running"), 2);
    EXPECT_EQ(number_at(root, "pods.bound"), 2);
    EXPECT_TRUE(number_at(root, "cloud.launches") >= 1);
    EXPECT_TRUE(json_is_null(json_get(root, STR("finding"))));
    EXPECT_TRUE(str_eq(buf_str(&a.out), buf_str(&b.out)));
    doc_done(&doc);
}

TEST(a_campaign_gives_the_same_bytes_on_any_number_of_threads)
{
    AUTO_RESULT one = karve(RUN "--seeds 1..6 --jobs 1 -o json");
    AUTO_RESULT three = karve(RUN "--seeds 1..6 --jobs 3 -o json");
    struct doc doc;
    EXPECT_EQ(one.code, 0);
    const json_val *root = json_of(&one, &doc);
    EXPECT_EQ(number_at(root, "seeds"), 6);
    EXPECT_EQ(json_count(json_get(root, STR("results"))), 6);
    EXPECT_EQ(number_at(json_at(json_get(root, STR("results")), 3), "seed"), 4);
    EXPECT_TRUE(str_eq(buf_str(&one.out), buf_str(&three.out)));
    doc_done(&doc);
}

TEST(a_campaign_says_how_many_are_broken)
{
    AUTO_RESULT r = karve(RUN "--seeds 1..3");
    EXPECT_EQ(r.code, 0);
    EXPECT_HAS(buf_str(&r.out), "transient: 3 seeds, 0 broken\n");
}

TEST(a_report_is_written_where_it_was_asked_for)
{
    AUTO_RESULT r =
        sh("dir=$(mktemp -d) && karve " RUN "-q --report \"$dir/out.html\" | tail -1 && "
           "grep -c '</html>' \"$dir/out.html\"; rm -rf \"$dir\"",
           STR(""));
    EXPECT_HAS(buf_str(&r.out), "report: ");
    EXPECT_HAS(buf_str(&r.out), "\n1\n");
}

TEST(a_report_that_cannot_be_written_is_an_environment_that_failed)
{
    AUTO_RESULT r = karve(RUN "-q --report /nonexistent/out.html");
    EXPECT_EQ(r.code, 3);
    EXPECT_HAS(buf_str(&r.err), "/nonexistent/out.html");
}

TEST(flags_may_come_from_the_environment)
{
    AUTO_RESULT r = sh("KARVE_SEED=11 KARVE_OUTPUT=json karve " RUN, STR(""));
    struct doc doc;
    EXPECT_EQ(number_at(json_of(&r, &doc), "seed"), 11);
    doc_done(&doc);
}

TEST(mistakes_on_the_command_line_are_usage_errors)
{
    static const struct {
        const char *arguments, *says;
    } cases[] = {
        { "simulate", "black-friday" }, /* lists what there is */
        { "simulate a b", "expected one scenario" },
        { RUN "--seed -1", "a number from 0 up" },
        { RUN "--seeds 5..1", "a range such as 1..1000" },
        { RUN "--seeds 5", "a range such as 1..1000" },
        { RUN "--seed 1 --seeds 1..2", "exclude each other" },
        { RUN "--seeds 1..2 --report x.html", "--report is of one seed" },
        { RUN "--jobs 0", "a number from 1 to 1024" },
        { "simulate transient --until soon", "a duration such as" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO_RESULT r = karve(cases[i].arguments);
        EXPECT_EQ(r.code, 2);
        EXPECT_HAS(buf_str(&r.err), cases[i].says);
    }
}

TEST(a_scenario_that_is_not_there_is_an_environment_that_failed)
{
    AUTO_RESULT r = karve("simulate no-such-scenario.yaml");
    EXPECT_EQ(r.code, 3);
    EXPECT_HAS(buf_str(&r.err), "no-such-scenario.yaml");
}

TEST(a_broken_scenario_is_told_with_its_line)
{
    AUTO_RESULT r =
        sh("f=$(mktemp) && printf 'name: x\\ndurration: 1h\\n' >$f && karve simulate $f; "
           "c=$?; rm -f $f; exit $c",
           STR(""));
    EXPECT_EQ(r.code, 1);
    EXPECT_HAS(buf_str(&r.err), ":2:");
}

/* A pod bound by hand to a node that is too small for it. The Deployment has nothing to do with it. */
static const char overfull[] =
    "name: overfull\n"
    "duration: 30m\n"
    "cloud: {types: kwok}\n"
    "objects:\n"
    "- {apiVersion: v1, kind: Node, metadata: {name: old-1}, spec: {},\n"
    "   status: {allocatable: {cpu: '1', memory: 2Gi, pods: '10'},\n"
    "            conditions: [{type: Ready, status: 'True'}]}}\n"
    "- apiVersion: apps/v1\n"
    "  kind: Deployment\n"
    "  metadata: {name: web}\n"
    "  spec: {replicas: 0, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}},\n"
    "         spec: {containers: [{name: web, image: web}]}}}\n"
    "timeline:\n"
    "- at: 10m\n"
    "  apply:\n"
    "    apiVersion: v1\n"
    "    kind: Pod\n"
    "    metadata: {name: greedy, namespace: default}\n"
    "    spec: {nodeName: old-1, containers: [{name: c, image: i, resources: {requests: {cpu: '2'}}}]}\n";

TEST(a_broken_invariant_is_told_with_seed_and_step_and_the_least_that_breaks_it)
{
    AUTO_RESULT r = sh("karve simulate /dev/stdin -q --seed 3 --until 20m", str_of(overfull));
    EXPECT_EQ(r.code, 1);
    EXPECT_HAS(buf_str(&r.err), "karve simulate: seed 3, step 1, after 10m: invariant 1 is broken: "
                                "node old-1 has 1 of cpu and its pods ask for 2\n"
                                "  again: karve simulate /dev/stdin --seed 3 --until 20m\n");
    EXPECT_HAS(buf_str(&r.err), "  the least that breaks it has 1 of 1 actions and 1 of 2 objects");
    EXPECT_TRUE(strstr(r.err.p, "Deployment") == NULL);
}

TEST(the_least_that_breaks_it_breaks_again_and_nothing_can_be_left_out_of_it)
{
    AUTO_RESULT r =
        sh("d=$(mktemp -d) && cat >$d/a.yaml && karve simulate $d/a.yaml -q 2>&1 >/dev/null | "
           "sed -n '/^name:/,$p' >$d/b.yaml; karve simulate $d/b.yaml -q; c=$?; rm -rf $d; exit $c",
           str_of(overfull));
    EXPECT_EQ(r.code, 1);
    EXPECT_HAS(buf_str(&r.err), "step 1, after 10m: invariant 1 is broken");
    EXPECT_HAS(buf_str(&r.err), "nothing could be left out of it");
}

TEST(what_a_campaign_finds_is_the_same_on_any_number_of_threads)
{
    AUTO_RESULT one = sh("karve simulate /dev/stdin -q --seeds 1..4 -j 1", str_of(overfull));
    AUTO_RESULT three = sh("karve simulate /dev/stdin -q --seeds 1..4 -j 3", str_of(overfull));
    EXPECT_EQ(one.code, 1);
    EXPECT_EQ(three.code, 1);
    EXPECT_HAS(buf_str(&one.out), "overfull: 4 seeds, 4 broken\n");
    EXPECT_HAS(buf_str(&one.err), "seed 4, step 1");
    EXPECT_TRUE(str_eq(buf_str(&one.err), buf_str(&three.err)));
}

TEST(the_log_of_the_control_plane_is_in_virtual_time)
{
    AUTO_RESULT r = karve(RUN "-q --log-level debug");
    EXPECT_EQ(r.code, 0);
    EXPECT_HAS(buf_str(&r.err), "\"level\":");
}

TEST(pods_that_wait_for_a_probe_are_told_that_a_node_is_being_tried)
{
    AUTO_RESULT r = karve("simulate cooldown");
    EXPECT_EQ(r.code, 0);
    EXPECT_HAS(buf_str(&r.out), "; a node is being tried now; NodePool fallback");
    EXPECT_TRUE(strstr(r.out.p, "next try now") == NULL);
}

TEST(a_scenario_with_a_typo_is_told_which_was_meant)
{
    AUTO_RESULT r = karve("simulate black-fridy");
    EXPECT_EQ(r.code, 3);
    EXPECT_HAS(buf_str(&r.err), "did you mean black-friday?");
}

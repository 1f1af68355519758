/* Calls as kube-scheduler sends them, and what it is told. */
#include "compat/extender.h"
#include "compat/service_testing.h"

struct extender_rig {
    struct service_rig base;
    struct extender *extender;
    struct metrics *metrics;
};

static void start(struct extender_rig *rig, struct compat_settings settings)
{
    service_rig_start(&rig->base, settings);
    rig->metrics = metrics_new(clock_real());
    rig->extender = extender_new((struct extender_options){ .service = rig->base.service,
                                                            .pool = rig->base.pool,
                                                            .maybe_metrics = rig->metrics,
                                                            .clock = clock_real() });
}

static void done(struct extender_rig *rig)
{
    extender_free(rig->extender);
    service_rig_done(&rig->base);
    metrics_free(rig->metrics);
}
#define EXTENDER_RIG __attribute__((cleanup(done))) struct extender_rig

static struct str call(struct extender_rig *rig, enum extender_verb verb, int status,
                       struct str body, struct buf *out)
{
    buf_clear(out);
    EXPECT_EQ(extender_answer(rig->extender, verb, body, out), status);
    return buf_str(out);
}

#define POD(name, image)                                                                           \
    "'Pod':{'metadata':{'name':'" name "','namespace':'default','uid':'uid-" name                  \
    "'},'spec':{'containers':[{'name':'c','image':'" image "'}]},'status':{}}"
#define FILTER(name, image, nodes) js("{" POD(name, image) ",'Nodes':null,'NodeNames':[" nodes "]}")

/* Two amd64 nodes, one of them with AVX2, and an arm64 node. */
static void three_nodes(struct extender_rig *rig)
{
    rig_node(&rig->base, "plain", "amd64", CPU_FLAGS("'SSE':{}"));
    rig_node(&rig->base, "avx", "amd64", CPU_FLAGS("'AVX2':{}"));
    rig_node(&rig->base, "arm", "arm64", CPU_FLAGS("'ASIMD':{}"));
}

TEST(nodes_that_cannot_run_the_image_are_refused_with_the_rule_that_says_so)
{
    EXTENDER_RIG rig = { 0 };
    AUTO_BUF out = { 0 };
    start(&rig, (struct compat_settings){ 0 });
    three_nodes(&rig);
    rig_image(&rig.base, "app:1", "amd64", NEEDS_FLAG("AVX2"));
    rig_settle(&rig.base, rig_pod(&rig.base, "web", "app:1"));
    struct str reply =
        call(&rig, EXTENDER_FILTER, 200, FILTER("web", "app:1", "'plain','avx','arm'"), &out);
    EXPECT_HAS(reply,
               "{\"NodeNames\":[\"avx\"],\"FailedNodes\":{},\"FailedAndUnresolvableNodes\":{");
    EXPECT_HAS(reply, "\"plain\":\"node(s) refused: app:1");
    EXPECT_HAS(reply, "cpu.cpuid AVX2: expected to exist, is absent");
    EXPECT_HAS(reply, "\"arm\":\"node(s) refused: app:1");
    EXPECT_HAS(reply, "amd64");
    EXPECT_HAS(reply, "},\"Error\":\"\"}");
}

TEST(an_image_without_an_artifact_still_keeps_to_its_architectures)
{
    EXTENDER_RIG rig = { 0 };
    AUTO_BUF out = { 0 };
    start(&rig, (struct compat_settings){ 0 });
    three_nodes(&rig);
    rig_image(&rig.base, "arm-only:1", "arm64", NULL);
    rig_settle(&rig.base, rig_pod(&rig.base, "web", "arm-only:1"));
    EXPECT_HAS(
        call(&rig, EXTENDER_FILTER, 200, FILTER("web", "arm-only:1", "'plain','avx','arm'"), &out),
        "{\"NodeNames\":[\"arm\"]");
}

TEST(an_image_that_nobody_has_keeps_nothing_off)
{
    EXTENDER_RIG rig = { 0 };
    AUTO_BUF out = { 0 };
    start(&rig, (struct compat_settings){ 0 });
    three_nodes(&rig);
    rig_settle(&rig.base, rig_pod(&rig.base, "web", "nowhere:1"));
    EXPECT_STR(
        call(&rig, EXTENDER_FILTER, 200, FILTER("web", "nowhere:1", "'arm','avx'"), &out),
        "{\"NodeNames\":[\"arm\",\"avx\"],\"FailedNodes\":{},\"FailedAndUnresolvableNodes\":{},"
        "\"Error\":\"\"}");
}

TEST(a_pod_whose_image_is_being_looked_up_is_to_be_tried_again)
{
    EXTENDER_RIG rig = { 0 };
    AUTO_BUF out = { 0 };
    start(&rig, (struct compat_settings){ 0 });
    three_nodes(&rig);
    rig_image(&rig.base, "app:1", "amd64", NULL);
    service_rig_hold(&rig.base, true);
    const struct pod *pod = rig_pod(&rig.base, "web", "app:1");
    EXPECT_STR(call(&rig, EXTENDER_FILTER, 200, FILTER("web", "app:1", "'arm','avx'"), &out),
               "{\"Error\":\"app:1 is being looked up: try again\"}");
    EXPECT_STR(call(&rig, EXTENDER_PRIORITIZE, 200, FILTER("web", "app:1", "'avx'"), &out), "[]");
    service_rig_hold(&rig.base, false);
    rig_settle(&rig.base, pod);
    EXPECT_HAS(call(&rig, EXTENDER_FILTER, 200, FILTER("web", "app:1", "'arm','avx'"), &out),
               "{\"NodeNames\":[\"avx\"]");
}

TEST(a_registry_that_fails_stops_the_pod_or_not_as_the_policy_says)
{
    for (int ignore = 0; ignore < 2; ignore++) {
        EXTENDER_RIG rig = { 0 };
        AUTO_BUF out = { 0 };
        start(&rig, (struct compat_settings){ .on_resolve_error =
                                                  ignore ? RESOLVE_IGNORE : RESOLVE_FAIL });
        three_nodes(&rig);
        service_rig_fail(&rig.base, ERR_UNAVAILABLE);
        rig_settle(&rig.base, rig_pod(&rig.base, "web", "app:1"));
        struct str reply =
            call(&rig, EXTENDER_FILTER, 200, FILTER("web", "app:1", "'arm','avx'"), &out);
        EXPECT_HAS(reply, ignore ? "{\"NodeNames\":[\"arm\",\"avx\"]"
                                 : "{\"Error\":\"app:1: it could not be looked up: scripted\"}");
    }
}

TEST(a_pod_that_nobody_has_told_of_is_read_from_the_call)
{
    EXTENDER_RIG rig = { 0 };
    AUTO_BUF out = { 0 };
    start(&rig, (struct compat_settings){ 0 });
    three_nodes(&rig);
    rig_image(&rig.base, "app:1", "arm64", NULL);
    for (int i = 0; i < 3000; i++) {
        call(&rig, EXTENDER_FILTER, 200, FILTER("new", "app:1", "'arm','avx'"), &out);
        if (!strstr(out.p, "looked up"))
            break;
        usleep(10000);
    }
    EXPECT_HAS(buf_str(&out), "{\"NodeNames\":[\"arm\"]");
    EXPECT_EQ(rig.base.asks, 1);
}

TEST(a_node_that_is_not_known_here_yet_is_refused_for_the_moment)
{
    EXTENDER_RIG rig = { 0 };
    AUTO_BUF out = { 0 };
    start(&rig, (struct compat_settings){ 0 });
    three_nodes(&rig);
    rig_image(&rig.base, "app:1", "amd64", NULL);
    rig_settle(&rig.base, rig_pod(&rig.base, "web", "app:1"));
    EXPECT_STR(
        call(&rig, EXTENDER_FILTER, 200, FILTER("web", "app:1", "'new','avx'"), &out),
        "{\"NodeNames\":[\"avx\"],\"FailedNodes\":{\"new\":\"its features are not known yet\"},"
        "\"FailedAndUnresolvableNodes\":{},\"Error\":\"\"}");
}

TEST(nodes_that_match_a_set_of_more_weight_score_higher)
{
    EXTENDER_RIG rig = { 0 };
    AUTO_BUF out = { 0 };
    start(&rig, (struct compat_settings){ .rules = { .sets = SETS_ANY } });
    three_nodes(&rig);
    rig_image(
        &rig.base, "app:1", "amd64",
        "[{tag: fast, weight: 80, rules: [{name: r, matchFeatures: [{feature: cpu.cpuid, "
        "matchExpressions: {AVX2: {op: Exists}}}]}]},"
        " {tag: any, weight: 20, rules: [{name: r, matchFeatures: [{feature: cpu.cpuid}]}]}]");
    rig_settle(&rig.base, rig_pod(&rig.base, "web", "app:1"));
    EXPECT_STR(call(&rig, EXTENDER_PRIORITIZE, 200, FILTER("web", "app:1", "'plain','avx'"), &out),
               "[{\"Host\":\"plain\",\"Score\":3},{\"Host\":\"avx\",\"Score\":10}]");
}

TEST(nobody_is_evicted_from_a_node_that_does_not_fit)
{
    EXTENDER_RIG rig = { 0 };
    AUTO_BUF out = { 0 };
    start(&rig, (struct compat_settings){ 0 });
    three_nodes(&rig);
    rig_image(&rig.base, "app:1", "amd64", NEEDS_FLAG("AVX2"));
    rig_settle(&rig.base, rig_pod(&rig.base, "web", "app:1"));
    EXPECT_STR(
        call(&rig, EXTENDER_PREEMPT, 200,
             js("{" POD("web",
                        "app:1") ",'NodeNameToVictims':null,'NodeNameToMetaVictims':{"
                                 "'plain':{'Pods':[{'UID':'a'}],'NumPDBViolations':0},"
                                 "'avx':{'Pods':[{'UID':'b'},{'UID':'c'}],'NumPDBViolations':1}}}"),
             &out),
        "{\"NodeNameToMetaVictims\":{\"avx\":{\"Pods\":[{\"UID\":\"b\"},{\"UID\":\"c\"}],"
        "\"NumPDBViolations\":1}}}");
    EXPECT_STR(
        call(&rig, EXTENDER_PREEMPT, 200,
             js("{" POD("web",
                        "app:1") ",'NodeNameToVictims':{'avx':{'Pods':["
                                 "{'metadata':{'name':'x','uid':'b'}}],'NumPDBViolations':0}},"
                                 "'NodeNameToMetaVictims':null}"),
             &out),
        "{\"NodeNameToMetaVictims\":{\"avx\":{\"Pods\":[{\"UID\":\"b\"}],"
        "\"NumPDBViolations\":0}}}");
}

TEST(who_sends_whole_nodes_gets_whole_nodes)
{
    EXTENDER_RIG rig = { 0 };
    AUTO_BUF out = { 0 };
    start(&rig, (struct compat_settings){ 0 });
    three_nodes(&rig);
    rig_image(&rig.base, "app:1", "arm64", NULL);
    rig_settle(&rig.base, rig_pod(&rig.base, "web", "app:1"));
    struct str reply = call(
        &rig, EXTENDER_FILTER, 200,
        js("{" POD(
            "web",
            "app:1") ",'Nodes':{'metadata':{},'items':["
                     "{'metadata':{'name':'avx'}},{'metadata':{'name':'arm'},'spec':{'podCIDR':'x'}}]},"
                     "'NodeNames':null}"),
        &out);
    EXPECT_HAS(reply, "{\"Nodes\":{\"metadata\":{},\"items\":[{\"metadata\":{\"name\":\"arm\"},"
                      "\"spec\":{\"podCIDR\":\"x\"}}]},");
    EXPECT_HAS(reply, "\"avx\":\"node(s) refused: app:1");
}

TEST(field_names_are_read_in_any_case)
{
    EXTENDER_RIG rig = { 0 };
    AUTO_BUF out = { 0 };
    start(&rig, (struct compat_settings){ 0 });
    three_nodes(&rig);
    rig_image(&rig.base, "app:1", "arm64", NULL);
    rig_settle(&rig.base, rig_pod(&rig.base, "web", "app:1"));
    EXPECT_HAS(call(&rig, EXTENDER_FILTER, 200,
                    js("{'pod':{'metadata':{'uid':'uid-web'}},'nodenames':['arm','avx']}"), &out),
               "{\"NodeNames\":[\"arm\"]");
}

TEST(what_cannot_be_read_is_an_error_and_changes_nothing)
{
    static const char *const bodies[] = {
        "",
        "[]",
        "{}",
        "{'Pod':null,'NodeNames':['a']}",
        "{'Pod':{'metadata':{'uid':'u'}},'NodeNames':[1]}",
        "{'Pod':{'metadata':{'uid':'u'},'spec':{'containers':7}},'NodeNames':['a']}",
        "{'Pod':{'metadata':{'uid':'u'}},'Nodes':{'items':[{'metadata':{}}]}}",
        "{'Pod':{'metadata':{'uid':'u'}},'NodeNames':['a']",
    };
    EXTENDER_RIG rig = { 0 };
    AUTO_BUF out = { 0 };
    start(&rig, (struct compat_settings){ 0 });
    for (size_t i = 0; i < KV_COUNT_OF(bodies); i++)
        EXPECT_HAS(call(&rig, EXTENDER_FILTER, 400, js("%s", bodies[i]), &out), "{\"Error\":\"");
    EXPECT_HAS(call(&rig, EXTENDER_PREEMPT, 400,
                    js("{" POD("web", "app:1") ",'NodeNameToMetaVictims':{'a':7}}"), &out),
               "{\"Error\":\"victims of \\\"a\\\": expected an object\"}");
}

TEST(calls_are_counted_by_how_they_ended)
{
    EXTENDER_RIG rig = { 0 };
    AUTO_BUF out = { 0 }, text = { 0 };
    start(&rig, (struct compat_settings){ 0 });
    three_nodes(&rig);
    rig_image(&rig.base, "app:1", "arm64", NULL);
    rig_settle(&rig.base, rig_pod(&rig.base, "web", "app:1"));
    call(&rig, EXTENDER_FILTER, 200, FILTER("web", "app:1", "'avx','arm'"), &out);
    call(&rig, EXTENDER_FILTER, 400, STR("x"), &out);
    metrics_write(rig.metrics, &text);
    EXPECT_HAS(buf_str(&text),
               "karve_extender_requests_total{verb=\"filter\",outcome=\"answered\"} 1\n");
    EXPECT_HAS(buf_str(&text),
               "karve_extender_requests_total{verb=\"filter\",outcome=\"malformed\"} 1\n");
    EXPECT_HAS(buf_str(&text), "karve_extender_nodes_refused_total 1\n");
}

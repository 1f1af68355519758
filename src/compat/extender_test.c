/* Calls as kube-scheduler sends them, and what it is told. */
#include "compat/extender.h"
#include "compat/service_testing.h"

struct extender_rig {
    struct service_rig base;
    struct extender *extender;
    struct metrics *metrics;
    struct buf reply; /* to the last call */
};

/* It knows two amd64 nodes, one of them with AVX2, and an arm64 node. */
static struct extender_rig *extender_rig_new(struct compat_settings settings)
{
    struct extender_rig *rig = kv_calloc(1, sizeof *rig);
    service_rig_start(&rig->base, settings);
    rig->metrics = metrics_new(clock_real());
    rig->extender = extender_new((struct extender_options){ .service = rig->base.service,
                                                            .pool = rig->base.pool,
                                                            .maybe_metrics = rig->metrics,
                                                            .clock = clock_real() });
    rig_node(&rig->base, "plain", "amd64", CPU_FLAGS("'SSE':{}"));
    rig_node(&rig->base, "avx", "amd64", CPU_FLAGS("'AVX2':{}"));
    rig_node(&rig->base, "arm", "arm64", CPU_FLAGS("'ASIMD':{}"));
    return rig;
}

static void extender_rig_free(struct extender_rig *rig)
{
    extender_free(rig->extender);
    service_rig_done(&rig->base);
    metrics_free(rig->metrics);
    buf_done(&rig->reply);
    free(rig);
}
KV_AUTO_TYPE(extender_rig, extender_rig_free)

/* The image app:1, and the pod "web" that runs it; nothing is left to look up. */
static void web_runs_app(struct extender_rig *rig, const char *architecture, const char *maybe_sets)
{
    rig_image(&rig->base, "app:1", architecture, maybe_sets);
    rig_settle(&rig->base, rig_pod(&rig->base, "web", "app:1"));
}

/* The reply, until the next call. */
static struct str call(struct extender_rig *rig, enum extender_verb verb, int status,
                       struct str body)
{
    buf_clear(&rig->reply);
    EXPECT_EQ(extender_answer(rig->extender, verb, body, &rig->reply), status);
    return buf_str(&rig->reply);
}

#define POD(name, image)                                                                           \
    "'Pod':{'metadata':{'name':'" name "','namespace':'default','uid':'uid-" name                  \
    "'},'spec':{'containers':[{'name':'c','image':'" image "'}]},'status':{}}"
#define WEB POD("web", "app:1")
#define FILTER(name, image, nodes) js("{" POD(name, image) ",'Nodes':null,'NodeNames':[" nodes "]}")

TEST(nodes_that_cannot_run_the_image_are_refused_with_the_rule_that_says_so)
{
    AUTO(extender_rig) rig = extender_rig_new((struct compat_settings){ 0 });
    web_runs_app(rig, "amd64", NEEDS_FLAG("AVX2"));
    struct str reply =
        call(rig, EXTENDER_FILTER, 200, FILTER("web", "app:1", "'plain','avx','arm'"));
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
    AUTO(extender_rig) rig = extender_rig_new((struct compat_settings){ 0 });
    rig_image(&rig->base, "arm-only:1", "arm64", NULL);
    rig_settle(&rig->base, rig_pod(&rig->base, "web", "arm-only:1"));
    EXPECT_HAS(call(rig, EXTENDER_FILTER, 200, FILTER("web", "arm-only:1", "'plain','avx','arm'")),
               "{\"NodeNames\":[\"arm\"]");
}

TEST(an_image_that_nobody_has_keeps_nothing_off)
{
    AUTO(extender_rig) rig = extender_rig_new((struct compat_settings){ 0 });
    rig_settle(&rig->base, rig_pod(&rig->base, "web", "nowhere:1"));
    EXPECT_STR(
        call(rig, EXTENDER_FILTER, 200, FILTER("web", "nowhere:1", "'arm','avx'")),
        "{\"NodeNames\":[\"arm\",\"avx\"],\"FailedNodes\":{},\"FailedAndUnresolvableNodes\":{},"
        "\"Error\":\"\"}");
}

TEST(a_pod_whose_image_is_being_looked_up_is_to_be_tried_again)
{
    AUTO(extender_rig) rig = extender_rig_new((struct compat_settings){ 0 });
    rig_image(&rig->base, "app:1", "amd64", NULL);
    service_rig_hold(&rig->base, true);
    const struct pod *pod = rig_pod(&rig->base, "web", "app:1");
    EXPECT_STR(call(rig, EXTENDER_FILTER, 200, FILTER("web", "app:1", "'arm','avx'")),
               "{\"Error\":\"app:1 is being looked up: try again\"}");
    EXPECT_STR(call(rig, EXTENDER_PRIORITIZE, 200, FILTER("web", "app:1", "'avx'")), "[]");
    service_rig_hold(&rig->base, false);
    rig_settle(&rig->base, pod);
    EXPECT_HAS(call(rig, EXTENDER_FILTER, 200, FILTER("web", "app:1", "'arm','avx'")),
               "{\"NodeNames\":[\"avx\"]");
}

TEST(a_registry_that_fails_stops_the_pod_or_not_as_the_policy_says)
{
    for (int ignore = 0; ignore < 2; ignore++) {
        AUTO(extender_rig) rig = extender_rig_new(
            (struct compat_settings){ .on_resolve_error = ignore ? RESOLVE_IGNORE : RESOLVE_FAIL });
        service_rig_fail(&rig->base, ERR_UNAVAILABLE);
        rig_settle(&rig->base, rig_pod(&rig->base, "web", "app:1"));
        struct str reply = call(rig, EXTENDER_FILTER, 200, FILTER("web", "app:1", "'arm','avx'"));
        EXPECT_HAS(reply, ignore ? "{\"NodeNames\":[\"arm\",\"avx\"]"
                                 : "{\"Error\":\"app:1: it could not be looked up: scripted\"}");
    }
}

TEST(a_pod_that_nobody_has_told_of_is_read_from_the_call)
{
    AUTO(extender_rig) rig = extender_rig_new((struct compat_settings){ 0 });
    rig_image(&rig->base, "app:1", "arm64", NULL);
    for (int i = 0; i < 3000; i++) {
        call(rig, EXTENDER_FILTER, 200, FILTER("new", "app:1", "'arm','avx'"));
        if (!strstr(rig->reply.p, "looked up"))
            break;
        usleep(10000);
    }
    EXPECT_HAS(buf_str(&rig->reply), "{\"NodeNames\":[\"arm\"]");
    EXPECT_EQ(rig->base.asks, 1);
}

TEST(a_node_that_is_not_known_here_yet_is_refused_for_the_moment)
{
    AUTO(extender_rig) rig = extender_rig_new((struct compat_settings){ 0 });
    web_runs_app(rig, "amd64", NULL);
    EXPECT_STR(
        call(rig, EXTENDER_FILTER, 200, FILTER("web", "app:1", "'new','avx'")),
        "{\"NodeNames\":[\"avx\"],\"FailedNodes\":{\"new\":\"its features are not known yet\"},"
        "\"FailedAndUnresolvableNodes\":{},\"Error\":\"\"}");
}

TEST(nodes_that_match_a_set_of_more_weight_score_higher)
{
    AUTO(extender_rig) rig =
        extender_rig_new((struct compat_settings){ .rules = { .sets = SETS_ANY } });
    web_runs_app(
        rig, "amd64",
        "[{tag: fast, weight: 80, rules: [{name: r, matchFeatures: [{feature: cpu.cpuid, "
        "matchExpressions: {AVX2: {op: Exists}}}]}]},"
        " {tag: any, weight: 20, rules: [{name: r, matchFeatures: [{feature: cpu.cpuid}]}]}]");
    EXPECT_STR(call(rig, EXTENDER_PRIORITIZE, 200, FILTER("web", "app:1", "'plain','avx'")),
               "[{\"Host\":\"plain\",\"Score\":3},{\"Host\":\"avx\",\"Score\":10}]");
}

TEST(nobody_is_evicted_from_a_node_that_does_not_fit)
{
    AUTO(extender_rig) rig = extender_rig_new((struct compat_settings){ 0 });
    web_runs_app(rig, "amd64", NEEDS_FLAG("AVX2"));
    EXPECT_STR(call(rig, EXTENDER_PREEMPT, 200,
                    js("{" WEB ",'NodeNameToVictims':null,'NodeNameToMetaVictims':{"
                       "'plain':{'Pods':[{'UID':'a'}],'NumPDBViolations':0},"
                       "'avx':{'Pods':[{'UID':'b'},{'UID':'c'}],'NumPDBViolations':1}}}")),
               "{\"NodeNameToMetaVictims\":{\"avx\":{\"Pods\":[{\"UID\":\"b\"},{\"UID\":\"c\"}],"
               "\"NumPDBViolations\":1}}}");
    EXPECT_STR(call(rig, EXTENDER_PREEMPT, 200,
                    js("{" WEB ",'NodeNameToVictims':{'avx':{'Pods':["
                       "{'metadata':{'name':'x','uid':'b'}}],'NumPDBViolations':0}},"
                       "'NodeNameToMetaVictims':null}")),
               "{\"NodeNameToMetaVictims\":{\"avx\":{\"Pods\":[{\"UID\":\"b\"}],"
               "\"NumPDBViolations\":0}}}");
}

TEST(who_sends_whole_nodes_gets_whole_nodes)
{
    AUTO(extender_rig) rig = extender_rig_new((struct compat_settings){ 0 });
    web_runs_app(rig, "arm64", NULL);
    struct str reply =
        call(rig, EXTENDER_FILTER, 200,
             js("{" WEB ",'Nodes':{'metadata':{},'items':["
                "{'metadata':{'name':'avx'}},{'metadata':{'name':'arm'},'spec':{'podCIDR':'x'}}]},"
                "'NodeNames':null}"));
    EXPECT_HAS(reply, "{\"Nodes\":{\"metadata\":{},\"items\":[{\"metadata\":{\"name\":\"arm\"},"
                      "\"spec\":{\"podCIDR\":\"x\"}}]},");
    EXPECT_HAS(reply, "\"avx\":\"node(s) refused: app:1");
}

TEST(field_names_are_read_in_any_case)
{
    AUTO(extender_rig) rig = extender_rig_new((struct compat_settings){ 0 });
    web_runs_app(rig, "arm64", NULL);
    EXPECT_HAS(call(rig, EXTENDER_FILTER, 200,
                    js("{'pod':{'metadata':{'uid':'uid-web'}},'nodenames':['arm','avx']}")),
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
    AUTO(extender_rig) rig = extender_rig_new((struct compat_settings){ 0 });
    for (size_t i = 0; i < KV_COUNT_OF(bodies); i++)
        EXPECT_HAS(call(rig, EXTENDER_FILTER, 400, js("%s", bodies[i])), "{\"Error\":\"");
    EXPECT_HAS(call(rig, EXTENDER_PREEMPT, 400, js("{" WEB ",'NodeNameToMetaVictims':{'a':7}}")),
               "{\"Error\":\"victims of \\\"a\\\": expected an object\"}");
}

TEST(calls_are_counted_by_how_they_ended)
{
    AUTO(extender_rig) rig = extender_rig_new((struct compat_settings){ 0 });
    AUTO_BUF text = { 0 };
    web_runs_app(rig, "arm64", NULL);
    call(rig, EXTENDER_FILTER, 200, FILTER("web", "app:1", "'avx','arm'"));
    call(rig, EXTENDER_FILTER, 400, STR("x"));
    metrics_write(rig->metrics, &text);
    EXPECT_HAS(buf_str(&text),
               "karve_extender_requests_total{verb=\"filter\",outcome=\"answered\"} 1\n");
    EXPECT_HAS(buf_str(&text),
               "karve_extender_requests_total{verb=\"filter\",outcome=\"malformed\"} 1\n");
    EXPECT_HAS(buf_str(&text), "karve_extender_nodes_refused_total 1\n");
}

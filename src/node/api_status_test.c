#include "node/api_status_testing.h"

/* --- the whole --- */

TEST(a_running_pod_has_the_status_that_an_api_server_would_show)
{
    AUTO_SCENE s = scene_of("metadata: {name: web, generation: 3}\n"
                            "spec: {containers: [{name: app, image: app:1}]}\n");
    const json_val *status =
        tell(&s, runtime_made("uid-web", a_container("app", RUNTIME_RUNNING, .restarts = 2),
                              a_sandbox("s1")));
    EXPECT_JSON(
        status,
        "{'observedGeneration':3,'phase':'Running','conditions':["
        "{'type':'PodReadyToStartContainers','observedGeneration':3,'status':'True',"
        "'lastProbeTime':null,'lastTransitionTime':'2027-01-15T09:00:00Z'},"
        "{'type':'Initialized','observedGeneration':3,'status':'True','lastProbeTime':null,"
        "'lastTransitionTime':'2027-01-15T09:00:00Z'},"
        "{'type':'Ready','observedGeneration':3,'status':'True','lastProbeTime':null,"
        "'lastTransitionTime':'2027-01-15T09:00:00Z'},"
        "{'type':'ContainersReady','observedGeneration':3,'status':'True','lastProbeTime':null,"
        "'lastTransitionTime':'2027-01-15T09:00:00Z'},"
        "{'type':'PodScheduled','observedGeneration':3,'status':'True','lastProbeTime':null,"
        "'lastTransitionTime':'2027-01-15T09:00:00Z'}],"
        "'hostIP':'192.0.2.10','hostIPs':[{'ip':'192.0.2.10'}],"
        "'podIP':'10.88.0.7','podIPs':[{'ip':'10.88.0.7'}],"
        "'startTime':'2027-01-15T09:00:00Z','containerStatuses':["
        "{'name':'app','state':{'running':{'startedAt':'2027-01-15T08:00:01Z'}},'lastState':{},"
        "'ready':true,'restartCount':2,'image':'registry.example/app:1',"
        "'imageID':'registry.example/app@sha256:0123','containerID':'containerd://app-2',"
        "'started':true}],'qosClass':'BestEffort'}");
}

TEST(a_pod_that_nothing_was_done_for_waits_to_be_created)
{
    AUTO_SCENE s = scene_of(ONE_APP);
    const json_val *status = tell(&s, runtime_empty("uid-web"));
    EXPECT_STR(api_status_phase(status), "Pending");
    EXPECT_JSON(app_of(status),
                "{'name':'app','state':{'waiting':{'reason':'ContainerCreating'}},'lastState':{},"
                "'ready':false,'restartCount':0,'image':'app:1','imageID':'','started':false}");
    EXPECT_TRUE(json_get(status, STR("podIP")) == NULL);
}

TEST(init_statuses_keep_the_order_of_the_spec_and_others_are_sorted_by_name)
{
    AUTO_SCENE s =
        scene_of("metadata: {name: web}\n"
                 "spec: {initContainers: [{name: b, image: b}, {name: a, image: a}],"
                 " containers: [{name: z, image: z}, {name: app, image: app:1}],"
                 " ephemeralContainers: [{name: e2, image: e}, {name: e1, image: e}]}\n");
    const json_val *status = tell(&s, runtime_made("uid-web", a_sandbox("s1")));
    static const struct {
        const char *list, *names[2];
    } rows[] = { { "initContainerStatuses", { "b", "a" } },
                 { "containerStatuses", { "app", "z" } },
                 { "ephemeralContainerStatuses", { "e1", "e2" } } };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        const json_val *list = json_get(status, str_of(rows[i].list));
        EXPECT_EQ(json_count(list), 2);
        for (size_t j = 0; j < 2; j++)
            EXPECT_STR(json_str(json_get(json_at(list, j), STR("name"))), rows[i].names[j]);
    }
    EXPECT_JSON(json_get(app_of(status), STR("state")), "{'waiting':{'reason':'PodInitializing'}}");
    EXPECT_TRUE(json_get(of_name(status, "ephemeralContainerStatuses", "e1"), STR("started")) ==
                NULL);
}

/* --- phase, reason, message --- */

TEST(a_terminal_phase_never_goes_back_whoever_said_it)
{
    static const char *const phases[] = { "Succeeded", "Failed" };
    for (size_t i = 0; i < KV_COUNT_OF(phases); i++) {
        AUTO_BUF said = { 0 };
        AUTO_BUF yaml = { 0 };
        buf_addf(&said, "{'phase':'%s','reason':'Why','message':'words'}", phases[i]);
        buf_addf(&yaml, "%sstatus: {phase: %s, reason: Why}\n", ONE_APP, phases[i]);
        AUTO_SCENE by_us = scene_of(ONE_APP);
        by_us.maybe_previous = json_of(&by_us, said.p);
        by_us.with.failed_reason = STR("Evicted"); /* too late */
        AUTO_SCENE by_api = scene_of(yaml.p);
        struct scene *both[] = { &by_us, &by_api };
        for (size_t j = 0; j < KV_COUNT_OF(both); j++) {
            const json_val *status =
                tell(both[j],
                     runtime_made("uid-web", a_container("app", RUNTIME_RUNNING), a_sandbox("s1")));
            EXPECT_STR(api_status_phase(status), phases[i]);
            EXPECT_STR(json_str(json_get(status, STR("reason"))), "Why");
            EXPECT_JSON(json_get(condition(status, "Ready"), STR("status")), "'False'");
        }
    }
}

TEST(reason_and_message_stay_with_the_phase)
{
    AUTO_SCENE s = scene_of(ONE_APP);
    s.maybe_previous = json_of(&s, "{'phase':'Running','reason':'Why','message':'words'}");
    const json_val *status = tell(&s, runtime_made("uid-web", a_container("app", RUNTIME_RUNNING)));
    EXPECT_STR(json_str(json_get(status, STR("reason"))), "Why");
    EXPECT_STR(json_str(json_get(status, STR("message"))), "words");
    s.maybe_previous = json_of(&s, "{'phase':'Pending','reason':'Why','message':'words'}");
    status = tell(&s, runtime_made("uid-web", a_container("app", RUNTIME_RUNNING)));
    EXPECT_TRUE(json_get(status, STR("reason")) == NULL);
    EXPECT_TRUE(json_get(status, STR("message")) == NULL);
}

TEST(a_kill_with_a_verdict_fails_the_pod_with_its_reason)
{
    AUTO_SCENE s = scene_of(ONE_APP);
    s.with.failed_reason = STR("DeadlineExceeded");
    s.with.failed_message = STR("it took too long");
    const json_val *status = tell(&s, runtime_made("uid-web", a_container("app", RUNTIME_RUNNING)));
    EXPECT_STR(api_status_phase(status), "Failed");
    EXPECT_STR(json_str(json_get(status, STR("reason"))), "DeadlineExceeded");
    EXPECT_STR(json_str(json_get(status, STR("message"))), "it took too long");
    EXPECT_JSON(json_get(condition(status, "Ready"), STR("reason")), "'PodFailed'");
    s.with.failed_reason = s.with.failed_message = STR_NONE; /* and it stays so */
    status = tell(&s, runtime_made("uid-web", a_container("app", RUNTIME_EXITED)));
    EXPECT_STR(json_str(json_get(status, STR("reason"))), "DeadlineExceeded");
}

TEST(a_termination_that_is_over_decides_the_phase)
{
    AUTO_SCENE s = scene_of(ONE_APP);
    s.with.terminal = true;
    EXPECT_STR(
        api_status_phase(tell(&s, runtime_made("uid-web", a_container("app", RUNTIME_EXITED)))),
        "Succeeded");
}

/* --- conditions --- */

TEST(a_transition_time_moves_only_with_the_status)
{
    AUTO_SCENE s = scene_of(ONE_APP);
    struct probe_words unready = { NULL, { PROBE_SUCCESS, PROBE_FAILURE, PROBE_SUCCESS } };
    tell(&s, runtime_made("uid-web", a_container("app", RUNTIME_RUNNING), a_sandbox("s1")));
    s.with.now_us = (NOW_S + 5) * 1000000 + 999999;
    s.maybe_probes = &unready;
    const json_val *status =
        tell(&s, runtime_made("uid-web", a_container("app", RUNTIME_RUNNING), a_sandbox("s1")));
    EXPECT_JSON(json_get(condition(status, "Ready"), STR("lastTransitionTime")),
                "'2027-01-15T09:00:05Z'");
    EXPECT_JSON(json_get(condition(status, "PodScheduled"), STR("lastTransitionTime")),
                "'2027-01-15T09:00:00Z'");
    EXPECT_JSON(json_get(status, STR("startTime")), "'2027-01-15T09:00:00Z'");
    s.with.now_us = (NOW_S + 60) * 1000000;
    status =
        tell(&s, runtime_made("uid-web", a_container("app", RUNTIME_RUNNING), a_sandbox("s1")));
    EXPECT_JSON(json_get(condition(status, "Ready"), STR("lastTransitionTime")),
                "'2027-01-15T09:00:05Z'");
}

TEST(conditions_and_members_of_others_are_kept)
{
    AUTO_SCENE s = scene_of(
        ONE_APP "status:\n"
                "  conditions:\n"
                "  - {type: lb/up, status: 'True', lastTransitionTime: '2027-01-01T00:00:00Z'}\n"
                "  - {type: Ready, status: 'False', lastTransitionTime: '2027-01-02T00:00:00Z'}\n");
    s.maybe_previous =
        json_of(&s, "{'conditions':[{'type':'lb/up','status':'False'},{'type':'lb/gone',"
                    "'status':'True'},{'type':'DisruptionTarget','status':'True'}],"
                    "'resourceClaimStatuses':[{'name':'gpu'}],'nominatedNodeName':'n'}");
    const json_val *status = tell(&s, runtime_made("uid-web", a_container("app", RUNTIME_RUNNING)));
    /* The API's copy of others' conditions counts, except of the one that is shared. */
    EXPECT_JSON(condition(status, "lb/up"),
                "{'type':'lb/up','status':'True','lastTransitionTime':'2027-01-01T00:00:00Z'}");
    EXPECT_TRUE(condition(status, "lb/gone") == NULL);
    EXPECT_JSON(condition(status, "DisruptionTarget"),
                "{'type':'DisruptionTarget','status':'True'}");
    EXPECT_EQ(json_count(json_get(status, STR("conditions"))), 7);
    EXPECT_JSON(json_get(status, STR("resourceClaimStatuses")), "[{'name':'gpu'}]");
    EXPECT_JSON(json_get(status, STR("nominatedNodeName")), "'n'");
}

/* --- addresses --- */

TEST(pod_addresses_are_one_of_each_family_in_the_nodes_order)
{
    static const struct {
        struct str node[2];
        uint32_t node_count;
        const char *ips, *want;
    } rows[] = {
        { { STR("192.0.2.1") }, 1, "10.0.0.1", "[{'ip':'10.0.0.1'}]" },
        { { STR("192.0.2.1"), STR("2001:db8::1") },
          2,
          "fd00::7 10.0.0.1",
          "[{'ip':'10.0.0.1'},{'ip':'fd00::7'}]" },
        { { STR("2001:db8::1"), STR("192.0.2.1") },
          2,
          "10.0.0.1 fd00::7",
          "[{'ip':'fd00::7'},{'ip':'10.0.0.1'}]" },
        { { STR("192.0.2.1") },
          1,
          "10.0.0.1 10.0.0.2 fd00::7",
          "[{'ip':'10.0.0.1'},{'ip':'fd00::7'}]" },
        { { STR("192.0.2.1") }, 1, "fd00::7", "[{'ip':'fd00::7'}]" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        AUTO_SCENE s = scene_of(ONE_APP);
        s.with.node_ips = (struct str_list){ rows[i].node, rows[i].node_count };
        const json_val *status =
            tell(&s, runtime_made("uid-web", a_sandbox("s1", .ips = rows[i].ips)));
        EXPECT_JSON(json_get(status, STR("podIPs")), rows[i].want);
        EXPECT_TRUE(json_equal(json_get(status, STR("podIP")),
                               json_path(json_at(json_get(status, STR("podIPs")), 0), "ip")));
        EXPECT_EQ(json_count(json_get(status, STR("hostIPs"))), rows[i].node_count);
    }
}

TEST(a_finished_pod_keeps_the_address_that_it_had)
{
    AUTO_SCENE s = scene_of(ONE_APP);
    tell(&s, runtime_made("uid-web", a_container("app", RUNTIME_RUNNING), a_sandbox("s1")));
    const json_val *status =
        tell(&s, runtime_made("uid-web", a_sandbox("s1", .not_ready = true, .ips = "")));
    EXPECT_JSON(json_get(status, STR("podIPs")), "[{'ip':'10.88.0.7'}]");
    /* A sandbox that is up without one has none. */
    status = tell(&s, runtime_made("uid-web", a_sandbox("s2", .ips = "")));
    EXPECT_TRUE(json_get(status, STR("podIP")) == NULL);
}

TEST(a_pod_on_the_hosts_network_takes_the_nodes_address_once)
{
    static const struct str other[] = { STR("198.51.100.1") };
    AUTO_SCENE s = scene_of("metadata: {name: web}\n"
                            "spec: {hostNetwork: true, containers: [{name: app, image: app}]}\n");
    const json_val *status =
        tell(&s, runtime_made("uid-web", a_sandbox("s1", .host_network = true)));
    EXPECT_JSON(json_get(status, STR("podIPs")), "[{'ip':'192.0.2.10'}]");
    s.with.node_ips = (struct str_list){ other, 1 };
    status = tell(&s, runtime_made("uid-web", a_sandbox("s1", .host_network = true)));
    EXPECT_JSON(json_get(status, STR("podIP")), "'192.0.2.10'");
    EXPECT_JSON(json_get(status, STR("hostIP")), "'198.51.100.1'");
}

TEST(the_class_of_service_is_told)
{
    AUTO_SCENE s = scene_of("metadata: {name: web}\nspec: {containers: [{name: app, image: app,"
                            " resources: {limits: {cpu: 1, memory: 1Gi}}}]}\n");
    EXPECT_JSON(json_get(tell(&s, runtime_empty("uid-web")), STR("qosClass")), "'Guaranteed'");
}

/* --- the end --- */

static const json_val *terminate(struct scene *s, const json_val *status)
{
    AUTO_JSON_BUILD b = { 0 };
    struct buf text = { 0 };
    json_build_init(&b);
    json_write_mut(api_status_terminate(&b, s->pod, status, (NOW_S + 7) * 1000000), &text);
    return keep(s, &text);
}

TEST(at_the_end_what_never_told_its_own_has_ended_and_the_pod_has_failed)
{
    AUTO_SCENE s = scene_of("metadata: {name: web}\n"
                            "spec: {containers: [{name: app, image: a}, {name: b, image: b}]}\n");
    const json_val *status =
        terminate(&s, tell(&s, runtime_made("uid-web", a_container("app", RUNTIME_RUNNING),
                                            a_container("b", RUNTIME_EXITED), a_sandbox("s1"))));
    EXPECT_JSON(json_get(app_of(status), STR("state")), LOST);
    EXPECT_FALSE(json_bool(json_get(app_of(status), STR("ready"))));
    EXPECT_JSON(json_path(of_name(status, "containerStatuses", "b"), "state.terminated.exitCode"),
                "0");
    EXPECT_STR(api_status_phase(status), "Failed");
    EXPECT_JSON(condition(status, "Ready"),
                "{'type':'Ready','status':'False','lastProbeTime':null,"
                "'lastTransitionTime':'2027-01-15T09:00:00Z','reason':'PodFailed'}");
}

TEST(at_the_end_a_ready_pod_becomes_unready_now)
{
    AUTO_SCENE s = scene_of(ONE_APP);
    const json_val *status = terminate(
        &s,
        tell(&s, runtime_made("uid-web", a_container("app", RUNTIME_RUNNING), a_sandbox("s1"))));
    EXPECT_JSON(json_get(condition(status, "ContainersReady"), STR("lastTransitionTime")),
                "'2027-01-15T09:00:07Z'");
    EXPECT_JSON(json_get(condition(status, "PodScheduled"), STR("status")), "'True'");
}

TEST(a_phase_that_is_terminal_stays_at_the_end_and_a_static_pod_has_none)
{
    AUTO_SCENE s = scene_of(ONE_APP_NEVER);
    EXPECT_STR(api_status_phase(terminate(
                   &s, tell(&s, runtime_made("uid-web", a_container("app", RUNTIME_EXITED))))),
               "Succeeded");
    AUTO_SCENE fixed = scene_of(ONE_APP);
    ((struct node_pod *)fixed.pod)->source = POD_FROM_FILE;
    const json_val *status = terminate(
        &fixed, tell(&fixed, runtime_made("uid-web", a_container("app", RUNTIME_RUNNING))));
    EXPECT_STR(api_status_phase(status), "Running");
    EXPECT_JSON(json_get(app_of(status), STR("state")), LOST);
}

TEST(containers_that_had_no_turn_are_not_said_to_have_ended)
{
    AUTO_SCENE s = scene_of(WITH_INIT);
    const json_val *status =
        terminate(&s, tell(&s, runtime_made("uid-web", a_container("b", RUNTIME_RUNNING))));
    EXPECT_JSON(json_get(of_name(status, "initContainerStatuses", "b"), STR("state")), LOST);
    EXPECT_TRUE(json_path(of_name(status, "initContainerStatuses", "a"), "state.waiting") != NULL);
    EXPECT_TRUE(json_path(app_of(status), "state.waiting") != NULL);
    EXPECT_STR(api_status_phase(status), "Failed");
}

/* --- what may follow, what is new --- */

TEST(an_ended_container_that_may_not_restart_stays_ended)
{
    static const struct {
        const char *policy;
        int exit_code;
        bool regular, init;
    } rows[] = {
        { "Always", 0, true, true },     { "Always", 1, true, true },
        { "OnFailure", 0, false, true }, /* init containers run again in a new sandbox */
        { "OnFailure", 1, true, true },  { "Never", 0, false, false },
        { "Never", 1, false, false },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        for (int init = 0; init < 2; init++) {
            AUTO_BUF yaml = { 0 };
            AUTO_BUF before = { 0 };
            AUTO_BUF after = { 0 };
            const char *list = init ? "initContainerStatuses" : "containerStatuses";
            buf_addf(&yaml,
                     "metadata: {name: web}\nspec: {restartPolicy: %s,"
                     " initContainers: [{name: i, image: i}], containers: [{name: c, image: c}]}\n",
                     rows[i].policy);
            buf_addf(&before, "{'%s':[{'name':'%s','state':{'terminated':{'exitCode':%d}}}]}", list,
                     init ? "i" : "c", rows[i].exit_code);
            buf_addf(&after, "{'%s':[{'name':'%s','state':{'running':{}}}]}", list,
                     init ? "i" : "c");
            AUTO_SCENE s = scene_of(yaml.p);
            struct err why = { 0 };
            const json_val *old = json_of(&s, before.p), *new = json_of(&s, after.p);
            EXPECT_EQ(api_status_may_follow(s.pod, old, new, &why),
                      init ? rows[i].init : rows[i].regular);
            EXPECT_TRUE(api_status_may_follow(s.pod, old, old, &why));
            EXPECT_TRUE(api_status_may_follow(s.pod, new, old, &why));
            EXPECT_TRUE(api_status_may_follow(s.pod, NULL, new, &why));
        }
    }
}

TEST(a_refusal_names_the_container)
{
    AUTO_SCENE s = scene_of(ONE_APP_NEVER);
    struct err why = { 0 };
    const json_val *old =
        json_of(&s, "{'containerStatuses':[{'name':'app','state':{'terminated':{'exitCode':0}}}]}");
    const json_val *new =
        json_of(&s, "{'containerStatuses':[{'name':'app','state':{'waiting':{}}}]}");
    EXPECT_FALSE(api_status_may_follow(s.pod, old, new, &why));
    EXPECT_HAS(str_of(why.text), "\"app\"");
}

TEST(statuses_are_the_same_but_for_conditions_of_others)
{
    AUTO_SCENE s = scene_of(ONE_APP);
    static const struct {
        const char *a, *b;
        bool same;
    } rows[] = {
        { "{'phase':'Running','conditions':[{'type':'Ready','status':'True'}]}",
          "{'conditions':[{'type':'lb/up','status':'True'},{'status':'True','type':'Ready'}],"
          "'phase':'Running'}",
          true },
        { "{'phase':'Running'}", "{'phase':'Pending'}", false },
        { "{'phase':'Running'}", "{'phase':'Running','podIP':'10.0.0.1'}", false },
        { "{'conditions':[{'type':'Ready','status':'True'}]}",
          "{'conditions':[{'type':'Ready','status':'False'}]}", false },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        const json_val *a = json_of(&s, rows[i].a), *b = json_of(&s, rows[i].b);
        EXPECT_EQ(api_status_same(a, b), rows[i].same);
        EXPECT_EQ(api_status_same(b, a), rows[i].same);
    }
}

TEST(the_same_seen_twice_is_told_the_same)
{
    AUTO_SCENE s = scene_of(WITH_INIT);
    const json_val *first = NULL;
    for (int i = 0; i < 3; i++) {
        s.with.now_us = (NOW_S + i) * 1000000;
        const json_val *status =
            tell(&s, runtime_made("uid-web", a_container("app", RUNTIME_RUNNING, .restarts = 1),
                                  a_container("app", RUNTIME_EXITED, .exit_code = 1),
                                  a_container("z", RUNTIME_UNKNOWN),
                                  a_container("b", RUNTIME_EXITED), a_sandbox("s1")));
        first = first ? first : status;
        EXPECT_TRUE(api_status_same(first, status));
    }
}

TEST(a_previous_status_of_any_shape_does_no_harm)
{
    static const char *const shapes[] = {
        "[]",
        "7",
        "{'phase':5,'conditions':{},'containerStatuses':'x','podIPs':1,'startTime':'no'}",
        "{'conditions':[1,{'type':2},{'type':'Ready','status':'True','lastTransitionTime':'x'}],"
        "'containerStatuses':[3,{'name':'app','restartCount':9223372036854775807,"
        "'state':{'running':{'startedAt':true}},'lastState':[]}]}",
    };
    for (size_t i = 0; i < KV_COUNT_OF(shapes); i++) {
        AUTO_SCENE s = scene_of(ONE_APP);
        const json_val *odd = s.maybe_previous = json_of(&s, shapes[i]);
        const json_val *status = tell(&s, runtime_empty("uid-web"));
        EXPECT_TRUE(json_is_string(json_get(status, STR("startTime"))));
        EXPECT_FALSE(api_status_same(odd, status));
        EXPECT_TRUE(api_status_may_follow(s.pod, odd, status, NULL));
        EXPECT_TRUE(json_is_object(terminate(&s, odd)));
    }
}

#include "sim/kubelet_testing.h"

#include "api/policy.h"
#include "codec/duration.h"

/* --- starting and running --- */

TEST(a_bound_pod_starts_after_its_delay_and_is_ready)
{
    AUTO(ground) g = ground_new();
    ready_node(g, "n");
    add_pod(g, "p", "n", "", "");
    add_pod(g, "unbound", NULL, "", "");
    run(g, 1);
    EXPECT_Z(state_of(g, "p"), "Pending");
    run(g, 1);
    EXPECT_Z(state_of(g, "p"), "Running");
    EXPECT_Z(state_of(g, "unbound"), "Pending");
    AUTO_OBJECT object = get(g->store, &pod_kind, "p");
    EXPECT_TRUE(pod_is_ready(pod_of(object)));
    EXPECT_EQ(pod_of(object)->start_us, START_US + 2 * SECOND_US);
    EXPECT_TRUE(pod_condition(pod_of(object), STR("PodScheduled")) != NULL);
    EXPECT_TRUE(step(g) == INT64_MAX);
}

TEST(a_pod_on_a_node_that_is_not_ready_starts_when_it_is)
{
    AUTO(ground) g = ground_new();
    make_node(g->store, "n");
    set_ready(g, "n", "False");
    add_pod(g, "p", "n", "", ",'tolerations':[{'operator':'Exists'}]");
    run(g, 100);
    EXPECT_Z(state_of(g, "p"), "Pending");
    set_ready(g, "n", "True");
    run(g, 1);
    EXPECT_Z(state_of(g, "p"), "Pending");
    run(g, 1);
    EXPECT_Z(state_of(g, "p"), "Running");
}

#define JOB                                                                                        \
    ",'ownerReferences':[{'apiVersion':'batch/v1','kind':'Job','name':'j','uid':'u',"              \
    "'controller':true}]"

static void make_job(struct ground *g)
{
    struct embedded_loaded loaded;
    struct err err = { 0 };
    EXPECT_OK(embedded_load(g->sky->w->e,
                            STR("{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: "
                                "default, uid: u}, spec: {template: {spec: {restartPolicy: Never, "
                                "containers: [{name: c, image: i}]}}}}"),
                            &loaded, &err),
              err);
}

TEST(pods_of_jobs_finish_after_their_run_and_annotated_ones_after_what_they_say)
{
    AUTO(ground) g = ground_new();
    make_job(g);
    ready_node(g, "n");
    add_pod(g, "p", "n", JOB, ",'restartPolicy':'Never'");
    add_pod(g, "q", "n", JOB ",'annotations':{'karve.io/sim-duration':'10s'}",
            ",'restartPolicy':'OnFailure'");
    add_pod(g, "bare", "n", ",'annotations':{'karve.io/sim-duration':'20s'}",
            ",'restartPolicy':'Never'");
    add_pod(g, "server", "n", ",'annotations':{'karve.io/sim-duration':'20s'}", "");
    add_pod(g, "ever", "n", ",'annotations':{'karve.io/sim-duration':'2562047h'}",
            ",'restartPolicy':'Never'");
    run(g, 11);
    EXPECT_Z(state_of(g, "q"), "Running");
    run(g, 1);
    EXPECT_Z(state_of(g, "q"), "Succeeded");
    run(g, 10);
    EXPECT_Z(state_of(g, "bare"), "Succeeded");
    run(g, 39);
    EXPECT_Z(state_of(g, "p"), "Running");
    run(g, 1);
    EXPECT_Z(state_of(g, "p"), "Succeeded");
    run(g, 10000);
    EXPECT_Z(state_of(g, "server"), "Running");
    EXPECT_Z(state_of(g, "ever"), "Running");
}

/* --- ending --- */

TEST(a_deleted_pod_ends_when_it_has_stopped_or_its_grace_is_over)
{
    AUTO(ground) g = ground_new();
    ready_node(g, "n");
    add_pod(g, "slow", "n", "", "");
    add_pod(g, "hasty", "n", "", ",'terminationGracePeriodSeconds':3");
    run(g, 2);
    remove_it(g->store, &pod_kind, "slow");
    remove_it(g->store, &pod_kind, "hasty");
    run(g, 2);
    EXPECT_Z(state_of(g, "hasty"), "Running ending");
    run(g, 1);
    EXPECT_Z(state_of(g, "hasty"), "gone");
    run(g, 1);
    EXPECT_Z(state_of(g, "slow"), "Running ending");
    run(g, 1);
    EXPECT_Z(state_of(g, "slow"), "gone");
}

TEST(a_second_deletion_with_less_grace_ends_the_pod_sooner)
{
    AUTO(ground) g = ground_new();
    struct err err = { 0 };
    ready_node(g, "n");
    add_pod(g, "p", "n", "", "");
    run(g, 2);
    remove_it(g->store, &pod_kind, "p");
    run(g, 1);
    struct delete_options soon = { .grace_s = { .set = true, .value = 1 } };
    EXPECT_OK(store_remove(g->store, at(&pod_kind, "p"), &soon, &err), err);
    run(g, 0);
    EXPECT_Z(state_of(g, "p"), "gone");
}

TEST(a_pod_that_finalizers_keep_is_ended_once_and_left_alone)
{
    AUTO(ground) g = ground_new();
    ready_node(g, "n");
    add_pod(g, "p", "n", ",'finalizers':['a/b']", "");
    run(g, 2);
    remove_it(g->store, &pod_kind, "p");
    run(g, 100);
    EXPECT_Z(state_of(g, "p"), "Running ending");
    uint64_t version = embedded_version(g->sky->w->e);
    run(g, 1000);
    EXPECT_EQ(embedded_version(g->sky->w->e), version);
    object_unref(merge(g->store, &pod_kind, "p", js("{'metadata':{'finalizers':null}}")));
    EXPECT_Z(state_of(g, "p"), "gone");
}

TEST(pods_that_end_on_a_node_that_is_not_ready_stay_until_the_node_is_gone)
{
    AUTO(ground) g = ground_new();
    ready_node(g, "n");
    add_pod(g, "p", "n", "", "");
    run(g, 2);
    set_ready(g, "n", "Unknown");
    remove_it(g->store, &pod_kind, "p");
    run(g, 3600);
    EXPECT_Z(state_of(g, "p"), "Running not ready ending");
    remove_it(g->store, &node_kind, "n");
    run(g, 39);
    EXPECT_Z(state_of(g, "p"), "Running not ready ending");
    run(g, 1);
    EXPECT_Z(state_of(g, "p"), "gone");
}

TEST(pods_of_every_kind_are_collected_when_their_node_is_gone)
{
    AUTO(ground) g = ground_new();
    ready_node(g, "n");
    add_pod(g, "running", "n", "", "");
    add_pod(g, "done", "n", ",'annotations':{'karve.io/sim-duration':'1s'}",
            ",'restartPolicy':'Never'");
    add_pod(g, "held", "n", ",'finalizers':['a/b']", "");
    run(g, 5);
    remove_it(g->store, &node_kind, "n");
    run(g, 40);
    EXPECT_Z(state_of(g, "running"), "gone");
    EXPECT_Z(state_of(g, "done"), "gone");
    EXPECT_Z(state_of(g, "held"), "Running ending");
    run(g, 100);
}

/* --- nodes --- */

static bool has_taint(struct ground *g, const char *node, const char *key, enum taint_effect effect)
{
    AUTO_OBJECT object = get(g->store, &node_kind, node);
    return node_taint(node_of(object), str_of(key), effect) != NULL;
}

TEST(taints_follow_readiness_and_cordoning_and_those_of_others_stay)
{
    AUTO(ground) g = ground_new();
    object_unref(make(g->store, &node_kind,
                      js("{'metadata':{'name':'n'},'spec':{'taints':[{'key':'team','value':'a',"
                         "'effect':'NoSchedule'}]}}")));
    static const struct {
        const char *ready;
        bool not_ready, unreachable;
    } rows[] = { { "True", false, false },
                 { "False", true, false },
                 { "Unknown", false, true },
                 { "False", true, false },
                 { "True", false, false } };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        set_ready(g, "n", rows[i].ready);
        run(g, 1);
        for (int execute = 0; execute < 2; execute++) {
            enum taint_effect effect = execute ? EFFECT_NO_EXECUTE : EFFECT_NO_SCHEDULE;
            EXPECT_EQ(has_taint(g, "n", "node.kubernetes.io/not-ready", effect), rows[i].not_ready);
            EXPECT_EQ(has_taint(g, "n", "node.kubernetes.io/unreachable", effect),
                      rows[i].unreachable);
        }
        EXPECT_TRUE(has_taint(g, "n", "team", EFFECT_NO_SCHEDULE));
    }
    object_unref(merge(g->store, &node_kind, "n", js("{'spec':{'unschedulable':true}}")));
    run(g, 1);
    EXPECT_TRUE(has_taint(g, "n", "node.kubernetes.io/unschedulable", EFFECT_NO_SCHEDULE));
    object_unref(merge(g->store, &node_kind, "n", js("{'spec':{'unschedulable':false}}")));
    run(g, 1);
    EXPECT_FALSE(has_taint(g, "n", "node.kubernetes.io/unschedulable", EFFECT_ANY));
    uint64_t version = embedded_version(g->sky->w->e);
    run(g, 1000);
    EXPECT_EQ(embedded_version(g->sky->w->e), version);
}

TEST(a_node_of_the_cloud_gets_ready_and_loses_its_taints_but_the_unregistered_one)
{
    AUTO(ground) g = ground_new();
    struct instance i = launch_new(g->sky, "a");
    run(g, TEST_BOOT_S);
    EXPECT_TRUE(has_taint(g, i.node_name.p, "node.kubernetes.io/not-ready", EFFECT_NO_EXECUTE));
    run(g, TEST_READY_S);
    EXPECT_FALSE(has_taint(g, i.node_name.p, "node.kubernetes.io/not-ready", EFFECT_ANY));
    EXPECT_TRUE(has_taint(g, i.node_name.p, TAINT_UNREGISTERED, EFFECT_NO_EXECUTE));
}

TEST(startup_taints_of_the_claim_go_some_time_after_the_node_is_ready_and_no_others)
{
    AUTO(ground) g = ground_new();
    AUTO_OBJECT claim =
        make(g->store, &nodeclaim_kind,
             js("{'metadata':{'name':'c'},'spec':{'nodeClassRef':{'group':'karpenter.kwok.sh',"
                "'kind':'KWOKNodeClass','name':'default'},'requirements':[" LINUX_AMD64 "],"
                "'taints':[{'key':'team','value':'a','effect':'NoSchedule'}],"
                "'startupTaints':[{'key':'cni','effect':'NoExecute'},"
                "{'key':'team','effect':'NoExecute'}]}}"));
    object_unref(
        make(g->store, &node_kind,
             js("{'metadata':{'name':'n','ownerReferences':[{'apiVersion':'karpenter.sh/v1',"
                "'kind':'NodeClaim','name':'c','uid':'%.*s'}]},'spec':{'taints':["
                "{'key':'team','value':'a','effect':'NoSchedule'},"
                "{'key':'cni','effect':'NoExecute'},{'key':'cni','effect':'NoSchedule'}]}}",
                STR_ARG(claim->meta.uid))));
    object_unref(make(g->store, &node_kind,
                      js("{'metadata':{'name':'other'},'spec':{'taints':[{'key':'cni','effect':"
                         "'NoExecute'}]}}")));
    set_ready(g, "n", "False");
    set_ready(g, "other", "True");
    run(g, 60);
    set_ready(g, "n", "True");
    run(g, 5);
    set_ready(g, "n", "False"); /* begins anew */
    run(g, 5);
    set_ready(g, "n", "True");
    run(g, 6);
    EXPECT_TRUE(has_taint(g, "n", "cni", EFFECT_NO_EXECUTE));
    run(g, 1);
    EXPECT_FALSE(has_taint(g, "n", "cni", EFFECT_NO_EXECUTE));
    EXPECT_TRUE(has_taint(g, "n", "cni", EFFECT_NO_SCHEDULE));
    EXPECT_TRUE(has_taint(g, "n", "team", EFFECT_NO_SCHEDULE));
    EXPECT_TRUE(has_taint(g, "other", "cni", EFFECT_NO_EXECUTE));
    EXPECT_TRUE(step(g) == INT64_MAX);
}

TEST(a_node_that_goes_before_its_startup_taints_is_forgotten)
{
    AUTO(ground) g = ground_new();
    AUTO_OBJECT claim =
        make(g->store, &nodeclaim_kind,
             js("{'metadata':{'name':'c'},'spec':{'nodeClassRef':{'group':'karpenter.kwok.sh',"
                "'kind':'KWOKNodeClass','name':'default'},'requirements':[" LINUX_AMD64 "],"
                "'startupTaints':[{'key':'cni','effect':'NoExecute'}]}}"));
    object_unref(
        make(g->store, &node_kind,
             js("{'metadata':{'name':'n','ownerReferences':[{'apiVersion':'karpenter.sh/v1',"
                "'kind':'NodeClaim','name':'c','uid':'%.*s'}]},'spec':{'taints':["
                "{'key':'cni','effect':'NoExecute'}]}}",
                STR_ARG(claim->meta.uid))));
    set_ready(g, "n", "True");
    run(g, 1);
    EXPECT_TRUE(step(g) != INT64_MAX);
    struct err err = { 0 };
    EXPECT_OK(
        store_remove(g->store, (struct object_ref){ &node_kind, STR(""), STR("n") }, NULL, &err),
        err);
    EXPECT_TRUE(step(g) == INT64_MAX);
}

TEST(pods_on_a_node_that_is_not_ready_are_not_ready_and_are_evicted_after_five_minutes)
{
    AUTO(ground) g = ground_new();
    ready_node(g, "n");
    add_pod(g, "p", "n", "", "");
    add_pod(g, "brief", "n", "",
            ",'tolerations':[{'key':'node.kubernetes.io/not-ready','operator':'Exists','effect':"
            "'NoExecute','tolerationSeconds':60}]");
    add_pod(g, "daemon", "n", "",
            ",'tolerations':[{'key':'node.kubernetes.io/not-ready','operator':'Exists'}]");
    run(g, 5);
    set_ready(g, "n", "False");
    run(g, 59);
    EXPECT_Z(state_of(g, "brief"), "Running not ready");
    run(g, 1);
    EXPECT_Z(state_of(g, "brief"), "Running not ready ending");
    run(g, 239);
    EXPECT_Z(state_of(g, "p"), "Running not ready");
    run(g, 1);
    EXPECT_Z(state_of(g, "p"), "Running not ready ending");
    run(g, 1000);
    EXPECT_Z(state_of(g, "daemon"), "Running not ready");
    set_ready(g, "n", "True");
    run(g, 10);
    EXPECT_Z(state_of(g, "p"), "gone");
    EXPECT_Z(state_of(g, "daemon"), "Running");
}

TEST(a_node_that_is_ready_again_in_time_keeps_its_pods)
{
    AUTO(ground) g = ground_new();
    ready_node(g, "n");
    add_pod(g, "p", "n", "", "");
    run(g, 5);
    for (int round = 0; round < 3; round++) {
        set_ready(g, "n", "Unknown");
        run(g, 290);
        EXPECT_Z(state_of(g, "p"), "Running not ready");
        set_ready(g, "n", "True");
        run(g, 290);
        EXPECT_Z(state_of(g, "p"), "Running");
    }
}

TEST(a_taint_that_a_pod_does_not_tolerate_drives_it_away_at_once)
{
    AUTO(ground) g = ground_new();
    ready_node(g, "n");
    add_pod(g, "p", "n", "", "");
    add_pod(g, "minute", "n", "",
            ",'tolerations':[{'key':'k','operator':'Exists','effect':'NoExecute',"
            "'tolerationSeconds':60}]");
    run(g, 5);
    object_unref(merge(g->store, &node_kind, "n",
                       js("{'spec':{'taints':[{'key':'k','effect':'NoExecute'}]}}")));
    run(g, 0);
    EXPECT_Z(state_of(g, "p"), "Running ending");
    run(g, 59);
    EXPECT_Z(state_of(g, "p"), "gone");
    EXPECT_Z(state_of(g, "minute"), "Running");
    run(g, 1);
    EXPECT_Z(state_of(g, "minute"), "Running ending");
}

TEST(nothing_happens_on_an_instance_that_died_even_before_anybody_knows)
{
    AUTO(ground) g = ground_new();
    struct instance i = launch_new(g->sky, "a");
    run(g, TEST_BOOT_S + TEST_READY_S);
    object_unref(merge(g->store, &node_kind, i.node_name.p, js("{'spec':{'taints':null}}")));
    add_pod(g, "old", i.node_name.p, "", "");
    run(g, 10);
    add_pod(g, "new", i.node_name.p, "", "");
    run(g, 1);
    sim_cloud_kill_instance(g->sky->cloud, i.provider_id);
    remove_it(g->store, &pod_kind, "old");
    run(g, 30);
    EXPECT_Z(state_of(g, "old"), "Running ending");
    EXPECT_Z(state_of(g, "new"), "Pending");
    run(g, 15 + 40); /* the Node is missed and removed, and then its pods */
    EXPECT_FALSE(is_there(g->store, &node_kind, i.node_name.p));
    EXPECT_Z(state_of(g, "old"), "gone");
    EXPECT_Z(state_of(g, "new"), "gone");
}

/* --- Events --- */

static void add_event(struct ground *g, const char *name)
{
    char now[TIME_TEXT_MAX];
    time_format(clock_wall_us(virtual_clock_port(g->sky->w->time)), now);
    object_unref(make(g->store, &event_kind,
                      js("{'metadata':{'name':'%s'},'involvedObject':{'kind':'Pod','name':'p',"
                         "'namespace':'default'},'reason':'R','message':'m','type':'Normal',"
                         "'firstTimestamp':'%s','lastTimestamp':'%s','count':1}",
                         name, now, now)));
}

TEST(events_are_forgotten_an_hour_after_they_last_happened)
{
    AUTO(ground) g = ground_new();
    add_event(g, "a");
    run(g, 1800);
    add_event(g, "b");
    run(g, 1799);
    EXPECT_EQ(count_of(g, &event_kind), 2);
    run(g, 1);
    EXPECT_FALSE(is_there(g->store, &event_kind, "a"));
    EXPECT_TRUE(is_there(g->store, &event_kind, "b"));
    run(g, 1800);
    EXPECT_EQ(count_of(g, &event_kind), 0);
    EXPECT_TRUE(step(g) == INT64_MAX);
}

/* --- all of it --- */

/* Five minutes of pods and nodes that come and go; the store as it is then. */
static void live(uint64_t seed, struct buf *out)
{
    AUTO(ground) g = ground_new();
    struct rng rng;
    struct err err = { 0 };
    char name[16], node[16];

    rng_init(&rng, seed);
    for (int n = 0; n < 5; n++) {
        snprintf(node, sizeof node, "n%d", n);
        ready_node(g, node);
    }
    for (int round = 0; round < 300; round++) {
        snprintf(name, sizeof name, "p%d", (int)rng_below(&rng, 40));
        snprintf(node, sizeof node, "n%d", (int)rng_below(&rng, 5));
        switch (rng_below(&rng, 4)) {
        case 0:
            store_remove(g->store, at(&pod_kind, name), NULL, &err);
            break;
        case 1:
            if (is_there(g->store, &node_kind, node))
                set_ready(g, node, rng_below(&rng, 2) ? "True" : "Unknown");
            break;
        case 2:
            if (rng_below(&rng, 10) == 0)
                store_remove(g->store, at(&node_kind, node), NULL, &err);
            break;
        default:
            if (!is_there(g->store, &pod_kind, name) && is_there(g->store, &node_kind, node))
                add_pod(g, name, node, "", "");
            break;
        }
        run(g, 1);
    }
    embedded_dump(g->sky->w->e, out);
}

TEST(equal_histories_give_equal_stores_byte_for_byte)
{
    for (uint64_t seed = 1; seed <= 5; seed++) {
        AUTO_BUF one = { 0 };
        AUTO_BUF two = { 0 };
        live(seed, &one);
        live(seed, &two);
        EXPECT_TRUE(one.len > 1000);
        EXPECT_TRUE(str_eq(buf_str(&one), buf_str(&two)));
    }
}
